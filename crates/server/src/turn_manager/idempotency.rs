//! Posts with one `Idempotency-Key` are started one after another: all but the first find its turn, and none of them
//! counts against the limit of turns. Across servers the catalog decides.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

type UserAndKey = (String, String);

/// One lock for each idempotency key whose request is in progress.
#[derive(Clone, Default)]
pub(super) struct IdempotencyLocks(Arc<Mutex<HashMap<UserAndKey, Arc<AsyncMutex<()>>>>>);

/// Lock of a key: while it is held, no other request with the same key starts a turn. Dropping it admits the
/// next one.
pub(super) struct IdempotencyGuard {
    locks: IdempotencyLocks,
    key: UserAndKey,
    lock: Option<OwnedMutexGuard<()>>,
}

impl IdempotencyLocks {
    /// Waits until no other post with this key is being started.
    pub(super) async fn lock(&self, user: &str, key: &str) -> IdempotencyGuard {
        let key = (user.to_owned(), key.to_owned());
        let lock = self.with(|locks| locks.entry(key.clone()).or_default().clone());
        // Created before the wait: a request that is dropped while it waits removes an entry that no other
        // request uses.
        let mut guard = IdempotencyGuard { locks: self.clone(), key, lock: None };
        guard.lock = Some(lock.lock_owned().await);
        guard
    }

    fn with<T>(&self, change: impl FnOnce(&mut HashMap<UserAndKey, Arc<AsyncMutex<()>>>) -> T) -> T {
        // Every change is one call on the map.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for IdempotencyGuard {
    fn drop(&mut self) {
        self.lock = None;
        self.locks.with(|locks| {
            if locks.get(&self.key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
                locks.remove(&self.key);
            }
        });
    }
}
