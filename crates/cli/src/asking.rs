//! Questions to whoever sits at a terminal, answered by lines.

use crate::chat::answering;
use crate::chat::dialog::{Reply, remembered};
use crate::chat::form::Filled;
use crate::chat::question::{Question, Wants, edited};
use crate::chat::transcript::{Reasoning, Transcript};
use crate::messages::Words;
use crate::plain::for_terminal;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};
use throughline::{
    Answer, Decision, Event, EventKind, Remember, Scope, Throughline, ToolAnswer, TurnControl,
};
use throughline_engine::{ApprovalId, Constraints};
use tokio::sync::mpsc;

/// Lines read ahead.
const LINES_WAITING_MAX: usize = 64;

/// Questions of one turn, asked one after the other on standard error.
pub struct Asking {
    control: TurnControl,
    app: Throughline,
    words: Words,
    /// Knows what is asked, as the screen does.
    turn: Transcript,
    /// The question that was printed.
    shown: Option<ApprovalId>,
    /// Everything further is allowed.
    all: bool,
    remember: Option<Remember>,
    filled: Filled,
}

impl Asking {
    /// Nothing has been asked yet.
    pub fn new(control: TurnControl, app: Throughline, words: Words) -> Self {
        Self {
            control,
            app,
            words,
            turn: Transcript::new(words, Reasoning::default(), now()),
            shown: None,
            all: false,
            remember: None,
            filled: Filled::default(),
        }
    }

    /// Somebody is asked: the next line is an answer.
    pub fn is_open(&self) -> bool {
        self.shown.is_some()
    }

    /// Takes an event; prints the question that is to be answered next.
    pub async fn take(&mut self, event: &Event) {
        self.turn.apply(event);
        if let EventKind::Problem { code, excerpt, .. } = &event.kind
            && matches!(code.as_str(), "invalid_edit" | "stale_answer")
        {
            eprintln!("✘ {}", for_terminal(excerpt));
            self.prompt();
        }
        if self.all && self.turn.questions().iter().any(Question::is_approval) {
            let _ = answering::answer(&self.control, Reply::ApproveAll).await;
        }
        let next = self.turn.questions().iter().find(|question| !self.all || !question.is_approval());
        let id = next.map(|question| question.id.clone());
        if id != self.shown {
            (self.remember, self.filled) = (None, Filled::default());
            if let Some(question) = next {
                eprint!("{}", for_terminal(&question.plain(now(), self.words)));
            }
            self.shown = id;
            self.prompt();
        }
    }

    /// Takes a line.
    pub async fn give(&mut self, line: &str) {
        let Some(question) = self.question().cloned() else { return };
        let reply = match &question.wants {
            Wants::Approval { .. } => self.decided(&question, line),
            Wants::Fields(_) => self.told(&question, line),
            Wants::Address(_) => {
                let told = |answer| Ok(Some(Reply::Told(question.id.clone(), answer)));
                match line.trim() {
                    "a" | "y" => told(ToolAnswer::Accept { content: None }),
                    "d" | "n" | "" => told(ToolAnswer::Decline),
                    "x" => told(ToolAnswer::Cancel),
                    _ => Err(self.words.not_understood().to_owned()),
                }
            }
        };
        match reply {
            Ok(Some(reply)) => {
                self.all |= reply == Reply::ApproveAll;
                if let Err(why) = answering::answer(&self.control, reply).await {
                    self.filled = Filled::default();
                    eprintln!("✘ {}", for_terminal(&why));
                    self.prompt();
                }
            }
            Ok(None) => self.prompt(),
            Err(why) => {
                eprintln!("✘ {}", for_terminal(&why));
                self.prompt();
            }
        }
    }

    /// The input has ended: nobody can answer any more. R: A4
    pub async fn leave(&mut self) {
        let Some(question) = self.question().cloned() else { return };
        let reply = match question.wants {
            Wants::Approval { .. } => Reply::Decide(question.id, Answer::deny(self.words.not_asked())),
            Wants::Fields(_) | Wants::Address(_) => Reply::Told(question.id, ToolAnswer::Decline),
        };
        // Declined or denied: nothing in it can fail to fit.
        let _ = answering::answer(&self.control, reply).await;
    }

    fn question(&self) -> Option<&Question> {
        self.turn.questions().iter().find(|question| Some(&question.id) == self.shown.as_ref())
    }

    /// What can be typed now.
    fn prompt(&self) {
        let Some(question) = self.question() else { return };
        let prompt = match &question.wants {
            Wants::Approval { .. } => self.words.typed_decide().to_owned(),
            Wants::Address(_) => self.words.typed_url().to_owned(),
            Wants::Fields(form) => match self.filled.next(form) {
                Some(field) => {
                    let about =
                        if field.about.is_empty() { String::new() } else { format!("  {}\n", field.about) };
                    let hint = field.hint(self.words);
                    let hint = if hint.is_empty() { hint } else { format!(" ({hint})") };
                    format!("{about}  {}{hint} · {} › ", field.title, self.words.typed_form())
                }
                None => String::new(),
            },
        };
        eprint!("{}", for_terminal(&crate::terminal::text::revealing(&prompt)));
    }

    /// Yes, all, no with a reason, other arguments, or what is to be remembered: then the line is not the answer yet.
    fn decided(&mut self, question: &Question, line: &str) -> Result<Option<Reply>, String> {
        let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let rest = rest.trim();
        let decide = |mut answer: Answer| {
            answer.remember.clone_from(&self.remember);
            Reply::Decide(question.id.clone(), answer.for_arguments(question.arguments_hash.clone()))
        };
        match word {
            "A" | "all" => Ok(Some(Reply::ApproveAll)),
            "a" | "y" | "Y" | "yes" => Ok(Some(decide(Answer::approve()))),
            "d" | "n" | "N" | "no" | "" => {
                let reason = Some(rest.to_owned()).filter(|reason| !reason.is_empty());
                Ok(Some(decide(Answer::plain(Decision::Deny, reason))))
            }
            "e" if rest.is_empty() => Err(self.words.edit_typed().to_owned()),
            "e" => {
                let reply = decide(Answer::approve().with_arguments(edited(rest, self.words)?));
                answering::check(&self.app, &question.tool, &reply)?;
                Ok(Some(reply))
            }
            "r" if question.can_be_remembered() => {
                let (scope, which) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                let scope = match scope {
                    "turn" => Scope::Turn,
                    "conversation" => Scope::Conversation,
                    "always" => Scope::Always,
                    _ => return Err(self.words.typed_remember().to_owned()),
                };
                let any = which.trim() == "any";
                let constraints = if any { Constraints::Any } else { Constraints::Exact };
                self.remember = Some(Remember { scope, constraints });
                eprintln!("  {}", remembered(scope, any, self.words));
                Ok(None)
            }
            _ => Err(self.words.not_understood().to_owned()),
        }
    }

    /// A field of a tool's question; `!` and `!!` decline and cancel.
    fn told(&mut self, question: &Question, line: &str) -> Result<Option<Reply>, String> {
        let Wants::Fields(form) = &question.wants else { return Ok(None) };
        let told = |told| Ok(Some(Reply::Told(question.id.clone(), told)));
        match line.trim() {
            "!" => return told(ToolAnswer::Decline),
            "!!" => return told(ToolAnswer::Cancel),
            line => self.filled.take(form, line, self.words)?,
        }
        match self.filled.next(form) {
            Some(_) => Ok(None),
            None => told(ToolAnswer::Accept { content: Some(self.filled.answer(form)) }),
        }
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Lines of standard input, read by a thread since nothing else can wait for them; it ends with the process.
pub fn typed_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(LINES_WAITING_MAX);
    std::thread::spawn(move || {
        for line in io::stdin().lines() {
            let Ok(line) = line else { break };
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}
