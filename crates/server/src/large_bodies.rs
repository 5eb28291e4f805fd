//! Large bodies are bounded together: one key's wait for each other, unread, and what is worked out of them waits for memory.
//!
//! Small bodies take no part in any of it, so that nobody who writes a line waits for somebody's pictures.

use crate::error::ApiError;
use crate::state::AppState;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use throughline::config::ServerLimits;
use throughline_store::ScratchFile;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// A body, or a text in it, of more bytes is large.
pub(crate) const LARGE_BYTES: u64 = 1 << 20;
/// A key gets at most this part of the memory.
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

/// What a key has of both.
#[derive(Debug)]
struct KeyShare {
    bodies: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

/// What a request takes of the bounds, until its last clone is gone.
#[derive(Clone, Debug)]
pub(crate) struct RequestMemory(Arc<HeldMemory>);

#[derive(Debug)]
struct HeldMemory {
    bodies: Arc<LargeBodies>,
    key: Arc<KeyShare>,
    permits: Mutex<Vec<OwnedSemaphorePermit>>,
}

impl LargeBodies {
    pub(crate) fn of(limits: &ServerLimits) -> Arc<Self> {
        let limits = LargeBodyLimits::of(limits);
        let memory = semaphore(limits.memory_bytes_max);
        Arc::new(Self { limits, memory, of_keys: Mutex::default() })
    }

    /// These bounds, or new ones if others are set.
    pub(crate) fn reloaded(self: &Arc<Self>, limits: &ServerLimits) -> Arc<Self> {
        if self.limits == LargeBodyLimits::of(limits) { Arc::clone(self) } else { Self::of(limits) }
    }

    /// A request of this key, which has taken nothing yet.
    pub(crate) fn request(self: &Arc<Self>, counted_as: &str) -> RequestMemory {
        let key = self.share_of(counted_as);
        RequestMemory(Arc::new(HeldMemory { bodies: Arc::clone(self), key, permits: Mutex::default() }))
    }

    fn share_of(&self, counted_as: &str) -> Arc<KeyShare> {
        let mut keys = self.of_keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = keys.get(counted_as) {
            return Arc::clone(share);
        }
        keys.retain(|_, share| Arc::strong_count(share) > 1);
        let share = Arc::new(KeyShare {
            bodies: semaphore(self.limits.bytes_per_key_max),
            memory: semaphore(self.limits.memory_bytes_max / SHARE_OF_KEY),
        });
        keys.insert(counted_as.to_owned(), Arc::clone(&share));
        share
    }
}

impl RequestMemory {
    /// Lets its body, of at most so many bytes, be read. A large one waits until the key's others have been answered.
    ///
    /// # Errors
    /// 429: it has waited too long.
    pub(crate) async fn admit(&self, bytes: u64) -> Result<(), ApiError> {
        if bytes <= LARGE_BYTES {
            return Ok(());
        }
        let LargeBodyLimits { bytes_per_key_max: max, wait_max, .. } = self.0.bodies.limits;
        let permit = acquire(&self.0.key.bodies, bytes, max, wait_max).await.ok_or_else(|| {
            let message = format!("large bodies of this key, {max} bytes together, are being read already");
            ApiError::too_many("large_bodies_bytes_per_key_max", message, RETRY_AFTER_S)
                .with_extra("bytes_max", max)
                .remedy("send fewer at once, or raise `large_bodies_bytes_per_key_max` of [server.limits]")
        })?;
        self.0.hold(permit);
        Ok(())
    }

    /// Takes memory for what is worked out of a content of so many bytes, if it is large. Called once for a request, so that none
    /// waits with memory in its hands.
    ///
    /// # Errors
    /// 503: it has waited too long.
    pub(crate) async fn reserve(&self, content: u64, memory_per_byte: u64) -> Result<(), ApiError> {
        if content <= LARGE_BYTES {
            return Ok(());
        }
        let LargeBodyLimits { memory_bytes_max: max, wait_max, .. } = self.0.bodies.limits;
        let bytes = content.saturating_mul(memory_per_byte);
        let begun = tokio::time::Instant::now();
        let of_key = max / SHARE_OF_KEY;
        let permits = async {
            let of_key_permit = acquire(&self.0.key.memory, bytes, of_key, wait_max).await?;
            let left = wait_max.saturating_sub(begun.elapsed());
            Some([of_key_permit, acquire(&self.0.bodies.memory, bytes.min(of_key), max, left).await?])
        };
        let permits = permits.await.ok_or_else(|| {
            let message = format!("other requests have taken the {max} bytes of memory for large ones");
            ApiError::unavailable("large_bodies_memory_bytes_max", message, RETRY_AFTER_S)
                .with_extra("bytes_max", max)
                .remedy("try again in a moment, or raise `large_bodies_memory_bytes_max` of [server.limits]")
        })?;
        permits.into_iter().for_each(|permit| self.0.hold(permit));
        Ok(())
    }

    /// A response's body that holds this to its end.
    pub(crate) fn held_by(self, body: Body) -> Body {
        let is_empty = self.0.permits.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if is_empty { body } else { Body::new(HoldingBody { body, _memory: self }) }
    }
}

impl HeldMemory {
    fn hold(&self, permit: OwnedSemaphorePermit) {
        self.permits.lock().unwrap_or_else(PoisonError::into_inner).push(permit);
    }
}

fn semaphore(bytes: u64) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(units(bytes) as usize))
}

fn units(bytes: u64) -> u32 {
    const UNITS_MAX: u64 = Semaphore::MAX_PERMITS as u64;
    u32::try_from(bytes.div_ceil(UNIT_BYTES).min(UNITS_MAX)).unwrap_or(u32::MAX)
}

/// What is more than all there is gets all of it: it is alone then. `None` = it has waited too long.
async fn acquire(
    semaphore: &Arc<Semaphore>,
    bytes: u64,
    max: u64,
    wait_max: Duration,
) -> Option<OwnedSemaphorePermit> {
    let permits = Arc::clone(semaphore).acquire_many_owned(units(bytes.min(max)));
    timeout(wait_max, permits).await.ok()?.ok()
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

/// A text that comes in pieces. A large one is on the disk until there is memory for it, so that whoever sends slowly takes none
/// from others.
#[derive(Debug, Default)]
pub(crate) struct SpooledText {
    beginning: Vec<u8>,
    rest: Option<ScratchFile>,
    bytes: u64,
}

impl SpooledText {
    /// # Errors
    /// The disk is full.
    pub(crate) async fn push(&mut self, state: &AppState, bytes: &[u8]) -> Result<(), ApiError> {
        self.bytes += bytes.len() as u64;
        if self.rest.is_none() && self.bytes > LARGE_BYTES {
            self.rest = Some(state.blobs.scratch().await?);
        }
        match &mut self.rest {
            None => self.beginning.extend_from_slice(bytes),
            Some(rest) => {
                // As a new turn: what is held in reserve is for those that run.
                state.log.accepts_new_turns()?;
                rest.write(bytes).await?;
            }
        }
        Ok(())
    }

    /// A body as it comes; `None` if it has more than so many bytes.
    ///
    /// # Errors
    /// It breaks off, or the disk is full.
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

    /// All of it, when there is memory for what is worked out of it.
    ///
    /// # Errors
    /// 503: there is none for too long. The disk cannot be read.
    pub(crate) async fn read(
        self,
        memory: Option<&RequestMemory>,
        memory_per_byte: u64,
    ) -> Result<Vec<u8>, ApiError> {
        if let Some(memory) = memory {
            memory.reserve(self.bytes, memory_per_byte).await?;
        }
        let mut text = self.beginning;
        if let Some(rest) = self.rest {
            text.extend(rest.read().await?);
        }
        Ok(text)
    }
}

/// The gate says in place of this if it was the gate that ended it.
pub(crate) fn unreadable_body(error: axum::Error) -> ApiError {
    ApiError::bad_request("unreadable_body", format!("the body broke off: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    const MIB: u64 = 1 << 20;

    fn bodies(bytes_per_key: u64, memory: u64) -> Arc<LargeBodies> {
        LargeBodies::of(&ServerLimits {
            large_bodies_bytes_per_key_max: bytes_per_key,
            large_bodies_memory_bytes_max: memory,
            large_body_wait_ms_max: 1_000,
            ..ServerLimits::default()
        })
    }

    /// How long it waited, and the code of its error.
    async fn waited<T>(waiting: impl Future<Output = Result<T, ApiError>>) -> (u128, &'static str) {
        let begun = Instant::now();
        let code = waiting.await.map_or_else(|error| error.code, |_| "");
        (begun.elapsed().as_millis(), code)
    }

    /// A request with a body of so many bytes.
    async fn admitted(bodies: &Arc<LargeBodies>, key: &str, bytes: u64) -> Result<RequestMemory, ApiError> {
        let request = bodies.request(key);
        request.admit(bytes).await.map(|()| request)
    }

    #[tokio::test(start_paused = true)]
    async fn the_large_bodies_of_a_key_wait_for_each_other() {
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
    async fn memory_is_bounded_in_all_and_a_key_gets_half() {
        let bodies = bodies(100 * MIB, 64 * MIB);
        let of = |key| bodies.request(key);
        let (a, b, c) = (of("a"), of("b"), of("c"));
        a.reserve(4 * MIB, 8).await.unwrap();
        assert_eq!(
            waited(of("a").reserve(2 * MIB, 1)).await,
            (1_000, "large_bodies_memory_bytes_max"),
            "the other half is for others"
        );
        assert_eq!(waited(of("a").reserve(LARGE_BYTES, 99)).await, (0, ""), "small ones take none");
        b.reserve(50 * MIB, 8).await.unwrap();
        assert_eq!(waited(c.reserve(2 * MIB, 1)).await, (1_000, "large_bodies_memory_bytes_max"));
        let answer = a.held_by(Body::from("answer"));
        assert_eq!(waited(c.reserve(2 * MIB, 1)).await.0, 1_000, "until the answer has been read");
        drop(answer);
        assert_eq!(waited(c.reserve(2 * MIB, 1)).await, (0, ""));
    }

    #[tokio::test]
    async fn keys_that_have_nothing_any_more_are_forgotten() {
        let bodies = bodies(8 * MIB, 64 * MIB);
        let first = bodies.request("first");
        for number in 0..100 {
            drop(bodies.request(&number.to_string()));
        }
        assert_eq!(bodies.of_keys.lock().unwrap().len(), 2);
        drop(first);
    }
}
