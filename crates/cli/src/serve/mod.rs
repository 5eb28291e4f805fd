//! `throughline serve`: the parts of a server put together, and taken apart again.

#[cfg(feature = "bench")]
mod bench;
pub(crate) mod local_client;
pub(crate) mod monitoring;
pub(crate) mod read_only_store;
mod reload;
pub(crate) mod running_server;
pub(crate) mod server_note;
pub(crate) mod store;

use crate::allocator::{UNMAP_FREE_MEMORY, return_free_memory};
use crate::approvals;
use crate::args::ServeArgs;
use crate::conversation::pending_store;
use crate::data_dir;
use crate::exit::{CliExit, CommandResult};
use crate::interrupt::ControllingTerminal;
use crate::messages::{self, ServeGreeting, UiLanguage, UiText};
use crate::output::errln;
use crate::setup::{self, AppContext};
use monitoring::Monitoring;
use reload::ConfigVersion;
use server_note::ServerNote;
use std::sync::Arc;
use std::time::Duration;
use store::ServerStorage;
use throughline::ApprovalMode;
use throughline::config::{AppSettings, AuthMode, STORED_UPSTREAMS_FILE, StoredUpstreamsFile};
use throughline_server::{
    AppState, COMPACT_AFTER, CatalogApprovals, CatalogMediaStore, FirstKey, HttpServer, LogFormat,
    PageAddress, PdfProgram, Redaction, RequestGuard, ServeOutcome, StoreMaintenance, UpstreamKeys,
    install_logs, router,
};
use throughline_tools::process::is_root;
use tokio_util::task::AbortOnDropHandle;

/// Serves until a shutdown is requested.
pub(crate) async fn run(args: &ServeArgs) -> CommandResult {
    return_free_memory();
    let words = UiText(UiLanguage::current());
    let terminal = ControllingTerminal::of_this_process();
    let config_version = ConfigVersion::of(&args.choice);
    let settings = setup::load_settings_with(&args.choice, args.listen.as_deref(), args.store.as_deref())?;
    let mut surroundings = setup::surroundings(&args.choice);
    let redaction = Arc::new(Redaction::new(settings.secret_values(&surroundings)));
    redaction.add(setup::given_key(&args.choice));
    install_logs(LogFormat::Auto, redaction.clone());
    let monitoring = Monitoring::new(redaction.clone())?;
    // Before anything is opened or started: that the port is taken is the likeliest thing to go wrong.
    let server_socket =
        HttpServer::bind_with_retry(&settings.server).await.map_err(|error| messages::cannot_bind(&error))?;
    let storage = ServerStorage::open(&settings.store).await?;
    let blobs = storage.blobs(settings.server.limits.upload_bytes_max).await?;
    if let Err(failure) = approvals::adopt_file(&settings.store, &storage).await {
        // Commands still read the file.
        tracing::warn!("{failure}");
    }
    pending_store::move_into(&storage, settings.server.limits.media_inline_bytes_max).await;
    let (server, stored) = (settings.server.clone(), settings.store.clone());
    let agents = agent_lines(&settings);
    let approval_stores = Arc::new(CatalogApprovals::new(storage.catalog()));
    let (log, observer) = (storage.log(), monitoring.observer());
    let inline_max = u64::from(server.limits.media_inline_bytes_max);
    let media = Arc::new(CatalogMediaStore::new(storage.catalog(), blobs.clone(), inline_max));
    if is_root() && settings.tools.run_as.is_none() {
        tracing::warn!("{}", words.runs_as_root());
    }
    surroundings.control_groups = setup::control_groups(&settings)?;
    if let Some(groups) = &surroundings.control_groups {
        tracing::info!("{}", words.control_groups(groups));
    }
    let (name, value) = UNMAP_FREE_MEMORY;
    let pdf_program = PdfProgram::this_program(crate::PDF_READER, &surroundings)
        .map(|program| program.with_environment_variable(name, value));
    let context = AppContext::open_in(&args.choice, settings, surroundings, |builder| {
        let builder = builder
            .approval(ApprovalMode::Ask)
            .observer(observer)
            .approval_stores(approval_stores)
            .keep_raw(stored.keep_raw)
            .media(media);
        #[cfg(feature = "bench")]
        let (builder, log) = (builder.tools(bench::tools()), bench::log(log));
        builder.log(log)
    })
    .await?;
    let monitoring = monitoring.start(&storage);
    let maintenance = StoreMaintenance {
        catalog: storage.catalog(),
        blobs: blobs.clone(),
        backup: storage.backup(),
        retention: stored.retention_days.map(|days| Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        now: || jiff::Timestamp::now().as_millisecond(),
    };
    let merge_after = stored.merge.then_some(COMPACT_AFTER);
    let state =
        AppState::with_merge_after(context.app.clone(), storage.catalog(), blobs, server.limits, merge_after)
            .with_render(server.render)
            .with_listed_renders(server.listed_renders.clone())
            .with_page_address(PageAddress {
                public_url: server.public_url.clone(),
                tls: server.tls.is_some(),
            });
    let state = monitoring.attach(&state, &storage);
    let state = state.with_upstream_keys(upstream_keys(args, &storage, redaction.clone()));
    let state = match pdf_program {
        Ok(program) => state.with_pdf_program(program),
        Err(error) => {
            tracing::warn!(%error, "no PDF reader");
            state
        }
    };
    // Clients may connect already, and wait until every turn that was running runs again.
    let resumed = state
        .turn_manager
        .resume_open()
        .await
        .map_err(|error| messages::output_failed(&std::io::Error::other(error)))?;
    let request_guard = RequestGuard::new(&server, Arc::new(storage.catalog()));
    let key_file = storage.folder.join(data_dir::ADMIN_TOKEN_FILE);
    let first = match server.auth {
        AuthMode::Off => FirstKey::Exists,
        AuthMode::Keys => {
            request_guard.first_key(&key_file).await.map_err(|error| messages::no_first_key(&error))?
        }
    };
    // The key of the first start is in a file that commands on this machine read, and nowhere else.
    match &first {
        FirstKey::Created(key) => redaction.add([key.reveal()]),
        FirstKey::Exists => redaction.add(std::fs::read_to_string(&key_file).ok()),
    }
    let certificate = server.tls.as_ref().map(|tls| tls.cert.clone());
    let note = ServerNote::of(server_socket.scheme(), server_socket.address(), certificate);
    context.app.toolbox().set_callback_base(&note.url);
    let _note_guard =
        note.write(&storage.folder).map_err(|error| messages::bad_data_folder(&storage.folder, &error))?;
    let stop_signals =
        crate::interrupt::stop_signals_in(terminal).map_err(|error| messages::no_signals(&error))?;
    let sign_in = match server.auth {
        AuthMode::Off => None,
        AuthMode::Keys => Some(request_guard.sign_in_link().map_err(|error| messages::no_first_key(&error))?),
    };
    let greeting = ServeGreeting {
        url: &note.url,
        sign_in,
        key: match first {
            FirstKey::Created(key) => Some(key.reveal()),
            FirstKey::Exists => None,
        },
        key_file: Some(key_file.as_path()).filter(|path| path.exists()),
        open: server.auth == AuthMode::Off,
        agents,
        tools: context.app.tools().iter().count(),
        store: storage.store.location(),
        resumed: resumed.turns,
    };
    crate::output::text(&words.serve_greeting(&greeting)).map_err(|error| messages::output_failed(&error))?;
    let _maintenance_task = AbortOnDropHandle::new(tokio::spawn(maintenance.run()));
    let watched_guard = request_guard.clone();
    let _key_watch =
        AbortOnDropHandle::new(tokio::spawn(async move { watched_guard.watch_live_keys().await }));
    let rules = context.app.clone();
    let _rules = AbortOnDropHandle::new(tokio::spawn(async move { reload::warn_of_rules(&rules).await }));
    let reloading = reload::watch(
        config_version,
        args.clone(),
        terminal,
        context.app.clone(),
        request_guard.clone(),
        redaction,
        (server.clone(), stored),
    );
    let _reloading = AbortOnDropHandle::new(tokio::spawn(reloading));
    let _peers =
        AbortOnDropHandle::new(tokio::spawn(state.turn_manager.clone().serve_peers(router(state.clone()))));
    let (turn_manager, time) = (state.turn_manager.clone(), Duration::from_millis(server.drain_ms));
    let drain = async move {
        errln!("{}", words.draining(turn_manager.turns_running(), time.as_secs()));
        turn_manager.drain(time).await;
    };
    let outcome = server_socket.serve(request_guard.wrap(router(state)), stop_signals, drain).await;
    context.app.stop_sources().await;
    monitoring.finish().await;
    storage.store.close().await;
    Ok(match outcome {
        ServeOutcome::Drained => CliExit::Done,
        ServeOutcome::Aborted => CliExit::Cancelled,
    })
}

/// Keys in the data folder, over the same layers as at the start.
fn upstream_keys(args: &ServeArgs, storage: &ServerStorage, redaction: Arc<Redaction>) -> UpstreamKeys {
    let file = StoredUpstreamsFile::at(storage.folder.join(STORED_UPSTREAMS_FILE));
    let (choice, listen, store) = (args.choice.clone(), args.listen.clone(), args.store.clone());
    UpstreamKeys::new(
        file,
        redaction,
        Arc::new(move |connected| {
            setup::load_settings_over(&choice, listen.as_deref(), store.as_deref(), connected)
                .map_err(|failure| failure.what)
        }),
    )
}

/// `name → model`, the one that answers first.
fn agent_lines(settings: &AppSettings) -> Vec<String> {
    let mut names: Vec<&String> = settings.agents.keys().collect();
    names.sort_by_key(|name| **name != settings.agent);
    let line = |name: &String| {
        let model = settings.agents.get(name).and_then(|agent| agent.models.first());
        let model = model.map(|choice| {
            if choice.name == choice.model {
                choice.name.clone()
            } else {
                format!("{}/{}", choice.name, choice.model)
            }
        });
        format!("{name} → {}", model.unwrap_or_default())
    };
    names.into_iter().map(line).collect()
}
