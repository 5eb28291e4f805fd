//! Invariants, judged by what viewers saw and by the ledger alone.

use crate::chaos_context::Turn;
use crate::ledger::Ledger;
use crate::model::{Again, LAST_WORDS, TOOLS};
use crate::viewer::Saw;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// A violated guarantee.
#[derive(Debug)]
pub enum Broken {
    /// An event was lost, doubled, changed or out of order at a viewer.
    Events(String),
    /// A tool ran twice, or its outcome was reported wrongly.
    Effects(String),
    /// A turn did not end.
    Turn(String),
    /// The history of calls differs from the log.
    History(String),
    /// The model received a request that no upstream accepts.
    Model(String),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events(what) => write!(f, "events: {what}"),
            Self::Effects(what) => write!(f, "effects: {what}"),
            Self::Turn(what) => write!(f, "turn: {what}"),
            Self::History(what) => write!(f, "history: {what}"),
            Self::Model(what) => write!(f, "model: {what}"),
        }
    }
}

/// Summary of a run.
#[derive(Debug, Default)]
pub struct Told {
    pub turns: u32,
    pub events: usize,
    pub connections: u32,
    pub effects: u32,
    pub takeovers: usize,
    pub unknown: u32,
    /// Calls called `unknown` whose effect had happened.
    pub unknown_happened: u32,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} turns, {} events at viewers over {} connections, {} takeovers, {} effects, {} calls `unknown` \
             ({} of them had happened); 0 lost, doubled or out of order, 0 writes twice",
            self.turns,
            self.events,
            self.connections,
            self.takeovers,
            self.effects,
            self.unknown,
            self.unknown_happened
        )
    }
}

/// The field of a delta that grows; `None` = the event is no delta.
fn delta_field(event: &Value) -> Option<&'static str> {
    match event["type"].as_str()? {
        "content_delta" | "thinking" => Some("text"),
        "tool_input_delta" => Some("delta"),
        _ => None,
    }
}

/// True if these are deltas of one block.
fn are_adjacent_deltas(one: &Value, next: &Value) -> bool {
    let same = |field| one[field] == next[field];
    delta_field(one).is_some() && ["type", "step", "block", "tool_id"].into_iter().all(same)
}

/// Events with the deltas of a block as one, however many there were: a log merges them when the turn is over, and so does a
/// server for a viewer that was slow.
fn merged(events: Vec<Value>) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for event in events {
        match merged.last_mut().filter(|last| are_adjacent_deltas(last, &event)) {
            Some(last) => {
                let field = delta_field(last).expect("a delta");
                last[field] = format!("{}{}", text(&last[field]), text(&event[field])).into();
                last["seq"] = event["seq"].clone();
                if let Some(newer) = event.get("input_summary") {
                    last["input_summary"] = newer.clone();
                }
            }
            None => merged.push(event),
        }
    }
    merged
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The first pair that differs, of viewers who may not have come equally far: in the last event that both have, one may have
/// more of its text.
fn difference<'a>(one: &'a [Value], other: &'a [Value]) -> Option<(&'a Value, &'a Value)> {
    let both = one.len().min(other.len());
    let goes_on = |one: &Value, other: &Value| {
        let Some(field) = delta_field(one) else { return false };
        let (one_text, other_text) = (text(&one[field]), text(&other[field]));
        are_adjacent_deltas(one, other)
            && (one_text.starts_with(other_text) || other_text.starts_with(one_text))
    };
    let differs = |(at, (one, other)): &(usize, (&Value, &Value))| {
        one != other && !(at + 1 == both && goes_on(one, other))
    };
    one.iter().zip(other).enumerate().find(differs).map(|(_, pair)| pair)
}

/// Checks a turn that may still run.
pub fn so_far(turn: &Turn, ledger: &Ledger) -> Result<(), Broken> {
    let mut seen = Vec::new();
    for (by, saw) in &turn.viewers {
        let saw = saw.lock().unwrap().clone();
        let who = format!("{} over {by:?}", turn.name);
        if let Some(strange) = &saw.strange {
            return Err(Broken::Events(format!("{who}: {strange}")));
        }
        let mut due = 1;
        for event in &saw.events {
            let seq = event["seq"].as_u64().unwrap_or(0);
            // A delta may replace those before it. Comparing it with other viewers shows that it has their
            // text.
            if seq < due || seq > due && delta_field(event).is_none() {
                return Err(Broken::Events(format!("{who}: {seq} where {due} was due")));
            }
            due = seq + 1;
        }
        seen.push(merged(saw.events));
    }
    // A late client finds its position in the log again, at any event, and gets no resync.
    if let Some(logged) = &turn.logged {
        if let Some(strange) = &logged.strange {
            return Err(Broken::Events(format!("{} when it is over: {strange}", turn.name)));
        }
        let logged = merged(logged.events.clone());
        for ((by, _), seen) in turn.viewers.iter().zip(&seen) {
            let who = format!("{} over {by:?}", turn.name);
            if let Some((saw, has)) = seen.iter().zip(&logged).find(|(saw, has)| saw != has) {
                return Err(Broken::Events(format!("{who}: it saw {saw} and the log has {has}")));
            }
            if seen.len() != logged.len() {
                let (saw, has) = (seen.len(), logged.len());
                return Err(Broken::Events(format!("{who}: it saw {saw} events and the log has {has}")));
            }
        }
    }
    if let Some((one, other)) = difference(&seen[0], &seen[1]) {
        return Err(Broken::Events(format!("{}: two viewers saw {one} and {other}", turn.name)));
    }
    for (tool, _, again) in TOOLS {
        for number in 1..=2 {
            let key = format!("{}-{tool}-{number}", turn.name);
            if again == Again::MustNot && ledger.count(&key) > 1 {
                return Err(Broken::Effects(format!("{key} was done {} times", ledger.count(&key))));
            }
        }
    }
    Ok(())
}

/// Each call of a turn with its outcome, as its viewers saw it.
pub fn ended_calls(turn: &Turn) -> BTreeSet<(String, String)> {
    let saw = turn.viewers[0].1.lock().unwrap();
    let ended = saw.events.iter().filter(|event| event["type"] == "tool_result");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ended.map(|event| (text(&event["tool_id"]), text(&event["status"]))).collect()
}

/// Checks a turn that has been seen to its end.
pub fn whole(turn: &Turn, ledger: &Ledger, told: &mut Told) -> Result<(), Broken> {
    so_far(turn, ledger)?;
    let saws: Vec<Saw> = turn.viewers.iter().map(|(_, saw)| saw.lock().unwrap().clone()).collect();
    let name = &turn.name;
    for saw in &saws {
        let ends = saw.events.iter().filter(|event| event["type"] == "stream_end").count();
        if ends != 1 || !saw.has_ended() {
            return Err(Broken::Turn(format!("{name} has {ends} ends among {} events", saw.events.len())));
        }
        told.events += saw.events.len();
        told.connections += saw.connections;
    }
    let events = &saws[0].events;
    let status = &events[events.len() - 1]["status"];
    let text: String = events.iter().filter_map(|event| event["text"].as_str()).collect();
    if status != "completed" || !text.contains(LAST_WORDS) {
        return Err(Broken::Turn(format!("{name} ended as {status} with: {text}")));
    }
    told.turns += 1;
    told.takeovers += events.iter().filter(|event| event["type"] == "turn_resumed").count();
    calls(name, events, ledger, told)
}

/// Each call has one outcome, and that is the truth.
fn calls(name: &str, events: &[Value], ledger: &Ledger, told: &mut Told) -> Result<(), Broken> {
    let mut keys: HashMap<&str, &str> = HashMap::new();
    let mut ends: HashMap<&str, &str> = HashMap::new();
    let mut done: HashMap<&str, u32> = HashMap::new();
    let mut steps: HashMap<&str, &Value> = HashMap::new();
    // Calls of a reply that died with the server are requested again; the old ones need not run.
    let taken_back: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "block_superseded")
        .map(|event| &event["step"])
        .collect();
    for event in events {
        let Some(call) = event["tool_id"].as_str() else { continue };
        match event["type"].as_str().unwrap_or_default() {
            "tool_use" => {
                steps.insert(call, &event["step"]);
            }
            "tool_input" => {
                if let Some(key) = event["arguments"]["key"].as_str() {
                    keys.insert(call, key);
                }
            }
            "tool_result" => {
                let status = event["status"].as_str().unwrap_or_default();
                if ends.insert(call, status).is_some() {
                    return Err(Broken::Effects(format!("{name}: {call} ended twice")));
                }
            }
            _ => {}
        }
    }
    let opened = events.iter().filter(|event| event["type"] == "tool_use").count();
    if opened != ends.len() {
        return Err(Broken::Effects(format!("{name}: {opened} calls, {} ends", ends.len())));
    }
    for (call, status) in &ends {
        let Some(key) = keys.get(call) else { continue };
        let must_not = TOOLS.iter().any(|(tool, _, again)| *again == Again::MustNot && key.contains(tool));
        let happened = ledger.count(key);
        match *status {
            "success" => *done.entry(key).or_default() += 1,
            "unknown" => {
                told.unknown += 1;
                told.unknown_happened += happened.min(1);
            }
            // The reply that requested it died with the server: the next one requests it again.
            "not_started" => continue,
            other => return Err(Broken::Effects(format!("{name}: {key} ended as {other}"))),
        }
        if *status == "success" && happened == 0 {
            return Err(Broken::Effects(format!("{name}: {key} succeeded and was never done")));
        }
        let is_taken_back = steps.get(call).is_some_and(|step| taken_back.contains(step));
        if *status == "unknown" && !must_not && !is_taken_back {
            let story: Vec<String> = events
                .iter()
                .filter(|event| !matches!(event["type"].as_str(), Some("content_delta" | "tool_input_delta")))
                .map(|event| {
                    format!("{} {} {} {}", event["seq"], event["type"], event["block"], event["status"])
                })
                .collect();
            let what = format!("{key} could have run again, and is unknown:\n{}", story.join("\n"));
            return Err(Broken::Effects(what));
        }
    }
    // Every effect is reported: as done, or as unknown.
    for (tool, _, _) in TOOLS.iter().filter(|(_, _, again)| *again == Again::MustNot) {
        for number in 1..=2 {
            let key = format!("{name}-{tool}-{number}");
            let said = keys.iter().filter(|(_, of)| **of == key).any(|(call, _)| {
                ends.get(call).is_some_and(|status| matches!(*status, "success" | "unknown"))
            });
            if ledger.count(&key) > 0 && !said {
                return Err(Broken::Effects(format!("{key} was done, and nobody was told")));
            }
        }
    }
    Ok(())
}

#[test]
fn merged_deltas_compare_equal_to_single_deltas() {
    let delta = |seq: u64, text: &str| json!({ "type": "content_delta", "step": 1, "block": 0, "seq": seq, "text": text });
    let end = json!({ "type": "block_end", "step": 1, "block": 0, "seq": 4 });
    let each = merged(vec![delta(1, "a"), delta(2, "b"), delta(3, "c"), end.clone()]);
    let joined = merged(vec![delta(3, "abc"), end.clone()]);
    assert_eq!(difference(&each, &joined), None);
    assert_eq!(
        difference(&each, &merged(vec![delta(1, "a"), delta(2, "b")])),
        None,
        "it has not come as far"
    );
    let lost = merged(vec![delta(1, "a"), delta(3, "c"), end]);
    assert_eq!(difference(&each, &lost), Some((&each[0], &lost[0])));
}
