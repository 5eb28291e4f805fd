//! Questions to a user at a terminal, answered by lines.

use crate::chat::dialog::{DialogReply, remember_text};
use crate::chat::form::{FormAnswers, QuestionForm};
use crate::chat::question::{PendingQuestion, QuestionInput, parse_edited};
use crate::chat::transcript::{ReasoningView, TurnTranscript};
use crate::chat::turn_commands;
use crate::conversation::OngoingControl;
use crate::messages::UiText;
use crate::output::{err, errln};
use crate::plain::for_terminal;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use throughline::{
    ApprovalDecision, ApprovalResponse, ApprovalScope, Event, EventKind, RememberRequest, Throughline,
    ToolAnswer, decision_in_words,
};
use throughline_engine::{ApprovalId, ArgumentConstraints, ElicitationMode, ToolQuestion};
use throughline_tools::{QuestionHandler, ToolSpec, complete_answer};
use throughline_wire::display_escape;
use tokio::sync::{Mutex, mpsc};

/// Lines read ahead.
const LINES_WAITING_MAX: usize = 64;

/// Questions of one turn, asked one after the other on standard error.
pub(crate) struct LinePrompter {
    control: OngoingControl,
    /// Checks arguments before they are sent; a server does it itself.
    app: Option<Throughline>,
    words: UiText,
    /// Tracks the open questions, as on the screen.
    transcript: TurnTranscript,
    /// The question that was printed.
    shown: Option<ApprovalId>,
    /// True if every further question is approved.
    approve_all: bool,
    remember: Option<RememberRequest>,
    answers: FormAnswers,
}

impl LinePrompter {
    /// A prompter without open questions.
    pub(crate) fn new(control: OngoingControl, app: Option<Throughline>, words: UiText) -> Self {
        Self {
            control,
            app,
            words,
            transcript: TurnTranscript::new(words, ReasoningView::default(), now()),
            shown: None,
            approve_all: false,
            remember: None,
            answers: FormAnswers::default(),
        }
    }

    /// True if a question is open: the next line is an answer.
    pub(crate) fn is_open(&self) -> bool {
        self.shown.is_some()
    }

    /// Takes an event; prints the question that is to be answered next.
    pub(crate) async fn take(&mut self, event: &Event) {
        self.transcript.apply(event);
        if let EventKind::Problem { code, excerpt, .. } = &event.kind
            && matches!(code.as_str(), "invalid_edit" | "stale_answer")
        {
            errln!("✘ {}", for_terminal(excerpt));
            self.prompt();
        }
        if self.approve_all && self.transcript.questions().iter().any(PendingQuestion::is_approval) {
            let _ = self.control.answer(DialogReply::ApproveAll).await;
        }
        let next =
            self.transcript.questions().iter().find(|question| !self.approve_all || !question.is_approval());
        let id = next.map(|question| question.id.clone());
        if id != self.shown {
            (self.remember, self.answers) = (None, FormAnswers::default());
            if let Some(question) = next {
                err!("{}", for_terminal(&question.as_text(now(), self.words)));
            }
            self.shown = id;
            self.prompt();
        }
    }

    /// Takes a line.
    pub(crate) async fn take_line(&mut self, line: &str) {
        let Some(question) = self.question().cloned() else { return };
        let reply = match &question.input {
            QuestionInput::Approval { .. } => self.parse_decision(&question, line),
            input => parse_form_line(input, &mut self.answers, line, self.words)
                .map(|answer| answer.map(|answer| DialogReply::ToolAnswered(question.id.clone(), answer))),
        };
        match reply {
            Ok(Some(reply)) => {
                self.approve_all |= reply == DialogReply::ApproveAll;
                if let Err(why) = self.control.answer(reply).await {
                    self.answers = FormAnswers::default();
                    errln!("✘ {}", for_terminal(&why));
                    self.prompt();
                }
            }
            Ok(None) => self.prompt(),
            Err(why) => {
                errln!("✘ {}", for_terminal(&why));
                self.prompt();
            }
        }
    }

    /// Closes the input: no further answer is possible.
    pub(crate) async fn close_input(&mut self) {
        let Some(question) = self.question().cloned() else { return };
        let reply = match question.input {
            QuestionInput::Approval { .. } => {
                DialogReply::Decide(question.id, ApprovalResponse::deny(self.words.not_asked()))
            }
            QuestionInput::Fields(_) | QuestionInput::Address(_) => {
                DialogReply::ToolAnswered(question.id, ToolAnswer::Decline)
            }
        };
        // Declined or denied: nothing in it can fail to fit.
        let _ = self.control.answer(reply).await;
    }

    fn question(&self) -> Option<&PendingQuestion> {
        self.transcript.questions().iter().find(|question| Some(&question.id) == self.shown.as_ref())
    }

    fn prompt(&self) {
        if let Some(question) = self.question() {
            print_prompt(&question.input, &self.answers, self.words);
        }
    }

    /// Parses yes, all, no with a reason, or other arguments; a choice of memory is not the answer yet.
    fn parse_decision(
        &mut self,
        question: &PendingQuestion,
        line: &str,
    ) -> Result<Option<DialogReply>, String> {
        let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let rest = rest.trim();
        let reason = || Some(rest.to_owned()).filter(|reason| !reason.is_empty());
        let decide = |mut answer: ApprovalResponse| {
            answer.remember.clone_from(&self.remember);
            DialogReply::Decide(question.id.clone(), answer.for_arguments(question.arguments_hash.clone()))
        };
        // A yes followed by other text is ambiguous.
        if decision_in_words(line) == Some(ApprovalDecision::Approve) {
            return Ok(Some(decide(ApprovalResponse::approve())));
        }
        match word {
            "A" | "all" if rest.is_empty() => Ok(Some(DialogReply::ApproveAll)),
            "a" if rest.is_empty() => Ok(Some(decide(ApprovalResponse::approve()))),
            "d" | "n" | "N" | "no" | "" => {
                Ok(Some(decide(ApprovalResponse::from_decision(ApprovalDecision::Deny, reason()))))
            }
            "s" | "stop" => Ok(Some(decide(ApprovalResponse::deny_and_stop(reason())))),
            "e" if rest.is_empty() => Err(self.words.edit_typed().to_owned()),
            "e" => {
                let reply =
                    decide(ApprovalResponse::approve().with_arguments(parse_edited(rest, self.words)?));
                turn_commands::check_arguments(self.app.as_ref(), &question.tool, &reply)?;
                Ok(Some(reply))
            }
            "r" if question.can_be_remembered() => {
                let (scope, arguments_word) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                let scope = match scope {
                    "turn" => ApprovalScope::Turn,
                    "conversation" => ApprovalScope::Conversation,
                    "always" => ApprovalScope::Always,
                    _ => return Err(self.words.typed_remember().to_owned()),
                };
                let any = arguments_word.trim() == "any";
                let constraints = if any { ArgumentConstraints::Any } else { ArgumentConstraints::Exact };
                self.remember = Some(RememberRequest { scope, constraints });
                errln!("  {}", remember_text(scope, any, self.words));
                Ok(None)
            }
            _ if decision_in_words(line) == Some(ApprovalDecision::Deny) => {
                Ok(Some(decide(ApprovalResponse::from_decision(ApprovalDecision::Deny, None))))
            }
            _ => Err(self.words.not_understood().to_owned()),
        }
    }
}

/// Prints the accepted input.
fn print_prompt(input: &QuestionInput, answers: &FormAnswers, words: UiText) {
    let prompt = match input {
        QuestionInput::Approval { .. } => words.typed_decide().to_owned(),
        QuestionInput::Address(_) => words.typed_url().to_owned(),
        QuestionInput::Fields(form) => match answers.next_field(form) {
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
    err!("{}", for_terminal(&display_escape::escape_exact(&prompt)));
}

/// Parses a line as an answer to a tool's own question; `None` = more fields to fill in.
fn parse_form_line(
    input: &QuestionInput,
    answers: &mut FormAnswers,
    line: &str,
    words: UiText,
) -> Result<Option<ToolAnswer>, String> {
    let form = match input {
        QuestionInput::Fields(form) if !form.fields.is_empty() => form,
        QuestionInput::Fields(_) | QuestionInput::Address(_) | QuestionInput::Approval { .. } => {
            return match (line.trim(), decision_in_words(line)) {
                ("a", _) | (_, Some(ApprovalDecision::Approve)) => {
                    Ok(Some(ToolAnswer::Accept { content: None }))
                }
                ("d" | "", _) | (_, Some(ApprovalDecision::Deny)) => Ok(Some(ToolAnswer::Decline)),
                ("x", _) => Ok(Some(ToolAnswer::Cancel)),
                _ => Err(words.not_understood().to_owned()),
            };
        }
    };
    match line.trim() {
        "!" => return Ok(Some(ToolAnswer::Decline)),
        "!!" => return Ok(Some(ToolAnswer::Cancel)),
        line => answers.answer_next(form, line, words)?,
    }
    Ok(match answers.next_field(form) {
        Some(_) => None,
        None => Some(ToolAnswer::Accept { content: Some(answers.answer(form)) }),
    })
}

/// Handler for elicitations of a tool that is run manually. Without a terminal they are declined, and a
/// message gives a remedy.
pub(crate) fn manual_asker(tool: &ToolSpec, words: UiText) -> QuestionHandler {
    let (name, source) = (tool.name.to_string(), tool.source.clone());
    let lines = Arc::new(Mutex::new(None));
    QuestionHandler::new(move |question| {
        let (name, source, lines) = (name.clone(), source.clone(), lines.clone());
        async move {
            if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
                let text = crate::messages::tool_asks_nobody(&name, &question.message);
                errln!("{}", for_terminal(&display_escape::escape(&text)));
                return ToolAnswer::Decline;
            }
            let mut lines = lines.lock().await;
            let lines = match lines.take().map_or_else(typed_lines, Ok) {
                Ok(typed) => lines.insert(typed),
                Err(error) => {
                    errln!("✘ {}", crate::messages::no_runtime(&error).what);
                    return ToolAnswer::Decline;
                }
            };
            ask_until_valid(&name, source, question, lines, words).await
        }
    })
}

/// Puts one question, until an answer fits.
async fn ask_until_valid(
    tool: &str,
    source: String,
    question: ToolQuestion,
    lines: &mut mpsc::Receiver<String>,
    words: UiText,
) -> ToolAnswer {
    let (input, schema) = match question.mode {
        ElicitationMode::Form { schema } => (QuestionInput::Fields(QuestionForm::of(&schema)), Some(schema)),
        ElicitationMode::Url { url } => (QuestionInput::Address(url), None),
        // A mode of elicitation that this command does not support.
        _ => return ToolAnswer::Decline,
    };
    let question = PendingQuestion {
        id: ApprovalId::new("by_hand"),
        call: None,
        tool: tool.to_owned(),
        source,
        effect: String::new(),
        question: question.message,
        rule: String::new(),
        expires_at: None,
        arguments_hash: String::new(),
        input,
    };
    err!("{}", for_terminal(&question.as_text(now(), words)));
    let mut answers = FormAnswers::default();
    loop {
        print_prompt(&question.input, &answers, words);
        // The input has ended: no further answer is possible.
        let Some(line) = lines.recv().await else { return ToolAnswer::Decline };
        let answer = parse_form_line(&question.input, &mut answers, &line, words);
        let parsed = answer.and_then(|answer| match answer {
            Some(answer) => complete_answer(schema.as_ref(), answer).map(Some).inspect_err(|_| {
                answers = FormAnswers::default();
            }),
            None => Ok(None),
        });
        match parsed {
            Ok(Some(answer)) => return answer,
            Ok(None) => {}
            Err(why) => errln!("✘ {}", for_terminal(&why)),
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
pub(crate) fn typed_lines() -> io::Result<mpsc::Receiver<String>> {
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
