//! Output of `parse`, `tools prompt`, `tools list` and `tools remembered`.

use serde_json::Value;
use std::fmt::Display;
use throughline::approval_store::StoredApproval;
use throughline::inspect::{CallOrigin, CallPrediction, InspectedCall, ReplyInspection};
use throughline::prompt::{self, TokenCounting};
use throughline::{ApprovalDecision, ToolSelection};
use throughline_engine::UnmatchedRule;

/// Standard input is a terminal where a reply was expected.
pub(crate) const PARSE_READS_STDIN: &str = "reading a reply from standard input; end it with Ctrl-D";
/// Below a call in the markup of a model.
pub(crate) const PARSE_LEAKED: &str = "leaked as text: reported as a problem; it runs only if the upstream's profile sets leaked_calls = \"run\"";
/// `tools remembered` with nothing to show.
pub(crate) const NOTHING_REMEMBERED: &str = "no remembered approvals\n";
/// Below the list.
pub(crate) const REMEMBERED_LEGEND: &str = "\ndelete one: throughline tools remembered --forget NUMBER\n";
/// Below what was taken back.
pub(crate) const FORGOTTEN: &str = "deleted; such calls ask again\n";

/// `call 'demo_weather' (vcp)`, `refused (vcp)`.
pub(crate) fn parse_heading(request: &InspectedCall) -> String {
    let InspectedCall { format, name, tool, prediction: outlook, origin, .. } = request;
    let what = match (outlook, origin) {
        (CallPrediction::NotStarted { .. } | CallPrediction::Denied { .. }, _) => "refused",
        (_, CallOrigin::Protocol) => "call",
        (_, CallOrigin::Leaked) => "leaked call",
    };
    match tool {
        Some(tool) => format!("{what}: {tool} ({format})"),
        None if name.is_empty() => format!("{what}: a block without a name ({format})"),
        None => format!("{what}: {name} ({format})"),
    }
}

/// The arguments on one line.
pub(crate) fn parse_arguments(arguments: &Value) -> String {
    format!("arguments: {arguments}")
}

/// Predicted outcome of a call.
pub(crate) fn parse_outlook(outlook: &CallPrediction) -> String {
    match outlook {
        CallPrediction::Runs { rule } => format!("would run ({rule})"),
        CallPrediction::Asks { rule } => format!("would ask first ({rule})"),
        CallPrediction::Denied { rule, reason } => format!("would be denied: {reason} ({rule})"),
        CallPrediction::NotStarted { why } => format!("would not start: {why}"),
    }
}

/// The last line.
pub(crate) fn parse_summary(inspection: &ReplyInspection) -> String {
    let count = |is: fn(&CallPrediction) -> bool| {
        inspection.calls.iter().filter(|request| is(&request.prediction)).count()
    };
    let plural =
        |number: usize, one: &str| if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") };
    format!(
        "{}: {} would run, {} would ask, {} refused; {}",
        plural(inspection.calls.len(), "call"),
        count(|outlook| matches!(outlook, CallPrediction::Runs { .. })),
        count(|outlook| matches!(outlook, CallPrediction::Asks { .. })),
        count(CallPrediction::is_refusal),
        plural(inspection.warnings.len(), "warning"),
    )
}

/// `tools("…")` of a prompt that means nothing.
pub(crate) fn no_tools_of(name: &str) -> String {
    format!("warning: tools(\"{name}\") is not a source, group or tool of this agent")
}

/// A tool that cannot be written in the protocol.
pub(crate) fn tool_left_out(name: &str, why: &impl Display) -> String {
    format!("left out: {name}: {why}")
}

/// Why a tool is not offered, in a list.
pub(crate) fn withheld(why: &impl Display) -> String {
    format!("not offered: {why}")
}

/// A switch that switches nothing.
pub(crate) fn unknown_toggle(agent: &str, name: &str) -> String {
    format!(
        "warning: tool_toggles.\"{name}\" of the agent `{agent}` has no effect: no tool or group has this name"
    )
}

/// Warning about a key of the configuration that has another name today.
pub(crate) fn renamed_key(file: &std::path::Path, key: &throughline::config::RenamedKey) -> String {
    let throughline::config::RenamedKey { section, old, new } = key;
    format!(
        "warning: {}: [{section}] `{old}` is called `{new}` now; the old name still works",
        file.display()
    )
}

/// A rule that is about no tool.
pub(crate) fn unmatched_rule(agent: &str, rule: &UnmatchedRule) -> String {
    format!("warning: policy of the agent `{agent}`: {rule}")
}

/// Size of a prompt, by source and in total.
pub(crate) fn prompt_cost(offer: &ToolSelection) -> String {
    let about = match prompt::counting() {
        TokenCounting::Estimated => "about ",
        TokenCounting::Exact => "",
    };
    let rows: Vec<String> = offer
        .tool_tokens()
        .iter()
        .map(|row| format!("{} {} ({} tools)", row.source, row.tokens, row.tools))
        .collect();
    let tools = if rows.is_empty() { "no tools".to_owned() } else { rows.join(", ") };
    let suffix = if offer.protocol.is_none() && !rows.is_empty() { " sent separately" } else { "" };
    format!("{about}{} tokens; tools{suffix}: {tools}", offer.tokens())
}

/// An answer that always holds.
pub(crate) fn remembered(stored: &StoredApproval) -> String {
    let answer = &stored.answer;
    let decision = match answer.decision {
        ApprovalDecision::Approve => "allow",
        ApprovalDecision::Deny => "deny",
    };
    let mut arguments: Vec<String> =
        answer.arguments.iter().map(|(which, test)| format!("{which} {test}")).collect();
    if answer.arguments_hash.is_some() {
        arguments.push("exactly these arguments".to_owned());
    }
    let arguments = if arguments.is_empty() { "any arguments".to_owned() } else { arguments.join(", ") };
    let reason = answer.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!("{:>4}  {decision:<5}  {}  {arguments}{reason}", stored.number, answer.tool)
}
