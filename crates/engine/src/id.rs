//! Ids and numbers of a turn.

use serde::{Deserialize, Serialize};
use std::fmt;
use throughline_wire::text_id;

/// A point in time: milliseconds since 1970 (UTC). The machine never reads a clock.
pub type UnixMillis = i64;

text_id! {
    /// A turn. Made by the driver, unique everywhere.
    #[derive(Default)]
    TurnId
}
text_id! {
    /// The one assistant message of a turn. Made by the driver.
    #[derive(Default)]
    MessageId
}
text_id! {
    /// A conversation. Made by the driver or the store.
    #[derive(Default)]
    ConversationId
}
text_id! {
    /// A message that the user sends while a turn runs. Made by the sender, unique in the turn: a second one of the
    /// same id is the same message.
    #[derive(Default)]
    UserMessageId
}
text_id! {
    /// A question to a person. Minted by the machine from the call's id, so that the model cannot choose it.
    #[derive(Default)]
    ApprovalId
}

/// Number of an event in its turn, dense from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventSeq(pub u64);

impl EventSeq {
    /// The number after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for EventSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
