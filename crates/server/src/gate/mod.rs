//! What every request passes before a handler sees it: whose name it came under, which page sent it, whose key it shows and
//! what that may do; and what every answer carries. R: R4
//!
//! One layer around all routes. Nothing is open because somebody forgot to close it: a route without a rule is refused.

mod body;
mod first;
mod key;
mod keys;
mod live;
mod rule;
mod site;
mod ticket;

pub use first::{FirstKey, FirstKeyError};
pub use key::{ApiKey, NoRandomness};
pub use keys::{Keys, LOCAL_USER, MintError, NewKey, Pass};

use crate::error::ApiError;
use crate::media_type;
use crate::net::Connection;
use crate::principal::{Principal, Scopes};
use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
pub(crate) use body::drain;
use body::{Bounded, Bounds};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use keys::KeyRing;
use live::{Ends, Live, Stoppable};
use rule::{Kind, Needs};
use site::{GoodKey, Sites, Visit};
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use throughline::config::{Auth, ServerLimits, ServerSettings};
use ticket::{NoTicket, Tickets};

/// Raw HTML is never rendered, and nothing is loaded from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    media-src 'self' blob:; worker-src 'self'; connect-src 'self'; font-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const API_KEY: HeaderName = HeaderName::from_static("api-key");
/// The longest id of a request that is taken over from a proxy.
const REQUEST_ID_BYTES_MAX: usize = 64;
/// How long a link that signs a browser in can be used; it dies with the process, too.
const LINK_LASTS: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a browser stays signed in.
const BROWSER_KEY_LASTS: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// What the owner of a browser's key sees in the list of keys.
const BROWSER: &str = "browser";
/// How often keys with open streams are looked at again, so that one that is revoked or expires closes them within a second.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The gate. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    auth: Auth,
    ring: KeyRing,
    tickets: Tickets,
    /// Tickets of links that sign a browser in.
    links: Tickets,
    live: Live,
    /// What a new configuration can change.
    settings: RwLock<Arc<Changeable>>,
}

struct Changeable {
    sites: Sites,
    limits: ServerLimits,
    new_turns: DefaultKeyedRateLimiter<String>,
}

impl Changeable {
    fn of(settings: &ServerSettings) -> Self {
        // The configuration refuses 0.
        let per_minute = NonZeroU32::new(settings.limits.turns_per_minute_max).unwrap_or(NonZeroU32::MIN);
        Self {
            sites: Sites::of(settings),
            limits: settings.limits,
            new_turns: RateLimiter::keyed(Quota::per_minute(per_minute)),
        }
    }
}

impl Changeable {
    fn one_more_turn(&self, principal: &Principal) -> Result<(), ApiError> {
        let Err(until) = self.new_turns.check_key(&principal.counted_as().to_owned()) else { return Ok(()) };
        let now = governor::clock::Clock::now(&governor::clock::DefaultClock::default());
        let message = format!("more than {} new turns in a minute", self.limits.turns_per_minute_max);
        Err(ApiError::too_many("turns_per_minute_max", message, until.wait_time_from(now).as_secs() + 1))
    }
}

/// What a request was found to be.
struct Admitted {
    principal: Option<Principal>,
    bounds: Bounds,
}

impl Gate {
    /// A gate for these settings and keys.
    pub fn new(settings: &ServerSettings, keys: Arc<dyn Keys>) -> Self {
        Self(Arc::new(Inner {
            auth: settings.auth,
            ring: KeyRing::new(keys),
            tickets: Tickets::new(),
            links: Tickets::new(),
            live: Live::default(),
            settings: RwLock::new(Arc::new(Changeable::of(settings))),
        }))
    }

    /// These routes behind the gate.
    pub fn around(&self, routes: Router) -> Router {
        routes.layer(middleware::from_fn_with_state(self.clone(), pass))
    }

    /// Takes names, pages and limits of a new configuration. Who may come in at all is decided at the start.
    pub fn reload(&self, settings: &ServerSettings) {
        let new = Arc::new(Changeable::of(settings));
        *self.0.settings.write().unwrap_or_else(PoisonError::into_inner) = new;
    }

    /// Counts a turn that begins without a request of its own: over a WebSocket.
    ///
    /// # Errors
    /// 429: there have been too many within a minute.
    pub fn one_more_turn(&self, principal: &Principal) -> Result<(), ApiError> {
        self.settings().one_more_turn(principal)
    }

    /// A ticket in place of the key of this request, for what cannot send one.
    ///
    /// # Errors
    /// 429: too many are open.
    pub fn ticket(&self, principal: &Principal) -> Result<(String, Duration), ApiError> {
        let lasts = Duration::from_millis(self.settings().limits.ticket_ms);
        match self.0.tickets.issue(principal.key_id.clone(), lasts) {
            Ok(ticket) => Ok((ticket, lasts)),
            Err(NoTicket::TooMany) => {
                Err(ApiError::too_many("tickets_open", "too many tickets are open", lasts.as_secs().max(1)))
            }
            Err(NoTicket::NoRandomness) => Err(ApiError::internal(NoRandomness)),
        }
    }

    /// What stands behind `#sign-in=` of a link that signs one browser in, for whoever runs this server and sees its terminal.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn sign_in_link(&self) -> Result<String, NoRandomness> {
        self.0.links.issue(None, LINK_LASTS).map_err(|_| NoRandomness)
    }

    /// A key for the browser that was given such a link, which is used up by that.
    ///
    /// # Errors
    /// 401: there is no such link, or it was used, or is too old. The store.
    pub async fn sign_in(&self, ticket: &str) -> Result<(ApiKey, Pass), ApiError> {
        if self.0.links.take(ticket).is_none() {
            return Err(ApiError::new(
                StatusCode::UNAUTHORIZED,
                "sign_in",
                "there is no such link, or it was used, or is too old",
            )
            .remedy(
                "each start of `throughline serve` prints another one; `throughline keys create` makes a key",
            ));
        }
        let expires_at = jiff::Timestamp::now().as_millisecond() + BROWSER_KEY_LASTS.as_millis() as i64;
        let new = NewKey { name: BROWSER.to_owned(), scopes: Scopes::all(), expires_at: Some(expires_at) };
        self.mint(LOCAL_USER, new).await.map_err(ApiError::internal)
    }

    /// Makes a key.
    ///
    /// # Errors
    /// As [`MintError`] says.
    pub async fn mint(&self, user: &str, new: NewKey) -> Result<(ApiKey, Pass), MintError> {
        self.0.ring.mint(user, new).await
    }

    /// Makes a key worthless, and ends its streams and sockets. `false`: this user has no such key.
    ///
    /// # Errors
    /// The store.
    pub async fn revoke(&self, user: &str, key_id: &str) -> Result<bool, ApiError> {
        let revoked = self.0.ring.revoke(user, key_id).await?;
        if revoked {
            self.0.live.end(key_id);
        }
        Ok(revoked)
    }

    /// The keys of a user.
    ///
    /// # Errors
    /// The store.
    pub async fn keys(&self, user: &str) -> Result<Vec<Pass>, ApiError> {
        self.0.ring.of(user).await
    }

    /// Looks at the keys of open streams for ever: those that expired, or were revoked by another program, end theirs.
    pub async fn tend(&self) {
        let mut every = tokio::time::interval(LOOK_EVERY);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            for key_id in self.0.live.keys() {
                if !self.0.ring.is_still_good(&key_id).await {
                    self.0.live.end(&key_id);
                }
            }
            self.0.ring.tidy();
            self.0.tickets.tidy();
            self.0.links.tidy();
            self.settings().new_turns.retain_recent();
        }
    }

    fn settings(&self) -> Arc<Changeable> {
        self.0.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Everything that is asked of a request, the cheapest first.
    async fn admit(&self, settings: &Changeable, parts: &Parts) -> Result<Admitted, ApiError> {
        let limits = &settings.limits;
        let Some(pattern) = parts.extensions.get::<MatchedPath>() else {
            // Nothing is there, which is no secret; the fallback says so.
            return Ok(Admitted { principal: None, bounds: plain_bounds(limits, &parts.headers) });
        };
        let (pattern, method) = (pattern.as_str(), &parts.method);
        let Some(needs) = rule::needs(pattern, method) else {
            tracing::error!(pattern, "a route has no rule, so nobody may use it");
            return Err(ApiError::forbidden("no_rule", "nobody may use this"));
        };
        let kind = rule::kind(pattern, method);
        let bounds = match kind {
            Kind::Upload => Bounds {
                bytes_max: limits.upload_bytes_max,
                time_max: Duration::from_millis(limits.upload_ms_max),
                depth_max: None,
                name: "upload_bytes_max",
            },
            Kind::Chat => Bounds {
                bytes_max: limits.chat_body_bytes_max,
                time_max: Duration::from_millis(limits.upload_ms_max),
                depth_max: Some(limits.json_depth_max),
                name: "chat_body_bytes_max",
            },
            Kind::Plain | Kind::NewTurn => plain_bounds(limits, &parts.headers),
        };
        check_length(&parts.headers, bounds)?;
        let shown = shown(parts)?;
        let Needs::Scope(scope) = needs else { return Ok(Admitted { principal: None, bounds }) };
        let principal = self.principal(shown).await?;
        // Behind the key: who has none is told that, and nothing else.
        if !rule::is_read(method) {
            check_intent(&parts.headers)?;
        }
        principal.need(scope)?;
        if matches!(kind, Kind::NewTurn | Kind::Chat) {
            settings.one_more_turn(&principal)?;
        }
        Ok(Admitted { principal: Some(principal), bounds })
    }

    /// Whether a request shows a key in a header that is good. A ticket is none: it stands in an address.
    async fn shows_good_key(&self, parts: &Parts) -> bool {
        match (self.0.auth, shown(parts)) {
            (Auth::Keys, Ok(Shown::Key(text))) => self.0.ring.principal(&text).await.is_ok(),
            _ => false,
        }
    }

    /// Who asks. There is one way, whatever the key came in.
    async fn principal(&self, shown: Shown) -> Result<Principal, ApiError> {
        match (self.0.auth, shown) {
            (Auth::Off, _) => Ok(Principal::local(LOCAL_USER)),
            (Auth::Keys, Shown::Nothing) => Err(ApiError::unauthenticated()),
            (Auth::Keys, Shown::Key(text)) => self.0.ring.principal(&text).await,
            (Auth::Keys, Shown::Ticket(ticket)) => match self.0.tickets.take(&ticket) {
                Some(Some(key_id)) => self.0.ring.principal_of(&key_id).await,
                Some(None) | None => Err(ApiError::new(
                    StatusCode::UNAUTHORIZED,
                    "ticket",
                    "there is no such ticket, or it was used, or is too old",
                )
                .remedy("POST /v1/tickets gives another one; each is good once, for a minute")),
            },
        }
    }
}

/// What a request shows of who it is.
enum Shown {
    Nothing,
    Key(String),
    Ticket(String),
}

/// The one place that takes a key out of a request.
fn shown(parts: &Parts) -> Result<Shown, ApiError> {
    let ambiguous = || {
        ApiError::new(
            StatusCode::UNAUTHORIZED,
            "several_keys",
            "more than one key was shown, and they differ",
        )
        .remedy("send one `Authorization: Bearer <key>`")
    };
    let mut found: Option<String> = None;
    for name in [AUTHORIZATION, X_API_KEY, API_KEY] {
        for value in parts.headers.get_all(&name) {
            let text = value.to_str().map_err(|_| ApiError::unauthenticated())?;
            let key = match name == AUTHORIZATION {
                true => bearer(text).ok_or_else(ApiError::unauthenticated)?,
                false => text.trim(),
            };
            match &found {
                Some(other) if other != key => return Err(ambiguous()),
                _ => found = Some(key.to_owned()),
            }
        }
    }
    if let Some(key) = found {
        return Ok(Shown::Key(key));
    }
    // In the address only where nothing else can be sent, since addresses are logged.
    let ticket = parts
        .uri
        .query()
        .filter(|_| rule::is_read(&parts.method))
        .and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("ticket=")));
    Ok(ticket.map_or(Shown::Nothing, |ticket| Shown::Ticket(ticket.to_owned())))
}

fn bearer(text: &str) -> Option<&str> {
    let (scheme, key) = text.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// A form of another page can send a body, but neither of these: what changes something shows that it comes from a program.
fn check_intent(headers: &HeaderMap) -> Result<(), ApiError> {
    let has_key = [AUTHORIZATION, X_API_KEY, API_KEY].iter().any(|name| headers.contains_key(name));
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if has_key || kind == "application/json" || kind == "multipart/form-data" {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "content_type",
        "what changes something must be JSON or a form with files",
    )
    .remedy("send `Content-Type: application/json`")
    .param("Content-Type"))
}

fn plain_bounds(limits: &ServerLimits, headers: &HeaderMap) -> Bounds {
    Bounds {
        bytes_max: limits.body_bytes_max.into(),
        time_max: Duration::from_millis(limits.body_ms_max),
        depth_max: media_type::is_json(headers).then_some(limits.json_depth_max),
        name: "body_bytes_max",
    }
}

/// What says that it is too large is not read at all, whoever sends it.
fn check_length(headers: &HeaderMap, bounds: Bounds) -> Result<(), ApiError> {
    let length = headers
        .get(http::header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    match length {
        Some(length) if length > bounds.bytes_max => Err(body::too_large(bounds)),
        _ => Ok(()),
    }
}

/// The layer.
async fn pass(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let (parts, body) = request.into_parts();
    let request_id = request_id(&parts.headers);
    let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
    let settings = gate.settings();
    let visit = match settings.sites.admit(&parts, GoodKey::NotShown) {
        Err(_) if gate.shows_good_key(&parts).await => settings.sites.admit(&parts, GoodKey::Shown),
        visit => visit,
    };
    let (mut response, user) = match visit {
        Err(error) => (error.into_response(), None),
        Ok(Visit::Preflight(page)) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            page.preflight_headers(response.headers_mut());
            (response, None)
        }
        Ok(Visit::Request(page)) => {
            let (mut response, user) = match gate.admit(&settings, &parts).await {
                Err(error) => {
                    if error.status == StatusCode::PAYLOAD_TOO_LARGE {
                        drain(body, &parts.headers).await;
                    }
                    (error.into_response(), None)
                }
                Ok(admitted) => {
                    let user = admitted.principal.as_ref().map(|principal| principal.user.clone());
                    (gate.answer(admitted, parts, body, next).await, user)
                }
            };
            page.headers(response.headers_mut());
            (response, user)
        }
    };
    finish(response.headers_mut(), &request_id);
    // The path alone: what stands behind it may be a ticket.
    tracing::info!(
        target: "throughline::access",
        %method, %path, status = response.status().as_u16(), ms = began.elapsed().as_millis() as u64,
        user = user.as_deref().unwrap_or("-"), request_id = request_id.to_str().unwrap_or("-"),
        "answered"
    );
    response
}

impl Gate {
    /// The handler's answer, within the bounds of its body and as long as the key is good.
    async fn answer(&self, admitted: Admitted, mut parts: Parts, body: Body, next: Next) -> Response {
        let Admitted { principal, bounds } = admitted;
        let connection = parts.extensions.get::<Connection>().cloned();
        let key_id = principal.as_ref().and_then(|principal| principal.key_id.clone());
        if let Some(principal) = principal {
            parts.extensions.insert(principal);
        }
        parts.extensions.insert(self.clone());
        let (body, verdict) = match body.is_end_stream() {
            true => (body, None),
            false => {
                let (bounded, verdict) = Bounded::new(body, bounds);
                (Body::new(bounded), Some(verdict))
            }
        };
        let response = next.run(Request::from_parts(parts, body)).await;
        if let Some(error) = verdict.and_then(|verdict| verdict.error(bounds)) {
            let mut response = error.into_response();
            // The rest of the body is not waited for.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            return response;
        }
        match key_id {
            None => response,
            Some(key_id) => self.follow(response, &key_id, connection),
        }
    }

    /// Notes what goes on after the answer's head, so that it ends with its key.
    fn follow(&self, response: Response, key_id: &str, connection: Option<Connection>) -> Response {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            if let Some(connection) = connection {
                self.0.live.add(key_id, Ends::Saying, &connection.cut);
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
        let cut = Arc::default();
        self.0.live.add(key_id, Ends::AtOnce, &cut);
        response.map(|body| Body::new(Stoppable::new(body, cut)))
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

/// What every answer carries, unless its handler knows better: a file that is downloaded has a policy of its own.
fn finish(headers: &mut HeaderMap, request_id: &HeaderValue) {
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        (RESOURCE_POLICY, "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    // What is somebody's is kept nowhere on its way; assets of the page say otherwise for themselves.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(REQUEST_ID, request_id.clone());
}
