//! Use of the wall time of a turn: contiguous segments that sum to it, to the millisecond.
//!
//! A fold of the events and their timestamps, so that a page and a metrics exporter get the same figures as
//! the engine. At each moment exactly one activity is charged: the model's stream while it runs, else a
//! running tool, else the person who is asked, else the cause of the wait.

use crate::event::{BlockStart, Event, EventKind, SegmentKind, TimeSegment, WaitReason};
use crate::id::UnixMillis;
use std::collections::{BTreeMap, BTreeSet};
use throughline_wire::CallId;

/// Segments of a turn's wall time, computed event by event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waterfall {
    start: Option<UnixMillis>,
    /// Time up to here is charged. Never goes back, even if the clock does.
    charged_to: UnixMillis,
    step: Option<u32>,
    stream: Option<SegmentKind>,
    retrying: bool,
    running: BTreeMap<CallId, UnixMillis>,
    asked: BTreeSet<CallId>,
    segments: Vec<TimeSegment>,
    /// Segments before this one were in an earlier `step_end`.
    reported: usize,
    first_content: Option<UnixMillis>,
    saved_by_eager_ms: u64,
}

impl Waterfall {
    /// Takes the next event.
    pub fn apply(&mut self, event: &Event) {
        self.advance(event.timestamp);
        match &event.kind {
            EventKind::StepStart { .. } => {
                self.step = event.step;
                self.stream = Some(SegmentKind::FirstToken);
                self.retrying = false;
            }
            EventKind::StepEnd { .. } => {
                self.stream = None;
                self.retrying = false;
                self.reported = self.segments.len();
            }
            // The stream died with its process; what follows is the new one's.
            EventKind::TurnResumed { .. } => {
                self.stream = None;
                self.running.clear();
            }
            EventKind::Waiting { reason: WaitReason::Retry | WaitReason::RateLimit, .. } => {
                self.stream = None;
                self.retrying = true;
            }
            EventKind::ContentDelta { .. }
            | EventKind::AudioDelta { .. }
            | EventKind::BlockStart(BlockStart::Image(_)) => self.mark_content(SegmentKind::Text),
            EventKind::Thinking { .. } => self.mark_content(SegmentKind::Thinking),
            EventKind::ToolUse { .. } | EventKind::ToolInputDelta { .. } => {
                self.mark_content(SegmentKind::Arguments)
            }
            EventKind::ToolStart { .. } => {
                if let Some(id) = &event.tool_id {
                    self.running.insert(id.clone(), event.timestamp);
                }
            }
            EventKind::ToolResult(_) | EventKind::ToolInputReset | EventKind::ToolRedefined { .. } => {
                if let Some(id) = &event.tool_id {
                    self.running.remove(id);
                    self.asked.remove(id);
                }
            }
            EventKind::ApprovalRequest { .. } => {
                if let Some(id) = &event.tool_id {
                    self.asked.insert(id.clone());
                }
            }
            EventKind::ApprovalResolved { .. } => {
                if let Some(id) = &event.tool_id {
                    self.asked.remove(id);
                }
            }
            EventKind::StreamStart { .. }
            | EventKind::BlockStart(_)
            | EventKind::BlockEnd
            | EventKind::BlockSuperseded { .. }
            | EventKind::Citation { .. }
            | EventKind::ModelText { .. }
            | EventKind::ToolInput(_)
            | EventKind::ToolProgress(_)
            | EventKind::UserMessage { .. }
            | EventKind::Waiting {
                reason: WaitReason::FirstByte | WaitReason::Silence | WaitReason::Store | WaitReason::Client,
                ..
            }
            | EventKind::Problem { .. }
            | EventKind::SessionStats(_)
            | EventKind::Error(_)
            | EventKind::StreamEnd { .. }
            | EventKind::Unrecognised => {}
        }
    }

    /// The segments up to `now` that no `step_end` has carried yet.
    pub fn since_last_step(&self, now: UnixMillis) -> Vec<TimeSegment> {
        let mut copy = self.clone();
        copy.advance(now);
        copy.segments.split_off(self.reported.min(copy.segments.len()))
    }

    /// All segments up to `now`: contiguous from the start of the turn.
    pub fn segments_until(&self, now: UnixMillis) -> Vec<TimeSegment> {
        let mut copy = self.clone();
        copy.advance(now);
        copy.segments
    }

    /// Wall time up to `now`, in milliseconds; the sum of [`Waterfall::segments_until`].
    pub fn wall_ms(&self, now: UnixMillis) -> u64 {
        self.start.map_or(0, |start| now.max(self.charged_to).abs_diff(start))
    }

    /// From the start to the first content, in milliseconds.
    pub fn first_content_ms(&self) -> Option<u64> {
        Some(self.first_content?.abs_diff(self.start?))
    }

    /// Time in which a model wrote thinking, text and arguments, in milliseconds.
    pub fn writing_ms(&self) -> u64 {
        let writing = [SegmentKind::Thinking, SegmentKind::Text, SegmentKind::Arguments];
        self.segments.iter().filter(|segment| writing.contains(&segment.kind)).map(|segment| segment.ms).sum()
    }

    /// Time in which a tool ran during the model's stream: the most that the barrier would have cost in addition.
    pub fn saved_by_eager_ms(&self) -> u64 {
        self.saved_by_eager_ms
    }

    fn mark_content(&mut self, kind: SegmentKind) {
        if self.stream.is_some() {
            self.stream = Some(kind);
            self.first_content.get_or_insert(self.charged_to);
        }
    }

    /// Charges the time up to `now` to the current activity.
    fn advance(&mut self, now: UnixMillis) {
        let Some(_) = self.start else {
            self.start = Some(now);
            self.charged_to = now;
            return;
        };
        if now <= self.charged_to {
            return;
        }
        let ms = now.abs_diff(self.charged_to);
        if self.stream.is_some() && !self.running.is_empty() {
            self.saved_by_eager_ms += ms;
        }
        let (kind, tool_id) = self.activity();
        let start = std::mem::replace(&mut self.charged_to, now);
        // A segment that an earlier step_end carried is closed: growing it would count its time twice.
        let open = self.segments.len() > self.reported;
        match self
            .segments
            .last_mut()
            .filter(|last| open && last.kind == kind && last.tool_id == tool_id && last.step == self.step)
        {
            Some(last) => last.ms += ms,
            None => self.segments.push(TimeSegment { kind, step: self.step, tool_id, start, ms }),
        }
    }

    fn activity(&self) -> (SegmentKind, Option<CallId>) {
        if let Some(kind) = self.stream {
            return (kind, None);
        }
        // The tool that has run longest: with several in parallel, it determines the wait. A tool that itself
        // waits for a person is charged to the person.
        let working = self.running.iter().filter(|(id, _)| !self.asked.contains(*id));
        if let Some((id, _)) = working.min_by_key(|(_, since)| **since) {
            return (SegmentKind::Tool, Some(id.clone()));
        }
        if let Some(id) = self.asked.iter().next() {
            return (SegmentKind::ApprovalWait, Some(id.clone()));
        }
        (if self.retrying { SegmentKind::Retry } else { SegmentKind::Engine }, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{QuestionKind, ToolResult};
    use crate::id::EventSeq;
    use crate::policy::ApprovalDecision;
    use throughline_wire::{CallOutcome, ToolOutput};

    /// Events at their times, as `kind` words; the segments as `kind ms` words.
    fn check(script: &[(UnixMillis, &str)], expected: &str, saved: u64) {
        let mut waterfall = Waterfall::default();
        for (seq, (at, word)) in (1..).zip(script) {
            waterfall.apply(&event(seq, *at, word));
        }
        let end = script.last().map_or(0, |(at, _)| *at);
        let segments = waterfall.segments_until(end);
        let words: Vec<String> = segments
            .iter()
            .map(|segment| {
                let kind = serde_json::to_value(segment.kind).unwrap();
                format!("{} {}", kind.as_str().unwrap(), segment.ms)
            })
            .collect();
        assert_eq!(words.join(", "), expected);
        assert_eq!(segments.iter().map(|segment| segment.ms).sum::<u64>(), waterfall.wall_ms(end));
        for pair in segments.windows(2) {
            assert_eq!(pair[0].start + pair[0].ms as UnixMillis, pair[1].start, "contiguous");
        }
        assert_eq!(waterfall.saved_by_eager_ms(), saved);
    }

    fn event(seq: u64, timestamp: UnixMillis, word: &str) -> Event {
        let (word, id) = word.split_once(' ').unwrap_or((word, ""));
        let text = || "x".to_owned();
        let kind = match word {
            "step" => EventKind::StepStart {
                upstream: text(),
                model: text(),
                attempt: 1,
                fallback: 0,
                tools_offered: Vec::new(),
            },
            "end" => EventKind::StepEnd { finish: None, finish_raw: None, usage: None, segments: Vec::new() },
            "text" => EventKind::ContentDelta { text: text() },
            "think" => EventKind::Thinking { text: text() },
            "args" => EventKind::tool_input_delta(text()),
            "start" => EventKind::ToolStart { early: false, attempt: 1, rule: None, client_id: None },
            "done" => {
                EventKind::ToolResult(ToolResult::new(&CallOutcome::Done(ToolOutput::default()), None, None))
            }
            "ask" => EventKind::ApprovalRequest {
                approval_id: "a".into(),
                kind: QuestionKind::Call,
                question: text(),
                rule: text(),
                expires_at: None,
                arguments_text: None,
                arguments_hash: text(),
                fingerprint: text(),
                schema: None,
                url: None,
            },
            "answer" => EventKind::ApprovalResolved {
                approval_id: "a".into(),
                decision: ApprovalDecision::Approve,
                by: text(),
                reason: None,
                arguments: None,
                arguments_diff: None,
                remember: None,
                remembered: None,
                answer: None,
                content: None,
                stop: false,
            },
            "retry" => EventKind::Waiting { reason: WaitReason::Retry, since: None, until: None, why: None },
            _ => EventKind::TurnResumed { epoch: 1 },
        };
        Event {
            turn_id: "t".into(),
            seq: EventSeq(seq),
            timestamp,
            step: Some(1),
            block: None,
            tool_id: (!id.is_empty()).then(|| CallId::new(id)),
            kind,
        }
    }

    #[test]
    fn writing_time_runs_from_first_content_to_step_end() {
        let mut waterfall = Waterfall::default();
        let script =
            [(0, "step"), (100, "think"), (150, "text"), (200, "args a"), (300, "end"), (310, "start a")];
        for (seq, (at, word)) in (1..).zip(script) {
            waterfall.apply(&event(seq, at, word));
        }
        assert_eq!((waterfall.first_content_ms(), waterfall.writing_ms()), (Some(100), 200));
    }

    #[test]
    fn waterfall_charges_each_moment_once() {
        check(
            &[(0, "step"), (100, "think"), (150, "text"), (250, "text"), (300, "end")],
            "first_token 100, thinking 50, text 150",
            0,
        );
        // A tool that runs during the stream costs nothing; only the rest of its run does.
        check(
            &[(0, "step"), (10, "args a"), (20, "start a"), (60, "text"), (100, "end"), (130, "done a")],
            "first_token 10, arguments 50, text 40, tool 30",
            80,
        );
        // Two tools in parallel: the longer one is charged.
        check(
            &[(0, "step"), (0, "end"), (0, "start a"), (5, "start b"), (20, "done b"), (50, "done a")],
            "tool 50",
            0,
        );
        // A person is charged only while nothing runs.
        check(
            &[
                (0, "step"),
                (0, "end"),
                (0, "ask a"),
                (0, "start b"),
                (30, "done b"),
                (90, "answer a"),
                (95, "start a"),
            ],
            "tool 30, approval_wait 60, engine 5",
            0,
        );
        check(
            &[(0, "step"), (10, "retry"), (510, "step"), (520, "text"), (530, "end")],
            "first_token 10, retry 500, first_token 10, text 10",
            0,
        );
        // The clock goes back: nothing is charged twice.
        check(&[(100, "step"), (200, "text"), (150, "text"), (220, "end")], "first_token 100, text 20", 0);
    }
}
