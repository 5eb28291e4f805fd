//! Memory stays flat for any output of a tool. A separate process, because the test measures the process.
#![allow(clippy::unwrap_used)]

use serde_json::json;
use throughline_tools::{
    ExecutorLimits, NoArguments, OutputLimits, OutputSpool, ToolContext, ToolExecutor, ToolInvocation,
    ToolRegistry, tool,
};
use throughline_wire::{CallArguments, CallOutcome};

/// Memory of this process in bytes, at its highest since [`forget_peak`].
#[cfg(target_os = "linux")]
fn memory_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Resets the peak of the memory use (proc(5), `clear_refs`). Where that is not possible, only growth above
/// the old peak is seen.
#[cfg(target_os = "linux")]
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// A test that ran in parallel would be measured, too.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test]
async fn a_flood_of_200_megabytes_stays_out_of_memory() {
    let _alone = ONE_AT_A_TIME.lock().await;
    const PIECE: usize = 1 << 20;
    const PIECES: usize = 200;
    let folder = tempfile::tempdir().unwrap();
    let executor = ToolExecutor::new(ExecutorLimits::default()).with_spool(OutputSpool::new(folder.path()));
    let floods = tool("t.t", "", |_: NoArguments, context: ToolContext| async move {
        context.write("the first line\n").await;
        let piece = "0123456789abcde\n".repeat(PIECE / 16);
        for _ in 0..PIECES {
            context.write(&piece).await;
        }
        context.write("the last line\n").await;
    });
    #[cfg(target_os = "linux")]
    let before = {
        forget_peak();
        memory_peak()
    };
    let registry = ToolRegistry::builder().tool(floods).build().unwrap();
    let call = ToolInvocation::new("call_1", "t.t", CallArguments::from_value(json!({})));
    let outcome = executor.run(&registry, call, |_| async {}).await;
    #[cfg(target_os = "linux")]
    {
        let more = memory_peak() - before;
        assert!(more < 24 << 20, "{more} bytes more");
    }

    let CallOutcome::Done(output) = outcome else { panic!("{outcome:?}") };
    assert_eq!(output.size, (PIECE * PIECES) as u64 + 29);
    assert!(output.text.len() <= 32 * 1024);
    assert!(output.text.starts_with("the first line\n") && output.text.ends_with("the last line\n"));
    assert!(
        output.text.contains("this output of 209.7 MB is left out; the user has the first 67.1 MB of it")
    );
    let spooled = std::fs::metadata(output.spilled_to.unwrap()).unwrap().len();
    assert_eq!(spooled, OutputLimits::default().spooled_bytes_max);
}

#[cfg(all(target_os = "linux", feature = "process"))]
#[tokio::test(flavor = "multi_thread")]
async fn command_flood_keeps_head_and_tail_in_bounded_memory() {
    use std::time::Duration;
    use throughline_tools::Toolbox;
    use throughline_tools::command::CommandSource;
    use throughline_tools::process::{ExecHelper, SpawnContext};

    let _alone = ONE_AT_A_TIME.lock().await;
    let script = "echo HEAD; yes flood | head -c 200000000; echo TAIL";
    // The machine may be busy.
    let flood =
        json!({"t.flood": {"description": "a test", "argv": ["sh", "-c", script], "timeout_ms": 300_000}});
    let helper = ExecHelper::new(env!("CARGO_BIN_EXE_throughline-exec"), []);
    let spawn_context = SpawnContext::of_this_process().with_helper(helper);
    let toolbox = Toolbox::new([]).unwrap();
    toolbox
        .add(std::sync::Arc::new(CommandSource::new(serde_json::from_value(flood).unwrap(), spawn_context)));
    assert_eq!(toolbox.wait_ready(Duration::from_secs(60)).await, Vec::<String>::new());
    let folder = tempfile::tempdir().unwrap();
    let executor = ToolExecutor::default().with_spool(OutputSpool::new(folder.path()));
    let call = ToolInvocation::new("call_1", "t.flood", CallArguments::from_value(json!({})));
    forget_peak();
    let before = memory_peak();
    let outcome = executor.run(&toolbox.registry(), call, |_| async {}).await;
    let more = memory_peak() - before;
    let CallOutcome::Done(output) = outcome else { panic!("{outcome:?}") };
    assert!(output.text.starts_with("HEAD\nflood\n"), "{}", &output.text[..100]);
    assert!(output.text.ends_with("TAIL\n"), "ends {:?}", &output.text[output.text.len() - 100..]);
    assert_eq!(output.size, 200_000_010);
    assert!(output.text.len() <= 33_000, "what the model reads: {} bytes", output.text.len());
    assert!(more < 24 << 20, "{more} bytes more");
}
