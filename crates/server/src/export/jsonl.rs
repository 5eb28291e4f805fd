//! One record per line: a header with the format, then each turn followed by its events.
//!
//! ```jsonl
//! {"type":"conversation","format":"throughline.conversation","v":1,"id":"conv_1","title":"…","leaf_id":"turn_1", …}
//! {"type":"turn","id":"turn_1","parent":null,"model":"openai/gpt-5-mini"}
//! {"type":"event","event":{"turn_id":"turn_1","seq":1,"type":"stream_start", …}}
//! ```
//!
//! Records and fields of a later version that are unknown here are left out; a higher `v` is refused.

use super::{
    EVENTS_PER_TURN_MAX, EventJson, LineError, PortableConversation, PortableFiling, PortableTurn, TURNS_MAX,
    check_units,
};
use crate::api::rating::RATING_REASON_CHARS_MAX;
use crate::json_scanner::{JsonScanner, TreeUnits, TurnUnits};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashSet;
use throughline_engine::{Event, EventKind};
use throughline_store::{TurnParent, TurnRating};

/// `format` of the header.
pub(crate) const FORMAT: &str = "throughline.conversation";
/// `v` of the header that this release writes. It reads all that are lower.
pub(super) const FORMAT_VERSION: u32 = 1;

/// Maximum nesting depth of a line with an event. Its values are also stored in rows, 7 levels deeper, and
/// parsed again with a limit of 127.
const LINE_DEPTH_MAX: u32 = 118;
/// Events that a call may need which is open where its log breaks off, of which each may be the last.
const EVENTS_PER_OPEN_CALL: usize = 3;

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename = "conversation")]
struct ConversationRecord {
    format: String,
    v: u32,
    #[serde(default)]
    exported_at: i64,
    id: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    leaf_id: Option<String>,
    #[serde(default)]
    created_at: i64,
    #[serde(flatten)]
    filing: PortableFiling,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename = "turn")]
struct TurnRecord {
    id: String,
    #[serde(default)]
    parent: Option<TurnParent>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rating: Option<TurnRating>,
}

/// Any record, before the fields of its type are read. An enum of records would make a tree of all values in it.
#[derive(Deserialize)]
struct AnyRecord<'a> {
    #[serde(rename = "type")]
    record: String,
    #[serde(borrow, default)]
    event: Option<&'a RawValue>,
}

/// Writes a conversation, with a newline at the end of each line.
pub fn write(portable: &PortableConversation, exported_at: i64) -> String {
    let mut text = String::new();
    // Plain data with text keys always becomes JSON.
    fn line(record: &impl Serialize) -> String {
        serde_json::to_string(record).unwrap_or_default() + "\n"
    }
    text.push_str(&line(&ConversationRecord {
        format: FORMAT.to_owned(),
        v: FORMAT_VERSION,
        exported_at,
        id: portable.id.clone(),
        title: portable.title.clone(),
        leaf_id: portable.leaf_id.clone(),
        created_at: portable.created_at,
        filing: portable.filing.clone(),
    }));
    for turn in &portable.turns {
        text.push_str(&line(&TurnRecord {
            id: turn.id.clone(),
            parent: turn.parent.clone(),
            model: turn.model.clone(),
            rating: turn.rating.clone(),
        }));
        for event in &turn.events {
            text.extend([r#"{"type":"event","event":"#, event.as_str(), "}\n"]);
        }
    }
    text
}

/// Reads a conversation whose turns have at most `units_max` tree units each. A log that breaks off is
/// closed.
///
/// # Errors
/// The first line that cannot be imported, with the reason.
pub fn read(text: &str, units_max: u64) -> Result<PortableConversation, LineError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let Some((number, first)) = lines.next() else {
        return Err(LineError::new(1, "there is nothing in it"));
    };
    check_units(number, TreeUnits::of(first).all, units_max)?;
    let mut portable = parse_header(number, first)?;
    let mut logs: Vec<ReadLog> = Vec::new();
    let mut turn_ids = HashSet::new();
    for (number, line) in lines {
        let AnyRecord { record, event } = parse_record(number, line)?;
        match record.as_str() {
            "event" => {
                let Some(event) = event else {
                    return Err(LineError::new(number, "a record of an event without its `event`"));
                };
                let Some((turn, log)) = portable.turns.last_mut().zip(logs.last_mut()) else {
                    return Err(LineError::new(number, "an event without a turn in front of it"));
                };
                if log.end == LogEnd::Reached {
                    return Err(LineError::new(number, "an event after the `stream_end` of its turn"));
                }
                let mut json = JsonScanner::default();
                if json.exceeds(line.as_bytes(), LINE_DEPTH_MAX) {
                    return Err(LineError::new(number, format!("it nests deeper than {LINE_DEPTH_MAX}")));
                }
                check_units(number, log.units.with(json.units), units_max)?;
                let event = parse_event(number, line, event.get())?;
                check_event(number, turn, log, &event)?;
                turn.events.push(event);
            }
            "conversation" => {
                return Err(LineError::new(number, "the file contains a second conversation")
                    .help("one file is one conversation"));
            }
            "turn" => {
                let TurnRecord { id, parent, model, rating } = parse_record(number, line)?;
                let is_too_long =
                    |rating: &TurnRating| rating.reason.chars().count() > RATING_REASON_CHARS_MAX;
                if rating.as_ref().is_some_and(is_too_long) {
                    let what = format!(
                        "the reason of its rating has more than {RATING_REASON_CHARS_MAX} characters"
                    );
                    return Err(LineError::new(number, what));
                }
                if portable.turns.len() == TURNS_MAX {
                    return Err(LineError::new(number, format!("more than {TURNS_MAX} turns")));
                }
                if let Some(parent) = &parent
                    && !turn_ids.contains(&parent.turn_id)
                {
                    let what = format!("its parent `{}` is not in front of it", parent.turn_id);
                    return Err(LineError::new(number, what));
                }
                if !turn_ids.insert(id.clone()) {
                    return Err(LineError::new(number, format!("there is a turn `{id}` already")));
                }
                logs.push(ReadLog {
                    line: number,
                    end: LogEnd::Open,
                    open_calls: 0,
                    units: TurnUnits::default(),
                });
                portable.turns.push(PortableTurn { id, parent, model, rating, events: Vec::new() });
            }
            _ => {}
        }
    }
    for (turn, log) in portable.turns.iter_mut().zip(logs) {
        if turn.events.is_empty() {
            return Err(LineError::new(log.line, format!("turn `{}` has no events", turn.id)));
        }
        if log.end == LogEnd::Open {
            turn.close(None);
        }
    }
    if let Some(leaf) = &portable.leaf_id
        && !turn_ids.contains(leaf)
    {
        return Err(LineError::new(1, format!("`leaf_id` is `{leaf}`, which is not one of its turns")));
    }
    if portable.leaf_id.is_none() {
        portable.leaf_id = portable.turns.last().map(|turn| turn.id.clone());
    }
    Ok(portable)
}

fn parse_header(number: usize, line: &str) -> Result<PortableConversation, LineError> {
    let expected =
        || format!("the first line is {{\"type\":\"conversation\",\"format\":\"{FORMAT}\",\"v\":1,…}}");
    let AnyRecord { record, .. } = parse_record(number, line).map_err(|error| error.help(expected()))?;
    if record != "conversation" {
        return Err(LineError::new(number, "the file does not begin with its header").help(expected()));
    }
    let ConversationRecord { format, v, id, title, leaf_id, created_at, filing, .. } =
        parse_record(number, line).map_err(|error| error.help(expected()))?;
    if format != FORMAT {
        return Err(
            LineError::new(number, format!("`{format}` is not a format that can be read")).help(expected())
        );
    }
    if v == 0 || v > FORMAT_VERSION {
        return Err(LineError::new(number, format!("unknown format version {v}"))
            .help("a later release of Throughline wrote it; use that one"));
    }
    Ok(PortableConversation { id, title, leaf_id, created_at, filing, turns: Vec::new() })
}

fn parse_record<'a, T: Deserialize<'a>>(number: usize, line: &'a str) -> Result<T, LineError> {
    serde_json::from_str(line).map_err(|error| unreadable(number, &error, 0))
}

/// An error of JSON that begins at `offset` bytes of its line.
fn unreadable(number: usize, error: &serde_json::Error, offset: usize) -> LineError {
    let column = offset + error.column();
    LineError::new(number, format!("it cannot be read: {} (column {column})", description(error)))
}

/// The error without its line and column, since serde_json counts those of the parsed text, which is one
/// line.
fn description(error: &serde_json::Error) -> String {
    error.to_string().split(" at line 1").next().unwrap_or_default().to_owned()
}

/// Reads the JSON of an event, which is a piece of this line.
fn parse_event(number: usize, line: &str, json: &str) -> Result<EventJson, LineError> {
    let offset = (json.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    let values: Value = serde_json::from_str(json).map_err(|error| unreadable(number, &error, offset))?;
    EventJson::of(&values).map_err(|error| no_event(number, &error))
}

fn no_event(number: usize, error: &serde_json::Error) -> LineError {
    LineError::new(number, format!("this is no event: {}", description(error)))
}

/// State of the log of a turn that is being read.
struct ReadLog {
    /// Line of its turn.
    line: usize,
    end: LogEnd,
    open_calls: usize,
    units: TurnUnits,
}

/// State of the end of a log.
#[derive(PartialEq)]
enum LogEnd {
    Reached,
    Open,
}

/// A log begins at 1, has no holes and belongs to its turn.
fn check_event(
    number: usize,
    turn: &PortableTurn,
    log: &mut ReadLog,
    event: &EventJson,
) -> Result<(), LineError> {
    let parsed: Event = event.parse().map_err(|error| no_event(number, &error))?;
    let expected = turn.events.len() as u64 + 1;
    if parsed.seq.0 != expected {
        return Err(LineError::new(
            number,
            format!("`seq` is {}, and {expected} would be next", parsed.seq.0),
        ));
    }
    if parsed.turn_id.as_str() != turn.id {
        let what = format!("an event of `{}` in the log of `{}`", parsed.turn_id, turn.id);
        return Err(LineError::new(number, what));
    }
    match &parsed.kind {
        EventKind::ToolUse { .. } => log.open_calls += 1,
        EventKind::ToolResult(_) => log.open_calls = log.open_calls.saturating_sub(1),
        EventKind::StreamEnd { .. } => log.end = LogEnd::Reached,
        _ => {}
    }
    let to_close = EVENTS_PER_OPEN_CALL * log.open_calls;
    if log.end == LogEnd::Open && turn.events.len() + to_close >= EVENTS_PER_TURN_MAX {
        let what = format!("more than {EVENTS_PER_TURN_MAX} events in one turn");
        return Err(LineError::new(number, what));
    }
    let begins = matches!(parsed.kind, EventKind::StreamStart { .. });
    if begins != (expected == 1) {
        return Err(LineError::new(number, "`stream_start` is the first event of a turn, and only that"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{IdMap, read_messages};
    use super::*;
    use serde_json::json;
    use throughline_engine::fold::AssistantMessage;
    use throughline_wire::json::ARGUMENTS_DEPTH_MAX;

    /// A turn of a real log, as one that travels.
    fn recorded(name: &str) -> PortableTurn {
        let path = format!("{}/../engine/tests/logs/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let events: Vec<EventJson> =
            text.lines().map(|line| EventJson::from_log(line.as_bytes()).unwrap()).collect();
        let id = events[0].parse::<Event>().unwrap().turn_id.as_str().to_owned();
        PortableTurn { id, parent: None, model: Some("up/m".into()), rating: None, events }
    }

    fn conversation(turns: Vec<PortableTurn>) -> PortableConversation {
        let leaf_id = turns.last().map(|turn| turn.id.clone());
        PortableConversation {
            id: "conv_old".into(),
            title: Some("Weather".into()),
            leaf_id,
            created_at: 5,
            filing: PortableFiling {
                folder: Some("Trips".into()),
                tags: vec!["a".into()],
                pinned_at: Some(7),
                archived_at: None,
            },
            turns,
        }
    }

    #[test]
    fn export_round_trips() {
        for name in ["v1-tools", "v1-stopped", "v1-broken", "demo-time"] {
            let before = conversation(vec![recorded(name)]);
            assert_eq!(read(&write(&before, 9), 1_000).unwrap(), before, "{name}");
        }
    }

    #[test]
    fn truncated_log_is_closed_on_import() {
        let whole = recorded("v1-tools");
        for keep in 1..whole.events.len() {
            let mut cut = whole.clone();
            cut.events.truncate(keep);
            let read = read(&write(&conversation(vec![cut]), 0), 1_000).unwrap();
            let message = read.turns[0].message();
            assert!(message.status.is_some(), "cut after {keep}");
            assert!(
                message.calls().all(|call| call.status.is_some_and(|status| status.is_final())),
                "cut after {keep}"
            );
            read.rows("ada", 7).unwrap_or_else(|error| panic!("cut after {keep}: {error}"));
        }
    }

    #[test]
    fn id_map_replaces_every_old_turn_id() {
        let before = conversation(vec![recorded("v1-tools")]);
        let old = before.turns[0].id.clone();
        let mut n = 0;
        let renaming = IdMap::new(&before, |prefix| {
            n += 1;
            format!("{prefix}new{n}")
        });
        let after = renaming.apply(before.clone()).unwrap();
        assert_eq!(after.id, "conv_new1");
        assert_eq!(after.leaf_id, Some(after.turns[0].id.clone()));
        let text = write(&after, 0);
        for left in [format!("\"{old}\""), format!("\"{old}.")] {
            assert!(!text.contains(&left), "{left}: {text}");
        }
        let shape = |portable: &PortableConversation| {
            let message = AssistantMessage::from_events(&portable.turns[0].parsed_events());
            (
                message.text(),
                message.calls().map(|call| call.output.clone()).collect::<Vec<_>>(),
                message.stats.is_some(),
            )
        };
        assert_eq!(shape(&after), shape(&before));
        // The rows agree with the log.
        let rows = after.rows("ada", 7).unwrap();
        assert_eq!(rows.turns.len(), 1);
        assert_eq!(rows.calls.len(), shape(&before).1.len());
        assert!(rows.calls.iter().all(|call| call.tool_id.starts_with("turn_new")));
    }

    #[test]
    fn errors_name_their_line() {
        let header = r#"{"type":"conversation","format":"throughline.conversation","v":1,"id":"c"}"#;
        let turn = r#"{"type":"turn","id":"t"}"#;
        let start = r#"{"type":"event","event":{"turn_id":"t","seq":1,"timestamp":1,"type":"stream_start","v":1,"message_id":"m","agent":"a","mode":"auto","input":[]}}"#;
        let end = r#"{"type":"event","event":{"turn_id":"t","seq":2,"timestamp":1,"type":"stream_end","status":"completed"}}"#;
        let good = [header, turn, start, end].join("\n");
        assert_eq!(read(&good, 100).unwrap().turns.len(), 1);
        // Blank lines, CR LF, and what a later release adds.
        let later = r#"{"type":"hologram","x":1}"#;
        assert_eq!(
            read(&format!("\n{header}\r\n\r\n{later}\n{turn}\n{start}\n{end}\n"), 100).unwrap(),
            read(&good, 100).unwrap()
        );
        let table: &[(&[&str], usize, &str)] = &[
            (&[], 1, "nothing in it"),
            (&["[]"], 1, "cannot be read"),
            (&[turn], 1, "does not begin with its header"),
            (&[r#"{"type":"conversation","format":"other","v":1,"id":"c"}"#], 1, "`other`"),
            (
                &[r#"{"type":"conversation","format":"throughline.conversation","v":2,"id":"c"}"#],
                1,
                "version 2",
            ),
            (&[header, header], 2, "second conversation"),
            (&[header, start], 2, "without a turn"),
            (&[header, "{\"type\":"], 2, "column 8"),
            (&[header, turn, turn], 3, "already"),
            (
                &[header, r#"{"type":"turn","id":"b","parent":{"turn_id":"zz","seq":null}}"#],
                2,
                "`zz` is not in front",
            ),
            (&[header, turn], 2, "no events"),
            (&[header, turn, end], 3, "1 would be next"),
            (&[header, turn, start, start], 4, "2 would be next"),
            (&[header, turn, &start.replace("\"t\"", "\"u\"")], 3, "an event of `u`"),
            (
                &[header, turn, start, end, &end.replace("\"seq\":2", "\"seq\":3")],
                5,
                "after the `stream_end`",
            ),
            (&[header, turn, &end.replace("\"seq\":2", "\"seq\":1")], 3, "`stream_start` is the first"),
            (&[header, turn, r#"{"type":"event","event":{"seq":1}}"#], 3, "no event"),
            (&[header, turn, r#"{"type":"event","event":{"seq":1e999}}"#], 3, "(column 36)"),
            (&[header, r#"{"type":"turn"}"#], 2, "missing field `id` (column 15)"),
            (&[&header.replace("}", ",\"leaf_id\":\"x\"}"), turn, start, end], 1, "`leaf_id` is `x`"),
        ];
        for (lines, line, says) in table {
            let error = read(&lines.join("\n"), 100).expect_err(says);
            assert_eq!((error.line, error.message.contains(says)), (*line, true), "{says}: {error}");
        }
    }

    #[test]
    fn value_trees_are_limited_before_parsing() {
        let many = |count: usize| json!({"x": vec![1; count]});
        let mut turn = recorded("v1-tools");
        // As if all events up to this one were lines of a file.
        let units = |turn: &PortableTurn, to: usize| {
            let (text, mut units) = (write(&conversation(vec![turn.clone()]), 0), TurnUnits::default());
            text.lines().skip(2).take(to + 1).map(|line| units.with(TreeUnits::of(line))).max().unwrap()
        };
        let at = turn.events.iter().position(|event| event.as_str().contains("\"tool_input\"")).unwrap();
        let mut event: Value = turn.events[at].parse().unwrap();
        event["arguments"] = many(150);
        turn.events[at] = EventJson::of(&event).unwrap();
        let (needed, at_call) = (units(&turn, usize::MAX - 1), units(&turn, at));
        let text = write(&conversation(vec![turn]), 0);
        assert!(read(&text, needed).is_ok());
        let error = read(&text, at_call - 1).unwrap_err();
        assert_eq!(error.line, at + 3);
        assert!(error.help.unwrap().contains("large_bodies_memory_bytes_max"), "{}", error.message);
        // Unknown fields count as well, since they are parsed.
        let header = text.lines().next().unwrap();
        let unknown: String = (0..1_000).map(|number| format!(r#","x{number}":1"#)).collect();
        for (number, line) in (1..).zip(text.lines().take(3)) {
            let wide = line.replacen('}', &format!("{unknown}}}"), 1);
            let wide = text.replacen(line, &wide, 1);
            let refused = read(&wide, needed).map(|_| ()).map_err(|error| error.line);
            // Unknown fields of a turn are skipped without being stored.
            assert_eq!(refused, if number == 2 { Ok(()) } else { Err(number) }, "{line}");
        }
        let later = format!("{header}\n{{\"type\":\"hologram\",\"x\":[{}1]}}\n", "1,".repeat(1_000));
        assert!(read(&text.replacen(&format!("{header}\n"), &later, 1), needed).is_ok(), "nor of a record");

        let call = |arguments: String| {
            json!({"role": "assistant", "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}]})
        };
        let of_values = |values: usize| call(many(values).to_string());
        let result = json!({"role": "tool", "tool_call_id": "c", "content": "ok"});
        let user = |parts: usize| json!({"role": "user", "content": vec![json!({"type": "text", "text": ""}); parts]});
        let list = |messages: &[Value]| messages.iter().map(Value::to_string).collect::<Vec<_>>().join(",\n");
        let of = |messages: &[Value]| {
            let read = read_messages(&format!("[{}]", list(messages)), 1_000, 200);
            read.map(|read| read.turns.len()).map_err(|error| (error.line, error.message.contains("memory")))
        };
        // One call, and two of a turn; the next turn has its own.
        let one = of_values(100);
        assert_eq!(of(&[user(1), one.clone(), result.clone(), user(1), one.clone()]), Ok(2));
        assert_eq!(of(&[user(1), one.clone(), result, one]), Err((4, true)));
        assert_eq!(of(&[user(1), of_values(300)]), Err((2, true)));
        assert_eq!(of(&[user(1), call("[".repeat(60) + &"]".repeat(60))]), Err((2, true)));
        assert_eq!(of(&[user(40)]), Err((1, true)));
        // Each message is something as well.
        assert_eq!(of(&vec![json!({"role": "assistant"}); 60]), Err((51, true)));
    }

    #[test]
    fn import_limits_nesting_so_that_stored_rows_parse() {
        let nested = |depth: usize| (1..depth).fold(json!({}), |inner, _| json!({"a": inner}));
        // Rows nest values 7 levels deeper than a line, and those of a turn that continues after it 2 more.
        let check = |read: Result<PortableConversation, LineError>, is_taken: bool| match read {
            Ok(read) => {
                assert!(is_taken);
                let rows = read.rows("ada", 7).unwrap();
                let later = format!("[[{}]]", rows.turns[0].end.as_ref().unwrap().history_json);
                assert!(serde_json::from_str::<Value>(&later).is_ok());
            }
            Err(error) => assert!(!is_taken && error.message.contains("deeper than"), "{error}"),
        };
        for (depth, is_taken) in [(116, true), (117, false)] {
            let mut turn = recorded("v1-tools");
            let at = turn.events.iter().position(|event| event.as_str().contains("\"tool_input\"")).unwrap();
            let mut event: Value = turn.events[at].parse().unwrap();
            event["arguments"] = nested(depth);
            turn.events[at] = EventJson::of(&event).unwrap();
            check(read(&write(&conversation(vec![turn]), 0), 10_000), is_taken);
        }
        for (depth, is_taken) in [(ARGUMENTS_DEPTH_MAX, true), (ARGUMENTS_DEPTH_MAX + 1, false)] {
            let arguments = nested(depth).to_string();
            let call =
                json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}});
            let list =
                json!([{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [call]}]);
            check(read_messages(&list.to_string(), 1_000, 10_000), is_taken);
        }
    }

    #[test]
    fn events_per_turn_and_per_message_list_are_limited() {
        // Two events each, and two for the turn. What a list becomes can be exported and imported again.
        let turn =
            |answers: usize| r#"{"role":"user"},"#.to_owned() + &r#"{"role":"assistant"},"#.repeat(answers);
        let of = |turns: &[usize]| {
            let list: String = turns.iter().map(|answers| turn(*answers)).collect();
            let text = format!("[{}]", list.trim_end_matches(','));
            read_messages(&text, 1_000, u64::MAX).map(|read| read.turns.len()).map_err(|error| error.message)
        };
        assert_eq!(of(&[99_999]), Ok(1));
        assert!(of(&[100_000]).unwrap_err().contains("more than 200000 events"));
        assert!(of(&[84_000; 3]).unwrap_err().contains("more than 500000 events"));
        // Calls that are open where a log breaks off are closed with additional events.
        let mut broken = recorded("v1-tools");
        let at = broken.events.iter().position(|event| event.as_str().contains("\"tool_use\"")).unwrap();
        broken.events.truncate(at + 1);
        let mut call: Value = broken.events[at].parse().unwrap();
        for number in at + 1..60_000 {
            call["seq"] = json!(number + 1);
            call["tool_id"] = json!(format!("{}.{number}", broken.id));
            broken.events.push(EventJson::of(&call).unwrap());
        }
        let error = read(&write(&conversation(vec![broken]), 0), u64::MAX).unwrap_err();
        assert!(error.message.contains("more than 200000 events"), "{error}");
    }

    #[test]
    fn openai_messages_become_turns_that_round_trip() {
        let text = json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather in Paris?"},
            {"role": "assistant", "content": "Let me look.", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Paris\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "16 °C"},
            {"role": "assistant", "content": "16 °C."},
            {"role": "user", "content": [
                {"type": "text", "text": "And this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ]},
            {"role": "assistant", "content": "A picture."},
        ]);
        let read = read_messages(&text.to_string(), 1_000, 100).unwrap();
        assert_eq!(read.turns.len(), 2);
        assert_eq!(read.turns[1].parent, Some(TurnParent::after_turn(read.turns[0].id.clone())));
        let message = read.turns[0].message();
        assert_eq!(message.text(), "Let me look.\n\n16 °C.");
        let call = message.calls().next().unwrap();
        assert_eq!(
            (call.arguments.clone().unwrap(), call.output.as_str()),
            (json!({"city": "Paris"}), "16 °C")
        );
        assert_eq!(read.turns[1].message().input.len(), 2);
        // The history of the next model call equals the list.
        let rows = read.rows("ada", 2_000).unwrap();
        let adds: Value = serde_json::from_str(&rows.turns[0].end.as_ref().unwrap().history_json).unwrap();
        assert_eq!(adds[0]["user"][0]["text"], "Weather in Paris?");
        assert_eq!(adds[1]["step"]["text"], "Let me look.");
        assert_eq!(adds[1]["step"]["calls"][0][1]["done"]["text"], "16 °C");
        assert_eq!(adds[2]["step"]["text"], "16 °C.");
        // It goes out and comes in again like one of ours.
        assert_eq!(super::read(&write(&read, 0), 100).unwrap().turns, read.turns);
    }
}
