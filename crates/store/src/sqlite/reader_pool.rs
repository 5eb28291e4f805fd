//! A few connections that read while the writer writes.

use super::connection;
use crate::error::StoreError;
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

#[derive(Clone)]
pub(super) struct ReaderPool {
    file: Arc<PathBuf>,
    free: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
}

impl ReaderPool {
    /// At most `max` at a time; each is opened when it is first needed.
    pub(super) fn new(file: PathBuf, max: usize) -> Self {
        Self { file: Arc::new(file), free: Arc::default(), permits: Arc::new(Semaphore::new(max.max(1))) }
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let closed = || StoreError::failed("the store has been closed");
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| closed())?;
        let pool = self.clone();
        let work = move || {
            let _permit = permit;
            let free = pool.free().pop();
            let mut connection = match free {
                Some(connection) => connection,
                None => connection::reader(&pool.file)?,
            };
            let read = f(&mut connection);
            // A transaction left open would hold back every checkpoint.
            if !pool.permits.is_closed() && connection.is_autocommit() {
                pool.free().push(connection);
            }
            read
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| StoreError::failed("a reader panicked"))?
    }

    /// Closes the pool; waits for reads that are under way.
    pub(super) async fn close(&self, max: usize) {
        let max = u32::try_from(max.max(1)).unwrap_or(u32::MAX);
        // Fails if the pool was closed already.
        let _all = self.permits.acquire_many(max).await;
        self.permits.close();
        self.free().clear();
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
