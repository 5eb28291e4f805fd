//! Overload: too many requests with this key, or in total.

use super::{FailureRule, rule};
use throughline_engine::FailureKind::{Overloaded, RateLimited};

/// Rate limits that resemble other errors.
pub(super) const EXCEPTIONS: &[FailureRule] = &[
    // Its code is `insufficient_quota` for tokens of a minute, too.
    rule("DashScope", RateLimited, "https://help.aliyun.com/en/model-studio/error-code")
        .statuses(&[429])
        .words(&["allocated quota exceeded, please increase your quota limit"])
        .example(429, r#"{"error":{"message":"Allocated quota exceeded, please increase your quota limit.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#),
    // 402, because of what the requests under way may cost.
    rule("OpenRouter", RateLimited, "https://openrouter.ai/docs/api/reference/errors-and-debugging")
        .words(&["openrouter_in_flight_budget"])
        .example(402, r#"{"error":{"message":"Too much is in flight.","code":402,"metadata":{"limit_source":"openrouter_in_flight_budget"}}}"#),
];

pub(super) const OVERLOADED: &[FailureRule] = &[
    rule("OpenAI", Overloaded, "https://developers.openai.com/api/docs/guides/error-codes")
        .codes(&["server_is_overloaded"])
        .words(&["the engine is currently overloaded", "that model is currently overloaded with other requests"])
        .example(503, r#"{"error":{"message":"The engine is currently overloaded, please try again later","type":"service_unavailable_error","param":null,"code":"server_is_overloaded"}}"#),
    rule("Azure OpenAI", Overloaded, "https://www.developersdigest.tech/errors/api/azure-openai")
        .codes(&["NoCapacity"])
        .words(&["the system is currently experiencing high demand"])
        .example(429, r#"{"error":{"code":"NoCapacity","message":"The system is currently experiencing high demand and cannot process your request."}}"#),
    rule("Anthropic", Overloaded, "https://platform.claude.com/docs/en/api/errors")
        .codes(&["overloaded_error"])
        .example(529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
    rule("Google Gemini", Overloaded, "https://github.com/google-gemini/gemini-cli/issues/23520")
        .codes(&["UNAVAILABLE", "MODEL_CAPACITY_EXHAUSTED"])
        .words(&["no capacity available for model"])
        .example(503, r#"{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#),
    rule("AWS Bedrock", Overloaded, "https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html")
        .codes(&["ServiceUnavailableException", "serviceUnavailableException", "ModelNotReadyException", "modelNotReadyException"])
        .words(&["bedrock is unable to process your request"])
        .example(503, r#"{"message":"Bedrock is unable to process your request."}"#),
    rule("Mistral", Overloaded, "https://github.com/continuedev/continue/issues/6185")
        .words(&["service tier capacity exceeded for this model"])
        .example(429, r#"{"object":"error","message":"Service tier capacity exceeded for this model.","type":"invalid_request_error","param":null,"code":null}"#),
    rule("Groq", Overloaded, "https://www.developersdigest.tech/errors/api/groq-api/498-flex-tier-capacity-exceeded")
        .statuses(&[498, 503])
        .codes(&["capacity_exceeded"])
        .words(&["is currently over capacity"])
        .example(498, r#"{"error":{"message":"Flex tier capacity exceeded","type":"invalid_request_error","code":"capacity_exceeded"}}"#),
    rule("Moonshot", Overloaded, "https://platform.kimi.com/docs/api/errors")
        .codes(&["engine_overloaded_error"])
        .example(429, r#"{"error":{"message":"The engine is currently overloaded, please try again later","type":"engine_overloaded_error"}}"#),
    rule("Zhipu", Overloaded, "https://docs.bigmodel.cn/cn/api/api-code")
        .codes(&["1312"])
        .words(&["当前访问量过大"])
        .example(429, r#"{"error":{"code":"1312","message":"该模型当前访问量过大，请您稍后再试，或切换其他模型"}}"#),
    rule("SiliconFlow", Overloaded, "https://docs.siliconflow.cn/cn/faqs/error-code")
        .words(&["model service overloaded"])
        .example(503, r#"{"code":50505,"message":"Model service overloaded. Please try again later.","data":null}"#),
    // 2, 4: the service, its cluster; 336100: `ServerHighLoad`, which Baidu's SDK retries.
    rule("Baidu Qianfan", Overloaded, "https://github.com/baidubce/bce-qianfan-sdk/blob/main/python/qianfan/consts.py")
        .codes(&["336100"])
        .words(&["open api request limit reached", "request limit by resouce cluster reached"])
        .example(200, r#"{"error_code":4,"error_msg":"Open api request limit reached"}"#),
    rule("Volcengine Ark", Overloaded, "https://www.volcengine.com/docs/82379/1299023")
        .codes(&["ServerOverloaded"])
        .example(429, r#"{"error":{"code":"ServerOverloaded","message":"The service is currently unable to handle additional requests due to server overload.","param":"","type":"TooManyRequests"}}"#),
    rule("Together", Overloaded, "https://docs.together.ai/docs/error-codes")
        .words(&["the server is overloaded or not ready yet"])
        .example(503, r#"{"error":{"message":"The server is overloaded or not ready yet.","type":"service_unavailable","param":null,"code":null}}"#),
    rule("Cloudflare", Overloaded, "https://developers.cloudflare.com/workers-ai/platform/errors/")
        .words(&["no more data centers to forward the request to"])
        .example(429, r#"{"errors":[{"message":"AiError: No more data centers to forward the request to","code":3040}],"success":false,"result":{},"messages":[]}"#),
    rule("llama.cpp", Overloaded, "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md")
        .statuses(&[503])
        .codes(&["unavailable_error"])
        .example(503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#),
    rule("Ollama", Overloaded, "https://docs.ollama.com/faq")
        .words(&["server busy, please try again*maximum pending requests exceeded"])
        .example(503, r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#),
];

pub(super) const RATE_LIMITED: &[FailureRule] = &[
    rule("OpenAI", RateLimited, "https://help.openai.com/en/articles/5955604-troubleshooting-api-rate-limits-and-429-errors")
        .statuses(&[429])
        .codes(&["rate_limit_exceeded", "slow_down"])
        .example(200, r#"{"error":{"message":"Rate limit reached for gpt-x in organization org-x on requests per min (RPM): Limit 3, Used 3, Requested 1.","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#),
    rule("Azure OpenAI", RateLimited, "https://learn.microsoft.com/en-us/azure/ai-foundry/openai/quotas-limits")
        .words(&["have exceeded call rate limit of your current", "have exceeded token rate limit of your current"])
        .example(429, r#"{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-02-15-preview have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 2 seconds."}}"#),
    rule("Anthropic", RateLimited, "https://platform.claude.com/docs/en/api/errors")
        .codes(&["rate_limit_error"])
        .example(429, r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute."}}"#),
    rule("Google Gemini", RateLimited, "https://ai.google.dev/gemini-api/docs/rate-limits")
        .codes(&["RESOURCE_EXHAUSTED"])
        .example(429, r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateContentInputTokensPerModelPerMinute-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"55s"}]}}"#),
    rule("AWS Bedrock", RateLimited, "https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html")
        .codes(&["ThrottlingException", "throttlingException", "TooManyRequestsException"])
        .words(&["too many requests, please wait before trying again", "too many tokens, please wait before trying again"])
        .example(429, r#"{"message":"Too many tokens, please wait before trying again."}"#),
    rule("Mistral", RateLimited, "https://github.com/raycast/extensions/issues/31107")
        .codes(&["rate_limited"])
        .example(429, r#"{"object":"error","message":"Rate limit exceeded","type":"rate_limited","param":null,"code":"1300","raw_status_code":429}"#),
    rule("Cohere", RateLimited, "https://docs.cohere.com/reference/errors")
        .words(&["past the per minute request limit", "trial token rate limit exceeded", "api calls / minute"])
        .example(429, r#"{"message":"You are past the per minute request limit, please wait and try again later."}"#),
    rule("Moonshot", RateLimited, "https://platform.kimi.com/docs/api/errors")
        .codes(&["rate_limit_reached_error"])
        .example(429, r#"{"error":{"message":"Your account org-x request reached organization max RPM: 3, please try again after 1 seconds","type":"rate_limit_reached_error"}}"#),
    rule("Zhipu", RateLimited, "https://docs.bigmodel.cn/cn/api/api-code")
        .statuses(&[429])
        .codes(&["1302", "1303", "1305", "1313"])
        .words(&["达到速率限制", "并发数过高", "频率过高", "已触发流量限制"])
        .example(429, r#"{"error":{"code":"1302","message":"您的账户已达到速率限制，请您控制请求频率"}}"#),
    // 1039: tokens of a minute; 1041: connections; 2045: growth.
    rule("MiniMax", RateLimited, "https://platform.minimax.io/docs/api-reference/errorcode")
        .codes(&["base_resp 1002", "base_resp 1039", "base_resp 1041", "base_resp 2045"])
        .example(200, r#"{"base_resp":{"status_code":1002,"status_msg":"rate limit"}}"#),
    rule("DashScope", RateLimited, "https://help.aliyun.com/en/model-studio/error-code")
        .codes(&["Throttling", "Throttling.RateQuota", "Throttling.BurstRate", "Throttling.AllocationQuota", "limit_requests", "limit_burst_rate"])
        .example(200, r#"{"code":"Throttling.RateQuota","message":"Requests rate limit exceeded, please try again later.","request_id":"x"}"#),
    rule("Baidu Qianfan", RateLimited, "https://ai.baidu.com/ai-doc/WENXINWORKSHOP/hlzic283e")
        .codes(&["rpm_rate_limit_exceeded", "tpm_rate_limit_exceeded", "336501", "336502", "RATE_LIMIT_TOTAL_QPS"])
        .words(&["rate limit reached for rpm", "rate limit reached for tpm"])
        .example(200, r#"{"code":336501,"msg":"Rate limit reached for RPM"}"#),
    rule("Baidu Qianfan", RateLimited, "https://ai.baidu.com/ai-doc/WENXINWORKSHOP/tlmyncueh")
        .words(&["open api qps request limit reached"])
        .example(200, r#"{"error_code":18,"error_msg":"Open api qps request limit reached"}"#),
    // 11202: of a second; 11203: at a time.
    rule("iFlytek Spark", RateLimited, "https://github.com/iflytek/spark-ai-python/issues/39")
        .codes(&["11202", "11203"])
        .words(&["appidqpsoverflow"])
        .example(200, r#"{"error":{"message":"AppIdQpsOverFlowError","code":"11202"}}"#),
    rule("Volcengine Ark", RateLimited, "https://www.volcengine.com/docs/82379/1299023")
        .codes(&["RateLimitExceeded.EndpointRPMExceeded", "RateLimitExceeded.EndpointTPMExceeded", "AccountRateLimitExceeded", "ModelAccountRpmRateLimitExceeded", "ModelAccountTpmRateLimitExceeded", "ModelAccountIpmRateLimitExceeded", "APIAccountRpmRateLimitExceeded", "RequestBurstTooFast"])
        .example(429, r#"{"error":{"code":"RateLimitExceeded.EndpointTPMExceeded","message":"The Tokens Per Minute (TPM) limit of the associated endpoint for your account has been exceeded.","param":"","type":"TooManyRequests"}}"#),
    rule("Tencent Hunyuan", RateLimited, "https://cloud.tencent.com/document/api/1729/101847")
        .codes(&["RequestLimitExceeded", "RequestLimitExceeded.UinLimitExceeded", "RequestLimitExceeded.IPLimitExceeded", "RequestLimitExceeded.GlobalRegionUinLimitExceeded"])
        .example(200, r#"{"Response":{"Error":{"Code":"RequestLimitExceeded","Message":"请求的次数超过了频率限制"},"RequestId":"x"}}"#),
    rule("Huawei ModelArts", RateLimited, "https://support.huaweicloud.com/intl/en-us/usermanual-maas-modelarts/maas-modelarts-0080.html")
        .codes(&["ModelArts.81101", "ModelArts.81103"])
        .example(429, r#"{"error_code":"ModelArts.81101","error_msg":"Too many requests, exceeded rate limit is 3 times per minute."}"#),
];
