//! `throughline import`: a conversation into the store, or through the server that has it open. R: S4

use crate::args::{Choice, Import};
use crate::exit::{Ended, Exit, Failure};
use crate::messages::{self, Lang, Words};
use crate::output;
use crate::serve::running::Running;
use crate::serve::store::{Kept, NoStore};
use crate::setup;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::io::{self, Read};
use std::path::Path;
use throughline_server::gate::LOCAL_USER;
use throughline_server::kept_media::KeptMedia;
use throughline_server::portable::{self, Destination, Portable, Said};

/// Reads the file and takes in what it holds.
pub async fn run(args: &Import) -> Ended {
    let words = Words(Lang::of_environment());
    let text = text(&args.file)?;
    // Read here even if a server does it again: what is wrong with the file is said of the file.
    let portable = portable::read(&text, said(&args.file), Timestamp::now().as_millisecond());
    let portable = portable.map_err(|error| messages::not_importable(&args.file, &error))?;
    let turns = portable.turns.len();
    let choice = Choice { config: args.at.config.clone(), ..Choice::default() };
    let settings = setup::settings_with(&choice, None, args.at.store.as_deref())?;
    let taken_in = match Kept::open(&settings.store).await {
        Ok(kept) => into_store(&kept, portable, settings.server.limits.media_inline_bytes_max).await?,
        Err(NoStore::InUse(why)) => {
            let server = Running::of_data_folder().map_err(|no| messages::import_in_the_way(&no, &why))?;
            // What it asks for is said by the file itself, or by this.
            let kind =
                if said(&args.file) == Said::JsonLines { "application/jsonl" } else { "application/json" };
            let request = server.post("/v1/conversations/import").header("content-type", kind).body(text);
            Running::answer(request).await.map_err(|why| messages::not_imported(&why))?
        }
        Err(error) => return Err(error.into()),
    };
    let said = match args.json {
        true => output::json_line(&taken_in),
        false => {
            let text = |name: &str| taken_in[name].as_str().unwrap_or_default().to_owned();
            output::text(&words.imported(&text("id"), &text("title"), turns))
        }
    };
    said.map_err(|error| messages::output_failed(&error))?;
    Ok(Exit::Done)
}

async fn into_store(kept: &Kept, portable: Portable, inline_max: u32) -> Result<Value, Failure> {
    let now = Timestamp::now().as_millisecond();
    let media = KeptMedia::new(kept.catalog(), kept.blobs_beside(), inline_max.into());
    let (log, catalog) = (kept.log(), kept.catalog());
    let destination = Destination { log: &*log, catalog: &*catalog, media: &media };
    let taken = portable::take_in(destination, LOCAL_USER, portable, now).await;
    let taken = match taken {
        Ok(id) => kept.catalog().conversation(LOCAL_USER, &id).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    kept.store.close().await;
    let row = taken.map_err(|why| messages::not_imported(&why))?.map(|summary| summary.conversation);
    let row = row.ok_or_else(|| messages::not_imported(&"it is not there after it was taken in"))?;
    Ok(json!({"id": row.id, "title": row.title, "leaf_id": row.leaf_id, "created_at": row.created_at}))
}

fn text(file: &Path) -> Result<String, Failure> {
    if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(|error| messages::input_failed(&error))?;
        return Ok(text);
    }
    std::fs::read_to_string(file).map_err(|error| messages::unreadable_file(file, &error))
}

fn said(file: &Path) -> Said {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("jsonl" | "ndjson") => Said::JsonLines,
        _ => Said::Nothing,
    }
}
