//! Faults around a database: an owner that sleeps, a crash, a lost connection, several servers.

#![cfg(feature = "postgres")]

use crate::cluster::Cluster;
use futures_util::stream::{self, StreamExt};
use std::time::{Duration, Instant};
use throughline_store::{
    Durability, Log, LogBatch, LogError, LogRecord, OwnerEpoch, PostgresSettings, PostgresStore,
    ProviderStateRecord, STREAM_END, StoreHealth,
};

const TURN: &str = "turn_1";
const PATIENCE: Duration = Duration::from_secs(30);

fn delta(seq: u64) -> LogRecord {
    LogRecord::new(seq, "content_delta", Durability::Process, format!("{{\"n\":{seq}}}"))
}

fn power(seq: u64) -> LogRecord {
    LogRecord::new(seq, "tool_start", Durability::Power, format!("{{\"n\":{seq}}}"))
}

fn one(record: LogRecord) -> LogBatch {
    vec![record].into()
}

/// Settings under which a machine that pauses for a while loses no lease.
fn settings() -> PostgresSettings {
    PostgresSettings { lease: Duration::from_secs(60), ..PostgresSettings::default() }
}

async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(url, settings()).await.unwrap()
}

async fn all(log: &dyn Log, turn: &str) -> Vec<LogRecord> {
    log.read(turn, 0, usize::MAX).await.unwrap()
}

fn database(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

/// Waits for background work of the store.
async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn former_owner_is_fenced_by_the_append_statement() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.fresh();
    let (sleeper, other) = (open(&url).await, open(&url).await);
    let old = sleeper.claim(TURN).await.unwrap();
    sleeper.append(TURN, old.epoch, one(delta(1))).await.unwrap();

    // The paused owner knows nothing of it: in its memory the turn is still its own.
    let new = other.claim(TURN).await.unwrap();
    assert_eq!((new.epoch, new.last_seq), (OwnerEpoch(old.epoch.0 + 1), 1));
    let fenced = LogError::Fenced { turn: TURN.into(), given: old.epoch.0, current: new.epoch.0 };
    let provider_state = vec![ProviderStateRecord { step: 1, payload: "{}".into() }];
    let late = LogBatch { provider_state, ..one(power(2)) };
    assert_eq!(sleeper.append(TURN, old.epoch, late).await, Err(fenced.clone()));
    assert_eq!(sleeper.append(TURN, old.epoch, LogBatch::default()).await, Err(fenced));
    other.append(TURN, new.epoch, one(delta(2))).await.unwrap();
    for store in [&sleeper, &other] {
        assert_eq!(all(store, TURN).await, [delta(1), delta(2)]);
        assert_eq!(store.read_provider_state(TURN).await.unwrap(), []);
    }
    sleeper.close().await;
    other.close().await;
}

/// The claim waits for an append that is under way, and then sees its records.
#[tokio::test]
async fn claim_during_appends_loses_no_acknowledged_record() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.fresh();
    let stores = [open(&url).await, open(&url).await];
    let mut acknowledged = Vec::new();
    let mut writers = Vec::new();
    let mut claim = stores[0].claim(TURN).await.unwrap();
    for round in 0..20 {
        let (store, epoch, from) = (stores[round % 2].clone(), claim.epoch, claim.last_seq + 1);
        let (first, written) = tokio::sync::oneshot::channel();
        writers.push(tokio::spawn(async move {
            let (mut last, mut first) = (from - 1, Some(first));
            loop {
                match store.append(TURN, epoch, one(delta(last + 1))).await {
                    Ok(ack) => last = ack.last_seq,
                    Err(LogError::Fenced { .. }) => return (from, last),
                    Err(error) => panic!("{error}"),
                }
                // The takeover waits for the first only.
                first.take().map(|first| first.send(()));
            }
        }));
        written.await.unwrap();
        claim = stores[(round + 1) % 2].claim(TURN).await.unwrap();
        acknowledged.push((round, claim.last_seq));
    }
    for (writer, (round, seen)) in writers.into_iter().zip(acknowledged) {
        let (from, last) = writer.await.unwrap();
        assert!(
            from <= last && last <= seen,
            "round {round}: {last} was acknowledged, the next owner saw {seen}"
        );
    }
    let numbers: Vec<u64> = all(&stores[0], TURN).await.iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..=claim.last_seq).collect::<Vec<_>>(), "dense, and nobody wrote twice");
    for store in stores {
        store.close().await;
    }
}

/// The records in its memory from before have a gap.
#[tokio::test]
async fn returning_owner_reads_records_of_other_owners() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.fresh();
    // No polling: a server learns of another's turn only from a claim or a notification.
    let blind = PostgresSettings { poll: Duration::from_secs(3_600), ..settings() };
    let first = PostgresStore::open(&url, blind).await.unwrap();
    let second = PostgresStore::open(&url, blind).await.unwrap();
    let dance = async |turn: String| {
        let owners = [&first, &second, &first, &second, &second, &first];
        for (seq, owner) in (1..).zip(owners) {
            let claim = owner.claim(&turn).await.unwrap();
            assert_eq!(claim.last_seq + 1, seq, "{turn}");
            owner.append(&turn, claim.epoch, one(delta(seq))).await.unwrap();
            let seen: Vec<u64> = all(owner, &turn).await.iter().map(|record| record.seq).collect();
            assert_eq!(seen, (1..=seq).collect::<Vec<_>>(), "{turn}");
        }
    };
    // No more in parallel than the pools have connections for: the others would wait for one, and not without
    // limit.
    let dances = stream::iter(0..100).map(|turn| dance(format!("turn_{turn}")));
    dances.buffer_unordered(16).collect::<Vec<()>>().await;
    first.close().await;
    second.close().await;
}

#[tokio::test]
async fn viewers_on_another_server_see_every_record() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.fresh();
    // One gets notifications and never polls; one gets none and polls.
    let never = Duration::from_secs(3_600);
    let bell = PostgresSettings { poll: never, notify_bytes_max: 12, ..settings() };
    let writer = PostgresStore::open(&url, bell).await.unwrap();
    let hears = PostgresStore::open(&url, bell).await.unwrap();
    let looks = PostgresStore::open(&url, PostgresSettings { poll: Duration::from_millis(50), ..bell })
        .await
        .unwrap();
    eventually("the writer knows of the others", async || {
        cluster.sql(database(&url), "SELECT count(*) FROM tl.replica WHERE lease_until > now()") == "3"
    })
    .await;
    // Many turns in a commit: the notification is too short for their names and stands for all.
    let turns: Vec<String> = (0..40).map(|turn| format!("turn_{turn}")).collect();
    let mut tails = Vec::new();
    let mut epochs = Vec::new();
    for turn in &turns {
        epochs.push(writer.claim(turn).await.unwrap().epoch);
        tails.push(hears.tail(turn, 0).await.unwrap());
        tails.push(looks.tail(turn, 0).await.unwrap());
    }
    // The lease shows the writer once a second if other servers exist.
    let mut sent = 0;
    let mut readers = Vec::new();
    for mut tail in tails {
        readers.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            while let Some(records) = tail.next().await.unwrap() {
                seen.extend(records.into_iter().map(|record| record.seq));
            }
            seen
        }));
    }
    for seq in 1..=60 {
        let last = seq == 60;
        let record =
            |seq| if last { LogRecord::new(seq, STREAM_END, Durability::Power, "{}") } else { delta(seq) };
        let appends =
            turns.iter().zip(&epochs).map(|(turn, epoch)| writer.append(turn, *epoch, one(record(seq))));
        for done in futures_util::future::join_all(appends).await {
            done.unwrap();
        }
        sent = seq;
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    for reader in readers {
        let seen = tokio::time::timeout(PATIENCE, reader).await.expect("a viewer waits for ever").unwrap();
        assert_eq!(seen, (1..=sent).collect::<Vec<_>>());
    }
    for store in [writer, hears, looks] {
        store.close().await;
    }
}

#[tokio::test]
async fn orphaned_turns_are_claimed_once_and_live_ones_never() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.fresh();
    let (gone, living, a, b) = (open(&url).await, open(&url).await, open(&url).await, open(&url).await);
    for turn in ["g1", "g2", "g3"] {
        gone.claim(turn).await.unwrap();
    }
    living.claim("l1").await.unwrap();
    assert_eq!(a.open_turns().await.unwrap(), [""; 0], "they all run");
    assert_eq!(a.claim_orphan().await, Ok(None));
    gone.close().await;
    assert_eq!(a.open_turns().await.unwrap(), ["g1", "g2", "g3"]);
    let mut taken = Vec::new();
    let claims = async |store: &PostgresStore| {
        let mut taken = Vec::new();
        while let Some((turn, claim)) = store.claim_orphan().await.unwrap() {
            assert_eq!(claim.epoch, OwnerEpoch(2), "{turn}");
            taken.push(turn);
        }
        taken
    };
    let (by_a, by_b) = futures_util::future::join(claims(&a), claims(&b)).await;
    taken.extend(by_a.into_iter().chain(by_b));
    taken.sort();
    assert_eq!(taken, ["g1", "g2", "g3"]);
    assert_eq!(a.open_turns().await.unwrap().len() + b.open_turns().await.unwrap().len(), 3);
    for store in [living, a, b] {
        store.close().await;
    }
}

#[tokio::test]
async fn append_over_a_lost_connection_is_written_once() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.fresh();
    let store = open(&url).await;
    let epoch = store.claim(TURN).await.unwrap().epoch;
    let writer = store.clone();
    let (progress, mut seen) = tokio::sync::watch::channel(0);
    let writing = tokio::spawn(async move {
        for seq in 1..=400 {
            let batch = match seq % 20 {
                0 => LogBatch {
                    provider_state: vec![ProviderStateRecord { step: seq as u32, payload: "{}".into() }],
                    ..one(power(seq))
                },
                _ => one(delta(seq)),
            };
            // Never an error: the caller gets the real result.
            assert_eq!(writer.append(TURN, epoch, batch).await.map(|ack| ack.last_seq), Ok(seq));
            progress.send_replace(seq);
        }
    });
    for at in [40, 120, 200, 280, 360] {
        seen.wait_for(|seq| *seq >= at).await.unwrap();
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        assert_ne!(cluster.sql(database(&url), cut), "0");
    }
    tokio::time::timeout(PATIENCE, writing).await.expect("it never comes back").unwrap();
    let numbers: Vec<u64> = all(&store, TURN).await.iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..=400).collect::<Vec<_>>());
    assert_eq!(store.read_provider_state(TURN).await.unwrap().len(), 20, "each once");
    eventually("the store is well", async || store.health() == StoreHealth::Healthy).await;
    store.close().await;
}

#[tokio::test]
async fn database_crash_under_load_loses_no_acknowledged_record() {
    let Some(cluster) = Cluster::start() else { return };
    let url = cluster.fresh();
    let store = open(&url).await;
    let mut writers = Vec::new();
    let (progress, mut seen) = tokio::sync::watch::channel(0);
    for turn in 0..8 {
        let (store, turn, progress) = (store.clone(), format!("turn_{turn}"), progress.clone());
        writers.push(tokio::spawn(async move {
            let epoch = store.claim(&turn).await.unwrap().epoch;
            for seq in 1..=300 {
                let record = if seq % 25 == 0 { power(seq) } else { delta(seq) };
                assert_eq!(
                    store.append(&turn, epoch, one(record)).await.map(|ack| ack.last_seq),
                    Ok(seq),
                    "{turn}"
                );
                progress.send_modify(|all| *all += 1);
            }
            turn
        }));
    }
    for at in [500, 1_400] {
        seen.wait_for(|all| *all >= at).await.unwrap();
        cluster.crash();
        eventually("the store notices", async || store.health() != StoreHealth::Healthy).await;
        cluster.begin();
    }
    for writer in writers {
        let turn = tokio::time::timeout(PATIENCE, writer).await.expect("it never comes back").unwrap();
        let numbers: Vec<u64> = all(&store, &turn).await.iter().map(|record| record.seq).collect();
        assert_eq!(numbers, (1..=300).collect::<Vec<_>>(), "{turn}");
    }
    store.close().await;
}

/// When the server goes down with its database, the last moments of deltas may be lost; a viewer that has
/// seen them is ahead and gets that error.
#[tokio::test]
async fn crash_of_both_keeps_power_records_and_reports_ahead_reads() {
    let Some(cluster) = Cluster::start() else { return };
    // This cluster writes its log every ten seconds, and now and then in the middle of a round.
    for round in 1..=5 {
        let url = cluster.fresh();
        let store = open(&url).await;
        let epoch = store.claim(TURN).await.unwrap().epoch;
        for seq in 1..=10 {
            store.append(TURN, epoch, one(power(seq))).await.unwrap();
        }
        for seq in 11..=40 {
            store.append(TURN, epoch, one(delta(seq))).await.unwrap();
        }
        cluster.crash();
        // Like the end of a process: nothing is written again.
        drop(store);
        cluster.begin();
        let store = open(&url).await;
        let claim = store.claim(TURN).await.unwrap();
        assert!((10..=40).contains(&claim.last_seq), "{claim:?}");
        let kept = all(&store, TURN).await;
        assert_eq!(kept[..10], (1..=10).map(power).collect::<Vec<_>>(), "power is never lost");
        let ahead = LogError::Ahead { turn: TURN.into(), after: 41, last_seq: claim.last_seq };
        assert_eq!(store.read(TURN, 41, 9).await, Err(ahead.clone()));
        assert_eq!(store.tail(TURN, 41).await.err(), Some(ahead));
        store.append(TURN, claim.epoch, one(delta(claim.last_seq + 1))).await.unwrap();
        store.close().await;
        if claim.last_seq < 40 {
            return;
        }
        assert!(round < 5, "in five rounds something must be gone");
    }
}

/// Searches are given what cannot be read for as long as this is there.
async fn locked(url: &str) -> sqlx::PgConnection {
    use sqlx::Connection;
    let mut db = sqlx::PgConnection::connect(url).await.unwrap();
    for sql in ["BEGIN", "LOCK TABLE tl.search_text IN ACCESS EXCLUSIVE MODE"] {
        sqlx::query(sql).execute(&mut db).await.unwrap();
    }
    db
}

/// Statements that wait for that lock.
async fn waiting(db: &mut sqlx::PgConnection) -> i64 {
    let query = sqlx::query_scalar("SELECT count(*) FROM pg_locks WHERE NOT granted");
    query.fetch_one(db).await.unwrap()
}

#[tokio::test]
async fn dropped_search_is_cancelled_in_the_database() {
    use throughline_store::{Catalog, CatalogLimits, PageRequest};

    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.fresh();
    let catalog =
        CatalogLimits { search_ms_max: 3_600_000, search_wait_ms_max: 3_600_000, ..CatalogLimits::default() };
    let settings = PostgresSettings { catalog, ..settings() };
    let store = PostgresStore::open(&url, settings).await.unwrap();
    let page = PageRequest::first();
    let mut lock = locked(&url).await;
    let search = tokio::spawn({
        let (store, page) = (store.clone(), page.clone());
        async move { store.search("ann", "anything", &page).await }
    });
    eventually("the search waits", async || waiting(&mut lock).await > 0).await;
    // Other queries continue during it.
    assert_eq!(store.turn("ann", "t").await, Ok(None));
    search.abort();
    assert!(search.await.unwrap_err().is_cancelled());
    eventually("it waits no more", async || waiting(&mut lock).await == 0).await;
    assert_eq!(store.stats().searches_abandoned, 1);
    drop(lock);
    assert_eq!(store.search("ann", "anything", &page).await.map(|page| page.items), Ok(Vec::new()));
    store.close().await;
}

// Limits: `search_wait_ms_max`, `searches_waiting_max`.
#[tokio::test]
async fn search_time_and_queue_are_limited() {
    use throughline_store::{Catalog, CatalogLimits, PageRequest, StoreError};

    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.fresh();
    let catalog = CatalogLimits {
        search_ms_max: 3_600_000,
        search_wait_ms_max: 500,
        searches_waiting_max: 1,
        ..CatalogLimits::default()
    };
    let settings = PostgresSettings { catalog, ..settings() };
    let store = PostgresStore::open(&url, settings).await.unwrap();
    let page = PageRequest::first();
    let lock = locked(&url).await;
    let (first, second, third) = tokio::join!(
        store.search("ann", "anything", &page),
        store.search("ann", "else", &page),
        store.search("ann", "one too many", &page)
    );
    // Each of its statements was cut: nothing is known.
    assert!(first.is_ok_and(|page| page.partial && page.items.is_empty() && page.next.is_some()));
    assert_eq!(second, Err(StoreError::Busy { limit: "search_wait_ms_max", max: 500 }));
    assert_eq!(third, Err(StoreError::Busy { limit: "searches_waiting_max", max: 1 }));
    drop(lock);
    assert!(store.search("ann", "anything", &page).await.is_ok());
    store.close().await;
}
