//! Readiness of the store, for `GET /readyz`.

use std::time::Duration;
use throughline_store::LogError;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Timeout of the probe: a store that takes longer to write and read a row is not usable for turns.
const PROBE_MS_MAX: Duration = Duration::from_millis(1_000);
/// Time for which a readiness result is reused, so that frequent probes do not load the store.
const ANSWER_MS: Duration = Duration::from_millis(1_000);

/// Last readiness result of the store.
#[derive(Debug, Default)]
pub struct ReadinessProbe(Mutex<Option<(Instant, Result<(), LogError>)>>);

impl ReadinessProbe {
    /// Probes the store; concurrent callers share one result.
    pub(crate) async fn check<F>(&self, probe: impl FnOnce() -> F) -> Result<(), LogError>
    where
        F: Future<Output = Result<(), LogError>>,
    {
        let mut last = self.0.lock().await;
        if let Some((at, answer)) = &*last
            && at.elapsed() < ANSWER_MS
        {
            return answer.clone();
        }
        let answer = tokio::time::timeout(PROBE_MS_MAX, probe()).await;
        let answer =
            answer.unwrap_or_else(|_| Err(LogError::StoreFailure { why: "it does not answer".into() }));
        if let Err(error) = &answer {
            tracing::warn!(%error, "the store is not ready");
        }
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::future::{pending, ready};

    #[tokio::test(start_paused = true)]
    async fn store_is_probed_once_per_second_with_a_timeout() {
        let (readiness, asked) = (ReadinessProbe::default(), Cell::new(0));
        let probe = |answer: Result<(), LogError>| {
            asked.set(asked.get() + 1);
            ready(answer)
        };
        let full = || Err(LogError::NoRoom { why: "the disk is full".into() });
        assert_eq!(readiness.check(|| probe(Ok(()))).await, Ok(()));
        tokio::time::advance(ANSWER_MS - Duration::from_millis(1)).await;
        assert_eq!((readiness.check(|| probe(full())).await, asked.get()), (Ok(()), 1), "it still holds");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!((readiness.check(|| probe(full())).await, asked.get()), (full(), 2));
        tokio::time::advance(ANSWER_MS).await;
        // A store that hangs counts as unavailable, and does not make others wait for long.
        let before = Instant::now();
        assert!(matches!(readiness.check(pending).await, Err(LogError::StoreFailure { .. })));
        assert_eq!(before.elapsed(), PROBE_MS_MAX);
    }
}
