//! The upstream's memory of its exchanges.

use crate::dialect::FakeDialect;
use crate::http::ReceivedRequest;
use crate::parsed_request::ParsedRequest;
use crate::script::BodyBreak;
use std::collections::VecDeque;

/// Default number of exchanges in memory; older ones are dropped. A demo that runs for days must not grow.
pub const EXCHANGES_RETAINED_MAX: usize = 1_000;

/// One request and its result.
#[derive(Clone, Debug)]
pub struct HttpExchange {
    /// Number of the exchange, from 1.
    pub number: u64,
    /// Request as received.
    pub request: ReceivedRequest,
    /// Request as parsed; `None` if it was refused or is not a model call.
    pub seen: Option<ParsedRequest>,
    /// The dialect, if it was a model call.
    pub dialect: Option<FakeDialect>,
    /// Reason of the refusal.
    pub violation: Option<String>,
    /// Status of the response; `None` before it.
    pub status: Option<u16>,
    /// Bytes of the body that were handed to the socket.
    pub sent: u64,
    /// End of the exchange; `None` while it runs.
    pub ending: Option<ExchangeEnd>,
}

/// End of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeEnd {
    /// The reply was sent whole.
    Complete,
    /// The client closed its connection, or its sending half, before the reply was over.
    ClientDisconnected,
    /// Broken off by the script.
    Broken(BodyBreak),
    /// The upstream was stopped.
    Stopped,
}

/// A request that a real provider would have refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestViolation {
    /// The number of the request, from 1.
    pub request: u64,
    /// Dialect of the request.
    pub dialect: FakeDialect,
    /// In the provider's words.
    pub message: String,
}

/// The newest exchanges, by number.
#[derive(Debug)]
pub(crate) struct ExchangeLog {
    exchanges: VecDeque<HttpExchange>,
    exchanges_max: usize,
    started: u64,
}

impl ExchangeLog {
    pub fn new(exchanges_max: usize) -> Self {
        Self { exchanges: VecDeque::new(), exchanges_max: exchanges_max.max(1), started: 0 }
    }

    /// Begins an exchange and gives its number.
    pub fn begin(&mut self, request: ReceivedRequest) -> u64 {
        self.started += 1;
        if self.exchanges.len() == self.exchanges_max {
            self.exchanges.pop_front();
        }
        self.exchanges.push_back(HttpExchange {
            number: self.started,
            request,
            seen: None,
            dialect: None,
            violation: None,
            status: None,
            sent: 0,
            ending: None,
        });
        self.started
    }

    pub fn get(&self, number: u64) -> Option<&HttpExchange> {
        self.exchanges.get(self.index_of(number)?)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut HttpExchange> {
        let index = self.index_of(number)?;
        self.exchanges.get_mut(index)
    }

    pub fn all(&self) -> Vec<HttpExchange> {
        self.exchanges.iter().cloned().collect()
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        let first = self.exchanges.front()?.number;
        usize::try_from(number.checked_sub(first)?).ok()
    }
}
