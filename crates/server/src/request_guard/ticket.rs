//! Tickets: browsers' `EventSource` and `WebSocket` cannot send a key, and a key in an address would be
//! logged. A ticket replaces the key in one request, once, within a minute.

use super::api_key::{RandomnessError, random_bytes};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Bytes of a ticket.
const TICKET_BYTES: usize = 32;
/// Maximum number of unused tickets, of all keys together.
const OPEN_MAX: usize = 4_096;

/// The unused tickets. They do not outlive the process: a page requests a new one.
pub(super) struct TicketStore<T> {
    /// Tickets by hash, so that the time of a lookup reveals nothing about a ticket.
    open: Mutex<HashMap<blake3::Hash, StoredTicket<T>>>,
}

struct StoredTicket<T> {
    owner: T,
    expires_at: Instant,
}

/// Reason why no ticket was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TicketError {
    /// Too many unused tickets.
    TooMany,
    /// The system has no random bytes.
    NoRandomness,
}

impl From<RandomnessError> for TicketError {
    fn from(_: RandomnessError) -> Self {
        TicketError::NoRandomness
    }
}

impl<T> TicketStore<T> {
    pub(super) fn new() -> Self {
        Self { open: Mutex::default() }
    }

    /// A ticket of this owner.
    pub(super) fn issue(&self, owner: T, ttl: Duration) -> Result<String, TicketError> {
        let ticket = URL_SAFE_NO_PAD.encode(random_bytes::<TICKET_BYTES>()?);
        let now = Instant::now();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= OPEN_MAX {
            open.retain(|_, ticket| now < ticket.expires_at);
        }
        if open.len() >= OPEN_MAX {
            return Err(TicketError::TooMany);
        }
        open.insert(blake3::hash(ticket.as_bytes()), StoredTicket { owner, expires_at: now + ttl });
        Ok(ticket)
    }

    /// Uses up a ticket and returns its owner. `None`: the ticket is unknown, used or expired.
    pub(super) fn take(&self, ticket: &str) -> Option<T> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = open.remove(&blake3::hash(ticket.as_bytes()))?;
        (Instant::now() < ticket.expires_at).then_some(ticket.owner)
    }

    /// Drops expired tickets.
    pub(super) fn evict_expired(&self) {
        let now = Instant::now();
        self.open.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, ticket| now < ticket.expires_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ticket_is_valid_once_and_until_it_expires() {
        let tickets = TicketStore::new();
        let minute = Duration::from_secs(60);
        let issue = || tickets.issue("k", minute).unwrap();
        let ticket = issue();
        assert_eq!(tickets.take(&ticket), Some("k"));
        assert_eq!(tickets.take(&ticket), None, "used");
        assert_eq!(tickets.take(""), None);
        let (in_time, late) = (issue(), issue());
        tokio::time::advance(minute - Duration::from_millis(1)).await;
        assert!(tickets.take(&in_time).is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(tickets.take(&late), None, "too old");
    }

    #[tokio::test(start_paused = true)]
    async fn open_tickets_are_limited_and_expired_ones_removed() {
        let tickets = TicketStore::new();
        let second = Duration::from_secs(1);
        for _ in 0..OPEN_MAX {
            tickets.issue((), second).unwrap();
        }
        assert_eq!(tickets.issue((), second), Err(TicketError::TooMany));
        tokio::time::advance(second).await;
        assert!(tickets.issue((), second).is_ok());
    }
}
