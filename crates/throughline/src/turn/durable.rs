//! Conversations that outlive the process: each turn is a row before it starts, its end a row before anyone sees it, and
//! what a dead process left open is taken over.

use super::conversation::Conversation;
use super::handle::TurnHandle;
use super::hooks::{TurnHooks, TurnResult};
use super::stored::{HistorySource, PreparedTurn, StoredTurn};
use crate::app::Throughline;
use crate::driver::read_turn;
use crate::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use throughline_engine::{ConversationId, EventSeq, TurnId};
use throughline_store::{
    Catalog, Log, NewTurnRow, OpenTurn, PathTurn, StoreError, TurnCreation, TurnEnd, TurnParent,
    TurnPlacement, TurnTiming,
};
use throughline_wire::{Message, UserPart};

/// Owner of what is stored by a program without users: the same name as the server's, so that both read each other's
/// conversations.
const USER_DEFAULT: &str = "local";
/// Attempts to write the end of a turn while its viewers wait, and the pause between two. An end that is not
/// written then is written before the next turn, or by [`Throughline::resume_all`].
const END_TRIES_MAX: u32 = 3;
const END_PAUSE: Duration = Duration::from_millis(200);

/// Result of [`Throughline::resume_all`].
#[must_use = "dropping the handle stops the turn: read it to its end, or detach it"]
#[derive(Default)]
pub struct ResumedTurns {
    /// Turns that continue, or whose end was not recorded. Oldest first.
    pub turns: Vec<TurnHandle>,
    /// Turns that cannot be resumed here, with the reason. They stay open in the store.
    pub failed: Vec<(TurnId, Error)>,
}

impl fmt::Debug for ResumedTurns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turns: Vec<_> = self.turns.iter().map(TurnHandle::id).collect();
        f.debug_struct("ResumedTurns").field("turns", &turns).field("failed", &self.failed).finish()
    }
}

/// A conversation in a store.
#[derive(Clone)]
pub(super) struct ConversationStore {
    catalog: Arc<dyn Catalog>,
    /// The turn that the next one continues; `None` = the conversation does not exist yet.
    leaf: Option<TurnId>,
    /// The end of the last turn, while the store has not taken it.
    pending_end: PendingEnd,
}

type PendingEnd = Arc<Mutex<Option<(TurnId, TurnEnd)>>>;

impl Throughline {
    /// Opens a conversation of a store, to continue it.
    ///
    /// # Errors
    /// [`Error::NoConversation`]; [`Error::TurnRunning`] if a turn of it has no end yet: call
    /// [`resume_all`](Self::resume_all) first. [`Error::OtherStore`], [`Error::Store`].
    pub async fn open_conversation<S: Catalog + Log + 'static>(
        &self,
        store: &Arc<S>,
        id: &ConversationId,
        user: Option<String>,
    ) -> Result<Conversation, Error> {
        self.check_store(store)?;
        let owner = user.as_deref().unwrap_or(USER_DEFAULT);
        let no_conversation = || Error::NoConversation { id: id.clone() };
        let found = store.conversation(owner, id.as_str()).await?.ok_or_else(no_conversation)?;
        let leaf = found.conversation.leaf_id.map(TurnId::new);
        let history = match &leaf {
            Some(leaf) => history(&**store, owner, store.path(owner, leaf.as_str()).await?).await?,
            None => Vec::new(),
        };
        let mut conversation = Conversation::new(self.clone()).with_id(id.clone()).with_history(history);
        conversation.set_user(user);
        conversation.set_store(ConversationStore::new(store.clone(), leaf));
        Ok(conversation)
    }

    /// Continues every turn that a dead process has left open in a store, of all users and conversations.
    /// Calls in flight are settled truthfully: a write that had started is reported as unknown and does not
    /// run again. Call it once, before new turns start.
    ///
    /// # Errors
    /// [`Error::OtherStore`]; the store cannot be read. A turn that cannot be resumed is in
    /// [`ResumedTurns::failed`].
    pub async fn resume_all<S: Catalog + Log + 'static>(
        &self,
        store: &Arc<S>,
    ) -> Result<ResumedTurns, Error> {
        self.check_store(store)?;
        let mut resumed = ResumedTurns::default();
        for open in Catalog::open_turns(&**store).await? {
            let id = TurnId::new(open.id.as_str());
            match self.resume_open(store, open).await {
                Ok(turn) => resumed.turns.push(turn),
                Err(error) => resumed.failed.push((id, error)),
            }
        }
        Ok(resumed)
    }

    async fn resume_open<S: Catalog + Log + 'static>(
        &self,
        store: &Arc<S>,
        open: OpenTurn,
    ) -> Result<TurnHandle, Error> {
        let stored: StoredTurn = parse(&open.stored)?;
        let history = match stored.history {
            HistorySource::Turn => Vec::new(),
            HistorySource::Conversation => {
                let mut path = store.path(&open.user, &open.id).await?;
                path.pop();
                history(&**store, &open.user, path).await?
            }
        };
        let (catalog, user) = (store.clone() as Arc<dyn Catalog>, open.user);
        let hooks = TurnHooks::default().record_end(move |result| async move {
            let Some((turn, end)) = end_row(&result) else { return };
            // What the store does not take now is open at the next start, too.
            let _ = write_end(&*catalog, &user, &turn, end).await;
        });
        self.resume(stored, history, hooks).await
    }

    /// A turn whose row is in one store and whose events are in another could run its writes twice.
    fn check_store<S>(&self, store: &Arc<S>) -> Result<(), Error> {
        let is_log = std::ptr::addr_eq(Arc::as_ptr(self.log()), Arc::as_ptr(store));
        is_log.then_some(()).ok_or(Error::OtherStore)
    }
}

impl Conversation {
    /// Stores the conversation: its turns survive this process, and
    /// [`open_conversation`](Throughline::open_conversation) continues it in another one.
    ///
    /// The application must log into the same store: [`ThroughlineBuilder::log`](crate::ThroughlineBuilder::log). Set the
    /// user before, if there are several. A history that was given with [`with_history`](Self::with_history) is not stored.
    ///
    /// ```
    /// # use throughline_testkit as testkit;
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # use throughline::{Throughline, Upstream, wire::Dialect};
    /// use std::sync::Arc;
    /// use throughline::store::{SqliteSettings, SqliteStore};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("chat.db");
    /// # let server = testkit::FakeUpstream::start(testkit::ScriptQueue::new([
    /// #     testkit::ModelScript::new().say("Nice to meet you, Ada."), testkit::ModelScript::new().say("Ada."),
    /// # ])).await?;
    /// # let upstream = Upstream::new("demo", Dialect::OpenaiChat, &server.base_url(testkit::FakeDialect::OpenaiChat))?;
    /// let store = Arc::new(SqliteStore::open(&file, SqliteSettings::default()).await?);
    /// let app = Throughline::builder().upstream(upstream).model("demo").log(store.clone()).build()?;
    /// for turn in app.resume_all(&store).await?.turns {
    ///     turn.finish().await; // what a process that died has left open
    /// }
    /// let mut conversation = app.conversation().persist(&store)?;
    /// conversation.ask("I am Ada.").await?.finish().await;
    ///
    /// let mut again = app.open_conversation(&store, conversation.id(), None).await?;
    /// assert_eq!(again.ask("Who am I?").await?.finish().await.text(), "Ada.");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OtherStore`].
    pub fn persist<S: Catalog + Log + 'static>(mut self, store: &Arc<S>) -> Result<Self, Error> {
        self.app().check_store(store)?;
        self.set_store(ConversationStore::new(store.clone(), None));
        Ok(self)
    }
}

impl ConversationStore {
    fn new(catalog: Arc<dyn Catalog>, leaf: Option<TurnId>) -> Self {
        Self { catalog, leaf, pending_end: PendingEnd::default() }
    }

    /// The same store, for a conversation that is not stored yet.
    pub(super) fn for_new_conversation(&self) -> Self {
        Self { leaf: None, ..self.clone() }
    }

    /// Writes the row of a turn, in front of its first event.
    pub(super) async fn begin(
        &mut self,
        conversation: &ConversationId,
        prepared: &PreparedTurn,
        now: i64,
    ) -> Result<(), Error> {
        let pending = self.pending_end.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let user = prepared.stored().user.as_deref().unwrap_or(USER_DEFAULT);
        if let Some((turn, end)) = pending {
            write_end(&*self.catalog, user, &turn, end).await?;
            *self.pending_end.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        let id = conversation.as_str().to_owned();
        let placement = match &self.leaf {
            None => TurnPlacement::NewConversation { id, title: None },
            Some(leaf) => {
                let parent = Some(TurnParent::after_turn(leaf.as_str()));
                TurnPlacement::InConversation { conversation_id: id, parent }
            }
        };
        let stored = prepared.stored();
        let row = NewTurnRow {
            id: prepared.turn_id().as_str().to_owned(),
            message_id: prepared.message_id().as_str().to_owned(),
            placement,
            idempotency: None,
            stored: serde_json::to_string(stored).map_err(StoreError::failed)?,
            agent: stored.setup.agent.clone(),
            model: stored.setup.upstreams.first().map(|choice| format!("{}/{}", choice.name, choice.model)),
            mode: Some(stored.setup.mode.clone()),
            input_text: text_of(&stored.start.input),
            files: prepared.file_ids(),
            created_at: now,
            charge: Default::default(),
        };
        match self.catalog.create_turn(user, row).await? {
            TurnCreation::New => {
                self.leaf = Some(prepared.turn_id().clone());
                Ok(())
            }
            TurnCreation::ConversationBusy { .. } => Err(Error::TurnRunning),
            _ => Err(Error::NoConversation { id: conversation.clone() }),
        }
    }

    /// Ends the row of a turn that was not started after all.
    pub(super) async fn cancel(&self, user: Option<&str>, turn: &TurnId, now: i64) {
        let end = TurnEnd {
            status: "interrupted".to_owned(),
            history_json: "[]".to_owned(),
            text: String::new(),
            usage: None,
            pace: TurnTiming::default(),
            ended_at: now,
        };
        let _ = write_end(&*self.catalog, user.unwrap_or(USER_DEFAULT), turn, end).await;
    }

    /// Hooks that write the end of a turn before anyone sees it.
    pub(super) fn hooks(&self, user: Option<&str>) -> TurnHooks {
        let Self { catalog, pending_end, .. } = self.clone();
        let user = user.unwrap_or(USER_DEFAULT).to_owned();
        TurnHooks::default().record_end(move |result| async move {
            let Some((turn, end)) = end_row(&result) else { return };
            if write_end(&*catalog, &user, &turn, end.clone()).await.is_err() {
                *pending_end.lock().unwrap_or_else(PoisonError::into_inner) = Some((turn, end));
            }
        })
    }
}

/// The messages of a way through a conversation.
async fn history<S: Catalog + Log>(
    store: &S,
    user: &str,
    path: Vec<PathTurn>,
) -> Result<Vec<Message>, Error> {
    let mut history = Vec::new();
    for turn in path {
        match (turn.cut_at, turn.history_json) {
            (None, Some(adds)) => history.append(&mut parse(&adds)?),
            (None, None) => return Err(Error::TurnRunning),
            // A fork: the next turn continues this one after one of its events.
            (Some(seq), _) => {
                let Some(row) = store.turn(user, &turn.id).await? else { continue };
                let (events, states) = read_turn(store, &turn.id).await?;
                let stored: StoredTurn = parse(&row.stored)?;
                history.append(&mut stored.added_messages(&events, &states, Some(EventSeq(seq))));
            }
        }
    }
    Ok(history)
}

async fn write_end(catalog: &dyn Catalog, user: &str, turn: &TurnId, end: TurnEnd) -> Result<(), StoreError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match catalog.end_turn(user, turn.as_str(), end.clone()).await {
            Ok(_) => return Ok(()),
            Err(error @ StoreError::Invalid { .. }) => return Err(error),
            Err(error) if tries == END_TRIES_MAX => return Err(error),
            Err(_) => tokio::time::sleep(END_PAUSE).await,
        }
    }
}

/// `None`: another process has the turn, or its log was lost; the process that resumes it records its end.
fn end_row(result: &TurnResult) -> Option<(TurnId, TurnEnd)> {
    let status = serde_json::to_value(result.status?).ok()?.as_str()?.to_owned();
    let figure = |number: u64| i64::try_from(number).ok();
    let pace = TurnTiming {
        first_content_ms: result.first_content_ms.and_then(figure),
        writing_ms: figure(result.writing_ms),
        output_tokens: result.usage.output_tokens.and_then(figure),
    };
    let end = TurnEnd {
        status,
        history_json: serde_json::to_string(&result.added_messages).ok()?,
        text: result.text.clone(),
        usage: serde_json::to_value(result.usage).ok(),
        pace,
        ended_at: result.ended_at,
    };
    Some((result.turn_id.clone(), end))
}

fn parse<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, StoreError> {
    serde_json::from_str(json).map_err(|error| StoreError::failed(format!("cannot read row: {error}")))
}

fn text_of(parts: &[UserPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        UserPart::Text { text } => Some(text.as_str()),
        UserPart::Image(_) | UserPart::File { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
