//! Conversations of `chat` and `ask`: in the store of the server, through the server that has it open, or nowhere.

mod api;
pub(crate) mod pending_store;
mod store;
mod turn;

pub(crate) use api::{ApiFailure, ConversationApi, query_value};
pub(crate) use turn::{OngoingControl, OngoingTurn};

use crate::approvals;
use crate::args::{KeepArgs, ModelArgs};
use crate::exit::{CliExit, CliFailure};
use crate::messages::{self, UiText};
use crate::output::errln;
use crate::picture::PictureFile;
use crate::serve::running_server::RunningServer;
use crate::serve::store::{OpenStoreError, ServerStorage};
use crate::setup::{self, AppContext};
use serde_json::{Value, json};
use std::sync::Arc;
use store::StoredConversations;
use throughline::config::{AppSettings, StoreSettings, ToolMode};
use throughline::{ApprovalMode, Conversation, Throughline, UserInput};
use throughline_engine::RememberedDecision;
use throughline_wire::Message;

/// A conversation, and everything that answers in it.
pub(crate) struct ConversationSession {
    pub(crate) model_args: ModelArgs,
    pub(crate) approval: ApprovalMode,
    backend: SessionBackend,
    /// The application, unless a server runs it.
    pub(crate) context: Option<AppContext>,
    /// Id of the conversation; `None` until its first turn.
    pub(crate) id: Option<String>,
    /// Instructions on top of the agent's own.
    pub(crate) instructions: Option<String>,
    /// The turn that the next one follows.
    leaf: Option<String>,
    /// Input of the last turn, for another attempt.
    last: Option<SentTurn>,
    /// Settings of the store that was in use: what is in this session's own store is to be moved there.
    store_in_use: Option<StoreSettings>,
    /// `media_inline_bytes_max` of the server's limits.
    inline_max: u32,
}

enum SessionBackend {
    /// Conversations are not stored.
    Ephemeral(Box<EphemeralConversation>),
    /// The store, opened by this process.
    Store(Box<StoredConversations>),
    /// The server that has the store open.
    Server(ConversationApi, Arc<RunningServer>),
}

/// A conversation of the library, with what another attempt at its last turn needs.
struct EphemeralConversation {
    conversation: Conversation,
    last: Option<(TurnText, Vec<Message>)>,
}

/// A turn as it was sent.
#[derive(Clone)]
struct SentTurn {
    input: Value,
    /// The turn before, as `parent_id` of the API.
    parent: Value,
}

/// The last turn of a conversation that is continued, from its first event.
pub(crate) struct PastTurn {
    /// Text of its input.
    pub(crate) message: String,
    pub(crate) turn: OngoingTurn,
    /// The turn was interrupted, or another process runs it.
    pub(crate) is_running: bool,
}

/// Input of a turn.
#[derive(Clone, Default)]
pub(crate) struct TurnText {
    pub(crate) text: String,
    pub(crate) pictures: Vec<PictureFile>,
}

impl ConversationSession {
    /// Opens the store, or finds the server that has it open.
    pub(crate) async fn open(
        model_args: &ModelArgs,
        approval: ApprovalMode,
        storing: &KeepArgs,
    ) -> Result<Self, CliFailure> {
        let settings = setup::load_settings(model_args)?;
        let must_store = storing.continues || storing.resume.is_some();
        let inline_max = settings.server.limits.media_inline_bytes_max;
        let found = find_store(model_args, &settings, storing).await;
        let store_in_use = matches!(found, Ok(FoundStore::Pending(_))).then(|| settings.store.clone());
        let (backend, context) = match found {
            Ok(FoundStore::Open(storage) | FoundStore::Pending(storage)) => {
                let opened = StoredConversations::open(model_args, settings, approval.clone(), storage);
                let (stored, context) = opened.await?;
                (SessionBackend::Store(Box::new(stored)), Some(context))
            }
            Ok(FoundStore::AtServer(server)) => {
                (SessionBackend::Server(ConversationApi::Server(server.clone()), server), None)
            }
            Ok(FoundStore::Unwanted) => ephemeral(model_args, settings, approval.clone()).await?,
            Err(failure) if must_store || failure.exit != CliExit::Failed => return Err(failure),
            Err(failure) => {
                // The question is answered even if the conversation cannot be stored.
                errln!("{}", messages::not_stored(&failure));
                ephemeral(model_args, settings, approval.clone()).await?
            }
        };
        Ok(Self {
            model_args: model_args.clone(),
            approval,
            backend,
            context,
            id: None,
            instructions: None,
            leaf: None,
            last: None,
            store_in_use,
            inline_max,
        })
    }

    /// The API, if conversations are stored.
    pub(crate) fn api(&self) -> Option<&ConversationApi> {
        match &self.backend {
            SessionBackend::Ephemeral(_) => None,
            SessionBackend::Store(stored) => Some(stored.api()),
            SessionBackend::Server(api, _) => Some(api),
        }
    }

    fn stored_api(&self) -> Result<&ConversationApi, CliFailure> {
        self.api().ok_or_else(messages::nothing_stored)
    }

    /// Address of the server, if one has the store.
    pub(crate) fn server_address(&self) -> Option<&str> {
        match &self.backend {
            SessionBackend::Server(_, server) => Some(server.address()),
            SessionBackend::Ephemeral(_) | SessionBackend::Store(_) => None,
        }
    }

    /// The application, unless a server runs it.
    pub(crate) fn app(&self) -> Option<&Throughline> {
        self.context.as_ref().map(|context| &context.app)
    }

    /// True if the demo model is the only one.
    pub(crate) fn is_demo(&self) -> bool {
        self.context.as_ref().is_some_and(AppContext::is_demo)
    }

    /// The model that answers, or the agent of the server that does.
    pub(crate) fn model_name(&self, words: UiText) -> String {
        match (&self.context, &self.model_args.model, &self.model_args.agent) {
            (Some(context), _, _) => context.model.clone(),
            (None, Some(model), _) => model.clone(),
            (None, None, Some(agent)) => agent.clone(),
            (None, None, None) => words.servers_default().to_owned(),
        }
    }

    /// Tool-calling mode, as far as it is known here.
    pub(crate) fn mode_name(&self) -> &str {
        match (&self.context, &self.model_args.mode) {
            (Some(context), _) => &context.mode,
            (None, Some(mode)) => mode,
            (None, None) => "auto",
        }
    }

    /// Sets the transport of calls from the next turn on.
    pub(crate) fn set_mode(&mut self, mode: ToolMode) {
        self.model_args.mode = Some(mode.name().to_owned());
        if let Some(context) = &mut self.context {
            mode.name().clone_into(&mut context.mode);
        }
        if let SessionBackend::Ephemeral(ephemeral) = &mut self.backend {
            ephemeral.conversation.set_mode(Some(mode));
        }
    }

    /// Remembered decisions, as far as this process knows them.
    pub(crate) async fn remembered(&self) -> Vec<RememberedDecision> {
        // A memory that cannot be read ends the next turn before it begins, with the reason.
        let stored = match self.app() {
            Some(app) => approvals::all(&app.approval_store()).await.unwrap_or_default(),
            None => Vec::new(),
        };
        let mut remembered: Vec<_> = stored.into_iter().map(|entry| entry.answer).collect();
        if let SessionBackend::Ephemeral(ephemeral) = &self.backend {
            remembered.extend(ephemeral.conversation.remembered());
        }
        remembered
    }

    /// Tools and sources as the API lists them.
    ///
    /// # Errors
    /// Conversations are not stored, or the server does not answer.
    pub(crate) async fn tool_list(&self) -> Result<Value, CliFailure> {
        let agent = self.model_args.agent.as_deref();
        let query = agent.map(|agent| format!("?agent={}", query_value(agent))).unwrap_or_default();
        Ok(self.stored_api()?.get(&format!("/v1/tools{query}")).await?)
    }

    /// Names of the agents, the default one first.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) async fn agents(&self) -> Result<Vec<String>, CliFailure> {
        let Some(api) = self.api() else {
            return Ok(self
                .app()
                .map(Throughline::agents)
                .unwrap_or_default()
                .into_iter()
                .map(|one| one.name)
                .collect());
        };
        let list = api.get("/v1/agents").await?;
        let mut rows: Vec<_> = list["items"].as_array().cloned().unwrap_or_default();
        rows.sort_by_key(|agent| agent["is_default"] != true);
        Ok(rows.iter().filter_map(|agent| agent["name"].as_str().map(str::to_owned)).collect())
    }

    /// Approval mode of this command itself. In this process the application applies it.
    fn own_answers(&self) -> Option<ApprovalMode> {
        matches!(self.backend, SessionBackend::Server(..)).then(|| self.approval.clone())
    }

    /// Conversation ids with their titles, most recently active first.
    ///
    /// # Errors
    /// Conversations are not stored, or the store does not answer.
    pub(crate) async fn latest(&self, rows_max: usize) -> Result<Vec<(String, String)>, CliFailure> {
        let list = self.stored_api()?.get(&format!("/v1/conversations?limit={rows_max}")).await?;
        let rows = list["items"].as_array().cloned().unwrap_or_default();
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        Ok(rows.iter().map(|row| (text(row, "id"), text(row, "title"))).collect())
    }

    /// Continues a conversation, and returns its last turn: an interrupted one is resumed.
    ///
    /// # Errors
    /// The conversation does not exist, or conversations are not stored.
    pub(crate) async fn resume(&mut self, id: Option<&str>) -> Result<Option<PastTurn>, CliFailure> {
        let id = match id {
            Some(id) => id.to_owned(),
            None => match self.latest(1).await?.into_iter().next() {
                Some((id, _)) => id,
                None => return Err(messages::nothing_to_continue()),
            },
        };
        // Its end is reported, even if it came before the state was requested.
        let was_cut_off = match &self.backend {
            SessionBackend::Store(stored) => stored.resume(&id).await?,
            _ => false,
        };
        let api = self.stored_api()?.clone();
        let page = api.get(&format!("/v1/conversations/{}/messages?limit=1", query_value(&id))).await?;
        (self.last, self.leaf, self.id) = (None, None, Some(id));
        let Some(last) = page["messages"].as_array().and_then(|messages| messages.last()) else {
            return Ok(None);
        };
        let turn_id = last["turn_id"].as_str().unwrap_or_default().to_owned();
        self.leaf = Some(turn_id.clone());
        let turn = OngoingTurn::attach(api, turn_id, self.own_answers()).await?;
        let is_running = was_cut_off || last["status"] == "running";
        Ok(Some(PastTurn { message: input_text(&last["message"]), turn, is_running }))
    }

    /// Starts a new conversation with the next message.
    pub(crate) fn begin_anew(&mut self) {
        (self.id, self.leaf, self.last) = (None, None, None);
        if let (SessionBackend::Ephemeral(ephemeral), Some(context)) = (&mut self.backend, &self.context) {
            **ephemeral = EphemeralConversation { conversation: context.app.conversation(), last: None };
        }
    }

    /// Starts the next turn.
    ///
    /// # Errors
    /// The reason why it cannot start.
    pub(crate) async fn send(&mut self, input: TurnText) -> Result<OngoingTurn, CliFailure> {
        if let SessionBackend::Ephemeral(ephemeral) = &mut self.backend {
            return ephemeral.send(input, self.instructions.clone()).await;
        }
        let api = self.stored_api()?.clone();
        let mut parts = vec![json!({"type": "text", "text": input.text})];
        for picture in &input.pictures {
            let file = api.upload(picture.name(), picture.bytes().to_vec()).await?;
            parts.push(json!({"type": "image", "file_id": file}));
        }
        self.start(api, Value::from(parts), None).await
    }

    /// Sends the last input again, as another branch.
    ///
    /// # Errors
    /// There was none, or it cannot be started.
    pub(crate) async fn retry(&mut self) -> Result<(String, OngoingTurn), CliFailure> {
        if let SessionBackend::Ephemeral(ephemeral) = &mut self.backend {
            let (input, before) = ephemeral.last.take().ok_or_else(messages::nothing_to_retry)?;
            let context = self.context.as_ref().ok_or_else(messages::nothing_to_retry)?;
            let conversation = std::mem::replace(&mut ephemeral.conversation, context.app.conversation());
            ephemeral.conversation = conversation.with_history(before);
            let text = input.text.clone();
            return Ok((text, ephemeral.send(input, self.instructions.clone()).await?));
        }
        let api = self.stored_api()?.clone();
        let sent = match self.last.clone() {
            Some(sent) => sent,
            None => self.last_sent(&api).await?,
        };
        let text = text_of_parts(&sent.input);
        let turn = self.start(api, sent.input, Some(sent.parent)).await?;
        Ok((text, turn))
    }

    /// Input and parent of the last turn, out of the store.
    async fn last_sent(&self, api: &ConversationApi) -> Result<SentTurn, CliFailure> {
        let id = self.id.as_deref().ok_or_else(messages::nothing_to_retry)?;
        let path = format!("/v1/conversations/{}/messages?limit=2", query_value(id));
        let page = api.get(&path).await?;
        let messages = page["messages"].as_array().cloned().unwrap_or_default();
        let last = messages.last().ok_or_else(messages::nothing_to_retry)?;
        let before = messages.len().checked_sub(2).and_then(|at| messages.get(at));
        let parent = before.map_or(Value::Null, |message| message["turn_id"].clone());
        let input = json!([{"type": "text", "text": input_text(&last["message"])}]);
        Ok(SentTurn { input, parent })
    }

    async fn start(
        &mut self,
        api: ConversationApi,
        input: Value,
        parent: Option<Value>,
    ) -> Result<OngoingTurn, CliFailure> {
        let mut body = json!({"input": input});
        let choice = &self.model_args;
        let mut set = |name: &str, value: Option<&String>| {
            if let Some(value) = value {
                body[name] = Value::from(value.as_str());
            }
        };
        set("conversation_id", self.id.as_ref());
        set("instructions", self.instructions.as_ref());
        if self.context.is_none() {
            set("agent", choice.agent.as_ref());
            set("model", choice.model.as_ref());
        }
        set("mode", choice.mode.as_ref());
        if let (Some(parent), Some(_)) = (&parent, &self.id) {
            body["parent_id"] = parent.clone();
        }
        let before = parent.unwrap_or_else(|| self.leaf.clone().map_or(Value::Null, Value::from));
        let started = match api.post("/v1/turns", &body).await {
            Ok(started) => started,
            // What was written for the turn before has begun this one already.
            Err(ApiFailure { turn_id: Some(turn), code, .. }) if code == "conversation_busy" => {
                json!({"turn_id": turn, "conversation_id": self.id})
            }
            Err(failure) => return Err(failure.into()),
        };
        self.id = started["conversation_id"].as_str().map(str::to_owned).or(self.id.take());
        self.last = Some(SentTurn { input, parent: before });
        let turn_id = started["turn_id"].as_str().unwrap_or_default().to_owned();
        self.leaf = Some(turn_id.clone());
        Ok(OngoingTurn::attach(api, turn_id, self.own_answers()).await?)
    }

    /// Continues with another model or agent.
    ///
    /// # Errors
    /// The choice is invalid; nothing changes.
    pub(crate) async fn switch(&mut self, model_args: ModelArgs) -> Result<(), CliFailure> {
        match &mut self.backend {
            SessionBackend::Server(..) => {}
            SessionBackend::Ephemeral(ephemeral) => {
                let context = AppContext::open(&model_args, self.approval.clone()).await?;
                ephemeral.conversation =
                    context.app.conversation().with_history(ephemeral.conversation.history());
                self.context = Some(context);
            }
            SessionBackend::Store(stored) => {
                let settings = setup::load_settings(&model_args)?;
                let approval = self.approval.clone();
                let opened =
                    StoredConversations::open(&model_args, settings, approval, stored.storage()).await?;
                let before = std::mem::replace(&mut **stored, opened.0);
                if let Some(context) = self.context.replace(opened.1) {
                    before.close_app(&context).await;
                }
            }
        }
        self.model_args = model_args;
        Ok(())
    }

    /// The conversation as Markdown.
    ///
    /// # Errors
    /// There is no conversation yet, or it is not stored.
    pub(crate) async fn markdown(&self) -> Result<String, CliFailure> {
        let api = self.stored_api()?;
        let id = self.id.as_deref().ok_or_else(messages::nothing_to_save)?;
        let path = format!("/v1/conversations/{}/export?format=markdown", query_value(id));
        Ok(api.get_text(&path).await?)
    }

    /// Writes what is left, and closes the store.
    pub(crate) async fn close(self) {
        if let (SessionBackend::Store(stored), Some(context)) = (self.backend, &self.context) {
            let storage = stored.close_app(context).await;
            let Some(settings) = self.store_in_use else {
                // What came in the meantime.
                pending_store::move_into(&storage, self.inline_max).await;
                return storage.store.close().await;
            };
            storage.store.close().await;
            if let Ok(storage) = ServerStorage::open(&settings).await {
                pending_store::move_into(&storage, self.inline_max).await;
                storage.store.close().await;
            }
        }
    }
}

/// Store of the turns.
enum FoundStore {
    Open(Arc<ServerStorage>),
    /// A store of this process, until the one in use is free.
    Pending(Arc<ServerStorage>),
    AtServer(Arc<RunningServer>),
    /// Turns are not to be stored.
    Unwanted,
}

/// Opens the store, or finds the server that has it open. A store that is not available fails with
/// [`CliExit::Failed`].
async fn find_store(
    model_args: &ModelArgs,
    settings: &AppSettings,
    storing: &KeepArgs,
) -> Result<FoundStore, CliFailure> {
    if storing.no_log {
        return Ok(FoundStore::Unwanted);
    }
    let unavailable = |failure: CliFailure| CliFailure { exit: CliExit::Failed, ..failure };
    match ServerStorage::open(&settings.store).await {
        Ok(storage) => {
            pending_store::move_into(&storage, settings.server.limits.media_inline_bytes_max).await;
            Ok(FoundStore::Open(Arc::new(storage)))
        }
        Err(OpenStoreError::InUse(why)) => match server_with_the_store(&why).await {
            Ok(server) => {
                refuse_local_choices(model_args, server.address())?;
                Ok(FoundStore::AtServer(Arc::new(server)))
            }
            Err(failure) if storing.continues || storing.resume.is_some() => Err(unavailable(failure)),
            Err(failure) => match pending_store::open().await {
                Ok(storage) => {
                    errln!("{}", messages::stored_later());
                    Ok(FoundStore::Pending(Arc::new(storage)))
                }
                Err(_) => Err(unavailable(failure)),
            },
        },
        Err(error) => Err(unavailable(error.into())),
    }
}

/// The server that has the store open.
async fn server_with_the_store(why: &str) -> Result<RunningServer, CliFailure> {
    let taken = |no: String| messages::store_taken(&no, &why);
    let server = RunningServer::of_data_folder().map_err(taken)?;
    // A note of a server that was killed leads nowhere.
    server.get("/healthz").send().await.map_err(|error| taken(error.to_string()))?;
    Ok(server)
}

async fn ephemeral(
    model_args: &ModelArgs,
    settings: AppSettings,
    approval: ApprovalMode,
) -> Result<(SessionBackend, Option<AppContext>), CliFailure> {
    let context = AppContext::open_with(model_args, settings, |builder| builder.approval(approval)).await?;
    let conversation = EphemeralConversation { conversation: context.app.conversation(), last: None };
    Ok((SessionBackend::Ephemeral(Box::new(conversation)), Some(context)))
}

impl EphemeralConversation {
    async fn send(
        &mut self,
        input: TurnText,
        instructions: Option<String>,
    ) -> Result<OngoingTurn, CliFailure> {
        let before = self.conversation.history();
        let text = UserInput::from(input.text.as_str());
        let user_input = input.pictures.iter().fold(text, |all, one| one.attach(all));
        self.conversation.set_instructions(instructions);
        let turn = self.conversation.ask(user_input).await.map_err(|error| messages::setup(&error))?;
        self.last = Some((input, before));
        Ok(OngoingTurn::Ephemeral(Box::new(turn)))
    }
}

/// Choices that only this process can make.
fn refuse_local_choices(model_args: &ModelArgs, server: &str) -> Result<(), CliFailure> {
    let flags = [
        ("--base-url", model_args.base_url.is_some()),
        ("--demo-tools", model_args.demo_tools),
        ("--streaming", model_args.streaming.is_some()),
    ];
    match flags.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(messages::flag_not_at_a_server(flag, server)),
        None => Ok(()),
    }
}

/// Text of the input of a message.
fn input_text(message: &Value) -> String {
    text_of_parts(&message["input"])
}

fn text_of_parts(parts: &Value) -> String {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = parts.iter().filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}
