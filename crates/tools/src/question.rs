//! Questions of a running tool to a person; the call's time limit is paused during them.
//!
//! A tool asks through its context ([`ToolContext::ask`](crate::ToolContext::ask)); the caller puts the
//! question to a person, through a [`QuestionHandler`] in the [`ToolInvocation`](crate::ToolInvocation).
//! Without one no person can be asked, and the answer is [`ToolAnswer::Decline`].

use crate::schema::CompiledSchema;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use throughline_engine::{ElicitationMode, ToolAnswer, ToolQuestion};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Default limit of the time for which a call's time limit is paused while its tool asks, over all its
/// questions.
pub const QUESTION_WAIT_MAX_DEFAULT: Duration = Duration::from_secs(30 * 60);

/// Puts the questions of a running tool to a person.
#[derive(Clone, Default)]
pub struct QuestionHandler(Option<Arc<dyn Fn(ToolQuestion) -> BoxFuture<'static, ToolAnswer> + Send + Sync>>);

impl QuestionHandler {
    /// Asks by this function.
    pub fn new<F, Fut>(ask: F) -> Self
    where
        F: Fn(ToolQuestion) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ToolAnswer> + Send + 'static,
    {
        Self(Some(Arc::new(move |question| Box::pin(ask(question)))))
    }

    /// A handler that declines every question: no person can be asked.
    pub fn decline_all() -> Self {
        Self::default()
    }

    pub(crate) async fn ask(&self, question: ToolQuestion) -> ToolAnswer {
        match &self.0 {
            Some(ask) => ask(question).await,
            None => ToolAnswer::Decline,
        }
    }
}

impl fmt::Debug for QuestionHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "QuestionHandler" } else { "QuestionHandler(none)" })
    }
}

/// The answer as the tool receives it: omitted fields have the schema's default, and all of it fits. Code that takes a
/// person's answer calls this first, so that the person can correct it.
///
/// ```
/// use serde_json::json;
/// use throughline_tools::{ToolAnswer, complete_answer};
/// let schema = json!({"type": "object", "required": ["name"], "properties": {
///     "name": {"type": "string"}, "copies": {"type": "integer", "default": 1},
/// }});
/// let accept = |content| ToolAnswer::Accept { content: Some(content) };
/// assert_eq!(complete_answer(Some(&schema), accept(json!({"name": "Ada"}))), Ok(accept(json!({"name": "Ada", "copies": 1}))));
/// assert_eq!(complete_answer(Some(&schema), accept(json!({"name": 7}))), Err("/name: expected string, got 7".to_owned()));
/// assert_eq!(complete_answer(Some(&schema), ToolAnswer::Decline), Ok(ToolAnswer::Decline));
/// ```
///
/// # Errors
/// The mismatch, with its path.
pub fn complete_answer(schema: Option<&Value>, answer: ToolAnswer) -> Result<ToolAnswer, String> {
    let (schema, content) = match (schema, answer) {
        (Some(schema), ToolAnswer::Accept { content }) => (schema, content),
        // The question has no form: the tool only learns that the person accepted.
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
    let schema = CompiledSchema::compile(schema).map_err(|fault| fault.to_string())?;
    schema.check(&content).map_err(|error| error.to_string())?;
    Ok(ToolAnswer::Accept { content: Some(content) })
}

/// State of questions that a tool and its executor share.
#[derive(Debug)]
pub(crate) struct QuestionChannel {
    asker: QuestionHandler,
    pub(crate) clock: PausableClock,
    /// One question at a time: a person reads one after the other, too.
    ask_lock: tokio::sync::Mutex<()>,
}

impl QuestionChannel {
    pub(crate) fn new(handler: QuestionHandler, wait_max: Duration) -> Self {
        Self { asker: handler, clock: PausableClock::new(wait_max), ask_lock: tokio::sync::Mutex::new(()) }
    }

    /// Asks a question and pauses the call's time limit until the answer.
    pub(crate) async fn ask(&self, question: ToolQuestion) -> ToolAnswer {
        let _turn = self.ask_lock.lock().await;
        let schema = match &question.mode {
            ElicitationMode::Form { schema } => Some(schema.clone()),
            _ => None,
        };
        // A form that cannot be filled in is not shown.
        if schema.as_ref().is_some_and(|schema| CompiledSchema::compile(schema).is_err()) {
            return ToolAnswer::Cancel;
        }
        let _pause = self.clock.pause();
        let answer = self.asker.ask(question).await;
        // The handler has validated the answer; an answer that does not fit never reaches a tool.
        complete_answer(schema.as_ref(), answer).unwrap_or(ToolAnswer::Cancel)
    }
}

/// Clock of a call, paused while its tool asks.
#[derive(Debug)]
pub(crate) struct PausableClock {
    state: Mutex<PauseState>,
    changed: Notify,
    pause_max: Duration,
}

#[derive(Debug, Default)]
struct PauseState {
    paused_since: Option<Instant>,
    paused_total: Duration,
}

impl PausableClock {
    fn new(pause_max: Duration) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), pause_max }
    }

    fn state(&self) -> MutexGuard<'_, PauseState> {
        // Nothing in here can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pause(&self) -> PauseGuard<'_> {
        self.state().paused_since = Some(Instant::now());
        self.changed.notify_one();
        PauseGuard(self)
    }

    /// Waits until a call has run for `limit` since `started`, not counting pauses.
    pub(crate) async fn wait_for_timeout(&self, started: Instant, limit: Duration) {
        loop {
            let paused = {
                let state = self.state();
                if state.paused_since.is_some() {
                    self.pause_max
                } else {
                    state.paused_total.min(self.pause_max)
                }
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep_until(started + limit + paused) => return,
            }
        }
    }
}

/// Pauses the clock until it is dropped, also if the tool abandons its question.
struct PauseGuard<'a>(&'a PausableClock);

impl Drop for PauseGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if let Some(since) = state.paused_since.take() {
            state.paused_total += since.elapsed();
        }
        drop(state);
        self.0.changed.notify_one();
    }
}
