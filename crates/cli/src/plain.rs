//! A turn as plain text, from top to bottom: for pipes, dumb terminals and `ask`.

use crate::chat::texts::{failure_text, state_text, totals_text};
use crate::chinese::{remedy_text, server_text};
use crate::messages::UiText;
use crate::terminal::card::duration;
use crate::terminal::fence::FenceTracker;
use crate::terminal::text::escape_controls;
use std::collections::HashMap;
use throughline_engine::{BlockStart, CallStatus, Event, EventKind, TurnStatus};
use throughline_wire::CallId;
use throughline_wire::display_escape;

/// Characters of arguments and of results that a note shows.
const NOTE_CHARS_MAX: usize = 160;
/// Maximum length of a call's failure, in characters: the remedy is at its end.
const FAILURE_CHARS_MAX: usize = 500;

/// A part of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlainOutput {
    /// Text of the answer.
    Text(String),
    /// About the answer: one line, without its end.
    Note(String),
    /// Reason why the answer is missing or incomplete.
    Fault(String),
}

/// Turns events into pieces.
#[derive(Debug)]
pub(crate) struct PlainRenderer {
    words: UiText,
    calls: HashMap<CallId, (String, String)>,
    /// Line breaks at the end of the text so far; the beginning counts as a blank line.
    breaks: usize,
    /// True if the last output was a notice or an error.
    has_notice: bool,
    /// A new block of text has been opened and nothing of it printed.
    is_block_start: bool,
    fence: FenceTracker,
    /// Notes that are held back while a code block is open.
    held: Vec<PlainOutput>,
}

impl PlainRenderer {
    /// The state before the first event.
    pub(crate) fn new(words: UiText) -> Self {
        Self {
            words,
            calls: HashMap::new(),
            breaks: 2,
            has_notice: false,
            is_block_start: false,
            fence: FenceTracker::default(),
            held: Vec::new(),
        }
    }

    /// The last text did not end its line.
    pub(crate) fn is_mid_line(&self) -> bool {
        self.breaks == 0
    }

    /// Marks that a note was printed below the text on the same screen: the next text is a new paragraph.
    pub(crate) fn mark_note_printed(&mut self) {
        self.breaks = 1;
    }

    fn line_ended(&mut self) {
        self.breaks = self.breaks.max(1);
    }

    /// Output that an event adds. A note waits for the end of the code that it would interrupt.
    pub(crate) fn apply(&mut self, event: &Event) -> Vec<PlainOutput> {
        let ends_text = matches!(
            event.kind,
            EventKind::BlockEnd | EventKind::SessionStats(_) | EventKind::StreamEnd { .. }
        );
        let mut outputs = Vec::new();
        if ends_text || matches!(event.kind, EventKind::BlockStart(BlockStart::Text { .. })) {
            self.fence.reset();
            outputs.append(&mut self.held);
        }
        for output in self.outputs(event) {
            match output {
                PlainOutput::Text(text) => {
                    self.fence.push(&text);
                    outputs.push(PlainOutput::Text(text));
                }
                note if self.fence.is_open() => self.held.push(note),
                note => outputs.push(note),
            }
            if !self.fence.is_open() {
                outputs.append(&mut self.held);
            }
        }
        outputs
    }

    /// Clippy wants an arm for each kind: a new one is looked at here.
    #[deny(clippy::wildcard_enum_match_arm)]
    fn outputs(&mut self, event: &Event) -> Vec<PlainOutput> {
        match &event.kind {
            EventKind::BlockStart(start) => self.block(start),
            EventKind::ContentDelta { text, .. } => self.text(text),
            EventKind::ToolUse { tool_name, input_summary, .. } => {
                if let Some(id) = &event.tool_id {
                    self.calls.insert(id.clone(), (tool_name.to_string(), input_summary.clone()));
                }
                Vec::new()
            }
            EventKind::ToolInput(input) => {
                if let Some((_, summary)) = event.tool_id.as_ref().and_then(|id| self.calls.get_mut(id)) {
                    *summary = crate::chat::texts::arguments_summary(input);
                }
                Vec::new()
            }
            EventKind::ToolResult(result) => {
                let (name, input) =
                    event.tool_id.as_ref().and_then(|id| self.calls.remove(id)).unwrap_or_default();
                let mark = if result.status == CallStatus::Success { "✔" } else { "✘" };
                let output = match result.status {
                    CallStatus::Success if !result.output_summary.is_empty() => result.output_summary.clone(),
                    CallStatus::Success => result.output.clone().unwrap_or_default(),
                    CallStatus::Preparing
                    | CallStatus::Queued
                    | CallStatus::AwaitingApproval
                    | CallStatus::Running
                    | CallStatus::Error
                    | CallStatus::Denied
                    | CallStatus::Cancelled
                    | CallStatus::TimedOut
                    | CallStatus::NotStarted
                    | CallStatus::Unknown => failure_text(result, self.words),
                };
                let time = result.duration_ms.map(|ms| format!("({})", duration(ms))).unwrap_or_default();
                let parts = [name, one_line(&input), state_text(result.status, self.words).to_owned(), time];
                let mut note =
                    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ");
                if !output.trim().is_empty() {
                    note.push_str(" → ");
                    let chars_max =
                        if result.status == CallStatus::Success { NOTE_CHARS_MAX } else { FAILURE_CHARS_MAX };
                    note.push_str(&cut_line(&output, chars_max));
                }
                vec![PlainOutput::Note(format!("{mark} {note}"))]
            }
            EventKind::Problem { code, excerpt, remedy: Some(remedy), .. } => {
                vec![PlainOutput::Note(format!(
                    "• {code}: {} ({}: {remedy})",
                    one_line(excerpt),
                    self.words.try_hint()
                ))]
            }
            EventKind::SessionStats(stats) => {
                // Comes when all text is there: a totals line is no end of it.
                let end = self.is_mid_line().then(|| PlainOutput::Text("\n".to_owned()));
                self.line_ended();
                end.into_iter().chain([PlainOutput::Note(totals_text(self.words, stats))]).collect()
            }
            EventKind::StreamEnd { status, .. } => self.end(*status),
            // Plain text has the answer, the outcome of each call, and errors.
            EventKind::StreamStart { .. }
            | EventKind::StepStart { .. }
            | EventKind::StepEnd { .. }
            | EventKind::BlockEnd
            | EventKind::ModelText { .. }
            | EventKind::Thinking { .. }
            | EventKind::Citation { .. }
            | EventKind::ToolInputDelta { .. }
            | EventKind::ToolInputReset
            | EventKind::ApprovalRequest { .. }
            | EventKind::ApprovalResolved { .. }
            | EventKind::ToolRedefined { .. }
            | EventKind::ToolStart { .. }
            | EventKind::ToolProgress(_)
            | EventKind::AudioDelta { .. }
            | EventKind::UserMessage { .. }
            | EventKind::Waiting { .. }
            | EventKind::Problem { .. }
            | EventKind::Error(_)
            | EventKind::TurnResumed { .. }
            | EventKind::BlockSuperseded { .. }
            | EventKind::Unrecognised => Vec::new(),
            _ => Vec::new(),
        }
    }

    /// Blocks of text are a blank line apart, however many breaks the model writes there itself.
    fn text(&mut self, text: &str) -> Vec<PlainOutput> {
        let mut text = text.to_owned();
        if self.is_block_start {
            text = text.trim_start_matches('\n').to_owned();
            if !text.is_empty() {
                text.insert_str(0, &"\n".repeat(2usize.saturating_sub(self.breaks)));
                self.is_block_start = false;
            }
        }
        if text.is_empty() {
            return Vec::new();
        }
        let breaks = text.len() - text.trim_end_matches('\n').len();
        self.breaks = if breaks == text.len() { self.breaks + breaks } else { breaks };
        vec![PlainOutput::Text(text)]
    }

    fn block(&mut self, start: &BlockStart) -> Vec<PlainOutput> {
        self.has_notice = matches!(start, BlockStart::Notice { .. } | BlockStart::Error(_));
        match start {
            BlockStart::Text { .. } => {
                self.is_block_start = true;
                Vec::new()
            }
            BlockStart::Notice { code, text, .. } => {
                vec![PlainOutput::Note(format!("• {}", server_text(text, code)))]
            }
            BlockStart::Error(fault) => {
                let mut notes =
                    vec![PlainOutput::Fault(format!("✘ {}", server_text(&fault.what, &fault.code)))];
                if !fault.why.is_empty() {
                    notes.push(PlainOutput::Fault(format!("  {}", one_line(&server_text(&fault.why, "")))));
                }
                if !fault.remedy.is_empty() {
                    let remedy = remedy_text(&fault.remedy, &fault.code);
                    notes.push(PlainOutput::Fault(format!("  {}: {remedy}", self.words.try_hint())));
                }
                notes
            }
            BlockStart::Image(media) => {
                vec![PlainOutput::Note(format!("▣ {} ({})", self.words.picture(), media.media_type))]
            }
            _ => Vec::new(),
        }
    }

    fn end(&mut self, status: TurnStatus) -> Vec<PlainOutput> {
        let mut outputs = Vec::new();
        if self.is_mid_line() {
            self.line_ended();
            outputs.push(PlainOutput::Text("\n".to_owned()));
        }
        let why = match status {
            _ if self.has_notice => None,
            TurnStatus::Completed | TurnStatus::Error => None,
            TurnStatus::Length => Some(self.words.ended_length()),
            TurnStatus::Limit => Some(self.words.ended_limit()),
            TurnStatus::Cancelled => Some(self.words.ended_cancelled()),
            TurnStatus::Interrupted => Some(self.words.ended_interrupted()),
        };
        outputs.extend(why.map(|why| PlainOutput::Fault(format!("• {why}"))));
        outputs
    }
}

/// One line, with hidden and control characters made visible, cut to a length.
pub(crate) fn one_line(text: &str) -> String {
    cut_line(text, NOTE_CHARS_MAX)
}

fn cut_line(text: &str, chars_max: usize) -> String {
    let line =
        escape_controls(&display_escape::escape(&text.split_whitespace().collect::<Vec<_>>().join(" ")));
    match line.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Text for a terminal: line breaks stay, no character may steer it.
pub(crate) fn for_terminal(text: &str) -> String {
    text.split('\n').map(|line| escape_controls(line.trim_end_matches('\r'))).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::UiLanguage;

    #[track_caller]
    fn check(events: &str, expect: &[PlainOutput]) {
        let mut plain = PlainRenderer::new(UiText(UiLanguage::English));
        let mut outputs = Vec::new();
        for (at, line) in events.trim().lines().enumerate() {
            let mut event: serde_json::Value = serde_json::from_str(line.trim()).expect(line);
            event["turn_id"] = "t".into();
            event["seq"] = (at + 1).into();
            event["timestamp"] = 0.into();
            outputs.extend(plain.apply(&serde_json::from_value(event).expect(line)));
        }
        assert_eq!(outputs, expect);
    }

    fn text(text: &str) -> PlainOutput {
        PlainOutput::Text(text.to_owned())
    }

    fn note(text: &str) -> PlainOutput {
        PlainOutput::Note(text.to_owned())
    }

    #[test]
    fn text_and_notes_are_separate_outputs() {
        check(
            r#"
            {"type":"block_start","block":0,"kind":"text"}
            {"type":"content_delta","block":0,"text":"Let me look."}
            {"type":"block_end","block":0}
            {"type":"tool_use","block":1,"tool_id":"a","tool_name":"demo.weather","wire_name":"demo_weather","effect":"read","status":"preparing","slot":0,"position":0}
            {"type":"tool_input","block":1,"tool_id":"a","arguments":{"city":"Paris"},"seal":"explicit"}
            {"type":"tool_result","block":1,"tool_id":"a","status":"success","output":"Sunny,\n23 °C","duration_ms":250}
            {"type":"block_start","block":2,"kind":"text"}
            {"type":"content_delta","block":2,"text":"\n"}
            {"type":"content_delta","block":2,"text":"Sunny."}
            {"type":"session_stats","steps":2,"calls":1,"usage":{},"wall_ms":1200,"saved_by_eager_ms":0,"segments":[]}
            {"type":"stream_end","status":"completed"}
            "#,
            &[
                text("Let me look."),
                note("✔ demo.weather  {\"city\":\"Paris\"}  (250 ms) → Sunny, 23 °C"),
                text("\n\nSunny."),
                text("\n"),
                note("2 steps · 1 tool call · 1.2 s"),
            ],
        );
    }

    #[test]
    fn failures_print_message_reason_and_remedy() {
        check(
            r#"
            {"type":"tool_use","block":0,"tool_id":"a","tool_name":"x.y","wire_name":"x_y","effect":"write","status":"preparing","slot":0,"position":0}
            {"type":"tool_result","block":0,"tool_id":"a","status":"not_started","error":{"code":"unknown_tool","closest":["x.z"]}}
            {"type":"block_start","block":1,"kind":"error","code":"c","what":"Broken.","why":"so","remedy":"again","retryable":true}
            {"type":"stream_end","status":"cancelled"}
            "#,
            &[
                note("✘ x.y  not started → no such tool (x.z?)"),
                PlainOutput::Fault("✘ Broken.".to_owned()),
                PlainOutput::Fault("  so".to_owned()),
                PlainOutput::Fault("  try: again".to_owned()),
            ],
        );
    }

    #[test]
    fn notice_is_deferred_until_the_code_block_ends() {
        check(
            r#"
            {"type":"block_start","block":0,"kind":"text"}
            {"type":"content_delta","block":0,"text":"An example:\n```\na request\n"}
            {"type":"block_start","block":1,"kind":"notice","code":"in_code_fence","text":"It was not run."}
            {"type":"content_delta","block":0,"text":"more\n```\nAfter."}
            {"type":"block_end","block":0}
            {"type":"stream_end","status":"completed"}
            "#,
            &[
                text("An example:\n```\na request\n"),
                text("more\n```\nAfter."),
                note("• It was not run."),
                text("\n"),
            ],
        );
        // Code that is never closed ends with its text.
        check(
            r#"
            {"type":"block_start","block":0,"kind":"text"}
            {"type":"content_delta","block":0,"text":"```\ncode"}
            {"type":"block_start","block":1,"kind":"notice","code":"in_code_fence","text":"It was not run."}
            {"type":"stream_end","status":"completed"}
            "#,
            &[text("```\ncode"), note("• It was not run."), text("\n")],
        );
    }

    #[test]
    fn terminal_control_characters_are_escaped() {
        assert_eq!(for_terminal("a\r\n\x1b[2Jb"), "a\n\\u001b[2Jb");
        assert_eq!(one_line("a\u{202e}b\n\x07"), "a\\u202eb \\u0007");
    }
}
