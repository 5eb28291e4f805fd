//! Conversations that contain a text, those with the latest events first.
//!
//! That order differs from that of the hits. A rare text has few hits: their conversations are sorted. A
//! common text is in most conversations: they are scanned in order until a page is full.

use super::TITLE;
use super::scan::SearchScan;
use crate::catalog::fold::find_folded;
use crate::catalog::sql::conversations;
use crate::catalog::texts::SearchTerm;
use crate::catalog::{ConversationFilter, ConversationSummary, PagePosition, PageRequest, ResultPage};
use crate::error::StoreError;
use crate::sqlite::catalog::db::run_now;
use crate::sqlite::search_pool::SearchBudget;
use futures_util::FutureExt;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Hits of a text that is rare.
const RARE_HITS: usize = 4_000;
/// Conversations per query.
const CONVERSATIONS_PER_QUERY: usize = 100;

/// Conversations that contain a text.
struct MatchingConversations {
    conversations: HashSet<i64>,
    /// True if there may be more.
    truncated: bool,
}

pub(in super::super) fn conversations_with(
    db: &mut Connection,
    user: &str,
    term: &SearchTerm,
    filter: &ConversationFilter,
    page: &PageRequest,
    budget: &SearchBudget,
) -> Result<ResultPage<ConversationSummary>, StoreError> {
    let mut walk = ConversationWalk { db: &*db, user, filter, after: page.position()? };
    let matches = collect_matches(db, user, term, budget)?;
    let rows = page.rows() as usize;
    let (mut found, mut partial, mut walked) = (Vec::new(), false, 0);
    'pages: while found.len() <= rows {
        let candidates = if matches.truncated { walk.next()? } else { walk.next_of(&matches.conversations)? };
        if candidates.is_empty() {
            break;
        }
        for candidate in candidates {
            // At least one conversation is always scanned, or the search would never get past it.
            let stop = || budget.is_expired() && walked > 0;
            let is_hit = if matches.conversations.contains(&candidate.n) {
                Some(true)
            } else if matches.truncated {
                is_in(db, &candidate, term.text(), stop)?
            } else {
                Some(false)
            };
            let Some(is_hit) = is_hit else {
                partial = true;
                break 'pages;
            };
            walked += 1;
            walk.after = Some(PagePosition { at: candidate.updated_at, id: candidate.id.clone() });
            if is_hit {
                found.push(candidate.id);
            }
            // A result that the time limit cuts ends with the last conversation scanned.
            if found.len() > rows || budget.is_expired() {
                partial = found.len() <= rows;
                break 'pages;
            }
        }
    }
    let after = walk.after;
    let user = user.to_owned();
    let items = run_now(db, move |db| async move { conversations::by_ids(db, &user, found).await }.boxed())?;
    let position = |item: &ConversationSummary| PagePosition {
        at: item.conversation.updated_at,
        id: item.conversation.id.clone(),
    };
    if partial {
        return Ok(ResultPage { items, next: after.map(|position| position.to_string()), partial });
    }
    Ok(ResultPage::from_rows(items, page.rows(), position))
}

/// Hits until there are too many, or half of the time is over.
fn collect_matches(
    db: &Connection,
    user: &str,
    term: &SearchTerm,
    budget: &SearchBudget,
) -> Result<MatchingConversations, StoreError> {
    let mut conversations = HashSet::new();
    let Some(scan) = SearchScan::for_term(db, user, term, None)? else {
        return Ok(MatchingConversations { conversations, truncated: false });
    };
    let mut of_turn = db.prepare_cached(
        "SELECT c.n, b.input_text FROM turn t JOIN conversation c ON c.id = t.conversation_id
            JOIN turn_begin b ON b.n = t.n WHERE t.n = ?1",
    )?;
    let (mut hits, mut truncated) = (0, false);
    scan.walk(db, |found| {
        if found.part == TITLE {
            conversations.insert(found.n);
        } else {
            let of = |row: &Row<'_>| {
                // For its mark only, perhaps.
                let is_hit =
                    !found.is_marked() || find_folded(row.get_ref(1)?.as_str()?, term.text()).is_some();
                Ok(is_hit.then_some(row.get::<_, i64>(0)?))
            };
            conversations.extend(of_turn.query_row([found.n], of).optional()?.flatten());
        }
        hits += 1;
        if hits >= RARE_HITS || budget.is_expired_within(2) {
            truncated = true;
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(MatchingConversations { conversations, truncated })
}

struct ConversationCandidate {
    n: i64,
    id: String,
    updated_at: i64,
    title: String,
}

/// Goes through the conversations of a user.
struct ConversationWalk<'a> {
    db: &'a Connection,
    user: &'a str,
    filter: &'a ConversationFilter,
    after: Option<PagePosition>,
}

impl ConversationWalk<'_> {
    /// The next ones of all.
    fn next(&self) -> Result<Vec<ConversationCandidate>, StoreError> {
        self.read("conversation c WHERE c.user_id = :user AND :among IS NULL", None)
    }

    /// The next ones of these.
    fn next_of(&self, among: &HashSet<i64>) -> Result<Vec<ConversationCandidate>, StoreError> {
        let among = serde_json::to_string(among).map_err(StoreError::failed)?;
        self.read(
            "json_each(:among) j CROSS JOIN conversation c ON c.n = j.value WHERE c.user_id = :user",
            Some(&among),
        )
    }

    fn read(&self, from: &str, among: Option<&str>) -> Result<Vec<ConversationCandidate>, StoreError> {
        let mut query = self.db.prepare_cached(&format!(
            "SELECT c.n, c.id, c.updated_at, c.title FROM {from} AND (:at IS NULL OR (c.updated_at, c.id) < (:at, :id))
                AND c.temporary = 0
                AND (:folder IS NULL OR c.folder = :folder)
                AND (:tag IS NULL OR EXISTS (
                    SELECT 1 FROM conversation_tag WHERE conversation_id = c.id AND tag = :tag))
                AND (:archived IS NULL OR (c.archived_at IS NOT NULL) = :archived)
                AND (:pinned IS NULL OR (c.pinned_at IS NOT NULL) = :pinned)
             ORDER BY c.updated_at DESC, c.id DESC LIMIT :rows"
        ))?;
        let rows = query.query_map(
            named_params! {
                ":user": self.user,
                ":among": among,
                ":at": self.after.as_ref().map(|position| position.at),
                ":id": self.after.as_ref().map(|position| &position.id),
                ":folder": self.filter.folder,
                ":tag": self.filter.tag,
                ":archived": self.filter.archived,
                ":pinned": self.filter.pinned,
                ":rows": CONVERSATIONS_PER_QUERY as i64,
            },
            |row| {
                Ok(ConversationCandidate {
                    n: row.get(0)?,
                    id: row.get(1)?,
                    updated_at: row.get(2)?,
                    title: row.get(3)?,
                })
            },
        )?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// True if a conversation contains a text, reading its texts newest first; `None`: stopped before that was
/// known.
fn is_in(
    db: &Connection,
    conversation: &ConversationCandidate,
    text: &str,
    stop: impl Fn() -> bool,
) -> Result<Option<bool>, StoreError> {
    if find_folded(&conversation.title, text).is_some() {
        return Ok(Some(true));
    }
    let mut query = db.prepare_cached(
        "SELECT b.input_text, e.text FROM turn t JOIN turn_begin b ON b.n = t.n LEFT JOIN turn_end e ON e.n = t.n
         WHERE t.conversation_id = ?1 ORDER BY t.created_at DESC, t.n DESC",
    )?;
    let mut turns = query.query(params![conversation.id])?;
    while let Some(turn) = turns.next()? {
        let (input, answer): (String, Option<String>) = (turn.get(0)?, turn.get(1)?);
        if [Some(input), answer]
            .iter()
            .flatten()
            .any(|candidate_text| find_folded(candidate_text, text).is_some())
        {
            return Ok(Some(true));
        }
        if stop() {
            return Ok(None);
        }
    }
    Ok(Some(false))
}
