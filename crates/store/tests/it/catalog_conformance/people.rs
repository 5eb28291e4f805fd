use super::*;
use serde_json::json;
use throughline_store::StoreError;

const DAY: i64 = 24 * 60 * 60 * 1000;
/// 2026-11-23, 22:12.
const NOW: i64 = 1_795_471_920_000;

pub fn person(name: &str, at: i64) -> PersonRow {
    PersonRow {
        name: name.into(),
        is_admin: false,
        limits: UsageLimits::default(),
        created_at: at,
        removed_at: None,
    }
}

pub async fn people_are_added_changed_and_listed(store: &Opened) {
    let catalog = &store.catalog;
    for (name, at) in [(ANN, 10), (BOB, 10), ("eve", 30)] {
        assert_eq!(catalog.add_person(person(name, at)).await, Ok(()), "{name}");
    }
    assert_eq!(catalog.add_person(person(ANN, 40)).await, Err(StoreError::Exists { what: "person" }));
    let names: Vec<String> = walk(1, async |page| catalog.people(&page).await)
        .await
        .into_iter()
        .map(|person| person.name)
        .collect();
    assert_eq!(names, ["eve", BOB, ANN]);
    let nothing = PersonChange { is_admin: None, limits: None, removed_at: None };
    assert_eq!(catalog.change_person(ANN, nothing.clone()).await, Ok(Some(person(ANN, 10))));
    let limits = UsageLimits { turns_per_day_max: Some(3), ..UsageLimits::default() };
    let change = PersonChange { is_admin: Some(true), limits: Some(limits), removed_at: Some(Some(50)) };
    let changed = PersonRow { is_admin: true, limits, removed_at: Some(50), ..person(ANN, 10) };
    assert_eq!(catalog.change_person(ANN, change).await, Ok(Some(changed.clone())));
    assert_eq!(catalog.person(ANN).await, Ok(Some(changed)));
    assert_eq!(catalog.change_person("nobody", nothing).await, Ok(None));
    assert_eq!(catalog.person("nobody").await, Ok(None));
}

// Limit: `people_max`.
pub async fn people_count_is_limited(store: &Opened) {
    for name in [ANN, BOB] {
        assert_eq!(store.catalog.add_person(person(name, 1)).await, Ok(()));
    }
    let over = Err(StoreError::OverLimit { limit: "people_max", max: 2 });
    assert_eq!(store.catalog.add_person(person("eve", 1)).await, over);
}

pub async fn key_limits_are_set_and_keys_revoked_together(store: &Opened) {
    let catalog = &store.catalog;
    for (user, id, at) in [(ANN, "a1", 1), (BOB, "b1", 2), (ANN, "a2", 3)] {
        catalog.add_key(user, key(user, id, at)).await.unwrap();
    }
    let limits = KeyLimits {
        usage: UsageLimits { tokens_per_month_max: Some(7), ..UsageLimits::default() },
        models: Some(vec!["demo/one".into()]),
    };
    assert_eq!(catalog.set_key_limits(BOB, "a1", limits.clone()).await, Ok(false), "it is Ann's");
    assert_eq!(catalog.set_key_limits(ANN, "a1", limits.clone()).await, Ok(true));
    assert_eq!(catalog.key("a1").await.unwrap().unwrap().limits, limits);
    let ids = |keys: Vec<KeyRow>| keys.into_iter().map(|key| key.id).collect::<Vec<_>>();
    assert_eq!(ids(walk(2, async |page| catalog.all_keys(&page).await).await), ["a2", "b1", "a1"]);
    assert_eq!(ids(walk(1, async |page| catalog.keys_page(ANN, &page).await).await), ["a2", "a1"]);
    assert_eq!(catalog.revoke_key(ANN, "a2", 4).await, Ok(true));
    assert_eq!(
        catalog.set_key_limits(ANN, "a2", limits.clone()).await,
        Ok(false),
        "it is worth nothing any more"
    );
    assert_eq!(catalog.revoke_keys(ANN, 5).await, Ok(vec!["a1".to_owned()]));
    assert!(catalog.keys(ANN).await.unwrap().iter().all(|key| key.revoked_at.is_some()));
    assert!(catalog.key("b1").await.unwrap().unwrap().is_valid(6));
}

fn charged(id: &str, at: i64, charge: &TurnCharge) -> NewTurnRow {
    NewTurnRow { charge: charge.clone(), ..first(id, &format!("c-{id}"), at) }
}

pub async fn turn_and_token_usage_is_counted_and_limited(store: &Opened) {
    let catalog = &store.catalog;
    let used = async |owner| catalog.usage(&[UsageOwner::Key("none"), owner], NOW).await.unwrap()[1];
    let limited = |user: UsageLimits, key: UsageLimits| TurnCharge {
        key_id: Some("k".into()),
        user_limits: user,
        key_limits: key,
    };
    let none = UsageLimits::default();
    let two_a_day = UsageLimits { turns_per_day_max: Some(2), ..none };
    store.begin(ANN, charged("yesterday", NOW - DAY, &limited(none, two_a_day))).await;
    store.complete_turn(ANN, charged("t1", NOW, &limited(none, two_a_day)), "A").await;
    // Requests refused for another reason are not counted.
    let absent = NewTurnRow { charge: limited(none, two_a_day), ..next("t2", "absent", None, NOW) };
    assert_eq!(
        catalog.create_turn(ANN, absent).await,
        Ok(TurnCreation::Refused(TurnRefusal::ConversationNotFound))
    );
    store.begin(ANN, charged("t3", NOW, &limited(none, two_a_day))).await;
    let refused = catalog.create_turn(ANN, charged("t4", NOW, &limited(none, two_a_day))).await;
    let tomorrow = (NOW / DAY + 1) * DAY;
    let over = UsageExceeded { limit: "turns_per_day_max", max: 2, is_of_key: true, free_at: tomorrow };
    assert_eq!(refused, Ok(TurnCreation::Refused(TurnRefusal::UsageExceeded(over))));
    assert_eq!(catalog.conversation(ANN, "c-t4").await, Ok(None), "nothing was written");
    store.begin(ANN, charged("t5", tomorrow, &limited(none, two_a_day))).await;

    // One answer of seven tokens has been written.
    let month = UsageCount { turns: 3, tokens: 7 };
    let report = UsageReport { today: UsageCount { turns: 2, tokens: 7 }, month };
    assert_eq!(used(UsageOwner::Key("k")).await, report);
    assert_eq!(used(UsageOwner::Person(ANN)).await, report);
    assert_eq!(used(UsageOwner::Person(BOB)).await, UsageReport::default());
    let seven = UsageLimits { tokens_per_month_max: Some(7), ..none };
    let charge = limited(seven, none);
    let free_at = (NOW / DAY + 8) * DAY;
    let over = UsageExceeded { limit: "tokens_per_month_max", max: 7, is_of_key: false, free_at };
    let one = UsageCount { turns: 1, tokens: 0 };
    assert_eq!(catalog.charge(ANN, charge.clone(), one, NOW).await, Ok(Some(over)));
    assert_eq!(used(UsageOwner::Person(ANN)).await, report);
    assert_eq!(catalog.charge(ANN, charge, one, free_at).await, Ok(None), "the next month");

    // Tokens of a turn that runs count for the one that is to follow it: for the user, and for the key that began it.
    store.begin(ANN, charged("runs", free_at, &limited(none, none))).await;
    for (charge, key_id, tokens, exceeded) in [
        (limited(seven, none), "k", 6, None),
        (limited(seven, none), "k", 7, Some(false)),
        (limited(none, seven), "k", 6, None),
        (limited(none, seven), "k", 7, Some(true)),
        (limited(none, seven), "other", 7, None),
    ] {
        let next = NextTurn {
            charge: TurnCharge { key_id: Some(key_id.into()), ..charge },
            running_usage: Some(serde_json::json!({"output_tokens": tokens})),
            now: free_at,
            ..following("c-runs", "runs")
        };
        let refusal = catalog.refusal_of_next(ANN, next).await.unwrap();
        let is_of_key = refusal.map(|refusal| match refusal {
            TurnRefusal::UsageExceeded(exceeded) => exceeded.is_of_key,
            refusal => panic!("{refusal:?}"),
        });
        assert_eq!(is_of_key, exceeded, "{key_id} {tokens}");
    }

    // Deleted turns still count; imported ones do not.
    catalog.delete_conversation(ANN, "c-t1").await.unwrap();
    assert_eq!(used(UsageOwner::Person(ANN)).await, report);
}

pub async fn deleting_the_data_of_a_person_leaves_other_people(store: &Opened) {
    let catalog = &store.catalog;
    for user in [ANN, BOB] {
        catalog.add_person(person(user, 1)).await.unwrap();
        catalog.add_key(user, key(user, &format!("key-{user}"), 1)).await.unwrap();
        catalog.add_file(user, file(&format!("f-{user}"), &format!("h-{user}"), 1)).await.unwrap();
        let charge = TurnCharge { key_id: Some(format!("key-{user}")), ..TurnCharge::default() };
        store.complete_turn(user, charged(&format!("t-{user}"), NOW, &charge), "secret").await;
        store.complete_turn(user, alone(&format!("alone-{user}"), NOW), "secret").await;
        let answer = NewRemembered { conversation_id: None, about: "x".into(), answer: json!(1), at: 1 };
        catalog.remember(user, answer).await.unwrap();
        let setting = NewDocument {
            kind: DocumentKind::Agent,
            name: "helper".into(),
            body: json!(1),
            precondition: DocumentPrecondition::Any,
            now: 1,
        };
        catalog.put_document(user, setting).await.unwrap();
    }
    let running = first("running", "c-running", NOW);
    store.begin(ANN, running).await;
    let mut summary = catalog.delete_data(ANN).await.unwrap();
    while summary.has_more {
        summary = catalog.delete_data(ANN).await.unwrap();
    }
    assert!(catalog.person(ANN).await.unwrap().is_some(), "a turn of hers runs");
    assert_eq!(catalog.end_turn(ANN, "running", ended("", NOW)).await, Ok(true));
    let mut blobs = Vec::new();
    while catalog.person(ANN).await.unwrap().is_some() {
        blobs.extend(catalog.delete_data(ANN).await.unwrap().blobs);
    }
    assert_eq!(blobs, ["h-ann"]);
    let page = PageRequest::first();
    let left = async |user: &str| {
        (
            catalog.conversations(user, &ConversationFilter::default(), &page).await.unwrap().items.len(),
            catalog.turns(user, &TurnFilter::default(), &page).await.unwrap().items.len(),
            catalog.search(user, "secret", &page).await.unwrap().items.len(),
            catalog.keys(user).await.unwrap().len() + catalog.files(user, &page).await.unwrap().items.len(),
            catalog.all_remembered(user).await.unwrap().len()
                + catalog.documents(user, DocumentKind::Agent).await.unwrap().len(),
            catalog.usage(&[UsageOwner::Person(user)], NOW).await.unwrap()[0].month.turns,
        )
    };
    assert_eq!(left(ANN).await, (0, 0, 0, 0, 0, 0));
    assert_eq!(left(BOB).await, (1, 2, 1, 2, 2, 2));
    assert!(catalog.person(BOB).await.unwrap().is_some());
}
