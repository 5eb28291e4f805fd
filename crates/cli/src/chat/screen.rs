//! The state of the chat's screen: what a key means now, and what the next frame shows. No IO.

use super::dialog::{DialogReply, KeyOutcome, QuestionDialog};
use super::question::PendingQuestion;
use super::queue::{MessageQueue, QueuedText};
use super::slash_command;
use super::transcript::{ReasoningView, TurnTranscript};
use crate::messages::UiText;
use crate::terminal::card::spinner;
use crate::terminal::line_editor::{EditorEvent, InterruptedText, LineEditor};
use crate::terminal::painter::CursorPosition;
use crate::terminal::text::{StyledLine, TextColor, TextStyle};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::collections::HashSet;
use throughline_engine::{ApprovalId, Event, EventKind, MessageTiming, UserMessageId};

/// Number of lines around a question: a blank one on each side, the status, the input line with its hint, one
/// more for the card.
const ROWS_AROUND_QUESTION: usize = 7;
const PROMPT: &str = "› ";

/// Action that the user requested.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ScreenAction {
    /// No action outside the screen.
    Nothing,
    /// A line was written.
    Line(slash_command::SlashCommand),
    /// A question is answered.
    Answer(DialogReply),
    /// Arguments are to be edited in the person's own program.
    EditOutside(String),
    /// A message goes into the running turn.
    QueueMessage(QueuedText),
    /// Retract a queued message.
    RetractMessage(UserMessageId),
    /// The turn is to stop.
    Stop,
    /// Leave the chat and stop the running turn.
    Leave,
}

/// Content of the screen.
#[derive(Debug)]
pub(crate) struct ChatScreen {
    words: UiText,
    editor: LineEditor,
    turn: Option<TurnTranscript>,
    /// Ctrl-C was pressed in this turn.
    stopping: bool,
    /// True if every further question of this turn is approved.
    allowing_all: bool,
    /// The question that is being answered.
    dialog: Option<QuestionDialog>,
    /// Postponed questions: they wait without being shown.
    postponed: HashSet<ApprovalId>,
    /// Ctrl-C was pressed at an empty line: once more leaves.
    leave_armed: bool,
    queue: MessageQueue,
    /// Default delivery of messages that are sent while a turn runs.
    pub(crate) steering: MessageTiming,
    /// Final lines not yet painted.
    settled: Vec<StyledLine>,
    /// The question that was printed because it is longer than the screen.
    printed_question: Option<ApprovalId>,
    /// Names of pictures that go with the next message.
    pub(crate) attached: Vec<String>,
    pub(crate) reasoning: ReasoningView,
    placeholder: &'static str,
}

#[derive(Debug, Default)]
pub(crate) struct ScreenFrame {
    /// Printed once.
    pub(crate) settled: Vec<StyledLine>,
    /// Repainted.
    pub(crate) live: Vec<StyledLine>,
    /// Cursor position within the live lines.
    pub(crate) cursor: Option<CursorPosition>,
}

impl ChatScreen {
    /// An empty screen; `examples` are what Tab suggests.
    pub(crate) fn new(words: UiText, examples: &[String]) -> Self {
        let completions = slash_command::COMMAND_NAMES.iter().map(|name| (*name).to_owned()).collect();
        Self {
            words,
            editor: LineEditor::new(completions, examples.to_vec()),
            turn: None,
            stopping: false,
            allowing_all: false,
            leave_armed: false,
            dialog: None,
            postponed: HashSet::new(),
            queue: MessageQueue::default(),
            steering: MessageTiming::default(),
            settled: Vec::new(),
            printed_question: None,
            attached: Vec::new(),
            reasoning: ReasoningView::default(),
            placeholder: if examples.is_empty() { words.placeholder_plain() } else { words.placeholder() },
        }
    }

    /// Prints lines above everything that is live.
    pub(crate) fn print(&mut self, lines: impl IntoIterator<Item = StyledLine>) {
        self.settled.extend(lines);
    }

    /// A message goes out: a turn begins at `now`.
    pub(crate) fn begin_turn(&mut self, message: &str, columns: usize, now: i64) {
        self.settled.push(StyledLine::default());
        let prompt = StyledLine::new(PROMPT, TextStyle::bold_ink(TextColor::Magenta));
        let indent = StyledLine::new("  ", TextStyle::PLAIN);
        let lines = message
            .lines()
            .flat_map(|line| StyledLine::new(line, TextStyle::BOLD).wrapped(columns.saturating_sub(2)));
        for (index, line) in lines.enumerate() {
            self.settled.push(line.after(if index == 0 { &prompt } else { &indent }));
        }
        for name in self.attached.drain(..) {
            self.settled.push(StyledLine::new(&format!("  ▣ {name}"), TextStyle::DIM));
        }
        self.settled.push(StyledLine::default());
        self.turn = Some(TurnTranscript::new(self.words, self.reasoning, now));
        (self.stopping, self.allowing_all, self.dialog) = (false, false, None);
        self.postponed.clear();
    }

    /// Questions that have been answered beforehand.
    pub(crate) fn auto_approves(&self) -> bool {
        let asked = self.turn.as_ref().map_or(&[][..], TurnTranscript::questions);
        self.allowing_all && asked.iter().any(PendingQuestion::is_approval)
    }

    /// A turn is under way.
    pub(crate) fn is_running(&self) -> bool {
        self.turn.is_some()
    }

    /// Takes an event of the turn.
    pub(crate) fn apply(&mut self, event: &Event) {
        if let Some(turn) = &mut self.turn {
            turn.apply(event);
        }
        self.queue.apply(event);
        if let EventKind::Problem { code, excerpt, .. } = &event.kind
            && matches!(code.as_str(), "invalid_edit" | "stale_answer")
            && let Some(dialog) = self.dialog.as_mut().filter(|dialog| dialog.is_sent())
        {
            dialog.reject(excerpt.clone());
        }
        self.sync_dialog();
    }

    /// Reports that the user's answer does not fit the tool.
    pub(crate) fn reject_answer(&mut self, why: String) {
        if let Some(dialog) = &mut self.dialog {
            dialog.reject(why);
        }
    }

    /// Takes over the arguments as the user's editor left them.
    pub(crate) fn edited_outside(&mut self, text: Result<String, String>) {
        if let Some(dialog) = &mut self.dialog {
            dialog.edited_outside(text);
        }
    }

    /// The question that is shown.
    pub(crate) fn question(&self) -> Option<&PendingQuestion> {
        let dialog = self.dialog.as_ref()?;
        self.turn.as_ref()?.questions().iter().find(|question| question.id == *dialog.id())
    }

    /// Updates the dialog: it belongs to the first open question that was not put aside.
    fn sync_dialog(&mut self) {
        let questions = self.turn.as_ref().map_or(&[][..], TurnTranscript::questions);
        let waits = |dialog: &QuestionDialog| questions.iter().any(|question| question.id == *dialog.id());
        if self.dialog.as_ref().is_some_and(waits) {
            return;
        }
        let next = questions.iter().find(|question| !self.postponed.contains(&question.id));
        self.dialog = next.map(|question| QuestionDialog::new(question, self.words));
    }

    /// Finishes the turn: all of its lines become final. Returns the draft of the next message, if any.
    pub(crate) fn end_turn(&mut self, now: i64, columns: usize) -> Option<String> {
        if let Some(mut turn) = self.turn.take() {
            let shown = turn.render(now, columns);
            self.settled.extend(shown.settled);
            self.settled.extend(shown.live);
            let footer = turn.footer();
            if !footer.is_empty() {
                self.settled.push(StyledLine::default());
                self.settled.extend(footer.iter().map(|line| line.truncated(columns)));
            }
        }
        (self.dialog, self.printed_question) = (None, None);
        if std::mem::take(&mut self.stopping) {
            self.queue.clear();
        }
        self.queue.pop()
    }

    /// Messages that wait for a step of the running turn.
    pub(crate) fn waiting_for_step(&self) -> Vec<QueuedText> {
        self.queue.for_step()
    }

    /// The last lines: the partial output of an abandoned turn stays on the screen.
    pub(crate) fn farewell(&mut self, now: i64, columns: usize) -> Vec<StyledLine> {
        self.end_turn(now, columns);
        std::mem::take(&mut self.settled)
    }

    /// Takes pasted text.
    pub(crate) fn paste(&mut self, text: &str) {
        if !self.dialog.as_mut().is_some_and(|dialog| dialog.paste(text)) {
            self.editor.paste(text);
        }
    }

    /// Handles a key press.
    pub(crate) fn key(&mut self, key: KeyEvent) -> ScreenAction {
        if key.kind == KeyEventKind::Release {
            return ScreenAction::Nothing;
        }
        // While a turn runs Ctrl-C cancels the turn; the draft stays.
        if self.is_running()
            && key.code == KeyCode::Char('c')
            && key.modifiers.contains(KeyModifiers::CONTROL)
        {
            return if std::mem::replace(&mut self.stopping, true) {
                ScreenAction::Leave
            } else {
                ScreenAction::Stop
            };
        }
        if let Some(wish) = self.question_key(key).or_else(|| self.steering_key(key)) {
            return wish;
        }
        let edit = self.editor.key(key);
        if !matches!(edit, EditorEvent::Interrupted(_)) {
            self.leave_armed = false;
        }
        match edit {
            EditorEvent::Ignored | EditorEvent::Changed => ScreenAction::Nothing,
            EditorEvent::Ended => ScreenAction::Leave,
            EditorEvent::Interrupted(InterruptedText::Discarded) => ScreenAction::Nothing,
            EditorEvent::Interrupted(InterruptedText::Empty) if self.leave_armed => ScreenAction::Leave,
            EditorEvent::Interrupted(InterruptedText::Empty) => {
                self.leave_armed = true;
                ScreenAction::Nothing
            }
            EditorEvent::Submitted(text) => self.submit(text, self.steering),
        }
    }

    /// Keys that belong to a question: all of them while its answer is being written, single ones while nothing is.
    fn question_key(&mut self, key: KeyEvent) -> Option<ScreenAction> {
        if key.code == KeyCode::Esc && self.dialog.is_none() && !self.postponed.is_empty() {
            self.postponed.clear();
            self.sync_dialog();
            return Some(ScreenAction::Nothing);
        }
        let question = self.question()?.clone();
        let dialog = self.dialog.as_mut()?;
        if !dialog.is_writing() && !self.editor.is_empty() {
            return None;
        }
        match dialog.key(key, &question) {
            KeyOutcome::Ignored if dialog.is_writing() => Some(ScreenAction::Nothing),
            KeyOutcome::Ignored => None,
            KeyOutcome::Changed => Some(ScreenAction::Nothing),
            KeyOutcome::Next => {
                self.next_question();
                Some(ScreenAction::Nothing)
            }
            KeyOutcome::Postponed => {
                self.postponed.insert(question.id);
                self.dialog = None;
                self.sync_dialog();
                Some(ScreenAction::Nothing)
            }
            KeyOutcome::EditOutside(text) => Some(ScreenAction::EditOutside(text)),
            KeyOutcome::Reply(reply) => {
                self.allowing_all |= reply == DialogReply::ApproveAll;
                Some(ScreenAction::Answer(reply))
            }
        }
    }

    fn next_question(&mut self) {
        let questions = self.turn.as_ref().map_or(&[][..], TurnTranscript::questions);
        let shown = self.dialog.as_ref().map(QuestionDialog::id);
        let index = questions.iter().position(|question| Some(&question.id) == shown).unwrap_or(0);
        let next = questions.get((index + 1) % questions.len().max(1));
        self.dialog = next.map(|question| QuestionDialog::new(question, self.words));
    }

    /// Keys about messages that go into the running turn: Alt-Enter sends it for the other moment than Enter, Up takes the last one back.
    fn steering_key(&mut self, key: KeyEvent) -> Option<ScreenAction> {
        if !self.is_running() {
            return None;
        }
        match key.code {
            KeyCode::Enter if key.modifiers.contains(KeyModifiers::ALT) => match self.editor.submit() {
                EditorEvent::Submitted(text) => Some(self.submit(text, opposite_timing(self.steering))),
                _ => Some(ScreenAction::Nothing),
            },
            KeyCode::Up if self.editor.is_empty() => {
                let retracted = self.queue.retract_last()?;
                self.editor.fill(&retracted.text);
                Some(match retracted.when {
                    MessageTiming::NextStep => ScreenAction::RetractMessage(retracted.id),
                    MessageTiming::AfterTurn => ScreenAction::Nothing,
                })
            }
            _ => None,
        }
    }

    fn submit(&mut self, text: String, when: MessageTiming) -> ScreenAction {
        match (slash_command::parse(&text), self.is_running()) {
            (slash_command::SlashCommand::Quit, _) => ScreenAction::Leave,
            (slash_command::SlashCommand::Message(message), true) => self.queue_message(message, when),
            (slash_command::SlashCommand::After(Some(message)), true) => {
                self.queue_message(message, MessageTiming::AfterTurn)
            }
            (slash_command::SlashCommand::After(Some(message)), false) => {
                ScreenAction::Line(slash_command::SlashCommand::Message(message))
            }
            (line, _) => ScreenAction::Line(line),
        }
    }

    fn queue_message(&mut self, message: String, when: MessageTiming) -> ScreenAction {
        match self.queue.push(message, when) {
            Ok(queued) if when == MessageTiming::NextStep => ScreenAction::QueueMessage(queued),
            Ok(_) => ScreenAction::Nothing,
            // Nothing is lost: what does not fit stays in the line.
            Err(message) => {
                self.editor.fill(&message);
                ScreenAction::Nothing
            }
        }
    }

    /// The next frame. Final lines are returned once.
    pub(crate) fn frame(&mut self, now: i64, columns: usize, rows: usize) -> ScreenFrame {
        let mut frame = ScreenFrame { settled: std::mem::take(&mut self.settled), ..ScreenFrame::default() };
        let words = self.words;
        let running = self.turn.is_some();
        if self.turn.is_some() {
            let question = self.question().cloned();
            let mut printed = Vec::new();
            let (question_lines, cursor) = match &question {
                Some(question) => self.question_lines(question, now, columns, rows, &mut printed),
                None => (Vec::new(), None),
            };
            let Some(turn) = &mut self.turn else { return frame };
            let shown = turn.render(now, columns);
            frame.settled.extend(shown.settled);
            frame.settled.extend(printed);
            frame.live.extend(shown.live);
            frame.live.push(StyledLine::default());
            if !question_lines.is_empty() {
                let top = frame.live.len();
                frame.cursor = cursor.map(|cursor| CursorPosition { row: top + cursor.row, ..cursor });
                frame.live.extend(question_lines);
                frame.live.push(StyledLine::default());
            }
            frame.live.push(status(turn, self.stopping, question.is_some(), words, now).truncated(columns));
            frame.live.extend(self.queue.lines(words).map(|line| line.truncated(columns)));
        } else {
            frame.live.push(StyledLine::default());
            for name in &self.attached {
                let line = format!("  ▣ {name} ({})", words.image_attached());
                frame.live.push(StyledLine::new(&line, TextStyle::DIM).truncated(columns));
            }
        }
        // While a turn runs, the line to write in appears with the first key.
        if frame.cursor.is_none() && (!running || !self.editor.is_empty()) {
            let (lines, cursor) = self.editor.view(PROMPT, self.placeholder, columns);
            frame.cursor = Some(CursorPosition { row: frame.live.len() + cursor.row, ..cursor });
            frame.live.extend(lines);
            if self.leave_armed {
                frame.live.push(StyledLine::new(&format!("  {}", words.leave_hint()), TextStyle::DIM));
            } else if running {
                let hint = match self.steering {
                    MessageTiming::NextStep => words.placeholder_running(),
                    MessageTiming::AfterTurn => words.placeholder_running_after(),
                };
                let hint = format!("  {hint}");
                frame.live.push(StyledLine::new(&hint, TextStyle::DIM).truncated(columns));
            }
        }
        frame
    }

    /// The question and how far its answer is. All of what is to be decided on must be there to be read: what the
    /// screen cannot hold is printed, once.
    fn question_lines(
        &mut self,
        question: &PendingQuestion,
        now: i64,
        columns: usize,
        rows: usize,
        settled: &mut Vec<StyledLine>,
    ) -> (Vec<StyledLine>, Option<CursorPosition>) {
        let (Some(dialog), Some(turn)) = (&self.dialog, &self.turn) else { return (Vec::new(), None) };
        let questions = turn.questions();
        let index = questions.iter().position(|one| one.id == question.id).unwrap_or(0);
        let bar = StyledLine::new("┃ ", TextStyle::ink(TextColor::Yellow));
        let room = columns.saturating_sub(2);
        let with_bar = |line: StyledLine| line.after(&bar);
        let question_text = question.lines(now, (index, questions.len()), self.words);
        let mut lines: Vec<StyledLine> =
            question_text.iter().flat_map(|line| line.wrapped(room)).map(with_bar).collect();
        let (answer, cursor) = dialog.lines(question, questions.len(), room);
        if lines.len() + answer.len() + ROWS_AROUND_QUESTION > rows {
            if self.printed_question.as_ref() != Some(&question.id) {
                settled.extend(lines.iter().cloned());
                self.printed_question = Some(question.id.clone());
            }
            // Which one it is, and its time, stay in sight.
            lines.truncate(2);
        }
        let cursor =
            cursor.map(|index| CursorPosition { row: index.row + lines.len(), column: index.column + 2 });
        lines.extend(answer.into_iter().map(with_bar));
        (lines, cursor)
    }
}

/// The moment that Alt-Enter means.
fn opposite_timing(when: MessageTiming) -> MessageTiming {
    match when {
        MessageTiming::NextStep => MessageTiming::AfterTurn,
        MessageTiming::AfterTurn => MessageTiming::NextStep,
    }
}

/// The status line: spinner, activity, elapsed time, and the key that stops the turn.
fn status(turn: &TurnTranscript, stopping: bool, asking: bool, words: UiText, now: i64) -> StyledLine {
    let waiting = !turn.questions().is_empty();
    let ink = if waiting || stopping { TextColor::Yellow } else { TextColor::Cyan };
    let mut line = StyledLine::new(if waiting { "?" } else { spinner(now) }, TextStyle::bold_ink(ink));
    let what = match (stopping, waiting && !asking) {
        (true, _) => words.stopping().to_owned(),
        (false, true) => words.later_hint().to_owned(),
        (false, false) => turn.status(now),
    };
    line.push(&format!(" {what}"), TextStyle::ink(ink));
    let hint = if stopping { words.leave_hint() } else { words.stop_hint() };
    line.push(&format!(" · {} · {hint}", turn.elapsed(now)), TextStyle::DIM);
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::UiLanguage;

    fn screen() -> ChatScreen {
        ChatScreen::new(UiText(UiLanguage::English), &["say hi".to_owned()])
    }

    fn typed(screen: &mut ChatScreen, text: &str) -> ScreenAction {
        let mut last = ScreenAction::Nothing;
        for char in text.chars() {
            last = screen.key(match char {
                '\n' => KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE),
                '^' => KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
                other => KeyEvent::new(KeyCode::Char(other), KeyModifiers::NONE),
            });
        }
        last
    }

    fn lines(lines: &[StyledLine]) -> Vec<String> {
        lines.iter().map(StyledLine::plain).collect()
    }

    fn event(screen: &mut ChatScreen, seq: u64, json: &str) {
        let mut event: serde_json::Value = serde_json::from_str(json).unwrap();
        event["turn_id"] = "t".into();
        event["seq"] = seq.into();
        event["timestamp"] = 1_000.into();
        screen.apply(&serde_json::from_value(event).unwrap());
    }

    fn asking() -> ChatScreen {
        let mut screen = screen();
        screen.begin_turn("do it", 60, 1_000);
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
    fn message_starts_a_turn_and_shows_a_status_line() {
        let mut screen = screen();
        assert_eq!(
            typed(&mut screen, "hello\n"),
            ScreenAction::Line(slash_command::SlashCommand::Message("hello".into()))
        );
        screen.begin_turn("hello", 60, 1_000);
        let frame = screen.frame(2_500, 60, 24);
        assert_eq!(lines(&frame.settled), ["", "› hello", ""]);
        assert_eq!(lines(&frame.live), ["", "⠙ connecting · 1.5 s · Ctrl-C to stop"]);
        assert_eq!(frame.cursor, None);
    }

    #[test]
    fn idle_screen_shows_the_input_prompt() {
        let frame = screen().frame(0, 60, 24);
        assert_eq!(lines(&frame.live), ["", "› Type a message, Tab for an example, /help for help"]);
        assert_eq!(frame.cursor, Some(CursorPosition { row: 1, column: 2 }));
    }

    #[test]
    fn control_c_stops_the_turn_and_then_leaves() {
        let mut screen = screen();
        screen.begin_turn("hello", 60, 1_000);
        assert_eq!(typed(&mut screen, "^"), ScreenAction::Stop);
        assert!(lines(&screen.frame(1_000, 60, 24).live)[1].contains("stopping"));
        assert_eq!(typed(&mut screen, "^"), ScreenAction::Leave);
        typed(&mut screen, "draft");
        screen.end_turn(1_000, 60);
        assert!(
            lines(&screen.frame(1_000, 60, 24).live).join("\n").contains("› draft"),
            "what was written stays"
        );
        let mut idle = self::screen();
        assert_eq!(typed(&mut idle, "abc^"), ScreenAction::Nothing);
        assert_eq!(typed(&mut idle, "^"), ScreenAction::Nothing);
        assert_eq!(typed(&mut idle, "^"), ScreenAction::Leave);
    }

    #[test]
    fn queued_message_is_sent_next_unless_stopped() {
        let mut screen = screen();
        screen.begin_turn("one", 60, 1_000);
        let said = typed(&mut screen, "two\n");
        assert!(matches!(&said, ScreenAction::QueueMessage(queued) if queued.text == "two"), "{said:?}");
        assert_eq!(lines(&screen.frame(1_000, 60, 24).live)[2], "next step › two  (Up to take it back)");
        assert_eq!(screen.end_turn(1_000, 60).as_deref(), Some("two"));
        screen.begin_turn("two", 60, 1_000);
        typed(&mut screen, "three\n^");
        assert_eq!(screen.end_turn(1_000, 60), None, "stopping throws away what was to follow");
    }

    #[test]
    fn queued_message_can_be_retracted_until_delivered() {
        let mut screen = screen();
        screen.begin_turn("one", 60, 1_000);
        typed(&mut screen, "two\n");
        typed(&mut screen, "/after three\n");
        typed(&mut screen, "four");
        let alt_enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT);
        assert_eq!(screen.key(alt_enter), ScreenAction::Nothing);
        let waiting = |screen: &mut ChatScreen| lines(&screen.frame(1_000, 60, 24).live)[2..].join("|");
        assert_eq!(
            waiting(&mut screen),
            "next step › two|after this reply › three|after this reply › four  (Up to take it back)"
        );
        let up = KeyEvent::new(KeyCode::Up, KeyModifiers::NONE);
        assert_eq!(screen.key(up), ScreenAction::Nothing);
        assert!(waiting(&mut screen).contains("› four"), "it is in the line again");
        typed(&mut screen, "^");
        let mut screen = self::screen();
        screen.begin_turn("one", 60, 1_000);
        typed(&mut screen, "two\n");
        let retracted = screen.key(up);
        assert_eq!(retracted, ScreenAction::RetractMessage("msg_1".into()));
        let again = typed(&mut screen, "!\n");
        assert!(matches!(&again, ScreenAction::QueueMessage(queued) if queued.text == "two!"), "{again:?}");
        event(
            &mut screen,
            1,
            r#"{"type":"user_message","block":0,"id":"msg_2","input":[{"type":"text","text":"two!"}]}"#,
        );
        let frame = screen.frame(1_000, 60, 24);
        assert_eq!(lines(&frame.settled).last().map(String::as_str), Some("› two!"));
        assert_eq!(screen.end_turn(1_000, 60), None);
    }

    #[test]
    fn steering_setting_can_delay_messages_until_turn_end() {
        let mut screen = screen();
        screen.steering = MessageTiming::AfterTurn;
        screen.begin_turn("one", 60, 1_000);
        assert_eq!(typed(&mut screen, "two\n"), ScreenAction::Nothing, "the turn is told nothing");
        typed(&mut screen, "three");
        let hint = lines(&screen.frame(1_000, 60, 24).live).join("\n");
        assert!(hint.contains("Enter: after this reply · Alt-Enter: at the next step"), "{hint}");
        let alt_enter = screen.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT));
        assert!(
            matches!(&alt_enter, ScreenAction::QueueMessage(queued) if queued.text == "three"),
            "{alt_enter:?}"
        );
        let waiting = lines(&screen.frame(1_000, 60, 24).live)[2..].join("|");
        assert_eq!(waiting, "after this reply › two|next step › three  (Up to take it back)");
        assert_eq!(screen.end_turn(1_000, 60).as_deref(), Some("three"), "it was written for this turn");
        assert_eq!(screen.end_turn(1_000, 60).as_deref(), Some("two"));
    }

    #[test]
    fn keys_answer_the_visible_approval() {
        let approved = |screen: &mut ChatScreen, key| match typed(screen, key) {
            ScreenAction::Answer(reply) => reply,
            other => panic!("{key}: {other:?}"),
        };
        assert!(matches!(approved(&mut asking(), "a"), DialogReply::Decide(id, _) if id == "q".into()));
        assert!(
            matches!(approved(&mut asking(), "dnot now\n"), DialogReply::Decide(id, _) if id == "q".into())
        );
        let mut screen = asking();
        assert!(!screen.auto_approves());
        assert_eq!(approved(&mut screen, "A"), DialogReply::ApproveAll);
        assert!(screen.auto_approves());
        let mut screen = asking();
        let live = lines(&screen.frame(1_000, 60, 24).live).join("\n");
        assert!(live.contains("┃ Allow this call?  x.y") && live.contains("? waiting for you"), "{live}");
        assert_eq!(typed(&mut screen, "ma"), ScreenAction::Nothing, "what is being written is no answer");
    }

    #[test]
    fn esc_hides_and_shows_the_question() {
        let mut screen = asking();
        let esc = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
        assert_eq!(screen.key(esc), ScreenAction::Nothing);
        let live = lines(&screen.frame(1_000, 60, 24).live).join("\n");
        assert!(!live.contains('┃') && live.contains("a question is waiting · Esc to show it"), "{live}");
        assert!(
            matches!(typed(&mut screen, "and\n"), ScreenAction::QueueMessage(_)),
            "meanwhile one can write"
        );
        screen.key(esc);
        assert!(lines(&screen.frame(1_000, 60, 24).live).join("\n").contains("┃ Allow this call?  x.y"));
    }

    #[test]
    fn question_longer_than_the_screen_is_printed_once() {
        let mut screen = asking();
        let frame = screen.frame(1_000, 60, 9);
        assert!(lines(&frame.settled).join("\n").contains("┃ Allow this call?  x.y"), "{frame:?}");
        assert!(lines(&frame.live).join("\n").contains("[a] approve"), "{frame:?}");
        let again = screen.frame(1_000, 60, 9);
        assert_eq!(lines(&again.settled), [""; 0]);
    }
}
