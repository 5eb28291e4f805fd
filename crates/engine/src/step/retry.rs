//! Retry, fallback or failure after a model call that failed before its first token.

use crate::input::{FailureKind, UpstreamFailure};
use crate::setup::RetryPolicy;
use crate::text::canonical::pseudo_random;

/// A failed model call, and the time for further attempts.
pub(crate) struct FailedCall {
    pub failure: UpstreamFailure,
    /// In milliseconds; `None` = no limit.
    pub time_left_ms: Option<u64>,
}

impl FailedCall {
    pub(crate) fn without_limit(failure: UpstreamFailure) -> Self {
        Self { failure, time_left_ms: None }
    }
}

/// Decision after a failed model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    /// The same upstream, after a wait in milliseconds.
    Retry { wait_ms: u64 },
    /// Try the next upstream immediately.
    Fallback,
    /// No attempt is left.
    GiveUp,
}

/// Decides about the next try. `tries` counts those on this upstream in this step, the failed one included; `nonce` and
/// `counter` make the jitter.
pub(crate) fn decide(
    FailedCall { failure, time_left_ms }: &FailedCall,
    policy: &RetryPolicy,
    tries: u32,
    has_fallback: bool,
    nonce: u64,
    counter: u64,
) -> RetryDecision {
    // Another model would only hide that this one cannot call tools.
    if failure.kind == FailureKind::ToolsUnsupported {
        return RetryDecision::GiveUp;
    }
    // The time of a call is that of all its tries: nothing is left of it for another one.
    let has_time = failure.kind != FailureKind::TotalTimeout;
    if has_time && failure.is_retryable() && tries < policy.attempts_max {
        let backoff =
            policy.backoff_ms.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(policy.wait_ms_max);
        let jittered = backoff / 2 + pseudo_random(nonce, counter) % (backoff / 2 + 1);
        let wait_ms = jittered.max(failure.retry_after_ms.unwrap_or(0)).min(policy.wait_ms_max);
        // A wait beyond the time limit would end in the same failure, later and without its class.
        if time_left_ms.is_none_or(|left| wait_ms < left) {
            return RetryDecision::Retry { wait_ms };
        }
    }
    if has_fallback { RetryDecision::Fallback } else { RetryDecision::GiveUp }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(kind: FailureKind, status: Option<u16>, retry_after_ms: Option<u64>) -> UpstreamFailure {
        UpstreamFailure { kind, status, message: String::new(), retry_after_ms }
    }

    #[test]
    fn retry_decision_depends_on_the_failure_kind() {
        use FailureKind as K;
        let policy = RetryPolicy::default();
        let decide = |failure, tries, has_fallback| {
            decide(&FailedCall::without_limit(failure), &policy, tries, has_fallback, 7, 1)
        };
        let table = [
            (failure(K::RateLimited, Some(429), Some(2_000)), 1, true, Some(2_000..=2_000), None),
            // a pause longer than the cap is cut to it
            (failure(K::RateLimited, Some(429), Some(600_000)), 1, true, Some(30_000..=30_000), None),
            (failure(K::Status, Some(503), None), 1, false, Some(250..=500), None),
            (failure(K::Status, Some(503), None), 2, false, Some(500..=1_000), None),
            (failure(K::Status, Some(503), None), 3, true, None, Some(RetryDecision::Fallback)),
            (failure(K::Status, Some(503), None), 3, false, None, Some(RetryDecision::GiveUp)),
            (failure(K::Status, Some(400), None), 1, true, None, Some(RetryDecision::Fallback)),
            (failure(K::Unauthorized, Some(401), None), 1, false, None, Some(RetryDecision::GiveUp)),
            // an empty account is tried once
            (failure(K::QuotaExhausted, Some(429), None), 1, false, None, Some(RetryDecision::GiveUp)),
            (failure(K::QuotaExhausted, Some(500), Some(1)), 1, true, None, Some(RetryDecision::Fallback)),
            (failure(K::NotAllowed, Some(403), None), 1, false, None, Some(RetryDecision::GiveUp)),
            (failure(K::ContentFiltered, None, None), 1, false, None, Some(RetryDecision::GiveUp)),
            (failure(K::Overloaded, Some(529), None), 1, false, Some(250..=500), None),
            (failure(K::Connect, None, None), 1, false, Some(250..=500), None),
            (failure(K::FirstByteTimeout, None, None), 1, false, Some(250..=500), None),
            // it may still be reading the prompt
            (failure(K::PromptTimeout, None, None), 1, false, None, Some(RetryDecision::GiveUp)),
            (failure(K::PromptTimeout, None, None), 1, true, None, Some(RetryDecision::Fallback)),
            // its time was that of all tries
            (failure(K::TotalTimeout, None, None), 1, false, None, Some(RetryDecision::GiveUp)),
            (failure(K::TotalTimeout, None, None), 1, true, None, Some(RetryDecision::Fallback)),
            // no silent downgrade
            (failure(K::ToolsUnsupported, Some(400), None), 1, true, None, Some(RetryDecision::GiveUp)),
        ];
        for (failure, tries, has_fallback, wait, other) in table {
            match (decide(failure.clone(), tries, has_fallback), wait, other) {
                (RetryDecision::Retry { wait_ms }, Some(range), None) => {
                    assert!(range.contains(&wait_ms), "{failure:?} {wait_ms}")
                }
                (next, None, Some(expected)) => assert_eq!(next, expected, "{failure:?}"),
                (next, ..) => panic!("{failure:?} gave {next:?}"),
            }
        }
    }

    #[test]
    fn retry_wait_longer_than_the_time_left_is_not_started() {
        let policy = RetryPolicy::default();
        let after = |time_left_ms, retry_after_ms, has_fallback| {
            let failure = failure(FailureKind::RateLimited, Some(429), retry_after_ms);
            decide(&FailedCall { failure, time_left_ms }, &policy, 1, has_fallback, 7, 1)
        };
        assert_eq!(after(Some(6_000), Some(5_000), false), RetryDecision::Retry { wait_ms: 5_000 });
        assert_eq!(after(Some(5_000), Some(5_000), false), RetryDecision::GiveUp);
        assert_eq!(
            after(Some(6_000), Some(100_000), false),
            RetryDecision::GiveUp,
            "cut to 30 s it is too long"
        );
        assert_eq!(
            after(Some(6_000), Some(100_000), true),
            RetryDecision::Fallback,
            "which has its own time"
        );
        assert_eq!(after(Some(100), None, false), RetryDecision::GiveUp, "the wait of our own");
        assert_eq!(after(None, Some(5_000), false), RetryDecision::Retry { wait_ms: 5_000 });
    }
}
