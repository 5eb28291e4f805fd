//! A JSON document in a file for its owner's eyes only, which several programs may share: every change is read, made and
//! written under a lock, and the file is replaced whole. Blocks its thread.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Content of a private file. Its default stands for an absent file.
pub trait VersionedDocument: Clone + Default + PartialEq + Serialize + DeserializeOwned {
    /// The version of the format that this program knows.
    const FORMAT_VERSION: u32;

    /// Version in the document.
    fn version(&self) -> u32;
}

/// A JSON document in a file that only its owner can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateFile {
    path: PathBuf,
    bytes_max: u64,
}

/// Error of reading or writing a document.
#[derive(Debug, thiserror::Error)]
pub enum PrivateFileError {
    /// Error of the file system.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The file has another format, or that of a later version.
    #[error("{0}")]
    Format(String),
}

impl PrivateFile {
    /// A file at this path with a size limit in bytes: a larger file was not written by this program. The
    /// first change creates it, with its folder.
    pub fn at(path: impl Into<PathBuf>, bytes_max: u64) -> Self {
        Self { path: path.into(), bytes_max }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The document as it is now. The file is replaced whole, so this needs no lock.
    ///
    /// # Errors
    /// It cannot be read, or is no such document.
    pub fn read<D: VersionedDocument>(&self) -> Result<D, PrivateFileError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(D::default()),
            Err(error) => return Err(error.into()),
        };
        let mut text = String::new();
        file.take(self.bytes_max + 1).read_to_string(&mut text)?;
        if text.len() as u64 > self.bytes_max {
            return Err(PrivateFileError::Format("it is too large".to_owned()));
        }
        let document: D =
            serde_json::from_str(&text).map_err(|error| PrivateFileError::Format(error.to_string()))?;
        match document.version() {
            version if version == D::FORMAT_VERSION => Ok(document),
            version => {
                let why = format!("its version is {version}, and this program knows {}", D::FORMAT_VERSION);
                Err(PrivateFileError::Format(why))
            }
        }
    }

    /// Changes the document; one that stays the same is not written.
    ///
    /// # Errors
    /// It cannot be read or written, or would be too large to be read again; then the file stays as it was.
    pub fn update<D: VersionedDocument, T>(
        &self,
        edit: impl FnOnce(&mut D) -> T,
    ) -> Result<T, PrivateFileError> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // Let go by the kernel if this program dies.
        let lock = private_options().create(true).truncate(false).open(self.path.with_extension("lock"))?;
        lock.lock()?;
        let before: D = self.read()?;
        let mut document = before.clone();
        let result = edit(&mut document);
        if document != before {
            self.replace(&document)?;
        }
        Ok(result)
    }

    /// Writes a temporary file and moves it to the path: after a crash either the old file or the new one
    /// exists.
    fn replace(&self, document: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(document)?;
        text.push(b'\n');
        if text.len() as u64 > self.bytes_max {
            let problem =
                format!("it would have {} bytes, and at most {} are read", text.len(), self.bytes_max);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
        }
        let temp_path = self.path.with_extension("new");
        let mut file = private_options().create(true).truncate(true).open(&temp_path)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&temp_path, &self.path)
    }
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
