//! Runs one call and answers with how it ended: always a value, never an exception, never later than its limit plus
//! the grace.
//!
//! Does not decide when a call runs, and whether it may: a caller who gets here has settled that.

use crate::context::{ReportBuffer, ToolContext};
use crate::output::{OutputCollector, OutputLimits, OutputSpool, apply_limits};
use crate::question::{QUESTION_WAIT_MAX_DEFAULT, QuestionChannel, QuestionHandler};
use crate::registry::{RegisteredTool, ToolRegistry};
use crate::schema::truncate_chars;
use crate::toggles::ToolToggles;
use crate::tool::ToolError;
use std::any::Any;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::{CallProgress, Effect};
use throughline_wire::{CallArguments, CallId, CallOutcome, NotStarted, StartState, ToolName, ToolOutput};
use tokio::task::JoinError;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Most characters of a tool's error message that the model receives; a flood belongs in the partial output.
pub const MESSAGE_CHARS_MAX: usize = 4_000;

/// Limits of running tools. A tool's time limit is its own: [`ToolSpec::timeout`](crate::ToolSpec).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutorLimits {
    /// Time in which a cancelled tool can end. Default 1.5 s: less than the 2 s after which the engine closes
    /// a cancelled call without its outcome.
    pub grace: Duration,
    /// Time to wait for an aborted tool. Default 250 ms: an abort takes effect at the tool's next await, and one
    /// that blocks its thread never comes to it.
    pub abort_wait: Duration,
    /// Least time between two progress updates of a call. Default 200 ms: five a second.
    pub progress_interval: Duration,
    /// Limits of the output.
    pub output: OutputLimits,
}

impl Default for ExecutorLimits {
    fn default() -> Self {
        Self {
            grace: Duration::from_millis(1_500),
            abort_wait: Duration::from_millis(250),
            progress_interval: Duration::from_millis(200),
            output: OutputLimits::default(),
        }
    }
}

/// One call to run.
#[derive(Clone, Debug)]
pub struct ToolInvocation {
    /// Our id of it.
    pub call: CallId,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Key that is the same for every attempt at this call, different for every other call of every turn.
    /// Also the name of the file of a large output.
    pub idempotency_key: String,
    /// Name of the tool.
    pub tool: ToolName,
    /// Arguments of the call.
    pub arguments: CallArguments,
    /// A time limit instead of the tool's own.
    pub timeout: Option<Duration>,
    /// Most bytes of text of the output, instead of [`OutputLimits::shown_bytes_max`].
    pub output_bytes_max: Option<usize>,
    /// Fires when the call must stop.
    pub cancel: CancellationToken,
    /// Handler that puts the tool's questions to a person. Default: none, they are declined.
    pub question_handler: QuestionHandler,
    /// Limit of the time for which the call's time limit is paused, over all of the tool's questions. Default
    /// 30 minutes.
    pub question_wait_max: Duration,
}

impl ToolInvocation {
    /// A first try with the tool's own time limit, not cancelled by anything.
    pub fn new(call: impl Into<CallId>, tool: impl Into<ToolName>, arguments: CallArguments) -> Self {
        let call = call.into();
        Self {
            idempotency_key: call.as_str().to_owned(),
            call,
            attempt: 1,
            tool: tool.into(),
            arguments,
            timeout: None,
            output_bytes_max: None,
            cancel: CancellationToken::new(),
            question_handler: QuestionHandler::decline_all(),
            question_wait_max: QUESTION_WAIT_MAX_DEFAULT,
        }
    }
}

/// Runs tools.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use throughline_tools::{ToolExecutor, NoArguments, ToolRegistry, ToolInvocation, tool};
/// use throughline_wire::{CallArguments, CallOutcome, ToolOutput};
///
/// let ping = tool("net.ping", "Answers pong", |_: NoArguments, _| async { "pong" });
/// let registry = ToolRegistry::builder().tool(ping).build()?;
/// let call = ToolInvocation::new("call_1", "net.ping", CallArguments::from_value(serde_json::json!({})));
/// let outcome = ToolExecutor::default().run(&registry, call, |_progress| async {}).await;
/// assert_eq!(outcome, CallOutcome::Done(ToolOutput::text("pong")));
/// # Ok::<(), throughline_tools::RegistryError>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolExecutor {
    limits: ExecutorLimits,
    spool: Option<OutputSpool>,
}

/// Reason for which a tool was cancelled.
enum AbortCause {
    Cancelled,
    TimedOut { limit: Duration },
}

type TaskResult = Result<Result<ToolOutput, ToolError>, JoinError>;

impl ToolExecutor {
    /// An executor without a spool: of large outputs only head and tail are retained.
    pub fn new(limits: ExecutorLimits) -> Self {
        Self { limits, spool: None }
    }

    /// Keeps large outputs in files.
    #[must_use]
    pub fn with_spool(mut self, spool: OutputSpool) -> Self {
        self.spool = Some(spool);
        self
    }

    /// Runs a call to its end. Needs a tokio runtime.
    ///
    /// The arguments are checked here again, so that no caller can run them unchecked. `on_progress` is
    /// awaited before the next update is made: a slow receiver gets fewer and larger ones, and never delays
    /// the end. Dropping the future aborts the tool.
    pub async fn run<F, Fut>(
        &self,
        registry: &ToolRegistry,
        call: ToolInvocation,
        on_progress: F,
    ) -> CallOutcome
    where
        F: FnMut(CallProgress) -> Fut + Send,
        Fut: Future<Output = ()> + Send,
    {
        let Some(entry) = registry.get(&call.tool) else {
            let closest = registry.suggest(call.tool.as_str(), &ToolToggles::default());
            return CallOutcome::NotStarted(NotStarted::UnknownTool { closest });
        };
        if let Err(error) = entry.validate(&call.arguments) {
            return CallOutcome::NotStarted(NotStarted::InvalidArguments { message: error.to_string() });
        }
        if call.cancel.is_cancelled() {
            return CallOutcome::NotStarted(NotStarted::Stopped);
        }
        self.run_checked(entry, call, on_progress).await
    }

    async fn run_checked<F, Fut>(
        &self,
        entry: &RegisteredTool,
        call: ToolInvocation,
        on_progress: F,
    ) -> CallOutcome
    where
        F: FnMut(CallProgress) -> Fut + Send,
        Fut: Future<Output = ()> + Send,
    {
        let outputs = OutputSettings {
            limits: OutputLimits {
                shown_bytes_max: call.output_bytes_max.unwrap_or(self.limits.output.shown_bytes_max),
                ..self.limits.output
            },
            spool: self.spool.clone(),
            file_name: format!("{}-{}", call.idempotency_key, call.attempt),
        };
        let reports = Arc::new(ReportBuffer::new(outputs.collector(), outputs.limits.partial_bytes_max));
        let cancel_tool = CancellationToken::new();
        let limit = call.timeout.unwrap_or(entry.spec().timeout);
        let questions = Arc::new(QuestionChannel::new(call.question_handler, call.question_wait_max));
        let started = Instant::now();
        let context = ToolContext::new(
            call.call,
            call.attempt,
            call.idempotency_key,
            self.limits.grace,
            cancel_tool.clone(),
            reports.clone(),
            questions.clone(),
        );
        let tool = entry.tool().clone();
        let arguments = call.arguments;
        // A separate task catches panics, and can be stopped at any await.
        let mut task =
            AbortOnDropHandle::new(tokio::spawn(async move { tool.call(&arguments, context).await }));

        let result = tokio::select! {
            // A tool that has ended has ended, even if a cancel came in the same moment.
            biased;
            joined = &mut task => Ok(joined),
            () = call.cancel.cancelled() => Err(AbortCause::Cancelled),
            () = questions.clock.wait_for_timeout(started, limit) => Err(AbortCause::TimedOut { limit }),
            never = self.forward_reports(&reports, on_progress) => match never {},
        };
        match result {
            Ok(joined) => outcome_from(joined, entry.spec().effect, &reports, &outputs).await,
            Err(stop) => {
                cancel_tool.cancel();
                let late_result = self.stop(&mut task).await;
                let ran_ms = millis(started.elapsed());
                let returned = match late_result {
                    Some(Ok(Ok(output))) => Some(Box::new(output)),
                    Some(Ok(Err(ToolError::Failed { partial, .. } | ToolError::Lost { partial, .. }))) => {
                        partial
                    }
                    _ => None,
                };
                let partial = partial_output(returned, &reports, &outputs).await;
                match stop {
                    AbortCause::Cancelled => CallOutcome::Cancelled(StartState::Yes { ran_ms, partial }),
                    AbortCause::TimedOut { limit } => {
                        CallOutcome::TimedOut { limit_ms: millis(limit), partial }
                    }
                }
            }
        }
    }

    /// Passes reports on, no more often than allowed. Never ends.
    async fn forward_reports<F, Fut>(&self, reports: &ReportBuffer, mut on_progress: F) -> Infallible
    where
        F: FnMut(CallProgress) -> Fut + Send,
        Fut: Future<Output = ()> + Send,
    {
        let mut not_before = Instant::now();
        loop {
            reports.wait_for_report().await;
            sleep_until(not_before).await;
            not_before = Instant::now() + self.limits.progress_interval;
            on_progress(reports.take()).await;
        }
    }

    /// Lets the tool end within the grace, then aborts it.
    async fn stop(&self, task: &mut AbortOnDropHandle<Result<ToolOutput, ToolError>>) -> Option<TaskResult> {
        let mut task = Pin::new(task);
        if let Ok(joined) = timeout(self.limits.grace, &mut task).await {
            return Some(joined);
        }
        task.abort();
        timeout(self.limits.abort_wait, &mut task).await.ok()
    }
}

/// Limits of one call's output, and the file for output beyond them.
struct OutputSettings {
    limits: OutputLimits,
    spool: Option<OutputSpool>,
    file_name: String,
}

impl OutputSettings {
    fn collector(&self) -> OutputCollector {
        OutputCollector::new(self.limits, self.spool.clone(), self.file_name.clone())
    }
}

async fn outcome_from(
    joined: TaskResult,
    effect: Effect,
    reports: &ReportBuffer,
    outputs: &OutputSettings,
) -> CallOutcome {
    let (message, partial, is_lost) = match joined {
        Ok(Ok(output)) => {
            let streamed = streamed_output(reports).await;
            return CallOutcome::Done(apply_limits(output, streamed, outputs.collector()).await);
        }
        Ok(Err(ToolError::NotStarted(why))) => return CallOutcome::NotStarted(why),
        Ok(Err(ToolError::TimedOut { limit })) => {
            let partial = streamed_output(reports).await;
            return CallOutcome::TimedOut { limit_ms: millis(limit), partial };
        }
        Ok(Err(ToolError::Failed { message, partial })) => (message, partial, false),
        Ok(Err(ToolError::Lost { message, partial })) => (message, partial, true),
        Err(error) => match error.try_into_panic() {
            Ok(payload) => (format!("the tool panicked: {}", panic_text(payload.as_ref())), None, false),
            // Only a runtime that is shutting down aborts a task that we did not.
            Err(_) => return CallOutcome::unknown(),
        },
    };
    let partial = partial_output(partial, reports, outputs).await;
    let message = truncate_chars(&message, MESSAGE_CHARS_MAX);
    // The one place that decides this, for every source: a call without effects can be repeated after any
    // end.
    if is_lost && effect.has_effects() {
        CallOutcome::Unknown { message: Some(message), partial }
    } else {
        CallOutcome::Failed { message, partial }
    }
}

/// Output before the end: the tool's return value, else its streamed output.
async fn partial_output(
    returned: Option<Box<ToolOutput>>,
    reports: &ReportBuffer,
    outputs: &OutputSettings,
) -> Option<ToolOutput> {
    let streamed = streamed_output(reports).await;
    match returned {
        Some(output) => Some(apply_limits(*output, streamed, outputs.collector()).await),
        None => streamed,
    }
}

/// Output that the tool streamed while it ran, if any.
async fn streamed_output(reports: &ReportBuffer) -> Option<ToolOutput> {
    let collector = reports.close()?;
    if collector.size() == 0 { None } else { Some(collector.finish().await) }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Message of a panic.
fn panic_text(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "(no message)"
    }
}
