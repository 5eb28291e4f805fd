//! Notices of a server, and its requests to us.

use rmcp::model::{ServerJsonRpcMessage, ServerNotification};
use serde_json::{Map, Value, json};

/// The message as the SDK takes it. Odd ones about progress and changed tools are reduced to their valid
/// parts; the SDK refuses unknown requests, so that their server does not wait. `None` = a notification
/// without effect.
pub(super) fn read(message: Map<String, Value>, is_deep: bool) -> Option<ServerJsonRpcMessage> {
    let method = message.get("method")?.as_str()?.to_owned();
    if message.contains_key("id") {
        let mut request = json!({"jsonrpc": "2.0", "id": message.get("id"), "method": method});
        if let Some(params) = message.get("params").filter(|_| !is_deep) {
            request["params"] = params.clone();
        }
        let read = |request: &Value| serde_json::from_value(request.clone()).ok();
        return read(&request).or_else(|| {
            request.as_object_mut()?.remove("params");
            read(&request)
        });
    }
    if is_deep {
        return None;
    }
    let params = message.get("params");
    let strict = match params {
        Some(params) => json!({"jsonrpc": "2.0", "method": method, "params": params}),
        None => json!({"jsonrpc": "2.0", "method": method}),
    };
    if let Ok(ServerJsonRpcMessage::Notification(notification)) = serde_json::from_value(strict)
        && !matches!(notification.notification, ServerNotification::CustomNotification(_))
    {
        return Some(ServerJsonRpcMessage::Notification(notification));
    }
    let repaired = match method.as_str() {
        "notifications/progress" => json!({"jsonrpc": "2.0", "method": method, "params": progress(params?)?}),
        "notifications/tools/list_changed" => json!({"jsonrpc": "2.0", "method": method}),
        _ => return None,
    };
    serde_json::from_value(repaired).ok()
}

/// Progress without a number is dropped, but still counts as a sign of life.
fn progress(params: &Value) -> Option<Value> {
    let number = |field: &str| match params.get(field)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    };
    // Our tokens are numbers.
    let token = match params.get("progressToken")? {
        Value::Number(token) => super::integer(token)?,
        Value::String(token) => token.trim().parse().ok()?,
        _ => return None,
    };
    let mut read = json!({"progressToken": token, "progress": number("progress").unwrap_or_default()});
    if let Some(total) = number("total") {
        read["total"] = Value::from(total);
    }
    if let Some(message) = params.get("message").and_then(Value::as_str) {
        read["message"] = Value::from(message);
    }
    Some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name of the message as it is read, and of a progress its number and text.
    fn check(message: Value, expected: Option<&str>) {
        let Value::Object(fields) = message.clone() else { panic!("{message}") };
        let read = read(fields, false).map(|read| match read {
            ServerJsonRpcMessage::Request(request) => format!("request {}", request.id),
            ServerJsonRpcMessage::Notification(notification) => match notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    let params = progress.params;
                    format!("progress {} {}", params.progress, params.message.unwrap_or_default())
                }
                ServerNotification::ToolListChangedNotification(_) => "changed".to_owned(),
                other => format!("{other:?}").split('(').next().unwrap_or_default().to_owned(),
            },
            other => panic!("{other:?}"),
        });
        assert_eq!(read.as_deref(), expected, "{message}");
    }

    #[test]
    fn malformed_notifications_keep_their_valid_fields() {
        let progress = |params: Value| json!({"method": "notifications/progress", "params": params});
        check(progress(json!({"progressToken": 3, "progress": 1, "message": "one"})), Some("progress 1 one"));
        check(progress(json!({"progressToken": "3", "progress": "2", "total": "many"})), Some("progress 2 "));
        check(
            progress(json!({"progressToken": 3, "progress": null, "message": "alive"})),
            Some("progress 0 alive"),
        );
        check(progress(json!({"progress": 1})), None);
        check(json!({"method": "notifications/progress"}), None);
        for params in [json!({}), json!([]), json!("odd"), Value::Null] {
            check(json!({"method": "notifications/tools/list_changed", "params": params}), Some("changed"));
        }
        check(json!({"method": "notifications/unheard/of", "params": {}}), None);
    }

    #[test]
    fn malformed_request_with_an_id_is_passed_on() {
        for params in [json!({"mode": "form", "requestedSchema": 7}), json!([]), json!("odd"), Value::Null] {
            check(json!({"id": 5, "method": "elicitation/create", "params": params}), Some("request 5"));
        }
        check(json!({"id": 5, "method": "roots/list"}), Some("request 5"));
        check(json!({"id": [], "method": "roots/list"}), None);
    }
}
