//! Start of a turn, in two halves: [`Throughline::prepare`] decides everything, [`Throughline::start_prepared`] does it.
//! [`Throughline::resume`] continues a turn of another process with the second half alone.

use super::answer;
use super::append_lag::AppendLag;
use super::command::CommandSender;
use super::handle::{TurnControl, TurnHandle};
use super::hooks::{TurnHooks, TurnResult};
use super::request::{PersonaMode, TurnRequest};
use super::steering_queue::SteeringQueue;
use super::stored::{HistorySource, PreparedTurn, STORED_TURN_VERSION, StoredTurn};
use crate::agent::tool_selection::{self, ToolSelection};
use crate::agent::{Agent, tool_transport};
use crate::app::Throughline;
use crate::clients::{self, TurnClients};
use crate::clock::TurnClock;
use crate::driver::{self, DriverContext, RegistryProvider, TurnOrigin};
use crate::error::Error;
use crate::media::MediaOffloader;
use crate::observe::{ObservedTurn, TurnFacts};
use crate::upstream::UpstreamClient;
use crate::upstream::models::ModelFacts;
use std::borrow::Cow;
use std::sync::Arc;
use throughline_engine::{
    MessageId, OfferedTool, TurnId, TurnLimits, TurnSetup, TurnStart, UpstreamChoice, conversation_key,
};
use throughline_store::{LogTail, TurnClaim};
use throughline_tools::{TOOL_TIMEOUT_DEFAULT, ToolRegistry, ToolToggle};
use throughline_wire::text_calls::TextProtocol;
use throughline_wire::{CallArguments, Message, ModelSettings, ToolChoice, ToolName, WireName};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

impl Throughline {
    /// Starts a turn. It runs in a separate task, on the tokio runtime of the caller.
    ///
    /// # Errors
    /// As in [`ask`](Self::ask).
    pub async fn start_turn(&self, request: impl Into<TurnRequest>) -> Result<TurnHandle, Error> {
        let prepared = self.prepare(request.into()).await?;
        self.start_prepared(prepared, TurnHooks::default()).await
    }

    /// Decides everything about a turn and assigns its ids, without side effects: nothing is logged and no model is
    /// called. To survive this process, store [`PreparedTurn::stored`] before the turn starts.
    ///
    /// # Errors
    /// Only what keeps a turn from starting: an unknown agent, model or upstream, a missing key, a tool of the
    /// request whose name is taken.
    pub async fn prepare(&self, mut request: TurnRequest) -> Result<PreparedTurn, Error> {
        let inner = &self.inner;
        forbid_tools_on_demand(&mut request);
        self.wait_for_sources().await;
        let plan = self.plan();
        let agent = &*self.agent_for(request.agent.as_deref(), &request.user)?;
        let models = plan.models(agent, request.model.as_deref())?;
        let upstreams = plan.clients(&models)?;
        let registry = inner.clients.registry(&inner.toolbox.registry(), &request.user);
        let agent = &*apply_request(agent, &request, &registry);
        let mode = request.mode.unwrap_or(agent.mode);
        let selection = tool_selection::select_tools(tool_selection::SelectionInput {
            user: &plan.user,
            agent,
            model: models.first(),
            mode,
            protocol: agent.tool_call.protocol,
            registry: &registry,
            prompts: &inner.prompts,
            now_ms: TurnClock::start().now(),
        })?;
        let limits =
            TurnLimits { iterations_max: agent.tool_call.max_iterations, ..agent.limits.over(plan.limits) };
        let limits = fit_limits_to_context(
            limits,
            models.first().map(|first| self.model_facts(&first.name, &first.model)),
        );
        let mut tools =
            offered_tools(&selection, &registry, agent, |name| inner.clients.client_of(name, &request.user));
        let request_tools = match request.tool_choice {
            ToolChoice::None => Vec::new(),
            _ => request.request_tools,
        };
        let declared_tools =
            clients::request_tools(request_tools, &tools, &registry, limits.own_tool_ms_max)?;
        let (callable, mut remarks) = tool_transport::callable_tools(declared_tools, selection.protocol);
        let answer_form = request.answer_schema.as_ref().map(answer::instructions);
        let asked = [request.instructions, answer_form].into_iter().flatten();
        let instructions = join_instructions(&selection, asked, &callable, !tools.is_empty());
        tools.extend(callable);
        let tool_choice = match request.tool_choice {
            ToolChoice::None => ToolChoice::Auto,
            ToolChoice::Tool(name) if !tools.iter().any(|tool| tool.wire_name == name) => {
                remarks.push(tool_transport::tool_choice_remark(&name));
                ToolChoice::Auto
            }
            choice => choice,
        };
        let mut remembered = self.permanent_approvals(request.user.as_deref()).await?;
        remembered.extend(request.remembered);
        // Logged once, where a conversation begins.
        if request.history.is_empty() {
            remarks.extend(tool_transport::withheld_remarks(&selection));
        }
        let history = match request.conversation_id {
            Some(_) => HistorySource::Conversation,
            None => HistorySource::Turn,
        };
        let offloader = MediaOffloader::new(inner.media.clone(), request.user.clone(), None);
        let (mut turn_history, conversation_history) = match history {
            HistorySource::Turn => (request.history, Vec::new()),
            HistorySource::Conversation => (Vec::new(), request.history),
        };
        offloader.offload_messages(&mut turn_history).await;
        let mut input = request.input.into_parts();
        offloader.offload_parts(&mut input).await;
        if let Some(first) = &request.first_call
            && !tools.iter().any(|tool| tool.name == first.tool)
        {
            let (agent, tool) = (agent.name.clone(), first.tool.as_str().to_owned());
            return Err(Error::FirstCallNotOffered { agent, tool });
        }
        let past = if turn_history.is_empty() { &conversation_history } else { &turn_history };
        let history_too_long = match (upstreams.first(), models.first()) {
            (Some(client), Some(choice)) => conversation_key(request.conversation_id.as_ref(), past)
                .is_some_and(|key| client.has_refused_as_too_long(&choice.model, &key, past)),
            _ => false,
        };
        let setup = TurnSetup {
            agent: agent.name.clone(),
            instructions,
            history: turn_history,
            history_too_long,
            upstreams: models,
            mode: mode.name().to_owned(),
            tools,
            tool_choice,
            remarks,
            settings: request.settings.with_defaults(&agent.settings),
            limits,
            start: agent.tool_call.start,
            execution: agent.tool_call.execution,
            policy: agent.policy(),
            text_rules: agent.text_rules.clone(),
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
        let keep_raw = request.keep_raw || inner.keep_raw;
        let recorded = if keep_raw { &upstreams[..] } else { &[] };
        let decode_profiles = recorded.iter().map(|upstream| upstream.decode_profile()).collect();
        let stored = StoredTurn {
            v: STORED_TURN_VERSION,
            start,
            setup,
            history,
            protocol: selection.protocol.map(|_| agent.tool_call.protocol),
            results: agent.tool_call.results,
            user: request.user,
            keep_raw,
            trace_parent: request.trace_parent,
            decode_profiles,
            first_call: request.first_call,
        };
        Ok(PreparedTurn { stored, history: conversation_history, upstreams })
    }

    /// Begins a prepared turn. It runs in a separate task, on the tokio runtime of the caller.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn start_prepared(
        &self,
        prepared: PreparedTurn,
        hooks: TurnHooks,
    ) -> Result<TurnHandle, Error> {
        let PreparedTurn { stored, history, upstreams } = prepared;
        let upstreams = upstreams.into_iter().map(Some).collect();
        // The turn exists in the log before anyone can follow it.
        let claim = self.inner.log.begin(stored.turn_id().as_str()).await?;
        self.spawn_driver(stored, history, upstreams, claim, TurnOrigin::New, hooks).await
    }

    /// Continues a turn whose process has ended. It belongs to this process from now on: any other writer is
    /// fenced off. Calls in flight are settled truthfully, then the turn continues or ends as its agent's
    /// `on_interrupted` sets. `history` is the conversation's history before the turn; it is used if the
    /// stored turn does not contain one.
    ///
    /// Upstreams and tools are looked up by name in the current settings. A missing one is reported in the
    /// turn, as any other failure. A turn that has already ended is read to its end, and the hooks are
    /// called.
    ///
    /// # Errors
    /// The log cannot be read or written; the stored turn is from a later release.
    pub async fn resume(
        &self,
        stored: StoredTurn,
        history: Vec<Message>,
        hooks: TurnHooks,
    ) -> Result<TurnHandle, Error> {
        if stored.v > STORED_TURN_VERSION {
            return Err(Error::LaterRelease { turn: stored.turn_id().clone(), version: stored.v });
        }
        self.wait_for_sources().await;
        let plan = self.plan();
        let client = |choice: &UpstreamChoice| plan.upstreams.get(&choice.name).cloned();
        let upstreams = stored.setup.upstreams.iter().map(client).collect();
        let turn = stored.turn_id().as_str();
        let claim = self.inner.log.claim(turn).await?;
        let (events, provider_states) = driver::read_turn(&*self.inner.log, turn).await?;
        self.spawn_driver(
            stored,
            history,
            upstreams,
            claim,
            TurnOrigin::Resumed { events, provider_states },
            hooks,
        )
        .await
    }

    async fn spawn_driver(
        &self,
        stored: StoredTurn,
        history: Vec<Message>,
        upstreams: Vec<Option<Arc<UpstreamClient>>>,
        claim: TurnClaim,
        origin: TurnOrigin,
        hooks: TurnHooks,
    ) -> Result<TurnHandle, Error> {
        let inner = &self.inner;
        let clock = TurnClock::start();
        let call_format = stored.call_format()?;
        let setup = stored.setup_with_history(history);
        let first_call = stored.first_call.map(|first| {
            let offered = setup.tools.iter().find(|tool| tool.name == first.tool);
            let name = offered.map(|tool| tool.wire_name.clone());
            (
                name.unwrap_or_else(|| WireName::new(first.tool.as_str())),
                CallArguments::from_value(first.arguments),
            )
        });
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
        let (sender, commands) = CommandSender::channel();
        let offloader = MediaOffloader::new(inner.media.clone(), user.clone(), Some(id.clone()));
        let append_lag = AppendLag::default();
        let (finished, abandoned) = (CancellationToken::new(), CancellationToken::new());
        let (wait, waits) = watch::channel(None);
        let steering_queue = SteeringQueue::default();
        let messages_max = setup.limits.messages_queued_max as usize;
        let log = inner.log.clone();
        let tail: Box<dyn LogTail> = log.tail(id.as_str(), 0).await?;
        let is_resumed = matches!(origin, TurnOrigin::Resumed { .. });
        let toolbox = inner.toolbox.clone();
        let base: RegistryProvider = Arc::new(move || toolbox.registry());
        let context = DriverContext {
            clock,
            log: log.clone(),
            claim,
            upstreams,
            call_format,
            registry: {
                // As it is when a call starts: a tool that has been changed since is noticed there.
                let (base, clients, user) = (base.clone(), inner.clients.clone(), user.clone());
                Arc::new(move || clients.registry(&base(), &user))
            },
            executor: inner.executor.clone(),
            approval_handler: inner.approval_handler.clone(),
            approval_sink: self.store_remembered(clock, user.as_deref(), hooks.on_remembered),
            commands,
            hooks: inner.toolbox.hooks(),
            steering_queue: steering_queue.clone(),
            offloader: offloader.clone(),
            append_lag: append_lag.clone(),
            clients: TurnClients::new(
                inner.clients.clone(),
                id.clone(),
                user,
                sender.clone(),
                (&setup.tools, base),
                is_resumed,
            ),
            abandoned: abandoned.clone(),
            wait,
            observer: ObservedTurn::new(inner.observer.clone(), facts),
            first_call,
        };
        let ended = finished.clone().drop_guard();
        let (on_end, record_end) = (hooks.on_end, hooks.record_end);
        let turn_id = id.clone();
        tokio::spawn(async move {
            // Readers of the turn are notified of its end on every path, also after a panic.
            let _ended = ended;
            let ended = driver::drive(setup, start, origin, context).await;
            let ended = TurnResult { turn_id, ..ended };
            if let Some(record_end) = record_end {
                record_end(ended.clone()).await;
            }
            on_end(ended);
        });
        let control = TurnControl {
            commands: sender,
            finished,
            abandoned,
            waits,
            steering_queue,
            messages_max,
            offloader,
            append_lag,
        };
        Ok(TurnHandle::new(id, log, tail, control))
    }
}

/// Marker of VCP in a system prompt: no tools of ours in this turn.
const TOOLS_FORBIDDEN: &str = "[[VCPToolUse=Forbidden]]";

/// Obeys the marker, and takes it out of the instructions. Tools that the request itself declares stay.
fn forbid_tools_on_demand(request: &mut TurnRequest) {
    let Some(text) = request.instructions.as_mut().filter(|text| text.contains(TOOLS_FORBIDDEN)) else {
        return;
    };
    *text = text.replace(TOOLS_FORBIDDEN, "");
    request.tools = ToolToggle::Off;
}

/// The agent as modified by the request. If a request's tool and an agent's tool have the same name on the
/// wire, the request's is offered: the requester expects that one.
fn apply_request<'a>(agent: &'a Agent, request: &TurnRequest, registry: &ToolRegistry) -> Cow<'a, Agent> {
    let mut agent = Cow::Borrowed(agent);
    if request.persona == PersonaMode::BareModel {
        let bare = agent.to_mut();
        bare.prompt = None;
        bare.settings = ModelSettings::default();
        bare.tool_call.tools = ToolToggle::Off;
    }
    if request.tools == ToolToggle::Off || request.tool_choice == ToolChoice::None {
        agent.to_mut().tool_call.tools = ToolToggle::Off;
    }
    for tool in &request.request_tools {
        if let Some(same) = registry.by_wire_name(&WireName::new(tool.name.as_str())) {
            let tools = &mut agent.to_mut().tool_call;
            tools.toggles =
                std::mem::take(&mut tools.toggles).set(same.spec().name.as_str(), ToolToggle::Off);
        }
    }
    agent
}

/// Joins the agent's prompt, the request's instructions, and the request's tools if they travel as text, in
/// this order.
fn join_instructions(
    selection: &ToolSelection,
    request_instructions: impl IntoIterator<Item = String>,
    request_tools: &[OfferedTool],
    guide_included: bool,
) -> Option<String> {
    let mut parts = Vec::from_iter(selection.instructions());
    parts.extend(request_instructions.into_iter().filter(|text| !text.trim().is_empty()));
    if let Some(protocol) = selection.protocol.filter(|_| !request_tools.is_empty()) {
        parts.push(request_tools_text(protocol, request_tools, guide_included));
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn request_tools_text(
    protocol: &dyn TextProtocol,
    request_tools: &[OfferedTool],
    guide_included: bool,
) -> String {
    let definitions: Vec<_> = request_tools.iter().map(|tool| tool.definition.clone()).collect();
    let definitions = protocol.definitions(&definitions);
    if guide_included { definitions } else { format!("{}\n\n{definitions}", protocol.guide().trim_end()) }
}

/// The offered tools as the machine needs them.
fn offered_tools(
    selection: &ToolSelection,
    registry: &ToolRegistry,
    agent: &Agent,
    client_of: impl Fn(&ToolName) -> Option<String>,
) -> Vec<OfferedTool> {
    if agent.tool_call.tools == ToolToggle::Off {
        return Vec::new();
    }
    let mut offered = registry.offered_with(&agent.tool_call.toggles, client_of);
    offered.retain(|tool| selection.is_offered(&tool.name));
    for tool in &mut offered {
        // The agent's setting replaces the default limit, which a tool has if it sets none.
        if u128::from(tool.timeout_ms) == TOOL_TIMEOUT_DEFAULT.as_millis() {
            tool.timeout_ms = agent.tool_call.timeout_ms;
        }
    }
    offered
}

/// Bounds shortened old results by the model's context size. A token is about four bytes, and a sixty-fourth of the
/// context leaves room for all results of a turn.
fn fit_limits_to_context(limits: TurnLimits, facts: Option<ModelFacts>) -> TurnLimits {
    const BYTES_PER_TOKEN: u64 = 4;
    const RESULTS: u64 = 64;
    let context = facts.and_then(|facts| facts.context_tokens);
    let fits = context.map(|tokens| tokens.saturating_mul(BYTES_PER_TOKEN) / RESULTS);
    let fits = fits.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
    TurnLimits { shortened_output_bytes_max: limits.shortened_output_bytes_max.min(fits), ..limits }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small model gets shorter results, a large or unknown one those of the setting; a lower setting holds
    /// for both.
    #[test]
    fn shortened_output_limit_fits_the_model_context() {
        let fitted = |context_tokens, bytes| {
            let limits = TurnLimits { shortened_output_bytes_max: bytes, ..TurnLimits::default() };
            let facts = ModelFacts { context_tokens, ..ModelFacts::default() };
            fit_limits_to_context(limits, Some(facts)).shortened_output_bytes_max
        };
        let default = TurnLimits::default().shortened_output_bytes_max;
        assert_eq!(fitted(Some(8_192), default), 512);
        assert_eq!(fitted(Some(8_192), 100), 100);
        for context in [Some(200_000), Some(u64::MAX), None] {
            assert_eq!(fitted(context, default), default, "{context:?}");
        }
        let unknown = fit_limits_to_context(TurnLimits::default(), None);
        assert_eq!(unknown, TurnLimits::default(), "nothing else changes");
    }
}
