//! The `throughline` command: arguments, pipes and the terminal.
//!
//! It has no logic of its own: what a stream means is decided in `throughline-wire`, what a turn does in
//! `throughline-engine`, and what runs in the library `throughline`. This crate reads arguments, prints and asks.

mod args;
mod ask;
mod asking;
mod chat;
mod connect;
mod data;
mod decode;
mod doctor;
mod exit;
mod export;
mod external_editor;
mod history;
mod import;
mod interrupt;
mod keys;
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

use args::{Args, Command};
use clap::{CommandFactory, Parser};
use exit::Exit;
use runtime::with_runtime;
use std::process::ExitCode;

/// Makes this binary the helper that supervises and confines the programs of tools. For nobody else's use.
pub const EXEC: &str = "__exec";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == EXEC) {
        // Before anything else: what happens here stays in the child.
        return throughline_tools::process::helper_main(arguments);
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return exit::usage(&error).into(),
    };
    // Keys of models are in our environment, and programs of tools run as the same user.
    throughline_tools::process::hide_this_process();
    let ended = match &args.command {
        Command::Decode(decode) => decode::run(decode),
        Command::Upstreams(upstreams) => upstreams::run(upstreams),
        Command::Completions(completions) => {
            let mut command = Args::command();
            clap_complete::generate(completions.shell, &mut command, "throughline", &mut std::io::stdout());
            Ok(Exit::Done)
        }
        Command::Ask(ask) => with_runtime(ask::run(ask)),
        Command::Chat(chat) => with_runtime(chat::run(chat)),
        Command::Parse(parse) => with_runtime(parse::run(parse)),
        Command::Tools(tools) => with_runtime(tools::run(tools)),
        Command::Serve(serve) => with_runtime(serve::run(serve)),
        Command::Connect(connect) => with_runtime(connect::run(connect)),
        Command::Keys(keys) => with_runtime(keys::run(keys)),
        Command::Doctor(doctor) => with_runtime(doctor::run(doctor)),
        Command::History(history) => with_runtime(history::run(history)),
        Command::Export(export) => with_runtime(export::run(export)),
        Command::Import(import) => with_runtime(import::run(import)),
        Command::Replay(replay) => with_runtime(replay::run(replay)),
        #[cfg(feature = "demo")]
        Command::Mock(mock) => with_runtime(mock::run(mock)),
    };
    ended.unwrap_or_else(|error| exit::report(&error)).into()
}
