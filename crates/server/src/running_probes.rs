//! Upstreams that are being measured: one measurement of each at a time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Upstreams that are being measured.
#[derive(Clone, Debug, Default)]
pub struct RunningProbes(Arc<Mutex<BTreeSet<String>>>);

/// The measurement of one upstream, until it is dropped.
pub(crate) struct ProbeSlot {
    running: RunningProbes,
    upstream: String,
}

impl RunningProbes {
    /// `None` if it is being measured already.
    pub(crate) fn begin(&self, upstream: &str) -> Option<ProbeSlot> {
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(upstream.to_owned());
        is_new.then(|| ProbeSlot { running: self.clone(), upstream: upstream.to_owned() })
    }
}

impl Drop for ProbeSlot {
    fn drop(&mut self) {
        self.running.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.upstream);
    }
}
