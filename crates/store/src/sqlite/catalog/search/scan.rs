//! A walk through the hits of one user from the newest on, which can stop anywhere and continue there later.
//!
//! FTS5 reads all texts that have the trigrams of a phrase until it finds one that has the phrase, and
//! returns nothing until then: a phrase without a hit takes unbounded time. So at intervals a text has a
//! [mark](MARK) in the index, and marks are searched together with the phrase.

use super::{INPUT, grams, rank};
use crate::catalog::fold::fold;
use crate::catalog::texts::SearchTerm;
use crate::error::StoreError;
use rusqlite::{Connection, params};
use std::ops::ControlFlow;

/// Characters that no text contains: Unicode noncharacters.
pub(super) const MARK: &str = "\u{fdd0}\u{fdd1}\u{fdd0}";
/// Turns per mark: one turn in this many has one.
const TURNS_PER_MARK: i64 = 64;

/// FTS5 walks its index backwards; the other table is looked into for each hit and no other row.
const TRIGRAM_QUERY: &str =
    "SELECT s.rank, s.part, s.n FROM search_trigram i CROSS JOIN search_row s ON s.rank = i.rowid
    WHERE search_trigram MATCH ?1 AND i.rowid >= ?2 AND i.rowid < ?3 AND s.user_n = ?4 ORDER BY i.rowid DESC";
const SHORT_QUERY: &str =
    "SELECT s.rank, s.part, s.n FROM search_short i CROSS JOIN search_row s ON s.rank = i.rowid
    WHERE search_short MATCH ?1 AND i.rowid >= ?2 AND i.rowid < ?3 AND s.user_n = ?4 ORDER BY i.rowid DESC";

/// A text that has been come to.
pub(super) struct ScanCandidate {
    pub rank: i64,
    pub part: i64,
    /// Row number of its conversation or turn.
    pub n: i64,
}

impl ScanCandidate {
    /// True if it may have been reached for its mark alone.
    pub(super) fn is_marked(&self) -> bool {
        is_marked(self.part, self.n)
    }
}

/// True if a text has a mark in the index.
pub(super) fn is_marked(part: i64, n: i64) -> bool {
    part == INPUT && n % TURNS_PER_MARK == 0
}

pub(super) struct SearchScan {
    query: &'static str,
    term: String,
    user_n: i64,
    from: i64,
    below: i64,
}

impl SearchScan {
    /// `None`: nothing can be found. `after` is a rank as it was shown.
    pub(super) fn for_term(
        db: &Connection,
        user: &str,
        search_term: &SearchTerm,
        after: Option<i64>,
    ) -> Result<Option<Self>, StoreError> {
        let (query, term) = match search_term {
            SearchTerm::Blank | SearchTerm::Unmatchable => return Ok(None),
            // FTS5 folds what older letters it knows, and nothing twice.
            SearchTerm::Indexed(text) => {
                (TRIGRAM_QUERY, format!("{} OR {}", phrase(&fold(text)), phrase(MARK)))
            }
            SearchTerm::Short(text) => (SHORT_QUERY, phrase(&grams::gram(text))),
        };
        let Some(user_n) = rank::user_number(db, user)? else { return Ok(None) };
        let ranks = rank::ranks(user_n);
        let below = after.map_or(ranks.end, |after| rank::from_cursor(after, user_n));
        Ok(Some(Self { query, term, user_n, from: ranks.start, below }))
    }

    /// Visits one text after the other, newest first, until the callback stops it.
    pub(super) fn walk(
        &self,
        db: &Connection,
        mut each: impl FnMut(ScanCandidate) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        let mut query = db.prepare_cached(self.query)?;
        let mut rows = query.query(params![self.term, self.from, self.below, self.user_n])?;
        while let Some(row) = rows.next()? {
            let candidate = ScanCandidate { rank: row.get(0)?, part: row.get(1)?, n: row.get(2)? };
            if each(candidate)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn user_n(&self) -> i64 {
        self.user_n
    }
}

/// A text as FTS5 takes it: one phrase, in which nothing is an operator.
fn phrase(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_scan_uses_indexes_without_sorting() {
        let mut db = Connection::open_in_memory().unwrap();
        crate::sqlite::schema::migrate(&mut db, 0).unwrap();
        for query in [TRIGRAM_QUERY, SHORT_QUERY] {
            let mut explain = db.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
            let given = vec![rusqlite::types::Value::Null; explain.parameter_count()];
            let plan =
                explain.query_map(rusqlite::params_from_iter(given), |row| row.get::<_, String>("detail"));
            let plan: Vec<String> = plan.unwrap().collect::<Result<_, _>>().unwrap();
            assert_eq!(plan.len(), 2, "nothing is sorted: {plan:#?}");
            // The letters show the arguments of FTS5: M a match, < and > ranges of rowids; it is also asked
            // for the order.
            assert!(plan[0].contains("VIRTUAL TABLE INDEX"), "{plan:#?}");
            assert!(plan[0].contains('M') && plan[0].contains('<') && plan[0].contains('>'), "{plan:#?}");
            assert!(plan[1].contains("INTEGER PRIMARY KEY (rowid=?)"), "{plan:#?}");
        }
    }
}
