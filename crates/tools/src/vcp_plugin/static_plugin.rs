//! Static plugins: a program whose output is the value of placeholders, run again by its cron schedule.

use super::cron::CronSchedule;
use super::plugin::VcpPlugin;
use super::runtime::FaultBoard;
use crate::context::ToolContext;
use crate::process::{StdoutMode, failure_text, run_program};
use jiff::Zoned;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// Most bytes of a value; more is cut off.
pub const PLACEHOLDER_BYTES_MAX: usize = 64 * 1024;
/// Longest time that a request waits for the first value. Later requests take the present value.
pub const FIRST_VALUE_WAIT_MAX: Duration = Duration::from_secs(10);
/// Most bytes of output that are read.
const OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// Shortest pause between two runs, for any cron line.
const PAUSE_MIN: Duration = Duration::from_millis(500);

/// A static plugin. Its program runs for the first time when a prompt has one of its placeholders, or
/// immediately if it has none.
pub(super) struct StaticPlugin {
    pub(super) name: String,
    /// Names of placeholders, without braces.
    pub(super) placeholders: Vec<String>,
    runner: Arc<StaticRunner>,
    refresher: Mutex<Option<AbortOnDropHandle<()>>>,
}

struct StaticRunner {
    name: String,
    plugin: VcpPlugin,
    schedule: Option<CronSchedule>,
    value: watch::Sender<Option<String>>,
    faults: Arc<FaultBoard>,
}

impl StaticPlugin {
    pub(super) fn new(
        name: String,
        placeholders: Vec<String>,
        plugin: VcpPlugin,
        schedule: Option<CronSchedule>,
        faults: Arc<FaultBoard>,
    ) -> Self {
        let value = watch::Sender::new(None);
        let runner = Arc::new(StaticRunner { name: name.clone(), plugin, schedule, value, faults });
        Self { name, placeholders, runner, refresher: Mutex::default() }
    }

    /// Starts the runs, unless they have started. Needs a tokio runtime.
    pub(super) fn start(&self) {
        let mut refresher = self.refresher.lock().unwrap_or_else(PoisonError::into_inner);
        refresher.get_or_insert_with(|| {
            let runner = self.runner.clone();
            AbortOnDropHandle::new(tokio::spawn(async move { runner.refresh().await }))
        });
    }

    /// Stops the background runs.
    pub(super) fn stop(&self) {
        drop(self.refresher.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The value. The first one is waited for.
    pub(super) async fn value(&self) -> String {
        self.start();
        let mut value = self.runner.value.subscribe();
        let first = value.wait_for(Option::is_some);
        let first = tokio::time::timeout(FIRST_VALUE_WAIT_MAX, first).await;
        let known = first.ok().and_then(|known| known.ok()?.clone());
        known.unwrap_or_else(|| format!("[{} has no value yet]", self.name))
    }
}

impl StaticRunner {
    async fn refresh(&self) {
        loop {
            match self.run().await {
                Ok(value) => {
                    self.faults.clear(&self.name);
                    // As in VCP: nothing written is nothing new.
                    if !value.is_empty() || self.value.borrow().is_none() {
                        self.value.send_replace(Some(value));
                    }
                }
                Err(why) => {
                    self.faults.set(&self.name, format!("the static plugin {} failed: {why}", self.name));
                    self.value.send_if_modified(|value| {
                        let is_first = value.is_none();
                        value.get_or_insert_with(|| format!("[{} is not available]", self.name));
                        is_first
                    });
                }
            }
            let now = Zoned::now();
            let Some(next) = self.schedule.as_ref().and_then(|schedule| schedule.next_after(&now)) else {
                return;
            };
            let pause = Duration::try_from(next.duration_since(&now)).unwrap_or_default();
            tokio::time::sleep(pause.max(PAUSE_MIN)).await;
        }
    }

    async fn run(&self) -> Result<String, String> {
        let VcpPlugin { program, secrets, timeout, .. } = &self.plugin;
        let context = ToolContext::detached();
        // As in VCP: at the time limit the run ends, and its output so far counts.
        let cancellation = context.cancellation().clone();
        let limit = AbortOnDropHandle::new(tokio::spawn({
            let timeout = *timeout;
            async move {
                tokio::time::sleep(timeout).await;
                cancellation.cancel();
            }
        }));
        let stdout = StdoutMode::Captured { bytes_max: OUTPUT_BYTES_MAX };
        let result =
            run_program(program, b"", stdout, secrets, &context).await.map_err(|error| error.to_string())?;
        drop(limit);
        let failed = failure_text(program, &result).filter(|_| !context.is_cancelled());
        if let Some(why) = failed {
            return Err(self.plugin.explained(why));
        }
        let text = String::from_utf8_lossy(&result.stdout);
        Ok(secrets.redact(&placeholder_text(&text)).into_owned())
    }
}

/// A plugin's output as the value of a placeholder: trimmed, without control characters, of bounded size. Of a document
/// that VCP would fold by similarity, its general block.
fn placeholder_text(output: &str) -> String {
    let output = output.trim().trim_start_matches('\u{feff}');
    let folded = serde_json::from_str::<Value>(output).ok().filter(|value| value["vcp_dynamic_fold"] == true);
    let text = match &folded {
        Some(document) => general_block(document),
        // `[===vcp_fold: 0.5 ::desc: …===]`: the text before the first marker is general.
        None => output.split("[===vcp_fold:").next().filter(|text| !text.trim().is_empty()).unwrap_or(output),
    };
    let mut text: String =
        text.trim().chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    if text.len() > PLACEHOLDER_BYTES_MAX {
        text.truncate(text.floor_char_boundary(PLACEHOLDER_BYTES_MAX));
        text.push_str("\n[cut off]");
    }
    text
}

fn general_block(document: &Value) -> &str {
    let threshold = |block: &&Value| block["threshold"].as_f64().unwrap_or_default();
    let blocks = document["fold_blocks"].as_array().into_iter().flatten();
    let general = blocks.min_by(|a, b| threshold(a).total_cmp(&threshold(b)));
    general.and_then(|block| block["content"].as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn static_output_becomes_bounded_placeholder_text() {
        let folded = json!({"vcp_dynamic_fold": true, "fold_blocks": [
            {"threshold": 0.6, "content": "all details"}, {"threshold": 0, "content": "in short"}]});
        for (output, expected) in [
            ("  sunny\r\n22 °C \n", "sunny\n22 °C"),
            ("\u{1b}[1mbold\u{1b}[0m\ttab", "[1mbold[0m\ttab"),
            (&folded.to_string(), "in short"),
            ("short\n[===vcp_fold: 0.5 ::desc: more ===]\nlong", "short"),
            ("[===vcp_fold: 0.5 ::desc: more ===]\nlong", "[===vcp_fold: 0.5 ::desc: more ===]\nlong"),
            ("{\"a\": 1}", "{\"a\": 1}"),
            ("", ""),
        ] {
            assert_eq!(placeholder_text(output), expected, "{output}");
        }
        let long = placeholder_text(&"é".repeat(PLACEHOLDER_BYTES_MAX));
        assert_eq!(long.len(), PLACEHOLDER_BYTES_MAX + "\n[cut off]".len());
    }
}
