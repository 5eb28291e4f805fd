//! `throughline history`: tool calls and turns of a store, newest first. R: S4

use crate::args::HistoryArgs;
use crate::exit::{CliExit, CommandResult};
use crate::messages::{self, UiLanguage, UiText};
use crate::output;
use crate::plain::one_line;
use crate::serve::read_only_store::ReadOnlyStore;
use crate::terminal::card::duration;
use throughline_store::catalog::{CallFilter, CallRow, PageRequest, TurnFilter, TurnSummary};

/// Prints what is asked for.
pub(crate) async fn run(args: &HistoryArgs) -> CommandResult {
    let words = UiText(UiLanguage::of_environment());
    let store = ReadOnlyStore::open(args.store.as_deref()).await?;
    let failed = store.failed();
    let users = match &args.user {
        Some(user) => vec![user.clone()],
        None => store.users().await.map_err(failed)?,
    };
    let page = PageRequest::first().limit(args.limit);
    let text = if args.turns {
        let filter = TurnFilter {
            conversation_id: args.conversation.clone(),
            status: args.status.clone(),
            agent: None,
        };
        let mut turns: Vec<TurnSummary> = Vec::new();
        for user in &users {
            turns.extend(store.turns(user, &filter, &page).await.map_err(failed)?.items);
        }
        turns.sort_by_key(|turn| std::cmp::Reverse(turn.created_at));
        turns.truncate(args.limit as usize);
        if args.json {
            return json(&turns);
        }
        let lines: String = turns.iter().map(turn_line).collect();
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
        let mut calls: Vec<CallRow> = Vec::new();
        for user in &users {
            calls.extend(store.calls(user, &filter, &page).await.map_err(failed)?.items);
        }
        calls.sort_by_key(|call| std::cmp::Reverse(call.started_at));
        calls.truncate(args.limit as usize);
        if args.json {
            return json(&calls);
        }
        let lines: String = calls.iter().map(call_line).collect();
        if lines.is_empty() { format!("{}\n", words.history_none()) } else { lines }
    };
    output::text(&text).map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

fn json(rows: &impl serde::Serialize) -> CommandResult {
    output::json_line(rows).map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

fn call_line(call: &CallRow) -> String {
    let elapsed = call.duration_ms.and_then(|ms| u64::try_from(ms).ok()).map(duration).unwrap_or_default();
    let mark = if call.status == "success" { "✔" } else { "✘" };
    let result_text = call.error.as_deref().or(call.output_summary.as_deref()).unwrap_or_default();
    let line = format!(
        "{}  {mark} {:<24} {:<12} {elapsed:>9}  {}",
        time(call.started_at),
        one_line(&call.tool_name),
        call.status,
        one_line(&call.arguments)
    );
    let result_text =
        if result_text.is_empty() { String::new() } else { format!(" → {}", one_line(result_text)) };
    format!("{}{result_text}\n", line.trim_end())
}

fn turn_line(turn: &TurnSummary) -> String {
    format!("{}  {}  {:<11}  {}\n", time(turn.created_at), turn.id, turn.status, one_line(&turn.input))
}

/// In the person's own time zone.
fn time(millis: i64) -> String {
    let Ok(at) = jiff::Timestamp::from_millisecond(millis) else { return "?".to_owned() };
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
