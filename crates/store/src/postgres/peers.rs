//! Requests between servers, and turns of dead servers.

use super::PostgresStore;
use super::connection::sanitize_param;
use super::lease::alive_condition;
use crate::catalog::OpenTurn;
use crate::catalog::sql::turns;
use crate::error::StoreError;
use crate::peers::{PeerRequest, PeerRequestId, PeerServers};
use async_trait::async_trait;
use bytes::Bytes;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row as _};
use tokio::sync::watch;

/// The channel of requests and replies.
pub(super) const CHANNEL: &str = "tl_peer";
/// Requests taken in one query.
const TAKE_MAX: i64 = 64;

/// Condition for a request that no live server has taken.
fn untaken_condition() -> String {
    format!(
        "(q.taken_by IS NULL OR NOT EXISTS (SELECT 1 FROM replica r WHERE r.id = q.taken_by AND {}))",
        alive_condition()
    )
}

#[async_trait]
impl PeerServers for PostgresStore {
    // Waits for the disk: later acknowledgements rely on it.
    async fn send(&self, turn: &str, request: Bytes) -> Result<PeerRequestId, StoreError> {
        let id = sqlx::query_scalar(
            "WITH expired AS (DELETE FROM peer_request WHERE created_at < clock_timestamp() - interval '10 minutes'),
                sent AS (INSERT INTO peer_request (turn, request) VALUES ($1, $2) RETURNING id)
             SELECT id FROM sent, pg_notify($3, '')",
        )
        .bind(sanitize_param(turn))
        .bind(&*request)
        .bind(CHANNEL)
        .fetch_one(&self.shared().pool)
        .await?;
        Ok(PeerRequestId(id))
    }

    async fn receive(&self, id: PeerRequestId) -> Result<Option<Bytes>, StoreError> {
        let reply: Option<Vec<u8>> = sqlx::query_scalar(
            "DELETE FROM peer_request WHERE id = $1 AND reply IS NOT NULL RETURNING reply",
        )
        .bind(id.0)
        .fetch_optional(&self.shared().pool)
        .await?;
        Ok(reply.map(Bytes::from))
    }

    async fn withdraw(&self, id: PeerRequestId) -> Result<bool, StoreError> {
        let withdraw = format!(
            "DELETE FROM peer_request q WHERE q.id = $1 AND q.reply IS NULL AND {}",
            untaken_condition()
        );
        let deleted = sqlx::query(AssertSqlSafe(withdraw)).bind(id.0).execute(&self.shared().pool).await?;
        Ok(deleted.rows_affected() > 0)
    }

    async fn take(&self) -> Result<Vec<PeerRequest>, StoreError> {
        let take = format!(
            "UPDATE peer_request SET taken_by = $1 WHERE id IN (
                SELECT q.id FROM peer_request q JOIN turn_log l ON l.turn = q.turn
                WHERE q.reply IS NULL AND q.taken_by IS DISTINCT FROM $1 AND l.owner = $1 AND l.state = 0 AND {}
                ORDER BY q.id LIMIT $2 FOR UPDATE OF q SKIP LOCKED)
             RETURNING id, turn, request",
            untaken_condition()
        );
        let rows = sqlx::query(AssertSqlSafe(take)).bind(self.shared().replica).bind(TAKE_MAX);
        let rows = rows.fetch_all(&self.shared().pool).await?;
        let mut requests = rows.iter().map(peer_request).collect::<Result<Vec<_>, sqlx::Error>>()?;
        requests.sort_by_key(|request| request.id);
        Ok(requests)
    }

    async fn reply(&self, id: PeerRequestId, reply: Bytes) -> Result<(), StoreError> {
        sqlx::query(
            "WITH replied AS (UPDATE peer_request SET reply = $2 WHERE id = $1) SELECT pg_notify($3, '')",
        )
        .bind(id.0)
        .bind(&*reply)
        .bind(CHANNEL)
        .execute(&self.shared().pool)
        .await?;
        Ok(())
    }

    // The row of the turn is locked and looked at again after the wait for another server's lock, so `turn.replica` is what
    // two servers cannot both change.
    async fn claim_orphan(&self) -> Result<Option<OpenTurn>, StoreError> {
        let is_alive = |id: &str| {
            format!("EXISTS (SELECT 1 FROM replica r WHERE r.id = {id} AND {})", alive_condition())
        };
        let claim = format!(
            "WITH orphan AS MATERIALIZED (
                SELECT t.n, l.n AS log_n FROM turn t LEFT JOIN turn_log l ON l.turn = t.id
                WHERE t.ended_at IS NULL AND t.replica <> $1 AND coalesce(l.owner, 0) <> $1
                    AND NOT {} AND NOT {}
                ORDER BY t.n LIMIT 1 FOR UPDATE OF t SKIP LOCKED
             ), owned AS (
                UPDATE turn_log SET owner = $1, epoch = epoch + 1 FROM orphan WHERE turn_log.n = orphan.log_n
             ), claimed AS (
                UPDATE turn SET replica = $1 FROM orphan WHERE turn.n = orphan.n
                RETURNING turn.n, turn.id, turn.user_id, turn.conversation_id
             )
             SELECT claimed.id, claimed.user_id, claimed.conversation_id, b.stored
             FROM claimed JOIN turn_begin b ON b.n = claimed.n",
            is_alive("t.replica"),
            is_alive("coalesce(l.owner, 0)")
        );
        let claimed = sqlx::query(AssertSqlSafe(claim)).bind(self.shared().replica);
        let row = claimed.fetch_optional(&self.shared().pool).await?;
        row.map(|row| turns::open_turn(&row)).transpose()
    }

    fn doorbell(&self) -> watch::Receiver<u64> {
        self.shared().peer_doorbell.subscribe()
    }
}

fn peer_request(row: &PgRow) -> Result<PeerRequest, sqlx::Error> {
    let request: Vec<u8> = row.try_get("request")?;
    Ok(PeerRequest {
        id: PeerRequestId(row.try_get("id")?),
        turn: row.try_get("turn")?,
        request: request.into(),
    })
}
