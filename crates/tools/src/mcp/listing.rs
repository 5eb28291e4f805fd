//! The list of a server's tools: all pages of it, bounded, in one order.

use super::definition::{McpToolDefinition, parse_definition, tool_name};
use super::lenient::list_faults;
use super::session::{CallFailure, McpSession};
use super::settings::McpServer;
use rmcp::model::{
    ClientRequest, ListToolsRequest, ListToolsResult, PaginatedRequestParams, ServerResult, Tool as RmcpTool,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use throughline_engine::suggest_names;
use throughline_wire::ToolName;

/// Most tools that are taken of a server. More would not fit into a model's context.
pub const TOOLS_MAX: usize = 500;
/// Most pages of a list that are requested.
pub const PAGES_MAX: usize = 100;
/// Most faults of definitions in a list that are reported. People read them.
pub const FAULTS_MAX: usize = 50;

/// The names of tools that can only be called as tasks (2025-11-25 `execution.taskSupport`), which we do not: a call
/// would answer with an error. The SDK does not pass the field on.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskOnly(Arc<Mutex<BTreeSet<String>>>);

impl TaskOnly {
    fn names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names().contains(name)
    }

    /// Records what a list declares about a tool.
    pub(crate) fn note(&self, name: &str, is_required: bool) {
        if is_required {
            self.names().insert(name.to_owned());
        } else {
            self.names().remove(name);
        }
    }
}

/// The tools of a server, by name, and the problems of those that were refused.
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
    let mut pages = ToolPages::default();
    let (mut cursor, mut ttl) = (None, None);
    loop {
        let mut params = PaginatedRequestParams::default();
        params.cursor = cursor;
        let request = ListToolsRequest::with_param(params);
        let answer =
            session.request(ClientRequest::ListToolsRequest(request), settings.start_timeout()).await;
        let page = match answer {
            Ok(ServerResult::ListToolsResult(page)) => page,
            Ok(_) => {
                return Err(CallFailure::Protocol("it answered `tools/list` with something else".to_owned()));
            }
            // The tools of the pages before are as good as they were.
            Err(CallFailure::Refused { message: why, .. } | CallFailure::Protocol(why))
                if pages.pages > 0 =>
            {
                pages.problems.push((None, format!("its list of tools is incomplete: {why}")));
                break;
            }
            Err(failure) => return Err(failure),
        };
        ttl = ttl.or(page.ttl_ms.filter(|ms| *ms > 0).map(Duration::from_millis));
        cursor = pages.take(server, page);
        if cursor.is_none() {
            break;
        }
    }
    let ToolPages { offered, mut problems, .. } = pages;
    let listing = select_tools(server, settings, offered, &session.reader.task_only);
    problems.extend(listing.problems);
    Ok(ToolListing { problems, ttl, ..listing })
}

/// The pages of a list as far as they have come.
#[derive(Default)]
struct ToolPages {
    offered: Vec<RmcpTool>,
    names: BTreeSet<String>,
    cursors: BTreeSet<String>,
    pages: usize,
    problems: Vec<(Option<ToolName>, String)>,
}

impl ToolPages {
    /// Takes a page, and returns the cursor of the next one. Any text is a cursor, the empty one, too. The list ends without a
    /// cursor, at one that has come before, at a page with nothing but copies, and at a limit.
    fn take(&mut self, server: &str, mut page: ListToolsResult) -> Option<String> {
        for (tool, problem) in list_faults(&page) {
            let tool = tool.map(|tool| tool_name(server, &tool));
            if self.problems.len() < FAULTS_MAX && !self.problems.contains(&(tool.clone(), problem.clone())) {
                self.problems.push((tool, problem));
            }
        }
        self.pages += 1;
        let listed = page.tools.len();
        page.tools.retain(|tool| self.names.insert(tool.name.to_string()));
        let copies = listed - page.tools.len();
        let brings_nothing = listed > 0 && page.tools.is_empty();
        self.offered.append(&mut page.tools);
        let next = page.next_cursor;
        let problem = if self.offered.len() > TOOLS_MAX || next.is_some() && self.pages == PAGES_MAX {
            self.offered.truncate(TOOLS_MAX);
            format!("it lists more than {TOOLS_MAX} tools or {PAGES_MAX} pages; the rest is left out")
        } else if next.as_ref().is_some_and(|next| !self.cursors.insert(next.clone())) {
            "its list of tools repeats a cursor; reading stopped there".to_owned()
        } else if next.is_some() && brings_nothing {
            "its list of tools repeats itself, and is read to there".to_owned()
        } else if copies > 0 {
            let copies = format!(
                "it lists tools again that it has listed before ({copies}); the first of each counts"
            );
            self.problems.push((None, copies));
            return next;
        } else {
            return next;
        };
        self.problems.push((None, problem));
        None
    }
}

/// Selects the tools that can be called and are wanted.
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
    use crate::mcp::lenient::read_list;
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
    fn tools_are_sorted_and_filtered_by_settings() {
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
    fn task_only_tools_are_left_out() {
        let task_only = TaskOnly::default();
        task_only.note("research", true);
        let take =
            || names(&select_tools("all", &McpServer::default(), offered(&["echo", "research"]), &task_only));
        assert_eq!(take(), ["all.echo"]);
        task_only.note("research", false);
        assert_eq!(take(), ["all.echo", "all.research"]);
    }

    /// Pages of names with the cursor of the next one: the number of requested pages, the tools, and the
    /// problem.
    fn check(pages: &[(&[&str], Option<&str>)], asked: usize, tools: &[&str], problem: Option<&str>) {
        let mut taken = ToolPages::default();
        for (names, next) in pages {
            let mut page = ListToolsResult::with_all_items(offered(names));
            page.next_cursor = next.map(str::to_owned);
            if taken.take("all", page).is_none() {
                break;
            }
        }
        let names: Vec<&str> = taken.offered.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!((taken.pages, &names[..]), (asked, tools), "{pages:?}");
        let problems: Vec<&str> = taken.problems.iter().map(|(_, problem)| problem.as_str()).collect();
        assert_eq!(problems.len(), usize::from(problem.is_some()), "{problems:?}");
        assert!(problems.iter().zip(problem).all(|(found, problem)| found.contains(problem)), "{problems:?}");
    }

    #[test]
    fn a_list_ends_where_its_cursor_does_not_advance() {
        let (ab, cursor) = (&["a", "b"][..], Some("p1"));
        check(&[(&["a"], cursor), (&["b"], None)], 2, &["a", "b"], None);
        check(&[(&["a"], Some("")), (&["b"], None)], 2, &["a", "b"], None);
        check(&[(ab, cursor), (ab, cursor), (ab, cursor)], 2, ab, Some("repeats a cursor"));
        let circle: &[(&[&str], _)] =
            &[(&["a"], cursor), (&["b"], Some("p2")), (&["a"], cursor), (&["b"], None)];
        check(circle, 3, ab, Some("repeats a cursor"));
        check(&[(ab, cursor), (ab, Some("p2")), (ab, Some("p3"))], 2, ab, Some("repeats itself"));
        check(&[(ab, cursor), (&["b", "c", "a"], None)], 2, &["a", "b", "c"], Some("listed before (2)"));
        check(&[(&[], cursor), (&[], Some("p2")), (ab, None)], 3, ab, None);
    }

    #[test]
    fn the_faults_of_a_list_are_bounded() {
        let mut taken = ToolPages::default();
        let tools: Vec<_> = (0..FAULTS_MAX + 10)
            .map(|index| json!({"name": format!("t{index}"), "inputSchema": 7}))
            .collect();
        let page = read_list(json!({"tools": tools}), &TaskOnly::default()).unwrap();
        assert_eq!(taken.take("all", page), None);
        assert_eq!(taken.problems.len(), FAULTS_MAX);
        assert_eq!(taken.problems[0].0, Some(ToolName::from("all.t0")));
    }
}
