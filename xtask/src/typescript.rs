//! `cargo xtask typescript`: the types of the client for TypeScript, from the description of the API.

use crate::fault::fault;
use crate::{TaskVerb, web};
use anyhow::Result;

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "typescript",
    about: "Write the types of the TypeScript client from the description of the API",
    help: "\
Usage: cargo xtask typescript [--check | --write]

Generates web/client/src/api.ts from web/client/openapi.json with openapi-typescript (web/generate/package.json has its options).
Needs Node.js 20.19 or later with npm. A test checks that the description is the one that the server serves
(crates/server/tests/it/resources/openapi.rs).

  --check   fail if the file is not what would be written (default)
  --write   write it",
    run,
};

fn run(words: Vec<String>) -> Result<()> {
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["--check"] => check()?.map(|figure| println!("{figure}")),
        ["--write"] => web::generate("write")?,
        _ => return Err(fault("these flags are not understood", "see `cargo xtask typescript --help`")),
    };
    outcome.map_err(|why| fault(why, "https://nodejs.org"))
}

/// Fails if the types are not those of the description; inside: the reason why that cannot be checked here.
pub(crate) fn check() -> Result<Result<String, String>> {
    let checked = web::generate("check").map_err(|error| {
        fault(
            format!("web/client/src/api.ts is not generated from web/client/openapi.json: {error}"),
            "`cargo xtask typescript --write`; if the API has changed, renew the description first: \
             `THROUGHLINE_BLESS=1 cargo test --workspace --test it typed_client`",
        )
    })?;
    Ok(checked.map(|()| "the types are those of the description".to_owned()))
}
