//! New ids for an imported conversation: its own may be in use here.

use super::{EventJson, LineError, PortableConversation, PortableTurn};
use serde_json::Value;
use std::collections::BTreeMap;

/// New ids of the conversation and each turn.
pub struct IdMap {
    conversation: String,
    turns: BTreeMap<String, String>,
    messages: BTreeMap<String, String>,
}

impl IdMap {
    /// New names for all of it; `new_id` makes one of a prefix, never the same twice.
    pub fn new(portable: &PortableConversation, mut mint: impl FnMut(&str) -> String) -> Self {
        let mut renaming =
            Self { conversation: mint("conv_"), turns: BTreeMap::new(), messages: BTreeMap::new() };
        for turn in &portable.turns {
            renaming.turns.insert(turn.id.clone(), mint("turn_"));
            // The message's id is in the first event.
            if let Some(message) = turn.events.first().and_then(message_of) {
                renaming.messages.insert(message, mint("msg_"));
            }
        }
        renaming
    }

    /// The new name of a turn.
    pub fn turn(&self, id: &str) -> Option<&str> {
        self.turns.get(id).map(String::as_str)
    }

    /// The conversation with new ids.
    ///
    /// # Errors
    /// An event cannot be read, such as one of an earlier release whose arguments nest too deeply.
    pub fn apply(&self, mut portable: PortableConversation) -> Result<PortableConversation, LineError> {
        portable.id = self.conversation.clone();
        portable.leaf_id = portable.leaf_id.and_then(|leaf| self.turns.get(&leaf).cloned());
        for turn in &mut portable.turns {
            self.rename_turn(turn)?;
        }
        Ok(portable)
    }

    fn rename_turn(&self, turn: &mut PortableTurn) -> Result<(), LineError> {
        let Some(new) = self.turns.get(&turn.id) else { return Ok(()) };
        for event in &mut turn.events {
            let renamed = event.parse().and_then(|mut values| {
                self.rename_event(&mut values, &turn.id, new);
                EventJson::of(&values)
            });
            *event = renamed.map_err(|error| {
                LineError::new(1, format!("an event of turn `{}` cannot be read: {error}", turn.id))
            })?;
        }
        if let Some(parent) = &mut turn.parent
            && let Some(renamed) = self.turns.get(&parent.turn_id)
        {
            parent.turn_id.clone_from(renamed);
        }
        turn.id.clone_from(new);
        Ok(())
    }

    /// Renames the fields that contain ids: ids of calls and questions begin with the turn's. Similar text
    /// elsewhere is not changed.
    fn rename_event(&self, event: &mut Value, old: &str, new: &str) {
        let Value::Object(members) = event else { return };
        for (key, value) in members {
            match (key.as_str(), value) {
                ("turn_id", value) => *value = Value::from(new),
                ("conversation_id", value) => *value = Value::from(self.conversation.as_str()),
                ("message_id", Value::String(id)) => {
                    if let Some(renamed) = self.messages.get(id) {
                        id.clone_from(renamed);
                    }
                }
                ("tool_id" | "approval_id" | "supersedes", Value::String(id)) => prefixed(id, old, new),
                ("segments", Value::Array(segments)) => {
                    for segment in segments {
                        if let Some(Value::String(id)) = segment.get_mut("tool_id") {
                            prefixed(id, old, new);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

fn message_of(event: &EventJson) -> Option<String> {
    Some(event.values_with("message_id")?.get("message_id")?.as_str()?.to_owned())
}

fn prefixed(id: &mut String, old: &str, new: &str) {
    if let Some(rest) = id.strip_prefix(old) {
        *id = format!("{new}{rest}");
    }
}
