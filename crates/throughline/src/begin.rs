//! From a request to a running turn: everything is decided first ([`Throughline::prepare`]), then it happens
//! ([`Throughline::begin`]). Going on with a turn of another process ([`Throughline::resume`]) is the second half alone.

use crate::agent::Agent;
use crate::app::{Persona, Throughline, TurnRequest};
use crate::calling;
use crate::clients::{self, Offers};
use crate::clock::Clock;
use crate::driver::{self, COMMANDS_MAX, LogWait, Origin, World};
use crate::error::Error;
use crate::hooks::{TurnEnded, TurnHooks};
use crate::media::Shelf;
use crate::models::ModelFacts;
use crate::observer::{KeepRaw, TurnFacts};
use crate::offer::{self, Offer};
use crate::said::Mailbox;
use crate::stored::{HistoryOf, Prepared, STORED_TURN, StoredTurn};
use crate::turn::{Turn, TurnControl};
use crate::upstream::UpstreamClient;
use std::borrow::Cow;
use std::sync::Arc;
use throughline_engine::{MessageId, OfferedTool, TurnId, TurnLimits, TurnSetup, TurnStart, UpstreamChoice};
use throughline_store::{Claim, Tail};
use throughline_tools::{Registry, TOOL_TIMEOUT_DEFAULT, Toggle};
use throughline_wire::text::TextProtocol;
use throughline_wire::{Message, Settings, ToolChoice, ToolName, WireName};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

impl Throughline {
    /// Decides everything about a turn and mints its ids. Nothing has happened then: nothing is logged, no model is asked.
    /// What [`Prepared::stored`] says is to be kept before the turn begins, if it is to survive this process.
    ///
    /// # Errors
    /// Only what keeps a turn from beginning: an agent, model, upstream or key that is not there, a tool of the request
    /// whose name is taken.
    pub async fn prepare(&self, request: TurnRequest) -> Result<Prepared, Error> {
        let inner = &self.inner;
        self.sources_have_spoken().await;
        let plan = self.plan();
        let agent = &*self.agent_for(request.agent.as_deref(), &request.user)?;
        let models = plan.models(agent, request.model.as_deref())?;
        let upstreams = plan.clients(&models)?;
        let registry = inner.clients.registry(&inner.toolbox.registry(), &request.user);
        let agent = &*as_requested(agent, &request, &registry);
        let mode = request.mode.unwrap_or(agent.mode);
        let offer = offer::offer(offer::Asked {
            user: &plan.user,
            agent,
            model: models.first(),
            mode,
            protocol: agent.tool_call.protocol,
            registry: &registry,
            prompts: &inner.prompts,
            now_ms: Clock::start().now(),
        })?;
        let limits =
            TurnLimits { iterations_max: agent.tool_call.max_iterations, ..agent.limits.over(plan.limits) };
        let limits =
            shortened_to_fit(limits, models.first().map(|first| self.model_facts(&first.name, &first.model)));
        let mut tools =
            offered(&offer, &registry, agent, |name| inner.clients.client_of(name, &request.user));
        let own_tools = match request.tool_choice {
            ToolChoice::None => Vec::new(),
            _ => request.own_tools,
        };
        let own = clients::own_tools(own_tools, &tools, &registry, limits.own_tool_ms_max)?;
        let (own, mut remarks) = calling::can_be_called(own, offer.protocol);
        let instructions = instructions(&offer, request.instructions, &own, !tools.is_empty());
        tools.extend(own);
        let tool_choice = match request.tool_choice {
            ToolChoice::None => ToolChoice::Auto,
            ToolChoice::Tool(name) if !tools.iter().any(|tool| tool.wire_name == name) => {
                remarks.push(calling::choice_not_offered(&name));
                ToolChoice::Auto
            }
            choice => choice,
        };
        let mut remembered = self.always_holds(request.user.as_deref()).await?;
        remembered.extend(request.remembered);
        // Said once, where a conversation begins.
        if request.history.is_empty() {
            remarks.extend(calling::left_out(&offer));
        }
        let history = match request.conversation_id {
            Some(_) => HistoryOf::Conversation,
            None => HistoryOf::Turn,
        };
        let shelf = Shelf::new(inner.media.clone(), request.user.clone(), None);
        let (mut own_history, of_conversation) = match history {
            HistoryOf::Turn => (request.history, Vec::new()),
            HistoryOf::Conversation => (Vec::new(), request.history),
        };
        shelf.put_away_messages(&mut own_history).await;
        let mut input = request.input.into_parts();
        shelf.put_away_parts(&mut input).await;
        let setup = TurnSetup {
            agent: agent.name.clone(),
            instructions,
            history: own_history,
            upstreams: models,
            mode: mode.name().to_owned(),
            tools,
            tool_choice,
            remarks,
            settings: request.settings.over(&agent.settings),
            limits,
            start: agent.tool_call.start,
            execution: agent.tool_call.execution,
            policy: agent.policy(),
            remembered,
            guard: agent.guard,
            approval: request.approval.unwrap_or_else(|| inner.approval.clone()).into(),
            retry: plan.retry,
            first_step_attempts_max: request.first_step_attempts_max,
            on_interrupted: agent.on_interrupted,
        };
        let mint = |kind: &str| format!("{kind}_{}", Uuid::now_v7().simple());
        let start = TurnStart {
            turn_id: request.turn_id.unwrap_or_else(|| TurnId::new(mint("turn"))),
            conversation_id: request.conversation_id,
            message_id: MessageId::new(mint("msg")),
            // The random part of the id; only retries are spread by it.
            nonce: Uuid::now_v7().as_u64_pair().1,
            input,
        };
        let keep_raw = match (request.keep_raw, inner.keep_raw) {
            (KeepRaw::No, KeepRaw::No) => KeepRaw::No,
            (KeepRaw::Yes, _) | (_, KeepRaw::Yes) => KeepRaw::Yes,
        };
        let read_as = match keep_raw {
            KeepRaw::No => Vec::new(),
            KeepRaw::Yes => upstreams.iter().map(|upstream| upstream.read_as()).collect(),
        };
        let stored = StoredTurn {
            v: STORED_TURN,
            start,
            setup,
            history,
            protocol: offer.protocol.map(|_| agent.tool_call.protocol),
            results: agent.tool_call.results,
            user: request.user,
            keep_raw,
            trace_parent: request.trace_parent,
            read_as,
        };
        Ok(Prepared { stored, history: of_conversation, upstreams })
    }

    /// Begins a prepared turn. It runs in a task of its own, on the tokio runtime of the caller.
    ///
    /// # Errors
    /// The log refuses it.
    pub async fn begin(&self, prepared: Prepared, hooks: TurnHooks) -> Result<Turn, Error> {
        let Prepared { stored, history, upstreams } = prepared;
        let upstreams = upstreams.into_iter().map(Some).collect();
        // The turn exists in the log before anyone can follow it.
        let claim = self.inner.log.begin(stored.turn_id().as_str()).await?;
        self.run(stored, history, upstreams, claim, Origin::New, hooks).await
    }

    /// Goes on with a turn whose process is gone. It belongs to this process from now on: whoever else still writes it is
    /// fenced off. What was in flight is settled truthfully, then the turn goes on or ends as its agent's `on_interrupted`
    /// says. `history` is what the conversation held before the turn; it counts if the stored turn does not have its own.
    ///
    /// Upstreams and tools are those of today, by name. One that is gone is told in the turn, as any other failure. A turn
    /// that has ended already is read to its end, and the hooks are told.
    ///
    /// # Errors
    /// The log cannot be read or written; the stored turn is a later release's.
    // R: S3, E3
    pub async fn resume(
        &self,
        stored: StoredTurn,
        history: Vec<Message>,
        hooks: TurnHooks,
    ) -> Result<Turn, Error> {
        if stored.v > STORED_TURN {
            return Err(Error::LaterRelease { turn: stored.turn_id().clone(), version: stored.v });
        }
        self.sources_have_spoken().await;
        let plan = self.plan();
        let client = |choice: &UpstreamChoice| plan.upstreams.get(&choice.name).cloned();
        let upstreams = stored.setup.upstreams.iter().map(client).collect();
        let turn = stored.turn_id().as_str();
        let claim = self.inner.log.claim(turn).await?;
        let (events, beside) = driver::read(&*self.inner.log, turn).await?;
        self.run(stored, history, upstreams, claim, Origin::Log { events, beside }, hooks).await
    }

    async fn run(
        &self,
        stored: StoredTurn,
        history: Vec<Message>,
        upstreams: Vec<Option<Arc<UpstreamClient>>>,
        claim: Claim,
        origin: Origin,
        hooks: TurnHooks,
    ) -> Result<Turn, Error> {
        let inner = &self.inner;
        let clock = Clock::start();
        let calls = stored.calls()?;
        let setup = stored.setup_with(history);
        let StoredTurn { start, user, keep_raw, trace_parent, .. } = stored;
        let id = start.turn_id.clone();
        let facts = TurnFacts {
            turn_id: id.clone(),
            conversation_id: start.conversation_id.clone(),
            message_id: start.message_id.clone(),
            user: user.clone(),
            agent: setup.agent.clone(),
            mode: setup.mode.clone(),
            transfer: upstreams.iter().flatten().next().map(|client| client.upstream().transfer),
            trace_parent,
            keep_raw,
        };
        let (sender, commands) = mpsc::channel(COMMANDS_MAX);
        let shelf = Shelf::new(inner.media.clone(), user.clone(), Some(id.clone()));
        let log_wait = LogWait::default();
        let (over, abandoned) = (CancellationToken::new(), CancellationToken::new());
        let mailbox = Mailbox::default();
        let messages_max = setup.limits.messages_queued_max as usize;
        let log = inner.log.clone();
        let tail: Box<dyn Tail> = log.tail(id.as_str(), 0).await?;
        let world = World {
            clock,
            log: log.clone(),
            claim,
            upstreams,
            calls,
            registry: {
                // As it is when a call starts: a tool that has been changed since is noticed there. R: A3
                let (toolbox, clients, user) = (inner.toolbox.clone(), inner.clients.clone(), user.clone());
                Arc::new(move || clients.registry(&toolbox.registry(), &user))
            },
            executor: inner.executor.clone(),
            approval_handler: inner.approval_handler.clone(),
            keep: self.keeper(clock, user.as_deref(), hooks.kept),
            commands,
            mailbox: mailbox.clone(),
            shelf: shelf.clone(),
            log_wait: log_wait.clone(),
            offers: Offers::new(inner.clients.clone(), id.clone(), user, sender.clone()),
            abandoned: abandoned.clone(),
            observer: driver::Watched::new(inner.observer.clone(), facts),
        };
        let ended = over.clone().drop_guard();
        let at_end = hooks.at_end;
        let turn_id = id.clone();
        tokio::spawn(async move {
            // Whatever happens in here, whoever follows the turn is told that it is over.
            let _ended = ended;
            let ended = driver::drive(setup, start, origin, world).await;
            at_end(TurnEnded { turn_id, ..ended });
        });
        let control =
            TurnControl { commands: sender, over, abandoned, mailbox, messages_max, shelf, log_wait };
        Ok(Turn::new(id, log, tail, control))
    }
}

/// The agent as far as the request wants it. Of a tool of its own and one of the agent's that have the same name on the wire
/// the request's is offered: it is the one that whoever asks knows of.
fn as_requested<'a>(agent: &'a Agent, request: &TurnRequest, registry: &Registry) -> Cow<'a, Agent> {
    let mut agent = Cow::Borrowed(agent);
    if request.persona == Persona::BareModel {
        let bare = agent.to_mut();
        bare.prompt = None;
        bare.settings = Settings::default();
        bare.tool_call.tools = Toggle::Off;
    }
    if request.tools == Toggle::Off || request.tool_choice == ToolChoice::None {
        agent.to_mut().tool_call.tools = Toggle::Off;
    }
    for tool in &request.own_tools {
        if let Some(same) = registry.by_wire_name(&WireName::new(tool.name.as_str())) {
            let tools = &mut agent.to_mut().tool_call;
            tools.toggles = std::mem::take(&mut tools.toggles).set(same.spec().name.as_str(), Toggle::Off);
        }
    }
    agent
}

/// The agent's prompt first, then what the request says, then the request's own tools where they travel as text.
fn instructions(
    offer: &Offer,
    of_request: Option<String>,
    own: &[OfferedTool],
    guided: bool,
) -> Option<String> {
    let mut parts = Vec::from_iter(offer.instructions());
    parts.extend(of_request.filter(|text| !text.trim().is_empty()));
    if let Some(protocol) = offer.protocol.filter(|_| !own.is_empty()) {
        parts.push(as_text(protocol, own, guided));
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn as_text(protocol: &dyn TextProtocol, own: &[OfferedTool], guided: bool) -> String {
    let definitions: Vec<_> = own.iter().map(|tool| tool.definition.clone()).collect();
    let definitions = protocol.definitions(&definitions);
    if guided { definitions } else { format!("{}\n\n{definitions}", protocol.guide().trim_end()) }
}

/// The offered tools as the machine needs them.
fn offered(
    offer: &Offer,
    registry: &Registry,
    agent: &Agent,
    client_of: impl Fn(&ToolName) -> Option<String>,
) -> Vec<OfferedTool> {
    if agent.tool_call.tools == Toggle::Off {
        return Vec::new();
    }
    let mut offered = registry.offered_with(&agent.tool_call.toggles, client_of);
    offered.retain(|tool| offer.offers(&tool.name));
    for tool in &mut offered {
        // A tool that sets no limit of its own has the default one; the agent's setting replaces it.
        if u128::from(tool.timeout_ms) == TOOL_TIMEOUT_DEFAULT.as_millis() {
            tool.timeout_ms = agent.tool_call.timeout_ms;
        }
    }
    offered
}

/// How much an old result may keep once the history was too long: a small model gets less of it. A token is about four bytes, and a
/// sixty-fourth of what the model reads leaves room for all that a turn can have.
fn shortened_to_fit(limits: TurnLimits, facts: Option<ModelFacts>) -> TurnLimits {
    const BYTES_PER_TOKEN: u64 = 4;
    const RESULTS: u64 = 64;
    let context = facts.and_then(|facts| facts.context_tokens);
    let fits = context.map(|tokens| tokens.saturating_mul(BYTES_PER_TOKEN) / RESULTS);
    let fits = fits.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
    TurnLimits { shortened_output_bytes_max: limits.shortened_output_bytes_max.min(fits), ..limits }
}
