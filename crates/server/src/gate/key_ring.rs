//! Whose key it is: looked up by its id, compared in constant time, remembered for a moment.

use super::api_key::{ApiKey, RandomnessError};
use crate::error::ApiError;
use crate::principal::{KeyScope, KeyScopes, Principal};
use async_trait::async_trait;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use throughline_store::StoreError;
use throughline_store::catalog::{Catalog, KeyRow, LAST_USED_INTERVAL_MS};
use tokio::time::Instant;
use utoipa::ToSchema;

/// Whose everything is on a server that has one user.
pub const LOCAL_USER: &str = "local";
/// Lifetime of a cached key. A key revoked here is forgotten at once; a key revoked by another program is refused after
/// this time.
const CACHE_TTL: Duration = Duration::from_millis(500);
/// Keys remembered at once.
const CACHED_KEYS_MAX: usize = 10_000;
/// The longest name of a key, in characters.
const NAME_CHARS_MAX: usize = 200;

/// Store of keys.
#[async_trait]
pub trait KeyStore: Send + Sync {
    /// Adds one.
    async fn add_key(&self, user: &str, key: KeyRow) -> Result<(), StoreError>;
    /// All of a user, newest first.
    async fn keys(&self, user: &str) -> Result<Vec<KeyRow>, StoreError>;
    /// Makes one worthless. `false`: this user has no such key, or it was revoked before.
    async fn revoke_key(&self, user: &str, id: &str, now: i64) -> Result<bool, StoreError>;
    /// A key by its id, of any user.
    async fn key(&self, id: &str) -> Result<Option<KeyRow>, StoreError>;
    /// Notes that one was used.
    async fn touch_key(&self, id: &str, now: i64) -> Result<bool, StoreError>;
}

#[async_trait]
impl KeyStore for Arc<dyn Catalog> {
    async fn add_key(&self, user: &str, key: KeyRow) -> Result<(), StoreError> {
        self.as_ref().add_key(user, key).await
    }

    async fn keys(&self, user: &str) -> Result<Vec<KeyRow>, StoreError> {
        self.as_ref().keys(user).await
    }

    async fn revoke_key(&self, user: &str, id: &str, now: i64) -> Result<bool, StoreError> {
        self.as_ref().revoke_key(user, id, now).await
    }

    async fn key(&self, id: &str) -> Result<Option<KeyRow>, StoreError> {
        self.as_ref().key(id).await
    }

    async fn touch_key(&self, id: &str, now: i64) -> Result<bool, StoreError> {
        self.as_ref().touch_key(id, now).await
    }
}

/// A key that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApiKey {
    /// Name that the owner gave it.
    pub name: String,
    pub scopes: KeyScopes,
    /// From then on it is worth nothing; milliseconds since 1970.
    pub expires_at: Option<i64>,
}

/// Why a key was not made.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// It would allow nothing.
    #[error("a key needs at least one scope: chat, tools, admin")]
    NoScope,
    /// Nobody could tell it from others.
    #[error("the name of a key has 1 to {NAME_CHARS_MAX} characters")]
    BadName,
    /// It would be worth nothing.
    #[error("the key would have expired already")]
    Expired,
    /// The system has no random bytes.
    #[error(transparent)]
    NoRandomness(#[from] RandomnessError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A key without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct KeyInfo {
    /// The part of the key that is no secret.
    pub id: String,
    /// Whose it is.
    pub user: String,
    /// Name that the owner gave it.
    pub name: String,
    /// Scopes: `chat`, `tools`, `admin`.
    pub scopes: Vec<String>,
    /// Milliseconds since 1970, as all times here.
    pub created_at: i64,
    /// From then on it is worth nothing.
    pub expires_at: Option<i64>,
    /// To the minute.
    pub last_used_at: Option<i64>,
    /// Since then it is worth nothing.
    pub revoked_at: Option<i64>,
}

impl From<KeyRow> for KeyInfo {
    fn from(row: KeyRow) -> Self {
        let KeyRow { id, user, name, scopes, created_at, expires_at, last_used_at, revoked_at, hash: _ } =
            row;
        Self { id, user, name, scopes, created_at, expires_at, last_used_at, revoked_at }
    }
}

/// The keys, with those remembered that were just used.
pub(super) struct KeyRing {
    store: Arc<dyn KeyStore>,
    cache: Mutex<HashMap<String, (KeyRow, Instant)>>,
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

impl KeyRing {
    pub(super) fn new(store: Arc<dyn KeyStore>) -> Self {
        Self { store, cache: Mutex::default() }
    }

    /// Principal of the key with this text.
    pub(super) async fn principal(&self, text: &str) -> Result<Principal, ApiError> {
        let Some(key) = ApiKey::parse(text) else { return Err(ApiError::unauthenticated()) };
        let row = self.lookup(key.id()).await?;
        // Compared before anything else is said of it, so that nobody learns which ids there are.
        match row {
            Some(row) if key.matches(&row) => self.authenticate(row).await,
            _ => Err(ApiError::unauthenticated()),
        }
    }

    /// Principal of a key that was shown before.
    pub(super) async fn principal_of(&self, key_id: &str) -> Result<Principal, ApiError> {
        match self.lookup(key_id).await? {
            Some(row) => self.authenticate(row).await,
            None => Err(ApiError::unauthenticated()),
        }
    }

    /// True while the key is valid. If the store cannot be read, nothing has changed.
    pub(super) async fn is_valid(&self, key_id: &str) -> bool {
        match self.store.key(key_id).await {
            Ok(row) => row.is_some_and(|row| row.is_valid(now_ms())),
            Err(_) => true,
        }
    }

    pub(super) async fn mint(&self, user: &str, new: NewApiKey) -> Result<(ApiKey, KeyInfo), MintError> {
        let created_at = now_ms();
        let name = new.name.trim();
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.contains(char::is_control) {
            return Err(MintError::BadName);
        }
        if new.scopes.iter().next().is_none() {
            return Err(MintError::NoScope);
        }
        if new.expires_at.is_some_and(|expires| expires <= created_at) {
            return Err(MintError::Expired);
        }
        let key = ApiKey::mint()?;
        let row = KeyRow {
            id: key.id().to_owned(),
            user: user.to_owned(),
            name: name.to_owned(),
            hash: key.hash(),
            scopes: new.scopes.iter().map(|scope| scope.name().to_owned()).collect(),
            created_at,
            expires_at: new.expires_at,
            last_used_at: None,
            revoked_at: None,
        };
        self.store.add_key(user, row.clone()).await?;
        Ok((key, row.into()))
    }

    pub(super) async fn revoke(&self, user: &str, key_id: &str) -> Result<bool, ApiError> {
        let revoked = self.store.revoke_key(user, key_id, now_ms()).await.map_err(store_error)?;
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).remove(key_id);
        Ok(revoked)
    }

    pub(super) async fn list(&self, user: &str) -> Result<Vec<KeyInfo>, ApiError> {
        let rows = self.store.keys(user).await.map_err(store_error)?;
        Ok(rows.into_iter().map(KeyInfo::from).collect())
    }

    /// Forgets what is no longer believed.
    pub(super) fn evict_expired(&self) {
        let now = Instant::now();
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.retain(|_, (_, at)| now.duration_since(*at) < CACHE_TTL);
    }

    async fn lookup(&self, key_id: &str) -> Result<Option<KeyRow>, ApiError> {
        let now = Instant::now();
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(key_id).cloned();
        if let Some((row, at)) = cache
            && now.duration_since(at) < CACHE_TTL
        {
            return Ok(Some(row));
        }
        let row = self.store.key(key_id).await.map_err(store_error)?;
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        // Ids that do not exist are not remembered: anybody can make up as many as they like.
        if let Some(row) = row.clone().filter(|_| cache.len() < CACHED_KEYS_MAX) {
            cache.insert(key_id.to_owned(), (row, now));
        }
        Ok(row)
    }

    /// The owner of a key whose secret was shown, if it is worth something now.
    async fn authenticate(&self, row: KeyRow) -> Result<Principal, ApiError> {
        let now = now_ms();
        if !row.is_valid(now) {
            let reason =
                if row.revoked_at.is_some() { "this key was revoked" } else { "this key has expired" };
            return Err(ApiError { message: reason.to_owned(), ..ApiError::unauthenticated() });
        }
        if row.last_used_at.is_none_or(|used| now - used >= LAST_USED_INTERVAL_MS) {
            // That it cannot be noted is no reason to refuse.
            if let Err(error) = self.store.touch_key(&row.id, now).await {
                tracing::warn!(%error, "the last use of a key cannot be noted");
            }
            if let Some((cache, _)) =
                self.cache.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&row.id)
            {
                cache.last_used_at = Some(now);
            }
        }
        let scopes = row.scopes.iter().filter_map(|name| KeyScope::from_name(name)).collect();
        Ok(Principal { user: row.user, key_id: Some(row.id), scopes })
    }
}

fn store_error(error: StoreError) -> ApiError {
    tracing::error!(%error, "the keys cannot be read or written");
    ApiError::unavailable("store_unavailable", "the store cannot be read or written now", 5)
}
