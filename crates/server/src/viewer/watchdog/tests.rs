//! The stall timeout of a viewer, in virtual time. `tests/it/viewers/lazy.rs` tests it with sockets.

use super::{CHECK_INTERVAL, ViewerWatchdog};
use crate::net::ConnectionCanceller;
use crate::telemetry::TelemetryCell;
use std::sync::Arc;
use std::time::Duration;
use throughline::config::ServerLimits;
use throughline_engine::TurnId;
use throughline_store::MemoryLog;
use tokio::time::{Instant, sleep};

const STALL: Duration = Duration::from_millis(1_500);

/// A viewer of one large event takes a byte in less than the limit, for much longer than that, and then none.
async fn check_cut_behind_its_last_byte(write_waits: bool) {
    let limits = ServerLimits { viewer_stall_ms_max: STALL.as_millis() as u64, ..ServerLimits::default() };
    let watchdog = ViewerWatchdog::new(Arc::new(MemoryLog::default()), &limits, TelemetryCell::default());
    let connection = Arc::<ConnectionCanceller>::default();
    let viewer = watchdog.watch(TurnId::new("turn"), 0, connection.clone());
    viewer.mark_given(1);
    let wait = || write_waits.then(|| connection.mark_write_pending());
    for _ in 0..20 {
        wait();
        sleep(STALL - Duration::from_millis(100)).await;
        assert!(!connection.is_cancelled(), "it takes slowly");
        connection.mark_written();
        connection.add_bytes_written(1);
    }
    wait();
    let last_byte = Instant::now();
    while !connection.is_cancelled() {
        assert!(last_byte.elapsed() <= STALL + 2 * CHECK_INTERVAL, "it is never cut");
        sleep(Duration::from_millis(10)).await;
    }
    assert!(last_byte.elapsed() > STALL, "{:?}", last_byte.elapsed());
}

#[tokio::test(start_paused = true)]
async fn slow_viewer_stays_connected_and_stalled_viewer_is_cut() {
    check_cut_behind_its_last_byte(true).await;
    check_cut_behind_its_last_byte(false).await;
}
