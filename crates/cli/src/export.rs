//! `throughline export`: a conversation out of a store's file, also while a server has it open. R: S4

use crate::args::{Export, ExportFormat};
use crate::data;
use crate::exit::{Ended, Exit};
use crate::messages;
use crate::output;
use crate::serve::onlooker::Onlooker;
use crate::serve::store::blobs_of;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::path::Path;
use throughline_engine::Event;
use throughline_server::portable::{
    NoLinks, Portable, PortableTurn, bring_in, csv, files, markdown, write_jsonl,
};
use throughline_server::turn_log::message_from;
use throughline_store::StoreError;
use throughline_store::catalog::{CallFilter, ConversationRow, PAGE_ROWS_MAX, PageRequest};

/// Conversations that are named when there is none of the name that was given.
const LATEST_SHOWN: u32 = 5;

/// Writes the conversation down.
pub async fn run(args: &Export) -> Ended {
    let store = Onlooker::open(args.store.as_deref()).await?;
    let failed = store.failed();
    let Some(row) = store.conversation(&args.conversation).await.map_err(failed)? else {
        let latest = store.latest_conversations(LATEST_SHOWN).await.map_err(failed)?;
        return Err(messages::no_such_conversation(&args.conversation, store.place(), &latest));
    };
    let text = match format(args) {
        ExportFormat::Jsonl => {
            let user = row.user.clone();
            let mut portable = everything(&store, row).await.map_err(failed)?;
            let blobs = blobs_of(&data::folder().ok_or_else(messages::no_data_folder)?);
            let mut content = BTreeMap::new();
            for (_, id) in files(&mut portable) {
                let Some(file) = store.file(&user, &id).await.map_err(failed)? else { continue };
                // What cannot be read stays a name: the rest of the conversation is worth more than nothing.
                if let Ok(Some(bytes)) = blobs.read(&file.hash).await {
                    content.insert(id, bytes);
                }
            }
            bring_in(&mut portable, &content);
            write_jsonl(&portable, Timestamp::now().as_millisecond())
        }
        ExportFormat::Markdown => match branch(&store, &row, args.leaf.as_deref()).await.map_err(failed)? {
            Some(text) => text,
            None => return Err(messages::no_such_leaf(args.leaf.as_deref().unwrap_or_default(), &row.id)),
        },
        ExportFormat::Csv => calls(&store, &row).await.map_err(failed)?,
    };
    match &args.output {
        Some(path) => std::fs::write(path, text).map_err(|error| messages::unwritable_file(path, &error))?,
        None => output::text(&text).map_err(|error| messages::output_failed(&error))?,
    }
    Ok(Exit::Done)
}

/// The one that is named, else the one that the file is named after.
fn format(args: &Export) -> ExportFormat {
    let extension = args.output.as_deref().and_then(Path::extension).and_then(|text| text.to_str());
    args.format.unwrap_or(match extension {
        Some("md" | "markdown") => ExportFormat::Markdown,
        Some("csv") => ExportFormat::Csv,
        _ => ExportFormat::Jsonl,
    })
}

async fn everything(store: &Onlooker, row: ConversationRow) -> Result<Portable, StoreError> {
    let mut turns = Vec::new();
    for turn in store.tree(&row.user, &row.id).await? {
        let mut events = Vec::new();
        for record in store.records(&turn.id).await?.unwrap_or_default() {
            events.push(serde_json::from_slice(&record.payload).map_err(StoreError::failed)?);
        }
        turns.push(PortableTurn { id: turn.id, parent: turn.parent, model: turn.model, events });
    }
    Ok(Portable::of(row, turns))
}

/// `None`: the conversation has no such turn.
async fn branch(
    store: &Onlooker,
    row: &ConversationRow,
    leaf: Option<&str>,
) -> Result<Option<String>, StoreError> {
    let Some(leaf) = leaf.or(row.leaf_id.as_deref()) else {
        return Ok(Some(markdown(&row.title, &[], &NoLinks)));
    };
    if store.turn(leaf).await?.is_none_or(|turn| turn.conversation_id.as_ref() != Some(&row.id)) {
        return Ok(None);
    }
    let mut messages = Vec::new();
    for turn in store.path(&row.user, leaf).await? {
        let Some(turn) = store.turn(&turn.id).await? else { continue };
        let mut events: Vec<Event> = Vec::new();
        for record in store.records(&turn.id).await?.unwrap_or_default() {
            events.push(serde_json::from_slice(&record.payload).map_err(StoreError::failed)?);
        }
        messages.push(message_from(&events, &turn));
    }
    Ok(Some(markdown(&row.title, &messages, &NoLinks)))
}

async fn calls(store: &Onlooker, row: &ConversationRow) -> Result<String, StoreError> {
    let filter = CallFilter { conversation_id: Some(row.id.clone()), ..CallFilter::default() };
    let (mut text, mut page) = (csv::header(), PageRequest::first().limit(PAGE_ROWS_MAX));
    loop {
        let found = store.calls(&row.user, &filter, &page).await?;
        found.items.iter().for_each(|call| csv::row(&mut text, call));
        match found.next {
            Some(next) => page = PageRequest::after(next).limit(PAGE_ROWS_MAX),
            None => return Ok(text),
        }
    }
}
