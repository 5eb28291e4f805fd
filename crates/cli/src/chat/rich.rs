//! The chat on a real terminal: keys in, frames out, a turn in between.

use super::commands::{self, CommandEffect};
use super::dialog::DialogReply;
use super::screen::{ChatScreen, ScreenAction};
use super::slash_command::SlashCommand;
use super::transcript::ReasoningView;
use super::turn_commands;
use super::{ChatSession, exit_on_leave, greeting};
use crate::conversation::{OngoingTurn, PastTurn};
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages::{self, UiText};
use crate::terminal::painter::ScreenPainter;
use crate::terminal::session::{self, KeyReader, RawTerminal};
use crate::terminal::text::{StyledLine, TextColor, TextStyle};
use crossterm::event::Event as Input;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use throughline::Event;
use tokio::time::MissedTickBehavior;

/// Time between two frames while something moves: about 30 a second.
const FRAME_INTERVAL: Duration = Duration::from_millis(33);

/// Talks until the person leaves.
pub(super) async fn run(
    session: &mut ChatSession,
    resumed: Option<PastTurn>,
    words: UiText,
) -> CommandResult {
    let (columns, rows) = crossterm::terminal::size().map_err(|error| messages::terminal_failed(&error))?;
    let mut stop_signals = crate::interrupt::stop_signals().map_err(|error| messages::no_signals(&error))?;
    let raw = RawTerminal::enter().map_err(|error| messages::terminal_failed(&error))?;
    let mut keys = KeyReader::listen().map_err(|error| messages::no_runtime(&error))?;
    let mut ui = ChatUi {
        screen: ChatScreen::new(words, &greeting::examples(&session.talk, words)),
        painter: ScreenPainter::new(columns, rows),
        words,
    };
    let lines = greeting::lines(&session.talk, words, ui.painter.columns());
    ui.screen.print(lines);
    ui.screen.steering = session.steering();

    let mut turn = resumed.map(|past| ui.begin(&past.message, past.turn));
    let mut remembered = turn_commands::AlwaysAnswers::default();
    let mut frames = tokio::time::interval(FRAME_INTERVAL);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut painted_at: Option<Instant> = None;
    let exit = loop {
        if painted_at.is_none_or(|at| at.elapsed() >= FRAME_INTERVAL) {
            ui.paint().map_err(|error| messages::terminal_failed(&error))?;
            painted_at = Some(Instant::now());
        }
        tokio::select! {
            key = keys.next() => {
                // The effect of a key is painted immediately.
                painted_at = None;
                let Some(key) = key else { break CliExit::Done };
                match ui.input(key) {
                    ScreenAction::Nothing => {}
                    ScreenAction::Leave => break exit_on_leave(turn.is_some()),
                    ScreenAction::Line(line) => turn = ui.run_line(line, session, turn).await,
                    ScreenAction::Answer(reply) => if let Some(turn) = &turn {
                        let tool = ui.screen.question().map(|question| question.tool.clone());
                        let checked = turn_commands::check_arguments(session.talk.app(), tool.as_deref().unwrap_or(""), &reply);
                        let reply_result = match checked {
                            Ok(()) => turn.control().answer(reply).await,
                            Err(why) => Err(why),
                        };
                        if let Err(why) = reply_result {
                            ui.screen.reject_answer(why);
                        }
                    },
                    ScreenAction::EditOutside(text) => ui.edit_outside(&text, &keys).await,
                    ScreenAction::QueueMessage(queued) => if let Some(turn) = &turn {
                        turn.control().send(queued).await;
                    },
                    ScreenAction::RetractMessage(id) => if let Some(turn) = &turn {
                        turn.control().retract(id).await;
                    },
                    ScreenAction::Stop => if let Some(turn) = &turn {
                        // The events tell whether the cancellation was in time.
                        turn.cancel().await;
                    },
                }
            }
            event = next_event(&mut turn) => match event {
                Some(event) => {
                    ui.screen.apply(&event);
                    session.apply(&event);
                    remembered.apply(&event);
                    if ui.screen.auto_approves() && let Some(turn) = &turn {
                        let _ = turn.control().answer(DialogReply::ApproveAll).await;
                    }
                }
                None => {
                    painted_at = None;
                    let next = ui.screen.end_turn(now(), ui.painter.columns());
                    if let Some(failure) = turn.as_mut().and_then(OngoingTurn::lost) {
                        ui.print_failure(&failure.into());
                    }
                    if let Some(fault) = remembered.fault(session.talk.app()) {
                        ui.print_failure(&messages::not_remembered(&fault));
                    }
                    turn = match next {
                        Some(next) => ui.run_line(SlashCommand::Message(next), session, None).await,
                        None => None,
                    };
                }
            },
            _ = frames.tick(), if turn.is_some() || painted_at.is_some_and(|at| at.elapsed() < FRAME_INTERVAL) => {}
            _ = stop_signals.recv() => break CliExit::Cancelled,
        }
    };
    // Dropping a turn that is not stored stops it.
    drop(turn);
    let last = ui.screen.farewell(now(), ui.painter.columns());
    let farewell = ui.painter.frame(last, Vec::new(), None) + &ui.painter.clear();
    drop(raw);
    // The terminal may be closed, which may be the reason for the end.
    let _ = session::write_frame(&farewell);
    Ok(exit)
}

/// The next event of a running turn; never, if none runs.
async fn next_event(turn: &mut Option<OngoingTurn>) -> Option<Event> {
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

struct ChatUi {
    screen: ChatScreen,
    painter: ScreenPainter,
    words: UiText,
}

impl ChatUi {
    fn paint(&mut self) -> io::Result<()> {
        let frame = self.screen.frame(now(), self.painter.columns(), self.painter.rows());
        session::write_frame(&self.painter.frame(frame.settled, frame.live, frame.cursor))
    }

    /// Lends the terminal to the person's own program.
    async fn edit_outside(&mut self, text: &str, keys: &KeyReader) {
        let words = self.words;
        let Some(program) = crate::external_editor::editor_command() else {
            return self.screen.edited_outside(Err(words.no_editor().to_owned()));
        };
        let text = text.to_owned();
        let clear = self.painter.clear();
        let edited = keys.lend(move || crate::external_editor::edit(&program, &text), &clear).await;
        self.screen.edited_outside(edited.map_err(|error| error.to_string()));
    }

    fn input(&mut self, input: Input) -> ScreenAction {
        match input {
            Input::Key(key) => self.screen.key(key),
            Input::Paste(text) => {
                self.screen.paste(&text);
                ScreenAction::Nothing
            }
            Input::Resize(columns, rows) => {
                self.painter.resize(columns, rows);
                ScreenAction::Nothing
            }
            _ => ScreenAction::Nothing,
        }
    }

    /// Shows a turn from its first event.
    fn begin(&mut self, message: &str, turn: OngoingTurn) -> OngoingTurn {
        self.screen.begin_turn(message, self.painter.columns(), now());
        turn
    }

    /// Executes a line. Returns the turn that runs afterwards.
    async fn run_line(
        &mut self,
        line: SlashCommand,
        session: &mut ChatSession,
        running: Option<OngoingTurn>,
    ) -> Option<OngoingTurn> {
        let words = self.words;
        match line {
            SlashCommand::Message(message) => return self.send(&message, session).await.or(running),
            SlashCommand::Quit => {}
            SlashCommand::After(_) => self.print_text(words.after_usage()),
            SlashCommand::Thinking => {
                let full = self.screen.reasoning == ReasoningView::Folded;
                self.screen.reasoning = if full { ReasoningView::Full } else { ReasoningView::Folded };
                self.print_text(if full { words.thinking_shown() } else { words.thinking_folded() });
            }
            command if running.is_some() && commands::needs_idle(&command) => {
                self.print_text(words.not_now())
            }
            command => return self.run_command(command, session).await.or(running),
        }
        running
    }

    async fn send(&mut self, message: &str, session: &mut ChatSession) -> Option<OngoingTurn> {
        self.screen.begin_turn(message, self.painter.columns(), now());
        match session.send(message).await {
            Ok(turn) => {
                // What was written for a step that never came waits for one of this turn.
                for queued in self.screen.waiting_for_step() {
                    turn.control().send(queued).await;
                }
                Some(turn)
            }
            Err(failure) => {
                self.screen.end_turn(now(), self.painter.columns());
                self.print_failure(&failure);
                None
            }
        }
    }

    async fn run_command(&mut self, command: SlashCommand, session: &mut ChatSession) -> Option<OngoingTurn> {
        match commands::run(session, command, self.words, self.painter.columns()).await {
            CommandEffect::Note(text) => self.print_text(&text),
            CommandEffect::Lines(lines) => self.print_lines(lines),
            CommandEffect::Attached(path) => self.screen.attached.push(path),
            CommandEffect::Failed(failure) => self.print_failure(&failure),
            CommandEffect::Terminal { sequence, note } => {
                // A terminal that does not take it shows nothing of it.
                let _ = session::write_frame(&sequence);
                self.print_text(&note);
            }
            CommandEffect::Turn { note, message, turn } => {
                if !note.is_empty() {
                    self.print_text(&note);
                }
                return Some(self.begin(&message, turn));
            }
        }
        None
    }

    fn print_text(&mut self, text: &str) {
        let columns = self.painter.columns();
        self.screen.print([StyledLine::default()]);
        self.screen.print(StyledLine::new(&format!("  {text}"), TextStyle::DIM).wrapped(columns));
    }

    fn print_lines(&mut self, lines: impl IntoIterator<Item = StyledLine>) {
        self.screen.print([StyledLine::default()]);
        self.screen.print(lines);
    }

    fn print_failure(&mut self, failure: &CliFailure) {
        let columns = self.painter.columns();
        let text = failure.to_string();
        self.screen.print([StyledLine::default()]);
        let lines = text.lines().map(|line| StyledLine::new(line, TextStyle::ink(TextColor::Red)));
        self.screen.print(lines.flat_map(|line| line.wrapped(columns)).collect::<Vec<_>>());
    }
}
