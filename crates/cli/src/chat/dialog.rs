//! Answering a question with keys: a small machine from key to answer. No IO.

use super::form::{Filled, Form};
use super::question::{Question, Wants, editable, edited};
use crate::messages::Words;
use crate::terminal::line_editor::{Edit, Had, LineEditor};
use crate::terminal::painter::CursorAt;
use crate::terminal::text::{Ink, Line, Style, width};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use throughline::{Answer, Decision, Remember, Scope, ToolAnswer};
use throughline_engine::{ApprovalId, Constraints};
use throughline_wire::visible;

/// Lines of an editor for arguments; longer ones scroll in it.
const EDITOR_ROWS: usize = 12;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Run this one, or do not.
    Decide(ApprovalId, Answer),
    /// Run this one and all that ask in this turn.
    ApproveAll,
    /// What the tool wanted to know.
    Told(ApprovalId, ToolAnswer),
}

/// What a key came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Pressed {
    /// It means nothing here.
    Ignored,
    /// Something else is shown now.
    Changed,
    /// The next question is to be shown.
    Next,
    /// The question is put aside.
    Later,
    /// The person is done.
    Reply(Reply),
    /// This text is to be edited in a program of the person's own; [`Dialog::edited_outside`] takes it back.
    EditOutside(String),
}

/// A question under way to its answer.
#[derive(Debug)]
pub struct Dialog {
    id: ApprovalId,
    words: Words,
    stage: Stage,
    editor: LineEditor,
    remember: Option<Remember>,
    filled: Filled,
    /// Why the last thing typed was not taken.
    fault: Option<String>,
    /// Where the answer was given.
    sent: Option<Stage>,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    /// Single keys.
    Choosing,
    Reason,
    Editing,
    HowLong,
    Which(Scope),
    Filling,
    /// All fields are there.
    Filled,
    /// The answer is out; what comes of it is told by the turn.
    Sent,
}

impl Dialog {
    /// At the start of a question.
    pub fn new(question: &Question, words: Words) -> Self {
        let stage = match &question.wants {
            Wants::Fields(form) if !form.fields.is_empty() => Stage::Filling,
            Wants::Fields(_) => Stage::Filled,
            Wants::Approval { .. } | Wants::Address(_) => Stage::Choosing,
        };
        Self {
            id: question.id.clone(),
            words,
            stage,
            editor: LineEditor::default(),
            remember: None,
            filled: Filled::default(),
            fault: None,
            sent: None,
        }
    }

    /// Which question.
    pub fn id(&self) -> &ApprovalId {
        &self.id
    }

    /// Something is being written: every key belongs to it.
    pub fn is_writing(&self) -> bool {
        matches!(self.stage, Stage::Reason | Stage::Editing | Stage::Filling)
    }

    /// The answer is out.
    pub fn is_sent(&self) -> bool {
        self.stage == Stage::Sent
    }

    /// The answer was not taken: what was edited comes back to the editor, with everything that was written.
    pub fn refuse(&mut self, why: String) {
        if let Some(stage) = self.sent.take() {
            self.stage = stage;
        }
        self.fault = Some(why);
    }

    /// What the person's own program made of the arguments.
    pub fn edited_outside(&mut self, text: Result<String, String>) {
        match text {
            Ok(text) => {
                self.editor.fill(text.trim_end());
                self.fault = None;
            }
            Err(why) => self.fault = Some(why),
        }
        self.stage = Stage::Editing;
    }

    /// Takes pasted text, where something is being written.
    pub fn paste(&mut self, text: &str) -> bool {
        if self.is_writing() {
            self.editor.paste(text);
        }
        self.is_writing()
    }

    /// What a key means.
    pub fn key(&mut self, key: KeyEvent, question: &Question) -> Pressed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match self.stage {
            Stage::Sent => Pressed::Ignored,
            Stage::Reason | Stage::Editing | Stage::Filling => self.written(key, question),
            _ if control || key.modifiers.contains(KeyModifiers::ALT) => Pressed::Ignored,
            Stage::Choosing => self.chosen(key.code, question),
            Stage::HowLong | Stage::Which(_) => self.remembered(key.code),
            Stage::Filled => self.sending(key.code, question),
        }
    }

    fn chosen(&mut self, code: KeyCode, question: &Question) -> Pressed {
        let approval = matches!(question.wants, Wants::Approval { .. });
        match (code, approval) {
            (KeyCode::Esc, _) => Pressed::Later,
            (KeyCode::Tab, _) => Pressed::Next,
            (KeyCode::Char('a' | 'y'), true) => self.decide(Answer::approve(), question),
            (KeyCode::Char('A'), true) => self.send(Reply::ApproveAll),
            (KeyCode::Char('d' | 'n'), true) => self.write(Stage::Reason, ""),
            (KeyCode::Char('r'), true) if question.can_be_remembered() => self.show(Stage::HowLong),
            (KeyCode::Char('e'), true) => {
                let Wants::Approval { arguments } = &question.wants else { return Pressed::Ignored };
                self.write(Stage::Editing, &editable(arguments))
            }
            (KeyCode::Char('a' | 'y'), false) => self.tell(ToolAnswer::Accept { content: None }),
            (KeyCode::Char('d' | 'n'), false) => self.tell(ToolAnswer::Decline),
            (KeyCode::Char('x'), false) => self.tell(ToolAnswer::Cancel),
            _ => Pressed::Ignored,
        }
    }

    fn remembered(&mut self, code: KeyCode) -> Pressed {
        let scope = |scope| Some(Stage::Which(scope));
        let next = match (&self.stage, code) {
            (Stage::HowLong, KeyCode::Char('t' | '1')) => scope(Scope::Turn),
            (Stage::HowLong, KeyCode::Char('c' | '2')) => scope(Scope::Conversation),
            (Stage::HowLong, KeyCode::Char('w' | '3')) => scope(Scope::Always),
            (Stage::HowLong, KeyCode::Esc) => {
                self.remember = None;
                Some(Stage::Choosing)
            }
            (Stage::Which(scope), KeyCode::Char('x' | '1')) => {
                self.remember = Some(Remember::exactly(*scope));
                Some(Stage::Choosing)
            }
            (Stage::Which(scope), KeyCode::Char('y' | '2')) => {
                self.remember = Some(Remember::any(*scope));
                Some(Stage::Choosing)
            }
            (Stage::Which(_), KeyCode::Esc) => Some(Stage::HowLong),
            _ => None,
        };
        next.map_or(Pressed::Ignored, |stage| self.show(stage))
    }

    /// Keys while something is written.
    fn written(&mut self, key: KeyEvent, question: &Question) -> Pressed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let form = match &question.wants {
            Wants::Fields(form) => Some(form),
            Wants::Approval { .. } | Wants::Address(_) => None,
        };
        match (key.code, form) {
            (KeyCode::Esc, None) => return self.show(Stage::Choosing),
            (KeyCode::Esc, Some(_)) if !self.editor.is_empty() => self.editor.fill(""),
            (KeyCode::Esc, Some(form)) if self.filled.shown(form, self.words).is_empty() => {
                return Pressed::Later;
            }
            (KeyCode::Esc, Some(form)) => {
                let before = self.filled.back(form, self.words);
                self.editor.fill(&before);
            }
            (KeyCode::Char('d'), Some(_)) if control && self.editor.is_empty() => {
                return self.tell(ToolAnswer::Decline);
            }
            (KeyCode::Char('x'), Some(_)) if control => return self.tell(ToolAnswer::Cancel),
            (KeyCode::Char('g'), None) if control && self.stage == Stage::Editing => {
                return Pressed::EditOutside(self.editor.text().to_owned());
            }
            (KeyCode::Enter, _) if key.modifiers.is_empty() => return self.entered(form, question),
            _ => match self.editor.key(key) {
                Edit::Interrupted(Had::Nothing) | Edit::Ended => return self.show(Stage::Choosing),
                Edit::Ignored => return Pressed::Ignored,
                _ => {}
            },
        }
        self.fault = None;
        Pressed::Changed
    }

    fn entered(&mut self, form: Option<&Form>, question: &Question) -> Pressed {
        let text = self.editor.text().to_owned();
        match (&self.stage, form) {
            (Stage::Reason, _) => {
                let reason = Some(text.trim().to_owned()).filter(|reason| !reason.is_empty());
                self.decide(Answer::plain(Decision::Deny, reason), question)
            }
            (Stage::Editing, _) => match edited(&text, self.words) {
                Ok(arguments) => self.decide(Answer::approve().with_arguments(arguments), question),
                Err(why) => {
                    self.fault = Some(why);
                    Pressed::Changed
                }
            },
            (_, Some(form)) => {
                match self.filled.take(form, &text, self.words) {
                    Ok(()) => {
                        self.editor.fill("");
                        self.fault = None;
                    }
                    Err(why) => self.fault = Some(why),
                }
                if self.filled.next(form).is_none() {
                    self.stage = Stage::Filled;
                }
                Pressed::Changed
            }
            _ => Pressed::Ignored,
        }
    }

    /// Keys when every field is filled in.
    fn sending(&mut self, code: KeyCode, question: &Question) -> Pressed {
        let Wants::Fields(form) = &question.wants else { return Pressed::Ignored };
        match code {
            KeyCode::Enter => self.tell(ToolAnswer::Accept { content: Some(self.filled.answer(form)) }),
            KeyCode::Char('d') => self.tell(ToolAnswer::Decline),
            KeyCode::Char('x') => self.tell(ToolAnswer::Cancel),
            KeyCode::Esc if form.fields.is_empty() => Pressed::Later,
            KeyCode::Esc => {
                let before = self.filled.back(form, self.words);
                self.write(Stage::Filling, &before)
            }
            KeyCode::Tab => Pressed::Next,
            _ => Pressed::Ignored,
        }
    }

    fn show(&mut self, stage: Stage) -> Pressed {
        (self.stage, self.fault) = (stage, None);
        Pressed::Changed
    }

    fn write(&mut self, stage: Stage, text: &str) -> Pressed {
        self.editor.fill(text);
        self.show(stage)
    }

    /// The answer holds for what was looked at, and for nothing else. R: A3
    fn decide(&mut self, mut answer: Answer, question: &Question) -> Pressed {
        answer.remember.clone_from(&self.remember);
        self.send(Reply::Decide(self.id.clone(), answer.for_arguments(question.arguments_hash.clone())))
    }

    fn tell(&mut self, told: ToolAnswer) -> Pressed {
        self.send(Reply::Told(self.id.clone(), told))
    }

    fn send(&mut self, reply: Reply) -> Pressed {
        self.sent = Some(std::mem::replace(&mut self.stage, Stage::Sent));
        self.fault = None;
        Pressed::Reply(reply)
    }

    /// What stands under the question: what can be pressed, or what is being written; wrapped to `columns`.
    pub fn lines(&self, question: &Question, count: usize, columns: usize) -> (Vec<Line>, Option<CursorAt>) {
        let words = self.words;
        let plain = |text: &str| Line::new(text, Style::PLAIN).wrapped(columns);
        let bold = |text: &str| Line::new(text, Style::BOLD).wrapped(columns);
        let mut lines = Vec::new();
        if let Some(remember) = &self.remember {
            let text = remembered(remember.scope, remember.constraints == Constraints::Any, words);
            lines.extend(Line::new(&text, Style::ink(Ink::Green)).wrapped(columns));
        }
        let mut cursor = None;
        match (&self.stage, &question.wants) {
            (Stage::Choosing, Wants::Approval { .. }) => {
                let mut keys = words.keys_decide().to_owned();
                if question.can_be_remembered() {
                    keys.push_str(&format!("  {}", words.key_remember()));
                }
                if count > 1 {
                    keys.push_str(&format!("  {}  {}", words.key_all(), words.key_next()));
                }
                keys.push_str(&format!("  {}", words.key_later()));
                lines.extend(bold(&keys));
            }
            (Stage::Choosing, _) => lines.extend(bold(words.url_keys())),
            (Stage::HowLong, _) => {
                lines.extend(plain(words.remember_how_long()));
                lines.extend(bold(words.remember_scopes()));
            }
            (Stage::Which(scope), _) => {
                lines.extend(plain(&format!("{} · {}", scope_words(*scope, words), words.remember_which())));
                lines.extend(bold(words.remember_arguments()));
            }
            (Stage::Reason, _) => cursor = self.editor_lines(words.reason_prompt(), "", columns, &mut lines),
            (Stage::Editing, _) => {
                lines.extend(bold(words.edit_title()));
                cursor = self.editor_lines("  ", "", columns, &mut lines);
                lines.extend(self.fault_lines(columns));
                lines.extend(Line::new(words.edit_keys(), Style::DIM).wrapped(columns));
            }
            (Stage::Filling | Stage::Filled, Wants::Fields(form)) => {
                for (title, value) in self.filled.shown(form, words) {
                    let mut line = Line::new(&format!("{}: ", visible::escape(&title)), Style::DIM);
                    line.push(&visible::escape(&value), Style::PLAIN);
                    lines.extend(line.wrapped(columns));
                }
                if let Some(field) = self.filled.next(form) {
                    if !field.about.is_empty() {
                        lines.extend(Line::new(&visible::escape(&field.about), Style::DIM).wrapped(columns));
                    }
                    let hint = field.hint(words);
                    let prompt = format!("{}: ", visible::escape(&field.title));
                    cursor = self.editor_lines(&prompt, &hint, columns, &mut lines);
                    lines.extend(self.fault_lines(columns));
                    lines.extend(Line::new(words.form_keys(), Style::DIM).wrapped(columns));
                } else {
                    lines.extend(self.fault_lines(columns));
                    lines.extend(bold(words.form_send()));
                }
            }
            (Stage::Sent, _) => lines.extend(Line::new(words.sending(), Style::DIM).wrapped(columns)),
            (Stage::Filling | Stage::Filled, _) => {}
        }
        if matches!(self.stage, Stage::Reason | Stage::Choosing) {
            lines.extend(self.fault_lines(columns));
        }
        (lines, cursor)
    }

    fn fault_lines(&self, columns: usize) -> Vec<Line> {
        let lines = self.fault.iter().flat_map(|why| why.lines()).enumerate();
        let marked = lines.map(|(at, line)| format!("{} {line}", if at == 0 { "✘" } else { " " }));
        marked.flat_map(|line| Line::new(&line, Style::ink(Ink::Red)).wrapped(columns)).collect()
    }

    /// The editor behind a prompt; a prompt that takes more than half of a line has one of its own.
    fn editor_lines(
        &self,
        prompt: &str,
        placeholder: &str,
        columns: usize,
        lines: &mut Vec<Line>,
    ) -> Option<CursorAt> {
        let prompt = if width(prompt) * 2 > columns {
            lines.extend(Line::new(prompt.trim_end(), Style::PLAIN).wrapped(columns));
            "  "
        } else {
            prompt
        };
        let (shown, cursor) = self.editor.view(prompt, placeholder, columns);
        // A window of the text around the cursor.
        let first = (cursor.row + 1).saturating_sub(EDITOR_ROWS);
        let row = lines.len() + cursor.row - first;
        lines.extend(shown.into_iter().skip(first).take(EDITOR_ROWS));
        Some(CursorAt { row, ..cursor })
    }
}

/// "remembered for this turn · any arguments".
pub fn remembered(scope: Scope, any: bool, words: Words) -> String {
    let calls = if any { words.any_arguments() } else { words.these_arguments() };
    format!("{} · {calls}", scope_words(scope, words))
}

/// "remembered for this turn".
pub fn scope_words(scope: Scope, words: Words) -> &'static str {
    match scope {
        Scope::Call => words.remembered_call(),
        Scope::Turn => words.remembered_turn(),
        Scope::Conversation => words.remembered_conversation(),
        Scope::Always => words.remembered_always(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Lang;
    use serde_json::json;

    fn question(wants: Wants) -> Question {
        Question {
            id: "q".into(),
            call: None,
            tool: "demo.calendar".into(),
            source: "builtin".into(),
            effect: "write".into(),
            question: String::new(),
            rule: "effect:write".into(),
            expires_at: None,
            arguments_hash: "hash".into(),
            wants,
        }
    }

    fn approval() -> Question {
        question(Wants::Approval { arguments: "{\"city\":\"Paris\"}".into() })
    }

    fn fields() -> Question {
        let schema = json!({
            "properties": {"name": {"type": "string"}, "seats": {"type": "integer", "default": 2}},
            "required": ["name"]
        });
        question(Wants::Fields(Form::of(&schema)))
    }

    /// Presses a script: `⏎` Enter, `⎋` Esc, `⇥` Tab, `⌫` Backspace, `^x` Ctrl-x, the rest is text.
    fn pressed(question: &Question, script: &str) -> (Dialog, Pressed) {
        let mut dialog = Dialog::new(question, Words(Lang::English));
        let mut last = Pressed::Ignored;
        let mut chars = script.chars();
        while let Some(char) = chars.next() {
            let (code, modifiers) = match char {
                '⏎' => (KeyCode::Enter, KeyModifiers::NONE),
                '⎋' => (KeyCode::Esc, KeyModifiers::NONE),
                '⇥' => (KeyCode::Tab, KeyModifiers::NONE),
                '⌫' => (KeyCode::Backspace, KeyModifiers::NONE),
                '^' => (KeyCode::Char(chars.next().unwrap()), KeyModifiers::CONTROL),
                other => (KeyCode::Char(other), KeyModifiers::NONE),
            };
            last = dialog.key(KeyEvent::new(code, modifiers), question);
        }
        (dialog, last)
    }

    #[track_caller]
    fn check(question: &Question, script: &str, expect: Pressed) {
        assert_eq!(pressed(question, script).1, expect, "{script}");
    }

    fn shown(dialog: &Dialog, question: &Question) -> String {
        let (lines, _) = dialog.lines(question, 1, 70);
        lines.iter().map(|line| line.plain() + "\n").collect()
    }

    fn decided(answer: Answer) -> Pressed {
        Pressed::Reply(Reply::Decide("q".into(), answer.for_arguments("hash")))
    }

    // R: A2
    #[test]
    fn keys_decide() {
        let approval = approval();
        let deny = |reason: Option<&str>| Answer::plain(Decision::Deny, reason.map(str::to_owned));
        check(&approval, "a", decided(Answer::approve()));
        check(&approval, "y", decided(Answer::approve()));
        check(&approval, "A", Pressed::Reply(Reply::ApproveAll));
        check(&approval, "d⏎", decided(deny(None)));
        check(&approval, "dnot today⏎", decided(deny(Some("not today"))));
        check(&approval, "dno⎋a", decided(Answer::approve()));
        check(&approval, "⎋", Pressed::Later);
        check(&approval, "⇥", Pressed::Next);
        check(&approval, "z", Pressed::Ignored);
        check(&approval, "^a", Pressed::Ignored);
        check(&approval, "rtxa", decided(Answer::approve().remember(Remember::exactly(Scope::Turn))));
        check(&approval, "rcyd⏎", decided(deny(None).remember(Remember::any(Scope::Conversation))));
        check(&approval, "rw⎋w1a", decided(Answer::approve().remember(Remember::exactly(Scope::Always))));
        check(&approval, "rtxr⎋a", decided(Answer::approve()));
        let manual = Question { rule: "manual".into(), ..approval.clone() };
        check(&manual, "r", Pressed::Ignored);
        check(&approval, "aa", Pressed::Ignored);
    }

    // R: A2
    #[test]
    fn arguments_are_edited_until_they_are_arguments() {
        let approval = approval();
        let (mut dialog, pressed_last) = pressed(&approval, "e^a^k");
        assert_eq!(pressed_last, Pressed::Changed);
        assert!(
            shown(&dialog, &approval).starts_with("Change the arguments\n"),
            "{}",
            shown(&dialog, &approval)
        );
        dialog.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE), &approval);
        assert!(shown(&dialog, &approval).contains("✘ not JSON"), "{}", shown(&dialog, &approval));
        dialog.edited_outside(Ok("{\"city\": \"Oslo\"}\n".into()));
        let sent = dialog.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE), &approval);
        assert_eq!(sent, decided(Answer::approve().with_arguments(json!({"city": "Oslo"}))));
        assert!(dialog.is_sent());
        dialog.refuse("/city: expected a city".into());
        let text = shown(&dialog, &approval);
        assert!(text.contains("Oslo") && text.contains("✘ /city"), "{text}");
        check(&approval, "e^g", Pressed::EditOutside("{\n  \"city\": \"Paris\"\n}".into()));
    }

    // R: A2
    #[test]
    fn a_tools_question_is_a_form() {
        let fields = fields();
        let told = |told| Pressed::Reply(Reply::Told("q".into(), told));
        check(
            &fields,
            "Ada⏎⏎⏎",
            told(ToolAnswer::Accept { content: Some(json!({"name": "Ada", "seats": 2})) }),
        );
        check(
            &fields,
            "Ada⏎x⏎⌫3⏎⏎",
            told(ToolAnswer::Accept { content: Some(json!({"name": "Ada", "seats": 3})) }),
        );
        check(
            &fields,
            "Ada⏎⎋Bo⏎⏎⏎",
            told(ToolAnswer::Accept { content: Some(json!({"name": "AdaBo", "seats": 2})) }),
        );
        check(&fields, "^d", told(ToolAnswer::Decline));
        check(&fields, "Ada^x", told(ToolAnswer::Cancel));
        check(&fields, "Ada⏎⏎d", told(ToolAnswer::Decline));
        check(&fields, "⎋", Pressed::Later);
        let (dialog, _) = pressed(&fields, "Ada⏎x⏎");
        let text = shown(&dialog, &fields);
        assert!(text.starts_with("name: Ada\nseats: x\n✘ a whole number\n"), "{text}");
        let address = question(Wants::Address("https://example.com/\u{202e}".into()));
        check(&address, "a", told(ToolAnswer::Accept { content: None }));
        check(&address, "d", told(ToolAnswer::Decline));
    }

    #[test]
    fn long_arguments_scroll_around_the_cursor() {
        let long = json!({"lines": (0..40).collect::<Vec<_>>()}).to_string();
        let long = question(Wants::Approval { arguments: long });
        let (dialog, _) = pressed(&long, "e");
        let (lines, cursor) = dialog.lines(&long, 1, 60);
        assert_eq!(lines.len(), 1 + EDITOR_ROWS + 2, "{lines:?}");
        assert_eq!(cursor.map(|cursor| cursor.row), Some(EDITOR_ROWS), "the cursor stands at the end");
    }
}
