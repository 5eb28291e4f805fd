//! Errors in the wording of each provider: one table of statuses, codes and phrases, each row with its source
//! and an example that a test classifies. General rules, by the status alone, are in `failure.rs`.
//!
//! To add a row: cite where it is documented or was seen, and give the smallest body as the example. A phrase
//! must be specific enough that no other error contains it: a false quota error ends retries, and "too long"
//! shortens histories. `docs/errors-of-providers.md` is written from this table.

mod access;
mod account;
mod content;
mod length;
mod load;
mod request;
#[cfg(test)]
mod tests;

use super::error_body::UpstreamErrorBody;
use throughline_engine::FailureKind;

/// One row: an error of a provider, and its class.
pub(super) struct FailureRule {
    #[cfg_attr(not(test), allow(dead_code, reason = "for people, tests and the page of the documents"))]
    pub provider: &'static str,
    pub kind: FailureKind,
    /// Statuses with which it holds; none = with all of them. An error inside a 200 has no status, and passes.
    statuses: &'static [u16],
    /// Codes, compared exactly; one match suffices. Digits alone count only where nothing else in the error
    /// gives its type, since providers use the same numbers; `base_resp 1008` is the number of MiniMax's
    /// envelope.
    codes: &'static [&'static str],
    /// Phrases in lower case, one of which must occur; `*` matches any text.
    words: &'static [&'static str],
    /// Whole messages in lower case and without the full stop, one of which must match: words too short to
    /// search for in a text.
    messages: &'static [&'static str],
    #[cfg_attr(not(test), allow(dead_code, reason = "for people, tests and the page of the documents"))]
    source: &'static str,
    #[cfg_attr(not(test), allow(dead_code, reason = "for the tests"))]
    example: (u16, &'static str),
}

/// A row without conditions yet.
const fn rule(provider: &'static str, kind: FailureKind, source: &'static str) -> FailureRule {
    FailureRule {
        provider,
        kind,
        statuses: &[],
        codes: &[],
        words: &[],
        messages: &[],
        source,
        example: (0, ""),
    }
}

impl FailureRule {
    const fn statuses(self, statuses: &'static [u16]) -> Self {
        Self { statuses, ..self }
    }

    const fn codes(self, codes: &'static [&'static str]) -> Self {
        Self { codes, ..self }
    }

    const fn words(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }

    const fn messages(self, messages: &'static [&'static str]) -> Self {
        Self { messages, ..self }
    }

    /// A status (200 for an error inside one) and a body that is of this row.
    const fn example(self, status: u16, body: &'static str) -> Self {
        Self { example: (status, body), ..self }
    }

    fn fits(&self, status: Option<u16>, error: &UpstreamErrorBody) -> bool {
        let by_status = self.by_status();
        let fits_status = match status {
            Some(status) => self.statuses.is_empty() || self.statuses.contains(&status),
            None => !by_status,
        };
        fits_status
            && (by_status
                || self.codes.iter().any(|code| has_code(error, code))
                || self.words.iter().any(|words| says(&error.text, words))
                || self.messages.contains(&whole_message(error).as_str()))
    }

    /// True if the status alone decides.
    fn by_status(&self) -> bool {
        self.codes.is_empty() && self.words.is_empty() && self.messages.is_empty()
    }
}

/// The table. The first row that matches counts, so specific rows precede general ones: a quota before a rate
/// limit.
fn all() -> impl Iterator<Item = &'static FailureRule> {
    [
        load::EXCEPTIONS,
        length::TOO_LONG,
        account::QUOTA_EXHAUSTED,
        content::FILTERED,
        access::BAD_KEY,
        access::NOT_ALLOWED,
        access::UNKNOWN_MODEL,
        load::OVERLOADED,
        load::RATE_LIMITED,
        request::REFUSED,
    ]
    .into_iter()
    .flatten()
}

/// The row that an error is of. [`FailureKind::Status`] means a request that would be refused again.
pub(super) fn find(status: Option<u16>, error: &UpstreamErrorBody) -> Option<&'static FailureRule> {
    all().find(|rule| rule.fits(status, error))
}

fn has_code(error: &UpstreamErrorBody, code: &str) -> bool {
    if code.bytes().all(|byte| byte.is_ascii_digit()) {
        return error.kind.is_none() && error.code.as_deref() == Some(code);
    }
    match code.split_once(' ') {
        Some(("base_resp", number)) => {
            error.kind.as_deref() == Some("base_resp") && error.code.as_deref() == Some(number)
        }
        _ => error.codes.iter().any(|own| own == code),
    }
}

fn whole_message(error: &UpstreamErrorBody) -> String {
    error.message.trim().trim_end_matches('.').to_lowercase()
}

/// True if the parts of `words` between its `*` occur in `text` in this order. Between quotes a `*` matches
/// the quoted text.
fn says(text: &str, words: &str) -> bool {
    let (mut rest, mut before) = (text, "");
    words.split('*').all(|piece| {
        let quote = piece.chars().next().filter(|first| "'`\"".contains(*first) && before.ends_with(*first));
        let at = match quote {
            Some(quote) => rest.find(quote).filter(|at| rest[*at..].starts_with(piece)),
            None => rest.find(piece),
        };
        let Some(at) = at else { return false };
        (rest, before) = (&rest[at + piece.len()..], piece);
        true
    })
}
