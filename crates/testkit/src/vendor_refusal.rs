//! Recorded bodies in which servers refuse tools, so that recognizing them can be tested.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A server with its own words for "no tools".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UpstreamVendor {
    /// Ollama with its OpenAI-compatible API.
    Ollama,
    /// Ollama's own `/api/chat`.
    OllamaNative,
    /// vLLM without parser flags.
    Vllm,
    /// vLLM of 2024: no `error` key at all.
    VllmOld,
    /// llama.cpp without `--jinja`.
    LlamaCpp,
    /// OpenRouter without a capable endpoint.
    Openrouter,
    /// SiliconFlow.
    Siliconflow,
    /// DashScope.
    Dashscope,
    /// Mistral and other strict servers that do not know the field.
    Mistral,
}

impl UpstreamVendor {
    /// All vendors.
    pub const ALL: [Self; 9] = [
        Self::Ollama,
        Self::OllamaNative,
        Self::Vllm,
        Self::VllmOld,
        Self::LlamaCpp,
        Self::Openrouter,
        Self::Siliconflow,
        Self::Dashscope,
        Self::Mistral,
    ];

    /// Status and body of the refusal.
    pub fn refusal(self, model: &str) -> (u16, Value) {
        const VLLM: &str =
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set";
        match self {
            Self::Ollama => (
                400,
                json!({"error": {"message": format!("registry.ollama.ai/library/{model} does not support tools"),
                    "type": "api_error", "param": null, "code": null}}),
            ),
            Self::OllamaNative => {
                (400, json!({"error": format!("registry.ollama.ai/library/{model} does not support tools")}))
            }
            Self::Vllm => (
                400,
                json!({"error": {"message": VLLM, "type": "BadRequestError", "param": null, "code": 400}}),
            ),
            Self::VllmOld => (
                400,
                json!({"object": "error", "message": VLLM, "type": "BadRequestError", "param": null, "code": 400}),
            ),
            Self::LlamaCpp => (
                500,
                json!({"error": {"code": 500, "message": "tools param requires --jinja flag", "type": "server_error"}}),
            ),
            Self::Openrouter => (
                404,
                json!({"error": {"message": "No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing", "code": 404}}),
            ),
            Self::Siliconflow => (
                400,
                json!({"code": 20037, "message": "Function call is not supported for this model.", "data": null}),
            ),
            Self::Dashscope => (
                400,
                json!({"code": "InvalidParameter",
                    "message": "<400> InternalError.Algo.InvalidParameter: The tool call is not supported."}),
            ),
            Self::Mistral => (
                422,
                json!({"detail": [{"type": "extra_forbidden", "loc": ["body", "tools"],
                    "msg": "Extra inputs are not permitted"}]}),
            ),
        }
    }
}
