//! The chat without a terminal: a message a line in, plain text out.

use super::slash_command;
use super::{ChatSession, greeting, turn_commands};
use crate::exit::{CliExit, CommandResult};
use crate::line_prompts::{LinePrompter, typed_lines};
use crate::messages::{self, UiText};
use crate::picture::PictureFile;
use crate::plain::{PlainOutput, PlainRenderer, for_terminal};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use throughline::{EventKind, TurnStatus};
use tokio::sync::mpsc;

/// As wide as the narrowest usual terminal: nobody can be asked for the width.
const GREETING_COLUMNS_MAX: usize = 80;
/// Lists may be wider: they are read by programs, too.
const LIST_COLUMNS: usize = 160;

/// Answers line by line until the input ends. The exit code is that of the last turn.
pub(crate) async fn run(mut session: ChatSession, words: UiText) -> CommandResult {
    let mut stop_signals = crate::interrupt::stop_signals().map_err(|error| messages::no_signals(&error))?;
    let mut lines = typed_lines().map_err(|error| messages::no_runtime(&error))?;
    let person = io::stdin().is_terminal();
    if person {
        for line in greeting::lines(&session.context, words, GREETING_COLUMNS_MAX) {
            println!("{}", line.plain());
        }
    }
    let mut last = CliExit::Done;
    loop {
        if person {
            print!("\n› ");
            io::stdout().flush().map_err(|error| messages::output_failed(&error))?;
        }
        let line = tokio::select! {
            line = lines.recv() => line,
            _ = stop_signals.recv() => return Ok(CliExit::Cancelled),
        };
        let Some(line) = line else { return Ok(last) };
        match slash_command::parse(&line) {
            slash_command::SlashCommand::Message(message) if message.is_empty() => {}
            // Lines are read one after the other here: afterwards is now.
            slash_command::SlashCommand::Message(message)
            | slash_command::SlashCommand::After(Some(message)) => {
                match run_turn(&mut session, &message, words, &mut lines, &mut stop_signals).await {
                    Ok(Some(status)) => last = CliExit::of(status),
                    Ok(None) => return Ok(CliExit::Cancelled),
                    Err(TurnAborted::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                        return Ok(CliExit::Done);
                    }
                    Err(TurnAborted::Output(error)) => return Err(messages::output_failed(&error)),
                    Err(TurnAborted::Failure(failure)) => {
                        last = failure.exit;
                        eprintln!("{failure}");
                    }
                }
            }
            slash_command::SlashCommand::Quit => return Ok(last),
            other => run_command(&mut session, other, words).await,
        }
    }
}

/// Why a turn was not read to its end.
enum TurnAborted {
    Output(io::Error),
    Failure(crate::exit::CliFailure),
}

/// One message. `None` = somebody wants to leave at once.
async fn run_turn(
    session: &mut ChatSession,
    message: &str,
    words: UiText,
    lines: &mut mpsc::Receiver<String>,
    stop_signals: &mut mpsc::Receiver<()>,
) -> Result<Option<TurnStatus>, TurnAborted> {
    let mut turn = session.send(message).await.map_err(TurnAborted::Failure)?;
    let mut plain = PlainRenderer::new(words);
    let mut prompter = LinePrompter::new(turn.control(), session.context.app.clone(), words);
    let mut status = TurnStatus::Interrupted;
    let mut remembered = turn_commands::AlwaysAnswers::default();
    let mut cancelled = false;
    loop {
        let event = tokio::select! {
            event = turn.next() => event,
            answer = lines.recv(), if prompter.is_open() => {
                match answer {
                    Some(line) => prompter.take_line(&line).await,
                    None => prompter.close_input().await,
                }
                continue;
            }
            _ = stop_signals.recv() => {
                if std::mem::replace(&mut cancelled, true) {
                    return Ok(None);
                }
                // Whether it was in time is told by its events.
                let _ = turn.cancel().await;
                continue;
            }
        };
        let Some(event) = event else {
            if let Some(fault) = remembered.fault(&session.context.app) {
                eprintln!("{}", messages::not_remembered(&fault));
            }
            return Ok(Some(status));
        };
        remembered.apply(&event);
        if let EventKind::StreamEnd { status: ended } = event.kind {
            status = ended;
        }
        for output in plain.apply(&event) {
            print_output(&mut plain, output).map_err(TurnAborted::Output)?;
        }
        prompter.take(&event).await;
    }
}

/// Text and notes share one stream here: a note has a line of its own.
fn print_output(plain: &mut PlainRenderer, output: PlainOutput) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match output {
        PlainOutput::Text(text) if io::stdout().is_terminal() => {
            out.write_all(for_terminal(&text).as_bytes())?
        }
        PlainOutput::Text(text) => out.write_all(text.as_bytes())?,
        PlainOutput::Note(note) => {
            if plain.is_mid_line() {
                out.write_all(b"\n")?;
            }
            writeln!(out, "[{note}]")?;
            plain.mark_note_printed();
        }
    }
    out.flush()
}

async fn run_command(session: &mut ChatSession, line: slash_command::SlashCommand, words: UiText) {
    let choice = session.model_args.clone();
    let changed = match line {
        slash_command::SlashCommand::Help => {
            for line in super::listing::command_lines(words) {
                println!("{}", line.plain());
            }
            return;
        }
        slash_command::SlashCommand::Tools => {
            let offered = session.offered_tools();
            if offered.is_empty() {
                return println!("  {}", words.no_tools());
            }
            for line in super::listing::tool_lines(&offered, words, LIST_COLUMNS) {
                println!("{}", line.plain());
            }
            return;
        }
        slash_command::SlashCommand::Sources => {
            for line in super::listing::source_lines(&session.context, words, LIST_COLUMNS) {
                println!("{}", line.plain());
            }
            return;
        }
        slash_command::SlashCommand::Image(Some(path)) => match PictureFile::load(Path::new(&path)) {
            Ok(picture) => {
                session.pictures.push(picture);
                println!("  {path}: {}", words.image_attached());
                return;
            }
            Err(failure) => Err(failure),
        },
        slash_command::SlashCommand::Model(Some(model)) => {
            session.switch_model(crate::args::ModelArgs { model: Some(model), ..choice }).await
        }
        slash_command::SlashCommand::Mode(Some(mode)) => session.set_mode(&mode),
        slash_command::SlashCommand::Model(None) | slash_command::SlashCommand::Mode(None) => Ok(()),
        slash_command::SlashCommand::Image(None) => return println!("  {}", words.image_usage()),
        _ => return println!("  {}", words.unknown_command()),
    };
    match changed {
        Ok(()) => {
            println!(
                "  {} {} · {} {}",
                words.model_is(),
                session.context.model,
                words.mode_is(),
                session.context.mode
            );
        }
        Err(failure) => eprintln!("{failure}"),
    }
}
