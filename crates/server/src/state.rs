//! What every handler is given.

use crate::connections::Connections;
use crate::hub::Hub;
use crate::kept_media::KeptMedia;
use crate::telemetry::{Figures, Telemetry};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use throughline::Throughline;
use throughline::config::{Render, ServerLimits};
use throughline_store::{BlobFolder, Catalog, Log};

/// Everything that a handler may use. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct AppState(Arc<Parts>);

/// What the state consists of.
#[derive(Clone)]
pub struct Parts {
    /// The library: agents, upstreams, tools.
    pub app: Throughline,
    /// All turns; the application's own log.
    pub log: Arc<dyn Log>,
    /// Everything beside the log.
    pub catalog: Arc<dyn Catalog>,
    /// The bytes of files.
    pub blobs: BlobFolder,
    /// The same for what turns speak of.
    pub media: KeptMedia,
    /// The turns that are running.
    pub hub: Hub,
    /// The bounds of what one request, viewer or user may take.
    pub limits: ServerLimits,
    /// How tools are shown in chat completions whose client does not say.
    pub render: Render,
    /// What is measured.
    pub telemetry: Arc<Telemetry>,
    /// What the store says of itself, for the metrics.
    pub figures: Option<Figures>,
    /// How upstreams are connected; `None` = they are not, here.
    pub connections: Option<Connections>,
}

impl AppState {
    /// A state. The log is the application's own, which `catalog` is beside.
    pub fn new(app: Throughline, catalog: Arc<dyn Catalog>, blobs: BlobFolder, limits: ServerLimits) -> Self {
        Self::merging(app, catalog, blobs, limits, None)
    }

    /// The same, and the deltas of turns are merged so long after their end.
    pub fn merging(
        app: Throughline,
        catalog: Arc<dyn Catalog>,
        blobs: BlobFolder,
        limits: ServerLimits,
        merge_after: Option<Duration>,
    ) -> Self {
        let log = app.log().clone();
        let hub = Hub::new(app.clone(), catalog.clone(), limits, merge_after);
        let media = KeptMedia::new(catalog.clone(), blobs.clone(), limits.media_inline_bytes_max.into());
        let (render, telemetry, figures, connections) = (Render::None, Arc::default(), None, None);
        Self(Arc::new(Parts {
            app,
            log,
            catalog,
            blobs,
            media,
            hub,
            limits,
            render,
            telemetry,
            figures,
            connections,
        }))
    }

    /// The same with another default of how tools are shown in chat completions.
    #[must_use]
    pub fn rendering(&self, render: Render) -> Self {
        Self(Arc::new(Parts { render, ..(**self).clone() }))
    }

    /// The same, and upstreams can be connected while it runs.
    #[must_use]
    pub fn connecting(&self, connections: Connections) -> Self {
        Self(Arc::new(Parts { connections: Some(connections), ..(**self).clone() }))
    }

    /// The same, measured by this: it is told of viewers and shown at `/metrics`. What runs is told by the application's
    /// observer, which is to be the same one.
    #[must_use]
    pub fn measured(&self, telemetry: Arc<Telemetry>, figures: Option<Figures>) -> Self {
        self.hub.measured(telemetry.clone());
        Self(Arc::new(Parts { telemetry, figures, ..(**self).clone() }))
    }
}

impl Deref for AppState {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
