//! `throughline chat`: a conversation in the terminal.

pub mod answering;
mod block;
pub mod dialog;
pub mod form;
mod greeting;
mod listing;
mod piped;
pub mod question;
mod queue;
mod rich;
mod screen;
mod slash;
pub mod transcript;
pub mod wording;

use crate::args::{Chat, Choice};
use crate::exit::{Ended, Failure};
use crate::messages::{self, Lang, Words};
use crate::picture::Picture;
use crate::setup::{Offered, Verdict, World};
use crate::terminal::session::{Look, look};
use std::io::IsTerminal;
use throughline::config::Mode;
use throughline::{Approval, Conversation, Turn, UserInput};

/// Talks until the person leaves or the input ends.
pub async fn run(args: &Chat) -> Ended {
    let words = Words(Lang::of_environment());
    match look() {
        Look::Rich if !args.plain => {
            let approval = if args.approve { Approval::AllowAll } else { Approval::Ask };
            rich::run(Talk::open(&args.choice, approval).await?, words).await
        }
        _ => {
            let person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
            let approval = match (args.approve, person) {
                (true, _) => Approval::AllowAll,
                (false, true) => Approval::Ask,
                // What comes through a pipe is what is being said, not answers.
                (false, false) => Approval::DenyAll { reason: words.not_asked().to_owned() },
            };
            piped::run(Talk::open(&args.choice, approval).await?, words).await
        }
    }
}

/// A conversation and who answers in it.
struct Talk {
    choice: Choice,
    approval: Approval,
    world: World,
    conversation: Conversation,
    /// Go with the next message.
    pictures: Vec<Picture>,
}

impl Talk {
    async fn open(choice: &Choice, approval: Approval) -> Result<Self, Failure> {
        let world = World::open(choice, approval.clone()).await?;
        let conversation = world.app.conversation();
        Ok(Self { choice: choice.clone(), approval, world, conversation, pictures: Vec::new() })
    }

    /// From the next message on calls travel another way; the history fits any. R: T3
    fn change_mode(&mut self, name: &str) -> Result<(), Failure> {
        let mode = Mode::named(name).ok_or_else(|| messages::no_such_mode(name))?;
        self.conversation.set_mode(Some(mode));
        self.choice.mode = Some(name.to_owned());
        mode.name().clone_into(&mut self.world.mode);
        Ok(())
    }

    /// What the model may call, and what becomes of a call by rules, by what was said before, and by who answers.
    fn offered(&self) -> Vec<Offered> {
        // A memory that cannot be read ends the next turn before it begins, with the reason.
        let kept = self.world.app.memory().all().unwrap_or_default();
        let mut remembered: Vec<_> = kept.into_iter().map(|kept| kept.answer).collect();
        remembered.extend(self.conversation.remembered());
        let mut offered = self.world.offered(&remembered);
        for tool in offered.iter_mut().filter(|tool| tool.verdict == Verdict::Asks) {
            tool.verdict = match self.approval {
                Approval::AllowAll => Verdict::Runs,
                Approval::DenyAll { .. } => Verdict::Denied,
                _ => Verdict::Asks,
            };
        }
        offered
    }

    /// Goes on with what was said so far under another choice of model.
    async fn change(&mut self, choice: Choice) -> Result<(), Failure> {
        let world = World::open(&choice, self.approval.clone()).await?;
        self.conversation = world.app.conversation().with_history(self.conversation.history());
        (self.choice, self.world) = (choice, world);
        Ok(())
    }

    async fn say(&mut self, message: &str) -> Result<Turn, Failure> {
        let input =
            self.pictures.drain(..).fold(UserInput::from(message), |input, picture| picture.attach(input));
        self.conversation.ask(input).await.map_err(|error| messages::setup(&error))
    }
}
