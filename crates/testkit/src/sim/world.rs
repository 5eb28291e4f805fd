//! One run: an agenda under a virtual clock, the machine, its outbox, a log, and everyone who talks to them.

use super::check::{Broken, Checker};
use super::consent::{Consent, REFUSED_Q};
use super::plan::{self, Plan};
use super::rng::Rng;
use super::upstream::{self, Item, Said};
use super::{Mutant, Options, Summary, client, people, tool};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use throughline_engine::fold::Message;
use throughline_engine::{
    Action, Append, Beside, Decision, Event, EventKind, Input, Millis, Out, Outbox, Question, QuestionKind,
    QueuedMessage, Seq, Turn, UserMessageId, Verdict, merge_deltas,
};
use throughline_wire::{CallId, ToolName};

/// Where the virtual clock begins.
const START: Millis = 1_700_000_000_000;
/// Things that may happen in a run before it counts as endless.
const HAPPENINGS_MAX: u64 = 200_000;
/// Inputs that are still given to a turn that is over.
const LATE_INPUTS: u64 = 20;

/// Something on the agenda.
enum Happening {
    /// An input that dies with the process that waits for it.
    Inside(Input),
    /// An input from people or clients: it comes whatever happens to the process.
    Outside(Input),
    /// A tool gets another definition.
    Redefine(ToolName),
    /// The next piece of a reply.
    Reply { step: u32, attempt: u32 },
    /// The append in flight is decided.
    Appended,
}

struct World<'t> {
    rng: Rng,
    plan: Plan,
    mutant: Option<Mutant>,
    now: Millis,
    agenda: BTreeMap<(Millis, u64), Happening>,
    counter: u64,

    turn: Turn,
    outbox: Outbox,
    appending: Option<(Vec<Event>, Vec<Beside>)>,
    replies: BTreeMap<(u32, u32), VecDeque<Item>>,
    running: BTreeSet<(CallId, u32)>,

    log: Vec<Event>,
    beside: Vec<Beside>,

    /// A second machine that only sees the events.
    shadow: Turn,
    message: Message,
    checker: Checker,
    consent: Consent,
    /// Chance of what people think of, beside whether they answer.
    care: Rng,
    performed: BTreeSet<(CallId, u32)>,
    /// Arguments that the schema accepted, by call; only in this process.
    accepted: BTreeSet<(CallId, String)>,
    /// Messages of the user that the machine has and has not taken in; dies with the process.
    waiting: BTreeSet<UserMessageId>,
    /// Questions that running tools of this process have asked and were not told the answer to.
    asked: BTreeSet<u64>,
    /// Questions whose answer was told.
    told: BTreeSet<u64>,
    questions: u64,
    client_answers: u64,
    /// By call: the first answer of a client that came while it was waited for.
    first_answer: BTreeMap<CallId, u64>,
    /// How far a mutant has moved the numbers.
    shift: i64,
    epoch: u64,
    summary: Summary,
    trace: Option<&'t mut Vec<String>>,
}

pub(super) fn simulate(
    seed: u64,
    options: &Options,
    trace: Option<&mut Vec<String>>,
) -> Result<(Summary, Vec<Event>), Broken> {
    let mut rng = Rng::new(seed);
    let plan = plan::draw(&mut rng, options);
    let mut out = Out::default();
    let turn = Turn::new(plan.setup.clone(), plan.start.clone(), START, &mut out);
    let shadow = Turn::restore(plan.setup.clone(), plan.start.clone(), &[], &[]);
    let consent = Consent::new(&plan.setup, plan.rules.clone(), plan.kept.clone(), &plan.truth);
    let mut world = World {
        care: rng.fork(3),
        consent,
        rng,
        plan,
        mutant: options.mutant,
        now: START,
        agenda: BTreeMap::new(),
        counter: 0,
        turn,
        outbox: Outbox::new(),
        appending: None,
        replies: BTreeMap::new(),
        running: BTreeSet::new(),
        log: Vec::new(),
        beside: Vec::new(),
        shadow,
        message: Message::default(),
        checker: Checker::default(),
        performed: BTreeSet::new(),
        accepted: BTreeSet::new(),
        waiting: BTreeSet::new(),
        asked: BTreeSet::new(),
        told: BTreeSet::new(),
        questions: 0,
        client_answers: 0,
        first_answer: BTreeMap::new(),
        shift: 0,
        epoch: 0,
        summary: Summary::default(),
        trace,
    };
    for cancel in world.plan.cancels.clone() {
        world.at(cancel, Happening::Outside(Input::Cancel));
    }
    for (at, said) in world.plan.says.clone() {
        world.at(at, Happening::Outside(said));
    }
    for (at, tool) in world.plan.redefinitions.clone() {
        world.at(at, Happening::Redefine(tool));
    }
    world.take(out)?;
    world.run()
}

impl World<'_> {
    fn run(mut self) -> Result<(Summary, Vec<Event>), Broken> {
        let mut happenings = 0;
        let mut late = 0;
        while let Some(((at, _), happening)) = self.next() {
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
                Happening::Inside(input) | Happening::Outside(input) => self.input(input)?,
                Happening::Redefine(tool) => self.redefine(tool)?,
                Happening::Reply { step, attempt } => self.reply(step, attempt)?,
                Happening::Appended => self.appended()?,
            }
        }
        self.end()
    }

    fn next(&mut self) -> Option<((Millis, u64), Happening)> {
        if self.agenda.is_empty() && self.consent.waits_for_ever() {
            // Questions without expiry: somebody comes back at last.
            let no = Input::answer(Question::All, Decision::Deny, "person", Some("at last".into()));
            self.at(3_600_000, Happening::Outside(no));
        }
        self.agenda.pop_first()
    }

    fn at(&mut self, after: Millis, happening: Happening) {
        self.counter += 1;
        self.agenda.insert((self.now.saturating_add(after), self.counter), happening);
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        let now = self.now - START;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{now:>7} {}", line()));
        }
    }

    // --- the machine ---

    fn input(&mut self, mut input: Input) -> Result<(), Broken> {
        self.note(|| format!("> {input:?}"));
        self.consent.hears(&input);
        self.falsify_answer(&mut input)?;
        if let Input::ToolEnded { call, attempt, .. } = &input {
            self.running.remove(&(call.clone(), *attempt));
        }
        if input == Input::Cancel && !self.turn.is_over() {
            self.checker.cancelled_at.get_or_insert(self.now);
        }
        if let Input::ToolAsks { question_id, .. } = &input
            && !self.turn.is_over()
        {
            self.asked.insert(*question_id);
        }
        if let Input::ClientAnswered { call, attempt, answer } = &input
            && self.checker.awaits_client(call, *attempt)
            && let Some(number) = client::number_of(answer)
        {
            self.first_answer.entry(call.clone()).or_insert(number);
        }
        if self.mutant == Some(Mutant::LastAnswerWins)
            && let Input::ClientAnswered { call, .. } = &input
            && let Some(Event { step, block, tool_id, kind, .. }) = self.result_of(call)
        {
            return self.inject(step, block, tool_id, kind);
        }
        let mut out = Out::default();
        if self.mutant == Some(Mutant::SteerAtOnce)
            && let Input::UserMessage(message) = &input
        {
            return self.take_in_at_once(message.clone());
        }
        let said = match &input {
            Input::UserMessage(message) => Some(message.id.clone()),
            Input::TakeBack { id } if !self.turn.is_over() => {
                self.waiting.remove(id);
                None
            }
            _ => None,
        };
        self.turn.apply(input, self.now, &mut out);
        self.waiting.extend(said.filter(|id| self.turn.queued().iter().any(|queued| queued.id == *id)));
        self.take(out)
    }

    /// A mutant hears something else than a person said.
    fn falsify_answer(&mut self, input: &mut Input) -> Result<(), Broken> {
        let Input::Approval { question, decision: Decision::Approve, arguments_hash, .. } = input else {
            return Ok(());
        };
        match (self.mutant, question) {
            (Some(Mutant::ApprovalForOtherArguments), _) => *arguments_hash = None,
            (Some(Mutant::ApprovalByUpstreamId), Question::One(id)) => {
                for other in self.consent.namesakes(id) {
                    let mut out = Out::default();
                    let answer = Input::answer(Question::One(other), Decision::Approve, "person", None);
                    self.turn.apply(answer, self.now, &mut out);
                    self.take(out)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A mutant: a message of the user becomes an event wherever the turn is.
    fn take_in_at_once(&mut self, message: QueuedMessage) -> Result<(), Broken> {
        let block = Some(self.message.blocks.len() as u32);
        let kind = EventKind::UserMessage { id: Some(message.id), input: message.input };
        self.inject(None, block, None, kind)
    }

    /// How a call ended, as the log has it.
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
    ) -> Result<(), Broken> {
        let (turn_id, timestamp, seq) = (self.plan.start.turn_id.clone(), self.now, self.turn.seq().next());
        let event = Event { turn_id, seq, timestamp, step, block, tool_id, kind };
        self.take(Out { events: vec![event], ..Out::default() })?;
        self.shift += 1;
        Ok(())
    }

    /// What the machine yields: checked event by event, then on its way to the log.
    fn take(&mut self, mut out: Out) -> Result<(), Broken> {
        self.falsify(&mut out);
        for event in &out.events {
            self.note(|| {
                let json = serde_json::to_string(event).unwrap_or_default();
                format!("  {}", json.replacen("\"turn_id\":\"sim\",", "", 1))
            });
            self.checker.event(event, &self.plan)?;
            self.consent.event(event)?;
            if let (EventKind::ToolResult(result), Some(call)) = (&event.kind, &event.tool_id)
                && let Some(number) = result.output.as_deref().and_then(client::answer_of)
            {
                self.summary.answered_by_clients += 1;
                if self.first_answer.get(call) != Some(&number) {
                    return Err(format!("{call} ends by answer {number}, which was not the first"));
                }
            }
            if let EventKind::UserMessage { id: Some(id), .. } = &event.kind
                && !self.waiting.remove(id)
                && self.mutant.is_none()
            {
                return Err(format!("{id} is taken in and does not wait"));
            }
            self.message.absorb(event);
            match self.plan.through_json {
                true => self.shadow.absorb(&through_json(event)?),
                false => self.shadow.absorb(event),
            }
        }
        for beside in &out.beside {
            self.shadow.absorb_beside(beside);
        }
        if self.mutant.is_none() && !self.turn.knows_the_same_as(&self.shadow) {
            return Err("a machine restored from the events is not the live one".into());
        }
        if self.mutant == Some(Mutant::StartBeforeDurable) {
            let early: Vec<Action> =
                out.actions.extract_if(.., |action| matches!(action, Action::StartTool { .. })).collect();
            for action in early {
                self.perform(action)?;
            }
        }
        let fresh = out.events.len();
        let ended = self.outbox.push(&mut out);
        let (events, _) = self.outbox.gap();
        if events > Outbox::EVENTS_MAX + fresh + 64 {
            return Err(format!("{events} events wait for the log"));
        }
        for input in ended {
            self.input(input)?;
        }
        self.pump()
    }

    /// Gives the log what it can take, and does what waits for nothing.
    fn pump(&mut self) -> Result<(), Broken> {
        if let Some(Append { events, beside }) = self.outbox.next_append() {
            self.appending = Some((events.to_vec(), beside.to_vec()));
            let wait = self.rng.wait(self.plan.append_ms);
            self.at(wait, Happening::Appended);
        }
        for action in self.outbox.ready() {
            self.perform(action)?;
        }
        Ok(())
    }

    /// A mutant is a falsified machine: the checks do not know.
    fn falsify(&mut self, out: &mut Out) {
        let falsifies = matches!(
            self.mutant,
            Some(
                Mutant::OrphanCall
                    | Mutant::SecondCompletion
                    | Mutant::SteerTwice
                    | Mutant::SteerAtOnce
                    | Mutant::LastAnswerWins
            )
        );
        if !falsifies {
            return;
        }
        let mut falsified = Vec::with_capacity(out.events.len() + 1);
        for mut event in out.events.drain(..) {
            event.seq = Seq(event.seq.0.saturating_add_signed(self.shift));
            let hit = self.shift == 0
                && match event.kind {
                    EventKind::ToolResult(_) => self.mutant != Some(Mutant::SteerTwice),
                    EventKind::UserMessage { .. } => self.mutant == Some(Mutant::SteerTwice),
                    _ => false,
                };
            match self.mutant {
                Some(Mutant::OrphanCall) if hit => {
                    self.shift = -1;
                    continue;
                }
                Some(Mutant::SecondCompletion | Mutant::SteerTwice) if hit => {
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

    fn appended(&mut self) -> Result<(), Broken> {
        let Some((events, beside)) = self.appending.take() else { return Ok(()) };
        let dies = self.rng.chance(self.plan.crash_percent);
        let refused = !dies && self.rng.chance(self.plan.refuse_percent);
        // A process that dies may leave any part of its last append behind.
        let kept = match (dies, refused) {
            (true, _) => self.rng.below(events.len() as u64 + 1) as usize,
            (false, true) => 0,
            (false, false) => events.len(),
        };
        let all = kept == events.len();
        self.log.extend(events.into_iter().take(kept));
        if all && !refused {
            self.beside.extend(beside);
        }
        if refused {
            self.note(|| "the log refuses".into());
            self.outbox.refused();
            if self.outbox.next_append().is_some() || !self.outbox.ready().is_empty() {
                return Err("something leaves after the log refused".into());
            }
        }
        if dies || refused {
            return self.take_over();
        }
        let released = self.outbox.acknowledged();
        for event in &released.events {
            let said = match &event.kind {
                EventKind::ApprovalRequest { approval_id, kind: QuestionKind::Elicitation, .. } => {
                    people::asked_by_tool(&mut self.rng, approval_id)
                }
                EventKind::ApprovalRequest { approval_id, arguments_hash, .. } => {
                    people::asked(&mut self.rng, &mut self.care, approval_id, arguments_hash)
                }
                EventKind::ToolUse { .. } => match &event.tool_id {
                    Some(id) => people::saw_call(&mut self.rng, id),
                    None => Vec::new(),
                },
                _ => Vec::new(),
            };
            for (after, input) in said {
                self.at(after, Happening::Outside(input));
            }
        }
        for action in released.actions {
            self.perform(action)?;
        }
        self.pump()
    }

    /// The process is gone; another one restores the turn from what the log holds.
    fn take_over(&mut self) -> Result<(), Broken> {
        self.note(|| "the process dies".into());
        self.summary.crashes += 1;
        self.epoch += 1;
        // Steady from now on, sooner or later: a turn that always dies never ends.
        self.plan.crash_percent /= 2;
        self.plan.refuse_percent /= 2;
        self.agenda
            .retain(|_, happening| matches!(happening, Happening::Outside(_) | Happening::Redefine(_)));
        self.outbox = Outbox::new();
        self.replies.clear();
        self.running.clear();
        self.accepted.clear();
        // An answer of a client that only the dead process had was never accepted.
        let ends = self.log.iter().filter(|event| matches!(event.kind, EventKind::ToolResult(_)));
        let ended: BTreeSet<&CallId> = ends.filter_map(|event| event.tool_id.as_ref()).collect();
        self.first_answer.retain(|call, _| ended.contains(call));
        // What was said and not taken in dies with the process: its sender has it still.
        self.waiting.clear();
        self.asked.clear();
        self.appending = None;
        self.shift = 0;
        self.now += self.rng.wait(2_000);
        let (setup, start) = (self.plan.setup.clone(), self.plan.start.clone());
        let log: Vec<Event> = self.log.iter().map(through_json).collect::<Result<_, _>>()?;
        self.turn = Turn::restore(setup.clone(), start.clone(), &log, &self.beside);
        self.shadow = Turn::restore(setup, start, &self.log, &self.beside);
        if !self.turn.knows_the_same_as(&self.shadow) {
            return Err("a log that went through JSON restores differently".into());
        }
        self.message = Message::of(&log);
        self.checker = Checker::default();
        self.consent.forget_log();
        for event in &self.log {
            self.checker.event(event, &self.plan)?;
            self.consent.event(event)?;
        }
        let mut out = Out::default();
        self.turn.resume(self.epoch, self.now, &mut out);
        self.take(out)
    }

    // --- the world ---

    fn perform(&mut self, action: Action) -> Result<(), Broken> {
        self.note(|| format!("! {}", brief(&action)));
        match action {
            Action::CallModel { step, attempt, request, .. } => {
                self.checker.request(&request)?;
                self.summary.model_calls += 1;
                let reply: VecDeque<Item> = upstream::reply(&mut self.rng, &request).into();
                let first = reply.front().map_or(0, |(wait, _)| *wait);
                self.replies.insert((step, attempt), reply);
                self.at(first, Happening::Reply { step, attempt });
            }
            Action::AbortModel { step, attempt } => {
                // Some bytes are on their way already.
                if self.rng.chance(70) {
                    self.replies.remove(&(step, attempt));
                }
            }
            Action::Validate { call, version, arguments, .. } => {
                let refused = arguments.value["q"] == REFUSED_Q;
                let verdict = match self.rng.chance(8) || refused {
                    true => Verdict::Invalid { message: "/q: expected a number".into() },
                    false => Verdict::Valid,
                };
                // The latest verdict about a text counts, also after the same text was sent twice.
                match verdict == Verdict::Valid {
                    true => self.accepted.insert((call.clone(), arguments.text)),
                    false => self.accepted.remove(&(call.clone(), arguments.text)),
                };
                let unchecked = refused && self.mutant == Some(Mutant::EditUnchecked);
                let verdict = if unchecked { Verdict::Valid } else { verdict };
                // Sometimes a check takes so long that the arguments have changed meanwhile.
                let slow = self.rng.chance(10);
                let wait = self.rng.wait(if slow { 200 } else { 3 });
                self.at(wait, Happening::Inside(Input::Validated { call, version, verdict }));
            }
            Action::StartTool { call, attempt, tool, arguments, fingerprint, .. } => {
                let now = self.consent.definition(&tool).unwrap_or_default().to_owned();
                if now != fingerprint && self.mutant != Some(Mutant::ApprovalSurvivesRedefinition) {
                    let start = Some((call, attempt));
                    let input = Input::Redefined { tool, fingerprint: now, start };
                    self.at(0, Happening::Inside(input));
                    return Ok(());
                }
                self.start_tool(&call, attempt)?;
                self.consent.really_starts(&call, &arguments)?;
                let accepted = self.accepted.contains(&(call.clone(), arguments.text.clone()));
                // After a takeover a read runs again with the arguments that the old process had checked.
                if !accepted && self.epoch == 0 {
                    return Err(format!("{call} is started with arguments that were not accepted"));
                }
                if self.mutant == Some(Mutant::SecondStart) {
                    self.start_tool(&call, attempt)?;
                }
                let offered = self.plan.setup.tools.iter().find(|offered| offered.name == tool);
                let timeout_ms = offered.map_or(1_000, |offered| offered.timeout_ms);
                let life = match self.rng.fork(self.counter).chance(15) {
                    true => {
                        self.questions += 1;
                        tool::asks(&mut self.rng, &call, attempt, self.questions)
                    }
                    false => tool::life(&mut self.rng, &call, attempt, &arguments, timeout_ms),
                };
                for (after, input) in life {
                    self.at(after, Happening::Inside(input));
                }
                self.running.insert((call, attempt));
            }
            Action::OfferCall { call, attempt, until, tool, arguments, fingerprint, .. } => {
                let now = self.consent.definition(&tool).unwrap_or_default().to_owned();
                if fingerprint.as_ref().is_some_and(|known| *known != now)
                    && self.mutant != Some(Mutant::ApprovalSurvivesRedefinition)
                {
                    let start = Some((call, attempt));
                    let input = Input::Redefined { tool, fingerprint: now, start };
                    self.at(0, Happening::Inside(input));
                    return Ok(());
                }
                self.offer(&call, attempt)?;
                if fingerprint.is_some() {
                    self.consent.really_starts(&call, &arguments)?;
                }
                let limit = until - self.now;
                let number = self.client_answers;
                self.client_answers += 2;
                for (after, input) in client::asked(&mut self.rng, &call, attempt, limit, number) {
                    self.at(after, Happening::Outside(input));
                }
            }
            Action::AnswerTool { call, attempt, question_id, .. } => {
                self.tell(question_id)?;
                if self.mutant == Some(Mutant::AnswerTwice) {
                    self.tell(question_id)?;
                }
                if self.running.contains(&(call.clone(), attempt)) {
                    for (after, input) in tool::told(&mut self.rng, &call, attempt) {
                        self.at(after, Happening::Inside(input));
                    }
                }
            }
            Action::CancelTool { call, attempt } => {
                if self.running.contains(&(call.clone(), attempt))
                    && let Some((after, input)) = tool::stopped(&mut self.rng, &call, attempt)
                {
                    self.at(after, Happening::Inside(input));
                }
            }
            Action::SetTimer { id, at } => {
                let wait = (at - self.now).max(0);
                self.at(wait, Happening::Inside(Input::Timer { id }));
            }
        }
        Ok(())
    }

    /// A tool gets another definition; sometimes the machine is told at once, else when it wants to start the tool.
    fn redefine(&mut self, tool: ToolName) -> Result<(), Broken> {
        let fingerprint = self.consent.redefine(&tool);
        self.note(|| format!("{tool} is {fingerprint} now"));
        match self.care.chance(40) {
            true => self.input(Input::Redefined { tool, fingerprint, start: None }),
            false => Ok(()),
        }
    }

    /// A tool is told an answer: once for each question.
    fn tell(&mut self, question_id: u64) -> Result<(), Broken> {
        self.asked.remove(&question_id);
        match self.told.insert(question_id) {
            true => Ok(()),
            false => Err(format!("question {question_id} is answered twice")),
        }
    }

    /// A client is asked: its intent must be in the log. After a takeover it is asked again, and knows the call.
    fn offer(&mut self, call: &CallId, attempt: u32) -> Result<(), Broken> {
        if self.epoch == 0 || !self.performed.contains(&(call.clone(), attempt)) {
            self.start_tool(call, attempt)?;
        }
        Ok(())
    }

    /// A tool really starts: its intent must be in the log, and this must be the only time.
    fn start_tool(&mut self, call: &CallId, attempt: u32) -> Result<(), Broken> {
        let intended = self.log.iter().rev().any(|event| {
            event.tool_id.as_ref() == Some(call)
                && matches!(event.kind, EventKind::ToolStart { attempt: intended, .. } if intended == attempt)
        });
        if !intended {
            return Err(format!("{call} is started and its intent is not durable"));
        }
        if self.mutant.is_none() {
            self.checker.really_starts(call, attempt)?;
        }
        if !self.performed.insert((call.clone(), attempt)) {
            return Err(format!("{call} is started twice for one intent"));
        }
        Ok(())
    }

    fn reply(&mut self, step: u32, attempt: u32) -> Result<(), Broken> {
        if self.outbox.is_full() {
            // The rule of the gap: the upstream is not read.
            self.at(1, Happening::Reply { step, attempt });
            return Ok(());
        }
        let Some(reply) = self.replies.get_mut(&(step, attempt)) else { return Ok(()) };
        let Some((_, said)) = reply.pop_front() else { return Ok(()) };
        match reply.front().map(|(wait, _)| *wait) {
            Some(wait) => self.at(wait, Happening::Reply { step, attempt }),
            None => drop(self.replies.remove(&(step, attempt))),
        }
        self.input(match said {
            Said::Event(event) => Input::Model { step, attempt, event },
            Said::Failed(failure) => Input::ModelFailed { step, attempt, failure },
        })
    }

    // --- the end ---

    fn end(mut self) -> Result<(Summary, Vec<Event>), Broken> {
        if !self.turn.is_over() {
            return Err("nothing is left to happen and the turn is not over".into());
        }
        if !self.outbox.is_empty() {
            return Err("nothing is left to happen and the log is behind".into());
        }
        if self.turn.history().is_none() {
            return Err("the turn is over and has no history".into());
        }
        if let Some(question) = self.asked.first() {
            return Err(format!("the turn is over, and question {question} was never answered"));
        }
        let left: BTreeSet<UserMessageId> =
            self.turn.queued().iter().map(|message| message.id.clone()).collect();
        if left != self.waiting || left.iter().any(|id| self.checker.took_in(id)) {
            return Err(format!("{left:?} is handed back, and {:?} waits", self.waiting));
        }
        let whole = Message::of(&self.log);
        if self.mutant.is_none() && whole != self.message {
            return Err("the fold of the log is not the fold of what was seen".into());
        }
        let cut = self.rng.below(self.log.len() as u64 + 1) as usize;
        let snapshot = Message::of(&self.log[..cut]);
        let json = serde_json::to_string(&snapshot).map_err(|error| error.to_string())?;
        let mut resumed: Message =
            serde_json::from_str(&json).map_err(|error| format!("{error} in {json}"))?;
        self.log.iter().for_each(|event| resumed.absorb(event));
        if resumed != whole {
            return Err(format!("a snapshot after {cut} events and the rest is not the whole"));
        }
        let merged = merge_deltas(self.log.clone());
        if Message::of(&merged) != whole {
            return Err("joined deltas fold differently".into());
        }
        let stats = whole.stats.unwrap_or_default();
        self.summary.events = self.log.len() as u64;
        self.summary.calls = self.checker.calls() as u64;
        self.summary.early_starts = self.checker.early_starts;
        self.summary.edited = self.consent.edited;
        self.summary.remembered = self.consent.remembered;
        self.summary.redefined = self.consent.redefined;
        self.summary.asked_by_tools = self.checker.asked_by_tools;
        self.summary.steered = self.checker.said() as u64;
        self.summary.virtual_ms = stats.wall_ms;
        self.summary.status = self.checker.over;
        Ok((self.summary, self.log))
    }
}

fn through_json(event: &Event) -> Result<Event, Broken> {
    let json = serde_json::to_string(event).map_err(|error| error.to_string())?;
    serde_json::from_str(&json).map_err(|error| format!("{error} in {json}"))
}

fn brief(action: &Action) -> String {
    match action {
        Action::CallModel { step, attempt, upstream, request } => {
            format!(
                "call model: step {step}, try {attempt}, upstream {upstream}, {} messages",
                request.messages.len()
            )
        }
        other => format!("{other:?}"),
    }
}
