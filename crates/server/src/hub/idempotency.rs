//! Posts with one `Idempotency-Key` are started one after another: all but the first find its turn, and none of them
//! counts against the limit of turns. Across servers the catalog decides.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

type UserAndKey = (String, String);

/// One lock for each key whose post is being started now.
#[derive(Clone, Default)]
pub(super) struct IdempotencyLocks(Arc<Mutex<HashMap<UserAndKey, Arc<AsyncMutex<()>>>>>);

/// While it is there, no other post with the same key is started. Dropping it lets the next one in.
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
        // Before it is waited for: a request that is let go while it waits removes what nobody else waits for.
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
