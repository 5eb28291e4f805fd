//! `throughline history`: tool calls and turns of a store, newest first.

use crate::args::HistoryArgs;
use crate::exit::{CliExit, CommandResult};
use crate::messages::{self, UiLanguage, UiText};
use crate::output::{self, errln};
use crate::plain::one_line;
use crate::serve::read_only_store::ReadOnlyStore;
use crate::terminal::card::duration;
use crate::terminal::text::padded;
use throughline_store::{
    CallFilter, CallRow, PagePosition, PageRequest, ResultPage, TurnFilter, TurnHistoryRow, TurnSummary,
};

/// Prints the requested rows.
pub(crate) async fn run(args: &HistoryArgs) -> CommandResult {
    let words = UiText(UiLanguage::current());
    let store = ReadOnlyStore::open(args.store.as_deref()).await?;
    let failed = store.failed();
    let users = match &args.user {
        Some(user) => vec![user.clone()],
        None => store.users().await.map_err(failed)?,
    };
    let page = match &args.before {
        Some(cursor) => PageRequest::after(cursor.as_str()),
        None => PageRequest::first(),
    }
    .limit(args.limit);
    // With several users, the rows of each before the same time.
    page.position().map_err(|_| messages::bad_cursor(args.before.as_deref().unwrap_or_default()))?;
    let text = if args.turns {
        let filter = TurnFilter {
            conversation_id: args.conversation.clone(),
            statuses: CallFilter::parse_statuses(args.status.as_deref()),
            ..TurnFilter::default()
        };
        let mut pages = Vec::new();
        for user in &users {
            pages.push(store.turns(user, &filter, &page).await.map_err(failed)?);
        }
        let turns = merge(pages, args, |row: &TurnHistoryRow| PagePosition {
            at: row.turn.created_at,
            id: row.turn.id.clone(),
        });
        if args.json {
            return json(&turns);
        }
        let lines: String = turns.iter().map(|row| turn_line(&row.turn)).collect();
        if lines.is_empty() { format!("{}\n", words.history_no_turns()) } else { lines }
    } else {
        let filter = CallFilter {
            tool_name: args.tool.clone(),
            source: args.source.clone(),
            statuses: CallFilter::parse_statuses(args.status.as_deref()),
            conversation_id: args.conversation.clone(),
            turn_id: args.turn.clone(),
            text: args.text.clone(),
            ..CallFilter::default()
        };
        let mut pages = Vec::new();
        for user in &users {
            pages.push(store.calls(user, &filter, &page).await.map_err(failed)?);
        }
        let calls = merge(pages, args, |call: &CallRow| PagePosition {
            at: call.started_at,
            id: call.tool_id.clone(),
        });
        if args.json {
            return json(&calls);
        }
        let lines: String = calls.iter().map(call_line).collect();
        if lines.is_empty() { format!("{}\n", words.history_none()) } else { lines }
    };
    output::text(&text).map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

/// The rows of several users as one page. If there are more, a hint on standard error shows how to get them.
fn merge<T>(pages: Vec<ResultPage<T>>, args: &HistoryArgs, position: impl Fn(&T) -> PagePosition) -> Vec<T> {
    let has_next = pages.iter().any(|page| page.next.is_some());
    let mut rows: Vec<T> = pages.into_iter().flat_map(|page| page.items).collect();
    rows.sort_by_cached_key(|row| {
        let PagePosition { at, id } = position(row);
        std::cmp::Reverse((at, id))
    });
    let has_more = has_next || rows.len() > args.limit as usize;
    rows.truncate(args.limit as usize);
    if let Some(last) = rows.last().filter(|_| has_more) {
        errln!("{}", messages::history_has_more(&position(last).to_string()));
    }
    rows
}

fn json(rows: &impl serde::Serialize) -> CommandResult {
    output::json_line(rows).map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

fn call_line(call: &CallRow) -> String {
    let elapsed = call.duration_ms.and_then(|ms| u64::try_from(ms).ok()).map(duration).unwrap_or_default();
    let mark = if call.status == "success" { "✔" } else { "✘" };
    let result_text = match &call.error {
        Some(error) => messages::history_error(&call.status, error),
        None => call.output_summary.clone().unwrap_or_default(),
    };
    let line = format!(
        "{}  {mark} {:<24} {} {elapsed:>9}  {}",
        time(call.started_at),
        one_line(&call.tool_name),
        padded(&messages::history_status(&call.status), 12),
        one_line(&call.arguments)
    );
    let result_text =
        if result_text.is_empty() { String::new() } else { format!(" → {}", one_line(&result_text)) };
    format!("{}{result_text}\n", line.trim_end())
}

fn turn_line(turn: &TurnSummary) -> String {
    let status = padded(&messages::history_status(&turn.status), 11);
    format!("{}  {}  {status}  {}\n", time(turn.created_at), turn.id, one_line(&turn.input))
}

/// Formats a time in the local time zone.
fn time(millis: i64) -> String {
    let Ok(at) = jiff::Timestamp::from_millisecond(millis) else { return "?".to_owned() };
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
