//! Upstreams that can be connected immediately: servers on this machine, and providers whose key is set.

use crate::args::ModelArgs;
use crate::exit::CliFailure;
use crate::messages::UiText;
use crate::setup;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use throughline::config::AppSettings;
use throughline::providers::{self, KnownProvider};
use throughline::{KeyOrigin, Upstream};
use tokio::task::JoinSet;

/// Timeout for a local server to list its models. A closed port refuses immediately.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of a local server's models that are named.
const NAMED_MODELS_MAX: usize = 3;

/// State of the upstreams that are known by name.
pub(crate) struct ReadyUpstreams {
    settings: AppSettings,
    /// Models of those that run on this machine.
    running: BTreeMap<&'static str, Vec<String>>,
}

impl ReadyUpstreams {
    /// Queries all servers on this machine in parallel.
    pub(crate) async fn find(settings: AppSettings) -> Self {
        let mut probes = JoinSet::new();
        for row in providers::all().into_iter().filter(KnownProvider::is_local) {
            let upstream = settings.upstreams.get(row.name).cloned();
            if let Some(upstream) = upstream.or_else(|| Upstream::known(row.name).ok()) {
                probes.spawn(async move { (row.name, upstream.models(LOCAL_TIMEOUT).await) });
            }
        }
        let mut running = BTreeMap::new();
        while let Some(probed) = probes.join_next().await {
            if let Ok((name, Ok(models))) = probed {
                running.insert(name, models);
            }
        }
        Self { settings, running }
    }

    /// State of an upstream in the list; empty if its key is missing, or nothing runs there.
    pub(crate) fn state(&self, row: &KnownProvider, words: UiText) -> String {
        if let Some(models) = self.running.get(row.name) {
            let named: Vec<&str> = models.iter().take(NAMED_MODELS_MAX).map(String::as_str).collect();
            return words.connect_runs_here(&named.join(", "), models.len().saturating_sub(named.len()));
        }
        let configured = self.settings.upstreams.get(row.name);
        let is_stored = configured.is_some_and(|one| one.key_origin() == Some(KeyOrigin::Stored));
        match row.key_env {
            _ if is_stored => words.connect_key_is_stored(),
            Some(variable) if std::env::var_os(variable).is_some_and(|value| !value.is_empty()) => {
                words.connect_key_set(variable)
            }
            _ => String::new(),
        }
    }

    /// A command that uses a server on this machine.
    pub(crate) fn example(&self) -> Option<String> {
        let (name, models) = self.running.iter().find(|(_, models)| !models.is_empty())?;
        Some(format!("throughline connect {name} --model {}", models.first()?))
    }
}

/// Finds the upstreams that run on this machine.
///
/// # Errors
/// The configuration cannot be read.
pub(crate) async fn ready(config: Option<PathBuf>) -> Result<ReadyUpstreams, CliFailure> {
    let mut connected = setup::connected()?;
    // Named once, so that another address in the environment counts.
    for row in providers::all().iter().filter(|row| row.is_local()) {
        let stored = connected.get(row.name).cloned().unwrap_or_default();
        connected = connected.with(row.name, stored);
    }
    let choice = ModelArgs { config, ..ModelArgs::default() };
    let settings = setup::load_settings_over(&choice, None, None, &connected)?;
    Ok(ReadyUpstreams::find(settings).await)
}
