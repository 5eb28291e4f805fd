//! Checks that the server could start here, and whether it runs. Creates nothing, and sends a running server
//! only a readiness check.

use super::report::{DoctorArea, DoctorReport, DoctorState};
use crate::data_dir;
use crate::messages::UiText;
use crate::serve::local_client::local_client;
use crate::serve::running_server::RunningServer;
use crate::serve::server_note::ServerNote;
use jiff::Timestamp;
use jiff::civil::date;
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use throughline::config::{AppSettings, STORE_FILE, StoreBackend};
use throughline_server::{BindError, HttpServer};

/// Minimum of free space; with less the store accepts no new turns.
const FREE_BYTES_WANTED: u64 = 256 << 20;
/// Time limit for a running server to answer.
const READY_WAIT: Duration = Duration::from_secs(2);
/// First bytes of every SQLite file.
const SQLITE: &[u8; 16] = b"SQLite format 3\0";

/// Address, certificate, data folder, disk, store and clock.
pub(crate) async fn check_server(settings: &AppSettings, words: UiText, report: &mut DoctorReport) {
    let folder = data_dir::folder();
    let running = match folder.as_deref().and_then(ServerNote::read) {
        Some(note) => fetch_readiness(&note).await.map(|ready| (note.url, ready)),
        None => None,
    };
    check_address(settings, running.as_ref(), words, report);
    match &folder {
        None => {
            report.add(DoctorArea::Server, DoctorState::Note, data_dir::DATA_VARIABLE, words.doctor_no_home())
        }
        Some(folder) => check_storage(folder, settings, running.is_some(), words, report),
    }
    let now = Timestamp::now();
    // Keys expire and conversations are sorted by it.
    let is_set = now.strftime("%Y").to_string() >= date(2026, 1, 1).strftime("%Y").to_string();
    let state = if is_set { DoctorState::Good } else { DoctorState::Wrong };
    report.add(
        DoctorArea::Server,
        state,
        words.doctor_clock_name(),
        now.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    );
}

/// Upstreams whose last answer to the running server was a failure. A fallback hides a wrong key, and may cost.
pub(crate) async fn check_last_answers(words: UiText, report: &mut DoctorReport) {
    // To ask for the folder would make it.
    if data_dir::folder().as_deref().and_then(ServerNote::read).is_none() {
        return;
    }
    let Ok(server) = RunningServer::of_data_folder() else { return };
    let upstreams = server.get("/v1/upstreams").timeout(READY_WAIT);
    let Ok(upstreams) = RunningServer::send(upstreams).await else { return };
    for upstream in upstreams["items"].as_array().into_iter().flatten() {
        let failure = &upstream["last_failure"];
        let (Some(name), Some(message)) = (upstream["name"].as_str(), failure["message"].as_str()) else {
            continue;
        };
        let at = failure["at"].as_i64().and_then(|at| Timestamp::from_millisecond(at).ok());
        let at = at.map_or_else(String::new, |at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
        let passes = matches!(failure["code"].as_str(), Some("rate_limit" | "retry"));
        let state = if passes { DoctorState::Note } else { DoctorState::Wrong };
        report.add(DoctorArea::Upstreams, state, name, words.doctor_last_failure(&at, message));
        if state == DoctorState::Wrong {
            report.remedy(format!("throughline connect {name}"));
        }
    }
}

/// Readiness of a running server for turns.
enum ServerReadiness {
    Ready,
    /// Not ready, with the server's reason.
    NotReady(String),
}

/// Answer of `/readyz`. `None`: no Throughline server listens there.
async fn fetch_readiness(note: &ServerNote) -> Option<ServerReadiness> {
    let client = local_client(note).ok()?.timeout(READY_WAIT).build().ok()?;
    let answer = client.get(format!("{}/readyz", note.url)).send().await.ok()?;
    if answer.status().is_success() {
        return Some(ServerReadiness::Ready);
    }
    let status_body: serde_json::Value = serde_json::from_str(&answer.text().await.ok()?).ok()?;
    let why = status_body["why"].as_str().or(status_body["status"].as_str())?;
    Some(ServerReadiness::NotReady(why.to_owned()))
}

fn check_address(
    settings: &AppSettings,
    running: Option<&(String, ServerReadiness)>,
    words: UiText,
    report: &mut DoctorReport,
) {
    let listen = settings.server.listen.to_string();
    match running {
        Some((url, ServerReadiness::Ready)) => {
            return report.add(DoctorArea::Server, DoctorState::Good, listen, words.doctor_serves(url));
        }
        Some((url, ServerReadiness::NotReady(why))) => {
            return report.add(
                DoctorArea::Server,
                DoctorState::Wrong,
                listen,
                words.doctor_serves_not(url, why),
            );
        }
        None => {}
    }
    match HttpServer::bind(&settings.server) {
        Ok(_) => report.add(DoctorArea::Server, DoctorState::Good, listen, words.doctor_free()),
        Err(error) => {
            // Another program on the port may be there on purpose.
            let state =
                if matches!(error, BindError::InUse { .. }) { DoctorState::Note } else { DoctorState::Wrong };
            report.add(DoctorArea::Server, state, listen, error.to_string());
            report.remedy(error.remedy());
        }
    }
}

fn check_storage(
    folder: &Path,
    settings: &AppSettings,
    running: bool,
    words: UiText,
    report: &mut DoctorReport,
) {
    let name = folder.display().to_string();
    // Where it will be made.
    let Some(nearest_existing) = folder.ancestors().find(|path| path.is_dir()) else { return };
    let state = if is_writable(nearest_existing) { DoctorState::Good } else { DoctorState::Wrong };
    let detail = match (state, nearest_existing == folder) {
        (DoctorState::Good, true) => words.doctor_data_folder(),
        (DoctorState::Good, false) => words.doctor_data_folder_later(),
        _ => words.doctor_data_folder_closed(),
    };
    report.add(DoctorArea::Server, state, &name, detail);
    if let Some(free) = free_bytes(nearest_existing) {
        let state = if free >= FREE_BYTES_WANTED { DoctorState::Good } else { DoctorState::Wrong };
        report.add(DoctorArea::Server, state, words.doctor_disk_name(), words.doctor_free_bytes(free >> 20));
        if state == DoctorState::Wrong {
            report.remedy(words.doctor_make_room());
        }
    }
    let path = match &settings.store.backend {
        StoreBackend::DataFolder => folder.join(STORE_FILE),
        StoreBackend::File(path) => path.clone(),
        StoreBackend::Postgres(_) => return,
    };
    let name = path.display().to_string();
    match sqlite_header(&path) {
        None => report.add(DoctorArea::Server, DoctorState::Note, name, words.doctor_no_store()),
        Some((bytes, true)) => {
            report.add(DoctorArea::Server, DoctorState::Good, name, words.doctor_store(bytes >> 10, running))
        }
        Some((_, false)) => {
            report.add(DoctorArea::Server, DoctorState::Wrong, name, words.doctor_bad_store());
            report.remedy(words.doctor_another_store());
        }
    }
}

/// Size of a file, and true if it is a database. `None` = it does not exist.
fn sqlite_header(path: &Path) -> Option<(u64, bool)> {
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
