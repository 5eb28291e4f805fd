//! Configuration errors and their exact locations.

use super::hints::with_hint;
use crate::suggest::suggest;
use std::fmt;
use std::ops::Range;

/// Origin of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigLocation {
    /// A position in the file.
    File {
        /// The file's name as it was given.
        file: String,
        /// Line of the mistake, from 1.
        line: usize,
        /// Column of the mistake in characters, from 1.
        column: usize,
        /// The line itself.
        text: String,
        /// Width of the marked span in characters, at least 1.
        width: usize,
    },
    /// The file as a whole: it cannot be read.
    WholeFile {
        /// The file's name as it was given.
        file: String,
    },
    /// An environment variable.
    Environment {
        /// Name of the variable.
        variable: String,
    },
    /// A flag of the command, or a call of the library.
    Flag {
        /// Name of the variable or flag.
        name: String,
    },
}

/// One mistake in the configuration. Displays like a compiler error: message, location, the line with a caret
/// under the position, and the valid values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The mistake.
    pub message: String,
    /// Location of the mistake.
    pub location: ConfigLocation,
    /// Remedy, if known.
    pub help: Option<String>,
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.message, self.location)?;
        match &self.help {
            Some(help) => write!(f, "\n{} = {help}", self.location.margin()),
            None => Ok(()),
        }
    }
}

/// Displays like a compiler: an arrow, and the line with a caret under the position.
impl fmt::Display for ConfigLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let margin = self.margin();
        match self {
            ConfigLocation::File { file, line, column, text, width } => {
                write!(f, "{margin}--> {file}:{line}:{column}")?;
                write!(f, "\n{margin} |\n{line} | {text}")?;
                write!(f, "\n{margin} | {}{}", caret_padding(text, column - 1), "^".repeat((*width).max(1)))
            }
            ConfigLocation::WholeFile { file } => write!(f, "{margin}--> {file}"),
            ConfigLocation::Environment { variable } => {
                write!(f, "{margin}--> environment variable {variable}")
            }
            ConfigLocation::Flag { name } => write!(f, "{margin}--> {name}"),
        }
    }
}

impl ConfigLocation {
    /// Bytes `span` of the text of a file.
    pub fn in_file(file: &str, source: &str, span: Range<usize>) -> Self {
        let start = floor_char_boundary(source, span.start);
        let end = floor_char_boundary(source, span.end.max(start));
        let line_start = source[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = source[start..].find('\n').map_or(source.len(), |newline| start + newline);
        let text = source[line_start..line_end].trim_end_matches('\r').to_owned();
        ConfigLocation::File {
            file: file.to_owned(),
            line: source[..start].matches('\n').count() + 1,
            column: source[line_start..start].chars().count() + 1,
            // A span over several lines is marked to the end of its first one.
            width: source[start..end.min(line_end).max(start)].trim_end().chars().count().max(1),
            text,
        }
    }

    /// Spaces as wide as the line number, for lines printed under the location.
    pub fn margin(&self) -> String {
        match self {
            ConfigLocation::File { line, .. } => " ".repeat(line.to_string().len()),
            _ => " ".to_owned(),
        }
    }
}

impl ConfigError {
    /// An error at bytes `span` of `source`.
    pub(crate) fn in_file(file: &str, source: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let location = ConfigLocation::in_file(file, source, span);
        Self { message: message.into(), location, help: None }
    }

    pub(crate) fn whole_file(file: &str, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            location: ConfigLocation::WholeFile { file: file.to_owned() },
            help: None,
        }
    }

    pub(crate) fn in_environment(variable: &str, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            location: ConfigLocation::Environment { variable: variable.to_owned() },
            help: None,
        }
    }

    pub(crate) fn in_flag(name: &str, message: impl Into<String>) -> Self {
        Self { message: message.into(), location: ConfigLocation::Flag { name: name.to_owned() }, help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the valid names, the nearest one first if it is near.
    pub(crate) fn valid_names<'a>(self, wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        if names.is_empty() {
            return self;
        }
        let listed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        match suggest(wrong, names) {
            Some(suggestion) => self.help(format!("did you mean `{suggestion}`? valid here: {listed}")),
            None => self.help(format!("valid here: {listed}")),
        }
    }

    /// An error of the TOML reader, with the valid names extracted from its message.
    pub(crate) fn from_toml(file: &str, source: &str, error: &toml::de::Error) -> Self {
        let span = error.span().unwrap_or(0..0);
        let message = error.message();
        let plain = || Self::in_file(file, source, span.clone(), message);
        let error = match message.split_once(", expected ") {
            Some((what, expected)) if what.starts_with("unknown ") => match backquoted(what).next() {
                Some(wrong) => {
                    Self::in_file(file, source, span.clone(), what).valid_names(wrong, backquoted(expected))
                }
                None => plain(),
            },
            _ => plain(),
        };
        with_hint(error, source, span)
    }

    /// The error without the quoted texts that follow its position: one of them may be a key.
    pub(crate) fn without_values(mut self) -> Self {
        if let ConfigLocation::File { column, text, width, .. } = &mut self.location {
            let before: String = text.chars().take(*column - 1).collect();
            let rest: String = text.chars().skip(*column - 1).collect();
            let shown: Vec<&str> =
                rest.split('"').enumerate().map(|(at, part)| if at % 2 == 1 { "…" } else { part }).collect();
            *text = before + &shown.join("\"");
            *width = (*width).min(text.chars().count().saturating_sub(*column - 1)).max(1);
        }
        self
    }
}

/// The texts between backticks, as serde writes names into its messages.
fn backquoted(message: &str) -> impl Iterator<Item = &str> {
    message.split('`').skip(1).step_by(2)
}

/// White space as wide as the first `characters` of the line: tabs stay tabs, wide characters take two columns.
fn caret_padding(line: &str, characters: usize) -> String {
    let wide = |c: char| matches!(c as u32, 0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd);
    line.chars()
        .take(characters)
        .map(|c| match c {
            '\t' => "\t",
            c if wide(c) => "  ",
            _ => " ",
        })
        .collect()
}

fn floor_char_boundary(source: &str, mut at: usize) -> usize {
    at = at.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    at
}
