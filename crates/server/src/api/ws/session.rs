//! One WebSocket: reads operations, and sends the events of the turns that it follows. One task, no queue: while the socket
//! is full nothing is read from the log, and a client that takes nothing is closed.

use super::closing::Closing;
use super::ops::{self, Asked, Op, Told, WholeMessage};
use crate::api::{approvals, calls, clients, messages, turns};
use crate::error::ApiError;
use crate::gate::Gate;
use crate::hub::Standing;
use crate::net::Cut;
use crate::principal::Principal;
use crate::state::AppState;
use crate::surface::own::{self, Whole};
use crate::viewer::{From, Meter, Viewed, Viewer};
use axum::body::Bytes;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use futures_util::stream::{BoxStream, SelectAll, SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt, stream};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use throughline::{ClientHandle, TurnControl};
use throughline_engine::{ApprovalId, TurnId};
use throughline_store::LogError;
use throughline_wire::CallId;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;

/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);
/// Pings without any sign of life in between after which the other end is taken for gone.
const PINGS_UNANSWERED_MAX: u32 = 2;

/// A turn that is followed.
struct Follow {
    stop: CancellationToken,
    /// How far the client has taken its events: whoever is too far behind is cut.
    meter: Arc<Meter>,
}

/// What one followed turn gives.
enum Followed {
    Seen(Viewed),
    /// Nothing more comes.
    Over {
        ended: bool,
    },
    Failed(LogError),
}

type Following = BoxStream<'static, (TurnId, u64, Followed)>;

/// Who is at the other end, and what may be done for them.
pub(super) struct Caller {
    pub state: AppState,
    pub principal: Principal,
    /// Counts new turns; absent where no gate is in front.
    pub gate: Option<Gate>,
}

struct Session {
    caller: Caller,
    sink: SplitSink<WebSocket, Message>,
    cut: Arc<Cut>,
    /// How long one message may wait for the client.
    patience: Duration,
    followed: HashMap<TurnId, Follow>,
    following: SelectAll<Following>,
    /// The tools that this client runs.
    client: Option<ClientHandle>,
}

/// Serves one WebSocket to its end.
pub(super) async fn run(caller: Caller, socket: WebSocket, cut: Arc<Cut>) {
    let (sink, incoming) = socket.split();
    let patience = Duration::from_millis(caller.state.limits.behind_ms_max);
    let mut session = Session {
        caller,
        sink,
        cut,
        patience,
        followed: HashMap::new(),
        following: SelectAll::new(),
        client: None,
    };
    if let Err(Some(closing)) = session.serve(incoming).await {
        let goodbye = async {
            // It may be gone already.
            let _ = session.sink.send(Message::Close(Some(closing.frame()))).await;
            let _ = session.sink.close().await;
        };
        if timeout(GOODBYE, goodbye).await.is_err() || closing == Closing::TooSlow {
            session.cut.now();
        }
        if let Some(telemetry) = session.caller.state.hub.telemetry().filter(|_| closing == Closing::TooSlow)
        {
            telemetry.meter().dropped();
        }
    }
}

/// Why a session is over; `None` = the client has gone.
type Over = Option<Closing>;

impl Session {
    async fn serve(&mut self, mut incoming: SplitStream<WebSocket>) -> Result<(), Over> {
        let every = Duration::from_millis(self.caller.state.limits.socket_ping_ms);
        let mut pings = interval_at(Instant::now() + every, every);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (stopping, cut) = (self.caller.state.hub.handed_over(), self.cut.clone());
        let mut unanswered = 0;
        loop {
            tokio::select! {
                biased;
                () = stopping.cancelled() => return Err(Some(Closing::Stopping)),
                () = cut.due() => return Err(Some(Closing::Unauthenticated)),
                message = incoming.next() => {
                    unanswered = 0;
                    match message {
                        None => return Err(None),
                        Some(Err(error)) => return Err(Closing::of(error)),
                        Some(Ok(Message::Text(text))) => self.asked(text.as_str()).await?,
                        Some(Ok(Message::Binary(_))) => return Err(Some(Closing::NotText)),
                        // Pings are answered, and a goodbye returned, by the library.
                        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_))) => {}
                    }
                }
                _ = pings.tick() => {
                    if unanswered >= PINGS_UNANSWERED_MAX {
                        return Err(Some(Closing::TooSlow));
                    }
                    unanswered += 1;
                    self.send(Message::Ping(Bytes::new())).await?;
                }
                Some((turn, after, followed)) = self.following.next() => self.show(turn, after, followed).await?,
                () = offered(&mut self.client) => {}
            }
        }
    }

    async fn send(&mut self, message: Message) -> Result<(), Over> {
        let mut sending = pin!(self.sink.send(message));
        loop {
            let taken = self.cut.taken();
            match timeout(self.patience, sending.as_mut()).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(_)) => return Err(None),
                // A large message may take a slow client its time.
                Err(_) if self.cut.taken() != taken => {}
                Err(_) => return Err(Some(Closing::TooSlow)),
            }
        }
    }

    async fn tell(&mut self, told: &Told<'_>, reference: Option<&Value>) -> Result<(), Over> {
        let mut told = match serde_json::to_value(told) {
            Ok(Value::Object(told)) => told,
            // It is a map of texts and numbers.
            Ok(_) | Err(_) => return Ok(()),
        };
        if let Some(reference) = reference {
            told.insert("ref".to_owned(), reference.clone());
        }
        self.send(Message::text(Value::Object(told).to_string())).await
    }

    async fn show(&mut self, turn: TurnId, after: u64, followed: Followed) -> Result<(), Over> {
        match followed {
            Followed::Seen(Viewed::Records(records)) => {
                let meter = self.followed.get(&turn).map(|follow| follow.meter.clone());
                for record in records {
                    // The log's own bytes, shared by all viewers; they are JSON, so they are UTF-8.
                    let Ok(text) = Utf8Bytes::try_from(record.payload) else { continue };
                    if let Some(meter) = &meter {
                        meter.given(record.seq);
                    }
                    self.send(Message::Text(text)).await?;
                }
                if let Some(meter) = meter {
                    meter.asks();
                }
                Ok(())
            }
            Followed::Seen(Viewed::Snapshot(message)) => self.whole(&turn, Whole::Snapshot, &message).await,
            Followed::Seen(Viewed::Resync(message)) => self.whole(&turn, Whole::Resync, &message).await,
            Followed::Seen(Viewed::Idle) => Ok(()),
            Followed::Seen(Viewed::StoreIsAway(away)) => {
                let now = Timestamp::now().as_millisecond();
                self.send(Message::text(own::store_is_away(&turn, now, away))).await
            }
            Followed::Over { ended } => {
                self.followed.remove(&turn);
                let told = Told::Unsubscribed { turn_id: turn.as_str(), last_seq: after, ended };
                self.tell(&told, None).await
            }
            Followed::Failed(error) => {
                self.followed.remove(&turn);
                let error = ApiError::from(error).with("turn_id", turn.as_str());
                self.tell(&Told::Error { error: error.body().error }, None).await
            }
        }
    }

    async fn whole(
        &mut self,
        turn: &TurnId,
        kind: Whole,
        message: &throughline::Message,
    ) -> Result<(), Over> {
        let whole =
            WholeMessage { r#type: kind.name(), turn_id: turn.as_str(), last_seq: message.seq.0, message };
        let Ok(text) = serde_json::to_string(&whole) else { return Ok(()) };
        self.send(Message::text(text)).await
    }

    async fn asked(&mut self, text: &str) -> Result<(), Over> {
        let Asked { reference, op } = ops::read(text);
        let reference = reference.as_ref();
        let op = match op {
            Ok(op) => op,
            Err(error) => return self.tell(&Told::Error { error: error.body().error }, reference).await,
        };
        match self.done(op, reference).await? {
            Ok(()) => Ok(()),
            Err(error) => self.tell(&Told::Error { error: error.body().error }, reference).await,
        }
    }

    /// Does what is asked, and tells it.
    async fn done(&mut self, op: Op, reference: Option<&Value>) -> Result<Result<(), ApiError>, Over> {
        let told = match op {
            Op::Ping => Ok(Told::Pong { timestamp: Timestamp::now().as_millisecond() }),
            Op::Start(body) => match self.caller.start(*body).await {
                Ok((started, viewer)) => {
                    self.tell(&Told::Started(started), reference).await?;
                    self.follow(viewer);
                    return Ok(Ok(()));
                }
                Err(error) => Err(error),
            },
            Op::Subscribe(wish) if self.followed.contains_key(&TurnId::new(wish.turn_id.as_str())) => {
                let message = format!("turn `{}` is followed already", wish.turn_id);
                Err(ApiError::conflict("already_subscribed", message).remedy("unsubscribe first"))
            }
            Op::Subscribe(wish) => match self.caller.viewer(&wish).await {
                Ok(viewer) => {
                    self.tell(&Told::Subscribed { turn_id: &wish.turn_id }, reference).await?;
                    self.follow(viewer);
                    return Ok(Ok(()));
                }
                Err(error) => Err(error),
            },
            Op::Unsubscribe(of) => match self.followed.get(&TurnId::new(of.turn_id.as_str())) {
                Some(followed) => {
                    followed.stop.cancel();
                    Ok(Told::Done { status: "unsubscribing" })
                }
                None => Err(ApiError::not_found("subscription to turn", &of.turn_id)),
            },
            Op::Approve(of) => self.caller.approve(of).await.map(|status| Told::Done { status }),
            Op::Cancel(of) => match self.caller.standing(&of.turn_id).await {
                Ok(standing) => {
                    if let Standing::Running(control) = standing {
                        // If it ended a moment ago, that is what its events say.
                        let _ = control.cancel().await;
                    }
                    Ok(Told::Done { status: "cancelling" })
                }
                Err(error) => Err(error),
            },
            Op::CancelCall(of) => self.caller.cancel_call(of).await.map(|status| Told::Done { status }),
            Op::Say(of) => self.caller.say(of).await.map(|said| Told::Queued { id: said.id }),
            Op::Result(of) => self.caller.result(of).await.map(|told| Told::Done { status: told.status }),
            Op::Tools(tools) => match self.declare(tools) {
                Ok((client_id, tools)) => {
                    self.tell(&Told::ToolsDeclared { client_id: &client_id, tools }, reference).await?;
                    return Ok(Ok(()));
                }
                Err(error) => Err(error),
            },
        };
        match told {
            Ok(told) => self.tell(&told, reference).await.map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    fn follow(&mut self, viewer: Viewer) {
        let (turn, stop) = (viewer.turn().clone(), CancellationToken::new());
        let watchdog = self.caller.state.hub.watchdog();
        let meter = watchdog.watch(turn.clone(), viewer.after(), self.cut.clone());
        self.followed.insert(turn, Follow { stop: stop.clone(), meter });
        let seen = stream::unfold(Some((viewer, stop)), |state| async move {
            let (mut viewer, stop) = state?;
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => Ok(None),
                next = viewer.next() => next,
            };
            let (turn, after) = (viewer.turn().clone(), viewer.after());
            Some(match next {
                Ok(Some(viewed)) => ((turn, after, Followed::Seen(viewed)), Some((viewer, stop))),
                Ok(None) => ((turn, after, Followed::Over { ended: viewer.has_ended() }), None),
                Err(error) => ((turn, after, Followed::Failed(error)), None),
            })
        });
        self.following.push(seen.boxed());
    }

    /// This connection is a client from now on. Its calls come as the `tool_start` events of the turns that it follows.
    fn declare(&mut self, tools: ops::Tools) -> Result<(String, usize), ApiError> {
        let count = tools.tools.len();
        if let Some(client) = &self.client
            && tools.client_id.as_deref().is_none_or(|id| id == client.id())
        {
            client.declare(tools.tools).map_err(clients::refused)?;
            return Ok((client.id().to_owned(), count));
        }
        let id = tools.client_id.unwrap_or_else(|| format!("ws_{}", uuid::Uuid::now_v7().simple()));
        clients::check_id(&id)?;
        let user = Some(self.caller.principal.user.clone());
        self.client = Some(
            self.caller.state.app.connect_client(id.as_str(), user, tools.tools).map_err(clients::refused)?,
        );
        Ok((id, count))
    }
}

impl Caller {
    async fn standing(&self, turn: &str) -> Result<Standing, ApiError> {
        self.state.hub.control(&self.principal.user, &TurnId::new(turn)).await
    }

    async fn running(&self, turn: &str) -> Result<TurnControl, ApiError> {
        match self.standing(turn).await? {
            Standing::Running(control) => Ok(control),
            Standing::Ended(_) => Err(ApiError::conflict("turn_is_over", "the turn is over")),
        }
    }

    async fn start(&self, body: turns::StartTurn) -> Result<(turns::TurnStarted, Viewer), ApiError> {
        if let Some(gate) = &self.gate {
            gate.one_more_turn(&self.principal)?;
        }
        let new = turns::new_turn(&self.state, &self.principal.user, body).await?;
        let started = self.state.hub.start(&self.principal, new).await?;
        let viewer = self.state.hub.viewer(&self.principal, &started.turn_id, From::After(0)).await?;
        Ok((started.into(), viewer))
    }

    async fn viewer(&self, wish: &ops::Subscribe) -> Result<Viewer, ApiError> {
        let from = match wish.from {
            Some(_) => From::Snapshot,
            None => From::After(wish.after),
        };
        self.state.hub.viewer(&self.principal, &TurnId::new(wish.turn_id.as_str()), from).await
    }

    async fn approve(&self, of: ops::OfQuestion) -> Result<&'static str, ApiError> {
        let (turn, question) = (TurnId::new(of.turn_id.as_str()), ApprovalId::new(of.approval_id.as_str()));
        let standing = self.standing(&of.turn_id).await?;
        let decided =
            approvals::decide(&*self.state.log, standing, &turn, &question, of.answer, &self.principal.user)
                .await?;
        approvals::told(decided, &question).map(|(_, told)| told.0.status)
    }

    async fn cancel_call(&self, of: ops::OfCall) -> Result<&'static str, ApiError> {
        calls::cancelled(self.standing(&of.turn_id).await?, &of.tool_id).await.map(|told| told.status)
    }

    async fn say(&self, of: ops::OfTurnSay) -> Result<messages::SaidSo, ApiError> {
        let control = self.running(&of.turn_id).await?;
        let (state, user) = (&self.state, &self.principal.user);
        let input = messages::parts_for(state, user, &of.turn_id, of.say.input).await?;
        let turn = TurnId::new(of.turn_id);
        messages::said(state, user, (&control, &turn), input, of.say.when, of.say.id).await
    }

    async fn result(&self, of: ops::OfCallResult) -> Result<calls::CallTold, ApiError> {
        self.standing(&of.turn_id).await?;
        let (user, call) = (Some(self.principal.user.clone()), CallId::new(of.tool_id.as_str()));
        let answered = self.state.app.answer_client_call(user, &call, of.result.into_answer()).await;
        calls::told(answered, &of.tool_id)
    }
}

/// Takes offers out of their channel: what they say is in the events. Ends when there is something else to be done.
async fn offered(client: &mut Option<ClientHandle>) {
    let Some(handle) = client else { return std::future::pending().await };
    if handle.next().await.is_none() {
        // The same client has connected anew; that connection has its calls now.
        *client = None;
    }
}
