use super::*;
use throughline_store::StoreError;

pub fn share(user: &str, id: &str, conversation: &str, leaf: &str, at: i64) -> ShareRow {
    ShareRow {
        id: id.into(),
        user: user.into(),
        conversation_id: conversation.into(),
        leaf_id: leaf.into(),
        title: "Weather".into(),
        hash: "0f".repeat(32),
        created_at: at,
        expires_at: None,
    }
}

pub async fn share_is_found_by_id_and_deleted_with_its_conversation(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 10), "A").await;
    store.complete_turn(ANN, first("x", "other", 10), "X").await;
    let timed = ShareRow { expires_at: Some(100), ..share(ANN, "s2", "c", "a", 2) };
    for row in [share(ANN, "s1", "c", "a", 1), timed.clone(), share(ANN, "s3", "other", "x", 3)] {
        assert_eq!(catalog.add_share(ANN, row).await, Ok(true));
    }
    for (conversation, leaf) in [("c", "x"), ("absent", "a"), ("c", "absent")] {
        let row = share(ANN, "s4", conversation, leaf, 4);
        assert_eq!(catalog.add_share(ANN, row).await, Ok(false), "{conversation} {leaf}");
    }
    let again = catalog.add_share(ANN, share(ANN, "s1", "c", "a", 1)).await;
    assert_eq!(again, Err(StoreError::Exists { what: "share" }));
    let ids = async |conversation: Option<&'static str>| {
        let all = walk(1, |page| async move { catalog.shares(ANN, conversation, &page).await }).await;
        all.into_iter().map(|share| share.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None).await, ["s3", "s2", "s1"]);
    assert_eq!(ids(Some("c")).await, ["s2", "s1"]);
    assert_eq!(catalog.share("s2").await, Ok(Some(timed)));
    assert_eq!(catalog.share("absent").await, Ok(None));

    let cutoffs = |shares| RetentionCutoffs { shares: Some(shares), ..RetentionCutoffs::default() };
    catalog.delete_expired(cutoffs(100)).await.unwrap();
    assert_eq!(ids(Some("c")).await, ["s2", "s1"]);
    catalog.delete_expired(cutoffs(101)).await.unwrap();
    assert_eq!(ids(Some("c")).await, ["s1"]);
    assert_eq!(catalog.delete_share(ANN, "s1").await, Ok(true));
    assert_eq!(catalog.delete_share(ANN, "s1").await, Ok(false));
    assert_eq!(catalog.share("s1").await, Ok(None));

    // While its conversation is deleted nothing lists it, and with the conversation it goes.
    catalog.trash_conversation(ANN, "other", 50).await.unwrap();
    assert_eq!(ids(None).await, Vec::<String>::new());
    catalog.restore_conversation(ANN, "other", 0).await.unwrap();
    assert_eq!(ids(None).await, ["s3"]);
    catalog.delete_conversation(ANN, "other").await.unwrap();
    assert_eq!(catalog.share("s3").await, Ok(None));
}

// Limit: `shares_max`.
pub async fn share_count_is_limited(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 10), "A").await;
    for id in ["s1", "s2"] {
        assert_eq!(catalog.add_share(ANN, share(ANN, id, "c", "a", 1)).await, Ok(true));
    }
    let over = catalog.add_share(ANN, share(ANN, "s3", "c", "a", 1)).await;
    assert_eq!(over, Err(StoreError::OverLimit { limit: "shares_max", max: 2 }));
    catalog.delete_share(ANN, "s1").await.unwrap();
    assert_eq!(catalog.add_share(ANN, share(ANN, "s3", "c", "a", 1)).await, Ok(true));
}
