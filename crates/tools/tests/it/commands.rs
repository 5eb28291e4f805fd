//! Commands as tools, with real programs: their input, their output, their end, and the faults of unusable
//! ones.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use throughline_engine::CallProgress;
use throughline_tools::command::{CommandSource, CommandTool};
use throughline_tools::process::{ExecHelper, SpawnContext};
use throughline_tools::{ExecutorLimits, SourceFault, ToolExecutor, ToolInvocation, ToolRegistry, Toolbox};
use throughline_wire::{CallArguments, CallOutcome, NotStarted, ToolOutput};
use tokio_util::sync::CancellationToken;

fn spawn_context(folder: &Path) -> SpawnContext {
    let mut here = SpawnContext::of_this_process();
    here.environment.insert("COMMANDS_TEST_TOKEN".into(), SECRET.into());
    folder.clone_into(&mut here.folder);
    here.with_helper(ExecHelper::new(env!("CARGO_BIN_EXE_throughline-exec"), []))
}

const SECRET: &str = "tl-canary-0123456789";

async fn toolbox(folder: &Path, commands: Value) -> Toolbox {
    let commands: BTreeMap<String, CommandTool> = serde_json::from_value(commands).unwrap();
    let toolbox = Toolbox::new([]).unwrap();
    toolbox.add(Arc::new(CommandSource::new(commands, spawn_context(folder))));
    assert_eq!(toolbox.wait_ready(Duration::from_secs(20)).await, Vec::<String>::new());
    toolbox
}

/// The registry of one command `test.it`, which must be without fault.
async fn one(command: Value) -> Arc<ToolRegistry> {
    let toolbox = toolbox(&std::env::temp_dir(), json!({ "test.it": command })).await;
    assert_eq!(toolbox.faults(), []);
    toolbox.registry()
}

fn shell(script: &str) -> Value {
    json!({"description": "a test", "argv": ["sh", "-c", script], "parameters": {"type": "object"}})
}

fn with(mut command: Value, more: Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        command[key] = value.clone();
    }
    command
}

async fn run(command: Value, arguments: Value) -> CallOutcome {
    let registry = one(command).await;
    let call = ToolInvocation::new("call_1", "test.it", CallArguments::from_value(arguments));
    ToolExecutor::default().run(&registry, call, |_| async {}).await
}

fn done(outcome: CallOutcome) -> ToolOutput {
    match outcome {
        CallOutcome::Done(output) => output,
        other => panic!("{other:?}"),
    }
}

fn failed(outcome: CallOutcome) -> (String, String) {
    match outcome {
        CallOutcome::Failed { message, partial }
        // Commands without a declared effect may do anything.
        | CallOutcome::Unknown { message: Some(message), partial } => {
            (message, partial.map_or_else(String::new, |output| output.text))
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn command_arguments_arrive_as_json_or_argv_without_a_shell() {
    let evil = "a b; touch /tmp/owned $(id) `id` \"'\n*";
    let output = done(run(with(shell("cat"), json!({})), json!({"text": evil, "n": [1, {"a": null}]})).await);
    assert_eq!(output.text, format!("{}\n", json!({"text": evil, "n": [1, {"a": null}]})));

    let items = json!({"description": "", "argv": ["printf", "<%s>", "{text}", "{{text}}", "--n={n}"], "input": "none"});
    assert_eq!(
        done(run(items.clone(), json!({"text": evil, "n": "5"})).await).text,
        format!("<{evil}><{{text}}><--n=5>")
    );
    let outcome = run(items.clone(), json!({"text": "-rf", "n": "5"})).await;
    let CallOutcome::NotStarted(NotStarted::InvalidArguments { message }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(message, "/text: must not begin with `-`, which would be read as an option");
    let outcome = run(items, json!({"text": "x"})).await;
    let CallOutcome::NotStarted(NotStarted::InvalidArguments { message }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(message, "/n: missing, expected string", "a schema is made of the names");
}

#[tokio::test]
async fn results_are_text_json_or_failures() {
    let json_command = |script: &str| with(shell(script), json!({"output": "json"}));
    let output = done(run(json_command("echo '{\"degrees\": 21}'; echo noise >&2"), json!({})).await);
    assert_eq!((output.value, output.text.as_str()), (Some(json!({"degrees": 21})), "{\"degrees\":21}"));
    let output = done(run(json_command("echo '\"just text\"'"), json!({})).await);
    assert_eq!(output.text, "just text");
    let (why, partial) = failed(run(json_command("echo oops"), json!({})).await);
    assert_eq!(why, "its output is not JSON: expected value at line 1 column 1");
    assert_eq!(partial, "oops\n");

    let output = done(run(shell("printf '\\033[31mred\\033[0m nul\\0 \\377 end\\r\\n'"), json!({})).await);
    assert_eq!(
        output.text, "red nul \u{fffd} end\n",
        "no escape sequences, no control characters, no torn text"
    );

    let (why, partial) = failed(run(shell("echo out; echo 'cannot do it' >&2; exit 3"), json!({})).await);
    assert_eq!((why.as_str(), partial.as_str()), ("sh exited with code 3: cannot do it", "out\n"));
    let (why, _) = failed(run(shell("kill -SEGV $$"), json!({})).await);
    assert_eq!(why, "sh was killed by signal 11 (SIGSEGV)");
    let (why, _) = failed(
        run(shell("head -c 100000 /dev/zero | tr '\\0' 'x' >&2; echo last words >&2; exit 1"), json!({}))
            .await,
    );
    assert!(why.ends_with("last words") && why.len() < 4_200, "{} bytes", why.len());
    assert_eq!(done(run(shell("exit 0"), json!({})).await).text, "", "nothing said is nothing said");
}

#[tokio::test]
async fn command_progress_is_reported_while_it_runs() {
    // It continues once its progress was seen, so that it cannot be over before.
    let folder = tempfile::tempdir().unwrap();
    let seen_it = folder.path().join("seen");
    let script = format!(
        "echo '@progress {{\"progress\": 1, \"total\": 2, \"message\": \"half\"}}' >&2; echo first; \
         while ! [ -e {} ]; do sleep 0.01; done; read line; echo got $line",
        seen_it.display()
    );
    let registry = one(with(shell(&script), json!({"input": "json"}))).await;
    let seen: Arc<Mutex<Vec<CallProgress>>> = Arc::default();
    let call = ToolInvocation::new("call_1", "test.it", CallArguments::from_value(json!({"x": 1})));
    let executor =
        ToolExecutor::new(ExecutorLimits { progress_interval: Duration::ZERO, ..ExecutorLimits::default() });
    let outcome = executor
        .run(&registry, call, |progress| {
            if progress.message.is_some() {
                std::fs::write(&seen_it, "").unwrap();
            }
            seen.lock().unwrap().push(progress);
            async {}
        })
        .await;
    assert_eq!(done(outcome).text, "first\ngot {\"x\":1}\n", "progress is not output");
    let seen = seen.lock().unwrap();
    let half = seen.iter().find_map(|progress| progress.message.as_deref());
    assert_eq!(half, Some("half"), "{seen:?}");
}

#[tokio::test]
async fn env_is_filtered_and_secrets_redacted() {
    let script = "echo token=$TOKEN let=$COMMANDS_TEST_TOKEN cargo=$CARGO_PKG_NAME; printf %s \"user:$TOKEN\" | base64; \
        echo \"$TOKEN\" | cut -c1-5 | tr -d '\\n'; echo \"$TOKEN\" | cut -c6-; echo \"oh $TOKEN\" >&2; echo \"@progress {\\\"message\\\":\\\"$TOKEN\\\"}\" >&2; exit 1";
    let command = with(
        shell(script),
        json!({"env": {"TOKEN": "$COMMANDS_TEST_TOKEN"}, "env_allow": ["COMMANDS_TEST_TOKEN"]}),
    );
    let registry = one(command).await;
    let everything: Arc<Mutex<String>> = Arc::default();
    let call = ToolInvocation::new("call_1", "test.it", CallArguments::from_value(json!({})));
    let outcome = ToolExecutor::default()
        .run(&registry, call, |progress| {
            everything.lock().unwrap().push_str(&format!("{progress:?}"));
            async {}
        })
        .await;
    let everything_shown = format!("{outcome:?} {}", everything.lock().unwrap());
    for form in [SECRET, "canary", "Y2FuYXJ5", "NhbmFye", "jYW5hcn"] {
        assert!(!everything_shown.contains(form), "{form} in {everything_shown}");
    }
    let (why, partial) = failed(outcome);
    assert!(partial.starts_with("token=… let=… cargo=\n"), "{partial}");
    assert_eq!(why, "sh exited with code 1: oh …");
}

/// Command lines of living processes with this text in them.
fn alive(tag: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let lines = processes.filter_map(|process| std::fs::read(process.join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(tag)).collect()
}

/// Forks, detaches, drops its environment, ignores SIGTERM, floods, and never ends.
fn nightmare(tag: &str) -> String {
    format!(
        "trap '' TERM INT HUP
         sleep {tag}1 &
         (env -i setsid sh -c 'trap \"\" TERM HUP; sleep {tag}2; sleep {tag}3' > /dev/null 2>&1 &)
         echo HEAD
         (while :; do sleep {tag}4; done) &
         yes flood"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn flooding_forking_command_is_killed_at_its_time_limit() {
    let tag = format!("98765{}.", std::process::id());
    let limit = Duration::from_secs(2);
    let command = with(shell(&nightmare(&tag)), json!({"timeout_ms": limit.as_millis() as u64}));
    let registry = one(command).await;
    let call = ToolInvocation::new("call_1", "test.it", CallArguments::from_value(json!({})));
    let started = Instant::now();
    let outcome = ToolExecutor::default().run(&registry, call, |_| async {}).await;
    let took = started.elapsed();
    assert_eq!(alive(&tag), Vec::<String>::new(), "something survived");
    assert!(took >= limit, "{took:?}");
    let CallOutcome::TimedOut { limit_ms, partial } = &outcome else { panic!("{outcome:?}") };
    assert_eq!(*limit_ms, 2_000);
    let partial = partial.as_ref().unwrap();
    assert!(partial.text.starts_with("HEAD\nflood\n"), "{}", &partial.text[..100]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_and_json_flooding_commands_are_stopped() {
    let tag = format!("98764{}.", std::process::id());
    let registry = one(shell(&format!(
        "trap '' TERM; echo started; setsid sleep {tag}1 & while :; do sleep {tag}2; done"
    )))
    .await;
    let cancel = CancellationToken::new();
    let call = ToolInvocation {
        cancel: cancel.clone(),
        ..ToolInvocation::new("call_1", "test.it", CallArguments::from_value(json!({})))
    };
    let outcome = ToolExecutor::default()
        .run(&registry, call, |progress| {
            if progress.output_delta.is_some() {
                cancel.cancel();
            }
            async {}
        })
        .await;
    let CallOutcome::Cancelled(throughline_wire::StartState::Yes { partial, .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(partial.unwrap().text, "started\n");
    assert_eq!(alive(&tag), Vec::<String>::new(), "something survived");

    let flood = with(shell("trap '' TERM; yes '[[[['"), json!({"output": "json"}));
    let (why, partial) = failed(run(flood, json!({})).await);
    assert_eq!(why, "it wrote more than 16777216 bytes of JSON, and was stopped");
    assert!(partial.starts_with("[[[[") && partial.len() < 33_000);
}

fn faults_of(toolbox: &Toolbox) -> Vec<(String, String)> {
    let describe = |fault: SourceFault| {
        assert_eq!(fault.source, "commands");
        assert!(fault.remedy.is_some(), "{fault:?} has no remedy");
        (fault.tool.map(|tool| tool.to_string()).unwrap_or_default(), fault.message)
    };
    toolbox.faults().into_iter().map(describe).collect()
}

#[tokio::test]
async fn invalid_command_is_one_fault_and_others_work() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "").unwrap();
    let here = folder.path().display();
    let command = |argv: Value, more: Value| with(json!({"description": "d", "argv": argv}), more);
    for (name, settings, tool, message) in [
        ("t.a", command(json!(["no-such-program-here"]), json!({})), "t.a", "there is no program `no-such-program-here` in PATH".to_owned()),
        ("t.a", command(json!(["./missing.sh"]), json!({})), "t.a", format!("there is no program {here}/./missing.sh")),
        ("t.a", command(json!(["./notes.txt"]), json!({})), "t.a", format!("{here}/./notes.txt is not a program that may be run")),
        ("t.a", command(json!([]), json!({})), "t.a", "no program is named".to_owned()),
        ("short", command(json!(["nope-nope"]), json!({})), "commands.short", "there is no program `nope-nope`".to_owned()),
        ("white space.x", command(json!(["true"]), json!({})), "white space.x", "`white space.x` cannot be a tool's name: it has white space in it".to_owned()),
        ("other", command(json!(["true"]), json!({"name": "good.one"})), "good.one", "there are two tools named `good.one`, from commands and from commands".to_owned()),
        ("t.a", command(json!(["true"]), json!({"parameters": {"type": "string"}})), "t.a", "tool `t.a`: the schema cannot be used: the arguments of a tool are an object: `\"type\": \"object\"`".to_owned()),
        ("t.a", command(json!(["true"]), json!({"parameters": "{\"type\": "})), "t.a", "argv: `parameters` is not JSON: EOF while parsing a value at line 1 column 9".to_owned()),
        ("t.a", command(json!(["awk", "{print}"]), json!({"parameters": {"type": "object"}})), "t.a", "argv: {print} is no parameter of the schema".to_owned()),
        ("t.a", command(json!(["true", "{a}"]), json!({"parameters": {"type": "object", "properties": {"a": {"type": "array"}}}})), "t.a", "argv: {a} is a list or an object, which cannot be inserted into text".to_owned()),
        ("t.a", command(json!(["true"]), json!({"cwd": "gone"})), "t.a", format!("cwd: there is no folder {here}/gone")),
        ("t.a", command(json!(["true"]), json!({"env": {"A": "$COMMANDS_TEST_ABSENT"}})), "t.a", "env.A: the environment variable COMMANDS_TEST_ABSENT is not set".to_owned()),
        ("t.a", command(json!(["true"]), json!({"sandbox": {"write": ["gone"]}})), "t.a", format!("`sandbox` contains {here}/gone, which does not exist")),
        ("t.a", command(json!(["true"]), json!({"timeout_ms": 0})), "t.a", "timeout_ms is 0, so every call would time out".to_owned()),
    ] {
        let commands = json!({"good.one": command(json!(["true"]), json!({})), name: settings});
        let toolbox = toolbox(folder.path(), commands).await;
        let faults = faults_of(&toolbox);
        assert_eq!(faults.len(), 1, "{message}: {faults:?}");
        assert!(faults[0].0 == tool && faults[0].1.starts_with(&message), "expected {tool}: {message}, got {faults:?}");
        let names: Vec<_> = toolbox.registry().iter().map(|tool| tool.spec().name.to_string()).collect();
        assert_eq!(names, ["good.one"], "{message}");
    }
}

// Where nothing can confine, what must be confined is not offered.
#[tokio::test]
async fn a_required_sandbox_without_a_helper_is_a_fault() {
    let required = with(shell("true"), json!({"sandbox": {"mode": "required"}}));
    let commands = serde_json::from_value(json!({"t.a": required, "t.b": shell("true")})).unwrap();
    let toolbox = Toolbox::new([]).unwrap();
    toolbox.add(Arc::new(CommandSource::new(commands, SpawnContext::of_this_process())));
    toolbox.wait_ready(Duration::from_secs(20)).await;
    let faults = faults_of(&toolbox);
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].1, "its sandbox is required but not available: this program has no sandbox helper");
    assert_eq!(toolbox.registry().len(), 1);
}

#[test]
fn command_settings_reject_unknown_fields_and_values() {
    let read = |text: Value| serde_json::from_value::<CommandTool>(text).unwrap_err().to_string();
    let base = json!({"description": "d", "argv": ["true"]});
    for (more, expected) in [
        (json!({"efect": "read"}), "unknown field `efect`"),
        (
            json!({"effect": "raed"}),
            "there is no effect `raed`; there are pure, read, cosmetic, idempotent, write, external",
        ),
        (json!({"output": "xml"}), "unknown variant `xml`"),
        (json!({"sandbox": {"mode": "maybe"}}), "unknown variant `maybe`"),
        (json!({"limits": {"memory": 1}}), "unknown field `memory`"),
        (json!({"argv": "rm -rf"}), "invalid type: string \"rm -rf\", expected a sequence"),
    ] {
        let error = read(with(base.clone(), more));
        assert!(error.contains(expected), "{error}");
    }
}
