//! Terminal view of a turn: a fold of its events into lines, finalized from the top.

use super::block::{ScreenBlock, ThinkingBlock};
use super::form::QuestionForm;
use super::question::{PendingQuestion, QuestionInput};
use super::texts::{
    allowed_by_text, arguments_summary, changes_text, finish_card, full_arguments, remembered_text,
    totals_text,
};
use crate::chinese::server_text;
use crate::messages::UiText;
use crate::terminal::card::{ToolCard, duration};
use crate::terminal::markdown::MarkdownStream;
use crate::terminal::text::{StyledLine, TextColor, TextStyle};
use throughline_engine::{
    BlockStart, CallStatus, Event, EventKind, QuestionKind, SessionStats, ToolInput, TurnStatus, WaitReason,
};
use throughline_wire::UserPart;

/// Full or shortened display of reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReasoningView {
    /// The last lines while the reasoning arrives, the first lines afterwards.
    #[default]
    Folded,
    Full,
}

/// One turn on the screen.
#[derive(Debug)]
pub(crate) struct TurnTranscript {
    words: UiText,
    reasoning: ReasoningView,
    blocks: Vec<ScreenBlock>,
    /// Blocks whose lines have all been handed out.
    settled: usize,
    questions: Vec<PendingQuestion>,
    activity: ModelActivity,
    /// Reported wait, until the next event.
    wait: Option<ReportedWait>,
    started_at: i64,
    ended: Option<TurnStatus>,
    stats: Option<SessionStats>,
}

/// Activity of the model while no tool and no question has a status line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum ModelActivity {
    #[default]
    Connecting,
    AwaitingFirstToken,
    Thinking,
    Writing,
}

/// A wait that the turn has reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReportedWait {
    reason: WaitReason,
    since: Option<i64>,
    until: Option<i64>,
}

/// New lines for the screen.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TranscriptLines {
    /// Final: printed once.
    pub(crate) settled: Vec<StyledLine>,
    /// Lines in progress: shown until the next frame.
    pub(crate) live: Vec<StyledLine>,
}

impl TurnTranscript {
    /// A turn of which nothing has been seen, begun at `now` (ms since 1970).
    pub(crate) fn new(words: UiText, reasoning: ReasoningView, now: i64) -> Self {
        Self {
            words,
            reasoning,
            blocks: Vec::new(),
            settled: 0,
            questions: Vec::new(),
            activity: ModelActivity::default(),
            wait: None,
            started_at: now,
            ended: None,
            stats: None,
        }
    }

    /// Open questions in the order in which they were asked.
    pub(crate) fn questions(&self) -> &[PendingQuestion] {
        &self.questions
    }

    /// Takes one event. Clippy wants an arm for each kind: a new one is looked at here.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub(crate) fn apply(&mut self, event: &Event) {
        let block = event.block.map(|index| index as usize);
        self.wait = None;
        match &event.kind {
            EventKind::StreamStart { .. } => self.started_at = event.timestamp,
            EventKind::StepStart { .. } => self.activity = ModelActivity::AwaitingFirstToken,
            EventKind::BlockStart(start) => self.open_block(start, event.timestamp),
            EventKind::ContentDelta { text, .. } => {
                self.activity = ModelActivity::Writing;
                if let Some(ScreenBlock::Text { markdown, .. }) = self.block(block) {
                    markdown.push(text);
                }
            }
            EventKind::Thinking { text, .. } => {
                self.activity = ModelActivity::Thinking;
                if let Some(ScreenBlock::Thinking(thinking)) = self.block(block) {
                    thinking.text.push_str(text);
                }
            }
            EventKind::BlockEnd => match self.block(block) {
                Some(ScreenBlock::Text { open, .. }) => *open = false,
                Some(ScreenBlock::Thinking(thinking)) => thinking.ended_at = Some(event.timestamp),
                Some(ScreenBlock::Sound { open, .. }) => *open = false,
                Some(
                    ScreenBlock::Call { .. }
                    | ScreenBlock::UserMessage(_)
                    | ScreenBlock::Notice(_)
                    | ScreenBlock::Failure(_)
                    | ScreenBlock::Picture { .. }
                    | ScreenBlock::DecoderRemark { .. },
                )
                | None => {}
            },
            EventKind::UserMessage { input, .. } => {
                let texts = input.iter().filter_map(|part| match part {
                    UserPart::Text { text } => Some(text.as_str()),
                    UserPart::Image(_) | UserPart::File { .. } => None,
                });
                self.blocks.push(ScreenBlock::UserMessage(texts.collect::<Vec<_>>().join("\n")));
            }
            EventKind::ToolUse { tool_name, source, effect, status, input_summary, .. } => {
                self.activity = ModelActivity::Writing;
                let mut card = ToolCard { state: *status, ..ToolCard::new(tool_name.as_str()) };
                card.input.clone_from(input_summary);
                let effect = effect.name().to_owned();
                let source = source.clone();
                let card = Box::new(card);
                self.blocks.push(ScreenBlock::Call {
                    id: event.tool_id.clone(),
                    card,
                    text: String::new(),
                    effect,
                    source,
                });
            }
            EventKind::AudioDelta { transcript, .. } => {
                self.activity = ModelActivity::Writing;
                if let Some(ScreenBlock::Sound { transcript: sound_text, .. }) = self.block(block) {
                    sound_text.push_str(transcript);
                }
            }
            EventKind::BlockSuperseded { keep_chars, .. } => {
                if let Some(ScreenBlock::Text { markdown, open, .. }) = self.block(block) {
                    markdown.truncate_chars(usize::try_from(*keep_chars).unwrap_or(usize::MAX));
                    *open = true;
                }
            }
            EventKind::Waiting { reason, since, until, .. } => {
                self.wait = Some(ReportedWait { reason: *reason, since: *since, until: *until });
            }
            // Shown in the dialog.
            EventKind::Problem { code, .. } if matches!(code.as_str(), "invalid_edit" | "stale_answer") => {}
            EventKind::Problem { code, excerpt, remedy: Some(remedy), .. } => {
                let what = if excerpt.is_empty() { code.clone() } else { format!("{code}: {excerpt}") };
                self.blocks.push(ScreenBlock::DecoderRemark { what, remedy: remedy.clone() });
            }
            EventKind::SessionStats(stats) => self.stats = Some(stats.clone()),
            EventKind::StreamEnd { status, .. } => {
                self.ended = Some(*status);
                self.questions.clear();
            }
            EventKind::ToolInputDelta { .. }
            | EventKind::ToolInputReset
            | EventKind::ToolInput(_)
            | EventKind::ApprovalRequest { .. }
            | EventKind::ApprovalResolved { .. }
            | EventKind::ToolRedefined { .. }
            | EventKind::ToolStart { .. }
            | EventKind::ToolProgress(_)
            | EventKind::ToolResult(_) => self.call_event(event),
            // A problem without a remedy, sources, what the model alone reads, an error that its block has shown.
            EventKind::Problem { .. }
            | EventKind::Citation { .. }
            | EventKind::ModelText { .. }
            | EventKind::StepEnd { .. }
            | EventKind::TurnResumed { .. }
            | EventKind::Error(_)
            | EventKind::Unrecognised => {}
            _ => {}
        }
    }

    /// Events of one tool call: one call, one card.
    fn call_event(&mut self, event: &Event) {
        let words = self.words;
        let questions = &mut self.questions;
        let call = self.blocks.iter_mut().rev().find_map(|block| match block {
            ScreenBlock::Call { id, card, text, effect, source } if *id == event.tool_id => {
                Some((card, text, effect, source))
            }
            _ => None,
        });
        let Some((card, text, effect, source)) = call else { return };
        match &event.kind {
            EventKind::ToolInputDelta { delta, .. } => {
                text.push_str(delta);
                card.input.clone_from(text);
            }
            EventKind::ToolInputReset => {
                text.clear();
                card.input.clear();
                card.state = CallStatus::Preparing;
            }
            EventKind::ToolInput(input) => {
                *text = full_arguments(input);
                card.input = arguments_summary(input);
                card.state = CallStatus::Queued;
                card.state_words.clear();
            }
            EventKind::ApprovalRequest {
                approval_id,
                kind,
                question,
                rule,
                expires_at,
                arguments_hash,
                schema,
                url,
                ..
            } => {
                let question_input = match (kind, url, schema) {
                    (QuestionKind::Elicitation, Some(url), _) => QuestionInput::Address(url.clone()),
                    (QuestionKind::Elicitation, None, schema) => {
                        QuestionInput::Fields(schema.as_ref().map(QuestionForm::of).unwrap_or_default())
                    }
                    _ => {
                        card.state = CallStatus::AwaitingApproval;
                        card.state_words = words.awaiting().to_owned();
                        QuestionInput::Approval { arguments: text.clone() }
                    }
                };
                questions.push(PendingQuestion {
                    id: approval_id.clone(),
                    call: event.tool_id.clone(),
                    tool: card.name.clone(),
                    source: source.clone(),
                    effect: effect.clone(),
                    question: question.clone(),
                    rule: rule.clone(),
                    expires_at: *expires_at,
                    arguments_hash: arguments_hash.clone(),
                    input: question_input,
                });
            }
            EventKind::ApprovalResolved { approval_id, arguments, arguments_diff, remember, .. } => {
                questions.retain(|question| question.id != *approval_id);
                // A call with an elicitation stays running.
                if card.state == CallStatus::AwaitingApproval {
                    card.state = CallStatus::Queued;
                    card.state_words.clear();
                }
                if let Some(arguments) = arguments {
                    let edited = ToolInput::edited(arguments);
                    *text = full_arguments(&edited);
                    card.input = arguments_summary(&edited);
                }
                card.notes.extend(arguments_diff.as_ref().map(|diff| changes_text(diff, words)));
                card.notes.extend(remember.as_deref().and_then(|scope| remembered_text(scope, words)));
            }
            EventKind::ToolRedefined { .. } => card.notes.push(words.redefined().to_owned()),
            EventKind::ToolStart { rule, .. } => {
                // What runs because of its effect needs no explanation.
                card.notes.extend(rule.as_deref().and_then(|rule| allowed_by_text(rule, words)));
                card.state = CallStatus::Running;
                card.state_words.clear();
                card.started_at = Some(event.timestamp);
            }
            EventKind::ToolProgress(progress) => {
                if let Some(done) = progress.progress {
                    card.progress = Some((done, progress.total));
                }
                if let Some(message) = &progress.message {
                    card.message.clone_from(message);
                } else if let Some(delta) = &progress.output_delta
                    && let Some(line) = delta.lines().rev().find(|line| !line.trim().is_empty())
                {
                    line.clone_into(&mut card.message);
                }
            }
            EventKind::ToolResult(result) => {
                questions.retain(|question| question.call != event.tool_id);
                finish_card(card, result, words);
            }
            _ => {}
        }
    }

    /// Lines for the next frame, at the time `now` (ms since 1970).
    pub(crate) fn render(&mut self, now: i64, columns: usize) -> TranscriptLines {
        let mut rendered = TranscriptLines::default();
        while let Some(block) = self.blocks.get_mut(self.settled) {
            let (lines, done) = block.settle(now, columns, self.words, self.reasoning);
            let first = !block.mark_printed(!lines.is_empty());
            let gap = first && !lines.is_empty() && needs_gap(&self.blocks, self.settled);
            rendered.settled.extend(gap.then(StyledLine::default));
            rendered.settled.extend(lines);
            if !done {
                break;
            }
            self.settled += 1;
        }
        for index in self.settled..self.blocks.len() {
            let lines = self.blocks[index].live(now, columns, self.words, self.reasoning);
            let begun = self.blocks[index].has_printed();
            let gap = !begun && !lines.is_empty() && needs_gap(&self.blocks, index);
            rendered.live.extend(gap.then(StyledLine::default));
            rendered.live.extend(lines);
        }
        rendered
    }

    /// Status of the turn in one line.
    pub(crate) fn status(&self, now: i64) -> String {
        let running = self.count_calls(|state| state == CallStatus::Running);
        if !self.questions.is_empty() {
            return self.words.waiting_for_you().to_owned();
        }
        if running > 0 {
            return self.words.running(running);
        }
        let Some(ReportedWait { reason, since, until }) = self.wait else {
            let words = match self.activity {
                ModelActivity::Connecting => self.words.connecting(),
                ModelActivity::AwaitingFirstToken => self.words.waiting_first(),
                ModelActivity::Thinking => self.words.thinking(),
                ModelActivity::Writing => self.words.writing(),
            };
            return words.to_owned();
        };
        let words = match reason {
            WaitReason::Silence => self.words.waiting_silent(),
            WaitReason::RateLimit => self.words.waiting_rate_limit(),
            WaitReason::Retry => self.words.waiting_retry(),
            WaitReason::Store => self.words.waiting_store(),
            WaitReason::Client => self.words.waiting_client(),
            _ => self.words.waiting_first(),
        };
        let left = until.map(|until| until - now).filter(|ms| *ms > 0);
        let waited = || since.map(|since| now - since).filter(|ms| *ms > 0);
        match left.or_else(waited) {
            Some(ms) => format!("{words} ({})", duration(ms.unsigned_abs())),
            None => words.to_owned(),
        }
    }

    /// Run time of the turn.
    pub(crate) fn elapsed(&self, now: i64) -> String {
        duration(now.saturating_sub(self.started_at).max(0).unsigned_abs())
    }

    /// The line under a turn that has ended: why, unless it just completed, and what it took.
    pub(crate) fn footer(&self) -> Vec<StyledLine> {
        let words = self.words;
        // A notice or an error at the end of the message has reported it already.
        let is_explained =
            matches!(self.blocks.last(), Some(ScreenBlock::Notice(_) | ScreenBlock::Failure(_)));
        let reason = match self.ended {
            _ if is_explained => None,
            None | Some(TurnStatus::Completed) => None,
            Some(TurnStatus::Length) => Some(words.ended_length()),
            Some(TurnStatus::Limit) => Some(words.ended_limit()),
            Some(TurnStatus::Error) => Some(words.ended_error()),
            Some(TurnStatus::Cancelled) => Some(words.ended_cancelled()),
            Some(TurnStatus::Interrupted) => Some(words.ended_interrupted()),
        };
        let mut line = StyledLine::default();
        if let Some(reason) = reason {
            line.push(reason, TextStyle::ink(TextColor::Yellow));
        }
        if let Some(stats) = &self.stats {
            line.push(if reason.is_some() { " · " } else { "" }, TextStyle::DIM);
            line.push(&totals_text(words, stats), TextStyle::DIM);
        }
        if line.0.is_empty() { Vec::new() } else { vec![line] }
    }

    fn count_calls(&self, is: impl Fn(CallStatus) -> bool) -> usize {
        self.blocks
            .iter()
            .filter(|block| matches!(block, ScreenBlock::Call { card, .. } if is(card.state)))
            .count()
    }

    fn open_block(&mut self, start: &BlockStart, now: i64) {
        let block = match start {
            BlockStart::Text { code, .. } => {
                self.activity = ModelActivity::Writing;
                let refused = code.is_some();
                ScreenBlock::Text {
                    markdown: MarkdownStream::default(),
                    open: true,
                    refused,
                    has_printed: false,
                }
            }
            BlockStart::Thinking => {
                self.activity = ModelActivity::Thinking;
                ScreenBlock::Thinking(ThinkingBlock { text: String::new(), started_at: now, ended_at: None })
            }
            BlockStart::Audio => ScreenBlock::Sound { transcript: String::new(), open: true },
            BlockStart::Image(media) => ScreenBlock::Picture {
                media_type: media.media_type.clone(),
                bytes: usize::try_from(media.bytes()).unwrap_or(usize::MAX),
            },
            BlockStart::Notice { code, text, .. } => ScreenBlock::Notice(server_text(text, code)),
            BlockStart::Error(fault) => ScreenBlock::Failure(fault.clone()),
            _ => return,
        };
        self.blocks.push(block);
    }

    /// A block by its position in the message, in order of opening; notes of the command are not counted.
    fn block(&mut self, index: Option<usize>) -> Option<&mut ScreenBlock> {
        let own = |block: &&mut ScreenBlock| !matches!(block, ScreenBlock::DecoderRemark { .. });
        self.blocks.iter_mut().filter(own).nth(index?)
    }
}

/// True if a blank line precedes the block: only consecutive cards have none.
fn needs_gap(blocks: &[ScreenBlock], index: usize) -> bool {
    let call = |index: usize| matches!(blocks.get(index), Some(ScreenBlock::Call { .. }));
    match index {
        0 => false,
        index => !(call(index - 1) && call(index)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::UiLanguage;
    use crate::terminal::painter::ScreenPainter;
    use crate::terminal::virtual_screen::VirtualScreen;

    /// A log as it is stored, numbered and dated here: one event a line, 100 ms apart.
    struct TranscriptScreen {
        transcript: TurnTranscript,
        painter: ScreenPainter,
        screen: VirtualScreen,
        now: i64,
        seq: u64,
    }

    impl TranscriptScreen {
        fn new(columns: u16, rows: u16) -> Self {
            Self {
                transcript: TurnTranscript::new(UiText(UiLanguage::English), ReasoningView::Folded, 0),
                painter: ScreenPainter::new(columns, rows),
                screen: VirtualScreen::new(usize::from(columns), usize::from(rows)),
                now: 0,
                seq: 0,
            }
        }

        #[track_caller]
        fn events(&mut self, lines: &str) {
            for line in lines.trim().lines() {
                self.now += 100;
                self.seq += 1;
                let mut event: serde_json::Value = serde_json::from_str(line.trim()).expect(line);
                event["turn_id"] = "t".into();
                event["seq"] = self.seq.into();
                event["timestamp"] = self.now.into();
                self.transcript.apply(&serde_json::from_value(event).expect(line));
                self.paint();
            }
        }

        fn paint(&mut self) {
            let mut rendered = self.transcript.render(self.now, self.painter.columns());
            rendered
                .live
                .push(StyledLine::new(&format!("[{}]", self.transcript.status(self.now)), TextStyle::DIM));
            let out = self.painter.frame(rendered.settled, rendered.live, None);
            self.screen.write(&out);
        }

        #[track_caller]
        fn check(&self, expect: &str) {
            assert_eq!(self.screen.lines().join("\n"), expect.trim_matches('\n'));
        }
    }

    const THREE_CITIES: &str = r#"
        {"type":"stream_start","v":1,"message_id":"m","agent":"default","mode":"auto","input":[]}
        {"type":"step_start","upstream":"demo","model":"demo","attempt":1,"tools_offered":["demo.weather"]}
        {"type":"block_start","block":0,"kind":"text"}
        {"type":"content_delta","block":0,"text":"Let me **lo"}
        {"type":"content_delta","block":0,"text":"ok**.\n\nOne moment"}
        {"type":"block_end","block":0}
        {"type":"tool_use","block":1,"tool_id":"a","tool_name":"demo.weather","wire_name":"demo_weather","effect":"read","status":"preparing","slot":0,"position":0}
        {"type":"tool_input_delta","block":1,"tool_id":"a","delta":"{\"city\": \"Bei"}
    "#;

    #[test]
    fn turn_events_update_transcript_and_status() {
        let mut screen = TranscriptScreen::new(60, 20);
        screen.events(THREE_CITIES);
        screen.check(
            r#"
Let me look.

One moment

⠋ demo.weather  {"city": "Bei
[writing]
"#,
        );
        screen.events(
            r#"
            {"type":"tool_input","block":1,"tool_id":"a","arguments":{"city":"Beijing"},"seal":"explicit","input_summary":"city: Beijing"}
            {"type":"tool_start","block":1,"tool_id":"a","early":true,"attempt":1}
            {"type":"tool_use","block":2,"tool_id":"b","tool_name":"demo.weather","wire_name":"demo_weather","effect":"read","status":"preparing","slot":1,"position":1}
            {"type":"tool_progress","block":1,"tool_id":"a","progress":1,"total":2,"message":"asking"}
            "#,
        );
        screen.check(
            r#"
Let me look.

One moment

⠴ demo.weather  city: Beijing                        200 ms
  └ ━━━━━━━━╌╌╌╌╌╌╌╌ 50 % asking
⠴ demo.weather
[running 1 tool]
"#,
        );
        screen.events(
            r#"
            {"type":"tool_result","block":1,"tool_id":"a","status":"success","output":"Sunny, 23 °C","duration_ms":250}
            {"type":"tool_result","block":2,"tool_id":"b","status":"not_started","error":{"code":"interrupted"}}
            {"type":"step_end","finish":"tool_calls"}
            {"type":"step_start","upstream":"demo","model":"demo","attempt":1,"tools_offered":[]}
            {"type":"block_start","block":3,"kind":"text"}
            {"type":"content_delta","block":3,"text":"It is sunny."}
            {"type":"block_end","block":3}
            {"type":"stream_end","status":"completed"}
            "#,
        );
        screen.check(
            r#"
Let me look.

One moment

✔ demo.weather  city: Beijing                        250 ms
  └ Sunny, 23 °C
○ demo.weather                                  not started
  └ the reply was cut off before the call was complete;
    nothing ran

It is sunny.
[writing]
"#,
        );
        assert_eq!(screen.transcript.ended, Some(TurnStatus::Completed));
    }

    #[test]
    fn wait_status_shows_seconds_until_the_next_event() {
        let mut screen = TranscriptScreen::new(60, 20);
        screen.events(THREE_CITIES);
        screen.events(r#"{"type":"waiting","reason":"silence","since":300}"#);
        assert_eq!(screen.transcript.status(12_800), "the model has paused (12.5 s)");
        screen.events(r#"{"type":"tool_input_delta","block":1,"tool_id":"a","delta":"jing"}"#);
        assert_eq!(screen.transcript.status(13_000), "writing");
        screen.events(r#"{"type":"waiting","reason":"retry","until":15000}"#);
        assert_eq!(screen.transcript.status(13_000), "retrying (2.0 s)");
    }

    #[test]
    fn status_returns_to_the_previous_phase_after_a_wait() {
        let mut screen = TranscriptScreen::new(60, 20);
        screen.events(
            r#"
            {"type":"step_start","upstream":"demo","model":"demo","attempt":1,"tools_offered":[]}
            {"type":"waiting","reason":"first_byte","since":100}
            {"type":"problem","code":"tools_left_out"}
            "#,
        );
        assert_eq!(screen.transcript.status(5_000), screen.transcript.words.waiting_first());
        screen.events(
            r#"
            {"type":"thinking","text":"Hm"}
            {"type":"waiting","reason":"silence","since":400}
            {"type":"problem","code":"usage_odd"}
            "#,
        );
        assert_eq!(screen.transcript.status(9_000), screen.transcript.words.thinking());
    }

    #[test]
    fn approval_shows_arguments_source_effect_and_rule() {
        let mut screen = TranscriptScreen::new(60, 20);
        screen.events(
            r#"
            {"type":"tool_use","block":0,"tool_id":"a","tool_name":"demo.calendar","wire_name":"demo_calendar","source":"builtin","effect":"write","status":"preparing","slot":0,"position":0}
            {"type":"tool_input","block":0,"tool_id":"a","arguments":{"title":"a\u202eb"},"seal":"explicit","input_summary":"title: …"}
            {"type":"approval_request","block":0,"tool_id":"a","approval_id":"q","question":"May I?","rule":"rule:2 ask demo.*","expires_at":300000,"arguments_hash":"x"}
            "#,
        );
        screen.check("? demo.calendar  title: …                 awaiting approval\n[waiting for you]");
        let question = &screen.transcript.questions()[0];
        let lines: Vec<String> =
            question.lines(0, (0, 1), UiText(UiLanguage::English)).iter().map(StyledLine::plain).collect();
        assert_eq!(
            lines,
            [
                "Allow this call?  demo.calendar",
                "from builtin · effect: write · rule: rule:2 ask demo.* · 5 min 00 s left",
                "May I?",
                "{",
                "  \"title\": \"a\\u202eb\"",
                "}",
            ]
        );
        screen.events(
            r#"
            {"type":"approval_resolved","block":0,"tool_id":"a","approval_id":"q","decision":"deny","by":"me"}
            {"type":"tool_result","block":0,"tool_id":"a","status":"denied","error":{"code":"denied","message":"not now"}}
            "#,
        );
        assert_eq!(screen.transcript.questions(), []);
        screen.check("⊘ demo.calendar  title: …                            denied\n  └ not now\n[writing]");
    }

    #[test]
    fn edited_arguments_are_shown_with_their_diff() {
        let mut screen = TranscriptScreen::new(60, 20);
        screen.events(
            r#"
            {"type":"tool_use","block":0,"tool_id":"a","tool_name":"demo.calendar","wire_name":"demo_calendar","source":"builtin","effect":"write","status":"preparing","slot":0,"position":0}
            {"type":"tool_input","block":0,"tool_id":"a","arguments":{"title":"Tea","days":[1]},"seal":"explicit","input_summary":"title: Tea, days: [1]"}
            {"type":"approval_request","block":0,"tool_id":"a","approval_id":"q","question":"May I?","rule":"effect:write","arguments_hash":"x"}
            {"type":"approval_resolved","block":0,"tool_id":"a","approval_id":"q","decision":"approve","by":"me","arguments":{"title":"Coffee","days":[1]},"arguments_diff":[{"path":"/title","from":"Tea","to":"Coffee"}]}
            "#,
        );
        screen.check(
            "◦ demo.calendar  title: Coffee, days: [1]\n  ┊ you changed: title \"Tea\" → \"Coffee\"\n[writing]",
        );
    }

    #[test]
    fn thinking_is_shortened_when_it_ends() {
        let mut screen = TranscriptScreen::new(40, 20);
        screen.events(
            r#"
            {"type":"block_start","block":0,"kind":"thinking"}
            {"type":"thinking","block":0,"text":"one\ntwo\nthree\nfour\nfive\n"}
            "#,
        );
        screen.check("┊ thinking · 100 ms\n┊ two\n┊ three\n┊ four\n┊ five\n[thinking]");
        screen.events(r#"{"type":"block_end","block":0}"#);
        screen.check(
            "┊ thought · 200 ms\n┊ one\n┊ two\n┊ three\n┊ four\n┊ … 1 more lines, /thinking shows all\n[thinking]",
        );
    }

    #[test]
    fn failure_shows_message_reason_and_remedy() {
        let mut screen = TranscriptScreen::new(50, 20);
        screen.events(
            r#"
            {"type":"block_start","block":0,"kind":"error","code":"upstream_lost","what":"The stream broke off.","why":"connection reset","remedy":"Ask again.","retryable":true}
            {"type":"error","code":"upstream_lost","what":"The stream broke off.","why":"connection reset","remedy":"Ask again.","retryable":true}
            {"type":"session_stats","steps":1,"calls":0,"usage":{},"wall_ms":1200,"saved_by_eager_ms":0,"segments":[]}
            {"type":"stream_end","status":"error"}
            "#,
        );
        screen.check("✘ The stream broke off.\n  connection reset\n  try: Ask again.\n[connecting]");
        let footer: Vec<String> = screen.transcript.footer().iter().map(StyledLine::plain).collect();
        assert_eq!(footer, ["1.2 s"]);
    }
}
