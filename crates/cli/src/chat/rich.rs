//! The chat on a real terminal: keys in, frames out, a turn in between.

use super::answering;
use super::dialog::Reply;
use super::screen::{Screen, Wish};
use super::slash;
use super::transcript::Reasoning;
use super::{Talk, greeting};
use crate::exit::{Ended, Exit, Failure};
use crate::messages::{self, Words};
use crate::picture::Picture;
use crate::terminal::painter::Painter;
use crate::terminal::session::{self, Keys, RawTerminal};
use crate::terminal::text::{Ink, Line, Style};
use crossterm::event::Event as Input;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use throughline::{Event, Turn};
use tokio::time::MissedTickBehavior;

/// Time between two frames while something moves: about 30 a second. R: T2
const FRAME: Duration = Duration::from_millis(33);

/// Talks until the person leaves.
pub async fn run(mut talk: Talk, words: Words) -> Ended {
    let (columns, rows) = crossterm::terminal::size().map_err(|error| messages::terminal_failed(&error))?;
    let mut wishes = crate::interrupt::wishes().map_err(|error| messages::no_signals(&error))?;
    let raw = RawTerminal::enter().map_err(|error| messages::terminal_failed(&error))?;
    let mut keys = Keys::listen().map_err(|error| messages::no_runtime(&error))?;
    let mut ui = Ui {
        screen: Screen::new(words, &greeting::examples(&talk.world, words)),
        painter: Painter::new(columns, rows),
        words,
    };
    let lines = greeting::lines(&talk.world, words, ui.painter.columns());
    ui.screen.print(lines);
    ui.screen.steering = talk.world.steering();

    let mut turn: Option<Turn> = None;
    let mut always = answering::Always::default();
    let mut frames = tokio::time::interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut painted_at: Option<Instant> = None;
    let left = loop {
        if painted_at.is_none_or(|at| at.elapsed() >= FRAME) {
            ui.paint().map_err(|error| messages::terminal_failed(&error))?;
            painted_at = Some(Instant::now());
        }
        tokio::select! {
            key = keys.next() => {
                // What a key does is seen at once.
                painted_at = None;
                let Some(key) = key else { break Exit::Done };
                match ui.input(key) {
                    Wish::Nothing => {}
                    Wish::Leave => break if turn.is_some() { Exit::Cancelled } else { Exit::Done },
                    Wish::Line(line) => turn = ui.line(line, &mut talk, turn).await,
                    Wish::Answer(reply) => if let Some(turn) = &turn {
                        let tool = ui.screen.question().map(|question| question.tool.clone());
                        let checked = answering::check(&talk.world.app, tool.as_deref().unwrap_or(""), &reply);
                        let answered = match checked {
                            Ok(()) => answering::answer(&turn.control(), reply).await,
                            Err(why) => Err(why),
                        };
                        if let Err(why) = answered {
                            ui.screen.refuse_answer(why);
                        }
                    },
                    Wish::EditOutside(text) => ui.edit_outside(&text, &keys).await,
                    Wish::Say(queued) => if let Some(turn) = &turn {
                        answering::say(&turn.control(), queued).await;
                    },
                    Wish::TakeBack(id) => if let Some(turn) = &turn {
                        answering::take_back(&turn.control(), id).await;
                    },
                    Wish::Stop => if let Some(turn) = &turn {
                        // Whether it was in time is told by its events.
                        let _ = turn.cancel().await;
                    },
                }
            }
            event = next(&mut turn) => match event {
                Some(event) => {
                    ui.screen.apply(&event);
                    always.apply(&event);
                    if ui.screen.allowed_beforehand() && let Some(turn) = &turn {
                        let _ = answering::answer(&turn.control(), Reply::ApproveAll).await;
                    }
                }
                None => {
                    painted_at = None;
                    let next = ui.screen.end(now(), ui.painter.columns());
                    if let Some(fault) = always.fault(&talk.world.app) {
                        ui.failed(&messages::not_remembered(&fault));
                    }
                    turn = match next {
                        Some(next) => ui.line(slash::Line::Message(next), &mut talk, None).await,
                        None => None,
                    };
                }
            },
            _ = frames.tick(), if turn.is_some() || painted_at.is_some_and(|at| at.elapsed() < FRAME) => {}
            _ = wishes.recv() => break Exit::Cancelled,
        }
    };
    // Dropping a running turn stops it.
    drop(turn);
    let last = ui.screen.farewell(now(), ui.painter.columns());
    let farewell = ui.painter.frame(last, Vec::new(), None) + &ui.painter.clear();
    drop(raw);
    // The terminal may be gone, which is why we leave.
    let _ = session::write(&farewell);
    Ok(left)
}

/// The next event of a running turn; never, if none runs.
async fn next(turn: &mut Option<Turn>) -> Option<Event> {
    match turn {
        Some(turn) => turn.next().await,
        None => std::future::pending().await,
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

struct Ui {
    screen: Screen,
    painter: Painter,
    words: Words,
}

impl Ui {
    fn paint(&mut self) -> io::Result<()> {
        let frame = self.screen.frame(now(), self.painter.columns(), self.painter.rows());
        session::write(&self.painter.frame(frame.settled, frame.live, frame.cursor))
    }

    /// Lends the terminal to the person's own program.
    async fn edit_outside(&mut self, text: &str, keys: &Keys) {
        let words = self.words;
        let Some(program) = crate::external_editor::program() else {
            return self.screen.edited_outside(Err(words.no_editor().to_owned()));
        };
        let text = text.to_owned();
        let clear = self.painter.clear();
        let edited = keys.lend(move || crate::external_editor::edit(&program, &text), &clear).await;
        self.screen.edited_outside(edited.map_err(|error| error.to_string()));
    }

    fn input(&mut self, input: Input) -> Wish {
        match input {
            Input::Key(key) => self.screen.key(key),
            Input::Paste(text) => {
                self.screen.paste(&text);
                Wish::Nothing
            }
            Input::Resize(columns, rows) => {
                self.painter.resize(columns, rows);
                Wish::Nothing
            }
            _ => Wish::Nothing,
        }
    }

    /// Does what a line says. Gives the turn that runs afterwards.
    async fn line(&mut self, line: slash::Line, talk: &mut Talk, running: Option<Turn>) -> Option<Turn> {
        let words = self.words;
        match line {
            slash::Line::Message(message) => {
                self.screen.begin(&message, self.painter.columns(), now());
                match talk.say(&message).await {
                    Ok(turn) => {
                        // What was written for a step that never came waits for one of this turn.
                        for queued in self.screen.waiting_for_step() {
                            answering::say(&turn.control(), queued).await;
                        }
                        return Some(turn);
                    }
                    Err(failure) => {
                        self.screen.end(now(), self.painter.columns());
                        self.failed(&failure);
                    }
                }
            }
            slash::Line::Help => {
                self.note(super::listing::commands(words));
            }
            slash::Line::Tools => self.tools(talk),
            slash::Line::Sources => self.sources(talk),
            slash::Line::After(_) => self.say(words.after_usage()),
            slash::Line::Thinking => {
                let full = self.screen.reasoning == Reasoning::Folded;
                self.screen.reasoning = if full { Reasoning::Full } else { Reasoning::Folded };
                self.say(if full { words.thinking_shown() } else { words.thinking_folded() });
            }
            slash::Line::Image(path) => {
                match path.as_deref().map(|path| (path, Picture::load(Path::new(path)))) {
                    None => self.say(words.image_usage()),
                    Some((_, Err(failure))) => self.failed(&failure),
                    Some((path, Ok(picture))) => {
                        talk.pictures.push(picture);
                        self.screen.attached.push(path.to_owned());
                    }
                }
            }
            slash::Line::Model(None) => {
                self.say(&format!("{} {} · {}", words.model_is(), talk.world.model, words.model_usage()));
            }
            slash::Line::Mode(None) => {
                self.say(&format!("{} {} · {}", words.mode_is(), talk.world.mode, words.mode_usage()));
            }
            slash::Line::Model(Some(_)) | slash::Line::Mode(Some(_)) if running.is_some() => {
                self.say(words.not_now())
            }
            slash::Line::Model(Some(model)) => {
                let choice = crate::args::Choice { model: Some(model), ..talk.choice.clone() };
                self.change(talk, choice).await;
            }
            slash::Line::Mode(Some(mode)) => {
                let changed = talk.change_mode(&mode);
                self.changed(talk, changed);
            }
            slash::Line::Unknown => self.say(words.unknown_command()),
            slash::Line::Quit => {}
        }
        running
    }

    async fn change(&mut self, talk: &mut Talk, choice: crate::args::Choice) {
        let changed = talk.change(choice).await;
        self.changed(talk, changed);
    }

    fn changed(&mut self, talk: &Talk, changed: Result<(), Failure>) {
        match changed {
            Ok(()) => {
                let (words, world) = (self.words, &talk.world);
                let text =
                    format!("{} {} · {} {}", words.model_is(), world.model, words.mode_is(), world.mode);
                self.say(&text);
            }
            Err(failure) => self.failed(&failure),
        }
    }

    fn tools(&mut self, talk: &Talk) {
        let offered = talk.offered();
        if offered.is_empty() {
            return self.say(self.words.no_tools());
        }
        let columns = self.painter.columns();
        self.note(super::listing::tools(&offered, self.words, columns));
    }

    fn sources(&mut self, talk: &Talk) {
        let columns = self.painter.columns();
        self.note(super::listing::sources(&talk.world, self.words, columns));
    }

    fn say(&mut self, text: &str) {
        let columns = self.painter.columns();
        self.screen.print([Line::default()]);
        self.screen.print(Line::new(&format!("  {text}"), Style::DIM).wrapped(columns));
    }

    fn note(&mut self, lines: impl IntoIterator<Item = Line>) {
        self.screen.print([Line::default()]);
        self.screen.print(lines);
    }

    fn failed(&mut self, failure: &Failure) {
        let columns = self.painter.columns();
        let text = failure.to_string();
        self.screen.print([Line::default()]);
        let lines = text.lines().map(|line| Line::new(line, Style::ink(Ink::Red)));
        self.screen.print(lines.flat_map(|line| line.wrapped(columns)).collect::<Vec<_>>());
    }
}
