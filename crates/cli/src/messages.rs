//! Everything the command says to people, in one place, so that tone and truth can be reviewed together.

use std::fmt;

/// The form of every failure: what, why, remedy.
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

/// Standard input is a terminal where a response body was expected.
pub const DECODE_READS_STDIN: &str = "reading a response body from standard input; end it with Ctrl-D (usually: throughline decode --api API < body)";

/// Long help of `decode`.
pub const DECODE_HELP: &str = "\
Examples:
  curl -sN https://api.openai.com/v1/chat/completions -d @request.json … | throughline decode --api openai-chat
  throughline decode --api anthropic < recorded.sse
  throughline decode --api ollama --events < recorded.ndjson     one JSON line for each thing the stream said
  throughline decode --api openai-chat --recover < leaked.sse    tool calls written as text become calls

The object printed:
  text, reasoning, refusal   deltas joined, nothing added
  tool_calls                 [{id, name, arguments}], and `raw` where `arguments` is null: a call that was cut off
                             or is not JSON is never completed, dropped or turned into {}
  finish_reason              stop length tool_calls content_filter pause error other, or null; `finish_reason_raw`
                             is the upstream's own word
  end                        complete, truncated (the body just stopped) or error
  error, usage               as the upstream put them, or null
  choices                    all of them, if there is more than one
  hosted, images, citations, problems
                             only if there are any: tools the provider ran itself, pictures, sources, and what was
                             wrong with the stream and what was done about it

Exit code: 0 whenever the body could be read, also if it holds an error; 1 for wrong arguments or unreadable input.";

/// Reading or writing a pipe failed.
pub fn pipe_failed(error: &std::io::Error) -> (String, String, String) {
    ("the body could not be passed through".to_owned(), error.to_string(), String::new())
}
