//! Checks that every request passes before a handler sees it: host name, origin, API key and its scopes; and the
//! headers that every response carries.
//!
//! One layer around all routes. It denies by default: a route without a rule is refused.

mod api_key;
mod body;
mod credential;
mod first_key;
mod key_ring;
mod live_streams;
mod origin_check;
mod proxy_user;
mod route_rules;
mod sign_in;
mod ticket;

pub(crate) use api_key::random_bytes;
pub(crate) use api_key::{ApiKey, RandomnessError};
pub use first_key::FirstKey;
pub(crate) use key_ring::MintError;
pub use key_ring::{KeyInfo, KeyStore, NewApiKey};

use crate::error::ApiError;
use crate::extract::is_json;
use crate::large_bodies::{LARGE_BYTES, LargeBodies, RequestMemory};
use crate::net::ConnectionInfo;
#[cfg(feature = "oidc")]
use crate::oidc::OidcProvider;
pub(crate) use crate::principal::LOCAL_USER;
use crate::principal::{Principal, SignInWay};
use crate::stamps::now_ms;
use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use body::{BodyAdmission, BodyLimits, DrainedBody, JsonLimits, LimitedBody};
use credential::{ShownCredential, check_csrf_intent, credential_of};
use futures_util::FutureExt;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use key_ring::KeyRing;
use live_streams::{CloseMode, LiveStreams, RevocableBody};
use origin_check::{AllowedSites, KeyProof, RequestOrigin, SiteAdmission};
use proxy_user::TrustedProxy;
use route_rules::{RequestKind, RouteAccess};
use sign_in::SignInGrant;
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use throughline::config::{AuthMode, ServerLimits, ServerSettings};
use throughline_store::{KeyLimits, KeyRow, PageRequest, ResultPage, StoreError};
use ticket::{TicketError, TicketStore};

/// Raw HTML is never rendered, and nothing is loaded from elsewhere.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    media-src 'self' blob:; worker-src 'self'; manifest-src 'self'; connect-src 'self'; font-src 'self'; \
    frame-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";
/// Memory for a byte of JSON: its text, its values, and the data derived from them.
const JSON_MEMORY_PER_BYTE: u64 = 6;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// The longest id of a request that is taken over from a proxy.
const REQUEST_ID_BYTES_MAX: usize = 64;
/// Interval for checking keys with open streams again, so that a revoked or expired key closes them within a second.
const KEY_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The request guard. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct RequestGuard(Arc<RequestGuardInner>);

struct RequestGuardInner {
    auth: AuthMode,
    key_ring: KeyRing,
    /// A proxy that signs people in.
    proxy: Option<TrustedProxy>,
    /// A provider at which people sign in.
    #[cfg(feature = "oidc")]
    provider: Option<Arc<OidcProvider>>,
    tickets: TicketStore<TicketOwner>,
    /// Tickets of links that sign a browser in.
    sign_in_tickets: TicketStore<SignInGrant>,
    live_streams: LiveStreams,
    /// Settings that a reload can change.
    settings: RwLock<Arc<RequestGuardSettings>>,
}

struct RequestGuardSettings {
    allowed_sites: AllowedSites,
    limits: ServerLimits,
    new_turns: DefaultKeyedRateLimiter<String>,
    large_bodies: Arc<LargeBodies>,
}

impl RequestGuardSettings {
    fn of(settings: &ServerSettings, large_bodies: Arc<LargeBodies>) -> Self {
        // The configuration refuses 0.
        let per_minute = NonZeroU32::new(settings.limits.turns_per_minute_max).unwrap_or(NonZeroU32::MIN);
        Self {
            allowed_sites: AllowedSites::of(settings),
            limits: settings.limits,
            new_turns: RateLimiter::keyed(Quota::per_minute(per_minute)),
            large_bodies,
        }
    }
}

impl RequestGuardSettings {
    fn check_turn_quota(&self, principal: &Principal) -> Result<(), ApiError> {
        let Err(retry_at) = self.new_turns.check_key(&principal.quota_key().to_owned()) else {
            return Ok(());
        };
        let now = governor::clock::Clock::now(&governor::clock::DefaultClock::default());
        let message = format!("more than {} new turns per minute", self.limits.turns_per_minute_max);
        Err(ApiError::too_many("turns_per_minute_max", message, retry_at.wait_time_from(now).as_secs() + 1))
    }
}

/// A request that was admitted.
struct AdmittedRequest {
    principal: Option<Principal>,
    kind: RequestKind,
    body_limits: BodyLimits,
}

impl RequestGuard {
    /// A request guard for these settings and keys.
    pub fn new(settings: &ServerSettings, keys: Arc<dyn KeyStore>) -> Self {
        Self(Arc::new(RequestGuardInner {
            auth: settings.auth,
            key_ring: KeyRing::new(keys),
            proxy: settings.trusted_proxy.clone().and_then(TrustedProxy::new),
            #[cfg(feature = "oidc")]
            provider: settings.oidc.clone().map(OidcProvider::new).map(Arc::new),
            tickets: TicketStore::new(),
            sign_in_tickets: TicketStore::new(),
            live_streams: LiveStreams::default(),
            settings: RwLock::new(Arc::new(RequestGuardSettings::of(
                settings,
                LargeBodies::of(&settings.limits),
            ))),
        }))
    }

    /// Puts these routes inside the request guard.
    pub fn wrap(&self, routes: Router) -> Router {
        routes.layer(middleware::from_fn_with_state(self.clone(), admit_request))
    }

    /// Takes names, pages and limits of a new configuration. Who may come in at all is decided at the start.
    pub fn reload(&self, settings: &ServerSettings) {
        let large_bodies = self.settings().large_bodies.reloaded(&settings.limits);
        let new = Arc::new(RequestGuardSettings::of(settings, large_bodies));
        *self.0.settings.write().unwrap_or_else(PoisonError::into_inner) = new;
    }

    /// Counts a turn that begins without an HTTP request: over a WebSocket.
    ///
    /// # Errors
    /// 429: too many turns within a minute.
    pub(crate) fn check_turn_quota(&self, principal: &Principal) -> Result<(), ApiError> {
        self.settings().check_turn_quota(principal)
    }

    /// Issues a ticket for the key of this request, for clients that cannot send one.
    ///
    /// # Errors
    /// 429: too many unused tickets.
    pub fn ticket(&self, principal: &Principal) -> Result<(String, Duration), ApiError> {
        let ttl = Duration::from_millis(self.settings().limits.ticket_ms);
        let owner = match (&principal.key_id, principal.signed_in_by) {
            (Some(key_id), _) => TicketOwner::Key(key_id.clone()),
            (None, SignInWay::Proxy) => TicketOwner::Person(principal.user.clone()),
            (None, _) => TicketOwner::Nobody,
        };
        match self.0.tickets.issue(owner, ttl) {
            Ok(ticket) => Ok((ticket, ttl)),
            Err(TicketError::TooMany) => {
                Err(ApiError::too_many("tickets_open", "too many unused tickets", ttl.as_secs().max(1)))
            }
            Err(TicketError::NoRandomness) => Err(ApiError::internal(RandomnessError)),
        }
    }

    /// Creates a key.
    ///
    /// # Errors
    /// See [`MintError`].
    pub async fn mint(&self, user: &str, new: NewApiKey) -> Result<(ApiKey, KeyInfo), MintError> {
        self.0.key_ring.mint(user, new, now_ms()).await
    }

    /// Makes a key worthless, and ends its streams and sockets. `false`: this user has no such key.
    ///
    /// # Errors
    /// The store.
    pub async fn revoke(&self, user: &str, key_id: &str) -> Result<bool, ApiError> {
        let revoked = self.0.key_ring.revoke(user, key_id).await?;
        if revoked {
            self.0.live_streams.close_all(key_id);
        }
        Ok(revoked)
    }

    /// Drops a removed user from the caches with their keys, and closes their streams and sockets.
    pub(crate) fn close_person(&self, user: &str, key_ids: &[String]) {
        self.forget_cached();
        self.0.live_streams.close_all(&live_name_of(user));
        for key_id in key_ids {
            self.0.live_streams.close_all(key_id);
        }
    }

    /// Reads keys and users again after a change.
    pub(crate) fn forget_cached(&self) {
        self.0.key_ring.forget_cached();
    }

    /// Sets the limits of a key. `false`: this user has no such key.
    ///
    /// # Errors
    /// See [`MintError`].
    pub async fn set_key_limits(
        &self,
        user: &str,
        key_id: &str,
        limits: KeyLimits,
    ) -> Result<bool, MintError> {
        self.0.key_ring.set_limits(user, key_id, limits).await
    }

    /// Keys of a person, or of all people, newest first.
    pub(crate) async fn keys_page(
        &self,
        user: Option<&str>,
        page: &PageRequest,
    ) -> Result<ResultPage<KeyRow>, StoreError> {
        self.0.key_ring.page(user, page).await
    }

    /// A key by its id, of any user.
    pub(crate) async fn key(&self, key_id: &str) -> Result<Option<KeyRow>, StoreError> {
        self.0.key_ring.get(key_id).await
    }

    /// The keys of a user.
    ///
    /// # Errors
    /// The store.
    pub async fn keys(&self, user: &str) -> Result<Vec<KeyInfo>, ApiError> {
        self.0.key_ring.list(user).await
    }

    /// Checks the keys of open streams in an endless loop: a stream is closed if its key expired or was
    /// revoked by another program.
    pub async fn watch_live_keys(&self) {
        let mut every = tokio::time::interval(KEY_CHECK_INTERVAL);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            for key_id in self.0.live_streams.keys() {
                let is_valid = match key_id.strip_prefix(LIVE_PERSON) {
                    Some(user) => self.0.key_ring.is_active(user).await,
                    None => self.0.key_ring.is_valid(&key_id).await,
                };
                if !is_valid {
                    self.0.live_streams.close_all(&key_id);
                }
            }
            self.0.key_ring.evict_expired();
            self.0.tickets.evict_expired();
            self.0.sign_in_tickets.evict_expired();
            #[cfg(feature = "oidc")]
            self.0.provider.iter().for_each(|provider| provider.evict_expired());
            self.settings().new_turns.retain_recent();
        }
    }

    fn settings(&self) -> Arc<RequestGuardSettings> {
        self.0.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Checks a request, cheapest check first.
    async fn admit(
        &self,
        settings: &RequestGuardSettings,
        parts: &Parts,
        page: &RequestOrigin,
    ) -> Result<AdmittedRequest, ApiError> {
        let limits = &settings.limits;
        let Some(pattern) = parts.extensions.get::<MatchedPath>() else {
            // No route matches, which is not secret; the fallback answers 404.
            return Ok(AdmittedRequest {
                principal: None,
                kind: RequestKind::Plain,
                body_limits: plain_body_limits(limits, &parts.headers),
            });
        };
        let (pattern, method) = (pattern.as_str(), &parts.method);
        let Some(access) = route_rules::required_access(pattern, method) else {
            tracing::error!(pattern, "route has no access rule; denying the request");
            return Err(ApiError::forbidden("no_rule", "access to this route is denied"));
        };
        let kind = route_rules::request_kind(pattern, method);
        let body_limits = match kind {
            RequestKind::Upload => BodyLimits {
                bytes_max: limits.upload_bytes_max,
                time_max: Duration::from_millis(limits.upload_ms_max),
                json: None,
                name: "upload_bytes_max",
            },
            RequestKind::Chat => BodyLimits {
                bytes_max: limits.chat_body_bytes_max,
                time_max: Duration::from_millis(limits.upload_ms_max),
                json: Some(JsonLimits::of(limits)),
                name: "chat_body_bytes_max",
            },
            RequestKind::Plain | RequestKind::NewTurn => plain_body_limits(limits, &parts.headers),
        };
        check_content_length(&parts.headers, body_limits)?;
        let credential = credential_of(parts)?;
        let RouteAccess::Scope(scope) = access else {
            // Without a key a body may not be large.
            let bytes_max = body_limits.bytes_max.min(LARGE_BYTES);
            let body_limits = BodyLimits { bytes_max, ..body_limits };
            check_content_length(&parts.headers, body_limits)?;
            return Ok(AdmittedRequest { principal: None, kind, body_limits });
        };
        let principal = self.principal(credential, parts, page).await?;
        // After the key check: a request without a key learns nothing else.
        if !route_rules::is_read(method) {
            check_csrf_intent(&parts.headers, principal.signed_in_by)?;
        }
        principal.require(scope)?;
        if matches!(kind, RequestKind::NewTurn | RequestKind::Chat) {
            settings.check_turn_quota(&principal)?;
        }
        Ok(AdmittedRequest { principal: Some(principal), kind, body_limits })
    }

    /// True if a header of the request has a valid key. A ticket does not count: it is part of an address.
    async fn has_valid_key(&self, parts: &Parts) -> bool {
        match (self.0.auth, credential_of(parts)) {
            (AuthMode::Keys, Ok(ShownCredential::Key(text))) => {
                self.0.key_ring.principal(&text).await.is_ok()
            }
            _ => false,
        }
    }

    /// Principal of a request, for every kind of credential.
    async fn principal(
        &self,
        credential: ShownCredential,
        parts: &Parts,
        page: &RequestOrigin,
    ) -> Result<Principal, ApiError> {
        if self.0.auth == AuthMode::Off {
            return Ok(Principal::local(LOCAL_USER));
        }
        let proxied = match &self.0.proxy {
            Some(proxy) => proxy.person(parts)?.map(|person| (proxy, person)),
            None => None,
        };
        let Some((proxy, person)) = proxied else { return self.principal_of(credential).await };
        if !matches!(credential, ShownCredential::Nothing) {
            let principal = self.principal_of(credential).await?;
            let is_same = principal.user == person.name;
            return if is_same { Ok(principal) } else { Err(proxy_user::identities_differ()) };
        }
        if *page != RequestOrigin::Own {
            return Err(proxy_user::needs_key_of_its_own());
        }
        let row = self.0.key_ring.signed_in(&person.name, person.is_admin, proxy.creates()).await?;
        key_ring::principal_of_person(person.name, row, proxy.person_scopes(), SignInWay::Proxy)
    }

    /// Principal of a key or a ticket.
    async fn principal_of(&self, credential: ShownCredential) -> Result<Principal, ApiError> {
        match credential {
            ShownCredential::Nothing => Err(ApiError::unauthenticated()),
            ShownCredential::Key(text) => self.0.key_ring.principal(&text).await,
            ShownCredential::Ticket(ticket) => match self.0.tickets.take(&ticket) {
                Some(TicketOwner::Key(key_id)) => self.0.key_ring.principal_of(&key_id).await,
                Some(TicketOwner::Person(user)) => {
                    let row = self.0.key_ring.signed_in(&user, None, false).await?;
                    let given = self.0.proxy.as_ref().map(TrustedProxy::person_scopes).unwrap_or_default();
                    key_ring::principal_of_person(user, row, given, SignInWay::Proxy)
                }
                Some(TicketOwner::Nobody) | None => Err(ApiError::new(
                    StatusCode::UNAUTHORIZED,
                    "ticket",
                    "ticket is unknown, used or expired",
                )
                .remedy("request a new one (POST /v1/tickets); each is valid once, for a minute")),
            },
        }
    }
}

/// Owner of a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TicketOwner {
    /// The anonymous user of a server without keys.
    Nobody,
    Key(String),
    /// A person whom the proxy has signed in.
    Person(String),
}

/// Beginning of the name under which the streams of a person without a key are known. No key has such an id.
const LIVE_PERSON: &str = "person ";

fn live_name_of(user: &str) -> String {
    format!("{LIVE_PERSON}{user}")
}

/// Name under which the streams of a principal are known; `None` on a server without keys.
fn live_name(principal: &Principal) -> Option<String> {
    match (&principal.key_id, principal.signed_in_by) {
        (Some(key_id), _) => Some(key_id.clone()),
        (None, SignInWay::Proxy) => Some(live_name_of(&principal.user)),
        (None, _) => None,
    }
}

fn plain_body_limits(limits: &ServerLimits, headers: &HeaderMap) -> BodyLimits {
    BodyLimits {
        bytes_max: limits.body_bytes_max.into(),
        time_max: Duration::from_millis(limits.body_ms_max),
        json: is_json(headers).then(|| JsonLimits::of(limits)),
        name: "body_bytes_max",
    }
}

/// Lets a large body wait until it may be read. JSON that no handler spools gets its memory here: it comes within seconds.
async fn admit_body(memory: RequestMemory, kind: RequestKind, bytes: u64) -> Result<(), ApiError> {
    memory.admit(bytes).await?;
    match kind {
        RequestKind::Plain | RequestKind::NewTurn => {
            memory.reserve(bytes, bytes.saturating_mul(JSON_MEMORY_PER_BYTE)).await
        }
        RequestKind::Chat | RequestKind::Upload => Ok(()),
    }
}

/// `None` if the request does not declare its length.
fn body_length(body: &DrainedBody) -> Option<u64> {
    if body.is_end_stream() { Some(0) } else { body.size_hint().exact() }
}

/// Refuses a declared length over the limit before anything is read.
fn check_content_length(headers: &HeaderMap, body_limits: BodyLimits) -> Result<(), ApiError> {
    let length = headers
        .get(http::header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    match length {
        Some(length) if length > body_limits.bytes_max => Err(body::body_too_large(body_limits)),
        _ => Ok(()),
    }
}

/// The layer.
async fn admit_request(State(request_guard): State<RequestGuard>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let (parts, body) = request.into_parts();
    let body = DrainedBody::new(body, &parts);
    let request_id = request_id(&parts.headers);
    let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
    let settings = request_guard.settings();
    let admission = match settings.allowed_sites.admit(&parts, KeyProof::Absent) {
        Err(_) if request_guard.has_valid_key(&parts).await => {
            settings.allowed_sites.admit(&parts, KeyProof::Valid)
        }
        admission => admission,
    };
    let (mut response, user) = match admission {
        Err(error) => (error.into_response(), None),
        Ok(SiteAdmission::Preflight(page)) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            page.preflight_headers(response.headers_mut());
            (response, None)
        }
        Ok(SiteAdmission::Request(page)) => {
            let (mut response, user) = match request_guard.admit(&settings, &parts, &page).await {
                Err(error) => (error.into_response(), None),
                Ok(admitted) => {
                    let user = admitted.principal.as_ref().map(|principal| principal.user.clone());
                    (request_guard.run_handler(&settings, admitted, parts, body, next).await, user)
                }
            };
            page.headers(response.headers_mut());
            (response, user)
        }
    };
    set_default_headers(response.headers_mut(), &request_id);
    // The path alone: the query may contain a ticket.
    tracing::info!(
        target: "throughline::access",
        %method, %path, status = response.status().as_u16(), ms = began.elapsed().as_millis() as u64,
        user = user.as_deref().unwrap_or("-"), request_id = request_id.to_str().unwrap_or("-"),
        "answered"
    );
    response
}

impl RequestGuard {
    /// The handler's answer, within the bounds of its body and as long as the key is good.
    async fn run_handler(
        &self,
        settings: &RequestGuardSettings,
        admitted: AdmittedRequest,
        mut parts: Parts,
        body: DrainedBody,
        next: Next,
    ) -> Response {
        let AdmittedRequest { principal, kind, body_limits } = admitted;
        let memory = principal.as_ref().map(|who| settings.large_bodies.request(who.quota_key()));
        let mut admission = None;
        if let Some(memory) = &memory {
            let length = body_length(&body);
            let admitted = admit_body(memory.clone(), kind, length.unwrap_or(body_limits.bytes_max)).boxed();
            match length {
                // A body without a declared length is admitted when it turns out to be large.
                None => admission = Some(BodyAdmission { admitted: Some(admitted), memory: memory.clone() }),
                Some(_) => {
                    if let Err(error) = admitted.await {
                        return error.into_response();
                    }
                }
            }
        }
        let connection = parts.extensions.get::<ConnectionInfo>().cloned();
        let live_name = principal.as_ref().and_then(live_name);
        if let Some(principal) = principal {
            parts.extensions.insert(principal);
        }
        parts.extensions.insert(self.clone());
        if let Some(memory) = &memory {
            parts.extensions.insert(memory.clone());
        }
        let (body, body_status) = if body.is_end_stream() {
            (Body::new(body), None)
        } else {
            let (limited_body, body_status) = LimitedBody::new(body, body_limits, admission);
            (Body::new(limited_body), Some(body_status))
        };
        let response = next.run(Request::from_parts(parts, body)).await;
        if let Some(error) = body_status.and_then(|body_status| body_status.error(body_limits)) {
            let mut response = error.into_response();
            // The rest of the body is read only within bounds, so the connection is closed.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            return response;
        }
        let response = match memory {
            Some(memory) => response.map(|body| memory.held_by(body)),
            None => response,
        };
        match live_name {
            None => response,
            Some(name) => self.track_stream(response, &name, connection),
        }
    }

    /// Registers a response that continues after its head, so that it ends with its key.
    fn track_stream(&self, response: Response, key_id: &str, connection: Option<ConnectionInfo>) -> Response {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            if let Some(connection) = connection {
                self.0.live_streams.add(key_id, CloseMode::CloseFrame, &connection.canceller);
            }
            return response;
        }
        let is_stream = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if !is_stream {
            return response;
        }
        let canceller = Arc::default();
        self.0.live_streams.add(key_id, CloseMode::Abort, &canceller);
        response.map(|body| Body::new(RevocableBody::new(body, canceller)))
    }
}

/// A proxy's id, if it is a plain one, else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let plain = |value: &&HeaderValue| {
        value.len() <= REQUEST_ID_BYTES_MAX
            && !value.is_empty()
            && value.as_bytes().iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
    };
    match headers.get(&REQUEST_ID).filter(plain) {
        Some(value) => value.clone(),
        None => HeaderValue::from_str(&uuid::Uuid::now_v7().simple().to_string())
            .unwrap_or_else(|_| HeaderValue::from_static("-")),
    }
}

/// Sets headers of every response, unless its handler set them: a downloaded file has a different policy.
fn set_default_headers(headers: &mut HeaderMap, request_id: &HeaderValue) {
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        (RESOURCE_POLICY, "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    // Private responses must not be cached; assets of the page set another value.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(REQUEST_ID, request_id.clone());
}
