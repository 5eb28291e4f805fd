//! `throughline chat`: a conversation in the terminal.

mod block;
pub(crate) mod dialog;
pub(crate) mod form;
mod greeting;
mod listing;
mod piped;
pub(crate) mod question;
mod queue;
mod rich;
mod screen;
mod slash_command;
pub(crate) mod texts;
pub(crate) mod transcript;
pub(crate) mod turn_commands;

use crate::args::{ChatArgs, ModelArgs};
use crate::exit::{CliFailure, CommandResult};
use crate::messages::{self, UiLanguage, UiText};
use crate::picture::PictureFile;
use crate::setup::{AppContext, CallPolicy, OfferedToolRow};
use crate::terminal::session::{OutputStyle, output_style};
use std::io::IsTerminal;
use throughline::config::ToolMode;
use throughline::{ApprovalMode, Conversation, TurnHandle, UserInput};

/// Talks until the person leaves or the input ends.
pub(crate) async fn run(args: &ChatArgs) -> CommandResult {
    let words = UiText(UiLanguage::of_environment());
    match output_style() {
        OutputStyle::Rich if !args.plain => {
            let approval = if args.approve { ApprovalMode::AllowAll } else { ApprovalMode::Ask };
            rich::run(ChatSession::open(&args.choice, approval).await?, words).await
        }
        _ => {
            let has_person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
            let approval = match (args.approve, has_person) {
                (true, _) => ApprovalMode::AllowAll,
                (false, true) => ApprovalMode::Ask,
                // What comes through a pipe is what is being said, not answers.
                (false, false) => ApprovalMode::DenyAll { reason: words.not_asked().to_owned() },
            };
            piped::run(ChatSession::open(&args.choice, approval).await?, words).await
        }
    }
}

/// A conversation and who answers in it.
struct ChatSession {
    model_args: ModelArgs,
    approval: ApprovalMode,
    context: AppContext,
    conversation: Conversation,
    /// Go with the next message.
    pictures: Vec<PictureFile>,
}

impl ChatSession {
    async fn open(model_args: &ModelArgs, approval: ApprovalMode) -> Result<Self, CliFailure> {
        let context = AppContext::open(model_args, approval.clone()).await?;
        let conversation = context.app.conversation();
        Ok(Self { model_args: model_args.clone(), approval, context, conversation, pictures: Vec::new() })
    }

    /// From the next message on calls travel another way; the history fits any. R: T3
    fn set_mode(&mut self, name: &str) -> Result<(), CliFailure> {
        let mode = ToolMode::from_name(name).ok_or_else(|| messages::no_such_mode(name))?;
        self.conversation.set_mode(Some(mode));
        self.model_args.mode = Some(name.to_owned());
        mode.name().clone_into(&mut self.context.mode);
        Ok(())
    }

    /// Tools offered to the model, each with the outcome of its calls under rules, remembered approvals and whoever is there to answer.
    fn offered_tools(&self) -> Vec<OfferedToolRow> {
        // A memory that cannot be read ends the next turn before it begins, with the reason.
        let stored = self.context.app.approval_store().all().unwrap_or_default();
        let mut remembered: Vec<_> = stored.into_iter().map(|entry| entry.answer).collect();
        remembered.extend(self.conversation.remembered());
        let mut offered = self.context.offered_tools(&remembered);
        for tool in offered.iter_mut().filter(|tool| tool.policy == CallPolicy::Asks) {
            tool.policy = match self.approval {
                ApprovalMode::AllowAll => CallPolicy::Runs,
                ApprovalMode::DenyAll { .. } => CallPolicy::Denied,
                _ => CallPolicy::Asks,
            };
        }
        offered
    }

    /// Goes on with what was said so far under another choice of model.
    async fn switch_model(&mut self, model_args: ModelArgs) -> Result<(), CliFailure> {
        let context = AppContext::open(&model_args, self.approval.clone()).await?;
        self.conversation = context.app.conversation().with_history(self.conversation.history());
        (self.model_args, self.context) = (model_args, context);
        Ok(())
    }

    async fn send(&mut self, message: &str) -> Result<TurnHandle, CliFailure> {
        let input =
            self.pictures.drain(..).fold(UserInput::from(message), |input, picture| picture.attach(input));
        self.conversation.ask(input).await.map_err(|error| messages::setup(&error))
    }
}
