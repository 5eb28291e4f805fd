//! How fast a turn was, as it is kept with its end. R: U5

use throughline_store::catalog::TurnTiming;
use throughline_wire::Usage;

/// From what its events say. What an upstream does not count is not known, and what came all at once has no speed.
pub(crate) fn turn_timing(first_content_ms: Option<u64>, writing_ms: u64, usage: &Usage) -> TurnTiming {
    let number = |value: u64| i64::try_from(value).ok();
    TurnTiming {
        first_content_ms: first_content_ms.and_then(number),
        writing_ms: number(writing_ms).filter(|ms| *ms > 0),
        output_tokens: usage.output_tokens.and_then(number).filter(|tokens| *tokens > 0),
    }
}
