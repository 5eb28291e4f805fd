//! Answering a question with keys: a small machine from key to answer. No IO.

use super::form::{FormAnswers, QuestionForm};
use super::question::{PendingQuestion, QuestionInput, editable, parse_edited};
use crate::messages::UiText;
use crate::terminal::line_editor::{EditorEvent, InterruptedText, LineEditor};
use crate::terminal::painter::CursorPosition;
use crate::terminal::text::{StyledLine, TextColor, TextStyle, width};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use throughline::{ApprovalDecision, ApprovalResponse, ApprovalScope, RememberRequest, ToolAnswer};
use throughline_engine::{ApprovalId, ArgumentConstraints};
use throughline_wire::display_escape;

/// Lines of an editor for arguments; longer ones scroll in it.
const EDITOR_ROWS: usize = 12;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DialogReply {
    /// Run this one, or do not.
    Decide(ApprovalId, ApprovalResponse),
    /// Run this one and all that ask in this turn.
    ApproveAll,
    /// Answer to an elicitation.
    ToolAnswered(ApprovalId, ToolAnswer),
}

/// Effect of a key press.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeyOutcome {
    /// The key has no function here.
    Ignored,
    /// The dialog has changed.
    Changed,
    /// The next question is to be shown.
    Next,
    /// The question is postponed.
    Postponed,
    /// The person is done.
    Reply(DialogReply),
    /// The text is to be edited in the user's editor; [`QuestionDialog::edited_outside`] takes the result.
    EditOutside(String),
}

/// A question under way to its answer.
#[derive(Debug)]
pub(crate) struct QuestionDialog {
    id: ApprovalId,
    words: UiText,
    stage: DialogStage,
    editor: LineEditor,
    remember: Option<RememberRequest>,
    answers: FormAnswers,
    /// Reason why the last input was not accepted.
    fault: Option<String>,
    /// Stage in which the answer was given.
    sent_from: Option<DialogStage>,
}

#[derive(Clone, Debug, PartialEq)]
enum DialogStage {
    /// Single keys.
    Choosing,
    Reason,
    /// Reason of a denial that stops the turn.
    StopReason,
    Editing,
    ChoosingScope,
    ChoosingArguments(ApprovalScope),
    Filling,
    /// All fields are filled in.
    Complete,
    /// The answer was sent; the turn reports the result.
    Sent,
}

impl QuestionDialog {
    /// The dialog at the start of a question.
    pub(crate) fn new(question: &PendingQuestion, words: UiText) -> Self {
        let stage = match &question.input {
            QuestionInput::Fields(form) if !form.fields.is_empty() => DialogStage::Filling,
            QuestionInput::Fields(_) => DialogStage::Complete,
            QuestionInput::Approval { .. } | QuestionInput::Address(_) => DialogStage::Choosing,
        };
        Self {
            id: question.id.clone(),
            words,
            stage,
            editor: LineEditor::default(),
            remember: None,
            answers: FormAnswers::default(),
            fault: None,
            sent_from: None,
        }
    }

    /// Id of the question that the dialog answers.
    pub(crate) fn id(&self) -> &ApprovalId {
        &self.id
    }

    /// True while text is being entered: every key belongs to it.
    pub(crate) fn is_writing(&self) -> bool {
        matches!(
            self.stage,
            DialogStage::Reason | DialogStage::StopReason | DialogStage::Editing | DialogStage::Filling
        )
    }

    /// The answer is out.
    pub(crate) fn is_sent(&self) -> bool {
        self.stage == DialogStage::Sent
    }

    /// Marks the answer as rejected: the editor opens again with all that was written.
    pub(crate) fn reject(&mut self, why: String) {
        if let Some(stage) = self.sent_from.take() {
            self.stage = stage;
        }
        self.fault = Some(why);
    }

    /// Takes over the arguments as the user's editor left them.
    pub(crate) fn edited_outside(&mut self, text: Result<String, String>) {
        match text {
            Ok(text) => {
                self.editor.fill(text.trim_end());
                self.fault = None;
            }
            Err(why) => self.fault = Some(why),
        }
        self.stage = DialogStage::Editing;
    }

    /// Takes pasted text, where something is being written.
    pub(crate) fn paste(&mut self, text: &str) -> bool {
        if self.is_writing() {
            self.editor.paste(text);
        }
        self.is_writing()
    }

    /// Handles a key press.
    pub(crate) fn key(&mut self, key: KeyEvent, question: &PendingQuestion) -> KeyOutcome {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match self.stage {
            DialogStage::Sent => KeyOutcome::Ignored,
            DialogStage::Reason | DialogStage::StopReason | DialogStage::Editing | DialogStage::Filling => {
                self.editing_key(key, question)
            }
            _ if control || key.modifiers.contains(KeyModifiers::ALT) => KeyOutcome::Ignored,
            DialogStage::Choosing => self.choosing_key(key.code, question),
            DialogStage::ChoosingScope | DialogStage::ChoosingArguments(_) => self.remembering_key(key.code),
            DialogStage::Complete => self.confirming_key(key.code, question),
        }
    }

    fn choosing_key(&mut self, code: KeyCode, question: &PendingQuestion) -> KeyOutcome {
        let approval = matches!(question.input, QuestionInput::Approval { .. });
        match (code, approval) {
            (KeyCode::Esc, _) => KeyOutcome::Postponed,
            (KeyCode::Tab, _) => KeyOutcome::Next,
            (KeyCode::Char('a' | 'y'), true) => self.decide(ApprovalResponse::approve(), question),
            (KeyCode::Char('A'), true) => self.send(DialogReply::ApproveAll),
            (KeyCode::Char('d' | 'n'), true) => self.enter_editor(DialogStage::Reason, ""),
            (KeyCode::Char('s'), true) => self.enter_editor(DialogStage::StopReason, ""),
            (KeyCode::Char('r'), true) if question.can_be_remembered() => {
                self.enter_stage(DialogStage::ChoosingScope)
            }
            (KeyCode::Char('e'), true) => {
                let QuestionInput::Approval { arguments } = &question.input else {
                    return KeyOutcome::Ignored;
                };
                self.enter_editor(DialogStage::Editing, &editable(arguments))
            }
            (KeyCode::Char('a' | 'y'), false) => self.answer_tool(ToolAnswer::Accept { content: None }),
            (KeyCode::Char('d' | 'n'), false) => self.answer_tool(ToolAnswer::Decline),
            (KeyCode::Char('x'), false) => self.answer_tool(ToolAnswer::Cancel),
            _ => KeyOutcome::Ignored,
        }
    }

    fn remembering_key(&mut self, code: KeyCode) -> KeyOutcome {
        let scope = |scope| Some(DialogStage::ChoosingArguments(scope));
        let next = match (&self.stage, code) {
            (DialogStage::ChoosingScope, KeyCode::Char('t' | '1')) => scope(ApprovalScope::Turn),
            (DialogStage::ChoosingScope, KeyCode::Char('c' | '2')) => scope(ApprovalScope::Conversation),
            (DialogStage::ChoosingScope, KeyCode::Char('w' | '3')) => scope(ApprovalScope::Always),
            (DialogStage::ChoosingScope, KeyCode::Esc) => {
                self.remember = None;
                Some(DialogStage::Choosing)
            }
            (DialogStage::ChoosingArguments(scope), KeyCode::Char('x' | '1')) => {
                self.remember = Some(RememberRequest::exactly(*scope));
                Some(DialogStage::Choosing)
            }
            (DialogStage::ChoosingArguments(scope), KeyCode::Char('y' | '2')) => {
                self.remember = Some(RememberRequest::any(*scope));
                Some(DialogStage::Choosing)
            }
            (DialogStage::ChoosingArguments(_), KeyCode::Esc) => Some(DialogStage::ChoosingScope),
            _ => None,
        };
        next.map_or(KeyOutcome::Ignored, |stage| self.enter_stage(stage))
    }

    /// Handles keys while text is being entered.
    fn editing_key(&mut self, key: KeyEvent, question: &PendingQuestion) -> KeyOutcome {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let form = match &question.input {
            QuestionInput::Fields(form) => Some(form),
            QuestionInput::Approval { .. } | QuestionInput::Address(_) => None,
        };
        match (key.code, form) {
            (KeyCode::Esc, None) => return self.enter_stage(DialogStage::Choosing),
            (KeyCode::Esc, Some(_)) if !self.editor.is_empty() => self.editor.fill(""),
            (KeyCode::Esc, Some(form)) if self.answers.answered_rows(form, self.words).is_empty() => {
                return KeyOutcome::Postponed;
            }
            (KeyCode::Esc, Some(form)) => {
                let previous = self.answers.undo_last(form, self.words);
                self.editor.fill(&previous);
            }
            (KeyCode::Char('d'), Some(_)) if control && self.editor.is_empty() => {
                return self.answer_tool(ToolAnswer::Decline);
            }
            (KeyCode::Char('x'), Some(_)) if control => return self.answer_tool(ToolAnswer::Cancel),
            (KeyCode::Char('g'), None) if control && self.stage == DialogStage::Editing => {
                return KeyOutcome::EditOutside(self.editor.text().to_owned());
            }
            (KeyCode::Enter, _) if key.modifiers.is_empty() => return self.submit(form, question),
            _ => match self.editor.key(key) {
                EditorEvent::Interrupted(InterruptedText::Empty) | EditorEvent::Ended => {
                    return self.enter_stage(DialogStage::Choosing);
                }
                EditorEvent::Ignored => return KeyOutcome::Ignored,
                _ => {}
            },
        }
        self.fault = None;
        KeyOutcome::Changed
    }

    fn submit(&mut self, form: Option<&QuestionForm>, question: &PendingQuestion) -> KeyOutcome {
        let text = self.editor.text().to_owned();
        let reason = || Some(text.trim().to_owned()).filter(|reason| !reason.is_empty());
        match (&self.stage, form) {
            (DialogStage::Reason, _) => {
                self.decide(ApprovalResponse::from_decision(ApprovalDecision::Deny, reason()), question)
            }
            (DialogStage::StopReason, _) => self.decide(ApprovalResponse::deny_and_stop(reason()), question),
            (DialogStage::Editing, _) => match parse_edited(&text, self.words) {
                Ok(arguments) => self.decide(ApprovalResponse::approve().with_arguments(arguments), question),
                Err(why) => {
                    self.fault = Some(why);
                    KeyOutcome::Changed
                }
            },
            (_, Some(form)) => {
                match self.answers.answer_next(form, &text, self.words) {
                    Ok(()) => {
                        self.editor.fill("");
                        self.fault = None;
                    }
                    Err(why) => self.fault = Some(why),
                }
                if self.answers.next_field(form).is_none() {
                    self.stage = DialogStage::Complete;
                }
                KeyOutcome::Changed
            }
            _ => KeyOutcome::Ignored,
        }
    }

    /// Keys when every field is filled in.
    fn confirming_key(&mut self, code: KeyCode, question: &PendingQuestion) -> KeyOutcome {
        let QuestionInput::Fields(form) = &question.input else { return KeyOutcome::Ignored };
        match code {
            KeyCode::Enter => {
                self.answer_tool(ToolAnswer::Accept { content: Some(self.answers.answer(form)) })
            }
            KeyCode::Char('d') => self.answer_tool(ToolAnswer::Decline),
            KeyCode::Char('x') => self.answer_tool(ToolAnswer::Cancel),
            KeyCode::Esc if form.fields.is_empty() => KeyOutcome::Postponed,
            KeyCode::Esc => {
                let previous = self.answers.undo_last(form, self.words);
                self.enter_editor(DialogStage::Filling, &previous)
            }
            KeyCode::Tab => KeyOutcome::Next,
            _ => KeyOutcome::Ignored,
        }
    }

    fn enter_stage(&mut self, stage: DialogStage) -> KeyOutcome {
        (self.stage, self.fault) = (stage, None);
        KeyOutcome::Changed
    }

    fn enter_editor(&mut self, stage: DialogStage, text: &str) -> KeyOutcome {
        self.editor.fill(text);
        self.enter_stage(stage)
    }

    /// Binds the answer to the question that was shown.
    fn decide(&mut self, mut answer: ApprovalResponse, question: &PendingQuestion) -> KeyOutcome {
        answer.remember.clone_from(&self.remember);
        self.send(DialogReply::Decide(self.id.clone(), answer.for_arguments(question.arguments_hash.clone())))
    }

    fn answer_tool(&mut self, answer: ToolAnswer) -> KeyOutcome {
        self.send(DialogReply::ToolAnswered(self.id.clone(), answer))
    }

    fn send(&mut self, reply: DialogReply) -> KeyOutcome {
        self.sent_from = Some(std::mem::replace(&mut self.stage, DialogStage::Sent));
        self.fault = None;
        KeyOutcome::Reply(reply)
    }

    /// Lines under the question: the keys that can be pressed, or the text being written; wrapped to `columns`.
    pub(crate) fn lines(
        &self,
        question: &PendingQuestion,
        count: usize,
        columns: usize,
    ) -> (Vec<StyledLine>, Option<CursorPosition>) {
        let words = self.words;
        let plain = |text: &str| StyledLine::new(text, TextStyle::PLAIN).wrapped(columns);
        let bold = |text: &str| StyledLine::new(text, TextStyle::BOLD).wrapped(columns);
        let mut lines = Vec::new();
        if let Some(remember) = &self.remember {
            let text = remember_text(remember.scope, remember.constraints == ArgumentConstraints::Any, words);
            lines.extend(StyledLine::new(&text, TextStyle::ink(TextColor::Green)).wrapped(columns));
        }
        let mut cursor = None;
        match (&self.stage, &question.input) {
            (DialogStage::Choosing, QuestionInput::Approval { .. }) => {
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
            (DialogStage::Choosing, _) => lines.extend(bold(words.url_keys())),
            (DialogStage::ChoosingScope, _) => {
                lines.extend(plain(words.remember_how_long()));
                lines.extend(bold(words.remember_scopes()));
            }
            (DialogStage::ChoosingArguments(scope), _) => {
                lines.extend(plain(&format!("{} · {}", scope_text(*scope, words), words.remember_which())));
                lines.extend(bold(words.remember_arguments()));
            }
            (DialogStage::StopReason, _) => {
                cursor = self.editor_lines(words.stop_reason_prompt(), "", columns, &mut lines)
            }
            (DialogStage::Reason, _) => {
                cursor = self.editor_lines(words.reason_prompt(), "", columns, &mut lines)
            }
            (DialogStage::Editing, _) => {
                lines.extend(bold(words.edit_title()));
                cursor = self.editor_lines("  ", "", columns, &mut lines);
                lines.extend(self.fault_lines(columns));
                lines.extend(StyledLine::new(words.edit_keys(), TextStyle::DIM).wrapped(columns));
            }
            (DialogStage::Filling | DialogStage::Complete, QuestionInput::Fields(form)) => {
                for (title, value) in self.answers.answered_rows(form, words) {
                    let mut line =
                        StyledLine::new(&format!("{}: ", display_escape::escape(&title)), TextStyle::DIM);
                    line.push(&display_escape::escape(&value), TextStyle::PLAIN);
                    lines.extend(line.wrapped(columns));
                }
                if let Some(field) = self.answers.next_field(form) {
                    if !field.about.is_empty() {
                        lines.extend(
                            StyledLine::new(&display_escape::escape(&field.about), TextStyle::DIM)
                                .wrapped(columns),
                        );
                    }
                    let hint = field.hint(words);
                    let prompt = format!("{}: ", display_escape::escape(&field.title));
                    cursor = self.editor_lines(&prompt, &hint, columns, &mut lines);
                    lines.extend(self.fault_lines(columns));
                    lines.extend(StyledLine::new(words.form_keys(), TextStyle::DIM).wrapped(columns));
                } else {
                    lines.extend(self.fault_lines(columns));
                    lines.extend(bold(words.form_send()));
                }
            }
            (DialogStage::Sent, _) => {
                lines.extend(StyledLine::new(words.sending(), TextStyle::DIM).wrapped(columns))
            }
            (DialogStage::Filling | DialogStage::Complete, _) => {}
        }
        if matches!(self.stage, DialogStage::Reason | DialogStage::StopReason | DialogStage::Choosing) {
            lines.extend(self.fault_lines(columns));
        }
        (lines, cursor)
    }

    fn fault_lines(&self, columns: usize) -> Vec<StyledLine> {
        let lines = self.fault.iter().flat_map(|why| why.lines()).enumerate();
        let marked = lines.map(|(at, line)| format!("{} {line}", if at == 0 { "✘" } else { " " }));
        marked
            .flat_map(|line| StyledLine::new(&line, TextStyle::ink(TextColor::Red)).wrapped(columns))
            .collect()
    }

    /// The lines of the editor after a prompt; a prompt wider than half a line gets a separate line.
    fn editor_lines(
        &self,
        prompt: &str,
        placeholder: &str,
        columns: usize,
        lines: &mut Vec<StyledLine>,
    ) -> Option<CursorPosition> {
        let prompt = if width(prompt) * 2 > columns {
            lines.extend(StyledLine::new(prompt.trim_end(), TextStyle::PLAIN).wrapped(columns));
            "  "
        } else {
            prompt
        };
        let (editor_lines, cursor) = self.editor.view(prompt, placeholder, columns);
        // A window of the text around the cursor.
        let first = (cursor.row + 1).saturating_sub(EDITOR_ROWS);
        let row = lines.len() + cursor.row - first;
        lines.extend(editor_lines.into_iter().skip(first).take(EDITOR_ROWS));
        Some(CursorPosition { row, ..cursor })
    }
}

/// "remembered for this turn · any arguments".
pub(crate) fn remember_text(scope: ApprovalScope, any: bool, words: UiText) -> String {
    let calls = if any { words.any_arguments() } else { words.these_arguments() };
    format!("{} · {calls}", scope_text(scope, words))
}

/// "remembered for this turn".
pub(crate) fn scope_text(scope: ApprovalScope, words: UiText) -> &'static str {
    match scope {
        ApprovalScope::Call => words.remembered_call(),
        ApprovalScope::Turn => words.remembered_turn(),
        ApprovalScope::Conversation => words.remembered_conversation(),
        ApprovalScope::Always => words.remembered_always(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::UiLanguage;
    use serde_json::json;

    fn question(wants: QuestionInput) -> PendingQuestion {
        PendingQuestion {
            id: "q".into(),
            call: None,
            tool: "demo.calendar".into(),
            source: "builtin".into(),
            effect: "write".into(),
            question: String::new(),
            rule: "effect:write".into(),
            expires_at: None,
            arguments_hash: "hash".into(),
            input: wants,
        }
    }

    fn approval() -> PendingQuestion {
        question(QuestionInput::Approval { arguments: "{\"city\":\"Paris\"}".into() })
    }

    fn fields() -> PendingQuestion {
        let schema = json!({
            "properties": {"name": {"type": "string"}, "seats": {"type": "integer", "default": 2}},
            "required": ["name"]
        });
        question(QuestionInput::Fields(QuestionForm::of(&schema)))
    }

    /// Presses a script: `⏎` Enter, `⎋` Esc, `⇥` Tab, `⌫` Backspace, `^x` Ctrl-x, the rest is text.
    fn pressed(question: &PendingQuestion, script: &str) -> (QuestionDialog, KeyOutcome) {
        let mut dialog = QuestionDialog::new(question, UiText(UiLanguage::English));
        let mut last = KeyOutcome::Ignored;
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
    fn check(question: &PendingQuestion, script: &str, expect: KeyOutcome) {
        assert_eq!(pressed(question, script).1, expect, "{script}");
    }

    fn shown(dialog: &QuestionDialog, question: &PendingQuestion) -> String {
        let (lines, _) = dialog.lines(question, 1, 70);
        lines.iter().map(|line| line.plain() + "\n").collect()
    }

    fn decided(answer: ApprovalResponse) -> KeyOutcome {
        KeyOutcome::Reply(DialogReply::Decide("q".into(), answer.for_arguments("hash")))
    }

    #[test]
    fn keys_approve_deny_postpone_and_remember() {
        let approval = approval();
        let deny = |reason: Option<&str>| {
            ApprovalResponse::from_decision(ApprovalDecision::Deny, reason.map(str::to_owned))
        };
        check(&approval, "a", decided(ApprovalResponse::approve()));
        check(&approval, "y", decided(ApprovalResponse::approve()));
        check(&approval, "A", KeyOutcome::Reply(DialogReply::ApproveAll));
        check(&approval, "d⏎", decided(deny(None)));
        check(&approval, "dnot today⏎", decided(deny(Some("not today"))));
        check(&approval, "s⏎", decided(ApprovalResponse::deny_and_stop(None)));
        check(&approval, "snot at all⏎", decided(ApprovalResponse::deny_and_stop(Some("not at all".into()))));
        check(&approval, "sno⎋a", decided(ApprovalResponse::approve()));
        check(&approval, "dno⎋a", decided(ApprovalResponse::approve()));
        check(&approval, "⎋", KeyOutcome::Postponed);
        check(&approval, "⇥", KeyOutcome::Next);
        check(&approval, "z", KeyOutcome::Ignored);
        check(&approval, "^a", KeyOutcome::Ignored);
        check(
            &approval,
            "rtxa",
            decided(ApprovalResponse::approve().remember(RememberRequest::exactly(ApprovalScope::Turn))),
        );
        check(
            &approval,
            "rcyd⏎",
            decided(deny(None).remember(RememberRequest::any(ApprovalScope::Conversation))),
        );
        check(
            &approval,
            "rw⎋w1a",
            decided(ApprovalResponse::approve().remember(RememberRequest::exactly(ApprovalScope::Always))),
        );
        check(&approval, "rtxr⎋a", decided(ApprovalResponse::approve()));
        let manual = PendingQuestion { rule: "manual".into(), ..approval.clone() };
        check(&manual, "r", KeyOutcome::Ignored);
        check(&approval, "aa", KeyOutcome::Ignored);
    }

    #[test]
    fn invalid_edited_arguments_keep_the_editor_open() {
        let approval = approval();
        let (mut dialog, pressed_last) = pressed(&approval, "e^a^k");
        assert_eq!(pressed_last, KeyOutcome::Changed);
        assert!(
            shown(&dialog, &approval).starts_with("Edit the arguments\n"),
            "{}",
            shown(&dialog, &approval)
        );
        dialog.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE), &approval);
        assert!(shown(&dialog, &approval).contains("✘ not JSON"), "{}", shown(&dialog, &approval));
        dialog.edited_outside(Ok("{\"city\": \"Oslo\"}\n".into()));
        let sent = dialog.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE), &approval);
        assert_eq!(sent, decided(ApprovalResponse::approve().with_arguments(json!({"city": "Oslo"}))));
        assert!(dialog.is_sent());
        dialog.reject("/city: expected a city".into());
        let text = shown(&dialog, &approval);
        assert!(text.contains("Oslo") && text.contains("✘ /city"), "{text}");
        check(&approval, "e^g", KeyOutcome::EditOutside("{\n  \"city\": \"Paris\"\n}".into()));
    }

    #[test]
    fn elicitation_is_answered_through_a_form() {
        let fields = fields();
        let answer = |answer| KeyOutcome::Reply(DialogReply::ToolAnswered("q".into(), answer));
        check(
            &fields,
            "Ada⏎⏎⏎",
            answer(ToolAnswer::Accept { content: Some(json!({"name": "Ada", "seats": 2})) }),
        );
        check(
            &fields,
            "Ada⏎x⏎⌫3⏎⏎",
            answer(ToolAnswer::Accept { content: Some(json!({"name": "Ada", "seats": 3})) }),
        );
        check(
            &fields,
            "Ada⏎⎋Bo⏎⏎⏎",
            answer(ToolAnswer::Accept { content: Some(json!({"name": "AdaBo", "seats": 2})) }),
        );
        check(&fields, "^d", answer(ToolAnswer::Decline));
        check(&fields, "Ada^x", answer(ToolAnswer::Cancel));
        check(&fields, "Ada⏎⏎d", answer(ToolAnswer::Decline));
        check(&fields, "⎋", KeyOutcome::Postponed);
        let (dialog, _) = pressed(&fields, "Ada⏎x⏎");
        let text = shown(&dialog, &fields);
        assert!(text.starts_with("name: Ada\nseats: x\n✘ a whole number\n"), "{text}");
        let address = question(QuestionInput::Address("https://example.com/\u{202e}".into()));
        check(&address, "a", answer(ToolAnswer::Accept { content: None }));
        check(&address, "d", answer(ToolAnswer::Decline));
    }

    #[test]
    fn long_arguments_scroll_around_the_cursor() {
        let long = json!({"lines": (0..40).collect::<Vec<_>>()}).to_string();
        let long = question(QuestionInput::Approval { arguments: long });
        let (dialog, _) = pressed(&long, "e");
        let (lines, cursor) = dialog.lines(&long, 1, 60);
        assert_eq!(lines.len(), 1 + EDITOR_ROWS + 2, "{lines:?}");
        assert_eq!(cursor.map(|cursor| cursor.row), Some(EDITOR_ROWS), "the cursor stands at the end");
    }
}
