//! `throughline ask`: one turn.

mod prompt;
mod schema;

use crate::args::AskArgs;
use crate::chat::turn_commands::AlwaysAnswers;
use crate::conversation::{ConversationSession, OngoingTurn, TurnText};
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::line_prompts::{LinePrompter, typed_lines};
use crate::messages::{self, UiLanguage, UiText};
use crate::output::{errln, outln};
use crate::plain::{PlainOutput, PlainRenderer, for_terminal};
use std::io::{self, IsTerminal, Write};
use throughline::engine::fold::AssistantMessage;
use throughline::{AnswerSchema, ApprovalMode, Event, EventKind, TurnStatus};
use tokio::sync::mpsc;

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputFormat {
    Text,
    Message,
    Events,
    /// The answer as JSON, once it is there and checked.
    Value,
}

/// True if a person can answer questions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PersonPresence {
    AtTheTerminal,
    Nobody,
}

/// Runs a turn and prints it.
pub(crate) async fn run(args: &AskArgs) -> CommandResult {
    let words = UiText(UiLanguage::current());
    let input = prompt::read(args)?;
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
    let schema = args.schema.as_deref().map(schema::read).transpose()?;
    let format = match (args.json, args.events, &schema) {
        (true, ..) => OutputFormat::Message,
        (_, true, _) => OutputFormat::Events,
        (.., Some(_)) => OutputFormat::Value,
        _ => OutputFormat::Text,
    };
    let mut stop_signals = crate::interrupt::stop_signals().map_err(|error| messages::no_signals(&error))?;
    let mut talk = ConversationSession::open(&args.choice, approval, &args.keep).await?;
    let form = schema.as_ref().map(AnswerSchema::instructions);
    let instructions: Vec<String> = args.system.iter().cloned().chain(form).collect();
    talk.instructions = Some(instructions.join("\n\n")).filter(|text| !text.is_empty());
    let mut asking = Asking { format, is_quiet: args.quiet, words, stop_signals: &mut stop_signals };
    let outcome = asking.run(&mut talk, args, input, schema.as_ref()).await;
    talk.close().await;
    outcome
}

/// Display of turns, and the signals that stop them.
struct Asking<'a> {
    format: OutputFormat,
    is_quiet: bool,
    words: UiText,
    stop_signals: &'a mut mpsc::Receiver<()>,
}

impl Asking<'_> {
    async fn run(
        &mut self,
        talk: &mut ConversationSession,
        args: &AskArgs,
        input: TurnText,
        schema: Option<&AnswerSchema>,
    ) -> CommandResult {
        if args.keep.continues || args.keep.resume.is_some() {
            let past = talk.resume(args.keep.resume.as_deref()).await?;
            // What was cut off comes to its end first.
            if let Some(past) = past.filter(|past| past.is_running) {
                let (ended, _) = self.follow(talk, past.turn).await?;
                if ended == CliExit::Cancelled || input.text.is_empty() {
                    return Ok(ended);
                }
            }
        }
        if input.text.trim().is_empty() {
            return Err(messages::nothing_asked());
        }
        let turn = talk.send(input).await?;
        if let Some(app) = talk.app() {
            crate::setup::print_faults(&app.source_faults());
            crate::setup::print_unmatched_rules(app);
        }
        let (exit, message) = self.follow(talk, turn).await?;
        match schema {
            Some(schema) if exit == CliExit::Done => self.print_value(talk, schema, &message).await,
            _ => Ok(exit),
        }
    }

    /// Prints the answer as JSON. One that does not fit is sent back once.
    async fn print_value(
        &mut self,
        talk: &mut ConversationSession,
        schema: &AnswerSchema,
        message: &AssistantMessage,
    ) -> CommandResult {
        let value = match schema::value_in(schema, message) {
            Ok(value) => value,
            Err(why) => {
                if !self.is_quiet {
                    errln!("{}", for_terminal(&messages::answer_is_repaired(&why)));
                }
                let text = AnswerSchema::correction(&why);
                let turn = talk.send(TurnText { text, pictures: Vec::new() }).await?;
                let (exit, message) = self.follow(talk, turn).await?;
                if exit != CliExit::Done {
                    return Ok(exit);
                }
                let again = schema::value_in(schema, &message);
                again.map_err(|why| messages::answer_does_not_fit(&crate::plain::one_line(&why)))?
            }
        };
        crate::output::json_line(&value).map_err(|error| messages::output_failed(&error))?;
        Ok(CliExit::Done)
    }

    /// Prints a turn to its end.
    async fn follow(
        &mut self,
        talk: &ConversationSession,
        mut turn: OngoingTurn,
    ) -> Result<(CliExit, AssistantMessage), CliFailure> {
        let mut prompter = LinePrompter::new(turn.control(), talk.app().cloned(), self.words);
        let mut answers = None;
        let mut printer = EventPrinter {
            format: self.format,
            is_quiet: self.is_quiet,
            plain: PlainRenderer::new(self.words),
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
                    if let EventKind::StreamEnd { status: ended, .. } = event.kind {
                        status = ended;
                    }
                    remembered.apply(&event);
                    printer.take(&event);
                    prompter.take(&event).await;
                    if prompter.is_open() && answers.is_none() {
                        answers = Some(typed_lines().map_err(|error| messages::no_runtime(&error))?);
                    }
                    // The output is closed, so the rest of the turn is not needed.
                    if printer.output_error.is_some() && !std::mem::replace(&mut cancelled, true) {
                        turn.cancel().await;
                    }
                }
                stop_requested = self.stop_signals.recv() => {
                    if stop_requested.is_none() || std::mem::replace(&mut cancelled, true) {
                        // What still runs ends with this process.
                        return Ok((CliExit::Cancelled, printer.message));
                    }
                    errln!("\n{} · {}", self.words.stopping(), self.words.leave_hint());
                    turn.cancel().await;
                }
                answer = next_line(&mut answers), if prompter.is_open() => prompter.take_line(&answer).await,
            }
        }
        if let Some(failure) = turn.lost() {
            return Err(failure.into());
        }
        if let Some(fault) = remembered.fault(talk.app()) {
            errln!("{}", messages::not_remembered(&fault));
        }
        let (message, error) = printer.finish();
        match error {
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok((CliExit::Done, message)),
            Some(error) => Err(messages::output_failed(&error)),
            None => Ok((CliExit::of(status), message)),
        }
    }
}

/// Prints events in one of three forms; an output that fails is remembered, not retried.
struct EventPrinter {
    format: OutputFormat,
    is_quiet: bool,
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
                self.message.apply(event);
                Ok(())
            }
            OutputFormat::Value => {
                self.message.apply(event);
                self.text(event)
            }
            OutputFormat::Events => print_json_line(&event.clone().for_viewers()),
        }
        .err();
    }

    fn text(&mut self, event: &Event) -> io::Result<()> {
        let terminal = io::stdout().is_terminal() && self.format == OutputFormat::Text;
        for piece in self.plain.apply(event) {
            match piece {
                PlainOutput::Text(_) if self.format == OutputFormat::Value => {}
                PlainOutput::Text(text) => {
                    let mut out = io::stdout().lock();
                    let text = if terminal { for_terminal(&text) } else { text };
                    out.write_all(text.as_bytes())?;
                    out.flush()?;
                }
                PlainOutput::Note(_) if self.is_quiet => {}
                PlainOutput::Note(note) | PlainOutput::Fault(note) => {
                    // On a terminal shared with the text a note gets a separate line.
                    if terminal && self.plain.is_mid_line() {
                        outln!();
                    }
                    if io::stderr().is_terminal() {
                        errln!("\x1b[2m{note}\x1b[0m")
                    } else {
                        errln!("{note}")
                    }
                    if terminal {
                        self.plain.mark_note_printed();
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(mut self) -> (AssistantMessage, Option<io::Error>) {
        if self.format == OutputFormat::Message && self.output_error.is_none() {
            self.output_error = print_json_line(&self.message).err();
        }
        (self.message, self.output_error)
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
