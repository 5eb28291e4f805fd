//! `throughline keys`: keys are made in the store, or by the server that has it open. R: R4

use crate::args::{KeysArgs, KeysCommand, ModelArgs, StoreArgs};
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages::{self, UiLanguage, UiText};
use crate::output;
use crate::serve::running_server::RunningServer;
use crate::serve::store::{OpenStoreError, ServerStorage};
use crate::setup;
use crate::terminal::text::width;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_server::Gate;
use throughline_server::gate::{LOCAL_USER, NewApiKey};
use throughline_server::principal::KeyScope;
use throughline_wire::visible;

/// Makes, lists or revokes.
pub(crate) async fn run(args: &KeysArgs) -> CommandResult {
    let words = UiText(UiLanguage::of_environment());
    match &args.command {
        KeysCommand::Create { at, name, scopes, days, json } => {
            let scopes = scopes.iter().map(|name| parse_scope(name)).collect::<Result<Vec<_>, _>>()?;
            let now = Timestamp::now();
            let expires =
                days.map(|days| (now + SignedDuration::from_hours(24 * i64::from(days))).as_millisecond());
            let created = KeyBackend::open(at).await?.create(name, &scopes, expires).await?;
            if *json {
                output::json_line(&created)
            } else {
                output::text(&words.key_made(created["key"].as_str().unwrap_or_default()))
            }
        }
        KeysCommand::List { at, json } => {
            let keys = KeyBackend::open(at).await?.list().await?;
            if *json { output::json_line(&keys) } else { output::text(&key_table(&keys, words)) }
        }
        KeysCommand::Revoke { id, at } => {
            let backend = KeyBackend::open(at).await?;
            let keys = backend.list().await?;
            let key = find_by_prefix(&keys, id)?;
            backend.revoke(&key.0).await?;
            output::text(&words.key_revoked(&key.0, &visible::escape(&key.1)))
        }
    }
    .map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

fn parse_scope(name: &str) -> Result<KeyScope, CliFailure> {
    KeyScope::from_name(name.trim()).ok_or_else(|| messages::no_such_scope(name))
}

/// Where keys are made. Both give the same JSON: that of `/v1/keys`.
enum KeyBackend {
    Store(Gate, ServerStorage),
    Server(RunningServer),
}

impl KeyBackend {
    /// The store; while a server has it open, that server.
    async fn open(at: &StoreArgs) -> Result<Self, CliFailure> {
        let choice = ModelArgs { config: at.config.clone(), ..ModelArgs::default() };
        let settings = setup::load_settings_with(&choice, None, at.store.as_deref())?;
        match ServerStorage::open(&settings.store).await {
            Ok(storage) => {
                Ok(KeyBackend::Store(Gate::new(&settings.server, Arc::new(storage.catalog())), storage))
            }
            Err(OpenStoreError::InUse(why)) => RunningServer::of_data_folder()
                .map(KeyBackend::Server)
                .map_err(|no| messages::server_in_the_way(&no, &why)),
            Err(error) => Err(error.into()),
        }
    }

    async fn create(
        &self,
        name: &str,
        scopes: &[KeyScope],
        expires_at: Option<i64>,
    ) -> Result<Value, CliFailure> {
        match self {
            KeyBackend::Store(gate, storage) => {
                let new =
                    NewApiKey { name: name.to_owned(), scopes: scopes.iter().copied().collect(), expires_at };
                let (key, key_info) =
                    gate.mint(LOCAL_USER, new).await.map_err(|error| messages::keys_refused(&error))?;
                storage.store.close().await;
                let mut created = json!({"key": key.reveal()});
                if let (Value::Object(created), Ok(Value::Object(key_info))) =
                    (&mut created, serde_json::to_value(key_info))
                {
                    created.extend(key_info);
                }
                Ok(created)
            }
            KeyBackend::Server(server) => {
                let scopes: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
                let body = json!({"name": name, "scopes": scopes, "expires_at": expires_at});
                send(server.post("/v1/keys").json(&body)).await
            }
        }
    }

    async fn list(&self) -> Result<Value, CliFailure> {
        match self {
            KeyBackend::Store(gate, _) => {
                let keys =
                    gate.keys(LOCAL_USER).await.map_err(|error| messages::keys_refused(&error.message))?;
                Ok(json!({"data": keys}))
            }
            KeyBackend::Server(server) => send(server.get("/v1/keys")).await,
        }
    }

    async fn revoke(&self, id: &str) -> Result<(), CliFailure> {
        match self {
            KeyBackend::Store(gate, storage) => {
                gate.revoke(LOCAL_USER, id).await.map_err(|error| messages::keys_refused(&error.message))?;
                storage.store.close().await;
                Ok(())
            }
            KeyBackend::Server(server) => send(server.delete(&format!("/v1/keys/{id}"))).await.map(|_| ()),
        }
    }
}

/// Sends a request to the server and returns its answer.
async fn send(request: reqwest::RequestBuilder) -> Result<Value, CliFailure> {
    RunningServer::send(request).await.map_err(|why| messages::keys_refused(&why))
}

/// Id and name of the good key that begins so.
fn find_by_prefix(keys: &Value, beginning: &str) -> Result<(String, String), CliFailure> {
    let all = keys["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_match = |key: &&Value| {
        key["revoked_at"].is_null() && key["id"].as_str().is_some_and(|id| id.starts_with(beginning))
    };
    let mut matches = all.iter().filter(is_match);
    match (matches.next(), matches.count()) {
        (Some(key), 0) if !beginning.is_empty() => {
            let text = |name: &str| key[name].as_str().unwrap_or_default().to_owned();
            Ok((text("id"), text("name")))
        }
        (None, _) => Err(messages::which_key(beginning, 0)),
        (Some(_), more) => Err(messages::which_key(beginning, more + 1)),
    }
}

fn key_table(keys: &Value, words: UiText) -> String {
    let keys = keys["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    if keys.is_empty() {
        return words.no_keys();
    }
    let now = Timestamp::now();
    let time = |value: &Value| {
        value
            .as_i64()
            .and_then(|ms| Timestamp::from_millisecond(ms).ok())
            .map(|at| at.strftime("%Y-%m-%d %H:%M").to_string())
    };
    let mut rows = vec![words.key_columns()];
    for key in keys {
        let scopes: Vec<&str> =
            key["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let expired = key["expires_at"].as_i64().is_some_and(|at| at <= now.as_millisecond());
        rows.push([
            key["id"].as_str().unwrap_or_default().to_owned(),
            visible::escape(key["name"].as_str().unwrap_or_default()).to_string(),
            scopes.join(","),
            time(&key["created_at"]).unwrap_or_default(),
            time(&key["last_used_at"]).unwrap_or_else(|| "-".to_owned()),
            words.key_state(!key["revoked_at"].is_null(), time(&key["expires_at"]).as_deref(), expired),
        ]);
    }
    let widest = |column: usize| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    let columns: Vec<usize> = (0..6).map(widest).collect();
    let mut text = String::new();
    for row in &rows {
        let cells =
            row.iter().zip(&columns).map(|(cell, wide)| format!("{cell}{}", " ".repeat(wide - width(cell))));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}
