//! `throughline users`: people are added and removed in the store, or by the server that has it open.

use crate::administration::{
    Administration, StoreAccess, all_pages, changed_limits, limits_json, limits_of, minute, object,
    path_part, send, table, usage_cell, with_usage,
};
use crate::args::{AddUserArgs, RemoveUserArgs, SetUserArgs, UsersArgs, UsersCommand};
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages::{self, UiLanguage, UiText};
use crate::output;
use jiff::Timestamp;
use serde_json::{Value, json};
use throughline_server::{
    PeopleError, add_person, change_person, delete_person_data, find_person, list_people, remove_person,
};
use throughline_store::{PAGE_ROWS_MAX, PageRequest, PersonRow, UsageOwner, UsageReport};
use throughline_wire::display_escape;

/// Adds, lists, changes or removes.
pub(crate) async fn run(args: &UsersArgs) -> CommandResult {
    let words = UiText(UiLanguage::current());
    let at = match &args.command {
        UsersCommand::Add(AddUserArgs { at, .. })
        | UsersCommand::List { at, .. }
        | UsersCommand::Set(SetUserArgs { at, .. })
        | UsersCommand::Remove(RemoveUserArgs { at, .. }) => at,
    };
    let users = UserAdministration(Administration::open(at).await?);
    let printed = match &args.command {
        UsersCommand::Add(add) => users.add(add).await.map(|user| {
            Printed::new(add.json, user, |user| words.user_added(user["name"].as_str().unwrap_or_default()))
        }),
        UsersCommand::List { json, .. } => users.list().await.map(|users| {
            Printed::new(*json, json!({ "items": users }), |list| {
                user_table(list["items"].as_array().map_or(&[], Vec::as_slice), words)
            })
        }),
        UsersCommand::Set(set) => users
            .set(set)
            .await
            .map(|user| Printed::new(set.json, user, |user| user_table(std::slice::from_ref(user), words))),
        UsersCommand::Remove(remove) => users
            .remove(remove)
            .await
            .map(|removed| Printed::new(remove.json, removed, |removed| words.user_removed(removed))),
    };
    users.0.close().await;
    match printed? {
        Printed::Json(value) => output::json_line(&value),
        Printed::Text(text) => output::text(&text),
    }
    .map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

enum Printed {
    Json(Value),
    Text(String),
}

impl Printed {
    fn new(is_json: bool, value: Value, text: impl FnOnce(&Value) -> String) -> Self {
        if is_json { Self::Json(value) } else { Self::Text(text(&value)) }
    }
}

/// Users in the store or by the server. Both give the same JSON: that of `/v1/users`.
struct UserAdministration(Administration);

impl UserAdministration {
    async fn add(&self, args: &AddUserArgs) -> Result<Value, CliFailure> {
        let limits = changed_limits(Default::default(), &args.limits)?;
        match &self.0 {
            Administration::Store(access) => {
                let added = add_person(&*access.catalog, &args.name, args.admin, limits, now()).await;
                user_with_usage(access, added.map_err(|error| refused(&error))?).await
            }
            Administration::Server(server) => {
                let body = json!({"name": args.name, "is_admin": args.admin, "limits": limits_json(limits)});
                send(server.post("/v1/users").json(&body)).await
            }
        }
    }

    async fn list(&self) -> Result<Vec<Value>, CliFailure> {
        let access = match &self.0 {
            Administration::Server(server) => return all_pages(server, "/v1/users", "items").await,
            Administration::Store(access) => access,
        };
        let (mut all, mut request) = (Vec::new(), PageRequest::first().limit(PAGE_ROWS_MAX));
        loop {
            let page = list_people(&*access.catalog, &request).await;
            let page = page.map_err(|error| messages::administration_refused(&error))?;
            let owners: Vec<UsageOwner<'_>> =
                page.items.iter().map(|person| UsageOwner::Person(&person.name)).collect();
            let usage = access.usage(&owners).await?;
            all.extend(page.items.iter().zip(usage).map(|(person, usage)| user_json(person, usage)));
            match page.next {
                Some(next) => request = PageRequest::after(next).limit(PAGE_ROWS_MAX),
                None => return Ok(all),
            }
        }
    }

    async fn set(&self, args: &SetUserArgs) -> Result<Value, CliFailure> {
        let is_admin = match (args.admin, args.no_admin) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        match &self.0 {
            Administration::Store(access) => {
                let person =
                    find_person(&*access.catalog, &args.name).await.map_err(|error| refused(&error))?;
                let limits = changed_limits(person.limits, &args.limits)?;
                let changed =
                    change_person(&*access.catalog, &args.name, is_admin, Some(limits), now()).await;
                user_with_usage(access, changed.map_err(|error| refused(&error))?).await
            }
            Administration::Server(server) => {
                let path = format!("/v1/users/{}", path_part(&args.name));
                let before = send(server.get(&path)).await?;
                let limits = limits_json(changed_limits(limits_of(&before), &args.limits)?);
                let body = object([("is_admin", json!(is_admin)), ("limits", limits)]);
                send(server.patch(&path).json(&body)).await
            }
        }
    }

    async fn remove(&self, args: &RemoveUserArgs) -> Result<Value, CliFailure> {
        match &self.0 {
            Administration::Store(access) => {
                let person =
                    find_person(&*access.catalog, &args.name).await.map_err(|error| refused(&error))?;
                let revoked = remove_person(&*access.catalog, &person.name, now()).await;
                let revoked = revoked.map_err(|error| refused(&error))?.len();
                let mut removed = json!({"name": person.name, "keys_revoked": revoked, "turns_cancelled": 0});
                if args.delete_data {
                    let blobs = access.storage.blobs_unlocked();
                    let deleted = delete_person_data(&*access.catalog, &blobs, &person.name).await;
                    let deleted = deleted.map_err(|error| refused(&error))?;
                    if !deleted.complete {
                        return Err(messages::turn_unfinished(&person.name));
                    }
                    removed["deleted"] = serde_json::to_value(deleted).unwrap_or_default();
                }
                Ok(removed)
            }
            Administration::Server(server) => {
                let data = if args.delete_data { "delete" } else { "keep" };
                send(server.delete(&format!("/v1/users/{}?data={data}", path_part(&args.name)))).await
            }
        }
    }
}

fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

fn refused(error: &PeopleError) -> CliFailure {
    match error {
        PeopleError::NotFound(_) => messages::no_such_person(error),
        error => messages::administration_refused(error),
    }
}

fn user_json(person: &PersonRow, usage: UsageReport) -> Value {
    let PersonRow { name, is_admin, limits, created_at, removed_at } = person;
    let user = json!({"name": name, "is_admin": is_admin, "limits": limits_json(*limits),
        "created_at": created_at, "removed_at": removed_at});
    with_usage(user, usage)
}

async fn user_with_usage(access: &StoreAccess, person: PersonRow) -> Result<Value, CliFailure> {
    let usage = access.usage(&[UsageOwner::Person(&person.name)]).await?;
    Ok(user_json(&person, usage.first().copied().unwrap_or_default()))
}

fn user_table(users: &[Value], words: UiText) -> String {
    let mut rows = vec![words.user_columns()];
    for user in users {
        rows.push([
            display_escape::escape(user["name"].as_str().unwrap_or_default()).to_string(),
            words.user_role(user["is_admin"] == true),
            user["created_at"]
                .as_i64()
                .filter(|at| *at > 0)
                .and_then(|_| minute(&user["created_at"]))
                .unwrap_or("-".into()),
            usage_cell(user, "turns"),
            usage_cell(user, "tokens"),
            words.user_state(minute(&user["removed_at"]).as_deref()),
        ]);
    }
    table(&rows)
}
