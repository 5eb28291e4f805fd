//! Tools and their sources as lines.

use crate::messages::Words;
use crate::setup::{Offered, World};
use crate::terminal::text::{Ink, Line, Style, width};

/// The commands of the chat, each with what it does.
pub fn commands(words: Words) -> Vec<Line> {
    let commands = words.commands();
    let column = commands.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let line = |(name, what): &(&str, &str)| {
        let mut line = Line::new(&format!("  {}", padded(name, column)), Style::ink(Ink::Cyan));
        line.push(&format!("  {what}"), Style::PLAIN);
        line
    };
    commands.iter().map(line).collect()
}

/// Each offered tool: name, what it may do, what a call of it comes to, where it is from, what it is for.
pub fn tools(offered: &[Offered], words: Words, columns: usize) -> Vec<Line> {
    let column = |of: fn(&Offered) -> &str| offered.iter().map(|tool| width(of(tool))).max().unwrap_or(0);
    let (name, effect, source) =
        (column(|tool| &tool.name), column(|tool| &tool.effect), column(|tool| &tool.source));
    let verdict = offered.iter().map(|tool| width(tool.verdict.words(words))).max().unwrap_or(0);
    let line = |tool: &Offered| {
        let mut line = Line::new(&format!("  {}", padded(&tool.name, name)), Style::ink(Ink::Cyan));
        line.push(&format!("  {}", padded(&tool.effect, effect)), Style::DIM);
        let said = padded(tool.verdict.words(words), verdict);
        line.push(&format!("  {said}"), Style::ink(tool.verdict.ink()));
        line.push(&format!("  {}", padded(&tool.source, source)), Style::DIM);
        line.push(&format!("  {}", tool.description), Style::PLAIN);
        line.truncated(columns)
    };
    offered.iter().map(line).collect()
}

/// Each source with how many tools it has, and what is wrong with it.
pub fn sources(world: &World, words: Words, columns: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for source in world.sources() {
        let mark = if source.faults.is_empty() { ("✔", Ink::Green) } else { ("✘", Ink::Red) };
        let mut line = Line::new(&format!("  {} ", mark.0), Style::bold_ink(mark.1));
        line.push(&source.name, Style::BOLD);
        line.push(&format!("  {}", words.tools_count(source.tools)), Style::DIM);
        lines.push(line.truncated(columns));
        for (what, remedy) in &source.faults {
            let what = Line::new(what, Style::PLAIN).wrapped(columns.saturating_sub(6));
            lines.extend(indented(what));
            let remedy = remedy.iter().map(|remedy| format!("{}: {remedy}", words.try_hint()));
            let remedy =
                remedy.flat_map(|text| Line::new(&text, Style::DIM).wrapped(columns.saturating_sub(6)));
            lines.extend(indented(remedy.collect()));
        }
    }
    lines
}

fn indented(lines: Vec<Line>) -> impl Iterator<Item = Line> {
    lines.into_iter().map(|line| line.after(&Line::new("      ", Style::PLAIN)))
}

fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Lang;

    #[test]
    fn what_commands_do_stands_in_one_column_of_a_screen() {
        for lang in [Lang::English, Lang::Chinese] {
            let words = Words(lang);
            for ((_, what), line) in words.commands().iter().zip(commands(words)) {
                let plain = line.plain();
                let before = plain.strip_suffix(what).unwrap_or_else(|| panic!("{plain}"));
                assert_eq!(width(before), 28, "{plain}");
                assert!(line.width() <= 90, "{plain}");
            }
        }
    }
}
