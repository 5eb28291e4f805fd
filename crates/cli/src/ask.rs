//! `throughline ask`: one turn.

use crate::args::Ask;
use crate::asking::{Asking, typed_lines};
use crate::chat::answering::Always;
use crate::exit::{Ended, Exit, Failure};
use crate::messages::{self, Lang, Words};
use crate::picture::Picture;
use crate::plain::{Piece, Plain, for_terminal};
use crate::setup::World;
use std::io::{self, IsTerminal, Read, Write};
use throughline::engine::fold::Message;
use throughline::{Approval, Event, EventKind, TurnStatus, UserInput};
use tokio::sync::mpsc;

/// How the turn is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Message,
    Events,
}

/// Who can answer a question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Person {
    AtTheTerminal,
    Nobody,
}

/// Asks and prints.
pub async fn run(args: &Ask) -> Ended {
    let words = Words(Lang::of_environment());
    let input = input(args)?;
    let person = match io::stdin().is_terminal() && io::stderr().is_terminal() {
        true => Person::AtTheTerminal,
        false => Person::Nobody,
    };
    let approval = match (args.approve, person) {
        (true, _) => Approval::AllowAll,
        (false, Person::AtTheTerminal) => Approval::Ask,
        (false, Person::Nobody) => Approval::DenyAll { reason: words.not_asked().to_owned() },
    };
    let form = match (args.json, args.events) {
        (true, _) => Form::Message,
        (_, true) => Form::Events,
        _ => Form::Text,
    };
    let mut wishes = crate::interrupt::wishes().map_err(|error| messages::no_signals(&error))?;
    let world = World::open(&args.choice, approval).await?;
    let mut turn = world.app.ask(input).await.map_err(|error| messages::setup(&error))?;
    crate::setup::print_faults(&world.app.faults());
    crate::setup::print_unmatched_rules(&world.app);
    let mut asking = Asking::new(turn.control(), world.app.clone(), words);
    let mut answers = None;
    let mut printer = Printer { form, plain: Plain::new(words), message: Message::default(), broken: None };
    let mut status = TurnStatus::Interrupted;
    let mut always = Always::default();
    let mut cancelled = false;
    loop {
        tokio::select! {
            event = turn.next() => {
                let Some(event) = event else { break };
                if let EventKind::StreamEnd { status: ended } = event.kind {
                    status = ended;
                }
                always.apply(&event);
                printer.take(&event);
                asking.take(&event).await;
                if asking.is_open() && answers.is_none() {
                    answers = Some(typed_lines().map_err(|error| messages::no_runtime(&error))?);
                }
                // Nobody reads any more: what the turn still does is in vain.
                if printer.broken.is_some() && !std::mem::replace(&mut cancelled, true) {
                    let _ = turn.cancel().await;
                }
            }
            wish = wishes.recv() => {
                if wish.is_none() || std::mem::replace(&mut cancelled, true) {
                    // Dropping the turn stops what still runs.
                    return Ok(Exit::Cancelled);
                }
                eprintln!("\n{} · {}", words.stopping(), words.leave_hint());
                let _ = turn.cancel().await;
            }
            answer = next_line(&mut answers), if asking.is_open() => asking.give(&answer).await,
        }
    }
    if let Some(fault) = always.fault(&world.app) {
        eprintln!("{}", messages::not_remembered(&fault));
    }
    match printer.finish() {
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        Some(error) => Err(messages::output_failed(&error)),
        None => Ok(Exit::of(status)),
    }
}

/// The prompt with `-` replaced by standard input, and pictures.
fn input(args: &Ask) -> Result<UserInput, Failure> {
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
        input = Picture::load(path)?.attach(input);
    }
    Ok(input)
}

/// Prints events in one of three forms; an output that fails is remembered, not retried.
struct Printer {
    form: Form,
    plain: Plain,
    message: Message,
    broken: Option<io::Error>,
}

impl Printer {
    fn take(&mut self, event: &Event) {
        if self.broken.is_some() {
            return;
        }
        self.broken = match self.form {
            Form::Text => self.text(event),
            Form::Message => {
                self.message.absorb(event);
                Ok(())
            }
            Form::Events => line(event),
        }
        .err();
    }

    fn text(&mut self, event: &Event) -> io::Result<()> {
        let terminal = io::stdout().is_terminal();
        for piece in self.plain.apply(event) {
            match piece {
                Piece::Text(text) => {
                    let mut out = io::stdout().lock();
                    let text = if terminal { for_terminal(&text) } else { text };
                    out.write_all(text.as_bytes())?;
                    out.flush()?;
                }
                Piece::Note(note) => {
                    // On one screen with the text a note has a line of its own.
                    if terminal && self.plain.is_mid_line() {
                        println!();
                    }
                    match io::stderr().is_terminal() {
                        true => eprintln!("\x1b[2m{note}\x1b[0m"),
                        false => eprintln!("{note}"),
                    }
                    if terminal {
                        self.plain.note_shown();
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Option<io::Error> {
        if self.form == Form::Message && self.broken.is_none() {
            self.broken = line(&self.message).err();
        }
        self.broken
    }
}

fn line(value: &impl serde::Serialize) -> io::Result<()> {
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
