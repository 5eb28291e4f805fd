//! The state of the chat's screen: what a key means now, and what the next frame shows. No IO.

use super::dialog::{Dialog, Pressed, Reply};
use super::question::Question;
use super::queue::{Queue, Queued};
use super::slash;
use super::transcript::{Reasoning, Transcript};
use crate::messages::Words;
use crate::terminal::card::spinner;
use crate::terminal::line_editor::{Edit, Had, LineEditor};
use crate::terminal::painter::CursorAt;
use crate::terminal::text::{Ink, Line, Style};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::collections::HashSet;
use throughline_engine::{ApprovalId, Event, EventKind, UserMessageId, When};

/// Lines that stand around a question: a blank one each side, the status, the line to write in with its hint, one
/// more for the card.
const ROWS_BESIDE_QUESTION: usize = 7;
const PROMPT: &str = "› ";

/// What the person wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// Nothing but what the screen does by itself.
    Nothing,
    /// A line was written.
    Line(slash::Line),
    /// A question is answered.
    Answer(Reply),
    /// Arguments are to be edited in the person's own program.
    EditOutside(String),
    /// A message goes into the running turn.
    Say(Queued),
    /// It is taken back.
    TakeBack(UserMessageId),
    /// The turn is to stop.
    Stop,
    /// Leave, stopping what runs.
    Leave,
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
    /// The question that is being answered.
    dialog: Option<Dialog>,
    /// Questions put aside: they wait without being shown.
    aside: HashSet<ApprovalId>,
    /// Ctrl-C was pressed at an empty line: once more leaves.
    leaving: bool,
    queue: Queue,
    /// What a message that is sent while a turn runs waits for, unless it is said. R: T14
    pub steering: When,
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
            dialog: None,
            aside: HashSet::new(),
            queue: Queue::default(),
            steering: When::default(),
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
        (self.stopping, self.allowing_all, self.dialog) = (false, false, None);
        self.aside.clear();
    }

    /// Questions that have been answered beforehand.
    pub fn allowed_beforehand(&self) -> bool {
        let asked = self.turn.as_ref().map_or(&[][..], Transcript::questions);
        self.allowing_all && asked.iter().any(Question::is_approval)
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
        self.queue.apply(event);
        if let EventKind::Problem { code, excerpt, .. } = &event.kind
            && matches!(code.as_str(), "invalid_edit" | "stale_answer")
            && let Some(dialog) = self.dialog.as_mut().filter(|dialog| dialog.is_sent())
        {
            dialog.refuse(excerpt.clone());
        }
        self.follow_questions();
    }

    /// What a person wrote does not fit the tool.
    pub fn refuse_answer(&mut self, why: String) {
        if let Some(dialog) = &mut self.dialog {
            dialog.refuse(why);
        }
    }

    /// What the person's own program made of the arguments.
    pub fn edited_outside(&mut self, text: Result<String, String>) {
        if let Some(dialog) = &mut self.dialog {
            dialog.edited_outside(text);
        }
    }

    /// The question that is shown.
    pub fn question(&self) -> Option<&Question> {
        let dialog = self.dialog.as_ref()?;
        self.turn.as_ref()?.questions().iter().find(|question| question.id == *dialog.id())
    }

    /// The dialog belongs to a question that waits: the first one that was not put aside, unless it has gone on already.
    fn follow_questions(&mut self) {
        let questions = self.turn.as_ref().map_or(&[][..], Transcript::questions);
        let waits = |dialog: &Dialog| questions.iter().any(|question| question.id == *dialog.id());
        if self.dialog.as_ref().is_some_and(waits) {
            return;
        }
        let next = questions.iter().find(|question| !self.aside.contains(&question.id));
        self.dialog = next.map(|question| Dialog::new(question, self.words));
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
        (self.dialog, self.printed) = (None, None);
        if std::mem::take(&mut self.stopping) {
            self.queue.clear();
        }
        self.queue.pop()
    }

    /// Messages that wait for a step of the running turn.
    pub fn waiting_for_step(&self) -> Vec<Queued> {
        self.queue.for_step()
    }

    /// The last lines: what there is of a turn that is left stays on the screen.
    pub fn farewell(&mut self, now: i64, columns: usize) -> Vec<Line> {
        self.end(now, columns);
        std::mem::take(&mut self.settled)
    }

    /// Takes pasted text.
    pub fn paste(&mut self, text: &str) {
        if !self.dialog.as_mut().is_some_and(|dialog| dialog.paste(text)) {
            self.editor.paste(text);
        }
    }

    /// What a key means now.
    pub fn key(&mut self, key: KeyEvent) -> Wish {
        if key.kind == KeyEventKind::Release {
            return Wish::Nothing;
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
        if let Some(wish) = self.answered(key).or_else(|| self.steered(key)) {
            return wish;
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
            Edit::Submitted(text) => self.submitted(text, self.steering),
        }
    }

    /// Keys that belong to a question: all of them while its answer is being written, single ones while nothing is.
    fn answered(&mut self, key: KeyEvent) -> Option<Wish> {
        if key.code == KeyCode::Esc && self.dialog.is_none() && !self.aside.is_empty() {
            self.aside.clear();
            self.follow_questions();
            return Some(Wish::Nothing);
        }
        let question = self.question()?.clone();
        let dialog = self.dialog.as_mut()?;
        if !dialog.is_writing() && !self.editor.is_empty() {
            return None;
        }
        match dialog.key(key, &question) {
            Pressed::Ignored if dialog.is_writing() => Some(Wish::Nothing),
            Pressed::Ignored => None,
            Pressed::Changed => Some(Wish::Nothing),
            Pressed::Next => {
                self.next_question();
                Some(Wish::Nothing)
            }
            Pressed::Later => {
                self.aside.insert(question.id);
                self.dialog = None;
                self.follow_questions();
                Some(Wish::Nothing)
            }
            Pressed::EditOutside(text) => Some(Wish::EditOutside(text)),
            Pressed::Reply(reply) => {
                self.allowing_all |= reply == Reply::ApproveAll;
                Some(Wish::Answer(reply))
            }
        }
    }

    fn next_question(&mut self) {
        let questions = self.turn.as_ref().map_or(&[][..], Transcript::questions);
        let shown = self.dialog.as_ref().map(Dialog::id);
        let at = questions.iter().position(|question| Some(&question.id) == shown).unwrap_or(0);
        let next = questions.get((at + 1) % questions.len().max(1));
        self.dialog = next.map(|question| Dialog::new(question, self.words));
    }

    /// Keys about messages that go into the running turn: Alt-Enter sends it for the other moment than Enter, Up takes the last one back.
    /// R: T14
    fn steered(&mut self, key: KeyEvent) -> Option<Wish> {
        if !self.is_running() {
            return None;
        }
        match key.code {
            KeyCode::Enter if key.modifiers.contains(KeyModifiers::ALT) => match self.editor.submit() {
                Edit::Submitted(text) => Some(self.submitted(text, other(self.steering))),
                _ => Some(Wish::Nothing),
            },
            KeyCode::Up if self.editor.is_empty() => {
                let taken = self.queue.take_back()?;
                self.editor.fill(&taken.text);
                Some(match taken.when {
                    When::NextStep => Wish::TakeBack(taken.id),
                    When::AfterTurn => Wish::Nothing,
                })
            }
            _ => None,
        }
    }

    fn submitted(&mut self, text: String, when: When) -> Wish {
        match (slash::parse(&text), self.is_running()) {
            (slash::Line::Quit, _) => Wish::Leave,
            (slash::Line::Message(message), true) => self.said(message, when),
            (slash::Line::After(Some(message)), true) => self.said(message, When::AfterTurn),
            (slash::Line::After(Some(message)), false) => Wish::Line(slash::Line::Message(message)),
            (line, _) => Wish::Line(line),
        }
    }

    fn said(&mut self, message: String, when: When) -> Wish {
        match self.queue.push(message, when) {
            Ok(queued) if when == When::NextStep => Wish::Say(queued),
            Ok(_) => Wish::Nothing,
            // Nothing is lost: what does not fit stays in the line.
            Err(message) => {
                self.editor.fill(&message);
                Wish::Nothing
            }
        }
    }

    /// What the next frame shows. Final lines are given once.
    pub fn frame(&mut self, now: i64, columns: usize, rows: usize) -> Frame {
        let mut frame = Frame { settled: std::mem::take(&mut self.settled), ..Frame::default() };
        let words = self.words;
        let running = self.turn.is_some();
        if self.turn.is_some() {
            let question = self.question().cloned();
            let mut printed = Vec::new();
            let (asking, cursor) = match &question {
                Some(question) => self.asking(question, now, columns, rows, &mut printed),
                None => (Vec::new(), None),
            };
            let Some(turn) = &mut self.turn else { return frame };
            let shown = turn.show(now, columns);
            frame.settled.extend(shown.settled);
            frame.settled.extend(printed);
            frame.live.extend(shown.live);
            frame.live.push(Line::default());
            if !asking.is_empty() {
                let top = frame.live.len();
                frame.cursor = cursor.map(|cursor| CursorAt { row: top + cursor.row, ..cursor });
                frame.live.extend(asking);
                frame.live.push(Line::default());
            }
            frame.live.push(status(turn, self.stopping, question.is_some(), words, now).truncated(columns));
            frame.live.extend(self.queue.lines(words).map(|line| line.truncated(columns)));
        } else {
            frame.live.push(Line::default());
            for name in &self.attached {
                let line = format!("  ▣ {name} ({})", words.image_attached());
                frame.live.push(Line::new(&line, Style::DIM).truncated(columns));
            }
        }
        // While a turn runs, the line to write in appears with the first key.
        if frame.cursor.is_none() && (!running || !self.editor.is_empty()) {
            let (lines, cursor) = self.editor.view(PROMPT, self.placeholder, columns);
            frame.cursor = Some(CursorAt { row: frame.live.len() + cursor.row, ..cursor });
            frame.live.extend(lines);
            if self.leaving {
                frame.live.push(Line::new(&format!("  {}", words.leave_hint()), Style::DIM));
            } else if running {
                let hint = match self.steering {
                    When::NextStep => words.placeholder_running(),
                    When::AfterTurn => words.placeholder_running_after(),
                };
                let hint = format!("  {hint}");
                frame.live.push(Line::new(&hint, Style::DIM).truncated(columns));
            }
        }
        frame
    }

    /// The question and how far its answer is. All of what is to be decided on must be there to be read: what the
    /// screen cannot hold is printed, once.
    fn asking(
        &mut self,
        question: &Question,
        now: i64,
        columns: usize,
        rows: usize,
        settled: &mut Vec<Line>,
    ) -> (Vec<Line>, Option<CursorAt>) {
        let (Some(dialog), Some(turn)) = (&self.dialog, &self.turn) else { return (Vec::new(), None) };
        let questions = turn.questions();
        let at = questions.iter().position(|one| one.id == question.id).unwrap_or(0);
        let bar = Line::new("┃ ", Style::ink(Ink::Yellow));
        let room = columns.saturating_sub(2);
        let barred = |line: Line| line.after(&bar);
        let whole = question.lines(now, (at, questions.len()), self.words);
        let mut lines: Vec<Line> = whole.iter().flat_map(|line| line.wrapped(room)).map(barred).collect();
        let (answer, cursor) = dialog.lines(question, questions.len(), room);
        if lines.len() + answer.len() + ROWS_BESIDE_QUESTION > rows {
            if self.printed.as_ref() != Some(&question.id) {
                settled.extend(lines.iter().cloned());
                self.printed = Some(question.id.clone());
            }
            // Which one it is, and its time, stay in sight.
            lines.truncate(2);
        }
        let cursor = cursor.map(|at| CursorAt { row: at.row + lines.len(), column: at.column + 2 });
        lines.extend(answer.into_iter().map(barred));
        (lines, cursor)
    }
}

/// The moment that Alt-Enter means.
fn other(when: When) -> When {
    match when {
        When::NextStep => When::AfterTurn,
        When::AfterTurn => When::NextStep,
    }
}

/// Spinner, what is going on, for how long, and how to stop it.
fn status(turn: &Transcript, stopping: bool, asking: bool, words: Words, now: i64) -> Line {
    let waiting = !turn.questions().is_empty();
    let ink = if waiting || stopping { Ink::Yellow } else { Ink::Cyan };
    let mut line = Line::new(if waiting { "?" } else { spinner(now) }, Style::bold_ink(ink));
    let what = match (stopping, waiting && !asking) {
        (true, _) => words.stopping().to_owned(),
        (false, true) => words.later_hint().to_owned(),
        (false, false) => turn.status(now),
    };
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
        let said = typed(&mut screen, "two\n");
        assert!(matches!(&said, Wish::Say(queued) if queued.text == "two"), "{said:?}");
        assert_eq!(lines(&screen.frame(1_000, 60, 24).live)[2], "next step › two  (Up takes it back)");
        assert_eq!(screen.end(1_000, 60).as_deref(), Some("two"));
        screen.begin("two", 60, 1_000);
        typed(&mut screen, "three\n^");
        assert_eq!(screen.end(1_000, 60), None, "stopping throws away what was to follow");
    }

    // R: T14
    #[test]
    fn what_waits_can_be_taken_back_and_is_gone_once_it_is_taken_in() {
        let mut screen = screen();
        screen.begin("one", 60, 1_000);
        typed(&mut screen, "two\n");
        typed(&mut screen, "/after three\n");
        typed(&mut screen, "four");
        let alt_enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT);
        assert_eq!(screen.key(alt_enter), Wish::Nothing);
        let waiting = |screen: &mut Screen| lines(&screen.frame(1_000, 60, 24).live)[2..].join("|");
        assert_eq!(
            waiting(&mut screen),
            "next step › two|afterwards › three|afterwards › four  (Up takes it back)"
        );
        let up = KeyEvent::new(KeyCode::Up, KeyModifiers::NONE);
        assert_eq!(screen.key(up), Wish::Nothing);
        assert!(waiting(&mut screen).contains("› four"), "it is in the line again");
        typed(&mut screen, "^");
        let mut screen = self::screen();
        screen.begin("one", 60, 1_000);
        typed(&mut screen, "two\n");
        let taken = screen.key(up);
        assert_eq!(taken, Wish::TakeBack("said_1".into()));
        let again = typed(&mut screen, "!\n");
        assert!(matches!(&again, Wish::Say(queued) if queued.text == "two!"), "{again:?}");
        event(
            &mut screen,
            1,
            r#"{"type":"user_message","block":0,"id":"said_2","input":[{"type":"text","text":"two!"}]}"#,
        );
        let frame = screen.frame(1_000, 60, 24);
        assert_eq!(lines(&frame.settled).last().map(String::as_str), Some("› two!"));
        assert_eq!(screen.end(1_000, 60), None);
    }

    // R: T14
    #[test]
    fn an_agent_may_have_what_is_said_wait_for_the_end() {
        let mut screen = screen();
        screen.steering = When::AfterTurn;
        screen.begin("one", 60, 1_000);
        assert_eq!(typed(&mut screen, "two\n"), Wish::Nothing, "the turn is told nothing");
        typed(&mut screen, "three");
        let hint = lines(&screen.frame(1_000, 60, 24).live).join("\n");
        assert!(hint.contains("Enter: after this reply · Alt-Enter: for the next step"), "{hint}");
        let alt_enter = screen.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT));
        assert!(matches!(&alt_enter, Wish::Say(queued) if queued.text == "three"), "{alt_enter:?}");
        let waiting = lines(&screen.frame(1_000, 60, 24).live)[2..].join("|");
        assert_eq!(waiting, "afterwards › two|next step › three  (Up takes it back)");
        assert_eq!(screen.end(1_000, 60).as_deref(), Some("two"));
    }

    // R: A2
    #[test]
    fn keys_answer_the_question_that_is_shown() {
        let approved = |screen: &mut Screen, key| match typed(screen, key) {
            Wish::Answer(reply) => reply,
            other => panic!("{key}: {other:?}"),
        };
        assert!(matches!(approved(&mut asking(), "a"), Reply::Decide(id, _) if id == "q".into()));
        assert!(matches!(approved(&mut asking(), "dnot now\n"), Reply::Decide(id, _) if id == "q".into()));
        let mut screen = asking();
        assert!(!screen.allowed_beforehand());
        assert_eq!(approved(&mut screen, "A"), Reply::ApproveAll);
        assert!(screen.allowed_beforehand());
        let mut screen = asking();
        let live = lines(&screen.frame(1_000, 60, 24).live).join("\n");
        assert!(live.contains("┃ Allow this call?  x.y") && live.contains("? waiting for you"), "{live}");
        assert_eq!(typed(&mut screen, "ma"), Wish::Nothing, "what is being written is no answer");
    }

    #[test]
    fn a_question_is_put_aside_and_comes_back() {
        let mut screen = asking();
        let esc = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
        assert_eq!(screen.key(esc), Wish::Nothing);
        let live = lines(&screen.frame(1_000, 60, 24).live).join("\n");
        assert!(!live.contains('┃') && live.contains("a question waits · Esc shows it"), "{live}");
        assert!(matches!(typed(&mut screen, "and\n"), Wish::Say(_)), "meanwhile one can write");
        screen.key(esc);
        assert!(lines(&screen.frame(1_000, 60, 24).live).join("\n").contains("┃ Allow this call?  x.y"));
    }

    #[test]
    fn a_question_longer_than_the_screen_is_printed_once() {
        let mut screen = asking();
        let frame = screen.frame(1_000, 60, 9);
        assert!(lines(&frame.settled).join("\n").contains("┃ Allow this call?  x.y"), "{frame:?}");
        assert!(lines(&frame.live).join("\n").contains("[a] approve"), "{frame:?}");
        let again = screen.frame(1_000, 60, 9);
        assert_eq!(lines(&again.settled), [""; 0]);
    }
}
