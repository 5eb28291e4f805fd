//! Exhausted accounts: no credit, no quota until tomorrow, a plan that has ended.

use super::{FailureRule, rule};
use throughline_engine::FailureKind::QuotaExhausted;

pub(super) const QUOTA_EXHAUSTED: &[FailureRule] = &[
    rule("OpenAI", QuotaExhausted, "https://help.openai.com/en/articles/6614457-troubleshooting-api-usage-and-spend-limits")
        .codes(&["insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded", "project_spend_limit_exceeded", "organization_usage_limit_exceeded", "billing_hard_limit_reached", "billing_not_active"])
        .example(429, r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"credit_balance_exhausted"}}"#),
    rule("Anthropic", QuotaExhausted, "https://platform.claude.com/docs/en/api/errors")
        .codes(&["billing_error", "enforced_spend_limit_reached"])
        .example(402, r#"{"type":"error","error":{"type":"billing_error","message":"There is an issue with your payment information."}}"#),
    rule("Anthropic", QuotaExhausted, "https://github.com/continuedev/continue/issues/5499")
        .words(&["your credit balance is too low", "reached your specified*api usage limits"])
        .example(400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}"#),
    // The quota of a day, or no quota for this model. An exhausted quota of a minute renews itself, and is a
    // rate limit.
    rule("Google Gemini", QuotaExhausted, "https://github.com/google-gemini/gemini-cli/issues/8437")
        .statuses(&[429])
        .words(&["requestsperdayperproject", "limit: 0, model:"])
        .example(429, r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}"#),
    rule("AWS Bedrock", QuotaExhausted, "https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html")
        .words(&["too many tokens per day"])
        .example(429, r#"{"message":"Too many tokens per day, please wait before trying again."}"#),
    rule("Cohere", QuotaExhausted, "https://docs.cohere.com/docs/rate-limits")
        .words(&["limited to 1000 api calls / month"])
        .example(429, r#"{"message":"You are using a Trial key, which is limited to 1000 API calls / month. You can continue to use the Trial key for free or upgrade to a Production key."}"#),
    rule("xAI", QuotaExhausted, "https://github.com/Anantys-oss/koan/issues/2412")
        .words(&["used all available credits or reached its monthly spending limit", "you have run out of credits"])
        .example(403, r#"{"code":"permission-denied","error":"Your team x has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit."}"#),
    rule("Groq", QuotaExhausted, "https://console.groq.com/docs/spend-limits")
        .codes(&["blocked_api_access"])
        .example(400, r#"{"error":{"message":"API access is blocked: the spend limit is reached.","type":"invalid_request_error","code":"blocked_api_access"}}"#),
    rule("DeepSeek", QuotaExhausted, "https://api-docs.deepseek.com/quick_start/error_codes")
        .statuses(&[402])
        .words(&["insufficient balance"])
        .example(402, r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#),
    rule("Moonshot", QuotaExhausted, "https://github.com/MoonshotAI/Kimi-K2/issues/5")
        .codes(&["exceeded_current_quota_error"])
        .words(&["suspended due to insufficient balance"])
        .example(429, r#"{"error":{"message":"Your account org-x <ak-x> is suspended due to insufficient balance, please recharge your account or check your plan and billing details","type":"exceeded_current_quota_error"}}"#),
    rule("Kimi Code", QuotaExhausted, "https://www.kimi.com/code/docs/en/kimi-code/error-reference.html")
        .words(&["reached your usage limit for this billing cycle", "reached your usage limit for this period"])
        .example(403, r#"{"error":{"message":"You've reached your usage limit for this billing cycle. Your quota will be refreshed in the next cycle.","type":"access_terminated_error"}}"#),
    // 1304: today's calls; 1308 and 1310: a window of hours or weeks; 1309: the plan has ended.
    rule("Zhipu", QuotaExhausted, "https://docs.bigmodel.cn/cn/api/api-code")
        .codes(&["1113", "1304", "1308", "1309", "1310"])
        .words(&["余额不足", "账户已欠费", "账号已欠费", "无可用资源包", "no resource package"])
        .example(429, r#"{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}"#),
    rule("MiniMax", QuotaExhausted, "https://platform.minimax.io/docs/api-reference/errorcode")
        .codes(&["base_resp 1008", "base_resp 2056"])
        .words(&["insufficient balance", "usage limit reached for token plan"])
        .example(200, r#"{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#),
    rule("DashScope", QuotaExhausted, "https://help.aliyun.com/en/model-studio/error-code")
        .codes(&["Arrearage", "AllocationQuota.FreeTierOnly"])
        .words(&["please make sure your account is in good standing", "free quota has been exhausted"])
        .example(400, r#"{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing.","request_id":"x"}"#),
    rule("SiliconFlow", QuotaExhausted, "https://docs.siliconflow.cn/cn/faqs/error-code")
        .codes(&["30001"])
        .words(&["account balance is insufficient"])
        .example(403, r#"{"code":30001,"message":"Sorry, your account balance is insufficient","data":null}"#),
    rule("Baidu Qianfan", QuotaExhausted, "https://ai.baidu.com/ai-doc/AppBuilder/4m8sgh88y")
        .codes(&["BILLING_INSUFFICIENT_BALANCE", "QUOTA_USER_DAILY_REQUEST", "QUOTA_USER_DAILY_FREE"])
        .words(&["account has insufficient balance"])
        .example(429, r#"{"requestId":"x","code":"BILLING_INSUFFICIENT_BALANCE","message":"Your account has insufficient balance"}"#),
    // 17: today's requests, or nothing is left to pay with; 19: all free requests.
    rule("Baidu Qianfan", QuotaExhausted, "https://ai.baidu.com/ai-doc/WENXINWORKSHOP/tlmyncueh")
        .words(&["open api daily request limit reached", "open api total request limit reached"])
        .example(200, r#"{"error_code":17,"error_msg":"Open api daily request limit reached"}"#),
    rule("iFlytek Spark", QuotaExhausted, "https://xfyun.cn/doc/spark/%E6%8E%A5%E5%8F%A3%E8%AF%B4%E6%98%8E.html")
        .statuses(&[400, 401, 403])
        .codes(&["11201"])
        .example(200, r#"{"code":11201,"message":"日流控超限","sid":"x"}"#),
    rule("Volcengine Ark", QuotaExhausted, "https://www.volcengine.com/docs/82379/1299023")
        .codes(&["AccountOverdueError", "SetLimitExceeded"])
        .words(&["your account has an overdue balance"])
        .example(403, r#"{"error":{"code":"AccountOverdueError","message":"The request failed because your account has an overdue balance. Request ID: x","param":"","type":"Forbidden"}}"#),
    rule("StepFun", QuotaExhausted, "https://platform.stepfun.com/docs/zh/guide/exception")
        .statuses(&[402])
        .example(402, r#"{"error":{"message":"quota exceeded","type":"quota_exceeded"}}"#),
    rule("Tencent Hunyuan", QuotaExhausted, "https://cloud.tencent.com/document/api/1729/101847")
        .codes(&["FailedOperation.FreeResourcePackExhausted", "FailedOperation.ResourcePackExhausted", "FailedOperation.ServiceStop"])
        .example(200, r#"{"Response":{"Error":{"Code":"FailedOperation.ResourcePackExhausted","Message":"资源包余量已用尽"},"RequestId":"x"}}"#),
    rule("Huawei ModelArts", QuotaExhausted, "https://support.huaweicloud.com/intl/en-us/usermanual-maas-modelarts/maas-modelarts-0080.html")
        .codes(&["ModelArts.81005"])
        .example(401, r#"{"error_code":"ModelArts.81005","error_msg":"The free quota has been used up."}"#),
    rule("OpenRouter", QuotaExhausted, "https://openrouter.ai/docs/api/reference/errors-and-debugging")
        .words(&["this request requires more credits", "insufficient credits", "free-models-per-day"])
        .example(200, r#"{"error":{"message":"Insufficient credits. Add more using https://openrouter.ai/settings/credits","code":402}}"#),
    rule("Together", QuotaExhausted, "https://docs.together.ai/docs/error-codes")
        .words(&["credit limit exceeded"])
        .example(402, r#"{"error":{"message":"Credit limit exceeded, please navigate to the billing page.","type":"credit_limit","param":null,"code":null}}"#),
    rule("Fireworks", QuotaExhausted, "https://docs.fireworks.ai/guides/inference-error-codes")
        .statuses(&[402, 412])
        .words(&["reaching the monthly spending limit", "failure to pay past invoices"])
        .example(412, r#"{"error":{"object":"error","type":"invalid_request_error","message":"Account x is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices."}}"#),
    rule("Hugging Face", QuotaExhausted, "https://huggingface.co/docs/inference-providers/pricing")
        .words(&["exceeded your monthly included credits"])
        .example(402, r#"{"error":"You have exceeded your monthly included credits for Inference Providers. Subscribe to PRO to get 20x more monthly included credits."}"#),
    rule("Cloudflare", QuotaExhausted, "https://developers.cloudflare.com/workers-ai/platform/errors/")
        .words(&["used up your daily free allocation"])
        .example(429, r#"{"errors":[{"message":"AiError: you have used up your daily free allocation of 10,000 neurons, please upgrade to Cloudflare's Workers Paid plan","code":3036}],"success":false,"result":{},"messages":[]}"#),
    rule("Venice", QuotaExhausted, "https://docs.venice.ai/api-reference/error-codes")
        .words(&["insufficient usd or diem balance"])
        .example(402, r#"{"error":"Insufficient USD or Diem balance to complete request. Visit https://venice.ai/settings/api to add credits."}"#),
    rule("one-api, new-api", QuotaExhausted, "https://github.com/songquanpeng/one-api/issues/1270")
        .codes(&["insufficient_user_quota", "pre_consume_token_quota_failed"])
        .words(&["user quota is not enough", "token quota is not enough", "用户额度不足", "令牌额度不足", "额度已用尽", "额度已用完", "pre-consumed quota failed"])
        .example(403, r#"{"error":{"message":"user quota is not enough (request id: x)","type":"one_api_error","param":"","code":"insufficient_user_quota"}}"#),
    rule("sub2api", QuotaExhausted, "https://github.com/Wei-Shaw/sub2api/issues/890")
        .codes(&["INSUFFICIENT_BALANCE", "insufficient_balance_error", "usage_limit_reached"])
        .words(&["insufficient account balance", "日限额已用完", "周限额已用完", "月限额已用完"])
        .example(403, r#"{"code":"INSUFFICIENT_BALANCE","message":"Insufficient account balance"}"#),
    rule("LiteLLM", QuotaExhausted, "https://docs.litellm.ai/docs/proxy/users")
        .codes(&["budget_exceeded"])
        .words(&["budget has been exceeded! current cost"])
        .example(400, r#"{"error":{"message":"Budget has been exceeded! Current cost: 0.0002, Max budget: 0.0001","type":"budget_exceeded","param":null,"code":"400"}}"#),
];
