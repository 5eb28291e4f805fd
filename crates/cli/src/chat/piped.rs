//! The chat without a terminal: a message a line in, plain text out.

use super::slash;
use super::{Talk, answering, greeting};
use crate::asking::{Asking, typed_lines};
use crate::exit::{Ended, Exit};
use crate::messages::{self, Words};
use crate::picture::Picture;
use crate::plain::{Piece, Plain, for_terminal};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use throughline::{EventKind, TurnStatus};
use tokio::sync::mpsc;

/// As wide as the narrowest usual terminal: nobody can be asked for the width.
const GREETING_COLUMNS: usize = 80;
/// Lists may be wider: they are read by programs, too.
const LIST_COLUMNS: usize = 160;

/// Answers line by line until the input ends. The exit code is that of the last turn.
pub async fn run(mut talk: Talk, words: Words) -> Ended {
    let mut wishes = crate::interrupt::wishes().map_err(|error| messages::no_signals(&error))?;
    let mut lines = typed_lines().map_err(|error| messages::no_runtime(&error))?;
    let person = io::stdin().is_terminal();
    if person {
        for line in greeting::lines(&talk.world, words, GREETING_COLUMNS) {
            println!("{}", line.plain());
        }
    }
    let mut last = Exit::Done;
    loop {
        if person {
            print!("\n› ");
            io::stdout().flush().map_err(|error| messages::output_failed(&error))?;
        }
        let line = tokio::select! {
            line = lines.recv() => line,
            _ = wishes.recv() => return Ok(Exit::Cancelled),
        };
        let Some(line) = line else { return Ok(last) };
        match slash::parse(&line) {
            slash::Line::Message(message) if message.is_empty() => {}
            // Lines are read one after the other here: afterwards is now.
            slash::Line::Message(message) | slash::Line::After(Some(message)) => {
                match turn(&mut talk, &message, words, &mut lines, &mut wishes).await {
                    Ok(Some(status)) => last = Exit::of(status),
                    Ok(None) => return Ok(Exit::Cancelled),
                    Err(Stopped::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                        return Ok(Exit::Done);
                    }
                    Err(Stopped::Output(error)) => return Err(messages::output_failed(&error)),
                    Err(Stopped::Failure(failure)) => {
                        last = failure.exit;
                        eprintln!("{failure}");
                    }
                }
            }
            slash::Line::Quit => return Ok(last),
            other => command(&mut talk, other, words).await,
        }
    }
}

/// Why a turn was not read to its end.
enum Stopped {
    Output(io::Error),
    Failure(crate::exit::Failure),
}

/// One message. `None` = somebody wants to leave at once.
async fn turn(
    talk: &mut Talk,
    message: &str,
    words: Words,
    lines: &mut mpsc::Receiver<String>,
    wishes: &mut mpsc::Receiver<()>,
) -> Result<Option<TurnStatus>, Stopped> {
    let mut turn = talk.say(message).await.map_err(Stopped::Failure)?;
    let mut plain = Plain::new(words);
    let mut asking = Asking::new(turn.control(), talk.world.app.clone(), words);
    let mut status = TurnStatus::Interrupted;
    let mut always = answering::Always::default();
    let mut cancelled = false;
    loop {
        let event = tokio::select! {
            event = turn.next() => event,
            answer = lines.recv(), if asking.is_open() => {
                match answer {
                    Some(line) => asking.give(&line).await,
                    None => asking.leave().await,
                }
                continue;
            }
            _ = wishes.recv() => {
                if std::mem::replace(&mut cancelled, true) {
                    return Ok(None);
                }
                // Whether it was in time is told by its events.
                let _ = turn.cancel().await;
                continue;
            }
        };
        let Some(event) = event else {
            if let Some(fault) = always.fault(&talk.world.app) {
                eprintln!("{}", messages::not_remembered(&fault));
            }
            return Ok(Some(status));
        };
        always.apply(&event);
        if let EventKind::StreamEnd { status: ended } = event.kind {
            status = ended;
        }
        for piece in plain.apply(&event) {
            print_piece(&mut plain, piece).map_err(Stopped::Output)?;
        }
        asking.take(&event).await;
    }
}

/// Text and notes share one stream here: a note has a line of its own.
fn print_piece(plain: &mut Plain, piece: Piece) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match piece {
        Piece::Text(text) if io::stdout().is_terminal() => out.write_all(for_terminal(&text).as_bytes())?,
        Piece::Text(text) => out.write_all(text.as_bytes())?,
        Piece::Note(note) => {
            if plain.is_mid_line() {
                out.write_all(b"\n")?;
            }
            writeln!(out, "[{note}]")?;
            plain.note_shown();
        }
    }
    out.flush()
}

async fn command(talk: &mut Talk, line: slash::Line, words: Words) {
    let choice = talk.choice.clone();
    let changed = match line {
        slash::Line::Help => {
            for line in super::listing::commands(words) {
                println!("{}", line.plain());
            }
            return;
        }
        slash::Line::Tools => {
            let offered = talk.offered();
            if offered.is_empty() {
                return println!("  {}", words.no_tools());
            }
            for line in super::listing::tools(&offered, words, LIST_COLUMNS) {
                println!("{}", line.plain());
            }
            return;
        }
        slash::Line::Sources => {
            for line in super::listing::sources(&talk.world, words, LIST_COLUMNS) {
                println!("{}", line.plain());
            }
            return;
        }
        slash::Line::Image(Some(path)) => match Picture::load(Path::new(&path)) {
            Ok(picture) => {
                talk.pictures.push(picture);
                println!("  {path}: {}", words.image_attached());
                return;
            }
            Err(failure) => Err(failure),
        },
        slash::Line::Model(Some(model)) => {
            talk.change(crate::args::Choice { model: Some(model), ..choice }).await
        }
        slash::Line::Mode(Some(mode)) => talk.change_mode(&mode),
        slash::Line::Model(None) | slash::Line::Mode(None) => Ok(()),
        slash::Line::Image(None) => return println!("  {}", words.image_usage()),
        _ => return println!("  {}", words.unknown_command()),
    };
    match changed {
        Ok(()) => {
            println!("  {} {} · {} {}", words.model_is(), talk.world.model, words.mode_is(), talk.world.mode);
        }
        Err(failure) => eprintln!("{failure}"),
    }
}
