//! A profile that learns from refusals: what an upstream has refused once is sent in another way, or no more.

use super::failure::{self, ToolsInRequest};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use throughline_wire::{Dialect, ToolSchemaForm, UpstreamProfile};

/// One thing that a refusal may name, and the profile without it.
struct RefusalRule {
    /// The dialect that sends it; none for every one.
    dialect: Option<Dialect>,
    /// True for a request that has it: a refusal of another names something else.
    is_sent: fn(&RefusedRequest<'_>) -> bool,
    /// By status and [text](super::error_body::UpstreamErrorBody::text).
    is_named: fn(u16, &str) -> bool,
    leave_out: fn(&mut UpstreamProfile),
}

const RULES: [RefusalRule; 6] = [
    RefusalRule {
        dialect: Some(Dialect::OpenaiChat),
        is_sent: |_| true,
        is_named: failure::mentions_stream_options,
        leave_out: |profile| profile.include_usage = false,
    },
    RefusalRule {
        dialect: Some(Dialect::OpenaiResponses),
        is_sent: |_| true,
        is_named: failure::mentions_encrypted_reasoning,
        leave_out: |profile| profile.encrypted_reasoning = false,
    },
    RefusalRule {
        dialect: Some(Dialect::OpenaiChat),
        is_sent: |refused| has_user_after_tool(refused.body),
        is_named: failure::mentions_user_after_tool,
        leave_out: |profile| profile.user_after_tool = false,
    },
    RefusalRule {
        dialect: Some(Dialect::OpenaiChat),
        is_sent: |_| true,
        is_named: failure::mentions_max_completion_tokens,
        leave_out: |profile| profile.max_completion_tokens = true,
    },
    RefusalRule {
        dialect: None,
        is_sent: |refused| refused.tools == ToolsInRequest::Present,
        is_named: failure::mentions_eager_arguments,
        leave_out: |profile| profile.eager_arguments = false,
    },
    RefusalRule {
        dialect: None,
        is_sent: |refused| refused.tools == ToolsInRequest::Present,
        is_named: failure::mentions_tool_schema,
        leave_out: |profile| profile.tool_schemas = ToolSchemaForm::Plain,
    },
];

/// True for messages in which the user speaks right after a tool's result (Chat Completions).
fn has_user_after_tool(body: &Value) -> bool {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    messages.windows(2).any(|pair| pair[0]["role"] == "tool" && pair[1]["role"] == "user")
}

/// Models that are remembered; one more, and all are asked anew.
const MODELS_MAX: usize = 1_000;

pub(super) struct LearnedProfile {
    dialect: Dialect,
    configured: UpstreamProfile,
    /// By model: what one does not take another may.
    learned: RwLock<HashMap<String, UpstreamProfile>>,
}

/// A request that was refused.
pub(super) struct RefusedRequest<'a> {
    pub model: &'a str,
    /// The profile that it was encoded with.
    pub profile: &'a UpstreamProfile,
    pub tools: ToolsInRequest,
    pub body: &'a Value,
}

impl LearnedProfile {
    pub(super) fn new(dialect: Dialect, configured: UpstreamProfile) -> Self {
        Self { dialect, configured, learned: RwLock::default() }
    }

    pub(super) fn get(&self, model: &str) -> UpstreamProfile {
        let learned = self.learned.read().unwrap_or_else(PoisonError::into_inner);
        learned.get(model).unwrap_or(&self.configured).clone()
    }

    /// Learns from a refusal of a request. True if the request is encoded in another way by now, which may be because of
    /// another's refusal: what counts is the profile that it was encoded with, not the one of this moment.
    pub(super) fn learn(&self, refused: &RefusedRequest<'_>, status: u16, refusal: &str) -> bool {
        let named = RULES.iter().find(|rule| {
            let mut without = refused.profile.clone();
            (rule.leave_out)(&mut without);
            without != *refused.profile
                && rule.dialect.is_none_or(|dialect| dialect == self.dialect)
                && (rule.is_sent)(refused)
                && (rule.is_named)(status, refusal)
        });
        match named {
            Some(rule) => self.change(refused.model, rule.leave_out),
            None => match failure::refused_setting(status, refusal, refused.body) {
                // It was taken out, and is refused all the same: the same request again would be refused for ever.
                Some(name) if refused.profile.leave_out.contains(name) => return false,
                Some(name) => self.change(refused.model, |profile| {
                    profile.leave_out.insert(name.to_owned());
                }),
                None => return false,
            },
        }
        true
    }

    fn change(&self, model: &str, change: impl FnOnce(&mut UpstreamProfile)) {
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        if learned.len() >= MODELS_MAX && !learned.contains_key(model) {
            learned.clear();
        }
        change(learned.entry(model.to_owned()).or_insert_with(|| self.configured.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const STREAM_OPTIONS: &str = "unknown field `stream_options`";
    const SCHEMA: &str = "invalid schema for function 'look'";
    const TEMPERATURE: &str = "unsupported value: 'temperature' does not support 0.2 with this model";

    /// Requests of a model that are sent together and refused.
    #[track_caller]
    fn check(dialect: Dialect, refusals: &[(ToolsInRequest, &str)], is_learned: bool) -> LearnedProfile {
        let learned = LearnedProfile::new(dialect, UpstreamProfile::default());
        let profile = &learned.get("m");
        let body = &json!({"temperature": 0.2});
        for (tools, refusal) in refusals {
            let refused = RefusedRequest { model: "m", profile, tools: *tools, body };
            assert_eq!(learned.learn(&refused, 400, refusal), is_learned, "{refusal}");
        }
        learned
    }

    #[test]
    fn requests_refused_together_are_each_asked_again() {
        let refusal = (ToolsInRequest::Absent, STREAM_OPTIONS);
        assert!(!check(Dialect::OpenaiChat, &[refusal; 3], true).get("m").include_usage);
    }

    #[test]
    fn refusals_of_different_things_are_learned_together() {
        let refusals =
            [STREAM_OPTIONS, SCHEMA, TEMPERATURE].map(|refusal| (ToolsInRequest::Present, refusal));
        let profile = check(Dialect::OpenaiChat, &refusals, true).get("m");
        assert_eq!((profile.include_usage, profile.tool_schemas), (false, ToolSchemaForm::Plain));
        assert!(profile.leave_out.contains("temperature"));
    }

    /// A template that takes no instructions complains with the same words.
    #[test]
    fn a_word_after_results_is_learned_only_where_the_user_follows_one() {
        let refusal = "conversation roles must alternate user/assistant/user/assistant/...";
        for (roles, is_learned) in [(["system", "user"], false), (["tool", "user"], true)] {
            let learned = LearnedProfile::new(Dialect::OpenaiChat, UpstreamProfile::default());
            let messages = roles.map(|role| json!({"role": role, "content": "Hi"}));
            let (profile, body) = (&learned.get("m"), &json!({"messages": messages}));
            let refused = RefusedRequest { model: "m", profile, tools: ToolsInRequest::Absent, body };
            assert_eq!(learned.learn(&refused, 400, refusal), is_learned, "{roles:?}");
            assert_eq!(learned.get("m").user_after_tool, !is_learned, "{roles:?}");
        }
    }

    #[test]
    fn a_refusal_says_nothing_of_another_model() {
        let learned = check(Dialect::OpenaiChat, &[(ToolsInRequest::Absent, TEMPERATURE)], true);
        assert_eq!(learned.get("other"), UpstreamProfile::default());
    }

    #[test]
    fn what_was_not_sent_is_not_learned() {
        check(Dialect::OpenaiChat, &[(ToolsInRequest::Absent, SCHEMA)], false);
        check(Dialect::Gemini, &[(ToolsInRequest::Present, STREAM_OPTIONS)], false);
        check(Dialect::OpenaiChat, &[(ToolsInRequest::Absent, "unsupported parameter: 'seed'")], false);
        let learned = check(Dialect::OpenaiChat, &[(ToolsInRequest::Absent, STREAM_OPTIONS)], true);
        let (profile, body) = (&learned.get("m"), &json!({}));
        let again = RefusedRequest { model: "m", profile, tools: ToolsInRequest::Absent, body };
        assert!(!learned.learn(&again, 400, STREAM_OPTIONS));
    }
}
