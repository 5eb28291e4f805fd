//! Where the events of a past turn come from.

use crate::args::Replay;
use crate::exit::Failure;
use crate::messages;
use std::io::{self, Read};
use std::path::Path;
use throughline_engine::Event;

/// The events, in order.
pub fn events(args: &Replay) -> Result<Vec<Event>, Failure> {
    let text = match args.from.as_deref() {
        Some(path) if path == Path::new("-") => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map_err(|error| messages::input_failed(&error))?;
            text
        }
        Some(path) => std::fs::read_to_string(path).map_err(|error| messages::unreadable_file(path, &error))?,
        None => return Err(messages::replay_of_what()),
    };
    let events = parse(&text)?;
    match events.is_empty() {
        true => Err(messages::replay_nothing()),
        false => Ok(events),
    }
}

/// JSON lines, as `--events` and the server's streams have them. Of several turns the last one is meant.
fn parse(text: &str) -> Result<Vec<Event>, Failure> {
    let mut events: Vec<Event> = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let event: Event =
            serde_json::from_str(line).map_err(|error| messages::replay_no_event(at + 1, &error))?;
        if events.last().is_some_and(|last| last.turn_id != event.turn_id) {
            events.clear();
        }
        events.push(event);
    }
    Ok(events)
}
