//! What becomes of a client's answer, also after the call's end.

use super::User;
use std::collections::{HashMap, VecDeque};
use throughline_wire::CallId;

/// What became of a client's answer. Over HTTP: 200, 409, 410, 403, 404.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "an answer may come too late"]
pub enum ClientAnswered {
    /// It was the first one in time: it is the call's outcome, and in the log.
    Accepted,
    /// The call has an outcome already: another answer, a stop.
    AlreadyClosed,
    /// The call's time was over.
    TooLate,
    /// The call is another user's.
    NotYours,
    /// No client is asked to run such a call, or that was long ago.
    Unknown,
}

/// Calls whose end is remembered, so that a late answer is told what it missed.
const ENDED_MAX: usize = 1_024;

/// How client-side calls ended, the last ones.
#[derive(Default)]
pub(super) struct Ended {
    by_call: HashMap<CallId, (User, ClientAnswered)>,
    order: VecDeque<CallId>,
}

impl Ended {
    pub(super) fn add(&mut self, call: CallId, user: User, answered: ClientAnswered) {
        if self.by_call.insert(call.clone(), (user, answered)).is_none() {
            self.order.push_back(call);
        }
        if self.order.len() > ENDED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_call.remove(&oldest);
        }
    }

    /// What an answer is told that comes now.
    pub(super) fn of(&self, call: &CallId, user: &User) -> ClientAnswered {
        match self.by_call.get(call) {
            None => ClientAnswered::Unknown,
            Some((owner, _)) if owner != user => ClientAnswered::NotYours,
            Some((_, answered)) => *answered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ends_are_remembered_and_whose_they_were() {
        let (ada, eve) = (Some("ada".to_owned()), Some("eve".to_owned()));
        let mut ended = Ended::default();
        ended.add("late".into(), ada.clone(), ClientAnswered::TooLate);
        assert_eq!(ended.of(&"late".into(), &ada), ClientAnswered::TooLate);
        assert_eq!(ended.of(&"late".into(), &eve), ClientAnswered::NotYours);
        assert_eq!(ended.of(&"never".into(), &ada), ClientAnswered::Unknown);
        for n in 0..ENDED_MAX {
            ended.add(CallId::new(n.to_string()), ada.clone(), ClientAnswered::AlreadyClosed);
        }
        assert_eq!(ended.of(&"late".into(), &ada), ClientAnswered::Unknown, "long ago");
        assert_eq!(ended.of(&"0".into(), &ada), ClientAnswered::AlreadyClosed);
        assert_eq!((ended.by_call.len(), ended.order.len()), (ENDED_MAX, ENDED_MAX));
    }
}
