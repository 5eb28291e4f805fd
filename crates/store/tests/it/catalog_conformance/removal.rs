use super::*;
use throughline_store::LogError;

fn removal_summary(removed: RemovalOutcome) -> RemovalSummary {
    match removed {
        RemovalOutcome::Removed(summary) => summary,
        other => panic!("{other:?}"),
    }
}

pub async fn deleting_a_conversation_removes_its_data(store: &Opened) {
    let catalog = &store.catalog;
    for (id, hash) in [("own", "h1"), ("shared", "h2"), ("elsewhere", "h3"), ("unused", "h4")] {
        catalog.add_file(ANN, file(id, hash, 1)).await.unwrap();
    }
    let with = |turn: NewTurnRow, files: &[&str]| NewTurnRow {
        files: files.iter().map(|&id| id.into()).collect(),
        ..turn
    };
    let key = IdempotencyKey { key: "k".into(), body_hash: "b".into() };
    let turn = NewTurnRow {
        idempotency: Some(key.clone()),
        ..with(first("a", "c", 10), &["own", "shared", "absent"])
    };
    store.complete_turn(ANN, turn, "A").await;
    store.complete_turn(ANN, next("b", "c", Some(TurnParent::after_turn("a")), 20), "B").await;
    store.complete_turn(ANN, with(first("x", "other", 30), &["shared", "elsewhere"]), "X").await;
    catalog.put_calls(ANN, vec![call("a", 1, 1), call("x", 1, 2)]).await.unwrap();
    let raw = RawId { turn_id: "a".into(), step: 1, attempt: 1 };
    catalog.append_raw(ANN, &raw, b"data", 1).await.unwrap();
    let made = NewFile { made_in: Some("b".into()), ..file("made", "h5", 21) };
    catalog.add_file(ANN, made).await.unwrap();
    let answer = |conversation: Option<&str>| NewRemembered {
        conversation_id: conversation.map(Into::into),
        about: "x".into(),
        answer: serde_json::json!("allow"),
        at: 1,
    };
    catalog.remember(ANN, answer(Some("c"))).await.unwrap();
    catalog.remember(ANN, answer(None)).await.unwrap();

    assert_eq!(catalog.delete_conversation(ANN, "absent").await, Ok(RemovalOutcome::NotFound));
    let summary = removal_summary(catalog.delete_conversation(ANN, "c").await.unwrap());
    assert_eq!((summary.conversations, summary.files, summary.has_more), (1, 2, false));
    assert_eq!(summary.turns, ["a", "b"]);
    let mut blobs = summary.blobs;
    blobs.sort();
    assert_eq!(blobs, ["h1", "h5"]);

    assert_eq!(catalog.conversation(ANN, "c").await, Ok(None));
    assert_eq!(catalog.tree(ANN, "c").await, Ok(Vec::new()));
    for id in ["a", "b"] {
        assert_eq!(catalog.turn(ANN, id).await, Ok(None), "{id}");
        let read = store.log.read(id, 0, 9).await;
        assert!(matches!(read, Err(LogError::UnknownTurn { .. })), "the log of {id} is gone: {read:?}");
    }
    assert_eq!(catalog.turn_by_idempotency_key(ANN, &key, 11).await, Ok(None));
    assert_eq!(catalog.call(ANN, "a", "a.1").await, Ok(None));
    assert_eq!(catalog.raw(ANN, &raw).await, Ok(None));
    assert_eq!(catalog.remembered(ANN, Some("c")).await.unwrap().len(), 1, "what holds always stays");
    let files = catalog.files(ANN, &PageRequest::first()).await.unwrap().items;
    assert_eq!(
        files.iter().map(|file| file.id.as_str()).collect::<Vec<_>>(),
        ["unused", "shared", "elsewhere"]
    );
    // The other one is whole.
    assert_eq!(store.log.read("x", 0, 9).await.unwrap().len(), 2);
    assert!(catalog.call(ANN, "x", "x.1").await.unwrap().is_some());
    assert_eq!(catalog.delete_conversation(ANN, "c").await, Ok(RemovalOutcome::NotFound));
    // Its ids can be used again, and none of the old data returns.
    store.complete_turn(ANN, first("a", "c", 40), "new").await;
    assert_eq!(store.log.read("a", 0, 9).await.unwrap().len(), 2);
    assert_eq!(catalog.call(ANN, "a", "a.1").await, Ok(None));
}

pub async fn conversation_with_a_running_turn_is_not_deleted(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 1), "A").await;
    store.begin(ANN, next("b", "c", Some(TurnParent::after_turn("a")), 2)).await;
    let running = Ok(RemovalOutcome::StillRunning { turn_id: "b".into() });
    assert_eq!(catalog.delete_conversation(ANN, "c").await, running);
    assert_eq!(catalog.delete_turn(ANN, "b").await, running);
    assert_eq!(catalog.delete_turn(ANN, "a").await, running);
    let times = RetentionCutoffs { conversations: Some(1_000), ..RetentionCutoffs::default() };
    assert_eq!(catalog.delete_expired(times).await, Ok(RemovalSummary::default()));
    assert_eq!(store.summary(ANN, "c").await.turns, 2);
}

pub async fn deleting_a_turn_removes_its_descendants(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 10), "A").await;
    store.complete_turn(ANN, next("b", "c", Some(TurnParent::after_turn("a")), 20), "B").await;
    store.complete_turn(ANN, next("d", "c", Some(TurnParent::after_event("b", 1)), 30), "D").await;
    store.complete_turn(ANN, next("e", "c", Some(TurnParent::after_turn("a")), 40), "E").await;
    let ids = async || {
        let tree = catalog.tree(ANN, "c").await.unwrap();
        tree.into_iter().map(|turn| turn.id).collect::<Vec<_>>()
    };
    assert_eq!(catalog.delete_turn(ANN, "absent").await, Ok(RemovalOutcome::NotFound));
    let removed = removal_summary(catalog.delete_turn(ANN, "b").await.unwrap());
    assert_eq!((removed.turns, removed.conversations), (vec!["b".to_owned(), "d".to_owned()], 0));
    assert_eq!(ids().await, ["a", "e"]);
    let conversation = store.summary(ANN, "c").await;
    assert_eq!((conversation.turns, conversation.conversation.leaf_id.as_deref()), (2, Some("e")));
    removal_summary(catalog.delete_turn(ANN, "e").await.unwrap());
    assert_eq!(
        store.summary(ANN, "c").await.conversation.leaf_id.as_deref(),
        Some("a"),
        "back to the parent"
    );
    removal_summary(catalog.delete_turn(ANN, "a").await.unwrap());
    let conversation = store.summary(ANN, "c").await;
    assert_eq!((conversation.turns, conversation.conversation.leaf_id), (0, None));
    store.complete_turn(ANN, alone("lonely", 50), "L").await;
    assert_eq!(removal_summary(catalog.delete_turn(ANN, "lonely").await.unwrap()).turns, ["lonely"]);
}

pub async fn expired_data_is_deleted(store: &Opened) {
    let catalog = &store.catalog;
    for (n, user) in [ANN, BOB, ANN].into_iter().enumerate() {
        let at = 100 * (n as i64 + 1);
        catalog.add_file(user, file(&format!("used{n}"), &format!("hash{n}"), at)).await.unwrap();
        catalog.add_file(user, file(&format!("unused{n}"), &format!("free{n}"), at)).await.unwrap();
        let files = vec![format!("used{n}")];
        store
            .complete_turn(
                user,
                NewTurnRow { files, ..first(&format!("t{n}"), &format!("c{n}"), at) },
                "answer",
            )
            .await;
        store.complete_turn(user, alone(&format!("alone{n}"), at), "answer").await;
        let raw = RawId { turn_id: format!("t{n}"), step: 1, attempt: 1 };
        catalog.append_raw(user, &raw, b"bytes", at).await.unwrap();
    }
    assert_eq!(catalog.delete_expired(RetentionCutoffs::default()).await, Ok(RemovalSummary::default()));
    assert_eq!(catalog.tree(ANN, "c0").await.unwrap().len(), 1);

    let raw = RetentionCutoffs { raw: Some(200), ..RetentionCutoffs::default() };
    assert_eq!(catalog.delete_expired(raw).await, Ok(RemovalSummary::default()));
    assert_eq!(catalog.raw_of_turn(ANN, "t0").await, Ok(Vec::new()));
    assert_eq!(catalog.raw_of_turn(BOB, "t1").await.unwrap().len(), 1);

    let unused = RetentionCutoffs { unused_files: Some(200), ..RetentionCutoffs::default() };
    let removed = catalog.delete_expired(unused).await.unwrap();
    assert_eq!((removed.files, removed.blobs), (1, vec!["free0".to_owned()]));

    // The conversation of 200 ended at 201.
    let all = RetentionCutoffs { conversations: Some(201), ..RetentionCutoffs::default() };
    let removed = catalog.delete_expired(all).await.unwrap();
    assert_eq!(
        (removed.conversations, removed.turns, removed.files),
        (1, vec!["t0".into(), "alone0".into()], 1)
    );
    assert_eq!(removed.blobs, ["hash0"]);
    assert!(!removed.has_more);
    let all = RetentionCutoffs { conversations: Some(202), ..RetentionCutoffs::default() };
    assert_eq!(catalog.delete_expired(all).await.unwrap().turns, ["t1", "alone1"], "of all users");
    assert_eq!(catalog.delete_expired(all).await, Ok(RemovalSummary::default()));
    assert_eq!(catalog.tree(ANN, "c2").await.unwrap().len(), 1);

    // Many of them go in several parts.
    for n in 0..450 {
        store.begin(ANN, alone(&format!("many{n:03}"), 10)).await;
        assert_eq!(catalog.end_turn(ANN, &format!("many{n:03}"), ended("", 11)).await, Ok(true));
    }
    let (mut parts, mut turns) = (0, 0);
    loop {
        let removed = catalog.delete_expired(all).await.unwrap();
        parts += 1;
        turns += removed.turns.len();
        if !removed.has_more {
            break;
        }
    }
    assert_eq!(turns, 450);
    assert!(parts > 1, "the writer is not held for all of it");
}
