//! Turns: created, ended, read.

use super::{
    CatalogDb, CatalogRow, IndexChange, bind, conversations, exists, page_params, query_one, query_optional,
    sql, to_json, to_sql,
};
use crate::catalog::texts::{preview, replace_nul, validate_id};
use crate::catalog::{
    CatalogLimits, IDEMPOTENCY_MS, IdempotencyKey, NewTurnRow, OpenTurn, PagePosition, PageRequest, PathTurn,
    ResultPage, STATUS_RUNNING, SampleRange, SampleRows, TurnCreation, TurnEnd, TurnFilter, TurnParent,
    TurnPlacement, TurnRow, TurnSample, TurnSummary, TurnTiming,
};
use crate::error::StoreError;

/// Reads turns in short. The texts are cut to their previews when they have been read.
macro_rules! select_summary {
    ($condition:literal) => {
        sql!(concat!(
            "SELECT t.*, substr(b.input_text, 1, 200) AS input, substr(e.text, 1, 200) AS answer
             FROM turn t JOIN turn_begin b ON b.n = t.n LEFT JOIN turn_end e ON e.n = t.n WHERE ",
            $condition
        ))
    };
}

pub(crate) async fn create(
    db: &mut impl CatalogDb,
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
    let (conversation_id, parent) = match &turn.placement {
        TurnPlacement::Standalone => (None, None),
        TurnPlacement::NewConversation { id, title } => {
            conversations::insert(db, limits, user, id, title.as_deref(), turn.created_at).await?;
            (Some(id.as_str()), None)
        }
        TurnPlacement::InConversation { conversation_id, parent } => {
            let parent = parent.as_ref();
            if let Some(rejection) = check_can_begin(db, limits, user, conversation_id, parent).await? {
                return Ok(rejection);
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
        conversations::turn_added(db, limits, conversation_id, &turn.id, &input_text, turn.created_at)
            .await?;
    }
    Ok(TurnCreation::New)
}

/// Reason that a turn cannot begin in a conversation, which stays as it is until the end of the transaction.
async fn check_can_begin(
    db: &mut impl CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    conversation_id: &str,
    parent: Option<&TurnParent>,
) -> Result<Option<TurnCreation>, StoreError> {
    let find = sql!("SELECT turns FROM conversation WHERE id = $1 AND user_id = $2", lock "FOR UPDATE");
    let turns: Option<u64> =
        query_optional(db, &find, bind![conversation_id, user], |row| row.get("turns")).await?;
    let Some(turns) = turns else { return Ok(Some(TurnCreation::ConversationNotFound)) };
    if let Some(parent) = parent {
        let find = sql!("SELECT 1 FROM turn WHERE id = $1 AND conversation_id = $2 AND user_id = $3");
        if !exists(db, &find, bind![&parent.turn_id, conversation_id, user]).await? {
            return Ok(Some(TurnCreation::ParentNotFound));
        }
    }
    if let Some(turn_id) = running_in(db, conversation_id).await? {
        return Ok(Some(TurnCreation::ConversationBusy { turn_id }));
    }
    let max = limits.conversation_turns_max;
    if turns >= max {
        return Err(StoreError::OverLimit { limit: "conversation_turns_max", max });
    }
    Ok(None)
}

pub(super) async fn running_in(
    db: &mut impl CatalogDb,
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
}

pub(super) async fn insert(
    db: &mut impl CatalogDb,
    user: &str,
    conversation_id: Option<&str>,
    new_row: &TurnInsert<'_>,
) -> Result<(), StoreError> {
    let insert = sql!(
        sqlite: "INSERT INTO turn (id, user_id, conversation_id, parent_id, parent_seq, message_id, agent, model, mode,
                status, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING n",
        postgres: "INSERT INTO turn (id, user_id, conversation_id, parent_id, parent_seq, message_id, agent, model, mode,
                status, created_at, replica)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING n"
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
    db: &mut impl CatalogDb,
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
async fn delete_expired_keys(db: &mut impl CatalogDb, user: &str, now: i64) -> Result<(), StoreError> {
    let delete = sql!(
        sqlite: "DELETE FROM idempotency WHERE created_at <= $2",
        postgres: "DELETE FROM idempotency WHERE user_id = $1 AND created_at <= $2"
    );
    db.execute(&delete, bind![user, now.saturating_sub(IDEMPOTENCY_MS)]).await?;
    Ok(())
}

pub(crate) async fn get(
    db: &mut impl CatalogDb,
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
    db: &mut impl CatalogDb,
    user: &str,
    turn_id: &str,
    end: &TurnEnd,
) -> Result<bool, StoreError> {
    if end.status == STATUS_RUNNING {
        return Err(StoreError::invalid("status", "a turn that runs has not ended"));
    }
    let update = sql!(
        "UPDATE turn SET status = $3, ended_at = $4, first_content_ms = $5, writing_ms = $6, output_tokens = $7
         WHERE id = $1 AND user_id = $2 AND ended_at IS NULL RETURNING n, conversation_id"
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
    let ended: Option<(i64, Option<String>)> =
        query_optional(db, &update, params, |row| Ok((row.get("n")?, row.get("conversation_id")?))).await?;
    let Some((n, conversation_id)) = ended else { return Ok(false) };
    let text = replace_nul(&end.text);
    let usage = end.usage.as_ref().map(to_json).transpose()?;
    let insert = sql!("INSERT INTO turn_end (n, adds, text, usage) VALUES ($1, $2, $3, $4)");
    db.execute(&insert, bind![n, replace_nul(&end.adds), text.as_ref(), usage]).await?;
    if let Some(conversation_id) = conversation_id {
        db.update_index(IndexChange::Answer(n, &text)).await?;
        conversations::touch(db, &conversation_id, end.ended_at).await?;
    }
    Ok(true)
}

pub(crate) async fn list(
    db: &mut impl CatalogDb,
    user: &str,
    filter: &TurnFilter,
    page: &PageRequest,
) -> Result<ResultPage<TurnSummary>, StoreError> {
    let (at, id, rows) = page_params(page)?;
    let list = select_summary!(
        "t.user_id = $1
            AND ($2 IS NULL OR t.conversation_id = $2)
            AND ($3 IS NULL OR t.agent = $3)
            AND ($4 IS NULL OR t.status = $4)
            AND ($5 IS NULL OR (t.created_at, t.id) < ($5, $6))
         ORDER BY t.created_at DESC, t.id DESC LIMIT $7"
    );
    let params = bind![user, &filter.conversation_id, &filter.agent, &filter.status, at, id, rows];
    let turns = db.query(&list, params, turn_summary).await?;
    Ok(ResultPage::from_rows(turns, page.rows(), |turn| PagePosition {
        at: turn.created_at,
        id: turn.id.clone(),
    }))
}

pub(crate) async fn tree(
    db: &mut impl CatalogDb,
    user: &str,
    conversation_id: &str,
) -> Result<Vec<TurnSummary>, StoreError> {
    let list = select_summary!("t.conversation_id = $1 AND t.user_id = $2 ORDER BY t.created_at, t.n");
    db.query(&list, bind![conversation_id, user], turn_summary).await
}

/// Walks from the turn to the beginning. The position at which a turn is cut is in its successor.
pub(crate) async fn path(
    db: &mut impl CatalogDb,
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
        Ok(PathTurn { id: row.get("id")?, cut_at: row.get("cut_at")?, adds: row.get("adds")? })
    })
    .await
}

/// Turns without an end, in a store that only this server uses.
#[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "PostgreSQL asks who owns them as well"))]
pub(crate) async fn open_turns(db: &mut impl CatalogDb) -> Result<Vec<OpenTurn>, StoreError> {
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
    db: &mut impl CatalogDb,
    user: &str,
    range: &SampleRange,
) -> Result<SampleRows<TurnSample>, StoreError> {
    let list = sql!(
        "SELECT created_at, status, first_content_ms, writing_ms, output_tokens FROM turn
         WHERE user_id = $1 AND created_at >= $2 AND created_at < $3 ORDER BY created_at DESC, id DESC LIMIT $4"
    );
    let params = bind![user, range.from, range.until, i64::from(range.rows_max) + 1];
    let rows = db.query(&list, params, |row| {
        Ok(TurnSample { created_at: row.get("created_at")?, status: row.get("status")?, pace: pace(row)? })
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
            adds: row.get("adds")?,
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
    })
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
    })
}
