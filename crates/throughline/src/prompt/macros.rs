//! The names that templates know, as values of the template engine.

use super::Facts;
use super::definitions::{ToolText, ToolsText, paragraphs};
use jiff::Zoned;
use minijinja::value::{Object, ObjectRepr};
use minijinja::{Error, ErrorKind, State, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What a template may name. Nothing else: a name that does not exist is a mistake and not an empty text.
pub(super) const NAMES: [&str; 7] = ["tools", "date", "time", "user", "agent", "model", "mode"];

/// The values of [`NAMES`] for one rendering.
pub(super) struct Macros {
    tools: Arc<Tools>,
    values: BTreeMap<&'static str, Value>,
}

impl Macros {
    pub(super) fn new(facts: &Facts<'_>) -> Self {
        let tools = Arc::new(Tools { text: facts.tools.clone(), told: Mutex::default() });
        let moment =
            |shown: &str| Value::from_object(Moment { shown: shown.to_owned(), at: facts.now.clone() });
        let values = BTreeMap::from([
            ("tools", Value::from_dyn_object(tools.clone())),
            ("date", moment("%Y-%m-%d")),
            ("time", moment("%H:%M")),
            ("user", Value::from(facts.user)),
            ("agent", Value::from(facts.agent)),
            ("model", Value::from(facts.model)),
            ("mode", Value::from(facts.mode.name())),
        ]);
        Self { tools, values }
    }

    pub(super) fn context(&self) -> Value {
        Value::from(self.values.clone())
    }

    /// What the template made of the tools.
    pub(super) fn told(&self) -> Told {
        self.tools.told().clone()
    }
}

/// `{{ tools }}`: everything; `{{ tools("mcp:files", "time") }}`: only these; `{% if tools %}`: are there any?
struct Tools {
    text: Arc<ToolsText>,
    told: Mutex<Told>,
}

/// What has been said of the tools in one rendering.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// How often.
    pub(super) times: usize,
    /// Names that mean no tool.
    pub(super) unmatched: Vec<String>,
}

impl Tools {
    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        // A number and a list of names: whole at any moment.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Definitions, with the guide in front if it has not been said yet.
    fn tell(&self, tools: &[&ToolText]) -> String {
        let mut told = self.told();
        told.times += 1;
        let definitions = self.text.definitions(tools);
        let guide = (told.times == 1 && !tools.is_empty()).then_some(&self.text.guide);
        paragraphs(guide.into_iter().chain([&definitions]))
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tools")
    }
}

impl Object for Tools {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        !self.text.is_empty()
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tell(&self.text.tools.iter().collect::<Vec<_>>()))
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let mut meant: Vec<&ToolText> = Vec::new();
        for arg in args {
            let name = arg.as_str().ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidOperation,
                    "tools(…) takes names of sources, groups or tools as texts",
                )
            })?;
            match self.text.only(name) {
                Some(found) => meant.extend(found),
                // Nothing to choose from is no mistake of the name's.
                None if self.text.is_empty() => {}
                None => self.told().unmatched.push(name.to_owned()),
            }
        }
        if args.is_empty() {
            meant.extend(&self.text.tools);
        }
        meant.sort_by(|a, b| a.name.cmp(&b.name));
        meant.dedup_by(|a, b| a.name == b.name);
        Ok(Value::from(self.tell(&meant)))
    }
}

/// `{{ date }}` as ISO 8601 has it, `{{ date("%A, %-d %B") }}` as strftime has it; `{{ time }}` likewise.
struct Moment {
    shown: String,
    at: Zoned,
}

impl Moment {
    fn tell(&self, format: &str) -> Result<String, Error> {
        jiff::fmt::strtime::format(format, &self.at).map_err(|error| {
            Error::new(ErrorKind::InvalidOperation, format!("`{format}` is not a format of a time: {error}"))
        })
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at)
    }
}

impl Object for Moment {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tell(&self.shown).map_err(|_| fmt::Error)?)
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let format = match args {
            [] => self.shown.as_str(),
            [format] => format.as_str().ok_or_else(|| {
                Error::new(ErrorKind::InvalidOperation, "the format of a time is a text: date(\"%A\")")
            })?,
            _ => return Err(Error::from(ErrorKind::TooManyArguments)),
        };
        Ok(Value::from(self.tell(format)?))
    }
}
