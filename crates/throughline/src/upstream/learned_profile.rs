//! A profile that learns from refusals: a refused setting is sent in another form, or left out.

use super::failure;
use super::named_tools::named_tools;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{PoisonError, RwLock};
use throughline_wire::{
    DefinitionHash, Dialect, Message, ModelRequest, ToolChoice, ToolDefinition, ToolSchemaForm,
    UpstreamProfile,
};

/// One property that a refusal may name, and the change of the profile that avoids it.
struct RefusalRule {
    /// The dialects that send it.
    dialects: &'static [Dialect],
    /// True for a request that has it: a refusal of another names something else.
    is_sent: fn(&RefusedRequest<'_>) -> bool,
    /// Recognizes the refusal by status and [text](super::error_body::UpstreamErrorBody::text).
    is_named: fn(u16, &str) -> bool,
    leave_out: fn(&mut UpstreamProfile),
}

const CLAUDE: [Dialect; 2] = [Dialect::Anthropic, Dialect::BedrockAnthropic];

const RULES: [RefusalRule; 11] = [
    RefusalRule {
        dialects: &[Dialect::OpenaiChat],
        is_sent: |_| true,
        is_named: failure::mentions_stream_options,
        leave_out: |profile| profile.include_usage = false,
    },
    RefusalRule {
        dialects: &[Dialect::OpenaiResponses],
        is_sent: |_| true,
        is_named: failure::mentions_encrypted_reasoning,
        leave_out: |profile| profile.encrypted_reasoning = false,
    },
    RefusalRule {
        dialects: &[Dialect::OpenaiChat],
        is_sent: |refused| has_user_after_tool(refused.body),
        is_named: failure::mentions_user_after_tool,
        leave_out: |profile| profile.user_after_tool = false,
    },
    RefusalRule {
        dialects: &[Dialect::OpenaiChat],
        is_sent: |_| true,
        is_named: failure::mentions_max_completion_tokens,
        leave_out: |profile| profile.max_completion_tokens = true,
    },
    RefusalRule {
        dialects: &Dialect::ALL,
        is_sent: |refused| !refused.request.tools.is_empty(),
        is_named: failure::mentions_eager_arguments,
        leave_out: |profile| profile.eager_arguments = false,
    },
    RefusalRule {
        dialects: &CLAUDE,
        is_sent: |_| true,
        is_named: failure::mentions_cache_control,
        leave_out: |profile| profile.cache_control = false,
    },
    RefusalRule {
        dialects: &CLAUDE,
        // If the request enabled thinking, a gateway has removed that.
        is_sent: |refused| refused.body.get("thinking").is_none(),
        is_named: failure::mentions_thoughts_unasked,
        leave_out: |profile| profile.thinks_unasked = false,
    },
    RefusalRule {
        // Claude wants tools for the calls of a history, and takes the choice.
        dialects: &[Dialect::OpenaiChat, Dialect::OpenaiResponses],
        is_sent: |refused| refused.body["tool_choice"] == "none",
        is_named: failure::mentions_forbidden_call,
        leave_out: |profile| profile.tool_choice_none = false,
    },
    RefusalRule {
        dialects: &[Dialect::OpenaiChat],
        is_sent: |refused| forces_while_thinking(refused.body),
        is_named: failure::mentions_choice_while_thinking,
        leave_out: |profile| profile.tool_choice_while_thinking = false,
    },
    RefusalRule {
        dialects: &[Dialect::OpenaiChat, Dialect::OpenaiResponses],
        is_sent: |refused| has_strict_tool(refused.body),
        is_named: failure::mentions_strict,
        leave_out: |profile| profile.strict_tools = false,
    },
    RefusalRule {
        dialects: &Dialect::ALL,
        is_sent: |refused| !refused.request.tools.is_empty(),
        is_named: failure::mentions_tool_schema,
        leave_out: |profile| profile.tool_schemas = ToolSchemaForm::Plain,
    },
];

/// True for a body that forces a call and switches thinking on (Chat Completions).
fn forces_while_thinking(body: &Value) -> bool {
    let thinks = body.get("thinking").is_some_and(|thinking| thinking["type"] != "disabled");
    (thinks || body["enable_thinking"] == true)
        && (body["tool_choice"] == "required" || body["tool_choice"].is_object())
}

/// True for a body with a tool that is held to its schema (OpenAI's formats).
fn has_strict_tool(body: &Value) -> bool {
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    tools.iter().any(|tool| tool.get("function").unwrap_or(tool)["strict"] == true)
}

/// True for messages in which a user message follows a tool's result (Chat Completions).
fn has_user_after_tool(body: &Value) -> bool {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    messages.windows(2).any(|pair| pair[0]["role"] == "tool" && pair[1]["role"] == "user")
}

/// Number of models with a learned profile. One more clears the table.
const MODELS_MAX: usize = 1_000;
/// Steps with reasoning that is not sent back any more; one more, and it is sent anew.
const UNREADABLE_STEPS_MAX: usize = 10_000;
/// Refused tools of a model that are remembered; one more, and all are sent anew.
const REFUSED_TOOLS_MAX: usize = 1_000;

pub(super) struct LearnedProfile {
    dialect: Dialect,
    configured: UpstreamProfile,
    /// Learned profiles by model: models of one upstream differ.
    learned: RwLock<HashMap<String, UpstreamProfile>>,
    /// Hashes of reasoning that its model has refused to read.
    unreadable: RwLock<HashSet<u64>>,
}

/// A request that was refused.
pub(super) struct RefusedRequest<'a> {
    pub request: &'a ModelRequest,
    /// The profile that it was encoded with.
    pub profile: &'a UpstreamProfile,
    pub body: &'a Value,
}

impl RefusedRequest<'_> {
    /// Upper bound of the pictures and documents that were sent.
    fn pictures_sent_max(&self) -> u32 {
        let media = self.request.messages.iter().map(|message| message.media().len()).sum::<usize>();
        let known = self.profile.pictures_max.filter(|most| *most > 0).unwrap_or(u32::MAX);
        u32::try_from(media).map_or(known, |media| media.min(known))
    }

    /// The tools that it can do without, by a refusal of their definitions. They were sent.
    fn refused_tools(&self, status: u16, refusal: &str) -> BTreeSet<DefinitionHash> {
        let tools = named_tools(status, refusal, self.body, &self.request.tools).into_iter();
        let is_needed = |tool: &&ToolDefinition| matches!(&self.request.tool_choice, ToolChoice::Tool(name) if *name == tool.name);
        let tools = tools.filter(|tool| !is_needed(tool)).map(ToolDefinition::definition_hash);
        let tools: BTreeSet<_> = tools.filter(|tool| !self.profile.refused_tools.contains(tool)).collect();
        let is_left =
            |tool: DefinitionHash| !tools.contains(&tool) && !self.profile.refused_tools.contains(&tool);
        // A call that has to be made needs a tool.
        let has_enough = !self.request.tool_choice.is_forced()
            || self.request.tools.iter().any(|tool| is_left(tool.definition_hash()));
        if has_enough { tools } else { BTreeSet::new() }
    }
}

impl LearnedProfile {
    pub(super) fn new(dialect: Dialect, configured: UpstreamProfile) -> Self {
        Self { dialect, configured, learned: RwLock::default(), unreadable: RwLock::default() }
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
                && rule.dialects.contains(&self.dialect)
                && (rule.is_sent)(refused)
                && (rule.is_named)(status, refusal)
        });
        if let Some(rule) = named {
            self.change(&refused.request.model, rule.leave_out);
            return true;
        }
        let most = failure::allowed_pictures(status, refusal);
        if let Some(most) = most.filter(|most| *most < refused.pictures_sent_max()) {
            self.change(&refused.request.model, |profile| profile.pictures_max = Some(most));
            return true;
        }
        let tools = refused.refused_tools(status, refusal);
        if !tools.is_empty() {
            let is_of_schema = refusal.contains("schema") || refusal.contains("parameters");
            if is_of_schema && refused.profile.tool_schemas == ToolSchemaForm::Standard {
                self.change(&refused.request.model, |profile| profile.tool_schemas = ToolSchemaForm::Plain);
                return true;
            }
            self.change(&refused.request.model, |profile| {
                if profile.refused_tools.len() + tools.len() > REFUSED_TOOLS_MAX {
                    profile.refused_tools.clear();
                }
                profile.refused_tools.extend(tools);
            });
            return true;
        }
        match failure::refused_setting(status, refusal, refused.body) {
            // The setting was removed and is still refused: the same request would be refused in an endless
            // loop.
            Some(name) if !refused.profile.leave_out.contains(name) => {
                self.change(&refused.request.model, |profile| {
                    profile.leave_out.insert(name.to_owned());
                });
                true
            }
            _ => false,
        }
    }

    /// Leaves out of a history the reasoning that its model has refused to read.
    pub(super) fn forget_unreadable(&self, request: &mut ModelRequest) {
        let unreadable = self.unreadable.read().unwrap_or_else(PoisonError::into_inner);
        if unreadable.is_empty() {
            return;
        }
        for message in &mut request.messages {
            if reasoning_hash(message, &request.model).is_some_and(|hash| unreadable.contains(&hash)) {
                forget_reasoning(message);
            }
        }
    }

    /// Removes reasoning permanently from the messages before the turn; returns false if they have none. The
    /// turn's own steps need theirs, while a client's history may contain data that another model has signed.
    pub(super) fn forget_earlier(&self, request: &mut ModelRequest, turn_start: usize) -> bool {
        let mut unreadable = self.unreadable.write().unwrap_or_else(PoisonError::into_inner);
        let mut is_changed = false;
        for message in request.messages.iter_mut().take(turn_start) {
            let Some(hash) = reasoning_hash(message, &request.model) else { continue };
            if unreadable.len() >= UNREADABLE_STEPS_MAX {
                unreadable.clear();
            }
            unreadable.insert(hash);
            forget_reasoning(message);
            is_changed = true;
        }
        is_changed
    }

    fn change(&self, model: &str, change: impl FnOnce(&mut UpstreamProfile)) {
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        if learned.len() >= MODELS_MAX && !learned.contains_key(model) {
            learned.clear();
        }
        change(learned.entry(model.to_owned()).or_insert_with(|| self.configured.clone()));
    }
}

/// Hash of the state that a model wants back with a step; `None` if it has none.
fn reasoning_hash(message: &Message, model: &str) -> Option<u64> {
    let Message::Step(step) = message else { return None };
    let mut hasher = DefaultHasher::new();
    (model, &step.provider_state.as_ref()?.value).hash(&mut hasher);
    Some(hasher.finish())
}

/// The step is rebuilt from its text and its calls.
pub(super) fn forget_reasoning(message: &mut Message) {
    if let Message::Step(step) = message {
        step.provider_state = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use throughline_wire::{Media, UserPart};

    const STREAM_OPTIONS: &str = "unknown field `stream_options`";
    const SCHEMA: &str = "invalid schema for function 'look'";
    const TEMPERATURE: &str = "unsupported value: 'temperature' does not support 0.2 with this model";

    /// Requests of a model, with these tools, that are sent together and refused.
    #[track_caller]
    fn check(dialect: Dialect, refusals: &[(&[&str], &str)], is_learned: bool) -> LearnedProfile {
        let learned = LearnedProfile::new(dialect, UpstreamProfile::default());
        let profile = &learned.get("m");
        let body = &json!({"temperature": 0.2});
        for (tools, refusal) in refusals {
            let refused = RefusedRequest { request: &request(tools), profile, body };
            assert_eq!(learned.learn(&refused, 400, refusal), is_learned, "{refusal}");
        }
        learned
    }

    fn request(tools: &[&str]) -> ModelRequest {
        let tools = tools.iter().map(|name| tool(name, "")).collect();
        ModelRequest { model: "m".into(), tools, ..ModelRequest::default() }
    }

    fn tool(name: &str, description: &str) -> ToolDefinition {
        ToolDefinition::new(name, description, json!({"type": "object"}))
    }

    #[test]
    fn concurrent_refusals_are_each_retried() {
        let refusal = (&[][..], STREAM_OPTIONS);
        assert!(!check(Dialect::OpenaiChat, &[refusal; 3], true).get("m").include_usage);
    }

    #[test]
    fn different_refusals_are_learned_together() {
        let refusals = [STREAM_OPTIONS, SCHEMA, TEMPERATURE].map(|refusal| (&["look"][..], refusal));
        let profile = check(Dialect::OpenaiChat, &refusals, true).get("m");
        assert_eq!((profile.include_usage, profile.tool_schemas), (false, ToolSchemaForm::Plain));
        assert!(profile.leave_out.contains("temperature"));
    }

    /// A template without system messages reports the same error.
    #[test]
    fn user_after_tool_is_learned_only_after_a_tool_result() {
        let refusal = "conversation roles must alternate user/assistant/user/assistant/...";
        for (roles, is_learned) in [(["system", "user"], false), (["tool", "user"], true)] {
            let learned = LearnedProfile::new(Dialect::OpenaiChat, UpstreamProfile::default());
            let messages = roles.map(|role| json!({"role": role, "content": "Hi"}));
            let (profile, body) = (&learned.get("m"), &json!({"messages": messages}));
            let refused = RefusedRequest { request: &request(&[]), profile, body };
            assert_eq!(learned.learn(&refused, 400, refusal), is_learned, "{roles:?}");
            assert_eq!(learned.get("m").user_after_tool, !is_learned, "{roles:?}");
        }
    }

    #[test]
    fn tool_choice_none_is_learned_only_if_it_was_sent() {
        const AUTO: &str = "tool choice must be auto";
        for (choice, refusal, is_learned) in [
            ("none", AUTO, true),
            ("required", AUTO, false),
            // The model's own fault (BerriAI/litellm#21242).
            ("none", "tool choice is none, but model called a tool tool_use_failed", false),
        ] {
            let learned = LearnedProfile::new(Dialect::OpenaiChat, UpstreamProfile::default());
            let (profile, body) = (&learned.get("m"), &json!({"tool_choice": choice}));
            let refused = RefusedRequest { request: &request(&["look"]), profile, body };
            assert_eq!(learned.learn(&refused, 400, refusal), is_learned, "{choice}: {refusal}");
            assert_eq!(learned.get("m").tool_choice_none, !is_learned, "{choice}: {refusal}");
        }
    }

    #[test]
    fn strict_tools_are_dropped_only_if_sent_and_refused() {
        for (strict, refusal, is_learned) in [
            (true, "tools with mixed values for 'strict' are not allowed.", true),
            (true, "tools.0.function.strict: extra inputs are not permitted", true),
            (true, "messages are strictly alternating", false),
            (false, "tools.0.function.strict: extra inputs are not permitted", false),
        ] {
            let learned = LearnedProfile::new(Dialect::OpenaiChat, UpstreamProfile::default());
            let body =
                &json!({"tools": [{"type": "function", "function": {"name": "look", "strict": strict}}]});
            let refused = RefusedRequest { request: &request(&["look"]), profile: &learned.get("m"), body };
            assert_eq!(learned.learn(&refused, 400, refusal), is_learned, "{refusal}");
            assert_eq!(learned.get("m").strict_tools, !is_learned, "{refusal}");
        }
    }

    #[test]
    fn tool_choice_while_thinking_is_learned_if_both_were_sent() {
        let refusal = "tool_choice is not supported when enable_thinking is true";
        for (body, is_learned) in [
            (json!({"tool_choice": "required", "enable_thinking": true}), true),
            (json!({"tool_choice": {"type": "function"}, "thinking": {"type": "enabled"}}), true),
            (json!({"tool_choice": "required", "thinking": {"type": "disabled"}}), false),
            (json!({"tool_choice": "auto", "thinking": {"type": "enabled"}}), false),
            (json!({"tool_choice": "required"}), false),
        ] {
            let learned = LearnedProfile::new(Dialect::OpenaiChat, UpstreamProfile::default());
            let profile = &learned.get("m");
            let refused = RefusedRequest { request: &request(&["look"]), profile, body: &body };
            assert_eq!(learned.learn(&refused, 400, refusal), is_learned, "{body}");
            let profile = learned.get("m");
            assert_eq!(profile.tool_choice_while_thinking, !is_learned, "{body}");
            assert!(profile.leave_out.is_empty(), "{body}");
        }
    }

    /// "Thinking is enabled" (microsoft/vscode#282326): something between has lost the setting.
    #[test]
    fn thinking_is_dropped_only_if_none_was_requested() {
        let refusal =
            "when thinking is disabled, an assistant message in the final position cannot contain thinking";
        for (body, is_learned) in [(json!({}), true), (json!({"thinking": {"type": "adaptive"}}), false)] {
            let learned = LearnedProfile::new(Dialect::Anthropic, UpstreamProfile::default());
            let profile = &learned.get("m");
            let refused = RefusedRequest { request: &request(&[]), profile, body: &body };
            assert_eq!(learned.learn(&refused, 400, refusal), is_learned, "{body}");
            assert_eq!(learned.get("m").thinks_unasked, !is_learned, "{body}");
        }
    }

    #[test]
    fn refusal_is_learned_per_model() {
        let learned = check(Dialect::OpenaiChat, &[(&[][..], TEMPERATURE)], true);
        assert_eq!(learned.get("other"), UpstreamProfile::default());
    }

    #[test]
    fn refusal_of_an_unsent_parameter_is_not_learned() {
        check(Dialect::OpenaiChat, &[(&[][..], SCHEMA)], false);
        check(Dialect::Gemini, &[(&["look"], STREAM_OPTIONS)], false);
        check(Dialect::OpenaiChat, &[(&[][..], "unsupported parameter: 'seed'")], false);
        let learned = check(Dialect::OpenaiChat, &[(&[][..], STREAM_OPTIONS)], true);
        let (profile, body) = (&learned.get("m"), &json!({}));
        let again = RefusedRequest { request: &request(&[]), profile, body };
        assert!(!learned.learn(&again, 400, STREAM_OPTIONS));
    }

    /// Tools of the same name of other users are unaffected, and a tool whose call is forced is not left out.
    #[test]
    fn tool_refused_in_plain_form_is_left_out_by_its_hash() {
        let learned = LearnedProfile::new(Dialect::OpenaiChat, UpstreamProfile::default());
        let asking = request(&["look", "read"]);
        let forced = ModelRequest { tool_choice: ToolChoice::Tool("look".into()), ..asking.clone() };
        let learns = |request: &ModelRequest| {
            let (profile, body) = (&learned.get("m"), &json!({}));
            learned.learn(&RefusedRequest { request, profile, body }, 400, SCHEMA)
        };
        assert!(learns(&asking));
        assert_eq!(learned.get("m").tool_schemas, ToolSchemaForm::Plain);
        assert!(!learns(&forced), "without its tool it is another request");
        let must_call = ModelRequest { tool_choice: ToolChoice::Required, ..request(&["look"]) };
        assert!(!learns(&must_call), "without any tool it is another request");
        assert!(learns(&asking));
        let refused = learned.get("m").refused_tools;
        let is_refused = |tool: ToolDefinition| refused.contains(&tool.definition_hash());
        assert!(is_refused(tool("look", "")));
        assert!(!is_refused(tool("look", "Looks")) && !is_refused(tool("read", "")));
        assert!(!learns(&asking), "it was left out, and is refused all the same");
    }

    #[test]
    fn refused_tools_are_cleared_at_their_limit() {
        let learned = LearnedProfile::new(Dialect::Anthropic, UpstreamProfile::default());
        for number in 0..=REFUSED_TOOLS_MAX {
            let request = request(&[&format!("look_{number}")]);
            let mut profile = learned.get("m");
            profile.tool_schemas = ToolSchemaForm::Plain;
            let body = json!({"tools": [{"name": format!("look_{number}")}]});
            let refused = RefusedRequest { request: &request, profile: &profile, body: &body };
            assert!(learned.learn(&refused, 400, "tools.0.custom.input_schema: no"));
        }
        assert_eq!(learned.get("m").refused_tools.len(), 1);
    }

    #[test]
    fn learned_image_limit_is_never_raised() {
        let refusal = |most| format!("too many images and documents: 999 + 0 > {most}");
        for (configured, most, learned_most) in [
            (None, 20, Some(20)),
            (None, 100, Some(100)),
            (Some(0), 100, Some(100)),
            (Some(600), 100, Some(100)),
            (Some(20), 20, None),
            (Some(20), 100, None),
            // Fewer were sent, so the refusal is about something else.
            (None, 150, None),
        ] {
            let profile = UpstreamProfile { pictures_max: configured, ..UpstreamProfile::default() };
            let learned = LearnedProfile::new(Dialect::BedrockConverse, profile.clone());
            let picture = || UserPart::Image(Media::new("image/png".into(), "iVBORw0KGgo=".into()));
            let messages = vec![Message::User((0..150).map(|_| picture()).collect())];
            let request = ModelRequest { messages, ..request(&[]) };
            let refused = RefusedRequest { request: &request, profile: &profile, body: &json!({}) };
            assert_eq!(
                learned.learn(&refused, 400, &refusal(most)),
                learned_most.is_some(),
                "{configured:?}"
            );
            assert_eq!(learned.get("m").pictures_max, learned_most.or(configured));
        }
    }

    /// An older model (earendil-works/pi#7938); the last tool is marked, and has done nothing.
    #[test]
    fn refused_cache_control_is_dropped_but_not_the_tool() {
        let refusal = "tools.0.cache_control: extra inputs are not permitted";
        let profile = check(Dialect::Anthropic, &[(&["look"], refusal)], true).get("m");
        assert!(!profile.cache_control && profile.refused_tools.is_empty());
        check(
            Dialect::Anthropic,
            &[(&["look"], "a maximum of 4 blocks with cache_control may be provided")],
            false,
        );
    }
}
