//! What a running tool asks of a person, and the time that stands still meanwhile. R: L6
//!
//! A tool asks through its context ([`ToolContext::ask`](crate::ToolContext::ask)); who puts the question to a person is
//! whoever runs the tool: an [`Asker`] in the [`ToolCall`](crate::ToolCall). Without one there is nobody to ask, and the
//! answer is [`ToolAnswer::Decline`].

use crate::schema::Schema;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use throughline_engine::{ToolAnswer, ToolQuestion, Wants};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How long a call's time limit stands still while its tool asks, in all its questions together, unless the caller says
/// otherwise.
pub const ASKED_MAX_DEFAULT: Duration = Duration::from_secs(30 * 60);

/// Puts the questions of a running tool to a person.
#[derive(Clone, Default)]
pub struct Asker(Option<Arc<dyn Fn(ToolQuestion) -> BoxFuture<'static, ToolAnswer> + Send + Sync>>);

impl Asker {
    /// Asks by this function.
    pub fn new<F, Fut>(ask: F) -> Self
    where
        F: Fn(ToolQuestion) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ToolAnswer> + Send + 'static,
    {
        Self(Some(Arc::new(move |question| Box::pin(ask(question)))))
    }

    /// There is nobody to ask: every question is declined.
    pub fn nobody() -> Self {
        Self::default()
    }

    pub(crate) async fn ask(&self, question: ToolQuestion) -> ToolAnswer {
        match &self.0 {
            Some(ask) => ask(question).await,
            None => ToolAnswer::Decline,
        }
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Asker" } else { "Asker(nobody)" })
    }
}

/// The answer as the tool is told it: what a person left out has the schema's default, and all of it fits. Whoever takes a
/// person's answer calls this first, so that the person can correct it.
///
/// ```
/// use serde_json::json;
/// use throughline_tools::{ToolAnswer, completed};
/// let schema = json!({"type": "object", "required": ["name"], "properties": {
///     "name": {"type": "string"}, "copies": {"type": "integer", "default": 1},
/// }});
/// let accept = |content| ToolAnswer::Accept { content: Some(content) };
/// assert_eq!(completed(Some(&schema), accept(json!({"name": "Ada"}))), Ok(accept(json!({"name": "Ada", "copies": 1}))));
/// assert_eq!(completed(Some(&schema), accept(json!({"name": 7}))), Err("/name: expected string, got 7".to_owned()));
/// assert_eq!(completed(Some(&schema), ToolAnswer::Decline), Ok(ToolAnswer::Decline));
/// ```
///
/// # Errors
/// What does not fit, with its place.
pub fn completed(schema: Option<&Value>, answer: ToolAnswer) -> Result<ToolAnswer, String> {
    let (schema, content) = match (schema, answer) {
        (Some(schema), ToolAnswer::Accept { content }) => (schema, content),
        // Nothing was to be filled in: the tool is told that it was done, and no more.
        (None, ToolAnswer::Accept { .. }) => return Ok(ToolAnswer::Accept { content: None }),
        (_, answer) => return Ok(answer),
    };
    let mut content = content.unwrap_or_else(|| Value::Object(Map::new()));
    if let (Some(fields), Some(values)) =
        (schema.get("properties").and_then(Value::as_object), content.as_object_mut())
    {
        for (name, field) in fields {
            if let Some(default) = field.get("default").filter(|_| !values.contains_key(name)) {
                values.insert(name.clone(), default.clone());
            }
        }
    }
    let schema = Schema::compile(schema).map_err(|fault| fault.to_string())?;
    schema.check(&content).map_err(|error| error.to_string())?;
    Ok(ToolAnswer::Accept { content: Some(content) })
}

/// What a tool and its executor share about questions.
#[derive(Debug)]
pub(crate) struct Asking {
    asker: Asker,
    pub(crate) standstill: Standstill,
    /// One question at a time: a person reads one after the other, too.
    one: tokio::sync::Mutex<()>,
}

impl Asking {
    pub(crate) fn new(asker: Asker, asked_max: Duration) -> Self {
        Self { asker, standstill: Standstill::new(asked_max), one: tokio::sync::Mutex::new(()) }
    }

    /// Asks, and holds the call's time meanwhile.
    pub(crate) async fn ask(&self, question: ToolQuestion) -> ToolAnswer {
        let _one = self.one.lock().await;
        let schema = match &question.wants {
            Wants::Form { schema } => Some(schema.clone()),
            Wants::Url { .. } => None,
        };
        // A form that nobody can fill in is not shown to anyone.
        if schema.as_ref().is_some_and(|schema| Schema::compile(schema).is_err()) {
            return ToolAnswer::Cancel;
        }
        let _still = self.standstill.begin();
        let answer = self.asker.ask(question).await;
        // Whoever asks has checked it; what does not fit never reaches a tool.
        completed(schema.as_ref(), answer).unwrap_or(ToolAnswer::Cancel)
    }
}

/// The clock of a call, which stands still while its tool asks.
#[derive(Debug)]
pub(crate) struct Standstill {
    state: Mutex<Standing>,
    changed: Notify,
    max: Duration,
}

#[derive(Debug, Default)]
struct Standing {
    since: Option<Instant>,
    before: Duration,
}

impl Standstill {
    fn new(max: Duration) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), max }
    }

    fn state(&self) -> MutexGuard<'_, Standing> {
        // Nothing in here can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Still<'_> {
        self.state().since = Some(Instant::now());
        self.changed.notify_one();
        Still(self)
    }

    /// Waits until a call has run for `limit` since `started`, without the time in which it stood still.
    pub(crate) async fn over(&self, started: Instant, limit: Duration) {
        loop {
            let stood = {
                let state = self.state();
                if state.since.is_some() { self.max } else { state.before.min(self.max) }
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep_until(started + limit + stood) => return,
            }
        }
    }
}

/// Time stands still until this is dropped: also if the tool gives up its question.
struct Still<'a>(&'a Standstill);

impl Drop for Still<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if let Some(since) = state.since.take() {
            state.before += since.elapsed();
        }
        drop(state);
        self.0.changed.notify_one();
    }
}
