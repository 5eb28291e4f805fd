//! `throughline man`: the manual pages of the command and its subcommands, from the same description as the help.

use crate::args::{CliArgs, ManArgs};
use crate::exit::{CliExit, CommandResult};
use crate::messages;
use clap::CommandFactory;

/// Writes one page for each command that is not hidden.
pub(crate) fn run(args: &ManArgs) -> CommandResult {
    let written = std::fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(CliArgs::command(), &args.folder));
    written.map_err(|error| messages::unwritable_file(&args.folder, &error))?;
    Ok(CliExit::Done)
}
