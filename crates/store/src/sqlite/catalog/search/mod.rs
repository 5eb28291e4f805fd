//! Texts in titles, inputs and answers, newest first.
//!
//! What is searched has a [rank](rank) by which FTS5 gives the hits of one user in their order, one after the other: a page
//! takes no more of them than it shows, however common the word is. What no index makes short, a rare text of common
//! trigrams, ends when its time is over, with the place where the next page goes on.

mod grams;
mod index;
mod rank;
mod scan;
mod within;

pub(in crate::sqlite) use index::{INDEX_BYTES, Index, index, index_state};
pub(super) use index::{forget_said, forget_title, index_answer, index_input, index_title};
pub(super) use within::conversations_with;

use crate::catalog::texts::{Sought, find_folded, snippet};
use crate::catalog::{CatalogLimits, Hit, HitPart, Page, PageRequest, Place};
use crate::error::StoreError;
use crate::sqlite::searchers::Search;
use rusqlite::{Connection, OptionalExtension, Row, params};
use scan::{Found, Scan};
use std::ops::ControlFlow;

/// Stands where a list has the id of a row: its cursors are no ranks.
const CURSOR: &str = "rank";

const TITLE: i64 = 0;
const INPUT: i64 = 1;
const ANSWER: i64 = 2;

pub(super) fn hits(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    text: &str,
    page: &PageRequest,
    search: &Search,
) -> Result<Page<Hit>, StoreError> {
    let after = match page.place()? {
        Some(place) if place.id != CURSOR => {
            return Err(StoreError::invalid("cursor", "it was not given by an earlier page"));
        }
        place => place.map(|place| place.at),
    };
    let sought = Sought::of(text, limits.search_chars_max)?;
    // One view of the file: what is removed meanwhile is still there.
    let view = db.unchecked_transaction()?;
    let Some(scan) = Scan::of(&view, user, &sought, after)? else { return Ok(Page::empty()) };
    let rows = page.rows() as usize;
    let mut page = Page::empty();
    // Everything from here on has been looked at.
    let mut below = None;
    scan.walk(&view, |found| {
        if let Some(hit) = hit(&view, user, sought.text(), &found)? {
            // It is the first one of the next page.
            if page.items.len() == rows {
                page.next = below.map(|rank| cursor(rank, &scan));
                return Ok(ControlFlow::Break(()));
            }
            page.items.push(hit);
        }
        below = Some(found.rank);
        if search.is_over() {
            page.next = Some(cursor(found.rank, &scan));
            page.partial = page.items.len() < rows;
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(page)
}

/// The page that comes next begins below this rank.
fn cursor(rank: i64, scan: &Scan) -> String {
    Place { at: rank::shown(rank, scan.user_n()), id: CURSOR.to_owned() }.to_string()
}

/// `None`: it is there for its mark only.
fn hit(db: &Connection, user: &str, sought: &str, found: &Found) -> Result<Option<Hit>, StoreError> {
    let (query, part) = match found.part {
        TITLE => (
            "SELECT id AS conversation_id, title, NULL AS turn_id, title AS text, created_at AS at
             FROM conversation WHERE n = ?1 AND user_id = ?2",
            HitPart::Title,
        ),
        INPUT => (
            "SELECT c.id AS conversation_id, c.title, t.id AS turn_id, b.input_text AS text, t.created_at AS at
             FROM turn t JOIN conversation c ON c.id = t.conversation_id JOIN turn_begin b ON b.n = t.n
             WHERE t.n = ?1 AND t.user_id = ?2",
            HitPart::Input,
        ),
        _ => (
            "SELECT c.id AS conversation_id, c.title, t.id AS turn_id, e.text, t.created_at AS at
             FROM turn t JOIN conversation c ON c.id = t.conversation_id JOIN turn_end e ON e.n = t.n
             WHERE t.n = ?1 AND t.user_id = ?2",
            HitPart::Answer,
        ),
    };
    let of = |row: &Row<'_>| {
        let text: String = row.get("text")?;
        if found.is_marked() && find_folded(&text, sought).is_none() {
            return Ok(None);
        }
        Ok(Some(Hit {
            conversation_id: row.get("conversation_id")?,
            title: row.get("title")?,
            turn_id: row.get("turn_id")?,
            part,
            snippet: snippet(&text, sought),
            at: row.get("at")?,
        }))
    };
    Ok(db.prepare_cached(query)?.query_row(params![found.n, user], of).optional()?.flatten())
}
