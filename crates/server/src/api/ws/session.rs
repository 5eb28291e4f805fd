//! One WebSocket: reads operations, and sends the events of the subscribed turns. One task, no queue: while
//! the socket is full nothing is read from the log, and a client that does not read is disconnected.

use super::close_reason::CloseReason;
use super::ops::{self, ClientOp, CommandRequest, OpRequest, ServerMessage, SnapshotMessage};
use crate::api::{approvals, calls, cancel, clients, messages, turns};
use crate::error::{ApiError, ErrorMessage};
use crate::net::ConnectionCanceller;
use crate::principal::Principal;
use crate::projections::native::{self, SnapshotKind};
use crate::request_guard::RequestGuard;
use crate::state::AppState;
use crate::turn_manager::{PeerAnswer, PeerCommand, TurnLookup};
use crate::viewer::{ResumeFrom, Viewer, ViewerItem, ViewerProgress};
use axum::body::Bytes;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use futures_util::stream::{BoxStream, SelectAll, SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt, stream};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use throughline::ClientHandle;
use throughline_engine::{ApprovalId, TurnId};
use throughline_store::LogError;
use throughline_wire::CallId;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;

/// Timeout for sending the close frame.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of unanswered pings after which the client counts as disconnected.
const PINGS_UNANSWERED_MAX: u32 = 2;

/// A turn that is followed.
struct Subscription {
    stop: CancellationToken,
    /// Progress of the client: a client that lags too far is disconnected.
    meter: Arc<ViewerProgress>,
}

/// Next item of one followed turn.
enum TurnUpdate {
    Item(ViewerItem),
    /// No more events follow.
    Ended {
        ended: bool,
    },
    Failed(LogError),
}

type UpdateStream = BoxStream<'static, (TurnId, u64, TurnUpdate)>;

/// Client of the socket and its permissions.
pub(super) struct SocketCaller {
    pub state: AppState,
    pub principal: Principal,
    /// Counts new turns; absent where no request guard is in front.
    pub request_guard: Option<RequestGuard>,
}

struct SocketSession {
    caller: SocketCaller,
    sink: SplitSink<WebSocket, Message>,
    canceller: Arc<ConnectionCanceller>,
    subscriptions: HashMap<TurnId, Subscription>,
    updates: SelectAll<UpdateStream>,
    /// The tools that this client runs.
    client: Option<ClientHandle>,
}

/// Serves one WebSocket to its end.
pub(super) async fn run(caller: SocketCaller, socket: WebSocket, canceller: Arc<ConnectionCanceller>) {
    let (sink, incoming) = socket.split();
    caller.state.turn_manager.watchdog().watch_connection(&canceller);
    let mut session = SocketSession {
        caller,
        sink,
        canceller,
        subscriptions: HashMap::new(),
        updates: SelectAll::new(),
        client: None,
    };
    if let Err(Some(closing)) = session.serve(incoming).await {
        let goodbye = async {
            // The peer may have disconnected already.
            let _ = session.sink.send(Message::Close(Some(closing.frame()))).await;
            let _ = session.sink.close().await;
        };
        if timeout(GOODBYE_TIMEOUT, goodbye).await.is_err() || closing == CloseReason::TooSlow {
            session.canceller.cancel();
        }
        if let Some(telemetry) =
            session.caller.state.turn_manager.telemetry().filter(|_| closing == CloseReason::TooSlow)
        {
            telemetry.meter().dropped();
        }
    }
}

/// Reason for the end of a session; `None` if the client has disconnected.
type SessionEnd = Option<CloseReason>;

impl SocketSession {
    async fn serve(&mut self, mut incoming: SplitStream<WebSocket>) -> Result<(), SessionEnd> {
        let every = Duration::from_millis(self.caller.state.limits.socket_ping_ms);
        let mut pings = interval_at(Instant::now() + every, every);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (stopping, canceller) = (self.caller.state.turn_manager.handed_over(), self.canceller.clone());
        let mut unanswered = 0;
        loop {
            tokio::select! {
                biased;
                () = stopping.cancelled() => return Err(Some(CloseReason::Stopping)),
                () = canceller.close_requested() => return Err(Some(CloseReason::Unauthenticated)),
                message = incoming.next() => {
                    unanswered = 0;
                    match message {
                        None => return Err(None),
                        Some(Err(error)) => return Err(CloseReason::of(error)),
                        Some(Ok(Message::Text(text))) => self.handle_text(text.as_str()).await?,
                        Some(Ok(Message::Binary(_))) => return Err(Some(CloseReason::NotText)),
                        // Pings are answered, and a goodbye returned, by the library.
                        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_))) => {}
                    }
                }
                _ = pings.tick() => {
                    if unanswered >= PINGS_UNANSWERED_MAX {
                        return Err(Some(CloseReason::TooSlow));
                    }
                    unanswered += 1;
                    self.send(Message::Ping(Bytes::new())).await?;
                }
                Some((turn, after, update)) = self.updates.next() => self.forward_update(turn, after, update).await?,
                () = drain_offers(&mut self.client) => {}
            }
        }
    }

    async fn send(&mut self, message: Message) -> Result<(), SessionEnd> {
        // A client that takes nothing is cut by the watchdog.
        self.sink.send(message).await.map_err(|_| None)
    }

    async fn reply(
        &mut self,
        reply: &ServerMessage<'_>,
        reference: Option<&Value>,
    ) -> Result<(), SessionEnd> {
        let mut reply = match serde_json::to_value(reply) {
            Ok(Value::Object(reply)) => reply,
            // It is a map of texts and numbers.
            Ok(_) | Err(_) => return Ok(()),
        };
        if let Some(reference) = reference {
            reply.insert("ref".to_owned(), reference.clone());
        }
        self.send(Message::text(Value::Object(reply).to_string())).await
    }

    async fn forward_update(
        &mut self,
        turn: TurnId,
        after: u64,
        update: TurnUpdate,
    ) -> Result<(), SessionEnd> {
        match update {
            TurnUpdate::Item(ViewerItem::Records(records)) => {
                let meter = self.subscriptions.get(&turn).map(|subscription| subscription.meter.clone());
                for record in records {
                    // The log's own bytes, shared by all viewers; they are JSON, so they are UTF-8.
                    let Ok(text) = Utf8Bytes::try_from(record.payload) else { continue };
                    if let Some(meter) = &meter {
                        meter.mark_given(record.seq);
                    }
                    self.send(Message::Text(text)).await?;
                }
                if let Some(meter) = meter {
                    meter.mark_taken();
                }
                Ok(())
            }
            TurnUpdate::Item(ViewerItem::Snapshot(message)) => {
                self.send_snapshot(&turn, SnapshotKind::Snapshot, &message).await
            }
            TurnUpdate::Item(ViewerItem::Resync(message)) => {
                self.send_snapshot(&turn, SnapshotKind::Resync, &message).await
            }
            TurnUpdate::Item(ViewerItem::Idle) => Ok(()),
            TurnUpdate::Item(ViewerItem::StoreUnavailable(unavailable_for)) => {
                let now = Timestamp::now().as_millisecond();
                self.send(Message::text(native::store_unavailable(&turn, now, unavailable_for))).await
            }
            TurnUpdate::Ended { ended } => {
                self.subscriptions.remove(&turn);
                let reply = ServerMessage::Unsubscribed { turn_id: turn.as_str(), last_seq: after, ended };
                self.reply(&reply, None).await
            }
            TurnUpdate::Failed(error) => {
                self.subscriptions.remove(&turn);
                let error = ApiError::from(error).with_extra("turn_id", turn.as_str());
                self.reply(&ServerMessage::Error(error.into()), None).await
            }
        }
    }

    async fn send_snapshot(
        &mut self,
        turn: &TurnId,
        kind: SnapshotKind,
        message: &throughline::AssistantMessage,
    ) -> Result<(), SessionEnd> {
        let whole =
            SnapshotMessage { r#type: kind.name(), turn_id: turn.as_str(), last_seq: message.seq.0, message };
        let Ok(text) = serde_json::to_string(&whole) else { return Ok(()) };
        self.send(Message::text(text)).await
    }

    async fn handle_text(&mut self, text: &str) -> Result<(), SessionEnd> {
        let OpRequest { reference, op, command } = ops::parse_request(text);
        let reference = reference.as_ref();
        let op = match op {
            Ok(op) => op,
            Err(error) => {
                return self.reply(&ServerMessage::Error(error.into()), reference).await;
            }
        };
        if let Some(command) = command
            && let Some(answer) = self.caller.forward(&command).await.transpose()
        {
            let answer = answer.and_then(PeerAnswer::into_json);
            let reply = match &answer {
                Ok(body) => forwarded_reply(body),
                Err(error) => ServerMessage::Error((**error).clone()),
            };
            return self.reply(&reply, reference).await;
        }
        match self.execute(op, reference).await? {
            Ok(()) => Ok(()),
            Err(error) => self.reply(&ServerMessage::Error(error.into()), reference).await,
        }
    }

    /// Performs an operation and sends the response.
    async fn execute(
        &mut self,
        op: ClientOp,
        reference: Option<&Value>,
    ) -> Result<Result<(), ApiError>, SessionEnd> {
        let reply = match op {
            ClientOp::Ping => Ok(ServerMessage::Pong { timestamp: Timestamp::now().as_millisecond() }),
            ClientOp::Start(body) => match self.caller.start(*body).await {
                Ok((started, viewer)) => {
                    self.reply(&ServerMessage::Started(started), reference).await?;
                    self.subscribe(viewer);
                    return Ok(Ok(()));
                }
                Err(error) => Err(error),
            },
            ClientOp::Subscribe(request)
                if self.subscriptions.contains_key(&TurnId::new(request.turn_id.as_str())) =>
            {
                let message = format!("turn `{}` is followed already", request.turn_id);
                Err(ApiError::conflict("already_subscribed", message).remedy("unsubscribe first"))
            }
            ClientOp::Subscribe(request) => match self.caller.viewer(&request).await {
                Ok(viewer) => {
                    self.reply(&ServerMessage::Subscribed { turn_id: &request.turn_id }, reference).await?;
                    self.subscribe(viewer);
                    return Ok(Ok(()));
                }
                Err(error) => Err(error),
            },
            ClientOp::Unsubscribe(of) => match self.subscriptions.get(&TurnId::new(of.turn_id.as_str())) {
                Some(subscription) => {
                    subscription.stop.cancel();
                    Ok(ServerMessage::Done { status: "unsubscribing" })
                }
                None => Err(ApiError::not_found("subscription to turn", &of.turn_id)),
            },
            ClientOp::Approve(of) => {
                self.caller.approve(of).await.map(|status| ServerMessage::Done { status })
            }
            ClientOp::Cancel(of) => {
                self.caller.cancel(of).await.map(|()| ServerMessage::Done { status: "cancelling" })
            }
            ClientOp::CancelCall(of) => {
                self.caller.cancel_call(of).await.map(|status| ServerMessage::Done { status })
            }
            ClientOp::SendMessage(of) => {
                self.caller.send_message(of).await.map(|sent| ServerMessage::Queued { id: sent.id })
            }
            ClientOp::Result(of) => self
                .caller
                .submit_call_result(of)
                .await
                .map(|reply| ServerMessage::Done { status: reply.status }),
            ClientOp::Tools(tools) => match self.declare_tools(tools) {
                Ok((client_id, tools)) => {
                    self.reply(&ServerMessage::ToolsDeclared { client_id: &client_id, tools }, reference)
                        .await?;
                    return Ok(Ok(()));
                }
                Err(error) => Err(error),
            },
        };
        match reply {
            Ok(reply) => self.reply(&reply, reference).await.map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    fn subscribe(&mut self, viewer: Viewer) {
        let (turn, stop) = (viewer.turn().clone(), CancellationToken::new());
        let watchdog = self.caller.state.turn_manager.watchdog();
        let meter = watchdog.watch(turn.clone(), viewer.after(), self.canceller.clone());
        self.subscriptions.insert(turn, Subscription { stop: stop.clone(), meter });
        let updates = stream::unfold(Some((viewer, stop)), |state| async move {
            let (mut viewer, stop) = state?;
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => Ok(None),
                next = viewer.next() => next,
            };
            let (turn, after) = (viewer.turn().clone(), viewer.after());
            Some(match next {
                Ok(Some(viewed)) => ((turn, after, TurnUpdate::Item(viewed)), Some((viewer, stop))),
                Ok(None) => ((turn, after, TurnUpdate::Ended { ended: viewer.has_ended() }), None),
                Err(error) => ((turn, after, TurnUpdate::Failed(error)), None),
            })
        });
        self.updates.push(updates.boxed());
    }

    /// Registers this connection as a client. Its calls arrive as `tool_start` events of the turns that it is
    /// subscribed to.
    fn declare_tools(&mut self, tools: ops::DeclareToolsOp) -> Result<(String, usize), ApiError> {
        let count = tools.tools.len();
        if let Some(client) = &self.client
            && tools.client_id.as_deref().is_none_or(|id| id == client.id())
        {
            client.declare(tools.tools).map_err(clients::declaration_error)?;
            return Ok((client.id().to_owned(), count));
        }
        let id = tools.client_id.unwrap_or_else(|| format!("ws_{}", uuid::Uuid::now_v7().simple()));
        clients::check_client_id(&id)?;
        let user = Some(self.caller.principal.user.clone());
        self.client = Some(
            self.caller
                .state
                .app
                .connect_client(id.as_str(), user, tools.tools)
                .map_err(clients::declaration_error)?,
        );
        Ok((id, count))
    }
}

impl SocketCaller {
    /// Forwards a command to the server that runs the turn, if that is another one.
    async fn forward(&self, command: &CommandRequest) -> Result<Option<PeerAnswer>, Box<ErrorMessage>> {
        let (turn_manager, turn) = (&self.state.turn_manager, TurnId::new(command.turn_id.as_str()));
        let forwarded = async {
            if !turn_manager.is_remote(&self.principal.user, &turn).await? {
                return Ok(None);
            }
            let command = PeerCommand::post(&command.path, command.body.clone());
            turn_manager.forward(&self.principal, &turn, command).await
        };
        forwarded.await.map_err(|error: ApiError| Box::new(error.into()))
    }

    async fn turn_state(&self, turn: &str) -> Result<TurnLookup, ApiError> {
        self.state.turn_manager.lookup(&self.principal.user, &TurnId::new(turn)).await
    }

    async fn start(&self, body: turns::StartTurn) -> Result<(turns::TurnStarted, Viewer), ApiError> {
        if let Some(request_guard) = &self.request_guard {
            request_guard.check_turn_quota(&self.principal)?;
        }
        let new = turns::new_turn(&self.state, &self.principal.user, body).await?;
        let started = self.state.turn_manager.start_turn(&self.principal, new).await?;
        let viewer =
            self.state.turn_manager.viewer(&self.principal, &started.turn_id, ResumeFrom::After(0)).await?;
        Ok((started.into(), viewer))
    }

    async fn viewer(&self, request: &ops::SubscribeOp) -> Result<Viewer, ApiError> {
        let from = match request.from {
            Some(_) => ResumeFrom::Snapshot,
            None => ResumeFrom::After(request.after),
        };
        self.state.turn_manager.viewer(&self.principal, &TurnId::new(request.turn_id.as_str()), from).await
    }

    async fn approve(&self, of: ops::ApprovalOp) -> Result<&'static str, ApiError> {
        let (turn, question) = (TurnId::new(of.turn_id.as_str()), ApprovalId::new(of.approval_id.as_str()));
        let turn_state = self.turn_state(&of.turn_id).await?;
        let outcome = approvals::resolve_approval(
            &*self.state.log,
            turn_state,
            &turn,
            &question,
            of.answer,
            &self.principal.user,
        )
        .await?;
        approvals::approval_ack(outcome, &question).map(|(_, reply)| reply.0.status)
    }

    async fn cancel(&self, of: ops::TurnOp) -> Result<(), ApiError> {
        cancel::cancel_turn(&self.state, &self.principal, &TurnId::new(of.turn_id)).await
    }

    async fn cancel_call(&self, of: ops::CallOp) -> Result<&'static str, ApiError> {
        let (turn_state, turn) = (self.turn_state(&of.turn_id).await?, TurnId::new(of.turn_id.as_str()));
        let ack = calls::stop_call(&*self.state.log, turn_state, &turn, &of.tool_id).await?;
        Ok(ack.status)
    }

    async fn send_message(&self, of: ops::SendMessageOp) -> Result<messages::SentMessage, ApiError> {
        let (state, user) = (&self.state, &self.principal.user);
        let control = messages::running_turn(state, &self.principal, &of.turn_id).await?;
        let input = messages::message_input(state, user, &of.turn_id, of.message.input).await?;
        let turn = TurnId::new(of.turn_id);
        messages::queue_message(state, user, (&control, &turn), input, of.message.when, of.message.id).await
    }

    async fn submit_call_result(&self, of: ops::CallResultOp) -> Result<calls::CallAck, ApiError> {
        self.turn_state(&of.turn_id).await?;
        let (user, call) = (Some(self.principal.user.clone()), CallId::new(of.tool_id.as_str()));
        let outcome = self.state.app.answer_client_call(user, &call, of.result.into_answer()).await;
        calls::call_ack(outcome, &of.tool_id)
    }
}

/// The message for a command that another server has performed.
fn forwarded_reply(body: &Value) -> ServerMessage<'_> {
    match (body["id"].as_str(), body["status"].as_str()) {
        (Some(id), _) => ServerMessage::Queued { id: id.to_owned() },
        (None, status) => ServerMessage::Done { status: status.unwrap_or("cancelling") },
    }
}

/// Discards offers of calls: the events contain them. Ends when another branch of the select is ready.
async fn drain_offers(client: &mut Option<ClientHandle>) {
    let Some(handle) = client else { return std::future::pending().await };
    if handle.next().await.is_none() {
        // The same client has connected anew; that connection has its calls now.
        *client = None;
    }
}
