//! Rank of a searchable text: composed of its user, its time and its row. Higher is newer.
//!
//! The time is that of the turn or conversation and not that of the write: an imported text is as old as it
//! was.

use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, params};
use std::ops::Range;

/// Texts of one user in one millisecond. More move to the milliseconds after it.
const NUMBER_BITS: u32 = 10;
/// Milliseconds since 1970, until the year 2109.
const TIME_BITS: u32 = 42;
/// Number of user ranges in a rank; beyond it two users share a range, in which each row names its user.
const USERS: i64 = 1 << 11;

const NUMBERS: i64 = 1 << NUMBER_BITS;
/// Latest time in a rank, in milliseconds, with room above it for ranks that move up.
const LATEST_MS: i64 = (1 << TIME_BITS) - (1 << 20);

/// Number of a user in the search tables; `None`: the user has no indexed text yet.
pub(super) fn user_number(db: &Connection, user: &str) -> Result<Option<i64>, StoreError> {
    Ok(db
        .prepare_cached("SELECT n FROM search_user WHERE user_id = ?1")?
        .query_row([user], |row| row.get(0))
        .optional()?)
}

/// Number of a user, assigned if there is none yet.
pub(super) fn ensure_user_number(db: &Connection, user: &str) -> Result<i64, StoreError> {
    if let Some(n) = user_number(db, user)? {
        return Ok(n);
    }
    db.prepare_cached("INSERT INTO search_user (user_id) VALUES (?1)")?.execute([user])?;
    Ok(db.last_insert_rowid())
}

/// All ranks of a user.
pub(super) fn ranks(user_n: i64) -> Range<i64> {
    let user = user_n % USERS;
    let all = 1 << (TIME_BITS + NUMBER_BITS);
    user * all..(user + 1).saturating_mul(all)
}

/// A rank as a cursor for clients: without its user.
pub(super) fn to_cursor(rank: i64, user_n: i64) -> i64 {
    rank - ranks(user_n).start
}

/// A rank from a cursor, restricted to the user's range for any value.
pub(super) fn from_cursor(cursor: i64, user_n: i64) -> i64 {
    let ranks = ranks(user_n);
    ranks.start.saturating_add(cursor.max(0)).min(ranks.end)
}

/// Gives a text its rank.
pub(super) fn insert(db: &Connection, user_n: i64, at: i64, part: i64, n: i64) -> Result<i64, StoreError> {
    let mut find = db.prepare_cached("SELECT max(rank) FROM search_row WHERE rank >= ?1 AND rank < ?2")?;
    let mut first = ranks(user_n).start + (at.clamp(0, LATEST_MS) << NUMBER_BITS);
    let mut step = NUMBERS;
    let rank = loop {
        let last: Option<i64> = find.query_row([first, first + NUMBERS], |row| row.get(0))?;
        match last {
            None => break first,
            Some(last) if last + 1 < first + NUMBERS => break last + 1,
            // Much of one time, as an import without times has it: doubled, so that each finds its way soon.
            Some(_) => {
                first += step;
                step *= 2;
            }
        }
    };
    db.prepare_cached("INSERT INTO search_row (rank, user_n, part, n) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![rank, user_n, part, n])?;
    Ok(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn db() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        crate::sqlite::schema::migrate(&mut db, 0).unwrap();
        db
    }

    #[test]
    fn ranks_follow_time_and_stay_in_the_range_of_their_user() {
        let db = db();
        let (ann, bob) = (ensure_user_number(&db, "ann").unwrap(), ensure_user_number(&db, "bob").unwrap());
        assert_eq!((ensure_user_number(&db, "ann"), user_number(&db, "eve")), (Ok(ann), Ok(None)));
        let rank = |user, at, n| insert(&db, user, at, 1, n).unwrap();
        let times = [i64::MIN, 5, 1_700_000_000_000, i64::MAX];
        let anns: Vec<i64> = (1..).zip(times).map(|(n, at)| rank(ann, at, n)).collect();
        assert!(anns.is_sorted(), "{anns:?}");
        assert!(anns.iter().all(|rank| ranks(ann).contains(rank)));
        assert!(ranks(bob).contains(&rank(bob, i64::MAX, 9)));
        assert_eq!(from_cursor(to_cursor(anns[2], ann), ann), anns[2]);
        assert_eq!(from_cursor(i64::MAX, ann), ranks(ann).end);
        assert_eq!(from_cursor(-1, ann), ranks(ann).start);
        let last = ranks(USERS - 1);
        assert!(last.start > 0 && last.end > last.start, "the last user has a range, too");
        assert_eq!(ranks(USERS + ann), ranks(ann), "more users share ranges");
    }

    #[test]
    fn rank_collisions_in_one_millisecond_get_distinct_ranks() {
        let db = db();
        let count = NUMBERS * 4;
        let mut given: Vec<i64> = (0..count).map(|n| insert(&db, 1, 7, 1, n).unwrap()).collect();
        given.sort_unstable();
        given.dedup();
        assert_eq!(given.len() as i64, count);
        assert!(given.iter().all(|rank| ranks(1).contains(rank)));
    }
}
