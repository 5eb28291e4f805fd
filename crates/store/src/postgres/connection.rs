//! Connections, and what their errors mean.

use super::settings::PostgresSettings;
use crate::error::StoreError;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Error};
use std::str::FromStr;

/// Options of every connection: all tables are in one schema. A transaction that its server forgot holds its locks for ten
/// seconds at most. Plans are not compiled: that takes 0.4 s, longer than any statement here.
pub(super) fn options(url: &str) -> Result<PgConnectOptions, Error> {
    let options = PgConnectOptions::from_str(url)?
        .application_name("throughline")
        .options([
            ("search_path", "tl,public"),
            ("idle_in_transaction_session_timeout", "10s"),
            ("default_transaction_isolation", "read committed"),
            ("client_min_messages", "warning"),
            ("jit", "off"),
        ])
        .disable_statement_logging();
    Ok(options)
}

pub(super) fn pool(options: &PgConnectOptions, settings: &PostgresSettings) -> PgPool {
    PgPoolOptions::new()
        .max_connections(settings.pool_connections_max.max(1))
        .acquire_timeout(settings.connect_wait)
        .connect_lazy_with(options.clone())
}

pub(super) async fn connect(options: &PgConnectOptions) -> Result<PgConnection, Error> {
    options.connect().await
}

/// SQLSTATE of a statement that took too long or was cancelled.
pub(super) const CANCELLED: &str = "57014";
/// A lock was not available in time.
pub(super) const LOCKED: &str = "55P03";

/// Effect of a statement that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatementFailure {
    /// Refused: nothing has been written.
    Refused,
    /// Refused for a temporary reason: retry immediately.
    Retryable,
    /// Connection lost; whether the statement was committed must be looked up.
    Unknown,
}

pub(super) fn classify_error(error: &Error) -> StatementFailure {
    match error {
        Error::Database(error) => match error.code().as_deref() {
            // Serialization failure, deadlock, lock not available, cancelled.
            Some("40001" | "40P01" | LOCKED | CANCELLED) => StatementFailure::Retryable,
            // The connection or its server is going down; a server that has just become a standby takes no changes.
            Some(code) if code.starts_with("08") || matches!(code, "57P01" | "57P02" | "57P03" | "25006") => {
                StatementFailure::Unknown
            }
            _ => StatementFailure::Refused,
        },
        Error::Io(_) | Error::Tls(_) | Error::Protocol(_) | Error::WorkerCrashed | Error::PoolTimedOut => {
            StatementFailure::Unknown
        }
        _ => StatementFailure::Refused,
    }
}

/// Errors of PostgreSQL by their meaning.
impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let why = error.to_string();
        match &error {
            Error::Database(database) => match database.code().as_deref() {
                Some("53100") => Self::DiskFull { why },
                Some("25006") => Self::ReadOnly { why },
                Some("XX001" | "XX002") => Self::Corrupt { why },
                // The caller knows which limit that is.
                Some(CANCELLED | LOCKED) => Self::Busy { limit: "statement_timeout", max: 0 },
                _ => Self::Failed { why },
            },
            Error::PoolClosed => Self::failed("the store has been closed"),
            _ => Self::Failed { why },
        }
    }
}

/// A text for a comparison with stored ones. PostgreSQL refuses NUL; it is replaced by another control
/// character, which no id of ours has, so that nothing is found.
pub(super) fn sanitize_param(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{1}").into() } else { text.into() }
}
