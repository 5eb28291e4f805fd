//! One block of a message on the screen.

use super::texts::fault_lines;
use super::transcript::ReasoningView;
use crate::messages::UiText;
use crate::terminal::card::{ToolCard, duration};
use crate::terminal::markdown::{MarkdownStream, PROSE_COLUMNS_MAX};
use crate::terminal::text::{StyledLine, TextColor, TextStyle};
use throughline_engine::TurnFault;
use throughline_wire::CallId;

/// Lines of folded reasoning: the last ones while it comes, the first ones afterwards.
const THINKING_LINES: usize = 4;

/// Content of a block.
#[derive(Debug)]
pub(crate) enum ScreenBlock {
    /// Visible text; `begun` once some of its lines have been handed out.
    Text {
        markdown: MarkdownStream,
        open: bool,
        refused: bool,
        has_printed: bool,
    },
    /// Reasoning.
    Thinking(ThinkingBlock),
    /// A tool call. `text` is its arguments in full, or as much as has arrived.
    Call {
        id: Option<CallId>,
        card: Box<ToolCard>,
        text: String,
        effect: String,
        source: String,
    },
    /// Message that the user sent mid-turn, at the position where the turn took it in.
    UserMessage(String),
    /// Sound, as far as a terminal goes.
    Sound {
        transcript: String,
        open: bool,
    },
    /// A picture, likewise.
    Picture {
        media_type: String,
        bytes: usize,
    },
    /// A remark of the engine.
    Notice(String),
    Failure(TurnFault),
    /// A finding of the decoder that a person can do something about. No block of the message.
    DecoderRemark {
        what: String,
        remedy: String,
    },
}

/// Reasoning with its time.
#[derive(Debug)]
pub(crate) struct ThinkingBlock {
    pub(crate) text: String,
    pub(crate) started_at: i64,
    pub(crate) ended_at: Option<i64>,
}

impl ScreenBlock {
    /// Lines that are final now, and whether the block has no more to come.
    pub(crate) fn settle(
        &mut self,
        now: i64,
        columns: usize,
        words: UiText,
        reasoning: ReasoningView,
    ) -> (Vec<StyledLine>, bool) {
        match self {
            ScreenBlock::Text { markdown, open: true, refused, has_printed } => {
                let lines = markdown.settle(prose(columns));
                (with_refusal_label(lines, *refused && !*has_printed, words), false)
            }
            ScreenBlock::Text { markdown, open: false, refused, has_printed } => {
                let lines = markdown.finish(prose(columns));
                (with_refusal_label(lines, *refused && !*has_printed, words), true)
            }
            ScreenBlock::Thinking(thinking) => match thinking.ended_at {
                Some(_) => (thinking.lines(now, columns, words, reasoning), true),
                None => (Vec::new(), false),
            },
            ScreenBlock::Call { card, .. } if card.state.is_final() => (card.lines(now, columns), true),
            ScreenBlock::Sound { open: true, .. } | ScreenBlock::Call { .. } => (Vec::new(), false),
            other => (other.live(now, columns, words, reasoning), true),
        }
    }

    /// Lines that may still change.
    pub(crate) fn live(
        &self,
        now: i64,
        columns: usize,
        words: UiText,
        reasoning: ReasoningView,
    ) -> Vec<StyledLine> {
        match self {
            ScreenBlock::Text { markdown, refused, has_printed, .. } => {
                with_refusal_label(markdown.open(prose(columns)), *refused && !*has_printed, words)
            }
            ScreenBlock::Thinking(thinking) => thinking.lines(now, columns, words, reasoning),
            ScreenBlock::Call { card, .. } => card.lines(now, columns),
            ScreenBlock::Sound { transcript, .. } => {
                wrapped(&format!("♪ {}: {transcript}", words.sound()), TextStyle::PLAIN, columns)
            }
            ScreenBlock::Picture { media_type, bytes } => {
                let text = format!("▣ {} ({media_type}, {} KiB)", words.picture(), bytes.div_ceil(1024));
                wrapped(&text, TextStyle::PLAIN, columns)
            }
            ScreenBlock::UserMessage(text) => {
                let prompt = StyledLine::new("› ", TextStyle::bold_ink(TextColor::Magenta));
                let indent = StyledLine::new("  ", TextStyle::PLAIN);
                let lines = text
                    .lines()
                    .flat_map(|line| StyledLine::new(line, TextStyle::BOLD).wrapped(prose(columns) - 2));
                lines
                    .enumerate()
                    .map(|(at, line)| line.after(if at == 0 { &prompt } else { &indent }))
                    .collect()
            }
            ScreenBlock::Notice(text) => {
                wrapped(&format!("• {text}"), TextStyle::ink(TextColor::Yellow), columns)
            }
            ScreenBlock::Failure(fault) => fault_lines(fault, words, prose(columns)),
            ScreenBlock::DecoderRemark { what, remedy } => {
                let mut lines = wrapped(
                    &format!("• {what}"),
                    TextStyle { dim: true, ..TextStyle::ink(TextColor::Yellow) },
                    columns,
                );
                lines.extend(wrapped(&format!("  {}: {remedy}", words.try_hint()), TextStyle::DIM, columns));
                lines
            }
        }
    }

    /// Marks lines as printed; returns the previous state.
    pub(crate) fn mark_printed(&mut self, now: bool) -> bool {
        match self {
            ScreenBlock::Text { has_printed, .. } => std::mem::replace(has_printed, *has_printed || now),
            _ => false,
        }
    }

    /// True if lines were printed.
    pub(crate) fn has_printed(&self) -> bool {
        matches!(self, ScreenBlock::Text { has_printed: true, .. })
    }
}

impl ThinkingBlock {
    fn lines(&self, now: i64, columns: usize, words: UiText, reasoning: ReasoningView) -> Vec<StyledLine> {
        let style = TextStyle { italic: true, ..TextStyle::DIM };
        let gutter = StyledLine::new("┊ ", TextStyle::DIM);
        let elapsed =
            duration(self.ended_at.unwrap_or(now).saturating_sub(self.started_at).max(0).unsigned_abs());
        let verb = if self.ended_at.is_some() { words.thought() } else { words.thinking() };
        let head = StyledLine::new(&format!("┊ {verb} · {elapsed}"), TextStyle::DIM);
        let text: Vec<StyledLine> = self
            .text
            .trim()
            .lines()
            .flat_map(|line| StyledLine::new(line, style).wrapped(prose(columns).saturating_sub(2)))
            .map(|line| line.after(&gutter))
            .collect();
        let hidden = text.len().saturating_sub(THINKING_LINES);
        let mut lines = vec![head];
        match (reasoning, self.ended_at) {
            (ReasoningView::Full, _) => lines.extend(text),
            (ReasoningView::Folded, None) => lines.extend(text.into_iter().skip(hidden)),
            (ReasoningView::Folded, Some(_)) => {
                lines.extend(text.into_iter().take(THINKING_LINES));
                if hidden > 0 {
                    lines.push(StyledLine::new(
                        &format!("┊ … {hidden} {}", words.more_lines()),
                        TextStyle::DIM,
                    ));
                }
            }
        }
        lines.iter().map(|line| line.truncated(columns)).collect()
    }
}

fn with_refusal_label(lines: Vec<StyledLine>, refused: bool, words: UiText) -> Vec<StyledLine> {
    let label = (refused && !lines.is_empty())
        .then(|| StyledLine::new(words.refused(), TextStyle::ink(TextColor::Yellow)));
    label.into_iter().chain(lines).collect()
}

fn wrapped(text: &str, style: TextStyle, columns: usize) -> Vec<StyledLine> {
    text.lines().flat_map(|line| StyledLine::new(line, style).wrapped(prose(columns))).collect()
}

/// Tables and code may be wider than prose, which bounds itself.
fn prose(columns: usize) -> usize {
    columns.min(PROSE_COLUMNS_MAX + 20)
}
