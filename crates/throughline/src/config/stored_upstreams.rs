//! Upstreams connected at run time: keys and custom addresses. They are stored in one private file of the data folder
//! and rank between `throughline.toml` and the environment.

use crate::upstream::Secret;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use throughline_tools::private_file::{PrivateFile, PrivateFileError, VersionedDocument};
use throughline_wire::Dialect;

/// The file in the data folder.
pub const STORED_UPSTREAMS_FILE: &str = "upstreams.json";
/// Longest file that can be ours.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Longest key, in bytes. The longest ones, of services that sign them, have about 2,000.
pub const KEY_BYTES_MAX: usize = 8 << 10;

/// The stored upstreams, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredUpstreams {
    v: u32,
    upstreams: BTreeMap<String, StoredUpstream>,
}

/// One stored upstream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredUpstream {
    /// Stored key; `None` = no key is needed, or the environment has it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "in_clear")]
    pub key: Option<Secret>,
    /// Address of an upstream that is not known by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "own")]
    pub endpoint: Option<CustomEndpoint>,
}

/// A custom address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomEndpoint {
    /// Wire format of the endpoint.
    #[serde(with = "by_name")]
    pub dialect: Dialect,
    /// Base URL, to which the dialect's path is appended.
    pub base_url: String,
}

impl Default for StoredUpstreams {
    fn default() -> Self {
        Self { v: Self::FORMAT_VERSION, upstreams: BTreeMap::new() }
    }
}

impl VersionedDocument for StoredUpstreams {
    const FORMAT_VERSION: u32 = 1;

    fn version(&self) -> u32 {
        self.v
    }
}

impl StoredUpstreams {
    /// Adds an upstream, replacing the one of the same name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, upstream: StoredUpstream) -> Self {
        self.upstreams.insert(name.into(), upstream);
        self
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&StoredUpstream> {
        self.upstreams.get(name)
    }

    /// Iterates over the upstreams, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &StoredUpstream)> {
        self.upstreams.iter().map(|(name, upstream)| (name.as_str(), upstream))
    }
}

/// The file that they are in. Several programs may share it; it is replaced whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredUpstreamsFile(PrivateFile);

/// The file cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use the keys in {}: {why}; fix the file, or delete it and connect again", path.display())]
pub struct StoredUpstreamsError {
    /// Path of the file.
    pub path: PathBuf,
    /// The mistake.
    pub why: String,
}

impl StoredUpstreamsFile {
    /// The file at this path. It is created when the first upstream is connected.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(PrivateFile::at(path, FILE_BYTES_MAX))
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or has another format.
    pub fn read(&self) -> Result<StoredUpstreams, StoredUpstreamsError> {
        self.0.read().map_err(|error| self.file_error(error))
    }

    /// Stores an upstream, replacing the one of the same name.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self, name: &str, upstream: StoredUpstream) -> Result<(), StoredUpstreamsError> {
        let insert = |all: &mut StoredUpstreams| drop(all.upstreams.insert(name.to_owned(), upstream));
        self.0.update(insert).map_err(|error| self.file_error(error))
    }

    /// Removes the upstream of this name and returns it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn remove(&self, name: &str) -> Result<Option<StoredUpstream>, StoredUpstreamsError> {
        let remove = |all: &mut StoredUpstreams| all.upstreams.remove(name);
        self.0.update(remove).map_err(|error| self.file_error(error))
    }

    fn file_error(&self, error: PrivateFileError) -> StoredUpstreamsError {
        StoredUpstreamsError { path: self.path().to_owned(), why: error.to_string() }
    }
}

/// A pasted key without what was copied along with it; `Err` explains why the text cannot be a key.
pub fn parse_pasted_key(text: &str) -> Result<Secret, &'static str> {
    let key = text.trim().trim_matches(['"', '\'']);
    match key {
        "" => Err("it is empty"),
        key if key.len() > KEY_BYTES_MAX => Err("it is too long"),
        // What a header cannot carry, and what is no key but the sentence around it.
        key if !key.bytes().all(|b| b.is_ascii_graphic()) => {
            Err("a key contains only letters, digits and punctuation")
        }
        key => Ok(Secret::from(key)),
    }
}

/// Serializes a key in plain text, which only this file does.
mod in_clear {
    use super::Secret;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(key: &Option<Secret>, to: S) -> Result<S::Ok, S::Error> {
        match key {
            Some(key) => to.serialize_some(key.reveal()),
            None => to.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Secret>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(Secret::from))
    }
}

mod by_name {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use throughline_wire::Dialect;

    pub fn serialize<S: Serializer>(dialect: &Dialect, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(dialect.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Dialect, D::Error> {
        let name = String::deserialize(from)?;
        let found = Dialect::ALL.iter().copied().find(|dialect| dialect.name() == name);
        found.ok_or_else(|| D::Error::custom(format!("there is no wire format `{name}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_keys_are_owner_readable_and_not_printed() {
        let folder = tempfile::tempdir().unwrap();
        let file = StoredUpstreamsFile::at(folder.path().join("data").join(STORED_UPSTREAMS_FILE));
        assert_eq!(file.read().unwrap(), StoredUpstreams::default());
        let own = CustomEndpoint { dialect: Dialect::Ollama, base_url: "http://localhost:1/".into() };
        file.save("mine", StoredUpstream { key: None, endpoint: Some(own.clone()) }).unwrap();
        file.save("deepseek", StoredUpstream { key: Some("sk-1".into()), endpoint: None }).unwrap();
        file.save("deepseek", StoredUpstream { key: Some("sk-2".into()), endpoint: None }).unwrap();
        let kept = file.read().unwrap();
        assert_eq!(kept.get("mine").unwrap().endpoint, Some(own));
        assert_eq!(kept.get("deepseek").unwrap().key, Some("sk-2".into()));
        assert!(!format!("{kept:?}").contains("sk-2"), "{kept:?}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(file.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(file.remove("deepseek").unwrap().is_some());
        assert!(file.remove("deepseek").unwrap().is_none());
        assert!(!std::fs::read_to_string(file.path()).unwrap().contains("sk-"));

        std::fs::write(file.path(), "{").unwrap();
        let error = file.read().unwrap_err().to_string();
        assert!(error.contains("delete it and connect again"), "{error}");
    }

    #[test]
    fn pasted_key_is_trimmed_and_validated() {
        assert_eq!(parse_pasted_key(" sk-1\n").unwrap().reveal(), "sk-1");
        assert_eq!(parse_pasted_key("\"sk-1\"").unwrap().reveal(), "sk-1");
        for wrong in ["", "  ", "my key is sk-1", "sk-\u{2026}", &"x".repeat(KEY_BYTES_MAX + 1)] {
            assert!(parse_pasted_key(wrong).is_err(), "{wrong}");
        }
    }
}
