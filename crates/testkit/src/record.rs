//! What an upstream remembers of its exchanges.

use crate::dialect::Dialect;
use crate::http::Request;
use crate::script::Break;
use crate::seen::Seen;
use std::collections::VecDeque;

/// How many exchanges are remembered by default; older ones are forgotten. A demo that runs for days must not grow.
pub const EXCHANGES_KEPT_MAX: usize = 1_000;

/// One request and what became of it.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Its number, from 1.
    pub number: u64,
    /// As it came in.
    pub request: Request,
    /// As it was understood; `None` if it was refused or is no model call.
    pub seen: Option<Seen>,
    /// The dialect, if it was a model call.
    pub dialect: Option<Dialect>,
    /// Why it was refused.
    pub violation: Option<String>,
    /// The status that it was answered with; `None` before that.
    pub status: Option<u16>,
    /// Bytes of the body that were handed to the socket.
    pub sent: u64,
    /// How it ended; `None` while it goes on.
    pub ending: Option<Ending>,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The reply was sent whole.
    Complete,
    /// The client closed its connection, or its sending half, before the reply was over.
    ClientGone,
    /// Broken off by the script.
    Broken(Break),
    /// The upstream was stopped.
    Stopped,
}

/// A request that a real provider would have refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The number of the request, from 1.
    pub request: u64,
    /// The dialect.
    pub dialect: Dialect,
    /// In the provider's words.
    pub message: String,
}

/// The newest exchanges, by number.
#[derive(Debug)]
pub(crate) struct Record {
    kept: VecDeque<Exchange>,
    kept_max: usize,
    begun: u64,
}

impl Record {
    pub fn new(kept_max: usize) -> Self {
        Self { kept: VecDeque::new(), kept_max: kept_max.max(1), begun: 0 }
    }

    /// Begins an exchange and gives its number.
    pub fn begin(&mut self, request: Request) -> u64 {
        self.begun += 1;
        if self.kept.len() == self.kept_max {
            self.kept.pop_front();
        }
        self.kept.push_back(Exchange {
            number: self.begun,
            request,
            seen: None,
            dialect: None,
            violation: None,
            status: None,
            sent: 0,
            ending: None,
        });
        self.begun
    }

    pub fn get(&self, number: u64) -> Option<&Exchange> {
        self.kept.get(self.place(number)?)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut Exchange> {
        let place = self.place(number)?;
        self.kept.get_mut(place)
    }

    pub fn all(&self) -> Vec<Exchange> {
        self.kept.iter().cloned().collect()
    }

    fn place(&self, number: u64) -> Option<usize> {
        let first = self.kept.front()?.number;
        usize::try_from(number.checked_sub(first)?).ok()
    }
}
