use super::*;
use throughline_store::StoreError;

async fn found(store: &Opened, text: &str) -> Vec<(String, SearchHitPart)> {
    let hits = store.catalog.search(ANN, text, &PageRequest::first()).await.unwrap();
    hits.items.into_iter().map(|hit| (hit.turn_id.unwrap_or(hit.conversation_id), hit.part)).collect()
}

async fn listed(store: &Opened, text: &str) -> Vec<String> {
    let page = store
        .catalog
        .conversations(ANN, &ConversationFilter::text(text), &PageRequest::first())
        .await
        .unwrap();
    page.items.into_iter().map(|item| item.conversation.id).collect()
}

fn hits(expected: &[(&str, SearchHitPart)]) -> Vec<(String, SearchHitPart)> {
    expected.iter().map(|&(id, part)| (id.to_owned(), part)).collect()
}

pub async fn search_finds_titles_inputs_and_answers_in_any_script(store: &Opened) {
    let catalog = &store.catalog;
    let new_titled =
        |id: &str, title: &str| TurnPlacement::NewConversation { id: id.into(), title: Some(title.into()) };
    let turn = with_input(
        NewTurnRow { placement: new_titled("c1", "Weather"), ..alone("t1", 10) },
        "What is the WEATHER like?",
    );
    store.complete_turn(ANN, turn, "Sunny, with a light breeze.").await;
    let turn = with_input(
        NewTurnRow { placement: new_titled("c2", "天氣預報"), ..alone("t2", 20) },
        "今天天氣如何?",
    );
    store.complete_turn(ANN, turn, "今天晴朗,適合散步。").await;
    let turn = with_input(NewTurnRow { placement: new_titled("c3", "Разное"), ..alone("t3", 30) }, "ЖАРА");
    store.complete_turn(ANN, turn, "Rien de spécial à Zürich").await;
    let turn = with_input(
        NewTurnRow { placement: new_titled("c4", "Weather"), ..alone("t4", 40) },
        "weather weather",
    );
    store.complete_turn(BOB, turn, "sunny").await;
    // Turns without a conversation are not searched.
    store.complete_turn(ANN, with_input(alone("t5", 50), "weather"), "sunny").await;

    use SearchHitPart::{Answer, Input, Title};
    let check = async |text: &str, expected: &[(&str, SearchHitPart)], conversations: &[&str]| {
        assert_eq!(found(store, text).await, hits(expected), "{text}");
        assert_eq!(listed(store, text).await, conversations, "{text}");
    };
    check("weather", &[("t1", Input), ("c1", Title)], &["c1"]).await;
    check("EATHE", &[("t1", Input), ("c1", Title)], &["c1"]).await;
    check("  light breeze  ", &[("t1", Answer)], &["c1"]).await;
    check("天氣如", &[("t2", Input)], &["c2"]).await;
    check("天氣", &[("t2", Input), ("c2", Title)], &["c2"]).await;
    check("晴", &[("t2", Answer)], &["c2"]).await;
    check("жара", &[("t3", Input)], &["c3"]).await;
    check("zürich", &[("t3", Answer)], &["c3"]).await;
    check("un", &[("t1", Answer)], &["c1"]).await;
    check("light  breeze", &[], &[]).await;
    check("snow", &[], &[]).await;
    // Blanks look for nothing, and keep nothing out of a list.
    check(" \t", &[], &["c3", "c2", "c1"]).await;

    let hit = catalog.search(ANN, "BREEZE", &PageRequest::first()).await.unwrap().items.remove(0);
    assert_eq!((hit.conversation_id.as_str(), hit.title.as_str(), hit.at), ("c1", "Weather", 10));
    assert_eq!(hit.snippet, "Sunny, with a light breeze.");
}

/// In conversations, in the history of turns and in that of calls, with texts in the index and terms too
/// short for it.
pub async fn search_ignores_letter_case_in_every_script(store: &Opened) {
    let catalog = &store.catalog;
    let texts = [
        "ПРИВЕТ",
        "à l'ÉCOLE",
        "ΟΔΟΣ",
        "η οδος μου",
        "İSTANBUL",
        "ısparta",
        "ᲥᲐᲠᲗᲣᲚᲘ",
        "ꮳꮃꭹ",
        "ＡＢＣ１２",
        "STRAẞE",
        "𞤀𞤁𞤂",
    ];
    for (n, text) in (0..).zip(texts) {
        let placement = TurnPlacement::NewConversation { id: format!("c{n}"), title: Some("-".into()) };
        let turn = with_input(NewTurnRow { placement, ..alone(&format!("t{n}"), n) }, text);
        store.complete_turn(ANN, turn, "-").await;
        let call = CallRow { error: Some(text.to_owned()), ..call(&format!("t{n}"), 1, n) };
        assert_eq!(catalog.put_calls(ANN, vec![call]).await, Ok(1));
    }
    let page = PageRequest::first();
    let any = TurnFilter::default();
    for (text, expected) in [
        ("привет", &["t0"][..]),
        ("ПрИ", &["t0"]),
        ("ив", &["t0"]),
        ("école", &["t1"]),
        ("éc", &["t1"]),
        ("οδος", &["t3", "t2"]),
        ("ΟΔΟΣ", &["t3", "t2"]),
        ("ος", &["t3", "t2"]),
        ("istanbul", &["t4"]),
        ("İs", &["t5", "t4"]),
        ("ISPARTA", &["t5"]),
        ("ქართ", &["t6"]),
        ("ᏣᎳᎩ", &["t7"]),
        ("abc1", &["t8"]),
        ("ｂＣ", &["t8"]),
        ("straße", &["t9"]),
        ("𞤢𞤣𞤤", &["t10"]),
    ] {
        let ids: Vec<_> = found(store, text).await.into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, expected, "{text}");
        let conversations = expected.iter().map(|id| id.replace('t', "c")).collect::<Vec<_>>();
        assert_eq!(listed(store, text).await, conversations, "{text}");
        let turns = catalog.search_turns(ANN, text, &any, &page).await.unwrap().items;
        assert_eq!(turns.into_iter().map(|row| row.turn.id).collect::<Vec<_>>(), expected, "{text}");
        let filter = CallFilter { text: Some(text.to_owned()), ..CallFilter::default() };
        let calls = catalog.calls(ANN, &filter, &page).await.unwrap().items;
        assert_eq!(calls.into_iter().map(|call| call.turn_id).collect::<Vec<_>>(), expected, "{text}");
        assert_eq!(catalog.count_calls(ANN, &filter).await.unwrap().total as usize, expected.len(), "{text}");
    }
}

pub async fn search_wildcards_and_operators_are_literal(store: &Opened) {
    store
        .complete_turn(
            ANN,
            with_input(first("t1", "c1", 10), "100% of a_b and \"quoted\" (x OR y) NEAR* \\ ^end"),
            "",
        )
        .await;
    store.complete_turn(ANN, with_input(first("t2", "c2", 20), "nothing of the kind: aXb, 1000"), "").await;
    // The input is the title, too.
    let check = async |text: &str, conversations: &[&str]| {
        assert_eq!(listed(store, text).await, conversations, "{text}");
        let in_inputs: Vec<_> =
            found(store, text).await.into_iter().filter(|(_, part)| *part == SearchHitPart::Input).collect();
        assert_eq!(in_inputs.len(), conversations.len(), "{text}");
    };
    for text in
        ["0%", "%", "_", "\\", "a_b", "\"quoted\"", "\"qu", "x OR y", "NEAR*", "(x ", "^end", "100% of"]
    {
        check(text, &["c1"]).await;
    }
    for text in [
        "%%%%",
        "_________",
        "a%b",
        "1_0",
        "* OR *",
        "text:x",
        "-nothing",
        "NEAR(x y)",
        "'; DROP TABLE turn;--",
    ] {
        check(text, &[]).await;
    }
    check("of", &["c2", "c1"]).await;
    let bomb = "%_".repeat(400);
    check(&bomb, &[]).await;
    check("a\0b", &[]).await;
}

pub async fn search_hits_are_paged_newest_first(store: &Opened) {
    let catalog = &store.catalog;
    for n in 0..5 {
        let turn = with_input(first(&format!("t{n}"), &format!("c{n}"), 100 + n / 2), "a needle in the hay");
        store.complete_turn(ANN, turn, "another needle, and the na").await;
    }
    for text in ["needle", "n"] {
        let whole = walk(200, |page| async move { catalog.search(ANN, text, &page).await }).await;
        assert_eq!(whole.len(), 15, "title, input and answer of each");
        assert!(whole.is_sorted_by_key(|hit| -hit.at), "newest first");
        for rows in [1, 2, 4, 14, 15] {
            let pages = walk(rows, |page| async move { catalog.search(ANN, text, &page).await }).await;
            assert_eq!(pages, whole, "{text}, {rows} a page");
        }
    }
}

pub async fn search_pages_hold_only_hits_of_their_user(store: &Opened) {
    let catalog = &store.catalog;
    // Two users in turn, and one with a single turn among them.
    for n in 0..60 {
        let (user, at) = if n % 3 == 0 { (BOB, 1_000 - n) } else { (ANN, 1_000 + n) };
        let turn = with_input(first(&format!("t{n}"), &format!("c{n}"), at), &format!("common word {n}"));
        store.complete_turn(user, turn, "a common answer").await;
    }
    store.complete_turn("eve", with_input(first("e", "ec", 7), "her common word"), "one").await;
    for turn in ["t1", "t50"] {
        assert!(matches!(catalog.delete_turn(ANN, turn).await, Ok(RemovalOutcome::Removed(_))));
    }
    for text in ["common", "co", "c"] {
        let of = async |user: &str, rows: u32| {
            let hits = walk(rows, |page| async move { catalog.search(user, text, &page).await }).await;
            assert!(hits.is_sorted_by_key(|hit| -hit.at), "{text}: newest first");
            let positions: Vec<_> = hits.into_iter().map(|hit| (hit.conversation_id, hit.part)).collect();
            let mut once = positions.clone();
            once.sort_unstable_by_key(|(id, part)| (id.clone(), *part as u8));
            once.dedup();
            assert_eq!(once.len(), positions.len(), "{text}: each once");
            positions.len()
        };
        for rows in [1, 7, 50] {
            // Titles stay when the only turn of a conversation goes.
            assert_eq!(of(ANN, rows).await, 40 * 3 - 2 * 2, "{text}, {rows} a page");
            assert_eq!(of(BOB, rows).await, 20 * 3, "{text}, {rows} a page");
            assert_eq!(of("eve", rows).await, 2, "{text}, {rows} a page");
            assert_eq!(of("nobody", rows).await, 0);
        }
        let conversations = |user: &'static str| {
            walk(7, move |page| async move {
                catalog.conversations(user, &ConversationFilter::text(text), &page).await
            })
        };
        assert_eq!(conversations(ANN).await.len(), 40, "{text}");
        assert_eq!(conversations("eve").await.len(), 1, "{text}");
        assert_eq!(conversations("nobody").await, [], "{text}");
    }
}

pub async fn foreign_search_cursor_reveals_no_hits_of_other_users(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, with_input(first("t", "c", 10), "needle"), "needle").await;
    store.complete_turn(BOB, with_input(first("b", "bc", 20), "needle"), "needle").await;
    for cursor in ["9223372036854775807~rank", "-5~rank", "0~rank", "12~b", "20~b.2"] {
        if let Ok(page) = catalog.search(ANN, "needle", &PageRequest::after(cursor)).await {
            assert!(page.items.iter().all(|hit| hit.conversation_id == "c"), "{cursor}");
        }
    }
}

pub async fn renamed_and_deleted_texts_are_not_found(store: &Opened) {
    let catalog = &store.catalog;
    store.complete_turn(ANN, with_input(first("a", "c", 1), "alpha input"), "alpha answer").await;
    store
        .complete_turn(
            ANN,
            with_input(next("b", "c", Some(TurnParent::after_turn("a")), 2), "beta input"),
            "beta answer",
        )
        .await;
    assert_eq!(found(store, "alpha").await.len(), 3);
    assert_eq!(catalog.rename(ANN, "c", "gamma", 3).await, Ok(true));
    assert_eq!(found(store, "alpha").await.len(), 2);
    assert_eq!(listed(store, "gamma").await, ["c"]);
    assert!(matches!(catalog.delete_turn(ANN, "b").await, Ok(RemovalOutcome::Removed(_))));
    assert_eq!(found(store, "beta").await, []);
    assert!(matches!(catalog.delete_conversation(ANN, "c").await, Ok(RemovalOutcome::Removed(_))));
    for text in ["alpha", "gamma", "al", "ga"] {
        assert_eq!(found(store, text).await, [], "{text}");
        assert_eq!(listed(store, text).await, [""; 0], "{text}");
    }
}

// Limit: `search_chars_max`.
pub async fn search_text_length_is_limited(store: &Opened) {
    let over = StoreError::OverLimit { limit: "search_chars_max", max: 5 };
    let page = PageRequest::first();
    assert_eq!(store.catalog.search(ANN, "12345", &page).await.map(|page| page.items), Ok(Vec::new()));
    assert_eq!(store.catalog.search(ANN, "123456", &page).await, Err(over.clone()));
    assert_eq!(
        store.catalog.conversations(ANN, &ConversationFilter::text("123456"), &page).await,
        Err(over.clone())
    );
    let filter = CallFilter { text: Some("123456".into()), ..CallFilter::default() };
    assert_eq!(store.catalog.calls(ANN, &filter, &page).await, Err(over.clone()));
    assert_eq!(store.catalog.count_calls(ANN, &filter).await, Err(over));
}
