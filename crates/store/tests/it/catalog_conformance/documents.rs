use super::*;
use serde_json::{Value, json};
use throughline_store::StoreError;

fn document(
    kind: DocumentKind,
    name: &str,
    body: Value,
    expect: DocumentPrecondition,
    now: i64,
) -> NewDocument {
    NewDocument { kind, name: name.into(), body, precondition: expect, now }
}

pub async fn document_write_checks_its_precondition(store: &Opened) {
    let catalog = &store.catalog;
    let agent = |body: Value, expect, now| document(DocumentKind::Agent, "helper", body, expect, now);
    let first = catalog
        .put_document(ANN, agent(json!({"prompt": "A"}), DocumentPrecondition::Absent, 10))
        .await
        .unwrap();
    let PutOutcome::Written(first) = first else { panic!("{first:?}") };
    assert_eq!((first.version, first.created_at, first.updated_at), (1, 10, 10));
    let conflict = |there: &StoredDocument| Ok(PutOutcome::Conflict(Some(there.clone())));
    assert_eq!(
        catalog.put_document(ANN, agent(json!(1), DocumentPrecondition::Absent, 20)).await,
        conflict(&first)
    );
    assert_eq!(
        catalog.put_document(ANN, agent(json!(1), DocumentPrecondition::Version(2), 20)).await,
        conflict(&first)
    );
    let second = catalog
        .put_document(ANN, agent(json!({"prompt": "B"}), DocumentPrecondition::Version(1), 20))
        .await
        .unwrap();
    let PutOutcome::Written(second) = second else { panic!("{second:?}") };
    assert_eq!((second.version, second.created_at, second.updated_at), (2, 10, 20));
    assert_eq!(catalog.document(ANN, DocumentKind::Agent, "helper").await, Ok(Some(second.clone())));
    let third = catalog.put_document(ANN, agent(json!(null), DocumentPrecondition::Any, 30)).await.unwrap();
    assert!(
        matches!(&third, PutOutcome::Written(document) if document.version == 3 && document.body.is_null())
    );

    // Each kind has its own names.
    for kind in DocumentKind::ALL {
        assert_eq!(
            catalog.documents(ANN, kind).await.unwrap().len(),
            usize::from(kind == DocumentKind::Agent)
        );
    }
    let absent = document(DocumentKind::Setting, "helper", json!(1), DocumentPrecondition::Version(3), 40);
    assert_eq!(catalog.put_document(ANN, absent).await, Ok(PutOutcome::Conflict(None)));
    for name in ["z", "a"] {
        let agent = document(DocumentKind::Agent, name, json!(name), DocumentPrecondition::Any, 50);
        assert!(matches!(catalog.put_document(ANN, agent).await, Ok(PutOutcome::Written(_))));
    }
    let names: Vec<_> = catalog
        .documents(ANN, DocumentKind::Agent)
        .await
        .unwrap()
        .into_iter()
        .map(|agent| agent.name)
        .collect();
    assert_eq!(names, ["a", "helper", "z"]);
    let removed = catalog.remove_document(ANN, DocumentKind::Agent, "z").await.unwrap();
    assert_eq!(removed.map(|document| document.body), Some(json!("z")));
    assert_eq!(catalog.remove_document(ANN, DocumentKind::Agent, "z").await, Ok(None));
    assert_eq!(catalog.remove_document(ANN, DocumentKind::Setting, "a").await, Ok(None));
}

pub async fn remembered_answer_replaces_one_about_the_same(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, first("a", "c", 1), "A").await;
    store.complete_turn(ANN, first("b", "d", 1), "B").await;
    let answer = |conversation: Option<&str>, about: &str, answer: &str| NewRemembered {
        conversation_id: conversation.map(Into::into),
        about: about.into(),
        answer: json!({"decision": answer}),
        at: 5,
    };
    let number = async |new: NewRemembered| catalog.remember(ANN, new).await.unwrap().unwrap().number;
    let always = number(answer(None, "x", "allow")).await;
    let here = number(answer(Some("c"), "x", "deny")).await;
    let other = number(answer(Some("d"), "x", "allow")).await;
    assert_eq!(catalog.remember(ANN, answer(Some("absent"), "x", "allow")).await, Ok(None));
    let numbers = async |conversation: Option<&str>| {
        let all = catalog.remembered(ANN, conversation).await.unwrap();
        all.into_iter().map(|answer| answer.number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(None).await, [always]);
    assert_eq!(numbers(Some("c")).await, [always, here]);
    assert_eq!(numbers(Some("d")).await, [always, other]);
    assert_eq!(numbers(Some("absent")).await, [always]);
    let everywhere = catalog.all_remembered(ANN).await.unwrap();
    assert_eq!(everywhere.iter().map(|answer| answer.number).collect::<Vec<_>>(), [always, here, other]);

    let again = number(answer(None, "x", "deny")).await;
    assert!(again > other, "a number is never used again");
    assert_eq!(numbers(Some("c")).await, [here, again], "what was said about the same holds no more");
    let taken_back = catalog.delete_remembered(ANN, again).await.unwrap().unwrap();
    assert_eq!((taken_back.answer, taken_back.at), (json!({"decision": "deny"}), 5));
    assert_eq!(catalog.delete_remembered(ANN, again).await, Ok(None));
    assert_eq!(catalog.delete_remembered(ANN, u64::MAX).await, Ok(None));
    assert!(number(answer(None, "y", "allow")).await > again, "not even the last one");
}

// Limits: `document_bytes_max`, `documents_max`, `remembered_max`.
pub async fn document_count_and_size_are_limited(store: &Opened) {
    let catalog = &store.catalog;
    let put = async |kind, name: &str, body: Value| {
        catalog.put_document(ANN, document(kind, name, body, DocumentPrecondition::Any, 1)).await
    };
    let over = |limit, max| StoreError::OverLimit { limit, max };
    let agent = DocumentKind::Agent;
    // With its quotes.
    assert!(put(agent, "a", json!("x".repeat(18))).await.is_ok());
    assert_eq!(put(agent, "a", json!("x".repeat(19))).await, Err(over("document_bytes_max", 20)));
    assert!(put(agent, "b", json!(1)).await.is_ok());
    assert_eq!(put(agent, "c", json!(1)).await, Err(over("documents_max", 2)));
    assert!(put(agent, "b", json!(2)).await.is_ok(), "what is there can be changed");
    assert!(put(DocumentKind::Setting, "c", json!(1)).await.is_ok(), "another kind");

    let mut numbers = Vec::new();
    for about in ["x", "y", "z"] {
        let answer = NewRemembered { conversation_id: None, about: about.into(), answer: json!(1), at: 1 };
        numbers.push(catalog.remember(ANN, answer).await.unwrap().unwrap().number);
    }
    let row: Vec<_> =
        catalog.remembered(ANN, None).await.unwrap().into_iter().map(|row| row.number).collect();
    assert_eq!(row, numbers[1..], "the oldest has made room");
    let large =
        NewRemembered { conversation_id: None, about: "w".into(), answer: json!("x".repeat(19)), at: 1 };
    assert_eq!(catalog.remember(ANN, large).await, Err(over("document_bytes_max", 20)));
}
