use super::*;
use throughline_store::StoreError;

fn conversation(id: &str, title: Option<&str>, at: i64) -> NewConversation {
    NewConversation { id: id.into(), title: title.map(Into::into), created_at: at, temporary: false }
}

// Limit: `title_chars_max`.
pub async fn title_is_given_or_taken_from_the_first_input(store: &Opened) {
    let catalog = &store.catalog;
    let title = async |id: &str| {
        let row = store.summary(ANN, id).await.conversation;
        (row.title, row.title_by)
    };
    store.complete_turn(ANN, with_input(first("t1", "c1", 1), "Where is\n the  station?"), "There.").await;
    assert_eq!(title("c1").await, ("Where is the station?".into(), TitleSource::FirstInput));
    store
        .complete_turn(
            ANN,
            with_input(next("t2", "c1", Some(TurnParent::after_turn("t1")), 2), "And the airport?"),
            "Far.",
        )
        .await;
    assert_eq!(title("c1").await.0, "Where is the station?", "the first input stays the title");
    // Issue 19, D20: the first turn is edited, and then its edit is continued.
    store.complete_turn(ANN, with_input(next("t1b", "c1", None, 3), "Where is the harbour?"), "There.").await;
    assert_eq!(title("c1").await, ("Where is the harbour?".into(), TitleSource::FirstInput));
    let after_edit = next("t2b", "c1", Some(TurnParent::after_turn("t1b")), 4);
    store.complete_turn(ANN, with_input(after_edit, "Thanks."), "").await;
    assert_eq!(title("c1").await.0, "Where is the harbour?");

    assert_eq!(catalog.rename(ANN, "c1", " Ways \u{7}home ", 50).await, Ok(true));
    assert_eq!(title("c1").await, ("Ways home".into(), TitleSource::UserGiven));
    store.complete_turn(ANN, with_input(next("t1c", "c1", None, 5), "Where is the beach?"), "").await;
    assert_eq!(title("c1").await.0, "Ways home", "what the user called it stays");
    assert_eq!(store.summary(ANN, "c1").await.conversation.updated_at, 50);
    assert_eq!(catalog.rename(ANN, "c1", &"長".repeat(100_000), 60).await, Ok(true));
    assert_eq!(title("c1").await.0, "長".repeat(CatalogLimits::default().title_chars_max));
    assert_eq!(catalog.rename(ANN, "c1", "  ", 70).await, Ok(true));
    assert_eq!(title("c1").await, ("Where is the beach?".into(), TitleSource::FirstInput));
    assert_eq!(catalog.rename(ANN, "absent", "x", 80).await, Ok(false));

    // Created without a turn, it is named by the first turn with text.
    let row = catalog.create_conversation(ANN, conversation("c2", None, 5)).await.unwrap();
    assert_eq!((row.title.as_str(), row.title_by, row.leaf_id), ("", TitleSource::FirstInput, None));
    store.complete_turn(ANN, with_input(next("t3", "c2", None, 6), " "), "").await;
    assert_eq!(title("c2").await.0, "");
    store.complete_turn(ANN, with_input(next("t4", "c2", None, 7), "At last"), "").await;
    assert_eq!(title("c2").await.0, "At last");

    let given = TurnPlacement::NewConversation { id: "c3".into(), title: Some("Mine".into()) };
    store.complete_turn(ANN, NewTurnRow { placement: given, ..alone("t5", 8) }, "").await;
    assert_eq!(title("c3").await, ("Mine".into(), TitleSource::UserGiven));
    assert_eq!(
        catalog.create_conversation(BOB, conversation("c3", None, 9)).await,
        Err(StoreError::Exists { what: "conversation" })
    );
}

pub async fn conversations_are_listed_newest_first_in_pages(store: &Opened) {
    let catalog = &store.catalog;
    for n in 0..9 {
        // Three of each time.
        catalog.create_conversation(ANN, conversation(&format!("c{n}"), None, 100 + n / 3)).await.unwrap();
    }
    catalog.create_conversation(BOB, conversation("bob's", None, 101)).await.unwrap();
    store.complete_turn(ANN, next("t", "c0", None, 500), "").await;
    for rows in [1, 2, 3, 8, 9, 100] {
        let all = walk(rows, |page| async move {
            catalog.conversations(ANN, &ConversationFilter::default(), &page).await
        })
        .await;
        let ids: Vec<_> = all.iter().map(|item| item.conversation.id.as_str()).collect();
        assert_eq!(ids, ["c0", "c8", "c7", "c6", "c5", "c4", "c3", "c2", "c1"], "{rows} a page");
    }
    // Any limit is moved into its range: a page has at least one row.
    let page = catalog
        .conversations(ANN, &ConversationFilter::default(), &PageRequest::first().limit(0))
        .await
        .unwrap();
    assert_eq!((page.items.len(), page.next.is_some()), (1, true));
    let page = catalog
        .conversations(ANN, &ConversationFilter::default(), &PageRequest::first().limit(u32::MAX))
        .await
        .unwrap();
    assert_eq!((page.items.len(), page.next), (9, None));
}

pub async fn leaf_can_be_set_to_another_branch(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 1), "A").await;
    store.complete_turn(ANN, next("b", "c", Some(TurnParent::after_turn("a")), 2), "B").await;
    store.complete_turn(ANN, first("x", "other", 3), "X").await;
    let leaf = async || store.summary(ANN, "c").await.conversation.leaf_id;
    assert_eq!(leaf().await.as_deref(), Some("b"));
    assert_eq!(catalog.set_leaf(ANN, "c", "a").await, Ok(true));
    assert_eq!(leaf().await.as_deref(), Some("a"));
    for (conversation, turn) in [("c", "x"), ("c", "absent"), ("absent", "a"), ("other", "a")] {
        assert_eq!(catalog.set_leaf(ANN, conversation, turn).await, Ok(false), "{conversation} {turn}");
    }
    assert_eq!(leaf().await.as_deref(), Some("a"));
}

/// A conversation with all of its data, as an export has it.
async fn exported(store: &Opened, user: &str, id: &str) -> ImportedConversation {
    let catalog = &store.catalog;
    let conversation = store.summary(user, id).await.conversation;
    let mut turns = Vec::new();
    let mut calls = Vec::new();
    for turn in catalog.tree(user, id).await.unwrap() {
        turns.push(store.turn_row(user, &turn.id).await);
        let filter = CallFilter { turn_id: Some(turn.id), ..CallFilter::default() };
        calls.extend(
            walk(2, |page| {
                let filter = filter.clone();
                async move { catalog.calls(user, &filter, &page).await }
            })
            .await,
        );
    }
    ImportedConversation { conversation, turns, calls, files: Vec::new() }
}

/// The conversation under other ids and for another user.
fn renamed(imported: &ImportedConversation, user: &str) -> ImportedConversation {
    let id = |id: &str| format!("new-{id}");
    let ImportedConversation { mut conversation, mut turns, mut calls, files } = imported.clone();
    conversation.id = id(&conversation.id);
    conversation.user = user.to_owned();
    conversation.leaf_id = conversation.leaf_id.as_deref().map(id);
    for turn in &mut turns {
        turn.id = id(&turn.id);
        turn.user = user.to_owned();
        turn.conversation_id = turn.conversation_id.as_deref().map(id);
        turn.parent.iter_mut().for_each(|parent| parent.turn_id = id(&parent.turn_id));
    }
    for call in &mut calls {
        call.turn_id = id(&call.turn_id);
        call.tool_id = id(&call.tool_id);
        call.conversation_id = call.conversation_id.as_deref().map(id);
    }
    ImportedConversation { conversation, turns, calls, files }
}

pub async fn exported_conversation_is_imported_unchanged(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 10), "A").await;
    store.complete_turn(ANN, next("b", "c", Some(TurnParent::after_turn("a")), 20), "B").await;
    store.complete_turn(ANN, next("d", "c", Some(TurnParent::after_event("a", 3)), 30), "D").await;
    let calls = vec![call("a", 1, 11), call("a", 2, 12), call("a", 3, 13), call("d", 1, 31)];
    assert_eq!(catalog.put_calls(ANN, calls).await, Ok(4));
    assert_eq!(catalog.set_leaf(ANN, "c", "b").await, Ok(true));
    assert_eq!(catalog.rename(ANN, "c", "Travel", 40).await, Ok(true));
    let filed = ConversationChange {
        folder: Some(Some("Trips".into())),
        tags: Some(vec!["b".into(), "a".into()]),
        pinned: Some(true),
        ..ConversationChange::default()
    };
    assert_eq!(catalog.change_conversation(ANN, "c", filed, 35).await, Ok(true));

    let as_it_was = exported(store, ANN, "c").await;
    assert_eq!((as_it_was.turns.len(), as_it_was.calls.len()), (3, 4));
    let elsewhere = renamed(&as_it_was, BOB);
    assert_eq!(catalog.import(BOB, elsewhere.clone()).await, Ok(()));
    assert_eq!(exported(store, BOB, "new-c").await, elsewhere);
    assert_eq!(exported(store, ANN, "c").await, as_it_was, "the first one is as it was");
    // An imported conversation is found like others, and can be continued.
    let hits = catalog.search(BOB, "Travel", &PageRequest::first()).await.unwrap();
    assert_eq!(hits.items.len(), 1);
    store.complete_turn(BOB, next("e", "new-c", Some(TurnParent::after_turn("new-b")), 50), "E").await;
    assert_eq!(catalog.path(BOB, "e").await.unwrap().len(), 3);

    assert_eq!(catalog.import(BOB, elsewhere).await, Err(StoreError::Exists { what: "conversation" }));
}

pub async fn history_without_events_can_be_imported(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 10), "what another program has answered").await;
    let ImportedConversation { conversation, turns, .. } = renamed(&exported(store, ANN, "c").await, ANN);
    let message_only =
        turns.into_iter().map(|turn| TurnRow { stored: String::new(), ..turn }).collect::<Vec<_>>();
    let imported = ImportedConversation {
        conversation,
        turns: message_only.clone(),
        calls: Vec::new(),
        files: Vec::new(),
    };
    assert_eq!(catalog.import(ANN, imported).await, Ok(()));
    assert_eq!(store.turn_row(ANN, "new-a").await, message_only[0]);
    let path = catalog.path(ANN, "new-a").await.unwrap();
    assert_eq!(path[0].history_json.as_ref(), message_only[0].end.as_ref().map(|end| &end.history_json));
}

pub async fn inconsistent_import_is_refused(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 10), "A").await;
    store.complete_turn(ANN, next("b", "c", Some(TurnParent::after_turn("a")), 20), "B").await;
    let sound = renamed(&exported(store, ANN, "c").await, ANN);
    let check = async |what: &str, spoil: &dyn Fn(&mut ImportedConversation), field: &str| {
        let mut spoilt = sound.clone();
        spoil(&mut spoilt);
        let refused = catalog.import(ANN, spoilt).await;
        assert!(
            matches!(&refused, Err(StoreError::Invalid { field: found, .. }) if *found == field),
            "{what}: {refused:?}"
        );
        assert_eq!(catalog.conversation(ANN, "new-c").await, Ok(None), "{what}");
        assert_eq!(catalog.turn(ANN, "new-a").await, Ok(None), "{what}");
    };
    check("a turn that runs", &|it| it.turns[1].end = None, "turns").await;
    check("a child before its parent", &|it| it.turns.reverse(), "turns").await;
    check("a parent of elsewhere", &|it| it.turns[1].parent = Some(TurnParent::after_turn("a")), "turns")
        .await;
    check("a leaf of elsewhere", &|it| it.conversation.leaf_id = Some("a".into()), "leaf_id").await;
    check("a call of elsewhere", &|it| it.calls.push(call("a", 1, 1)), "calls").await;
    check("no id", &|it| it.conversation.id.clear(), "conversation_id").await;
    let mut taken = sound.clone();
    taken.turns[1].id = "b".into();
    taken.conversation.leaf_id = None;
    assert_eq!(catalog.import(ANN, taken).await, Err(StoreError::Exists { what: "turn" }));
    assert_eq!(catalog.import(ANN, sound).await, Ok(()));
}
