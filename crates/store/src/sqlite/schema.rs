//! The tables, version by version.

use rusqlite::{Connection, TransactionBehavior};

/// Marks a file as ours (`PRAGMA application_id`): the letters `THRL`.
pub(super) const APPLICATION_ID: i32 = 0x5448_524C;

/// Migrations: each version holds its changes to the previous one. A released version never changes.
const VERSIONS: [&[&str]; 8] = [
    &[include_str!("schema/log.sql"), include_str!("schema/catalog.sql")],
    &[include_str!("schema/pace.sql")],
    &[include_str!("schema/unindexed.sql")],
    &[include_str!("schema/search.sql")],
    &[include_str!("schema/names.sql")],
    &[include_str!("schema/people.sql")],
    &[include_str!("schema/rating.sql")],
    &[include_str!("schema/organization.sql")],
];

/// The newest version that this program knows (`PRAGMA user_version`).
pub(super) const NEWEST: i64 = VERSIONS.len() as i64;

/// Brings a file of version `from` to [`NEWEST`], all of it or nothing.
pub(super) fn migrate(connection: &mut Connection, from: i64) -> rusqlite::Result<()> {
    let done = usize::try_from(from).unwrap_or_default();
    let missing = VERSIONS.get(done..).unwrap_or_default();
    if missing.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for part in missing.iter().copied().flatten() {
        transaction.execute_batch(part)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", NEWEST)?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_version_file_is_migrated_with_its_data() {
        let mut connection = Connection::open_in_memory().unwrap();
        for part in VERSIONS[0] {
            connection.execute_batch(part).unwrap();
        }
        connection
            .execute_batch(
                "INSERT INTO turn (id, user_id, message_id, agent, status, created_at, ended_at)
                 VALUES ('t', 'ann', 'm', 'default', 'completed', 1, 2)",
            )
            .unwrap();
        migrate(&mut connection, 1).unwrap();
        let found: (String, Option<i64>, i64) = connection
            .query_row(
                "SELECT status, first_content_ms, user_version FROM turn, pragma_user_version",
                [],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .unwrap();
        assert_eq!(found, ("completed".to_owned(), None, NEWEST));
        migrate(&mut connection, NEWEST).unwrap();
    }

    #[test]
    fn texts_of_an_older_version_are_reindexed() {
        use crate::sqlite::catalog::search::{IndexState, index, index_state};

        let mut connection = Connection::open_in_memory().unwrap();
        for part in VERSIONS[..3].iter().copied().flatten() {
            connection.execute_batch(part).unwrap();
        }
        connection
            .execute_batch(
                "INSERT INTO conversation (n, id, user_id, title, title_by, created_at, updated_at)
                 VALUES (1, 'c', 'ann', 'Weather', 0, 1, 1);
                 INSERT INTO turn (n, id, user_id, conversation_id, message_id, agent, status, created_at, ended_at)
                 VALUES (1, 't', 'ann', 'c', 'm', 'a', 'completed', 1, 2), (2, 'alone', 'ann', NULL, 'm', 'a', 'completed', 1, 2);
                 INSERT INTO turn_begin VALUES (1, 'How is it?', ''), (2, 'nobody looks for this', '');
                 INSERT INTO turn_end VALUES (1, '[]', 'sunny', NULL), (2, '[]', 'sunny', NULL);
                 INSERT INTO said (rowid, text) VALUES (2, 'How is it?'), (3, 'sunny');",
            )
            .unwrap();
        migrate(&mut connection, 3).unwrap();
        assert_eq!(index_state(&connection), Ok(IndexState::Stale));
        assert_eq!(index(&connection, usize::MAX), Ok(IndexState::Complete));
        let parts = "SELECT group_concat(part || '.' || n) FROM (SELECT * FROM search_row ORDER BY part)";
        let parts: String = connection.query_row(parts, [], |row| row.get(0)).unwrap();
        assert_eq!(parts, "0.1,1.1,2.1");
    }
}
