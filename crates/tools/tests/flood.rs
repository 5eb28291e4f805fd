//! Memory stays flat whatever a tool writes. In a process of its own, because it measures the process. R: L5
#![allow(clippy::unwrap_used)]

use serde_json::json;
use throughline_tools::{
    ExecutorLimits, NoArguments, OutputLimits, OutputSpool, ToolContext, ToolExecutor, ToolInvocation,
    ToolRegistry, tool,
};
use throughline_wire::{CallArguments, CallOutcome};

/// Memory of this process in bytes, at its highest.
#[cfg(target_os = "linux")]
fn memory_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn a_flood_of_200_megabytes_stays_out_of_memory() {
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
    let before = memory_peak();
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
