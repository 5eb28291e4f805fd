//! Texts of cards and notes for outcomes, arguments, failures and totals.

use crate::chinese::{remedy_text, server_text};
use crate::messages::UiText;
use crate::terminal::card::{ToolCard, duration};
use crate::terminal::text::{StyledLine, TextColor, TextStyle};
use serde_json::Value;
use throughline_engine::{CallStatus, SessionStats, ToolInput, ToolResult, TurnFault};

/// Result of a turn in one line.
pub(crate) fn totals_text(words: UiText, stats: &SessionStats) -> String {
    let tokens = match (stats.usage.input_tokens, stats.usage.output_tokens) {
        (None, None) => None,
        (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
    };
    let saved = (stats.saved_by_eager_ms >= 50).then(|| duration(stats.saved_by_eager_ms));
    words.totals(stats.steps, stats.calls, tokens, &duration(stats.wall_ms), saved.as_deref())
}

/// The complete arguments: as text where the text is more exact than the value (digits beyond 64 bits), pretty-printed otherwise.
pub(crate) fn full_arguments(input: &ToolInput) -> String {
    match (&input.raw, &input.text, &input.arguments) {
        (Some(raw), _, _) => raw.clone(),
        (None, Some(text), _) => text.clone(),
        (None, None, Some(value)) => {
            serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
        }
        (None, None, None) => String::new(),
    }
}

/// The arguments in one line; empty without arguments.
pub(crate) fn arguments_summary(input: &ToolInput) -> String {
    match (&input.raw, &input.arguments) {
        (None, Some(serde_json::Value::Object(members))) if members.is_empty() => String::new(),
        _ if !input.input_summary.is_empty() => input.input_summary.clone(),
        (Some(raw), _) => raw.clone(),
        (None, Some(value)) => value.to_string(),
        (None, None) => String::new(),
    }
}

/// "you changed: city "Paris" → "Oslo"".
pub(crate) fn changes_text(diff: &Value, words: UiText) -> String {
    let side = |change: &Value, side: &str| change.get(side).map_or_else(|| "–".to_owned(), Value::to_string);
    let field_path = |change: &Value| {
        let path = change.get("path").and_then(Value::as_str).unwrap_or_default();
        path.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~")
    };
    let one = |change: &Value| {
        format!("{} {} → {}", field_path(change), side(change, "from"), side(change, "to"))
            .trim_start()
            .to_owned()
    };
    let changes: Vec<String> = diff.as_array().into_iter().flatten().map(one).collect();
    format!("{}: {}", words.you_changed(), changes.join(" · "))
}

/// Description of the remembered scope of an answer; `None` for an answer to this call alone.
pub(crate) fn remembered_text(scope: &str, words: UiText) -> Option<String> {
    match scope {
        "turn" => Some(words.remembered_turn().to_owned()),
        "conversation" => Some(words.remembered_conversation().to_owned()),
        "always" => Some(words.remembered_always().to_owned()),
        _ => None,
    }
}

/// The rule that allowed a call, if a person made it.
pub(crate) fn allowed_by_text(rule: &str, words: UiText) -> Option<String> {
    let made = rule.starts_with("rule:") || rule.starts_with("remembered:");
    made.then(|| format!("{} {rule}", words.allowed_by()))
}

/// The rule that denied a call.
fn denied_by_text(rule: &str, words: UiText) -> String {
    format!("{} {rule}", words.denied_by())
}

/// Puts the outcome on the card.
pub(crate) fn finish_card(card: &mut ToolCard, result: &ToolResult, words: UiText) {
    card.state = result.status;
    card.duration_ms = result.duration_ms;
    card.state_words = state_text(result.status, words).to_owned();
    if result.status == CallStatus::Denied
        && let Some(rule) = result.rule.as_deref().filter(|rule| rule.starts_with("rule:"))
    {
        card.notes.push(denied_by_text(rule, words));
    }
    card.detail = match result.status {
        CallStatus::Success => result.output.clone().unwrap_or_else(|| result.output_summary.clone()),
        _ => failure_text(result, words),
    };
}

/// Text of the state, for states whose mark is not clear enough.
pub(crate) fn state_text(status: CallStatus, words: UiText) -> &'static str {
    match status {
        CallStatus::Preparing | CallStatus::Running | CallStatus::Success => "",
        CallStatus::Queued => words.queued(),
        CallStatus::AwaitingApproval => words.awaiting(),
        CallStatus::Error => words.failed(),
        CallStatus::Denied => words.denied(),
        CallStatus::Cancelled => words.cancelled(),
        CallStatus::TimedOut => words.timed_out(),
        CallStatus::NotStarted => words.not_started(),
        CallStatus::Unknown => words.unknown_end(),
    }
}

/// Text of a call's failure.
pub(crate) fn failure_text(result: &ToolResult, words: UiText) -> String {
    let Some(error) = &result.error else { return result.output_summary.clone() };
    let message = server_text(error.message.as_deref().unwrap_or_default(), "");
    let known_text = match error.code.as_str() {
        "interrupted" => words.interrupted(),
        "no_viewer" => words.no_viewer(),
        "stopped" | "cancelled_before_start" => words.stopped_first(),
        "limit" => words.over_limit(),
        "unknown_tool" => words.unknown_tool(),
        _ => "",
    };
    let parts = [known_text, message.as_str(), error.limit.as_deref().unwrap_or("")];
    let mut text = parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(": ");
    if !error.closest.is_empty() {
        text.push_str(&format!(" ({}?)", error.closest.join(", ")));
    }
    text
}

/// A failure as lines: what, why, what to do.
pub(crate) fn fault_lines(fault: &TurnFault, words: UiText, columns: usize) -> Vec<StyledLine> {
    let what = server_text(&fault.what, &fault.code);
    let mut lines = vec![StyledLine::new(&format!("✘ {what}"), TextStyle::bold_ink(TextColor::Red))];
    if !fault.why.is_empty() {
        lines.push(StyledLine::new(&format!("  {}", server_text(&fault.why, "")), TextStyle::PLAIN));
    }
    if !fault.remedy.is_empty() {
        let mut line = StyledLine::new(&format!("  {}: ", words.try_hint()), TextStyle::DIM);
        line.push(&remedy_text(&fault.remedy, &fault.code), TextStyle::PLAIN);
        lines.push(line);
    }
    lines.iter().flat_map(|line| line.wrapped(columns)).collect()
}
