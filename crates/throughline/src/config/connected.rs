//! Upstreams that somebody has connected: their keys, and addresses of one's own. They are kept in one file of the data
//! folder, for its owner's eyes only, and lie between `throughline.toml` and the environment. R: O4, R4

use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use throughline_tools::private_file::{PrivateFile, PrivateFileError, Versioned};
use throughline_wire::Dialect;

/// The file in the data folder.
pub const CONNECTED_FILE: &str = "upstreams.json";
/// Longest file that can be ours.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Longest key, in bytes. The longest ones, of services that sign them, have about 2,000.
pub const KEY_BYTES_MAX: usize = 8 << 10;

/// All of them, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connected {
    v: u32,
    upstreams: BTreeMap<String, Connection>,
}

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// Its key; `None` = it needs none, or the environment has it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "in_clear")]
    pub key: Option<Secret>,
    /// Where it is, if it is not known by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnAddress>,
}

/// An address of one's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnAddress {
    /// How it is spoken to.
    #[serde(with = "by_name")]
    pub dialect: Dialect,
    /// Where the dialect's path is appended.
    pub base_url: String,
}

impl Default for Connected {
    fn default() -> Self {
        Self { v: Self::FORMAT, upstreams: BTreeMap::new() }
    }
}

impl Versioned for Connected {
    const FORMAT: u32 = 1;

    fn version(&self) -> u32 {
        self.v
    }
}

impl Connected {
    /// With this one, in place of one that had the name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, connection: Connection) -> Self {
        self.upstreams.insert(name.into(), connection);
        self
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&Connection> {
        self.upstreams.get(name)
    }

    /// By name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Connection)> {
        self.upstreams.iter().map(|(name, connection)| (name.as_str(), connection))
    }
}

/// The file that they are in. Several programs may share it; it is replaced whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectedFile(PrivateFile);

/// The file cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the keys in {} cannot be used: {why}; mend the file, or remove it to connect anew", path.display())]
pub struct ConnectedError {
    /// Which.
    pub path: PathBuf,
    /// What is wrong.
    pub why: String,
}

impl ConnectedFile {
    /// At this path. It is made when something is first connected.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(PrivateFile::at(path, FILE_BYTES_MAX))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// What is in it.
    ///
    /// # Errors
    /// It cannot be read, or is no such file.
    pub fn read(&self) -> Result<Connected, ConnectedError> {
        self.0.read().map_err(|error| self.failed(error))
    }

    /// Keeps this one, in place of one that had the name.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&self, name: &str, connection: Connection) -> Result<(), ConnectedError> {
        let keep = |all: &mut Connected| drop(all.upstreams.insert(name.to_owned(), connection));
        self.0.change(keep).map_err(|error| self.failed(error))
    }

    /// Forgets the one of this name, and says what it was.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn forget(&self, name: &str) -> Result<Option<Connection>, ConnectedError> {
        let forget = |all: &mut Connected| all.upstreams.remove(name);
        self.0.change(forget).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: PrivateFileError) -> ConnectedError {
        ConnectedError { path: self.path().to_owned(), why: error.to_string() }
    }
}

/// What is pasted as a key, without what comes along with it; `Err`: it can be none, and why.
pub fn pasted_key(text: &str) -> Result<Secret, &'static str> {
    let key = text.trim().trim_matches(['"', '\'']);
    match key {
        "" => Err("it is empty"),
        key if key.len() > KEY_BYTES_MAX => Err("it is too long"),
        // What a header cannot carry, and what is no key but the sentence around it.
        key if !key.bytes().all(|b| b.is_ascii_graphic()) => Err("a key has letters, digits and signs only"),
        key => Ok(Secret::from(key)),
    }
}

/// A key in the one place where it has to stand.
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

    // R: O4, R4
    #[test]
    fn keys_are_kept_for_their_owner_only_and_shown_to_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let file = ConnectedFile::at(folder.path().join("data").join(CONNECTED_FILE));
        assert_eq!(file.read().unwrap(), Connected::default());
        let own = OwnAddress { dialect: Dialect::Ollama, base_url: "http://localhost:1/".into() };
        file.keep("mine", Connection { key: None, own: Some(own.clone()) }).unwrap();
        file.keep("deepseek", Connection { key: Some("sk-1".into()), own: None }).unwrap();
        file.keep("deepseek", Connection { key: Some("sk-2".into()), own: None }).unwrap();
        let kept = file.read().unwrap();
        assert_eq!(kept.get("mine").unwrap().own, Some(own));
        assert_eq!(kept.get("deepseek").unwrap().key, Some("sk-2".into()));
        assert!(!format!("{kept:?}").contains("sk-2"), "{kept:?}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(file.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(file.forget("deepseek").unwrap().is_some());
        assert!(file.forget("deepseek").unwrap().is_none());
        assert!(!std::fs::read_to_string(file.path()).unwrap().contains("sk-"));

        std::fs::write(file.path(), "{").unwrap();
        let error = file.read().unwrap_err().to_string();
        assert!(error.contains("remove it to connect anew"), "{error}");
    }

    #[test]
    fn what_is_pasted_around_a_key_is_taken_off() {
        assert_eq!(pasted_key(" sk-1\n").unwrap().reveal(), "sk-1");
        assert_eq!(pasted_key("\"sk-1\"").unwrap().reveal(), "sk-1");
        for wrong in ["", "  ", "my key is sk-1", "sk-\u{2026}", &"x".repeat(KEY_BYTES_MAX + 1)] {
            assert!(pasted_key(wrong).is_err(), "{wrong}");
        }
    }
}
