//! `throughline mcp import`: MCP servers from the configuration of another client.

mod client_json;

use crate::args::{McpArgs, McpCommand};
use crate::connect::config_edit::replace_file;
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::output::err;
use crate::{messages, output, setup};
pub(crate) use client_json::ImportedServer;
use client_json::read_servers;
use std::io::Read;
use std::path::{Path, PathBuf};
use throughline::config::ConfigFile;
use toml_edit::{DocumentMut, Item, Table};

/// Longest file of another client that is read, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Converts, and prints or writes.
pub(crate) fn run(args: &McpArgs) -> CommandResult {
    let McpCommand::Import { file, write, config } = &args.command;
    let servers = read_servers(&read(file)?).map_err(|why| messages::no_mcp_servers(file, &why))?;
    if !*write {
        let document = added_to(DocumentMut::new(), &servers).map_err(|why| messages::not_converted(&why))?.0;
        check(&document.to_string())?;
        output::text(&document.to_string()).map_err(|error| messages::output_failed(&error))?;
        err!("{}", messages::imported_servers(&servers, None));
        return Ok(CliExit::Done);
    }
    let target = setup::config_file(config.as_deref()).unwrap_or_else(|| PathBuf::from("throughline.toml"));
    let text = match std::fs::read_to_string(&target) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(messages::file_failed(&target, &error)),
    };
    let before: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| messages::not_converted(&error))?;
    let (document, present) = added_to(before, &servers).map_err(|why| messages::not_converted(&why))?;
    let written = document.to_string();
    check(&written)?;
    replace_file(&target, &written).map_err(|error| messages::not_written(&target, &error))?;
    let added: Vec<ImportedServer> =
        servers.into_iter().filter(|server| !present.contains(&server.name)).collect();
    let report = messages::imported_servers(&added, Some((&target, &present)));
    output::text(&report).map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

fn read(file: &Path) -> Result<String, CliFailure> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(FILE_BYTES_MAX).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text))
    };
    read.map_err(|error| messages::file_failed(file, &error))?;
    Ok(text)
}

/// The result must be a configuration.
fn check(text: &str) -> Result<(), CliFailure> {
    ConfigFile::parse("throughline.toml", text)
        .map(drop)
        .map_err(|error| messages::not_converted(&messages::config(&error).what))
}

/// The document with the servers that it does not have yet, and the names of those that it has.
fn added_to(
    mut document: DocumentMut,
    servers: &[ImportedServer],
) -> Result<(DocumentMut, Vec<String>), String> {
    let group = document.entry("mcp").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let group = group.as_table_like_mut().ok_or_else(|| messages::no_table("mcp"))?;
    let mut present = Vec::new();
    for server in servers {
        if group.contains_key(&server.name) {
            present.push(server.name.clone());
        } else {
            group.insert(&server.name, Item::Table(server.section()));
        }
    }
    Ok((document, present))
}
