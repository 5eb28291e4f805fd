//! Whether the server could start here, and whether it runs. Nothing is made, and nothing is asked of a running server but
//! whether it is ready. R: O2

use super::report::{Area, Report, State};
use crate::data;
use crate::messages::Words;
use crate::serve::place::Note;
use jiff::Timestamp;
use jiff::civil::date;
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use throughline::config::{STORE_FILE, Settings, StoreAt};
use throughline_server::{BindError, Server};

/// With less the store takes no new turns.
const FREE_BYTES_WANTED: u64 = 256 << 20;
/// How long a running server may take to say so.
const READY_WAIT: Duration = Duration::from_secs(2);
/// What every SQLite file begins with.
const SQLITE: &[u8; 16] = b"SQLite format 3\0";

/// Address, certificate, data folder, disk, store and clock.
pub async fn look(settings: &Settings, words: Words, report: &mut Report) {
    let folder = data::folder();
    let runs = match folder.as_deref().and_then(Note::read) {
        Some(note) => readiness(&note.url).await.map(|ready| (note.url, ready)),
        None => None,
    };
    address(settings, runs.as_ref(), words, report);
    match &folder {
        None => report.add(Area::Server, State::Note, data::VARIABLE, words.doctor_no_home()),
        Some(folder) => keeping(folder, settings, runs.is_some(), words, report),
    }
    let now = Timestamp::now();
    // Keys expire and conversations are sorted by it.
    let is_set = now.strftime("%Y").to_string() >= date(2026, 1, 1).strftime("%Y").to_string();
    let state = if is_set { State::Good } else { State::Wrong };
    report.add(
        Area::Server,
        state,
        words.doctor_clock_name(),
        now.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    );
}

/// Whether a running server takes turns.
enum Readiness {
    Ready,
    /// It says why not.
    Not(String),
}

/// What `/readyz` says. `None`: nobody of ours is there.
async fn readiness(url: &str) -> Option<Readiness> {
    let client = reqwest::Client::builder().no_proxy().timeout(READY_WAIT).build().ok()?;
    let answer = client.get(format!("{url}/readyz")).send().await.ok()?;
    if answer.status().is_success() {
        return Some(Readiness::Ready);
    }
    let said: serde_json::Value = serde_json::from_str(&answer.text().await.ok()?).ok()?;
    let why = said["why"].as_str().or(said["status"].as_str())?;
    Some(Readiness::Not(why.to_owned()))
}

fn address(settings: &Settings, runs: Option<&(String, Readiness)>, words: Words, report: &mut Report) {
    let listen = settings.server.listen.to_string();
    match runs {
        Some((url, Readiness::Ready)) => {
            return report.add(Area::Server, State::Good, listen, words.doctor_serves(url));
        }
        Some((url, Readiness::Not(why))) => {
            return report.add(Area::Server, State::Wrong, listen, words.doctor_serves_not(url, why));
        }
        None => {}
    }
    match Server::bind(&settings.server) {
        Ok(_) => report.add(Area::Server, State::Good, listen, words.doctor_free()),
        Err(error) => {
            // Whoever else is there may be meant to be.
            let state = if matches!(error, BindError::InUse { .. }) { State::Note } else { State::Wrong };
            report.add(Area::Server, state, listen, error.to_string());
            report.remedy(error.remedy());
        }
    }
}

fn keeping(folder: &Path, settings: &Settings, runs: bool, words: Words, report: &mut Report) {
    let name = folder.display().to_string();
    // Where it will be made.
    let Some(there) = folder.ancestors().find(|path| path.is_dir()) else { return };
    let state = if is_writable(there) { State::Good } else { State::Wrong };
    let detail = match (state, there == folder) {
        (State::Good, true) => words.doctor_data_folder(),
        (State::Good, false) => words.doctor_data_folder_later(),
        _ => words.doctor_data_folder_closed(),
    };
    report.add(Area::Server, state, &name, detail);
    if let Some(free) = free_bytes(there) {
        let state = if free >= FREE_BYTES_WANTED { State::Good } else { State::Wrong };
        report.add(Area::Server, state, words.doctor_disk_name(), words.doctor_free_bytes(free >> 20));
        if state == State::Wrong {
            report.remedy(words.doctor_make_room());
        }
    }
    let path = match &settings.store.at {
        StoreAt::DataFolder => folder.join(STORE_FILE),
        StoreAt::File(path) => path.clone(),
        StoreAt::Postgres(_) => return,
    };
    let name = path.display().to_string();
    match head(&path) {
        None => report.add(Area::Server, State::Note, name, words.doctor_no_store()),
        Some((bytes, true)) => {
            report.add(Area::Server, State::Good, name, words.doctor_store(bytes >> 10, runs))
        }
        Some((_, false)) => {
            report.add(Area::Server, State::Wrong, name, words.doctor_bad_store());
            report.remedy(words.doctor_another_store());
        }
    }
}

/// Size of a file, and whether it is a database. `None` = there is none.
fn head(path: &Path) -> Option<(u64, bool)> {
    let mut file = std::fs::File::open(path).ok()?;
    let mut bytes = [0; SQLITE.len()];
    let is_ours = file.read_exact(&mut bytes).is_ok() && bytes == *SQLITE;
    Some((file.metadata().ok()?.len(), is_ours))
}

#[cfg(unix)]
fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|meta| !meta.permissions().readonly())
}

#[cfg(unix)]
fn free_bytes(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}
