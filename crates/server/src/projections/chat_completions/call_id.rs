//! Public ids of calls, as OpenAI's clients see them.
//!
//! An id contains its turn, so that the results of a call find the turn that waits for them, also after a
//! restart. It has at most 40 characters of `[A-Za-z0-9_]` for the first 10 calls: OpenAI accepts no longer
//! ones, Anthropic no dots, and a client may send a history to either.

use throughline_engine::TurnId;
use throughline_wire::CallId;

/// `turn_<id>.<n>` as `call_<id>_<n>`; any other id as it is.
pub(crate) fn to_public(call: &CallId) -> String {
    let parts = call.as_str().strip_prefix("turn_").and_then(|rest| rest.rsplit_once('.'));
    match parts {
        Some((turn, number)) => format!("call_{turn}_{number}"),
        None => call.as_str().to_owned(),
    }
}

/// The call and the turn of an id; `None` = the id has another format.
pub(crate) fn parse_public(id: &str) -> Option<(TurnId, CallId)> {
    let (turn, number) = id.strip_prefix("call_")?.rsplit_once('_')?;
    let is_ours = turn.len() == 32
        && turn.bytes().all(|byte| byte.is_ascii_hexdigit())
        && number
            .parse::<u32>()
            .is_ok_and(|number| number.to_string() == *id.rsplit('_').next().unwrap_or_default());
    is_ours.then(|| (TurnId::new(format!("turn_{turn}")), CallId::new(format!("turn_{turn}.{number}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_id_round_trips_and_foreign_ids_are_rejected() {
        let turn = "turn_019ab3c4d5e6778899aabbccddeeff00";
        let call = CallId::new(format!("{turn}.12"));
        let id = to_public(&call);
        assert_eq!(id, "call_019ab3c4d5e6778899aabbccddeeff00_12");
        assert!(id.len() <= 40);
        assert_eq!(parse_public(&id), Some((TurnId::new(turn), call)));

        assert_eq!(to_public(&CallId::new("t.1")), "t.1");
        for foreign in ["", "call_abc", "call_1_2", "call_019ab3c4d5e6778899aabbccddeeff00_012", "toolu_01_1"]
        {
            assert_eq!(parse_public(foreign), None, "{foreign}");
        }
    }
}
