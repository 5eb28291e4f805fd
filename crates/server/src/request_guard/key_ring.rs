//! Lookup of API keys: by id, compared in constant time, cached briefly.

use super::api_key::{ApiKey, RandomnessError};
use super::proxy_user::{removed_person, unknown_person};
use super::sign_in::PROVIDER_KEY_NAME;
use crate::error::ApiError;
use crate::people::{self, PeopleError, UsageLimitsBody};
use crate::principal::{KeyScope, KeyScopes, LOCAL_USER, Principal, PrincipalLimits, SignInWay};
use crate::stamps::now_ms;
use async_trait::async_trait;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use throughline::config::PersonScope;
use throughline_store::{
    Catalog, KeyLimits, KeyRow, LAST_USED_INTERVAL_MS, PageRequest, PersonRow, ResultPage, StoreError,
};
use tokio::time::Instant;
use utoipa::ToSchema;

/// Lifetime of a cached key. A key revoked here is dropped immediately; a key revoked by another program is
/// refused after this time.
const CACHE_TTL: Duration = Duration::from_millis(500);
/// Maximum number of cached keys.
const CACHED_KEYS_MAX: usize = 10_000;
/// The longest name of a key, in characters.
const NAME_CHARS_MAX: usize = 200;
/// Agents and models that a key may be restricted to.
const MODELS_MAX: usize = 100;
/// The longest name of one, in bytes.
const MODEL_BYTES_MAX: usize = 256;

#[async_trait]
pub trait KeyStore: Send + Sync {
    async fn add_key(&self, user: &str, key: KeyRow) -> Result<(), StoreError>;
    /// All keys of a user, newest first.
    async fn keys(&self, user: &str) -> Result<Vec<KeyRow>, StoreError>;
    /// A page of the keys of a user, or of all users, newest first.
    async fn keys_page(
        &self,
        user: Option<&str>,
        page: &PageRequest,
    ) -> Result<ResultPage<KeyRow>, StoreError>;
    /// Makes one worthless. `false`: this user has no such key, or it was revoked before.
    async fn revoke_key(&self, user: &str, id: &str, now: i64) -> Result<bool, StoreError>;
    /// A key by its id, of any user.
    async fn key(&self, id: &str) -> Result<Option<KeyRow>, StoreError>;
    /// Notes that one was used.
    async fn touch_key(&self, id: &str, now: i64) -> Result<bool, StoreError>;
    /// Sets the limits of a key. `false`: it does not exist, or was revoked.
    async fn set_key_limits(&self, _user: &str, _id: &str, _limits: KeyLimits) -> Result<bool, StoreError> {
        Ok(false)
    }
    /// The person of a key; the first one need not be there.
    async fn person(&self, _name: &str) -> Result<Option<PersonRow>, StoreError> {
        Ok(None)
    }
    /// Signs in a person from an external provider with these rights; creates the user if missing and
    /// requested.
    async fn sign_in_person(
        &self,
        name: &str,
        _is_admin: Option<bool>,
        _create: bool,
    ) -> Result<Option<PersonRow>, StoreError> {
        self.person(name).await
    }
}

#[async_trait]
impl KeyStore for Arc<dyn Catalog> {
    async fn add_key(&self, user: &str, key: KeyRow) -> Result<(), StoreError> {
        self.as_ref().add_key(user, key).await
    }

    async fn keys(&self, user: &str) -> Result<Vec<KeyRow>, StoreError> {
        self.as_ref().keys(user).await
    }

    async fn keys_page(
        &self,
        user: Option<&str>,
        page: &PageRequest,
    ) -> Result<ResultPage<KeyRow>, StoreError> {
        match user {
            Some(user) => self.as_ref().keys_page(user, page).await,
            None => self.as_ref().all_keys(page).await,
        }
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

    async fn set_key_limits(&self, user: &str, id: &str, limits: KeyLimits) -> Result<bool, StoreError> {
        self.as_ref().set_key_limits(user, id, limits).await
    }

    async fn person(&self, name: &str) -> Result<Option<PersonRow>, StoreError> {
        self.as_ref().person(name).await
    }

    async fn sign_in_person(
        &self,
        name: &str,
        is_admin: Option<bool>,
        create: bool,
    ) -> Result<Option<PersonRow>, StoreError> {
        match people::sign_in(self.as_ref(), name, is_admin, create, now_ms()).await {
            Ok(person) => Ok(person),
            Err(PeopleError::Store(error)) => Err(error),
            // The name was checked before.
            Err(_) => Ok(None),
        }
    }
}

/// A key that is to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewApiKey {
    /// Name that the owner gave it.
    pub name: String,
    pub scopes: KeyScopes,
    /// Time of expiry, in milliseconds since 1970.
    pub expires_at: Option<i64>,
    /// Limits of the key, in addition to those of its user.
    pub limits: KeyLimits,
}

/// Reason why a key was not created.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// The key has no scope.
    #[error("a key needs at least one scope: chat, tools, agents, admin")]
    NoScope,
    /// The name is empty or invalid.
    #[error("the name of a key must have 1 to {NAME_CHARS_MAX} characters")]
    BadName,
    /// The user does not exist.
    #[error("there is no person `{0}`")]
    NoPerson(String),
    /// The key would have a scope that its user lacks.
    #[error("`{0}` is not an admin, so their keys cannot have the scope `admin`")]
    NotAdmin(String),
    /// The list of models is empty or has an invalid entry.
    #[error("`models` must be 1 to {MODELS_MAX} agents, `upstream/model` or `upstream/*`")]
    BadModels,
    /// A limit is too large.
    #[error("a limit must be at most {max}", max = crate::people::USAGE_LIMIT_MAX)]
    LimitTooLarge,
    /// The time of expiry has passed.
    #[error("the expiry time of the key is in the past")]
    Expired,
    /// The system has no random bytes.
    #[error(transparent)]
    NoRandomness(#[from] RandomnessError),
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
    /// Scopes: `chat`, `tools`, `agents`, `admin`.
    pub scopes: Vec<String>,
    /// Milliseconds since 1970, as all times here.
    pub created_at: i64,
    /// From then on it is worth nothing.
    pub expires_at: Option<i64>,
    /// To the minute.
    pub last_used_at: Option<i64>,
    /// Since then it is worth nothing.
    pub revoked_at: Option<i64>,
    /// Limits of the key, besides those of its person.
    pub limits: UsageLimitsBody,
    /// Agents and models that it may use; null for all.
    pub models: Option<Vec<String>>,
}

impl From<KeyRow> for KeyInfo {
    fn from(row: KeyRow) -> Self {
        let KeyRow {
            id,
            user,
            name,
            scopes,
            created_at,
            expires_at,
            last_used_at,
            revoked_at,
            limits,
            hash: _,
        } = row;
        let KeyLimits { usage, models } = limits;
        let limits = usage.into();
        Self { id, user, name, scopes, created_at, expires_at, last_used_at, revoked_at, limits, models }
    }
}

/// The keys, with those remembered that were just used.
pub(super) struct KeyRing {
    store: Arc<dyn KeyStore>,
    cache: Mutex<HashMap<String, (KeyWithPerson, Instant)>>,
    /// Users who sign in without a key.
    people: Mutex<HashMap<String, (PersonRow, Instant)>>,
}

/// A key, and its user if the user has a row.
type KeyWithPerson = (KeyRow, Option<PersonRow>);

impl KeyRing {
    pub(super) fn new(store: Arc<dyn KeyStore>) -> Self {
        Self { store, cache: Mutex::default(), people: Mutex::default() }
    }

    /// Principal of the key with this text.
    pub(super) async fn principal(&self, text: &str) -> Result<Principal, ApiError> {
        let Some(key) = ApiKey::parse(text) else { return Err(ApiError::unauthenticated()) };
        let row = self.lookup(key.id()).await?;
        // Compared before any other error, so that ids cannot be enumerated.
        match row {
            Some(row) if key.matches(&row.0) => self.authenticate(row).await,
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

    /// `created_at` is the time from which the caller counts when the key expires.
    pub(super) async fn mint(
        &self,
        user: &str,
        new: NewApiKey,
        created_at: i64,
    ) -> Result<(ApiKey, KeyInfo), MintError> {
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
        check_key_limits(&new.limits)?;
        let person = self.store.person(user).await?.filter(PersonRow::is_active);
        if person.is_none() && user != LOCAL_USER {
            return Err(MintError::NoPerson(user.to_owned()));
        }
        let is_admin = user == LOCAL_USER || person.is_some_and(|person| person.is_admin);
        if new.scopes.has(KeyScope::Admin) && !is_admin {
            return Err(MintError::NotAdmin(user.to_owned()));
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
            limits: new.limits,
        };
        self.store.add_key(user, row.clone()).await?;
        Ok((key, row.into()))
    }

    pub(super) async fn revoke(&self, user: &str, key_id: &str) -> Result<bool, ApiError> {
        let revoked = self.store.revoke_key(user, key_id, now_ms()).await.map_err(store_error)?;
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).remove(key_id);
        Ok(revoked)
    }

    pub(super) async fn set_limits(
        &self,
        user: &str,
        key_id: &str,
        limits: KeyLimits,
    ) -> Result<bool, MintError> {
        check_key_limits(&limits)?;
        let set = self.store.set_key_limits(user, key_id, limits).await?;
        self.forget_cached();
        Ok(set)
    }

    pub(super) async fn page(
        &self,
        user: Option<&str>,
        page: &PageRequest,
    ) -> Result<ResultPage<KeyRow>, StoreError> {
        self.store.keys_page(user, page).await
    }

    pub(super) async fn get(&self, key_id: &str) -> Result<Option<KeyRow>, StoreError> {
        self.store.key(key_id).await
    }

    pub(super) async fn list(&self, user: &str) -> Result<Vec<KeyInfo>, ApiError> {
        let rows = self.store.keys(user).await.map_err(store_error)?;
        Ok(rows.into_iter().map(KeyInfo::from).collect())
    }

    pub(super) fn forget_cached(&self) {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.people.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The row of a person who was signed in elsewhere, with these rights from now on; `None` for the first person as long
    /// as there is no other.
    pub(super) async fn signed_in(
        &self,
        name: &str,
        is_admin: Option<bool>,
        create: bool,
    ) -> Result<Option<PersonRow>, ApiError> {
        let now = Instant::now();
        let cached = self.people.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some((person, at)) = cached
            && now.duration_since(at) < CACHE_TTL
            && is_admin.is_none_or(|is_admin| is_admin == person.is_admin)
        {
            return Ok(Some(person));
        }
        let person = if name == LOCAL_USER {
            self.store.person(name).await
        } else {
            self.store.sign_in_person(name, is_admin, create).await
        };
        let person = person.map_err(store_error)?;
        let mut people = self.people.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(person) = person.clone().filter(|_| people.len() < CACHED_KEYS_MAX) {
            people.insert(name.to_owned(), (person, now));
        }
        Ok(person)
    }

    /// True while the person may come in. If the store cannot be read, nothing has changed.
    pub(super) async fn is_active(&self, name: &str) -> bool {
        match self.store.person(name).await {
            Ok(person) => name == LOCAL_USER || person.is_some_and(|person| person.is_active()),
            Err(_) => true,
        }
    }

    /// Removes expired entries of the cache.
    pub(super) fn evict_expired(&self) {
        let now = Instant::now();
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.retain(|_, (_, at)| now.duration_since(*at) < CACHE_TTL);
        drop(cache);
        let mut people = self.people.lock().unwrap_or_else(PoisonError::into_inner);
        people.retain(|_, (_, at)| now.duration_since(*at) < CACHE_TTL);
    }

    async fn lookup(&self, key_id: &str) -> Result<Option<KeyWithPerson>, ApiError> {
        let now = Instant::now();
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(key_id).cloned();
        if let Some((row, at)) = cache
            && now.duration_since(at) < CACHE_TTL
        {
            return Ok(Some(row));
        }
        let row = match self.store.key(key_id).await.map_err(store_error)? {
            Some(row) => {
                let person = self.store.person(&row.user).await.map_err(store_error)?;
                Some((row, person))
            }
            None => None,
        };
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        // Unknown ids are not cached: a client can invent any number of them.
        if let Some(row) = row.clone().filter(|_| cache.len() < CACHED_KEYS_MAX) {
            cache.insert(key_id.to_owned(), (row, now));
        }
        Ok(row)
    }

    /// The owner of a key by its secret, if the key is valid now.
    async fn authenticate(&self, (row, person): KeyWithPerson) -> Result<Principal, ApiError> {
        let now = now_ms();
        let is_first = row.user == LOCAL_USER;
        if !is_first && !person.as_ref().is_some_and(PersonRow::is_active) {
            let message = format!("`{}` was removed from this server", row.user);
            return Err(ApiError { message, ..ApiError::unauthenticated() });
        }
        if !row.is_valid(now) {
            let reason =
                if row.revoked_at.is_some() { "this key was revoked" } else { "this key has expired" };
            return Err(ApiError { message: reason.to_owned(), ..ApiError::unauthenticated() });
        }
        if row.last_used_at.is_none_or(|used| now - used >= LAST_USED_INTERVAL_MS) {
            // That it cannot be noted is no reason to refuse.
            if let Err(error) = self.store.touch_key(&row.id, now).await {
                tracing::warn!(%error, "the last use of a key cannot be stored");
            }
            if let Some(((cache, _), _)) =
                self.cache.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&row.id)
            {
                cache.last_used_at = Some(now);
            }
        }
        let is_admin = is_first || person.as_ref().is_some_and(|person| person.is_admin);
        let scopes = row.scopes.iter().filter_map(|name| KeyScope::from_name(name));
        let scopes = scopes.filter(|scope| is_admin || *scope != KeyScope::Admin).collect();
        let user = person.map(|person| person.limits).unwrap_or_default();
        let limits = Arc::new(PrincipalLimits { user, key: row.limits });
        let signed_in_by = if row.name == PROVIDER_KEY_NAME { SignInWay::Provider } else { SignInWay::Key };
        Ok(Principal { user: row.user, key_id: Some(row.id), scopes, limits, signed_in_by })
    }
}

/// Principal of a user who was signed in by a provider or proxy.
pub(super) fn principal_of_person(
    user: String,
    row: Option<PersonRow>,
    given: &[PersonScope],
    signed_in_by: SignInWay,
) -> Result<Principal, ApiError> {
    let is_first = user == LOCAL_USER;
    let row = match row {
        Some(row) if row.is_active() || is_first => Some(row),
        Some(_) => return Err(removed_person(&user)),
        None if is_first => None,
        None => return Err(unknown_person(&user)),
    };
    let scopes = KeyScopes::of_person(is_first || row.as_ref().is_some_and(|row| row.is_admin), given);
    let limits = row.map(|row| row.limits).unwrap_or_default();
    let limits = Arc::new(PrincipalLimits { user: limits, ..PrincipalLimits::default() });
    Ok(Principal { user, key_id: None, scopes, limits, signed_in_by })
}

/// Checks of a key's limits before the key exists.
fn check_key_limits(limits: &KeyLimits) -> Result<(), MintError> {
    use crate::people::USAGE_LIMIT_MAX;
    let usage = &limits.usage;
    let maxima = [
        usage.turns_per_day_max,
        usage.turns_per_month_max,
        usage.tokens_per_day_max,
        usage.tokens_per_month_max,
    ];
    if maxima.into_iter().flatten().any(|max| max > USAGE_LIMIT_MAX) {
        return Err(MintError::LimitTooLarge);
    }
    let Some(models) = &limits.models else { return Ok(()) };
    let is_name = |name: &String| {
        let star = name.find('*');
        !name.trim().is_empty()
            && name.len() <= MODEL_BYTES_MAX
            && throughline_wire::display_escape::escape(name) == *name
            && star.is_none_or(|at| at + 1 == name.len() && name.ends_with("/*"))
    };
    if models.is_empty() || models.len() > MODELS_MAX || !models.iter().all(is_name) {
        return Err(MintError::BadModels);
    }
    Ok(())
}

fn store_error(error: StoreError) -> ApiError {
    tracing::error!(%error, "cannot read or write keys");
    ApiError::unavailable("store_unavailable", "store is temporarily unavailable", 5)
}
