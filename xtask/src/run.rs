//! `cargo xtask run`: the shortest way from a fresh clone to a server that answers, or to a conversation.

use crate::fault::fault;
use crate::program::{self, ExternalProgram};
use crate::{TaskVerb, repository, web};
use anyhow::Result;
use std::io::IsTerminal;

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "run",
    about: "Build the command and start the server with the built-in demo model, without a key",
    help: "\
Usage: cargo xtask run [-- WORDS]

Builds the page, if Node.js is there, and `throughline` in the dev profile, which is the shortest way to the first answer;
starts the server and prints a link that opens the page, signed in. The demo model is a script that says so; it streams and
calls tools like any other.

  cargo xtask run                              the best there is: the page
  cargo xtask run -- serve --model ollama/qwen3  the server with a model of your own
  cargo xtask run -- chat                      always the chat in this terminal
  cargo xtask run -- ask \"Weather in Paris?\"   anything else that `throughline` understands",
    run,
};

fn run(words: Vec<String>) -> Result<()> {
    let words = match words.split_first() {
        None => vec!["serve".to_owned()],
        Some((first, rest)) if first == "--" && rest.is_empty() => vec!["serve".to_owned()],
        Some((first, rest)) if first == "--" => rest.to_vec(),
        Some((first, _)) => {
            let remedy =
                format!("words for `throughline` follow `--`: cargo xtask run -- {}", words.join(" "));
            return Err(fault(format!("`{first}` is no flag of `run`"), remedy));
        }
    };
    if words.first().is_some_and(|word| word == "serve") {
        build_page();
    }
    if !is_built() {
        eprintln!("Building throughline. The first time takes a few minutes, later ones seconds.");
    }
    let throughline = program::throughline()?;
    if words == ["chat"] && !std::io::stdin().is_terminal() {
        let shown = throughline.strip_prefix(repository::root()).unwrap_or(&throughline).display();
        eprintln!(
            "There is no terminal here, so each line of standard input is a message. For the chat with live tool\n\
             cards run `cargo xtask run -- chat` in a terminal; for one answer: {shown} ask \"What's the weather in Paris?\""
        );
    }
    ExternalProgram::new(throughline).args(words).exec()
}

/// Builds the page if possible: the server starts without one, too, and shows how to get it.
fn build_page() {
    if web::is_fresh() {
        return;
    }
    eprintln!("Building the page.");
    match web::build() {
        Ok(Ok(())) => {}
        Ok(Err(why)) => {
            eprintln!("There will be no page: {why}. With Node.js 20.19 or later: cargo xtask web build")
        }
        Err(error) => eprintln!("There will be no new page: {error:#}"),
    }
}

/// Estimates if little must be built, to announce long builds.
fn is_built() -> bool {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository::root().join("target"), Into::into);
    let name = format!("throughline{}", std::env::consts::EXE_SUFFIX);
    target.join("debug").join(name).exists()
}
