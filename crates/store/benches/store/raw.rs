//! Raw inserts: microseconds of processor time for each row.

use crate::clock::processor_seconds;
use anyhow::{Result, ensure};

const TABLE: &str =
    "CREATE TABLE journal (id INTEGER PRIMARY KEY, turn INTEGER, seq INTEGER, kind TEXT, data BLOB)";
const INSERT: &str = "INSERT INTO journal (turn, seq, kind, data) VALUES (?1, ?2, ?3, ?4)";

fn data() -> Vec<u8> {
    vec![b'x'; 200]
}

pub fn rusqlite(events: usize, batch: usize, full: bool) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let connection = rusqlite::Connection::open(folder.path().join("raw.db"))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "wal_autocheckpoint", 4000)?;
    connection.pragma_update(None, "synchronous", if full { "full" } else { "normal" })?;
    connection.execute_batch(TABLE)?;
    let data = data();
    let begun = processor_seconds();
    for first in (0..events).step_by(batch) {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut insert = connection.prepare_cached(INSERT)?;
        for seq in first..first + batch {
            insert.execute(rusqlite::params![(seq % 1000) as i64, seq as i64, "content_delta", &data[..]])?;
        }
        connection.prepare_cached("COMMIT")?.execute([])?;
    }
    let cost = (processor_seconds() - begun) * 1e6 / events as f64;
    let rows: i64 = connection.query_row("SELECT count(*) FROM journal", [], |row| row.get(0))?;
    ensure!(rows as usize == events, "{rows} rows of {events}");
    Ok(cost)
}

#[cfg(feature = "raw-sqlx")]
pub async fn sqlx(events: usize, batch: usize, full: bool) -> Result<f64> {
    use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
    use sqlx::{ConnectOptions, Connection};

    let folder = tempfile::tempdir()?;
    let synchronous = if full { SqliteSynchronous::Full } else { SqliteSynchronous::Normal };
    let mut connection = SqliteConnectOptions::new()
        .filename(folder.path().join("raw.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .pragma("wal_autocheckpoint", "4000")
        .connect()
        .await?;
    sqlx::query(TABLE).execute(&mut connection).await?;
    let data = data();
    // What its own guide recommends: many rows in one statement, as many as fit its parameters.
    let rows = batch.min(64);
    let values = vec!["(?, ?, ?, ?)"; rows].join(", ");
    let insert = format!("INSERT INTO journal (turn, seq, kind, data) VALUES {values}");
    let begun = processor_seconds();
    for first in (0..events).step_by(batch) {
        let mut transaction = connection.begin().await?;
        for first in (first..first + batch).step_by(rows) {
            let mut query = sqlx::query(sqlx::AssertSqlSafe(insert.as_str()));
            for seq in first..first + rows {
                query =
                    query.bind((seq % 1000) as i64).bind(seq as i64).bind("content_delta").bind(&data[..]);
            }
            query.execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
    }
    let cost = (processor_seconds() - begun) * 1e6 / events as f64;
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM journal").fetch_one(&mut connection).await?;
    ensure!(rows as usize == events, "{rows} rows of {events}");
    Ok(cost)
}

#[cfg(not(feature = "raw-sqlx"))]
pub async fn sqlx(_events: usize, _batch: usize, _full: bool) -> Result<f64> {
    anyhow::bail!("without the feature raw-sqlx")
}
