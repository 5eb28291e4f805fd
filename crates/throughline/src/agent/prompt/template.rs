//! One template: compiled and tried out at start-up, rendered for each turn.

use super::PromptContext;
use super::definitions::{ToolText, ToolsText};
use super::rendered::{PROMPT_BYTES_MAX, RenderedPrompt, TemplateError, ToolsPlacement};
use super::values::{self, NAMES, TemplateValues};
use crate::agent::ToolMode;
use crate::suggest::suggest;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Most instructions that rendering one prompt may take.
pub const FUEL_MAX: u64 = 50_000;
/// The only template of its environment.
const NAME: &str = "prompt";

/// A compiled prompt. Cheap to clone.
#[derive(Clone)]
pub struct PromptTemplate {
    source: Arc<str>,
    environment: Arc<Environment<'static>>,
    /// Names that it reads.
    names: Arc<[String]>,
}

impl PromptTemplate {
    /// Compiles a template and renders it once for each mode, with tools and without, so that mistakes appear now and
    /// not in the middle of a conversation.
    ///
    /// # Errors
    /// Syntax errors, unknown names, and anything that goes wrong in the trial renderings.
    pub fn compile(source: &str) -> Result<Self, TemplateError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL_MAX));
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(|error| TemplateError::new(source, &error))?;
        let names = environment.get_template(NAME).map(|template| template.undeclared_variables(false));
        let names = names.unwrap_or_default().into_iter().collect();
        let template = Self { source: source.into(), environment: Arc::new(environment), names };
        template.dry_run()?;
        Ok(template)
    }

    /// The text that it was made from.
    pub fn source(&self) -> &str {
        &self.source
    }

    fn dry_run(&self) -> Result<(), TemplateError> {
        let now = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
        let sample = ToolText {
            name: "sample.tool".into(),
            source: "sample".to_owned(),
            definition: "sample".to_owned(),
        };
        let some = Arc::new(ToolsText::plain("sample", vec![sample]));
        for mode in [ToolMode::Auto, ToolMode::Native, ToolMode::Text] {
            for tools in [Arc::default(), some.clone()] {
                let context = PromptContext {
                    now: &now,
                    user: "user",
                    agent: "agent",
                    model: "upstream/model",
                    mode,
                    tools,
                };
                self.render(&context)?;
            }
        }
        // Names in branches that no trial has come through.
        let globals: Vec<&str> = self.environment.globals().map(|(name, _)| name).collect();
        let is_known = |name: &str| values::is_known(name) || globals.contains(&name);
        let mut unknown: Vec<String> = self.names.iter().filter(|name| !is_known(name)).cloned().collect();
        unknown.sort();
        match unknown.first() {
            None => Ok(()),
            Some(name) => Err(TemplateError::unknown_name(&self.source, name)),
        }
    }

    pub(super) fn render(&self, context: &PromptContext<'_>) -> Result<RenderedPrompt, TemplateError> {
        let values = TemplateValues::new(context);
        let mut out = LimitedOutput { text: Vec::new() };
        let to_error = |error: &minijinja::Error| TemplateError::new(&self.source, error);
        let template = self.environment.get_template(NAME).map_err(|error| to_error(&error))?;
        template
            .render_captured_to(values.context(self.names.iter()), &mut out)
            .map_err(|error| to_error(&error))?;
        let usage = values.usage();
        Ok(RenderedPrompt {
            // The engine writes texts.
            text: String::from_utf8_lossy(&out.text).into_owned(),
            tools: if usage.times > 0 { ToolsPlacement::Somewhere } else { ToolsPlacement::Nowhere },
            unmatched: usage.unmatched,
        })
    }
}

impl fmt::Debug for PromptTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PromptTemplate").field(&self.source).finish()
    }
}

impl PartialEq for PromptTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

/// Output that ends at [`PROMPT_BYTES_MAX`].
struct LimitedOutput {
    text: Vec<u8>,
}

impl io::Write for LimitedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.text.len() + bytes.len() > PROMPT_BYTES_MAX {
            return Err(io::Error::other("over the limit"));
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TemplateError {
    fn new(source: &str, error: &minijinja::Error) -> Self {
        let line_start =
            |line: usize| source.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        let span = error.range().unwrap_or_else(|| {
            let start = error.line().map_or(0, line_start);
            start..start
        });
        let meant = source.get(span.clone()).unwrap_or("").trim();
        let mut help = None;
        let detail = error.detail().unwrap_or("");
        let message = match error.kind() {
            ErrorKind::UndefinedError => {
                let name: String = meant.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                return match name.as_str() {
                    "" => Self::at_span(source, span, "undefined value".to_owned(), None),
                    name if NAMES.contains(&name) => {
                        Self::at_span(source, span, format!("`{meant}` is undefined"), None)
                    }
                    name => Self::unknown_name_at(source, span, name),
                };
            }
            ErrorKind::OutOfFuel => format!("the template exceeds {FUEL_MAX} instructions"),
            ErrorKind::WriteFailure => format!("the prompt is longer than {} KiB", PROMPT_BYTES_MAX >> 10),
            ErrorKind::UnknownFilter => format!("there is no filter here: {detail}"),
            ErrorKind::SyntaxError => {
                help = Some("wrap text that contains `{{` in {% raw %} and {% endraw %}".to_owned());
                format!("invalid template: {detail}")
            }
            kind if detail.is_empty() => kind.to_string(),
            _ => detail.to_owned(),
        };
        Self::at_span(source, span, message, help)
    }

    /// Error for a name that no trial run defined, at its first occurrence in the source.
    fn unknown_name(source: &str, name: &str) -> Self {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let found = source.match_indices(name).map(|(at, _)| at..at + name.len()).find(|span| {
            let in_tag = source[..span.start].rfind(['{', '}']).is_some_and(|at| {
                source[..at].ends_with('{')
                    || source[..at + 1].ends_with("{%")
                    || source[at..].starts_with("{%")
            });
            in_tag && !source[..span.start].ends_with(is_word) && !source[span.end..].starts_with(is_word)
        });
        Self::unknown_name_at(source, found.unwrap_or(0..0), name)
    }

    fn unknown_name_at(source: &str, span: Range<usize>, name: &str) -> Self {
        let listed = NAMES.map(|name| format!("`{name}`")).join(", ");
        let help = match suggest(name, NAMES) {
            Some(suggestion) => format!("did you mean `{suggestion}`? there are {listed}"),
            None => format!("there are {listed}"),
        };
        Self::at_span(source, span, format!("unknown name `{name}` in a template"), Some(help))
    }
}
