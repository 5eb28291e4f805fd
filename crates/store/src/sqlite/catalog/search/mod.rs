//! Texts in titles, inputs and answers, newest first.
//!
//! Every indexed text has a [rank] by which FTS5 returns the hits of one user in order, one after the other:
//! a page reads no more of them than it shows, for any frequency of the word. A search that no index speeds
//! up, for a rare text of common trigrams, ends when its time is over, with the position where the next page
//! continues.

mod conversation_search;
mod grams;
mod index;
mod rank;
mod scan;

pub(super) use conversation_search::conversations_with;
pub(in crate::sqlite) use index::{INDEX_BATCH_BYTES, IndexState, index, index_state};
pub(super) use index::{index_answer, index_input, index_title, remove_title, remove_turn_texts};

use crate::catalog::fold::find_folded;
use crate::catalog::texts::{SearchTerm, snippet};
use crate::catalog::{CatalogLimits, PagePosition, PageRequest, ResultPage, SearchHit, SearchHitPart};
use crate::error::StoreError;
use crate::sqlite::search_pool::SearchBudget;
use rusqlite::{Connection, OptionalExtension, Row, params};
use scan::{ScanCandidate, SearchScan};
use std::ops::ControlFlow;

/// Marker in the id of a cursor: its position is a rank and not a time.
const CURSOR_ID: &str = "rank";

const TITLE: i64 = 0;
const INPUT: i64 = 1;
const ANSWER: i64 = 2;

pub(super) fn hits(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    text: &str,
    page: &PageRequest,
    budget: &SearchBudget,
) -> Result<ResultPage<SearchHit>, StoreError> {
    let after = match page.position()? {
        Some(position) if position.id != CURSOR_ID => {
            return Err(StoreError::invalid("cursor", "it is not a cursor of an earlier page"));
        }
        position => position.map(|position| position.at),
    };
    let term = SearchTerm::parse(text, limits.search_chars_max)?;
    let Some(scan) = SearchScan::for_term(db, user, &term, after)? else { return Ok(ResultPage::empty()) };
    let rows = page.rows() as usize;
    let mut page = ResultPage::empty();
    // Everything from here on has been looked at.
    let mut next_rank = None;
    scan.walk(db, |candidate| {
        if let Some(hit) = hit(db, user, term.text(), &candidate)? {
            // It is the first one of the next page.
            if page.items.len() == rows {
                page.next = next_rank.map(|rank| cursor(rank, &scan));
                return Ok(ControlFlow::Break(()));
            }
            page.items.push(hit);
        }
        next_rank = Some(candidate.rank);
        if budget.is_expired() {
            page.next = Some(cursor(candidate.rank, &scan));
            page.partial = page.items.len() < rows;
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(page)
}

/// The page that comes next begins below this rank.
fn cursor(rank: i64, scan: &SearchScan) -> String {
    PagePosition { at: rank::to_cursor(rank, scan.user_n()), id: CURSOR_ID.to_owned() }.to_string()
}

/// `None`: it is there for its mark only.
fn hit(
    db: &Connection,
    user: &str,
    term: &str,
    candidate: &ScanCandidate,
) -> Result<Option<SearchHit>, StoreError> {
    let (query, part) = match candidate.part {
        TITLE => (
            "SELECT id AS conversation_id, title, NULL AS turn_id, title AS text, created_at AS at
             FROM conversation WHERE n = ?1 AND user_id = ?2 AND temporary = 0",
            SearchHitPart::Title,
        ),
        INPUT => (
            "SELECT c.id AS conversation_id, c.title, t.id AS turn_id, b.input_text AS text, t.created_at AS at
             FROM turn t JOIN conversation c ON c.id = t.conversation_id JOIN turn_begin b ON b.n = t.n
             WHERE t.n = ?1 AND t.user_id = ?2 AND c.temporary = 0",
            SearchHitPart::Input,
        ),
        _ => (
            "SELECT c.id AS conversation_id, c.title, t.id AS turn_id, e.text, t.created_at AS at
             FROM turn t JOIN conversation c ON c.id = t.conversation_id JOIN turn_end e ON e.n = t.n
             WHERE t.n = ?1 AND t.user_id = ?2 AND c.temporary = 0",
            SearchHitPart::Answer,
        ),
    };
    let of = |row: &Row<'_>| {
        let text: String = row.get("text")?;
        if candidate.is_marked() && find_folded(&text, term).is_none() {
            return Ok(None);
        }
        Ok(Some(SearchHit {
            conversation_id: row.get("conversation_id")?,
            title: row.get("title")?,
            turn_id: row.get("turn_id")?,
            part,
            snippet: snippet(&text, term),
            at: row.get("at")?,
        }))
    };
    Ok(db.prepare_cached(query)?.query_row(params![candidate.n, user], of).optional()?.flatten())
}
