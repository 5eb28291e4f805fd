//! The tables, version by version.

use super::PostgresOpenError;
use sqlx::{Connection, PgConnection, PgPool, raw_sql};

/// Migrations: each version holds its changes to the previous one. A released version never changes.
const VERSIONS: [&[&str]; 8] = [
    &[include_str!("schema/log.sql"), include_str!("schema/catalog.sql")],
    &[include_str!("schema/pace.sql")],
    &[include_str!("schema/search.sql")],
    &[include_str!("schema/names.sql")],
    &[include_str!("schema/people.sql")],
    &[include_str!("schema/rating.sql")],
    &[include_str!("schema/organization.sql")],
    &[include_str!("schema/peers.sql")],
];

/// The newest version that this program knows.
pub(super) const NEWEST: i64 = VERSIONS.len() as i64;

/// Held while the tables are made: servers that start together wait for each other.
const LOCK: i64 = 0x7468_726c_0001;

/// Trigram index for fast searches, where the extension is available. Without it every text is read.
const TRIGRAMS: &str = "
    CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
    CREATE INDEX IF NOT EXISTS search_text_trigram ON search_text USING gin (text public.gin_trgm_ops);
    CREATE INDEX IF NOT EXISTS conversation_title_trigram ON conversation USING gin (title_lower public.gin_trgm_ops);";

/// Version of the tables; `None` = there are none.
pub(super) async fn version(pool: &PgPool) -> Result<Option<i64>, sqlx::Error> {
    let there: bool =
        sqlx::query_scalar("SELECT to_regclass('tl.version') IS NOT NULL").fetch_one(pool).await?;
    if !there {
        return Ok(None);
    }
    sqlx::query_scalar("SELECT max(version) FROM tl.version").fetch_one(pool).await
}

/// Brings the schema to [`NEWEST`], all of it or nothing.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<(), PostgresOpenError> {
    let encoding: String = sqlx::query_scalar("SHOW server_encoding").fetch_one(&mut *connection).await?;
    if encoding != "UTF8" {
        return Err(PostgresOpenError::Encoding { found: encoding });
    }
    let mut transaction = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *transaction).await?;
    raw_sql(
        "CREATE SCHEMA IF NOT EXISTS tl; CREATE TABLE IF NOT EXISTS tl.version (version BIGINT NOT NULL);",
    )
    .execute(&mut *transaction)
    .await?;
    let found: Option<i64> =
        sqlx::query_scalar("SELECT max(version) FROM tl.version").fetch_one(&mut *transaction).await?;
    let found = found.unwrap_or_default();
    if found > NEWEST {
        return Err(PostgresOpenError::Newer { found, known: NEWEST });
    }
    let missing = VERSIONS.iter().skip(usize::try_from(found).unwrap_or_default());
    let missing: Vec<&'static str> = missing.flat_map(|parts| parts.iter().copied()).collect();
    for part in missing {
        raw_sql(part).execute(&mut *transaction).await?;
    }
    if found < NEWEST {
        sqlx::query("DELETE FROM tl.version").execute(&mut *transaction).await?;
        sqlx::query("INSERT INTO tl.version VALUES ($1)").bind(NEWEST).execute(&mut *transaction).await?;
        let mut trying = transaction.begin().await?;
        // Not everybody may create extensions, and not every server has this one.
        match raw_sql(TRIGRAMS).execute(&mut *trying).await {
            Ok(_) => trying.commit().await?,
            Err(_) => trying.rollback().await?,
        }
    }
    Ok(transaction.commit().await?)
}
