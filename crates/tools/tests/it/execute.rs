//! However a tool behaves, its call ends once, in time, and truthfully.

use serde_json::{Value, json};
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use throughline_engine::CallProgress;
use throughline_tools::{
    Effect, ExecutorLimits, FunctionTool, NoArguments, OutputSpool, ToolContext, ToolError, ToolExecutor,
    ToolInvocation, ToolProgress, ToolRegistry, tool,
};
use throughline_wire::{CallArguments, CallOutcome, NotStarted, StartState, ToolOutput};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const HALF_A_SECOND: Duration = Duration::from_millis(500);

fn call(arguments: Value) -> ToolInvocation {
    ToolInvocation {
        idempotency_key: "turn_1-call_1".into(),
        ..ToolInvocation::new("call_1", "t.t", CallArguments::from_value(arguments))
    }
}

async fn run_with(
    executor: &ToolExecutor,
    tool: FunctionTool,
    call: ToolInvocation,
) -> (CallOutcome, Duration) {
    let registry = ToolRegistry::builder().tool(tool).build().unwrap();
    let started = Instant::now();
    let outcome = executor.run(&registry, call, |_| async {}).await;
    (outcome, started.elapsed())
}

async fn run(tool: FunctionTool, call: ToolInvocation) -> (CallOutcome, Duration) {
    run_with(&ToolExecutor::default(), tool, call).await
}

fn cancelled_after(time: Duration) -> CancellationToken {
    let token = CancellationToken::new();
    let fired = token.clone();
    tokio::spawn(async move {
        sleep(time).await;
        fired.cancel();
    });
    token
}

/// Sets its flag when it is dropped.
struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn successful_tool_is_done() {
    let tool = tool("t.t", "", |_: NoArguments, _| async {
        sleep(HALF_A_SECOND).await;
        "fine"
    });
    assert_eq!(
        run(tool, call(json!({}))).await,
        (CallOutcome::Done(ToolOutput::text("fine")), HALF_A_SECOND)
    );
}

#[tokio::test(start_paused = true)]
async fn hanging_tool_times_out_with_partial_output() {
    let dropped = Arc::new(AtomicBool::new(false));
    let guard = dropped.clone();
    let hangs = tool("t.t", "", move |_: NoArguments, context: ToolContext| {
        let guard = Guard(guard.clone());
        async move {
            context.write("so far").await;
            pending::<()>().await;
            drop(guard);
        }
    });
    let (outcome, took) = run(hangs, call(json!({}))).await;
    assert_eq!(
        outcome,
        CallOutcome::TimedOut { limit_ms: 30_000, partial: Some(ToolOutput::text("so far")) }
    );
    assert_eq!(took, Duration::from_millis(31_500), "the default limit and the grace");
    assert!(dropped.load(Ordering::SeqCst), "the tool still runs");
}

#[tokio::test(start_paused = true)]
async fn timeout_of_the_call_overrides_the_tools() {
    let hangs = || tool("t.t", "", |_: NoArguments, _| pending::<()>()).timeout(Duration::from_secs(2));
    let (outcome, _) = run(hangs(), call(json!({}))).await;
    assert_eq!(outcome, CallOutcome::TimedOut { limit_ms: 2_000, partial: None });
    let shorter = ToolInvocation { timeout: Some(HALF_A_SECOND), ..call(json!({})) };
    assert_eq!(run(hangs(), shorter).await.0, CallOutcome::TimedOut { limit_ms: 500, partial: None });
}

#[tokio::test(start_paused = true)]
async fn cancelled_tool_may_return_partial_output() {
    let polite = tool("t.t", "", |_: NoArguments, context: ToolContext| async move {
        context.cancellation().cancelled().await;
        sleep(Duration::from_millis(100)).await;
        "three of ten"
    });
    let stopped = ToolInvocation { cancel: cancelled_after(HALF_A_SECOND), ..call(json!({})) };
    let (outcome, took) = run(polite, stopped).await;
    let partial = Some(ToolOutput::text("three of ten"));
    assert_eq!(outcome, CallOutcome::Cancelled(StartState::Yes { ran_ms: 600, partial }));
    assert_eq!(took, Duration::from_millis(600));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ignores_the_cancel_is_aborted_after_the_grace() {
    let ended = Arc::new(AtomicBool::new(false));
    let flag = ended.clone();
    let deaf = tool("t.t", "", move |_: NoArguments, _| {
        let flag = flag.clone();
        async move {
            sleep(Duration::from_secs(10)).await;
            flag.store(true, Ordering::SeqCst);
            "too late"
        }
    });
    let stopped = ToolInvocation { cancel: cancelled_after(HALF_A_SECOND), ..call(json!({})) };
    let (outcome, took) = run(deaf, stopped).await;
    assert_eq!(outcome, CallOutcome::Cancelled(StartState::Yes { ran_ms: 2_000, partial: None }));
    assert_eq!(took, Duration::from_millis(2_000));
    sleep(Duration::from_secs(60)).await;
    assert!(!ended.load(Ordering::SeqCst), "the tool went on after its end was reported");
}

#[tokio::test(start_paused = true)]
async fn call_cancelled_before_start_never_runs() {
    let starts = Arc::new(AtomicU32::new(0));
    let count = starts.clone();
    let counts = tool("t.t", "", move |_: NoArguments, _| {
        count.fetch_add(1, Ordering::SeqCst);
        async {}
    });
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (outcome, _) = run(counts, ToolInvocation { cancel, ..call(json!({})) }).await;
    assert_eq!(outcome, CallOutcome::NotStarted(NotStarted::Stopped));
    assert_eq!(starts.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_stops_the_tool() {
    let dropped = Arc::new(AtomicBool::new(false));
    let guard = dropped.clone();
    let hangs = tool("t.t", "", move |_: NoArguments, _| {
        let guard = Guard(guard.clone());
        async move {
            pending::<()>().await;
            drop(guard);
        }
    });
    let registry = ToolRegistry::builder().tool(hangs).build().unwrap();
    let executor = ToolExecutor::default();
    let running = executor.run(&registry, call(json!({})), |_| async {});
    assert!(tokio::time::timeout(HALF_A_SECOND, running).await.is_err());
    sleep(Duration::from_millis(1)).await;
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn panic_becomes_a_failure_with_its_message() {
    #[allow(unreachable_code)]
    async fn fixed(_: NoArguments, context: ToolContext) {
        context.write("before").await;
        panic!("the sky is falling");
    }
    let failed =
        |message: &str, partial: Option<ToolOutput>| CallOutcome::Failed { message: message.into(), partial };
    let (outcome, _) = run(tool("t.t", "", fixed), call(json!({}))).await;
    assert_eq!(outcome, failed("the tool panicked: the sky is falling", Some(ToolOutput::text("before"))));

    // Also when it panics before its first await, while the future is being made.
    let early = tool("t.t", "", |_: NoArguments, _| {
        if true {
            panic!("number {}", 7);
        }
        async {}
    });
    assert_eq!(run(early, call(json!({}))).await.0, failed("the tool panicked: number 7", None));
}

#[tokio::test(start_paused = true)]
async fn failures_carry_message_and_partial_output() {
    let returned = tool("t.t", "", |_: NoArguments, _| async {
        Err::<(), _>(ToolError::new("no such city").with_partial(ToolOutput::text("looked in 3 lists")))
    });
    let partial = Some(ToolOutput::text("looked in 3 lists"));
    assert_eq!(
        run(returned, call(json!({}))).await.0,
        CallOutcome::Failed { message: "no such city".into(), partial }
    );

    let not_begun = tool("t.t", "", |_: NoArguments, _| async {
        Err::<(), _>(ToolError::invalid_arguments("no such day"))
    });
    let why = NotStarted::InvalidArguments { message: "no such day".into() };
    assert_eq!(run(not_begun, call(json!({}))).await.0, CallOutcome::NotStarted(why));

    let flood =
        tool("t.t", "", |_: NoArguments, _| async { Err::<(), _>(ToolError::new("x".repeat(1 << 20))) });
    let CallOutcome::Failed { message, .. } = run(flood, call(json!({}))).await.0 else {
        panic!("not failed")
    };
    assert_eq!(message.chars().count(), throughline_tools::MESSAGE_CHARS_MAX + 1);
}

// The tool reports that the outcome is unknown; its effect decides what that means.
#[tokio::test(start_paused = true)]
async fn lost_call_is_unknown_only_if_it_may_have_had_effects() {
    for effect in Effect::ALL {
        let partial = Some(ToolOutput::text("page 1"));
        let returned = tool("t.t", "", |_: NoArguments, _| async {
            Err::<(), _>(ToolError::lost("the printer went silent").with_partial(ToolOutput::text("page 1")))
        });
        let streamed = tool("t.t", "", |_: NoArguments, context: ToolContext| async move {
            context.write("page 1").await;
            Err::<(), _>(ToolError::lost("the printer went silent"))
        });
        let message = "the printer went silent".to_owned();
        let expected = match effect {
            Effect::Pure | Effect::Read | Effect::Cosmetic => CallOutcome::Failed { message, partial },
            Effect::Idempotent | Effect::Write | Effect::External => {
                CallOutcome::Unknown { message: Some(message), partial }
            }
        };
        assert_eq!(run(returned.effect(effect), call(json!({}))).await.0, expected, "{effect:?}");
        assert_eq!(run(streamed.effect(effect), call(json!({}))).await.0, expected, "{effect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_and_unknown_tools_do_not_run() {
    let starts = Arc::new(AtomicU32::new(0));
    let count = starts.clone();
    let named = tool("t.t", "", move |_: NoArguments, _| {
        count.fetch_add(1, Ordering::SeqCst);
        async {}
    })
    .agent_callable()
    .effect(Effect::Pure);
    let registry = ToolRegistry::builder().tool(named).build().unwrap();
    let executor = ToolExecutor::default();
    let wrong = executor.run(&registry, call(json!([1])), |_| async {}).await;
    let message = "arguments: expected object, got an array ([1])".into();
    assert_eq!(wrong, CallOutcome::NotStarted(NotStarted::InvalidArguments { message }));

    let unknown = ToolInvocation { tool: "t.tt".into(), ..call(json!({})) };
    let unknown = executor.run(&registry, unknown, |_| async {}).await;
    assert_eq!(unknown, CallOutcome::NotStarted(NotStarted::UnknownTool { closest: vec!["t_t".into()] }));
    assert_eq!(starts.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn context_exposes_call_id_attempt_and_idempotency_key() {
    let asks = tool("t.t", "", |_: NoArguments, context: ToolContext| async move {
        format!("{} {} {}", context.call_id(), context.attempt(), context.idempotency_key())
    });
    let second = ToolInvocation { attempt: 2, ..call(json!({})) };
    assert_eq!(run(asks, second).await.0, CallOutcome::Done(ToolOutput::text("call_1 2 turn_1-call_1")));
}

/// A blocked thread cannot be stopped; but the turn does not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocking_tool_does_not_delay_its_outcome() {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let (ended, end) = std::sync::mpsc::channel();
    let blocks = tool("t.t", "", move |_: NoArguments, _| {
        let (held, ended) = (held.clone(), ended.clone());
        async move {
            // Until the test is over.
            let _ = held.lock().unwrap().recv();
            let _ = ended.send(());
            "too late"
        }
    });
    let short = Duration::from_millis(10);
    let limits = ExecutorLimits { grace: short, abort_wait: short, ..ExecutorLimits::default() };
    let call = ToolInvocation { timeout: Some(short), ..call(json!({})) };
    let (outcome, _) = run_with(&ToolExecutor::new(limits), blocks, call).await;
    assert_eq!(outcome, CallOutcome::TimedOut { limit_ms: 10, partial: None });
    assert!(end.try_recv().is_err(), "the tool had not blocked");
    drop(release);
}

/// A minimal driver: a separate task for each call.
#[tokio::test(start_paused = true)]
async fn calls_run_concurrently() {
    let sleeps = tool("t.t", "", |_: NoArguments, context: ToolContext| async move {
        sleep(HALF_A_SECOND).await;
        context.call_id().to_string()
    });
    let registry = Arc::new(ToolRegistry::builder().tool(sleeps).build().unwrap());
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..100 {
        let registry = registry.clone();
        tasks.spawn(async move {
            let call = ToolInvocation::new(format!("call_{n}"), "t.t", CallArguments::from_value(json!({})));
            (n, ToolExecutor::default().run(&registry, call, |_| async {}).await)
        });
    }
    for (n, outcome) in tasks.join_all().await {
        assert_eq!(outcome, CallOutcome::Done(ToolOutput::text(format!("call_{n}"))));
    }
    assert_eq!(started.elapsed(), HALF_A_SECOND);
}

async fn updates(tool: FunctionTool, receiver_takes: Duration) -> (CallOutcome, Vec<(u64, CallProgress)>) {
    let registry = ToolRegistry::builder().tool(tool).build().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let started = Instant::now();
    let outcome = ToolExecutor::default()
        .run(&registry, call(json!({})), |update| {
            let seen = seen.clone();
            async move {
                seen.lock().unwrap().push((started.elapsed().as_millis() as u64, update));
                sleep(receiver_takes).await;
            }
        })
        .await;
    let seen = seen.lock().unwrap().clone();
    (outcome, seen)
}

#[tokio::test(start_paused = true)]
async fn progress_is_immediate_then_at_most_five_per_second() {
    let chatty = || {
        tool("t.t", "", |_: NoArguments, context: ToolContext| async move {
            for n in 0..30 {
                context.report(
                    ToolProgress::new(f64::from(n)).with_total(30.0).with_message(format!("part {n}")),
                );
                context.write(format!("{n} ")).await;
                sleep(Duration::from_millis(33)).await;
            }
        })
    };
    let (outcome, seen) = updates(chatty(), Duration::ZERO).await;
    let times: Vec<u64> = seen.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [0, 200, 400, 600, 800]);
    let CallProgress { progress, total, message, .. } = &seen[1].1;
    assert_eq!((*progress, *total), (Some(6.0), Some(30.0)));
    assert_eq!(message.as_deref(), Some("part 6"), "the latest counts");
    let streamed: String = seen.iter().filter_map(|(_, update)| update.output_delta.as_deref()).collect();
    let CallOutcome::Done(output) = outcome else { panic!("{outcome:?}") };
    assert!(output.text.starts_with(&streamed) && streamed.ends_with("24 "), "{streamed}");
    assert!(output.text.ends_with("28 29 "));

    let (outcome, seen) = updates(chatty(), Duration::from_secs(3600)).await;
    assert!(matches!(outcome, CallOutcome::Done(_)), "a slow receiver delays the end");
    assert_eq!(seen.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn output_updates_never_split_a_character() {
    let cut = tool("t.t", "", |_: NoArguments, context: ToolContext| async move {
        for byte in "天气".as_bytes() {
            context.write([*byte]).await;
            sleep(Duration::from_millis(300)).await;
        }
    });
    let (_, seen) = updates(cut, Duration::ZERO).await;
    let pieces: Vec<_> = seen.iter().filter_map(|(_, update)| update.output_delta.as_deref()).collect();
    assert_eq!(pieces, ["天", "气"]);
}

#[tokio::test(start_paused = true)]
async fn output_of_a_timed_out_tool_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let executor = ToolExecutor::default().with_spool(OutputSpool::new(folder.path()));
    async fn endless(_: NoArguments, context: ToolContext) {
        loop {
            context.write([b'y'; 10_000]).await;
            sleep(Duration::from_millis(100)).await;
        }
    }
    let endless = tool("t.t", "", endless).timeout(Duration::from_secs(1));
    let (outcome, _) = run_with(&executor, endless, call(json!({}))).await;
    let CallOutcome::TimedOut { limit_ms: 1_000, partial: Some(partial) } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(partial.text.len() <= 32 * 1024);
    assert!(partial.size >= 100_000, "{}", partial.size);
    assert_eq!(std::fs::metadata(partial.spilled_to.unwrap()).unwrap().len(), partial.size);
}
