//! `throughline serve`: the parts of a server put together, and taken apart again. R: S1, O2, R4

#[cfg(feature = "bench")]
mod bench;
pub mod onlooker;
pub mod place;
mod reload;
pub mod running;
pub mod store;
mod watching;

use crate::args::Serve;
use crate::data;
use crate::exit::{Ended, Exit};
use crate::interrupt::Terminal;
use crate::messages::{self, Greeting, Lang, Words};
use crate::setup::{self, World};
use place::Note;
use std::sync::Arc;
use std::time::Duration;
use store::Kept;
use throughline::config::{Auth, CONNECTED_FILE, ConnectedFile, Settings, Switch};
use throughline::{Approval, KeepRaw};
use throughline_server::connections::Connections;
use throughline_server::gate::FirstKey;
use throughline_server::hub::MERGE_AFTER;
use throughline_server::kept_media::KeptMedia;
use throughline_server::memories::CatalogMemories;
use throughline_server::state::PageAddress;
use throughline_server::telemetry::Redaction;
use throughline_server::telemetry::logs::{self, LogFormat};
use throughline_server::upkeep::Upkeep;
use throughline_server::{AppState, Gate, Served, Server, router};
use throughline_tools::process::is_root;
use tokio_util::task::AbortOnDropHandle;
use watching::Watching;

/// Serves until somebody wants it to stop.
pub async fn run(args: &Serve) -> Ended {
    let words = Words(Lang::of_environment());
    let terminal = Terminal::of_this_process();
    let settings = setup::settings_with(&args.choice, args.listen.as_deref(), args.store.as_deref())?;
    let mut surroundings = setup::surroundings(&args.choice);
    let redaction = Arc::new(Redaction::new(settings.secret_values(&surroundings)));
    redaction.learn(setup::given_key(&args.choice));
    logs::install(LogFormat::Auto, redaction.clone());
    let watching = Watching::new(redaction.clone())?;
    // Before anything is opened or started: that the port is taken is the likeliest thing to go wrong.
    let bound =
        Server::bind_patiently(&settings.server).await.map_err(|error| messages::cannot_bind(&error))?;
    let kept = Kept::open(&settings.store).await?;
    let blobs = kept.blobs(settings.server.limits.upload_bytes_max).await?;
    let (server, stored) = (settings.server.clone(), settings.store.clone());
    let agents = agents(&settings);
    let memories = Arc::new(CatalogMemories::new(kept.catalog()));
    let (log, observer) = (kept.log(), watching.observer());
    let keep_raw = if stored.keep_raw == Switch::On { KeepRaw::Yes } else { KeepRaw::No };
    let inline_max = u64::from(server.limits.media_inline_bytes_max);
    let media = Arc::new(KeptMedia::new(kept.catalog(), blobs.clone(), inline_max));
    if is_root() && settings.tools.run_as.is_none() {
        tracing::warn!("{}", words.runs_as_root());
    }
    surroundings.control_groups = setup::control_groups(&settings)?;
    if let Some(groups) = &surroundings.control_groups {
        tracing::info!("{}", words.control_groups(groups));
    }
    let world = World::open_in(&args.choice, settings, surroundings, |builder| {
        let builder = builder
            .approval(Approval::Ask)
            .observer(observer)
            .memories(memories)
            .keep_raw(keep_raw)
            .media(media);
        #[cfg(feature = "bench")]
        let (builder, log) = (builder.tools(bench::tools()), bench::log(log));
        builder.log(log)
    })
    .await?;
    let watching = watching.begin(&kept);
    let upkeep = Upkeep {
        catalog: kept.catalog(),
        blobs: blobs.clone(),
        backup: kept.backup(),
        retention: stored.retention_days.map(|days| Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        now: || jiff::Timestamp::now().as_millisecond(),
    };
    let merge_after = (stored.merge == Switch::On).then_some(MERGE_AFTER);
    let state = AppState::merging(world.app.clone(), kept.catalog(), blobs, server.limits, merge_after)
        .rendering(server.render)
        .listing(server.listed_renders.clone())
        .with_page_at(PageAddress { public_url: server.public_url.clone(), tls: server.tls.is_some() });
    let state = watching.of(&state, &kept);
    let state = state.connecting(connections(args, &kept, redaction.clone()));
    // Clients may connect already, and wait until every turn that was running runs again.
    let resumed = state
        .hub
        .resume_open()
        .await
        .map_err(|error| messages::output_failed(&std::io::Error::other(error)))?;
    let gate = Gate::new(&server, Arc::new(kept.catalog()));
    let key_file = kept.folder.join(data::ADMIN_TOKEN);
    let first = match server.auth {
        Auth::Off => FirstKey::There,
        Auth::Keys => gate.first_key(&key_file).await.map_err(|error| messages::no_first_key(&error))?,
    };
    // The key of the first start is in a file that commands on this machine read, and nowhere else.
    match &first {
        FirstKey::Made(key) => redaction.learn([key.reveal()]),
        FirstKey::There => redaction.learn(std::fs::read_to_string(&key_file).ok()),
    }
    let note = Note::of(bound.scheme(), bound.address());
    let _noted = note.leave(&kept.folder).map_err(|error| messages::bad_data_folder(&kept.folder, &error))?;
    let wishes = crate::interrupt::wishes_in(terminal).map_err(|error| messages::no_signals(&error))?;
    let sign_in = match server.auth {
        Auth::Off => None,
        Auth::Keys => Some(gate.sign_in_link().map_err(|error| messages::no_first_key(&error))?),
    };
    let greeting = Greeting {
        url: &note.url,
        sign_in,
        key: match first {
            FirstKey::Made(key) => Some(key.reveal()),
            FirstKey::There => None,
        },
        key_file: Some(key_file.as_path()).filter(|path| path.exists()),
        open: server.auth == Auth::Off,
        agents,
        tools: world.app.tools().iter().count(),
        store: kept.store.place(),
        resumed: resumed.turns,
    };
    crate::output::text(&words.serving(&greeting)).map_err(|error| messages::output_failed(&error))?;
    let _kept_up = AbortOnDropHandle::new(tokio::spawn(upkeep.run()));
    let tending = gate.clone();
    let _tending = AbortOnDropHandle::new(tokio::spawn(async move { tending.tend().await }));
    let rules = world.app.clone();
    let _rules = AbortOnDropHandle::new(tokio::spawn(async move { reload::warn_of_rules(&rules).await }));
    let reloading = reload::watch(
        args.clone(),
        terminal,
        world.app.clone(),
        gate.clone(),
        redaction,
        server.clone(),
        stored,
    );
    let _reloading = AbortOnDropHandle::new(tokio::spawn(reloading));
    let (hub, time) = (state.hub.clone(), Duration::from_millis(server.drain_ms));
    let drain = async move {
        eprintln!("{}", words.draining(hub.turns_running(), time.as_secs()));
        hub.drain(time).await;
    };
    let served = bound.serve(gate.around(router(state)), wishes, drain).await;
    world.app.stop().await;
    watching.finish().await;
    kept.store.close().await;
    Ok(match served {
        Served::Drained => Exit::Done,
        Served::AtOnce => Exit::Cancelled,
    })
}

/// Keys in the data folder, over the same layers as at the start.
fn connections(args: &Serve, kept: &Kept, redaction: Arc<Redaction>) -> Connections {
    let file = ConnectedFile::at(kept.folder.join(CONNECTED_FILE));
    let (choice, listen, store) = (args.choice.clone(), args.listen.clone(), args.store.clone());
    Connections::new(
        file,
        redaction,
        Arc::new(move |connected| {
            setup::settings_over(&choice, listen.as_deref(), store.as_deref(), connected)
                .map_err(|failure| failure.what)
        }),
    )
}

/// `name → model`, the one that answers first.
fn agents(settings: &Settings) -> Vec<String> {
    let mut names: Vec<&String> = settings.agents.keys().collect();
    names.sort_by_key(|name| **name != settings.agent);
    let line = |name: &String| {
        let model = settings.agents.get(name).and_then(|agent| agent.models.first());
        let model = model.map(|choice| match choice.name == choice.model {
            true => choice.name.clone(),
            false => format!("{}/{}", choice.name, choice.model),
        });
        format!("{name} → {}", model.unwrap_or_default())
    };
    names.into_iter().map(line).collect()
}
