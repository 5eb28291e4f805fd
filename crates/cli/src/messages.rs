//! Everything the command says to people, in one place, so that tone and truth can be reviewed together.
//!
//! Errors and help are English. What the chat says by itself stands in [`UiText`], English and Chinese side by side.

mod connect;
mod doctor;
mod failures;
mod help;
mod history_texts;
mod inspection_texts;
mod question_texts;
mod serve;
mod ui_text;

pub(crate) use failures::*;
pub(crate) use help::*;
pub(crate) use history_texts::*;
pub(crate) use inspection_texts::*;
pub(crate) use serve::*;
pub(crate) use ui_text::{UiLanguage, UiText};

/// Standard input is a terminal where a response body was expected.
pub(crate) const DECODE_READS_STDIN: &str = "reading a response body from standard input; end it with Ctrl-D (usually: throughline decode --api API < body)";

/// Heading of the upstreams of the configuration.
pub(crate) const UPSTREAMS_CONFIGURED: &str = "configured";
/// Heading of those known by name.
pub(crate) const UPSTREAMS_KNOWN: &str = "known by name";
/// Usage of `--upstream`.
pub(crate) const UPSTREAMS_USE: &str =
    "\nconnect one: throughline connect NAME      use one: throughline chat --model NAME/MODEL\n";

/// `tools changes` with nothing to show.
pub(crate) const NO_CHANGES: &str = "no definitions of MCP tools have changed\n";
/// Below the differences.
pub(crate) const CHANGES_LEGEND: &str =
    "\n- approved, + current; off until you approve: throughline tools approve NAME\n";
/// Below what was agreed to.
pub(crate) const APPROVED: &str = "approved; a running program uses it the next time it starts or connects\n";

/// Most characters of a fault in front of something else that was asked for.
const FAULT_CHARS_MAX: usize = 240;

/// Something that is wrong with a source of tools.
pub(crate) fn source_fault(fault: &throughline_tools::SourceFault) -> String {
    let tool = fault.tool.as_ref().map(|tool| format!(" · {tool}")).unwrap_or_default();
    let mut lines = fault.message.trim_end().lines();
    let first = lines.next().unwrap_or_default();
    let first = first.strip_suffix(". It said:").unwrap_or(first);
    let mut line: String = first.chars().take(FAULT_CHARS_MAX).collect();
    let is_cut = line.len() < first.len();
    if is_cut {
        line.push('…');
    }
    let more = if is_cut || lines.next().is_some() || fault.remedy.is_some() {
        " · for details: throughline doctor"
    } else {
        ""
    };
    format!("⚠ {}{tool}: {line}{more}", fault.source)
}

/// A source that has not said anything in time.
pub(crate) fn silent_source(source: &str, limit: std::time::Duration) -> String {
    format!("⚠ {source}: no answer after {} s; its tools are not listed", limit.as_secs())
}

/// Legend of the marks in the list of tools.
pub(crate) fn tools_legend(agent: &str) -> String {
    format!(
        "\n✔ offered to the agent `{agent}`; pure, read and cosmetic run without asking, others ask first\n"
    )
}

/// A question about one tool on the command line, answered by a line.
pub(crate) fn approval_prompt(words: UiText, tool: &str, arguments: &str) -> String {
    let indented: String = arguments.lines().map(|line| format!("  {line}\n")).collect();
    format!("{} {tool}\n{indented}[y/N] ", words.allow_question())
}
