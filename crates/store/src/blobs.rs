//! The bytes of files, in a folder, under the hash of their content.
//!
//! No name from outside ever becomes a path: a blob's path is made of the 64 hex digits of its BLAKE3 hash,
//! `ab/cd/abcd…`. Equal contents are one blob. A blob is removed when no file in the catalog needs it any
//! more.

use crate::catalog::Catalog;
use crate::error::StoreError;
use std::fs;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};
use tokio::task::spawn_blocking;

/// Subfolder of unfinished blobs.
const UNFINISHED_FOLDER: &str = "unfinished";
/// Hashes per lookup in the catalog.
const LOOKUP_BATCH: usize = 500;
/// Bytes gathered before they are written.
const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// Limits of a folder of blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobLimits {
    /// One file, in bytes. Default 64 MiB: more than any model takes.
    pub file_bytes_max: u64,
}

impl Default for BlobLimits {
    fn default() -> Self {
        Self { file_bytes_max: 64 << 20 }
    }
}

/// Reason that a blob cannot be stored or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The file is too large. Nothing of it was stored.
    #[error("exceeds the limit file_bytes_max of {max}")]
    OverLimit {
        /// The limit, in bytes.
        max: u64,
    },
    /// The disk is full. Nothing of the file was stored.
    #[error("the disk is full: {0}")]
    Full(io::Error),
    /// The bytes on the disk differ from those that were stored.
    #[error("the blob {hash} is damaged")]
    Damaged { hash: String },
    /// Error of the file system.
    #[error("cannot store files in {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The catalog could not be queried.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A folder of blobs. Cloning gives another handle to the same folder; two programs must not share one.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let folder = tempfile::tempdir()?;
/// use throughline_store::{BlobFolder, BlobLimits};
///
/// let blobs = BlobFolder::open(folder.path(), BlobLimits::default()).await?;
/// let stored = blobs.put(b"Bonjour").await?;
/// assert_eq!(blobs.read(&stored.hash).await?.as_deref(), Some(&b"Bonjour"[..]));
/// assert_eq!(blobs.put(b"Bonjour").await?.hash, stored.hash); // equal contents are one blob
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct BlobFolder {
    root: Arc<Path>,
    limits: BlobLimits,
    /// Read lock: a blob whose file is not in the catalog yet. Write lock: removal of blobs.
    in_use: Arc<RwLock<()>>,
}

/// A stored blob. It cannot be collected while this value lives: hold it until the file is in the catalog.
#[derive(Debug)]
#[must_use = "drop it when the file is in the catalog"]
pub struct StoredBlob {
    /// BLAKE3 hash of the content, in hex: the name of the blob.
    pub hash: String,
    pub bytes: u64,
    _not_collected: OwnedRwLockReadGuard<()>,
}

impl BlobFolder {
    /// Opens a folder, creates it if it does not exist (for its owner only), and removes what a crash left
    /// unfinished.
    ///
    /// # Errors
    ///
    /// An error of the file system.
    pub async fn open(root: impl Into<PathBuf>, limits: BlobLimits) -> Result<Self, BlobError> {
        let root: PathBuf = root.into();
        let unfinished = root.join(UNFINISHED_FOLDER);
        let folder = Self { root: Arc::from(root), limits, in_use: Arc::default() };
        folder
            .blocking(move |_| {
                if let Err(error) = fs::remove_dir_all(&unfinished)
                    && error.kind() != io::ErrorKind::NotFound
                {
                    return Err(error);
                }
                make_folder(&unfinished)
            })
            .await?;
        Ok(folder)
    }

    /// Opens a folder that a running server may use, or that does not exist yet: for commands that store and
    /// read blobs and never collect them.
    pub fn attach(root: impl Into<PathBuf>, limits: BlobLimits) -> Self {
        let root: PathBuf = root.into();
        Self { root: Arc::from(root), limits, in_use: Arc::default() }
    }

    pub fn limits(&self) -> BlobLimits {
        self.limits
    }

    /// Stores bytes that are complete in memory.
    ///
    /// # Errors
    ///
    /// They exceed the limit, or an error of the file system.
    pub async fn put(&self, bytes: &[u8]) -> Result<StoredBlob, BlobError> {
        let mut unfinished = self.begin().await?;
        unfinished.write(bytes).await?;
        unfinished.finish().await
    }

    /// Begins a blob whose bytes come in parts.
    ///
    /// # Errors
    ///
    /// An error of the file system.
    pub async fn begin(&self) -> Result<BlobWriter, BlobError> {
        Ok(BlobWriter { file: self.temp_file().await?, hasher: blake3::Hasher::new(), bytes: 0 })
    }

    /// Begins a temporary text that waits on disk until there is memory for it. It never becomes a blob.
    ///
    /// # Errors
    ///
    /// An error of the file system.
    pub async fn scratch(&self) -> Result<ScratchFile, BlobError> {
        Ok(ScratchFile(self.temp_file().await?))
    }

    async fn temp_file(&self) -> Result<TempFile, BlobError> {
        let folder = self.root.join(UNFINISHED_FOLDER);
        let path = folder.join(uuid::Uuid::now_v7().simple().to_string());
        let (file, path) = self
            .blocking(move |_| {
                make_folder(&folder)?;
                // Removed also if the caller has stopped waiting.
                let path = TempPath(path);
                new_private_file(&path.0).map(|file| (file, path))
            })
            .await?;
        Ok(TempFile { folder: self.clone(), file: Some(file), buffer: Vec::new(), path })
    }

    /// A blob's bytes, compared with their hash; `None` = there is no such blob.
    ///
    /// # Errors
    ///
    /// They are damaged, or an error of the file system.
    pub async fn read(&self, hash: &str) -> Result<Option<Vec<u8>>, BlobError> {
        let Some(mut file) = self.file(hash).await? else { return Ok(None) };
        let bytes = self
            .blocking(move |_| {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map(|_| bytes)
            })
            .await?;
        if blake3::hash(&bytes).to_hex().as_str() == hash {
            Ok(Some(bytes))
        } else {
            Err(BlobError::Damaged { hash: hash.to_owned() })
        }
    }

    /// A blob as an open file, to be sent in parts; `None` = there is no such blob. It can be read to its end
    /// even if the blob is collected in the meantime.
    ///
    /// # Errors
    ///
    /// An error of the file system.
    pub async fn file(&self, hash: &str) -> Result<Option<fs::File>, BlobError> {
        let Some(path) = self.path(hash) else { return Ok(None) };
        self.blocking(move |_| ok_if_absent(fs::File::open(path))).await
    }

    /// A blob as an open file, compared with its hash first, with its size in bytes.
    ///
    /// # Errors
    ///
    /// It is damaged, or an error of the file system.
    pub async fn checked_file(&self, hash: &str) -> Result<Option<(fs::File, u64)>, BlobError> {
        let Some(mut file) = self.file(hash).await? else { return Ok(None) };
        let (found, file, bytes) = self
            .blocking(move |_| {
                let mut hasher = blake3::Hasher::new();
                hasher.update_reader(&mut file)?;
                file.rewind()?;
                Ok((hasher.finalize(), file, hasher.count()))
            })
            .await?;
        if found.to_hex().as_str() == hash {
            Ok(Some((file, bytes)))
        } else {
            Err(BlobError::Damaged { hash: hash.to_owned() })
        }
    }

    /// Removes those of the given blobs that no file needs: after files or turns were removed. Returns their
    /// number. Waits until every [`StoredBlob`] is dropped, so the caller must hold none.
    ///
    /// # Errors
    ///
    /// An error of the catalog or the file system.
    pub async fn collect(&self, catalog: &dyn Catalog, hashes: &[String]) -> Result<u64, BlobError> {
        let mut removed = 0;
        for batch in hashes.chunks(LOOKUP_BATCH) {
            // Between the query and the removal no writer may reuse a blob that exists already.
            let exclusive = Arc::clone(&self.in_use).write_owned().await;
            let needed = catalog.blobs_in_use(batch).await?;
            let paths: Vec<PathBuf> = batch
                .iter()
                .filter(|hash| !needed.contains(*hash))
                .filter_map(|hash| self.path(hash))
                .collect();
            removed += self
                .blocking(move |_| {
                    let _exclusive = exclusive;
                    let mut removed = 0;
                    for path in paths {
                        removed += u64::from(ok_if_absent(fs::remove_file(path))?.is_some());
                    }
                    Ok(removed)
                })
                .await?;
        }
        Ok(removed)
    }

    /// Removes all blobs that no file needs: leftovers of a crash between a blob and its file. Returns their
    /// number.
    ///
    /// # Errors
    ///
    /// An error of the catalog or the file system.
    pub async fn sweep(&self, catalog: &dyn Catalog) -> Result<u64, BlobError> {
        let hashes = self.blocking(all_hashes).await?;
        self.collect(catalog, &hashes).await
    }

    /// `None`: that is no hash, so there is no such blob.
    fn path(&self, hash: &str) -> Option<PathBuf> {
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_hash.then(|| self.root.join(&hash[..2]).join(&hash[2..4]).join(hash))
    }

    /// Does file work where it may block, with the root at hand.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, BlobError> {
        let root = Arc::clone(&self.root);
        let done = spawn_blocking(move || work(&root)).await;
        done.unwrap_or_else(|_| Err(io::Error::other("the work was cancelled"))).map_err(|error| match error
            .kind()
        {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => BlobError::Full(error),
            _ => BlobError::Io { path: self.root.to_path_buf(), error },
        })
    }
}

/// A blob whose bytes are still coming. Dropped before its end, nothing remains of it.
#[derive(Debug)]
pub struct BlobWriter {
    file: TempFile,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl BlobWriter {
    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// They exceed the limit, or an error of the file system. The blob can then only be dropped.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        let max = self.file.folder.limits.file_bytes_max;
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.bytes > max {
            self.file.file = None;
            return Err(BlobError::OverLimit { max });
        }
        self.hasher.update(bytes);
        self.file.write(bytes).await
    }

    /// Stores the bytes written so far as a blob.
    ///
    /// # Errors
    ///
    /// An error of the file system; nothing is stored.
    pub async fn finish(mut self) -> Result<StoredBlob, BlobError> {
        self.file.flush().await?;
        let Self { file: TempFile { folder, file, path: temp_path, .. }, hasher, bytes } = self;
        let hash = hasher.finalize().to_hex().to_string();
        let guard = Arc::clone(&folder.in_use).read_owned().await;
        if let (Some(file), Some(path)) = (file, folder.path(&hash)) {
            folder
                .blocking(move |root| {
                    file.sync_all()?;
                    drop(file);
                    persist(root, &temp_path.0, &path)
                })
                .await?;
        }
        Ok(StoredBlob { hash, bytes, _not_collected: guard })
    }
}

/// A text that waits on the disk for memory. Nothing remains of it.
#[derive(Debug)]
pub struct ScratchFile(TempFile);

impl ScratchFile {
    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// An error of the file system. The bytes written so far can then not be read.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        self.0.write(bytes).await
    }

    /// The given bytes followed by all bytes of the file.
    ///
    /// # Errors
    ///
    /// An error of the file system.
    pub async fn read_after(mut self, mut bytes: Vec<u8>) -> Result<Vec<u8>, BlobError> {
        self.0.flush().await?;
        let path = self.0.path.0.clone();
        let read = move |_: &_| {
            let mut file = fs::File::open(path)?;
            bytes.reserve_exact(usize::try_from(file.metadata()?.len()).unwrap_or_default());
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        self.0.folder.blocking(read).await
    }
}

/// A file that is written in large pieces and removed on drop.
#[derive(Debug)]
struct TempFile {
    folder: BlobFolder,
    /// `None` after a failure: the content is then incomplete.
    file: Option<fs::File>,
    buffer: Vec<u8>,
    path: TempPath,
}

impl TempFile {
    async fn write(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() < WRITE_BUFFER_BYTES { Ok(()) } else { self.flush().await }
    }

    async fn flush(&mut self) -> Result<(), BlobError> {
        let buffer = std::mem::take(&mut self.buffer);
        let file = self.file.take();
        let written = self.folder.blocking(move |_| {
            let mut file = file.ok_or_else(|| io::Error::other("writing has failed before"))?;
            file.write_all(&buffer).map(|()| file)
        });
        self.file = Some(written.await?);
        Ok(())
    }
}

#[derive(Debug)]
struct TempPath(PathBuf);

impl Drop for TempPath {
    fn drop(&mut self) {
        // The file may have become the blob. A file that cannot be removed now is removed when the folder is
        // opened.
        let _removed = fs::remove_file(&self.0);
    }
}

/// Renaming is atomic, and durable once the folder is. Equal contents that are there already are replaced by the same,
/// which also mends a damaged blob.
fn persist(root: &Path, from: &Path, to: &Path) -> io::Result<()> {
    let Some(folder) = to.parent() else { return Err(io::Error::other("a blob has a folder")) };
    let is_new = !folder.exists();
    make_folder(folder)?;
    fs::rename(from, to)?;
    sync_folder(folder)?;
    if is_new {
        folder.parent().map_or(Ok(()), sync_folder)?;
        sync_folder(root)?;
    }
    Ok(())
}

#[cfg(unix)]
fn make_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

fn new_private_file(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Elsewhere than on Unix a folder cannot be opened to be synced, and need not be.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { fs::File::open(path)?.sync_all() } else { Ok(()) }
}

fn ok_if_absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The names of all files two folders down.
fn all_hashes(root: &Path) -> io::Result<Vec<String>> {
    let mut hashes = Vec::new();
    for first in subfolders(root)? {
        for second in subfolders(&first)? {
            for file in fs::read_dir(second)? {
                hashes.extend(file?.file_name().into_string());
            }
        }
    }
    Ok(hashes)
}

fn subfolders(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name().len() == 2 {
            folders.push(entry.path());
        }
    }
    Ok(folders)
}
