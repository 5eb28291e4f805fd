use super::*;

pub async fn samples_are_the_newest_in_range_and_flag_more(store: &Opened) {
    let catalog = &store.catalog;
    for (id, at) in [("a", 10), ("b", 20), ("c", 30)] {
        store.complete_turn(ANN, alone(id, at), "said").await;
    }
    store.begin(ANN, alone("runs", 40)).await;
    store.complete_turn(BOB, alone("other", 20), "said").await;
    let waits = |turn: &str, at| CallRow {
        status: "awaiting_approval".into(),
        duration_ms: None,
        ..call(turn, 2, at)
    };
    // Calls left open by an ended turn do not wait.
    let calls =
        vec![call("a", 1, 10), call("b", 1, 20), waits("c", 30), call("runs", 1, 41), waits("runs", 42)];
    assert_eq!(catalog.put_calls(ANN, calls).await, Ok(5));
    assert_eq!(catalog.put_calls(BOB, vec![call("other", 1, 20)]).await, Ok(1));

    let check = async |(from, until, rows_max), turns: &[i64], calls: &[i64], cut| {
        let found = catalog.samples(ANN, &SampleRange { from, until, rows_max }).await.unwrap();
        let context = format!("{from} to {until}, {rows_max}");
        assert_eq!(
            found.turns.rows.iter().map(|turn| turn.created_at).collect::<Vec<_>>(),
            turns,
            "{context}"
        );
        assert_eq!(
            found.calls.rows.iter().map(|call| call.started_at).collect::<Vec<_>>(),
            calls,
            "{context}"
        );
        assert_eq!((found.turns.truncated, found.calls.truncated), cut, "{context}");
        assert_eq!(found.waiting, 1, "{context}");
        found
    };
    let all = check((0, 100, 9), &[40, 30, 20, 10], &[42, 41, 30, 20, 10], (false, false)).await;
    check((20, 41, 9), &[40, 30, 20], &[30, 20], (false, false)).await;
    check((0, 100, 4), &[40, 30, 20, 10], &[42, 41, 30, 20], (false, true)).await;
    check((0, 100, 1), &[40], &[42], (true, true)).await;
    check((100, 200, 1), &[], &[], (false, false)).await;

    let [runs, ended, ..] = &all.turns.rows[..] else { panic!("{all:?}") };
    assert_eq!((runs.status.as_str(), runs.pace), (STATUS_RUNNING, TurnTiming::default()));
    assert_eq!((ended.status.as_str(), ended.pace), ("completed", super::ended("", 0).pace));
    let [.., last] = &all.calls.rows[..] else { panic!("{all:?}") };
    assert_eq!(
        (last.tool_name.as_str(), last.status.as_str(), last.duration_ms),
        ("files.read", "success", Some(3))
    );
}
