//! Failures: what, why, what to do.

use crate::exit::{CliExit, CliFailure};
use std::fmt;
use std::io;
use std::path::Path;
use throughline::config::ConfigError;

/// The form of every failure.
pub(crate) fn failure(f: &mut fmt::Formatter<'_>, what: &str, why: &str, remedy: &str) -> fmt::Result {
    write!(f, "error: {what}")?;
    if !why.is_empty() {
        write!(f, "\n  why: {why}")?;
    }
    if !remedy.is_empty() {
        write!(f, "\n  try: {remedy}")?;
    }
    Ok(())
}

/// The configuration is wrong; the error says where by itself, as a compiler does.
pub(crate) fn config(error: &ConfigError) -> CliFailure {
    CliFailure::usage(error.to_string(), "", "")
}

/// The application cannot be built, or a turn not begun.
pub(crate) fn setup(error: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        error.to_string(),
        "",
        "`throughline upstreams` lists the endpoints and which keys are set",
    )
}

/// Standard input or output of `decode` failed.
pub(crate) fn pipe_failed(error: &io::Error) -> CliFailure {
    CliFailure::usage("the body could not be read or written", error.to_string(), "")
}

/// Standard input cannot be read.
pub(crate) fn input_failed(error: &io::Error) -> CliFailure {
    CliFailure::usage("standard input cannot be read", error.to_string(), "is it text in UTF-8?")
}

/// Standard output cannot be written.
pub(crate) fn output_failed(error: &io::Error) -> CliFailure {
    CliFailure::usage("standard output cannot be written", error.to_string(), "")
}

/// The terminal cannot be used.
pub(crate) fn terminal_failed(error: &io::Error) -> CliFailure {
    CliFailure::usage("the terminal cannot be used", error.to_string(), "throughline chat --plain")
}

/// Signals cannot be listened to.
pub(crate) fn no_signals(error: &io::Error) -> CliFailure {
    CliFailure::usage("Ctrl-C cannot be handled", error.to_string(), "")
}

/// No runtime.
pub(crate) fn no_runtime(error: &io::Error) -> CliFailure {
    CliFailure::usage(
        "no threads can be started",
        error.to_string(),
        "is there a limit on processes (ulimit -u)?",
    )
}

/// The control group that is named cannot be used.
pub(crate) fn no_control_groups(folder: &str, why: &str) -> CliFailure {
    CliFailure::usage(
        format!("the control group {folder} cannot be used"),
        why.to_owned(),
        "a folder of a cgroup2 hierarchy that is this user's own and empty; control_groups = \"auto\" uses one only where it is",
    )
}

/// The prompt is empty.
pub(crate) fn nothing_asked() -> CliFailure {
    CliFailure::usage(
        "there is nothing to ask",
        "the prompt is empty",
        "throughline ask \"What time is it?\"",
    )
}

/// A picture cannot be sent.
pub(crate) fn no_picture(path: &Path, why: &str) -> CliFailure {
    CliFailure::usage(format!("{} cannot be sent as an image", path.display()), why, "")
}

/// A folder of `[tools.files]` cannot be used.
pub(crate) fn bad_root(folder: &Path, error: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        format!("the folder {} cannot be made available to tools", folder.display()),
        error.to_string(),
        "check `roots` under [tools.files] in throughline.toml",
    )
}

/// There is no tool of that name.
pub(crate) fn no_such_tool(name: &str, suggestions: &[&str]) -> CliFailure {
    let remedy = match suggestions {
        [] => "throughline tools list".to_owned(),
        names => format!("{}, or throughline tools list", names.join(", ")),
    };
    CliFailure::usage(format!("there is no tool `{name}`"), "", remedy)
}

/// The file of pinned definitions cannot be used.
pub(crate) fn pins(error: &throughline_tools::mcp::PinsError) -> CliFailure {
    CliFailure::usage(
        "the approved tool definitions cannot be read or written",
        error.to_string(),
        "fix the file, or delete it to approve the definitions of MCP servers again",
    )
}

/// Nobody says where home is.
pub(crate) fn no_data_folder() -> CliFailure {
    let variable = crate::data_dir::DATA_VARIABLE;
    CliFailure::usage("there is no data folder", "HOME is not set", format!("{variable}=FOLDER"))
}

/// `tools approve` with a name that has not changed.
pub(crate) fn nothing_to_approve(name: &str, suggestions: &[&str]) -> CliFailure {
    let remedy = match suggestions {
        [] => "throughline tools changes".to_owned(),
        names => format!("{}, or throughline tools changes", names.join(", ")),
    };
    CliFailure::usage(format!("`{name}` has no changed definition to approve"), "", remedy)
}

/// There is no text protocol of that name.
pub(crate) fn no_such_protocol(name: &str) -> CliFailure {
    let names = throughline::config::TextProtocolKind::NAMES.join(", ");
    CliFailure::usage(
        format!("there is no text protocol `{name}`"),
        "",
        format!("--protocol with one of {names}"),
    )
}

/// The agent that was chosen is not there; the configuration has been read, so this does not occur.
pub(crate) fn no_agent() -> CliFailure {
    CliFailure::usage("there is no agent", "", "--agent NAME, or [agents.default] in throughline.toml")
}

/// A file cannot be read.
pub(crate) fn file_failed(file: &Path, error: &io::Error) -> CliFailure {
    CliFailure::usage(format!("{} cannot be read", file.display()), error.to_string(), "is it text in UTF-8?")
}

/// Remembered answers cannot be read or written.
pub(crate) fn memory(error: &throughline::approval_store::ApprovalStoreError) -> CliFailure {
    CliFailure::usage(error.to_string(), "", "")
}

/// An answer that should always hold was not kept.
pub(crate) fn not_remembered(error: &throughline::approval_store::ApprovalStoreError) -> CliFailure {
    let remedy = format!("{}=FOLDER, a writable one", crate::data_dir::DATA_VARIABLE);
    CliFailure::usage("your answer was not remembered: the next turn asks again", error.to_string(), remedy)
}

/// `tools remembered --forget` with a number that is not there.
pub(crate) fn nothing_remembered(number: u64) -> CliFailure {
    CliFailure::usage(format!("there is no remembered approval {number}"), "", "throughline tools remembered")
}

/// Arguments of `tools call` are not JSON.
pub(crate) fn arguments_not_json(error: &serde_json::Error) -> CliFailure {
    CliFailure::usage(
        "the arguments are not JSON",
        error.to_string(),
        "an object in single quotes: '{\"city\": \"Paris\"}'",
    )
}

/// Arguments do not fit the tool's schema.
pub(crate) fn arguments_refused(name: &str, why: &str) -> CliFailure {
    CliFailure::usage("the arguments do not fit", why, format!("throughline tools show {name}"))
}

/// A tool that changes something, and nobody to ask.
pub(crate) fn tool_needs_approval(name: &str) -> CliFailure {
    CliFailure {
        exit: CliExit::ToolFailed,
        what: format!("`{name}` was not run"),
        why: "it has side effects, and there is no terminal to ask on".to_owned(),
        remedy: "--approve runs it without asking".to_owned(),
    }
}

/// A tool asks something, and there is nobody to answer.
pub(crate) fn tool_asks_nobody(name: &str, question: &str) -> String {
    format!(
        "⚠ question of `{name}`: {question}\n  declined: there is no terminal to answer on\n  try: run it in a terminal, without redirecting standard input or error"
    )
}

/// The demo model cannot be started.
#[cfg(feature = "demo")]
pub(crate) fn no_demo(error: &io::Error) -> CliFailure {
    CliFailure::usage("the demo model cannot be started", error.to_string(), "--model UPSTREAM/MODEL")
}

/// This build has no demo model.
#[cfg(not(feature = "demo"))]
pub(crate) fn without_demo() -> CliFailure {
    CliFailure::usage("no model is chosen", "this build has no demo model", "--model UPSTREAM/MODEL")
}

/// A scenario file cannot be used.
#[cfg(feature = "demo")]
pub(crate) fn bad_script(why: &str) -> CliFailure {
    CliFailure::usage("the scenario cannot be used", why, "`throughline mock --help` has an example")
}

/// The address cannot be had.
#[cfg(feature = "demo")]
pub(crate) fn cannot_listen(address: std::net::SocketAddr, error: &io::Error) -> CliFailure {
    CliFailure::usage(
        format!("cannot listen on {address}"),
        error.to_string(),
        "another port, or port 0 for any free one",
    )
}

/// A mode that there is not.
pub(crate) fn no_such_mode(name: &str) -> CliFailure {
    CliFailure::usage(format!("there is no mode `{name}`"), "modes are native, text and auto", "/mode text")
}
