//! A turn as OpenAI Chat Completions: events in, chunks out. Pure: no socket, no clock, and no type of the web framework.
//!
//! Every rule here was learnt on a real client (`reference/surfaces.md` §3; which client, in [docs/openai-clients.md]):
//! one role, one finish, one `[DONE]`; one thing a chunk; what only we know on a key of its own, `throughline`, of an
//! otherwise empty chunk, since named events and foreign objects break clients; never a call that the server runs as
//! `tool_calls`, since clients run those again. // R: E2, T13
//!
//! [docs/openai-clients.md]: https://github.com/throughline/throughline/blob/main/docs/openai-clients.md

pub mod call_id;
pub mod question;
pub mod request;

mod error;
mod piece;
mod prose;
mod visible;
mod whole;

pub use error::{Again, ErrorBody, Refusal};
pub use piece::{CallPiece, Finish, Head, OPEN, Piece, Writer, heartbeat, usage_value};
pub use visible::CARD_OUTPUT_CHARS_MAX;
pub use whole::Whole;

use piece::add_usage;
use prose::Prose;
use question::CallQuestion;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use throughline::config::Render;
use throughline_engine::{
    BlockStart, Event, EventKind, Fault, QuestionKind, REQUESTER, ToolInput, ToolResult, TurnStatus,
};
use throughline_wire::{CallId, FinishReason, Usage};
use visible::{Done, Shown};

/// Whether tokens are told at the end. OpenAI's own idiom `chunk.choices[0]` fails on the chunk that tells them, so it
/// comes only if asked for (surfaces.md §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsageChunk {
    /// `stream_options.include_usage` is set, or the answer is not streamed.
    Wanted,
    /// It is not.
    #[default]
    Unwanted,
}

/// Which texts of the turn's steps are the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerText {
    /// All of them, one after the other.
    #[default]
    EveryStep,
    /// The last one's: what was said before a tool was called would stand in front of the JSON that is asked for, so it
    /// goes to the reasoning.
    LastStep,
}

/// How one answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The turn is over.
    TurnIsOver,
    /// The turn waits for the client's own tools, and will go on in another answer.
    CallsHandedOver,
    /// The turn waits for a person, who answers with the next message, and will go on in another answer.
    Asked,
}

/// Where questions whether a call may run are put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asking {
    /// To whoever reads the events: the answer goes on when they are answered.
    #[default]
    Events,
    /// In the text: the answer ends with them.
    Text,
    /// To nobody: they are denied.
    Nobody,
}

/// One answer: a turn from its beginning, or from where an answer before ended with calls for the client.
pub struct Projection {
    usage_chunk: UsageChunk,
    render: Render,
    answer_text: AnswerText,
    /// The text of the step that runs, if only the last one's is the answer: nobody knows yet whether it is.
    step_text: String,
    asking: Asking,
    /// The calls of the turn so far, in order of appearance.
    calls: Vec<Known>,
    step_is_over: StepIsOver,
    /// Where the deltas of an open block go.
    open: BTreeMap<u32, Channel>,
    content: Prose,
    refusal: Prose,
    reasoning: Prose,
    /// Calls and remarks to be shown in the text when no block of text is open: nothing is put into a sentence.
    held: Vec<Held>,
    /// The same for reasoning.
    held_thoughts: Vec<String>,
    usage: Usage,
    finish: Option<FinishReason>,
    fault: Option<Fault>,
    begun: Begun,
    ended: Option<Ended>,
}

/// Whether there is anything of an answer yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The model has said something, or a tool runs.
    Yes,
    /// Nothing has happened: if it fails now, it is as if it had never begun.
    No,
}

/// Something to be shown.
struct Held {
    text: String,
    /// It says that this call runs, which is no news once its result is there.
    start_of: Option<CallId>,
}

impl From<String> for Held {
    fn from(text: String) -> Self {
        Self { text, start_of: None }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StepIsOver {
    Yes,
    No,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Channel {
    Content,
    Refusal,
    Reasoning,
    /// Sound: told as events only.
    Other,
}

/// A call as far as this surface looks at it.
struct Known {
    id: CallId,
    wire_name: String,
    tool_name: String,
    title: String,
    order: (u32, u32),
    input_summary: String,
    arguments: String,
    state: State,
    runs: Runs,
    handed_over: HandedOver,
    asks: Option<Asks>,
}

/// A question that is open.
struct Asks {
    approval_id: String,
    arguments_hash: String,
    question: String,
    put: HandedOver,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Arguments, a question, a place in the row.
    NotStarted,
    Started,
    Closed,
}

/// Whether an answer before has given a call or a question to the client: what comes of it is on the way, and it is not given
/// again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HandedOver {
    Before,
    NotYet,
}

/// Who runs a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// The server, or a page that is connected to it.
    Here,
    /// The client that reads this answer.
    AtTheClient,
}

impl Projection {
    /// An answer of which nothing has been said.
    pub fn new(usage_chunk: UsageChunk, render: Render) -> Self {
        Self {
            usage_chunk,
            render,
            answer_text: AnswerText::EveryStep,
            step_text: String::new(),
            asking: Asking::default(),
            calls: Vec::new(),
            step_is_over: StepIsOver::No,
            open: BTreeMap::new(),
            content: Prose::default(),
            refusal: Prose::default(),
            reasoning: Prose::default(),
            held: Vec::new(),
            held_thoughts: Vec::new(),
            usage: Usage::default(),
            finish: None,
            fault: None,
            begun: Begun::No,
            ended: None,
        }
    }

    /// The same with these texts. What is shown of tools goes to the reasoning where only JSON can stand in the answer.
    pub fn with_text(mut self, answer_text: AnswerText) -> Self {
        self.answer_text = answer_text;
        if answer_text == AnswerText::LastStep && matches!(self.render, Render::Text | Render::Details) {
            self.render = Render::Reasoning;
        }
        self
    }

    /// How tools are shown.
    pub fn render(&self) -> Render {
        self.render
    }

    /// The same, and questions are put there.
    #[must_use]
    pub fn asking(self, asking: Asking) -> Self {
        Self { asking, ..self }
    }

    /// Whether a question has no place here, so that nobody will answer it.
    pub fn cannot_put(&self, question: QuestionKind) -> bool {
        match self.asking {
            Asking::Events => false,
            // What a running tool asks is filled in or done elsewhere; a chat window has a yes and a no.
            Asking::Text => question != QuestionKind::Call,
            Asking::Nobody => true,
        }
    }

    /// Another answer of the same kind, of which nothing has been said.
    pub fn afresh(&self) -> Self {
        Self::new(self.usage_chunk, self.render).with_text(self.answer_text).asking(self.asking)
    }

    /// The first piece, to be sent before anything is known of the answer.
    pub fn open(&self) -> Piece {
        Piece::Role
    }

    /// Takes an event that an answer before has shown.
    pub fn catch_up(&mut self, event: &Event) {
        self.learn(event);
    }

    /// The client brings the results of the calls that it was given.
    pub fn go_on(&mut self) {
        self.begun = Begun::No;
        for call in self.calls.iter_mut().filter(|call| call.waits_for_the_client()) {
            call.handed_over = HandedOver::Before;
        }
    }

    /// The client brings the answer to the questions that it was given.
    pub fn go_on_answered(&mut self) {
        self.begun = Begun::No;
        for asks in self.calls.iter_mut().filter_map(|call| call.asks.as_mut()) {
            asks.put = HandedOver::Before;
        }
    }

    /// The questions that the answer is to end with, once the turn waits for nothing else. They are put with
    /// [`ask`](Self::ask), and nothing follows them.
    pub fn questions(&self) -> Vec<CallQuestion> {
        let waits = |call: &Known| call.asks.is_some() || call.waits_for_the_client();
        let mut open = self.calls.iter().filter(|call| call.state != State::Closed);
        let is_due = self.asking == Asking::Text
            && self.ended.is_none()
            && self.step_is_over == StepIsOver::Yes
            && open.all(waits)
            // One of these that is still open has been answered already, and the log is about to say so.
            && self.calls.iter().filter_map(|call| call.asks.as_ref()).all(|asks| asks.put == HandedOver::NotYet);
        if !is_due {
            return Vec::new();
        }
        let mut asking: Vec<(&Known, &Asks)> =
            self.calls.iter().filter_map(|call| Some((call, call.asks.as_ref()?))).collect();
        asking.sort_by_key(|(call, _)| call.order);
        let question = |(call, asks): (&Known, &Asks)| CallQuestion {
            approval_id: asks.approval_id.clone(),
            arguments_hash: asks.arguments_hash.clone(),
            question: asks.question.clone(),
            arguments: serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments)),
        };
        asking.into_iter().map(question).collect()
    }

    /// Ends the answer with this text, which asks.
    pub fn ask(&mut self, text: &str) -> Vec<Piece> {
        let mut out = Vec::new();
        self.open.clear();
        self.release(&mut out);
        out.push(Piece::Content(self.content.close_with(text)));
        self.finish_with(Finish::Stop, &mut out);
        self.ended = Some(Ended::Asked);
        out
    }

    /// Takes the next event: what the client is told of it, in order. Nothing once the answer has [`ended`](Self::ended).
    pub fn push(&mut self, event: &Event) -> Vec<Piece> {
        let mut out = Vec::new();
        if self.ended.is_some() {
            return out;
        }
        self.learn(event);
        if matches!(event.kind, EventKind::StreamEnd { .. }) {
            // Whatever was open stays as it is.
            self.open.clear();
            self.release(&mut out);
        }
        self.show(event, &mut out);
        if let EventKind::StreamEnd { status } = event.kind {
            self.end(status, &mut out);
        } else if self.waits_for_the_client_alone() && self.clients_calls().all(Known::is_new_to_the_client) {
            self.hand_over(&mut out);
        }
        out
    }

    /// Whether there is anything of this answer yet.
    pub fn begun(&self) -> Begun {
        self.begun
    }

    /// Whether everything has been said, and how the answer ended.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Whether the turn, as far as its events have been taken, waits for nothing but answers of the client.
    pub fn waits_for_the_client_alone(&self) -> bool {
        let mut open = self.calls.iter().filter(|call| call.state != State::Closed).peekable();
        self.step_is_over == StepIsOver::Yes && open.peek().is_some() && open.all(Known::waits_for_the_client)
    }

    /// The calls that the client is to run, in order.
    pub fn calls_of_the_client(&self) -> Vec<CallId> {
        self.clients_calls().map(|call| call.id.clone()).collect()
    }

    fn clients_calls(&self) -> impl Iterator<Item = &Known> {
        let mut calls: Vec<&Known> = self.calls.iter().filter(|call| call.waits_for_the_client()).collect();
        calls.sort_by_key(|call| call.order);
        calls.into_iter()
    }

    /// What has to be known of the turn, whoever is told.
    fn learn(&mut self, event: &Event) {
        if is_of_the_answer(&event.kind) {
            self.begun = Begun::Yes;
        }
        match &event.kind {
            EventKind::StepStart { .. } => self.step_is_over = StepIsOver::No,
            EventKind::StepEnd { finish, .. } => {
                self.step_is_over = StepIsOver::Yes;
                self.finish = *finish;
            }
            EventKind::ToolUse { tool_name, wire_name, title, slot, position, input_summary, .. } => {
                let Some(id) = event.tool_id.clone() else { return };
                self.calls.push(Known {
                    id,
                    wire_name: wire_name.as_str().to_owned(),
                    tool_name: tool_name.as_str().to_owned(),
                    title: title.clone(),
                    order: (*position, slot.0),
                    input_summary: input_summary.clone(),
                    arguments: String::new(),
                    state: State::NotStarted,
                    runs: Runs::Here,
                    handed_over: HandedOver::NotYet,
                    asks: None,
                });
            }
            EventKind::ToolInput(input) => {
                if let Some(call) = self.call_mut(event) {
                    call.arguments = arguments_text(input);
                    call.input_summary.clone_from(&input.input_summary);
                }
            }
            EventKind::ToolInputReset | EventKind::ToolRedefined { .. } => {
                if let Some(call) = self.call_mut(event) {
                    call.state = State::NotStarted;
                    call.asks = None;
                }
            }
            EventKind::ApprovalRequest { approval_id, kind, question, arguments_hash, .. }
                if *kind == QuestionKind::Call =>
            {
                let asks = Asks {
                    approval_id: approval_id.as_str().to_owned(),
                    arguments_hash: arguments_hash.clone(),
                    question: question.clone(),
                    put: HandedOver::NotYet,
                };
                if let Some(call) = self.call_mut(event) {
                    call.asks = Some(asks);
                }
            }
            EventKind::ApprovalResolved { approval_id, .. } => {
                let is_it = |asks: &mut Asks| asks.approval_id == approval_id.as_str();
                if let Some(call) = self.call_mut(event) {
                    call.asks.take_if(is_it);
                }
            }
            EventKind::ToolStart { client_id, .. } => {
                let is_theirs = client_id.as_deref() == Some(REQUESTER);
                if let Some(call) = self.call_mut(event) {
                    call.state = State::Started;
                    call.runs = if is_theirs { Runs::AtTheClient } else { Runs::Here };
                }
            }
            EventKind::ToolResult(_) => {
                if let Some(call) = self.call_mut(event) {
                    call.state = State::Closed;
                    call.asks = None;
                }
            }
            _ => {}
        }
    }

    fn call_mut(&mut self, event: &Event) -> Option<&mut Known> {
        let id = event.tool_id.as_ref()?;
        self.calls.iter_mut().rev().find(|call| call.id == *id)
    }

    fn show(&mut self, event: &Event, out: &mut Vec<Piece>) {
        match &event.kind {
            EventKind::ContentDelta { text } => self.say(event.block, text, out),
            EventKind::Thinking { text } => self.say(event.block, text, out),
            EventKind::BlockStart(start) => self.open_block(event, start, out),
            EventKind::BlockEnd => {
                if let Some(at) = event.block {
                    self.open.remove(&at);
                }
                self.release(out);
            }
            EventKind::BlockSuperseded { .. } => {
                self.step_text.clear();
                // What was sent cannot be taken back: what replaces it begins a new paragraph.
                if let Some(prose) = event.block.and_then(|at| self.prose_of(at)) {
                    prose.begin_block();
                }
                out.push(told(event, None));
            }
            EventKind::StepEnd { usage, .. } => {
                if let Some(usage) = usage {
                    add_usage(&mut self.usage, usage);
                }
            }
            EventKind::ToolStart { .. } => self.show_start(event, out),
            EventKind::ToolResult(result) => self.show_result(event, result, out),
            // It stands at the end of the answer; what a running tool asks cannot be answered there.
            EventKind::ApprovalRequest { .. } if self.asking == Asking::Text => out.push(told(event, None)),
            EventKind::ApprovalRequest { question, .. } => self.show_remark(event, question, Done::No, out),
            EventKind::ApprovalResolved { decision, .. } => {
                let status = (self.render == Render::OwuiEvent)
                    .then(|| visible::status(visible::decided(*decision), Done::Yes));
                out.push(told(event, status));
            }
            EventKind::Error(fault) => self.fault = Some(fault.clone()),
            EventKind::StreamStart { .. }
            | EventKind::UserMessage { .. }
            | EventKind::ToolUse { .. }
            | EventKind::ToolInput(_)
            | EventKind::ToolInputReset
            | EventKind::ToolRedefined { .. }
            | EventKind::ToolProgress(_)
            | EventKind::Citation { .. }
            | EventKind::AudioDelta { .. }
            | EventKind::Waiting { .. }
            | EventKind::Problem { .. }
            | EventKind::TurnResumed { .. }
            | EventKind::SessionStats(_)
            | EventKind::StreamEnd { .. } => out.push(told(event, None)),
            EventKind::StepStart { .. } => self.set_step_text_aside(out),
            EventKind::ToolInputDelta { .. } | EventKind::Unrecognised => {}
        }
    }

    fn open_block(&mut self, event: &Event, start: &BlockStart, out: &mut Vec<Piece>) {
        let channel = match start {
            BlockStart::Text { code } if code.as_deref() == Some("refusal") => Channel::Refusal,
            BlockStart::Text { .. } => Channel::Content,
            BlockStart::Thinking => Channel::Reasoning,
            BlockStart::Audio => Channel::Other,
            BlockStart::Image(media) => {
                out.push(told(event, None));
                if matches!(self.render, Render::Text | Render::Details) {
                    self.held.push(visible::picture(media).into());
                    self.release(out);
                }
                return;
            }
            BlockStart::Notice { text, .. } => {
                self.show_remark(event, text, Done::Yes, out);
                return;
            }
            // The error itself follows.
            BlockStart::Error(_) | BlockStart::Unrecognised => return,
        };
        let Some(at) = event.block else { return };
        self.open.insert(at, channel);
        if let Some(prose) = self.prose_of(at) {
            prose.begin_block();
        }
    }

    fn prose_of(&mut self, block: u32) -> Option<&mut Prose> {
        match self.open.get(&block)? {
            Channel::Content => Some(&mut self.content),
            Channel::Refusal => Some(&mut self.refusal),
            Channel::Reasoning => Some(&mut self.reasoning),
            Channel::Other => None,
        }
    }

    fn say(&mut self, block: Option<u32>, text: &str, out: &mut Vec<Piece>) {
        let Some(at) = block else { return };
        let Some(channel) = self.open.get(&at).copied() else { return };
        let Some(text) = self.prose_of(at).and_then(|prose| prose.say(text)) else { return };
        match channel {
            Channel::Content if self.answer_text == AnswerText::LastStep => self.step_text.push_str(&text),
            Channel::Content => out.push(Piece::Content(text)),
            Channel::Refusal => out.push(Piece::Refusal(text)),
            Channel::Reasoning => out.push(Piece::Reasoning(text)),
            Channel::Other => {}
        }
    }

    /// Another step follows, so what the one before said is not the answer.
    fn set_step_text_aside(&mut self, out: &mut Vec<Piece>) {
        if !self.step_text.is_empty() {
            self.held_thoughts.push(std::mem::take(&mut self.step_text));
            self.content = Prose::default();
            self.release(out);
        }
    }

    /// No step follows: what this one said is the answer.
    fn give_step_text(&mut self, out: &mut Vec<Piece>) {
        if !self.step_text.is_empty() {
            out.push(Piece::Content(std::mem::take(&mut self.step_text)));
        }
    }

    fn show_start(&mut self, event: &Event, out: &mut Vec<Piece>) {
        let Some(call) = self.call_of(event).filter(|call| call.runs == Runs::Here) else {
            out.push(told(event, None));
            return;
        };
        let id = call_id::public(&call.id);
        let shown = call.shown(&id);
        let text = match self.render {
            Render::None => String::new(),
            Render::Text => visible::line_of_start(&shown),
            Render::Details => visible::card_of_start(&shown),
            Render::Reasoning => visible::thought(&shown.what()),
            Render::OwuiEvent => shown.what(),
        };
        let status = (self.render == Render::OwuiEvent).then(|| visible::status(&text, Done::No));
        out.push(told(event, status));
        match self.render {
            Render::Text | Render::Details => self.held.push(Held { text, start_of: event.tool_id.clone() }),
            Render::Reasoning => self.held_thoughts.push(text),
            Render::None | Render::OwuiEvent => {}
        }
        self.release(out);
    }

    fn show_result(&mut self, event: &Event, result: &ToolResult, out: &mut Vec<Piece>) {
        // A result that the client itself has sent is no news to it.
        let Some(call) = self.call_of(event).filter(|call| call.runs == Runs::Here) else {
            out.push(told(event, None));
            return;
        };
        let id = call_id::public(&call.id);
        let shown = call.shown(&id);
        let line = match self.render {
            Render::None => String::new(),
            Render::Text => visible::line(&shown, result),
            Render::Details => visible::card(&shown, result),
            Render::Reasoning => visible::thought_of_result(&shown, result),
            Render::OwuiEvent => shown.what(),
        };
        let status = (self.render == Render::OwuiEvent).then(|| visible::status(&line, Done::Yes));
        out.push(told(event, status));
        match self.render {
            Render::Text | Render::Details => {
                self.held.retain(|held| held.start_of.is_none() || held.start_of != event.tool_id);
                self.held.push(line.into());
            }
            Render::Reasoning => self.held_thoughts.push(line),
            Render::None | Render::OwuiEvent => {}
        }
        self.release(out);
    }

    /// A remark or a question, for people.
    fn show_remark(&mut self, event: &Event, text: &str, done: Done, out: &mut Vec<Piece>) {
        let status = (self.render == Render::OwuiEvent).then(|| visible::status(text, done));
        out.push(told(event, status));
        match self.render {
            Render::Text | Render::Details => self.held.push(visible::quoted(text).into()),
            Render::Reasoning => self.held_thoughts.push(visible::thought(text)),
            Render::None | Render::OwuiEvent => {}
        }
        self.release(out);
    }

    fn call_of(&self, event: &Event) -> Option<&Known> {
        let id = event.tool_id.as_ref()?;
        self.calls.iter().rev().find(|call| call.id == *id)
    }

    /// Shows what was held back, where no block is open that it would tear apart.
    fn release(&mut self, out: &mut Vec<Piece>) {
        let is_open = |channel| self.open.values().any(|open| *open == channel);
        if !is_open(Channel::Content) {
            for card in self.held.drain(..) {
                out.push(Piece::Content(self.content.insert(&card.text)));
            }
        }
        if !is_open(Channel::Reasoning) {
            for thought in self.held_thoughts.drain(..) {
                out.push(Piece::Reasoning(self.reasoning.insert(&thought)));
            }
        }
    }

    /// The turn waits for the client: it gets its calls, and this answer is over.
    fn hand_over(&mut self, out: &mut Vec<Piece>) {
        self.open.clear();
        self.release(out);
        self.give_step_text(out);
        for (index, call) in self.clients_calls().enumerate() {
            let (id, name) = (call_id::public(&call.id), call.wire_name.clone());
            out.push(Piece::Call(CallPiece { index, id, name, arguments: call.arguments.clone() }));
        }
        self.finish_with(Finish::ToolCalls, out);
        self.ended = Some(Ended::CallsHandedOver);
    }

    fn end(&mut self, status: TurnStatus, out: &mut Vec<Piece>) {
        self.ended = Some(Ended::TurnIsOver);
        self.give_step_text(out);
        match (status, self.finish) {
            (TurnStatus::Error | TurnStatus::Interrupted, _) => {
                out.push(Piece::Error(ErrorBody::of_turn(self.fault.as_ref(), status)));
                out.push(Piece::Done);
            }
            (TurnStatus::Length, _) => self.finish_with(Finish::Length, out),
            (_, Some(FinishReason::ContentFilter)) => self.finish_with(Finish::ContentFilter, out),
            // After a limit the last step has answered without tools: the answer is whole. What was stopped on purpose
            // is as whole as it was meant to be.
            (TurnStatus::Completed | TurnStatus::Limit | TurnStatus::Cancelled, _) => {
                self.finish_with(Finish::Stop, out);
            }
        }
    }

    fn finish_with(&mut self, finish: Finish, out: &mut Vec<Piece>) {
        out.push(Piece::Finish(finish));
        if self.usage_chunk == UsageChunk::Wanted {
            out.push(Piece::Usage(self.usage));
        }
        out.push(Piece::Done);
    }
}

impl Known {
    fn waits_for_the_client(&self) -> bool {
        self.state == State::Started && self.runs == Runs::AtTheClient
    }

    fn is_new_to_the_client(&self) -> bool {
        self.handed_over == HandedOver::NotYet
    }

    fn shown<'a>(&'a self, id: &'a str) -> Shown<'a> {
        Shown {
            id,
            name: &self.tool_name,
            title: &self.title,
            input_summary: &self.input_summary,
            arguments: &self.arguments,
        }
    }
}

/// What a client would notice if it were taken back.
fn is_of_the_answer(kind: &EventKind) -> bool {
    match kind {
        EventKind::BlockStart(start) => {
            !matches!(start, BlockStart::Error(_) | BlockStart::Notice { .. } | BlockStart::Unrecognised)
        }
        EventKind::ToolUse { .. } | EventKind::ToolStart { .. } | EventKind::ToolResult(_) => true,
        _ => false,
    }
}

/// The argument text that a call runs with.
fn arguments_text(input: &ToolInput) -> String {
    match (&input.text, &input.arguments, &input.raw) {
        (Some(text), _, _) => text.clone(),
        (None, Some(value), _) => value.to_string(),
        (None, None, raw) => raw.clone().unwrap_or_default(),
    }
}

/// The event as in `docs/events.md`, but for what the client has sent itself, and with the address of an answer.
fn told(event: &Event, status: Option<Value>) -> Piece {
    let mut value = serde_json::to_value(event).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        match &event.kind {
            EventKind::StreamStart { .. } | EventKind::UserMessage { .. } => {
                drop(fields.shift_remove("input"))
            }
            EventKind::ApprovalRequest { approval_id, .. } => {
                let url = format!("/v1/turns/{}/approvals/{approval_id}", event.turn_id);
                fields.insert("answer_url".into(), json!(url));
            }
            _ => {}
        }
    }
    Piece::Event { event: value, status }
}
