//! The list of a server's tools: all pages of it, bounded, in one order.

use super::definition::{McpToolDefinition, parse_definition, tool_name};
use super::session::{CallFailure, McpSession};
use super::settings::McpServer;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool as RmcpTool};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use throughline_engine::suggest_names;
use throughline_wire::ToolName;

/// Most tools that are taken of a server. More would not fit into a model's context.
pub const TOOLS_MAX: usize = 500;
/// Most pages of a list that are asked for.
pub const PAGES_MAX: usize = 100;

/// The names of tools that can only be called as tasks (2025-11-25 `execution.taskSupport`), which we do not: a call
/// would answer with an error. The SDK does not pass the field on, so it is read off the wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskOnly(Arc<Mutex<BTreeSet<String>>>);

impl TaskOnly {
    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names().contains(name)
    }

    /// Looks at one message on its way.
    pub(crate) fn observe(&self, message: &[u8]) {
        let mentions = std::str::from_utf8(message).is_ok_and(|text| text.contains("\"taskSupport\""));
        if !mentions {
            return;
        }
        let Ok(message) = serde_json::from_slice::<Value>(message) else { return };
        let Some(tools) = message.pointer("/result/tools").and_then(Value::as_array) else { return };
        let mut names = self.names();
        for tool in tools {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            if tool.pointer("/execution/taskSupport").and_then(Value::as_str) == Some("required") {
                names.insert(name.to_owned());
            } else {
                names.remove(name);
            }
        }
    }
}

/// The tools of a server, by name, and the problems of those that cannot be taken.
#[derive(Debug, Default)]
pub(crate) struct ToolListing {
    pub(crate) tools: Vec<McpToolDefinition>,
    pub(crate) problems: Vec<(Option<ToolName>, String)>,
    /// Lifetime of the list, as the server gives it.
    pub(crate) ttl: Option<Duration>,
}

pub(crate) async fn list_tools(
    server: &str,
    settings: &McpServer,
    session: &McpSession,
) -> Result<ToolListing, CallFailure> {
    let (mut offered, mut cursor, mut ttl) = (Vec::<RmcpTool>::new(), None, None);
    let mut problems = Vec::new();
    for page in 0.. {
        if page == PAGES_MAX || offered.len() > TOOLS_MAX {
            break;
        }
        let mut params = PaginatedRequestParams::default();
        params.cursor = cursor;
        let request = ListToolsRequest::with_param(params);
        let answer =
            session.request(ClientRequest::ListToolsRequest(request), settings.start_timeout()).await?;
        let ServerResult::ListToolsResult(result) = answer else {
            return Err(CallFailure::Protocol("it answered `tools/list` with something else".to_owned()));
        };
        ttl = ttl.or(result.ttl_ms.filter(|ms| *ms > 0).map(Duration::from_millis));
        offered.extend(result.tools);
        cursor = result.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    if cursor.is_some() || offered.len() > TOOLS_MAX {
        let message =
            format!("it lists more than {TOOLS_MAX} tools or {PAGES_MAX} pages; the rest is left out");
        problems.push((None, message));
        offered.truncate(TOOLS_MAX);
    }
    let listing = select_tools(server, settings, offered, &session.task_only);
    problems.extend(listing.problems);
    Ok(ToolListing { problems, ttl, ..listing })
}

/// Those of the tools that can be called and are wanted.
fn select_tools(
    server: &str,
    settings: &McpServer,
    offered: Vec<RmcpTool>,
    task_only: &TaskOnly,
) -> ToolListing {
    let mut listing = ToolListing::default();
    let offered_names: Vec<String> = offered.iter().map(|tool| tool.name.to_string()).collect();
    for wanted in settings.tools.iter().flatten() {
        if offered_names.contains(wanted) {
            continue;
        }
        let suggestions = suggest_names(wanted, offered_names.iter().map(String::as_str));
        let hint = suggestions
            .first()
            .map(|suggestion| format!("; did you mean `{suggestion}`?"))
            .unwrap_or_default();
        listing.problems.push((None, format!("`tools` names `{wanted}`, which it does not have{hint}")));
    }
    for offered in offered {
        let is_wanted =
            settings.tools.as_ref().is_none_or(|wanted| wanted.iter().any(|name| *name == offered.name));
        if !is_wanted || task_only.contains(&offered.name) {
            continue;
        }
        let name = tool_name(server, &offered.name);
        match parse_definition(server, settings, offered) {
            Ok(definition) => listing.tools.push(definition),
            Err(problem) => listing.problems.push((Some(name), problem)),
        }
    }
    listing.tools.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
    listing
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn offered(names: &[&str]) -> Vec<RmcpTool> {
        let tool = |name: &&str| {
            serde_json::from_value(json!({"name": name, "inputSchema": {"type": "object"}})).unwrap()
        };
        names.iter().map(tool).collect()
    }

    fn names(listing: &ToolListing) -> Vec<String> {
        listing.tools.iter().map(|tool| tool.spec.name.to_string()).collect()
    }

    #[test]
    fn tools_are_in_order_and_only_those_that_are_wanted() {
        let all = McpServer::default();
        let listing = select_tools("files", &all, offered(&["write", "read", "list"]), &TaskOnly::default());
        assert_eq!(names(&listing), ["files.list", "files.read", "files.write"]);
        let some = McpServer { tools: Some(vec!["read".into(), "raed".into()]), ..all };
        let listing = select_tools("files", &some, offered(&["write", "read"]), &TaskOnly::default());
        assert_eq!(names(&listing), ["files.read"]);
        let message = "`tools` names `raed`, which it does not have; did you mean `read`?";
        assert_eq!(listing.problems, [(None, message.to_owned())]);
    }

    #[test]
    fn what_runs_as_a_task_only_is_left_out() {
        let task_only = TaskOnly::default();
        let list = |support: &str| {
            json!({"result": {"tools": [{"name": "research", "execution": {"taskSupport": support}}]}})
                .to_string()
        };
        task_only.observe(list("required").as_bytes());
        let take =
            || names(&select_tools("all", &McpServer::default(), offered(&["echo", "research"]), &task_only));
        assert_eq!(take(), ["all.echo"]);
        task_only.observe(list("optional").as_bytes());
        assert_eq!(take(), ["all.echo", "all.research"]);
    }
}
