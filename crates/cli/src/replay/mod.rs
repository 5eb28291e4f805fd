//! `throughline replay`: every screen of a past turn again, drawn by the chat's own renderer from the turn's log. R: S5

mod decode_raw;
mod player;
mod screen;
mod source;

use crate::args::Replay;
use crate::exit::{Ended, Exit};
use crate::messages::{self, Lang, Words};
use crate::output;
use crate::plain::{Piece, Plain, for_terminal};
use crate::terminal::session::{Look, look};
use player::{Player, Speed};
use std::io::{self, Write};
use throughline_engine::Event;
use throughline_engine::fold::Message;

/// Shows the turn as it is asked for.
pub async fn run(args: &Replay) -> Ended {
    let words = Words(Lang::of_environment());
    let speed = args.speed.as_deref().map(Speed::parse).transpose()?;
    if args.decode_raw {
        return decode_raw::run(args, words).await;
    }
    let events = source::events(args).await?;
    if let Some(seq) = args.at {
        return at(&events, seq, args.json, words);
    }
    if args.events {
        for event in &events {
            output::json_line(event).map_err(|error| messages::output_failed(&error))?;
        }
        return Ok(Exit::Done);
    }
    match (look(), args.plain) {
        (Look::Rich, false) if args.step => screen::step(events, words).await,
        (Look::Rich, false) => screen::play(Player::new(events, speed.unwrap_or_default()), words).await,
        (Look::Plain, _) | (_, true) if args.step => Err(messages::replay_steps_need_a_terminal()),
        // Nobody watches a pipe: it is told at once, unless a pace is asked for.
        _ => plain(Player::new(events, speed.unwrap_or(Speed::AtOnce)), words).await,
    }
}

/// The message as it was after one event.
fn at(events: &[Event], seq: u64, json: bool, words: Words) -> Ended {
    let until = events.iter().take_while(|event| event.seq.0 <= seq);
    let last = events.last().map_or(0, |event| event.seq.0);
    if seq == 0 || seq > last {
        return Err(messages::replay_no_such_event(seq, last));
    }
    if json {
        output::json_line(&Message::of(until)).map_err(|error| messages::output_failed(&error))?;
        return Ok(Exit::Done);
    }
    output::text(&screen::lines_at(until, words)).map_err(|error| messages::output_failed(&error))?;
    Ok(Exit::Done)
}

/// As text from top to bottom.
async fn plain(mut player: Player, words: Words) -> Ended {
    let mut wishes = crate::interrupt::wishes().map_err(|error| messages::no_signals(&error))?;
    let mut plain = Plain::new(words);
    while let Some(wait) = player.wait() {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = wishes.recv() => return Ok(Exit::Cancelled),
        }
        let Some(event) = player.next() else { break };
        match print(plain.apply(event)) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::Done),
            printed => printed.map_err(|error| messages::output_failed(&error))?,
        }
    }
    Ok(Exit::Done)
}

fn print(pieces: Vec<Piece>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.write_all(for_terminal(&text).as_bytes())?,
            Piece::Note(note) => writeln!(out, "{note}")?,
        }
    }
    out.flush()
}
