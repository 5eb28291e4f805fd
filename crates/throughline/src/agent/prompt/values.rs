//! Variables of templates, as values of the template engine.

use super::PromptContext;
use super::definitions::{ToolText, ToolsText, paragraphs};
use jiff::Zoned;
use minijinja::value::{Object, ObjectRepr};
use minijinja::{Error, ErrorKind, State, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The names available to a template. Any other name is a mistake and not an empty text.
pub(super) const NAMES: [&str; 7] = ["tools", "date", "time", "user", "agent", "model", "mode"];

/// Prefix of names that are left unchanged: `{{ VCPWeatherInfo }}` is a placeholder of a plugin, which is
/// filled when a request is sent.
const PLUGIN_PREFIX: &str = "VCP";

/// True for a variable that templates have.
pub(super) fn is_known(name: &str) -> bool {
    NAMES.contains(&name) || name.starts_with(PLUGIN_PREFIX)
}

/// The values of [`NAMES`] for one rendering.
pub(super) struct TemplateValues {
    tools: Arc<ToolsValue>,
    values: BTreeMap<&'static str, Value>,
}

impl TemplateValues {
    pub(super) fn new(facts: &PromptContext<'_>) -> Self {
        let tools = Arc::new(ToolsValue { text: facts.tools.clone(), usage: Mutex::default() });
        let date_time = |default_format: &str| {
            Value::from_object(DateTimeValue {
                default_format: default_format.to_owned(),
                at: facts.now.clone(),
            })
        };
        let values = BTreeMap::from([
            ("tools", Value::from_dyn_object(tools.clone())),
            ("date", date_time("%Y-%m-%d")),
            ("time", date_time("%H:%M")),
            ("user", Value::from(facts.user)),
            ("agent", Value::from(facts.agent)),
            ("model", Value::from(facts.model)),
            ("mode", Value::from(facts.mode.name())),
        ]);
        Self { tools, values }
    }

    /// The values of all variables, with placeholders of plugins unchanged; `names` are all names that the
    /// template uses.
    pub(super) fn context<'n>(&self, names: impl IntoIterator<Item = &'n String>) -> Value {
        let own = self.values.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let placeholders = names.into_iter().filter(|name| name.starts_with(PLUGIN_PREFIX));
        let placeholders = placeholders.map(|name| (name.clone(), Value::from(format!("{{{{{name}}}}}"))));
        Value::from(own.chain(placeholders).collect::<BTreeMap<String, Value>>())
    }

    /// Tools placed by the template.
    pub(super) fn usage(&self) -> ToolsUsage {
        self.tools.usage().clone()
    }
}

/// `{{ tools }}`: everything; `{{ tools("mcp:files", "time") }}`: only these; `{% if tools %}`: are there any?
struct ToolsValue {
    text: Arc<ToolsText>,
    usage: Mutex<ToolsUsage>,
}

/// Use of the tools in one rendering.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolsUsage {
    /// Number of times the tools were rendered.
    pub(super) times: usize,
    /// Names that mean no tool.
    pub(super) unmatched: Vec<String>,
}

impl ToolsValue {
    fn usage(&self) -> std::sync::MutexGuard<'_, ToolsUsage> {
        // A number and a list of names: whole at any moment.
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Definitions, preceded by the guide unless it was rendered before.
    fn render_tools(&self, tools: &[&ToolText]) -> String {
        let mut usage = self.usage();
        usage.times += 1;
        let definitions = self.text.definitions(tools);
        let guide = (usage.times == 1 && !tools.is_empty()).then_some(&self.text.guide);
        paragraphs(guide.into_iter().chain([&definitions]))
    }
}

impl fmt::Debug for ToolsValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tools")
    }
}

impl Object for ToolsValue {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        !self.text.is_empty()
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render_tools(&self.text.tools.iter().collect::<Vec<_>>()))
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let mut wanted: Vec<&ToolText> = Vec::new();
        for arg in args {
            let name = arg.as_str().ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidOperation,
                    "tools(…) expects names of sources, groups or tools as strings",
                )
            })?;
            match self.text.matching(name) {
                Some(found) => wanted.extend(found),
                // Nothing to choose from is no mistake of the name's.
                None if self.text.is_empty() => {}
                None => self.usage().unmatched.push(name.to_owned()),
            }
        }
        if args.is_empty() {
            wanted.extend(&self.text.tools);
        }
        wanted.sort_by(|a, b| a.name.cmp(&b.name));
        wanted.dedup_by(|a, b| a.name == b.name);
        Ok(Value::from(self.render_tools(&wanted)))
    }
}

/// `{{ date }}` as ISO 8601 has it, `{{ date("%A, %-d %B") }}` as strftime has it; `{{ time }}` likewise.
struct DateTimeValue {
    default_format: String,
    at: Zoned,
}

impl DateTimeValue {
    fn format(&self, format: &str) -> Result<String, Error> {
        jiff::fmt::strtime::format(format, &self.at).map_err(|error| {
            Error::new(ErrorKind::InvalidOperation, format!("`{format}` is not a valid time format: {error}"))
        })
    }
}

impl fmt::Debug for DateTimeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at)
    }
}

impl Object for DateTimeValue {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format(&self.default_format).map_err(|_| fmt::Error)?)
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let format = match args {
            [] => self.default_format.as_str(),
            [format] => format.as_str().ok_or_else(|| {
                Error::new(ErrorKind::InvalidOperation, "a time format must be a string: date(\"%A\")")
            })?,
            _ => return Err(Error::from(ErrorKind::TooManyArguments)),
        };
        Ok(Value::from(self.format(format)?))
    }
}
