//! What a log promises, checked on the one in memory. Every later log runs the same checks.

#![allow(clippy::unwrap_used)]
use std::time::Duration;
use throughline_store::{Batch, Beside, Durability, Epoch, Log, LogError, MemoryLimits, MemoryLog, Record};

const TURN: &str = "turn_1";

fn records(numbers: impl IntoIterator<Item = u64>) -> Batch {
    let delta = |seq| Record::new(seq, "content_delta", Durability::Process, "{}");
    numbers.into_iter().map(delta).collect::<Vec<_>>().into()
}

fn end(seq: u64) -> Batch {
    vec![Record::new(seq, "stream_end", Durability::Power, "{}")].into()
}

fn numbers(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.seq).collect()
}

async fn claimed() -> (MemoryLog, Epoch) {
    let log = MemoryLog::default();
    let epoch = log.claim(TURN).await.unwrap().epoch;
    (log, epoch)
}

#[tokio::test]
async fn only_what_continues_the_log_is_taken_and_a_refused_batch_leaves_nothing() {
    let cases: [(&str, Vec<u64>, u64, u64); 4] = [
        ("a gap", vec![4], 3, 4),
        ("a repetition", vec![2], 3, 2),
        ("a gap inside a batch", vec![3, 5], 4, 5),
        ("from zero", vec![0], 3, 0),
    ];
    for (what, batch, expected, given) in cases {
        let (log, epoch) = claimed().await;
        log.append(TURN, epoch, records(1..=2)).await.unwrap();
        let refused = log.append(TURN, epoch, records(batch)).await;
        assert_eq!(refused, Err(LogError::NotDense { turn: TURN.into(), expected, given }), "{what}");
        assert_eq!(numbers(&log.read(TURN, 0, 99).await.unwrap()), [1, 2], "{what}");
    }
}

#[tokio::test]
async fn a_former_owner_is_fenced_off() {
    let (log, old) = claimed().await;
    log.append(TURN, old, records(1..=3)).await.unwrap();
    let claim = log.claim(TURN).await.unwrap();
    assert_eq!(claim.last_seq, 3);
    let refused = log.append(TURN, old, records([4])).await;
    assert_eq!(refused, Err(LogError::Fenced { turn: TURN.into(), given: old.0, current: claim.epoch.0 }));
    assert_eq!(log.append(TURN, claim.epoch, records([4])).await.unwrap().last_seq, 4);
}

#[tokio::test]
async fn nothing_follows_the_last_record() {
    let (log, epoch) = claimed().await;
    let mut behind_the_end = end(1);
    behind_the_end.records.extend(records([2]).records);
    let inside = log.append(TURN, epoch, behind_the_end).await;
    assert_eq!(inside, Err(LogError::Ended { turn: TURN.into() }));
    log.append(TURN, epoch, end(1)).await.unwrap();
    let after = log.append(TURN, epoch, records([2])).await;
    assert_eq!(after, Err(LogError::Ended { turn: TURN.into() }));
}

#[tokio::test]
async fn an_unknown_turn_is_said_to_be_unknown() {
    let log = MemoryLog::default();
    let unknown = LogError::UnknownTurn { turn: "nobody".into() };
    assert_eq!(log.append("nobody", Epoch(1), records([1])).await, Err(unknown.clone()));
    assert_eq!(log.read("nobody", 0, 1).await, Err(unknown.clone()));
    assert_eq!(log.tail("nobody", 0).await.err(), Some(unknown));
}

#[tokio::test]
async fn a_reader_starts_wherever_it_wants() {
    let (log, epoch) = claimed().await;
    log.append(TURN, epoch, records(1..=5)).await.unwrap();
    for (after, max, expected) in
        [(0, 99, vec![1, 2, 3, 4, 5]), (3, 99, vec![4, 5]), (0, 2, vec![1, 2]), (5, 9, vec![])]
    {
        assert_eq!(
            numbers(&log.read(TURN, after, max).await.unwrap()),
            expected,
            "after {after}, at most {max}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_tail_waits_for_each_record_and_ends_with_the_turn() {
    let (log, epoch) = claimed().await;
    let mut tail = log.tail(TURN, 0).await.unwrap();
    let nothing = tokio::time::timeout(Duration::from_secs(3600), tail.next()).await;
    assert!(nothing.is_err(), "there is nothing to read yet");

    let reader = tokio::spawn(async move {
        let mut seen = Vec::new();
        while let Some(records) = tail.next().await.unwrap() {
            assert!(!records.is_empty(), "an empty batch would spin");
            seen.extend(numbers(&records));
        }
        seen
    });
    log.append(TURN, epoch, records(1..=2)).await.unwrap();
    tokio::task::yield_now().await;
    log.append(TURN, epoch, records([3])).await.unwrap();
    log.append(TURN, epoch, end(4)).await.unwrap();
    assert_eq!(reader.await.unwrap(), [1, 2, 3, 4]);

    // A second one, late and from the middle, sees the same.
    let mut late = log.tail(TURN, 2).await.unwrap();
    assert_eq!(numbers(&late.next().await.unwrap().unwrap()), [3, 4]);
    assert_eq!(late.next().await.unwrap(), None);
    let ahead = LogError::Ahead { turn: TURN.into(), after: 9, last_seq: 4 };
    assert_eq!(log.tail(TURN, 9).await.err(), Some(ahead.clone()));
    assert_eq!(log.read(TURN, 9, 1).await, Err(ahead));
}

#[tokio::test]
async fn what_is_beside_the_log_is_written_with_its_batch_or_not_at_all() {
    let (log, epoch) = claimed().await;
    let beside = |step| vec![Beside { step, payload: "{}".into() }];
    log.append(TURN, epoch, Batch { records: Vec::new(), beside: beside(1) }).await.unwrap();
    let gap = Batch { beside: beside(2), ..records([7]) };
    log.append(TURN, epoch, gap).await.unwrap_err();
    log.append(TURN, epoch, Batch { beside: beside(3), ..records([1]) }).await.unwrap();
    let steps: Vec<u32> = log.read_beside(TURN).await.unwrap().iter().map(|beside| beside.step).collect();
    assert_eq!(steps, [1, 3]);
}

// R: R2
#[tokio::test]
async fn every_limit_of_the_memory_log_holds() {
    let limits = MemoryLimits { ended_turns_max: 1, turn_bytes_max: 10, tail_records_max: 2 };
    let log = MemoryLog::with_limits(limits);
    let epoch = log.claim(TURN).await.unwrap().epoch;

    log.append(TURN, epoch, records(1..=5)).await.unwrap();
    let over = log.append(TURN, epoch, records([6])).await;
    assert_eq!(over, Err(LogError::Full { turn: TURN.into(), limit: "turn_bytes_max" }));
    log.append(TURN, epoch, end(6)).await.expect("a full turn can still end");

    let mut tail = log.tail(TURN, 0).await.unwrap();
    let mut batches = Vec::new();
    while let Some(records) = tail.next().await.unwrap() {
        batches.push(numbers(&records));
    }
    assert_eq!(batches, [[1, 2], [3, 4], [5, 6]]);

    let mut follower = log.tail(TURN, 4).await.unwrap();
    let epoch = log.claim("turn_2").await.unwrap().epoch;
    log.append("turn_2", epoch, end(1)).await.unwrap();
    assert_eq!(log.read(TURN, 0, 9).await, Err(LogError::UnknownTurn { turn: TURN.into() }));
    assert_eq!(numbers(&log.read("turn_2", 0, 9).await.unwrap()), [1]);
    assert_eq!(numbers(&follower.next().await.unwrap().unwrap()), [5, 6], "a reader keeps what it follows");
}
