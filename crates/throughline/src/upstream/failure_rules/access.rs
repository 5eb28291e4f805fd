//! Rejected keys, missing permissions, and unknown models.

use super::{FailureRule, rule};
use throughline_engine::FailureKind::{ModelNotFound, NotAllowed, Unauthorized};

pub(super) const BAD_KEY: &[FailureRule] = &[
    rule("OpenAI", Unauthorized, "https://developers.openai.com/api/docs/guides/error-codes")
        .codes(&["invalid_api_key"])
        .words(&["incorrect api key provided"])
        .example(401, r#"{"error":{"message":"Incorrect API key provided: sk-x.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#),
    rule("Azure OpenAI", Unauthorized, "https://learn.microsoft.com/en-us/azure/ai-foundry/openai/how-to/troubleshooting")
        .words(&["access denied due to invalid subscription key"])
        .example(401, r#"{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}"#),
    rule("Anthropic", Unauthorized, "https://platform.claude.com/docs/en/api/errors")
        .codes(&["authentication_error"])
        .example(200, r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#),
    rule("Google Gemini", Unauthorized, "https://ai.google.dev/gemini-api/docs/troubleshooting")
        .codes(&["API_KEY_INVALID", "UNAUTHENTICATED"])
        .words(&["api key not valid", "api key expired", "api key was reported as leaked"])
        .example(400, r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#),
    rule("AWS Bedrock", Unauthorized, "https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html")
        .codes(&["UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "IncompleteSignature", "ExpiredTokenException", "RequestExpired"])
        .words(&["the security token included in the request is"])
        .example(403, r#"{"message":"The security token included in the request is invalid."}"#),
    rule("xAI", Unauthorized, "https://docs.x.ai/docs/key-information/debugging")
        .words(&["incorrect api key provided"])
        .example(400, r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***. You can obtain an API key from https://console.x.ai."}"#),
    rule("Cohere", Unauthorized, "https://docs.cohere.com/reference/errors")
        .words(&["invalid api token", "no api key supplied"])
        .example(401, r#"{"message":"invalid api token"}"#),
    rule("Moonshot", Unauthorized, "https://platform.kimi.com/docs/api/errors")
        .codes(&["invalid_authentication_error", "incorrect_api_key_error"])
        .example(401, r#"{"error":{"message":"Invalid Authentication","type":"invalid_authentication_error"}}"#),
    rule("Zhipu", Unauthorized, "https://docs.bigmodel.cn/cn/api/api-code")
        .statuses(&[401, 429])
        .codes(&["1000", "1001", "1002", "1003", "1004", "1111"])
        .words(&["身份验证失败"])
        .example(401, r#"{"error":{"code":"1000","message":"身份验证失败。"}}"#),
    rule("MiniMax", Unauthorized, "https://platform.minimax.io/docs/api-reference/errorcode")
        .codes(&["base_resp 1004", "base_resp 2049"])
        .example(200, r#"{"base_resp":{"status_code":1004,"status_msg":"login fail: Please carry the API secret key in the 'Authorization' field of the request header"}}"#),
    rule("DashScope", Unauthorized, "https://help.aliyun.com/en/model-studio/error-code")
        .codes(&["InvalidApiKey"])
        .example(401, r#"{"code":"InvalidApiKey","message":"Invalid API-key provided.","request_id":"x"}"#),
    rule("Baidu Qianfan", Unauthorized, "https://cloud.baidu.com/doc/qianfan-api/s/rmwbl43x7")
        .codes(&["invalid_iam_token"])
        .words(&["access token invalid or no longer valid", "access token expired", "iam certification failed"])
        .example(401, r#"{"error":{"code":"invalid_iam_token","message":"IAM Certification failed","type":"invalid_request_error"}}"#),
    rule("Volcengine Ark", Unauthorized, "https://www.volcengine.com/docs/82379/1299023")
        .codes(&["AuthenticationError"])
        .example(401, r#"{"error":{"code":"AuthenticationError","message":"The API key or AK/SK in the request is missing or invalid. Request ID: x","param":"","type":"Unauthorized"}}"#),
    rule("Tencent Hunyuan", Unauthorized, "https://cloud.tencent.com/document/api/1729/101847")
        .codes(&["AuthFailure.InvalidAuthorization", "AuthFailure.InvalidSecretId", "AuthFailure.SecretIdNotFound", "AuthFailure.SignatureExpire", "AuthFailure.SignatureFailure", "AuthFailure.TokenFailure"])
        .example(200, r#"{"Response":{"Error":{"Code":"AuthFailure.SignatureFailure","Message":"The provided credentials could not be validated."},"RequestId":"x"}}"#),
    rule("Huawei ModelArts", Unauthorized, "https://support.huaweicloud.com/intl/en-us/usermanual-maas-modelarts/maas-modelarts-0080.html")
        .codes(&["ModelArts.81002", "ModelArts.81003"])
        .example(401, r#"{"error_code":"ModelArts.81003","error_msg":"Invalid authorization header."}"#),
    rule("StepFun", Unauthorized, "https://raw.githubusercontent.com/api-evangelist/stepfun/refs/heads/main/errors/stepfun-error-codes.yml")
        .codes(&["invalid_api_key"])
        .example(401, r#"{"error":{"message":"Incorrect API key provided","type":"invalid_api_key"}}"#),
    // Gateways use the same phrases.
    rule("llama.cpp", Unauthorized, "https://github.com/ggml-org/llama.cpp/pull/14352")
        .statuses(&[400, 401, 403])
        .words(&["invalid api key"])
        .example(200, r#"{"detail":"Invalid API key"}"#),
    rule("Kong", Unauthorized, "https://github.com/Kong/kong/blob/master/kong/plugins/key-auth/handler.lua")
        .words(&["no api key found in request", "invalid authentication credentials"])
        .example(200, r#"{"message":"No API key found in request"}"#),
    rule("Kong, AWS API Gateway", Unauthorized, "https://gist.github.com/36653f7f4430059124527221839d76db")
        .statuses(&[400, 401, 403])
        .messages(&["unauthorized"])
        .example(200, r#"{"message":"Unauthorized"}"#),
    rule("FastAPI", Unauthorized, "https://fastapi.tiangolo.com/how-to/authentication-error-status-code")
        .messages(&["not authenticated"])
        .example(200, r#"{"detail":"Not authenticated"}"#),
];

pub(super) const NOT_ALLOWED: &[FailureRule] = &[
    rule("OpenAI", NotAllowed, "https://developers.openai.com/api/docs/guides/error-codes")
        .codes(&["unsupported_country_region_territory"])
        .example(403, r#"{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","param":null,"type":"request_forbidden"}}"#),
    rule("Azure OpenAI", NotAllowed, "https://www.developersdigest.tech/errors/api/azure-openai")
        .words(&["access denied due to virtual network/firewall rules"])
        .example(403, r#"{"error":{"code":"AccessDenied","message":"Access denied due to Virtual Network/Firewall rules."}}"#),
    rule("Anthropic", NotAllowed, "https://platform.claude.com/docs/en/api/errors")
        .codes(&["permission_error"])
        .example(403, r#"{"type":"error","error":{"type":"permission_error","message":"Your API key does not have permission to use the specified resource."}}"#),
    rule("Google Gemini", NotAllowed, "https://ai.google.dev/gemini-api/docs/troubleshooting")
        .codes(&["PERMISSION_DENIED"])
        .words(&["user location is not supported for the api use"])
        .example(400, r#"{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}"#),
    rule("AWS Bedrock", NotAllowed, "https://www.repost.aws/knowledge-center/bedrock-invokemodel-api-error")
        .codes(&["AccessDeniedException", "accessDeniedException", "NotAuthorized", "FTUFormNotFilled"])
        .words(&["don't have access to the model with the specified model id", "is not authorized to perform: bedrock:"])
        .example(403, r#"{"message":"You don't have access to the model with the specified model ID."}"#),
    rule("xAI", NotAllowed, "https://github.com/UKGovernmentBEIS/inspect_ai/pull/2267")
        .statuses(&[403])
        .codes(&["The caller does not have permission to execute the specified operation", "permission-denied"])
        .example(403, r#"{"code":"The caller does not have permission to execute the specified operation","error":"Your API key does not have access to this model."}"#),
    rule("Groq", NotAllowed, "https://console.groq.com/docs/errors")
        .codes(&["model_terms_required", "model_permission_blocked_org", "model_permission_blocked_project", "organization_restricted"])
        .example(400, r#"{"error":{"message":"The model `x` requires terms acceptance. Please have the org admin accept the terms.","type":"invalid_request_error","code":"model_terms_required"}}"#),
    rule("Moonshot", NotAllowed, "https://platform.kimi.com/docs/api/errors")
        .codes(&["permission_denied_error", "access_terminated_error"])
        .example(403, r#"{"error":{"message":"Access terminated. Review our Community Guidelines or contact support for assistance.","type":"access_terminated_error"}}"#),
    // 1110, 1112, 1121: the account is inactive or blocked; 1311: the plan is without this model.
    rule("Zhipu", NotAllowed, "https://docs.bigmodel.cn/cn/api/api-code")
        .codes(&["1110", "1112", "1121", "1220", "1311"])
        .words(&["当前订阅套餐暂未开放"])
        .example(403, r#"{"error":{"code":"1220","message":"您无权访问 glm-x"}}"#),
    rule("MiniMax", NotAllowed, "https://platform.minimax.io/docs/api-reference/errorcode")
        .codes(&["base_resp 2061"])
        .words(&["your current token plan not support model"])
        .example(200, r#"{"base_resp":{"status_code":2061,"status_msg":"your current token plan not support model, MiniMax-x"}}"#),
    rule("DashScope", NotAllowed, "https://help.aliyun.com/en/model-studio/error-code")
        .statuses(&[400, 403])
        .codes(&["AccessDenied", "access_denied", "Model.AccessDenied", "App.AccessDenied", "Workspace.AccessDenied", "AccessDenied.Unpurchased"])
        .example(403, r#"{"code":"Model.AccessDenied","message":"Model access denied.","request_id":"x"}"#),
    rule("Baidu Qianfan", NotAllowed, "https://cloud.baidu.com/doc/qianfan-api/s/Om9b4yj3w")
        .words(&["no permission to use the model", "no permission to use the appid"])
        .example(401, r#"{"error":{"code":"invalid_model","message":"No permission to use the model","type":"invalid_request_error"}}"#),
    rule("Baidu Qianfan", NotAllowed, "https://ai.baidu.com/ai-doc/WENXINWORKSHOP/tlmyncueh")
        .words(&["no permission to access data"])
        .example(200, r#"{"error_code":6,"error_msg":"No permission to access data"}"#),
    // The application has no right to the model, or has used up what it may.
    rule("iFlytek Spark", NotAllowed, "https://xfyun.cn/doc/spark/%E6%8E%A5%E5%8F%A3%E8%AF%B4%E6%98%8E.html")
        .statuses(&[400, 401, 403])
        .codes(&["11200"])
        .words(&["appidnoautherror"])
        .example(200, r#"{"error":{"message":"AppIdNoAuthError","code":"11200"}}"#),
    rule("Volcengine Ark", NotAllowed, "https://www.volcengine.com/docs/82379/1299023")
        .codes(&["AccessDenied", "ModelNotOpen"])
        .example(404, r#"{"error":{"code":"ModelNotOpen","message":"Your account x has not activated the model y. Please activate the model service in the Ark Console. Request ID: x","param":"","type":"NotFound"}}"#),
    rule("Tencent Hunyuan", NotAllowed, "https://cloud.tencent.com/document/api/1729/101847")
        .codes(&["AuthFailure.UnauthorizedOperation", "FailedOperation.ServiceNotActivated", "IpInBlacklist", "IpNotInWhitelist"])
        .example(200, r#"{"Response":{"Error":{"Code":"FailedOperation.ServiceNotActivated","Message":"服务未开通"},"RequestId":"x"}}"#),
    rule("Huawei ModelArts", NotAllowed, "https://support.huaweicloud.com/intl/en-us/usermanual-maas-modelarts/maas-modelarts-0080.html")
        .codes(&["ModelArts.81004"])
        .example(401, r#"{"error_code":"ModelArts.81004","error_msg":"Invalid request because you do not have access to it."}"#),
    rule("OpenRouter", NotAllowed, "https://openrouter.ai/docs/features/privacy-and-logging")
        .words(&["no endpoints found matching your data policy"])
        .example(404, r#"{"error":{"message":"No endpoints found matching your data policy. Enable prompt training here: https://openrouter.ai/settings/privacy","code":404}}"#),
    rule("Cloudflare", NotAllowed, "https://developers.cloudflare.com/workers-ai/platform/errors/")
        .words(&["the account is not allowed to access this model", "has not agreed to*model terms"])
        .example(403, r#"{"errors":[{"message":"AiError: The account is not allowed to access this model","code":5018}],"success":false,"result":{},"messages":[]}"#),
    rule("LiteLLM", NotAllowed, "https://docs.litellm.ai/docs/proxy/error_reference")
        .codes(&["key_model_access_denied", "team_model_access_denied", "user_model_access_denied", "org_model_access_denied"])
        .example(401, r#"{"error":{"message":"key not allowed to access model. This key can only access models=['x'].","type":"key_model_access_denied","param":"model","code":"401"}}"#),
];

pub(super) const UNKNOWN_MODEL: &[FailureRule] = &[
    rule("OpenAI", ModelNotFound, "https://developers.openai.com/api/docs/guides/error-codes")
        .codes(&["model_not_found"])
        .example(403, r#"{"error":{"message":"Project `proj_x` does not have access to model `gpt-x`","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#),
    // vLLM and other servers use the same phrases.
    rule("OpenAI", ModelNotFound, "https://github.com/Aider-AI/aider/issues/2030")
        .words(&["the model `*` does not exist"])
        .example(200, r#"{"error":"The model `x` does not exist."}"#),
    rule("Azure OpenAI", ModelNotFound, "https://learn.microsoft.com/en-us/azure/ai-foundry/openai/how-to/troubleshooting")
        .codes(&["DeploymentNotFound"])
        .example(404, r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}"#),
    rule("Google Gemini", ModelNotFound, "https://ai.google.dev/gemini-api/docs/troubleshooting")
        .statuses(&[404])
        .words(&["is not found for api version"])
        .example(404, r#"{"error":{"code":404,"message":"models/gemini-x is not found for API version v1beta, or is not supported for generateContent.","status":"NOT_FOUND"}}"#),
    rule("AWS Bedrock", ModelNotFound, "https://www.repost.aws/knowledge-center/bedrock-invokemodel-api-error")
        .words(&["the provided model identifier is invalid"])
        .example(400, r#"{"message":"The provided model identifier is invalid."}"#),
    rule("Mistral", ModelNotFound, "https://docs.mistral.ai/api/")
        .codes(&["invalid_model"])
        .example(400, r#"{"object":"error","message":"Invalid model: x","type":"invalid_model","param":null,"code":"1500"}"#),
    rule("Groq", ModelNotFound, "https://console.groq.com/docs/deprecations")
        .codes(&["model_decommissioned"])
        .example(400, r#"{"error":{"message":"The model `x` has been decommissioned and is no longer supported.","type":"invalid_request_error","code":"model_decommissioned"}}"#),
    rule("DeepSeek", ModelNotFound, "https://api-docs.deepseek.com/quick_start/error_codes")
        .words(&["model not exist"])
        .example(400, r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#),
    rule("Moonshot", ModelNotFound, "https://platform.kimi.com/docs/api/errors")
        .statuses(&[404])
        .codes(&["resource_not_found_error"])
        .example(404, r#"{"error":{"message":"Not found the model kimi-x or Permission denied","type":"resource_not_found_error"}}"#),
    rule("Zhipu", ModelNotFound, "https://docs.bigmodel.cn/cn/api/api-code")
        .codes(&["1211"])
        .words(&["模型不存在"])
        .example(400, r#"{"error":{"code":"1211","message":"模型不存在，请检查模型代码。"}}"#),
    rule("DashScope", ModelNotFound, "https://help.aliyun.com/en/model-studio/error-code")
        .codes(&["ModelNotFound", "Model.NotFound"])
        .example(404, r#"{"code":"ModelNotFound","message":"The model x does not exist.","request_id":"x"}"#),
    rule("SiliconFlow", ModelNotFound, "https://docs.siliconflow.cn/cn/faqs/error-code")
        .codes(&["20012"])
        .words(&["model does not exist. please check it carefully"])
        .example(400, r#"{"code":20012,"message":"Model does not exist. Please check it carefully.","data":null}"#),
    rule("Volcengine Ark", ModelNotFound, "https://www.volcengine.com/docs/82379/1299023")
        .codes(&["InvalidEndpointOrModel.NotFound", "InvalidEndpoint.NotFound", "InvalidEndpointOrModel"])
        .example(404, r#"{"error":{"code":"InvalidEndpointOrModel.NotFound","message":"The model or endpoint x does not exist or you do not have access to it.","param":"","type":"NotFound"}}"#),
    rule("Huawei ModelArts", ModelNotFound, "https://support.huaweicloud.com/intl/en-us/usermanual-maas-modelarts/maas-modelarts-0080.html")
        .codes(&["ModelArts.81009"])
        .example(404, r#"{"error_code":"ModelArts.81009","error_msg":"Invalid model."}"#),
    rule("OpenRouter", ModelNotFound, "https://openrouter.ai/docs/api/reference/errors-and-debugging")
        .statuses(&[400, 404])
        .words(&["is not a valid model id", "no endpoints found for"])
        .example(400, r#"{"error":{"message":"x/y is not a valid model ID","code":400}}"#),
    rule("Together", ModelNotFound, "https://docs.together.ai/docs/error-codes")
        .codes(&["model_not_available"])
        .example(404, r#"{"error":{"message":"Unable to access model x. Please visit https://api.together.ai/models to view the list of supported models.","type":"invalid_request_error","param":null,"code":"model_not_available"}}"#),
    rule("Fireworks", ModelNotFound, "https://docs.fireworks.ai/guides/inference-error-codes")
        .words(&["model not found, inaccessible, and/or not deployed"])
        .example(404, r#"{"error":{"object":"error","type":"invalid_request_error","code":"NOT_FOUND","message":"Model not found, inaccessible, and/or not deployed"}}"#),
    rule("Cloudflare", ModelNotFound, "https://developers.cloudflare.com/workers-ai/platform/errors/")
        .statuses(&[400, 404])
        .words(&["no such model"])
        .example(400, r#"{"errors":[{"message":"AiError: No such model @cf/x or task","code":5007}],"success":false,"result":{},"messages":[]}"#),
    rule("Ollama", ModelNotFound, "https://github.com/ollama/ollama/pull/718")
        .words(&["model '*' not found", "not found, try pulling it first"])
        .example(200, r#"{"error":"model 'x' not found"}"#),
    rule("LM Studio", ModelNotFound, "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues")
        .words(&["no models loaded. please load a model"])
        .example(404, r#"{"error":{"message":"No models loaded. Please load a model in the developer page or use the `lms load` command.","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#),
    rule("one-api, new-api", ModelNotFound, "https://github.com/songquanpeng/one-api/issues/2340")
        .words(&["下对于模型*无可用渠道", "no available channels for model", "no available channel for model"])
        .example(503, r#"{"error":{"message":"当前分组 default 下对于模型 x 无可用渠道 (request id: y)","type":"one_api_error"}}"#),
];
