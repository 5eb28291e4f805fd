//! The `throughline` command: arguments, pipes and the terminal.
//!
//! It has no logic of its own: what a stream means is decided in `throughline-wire`, what a turn does in
//! `throughline-engine`, and what runs in the library `throughline`. This crate reads arguments, prints and asks.

mod args;
mod decode;
mod exit;
mod messages;

use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return exit::usage(&error).into(),
    };
    let ended = match args.command {
        Command::Decode(decode) => decode::run(&decode),
    };
    ended.unwrap_or_else(|error| exit::report(&error)).into()
}
