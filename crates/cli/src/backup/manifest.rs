//! The list of a backup: each file with size and checksum. It is written last, so a folder without one is no backup.

use crate::messages;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Name of the list in the folder of a backup.
pub(super) const MANIFEST_FILE: &str = "manifest.json";
/// Version of its format.
const FORMAT_VERSION: u32 = 1;
/// Longest list that is read, in bytes: about 400,000 files.
const MANIFEST_BYTES_MAX: u64 = 64 << 20;

/// The list.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BackupManifest {
    v: u32,
    /// Version of the program that wrote it.
    pub(super) program: String,
    /// Milliseconds since 1970.
    pub(super) created_at: i64,
    /// False for a server with PostgreSQL, whose database is saved by `pg_dump`.
    pub(super) has_database: bool,
    /// Every file of the backup except the manifest.
    pub(super) files: Vec<BackupEntry>,
}

/// One file of the backup.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BackupEntry {
    /// Path in the folder, with `/`.
    pub(super) path: String,
    bytes: u64,
    blake3: String,
}

impl BackupManifest {
    pub(super) fn new(created_at: i64, has_database: bool, files: Vec<BackupEntry>) -> Self {
        let program = env!("CARGO_PKG_VERSION").to_owned();
        Self { v: FORMAT_VERSION, program, created_at, has_database, files }
    }

    /// Writes the list, which makes the backup complete.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let path = folder.join(MANIFEST_FILE);
        fs::write(&path, serde_json::to_string_pretty(self)? + "\n")?;
        File::open(path)?.sync_all()
    }

    /// Reads the list and checks every file.
    ///
    /// # Errors
    /// The folder is not a backup, or a file is missing or damaged, as a message.
    pub(super) fn read_verified(folder: &Path) -> Result<Self, String> {
        let path = folder.join(MANIFEST_FILE);
        let size = fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?.len();
        if size > MANIFEST_BYTES_MAX {
            return Err(messages::list_too_long(&path, MANIFEST_BYTES_MAX));
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let manifest: Self =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        if manifest.v != FORMAT_VERSION {
            return Err(messages::other_backup_format(manifest.v, FORMAT_VERSION));
        }
        for entry in &manifest.files {
            let path = entry.checked_path(folder)?;
            let found = BackupEntry::of(&path, entry.path.clone())
                .map_err(|error| format!("{}: {error}", path.display()))?;
            if (found.bytes, &found.blake3) != (entry.bytes, &entry.blake3) {
                return Err(messages::damaged_file(&path));
            }
        }
        Ok(manifest)
    }
}

impl BackupEntry {
    /// Size and checksum of a file.
    pub(super) fn of(file: &Path, path: String) -> io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(file)?)?;
        Ok(Self { path, bytes: hasher.count(), blake3: hasher.finalize().to_hex().to_string() })
    }

    /// The path of the file in the folder of the backup. A path outside the folder is refused.
    fn checked_path(&self, folder: &Path) -> Result<PathBuf, String> {
        let path = Path::new(&self.path);
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        if is_plain && !self.path.is_empty() && !self.path.contains('\\') {
            Ok(folder.join(path))
        } else {
            Err(messages::path_outside(&self.path))
        }
    }
}
