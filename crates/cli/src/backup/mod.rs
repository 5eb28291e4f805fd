//! `throughline backup`: everything that a server has stored, in one folder with checksums.

mod manifest;
pub(crate) mod restore;

use crate::args::{BackupArgs, ModelArgs, StoreArgs};
use crate::data_dir;
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::serve::store::store_of;
use crate::{messages, output, setup};
use jiff::Timestamp;
use manifest::{BackupEntry, BackupManifest};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use throughline::config::{AppSettings, STORE_FILE, STORED_UPSTREAMS_FILE, StoreBackend};
use throughline_store::copy_sqlite_file;

/// The configuration file in a backup.
const SETTINGS_FILE: &str = "throughline.toml";
/// Small files of the data folder, each readable only by its owner.
const PRIVATE_FILES: [&str; 4] =
    [STORED_UPSTREAMS_FILE, data_dir::REMEMBERED_FILE, data_dir::PINS_FILE, data_dir::ADMIN_TOKEN_FILE];
/// Folder of blobs that are being written.
const UNFINISHED_FOLDER: &str = "unfinished";

/// Writes the backup.
pub(crate) async fn run(args: &BackupArgs) -> CommandResult {
    let settings = settings_of(&args.at)?;
    let data = data_dir::folder().ok_or_else(messages::no_data_folder)?;
    let config = setup::config_file(args.at.config.as_deref());
    let (folder, backend) = (args.folder.clone(), settings.store.backend.clone());
    let written =
        tokio::task::spawn_blocking(move || write(&folder, &data, &backend, config.as_deref())).await;
    let files = written
        .unwrap_or_else(|_| Err(messages::ended_unexpectedly()))
        .map_err(|why| messages::no_backup(&args.folder, &why))?;
    let postgres =
        store_of(&settings.store).filter(|_| matches!(settings.store.backend, StoreBackend::Postgres(_)));
    let report = messages::backup_made(&args.folder, files, postgres.as_deref());
    output::text(&report).map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

fn settings_of(at: &StoreArgs) -> Result<AppSettings, CliFailure> {
    let choice = ModelArgs { config: at.config.clone(), ..ModelArgs::default() };
    setup::load_settings_with(&choice, None, at.store.as_deref())
}

/// The SQLite file of these settings; `None` = the store is a PostgreSQL database.
fn database_file(backend: &StoreBackend, data: &Path) -> Option<PathBuf> {
    match backend {
        StoreBackend::DataFolder => Some(data.join(STORE_FILE)),
        StoreBackend::File(path) => Some(path.clone()),
        StoreBackend::Postgres(_) => None,
    }
}

/// Number of files in the backup.
fn write(folder: &Path, data: &Path, backend: &StoreBackend, config: Option<&Path>) -> Result<usize, String> {
    let failed_at = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| format!("{path}: {error}")
    };
    make_private_folder(folder).map_err(failed_at(folder))?;
    if fs::read_dir(folder).map_err(failed_at(folder))?.next().is_some() {
        return Err(messages::folder_not_empty());
    }
    let mut copies = BackupCopies { folder, entries: Vec::new() };
    let database = database_file(backend, data);
    if let Some(file) = &database {
        if !file.exists() {
            return Err(messages::no_file(file));
        }
        let to = folder.join(STORE_FILE);
        copy_sqlite_file(file, &to).map_err(|error| error.to_string())?;
        make_private(&to).map_err(failed_at(&to))?;
        copies.list(STORE_FILE.to_owned()).map_err(failed_at(&to))?;
    }
    // Files after the database: those that it names are there.
    let files = data.join(data_dir::FILES_FOLDER);
    copies.add_folder(&files, data_dir::FILES_FOLDER).map_err(failed_at(&files))?;
    for name in PRIVATE_FILES {
        let from = data.join(name);
        copies.add(&from, name.to_owned()).map_err(failed_at(&from))?;
    }
    if let Some(config) = config {
        copies.add(config, SETTINGS_FILE.to_owned()).map_err(failed_at(config))?;
    }
    let now = Timestamp::now().as_millisecond();
    let manifest = BackupManifest::new(now, database.is_some(), copies.entries);
    manifest.write(folder).map_err(failed_at(folder))?;
    Ok(manifest.files.len())
}

struct BackupCopies<'a> {
    folder: &'a Path,
    entries: Vec<BackupEntry>,
}

impl BackupCopies<'_> {
    /// Copies a file. One that is not there, or not any more, is left out.
    fn add(&mut self, from: &Path, path: String) -> io::Result<()> {
        if !from.is_file() {
            return Ok(());
        }
        let to = self.folder.join(&path);
        if let Some(parent) = to.parent() {
            make_private_folder(parent)?;
        }
        match fs::copy(from, &to) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
        make_private(&to)?;
        self.list(path)
    }

    fn add_folder(&mut self, from: &Path, path: &str) -> io::Result<()> {
        let entries = match fs::read_dir(from) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| *name != UNFINISHED_FOLDER) else { continue };
            let below = format!("{path}/{name}");
            match entry.file_type()? {
                kind if kind.is_dir() => self.add_folder(&entry.path(), &below)?,
                kind if kind.is_file() => self.add(&entry.path(), below)?,
                // A link leads out of the folder; the server makes none.
                _ => {}
            }
        }
        Ok(())
    }

    fn list(&mut self, path: String) -> io::Result<()> {
        let entry = BackupEntry::of(&self.folder.join(&path), path)?;
        self.entries.push(entry);
        Ok(())
    }
}

fn make_private(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let _ = file;
    Ok(())
}

fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
