//! Turns: begun, ended, found again.

use super::rows::{each, exists, optional_json, optional_unsigned, sought, to_json, to_sql};
use super::{Db, conversations, search};
use crate::catalog::texts::{check_id, preview, without_nul};
use crate::catalog::{
    CatalogLimits, Created, IDEMPOTENCY_MS, Idempotency, NewTurn, OpenTurn, Pace, Page, PageRequest, Parent,
    PathTurn, Place, RUNNING, SampleRange, Sampled, TurnEnd, TurnFilter, TurnPlace, TurnRow, TurnSample,
    TurnSummary,
};
use crate::error::StoreError;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row};

/// All of a turn.
const WHOLE: &str = "SELECT t.*, b.input_text, b.stored, e.adds, e.text, e.usage
    FROM turn t JOIN turn_begin b ON b.n = t.n LEFT JOIN turn_end e ON e.n = t.n";

/// A turn in short.
const SHORT: &str = "SELECT t.*, left(b.input_text, 200) AS input, left(e.text, 200) AS answer
    FROM turn t JOIN turn_begin b ON b.n = t.n LEFT JOIN turn_end e ON e.n = t.n";

pub(super) async fn create(
    db: Db<'_>,
    limits: &CatalogLimits,
    replica: i32,
    user: &str,
    turn: &NewTurn,
) -> Result<Created, StoreError> {
    check_id("user", user)?;
    check_id("turn_id", &turn.id)?;
    if let Some(key) = &turn.idempotency {
        check_id("idempotency_key", &key.key)?;
        forget_keys(db, user, turn.created_at).await?;
        if let Some(before) = of_key(db, user, key, turn.created_at).await? {
            return Ok(before);
        }
    }
    let (conversation_id, parent) = match &turn.place {
        TurnPlace::Alone => (None, None),
        TurnPlace::NewConversation { id, title } => {
            conversations::insert(db, limits, user, id, title.as_deref(), turn.created_at).await?;
            (Some(id.as_str()), None)
        }
        TurnPlace::In { conversation_id, parent } => {
            if let Some(refused) = refused(db, limits, user, conversation_id, parent.as_ref()).await? {
                return Ok(refused);
            }
            (Some(conversation_id.as_str()), parent.as_ref())
        }
    };
    let input_text = without_nul(&turn.input_text);
    let begin = Begin {
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
    insert(db, replica, user, conversation_id, &begin).await?;
    if let Some(key) = &turn.idempotency {
        sqlx::query(
            "INSERT INTO idempotency (user_id, key, body_hash, turn_id, created_at) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(user)
        .bind(&key.key)
        .bind(without_nul(&key.body_hash))
        .bind(&turn.id)
        .bind(turn.created_at)
        .execute(&mut *db)
        .await?;
    }
    let files: Vec<String> = turn.files.iter().map(|file| sought(file).into_owned()).collect();
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
        conversations::grown(db, limits, conversation_id, &turn.id, &input_text, turn.created_at).await?;
    }
    Ok(Created::New)
}

/// Why a turn cannot begin in a conversation, which is held until the end of the transaction.
async fn refused(
    db: Db<'_>,
    limits: &CatalogLimits,
    user: &str,
    conversation_id: &str,
    parent: Option<&Parent>,
) -> Result<Option<Created>, StoreError> {
    let turns: Option<i64> =
        sqlx::query_scalar("SELECT turns FROM conversation WHERE id = $1 AND user_id = $2 FOR UPDATE")
            .bind(sought(conversation_id))
            .bind(user)
            .fetch_optional(&mut *db)
            .await?;
    let Some(turns) = turns else { return Ok(Some(Created::NoConversation)) };
    if let Some(parent) = parent {
        let there = sqlx::query("SELECT 1 FROM turn WHERE id = $1 AND conversation_id = $2 AND user_id = $3")
            .bind(sought(&parent.turn_id))
            .bind(conversation_id)
            .bind(user)
            .fetch_optional(&mut *db)
            .await?;
        if there.is_none() {
            return Ok(Some(Created::NoParent));
        }
    }
    if let Some(turn_id) = running_in(db, conversation_id).await? {
        return Ok(Some(Created::ConversationBusy { turn_id }));
    }
    let max = limits.conversation_turns_max;
    if u64::try_from(turns).unwrap_or_default() >= max {
        return Err(StoreError::OverLimit { limit: "conversation_turns_max", max });
    }
    Ok(None)
}

pub(super) async fn running_in(db: Db<'_>, conversation_id: &str) -> Result<Option<String>, StoreError> {
    Ok(sqlx::query_scalar("SELECT id FROM turn WHERE conversation_id = $1 AND ended_at IS NULL")
        .bind(conversation_id)
        .fetch_optional(db)
        .await?)
}

pub(super) struct Begin<'a> {
    pub id: &'a str,
    pub parent: Option<&'a Parent>,
    pub message_id: &'a str,
    pub agent: &'a str,
    pub model: Option<&'a str>,
    pub mode: Option<&'a str>,
    pub stored: &'a str,
    pub input_text: &'a str,
    pub created_at: i64,
}

pub(super) async fn insert(
    db: Db<'_>,
    replica: i32,
    user: &str,
    conversation_id: Option<&str>,
    begin: &Begin<'_>,
) -> Result<(), StoreError> {
    let parent_seq =
        begin.parent.and_then(|parent| parent.seq).map(|seq| to_sql("parent_seq", seq)).transpose()?;
    let n: i64 = sqlx::query_scalar(
        "INSERT INTO turn (id, user_id, conversation_id, parent_id, parent_seq, message_id, agent, model, mode, status,
            created_at, replica)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING n",
    )
    .bind(begin.id)
    .bind(user)
    .bind(conversation_id)
    .bind(begin.parent.map(|parent| parent.turn_id.as_str()))
    .bind(parent_seq)
    .bind(without_nul(begin.message_id))
    .bind(without_nul(begin.agent))
    .bind(begin.model.map(without_nul))
    .bind(begin.mode.map(without_nul))
    .bind(RUNNING)
    .bind(begin.created_at)
    .bind(replica)
    .fetch_one(&mut *db)
    .await
    .map_err(exists("turn"))?;
    sqlx::query("INSERT INTO turn_begin (n, input_text, stored) VALUES ($1, $2, $3)")
        .bind(n)
        .bind(begin.input_text)
        .bind(begin.stored)
        .execute(&mut *db)
        .await?;
    search::index_input(db, n, begin.input_text).await
}

pub(super) async fn of_key(
    db: Db<'_>,
    user: &str,
    key: &Idempotency,
    now: i64,
) -> Result<Option<Created>, StoreError> {
    let before: Option<(String, String)> = sqlx::query_as(
        "SELECT body_hash, turn_id FROM idempotency WHERE user_id = $1 AND key = $2 AND created_at > $3",
    )
    .bind(sought(user))
    .bind(sought(&key.key))
    .bind(now.saturating_sub(IDEMPOTENCY_MS))
    .fetch_optional(&mut *db)
    .await?;
    let Some((body_hash, turn_id)) = before else { return Ok(None) };
    if body_hash != key.body_hash {
        return Ok(Some(Created::OtherBody));
    }
    Ok(get(db, user, &turn_id).await?.map(|turn| Created::Same(Box::new(turn))))
}

/// Keys that are known no more make room: those of this user, since their transactions follow each other.
async fn forget_keys(db: Db<'_>, user: &str, now: i64) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM idempotency WHERE user_id = $1 AND created_at <= $2")
        .bind(user)
        .bind(now.saturating_sub(IDEMPOTENCY_MS))
        .execute(db)
        .await?;
    Ok(())
}

pub(in crate::postgres) async fn get(
    db: Db<'_>,
    user: &str,
    turn_id: &str,
) -> Result<Option<TurnRow>, StoreError> {
    let row = sqlx::query(AssertSqlSafe(format!("{WHOLE} WHERE t.id = $1 AND t.user_id = $2")))
        .bind(sought(turn_id))
        .bind(sought(user))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(whole).transpose()
}

pub(super) async fn end(db: Db<'_>, user: &str, turn_id: &str, end: &TurnEnd) -> Result<bool, StoreError> {
    if end.status == RUNNING {
        return Err(StoreError::invalid("status", "a turn that runs has not ended"));
    }
    let ended: Option<(i64, Option<String>)> = sqlx::query_as(
        "UPDATE turn SET status = $3, ended_at = $4, first_content_ms = $5, writing_ms = $6, output_tokens = $7
         WHERE id = $1 AND user_id = $2 AND ended_at IS NULL RETURNING n, conversation_id",
    )
    .bind(sought(turn_id))
    .bind(sought(user))
    .bind(without_nul(&end.status))
    .bind(end.ended_at)
    .bind(end.pace.first_content_ms)
    .bind(end.pace.writing_ms)
    .bind(end.pace.output_tokens)
    .fetch_optional(&mut *db)
    .await?;
    let Some((n, conversation_id)) = ended else { return Ok(false) };
    let text = without_nul(&end.text);
    sqlx::query("INSERT INTO turn_end (n, adds, text, usage) VALUES ($1, $2, $3, $4)")
        .bind(n)
        .bind(without_nul(&end.adds))
        .bind(text.as_ref())
        .bind(end.usage.as_ref().map(to_json).transpose()?)
        .execute(&mut *db)
        .await?;
    search::index_answer(db, n, &text).await?;
    if let Some(conversation_id) = conversation_id {
        conversations::touched(db, &conversation_id, end.ended_at).await?;
    }
    Ok(true)
}

pub(in crate::postgres) async fn list(
    db: Db<'_>,
    user: &str,
    filter: &TurnFilter,
    page: &PageRequest,
) -> Result<Page<TurnSummary>, StoreError> {
    let place = page.place()?;
    let rows = sqlx::query(AssertSqlSafe(format!(
        "{SHORT} WHERE t.user_id = $1
            AND ($2::text IS NULL OR t.conversation_id = $2)
            AND ($3::text IS NULL OR t.agent = $3)
            AND ($4::text IS NULL OR t.status = $4)
            AND ($5::bigint IS NULL OR (t.created_at, t.id) < ($5, $6))
         ORDER BY t.created_at DESC, t.id DESC LIMIT $7"
    )))
    .bind(sought(user))
    .bind(filter.conversation_id.as_deref().map(sought))
    .bind(filter.agent.as_deref().map(sought))
    .bind(filter.status.as_deref().map(sought))
    .bind(place.as_ref().map(|place| place.at))
    .bind(place.as_ref().map(|place| place.id.clone()))
    .bind(i64::from(page.rows() + 1))
    .fetch_all(db)
    .await?;
    Ok(Page::of(each(&rows, short)?, page.rows(), |turn| Place { at: turn.created_at, id: turn.id.clone() }))
}

pub(in crate::postgres) async fn tree(
    db: Db<'_>,
    user: &str,
    conversation_id: &str,
) -> Result<Vec<TurnSummary>, StoreError> {
    let rows = sqlx::query(AssertSqlSafe(format!(
        "{SHORT} WHERE t.conversation_id = $1 AND t.user_id = $2 ORDER BY t.created_at, t.n"
    )))
    .bind(sought(conversation_id))
    .bind(sought(user))
    .fetch_all(db)
    .await?;
    each(&rows, short)
}

/// The way is walked from the turn to the beginning; where a turn is cut, its successor on the way says.
pub(in crate::postgres) async fn path(
    db: Db<'_>,
    user: &str,
    turn_id: &str,
) -> Result<Vec<PathTurn>, StoreError> {
    let rows = sqlx::query(
        "WITH RECURSIVE way (n, id, parent_id, parent_seq, cut_at, length) AS (
            SELECT n, id, parent_id, parent_seq, NULL::bigint, 1 FROM turn WHERE id = $1 AND user_id = $2
            UNION ALL
            SELECT t.n, t.id, t.parent_id, t.parent_seq, way.parent_seq, way.length + 1
            FROM way JOIN turn t ON t.id = way.parent_id AND t.user_id = $2
         )
         SELECT way.id, way.cut_at, e.adds FROM way LEFT JOIN turn_end e ON e.n = way.n ORDER BY way.length DESC",
    )
    .bind(sought(turn_id))
    .bind(sought(user))
    .fetch_all(db)
    .await?;
    each(&rows, |row| {
        Ok(PathTurn {
            id: row.try_get("id")?,
            cut_at: optional_unsigned(row, "cut_at")?,
            adds: row.try_get("adds")?,
        })
    })
}

/// Those that are this server's, or nobody's any more: what another one runs is not this one's to take up.
pub(super) async fn open(db: Db<'_>, replica: i32) -> Result<Vec<OpenTurn>, StoreError> {
    let open = format!(
        "SELECT t.id, t.user_id, t.conversation_id, b.stored FROM turn t JOIN turn_begin b ON b.n = t.n
            LEFT JOIN turn_log l ON l.turn = t.id
         WHERE t.ended_at IS NULL AND (coalesce(l.owner, t.replica) = $1
            OR NOT EXISTS (SELECT 1 FROM replica r WHERE r.id = coalesce(l.owner, t.replica) AND {}))
         ORDER BY t.n",
        crate::postgres::lease::alive()
    );
    let rows = sqlx::query(AssertSqlSafe(open)).bind(replica).fetch_all(db).await?;
    each(&rows, |row| {
        Ok(OpenTurn {
            id: row.try_get("id")?,
            user: row.try_get("user_id")?,
            conversation_id: row.try_get("conversation_id")?,
            stored: row.try_get("stored")?,
        })
    })
}

fn parent(row: &PgRow) -> Result<Option<Parent>, StoreError> {
    let Some(turn_id) = row.try_get("parent_id")? else { return Ok(None) };
    Ok(Some(Parent { turn_id, seq: optional_unsigned(row, "parent_seq")? }))
}

fn whole(row: &PgRow) -> Result<TurnRow, StoreError> {
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

fn pace(row: &PgRow) -> Result<Pace, StoreError> {
    Ok(Pace {
        first_content_ms: row.try_get("first_content_ms")?,
        writing_ms: row.try_get("writing_ms")?,
        output_tokens: row.try_get("output_tokens")?,
    })
}

/// Turns of a time as figures.
pub(super) async fn samples(
    db: Db<'_>,
    user: &str,
    range: &SampleRange,
) -> Result<Sampled<TurnSample>, StoreError> {
    let rows = sqlx::query(
        "SELECT created_at, status, first_content_ms, writing_ms, output_tokens FROM turn
         WHERE user_id = $1 AND created_at >= $2 AND created_at < $3 ORDER BY created_at DESC, id DESC LIMIT $4",
    )
    .bind(sought(user))
    .bind(range.from)
    .bind(range.until)
    .bind(i64::from(range.rows_max) + 1)
    .fetch_all(db)
    .await?;
    let rows = each(&rows, |row| {
        Ok(TurnSample {
            created_at: row.try_get("created_at")?,
            status: row.try_get("status")?,
            pace: pace(row)?,
        })
    })?;
    Ok(Sampled::of(rows, range.rows_max))
}

fn short(row: &PgRow) -> Result<TurnSummary, StoreError> {
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
