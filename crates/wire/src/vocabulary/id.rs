//! Newtypes where two strings could be swapped.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Defines a newtype of a text. For the crates of this workspace; the caller imports `fmt` and serde's derives.
#[doc(hidden)]
#[macro_export]
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
            /// The text, owned.
            pub fn into_string(self) -> String {
                self.0
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
    /// Our id of a tool call: minted from turn and ordinal, unique in a turn, stable from first sight to result.
    CallId
}
text_id! {
    /// The upstream's id of a tool call. Opaque, of any length; may be absent, repeated or changing on the wire
    /// (`id-changes`, `id-duplicate` in `docs/conformance.md`), so nothing but the reply to the upstream uses it.
    UpstreamCallId
}
text_id! {
    /// A tool's own name, `group.method` (`live2d.expression`).
    ToolName
}
text_id! {
    /// A tool's name as an upstream sees it: `[A-Za-z0-9_-]{1,64}`, mapped back exactly by the tool registry.
    WireName
}

/// A call's position in one step, in order of first appearance, from 0. It replaces the upstream's index
/// everywhere outside call assembly, because the upstream's index may be missing, repeated or wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallSlot(pub u32);
