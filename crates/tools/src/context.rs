//! The context of a running tool: its identity, its cancellation, and a way to report progress.

use crate::execute::ExecutorLimits;
use crate::output::{OutputCollector, OutputLimits, Utf8Joiner};
use crate::question::{QUESTION_WAIT_MAX_DEFAULT, QuestionChannel, QuestionHandler};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use throughline_engine::{CallProgress, ToolAnswer, ToolQuestion};
use throughline_wire::CallId;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Progress of a tool, as the tool reports it. Numbers are in any unit; without a total they are only shown.
///
/// ```
/// use throughline_tools::ToolProgress;
/// let progress = ToolProgress::new(3.0).with_total(10.0).with_message("page 3 of 10");
/// assert_eq!(progress.total, Some(10.0));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolProgress {
    /// Amount done.
    pub progress: Option<f64>,
    /// Total amount.
    pub total: Option<f64>,
    /// Current activity, for people.
    pub message: Option<String>,
}

impl ToolProgress {
    /// A report of the amount done.
    pub fn new(progress: f64) -> Self {
        Self { progress: Some(progress), ..Self::default() }
    }
    /// Adds the total amount.
    #[must_use]
    pub fn with_total(mut self, total: f64) -> Self {
        self.total = Some(total);
        self
    }
    /// Adds the current activity.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

/// Handed to a tool with each call; cheap to clone.
#[derive(Clone, Debug)]
pub struct ToolContext {
    identity: Arc<CallIdentity>,
    cancel: CancellationToken,
    reports: Arc<ReportBuffer>,
    questions: Arc<QuestionChannel>,
}

#[derive(Debug)]
struct CallIdentity {
    call_id: CallId,
    attempt: u32,
    idempotency_key: String,
    stop_grace: Duration,
}

impl ToolContext {
    pub(crate) fn new(
        call_id: CallId,
        attempt: u32,
        idempotency_key: String,
        stop_grace: Duration,
        cancel: CancellationToken,
        reports: Arc<ReportBuffer>,
        questions: Arc<QuestionChannel>,
    ) -> Self {
        Self {
            identity: Arc::new(CallIdentity { call_id, attempt, idempotency_key, stop_grace }),
            cancel,
            reports,
            questions,
        }
    }

    /// A context without a turn: for manual calls of a tool, and for its tests. Its reports are discarded,
    /// and its questions are declined.
    pub fn detached() -> Self {
        Self::detached_with(QuestionHandler::decline_all())
    }

    /// A context without a turn whose questions `question_handler` answers.
    pub fn detached_with(question_handler: QuestionHandler) -> Self {
        let collector = OutputCollector::new(OutputLimits::default(), None, "detached".into());
        let reports = Arc::new(ReportBuffer::new(collector, 0));
        let questions = Arc::new(QuestionChannel::new(question_handler, QUESTION_WAIT_MAX_DEFAULT));
        Self::new(
            CallId::from("call_detached"),
            1,
            "detached".into(),
            ExecutorLimits::default().grace,
            CancellationToken::new(),
            reports,
            questions,
        )
    }

    /// Id of this call; the same in every attempt.
    pub fn call_id(&self) -> &CallId {
        &self.identity.call_id
    }

    /// Number of this attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.identity.attempt
    }

    /// Time that a stopped tool has to end: [`ExecutorLimits::grace`].
    pub(crate) fn stop_grace(&self) -> Duration {
        self.identity.stop_grace
    }

    /// Key of this call: the same for every attempt, different for every other call of every turn. An API
    /// uses it to perform a request only once. The model cannot influence it.
    pub fn idempotency_key(&self) -> &str {
        &self.identity.idempotency_key
    }

    /// Fires when the tool should stop.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Should the tool stop? For code that does not await.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Reports the tool's progress. Never waits; may be called at any rate, and the latest report is passed
    /// on.
    pub fn report(&self, progress: ToolProgress) {
        self.reports.report(progress);
    }

    /// Asks a person and waits for the answer; the call's time limit is paused during it (for
    /// [`question_wait_max`](crate::ToolInvocation::question_wait_max) in total). One question at a time: a
    /// second one waits for the first.
    ///
    /// The person's answer fits the schema; omitted fields have the schema's default. No person available, or
    /// no answer in time: declined. A call that is being stopped: cancelled immediately. Do not ask for
    /// secrets: answers are logged.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use serde_json::json;
    /// use throughline_tools::{QuestionHandler, ToolAnswer, ToolContext, ToolQuestion};
    ///
    /// let context = ToolContext::detached_with(QuestionHandler::new(|_question| async {
    ///     ToolAnswer::Accept { content: Some(json!({"seat": "12A"})) }
    /// }));
    /// let schema = json!({"type": "object", "required": ["seat"], "properties": {"seat": {"type": "string"}}});
    /// match context.ask(ToolQuestion::form("Which seat?", schema)).await {
    ///     ToolAnswer::Accept { content } => assert_eq!(content, Some(json!({"seat": "12A"}))),
    ///     _ => unreachable!("a seat was chosen"),
    /// }
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn ask(&self, question: ToolQuestion) -> ToolAnswer {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => ToolAnswer::Cancel,
            answer = self.questions.ask(question) => answer,
        }
    }

    /// Appends to the output. If the tool returns no text, this is its output; for a stopped tool it is the
    /// partial output. Any amount may be written: memory stays flat.
    ///
    /// Dropping the future in the middle may leave this piece out of the file that stores a large output.
    pub async fn write(&self, bytes: impl AsRef<[u8]> + Send) {
        self.reports.write(bytes.as_ref()).await;
    }
}

/// Reports of a tool that have not been fetched yet. Bounded: progress is overwritten, output is collected by the
/// collector.
#[derive(Debug)]
pub(crate) struct ReportBuffer {
    pending: Mutex<PendingReport>,
    changed: Notify,
    /// `None` once the call is over: what comes later is dropped.
    collector: tokio::sync::Mutex<Option<OutputCollector>>,
}

#[derive(Debug, Default)]
struct PendingReport {
    progress: Option<ToolProgress>,
    delta: String,
    joiner: Utf8Joiner,
    /// Bytes of output that may still be reported.
    bytes_left: usize,
}

impl ReportBuffer {
    pub(crate) fn new(collector: OutputCollector, partial_bytes_max: usize) -> Self {
        Self {
            pending: Mutex::new(PendingReport { bytes_left: partial_bytes_max, ..PendingReport::default() }),
            changed: Notify::new(),
            collector: tokio::sync::Mutex::new(Some(collector)),
        }
    }

    fn pending(&self) -> MutexGuard<'_, PendingReport> {
        // A panic while the lock was held leaves at worst half an update, which is only for show.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, progress: ToolProgress) {
        self.pending().progress = Some(progress);
        self.changed.notify_one();
    }

    async fn write(&self, bytes: &[u8]) {
        let mut collector = self.collector.lock().await;
        let Some(collector) = collector.as_mut() else { return };
        let has_delta = {
            let mut pending = self.pending();
            let PendingReport { delta, joiner, bytes_left, .. } = &mut *pending;
            let reported = &bytes[..bytes.len().min(*bytes_left)];
            *bytes_left -= reported.len();
            joiner.push(reported, delta);
            !delta.is_empty()
        };
        if has_delta {
            self.changed.notify_one();
        }
        collector.push(bytes).await;
    }

    /// Waits until there is something to pass on. Cancel safe.
    pub(crate) async fn wait_for_report(&self) {
        loop {
            {
                let pending = self.pending();
                if pending.progress.is_some() || !pending.delta.is_empty() {
                    return;
                }
            }
            self.changed.notified().await;
        }
    }

    /// The latest progress and the output since the last time.
    pub(crate) fn take(&self) -> CallProgress {
        let mut pending = self.pending();
        let ToolProgress { progress, total, message } = pending.progress.take().unwrap_or_default();
        let delta = std::mem::take(&mut pending.delta);
        CallProgress { progress, total, message, output_delta: (!delta.is_empty()).then_some(delta) }
    }

    /// Ends the reports and returns the collected output. `None` if the tool still holds it and cannot be
    /// stopped.
    pub(crate) fn close(&self) -> Option<OutputCollector> {
        self.collector.try_lock().ok()?.take()
    }
}
