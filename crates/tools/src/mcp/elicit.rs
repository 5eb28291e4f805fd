//! A question of a server to a person, and the answer: it fits the form that the server sent, or is a
//! refusal.

use crate::context::ToolContext;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use throughline_engine::{ToolAnswer, ToolQuestion};

/// Passes a question to the viewer of the call. Without a viewer, with an invalid form, or with an address
/// that a browser cannot open: no answer.
pub(crate) async fn ask(server: &str, context: &ToolContext, question: ElicitRequestParams) -> ElicitResult {
    let Some(question) = to_tool_question(server, question) else {
        return ElicitResult::new(ElicitationAction::Decline);
    };
    match context.ask(question).await {
        ToolAnswer::Accept { content } => {
            let accepted = ElicitResult::new(ElicitationAction::Accept);
            match content {
                Some(content) => accepted.with_content(content),
                None => accepted,
            }
        }
        ToolAnswer::Decline => ElicitResult::new(ElicitationAction::Decline),
        _ => ElicitResult::new(ElicitationAction::Cancel),
    }
}

/// A question that names the asking server first: it is not the program that the person knows.
fn to_tool_question(server: &str, question: ElicitRequestParams) -> Option<ToolQuestion> {
    let attributed = |message: &str| format!("The MCP server `{server}` asks: {message}");
    match question {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            Some(ToolQuestion::form(attributed(&message), serde_json::to_value(requested_schema).ok()?))
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let parsed = url::Url::parse(&url).ok()?;
            let is_browser_url = match parsed.scheme() {
                "https" => true,
                // A page of a program on this machine.
                "http" => matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")),
                _ => false,
            };
            is_browser_url.then(|| ToolQuestion::url(attributed(&message), parsed))
        }
        // The enum may grow with the protocol.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use throughline_engine::ElicitationMode;

    fn url_of(url: &str) -> Option<String> {
        let question = json!({"mode": "url", "message": "Sign in", "url": url, "elicitationId": "1"});
        match to_tool_question("files", serde_json::from_value(question).unwrap())?.mode {
            ElicitationMode::Url { url } => Some(url),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn form_elicitation_names_its_server() {
        let schema: Value = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let question = json!({"mode": "form", "message": "Who are you?", "requestedSchema": schema});
        let asked = to_tool_question("files", serde_json::from_value(question).unwrap()).unwrap();
        assert_eq!(asked.message, "The MCP server `files` asks: Who are you?");
        assert_eq!(asked.mode, ElicitationMode::Form { schema });
    }

    #[test]
    fn url_elicitation_allows_only_https_and_loopback_http() {
        for good in
            ["https://example.com/in", "http://localhost:8080/in", "http://127.0.0.1/in", "http://[::1]/in"]
        {
            assert_eq!(url_of(good).as_deref(), Some(good));
        }
        for bad in
            ["http://example.com/in", "file:///etc/passwd", "javascript:alert(1)", "not a url", "ssh://a/"]
        {
            assert_eq!(url_of(bad), None, "{bad}");
        }
    }
}
