//! Sign-in of browsers: each gets a separate key, which expires.

use super::ticket::TicketError;
use super::{ApiKey, KeyInfo, NewApiKey, RandomnessError, RequestGuard};
use crate::error::ApiError;
#[cfg(feature = "oidc")]
use crate::oidc::OidcProvider;
#[cfg(feature = "oidc")]
use crate::principal::ProviderPerson;
use crate::principal::{LOCAL_USER, Principal, SignInWay};
use crate::stamps::now_ms;
use http::StatusCode;
#[cfg(feature = "oidc")]
use std::sync::Arc;
use std::time::Duration;
use throughline::config::PersonScope;

/// Lifetime of a link that signs a browser in. It also ends with the process.
const SIGN_IN_LINK_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// Lifetime of the link with which the provider's sign-in ends at the page.
#[cfg(feature = "oidc")]
const PROVIDER_LINK_TTL: Duration = Duration::from_secs(5 * 60);
/// Lifetime of a browser's key.
const BROWSER_KEY_TTL: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Name of a browser's key in the list of keys.
const BROWSER_KEY_NAME: &str = "browser";
/// Name of the key of a browser that was signed in at the provider.
pub(super) const PROVIDER_KEY_NAME: &str = "browser (OpenID Connect)";

/// Right that a link gives to a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SignInGrant {
    /// The first user's key, for anyone with the link.
    FirstPerson,
    /// A key of this person, for the browser that was at the provider.
    #[cfg_attr(not(feature = "oidc"), expect(dead_code, reason = "only a provider grants it"))]
    Person {
        user: String,
        session: Duration,
        /// Scopes of people who are no admins.
        given: Vec<PersonScope>,
        /// Hash of the cookie of that browser.
        browser: blake3::Hash,
    },
}

impl RequestGuard {
    /// Code after `#sign-in=` of a link that signs one browser in, for the operator at the server's terminal.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn sign_in_link(&self) -> Result<String, RandomnessError> {
        self.0.sign_in_tickets.issue(SignInGrant::FirstPerson, SIGN_IN_LINK_TTL).map_err(|_| RandomnessError)
    }

    /// A key for the browser that was given such a link, which is used up by that. `cookie`: the one that the browser got at
    /// the provider.
    ///
    /// # Errors
    /// 401: the link is unknown, used, expired, or belongs to another browser. The store cannot be read or
    /// written.
    pub async fn sign_in(&self, ticket: &str, cookie: Option<&str>) -> Result<(ApiKey, KeyInfo), ApiError> {
        let refused = || {
            ApiError::new(
                StatusCode::UNAUTHORIZED,
                "sign_in",
                "sign-in link is unknown, used or expired",
            )
            .remedy(
                "`throughline serve` prints a new one at each start; `throughline keys create` creates a key",
            )
        };
        let (user, name, session, given) = match self.0.sign_in_tickets.take(ticket).ok_or_else(refused)? {
            SignInGrant::FirstPerson => {
                (LOCAL_USER.to_owned(), BROWSER_KEY_NAME, BROWSER_KEY_TTL, Vec::new())
            }
            // A sign-in link of another person would sign this browser in as them.
            SignInGrant::Person { browser, .. }
                if cookie.map(|cookie| blake3::hash(cookie.as_bytes())) != Some(browser) =>
            {
                return Err(refused());
            }
            SignInGrant::Person { user, session, given, .. } => (user, PROVIDER_KEY_NAME, session, given),
        };
        let row = self.0.key_ring.signed_in(&user, None, false).await?;
        let scopes =
            super::key_ring::principal_of_person(user.clone(), row, &given, SignInWay::Provider)?.scopes;
        let now = now_ms();
        let expires_at = now + session.as_millis() as i64;
        let new =
            NewApiKey { name: name.to_owned(), scopes, expires_at: Some(expires_at), ..NewApiKey::default() };
        self.0.key_ring.mint(&user, new, now).await.map_err(ApiError::internal)
    }

    /// Revokes the key of a browser session. A key that was entered by hand is not revoked. Returns whether a
    /// session ended.
    ///
    /// # Errors
    /// The store cannot be written.
    pub(crate) async fn sign_out(&self, principal: &Principal) -> Result<bool, ApiError> {
        let Some(key_id) = &principal.key_id else { return Ok(false) };
        let key = self.key(key_id).await?;
        if !key.is_some_and(|key| [BROWSER_KEY_NAME, PROVIDER_KEY_NAME].contains(&key.name.as_str())) {
            return Ok(false);
        }
        self.revoke(&principal.user, key_id).await
    }

    /// True if a proxy in front signs people in.
    pub(crate) fn has_proxy(&self) -> bool {
        self.0.proxy.is_some()
    }

    /// The provider at which people sign in.
    #[cfg(feature = "oidc")]
    pub(crate) fn provider(&self) -> Option<&Arc<OidcProvider>> {
        self.0.provider.as_ref()
    }

    /// Link for the browser with this cookie, which was signed in at the provider.
    ///
    /// # Errors
    /// 403: the user does not exist and users are not added, or was removed. The store cannot be read or
    /// written.
    #[cfg(feature = "oidc")]
    pub(crate) async fn grant_sign_in(
        &self,
        provider: &OidcProvider,
        person: ProviderPerson,
        cookie: &str,
    ) -> Result<String, ApiError> {
        let ProviderPerson { name, is_admin } = person;
        let row = self.0.key_ring.signed_in(&name, is_admin, provider.creates()).await?;
        super::key_ring::principal_of_person(
            name.clone(),
            row,
            provider.person_scopes(),
            SignInWay::Provider,
        )?;
        let grant = SignInGrant::Person {
            user: name,
            session: provider.session(),
            given: provider.person_scopes().to_vec(),
            browser: blake3::hash(cookie.as_bytes()),
        };
        match self.0.sign_in_tickets.issue(grant, PROVIDER_LINK_TTL) {
            Ok(ticket) => Ok(ticket),
            Err(TicketError::TooMany) => {
                Err(ApiError::too_many("tickets_open", "too many sign-ins are in progress", 60))
            }
            Err(TicketError::NoRandomness) => Err(ApiError::internal(RandomnessError)),
        }
    }
}
