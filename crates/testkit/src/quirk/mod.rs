//! Quirks to plant in an upstream: departures from its provider's API that real servers have, one name each. A program
//! that measures upstreams is tested against them.

mod refusal;
mod reply;
mod rewrite;

pub(crate) use refusal::refusal;
pub(crate) use reply::with_quirks;
pub(crate) use rewrite::rewrite;

use crate::dialect::FakeDialect;
use crate::server::{CallIdRule, ReasoningEchoRule, UpstreamBehavior};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A departure of an upstream from its provider's API, in every reply. The names are those of scenario files and of
/// `throughline mock --quirk`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlantedQuirk {
    /// Streaming is refused.
    NoStreaming,
    /// Only streaming is accepted (Qwen's thinking models).
    StreamOnly,
    /// A stream was requested, and one JSON body comes.
    WholeBodyForStream,
    /// The stream is noise instead of events, and then ends.
    BrokenStream,
    /// The stream ends without its end marker.
    NoEndMarker,
    /// Comments between the events.
    Comments,
    /// No token counts in the stream.
    NoStreamUsage,
    /// `stream_options` is refused (Mistral).
    StreamOptionsRefused,
    /// A finish reason on every chunk (gcli2api).
    FinishEveryChunk,
    /// No finish reason at all.
    NoFinishReason,
    /// The finish reason of a reply with calls is that of one without.
    StopWithCalls,
    /// Reasoning in the field `reasoning` (vLLM, Ollama's compatible API).
    ThinksInReasoning,
    /// Reasoning between `<think>` tags in the text.
    ThinksInText,
    /// A request with a system prompt is refused (templates without a system role).
    SystemPromptRefused,
    /// The system prompt is accepted under the role `developer` only.
    DeveloperRole,
    /// The system prompt changes nothing.
    SystemPromptIgnored,
    /// Requests with tools are refused.
    NoTools,
    /// Tools are accepted, and the model never calls one.
    IgnoresTools,
    /// Calls are written into the text.
    LeakedCalls,
    /// One call in a reply at most.
    SingleCall,
    /// Every call has the index 0 (gcli2api).
    ZeroIndex,
    /// Calls have no index.
    NoIndex,
    /// Calls have no id.
    NoCallIds,
    /// Every call has the same id.
    RepeatedCallIds,
    /// Later fragments of a call have the name `""` (SiliconFlow).
    EmptyNames,
    /// Each fragment of arguments restates everything before it.
    CumulativeArguments,
    /// Arguments begin with `{}`.
    PlaceholderArguments,
    /// Arguments come in one piece.
    WholeArguments,
    /// Call ids that go back must be nine letters and digits (Mistral).
    NineLetterIds,
    /// The reasoning of a reply with calls must come back (DeepSeek, Kimi).
    ReasoningEchoRequired,
    /// A forced call is refused.
    ForcedCallRefused,
    /// A forced call is not made.
    ForcedCallIgnored,
    /// `tool_choice: "none"` is refused.
    ForbiddenCallRefused,
    /// `tool_choice: "none"` does not keep the model from calling.
    ForbiddenCallIgnored,
    /// A schema for the reply is refused.
    JsonSchemaRefused,
    /// A schema for the reply changes nothing.
    JsonSchemaIgnored,
    /// Pictures are refused.
    ImagesRefused,
    /// Pictures are accepted and not seen.
    ImagesIgnored,
    /// `cache_control` is refused.
    CacheControlRefused,
    /// `include: ["reasoning.encrypted_content"]` is refused.
    EncryptedReasoningRefused,
}

use FakeDialect as D;

const CHAT: &[D] = &[D::OpenaiChat];
const RESPONSES: &[D] = &[D::OpenaiResponses];
const ANTHROPIC: &[D] = &[D::Anthropic];
const CHAT_AND_ANTHROPIC: &[D] = &[D::OpenaiChat, D::Anthropic];
const WITH_SCHEMA: &[D] = &[D::OpenaiChat, D::OpenaiResponses, D::Anthropic, D::Gemini, D::Ollama, D::Cohere];
/// Dialects whose streams are not binary frames.
const TEXT_STREAMS: &[D] = WITH_SCHEMA;
const WITH_TOOL_CHOICE: &[D] = &[D::OpenaiChat, D::OpenaiResponses, D::Anthropic, D::Gemini];

impl PlantedQuirk {
    /// All quirks.
    pub const ALL: [Self; 40] = [
        Self::NoStreaming,
        Self::StreamOnly,
        Self::WholeBodyForStream,
        Self::BrokenStream,
        Self::NoEndMarker,
        Self::Comments,
        Self::NoStreamUsage,
        Self::StreamOptionsRefused,
        Self::FinishEveryChunk,
        Self::NoFinishReason,
        Self::StopWithCalls,
        Self::ThinksInReasoning,
        Self::ThinksInText,
        Self::SystemPromptRefused,
        Self::DeveloperRole,
        Self::SystemPromptIgnored,
        Self::NoTools,
        Self::IgnoresTools,
        Self::LeakedCalls,
        Self::SingleCall,
        Self::ZeroIndex,
        Self::NoIndex,
        Self::NoCallIds,
        Self::RepeatedCallIds,
        Self::EmptyNames,
        Self::CumulativeArguments,
        Self::PlaceholderArguments,
        Self::WholeArguments,
        Self::NineLetterIds,
        Self::ReasoningEchoRequired,
        Self::ForcedCallRefused,
        Self::ForcedCallIgnored,
        Self::ForbiddenCallRefused,
        Self::ForbiddenCallIgnored,
        Self::JsonSchemaRefused,
        Self::JsonSchemaIgnored,
        Self::ImagesRefused,
        Self::ImagesIgnored,
        Self::CacheControlRefused,
        Self::EncryptedReasoningRefused,
    ];

    /// The name in files and on the command line.
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            _ => String::new(),
        }
    }

    /// The wire formats in which it can occur; in others it changes nothing.
    pub fn dialects(self) -> &'static [FakeDialect] {
        use PlantedQuirk as Q;
        match self {
            Q::StreamOptionsRefused
            | Q::FinishEveryChunk
            | Q::NoFinishReason
            | Q::ThinksInReasoning
            | Q::ThinksInText
            | Q::DeveloperRole
            | Q::ZeroIndex
            | Q::NoIndex
            | Q::NoCallIds
            | Q::RepeatedCallIds
            | Q::EmptyNames
            | Q::PlaceholderArguments
            | Q::NineLetterIds
            | Q::ReasoningEchoRequired => CHAT,
            Q::NoEndMarker | Q::StopWithCalls | Q::CumulativeArguments | Q::WholeArguments => {
                CHAT_AND_ANTHROPIC
            }
            Q::Comments => WITH_TOOL_CHOICE,
            Q::ForcedCallRefused
            | Q::ForcedCallIgnored
            | Q::ForbiddenCallRefused
            | Q::ForbiddenCallIgnored => WITH_TOOL_CHOICE,
            Q::NoStreamUsage => TEXT_STREAMS,
            Q::JsonSchemaRefused | Q::JsonSchemaIgnored => WITH_SCHEMA,
            Q::CacheControlRefused => ANTHROPIC,
            Q::EncryptedReasoningRefused => RESPONSES,
            _ => &FakeDialect::ALL,
        }
    }

    /// Habits of an upstream with these quirks.
    pub(crate) fn behavior(quirks: &[Self], base: UpstreamBehavior) -> UpstreamBehavior {
        let call_ids =
            if quirks.contains(&Self::NineLetterIds) { CallIdRule::Mistral } else { base.call_ids };
        let reasoning = if quirks.contains(&Self::ReasoningEchoRequired) {
            ReasoningEchoRule::Required
        } else {
            base.reasoning
        };
        UpstreamBehavior { call_ids, reasoning, ..base }
    }
}

impl FromStr for PlantedQuirk {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|quirk| quirk.name() == name).ok_or_else(|| {
            let names: Vec<String> = Self::ALL.into_iter().map(Self::name).collect();
            format!("no such quirk; there are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_quirk_has_a_unique_parsable_name() {
        let names: BTreeSet<String> = PlantedQuirk::ALL.into_iter().map(PlantedQuirk::name).collect();
        assert_eq!(names.len(), PlantedQuirk::ALL.len());
        for quirk in PlantedQuirk::ALL {
            assert_eq!(quirk.name().parse(), Ok(quirk));
        }
        assert!("no_such".parse::<PlantedQuirk>().unwrap_err().contains("zero_index"));
    }
}
