//! `throughline restore`: a backup back into a data folder. Nothing is changed before every file has been checked.

use super::manifest::{BackupManifest, MANIFEST_FILE};
use super::{PRIVATE_FILES, SETTINGS_FILE, database_file, make_private, make_private_folder, settings_of};
use crate::args::RestoreArgs;
use crate::data_dir;
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::serve::running_server::RunningServer;
use crate::serve::store::{data_folder, store_of};
use crate::{messages, output, setup};
use jiff::Timestamp;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use throughline::config::STORE_FILE;
use throughline_store::lock_sqlite_file;

/// Checks the backup, then the destination, then copies.
pub(crate) async fn run(args: &RestoreArgs) -> CommandResult {
    let folder = args.folder.as_path();
    let refused = |why: &dyn std::fmt::Display, remedy: &str| messages::not_restored(folder, why, remedy);
    let manifest = BackupManifest::read_verified(folder)
        .map_err(|why| refused(&why, &messages::choose_another_backup()))?;
    let settings_state = restore_settings(args, &manifest)?;
    let settings = settings_of(&args.at)?;
    let data = data_folder()?;
    let database = database_file(&settings.store.backend, &data);
    // Held until the end, so that no server starts in the meantime.
    let _lock = match &database {
        Some(file) => {
            let in_use = messages::stop_the_server_first();
            Some(lock_sqlite_file(file).map_err(|error| refused(&error, &in_use))?)
        }
        None => None,
    };
    if database.is_none() && is_answering().await {
        return Err(refused(&messages::server_uses_data(), &messages::stop_the_server_first()));
    }
    let targets = Targets { data: data.clone(), database };
    let present = targets.present();
    if !present.is_empty() && !args.force {
        let names: Vec<String> = present.iter().map(|path| path.display().to_string()).collect();
        let why = messages::already_there(&names.join(", "));
        return Err(refused(&why, &messages::force_or_other_folder()));
    }
    let failed = |error: io::Error| refused(&error, &messages::restore_again());
    let replaced = targets.set_aside(&present).map_err(failed)?;
    targets.copy(folder, &manifest).map_err(failed)?;
    let missing_database =
        if manifest.has_database { None } else { Some(store_of(&settings.store).unwrap_or_default()) };
    let report = messages::backup_restored(&messages::RestoreReport {
        data: &data,
        files: manifest.files.len(),
        created: Timestamp::from_millisecond(manifest.created_at)
            .map(|at| at.to_string())
            .unwrap_or_default(),
        program: &manifest.program,
        replaced: replaced.as_deref(),
        settings: settings_state.as_deref(),
        backup: folder,
        missing_database,
    });
    output::text(&report).map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

/// Writes the configuration if it does not exist, and returns the result.
fn restore_settings(args: &RestoreArgs, manifest: &BackupManifest) -> Result<Option<String>, CliFailure> {
    if manifest.files.iter().all(|entry| entry.path != SETTINGS_FILE) {
        return Ok(None);
    }
    let saved = args.folder.join(SETTINGS_FILE);
    let to = setup::config_file(args.at.config.as_deref()).unwrap_or_else(|| PathBuf::from(SETTINGS_FILE));
    if to.exists() {
        let is_same = fs::read(&to).ok() == fs::read(&saved).ok();
        let text = messages::settings_not_replaced(&to, &saved);
        return Ok(Some(text).filter(|_| !is_same));
    }
    let failed = |error: io::Error| messages::not_written(&to, &error);
    fs::copy(&saved, &to).map_err(failed)?;
    Ok(Some(messages::settings_restored(&to)))
}

/// True if the server that left a note in the data folder answers.
async fn is_answering() -> bool {
    match RunningServer::of_data_folder() {
        Ok(server) => server.get("/healthz").send().await.is_ok(),
        Err(_) => false,
    }
}

/// Destinations of the files of a backup.
struct Targets {
    data: PathBuf,
    database: Option<PathBuf>,
}

impl Targets {
    /// Present files that would be replaced.
    fn present(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.database.iter().flat_map(|file| with_journals(file)).collect();
        paths.push(self.data.join(data_dir::FILES_FOLDER));
        paths.extend(PRIVATE_FILES.iter().map(|name| self.data.join(name)));
        paths.retain(|path| path.exists());
        paths
    }

    /// Moves existing files into a folder next to them.
    fn set_aside(&self, present: &[PathBuf]) -> io::Result<Option<PathBuf>> {
        if present.is_empty() {
            return Ok(None);
        }
        let base = self.database.as_deref().and_then(Path::parent).unwrap_or(&self.data);
        let name = format!("replaced-{}", Timestamp::now().as_millisecond());
        for path in present {
            // Next to each file, so that a rename suffices: the database may be on another disk than the
            // rest.
            let parent = path.parent().unwrap_or(base).join(&name);
            make_private_folder(&parent)?;
            fs::rename(path, parent.join(path.file_name().unwrap_or_default()))?;
        }
        Ok(Some(self.data.join(name)))
    }

    /// Copies every file, the database last: without it no server finds half of a backup.
    fn copy(&self, folder: &Path, manifest: &BackupManifest) -> io::Result<()> {
        let (database, others): (Vec<_>, Vec<_>) =
            manifest.files.iter().partition(|entry| entry.path == STORE_FILE);
        for entry in
            others.into_iter().filter(|entry| ![SETTINGS_FILE, MANIFEST_FILE].contains(&entry.path.as_str()))
        {
            copy_private(&folder.join(&entry.path), &self.data.join(&entry.path))?;
        }
        if let (Some(entry), Some(to)) = (database.first(), &self.database) {
            let part = to.with_extension("restoring");
            copy_private(&folder.join(&entry.path), &part)?;
            fs::File::open(&part)?.sync_all()?;
            fs::rename(&part, to)?;
        }
        Ok(())
    }
}

/// The database file with SQLite's companion files.
fn with_journals(file: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|ending| {
        let mut path = file.as_os_str().to_owned();
        path.push(ending);
        PathBuf::from(path)
    })
}

fn copy_private(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        make_private_folder(parent)?;
    }
    fs::copy(from, to)?;
    make_private(to)
}
