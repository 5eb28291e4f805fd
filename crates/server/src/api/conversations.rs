//! Conversations: trees of turns. // R: S4

use super::page::{Listed, PageQuery};
use crate::error::{ApiError, ErrorBody};
use crate::extract::{Json, Path, Query};
use crate::portable::{self, Destination, Links, NotTakenIn, Portable, PortableTurn, Said, mint};
use crate::principal::{Principal, Scope};
use crate::state::AppState;
use crate::turn_log;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use throughline::MediaStore;
use throughline_engine::Seq;
use throughline_engine::fold::Message;
use throughline_store::catalog::{
    ConversationSummary, Hit, HitPart, NewConversation, PageRequest, Parent, Removed, TitleBy, TurnSummary,
};
use throughline_wire::Media;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Largest file that can be imported, in bytes: more than ten thousand turns of text.
pub const IMPORT_BYTES_MAX: usize = 64 << 20;
/// Most messages of one answer, and how many without a wish.
const MESSAGES_MAX: u32 = 200;
const MESSAGES: u32 = 50;
/// Files that pictures are looked up among, newest first.
const LINKED_FILES_MAX: usize = 2_000;

/// `/v1/conversations` and `/v1/search`.
pub fn routes() -> OpenApiRouter<AppState> {
    let import = OpenApiRouter::new().routes(routes!(import)).layer(DefaultBodyLimit::max(IMPORT_BYTES_MAX));
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(get, update, delete))
        .routes(routes!(messages))
        .routes(routes!(fork))
        .routes(routes!(export))
        .routes(routes!(search))
        .merge(import)
}

/// A conversation.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Conversation {
    /// Its id.
    #[schema(example = "conv_01a1fe3a01c37659bcb2d47e8bf4ff6e")]
    pub id: String,
    /// Given, or the first words of the first input.
    pub title: String,
    /// `given`, or `input` = the first words of the first input.
    #[schema(example = "input")]
    pub title_by: &'static str,
    /// The turn that a new one continues if nothing else is said.
    pub leaf_id: Option<String>,
    /// How many turns it has, all branches counted.
    pub turns: u64,
    /// The turn that runs in it now.
    pub running_turn_id: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// When something last happened in it, in milliseconds since 1970.
    pub updated_at: i64,
}

impl From<ConversationSummary> for Conversation {
    fn from(summary: ConversationSummary) -> Self {
        let ConversationSummary { conversation: row, turns, running_turn_id } = summary;
        Self {
            id: row.id,
            title: row.title,
            title_by: match row.title_by {
                TitleBy::Input => "input",
                TitleBy::Given => "given",
            },
            leaf_id: row.leaf_id,
            turns,
            running_turn_id,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// What a turn continues.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParentTurn {
    /// A turn of the same conversation.
    pub turn_id: String,
    /// Only up to this event of it; absent = all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

impl From<Parent> for ParentTurn {
    fn from(parent: Parent) -> Self {
        Self { turn_id: parent.turn_id, seq: parent.seq }
    }
}

/// A turn in a tree. Turns with the same parent are siblings: with another input an edit, with the same a regeneration.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TurnNode {
    /// Its id.
    pub id: String,
    /// What it continues; absent = it begins the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentTurn>,
    /// Id of the answer.
    pub message_id: String,
    /// Which agent answered.
    pub agent: String,
    /// Which model, as `upstream/model`.
    pub model: Option<String>,
    /// The beginning of the input.
    pub input: String,
    /// The beginning of the answer.
    pub answer: String,
    /// `running`, or how it ended.
    pub status: String,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// Milliseconds since 1970; absent = it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
}

impl From<TurnSummary> for TurnNode {
    fn from(turn: TurnSummary) -> Self {
        Self {
            id: turn.id,
            parent: turn.parent.map(ParentTurn::from),
            message_id: turn.message_id,
            agent: turn.agent,
            model: turn.model,
            input: turn.input,
            answer: turn.answer,
            status: turn.status,
            created_at: turn.created_at,
            ended_at: turn.ended_at,
        }
    }
}

/// A conversation with all its turns.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConversationTree {
    /// The conversation.
    #[serde(flatten)]
    pub conversation: Conversation,
    /// All its turns, oldest first: a tree by `parent`.
    pub tree: Vec<TurnNode>,
}

/// One message of a branch.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BranchMessage {
    /// The turn that wrote it.
    pub turn_id: String,
    /// The branch goes on after this event of it; absent = after all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_at: Option<u64>,
    /// `running`, or how it ended.
    pub status: String,
    /// The fold of the turn's events: what the user said, and the blocks of the answer.
    #[schema(value_type = crate::api::openapi::MessageSchema)]
    pub message: Message,
}

/// Messages of a branch, oldest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Branch {
    /// Its last turn.
    pub leaf_id: Option<String>,
    /// Oldest first.
    pub messages: Vec<BranchMessage>,
    /// `before` of the part in front of this one; absent = it begins here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// A new conversation.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CreateConversation {
    /// Absent = the first words of the first input, when it comes.
    #[schema(example = "Weather")]
    pub title: Option<String>,
}

/// What is to be different. What is not named stays.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UpdateConversation {
    /// Its title; empty = the first words of the first input again.
    pub title: Option<String>,
    /// The turn that a new one continues: another branch.
    pub leaf_id: Option<String>,
}

/// Where a conversation is to go on in another way, as a conversation of its own.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// The last turn that is taken along.
    pub turn_id: String,
    /// Only up to this event of it; absent = all of it.
    #[serde(default)]
    pub seq: Option<u64>,
    /// Absent = that of the conversation.
    #[serde(default)]
    pub title: Option<String>,
}

/// A place where a text was found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Found {
    /// In which conversation.
    pub conversation_id: String,
    /// Its title.
    pub title: String,
    /// In which turn; absent = in the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// `title`, `input` or `answer`.
    pub part: &'static str,
    /// What stands around it.
    pub snippet: String,
    /// Milliseconds since 1970.
    pub at: i64,
}

impl From<Hit> for Found {
    fn from(hit: Hit) -> Self {
        Self {
            conversation_id: hit.conversation_id,
            title: hit.title,
            turn_id: hit.turn_id,
            part: match hit.part {
                HitPart::Title => "title",
                HitPart::Input => "input",
                HitPart::Answer => "answer",
            },
            snippet: hit.snippet,
            at: hit.at,
        }
    }
}

/// Which conversations.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only those with this text in title, input or answer, whatever its case.
    q: Option<String>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Most rows, 1 to 200. Default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// What is looked for.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SearchQuery {
    /// The text. `%`, `_` and `*` mean themselves.
    q: String,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Most rows, 1 to 200. Default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Which messages.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MessagesQuery {
    /// The last turn of the branch; absent = the conversation's leaf.
    leaf: Option<String>,
    /// Only what stands in front of this turn: `before` of the part behind it.
    before: Option<String>,
    /// Most messages, 1 to 200. Default 50, the newest.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// How a conversation is written down.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// Everything, one record a line; can be imported again.
    #[default]
    Jsonl,
    /// One branch, for people.
    Markdown,
}

/// What is written down.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExportQuery {
    /// `jsonl` (everything, can be imported again) or `markdown` (one branch, for people).
    #[serde(default)]
    #[param(inline)]
    format: ExportFormat,
    /// Of Markdown: the last turn of the branch; absent = the conversation's leaf.
    leaf: Option<String>,
}

fn no_conversation(id: &str) -> ApiError {
    ApiError::not_found("conversation", id)
}

async fn find(state: &AppState, principal: &Principal, id: &str) -> Result<ConversationSummary, ApiError> {
    state.catalog.conversation(&principal.user, id).await?.ok_or_else(|| no_conversation(id))
}

/// Make a conversation without turns.
///
/// Not needed before a first turn: `POST /v1/turns` makes one too.
#[utoipa::path(post, path = "/v1/conversations", tag = "conversations", request_body = CreateConversation, responses(
    (status = 201, description = "It is there", body = Conversation),
    (status = 400, description = "It cannot be made like this", body = ErrorBody),
))]
async fn create(
    State(state): State<AppState>,
    principal: Principal,
    Json(body): Json<CreateConversation>,
) -> Result<Response, ApiError> {
    principal.need(Scope::Chat)?;
    let id = mint("conv_");
    let new = NewConversation { id: id.clone(), title: body.title, created_at: now() };
    state.catalog.create_conversation(&principal.user, new).await?;
    created(&state, &principal, &id).await
}

async fn created(state: &AppState, principal: &Principal, id: &str) -> Result<Response, ApiError> {
    let conversation = Conversation::from(find(state, principal, id).await?);
    let location = format!("/v1/conversations/{id}");
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(conversation)).into_response())
}

/// List conversations, those with the latest events first.
#[utoipa::path(get, path = "/v1/conversations", tag = "conversations", params(ListQuery), responses(
    (status = 200, description = "A part of the list", body = Listed<Conversation>),
    (status = 400, description = "A query that cannot be answered", body = ErrorBody),
))]
async fn list(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<Listed<Conversation>>, ApiError> {
    principal.need(Scope::Chat)?;
    let page = PageQuery::request(query.cursor, query.limit)?;
    let found = state.catalog.conversations(&principal.user, query.q.as_deref(), &page).await?;
    Ok(axum::Json(Listed::of(found, Conversation::from)))
}

/// Look for a text in titles, inputs and answers.
#[utoipa::path(get, path = "/v1/search", tag = "conversations", params(SearchQuery), responses(
    (status = 200, description = "Places with what stands around them, newest first", body = Listed<Found>),
    (status = 400, description = "A query that cannot be answered", body = ErrorBody),
))]
async fn search(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<SearchQuery>,
) -> Result<axum::Json<Listed<Found>>, ApiError> {
    principal.need(Scope::Chat)?;
    let page = PageQuery::request(query.cursor, query.limit)?;
    let found = state.catalog.search(&principal.user, &query.q, &page).await?;
    Ok(axum::Json(Listed::of(found, Found::from)))
}

/// A conversation with the tree of its turns.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Which conversation")), responses(
    (status = 200, description = "All its turns in short", body = ConversationTree),
    (status = 404, description = "There is none", body = ErrorBody),
))]
async fn get(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<axum::Json<ConversationTree>, ApiError> {
    principal.need(Scope::Chat)?;
    let conversation = Conversation::from(find(&state, &principal, &id).await?);
    let tree = state.catalog.tree(&principal.user, &id).await?;
    Ok(axum::Json(ConversationTree { conversation, tree: tree.into_iter().map(TurnNode::from).collect() }))
}

/// Rename a conversation, or go to another branch of it.
#[utoipa::path(patch, path = "/v1/conversations/{conversation_id}", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Which conversation")), request_body = UpdateConversation, responses(
    (status = 200, description = "As it is now", body = Conversation),
    (status = 400, description = "It cannot be changed like this", body = ErrorBody),
    (status = 404, description = "There is none, or no such turn in it", body = ErrorBody),
))]
async fn update(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
    Json(body): Json<UpdateConversation>,
) -> Result<axum::Json<Conversation>, ApiError> {
    principal.need(Scope::Chat)?;
    find(&state, &principal, &id).await?;
    // The branch first: it is what can be refused, and then nothing has changed.
    if let Some(leaf) = &body.leaf_id
        && !state.catalog.set_leaf(&principal.user, &id, leaf).await?
    {
        return Err(ApiError::not_found("turn", leaf).param("leaf_id"));
    }
    if let Some(title) = &body.title {
        state.catalog.rename(&principal.user, &id, title, now()).await?;
    }
    Ok(axum::Json(find(&state, &principal, &id).await?.into()))
}

/// Delete a conversation with its turns, their logs, calls, and the files that nothing else uses.
#[utoipa::path(delete, path = "/v1/conversations/{conversation_id}", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Which conversation")), responses(
    (status = 204, description = "It is gone"),
    (status = 404, description = "There is none", body = ErrorBody),
    (status = 409, description = "A turn of it runs", body = ErrorBody),
))]
async fn delete(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    principal.need(Scope::Chat)?;
    match state.catalog.delete_conversation(&principal.user, &id).await? {
        Removed::Gone(gone) => {
            // What stays behind of a blob costs room and nothing else: the sweep at the next start finds it.
            if let Err(error) = state.blobs.collect(&*state.catalog, &gone.blobs).await {
                tracing::warn!(%error, "blobs of a deleted conversation were not removed");
            }
            Ok(StatusCode::NO_CONTENT)
        }
        Removed::StillRunning { turn_id } => {
            Err(ApiError::conflict("turn_running", "a turn of this conversation is still running")
                .remedy(format!("cancel it first: POST /v1/turns/{turn_id}/cancel"))
                .with("turn_id", turn_id))
        }
        Removed::Absent => Err(no_conversation(&id)),
    }
}

/// The messages of one branch, each the fold of its turn's events.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}/messages", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Which conversation"), MessagesQuery), responses(
    (status = 200, description = "A part of the branch, oldest first", body = Branch),
    (status = 404, description = "There is none, or no such turn in it", body = ErrorBody),
))]
async fn messages(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
    Query(query): Query<MessagesQuery>,
) -> Result<axum::Json<Branch>, ApiError> {
    principal.need(Scope::Chat)?;
    let limit = query.limit.unwrap_or(MESSAGES);
    if limit == 0 || limit > MESSAGES_MAX {
        let what = format!("`limit` is from 1 to {MESSAGES_MAX}");
        return Err(ApiError::bad_request("invalid_value", what).param("limit"));
    }
    let conversation = find(&state, &principal, &id).await?.conversation;
    let Some(leaf) = query.leaf.or(conversation.leaf_id) else {
        return Ok(axum::Json(Branch { leaf_id: None, messages: Vec::new(), before: None }));
    };
    let mut path = branch(&state, &principal, &id, &leaf).await?;
    if let Some(before) = &query.before {
        let at = path.iter().position(|(turn, _)| turn == before);
        path.truncate(at.ok_or_else(|| ApiError::not_found("turn", before).param("before"))?);
    }
    let skipped = path.len().saturating_sub(limit as usize);
    let part = path.split_off(skipped);
    let before = part.first().filter(|_| skipped > 0).map(|(turn, _)| turn.clone());
    let mut messages = Vec::with_capacity(part.len());
    for (turn_id, cut_at) in part {
        let Some(row) = state.catalog.turn(&principal.user, &turn_id).await? else { continue };
        let message = turn_log::message_of(&*state.log, &row).await?;
        messages.push(BranchMessage { turn_id, cut_at, status: row.status().to_owned(), message });
    }
    Ok(axum::Json(Branch { leaf_id: Some(leaf), messages, before }))
}

/// The turns from the beginning of a conversation to one of its turns, each with where the branch leaves it.
async fn branch(
    state: &AppState,
    principal: &Principal,
    conversation: &str,
    leaf: &str,
) -> Result<Vec<(String, Option<u64>)>, ApiError> {
    let no_turn = || ApiError::not_found("turn", leaf);
    let row = state.catalog.turn(&principal.user, leaf).await?.ok_or_else(no_turn)?;
    if row.conversation_id.as_deref() != Some(conversation) {
        return Err(no_turn());
    }
    let path = state.catalog.path(&principal.user, leaf).await?;
    Ok(path.into_iter().map(|turn| (turn.id, turn.cut_at)).collect())
}

/// Go on in another way from any turn, or any event of one, as a conversation of its own.
#[utoipa::path(post, path = "/v1/conversations/{conversation_id}/fork", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Which conversation")), request_body = Fork, responses(
    (status = 201, description = "A new conversation with copies of the turns up to there", body = Conversation),
    (status = 400, description = "There is no such event", body = ErrorBody),
    (status = 404, description = "There is none, or no such turn in it", body = ErrorBody),
))]
async fn fork(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
    Json(body): Json<Fork>,
) -> Result<Response, ApiError> {
    principal.need(Scope::Chat)?;
    let row = find(&state, &principal, &id).await?.conversation;
    let path = branch(&state, &principal, &id, &body.turn_id).await?;
    let mut portable = Portable {
        id: row.id,
        title: Some(body.title.unwrap_or(row.title)),
        leaf_id: Some(body.turn_id.clone()),
        created_at: now(),
        turns: Vec::with_capacity(path.len()),
    };
    let mut parent: Option<Parent> = None;
    for (turn_id, cut_at) in path {
        let mut turn = travelling(&state, &principal, &turn_id, parent.take()).await?;
        if turn_id == body.turn_id {
            if let Some(seq) = body.seq
                && (seq == 0 || seq > turn.events.len() as u64)
            {
                let what = format!("turn `{turn_id}` has events 1 to {}", turn.events.len());
                return Err(ApiError::bad_request("no_such_event", what).param("seq"));
            }
            turn.close(body.seq.map(Seq));
        } else {
            turn.close(cut_at.map(Seq));
        }
        // The copy was cut itself, so what follows stands behind all of it.
        parent = Some(Parent::whole(turn_id));
        portable.turns.push(turn);
    }
    take_in(&state, &principal, portable).await
}

/// A turn with its log, as it travels.
async fn travelling(
    state: &AppState,
    principal: &Principal,
    turn_id: &str,
    parent: Option<Parent>,
) -> Result<PortableTurn, ApiError> {
    let no_turn = || ApiError::not_found("turn", turn_id);
    let row = state.catalog.turn(&principal.user, turn_id).await?.ok_or_else(no_turn)?;
    let events = turn_log::raw_events(&*state.log, turn_id).await?;
    Ok(PortableTurn { id: row.id, parent, model: row.model, events })
}

/// Takes a conversation in under new names, and answers with it.
async fn take_in(state: &AppState, principal: &Principal, portable: Portable) -> Result<Response, ApiError> {
    let into = Destination { log: &*state.log, catalog: &*state.catalog, media: &state.media };
    let taken = portable::take_in(into, &principal.user, portable, now()).await;
    let id = taken.map_err(not_taken_in)?;
    created(state, principal, &id).await
}

/// Write a conversation down: everything as JSON Lines, or one branch as Markdown.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}/export", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Which conversation"), ExportQuery), responses(
    (status = 200, description = "The file", content(
        (String = "application/jsonl"),
        (String = "text/markdown"),
    )),
    (status = 404, description = "There is none, or no such turn in it", body = ErrorBody),
))]
async fn export(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
    Query(query): Query<ExportQuery>,
) -> Result<Response, ApiError> {
    principal.need(Scope::Chat)?;
    let row = find(&state, &principal, &id).await?.conversation;
    let (body, media_type, extension) = match query.format {
        ExportFormat::Jsonl => {
            let mut turns = Vec::new();
            for turn in state.catalog.tree(&principal.user, &id).await? {
                turns.push(travelling(&state, &principal, &turn.id, turn.parent).await?);
            }
            let mut portable = Portable::of(row, turns);
            let mut content = BTreeMap::new();
            for (_, file) in portable::files(&mut portable) {
                if let Ok(Some(bytes)) = state.media.read(Some(&principal.user), &file).await {
                    content.insert(file, bytes);
                }
            }
            portable::bring_in(&mut portable, &content);
            (portable::write_jsonl(&portable, now()), "application/jsonl", "jsonl")
        }
        ExportFormat::Markdown => {
            let mut messages = Vec::new();
            if let Some(leaf) = query.leaf.or(row.leaf_id) {
                for (turn, _) in branch(&state, &principal, &id, &leaf).await? {
                    let Some(row) = state.catalog.turn(&principal.user, &turn).await? else { continue };
                    messages.push(turn_log::message_of(&*state.log, &row).await?);
                }
            }
            let links = KeptFiles::of(&state, &principal).await?;
            (portable::markdown(&row.title, &messages, &links), "text/markdown; charset=utf-8", "md")
        }
    };
    let disposition = format!("attachment; filename=\"{id}.{extension}\"");
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers
        .insert(header::CONTENT_DISPOSITION, HeaderValue::try_from(disposition).map_err(ApiError::internal)?);
    Ok(response)
}

/// Files by the hash of their content.
struct KeptFiles(BTreeMap<String, String>);

impl KeptFiles {
    async fn of(state: &AppState, principal: &Principal) -> Result<Self, ApiError> {
        let mut files = BTreeMap::new();
        let mut page = PageRequest::first().limit(200);
        loop {
            let found = state.catalog.files(&principal.user, &page).await?;
            files.extend(found.items.into_iter().map(|file| (file.hash, file.id)));
            match found.next {
                Some(next) if files.len() < LINKED_FILES_MAX => page = PageRequest::after(next).limit(200),
                _ => return Ok(Self(files)),
            }
        }
    }
}

impl Links for KeptFiles {
    fn link(&self, media: &Media) -> Option<String> {
        if let Some(id) = media.file_id() {
            return Some(format!("/v1/files/{id}/content"));
        }
        let bytes = base64::engine::general_purpose::STANDARD.decode(media.data()).ok()?;
        let id = self.0.get(blake3::hash(&bytes).to_hex().as_str())?;
        Some(format!("/v1/files/{id}/content"))
    }
}

/// Read a conversation in: one that was exported as JSON Lines, or a list of OpenAI messages.
///
/// Everything gets new ids. Nothing is fetched from anywhere, and no model is asked.
#[utoipa::path(post, path = "/v1/conversations/import", tag = "conversations",
    request_body(content((String = "application/jsonl"), (Object = "application/json")),
        description = "A file of `export`, or `[{\"role\": \"user\", \"content\": \"…\"}, …]`"), responses(
    (status = 201, description = "It is there", body = Conversation),
    (status = 400, description = "It cannot be read; `line` says where", body = ErrorBody),
    (status = 413, description = "It is too large", body = ErrorBody),
))]
async fn import(
    State(state): State<AppState>,
    principal: Principal,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    principal.need(Scope::Chat)?;
    let text = std::str::from_utf8(&body).map_err(|error| {
        let line = body[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        ApiError::bad_request("not_utf8", format!("line {line} is not UTF-8")).with("line", line)
    })?;
    // A header is told by its first line, whatever the sender calls the file.
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let said = match said.contains("jsonl") || said.contains("ndjson") {
        true => Said::JsonLines,
        false => Said::Nothing,
    };
    let read = portable::read(text, said, now());
    take_in(&state, &principal, read.map_err(unreadable)?).await
}

fn not_taken_in(error: NotTakenIn) -> ApiError {
    match error {
        NotTakenIn::Unreadable(error) => unreadable(error),
        NotTakenIn::Log(error) => error.into(),
        NotTakenIn::Store(error) => error.into(),
    }
}

fn unreadable(error: portable::LineError) -> ApiError {
    let refused = ApiError::bad_request("cannot_be_imported", error.to_string()).with("line", error.line);
    match error.help {
        Some(help) => refused.remedy(help),
        None => refused,
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
