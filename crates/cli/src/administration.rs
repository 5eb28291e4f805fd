//! Changes of keys and users: in the store, or by the server that has it open.

use crate::args::{ModelArgs, StoreArgs, UsageLimitArgs};
use crate::exit::CliFailure;
use crate::messages;
use crate::serve::running_server::RunningServer;
use crate::serve::store::{self, OpenStoreError, ServerStorage};
use crate::setup;
use crate::terminal::text::width;
use jiff::Timestamp;
use reqwest::RequestBuilder;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use throughline::config::AppSettings;
use throughline_server::{RequestGuard, USAGE_LIMIT_MAX, UsageInfo};
use throughline_store::{Catalog, UsageLimits, UsageOwner, UsageReport};

/// The store, or the server that has it open.
pub(crate) enum Administration {
    Store(Box<StoreAccess>),
    Server(RunningServer),
}

/// The store of a server that does not run.
pub(crate) struct StoreAccess {
    pub(crate) request_guard: RequestGuard,
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) storage: ServerStorage,
}

impl Administration {
    /// Opens an existing store without creating one. `None` = it does not exist.
    pub(crate) async fn open_existing(at: &StoreArgs) -> Result<Option<Self>, CliFailure> {
        if store::is_absent(&settings_of(at)?.store) {
            return Ok(None);
        }
        Self::open(at).await.map(Some)
    }

    /// The store; while a server has it open, that server.
    pub(crate) async fn open(at: &StoreArgs) -> Result<Self, CliFailure> {
        let settings = settings_of(at)?;
        match ServerStorage::open(&settings.store).await {
            Ok(storage) => {
                let catalog = storage.catalog();
                let request_guard = RequestGuard::new(&settings.server, Arc::new(catalog.clone()));
                Ok(Self::Store(Box::new(StoreAccess { request_guard, catalog, storage })))
            }
            Err(OpenStoreError::InUse(why)) => RunningServer::of_data_folder()
                .map(Self::Server)
                .map_err(|no| messages::server_in_the_way(&no, &why)),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets the store go, so that what was written is in its file.
    pub(crate) async fn close(self) {
        if let Self::Store(access) = self {
            access.storage.store.close().await;
        }
    }
}

/// Settings with the store of these arguments.
pub(crate) fn settings_of(at: &StoreArgs) -> Result<AppSettings, CliFailure> {
    let choice = ModelArgs { config: at.config.clone(), ..ModelArgs::default() };
    setup::load_settings_with(&choice, None, at.store.as_deref())
}

impl StoreAccess {
    /// Use of people or keys.
    pub(crate) async fn usage(&self, owners: &[UsageOwner<'_>]) -> Result<Vec<UsageReport>, CliFailure> {
        let now = Timestamp::now().as_millisecond();
        self.catalog.usage(owners, now).await.map_err(|error| messages::administration_refused(&error))
    }
}

/// Sends a request to the server and returns its answer.
pub(crate) async fn send(request: RequestBuilder) -> Result<Value, CliFailure> {
    RunningServer::send(request).await.map_err(|why| messages::administration_refused(&why))
}

/// All rows of a paged list, from the field `items` of its pages.
pub(crate) async fn all_pages(
    server: &RunningServer,
    path: &str,
    items: &str,
) -> Result<Vec<Value>, CliFailure> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let joint = if path.contains('?') { '&' } else { '?' };
        let mut page =
            send(server.get(&format!("{path}{joint}limit=200&cursor={}", path_part(&cursor)))).await?;
        if let Value::Array(rows) = page[items].take() {
            all.extend(rows);
        }
        match page["next"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => return Ok(all),
        }
    }
}

/// The row of a list with its use, as the API shows it.
pub(crate) fn with_usage(row: Value, usage: UsageReport) -> Value {
    let mut row = row;
    row["usage"] = serde_json::to_value(UsageInfo::from(usage)).unwrap_or_default();
    row
}

/// The limits with the changes of a command.
///
/// # Errors
/// An invalid number.
pub(crate) fn changed_limits(before: UsageLimits, args: &UsageLimitArgs) -> Result<UsageLimits, CliFailure> {
    let parse = |given: &Option<String>, before: Option<u64>| match given.as_deref() {
        None => Ok(before),
        Some("none") => Ok(None),
        Some(text) => match text.replace('_', "").parse::<u64>() {
            Ok(max) if max <= USAGE_LIMIT_MAX => Ok(Some(max)),
            _ => Err(messages::no_such_limit(text)),
        },
    };
    Ok(UsageLimits {
        turns_per_day_max: parse(&args.turns_per_day, before.turns_per_day_max)?,
        turns_per_month_max: parse(&args.turns_per_month, before.turns_per_month_max)?,
        tokens_per_day_max: parse(&args.tokens_per_day, before.tokens_per_day_max)?,
        tokens_per_month_max: parse(&args.tokens_per_month, before.tokens_per_month_max)?,
    })
}

/// Limits as the API takes them.
pub(crate) fn limits_json(limits: UsageLimits) -> Value {
    serde_json::to_value(limits).unwrap_or_else(|_| json!({}))
}

/// Limits as the API shows them.
pub(crate) fn limits_of(row: &Value) -> UsageLimits {
    serde_json::from_value(row["limits"].clone()).unwrap_or_default()
}

/// Use and limits in a cell of a table: `3/10 d, 8000/1000000 m`.
pub(crate) fn usage_cell(row: &Value, unit: &str) -> String {
    let cell = |period: &str, suffix: &str, used: &str| {
        let used = row["usage"][used].as_u64().unwrap_or_default();
        match row["limits"][format!("{unit}_per_{period}_max")].as_u64() {
            Some(max) => format!("{used}/{max} {suffix}"),
            None => format!("{used} {suffix}"),
        }
    };
    let day = cell("day", "d", &format!("{unit}_today"));
    let month = cell("month", "m", &format!("{unit}_this_month"));
    format!("{day}, {month}")
}

/// A time to the minute, in UTC.
pub(crate) fn minute(value: &Value) -> Option<String> {
    let at = Timestamp::from_millisecond(value.as_i64()?).ok()?;
    Some(at.strftime("%Y-%m-%d %H:%M").to_string())
}

/// Rows under each other; the first one has the heads.
pub(crate) fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let widest = |column: usize| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    let columns: Vec<usize> = (0..COLUMNS).map(widest).collect();
    let mut text = String::new();
    for row in rows {
        let cells =
            row.iter().zip(&columns).map(|(cell, wide)| format!("{cell}{}", " ".repeat(wide - width(cell))));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A name as one part of a path or a query.
pub(crate) fn path_part(name: &str) -> String {
    let mut part = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => part.push(char::from(byte)),
            byte => part.push_str(&format!("%{byte:02X}")),
        }
    }
    part
}

/// A JSON object with these members, those that are null left out.
pub(crate) fn object(members: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let present = members.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(present.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}
