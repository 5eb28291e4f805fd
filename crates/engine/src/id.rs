//! Ids and numbers of a turn.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A point in time: milliseconds since 1970 (UTC). The machine never reads a clock.
pub type UnixMillis = i64;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps a text; nothing is checked.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }
    };
}

text_id! {
    /// A turn. Made by the driver, unique everywhere.
    TurnId
}
text_id! {
    /// The one assistant message of a turn. Made by the driver.
    MessageId
}
text_id! {
    /// A conversation. Made by the driver or the store.
    ConversationId
}
text_id! {
    /// A message that the user sends while a turn runs. Made by the sender, unique in the turn: a second one of the
    /// same id is the same message.
    UserMessageId
}
text_id! {
    /// A question to a person. Minted by the machine from the call's id, so that the model cannot choose it.
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
