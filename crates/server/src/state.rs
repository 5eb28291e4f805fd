//! What every handler is given.

use crate::hub::Hub;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use throughline::Throughline;
use throughline_store::{BlobFolder, Catalog, Log};

/// Everything that a handler may use. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct AppState(Arc<Parts>);

/// What the state consists of.
pub struct Parts {
    /// The library: agents, upstreams, tools.
    pub app: Throughline,
    /// All turns.
    pub log: Arc<dyn Log>,
    /// Everything beside the log.
    pub catalog: Arc<dyn Catalog>,
    /// The bytes of files.
    pub blobs: BlobFolder,
    /// The turns that are running.
    pub hub: Hub,
    /// The bounds of what one request, viewer or user may take.
    pub limits: ServerLimits,
}

impl AppState {
    /// A state; the log is the application's own.
    pub fn new(app: Throughline, catalog: Arc<dyn Catalog>, blobs: BlobFolder, limits: ServerLimits) -> Self {
        let log = app.log().clone();
        let hub = Hub::new(app.clone(), log.clone(), limits.clone());
        Self(Arc::new(Parts { app, log, catalog, blobs, hub, limits }))
    }
}

impl Deref for AppState {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// The bounds of what one request, viewer or user may take. // R: R4
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// A request's body, in bytes; files have their own. Default 4 MiB.
    pub body_bytes_max: usize,
    /// Turns of one user that run at once. Default 8.
    pub turns_running_max: usize,
    /// Open event streams of one user, SSE and WebSocket subscriptions together. Default 64.
    pub streams_max: usize,
    /// Silence on a stream after which a heartbeat is sent. Default 10 s.
    pub heartbeat: Duration,
    /// How far behind the log a viewer may be, in bytes of events. Default 1 MiB.
    pub behind_bytes_max: usize,
    /// How long a viewer may take nothing while there is something for it. Default 10 s.
    pub behind_max: Duration,
    /// One WebSocket frame, in bytes. Default 1 MiB.
    pub ws_frame_bytes_max: usize,
    /// One WebSocket message, in bytes. Default 4 MiB.
    pub ws_message_bytes_max: usize,
    /// Time between two pings on a WebSocket. Default 15 s.
    pub ws_ping: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes_max: 4 << 20,
            turns_running_max: 8,
            streams_max: 64,
            heartbeat: Duration::from_secs(10),
            behind_bytes_max: 1 << 20,
            behind_max: Duration::from_secs(10),
            ws_frame_bytes_max: 1 << 20,
            ws_message_bytes_max: 4 << 20,
            ws_ping: Duration::from_secs(15),
        }
    }
}
