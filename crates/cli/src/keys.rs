//! `throughline keys`: keys are made in the store, or by the server that has it open.

use crate::administration::{
    self, Administration, StoreAccess, all_pages, changed_limits, limits_json, limits_of, minute, object,
    send, table, usage_cell, with_usage,
};
use crate::args::{CreateKeyArgs, KeysArgs, KeysCommand, SetKeyArgs};
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages::{self, UiLanguage, UiText};
use crate::output;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use throughline_server::{KeyInfo, KeyScope, LOCAL_USER, NewApiKey, find_person, normalize_person_name};
use throughline_store::{KeyLimits, PAGE_ROWS_MAX, PageRequest, UsageOwner};
use throughline_wire::display_escape;

/// Makes, lists, changes or revokes.
pub(crate) async fn run(args: &KeysArgs) -> CommandResult {
    let words = UiText(UiLanguage::current());
    match &args.command {
        KeysCommand::Create(create_args) => {
            let keys = KeyAdministration(Administration::open(&create_args.at).await?);
            let created = keys.create(create_args).await;
            keys.0.close().await;
            let created = created?;
            if create_args.json {
                output::json_line(&created)
            } else {
                output::text(&words.key_made(created["key"].as_str().unwrap_or_default()))
            }
        }
        KeysCommand::List { at, user, json } => {
            let keys = match Administration::open_existing(at).await? {
                Some(administration) => {
                    let keys = KeyAdministration(administration);
                    let listed = keys.list(user.as_deref()).await;
                    keys.0.close().await;
                    listed?
                }
                None => Vec::new(),
            };
            if *json {
                output::json_line(&json!({ "data": keys }))
            } else {
                output::text(&key_table(&keys, words))
            }
        }
        KeysCommand::Set(set_args) => {
            let keys = KeyAdministration(Administration::open(&set_args.at).await?);
            let changed = keys.set(set_args).await;
            keys.0.close().await;
            let (id, name) = changed?;
            output::text(&words.key_changed(&id, &display_escape::escape(&name)))
        }
        KeysCommand::Revoke { id, at } => {
            let Some(administration) = Administration::open_existing(at).await? else {
                return Err(messages::which_key(id, 0));
            };
            let keys = KeyAdministration(administration);
            let revoked = keys.revoke(id).await;
            keys.0.close().await;
            let (id, name) = revoked?;
            output::text(&words.key_revoked(&id, &display_escape::escape(&name)))
        }
    }
    .map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

fn parse_scope(name: &str) -> Result<KeyScope, CliFailure> {
    KeyScope::from_name(name.trim()).ok_or_else(|| messages::no_such_scope(name))
}

/// Models of `--models`; `None` = all.
fn models_of(given: &[String]) -> Option<Vec<String>> {
    let models: Vec<String> = given.iter().map(|model| model.trim().to_owned()).collect();
    (!models.is_empty() && models != ["all"]).then_some(models)
}

/// Keys in the store or by the server. Both give the same JSON: that of `/v1/keys`.
struct KeyAdministration(Administration);

impl KeyAdministration {
    async fn create(&self, args: &CreateKeyArgs) -> Result<Value, CliFailure> {
        let scopes = args.scopes.iter().map(|name| parse_scope(name)).collect::<Result<Vec<_>, _>>()?;
        let expiry =
            |days| (Timestamp::now() + SignedDuration::from_hours(24 * i64::from(days))).as_millisecond();
        let expires_at = args.days.map(expiry);
        let usage = changed_limits(Default::default(), &args.limits)?;
        let models = models_of(&args.models);
        match &self.0 {
            Administration::Store(access) => {
                let user = match &args.user {
                    None => LOCAL_USER.to_owned(),
                    Some(user) => stored_name(access, user).await?,
                };
                let limits = KeyLimits { usage, models };
                let scopes = scopes.iter().copied().collect();
                let new = NewApiKey { name: args.name.clone(), scopes, expires_at, limits };
                let minted = access.request_guard.mint(&user, new).await;
                let (key, info) = minted.map_err(|error| messages::keys_refused(&error))?;
                let mut created = serde_json::to_value(info).unwrap_or_default();
                created["key"] = key.reveal().into();
                Ok(created)
            }
            Administration::Server(server) => {
                let scopes: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
                let body = object([
                    ("name", json!(args.name)),
                    ("scopes", json!(scopes)),
                    ("expires_at", json!(expires_at)),
                    ("user", json!(args.user)),
                    ("limits", limits_json(usage)),
                    ("models", json!(models)),
                ]);
                send(server.post("/v1/keys").json(&body)).await
            }
        }
    }

    async fn list(&self, user: Option<&str>) -> Result<Vec<Value>, CliFailure> {
        match &self.0 {
            Administration::Store(access) => {
                let user = match user {
                    None => None,
                    Some(user) => Some(stored_name(access, user).await?),
                };
                stored_keys(access, user.as_deref()).await
            }
            Administration::Server(server) => match user {
                None => all_pages(server, "/v1/keys", "data").await,
                Some(user) => {
                    let user = normalize_person_name(user).map_err(|error| messages::keys_refused(&error))?;
                    all_pages(server, &format!("/v1/keys?user={}", administration::path_part(&user)), "data")
                        .await
                }
            },
        }
    }

    async fn set(&self, args: &SetKeyArgs) -> Result<(String, String), CliFailure> {
        let keys = self.list(None).await?;
        let key = find_by_prefix(&keys, &args.id)?;
        let usage = changed_limits(limits_of(key), &args.limits)?;
        let models = if args.models.is_empty() {
            serde_json::from_value(key["models"].clone()).unwrap_or_default()
        } else {
            models_of(&args.models)
        };
        let (id, name) = id_and_name(key);
        match &self.0 {
            Administration::Store(access) => {
                let user = key["user"].as_str().unwrap_or_default();
                let limits = KeyLimits { usage, models };
                let set = access.request_guard.set_key_limits(user, &id, limits).await;
                set.map_err(|error| messages::keys_refused(&error))?;
            }
            Administration::Server(server) => {
                let body = json!({"limits": limits_json(usage), "models": models});
                send(server.patch(&format!("/v1/keys/{id}")).json(&body)).await?;
            }
        }
        Ok((id, name))
    }

    async fn revoke(&self, beginning: &str) -> Result<(String, String), CliFailure> {
        let keys = self.list(None).await?;
        let key = find_by_prefix(&keys, beginning)?;
        let (id, name) = id_and_name(key);
        match &self.0 {
            Administration::Store(access) => {
                let user = key["user"].as_str().unwrap_or_default();
                let revoked = access.request_guard.revoke(user, &id).await;
                revoked.map_err(|error| messages::keys_refused(&error.message))?;
            }
            Administration::Server(server) => {
                send(server.delete(&format!("/v1/keys/{id}"))).await?;
            }
        }
        Ok((id, name))
    }
}

/// The stored name of a person.
async fn stored_name(access: &StoreAccess, name: &str) -> Result<String, CliFailure> {
    let found = find_person(&*access.catalog, name).await;
    found.map(|person| person.name).map_err(|error| messages::no_such_person(&error))
}

async fn stored_keys(access: &StoreAccess, user: Option<&str>) -> Result<Vec<Value>, CliFailure> {
    let (mut all, mut request) = (Vec::new(), PageRequest::first().limit(PAGE_ROWS_MAX));
    loop {
        let page = match user {
            Some(user) => access.catalog.keys_page(user, &request).await,
            None => access.catalog.all_keys(&request).await,
        };
        let page = page.map_err(|error| messages::keys_refused(&error))?;
        let owners: Vec<UsageOwner<'_>> = page.items.iter().map(|key| UsageOwner::Key(&key.id)).collect();
        let usage = access.usage(&owners).await?;
        for (key, usage) in page.items.into_iter().zip(usage) {
            all.push(with_usage(serde_json::to_value(KeyInfo::from(key)).unwrap_or_default(), usage));
        }
        match page.next {
            Some(next) => request = PageRequest::after(next).limit(PAGE_ROWS_MAX),
            None => return Ok(all),
        }
    }
}

fn id_and_name(key: &Value) -> (String, String) {
    let text = |name: &str| key[name].as_str().unwrap_or_default().to_owned();
    (text("id"), text("name"))
}

/// The good key that begins so.
fn find_by_prefix<'a>(keys: &'a [Value], beginning: &str) -> Result<&'a Value, CliFailure> {
    let is_match = |key: &&Value| {
        key["revoked_at"].is_null() && key["id"].as_str().is_some_and(|id| id.starts_with(beginning))
    };
    let mut matches = keys.iter().filter(is_match);
    match (matches.next(), matches.count()) {
        (Some(key), 0) if !beginning.is_empty() => Ok(key),
        (None, _) => Err(messages::which_key(beginning, 0)),
        (Some(_), more) => Err(messages::which_key(beginning, more + 1)),
    }
}

fn key_table(keys: &[Value], words: UiText) -> String {
    if keys.is_empty() {
        return words.no_keys();
    }
    let now = Timestamp::now().as_millisecond();
    let list = |names: &Value, separator: &str| {
        let names: Vec<&str> = names.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        display_escape::escape(&names.join(separator)).to_string()
    };
    let mut rows = vec![words.key_columns()];
    for key in keys {
        let expired = key["expires_at"].as_i64().is_some_and(|at| at <= now);
        rows.push([
            key["id"].as_str().unwrap_or_default().to_owned(),
            display_escape::escape(key["user"].as_str().unwrap_or_default()).to_string(),
            display_escape::escape(key["name"].as_str().unwrap_or_default()).to_string(),
            list(&key["scopes"], ","),
            minute(&key["created_at"]).unwrap_or_default(),
            minute(&key["last_used_at"]).unwrap_or_else(|| "-".to_owned()),
            usage_cell(key, "turns"),
            if key["models"].is_null() { words.all_models() } else { list(&key["models"], " ") },
            words.key_state(!key["revoked_at"].is_null(), minute(&key["expires_at"]).as_deref(), expired),
        ]);
    }
    table(&rows)
}
