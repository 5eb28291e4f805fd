//! From events to the one assistant message of a turn: the only way blocks come into being.
//!
//! [`AssistantMessage::apply`] takes events one at a time, in order of `seq`. A message after some events (a
//! snapshot) that takes the later ones equals a message that took all. Unknown events and fields change
//! nothing. `tests/vectors` holds the messages of the logs in `tests/logs`, for folds in other
//! languages.

use crate::event::{
    BlockStart, CallError, CallProgress, CallStatus, Event, EventKind, QuestionKind, SessionStats, ToolInput,
    ToolResult, TurnFault, TurnStatus, WaitReason,
};
use crate::id::{ApprovalId, ConversationId, EventSeq, MessageId, TurnId, UnixMillis, UserMessageId};
use crate::record::{add_usage, is_commit, notice_code};
use crate::tool::{Effect, REQUESTER};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline_wire::{CallId, Media, SealEvidence, ToolName, Usage, UserPart};

/// The assistant message of a turn, as far as the events go.
///
/// ```
/// use throughline_engine::{Event, fold::AssistantMessage};
///
/// let log = r#"
///     {"turn_id":"t","seq":1,"timestamp":0,"type":"stream_start","v":1,"message_id":"m","agent":"a","mode":"native","input":[]}
///     {"turn_id":"t","seq":2,"timestamp":5,"step":1,"block":0,"type":"block_start","kind":"text"}
///     {"turn_id":"t","seq":3,"timestamp":6,"step":1,"block":0,"type":"content_delta","text":"Good "}
///     {"turn_id":"t","seq":4,"timestamp":9,"step":1,"block":0,"type":"content_delta","text":"morning."}
/// "#;
/// let lines = log.lines().filter(|line| !line.trim().is_empty());
/// let events: Vec<Event> = lines.map(|line| serde_json::from_str(line).expect("an event")).collect();
/// let message = AssistantMessage::from_events(&events);
/// assert_eq!(message.text(), "Good morning.");
/// assert_eq!(message.status, None); // it is still being written
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AssistantMessage {
    /// The last event that is in it.
    pub seq: EventSeq,
    /// Id of the turn.
    pub turn_id: TurnId,
    /// The conversation, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    /// Id of the message.
    pub message_id: MessageId,
    /// Name of the answering agent.
    pub agent: String,
    /// `native`, `text` or `auto`.
    pub mode: String,
    /// Content that the user sent to begin the turn; messages sent in mid-turn are among the blocks.
    pub input: Vec<UserPart>,
    /// Start of the turn.
    pub started_at: UnixMillis,
    /// End of the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<UnixMillis>,
    /// Final status; absent while the turn runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TurnStatus>,
    /// Blocks of the message, in order.
    pub blocks: Vec<MessageBlock>,
    /// Number of the current or last model call, from 1.
    pub step: u32,
    /// Name of its model.
    pub model: String,
    /// Tokens of all steps.
    pub usage: Usage,
    /// Reason for the current wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitState>,
    /// Problems that the turn has reported.
    pub problems: Vec<MessageProblem>,
    /// Totals, at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<SessionStats>,
    /// The failure, if the turn failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnFault>,
    /// The user stopped it (the model sees its open step as it is).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

/// One part of the message.
///
/// Kinds and fields are added by later releases, so a match ends with `_`, and a pattern with `..`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageBlock {
    /// Visible text.
    #[non_exhaustive]
    Text {
        /// The text so far.
        text: String,
        /// `open` while more may come.
        state: BlockState,
        /// `refusal` if the model declines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// Sources cited in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        citations: Vec<Value>,
    },
    /// Reasoning.
    #[non_exhaustive]
    Thinking {
        /// The text so far; may stay empty.
        text: String,
        /// `open` while more may come.
        state: BlockState,
    },
    /// A tool call with its outcome.
    ToolCall(Box<ToolCallBlock>),
    /// Audio.
    #[non_exhaustive]
    Audio {
        /// Pieces of base64, in order.
        data: Vec<String>,
        /// `pcm16`, ...
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<String>,
        /// In Hz.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sample_rate: Option<u32>,
        /// Text of the speech.
        transcript: String,
        /// `open` while more may come.
        state: BlockState,
    },
    /// A picture.
    Image(Media),
    /// A remark of the engine.
    #[non_exhaustive]
    Notice {
        /// Stable code of the notice.
        code: String,
        /// Sentence for people.
        text: String,
    },
    /// A failure.
    Error(TurnFault),
    /// A message that the user sent in mid-turn, at the position where it was taken in.
    #[non_exhaustive]
    UserMessage {
        /// The sender's id of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<UserMessageId>,
        /// Parts of the user's message.
        input: Vec<UserPart>,
    },
    /// A kind that this release does not know: keeps the numbering of the others.
    Unrecognised,
}

/// Open while a block takes deltas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockState {
    /// More content may come.
    Open,
    /// Complete.
    Closed,
}

/// A tool call with its outcome: one call, one card.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolCallBlock {
    /// Id of the call, minted by the machine.
    pub tool_id: Option<CallId>,
    /// Number of the step.
    pub step: u32,
    /// `group.method`.
    pub tool_name: Option<ToolName>,
    /// Name for people.
    pub title: String,
    /// Source of the tool.
    pub source: String,
    /// The strongest effect it may have.
    pub effect: Effect,
    /// State of the call.
    pub status: Option<CallStatus>,
    /// One line about the arguments.
    pub input_summary: String,
    /// Argument text so far.
    pub input_text: String,
    /// Final arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The text of arguments that cannot be read, and why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// Arguments that a person entered instead of the model's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_with: Option<Value>,
    /// Reason why the arguments cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The evidence that they are final.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seal: Option<SealEvidence>,
    /// Open approval request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<PendingApproval>,
    /// Rule that allowed or denied the call, or that required an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// True if the call was started while the model was still streaming.
    pub early: bool,
    /// Starts so far.
    pub attempts: u32,
    /// Client that was asked to run the call, if it does not run in the engine's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Last progress report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<CallProgress>,
    /// Output so far, then all of it.
    pub output: String,
    /// Structured form of the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_value: Option<Value>,
    /// Pictures and sounds of the output.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output_media: Vec<Media>,
    /// Bytes of the whole output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_size: Option<u64>,
    /// One line about it.
    pub output_summary: String,
    /// Error of a call that did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
    /// Start of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<UnixMillis>,
    /// Running time, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// End of the call, whether its tool ran or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<UnixMillis>,
    /// Client's report that a client-side call took effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<bool>,
    /// True if the model sees the result; absent until that is decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_by_model: Option<bool>,
}

/// A question to a person, as shown on the card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingApproval {
    /// The key of the answer.
    pub approval_id: ApprovalId,
    /// The question in words.
    pub question: String,
    /// The rule that asks.
    pub rule: String,
    /// Time at which it counts as denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixMillis>,
    /// The arguments that would run, as JSON text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_text: Option<String>,
    /// Hash of the arguments that an answer is bound to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arguments_hash: String,
    /// Fingerprint of the definition that an answer is bound to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
    /// Kind of question: may the call run, or a request of the running tool.
    #[serde(default, skip_serializing_if = "QuestionKind::is_call")]
    pub kind: QuestionKind,
    /// Schema of the values to be filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The address to be opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A wait that viewers are shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitState {
    /// Reason for the wait.
    pub reason: WaitReason,
    /// Start of the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// End of the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
}

/// A finding of the decoder or the loop guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageProblem {
    /// Stable code of the problem.
    pub code: String,
    /// The bytes concerned, or a sentence.
    pub excerpt: String,
    /// Suggested remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Call concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<CallId>,
}

impl MessageBlock {
    /// A text block that is complete.
    pub fn text(text: impl Into<String>) -> Self {
        let (text, state) = (text.into(), BlockState::Closed);
        MessageBlock::Text { text, state, code: None, citations: Vec::new() }
    }
}

impl AssistantMessage {
    /// The message after these events.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut message = Self::default();
        for event in events {
            message.apply(event);
        }
        message
    }

    /// All visible text, blocks joined: the answer of a call without streaming.
    pub fn text(&self) -> String {
        let mut joined: Option<String> = None;
        for block in &self.blocks {
            let MessageBlock::Text { text, .. } = block else { continue };
            match &mut joined {
                _ if text.is_empty() => {}
                None => joined = Some(text.clone()),
                Some(before) => {
                    // A model that writes its calls as text ends the line before them.
                    before.truncate(before.trim_end_matches('\n').len());
                    before.extend(["\n\n", text]);
                }
            }
        }
        joined.unwrap_or_default()
    }

    /// The failure, if the turn failed. It prints as sentences: what happened, why, and what to do.
    pub fn error(&self) -> Option<&TurnFault> {
        self.error.as_ref()
    }

    /// The message, or the failure of the turn: `app.ask("…").await?.finish().await.into_result()?`. A turn
    /// that was stopped, or cut by a limit, has not failed.
    ///
    /// # Errors
    /// The turn's failure.
    pub fn into_result(mut self) -> Result<Self, TurnFault> {
        match self.error.take() {
            Some(fault) => Err(fault),
            None => Ok(self),
        }
    }

    /// The tool calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCallBlock> {
        self.blocks.iter().filter_map(|block| match block {
            MessageBlock::ToolCall(call) => Some(&**call),
            _ => None,
        })
    }

    /// True if the turn waits only for outcomes of calls that its requester runs ([`CallRunner::Requester`]):
    /// there is at least one, and the model has finished its step. Such calls start only after the end of
    /// their step, so none of them runs while the model streams.
    ///
    /// [`CallRunner::Requester`]: crate::CallRunner::Requester
    pub fn waits_only_for_requester(&self) -> bool {
        let mut open = self.calls().filter(|call| !call.status.is_some_and(CallStatus::is_final)).peekable();
        self.status.is_none()
            && open.peek().is_some()
            && open.all(|call| {
                call.status == Some(CallStatus::Running) && call.client_id.as_deref() == Some(REQUESTER)
            })
    }

    /// Takes the next event. An event that is in it already (`seq` not higher) changes nothing.
    pub fn apply(&mut self, event: &Event) {
        if event.seq <= self.seq {
            return;
        }
        self.seq = event.seq;
        match &event.kind {
            EventKind::Waiting { reason, since, until, .. } => {
                self.waiting = Some(WaitState { reason: *reason, since: *since, until: *until });
                return;
            }
            EventKind::Unrecognised => return,
            _ => self.waiting = None,
        }
        match &event.kind {
            EventKind::StreamStart { conversation_id, message_id, agent, mode, input, .. } => {
                self.turn_id = event.turn_id.clone();
                self.conversation_id = conversation_id.clone();
                self.message_id = message_id.clone();
                self.agent = agent.clone();
                self.mode = mode.clone();
                self.input = input.clone();
                self.started_at = event.timestamp;
            }
            EventKind::StepStart { model, .. } => {
                self.step = event.step.unwrap_or(self.step);
                self.model = model.clone();
            }
            EventKind::StepEnd { finish, usage, .. } => {
                if let Some(usage) = usage {
                    add_usage(&mut self.usage, usage);
                }
                // Now it is known whether early results count.
                let in_history = (finish.is_some_and(is_commit) && self.error.is_none()) || self.stopped;
                let step = event.step.unwrap_or(self.step);
                for block in &mut self.blocks {
                    if let MessageBlock::ToolCall(call) = block {
                        let is_undecided =
                            call.seen_by_model.is_none() && call.status.is_some_and(CallStatus::is_final);
                        if call.step == step && is_undecided {
                            call.seen_by_model = Some(in_history);
                        }
                    }
                }
            }
            EventKind::BlockStart(start) => self.open_block(event.block, start),
            EventKind::UserMessage { id, input } => {
                self.put_block(
                    event.block,
                    MessageBlock::UserMessage { id: id.clone(), input: input.clone() },
                );
            }
            EventKind::Problem { code, excerpt, remedy, .. } => self.problems.push(MessageProblem {
                code: code.clone(),
                excerpt: excerpt.clone(),
                remedy: remedy.clone(),
                tool_id: event.tool_id.clone(),
            }),
            EventKind::SessionStats(stats) => self.stats = Some(stats.clone()),
            EventKind::Error(fault) => self.error = Some(fault.clone()),
            EventKind::StreamEnd { status } => {
                self.status = Some(*status);
                self.ended_at = Some(event.timestamp);
            }
            EventKind::ToolUse { .. } => self.open_call(event),
            EventKind::BlockEnd
            | EventKind::ContentDelta { .. }
            | EventKind::Thinking { .. }
            | EventKind::Citation { .. }
            | EventKind::AudioDelta { .. }
            | EventKind::BlockSuperseded { .. } => {
                if let Some(block) = event.block.and_then(|at| self.blocks.get_mut(at as usize)) {
                    block.apply(&event.kind);
                }
            }
            EventKind::ToolInputDelta { .. }
            | EventKind::ModelText { .. }
            | EventKind::ToolInputReset
            | EventKind::ToolInput(_)
            | EventKind::ApprovalRequest { .. }
            | EventKind::ApprovalResolved { .. }
            | EventKind::ToolRedefined { .. }
            | EventKind::ToolStart { .. }
            | EventKind::ToolProgress(_)
            | EventKind::ToolResult(_) => {
                if let Some(call) = event.tool_id.as_ref().and_then(|id| self.call_mut(id, event.block)) {
                    call.apply(event);
                }
            }
            EventKind::Waiting { .. } | EventKind::TurnResumed { .. } | EventKind::Unrecognised => {}
        }
    }

    /// The call with this id. `at`: its block, since a search among thousands takes long.
    fn call_mut(&mut self, id: &CallId, at: Option<u32>) -> Option<&mut ToolCallBlock> {
        let is_it = |block: &MessageBlock| match block {
            MessageBlock::ToolCall(call) => call.tool_id.as_ref() == Some(id),
            _ => false,
        };
        let at = at.map(|at| at as usize).filter(|at| self.blocks.get(*at).is_some_and(is_it));
        let at = at.or_else(|| self.blocks.iter().rposition(is_it))?;
        match self.blocks.get_mut(at)? {
            MessageBlock::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// Inserts a block at its position. Positions are dense, so this appends; a gap can only come from
    /// another log.
    fn put_block(&mut self, at: Option<u32>, block: MessageBlock) {
        match at.map(|at| at as usize).filter(|at| *at < self.blocks.len()) {
            Some(at) => self.blocks[at] = block,
            None => self.blocks.push(block),
        }
    }

    fn open_block(&mut self, at: Option<u32>, start: &BlockStart) {
        let state = BlockState::Open;
        let block = match start {
            BlockStart::Text { code } => {
                MessageBlock::Text { text: String::new(), state, code: code.clone(), citations: Vec::new() }
            }
            BlockStart::Thinking => MessageBlock::Thinking { text: String::new(), state },
            BlockStart::Audio => MessageBlock::Audio {
                data: Vec::new(),
                format: None,
                sample_rate: None,
                transcript: String::new(),
                state,
            },
            BlockStart::Image(media) => MessageBlock::Image(media.clone()),
            BlockStart::Notice { code, text } => {
                self.stopped |= code == notice_code::STOPPED;
                MessageBlock::Notice { code: code.clone(), text: text.clone() }
            }
            BlockStart::Error(fault) => MessageBlock::Error(fault.clone()),
            BlockStart::Unrecognised => MessageBlock::Unrecognised,
        };
        self.put_block(at, block);
    }

    fn open_call(&mut self, event: &Event) {
        let EventKind::ToolUse {
            tool_name, title, source, effect, status, input_summary, supersedes, ..
        } = &event.kind
        else {
            return;
        };
        if let Some(old) = supersedes.as_ref().and_then(|id| self.call_mut(id, None)) {
            old.seen_by_model = Some(false);
        }
        let call = ToolCallBlock {
            tool_id: event.tool_id.clone(),
            step: event.step.unwrap_or(self.step),
            tool_name: Some(tool_name.clone()),
            title: title.clone(),
            source: source.clone(),
            effect: *effect,
            status: Some(*status),
            input_summary: input_summary.clone(),
            ..ToolCallBlock::default()
        };
        self.put_block(event.block, MessageBlock::ToolCall(Box::new(call)));
    }
}

impl MessageBlock {
    fn apply(&mut self, kind: &EventKind) {
        match (self, kind) {
            (MessageBlock::Text { text, .. }, EventKind::ContentDelta { text: delta })
            | (MessageBlock::Thinking { text, .. }, EventKind::Thinking { text: delta }) => {
                text.push_str(delta)
            }
            (MessageBlock::Text { citations, .. }, EventKind::Citation { source }) => {
                citations.push(source.clone())
            }
            (
                MessageBlock::Audio { data, format, sample_rate, transcript, .. },
                EventKind::AudioDelta { format: f, sample_rate: r, data: piece, transcript: text_delta },
            ) => {
                data.push(piece.clone());
                transcript.push_str(text_delta);
                *format = format.take().or_else(|| f.clone());
                *sample_rate = sample_rate.or(*r);
            }
            (
                MessageBlock::Text { state, .. }
                | MessageBlock::Thinking { state, .. }
                | MessageBlock::Audio { state, .. },
                EventKind::BlockEnd,
            ) => {
                *state = BlockState::Closed;
            }
            (
                MessageBlock::Text { text, .. } | MessageBlock::Thinking { text, .. },
                EventKind::BlockSuperseded { keep_chars },
            ) => {
                if let Some((at, _)) =
                    text.char_indices().nth(usize::try_from(*keep_chars).unwrap_or(usize::MAX))
                {
                    text.truncate(at);
                }
            }
            // A sound cannot be cut by characters: it stays, or it goes.
            (MessageBlock::Audio { data, transcript, .. }, EventKind::BlockSuperseded { keep_chars: 0 }) => {
                data.clear();
                transcript.clear();
            }
            _ => {}
        }
    }
}

impl ToolCallBlock {
    fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ToolInputDelta { delta, input_summary } => {
                self.input_text.push_str(delta);
                if let Some(summary) = input_summary {
                    self.input_summary.clone_from(summary);
                }
            }
            EventKind::ToolInputReset => {
                self.input_text.clear();
                self.arguments = None;
                self.ran_with = None;
                self.seal = None;
                self.approval = None;
                self.progress = None;
                self.output.clear();
                self.status = Some(CallStatus::Preparing);
            }
            EventKind::ToolInput(ToolInput { arguments, raw, problem, seal, input_summary, .. }) => {
                self.arguments = arguments.clone();
                self.raw = raw.clone();
                self.problem = problem.clone();
                self.seal = *seal;
                self.input_summary = input_summary.clone();
                self.status = Some(CallStatus::Queued);
            }
            EventKind::ApprovalRequest {
                approval_id,
                kind: kind @ (QuestionKind::Call | QuestionKind::Elicitation),
                question,
                rule,
                expires_at,
                arguments_text,
                arguments_hash,
                fingerprint,
                schema,
                url,
            } => {
                self.approval = Some(PendingApproval {
                    kind: *kind,
                    schema: schema.clone(),
                    url: url.clone(),
                    approval_id: approval_id.clone(),
                    question: question.clone(),
                    rule: rule.clone(),
                    expires_at: *expires_at,
                    arguments_text: arguments_text.clone(),
                    arguments_hash: arguments_hash.clone(),
                    fingerprint: fingerprint.clone(),
                });
                self.status = Some(CallStatus::AwaitingApproval);
            }
            EventKind::ApprovalResolved { approval_id, arguments, .. } => {
                self.approval_resolved(approval_id, arguments.as_ref());
            }
            EventKind::ToolRedefined { attempt, .. } => {
                let starts = self.status == Some(CallStatus::Running) && *attempt == Some(self.attempts);
                if starts || self.approval.is_some() {
                    self.approval = None;
                    self.early = false;
                    self.started_at = None;
                    self.status = Some(CallStatus::Queued);
                }
            }
            EventKind::ToolStart { early, attempt, rule, client_id } => {
                self.client_id.clone_from(client_id);
                self.early = *early;
                self.attempts = *attempt;
                self.rule = rule.clone();
                self.started_at = Some(event.timestamp);
                self.approval = None;
                self.progress = None;
                self.output.clear();
                self.status = Some(CallStatus::Running);
            }
            EventKind::ToolProgress(progress) => {
                if let Some(delta) = &progress.output_delta {
                    self.output.push_str(delta);
                }
                let previous = self.progress.take().unwrap_or_default();
                self.progress = Some(CallProgress {
                    progress: progress.progress.or(previous.progress),
                    total: progress.total.or(previous.total),
                    message: progress.message.clone().or(previous.message),
                    output_delta: None,
                });
            }
            EventKind::ToolResult(result) => {
                self.ended_at = Some(event.timestamp);
                self.close(result);
            }
            _ => {}
        }
    }

    fn approval_resolved(&mut self, approval_id: &ApprovalId, arguments: Option<&Value>) {
        if let Some(pending) = self.approval.take_if(|open| open.approval_id == *approval_id) {
            self.ran_with = arguments.cloned().or(self.ran_with.take());
            self.status = Some(match pending.kind {
                QuestionKind::Elicitation => CallStatus::Running,
                QuestionKind::Call | QuestionKind::Unrecognised => CallStatus::Queued,
            });
        }
    }

    fn close(&mut self, result: &ToolResult) {
        self.status = Some(result.status);
        self.output = result.output.clone().unwrap_or_default();
        self.output_value = result.output_value.clone();
        self.output_media = result.output_media.clone();
        self.output_size = result.output_size;
        self.output_summary = result.output_summary.clone();
        self.error = result.error.clone();
        self.rule = result.rule.clone().or(self.rule.take());
        self.started_at = result.started_at;
        self.duration_ms = result.duration_ms;
        self.applied = result.applied;
        self.seen_by_model = result.seen_by_model;
        self.approval = None;
        self.progress = None;
    }
}

/// Joins adjacent deltas of one block or call: text, thinking, arguments, and output of a running tool. The
/// joined event has the time of the first and the number of the last, so a viewer that received it resumes at
/// the right event; the fold stays equal, and so does a machine restored from all events of a turn that has
/// ended. Nothing else may be joined.
pub fn merge_deltas(events: Vec<Event>) -> Vec<Event> {
    let mut merged: Vec<Event> = Vec::with_capacity(events.len());
    for event in events {
        match merged.last_mut() {
            Some(last) if can_merge(last, &event) => {
                merge_into(&mut last.kind, event.kind);
                last.seq = event.seq;
            }
            _ => merged.push(event),
        }
    }
    merged
}

fn can_merge(last: &Event, next: &Event) -> bool {
    let same = last.block == next.block
        && last.tool_id == next.tool_id
        && last.step == next.step
        && last.turn_id == next.turn_id;
    let pure_output = |progress: &CallProgress| {
        progress.output_delta.is_some()
            && progress.progress.is_none()
            && progress.total.is_none()
            && progress.message.is_none()
    };
    same && match (&last.kind, &next.kind) {
        (EventKind::ContentDelta { .. }, EventKind::ContentDelta { .. })
        | (EventKind::Thinking { .. }, EventKind::Thinking { .. })
        | (EventKind::ToolInputDelta { .. }, EventKind::ToolInputDelta { .. }) => true,
        (EventKind::ToolProgress(a), EventKind::ToolProgress(b)) => pure_output(a) && pure_output(b),
        _ => false,
    }
}

fn merge_into(last: &mut EventKind, next: EventKind) {
    match (last, next) {
        (EventKind::ContentDelta { text }, EventKind::ContentDelta { text: more })
        | (EventKind::Thinking { text }, EventKind::Thinking { text: more }) => text.push_str(&more),
        (
            EventKind::ToolInputDelta { delta: text, input_summary },
            EventKind::ToolInputDelta { delta: more, input_summary: newer },
        ) => {
            text.push_str(&more);
            if newer.is_some() {
                *input_summary = newer;
            }
        }
        (
            EventKind::ToolProgress(CallProgress { output_delta: Some(text), .. }),
            EventKind::ToolProgress(progress),
        ) => {
            text.push_str(&progress.output_delta.unwrap_or_default());
        }
        _ => {}
    }
}
