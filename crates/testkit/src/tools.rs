//! Fake tools, for tests of what runs tools: ones that echo, sleep, fail, panic, flood and do not listen, and one that
//! watches another.
//!
//! They keep to `tokio::time`, so a test under paused time waits for none of them.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use throughline_testkit::tools::{WatchedTool, echo};
//! use throughline_tools::{ToolExecutor, ToolInvocation, ToolRegistry};
//! use throughline_wire::{CallArguments, CallOutcome, ToolOutput};
//!
//! let watched = WatchedTool::new(echo());
//! let registry = ToolRegistry::builder().tool(watched.clone()).build()?;
//! let call = ToolInvocation::new("call_1", "test.echo", CallArguments::from_value(serde_json::json!({"text": "hi"})));
//! let outcome = ToolExecutor::default().run(&registry, call, |_| async {}).await;
//! assert_eq!(outcome, CallOutcome::Done(ToolOutput::text("hi")));
//! assert_eq!(watched.runs().len(), 1);
//! # Ok::<(), throughline_tools::RegistryError>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use throughline_tools::{
    Effect, FunctionTool, NoArguments, Tool, ToolContext, ToolError, ToolProgress, ToolSpec, tool,
};
use throughline_wire::{CallArguments, CallId, ToolOutput};

/// Size of the pieces that [`flood`] writes, in bytes.
const FLOOD_PIECE_BYTES: u64 = 64 * 1024;

#[derive(Deserialize, JsonSchema)]
struct TextArguments {
    /// The text to say.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct SleepArguments {
    /// Duration, in milliseconds.
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct FloodArguments {
    /// Amount, in bytes.
    bytes: u64,
}

/// All test tools.
pub fn all() -> Vec<Arc<dyn Tool>> {
    [echo(), note(), sleep(), stubborn(), fail(), panics(), flood()]
        .into_iter()
        .map(|tool| Arc::new(tool) as Arc<dyn Tool>)
        .collect()
}

fn fake(tool: FunctionTool, effect: Effect) -> FunctionTool {
    tool.effect(effect).agent_callable().source("test")
}

/// `test.echo {text}`: answers with the text. Pure.
pub fn echo() -> FunctionTool {
    let run = |TextArguments { text }: TextArguments, _: ToolContext| async move { text };
    fake(tool("test.echo", "Says the text again.", run), Effect::Pure)
}

/// `test.note {text}`: as echo, but counts as writing, so it waits for the commit and asks first.
pub fn note() -> FunctionTool {
    let run = |TextArguments { text }: TextArguments, _: ToolContext| async move { format!("noted: {text}") };
    fake(tool("test.note", "Writes the text down.", run), Effect::Write)
}

/// `test.sleep {ms}`: reports once, sleeps, and stops immediately when it is cancelled, with `slept` as
/// partial output.
pub fn sleep() -> FunctionTool {
    let run = |SleepArguments { ms }: SleepArguments, context: ToolContext| async move {
        context.report(ToolProgress::new(0.0).with_total(ms as f64).with_message("asleep"));
        context.write("slept").await;
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(ms)) => Ok(format!("slept {ms} ms")),
            () = context.cancellation().cancelled() => Err(ToolError::new("woken up")),
        }
    };
    fake(tool("test.sleep", "Sleeps.", run), Effect::Read)
}

/// `test.stubborn`: never returns, even when cancelled.
pub fn stubborn() -> FunctionTool {
    let run = |_: NoArguments, _: ToolContext| std::future::pending::<String>();
    fake(tool("test.stubborn", "Never returns.", run), Effect::Read)
}

/// `test.fail {text}`: fails with the text.
pub fn fail() -> FunctionTool {
    let run = |TextArguments { text }: TextArguments, _: ToolContext| async move {
        Err::<String, _>(ToolError::new(text))
    };
    fake(tool("test.fail", "Fails.", run), Effect::Read)
}

/// `test.panic {text}`: panics with the text.
pub fn panics() -> FunctionTool {
    #[allow(clippy::panic, reason = "it is what this tool is for")]
    async fn run(TextArguments { text }: TextArguments, _: ToolContext) -> String {
        panic!("{text}")
    }
    fake(tool("test.panic", "Panics.", run), Effect::Read)
}

/// `test.flood {bytes}`: writes this much output, as fast as it is read.
pub fn flood() -> FunctionTool {
    let run = |FloodArguments { bytes }: FloodArguments, context: ToolContext| async move {
        let piece = "0123456789abcde\n".repeat(FLOOD_PIECE_BYTES as usize / 16);
        let mut left = bytes;
        while left > 0 && !context.is_cancelled() {
            let length = left.min(FLOOD_PIECE_BYTES);
            context.write(&piece[..length as usize]).await;
            left -= length;
            // A flood that never yields would also never be stopped.
            tokio::task::yield_now().await;
        }
    };
    fake(tool("test.flood", "Writes a lot.", run), Effect::Read)
}

/// A tool with a record of its runs. Clones share the record.
#[derive(Clone)]
pub struct WatchedTool {
    tool: Arc<dyn Tool>,
    runs: Arc<Mutex<Vec<WatchedRun>>>,
}

/// One run of a watched tool.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedRun {
    /// Id of the call.
    pub call_id: CallId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Arguments of the call.
    pub arguments: Value,
    /// True if it returned. `false` while it runs, and permanently if it was dropped or panicked.
    pub returned: bool,
}

impl WatchedTool {
    /// Watches a tool.
    pub fn new(tool: impl Tool + 'static) -> Self {
        Self { tool: Arc::new(tool), runs: Arc::default() }
    }

    /// All runs so far, oldest first.
    pub fn runs(&self) -> Vec<WatchedRun> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Tool for WatchedTool {
    fn definition(&self) -> ToolSpec {
        self.tool.definition()
    }

    async fn call(&self, arguments: &CallArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let number = {
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.push(WatchedRun {
                call_id: context.call_id().clone(),
                attempt: context.attempt(),
                arguments: arguments.value.clone(),
                returned: false,
            });
            runs.len() - 1
        };
        let result = self.tool.call(arguments, context).await;
        if let Some(run) = self.runs.lock().unwrap_or_else(PoisonError::into_inner).get_mut(number) {
            run.returned = true;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use throughline_tools::{ToolExecutor, ToolInvocation, ToolRegistry};
    use throughline_wire::CallOutcome;
    use tokio::time::Instant;

    async fn run(name: &str, arguments: Value) -> CallOutcome {
        let registry = ToolRegistry::builder().tools(all()).build().expect("legal");
        let call = ToolInvocation::new("c", name, CallArguments::from_value(arguments));
        ToolExecutor::default().run(&registry, call, |_| async {}).await
    }

    #[tokio::test(start_paused = true)]
    async fn each_test_tool_ends_as_its_name_says() {
        let began = Instant::now();
        assert_eq!(run("test.echo", json!({"text": "hi"})).await, CallOutcome::Done(ToolOutput::text("hi")));
        assert_eq!(
            run("test.note", json!({"text": "hi"})).await,
            CallOutcome::Done(ToolOutput::text("noted: hi"))
        );
        assert!(
            matches!(run("test.fail", json!({"text": "no"})).await, CallOutcome::Failed { message, .. } if message == "no")
        );
        assert!(
            matches!(run("test.panic", json!({"text": "oh"})).await, CallOutcome::Failed { message, .. } if message.contains("oh"))
        );
        assert!(began.elapsed() < Duration::from_secs(1));
        assert_eq!(
            run("test.sleep", json!({"ms": 1_500})).await,
            CallOutcome::Done(ToolOutput::text("slept 1500 ms"))
        );
        assert_eq!(began.elapsed().as_millis(), 1_500);
        assert!(
            matches!(run("test.sleep", json!({"ms": 60_000})).await, CallOutcome::TimedOut { partial: Some(output), .. } if output.text == "slept")
        );
        assert!(matches!(run("test.stubborn", json!({})).await, CallOutcome::TimedOut { .. }));
        let CallOutcome::Done(output) = run("test.flood", json!({"bytes": 3_000_000})).await else {
            panic!("not done")
        };
        assert_eq!(output.size, 3_000_000);
        assert!(output.text.len() < 1_000_000, "head and tail only");
    }

    #[tokio::test(start_paused = true)]
    async fn watched_tool_records_a_run_that_did_not_return() {
        let watched = WatchedTool::new(stubborn());
        let registry = ToolRegistry::builder().tool(watched.clone()).build().expect("legal");
        let call = ToolInvocation::new("c", "test.stubborn", CallArguments::from_value(json!({})));
        ToolExecutor::default().run(&registry, call, |_| async {}).await;
        let expected = WatchedRun { call_id: "c".into(), attempt: 1, arguments: json!({}), returned: false };
        assert_eq!(watched.runs(), [expected]);
    }
}
