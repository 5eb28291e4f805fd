//! The loop guard: cycles of calls that lead nowhere. R: T10, M16
//!
//! A cycle of period p is one in which each call repeats the call p places before it: same tool, same canonical
//! arguments, same result. `A A A` has period 1, `A B A B` period 2. A poller's calls are not entered at all; the same
//! call with a new result is no repeat. First the model gets a note, then a person is asked, then the loop is stopped.

/// Longest cycle that is looked for, in calls.
const PERIOD_MAX: usize = 4;

/// One closed call, as far as the guard cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Tool and canonical arguments.
    pub call: u64,
    /// What the model was told.
    pub result: u64,
}

/// What the guard says about a call that is about to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// Go on.
    Run,
    /// It would go on a cycle that was noted: ask a person.
    Ask(Cycle),
    /// A person was asked, and the cycle goes on.
    Stop(Cycle),
}

/// A cycle at the end of the calls so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// Its length in calls.
    pub period: usize,
    /// Calls that repeat the one a period before.
    pub repeats: usize,
}

impl Cycle {
    /// Repeats from which a cycle is worth a word: one whole cycle again, and at least three equal calls.
    fn threshold(self) -> usize {
        self.period.max(2)
    }
}

/// The cycle that the calls so far end in, if it is worth a note.
pub(crate) fn cycle(history: &[Entry]) -> Option<Cycle> {
    cycles(history).find(|cycle| cycle.repeats >= cycle.threshold())
}

/// May `call` start after `history`?
pub(crate) fn ruling(history: &[Entry], call: u64) -> Ruling {
    let goes_on = |cycle: &Cycle| history[history.len() - cycle.period].call == call;
    match cycles(history).filter(goes_on).find(|cycle| cycle.repeats >= cycle.threshold()) {
        None => Ruling::Run,
        Some(cycle) if cycle.repeats >= cycle.threshold() + cycle.period => Ruling::Stop(cycle),
        Some(cycle) => Ruling::Ask(cycle),
    }
}

fn cycles(history: &[Entry]) -> impl Iterator<Item = Cycle> {
    (1..=PERIOD_MAX.min(history.len())).map(|period| {
        let pairs = history.iter().rev().zip(history.iter().rev().skip(period));
        Cycle { period, repeats: pairs.take_while(|(later, earlier)| later == earlier).count() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `A` is a call, `A1` the same call with another result.
    fn entries(script: &str) -> Vec<Entry> {
        script
            .split_whitespace()
            .map(|word| {
                let mut bytes = word.bytes();
                Entry { call: bytes.next().unwrap_or(0).into(), result: bytes.next().unwrap_or(b'0').into() }
            })
            .collect()
    }

    #[test]
    fn what_happens_after_which_calls() {
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
            assert_eq!(cycle(&history).map(|cycle| cycle.period), note, "{history:?}");
            let said = match ruling(&history, entries(next)[0].call) {
                Ruling::Run => "run",
                Ruling::Ask(_) => "ask",
                Ruling::Stop(_) => "stop",
            };
            assert_eq!(said, expected, "{history:?} then {next}");
        }
    }
}
