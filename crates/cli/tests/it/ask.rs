//! `throughline ask` on the real binary against a scripted upstream, in every dialect that can be sent.

use crate::support::played::{Played, check_log};
use crate::support::throughline;
use serde_json::{Value, json};
use throughline_testkit::{CallMove, FakeDialect, ModelScript, ScriptFinish, ScriptMove, ScriptQueue};

/// Runs one question with `--events` in every dialect, and checks exit code and the statuses of the calls.
#[track_caller]
fn check(steps: &[ModelScript], code: i32, statuses: &[&str]) {
    for dialect in FakeDialect::ALL {
        let played = Played::new(ScriptQueue::new(steps.to_vec()));
        let (mut command, _folder) = throughline();
        let output =
            command.args(["ask", "--events", "go"]).args(played.arguments(dialect)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{dialect}: {said}");
        let events = check_log(&String::from_utf8_lossy(&output.stdout));
        let ended: Vec<&str> = events
            .iter()
            .filter(|event| event["type"] == "tool_result")
            .map(|event| event["status"].as_str().unwrap())
            .collect();
        assert_eq!(ended, statuses, "{dialect}");
        assert_eq!(
            played.upstream.violations(),
            [],
            "{dialect}: what was sent is what a real provider takes"
        );
    }
}

#[test]
fn two_calls_in_one_step_succeed() {
    let calls = ScriptMove::Parallel(vec![
        CallMove::new("time_now", json!({"timezone": "Asia/Tokyo"})),
        CallMove::new("time_now", json!({"timezone": "Europe/Paris"})),
    ]);
    check(
        &[ModelScript::new().say("Let me look. ").then(calls), ModelScript::new().say("Both.")],
        0,
        &["success", "success"],
    );
}

#[test]
fn call_that_needs_approval_is_denied_without_a_terminal() {
    let entry = json!({"title": "lunch", "when": "2026-11-22T12:00:00"});
    check(
        &[ModelScript::new().call("demo_calendar", entry), ModelScript::new().say("As you wish.")],
        0,
        &["denied"],
    );
}

#[test]
fn failing_and_unknown_tools_do_not_end_the_turn() {
    let script = ModelScript::new().call("demo_fail", json!({})).call("tme_now", json!({}));
    let played_twice = [script, ModelScript::new().say("Well.")];
    for dialect in FakeDialect::ALL {
        let played = Played::new(ScriptQueue::new(played_twice.to_vec()));
        let (mut command, _folder) = throughline();
        let output =
            command.args(["ask", "--events", "go"]).args(played.arguments(dialect)).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{dialect}");
        let events = check_log(&String::from_utf8_lossy(&output.stdout));
        let mut ended: Vec<&str> = events
            .iter()
            .filter(|event| event["type"] == "tool_result")
            .map(|event| event["status"].as_str().unwrap())
            .collect();
        ended.sort_unstable();
        assert_eq!(ended, ["error", "not_started"], "{dialect}");
    }
}

#[test]
fn call_with_invalid_json_arguments_is_not_started() {
    let played = Played::new(ScriptQueue::new([
        ModelScript::new().then(ScriptMove::Call(CallMove::new("time_now", json!("{\"timezone\": ")))),
        ModelScript::new().say("Again."),
    ]));
    let (mut command, _folder) = throughline();
    let output = command
        .args(["ask", "--events", "go"])
        .args(played.arguments(FakeDialect::OpenaiChat))
        .output()
        .unwrap();
    let events = check_log(&String::from_utf8_lossy(&output.stdout));
    let result = events.iter().find(|event| event["type"] == "tool_result").unwrap();
    assert_eq!(
        (&result["status"], &result["error"]["code"]),
        (&json!("not_started"), &json!("invalid_arguments"))
    );
}

#[test]
fn cut_stream_exits_with_code_2() {
    check(&[ModelScript::new().say("This will not").then(ScriptMove::Cut)], 2, &[]);
}

#[test]
fn reply_cut_by_length_exits_with_code_3() {
    check(&[ModelScript::new().say("half").then(ScriptMove::Finish(ScriptFinish::Length))], 3, &[]);
}

#[test]
fn rate_limited_request_is_retried() {
    check(&[ModelScript::rate_limited(0), ModelScript::new().say("Now.")], 0, &[]);
}

#[test]
fn upstream_error_prints_status_and_remedy() {
    let played = Played::new(ScriptQueue::new([ModelScript::status(401)]));
    let (mut command, _folder) = throughline();
    let output = command.args(["ask", "go"]).args(played.arguments(FakeDialect::Anthropic)).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("✘ ") && said.contains("401") && said.contains("try: "), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn quiet_prints_only_the_answer_and_errors() {
    let played = Played::new(ScriptQueue::new([
        ModelScript::new().call("time_now", json!({"timezone": "Asia/Tokyo"})),
        ModelScript::new().say("Late."),
        ModelScript::status(401),
    ]));
    let quiet = || {
        let (mut command, _folder) = throughline();
        command.args(["ask", "--quiet", "go"]).args(played.arguments(FakeDialect::OpenaiChat));
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    assert_eq!(quiet(), (Some(0), "Late.\n".to_owned(), String::new()));
    let (code, said, complaint) = quiet();
    assert_eq!(
        (code, said.as_str(), complaint.contains("401")),
        (Some(2), "", true),
        "errors are told: {complaint}"
    );
}

#[test]
fn mock_prints_an_ask_command_that_works() {
    use std::io::{BufRead, BufReader};
    let (given, folder) = throughline();
    let script =
        "key = \"sk-oa\"\nmodels = [\"gpt-fake\"]\n[[rules]]\nthen = [{ say = \"Hello to you.\" }]\n";
    std::fs::write(folder.path().join("oa.toml"), script).unwrap();
    let mut mock = std::process::Command::new(given.get_program())
        .args(["mock", "--script", "oa.toml"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(mock.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines
        .filter_map(|line| line.strip_prefix("try: MOCK_KEY=sk-oa throughline ").map(str::to_owned))
        .next();
    let (mut ask, _own) = throughline();
    let words: Vec<String> =
        line.expect("a line to try").replace('"', "").split(' ').map(str::to_owned).collect();
    let output = ask.args(words).env("MOCK_KEY", "sk-oa").output().unwrap();
    mock.kill().unwrap();
    mock.wait().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "Hello to you.\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn model_without_upstream_uses_the_only_configured_one() {
    let played = Played::new(ScriptQueue::new([ModelScript::new().say("Hello.")]));
    let file = |upstreams: &[&str]| {
        let url = played.upstream.base_url(FakeDialect::OpenaiChat);
        let section =
            |name: &&str| format!("[upstreams.{name}]\ndialect = \"openai-chat\"\nbase_url = \"{url}\"\n");
        upstreams.iter().map(section).collect::<String>() + "[agents.default]\nmodel = \"work/first\"\n"
    };
    let ask = |upstreams: &[&str], model: &str| {
        let (mut command, folder) = throughline();
        std::fs::write(folder.path().join("throughline.toml"), file(upstreams)).unwrap();
        let output = command.args(["ask", "-m", model, "go"]).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = ask(&["work"], "gpt-4");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(played.upstream.requests()[0].body["model"], "gpt-4");
    let (code, said) = ask(&["work", "other"], "gpt-4");
    assert!(code == Some(1) && said.contains("`gpt-4` is not `upstream/model`"), "{said}");
    for upstream in ["openai", "work"] {
        let (code, said) = ask(&["work"], upstream);
        assert!(code == Some(1) && said.contains(&format!("throughline connect {upstream}")), "{said}");
    }
}

#[test]
fn unreachable_upstream_error_names_its_address() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (mut command, _folder) = throughline();
    let address = format!("http://{closed}/v1");
    let output = command
        .args(["ask", "go", "--base-url", &address, "--api", "openai-chat", "--model", "m"])
        .env("THROUGHLINE_LANG", "en")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&closed.to_string()) && !said.contains("given"), "{said}");
}

#[test]
fn text_goes_to_stdout_and_notes_to_stderr() {
    let played = Played::new(ScriptQueue::new([
        ModelScript::new().say("Let me look.\n").call("time_now", json!({"timezone": "Asia/Tokyo"})),
        ModelScript::new().say("Late."),
    ]));
    let (mut command, _folder) = throughline();
    let output = command
        .args(["ask", "what", "time?"])
        .args(played.arguments(FakeDialect::OpenaiChat))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Let me look.\n\nLate.\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("✔ time.now  timezone: Asia/Tokyo"), "{said}");
    assert_eq!(played.upstream.requests()[0].user_text(), "what time?");
}

#[test]
fn prompt_from_stdin_and_image_are_sent() {
    let played = Played::new(ScriptQueue::new([ModelScript::new().say("ok")]));
    let (mut command, folder) = throughline();
    std::fs::write(folder.path().join("a.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    command
        .args(["ask", "-", "Summarize.", "--image", "a.png"])
        .args(played.arguments(FakeDialect::Anthropic))
        .write_stdin("a long text\n")
        .assert()
        .success();
    assert_eq!(played.upstream.requests()[0].user_text(), "a long text\n\nSummarize.");
    let body = String::from_utf8(played.upstream.bodies().remove(0)).unwrap();
    assert!(body.contains("image/png"), "{body}");
}

#[test]
fn streaming_off_prints_the_same_text() {
    for dialect in FakeDialect::ALL {
        let played = Played::new(ScriptQueue::new([
            ModelScript::new().say("Let me look. ").call("time_now", json!({"timezone": "Asia/Tokyo"})),
            ModelScript::new().say("Late."),
        ]));
        let (mut command, _folder) = throughline();
        let output = command
            .args(["ask", "--streaming", "off", "go"])
            .args(played.arguments(dialect))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            said,
            "Let me look. \n\nLate.\n",
            "{dialect}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn json_flag_prints_the_message_as_json() {
    let played = Played::new(ScriptQueue::new([ModelScript::new().think("hm").say("Yes.")]));
    let (mut command, _folder) = throughline();
    let output = command
        .args(["ask", "--json", "go"])
        .args(played.arguments(FakeDialect::Anthropic))
        .output()
        .unwrap();
    let message: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kinds: Vec<&str> =
        message["blocks"].as_array().unwrap().iter().map(|block| block["kind"].as_str().unwrap()).collect();
    assert_eq!((kinds, &message["status"]), (vec!["thinking", "text"], &json!("completed")));
}

#[test]
fn approve_flag_runs_calls_that_need_approval() {
    let entry = json!({"title": "lunch", "when": "2026-11-22T12:00:00"});
    let played = Played::new(ScriptQueue::new([
        ModelScript::new().call("demo_calendar", entry),
        ModelScript::new().say("Done."),
    ]));
    let (mut command, _folder) = throughline();
    let output = command
        .args(["ask", "--approve", "go"])
        .args(played.arguments(FakeDialect::Gemini))
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("✔ demo.calendar"));
}

/// Starts a question, waits until `ready` is on standard output, sends SIGINT, and gives exit code, output and log.
#[cfg(unix)]
fn interrupted(steps: &[ModelScript], form: &str, ready: &str) -> (Option<i32>, String, Vec<String>) {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    let played = Played::new(ScriptQueue::new(steps.to_vec()));
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("throughline"))
        .args(["ask", form, "go"])
        .args(played.arguments(FakeDialect::OpenaiChat))
        .current_dir(folder.path())
        .env("LC_ALL", "C.UTF-8")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut log = String::new();
    for line in lines.by_ref().map(Result::unwrap) {
        log.push_str(&line);
        log.push('\n');
        if line.contains(ready) {
            break;
        }
    }
    let id = child.id();
    assert!(Command::new("kill").args(["-INT", &id.to_string()]).status().unwrap().success());
    for line in lines.map(Result::unwrap) {
        log.push_str(&line);
        log.push('\n');
    }
    let code = child.wait().unwrap().code();
    (code, log, left_of_group(id))
}

/// Processes of its group that still run: children stay in the group.
#[cfg(unix)]
fn left_of_group(id: u32) -> Vec<String> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let stats = processes.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    // `pid (name) state parent group …`; the name may contain anything but ends with the last `)`.
    let group = |stat: &String| stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse::<u32>().ok();
    stats.filter(|stat| group(stat) == Some(id)).collect()
}

#[cfg(unix)]
#[test]
fn control_c_cancels_the_turn_in_each_phase() {
    let phases: [(&str, Vec<ModelScript>, &str, &[&str]); 4] = [
        ("before the first word", vec![ModelScript::new().then(ScriptMove::Stall)], "step_start", &[]),
        ("while it writes", vec![ModelScript::new().say("and then").then(ScriptMove::Stall)], "content_delta", &[]),
        (
            "while a tool runs",
            vec![ModelScript::new().call("demo_weather", json!({"city": "Paris"})), ModelScript::new().say("no")],
            // Its start alone would be too early: a cancel between the intent and the start ends as `not_started`.
            "tool_progress",
            &["cancelled"],
        ),
        (
            "in the middle of a call",
            vec![ModelScript::new().then(ScriptMove::Raw(concat!(
                "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"type\":\"function\",",
                "\"function\":{\"name\":\"time_now\",\"arguments\":\"{\\\"time\"}}]}}]}\n\n").to_owned())).then(ScriptMove::Stall)],
            "tool_input_delta",
            &["not_started"],
        ),
    ];
    for (phase, steps, ready, statuses) in phases {
        let (code, log, left) = interrupted(&steps, "--events", ready);
        assert_eq!(code, Some(130), "{phase}");
        let events = check_log(&log);
        assert_eq!(events.last().unwrap()["status"], "cancelled", "{phase}");
        let ended: Vec<&Value> = events
            .iter()
            .filter(|event| event["type"] == "tool_result")
            .map(|event| &event["status"])
            .collect();
        assert_eq!(ended, statuses, "{phase}");
        assert_eq!(left, Vec::<String>::new(), "{phase}");
    }
}
