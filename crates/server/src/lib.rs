//! The server: own API, OpenAI-compatible surface, keys, metrics. Every viewer is a cursor in the log.
//!
//! It never holds state of a turn that a restart would lose: turns, conversations and open questions are in
//! the store, and a turn that was running is resumed when the server starts again.

// The command is its only user: comments are present only where a name is not enough.
#![allow(missing_docs)]
#![warn(unreachable_pub)]

mod api;
mod approval_store;
mod chat_approvals;
mod error;
mod export;
mod extract;
mod in_process;
mod json_scanner;
mod large_bodies;
mod maintenance;
mod media_store;
mod net;
#[cfg(feature = "oidc")]
mod oidc;
mod openai;
mod pdf_text;
mod people;
mod principal;
mod projections;
mod readiness;
mod request_guard;
mod running_probes;
mod stamps;
mod state;
mod telemetry;
mod turn_log;
mod turn_manager;
mod upstream_keys;
mod user_agents;
mod viewer;
mod web;

// A server: its state, its routes, the request guard before them and the listener.
pub use error::ApiError;
pub use net::{BIND_RETRY_FOR, BindError, BoundServer, HttpServer, ServeOutcome};
pub use request_guard::{FirstKey, RequestGuard};
pub use state::{AppState, PageAddress};
pub use upstream_keys::UpstreamKeys;

// Turns and the viewers of their logs.
pub use turn_log::{EventJson, call_rows, events as turn_events, message_from};
pub use turn_manager::{COMPACT_AFTER, DrainSummary, TurnManager, TurnSpec};
pub use viewer::{ResumeFrom, Viewer, ViewerItem, merge_deltas};

// The API without a socket, for a program that has the store open itself.
pub use in_process::{InProcessApi, InProcessResponse};

// People, their keys and what they may do.
pub use people::{
    PeopleError, USAGE_LIMIT_MAX, UsageInfo, add as add_person, change as change_person,
    delete_data as delete_person_data, find as find_person, list as list_people,
    normalize_name as normalize_person_name, remove as remove_person,
};
pub use principal::{KeyScope, KeyScopes, LOCAL_USER, Principal};
pub use request_guard::{KeyInfo, KeyStore, NewApiKey};

// Traits of the library, implemented on the store: remembered approvals and large content.
pub use approval_store::CatalogApprovals;
pub use media_store::CatalogMediaStore;

// The text of PDF files, read by this program in a separate process.
pub use pdf_text::{PdfProgram, pdf_reader_main};

// Conversations as files.
pub use export::csv::{csv_header as calls_csv_header, write_row as write_call_csv};
pub use export::{
    IdMap, ImportFormat, ImportTarget, LineError, NoMediaLinks, PortableConversation, PortableTurn,
    embed_media, import_conversation, markdown as conversation_markdown, media_files, parse_conversation,
    read_jsonl, read_messages, write_jsonl,
};

// Upkeep of the store.
pub use maintenance::{BACKUP_AFTER, BackupFn, MAINTENANCE_INTERVAL, StoreMaintenance};

// Metrics, logs, traces and the history of calls.
#[cfg(feature = "otel")]
pub use telemetry::OtlpExporter;
pub use telemetry::logs::{LogFormat, install as install_logs, json_to as json_logs_to};
pub use telemetry::names::METRICS;
pub use telemetry::traces::{
    AttributeValue, SPAN_CONTENT_BYTES_MAX, SpanKind, TraceFold, TraceSink, TurnTrace,
};
pub use telemetry::{
    CallHistory, ContentCapture, HistoryWriterTask, Redaction, StoreMetrics, StoreMetricsFn, Telemetry,
    TelemetryFold, TraceContext,
};

// Frames for one viewer that are in no log, which a test compares with their schema.
pub use projections::native::{
    SnapshotKind, snapshot as write_snapshot_frame, store_unavailable as store_unavailable_event,
    waiting as write_waiting_frame,
};

use axum::extract::DefaultBodyLimit;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

/// All routes with their descriptions, without a state.
fn documented_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().merge(api::routes()).merge(openai::routes())
}

/// The description of all routes, OpenAPI 3.1.
pub fn openapi() -> OpenApi {
    documented_routes().into_openapi()
}

/// The OpenAPI document as served, with the parts that apply to all routes.
pub fn openapi_document() -> serde_json::Value {
    api::openapi::document(openapi())
}

/// All routes: the native API and the compatible ones. They check no key: wrap them with [`RequestGuard::wrap`]
/// before serving.
pub fn router(state: AppState) -> axum::Router {
    let (router, _) = documented_routes().split_for_parts();
    let router = router
        .merge(web::routes())
        .merge(api::home::routes())
        .merge(api::plugin_callbacks::routes())
        .merge(api::question_links::pages())
        .merge(api::reference::routes());
    #[cfg(feature = "oidc")]
    let router = router.merge(api::provider_sign_in::pages());
    // Replaces axum's default limit of 2 MB.
    let bodies = DefaultBodyLimit::max(state.limits.body_bytes_max as usize);
    let router =
        router.fallback(error::route_not_found).method_not_allowed_fallback(error::method_not_allowed);
    let commands = axum::middleware::from_fn_with_state(state.clone(), turn_manager::forward_commands);
    router.layer(commands).layer(bodies).with_state(state)
}
