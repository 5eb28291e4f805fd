//! One run: an agenda under a virtual clock, the machine, its outbox, a log, and everyone who talks to them.

use super::call_truth::CallTruth;
use super::check::{BrokenInvariant, InvariantChecker, ensure};
use super::consent::{ConsentChecker, REFUSED_Q};
use super::rng::SimRng;
use super::sim_plan::{self, SimPlan};
use super::upstream::{self, ReplyItem, TimedReplyItem};
use super::{SimMutant, SimOptions, SimSummary, client, people, tool, wire_reply};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use throughline_engine::fold::AssistantMessage;
use throughline_engine::{
    AppendBatch, ApprovalDecision, ApprovalTarget, ArgumentValidation, CallOfferKind, Effect, Event,
    EventKind, EventSeq, Outbox, QuestionKind, QueuedMessage, REQUESTER, StepProviderState, Turn, TurnAction,
    TurnInput, TurnOutput, UnixMillis, UserMessageId, merge_deltas,
};
use throughline_wire::{CallArguments, CallId, CallOutcome, ModelRequest, NotStarted, ToolChoice, ToolName};

/// Start of the virtual clock.
const START: UnixMillis = 1_700_000_000_000;
/// Things that may happen in a run before it counts as endless.
const HAPPENINGS_MAX: u64 = 200_000;
/// Inputs that are still given to a turn that is over.
const LATE_INPUTS: u64 = 20;

/// An item of the agenda.
enum AgendaItem {
    /// An input that dies with the process that waits for it.
    Process(TurnInput),
    /// An input from people or clients: it survives the death of the process.
    External(TurnInput),
    /// A tool gets another definition.
    Redefine(ToolName),
    /// Arguments are looked at.
    Check(TurnAction),
    /// The next piece of a reply.
    Reply { step: u32, attempt: u32 },
    /// The append in flight is decided.
    Appended,
}

struct Simulation<'t> {
    rng: SimRng,
    plan: SimPlan,
    mutant: Option<SimMutant>,
    events_only: bool,
    now: UnixMillis,
    agenda: BTreeMap<(UnixMillis, u64), AgendaItem>,
    counter: u64,

    turn: Turn,
    outbox: Outbox,
    appending: Option<(Vec<Event>, Vec<StepProviderState>)>,
    replies: BTreeMap<(u32, u32), VecDeque<TimedReplyItem>>,
    running: BTreeSet<(CallId, u32)>,
    call_truth: CallTruth,

    log: Vec<Event>,
    provider_states: Vec<StepProviderState>,

    /// A second machine that only sees the events.
    shadow: Turn,
    message: AssistantMessage,
    checker: InvariantChecker,
    consent: ConsentChecker,
    /// Random draws of what people think of; whether they answer is drawn separately.
    people_rng: SimRng,
    started: BTreeSet<(CallId, u32)>,
    /// The latest check of arguments that was answered, by call, and whether the schema accepted them; only in this process.
    checked: BTreeMap<(CallId, String), (u32, bool)>,
    /// Messages of the user that the machine has and has not taken in; dies with the process.
    queued: BTreeSet<UserMessageId>,
    /// Open questions of running tools of this process.
    open_questions: BTreeSet<u64>,
    /// Questions that were answered.
    answered_questions: BTreeSet<u64>,
    questions: u64,
    client_answers: u64,
    /// First answer of a client that came while it was awaited, by call.
    first_answer: BTreeMap<CallId, u64>,
    /// The call whose check is answered by the input that the machine has now.
    just_checked: Option<CallId>,
    /// An answer to a check that a mutant delivers with the next input.
    held_check: Option<TurnInput>,
    /// Offset that a mutant has added to the numbers.
    shift: i64,
    epoch: u64,
    summary: SimSummary,
    trace: Option<&'t mut Vec<String>>,
}

pub(super) fn simulate(
    seed: u64,
    options: &SimOptions,
    trace: Option<&mut Vec<String>>,
) -> Result<(SimSummary, Vec<Event>), BrokenInvariant> {
    let mut rng = SimRng::new(seed);
    let plan = sim_plan::draw(&mut rng, options);
    let mut out = TurnOutput::default();
    let turn = Turn::new(plan.setup.clone(), plan.start.clone(), START, &mut out);
    let shadow = Turn::restore(plan.setup.clone(), plan.start.clone(), &[], &[]);
    let consent =
        ConsentChecker::new(&plan.setup, plan.rules.clone(), plan.past_decisions.clone(), &plan.truth);
    let call_truth = CallTruth::new(plan.truth.clone());
    let mut simulation = Simulation {
        people_rng: rng.fork(3),
        consent,
        rng,
        plan,
        mutant: options.mutant,
        events_only: options.events_only,
        now: START,
        agenda: BTreeMap::new(),
        counter: 0,
        turn,
        outbox: Outbox::new(),
        appending: None,
        replies: BTreeMap::new(),
        running: BTreeSet::new(),
        call_truth,
        log: Vec::new(),
        provider_states: Vec::new(),
        shadow,
        message: AssistantMessage::default(),
        checker: InvariantChecker::default(),
        started: BTreeSet::new(),
        checked: BTreeMap::new(),
        queued: BTreeSet::new(),
        open_questions: BTreeSet::new(),
        answered_questions: BTreeSet::new(),
        questions: 0,
        client_answers: 0,
        first_answer: BTreeMap::new(),
        just_checked: None,
        held_check: None,
        shift: 0,
        epoch: 0,
        summary: SimSummary::default(),
        trace,
    };
    for cancel in simulation.plan.cancels.clone() {
        simulation.schedule(cancel, AgendaItem::External(TurnInput::Cancel));
    }
    for (at, input) in simulation.plan.user_messages.clone() {
        simulation.schedule(at, AgendaItem::External(input));
    }
    for (at, tool) in simulation.plan.redefinitions.clone() {
        simulation.schedule(at, AgendaItem::Redefine(tool));
    }
    simulation.collect(out)?;
    simulation.run()
}

impl Simulation<'_> {
    fn run(mut self) -> Result<(SimSummary, Vec<Event>), BrokenInvariant> {
        let mut happenings = 0;
        let mut late = 0;
        while let Some(((at, _), happening)) = self.next_item() {
            self.now = self.now.max(at);
            happenings += 1;
            if happenings > HAPPENINGS_MAX {
                return Err("the turn does not come to an end".into());
            }
            if self.turn.is_over() && self.outbox.is_empty() {
                late += 1;
                if late > LATE_INPUTS {
                    break;
                }
            }
            match happening {
                AgendaItem::Process(input) | AgendaItem::External(input) => self.input(input)?,
                AgendaItem::Redefine(tool) => self.redefine_tool(tool)?,
                AgendaItem::Check(check) => self.answer_check(check)?,
                AgendaItem::Reply { step, attempt } => self.deliver_reply_item(step, attempt)?,
                AgendaItem::Appended => self.decide_append()?,
            }
        }
        self.end()
    }

    fn next_item(&mut self) -> Option<((UnixMillis, u64), AgendaItem)> {
        if self.agenda.is_empty() && self.consent.waits_forever() {
            // Questions without expiry: a person returns at last.
            let no = TurnInput::plain_approval(
                ApprovalTarget::All,
                ApprovalDecision::Deny,
                "person",
                Some("at last".into()),
            );
            self.schedule(3_600_000, AgendaItem::External(no));
        }
        self.agenda.pop_first()
    }

    fn schedule(&mut self, after: UnixMillis, happening: AgendaItem) {
        self.counter += 1;
        self.agenda.insert((self.now.saturating_add(after), self.counter), happening);
    }

    fn trace_line(&mut self, line: impl FnOnce() -> String) {
        let now = self.now - START;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{now:>7} {}", line()));
        }
    }

    // --- the machine ---

    fn input(&mut self, mut input: TurnInput) -> Result<(), BrokenInvariant> {
        self.just_checked = match &input {
            TurnInput::Validated { call, .. } => Some(call.clone()),
            _ => None,
        };
        if self.mutant == Some(SimMutant::StaleCheck) {
            if let Some(check) = self.held_check.take() {
                let mut out = TurnOutput::default();
                self.turn.apply(check, self.now, &mut out);
                self.collect(out)?;
            }
            if self.just_checked.is_some() {
                self.held_check = Some(input);
                return Ok(());
            }
        }
        self.trace_line(|| format!("> {input:?}"));
        self.consent.record_input(&input);
        self.mutate_input(&mut input)?;
        if let TurnInput::ToolEnded { call, attempt, .. } = &input {
            self.running.remove(&(call.clone(), *attempt));
        }
        if input == TurnInput::Cancel && !self.turn.is_over() {
            self.checker.cancelled_at.get_or_insert(self.now);
        }
        if let TurnInput::ToolQuestionAsked { question_id, .. } = &input
            && !self.turn.is_over()
        {
            self.open_questions.insert(*question_id);
        }
        if let TurnInput::ClientAnswered { call, attempt, answer } = &input
            && self.checker.awaits_client(call, *attempt)
            && let Some(number) = client::answer_number(answer)
        {
            self.first_answer.entry(call.clone()).or_insert(number);
        }
        if self.mutant == Some(SimMutant::LastAnswerWins)
            && let TurnInput::ClientAnswered { call, .. } = &input
            && let Some(Event { step, block, tool_id, kind, .. }) = self.result_of(call)
        {
            return self.inject(step, block, tool_id, kind);
        }
        let mut out = TurnOutput::default();
        if self.mutant == Some(SimMutant::SteerAtOnce)
            && let TurnInput::UserMessage(message) = &input
        {
            return self.deliver_at_once(message.clone());
        }
        let queued_id = match &input {
            TurnInput::UserMessage(message) => Some(message.id.clone()),
            TurnInput::RetractMessage { id } if !self.turn.is_over() => {
                self.queued.remove(id);
                None
            }
            _ => None,
        };
        self.turn.apply(input, self.now, &mut out);
        self.queued
            .extend(queued_id.filter(|id| self.turn.queued_messages().iter().any(|queued| queued.id == *id)));
        self.collect(out)
    }

    /// A mutant receives something else than a person answered.
    fn mutate_input(&mut self, input: &mut TurnInput) -> Result<(), BrokenInvariant> {
        if let (Some(SimMutant::StopForgotten), TurnInput::Approval { stop, .. }) = (self.mutant, &mut *input)
        {
            *stop = false;
        }
        let TurnInput::Approval { question, decision: ApprovalDecision::Approve, arguments_hash, .. } = input
        else {
            return Ok(());
        };
        match (self.mutant, question) {
            (Some(SimMutant::ApprovalForOtherArguments), _) => *arguments_hash = None,
            (Some(SimMutant::ApprovalByUpstreamId), ApprovalTarget::One(id)) => {
                for other in self.consent.questions_with_same_upstream_id(id) {
                    let mut out = TurnOutput::default();
                    let answer = TurnInput::plain_approval(
                        ApprovalTarget::One(other),
                        ApprovalDecision::Approve,
                        "person",
                        None,
                    );
                    self.turn.apply(answer, self.now, &mut out);
                    self.collect(out)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A mutant: a message of the user becomes an event in any phase of the turn.
    fn deliver_at_once(&mut self, message: QueuedMessage) -> Result<(), BrokenInvariant> {
        let block = Some(self.message.blocks.len() as u32);
        let kind = EventKind::user_message(Some(message.id), message.input);
        self.inject(None, block, None, kind)
    }

    /// End of a call, as the log has it.
    fn result_of(&self, call: &CallId) -> Option<Event> {
        let is_its = |event: &&Event| {
            event.tool_id.as_ref() == Some(call) && matches!(event.kind, EventKind::ToolResult(_))
        };
        self.log.iter().find(is_its).filter(|_| !self.turn.is_over()).cloned()
    }

    /// A mutant: an event that the machine did not emit; what follows is numbered after it.
    fn inject(
        &mut self,
        step: Option<u32>,
        block: Option<u32>,
        tool_id: Option<CallId>,
        kind: EventKind,
    ) -> Result<(), BrokenInvariant> {
        let (turn_id, timestamp, seq) = (self.plan.start.turn_id.clone(), self.now, self.turn.seq().next());
        let event = Event { turn_id, seq, timestamp, step, block, tool_id, kind };
        self.collect(TurnOutput { events: vec![event], ..TurnOutput::default() })?;
        self.shift += 1;
        Ok(())
    }

    /// Takes the machine's output: checks it event by event and sends it to the log.
    fn collect(&mut self, mut out: TurnOutput) -> Result<(), BrokenInvariant> {
        self.mutate_output(&mut out);
        for event in &out.events {
            self.trace_line(|| {
                let json = serde_json::to_string(event).unwrap_or_default();
                format!("  {}", json.replacen("\"turn_id\":\"sim\",", "", 1))
            });
            self.checker.event(event, &self.plan)?;
            self.consent.event(event)?;
            if let (EventKind::ToolResult(result), Some(call)) = (&event.kind, &event.tool_id)
                && let Some(number) = result.output.as_deref().and_then(client::answer_number_in)
            {
                self.summary.answered_by_clients += 1;
                if self.first_answer.get(call) != Some(&number) {
                    return Err(format!("{call} ends by answer {number}, which was not the first"));
                }
            }
            if let (EventKind::ToolStart { client_id: Some(client_id), .. }, Some(call)) =
                (&event.kind, &event.tool_id)
                && client_id != REQUESTER
            {
                if self.just_checked.as_ref() != Some(call) {
                    return Err(format!("{call} is offered to a client, and was not looked at just now"));
                }
                self.consent.check_offer(call)?;
            }
            self.call_truth.check_loss(&self.log, event)?;
            if let EventKind::UserMessage { id: Some(id), .. } = &event.kind
                && !self.queued.remove(id)
                && self.mutant.is_none()
            {
                return Err(format!("{id} is taken in and does not wait"));
            }
            self.message.apply(event);
            if self.plan.through_json {
                self.shadow.replay(&through_json(event)?);
            } else {
                self.shadow.replay(event);
            }
        }
        for states in &out.provider_states {
            self.shadow.apply_provider_state(states);
        }
        if self.mutant.is_none() && !self.turn.state_eq(&self.shadow) {
            return Err("a machine restored from the events is not the live one".into());
        }
        if self.mutant == Some(SimMutant::StartBeforeDurable) {
            let early: Vec<TurnAction> =
                out.actions.extract_if(.., |action| matches!(action, TurnAction::StartTool { .. })).collect();
            for action in early {
                self.perform(action)?;
            }
        }
        let fresh = out.events.len();
        let ended = self.outbox.push(&mut out);
        let (events, _) = self.outbox.backlog();
        if events > Outbox::EVENTS_MAX + fresh + 64 {
            return Err(format!("{events} events wait for the log"));
        }
        for input in ended {
            self.input(input)?;
        }
        self.append_next();
        for action in self.outbox.take_ready() {
            self.perform(action)?;
        }
        self.nothing_is_stuck()
    }

    /// Hands pending events to the log.
    fn append_next(&mut self) {
        if let Some(AppendBatch { events, provider_states }) = self.outbox.next_append() {
            self.appending = Some((events.to_vec(), provider_states.to_vec()));
            let wait = self.rng.wait(self.plan.append_ms);
            self.schedule(wait, AgendaItem::Appended);
        }
    }

    /// Checks that nothing is stuck: as in the driver, the outbox is not polled again after an append, so
    /// actions that waited for it must be among those that it released.
    fn nothing_is_stuck(&self) -> Result<(), BrokenInvariant> {
        ensure(self.appending.is_some() || self.outbox.is_empty(), || {
            "an action waits for an append that will never be".into()
        })
    }

    /// A mutant is a falsified machine: the checks do not know.
    fn mutate_output(&mut self, out: &mut TurnOutput) {
        let falsifies = matches!(
            self.mutant,
            Some(
                SimMutant::OrphanCall
                    | SimMutant::SecondCompletion
                    | SimMutant::SteerTwice
                    | SimMutant::SteerAtOnce
                    | SimMutant::LastAnswerWins
            )
        );
        if !falsifies {
            return;
        }
        let mut falsified = Vec::with_capacity(out.events.len() + 1);
        for mut event in out.events.drain(..) {
            event.seq = EventSeq(event.seq.0.saturating_add_signed(self.shift));
            let hit = self.shift == 0
                && match event.kind {
                    EventKind::ToolResult(_) => self.mutant != Some(SimMutant::SteerTwice),
                    EventKind::UserMessage { .. } => self.mutant == Some(SimMutant::SteerTwice),
                    _ => false,
                };
            match self.mutant {
                Some(SimMutant::OrphanCall) if hit => {
                    self.shift = -1;
                    continue;
                }
                Some(SimMutant::SecondCompletion | SimMutant::SteerTwice) if hit => {
                    self.shift = 1;
                    falsified.push(event.clone());
                    event.seq = event.seq.next();
                }
                _ => {}
            }
            falsified.push(event);
        }
        out.events = falsified;
    }

    // --- the log ---

    fn decide_append(&mut self) -> Result<(), BrokenInvariant> {
        let Some((events, states)) = self.appending.take() else { return Ok(()) };
        let dies = self.rng.chance(self.plan.crash_percent);
        let refused = !dies && self.rng.chance(self.plan.refuse_percent);
        // A process that dies may leave any part of its last append in the log.
        let stored = match (dies, refused) {
            (true, _) => self.rng.below(events.len() as u64 + 1) as usize,
            (false, true) => 0,
            (false, false) => events.len(),
        };
        let all = stored == events.len();
        self.log.extend(events.into_iter().take(stored));
        if all && !refused {
            self.provider_states.extend(states);
        }
        if refused {
            self.trace_line(|| "the log refuses".into());
            self.outbox.refuse();
            if self.outbox.next_append().is_some() || !self.outbox.take_ready().is_empty() {
                return Err("something leaves after the log refused".into());
            }
        }
        if dies || refused {
            return self.take_over();
        }
        let released = self.outbox.acknowledge();
        for event in &released.events {
            let reactions = match &event.kind {
                EventKind::ApprovalRequest { approval_id, kind: QuestionKind::Elicitation, .. } => {
                    people::on_elicitation(&mut self.rng, approval_id)
                }
                EventKind::ApprovalRequest { approval_id, arguments_hash, .. } => {
                    people::on_approval_request(
                        &mut self.rng,
                        &mut self.people_rng,
                        approval_id,
                        arguments_hash,
                    )
                }
                EventKind::ToolUse { .. } => match &event.tool_id {
                    Some(id) => people::on_call_seen(&mut self.rng, id),
                    None => Vec::new(),
                },
                _ => Vec::new(),
            };
            for (after, input) in reactions {
                self.schedule(after, AgendaItem::External(input));
            }
        }
        for action in released.actions {
            self.perform(action)?;
        }
        self.append_next();
        self.nothing_is_stuck()
    }

    /// The process has died; another one restores the turn from the log.
    fn take_over(&mut self) -> Result<(), BrokenInvariant> {
        self.trace_line(|| "the process dies".into());
        self.summary.crashes += 1;
        self.epoch += 1;
        // Steady from now on, sooner or later: a turn that always dies never ends.
        self.plan.crash_percent /= 2;
        self.plan.refuse_percent /= 2;
        self.agenda
            .retain(|_, happening| matches!(happening, AgendaItem::External(_) | AgendaItem::Redefine(_)));
        self.outbox = Outbox::new();
        self.replies.clear();
        self.running.clear();
        self.checked.clear();
        // An answer of a client that only the dead process had was never accepted.
        let ends = self.log.iter().filter(|event| matches!(event.kind, EventKind::ToolResult(_)));
        let ended: BTreeSet<&CallId> = ends.filter_map(|event| event.tool_id.as_ref()).collect();
        self.first_answer.retain(|call, _| ended.contains(call));
        // Messages that were not taken in are lost with the process: their sender still has them.
        self.queued.clear();
        self.open_questions.clear();
        self.appending = None;
        (self.just_checked, self.held_check) = (None, None);
        self.shift = 0;
        self.now += self.rng.wait(2_000);
        let (setup, start) = (self.plan.setup.clone(), self.plan.start.clone());
        let log: Vec<Event> = self.log.iter().map(through_json).collect::<Result<_, _>>()?;
        self.turn = Turn::restore(setup.clone(), start.clone(), &log, &self.provider_states);
        self.shadow = Turn::restore(setup, start, &self.log, &self.provider_states);
        if !self.turn.state_eq(&self.shadow) {
            return Err("a log that went through JSON restores differently".into());
        }
        self.message = AssistantMessage::from_events(&log);
        self.checker = InvariantChecker::default();
        self.consent.forget_log();
        for event in &self.log {
            self.checker.event(event, &self.plan)?;
            self.consent.event(event)?;
        }
        let mut out = TurnOutput::default();
        self.turn.resume(self.epoch, self.now, &mut out);
        self.collect(out)
    }

    // --- environment of the turn ---

    fn perform(&mut self, action: TurnAction) -> Result<(), BrokenInvariant> {
        self.trace_line(|| format!("! {}", describe_action(&action)));
        match action {
            TurnAction::CallModel { step, attempt, request, .. } => {
                self.checker.request(&request)?;
                self.summary.model_calls += 1;
                let reply = self.draw_reply(step, &request);
                let first = reply.front().map_or(0, |(wait, _)| *wait);
                self.replies.insert((step, attempt), reply);
                self.schedule(first, AgendaItem::Reply { step, attempt });
            }
            TurnAction::AbortModel { step, attempt } => {
                // Some bytes are on their way already.
                if self.rng.chance(70) {
                    self.replies.remove(&(step, attempt));
                }
            }
            check @ TurnAction::Validate { .. } => {
                // Sometimes a check takes so long that the arguments have changed in the meantime.
                let slow = self.rng.chance(10);
                let wait = self.rng.wait(if slow { 200 } else { 3 });
                if let (true, TurnAction::Validate { call, version, fingerprint: Some(_), .. }) =
                    (slow, &check)
                {
                    let (call, version, until) = (call.clone(), *version, self.now + wait);
                    let held = TurnInput::CheckHeld { call, version, until };
                    self.schedule(0, AgendaItem::Process(held));
                }
                self.schedule(wait, AgendaItem::Check(check));
            }
            TurnAction::StartTool { call, attempt, tool, arguments, fingerprint, .. } => {
                let now = self.consent.definition(&tool).unwrap_or_default().to_owned();
                if now != fingerprint && self.mutant != Some(SimMutant::ApprovalSurvivesRedefinition) {
                    let start = Some((call, attempt));
                    let input = TurnInput::ToolRedefined { tool, fingerprint: now, start };
                    self.schedule(0, AgendaItem::Process(input));
                    return Ok(());
                }
                self.start_tool(&call, attempt)?;
                self.consent.check_start(&call, &arguments)?;
                self.call_truth.check_made(&self.log, &call, &mut self.summary)?;
                self.check_accepted(&call, &arguments)?;
                if self.mutant == Some(SimMutant::SecondStart) {
                    self.start_tool(&call, attempt)?;
                }
                let offered = self.plan.setup.tools.iter().find(|offered| offered.name == tool);
                let timeout_ms = offered.map_or(1_000, |offered| offered.timeout_ms);
                let effect = offered.map_or(Effect::External, |offered| offered.effect);
                let is_lost = self.rng.fork(self.counter).fork(6).chance(20) && !self.events_only;
                let life = if is_lost {
                    let outcome =
                        self.call_truth.lost_outcome(&call, attempt, effect, self.mutant, &mut self.summary);
                    tool::ends(&mut self.rng, &call, attempt, outcome)
                } else if self.rng.fork(self.counter).chance(15) {
                    self.questions += 1;
                    tool::question_inputs(&mut self.rng, &call, attempt, self.questions)
                } else {
                    tool::run_inputs(&mut self.rng, &call, attempt, &arguments, timeout_ms)
                };
                for (after, input) in life {
                    self.schedule(after, AgendaItem::Process(input));
                }
                self.running.insert((call, attempt));
            }
            TurnAction::OfferCall { call, attempt, until, tool, arguments, fingerprint, kind, .. } => {
                if kind == CallOfferKind::First && self.consent.is_withdrawn(&tool) {
                    let outcome = CallOutcome::NotStarted(NotStarted::NoViewer);
                    let input = TurnInput::ToolEnded { call, attempt, outcome };
                    self.schedule(0, AgendaItem::Process(input));
                    return Ok(());
                }
                let now = self.consent.definition(&tool).unwrap_or_default().to_owned();
                if kind == CallOfferKind::First
                    && fingerprint != now
                    && self.mutant != Some(SimMutant::ApprovalSurvivesRedefinition)
                {
                    let start = Some((call, attempt));
                    let input = TurnInput::ToolRedefined { tool, fingerprint: now, start };
                    self.schedule(0, AgendaItem::Process(input));
                    return Ok(());
                }
                self.offer_call(&call, attempt)?;
                if kind == CallOfferKind::First {
                    self.consent.check_start(&call, &arguments)?;
                    self.check_accepted(&call, &arguments)?;
                }
                self.call_truth.check_made(&self.log, &call, &mut self.summary)?;
                let limit = until - self.now;
                let number = self.client_answers;
                self.client_answers += 2;
                for (after, input) in client::answers_to_offer(&mut self.rng, &call, attempt, limit, number) {
                    self.schedule(after, AgendaItem::External(input));
                }
            }
            TurnAction::AnswerTool { call, attempt, question_id, .. } => {
                self.answer_question(question_id)?;
                if self.mutant == Some(SimMutant::AnswerTwice) {
                    self.answer_question(question_id)?;
                }
                if self.running.contains(&(call.clone(), attempt)) {
                    for (after, input) in tool::on_answer(&mut self.rng, &call, attempt) {
                        self.schedule(after, AgendaItem::Process(input));
                    }
                }
            }
            TurnAction::CancelTool { call, attempt } => {
                let start = (call.clone(), attempt);
                // A cancellation does not get through a broken connection.
                if self.running.contains(&start)
                    && !self.call_truth.is_lost(&start)
                    && let Some((after, input)) = tool::on_cancel(&mut self.rng, &call, attempt)
                {
                    self.schedule(after, AgendaItem::Process(input));
                }
            }
            TurnAction::SetTimer { id, at } => {
                let wait = (at - self.now).max(0);
                self.schedule(wait, AgendaItem::Process(TurnInput::Timer { id }));
            }
        }
        Ok(())
    }

    /// The reply to a request: as events, or as bytes that the decoder makes events of.
    fn draw_reply(&mut self, step: u32, request: &ModelRequest) -> VecDeque<TimedReplyItem> {
        self.call_truth.set_reply(step, None);
        let mut rng = self.rng.fork(4);
        let reply = upstream::reply(&mut self.rng, request);
        let wants_calls = !request.tools.is_empty() && request.tool_choice != ToolChoice::None;
        if self.events_only || !wants_calls || !rng.chance(25) {
            return reply.into();
        }
        let (events, truth) = wire_reply::draw(&mut rng, request, self.mutant);
        self.call_truth.set_reply(step, Some(truth));
        self.summary.byte_replies += 1;
        events.into_iter().map(|event| (rng.wait(60), ReplyItem::Event(event))).collect()
    }

    /// Validates arguments, and checks the tool's present definition.
    fn answer_check(&mut self, check: TurnAction) -> Result<(), BrokenInvariant> {
        let TurnAction::Validate { call, version, tool, arguments, fingerprint, .. } = check else {
            return Ok(());
        };
        let by_client = fingerprint.is_some();
        if by_client && self.consent.is_withdrawn(&tool) {
            return self.input(TurnInput::Validated {
                call,
                version,
                validation: ArgumentValidation::NoViewer,
            });
        }
        let now = self.consent.definition(&tool).unwrap_or_default().to_owned();
        let survives = self.mutant == Some(SimMutant::ApprovalSurvivesRedefinition);
        if fingerprint.is_some_and(|known| known != now) && !survives {
            return self.input(TurnInput::ToolRedefined { tool, fingerprint: now, start: None });
        }
        let refused = arguments.value["q"] == REFUSED_Q;
        let validation = if self.rng.chance(8) || refused {
            ArgumentValidation::Invalid { message: "/q: expected a number".into() }
        } else {
            ArgumentValidation::Valid
        };
        // The verdict of the latest check of a text counts, also after the same text was sent twice.
        let latest = self.checked.entry((call.clone(), arguments.text)).or_insert((version, false));
        if version >= latest.0 {
            *latest = (version, validation == ArgumentValidation::Valid);
        }
        let unchecked = refused && self.mutant == Some(SimMutant::EditUnchecked);
        let validation = if unchecked { ArgumentValidation::Valid } else { validation };
        self.input(TurnInput::Validated { call, version, validation })
    }

    /// Changes the definition of a tool; sometimes the machine is notified immediately, else when it starts
    /// the tool.
    fn redefine_tool(&mut self, tool: ToolName) -> Result<(), BrokenInvariant> {
        if self.people_rng.chance(30) {
            let is_withdrawn = self.consent.toggle_withdrawn(&tool);
            self.trace_line(|| format!("{tool} is withdrawn: {is_withdrawn}"));
            return Ok(());
        }
        let fingerprint = self.consent.redefine(&tool);
        self.trace_line(|| format!("{tool} is {fingerprint} now"));
        if self.people_rng.chance(40) {
            self.input(TurnInput::ToolRedefined { tool, fingerprint, start: None })?;
        }
        Ok(())
    }

    fn check_accepted(&self, call: &CallId, arguments: &CallArguments) -> Result<(), BrokenInvariant> {
        let checked = self.checked.get(&(call.clone(), arguments.text.clone()));
        let accepted = checked.is_some_and(|(_, accepted)| *accepted);
        // After a takeover a read runs again with the arguments that the old process had checked.
        if !accepted && self.epoch == 0 {
            return Err(format!("{call} is started with arguments that were not accepted"));
        }
        Ok(())
    }

    /// Gives a tool an answer: once for each question.
    fn answer_question(&mut self, question_id: u64) -> Result<(), BrokenInvariant> {
        self.open_questions.remove(&question_id);
        if !self.answered_questions.insert(question_id) {
            return Err(format!("question {question_id} is answered twice"));
        }
        Ok(())
    }

    /// Offers a call to a client: its intent must be in the log. After a takeover it is offered again to a
    /// client that knows it.
    fn offer_call(&mut self, call: &CallId, attempt: u32) -> Result<(), BrokenInvariant> {
        if self.epoch == 0 || !self.started.contains(&(call.clone(), attempt)) {
            self.start_tool(call, attempt)?;
        }
        Ok(())
    }

    /// A tool really starts: its intent must be in the log, and this must be the only time.
    fn start_tool(&mut self, call: &CallId, attempt: u32) -> Result<(), BrokenInvariant> {
        let intended = self.log.iter().rev().any(|event| {
            event.tool_id.as_ref() == Some(call)
                && matches!(event.kind, EventKind::ToolStart { attempt: intended, .. } if intended == attempt)
        });
        if !intended {
            return Err(format!("{call} is started and its intent is not durable"));
        }
        // A client that reads the log, or guesses, may answer before it is asked.
        if self.mutant.is_none() && !self.first_answer.contains_key(call) {
            self.checker.check_start(call, attempt)?;
        }
        if !self.started.insert((call.clone(), attempt)) {
            return Err(format!("{call} is started twice for one intent"));
        }
        Ok(())
    }

    fn deliver_reply_item(&mut self, step: u32, attempt: u32) -> Result<(), BrokenInvariant> {
        if self.outbox.is_full() {
            // The rule of the gap: the upstream is not read.
            self.schedule(1, AgendaItem::Reply { step, attempt });
            return Ok(());
        }
        let Some(reply) = self.replies.get_mut(&(step, attempt)) else { return Ok(()) };
        let Some((_, item)) = reply.pop_front() else { return Ok(()) };
        match reply.front().map(|(wait, _)| *wait) {
            Some(wait) => self.schedule(wait, AgendaItem::Reply { step, attempt }),
            None => drop(self.replies.remove(&(step, attempt))),
        }
        self.input(match item {
            ReplyItem::Event(event) => TurnInput::Model { step, attempt, event },
            ReplyItem::Failed(failure) => {
                TurnInput::ModelFailed { step, attempt, failure, time_left_ms: None }
            }
        })
    }

    // --- the end ---

    fn end(mut self) -> Result<(SimSummary, Vec<Event>), BrokenInvariant> {
        if !self.turn.is_over() {
            return Err("nothing is left to happen and the turn is not over".into());
        }
        if !self.outbox.is_empty() {
            return Err("nothing is left to happen and the log is behind".into());
        }
        if self.turn.history().is_none() {
            return Err("the turn is over and has no history".into());
        }
        if let Some(question) = self.open_questions.first() {
            return Err(format!("the turn is over, and question {question} was never answered"));
        }
        let left: BTreeSet<UserMessageId> =
            self.turn.queued_messages().iter().map(|message| message.id.clone()).collect();
        if left != self.queued || left.iter().any(|id| self.checker.was_delivered(id)) {
            return Err(format!("{left:?} is handed back, and {:?} waits", self.queued));
        }
        let full_message = AssistantMessage::from_events(&self.log);
        if self.mutant.is_none() && full_message != self.message {
            return Err("the fold of the log is not the fold of what was seen".into());
        }
        let cut = self.rng.below(self.log.len() as u64 + 1) as usize;
        let snapshot = AssistantMessage::from_events(&self.log[..cut]);
        let json = serde_json::to_string(&snapshot).map_err(|error| error.to_string())?;
        let mut resumed: AssistantMessage =
            serde_json::from_str(&json).map_err(|error| format!("{error} in {json}"))?;
        self.log.iter().for_each(|event| resumed.apply(event));
        if resumed != full_message {
            return Err(format!("a snapshot after {cut} events and the rest is not the whole"));
        }
        let merged = merge_deltas(self.log.clone());
        if AssistantMessage::from_events(&merged) != full_message {
            return Err("joined deltas fold differently".into());
        }
        let stats = full_message.stats.unwrap_or_default();
        self.summary.events = self.log.len() as u64;
        self.summary.calls = self.checker.calls() as u64;
        self.summary.early_starts = self.checker.early_starts;
        self.summary.edited = self.consent.edited;
        self.summary.remembered = self.consent.remembered;
        self.summary.redefined = self.consent.redefined;
        self.summary.asked_by_tools = self.checker.asked_by_tools;
        self.summary.steered = self.checker.delivered_count() as u64;
        self.summary.virtual_ms = stats.wall_ms;
        self.summary.status = self.checker.over;
        Ok((self.summary, self.log))
    }
}

fn through_json(event: &Event) -> Result<Event, BrokenInvariant> {
    let json = serde_json::to_string(event).map_err(|error| error.to_string())?;
    serde_json::from_str(&json).map_err(|error| format!("{error} in {json}"))
}

fn describe_action(action: &TurnAction) -> String {
    match action {
        TurnAction::CallModel { step, attempt, upstream, request } => {
            format!(
                "call model: step {step}, try {attempt}, upstream {upstream}, {} messages",
                request.messages.len()
            )
        }
        other => format!("{other:?}"),
    }
}
