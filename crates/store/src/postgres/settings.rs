//! Settings of a PostgreSQL store.

use crate::catalog::CatalogLimits;
use std::time::Duration;

/// Bounds and behavior of a [`PostgresStore`](super::PostgresStore). All sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostgresSettings {
    /// When a commit waits for the disk. Default [`CommitPolicy::ByClass`].
    pub commit: CommitPolicy,
    /// Length of the lease by which this server owns its turns. Default 3 s.
    pub lease: Duration,
    /// Interval at which the lease is renewed. Default 1 s.
    pub lease_renew_interval: Duration,
    /// Time before the end of its lease from which a server acknowledges no append any more. Default 0.5 s.
    pub lease_margin: Duration,
    /// Interval at which turns of other servers are polled for viewers here, with or without a notification. Default
    /// 500 ms.
    pub poll: Duration,
    /// Interval at which the store checks if tables that searches read have changed so much that PostgreSQL
    /// needs new statistics for them. Default 5 s: an import has them soon after its end.
    pub statistics_interval: Duration,
    /// Recent records of one running turn that viewers get from memory. Default 16 KiB.
    pub ring_bytes_max: usize,
    /// Records per read of a tail. Default 512.
    pub tail_records_max: usize,
    /// Bytes that may wait for the writer; more must wait outside. Default 64 MiB.
    pub queue_bytes_max: usize,
    /// Connections in addition to the four for appends, searches, the lease and notifications, and one while
    /// statistics are made. Default 8.
    pub pool_connections_max: u32,
    /// Longest time that a query waits for one of them, and opening for the database. Default 10 s.
    pub connect_wait: Duration,
    /// Longest payload of a notification; with more turns in one commit it stands for all. Default 7,900:
    /// PostgreSQL takes less than 8,000.
    pub notify_bytes_max: usize,
    /// Limits of the catalog.
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
            statistics_interval: Duration::from_secs(5),
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

/// Commits that wait until the database reports them as on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitPolicy {
    /// Only commits with something that must survive a power cut.
    #[default]
    ByClass,
    Always,
}
