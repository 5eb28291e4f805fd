//! What the terminal shows of a turn: a fold of its events to lines, settled from the top.

use super::block::{Block, Thinking};
use super::form::Form;
use super::question::{Question, Wants};
use super::wording::{allowed_by, changed, finish_card, full_arguments, remembered_as, summary, totals};
use crate::messages::Words;
use crate::terminal::card::{Card, duration};
use crate::terminal::markdown::MarkdownStream;
use crate::terminal::text::{Ink, Line, Style};
use throughline_engine::{
    BlockStart, CallStatus, Event, EventKind, QuestionKind, SessionStats, ToolInput, TurnStatus, WaitReason,
};
use throughline_wire::UserPart;

/// Whether reasoning is shown in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reasoning {
    /// Its last lines while it comes, its first lines afterwards.
    #[default]
    Folded,
    /// All of it.
    Full,
}

/// One turn on the screen.
#[derive(Debug)]
pub struct Transcript {
    words: Words,
    reasoning: Reasoning,
    blocks: Vec<Block>,
    /// Blocks whose lines have all been handed out.
    settled: usize,
    questions: Vec<Question>,
    activity: Activity,
    started_at: i64,
    ended: Option<TurnStatus>,
    stats: Option<SessionStats>,
}

/// What the model does, as far as no tool and no question says more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Activity {
    #[default]
    Connecting,
    FirstWord,
    Thinking,
    Writing,
    Waiting(WaitReason, Option<i64>),
}

/// New lines for the screen.
#[derive(Debug, Default, PartialEq)]
pub struct Shown {
    /// Final: printed once.
    pub settled: Vec<Line>,
    /// In progress: shown until the next frame.
    pub live: Vec<Line>,
}

impl Transcript {
    /// A turn of which nothing has been seen, begun at `now` (ms since 1970).
    pub fn new(words: Words, reasoning: Reasoning, now: i64) -> Self {
        Self {
            words,
            reasoning,
            blocks: Vec::new(),
            settled: 0,
            questions: Vec::new(),
            activity: Activity::default(),
            started_at: now,
            ended: None,
            stats: None,
        }
    }

    /// What a person is asked now, in the order in which it was asked.
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Takes one event.
    pub fn apply(&mut self, event: &Event) {
        let block = event.block.map(|at| at as usize);
        match &event.kind {
            EventKind::StreamStart { .. } => self.started_at = event.timestamp,
            EventKind::StepStart { .. } => self.activity = Activity::FirstWord,
            EventKind::BlockStart(start) => self.open(start, event.timestamp),
            EventKind::ContentDelta { text } => {
                self.activity = Activity::Writing;
                if let Some(Block::Text { markdown, .. }) = self.block(block) {
                    markdown.push(text);
                }
            }
            EventKind::Thinking { text } => {
                self.activity = Activity::Thinking;
                if let Some(Block::Thinking(thinking)) = self.block(block) {
                    thinking.text.push_str(text);
                }
            }
            EventKind::BlockEnd => match self.block(block) {
                Some(Block::Text { open, .. }) => *open = false,
                Some(Block::Thinking(thinking)) => thinking.ended_at = Some(event.timestamp),
                Some(Block::Sound { open, .. }) => *open = false,
                _ => {}
            },
            EventKind::UserMessage { input, .. } => {
                let said = input.iter().filter_map(|part| match part {
                    UserPart::Text { text } => Some(text.as_str()),
                    _ => None,
                });
                self.blocks.push(Block::Said(said.collect::<Vec<_>>().join("\n")));
            }
            EventKind::ToolUse { tool_name, source, effect, status, input_summary, .. } => {
                let mut card = Card { state: *status, ..Card::new(tool_name.as_str()) };
                card.input.clone_from(input_summary);
                let effect = effect.name().to_owned();
                let source = source.clone();
                let card = Box::new(card);
                self.blocks.push(Block::Call {
                    id: event.tool_id.clone(),
                    card,
                    text: String::new(),
                    effect,
                    source,
                });
            }
            EventKind::AudioDelta { transcript, .. } => {
                if let Some(Block::Sound { said, .. }) = self.block(block) {
                    said.push_str(transcript);
                }
            }
            EventKind::BlockSuperseded { keep_chars } => {
                if let Some(Block::Text { markdown, open, .. }) = self.block(block) {
                    markdown.keep_chars(usize::try_from(*keep_chars).unwrap_or(usize::MAX));
                    *open = true;
                }
            }
            EventKind::Waiting { reason, until, .. } => self.activity = Activity::Waiting(*reason, *until),
            // Said where the answer is given.
            EventKind::Problem { code, .. } if matches!(code.as_str(), "invalid_edit" | "stale_answer") => {}
            EventKind::Problem { code, excerpt, remedy: Some(remedy), .. } => {
                let what = if excerpt.is_empty() { code.clone() } else { format!("{code}: {excerpt}") };
                self.blocks.push(Block::Remark { what, remedy: remedy.clone() });
            }
            EventKind::SessionStats(stats) => self.stats = Some(stats.clone()),
            EventKind::StreamEnd { status } => {
                self.ended = Some(*status);
                self.questions.clear();
            }
            _ => self.call_event(event),
        }
    }

    /// Events of one tool call: one call, one card. R: T5, L6
    fn call_event(&mut self, event: &Event) {
        let words = self.words;
        let questions = &mut self.questions;
        let call = self.blocks.iter_mut().rev().find_map(|block| match block {
            Block::Call { id, card, text, effect, source } if *id == event.tool_id => {
                Some((card, text, effect, source))
            }
            _ => None,
        });
        let Some((card, text, effect, source)) = call else { return };
        match &event.kind {
            EventKind::ToolInputDelta { delta } => {
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
                card.input = summary(input);
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
                let wants = match (kind, url, schema) {
                    (QuestionKind::Elicitation, Some(url), _) => Wants::Address(url.clone()),
                    (QuestionKind::Elicitation, None, schema) => {
                        Wants::Fields(schema.as_ref().map(Form::of).unwrap_or_default())
                    }
                    _ => {
                        card.state = CallStatus::AwaitingApproval;
                        card.state_words = words.awaiting().to_owned();
                        Wants::Approval { arguments: text.clone() }
                    }
                };
                questions.push(Question {
                    id: approval_id.clone(),
                    call: event.tool_id.clone(),
                    tool: card.name.clone(),
                    source: source.clone(),
                    effect: effect.clone(),
                    question: question.clone(),
                    rule: rule.clone(),
                    expires_at: *expires_at,
                    arguments_hash: arguments_hash.clone(),
                    wants,
                });
            }
            EventKind::ApprovalResolved { approval_id, arguments, arguments_diff, remember, .. } => {
                questions.retain(|question| question.id != *approval_id);
                // A call that asked something while it ran runs on.
                if card.state == CallStatus::AwaitingApproval {
                    card.state = CallStatus::Queued;
                    card.state_words.clear();
                }
                if let Some(arguments) = arguments {
                    let edited = ToolInput::edited(arguments);
                    *text = full_arguments(&edited);
                    card.input = summary(&edited);
                }
                card.notes.extend(arguments_diff.as_ref().map(|diff| changed(diff, words)));
                card.notes.extend(remember.as_deref().and_then(|scope| remembered_as(scope, words)));
            }
            EventKind::ToolRedefined { .. } => card.notes.push(words.redefined().to_owned()),
            EventKind::ToolStart { rule, .. } => {
                // What runs because of its effect needs no explanation.
                card.notes.extend(rule.as_deref().and_then(|rule| allowed_by(rule, words)));
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
    pub fn show(&mut self, now: i64, columns: usize) -> Shown {
        let mut shown = Shown::default();
        while let Some(block) = self.blocks.get_mut(self.settled) {
            let (lines, done) = block.settle(now, columns, self.words, self.reasoning);
            let first = !block.begun(!lines.is_empty());
            let gap = first && !lines.is_empty() && needs_gap(&self.blocks, self.settled);
            shown.settled.extend(gap.then(Line::default));
            shown.settled.extend(lines);
            if !done {
                break;
            }
            self.settled += 1;
        }
        for at in self.settled..self.blocks.len() {
            let lines = self.blocks[at].live(now, columns, self.words, self.reasoning);
            let begun = self.blocks[at].has_begun();
            let gap = !begun && !lines.is_empty() && needs_gap(&self.blocks, at);
            shown.live.extend(gap.then(Line::default));
            shown.live.extend(lines);
        }
        shown
    }

    /// What is going on, in one line.
    pub fn status(&self, now: i64) -> String {
        let running = self.count(|state| state == CallStatus::Running);
        if !self.questions.is_empty() {
            return self.words.waiting_for_you().to_owned();
        }
        if running > 0 {
            return self.words.running(running);
        }
        match &self.activity {
            Activity::Connecting => self.words.connecting().to_owned(),
            Activity::FirstWord => self.words.waiting_first().to_owned(),
            Activity::Thinking => self.words.thinking().to_owned(),
            Activity::Writing => self.words.writing().to_owned(),
            Activity::Waiting(reason, until) => {
                let words = match reason {
                    WaitReason::FirstByte => self.words.waiting_first(),
                    WaitReason::RateLimit => self.words.waiting_rate_limit(),
                    WaitReason::Retry => self.words.waiting_retry(),
                    WaitReason::Store => self.words.waiting_store(),
                    WaitReason::Client => self.words.waiting_client(),
                };
                match until.map(|until| until - now).filter(|left| *left > 0) {
                    Some(left) => format!("{words} ({})", duration(left.unsigned_abs())),
                    None => words.to_owned(),
                }
            }
        }
    }

    /// How long the turn has been running.
    pub fn elapsed(&self, now: i64) -> String {
        duration(now.saturating_sub(self.started_at).max(0).unsigned_abs())
    }

    /// The line under a turn that has ended: why, unless it just completed, and what it took.
    pub fn footer(&self) -> Vec<Line> {
        let words = self.words;
        // A notice or an error at the end of the message has said it already.
        let said = matches!(self.blocks.last(), Some(Block::Notice(_) | Block::Failure(_)));
        let why = match self.ended {
            _ if said => None,
            None | Some(TurnStatus::Completed) => None,
            Some(TurnStatus::Length) => Some(words.ended_length()),
            Some(TurnStatus::Limit) => Some(words.ended_limit()),
            Some(TurnStatus::Error) => Some(words.ended_error()),
            Some(TurnStatus::Cancelled) => Some(words.ended_cancelled()),
            Some(TurnStatus::Interrupted) => Some(words.ended_interrupted()),
        };
        let mut line = Line::default();
        if let Some(why) = why {
            line.push(why, Style::ink(Ink::Yellow));
        }
        if let Some(stats) = &self.stats {
            line.push(if why.is_some() { " · " } else { "" }, Style::DIM);
            line.push(&totals(words, stats), Style::DIM);
        }
        if line.0.is_empty() { Vec::new() } else { vec![line] }
    }

    fn count(&self, is: impl Fn(CallStatus) -> bool) -> usize {
        self.blocks.iter().filter(|block| matches!(block, Block::Call { card, .. } if is(card.state))).count()
    }

    fn open(&mut self, start: &BlockStart, now: i64) {
        let block = match start {
            BlockStart::Text { code } => {
                self.activity = Activity::Writing;
                let refused = code.is_some();
                Block::Text { markdown: MarkdownStream::default(), open: true, refused, begun: false }
            }
            BlockStart::Thinking => {
                self.activity = Activity::Thinking;
                Block::Thinking(Thinking { text: String::new(), started_at: now, ended_at: None })
            }
            BlockStart::Audio => Block::Sound { said: String::new(), open: true },
            BlockStart::Image(media) => Block::Picture {
                media_type: media.media_type.clone(),
                bytes: usize::try_from(media.bytes()).unwrap_or(usize::MAX),
            },
            BlockStart::Notice { text, .. } => Block::Notice(text.clone()),
            BlockStart::Error(fault) => Block::Failure(fault.clone()),
            _ => return,
        };
        self.blocks.push(block);
    }

    /// Deltas name a position in the message, where blocks stand in the order they were opened in; remarks are ours.
    fn block(&mut self, at: Option<usize>) -> Option<&mut Block> {
        let own = |block: &&mut Block| !matches!(block, Block::Remark { .. });
        self.blocks.iter_mut().filter(own).nth(at?)
    }
}

/// Cards stand together; everything else is a blank line apart.
fn needs_gap(blocks: &[Block], at: usize) -> bool {
    let call = |at: usize| matches!(blocks.get(at), Some(Block::Call { .. }));
    match at {
        0 => false,
        at => !(call(at - 1) && call(at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Lang;
    use crate::terminal::painter::Painter;
    use crate::terminal::virtual_screen::VirtualScreen;

    /// A log as it is stored, numbered and dated here: one event a line, 100 ms apart.
    struct Screen {
        transcript: Transcript,
        painter: Painter,
        screen: VirtualScreen,
        now: i64,
        seq: u64,
    }

    impl Screen {
        fn new(columns: u16, rows: u16) -> Self {
            Self {
                transcript: Transcript::new(Words(Lang::English), Reasoning::Folded, 0),
                painter: Painter::new(columns, rows),
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
            let mut shown = self.transcript.show(self.now, self.painter.columns());
            shown.live.push(Line::new(&format!("[{}]", self.transcript.status(self.now)), Style::DIM));
            let out = self.painter.frame(shown.settled, shown.live, None);
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
    fn a_turn_lives_on_the_screen() {
        let mut screen = Screen::new(60, 20);
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
  └ the reply broke off before the call was complete;
    nothing was run

It is sunny.
[writing]
"#,
        );
        assert_eq!(screen.transcript.ended, Some(TurnStatus::Completed));
    }

    // R: R4
    #[test]
    fn a_question_shows_everything_that_would_run() {
        let mut screen = Screen::new(60, 20);
        screen.events(
            r#"
            {"type":"tool_use","block":0,"tool_id":"a","tool_name":"demo.calendar","wire_name":"demo_calendar","source":"builtin","effect":"write","status":"preparing","slot":0,"position":0}
            {"type":"tool_input","block":0,"tool_id":"a","arguments":{"title":"a\u202eb"},"seal":"explicit","input_summary":"title: …"}
            {"type":"approval_request","block":0,"tool_id":"a","approval_id":"q","question":"May I?","rule":"rule:2 ask demo.*","expires_at":300000,"arguments_hash":"x"}
            "#,
        );
        screen.check("? demo.calendar  title: …                            may I?\n[waiting for you]");
        let question = &screen.transcript.questions()[0];
        let lines: Vec<String> =
            question.lines(0, (0, 1), Words(Lang::English)).iter().map(Line::plain).collect();
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
        screen
            .check("⊘ demo.calendar  title: …                            denied\n  └ not now\n[connecting]");
    }

    // R: A2
    #[test]
    fn arguments_that_a_person_changed_are_shown_like_any_others() {
        let mut screen = Screen::new(60, 20);
        screen.events(
            r#"
            {"type":"tool_use","block":0,"tool_id":"a","tool_name":"demo.calendar","wire_name":"demo_calendar","source":"builtin","effect":"write","status":"preparing","slot":0,"position":0}
            {"type":"tool_input","block":0,"tool_id":"a","arguments":{"title":"Tea","days":[1]},"seal":"explicit","input_summary":"title: Tea, days: [1]"}
            {"type":"approval_request","block":0,"tool_id":"a","approval_id":"q","question":"May I?","rule":"effect:write","arguments_hash":"x"}
            {"type":"approval_resolved","block":0,"tool_id":"a","approval_id":"q","decision":"approve","by":"me","arguments":{"title":"Coffee","days":[1]},"arguments_diff":[{"path":"/title","from":"Tea","to":"Coffee"}]}
            "#,
        );
        screen.check(
            "◦ demo.calendar  title: Coffee, days: [1]\n  ┊ you changed: title \"Tea\" → \"Coffee\"\n[connecting]",
        );
    }

    #[test]
    fn thinking_folds_when_it_is_over() {
        let mut screen = Screen::new(40, 20);
        screen.events(
            r#"
            {"type":"block_start","block":0,"kind":"thinking"}
            {"type":"thinking","block":0,"text":"one\ntwo\nthree\nfour\nfive\n"}
            "#,
        );
        screen.check("┊ thinking · 100 ms\n┊ two\n┊ three\n┊ four\n┊ five\n[thinking]");
        screen.events(r#"{"type":"block_end","block":0}"#);
        screen.check(
            "┊ thought · 200 ms\n┊ one\n┊ two\n┊ three\n┊ four\n┊ … 1 lines more, /thinking shows all\n[thinking]",
        );
    }

    #[test]
    fn a_failure_says_what_why_and_what_to_do() {
        let mut screen = Screen::new(50, 20);
        screen.events(
            r#"
            {"type":"block_start","block":0,"kind":"error","code":"upstream_lost","what":"The stream broke off.","why":"connection reset","remedy":"Ask again.","retryable":true}
            {"type":"error","code":"upstream_lost","what":"The stream broke off.","why":"connection reset","remedy":"Ask again.","retryable":true}
            {"type":"session_stats","steps":1,"calls":0,"usage":{},"wall_ms":1200,"saved_by_eager_ms":0,"segments":[]}
            {"type":"stream_end","status":"error"}
            "#,
        );
        screen.check("✘ The stream broke off.\n  connection reset\n  try: Ask again.\n[connecting]");
        let footer: Vec<String> = screen.transcript.footer().iter().map(Line::plain).collect();
        assert_eq!(footer, ["1.2 s"]);
    }
}
