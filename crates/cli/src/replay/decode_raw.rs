//! `throughline replay TURN --decode-raw`: what upstreams sent, decoded by this release and compared with the log. R: S5

use super::source;
use crate::args::Replay;
use crate::exit::{Ended, Exit, Failure};
use crate::messages::{self, Words};
use crate::output;
use crate::plain::short;
use throughline::{Again, DecodedAgain, KeptBytes, KeptExtent, StoredTurn, decode_again};
use throughline_store::catalog::RawExtent;

/// Prints what each answer is understood as now; the exit code says whether that has changed.
pub async fn run(args: &Replay, words: Words) -> Ended {
    let again = decoded(args).await?;
    let said = match args.json {
        true => output::json_line(&again),
        false => output::text(&again.iter().map(|again| told(again, words)).collect::<String>()),
    };
    said.map_err(|error| messages::output_failed(&error))?;
    let is_same = |again: &DecodedAgain| matches!(again.outcome, Again::Same | Again::SameSoFar);
    Ok(if again.iter().all(is_same) { Exit::Done } else { Exit::Failed })
}

async fn decoded(args: &Replay) -> Result<Vec<DecodedAgain>, Failure> {
    let (store, turn) = source::turn(args).await?;
    let events = source::logged(&store, &turn).await?;
    let failed = store.failed();
    let Some(row) = store.turn(&turn).await.map_err(failed)? else {
        return Err(messages::replay_nothing_kept(&turn));
    };
    let mut kept = Vec::new();
    for answer in store.raw_of_turn(&row.user, &turn).await.map_err(failed)? {
        let bytes = store.raw(&row.user, &answer.id).await.map_err(failed)?.unwrap_or_default();
        let extent = match answer.extent {
            RawExtent::Whole => KeptExtent::Whole,
            RawExtent::Beginning => KeptExtent::Beginning,
        };
        kept.push(KeptBytes { step: answer.id.step, attempt: answer.id.attempt, extent, bytes });
    }
    if kept.is_empty() {
        return Err(messages::replay_nothing_kept(&turn));
    }
    let stored: StoredTurn =
        serde_json::from_str(&row.stored).map_err(|error| messages::replay_unknown_turn(&turn, &error))?;
    decode_again(&stored, &events, &kept).map_err(|error| messages::replay_unknown_turn(&turn, &error))
}

fn told(again: &DecodedAgain, words: Words) -> String {
    let mut text = words.decoded_again(again);
    if let Again::Different(found) = &again.outcome {
        for found in found {
            let at = found.at.map(|at| format!(" @{at}")).unwrap_or_default();
            text.push_str(&format!("    {}{at}\n", short(&found.what)));
            text.push_str(&format!(
                "      - {}\n      + {}\n",
                short(&found.recorded),
                short(&found.decoded)
            ));
        }
    }
    text
}
