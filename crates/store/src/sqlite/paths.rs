//! The database file and its sibling files: lock, ballast, backups, and damaged files that were moved aside.

use super::SqliteOpenError;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Paths of a store.
#[derive(Clone, Debug)]
pub(super) struct StorePaths {
    pub file: PathBuf,
    folder: PathBuf,
    name: OsString,
}

impl StorePaths {
    pub(super) fn new(file: &Path) -> Result<Self, SqliteOpenError> {
        let Some(name) = file.file_name() else {
            return Err(SqliteOpenError::Io { path: file.to_owned(), why: "this is not a file name".into() });
        };
        let folder = match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Ok(Self { file: file.to_owned(), folder, name: name.to_owned() })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A sibling file of the database, named after it.
    pub(super) fn sibling(&self, suffix: &str) -> PathBuf {
        let mut name = self.name.clone();
        name.push(suffix);
        self.folder.join(name)
    }

    pub(super) fn backup_folder(&self) -> PathBuf {
        self.sibling(".backups")
    }

    /// Complete backups, the newest first. Their names sort by time.
    pub(super) fn backups_newest_first(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = fs::read_dir(self.backup_folder())
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "db"))
            .collect();
        found.sort();
        found.reverse();
        found
    }

    /// When the newest backup was made, in milliseconds since 1970, by its name.
    pub(super) fn newest_backup_ms(&self) -> Option<i64> {
        self.backups_newest_first().first()?.file_stem()?.to_str()?.parse().ok()
    }

    /// A damaged file that an earlier start has put away.
    pub(super) fn quarantined(&self) -> Option<PathBuf> {
        let prefix = self.sibling(".corrupt-");
        let prefix = prefix.file_name()?.as_encoded_bytes().to_owned();
        let mut found: Vec<PathBuf> = fs::read_dir(&self.folder)
            .ok()?
            .flatten()
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.as_encoded_bytes();
                name.starts_with(&prefix) && !name.ends_with(b"-wal") && !name.ends_with(b"-shm")
            })
            .map(|entry| entry.path())
            .collect();
        found.sort();
        found.pop()
    }

    /// Puts a damaged file and its companions away; the new name of the file.
    pub(super) fn quarantine(&self, now_ms: i64) -> io::Result<PathBuf> {
        let quarantined = self.sibling(&format!(".corrupt-{now_ms}"));
        fs::rename(&self.file, &quarantined)?;
        for suffix in ["-wal", "-shm"] {
            let mut to = quarantined.clone().into_os_string();
            to.push(suffix);
            match fs::rename(self.sibling(suffix), to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(quarantined)
    }
}

/// Held as long as the store is open; the kernel lets go of it when the process dies.
#[derive(Debug)]
pub(super) struct StoreLock {
    file: File,
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        // Closing it is not enough: a program that is being started right now has a copy until it is that program.
        let _ = self.file.unlock();
    }
}

/// Two servers never share a file.
pub(super) fn acquire_lock(paths: &StorePaths) -> Result<StoreLock, SqliteOpenError> {
    let path = paths.sibling(".lock");
    let io = |error: io::Error| SqliteOpenError::Io { path: path.clone(), why: error.to_string() };
    let mut file =
        File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only for the message: an unreadable holder is an unnamed one.
            let _ = file.read_to_string(&mut holder);
            let holder = holder.trim().to_owned();
            return Err(SqliteOpenError::InUse { path: paths.file.clone(), holder });
        }
        Err(TryLockError::Error(error)) => return Err(io(error)),
    }
    file.set_len(0).and_then(|()| file.rewind()).map_err(io)?;
    writeln!(file, "process {}", std::process::id()).map_err(io)?;
    Ok(StoreLock { file })
}

/// SQLite's locks and shared memory do not hold on a file system of another machine.
pub(super) fn reject_network_fs(paths: &StorePaths) -> Result<(), SqliteOpenError> {
    match network_file_system(paths.folder()) {
        Ok(None) => Ok(()),
        Ok(Some(kind)) => Err(SqliteOpenError::NetworkFileSystem { path: paths.file.clone(), kind }),
        Err(error) => Err(SqliteOpenError::Io { path: paths.folder().to_owned(), why: error.to_string() }),
    }
}

#[cfg(target_os = "linux")]
fn network_file_system(folder: &Path) -> io::Result<Option<&'static str>> {
    Ok(network_fs_name(rustix::fs::statfs(folder)?.f_type as u64 & 0xFFFF_FFFF))
}

/// Name of a network file system; `None` for a local one.
#[cfg(target_os = "linux")]
fn network_fs_name(number: u64) -> Option<&'static str> {
    // linux/magic.h; ceph, lustre and gfs2 from their own sources.
    const KINDS: [(u64, &str); 10] = [
        (0x6969, "NFS"),
        (0x517B, "SMB"),
        (0xFF53_4D42, "CIFS"),
        (0xFE53_4D42, "SMB2"),
        (0x5346_414F, "AFS"),
        (0x6B41_4653, "AFS"),
        (0x7375_7245, "Coda"),
        (0x00C3_6400, "Ceph"),
        (0x0BD0_0BD0, "Lustre"),
        (0x0116_1970, "GFS2"),
    ];
    KINDS.iter().find(|entry| entry.0 == number).map(|entry| entry.1)
}

#[cfg(not(target_os = "linux"))]
fn network_file_system(_folder: &Path) -> io::Result<Option<&'static str>> {
    Ok(None)
}

/// Bytes of the disk that this process may still use.
#[cfg(unix)]
pub(super) fn free_bytes(paths: &StorePaths) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(paths.folder())?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Bytes of the disk that this process may still use: unknown here, so there is always room.
#[cfg(not(unix))]
pub(super) fn free_bytes(_paths: &StorePaths) -> io::Result<u64> {
    Ok(u64::MAX)
}

/// Id of this boot of the machine; empty where the system has none.
pub(super) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn lock_is_released_despite_a_copied_file_handle() {
        let folder = tempfile::tempdir().unwrap();
        let paths = StorePaths::new(&folder.path().join("store.db")).unwrap();
        let lock = acquire_lock(&paths).unwrap();
        let _copy = lock.file.try_clone().unwrap();
        assert!(matches!(acquire_lock(&paths), Err(SqliteOpenError::InUse { .. })));
        drop(lock);
        acquire_lock(&paths).unwrap();
    }

    #[test]
    fn network_file_systems_are_recognized_by_magic_number() {
        // As statfs(2) of Linux gives them: NFS, SMB 2, and then ext4, tmpfs, btrfs, overlayfs.
        assert_eq!(network_fs_name(0x6969), Some("NFS"));
        assert_eq!(network_fs_name(0xFE53_4D42), Some("SMB2"));
        for local in [0xEF53, 0x0102_1994, 0x9123_683E, 0x794C_7630] {
            assert_eq!(network_fs_name(local), None);
        }
        assert_eq!(network_file_system(Path::new("/")).unwrap(), None);
    }
}
