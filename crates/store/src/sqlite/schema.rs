//! The tables, version by version.

use rusqlite::{Connection, TransactionBehavior};

/// Marks a file as ours (`PRAGMA application_id`): the letters `THRL`.
pub(super) const APPLICATION_ID: i32 = 0x5448_524C;

/// Each version is what it adds to the one before it. A released version never changes.
const VERSIONS: [&[&str]; 1] = [&[include_str!("schema/log.sql"), include_str!("schema/catalog.sql")]];

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
