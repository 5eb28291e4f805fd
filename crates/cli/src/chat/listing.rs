//! Tools and their sources as lines.

use crate::messages::UiText;
use crate::setup::{OfferedToolRow, SourceState};
use crate::terminal::text::{StyledLine, TextColor, TextStyle, padded, width};

/// The commands of the chat, each with what it does.
pub(crate) fn command_lines(words: UiText) -> Vec<StyledLine> {
    let commands = words.commands();
    let column = commands.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let line = |(name, what): &(&str, &str)| {
        let mut line =
            StyledLine::new(&format!("  {}", padded(name, column)), TextStyle::ink(TextColor::Cyan));
        line.push(&format!("  {what}"), TextStyle::PLAIN);
        line
    };
    commands.iter().map(line).collect()
}

/// Each offered tool: name, effect, decision on a call, source and description.
pub(crate) fn tool_lines(offered: &[OfferedToolRow], words: UiText, columns: usize) -> Vec<StyledLine> {
    let column =
        |of: fn(&OfferedToolRow) -> &str| offered.iter().map(|tool| width(of(tool))).max().unwrap_or(0);
    let (name, effect, source) =
        (column(|tool| &tool.name), column(|tool| &tool.effect), column(|tool| &tool.source));
    let verdict = offered.iter().map(|tool| width(tool.policy.text(words))).max().unwrap_or(0);
    let line = |tool: &OfferedToolRow| {
        let mut line =
            StyledLine::new(&format!("  {}", padded(&tool.name, name)), TextStyle::ink(TextColor::Cyan));
        line.push(&format!("  {}", padded(&tool.effect, effect)), TextStyle::DIM);
        let policy_text = padded(tool.policy.text(words), verdict);
        line.push(&format!("  {policy_text}"), TextStyle::ink(tool.policy.ink()));
        line.push(&format!("  {}", padded(&tool.source, source)), TextStyle::DIM);
        line.push(&format!("  {}", tool.description), TextStyle::PLAIN);
        line.truncated(columns)
    };
    offered.iter().map(line).collect()
}

/// Each source with its number of tools, and its faults.
pub(crate) fn source_lines(sources: &[SourceState], words: UiText, columns: usize) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for source in sources {
        let mark = if source.faults.is_empty() { ("✔", TextColor::Green) } else { ("✘", TextColor::Red) };
        let mut line = StyledLine::new(&format!("  {} ", mark.0), TextStyle::bold_ink(mark.1));
        line.push(&source.name, TextStyle::BOLD);
        line.push(&format!("  {}", words.tools_count(source.tools)), TextStyle::DIM);
        lines.push(line.truncated(columns));
        for (what, remedy) in &source.faults {
            let what = StyledLine::new(what, TextStyle::PLAIN).wrapped(columns.saturating_sub(6));
            lines.extend(indented(what));
            let remedy = remedy.iter().map(|remedy| format!("{}: {remedy}", words.try_hint()));
            let remedy = remedy
                .flat_map(|text| StyledLine::new(&text, TextStyle::DIM).wrapped(columns.saturating_sub(6)));
            lines.extend(indented(remedy.collect()));
        }
    }
    lines
}

/// Conversations with the numbers by which they can be chosen; the current one is marked.
pub(crate) fn conversation_lines(
    conversations: &[(String, String)],
    current: Option<&str>,
    words: UiText,
) -> Vec<StyledLine> {
    let line = |(at, (id, title)): (usize, &(String, String))| {
        let mark = if Some(id.as_str()) == current { "●" } else { " " };
        let mut line = StyledLine::new(&format!("  {mark} {:>2}", at + 1), TextStyle::ink(TextColor::Cyan));
        line.push(&format!("  {}", crate::plain::one_line(title)), TextStyle::PLAIN);
        line.push(&format!("  {id}"), TextStyle::DIM);
        line
    };
    let mut lines: Vec<_> = conversations.iter().enumerate().map(line).collect();
    lines.push(StyledLine::new(&format!("  {}", words.resume_usage()), TextStyle::DIM));
    lines
}

fn indented(lines: Vec<StyledLine>) -> impl Iterator<Item = StyledLine> {
    lines.into_iter().map(|line| line.after(&StyledLine::new("      ", TextStyle::PLAIN)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::UiLanguage;

    #[test]
    fn command_descriptions_align_within_90_columns() {
        for lang in [UiLanguage::English, UiLanguage::Chinese] {
            let words = UiText(lang);
            for ((_, what), line) in words.commands().iter().zip(command_lines(words)) {
                let plain = line.plain();
                let before = plain.strip_suffix(what).unwrap_or_else(|| panic!("{plain}"));
                assert_eq!(width(before), 28, "{plain}");
                assert!(line.width() <= 90, "{plain}");
            }
        }
    }
}
