//! Sources of a past turn's events.

use crate::args::ReplayArgs;
use crate::exit::CliFailure;
use crate::messages;
use crate::serve::read_only_store::ReadOnlyStore;
use std::io::{self, Read};
use std::path::Path;
use throughline_engine::Event;

/// Number of turns listed when the given id is not found.
const LATEST_SHOWN: u32 = 5;

/// The events, in order.
pub(crate) async fn events(args: &ReplayArgs) -> Result<Vec<Event>, CliFailure> {
    let events = match args.from.as_deref() {
        Some(path) if path == Path::new("-") => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map_err(|error| messages::input_failed(&error))?;
            parse(&text)?
        }
        Some(path) => {
            parse(&std::fs::read_to_string(path).map_err(|error| messages::unreadable_file(path, &error))?)?
        }
        None => stored_events(args).await?,
    };
    if events.is_empty() { Err(messages::replay_nothing()) } else { Ok(events) }
}

async fn stored_events(args: &ReplayArgs) -> Result<Vec<Event>, CliFailure> {
    let (store, turn) = find_turn(args).await?;
    logged_events(&store, &turn).await
}

/// The store, which a server may be writing, and the turn in it that is meant: without a name the latest one.
pub(crate) async fn find_turn(args: &ReplayArgs) -> Result<(ReadOnlyStore, String), CliFailure> {
    let store = ReadOnlyStore::open(args.store.as_deref()).await?;
    let turn = match &args.turn {
        Some(turn) => turn.clone(),
        None => match store.latest(1).await.map_err(store.failed())?.into_iter().next() {
            Some(latest) => latest.id,
            None => return Err(messages::store_empty(store.location())),
        },
    };
    Ok((store, turn))
}

/// The events of a turn of the store.
pub(crate) async fn logged_events(store: &ReadOnlyStore, turn: &str) -> Result<Vec<Event>, CliFailure> {
    let failed = store.failed();
    let Some(records) = store.records(turn).await.map_err(failed)? else {
        let latest = store.latest(LATEST_SHOWN).await.map_err(failed)?;
        let latest: Vec<String> = latest.into_iter().map(|turn| turn.id).collect();
        return Err(messages::no_such_turn(turn, store.location(), &latest));
    };
    let mut events = Vec::with_capacity(records.len());
    for record in records {
        let event = serde_json::from_slice(&record.payload);
        events.push(event.map_err(|error| messages::replay_no_event(record.seq, &error))?);
    }
    Ok(events)
}

/// JSON lines, as `--events` and the server's streams have them. Of several turns the last one is meant.
fn parse(text: &str) -> Result<Vec<Event>, CliFailure> {
    let mut events: Vec<Event> = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let event: Event =
            serde_json::from_str(line).map_err(|error| messages::replay_no_event(at as u64 + 1, &error))?;
        if events.last().is_some_and(|last| last.turn_id != event.turn_id) {
            events.clear();
        }
        events.push(event);
    }
    Ok(events)
}
