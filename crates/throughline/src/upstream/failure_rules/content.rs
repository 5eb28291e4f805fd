//! Requests refused by a content filter.

use super::{FailureRule, rule};
use throughline_engine::FailureKind::ContentFiltered;

pub(super) const FILTERED: &[FailureRule] = &[
    rule("OpenAI", ContentFiltered, "https://developers.openai.com/api/docs/guides/error-codes")
        .codes(&["content_policy_violation"])
        .words(&["your prompt was flagged as potentially violating"])
        .example(400, r#"{"error":{"message":"Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a different prompt.","type":"invalid_request_error","param":null,"code":"invalid_prompt"}}"#),
    rule("Azure OpenAI", ContentFiltered, "https://learn.microsoft.com/en-us/azure/ai-foundry/openai/concepts/content-filter")
        .codes(&["content_filter", "ResponsibleAIPolicyViolation"])
        .words(&["triggering azure openai's content management policy"])
        .example(400, r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#),
    rule("Anthropic", ContentFiltered, "https://github.com/anthropics/claude-code/issues/89163")
        .words(&["output blocked by content filtering policy"])
        .example(400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}"#),
    rule("xAI", ContentFiltered, "https://github.com/UKGovernmentBEIS/inspect_ai/pull/2267")
        .words(&["content violates usage guidelines"])
        .example(403, r#"{"code":"The caller does not have permission to execute the specified operation","error":"Content violates usage guidelines. Team: x, API key ID: x, Model: grok-4-0709, Failed check: SAFETY_CHECK_TYPE_BIO"}"#),
    rule("DeepSeek", ContentFiltered, "https://github.com/deepseek-ai/awesome-deepseek-integration/issues/13")
        .words(&["content exists risk"])
        .example(400, r#"{"error":{"message":"Content Exists Risk","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#),
    rule("Moonshot", ContentFiltered, "https://platform.kimi.com/docs/api/errors")
        .codes(&["content_filter"])
        .words(&["rejected because it was considered high risk"])
        .example(400, r#"{"error":{"type":"content_filter","message":"The request was rejected because it was considered high risk"}}"#),
    rule("Zhipu", ContentFiltered, "https://docs.bigmodel.cn/cn/api/api-code")
        .codes(&["1301"])
        .words(&["系统检测到输入或生成内容可能包含不安全或敏感内容"])
        .example(400, r#"{"contentFilter":[{"level":0,"role":"user"}],"error":{"code":"1301","message":"系统检测到输入或生成内容可能包含不安全或敏感内容，请您避免输入易产生敏感内容的提示语，感谢您的配合。"}}"#),
    rule("MiniMax", ContentFiltered, "https://platform.minimax.io/docs/api-reference/errorcode")
        .codes(&["base_resp 1026", "base_resp 1027"])
        .words(&["input new_sensitive", "output new_sensitive"])
        .example(200, r#"{"base_resp":{"status_code":1026,"status_msg":"input new_sensitive"}}"#),
    rule("DashScope", ContentFiltered, "https://help.aliyun.com/en/model-studio/error-code")
        .codes(&["DataInspectionFailed", "data_inspection_failed"])
        .example(400, r#"{"error":{"code":"data_inspection_failed","param":null,"message":"<400> InternalError.Algo.DataInspectionFailed: Input data may contain inappropriate content.","type":"data_inspection_failed"}}"#),
    rule("Baidu Qianfan", ContentFiltered, "https://cloud.baidu.com/doc/qianfan-api/s/Om9b4yj3w")
        .codes(&["unsafe_request"])
        .example(400, r#"{"error":{"code":"image_url_unsafe","message":"the content of image_url.url is unsafe","type":"unsafe_request"}}"#),
    // 10013: the input; 10014: the output.
    rule("iFlytek Spark", ContentFiltered, "https://xfyun.cn/doc/spark/%E6%8E%A5%E5%8F%A3%E8%AF%B4%E6%98%8E.html")
        .statuses(&[400, 401, 403])
        .codes(&["10013", "10014"])
        .example(200, r#"{"code":10013,"message":"输入内容审核不通过","sid":"x"}"#),
    rule("Volcengine Ark", ContentFiltered, "https://www.volcengine.com/docs/82379/1299023")
        .codes(&["SensitiveContentDetected", "SensitiveContentDetected.SevereViolation", "SensitiveContentDetected.Violence", "InputTextSensitiveContentDetected", "InputImageSensitiveContentDetected", "OutputTextSensitiveContentDetected", "InputTextRiskDetection", "InputImageRiskDetection", "OutputTextRiskDetection"])
        .example(400, r#"{"error":{"code":"InputTextRiskDetection","message":"The request could not be processed because the input text includes sensitive content that violates ContentSecurityDetection.","type":"BadRequest"}}"#),
    rule("StepFun", ContentFiltered, "https://platform.stepfun.com/docs/zh/guide/exception")
        .statuses(&[451])
        .example(451, r#"{"error":{"message":"The content you provided or machine outputted is blocked.","type":"censorship_blocked"}}"#),
    rule("Huawei ModelArts", ContentFiltered, "https://support.huaweicloud.com/intl/en-us/usermanual-maas-modelarts/maas-modelarts-0080.html")
        .codes(&["ModelArts.81011"])
        .example(403, r#"{"error_code":"ModelArts.81011","error_msg":"May contain sensitive information, please try again."}"#),
    rule("OpenRouter", ContentFiltered, "https://openrouter.ai/docs/api/reference/errors-and-debugging")
        .statuses(&[403])
        .words(&["your input was flagged", "\"flagged_input\""])
        .example(403, r#"{"error":{"code":403,"message":"openai/gpt-x requires moderation on OpenAI. Your input was flagged for \"violence\". No credits were charged.","metadata":{"reasons":["violence"],"flagged_input":"…","provider_name":"OpenAI"}}}"#),
    rule("new-api", ContentFiltered, "https://github.com/QuantumNous/new-api/blob/main/types/error.go")
        .codes(&["sensitive_words_detected"])
        .example(400, r#"{"error":{"message":"user sensitive words detected","type":"new_api_error","param":"","code":"sensitive_words_detected"}}"#),
    rule("LiteLLM", ContentFiltered, "https://docs.litellm.ai/docs/exception_mapping")
        .words(&["contentpolicyviolationerror"])
        .example(400, r#"{"error":{"message":"litellm.BadRequestError: litellm.ContentPolicyViolationError: refused","type":null,"param":null,"code":"400"}}"#),
];
