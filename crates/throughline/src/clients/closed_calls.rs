//! Closed client-side calls, and the outcome of answers to them.

use super::ClientOwner;
use crate::turn::ClientAnswerResult;
use std::collections::{HashMap, VecDeque};
use throughline_wire::CallId;

/// Number of closed calls that are remembered, so that a late answer gets a precise outcome.
const CLOSED_CALLS_MAX: usize = 1_024;

/// The most recently closed client-side calls.
#[derive(Default)]
pub(super) struct ClosedCalls {
    by_call: HashMap<CallId, (ClientOwner, ClientAnswerResult)>,
    order: VecDeque<CallId>,
}

impl ClosedCalls {
    pub(super) fn add(&mut self, call: CallId, user: ClientOwner, result: ClientAnswerResult) {
        if self.by_call.insert(call.clone(), (user, result)).is_none() {
            self.order.push_back(call);
        }
        if self.order.len() > CLOSED_CALLS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_call.remove(&oldest);
        }
    }

    /// Outcome for an answer that arrives now.
    pub(super) fn lookup(&self, call: &CallId, user: &ClientOwner) -> ClientAnswerResult {
        match self.by_call.get(call) {
            None => ClientAnswerResult::Unknown,
            Some((owner, _)) if owner != user => ClientAnswerResult::WrongUser,
            Some((_, result)) => *result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_calls_are_remembered_per_user_and_bounded() {
        let (ada, eve) = (Some("ada".to_owned()), Some("eve".to_owned()));
        let mut ended = ClosedCalls::default();
        ended.add("late".into(), ada.clone(), ClientAnswerResult::TooLate);
        assert_eq!(ended.lookup(&"late".into(), &ada), ClientAnswerResult::TooLate);
        assert_eq!(ended.lookup(&"late".into(), &eve), ClientAnswerResult::WrongUser);
        assert_eq!(ended.lookup(&"never".into(), &ada), ClientAnswerResult::Unknown);
        for n in 0..CLOSED_CALLS_MAX {
            ended.add(CallId::new(n.to_string()), ada.clone(), ClientAnswerResult::AlreadyClosed);
        }
        assert_eq!(ended.lookup(&"late".into(), &ada), ClientAnswerResult::Unknown, "long ago");
        assert_eq!(ended.lookup(&"0".into(), &ada), ClientAnswerResult::AlreadyClosed);
        assert_eq!((ended.by_call.len(), ended.order.len()), (CLOSED_CALLS_MAX, CLOSED_CALLS_MAX));
    }
}
