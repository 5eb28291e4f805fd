//! Lease of this server on its turns: a row with the time of its expiry, by the clock of the database, and a
//! lock that the end of the process releases.
//!
//! Safety rests on the epoch of each turn alone. The lease determines when others may take a turn, and when
//! this server must stop acting on the turns that it believes it owns.

use super::connection::{StatementFailure, classify_error, connect};
use super::shared::PostgresShared;
use sqlx::{Connection, PgConnection};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// First half of the advisory lock of a replica; the second is its id.
pub(super) const LOCK_CLASS: i32 = 0x7468_726c;

/// A condition on a `replica r`: it runs.
pub(super) fn alive_condition() -> String {
    format!(
        "r.lease_until > clock_timestamp() AND EXISTS (SELECT 1 FROM pg_locks l
            WHERE l.locktype = 'advisory' AND l.classid::bigint = {LOCK_CLASS} AND l.objid::bigint = r.id
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
    )
}

/// The lease as this server knows it.
pub(super) struct ServerLease {
    /// Time until which the server may act.
    valid_until: Mutex<Option<Instant>>,
    /// Other servers that run.
    other_servers: AtomicI64,
}

impl ServerLease {
    pub(super) fn new() -> Self {
        Self { valid_until: Mutex::default(), other_servers: AtomicI64::new(0) }
    }

    /// Time until which this server may act on its turns; `None`: not now.
    pub(super) fn valid_until(&self) -> Option<Instant> {
        let until = *self.valid_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.filter(|until| *until > Instant::now())
    }

    /// True if another server must be notified of appends.
    pub(super) fn has_others(&self) -> bool {
        self.other_servers.load(Relaxed) > 0
    }
}

/// The machine and the process, as people look for them.
fn server_name() -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let machine = machine.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let machine = machine.trim();
    format!("{}-{}", if machine.is_empty() { "server" } else { machine }, std::process::id())
}

/// A row for this server.
pub(super) async fn register(db: &mut PgConnection, lease: Duration) -> Result<i32, sqlx::Error> {
    // A server that has been dead for a day owns no turn that is still looked up by its row.
    sqlx::query("DELETE FROM replica WHERE lease_until < clock_timestamp() - interval '1 day'")
        .execute(&mut *db)
        .await?;
    sqlx::query_scalar(
        "INSERT INTO replica (name, lease_until) VALUES ($1, clock_timestamp() + make_interval(secs => $2)) RETURNING id",
    )
    .bind(server_name())
    .bind(lease.as_secs_f64())
    .fetch_one(db)
    .await
}

/// Makes the lease as long as it can be.
pub(super) async fn renew(db: &mut PgConnection, shared: &PostgresShared) -> Result<(), sqlx::Error> {
    let settings = &shared.settings;
    // Counted from before the question: the database begins to count later.
    let asked = Instant::now();
    let others: i64 = sqlx::query_scalar(
        "WITH mine AS (
            INSERT INTO replica (id, name, lease_until) OVERRIDING SYSTEM VALUE
            VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
            ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until)
         SELECT count(*) FROM replica r WHERE r.id <> $1 AND r.lease_until > clock_timestamp()",
    )
    .bind(shared.replica)
    .bind(server_name())
    .bind(settings.lease.as_secs_f64())
    .fetch_one(db)
    .await?;
    shared.lease.other_servers.store(others, Relaxed);
    let until = asked + settings.lease.saturating_sub(settings.lease_margin);
    *shared.lease.valid_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    Ok(())
}

/// A connection that holds the lock of this server.
pub(super) async fn acquire(shared: &PostgresShared) -> Result<PgConnection, sqlx::Error> {
    let mut db = connect(&shared.options).await?;
    sqlx::query("SET synchronous_commit = off").execute(&mut db).await?;
    sqlx::query("SELECT pg_try_advisory_lock($1, $2)")
        .bind(LOCK_CLASS)
        .bind(shared.replica)
        .execute(&mut db)
        .await?;
    renew(&mut db, shared).await?;
    Ok(db)
}

/// Renews the lease until the store is closed.
pub(super) async fn renew_forever(shared: std::sync::Arc<PostgresShared>, db: PgConnection) {
    let mut every = tokio::time::interval(shared.settings.lease_renew_interval);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut connection = Some(db);
    loop {
        every.tick().await;
        let had_run_out = shared.lease.valid_until().is_none();
        // A hanging database is treated like an unreachable one.
        let timeout = shared.settings.lease;
        let renewed = match connection.as_mut() {
            Some(db) => tokio::time::timeout(timeout, renew(db, &shared)).await,
            None => match tokio::time::timeout(timeout, acquire(&shared)).await {
                Ok(Ok(db)) => {
                    connection = Some(db);
                    Ok(Ok(()))
                }
                Ok(Err(error)) => Ok(Err(error)),
                Err(late) => Err(late),
            },
        };
        match renewed {
            Ok(Ok(())) if had_run_out => shared.refresh(None).await,
            Ok(Ok(())) => {}
            Ok(Err(error)) if classify_error(&error) != StatementFailure::Unknown => {}
            Ok(Err(_)) | Err(_) => connection = None,
        }
        shared.evict_idle();
    }
}

/// Releases the lease: other servers may take the remaining turns immediately.
pub(super) async fn release(shared: &PostgresShared) {
    let ended = async {
        let mut db = connect(&shared.options).await?;
        sqlx::query("UPDATE replica SET lease_until = clock_timestamp() WHERE id = $1")
            .bind(shared.replica)
            .execute(&mut db)
            .await?;
        db.close().await
    };
    // Without a database the lease expires.
    let _ = tokio::time::timeout(shared.settings.lease, ended).await;
}
