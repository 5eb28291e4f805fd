//! Invalid requests that are reported inside a 200, where the status does not tell.

use super::{FailureRule, rule};
use throughline_engine::FailureKind::Status;

pub(super) const REFUSED: &[FailureRule] = &[
    rule("OpenAI, Anthropic", Status, "https://developers.openai.com/api/docs/guides/error-codes")
        .statuses(&[400, 422])
        .codes(&["invalid_request_error", "BadRequestError"])
        .example(200, r#"{"error":{"message":"Invalid value for 'temperature'","type":"invalid_request_error","param":"temperature","code":null}}"#),
    rule("Google Gemini", Status, "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/api-errors")
        .statuses(&[400])
        .codes(&["INVALID_ARGUMENT", "FAILED_PRECONDITION"])
        .example(400, r#"{"error":{"code":400,"message":"Please ensure that function call turn comes immediately after a user turn.","status":"INVALID_ARGUMENT"}}"#),
    rule("AWS Bedrock", Status, "https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html")
        .statuses(&[400])
        .codes(&["ValidationException", "validationException"])
        .example(400, r#"{"__type":"com.amazon.coral.validate#ValidationException","message":"Malformed input request"}"#),
    rule("Zhipu", Status, "https://docs.bigmodel.cn/cn/api/api-code")
        .statuses(&[400])
        .codes(&["1210", "1212", "1213", "1214", "1215"])
        .example(200, r#"{"error":{"code":"1214","message":"messages 参数非法。请检查文档。"}}"#),
    rule("MiniMax", Status, "https://platform.minimax.io/docs/api-reference/errorcode")
        .codes(&["base_resp 1042", "base_resp 2013"])
        .example(200, r#"{"base_resp":{"status_code":2013,"status_msg":"invalid params"}}"#),
    rule("DashScope", Status, "https://help.aliyun.com/en/model-studio/error-code")
        .statuses(&[400])
        .codes(&["InvalidParameter", "invalid_parameter_error"])
        .example(200, r#"{"code":"InvalidParameter","message":"Either \"prompt\" or \"messages\" must exist and cannot both be none","request_id":"x"}"#),
    rule("Baidu Qianfan", Status, "https://cloud.baidu.com/doc/qianfan-api/s/rmwbl43x7")
        .statuses(&[400])
        .codes(&["malformed_json", "invalid_messages", "invalid_argument"])
        .example(200, r#"{"error":{"code":"malformed_json","message":"Invalid Argument","type":"invalid_request_error"},"id":"as-x"}"#),
    // Invalid arguments: of the request, its JSON, a parameter, a plugin's.
    rule("Baidu Qianfan", Status, "https://github.com/baidubce/bce-qianfan-sdk/blob/main/python/qianfan/consts.py")
        .statuses(&[400])
        .codes(&["336001", "336002", "336003", "336104", "336105"])
        .example(200, r#"{"error_code":336003,"error_msg":"message content can not be empty","id":"as-x"}"#),
    rule("Tencent Hunyuan", Status, "https://cloud.tencent.com/document/api/1729/101847")
        .codes(&["InvalidParameter", "InvalidParameterValue", "InvalidRequest", "MissingParameter"])
        .example(200, r#"{"Response":{"Error":{"Code":"InvalidParameterValue","Message":"参数取值错误"},"RequestId":"x"}}"#),
    rule("Volcengine Ark", Status, "https://www.volcengine.com/docs/82379/1299023")
        .statuses(&[400])
        .codes(&["MissingParameter", "InvalidParameter"])
        .example(400, r#"{"error":{"code":"MissingParameter","message":"The request failed because it is missing one or multiple required parameters.","param":"","type":"BadRequest"}}"#),
];
