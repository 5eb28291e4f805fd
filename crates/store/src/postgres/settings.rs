//! How a PostgreSQL store is set up.

use crate::catalog::CatalogLimits;
use std::time::Duration;

/// Bounds and habits of a [`PostgresStore`](super::PostgresStore). All sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostgresSettings {
    /// When a commit waits for the disk. Default [`CommitPolicy::ByClass`].
    pub commit: CommitPolicy,
    /// How long this server owns its turns without saying so again. Default 3 s.
    pub lease: Duration,
    /// How often it says so. Default 1 s.
    pub lease_renew_interval: Duration,
    /// How long before the end of its lease a server acknowledges nothing any more that somebody acts on. Default 0.5 s.
    pub lease_margin: Duration,
    /// How often turns of other servers are looked at for viewers here, whether a notification came or not. Default
    /// 500 ms.
    pub poll: Duration,
    /// Recent records of one running turn that viewers get from memory. Default 16 KiB.
    pub ring_bytes_max: usize,
    /// Records given to a tail at once. Default 512.
    pub tail_records_max: usize,
    /// What may wait for the writer; more must wait outside. Default 64 MiB.
    pub queue_bytes_max: usize,
    /// Connections beside the four that append, search, keep the lease and listen. Default 8.
    pub pool_connections_max: u32,
    /// How long a query waits for one of them, and opening for the database. Default 10 s.
    pub connect_wait: Duration,
    /// Longest payload of a notification; with more turns in one commit it says "all". Default 7,900: PostgreSQL takes
    /// less than 8,000.
    pub notify_bytes_max: usize,
    /// How much is taken beside the log.
    pub catalog: CatalogLimits,
}

impl Default for PostgresSettings {
    fn default() -> Self {
        Self {
            commit: CommitPolicy::ByClass,
            lease: Duration::from_secs(3),
            lease_renew_interval: Duration::from_secs(1),
            lease_margin: Duration::from_millis(500),
            poll: Duration::from_millis(500),
            ring_bytes_max: 16 << 10,
            tail_records_max: 512,
            queue_bytes_max: 64 << 20,
            pool_connections_max: 8,
            connect_wait: Duration::from_secs(10),
            notify_bytes_max: 7_900,
            catalog: CatalogLimits::default(),
        }
    }
}

/// When a commit waits until the database says that it is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitPolicy {
    /// If something in it must survive a power cut.
    #[default]
    ByClass,
    /// Always.
    Always,
}
