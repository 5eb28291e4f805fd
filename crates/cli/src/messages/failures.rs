//! Failures: what, why, what to do.

use crate::exit::{Exit, Failure};
use std::fmt;
use std::io;
use std::path::Path;
use throughline::config::ConfigError;

/// The form of every failure.
pub fn failure(f: &mut fmt::Formatter<'_>, what: &str, why: &str, remedy: &str) -> fmt::Result {
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
pub fn config(error: &ConfigError) -> Failure {
    Failure::usage(error.to_string(), "", "")
}

/// The application cannot be built, or a turn not begun.
pub fn setup(error: &dyn fmt::Display) -> Failure {
    Failure::usage(
        error.to_string(),
        "",
        "`throughline upstreams` lists the endpoints and which keys are set",
    )
}

/// Standard input or output of `decode` failed.
pub fn pipe_failed(error: &io::Error) -> Failure {
    Failure::usage("the body could not be passed through", error.to_string(), "")
}

/// Standard input cannot be read.
pub fn input_failed(error: &io::Error) -> Failure {
    Failure::usage("standard input cannot be read", error.to_string(), "is it text in UTF-8?")
}

/// Standard output cannot be written.
pub fn output_failed(error: &io::Error) -> Failure {
    Failure::usage("standard output cannot be written", error.to_string(), "")
}

/// The terminal cannot be used.
pub fn terminal_failed(error: &io::Error) -> Failure {
    Failure::usage("the terminal cannot be used", error.to_string(), "throughline chat --plain")
}

/// Signals cannot be listened to.
pub fn no_signals(error: &io::Error) -> Failure {
    Failure::usage("Ctrl-C cannot be listened to", error.to_string(), "")
}

/// No runtime.
pub fn no_runtime(error: &io::Error) -> Failure {
    Failure::usage(
        "no threads can be started",
        error.to_string(),
        "is there a limit on processes (ulimit -u)?",
    )
}

/// The control group that is named cannot be used.
pub fn no_control_groups(folder: &str, why: &str) -> Failure {
    Failure::usage(
        format!("the control group {folder} cannot be used"),
        why.to_owned(),
        "a folder of a cgroup2 hierarchy that is this user's own and empty; control_groups = \"auto\" uses one only where it is",
    )
}

/// The prompt is empty.
pub fn nothing_asked() -> Failure {
    Failure::usage("there is nothing to ask", "the prompt is empty", "throughline ask \"What time is it?\"")
}

/// A picture cannot be sent.
pub fn no_picture(path: &Path, why: &str) -> Failure {
    Failure::usage(format!("{} cannot be sent as a picture", path.display()), why, "")
}

/// A folder of `[tools.files]` cannot be used.
pub fn bad_root(folder: &Path, error: &dyn fmt::Display) -> Failure {
    Failure::usage(
        format!("the folder {} cannot be opened to tools", folder.display()),
        error.to_string(),
        "roots under [tools.files] in throughline.toml",
    )
}

/// There is no tool of that name.
pub fn no_such_tool(name: &str, closest: &[&str]) -> Failure {
    let remedy = match closest {
        [] => "throughline tools list".to_owned(),
        names => format!("{}, or throughline tools list", names.join(", ")),
    };
    Failure::usage(format!("there is no tool `{name}`"), "", remedy)
}

/// The file of pinned definitions cannot be used.
pub fn pins(error: &throughline_tools::mcp::PinsError) -> Failure {
    Failure::usage(
        "the definitions that were agreed to cannot be read or written",
        error.to_string(),
        "mend the file, or remove it to agree anew to what MCP servers say next",
    )
}

/// Nobody says where home is.
pub fn no_data_folder() -> Failure {
    let variable = crate::data::VARIABLE;
    Failure::usage("there is no folder to keep things in", "HOME is not set", format!("{variable}=FOLDER"))
}

/// `tools approve` with a name that has not changed.
pub fn nothing_to_approve(name: &str, closest: &[&str]) -> Failure {
    let remedy = match closest {
        [] => "throughline tools changes".to_owned(),
        names => format!("{}, or throughline tools changes", names.join(", ")),
    };
    Failure::usage(format!("no changed definition of `{name}` waits"), "", remedy)
}

/// There is no text protocol of that name.
pub fn no_such_protocol(name: &str) -> Failure {
    let names = throughline::config::Protocol::NAMES.join(", ");
    Failure::usage(
        format!("there is no text protocol `{name}`"),
        "",
        format!("--protocol with one of {names}"),
    )
}

/// The agent that was chosen is not there; the configuration has been read, so this does not occur.
pub fn no_agent() -> Failure {
    Failure::usage("there is no agent", "", "--agent NAME, or [agents.default] in throughline.toml")
}

/// A file cannot be read.
pub fn file_failed(file: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("{} cannot be read", file.display()), error.to_string(), "is it text in UTF-8?")
}

/// Remembered answers cannot be read or written.
pub fn memory(error: &throughline::memory::MemoryError) -> Failure {
    Failure::usage(error.to_string(), "", "")
}

/// An answer that should always hold was not kept.
pub fn not_remembered(error: &throughline::memory::MemoryError) -> Failure {
    let remedy = format!("{}=FOLDER, one that can be written to", crate::data::VARIABLE);
    Failure::usage("your answer was not remembered: the next turn asks again", error.to_string(), remedy)
}

/// `tools remembered --forget` with a number that is not there.
pub fn nothing_remembered(number: u64) -> Failure {
    Failure::usage(format!("no answer of number {number} is remembered"), "", "throughline tools remembered")
}

/// Arguments of `tools call` are not JSON.
pub fn arguments_not_json(error: &serde_json::Error) -> Failure {
    Failure::usage(
        "the arguments are not JSON",
        error.to_string(),
        "an object in single quotes: '{\"city\": \"Paris\"}'",
    )
}

/// Arguments do not fit the tool's schema.
pub fn arguments_refused(name: &str, why: &str) -> Failure {
    Failure::usage("the arguments do not fit", why, format!("throughline tools show {name}"))
}

/// A tool that changes something, and nobody to ask.
pub fn tool_needs_approval(name: &str) -> Failure {
    Failure {
        exit: Exit::ToolFailed,
        what: format!("`{name}` was not run"),
        why: "it changes something, and there is no terminal to ask at".to_owned(),
        remedy: "--approve, if you want it to".to_owned(),
    }
}

/// A tool asks something, and there is nobody to answer.
pub fn tool_asks_nobody(name: &str, question: &str) -> String {
    format!(
        "⚠ question of `{name}`: {question}\n  declined: there is no terminal to answer at\n  try: the same in a terminal, with standard input and error left to it"
    )
}

/// The demo model cannot be started.
#[cfg(feature = "demo")]
pub fn no_demo(error: &io::Error) -> Failure {
    Failure::usage("the demo model cannot be started", error.to_string(), "--model UPSTREAM/MODEL")
}

/// This build has no demo model.
#[cfg(not(feature = "demo"))]
pub fn without_demo() -> Failure {
    Failure::usage("no model is chosen", "this build has no demo model", "--model UPSTREAM/MODEL")
}

/// A scenario file cannot be used.
#[cfg(feature = "demo")]
pub fn bad_script(why: &str) -> Failure {
    Failure::usage("the scenario cannot be used", why, "`throughline mock --help` has an example")
}

/// The address cannot be had.
#[cfg(feature = "demo")]
pub fn cannot_listen(address: std::net::SocketAddr, error: &io::Error) -> Failure {
    Failure::usage(
        format!("cannot listen on {address}"),
        error.to_string(),
        "another port, or port 0 for any free one",
    )
}

/// A mode that there is not.
pub fn no_such_mode(name: &str) -> Failure {
    Failure::usage(format!("there is no mode `{name}`"), "modes are native, text and auto", "/mode text")
}
