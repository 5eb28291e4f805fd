//! Fewer events for a viewer that lags: adjacent deltas of one block become one. No other events may be
//! merged, and their fold stays the same.

use throughline::Event;
use throughline_store::LogRecord;

/// Kinds of which neighbors may be joined.
const DELTAS: [&str; 4] = ["content_delta", "thinking", "tool_input_delta", "tool_progress"];

/// Merges adjacent deltas of one block. A merged record has the number of its last event, so that a viewer
/// resumes at the right position. Other records are neither changed nor parsed.
pub fn merge_deltas(records: Vec<LogRecord>) -> Vec<LogRecord> {
    let mut merged = Vec::with_capacity(records.len());
    let mut run: Vec<LogRecord> = Vec::new();
    for record in records {
        let continues_run = run.last().is_none_or(|last| last.kind == record.kind);
        if !continues_run || !DELTAS.contains(&record.kind.as_ref()) {
            join(&mut run, &mut merged);
        }
        if DELTAS.contains(&record.kind.as_ref()) { run.push(record) } else { merged.push(record) }
    }
    join(&mut run, &mut merged);
    merged
}

fn join(run: &mut Vec<LogRecord>, merged: &mut Vec<LogRecord>) {
    let joined = match run.len() {
        0 | 1 => None,
        _ => joined(run),
    };
    match joined {
        Some(joined) => {
            merged.extend(joined);
            run.clear();
        }
        // What cannot be read is passed on as it is.
        None => merged.append(run),
    }
}

fn joined(run: &[LogRecord]) -> Option<Vec<LogRecord>> {
    let first = run.first()?;
    let events: Vec<Event> =
        run.iter().map(|record| serde_json::from_slice(&record.payload)).collect::<Result<_, _>>().ok()?;
    let events = throughline_engine::merge_deltas(events);
    let record = |event: &Event| {
        let payload = serde_json::to_vec(event).ok()?;
        Some(LogRecord::new(event.seq.0, first.kind.clone(), first.durability, payload))
    };
    events.iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use throughline::engine::{CallProgress, EventSeq, TurnId, UnixMillis};
    use throughline::{AssistantMessage, EventKind};
    use throughline_store::Durability;

    fn kind() -> impl Strategy<Value = EventKind> {
        let text = "[a-zé漢\"\\\\\n]{0,4}";
        prop_oneof![
            text.prop_map(EventKind::content_delta),
            text.prop_map(EventKind::thinking),
            text.prop_map(EventKind::tool_input_delta),
            text.prop_map(|text| EventKind::ToolProgress(CallProgress {
                output_delta: Some(text),
                ..CallProgress::default()
            })),
            Just(EventKind::ToolProgress(CallProgress { progress: Some(0.5), ..CallProgress::default() })),
            Just(EventKind::BlockEnd),
            Just(EventKind::ToolInputReset),
        ]
    }

    fn records(kinds: Vec<(EventKind, u32)>) -> Vec<LogRecord> {
        let opened = [
            r#"{"type":"stream_start","v":1,"message_id":"m","agent":"a","mode":"native","input":[],"turn_id":"t","seq":1,"timestamp":1}"#,
            r#"{"type":"block_start","kind":"text","block":0,"turn_id":"t","seq":2,"timestamp":1}"#,
            r#"{"type":"block_start","kind":"thinking","block":1,"turn_id":"t","seq":3,"timestamp":1}"#,
            r#"{"type":"tool_use","tool_name":"x.y","wire_name":"x_y","effect":"read","status":"preparing","slot":0,"position":0,"block":2,"tool_id":"t.1","turn_id":"t","seq":4,"timestamp":1}"#,
        ];
        let opened =
            opened.iter().zip(1..).map(|(text, seq)| LogRecord::new(seq, "x", Durability::Process, *text));
        let grown = kinds.into_iter().zip(5..).map(|((kind, block), seq)| {
            let tool_id = (block == 2).then(|| "t.1".into());
            let timestamp: UnixMillis = 1;
            let (turn_id, seq) = (TurnId::new("t"), EventSeq(seq));
            let event = Event { turn_id, seq, timestamp, step: None, block: Some(block), tool_id, kind };
            let payload = serde_json::to_vec(&event).unwrap();
            let name = serde_json::to_value(&event).unwrap()["type"].as_str().unwrap().to_owned();
            LogRecord::new(event.seq.0, name, Durability::Process, payload)
        });
        opened.chain(grown).collect()
    }

    fn fold(records: &[LogRecord]) -> AssistantMessage {
        let events: Vec<Event> =
            records.iter().map(|record| serde_json::from_slice(&record.payload).unwrap()).collect();
        AssistantMessage::from_events(&events)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn merged_deltas_fold_to_the_same_message(kinds in prop::collection::vec((kind(), 0u32..3), 0..40)) {
            let whole = records(kinds);
            let merged = merge_deltas(whole.clone());
            prop_assert!(merged.len() <= whole.len());
            prop_assert_eq!(merged.last().map(|last| last.seq), whole.last().map(|last| last.seq));
            prop_assert!(merged.windows(2).all(|pair| pair[0].seq < pair[1].seq));
            prop_assert_eq!(fold(&merged), fold(&whole));
            prop_assert_eq!(merge_deltas(merged.clone()), merged);
        }
    }

    #[test]
    fn adjacent_text_deltas_merge_under_the_last_seq() {
        let text = |text: &str| (EventKind::content_delta(text), 0);
        let merged = merge_deltas(records(vec![text("a"), text("b"), (EventKind::BlockEnd, 0), text("c")]));
        let numbers: Vec<u64> = merged.iter().map(|record| record.seq).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 6, 7, 8]);
    }
}
