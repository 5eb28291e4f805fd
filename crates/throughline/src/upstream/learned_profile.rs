//! A profile that learns from refusals: what an upstream has refused once is sent in another way, or no more.

use super::failure::{self, ToolsInRequest};
use std::sync::{PoisonError, RwLock};
use throughline_wire::{Dialect, ToolSchemaForm, UpstreamProfile};

/// One thing that a refusal may name, and the profile without it.
struct RefusalRule {
    /// The dialect that sends it; none for every one.
    dialect: Option<Dialect>,
    /// It is sent with tools alone.
    needs_tools: bool,
    /// By status and [text](super::error_body::UpstreamErrorBody::text).
    is_named: fn(u16, &str) -> bool,
    leave_out: fn(&mut UpstreamProfile),
}

const RULES: [RefusalRule; 4] = [
    RefusalRule {
        dialect: Some(Dialect::OpenaiChat),
        needs_tools: false,
        is_named: failure::mentions_stream_options,
        leave_out: |profile| profile.include_usage = false,
    },
    RefusalRule {
        dialect: Some(Dialect::OpenaiResponses),
        needs_tools: false,
        is_named: failure::mentions_encrypted_reasoning,
        leave_out: |profile| profile.encrypted_reasoning = false,
    },
    RefusalRule {
        dialect: Some(Dialect::OpenaiChat),
        needs_tools: false,
        is_named: failure::mentions_user_after_tool,
        leave_out: |profile| profile.user_after_tool = false,
    },
    RefusalRule {
        dialect: None,
        needs_tools: true,
        is_named: failure::mentions_tool_schema,
        leave_out: |profile| profile.tool_schemas = ToolSchemaForm::Plain,
    },
];

pub(super) struct LearnedProfile {
    dialect: Dialect,
    profile: RwLock<UpstreamProfile>,
}

impl LearnedProfile {
    pub(super) fn new(dialect: Dialect, configured: UpstreamProfile) -> Self {
        Self { dialect, profile: RwLock::new(configured) }
    }

    pub(super) fn get(&self) -> UpstreamProfile {
        self.profile.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Learns from a refusal of a request. True if the request is encoded in another way by now, which may be because of
    /// another's refusal: what counts is the profile that it was encoded with, not the one of this moment.
    pub(super) fn learn(
        &self,
        sent: &UpstreamProfile,
        tools: ToolsInRequest,
        status: u16,
        refusal: &str,
    ) -> bool {
        let named = RULES.iter().find(|rule| {
            let mut without = sent.clone();
            (rule.leave_out)(&mut without);
            without != *sent
                && rule.dialect.is_none_or(|dialect| dialect == self.dialect)
                && (!rule.needs_tools || tools == ToolsInRequest::Present)
                && (rule.is_named)(status, refusal)
        });
        if let Some(rule) = named {
            (rule.leave_out)(&mut self.profile.write().unwrap_or_else(PoisonError::into_inner));
        }
        named.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM_OPTIONS: &str = "unknown field `stream_options`";
    const SCHEMA: &str = "invalid schema for function 'look'";

    #[track_caller]
    fn check(
        dialect: Dialect,
        refusals: &[(ToolsInRequest, u16, &str)],
        is_learned: bool,
    ) -> UpstreamProfile {
        let learned = LearnedProfile::new(dialect, UpstreamProfile::default());
        let sent = learned.get();
        for (tools, status, refusal) in refusals {
            assert_eq!(learned.learn(&sent, *tools, *status, refusal), is_learned, "{refusal}");
        }
        learned.get()
    }

    #[test]
    fn requests_refused_together_are_each_asked_again() {
        let refusal = (ToolsInRequest::Absent, 400, STREAM_OPTIONS);
        let profile = check(Dialect::OpenaiChat, &[refusal; 3], true);
        assert!(!profile.include_usage);
    }

    #[test]
    fn refusals_of_different_things_are_learned_beside_each_other() {
        let refusals =
            [(ToolsInRequest::Present, 400, STREAM_OPTIONS), (ToolsInRequest::Present, 400, SCHEMA)];
        let profile = check(Dialect::OpenaiChat, &refusals, true);
        assert_eq!((profile.include_usage, profile.tool_schemas), (false, ToolSchemaForm::Plain));
    }

    #[test]
    fn what_was_not_sent_is_not_learned() {
        check(Dialect::OpenaiChat, &[(ToolsInRequest::Absent, 400, SCHEMA)], false);
        check(Dialect::Gemini, &[(ToolsInRequest::Present, 400, STREAM_OPTIONS)], false);
        let learned = LearnedProfile::new(Dialect::OpenaiChat, UpstreamProfile::default());
        learned.learn(&learned.get(), ToolsInRequest::Absent, 400, STREAM_OPTIONS);
        assert!(!learned.learn(&learned.get(), ToolsInRequest::Absent, 400, STREAM_OPTIONS));
    }
}
