//! The history is too long.

use super::{FailureRule, rule};
use throughline_engine::FailureKind::ContextTooLong;

pub(super) const TOO_LONG: &[FailureRule] = &[
    rule("OpenAI", ContextTooLong, "https://developers.openai.com/api/docs/guides/error-codes")
        .codes(&["context_length_exceeded", "string_above_max_length"])
        .words(&["maximum context length", "exceeds the context window of this model"])
        .example(400, r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#),
    // Waiting helps nothing: the request alone is more than a minute's tokens.
    rule("OpenAI", ContextTooLong, "https://kerlig.com/help/open-ai/troubleshooting")
        .statuses(&[413, 429])
        .words(&["request too large for*limit*requested"])
        .example(429, r#"{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 36000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#),
    rule("Anthropic", ContextTooLong, "https://platform.claude.com/docs/en/api/errors")
        .codes(&["request_too_large"])
        .words(&["prompt is too long"])
        .example(400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#),
    rule("Anthropic", ContextTooLong, "https://github.com/continuedev/continue/issues/6080")
        .words(&["input length and `max_tokens` exceed context limit"])
        .example(400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again"}}"#),
    rule("Google Gemini", ContextTooLong, "https://github.com/google-gemini/gemini-cli/issues/6678")
        .words(&["exceeds the maximum number of tokens"])
        .example(400, r#"{"error":{"code":400,"message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#),
    rule("Google Vertex AI", ContextTooLong, "https://github.com/NousResearch/hermes-agent/pull/99701")
        .words(&["input token count is*but model only supports up to"])
        .example(400, r#"{"error":{"code":400,"message":"Unable to submit request because the input token count is 32825 but model only supports up to 32768. Reduce the input token count and try again.","status":"INVALID_ARGUMENT"}}"#),
    rule("AWS Bedrock", ContextTooLong, "https://github.com/aws-samples/bedrock-chat/issues/95")
        .words(&["input is too long for requested model"])
        .example(400, r#"{"message":"Input is too long for requested model."}"#),
    rule("Mistral", ContextTooLong, "https://github.com/earendil-works/pi/blob/main/packages/ai/src/utils/overflow.ts")
        .words(&["too large for model with*maximum context length"])
        .example(400, r#"{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}"#),
    rule("Cohere", ContextTooLong, "https://docs.cohere.com/reference/errors")
        .words(&["too many tokens: total number of tokens", "too many tokens: the total number of tokens", "too many tokens: size limit exceeded"])
        .example(400, r#"{"message":"too many tokens: size limit exceeded by 19296 tokens. Try using shorter or fewer inputs. The limit for this model is 132000 tokens."}"#),
    rule("xAI", ContextTooLong, "https://github.com/MoonshotAI/kimi-code/pull/207")
        .words(&["maximum prompt length is"])
        .example(400, r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#),
    rule("Groq", ContextTooLong, "https://console.groq.com/docs/errors")
        .words(&["please reduce the length of the messages or completion"])
        .example(400, r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#),
    rule("Moonshot", ContextTooLong, "https://platform.kimi.com/docs/api/errors")
        .words(&["exceeded model token limit", "input token length too long"])
        .example(400, r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)","type":"invalid_request_error"}}"#),
    rule("Zhipu", ContextTooLong, "https://docs.bigmodel.cn/cn/api/api-code")
        .codes(&["1261"])
        .words(&["prompt exceeds max length", "prompt 超长", "prompt超长"])
        .example(400, r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#),
    rule("MiniMax", ContextTooLong, "https://github.com/earendil-works/pi/blob/main/packages/ai/src/utils/overflow.ts")
        .words(&["context window exceeds limit"])
        .example(400, r#"{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)","http_code":"400"}}"#),
    rule("DashScope", ContextTooLong, "https://help.aliyun.com/en/model-studio/error-code")
        .words(&["range of input length should be"])
        .example(400, r#"{"error":{"code":"invalid_parameter_error","param":null,"message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 202752]","type":"invalid_request_error"}}"#),
    rule("SiliconFlow", ContextTooLong, "https://github.com/langgenius/dify/issues/19394")
        .words(&["length of prompt_tokens*must be less than max_seq_len", "max_total_tokens*must be less than or equal to max_seq_len"])
        .example(400, r#"{"code":20015,"message":"length of prompt_tokens (57535) must be less than max_seq_len (32768).","data":null}"#),
    rule("Baidu Qianfan", ContextTooLong, "https://cloud.baidu.com/doc/qianfan-api/s/rmwbl43x7")
        .codes(&["characters_too_long", "tokens_too_long"])
        .words(&["prompt tokens too long", "the max input characters is"])
        .example(400, r#"{"error":{"code":"tokens_too_long","message":"Prompt tokens too long","type":"invalid_request_error"},"id":"as-x"}"#),
    rule("Volcengine Ark", ContextTooLong, "https://www.volcengine.com/docs/82379/1299023")
        .words(&["exceed max message tokens", "input length*exceeds the maximum length"])
        .example(400, r#"{"error":{"code":"InvalidParameter","message":"Total tokens of image and text exceed max message tokens. Request id: x","param":"messages","type":"BadRequest"}}"#),
    rule("OpenRouter", ContextTooLong, "https://github.com/earendil-works/pi/issues/4943")
        .words(&["exceeds the maximum allowed input length"])
        .example(400, r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"Input length 131393 exceeds the maximum allowed input length of 131040 tokens.\"}}","provider_name":"Poolside"}}}"#),
    rule("Together", ContextTooLong, "https://docs.together.ai/docs/error-codes")
        .words(&["is longer than the model's context length"])
        .example(400, r#"{"error":{"message":"The input (61709 tokens) is longer than the model's context length (40960 tokens).","type":"invalid_request_error","param":null,"code":null}}"#),
    rule("Hugging Face", ContextTooLong, "https://github.com/barun-saha/slide-deck-ai/issues/44")
        .words(&["`inputs` tokens + `max_new_tokens` must be <="])
        .example(422, r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32768. Given: 33000 `inputs` tokens and 500 `max_new_tokens`","error_type":"validation"}"#),
    rule("GitHub Copilot", ContextTooLong, "https://github.com/earendil-works/pi/blob/main/packages/ai/src/utils/overflow.ts")
        .codes(&["model_max_prompt_tokens_exceeded"])
        .words(&["prompt token count of*exceeds the limit of"])
        .example(400, r#"{"error":{"message":"prompt token count of 140000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}"#),
    rule("Scaleway", ContextTooLong, "https://www.scaleway.com/en/docs/generative-apis/troubleshooting/fixing-common-issues/")
        .words(&["exceeded maximum context window for this model"])
        .example(400, r#"{"error":"You exceeded maximum context window for this model."}"#),
    rule("Ollama", ContextTooLong, "https://github.com/earendil-works/pi/pull/4574")
        .words(&["prompt too long; exceeded"])
        .example(400, r#"{"error":"prompt too long; exceeded max context length by 4 tokens"}"#),
    rule("LM Studio", ContextTooLong, "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/546")
        .words(&["trying to keep the first*tokens when context the overflows", "greater than the context length", "input length*exceeds context length"])
        .example(400, r#"{"error":"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}"#),
    rule("llama.cpp", ContextTooLong, "https://github.com/ggml-org/llama.cpp/pull/15780")
        .codes(&["exceed_context_size_error", "context_exceeded"])
        .words(&["exceeds the available context size", "tokens* exceed context window of"])
        .example(200, r#"{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}"#),
    rule("iFlytek Spark", ContextTooLong, "https://xfyun.cn/doc/spark/%E6%8E%A5%E5%8F%A3%E8%AF%B4%E6%98%8E.html")
        .statuses(&[400, 401, 403])
        .codes(&["10907"])
        .example(200, r#"{"code":10907,"message":"token数量超过上限","sid":"x"}"#),
    rule("vLLM", ContextTooLong, "https://github.com/vllm-project/vllm/pull/36197")
        .words(&["model's context length is only", "is longer than the maximum model length"])
        .example(400, r#"{"object":"error","message":"You passed 40000 input tokens and requested 1000 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 31768 tokens.","type":"BadRequestError","param":null,"code":400}"#),
    rule("SGLang", ContextTooLong, "https://github.com/QwenLM/Qwen3/issues/1321")
        .words(&["is longer than the model's context length", "exceeds the model's maximum context length"])
        .example(400, r#"{"object":"error","message":"Requested token count exceeds the model's maximum context length of 131072 tokens.","type":"BadRequestError","param":null,"code":400}"#),
    rule("Atlas", ContextTooLong, "https://github.com/0xBakeer/inference-atlas/pull/186")
        .words(&["tokens exceeds max_seq_len"])
        .example(
            400,
            r#"{"error":{"message":"Prompt too long: 5152 tokens exceeds max_seq_len 2048 (leave room for output tokens)"}}"#,
        ),
    rule("LiteLLM", ContextTooLong, "https://docs.litellm.ai/docs/exception_mapping")
        .words(&["contextwindowexceedederror"])
        .example(400, r#"{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: too much","type":null,"param":null,"code":"400"}}"#),
];
