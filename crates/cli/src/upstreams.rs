//! `throughline upstreams`: where models are.

use crate::args::UpstreamsArgs;
use crate::exit::{CliExit, CommandResult};
use crate::messages;
use crate::setup;
use crate::terminal::text::padded;
use serde::Serialize;
use throughline::{KeyOrigin, providers};

/// Width of a key's state, in columns.
const KEY_WIDTH: usize = 33;

/// One endpoint.
#[derive(Serialize)]
struct UpstreamRow {
    name: String,
    title: String,
    api: &'static str,
    base_url: String,
    key_variable: Option<String>,
    /// Absent if it needs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_set: Option<bool>,
    /// `environment`, `stored` or `program`, of a key that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_from: Option<&'static str>,
    /// True if the configuration file has it.
    configured: bool,
    note: String,
}

/// Lists those of the configuration, then those known by name.
pub(crate) fn run(args: &UpstreamsArgs) -> CommandResult {
    let settings = setup::load_settings(&args.choice)?;
    let configured = settings.upstreams.values().map(|upstream| {
        let summary = upstream.summary();
        let (api, base_url) = summary.split_once(' ').unwrap_or(("", &summary));
        UpstreamRow {
            name: upstream.name().to_owned(),
            title: String::new(),
            api: throughline_wire::Dialect::ALL
                .iter()
                .map(|dialect| dialect.name())
                .find(|name| *name == api)
                .unwrap_or(""),
            base_url: base_url.to_owned(),
            key_variable: upstream.key_variable().map(str::to_owned),
            key_set: match upstream.key_variable() {
                Some(_) => Some(upstream.missing_key().is_none()),
                None => upstream.has_key().then_some(true),
            },
            key_from: upstream.key_origin().map(KeyOrigin::name),
            configured: true,
            note: String::new(),
        }
    });
    let by_name = providers::all().into_iter().map(|row| UpstreamRow {
        name: row.name.to_owned(),
        title: row.title.to_owned(),
        api: row.dialect.name(),
        base_url: row.base_url.to_owned(),
        key_variable: row.key_env.map(str::to_owned),
        key_set: row.key_env.map(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())),
        key_from: row
            .key_env
            .filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
            .map(|_| KeyOrigin::Environment.name()),
        configured: false,
        note: row.note.to_owned(),
    });
    let mut rows: Vec<UpstreamRow> = configured.collect();
    let shadowed: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    rows.extend(by_name.filter(|row| !shadowed.contains(&row.name)));
    if args.json {
        crate::output::json_line(&rows).map_err(|error| messages::output_failed(&error))?;
    } else {
        crate::output::text(&upstream_table(&rows)).map_err(|error| messages::output_failed(&error))?;
    }
    Ok(CliExit::Done)
}

fn upstream_table(rows: &[UpstreamRow]) -> String {
    let mut out = String::new();
    for (configured, title) in
        [(true, messages::upstreams_configured()), (false, messages::upstreams_known())]
    {
        let in_group: Vec<&UpstreamRow> = rows.iter().filter(|row| row.configured == configured).collect();
        if in_group.is_empty() {
            continue;
        }
        out.push_str(&title);
        out.push('\n');
        for row in in_group {
            let key = match (&row.key_variable, row.key_set) {
                (_, Some(true)) if row.key_from == Some(KeyOrigin::Stored.name()) => {
                    messages::key_is_stored()
                }
                (Some(variable), Some(true)) => format!("✔ {variable}"),
                (Some(variable), _) => format!("  {}", messages::variable_not_set(variable)),
                (None, _) => format!("  {}", messages::no_key_needed()),
            };
            let key = padded(&key, KEY_WIDTH);
            out.push_str(&format!("  {:<17} {key} {:<17} {}\n", row.name, row.api, row.base_url));
            if !row.note.is_empty() {
                out.push_str(&format!("  {:<17}   {}\n", "", row.note));
            }
        }
    }
    out.push_str(&messages::upstreams_use());
    out
}
