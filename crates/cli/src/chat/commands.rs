//! Commands of the chat, for the screen and for lines.

use super::slash_command::SlashCommand;
use super::{ChatSession, listing};
use crate::args::ModelArgs;
use crate::conversation::OngoingTurn;
use crate::exit::CliFailure;
use crate::messages::{self, UiText};
use crate::picture::PictureFile;
use crate::terminal::text::StyledLine;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io::Write;
use std::path::Path;

/// Conversations that `/resume` lists.
const RESUMABLE_MAX: usize = 20;
/// Longest answer that is copied, in bytes: terminals drop longer sequences.
const COPY_BYTES_MAX: usize = 74_000;

/// Effect of a command.
pub(super) enum CommandEffect {
    /// A note of the chat.
    Note(String),
    /// A list.
    Lines(Vec<StyledLine>),
    /// A turn is followed, with its message and the lines before it.
    Turn { note: String, message: String, turn: OngoingTurn },
    /// A control sequence for the terminal, and a note.
    Terminal { sequence: String, note: String },
    /// A picture goes with the next message.
    Attached(String),
    /// The command failed.
    Failed(CliFailure),
}

/// Commands that wait until the reply is over.
pub(super) fn needs_idle(command: &SlashCommand) -> bool {
    matches!(
        command,
        SlashCommand::Model(Some(_))
            | SlashCommand::Mode(Some(_))
            | SlashCommand::Agent(Some(_))
            | SlashCommand::System(Some(_))
            | SlashCommand::New
            | SlashCommand::Resume(Some(_))
            | SlashCommand::Retry
    )
}

/// Executes a command.
pub(super) async fn run(
    session: &mut ChatSession,
    command: SlashCommand,
    words: UiText,
    columns: usize,
) -> CommandEffect {
    try_run(session, command, words, columns).await.unwrap_or_else(CommandEffect::Failed)
}

async fn try_run(
    session: &mut ChatSession,
    command: SlashCommand,
    words: UiText,
    columns: usize,
) -> Result<CommandEffect, CliFailure> {
    let note = |text: &str| Ok(CommandEffect::Note(text.to_owned()));
    match command {
        SlashCommand::Help => Ok(CommandEffect::Lines(listing::command_lines(words))),
        SlashCommand::Tools => {
            let offered = session.offered_tools().await?;
            if offered.is_empty() {
                return note(words.no_tools());
            }
            Ok(CommandEffect::Lines(listing::tool_lines(&offered, words, columns)))
        }
        SlashCommand::Sources => {
            Ok(CommandEffect::Lines(listing::source_lines(&session.sources().await?, words, columns)))
        }
        SlashCommand::Image(None) => note(words.image_usage()),
        SlashCommand::Image(Some(path)) => {
            session.pictures.push(PictureFile::load(Path::new(&path))?);
            Ok(CommandEffect::Attached(path))
        }
        SlashCommand::Model(None) => {
            let model = session.talk.model_name(words);
            note(&format!("{} {model} · {}", words.model_is(), words.model_usage()))
        }
        SlashCommand::Mode(None) => {
            note(&format!("{} {} · {}", words.mode_is(), session.talk.mode_name(), words.mode_usage()))
        }
        SlashCommand::Agent(None) => {
            note(&format!("{} {}", words.agents_are(), session.talk.agents().await?.join(" · ")))
        }
        SlashCommand::Model(Some(model)) => {
            let choice = ModelArgs { model: Some(model), ..session.talk.model_args.clone() };
            session.talk.switch(choice).await?;
            Ok(choice_note(session, words))
        }
        SlashCommand::Agent(Some(agent)) => {
            let known = session.talk.agents().await?;
            if !known.contains(&agent) {
                return Err(messages::no_such_agent(&agent, &known));
            }
            let choice = ModelArgs { agent: Some(agent), model: None, ..session.talk.model_args.clone() };
            session.talk.switch(choice).await?;
            Ok(choice_note(session, words))
        }
        SlashCommand::Mode(Some(mode)) => {
            session.set_mode(&mode)?;
            Ok(choice_note(session, words))
        }
        SlashCommand::System(None) => note(&match &session.talk.instructions {
            Some(text) => format!("{} {text}", words.system_is()),
            None => words.system_usage().to_owned(),
        }),
        SlashCommand::System(Some(text)) => {
            let is_removal = text == "-";
            session.talk.instructions = Some(text).filter(|_| !is_removal);
            note(if is_removal { words.system_removed() } else { words.system_set() })
        }
        SlashCommand::New => {
            session.talk.begin_anew();
            session.answer = Default::default();
            note(words.begun_anew())
        }
        SlashCommand::Resume(chosen) => resume(session, chosen, words).await,
        SlashCommand::Retry => {
            let (message, turn) = session.talk.retry().await?;
            Ok(CommandEffect::Turn { note: String::new(), message, turn })
        }
        SlashCommand::Copy => copy(session, words),
        SlashCommand::Save(None) => note(words.save_usage()),
        SlashCommand::Save(Some(path)) => save(session, Path::new(&path), words).await,
        _ => note(words.unknown_command()),
    }
}

fn choice_note(session: &ChatSession, words: UiText) -> CommandEffect {
    let (model, mode) = (session.talk.model_name(words), session.talk.mode_name());
    CommandEffect::Note(format!("{} {model} · {} {mode}", words.model_is(), words.mode_is()))
}

/// The list of conversations, or one of them: by its number in the list, or its id.
async fn resume(
    session: &mut ChatSession,
    chosen: Option<String>,
    words: UiText,
) -> Result<CommandEffect, CliFailure> {
    let latest = session.talk.latest(RESUMABLE_MAX).await?;
    let Some(chosen) = chosen else {
        if latest.is_empty() {
            return Ok(CommandEffect::Note(words.no_conversations().to_owned()));
        }
        let current = session.talk.id.clone();
        return Ok(CommandEffect::Lines(listing::conversation_lines(&latest, current.as_deref(), words)));
    };
    let number = chosen.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let id = number.and_then(|at| latest.get(at)).map_or(chosen, |(id, _)| id.clone());
    let title = latest.iter().find(|(known, _)| *known == id).map(|(_, title)| title.clone());
    let note = format!("{} {}", words.continues_with(), title.unwrap_or_else(|| id.clone()));
    match session.talk.resume(Some(&id)).await? {
        Some(past) => Ok(CommandEffect::Turn { note, message: past.message, turn: past.turn }),
        None => Ok(CommandEffect::Note(note)),
    }
}

/// Hands the last answer to the terminal's clipboard (OSC 52), which works over SSH, too.
fn copy(session: &ChatSession, words: UiText) -> Result<CommandEffect, CliFailure> {
    let text = session.answer.text();
    if text.is_empty() {
        return Ok(CommandEffect::Note(words.nothing_to_copy().to_owned()));
    }
    if text.len() > COPY_BYTES_MAX {
        return Err(messages::too_long_to_copy(text.len(), COPY_BYTES_MAX));
    }
    let sequence = format!("\x1b]52;c;{}\x07", STANDARD.encode(&text));
    Ok(CommandEffect::Terminal { sequence, note: words.copied(text.chars().count()) })
}

/// Writes the conversation as Markdown. An existing file is not overwritten.
async fn save(session: &ChatSession, path: &Path, words: UiText) -> Result<CommandEffect, CliFailure> {
    let text = session.talk.markdown().await?;
    let written = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    written
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| messages::unwritable_file(path, &error))?;
    Ok(CommandEffect::Note(words.saved(path)))
}
