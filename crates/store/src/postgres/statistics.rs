//! Statistics of the tables that searches read. Autovacuum makes them a minute later at best, or never where
//! it is turned off, and until then queries are planned as if an import had not happened: so the store runs
//! `ANALYZE`.
//!
//! `ANALYZE` reads a sample of at most 30,000 rows of a table, with pauses, as autovacuum does. Its lock
//! blocks neither readers nor writers. One server runs it at a time, and a table that is locked (by
//! autovacuum, by an index build) is skipped.

use super::connection::{self, StatementFailure};
use super::shared::PostgresShared;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use std::sync::Arc;
use std::time::Duration;

/// Tables that searches read.
const TABLES: [&str; 7] =
    ["conversation", "conversation_tag", "turn", "turn_begin", "turn_end", "search_text", "call"];

/// Tables in which a fifth of the rows and at least 500 have changed since the last time, and whether this
/// role may analyze them. Takes no lock of a table.
const STALE_TABLES: &str = "
    SELECT relname::text AS name, pg_has_role(relowner, 'USAGE') AS is_ours
    FROM pg_class WHERE oid = ANY (SELECT to_regclass(name) FROM unnest($1::text[]) name)
        AND pg_stat_get_mod_since_analyze(oid) >= reltuples * 0.2 + 500";

/// Held by the server that asks.
const LOCK: i64 = 0x7468_726c_0002;

/// Between two attempts of which the first came to nothing.
const RETRY_DELAY: Duration = Duration::from_secs(600);

struct StaleTable {
    name: String,
    /// True if this role may run `ANALYZE`, as far as that is visible.
    is_ours: bool,
}

/// Keeps the statistics current until the store is closed. Failures are logged once, and harmless: searches
/// have a time limit.
pub(super) async fn refresh_forever(shared: Arc<PostgresShared>) {
    let mut every = tokio::time::interval(shared.settings.statistics_interval);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut is_reported = false;
    loop {
        every.tick().await;
        let why = match refresh(&shared).await {
            Ok(refused) if refused.is_empty() => {
                is_reported = false;
                continue;
            }
            Ok(refused) => format!("the role does not own {}", refused.join(", ")),
            Err(error) => match connection::classify_error(&error) {
                StatementFailure::Refused => error.to_string(),
                // A lock, or the database is not there, which others say: that passes.
                StatementFailure::Retryable | StatementFailure::Unknown => continue,
            },
        };
        if !is_reported {
            tracing::warn!(
                why,
                "cannot refresh PostgreSQL statistics; searches may find less within their time limit"
            );
            is_reported = true;
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

/// Asks for statistics of the tables that have grown, unless another server does. Those of which it may not.
async fn refresh(shared: &PostgresShared) -> Result<Vec<String>, sqlx::Error> {
    if stale_tables(&mut *shared.pool.acquire().await?).await?.is_empty() {
        return Ok(Vec::new());
    }
    let options = shared.options.clone().options([
        ("vacuum_cost_delay", "2ms"),
        ("lock_timeout", "1s"),
        // One of the role may be too short for it.
        ("statement_timeout", "0"),
        // The lock of a dead machine is released after a minute and a half instead of hours.
        ("tcp_keepalives_idle", "30"),
        ("tcp_keepalives_interval", "20"),
        ("tcp_keepalives_count", "3"),
        ("client_min_messages", "error"),
    ]);
    let mut db = connection::connect(&options).await?;
    let is_free: bool =
        sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(LOCK).fetch_one(&mut db).await?;
    let mut refused = Vec::new();
    if is_free {
        // Another server may just have done it.
        for table in stale_tables(&mut db).await? {
            let analyze = format!("ANALYZE (SKIP_LOCKED) tl.{}", table.name);
            sqlx::query(AssertSqlSafe(analyze)).execute(&mut db).await?;
        }
        let left = stale_tables(&mut db).await?;
        refused.extend(left.into_iter().filter(|table| !table.is_ours).map(|table| table.name));
    }
    // The lock ends with the connection.
    db.close().await?;
    Ok(refused)
}

async fn stale_tables(db: &mut PgConnection) -> Result<Vec<StaleTable>, sqlx::Error> {
    let names: Vec<String> = TABLES.iter().map(|name| format!("tl.{name}")).collect();
    let rows = sqlx::query(STALE_TABLES).bind(names).fetch_all(db).await?;
    rows.iter()
        .map(|row| Ok(StaleTable { name: row.try_get("name")?, is_ours: row.try_get("is_ours")? }))
        .collect()
}
