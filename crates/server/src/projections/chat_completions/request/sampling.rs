//! Sampling and the format of the answer, in the fields of each upstream.

use super::field::BodyField;
use crate::projections::chat_completions::InvalidRequestError;
use serde_json::{Map, Value, json};
use throughline_wire::{Dialect, ModelSettings};

/// Fields of the request that are for the model's server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SamplingOptions {
    temperature: Option<f64>,
    max_output_tokens: Option<u32>,
    /// `stop`, always as a list.
    stop: Vec<Value>,
    /// `stop` as it was given: a text or a list.
    stop_as_given: Option<Value>,
    response_format: Option<Value>,
    parallel_tool_calls: Option<bool>,
    logit_bias: Option<Value>,
    /// Hints, by their OpenAI name: a server that does not have one answers as well without it.
    hints: Map<String, Value>,
    /// Fields about the request and its account, of [`ACCOUNT_FIELDS`].
    account: Map<String, Value>,
    /// Names of all the fields here that the request has.
    given: Vec<&'static str>,
}

/// API that a request goes to, as far as its fields depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamApi {
    pub dialect: Dialect,
    pub account_fields: AccountFields,
}

/// Treatment of fields about the request and its account (`service_tier`, `metadata`, …). Other servers with
/// OpenAI's dialect refuse requests with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccountFields {
    /// Sent as they are: it is OpenAI itself.
    Sent,
    /// Not sent, and reported as ignored.
    Omitted,
}

/// Instruction that replaces `response_format: {"type": "json_object"}`.
const JSON_ONLY_PROMPT: &str =
    "Your last message must be one JSON object and nothing else: no text around it, no code fence.";

/// Hints as OpenAI calls them.
pub(super) const HINTS: [&str; 6] =
    ["top_p", "seed", "presence_penalty", "frequency_penalty", "reasoning_effort", "verbosity"];

/// Fields about the request, its account, or its cache.
pub(super) const ACCOUNT_FIELDS: [&str; 7] = [
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "user",
    "prompt_cache_key",
    "prompt_cache_retention",
];

/// The fields that are neither of [`HINTS`] nor of [`ACCOUNT_FIELDS`].
const OTHER_FIELDS: [&str; 7] = [
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "response_format",
    "parallel_tool_calls",
    "logit_bias",
];

impl SamplingOptions {
    pub(super) fn read(body: &BodyField<'_>) -> Result<Self, InvalidRequestError> {
        let stop = match body.get("stop") {
            None => Vec::new(),
            Some(stop) if stop.value().is_string() => vec![stop.value().clone()],
            Some(stop) => {
                let items = stop.items()?;
                items.iter().map(|item| item.text().map(Value::from)).collect::<Result<_, _>>()?
            }
        };
        let given = |name: &&str| body.get(name).is_some();
        let taken = |names: &[&'static str]| -> Map<String, Value> {
            let fields =
                names.iter().filter_map(|name| Some(((*name).to_owned(), body.get(name)?.value().clone())));
            fields.collect()
        };
        let form = body.get("response_format").filter(|form| form.value()["type"] != "text");
        if let Some(form) = &form {
            let kind = form.required("type")?;
            if !["json_object", "json_schema"].contains(&kind.text()?) {
                return Err(kind.unsupported("must be `text`, `json_object` or `json_schema`"));
            }
        }
        Ok(Self {
            temperature: body.number("temperature")?,
            max_output_tokens: match body.count("max_completion_tokens")? {
                Some(tokens) => Some(tokens),
                None => body.count("max_tokens")?,
            },
            stop,
            stop_as_given: body.get("stop").map(|stop| stop.value().clone()),
            response_format: form.map(|form| form.value().clone()),
            parallel_tool_calls: body.flag("parallel_tool_calls")?,
            logit_bias: body.get("logit_bias").map(|bias| bias.value().clone()),
            hints: taken(&HINTS),
            account: taken(&ACCOUNT_FIELDS),
            given: OTHER_FIELDS.into_iter().chain(HINTS).filter(given).collect(),
        })
    }

    /// The options in the form of an upstream of this API.
    ///
    /// # Errors
    /// `stop`, `response_format` or `logit_bias` if the upstream has no equivalent.
    pub(crate) fn settings(&self, api: UpstreamApi) -> Result<ModelSettings, InvalidRequestError> {
        let mut extra = match api.dialect {
            Dialect::OpenaiChat => self.chat(),
            Dialect::OpenaiResponses => self.responses()?,
            Dialect::Anthropic => self.anthropic()?,
            Dialect::Gemini => self.gemini()?,
            Dialect::Ollama => self.ollama()?,
            Dialect::Cohere => self.cohere()?,
            Dialect::BedrockConverse => self.converse()?,
            Dialect::BedrockAnthropic => self.bedrock_anthropic()?,
            _ => Map::new(),
        };
        if api.account_fields == AccountFields::Sent {
            extra.extend(self.account.clone());
        }
        Ok(ModelSettings {
            temperature: self.temperature,
            max_output_tokens: self.max_output_tokens,
            parallel_tool_calls: self.parallel_tool_calls,
            hosted: Vec::new(),
            extra,
        })
    }

    pub(crate) fn wants_json(&self) -> bool {
        self.response_format.is_some()
    }

    /// Instruction for a model whose upstream has no field for JSON mode.
    pub(crate) fn json_instruction(&self, dialect: Dialect) -> Option<&'static str> {
        let any_json = self.response_format.as_ref().is_some_and(|form| form["type"] == "json_object");
        let has_no_field =
            matches!(dialect, Dialect::Anthropic | Dialect::BedrockAnthropic | Dialect::BedrockConverse);
        (any_json && has_no_field).then_some(JSON_ONLY_PROMPT)
    }

    /// Fields without an equivalent at an upstream of this API: the answer ignores and reports them.
    pub(crate) fn ignored_fields(&self, api: UpstreamApi) -> Vec<&str> {
        let known: &[&str] = match api.dialect {
            Dialect::OpenaiChat => &HINTS,
            Dialect::OpenaiResponses => &["top_p", "reasoning_effort", "verbosity"],
            Dialect::Anthropic | Dialect::BedrockAnthropic | Dialect::BedrockConverse => &["top_p"],
            Dialect::Gemini | Dialect::Ollama | Dialect::Cohere => {
                &["top_p", "seed", "presence_penalty", "frequency_penalty"]
            }
            _ => &[],
        };
        let mut ignored: Vec<&str> = self.hints.keys().map(String::as_str).collect();
        ignored.retain(|name| !known.contains(name));
        let decides_itself = matches!(
            api.dialect,
            Dialect::Gemini | Dialect::Ollama | Dialect::Cohere | Dialect::BedrockConverse
        );
        if self.parallel_tool_calls.is_some() && decides_itself {
            ignored.push("parallel_tool_calls");
        }
        if api.account_fields == AccountFields::Omitted {
            ignored.extend(self.account_fields());
        }
        ignored
    }

    /// All fields that the request sets. A continued turn uses those of its first request.
    pub(crate) fn given_fields(&self) -> Vec<&str> {
        self.given.iter().copied().chain(self.account_fields()).collect()
    }

    /// Fields about the account that are not empty: clients send `store: false` and empty metadata by
    /// default.
    fn account_fields(&self) -> impl Iterator<Item = &str> {
        let says_something =
            |value: &Value| *value != false && value.as_object().is_none_or(|map| !map.is_empty());
        self.account.iter().filter(move |(_, value)| says_something(value)).map(|(name, _)| name.as_str())
    }

    fn chat(&self) -> Map<String, Value> {
        let mut extra = self.hints.clone();
        extra.extend(self.stop_as_given.clone().map(|stop| ("stop".to_owned(), stop)));
        extra.extend(self.response_format.clone().map(|form| ("response_format".to_owned(), form)));
        extra.extend(self.logit_bias.clone().map(|bias| ("logit_bias".to_owned(), bias)));
        extra
    }

    fn responses(&self) -> Result<Map<String, Value>, InvalidRequestError> {
        self.reject_params(&[SamplingParam::Stop, SamplingParam::LogitBias], "OpenAI's Responses API")?;
        let mut extra = self.renamed_hints(&[("top_p", "top_p")]);
        if let Some(effort) = self.hints.get("reasoning_effort") {
            extra.insert("reasoning".into(), json!({"effort": effort}));
        }
        let mut text = self.renamed_hints(&[("verbosity", "verbosity")]);
        if let Some(form) = &self.response_format {
            // The same object with the members of `json_schema` one level up.
            let mut format = json!({"type": form["type"]});
            for (key, value) in form["json_schema"].as_object().into_iter().flatten() {
                format[key] = value.clone();
            }
            text.insert("format".into(), format);
        }
        if !text.is_empty() {
            extra.insert("text".into(), Value::Object(text));
        }
        Ok(extra)
    }

    fn anthropic(&self) -> Result<Map<String, Value>, InvalidRequestError> {
        self.reject_params(&[SamplingParam::LogitBias], "the Anthropic API")?;
        let mut extra = self.renamed_hints(&[("top_p", "top_p")]);
        if let Some(schema) = self.response_format.as_ref().and_then(|form| form["json_schema"].get("schema"))
        {
            let format = json!({"type": "json_schema", "schema": schema});
            extra.insert("output_config".into(), json!({"format": format}));
        }
        if !self.stop.is_empty() {
            extra.insert("stop_sequences".into(), json!(self.stop));
        }
        Ok(extra)
    }

    fn gemini(&self) -> Result<Map<String, Value>, InvalidRequestError> {
        self.reject_params(&[SamplingParam::LogitBias], "the Gemini API")?;
        let mut config = self.renamed_hints(&[
            ("top_p", "topP"),
            ("seed", "seed"),
            ("presence_penalty", "presencePenalty"),
            ("frequency_penalty", "frequencyPenalty"),
        ]);
        if !self.stop.is_empty() {
            config.insert("stopSequences".into(), json!(self.stop));
        }
        if let Some(form) = &self.response_format {
            config.insert("responseMimeType".into(), json!("application/json"));
            if let Some(schema) = form["json_schema"].get("schema") {
                config.insert("responseJsonSchema".into(), schema.clone());
            }
        }
        Ok(nested("generationConfig", config))
    }

    fn ollama(&self) -> Result<Map<String, Value>, InvalidRequestError> {
        self.reject_params(&[SamplingParam::LogitBias], "Ollama's own API")?;
        let names = ["top_p", "seed", "presence_penalty", "frequency_penalty"].map(|name| (name, name));
        let mut options = self.renamed_hints(&names);
        if !self.stop.is_empty() {
            options.insert("stop".into(), json!(self.stop));
        }
        let mut extra = nested("options", options);
        if let Some(form) = &self.response_format {
            let format = form["json_schema"].get("schema").cloned().unwrap_or_else(|| json!("json"));
            extra.insert("format".into(), format);
        }
        Ok(extra)
    }

    fn cohere(&self) -> Result<Map<String, Value>, InvalidRequestError> {
        self.reject_params(&[SamplingParam::LogitBias], "the Cohere API")?;
        let mut extra = self.renamed_hints(&[
            ("top_p", "p"),
            ("seed", "seed"),
            ("presence_penalty", "presence_penalty"),
            ("frequency_penalty", "frequency_penalty"),
        ]);
        if !self.stop.is_empty() {
            extra.insert("stop_sequences".into(), json!(self.stop));
        }
        if let Some(form) = &self.response_format {
            let mut format = json!({"type": "json_object"});
            if let Some(schema) = form["json_schema"].get("schema") {
                format["json_schema"] = schema.clone();
            }
            extra.insert("response_format".into(), format);
        }
        Ok(extra)
    }

    fn converse(&self) -> Result<Map<String, Value>, InvalidRequestError> {
        self.reject_params(
            &[SamplingParam::LogitBias, SamplingParam::ReplySchema],
            "Bedrock's Converse API",
        )?;
        let mut config = self.renamed_hints(&[("top_p", "topP")]);
        if !self.stop.is_empty() {
            config.insert("stopSequences".into(), json!(self.stop));
        }
        Ok(nested("inferenceConfig", config))
    }

    fn bedrock_anthropic(&self) -> Result<Map<String, Value>, InvalidRequestError> {
        self.reject_params(&[SamplingParam::ReplySchema], "Bedrock's InvokeModel API")?;
        self.anthropic()
    }

    /// Supported hints, under the upstream's names.
    fn renamed_hints(&self, names: &[(&str, &str)]) -> Map<String, Value> {
        let hint =
            |(ours, theirs): &(&str, &str)| Some(((*theirs).to_owned(), self.hints.get(*ours)?.clone()));
        names.iter().filter_map(hint).collect()
    }

    fn reject_params(&self, params: &[SamplingParam], api_name: &str) -> Result<(), InvalidRequestError> {
        for param in params {
            let (name, is_there) = match param {
                SamplingParam::Stop => ("stop", !self.stop.is_empty()),
                SamplingParam::LogitBias => ("logit_bias", self.logit_bias.is_some()),
                SamplingParam::ReplySchema => (
                    "response_format",
                    self.response_format.as_ref().is_some_and(|form| form["type"] == "json_schema"),
                ),
            };
            if is_there {
                let message = format!(
                    "`{name}` cannot be forwarded: {api_name}, the API of this model, does not support it"
                );
                return Err(
                    InvalidRequestError::unsupported(name, message).remedy(format!("leave `{name}` out"))
                );
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum SamplingParam {
    Stop,
    LogitBias,
    /// A schema; JSON without one becomes an instruction.
    ReplySchema,
}

fn nested(name: &str, fields: Map<String, Value>) -> Map<String, Value> {
    if fields.is_empty() { Map::new() } else { Map::from_iter([(name.to_owned(), Value::Object(fields))]) }
}
