//! Reads one turn: recent records from memory, older ones from its segments.

use super::live::LiveTurn;
use super::ring::{TurnProgress, decode_runs};
use super::segment::SegmentRead;
use crate::error::StoreError;
use crate::log::{LogError, LogRecord, LogTail, unknown_turn};
use async_trait::async_trait;
use std::sync::Arc;
use tokio::sync::watch;

/// A store with segments, which stays open while it has readers.
#[async_trait]
pub(crate) trait SegmentStore: Send + Sync + 'static {
    type AppendState: Send;

    /// At most `records_max` records after `after`.
    async fn read_segments(&self, n: i64, after: u64, records_max: usize) -> Result<SegmentRead, StoreError>;
}

pub(crate) struct TurnReader<S: SegmentStore> {
    pub store: S,
    pub turn: String,
    pub n: i64,
    /// Live state of the turn; `None`: it is not written here.
    pub live: Option<Arc<LiveTurn<S::AppendState>>>,
}

impl<S: SegmentStore> TurnReader<S> {
    /// All available records after `after`, at most `records_max`.
    pub(crate) async fn read(
        &self,
        progress: TurnProgress,
        after: u64,
        records_max: usize,
    ) -> Result<Vec<LogRecord>, LogError> {
        let mut all = Vec::new();
        let mut from = after;
        self.check_not_ahead(after, progress)?;
        while from < progress.last_seq && all.len() < records_max {
            let mut more = self.read_after(from, records_max - all.len()).await?;
            from = more.last().map_or(progress.last_seq, |record| record.seq);
            if all.is_empty() {
                all = more;
            } else {
                all.append(&mut more);
            }
        }
        Ok(all)
    }

    /// Records after `after`, at least one; not necessarily all of them.
    async fn read_after(&self, after: u64, records_max: usize) -> Result<Vec<LogRecord>, LogError> {
        let runs = self.live.as_ref().and_then(|live| live.ring().read_after(after, records_max));
        if let Some(runs) = runs.filter(|runs| !runs.is_empty()) {
            let records = decode_runs(runs, after, records_max);
            return records.map_err(|damaged| LogError::StoreFailure { why: damaged.to_string() });
        }
        match self.store.read_segments(self.n, after, records_max).await? {
            SegmentRead::Records(records) if !records.is_empty() => Ok(records),
            // There was more when the caller looked, so the turn has been forgotten since.
            SegmentRead::Records(_) => Err(unknown_turn(&self.turn)),
            SegmentRead::InsideMerged => Err(LogError::CursorInsideMerge { turn: self.turn.clone(), after }),
        }
    }

    fn check_not_ahead(&self, after: u64, progress: TurnProgress) -> Result<(), LogError> {
        if after > progress.last_seq {
            return Err(LogError::Ahead { turn: self.turn.clone(), after, last_seq: progress.last_seq });
        }
        Ok(())
    }
}

pub(crate) struct TurnTail<S: SegmentStore> {
    reader: TurnReader<S>,
    watch: Option<watch::Receiver<TurnProgress>>,
    /// Progress of the turn at the last check.
    progress: TurnProgress,
    after: u64,
    records_max: usize,
}

impl<S: SegmentStore> TurnTail<S> {
    /// A tail; without a `watch` the turn has ended.
    pub(crate) fn new(
        reader: TurnReader<S>,
        watch: Option<watch::Receiver<TurnProgress>>,
        progress: TurnProgress,
        after: u64,
        records_max: usize,
    ) -> Result<Self, LogError> {
        reader.check_not_ahead(after, progress)?;
        Ok(Self { reader, watch, progress, after, records_max })
    }
}

#[async_trait]
impl<S: SegmentStore> LogTail for TurnTail<S> {
    async fn next(&mut self) -> Result<Option<Vec<LogRecord>>, LogError> {
        let after = self.after;
        if self.progress.last_seq <= after
            && !self.progress.ended
            && let Some(watch) = &mut self.watch
        {
            // Less than was seen before: the database has lost its last moments.
            let is_news = |now: &TurnProgress| now.last_seq != after || now.ended;
            // The sender lives in `self.reader.live`, so waiting cannot fail before the turn does.
            let Ok(now) = watch.wait_for(is_news).await else { return Ok(None) };
            self.progress = *now;
        }
        if self.progress.last_seq < after {
            self.reader.check_not_ahead(after, self.progress)?;
        }
        if self.progress.last_seq <= after {
            return Ok(None);
        }
        // Never beyond the announced number: the database may have more, and a later announcement of those
        // would then deliver nothing.
        let announced = usize::try_from(self.progress.last_seq - after).unwrap_or(usize::MAX);
        let records = self.reader.read_after(after, self.records_max.min(announced)).await?;
        self.after = records.last().map_or(after, |record| record.seq);
        Ok(Some(records))
    }
}
