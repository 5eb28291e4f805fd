//! Ownership is in every query: rows of another user are absent.

use super::shares::share;
use super::*;
use serde_json::json;
use std::collections::BTreeSet;
use throughline_store::StoreError;

/// Methods for the server itself, over all users.
const FOR_THE_SERVER: [&str; 12] = [
    "open_turns",
    "delete_expired",
    "key",
    "touch_key",
    "blobs_in_use",
    "all_keys",
    "add_person",
    "person",
    "people",
    "change_person",
    "usage",
    "share",
];

/// All rows of Ann's that a user can see.
async fn visible_state(store: &Opened) -> String {
    let catalog = &store.catalog;
    let page = PageRequest::first();
    let raw = RawId { turn_id: "t".into(), step: 1, attempt: 1 };
    let seen = (
        (catalog.turn(ANN, "t").await, catalog.turn(ANN, "open").await, catalog.path(ANN, "t2").await),
        (catalog.conversation(ANN, "c").await, catalog.tree(ANN, "c").await),
        catalog.conversations(ANN, &ConversationFilter::default(), &page).await,
        catalog.search(ANN, "secret", &page).await,
        catalog.calls(ANN, &CallFilter::default(), &page).await,
        catalog.documents(ANN, DocumentKind::Agent).await,
        catalog.remembered(ANN, Some("c")).await,
        (catalog.conversation_labels(ANN).await, catalog.conversation_usage(ANN, "c").await),
        catalog.shares(ANN, None, &page).await,
        catalog.keys(ANN).await,
        catalog.files(ANN, &page).await,
        (catalog.raw_of_turn(ANN, "t").await, catalog.raw(ANN, &raw).await),
    );
    format!("{seen:#?}")
}

async fn furnish(store: &Opened) {
    let catalog = &store.catalog;
    catalog.add_file(ANN, file("f", "h", 1)).await.unwrap();
    let key = Some(IdempotencyKey { key: "idem".into(), body_hash: "b".into() });
    store
        .complete_turn(
            ANN,
            with_input(
                NewTurnRow { idempotency: key, files: vec!["f".into()], ..first("t", "c", 10) },
                "secret",
            ),
            "secret",
        )
        .await;
    store.complete_turn(ANN, next("t2", "c", Some(TurnParent::after_turn("t")), 20), "more").await;
    store.begin(ANN, alone("open", 30)).await;
    catalog.put_calls(ANN, vec![call("t", 1, 11)]).await.unwrap();
    let agent = NewDocument {
        kind: DocumentKind::Agent,
        name: "helper".into(),
        body: json!("secret"),
        precondition: DocumentPrecondition::Any,
        now: 1,
    };
    catalog.put_document(ANN, agent).await.unwrap();
    for conversation_id in [None, Some("c".to_owned())] {
        let answer = NewRemembered { conversation_id, about: "x".into(), answer: json!("secret"), at: 1 };
        catalog.remember(ANN, answer).await.unwrap();
    }
    let filed = ConversationChange {
        folder: Some(Some("secret".into())),
        tags: Some(vec!["secret".into()]),
        ..ConversationChange::default()
    };
    catalog.change_conversation(ANN, "c", filed, 1).await.unwrap();
    catalog.add_share(ANN, share(ANN, "s", "c", "t2", 1)).await.unwrap();
    catalog.add_key(ANN, key_of_ann()).await.unwrap();
    let raw = RawId { turn_id: "t".into(), step: 1, attempt: 1 };
    catalog.append_raw(ANN, &raw, b"secret", 1).await.unwrap();
}

fn key_of_ann() -> KeyRow {
    key(ANN, "k", 1)
}

/// Calls each method as Bob about rows of Ann's. `sees` gets the name of each method.
async fn walk_as_bob(store: &Opened, mut sees: impl FnMut(&'static str)) {
    let catalog = &store.catalog;
    let before = visible_state(store).await;
    let answer = catalog.remembered(ANN, None).await.unwrap()[0].number;
    let page = PageRequest::first();
    let raw = RawId { turn_id: "t".into(), step: 1, attempt: 1 };
    let idempotency = IdempotencyKey { key: "idem".into(), body_hash: "b".into() };
    let agent = DocumentKind::Agent;
    macro_rules! row {
        ($method:ident($($given:expr),*) => $expected:pat $(if $guard:expr)?) => {{
            let got = catalog.$method(BOB, $($given),*).await;
            assert!(matches!(&got, $expected $(if $guard)?), "{}: {got:?}", stringify!($method));
            assert_eq!(visible_state(store).await, before, "{} has changed something", stringify!($method));
            sees(stringify!($method));
        }};
    }
    // Bob's own rows have other ids; Ann's are reported to him as taken or absent.
    row!(create_turn(next("b1", "c", None, 50)) => Ok(TurnCreation::Refused(TurnRefusal::ConversationNotFound)));
    row!(create_turn(next("b1", "c", Some(TurnParent::after_turn("t")), 50)) => Ok(TurnCreation::Refused(TurnRefusal::ConversationNotFound)));
    row!(create_turn(NewTurnRow { files: vec!["f".into()], idempotency: Some(idempotency.clone()), ..alone("bobs", 50) }) => Ok(TurnCreation::New));
    row!(refusal_of_next(following("c", "t")) => Ok(Some(TurnRefusal::ConversationNotFound)));
    row!(turn("t") => Ok(None));
    row!(turn_by_idempotency_key(&IdempotencyKey { body_hash: "other".into(), ..idempotency.clone() }, 11) => Ok(Some(TurnCreation::KeyReused)));
    row!(end_turn("open", ended("by bob", 99)) => Ok(false));
    row!(rate_turn("t", None) => Ok(false));
    row!(turns(&TurnFilter { conversation_id: Some("c".into()), ..TurnFilter::default() }, &page) => Ok(page) if page.items.is_empty());
    row!(search_turns("of", &TurnFilter { conversation_id: Some("c".into()), ..TurnFilter::default() }, &page) => Ok(page) if page.items.is_empty());
    row!(count_turns(&TurnFilter { conversation_id: Some("c".into()), ..TurnFilter::default() }) => Ok(counts) if counts.total == 0);
    row!(delete_turn("t2") => Ok(RemovalOutcome::NotFound));
    row!(create_conversation(NewConversation { id: "c".into(), title: None, created_at: 1, temporary: false }) => Err(StoreError::Exists { .. }));
    row!(conversation("c") => Ok(None));
    row!(conversations(&ConversationFilter::default(), &page) => Ok(page) if page.items.is_empty());
    row!(conversations(&ConversationFilter::text("secret"), &page) => Ok(page) if page.items.is_empty());
    row!(conversations(&ConversationFilter::text("se"), &page) => Ok(page) if page.items.is_empty());
    row!(search("secret", &page) => Ok(page) if page.items.is_empty());
    row!(search("se", &page) => Ok(page) if page.items.is_empty());
    row!(rename("c", "mine", 99) => Ok(false));
    row!(set_leaf("c", "t") => Ok(false));
    row!(conversations(&ConversationFilter { folder: Some("secret".into()), ..ConversationFilter::default() }, &page) => Ok(page) if page.items.is_empty());
    row!(conversations(&ConversationFilter { tag: Some("secret".into()), ..ConversationFilter::default() }, &page) => Ok(page) if page.items.is_empty());
    row!(conversation_labels() => Ok(labels) if *labels == ConversationLabels::default());
    row!(conversation_usage("c") => Ok(None));
    row!(change_conversation("c", ConversationChange { pinned: Some(true), ..ConversationChange::default() }, 99) => Ok(false));
    row!(trash_conversation("c", 99) => Ok(RemovalOutcome::NotFound));
    row!(restore_conversation("c", 0) => Ok(false));
    row!(add_share(share(BOB, "bobs", "c", "t2", 1)) => Ok(false));
    row!(add_share(share(ANN, "bobs", "c", "t2", 1)) => Err(StoreError::Invalid { .. }));
    row!(shares(None, &page) => Ok(page) if page.items.is_empty());
    row!(shares(Some("c"), &page) => Ok(page) if page.items.is_empty());
    row!(delete_share("s") => Ok(false));
    row!(turn_using_file(&["t".into()], "f") => Ok(None));
    row!(tree("c") => Ok(turns) if turns.is_empty());
    row!(path("t2") => Ok(turns) if turns.is_empty());
    row!(delete_conversation("c") => Ok(RemovalOutcome::NotFound));
    row!(import(ImportedConversation {
        conversation: ConversationRow { id: "b2".into(), ..store.summary(ANN, "c").await.conversation },
        turns: vec![store.turn_row(ANN, "t").await],
        calls: Vec::new(),
        files: vec![("t".into(), "f".into())],
    }) => Err(StoreError::Exists { what: "turn" } | StoreError::Invalid { .. }));
    row!(put_calls(vec![CallRow { status: "error".into(), ..call("t", 1, 99) }]) => Ok(0));
    row!(call("t", "t.1") => Ok(None));
    row!(calls(&CallFilter { turn_id: Some("t".into()), ..CallFilter::default() }, &page) => Ok(page) if page.items.is_empty());
    row!(count_calls(&CallFilter::default()) => Ok(counts) if *counts == CallCounts::default());
    row!(samples(&SampleRange { from: 0, until: 99, rows_max: 9 }) => Ok(samples) if samples.calls.rows.is_empty() && samples.waiting == 0);
    row!(document(agent, "helper") => Ok(None));
    row!(documents(agent) => Ok(documents) if documents.is_empty());
    row!(put_document(NewDocument { kind: agent, name: "helper".into(), body: json!(1), precondition: DocumentPrecondition::Version(1), now: 9 }) => Ok(PutOutcome::Conflict(None)));
    row!(put_document(NewDocument { kind: agent, name: "helper".into(), body: json!(1), precondition: DocumentPrecondition::Absent, now: 9 }) => Ok(PutOutcome::Written(_)));
    row!(remove_document(agent, "helper") => Ok(Some(document)) if document.body == json!(1));
    row!(remembered(Some("c")) => Ok(answers) if answers.is_empty());
    row!(all_remembered() => Ok(list) if list.is_empty());
    row!(remember(NewRemembered { conversation_id: Some("c".into()), about: "x".into(), answer: json!(1), at: 9 }) => Ok(None));
    row!(remember(NewRemembered { conversation_id: None, about: "x".into(), answer: json!(1), at: 9 }) => Ok(Some(_)));
    row!(delete_remembered(answer) => Ok(None));
    row!(add_key(key_of_ann()) => Err(StoreError::Invalid { .. }));
    row!(add_key(KeyRow { user: BOB.into(), ..key_of_ann() }) => Err(StoreError::Exists { .. }));
    row!(keys() => Ok(keys) if keys.is_empty());
    row!(revoke_key("k", 99) => Ok(false));
    row!(keys_page(&page) => Ok(page) if page.items.is_empty());
    row!(set_key_limits("k", KeyLimits::default()) => Ok(false));
    row!(revoke_keys(99) => Ok(ids) if ids.is_empty());
    row!(charge(TurnCharge { key_id: None, ..TurnCharge::default() }, UsageCount { turns: 1, tokens: 1 }, 99) => Ok(None));
    row!(add_file(file("f", "h", 1)) => Err(StoreError::Exists { .. }));
    row!(add_file(NewFile { made_in: Some("t".into()), ..file("bobs", "h", 1) }) => Err(StoreError::Invalid { .. }));
    row!(find_or_add_file(NewFile { made_in: Some("t".into()), ..file("bobs", "h", 1) }) => Err(StoreError::Invalid { .. }));
    row!(record_file_use("t", "f") => Ok(false));
    row!(file("f") => Ok(None));
    row!(files(&page) => Ok(page) if page.items.is_empty());
    row!(remove_file("f") => Ok(None));
    row!(append_raw(&raw, b"x", 99) => Ok(None));
    row!(mark_raw_truncated(&raw, 99) => Ok(false));
    row!(raw_of_turn("t") => Ok(rows) if rows.is_empty());
    row!(raw(&raw) => Ok(None));
    row!(delete_data() => Ok(summary) if !summary.has_more);
}

pub async fn other_user_can_neither_read_nor_change_data(store: &Opened) {
    furnish(store).await;
    walk_as_bob(store, |_| {}).await;
    // Ann's file was named in Bob's turn; it is not his, so it goes when Ann's conversation goes.
    let removed = store.catalog.delete_conversation(ANN, "c").await.unwrap();
    assert!(matches!(removed, RemovalOutcome::Removed(gone) if gone.blobs == ["h"]));
}

pub async fn ownership_matrix_covers_every_method(store: &Opened) {
    furnish(store).await;
    let mut walked = BTreeSet::from(FOR_THE_SERVER);
    walk_as_bob(store, |method| walked.extend([method])).await;
    let contract = include_str!("../../../src/catalog/mod.rs");
    let methods: BTreeSet<&str> = contract
        .lines()
        .filter_map(|line| line.trim().strip_prefix("async fn "))
        .filter_map(|line| line.split('(').next())
        .collect();
    assert!(methods.len() > 40, "the contract has been found");
    assert_eq!(walked, methods);
    for method in FOR_THE_SERVER {
        assert!(!contract.contains(&format!("async fn {method}(&self, user: &str")), "{method} has a user");
    }
}
