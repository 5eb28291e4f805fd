//! A running turn as its starter sees it: a cursor in its log, and a control to send commands.

use super::answer::{self, AnswerError};
use super::append_lag::AppendLag;
use super::command::{
    CancelCallResult, CommandAck, CommandSender, RetractResult, SendResult, ToolAnswerResult, TurnCommand,
};
use super::request::UserInput;
use super::steering_queue::{EnqueueResult, SteeringQueue};
use crate::approval::{ApprovalOutcome, ApprovalResponse};
use crate::media::MediaOffloader;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::fold::AssistantMessage;
use throughline_engine::{
    ApprovalDecision, ApprovalId, ApprovalTarget, Event, MessageTiming, QueuedMessage, ToolAnswer, TurnId,
    TurnWait, UserMessageId,
};
use throughline_store::{Log, LogRecord, LogTail};
use throughline_wire::CallId;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

/// A turn: its events, one after the other, and the message that they add up to.
///
/// The turn runs even if its events are not read: they wait in the log, in order and complete. Dropping the
/// `TurnHandle` stops the turn (as [`cancel`](Self::cancel) does), so that a forgotten turn costs nothing;
/// [`detach`](Self::detach) lets it continue.
///
/// ```
/// # use throughline_testkit as testkit;
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # use throughline::{Throughline, Upstream, wire::Dialect};
/// # use throughline::tools::{Effect, NoArguments, tool};
/// use throughline::{ApprovalDecision, EventKind};
/// # let server = testkit::FakeUpstream::start(testkit::ScriptQueue::new([
/// #     testkit::ModelScript::new().call("calendar_add", serde_json::json!({})), testkit::ModelScript::new().say("Done."),
/// # ])).await?;
/// # let upstream = Upstream::new("demo", Dialect::OpenaiChat, &server.base_url(testkit::FakeDialect::OpenaiChat))?;
/// # let add = tool("calendar.add", "Adds an entry", |_: NoArguments, _| async { "added" }).effect(Effect::Write);
/// # let app = Throughline::builder().upstream(upstream).model("demo").tool(add.agent_callable()).build()?;
/// let mut turn = app.ask("Lunch at noon, please.").await?;
/// while let Some(event) = turn.next().await {
///     match &event.kind {
///         EventKind::ContentDelta { text, .. } => print!("{text}"),
///         EventKind::ApprovalRequest { approval_id, question, .. } => {
///             println!("{question}");
///             let _ = turn.answer(approval_id.clone(), ApprovalDecision::Approve).await;
///         }
///         _ => {}
///     }
/// }
/// assert_eq!(turn.message().text(), "Done.");
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TurnHandle {
    id: TurnId,
    reader: TurnReader,
    message: AssistantMessage,
    control: TurnControl,
    /// Stops the turn when dropped.
    guard: Option<DropGuard>,
}

impl TurnHandle {
    pub(crate) fn new(id: TurnId, log: Arc<dyn Log>, tail: Box<dyn LogTail>, control: TurnControl) -> Self {
        let guard = Some(control.abandoned.clone().drop_guard());
        let reader = TurnReader {
            turn: id.clone(),
            log,
            tail,
            finished: control.finished.clone(),
            after: 0,
            buffered: VecDeque::new(),
            tail_state: TailState::Open,
        };
        Self { id, reader, message: AssistantMessage::default(), control, guard }
    }

    /// Id of the turn, as in its events.
    pub fn id(&self) -> &TurnId {
        &self.id
    }

    /// The next event; `None` after the last. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        let event = self.reader.next().await?;
        self.message.apply(&event);
        Some(event)
    }

    /// The message as far as it has been read: the fold of the events that [`next`](Self::next) has given.
    pub fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// Reads to the end and returns the whole message: blocks, calls with their outcomes, usage, status. Use
    /// it if you do not need streaming; it reads the same events.
    ///
    /// If the log was lost during the turn, the message has no `status` and holds the events received so far.
    pub async fn finish(mut self) -> AssistantMessage {
        while self.next().await.is_some() {}
        self.message
    }

    /// Reads to the end and returns the answer as a value. The request must have asked for one:
    /// [`TurnRequest::answer_as`](crate::TurnRequest::answer_as), or `answer_schema` with your own schema and
    /// [`serde_json::Value`] as `T`.
    ///
    /// # Errors
    /// The turn failed or was stopped, or its last text is not such a value.
    pub async fn finish_as<T: DeserializeOwned>(self) -> Result<T, AnswerError> {
        answer::read(&self.finish().await)
    }

    /// Answers one question. See [`TurnControl::answer`].
    pub async fn answer(&self, question: ApprovalId, decision: ApprovalDecision) -> CommandAck {
        self.control.answer(question, decision, None).await
    }

    /// Stops the turn: the upstream's stream, open questions, running tools. The message retains its content so far,
    /// and every call ends with its true outcome. Events continue until the last one.
    pub async fn cancel(&self) -> CommandAck {
        self.control.cancel().await
    }

    /// Cancels one call; the turn continues.
    pub async fn cancel_call(&self, call: CallId) -> CancelCallResult {
        self.control.cancel_call(call).await
    }

    /// A handle for other tasks: to stop the turn at Ctrl-C, or to answer from elsewhere.
    pub fn control(&self) -> TurnControl {
        self.control.clone()
    }

    /// Lets the turn run to its end without this handle.
    pub fn detach(mut self) -> TurnControl {
        if let Some(guard) = self.guard.take() {
            guard.disarm();
        }
        self.control.clone()
    }
}

/// Sends messages and commands to a running turn. Cheap to clone; holding it does not keep the turn alive.
#[derive(Clone, Debug)]
pub struct TurnControl {
    pub(crate) commands: CommandSender,
    pub(crate) finished: CancellationToken,
    /// The handle has been dropped: the turn is being stopped.
    pub(crate) abandoned: CancellationToken,
    /// Person or client that the turn waits for.
    pub(crate) waits: watch::Receiver<Option<TurnWait>>,
    /// Messages that the user sends during the turn.
    pub(crate) steering_queue: SteeringQueue,
    /// Largest number of queued messages.
    pub(crate) messages_max: usize,
    /// Stores content that is too large for the log.
    pub(crate) offloader: MediaOffloader,
    pub(crate) append_lag: AppendLag,
}

impl TurnControl {
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.is_cancelled()
    }

    /// Person or client that the turn waits for while nothing of it runs. `None` while it runs, and once it
    /// is over.
    pub fn waits_for(&self) -> Option<TurnWait> {
        *self.waits.borrow()
    }

    /// Waits until [`waits_for`](Self::waits_for) differs from this value, and returns it. `None` = the turn
    /// is over.
    ///
    /// A server counts a turn that waits as one that costs nothing:
    ///
    /// ```no_run
    /// # async fn count(control: throughline::TurnControl) {
    /// let mut wait = None;
    /// while let Some(next) = control.next_wait(wait).await {
    ///     wait = next;
    ///     println!("{}", if wait.is_some() { "waits" } else { "runs" });
    /// }
    /// # }
    /// ```
    pub async fn next_wait(&self, known: Option<TurnWait>) -> Option<Option<TurnWait>> {
        let mut waits = self.waits.clone();
        waits.wait_for(|wait| *wait != known).await.ok().map(|wait| *wait)
    }

    /// Answers one question. The model receives the reason of a denial.
    pub async fn answer(
        &self,
        question: ApprovalId,
        decision: ApprovalDecision,
        reason: Option<String>,
    ) -> CommandAck {
        self.answer_with(question, ApprovalResponse::from_decision(decision, reason)).await
    }

    /// Answers one question, with changed arguments or for longer than this call.
    pub async fn answer_with(&self, question: ApprovalId, answer: ApprovalResponse) -> CommandAck {
        self.commands
            .send(TurnCommand::Answer {
                question: ApprovalTarget::One(question),
                answer,
                by: "user".to_owned(),
            })
            .await
    }

    /// Answers one question and returns the outcome of the answer when the log has it. Of several answers the first
    /// wins, and all senders get the same result.
    pub async fn decide(&self, question: ApprovalId, answer: ApprovalResponse) -> ApprovalOutcome {
        self.decide_as(question, answer, "user").await
    }

    /// Like [`decide`](Self::decide), on behalf of a named person, whose name the log records.
    pub async fn decide_as(
        &self,
        question: ApprovalId,
        answer: ApprovalResponse,
        by: &str,
    ) -> ApprovalOutcome {
        let by = by.to_owned();
        let decided = self.commands.ask(|reply| TurnCommand::Decide { question, answer, by, reply });
        decided.await.unwrap_or(ApprovalOutcome::TurnEnded)
    }

    /// Answers all questions that are open now.
    pub async fn answer_all(&self, decision: ApprovalDecision, reason: Option<String>) -> CommandAck {
        self.answer_all_with(ApprovalResponse::from_decision(decision, reason)).await
    }

    /// Answers all questions that are open now, for longer than their calls or with the end of the turn.
    pub async fn answer_all_with(&self, answer: ApprovalResponse) -> CommandAck {
        self.commands
            .send(TurnCommand::Answer { question: ApprovalTarget::All, answer, by: "user".to_owned() })
            .await
    }

    /// Answers a question of a running tool. The values are checked first; invalid ones can be corrected.
    pub async fn answer_tool(&self, question: ApprovalId, answer: ToolAnswer) -> ToolAnswerResult {
        let by = "user".to_owned();
        let answered = self.commands.ask(|reply| TurnCommand::AnswerTool { question, answer, by, reply });
        answered.await.unwrap_or(ToolAnswerResult::TurnEnded)
    }

    /// Sends a message to the running turn: to be read before its next step, or as the input of the next turn.
    ///
    /// Messages that the turn has not read by its end stay in [`queued`](Self::queued); a
    /// [`Conversation`](crate::Conversation) starts its next turn with them.
    pub async fn send(&self, input: impl Into<UserInput>, when: MessageTiming) -> SendResult {
        let id = UserMessageId::new(format!("msg_{}", Uuid::now_v7().simple()));
        self.send_as(id, input, when).await
    }

    /// Sends a message under the caller's id, unique in the turn. Repeating it with the same id has no
    /// further effect.
    pub async fn send_as(
        &self,
        id: UserMessageId,
        input: impl Into<UserInput>,
        when: MessageTiming,
    ) -> SendResult {
        if self.is_over() {
            return SendResult::TurnEnded;
        }
        let mut input = input.into().into_parts();
        self.offloader.offload_parts(&mut input).await;
        let message = QueuedMessage { id: id.clone(), input, when };
        if self.steering_queue.enqueue(message.clone(), self.messages_max) == EnqueueResult::Full {
            return SendResult::QueueFull;
        }
        match self.commands.send(TurnCommand::SendMessage(message)).await {
            // If the end comes first, it waits for the next turn.
            CommandAck::Accepted => SendResult::Queued(id),
            CommandAck::TurnEnded => {
                self.steering_queue.remove(&id);
                SendResult::TurnEnded
            }
        }
    }

    /// Retracts a message that the turn has not read yet.
    pub async fn retract(&self, id: UserMessageId) -> RetractResult {
        let retracted = self.commands.ask(|reply| TurnCommand::Retract { id: id.clone(), reply });
        retracted.await.unwrap_or_else(|| self.retract_after_end(&id))
    }

    fn retract_after_end(&self, id: &UserMessageId) -> RetractResult {
        self.steering_queue
            .remove(id)
            .map_or(RetractResult::TooLate, |message| RetractResult::Retracted(message.input))
    }

    /// Messages that the turn has not read, oldest first. After the end: the input of the next turn.
    pub fn queued(&self) -> Vec<QueuedMessage> {
        self.steering_queue.queued()
    }

    /// Takes messages that the turn did not read, after its end. While the turn runs they belong to it, and
    /// the result is empty.
    pub fn take_queued(&self) -> Vec<QueuedMessage> {
        if self.is_over() { self.steering_queue.take_all() } else { Vec::new() }
    }

    /// Stops the turn. A second call no longer waits for tools to report how they ended.
    pub async fn cancel(&self) -> CommandAck {
        self.commands.send(TurnCommand::Cancel { why: None }).await
    }

    /// Stops the turn on behalf of the program instead of the user: its notice gives this reason.
    pub async fn cancel_because(&self, why: impl Into<String>) -> CommandAck {
        self.commands.send(TurnCommand::Cancel { why: Some(why.into()) }).await
    }

    /// Cancels one call, and returns the result when the log has it.
    pub async fn cancel_call(&self, call: CallId) -> CancelCallResult {
        let cancelled = self.commands.ask(|reply| TurnCommand::CancelCall { call, reply });
        cancelled.await.unwrap_or(CancelCallResult::TurnEnded)
    }

    /// Time for which the turn has been waiting for its log; later events become visible only when the log
    /// has them.
    pub fn append_lag(&self) -> Option<Duration> {
        self.append_lag.elapsed()
    }

    /// Waits until the turn is over and the log has all of it.
    pub async fn wait_for_end(&self) {
        self.finished.cancelled().await;
    }

    /// True once it is over.
    pub fn is_over(&self) -> bool {
        self.finished.is_cancelled()
    }
}

/// A cursor in the log that also notices the end of the writer.
struct TurnReader {
    turn: TurnId,
    log: Arc<dyn Log>,
    tail: Box<dyn LogTail>,
    finished: CancellationToken,
    after: u64,
    buffered: VecDeque<Event>,
    tail_state: TailState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TailState {
    Open,
    /// The driver has stopped; the rest of the log is read once more without waiting.
    DriverStopped,
    Ended,
}

/// Events per read from the log of a turn that has no driver any more.
const RECORDS_PER_READ: usize = 1_024;

impl TurnReader {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.buffered.pop_front() {
                self.after = event.seq.0;
                return Some(event);
            }
            match self.tail_state {
                TailState::Ended => return None,
                TailState::DriverStopped => {
                    let read = self.log.read(self.turn.as_str(), self.after, RECORDS_PER_READ).await;
                    let records = read.unwrap_or_default();
                    if records.is_empty() {
                        self.tail_state = TailState::Ended;
                    }
                    self.buffer(records);
                }
                TailState::Open => tokio::select! {
                    biased;
                    records = self.tail.next() => match records {
                        Ok(Some(records)) => self.buffer(records),
                        Ok(None) | Err(_) => {
                            // The last event is in the log a moment before the turn has released everything;
                            // after the end has been seen, both hold.
                            self.finished.cancelled().await;
                            self.tail_state = TailState::Ended;
                        }
                    },
                    () = self.finished.cancelled() => self.tail_state = TailState::DriverStopped,
                },
            }
        }
    }

    fn buffer(&mut self, records: Vec<LogRecord>) {
        // Written by this process: an unreadable record cannot occur, and readers ignore unknown ones.
        self.buffered
            .extend(records.iter().filter_map(|record| serde_json::from_slice(&record.payload).ok()));
        if let Some(last) = records.last() {
            self.after = self.after.max(last.seq);
        }
    }
}
