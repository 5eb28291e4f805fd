//! Performs one turn: gives the machine its inputs one at a time, appends its events, and does what it asks for once
//! the log has them.
//!
//! Decides nothing. Every rule is the machine's or the outbox'; here are only sockets, tasks and timers.

mod append;
mod calls;
mod decisions;
mod elicitation;
mod model;
mod outside;
mod questions;
mod receipts;
mod timers;
mod watched;

pub(crate) use append::{LogWait, read};
pub(crate) use questions::ApprovalHandler;
pub(crate) use watched::{CallWatch, RawWatch, Watched};

pub use elicitation::ToolAnswered;

use crate::approval::Answer;
use crate::clients::{ClientAnswered, Offered, Offers};
use crate::clock::Clock;
use crate::decided::{CallCancelled, Decided};
use crate::hooks::TurnEnded;
use crate::media::Shelf;
use crate::said::{Mailbox, TakenBack};
use crate::upstream::UpstreamClient;
use append::{Appender, Pace};
use calls::RunningTools;
use decisions::Decisions;
use elicitation::ToolQuestions;
use futures_util::FutureExt;
use model::ModelCall;
use questions::Questions;
use receipts::Receipts;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use throughline_engine::{
    Action, ApprovalId, Beside, ClientAnswer, Event, EventKind, FailureKind, Input, Out, Outbox, Question,
    QueuedMessage, Remembered, ToolAnswer, Turn, TurnId, TurnSetup, TurnStart, UpstreamFailure,
    UserMessageId, Verdict,
};
use throughline_store::failpoint::{self, Rule};
use throughline_store::{Claim, Log, LogError};
use throughline_tools::{Executor, Registry};
use throughline_wire::CallId;
use throughline_wire::text::CallFormat;
use timers::{Alarm, Timers};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What someone outside wants of a running turn.
#[derive(Debug)]
pub(crate) enum Command {
    Answer {
        question: Question,
        answer: Answer,
        by: String,
    },
    AnswerTool {
        question: ApprovalId,
        answer: ToolAnswer,
        by: String,
        reply: oneshot::Sender<ToolAnswered>,
    },
    Say(QueuedMessage),
    TakeBack {
        id: UserMessageId,
        reply: oneshot::Sender<TakenBack>,
    },
    ClientAnswers {
        call: CallId,
        attempt: Option<u32>,
        answer: ClientAnswer,
        reply: oneshot::Sender<ClientAnswered>,
    },
    Decide {
        question: ApprovalId,
        answer: Answer,
        by: String,
        reply: oneshot::Sender<Decided>,
    },
    Cancel {
        /// `None` = the user wants it.
        why: Option<String>,
    },
    CancelCall {
        call: CallId,
        reply: oneshot::Sender<CallCancelled>,
    },
}

/// Where a turn begins.
#[derive(Debug)]
pub(crate) enum Origin {
    /// At its beginning.
    New,
    /// Behind what the log has of it, in place of a process that is gone.
    Log { events: Vec<Event>, beside: Vec<Beside> },
}

/// Commands that may wait to be taken. One that finds no room waits at its sender.
pub(crate) const COMMANDS_MAX: usize = 64;

/// The tools as they are now. They may change while a turn runs.
pub(crate) type RegistryNow = Arc<dyn Fn() -> Arc<Registry> + Send + Sync>;

/// Gets each answer that holds beyond its call, once the log has it. May block its thread.
pub(crate) type Keep = Arc<dyn Fn(Remembered) + Send + Sync>;

/// Everything that a turn needs of the world.
pub(crate) struct World {
    pub clock: Clock,
    pub log: Arc<dyn Log>,
    /// The right to write the turn.
    pub claim: Claim,
    /// By place in [`TurnSetup::upstreams`]; `None` = there is none of that name any more.
    pub upstreams: Vec<Option<Arc<UpstreamClient>>>,
    /// How calls travel. The machine does not know.
    pub calls: CallFormat,
    pub registry: RegistryNow,
    pub executor: Executor,
    pub approval_handler: Option<ApprovalHandler>,
    pub keep: Keep,
    /// Boxed: a channel makes room for 32 of them at its beginning, for each turn.
    pub commands: mpsc::Receiver<Box<Command>>,
    /// What the user says in mid-turn.
    pub mailbox: Mailbox,
    /// Where what is too large for the log goes, and comes from.
    pub shelf: Shelf,
    pub log_wait: LogWait,
    /// The clients that run tools of this turn.
    pub offers: Offers,
    /// Nobody holds the turn any more: it is to be stopped.
    pub abandoned: CancellationToken,
    pub observer: Watched,
}

/// Drives a turn to its end and tells what came of it. A panic anywhere, and a log that refuses, end the turn as
/// interrupted: what the log holds is what happened.
pub(crate) async fn drive(setup: TurnSetup, start: TurnStart, origin: Origin, world: World) -> TurnEnded {
    let (clock, log, given) = (world.clock, world.log.clone(), Arc::new((setup, start)));
    let run = Driver::run(given.clone(), origin, world);
    match AssertUnwindSafe(run).catch_unwind().await {
        Ok(Ok(machine)) => ended(&machine),
        // Another owner writes this turn now; it will end it.
        Ok(Err(LogError::Fenced { .. })) => TurnEnded::default(),
        // A store that is lost cannot be told that it is lost; who follows the turn sees that its driver is gone.
        Ok(Err(_)) | Err(_) => append::end_as_interrupted(&*log, &given, clock)
            .await
            .map_or_else(|_| TurnEnded::default(), |machine| ended(&machine)),
    }
}

fn ended(machine: &Turn) -> TurnEnded {
    TurnEnded {
        turn_id: TurnId::default(),
        status: machine.status(),
        adds: machine.history().unwrap_or_default(),
        text: machine.text(),
        usage: machine.usage(),
        first_content_ms: machine.waterfall().first_content_ms(),
        writing_ms: machine.waterfall().writing_ms(),
        ended_at: machine.last_at(),
    }
}

struct Driver {
    machine: Turn,
    outbox: Outbox,
    out: Out,
    clock: Clock,
    model: ModelCall,
    upstreams: Vec<Option<Arc<UpstreamClient>>>,
    registry: RegistryNow,
    tools: RunningTools,
    timers: Timers,
    questions: Questions,
    tool_questions: ToolQuestions,
    decisions: Decisions,
    receipts: Receipts,
    mailbox: Mailbox,
    offers: Offers,
    observer: Watched,
}

/// Whether the senders of commands are still there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Senders {
    There,
    Gone,
}

impl Driver {
    async fn run(given: Arc<(TurnSetup, TurnStart)>, origin: Origin, world: World) -> Result<Turn, LogError> {
        let (setup, start) = &*given;
        let World { clock, log, claim, upstreams, calls, registry, executor, approval_handler, keep, .. } =
            world;
        let World { mut commands, mailbox, shelf, log_wait, offers, abandoned, observer, .. } = world;
        let (logged, beside) = match origin {
            Origin::New => Default::default(),
            Origin::Log { events, beside } => (events, beside),
        };
        let mut appender = Appender::new(log, &start.turn_id, claim.epoch, &logged, log_wait);
        let tools = RunningTools::new(&start.turn_id, &setup.tools, executor, &setup.limits, shelf.clone());
        let mut out = Out::default();
        let mut machine = Turn::restore_in(given.clone(), &logged, &beside);
        machine.resume(claim.epoch.0, clock.now(), &mut out);
        let mut driver = Driver {
            machine,
            outbox: Outbox::new(),
            out,
            clock,
            model: ModelCall::new(calls, shelf),
            upstreams,
            registry,
            tools,
            timers: Timers::default(),
            questions: Questions::new(approval_handler),
            tool_questions: ToolQuestions::default(),
            decisions: Decisions::default(),
            receipts: Receipts::default(),
            mailbox,
            offers,
            observer,
        };
        driver.observer.resumed(&logged);
        driver.catch_up(&logged);
        drop((logged, beside));
        driver.collect();

        let mut keeping = JoinSet::new();
        let mut senders = Senders::There;
        let mut stopped = Stopped::No;
        // Both are looked at for every token: they are made once.
        let mut alarm = Alarm::new();
        let mut abandoned = pin!(abandoned.cancelled());
        loop {
            if !appender.is_busy()
                && let Some(append) = driver.outbox.next_append()
            {
                // Whoever has seen the end finds in the next turn what was said in this one: what always holds is kept first.
                while driver.machine.is_over() && keeping.join_next().await.is_some() {}
                appender.begin(append);
            }
            if driver.machine.is_over() && driver.outbox.is_empty() && !appender.is_busy() {
                // Every call has an outcome once the turn is over.
                keeping.join_all().await;
                return Ok(driver.machine);
            }
            let next_timer = driver.timers.next();
            tokio::select! {
                // What has been promised to viewers comes first, then people, then tools; the model can wait, and does
                // when the log is behind.
                biased;
                acknowledged = appender.done() => {
                    let pace = acknowledged?;
                    let released = driver.outbox.acknowledged();
                    driver.look_at(&released.events);
                    for answer in answers_to_keep(&released.events) {
                        let keep = keep.clone();
                        keeping.spawn_blocking(move || keep(answer));
                    }
                    driver.perform_all(released.actions);
                    if let Pace::Slow(took) = pace {
                        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                        driver.feed(Input::LogWasSlow { ms });
                    }
                    for input in driver.model.take_held() {
                        driver.feed(input);
                    }
                }
                () = &mut abandoned, if stopped == Stopped::No => {
                    stopped = Stopped::Yes;
                    driver.feed(Input::Cancel);
                }
                command = commands.recv(), if senders == Senders::There => match command {
                    Some(command) => driver.command(*command),
                    None => senders = Senders::Gone,
                },
                input = driver.questions.answered() => driver.feed(input),
                input = driver.tools.next() => driver.feed(input),
                () = alarm.due(driver.clock, next_timer) => {
                    for id in driver.timers.take_due(driver.clock.now()) {
                        driver.feed(Input::Timer { id });
                    }
                }
                // R: design §3a: while the outbox is full the upstream is not read.
                item = driver.model.next(), if !driver.outbox.is_full() => {
                    for input in driver.model.inputs_of(item, appender.state()) {
                        driver.feed(input);
                    }
                }
            }
        }
    }

    /// The log has had these since before this process: nobody is told of them again, but what is open is known.
    fn catch_up(&mut self, events: &[Event]) {
        self.questions.catch_up(events);
        self.tool_questions.look_at(events);
        if let Some(last) = events.last() {
            self.receipts.logged(last.seq);
        }
    }

    /// The log has these: everybody may act on them.
    fn look_at(&mut self, events: &[Event]) {
        self.observer.logged(events);
        self.questions.look_at(events);
        self.tool_questions.look_at(events);
        self.mailbox.look_at(events);
        self.offers.look_at(events);
        if let Some(last) = events.last() {
            self.receipts.logged(last.seq);
        }
        for input in self.decisions.look_at(events) {
            self.feed(input);
        }
    }

    /// One input, and those that follow from it at once.
    fn feed(&mut self, input: Input) {
        let mut next = Some(input);
        // Allocates nothing as long as nothing follows, as for a token.
        let mut further = VecDeque::new();
        while let Some(input) = next {
            self.machine.apply(input, self.clock.now(), &mut self.out);
            if failpoint::leaves_out(Rule::IntentFirst) {
                further.extend(self.start_tools_at_once());
            }
            further.extend(self.outbox.push(&mut self.out));
            for action in self.outbox.ready() {
                further.extend(self.perform(action));
            }
            next = further.pop_front();
        }
    }

    /// What a test does that wants to see what becomes of tools without an intent.
    fn start_tools_at_once(&mut self) -> Vec<Input> {
        let actions = std::mem::take(&mut self.out.actions);
        let is_start = |action: &Action| matches!(action, Action::StartTool { .. });
        let (starts, others) = actions.into_iter().partition(is_start);
        self.out.actions = others;
        let starts: Vec<Action> = starts;
        starts.into_iter().filter_map(|start| self.perform(start)).collect()
    }

    /// What the machine yielded at its beginning.
    fn collect(&mut self) {
        for input in self.outbox.push(&mut self.out) {
            self.feed(input);
        }
        let actions = self.outbox.ready();
        self.perform_all(actions);
    }

    fn perform_all(&mut self, actions: Vec<Action>) {
        for action in actions {
            if let Some(input) = self.perform(action) {
                self.feed(input);
            }
        }
    }

    /// Does what an action says, or begins to. An answer that is there at once is returned.
    fn perform(&mut self, action: Action) -> Option<Input> {
        match action {
            Action::CallModel { step, attempt, upstream, request } => {
                failpoint::reach("model_call");
                let Some(Some(client)) = self.upstreams.get(upstream) else {
                    let failure = UpstreamFailure {
                        kind: FailureKind::Unsendable,
                        status: None,
                        message:
                            "this upstream is no longer in the configuration; put it back, or ask again with \
                                  another model"
                                .to_owned(),
                        retry_after_ms: None,
                    };
                    return Some(Input::ModelFailed { step, attempt, failure });
                };
                let watch = self.observer.call(step, attempt, client.upstream(), &request.model);
                self.model.begin(step, attempt, client.clone(), request, self.clock, watch);
                None
            }
            Action::AbortModel { step, attempt } => {
                self.model.abort(step, attempt);
                None
            }
            Action::Validate { call, version, tool, arguments } => {
                let verdict = match (self.registry)().validate(&tool, &arguments) {
                    Ok(()) => Verdict::Valid,
                    Err(error) => Verdict::Invalid { message: error.to_string() },
                };
                Some(Input::Validated { call, version, verdict })
            }
            Action::StartTool { call, attempt, tool, arguments, early: _, fingerprint } => {
                let registry = (self.registry)();
                // A tool that is gone has no other definition: running it says so.
                let now = registry.get(&tool).map(|entry| entry.fingerprint().to_string());
                if let Some(now) = now.filter(|now| *now != fingerprint) {
                    // R: A3
                    return Some(Input::Redefined { tool, fingerprint: now, start: Some((call, attempt)) });
                }
                self.tools.start(registry, call, attempt, tool, arguments);
                None
            }
            Action::OfferCall { call, attempt, client_id, tool, arguments, until, fingerprint } => {
                let now = (self.registry)().get(&tool).map(|entry| entry.fingerprint().to_string());
                if let Some(now) = now.filter(|now| fingerprint.as_ref().is_some_and(|known| known != now)) {
                    // R: A3
                    return Some(Input::Redefined { tool, fingerprint: now, start: Some((call, attempt)) });
                }
                let offered = match fingerprint {
                    Some(_) => Offered::Now,
                    None => Offered::Before,
                };
                self.offers.offer((call, attempt), &client_id, tool, arguments.value, until, offered)
            }
            Action::AnswerTool { call: _, attempt: _, question_id, answer } => {
                self.tools.answer(question_id, answer);
                None
            }
            Action::CancelTool { call, attempt } => {
                self.tools.cancel(&call, attempt);
                self.offers.cancel(&call);
                None
            }
            Action::SetTimer { id, at } => {
                self.timers.set(id, at);
                None
            }
        }
    }
}

// R: A2
fn answers_to_keep(events: &[Event]) -> impl Iterator<Item = Remembered> + '_ {
    events.iter().filter_map(|event| match &event.kind {
        EventKind::ApprovalResolved { remembered: Some(answer), approval_id, .. } => {
            Some(Remembered { question: Some(approval_id.clone()), ..(**answer).clone() })
        }
        _ => None,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    No,
    Yes,
}
