//! Questions to whoever sits at a terminal, answered by lines.

use crate::chat::answering;
use crate::chat::dialog::{Reply, remembered};
use crate::chat::form::{Filled, Form};
use crate::chat::question::{Question, Wants, edited};
use crate::chat::transcript::{Reasoning, Transcript};
use crate::messages::Words;
use crate::plain::for_terminal;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use throughline::{
    Answer, Decision, Event, EventKind, Remember, Scope, Throughline, ToolAnswer, TurnControl,
};
use throughline_engine::{ApprovalId, Constraints, ToolQuestion, Wants as Wanted};
use throughline_tools::{Asker, ToolSpec, completed};
use throughline_wire::visible;
use tokio::sync::{Mutex, mpsc};

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
            wants => told(wants, &mut self.filled, line, self.words)
                .map(|answer| answer.map(|answer| Reply::Told(question.id.clone(), answer))),
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

    fn prompt(&self) {
        if let Some(question) = self.question() {
            prompt(&question.wants, &self.filled, self.words);
        }
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
}

/// What can be typed now.
fn prompt(wants: &Wants, filled: &Filled, words: Words) {
    let prompt = match wants {
        Wants::Approval { .. } => words.typed_decide().to_owned(),
        Wants::Address(_) => words.typed_url().to_owned(),
        Wants::Fields(form) => match filled.next(form) {
            Some(field) => {
                let about =
                    if field.about.is_empty() { String::new() } else { format!("  {}\n", field.about) };
                let hint = field.hint(words);
                let hint = if hint.is_empty() { hint } else { format!(" ({hint})") };
                format!("{about}  {}{hint} · {} › ", field.title, words.typed_form())
            }
            // Nothing is to be filled in: yes or no.
            None => words.typed_url().to_owned(),
        },
    };
    eprint!("{}", for_terminal(&visible::escape(&prompt)));
}

/// What a line answers to a tool's own question; `None` = there is more to fill in.
fn told(wants: &Wants, filled: &mut Filled, line: &str, words: Words) -> Result<Option<ToolAnswer>, String> {
    let form = match wants {
        Wants::Fields(form) if !form.fields.is_empty() => form,
        Wants::Fields(_) | Wants::Address(_) | Wants::Approval { .. } => {
            return match line.trim() {
                "a" | "y" => Ok(Some(ToolAnswer::Accept { content: None })),
                "d" | "n" | "" => Ok(Some(ToolAnswer::Decline)),
                "x" => Ok(Some(ToolAnswer::Cancel)),
                _ => Err(words.not_understood().to_owned()),
            };
        }
    };
    match line.trim() {
        "!" => return Ok(Some(ToolAnswer::Decline)),
        "!!" => return Ok(Some(ToolAnswer::Cancel)),
        line => filled.take(form, line, words)?,
    }
    Ok(match filled.next(form) {
        Some(_) => None,
        None => Some(ToolAnswer::Accept { content: Some(filled.answer(form)) }),
    })
}

/// Who answers the questions of a tool that is run by hand: whoever sits at the terminal, else nobody, which is said with
/// what helps. R: A2
pub fn by_hand(tool: &ToolSpec, words: Words) -> Asker {
    let (name, source) = (tool.name.to_string(), tool.source.clone());
    let lines = Arc::new(Mutex::new(None));
    Asker::new(move |question| {
        let (name, source, lines) = (name.clone(), source.clone(), lines.clone());
        async move {
            if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
                let said = crate::messages::tool_asks_nobody(&name, &question.message);
                eprintln!("{}", for_terminal(&visible::escape(&said)));
                return ToolAnswer::Decline;
            }
            let mut lines = lines.lock().await;
            let lines = match lines.take().map_or_else(typed_lines, Ok) {
                Ok(typed) => lines.insert(typed),
                Err(error) => {
                    eprintln!("✘ {}", crate::messages::no_runtime(&error).what);
                    return ToolAnswer::Decline;
                }
            };
            put(&name, source, question, lines, words).await
        }
    })
}

/// Puts one question, until an answer fits.
async fn put(
    tool: &str,
    source: String,
    question: ToolQuestion,
    lines: &mut mpsc::Receiver<String>,
    words: Words,
) -> ToolAnswer {
    let (wants, schema) = match question.wants {
        Wanted::Form { schema } => (Wants::Fields(Form::of(&schema)), Some(schema)),
        Wanted::Url { url } => (Wants::Address(url), None),
    };
    let question = Question {
        id: ApprovalId::new("by_hand"),
        call: None,
        tool: tool.to_owned(),
        source,
        effect: String::new(),
        question: question.message,
        rule: String::new(),
        expires_at: None,
        arguments_hash: String::new(),
        wants,
    };
    eprint!("{}", for_terminal(&question.plain(now(), words)));
    let mut filled = Filled::default();
    loop {
        prompt(&question.wants, &filled, words);
        // The input has ended: nobody can answer any more.
        let Some(line) = lines.recv().await else { return ToolAnswer::Decline };
        let answer = told(&question.wants, &mut filled, &line, words);
        let fits = answer.and_then(|answer| match answer {
            Some(answer) => completed(schema.as_ref(), answer).map(Some).inspect_err(|_| {
                filled = Filled::default();
            }),
            None => Ok(None),
        });
        match fits {
            Ok(Some(answer)) => return answer,
            Ok(None) => {}
            Err(why) => eprintln!("✘ {}", for_terminal(&why)),
        }
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Lines of standard input, read by a thread since nothing else can wait for them; it ends with the process.
///
/// # Errors
/// The system gives no thread.
pub fn typed_lines() -> io::Result<mpsc::Receiver<String>> {
    let (sender, receiver) = mpsc::channel(LINES_WAITING_MAX);
    std::thread::Builder::new().name("typed-lines".into()).spawn(move || {
        for line in io::stdin().lines() {
            let Ok(line) = line else { break };
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    })?;
    Ok(receiver)
}
