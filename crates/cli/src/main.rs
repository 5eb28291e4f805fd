//! The `throughline` command: arguments, pipes and the terminal.
//!
//! It has no logic of its own: `throughline-wire` decides the meaning of a stream, `throughline-engine` the
//! course of a turn, and the library `throughline` performs it. This crate reads arguments, prints and asks.

#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these panic when the reader of a pipe has left"
)]

mod administration;
mod allocator;
mod approvals;
mod args;
mod ask;
mod backup;
mod chat;
mod chinese;
mod connect;
mod conversation;
mod data_dir;
mod decode;
mod doctor;
mod exit;
mod export;
mod external_editor;
mod history;
mod import;
mod interrupt;
mod keys;
mod line_prompts;
mod manual;
mod mcp;
mod messages;
#[cfg(feature = "demo")]
mod mock;
mod output;
mod parse;
mod picture;
mod plain;
mod probe;
mod replay;
mod runtime;
mod say;
mod serve;
mod setup;
mod templates;
mod terminal;
mod tools;
mod upstreams;
mod users;

use args::{CliArgs, CliCommand};
use clap::{CommandFactory, FromArgMatches};
use exit::CliExit;
use messages::UiLanguage;
use runtime::with_runtime;
use std::process::ExitCode;

/// Makes this binary the helper that supervises and confines the programs of tools. Internal.
pub(crate) const EXEC: &str = "__exec";
/// Makes this binary the process that reads a PDF. Internal.
pub(crate) const PDF_READER: &str = "__pdf-text";

fn arguments_of_process() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned())
}

/// Value of `--lang`, which must be known before the arguments are parsed: errors in them are reported in
/// that language.
fn language_flag(arguments: impl Iterator<Item = String>) -> Option<String> {
    let mut options = arguments.take_while(|argument| argument != "--");
    while let Some(option) = options.next() {
        match option.strip_prefix("--lang") {
            Some("") => return options.next(),
            Some(rest) if rest.starts_with('=') => return Some(rest[1..].to_owned()),
            _ => {}
        }
    }
    None
}

fn parse_arguments() -> Result<CliArgs, clap::Error> {
    let command = match UiLanguage::current() {
        UiLanguage::English => CliArgs::command(),
        UiLanguage::Chinese => chinese::localized(CliArgs::command()),
    };
    let mut command = command;
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    CliArgs::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // Before anything else: what happens here stays in the child.
    match arguments.next() {
        Some(first) if first == EXEC => return throughline_tools::process::helper_main(arguments),
        Some(first) if first == PDF_READER => return throughline_server::pdf_reader_main(arguments),
        _ => {}
    }
    if let Err(name) = UiLanguage::choose(language_flag(arguments_of_process()).as_deref()) {
        return exit::print_failure(&messages::no_such_language(&name)).into();
    }
    let args = match parse_arguments() {
        Ok(args) => args,
        Err(error) => return exit::print_clap_error(&error).into(),
    };
    // Keys of models are in our environment, and programs of tools run as the same user.
    throughline_tools::process::hide_this_process();
    let ended = match &args.command {
        CliCommand::Decode(decode) => decode::run(decode),
        CliCommand::Templates(templates) => templates::run(templates),
        CliCommand::Upstreams(upstreams) => upstreams::run(upstreams),
        CliCommand::Mcp(mcp) => mcp::run(mcp),
        CliCommand::Completions(completions) => {
            let mut script = Vec::new();
            clap_complete::generate(completions.shell, &mut CliArgs::command(), "throughline", &mut script);
            let printed = output::text(&String::from_utf8_lossy(&script));
            printed.map(|()| CliExit::Done).map_err(|error| messages::output_failed(&error))
        }
        CliCommand::Man(man) => manual::run(man),
        CliCommand::Ask(ask) => with_runtime(ask::run(ask)),
        CliCommand::Chat(chat) => with_runtime(chat::run(chat)),
        CliCommand::Say(say) => with_runtime(say::run(say)),
        CliCommand::Parse(parse) => with_runtime(parse::run(parse)),
        CliCommand::Tools(tools) => with_runtime(tools::run(tools)),
        CliCommand::Serve(serve) => with_runtime(serve::run(serve)),
        CliCommand::Connect(connect) => with_runtime(connect::run(connect)),
        CliCommand::Probe(probe) => with_runtime(probe::run(probe)),
        CliCommand::Users(users) => with_runtime(users::run(users)),
        CliCommand::Keys(keys) => with_runtime(keys::run(keys)),
        CliCommand::Backup(backup) => with_runtime(backup::run(backup)),
        CliCommand::Restore(restore) => with_runtime(backup::restore::run(restore)),
        CliCommand::Doctor(doctor) => with_runtime(doctor::run(doctor)),
        CliCommand::History(history) => with_runtime(history::run(history)),
        CliCommand::Export(export) => with_runtime(export::run(export)),
        CliCommand::Import(import) => with_runtime(import::run(import)),
        CliCommand::Replay(replay) => with_runtime(replay::run(replay)),
        #[cfg(feature = "demo")]
        CliCommand::Mock(mock) => with_runtime(mock::run(mock)),
    };
    ended.unwrap_or_else(|error| exit::print_failure(&error)).into()
}
