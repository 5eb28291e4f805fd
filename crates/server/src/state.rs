//! Shared state of all handlers.

use crate::api::conversations::shares::SharedReads;
use crate::media_store::CatalogMediaStore;
use crate::openai::audio::RECORDINGS_READ_MAX;
use crate::pdf_text::{PdfProgram, PdfTexts};
use crate::readiness::ReadinessProbe;
use crate::running_probes::RunningProbes;
use crate::telemetry::{StoreMetricsFn, Telemetry};
use crate::turn_manager::TurnManager;
use crate::upstream_keys::UpstreamKeys;
use http::{HeaderMap, HeaderName, Uri, header};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use throughline::Throughline;
use throughline::config::{ServerLimits, ToolRendering};
use throughline_store::{BlobFolder, Catalog, Log};
use tokio::sync::Semaphore;

/// Shared state of all handlers. Cheap to clone; clones share it.
#[derive(Clone)]
pub struct AppState(Arc<AppStateParts>);

/// Parts of the state.
#[derive(Clone)]
pub struct AppStateParts {
    /// The library: agents, upstreams, tools.
    pub app: Throughline,
    /// Log of all turns, the same as the application's.
    pub log: Arc<dyn Log>,
    /// All stored data except the log.
    pub catalog: Arc<dyn Catalog>,
    /// The bytes of files.
    pub blobs: BlobFolder,
    /// The files of turns, as the media store of the library.
    pub media: CatalogMediaStore,
    /// The turns that are running.
    pub turn_manager: TurnManager,
    /// The bounds of what one request, viewer or user may take.
    pub limits: ServerLimits,
    /// Default rendering of tools in chat completions.
    pub render: ToolRendering,
    /// The renderings under which `/v1/models` also lists agents.
    pub listed_renders: Vec<ToolRendering>,
    /// The address of the page, for links in chats.
    pub page_address: PageAddress,
    pub telemetry: Arc<Telemetry>,
    /// Metrics of the store.
    pub store_metrics: Option<StoreMetricsFn>,
    /// Readiness of the store.
    pub readiness: Arc<ReadinessProbe>,
    /// Keys of upstreams; `None` if upstreams cannot be connected here.
    pub upstream_keys: Option<UpstreamKeys>,
    /// Upstreams that are being measured.
    pub probes: RunningProbes,
    /// The program that reads PDF files, if available.
    pub pdf_program: Option<PdfProgram>,
    /// PDF files that are being read.
    pub(crate) pdf_texts: Arc<PdfTexts>,
    /// Permits for recordings that are read in parallel.
    pub(crate) recordings: Arc<Semaphore>,
    /// Limit of how often links to conversations are read.
    pub(crate) shared_reads: Arc<SharedReads>,
}

impl AppState {
    /// Creates a state. `catalog` also implements the log of the application.
    pub fn new(app: Throughline, catalog: Arc<dyn Catalog>, blobs: BlobFolder, limits: ServerLimits) -> Self {
        Self::with_merge_after(app, catalog, blobs, limits, None)
    }

    /// As [`new`](Self::new), with a delay after a turn's end until its deltas are merged.
    pub fn with_merge_after(
        app: Throughline,
        catalog: Arc<dyn Catalog>,
        blobs: BlobFolder,
        limits: ServerLimits,
        merge_after: Option<Duration>,
    ) -> Self {
        let log = app.log().clone();
        let turn_manager = TurnManager::new(app.clone(), catalog.clone(), limits, merge_after);
        let media =
            CatalogMediaStore::new(catalog.clone(), blobs.clone(), limits.media_inline_bytes_max.into());
        let (render, telemetry, store_metrics, upstream_keys) =
            (ToolRendering::None, Arc::default(), None, None);
        let (listed_renders, page_address) = (Vec::new(), PageAddress::default());
        Self(Arc::new(AppStateParts {
            app,
            log,
            catalog,
            blobs,
            media,
            turn_manager,
            limits,
            render,
            listed_renders,
            page_address,
            telemetry,
            store_metrics,
            readiness: Arc::default(),
            upstream_keys,
            probes: RunningProbes::default(),
            pdf_program: None,
            pdf_texts: PdfTexts::new(limits),
            recordings: Arc::new(Semaphore::new(RECORDINGS_READ_MAX)),
            shared_reads: Arc::new(SharedReads::new(limits.shared_reads_per_minute_max)),
        }))
    }

    /// Sets the default rendering of tools in chat completions.
    #[must_use]
    pub fn with_render(&self, render: ToolRendering) -> Self {
        Self(Arc::new(AppStateParts { render, ..(**self).clone() }))
    }

    /// Adds renderings under which `/v1/models` lists agents.
    #[must_use]
    pub fn with_listed_renders(&self, listed_renders: Vec<ToolRendering>) -> Self {
        Self(Arc::new(AppStateParts { listed_renders, ..(**self).clone() }))
    }

    /// Sets the address of the page.
    #[must_use]
    pub fn with_page_address(&self, page_address: PageAddress) -> Self {
        Self(Arc::new(AppStateParts { page_address, ..(**self).clone() }))
    }

    /// Sets the program that reads PDF files.
    #[must_use]
    pub fn with_pdf_program(&self, program: PdfProgram) -> Self {
        Self(Arc::new(AppStateParts { pdf_program: Some(program), ..(**self).clone() }))
    }

    /// Allows upstreams to be connected while the server runs.
    #[must_use]
    pub fn with_upstream_keys(&self, upstream_keys: UpstreamKeys) -> Self {
        Self(Arc::new(AppStateParts { upstream_keys: Some(upstream_keys), ..(**self).clone() }))
    }

    /// Sets the telemetry: it counts viewers and is served at `/metrics`. Turns are reported by the
    /// application's observer, which must be the same object.
    #[must_use]
    pub fn with_telemetry(&self, telemetry: Arc<Telemetry>, store_metrics: Option<StoreMetricsFn>) -> Self {
        self.turn_manager.set_telemetry(telemetry.clone());
        Self(Arc::new(AppStateParts { telemetry, store_metrics, ..(**self).clone() }))
    }
}

/// Address of the server's page for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageAddress {
    /// Address from the configuration; `None` = the address at which a client reaches the API.
    pub public_url: Option<String>,
    /// True if the server terminates TLS itself.
    pub tls: bool,
}

impl PageAddress {
    /// The address for the user of this request's client, without a trailing slash.
    pub fn resolve(&self, uri: &Uri, headers: &HeaderMap) -> String {
        if let Some(url) = &self.public_url {
            return url.clone();
        }
        let named = |name: http::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let by_proxy = named(HeaderName::from_static("x-forwarded-proto")) == Some("https");
        let scheme = if self.tls || by_proxy { "https" } else { "http" };
        let host = named(header::HOST).or(uri.authority().map(|authority| authority.as_str()));
        let host = host.unwrap_or("localhost");
        // A client in a container calls this machine so, and the person is not in the container.
        match host.strip_prefix("host.docker.internal") {
            Some(port) => format!("{scheme}://localhost{port}"),
            None => format!("{scheme}://{host}"),
        }
    }
}

impl Deref for AppState {
    type Target = AppStateParts;

    fn deref(&self) -> &AppStateParts {
        &self.0
    }
}
