//! From a request to a running turn: the row first, then the turn, and the answer only when its first event is durable.
//! R: S2, E2

use super::admission::Admission;
use super::history::NoHistory;
use super::running::{Begun, model_of};
use super::stored::{self, Promised};
use super::{Hub, Standing};
use crate::error::ApiError;
use crate::own_agents;
use crate::principal::Principal;
use std::time::Duration;
use throughline::TurnRequest;
use throughline_engine::{ConversationId, MessageId, TurnId};
use throughline_store::catalog::{Created, Idempotency, NewTurn as NewRow, Parent, TurnPlace, TurnRow};
use throughline_wire::UserPart;
use uuid::Uuid;

/// How long a turn that has just ended may take until the catalog knows; whoever read its last event may start the next.
const SETTLES_WITHIN: Duration = Duration::from_secs(5);

/// A turn that is to be started.
#[derive(Clone, Debug, Default)]
pub struct NewTurn {
    /// What the library is asked for. Its ids, user, and what is remembered are put in by the hub; so is the history,
    /// unless the turn stands alone.
    pub request: TurnRequest,
    /// Where it stands.
    pub thread: Thread,
    /// Ids of the files in its input.
    pub files: Vec<String>,
    /// What makes a repeated request recognisable.
    pub idempotency: Option<Idempotency>,
    /// What happens when nobody looks any more.
    pub on_disconnect: OnDisconnect,
    /// What happens if nobody comes back after a restart of the server; `None` = the same.
    pub after_restart: Option<OnDisconnect>,
}

/// Where a turn stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Thread {
    /// In no conversation: the request brings its history along.
    #[default]
    Alone,
    /// It begins a conversation.
    New,
    /// In this conversation.
    In {
        /// Which one.
        conversation_id: String,
        /// Behind what.
        behind: Behind,
    },
}

/// What a turn continues in its conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behind {
    /// The branch that was last gone on with.
    Leaf,
    /// Nothing: it begins the conversation anew, beside what is there. An edit of the first message.
    Nothing,
    /// A turn, or one event of it.
    Turn(Parent),
}

/// What happens to a turn when its last viewer is gone.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// It goes on.
    #[default]
    Continue,
    /// It is cancelled.
    Cancel,
}

/// A turn that runs now, or ran already under the same idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Which turn.
    pub turn_id: TurnId,
    /// The message that it writes.
    pub message_id: MessageId,
    /// The conversation that it belongs to, if any.
    pub conversation_id: Option<String>,
    /// Whether this is the turn of an earlier request.
    pub replayed: Replayed,
}

/// Whether a request has started its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// It has.
    No,
    /// An earlier one with the same key and body had.
    Yes,
}

/// Whether a turn can be started now.
enum Tried {
    Started(Started),
    /// This turn of the conversation runs.
    Busy(String),
}

impl Hub {
    /// Starts a turn.
    ///
    /// # Errors
    /// What keeps it from beginning; later everything is told by its events. 409 `conversation_busy`: a turn of the
    /// conversation runs, its id is in `turn_id`. 422 `idempotency_key_reused`. 429 `too_many_turns`. 503 `stopping`. 507 `no_room`.
    pub async fn start(&self, principal: &Principal, new: NewTurn) -> Result<Started, ApiError> {
        let inner = &self.0;
        if inner.stopping.is_cancelled() {
            let error = ApiError::unavailable("stopping", "the server is stopping and starts no turns", 5);
            return Err(error.remedy("try again in a moment"));
        }
        // A turn that is in the middle of being started counts as one that runs.
        let _task = inner.tasks.token();
        let user = principal.user.as_str();
        let now = jiff::Timestamp::now().as_millisecond();
        let _equal_posts = match &new.idempotency {
            Some(key) => Some(inner.idempotency.lock(user, &key.key).await),
            None => None,
        };
        if let Some(key) = &new.idempotency
            && let Some(created) = inner.catalog.turn_of_key(user, key, now).await?
        {
            match created {
                Created::Same(row) => return Ok(replayed(*row)),
                Created::OtherBody => return Err(key_reused()),
                _ => {}
            }
        }
        // Before anything is waited for, and given back on every way out of here but a turn that runs.
        let mut admission = self.admit(principal.counted_as())?;
        inner.log.takes_new_turns()?;
        match self.try_start(principal, new.clone(), now, &mut admission).await? {
            Tried::Started(started) => Ok(started),
            Tried::Busy(turn) if self.settles(user, &turn).await => {
                match self.try_start(principal, new, now, &mut admission).await? {
                    Tried::Started(started) => Ok(started),
                    Tried::Busy(turn) => Err(self.conversation_busy(&turn).await),
                }
            }
            Tried::Busy(turn) => Err(self.conversation_busy(&turn).await),
        }
    }

    async fn try_start(
        &self,
        principal: &Principal,
        new: NewTurn,
        now: i64,
        admission: &mut Admission,
    ) -> Result<Tried, ApiError> {
        let (inner, user) = (&self.0, principal.user.as_str());
        let NewTurn { mut request, thread, files, idempotency, on_disconnect, after_restart } = new;
        let (place, parent) = match thread {
            Thread::Alone => (TurnPlace::Alone, None),
            Thread::New => (TurnPlace::NewConversation { id: mint("conv"), title: None }, None),
            Thread::In { conversation_id, behind } => {
                let found = inner.catalog.conversation(user, &conversation_id).await?;
                let Some(found) = found else {
                    let error = ApiError::not_found("conversation", &conversation_id);
                    return Err(error.param("conversation_id"));
                };
                if let Some(running) = found.running_turn_id {
                    return Ok(Tried::Busy(running));
                }
                let parent = match behind {
                    Behind::Leaf => found.conversation.leaf_id.map(Parent::whole),
                    Behind::Nothing => None,
                    Behind::Turn(parent) => Some(parent),
                };
                (TurnPlace::In { conversation_id, parent: parent.clone() }, parent)
            }
        };
        let conversation_id = match &place {
            TurnPlace::Alone => None,
            TurnPlace::NewConversation { id, .. } | TurnPlace::In { conversation_id: id, .. } => {
                Some(id.clone())
            }
        };
        if conversation_id.is_some() {
            request.history = match self.history(user, parent.as_ref()).await {
                Ok(history) => history,
                Err(NoHistory::Running(turn)) => return Ok(Tried::Busy(turn)),
                Err(NoHistory::Error(error)) => return Err(error),
            };
        }
        if let TurnPlace::In { conversation_id, .. } = &place {
            request.remembered.extend(self.remembered(user, conversation_id).await?);
        }
        request.conversation_id = conversation_id.clone().map(ConversationId::new);
        request.user = Some(user.to_owned());
        own_agents::load(&inner.app, &*inner.catalog, user).await?;
        let prepared = inner.app.prepare(request).await?;
        let turn = prepared.stored();
        let counted_as = Some(principal.counted_as().to_owned());
        let promised = Promised {
            after_restart: after_restart.unwrap_or(on_disconnect),
            counted_as: counted_as.clone(),
        };
        let begun = Begun {
            user: user.to_owned(),
            counted_as,
            conversation_id: conversation_id.clone(),
            agent: turn.setup.agent.clone(),
            model: model_of(turn),
            started_at: now,
            on_disconnect,
        };
        let row = NewRow {
            id: prepared.turn_id().as_str().to_owned(),
            message_id: prepared.message_id().as_str().to_owned(),
            place,
            idempotency,
            stored: stored::write(turn, &promised).map_err(ApiError::internal)?,
            agent: begun.agent.clone(),
            model: begun.model.clone(),
            mode: Some(turn.setup.mode.clone()),
            input_text: text_of(&turn.start.input),
            files: files.into_iter().chain(prepared.files()).collect(),
            created_at: now,
        };
        match inner.catalog.create_turn(user, row).await? {
            Created::New => {}
            Created::Same(row) => return Ok(Tried::Started(replayed(*row))),
            Created::OtherBody => return Err(key_reused()),
            Created::ConversationBusy { turn_id } => return Ok(Tried::Busy(turn_id)),
            Created::NoConversation => {
                let id = conversation_id.unwrap_or_default();
                return Err(ApiError::not_found("conversation", &id).param("conversation_id"));
            }
            Created::NoParent => {
                let id = parent.map(|parent| parent.turn_id).unwrap_or_default();
                let error = ApiError::not_found("turn", &id).param("parent_id");
                return Err(error.remedy("the parent must be a turn of the same conversation"));
            }
        }
        let (turn_id, message_id) = (prepared.turn_id().clone(), prepared.message_id().clone());
        let (hooks, ends) = self.hooks(user, conversation_id.clone());
        let mut turn = match inner.app.begin(prepared, hooks).await {
            Ok(turn) => turn,
            Err(error) => {
                self.write_end(user, &turn_id, Self::interrupted()).await;
                return Err(error.into());
            }
        };
        // The row was not worth an fsync of its own: the first event makes both durable, and whoever asked is told then.
        let logged = turn.next().await.is_some();
        self.take_in(begun, Some(admission), turn, ends);
        if !logged {
            return Err(ApiError::unavailable("store_unavailable", "the turn could not be logged", 5));
        }
        Ok(Tried::Started(Started { turn_id, message_id, conversation_id, replayed: Replayed::No }))
    }

    /// Waits for a turn whose last event is in the log already, until the catalog knows as well. `false`: it runs.
    async fn settles(&self, user: &str, turn: &str) -> bool {
        let turn = TurnId::new(turn);
        let settled = self.running().get(&turn).map(|running| running.settled.clone());
        let Some(settled) = settled else {
            // It settled a moment ago, or is not ours to wait for.
            return matches!(self.control(user, &turn).await, Ok(Standing::Ended(row)) if row.end.is_some());
        };
        if !crate::viewer::has_ended(&*self.0.log, &turn).await {
            return false;
        }
        tokio::time::timeout(SETTLES_WITHIN, settled.cancelled()).await.is_ok()
    }
}

fn replayed(row: TurnRow) -> Started {
    Started {
        turn_id: TurnId::new(row.id),
        message_id: MessageId::new(row.message_id),
        conversation_id: row.conversation_id,
        replayed: Replayed::Yes,
    }
}

fn key_reused() -> ApiError {
    let message = "this `Idempotency-Key` was used for another request in the last 24 hours";
    let error = ApiError::unprocessable("idempotency_key_reused", message).param("Idempotency-Key");
    error.remedy("take a new key for a new request")
}

fn mint(kind: &str) -> String {
    format!("{kind}_{}", Uuid::now_v7().simple())
}

/// What is searched, and where a title comes from.
fn text_of(parts: &[UserPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        UserPart::Text { text } => Some(text.as_str()),
        UserPart::Image(_) | UserPart::File { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
