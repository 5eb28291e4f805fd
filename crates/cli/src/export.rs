//! `throughline export`: a conversation out of a store's file, also while a server has it open.

use crate::args::{ExportArgs, ExportFileFormat};
use crate::data_dir;
use crate::exit::{CliExit, CommandResult};
use crate::messages;
use crate::output;
use crate::serve::read_only_store::ReadOnlyStore;
use crate::serve::store::blobs_in;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::path::Path;
use throughline_engine::Event;
use throughline_server::{
    EventJson, NoMediaLinks, PortableConversation, PortableTurn, calls_csv_header, conversation_markdown,
    embed_media, media_files, message_from, write_call_csv, write_jsonl,
};
use throughline_store::{BlobFolder, CallFilter, ConversationRow, PAGE_ROWS_MAX, PageRequest, StoreError};

/// Number of conversations listed when the given id is not found.
const LATEST_SHOWN: u32 = 5;

/// Writes the conversation down.
pub(crate) async fn run(args: &ExportArgs) -> CommandResult {
    let store = ReadOnlyStore::open(args.store.as_deref()).await?;
    let failed = store.failed();
    let Some(row) = store.conversation(&args.conversation).await.map_err(failed)? else {
        let latest = store.latest_conversations(LATEST_SHOWN).await.map_err(failed)?;
        return Err(messages::no_such_conversation(&args.conversation, store.location(), &latest));
    };
    let text = match export_format(args) {
        ExportFileFormat::Jsonl => {
            let blobs = blobs_in(&data_dir::folder().ok_or_else(messages::no_data_folder)?);
            let portable = portable(&store, row, &blobs).await.map_err(failed)?;
            write_jsonl(&portable, Timestamp::now().as_millisecond())
        }
        ExportFileFormat::Markdown => match export_branch(&store, &row, args.leaf.as_deref())
            .await
            .map_err(failed)?
        {
            Some(text) => text,
            None => return Err(messages::no_such_leaf(args.leaf.as_deref().unwrap_or_default(), &row.id)),
        },
        ExportFileFormat::Csv => export_calls(&store, &row).await.map_err(failed)?,
    };
    match &args.output {
        Some(path) => std::fs::write(path, text).map_err(|error| messages::unwritable_file(path, &error))?,
        None => output::text(&text).map_err(|error| messages::output_failed(&error))?,
    }
    Ok(CliExit::Done)
}

/// The one that is named, else the one that the file is named after.
fn export_format(args: &ExportArgs) -> ExportFileFormat {
    let extension = args.output.as_deref().and_then(Path::extension).and_then(|text| text.to_str());
    args.format.unwrap_or(match extension {
        Some("md" | "markdown") => ExportFileFormat::Markdown,
        Some("csv") => ExportFileFormat::Csv,
        _ => ExportFileFormat::Jsonl,
    })
}

/// A whole conversation with its media.
pub(crate) async fn portable(
    store: &ReadOnlyStore,
    row: ConversationRow,
    blobs: &BlobFolder,
) -> Result<PortableConversation, StoreError> {
    let user = row.user.clone();
    let mut portable = export_all(store, row).await?;
    let mut content = BTreeMap::new();
    for (_, id) in media_files(&portable) {
        let Some(file) = store.file(&user, &id).await? else { continue };
        // What cannot be read stays a name: the rest of the conversation is worth more than nothing.
        if let Ok(Some(bytes)) = blobs.read(&file.hash).await {
            content.insert(id, bytes);
        }
    }
    embed_media(&mut portable, &content);
    Ok(portable)
}

async fn export_all(store: &ReadOnlyStore, row: ConversationRow) -> Result<PortableConversation, StoreError> {
    let mut turns = Vec::new();
    for turn in store.tree(&row.user, &row.id).await? {
        let mut events = Vec::new();
        for record in store.records(&turn.id).await?.unwrap_or_default() {
            events.push(EventJson::from_log(&record.payload).map_err(StoreError::failed)?);
        }
        turns.push(PortableTurn {
            id: turn.id,
            parent: turn.parent,
            model: turn.model,
            rating: turn.rating,
            events,
        });
    }
    Ok(PortableConversation::of(row, turns))
}

/// `None`: the conversation has no such turn.
async fn export_branch(
    store: &ReadOnlyStore,
    row: &ConversationRow,
    leaf: Option<&str>,
) -> Result<Option<String>, StoreError> {
    let Some(leaf) = leaf.or(row.leaf_id.as_deref()) else {
        return Ok(Some(conversation_markdown(&row.title, &[], &NoMediaLinks)));
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
    Ok(Some(conversation_markdown(&row.title, &messages, &NoMediaLinks)))
}

async fn export_calls(store: &ReadOnlyStore, row: &ConversationRow) -> Result<String, StoreError> {
    let filter = CallFilter { conversation_id: Some(row.id.clone()), ..CallFilter::default() };
    let (mut text, mut page) = (calls_csv_header(), PageRequest::first().limit(PAGE_ROWS_MAX));
    loop {
        let call_page = store.calls(&row.user, &filter, &page).await?;
        call_page.items.iter().for_each(|call| write_call_csv(&mut text, call));
        match call_page.next {
            Some(next) => page = PageRequest::after(next).limit(PAGE_ROWS_MAX),
            None => return Ok(text),
        }
    }
}
