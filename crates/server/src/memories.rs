//! What each user has said should always hold, in the catalog. Never in one place for all: another user's consent is no
//! consent. R: A2, R3

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use throughline::memory::{Kept, Memories, Memory, MemoryError};
use throughline_engine::Remembered;
use throughline_store::StoreError;
use throughline_store::catalog::{Catalog, NewRemembered, RememberedRow};
use tokio::runtime::Handle;

/// The memories of all users of a server: `Throughline::builder().memories(...)`.
#[derive(Clone)]
pub struct CatalogMemories {
    catalog: Arc<dyn Catalog>,
    runtime: Handle,
    seen: Arc<Mutex<Seen>>,
}

/// How long what was read is believed. What is said or taken back here counts at once; what another program changes, after this.
const BELIEVED: Duration = Duration::from_millis(500);
/// Users whose answers are remembered to have been read.
const USERS_SEEN_MAX: usize = 10_000;

/// What was read a moment ago, so that a turn need not wait for the catalog.
#[derive(Default)]
struct Seen {
    by_user: HashMap<String, (Instant, Vec<Kept>)>,
    /// Grows with each change: what was read before one is not believed after it.
    changes: u64,
}

impl Seen {
    fn put(&mut self, user: String, kept: Vec<Kept>) {
        if self.by_user.len() >= USERS_SEEN_MAX {
            self.by_user.clear();
        }
        self.by_user.insert(user, (Instant::now(), kept));
    }

    fn changed(&mut self, user: &str) {
        self.changes += 1;
        self.by_user.remove(user);
    }
}

impl CatalogMemories {
    /// In this catalog. Made inside the runtime that the catalog works on.
    pub fn new(catalog: Arc<dyn Catalog>) -> Self {
        Self { catalog, runtime: Handle::current(), seen: Arc::default() }
    }
}

impl fmt::Debug for CatalogMemories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CatalogMemories")
    }
}

impl Memories for CatalogMemories {
    fn of(&self, user: Option<&str>) -> Arc<dyn Memory> {
        Arc::new(OfUser { memories: self.clone(), user: user.map(str::to_owned) })
    }
}

/// One user's. Its calls block their thread, as those of every `Memory`, and must not be made from asynchronous code.
#[derive(Clone, Debug)]
struct OfUser {
    memories: CatalogMemories,
    /// Nobody has no memory: what has no user must not hold for all.
    user: Option<String>,
}

impl OfUser {
    fn ask<T>(
        &self,
        nobodys: T,
        of: impl AsyncFnOnce(&dyn Catalog, &str) -> Result<T, StoreError>,
    ) -> Result<T, MemoryError> {
        let Some(user) = &self.user else { return Ok(nobodys) };
        let CatalogMemories { catalog, runtime, .. } = &self.memories;
        runtime.block_on(of(&**catalog, user)).map_err(|error| MemoryError::Store { why: error.to_string() })
    }
}

impl OfUser {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Every change is whole.
        self.memories.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        if let Some(user) = &self.user {
            self.seen().changed(user);
        }
    }
}

impl Memory for OfUser {
    fn all(&self) -> Result<Vec<Kept>, MemoryError> {
        let before = self.seen().changes;
        let rows = self.ask(Vec::new(), async |catalog, user| catalog.remembered(user, None).await)?;
        let all: Vec<Kept> = rows.into_iter().map(kept).collect::<Result<_, _>>()?;
        let mut seen = self.seen();
        if let Some(user) = self.user.clone().filter(|_| seen.changes == before) {
            seen.put(user, all.clone());
        }
        Ok(all)
    }

    fn at_hand(&self) -> Option<Vec<Kept>> {
        let Some(user) = &self.user else { return Some(Vec::new()) };
        let seen = self.seen();
        let (at, kept) = seen.by_user.get(user)?;
        (at.elapsed() < BELIEVED).then(|| kept.clone())
    }

    fn changed_elsewhere(&self) {
        self.changed();
    }

    fn keep(&self, answer: Remembered, at_ms: i64) -> Result<(), MemoryError> {
        let about = about(&answer)?;
        let answer = serde_json::to_value(&answer).map_err(unreadable)?;
        let new = NewRemembered { conversation_id: None, about, answer, at: at_ms };
        let kept = self.ask(None, async |catalog, user| catalog.remember(user, new).await).map(drop);
        self.changed();
        kept
    }

    fn forget(&self, number: u64) -> Result<Option<Kept>, MemoryError> {
        let row = self.ask(None, async |catalog, user| catalog.forget_remembered(user, number).await);
        self.changed();
        row?.map(kept).transpose()
    }
}

/// What an answer is about, whatever it says: a later one about the same replaces it.
fn about(answer: &Remembered) -> Result<String, MemoryError> {
    let about = (&answer.tool, &answer.fingerprint, &answer.arguments_hash, &answer.arguments);
    serde_json::to_string(&about).map_err(unreadable)
}

/// What is not understood is an error, as in a file: a denial among them might be forgotten.
pub(crate) fn kept(row: RememberedRow) -> Result<Kept, MemoryError> {
    let number = row.number;
    let answer = serde_json::from_value(row.answer)
        .map_err(|error| MemoryError::Unreadable { number, why: error.to_string() })?;
    Ok(Kept { number, at_ms: row.at, answer })
}

fn unreadable(error: serde_json::Error) -> MemoryError {
    MemoryError::Store { why: error.to_string() }
}
