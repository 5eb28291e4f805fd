//! Reload of the configuration while the server runs: when the file changes, a stored key changes, or on
//! SIGHUP. An error is logged, and the previous configuration stays.

use crate::args::{ModelArgs, ServeArgs};
use crate::interrupt::ControllingTerminal;
use crate::messages;
use crate::setup;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use throughline::Throughline;
use throughline::config::{AppSettings, ServerSettings, StoreSettings};
use throughline_server::{Redaction, RequestGuard};
use tokio::sync::mpsc;

const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Times of the last change and lengths of the files of a configuration.
#[derive(PartialEq, Eq)]
pub(crate) struct ConfigVersion([Option<(SystemTime, u64)>; 2]);

impl ConfigVersion {
    /// Must be read before the files: a change in between is then detected.
    pub(crate) fn of(choice: &ModelArgs) -> Self {
        let config = setup::config_file(choice.config.as_deref());
        let keys = setup::connected_file();
        Self([config.as_deref().and_then(file_version), keys.and_then(|file| file_version(file.path()))])
    }
}

/// Reloads configurations in an endless loop. `seen` and `running` are those that the server began with.
pub(crate) async fn watch(
    mut seen: ConfigVersion,
    args: ServeArgs,
    terminal: ControllingTerminal,
    app: Throughline,
    request_guard: RequestGuard,
    redaction: Arc<Redaction>,
    mut running: (ServerSettings, StoreSettings),
) {
    let mut hangups = hangups();
    let mut every = tokio::time::interval(CHECK_INTERVAL);
    loop {
        let is_requested = tokio::select! {
            _ = every.tick() => false,
            // Platforms without this signal never request a reload.
            Some(()) = hangups.recv() => !terminal.is_closed(),
        };
        let now = ConfigVersion::of(&args.choice);
        if !is_requested && now == seen {
            continue;
        }
        seen = now;
        match setup::load_settings_with(&args.choice, args.listen.as_deref(), args.store.as_deref()) {
            Ok(settings) => {
                // Before any use that could log them. Secrets of the previous configuration stay redacted.
                redaction.add(settings.secret_values(&setup::surroundings(&args.choice)));
                apply_settings(settings, &app, &request_guard, &mut running).await
            }
            Err(failure) => {
                tracing::error!("the new configuration is invalid, the previous one stays in use\n{failure}")
            }
        }
    }
}

async fn apply_settings(
    settings: AppSettings,
    app: &Throughline,
    request_guard: &RequestGuard,
    running: &mut (ServerSettings, StoreSettings),
) {
    let (server, store) = (settings.server.clone(), settings.store.clone());
    let reloaded = match app.reload(settings).await {
        Ok(reloaded) => reloaded,
        Err(error) => {
            return tracing::error!(
                "the new configuration is invalid, the previous one stays in use: {error}"
            );
        }
    };
    request_guard.reload(&server);
    let mut after_restart: Vec<&str> = reloaded.restart_required.clone();
    after_restart.extend(needs_restart(&running.0, &server));
    if running.1 != store {
        after_restart.push("store");
    }
    *running = (server, store);
    tracing::info!(
        started = reloaded.started.join(", "),
        stopped = reloaded.stopped.join(", "),
        after_restart = after_restart.join(", "),
        "a new configuration is in use"
    );
    for (agent, rule) in app.unmatched_rules() {
        tracing::warn!("{}", messages::unmatched_rule(&agent, &rule));
    }
}

/// Warns of rules that match no tool, each once per process: sources change, and a rule may be for a tool
/// that is missing now.
pub(crate) async fn warn_of_rules(app: &Throughline) {
    let mut changed = app.toolbox().subscribe();
    let mut warned = BTreeSet::new();
    loop {
        for (agent, rule) in app.unmatched_rules() {
            if warned.insert((agent.clone(), rule.clone())) {
                tracing::warn!("{}", messages::unmatched_rule(&agent, &rule));
            }
        }
        if changed.changed().await.is_err() {
            return;
        }
    }
}

/// Changed settings that take effect only with a new listener.
fn needs_restart(before: &ServerSettings, after: &ServerSettings) -> Vec<&'static str> {
    let mut changed = Vec::new();
    let mut compare = |name: &'static str, same: bool| {
        if !same {
            changed.push(name);
        }
    };
    compare("server.listen", before.listen == after.listen);
    compare("server.auth", before.auth == after.auth);
    compare("server.tls", before.tls == after.tls);
    compare("server.trusted_proxy", before.trusted_proxy == after.trusted_proxy);
    compare("server.oidc", before.oidc == after.oidc);
    compare("server.render", before.render == after.render);
    compare("server.drain_ms", before.drain_ms == after.drain_ms);
    compare("server.limits", before.limits == after.limits);
    changed
}

fn file_version(file: &Path) -> Option<(SystemTime, u64)> {
    let meta = std::fs::metadata(file).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

/// Receives each SIGHUP.
fn hangups() -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::channel(1);
    #[cfg(unix)]
    if let Ok(mut signals) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()) {
        tokio::spawn(async move { while signals.recv().await.is_some() && sender.send(()).await.is_ok() {} });
        return receiver;
    }
    #[cfg(not(unix))]
    drop(sender);
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline::config::AuthMode;

    #[test]
    fn settings_that_need_a_restart_are_listed() {
        let before = ServerSettings::default();
        assert!(needs_restart(&before, &before).is_empty());
        let names = ServerSettings { hosts: vec!["a.example".into()], ..before.clone() };
        assert!(needs_restart(&before, &names).is_empty(), "names are taken at once");
        let after = ServerSettings { auth: AuthMode::Off, drain_ms: 1, ..before.clone() };
        assert_eq!(needs_restart(&before, &after), ["server.auth", "server.drain_ms"]);
    }
}
