use super::*;
use throughline_store::StoreError;

pub async fn keys_are_found_touched_and_revoked(store: &Opened) {
    let catalog = &store.catalog;
    let one = key(ANN, "k1", 10);
    assert_eq!(catalog.add_key(ANN, one.clone()).await, Ok(()));
    assert_eq!(catalog.add_key(ANN, key(ANN, "k2", 20)).await, Ok(()));
    assert_eq!(catalog.add_key(BOB, key(BOB, "k1", 30)).await, Err(StoreError::Exists { what: "key" }));
    let foreign = catalog.add_key(ANN, key(BOB, "k3", 30)).await;
    assert!(matches!(foreign, Err(StoreError::Invalid { field: "user", .. })), "{foreign:?}");
    let empty = catalog.add_key(ANN, KeyRow { hash: String::new(), ..key(ANN, "k3", 30) }).await;
    assert!(matches!(empty, Err(StoreError::Invalid { field: "hash", .. })), "{empty:?}");
    assert_eq!(catalog.key("k1").await, Ok(Some(one.clone())));
    assert_eq!(catalog.key("k3").await, Ok(None));
    let ids = catalog.keys(ANN).await.unwrap().into_iter().map(|key| key.id).collect::<Vec<_>>();
    assert_eq!(ids, ["k2", "k1"]);

    // A use is written once a minute.
    let used = async || catalog.key("k1").await.unwrap().unwrap().last_used_at;
    for (now, written, last) in [
        (100_000, true, 100_000),
        (100_001, false, 100_000),
        (100_000 + LAST_USED_INTERVAL_MS - 1, false, 100_000),
        (100_000 + LAST_USED_INTERVAL_MS, true, 100_000 + LAST_USED_INTERVAL_MS),
    ] {
        assert_eq!(catalog.touch_key("k1", now).await, Ok(written), "{now}");
        assert_eq!(used().await, Some(last), "{now}");
    }
    assert_eq!(catalog.touch_key("absent", 1).await, Ok(false));

    assert!(one.is_valid(8_999_999) && !one.is_valid(9_000_000), "until it expires");
    assert_eq!(catalog.revoke_key(ANN, "k1", 70).await, Ok(true));
    assert_eq!(catalog.revoke_key(ANN, "k1", 80).await, Ok(false));
    assert_eq!(catalog.revoke_key(ANN, "absent", 80).await, Ok(false));
    let revoked = catalog.key("k1").await.unwrap().unwrap();
    assert_eq!((revoked.revoked_at, revoked.is_valid(1)), (Some(70), false));
}

// Limit: `keys_max`.
pub async fn key_count_is_limited(store: &Opened) {
    let catalog = &store.catalog;
    for id in ["a", "b"] {
        assert_eq!(catalog.add_key(ANN, key(ANN, id, 1)).await, Ok(()));
    }
    let over = Err(StoreError::OverLimit { limit: "keys_max", max: 2 });
    assert_eq!(catalog.add_key(ANN, key(ANN, "c", 1)).await, over);
    assert_eq!(catalog.add_key(BOB, key(BOB, "d", 1)).await, Ok(()), "another user's are not counted");
    assert_eq!(catalog.revoke_key(ANN, "a", 2).await, Ok(true));
    assert_eq!(catalog.add_key(ANN, key(ANN, "c", 3)).await, Ok(()), "nor those that are revoked");
}
