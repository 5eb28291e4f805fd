//! An answer that one user remembered applies to that user only.

use std::sync::Arc;
use throughline::approval_store::{ApprovalStore, ApprovalStores};
use throughline_engine::{ApprovalScope, RememberedDecision};
use throughline_server::CatalogApprovals;
use throughline_store::{Catalog, SqliteSettings, SqliteStore};

fn remembered(tool: &str, decision: &str) -> RememberedDecision {
    let json = serde_json::json!({
        "decision": decision, "scope": ApprovalScope::Always, "tool": tool, "fingerprint": "f", "arguments_hash": "h",
    });
    serde_json::from_value(json).unwrap()
}

/// Memories block their thread, as the library calls them.
async fn of<T: Send + 'static>(
    memories: &CatalogApprovals,
    user: Option<&str>,
    ask: impl FnOnce(Arc<dyn ApprovalStore>) -> T + Send + 'static,
) -> T {
    let memory = memories.for_user(user);
    tokio::task::spawn_blocking(move || ask(memory)).await.unwrap()
}

fn answers(memory: Arc<dyn ApprovalStore>) -> Vec<RememberedDecision> {
    memory.all().unwrap().into_iter().map(|kept| kept.answer).collect()
}

#[tokio::test]
async fn remembered_approvals_are_per_user_and_survive_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("throughline.db");
    let settings = SqliteSettings { ballast_bytes: 0, free_bytes_min: 0, ..SqliteSettings::default() };
    let store = SqliteStore::open(&file, settings).await.unwrap();
    let memories = CatalogApprovals::new(Arc::new(store.clone()));

    let (allow, deny) = (remembered("mail.send", "approve"), remembered("mail.send", "deny"));
    let (first, other) = (allow.clone(), remembered("files.write", "approve"));
    let second = other.clone();
    of(&memories, Some("ann"), move |memory| {
        memory.save(first, 10).unwrap();
        memory.save(second, 20).unwrap();
    })
    .await;
    assert_eq!(of(&memories, Some("ann"), answers).await, [allow, other.clone()]);
    assert_eq!(of(&memories, Some("bob"), answers).await, []);
    assert_eq!(of(&memories, None, answers).await, []);

    // A later answer about the same calls replaces the earlier one; an answer without a user is not stored.
    let (later, nobodys) = (deny.clone(), deny.clone());
    of(&memories, Some("ann"), move |memory| memory.save(later, 30).unwrap()).await;
    of(&memories, None, move |memory| memory.save(nobodys, 30).unwrap()).await;
    assert_eq!(of(&memories, Some("ann"), answers).await, [other.clone(), deny.clone()]);
    assert_eq!(of(&memories, None, answers).await, []);

    store.close().await;
    drop((memories, store));
    let store = SqliteStore::open(&file, settings).await.unwrap();
    let catalog: Arc<dyn Catalog> = Arc::new(store);
    let memories = CatalogApprovals::new(catalog);
    assert_eq!(of(&memories, Some("ann"), answers).await, [other, deny.clone()]);
    let number = of(&memories, Some("ann"), |memory| memory.all().unwrap()[1].number).await;
    assert_eq!(of(&memories, Some("bob"), move |memory| memory.remove(number)).await, Ok(None));
    let taken_back = of(&memories, Some("ann"), move |memory| memory.remove(number)).await.unwrap().unwrap();
    assert_eq!((taken_back.answer, taken_back.at_ms, taken_back.number), (deny, 30, number));
}
