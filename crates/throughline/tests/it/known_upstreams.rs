//! Every dialect and every built-in provider, each with its strict fake: the request that it receives, and
//! the fake's verdict.

use serde_json::{Map, Value, json};
use throughline::providers::{self, KnownProvider};
use throughline_testkit::{FakeDialect, ParsedRequest, ReceivedRequest, UpstreamBehavior};
use throughline_wire::{
    ArgumentNames, Dialect, EncodedRequest, ModelRequest, ToolDefinition, TransferMode, UpstreamProfile,
    encode,
};

/// An upstream with its rules.
pub struct KnownUpstream {
    pub name: String,
    pub dialect: Dialect,
    profile: UpstreamProfile,
    behavior: UpstreamBehavior,
    pub model: String,
}

pub fn all() -> Vec<KnownUpstream> {
    let model = |dialect, name: &str| match dialect {
        // It checks signatures.
        Dialect::Gemini => "gemini-3-pro".to_owned(),
        // Claude's limits are the narrower ones.
        Dialect::BedrockConverse => "anthropic.claude-model".to_owned(),
        _ => format!("{name}-model"),
    };
    let plain = Dialect::ALL.into_iter().map(|dialect| KnownUpstream {
        name: dialect.name().to_owned(),
        dialect,
        profile: UpstreamProfile::default(),
        behavior: UpstreamBehavior::default(),
        model: model(dialect, dialect.name()),
    });
    let known =
        providers::all().into_iter().map(|KnownProvider { name, dialect, profile, .. }| KnownUpstream {
            name: name.to_owned(),
            dialect,
            profile,
            behavior: UpstreamBehavior::of(name),
            model: model(dialect, name),
        });
    // It does not think unless the request enables it, as the driver learns.
    let older = KnownUpstream {
        name: "claude-4.5".to_owned(),
        dialect: Dialect::Anthropic,
        profile: UpstreamProfile { thinks_unasked: false, ..UpstreamProfile::default() },
        behavior: UpstreamBehavior::of("claude-4.5"),
        model: "claude-4.5".to_owned(),
    };
    plain.chain(known).chain([older]).collect()
}

/// The settings that ask for a reply of this schema, in the field that its dialect has for it.
pub fn reply_schema(dialect: Dialect, schema: &Value) -> Option<Map<String, Value>> {
    let settings = match dialect {
        Dialect::Anthropic | Dialect::BedrockAnthropic => {
            json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}})
        }
        Dialect::Gemini => {
            json!({"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": schema}})
        }
        Dialect::Ollama => json!({"format": schema}),
        Dialect::Cohere => json!({"response_format": {"type": "json_object", "json_schema": schema}}),
        Dialect::OpenaiResponses => {
            json!({"text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}})
        }
        Dialect::OpenaiChat => {
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}})
        }
        _ => return None,
    };
    settings.as_object().cloned()
}

/// The settings that ask for thinking, as the users of each upstream write them; there are several ways at some.
pub fn thinking(upstream: &KnownUpstream) -> Vec<Value> {
    let enabled = json!({"thinking": {"type": "enabled"}});
    match (upstream.dialect, upstream.name.as_str()) {
        (Dialect::Anthropic | Dialect::BedrockAnthropic, _) => vec![
            json!({"thinking": {"type": "enabled", "budget_tokens": 2000}}),
            json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
            json!({"thinking": {"type": "disabled"}, "top_k": 5}),
        ],
        (Dialect::Gemini, _) => vec![
            json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "low", "thinkingBudget": 100}}}),
            json!({"generationConfig": {"thinkingConfig": {"includeThoughts": true}, "topK": 5}}),
        ],
        (Dialect::OpenaiResponses, _) => vec![json!({"reasoning": {"effort": "low", "summary": "auto"}})],
        (Dialect::Ollama, _) => vec![json!({"think": true}), json!({"think": "high"})],
        (Dialect::Cohere, _) => vec![enabled],
        (Dialect::BedrockConverse, _) => vec![json!({"additionalModelRequestFields": {"top_k": 5}})],
        (_, "dashscope" | "siliconflow") => vec![json!({"enable_thinking": true, "thinking_budget": 200})],
        (_, "deepseek" | "moonshot" | "zhipu") => vec![enabled, json!({"thinking": {"type": "disabled"}})],
        (_, "openrouter") => vec![json!({"reasoning": {"effort": "low"}})],
        _ => vec![json!({"reasoning_effort": "low"})],
    }
}

impl KnownUpstream {
    /// Names of arguments that are others on its wire.
    pub fn argument_names(&self, tools: &[ToolDefinition]) -> ArgumentNames {
        ArgumentNames::of(self.dialect, tools)
    }

    pub fn encode(&self, request: &ModelRequest, transfer: TransferMode) -> EncodedRequest {
        let request = ModelRequest { model: self.model.clone(), ..request.clone() };
        encode(self.dialect, &request, &self.profile, transfer).expect("encodes")
    }

    /// Reads a request as this upstream does.
    ///
    /// # Errors
    /// Its refusal.
    pub fn read(&self, encoded: &EncodedRequest) -> Result<ParsedRequest, String> {
        let fake: FakeDialect = FakeDialect::ALL
            .into_iter()
            .find(|fake| fake.name() == self.dialect.name())
            .expect("the same names");
        let is_whole = encoded.path.starts_with(fake.base_path());
        let path =
            if is_whole { encoded.path.clone() } else { format!("{}{}", fake.base_path(), encoded.path) };
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let headers =
            encoded.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let received = ReceivedRequest {
            method: "POST".to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
            body: encoded.body.to_string().into_bytes(),
        };
        fake.read(&received, &self.behavior).map_err(|refusal| refusal.to_string())
    }

    /// Two requests of the same key are read alike: they differ in the name of the model, and the upstreams not in their rules.
    pub fn reading_key(&self, encoded: &EncodedRequest) -> String {
        let mut body = encoded.body.clone();
        if let Some(model) = body.get_mut("model") {
            *model = Value::Null;
        }
        format!("{} {:?} {body}", self.dialect, self.behavior)
    }

    /// Encodes and reads a request with a body that is in no dialect's form.
    pub fn encode_and_read(
        &self,
        request: &ModelRequest,
        transfer: TransferMode,
    ) -> Result<ParsedRequest, String> {
        let encoded = self.encode(request, transfer);
        self.read(&encoded).map_err(|refusal| format!("{} refuses: {refusal}\n{}", self.name, encoded.body))
    }
}
