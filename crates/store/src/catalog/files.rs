//! Files that were uploaded or made by tools. Their bytes are in the [`BlobFolder`](crate::BlobFolder).

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRow {
    /// Made by the caller.
    pub id: String,
    /// Name of the owner.
    pub user: String,
    /// For people only: no path is ever made of it.
    pub name: String,
    /// Media type, as declared by the uploader.
    pub media_type: String,
    pub bytes: u64,
    /// BLAKE3 hash of the content: the name of its blob.
    pub hash: String,
    /// Milliseconds since 1970.
    pub created_at: i64,
}

/// A file to be added. Its blob must be there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Made by the caller, never used before.
    pub id: String,
    /// As its maker calls it; what cannot be shown is taken out.
    pub name: String,
    /// Media type, as declared by the uploader.
    pub media_type: String,
    pub bytes: u64,
    /// BLAKE3 hash of the content: the name of its blob.
    pub hash: String,
    /// The turn whose tool or model made it; it goes with that turn. `None` = uploaded.
    pub made_in: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: i64,
}
