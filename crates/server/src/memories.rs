//! What each user has said should always hold, in the catalog. Never in one place for all: another user's consent is no
//! consent. R: A2, R3

use std::fmt;
use std::sync::Arc;
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
}

impl CatalogMemories {
    /// In this catalog. Made inside the runtime that the catalog works on.
    pub fn new(catalog: Arc<dyn Catalog>) -> Self {
        Self { catalog, runtime: Handle::current() }
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
        let CatalogMemories { catalog, runtime } = &self.memories;
        runtime.block_on(of(&**catalog, user)).map_err(|error| MemoryError::Store { why: error.to_string() })
    }
}

impl Memory for OfUser {
    fn all(&self) -> Result<Vec<Kept>, MemoryError> {
        let rows = self.ask(Vec::new(), async |catalog, user| catalog.remembered(user, None).await)?;
        rows.into_iter().map(kept).collect()
    }

    fn keep(&self, answer: Remembered, at_ms: i64) -> Result<(), MemoryError> {
        let about = about(&answer)?;
        let answer = serde_json::to_value(&answer).map_err(unreadable)?;
        let new = NewRemembered { conversation_id: None, about, answer, at: at_ms };
        self.ask(None, async |catalog, user| catalog.remember(user, new).await).map(drop)
    }

    fn forget(&self, number: u64) -> Result<Option<Kept>, MemoryError> {
        let row = self.ask(None, async |catalog, user| catalog.forget_remembered(user, number).await)?;
        row.map(kept).transpose()
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
