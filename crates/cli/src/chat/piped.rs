//! The chat without a terminal: a message a line in, plain text out.

use super::commands::{self, CommandEffect};
use super::slash_command;
use super::{ChatSession, greeting, turn_commands};
use crate::conversation::{OngoingTurn, PastTurn};
use crate::exit::{CliExit, CommandResult};
use crate::line_prompts::{LinePrompter, typed_lines};
use crate::messages::{self, UiText};
use crate::output::{errln, out, outln};
use crate::plain::{PlainOutput, PlainRenderer, for_terminal};
use std::io::{self, IsTerminal, Write};
use throughline::{EventKind, TurnStatus};
use tokio::sync::mpsc;

/// Width of the narrowest usual terminal: a pipe has no width.
const GREETING_COLUMNS_MAX: usize = 80;
/// Lists may be wider: they are read by programs, too.
const LIST_COLUMNS: usize = 160;

/// Answers line by line until the input ends. The exit code is that of the last turn.
pub(super) async fn run(
    session: &mut ChatSession,
    resumed: Option<PastTurn>,
    words: UiText,
) -> CommandResult {
    let mut stop_signals = crate::interrupt::stop_signals().map_err(|error| messages::no_signals(&error))?;
    let mut lines = typed_lines().map_err(|error| messages::no_runtime(&error))?;
    let person = io::stdin().is_terminal();
    if person {
        for line in greeting::lines(&session.talk, words, GREETING_COLUMNS_MAX) {
            outln!("{}", line.plain());
        }
    }
    let mut last = CliExit::Done;
    // A program gets what is new, and no old answers.
    if let Some(PastTurn { message, turn, is_running }) = resumed.filter(|past| person || past.is_running) {
        if person {
            outln!("› {}\n", crate::plain::for_terminal(&message));
        }
        let questions = if is_running { PastQuestions::Open } else { PastQuestions::Answered };
        let followed = follow_turn(session, turn, questions, words, &mut lines, &mut stop_signals).await;
        match ended_exit(followed)? {
            TurnExit::Continue(exit) => last = exit,
            TurnExit::Leave(exit) => return Ok(exit),
        }
    }
    loop {
        if person {
            out!("\n› ");
            io::stdout().flush().map_err(|error| messages::output_failed(&error))?;
        }
        let line = tokio::select! {
            line = lines.recv() => line,
            _ = stop_signals.recv() => return Ok(CliExit::Cancelled),
        };
        let Some(line) = line else { return Ok(last) };
        let turn = match slash_command::parse(&line) {
            slash_command::SlashCommand::Message(message) if message.is_empty() => None,
            // Lines are read one after the other here: afterwards is now.
            slash_command::SlashCommand::Message(message)
            | slash_command::SlashCommand::After(Some(message)) => match session.send(&message).await {
                Ok(turn) => Some(turn),
                Err(failure) => {
                    last = failure.exit;
                    errln!("{failure}");
                    None
                }
            },
            slash_command::SlashCommand::Quit => return Ok(last),
            other => run_command(session, other, words).await,
        };
        let Some(turn) = turn else { continue };
        let followed =
            follow_turn(session, turn, PastQuestions::Open, words, &mut lines, &mut stop_signals).await;
        match ended_exit(followed)? {
            TurnExit::Continue(exit) => last = exit,
            TurnExit::Leave(exit) => return Ok(exit),
        }
    }
}

/// Questions of a turn that is followed from its first event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PastQuestions {
    /// Some may still be open.
    Open,
    /// The turn has ended: no question is open.
    Answered,
}

/// Continuation after a turn.
enum TurnExit {
    Continue(CliExit),
    Leave(CliExit),
}

/// A reader of the output that has left is no failure.
fn ended_exit(ended: io::Result<Option<TurnStatus>>) -> Result<TurnExit, crate::exit::CliFailure> {
    match ended {
        Ok(Some(status)) => Ok(TurnExit::Continue(CliExit::of(status))),
        Ok(None) => Ok(TurnExit::Leave(CliExit::Cancelled)),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(TurnExit::Leave(CliExit::Done)),
        Err(error) => Err(messages::output_failed(&error)),
    }
}

/// Prints a turn. `None` = the user wants to leave immediately.
async fn follow_turn(
    session: &mut ChatSession,
    mut turn: OngoingTurn,
    questions: PastQuestions,
    words: UiText,
    lines: &mut mpsc::Receiver<String>,
    stop_signals: &mut mpsc::Receiver<()>,
) -> io::Result<Option<TurnStatus>> {
    let mut plain = PlainRenderer::new(words);
    let mut prompter = LinePrompter::new(turn.control(), session.talk.app().cloned(), words);
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
                // The events tell whether the cancellation was in time.
                turn.cancel().await;
                continue;
            }
        };
        let Some(event) = event else {
            if let Some(failure) = turn.lost() {
                errln!("{}", crate::exit::CliFailure::from(failure));
            }
            if let Some(fault) = remembered.fault(session.talk.app()) {
                errln!("{}", messages::not_remembered(&fault));
            }
            return Ok(Some(status));
        };
        remembered.apply(&event);
        session.apply(&event);
        if let EventKind::StreamEnd { status: ended, .. } = event.kind {
            status = ended;
        }
        for output in plain.apply(&event) {
            print_output(&mut plain, output)?;
        }
        if questions == PastQuestions::Open {
            prompter.take(&event).await;
        }
    }
}

/// Text and notes share one stream here: a note gets a separate line.
fn print_output(plain: &mut PlainRenderer, output: PlainOutput) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match output {
        PlainOutput::Text(text) if io::stdout().is_terminal() => {
            out.write_all(for_terminal(&text).as_bytes())?
        }
        PlainOutput::Text(text) => out.write_all(text.as_bytes())?,
        PlainOutput::Note(note) | PlainOutput::Fault(note) => {
            if plain.is_mid_line() {
                out.write_all(b"\n")?;
            }
            writeln!(out, "[{note}]")?;
            plain.mark_note_printed();
        }
    }
    out.flush()
}

/// Executes a command. Returns the turn to follow, if it starts one.
async fn run_command(
    session: &mut ChatSession,
    command: slash_command::SlashCommand,
    words: UiText,
) -> Option<OngoingTurn> {
    match commands::run(session, command, words, LIST_COLUMNS).await {
        CommandEffect::Note(text) => outln!("  {text}"),
        CommandEffect::Lines(lines) => lines.iter().for_each(|line| outln!("{}", line.plain())),
        CommandEffect::Attached(path) => outln!("  {path}: {}", words.image_attached()),
        CommandEffect::Failed(failure) => errln!("{failure}"),
        CommandEffect::Terminal { sequence, note } => {
            if io::stdout().is_terminal() {
                out!("{sequence}");
            }
            outln!("  {note}");
        }
        CommandEffect::Turn { note, message, turn } => {
            if !note.is_empty() {
                outln!("  {note}");
            }
            outln!("› {}\n", crate::plain::for_terminal(&message));
            return Some(turn);
        }
    }
    None
}
