//! Hostile values that people and models may send, on purpose or by accident.

use super::*;
use serde_json::json;
use throughline_store::StoreError;

const INJECTIONS: [&str; 8] = [
    "'; DROP TABLE turn; --",
    "\" OR \"\"=\"",
    "x' OR '1'='1",
    "%' UNION SELECT hash FROM api_key --",
    "\\",
    "$1 ?1 :user {user}",
    "\u{202e}\u{0}\u{7f}\u{feff}",
    "😀\u{d7ff}\u{10ffff}",
];

pub async fn hostile_texts_are_stored_as_data(store: &Opened) {
    let catalog = &store.catalog;
    for (n, text) in INJECTIONS.into_iter().enumerate() {
        let (turn, conversation) = (format!("t{n}"), format!("c{n}"));
        let huge = format!("{text}{}", "長 ".repeat(100_000));
        let new = NewTurnRow {
            placement: TurnPlacement::NewConversation { id: conversation.clone(), title: Some(huge.clone()) },
            agent: text.replace('\0', ""),
            stored: json!({ "text": text }).to_string(),
            ..with_input(alone(&turn, 1), &huge)
        };
        store.complete_turn(ANN, new, text).await;
        let row = store.turn_row(ANN, &turn).await;
        assert_eq!(row.stored, json!({ "text": text }).to_string(), "{text:?}");
        assert_eq!(row.input_text, huge.replace('\0', "\u{fffd}"), "{text:?}");
        assert_eq!(row.end.unwrap().text, text.replace('\0', "\u{fffd}"), "{text:?}");
        let title = store.summary(ANN, &conversation).await.conversation.title;
        assert_eq!(title.chars().count(), CatalogLimits::default().title_chars_max, "{text:?}");

        let odd = CallRow { arguments: text.into(), error: Some(text.into()), ..call(&turn, 1, 1) };
        assert_eq!(catalog.put_calls(ANN, vec![odd]).await, Ok(1), "{text:?}");
        let filter = CallFilter { tool_name: Some(text.into()), ..CallFilter::default() };
        // PostgreSQL takes no NUL anywhere; nothing has that name either way.
        let calls = catalog.calls(ANN, &filter, &PageRequest::first()).await;
        assert!(matches!(calls, Ok(page) if page.items.is_empty()), "{text:?}");
        let filter = CallFilter { text: Some(text.into()), ..CallFilter::default() };
        let calls = catalog.calls(ANN, &filter, &PageRequest::first()).await.unwrap();
        assert_eq!(calls.items.len(), usize::from(!text.contains('\0')), "{text:?}");
        let hits = catalog.search(ANN, text, &PageRequest::first()).await.unwrap();
        assert_eq!(hits.items.is_empty(), text.contains('\0'), "{text:?}");

        let setting = NewDocument {
            kind: DocumentKind::Setting,
            name: "s".into(),
            body: json!({ text: [text, null, 1.5] }),
            precondition: DocumentPrecondition::Any,
            now: 1,
        };
        catalog.put_document(ANN, setting.clone()).await.unwrap();
        let there = catalog.document(ANN, DocumentKind::Setting, "s").await.unwrap().unwrap();
        assert_eq!(there.body, setting.body, "{text:?}");
    }
    assert_eq!(
        catalog.turns(ANN, &TurnFilter::default(), &PageRequest::first()).await.unwrap().items.len(),
        8
    );
}

pub async fn invalid_ids_are_refused_or_absent(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("t", "c", 1), "A").await;
    let long = "x".repeat(1_000_000);
    for id in ["", "a\0b", "\0", "a\nb", long.as_str()] {
        let shown = &id[..id.len().min(9)];
        let invalid = |result: Result<(), StoreError>, expected: &str| {
            assert!(
                matches!(&result, Err(StoreError::Invalid { field, .. }) if *field == expected),
                "{expected} {shown:?}: {result:?}"
            );
        };
        invalid(catalog.create_turn(ANN, alone(id, 1)).await.map(drop), "turn_id");
        invalid(catalog.create_turn(ANN, first("new", id, 1)).await.map(drop), "conversation_id");
        invalid(catalog.create_turn(id, alone("new", 1)).await.map(drop), "user");
        let key_of = IdempotencyKey { key: id.into(), body_hash: "b".into() };
        let keyed = NewTurnRow { idempotency: Some(key_of.clone()), ..alone("new", 1) };
        invalid(catalog.create_turn(ANN, keyed).await.map(drop), "idempotency_key");
        invalid(catalog.add_key(ANN, key(ANN, id, 1)).await, "key_id");
        invalid(catalog.add_file(ANN, file(id, "h", 1)).await.map(drop), "file_id");
        invalid(
            catalog.put_calls(ANN, vec![CallRow { tool_id: id.into(), ..call("t", 1, 1) }]).await.map(drop),
            "tool_id",
        );
        let setting = NewDocument {
            kind: DocumentKind::Setting,
            name: id.into(),
            body: json!(1),
            precondition: DocumentPrecondition::Any,
            now: 1,
        };
        invalid(catalog.put_document(ANN, setting).await.map(drop), "name");

        // Such an id is not found.
        assert_eq!(catalog.turn(ANN, id).await, Ok(None), "{shown:?}");
        assert_eq!(catalog.turn(id, "t").await, Ok(None), "{shown:?}");
        assert_eq!(catalog.turn_by_idempotency_key(ANN, &key_of, 1).await, Ok(None), "{shown:?}");
        assert_eq!(
            catalog.create_turn(ANN, next("new", id, None, 1)).await,
            Ok(TurnCreation::Refused(TurnRefusal::ConversationNotFound)),
            "{shown:?}"
        );
        let parent = Some(TurnParent::after_turn(id));
        assert_eq!(
            catalog.create_turn(ANN, next("new", "c", parent, 1)).await,
            Ok(TurnCreation::Refused(TurnRefusal::ParentNotFound)),
            "{shown:?}"
        );
        assert_eq!(catalog.conversation(ANN, id).await, Ok(None), "{shown:?}");
        assert_eq!(catalog.tree(ANN, id).await, Ok(Vec::new()), "{shown:?}");
        assert_eq!(catalog.path(ANN, id).await, Ok(Vec::new()), "{shown:?}");
        assert_eq!(catalog.rename(ANN, id, "x", 1).await, Ok(false), "{shown:?}");
        assert_eq!(catalog.set_leaf(ANN, "c", id).await, Ok(false), "{shown:?}");
        assert_eq!(catalog.delete_turn(ANN, id).await, Ok(RemovalOutcome::NotFound), "{shown:?}");
        assert_eq!(catalog.delete_conversation(ANN, id).await, Ok(RemovalOutcome::NotFound), "{shown:?}");
        assert_eq!(catalog.call(ANN, "t", id).await, Ok(None), "{shown:?}");
        assert_eq!(catalog.document(ANN, DocumentKind::Agent, id).await, Ok(None), "{shown:?}");
        assert_eq!(catalog.remove_document(ANN, DocumentKind::Agent, id).await, Ok(None), "{shown:?}");
        assert_eq!(catalog.key(id).await, Ok(None), "{shown:?}");
        assert_eq!(catalog.touch_key(id, 1).await, Ok(false), "{shown:?}");
        assert_eq!(catalog.revoke_key(ANN, id, 1).await, Ok(false), "{shown:?}");
        assert_eq!(catalog.file(ANN, id).await, Ok(None), "{shown:?}");
        assert_eq!(catalog.remove_file(ANN, id).await, Ok(None), "{shown:?}");
        assert_eq!(catalog.raw_of_turn(ANN, id).await, Ok(Vec::new()), "{shown:?}");
        assert!(catalog.blobs_in_use(&[id.to_owned()]).await.unwrap().is_empty(), "{shown:?}");
    }
    assert_eq!(catalog.turn(ANN, "new").await, Ok(None));

    let huge = NewTurnRow {
        placement: TurnPlacement::InConversation {
            conversation_id: "c".into(),
            parent: Some(TurnParent::after_event("t", u64::MAX)),
        },
        ..alone("new", 1)
    };
    let refused = catalog.create_turn(ANN, huge).await;
    assert!(matches!(refused, Err(StoreError::Invalid { field: "parent_seq", .. })), "{refused:?}");

    // A cursor is one of an earlier page, or an error; never another list.
    for cursor in ["", "1", "~", "x~y", "1~", "1~a\0b", "99999999999999999999~a", "' OR 1=1 --~a"] {
        let page = PageRequest::after(cursor);
        for refused in [
            catalog.conversations(ANN, &ConversationFilter::default(), &page).await.map(drop),
            catalog.search(ANN, "input", &page).await.map(drop),
            catalog.turns(ANN, &TurnFilter::default(), &page).await.map(drop),
            catalog.calls(ANN, &CallFilter::default(), &page).await.map(drop),
            catalog.files(ANN, &page).await.map(drop),
        ] {
            assert!(
                matches!(refused, Err(StoreError::Invalid { field: "cursor", .. })),
                "{cursor:?}: {refused:?}"
            );
        }
    }
}
