//! Thinking in the turn that a request continues: if it can be requested, and if earlier reasoning is sent
//! back.

use crate::dialect::settings;
use crate::profile::UpstreamProfile;
use crate::vocabulary::ModelRequest;
use serde_json::Value;

/// The setting `thinking`, as it is sent with a conversation.
pub(super) struct TurnThinking {
    /// True if thinking is requested, but cannot be sent with these messages.
    pub is_left_out: bool,
    /// Tokens for thinking in this request.
    pub budget: u64,
}

impl TurnThinking {
    /// Decides, and removes reasoning from the messages where the model does not think. "When thinking is
    /// disabled, an `assistant` message in the final position cannot contain `thinking`" (HTTP 400;
    /// tailcallhq/forgecode#1853): that is every message of the model after the user's last question. Older
    /// reasoning is ignored by the model, and left out as well: once left out, it stays so, for the sake of a
    /// cache.
    pub(super) fn adapt(request: &ModelRequest, profile: &UpstreamProfile, messages: &mut [Value]) -> Self {
        let setting = settings::thinking(request, profile);
        let turn = turn_of(messages);
        let is_left_out =
            setting.is_some_and(|thinking| thinking["type"] == "enabled" && lacks_own_thinking(turn));
        let setting = setting.filter(|_| !is_left_out);
        let may_think = match setting {
            Some(thinking) => thinking["type"] != "disabled",
            None => profile.thinks_unasked,
        };
        if !may_think {
            let blocks = messages.iter_mut().filter_map(|message| message["content"].as_array_mut());
            blocks.for_each(|blocks| blocks.retain(|block| !is_thought(block)));
        }
        let budget = setting.and_then(|thinking| thinking["budget_tokens"].as_u64());
        Self { is_left_out, budget: budget.unwrap_or(0) }
    }
}

pub(super) fn is_thought(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

/// The messages from the user's last question on.
fn turn_of(messages: &[Value]) -> &[Value] {
    let is_question = |message: &Value| message["role"] == "user" && !has(message, "tool_result");
    let start = messages.iter().rposition(is_question).unwrap_or(0);
    &messages[start..]
}

/// True if the first call of the turn has no thinking block before it, because another model made it or
/// because the model did not think: "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When
/// `thinking` is enabled, a final `assistant` message must start with a thinking block" (HTTP 400;
/// anthropics/claude-code#20717). Later calls of a turn usually have none before them, and the block at its
/// beginning cannot be sent without `thinking` (BerriAI/litellm#18926).
fn lacks_own_thinking(turn: &[Value]) -> bool {
    turn.iter()
        .find(|message| message["role"] == "assistant")
        .is_some_and(|message| has(message, "tool_use") && !is_thought(&message["content"][0]))
}

fn has(message: &Value, kind: &str) -> bool {
    message["content"].as_array().is_some_and(|blocks| blocks.iter().any(|block| block["type"] == kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const QUESTION: &str = "question";
    const RESULT: &str = "result";

    /// Messages by their role: blocks of the model by their types.
    fn messages(of: &[&[&str]]) -> Vec<Value> {
        let message = |blocks: &&[&str]| match **blocks {
            [QUESTION] => json!({"role": "user", "content": [{"type": "text"}]}),
            [RESULT] => json!({"role": "user", "content": [{"type": "tool_result"}]}),
            _ => {
                let blocks: Vec<_> = blocks.iter().map(|kind| json!({"type": kind})).collect();
                json!({"role": "assistant", "content": blocks})
            }
        };
        of.iter().map(message).collect()
    }

    /// With this setting: whether it is sent, its budget, and the messages.
    #[track_caller]
    fn check(
        thinking: Value,
        thinks_unasked: bool,
        before: &[&[&str]],
        is_sent: bool,
        budget: u64,
        sent: &[&[&str]],
    ) {
        let mut request = ModelRequest::default();
        request.settings.extra.insert("thinking".to_owned(), thinking.clone());
        let profile = UpstreamProfile { thinks_unasked, ..UpstreamProfile::default() };
        let mut adapted = messages(before);
        let of_turn = TurnThinking::adapt(&request, &profile, &mut adapted);
        assert_eq!((!of_turn.is_left_out, of_turn.budget), (is_sent, budget), "{thinking}");
        assert_eq!(adapted, messages(sent), "{thinking}");
    }

    const THOUGHT: [&[&str]; 5] = [
        &[QUESTION],
        &["thinking", "redacted_thinking", "text", "tool_use"],
        &[RESULT],
        &["thinking", "tool_use"],
        &[RESULT],
    ];
    const NO_THOUGHT: [&[&str]; 5] =
        [&[QUESTION], &["text", "tool_use"], &[RESULT], &["tool_use"], &[RESULT]];

    #[test]
    fn thinking_blocks_are_sent_only_if_thinking_is_allowed() {
        let (enabled, adaptive) =
            (json!({"type": "enabled", "budget_tokens": 2000}), json!({"type": "adaptive"}));
        check(enabled, false, &THOUGHT, true, 2000, &THOUGHT);
        check(adaptive, false, &THOUGHT, true, 0, &THOUGHT);
        check(json!({"type": "disabled"}), true, &THOUGHT, true, 0, &NO_THOUGHT);
        check(Value::Null, true, &THOUGHT, true, 0, &THOUGHT);
        check(Value::Null, false, &THOUGHT, true, 0, &NO_THOUGHT);
    }

    #[test]
    fn older_thinking_follows_that_of_the_turn() {
        let later = |turn: &[&'static [&'static str]]| [turn, &[&["text"]], turn].concat();
        check(json!({"type": "disabled"}), true, &later(&THOUGHT), true, 0, &later(&NO_THOUGHT));
        check(json!({"type": "adaptive"}), true, &later(&THOUGHT), true, 0, &later(&THOUGHT));
    }

    #[test]
    fn thinking_budget_is_omitted_if_turn_began_without_thinking() {
        let enabled = json!({"type": "enabled", "budget_tokens": 2000});
        check(enabled.clone(), true, &NO_THOUGHT, false, 0, &NO_THOUGHT);
        let began_without: [&[&str]; 5] =
            [&[QUESTION], &["tool_use"], &[RESULT], &["thinking", "tool_use"], &[RESULT]];
        let sent: [&[&str]; 5] = [&[QUESTION], &["tool_use"], &[RESULT], &["tool_use"], &[RESULT]];
        check(enabled.clone(), false, &began_without, false, 0, &sent);
        check(enabled.clone(), true, &began_without, false, 0, &began_without);
        check(json!({"type": "adaptive"}), true, &began_without, true, 0, &began_without);
        // After results the model does not think again.
        let began_with: [&[&str]; 5] =
            [&[QUESTION], &["thinking", "tool_use"], &[RESULT], &["tool_use"], &[RESULT]];
        check(enabled, true, &began_with, true, 2000, &began_with);
    }
}
