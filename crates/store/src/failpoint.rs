//! Points at which a test kills the process, and rules that a test disables to prove that it can fail.
//!
//! Without the feature `failpoints` nothing of this is in a program: every function is empty, every rule holds.
//!
//! - `THROUGHLINE_DIE_AT=durable:tool_start:3`: the process exits without any cleanup when it reaches this
//!   point for the third time. Points are `appending:KIND` (a batch with an event of this kind is on its way
//!   to the log), `durable:KIND` (the log has just acknowledged it), and the names in the driver.
//! - `THROUGHLINE_BLOCK_AT=durable:tool_input:2`: the thread that reaches this point blocks forever and
//!   reports it on stderr, while other threads continue, until the test kills the process: a disk that hangs
//!   before the machine dies.
//! - `THROUGHLINE_DISABLE_RULE=log_first`: see [`SafetyRule`].

use crate::log::LogBatch;

/// A rule that keeps the promises of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SafetyRule {
    /// `log_first`: nothing is shown before it is committed.
    LogFirst,
    /// `intent_first`: no tool starts before the log has acknowledged that it will.
    IntentFirst,
}

/// The process comes by this point.
#[inline]
pub fn hit_failpoint(name: &str) {
    #[cfg(feature = "failpoints")]
    enabled::hit(name, "");
    #[cfg(not(feature = "failpoints"))]
    let _ = name;
}

impl SafetyRule {
    /// True if a test disables this rule to see what happens without it.
    #[inline]
    pub fn is_disabled(self) -> bool {
        #[cfg(feature = "failpoints")]
        return enabled::disabled_rule() == Some(self);
        #[cfg(not(feature = "failpoints"))]
        false
    }
}

/// True once a thread blocks at a point: from then on nothing reaches the disk of a log that leaves out
/// [`SafetyRule::LogFirst`].
#[inline]
pub(crate) fn stands_still() -> bool {
    #[cfg(feature = "failpoints")]
    return enabled::stands();
    #[cfg(not(feature = "failpoints"))]
    false
}

/// A batch on its way to the log: one point for each kind of event in it, before the append and after the
/// acknowledgement.
#[derive(Debug, Default)]
pub struct BatchFailpoints {
    #[cfg(feature = "failpoints")]
    kinds: Vec<std::borrow::Cow<'static, str>>,
}

impl BatchFailpoints {
    /// Points `appending:KIND` of a batch that is handed to the log.
    #[inline]
    pub fn before_append(batch: &LogBatch) -> Self {
        #[cfg(feature = "failpoints")]
        {
            let kinds: Vec<_> = batch.records.iter().map(|record| record.kind.clone()).collect();
            kinds.iter().for_each(|kind| enabled::hit("appending", kind));
            Self { kinds }
        }
        #[cfg(not(feature = "failpoints"))]
        {
            let _ = batch;
            Self {}
        }
    }

    /// Points `durable:KIND`: the log has acknowledged the batch, and nothing has acted on that yet.
    #[inline]
    pub fn after_ack(self) {
        #[cfg(feature = "failpoints")]
        self.kinds.iter().for_each(|kind| enabled::hit("durable", kind));
    }
}

#[cfg(feature = "failpoints")]
mod enabled {
    use super::SafetyRule;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    struct CrashPoint {
        name: String,
        kind: String,
        /// Passes that the process still survives.
        remaining: AtomicU64,
        end: CrashEnd,
    }

    enum CrashEnd {
        Dies,
        Stands,
    }

    /// Line of stderr that a test waits for.
    const STANDING: &str = "standing still at";

    static STANDS: AtomicBool = AtomicBool::new(false);

    pub(crate) fn hit(name: &str, kind: &str) {
        static POINT: OnceLock<Option<CrashPoint>> = OnceLock::new();
        let from = |variable, end| parse_point(&std::env::var(variable).ok()?, end);
        let found = || {
            from("THROUGHLINE_DIE_AT", CrashEnd::Dies)
                .or_else(|| from("THROUGHLINE_BLOCK_AT", CrashEnd::Stands))
        };
        let Some(point) = POINT.get_or_init(found) else { return };
        if point.name == name && point.kind == kind && point.remaining.fetch_sub(1, Ordering::Relaxed) == 0 {
            match point.end {
                CrashEnd::Dies => std::process::abort(),
                CrashEnd::Stands => stand_still(name, kind),
            }
        }
    }

    /// Blocks forever; the tasks that this thread was about to run move to other threads.
    fn stand_still(name: &str, kind: &str) {
        STANDS.store(true, Ordering::Relaxed);
        eprintln!("{STANDING} {name}:{kind}");
        tokio::task::block_in_place(|| {
            loop {
                std::thread::park();
            }
        });
    }

    pub(crate) fn stands() -> bool {
        STANDS.load(Ordering::Relaxed)
    }

    /// `name[:kind][:count]`
    fn parse_point(text: &str, end: CrashEnd) -> Option<CrashPoint> {
        let mut parts: Vec<&str> = text.split(':').collect();
        let count = parts.last().and_then(|last| last.parse::<u64>().ok());
        if count.is_some() {
            parts.pop();
        }
        let remaining = AtomicU64::new(count.unwrap_or(1).saturating_sub(1));
        let kind = parts.get(1).copied().unwrap_or_default().to_owned();
        Some(CrashPoint { name: (*parts.first()?).to_owned(), kind, remaining, end })
    }

    pub(crate) fn disabled_rule() -> Option<SafetyRule> {
        static RULE: OnceLock<Option<SafetyRule>> = OnceLock::new();
        *RULE.get_or_init(|| match std::env::var("THROUGHLINE_DISABLE_RULE").ok()?.as_str() {
            "log_first" => Some(SafetyRule::LogFirst),
            "intent_first" => Some(SafetyRule::IntentFirst),
            _ => None,
        })
    }
}
