//! `cargo xtask typescript`: the types of the client for TypeScript, from the description of the API. R: E5

mod name;
mod operation;
mod shape;
mod text;

use crate::fault::fault;
use crate::{TaskVerb, repository};
use anyhow::{Context, Result};
use serde_json::{Map, Value};

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "typescript",
    about: "Write the types of the TypeScript client from the description of the API",
    help: "\
Usage: cargo xtask typescript [--check | --write]

Makes web/client/src/api.ts of web/client/openapi.json: a type for every schema, and one for every operation. That the
description is the one that the server serves is a test's to say (crates/server/tests/resources/openapi.rs).

  --check   fail if the file is not what would be written (default)
  --write   write it",
    run,
};

const DOCUMENT: &str = "web/client/openapi.json";
const TYPES: &str = "web/client/src/api.ts";

fn run(words: Vec<String>) -> Result<()> {
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["--check"] => {
            println!("{}", check()?);
            Ok(())
        }
        ["--write"] => repository::write(TYPES, &generated()?),
        _ => Err(fault("these flags are not understood", "see `cargo xtask typescript --help`")),
    }
}

/// Fails if the types are not those of the description.
pub(crate) fn check() -> Result<String> {
    let (expected, found) = (generated()?, repository::read(TYPES).unwrap_or_default());
    if found.replace("\r\n", "\n") != expected {
        return Err(fault(
            format!("{TYPES} is not made of {DOCUMENT}"),
            "`cargo xtask typescript --write`; if the API has changed, renew the description first: \
             `THROUGHLINE_BLESS=1 cargo test --workspace --test resources typed_client`",
        ));
    }
    let lines = expected.lines().count();
    Ok(format!("{lines} lines of types are those of the description"))
}

fn generated() -> Result<String> {
    let document = repository::read(DOCUMENT)?;
    module(&serde_json::from_str(&document).with_context(|| format!("{DOCUMENT} is no JSON"))?)
}

/// The whole file.
fn module(document: &Value) -> Result<String> {
    let none = Map::new();
    let schemas = document["components"]["schemas"].as_object().unwrap_or(&none);
    let names = name::SchemaNames::of(schemas.keys())?;
    let mut text = String::from(
        "// Generated from openapi.json by `cargo xtask typescript --write`: do not edit.\n\n\
         /** A value of JSON. */\n\
         export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };\n",
    );
    for (name, schema) in schemas {
        text.push('\n');
        text.push_str(&shape::declaration(names.of_schema(name)?, schema, &names)?);
    }
    text.push('\n');
    text.push_str(&operation::all(document, &names)?);
    Ok(text)
}

#[cfg(test)]
mod tests;
