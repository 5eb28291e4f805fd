//! Thresholds for streaming tool calls, compared with recent measurements of this server.
//!
//! The window has a limited number of calls and time slots, so an answer costs the same after any number of
//! calls.

use super::meter::DETECTION_WINDOW_CALLS;
use super::names;
use super::percentiles::Percentiles;
use serde::Serialize;
use std::collections::VecDeque;
use utoipa::ToSchema;

/// Window of calls, in milliseconds: that of the alert on the detection rate.
const CALLS_WINDOW_MS: i64 = 15 * 60 * 1_000;
/// Window of late frames and rollbacks, in milliseconds: that of their alerts.
const COUNTS_WINDOW_MS: i64 = 5 * 60 * 1_000;
/// Length of one slot of those, in milliseconds.
const SLOT_MS: i64 = 10_000;
/// Minimum number of calls for a detection rate.
const DETECTION_CALLS_MIN: usize = 20;
/// Window of ratings, in milliseconds: people rate seldom.
const RATINGS_WINDOW_MS: i64 = 24 * 60 * 60 * 1_000;
/// Minimum number of ratings for a share.
const RATINGS_MIN: usize = 20;

/// Side of the limit on which a value is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ThresholdSide {
    AtLeast,
    AtMost,
}

/// A threshold, and whether it holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct ThresholdInfo {
    /// Name of the metric.
    #[schema(example = "streaming_tool_execution_latency_p95")]
    pub name: &'static str,
    /// `ratio`, `s` or `per_minute`.
    pub unit: &'static str,
    /// Value in the window; null if too little happened to say.
    pub value: Option<f64>,
    /// The limit.
    pub limit: f64,
    /// `at_least` or `at_most`: what the value has to be of the limit.
    #[schema(value_type = String)]
    pub side: ThresholdSide,
    /// True if it holds; null without a value.
    pub holds: Option<bool>,
    /// Calls, late frames, changes or ratings that the value is made of.
    pub samples: u64,
    /// Length of the window in milliseconds. Of calls and ratings the newest 1,000 of it count.
    pub window_ms: i64,
}

/// Calls and counts of the latest time.
#[derive(Debug, Default)]
pub(super) struct ThresholdWindow {
    /// Time at which each call was seen on the wire; true if it arrived whole.
    assessments: VecDeque<(i64, bool)>,
    /// Time at which each call ended, and its duration in milliseconds.
    executions: VecDeque<(i64, u64)>,
    jank_frames: SlotCounter,
    rollbacks: SlotCounter,
    ratings: VecDeque<RatedTurn>,
}

#[derive(Debug)]
struct RatedTurn {
    at: i64,
    turn: String,
    is_up: bool,
}

impl ThresholdWindow {
    pub(super) fn call_assessed(&mut self, now: i64, is_detected: bool) {
        push_bounded(&mut self.assessments, (now, is_detected));
    }

    pub(super) fn call_executed(&mut self, now: i64, ms: u64) {
        push_bounded(&mut self.executions, (now, ms));
    }

    pub(super) fn jank_frames(&mut self, now: i64, frames: u64) {
        self.jank_frames.add(now, frames);
    }

    pub(super) fn rolled_back(&mut self, now: i64) {
        self.rollbacks.add(now, 1);
    }

    /// Records a rating. It replaces the previous one of the same answer; `None` retracts it.
    pub(super) fn rated(&mut self, now: i64, turn: &str, is_up: Option<bool>) {
        self.ratings.retain(|rated| rated.turn != turn);
        if let Some(is_up) = is_up {
            push_bounded(&mut self.ratings, RatedTurn { at: now, turn: turn.to_owned(), is_up });
        }
    }

    /// All thresholds at this time.
    pub(super) fn thresholds(&self, now: i64) -> Vec<ThresholdInfo> {
        let since = now - CALLS_WINDOW_MS;
        let seen = self.assessments.iter().filter(|(at, _)| *at > since);
        let (calls, detected) =
            seen.fold((0, 0), |(calls, detected), (_, whole)| (calls + 1, detected + usize::from(*whole)));
        let rate = (calls >= DETECTION_CALLS_MIN).then(|| detected as f64 / calls as f64);
        let rated = self.ratings.iter().filter(|rated| rated.at > now - RATINGS_WINDOW_MS);
        let (ratings, up) =
            rated.fold((0, 0), |(ratings, up), rated| (ratings + 1, up + usize::from(rated.is_up)));
        let positive = (ratings >= RATINGS_MIN).then(|| up as f64 / ratings as f64);
        let executed = self.executions.iter().filter(|(at, _)| *at > since);
        let latency = Percentiles::of(executed.map(|(_, ms)| *ms as f64 / 1_000.0).collect());
        let minutes = (COUNTS_WINDOW_MS / 60_000) as f64;
        let (janks, rollbacks) = (self.jank_frames.sum(now), self.rollbacks.sum(now));
        let per_minute = |count: u64| Some(count as f64 / minutes);
        use ThresholdSide::{AtLeast, AtMost};
        vec![
            threshold(
                names::DETECTION_RATE.name,
                "ratio",
                rate,
                AtLeast,
                0.95,
                calls as u64,
                CALLS_WINDOW_MS,
            ),
            threshold(
                "streaming_tool_execution_latency_p50",
                "s",
                latency.p50,
                AtMost,
                1.0,
                latency.count,
                CALLS_WINDOW_MS,
            ),
            threshold(
                "streaming_tool_execution_latency_p95",
                "s",
                latency.p95,
                AtMost,
                3.0,
                latency.count,
                CALLS_WINDOW_MS,
            ),
            threshold(
                "streaming_ui_jank_frames",
                "per_minute",
                per_minute(janks),
                AtMost,
                5.0,
                janks,
                COUNTS_WINDOW_MS,
            ),
            threshold(
                "streaming_rollback_count",
                "per_minute",
                per_minute(rollbacks),
                AtMost,
                10.0,
                rollbacks,
                COUNTS_WINDOW_MS,
            ),
            threshold(
                "feedback_positive_rate",
                "ratio",
                positive,
                AtLeast,
                0.8,
                ratings as u64,
                RATINGS_WINDOW_MS,
            ),
        ]
    }
}

fn threshold(
    name: &'static str,
    unit: &'static str,
    value: Option<f64>,
    side: ThresholdSide,
    limit: f64,
    samples: u64,
    window_ms: i64,
) -> ThresholdInfo {
    let holds = value.map(|value| match side {
        ThresholdSide::AtLeast => value >= limit,
        ThresholdSide::AtMost => value <= limit,
    });
    ThresholdInfo { name, unit, value, limit, side, holds, samples, window_ms }
}

fn push_bounded<T>(values: &mut VecDeque<T>, value: T) {
    if values.len() >= DETECTION_WINDOW_CALLS {
        values.pop_front();
    }
    values.push_back(value);
}

/// Counts of the last slots of time.
#[derive(Debug, Default)]
struct SlotCounter(VecDeque<(i64, u64)>);

impl SlotCounter {
    fn add(&mut self, now: i64, count: u64) {
        let slot = now / SLOT_MS;
        match self.0.back_mut() {
            // After the clock was set back, samples are added to the current slot.
            Some((last, total)) if *last >= slot => *total = total.saturating_add(count),
            _ => self.0.push_back((slot, count)),
        }
        while self.0.front().is_some_and(|(first, _)| *first <= slot - COUNTS_WINDOW_MS / SLOT_MS) {
            self.0.pop_front();
        }
    }

    fn sum(&self, now: i64) -> u64 {
        let since = now / SLOT_MS - COUNTS_WINDOW_MS / SLOT_MS;
        self.0.iter().filter(|(slot, _)| *slot > since).map(|(_, count)| *count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(window: &ThresholdWindow, now: i64, expected: [(Option<f64>, Option<bool>, u64); 6]) {
        let got = window.thresholds(now);
        let got: Vec<_> = got.iter().map(|row| (row.value, row.holds, row.samples)).collect();
        assert_eq!(got, expected);
    }

    const MINUTE: i64 = 60_000;

    #[test]
    fn thresholds_are_evaluated_over_their_windows() {
        let mut window = ThresholdWindow::default();
        let quiet = [
            (None, None, 0),
            (None, None, 0),
            (None, None, 0),
            (Some(0.0), Some(true), 0),
            (Some(0.0), Some(true), 0),
            (None, None, 0),
        ];
        check(&window, 0, quiet);
        for call in 0..20 {
            window.call_assessed(MINUTE, call != 0);
            window.call_executed(MINUTE, if call < 10 { 1_000 } else { 3_001 });
        }
        window.jank_frames(MINUTE, 25);
        (0..51).for_each(|_| window.rolled_back(MINUTE));
        let busy = [
            (Some(0.95), Some(true), 20),
            (Some(1.0), Some(true), 20),
            (Some(3.001), Some(false), 20),
            (Some(5.0), Some(true), 25),
            (Some(10.2), Some(false), 51),
            (None, None, 0),
        ];
        check(&window, 2 * MINUTE, busy);
        window.call_assessed(2 * MINUTE, false);
        assert_eq!(window.thresholds(2 * MINUTE)[0].holds, Some(false));
        // Each forgets what is too old for it.
        assert_eq!(window.thresholds(7 * MINUTE)[4].samples, 0);
        assert_eq!(window.thresholds(7 * MINUTE)[1].samples, 20);
        check(&window, 18 * MINUTE, quiet);
    }

    #[test]
    fn ratings_count_once_per_answer_from_twenty_on() {
        let mut window = ThresholdWindow::default();
        let row = |window: &ThresholdWindow, now| {
            let row = window.thresholds(now)[5];
            (row.value, row.holds, row.samples)
        };
        (0..19).for_each(|turn| window.rated(MINUTE, &format!("turn_{turn}"), Some(turn >= 4)));
        assert_eq!(row(&window, 2 * MINUTE), (None, None, 19));
        window.rated(MINUTE, "turn_19", Some(true));
        assert_eq!(row(&window, 2 * MINUTE), (Some(0.8), Some(true), 20));
        // A second rating of the same answer replaces the first, and a retracted one does not count.
        window.rated(MINUTE, "turn_19", Some(false));
        assert_eq!(row(&window, 2 * MINUTE), (Some(0.75), Some(false), 20));
        window.rated(MINUTE, "turn_19", None);
        assert_eq!(row(&window, 2 * MINUTE), (None, None, 19));
        assert_eq!(row(&window, MINUTE + RATINGS_WINDOW_MS), (None, None, 0));
        (0..5_000).for_each(|turn| window.rated(MINUTE, &format!("more_{turn}"), Some(true)));
        assert_eq!(row(&window, 2 * MINUTE), (Some(1.0), Some(true), DETECTION_WINDOW_CALLS as u64));
    }

    #[test]
    fn window_memory_is_bounded() {
        let mut window = ThresholdWindow::default();
        for call in 0..100_000 {
            window.call_assessed(call, true);
            window.call_executed(call, 1);
            window.jank_frames(call * 10_000, 1);
            window.rolled_back(call * 10_000);
        }
        let bounds = (DETECTION_WINDOW_CALLS, (COUNTS_WINDOW_MS / SLOT_MS) as usize);
        assert_eq!((window.assessments.len(), window.executions.len()), (bounds.0, bounds.0));
        assert_eq!((window.jank_frames.0.len(), window.rollbacks.0.len()), (bounds.1, bounds.1));
        assert_eq!(window.thresholds(100_000)[0].samples, 1_000);
    }
}
