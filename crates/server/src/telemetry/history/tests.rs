//! The history of tool calls as a fold of logs.

use super::{
    CallChange, CallFold, CallHistory, HistoryQueue, HistoryWrite, RAW_BYTES_WAITING_MAX, call_rows_of,
};
use crate::telemetry::meter::TelemetryMeter;
use std::sync::Arc;
use throughline_engine::Event;
use throughline_store::{
    Catalog, Durability, Log, LogRecord, MemoryLog, NewTurnRow, RawExtent, RawId, SqliteSettings,
    SqliteStore, TurnPlacement,
};

const LOG: &str = r#"
    {"turn_id":"t","seq":1,"timestamp":1000,"type":"tool_use","step":1,"block":0,"tool_id":"t.1","tool_name":"files.write","wire_name":"files_write","source":"builtin","effect":"write","status":"preparing","slot":0,"position":0}
    {"turn_id":"t","seq":2,"timestamp":1010,"type":"tool_input_delta","step":1,"block":0,"tool_id":"t.1","delta":"{}"}
    {"turn_id":"t","seq":3,"timestamp":1020,"type":"tool_input","step":1,"block":0,"tool_id":"t.1","arguments":{"path":"a"},"seal":"explicit"}
    {"turn_id":"t","seq":4,"timestamp":1030,"type":"approval_request","step":1,"block":0,"tool_id":"t.1","approval_id":"q","question":"?","rule":"effect"}
    {"turn_id":"t","seq":5,"timestamp":1040,"type":"approval_resolved","step":1,"block":0,"tool_id":"t.1","approval_id":"q","decision":"approve","by":"me","arguments":{"path":"b"}}
    {"turn_id":"t","seq":6,"timestamp":1050,"type":"tool_start","step":1,"block":0,"tool_id":"t.1","early":false,"attempt":1}
    {"turn_id":"t","seq":7,"timestamp":1060,"type":"approval_request","step":1,"block":0,"tool_id":"t.1","approval_id":"e","kind":"elicitation","question":"?","rule":""}
    {"turn_id":"t","seq":8,"timestamp":1070,"type":"approval_resolved","step":1,"block":0,"tool_id":"t.1","approval_id":"e","decision":"approve","by":"me"}
    {"turn_id":"t","seq":9,"timestamp":1090,"type":"tool_result","step":1,"block":0,"tool_id":"t.1","status":"error","output_summary":"no","error":{"code":"failed","message":"disk"},"started_at":1050,"duration_ms":40}
    {"turn_id":"t","seq":10,"timestamp":1100,"type":"tool_result","step":1,"block":9,"tool_id":"t.9","status":"success"}
"#;

fn events() -> Vec<Event> {
    LOG.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

#[test]
fn call_row_follows_its_events() {
    let mut fold = CallFold::default();
    let shown: Vec<String> = events()
        .iter()
        .filter_map(|event| fold.apply(event))
        .map(|change| match change {
            CallChange::Row(row) => format!(
                "{} {} {} at {} {:?} {:?} {:?}",
                row.tool_name,
                row.status,
                row.arguments,
                row.started_at,
                row.duration_ms,
                row.output_summary,
                row.error
            ),
            CallChange::UnknownCall => "unseen".to_owned(),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "files.write preparing  at 1000 None None None",
            "files.write queued {\"path\":\"a\"} at 1000 None None None",
            "files.write awaiting_approval {\"path\":\"a\"} at 1000 None None None",
            "files.write queued {\"path\":\"b\"} at 1000 None None None",
            "files.write running {\"path\":\"b\"} at 1050 None None None",
            "files.write running {\"path\":\"b\"} at 1050 None None None",
            "files.write error {\"path\":\"b\"} at 1050 Some(40) Some(\"no\") Some(\"failed: disk\")",
            "unseen",
        ]
    );
}

#[tokio::test]
async fn call_rows_are_read_from_the_log() {
    let log: Arc<dyn Log> = Arc::new(MemoryLog::default());
    let claim = log.claim("t").await.expect("a new turn");
    let records: Vec<LogRecord> = events()
        .iter()
        .map(|event| {
            let payload = serde_json::to_vec(event).expect("an event is JSON");
            LogRecord::new(event.seq.0, "event", Durability::Process, payload)
        })
        .collect();
    log.append("t", claim.epoch, records.into()).await.expect("a dense batch");
    let rows = call_rows_of(&*log, "t").await.expect("the log can be read");
    let shown: Vec<(&str, &str)> =
        rows.iter().map(|row| (row.tool_id.as_str(), row.status.as_str())).collect();
    assert_eq!(shown, [("t.1", "error")], "the last state of each");
}

#[tokio::test]
async fn raw_reply_faster_than_the_writer_is_truncated() {
    let dir = tempfile::tempdir().unwrap();
    let settings = SqliteSettings { free_bytes_min: 0, ballast_bytes: 0, ..SqliteSettings::default() };
    let catalog = Arc::new(SqliteStore::open(&dir.path().join("test.db"), settings).await.unwrap());
    let turn = NewTurnRow {
        id: "t".into(),
        message_id: "m".into(),
        placement: TurnPlacement::Standalone,
        idempotency: None,
        stored: "{}".into(),
        agent: "a".into(),
        model: None,
        mode: None,
        input_text: String::new(),
        files: Vec::new(),
        created_at: 1,
        charge: Default::default(),
    };
    catalog.create_turn("ada", turn).await.unwrap();
    let log = Arc::new(MemoryLog::default());
    let (history, _writer) =
        CallHistory::start(catalog.clone(), log, Arc::new(TelemetryMeter::new(Arc::default())));
    let answer = |turn: &str, step| RawId { turn_id: turn.to_owned(), step, attempt: 1 };
    // Nothing is written before this task lets others run.
    history.record_raw("ada", answer("t", 1), b"data: the begin");
    let of_others = vec![b'x'; 1 << 20];
    (1..)
        .take(RAW_BYTES_WAITING_MAX >> 20)
        .for_each(|step| history.record_raw("ada", answer("other", step), &of_others));
    history.record_raw("ada", answer("t", 1), &of_others);
    history.wait_flushed().await;
    history.record_raw("ada", answer("t", 1), b"nothing behind a hole");
    history.record_raw("ada", answer("t", 2), b"whole");
    history.wait_flushed().await;
    // A reply may come in one piece.
    history.record_raw("ada", answer("t", 3), &vec![b'x'; RAW_BYTES_WAITING_MAX + 1]);
    history.wait_flushed().await;
    let kept = catalog.raw_of_turn("ada", "t").await.unwrap();
    let kept: Vec<_> = kept.iter().map(|row| (row.id.step, row.bytes, row.extent)).collect();
    let one_piece = RAW_BYTES_WAITING_MAX as u64;
    let expected =
        [(1, 15, RawExtent::Truncated), (2, 5, RawExtent::Complete), (3, one_piece, RawExtent::Truncated)];
    assert_eq!(kept, expected);
}

#[test]
fn dropping_a_raw_reply_discards_its_queued_pieces() {
    let answer = |step| RawId { turn_id: "t".into(), step, attempt: 1 };
    let mut queue = HistoryQueue::default();
    for (step, bytes) in [(1, "first"), (2, "of another"), (1, "second")] {
        queue.raw.push_back(("ada".into(), answer(step), bytes.into()));
        queue.raw_bytes += bytes.len();
    }
    queue.drop_raw(&answer(1));
    assert_eq!(queue.raw_bytes, "of another".len());
    assert!(matches!(queue.next(), HistoryWrite::Raw(_, id, _) if id == answer(2)));
    assert!(matches!(queue.next(), HistoryWrite::Nothing));
}
