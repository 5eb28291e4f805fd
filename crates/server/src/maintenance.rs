//! Periodic maintenance of the store: a daily backup, and retention.
//!
//! One task for all of it. A failure is logged and retried at the next interval; turns never wait for it.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use throughline_store::{BlobFolder, Catalog, RetentionCutoffs, StoreError};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Interval of maintenance.
pub const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Age of the newest backup at which another one is made.
pub const BACKUP_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// Delay after the start, which has more urgent work.
const START_DELAY: Duration = Duration::from_secs(60);
/// Time within which a deleted conversation can be restored: a mistake is noticed soon, and deleted data must
/// go.
pub(crate) const RESTORE_TIME: Duration = Duration::from_secs(10 * 60);
/// Retention of temporary conversations after their last event, unless their user has ended them before.
pub(crate) const TEMPORARY_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
/// Retention of files without a turn: a user may upload one long before sending the message.
const UNUSED_FILE_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// Makes a backup if the newest one is older than the given age, and returns its path.
pub type BackupFn = Arc<
    dyn Fn(Duration) -> Pin<Box<dyn Future<Output = Result<Option<PathBuf>, StoreError>> + Send>>
        + Send
        + Sync,
>;

/// The upkeep of a store.
pub struct StoreMaintenance {
    /// Catalog of the store.
    pub catalog: Arc<dyn Catalog>,
    /// The bytes of files.
    pub blobs: BlobFolder,
    /// Function that makes a backup; `None` if the database's operator does.
    pub backup: Option<BackupFn>,
    /// Conversations without events for this time are deleted; `None` = never.
    pub retention: Option<Duration>,
    /// Milliseconds since 1970.
    pub now: fn() -> i64,
}

impl StoreMaintenance {
    /// Runs maintenance in an endless loop.
    pub async fn run(self) {
        let mut ticks = interval_at(Instant::now() + START_DELAY, MAINTENANCE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // First what is there, then less of it: what was deleted by mistake is in the backup.
            self.back_up().await;
            if let Err(error) = self.remove_expired().await {
                tracing::error!(%error, "cannot delete expired data now");
            }
        }
    }

    async fn back_up(&self) {
        let Some(backup) = &self.backup else { return };
        match backup(BACKUP_AFTER).await {
            Ok(None) => {}
            Ok(Some(path)) => tracing::info!(path = %path.display(), "backup written"),
            Err(error) => tracing::error!(%error, "backup failed"),
        }
    }

    /// Removes expired data, and blobs that no file refers to any more.
    ///
    /// # Errors
    /// The store or the file system fails; the rest is removed next time.
    pub(crate) async fn remove_expired(&self) -> Result<(), throughline_store::BlobError> {
        let before = |time: Duration| (self.now)().saturating_sub_unsigned(time.as_millis() as u64);
        let times = RetentionCutoffs {
            conversations: self.retention.map(before),
            raw: self.retention.map(before),
            unused_files: Some(before(UNUSED_FILE_RETENTION)),
            deleted: Some(before(RESTORE_TIME)),
            temporary: Some(before(TEMPORARY_RETENTION)),
            shares: Some((self.now)()),
        };
        let (mut conversations, mut turns, mut files) = (0, 0, 0);
        loop {
            let removed = self.catalog.delete_expired(times).await?;
            conversations += removed.conversations;
            turns += removed.turns.len();
            files += removed.files;
            if !removed.has_more {
                break;
            }
        }
        // All of them: a crash between a blob and its file leaves one that nothing names.
        let blobs = self.blobs.sweep(&*self.catalog).await?;
        if conversations + files + blobs > 0 || turns > 0 {
            tracing::info!(conversations, turns, files, blobs, "expired data was deleted");
        }
        Ok(())
    }
}
