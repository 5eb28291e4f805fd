use super::*;
use throughline_store::StoreError;

fn into_folder(name: &str) -> ConversationChange {
    ConversationChange { folder: Some(Some(name.into())), ..ConversationChange::default() }
}

fn tagged(tags: &[&str]) -> ConversationChange {
    let tags = tags.iter().map(|&tag| tag.into()).collect();
    ConversationChange { tags: Some(tags), ..ConversationChange::default() }
}

fn pinned(pinned: bool) -> ConversationChange {
    ConversationChange { pinned: Some(pinned), ..ConversationChange::default() }
}

fn archived(archived: bool) -> ConversationChange {
    ConversationChange { archived: Some(archived), ..ConversationChange::default() }
}

async fn change(store: &Opened, id: &str, change: ConversationChange) {
    assert_eq!(store.catalog.change_conversation(ANN, id, change, 1_000).await, Ok(true), "{id}");
}

/// Conversations of Ann's `c0` to `c5`, each with a turn, the newest last.
async fn six(store: &Opened) {
    for n in 0..6 {
        let turn = with_input(first(&format!("t{n}"), &format!("c{n}"), 100 + n * 10), "weather");
        store.complete_turn(ANN, turn, "sunny").await;
    }
    store.complete_turn(BOB, first("bobs", "bobs", 500), "").await;
}

/// All pages of a list, walked with several lengths.
async fn listed(store: &Opened, filter: ConversationFilter) -> Vec<String> {
    let mut lists = Vec::new();
    for rows in [1, 2, 50] {
        let all = walk(rows, |page| {
            let filter = filter.clone();
            async move { store.catalog.conversations(ANN, &filter, &page).await }
        });
        lists.push(all.await.into_iter().map(|item| item.conversation.id).collect::<Vec<_>>());
    }
    assert!(lists.iter().all(|list| *list == lists[0]), "{filter:?}: {lists:?}");
    lists.swap_remove(0)
}

fn everything() -> ConversationFilter {
    ConversationFilter::default()
}

pub async fn conversations_are_listed_by_folder_tag_and_archive(store: &Opened) {
    six(store).await;
    for (id, name) in [("c0", "Travel"), ("c1", " Travel \n"), ("c2", "Work")] {
        change(store, id, into_folder(name)).await;
    }
    for (id, tags) in [("c1", vec!["a", "b", "a", " "]), ("c3", vec!["a"]), ("c5", vec!["a", "c"])] {
        change(store, id, tagged(&tags)).await;
    }
    for id in ["c0", "c5"] {
        change(store, id, archived(true)).await;
    }
    let in_folder = |name: &str| ConversationFilter { folder: Some(name.into()), ..everything() };
    let with_tag = |tag: &str| ConversationFilter { tag: Some(tag.into()), ..everything() };
    let archive = |filter| ConversationFilter { archived: Some(true), ..filter };
    for (filter, expected) in [
        (everything(), vec!["c4", "c3", "c2", "c1"]),
        (in_folder("Travel"), vec!["c1"]),
        (archive(in_folder("Travel")), vec!["c0"]),
        (in_folder("travel"), vec![]),
        (with_tag("a"), vec!["c3", "c1"]),
        (archive(with_tag("a")), vec!["c5"]),
        (ConversationFilter { folder: Some("Travel".into()), ..with_tag("a") }, vec!["c1"]),
        (with_tag("%"), vec![]),
        (archive(everything()), vec!["c5", "c0"]),
    ] {
        assert_eq!(listed(store, filter.clone()).await, expected, "{filter:?}");
    }
    // Filing is no event; a turn is, in the lists of tags as well.
    let next = next("later", "c1", Some(TurnParent::after_turn("t1")), 900);
    store.complete_turn(ANN, next, "").await;
    assert_eq!(listed(store, with_tag("a")).await, ["c1", "c3"]);
    let row = store.summary(ANN, "c1").await.conversation;
    assert_eq!((row.folder.as_deref(), row.tags), (Some("Travel"), vec!["a".to_owned(), "b".to_owned()]));
    change(store, "c1", ConversationChange { folder: Some(None), ..tagged(&[]) }).await;
    assert_eq!(listed(store, in_folder("Travel")).await, Vec::<String>::new());
    assert_eq!(listed(store, with_tag("a")).await, ["c3"]);
    let absent = store.catalog.change_conversation(ANN, "absent", pinned(true), 1).await;
    assert_eq!(absent, Ok(false));
}

pub async fn pinned_conversations_come_first(store: &Opened) {
    six(store).await;
    for id in ["c1", "c3", "c2"] {
        change(store, id, pinned(true)).await;
    }
    assert_eq!(listed(store, everything()).await, ["c3", "c2", "c1", "c5", "c4", "c0"]);
    let only = |pinned| ConversationFilter { pinned: Some(pinned), ..everything() };
    assert_eq!(listed(store, only(true)).await, ["c3", "c2", "c1"]);
    assert_eq!(listed(store, only(false)).await, ["c5", "c4", "c0"]);
    // It is one or the other.
    change(store, "c2", archived(true)).await;
    let row = store.summary(ANN, "c2").await.conversation;
    assert_eq!((row.pinned_at, row.archived_at), (None, Some(1_000)));
    change(store, "c2", pinned(true)).await;
    let row = store.summary(ANN, "c2").await.conversation;
    assert_eq!((row.pinned_at, row.archived_at), (Some(1_000), None));
    change(store, "c2", pinned(false)).await;
    assert_eq!(listed(store, only(true)).await, ["c3", "c1"]);
    let foreign = PageRequest::after("pinned~never");
    let refused = store.catalog.conversations(ANN, &everything(), &foreign).await;
    assert!(matches!(refused, Err(StoreError::Invalid { field: "cursor", .. })), "{refused:?}");
}

pub async fn folder_and_tag_counts_exclude_archived_conversations(store: &Opened) {
    six(store).await;
    for id in ["c0", "c1", "c2"] {
        change(store, id, ConversationChange { folder: Some(Some("旅行".into())), ..tagged(&["x"]) }).await;
    }
    change(store, "c3", into_folder("Work")).await;
    change(store, "c2", archived(true)).await;
    let count = |name: &str, count| NamedCount { name: name.into(), count };
    let labels = store.catalog.conversation_labels(ANN).await.unwrap();
    assert_eq!(labels.folders, [count("Work", 1), count("旅行", 2)]);
    assert_eq!(labels.tags, [count("x", 2)]);
}

pub async fn conversation_search_filters_by_folder_tag_and_archive(store: &Opened) {
    six(store).await;
    change(store, "c1", into_folder("Travel")).await;
    change(store, "c2", tagged(&["a"])).await;
    change(store, "c3", archived(true)).await;
    change(store, "c4", pinned(true)).await;
    for text in ["weather", "we", "sunny"] {
        let found = ConversationFilter::text(text);
        let all = ["c5", "c4", "c3", "c2", "c1", "c0"];
        assert_eq!(listed(store, found.clone()).await, all, "{text}: archived ones, too, in their order");
        let folder = ConversationFilter { folder: Some("Travel".into()), ..found.clone() };
        assert_eq!(listed(store, folder).await, ["c1"], "{text}");
        let tag = ConversationFilter { tag: Some("a".into()), ..found.clone() };
        assert_eq!(listed(store, tag).await, ["c2"], "{text}");
        let archive = ConversationFilter { archived: Some(true), ..found.clone() };
        assert_eq!(listed(store, archive).await, ["c3"], "{text}");
        let first = ConversationFilter { pinned: Some(true), ..found };
        assert_eq!(listed(store, first).await, ["c4"], "{text}");
    }
}

pub async fn trashed_conversation_is_absent_until_restored(store: &Opened) {
    let catalog = &store.catalog;
    six(store).await;
    change(store, "c1", ConversationChange { folder: Some(Some("Travel".into())), ..tagged(&["a"]) }).await;
    catalog.put_calls(ANN, vec![call("t1", 1, 11)]).await.unwrap();
    let answer = NewRemembered {
        conversation_id: Some("c1".into()),
        about: "x".into(),
        answer: serde_json::json!("allow"),
        at: 1,
    };
    catalog.remember(ANN, answer).await.unwrap();
    let page = PageRequest::first();
    let state = async || {
        format!(
            "{:?}",
            (
                (catalog.conversation(ANN, "c1").await, catalog.turn(ANN, "t1").await),
                (catalog.tree(ANN, "c1").await, catalog.path(ANN, "t1").await),
                (catalog.call(ANN, "t1", "t1.1").await, catalog.remembered(ANN, Some("c1")).await),
                catalog.search(ANN, "weather", &page).await.map(|page| page.items.len()),
                catalog.search(ANN, "we", &page).await.map(|page| page.items.len()),
                catalog.conversation_labels(ANN).await,
                catalog.count_calls(ANN, &CallFilter::default()).await,
                listed(store, everything()).await,
                listed(store, ConversationFilter::text("sunny")).await,
            )
        )
    };
    let before = state().await;
    assert_eq!(catalog.trash_conversation(BOB, "c1", 2_000).await, Ok(RemovalOutcome::NotFound));
    assert!(matches!(catalog.trash_conversation(ANN, "c1", 2_000).await, Ok(RemovalOutcome::Removed(_))));
    assert_eq!(catalog.trash_conversation(ANN, "c1", 2_000).await, Ok(RemovalOutcome::NotFound));
    assert_eq!((catalog.conversation(ANN, "c1").await, catalog.turn(ANN, "t1").await), (Ok(None), Ok(None)));
    assert_eq!(
        (catalog.call(ANN, "t1", "t1.1").await, catalog.tree(ANN, "c1").await),
        (Ok(None), Ok(vec![]))
    );
    assert_eq!(
        catalog.search(ANN, "weather", &page).await.unwrap().items.len(),
        10,
        "titles and inputs of the others"
    );
    assert!(!listed(store, ConversationFilter::text("sunny")).await.contains(&"c1".to_owned()));
    assert_eq!(catalog.conversation_labels(ANN).await, Ok(ConversationLabels::default()));
    let turn = next("new", "c1", Some(TurnParent::after_turn("t1")), 2_001);
    assert_eq!(
        catalog.create_turn(ANN, turn).await,
        Ok(TurnCreation::Refused(TurnRefusal::ConversationNotFound))
    );

    assert_eq!(catalog.restore_conversation(BOB, "c1", 0).await, Ok(false));
    assert_eq!(catalog.restore_conversation(ANN, "c1", 2_000).await, Ok(false), "it was too long ago");
    assert_eq!(catalog.restore_conversation(ANN, "c1", 1_999).await, Ok(true));
    assert_eq!(state().await, before);
    assert_eq!(catalog.restore_conversation(ANN, "c1", 0).await, Ok(false), "it is there");

    // Its time is over.
    catalog.trash_conversation(ANN, "c1", 3_000).await.unwrap();
    let cutoff = |deleted| RetentionCutoffs { deleted: Some(deleted), ..RetentionCutoffs::default() };
    assert_eq!(catalog.delete_expired(cutoff(3_000)).await.unwrap().conversations, 0);
    let removed = catalog.delete_expired(cutoff(3_001)).await.unwrap();
    assert_eq!((removed.conversations, removed.turns), (1, vec!["t1".to_owned()]));
    assert_eq!(catalog.restore_conversation(ANN, "c1", 0).await, Ok(false));

    // A running turn stays; and a deleted conversation is removed with the person.
    store.begin(ANN, next("runs", "c2", Some(TurnParent::after_turn("t2")), 4_000)).await;
    let running = RemovalOutcome::StillRunning { turn_id: "runs".into() };
    assert_eq!(catalog.trash_conversation(ANN, "c2", 4_001).await, Ok(running));
    assert_eq!(catalog.end_turn(ANN, "runs", ended("", 4_002)).await, Ok(true));
    catalog.trash_conversation(ANN, "c3", 4_003).await.unwrap();
    let mut turns = Vec::new();
    loop {
        let removed = catalog.delete_data(ANN).await.unwrap();
        turns.extend(removed.turns);
        if !removed.has_more {
            break;
        }
    }
    assert!(turns.contains(&"t3".to_owned()), "{turns:?}");
}

pub async fn temporary_conversation_is_unlisted_and_expires(store: &Opened) {
    let catalog = &store.catalog;
    for (id, temporary) in [("kept", false), ("passing", true), ("filed", true)] {
        let new = NewConversation { id: id.into(), title: None, created_at: 1, temporary };
        let row = catalog.create_conversation(ANN, new).await.unwrap();
        assert_eq!(row.temporary, temporary);
        store
            .complete_turn(ANN, with_input(next(&format!("t-{id}"), id, None, 10), "weather"), "sunny")
            .await;
    }
    let page = PageRequest::first();
    let found = async |text: &str| {
        let hits = catalog.search(ANN, text, &page).await.unwrap().items;
        let mut ids: Vec<_> = hits.into_iter().map(|hit| hit.conversation_id).collect();
        ids.sort();
        ids.dedup();
        ids
    };
    for text in ["weather", "we", "sunny"] {
        assert_eq!(found(text).await, ["kept"], "{text}");
        assert_eq!(listed(store, ConversationFilter::text(text)).await, ["kept"], "{text}");
    }
    assert_eq!(listed(store, everything()).await, ["kept"]);
    assert!(
        catalog.conversation(ANN, "passing").await.unwrap().is_some(),
        "it is there for whoever has it open"
    );
    // Filing it makes it permanent.
    change(store, "filed", into_folder("Travel")).await;
    assert!(!store.summary(ANN, "filed").await.conversation.temporary);
    assert_eq!(found("weather").await, ["filed", "kept"]);

    let cutoff = |temporary| RetentionCutoffs { temporary: Some(temporary), ..RetentionCutoffs::default() };
    assert_eq!(catalog.delete_expired(cutoff(11)).await.unwrap().conversations, 0);
    let removed = catalog.delete_expired(cutoff(12)).await.unwrap();
    assert_eq!((removed.conversations, removed.turns), (1, vec!["t-passing".to_owned()]));
    assert_eq!(catalog.conversation(ANN, "passing").await, Ok(None));
}

pub async fn pending_approval_is_shown_in_the_list(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 10), "A").await;
    let asked = |turn: &str| CallRow { status: "awaiting_approval".into(), ..call(turn, 1, 1) };
    catalog.put_calls(ANN, vec![asked("a")]).await.unwrap();
    assert!(!store.summary(ANN, "c").await.awaits_approval, "its turn has ended");
    store.begin(ANN, next("b", "c", Some(TurnParent::after_turn("a")), 20)).await;
    assert!(!store.summary(ANN, "c").await.awaits_approval);
    catalog.put_calls(ANN, vec![asked("b")]).await.unwrap();
    let page = catalog.conversations(ANN, &everything(), &PageRequest::first()).await.unwrap();
    assert!(page.items[0].awaits_approval && page.items[0].running_turn_id.is_some());
}

pub async fn conversation_usage_sums_all_branches(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 10), "A").await;
    store.complete_turn(ANN, next("b", "c", Some(TurnParent::after_turn("a")), 20), "B").await;
    store.complete_turn(ANN, next("d", "c", Some(TurnParent::after_turn("a")), 30), "D").await;
    store.begin(ANN, next("runs", "c", Some(TurnParent::after_turn("d")), 40)).await;
    let failed = CallRow { status: "error".into(), duration_ms: None, ..call("b", 2, 1) };
    catalog.put_calls(ANN, vec![call("a", 1, 1), call("b", 1, 1), failed]).await.unwrap();
    let expected = ConversationUsage {
        turns: 3,
        output_tokens: 21,
        writing_ms: 210,
        turn_ms: 3,
        calls: 3,
        failed_calls: 1,
        call_ms: 6,
        models: vec![NamedCount { name: "demo/one".into(), count: 3 }],
        ..ConversationUsage::default()
    };
    assert_eq!(catalog.conversation_usage(ANN, "c").await, Ok(Some(expected)));
    assert_eq!(catalog.conversation_usage(ANN, "absent").await, Ok(None));
}

// Limits: `folder_chars_max`, `tag_chars_max`, `tags_max`.
pub async fn folder_and_tag_names_are_limited(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 10), "A").await;
    let over = |limit, max| Err(StoreError::OverLimit { limit, max });
    for (change, expected) in [
        (into_folder("長長長長長長"), Ok(true)),
        (into_folder("1234567"), over("folder_chars_max", 6)),
        (tagged(&["1234", "b"]), Ok(true)),
        (tagged(&["12345"]), over("tag_chars_max", 4)),
        (tagged(&["a", "b", "a"]), Ok(true)),
        (tagged(&["a", "b", "c"]), over("tags_max", 2)),
    ] {
        assert_eq!(catalog.change_conversation(ANN, "c", change.clone(), 1).await, expected, "{change:?}");
    }
    let row = store.summary(ANN, "c").await.conversation;
    assert_eq!(
        (row.folder.as_deref(), row.tags.len()),
        (Some("長長長長長長"), 2),
        "what is refused changes nothing"
    );
}
