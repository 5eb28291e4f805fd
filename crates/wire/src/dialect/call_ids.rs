//! Ids of calls as providers accept them.

use crate::vocabulary::Call;
use std::collections::{HashMap, HashSet};

/// Space for a number appended to an id, in bytes.
const NUMBER_BYTES_MAX: usize = 12;

/// Ids that a provider accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallIdForm {
    /// Any text of at most `bytes_max` bytes. "string too long. Expected a string with maximum length 40"
    /// (OpenAI; 64 in Responses): gateways of Gemini put a whole signature into one.
    Text { bytes_max: usize },
    /// `^[a-zA-Z0-9_-]+$` of at most `bytes_max` bytes (Anthropic, Bedrock).
    Plain { bytes_max: usize },
    /// `a-z, A-Z, 0-9, with a length of 9` (Mistral): others are mapped, the same id always to the same nine.
    NineAlphanumeric,
}

/// Gives each call of a request an id that occurs once in it ("`tool_use` ids must be unique", HTTP 400). The same history
/// always gets the same ids, since prompt caches compare prefixes.
#[derive(Debug)]
pub(super) struct CallIds {
    form: CallIdForm,
    used: HashSet<String>,
    /// Next number to append to a repeated id.
    numbers: HashMap<String, u64>,
}

impl CallIds {
    pub(super) fn new(form: CallIdForm) -> Self {
        Self { form, used: HashSet::new(), numbers: HashMap::new() }
    }

    /// Theirs if it fits and is free, else ours, else ours with a number.
    pub(super) fn assign(&mut self, call: &Call) -> String {
        let theirs = call.upstream_id.as_ref().and_then(|id| self.form.accept(id.as_str()));
        if let Some(id) = theirs.filter(|id| !self.used.contains(id)) {
            return self.take(id);
        }
        let ours = self.form.adapt(call.id.as_str());
        if self.used.insert(self.form.shape(&ours)) {
            return self.form.shape(&ours);
        }
        let next = self.numbers.entry(ours.clone()).or_insert(2);
        loop {
            let id = self.form.shape(&format!("{ours}-{next}"));
            *next += 1;
            if self.used.insert(id.clone()) {
                return id;
            }
        }
    }

    fn take(&mut self, id: String) -> String {
        self.used.insert(id.clone());
        id
    }
}

impl CallIdForm {
    /// The provider's id as it goes back; `None` if it cannot.
    fn accept(self, id: &str) -> Option<String> {
        let fits = match self {
            Self::Text { bytes_max } => id.len() <= bytes_max,
            Self::Plain { bytes_max } => id.len() <= bytes_max && id.chars().all(is_plain),
            Self::NineAlphanumeric => true,
        };
        (fits && !id.is_empty()).then(|| self.shape(id))
    }

    /// Our own id in a form that is accepted there, with space for a number.
    fn adapt(self, id: &str) -> String {
        let mut id: String = match self {
            Self::Plain { .. } => id.chars().map(|c| if is_plain(c) { c } else { '_' }).collect(),
            Self::Text { .. } | Self::NineAlphanumeric => id.chars().filter(char::is_ascii).collect(),
        };
        if let Self::Text { bytes_max } | Self::Plain { bytes_max } = self {
            id.truncate(bytes_max - NUMBER_BYTES_MAX);
        }
        if id.is_empty() { "call".to_owned() } else { id }
    }

    fn shape(self, id: &str) -> String {
        match self {
            Self::NineAlphanumeric => nine_alphanumeric(id),
            Self::Text { .. } | Self::Plain { .. } => id.to_owned(),
        }
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Nine letters and digits derived from an id, always the same for the same id.
fn nine_alphanumeric(id: &str) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    // FNV-1a; 62^9 is about 2^53.6, so two ids of one request practically never meet.
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (0..9)
        .map(|_| {
            let digit = DIGITS[(hash % 62) as usize];
            hash /= 62;
            digit as char
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::{CallArguments, CallKind};
    use serde_json::json;

    fn assign(form: CallIdForm, calls: &[(&str, Option<&str>)]) -> Vec<String> {
        let mut ids = CallIds::new(form);
        let call = |(ours, theirs): &(&str, Option<&str>)| Call {
            id: (*ours).into(),
            upstream_id: theirs.map(Into::into),
            name: "f".into(),
            kind: CallKind::Function,
            arguments: Ok(CallArguments::from_value(json!({}))),
            ran_with: None,
        };
        calls.iter().map(|ids_of_call| ids.assign(&call(ids_of_call))).collect()
    }

    #[track_caller]
    fn check(form: CallIdForm, calls: &[(&str, Option<&str>)], expected: &[&str]) {
        assert_eq!(assign(form, calls), expected);
    }

    #[test]
    fn call_ids_are_unique_and_fit_the_provider() {
        let long = "x".repeat(65);
        check(
            CallIdForm::Text { bytes_max: 64 },
            &[
                ("t1-0", Some("call_a")),
                ("t1-1", Some("call_a")),
                ("t1-1", None),
                ("t1-2", Some(&long)),
                ("", None),
            ],
            &["call_a", "t1-1", "t1-1-2", "t1-2", "call"],
        );
        check(
            CallIdForm::Plain { bytes_max: 64 },
            &[("t 1", Some("toolu 1")), ("t 1", Some("")), (&long, None)],
            &["t_1", "t_1-2", &"x".repeat(52)],
        );
    }

    #[test]
    fn nine_alphanumeric_ids_are_mapped_and_unique() {
        let assigned = assign(
            CallIdForm::NineAlphanumeric,
            &[("t-0", Some("AbCdEf123")), ("t-1", Some("call_1")), ("t-1", Some("call_1")), ("t-1", None)],
        );
        assert_eq!(assigned[0], "AbCdEf123");
        assert!(
            assigned.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        );
        assert_eq!(assigned.iter().collect::<HashSet<_>>().len(), 4);
    }
}
