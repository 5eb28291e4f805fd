//! `throughline import`: a conversation into the store, or through the server that has it open.

use crate::args::{ImportArgs, ModelArgs};
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages::{self, UiLanguage, UiText};
use crate::output;
use crate::serve::running_server::RunningServer;
use crate::serve::store::{OpenStoreError, ServerStorage};
use crate::setup;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::io::{self, Read};
use std::path::Path;
use throughline_server::{
    CatalogMediaStore, ImportFormat, ImportTarget, LOCAL_USER, PortableConversation, import_conversation,
    parse_conversation,
};

/// Reads the file and imports it.
pub(crate) async fn run(args: &ImportArgs) -> CommandResult {
    let words = UiText(UiLanguage::current());
    let text = read_file(&args.file)?;
    // Parsed here even if a server parses it again: errors refer to the file.
    let now = Timestamp::now().as_millisecond();
    let portable = parse_conversation(&text, import_format(&args.file), now, u64::MAX);
    let portable = portable.map_err(|error| messages::not_importable(&args.file, &error))?;
    let turns = portable.turns.len();
    let choice = ModelArgs { config: args.at.config.clone(), ..ModelArgs::default() };
    let settings = setup::load_settings_with(&choice, None, args.at.store.as_deref())?;
    let imported = match ServerStorage::open(&settings.store).await {
        Ok(storage) => {
            import_into_store(&storage, portable, settings.server.limits.media_inline_bytes_max).await?
        }
        Err(OpenStoreError::InUse(why)) => {
            let server =
                RunningServer::of_data_folder().map_err(|no| messages::import_in_the_way(&no, &why))?;
            // JSON Lines declare their format; other files need the parameter.
            let kind = if import_format(&args.file) == ImportFormat::JsonLines {
                "application/jsonl"
            } else {
                "application/json"
            };
            let request = server.post("/v1/conversations/import").header("content-type", kind).body(text);
            RunningServer::send(request).await.map_err(|why| messages::not_imported(&why))?
        }
        Err(error) => return Err(error.into()),
    };
    let printed = if args.json {
        output::json_line(&imported)
    } else {
        let text = |name: &str| imported[name].as_str().unwrap_or_default().to_owned();
        output::text(&words.imported(&text("id"), &text("title"), turns))
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

async fn import_into_store(
    storage: &ServerStorage,
    portable: PortableConversation,
    inline_max: u32,
) -> Result<Value, CliFailure> {
    let now = Timestamp::now().as_millisecond();
    let media = CatalogMediaStore::new(storage.catalog(), storage.blobs_unlocked(), inline_max.into());
    let (log, catalog) = (storage.log(), storage.catalog());
    let destination = ImportTarget { log: &*log, catalog: &*catalog, media: &media };
    let import_result = import_conversation(destination, LOCAL_USER, portable, now).await;
    let import_result = match import_result {
        Ok(id) => storage.catalog().conversation(LOCAL_USER, &id).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    storage.store.close().await;
    let row = import_result.map_err(|why| messages::not_imported(&why))?.map(|summary| summary.conversation);
    let row = row.ok_or_else(|| messages::not_imported(&messages::lost_after_import()))?;
    Ok(json!({"id": row.id, "title": row.title, "leaf_id": row.leaf_id, "created_at": row.created_at}))
}

fn read_file(file: &Path) -> Result<String, CliFailure> {
    if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(|error| messages::input_failed(&error))?;
        return Ok(text);
    }
    std::fs::read_to_string(file).map_err(|error| messages::unreadable_file(file, &error))
}

fn import_format(file: &Path) -> ImportFormat {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("jsonl" | "ndjson") => ImportFormat::JsonLines,
        _ => ImportFormat::Detect,
    }
}
