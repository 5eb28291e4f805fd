//! What `parse`, `tools prompt`, `tools list` and `tools remembered` say.

use serde_json::Value;
use std::fmt::Display;
use throughline::inspect::{Inspection, Origin, Outlook, Request};
use throughline::memory::Kept;
use throughline::prompt::{self, Counting};
use throughline::{Decision, Offer};
use throughline_engine::UnmatchedRule;

/// Standard input is a terminal where a reply was expected.
pub const PARSE_READS_STDIN: &str = "reading a reply from standard input; end it with Ctrl-D";
/// Below a call in the markup of a model.
pub const PARSE_LEAKED: &str = "it leaked as text: reported as a problem, and run only where the upstream's profile says leaked_calls = \"run\"";
/// `tools remembered` with nothing to show.
pub const NOTHING_REMEMBERED: &str = "nothing is remembered for ever\n";
/// Below the list.
pub const REMEMBERED_LEGEND: &str = "\ntake one back: throughline tools remembered --forget NUMBER\n";
/// Below what was taken back.
pub const FORGOTTEN: &str = "forgotten; such a call asks again\n";

/// `call 'demo_weather' (vcp)`, `refused (vcp)`.
pub fn parse_heading(request: &Request) -> String {
    let Request { format, name, tool, outlook, origin, .. } = request;
    let what = match (outlook, origin) {
        (Outlook::NotStarted { .. } | Outlook::Denied { .. }, _) => "refused",
        (_, Origin::Protocol) => "call",
        (_, Origin::Leaked) => "leaked call",
    };
    match tool {
        Some(tool) => format!("{what}: {tool} ({format})"),
        None if name.is_empty() => format!("{what}: a block without a name ({format})"),
        None => format!("{what}: {name} ({format})"),
    }
}

/// The arguments on one line.
pub fn parse_arguments(arguments: &Value) -> String {
    format!("arguments: {arguments}")
}

/// What would become of a call.
pub fn parse_outlook(outlook: &Outlook) -> String {
    match outlook {
        Outlook::Runs { rule } => format!("would run ({rule})"),
        Outlook::Asks { rule } => format!("would ask first ({rule})"),
        Outlook::Denied { rule, reason } => format!("would be denied: {reason} ({rule})"),
        Outlook::NotStarted { why } => format!("would not start: {why}"),
    }
}

/// The last line.
pub fn parse_summary(found: &Inspection) -> String {
    let count =
        |is: fn(&Outlook) -> bool| found.requests.iter().filter(|request| is(&request.outlook)).count();
    let plural =
        |number: usize, one: &str| if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") };
    format!(
        "{}: {} would run, {} would ask, {} refused; {}",
        plural(found.requests.len(), "call"),
        count(|outlook| matches!(outlook, Outlook::Runs { .. })),
        count(|outlook| matches!(outlook, Outlook::Asks { .. })),
        count(Outlook::is_refusal),
        plural(found.warnings.len(), "warning"),
    )
}

/// `tools("…")` of a prompt that means nothing.
pub fn no_tools_of(name: &str) -> String {
    format!("warning: tools(\"{name}\") is no source, group or tool of this agent")
}

/// A tool that cannot be written in the protocol.
pub fn tool_left_out(name: &str, why: &impl Display) -> String {
    format!("left out: {name}: {why}")
}

/// Why a tool is not offered, in a list.
pub fn withheld(why: &impl Display) -> String {
    format!("not offered: {why}")
}

/// A switch that switches nothing.
pub fn unknown_toggle(agent: &str, name: &str) -> String {
    format!(
        "warning: tool_toggles.\"{name}\" of the agent `{agent}` switches nothing: no tool or group is called so"
    )
}

/// A rule that is about no tool.
pub fn unmatched_rule(agent: &str, rule: &UnmatchedRule) -> String {
    format!("warning: policy of the agent `{agent}`: {rule}")
}

/// What a prompt costs, by source and in all.
pub fn prompt_cost(offer: &Offer) -> String {
    let about = match prompt::counting() {
        Counting::Estimated => "about ",
        Counting::Exact => "",
    };
    let rows: Vec<String> = offer
        .tokens_of_tools()
        .iter()
        .map(|row| format!("{} {} ({} tools)", row.source, row.tokens, row.tools))
        .collect();
    let tools = if rows.is_empty() { "no tools".to_owned() } else { rows.join(", ") };
    let beside = if offer.protocol.is_none() && !rows.is_empty() { " beside the prompt" } else { "" };
    format!("{about}{} tokens; tools{beside}: {tools}", offer.tokens())
}

/// An answer that always holds.
pub fn remembered(kept: &Kept) -> String {
    let answer = &kept.answer;
    let decision = match answer.decision {
        Decision::Approve => "allow",
        Decision::Deny => "deny",
    };
    let mut arguments: Vec<String> =
        answer.arguments.iter().map(|(which, test)| format!("{which} {test}")).collect();
    if answer.arguments_hash.is_some() {
        arguments.push("exactly the same arguments".to_owned());
    }
    let arguments = if arguments.is_empty() { "any arguments".to_owned() } else { arguments.join(", ") };
    let reason = answer.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!("{:>4}  {decision:<5}  {}  {arguments}{reason}", kept.number, answer.tool)
}
