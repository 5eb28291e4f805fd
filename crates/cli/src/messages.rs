//! Everything the command says to people, in one place, so that tone and truth can be reviewed together.
//!
//! Errors and help are English. What the chat says by itself stands in [`Words`], English and Chinese side by side.

mod failures;
mod help;
mod question_words;
mod words;

pub use failures::*;
pub use help::*;
pub use words::{Lang, Words};

/// Standard input is a terminal where a response body was expected.
pub const DECODE_READS_STDIN: &str = "reading a response body from standard input; end it with Ctrl-D (usually: throughline decode --api API < body)";

/// Heading of the upstreams of the configuration.
pub const UPSTREAMS_CONFIGURED: &str = "configured";
/// Heading of those known by name.
pub const UPSTREAMS_KNOWN: &str = "known by name";
/// How to use one.
pub const UPSTREAMS_USE: &str =
    "\nuse one: throughline chat --model NAME/MODEL      without any: the built-in demo model\n";

/// What the marks in the list of tools mean.
pub fn tools_legend(agent: &str) -> String {
    format!("\n✔ offered to the agent `{agent}`; pure, read and cosmetic run without asking, the rest asks\n")
}

/// A question about one tool on the command line, answered by a line.
pub fn question(words: Words, tool: &str, arguments: &str) -> String {
    let indented: String = arguments.lines().map(|line| format!("  {line}\n")).collect();
    format!("{} {tool}\n{indented}[y/N] ", words.allow_question())
}
