//! The requests of a connection that wait for a reply, and replies that name no request.

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, JsonRpcMessage, RequestId,
};
use std::collections::{BTreeMap, BTreeSet};

/// Kind of a request of ours: it decides how the reply is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Initialize,
    Discover,
    ListTools,
    CallTool,
    /// Open as long as the connection.
    Listen,
    Other,
}

/// Requests that wait, by their number.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    kinds: BTreeMap<i64, RequestKind>,
    orphans: Vec<OrphanReply>,
    /// Number of the newest request.
    last: i64,
    /// For each notification that may be answered as well: the newest request before it. Once a later one is answered, no
    /// answer is to come.
    notified_after: Vec<i64>,
}

/// A reply that cannot be read, not even for its number.
#[derive(Debug)]
struct OrphanReply {
    /// Requests that waited when it came and have not been answered since. It is the reply to one of them.
    candidates: BTreeSet<i64>,
    error: ErrorData,
}

/// Requests that end with an error.
pub(super) type FailedRequests = Vec<(i64, ErrorData)>;

impl PendingRequests {
    /// Takes note of a message of ours on its way out.
    pub(super) fn sent(&mut self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                let RequestId::Number(id) = request.id else { return };
                let kind = match &request.request {
                    ClientRequest::InitializeRequest(_) => RequestKind::Initialize,
                    ClientRequest::DiscoverRequest(_) => RequestKind::Discover,
                    ClientRequest::ListToolsRequest(_) => RequestKind::ListTools,
                    ClientRequest::CallToolRequest(_) => RequestKind::CallTool,
                    ClientRequest::SubscriptionsListenRequest(_) => RequestKind::Listen,
                    _ => RequestKind::Other,
                };
                if kind == RequestKind::Initialize {
                    // The late answer to a probe before it would pass for an answer to this one.
                    self.kinds.retain(|_, kind| *kind != RequestKind::Discover);
                }
                self.kinds.insert(id, kind);
                self.last = id;
            }
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ClientNotification::InitializedNotification(_) => self.notified_after.push(self.last),
                ClientNotification::CancelledNotification(cancelled) => {
                    self.notified_after.push(self.last);
                    if let Some(RequestId::Number(id)) = cancelled.params.request_id {
                        self.forget(id);
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }

    pub(super) fn kind(&self, id: i64) -> Option<RequestKind> {
        self.kinds.get(&id).copied()
    }

    /// Marks a request as no longer awaited. An orphaned reply may still be the one to it.
    pub(super) fn forget(&mut self, id: i64) {
        self.kinds.remove(&id);
    }

    /// A request has its reply. Returns the requests of which it follows that theirs cannot be read.
    pub(super) fn answered(&mut self, id: i64) -> FailedRequests {
        self.kinds.remove(&id);
        // Earlier messages have been read by then.
        self.notified_after.retain(|last| id <= *last);
        for orphan in &mut self.orphans {
            orphan.candidates.remove(&id);
        }
        self.resolve_orphans()
    }

    /// True if an empty reply without a number can be the answer to a notification, which then has it.
    pub(super) fn answers_notification(&mut self) -> bool {
        let is_awaited = !self.notified_after.is_empty();
        // The oldest first.
        self.notified_after.drain(..self.notified_after.len().min(1));
        is_awaited
    }

    /// A reply came that names no request. The only one that waits has failed. Of several, none is guessed at, which might
    /// end the wrong one: as soon as all others are answered, it is the one that is left.
    pub(super) fn orphan(&mut self, error: ErrorData) -> FailedRequests {
        let waits = |(_, kind): &(&i64, &RequestKind)| **kind != RequestKind::Listen;
        let candidates = self.kinds.iter().filter(waits).map(|(id, _)| *id).collect();
        self.orphans.push(OrphanReply { candidates, error });
        self.resolve_orphans()
    }

    /// As many orphans as candidates for them: each candidate gets one.
    fn resolve_orphans(&mut self) -> FailedRequests {
        let mut failed = Vec::new();
        loop {
            let kinds = &self.kinds;
            self.orphans.retain(|orphan| orphan.candidates.iter().any(|id| kinds.contains_key(id)));
            let resolved = self.orphans.iter().find(|orphan| {
                let within = |other: &&OrphanReply| other.candidates.is_subset(&orphan.candidates);
                self.orphans.iter().filter(within).count() >= orphan.candidates.len()
            });
            let Some(OrphanReply { candidates, error }) = resolved else { return failed };
            let (candidates, error) = (candidates.clone(), error.clone());
            self.orphans.retain(|orphan| !orphan.candidates.is_subset(&candidates));
            for id in candidates {
                if self.kinds.remove(&id).is_some() {
                    failed.push((id, error.clone()));
                }
                for orphan in &mut self.orphans {
                    orphan.candidates.remove(&id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Step {
        Orphan,
        Answered(i64),
        Forgotten(i64),
    }
    use Step::{Answered, Forgotten, Orphan};

    /// Numbers of the requests that fail, after each step.
    fn check(waiting: &[i64], steps: &[(Step, &[i64])]) {
        let calls = waiting.iter().map(|id| (*id, RequestKind::CallTool));
        let kinds = calls.chain([(0, RequestKind::Listen)]).collect();
        let mut pending = PendingRequests { kinds, ..PendingRequests::default() };
        for (at, (step, expected)) in steps.iter().enumerate() {
            let failed = match step {
                Orphan => pending.orphan(ErrorData::internal_error("unreadable", None)),
                Answered(id) => pending.answered(*id),
                Forgotten(id) => {
                    pending.forget(*id);
                    Vec::new()
                }
            };
            let failed: Vec<i64> = failed.into_iter().map(|(id, _)| id).collect();
            assert_eq!(failed, *expected, "step {at} of {waiting:?}");
        }
        assert!(pending.orphans.len() <= waiting.len());
    }

    #[test]
    fn reply_without_id_ends_a_request_only_if_unambiguous() {
        check(&[1], &[(Orphan, &[1]), (Orphan, &[])]);
        check(&[], &[(Orphan, &[])]);
        check(&[1, 2], &[(Orphan, &[]), (Answered(1), &[2])]);
        check(&[1, 2, 3], &[(Orphan, &[]), (Orphan, &[]), (Answered(2), &[1, 3])]);
        check(&[1, 2], &[(Orphan, &[]), (Orphan, &[1, 2])]);
        // It may have been the reply to the request that is no longer awaited.
        check(&[1, 2], &[(Orphan, &[]), (Forgotten(1), &[]), (Answered(2), &[])]);
        check(&[1, 2], &[(Orphan, &[]), (Forgotten(1), &[]), (Orphan, &[2])]);
    }
}
