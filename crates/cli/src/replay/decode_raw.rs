//! `throughline replay TURN --decode-raw`: what upstreams sent, decoded by this release and compared with the log.

use super::source;
use crate::args::ReplayArgs;
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages::{self, UiText};
use crate::output;
use crate::plain::one_line;
use throughline::{RecordedBytes, RedecodeOutcome, RedecodedReply, StoredTurn, redecode};
use throughline_store::RawId;

/// Prints the current decoding of each reply; the exit code reports a difference.
pub(crate) async fn run(args: &ReplayArgs, words: UiText) -> CommandResult {
    let redecoded = redecode_turn(args).await?;
    let printed = if args.json {
        output::json_line(&redecoded)
    } else {
        output::text(&redecoded.iter().map(|redecoded| describe(redecoded, words)).collect::<String>())
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    let is_same = |redecoded: &RedecodedReply| {
        matches!(redecoded.outcome, RedecodeOutcome::Same | RedecodeOutcome::SamePrefix)
    };
    Ok(if redecoded.iter().all(is_same) { CliExit::Done } else { CliExit::Failed })
}

async fn redecode_turn(args: &ReplayArgs) -> Result<Vec<RedecodedReply>, CliFailure> {
    let (store, turn) = source::find_turn(args).await?;
    let events = source::logged_events(&store, &turn).await?;
    let failed = store.failed();
    let Some(row) = store.turn(&turn).await.map_err(failed)? else {
        return Err(messages::replay_no_raw_bytes(&turn));
    };
    let mut raw_replies = Vec::new();
    for answer in store.raw_of_turn(&row.user, &turn).await.map_err(failed)? {
        let bytes = store.raw(&row.user, &answer.id).await.map_err(failed)?.unwrap_or_default();
        let (RawId { step, attempt, .. }, extent) = (answer.id, answer.extent);
        raw_replies.push(RecordedBytes { step, attempt, extent, bytes });
    }
    if raw_replies.is_empty() {
        return Err(messages::replay_no_raw_bytes(&turn));
    }
    let stored: StoredTurn =
        serde_json::from_str(&row.stored).map_err(|error| messages::replay_unknown_turn(&turn, &error))?;
    redecode(&stored, &events, &raw_replies).map_err(|error| messages::replay_unknown_turn(&turn, &error))
}

fn describe(redecoded: &RedecodedReply, words: UiText) -> String {
    let mut text = words.decoded_again(redecoded);
    if let RedecodeOutcome::Different(difference) = &redecoded.outcome {
        for difference in difference {
            let at = difference.at.map(|at| format!(" @{at}")).unwrap_or_default();
            text.push_str(&format!("    {}{at}\n", one_line(&difference.what)));
            text.push_str(&format!(
                "      - {}\n      + {}\n",
                one_line(&difference.recorded),
                one_line(&difference.decoded)
            ));
        }
    }
    text
}
