//! `throughline replay`: every screen of a past turn again, drawn by the chat's own renderer from the turn's log.

mod decode_raw;
mod player;
mod screen;
mod source;

use crate::args::ReplayArgs;
use crate::exit::{CliExit, CommandResult};
use crate::messages::{self, UiLanguage, UiText};
use crate::output;
use crate::plain::{PlainOutput, PlainRenderer, for_terminal};
use crate::terminal::session::{OutputStyle, output_style};
use player::{ReplayPlayer, ReplaySpeed};
use std::io::{self, Write};
use throughline_engine::Event;
use throughline_engine::fold::AssistantMessage;

/// Shows the turn in the requested form.
pub(crate) async fn run(args: &ReplayArgs) -> CommandResult {
    let words = UiText(UiLanguage::current());
    let speed = args.speed.as_deref().map(ReplaySpeed::parse).transpose()?;
    if args.decode_raw {
        return decode_raw::run(args, words).await;
    }
    let events = source::events(args).await?;
    if let Some(seq) = args.at {
        return print_at(&events, seq, args.json, words);
    }
    if args.events {
        for event in &events {
            output::json_line(&event.clone().for_viewers())
                .map_err(|error| messages::output_failed(&error))?;
        }
        return Ok(CliExit::Done);
    }
    match (output_style(), args.plain) {
        (OutputStyle::Rich, false) if args.step => screen::step_through(events, words).await,
        (OutputStyle::Rich, false) => {
            screen::play(ReplayPlayer::new(events, speed.unwrap_or_default()), words).await
        }
        (OutputStyle::Plain, _) | (_, true) if args.step => Err(messages::replay_steps_need_a_terminal()),
        // A pipe gets the whole turn immediately, unless a speed is given.
        _ => play_plain(ReplayPlayer::new(events, speed.unwrap_or(ReplaySpeed::Unlimited)), words).await,
    }
}

/// The message as it was after one event.
fn print_at(events: &[Event], seq: u64, json: bool, words: UiText) -> CommandResult {
    let events_until = events.iter().take_while(|event| event.seq.0 <= seq);
    let last = events.last().map_or(0, |event| event.seq.0);
    if seq == 0 || seq > last {
        return Err(messages::replay_no_such_event(seq, last));
    }
    if json {
        output::json_line(&AssistantMessage::from_events(events_until))
            .map_err(|error| messages::output_failed(&error))?;
        return Ok(CliExit::Done);
    }
    output::text(&screen::lines_at(events_until, words)).map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

/// Plays the turn as text from top to bottom.
async fn play_plain(mut player: ReplayPlayer, words: UiText) -> CommandResult {
    let mut stop_signals = crate::interrupt::stop_signals().map_err(|error| messages::no_signals(&error))?;
    let mut plain = PlainRenderer::new(words);
    while let Some(wait) = player.wait() {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = stop_signals.recv() => return Ok(CliExit::Cancelled),
        }
        let Some(event) = player.next() else { break };
        match print_outputs(plain.apply(event)) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(CliExit::Done),
            printed => printed.map_err(|error| messages::output_failed(&error))?,
        }
    }
    Ok(CliExit::Done)
}

fn print_outputs(pieces: Vec<PlainOutput>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for piece in pieces {
        match piece {
            PlainOutput::Text(text) => out.write_all(for_terminal(&text).as_bytes())?,
            PlainOutput::Note(note) | PlainOutput::Fault(note) => writeln!(out, "{note}")?,
        }
    }
    out.flush()
}
