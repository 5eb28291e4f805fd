//! Several servers over one database. A command to a turn that another server runs is stored as an HTTP
//! request, and the owner answers it with its own routes: status and body are the owner's. A turn whose
//! server has died is taken over while this one runs.

use super::TurnManager;
use crate::error::{ApiError, ErrorMessage, ErrorResponse};
use crate::principal::{KeyScopes, Principal, SignInWay};
use crate::state::AppState;
use crate::turn_log::NOT_RUNNING;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::TurnId;
use throughline_store::{OpenTurn, PeerRequest, PeerServers, StoreError};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tower::ServiceExt;

/// Longest wait for the owner of a turn to answer a command.
pub(super) const PEER_REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which requests, replies and turns without a server are looked for, notified or not.
const PEER_POLL_INTERVAL: Duration = Duration::from_millis(150);
/// Longest time that a command waits for its turn to be run here.
const NOT_RUNNING_PATIENCE: Duration = Duration::from_secs(2);
/// Largest answer of an owner, in bytes.
const REPLY_BYTES_MAX: usize = 8 << 20;
/// Number of turns that are taken over in parallel.
const TAKEOVER_CONCURRENCY: usize = 16;
/// Headers of an answer that are passed on.
const PASSED_HEADERS: [HeaderName; 2] = [header::CONTENT_TYPE, header::RETRY_AFTER];

/// A command to a turn, as the request that it is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PeerCommand {
    method: String,
    /// Path with its query.
    path: String,
    content_type: String,
    body: String,
}

impl PeerCommand {
    /// A command with a body of JSON.
    pub(crate) fn post(path: &str, body: String) -> Self {
        let content_type = "application/json".to_owned();
        Self { method: Method::POST.to_string(), path: path.to_owned(), content_type, body }
    }
}

/// A command as stored for the owner of its turn, with its principal.
#[derive(Debug, Serialize, Deserialize)]
struct StoredCommand {
    user: String,
    key_id: Option<String>,
    scopes: KeyScopes,
    command: PeerCommand,
}

/// The owner's answer to a command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PeerAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl PeerAnswer {
    /// The body, or the error that it is.
    pub(crate) fn into_json(self) -> Result<Value, Box<ErrorMessage>> {
        if self.status < 400 {
            return Ok(serde_json::from_str(&self.body).unwrap_or(Value::Null));
        }
        let retry_after = self.headers.iter().find(|(name, _)| name == header::RETRY_AFTER.as_str());
        let retry_after_s = retry_after.and_then(|(_, seconds)| seconds.parse().ok());
        Err(Box::new(match serde_json::from_str::<ErrorResponse>(&self.body) {
            Ok(ErrorResponse { error }) => ErrorMessage { status: self.status, retry_after_s, error },
            Err(error) => ApiError::internal(error).into(),
        }))
    }
}

impl PeerAnswer {
    fn has_code(&self, code: &str) -> bool {
        let error = serde_json::from_str::<ErrorResponse>(&self.body);
        self.status >= 400 && error.is_ok_and(|answer| answer.error.code == code)
    }
}

impl StoredCommand {
    fn into_request(self) -> Result<Request, http::Error> {
        let principal = Principal {
            key_id: self.key_id,
            scopes: self.scopes,
            signed_in_by: SignInWay::Off,
            ..Principal::local(self.user)
        };
        let PeerCommand { method, path, content_type, body } = self.command;
        let mut request = Request::builder().method(method.as_str()).uri(path).extension(principal);
        if !content_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        request.body(Body::from(body))
    }
}

impl From<PeerAnswer> for Response {
    fn from(answer: PeerAnswer) -> Self {
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Body::from(answer.body).into_response();
        *response.status_mut() = status;
        for (name, value) in answer.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// The turn that a command is for, if this is one that its owner has to answer.
fn commanded_turn<'a>(method: &Method, path: &'a str) -> Option<&'a str> {
    let (turn, command) = path.strip_prefix("/v1/turns/")?.split_once('/')?;
    let words: Vec<&str> = command.split('/').collect();
    let is_command = matches!(
        (method, words.as_slice()),
        (&Method::POST, ["cancel"] | ["approvals", _] | ["calls", _, "cancel" | "result"] | ["messages"])
            | (&Method::GET, ["messages"])
            | (&Method::DELETE, ["messages", _])
    );
    is_command.then_some(turn)
}

/// Hands commands to turns of other servers to those.
pub(crate) async fn forward_commands(
    State(state): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let principal = request.extensions().get::<Principal>().cloned();
    let turn = commanded_turn(request.method(), request.uri().path()).map(TurnId::new);
    let (Some(principal), Some(turn)) = (principal, turn) else { return next.run(request).await };
    match state.turn_manager.is_remote(&principal.user, &turn).await {
        Ok(true) => {}
        Ok(false) => return next.run(request).await,
        Err(error) => return error.into_response(),
    }
    let (parts, body) = request.into_parts();
    let body = match to_bytes(body, state.limits.body_bytes_max as usize).await {
        Ok(body) => body,
        Err(error) => return ApiError::bad_request("unreadable_body", error.to_string()).into_response(),
    };
    let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let Ok(text) = std::str::from_utf8(&body) else {
        return ApiError::bad_request("invalid_json", "the body is not UTF-8").into_response();
    };
    let command = PeerCommand {
        method: parts.method.to_string(),
        path: parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        content_type: content_type.unwrap_or_default().to_owned(),
        body: text.to_owned(),
    };
    match state.turn_manager.forward(&principal, &turn, command).await {
        Ok(Some(answer)) => answer.into(),
        // It has ended, or is this server's by now.
        Ok(None) => next.run(Request::from_parts(parts, Body::from(body))).await,
        Err(error) => error.into_response(),
    }
}

impl TurnManager {
    /// True if another server runs this turn of this user, or the server that ran it has died.
    pub(crate) async fn is_remote(&self, user: &str, turn: &TurnId) -> Result<bool, ApiError> {
        if self.0.log.peers().is_none() || self.turns().contains_key(turn) {
            return Ok(false);
        }
        match self.0.catalog.turn(user, turn.as_str()).await? {
            Some(row) if row.end.is_none() => Ok(self.0.log.remote_owner(turn.as_str()).await?.is_some()),
            Some(_) | None => Ok(false),
        }
    }

    /// Forwards a command to the owner of a turn; `None`: no other server owns the turn any more.
    ///
    /// # Errors
    /// 503 `owned_elsewhere`: the owner did not take the command in time; then nothing was done. 503
    /// `outcome_unknown`: it took the command and has not answered.
    pub(crate) async fn forward(
        &self,
        principal: &Principal,
        turn: &TurnId,
        command: PeerCommand,
    ) -> Result<Option<PeerAnswer>, ApiError> {
        let Some(peers) = self.0.log.peers() else { return Ok(None) };
        let command = StoredCommand {
            user: principal.user.clone(),
            key_id: principal.key_id.clone(),
            scopes: principal.scopes.clone(),
            command,
        };
        let command = serde_json::to_vec(&command).map_err(ApiError::internal)?;
        let mut doorbell = peers.doorbell();
        let id = peers.send(turn.as_str(), command.into()).await?;
        let (mut deadline, mut has_waited) = (Instant::now() + PEER_REPLY_TIMEOUT, false);
        loop {
            doorbell.mark_unchanged();
            if let Some(answer) = peers.receive(id).await? {
                return serde_json::from_slice(&answer).map(Some).map_err(ApiError::internal);
            }
            let is_remote = self.is_remote(&principal.user, turn).await?;
            if !is_remote && peers.withdraw(id).await? {
                return Ok(None);
            }
            if Instant::now() >= deadline {
                if peers.withdraw(id).await? {
                    return match self.owned_elsewhere(turn).await? {
                        Some(error) => Err(error),
                        None => Ok(None),
                    };
                }
                if has_waited {
                    let message = format!(
                        "the server of turn `{}` accepted this command but does not answer",
                        turn.as_str()
                    );
                    let error = ApiError::unavailable("outcome_unknown", message, 2);
                    return Err(error.remedy("check the turn's events for the outcome"));
                }
                (deadline, has_waited) = (Instant::now() + PEER_REPLY_TIMEOUT, true);
            }
            tokio::select! {
                rung = doorbell.changed() => if rung.is_err() { return Err(closed()) },
                () = tokio::time::sleep(PEER_POLL_INTERVAL) => {}
            }
        }
    }

    /// Answers commands of other servers with these routes, and takes over turns whose server has died, until
    /// the server stops. Returns immediately if the log is not shared.
    pub async fn serve_peers(self, routes: Router) {
        let Some(peers) = self.0.log.peers() else { return };
        let mut doorbell = peers.doorbell();
        let mut poll = tokio::time::interval(PEER_POLL_INTERVAL);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let takeover_slots = Arc::new(Semaphore::new(TAKEOVER_CONCURRENCY));
        loop {
            tokio::select! {
                () = self.0.stopping.cancelled() => return,
                rung = doorbell.changed() => if rung.is_err() { return },
                _ = poll.tick() => self.take_over_turns(&*peers, &takeover_slots).await,
            }
            // What cannot be looked at now is looked at the next time.
            for request in peers.take().await.unwrap_or_default() {
                tokio::spawn(answer_peer(self.clone(), peers.clone(), routes.clone(), request));
            }
        }
    }

    /// Runs in the task that takes requests: a turn that this server now owns is marked as resuming before
    /// any request for it is taken.
    async fn take_over_turns(&self, peers: &dyn PeerServers, slots: &Arc<Semaphore>) {
        while let Ok(slot) = slots.clone().try_acquire_owned() {
            let orphan = match peers.claim_orphan().await {
                Ok(Some(orphan)) => orphan,
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!(%error, "cannot look for turns of dead servers");
                    return;
                }
            };
            let (turn_manager, turn) = (self.clone(), TurnId::new(orphan.id.as_str()));
            self.resuming().insert(turn.clone());
            self.0.tasks.spawn(async move {
                turn_manager.take_over(orphan).await;
                turn_manager.resuming().remove(&turn);
                turn_manager.0.resumed.notify_waiters();
                drop(slot);
            });
        }
    }

    async fn take_over(&self, turn: OpenTurn) {
        tracing::info!(turn_id = turn.id, "taking over a turn of a dead server");
        if let Some(history) = self.0.history.get() {
            history.rebuild([(turn.user.clone(), turn.id.clone())]);
        }
        self.resume_turn(turn).await;
    }

    /// Waits until a turn that is being taken over runs here.
    pub(super) async fn wait_until_resumed(&self, turn: &TurnId) {
        loop {
            let resumed = self.0.resumed.notified();
            if !self.resuming().contains(turn) {
                return;
            }
            resumed.await;
        }
    }

    /// Takes over all turns without a server, as at the start of a server among others.
    pub(super) async fn take_over_all(&self, peers: &dyn PeerServers) -> Result<usize, StoreError> {
        let (mut turns, slots) = (0, Arc::new(Semaphore::new(TAKEOVER_CONCURRENCY)));
        while let Some(orphan) = peers.claim_orphan().await? {
            turns += 1;
            let Ok(slot) = slots.clone().acquire_owned().await else { break };
            let turn_manager = self.clone();
            self.0.tasks.spawn(async move {
                turn_manager.take_over(orphan).await;
                drop(slot);
            });
        }
        // All of them are given back when the last turn runs.
        let _ = slots.acquire_many(TAKEOVER_CONCURRENCY as u32).await;
        Ok(turns)
    }
}

/// Answers a command. While nothing runs its turn here the answer waits: the turn may just be beginning, or this server stops,
/// and the next one takes the command with the turn.
async fn answer_peer(
    turn_manager: TurnManager,
    peers: Arc<dyn PeerServers>,
    routes: Router,
    request: PeerRequest,
) {
    let deadline = Instant::now() + NOT_RUNNING_PATIENCE;
    let answer = loop {
        let answer = match serde_json::from_slice::<StoredCommand>(&request.request) {
            Ok(command) => answer_command(routes.clone(), command).await,
            // The command is of a later release and unknown to this one.
            Err(error) => Err(ApiError::unavailable("unknown_command", error.to_string(), 2)),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => match stored_answer(error.into_response()).await {
                Ok(answer) => answer,
                Err(_) => return,
            },
        };
        if !answer.has_code(NOT_RUNNING) {
            break answer;
        }
        if turn_manager.is_stopping() {
            return;
        }
        if Instant::now() >= deadline {
            break answer;
        }
        tokio::time::sleep(PEER_POLL_INTERVAL).await;
    };
    let Ok(reply) = serde_json::to_vec(&answer) else { return };
    if let Err(error) = peers.reply(request.id, reply.into()).await {
        tracing::warn!(%error, turn_id = request.turn, "cannot store the answer to another server");
    }
}

async fn answer_command(routes: Router, command: StoredCommand) -> Result<PeerAnswer, ApiError> {
    let request = command.into_request().map_err(ApiError::internal)?;
    let response = match routes.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    stored_answer(response).await
}

async fn stored_answer(response: Response) -> Result<PeerAnswer, ApiError> {
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, REPLY_BYTES_MAX).await.map_err(ApiError::internal)?;
    let headers = PASSED_HEADERS.iter().filter_map(|name| {
        let value = parts.headers.get(name)?.to_str().ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    Ok(PeerAnswer {
        status: parts.status.as_u16(),
        headers: headers.collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn closed() -> ApiError {
    ApiError::unavailable("store_unavailable", "the store has been closed", 5)
}
