//! Settings of a SQLite store.

use crate::catalog::CatalogLimits;
use std::time::Duration;

/// Bounds and behavior of a [`SqliteStore`](super::SqliteStore). All sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteSettings {
    /// When a commit waits for the disk. Default [`SyncPolicy::ByClass`].
    pub sync: SyncPolicy,
    /// Commits a second that hold nothing urgent, once [`Self::commit_burst`] is used up: then appends gather, so that
    /// a busy store pays a commit for many of them. Default 500: at most 2 ms of waiting, and only under load.
    pub commits_per_second_max: u32,
    /// Commits that need not wait for each other after a quiet time. Default 64.
    pub commit_burst: u32,
    /// Recent records of one running turn that viewers get from memory. Default 16 KiB.
    pub ring_bytes_max: usize,
    /// After this time without an append a turn leaves memory for its segment. Default 10 s.
    pub ring_idle: Duration,
    /// Records per read of a tail. Default 512.
    pub tail_records_max: usize,
    /// Bytes that may wait for the writer; more must wait outside. Default 64 MiB.
    pub queue_bytes_max: usize,
    /// Connections that read. Default 4.
    pub readers_max: usize,
    /// With less free space on the disk no new turn is taken. Default 256 MiB.
    pub free_bytes_min: u64,
    /// Size of a file next to the database that is deleted when the disk is full, so that running turns can
    /// finish, in bytes. 0 = none. Under 16 MiB the next checkpoint may use up all of it. Default 64 MiB.
    pub ballast_bytes: u64,
    /// After an unclean stop a file up to this size is checked before it is used, a larger one while it is. Default
    /// 32 MiB.
    pub check_first_bytes_max: u64,
    /// Backups that [`backup`](super::SqliteStore::backup) keeps; the oldest goes first. Default 7.
    pub backups_max: usize,
    /// Limits of the catalog.
    pub catalog: CatalogLimits,
}

impl Default for SqliteSettings {
    fn default() -> Self {
        Self {
            sync: SyncPolicy::ByClass,
            commits_per_second_max: 500,
            commit_burst: 64,
            ring_bytes_max: 16 << 10,
            ring_idle: Duration::from_secs(10),
            tail_records_max: 512,
            queue_bytes_max: 64 << 20,
            readers_max: 4,
            free_bytes_min: 256 << 20,
            ballast_bytes: 64 << 20,
            check_first_bytes_max: 32 << 20,
            backups_max: 7,
            catalog: CatalogLimits::default(),
        }
    }
}

/// Commits that wait until the disk has everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Only commits with something that must survive a power cut.
    #[default]
    ByClass,
    /// All: a viewer is never ahead of the log, even after a power cut.
    Always,
}
