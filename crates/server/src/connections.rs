//! How upstreams are connected while the server runs: where their keys are kept, and what configuration, environment and
//! stored keys come to together. R: O4

use crate::telemetry::Redaction;
use std::sync::Arc;
use throughline::Upstream;
use throughline::config::{Connected, ConnectedError, ConnectedFile, Connection, Settings};
use throughline::known;
use tokio::sync::{Mutex, MutexGuard};

/// Puts the layers of the configuration on top of each other, with these stored ones among them.
pub type Resolve = Arc<dyn Fn(&Connected) -> Result<Settings, String> + Send + Sync>;

/// What a server needs for it. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Connections(Arc<Inner>);

struct Inner {
    file: ConnectedFile,
    resolve: Resolve,
    redaction: Arc<Redaction>,
    /// Held from what is kept to what is in use, so that the two are the same.
    changing: Mutex<()>,
}

/// Why nothing can be said of upstreams, or kept.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionsError {
    /// The file of keys.
    #[error(transparent)]
    File(#[from] ConnectedError),
    /// The configuration as it is now cannot be used.
    #[error("the configuration cannot be read as it is now: {0}")]
    Configuration(String),
    /// Something broke off.
    #[error("{0}")]
    Task(#[from] tokio::task::JoinError),
}

impl Connections {
    /// Keys in this file; whatever is used as a key is taken out of all that `redaction` sees.
    pub fn new(file: ConnectedFile, redaction: Arc<Redaction>, resolve: Resolve) -> Self {
        Self(Arc::new(Inner { file, resolve, redaction, changing: Mutex::new(()) }))
    }

    /// From now on this is in no log, trace or figure.
    pub fn keep_secret(&self, key: &str) {
        self.0.redaction.learn([key.to_owned()]);
    }

    /// Until it is dropped, nobody else changes what is connected.
    pub async fn change(&self) -> MutexGuard<'_, ()> {
        self.0.changing.lock().await
    }

    /// What is kept.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn kept(&self) -> Result<Connected, ConnectionsError> {
        self.with_file(|file| file.read()).await
    }

    /// Keeps one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn keep(&self, name: &str, connection: Connection) -> Result<(), ConnectionsError> {
        let name = name.to_owned();
        self.with_file(move |file| file.keep(&name, connection)).await
    }

    /// Forgets one; `None` = there was none.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn forget(&self, name: &str) -> Result<Option<Connection>, ConnectionsError> {
        let name = name.to_owned();
        self.with_file(move |file| file.forget(&name)).await
    }

    /// The upstream of this name as all layers make it, if it were connected like this; `None` = nobody knows the name.
    ///
    /// # Errors
    /// The configuration or the file cannot be read.
    pub async fn upstream(
        &self,
        name: &str,
        connection: Option<Connection>,
    ) -> Result<Option<Upstream>, ConnectionsError> {
        let mut connected = self.kept().await?;
        if let Some(connection) = connection {
            connected = connected.with(name, connection);
        }
        let mut settings = (self.0.resolve)(&connected).map_err(ConnectionsError::Configuration)?;
        Ok(settings.upstreams.remove(name))
    }

    /// Every upstream that is known by name, as all layers make it.
    ///
    /// # Errors
    /// As in [`upstream`](Self::upstream).
    pub async fn known(&self) -> Result<Vec<(known::Known, Upstream)>, ConnectionsError> {
        let mut connected = self.kept().await?;
        for row in known::all() {
            if connected.get(row.name).is_none() {
                connected = connected.with(row.name, Connection::default());
            }
        }
        let mut settings = (self.0.resolve)(&connected).map_err(ConnectionsError::Configuration)?;
        let known = known::all().into_iter();
        Ok(known
            .filter_map(|row| settings.upstreams.remove(row.name).map(|upstream| (row, upstream)))
            .collect())
    }

    async fn with_file<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ConnectedFile) -> Result<T, ConnectedError> + Send + 'static,
    ) -> Result<T, ConnectionsError> {
        let file = self.0.file.clone();
        Ok(tokio::task::spawn_blocking(move || work(&file)).await??)
    }
}
