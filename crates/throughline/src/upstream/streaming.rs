//! The setting `streaming` of an upstream.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Delivery of the replies of an upstream. In files `"on"`, `"off"`, `"auto"`, `true` or `false`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamingSetting {
    /// Streamed.
    #[default]
    On,
    /// Whole.
    Off,
    /// Streamed. A stream that breaks before its first content is requested again as a whole reply, once, and
    /// the turn reports it.
    Auto,
}

impl StreamingSetting {
    /// Names of the settings.
    pub const NAMES: [&'static str; 3] = ["on", "off", "auto"];

    /// The setting of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "on" => Some(Self::On),
            "off" => Some(Self::Off),
            "auto" => Some(Self::Auto),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for StreamingSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SettingVisitor;
        impl Visitor<'_> for SettingVisitor {
            type Value = StreamingSetting;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`on`, `off`, `auto`, true or false")
            }
            fn visit_bool<E>(self, on: bool) -> Result<StreamingSetting, E> {
                Ok(if on { StreamingSetting::On } else { StreamingSetting::Off })
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<StreamingSetting, E> {
                StreamingSetting::from_name(name)
                    .ok_or_else(|| E::unknown_variant(name, &StreamingSetting::NAMES))
            }
        }
        deserializer.deserialize_any(SettingVisitor)
    }
}
