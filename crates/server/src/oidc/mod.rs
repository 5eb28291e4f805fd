//! Sign-in at an OpenID Connect provider: authorization code with PKCE.
//!
//! No session is stored: after sign-in the browser gets a key, as from a sign-in link of `throughline serve`.
//! The state of an unfinished sign-in is in a cookie of its browser.

mod fetch;
mod login_cookie;
mod person;

use crate::error::ApiError;
use crate::principal::ProviderPerson;
use chrono::{DateTime, Utc};
use fetch::ProviderHttp;
use http::StatusCode;
pub(crate) use login_cookie::LOGIN_TTL;
use login_cookie::{LoginState, LoginStates};
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreClientAuthMethod, CoreErrorResponseType, CoreGenderClaim,
    CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreResponseType,
    CoreRevocableToken, CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AdditionalClaims, AuthType, AuthenticationFlow, AuthorizationCode, ClaimsVerificationError, Client,
    ClientId, ClientSecret, CsrfToken, EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet,
    IdTokenClaims, IdTokenFields, IssuerUrl, Nonce, PkceCodeChallenge, PkceCodeVerifier,
    ProviderMetadataWithLogout, RedirectUrl, RequestTokenError, Scope, StandardErrorResponse,
    StandardTokenResponse, TokenResponse,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use throughline::config::{OidcSettings, PersonScope};
use throughline_wire::display_escape;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;
use url::Url;

/// Path to which the provider sends the browser back.
pub(crate) const CALLBACK_PATH: &str = "/sign-in/provider/callback";
/// Longest time for the provider's answers to one step of a sign-in.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which a provider that did not answer is not requested again.
const UNREACHABLE_FOR: Duration = Duration::from_secs(2);
/// Difference of the clocks of provider and server that is forgiven.
const CLOCK_LEEWAY: Duration = Duration::from_secs(60);
/// Number of sign-ins that are finished in parallel; further ones wait.
const EXCHANGES_MAX: usize = 16;
/// Maximum number of characters shown of the provider's error message.
const PROVIDER_WORDS_MAX: usize = 300;

/// All claims of an ID token except those that the crate reads.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct OtherClaims {
    #[serde(flatten)]
    all: Map<String, Value>,
}

impl AdditionalClaims for OtherClaims {}

type OidcTokenFields = IdTokenFields<
    OtherClaims,
    EmptyExtraTokenFields,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;
type OidcTokens = StandardTokenResponse<OidcTokenFields, CoreTokenType>;
type OidcClaims = IdTokenClaims<OtherClaims, CoreGenderClaim>;
type OidcClient = Client<
    OtherClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    OidcTokens,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// The provider of the configuration.
pub(crate) struct OidcProvider {
    settings: OidcSettings,
    http: ProviderHttp,
    discovered: Mutex<Discovery>,
    states: LoginStates,
    exchanges: Semaphore,
}

/// Knowledge of the provider.
#[derive(Default)]
struct Discovery {
    metadata: Option<Arc<ProviderMetadataWithLogout>>,
    failed: Option<(Instant, ApiError)>,
}

/// A sign-in that has begun.
pub(crate) struct BegunLogin {
    /// Address at the provider.
    pub(crate) url: Url,
    /// Value of the browser's cookie.
    pub(crate) cookie: String,
}

/// A sign-in that the provider has confirmed.
pub(crate) struct FinishedLogin {
    pub(crate) person: ProviderPerson,
    /// Path of the page that the browser came from.
    pub(crate) return_to: String,
}

/// Query that the provider adds when it sends the browser back.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct CallbackQuery {
    code: Option<String>,
    state: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

impl OidcProvider {
    /// Creates the provider without a request to it: it need not be reachable when the server starts.
    pub(crate) fn new(settings: OidcSettings) -> Self {
        Self {
            settings,
            http: ProviderHttp::new(PROVIDER_TIMEOUT),
            discovered: Mutex::default(),
            states: LoginStates::new(),
            exchanges: Semaphore::new(EXCHANGES_MAX),
        }
    }

    /// Forgets sign-ins that took too long.
    pub(crate) fn evict_expired(&self) {
        self.states.evict_expired();
    }

    /// Name on the button.
    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    /// True if unknown people are added as users.
    pub(crate) fn creates(&self) -> bool {
        self.settings.create
    }

    /// Scopes of people who are no admins.
    pub(crate) fn person_scopes(&self) -> &[PersonScope] {
        &self.settings.person_scopes
    }

    /// Duration of a sign-in.
    pub(crate) fn session(&self) -> Duration {
        Duration::from_secs(u64::from(self.settings.session_hours) * 60 * 60)
    }

    /// Begins a sign-in for a browser that reached this server at `base`, and continues at the path
    /// `return_to`.
    pub(crate) async fn begin(&self, base: &str, return_to: &str) -> Result<BegunLogin, ApiError> {
        let client = self.client(&*self.metadata().await?, base)?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = AuthenticationFlow::<CoreResponseType>::AuthorizationCode;
        let request = client.authorize_url(flow, CsrfToken::new_random, Nonce::new_random);
        let scopes = self.settings.scopes.iter().filter(|scope| *scope != "openid").cloned().map(Scope::new);
        let (url, state, nonce) = request.add_scopes(scopes).set_pkce_challenge(challenge).url();
        let cookie = self.states.seal(&LoginState {
            state: state.into_secret(),
            nonce: nonce.secret().clone(),
            verifier: verifier.into_secret(),
            return_to: return_to.to_owned(),
        })?;
        Ok(BegunLogin { url, cookie })
    }

    /// Finishes the sign-in that the browser with this cookie has begun.
    pub(crate) async fn finish(
        &self,
        base: &str,
        query: CallbackQuery,
        cookie: Option<&str>,
    ) -> Result<FinishedLogin, ApiError> {
        let shown = query.state.as_deref().unwrap_or_default();
        let login = cookie.and_then(|cookie| self.states.open(cookie, shown)).ok_or_else(|| {
            ApiError::bad_request(
                "sign_in_state",
                "this sign-in was started in another browser, was already completed, or took too long",
            )
            .remedy("sign in again from this server's page, with cookies enabled")
        })?;
        if let Some(error) = query.error {
            return Err(refused_by_provider(&error, query.error_description.as_deref()));
        }
        let code = query
            .code
            .filter(|code| !code.is_empty())
            .ok_or_else(|| self.bad_answer("it sent neither a code nor an error"))?;
        let _permit = self.exchanges.acquire().await.map_err(ApiError::internal)?;
        let metadata = self.metadata().await?;
        let tokens = self.exchange(&self.client(&metadata, base)?, code, login.verifier).await?;
        let nonce = Nonce::new(login.nonce);
        let claims = match self.verified_claims(&metadata, base, &tokens, &nonce)? {
            Ok(claims) => claims,
            // The provider may have rotated its keys. They are fetched again once.
            Err(ClaimsVerificationError::SignatureVerification(_)) => {
                let metadata = self.discover(&mut *self.discovered.lock().await).await?;
                self.verified_claims(&metadata, base, &tokens, &nonce)?.map_err(|why| self.bad_token(&why))?
            }
            Err(why) => return Err(self.bad_token(&why)),
        };
        let claims = serde_json::to_value(claims).map_err(ApiError::internal)?;
        let person = person::person_of(&self.settings, &claims)?;
        Ok(FinishedLogin { person, return_to: login.return_to })
    }

    /// Address at which the provider ends its own session, if it has one.
    pub(crate) async fn end_session_url(&self, base: &str) -> Option<Url> {
        let metadata = self.metadata().await.ok()?;
        let endpoint = metadata.additional_metadata().end_session_endpoint.as_ref()?;
        let mut url = endpoint.url().clone();
        url.query_pairs_mut()
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("post_logout_redirect_uri", &format!("{base}/"));
        Some(url)
    }

    /// The provider's discovery document, fetched once.
    async fn metadata(&self) -> Result<Arc<ProviderMetadataWithLogout>, ApiError> {
        let mut discovered = self.discovered.lock().await;
        if let Some(metadata) = &discovered.metadata {
            return Ok(metadata.clone());
        }
        match &discovered.failed {
            Some((at, error)) if at.elapsed() < UNREACHABLE_FOR => Err(error.clone()),
            _ => self.discover(&mut discovered).await,
        }
    }

    async fn discover(
        &self,
        discovered: &mut Discovery,
    ) -> Result<Arc<ProviderMetadataWithLogout>, ApiError> {
        let issuer = IssuerUrl::new(self.settings.issuer.clone()).map_err(ApiError::internal)?;
        let asked = ProviderMetadataWithLogout::discover_async(issuer, &self.http);
        let error = match tokio::time::timeout(PROVIDER_TIMEOUT, asked).await {
            Ok(Ok(metadata)) => {
                let metadata = Arc::new(metadata);
                *discovered = Discovery { metadata: Some(metadata.clone()), failed: None };
                return Ok(metadata);
            }
            Ok(Err(error)) => chain(&error),
            Err(_) => format!("it did not answer within {} s", PROVIDER_TIMEOUT.as_secs()),
        };
        tracing::warn!(issuer = self.settings.issuer, error, "cannot use the sign-in provider");
        let error = self.unreachable();
        discovered.failed = Some((Instant::now(), error.clone()));
        Err(error)
    }

    fn client(&self, metadata: &ProviderMetadataWithLogout, base: &str) -> Result<OidcClient, ApiError> {
        let redirect = RedirectUrl::new(format!("{base}{CALLBACK_PATH}")).map_err(ApiError::internal)?;
        let secret = self.settings.client_secret.as_ref();
        let secret = secret.map(|secret| ClientSecret::new(secret.reveal().to_owned()));
        let id = ClientId::new(self.settings.client_id.clone());
        let client =
            OidcClient::from_provider_metadata(metadata.clone(), id, secret).set_redirect_uri(redirect);
        // Basic is the default of the specification.
        let methods = metadata.token_endpoint_auth_methods_supported();
        let takes_basic =
            methods.is_none_or(|methods| methods.contains(&CoreClientAuthMethod::ClientSecretBasic));
        Ok(client.set_auth_type(if takes_basic { AuthType::BasicAuth } else { AuthType::RequestBody }))
    }

    async fn exchange(
        &self,
        client: &OidcClient,
        code: String,
        verifier: String,
    ) -> Result<OidcTokens, ApiError> {
        let request = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|_| self.bad_answer("it has no token endpoint"))?
            .set_pkce_verifier(PkceCodeVerifier::new(verifier));
        let answer = tokio::time::timeout(PROVIDER_TIMEOUT, request.request_async(&self.http)).await;
        match answer {
            Ok(Ok(tokens)) => Ok(tokens),
            Ok(Err(RequestTokenError::ServerResponse(refusal))) => {
                let description = refusal.error_description().map(String::as_str);
                Err(refused_by_provider(refusal.error().as_ref(), description))
            }
            Ok(Err(RequestTokenError::Request(error))) => {
                tracing::warn!(%error, "cannot reach the sign-in provider");
                Err(self.unreachable())
            }
            Ok(Err(error)) => {
                tracing::warn!(error = chain(&error), "invalid token response from the sign-in provider");
                Err(self.bad_answer("its token response cannot be parsed"))
            }
            Err(_) => Err(self.unreachable()),
        }
    }

    /// Claims of the ID token, if issuer, audience, signature, times and nonce are right.
    fn verified_claims(
        &self,
        metadata: &ProviderMetadataWithLogout,
        base: &str,
        tokens: &OidcTokens,
        nonce: &Nonce,
    ) -> Result<Result<OidcClaims, ClaimsVerificationError>, ApiError> {
        let client = self.client(metadata, base)?;
        let id_token = tokens
            .id_token()
            .ok_or_else(|| self.bad_answer("it sent no ID token; it may support OAuth 2.0 only"))?;
        let now = jiff::Timestamp::now().as_millisecond();
        let leeway = CLOCK_LEEWAY.as_millis() as i64;
        let at = |ms: i64| DateTime::<Utc>::from_timestamp_millis(ms).unwrap_or_default();
        let verifier = client
            .id_token_verifier()
            .set_time_fn(move || at(now - leeway))
            .set_issue_time_verifier_fn(move |issued| {
                if issued <= at(now + leeway) { Ok(()) } else { Err("issued in the future".to_owned()) }
            });
        Ok(id_token.claims(&verifier, nonce).cloned())
    }

    fn bad_token(&self, why: &ClaimsVerificationError) -> ApiError {
        tracing::warn!(%why, "rejected an ID token");
        let why = match why {
            ClaimsVerificationError::Expired(_) => "it has expired or is not valid yet",
            ClaimsVerificationError::InvalidAudience(_) => "it was issued for another client",
            ClaimsVerificationError::InvalidIssuer(_) => "it was issued by another provider",
            ClaimsVerificationError::InvalidNonce(_) => "it belongs to another sign-in",
            ClaimsVerificationError::SignatureVerification(_) => {
                "its signature does not match the provider's keys"
            }
            _ => "it cannot be read",
        };
        ApiError::new(
            StatusCode::UNAUTHORIZED,
            "id_token",
            format!("{} sent an invalid ID token: {why}", display_escape::escape(self.name())),
        )
        .remedy("sign in again; if it still fails, an admin must check the clock, `issuer` and `client_id`")
    }

    fn bad_answer(&self, why: &str) -> ApiError {
        let message = format!(
            "{} does not respond like an OpenID Connect provider: \
         {why}",
            display_escape::escape(self.name())
        );
        ApiError::new(StatusCode::BAD_GATEWAY, "provider_answer", message).remedy(
            "an admin must check [server.oidc] against the provider's settings; see the server's log for details",
        )
    }

    fn unreachable(&self) -> ApiError {
        let message = format!("{} cannot be reached", display_escape::escape(self.name()));
        ApiError::new(StatusCode::BAD_GATEWAY, "provider_unreachable", message)
            .remedy("try again in a moment, or sign in with a key; see the server's log for details")
    }
}

/// Error with the provider's message, in which invisible characters are spelled out.
fn refused_by_provider(error: &str, description: Option<&str>) -> ApiError {
    let words = description.unwrap_or(error);
    let words: String = display_escape::escape(words).chars().take(PROVIDER_WORDS_MAX).collect();
    let message = format!("the provider has refused the sign-in: {words}");
    ApiError::new(StatusCode::UNAUTHORIZED, "provider_refused", message)
        .remedy("sign in again, with an account that may use this server")
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
