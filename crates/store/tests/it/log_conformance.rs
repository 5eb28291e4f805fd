//! Promises of every log, checked through `dyn Log`. An implementation gives a [`Subject`] and runs
//! `conformance!(maker)`, which makes one test of each promise.

use async_trait::async_trait;
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use throughline_store::{
    AppendAck, Durability, Log, LogBatch, LogError, LogRecord, LogTail, OwnerEpoch, ProviderStateRecord,
};

/// A log under test.
#[async_trait]
pub trait Subject: Send {
    fn log(&self) -> Arc<dyn Log>;

    /// Stops the log and starts it again with its stored data.
    async fn restart(&mut self) -> Restarted;

    /// Commits that waited for the disk so far, if it counts them.
    fn fsyncs(&self) -> Option<u64>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restarted {
    /// Everything acknowledged is stored.
    AsItWas,
    /// Nothing is stored: the log cannot be restarted.
    Cannot,
}

/// One test of each guarantee, and this many random histories. `if there`: the constructor returns `None`
/// where this log is not available.
#[macro_export]
macro_rules! conformance {
    ($make:ident) => {
        async fn made() -> Option<impl $crate::log_conformance::Subject> {
            Some($make().await)
        }

        $crate::conformance!(if there made, 32);
    };
    (if there $make:ident, $histories:literal) => {
        $crate::conformance!($make:
            append_requires_contiguous_seq, a_former_owner_is_fenced_off, append_after_the_end_is_refused,
            unknown_turn_is_an_error, read_starts_after_any_seq_and_detects_a_cursor_ahead,
            a_tail_waits_for_each_record_and_ends_with_the_turn, thousand_tails_see_the_same_records,
            dropped_tail_wait_loses_no_record, provider_state_is_written_atomically_with_its_batch,
            only_power_durability_calls_fsync, open_turns_excludes_ended_turns,
            merged_records_keep_their_seq, deleted_turn_is_unknown, concurrent_appends_keep_their_order,
            log_is_unchanged_by_a_restart);

        #[test]
        fn random_histories_match_the_model() {
            $crate::log_conformance::random_histories_match_the_model($make, $histories);
        }
    };
    ($make:ident: $($promise:ident),*) => {
        $(#[tokio::test]
        async fn $promise() {
            if let Some(subject) = $make().await {
                $crate::log_conformance::$promise(subject).await;
            }
        })*
    };
}

const TURN: &str = "turn_1";

pub fn delta(seq: u64) -> LogRecord {
    let text = "x".repeat(usize::try_from(seq * 7 % 90).unwrap());
    LogRecord::new(
        seq,
        "content_delta",
        Durability::Process,
        format!("{{\"seq\":{seq},\"text\":\"{text}\"}}"),
    )
}

fn records(numbers: impl IntoIterator<Item = u64>) -> LogBatch {
    numbers.into_iter().map(delta).collect::<Vec<_>>().into()
}

fn end(seq: u64) -> LogRecord {
    LogRecord::new(seq, "stream_end", Durability::Power, "{}")
}

fn numbers(records: &[LogRecord]) -> Vec<u64> {
    records.iter().map(|record| record.seq).collect()
}

async fn claimed(log: &dyn Log) -> OwnerEpoch {
    log.claim(TURN).await.unwrap().epoch
}

async fn all(log: &dyn Log, turn: &str) -> Vec<LogRecord> {
    log.read(turn, 0, usize::MAX).await.unwrap()
}

pub async fn append_requires_contiguous_seq(subject: impl Subject) {
    let log = subject.log();
    let epoch = claimed(&*log).await;
    log.append(TURN, epoch, records(1..=2)).await.unwrap();
    for (what, batch, expected, given) in [
        ("a gap", vec![4], 3, 4),
        ("a repetition", vec![2], 3, 2),
        ("a gap inside a batch", vec![3, 5], 4, 5),
        ("from zero", vec![0], 3, 0),
    ] {
        let refused = log.append(TURN, epoch, records(batch)).await;
        assert_eq!(refused, Err(LogError::NonContiguous { turn: TURN.into(), expected, given }), "{what}");
        assert_eq!(numbers(&all(&*log, TURN).await), [1, 2], "{what}");
    }
    assert_eq!(log.append(TURN, epoch, LogBatch::default()).await, Ok(AppendAck { last_seq: 2 }));
    assert_eq!(all(&*log, TURN).await, records(1..=2).records);
}

pub async fn a_former_owner_is_fenced_off(subject: impl Subject) {
    let log = subject.log();
    let old = claimed(&*log).await;
    log.append(TURN, old, records(1..=3)).await.unwrap();
    let claim = log.claim(TURN).await.unwrap();
    assert_eq!(claim.last_seq, 3);
    let fenced = Err(LogError::Fenced { turn: TURN.into(), given: old.0, current: claim.epoch.0 });
    assert_eq!(log.append(TURN, old, records([4])).await, fenced);
    assert_eq!(log.append(TURN, old, LogBatch::default()).await, fenced);
    let ended = vec![end(4)].into();
    assert_eq!(log.append(TURN, claim.epoch, ended).await, Ok(AppendAck { last_seq: 4 }));
    assert_eq!(log.append(TURN, old, records([5])).await, fenced, "even after the end");
}

pub async fn append_after_the_end_is_refused(subject: impl Subject) {
    let log = subject.log();
    let epoch = claimed(&*log).await;
    let ended = Err(LogError::Ended { turn: TURN.into() });
    assert_eq!(log.append(TURN, epoch, vec![end(1), delta(2)].into()).await, ended);
    log.append(TURN, epoch, vec![end(1)].into()).await.unwrap();
    assert_eq!(log.append(TURN, epoch, records([2])).await, ended);
    let provider_state = LogBatch {
        records: vec![],
        provider_state: vec![ProviderStateRecord { step: 1, payload: "{}".into() }],
        ..LogBatch::default()
    };
    assert_eq!(log.append(TURN, epoch, provider_state).await, ended);
    assert_eq!(log.append(TURN, epoch, LogBatch::default()).await, Ok(AppendAck { last_seq: 1 }));
    assert_eq!(all(&*log, TURN).await, [end(1)]);
}

pub async fn unknown_turn_is_an_error(subject: impl Subject) {
    let log = subject.log();
    let unknown = LogError::UnknownTurn { turn: "nobody".into() };
    assert_eq!(log.append("nobody", OwnerEpoch(1), records([1])).await, Err(unknown.clone()));
    assert_eq!(log.read("nobody", 0, 1).await, Err(unknown.clone()));
    assert_eq!(log.read_provider_state("nobody").await, Err(unknown.clone()));
    assert_eq!(log.tail("nobody", 0).await.err(), Some(unknown));
}

pub async fn read_starts_after_any_seq_and_detects_a_cursor_ahead(subject: impl Subject) {
    let log = subject.log();
    let epoch = claimed(&*log).await;
    log.append(TURN, epoch, records(1..=2)).await.unwrap();
    log.append(TURN, epoch, records(3..=5)).await.unwrap();
    for (after, max, expected) in [
        (0, 99, vec![1, 2, 3, 4, 5]),
        (3, 99, vec![4, 5]),
        (0, 2, vec![1, 2]),
        (1, 2, vec![2, 3]),
        (5, 9, vec![]),
        (0, 0, vec![]),
    ] {
        let read = log.read(TURN, after, max).await.unwrap();
        assert_eq!(numbers(&read), expected, "after {after}, at most {max}");
    }
    // After a power cut a viewer may be ahead: it must be recognized.
    for after in [6, u64::MAX] {
        let ahead = LogError::Ahead { turn: TURN.into(), after, last_seq: 5 };
        assert_eq!(log.read(TURN, after, 9).await, Err(ahead.clone()));
        assert_eq!(log.tail(TURN, after).await.err(), Some(ahead));
    }
}

async fn drain(mut tail: Box<dyn LogTail>) -> Vec<LogRecord> {
    let mut seen = Vec::new();
    while let Some(records) = tail.next().await.unwrap() {
        assert!(!records.is_empty(), "an empty batch would spin");
        seen.extend(records);
    }
    seen
}

pub async fn a_tail_waits_for_each_record_and_ends_with_the_turn(subject: impl Subject) {
    let log = subject.log();
    let epoch = claimed(&*log).await;
    let mut tail = log.tail(TURN, 0).await.unwrap();
    assert!(futures_util::poll!(tail.next()).is_pending(), "there is nothing to read yet");
    let reader = tokio::spawn(drain(tail));
    log.append(TURN, epoch, records(1..=2)).await.unwrap();
    tokio::task::yield_now().await;
    log.append(TURN, epoch, records([3])).await.unwrap();
    log.append(TURN, epoch, vec![end(4)].into()).await.unwrap();
    let expected = [delta(1), delta(2), delta(3), end(4)];
    assert_eq!(reader.await.unwrap(), expected);

    // Late ones, from the beginning, from the middle, and from the end.
    for after in 0..=4 {
        let late = drain(log.tail(TURN, after).await.unwrap()).await;
        assert_eq!(late, expected[usize::try_from(after).unwrap()..], "after {after}");
    }
}

pub async fn thousand_tails_see_the_same_records(subject: impl Subject) {
    const EVENTS: u64 = 60;
    let log = subject.log();
    let epoch = claimed(&*log).await;
    // One that never reads holds nothing back.
    let _idle = log.tail(TURN, 0).await.unwrap();
    let mut readers = Vec::new();
    for _ in 0..1_000 {
        readers.push(tokio::spawn(drain(log.tail(TURN, 0).await.unwrap())));
    }
    for seq in 1..EVENTS {
        log.append(TURN, epoch, records([seq])).await.unwrap();
    }
    log.append(TURN, epoch, vec![end(EVENTS)].into()).await.unwrap();
    for reader in readers {
        assert_eq!(numbers(&reader.await.unwrap()), (1..=EVENTS).collect::<Vec<_>>());
    }
}

pub async fn dropped_tail_wait_loses_no_record(subject: impl Subject) {
    let log = subject.log();
    let epoch = claimed(&*log).await;
    let mut tail = log.tail(TURN, 0).await.unwrap();
    for seq in 1..=5 {
        assert!(futures_util::poll!(tail.next()).is_pending());
        log.append(TURN, epoch, records([seq])).await.unwrap();
        assert_eq!(numbers(&tail.next().await.unwrap().unwrap()), [seq]);
    }
    // A dropped append has happened or not, and a claim shows which.
    {
        let append = log.append(TURN, epoch, records([6]));
        tokio::pin!(append);
        let _ = futures_util::poll!(append.as_mut());
    }
    let claim = log.claim(TURN).await.unwrap();
    assert!([5, 6].contains(&claim.last_seq));
    let next = claim.last_seq + 1;
    log.append(TURN, claim.epoch, records([next])).await.unwrap();
    assert_eq!(numbers(&all(&*log, TURN).await), (1..=next).collect::<Vec<_>>());
}

pub async fn provider_state_is_written_atomically_with_its_batch(subject: impl Subject) {
    let log = subject.log();
    let epoch = claimed(&*log).await;
    let provider_state =
        |step| vec![ProviderStateRecord { step, payload: format!("{{\"of\":{step}}}").into() }];
    log.append(
        TURN,
        epoch,
        LogBatch { records: Vec::new(), provider_state: provider_state(1), ..LogBatch::default() },
    )
    .await
    .unwrap();
    let gap = LogBatch { provider_state: provider_state(2), ..records([7]) };
    log.append(TURN, epoch, gap).await.unwrap_err();
    log.append(TURN, epoch, LogBatch { provider_state: provider_state(3), ..records([1]) }).await.unwrap();
    assert_eq!(log.read_provider_state(TURN).await.unwrap(), [provider_state(1), provider_state(3)].concat());
}

pub async fn only_power_durability_calls_fsync(subject: impl Subject) {
    let log = subject.log();
    let epoch = claimed(&*log).await;
    let Some(before) = subject.fsyncs() else { return };
    for seq in 1..=3 {
        log.append(TURN, epoch, records([seq])).await.unwrap();
    }
    assert_eq!(subject.fsyncs(), Some(before), "deltas survive the process, not the machine");
    let strongest = vec![delta(4), LogRecord::new(5, "tool_start", Durability::Power, "{}"), delta(6)];
    log.append(TURN, epoch, strongest.into()).await.unwrap();
    assert_eq!(subject.fsyncs(), Some(before + 1), "a batch is as durable as its strongest record");
    log.append(TURN, epoch, records([7])).await.unwrap();
    assert_eq!(subject.fsyncs(), Some(before + 1));
}

pub async fn open_turns_excludes_ended_turns(mut subject: impl Subject) {
    let log = subject.log();
    for turn in ["b", "a", "c"] {
        let epoch = log.claim(turn).await.unwrap().epoch;
        log.append(turn, epoch, records([1])).await.unwrap();
        if turn == "b" {
            log.append(turn, epoch, vec![end(2)].into()).await.unwrap();
        }
    }
    assert_eq!(log.open_turns().await.unwrap(), ["a", "c"]);
    drop(log);
    if subject.restart().await == Restarted::AsItWas {
        assert_eq!(subject.log().open_turns().await.unwrap(), ["a", "c"]);
    }
}

/// Joins each two deltas, as the number of the second.
fn merge_pairs(records: Vec<LogRecord>) -> Vec<LogRecord> {
    let mut merged: Vec<LogRecord> = Vec::new();
    let mut single = false;
    for record in records {
        match merged.last_mut() {
            Some(last) if single && last.kind == record.kind => {
                last.payload = [&last.payload[..], &record.payload[..]].concat().into();
                last.seq = record.seq;
                single = false;
            }
            _ => {
                single = record.kind == "content_delta";
                merged.push(record);
            }
        }
    }
    merged
}

pub async fn merged_records_keep_their_seq(mut subject: impl Subject) {
    let log = subject.log();
    let epoch = claimed(&*log).await;
    for seq in 1..=9 {
        log.append(TURN, epoch, records([seq])).await.unwrap();
    }
    let merge: throughline_store::MergeFn = Arc::new(merge_pairs);
    log.compact(TURN, merge.clone()).await.unwrap();
    assert_eq!(numbers(&all(&*log, TURN).await), (1..=9).collect::<Vec<_>>(), "it is running");
    log.append(TURN, epoch, vec![end(10)].into()).await.unwrap();

    let whole = all(&*log, TURN).await;
    let cut: throughline_store::MergeFn = Arc::new(|mut all: Vec<LogRecord>| {
        all.pop();
        all
    });
    assert!(matches!(log.compact(TURN, cut).await, Err(LogError::InvalidMerge { .. })), "without its end");
    let twice: throughline_store::MergeFn = Arc::new(|all: Vec<LogRecord>| [all.clone(), all].concat());
    assert!(matches!(log.compact(TURN, twice).await, Err(LogError::InvalidMerge { .. })), "doubled");
    assert_eq!(all(&*log, TURN).await, whole, "a bad merge changes nothing");

    log.compact(TURN, merge.clone()).await.unwrap();
    drop(log);
    for _ in 0..2 {
        let log = subject.log();
        let expected = merge_pairs(whole.clone());
        assert_eq!(all(&*log, TURN).await, expected);
        for (after, sees) in [(0, 2), (2, 4), (8, 9), (9, 10)] {
            assert_eq!(log.read(TURN, after, 1).await.unwrap()[0].seq, sees, "after {after}");
            let mut tail = log.tail(TURN, after).await.unwrap();
            assert_eq!(tail.next().await.unwrap().unwrap()[0].seq, sees, "a tail after {after}");
        }
        assert_eq!(log.read(TURN, 10, 9).await.unwrap(), []);
        for inside in [1, 3, 7] {
            let merged = LogError::CursorInsideMerge { turn: TURN.into(), after: inside };
            assert_eq!(log.read(TURN, inside, 9).await, Err(merged.clone()));
            assert_eq!(log.tail(TURN, inside).await.unwrap().next().await, Err(merged));
        }
        drop(log);
        if subject.restart().await == Restarted::Cannot {
            break;
        }
    }
}

pub async fn deleted_turn_is_unknown(subject: impl Subject) {
    let log = subject.log();
    log.delete("never seen").await.unwrap();
    let epoch = claimed(&*log).await;
    let batch = LogBatch {
        provider_state: vec![ProviderStateRecord { step: 1, payload: "{}".into() }],
        ..records(1..=3)
    };
    log.append(TURN, epoch, batch).await.unwrap();
    log.delete(TURN).await.unwrap();
    let unknown = LogError::UnknownTurn { turn: TURN.into() };
    assert_eq!(log.append(TURN, epoch, records([4])).await, Err(unknown.clone()));
    assert_eq!(log.read(TURN, 0, 9).await, Err(unknown));
    assert_eq!(log.open_turns().await.unwrap(), [] as [&str; 0]);
    // The id starts over.
    assert_eq!(log.claim(TURN).await.unwrap().last_seq, 0);
    assert_eq!(log.read_provider_state(TURN).await.unwrap(), []);
}

pub async fn concurrent_appends_keep_their_order(subject: impl Subject) {
    let log = subject.log();
    let mut writers = Vec::new();
    for turn in 0..50 {
        let (log, turn) = (log.clone(), format!("turn_{turn:02}"));
        writers.push(tokio::spawn(async move {
            let epoch = log.claim(&turn).await.unwrap().epoch;
            for first in (1..40).step_by(3) {
                log.append(&turn, epoch, records(first..first + 3)).await.unwrap();
            }
            log.append(&turn, epoch, vec![end(40)].into()).await.unwrap();
            turn
        }));
    }
    for writer in writers {
        let turn = writer.await.unwrap();
        let read = all(&*log, &turn).await;
        assert_eq!(read[..39], records(1..=39).records, "{turn}");
        assert_eq!(read[39..], [end(40)], "{turn}");
    }
}

pub async fn log_is_unchanged_by_a_restart(mut subject: impl Subject) {
    let batch = |seq| LogBatch {
        provider_state: vec![ProviderStateRecord { step: seq as u32, payload: format!("{seq}").into() }],
        ..records([seq])
    };
    let mut last = 0;
    let mut epochs = Vec::new();
    for seq in 1..=12 {
        let log = subject.log();
        let claim = log.claim(TURN).await.unwrap();
        assert_eq!(claim.last_seq, last);
        assert!(epochs.last().is_none_or(|before| *before < claim.epoch), "epochs grow across restarts");
        epochs.push(claim.epoch);
        log.append(TURN, claim.epoch, batch(seq)).await.unwrap();
        last = seq;
        drop(log);
        if subject.restart().await == Restarted::Cannot {
            return;
        }
        let log = subject.log();
        let expected: Vec<LogRecord> = (1..=seq).map(delta).collect();
        assert_eq!(all(&*log, TURN).await, expected);
        assert_eq!(log.read_provider_state(TURN).await.unwrap().len(), expected.len());
        if seq > 1 {
            let stale = log.append(TURN, epochs[0], records([seq + 1])).await;
            assert!(matches!(stale, Err(LogError::Fenced { .. })), "{stale:?}");
        }
    }
}

/// One step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Claim(usize),
    Append { turn: usize, epochs_back: u64, from: i64, count: u64, ends: bool },
    Together(Vec<u64>),
    Read { turn: usize, after: u64, max: usize },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let turn = 0usize..3;
    let usual = prop_oneof![12 => Just(0i64), 1 => Just(1), 1 => Just(-1)];
    let append = (turn.clone(), prop_oneof![9 => Just(0u64), 1 => Just(1)], usual, 0u64..6, 0u8..12);
    prop_oneof![
        2 => turn.clone().prop_map(Step::Claim),
        10 => append.prop_map(|(turn, epochs_back, from, count, end)| Step::Append {
            turn, epochs_back, from, count, ends: end == 0
        }),
        2 => proptest::collection::vec(1u64..4, 3).prop_map(Step::Together),
        5 => (turn, 0u64..40, 0usize..30).prop_map(|(turn, after, max)| Step::Read { turn, after, max }),
        1 => Just(Step::Restart),
    ]
}

/// The required state of a turn.
#[derive(Clone, Default)]
struct Model {
    epoch: u64,
    records: Vec<LogRecord>,
    ended: bool,
}

impl Model {
    fn append(&mut self, turn: &str, epoch: u64, batch: &[LogRecord]) -> Result<AppendAck, LogError> {
        let turn = turn.to_owned();
        let last = self.records.len() as u64;
        if self.epoch == 0 {
            return Err(LogError::UnknownTurn { turn });
        }
        if self.epoch != epoch {
            return Err(LogError::Fenced { turn, given: epoch, current: self.epoch });
        }
        let mut ended = self.ended;
        for (expected, record) in (last + 1..).zip(batch) {
            if ended {
                return Err(LogError::Ended { turn });
            }
            if record.seq != expected {
                return Err(LogError::NonContiguous { turn, expected, given: record.seq });
            }
            ended = record.kind == "stream_end";
        }
        self.ended = ended;
        self.records.extend_from_slice(batch);
        Ok(AppendAck { last_seq: self.records.len() as u64 })
    }
}

/// Any interleaving of claims, appends, reads and restarts over a few turns answers as the model does.
pub fn random_histories_match_the_model<S: Subject, F: Future<Output = Option<S>>>(
    make: fn() -> F,
    histories: u32,
) {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(histories) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    proptest!(config, |(steps in proptest::collection::vec(step(), 1..60))| {
        runtime.block_on(async {
            let Some(subject) = make().await else { return };
            tokio::time::timeout(Duration::from_secs(60), play(subject, steps)).await.expect("it hangs");
        });
    });
}

async fn play(mut subject: impl Subject, steps: Vec<Step>) {
    let turns = ["turn_a", "turn_b", "turn_c"];
    let mut model: [Model; 3] = Default::default();
    let mut log = subject.log();
    for step in steps {
        match step {
            Step::Claim(turn) => {
                let claim = log.claim(turns[turn]).await.unwrap();
                model[turn].epoch += 1;
                assert_eq!(claim.epoch, OwnerEpoch(model[turn].epoch));
                assert_eq!(claim.last_seq, model[turn].records.len() as u64);
            }
            Step::Append { turn, epochs_back, from, count, ends } => {
                let first = (model[turn].records.len() as u64 + 1).saturating_add_signed(from);
                let mut batch: Vec<LogRecord> = (first..first + count).map(delta).collect();
                if ends {
                    batch.push(end(first + count));
                }
                let epoch = model[turn].epoch.saturating_sub(epochs_back);
                let got = log.append(turns[turn], OwnerEpoch(epoch), batch.clone().into()).await;
                assert_eq!(got, model[turn].append(turns[turn], epoch, &batch));
            }
            Step::Together(counts) => {
                let batches = counts.iter().zip(&model).map(|(count, turn)| {
                    let last = turn.records.len() as u64;
                    (last + 1..=last + count).map(delta).collect::<Vec<_>>()
                });
                let batches: Vec<_> = batches.collect();
                let appends = batches.iter().enumerate().map(|(turn, batch)| {
                    log.append(turns[turn], OwnerEpoch(model[turn].epoch), batch.clone().into())
                });
                let got = futures_util::future::join_all(appends).await;
                for (turn, (got, batch)) in got.into_iter().zip(&batches).enumerate() {
                    let epoch = model[turn].epoch;
                    assert_eq!(got, model[turn].append(turns[turn], epoch, batch));
                }
            }
            Step::Read { turn, after, max } => {
                let got = log.read(turns[turn], after, max).await;
                let last = model[turn].records.len() as u64;
                let expected = match after {
                    _ if model[turn].epoch == 0 => Err(LogError::UnknownTurn { turn: turns[turn].into() }),
                    _ if after > last => {
                        Err(LogError::Ahead { turn: turns[turn].into(), after, last_seq: last })
                    }
                    _ => Ok(model[turn].records.iter().skip(after as usize).take(max).cloned().collect()),
                };
                assert_eq!(got, expected);
            }
            Step::Restart => {
                drop(log);
                subject.restart().await;
                log = subject.log();
            }
        }
    }
    for (turn, model) in turns.iter().zip(&model).filter(|(_, model)| model.epoch > 0) {
        assert_eq!(all(&*log, turn).await, model.records);
        if model.ended {
            assert_eq!(drain(log.tail(turn, 0).await.unwrap()).await, model.records);
        }
    }
}
