//! `throughline chat`: a conversation in the terminal.

mod block;
mod commands;
pub(crate) mod dialog;
pub(crate) mod form;
mod greeting;
mod listing;
mod piped;
pub(crate) mod question;
pub(crate) mod queue;
mod rich;
mod screen;
mod slash_command;
pub(crate) mod texts;
pub(crate) mod transcript;
pub(crate) mod turn_commands;

use crate::args::ChatArgs;
use crate::conversation::{ConversationSession, OngoingTurn, TurnText};
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages::{self, UiLanguage, UiText};
use crate::picture::PictureFile;
use crate::setup::{CallPolicy, OfferedToolRow, SourceState};
use crate::templates::FilledTemplate;
use crate::terminal::session::{OutputStyle, output_style};
use serde_json::Value;
use std::io::IsTerminal;
use throughline::config::ToolMode;
use throughline::engine::fold::AssistantMessage;
use throughline::{ApprovalMode, Event};
use throughline_engine::MessageTiming;

/// Talks until the person leaves or the input ends.
pub(crate) async fn run(args: &ChatArgs) -> CommandResult {
    let words = UiText(UiLanguage::current());
    let is_rich = output_style() == OutputStyle::Rich && !args.plain;
    let has_person = is_rich || (std::io::stdin().is_terminal() && std::io::stderr().is_terminal());
    let approval = match (args.approve, has_person) {
        (true, _) => ApprovalMode::AllowAll,
        (false, true) => ApprovalMode::Ask,
        // Piped lines are messages, not answers.
        (false, false) => ApprovalMode::DenyAll { reason: words.not_asked().to_owned() },
    };
    let mut session = ChatSession::open(args, approval).await?;
    let outcome = talk(args, &mut session, is_rich, words).await;
    session.talk.close().await;
    outcome
}

async fn talk(args: &ChatArgs, session: &mut ChatSession, is_rich: bool, words: UiText) -> CommandResult {
    let continues = args.keep.continues || args.keep.resume.is_some();
    let resumed = if continues { session.talk.resume(args.keep.resume.as_deref()).await? } else { None };
    if is_rich { rich::run(session, resumed, words).await } else { piped::run(session, resumed, words).await }
}

/// A conversation and what goes with its next message.
struct ChatSession {
    talk: ConversationSession,
    /// Go with the next message.
    pictures: Vec<PictureFile>,
    /// The last answer.
    answer: AssistantMessage,
    /// The next message goes into it.
    template: Option<FilledTemplate>,
}

impl ChatSession {
    async fn open(args: &ChatArgs, approval: ApprovalMode) -> Result<Self, CliFailure> {
        let template = FilledTemplate::of(&args.template, args.choice.config.as_deref())?;
        let mut talk = ConversationSession::open(&args.choice, approval, &args.keep).await?;
        talk.instructions = args.system.clone();
        Ok(Self { talk, pictures: Vec::new(), answer: AssistantMessage::default(), template })
    }

    /// Sets the transport of calls from the next message on; the history fits any.
    fn set_mode(&mut self, name: &str) -> Result<(), CliFailure> {
        let mode = ToolMode::from_name(name).ok_or_else(|| messages::no_such_mode(name))?;
        self.talk.set_mode(mode);
        Ok(())
    }

    /// Tools offered to the model, each with the decision on a call by rules, remembered approvals and the
    /// presence of a person.
    async fn offered_tools(&self) -> Result<Vec<OfferedToolRow>, CliFailure> {
        let mut offered = match &self.talk.context {
            Some(context) => context.offered_tools(&self.talk.remembered().await),
            None => offered_rows(&self.talk.tool_list().await?),
        };
        for tool in offered.iter_mut().filter(|tool| tool.policy == CallPolicy::Asks) {
            tool.policy = match self.talk.approval {
                ApprovalMode::AllowAll => CallPolicy::Runs,
                ApprovalMode::DenyAll { .. } => CallPolicy::Denied,
                _ => CallPolicy::Asks,
            };
        }
        Ok(offered)
    }

    /// All sources of tools.
    async fn sources(&self) -> Result<Vec<SourceState>, CliFailure> {
        match &self.talk.context {
            Some(context) => Ok(context.sources()),
            None => Ok(source_rows(&self.talk.tool_list().await?)),
        }
    }

    fn steering(&self) -> MessageTiming {
        self.talk.context.as_ref().map(crate::setup::AppContext::steering).unwrap_or_default()
    }

    /// Takes an event of the running turn.
    fn apply(&mut self, event: &Event) {
        if self.answer.turn_id != event.turn_id {
            self.answer = AssistantMessage::default();
        }
        self.answer.apply(event);
    }

    async fn send(&mut self, message: &str) -> Result<OngoingTurn, CliFailure> {
        let text = match &self.template {
            Some(template) => template.apply(message)?,
            None => message.to_owned(),
        };
        let turn = self.talk.send(TurnText { text, pictures: self.pictures.clone() }).await?;
        self.pictures.clear();
        self.template = None;
        Ok(turn)
    }
}

/// The list of a server as rows.
fn offered_rows(list: &Value) -> Vec<OfferedToolRow> {
    let tools = list["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |tool: &Value, name: &str| tool[name].as_str().unwrap_or_default().to_owned();
    let row = |tool: &Value| OfferedToolRow {
        name: text(tool, "name"),
        effect: text(tool, "effect"),
        source: text(tool, "source"),
        policy: if tool["asks"] == true { CallPolicy::Asks } else { CallPolicy::Runs },
        description: text(tool, "description").lines().next().unwrap_or_default().to_owned(),
    };
    tools.iter().filter(|tool| tool["offered"] == true).map(row).collect()
}

fn source_rows(list: &Value) -> Vec<SourceState> {
    let sources = list["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value, name: &str| value[name].as_str().map(str::to_owned);
    let fault = |fault: &Value| {
        let message = text(fault, "message").unwrap_or_default();
        let what = text(fault, "tool").map_or_else(|| message.clone(), |tool| format!("{tool}: {message}"));
        (what, text(fault, "remedy"))
    };
    let state = |source: &Value| SourceState {
        name: text(source, "name").unwrap_or_default(),
        tools: source["tools"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default(),
        faults: source["faults"].as_array().into_iter().flatten().map(fault).collect(),
    };
    sources.iter().map(state).collect()
}

/// Exit code of a chat that leaves: the turn that runs is stopped by it.
fn exit_on_leave(is_running: bool) -> CliExit {
    if is_running { CliExit::Cancelled } else { CliExit::Done }
}
