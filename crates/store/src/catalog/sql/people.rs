//! People, and what each person and each key has used.

use super::removal::{RemovalRow, deleted_user, removal_row, remove_conversation, remove_turns};
use super::{
    CatalogDb, CatalogRow, bind, check_count, exists, page_params, query_optional, sql, to_json, to_sql,
};
use crate::catalog::people::{day_of, month_start};
use crate::catalog::texts::validate_id;
use crate::catalog::{
    CatalogLimits, KeyLimits, KeyRow, PagePosition, PageRequest, PersonChange, PersonRow, RemovalSummary,
    ResultPage, TurnCharge, UsageCount, UsageExceeded, UsageOwner, UsageReport,
};
use crate::error::StoreError;
use serde_json::Value;

/// Approximate number of turns removed in one commit: other writes wait during it.
const TURNS_PER_COMMIT: usize = 200;

pub(crate) async fn add(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    person: &PersonRow,
) -> Result<(), StoreError> {
    validate_id("name", &person.name)?;
    let count = sql!("SELECT count(*) AS count FROM person");
    check_count(db, &count, bind![], "people_max", limits.people_max).await?;
    let insert = sql!(
        "INSERT INTO person (name, is_admin, limits, created_at, removed_at) VALUES ($1, $2, $3, $4, $5)"
    )
    .or_exists("person");
    let limits = to_json(&person.limits)?;
    let is_admin = i64::from(person.is_admin);
    db.execute(&insert, bind![&person.name, is_admin, limits, person.created_at, person.removed_at]).await?;
    Ok(())
}

pub(crate) async fn get(db: &mut dyn CatalogDb, name: &str) -> Result<Option<PersonRow>, StoreError> {
    query_optional(db, &sql!("SELECT * FROM person WHERE name = $1"), bind![name], person).await
}

pub(crate) async fn list(
    db: &mut dyn CatalogDb,
    page: &PageRequest,
) -> Result<ResultPage<PersonRow>, StoreError> {
    let (at, name, rows) = page_params(page)?;
    let list = sql!(
        "SELECT * FROM person WHERE $1 IS NULL OR (created_at, name) < ($1, $2)
         ORDER BY created_at DESC, name DESC LIMIT $3"
    );
    let people = db.query(&list, bind![at, name, rows], person).await?;
    Ok(ResultPage::from_rows(people, page.rows(), |person| PagePosition {
        at: person.created_at,
        id: person.name.clone(),
    }))
}

pub(crate) async fn change(
    db: &mut dyn CatalogDb,
    name: &str,
    change: &PersonChange,
) -> Result<Option<PersonRow>, StoreError> {
    let Some(before) = get(db, name).await? else { return Ok(None) };
    let after = PersonRow {
        is_admin: change.is_admin.unwrap_or(before.is_admin),
        limits: change.limits.unwrap_or(before.limits),
        removed_at: change.removed_at.unwrap_or(before.removed_at),
        ..before
    };
    let update = sql!("UPDATE person SET is_admin = $2, limits = $3, removed_at = $4 WHERE name = $1");
    let is_admin = i64::from(after.is_admin);
    db.execute(&update, bind![name, is_admin, to_json(&after.limits)?, after.removed_at]).await?;
    Ok(Some(after))
}

fn person(row: &dyn CatalogRow) -> Result<PersonRow, StoreError> {
    Ok(PersonRow {
        name: row.get("name")?,
        is_admin: row.get::<i64>("is_admin")? != 0,
        limits: row.json("limits")?,
        created_at: row.get("created_at")?,
        removed_at: row.get("removed_at")?,
    })
}

/// Deletes a part of a person's data; the last part deletes the row of the person. Running turns stay, with
/// their conversations.
pub(crate) async fn delete_data(db: &mut dyn CatalogDb, user: &str) -> Result<RemovalSummary, StoreError> {
    let mut summary = RemovalSummary::default();
    let list = sql!(
        "SELECT n, id FROM conversation c WHERE user_id IN ($1, $2)
            AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.conversation_id = c.id AND t.ended_at IS NULL)
         ORDER BY updated_at LIMIT $3",
        lock "FOR UPDATE SKIP LOCKED"
    );
    let deleted = deleted_user(user);
    let conversations = db.query(&list, bind![user, &deleted, TURNS_PER_COMMIT as i64], removal_row).await?;
    for conversation in &conversations {
        if summary.turns.len() >= TURNS_PER_COMMIT {
            break;
        }
        remove_conversation(db, conversation, &mut summary).await?;
    }
    if summary.turns.len() < TURNS_PER_COMMIT {
        let list = sql!(
            "SELECT n, id FROM turn WHERE user_id = $1 AND conversation_id IS NULL AND ended_at IS NOT NULL
             ORDER BY created_at LIMIT $2",
            lock "FOR UPDATE SKIP LOCKED"
        );
        let turns: Vec<RemovalRow> =
            db.query(&list, bind![user, TURNS_PER_COMMIT as i64], removal_row).await?;
        remove_turns(db, &turns, &mut summary).await?;
    }
    let conversation = sql!("SELECT 1 FROM conversation WHERE user_id IN ($1, $2) LIMIT 1");
    let turn = sql!("SELECT 1 FROM turn WHERE user_id = $1 LIMIT 1");
    let is_left =
        exists(db, &conversation, bind![user, &deleted]).await? || exists(db, &turn, bind![user]).await?;
    summary.has_more = is_left && (summary.conversations > 0 || !summary.turns.is_empty());
    if !is_left {
        delete_rest(db, user, &mut summary).await?;
    }
    Ok(summary)
}

async fn delete_rest(
    db: &mut dyn CatalogDb,
    user: &str,
    summary: &mut RemovalSummary,
) -> Result<(), StoreError> {
    let files = sql!("DELETE FROM file WHERE user_id = $1 RETURNING hash");
    let hashes: Vec<String> = db.query(&files, bind![user], |row| row.get("hash")).await?;
    summary.files += hashes.len() as u64;
    summary.blobs.extend(hashes);
    let usage = sql!(
        "DELETE FROM usage_day WHERE owner = $1 OR owner IN (SELECT 'k:' || id FROM api_key WHERE user_id = $2)"
    );
    db.execute(&usage, bind![UsageOwner::Person(user).stored(), user]).await?;
    for delete in [
        sql!("DELETE FROM document WHERE user_id = $1"),
        sql!("DELETE FROM remembered WHERE user_id = $1"),
        sql!("DELETE FROM api_key WHERE user_id = $1"),
        sql!("DELETE FROM idempotency WHERE user_id = $1"),
        sql!("DELETE FROM person WHERE name = $1"),
    ] {
        db.execute(&delete, bind![user]).await?;
    }
    Ok(())
}

/// Tokens of a turn that runs: they are counted when it ends, for its user and for its key.
#[derive(Clone, Debug, Default)]
pub(super) struct UncountedUsage {
    pub key_id: Option<String>,
    pub tokens: u64,
}

/// The limit of a user or a key that is reached, including usage that is not stored yet.
pub(super) async fn exceeded_limit(
    db: &mut dyn CatalogDb,
    user: &str,
    charge: &TurnCharge,
    uncounted: &UncountedUsage,
    now: i64,
) -> Result<Option<UsageExceeded>, StoreError> {
    let key = charge.key_id.as_deref();
    let limited = [
        (Some(UsageOwner::Person(user)), charge.user_limits, false),
        (key.map(UsageOwner::Key), charge.key_limits, true),
    ];
    for (owner, limits, is_of_key) in limited {
        let Some(owner) = owner.filter(|_| !limits.is_unlimited()) else { continue };
        let used = usage_of(db, &[owner.stored()], now).await?;
        let mut used = used.into_iter().next().map(|(_, used)| used).unwrap_or_default();
        if !is_of_key || uncounted.key_id == charge.key_id {
            used.today.tokens = used.today.tokens.saturating_add(uncounted.tokens);
            used.month.tokens = used.month.tokens.saturating_add(uncounted.tokens);
        }
        if let Some((limit, max, period)) = limits.exceeded(&used) {
            let free_at = period.next_start(now);
            return Ok(Some(UsageExceeded { limit, max, is_of_key, free_at }));
        }
    }
    Ok(None)
}

/// Counts a request that is no turn, unless a limit is reached.
pub(crate) async fn charge(
    db: &mut dyn CatalogDb,
    user: &str,
    charge: &TurnCharge,
    count: UsageCount,
    now: i64,
) -> Result<Option<UsageExceeded>, StoreError> {
    let exceeded = exceeded_limit(db, user, charge, &UncountedUsage::default(), now).await?;
    if exceeded.is_none() {
        add_usage(db, user, charge.key_id.as_deref(), count, now).await?;
    }
    Ok(exceeded)
}

/// Counts for a user and for a key.
pub(crate) async fn add_usage(
    db: &mut dyn CatalogDb,
    user: &str,
    key: Option<&str>,
    count: UsageCount,
    now: i64,
) -> Result<(), StoreError> {
    if count == UsageCount::default() {
        return Ok(());
    }
    let add = sql!(
        "INSERT INTO usage_day (owner, day, turns, tokens)
         SELECT owner, $3, $4, $5 FROM (SELECT $1 AS owner UNION ALL SELECT $2 AS owner) AS owners
         WHERE owner IS NOT NULL
         ON CONFLICT (owner, day) DO UPDATE
            SET turns = usage_day.turns + excluded.turns, tokens = usage_day.tokens + excluded.tokens"
    );
    let owner = UsageOwner::Person(user).stored();
    let key = key.map(|id| UsageOwner::Key(id).stored());
    let (turns, tokens) = (to_sql("turns", count.turns)?, to_sql("tokens", count.tokens)?);
    db.execute(&add, bind![owner, key, day_of(now), turns, tokens]).await?;
    Ok(())
}

/// Use by owner, in no order; who has used nothing is not among them.
pub(crate) async fn usage_of(
    db: &mut dyn CatalogDb,
    owners: &[String],
    now: i64,
) -> Result<Vec<(String, UsageReport)>, StoreError> {
    let today = day_of(now);
    let sums = sql!(
        "SELECT owner,
            CAST(sum(CASE WHEN day = $2 THEN turns ELSE 0 END) AS BIGINT) AS day_turns,
            CAST(sum(CASE WHEN day = $2 THEN tokens ELSE 0 END) AS BIGINT) AS day_tokens,
            CAST(sum(turns) AS BIGINT) AS month_turns, CAST(sum(tokens) AS BIGINT) AS month_tokens
         FROM usage_day WHERE day BETWEEN $3 AND $2 AND owner",
        in 1,
        " GROUP BY owner"
    );
    db.query(&sums, bind![owners.to_vec(), today, month_start(today)], |row| {
        let count = |turns: &str, tokens: &str| {
            Ok::<_, StoreError>(UsageCount { turns: row.get(turns)?, tokens: row.get(tokens)? })
        };
        let today = count("day_turns", "day_tokens")?;
        Ok((row.get("owner")?, UsageReport { today, month: count("month_turns", "month_tokens")? }))
    })
    .await
}

/// Reports in the order of the owners.
pub(crate) async fn reports(
    db: &mut dyn CatalogDb,
    owners: &[String],
    now: i64,
) -> Result<Vec<UsageReport>, StoreError> {
    let used: std::collections::HashMap<_, _> = usage_of(db, owners, now).await?.into_iter().collect();
    Ok(owners.iter().map(|owner| used.get(owner).copied().unwrap_or_default()).collect())
}

/// All tokens of a turn, from its usage.
pub(crate) fn tokens_of(usage: Option<&Value>) -> u64 {
    let Some(usage) = usage else { return 0 };
    let number = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
    // Where writing to a cache is counted, the prompt out of the cache is counted apart.
    let cached = match usage.get("cache_written_tokens").and_then(Value::as_u64) {
        Some(written) => written.saturating_add(number("cached_input_tokens")),
        None => 0,
    };
    let tokens = number("input_tokens").saturating_add(number("output_tokens")).saturating_add(cached);
    // What no upstream can mean is not summed up.
    tokens.min(u64::from(u32::MAX))
}

pub(crate) async fn set_key_limits(
    db: &mut dyn CatalogDb,
    user: &str,
    id: &str,
    limits: &KeyLimits,
) -> Result<bool, StoreError> {
    let update = sql!("UPDATE api_key SET limits = $3 WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL");
    Ok(db.execute(&update, bind![id, user, to_json(limits)?]).await? > 0)
}

/// Keys of a user, or of all people, newest first.
pub(crate) async fn keys(
    db: &mut dyn CatalogDb,
    user: Option<&str>,
    page: &PageRequest,
) -> Result<ResultPage<KeyRow>, StoreError> {
    let (at, id, rows) = page_params(page)?;
    let keys = match user {
        Some(user) => {
            let list = sql!(
                "SELECT * FROM api_key WHERE user_id = $1 AND ($2 IS NULL OR (created_at, id) < ($2, $3))
                 ORDER BY created_at DESC, id DESC LIMIT $4"
            );
            db.query(&list, bind![user, at, id, rows], super::keys::key).await?
        }
        None => {
            let list = sql!(
                "SELECT * FROM api_key WHERE $1 IS NULL OR (created_at, id) < ($1, $2)
                 ORDER BY created_at DESC, id DESC LIMIT $3"
            );
            db.query(&list, bind![at, id, rows], super::keys::key).await?
        }
    };
    Ok(ResultPage::from_rows(keys, page.rows(), |key| PagePosition {
        at: key.created_at,
        id: key.id.clone(),
    }))
}

/// Revokes all keys of a person and returns their ids.
pub(crate) async fn revoke_keys(
    db: &mut dyn CatalogDb,
    user: &str,
    now: i64,
) -> Result<Vec<String>, StoreError> {
    let revoke =
        sql!("UPDATE api_key SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL RETURNING id");
    db.query(&revoke, bind![user, now], |row| row.get("id")).await
}
