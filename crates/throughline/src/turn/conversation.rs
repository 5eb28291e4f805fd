//! Conversations: turns that share a history.

use super::command::SendResult;
use super::durable::ConversationStore;
use super::handle::{TurnControl, TurnHandle};
use super::hooks::TurnHooks;
use super::request::{TurnRequest, UserInput};
use crate::agent::ToolMode;
use crate::app::Throughline;
use crate::clock::TurnClock;
use crate::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use throughline_engine::{ConversationId, MessageTiming, QueuedMessage, RememberedDecision};
use throughline_wire::{Message, UserPart};
use uuid::Uuid;

/// A conversation: each turn receives the history of the turns before it. The history consists of closed
/// steps in which every call has exactly one outcome, so it can be sent to any model in any dialect.
///
/// ```
/// # use throughline_testkit as testkit;
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # use throughline::{Throughline, Upstream, wire::Dialect};
/// # let server = testkit::FakeUpstream::start(testkit::ScriptQueue::new([
/// #     testkit::ModelScript::new().say("Nice to meet you, Ada."), testkit::ModelScript::new().say("Ada."),
/// # ])).await?;
/// # let upstream = Upstream::new("demo", Dialect::OpenaiChat, &server.base_url(testkit::FakeDialect::OpenaiChat))?;
/// # let app = Throughline::builder().upstream(upstream).model("demo").build()?;
/// let mut conversation = app.conversation();
/// conversation.ask("I am Ada.").await?.finish().await;
/// let answer = conversation.ask("Who am I?").await?.finish().await;
/// assert_eq!(answer.text(), "Ada.");
/// assert_eq!(conversation.history().len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Conversation {
    app: Throughline,
    id: ConversationId,
    history: Arc<Mutex<Vec<Message>>>,
    /// Decisions that apply until the end of this conversation.
    remembered: Arc<Mutex<Vec<RememberedDecision>>>,
    last_turn: Option<TurnControl>,
    /// Messages sent to earlier turns that those did not read.
    leftover: Vec<QueuedMessage>,
    /// Settings common to all turns of this conversation.
    request_template: TurnRequest,
    /// `None` = it ends with the process.
    store: Option<ConversationStore>,
}

impl Conversation {
    pub(crate) fn new(app: Throughline) -> Self {
        Self {
            app,
            id: new_id(),
            history: Arc::default(),
            remembered: Arc::default(),
            last_turn: None,
            leftover: Vec::new(),
            request_template: TurnRequest::default(),
            store: None,
        }
    }

    pub(super) fn with_id(self, id: ConversationId) -> Self {
        Self { id, ..self }
    }

    pub(super) fn app(&self) -> &Throughline {
        &self.app
    }

    pub(super) fn set_store(&mut self, store: ConversationStore) {
        self.store = Some(store);
    }

    /// Starts from a history.
    pub fn with_history(self, history: Vec<Message>) -> Self {
        Self { history: Arc::new(Mutex::new(history)), ..self }
    }

    /// Id of the conversation, as in its turns' events.
    pub fn id(&self) -> &ConversationId {
        &self.id
    }

    /// Sets the agent of the turns from now on.
    pub fn set_agent(&mut self, agent: impl Into<String>) {
        self.request_template.agent = Some(agent.into());
    }

    /// Sets the model of the turns from now on, as `upstream/model`; `None` = the agent's default. The
    /// history fits any model.
    pub fn set_model(&mut self, model: Option<String>) {
        self.request_template.model = model;
    }

    /// Sets the transport of tool calls from now on; `None` = as the agent sets. The history works with any.
    pub fn set_mode(&mut self, mode: Option<ToolMode>) {
        self.request_template.mode = mode;
    }

    /// Instructions on top of the agent's own, from now on; `None` = the agent's alone.
    pub fn set_instructions(&mut self, instructions: Option<String>) {
        self.request_template.instructions = instructions;
    }

    /// Sets the user whose clients run tools from now on (see [`Throughline::connect_client`]).
    pub fn set_user(&mut self, user: Option<String>) {
        self.request_template.user = user;
    }

    /// Sends a message to the running turn. See [`TurnControl::send`]; a message that the turn does not read is
    /// queued for [`next_turn`](Self::next_turn).
    pub async fn send(&self, input: impl Into<UserInput>, when: MessageTiming) -> SendResult {
        match &self.last_turn {
            Some(turn) => turn.send(input, when).await,
            None => SendResult::TurnEnded,
        }
    }

    /// Waits for the end of the running turn, and starts the next one with all queued messages as one input.
    /// `None` if the queue is empty.
    ///
    /// A turn that was stopped or failed leaves its queue as well: use [`take_queued`](Self::take_queued) to look at
    /// it first. A new question by [`ask`](Self::ask) also takes precedence over the queue.
    ///
    /// # Errors
    /// As in [`ask`](Self::ask); the messages stay queued.
    pub async fn next_turn(&mut self) -> Result<Option<TurnHandle>, Error> {
        if let Some(last) = &self.last_turn {
            last.wait_for_end().await;
        }
        let leftover = self.take_queued();
        if leftover.is_empty() {
            return Ok(None);
        }
        let parts: Vec<UserPart> = leftover.iter().flat_map(|message| message.input.clone()).collect();
        match self.ask(UserInput::from_parts(parts)).await {
            Ok(turn) => Ok(Some(turn)),
            Err(error) => {
                self.leftover = leftover;
                Err(error)
            }
        }
    }

    /// Takes the queued messages that no turn has read, oldest first. While a turn runs, messages waiting for it
    /// belong to that turn and stay there.
    pub fn take_queued(&mut self) -> Vec<QueuedMessage> {
        let mut leftover = std::mem::take(&mut self.leftover);
        leftover.extend(self.last_turn.iter().flat_map(TurnControl::take_queued));
        leftover
    }

    /// Starts the next turn. If the one before was dropped and is still being stopped, waits for its end.
    ///
    /// # Errors
    /// [`Error::TurnRunning`] while the previous turn runs; otherwise as in [`Throughline::ask`]. The conversation
    /// stays unchanged.
    pub async fn ask(&mut self, input: impl Into<UserInput>) -> Result<TurnHandle, Error> {
        if let Some(last) = &self.last_turn {
            if !last.is_over() && !last.is_abandoned() {
                return Err(Error::TurnRunning);
            }
            last.wait_for_end().await;
        }
        let request = TurnRequest {
            input: input.into(),
            history: self.history(),
            remembered: self.remembered(),
            conversation_id: Some(self.id.clone()),
            ..self.request_template.clone()
        };
        let (history, remembered) = (self.history.clone(), self.remembered.clone());
        let user = self.request_template.user.clone();
        let hooks = match &self.store {
            Some(store) => store.hooks(user.as_deref()),
            None => TurnHooks::default(),
        };
        let hooks = hooks
            .on_end(move |ended| {
                history.lock().unwrap_or_else(PoisonError::into_inner).extend(ended.added_messages);
            })
            .on_remembered(move |answer| {
                remembered.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
            });
        let prepared = self.app.prepare(request).await?;
        let turn_id = prepared.turn_id().clone();
        if let Some(store) = &mut self.store {
            store.begin(&self.id, &prepared, TurnClock::start().now()).await?;
        }
        let turn = match self.app.start_prepared(prepared, hooks).await {
            Ok(turn) => turn,
            Err(error) => {
                if let Some(store) = &self.store {
                    store.cancel(user.as_deref(), &turn_id, TurnClock::start().now()).await;
                }
                return Err(error);
            }
        };
        let before = self.last_turn.replace(turn.control());
        self.leftover.extend(before.iter().flat_map(TurnControl::take_queued));
        Ok(turn)
    }

    /// The history of all ended turns.
    pub fn history(&self) -> Vec<Message> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Decisions that apply until the end of this conversation, oldest first.
    pub fn remembered(&self) -> Vec<RememberedDecision> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes all of it back: calls ask again.
    pub fn forget_approvals(&mut self) {
        self.remembered = Arc::default();
    }

    /// Clears the history and the remembered decisions. In a store the conversation stays as it is, and what follows is a
    /// new one under a new id.
    pub fn clear(&mut self) {
        if let Some(store) = &self.store {
            self.store = Some(store.for_new_conversation());
            self.id = new_id();
        }
        self.forget_approvals();
        // A turn that is still running adds to the old history, which is no longer read.
        self.history = Arc::default();
    }
}

fn new_id() -> ConversationId {
    ConversationId::new(format!("conv_{}", Uuid::now_v7().simple()))
}
