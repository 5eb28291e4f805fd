use super::*;

pub async fn calls_are_stored_replaced_and_found(store: &Opened) {
    let catalog = &store.catalog;
    store.begin(ANN, first("a", "c", 1)).await;
    store.begin(ANN, alone("b", 1)).await;
    let running =
        CallRow { status: "running".into(), output_summary: None, duration_ms: None, ..call("a", 1, 5) };
    assert_eq!(catalog.put_calls(ANN, vec![running, call("b", 1, 6), call("absent", 1, 7)]).await, Ok(2));
    let found = catalog.call(ANN, "a", "a.1").await.unwrap().unwrap();
    assert_eq!((found.status.as_str(), found.conversation_id.as_deref()), ("running", Some("c")));
    assert_eq!(catalog.put_calls(ANN, vec![call("a", 1, 5)]).await, Ok(1));
    let expected = CallRow { conversation_id: Some("c".into()), ..call("a", 1, 5) };
    assert_eq!(catalog.call(ANN, "a", "a.1").await, Ok(Some(expected)));
    assert_eq!(catalog.call(ANN, "b", "b.1").await, Ok(Some(call("b", 1, 6))));
    assert_eq!(catalog.call(ANN, "b", "a.1").await, Ok(None));
    assert_eq!(catalog.put_calls(ANN, Vec::new()).await, Ok(0));
}

pub async fn call_filters_and_counts_agree(store: &Opened) {
    let catalog = &store.catalog;
    store.begin(ANN, first("a", "c", 1)).await;
    store.begin(ANN, alone("b", 1)).await;
    store.begin(BOB, alone("other", 1)).await;
    let odd = |turn: &str, ordinal, at| CallRow {
        tool_name: "mail.send".into(),
        source: "mcp:mail".into(),
        effect: "external".into(),
        status: "error".into(),
        arguments: r#"{"to":"100%_sure\\x"}"#.into(),
        output_summary: None,
        error: Some("No Route".into()),
        ..call(turn, ordinal, at)
    };
    let calls = vec![call("a", 1, 10), odd("a", 2, 20), call("b", 1, 20), odd("b", 2, 40), call("b", 3, 50)];
    assert_eq!(catalog.put_calls(ANN, calls).await, Ok(5));
    assert_eq!(catalog.put_calls(BOB, vec![odd("other", 1, 30)]).await, Ok(1));

    let check = async |filter: CallFilter, expected: &[&str]| {
        for rows in [1, 2, 200] {
            let calls = walk(rows, |page| {
                let filter = filter.clone();
                async move { catalog.calls(ANN, &filter, &page).await }
            });
            let ids: Vec<_> = calls.await.into_iter().map(|call| call.tool_id).collect();
            assert_eq!(ids, expected, "{filter:?}, {rows} a page");
        }
        let counts = catalog.count_calls(ANN, &filter).await.unwrap();
        assert_eq!(counts.total as usize, expected.len(), "{filter:?}");
        for parts in [&counts.by_status, &counts.by_tool] {
            assert_eq!(parts.iter().map(|part| part.count).sum::<u64>(), counts.total, "{filter:?}");
        }
    };
    let any = CallFilter::default;
    let some = |text: &str| Some(text.to_owned());
    let statuses = |written: &str| CallFilter::parse_statuses(Some(written));
    check(any(), &["b.3", "b.2", "b.1", "a.2", "a.1"]).await;
    check(CallFilter { tool_name: some("mail.send"), ..any() }, &["b.2", "a.2"]).await;
    check(CallFilter { tool_name: some("mail"), ..any() }, &[]).await;
    check(CallFilter { source: some("builtin"), ..any() }, &["b.3", "b.1", "a.1"]).await;
    check(CallFilter { statuses: statuses("error"), turn_id: some("a"), ..any() }, &["a.2"]).await;
    check(CallFilter { statuses: statuses("error, success"), turn_id: some("a"), ..any() }, &["a.2", "a.1"])
        .await;
    check(CallFilter { statuses: statuses("denied,no\"such"), ..any() }, &[]).await;
    check(CallFilter { statuses: statuses(" ,"), turn_id: some("b"), ..any() }, &["b.3", "b.2", "b.1"]).await;
    check(CallFilter { conversation_id: some("c"), ..any() }, &["a.2", "a.1"]).await;
    check(CallFilter { from: Some(20), until: Some(40), ..any() }, &["b.1", "a.2"]).await;
    check(CallFilter { longer_than_ms: Some(3), ..any() }, &[]).await;
    check(CallFilter { longer_than_ms: Some(2), statuses: statuses("error"), ..any() }, &["b.2", "a.2"])
        .await;
    check(CallFilter { text: some("no route"), ..any() }, &["b.2", "a.2"]).await;
    check(CallFilter { text: some(" 12 LINES "), ..any() }, &["b.3", "b.1", "a.1"]).await;
    check(CallFilter { text: some("100%_"), ..any() }, &["b.2", "a.2"]).await;
    check(CallFilter { text: some("%%%%"), ..any() }, &[]).await;
    check(CallFilter { text: some("1_0"), ..any() }, &[]).await;
    check(CallFilter { text: some("\\x"), ..any() }, &["b.2", "a.2"]).await;
    check(CallFilter { text: some(" "), ..any() }, &["b.3", "b.2", "b.1", "a.2", "a.1"]).await;
    let counts = catalog.count_calls(ANN, &any()).await.unwrap();
    let count = |name: &str, count| NamedCount { name: name.into(), count };
    assert_eq!(counts.by_status, [count("success", 3), count("error", 2)]);
    assert_eq!(counts.by_tool, [count("files.read", 3), count("mail.send", 2)]);
}
