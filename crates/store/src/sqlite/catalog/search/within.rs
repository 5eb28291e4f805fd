//! Conversations in which a text is, those with the latest events first.
//!
//! That is another order than that of hits. A text that is rare has few hits: their conversations are put into this
//! order. One that is common is in most conversations: they are gone through in their order until a page is full.

use super::TITLE;
use super::scan::Scan;
use crate::catalog::texts::{Sought, find_folded};
use crate::catalog::{ConversationSummary, Page, PageRequest, Place};
use crate::error::StoreError;
use crate::sqlite::catalog::conversations;
use crate::sqlite::searchers::Search;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Hits of a text that is rare.
const RARE_HITS: usize = 4_000;
/// Conversations looked up at once.
const CONVERSATIONS: usize = 100;

/// Where the hits of a text are.
struct Gathered {
    conversations: HashSet<i64>,
    /// There may be more.
    is_cut: bool,
}

pub(in super::super) fn conversations_with(
    db: &Connection,
    user: &str,
    sought: &Sought,
    page: &PageRequest,
    search: &Search,
) -> Result<Page<ConversationSummary>, StoreError> {
    let after = page.place()?;
    let view = db.unchecked_transaction()?;
    let gathered = gather(&view, user, sought, search)?;
    let rows = page.rows() as usize;
    let mut walk = Walk { db: &view, user, after };
    let (mut found, mut partial, mut walked) = (Vec::new(), false, 0);
    'pages: while found.len() <= rows {
        let some = if gathered.is_cut { walk.next()? } else { walk.next_of(&gathered.conversations)? };
        if some.is_empty() {
            break;
        }
        for one in some {
            // One is always looked through, or it would never be gone beyond.
            let stop = || search.is_over() && walked > 0;
            let is_hit = if gathered.conversations.contains(&one.n) {
                Some(true)
            } else if gathered.is_cut {
                is_in(&view, &one, sought.text(), stop)?
            } else {
                Some(false)
            };
            let Some(is_hit) = is_hit else {
                partial = true;
                break 'pages;
            };
            walked += 1;
            walk.after = Some(Place { at: one.updated_at, id: one.id });
            if is_hit {
                found.push(one.n);
            }
            // What is cut by time ends with whatever was looked at last.
            if found.len() > rows || search.is_over() {
                partial = found.len() <= rows;
                break 'pages;
            }
        }
    }
    let items = found.iter().map(|&n| conversations::by_number(&view, n)).collect::<Result<Vec<_>, _>>()?;
    let place = |item: &ConversationSummary| Place {
        at: item.conversation.updated_at,
        id: item.conversation.id.clone(),
    };
    if partial {
        return Ok(Page { items, next: walk.after.map(|place| place.to_string()), partial });
    }
    Ok(Page::of(items, page.rows(), place))
}

/// Hits until there are too many, or half of the time is over.
fn gather(db: &Connection, user: &str, sought: &Sought, search: &Search) -> Result<Gathered, StoreError> {
    let mut conversations = HashSet::new();
    let Some(scan) = Scan::of(db, user, sought, None)? else {
        return Ok(Gathered { conversations, is_cut: false });
    };
    let mut of_turn = db.prepare_cached(
        "SELECT c.n, b.input_text FROM turn t JOIN conversation c ON c.id = t.conversation_id
            JOIN turn_begin b ON b.n = t.n WHERE t.n = ?1",
    )?;
    let (mut hits, mut is_cut) = (0, false);
    scan.walk(db, |found| {
        if found.part == TITLE {
            conversations.insert(found.n);
        } else {
            let of = |row: &Row<'_>| {
                // For its mark only, perhaps.
                let is_hit =
                    !found.is_marked() || find_folded(row.get_ref(1)?.as_str()?, sought.text()).is_some();
                Ok(is_hit.then_some(row.get::<_, i64>(0)?))
            };
            conversations.extend(of_turn.query_row([found.n], of).optional()?.flatten());
        }
        hits += 1;
        if hits >= RARE_HITS || search.is_partly_over(2) {
            is_cut = true;
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(Gathered { conversations, is_cut })
}

struct Conversation {
    n: i64,
    id: String,
    updated_at: i64,
    title: String,
}

/// Goes through the conversations of a user.
struct Walk<'a> {
    db: &'a Connection,
    user: &'a str,
    after: Option<Place>,
}

impl Walk<'_> {
    /// The next ones of all.
    fn next(&self) -> Result<Vec<Conversation>, StoreError> {
        self.read("conversation c WHERE c.user_id = :user AND :among IS NULL", None)
    }

    /// The next ones of these.
    fn next_of(&self, among: &HashSet<i64>) -> Result<Vec<Conversation>, StoreError> {
        let among = serde_json::to_string(among).map_err(StoreError::failed)?;
        self.read(
            "json_each(:among) j CROSS JOIN conversation c ON c.n = j.value WHERE c.user_id = :user",
            Some(&among),
        )
    }

    fn read(&self, from: &str, among: Option<&str>) -> Result<Vec<Conversation>, StoreError> {
        let mut query = self.db.prepare_cached(&format!(
            "SELECT c.n, c.id, c.updated_at, c.title FROM {from} AND (:at IS NULL OR (c.updated_at, c.id) < (:at, :id))
             ORDER BY c.updated_at DESC, c.id DESC LIMIT :rows"
        ))?;
        let rows = query.query_map(
            named_params! {
                ":user": self.user,
                ":among": among,
                ":at": self.after.as_ref().map(|place| place.at),
                ":id": self.after.as_ref().map(|place| &place.id),
                ":rows": CONVERSATIONS as i64,
            },
            |row| {
                Ok(Conversation {
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

/// Whether a text is in a conversation, by its texts, newest first; `None`: it was told to stop before that was known.
fn is_in(
    db: &Connection,
    conversation: &Conversation,
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
        if [Some(input), answer].iter().flatten().any(|said| find_folded(said, text).is_some()) {
            return Ok(Some(true));
        }
        if stop() {
            return Ok(None);
        }
    }
    Ok(Some(false))
}
