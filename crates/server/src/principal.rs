//! The authenticated user of a request.

use crate::error::ApiError;
use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Scope of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyScope {
    /// Start and follow turns, read and change one's own conversations.
    Chat,
    /// Run tools without a model.
    Tools,
    /// Change what is everybody's: agents, toggles, keys.
    Admin,
}

impl KeyScope {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            KeyScope::Chat => "chat",
            KeyScope::Tools => "tools",
            KeyScope::Admin => "admin",
        }
    }

    /// The scope of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [KeyScope::Chat, KeyScope::Tools, KeyScope::Admin].into_iter().find(|scope| scope.name() == name)
    }
}

/// The scopes of a key. `admin` does not contain the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyScopes(BTreeSet<KeyScope>);

impl KeyScopes {
    /// Everything.
    pub fn all() -> Self {
        Self::from_iter([KeyScope::Chat, KeyScope::Tools, KeyScope::Admin])
    }

    pub fn has(&self, scope: KeyScope) -> bool {
        self.0.contains(&scope)
    }

    /// In alphabetical order of their meaning.
    pub fn iter(&self) -> impl Iterator<Item = KeyScope> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<KeyScope> for KeyScopes {
    fn from_iter<I: IntoIterator<Item = KeyScope>>(scopes: I) -> Self {
        Self(scopes.into_iter().collect())
    }
}

/// Authenticated user of a request, determined by the gate before any handler runs and stored in the request's
/// extensions. A handler that takes one is unreachable without authentication; every query of the store receives its
/// `user`. // R: R4
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Whose turns, conversations and files these are.
    pub user: String,
    /// The key that was shown, if it was one.
    pub key_id: Option<String>,
    pub scopes: KeyScopes,
}

impl Principal {
    /// A user with all scopes and no key, as of a server without authentication.
    pub fn local(user: impl Into<String>) -> Self {
        Self { user: user.into(), key_id: None, scopes: KeyScopes::all() }
    }

    /// Whose limits these are: each key has its own, and without keys the user has.
    pub fn counted_as(&self) -> &str {
        self.key_id.as_deref().unwrap_or(&self.user)
    }

    /// Goes on only with this scope.
    ///
    /// # Errors
    /// 403.
    pub fn require(&self, scope: KeyScope) -> Result<(), ApiError> {
        if self.scopes.has(scope) {
            Ok(())
        } else {
            Err(ApiError::forbidden(
                "missing_scope",
                format!("this key may not do that: it lacks the scope `{}`", scope.name()),
            )
            .remedy(format!("make a key that has it: throughline keys create --scopes {},…", scope.name())))
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Principal {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(ApiError::unauthenticated)
    }
}
