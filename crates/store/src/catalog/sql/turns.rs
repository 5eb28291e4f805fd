//! Turns: created, ended, read.

use super::windows::SearchWindow;
use super::{
    CatalogDb, CatalogRow, IndexChange, SqlParam, SqlText, bind, conversations, exists, page_params, people,
    query_one, query_optional, sought_text, sql, to_json, to_sql,
};
use crate::catalog::texts::{preview, replace_nul, validate_id};
use crate::catalog::{
    CatalogLimits, IDEMPOTENCY_MS, IdempotencyKey, NamedCount, NewTurnRow, NextTurn, OpenTurn, PagePosition,
    PageRequest, PathTurn, RatingValue, ResultPage, STATUS_RUNNING, SampleRange, SampleRows, TurnCounts,
    TurnCreation, TurnEnd, TurnFilter, TurnHistoryRow, TurnParent, TurnPlacement, TurnRating, TurnRefusal,
    TurnRow, TurnSample, TurnSummary, TurnTiming, UsageCount,
};
use crate::error::StoreError;
use serde_json::Value;

/// Reads turns in short. The texts are cut to their previews when they have been read.
macro_rules! select_turns {
    ($condition:literal) => {
        sql!(concat!(
            "SELECT t.*, substr(b.input_text, 1, 200) AS input, substr(e.text, 1, 200) AS answer
             FROM turn t JOIN turn_begin b ON b.n = t.n LEFT JOIN turn_end e ON e.n = t.n WHERE ",
            $condition
        ))
    };
}

/// A statement with the condition of a [`TurnFilter`], over the parameters of [`filter_params`].
macro_rules! filtered {
    ($before:expr, $after:expr) => {
        filtered!($before, sqlite: $after, postgres: $after)
    };
    ($before:expr, sqlite: $sqlite:expr, postgres: $postgres:expr) => {
        sql!(
            sqlite: concat!(
                $before,
                filtered!(@common),
                " AND ($7 = '[]' OR t.status IN (SELECT value FROM json_each($7)))",
                $sqlite
            ),
            postgres: concat!(
                $before,
                filtered!(@common),
                " AND (cardinality($7) = 0 OR t.status = ANY ($7))",
                $postgres
            )
        )
    };
    (@common) => {
        " WHERE t.user_id = $1
            AND ($2 IS NULL OR t.conversation_id = $2)
            AND ($3 IS NULL OR t.agent = $3)
            AND ($4 IS NULL OR t.model = $4)
            AND ($5 IS NULL OR t.created_at >= $5)
            AND ($6 IS NULL OR t.created_at < $6)"
    };
}

pub(crate) async fn create(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    turn: &NewTurnRow,
) -> Result<TurnCreation, StoreError> {
    validate_id("user", user)?;
    validate_id("turn_id", &turn.id)?;
    if let Some(key) = &turn.idempotency {
        validate_id("idempotency_key", &key.key)?;
        delete_expired_keys(db, user, turn.created_at).await?;
        if let Some(before) = by_idempotency_key(db, user, key, turn.created_at).await? {
            return Ok(before);
        }
    }
    let counted = people::UncountedUsage::default();
    if let Some(exceeded) = people::exceeded_limit(db, user, &turn.charge, &counted, turn.created_at).await? {
        return Ok(TurnCreation::Refused(TurnRefusal::UsageExceeded(exceeded)));
    }
    let (conversation_id, parent) = match &turn.placement {
        TurnPlacement::Standalone => (None, None),
        TurnPlacement::NewConversation { id, title } => {
            conversations::insert(db, limits, user, id, title.as_deref(), turn.created_at).await?;
            (Some(id.as_str()), None)
        }
        TurnPlacement::InConversation { conversation_id, parent } => {
            let parent = parent.as_ref();
            if let Some(refusal) = check_can_begin(db, limits, user, conversation_id, parent).await? {
                return Ok(TurnCreation::Refused(refusal));
            }
            if let Some(turn_id) = running_in(db, conversation_id).await? {
                return Ok(TurnCreation::ConversationBusy { turn_id });
            }
            (Some(conversation_id.as_str()), parent)
        }
    };
    let input_text = replace_nul(&turn.input_text);
    let new_row = TurnInsert {
        id: &turn.id,
        parent,
        message_id: &turn.message_id,
        agent: &turn.agent,
        model: turn.model.as_deref(),
        mode: turn.mode.as_deref(),
        stored: &turn.stored,
        input_text: &input_text,
        created_at: turn.created_at,
        key_id: turn.charge.key_id.as_deref(),
    };
    insert(db, user, conversation_id, &new_row).await?;
    if let Some(key) = &turn.idempotency {
        let insert = sql!(
            "INSERT INTO idempotency (user_id, key, body_hash, turn_id, created_at) VALUES ($1, $2, $3, $4, $5)"
        );
        let params = bind![user, &key.key, replace_nul(&key.body_hash), &turn.id, turn.created_at];
        db.execute(&insert, params).await?;
    }
    if !turn.files.is_empty() {
        let insert = sql!(
            "INSERT INTO file_use (turn_id, file_id) SELECT $1, id FROM file WHERE user_id = $3 AND id",
            in 2,
            " ON CONFLICT DO NOTHING"
        );
        db.execute(&insert, bind![&turn.id, turn.files.clone(), user]).await?;
    }
    if let Some(conversation_id) = conversation_id {
        let added = conversations::AddedTurn {
            id: &turn.id,
            is_root: parent.is_none(),
            input_text: &input_text,
            at: turn.created_at,
        };
        conversations::turn_added(db, limits, conversation_id, added).await?;
    }
    let one = UsageCount { turns: 1, tokens: 0 };
    people::add_usage(db, user, turn.charge.key_id.as_deref(), one, turn.created_at).await?;
    Ok(TurnCreation::New)
}

/// Reason that a turn could not begin in a conversation although the one that runs there had ended.
pub(crate) async fn refusal_of_next(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    next: &NextTurn,
) -> Result<Option<TurnRefusal>, StoreError> {
    let find =
        sql!("SELECT key_id FROM turn WHERE conversation_id = $1 AND user_id = $2 AND ended_at IS NULL");
    let running: Option<Option<String>> =
        query_optional(db, &find, bind![&next.conversation_id, user], |row| row.get("key_id")).await?;
    let tokens = people::tokens_of(next.running_usage.as_ref());
    let uncounted = running.map(|key_id| people::UncountedUsage { key_id, tokens }).unwrap_or_default();
    if let Some(exceeded) = people::exceeded_limit(db, user, &next.charge, &uncounted, next.now).await? {
        return Ok(Some(TurnRefusal::UsageExceeded(exceeded)));
    }
    check_can_begin(db, limits, user, &next.conversation_id, next.parent.as_ref()).await
}

/// Reason that a turn cannot begin in a conversation, which stays as it is until the end of the transaction, whether or not
/// another one runs there.
async fn check_can_begin(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    conversation_id: &str,
    parent: Option<&TurnParent>,
) -> Result<Option<TurnRefusal>, StoreError> {
    let find = sql!("SELECT turns FROM conversation WHERE id = $1 AND user_id = $2", lock "FOR UPDATE");
    let turns: Option<u64> =
        query_optional(db, &find, bind![conversation_id, user], |row| row.get("turns")).await?;
    let Some(turns) = turns else { return Ok(Some(TurnRefusal::ConversationNotFound)) };
    if let Some(parent) = parent {
        let find = sql!("SELECT 1 FROM turn WHERE id = $1 AND conversation_id = $2 AND user_id = $3");
        if !exists(db, &find, bind![&parent.turn_id, conversation_id, user]).await? {
            return Ok(Some(TurnRefusal::ParentNotFound));
        }
    }
    let max = limits.conversation_turns_max;
    if turns >= max {
        return Err(StoreError::OverLimit { limit: "conversation_turns_max", max });
    }
    Ok(None)
}

pub(super) async fn running_in(
    db: &mut dyn CatalogDb,
    conversation_id: &str,
) -> Result<Option<String>, StoreError> {
    let find = sql!("SELECT id FROM turn WHERE conversation_id = $1 AND ended_at IS NULL");
    query_optional(db, &find, bind![conversation_id], |row| row.get("id")).await
}

pub(super) struct TurnInsert<'a> {
    pub id: &'a str,
    pub parent: Option<&'a TurnParent>,
    pub message_id: &'a str,
    pub agent: &'a str,
    pub model: Option<&'a str>,
    pub mode: Option<&'a str>,
    pub stored: &'a str,
    pub input_text: &'a str,
    pub created_at: i64,
    pub key_id: Option<&'a str>,
}

pub(super) async fn insert(
    db: &mut dyn CatalogDb,
    user: &str,
    conversation_id: Option<&str>,
    new_row: &TurnInsert<'_>,
) -> Result<(), StoreError> {
    let insert = sql!(
        sqlite: "INSERT INTO turn (id, user_id, conversation_id, parent_id, parent_seq, message_id, agent, model, mode,
                status, created_at, key_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $13) RETURNING n",
        postgres: "INSERT INTO turn (id, user_id, conversation_id, parent_id, parent_seq, message_id, agent, model, mode,
                status, created_at, replica, key_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING n"
    )
    .or_exists("turn");
    let parent_seq = new_row.parent.and_then(|parent| parent.seq);
    let replica = db.replica();
    let params = bind![
        new_row.id,
        user,
        conversation_id,
        new_row.parent.map(|parent| parent.turn_id.as_str()),
        parent_seq.map(|seq| to_sql("parent_seq", seq)).transpose()?,
        replace_nul(new_row.message_id),
        replace_nul(new_row.agent),
        new_row.model.map(replace_nul),
        new_row.mode.map(replace_nul),
        STATUS_RUNNING,
        new_row.created_at,
        replica,
        new_row.key_id,
    ];
    let n: i64 = query_one(db, &insert, params, |row| row.get("n")).await?;
    let insert = sql!("INSERT INTO turn_begin (n, input_text, stored) VALUES ($1, $2, $3)");
    db.execute(&insert, bind![n, new_row.input_text, new_row.stored]).await?;
    // A turn without a conversation is not searched.
    if conversation_id.is_some() {
        db.update_index(IndexChange::Input(n, new_row.input_text)).await?;
    }
    Ok(())
}

pub(crate) async fn by_idempotency_key(
    db: &mut dyn CatalogDb,
    user: &str,
    key: &IdempotencyKey,
    now: i64,
) -> Result<Option<TurnCreation>, StoreError> {
    let find = sql!(
        "SELECT body_hash, turn_id FROM idempotency WHERE user_id = $1 AND key = $2 AND created_at > $3"
    );
    let params = bind![user, &key.key, now.saturating_sub(IDEMPOTENCY_MS)];
    let before: Option<(String, String)> =
        query_optional(db, &find, params, |row| Ok((row.get("body_hash")?, row.get("turn_id")?))).await?;
    let Some((body_hash, turn_id)) = before else { return Ok(None) };
    if body_hash != key.body_hash {
        return Ok(Some(TurnCreation::KeyReused));
    }
    Ok(get(db, user, &turn_id).await?.map(|turn| TurnCreation::Replayed(Box::new(turn))))
}

/// Deletes keys that have expired. In PostgreSQL those of this user: only one user's transactions follow each other.
async fn delete_expired_keys(db: &mut dyn CatalogDb, user: &str, now: i64) -> Result<(), StoreError> {
    let delete = sql!(
        sqlite: "DELETE FROM idempotency WHERE created_at <= $2",
        postgres: "DELETE FROM idempotency WHERE user_id = $1 AND created_at <= $2"
    );
    db.execute(&delete, bind![user, now.saturating_sub(IDEMPOTENCY_MS)]).await?;
    Ok(())
}

pub(crate) async fn get(
    db: &mut dyn CatalogDb,
    user: &str,
    turn_id: &str,
) -> Result<Option<TurnRow>, StoreError> {
    let get = sql!(
        "SELECT t.*, b.input_text, b.stored, e.adds, e.text, e.usage
         FROM turn t JOIN turn_begin b ON b.n = t.n LEFT JOIN turn_end e ON e.n = t.n
         WHERE t.id = $1 AND t.user_id = $2"
    );
    query_optional(db, &get, bind![turn_id, user], turn_row).await
}

pub(crate) async fn end(
    db: &mut dyn CatalogDb,
    user: &str,
    turn_id: &str,
    end: &TurnEnd,
) -> Result<bool, StoreError> {
    let Some(EndedTurn { key_id }) = write_end(db, user, turn_id, end).await? else { return Ok(false) };
    let tokens = UsageCount { turns: 0, tokens: people::tokens_of(end.usage.as_ref()) };
    people::add_usage(db, user, key_id.as_deref(), tokens, end.ended_at).await?;
    Ok(true)
}

pub(crate) async fn rate(
    db: &mut dyn CatalogDb,
    user: &str,
    turn_id: &str,
    rating: Option<&TurnRating>,
) -> Result<bool, StoreError> {
    let update = sql!(
        "UPDATE turn SET rating = $3, rating_reason = $4, rated_at = $5
         WHERE id = $1 AND user_id = $2 AND ended_at IS NOT NULL RETURNING n"
    );
    let value = rating.map(|rating| i64::from(rating.value == RatingValue::Up));
    let reason = rating.map(|rating| replace_nul(&rating.reason).into_owned());
    let rated_at = rating.map(|rating| rating.rated_at);
    exists(db, &update, bind![turn_id, user, value, reason, rated_at]).await
}

/// A turn that has ended just now.
pub(super) struct EndedTurn {
    key_id: Option<String>,
}

/// Ends a turn without counting its tokens: an imported one has used nothing here.
pub(super) async fn write_end(
    db: &mut dyn CatalogDb,
    user: &str,
    turn_id: &str,
    end: &TurnEnd,
) -> Result<Option<EndedTurn>, StoreError> {
    if end.status == STATUS_RUNNING {
        return Err(StoreError::invalid("status", "a turn that runs has not ended"));
    }
    let update = sql!(
        "UPDATE turn SET status = $3, ended_at = $4, first_content_ms = $5, writing_ms = $6, output_tokens = $7
         WHERE id = $1 AND user_id = $2 AND ended_at IS NULL RETURNING n, conversation_id, key_id"
    );
    let params = bind![
        turn_id,
        user,
        replace_nul(&end.status),
        end.ended_at,
        end.pace.first_content_ms,
        end.pace.writing_ms,
        end.pace.output_tokens,
    ];
    let ended: Option<(i64, Option<String>, Option<String>)> = query_optional(db, &update, params, |row| {
        Ok((row.get("n")?, row.get("conversation_id")?, row.get("key_id")?))
    })
    .await?;
    let Some((n, conversation_id, key_id)) = ended else { return Ok(None) };
    let text = replace_nul(&end.text);
    let usage = end.usage.as_ref().map(to_json).transpose()?;
    let insert = sql!("INSERT INTO turn_end (n, adds, text, usage) VALUES ($1, $2, $3, $4)");
    db.execute(&insert, bind![n, replace_nul(&end.history_json), text.as_ref(), usage]).await?;
    if let Some(conversation_id) = conversation_id {
        db.update_index(IndexChange::Answer(n, &text)).await?;
        conversations::touch(db, &conversation_id, end.ended_at).await?;
    }
    Ok(Some(EndedTurn { key_id }))
}

/// The calls of a turn are counted once its row is on the page.
macro_rules! select_history {
    () => {
        "SELECT t.*, substr(b.input_text, 1, 200) AS input, substr(e.text, 1, 200) AS answer, e.usage,
        (SELECT count(*) FROM call c WHERE c.turn_id = t.id) AS calls,
        (SELECT count(*) FROM call c WHERE c.turn_id = t.id
            AND c.status IN ('error', 'timed_out', 'unknown')) AS failed_calls
     FROM turn t JOIN turn_begin b ON b.n = t.n LEFT JOIN turn_end e ON e.n = t.n"
    };
}
macro_rules! history_page {
    () => {
        " AND (t.created_at, t.id) < (coalesce($8, 9223372036854775807), coalesce($9, ''))
     ORDER BY t.created_at DESC, t.id DESC LIMIT $10"
    };
}

/// A page of turns.
pub(crate) const LIST: SqlText = filtered!(select_history!(), history_page!());

/// Turns with a text.
const SEARCH: SqlText = filtered!(
    select_history!(),
    sqlite: concat!(
        " AND (contains_folded(b.input_text, $11) OR contains_folded(e.text, $11))",
        history_page!()
    ),
    postgres: concat!(" AND (b.input_text ~ $11 OR e.text ~ $11)", history_page!())
);

pub(crate) async fn list(
    db: &mut dyn CatalogDb,
    user: &str,
    filter: &TurnFilter,
    page: &PageRequest,
) -> Result<ResultPage<TurnHistoryRow>, StoreError> {
    let (at, id, rows) = page_params(page)?;
    let mut params = filter_params(user, filter);
    params.extend([SqlParam::from(at), SqlParam::from(id), SqlParam::from(rows)]);
    let turns = db.query(&LIST, &params, history_row).await?;
    Ok(ResultPage::from_rows(turns, page.rows(), position))
}

/// Turns with a text in input or answer: a page, or as much of it as is found in the time of a search.
pub(crate) async fn search(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    text: &str,
    filter: &TurnFilter,
    page: &PageRequest,
) -> Result<ResultPage<TurnHistoryRow>, StoreError> {
    let Some(sought) = sought_text(limits, Some(text))? else { return list(db, user, filter, page).await };
    let edge = sql!(
        "SELECT created_at AS at FROM turn WHERE user_id = $1 AND created_at < coalesce($2, 9223372036854775807)
         ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET $3"
    );
    let times = (filter.from, filter.until);
    let mut window = SearchWindow::first(db, limits, (&edge, user), times, page).await?;
    let mut found = Vec::new();
    loop {
        let of_window = TurnFilter { from: window.from(), ..filter.clone() };
        let mut params = filter_params(user, &of_window);
        let (at, id) = window.before();
        let wanted = i64::from(page.rows()) + 1 - i64::try_from(found.len()).unwrap_or(0);
        params.extend([
            SqlParam::from(at),
            SqlParam::from(id),
            SqlParam::from(wanted),
            SqlParam::Sought(Some(sought)),
        ]);
        found.extend(db.query(&SEARCH, &params, history_row).await?);
        if found.len() > page.rows() as usize || !window.advance(db).await? {
            return Ok(window.into_page(found, page.rows(), position));
        }
    }
}

fn history_row(row: &dyn CatalogRow) -> Result<TurnHistoryRow, StoreError> {
    Ok(TurnHistoryRow {
        turn: turn_summary(row)?,
        mode: row.get("mode")?,
        usage: row.optional_json("usage")?,
        pace: pace(row)?,
        calls: row.get("calls")?,
        failed_calls: row.get("failed_calls")?,
    })
}

fn position(row: &TurnHistoryRow) -> PagePosition {
    PagePosition { at: row.turn.created_at, id: row.turn.id.clone() }
}

pub(crate) async fn count(
    db: &mut dyn CatalogDb,
    user: &str,
    filter: &TurnFilter,
) -> Result<TurnCounts, StoreError> {
    // Read once, however many things are counted.
    let count = filtered!(
        "SELECT t.status, t.model, t.agent, count(*) AS count FROM turn t",
        " GROUP BY t.status, t.model, t.agent"
    );
    let groups: Vec<(String, Option<String>, String, u64)> = db
        .query(&count, &filter_params(user, filter), |row| {
            Ok((row.get("status")?, row.get("model")?, row.get("agent")?, row.get("count")?))
        })
        .await?;
    Ok(TurnCounts {
        total: groups.iter().map(|(.., count)| count).sum(),
        by_status: NamedCount::sums(groups.iter().map(|(status, .., count)| (status, *count))),
        by_model: NamedCount::sums(
            groups.iter().filter_map(|(_, model, _, count)| Some((model.as_ref()?, *count))),
        ),
        by_agent: NamedCount::sums(groups.iter().map(|(_, _, agent, count)| (agent, *count))),
    })
}

fn filter_params<'a>(user: &'a str, filter: &'a TurnFilter) -> Vec<SqlParam<'a>> {
    vec![
        user.into(),
        (&filter.conversation_id).into(),
        (&filter.agent).into(),
        (&filter.model).into(),
        filter.from.into(),
        filter.until.into(),
        filter.statuses.clone().into(),
    ]
}

pub(crate) async fn tree(
    db: &mut dyn CatalogDb,
    user: &str,
    conversation_id: &str,
) -> Result<Vec<TurnSummary>, StoreError> {
    let list = select_turns!("t.conversation_id = $1 AND t.user_id = $2 ORDER BY t.created_at, t.n");
    db.query(&list, bind![conversation_id, user], turn_summary).await
}

/// Walks from the turn to the beginning. The position at which a turn is cut is in its successor.
pub(crate) async fn path(
    db: &mut dyn CatalogDb,
    user: &str,
    turn_id: &str,
) -> Result<Vec<PathTurn>, StoreError> {
    let walk = sql!(
        "WITH RECURSIVE ancestors (n, id, parent_id, parent_seq, cut_at, length) AS (
            SELECT n, id, parent_id, parent_seq, CAST(NULL AS BIGINT), 1 FROM turn WHERE id = $1 AND user_id = $2
            UNION ALL
            SELECT t.n, t.id, t.parent_id, t.parent_seq, ancestors.parent_seq, ancestors.length + 1
            FROM ancestors JOIN turn t ON t.id = ancestors.parent_id AND t.user_id = $2
         )
         SELECT ancestors.id AS id, ancestors.cut_at AS cut_at, e.adds AS adds
         FROM ancestors LEFT JOIN turn_end e ON e.n = ancestors.n ORDER BY ancestors.length DESC"
    );
    db.query(&walk, bind![turn_id, user], |row| {
        Ok(PathTurn { id: row.get("id")?, cut_at: row.get("cut_at")?, history_json: row.get("adds")? })
    })
    .await
}

/// Turns without an end, in a store that only this server uses.
#[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "PostgreSQL asks who owns them as well"))]
pub(crate) async fn open_turns(db: &mut dyn CatalogDb) -> Result<Vec<OpenTurn>, StoreError> {
    let list = sql!(
        "SELECT t.id, t.user_id, t.conversation_id, b.stored FROM turn t JOIN turn_begin b ON b.n = t.n
         WHERE t.ended_at IS NULL ORDER BY t.n"
    );
    db.query(&list, bind![], open_turn).await
}

pub(crate) fn open_turn(row: &dyn CatalogRow) -> Result<OpenTurn, StoreError> {
    Ok(OpenTurn {
        id: row.get("id")?,
        user: row.get("user_id")?,
        conversation_id: row.get("conversation_id")?,
        stored: row.get("stored")?,
    })
}

/// Figures of the turns of a time.
pub(crate) async fn samples(
    db: &mut dyn CatalogDb,
    user: &str,
    range: &SampleRange,
) -> Result<SampleRows<TurnSample>, StoreError> {
    let list = sql!(
        "SELECT t.created_at, t.status, t.agent, t.model, t.conversation_id, t.first_content_ms, t.writing_ms,
            t.output_tokens, t.rating, e.usage
         FROM turn t LEFT JOIN turn_end e ON e.n = t.n
         WHERE t.user_id = $1 AND t.created_at >= $2 AND t.created_at < $3
         ORDER BY t.created_at DESC, t.id DESC LIMIT $4"
    );
    let params = bind![user, range.from, range.until, i64::from(range.rows_max) + 1];
    let rows = db.query(&list, params, |row| {
        let usage: Option<Value> = row.optional_json("usage")?;
        Ok(TurnSample {
            created_at: row.get("created_at")?,
            status: row.get("status")?,
            agent: row.get("agent")?,
            model: row.get("model")?,
            conversation_id: row.get("conversation_id")?,
            input_tokens: usage.and_then(|usage| usage.get("input_tokens")?.as_i64()),
            pace: pace(row)?,
            rating: rating_value(row)?,
        })
    });
    Ok(SampleRows::from_rows(rows.await?, range.rows_max))
}

fn parent(row: &dyn CatalogRow) -> Result<Option<TurnParent>, StoreError> {
    let Some(turn_id) = row.get("parent_id")? else { return Ok(None) };
    Ok(Some(TurnParent { turn_id, seq: row.get("parent_seq")? }))
}

fn turn_row(row: &dyn CatalogRow) -> Result<TurnRow, StoreError> {
    let ended_at: Option<i64> = row.get("ended_at")?;
    let end = match ended_at {
        None => None,
        Some(ended_at) => Some(TurnEnd {
            status: row.get("status")?,
            history_json: row.get("adds")?,
            text: row.get("text")?,
            usage: row.optional_json("usage")?,
            pace: pace(row)?,
            ended_at,
        }),
    };
    Ok(TurnRow {
        id: row.get("id")?,
        user: row.get("user_id")?,
        conversation_id: row.get("conversation_id")?,
        parent: parent(row)?,
        message_id: row.get("message_id")?,
        stored: row.get("stored")?,
        agent: row.get("agent")?,
        model: row.get("model")?,
        mode: row.get("mode")?,
        input_text: row.get("input_text")?,
        created_at: row.get("created_at")?,
        end,
        rating: rating(row)?,
    })
}

fn rating_value(row: &dyn CatalogRow) -> Result<Option<RatingValue>, StoreError> {
    let value: Option<i64> = row.get("rating")?;
    Ok(value.map(|value| if value > 0 { RatingValue::Up } else { RatingValue::Down }))
}

fn rating(row: &dyn CatalogRow) -> Result<Option<TurnRating>, StoreError> {
    let Some(value) = rating_value(row)? else { return Ok(None) };
    let reason: Option<String> = row.get("rating_reason")?;
    let rated_at: Option<i64> = row.get("rated_at")?;
    Ok(Some(TurnRating { value, reason: reason.unwrap_or_default(), rated_at: rated_at.unwrap_or_default() }))
}

fn pace(row: &dyn CatalogRow) -> Result<TurnTiming, StoreError> {
    Ok(TurnTiming {
        first_content_ms: row.get("first_content_ms")?,
        writing_ms: row.get("writing_ms")?,
        output_tokens: row.get("output_tokens")?,
    })
}

fn turn_summary(row: &dyn CatalogRow) -> Result<TurnSummary, StoreError> {
    let input: String = row.get("input")?;
    let answer: Option<String> = row.get("answer")?;
    Ok(TurnSummary {
        id: row.get("id")?,
        conversation_id: row.get("conversation_id")?,
        parent: parent(row)?,
        message_id: row.get("message_id")?,
        agent: row.get("agent")?,
        model: row.get("model")?,
        input: preview(&input),
        answer: preview(&answer.unwrap_or_default()),
        status: row.get("status")?,
        created_at: row.get("created_at")?,
        ended_at: row.get("ended_at")?,
        rating: rating(row)?,
    })
}
