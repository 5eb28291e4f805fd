//! Remembered approvals of each user, in the catalog and never shared: another user's consent is no consent.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use throughline::approval_store::{ApprovalStore, ApprovalStoreError, ApprovalStores, StoredApproval};
use throughline_engine::RememberedDecision;
use throughline_store::{Catalog, NewRemembered, RememberedRow, StoreError};
use tokio::runtime::Handle;

/// Remembered approvals of all users of a server: `Throughline::builder().approval_stores(...)`.
#[derive(Clone)]
pub struct CatalogApprovals {
    catalog: Arc<dyn Catalog>,
    runtime: Handle,
    cache: Arc<Mutex<ApprovalCache>>,
}

/// Lifetime of cached approvals. A change through this server takes effect immediately, a change by another
/// program after this time.
const CACHE_TTL: Duration = Duration::from_millis(500);
/// Users whose answers are cached.
const CACHED_USERS_MAX: usize = 10_000;

/// Approvals that were read recently, so that a turn need not wait for the catalog.
#[derive(Default)]
struct ApprovalCache {
    by_user: HashMap<String, (Instant, Vec<StoredApproval>)>,
    /// Grows with each change: data read before a change are not used after it.
    changes: u64,
}

impl ApprovalCache {
    fn insert(&mut self, user: String, approvals: Vec<StoredApproval>) {
        if self.by_user.len() >= CACHED_USERS_MAX {
            self.by_user.clear();
        }
        self.by_user.insert(user, (Instant::now(), approvals));
    }

    fn invalidate(&mut self, user: &str) {
        self.changes += 1;
        self.by_user.remove(user);
    }
}

impl CatalogApprovals {
    /// A store on this catalog. Must be created inside the catalog's runtime.
    pub fn new(catalog: Arc<dyn Catalog>) -> Self {
        Self { catalog, runtime: Handle::current(), cache: Arc::default() }
    }
}

impl fmt::Debug for CatalogApprovals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CatalogApprovals")
    }
}

impl ApprovalStores for CatalogApprovals {
    fn for_user(&self, user: Option<&str>) -> Arc<dyn ApprovalStore> {
        Arc::new(UserApprovals { approvals: self.clone(), user: user.map(str::to_owned) })
    }
}

/// Approvals of one user. As in every `ApprovalStore` its calls block their thread, and must not be made from
/// asynchronous code.
#[derive(Clone, Debug)]
struct UserApprovals {
    approvals: CatalogApprovals,
    /// `None` stores nothing: an approval without a user must not apply to everyone.
    user: Option<String>,
}

impl UserApprovals {
    fn query<T>(
        &self,
        without_user: T,
        of: impl AsyncFnOnce(&dyn Catalog, &str) -> Result<T, StoreError>,
    ) -> Result<T, ApprovalStoreError> {
        let Some(user) = &self.user else { return Ok(without_user) };
        let CatalogApprovals { catalog, runtime, .. } = &self.approvals;
        runtime
            .block_on(of(&**catalog, user))
            .map_err(|error| ApprovalStoreError::Store { why: error.to_string() })
    }
}

impl UserApprovals {
    fn cache(&self) -> MutexGuard<'_, ApprovalCache> {
        // Every change is whole.
        self.approvals.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn invalidate(&self) {
        if let Some(user) = &self.user {
            self.cache().invalidate(user);
        }
    }
}

impl ApprovalStore for UserApprovals {
    fn all(&self) -> Result<Vec<StoredApproval>, ApprovalStoreError> {
        let before = self.cache().changes;
        let rows = self.query(Vec::new(), async |catalog, user| catalog.remembered(user, None).await)?;
        let all: Vec<StoredApproval> = rows.into_iter().map(stored_approval).collect::<Result<_, _>>()?;
        let mut cache = self.cache();
        if let Some(user) = self.user.clone().filter(|_| cache.changes == before) {
            cache.insert(user, all.clone());
        }
        Ok(all)
    }

    fn cached(&self) -> Option<Vec<StoredApproval>> {
        let Some(user) = &self.user else { return Some(Vec::new()) };
        let cache = self.cache();
        let (at, approvals) = cache.by_user.get(user)?;
        (at.elapsed() < CACHE_TTL).then(|| approvals.clone())
    }

    fn invalidate(&self) {
        self.invalidate();
    }

    fn save(&self, answer: RememberedDecision, at_ms: i64) -> Result<(), ApprovalStoreError> {
        let subject = subject_key(&answer)?;
        let answer = serde_json::to_value(&answer).map_err(unreadable_row)?;
        let new = NewRemembered { conversation_id: None, about: subject, answer, at: at_ms };
        let approvals = self.query(None, async |catalog, user| catalog.remember(user, new).await).map(drop);
        self.invalidate();
        approvals
    }

    fn remove(&self, number: u64) -> Result<Option<StoredApproval>, ApprovalStoreError> {
        let row = self.query(None, async |catalog, user| catalog.delete_remembered(user, number).await);
        self.invalidate();
        row?.map(stored_approval).transpose()
    }
}

/// Key of an approval's subject: a later approval of the same subject replaces the earlier one.
fn subject_key(answer: &RememberedDecision) -> Result<String, ApprovalStoreError> {
    let subject = (&answer.tool, &answer.fingerprint, &answer.arguments_hash, &answer.arguments);
    serde_json::to_string(&subject).map_err(unreadable_row)
}

/// An approval from its row. An unreadable row is an error, as in a file: a denial among them might be forgotten.
pub(crate) fn stored_approval(row: RememberedRow) -> Result<StoredApproval, ApprovalStoreError> {
    let number = row.number;
    let answer = serde_json::from_value(row.answer)
        .map_err(|error| ApprovalStoreError::Unreadable { number, why: error.to_string() })?;
    Ok(StoredApproval { number, at_ms: row.at, answer })
}

fn unreadable_row(error: serde_json::Error) -> ApprovalStoreError {
    ApprovalStoreError::Store { why: error.to_string() }
}
