//! The `throughline` command: arguments, pipes and the terminal.
//!
//! It has no logic of its own: what a stream means is decided in `throughline-wire`, what a turn does in
//! `throughline-engine`, and what runs in the library `throughline`. This crate reads arguments, prints and asks.

mod args;
mod ask;
mod chat;
mod connect;
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
mod messages;
#[cfg(feature = "demo")]
mod mock;
mod output;
mod parse;
mod picture;
mod plain;
mod replay;
mod runtime;
mod serve;
mod setup;
mod terminal;
mod tools;
mod upstreams;

use args::{CliArgs, CliCommand};
use clap::{CommandFactory, Parser};
use exit::CliExit;
use runtime::with_runtime;
use std::process::ExitCode;

/// Makes this binary the helper that supervises and confines the programs of tools. For nobody else's use.
pub(crate) const EXEC: &str = "__exec";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == EXEC) {
        // Before anything else: what happens here stays in the child.
        return throughline_tools::process::helper_main(arguments);
    }
    let args = match CliArgs::try_parse() {
        Ok(args) => args,
        Err(error) => return exit::print_clap_error(&error).into(),
    };
    // Keys of models are in our environment, and programs of tools run as the same user.
    throughline_tools::process::hide_this_process();
    let ended = match &args.command {
        CliCommand::Decode(decode) => decode::run(decode),
        CliCommand::Upstreams(upstreams) => upstreams::run(upstreams),
        CliCommand::Completions(completions) => {
            let mut command = CliArgs::command();
            clap_complete::generate(completions.shell, &mut command, "throughline", &mut std::io::stdout());
            Ok(CliExit::Done)
        }
        CliCommand::Ask(ask) => with_runtime(ask::run(ask)),
        CliCommand::Chat(chat) => with_runtime(chat::run(chat)),
        CliCommand::Parse(parse) => with_runtime(parse::run(parse)),
        CliCommand::Tools(tools) => with_runtime(tools::run(tools)),
        CliCommand::Serve(serve) => with_runtime(serve::run(serve)),
        CliCommand::Connect(connect) => with_runtime(connect::run(connect)),
        CliCommand::Keys(keys) => with_runtime(keys::run(keys)),
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
