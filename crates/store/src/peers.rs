//! Communication between servers of one database: requests for turns that another one runs, and turns whose
//! server has died.

use crate::catalog::OpenTurn;
use crate::error::StoreError;
use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::watch;

/// Number of a request to another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerRequestId(pub i64);

/// A request that this server is to answer, since it runs the turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerRequest {
    pub id: PeerRequestId,
    pub turn: String,
    /// Opaque to the store.
    pub request: Bytes,
}

/// The other servers of a database.
///
/// A request is durable before it is delivered, and the server that owns its turn takes it once. If that server dies
/// first, the next owner takes it.
#[async_trait]
pub trait PeerServers: Send + Sync {
    /// Stores a request for the server that runs this turn.
    async fn send(&self, turn: &str, request: Bytes) -> Result<PeerRequestId, StoreError>;

    /// Reply to a request, returned once; `None`: no reply yet.
    async fn receive(&self, id: PeerRequestId) -> Result<Option<Bytes>, StoreError>;

    /// Takes a request back. `false`: a server that runs has taken it, and is about to reply or has.
    async fn withdraw(&self, id: PeerRequestId) -> Result<bool, StoreError>;

    /// Takes the requests for turns that this server owns, oldest first.
    async fn take(&self) -> Result<Vec<PeerRequest>, StoreError>;

    /// Replies to a request that was taken.
    async fn reply(&self, id: PeerRequestId, reply: Bytes) -> Result<(), StoreError>;

    /// Claims the oldest turn without an end whose server has died; `None`: there is none. Servers that call
    /// this at the same time get different turns.
    async fn claim_orphan(&self) -> Result<Option<OpenTurn>, StoreError>;

    /// Changes when there may be a request or a reply. It may miss one: look now and then anyway.
    fn doorbell(&self) -> watch::Receiver<u64>;
}
