//! A turn as the server keeps it: the library's, and what the server itself has promised about it.

use super::OnDisconnect;
use serde::{Deserialize, Serialize};
use throughline::StoredTurn;

#[derive(Serialize)]
struct TurnRecordRef<'a> {
    #[serde(flatten)]
    turn: &'a StoredTurn,
    #[serde(flatten)]
    promised: &'a TurnOwnerMetadata,
}

/// Settings of a turn that the server stores in addition to the library's.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct TurnOwnerMetadata {
    /// Behavior after a restart if no viewer reconnects.
    #[serde(default, skip_serializing_if = "goes_on")]
    pub after_restart: OnDisconnect,
    /// Limit key that the turn counts against; absent in turns of earlier releases.
    #[serde(default, rename = "counted_as", skip_serializing_if = "Option::is_none")]
    pub quota_key: Option<String>,
}

/// Serializes both as JSON.
pub(super) fn write(turn: &StoredTurn, metadata: &TurnOwnerMetadata) -> Result<String, serde_json::Error> {
    serde_json::to_string(&TurnRecordRef { turn, promised: metadata })
}

/// Parses the output of `write`.
pub(super) fn read(stored: &str) -> Result<(StoredTurn, TurnOwnerMetadata), serde_json::Error> {
    Ok((serde_json::from_str(stored)?, serde_json::from_str(stored)?))
}

fn goes_on(after: &OnDisconnect) -> bool {
    *after == OnDisconnect::Continue
}
