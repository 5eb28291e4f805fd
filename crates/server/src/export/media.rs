//! Media of a portable conversation: a reference to a stored file inside, the content itself in an exported text.

use super::{EventJson, PortableConversation};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use throughline::{MediaOwner, MediaStore};
use throughline_store::{Log, LogError};

/// Gives everything its content out of the files of [`media_files`]. What is not there any more stays a reference.
pub fn embed_media(portable: &mut PortableConversation, content: &BTreeMap<String, Vec<u8>>) {
    for event in portable.turns.iter_mut().flat_map(|turn| &mut turn.events) {
        let Some(mut values) = event.values_with("file_id") else { continue };
        let mut is_changed = false;
        for media in media_objects(&mut values) {
            let Some(file) = media.get("file_id").and_then(Value::as_str) else { continue };
            let Some(bytes) = content.get(file) else { continue };
            is_changed = true;
            media.remove("file_id");
            media.remove("bytes");
            media.insert("data".to_owned(), STANDARD.encode(bytes).into());
        }
        if is_changed {
            replace(event, &values);
        }
    }
}

/// Moves content that is too large for a log to files; content that cannot be stored stays in the event.
///
/// # Errors
/// Disk space is low: the reserve is for running turns.
pub(super) async fn extract_media(
    portable: &mut PortableConversation,
    user: &str,
    store: &dyn MediaStore,
    log: &dyn Log,
) -> Result<(), LogError> {
    let owner = MediaOwner { user: Some(user.to_owned()), turn_id: None };
    for event in portable.turns.iter_mut().flat_map(|turn| &mut turn.events) {
        // None of its texts is larger than itself.
        if event.as_str().len() as u64 / 4 * 3 <= store.inline_bytes_max() {
            continue;
        }
        let Some(mut values) = event.values_with("data") else { continue };
        let mut is_changed = false;
        for media in media_objects(&mut values) {
            let Some(data) = media.get("data").and_then(Value::as_str) else { continue };
            if data.len() as u64 / 4 * 3 <= store.inline_bytes_max() {
                continue;
            }
            let Ok(bytes) = STANDARD.decode(data) else { continue };
            // Each file may itself be what takes the room.
            log.accepts_new_turns()?;
            let media_type = media.get("media_type").and_then(Value::as_str).unwrap_or_default().to_owned();
            let size = bytes.len();
            if let Ok(file) = store.save(&owner, &media_type, bytes).await {
                media.remove("data");
                media.insert("file_id".to_owned(), file.into());
                media.insert("bytes".to_owned(), size.into());
                is_changed = true;
            }
        }
        if is_changed {
            replace(event, &values);
        }
    }
    Ok(())
}

/// Files and the turns that refer to them.
pub fn media_files(portable: &PortableConversation) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for turn in &portable.turns {
        for mut values in turn.events.iter().filter_map(|event| event.values_with("file_id")) {
            for media in media_objects(&mut values) {
                if let Some(file) = media.get("file_id").and_then(Value::as_str) {
                    files.push((turn.id.clone(), file.to_owned()));
                }
            }
        }
    }
    files.sort_unstable();
    files.dedup();
    files
}

fn replace(event: &mut EventJson, values: &Value) {
    if let Ok(changed) = EventJson::of(values) {
        *event = changed;
    }
}

/// The objects of an event that hold pictures, sounds and files.
fn media_objects(event: &mut Value) -> Vec<&mut Map<String, Value>> {
    let Some(event) = event.as_object_mut() else { return Vec::new() };
    match event.get("type").and_then(Value::as_str) {
        Some("block_start") if event.get("kind").and_then(Value::as_str) == Some("image") => vec![event],
        Some("stream_start" | "user_message") => objects_in_list(event, "input"),
        Some("tool_result") => objects_in_list(event, "output_media"),
        _ => Vec::new(),
    }
}

fn objects_in_list<'e>(event: &'e mut Map<String, Value>, name: &str) -> Vec<&'e mut Map<String, Value>> {
    let list = event.get_mut(name).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut).collect()
}
