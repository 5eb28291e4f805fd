//! People: who may come in, and what each may use. Everything that is a person's has their name as its user.

use crate::principal::LOCAL_USER;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use throughline_store::{
    BlobFolder, Catalog, PageRequest, PersonChange, PersonRow, ResultPage, StoreError, UsageExceeded,
    UsageLimits, UsageReport,
};
use throughline_wire::display_escape;
use utoipa::ToSchema;

/// The longest name of a person, in characters.
pub(crate) const PERSON_NAME_CHARS_MAX: usize = 64;
/// Most turns or tokens that a limit may allow: a database holds no more.
pub const USAGE_LIMIT_MAX: u64 = i64::MAX as u64;

/// Reason why users were not changed.
#[derive(Debug, thiserror::Error)]
pub enum PeopleError {
    /// The name is invalid: it must be usable in a command and a path.
    #[error(
        "a person's name must have 1 to {PERSON_NAME_CHARS_MAX} letters, digits, `-`, `_`, `.`, `@` or `+`, \
         and no invisible characters"
    )]
    BadName,
    #[error("there is already a person `{0}`")]
    Exists(String),
    #[error("there is no person `{0}`")]
    NotFound(String),
    /// The first user cannot be removed: the server needs an administrator.
    #[error("`{LOCAL_USER}` is the first person of this server: it cannot be removed and stays an admin")]
    First,
    #[error("a limit must be at most {USAGE_LIMIT_MAX}")]
    LimitTooLarge,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A person's name as it is stored. Capital letters mean the same person.
///
/// # Errors
/// [`PeopleError::BadName`]
pub fn normalize_name(text: &str) -> Result<String, PeopleError> {
    let name = text.trim_matches(' ').to_lowercase();
    let is_allowed = |c: char| c.is_alphanumeric() || "-_.@+".contains(c);
    let is_name = !name.is_empty()
        && name.chars().count() <= PERSON_NAME_CHARS_MAX
        && name.chars().all(is_allowed)
        && name.chars().any(char::is_alphanumeric)
        && display_escape::escape(&name) == name;
    if is_name { Ok(name) } else { Err(PeopleError::BadName) }
}

/// The first user, who exists without being added.
fn first_person(now: i64) -> PersonRow {
    PersonRow {
        name: LOCAL_USER.to_owned(),
        is_admin: true,
        limits: UsageLimits::default(),
        created_at: now,
        removed_at: None,
    }
}

/// Adds a user, or restores one who was removed.
///
/// # Errors
/// See [`PeopleError`].
pub async fn add(
    catalog: &dyn Catalog,
    name: &str,
    is_admin: bool,
    limits: UsageLimits,
    now: i64,
) -> Result<PersonRow, PeopleError> {
    let name = normalize_name(name)?;
    check_limits(&limits)?;
    if name == LOCAL_USER {
        return Err(PeopleError::Exists(name));
    }
    ensure_first(catalog, now).await?;
    let person = PersonRow { name: name.clone(), is_admin, limits, created_at: now, removed_at: None };
    match catalog.add_person(person.clone()).await {
        Ok(()) => return Ok(person),
        Err(StoreError::Exists { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    if catalog.person(&name).await?.is_none_or(|person| person.is_active()) {
        return Err(PeopleError::Exists(name));
    }
    let back = PersonChange { is_admin: Some(is_admin), limits: Some(limits), removed_at: Some(None) };
    catalog.change_person(&name, back).await?.ok_or(PeopleError::NotFound(name))
}

/// A user whom a proxy or a provider has signed in. Added if requested, and granted or denied admin rights if
/// the sign-in decides that. `None`: the user does not exist. A removed user stays removed.
///
/// # Errors
/// See [`PeopleError`].
pub(crate) async fn sign_in(
    catalog: &dyn Catalog,
    name: &str,
    is_admin: Option<bool>,
    create: bool,
    now: i64,
) -> Result<Option<PersonRow>, PeopleError> {
    let mut person = catalog.person(name).await?;
    if person.is_none() && create {
        match add(catalog, name, is_admin.unwrap_or_default(), UsageLimits::default(), now).await {
            Ok(person) => return Ok(Some(person)),
            // Two concurrent requests of a new user.
            Err(PeopleError::Exists(_)) => person = catalog.person(name).await?,
            Err(error) => return Err(error),
        }
    }
    match (person, is_admin) {
        (Some(person), Some(is_admin)) if person.is_active() && person.is_admin != is_admin => {
            let change = PersonChange { is_admin: Some(is_admin), limits: None, removed_at: None };
            Ok(catalog.change_person(name, change).await?)
        }
        (person, _) => Ok(person),
    }
}

/// Stores the first user once there is a second one, so that both are listed alike.
async fn ensure_first(catalog: &dyn Catalog, now: i64) -> Result<(), StoreError> {
    if catalog.person(LOCAL_USER).await?.is_some() {
        return Ok(());
    }
    match catalog.add_person(first_person(now)).await {
        Err(StoreError::Exists { .. }) => Ok(()),
        added => added,
    }
}

/// A person.
///
/// # Errors
/// [`PeopleError::NotFound`], or the store.
pub async fn find(catalog: &dyn Catalog, name: &str) -> Result<PersonRow, PeopleError> {
    let not_found = || PeopleError::NotFound(name.to_owned());
    let name = normalize_name(name).map_err(|_| not_found())?;
    let first = (name == LOCAL_USER).then(|| first_person(0));
    catalog.person(&name).await?.or(first).ok_or_else(not_found)
}

/// People, newest first, also those who were removed.
///
/// # Errors
/// The store.
pub async fn list(catalog: &dyn Catalog, page: &PageRequest) -> Result<ResultPage<PersonRow>, StoreError> {
    let mut people = catalog.people(page).await?;
    if people.next.is_none() && catalog.person(LOCAL_USER).await?.is_none() {
        people.items.push(first_person(0));
    }
    Ok(people)
}

/// Changes the rights and limits of a user.
///
/// # Errors
/// See [`PeopleError`].
pub async fn change(
    catalog: &dyn Catalog,
    name: &str,
    is_admin: Option<bool>,
    limits: Option<UsageLimits>,
    now: i64,
) -> Result<PersonRow, PeopleError> {
    let person = find(catalog, name).await?;
    limits.as_ref().map_or(Ok(()), check_limits)?;
    if person.name == LOCAL_USER {
        if is_admin == Some(false) {
            return Err(PeopleError::First);
        }
        ensure_first(catalog, now).await?;
    }
    let change = PersonChange { is_admin, limits, removed_at: None };
    catalog.change_person(&person.name, change).await?.ok_or(PeopleError::NotFound(person.name))
}

fn check_limits(limits: &UsageLimits) -> Result<(), PeopleError> {
    let UsageLimits { turns_per_day_max, turns_per_month_max, tokens_per_day_max, tokens_per_month_max } =
        limits;
    let all = [turns_per_day_max, turns_per_month_max, tokens_per_day_max, tokens_per_month_max];
    if all.into_iter().flatten().any(|max| *max > USAGE_LIMIT_MAX) {
        return Err(PeopleError::LimitTooLarge);
    }
    Ok(())
}

/// Removes a user: revokes their keys and returns the ids of those. Their data stay.
///
/// # Errors
/// See [`PeopleError`].
pub async fn remove(catalog: &dyn Catalog, name: &str, now: i64) -> Result<Vec<String>, PeopleError> {
    let person = find(catalog, name).await?;
    if person.name == LOCAL_USER {
        return Err(PeopleError::First);
    }
    let removed_at = person.removed_at.or(Some(now));
    let removal = PersonChange { is_admin: None, limits: None, removed_at: Some(removed_at) };
    catalog.change_person(&person.name, removal).await?;
    Ok(catalog.revoke_keys(&person.name, now).await?)
}

/// Rows that were deleted with a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeletedData {
    pub conversations: u64,
    pub turns: u64,
    pub files: u64,
    /// False if a turn still runs: then it, and the person, are left.
    pub complete: bool,
}

/// Deletes all data of a removed user, in parts.
///
/// # Errors
/// See [`PeopleError`].
pub async fn delete_data(
    catalog: &dyn Catalog,
    blobs: &BlobFolder,
    name: &str,
) -> Result<DeletedData, PeopleError> {
    let person = find(catalog, name).await?;
    if person.is_active() {
        return Err(PeopleError::Exists(person.name));
    }
    let mut deleted = DeletedData::default();
    loop {
        let part = catalog.delete_data(&person.name).await?;
        deleted.conversations += part.conversations;
        deleted.turns += part.turns.len() as u64;
        deleted.files += part.files;
        // A blob that remains only costs disk space: the sweep at the next start finds it.
        if let Err(error) = blobs.collect(catalog, &part.blobs).await {
            tracing::warn!(%error, "cannot remove the blobs of a deleted person");
        }
        if !part.has_more {
            deleted.complete = catalog.person(&person.name).await?.is_none();
            return Ok(deleted);
        }
    }
}

/// Limits of use. Days and months are those of UTC; what is absent or null has no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct UsageLimitsBody {
    /// Turns begun in a day.
    pub turns_per_day_max: Option<u64>,
    /// Turns begun in a calendar month.
    pub turns_per_month_max: Option<u64>,
    /// Tokens read and written by models in a day. A turn that runs is finished; the next one may not begin.
    pub tokens_per_day_max: Option<u64>,
    /// Tokens read and written by models in a calendar month.
    pub tokens_per_month_max: Option<u64>,
}

impl Serialize for UsageLimitsBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for UsageLimitsBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // serde would read the items of a list as the limits, in their order.
        struct FromObject;
        impl<'de> Visitor<'de> for FromObject {
            type Value = UsageLimitsBody;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with limits")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<UsageLimitsBody, A::Error> {
                UsageLimitsBody::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(FromObject)
    }
}

impl From<UsageLimits> for UsageLimitsBody {
    fn from(limits: UsageLimits) -> Self {
        let UsageLimits { turns_per_day_max, turns_per_month_max, tokens_per_day_max, tokens_per_month_max } =
            limits;
        Self { turns_per_day_max, turns_per_month_max, tokens_per_day_max, tokens_per_month_max }
    }
}

impl From<UsageLimitsBody> for UsageLimits {
    fn from(body: UsageLimitsBody) -> Self {
        let UsageLimitsBody {
            turns_per_day_max,
            turns_per_month_max,
            tokens_per_day_max,
            tokens_per_month_max,
        } = body;
        Self { turns_per_day_max, turns_per_month_max, tokens_per_day_max, tokens_per_month_max }
    }
}

/// Turns and tokens of a day and of a month of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct UsageInfo {
    /// Turns begun today.
    pub turns_today: u64,
    /// Turns begun this month.
    pub turns_this_month: u64,
    /// Tokens read and written today.
    pub tokens_today: u64,
    /// Tokens read and written this month.
    pub tokens_this_month: u64,
}

impl From<UsageReport> for UsageInfo {
    fn from(UsageReport { today, month }: UsageReport) -> Self {
        Self {
            turns_today: today.turns,
            turns_this_month: month.turns,
            tokens_today: today.tokens,
            tokens_this_month: month.tokens,
        }
    }
}

/// 429, with the time at which it is free again.
pub(crate) fn usage_exceeded(exceeded: UsageExceeded, now: i64) -> crate::ApiError {
    let UsageExceeded { limit, max, is_of_key, free_at } = exceeded;
    let whose = if is_of_key { "this key" } else { "you" };
    let (unit, period) = match limit {
        "turns_per_day_max" => ("turns", "today"),
        "turns_per_month_max" => ("turns", "this month"),
        "tokens_per_day_max" => ("tokens", "today"),
        _ => ("tokens", "this month"),
    };
    let free = jiff::Timestamp::from_millisecond(free_at).map(|at| at.to_string()).unwrap_or_default();
    let message = format!("usage limit reached: {whose} may use {max} {unit} {period} ({limit})");
    let wait_s = u64::try_from(free_at.saturating_sub(now)).unwrap_or_default().div_ceil(1_000);
    crate::ApiError::too_many("usage_limit", message, wait_s.max(1))
        .param(limit)
        .with_extra("free_at", free_at)
        .remedy(format!("it is available again at {free}; the admin of the server can raise the limit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn person_names_are_normalized_and_ambiguous_ones_rejected() {
        for (text, name) in [
            ("Ann", "ann"),
            (" bob ", "bob"),
            ("ann@example.com", "ann@example.com"),
            ("张伟", "张伟"),
            ("a.b-c_d+e", "a.b-c_d+e"),
        ] {
            assert_eq!(normalize_name(text).ok().as_deref(), Some(name), "{text}");
        }
        let long = "a".repeat(PERSON_NAME_CHARS_MAX + 1);
        for text in ["", " ", "a b", "a/b", "a\u{200b}", "a\u{202e}b", "\u{3164}", "a\n", "..", "a:b", &long]
        {
            assert!(normalize_name(text).is_err(), "{text:?}");
        }
        assert!(normalize_name(&"a".repeat(PERSON_NAME_CHARS_MAX)).is_ok());
    }
}
