//! Invariants, judged by what viewers saw and by the ledger alone.

use crate::chaos_context::Turn;
use crate::ledger::Ledger;
use crate::model::{Again, LAST_WORDS, TOOLS};
use crate::viewer::Saw;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// A promise that was not kept.
#[derive(Debug)]
pub enum Broken {
    /// An event was lost, doubled, changed or out of order at a viewer.
    Events(String),
    /// A tool ran twice, or its end was told wrongly.
    Effects(String),
    /// A turn did not come to its end.
    Turn(String),
    /// The history of calls does not say what the log says.
    History(String),
    /// The model was asked for something that no upstream takes.
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

/// Events that a log which merges deltas leaves as they are.
fn lasting(events: &[Value]) -> impl Iterator<Item = &Value> {
    let is_delta = |event: &&Value| {
        let event_type = event["type"].as_str().unwrap_or_default();
        event_type.ends_with("_delta") || matches!(event_type, "thinking" | "tool_progress")
    };
    events.iter().filter(move |event| !is_delta(event))
}

/// Checks a turn that may still run.
pub fn so_far(turn: &Turn, ledger: &Ledger) -> Result<(), Broken> {
    let saws: Vec<Saw> = turn.viewers.iter().map(|(_, saw)| saw.lock().unwrap().clone()).collect();
    for ((by, _), saw) in turn.viewers.iter().zip(&saws) {
        let who = format!("{} over {by:?}", turn.name);
        if let Some(strange) = &saw.strange {
            return Err(Broken::Events(format!("{who}: {strange}")));
        }
        for (at, event) in saw.events.iter().enumerate() {
            if event["seq"] != at as u64 + 1 {
                return Err(Broken::Events(format!("{who}: {} where {} was due", event["seq"], at + 1)));
            }
        }
    }
    // Who comes back late finds its number in the log again, of whatever event, and is told nothing.
    if let Some(logged) = &turn.logged {
        if let Some(strange) = &logged.strange {
            return Err(Broken::Events(format!("{} when it is over: {strange}", turn.name)));
        }
        for ((by, _), saw) in turn.viewers.iter().zip(&saws) {
            let (mut seen, mut now) = (lasting(&saw.events), lasting(&logged.events));
            loop {
                let pair = (seen.next(), now.next());
                if pair == (None, None) {
                    break;
                }
                if pair.0 != pair.1 {
                    let what =
                        format!("{} over {by:?}: what it saw and what the log has: {pair:?}", turn.name);
                    return Err(Broken::Events(what));
                }
            }
        }
    }
    let both = saws[0].events.iter().zip(&saws[1].events);
    if let Some((one, other)) = both.into_iter().find(|(one, other)| one != other) {
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

/// Each call of a turn with how it ended, as its viewers saw it.
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
    if saws[1].events.len() != events.len() {
        return Err(Broken::Events(format!("{name}: one viewer saw more than the other")));
    }
    let status = &events[events.len() - 1]["status"];
    let text: String = events.iter().filter_map(|event| event["text"].as_str()).collect();
    if status != "completed" || !text.contains(LAST_WORDS) {
        return Err(Broken::Turn(format!("{name} ended as {status} with: {text}")));
    }
    told.turns += 1;
    told.takeovers += events.iter().filter(|event| event["type"] == "turn_resumed").count();
    calls(name, events, ledger, told)
}

/// Each call has one end, and that end says what happened.
fn calls(name: &str, events: &[Value], ledger: &Ledger, told: &mut Told) -> Result<(), Broken> {
    let mut keys: HashMap<&str, &str> = HashMap::new();
    let mut ends: HashMap<&str, &str> = HashMap::new();
    let mut done: HashMap<&str, u32> = HashMap::new();
    let mut steps: HashMap<&str, &Value> = HashMap::new();
    // Calls of a reply that died with the server are asked for anew; nobody needs to run them again.
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
            // The reply that asked for it died with the server: the next one asks anew.
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
    // Whatever was done is told: as done, or as not known.
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
