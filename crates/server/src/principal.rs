//! The authenticated user of a request.

use crate::error::ApiError;
use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use throughline::config::PersonScope;
use throughline_store::{KeyLimits, TurnCharge, UsageLimits};

/// The first user of a server, who owns everything until there is a second one.
pub const LOCAL_USER: &str = "local";

/// Scope of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyScope {
    /// Start and follow turns; read and change the user's conversations.
    Chat,
    /// Run tools without a model.
    Tools,
    /// Create and change the user's agents. `admin` includes it.
    Agents,
    /// Change shared resources: agents, toggles, keys.
    Admin,
}

impl KeyScope {
    /// Name of the scope.
    pub fn name(self) -> &'static str {
        match self {
            KeyScope::Chat => "chat",
            KeyScope::Tools => "tools",
            KeyScope::Agents => "agents",
            KeyScope::Admin => "admin",
        }
    }

    /// The scope of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [KeyScope::Chat, KeyScope::Tools, KeyScope::Agents, KeyScope::Admin];
        all.into_iter().find(|scope| scope.name() == name)
    }
}

impl From<PersonScope> for KeyScope {
    fn from(scope: PersonScope) -> Self {
        match scope {
            PersonScope::Chat => KeyScope::Chat,
            PersonScope::Tools => KeyScope::Tools,
            PersonScope::Agents => KeyScope::Agents,
        }
    }
}

/// The scopes of a key. `admin` contains `agents`, and not the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyScopes(BTreeSet<KeyScope>);

impl KeyScopes {
    /// All scopes.
    pub fn all() -> Self {
        Self::from_iter([KeyScope::Chat, KeyScope::Tools, KeyScope::Admin])
    }

    /// Scopes of a user without a key: all for an admin, else those that the configuration gives to all
    /// users.
    pub(crate) fn of_person(is_admin: bool, given: &[PersonScope]) -> Self {
        if is_admin { Self::all() } else { given.iter().map(|scope| KeyScope::from(*scope)).collect() }
    }

    pub fn has(&self, scope: KeyScope) -> bool {
        self.0.contains(&scope) || (scope == KeyScope::Agents && self.0.contains(&KeyScope::Admin))
    }

    /// Iterates over the scopes in the order of the enum.
    pub fn iter(&self) -> impl Iterator<Item = KeyScope> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<KeyScope> for KeyScopes {
    fn from_iter<I: IntoIterator<Item = KeyScope>>(scopes: I) -> Self {
        Self(scopes.into_iter().collect())
    }
}

/// Means by which the user of a request is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SignInWay {
    /// None: the server has no keys.
    #[default]
    Off,
    /// A key, or a ticket of one.
    Key,
    /// The header of a proxy, or a ticket of a person whom it names.
    Proxy,
    /// A key that a browser got after a sign-in at the provider.
    Provider,
}

/// Authenticated user of a request, determined by the request guard before any handler runs and stored in the request's
/// extensions. A handler that takes one is unreachable without authentication; every query of the store receives its
/// `user`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Owner of the turns, conversations and files.
    pub user: String,
    /// The key that was shown, if it was one.
    pub key_id: Option<String>,
    pub scopes: KeyScopes,
    /// Limits of their use.
    pub limits: Arc<PrincipalLimits>,
    /// Means by which the user is known.
    pub signed_in_by: SignInWay,
}

/// A person whom the provider has signed in.
#[cfg(feature = "oidc")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProviderPerson {
    pub(crate) name: String,
    /// True if the provider's groups or the list of admins make them one; `None` if neither is configured.
    pub(crate) is_admin: Option<bool>,
}

/// Limits of a person and of the key that was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrincipalLimits {
    pub user: UsageLimits,
    pub key: KeyLimits,
}

impl PrincipalLimits {
    /// True if the key may use all of these models, or this agent of the configuration as it is.
    pub fn allows<'a>(&self, agent: Option<&str>, models: impl IntoIterator<Item = &'a str>) -> bool {
        let Some(allowed) = &self.key.models else { return true };
        let is_listed = |name: &str| allowed.iter().any(|pattern| matches_model(pattern, name));
        if agent.is_some_and(|agent| allowed.iter().any(|name| name == agent)) {
            return true;
        }
        let mut models = models.into_iter().peekable();
        models.peek().is_some() && models.all(is_listed)
    }
}

/// `upstream/model`, or `upstream/*` for all of one.
fn matches_model(pattern: &str, model: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => beginning.ends_with('/') && model.starts_with(beginning),
        None => pattern == model,
    }
}

impl Principal {
    /// A user with all scopes and no key, as of a server without authentication.
    pub fn local(user: impl Into<String>) -> Self {
        Self {
            user: user.into(),
            key_id: None,
            scopes: KeyScopes::all(),
            limits: Arc::default(),
            signed_in_by: SignInWay::Off,
        }
    }

    /// Limit key: each key has its own limits, and without keys the user has them.
    pub(crate) fn quota_key(&self) -> &str {
        self.key_id.as_deref().unwrap_or(&self.user)
    }

    /// Accounts that a turn of theirs counts against.
    pub(crate) fn charge(&self) -> TurnCharge {
        TurnCharge {
            key_id: self.key_id.clone(),
            user_limits: self.limits.user,
            key_limits: self.limits.key.usage,
        }
    }

    /// Fails unless the key may use these models, or this agent of the configuration unchanged.
    ///
    /// # Errors
    /// 403 `model_not_allowed`.
    pub(crate) fn require_models(&self, agent: Option<&str>, models: &[String]) -> Result<(), ApiError> {
        if self.limits.allows(agent, models.iter().map(String::as_str)) {
            return Ok(());
        }
        let allowed = self.limits.key.models.as_deref().unwrap_or_default().join(", ");
        let model = models.join(", ");
        Err(ApiError::forbidden(
            "model_not_allowed",
            format!("this key may not use {model}; it may use {allowed}"),
        )
        .param("model")
        .remedy("use one of those; GET /v1/models lists the models of this key"))
    }

    /// Fails unless the key has this scope.
    ///
    /// # Errors
    /// 403.
    pub fn require(&self, scope: KeyScope) -> Result<(), ApiError> {
        if self.scopes.has(scope) {
            Ok(())
        } else if self.key_id.is_none() {
            let message = format!("permission denied: this requires the scope `{}`", scope.name());
            let remedy = format!("an admin can grant it: throughline users set {} --admin", self.user);
            Err(ApiError::forbidden("missing_scope", message).remedy(remedy))
        } else {
            Err(ApiError::forbidden(
                "missing_scope",
                format!("permission denied: this key lacks the scope `{}`", scope.name()),
            )
            .remedy(format!("create a key that has it: throughline keys create --scopes {},…", scope.name())))
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Principal {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(ApiError::unauthenticated)
    }
}
