//! Timing of a replay, without a clock.

use crate::exit::CliFailure;
use crate::messages;
use std::time::Duration;
use throughline_engine::Event;

/// Maximum pause at recorded speed, in milliseconds: long waits for a person are shortened.
pub(crate) const SILENCE_MS_MAX: u64 = 5_000;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ReplaySpeed {
    /// This many times as fast as recorded.
    Factor(f64),
    /// Without any wait.
    Unlimited,
}

impl Default for ReplaySpeed {
    fn default() -> Self {
        ReplaySpeed::Factor(1.0)
    }
}

impl ReplaySpeed {
    /// `4x`, `0.5x`, `2` or `max`.
    pub(crate) fn parse(text: &str) -> Result<Self, CliFailure> {
        if text == "max" {
            return Ok(ReplaySpeed::Unlimited);
        }
        let number = text.strip_suffix('x').unwrap_or(text).parse::<f64>().ok();
        match number.filter(|times| times.is_finite() && *times > 0.0) {
            Some(times) => Ok(ReplaySpeed::Factor(times)),
            None => Err(messages::replay_bad_speed(text)),
        }
    }
}

/// A recorded turn and a position in it.
#[derive(Debug)]
pub(crate) struct ReplayPlayer {
    events: Vec<Event>,
    /// Number of events returned so far.
    position: usize,
    speed: ReplaySpeed,
}

impl ReplayPlayer {
    /// The position before the first event.
    pub(crate) fn new(events: Vec<Event>, speed: ReplaySpeed) -> Self {
        Self { events, position: 0, speed }
    }

    /// Delay before the next event; `None` after the last one.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let next = self.events.get(self.position)?;
        let previous = self.position.checked_sub(1).and_then(|at| self.events.get(at)).unwrap_or(next);
        let silence =
            next.timestamp.saturating_sub(previous.timestamp).max(0).unsigned_abs().min(SILENCE_MS_MAX);
        Some(match self.speed {
            ReplaySpeed::Factor(times) => {
                Duration::from_millis(silence).div_f64(times.max(f64::MIN_POSITIVE)).min(
                    // Slower than anyone would ask for, and within the range of a timer.
                    Duration::from_secs(3_600),
                )
            }
            ReplaySpeed::Unlimited => Duration::ZERO,
        })
    }

    pub(crate) fn next(&mut self) -> Option<&Event> {
        let event = self.events.get(self.position)?;
        self.position += 1;
        Some(event)
    }

    /// The time of the last event that was given, in milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        let at = self.position.saturating_sub(1);
        self.events.get(at).map_or(0, |event| event.timestamp)
    }

    /// Moves to a position: the number of events that have been played.
    pub(crate) fn seek(&mut self, position: usize) {
        self.position = position.min(self.events.len());
    }

    /// Number of events returned so far.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// All events, and those that have been played.
    pub(crate) fn played(&self) -> (&[Event], &[Event]) {
        (&self.events, &self.events[..self.position])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(times: &[i64]) -> Vec<Event> {
        let event = |(at, time): (usize, &i64)| {
            serde_json::from_value(serde_json::json!({
                "turn_id": "t", "seq": at + 1, "timestamp": time, "type": "block_end",
            }))
            .unwrap()
        };
        times.iter().enumerate().map(event).collect()
    }

    #[track_caller]
    fn waits(speed: &str, expected_ms: &[u64]) {
        let times = [1_000, 1_100, 1_100, 90_000, 89_000];
        let mut player = ReplayPlayer::new(recorded(&times), ReplaySpeed::parse(speed).unwrap());
        let mut waits = Vec::new();
        while let Some(wait) = player.wait() {
            waits.push(u64::try_from(wait.as_millis()).unwrap());
            player.next();
        }
        assert_eq!(waits, expected_ms, "{speed}");
    }

    #[test]
    fn replay_speed_scales_waits_and_rejects_invalid_values() {
        waits("1x", &[0, 100, 0, SILENCE_MS_MAX, 0]);
        waits("4", &[0, 25, 0, SILENCE_MS_MAX / 4, 0]);
        waits("0.5x", &[0, 200, 0, SILENCE_MS_MAX * 2, 0]);
        waits("max", &[0; 5]);
        waits("0.0000000001x", &[0, 3_600_000, 0, 3_600_000, 0]);
        for wrong in ["", "x", "-1x", "0", "fast", "NaN", "inf"] {
            assert!(ReplaySpeed::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seek_is_clamped_to_the_recording() {
        let mut player = ReplayPlayer::new(recorded(&[1, 2, 3]), ReplaySpeed::Unlimited);
        player.seek(99);
        assert_eq!((player.position(), player.wait(), player.now()), (3, None, 3));
        assert!(player.next().is_none());
        player.seek(0);
        assert_eq!((player.played().1.len(), player.now()), (0, 1));
    }
}
