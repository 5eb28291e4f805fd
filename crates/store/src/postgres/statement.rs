//! The one statement that appends the pending records of all turns.

use super::writer::AppendGroup;
use crate::log::Durability;
use crate::records::encode_segment;
use sqlx::{PgConnection, Row as _};

/// - `open_writer` counts this batch in the row of the writer's connection. An abandoned connection finds its
///   row marked and writes nothing, and the connection that marks it learns whether the batch was committed.
/// - `owned` locks the rows of the turns, in their order. A claim waits for it, and it waits for a claim: a
///   late append of a paused owner finds another epoch and is not written.
/// - How the commit waits for the disk, and the notification of other servers, are part of the statement, so
///   that all of it is one round trip.
const APPEND: &str = "
WITH open_writer AS (
    UPDATE writer SET batch = $2 WHERE id = $1 AND NOT fenced RETURNING 1
), input AS MATERIALIZED (
    SELECT * FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[], $8::boolean[])
        AS g (n, epoch, first_seq, last_seq, data, ends)
), owned AS MATERIALIZED (
    SELECT t.n, t.epoch FROM turn_log t WHERE t.n = ANY ($3) ORDER BY t.n FOR SHARE
), inserted AS (
    INSERT INTO segment (n, first_seq, last_seq, data)
    SELECT g.n, g.first_seq, g.last_seq, g.data FROM input g JOIN owned o ON o.n = g.n AND o.epoch = g.epoch
    WHERE g.data IS NOT NULL AND EXISTS (SELECT 1 FROM open_writer)
), state_rows AS (
    INSERT INTO provider_state (n, step, data)
    SELECT b.n, b.step, b.data FROM unnest($9::bigint[], $10::bigint[], $11::integer[], $12::bytea[])
        WITH ORDINALITY AS b (n, epoch, step, data, ord) JOIN owned o ON o.n = b.n AND o.epoch = b.epoch
    WHERE EXISTS (SELECT 1 FROM open_writer) ORDER BY b.ord
), ended AS (
    UPDATE turn_log t SET state = 1, last_seq = g.last_seq FROM input g JOIN owned o ON o.n = g.n AND o.epoch = g.epoch
    WHERE t.n = g.n AND g.ends AND EXISTS (SELECT 1 FROM open_writer)
)
SELECT set_config('synchronous_commit', $13, true),
    CASE WHEN $14 <> '' THEN pg_notify('tl_turn', $14)::text END,
    EXISTS (SELECT 1 FROM open_writer) AS open,
    ARRAY (SELECT g.ord FROM unnest($3::bigint[], $4::bigint[]) WITH ORDINALITY AS g (n, epoch, ord)
        JOIN owned o ON o.n = g.n AND o.epoch = g.epoch) AS written";

/// Outcome of a batch.
pub(super) struct BatchResult {
    /// False if this connection may not write any more; nothing was written then.
    pub open: bool,
    /// Positions of the groups that were written; the others have been fenced off.
    pub written: Vec<usize>,
}

/// Appends these groups in one transaction.
pub(super) async fn append(
    db: &mut PgConnection,
    writer: i64,
    batch: i64,
    groups: &[AppendGroup],
    durability: Durability,
    notification: &str,
) -> Result<BatchResult, sqlx::Error> {
    let (mut turns, mut epochs, mut firsts, mut lasts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut data, mut ends) = (Vec::new(), Vec::new());
    let (mut state_turns, mut state_epochs, mut state_steps, mut state_payloads) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for group in groups {
        turns.push(group.live.n);
        epochs.push(group.epoch as i64);
        firsts.push(group.first_seq as i64);
        lasts.push(group.last_seq as i64);
        data.push((!group.runs.is_empty()).then(|| encode_segment(&group.runs)));
        ends.push(group.ends);
        for provider_state in &group.provider_state {
            state_turns.push(group.live.n);
            state_epochs.push(group.epoch as i64);
            state_steps.push(provider_state.step as i32);
            state_payloads.push(provider_state.payload.to_vec());
        }
    }
    let synchronous = match durability {
        Durability::Process => "off",
        Durability::Power => "on",
    };
    let row = sqlx::query(APPEND)
        .bind(writer)
        .bind(batch)
        .bind(turns)
        .bind(epochs)
        .bind(firsts)
        .bind(lasts)
        .bind(data)
        .bind(ends)
        .bind(state_turns)
        .bind(state_epochs)
        .bind(state_steps)
        .bind(state_payloads)
        .bind(synchronous)
        .bind(notification)
        .fetch_one(db)
        .await?;
    let ordinals: Vec<i64> = row.try_get("written")?;
    let written = ordinals.into_iter().filter_map(|ordinal| usize::try_from(ordinal - 1).ok()).collect();
    Ok(BatchResult { open: row.try_get("open")?, written })
}

/// The payload of a notification: who rings, and about which turns. Longer than `bytes_max` it is about all.
pub(super) fn notification_payload(
    replica: i32,
    turns: impl Iterator<Item = i64>,
    bytes_max: usize,
) -> String {
    use std::fmt::Write;
    let mut notification = replica.to_string();
    for n in turns {
        // Writing into a text cannot fail.
        let _ = write!(notification, " {n}");
        if notification.len() > bytes_max {
            return format!("{replica} *");
        }
    }
    notification
}

/// Turns of another server that a notification names, or all of them. `None`: the notification is our own or
/// malformed.
pub(super) fn parse_notification(replica: i32, notification: &str) -> Option<Option<Vec<i64>>> {
    let mut words = notification.split(' ');
    if words.next()?.parse::<i32>().ok()? == replica {
        return None;
    }
    let numbers: Result<Vec<i64>, _> = words.map(str::parse).collect();
    // `*`, or an extension of a later version.
    Some(numbers.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    // Limit: `bell_bytes_max`.
    #[test]
    fn notification_names_its_turns_or_means_all() {
        let check = |turns: std::ops::Range<i64>, rung: &str, heard_of: Option<Vec<i64>>| {
            let notification = notification_payload(7, turns, 10);
            assert_eq!(notification, rung);
            assert_eq!(parse_notification(8, &notification), Some(heard_of));
            assert_eq!(parse_notification(7, &notification), None, "it is our own");
        };
        check(1..4, "7 1 2 3", Some(vec![1, 2, 3]));
        check(10..13, "7 10 11 12", Some(vec![10, 11, 12]));
        check(10..14, "7 *", None);
        assert_eq!(parse_notification(8, ""), None);
        assert_eq!(parse_notification(8, "7 x"), Some(None));
    }
}
