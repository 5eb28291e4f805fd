//! The loop guard: cycles of calls without progress.
//!
//! A cycle of period p is one in which each call repeats the call p positions before it: same tool, same
//! canonical arguments, same result. `A A A` has period 1, `A B A B` period 2. A poller's calls are not
//! entered at all; the same call with a new result is no repeat. First the model gets a note, then a person
//! is asked, then the loop is stopped: each after the number of repeats in the agent's [`LoopGuard`].

use serde::{Deserialize, Serialize};

/// Limits of an agent's loop guard.
///
/// A cycle that comes round once more is one repeat; of a cycle of a single call the first repeat needs one equal call
/// more. So with the defaults the note comes after `A A A` and after `A B A B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoopGuard {
    /// Repeats after which the model gets a note; 0 = never. Default 1.
    pub note_after: u32,
    /// Repeats after which a call that would continue the cycle asks a person first; 0 = never. Default 1.
    pub ask_after: u32,
    /// Repeats after which such a call is refused and the last step, without tools, follows; 0 = never. Default 2.
    pub stop_after: u32,
    /// Longest cycle that is looked for, in calls; 0 = the guard is off. Default 4.
    pub period_max: u32,
}

impl Default for LoopGuard {
    fn default() -> Self {
        Self { note_after: 1, ask_after: 1, stop_after: 2, period_max: 4 }
    }
}

impl LoopGuard {
    /// No loop detection: a turn ends by its other limits.
    pub fn off() -> Self {
        Self { period_max: 0, ..Self::default() }
    }
}

/// One closed call, as far as the guard cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallSignature {
    /// Tool and canonical arguments.
    pub call: u64,
    /// Hash of the result as the model read it.
    pub result: u64,
}

/// Decision of the guard about a call that is about to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopAction {
    /// The call runs.
    Run,
    /// The call would continue a cycle that the model was warned about: ask a person.
    Ask(CallCycle),
    /// A person was asked, and the cycle continues: stop.
    Stop(CallCycle),
}

/// A cycle at the end of the calls so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallCycle {
    /// Length of the cycle, in calls.
    pub period: usize,
    /// Calls that repeat the one a period before.
    pub repeats: usize,
}

impl CallCycle {
    /// True if the cycle has repeated `times` times again; never, if that is 0.
    fn has_repeated(self, times: u32) -> bool {
        // Two equal calls are common in good work; three are not.
        let single = usize::from(self.period == 1);
        let calls = self.period.saturating_mul(times as usize).saturating_add(single);
        times > 0 && self.repeats >= calls
    }
}

/// The cycle that the calls so far end in, if it is worth a note.
pub(crate) fn find_cycle(history: &[CallSignature], rules: &LoopGuard) -> Option<CallCycle> {
    find_cycles(history, rules).find(|cycle| cycle.has_repeated(rules.note_after))
}

/// Action for a `call` that would follow `history`.
pub(crate) fn evaluate(history: &[CallSignature], call: u64, rules: &LoopGuard) -> LoopAction {
    let continues_cycle = |cycle: &CallCycle| history[history.len() - cycle.period].call == call;
    let find =
        |times| find_cycles(history, rules).filter(continues_cycle).find(|cycle| cycle.has_repeated(times));
    match (find(rules.stop_after), find(rules.ask_after)) {
        (Some(cycle), _) => LoopAction::Stop(cycle),
        (None, Some(cycle)) => LoopAction::Ask(cycle),
        (None, None) => LoopAction::Run,
    }
}

fn find_cycles<'h>(
    history: &'h [CallSignature],
    rules: &LoopGuard,
) -> impl Iterator<Item = CallCycle> + use<'h> {
    (1..=history.len().min(rules.period_max as usize)).map(|period| {
        let pairs = history.iter().rev().zip(history.iter().rev().skip(period));
        CallCycle { period, repeats: pairs.take_while(|(later, earlier)| later == earlier).count() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `A` is a call, `A1` the same call with another result.
    fn entries(script: &str) -> Vec<CallSignature> {
        script
            .split_whitespace()
            .map(|word| {
                let mut bytes = word.bytes();
                CallSignature {
                    call: bytes.next().unwrap_or(0).into(),
                    result: bytes.next().unwrap_or(b'0').into(),
                }
            })
            .collect()
    }

    #[test]
    fn repeated_call_cycles_are_noted_then_ask_then_stop() {
        let table = [
            // history, note?, next call, ruling
            ("", None, "A", "run"),
            ("A", None, "A", "run"),
            ("A A", None, "A", "run"),
            ("A A A", Some(1), "A", "ask"),
            ("A A A", Some(1), "B", "run"),
            ("A A A A", Some(1), "A", "stop"),
            ("A B A", None, "B", "run"),
            ("A B A B", Some(2), "A", "ask"),
            ("A B A B", Some(2), "B", "run"),
            ("A B A B A", Some(2), "B", "ask"),
            ("A B A B A B", Some(2), "A", "stop"),
            ("A B C A B C", Some(3), "A", "ask"),
            ("A B C D A B C D", Some(4), "A", "ask"),
            // the same call with a new result is progress
            ("A0 A1 A2 A3", None, "A", "run"),
            ("A A A B", None, "A", "run"),
            ("A0 B0 A1 B1", None, "A", "run"),
            // longer than the longest period
            ("A B C D E A B C D E", None, "A", "run"),
        ];
        for (history, note, next, expected) in table {
            let history = entries(history);
            let rules = LoopGuard::default();
            assert_eq!(find_cycle(&history, &rules).map(|cycle| cycle.period), note, "{history:?}");
            assert_eq!(action_name(&history, next, &rules), expected, "{history:?} then {next}");
        }
    }

    fn action_name(history: &[CallSignature], next: &str, rules: &LoopGuard) -> &'static str {
        match evaluate(history, entries(next)[0].call, rules) {
            LoopAction::Run => "run",
            LoopAction::Ask(_) => "ask",
            LoopAction::Stop(_) => "stop",
        }
    }

    // By the settings of the agent.
    #[test]
    fn loop_guard_thresholds_are_configurable() {
        let rules = |text: &str| serde_json::from_str::<LoopGuard>(text).expect("rules");
        let table = [
            // rules, history, note?, what becomes of one more A
            ("{}", "A A A", true, "ask"),
            (r#"{"period_max": 0}"#, "A A A A A A A A", false, "run"),
            (r#"{"note_after": 0}"#, "A A A", false, "ask"),
            (r#"{"ask_after": 0}"#, "A A A", true, "run"),
            (r#"{"ask_after": 0}"#, "A A A A", true, "stop"),
            (r#"{"stop_after": 0}"#, "A A A A A A A A", true, "ask"),
            (r#"{"note_after": 3, "ask_after": 4, "stop_after": 5}"#, "A A A A", false, "run"),
            (r#"{"note_after": 3, "ask_after": 4, "stop_after": 5}"#, "A A A A A", true, "run"),
            (r#"{"note_after": 3, "ask_after": 4, "stop_after": 5}"#, "A A A A A A", true, "ask"),
            (r#"{"note_after": 3, "ask_after": 4, "stop_after": 5}"#, "A A A A A A A", true, "stop"),
            (r#"{"period_max": 1}"#, "A B A B A B A B", false, "run"),
            (r#"{"period_max": 5}"#, "A B C D E A B C D E", true, "ask"),
        ];
        for (text, history, note, expected) in table {
            let rules = rules(text);
            let history = entries(history);
            assert_eq!(find_cycle(&history, &rules).is_some(), note, "{text}: {history:?}");
            assert_eq!(action_name(&history, "A", &rules), expected, "{text}: {history:?}");
        }
        assert_eq!(rules(r#"{"period_max": 0}"#), LoopGuard::off());
        assert!(serde_json::from_str::<LoopGuard>(r#"{"note": 1}"#).is_err(), "unknown names are errors");
    }
}
