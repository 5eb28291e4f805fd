//! Shared bounds of large bodies: those of one key wait for each other, unread, and their processing waits
//! for memory.
//!
//! Small bodies that expand to no large values are exempt, so that a short message never waits for another
//! user's pictures.

use crate::error::ApiError;
use crate::json_scanner::TextUnits;
use crate::state::AppState;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use throughline::config::ServerLimits;
use throughline_store::ScratchFile;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// A body, or a text in it, of more bytes is large.
pub(crate) const LARGE_BYTES: u64 = 1 << 20;
/// Memory that the work on a small body may take without being counted, in bytes.
const SMALL_MEMORY_BYTES: u64 = 16 << 20;
/// A key gets at most this part of the memory, unless one request of it needs more.
const SHARE_OF_KEY: u64 = 2;
/// Seconds after which a request that waited too long may come again.
const RETRY_AFTER_S: u64 = 5;

/// Bytes for a unit of a semaphore: it counts to 4 TiB then.
const UNIT_BYTES: u64 = 1 << 10;

/// The bounds of all large bodies.
#[derive(Debug)]
pub(crate) struct LargeBodies {
    limits: LargeBodyLimits,
    memory: Arc<Semaphore>,
    of_keys: Mutex<HashMap<String, Arc<KeyShare>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LargeBodyLimits {
    bytes_per_key_max: u64,
    memory_bytes_max: u64,
    wait_max: Duration,
}

impl LargeBodyLimits {
    fn of(limits: &ServerLimits) -> Self {
        Self {
            bytes_per_key_max: limits.large_bodies_bytes_per_key_max,
            memory_bytes_max: limits.large_bodies_memory_bytes_max,
            wait_max: Duration::from_millis(limits.large_body_wait_ms_max),
        }
    }
}

/// Bodies and memory of one key.
#[derive(Debug)]
struct KeyShare {
    bodies: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

/// Share of the bounds that a request holds, until its last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct RequestMemory(Arc<HeldMemory>);

#[derive(Debug)]
struct HeldMemory {
    bodies: Arc<LargeBodies>,
    key: Arc<KeyShare>,
    permits: Mutex<HeldPermits>,
}

#[derive(Debug)]
struct HeldPermits {
    body: Option<OwnedSemaphorePermit>,
    /// Permits of its key's memory, and of the total.
    memory: Vec<OwnedSemaphorePermit>,
    /// Size of the content that it is for.
    content: u64,
    /// Rest of the time that it may wait.
    wait_left: Duration,
}

impl LargeBodies {
    pub(crate) fn of(limits: &ServerLimits) -> Arc<Self> {
        let limits = LargeBodyLimits::of(limits);
        let memory = semaphore(limits.memory_bytes_max);
        Arc::new(Self { limits, memory, of_keys: Mutex::default() })
    }

    /// The same bounds, or new ones if the limits differ.
    pub(crate) fn reloaded(self: &Arc<Self>, limits: &ServerLimits) -> Arc<Self> {
        if self.limits == LargeBodyLimits::of(limits) { Arc::clone(self) } else { Self::of(limits) }
    }

    /// A request of this key, without any share yet.
    pub(crate) fn request(self: &Arc<Self>, quota_key: &str) -> RequestMemory {
        let key = self.share_of(quota_key);
        let permits =
            HeldPermits { body: None, memory: Vec::new(), content: 0, wait_left: self.limits.wait_max };
        RequestMemory(Arc::new(HeldMemory { bodies: Arc::clone(self), key, permits: permits.into() }))
    }

    fn share_of(&self, quota_key: &str) -> Arc<KeyShare> {
        let mut keys = self.of_keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = keys.get(quota_key) {
            return Arc::clone(share);
        }
        keys.retain(|_, share| Arc::strong_count(share) > 1);
        let share = Arc::new(KeyShare {
            bodies: semaphore(self.limits.bytes_per_key_max),
            memory: semaphore(self.limits.memory_bytes_max / SHARE_OF_KEY),
        });
        keys.insert(quota_key.to_owned(), Arc::clone(&share));
        share
    }
}

impl RequestMemory {
    /// Admits its body, of at most `bytes` bytes. A large one waits until the key's others have been
    /// answered.
    ///
    /// # Errors
    /// 429: the wait timed out.
    pub(crate) async fn admit(&self, bytes: u64) -> Result<(), ApiError> {
        if bytes <= LARGE_BYTES {
            return Ok(());
        }
        let max = self.0.bodies.limits.bytes_per_key_max;
        let permit = self.0.acquire(&self.0.key.bodies, bytes, max).await.ok_or_else(|| {
            let message =
                format!("too many large bodies of this key are being read (at most {max} bytes together)");
            ApiError::too_many("large_bodies_bytes_per_key_max", message, RETRY_AFTER_S)
                .with_extra("bytes_max", max)
                .remedy("send fewer at once, or raise `large_bodies_bytes_per_key_max` of [server.limits]")
        })?;
        self.0.permits().body = Some(permit);
        Ok(())
    }

    /// Reduces the admission to the actual length of the body.
    pub(crate) fn keep_of_body(&self, bytes: u64) {
        keep(self.0.permits().body.as_mut(), bytes);
    }

    /// Reserves memory for processing a content of `content` bytes, if either is large. Called once for a
    /// request, so that none waits while it holds memory.
    ///
    /// # Errors
    /// 503: the wait timed out.
    pub(crate) async fn reserve(&self, content: u64, memory: u64) -> Result<(), ApiError> {
        if content <= LARGE_BYTES && memory <= SMALL_MEMORY_BYTES {
            return Ok(());
        }
        let (all, max) = (&self.0.bodies.memory, self.0.bodies.limits.memory_bytes_max);
        // In order: requests after one that waits for all of the memory wait, too, so that it is not starved.
        let of_key = max / SHARE_OF_KEY;
        let permits = async {
            let first = self.0.acquire(&self.0.key.memory, memory, of_key).await?;
            Some(vec![first, self.0.acquire(all, memory, max).await?])
        };
        let permits = permits.await.ok_or_else(|| {
            let message =
                format!("the memory for large requests is in use: {max} bytes in all, half of it per key");
            ApiError::unavailable("large_bodies_memory_bytes_max", message, RETRY_AFTER_S)
                .with_extra("bytes_max", max)
                .remedy("try again in a moment, or raise `large_bodies_memory_bytes_max` of [server.limits]")
        })?;
        let mut held = self.0.permits();
        (held.memory, held.content) = (permits, content);
        Ok(())
    }

    /// Releases memory above `per_byte` for each byte of the content: it has been parsed, and only the result
    /// remains.
    pub(crate) fn keep_of_memory(&self, per_byte: u64) {
        let mut held = self.0.permits();
        let memory = held.content.saturating_mul(per_byte);
        held.memory.iter_mut().for_each(|permit| keep(Some(permit), memory));
    }

    /// A response's body that holds this to its end.
    pub(crate) fn held_by(self, body: Body) -> Body {
        let is_empty = {
            let permits = self.0.permits();
            permits.body.is_none() && permits.memory.is_empty()
        };
        if is_empty { body } else { Body::new(HoldingBody { body, _memory: self }) }
    }
}

impl HeldMemory {
    fn permits(&self) -> MutexGuard<'_, HeldPermits> {
        self.permits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires this much, or all of the memory if that is less: it is then the only holder. `None` = the
    /// wait timed out.
    async fn acquire(
        &self,
        semaphore: &Arc<Semaphore>,
        bytes: u64,
        max: u64,
    ) -> Option<OwnedSemaphorePermit> {
        let (begun, wait_left) = (Instant::now(), self.permits().wait_left);
        let acquiring = Arc::clone(semaphore).acquire_many_owned(units(bytes.min(max)));
        let permit = timeout(wait_left, acquiring).await.ok()?.ok();
        self.permits().wait_left = wait_left.saturating_sub(begun.elapsed());
        permit
    }
}

fn keep(permit: Option<&mut OwnedSemaphorePermit>, bytes: u64) {
    if let Some(permit) = permit {
        let unneeded = permit.num_permits().saturating_sub(units(bytes) as usize);
        drop(permit.split(unneeded));
    }
}

fn semaphore(bytes: u64) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(units(bytes) as usize))
}

fn units(bytes: u64) -> u32 {
    const UNITS_MAX: u64 = Semaphore::MAX_PERMITS as u64;
    u32::try_from(bytes.div_ceil(UNIT_BYTES).min(UNITS_MAX)).unwrap_or(u32::MAX)
}

struct HoldingBody {
    body: Body,
    _memory: RequestMemory,
}

impl HttpBody for HoldingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A text that is received in pieces. A large one is on disk until memory is available, so that a slow sender
/// holds none.
#[derive(Debug, Default)]
pub(crate) struct SpooledText {
    beginning: Vec<u8>,
    rest: Option<ScratchFile>,
    bytes: u64,
    units: TextUnits,
}

/// A value of serde's with its key, as it lies in a map.
pub(crate) const JSON_VALUE_BYTES: u64 = 80;

/// Memory that a key may use; a request that would need more is refused.
pub(crate) fn memory_of_key(limits: &ServerLimits) -> u64 {
    limits.large_bodies_memory_bytes_max / SHARE_OF_KEY
}

impl SpooledText {
    /// # Errors
    /// The disk is full.
    pub(crate) async fn push(&mut self, state: &AppState, bytes: &[u8]) -> Result<(), ApiError> {
        self.bytes += bytes.len() as u64;
        self.units.push(bytes);
        let room = (LARGE_BYTES as usize).saturating_sub(self.beginning.len());
        let (beginning, bytes) = bytes.split_at(room.min(bytes.len()));
        self.beginning.extend_from_slice(beginning);
        if !bytes.is_empty() {
            // Refused like a new turn: the reserved disk space is for running turns.
            state.log.accepts_new_turns()?;
            let rest = match &mut self.rest {
                Some(rest) => rest,
                None => self.rest.insert(state.blobs.scratch().await?),
            };
            rest.write(bytes).await?;
        }
        Ok(())
    }

    /// Receives a body; `None` if it has more than `bytes_max` bytes.
    ///
    /// # Errors
    /// The body breaks off, or the disk is full.
    pub(crate) async fn of_body(
        state: &AppState,
        mut body: Body,
        bytes_max: u64,
    ) -> Result<Option<Self>, ApiError> {
        let mut text = Self::default();
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let frame = frame.map_err(unreadable_body)?;
            if let Ok(chunk) = frame.into_data() {
                text.push(state, &chunk).await?;
            }
            if text.bytes > bytes_max {
                return Ok(None);
            }
        }
        Ok(Some(text))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn units(&self) -> TextUnits {
        self.units
    }

    pub(crate) fn beginning(&self) -> &[u8] {
        &self.beginning
    }

    /// Reads the whole text, once this much memory is reserved for its processing.
    ///
    /// # Errors
    /// 503: the wait for memory timed out. The disk cannot be read.
    pub(crate) async fn read(self, memory: Option<&RequestMemory>, needed: u64) -> Result<Vec<u8>, ApiError> {
        if let Some(memory) = memory {
            memory.reserve(self.bytes, needed).await?;
        }
        Ok(match self.rest {
            None => self.beginning,
            Some(rest) => rest.read_after(self.beginning).await?,
        })
    }
}

/// The error of a body that cannot be read. The request guard replaces it if the request guard ended the body.
pub(crate) fn unreadable_body(error: axum::Error) -> ApiError {
    ApiError::bad_request("unreadable_body", format!("the request body ended early: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn bodies(bytes_per_key: u64, memory: u64) -> Arc<LargeBodies> {
        LargeBodies::of(&ServerLimits {
            large_bodies_bytes_per_key_max: bytes_per_key,
            large_bodies_memory_bytes_max: memory,
            large_body_wait_ms_max: 1_000,
            ..ServerLimits::default()
        })
    }

    /// Time that it waited, in milliseconds, and the code of its error.
    async fn waited<T>(waiting: impl Future<Output = Result<T, ApiError>>) -> (u128, &'static str) {
        let begun = Instant::now();
        let code = waiting.await.map_or_else(|error| error.code, |_| "");
        (begun.elapsed().as_millis(), code)
    }

    /// A request with a body of this many bytes.
    async fn admitted(bodies: &Arc<LargeBodies>, key: &str, bytes: u64) -> Result<RequestMemory, ApiError> {
        let request = bodies.request(key);
        request.admit(bytes).await.map(|()| request)
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_of_a_key_wait_at_its_byte_limit() {
        let bodies = bodies(8 * MIB, 64 * MIB);
        let first = admitted(&bodies, "a", 6 * MIB).await.unwrap();
        assert_eq!(waited(admitted(&bodies, "a", 3 * MIB)).await, (1_000, "large_bodies_bytes_per_key_max"));
        for (key, bytes) in [("a", LARGE_BYTES), ("a", 2 * MIB), ("b", 8 * MIB)] {
            assert_eq!(waited(admitted(&bodies, key, bytes)).await, (0, ""), "{key} {bytes}");
        }
        let second = tokio::spawn({
            let bodies = Arc::clone(&bodies);
            async move { waited(admitted(&bodies, "a", 100 * MIB)).await }
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(first);
        assert_eq!(second.await.unwrap(), (300, ""), "one that is larger than all there is comes alone");
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_limited_in_total_and_to_half_per_key() {
        let bodies = bodies(100 * MIB, 64 * MIB);
        let of = |key| bodies.request(key);
        let (a, b, c) = (of("a"), of("b"), of("c"));
        a.reserve(4 * MIB, 32 * MIB).await.unwrap();
        assert_eq!(
            waited(of("a").reserve(2 * MIB, 2 * MIB)).await,
            (1_000, "large_bodies_memory_bytes_max"),
            "the other half is for others"
        );
        for (bytes, memory, code) in
            [(LARGE_BYTES, SMALL_MEMORY_BYTES, ""), (LARGE_BYTES, 99 * MIB, "large_bodies_memory_bytes_max")]
        {
            assert_eq!(waited(of("a").reserve(bytes, memory)).await.1, code, "small ones take none");
        }
        assert_eq!(
            waited(of("b").reserve(50 * MIB, 40 * MIB)).await,
            (1_000, "large_bodies_memory_bytes_max"),
            "one that needs more than half takes it of all, too"
        );
        b.reserve(50 * MIB, 32 * MIB).await.unwrap();
        assert_eq!(waited(c.reserve(2 * MIB, 2 * MIB)).await, (1_000, "large_bodies_memory_bytes_max"));
        let answer = a.held_by(Body::from("answer"));
        assert_eq!(waited(c.reserve(2 * MIB, 2 * MIB)).await.0, 1_000, "until the answer has been read");
        drop(answer);
        assert_eq!(waited(c.reserve(2 * MIB, 2 * MIB)).await, (0, ""));
        drop((b, c));
        let alone = of("d");
        alone.reserve(50 * MIB, 400 * MIB).await.unwrap();
        assert_eq!(waited(of("e").reserve(2 * MIB, MIB)).await.0, 1_000, "with all there is, it comes alone");
    }

    #[tokio::test(start_paused = true)]
    async fn unused_reservation_is_released() {
        let bodies = bodies(8 * MIB, 64 * MIB);
        let first = admitted(&bodies, "a", 8 * MIB).await.unwrap();
        first.keep_of_body(2 * MIB);
        assert_eq!(waited(admitted(&bodies, "a", 6 * MIB)).await, (0, ""));
        first.reserve(2 * MIB, 32 * MIB).await.unwrap();
        first.keep_of_memory(1);
        let second = bodies.request("a");
        assert_eq!(waited(second.reserve(2 * MIB, 30 * MIB)).await, (0, ""));
        assert_eq!(waited(bodies.request("a").reserve(2 * MIB, MIB)).await.0, 1_000);
    }

    #[tokio::test(start_paused = true)]
    async fn waits_of_a_request_share_one_time_limit() {
        let bodies = bodies(8 * MIB, 64 * MIB);
        let first = admitted(&bodies, "a", 8 * MIB).await.unwrap();
        let other = bodies.request("a");
        other.reserve(2 * MIB, 32 * MIB).await.unwrap();
        let second = bodies.request("a");
        let waiting = async {
            second.admit(8 * MIB).await?;
            second.reserve(8 * MIB, MIB).await
        };
        let leaving = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            drop(first);
        };
        let (waited, ()) = tokio::join!(waited(waiting), leaving);
        assert_eq!(waited, (1_000, "large_bodies_memory_bytes_max"));
    }

    #[tokio::test]
    async fn idle_keys_are_removed() {
        let bodies = bodies(8 * MIB, 64 * MIB);
        let first = bodies.request("first");
        for number in 0..100 {
            drop(bodies.request(&number.to_string()));
        }
        assert_eq!(bodies.of_keys.lock().unwrap().len(), 2);
        drop(first);
    }
}
