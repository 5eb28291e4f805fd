//! The upstream of a scenario file, for `throughline mock`.

use crate::rules::ScenarioRules;
use crate::server::{FakeUpstream, FakeUpstreamHandle};
use std::io;
use std::net::SocketAddr;

/// Serves a scenario until the handle is shut down or dropped. Port 0 = any free one.
///
/// # Errors
/// If the address cannot be had.
pub async fn serve(address: SocketAddr, rules: ScenarioRules) -> io::Result<FakeUpstreamHandle> {
    FakeUpstream::on_address(address).serve(rules).await
}
