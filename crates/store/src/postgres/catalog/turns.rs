//! Turns: begun, ended, found again.

use super::rows::{
    exists_error, map_rows, optional_json, optional_unsigned, sanitize_param, to_json, to_sql,
};
use super::{DbConnection, conversations, search};
use crate::catalog::texts::{preview, replace_nul, validate_id};
use crate::catalog::{
    CatalogLimits, IDEMPOTENCY_MS, IdempotencyKey, NewTurnRow, OpenTurn, PagePosition, PageRequest, PathTurn,
    ResultPage, STATUS_RUNNING, SampleRange, SampleRows, TurnCreation, TurnEnd, TurnFilter, TurnParent,
    TurnPlacement, TurnRow, TurnSample, TurnSummary, TurnTiming,
};
use crate::error::StoreError;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row};

/// All of a turn.
const SELECT_TURN: &str = "SELECT t.*, b.input_text, b.stored, e.adds, e.text, e.usage
    FROM turn t JOIN turn_begin b ON b.n = t.n LEFT JOIN turn_end e ON e.n = t.n";

/// A turn in short.
const SELECT_SUMMARY: &str = "SELECT t.*, left(b.input_text, 200) AS input, left(e.text, 200) AS answer
    FROM turn t JOIN turn_begin b ON b.n = t.n LEFT JOIN turn_end e ON e.n = t.n";

pub(super) async fn create(
    db: DbConnection<'_>,
    limits: &CatalogLimits,
    replica: i32,
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
    let (conversation_id, parent) = match &turn.placement {
        TurnPlacement::Standalone => (None, None),
        TurnPlacement::NewConversation { id, title } => {
            conversations::insert(db, limits, user, id, title.as_deref(), turn.created_at).await?;
            (Some(id.as_str()), None)
        }
        TurnPlacement::InConversation { conversation_id, parent } => {
            if let Some(rejection) =
                check_can_begin(db, limits, user, conversation_id, parent.as_ref()).await?
            {
                return Ok(rejection);
            }
            (Some(conversation_id.as_str()), parent.as_ref())
        }
    };
    let input_text = replace_nul(&turn.input_text);
    let new_row = PostgresTurnInsert {
        id: &turn.id,
        parent,
        message_id: &turn.message_id,
        agent: &turn.agent,
        model: turn.model.as_deref(),
        mode: turn.mode.as_deref(),
        stored: &turn.stored,
        input_text: &input_text,
        created_at: turn.created_at,
    };
    insert(db, replica, user, conversation_id, &new_row).await?;
    if let Some(key) = &turn.idempotency {
        sqlx::query(
            "INSERT INTO idempotency (user_id, key, body_hash, turn_id, created_at) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(user)
        .bind(&key.key)
        .bind(replace_nul(&key.body_hash))
        .bind(&turn.id)
        .bind(turn.created_at)
        .execute(&mut *db)
        .await?;
    }
    let files: Vec<String> = turn.files.iter().map(|file| sanitize_param(file).into_owned()).collect();
    sqlx::query(
        "INSERT INTO file_use (turn_id, file_id) SELECT $1, id FROM file WHERE id = ANY ($2) AND user_id = $3
         ON CONFLICT DO NOTHING",
    )
    .bind(&turn.id)
    .bind(files)
    .bind(user)
    .execute(&mut *db)
    .await?;
    if let Some(conversation_id) = conversation_id {
        conversations::turn_added(db, limits, conversation_id, &turn.id, &input_text, turn.created_at)
            .await?;
    }
    Ok(TurnCreation::New)
}

/// Reason that a turn cannot begin in a conversation, which is locked until the end of the transaction.
async fn check_can_begin(
    db: DbConnection<'_>,
    limits: &CatalogLimits,
    user: &str,
    conversation_id: &str,
    parent: Option<&TurnParent>,
) -> Result<Option<TurnCreation>, StoreError> {
    let turns: Option<i64> =
        sqlx::query_scalar("SELECT turns FROM conversation WHERE id = $1 AND user_id = $2 FOR UPDATE")
            .bind(sanitize_param(conversation_id))
            .bind(user)
            .fetch_optional(&mut *db)
            .await?;
    let Some(turns) = turns else { return Ok(Some(TurnCreation::ConversationNotFound)) };
    if let Some(parent) = parent {
        let parent_exists =
            sqlx::query("SELECT 1 FROM turn WHERE id = $1 AND conversation_id = $2 AND user_id = $3")
                .bind(sanitize_param(&parent.turn_id))
                .bind(conversation_id)
                .bind(user)
                .fetch_optional(&mut *db)
                .await?;
        if parent_exists.is_none() {
            return Ok(Some(TurnCreation::ParentNotFound));
        }
    }
    if let Some(turn_id) = running_in(db, conversation_id).await? {
        return Ok(Some(TurnCreation::ConversationBusy { turn_id }));
    }
    let max = limits.conversation_turns_max;
    if u64::try_from(turns).unwrap_or_default() >= max {
        return Err(StoreError::OverLimit { limit: "conversation_turns_max", max });
    }
    Ok(None)
}

pub(super) async fn running_in(
    db: DbConnection<'_>,
    conversation_id: &str,
) -> Result<Option<String>, StoreError> {
    Ok(sqlx::query_scalar("SELECT id FROM turn WHERE conversation_id = $1 AND ended_at IS NULL")
        .bind(conversation_id)
        .fetch_optional(db)
        .await?)
}

pub(super) struct PostgresTurnInsert<'a> {
    pub id: &'a str,
    pub parent: Option<&'a TurnParent>,
    pub message_id: &'a str,
    pub agent: &'a str,
    pub model: Option<&'a str>,
    pub mode: Option<&'a str>,
    pub stored: &'a str,
    pub input_text: &'a str,
    pub created_at: i64,
}

pub(super) async fn insert(
    db: DbConnection<'_>,
    replica: i32,
    user: &str,
    conversation_id: Option<&str>,
    new_row: &PostgresTurnInsert<'_>,
) -> Result<(), StoreError> {
    let parent_seq =
        new_row.parent.and_then(|parent| parent.seq).map(|seq| to_sql("parent_seq", seq)).transpose()?;
    let n: i64 = sqlx::query_scalar(
        "INSERT INTO turn (id, user_id, conversation_id, parent_id, parent_seq, message_id, agent, model, mode, status,
            created_at, replica)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING n",
    )
    .bind(new_row.id)
    .bind(user)
    .bind(conversation_id)
    .bind(new_row.parent.map(|parent| parent.turn_id.as_str()))
    .bind(parent_seq)
    .bind(replace_nul(new_row.message_id))
    .bind(replace_nul(new_row.agent))
    .bind(new_row.model.map(replace_nul))
    .bind(new_row.mode.map(replace_nul))
    .bind(STATUS_RUNNING)
    .bind(new_row.created_at)
    .bind(replica)
    .fetch_one(&mut *db)
    .await
    .map_err(exists_error("turn"))?;
    sqlx::query("INSERT INTO turn_begin (n, input_text, stored) VALUES ($1, $2, $3)")
        .bind(n)
        .bind(new_row.input_text)
        .bind(new_row.stored)
        .execute(&mut *db)
        .await?;
    search::index_input(db, n, new_row.input_text).await
}

pub(super) async fn by_idempotency_key(
    db: DbConnection<'_>,
    user: &str,
    key: &IdempotencyKey,
    now: i64,
) -> Result<Option<TurnCreation>, StoreError> {
    let before: Option<(String, String)> = sqlx::query_as(
        "SELECT body_hash, turn_id FROM idempotency WHERE user_id = $1 AND key = $2 AND created_at > $3",
    )
    .bind(sanitize_param(user))
    .bind(sanitize_param(&key.key))
    .bind(now.saturating_sub(IDEMPOTENCY_MS))
    .fetch_optional(&mut *db)
    .await?;
    let Some((body_hash, turn_id)) = before else { return Ok(None) };
    if body_hash != key.body_hash {
        return Ok(Some(TurnCreation::KeyReused));
    }
    Ok(get(db, user, &turn_id).await?.map(|turn| TurnCreation::Replayed(Box::new(turn))))
}

/// Keys that are known no more make room: those of this user, since their transactions follow each other.
async fn delete_expired_keys(db: DbConnection<'_>, user: &str, now: i64) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM idempotency WHERE user_id = $1 AND created_at <= $2")
        .bind(user)
        .bind(now.saturating_sub(IDEMPOTENCY_MS))
        .execute(db)
        .await?;
    Ok(())
}

pub(in crate::postgres) async fn get(
    db: DbConnection<'_>,
    user: &str,
    turn_id: &str,
) -> Result<Option<TurnRow>, StoreError> {
    let row = sqlx::query(AssertSqlSafe(format!("{SELECT_TURN} WHERE t.id = $1 AND t.user_id = $2")))
        .bind(sanitize_param(turn_id))
        .bind(sanitize_param(user))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(turn_row).transpose()
}

pub(super) async fn end(
    db: DbConnection<'_>,
    user: &str,
    turn_id: &str,
    end: &TurnEnd,
) -> Result<bool, StoreError> {
    if end.status == STATUS_RUNNING {
        return Err(StoreError::invalid("status", "a turn that runs has not ended"));
    }
    let ended: Option<(i64, Option<String>)> = sqlx::query_as(
        "UPDATE turn SET status = $3, ended_at = $4, first_content_ms = $5, writing_ms = $6, output_tokens = $7
         WHERE id = $1 AND user_id = $2 AND ended_at IS NULL RETURNING n, conversation_id",
    )
    .bind(sanitize_param(turn_id))
    .bind(sanitize_param(user))
    .bind(replace_nul(&end.status))
    .bind(end.ended_at)
    .bind(end.pace.first_content_ms)
    .bind(end.pace.writing_ms)
    .bind(end.pace.output_tokens)
    .fetch_optional(&mut *db)
    .await?;
    let Some((n, conversation_id)) = ended else { return Ok(false) };
    let text = replace_nul(&end.text);
    sqlx::query("INSERT INTO turn_end (n, adds, text, usage) VALUES ($1, $2, $3, $4)")
        .bind(n)
        .bind(replace_nul(&end.adds))
        .bind(text.as_ref())
        .bind(end.usage.as_ref().map(to_json).transpose()?)
        .execute(&mut *db)
        .await?;
    search::index_answer(db, n, &text).await?;
    if let Some(conversation_id) = conversation_id {
        conversations::touch(db, &conversation_id, end.ended_at).await?;
    }
    Ok(true)
}

pub(in crate::postgres) async fn list(
    db: DbConnection<'_>,
    user: &str,
    filter: &TurnFilter,
    page: &PageRequest,
) -> Result<ResultPage<TurnSummary>, StoreError> {
    let position = page.position()?;
    let rows = sqlx::query(AssertSqlSafe(format!(
        "{SELECT_SUMMARY} WHERE t.user_id = $1
            AND ($2::text IS NULL OR t.conversation_id = $2)
            AND ($3::text IS NULL OR t.agent = $3)
            AND ($4::text IS NULL OR t.status = $4)
            AND ($5::bigint IS NULL OR (t.created_at, t.id) < ($5, $6))
         ORDER BY t.created_at DESC, t.id DESC LIMIT $7"
    )))
    .bind(sanitize_param(user))
    .bind(filter.conversation_id.as_deref().map(sanitize_param))
    .bind(filter.agent.as_deref().map(sanitize_param))
    .bind(filter.status.as_deref().map(sanitize_param))
    .bind(position.as_ref().map(|position| position.at))
    .bind(position.as_ref().map(|position| position.id.clone()))
    .bind(i64::from(page.rows() + 1))
    .fetch_all(db)
    .await?;
    Ok(ResultPage::from_rows(map_rows(&rows, turn_summary)?, page.rows(), |turn| PagePosition {
        at: turn.created_at,
        id: turn.id.clone(),
    }))
}

pub(in crate::postgres) async fn tree(
    db: DbConnection<'_>,
    user: &str,
    conversation_id: &str,
) -> Result<Vec<TurnSummary>, StoreError> {
    let rows = sqlx::query(AssertSqlSafe(format!(
        "{SELECT_SUMMARY} WHERE t.conversation_id = $1 AND t.user_id = $2 ORDER BY t.created_at, t.n"
    )))
    .bind(sanitize_param(conversation_id))
    .bind(sanitize_param(user))
    .fetch_all(db)
    .await?;
    map_rows(&rows, turn_summary)
}

/// The way is walked from the turn to the beginning; where a turn is cut, its successor on the way says.
pub(in crate::postgres) async fn path(
    db: DbConnection<'_>,
    user: &str,
    turn_id: &str,
) -> Result<Vec<PathTurn>, StoreError> {
    let rows = sqlx::query(
        "WITH RECURSIVE ancestors (n, id, parent_id, parent_seq, cut_at, length) AS (
            SELECT n, id, parent_id, parent_seq, NULL::bigint, 1 FROM turn WHERE id = $1 AND user_id = $2
            UNION ALL
            SELECT t.n, t.id, t.parent_id, t.parent_seq, ancestors.parent_seq, ancestors.length + 1
            FROM ancestors JOIN turn t ON t.id = ancestors.parent_id AND t.user_id = $2
         )
         SELECT ancestors.id, ancestors.cut_at, e.adds FROM ancestors LEFT JOIN turn_end e ON e.n = ancestors.n
         ORDER BY ancestors.length DESC",
    )
    .bind(sanitize_param(turn_id))
    .bind(sanitize_param(user))
    .fetch_all(db)
    .await?;
    map_rows(&rows, |row| {
        Ok(PathTurn {
            id: row.try_get("id")?,
            cut_at: optional_unsigned(row, "cut_at")?,
            adds: row.try_get("adds")?,
        })
    })
}

/// Those that are this server's, or nobody's any more: what another one runs is not this one's to take up.
pub(super) async fn open_turns(db: DbConnection<'_>, replica: i32) -> Result<Vec<OpenTurn>, StoreError> {
    let open = format!(
        "SELECT t.id, t.user_id, t.conversation_id, b.stored FROM turn t JOIN turn_begin b ON b.n = t.n
            LEFT JOIN turn_log l ON l.turn = t.id
         WHERE t.ended_at IS NULL AND (coalesce(l.owner, t.replica) = $1
            OR NOT EXISTS (SELECT 1 FROM replica r WHERE r.id = coalesce(l.owner, t.replica) AND {}))
         ORDER BY t.n",
        crate::postgres::lease::alive_condition()
    );
    let rows = sqlx::query(AssertSqlSafe(open)).bind(replica).fetch_all(db).await?;
    map_rows(&rows, |row| {
        Ok(OpenTurn {
            id: row.try_get("id")?,
            user: row.try_get("user_id")?,
            conversation_id: row.try_get("conversation_id")?,
            stored: row.try_get("stored")?,
        })
    })
}

fn parent(row: &PgRow) -> Result<Option<TurnParent>, StoreError> {
    let Some(turn_id) = row.try_get("parent_id")? else { return Ok(None) };
    Ok(Some(TurnParent { turn_id, seq: optional_unsigned(row, "parent_seq")? }))
}

fn turn_row(row: &PgRow) -> Result<TurnRow, StoreError> {
    let ended_at: Option<i64> = row.try_get("ended_at")?;
    let end = match ended_at {
        None => None,
        Some(ended_at) => Some(TurnEnd {
            status: row.try_get("status")?,
            adds: row.try_get("adds")?,
            text: row.try_get("text")?,
            usage: optional_json(row, "usage")?,
            pace: pace(row)?,
            ended_at,
        }),
    };
    Ok(TurnRow {
        id: row.try_get("id")?,
        user: row.try_get("user_id")?,
        conversation_id: row.try_get("conversation_id")?,
        parent: parent(row)?,
        message_id: row.try_get("message_id")?,
        stored: row.try_get("stored")?,
        agent: row.try_get("agent")?,
        model: row.try_get("model")?,
        mode: row.try_get("mode")?,
        input_text: row.try_get("input_text")?,
        created_at: row.try_get("created_at")?,
        end,
    })
}

fn pace(row: &PgRow) -> Result<TurnTiming, StoreError> {
    Ok(TurnTiming {
        first_content_ms: row.try_get("first_content_ms")?,
        writing_ms: row.try_get("writing_ms")?,
        output_tokens: row.try_get("output_tokens")?,
    })
}

/// Turns of a time as figures.
pub(super) async fn samples(
    db: DbConnection<'_>,
    user: &str,
    range: &SampleRange,
) -> Result<SampleRows<TurnSample>, StoreError> {
    let rows = sqlx::query(
        "SELECT created_at, status, first_content_ms, writing_ms, output_tokens FROM turn
         WHERE user_id = $1 AND created_at >= $2 AND created_at < $3 ORDER BY created_at DESC, id DESC LIMIT $4",
    )
    .bind(sanitize_param(user))
    .bind(range.from)
    .bind(range.until)
    .bind(i64::from(range.rows_max) + 1)
    .fetch_all(db)
    .await?;
    let rows = map_rows(&rows, |row| {
        Ok(TurnSample {
            created_at: row.try_get("created_at")?,
            status: row.try_get("status")?,
            pace: pace(row)?,
        })
    })?;
    Ok(SampleRows::from_rows(rows, range.rows_max))
}

fn turn_summary(row: &PgRow) -> Result<TurnSummary, StoreError> {
    let input: String = row.try_get("input")?;
    let answer: Option<String> = row.try_get("answer")?;
    Ok(TurnSummary {
        id: row.try_get("id")?,
        conversation_id: row.try_get("conversation_id")?,
        parent: parent(row)?,
        message_id: row.try_get("message_id")?,
        agent: row.try_get("agent")?,
        model: row.try_get("model")?,
        input: preview(&input),
        answer: preview(&answer.unwrap_or_default()),
        status: row.try_get("status")?,
        created_at: row.try_get("created_at")?,
        ended_at: row.try_get("ended_at")?,
    })
}
