//! A turn as the server keeps it: the library's, and what the server itself has promised about it.

use super::OnDisconnect;
use serde::{Deserialize, Serialize};
use throughline::StoredTurn;

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    turn: &'a StoredTurn,
    #[serde(skip_serializing_if = "goes_on")]
    after_restart: OnDisconnect,
}

#[derive(Deserialize)]
struct Promised {
    #[serde(default)]
    after_restart: OnDisconnect,
}

/// As JSON, with what happens after a restart to a turn whose viewers do not come back.
pub(super) fn write(turn: &StoredTurn, after_restart: OnDisconnect) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Written { turn, after_restart })
}

/// The turn, and what happens to it if nobody comes back to it.
pub(super) fn read(stored: &str) -> Result<(StoredTurn, OnDisconnect), serde_json::Error> {
    let turn = serde_json::from_str(stored)?;
    let Promised { after_restart } = serde_json::from_str(stored)?;
    Ok((turn, after_restart))
}

fn goes_on(after: &OnDisconnect) -> bool {
    *after == OnDisconnect::Continue
}
