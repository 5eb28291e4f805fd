//! Every sentence of this crate for people, and the few for models.
//!
//! Sentences are in English and carry a stable code; a surface in another language translates by code.

use crate::event::TurnFault;
use crate::input::{FailureKind, UpstreamFailure};
use crate::policy::address::shown_host;
use crate::policy::loop_guard::CallCycle;
use crate::text::summary;
use crate::tool::{AddressRole, AddressRule, Effect, OfferedTool};
use throughline_wire::text_calls::FindingKind;
use throughline_wire::{CallArguments, ProblemKind, UpstreamError, display_escape};

// --- failures ---

fn fault(code: &str, what: &str, why: impl Into<String>, remedy: &str, retryable: bool) -> TurnFault {
    TurnFault {
        code: code.into(),
        what: what.into(),
        why: display_escape::escape(&why.into()).into_owned(),
        remedy: remedy.into(),
        retryable,
        status: None,
        retry_after_ms: None,
    }
}

pub(crate) fn no_upstream() -> TurnFault {
    let remedy = "Configure an upstream, or run without a configuration to use the demo model.";
    fault("no_upstream", "No model is available.", "No upstream is configured for this agent.", remedy, false)
}

pub(crate) fn truncated() -> TurnFault {
    let why = "The connection closed without the protocol's end marker.";
    fault("upstream_lost", "The model's reply ended early.", why, "Try again.", true)
}

pub(crate) fn upstream_error(error: &UpstreamError) -> TurnFault {
    let mut why = error.message.clone();
    for detail in [&error.kind, &error.code].into_iter().flatten() {
        why.push_str(&format!(" ({detail})"));
    }
    fault(
        "upstream_error",
        "The upstream reported an error.",
        why,
        "Try again, or choose another model.",
        true,
    )
}

pub(crate) fn content_filter(raw: Option<&str>) -> TurnFault {
    let why = format!("The upstream's filter stopped the reply ({}).", raw.unwrap_or("content_filter"));
    fault(
        "content_filter",
        "The reply was blocked by a content filter.",
        why,
        "Rephrase the message, or choose another model.",
        false,
    )
}

pub(crate) fn unexpected_finish(raw: Option<&str>) -> TurnFault {
    let why = format!(
        "The upstream ended the reply with `{}`; none of its calls was run.",
        raw.unwrap_or("unknown")
    );
    fault(
        "upstream_finish",
        "The reply did not finish normally.",
        why,
        "Try again, or choose another model.",
        true,
    )
}

pub(crate) fn upstream_failed(failure: &UpstreamFailure) -> TurnFault {
    let why = match failure.status {
        Some(status) => format!("HTTP {status}: {}", failure.message),
        None => failure.message.clone(),
    };
    let again = "Try again in a moment, or choose another model.";
    let (code, what, remedy) = match failure.kind {
        FailureKind::Connect => {
            ("upstream_unreachable", "The upstream cannot be reached.", "Check the address and the network.")
        }
        FailureKind::FirstByteTimeout => ("upstream_timeout", "The upstream did not answer in time.", again),
        FailureKind::PromptTimeout => (
            "upstream_timeout",
            "The model did not begin to answer in time.",
            "Raise `first_byte_ms` in the timeouts of the upstream, or send less: fewer tools, a shorter conversation.",
        ),
        FailureKind::IdleTimeout => (
            "upstream_timeout",
            "The upstream stopped sending.",
            "Try again in a moment, or raise `idle_ms` in the timeouts of the upstream.",
        ),
        FailureKind::TotalTimeout => (
            "upstream_timeout",
            "The reply took longer than allowed.",
            "Raise the total timeout, or request a shorter reply.",
        ),
        FailureKind::Broken => ("upstream_lost", "The connection to the upstream was lost.", again),
        FailureKind::RateLimited => ("rate_limited", "The upstream is rate limiting requests.", again),
        FailureKind::Overloaded => ("overloaded", "The upstream is overloaded.", again),
        FailureKind::Status if failure.is_retryable() => {
            ("upstream_error", "The upstream could not answer.", again)
        }
        FailureKind::Status => (
            "upstream_error",
            "The upstream refused the request.",
            "The same request will be rejected again: read the upstream's message, or choose another model.",
        ),
        FailureKind::QuotaExhausted => (
            "insufficient_quota",
            "The upstream's quota or credit is used up.",
            "Add credit at the provider, or choose another model.",
        ),
        FailureKind::ModelNotFound => (
            "model_not_found",
            "The upstream does not have this model.",
            "Choose an available model: GET /v1/models lists the configured ones.",
        ),
        FailureKind::WrongAddress => (
            "upstream_error",
            "The upstream has no endpoint at this address.",
            "Check `base_url` of the upstream: most end with /v1, and the rest of the path is added.",
        ),
        FailureKind::Unauthorized => {
            ("unauthorized", "The upstream rejected the key.", "Check the key and its environment variable.")
        }
        FailureKind::NotAllowed => (
            "access_denied",
            "The upstream does not allow this for the key's account.",
            "Read the upstream's message: the model, the region or the account is not enabled. Or choose another model.",
        ),
        FailureKind::ContentFiltered => (
            "content_filter",
            "The upstream's filter refused the request.",
            "Rephrase the message, or choose another model.",
        ),
        // The message gives the reason and the remedy; the mode is never switched silently.
        FailureKind::ToolsUnsupported => (
            "tool_calling_unsupported",
            "This upstream or model does not support native tool calling.",
            "Use text mode, in which the model writes its calls as text: `/mode text` in the chat, `--mode text` for the command, or `mode = \"text\"` for the agent. Or choose a model that can call tools.",
        ),
        FailureKind::ContextTooLong => (
            "context_too_long",
            "The conversation is too long for this model.",
            "Choose a model with a longer context, or remove old messages, pictures or files.",
        ),
        FailureKind::Unsendable => {
            ("request_unsendable", "The request could not be sent.", "Check the upstream's configuration.")
        }
    };
    TurnFault {
        status: failure.status,
        retry_after_ms: failure.retry_after_ms,
        ..fault(code, what, why, remedy, failure.is_retryable())
    }
}

/// An error that came inside a stream before the first token, as a failure that may be tried again.
pub(crate) fn as_failure(fault: &TurnFault) -> UpstreamFailure {
    UpstreamFailure {
        kind: FailureKind::Broken,
        status: None,
        message: fault.why.clone(),
        retry_after_ms: None,
    }
}

/// During the stream: what was shown stays, and the reply can be continued, unless the same request would be
/// refused again (account, content, length).
pub(crate) fn mid_stream(mut fault: TurnFault, failure: Option<&UpstreamFailure>) -> TurnFault {
    if failure.is_some_and(|failure| failure.kind != FailureKind::Status && !failure.is_retryable()) {
        return fault;
    }
    fault.remedy = "The text so far is saved. Send “continue” to resume from there.".into();
    fault.retryable = true;
    fault
}

// --- notices ---

pub(crate) fn length() -> String {
    "The reply reached its token limit. Send “continue” to resume.".into()
}

pub(crate) fn stopped() -> String {
    "Stopped by the user.".into()
}

pub(crate) fn interrupted() -> String {
    "The process that wrote this reply stopped before it was complete. The text so far is saved.".into()
}

pub(crate) fn limit(iterations: u32) -> String {
    format!("The limit of {iterations} tool rounds is reached; the model answers with the results so far.")
}

pub(crate) fn shortened(results: usize) -> String {
    let (them, were) = if results == 1 { ("one tool result", "was") } else { ("old tool results", "were") };
    format!(
        "The conversation is too long for this model: {them} {were} shortened to beginning and end for it. Nothing is lost here; a new conversation or a model with a longer context sees all of it."
    )
}

pub(crate) fn loop_stopped() -> String {
    "The model repeated the same calls with the same results; it answers with the results so far.".into()
}

pub(crate) fn empty_reply() -> String {
    "The model sent an empty reply.".into()
}

pub(crate) fn thinking_alone() -> String {
    "The model produced reasoning but no answer, even after being asked for one.".into()
}

/// Note to a model whose step had no answer.
pub(crate) fn answer_missing() -> String {
    "[Note from the system: you produced reasoning but no answer. Your reasoning is not shown: write your answer now.]".into()
}

// --- questions ---

/// Question about a call. Arguments come last: text that a model writes in them cannot pass for a sentence of
/// this server after them.
pub(crate) fn approval_question(tool: &OfferedTool, arguments: Option<&CallArguments>) -> String {
    let tool_text = tool_text(tool);
    let effect_text = match tool.effect {
        Effect::Pure | Effect::Read => "changes nothing",
        Effect::Cosmetic => "changes only what is shown",
        Effect::Idempotent | Effect::Write => "changes something",
        Effect::External => "may act outside this machine",
    };
    let arguments_line =
        arguments.map(|arguments| summary::of_value(&arguments.value)).filter(|line| !line.is_empty());
    let arguments_text = arguments_line.map(|line| format!(" Arguments: {line}")).unwrap_or_default();
    format!("Run {tool_text}? It {effect_text}.{arguments_text}")
}

/// Longest title in a question, in characters.
const TITLE_CHARS_MAX: usize = 60;

/// A tool as people are asked about it: `files.write (from mcp:files, titled “Write a file”)`. The title
/// comes from the provider of the tool, so it never replaces the name, and nothing in it ends its quotation.
fn tool_text(tool: &OfferedTool) -> String {
    let (name, source) =
        (display_escape::escape_once(tool.name.as_str()), display_escape::escape_once(&tool.source));
    let title = tool.title.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() || title == tool.name.as_str() || tool.name.as_str().ends_with(&format!(".{title}")) {
        return format!("{name} (from {source})");
    }
    let mut title = title.replace(['“', '”', '„', '‟', '"', '＂', '«', '»'], "'");
    if let Some((end, _)) = title.char_indices().nth(TITLE_CHARS_MAX) {
        title.truncate(end);
        title.push('…');
    }
    format!("{name} (from {source}, titled “{}”)", display_escape::escape_once(&title))
}

pub(crate) fn loop_question(tool: &OfferedTool, cycle: CallCycle) -> String {
    format!("The model is repeating calls ({}). Run {} once more?", describe_cycle(cycle), tool_text(tool))
}

pub(crate) fn redefined_question(tool: &OfferedTool) -> String {
    let tool_text = tool_text(tool);
    format!(
        "The definition of {tool_text} has changed since it was offered to the model. Run it as it is now?"
    )
}

/// The address itself is one of the arguments, which come last.
pub(crate) fn unnamed_host_question(tool: &OfferedTool, arguments: &CallArguments) -> String {
    let host = match &tool.addresses {
        AddressRole::Visits(rule) => host_text(rule, arguments),
        AddressRole::None | AddressRole::Names => "another host".into(),
    };
    let line = summary::of_value(&arguments.value);
    format!(
        "Run {}? It sends a request to {host}, which was not mentioned in this conversation: a URL can leak \
         what the model has read. If you approve, this host is allowed for the rest of this conversation. \
         Arguments: {line}",
        tool_text(tool)
    )
}

/// Denial of a call to a host that nobody could be asked about: tells the model and its users how to allow
/// it.
pub(crate) fn unnamed_host_denied(reason: &str, rule: &AddressRule, arguments: &CallArguments) -> String {
    let (host, setting) = (host_text(rule, arguments), &rule.setting);
    format!(
        "{reason}. The call sends a request to {host}, which was not mentioned in this conversation; to allow \
         it without approval, add it to {setting}."
    )
}

fn host_text(rule: &AddressRule, arguments: &CallArguments) -> String {
    let address =
        arguments.value.get(&rule.argument).and_then(|address| address.as_str()).unwrap_or_default();
    match shown_host(address) {
        Some(host) => format!("`{host}`"),
        None => "an ambiguous address".into(),
    }
}

// --- about answers ---

pub(crate) fn stale_answer() -> String {
    "The answer was given for other arguments than the ones awaiting approval now.".into()
}

pub(crate) fn edit_of_all() -> String {
    "Changed arguments can answer only one question.".into()
}

pub(crate) fn asks_each_time(rule: &str) -> String {
    format!("This approval is required every time (`{rule}`); the answer applies to this call only.")
}

pub(crate) fn constraints_do_not_fit() -> String {
    "The constraints do not match the call itself; the answer applies to this call only.".into()
}

/// A changed argument that nothing can check.
pub(crate) fn edit_without_client() -> &'static str {
    "the client has withdrawn the tool, so edited arguments cannot be checked"
}

pub(crate) fn answer_again() -> &'static str {
    "Look at the question again; it is still open."
}

pub(crate) fn expired(limit_ms: Option<u64>) -> String {
    match limit_ms {
        Some(ms) => format!("no answer within {} s", ms / 1_000),
        None => "no answer".into(),
    }
}

// --- to the model ---

/// A client's report about the effect of a call.
pub(crate) fn applied(applied: bool) -> &'static str {
    if applied {
        "The client applied it."
    } else {
        "The client did not apply it: it had no visible effect for the user."
    }
}

pub(crate) fn client_failed() -> String {
    "the client reported a failure without a reason".into()
}

pub(crate) fn client_timed_out() -> String {
    "The client did not return a result in time.".into()
}

pub(crate) fn loop_note(cycle: CallCycle) -> String {
    format!(
        "[Note from the system: you are repeating the same calls ({}). Do not repeat them; use the results you \
         have, or try something else.]",
        describe_cycle(cycle)
    )
}

fn describe_cycle(cycle: CallCycle) -> String {
    match cycle.period {
        1 => format!("the same call with the same result {} times", cycle.repeats + 1),
        period => {
            format!("the same {period} calls with the same results {} times", cycle.repeats / period + 1)
        }
    }
}

// --- findings ---

pub(crate) fn problem_remedy(kind: &ProblemKind) -> Option<String> {
    match kind {
        ProblemKind::LeakedCall { .. } => {
            Some(
                "The upstream returned a tool call as plain text, so it was not run. Set `profile = { \
                 leaked_calls = \"run\" }` for this upstream, or use text mode (`/mode text`) with `protocol = \
                 \"xml\"`."
                    .into(),
            )
        }
        ProblemKind::CallMarkup {
            kind:
                FindingKind::InCodeFence
                | FindingKind::InInlineCode
                | FindingKind::InIndentedCode
                | FindingKind::InQuotation
                | FindingKind::InQuotationMarks
                | FindingKind::InList
                | FindingKind::InTable
                | FindingKind::InComment
                | FindingKind::InThinking,
            ..
        } => Some(
            "If it was intended, ask the model to write the request outside of code, quotations, lists, tables, comments and thinking.".into(),
        ),
        ProblemKind::StreamReplaced => Some(
            "The reply was requested again without streaming. `streaming = \"off\"` for this upstream saves the first attempt.".into(),
        ),
        ProblemKind::ToolsLeftOut => Some(
            "Disable them for this agent. If there are too many, disable others, or use a model whose API \
             accepts more (`tools_max` of the upstream's profile).".into(),
        ),
        ProblemKind::SettingsLeftOut => Some(
            "Remove them from the agent, the model or the request (`leave_out` of the upstream's profile does \
             it for all of them).".into(),
        ),
        ProblemKind::ForeignEnd => Some(
            "`[DONE]` is not the end marker of this format, and proxies also send it after a truncated reply. \
             Without the format's own end marker, no call with side effects in this reply runs."
                .into(),
        ),
        ProblemKind::LimitReached { .. } => Some("Raise the limit of this name if you need the content.".into()),
        _ => None,
    }
}

/// For a call with effects whose step has fragments of arguments without a call.
pub(crate) fn orphans() -> String {
    "The reply contains pieces of arguments that belong to no call, so this call with side effects may be \
     missing some of its own."
        .into()
}

/// Reason for a pause in the output.
pub(crate) fn log_was_slow(ms: u64) -> String {
    format!("The log took {ms} ms to store the events; nothing is shown or run before that.")
}
