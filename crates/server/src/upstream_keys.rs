//! Connection of upstreams at run time: the storage of their keys, and the merge of configuration, environment and
//! stored keys.

use crate::telemetry::Redaction;
use std::sync::Arc;
use throughline::Upstream;
use throughline::config::{
    AppSettings, StoredUpstream, StoredUpstreams, StoredUpstreamsError, StoredUpstreamsFile,
};
use throughline::providers;
use tokio::sync::{Mutex, MutexGuard};

/// Puts the layers of the configuration on top of each other, with these stored ones among them.
pub(crate) type SettingsResolver = Arc<dyn Fn(&StoredUpstreams) -> Result<AppSettings, String> + Send + Sync>;

/// Upstream keys of a server. Cheap to clone; all clones share one state.
#[derive(Clone)]
pub struct UpstreamKeys(Arc<UpstreamKeysInner>);

struct UpstreamKeysInner {
    file: StoredUpstreamsFile,
    resolve: SettingsResolver,
    redaction: Arc<Redaction>,
    /// Held from the write of the file to the reload, so that both have the same content.
    change_lock: Mutex<()>,
}

/// Reason why upstreams cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamKeysError {
    /// The file of keys.
    #[error(transparent)]
    File(#[from] StoredUpstreamsError),
    /// The current configuration is invalid.
    #[error("the current configuration cannot be read: {0}")]
    Configuration(String),
    /// A blocking task was aborted.
    #[error("{0}")]
    Task(#[from] tokio::task::JoinError),
}

impl UpstreamKeys {
    /// Keys in this file; every key in use is added to `redaction`.
    pub fn new(file: StoredUpstreamsFile, redaction: Arc<Redaction>, resolve: SettingsResolver) -> Self {
        Self(Arc::new(UpstreamKeysInner { file, resolve, redaction, change_lock: Mutex::new(()) }))
    }

    /// Redacts a key in all logs, traces and metrics from now on.
    pub(crate) fn redact_secret(&self, key: &str) {
        self.0.redaction.add([key.to_owned()]);
    }

    /// Locks changes of connected upstreams until the guard is dropped.
    pub(crate) async fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.0.change_lock.lock().await
    }

    /// The stored upstreams.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn load(&self) -> Result<StoredUpstreams, UpstreamKeysError> {
        self.with_file(|file| file.read()).await
    }

    /// Keeps one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn store(&self, name: &str, connection: StoredUpstream) -> Result<(), UpstreamKeysError> {
        let name = name.to_owned();
        self.with_file(move |file| file.save(&name, connection)).await
    }

    /// Removes an upstream; `None` = it was not stored.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn remove(&self, name: &str) -> Result<Option<StoredUpstream>, UpstreamKeysError> {
        let name = name.to_owned();
        self.with_file(move |file| file.remove(&name)).await
    }

    /// The upstream of this name after all layers, if it were connected with these settings; `None` = the
    /// name is unknown.
    ///
    /// # Errors
    /// The configuration or the file cannot be read.
    pub async fn upstream(
        &self,
        name: &str,
        connection: Option<StoredUpstream>,
    ) -> Result<Option<Upstream>, UpstreamKeysError> {
        let mut connected = self.load().await?;
        if let Some(connection) = connection {
            connected = connected.with(name, connection);
        }
        let mut settings = (self.0.resolve)(&connected).map_err(UpstreamKeysError::Configuration)?;
        Ok(settings.upstreams.remove(name))
    }

    /// All built-in providers after all layers.
    ///
    /// # Errors
    /// As in [`upstream`](Self::upstream).
    pub(crate) async fn known_upstreams(
        &self,
    ) -> Result<Vec<(providers::KnownProvider, Upstream)>, UpstreamKeysError> {
        let mut connected = self.load().await?;
        for row in providers::all() {
            if connected.get(row.name).is_none() {
                connected = connected.with(row.name, StoredUpstream::default());
            }
        }
        let mut settings = (self.0.resolve)(&connected).map_err(UpstreamKeysError::Configuration)?;
        let known = providers::all().into_iter();
        Ok(known
            .filter_map(|row| settings.upstreams.remove(row.name).map(|upstream| (row, upstream)))
            .collect())
    }

    async fn with_file<T: Send + 'static>(
        &self,
        work: impl FnOnce(&StoredUpstreamsFile) -> Result<T, StoredUpstreamsError> + Send + 'static,
    ) -> Result<T, UpstreamKeysError> {
        let file = self.0.file.clone();
        Ok(tokio::task::spawn_blocking(move || work(&file)).await??)
    }
}
