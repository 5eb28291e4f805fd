use super::*;

fn answer(step: u32, attempt: u32) -> RawId {
    RawId { turn_id: "a".into(), step, attempt }
}

pub async fn raw_pieces_form_one_answer(store: &Opened) {
    let catalog = &store.catalog;
    store.begin(ANN, alone("a", 1)).await;
    let whole = Ok(Some(RawExtent::Complete));
    for (id, bytes) in [
        (answer(1, 1), &b"data: \0\xff"[..]),
        (answer(2, 1), b"second"),
        (answer(1, 2), b"again"),
        (answer(1, 1), b""),
        (answer(1, 1), b"\n\n"),
    ] {
        assert_eq!(catalog.append_raw(ANN, &id, bytes, 7).await, whole);
    }
    assert_eq!(catalog.raw(ANN, &answer(1, 1)).await, Ok(Some(b"data: \0\xff\n\n".to_vec())));
    assert_eq!(catalog.raw(ANN, &answer(1, 2)).await, Ok(Some(b"again".to_vec())));
    assert_eq!(catalog.raw(ANN, &answer(3, 1)).await, Ok(None));
    let row = |step, attempt, bytes| RawRow {
        id: answer(step, attempt),
        bytes,
        extent: RawExtent::Complete,
        created_at: 7,
    };
    assert_eq!(catalog.raw_of_turn(ANN, "a").await, Ok(vec![row(1, 1, 10), row(1, 2, 5), row(2, 1, 6)]));
    let absent = RawId { turn_id: "absent".into(), ..answer(1, 1) };
    assert_eq!(catalog.append_raw(ANN, &absent, b"x", 1).await, Ok(None));
}

// Limits: `raw_attempt_bytes_max`, `raw_turn_bytes_max`.
pub async fn raw_bytes_beyond_the_limit_are_truncated(store: &Opened) {
    let catalog = &store.catalog;
    store.begin(ANN, alone("a", 1)).await;
    let append =
        async |id: RawId, bytes: &[u8]| catalog.append_raw(ANN, &id, bytes, 1).await.unwrap().unwrap();
    assert_eq!(append(answer(1, 1), b"1234567").await, RawExtent::Complete);
    assert_eq!(append(answer(1, 1), b"890abc").await, RawExtent::Truncated);
    assert_eq!(append(answer(1, 1), b"d").await, RawExtent::Truncated, "no gap in the middle");
    assert_eq!(catalog.raw(ANN, &answer(1, 1)).await, Ok(Some(b"1234567890".to_vec())));
    // The turn has room for five more.
    assert_eq!(append(answer(2, 1), b"123456").await, RawExtent::Truncated);
    assert_eq!(catalog.raw(ANN, &answer(2, 1)).await, Ok(Some(b"12345".to_vec())));
    assert_eq!(append(answer(3, 1), b"1").await, RawExtent::Truncated);
    assert_eq!(catalog.raw(ANN, &answer(3, 1)).await, Ok(Some(Vec::new())));
    // Bytes that came faster than they could be written are truncated, too, after any earlier ones.
    store.begin(ANN, alone("b", 2)).await;
    let of_b = |step| RawId { turn_id: "b".into(), ..answer(step, 1) };
    assert_eq!(append(of_b(1), b"123").await, RawExtent::Complete);
    for step in [1, 2] {
        assert_eq!(catalog.mark_raw_truncated(ANN, &of_b(step), 5).await, Ok(true));
        assert_eq!(append(of_b(step), b"x").await, RawExtent::Truncated);
    }
    assert_eq!(catalog.raw(ANN, &of_b(1)).await, Ok(Some(b"123".to_vec())));
    let of_b = catalog.raw_of_turn(ANN, "b").await.unwrap();
    assert!(of_b.len() == 2 && of_b.iter().all(|row| row.extent == RawExtent::Truncated), "{of_b:?}");
    let extents = catalog.raw_of_turn(ANN, "a").await.unwrap();
    assert!(extents.iter().all(|row| row.extent == RawExtent::Truncated));
}
