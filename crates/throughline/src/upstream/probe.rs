//! Checks if an upstream can be used, by asking it: its models, and if one of them answers.

use super::{CallTime, ModelHandoff, ModelItem, Upstream, UpstreamClient, providers};
use crate::clock::TurnClock;
use crate::error::Error;
use crate::media::MediaOffloader;
use crate::observe::ObservedCall;
use futures_util::FutureExt;
use serde_json::Value;
use std::cmp::Reverse;
use std::time::Duration;
use throughline_engine::{FailureKind, UpstreamFailure};
use throughline_wire::text_calls::CallFormat;
use throughline_wire::{DecodeLimits, Dialect, Message, ModelRequest, StepEvent, StreamEnd, UserPart};

/// Most bytes of a list of models. The longest ones have about a megabyte.
const LIST_BYTES_MAX: usize = 8 << 20;

/// Reasons why an upstream cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProbeFailure {
    /// The upstream rejects the key.
    Key,
    /// The upstream cannot be reached, or does not answer in time.
    Connection,
    /// The upstream does not have the model.
    Model,
    /// The key is valid, and the account is exhausted.
    Quota,
    /// The upstream accepts no further requests for now.
    Busy,
    /// The upstream does not list its models.
    NotListed,
    /// Any other failure; the upstream's message explains it.
    Refused,
}

/// Error of a probe, with the upstream's message; the key is redacted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct ProbeError {
    /// Kind of failure.
    pub failure: ProbeFailure,
    /// Message of the upstream or the network.
    pub why: String,
}

impl Upstream {
    /// The models of the upstream, newest first where it gives their dates; models that do not chat, judged by their
    /// names, come last.
    ///
    /// # Errors
    /// It does not answer within this time, rejects the key, or does not list its models.
    pub fn models(&self, timeout: Duration) -> impl Future<Output = Result<Vec<String>, ProbeError>> {
        // Outside of the timeout: it loads certificates, and of several upstreams the first would wait for the others.
        let client = self.client();
        let probe = async move {
            let client = client?;
            if let Some(check) =
                providers::find(&self.name).and_then(|row| row.key_check).filter(|_| self.has_key())
            {
                client.get(check, LIST_BYTES_MAX).await.map_err(|failure| probe_error(&failure))?;
            }
            let path = match self.dialect {
                Dialect::Ollama => "/api/tags",
                Dialect::Gemini => "/models?pageSize=1000",
                Dialect::Anthropic => "/v1/models?limit=1000",
                Dialect::Cohere => "/v1/models?page_size=1000&endpoint=chat",
                Dialect::BedrockConverse | Dialect::BedrockAnthropic => {
                    return Err(ProbeError {
                        failure: ProbeFailure::NotListed,
                        why: "the host that runs models for Bedrock does not list them".to_owned(),
                    });
                }
                _ => "/models",
            };
            let body =
                client.get(path, LIST_BYTES_MAX).await.map_err(|failure| match probe_error(&failure) {
                    error if matches!(failure.status, Some(404 | 405 | 501)) => {
                        ProbeError { failure: ProbeFailure::NotListed, ..error }
                    }
                    error => error,
                })?;
            parse_model_list(&body).ok_or_else(|| ProbeError {
                failure: ProbeFailure::NotListed,
                why: "the response is not a list of models".to_owned(),
            })
        };
        with_timeout(timeout, probe)
    }

    /// Checks that a model answers: it is sent a short prompt, and the reply is dropped at its first piece.
    ///
    /// # Errors
    /// The model does not answer within this time, or refuses.
    pub async fn check_model(&self, model: &str, timeout: Duration) -> Result<(), ProbeError> {
        let probe = async {
            let client = self.client()?;
            let text = "Say OK.".to_owned();
            let request = ModelRequest {
                model: model.to_owned(),
                messages: vec![Message::User(vec![UserPart::Text { text }])],
                ..ModelRequest::default()
            };
            let (handoff, clock, offloader) =
                (ModelHandoff::default(), TurnClock::start(), MediaOffloader::default());
            let watch = ObservedCall::unobserved();
            let time = CallTime { clock: &clock, deadline: client.deadline() };
            let call = client.call(request.into(), &CallFormat::Native, time, watch, &offloader, &handoff);
            let mut call = Some(call.boxed());
            while let Some(item) = handoff.next_from(&mut call).await {
                match item {
                    ModelItem::Failed(failure) => return Err(probe_error(&failure)),
                    ModelItem::Events(events) => {
                        for event in events {
                            match event {
                                StepEvent::End(StreamEnd::Error(error)) => {
                                    return Err(classify_message(error.message, None));
                                }
                                StepEvent::End(StreamEnd::Truncated) | StepEvent::Problem(_) => {}
                                StepEvent::Usage(_) | StepEvent::ProviderState(_) => {}
                                _ => return Ok(()),
                            }
                        }
                    }
                }
            }
            Err(classify_message("the response was empty".to_owned(), None))
        };
        with_timeout(timeout, probe).await
    }

    fn client(&self) -> Result<UpstreamClient, ProbeError> {
        UpstreamClient::new(self.clone(), DecodeLimits::default())
            .map_err(|error: Error| ProbeError { failure: ProbeFailure::Connection, why: error.to_string() })
    }
}

async fn with_timeout<T>(
    timeout: Duration,
    probe: impl Future<Output = Result<T, ProbeError>>,
) -> Result<T, ProbeError> {
    tokio::time::timeout(timeout, probe).await.unwrap_or_else(|_| {
        let why = format!("no answer within {} s", timeout.as_secs_f32());
        Err(ProbeError { failure: ProbeFailure::Connection, why })
    })
}

pub(super) fn probe_error(failure: &UpstreamFailure) -> ProbeError {
    let classified = classify_message(failure.message.clone(), failure.status);
    let probe_failure = match failure.kind {
        FailureKind::QuotaExhausted => ProbeFailure::Quota,
        // Phrases that are too vague to end retries are good enough for a person who tries a key.
        _ if classified.failure == ProbeFailure::Quota => ProbeFailure::Quota,
        FailureKind::Unauthorized => ProbeFailure::Key,
        FailureKind::ModelNotFound => ProbeFailure::Model,
        FailureKind::NotAllowed | FailureKind::ContentFiltered => ProbeFailure::Refused,
        FailureKind::RateLimited | FailureKind::Overloaded => ProbeFailure::Busy,
        FailureKind::Connect
        | FailureKind::FirstByteTimeout
        | FailureKind::PromptTimeout
        | FailureKind::IdleTimeout
        | FailureKind::TotalTimeout
        | FailureKind::WrongAddress
        | FailureKind::Broken => ProbeFailure::Connection,
        _ => classified.failure,
    };
    let why = match failure.status {
        Some(status) => format!("HTTP {status}: {}", classified.why),
        None => classified.why,
    };
    ProbeError { failure: probe_failure, why }
}

/// Classifies a refusal by its message.
fn classify_message(why: String, status: Option<u16>) -> ProbeError {
    let text = why.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let failure = if status == Some(402)
        || says(&["insufficient_quota", "exceeded your current quota", "billing", "credit balance"])
        || says(&["insufficient balance", "balance is insufficient", "余额", "欠费", "arrear"])
    {
        ProbeFailure::Quota
    } else if says(&["api key", "api_key", "apikey", "authentication"]) && status.is_none_or(|s| s == 400) {
        // Gemini: 400 "API key not valid".
        ProbeFailure::Key
    } else if status == Some(404)
        || (text.contains("model") && says(&["not exist", "not found", "not a valid", "invalid", "unknown"]))
    {
        ProbeFailure::Model
    } else {
        ProbeFailure::Refused
    };
    ProbeError { failure, why }
}

/// The names in a list: OpenAI's and Anthropic's `data`, Gemini's and Ollama's `models`, or a bare list.
fn parse_model_list(body: &[u8]) -> Option<Vec<String>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let rows = body.get("data").or_else(|| body.get("models")).unwrap_or(&body).as_array()?;
    let mut models: Vec<(i64, String)> =
        rows.iter().filter(|row| is_chat_model(row)).filter_map(model_entry).collect();
    // Stable: without dates the upstream's order stays.
    models.sort_by_key(|(created, name)| (is_non_chat_name(name), Reverse(*created)));
    let mut names: Vec<String> = Vec::with_capacity(models.len());
    for (_, name) in models {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Some(names)
}

fn model_entry(row: &Value) -> Option<(i64, String)> {
    let text = |name: &str| row.get(name).and_then(Value::as_str);
    let name = text("id").or_else(|| text("name")).or_else(|| row.as_str())?;
    let name = name.strip_prefix("models/").unwrap_or(name);
    let created = row.get("created").and_then(Value::as_i64).unwrap_or_default();
    (!name.is_empty()).then(|| (created, name.to_owned()))
}

/// True if the list marks it as a chat model: Gemini, OpenRouter, Mistral, Groq.
fn is_chat_model(row: &Value) -> bool {
    let has = |pointer: &str, wanted: &str| {
        let list = row.pointer(pointer).and_then(Value::as_array);
        list.is_none_or(|list| list.iter().any(|one| one.as_str() == Some(wanted)))
    };
    has("/supportedGenerationMethods", "generateContent")
        && has("/architecture/output_modalities", "text")
        && row.pointer("/capabilities/completion_chat") != Some(&Value::Bool(false))
        && row.get("active") != Some(&Value::Bool(false))
}

/// Judged by the name alone: most lists have nothing else.
fn is_non_chat_name(name: &str) -> bool {
    const WORDS: [&str; 20] = [
        "embed",
        "whisper",
        "tts",
        "dall-e",
        "moderation",
        "transcri",
        "realtime",
        "rerank",
        "image",
        "audio",
        "sora",
        "speech",
        "-asr",
        "davinci",
        "babbage",
        "bge-",
        "ocr",
        "guard",
        "veo-",
        "-instruct-0914",
    ];
    let name = name.to_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(body: &str) -> Vec<String> {
        parse_model_list(body.as_bytes()).unwrap()
    }

    #[test]
    fn model_list_is_read_in_every_shape() {
        let openai = r#"{"object":"list","data":[{"id":"tts-2","created":9},{"id":"old","created":1},{"id":"new","created":7}]}"#;
        assert_eq!(list(openai), ["new", "old", "tts-2"]);
        let anthropic =
            r#"{"data":[{"type":"model","id":"b","created_at":"2026-01-01"},{"id":"a"}],"has_more":false}"#;
        assert_eq!(list(anthropic), ["b", "a"], "its own order stays");
        let gemini = r#"{"models":[{"name":"models/g","supportedGenerationMethods":["generateContent"]},
            {"name":"models/e","supportedGenerationMethods":["embedContent"]}]}"#;
        assert_eq!(list(gemini), ["g"]);
        assert_eq!(list(r#"{"models":[{"name":"qwen3:8b","model":"qwen3:8b"}]}"#), ["qwen3:8b"]);
        let openrouter = r#"{"data":[{"id":"x/draws","architecture":{"output_modalities":["image"]}},
            {"id":"x/talks","architecture":{"output_modalities":["text"]}}]}"#;
        assert_eq!(list(openrouter), ["x/talks"]);
        assert_eq!(list(r#"[{"id":"a"},{"id":"a"},{}]"#), ["a"]);
        for none in ["", "<html>", "{}", r#"{"data":{}}"#, "7"] {
            assert_eq!(parse_model_list(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn probe_failure_is_classified_from_the_response() {
        use ProbeFailure as P;
        let check = |kind, status: u16, message: &str, expected| {
            let failure = UpstreamFailure {
                kind,
                status: Some(status),
                message: message.to_owned(),
                retry_after_ms: None,
            };
            assert_eq!(probe_error(&failure).failure, expected, "{message}");
        };
        check(FailureKind::Unauthorized, 401, "Incorrect API key provided", P::Key);
        check(FailureKind::Status, 400, "API key not valid. Please pass a valid API key.", P::Key);
        check(FailureKind::Status, 402, "Insufficient Balance", P::Quota);
        check(FailureKind::Status, 429, "You exceeded your current quota, please check your plan", P::Quota);
        check(FailureKind::Unauthorized, 403, "Sorry, your account balance is insufficient", P::Quota);
        check(FailureKind::RateLimited, 429, "Too many requests", P::Busy);
        check(FailureKind::Status, 404, "The model `x` does not exist", P::Model);
        check(FailureKind::Status, 400, "Model Not Exist", P::Model);
        check(FailureKind::Status, 400, "temperature is too high", P::Refused);
        check(FailureKind::Status, 503, "overloaded", P::Refused);
        check(FailureKind::Overloaded, 529, "Overloaded", P::Busy);
        check(FailureKind::QuotaExhausted, 429, "请充值", P::Quota);
        check(FailureKind::NotAllowed, 403, "the model is not enabled", P::Refused);
    }
}
