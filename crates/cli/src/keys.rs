//! `throughline keys`: keys are made in the store, or by the server that has it open. R: R4

use crate::args::{Choice, Keys, KeysAt, KeysCommand};
use crate::exit::{Ended, Exit, Failure};
use crate::messages::{self, Lang, Words};
use crate::output;
use crate::serve::running::Running;
use crate::serve::store::{Kept, NoStore};
use crate::setup;
use crate::terminal::text::width;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_server::Gate;
use throughline_server::gate::{LOCAL_USER, NewKey};
use throughline_server::principal::Scope;
use throughline_wire::visible;

/// Makes, lists or revokes.
pub async fn run(args: &Keys) -> Ended {
    let words = Words(Lang::of_environment());
    match &args.command {
        KeysCommand::Create { at, name, scopes, days, json } => {
            let scopes = scopes.iter().map(|name| scope(name)).collect::<Result<Vec<_>, _>>()?;
            let now = Timestamp::now();
            let expires =
                days.map(|days| (now + SignedDuration::from_hours(24 * i64::from(days))).as_millisecond());
            let made = Where::of(at).await?.create(name, &scopes, expires).await?;
            match json {
                true => output::json_line(&made),
                false => output::text(&words.key_made(made["key"].as_str().unwrap_or_default())),
            }
        }
        KeysCommand::List { at, json } => {
            let keys = Where::of(at).await?.list().await?;
            match json {
                true => output::json_line(&keys),
                false => output::text(&table(&keys, words)),
            }
        }
        KeysCommand::Revoke { id, at } => {
            let place = Where::of(at).await?;
            let keys = place.list().await?;
            let key = the_one(&keys, id)?;
            place.revoke(&key.0).await?;
            output::text(&words.key_revoked(&key.0, &visible::escape(&key.1)))
        }
    }
    .map_err(|error| messages::output_failed(&error))?;
    Ok(Exit::Done)
}

fn scope(name: &str) -> Result<Scope, Failure> {
    Scope::named(name.trim()).ok_or_else(|| messages::no_such_scope(name))
}

/// Where keys are made. Both give the same JSON: that of `/v1/keys`.
enum Where {
    Store(Gate, Kept),
    Server(Running),
}

impl Where {
    /// The store; while a server has it open, that server.
    async fn of(at: &KeysAt) -> Result<Self, Failure> {
        let choice = Choice { config: at.config.clone(), ..Choice::default() };
        let settings = setup::settings_with(&choice, None, at.store.as_deref())?;
        match Kept::open(&settings.store).await {
            Ok(kept) => Ok(Where::Store(Gate::new(&settings.server, Arc::new(kept.catalog())), kept)),
            Err(NoStore::InUse(why)) => Running::of_data_folder()
                .map(Where::Server)
                .map_err(|no| messages::server_in_the_way(&no, &why)),
            Err(error) => Err(error.into()),
        }
    }

    async fn create(&self, name: &str, scopes: &[Scope], expires_at: Option<i64>) -> Result<Value, Failure> {
        match self {
            Where::Store(gate, kept) => {
                let new =
                    NewKey { name: name.to_owned(), scopes: scopes.iter().copied().collect(), expires_at };
                let (key, pass) =
                    gate.mint(LOCAL_USER, new).await.map_err(|error| messages::keys_refused(&error))?;
                kept.store.close().await;
                let mut made = json!({"key": key.reveal()});
                if let (Value::Object(made), Ok(Value::Object(pass))) =
                    (&mut made, serde_json::to_value(pass))
                {
                    made.extend(pass);
                }
                Ok(made)
            }
            Where::Server(server) => {
                let scopes: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
                let body = json!({"name": name, "scopes": scopes, "expires_at": expires_at});
                answer(server.post("/v1/keys").json(&body)).await
            }
        }
    }

    async fn list(&self) -> Result<Value, Failure> {
        match self {
            Where::Store(gate, _) => {
                let keys =
                    gate.keys(LOCAL_USER).await.map_err(|error| messages::keys_refused(&error.message))?;
                Ok(json!({"data": keys}))
            }
            Where::Server(server) => answer(server.get("/v1/keys")).await,
        }
    }

    async fn revoke(&self, id: &str) -> Result<(), Failure> {
        match self {
            Where::Store(gate, kept) => {
                gate.revoke(LOCAL_USER, id).await.map_err(|error| messages::keys_refused(&error.message))?;
                kept.store.close().await;
                Ok(())
            }
            Where::Server(server) => answer(server.delete(&format!("/v1/keys/{id}"))).await.map(|_| ()),
        }
    }
}

/// What the server says, or why it does not.
async fn answer(request: reqwest::RequestBuilder) -> Result<Value, Failure> {
    Running::answer(request).await.map_err(|why| messages::keys_refused(&why))
}

/// Id and name of the good key that begins so.
fn the_one(keys: &Value, beginning: &str) -> Result<(String, String), Failure> {
    let all = keys["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    let fits = |key: &&Value| {
        key["revoked_at"].is_null() && key["id"].as_str().is_some_and(|id| id.starts_with(beginning))
    };
    let mut found = all.iter().filter(fits);
    match (found.next(), found.count()) {
        (Some(key), 0) if !beginning.is_empty() => {
            let text = |name: &str| key[name].as_str().unwrap_or_default().to_owned();
            Ok((text("id"), text("name")))
        }
        (None, _) => Err(messages::which_key(beginning, 0)),
        (Some(_), more) => Err(messages::which_key(beginning, more + 1)),
    }
}

fn table(keys: &Value, words: Words) -> String {
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
