//! The result of a template, or its mistake.

use std::fmt;
use std::ops::Range;

/// Longest prompt that a template may make, in bytes.
pub const PROMPT_BYTES_MAX: usize = 1 << 20;

/// A mistake in a template, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// Description of the mistake, one sentence.
    pub message: String,
    /// The valid alternative, if known.
    pub help: Option<String>,
    /// Line of the mistake, from 1.
    pub line: usize,
    /// Column of the mistake in characters, from 1.
    pub column: usize,
    /// The line itself.
    pub text: String,
    /// The bytes meant.
    pub span: Range<usize>,
}

impl std::error::Error for TemplateError {}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { message, help, line, column, text, .. } = self;
        write!(f, "{message} (line {line}, column {column} of the prompt: `{}`)", text.trim())?;
        help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

/// A rendered template.
#[derive(Debug, Default)]
pub(super) struct RenderedPrompt {
    pub(super) text: String,
    pub(super) tools: ToolsPlacement,
    pub(super) unmatched: Vec<String>,
}

/// Records if the template has placed the tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ToolsPlacement {
    #[default]
    Nowhere,
    #[cfg_attr(not(feature = "prompt-templates"), expect(dead_code, reason = "only a template places them"))]
    Somewhere,
}

impl TemplateError {
    pub(super) fn at_span(source: &str, span: Range<usize>, message: String, help: Option<String>) -> Self {
        let mut start = span.start.min(source.len());
        while !source.is_char_boundary(start) {
            start -= 1;
        }
        let before = &source[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let text = source[line_start..].lines().next().unwrap_or("").to_owned();
        Self {
            message,
            help,
            line: before.matches('\n').count() + 1,
            column: source[line_start..start].chars().count() + 1,
            text,
            span: start..span.end.clamp(start, source.len()),
        }
    }
}
