//! Equipment of `cargo xtask bench server`: tools of known duration, named in their names, and a log that is in
//! memory only, so that the price of the real one can be seen. In no binary but that of the benchmark.

use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use throughline_store::{Log, MemoryLog, SqliteSettings};
use throughline_tools::{Effect, Tool, tool};

/// Environment variable for the log of the benchmark: `memory`, or by default the store.
const LOG_VARIABLE: &str = "THROUGHLINE_BENCH_LOG";

/// Environment variable for the maximum rate of commits without a waiting reader, per second.
const COMMITS_VARIABLE: &str = "THROUGHLINE_BENCH_COMMITS";

/// The shared benchmark's model server looks for this word in requests: it distinguishes a turn's second
/// request from the first.
const TOOL_RESULT: &str = "TLTOOLRESULT ok";

#[derive(Deserialize, JsonSchema)]
struct BenchArguments {
    /// Anything.
    #[expect(dead_code, reason = "the model sends it, and nothing is done with it")]
    q: String,
}

/// Offered as `bench_noop`, `bench_sleep1s` and `bench_sleep3s`.
pub(crate) fn tools() -> Vec<Arc<dyn Tool>> {
    let timed = |name: &str, time: Duration| -> Arc<dyn Tool> {
        let run = move |_: BenchArguments, _context| async move {
            if !time.is_zero() {
                tokio::time::sleep(time).await;
            }
            TOOL_RESULT
        };
        Arc::new(tool(name, "A tool of the benchmark.", run).effect(Effect::Pure).agent_callable())
    };
    vec![
        timed("bench.noop", Duration::ZERO),
        timed("bench.sleep1s", Duration::from_secs(1)),
        timed("bench.sleep3s", Duration::from_secs(3)),
    ]
}

/// Returns `store_log`, unless the environment requests one in memory.
pub(crate) fn log(store_log: Arc<dyn Log>) -> Arc<dyn Log> {
    match std::env::var_os(LOG_VARIABLE) {
        Some(log) if log == "memory" => Arc::new(MemoryLog::default()),
        _ => store_log,
    }
}

/// Returns the settings unchanged, unless the environment sets a rate of commits.
pub(crate) fn store(settings: SqliteSettings) -> SqliteSettings {
    let commits = std::env::var(COMMITS_VARIABLE).ok().and_then(|commits| commits.parse().ok());
    let commits_per_second_max = commits.unwrap_or(settings.commits_per_second_max);
    SqliteSettings { commits_per_second_max, ..settings }
}
