use super::*;
use throughline_store::StoreError;

pub async fn turn_begins_runs_and_ends_once(store: &Opened) {
    let catalog = &store.catalog;
    store.begin(ANN, first("t1", "c1", 1000)).await;
    let row = store.turn_row(ANN, "t1").await;
    assert_eq!((row.status(), &row.end, row.created_at), (STATUS_RUNNING, &None, 1000));
    assert_eq!((row.conversation_id.as_deref(), &row.parent), (Some("c1"), &None));
    assert_eq!((row.stored.as_str(), row.message_id.as_str()), (r#"{"v":1,"of":"t1"}"#, "t1.m"));
    assert_eq!(store.summary(ANN, "c1").await.running_turn_id.as_deref(), Some("t1"));

    assert_eq!(catalog.end_turn(ANN, "t1", ended("done", 2000)).await, Ok(true));
    let row = store.turn_row(ANN, "t1").await;
    assert_eq!((row.status(), &row.end), ("completed", &Some(ended("done", 2000))));
    let conversation = store.summary(ANN, "c1").await;
    assert_eq!((conversation.running_turn_id, conversation.turns), (None, 1));
    assert_eq!(conversation.conversation.leaf_id.as_deref(), Some("t1"));
    assert_eq!(conversation.conversation.updated_at, 2000);

    // The first end stays.
    let again = TurnEnd { status: "cancelled".into(), ..ended("other", 3000) };
    assert_eq!(catalog.end_turn(ANN, "t1", again).await, Ok(false));
    assert_eq!(store.turn_row(ANN, "t1").await, row);
    assert_eq!(catalog.end_turn(ANN, "absent", ended("", 1)).await, Ok(false));
    let running = TurnEnd { status: STATUS_RUNNING.into(), ..ended("", 1) };
    assert!(matches!(
        catalog.end_turn(ANN, "t1", running).await,
        Err(StoreError::Invalid { field: "status", .. })
    ));
}

pub async fn repeated_idempotency_key_creates_one_turn(store: &Opened) {
    let catalog = &store.catalog;
    let request = |id: &str, key: &str, body: &str, at| NewTurnRow {
        idempotency: Some(IdempotencyKey { key: key.into(), body_hash: body.into() }),
        ..first(id, &format!("{id}.c"), at)
    };
    store.begin(ANN, request("t1", "k", "same", 1000)).await;
    let before = Ok(TurnCreation::Replayed(Box::new(store.turn_row(ANN, "t1").await)));
    assert_eq!(catalog.create_turn(ANN, request("t2", "k", "same", 2000)).await, before);
    assert_eq!(
        catalog.create_turn(ANN, request("t2", "k", "other", 2000)).await,
        Ok(TurnCreation::KeyReused)
    );
    let key = |body: &str| IdempotencyKey { key: "k".into(), body_hash: body.into() };
    assert_eq!(catalog.turn_by_idempotency_key(ANN, &key("same"), 2000).await, before.map(Some));
    assert_eq!(
        catalog.turn_by_idempotency_key(ANN, &key("other"), 2000).await,
        Ok(Some(TurnCreation::KeyReused))
    );
    assert_eq!(
        catalog.turn_by_idempotency_key(ANN, &IdempotencyKey { key: "x".into(), ..key("same") }, 2000).await,
        Ok(None)
    );
    // Refused turns left nothing.
    assert_eq!(catalog.turn(ANN, "t2").await, Ok(None));
    assert_eq!(catalog.conversation(ANN, "t2.c").await, Ok(None));
    // Another user's key is another key.
    store.begin(BOB, request("t3", "k", "other", 2000)).await;
    // After 24 hours it is forgotten.
    let last = 1000 + IDEMPOTENCY_MS - 1;
    assert!(matches!(
        catalog.turn_by_idempotency_key(ANN, &key("same"), last).await,
        Ok(Some(TurnCreation::Replayed(_)))
    ));
    assert_eq!(catalog.turn_by_idempotency_key(ANN, &key("same"), last + 1).await, Ok(None));
    store.begin(ANN, request("t4", "k", "other", last + 1)).await;
}

pub async fn a_conversation_runs_one_turn_at_a_time(store: &Opened) {
    let catalog = &store.catalog;
    store.begin(ANN, first("t1", "c1", 1)).await;
    let busy = Ok(TurnCreation::ConversationBusy { turn_id: "t1".into() });
    assert_eq!(catalog.create_turn(ANN, next("t2", "c1", None, 2)).await, busy);
    assert_eq!(catalog.create_turn(ANN, next("t2", "c1", Some(TurnParent::after_turn("t1")), 2)).await, busy);
    assert_eq!(catalog.turn(ANN, "t2").await, Ok(None));
    // That alone is no reason against the one that is to follow it.
    for (conversation, parent, expected) in [
        ("c1", "t1", None),
        ("c1", "absent", Some(TurnRefusal::ParentNotFound)),
        ("absent", "t1", Some(TurnRefusal::ConversationNotFound)),
    ] {
        let refusal = catalog.refusal_of_next(ANN, following(conversation, parent)).await;
        assert_eq!(refusal, Ok(expected), "{conversation} {parent}");
    }
    // Others do not care.
    store.begin(ANN, first("t3", "c3", 3)).await;
    store.begin(ANN, alone("t4", 4)).await;
    store.begin(ANN, alone("t5", 5)).await;
    assert_eq!(catalog.end_turn(ANN, "t1", ended("", 6)).await, Ok(true));

    // Of many simultaneous starts one succeeds.
    let tries = (0..16).map(|n| {
        let turn = next(&format!("r{n}"), "c1", Some(TurnParent::after_turn("t1")), 10 + n);
        async move { catalog.create_turn(ANN, turn).await.unwrap() }
    });
    let created = futures_util::future::join_all(tries).await;
    let begun = created.iter().filter(|created| **created == TurnCreation::New).count();
    let busy =
        created.iter().filter(|created| matches!(created, TurnCreation::ConversationBusy { .. })).count();
    assert_eq!((begun, busy), (1, 15));
    assert_eq!(store.summary(ANN, "c1").await.turns, 2);
}

pub async fn edits_regenerations_and_forks_are_branches(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 10), "A").await;
    store.complete_turn(ANN, next("b", "c", Some(TurnParent::after_turn("a")), 20), "B").await;
    store
        .complete_turn(
            ANN,
            with_input(next("b2", "c", Some(TurnParent::after_turn("a")), 30), "edited"),
            "B2",
        )
        .await;
    store
        .complete_turn(
            ANN,
            with_input(next("b3", "c", Some(TurnParent::after_turn("a")), 40), "input of b"),
            "B3",
        )
        .await;
    store.complete_turn(ANN, next("fork", "c", Some(TurnParent::after_event("b", 5)), 50), "F").await;
    store.complete_turn(ANN, next("after", "c", Some(TurnParent::after_turn("fork")), 60), "G").await;
    store.complete_turn(ANN, next("other root", "c", None, 70), "H").await;

    let tree = catalog.tree(ANN, "c").await.unwrap();
    let shape: Vec<_> = tree.iter().map(|turn| (turn.id.as_str(), turn.parent.clone())).collect();
    assert_eq!(
        shape,
        [
            ("a", None),
            ("b", Some(TurnParent::after_turn("a"))),
            ("b2", Some(TurnParent::after_turn("a"))),
            ("b3", Some(TurnParent::after_turn("a"))),
            ("fork", Some(TurnParent::after_event("b", 5))),
            ("after", Some(TurnParent::after_turn("fork"))),
            ("other root", None),
        ]
    );
    assert_eq!((tree[2].input.as_str(), tree[2].answer.as_str()), ("edited", "B2"));
    assert_eq!((tree[0].status.as_str(), tree[0].ended_at), ("completed", Some(11)));

    let path = async |id: &str| {
        let turns = catalog.path(ANN, id).await.unwrap();
        turns.into_iter().map(|turn| (turn.id, turn.cut_at)).collect::<Vec<_>>()
    };
    let way = |turns: &[(&str, Option<u64>)]| -> Vec<(String, Option<u64>)> {
        turns.iter().map(|&(id, cut)| (id.to_owned(), cut)).collect()
    };
    assert_eq!(path("b2").await, way(&[("a", None), ("b2", None)]));
    assert_eq!(path("after").await, way(&[("a", None), ("b", Some(5)), ("fork", None), ("after", None)]));
    assert_eq!(path("other root").await, way(&[("other root", None)]));
    assert_eq!(path("absent").await, []);
    let adds = catalog.path(ANN, "b").await.unwrap().pop().unwrap().history_json;
    assert_eq!(adds, Some(ended("B", 0).history_json));
    store.begin(ANN, next("now", "c", Some(TurnParent::after_turn("b")), 80)).await;
    assert_eq!(catalog.path(ANN, "now").await.unwrap().pop().unwrap().history_json, None, "it runs");
}

pub async fn turn_requires_an_existing_conversation_and_parent(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 1), "A").await;
    store.complete_turn(ANN, first("x", "other", 1), "X").await;
    store.complete_turn(ANN, alone("y", 1), "Y").await;
    let check = async |conversation: &str, parent: Option<&str>, expected: TurnCreation| {
        let turn = next("new", conversation, parent.map(TurnParent::after_turn), 5);
        assert_eq!(catalog.create_turn(ANN, turn).await, Ok(expected), "{conversation} {parent:?}");
        assert_eq!(catalog.turn(ANN, "new").await, Ok(None), "{conversation} {parent:?}");
    };
    check("absent", None, TurnCreation::Refused(TurnRefusal::ConversationNotFound)).await;
    check("absent", Some("a"), TurnCreation::Refused(TurnRefusal::ConversationNotFound)).await;
    check("c", Some("absent"), TurnCreation::Refused(TurnRefusal::ParentNotFound)).await;
    check("c", Some("x"), TurnCreation::Refused(TurnRefusal::ParentNotFound)).await;
    check("c", Some("y"), TurnCreation::Refused(TurnRefusal::ParentNotFound)).await;
    check("c", Some("new"), TurnCreation::Refused(TurnRefusal::ParentNotFound)).await;
}

pub async fn turn_and_conversation_ids_are_unique(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 1), "A").await;
    for user in [ANN, BOB] {
        let turn = Err(StoreError::Exists { what: "turn" });
        assert_eq!(catalog.create_turn(user, alone("a", 2)).await, turn, "{user}");
        assert_eq!(catalog.create_turn(user, first("a", "new", 2)).await, turn, "{user}");
        assert_eq!(catalog.conversation(user, "new").await, Ok(None), "all of it or nothing: {user}");
        let conversation = Err(StoreError::Exists { what: "conversation" });
        assert_eq!(catalog.create_turn(user, first("b", "c", 2)).await, conversation, "{user}");
        assert_eq!(catalog.turn(user, "b").await, Ok(None), "{user}");
    }
}

pub async fn turn_list_is_filtered_and_paged(store: &Opened) {
    let catalog = &store.catalog;
    for n in 0..7_i64 {
        // Two of each time: the id decides.
        let turn = NewTurnRow { agent: format!("agent {}", n % 2), ..alone(&format!("t{n}"), 100 + n / 2) };
        store.complete_turn(ANN, turn, "answer").await;
    }
    store.begin(ANN, first("running", "c", 50)).await;
    let ids = async |filter: TurnFilter, rows| {
        let turns = walk(rows, |page| {
            let filter = filter.clone();
            async move { catalog.turns(ANN, &filter, &page).await }
        });
        turns.await.into_iter().map(|row| row.turn.id).collect::<Vec<_>>()
    };
    let all = ["t6", "t5", "t4", "t3", "t2", "t1", "t0", "running"];
    for rows in [1, 2, 3, 7, 8, 200] {
        assert_eq!(ids(TurnFilter::default(), rows).await, all, "{rows} a page");
    }
    let of = TurnFilter::default;
    assert_eq!(ids(TurnFilter { statuses: vec![STATUS_RUNNING.into()], ..of() }, 9).await, ["running"]);
    assert_eq!(ids(TurnFilter { conversation_id: Some("c".into()), ..of() }, 9).await, ["running"]);
    assert_eq!(ids(TurnFilter { agent: Some("agent 1".into()), ..of() }, 2).await, ["t5", "t3", "t1"]);
    assert_eq!(ids(TurnFilter { agent: Some("agent".into()), ..of() }, 2).await, [""; 0]);
    let both = vec![STATUS_RUNNING.to_owned(), "completed".to_owned()];
    assert_eq!(ids(TurnFilter { statuses: both, ..of() }, 3).await, all);
    assert_eq!(ids(TurnFilter { model: Some("demo/one".into()), ..of() }, 9).await, all);
    assert_eq!(ids(TurnFilter { model: Some("demo/two".into()), ..of() }, 9).await, [""; 0]);
    assert_eq!(
        ids(TurnFilter { from: Some(101), until: Some(103), ..of() }, 1).await,
        ["t5", "t4", "t3", "t2"]
    );
    let found = async |text: &str, rows| {
        let turns = walk(rows, |page| {
            let text = text.to_owned();
            async move { catalog.search_turns(ANN, &text, &TurnFilter::default(), &page).await }
        });
        turns.await.into_iter().map(|row| row.turn.id).collect::<Vec<_>>()
    };
    assert_eq!(found("INPUT of T3", 9).await, ["t3"]);
    assert_eq!(found("ANSWER", 2).await, all[..7]);
    assert_eq!(found("%", 9).await, [""; 0], "it means itself");
    assert_eq!(found("  ", 9).await, all, "nothing to look for");
}

pub async fn turn_list_includes_usage_and_calls(store: &Opened) {
    let catalog = &store.catalog;
    let model = |name: &str| Some(name.to_owned());
    store.complete_turn(ANN, NewTurnRow { model: model("demo/two"), ..first("a", "c", 1) }, "A").await;
    store.complete_turn(ANN, NewTurnRow { model: None, ..alone("b", 2) }, "B").await;
    store.begin(ANN, next("d", "c", None, 3)).await;
    let calls = ["success", "error", "timed_out", "unknown", "denied"];
    let calls = (0..).zip(calls).map(|(n, status)| CallRow { status: status.into(), ..call("a", n, 5) });
    catalog.put_calls(ANN, calls.collect()).await.unwrap();
    let page = catalog.turns(ANN, &TurnFilter::default(), &PageRequest::first()).await.unwrap();
    let [d, b, a] = page.items.as_slice() else { panic!("{page:?}") };
    assert_eq!((d.turn.ended_at, d.usage.as_ref(), d.calls), (None, None, 0));
    assert_eq!(
        (b.turn.model.as_ref(), b.tokens("output_tokens"), b.tokens("input_tokens")),
        (None, Some(7), None)
    );
    assert_eq!((a.calls, a.failed_calls, a.mode.as_deref()), (5, 3, Some("native")));
    assert_eq!(a.pace.first_content_ms, Some(5));

    let named = |name: &str, count| NamedCount { name: name.into(), count };
    let counts = catalog.count_turns(ANN, &TurnFilter::default()).await.unwrap();
    assert_eq!(counts.total, 3);
    assert_eq!(counts.by_status, [named("completed", 2), named(STATUS_RUNNING, 1)]);
    assert_eq!(counts.by_model, [named("demo/one", 1), named("demo/two", 1)]);
    assert_eq!(counts.by_agent, [named("default", 3)]);
    assert_eq!(catalog.count_turns(BOB, &TurnFilter::default()).await.unwrap(), TurnCounts::default());
    let long = "x".repeat(CatalogLimits::default().search_chars_max + 1);
    let refused = Err(StoreError::OverLimit {
        limit: "search_chars_max",
        max: CatalogLimits::default().search_chars_max as u64,
    });
    let all = TurnFilter::default();
    assert_eq!(catalog.search_turns(ANN, &long, &all, &PageRequest::first()).await, refused);
}

pub async fn open_turns_of_all_users_are_listed(store: &Opened) {
    let catalog = &store.catalog;
    store.begin(ANN, first("a", "c", 3)).await;
    store.complete_turn(ANN, alone("ended", 1), "A").await;
    store.begin(BOB, alone("b", 2)).await;
    let open = catalog.open_turns().await.unwrap();
    let expected = [("a", ANN, Some("c")), ("b", BOB, None)].map(|(id, user, conversation)| OpenTurn {
        id: id.into(),
        user: user.into(),
        conversation_id: conversation.map(Into::into),
        stored: alone(id, 0).stored,
    });
    assert_eq!(open, expected);
}

// Limit: `conversation_turns_max`.
pub async fn turns_per_conversation_are_limited(store: &Opened) {
    store.complete_turn(ANN, first("a", "c", 1), "A").await;
    store.complete_turn(ANN, next("b", "c", None, 2), "B").await;
    let over = Err(StoreError::OverLimit { limit: "conversation_turns_max", max: 2 });
    assert_eq!(store.catalog.create_turn(ANN, next("d", "c", None, 3)).await, over);
    assert_eq!(store.catalog.refusal_of_next(ANN, following("c", "b")).await.map(drop), over.map(drop));
    assert!(matches!(store.catalog.delete_turn(ANN, "b").await, Ok(RemovalOutcome::Removed(_))));
    store.begin(ANN, next("d", "c", None, 4)).await;
}

pub async fn only_a_finished_turn_is_rated_by_its_user(store: &Opened) {
    let catalog = &store.catalog;
    let rating = |value, reason: &str| TurnRating { value, reason: reason.into(), rated_at: 3000 };
    let good = rating(RatingValue::Up, "");
    store.begin(ANN, first("t1", "c1", 1000)).await;
    assert_eq!(catalog.rate_turn(ANN, "t1", Some(good.clone())).await, Ok(false), "it runs");
    assert_eq!(catalog.end_turn(ANN, "t1", ended("done", 2000)).await, Ok(true));
    assert_eq!(catalog.rate_turn(BOB, "t1", Some(good.clone())).await, Ok(false), "another person's");
    assert_eq!(catalog.rate_turn(ANN, "t1", Some(good.clone())).await, Ok(true));
    assert_eq!(store.turn_row(ANN, "t1").await.rating, Some(good));
    let bad = rating(RatingValue::Down, "too short\0");
    assert_eq!(catalog.rate_turn(ANN, "t1", Some(bad)).await, Ok(true));
    let tree = catalog.tree(ANN, "c1").await.unwrap();
    assert_eq!(tree[0].rating, Some(rating(RatingValue::Down, "too short\u{fffd}")));
    let range = SampleRange { from: 0, until: 9000, rows_max: 10 };
    let samples = catalog.samples(ANN, &range).await.unwrap();
    assert_eq!(samples.turns.rows[0].rating, Some(RatingValue::Down));
    assert_eq!(catalog.rate_turn(ANN, "t1", None).await, Ok(true));
    assert_eq!(store.turn_row(ANN, "t1").await.rating, None);
}
