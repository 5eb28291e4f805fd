//! The state of the chat's screen: what a key means now, and what the next frame shows. No IO.

use super::slash;
use super::transcript::{Reasoning, Transcript};
use crate::messages::Words;
use crate::terminal::card::spinner;
use crate::terminal::line_editor::{Edit, Had, LineEditor};
use crate::terminal::painter::CursorAt;
use crate::terminal::text::{Ink, Line, Style};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::collections::VecDeque;
use throughline_engine::{ApprovalId, Event};

/// Messages that may be written ahead.
const QUEUED_MAX: usize = 16;
/// Lines that stand around a question: a blank one each side, the status, the line to write in with its hint, one
/// more for the card.
const ROWS_BESIDE_QUESTION: usize = 7;
const PROMPT: &str = "› ";

/// What the person wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing but what the screen does by itself.
    Nothing,
    /// A line was written.
    Line(slash::Line),
    /// A question is answered.
    Answer(Reply),
    /// The turn is to stop.
    Stop,
    /// Leave, stopping what runs.
    Leave,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Run this one.
    Allow(ApprovalId),
    /// Do not.
    Deny(ApprovalId),
    /// Run this one and all that ask in this turn.
    AllowAll,
}

/// Everything that is on the screen or about to be.
#[derive(Debug)]
pub struct Screen {
    words: Words,
    editor: LineEditor,
    turn: Option<Transcript>,
    /// Ctrl-C was pressed in this turn.
    stopping: bool,
    /// Everything that asks in this turn is allowed.
    allowing_all: bool,
    /// Ctrl-C was pressed at an empty line: once more leaves.
    leaving: bool,
    queued: VecDeque<String>,
    /// Final lines not yet painted.
    settled: Vec<Line>,
    /// The question that was printed because it is longer than the screen.
    printed: Option<ApprovalId>,
    /// Names of pictures that go with the next message.
    pub attached: Vec<String>,
    /// How reasoning is shown.
    pub reasoning: Reasoning,
    placeholder: &'static str,
}

/// One frame.
#[derive(Debug, Default)]
pub struct Frame {
    /// Printed once.
    pub settled: Vec<Line>,
    /// Repainted.
    pub live: Vec<Line>,
    /// In the live lines.
    pub cursor: Option<CursorAt>,
}

impl Screen {
    /// An empty screen; `examples` are what Tab suggests.
    pub fn new(words: Words, examples: &[String]) -> Self {
        let completions = slash::NAMES.iter().map(|name| (*name).to_owned()).collect();
        Self {
            words,
            editor: LineEditor::new(completions, examples.to_vec()),
            turn: None,
            stopping: false,
            allowing_all: false,
            leaving: false,
            queued: VecDeque::new(),
            settled: Vec::new(),
            printed: None,
            attached: Vec::new(),
            reasoning: Reasoning::default(),
            placeholder: if examples.is_empty() { words.placeholder_plain() } else { words.placeholder() },
        }
    }

    /// Prints lines above everything that is live.
    pub fn print(&mut self, lines: impl IntoIterator<Item = Line>) {
        self.settled.extend(lines);
    }

    /// A message goes out: a turn begins at `now`.
    pub fn begin(&mut self, message: &str, columns: usize, now: i64) {
        self.settled.push(Line::default());
        let prompt = Line::new(PROMPT, Style::bold_ink(Ink::Magenta));
        let indent = Line::new("  ", Style::PLAIN);
        let lines =
            message.lines().flat_map(|line| Line::new(line, Style::BOLD).wrapped(columns.saturating_sub(2)));
        for (at, line) in lines.enumerate() {
            self.settled.push(line.after(if at == 0 { &prompt } else { &indent }));
        }
        for name in self.attached.drain(..) {
            self.settled.push(Line::new(&format!("  ▣ {name}"), Style::DIM));
        }
        self.settled.push(Line::default());
        self.turn = Some(Transcript::new(self.words, self.reasoning, now));
        (self.stopping, self.allowing_all) = (false, false);
    }

    /// A question that has been answered beforehand.
    pub fn allowed_beforehand(&self) -> Option<ApprovalId> {
        let question = self.turn.as_ref()?.question()?;
        self.allowing_all.then(|| question.id.clone())
    }

    /// A turn is under way.
    pub fn is_running(&self) -> bool {
        self.turn.is_some()
    }

    /// Takes an event of the turn.
    pub fn apply(&mut self, event: &Event) {
        if let Some(turn) = &mut self.turn {
            turn.apply(event);
        }
    }

    /// The turn is over: everything of it becomes final. Gives the message that was written meanwhile, if one was.
    pub fn end(&mut self, now: i64, columns: usize) -> Option<String> {
        if let Some(mut turn) = self.turn.take() {
            let shown = turn.show(now, columns);
            self.settled.extend(shown.settled);
            self.settled.extend(shown.live);
            let footer = turn.footer();
            if !footer.is_empty() {
                self.settled.push(Line::default());
                self.settled.extend(footer.iter().map(|line| line.truncated(columns)));
            }
        }
        if self.stopping {
            self.queued.clear();
        }
        self.stopping = false;
        self.queued.pop_front()
    }

    /// The last lines: what there is of a turn that is left stays on the screen.
    pub fn farewell(&mut self, now: i64, columns: usize) -> Vec<Line> {
        self.end(now, columns);
        std::mem::take(&mut self.settled)
    }

    /// Takes pasted text.
    pub fn paste(&mut self, text: &str) {
        self.editor.paste(text);
    }

    /// What a key means now.
    pub fn key(&mut self, key: KeyEvent) -> Wish {
        if key.kind == KeyEventKind::Release {
            return Wish::Nothing;
        }
        if let Some(reply) = self.reply(key) {
            self.allowing_all |= reply == Reply::AllowAll;
            return Wish::Answer(reply);
        }
        // While a turn runs Ctrl-C is about the turn: what has been written meanwhile stays.
        if self.is_running()
            && key.code == KeyCode::Char('c')
            && key.modifiers.contains(KeyModifiers::CONTROL)
        {
            return match std::mem::replace(&mut self.stopping, true) {
                false => Wish::Stop,
                true => Wish::Leave,
            };
        }
        let edit = self.editor.key(key);
        if !matches!(edit, Edit::Interrupted(_)) {
            self.leaving = false;
        }
        match edit {
            Edit::Ignored | Edit::Changed => Wish::Nothing,
            Edit::Ended => Wish::Leave,
            Edit::Interrupted(Had::Text) => Wish::Nothing,
            Edit::Interrupted(Had::Nothing) if self.leaving => Wish::Leave,
            Edit::Interrupted(Had::Nothing) => {
                self.leaving = true;
                Wish::Nothing
            }
            Edit::Submitted(text) => self.submitted(text),
        }
    }

    /// Single keys answer a question while nothing is being written.
    fn reply(&self, key: KeyEvent) -> Option<Reply> {
        let question = self.turn.as_ref()?.question()?;
        if !self.editor.is_empty() || key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        match key.code {
            KeyCode::Char('y' | 'Y') => Some(Reply::Allow(question.id.clone())),
            KeyCode::Char('n' | 'N') => Some(Reply::Deny(question.id.clone())),
            KeyCode::Char('a' | 'A') => Some(Reply::AllowAll),
            _ => None,
        }
    }

    fn submitted(&mut self, text: String) -> Wish {
        match slash::parse(&text) {
            slash::Line::Quit => Wish::Leave,
            slash::Line::Message(message) if self.is_running() => {
                if self.queued.len() < QUEUED_MAX {
                    self.queued.push_back(message);
                }
                Wish::Nothing
            }
            line => Wish::Line(line),
        }
    }

    /// What the next frame shows. Final lines are given once.
    pub fn frame(&mut self, now: i64, columns: usize, rows: usize) -> Frame {
        let mut frame = Frame { settled: std::mem::take(&mut self.settled), ..Frame::default() };
        let running = self.turn.is_some();
        if let Some(turn) = &mut self.turn {
            let shown = turn.show(now, columns);
            frame.settled.extend(shown.settled);
            frame.live.extend(shown.live);
            let mut question = turn.question_lines(columns);
            // All of what is to be allowed must be there to be read: what the screen cannot hold is printed.
            if question.len() + ROWS_BESIDE_QUESTION > rows {
                let keys = question.pop();
                let id = turn.question().map(|question| question.id.clone());
                if self.printed != id {
                    frame.settled.extend(question);
                    self.printed = id;
                }
                question = keys.into_iter().collect();
            }
            frame.live.push(Line::default());
            if !question.is_empty() {
                frame.live.extend(question);
                frame.live.push(Line::default());
            }
            frame.live.push(status(turn, self.stopping, self.words, now).truncated(columns));
            for message in &self.queued {
                let mut line = Line::new(&format!("{} ", self.words.queued_next()), Style::DIM);
                line.push(PROMPT, Style::DIM);
                line.push(&message.replace('\n', " "), Style::DIM);
                frame.live.push(line.truncated(columns));
            }
        } else {
            frame.live.push(Line::default());
            for name in &self.attached {
                let line = format!("  ▣ {name} ({})", self.words.image_attached());
                frame.live.push(Line::new(&line, Style::DIM).truncated(columns));
            }
        }
        // While a turn runs, the line to write in appears with the first key.
        if !running || !self.editor.is_empty() {
            let (lines, cursor) = self.editor.view(PROMPT, self.placeholder, columns);
            frame.cursor = Some(CursorAt { row: frame.live.len() + cursor.row, ..cursor });
            frame.live.extend(lines);
            if self.leaving {
                frame.live.push(Line::new(&format!("  {}", self.words.leave_hint()), Style::DIM));
            } else if running {
                let hint = format!("  {}", self.words.placeholder_running());
                frame.live.push(Line::new(&hint, Style::DIM).truncated(columns));
            }
        }
        frame
    }
}

/// Spinner, what is going on, for how long, and how to stop it.
fn status(turn: &Transcript, stopping: bool, words: Words, now: i64) -> Line {
    let waiting = turn.question().is_some();
    let ink = if waiting || stopping { Ink::Yellow } else { Ink::Cyan };
    let mut line = Line::new(if waiting { "?" } else { spinner(now) }, Style::bold_ink(ink));
    let what = if stopping { words.stopping().to_owned() } else { turn.status(now) };
    line.push(&format!(" {what}"), Style::ink(ink));
    let hint = if stopping { words.leave_hint() } else { words.stop_hint() };
    line.push(&format!(" · {} · {hint}", turn.elapsed(now)), Style::DIM);
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Lang;

    fn screen() -> Screen {
        Screen::new(Words(Lang::English), &["say hi".to_owned()])
    }

    fn typed(screen: &mut Screen, text: &str) -> Wish {
        let mut last = Wish::Nothing;
        for char in text.chars() {
            last = screen.key(match char {
                '\n' => KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE),
                '^' => KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
                other => KeyEvent::new(KeyCode::Char(other), KeyModifiers::NONE),
            });
        }
        last
    }

    fn lines(lines: &[Line]) -> Vec<String> {
        lines.iter().map(Line::plain).collect()
    }

    fn event(screen: &mut Screen, seq: u64, json: &str) {
        let mut event: serde_json::Value = serde_json::from_str(json).unwrap();
        event["turn_id"] = "t".into();
        event["seq"] = seq.into();
        event["timestamp"] = 1_000.into();
        screen.apply(&serde_json::from_value(event).unwrap());
    }

    fn asking() -> Screen {
        let mut screen = screen();
        screen.begin("do it", 60, 1_000);
        event(
            &mut screen,
            1,
            r#"{"type":"tool_use","block":0,"tool_id":"a","tool_name":"x.y","wire_name":"x_y","effect":"write","status":"preparing","slot":0,"position":0}"#,
        );
        event(
            &mut screen,
            2,
            r#"{"type":"approval_request","block":0,"tool_id":"a","approval_id":"q","question":"May I?","rule":"r","arguments_hash":"h"}"#,
        );
        screen
    }

    #[test]
    fn a_message_begins_a_turn_with_a_status_line() {
        let mut screen = screen();
        assert_eq!(typed(&mut screen, "hello\n"), Wish::Line(slash::Line::Message("hello".into())));
        screen.begin("hello", 60, 1_000);
        let frame = screen.frame(2_500, 60, 24);
        assert_eq!(lines(&frame.settled), ["", "› hello", ""]);
        assert_eq!(lines(&frame.live), ["", "⠙ connecting · 1.5 s · Ctrl-C stops"]);
        assert_eq!(frame.cursor, None);
    }

    #[test]
    fn an_idle_screen_waits_with_a_prompt() {
        let frame = screen().frame(0, 60, 24);
        assert_eq!(lines(&frame.live), ["", "› Say something, Tab for an example, /help for help"]);
        assert_eq!(frame.cursor, Some(CursorAt { row: 1, column: 2 }));
    }

    #[test]
    fn control_c_stops_the_turn_and_then_leaves() {
        let mut screen = screen();
        screen.begin("hello", 60, 1_000);
        assert_eq!(typed(&mut screen, "^"), Wish::Stop);
        assert!(lines(&screen.frame(1_000, 60, 24).live)[1].contains("stopping"));
        assert_eq!(typed(&mut screen, "^"), Wish::Leave);
        typed(&mut screen, "draft");
        screen.end(1_000, 60);
        assert!(
            lines(&screen.frame(1_000, 60, 24).live).join("\n").contains("› draft"),
            "what was written stays"
        );
        let mut idle = self::screen();
        assert_eq!(typed(&mut idle, "abc^"), Wish::Nothing);
        assert_eq!(typed(&mut idle, "^"), Wish::Nothing);
        assert_eq!(typed(&mut idle, "^"), Wish::Leave);
    }

    #[test]
    fn a_message_written_ahead_goes_out_next() {
        let mut screen = screen();
        screen.begin("one", 60, 1_000);
        assert_eq!(typed(&mut screen, "two\n"), Wish::Nothing);
        assert_eq!(lines(&screen.frame(1_000, 60, 24).live)[2], "next › two");
        assert_eq!(screen.end(1_000, 60).as_deref(), Some("two"));
        screen.begin("two", 60, 1_000);
        typed(&mut screen, "three\n^");
        assert_eq!(screen.end(1_000, 60), None, "stopping throws away what was to follow");
    }

    #[test]
    fn single_keys_answer_a_question() {
        for (key, expect) in
            [("y", Reply::Allow("q".into())), ("n", Reply::Deny("q".into())), ("A", Reply::AllowAll)]
        {
            assert_eq!(typed(&mut asking(), key), Wish::Answer(expect));
        }
        let mut screen = asking();
        assert_eq!(screen.allowed_beforehand(), None);
        typed(&mut screen, "a");
        assert_eq!(screen.allowed_beforehand(), Some("q".into()));
        let mut screen = asking();
        let live = lines(&screen.frame(1_000, 60, 24).live).join("\n");
        assert!(live.contains("┃ Allow this call?  x.y") && live.contains("? waiting for you"), "{live}");
        let frame = asking().frame(1_000, 60, 9);
        assert!(
            lines(&frame.settled).join("\n").contains("┃ Allow this call?  x.y"),
            "too long for the screen: printed"
        );
        assert!(lines(&frame.live).join("\n").contains("[y] allow"));
        assert_eq!(typed(&mut screen, "my"), Wish::Nothing, "what is being written is no answer");
    }
}
