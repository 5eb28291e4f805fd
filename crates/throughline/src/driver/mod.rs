//! Performs one turn: gives the machine its inputs one at a time, appends its events, and performs its
//! actions once the log has the events.
//!
//! Decides nothing. Every rule belongs to the machine or the outbox; this module has only sockets, tasks and
//! timers.

mod append;
mod approval_handler;
mod calls;
mod commands;
mod decisions;
mod elicitation;
mod model;
mod receipts;
mod request_hooks;
mod timers;

pub(crate) use append::read_turn;
pub(crate) use approval_handler::ApprovalHandler;

use crate::clients::{CallOffer, IncomingCall, TurnClientTool, TurnClients};
use crate::clock::TurnClock;
use crate::media::MediaOffloader;
use crate::observe::{ModelCallFacts, ObservedTurn};
use crate::turn::{AppendLag, SteeringQueue, TurnCommand, TurnResult};
use crate::upstream::UpstreamClient;
use append::{AppendPace, LogAppender};
use approval_handler::ApprovalTasks;
use calls::RunningTools;
use decisions::PendingDecisions;
use elicitation::Elicitations;
use futures_util::FutureExt;
use model::ModelCall;
use receipts::LogReceipts;
use request_hooks::RequestHooks;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use throughline_engine::{
    ArgumentValidation, CallOfferKind, Event, EventKind, FailureKind, Outbox, RememberedDecision,
    StepProviderState, TimerId, Turn, TurnAction, TurnId, TurnInput, TurnOutput, TurnSetup, TurnStart,
    TurnWait, UpstreamFailure,
};
use throughline_store::{Log, LogError, TurnClaim};
use throughline_store::{SafetyRule, hit_failpoint};
use throughline_tools::{SourceHook, ToolExecutor, ToolRegistry};
use throughline_wire::text_calls::CallFormat;
use throughline_wire::{CallArguments, CallOutcome, NotStarted, WireName};
use timers::{TimerQueue, TimerSleep};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Pause between two checks for a silent model while the log lags, in milliseconds.
const UNREAD_MS: i64 = 100;

/// Starting point of a driver.
#[derive(Debug)]
pub(crate) enum TurnOrigin {
    /// A new turn.
    New,
    /// Continues after the events in the log, in place of a process that has ended.
    Resumed { events: Vec<Event>, provider_states: Vec<StepProviderState> },
}

/// Returns the current tools, which may change while a turn runs.
pub(crate) type RegistryProvider = Arc<dyn Fn() -> Arc<ToolRegistry> + Send + Sync>;

/// Receives each answer that applies beyond its call, once the log has it. May block its thread.
pub(crate) type ApprovalSink = Arc<dyn Fn(RememberedDecision) + Send + Sync>;

/// Dependencies of a turn.
pub(crate) struct DriverContext {
    pub clock: TurnClock,
    pub log: Arc<dyn Log>,
    /// The claim to write the turn.
    pub claim: TurnClaim,
    /// Clients by position in [`TurnSetup::upstreams`]; `None` = the configuration no longer has that
    /// upstream.
    pub upstreams: Vec<Option<Arc<UpstreamClient>>>,
    /// Transport of tool calls. The machine does not know it.
    pub call_format: CallFormat,
    pub registry: RegistryProvider,
    pub executor: ToolExecutor,
    pub approval_handler: Option<ApprovalHandler>,
    pub approval_sink: ApprovalSink,
    pub commands: mpsc::Receiver<Box<TurnCommand>>,
    /// Messages that the user sends during the turn.
    pub steering_queue: SteeringQueue,
    /// The effects of sources on requests.
    pub hooks: Vec<Arc<dyn SourceHook>>,
    /// Stores and loads content that is too large for the log.
    pub offloader: MediaOffloader,
    pub append_lag: AppendLag,
    /// The clients that run tools of this turn.
    pub clients: TurnClients,
    /// The turn's handle was dropped: the turn must stop.
    pub abandoned: CancellationToken,
    /// Publishes the person or client that the turn waits for.
    pub wait: watch::Sender<Option<TurnWait>>,
    pub observer: ObservedTurn,
    /// Call with which the turn begins, instead of a model call.
    pub first_call: Option<(WireName, CallArguments)>,
}

/// Drives a turn to its end and returns its result. A panic anywhere, or a log that refuses, ends the turn as
/// interrupted: the log is the truth.
pub(crate) async fn drive(
    setup: TurnSetup,
    start: TurnStart,
    origin: TurnOrigin,
    context: DriverContext,
) -> TurnResult {
    let (clock, log, spec) = (context.clock, context.log.clone(), Arc::new((setup, start)));
    let run = TurnDriver::run(spec.clone(), origin, context);
    match AssertUnwindSafe(run).catch_unwind().await {
        Ok(Ok(machine)) => summarize(&machine),
        // Another owner writes this turn now; it will end it.
        Ok(Err(LogError::Fenced { .. })) => TurnResult::default(),
        // A lost store cannot record its own loss; readers of the turn see that its driver has stopped.
        Ok(Err(_)) | Err(_) => append::end_as_interrupted(&*log, &spec, clock)
            .await
            .map_or_else(|_| TurnResult::default(), |machine| summarize(&machine)),
    }
}

fn summarize(machine: &Turn) -> TurnResult {
    TurnResult {
        turn_id: TurnId::default(),
        status: machine.status(),
        added_messages: machine.history().unwrap_or_default(),
        text: machine.text(),
        usage: machine.usage(),
        first_content_ms: machine.waterfall().first_content_ms(),
        writing_ms: machine.waterfall().writing_ms(),
        ended_at: machine.last_event_at(),
    }
}

struct TurnDriver {
    machine: Turn,
    outbox: Outbox,
    out: TurnOutput,
    /// The clock of the log: never before its last event.
    clock: TurnClock,
    /// The clock of the system, by which an upstream names times.
    system_clock: TurnClock,
    model: ModelCall,
    upstreams: Vec<Option<Arc<UpstreamClient>>>,
    registry: RegistryProvider,
    tools: RunningTools,
    timers: TimerQueue,
    approval_tasks: ApprovalTasks,
    elicitations: Elicitations,
    decisions: PendingDecisions,
    receipts: LogReceipts,
    steering_queue: SteeringQueue,
    clients: TurnClients,
    /// Checks that wait until a client reconnects.
    held_checks: Vec<TurnAction>,
    observer: ObservedTurn,
    first_call: Option<(WireName, CallArguments)>,
}

/// State of the command channel: some senders left, or all dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SenderState {
    Connected,
    Disconnected,
}

impl TurnDriver {
    async fn run(
        spec: Arc<(TurnSetup, TurnStart)>,
        origin: TurnOrigin,
        context: DriverContext,
    ) -> Result<Turn, LogError> {
        let (setup, start) = &*spec;
        let DriverContext {
            clock,
            log,
            claim,
            upstreams,
            call_format,
            registry,
            executor,
            approval_handler,
            approval_sink,
            ..
        } = context;
        let DriverContext {
            mut commands,
            steering_queue,
            offloader,
            hooks,
            append_lag,
            clients,
            abandoned,
            wait,
            observer,
            first_call,
            ..
        } = context;
        let (logged, provider_states) = match origin {
            TurnOrigin::New => Default::default(),
            TurnOrigin::Resumed { events, provider_states } => (events, provider_states),
        };
        let mut appender = LogAppender::new(log, &start.turn_id, claim.epoch, &logged, append_lag);
        let tools =
            RunningTools::new(&start.turn_id, &setup.tools, executor, &setup.limits, offloader.clone());
        let mut out = TurnOutput::default();
        let mut machine = Turn::restore_shared(spec.clone(), &logged, &provider_states);
        let (system_clock, clock) = (clock, clock.no_earlier_than(machine.last_event_at()));
        machine.resume(claim.epoch.0, clock.now(), &mut out);
        let mut driver = TurnDriver {
            machine,
            outbox: Outbox::new(),
            out,
            clock,
            system_clock,
            model: ModelCall::new(call_format, offloader, RequestHooks::new(hooks)),
            upstreams,
            registry,
            tools,
            timers: TimerQueue::default(),
            approval_tasks: ApprovalTasks::new(approval_handler),
            elicitations: Elicitations::default(),
            decisions: PendingDecisions::default(),
            receipts: LogReceipts::default(),
            steering_queue,
            clients,
            held_checks: Vec::new(),
            observer,
            first_call,
        };
        driver.observer.resumed(&logged);
        driver.replay(&logged);
        drop((logged, provider_states));
        driver.flush_initial();

        let mut sink_tasks = JoinSet::new();
        let mut sender_state = SenderState::Connected;
        let mut stop_state = StopState::Running;
        // Both are looked at for every token: they are made once.
        let mut alarm = TimerSleep::new();
        let mut abandoned = pin!(abandoned.cancelled());
        loop {
            if !appender.is_busy()
                && let Some(append) = driver.outbox.next_append()
            {
                // Permanent approvals are saved before the end is visible, so that the next turn has them.
                while driver.machine.is_over() && sink_tasks.join_next().await.is_some() {}
                appender.start(append);
            }
            if driver.machine.is_over() && driver.outbox.is_empty() && !appender.is_busy() {
                // Every call has an outcome once the turn is over.
                sink_tasks.join_all().await;
                return Ok(driver.machine);
            }
            // A wait is published once the log has the events that it follows from; its end immediately.
            let waits_for = driver.machine.waits_for();
            if waits_for.is_none() || (driver.outbox.is_empty() && !appender.is_busy()) {
                wait.send_if_modified(|reported| std::mem::replace(reported, waits_for) != waits_for);
            }
            let next_timer = driver.timers.next();
            tokio::select! {
                // Priority: first events promised to viewers, then people, then tools. The model can wait,
                // and does while the log lags.
                biased;
                acked = appender.acknowledged() => {
                    let pace = acked?;
                    let released = driver.outbox.acknowledge();
                    driver.observe(&released.events);
                    for answer in remembered_answers(&released.events) {
                        let approval_sink = approval_sink.clone();
                        sink_tasks.spawn_blocking(move || approval_sink(answer));
                    }
                    driver.perform_all(released.actions);
                    for input in driver.model.take_held() {
                        driver.feed(input);
                    }
                    // A notice of a slow log may be slow itself.
                    let is_news = released.events.iter().any(|event| !matches!(event.kind, EventKind::Waiting { .. }));
                    if let (AppendPace::Slow(elapsed), true) = (pace, is_news) {
                        let ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
                        driver.feed(TurnInput::LogDelayed { ms });
                    }
                }
                () = &mut abandoned, if stop_state == StopState::Running => {
                    stop_state = StopState::Stopped;
                    driver.feed(TurnInput::Cancel);
                }
                command = commands.recv(), if sender_state == SenderState::Connected => match command {
                    Some(command) => driver.handle_command(*command),
                    None => sender_state = SenderState::Disconnected,
                },
                input = driver.approval_tasks.next_answer() => driver.feed(input),
                input = driver.tools.next() => driver.feed(input),
                () = driver.clients.returned(), if !driver.held_checks.is_empty() => {
                    let held = std::mem::take(&mut driver.held_checks);
                    driver.perform_all(held);
                }
                () = alarm.wait_until(driver.clock, next_timer) => {
                    let now = driver.clock.now();
                    for id in driver.timers.take_due(now) {
                        if let TimerId::ModelSilence { .. } = id {
                            // What has come is read before the model is called silent; what is unread or held back
                            // waits for the log.
                            let is_full = driver.outbox.is_full();
                            let item = if is_full { None } else { driver.model.next().now_or_never() };
                            let has_come = item.is_some();
                            if let Some(item) = item {
                                for input in driver.model.next_inputs(item, appender.state()) {
                                    driver.feed(input);
                                }
                            }
                            if is_full || has_come || driver.model.is_holding() {
                                driver.timers.set(id, now + UNREAD_MS);
                                continue;
                            }
                        }
                        driver.feed(TurnInput::Timer { id });
                    }
                }
                // While the outbox is full the upstream is not read.
                item = driver.model.next(), if !driver.outbox.is_full() => {
                    for input in driver.model.next_inputs(item, appender.state()) {
                        driver.feed(input);
                    }
                }
            }
        }
    }

    /// Replays events that the log has from before this process: they are not published again, but open
    /// questions become known.
    fn replay(&mut self, events: &[Event]) {
        self.approval_tasks.replay(events);
        self.elicitations.observe(events);
        if let Some(last) = events.last() {
            self.receipts.advance(last.seq);
        }
    }

    /// Publishes events that the log has.
    fn observe(&mut self, events: &[Event]) {
        self.observer.logged(events);
        self.approval_tasks.observe(events);
        self.elicitations.observe(events);
        self.steering_queue.observe(events);
        self.clients.observe(events);
        if let Some(last) = events.last() {
            self.receipts.advance(last.seq);
        }
        for input in self.decisions.observe(events) {
            self.feed(input);
        }
    }

    /// Feeds one input, and the inputs that follow from it immediately.
    fn feed(&mut self, input: TurnInput) {
        let mut next = Some(input);
        // Allocates nothing as long as nothing follows, as for a token.
        let mut further = VecDeque::new();
        while let Some(input) = next {
            self.machine.apply(input, self.clock.now(), &mut self.out);
            if SafetyRule::IntentFirst.is_disabled() {
                further.extend(self.start_tools_early());
            }
            further.extend(self.outbox.push(&mut self.out));
            for action in self.outbox.take_ready() {
                further.extend(self.perform(action));
            }
            next = further.pop_front();
        }
    }

    /// Starts tools without an intent, for a test that shows the consequences.
    fn start_tools_early(&mut self) -> Vec<TurnInput> {
        let actions = std::mem::take(&mut self.out.actions);
        let is_start = |action: &TurnAction| matches!(action, TurnAction::StartTool { .. });
        let (starts, others) = actions.into_iter().partition(is_start);
        self.out.actions = others;
        let starts: Vec<TurnAction> = starts;
        starts.into_iter().filter_map(|start| self.perform(start)).collect()
    }

    /// Events and actions that the machine yielded at its start.
    fn flush_initial(&mut self) {
        for input in self.outbox.push(&mut self.out) {
            self.feed(input);
        }
        let actions = self.outbox.take_ready();
        self.perform_all(actions);
    }

    fn perform_all(&mut self, actions: Vec<TurnAction>) {
        for action in actions {
            if let Some(input) = self.perform(action) {
                self.feed(input);
            }
        }
    }

    /// Performs an action or starts to. Returns the result if it is available immediately.
    fn perform(&mut self, action: TurnAction) -> Option<TurnInput> {
        match action {
            TurnAction::CallModel { step, attempt, upstream, request } => {
                hit_failpoint("model_call");
                if let Some((name, arguments)) = self.first_call.clone().filter(|_| step == 1) {
                    self.model.start_with_call(step, attempt, name, arguments);
                    return None;
                }
                let Some(Some(client)) = self.upstreams.get(upstream) else {
                    let failure = UpstreamFailure {
                        kind: FailureKind::Unsendable,
                        status: None,
                        message:
                            "this upstream was removed from the configuration; restore it, or retry with another model"
                                .to_owned(),
                        retry_after_ms: None,
                    };
                    return Some(TurnInput::ModelFailed { step, attempt, failure, time_left_ms: None });
                };
                let upstream = client.upstream();
                let watch = self.observer.call(|| ModelCallFacts {
                    step,
                    attempt,
                    upstream: upstream.name.clone(),
                    model: request.model.clone(),
                    dialect: upstream.dialect,
                });
                self.model.start(step, attempt, client.clone(), request, self.system_clock, watch);
                None
            }
            TurnAction::AbortModel { step, attempt } => {
                self.model.abort(step, attempt);
                None
            }
            TurnAction::Validate { call, version, tool, arguments, fingerprint, is_edit } => {
                let checked = match self.clients.tool(&tool) {
                    None => (self.registry)().validate(&tool, &arguments),
                    Some(TurnClientTool::Declared(_, entry)) => {
                        let now = entry.fingerprint().to_string();
                        if fingerprint.is_some_and(|decided| decided != now) {
                            return Some(TurnInput::ToolRedefined { tool, fingerprint: now, start: None });
                        }
                        entry.validate(&arguments)
                    }
                    Some(TurnClientTool::Away { within_ms }) if !is_edit => {
                        let until = self.clock.now().saturating_add(within_ms);
                        let held = TurnInput::CheckHeld { call: call.clone(), version, until };
                        let is_other = |held: &TurnAction| !matches!(held, TurnAction::Validate { call: of, .. } if *of == call);
                        self.held_checks.retain(is_other);
                        let check =
                            TurnAction::Validate { call, version, tool, arguments, fingerprint, is_edit };
                        self.held_checks.push(check);
                        return Some(held);
                    }
                    Some(TurnClientTool::Withdrawn | TurnClientTool::Away { .. }) => {
                        let validation = ArgumentValidation::NoViewer;
                        return Some(TurnInput::Validated { call, version, validation });
                    }
                };
                let verdict = match checked {
                    Ok(()) => ArgumentValidation::Valid,
                    Err(error) => ArgumentValidation::Invalid { message: error.to_string() },
                };
                Some(TurnInput::Validated { call, version, validation: verdict })
            }
            TurnAction::StartTool { call, attempt, tool, arguments, fingerprint } => {
                let registry = (self.registry)();
                // A tool that was removed has no other definition: running it reports that.
                let now = registry.get(&tool).map(|entry| entry.fingerprint().to_string());
                if let Some(now) = now.filter(|now| *now != fingerprint) {
                    return Some(TurnInput::ToolRedefined {
                        tool,
                        fingerprint: now,
                        start: Some((call, attempt)),
                    });
                }
                self.tools.start(registry, call, attempt, tool, arguments);
                None
            }
            TurnAction::OfferCall { call, attempt, client_id, tool, arguments, until, fingerprint, kind } => {
                let turn = self.clients.turn().clone();
                let values = arguments.value.clone();
                let offer = IncomingCall { turn, call, attempt, tool, arguments: values, until };
                match kind {
                    CallOfferKind::First => self.offer_call(&client_id, offer, &arguments, &fingerprint),
                    CallOfferKind::Repeated => {
                        self.clients.offer_call_again((&client_id, offer), fingerprint);
                        None
                    }
                }
            }
            TurnAction::AnswerTool { call: _, attempt: _, question_id, answer } => {
                self.tools.answer(question_id, answer);
                None
            }
            TurnAction::CancelTool { call, attempt } => {
                self.tools.cancel(&call, attempt);
                self.clients.cancel_call(&call);
                None
            }
            TurnAction::SetTimer { id, at } => {
                self.timers.set(id, at);
                None
            }
        }
    }

    /// Offers a call to its client, unless its tool has changed since the decision.
    fn offer_call(
        &self,
        client_id: &str,
        offer: IncomingCall,
        arguments: &CallArguments,
        decided: &str,
    ) -> Option<TurnInput> {
        loop {
            let mut spec = None;
            if let Some(offered) = self.clients.tool(&offer.tool) {
                let (call, attempt) = (offer.call.clone(), offer.attempt);
                // Withdrawn is not redefined, though another client or a tool of ours may have the name.
                let TurnClientTool::Declared(declared, entry) = offered else {
                    let outcome = CallOutcome::NotStarted(NotStarted::NoViewer);
                    return Some(TurnInput::ToolEnded { call, attempt, outcome });
                };
                let fingerprint = entry.fingerprint().to_string();
                // The arguments may have been checked for a definition that was there in between, or not at all.
                if fingerprint != decided || entry.validate(arguments).is_err() {
                    let (tool, start) = (offer.tool, Some((call, attempt)));
                    return Some(TurnInput::ToolRedefined { tool, fingerprint, start });
                }
                spec = Some(declared);
            }
            match self.clients.offer_call((client_id, offer.clone()), spec) {
                CallOffer::Made => return None,
                // In between. It is looked at again.
                CallOffer::Redefined => {}
            }
        }
    }
}

fn remembered_answers(events: &[Event]) -> impl Iterator<Item = RememberedDecision> + '_ {
    events.iter().filter_map(|event| match &event.kind {
        EventKind::ApprovalResolved { remembered: Some(answer), approval_id, .. } => {
            Some(RememberedDecision { question: Some(approval_id.clone()), ..(**answer).clone() })
        }
        _ => None,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StopState {
    Running,
    Stopped,
}
