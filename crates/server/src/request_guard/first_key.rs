//! The first key: created at the first start, so that the server works without setup.

use super::key_ring::{MintError, NewApiKey};
use super::{ApiKey, RequestGuard};
use crate::error::ApiError;
use crate::principal::{KeyScope, KeyScopes, LOCAL_USER};
use jiff::Timestamp;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Name in the list of keys.
const FIRST_KEY_NAME: &str = "first start";

/// Result of creating the first key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstKey {
    /// A new key, which is now in the file, too. It is not shown again.
    Created(ApiKey),
    /// An administrator's key exists.
    Exists,
}

/// Reason why the first key was not created.
#[derive(Debug, thiserror::Error)]
pub enum FirstKeyError {
    /// The key could not be created.
    #[error(transparent)]
    Mint(#[from] MintError),
    /// The keys cannot be read.
    #[error("the keys cannot be read: {0}")]
    Unreadable(String),
    /// The key cannot be written to its file.
    #[error("`{path}` cannot be written: {source}")]
    File {
        /// The file.
        path: String,
        /// Error of the system.
        source: io::Error,
    },
}

impl RequestGuard {
    /// Creates a key with all scopes and writes it to this file, readable by its owner only, unless a key
    /// with `admin` exists.
    ///
    /// # Errors
    /// The key cannot be created or written; then no usable key remains.
    pub async fn first_key(&self, file: &Path) -> Result<FirstKey, FirstKeyError> {
        let unreadable = |error: ApiError| FirstKeyError::Unreadable(error.message);
        let now = Timestamp::now().as_millisecond();
        let is_admin = |scopes: &[String]| scopes.iter().any(|scope| scope == KeyScope::Admin.name());
        let is_usable = |expires: Option<i64>, revoked: Option<i64>| {
            revoked.is_none() && expires.is_none_or(|at| now < at)
        };
        let keys = self.keys(LOCAL_USER).await.map_err(unreadable)?;
        if keys
            .iter()
            .any(|key_info| is_admin(&key_info.scopes) && is_usable(key_info.expires_at, key_info.revoked_at))
        {
            return Ok(FirstKey::Exists);
        }
        let new =
            NewApiKey { name: FIRST_KEY_NAME.to_owned(), scopes: KeyScopes::all(), ..NewApiKey::default() };
        let (key, key_info) = self.mint(LOCAL_USER, new).await?;
        if let Err(source) = write_private(file, &format!("{}\n", key.reveal())) {
            // The key was not shown to anyone.
            let _ = self.revoke(LOCAL_USER, &key_info.id).await;
            return Err(FirstKeyError::File { path: file.display().to_string(), source });
        }
        Ok(FirstKey::Created(key))
    }
}

/// Replaces a file by one that only its owner can read, atomically.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let temp_path = path.with_extension("new");
    match fs::remove_file(&temp_path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&temp_path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temp_path, path)
}
