//! Turns that know what was said before.

use crate::app::{Throughline, TurnRequest};
use crate::config::Mode;
use crate::error::Error;
use crate::hooks::TurnHooks;
use crate::input::UserInput;
use crate::said::Said;
use crate::turn::{Turn, TurnControl};
use std::sync::{Arc, Mutex, PoisonError};
use throughline_engine::{ConversationId, QueuedMessage, Remembered, When};
use throughline_wire::{Message, UserPart};
use uuid::Uuid;

/// A conversation: each turn is given what the ones before it added. The history is made of closed steps, in which
/// every call has exactly one outcome, so it can be sent to any model of any dialect. R: T9
///
/// ```
/// # use throughline_testkit as testkit;
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # use throughline::{Throughline, Upstream, wire::Dialect};
/// # let server = testkit::Upstream::start(testkit::Queue::new([
/// #     testkit::Script::new().say("Nice to meet you, Ada."), testkit::Script::new().say("Ada."),
/// # ])).await?;
/// # let upstream = Upstream::new("demo", Dialect::OpenaiChat, &server.base_url(testkit::Dialect::OpenaiChat))?;
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
    /// What people have said in it that holds until its end. R: A2
    remembered: Arc<Mutex<Vec<Remembered>>>,
    last: Option<TurnControl>,
    /// What was said to earlier turns and not taken in.
    left: Vec<QueuedMessage>,
    /// What all turns of this conversation have in common.
    template: TurnRequest,
}

impl Conversation {
    pub(crate) fn new(app: Throughline) -> Self {
        Self {
            app,
            id: ConversationId::new(format!("conv_{}", Uuid::now_v7().simple())),
            history: Arc::default(),
            remembered: Arc::default(),
            last: None,
            left: Vec::new(),
            template: TurnRequest::default(),
        }
    }

    /// Goes on from a history.
    pub fn with_history(self, history: Vec<Message>) -> Self {
        Self { history: Arc::new(Mutex::new(history)), ..self }
    }

    /// Its id, as in its turns' events.
    pub fn id(&self) -> &ConversationId {
        &self.id
    }

    /// From now on another agent answers.
    pub fn set_agent(&mut self, agent: impl Into<String>) {
        self.template.agent = Some(agent.into());
    }

    /// From now on this model answers, as `upstream/model`; `None` = the agent's own. The history fits any.
    pub fn set_model(&mut self, model: Option<String>) {
        self.template.model = model;
    }

    /// From now on calls travel this way; `None` = as the agent says. The history fits any. R: T3, T9
    pub fn set_mode(&mut self, mode: Option<Mode>) {
        self.template.mode = mode;
    }

    /// From now on this user's clients run tools (see [`Throughline::connect_client`]).
    pub fn set_user(&mut self, user: Option<String>) {
        self.template.user = user;
    }

    /// Says something while a turn runs. See [`TurnControl::say`]; what the turn does not take in is kept for
    /// [`next_turn`](Self::next_turn). R: T14
    pub async fn say(&self, input: impl Into<UserInput>, when: When) -> Said {
        match &self.last {
            Some(turn) => turn.say(input, when).await,
            None => Said::TurnIsOver,
        }
    }

    /// Waits for the end of the turn that runs, and starts the next one with what was said and not taken in, everything
    /// together as one input. `None` if there is nothing.
    ///
    /// A turn that was stopped or failed leaves its queue, too: whoever wants to look at it first takes it with
    /// [`take_queued`](Self::take_queued). So does a new question by [`ask`](Self::ask): it comes first.
    ///
    /// # Errors
    /// As in [`ask`](Self::ask); what was said stays queued.
    pub async fn next_turn(&mut self) -> Result<Option<Turn>, Error> {
        if let Some(last) = &self.last {
            last.ended().await;
        }
        let left = self.take_queued();
        if left.is_empty() {
            return Ok(None);
        }
        let parts: Vec<UserPart> = left.iter().flat_map(|message| message.input.clone()).collect();
        match self.ask(UserInput::from_parts(parts)).await {
            Ok(turn) => Ok(Some(turn)),
            Err(error) => {
                self.left = left;
                Err(error)
            }
        }
    }

    /// What was said and no turn has taken in, oldest first; whoever takes it has it. While a turn runs, what waits for it
    /// is the turn's and stays there.
    pub fn take_queued(&mut self) -> Vec<QueuedMessage> {
        let mut left = std::mem::take(&mut self.left);
        left.extend(self.last.iter().flat_map(TurnControl::take_queued));
        left
    }

    /// Starts the next turn. If the one before was dropped and is still being stopped, waits for its end.
    ///
    /// # Errors
    /// [`Error::TurnRunning`] while the turn before goes on; else as in [`Throughline::ask`]. The conversation stays as
    /// it was.
    pub async fn ask(&mut self, input: impl Into<UserInput>) -> Result<Turn, Error> {
        if let Some(last) = &self.last {
            if !last.is_over() && !last.is_abandoned() {
                return Err(Error::TurnRunning);
            }
            last.ended().await;
        }
        let request = TurnRequest {
            input: input.into(),
            history: self.history(),
            remembered: self.remembered(),
            conversation_id: Some(self.id.clone()),
            ..self.template.clone()
        };
        let (history, remembered) = (self.history.clone(), self.remembered.clone());
        let hooks = TurnHooks::default()
            .at_end(move |ended| {
                history.lock().unwrap_or_else(PoisonError::into_inner).extend(ended.adds);
            })
            .kept(move |answer| {
                remembered.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
            });
        let prepared = self.app.prepare(request).await?;
        let turn = self.app.begin(prepared, hooks).await?;
        let before = self.last.replace(turn.control());
        self.left.extend(before.iter().flat_map(TurnControl::take_queued));
        Ok(turn)
    }

    /// What has been said, as far as turns have ended.
    pub fn history(&self) -> Vec<Message> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What people have said should hold until the end of this conversation, oldest first. R: A2
    pub fn remembered(&self) -> Vec<Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes all of it back: calls ask again.
    pub fn forget(&mut self) {
        self.remembered = Arc::default();
    }

    /// Forgets what has been said, and what should hold.
    pub fn clear(&mut self) {
        self.forget();
        // A turn that is still running adds to the old history, which nobody reads any more.
        self.history = Arc::default();
    }
}
