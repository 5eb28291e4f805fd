//! Ids of calls as this API accepts them.

use crate::vocabulary::Call;
use std::collections::HashSet;

/// Longest `call_id` that is accepted ("string too long").
const CALL_ID_BYTES_MAX: usize = 64;

/// Gives each call of a request a `call_id` that occurs once. The same history always gets the same ids, so that
/// prompt caches hold.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    used: HashSet<String>,
}

impl CallIds {
    /// Theirs if it fits and is free, else ours, else ours with a number.
    pub(super) fn assign(&mut self, call: &Call) -> String {
        let theirs = call.upstream_id.as_ref().map(|id| id.as_str());
        if let Some(id) = theirs.filter(|id| !id.is_empty() && id.len() <= CALL_ID_BYTES_MAX)
            && self.used.insert(id.to_owned())
        {
            return id.to_owned();
        }
        // Room for the number: ours are short unless someone else minted them.
        let mut ours: String = call.id.as_str().chars().filter(char::is_ascii).collect();
        ours.truncate(CALL_ID_BYTES_MAX - 12);
        let mut id = ours.clone();
        let mut number = 1_u64;
        while id.is_empty() || !self.used.insert(id.clone()) {
            number += 1;
            id = format!("{ours}-{number}");
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::{CallArguments, CallKind};
    use serde_json::json;

    #[test]
    fn each_id_occurs_once_and_fits() {
        let mut ids = CallIds::default();
        let mut check = |ours: &str, theirs: Option<&str>, expect: &str| {
            let call = Call {
                id: ours.into(),
                upstream_id: theirs.map(Into::into),
                name: "f".into(),
                kind: CallKind::Function,
                arguments: Ok(CallArguments::from_value(json!({}))),
                ran_with: None,
            };
            assert_eq!(ids.assign(&call), expect);
        };
        check("t1-0", Some("call_a"), "call_a");
        check("t1-1", Some("call_a"), "t1-1");
        check("t1-1", None, "t1-1-2");
        check("t1-2", Some(&"x".repeat(65)), "t1-2");
        check("", None, "-2");
    }
}
