//! A running turn, as whoever started it sees it: a cursor in the log, and a way to say something.

use crate::approval::Answer;
use crate::decided::{CallCancelled, Decided};
use crate::driver::{Command, LogWait, ToolAnswered};
use crate::input::UserInput;
use crate::media::Shelf;
use crate::said::{Kept, Mailbox, Said, TakenBack};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::fold::Message;
use throughline_engine::{
    ApprovalId, Decision, Event, Question, QueuedMessage, ToolAnswer, TurnId, UserMessageId, When,
};
use throughline_store::{Log, Record, Tail};
use throughline_wire::CallId;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

/// A turn: its events, one after the other, and the message that they add up to.
///
/// The turn runs whether or not anyone reads it; events wait in the log, in order and complete. Dropping the `Turn`
/// stops it (as [`cancel`](Self::cancel) does), so that a forgotten turn costs nothing; [`detach`](Self::detach) lets
/// it run on.
pub struct Turn {
    id: TurnId,
    reader: Reader,
    message: Message,
    control: TurnControl,
    /// Stops the turn when dropped.
    guard: Option<DropGuard>,
}

impl Turn {
    pub(crate) fn new(id: TurnId, log: Arc<dyn Log>, tail: Box<dyn Tail>, control: TurnControl) -> Self {
        let guard = Some(control.abandoned.clone().drop_guard());
        let reader = Reader {
            turn: id.clone(),
            log,
            tail,
            over: control.over.clone(),
            after: 0,
            waiting: VecDeque::new(),
            tail_state: TailState::Open,
        };
        Self { id, reader, message: Message::default(), control, guard }
    }

    /// Its id, as in its events.
    pub fn id(&self) -> &TurnId {
        &self.id
    }

    /// The next event; `None` after the last. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        let event = self.reader.next().await?;
        self.message.absorb(&event);
        Some(event)
    }

    /// The message as far as it has been read: the fold of the events that [`next`](Self::next) has given.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Reads to the end and gives the whole message: blocks, calls with their outcomes, usage, status. This is the use
    /// without streaming, and not a second path. R: T13
    ///
    /// If the log was lost under the turn, the message has no `status`: what it holds is what is known.
    pub async fn finish(mut self) -> Message {
        while self.next().await.is_some() {}
        self.message
    }

    /// Answers one question. See [`TurnControl::answer`].
    pub async fn approve(&self, question: ApprovalId, decision: Decision) -> Accepted {
        self.control.answer(question, decision, None).await
    }

    /// Stops the turn: the upstream's stream, waiting questions, running tools. The message keeps what there is, and
    /// every call ends with what truthfully became of it. Events go on until the last one. R: T8
    pub async fn cancel(&self) -> Accepted {
        self.control.cancel().await
    }

    /// Stops one call; the turn goes on. R: T8
    pub async fn cancel_call(&self, call: CallId) -> CallCancelled {
        self.control.cancel_call(call).await
    }

    /// A handle for other tasks: to stop the turn at Ctrl-C, or to answer from elsewhere.
    pub fn control(&self) -> TurnControl {
        self.control.clone()
    }

    /// Lets the turn run to its end without this handle.
    pub fn detach(mut self) -> TurnControl {
        if let Some(guard) = self.guard.take() {
            guard.disarm();
        }
        self.control.clone()
    }
}

/// Says something to a running turn. Cheap to clone; holding it does not keep the turn alive.
#[derive(Clone, Debug)]
pub struct TurnControl {
    pub(crate) commands: mpsc::Sender<Box<Command>>,
    pub(crate) over: CancellationToken,
    /// The handle has been dropped: the turn is being stopped.
    pub(crate) abandoned: CancellationToken,
    /// What the user says in mid-turn.
    pub(crate) mailbox: Mailbox,
    /// How much of that may wait.
    pub(crate) messages_max: usize,
    /// Where what is too large for the log goes.
    pub(crate) shelf: Shelf,
    pub(crate) log_wait: LogWait,
}

/// Whether a turn has taken a command. What came of it is told by its events: of a cancel and an end that race, one
/// wins, and everybody sees the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a turn that is over does nothing any more"]
pub enum Accepted {
    /// It will be looked at.
    Yes,
    /// The turn is over.
    TurnIsOver,
}

impl TurnControl {
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.is_cancelled()
    }

    /// Answers one question. The reason of a denial is told to the model.
    pub async fn answer(&self, question: ApprovalId, decision: Decision, reason: Option<String>) -> Accepted {
        self.answer_with(question, Answer::plain(decision, reason)).await
    }

    /// Answers one question, with changed arguments or for longer than this call. R: A2
    pub async fn answer_with(&self, question: ApprovalId, answer: Answer) -> Accepted {
        self.send(Command::Answer { question: Question::One(question), answer, by: "user".to_owned() }).await
    }

    /// Answers one question and tells what became of the answer when the log has it. Of several the first counts, and
    /// everybody is told the same. R: A3
    pub async fn decide(&self, question: ApprovalId, answer: Answer) -> Decided {
        self.decide_as(question, answer, "user").await
    }

    /// The same in the name of somebody, who then stands in the log.
    pub async fn decide_as(&self, question: ApprovalId, answer: Answer, by: &str) -> Decided {
        let (reply, decided) = oneshot::channel();
        match self.send(Command::Decide { question, answer, by: by.to_owned(), reply }).await {
            Accepted::Yes => decided.await.unwrap_or(Decided::TurnIsOver),
            Accepted::TurnIsOver => Decided::TurnIsOver,
        }
    }

    /// Answers all questions that are open now.
    pub async fn answer_all(&self, decision: Decision, reason: Option<String>) -> Accepted {
        let answer = Answer::plain(decision, reason);
        self.send(Command::Answer { question: Question::All, answer, by: "user".to_owned() }).await
    }

    /// Answers a question of a running tool. What a person filled in is checked first; what does not fit can be corrected.
    /// R: L6
    pub async fn answer_tool(&self, question: ApprovalId, answer: ToolAnswer) -> ToolAnswered {
        let (reply, answered) = oneshot::channel();
        let command = Command::AnswerTool { question, answer, by: "user".to_owned(), reply };
        match self.send(command).await {
            Accepted::Yes => answered.await.unwrap_or(ToolAnswered::TurnIsOver),
            Accepted::TurnIsOver => ToolAnswered::TurnIsOver,
        }
    }

    /// Says something while the turn runs: to be taken in before its next step, or to begin the next turn with. R: T14
    ///
    /// What is not taken in when the turn is over stays in [`queued`](Self::queued); a
    /// [`Conversation`](crate::Conversation) begins its next turn with it.
    pub async fn say(&self, input: impl Into<UserInput>, when: When) -> Said {
        let id = UserMessageId::new(format!("said_{}", Uuid::now_v7().simple()));
        self.say_as(id, input, when).await
    }

    /// The same under an id of one's own, unique in the turn. Saying it twice is saying it once.
    pub async fn say_as(&self, id: UserMessageId, input: impl Into<UserInput>, when: When) -> Said {
        if self.is_over() {
            return Said::TurnIsOver;
        }
        let mut input = input.into().into_parts();
        self.shelf.put_away_parts(&mut input).await;
        let message = QueuedMessage { id: id.clone(), input, when };
        if self.mailbox.keep(message.clone(), self.messages_max) == Kept::Full {
            return Said::Full;
        }
        match self.send(Command::Say(message)).await {
            // If the end comes first, it waits for the next turn.
            Accepted::Yes => Said::Queued(id),
            Accepted::TurnIsOver => {
                self.mailbox.remove(&id);
                Said::TurnIsOver
            }
        }
    }

    /// Takes a message back that was not taken in yet. R: T14
    pub async fn take_back(&self, id: UserMessageId) -> TakenBack {
        let (reply, taken) = oneshot::channel();
        match self.send(Command::TakeBack { id: id.clone(), reply }).await {
            Accepted::Yes => match taken.await {
                Ok(taken) => taken,
                Err(_) => self.take_back_at_the_end(&id),
            },
            Accepted::TurnIsOver => self.take_back_at_the_end(&id),
        }
    }

    fn take_back_at_the_end(&self, id: &UserMessageId) -> TakenBack {
        self.mailbox.remove(id).map_or(TakenBack::TooLate, |message| TakenBack::Yes(message.input))
    }

    /// What was said and not taken in, oldest first. After the end: what the next turn should begin with.
    pub fn queued(&self) -> Vec<QueuedMessage> {
        self.mailbox.waiting()
    }

    /// The same after the end, and whoever takes it has it. While the turn runs it is the turn's: nothing is given.
    pub fn take_queued(&self) -> Vec<QueuedMessage> {
        if self.is_over() { self.mailbox.take() } else { Vec::new() }
    }

    /// Stops the turn. A second time: without waiting for tools to say how they ended.
    pub async fn cancel(&self) -> Accepted {
        self.send(Command::Cancel { why: None }).await
    }

    /// The same in the name of whoever runs the turn and not of its user: its notice gives this reason.
    pub async fn cancel_because(&self, why: impl Into<String>) -> Accepted {
        self.send(Command::Cancel { why: Some(why.into()) }).await
    }

    /// Stops one call, and tells what came of it when the log has it.
    pub async fn cancel_call(&self, call: CallId) -> CallCancelled {
        let (reply, cancelled) = oneshot::channel();
        match self.send(Command::CancelCall { call, reply }).await {
            Accepted::Yes => cancelled.await.unwrap_or(CallCancelled::TurnIsOver),
            Accepted::TurnIsOver => CallCancelled::TurnIsOver,
        }
    }

    /// For how long the turn has been waiting for its log by now: what happens meanwhile is seen only when the log has it.
    pub fn waits_for_log(&self) -> Option<Duration> {
        self.log_wait.so_far()
    }

    /// Waits until the turn is over and the log has all of it.
    pub async fn ended(&self) {
        self.over.cancelled().await;
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    async fn send(&self, command: Command) -> Accepted {
        match self.commands.send(Box::new(command)).await {
            Ok(()) => Accepted::Yes,
            Err(_) => Accepted::TurnIsOver,
        }
    }
}

/// A cursor in the log that also notices when nobody writes any more.
struct Reader {
    turn: TurnId,
    log: Arc<dyn Log>,
    tail: Box<dyn Tail>,
    over: CancellationToken,
    after: u64,
    waiting: VecDeque<Event>,
    tail_state: TailState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TailState {
    Open,
    /// The driver is gone; what the log holds is read once more without waiting.
    DriverGone,
    Ended,
}

/// Events read at once from the log of a turn that nobody drives any more.
const RECORDS_PER_READ: usize = 1_024;

impl Reader {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                self.after = event.seq.0;
                return Some(event);
            }
            match self.tail_state {
                TailState::Ended => return None,
                TailState::DriverGone => {
                    let read = self.log.read(self.turn.as_str(), self.after, RECORDS_PER_READ).await;
                    let records = read.unwrap_or_default();
                    if records.is_empty() {
                        self.tail_state = TailState::Ended;
                    }
                    self.take(records);
                }
                TailState::Open => tokio::select! {
                    biased;
                    records = self.tail.next() => match records {
                        Ok(Some(records)) => self.take(records),
                        Ok(None) | Err(_) => {
                            // The last event is in the log a moment before the turn has let go of everything; whoever
                            // sees the end may rely on both.
                            self.over.cancelled().await;
                            self.tail_state = TailState::Ended;
                        }
                    },
                    () = self.over.cancelled() => self.tail_state = TailState::DriverGone,
                },
            }
        }
    }

    fn take(&mut self, records: Vec<Record>) {
        // Written by this process: a record that cannot be read does not occur, and a reader ignores what it does not
        // know.
        self.waiting.extend(records.iter().filter_map(|record| serde_json::from_slice(&record.payload).ok()));
        if let Some(last) = records.last() {
            self.after = self.after.max(last.seq);
        }
    }
}
