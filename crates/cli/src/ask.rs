//! `throughline ask`: one turn.

use crate::args::AskArgs;
use crate::chat::turn_commands::AlwaysAnswers;
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::line_prompts::{LinePrompter, typed_lines};
use crate::messages::{self, UiLanguage, UiText};
use crate::picture::PictureFile;
use crate::plain::{PlainOutput, PlainRenderer, for_terminal};
use crate::setup::AppContext;
use std::io::{self, IsTerminal, Read, Write};
use throughline::engine::fold::AssistantMessage;
use throughline::{ApprovalMode, Event, EventKind, TurnStatus, UserInput};
use tokio::sync::mpsc;

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputFormat {
    Text,
    Message,
    Events,
}

/// Presence of somebody who can answer questions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PersonPresence {
    AtTheTerminal,
    Nobody,
}

/// Asks and prints.
pub(crate) async fn run(args: &AskArgs) -> CommandResult {
    let words = UiText(UiLanguage::of_environment());
    let input = input(args)?;
    let person = if io::stdin().is_terminal() && io::stderr().is_terminal() {
        PersonPresence::AtTheTerminal
    } else {
        PersonPresence::Nobody
    };
    let approval = match (args.approve, person) {
        (true, _) => ApprovalMode::AllowAll,
        (false, PersonPresence::AtTheTerminal) => ApprovalMode::Ask,
        (false, PersonPresence::Nobody) => ApprovalMode::DenyAll { reason: words.not_asked().to_owned() },
    };
    let format = match (args.json, args.events) {
        (true, _) => OutputFormat::Message,
        (_, true) => OutputFormat::Events,
        _ => OutputFormat::Text,
    };
    let mut stop_signals = crate::interrupt::stop_signals().map_err(|error| messages::no_signals(&error))?;
    let context = AppContext::open(&args.choice, approval).await?;
    let mut turn = context.app.ask(input).await.map_err(|error| messages::setup(&error))?;
    crate::setup::print_faults(&context.app.source_faults());
    crate::setup::print_unmatched_rules(&context.app);
    let mut prompter = LinePrompter::new(turn.control(), context.app.clone(), words);
    let mut answers = None;
    let mut printer = EventPrinter {
        format,
        plain: PlainRenderer::new(words),
        message: AssistantMessage::default(),
        output_error: None,
    };
    let mut status = TurnStatus::Interrupted;
    let mut remembered = AlwaysAnswers::default();
    let mut cancelled = false;
    loop {
        tokio::select! {
            event = turn.next() => {
                let Some(event) = event else { break };
                if let EventKind::StreamEnd { status: ended } = event.kind {
                    status = ended;
                }
                remembered.apply(&event);
                printer.take(&event);
                prompter.take(&event).await;
                if prompter.is_open() && answers.is_none() {
                    answers = Some(typed_lines().map_err(|error| messages::no_runtime(&error))?);
                }
                // Nobody reads any more: what the turn still does is in vain.
                if printer.output_error.is_some() && !std::mem::replace(&mut cancelled, true) {
                    let _ = turn.cancel().await;
                }
            }
            stop_requested = stop_signals.recv() => {
                if stop_requested.is_none() || std::mem::replace(&mut cancelled, true) {
                    // Dropping the turn stops what still runs.
                    return Ok(CliExit::Cancelled);
                }
                eprintln!("\n{} · {}", words.stopping(), words.leave_hint());
                let _ = turn.cancel().await;
            }
            answer = next_line(&mut answers), if prompter.is_open() => prompter.take_line(&answer).await,
        }
    }
    if let Some(fault) = remembered.fault(&context.app) {
        eprintln!("{}", messages::not_remembered(&fault));
    }
    match printer.finish() {
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(CliExit::Done),
        Some(error) => Err(messages::output_failed(&error)),
        None => Ok(CliExit::of(status)),
    }
}

/// The prompt with `-` replaced by standard input, and pictures.
fn input(args: &AskArgs) -> Result<UserInput, CliFailure> {
    let mut text = String::new();
    // Words follow each other as in a sentence; what comes from standard input stands by itself.
    let mut gap = "";
    for part in &args.prompt {
        if part == "-" {
            let mut read = String::new();
            io::stdin().read_to_string(&mut read).map_err(|error| messages::input_failed(&error))?;
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(read.trim_end());
            gap = "\n\n";
        } else {
            text.push_str(gap);
            text.push_str(part);
            gap = " ";
        }
    }
    if text.trim().is_empty() {
        return Err(messages::nothing_asked());
    }
    let mut input = UserInput::from(text);
    for path in &args.image {
        input = PictureFile::load(path)?.attach(input);
    }
    Ok(input)
}

/// Prints events in one of three forms; an output that fails is remembered, not retried.
struct EventPrinter {
    format: OutputFormat,
    plain: PlainRenderer,
    message: AssistantMessage,
    output_error: Option<io::Error>,
}

impl EventPrinter {
    fn take(&mut self, event: &Event) {
        if self.output_error.is_some() {
            return;
        }
        self.output_error = match self.format {
            OutputFormat::Text => self.text(event),
            OutputFormat::Message => {
                self.message.absorb(event);
                Ok(())
            }
            OutputFormat::Events => print_json_line(event),
        }
        .err();
    }

    fn text(&mut self, event: &Event) -> io::Result<()> {
        let terminal = io::stdout().is_terminal();
        for piece in self.plain.apply(event) {
            match piece {
                PlainOutput::Text(text) => {
                    let mut out = io::stdout().lock();
                    let text = if terminal { for_terminal(&text) } else { text };
                    out.write_all(text.as_bytes())?;
                    out.flush()?;
                }
                PlainOutput::Note(note) => {
                    // On one screen with the text a note has a line of its own.
                    if terminal && self.plain.is_mid_line() {
                        println!();
                    }
                    if io::stderr().is_terminal() {
                        eprintln!("\x1b[2m{note}\x1b[0m")
                    } else {
                        eprintln!("{note}")
                    }
                    if terminal {
                        self.plain.mark_note_printed();
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Option<io::Error> {
        if self.format == OutputFormat::Message && self.output_error.is_none() {
            self.output_error = print_json_line(&self.message).err();
        }
        self.output_error
    }
}

fn print_json_line(value: &impl serde::Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// The next line typed. An input that has ended answers nothing more: the question expires as denied.
async fn next_line(lines: &mut Option<mpsc::Receiver<String>>) -> String {
    if let Some(lines) = lines
        && let Some(line) = lines.recv().await
    {
        return line;
    }
    std::future::pending().await
}
