//! Help, completions, tools, upstreams, mock and the chat without a terminal, on the real binary.

use crate::support::commands::COMMANDS;
use crate::support::throughline;
use serde_json::Value;
use std::path::PathBuf;

fn output(arguments: &[&str]) -> (Option<i32>, String, String) {
    let (mut command, _folder) = throughline();
    let output = command.args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Help as it was last agreed on; `UPDATE_HELP=1` writes it anew.
#[track_caller]
fn check_help(name: &str, arguments: &[&str]) {
    let (code, said, _) = output(arguments);
    assert_eq!(code, Some(0));
    let path = format!("{}/tests/help/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_HELP").is_some() {
        std::fs::write(&path, &said).unwrap();
    }
    let agreed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(said, agreed, "UPDATE_HELP=1 cargo test -p throughline-cli writes {path}");
}

#[test]
fn help_matches_its_snapshots() {
    check_help("throughline", &["--help"]);
    for name in COMMANDS {
        check_help(name, &[name, "--help"]);
    }
}

#[test]
fn help_lines_fit_120_columns() {
    for name in COMMANDS {
        let (_, said, _) = output(&[name, "--help"]);
        let long: Vec<&str> = said.lines().filter(|line| line.chars().count() > 120).collect();
        assert_eq!(long, Vec::<&str>::new(), "{name}");
    }
}

#[test]
fn completions_name_the_subcommands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, said, _) = output(&["completions", shell]);
        assert_eq!(code, Some(0));
        assert!(said.contains("decode") && said.contains("upstreams"), "{shell}");
    }
}

#[test]
fn usage_errors_exit_with_code_1_and_a_reason() {
    for (arguments, expect) in [
        (&["nonsense"][..], "unrecognized subcommand"),
        (&["ask"], "there is nothing to ask"),
        (&["ask", "--json", "--events", "x"], "cannot be used with"),
        (&["ask", " "], "there is nothing to ask"),
        (&["ask", "--base-url", "http://127.0.0.1:1", "x"], "--api"),
        (&["ask", "--model", "deepsek/x", "x"], "deepsek"),
        (&["ask", "--image", "missing.png", "x"], "missing.png"),
        (&["ask", "--config", "missing.toml", "x"], "missing.toml"),
        (&["tools", "show", "demo.weathr"], "demo.weather"),
        (&["tools", "call", "demo.weather", "{"], "not JSON"),
        (&["tools", "call", "demo.weather", "{}"], "/city"),
        (&["mock", "--script", "missing.toml"], "missing.toml"),
    ] {
        let (code, _, said) = output(arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {said}");
        assert!(said.contains(expect), "{arguments:?}: {said}");
    }
}

#[test]
fn config_error_shows_file_line_and_column() {
    let (mut command, folder) = throughline();
    std::fs::write(folder.path().join("throughline.toml"), "[agents.default]\nmodle = \"demo\"\n").unwrap();
    let output = command.args(["ask", "hi"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("throughline.toml:2:1") && said.contains("^^^^^") && said.contains("model"),
        "{said}"
    );
}

#[test]
fn tools_are_listed_shown_and_run() {
    let (_, said, _) = output(&["tools", "list"]);
    assert!(said.contains("✔ demo.weather"), "{said}");
    let (_, said, _) = output(&["tools", "list", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&said).unwrap();
    let calendar = rows.iter().find(|row| row["name"] == "demo.calendar").unwrap();
    assert_eq!((&calendar["effect"], &calendar["asks"]), (&Value::from("write"), &Value::from(true)));
    let (_, said, _) = output(&["tools", "show", "time.now"]);
    assert!(said.contains("time_now") && said.contains("\"timezone\""), "{said}");
    let (code, said, _) = output(&["tools", "call", "time.now", "{\"timezone\": \"Asia/Tokyo\"}"]);
    assert_eq!(code, Some(0));
    assert!(said.contains("+09:00"), "{said}");
}

#[test]
fn tool_output_is_escaped_also_through_a_pipe() {
    let entry = r#"{"title": "\u001b[2Jtea", "when": "\u202e2026-11-24"}"#;
    let call = ["tools", "call", "demo.calendar", entry, "--approve"];
    let (code, said, _) = output(&call);
    assert_eq!(code, Some(0));
    assert!(said.contains(r"added to the demo calendar: \u001b[2Jtea, \u202e2026-11-24."), "{said:?}");
    assert!(!said.contains(['\u{1b}', '\u{202e}']), "{said:?}");

    let (_, said, _) = output(&[&call[..], &["--json"]].concat());
    assert!(!said.contains(['\u{1b}', '\u{202e}']), "{said:?}");
    let done: Value = serde_json::from_str(&said).unwrap();
    let text = done["done"]["text"].as_str().unwrap();
    assert!(text.contains("\u{1b}[2Jtea, \u{202e}2026-11-24."), "the value is exact: {text:?}");
}

#[test]
fn manual_call_outcome_sets_the_exit_code() {
    let (code, _, said) = output(&["tools", "call", "demo.fail"]);
    assert_eq!(code, Some(4));
    assert!(said.contains("✘ failed"), "{said}");
    let entry = "{\"title\": \"a\", \"when\": \"2026-11-22T12:00:00\"}";
    let (code, _, said) = output(&["tools", "call", "demo.calendar", entry]);
    assert_eq!(code, Some(4));
    assert!(said.contains("--approve"), "{said}");
    let (code, said, _) = output(&["tools", "call", "demo.calendar", entry, "--approve", "--json"]);
    assert_eq!(code, Some(0));
    assert!(said.starts_with("{\"done\":"), "{said}");
}

#[test]
fn upstreams_list_shows_which_keys_are_set() {
    let (mut command, _folder) = throughline();
    let output = command
        .env("DEEPSEEK_API_KEY", "x")
        .env_remove("GROQ_API_KEY")
        .args(["upstreams", "--json"])
        .output();
    let rows: Vec<Value> = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let key_set = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap()["key_set"].clone();
    assert_eq!(
        (key_set("deepseek"), key_set("groq"), key_set("ollama")),
        (true.into(), false.into(), Value::Null)
    );
    let (_, said, _) = self::output(&["upstreams"]);
    assert!(said.contains("ollama") && said.contains("http://localhost:11434"), "{said}");
}

#[test]
fn demo_model_answers_without_a_configuration() {
    let (code, said, notes) = output(&["ask", "What time is it in Tokyo?"]);
    assert_eq!(code, Some(0), "{notes}");
    assert!(said.contains("Tokyo"), "{said}");
    assert!(notes.contains("✔ time.now"), "{notes}");
}

#[test]
fn demo_tools_are_all_offered_in_text_mode() {
    let (code, out, err) = output(&["ask", "--mode", "text", "--events", "hello"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains(r#""http.fetch""#), "{out}");
    assert!(!out.contains("tool_not_offered"), "{out}");
}

#[test]
fn chat_through_pipes_is_plain_text() {
    let (mut command, _folder) = throughline();
    let script = "What is 17 * 23?\n/model\n/nonsense\n";
    let output = command.arg("chat").write_stdin(script).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    assert!(said.contains("391") && said.contains("Model: demo") && said.contains("/help"), "{said}");
    assert!(!said.contains('\x1b'), "no escape codes");
}

#[test]
fn chat_tools_list_shows_policy_decisions() {
    let configuration = r#"
[agents.default]
model = "demo"
tool_call = { enabled = true }

[[agents.default.policy]]
decide = "allow"
tool = "demo.calendar"

[[agents.default.policy]]
decide = "ask"
tool = "demo.fail"

[[agents.default.policy]]
decide = "deny"
tool = "time.now"
"#;
    let listed = |more: &[&str]| {
        let (mut command, folder) = throughline();
        std::fs::write(folder.path().join("throughline.toml"), configuration).unwrap();
        let output = command.arg("chat").args(more).write_stdin("/tools\n").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let columns = |name: &str| -> Vec<String> {
            let line = said.lines().find(|line| line.trim_start().starts_with(name)).expect(&said);
            line.split_whitespace().skip(1).take(2).map(str::to_owned).collect()
        };
        ["demo.calendar", "demo.fail", "demo.weather", "time.now"].map(|name| columns(name).join(" "))
    };
    // On a pipe no person can answer.
    assert_eq!(listed(&[]), ["write runs", "read denied", "read runs", "read denied"]);
    assert_eq!(listed(&["--approve"]), ["write runs", "read runs", "read runs", "read denied"]);
}

/// `throughline doctor --json` in a folder with this configuration: the code, and the findings.
fn examined(configuration: &str, more: &[&str]) -> (Option<i32>, Vec<Value>) {
    let (mut command, folder) = throughline();
    std::fs::write(folder.path().join("throughline.toml"), configuration).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "").unwrap();
    command
        .env_remove("DEEPSEEK_API_KEY")
        .env("PRESENT_KEY", "tl-canary-key")
        .args(["doctor", "--json"])
        .args(more);
    let output = command.output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("tl-canary"), "a key was shown: {text}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["well"], output.status.success());
    (output.status.code(), report["findings"].as_array().unwrap().clone())
}

fn finding<'f>(findings: &'f [Value], name: &str) -> &'f Value {
    let found = findings.iter().find(|finding| finding["name"] == name);
    found.unwrap_or_else(|| panic!("nothing about {name} in {findings:#?}"))
}

#[test]
fn doctor_reports_problems_and_remedies() {
    let (code, findings) = examined("", &[]);
    assert_eq!(code, Some(0), "{findings:#?}");
    assert_eq!(finding(&findings, "demo")["state"], "good");
    #[cfg(target_os = "linux")]
    assert!(finding(&findings, "Landlock")["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
    let areas: std::collections::BTreeSet<&str> =
        findings.iter().filter_map(|finding| finding["area"].as_str()).collect();
    let expected = ["configuration", "programs", "sandbox", "server", "terminal", "tools", "upstreams"];
    assert_eq!(areas.into_iter().collect::<Vec<_>>(), expected);

    let (code, findings) = examined("[agents.default]\nmodle = \"demo\"", &[]);
    assert_eq!(code, Some(1));
    let wrong = finding(&findings, "throughline.toml");
    assert!(wrong["detail"].as_str().unwrap().contains("did you mean `model`?"), "{wrong}");

    let keys = "[upstreams.spare]\nknown = \"openai\"\nkey_env = \"ABSENT_KEY\"\n\
        [upstreams.mine]\nknown = \"openai\"\nkey_env = \"PRESENT_KEY\"\n\
        [agents.default]\nmodel = \"mine/m\"\n[agents.other]\nmodel = \"deepseek/m\"";
    let (code, findings) = examined(keys, &[]);
    assert_eq!(code, Some(1));
    assert_eq!(finding(&findings, "mine")["state"], "good");
    assert_eq!(finding(&findings, "spare")["state"], "note", "no agent uses it");
    let wrong = finding(&findings, "deepseek");
    assert_eq!(
        (wrong["state"].as_str(), wrong["remedy"].as_str()),
        (Some("wrong"), Some("throughline connect deepseek, or export DEEPSEEK_API_KEY=…"))
    );

    let tools = "[commands.good]\nargv = [\"true\"]\ndescription = \"d\"\n\
        [commands.bad]\nargv = [\"no-such-program\"]\ndescription = \"d\"\n\
        [http_tools.bad]\nurl = \"https://{host}/\"\ndescription = \"d\"\n[vcp_plugins]\nfolders = [\".\"]";
    let (code, findings) = examined(tools, &[]);
    assert_eq!(code, Some(1));
    assert_eq!(finding(&findings, "commands")["detail"], "1 tool");
    for (name, detail) in [
        ("commands: commands.bad", "there is no program `no-such-program` in PATH"),
        ("http_tools: http_tools.bad", "url: the host cannot be an argument"),
        ("vcp_plugins", "no plugin found"),
    ] {
        let wrong = finding(&findings, name);
        assert!(wrong["detail"].as_str().unwrap().contains(detail), "{wrong}");
        assert!(wrong["state"] == "wrong" && wrong["remedy"].is_string(), "{wrong}");
    }

    let (code, findings) = examined("[tools.files]\nroots = [\"no-such-folder\"]", &[]);
    assert_eq!(code, Some(1));
    assert!(finding(&findings, "tools")["detail"].as_str().unwrap().contains("no-such-folder"));
}

#[test]
fn policy_rule_matching_no_tool_suggests_the_closest() {
    let rules = |tools: &[&str]| {
        let rule = |tool: &&str| format!("[[agents.default.policy]]\ndecide = \"deny\"\ntool = \"{tool}\"\n");
        let rules: String = tools.iter().map(rule).collect();
        format!("[agents.default]\nmodel = \"demo\"\ntool_call = {{ enabled = true }}\n{rules}")
    };
    let (code, findings) = examined(&rules(&["demo.calendar", "demo.*", "*", "own.get_weather"]), &[]);
    assert_eq!(code, Some(0), "{findings:#?}");

    let (code, findings) = examined(&rules(&["demo.calender", "demo.*"]), &[]);
    assert_eq!(code, Some(1), "{findings:#?}");
    let about = |findings: &[Value]| -> Vec<(String, String)> {
        let tools =
            findings.iter().filter(|finding| finding["area"] == "tools" && finding["name"] == "default");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        tools.map(|finding| (text(&finding["state"]), text(&finding["detail"]))).collect()
    };
    let wrong = about(&findings);
    assert_eq!((wrong.len(), wrong[0].0.as_str()), (1, "wrong"), "{findings:#?}");
    assert!(
        wrong[0].1.contains("rule 1") && wrong[0].1.contains("did you mean `demo.calendar`?"),
        "{wrong:?}"
    );
    // It may be meant for tools that a page brings along.
    let (code, findings) = examined(&rules(&["whiteboard.draw"]), &[]);
    assert_eq!((code, about(&findings)[0].0.as_str()), (Some(0), "note"));

    // The tools of a source that is missing are unknown.
    let absent = rules(&["notes.serach", "demo.calender"]) + "[mcp.notes]\ncommand = [\"no-such-program\"]\n";
    let (_, findings) = examined(&absent, &[]);
    assert_eq!(about(&findings).len(), 1, "{findings:#?}");

    // `tools list` and `ask` warn as well.
    let (mut command, folder) = throughline();
    std::fs::write(folder.path().join("throughline.toml"), rules(&["demo.calender"])).unwrap();
    let output = command.args(["tools", "list"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `demo.calendar`?"));
}

#[test]
fn doctor_prints_a_report_in_both_languages() {
    let (code, said, _) = output(&["doctor"]);
    assert_eq!(code, Some(0), "{said}");
    for part in ["throughline ", "\nConfiguration\n", "✔ demo ", "\nEverything that is configured works.\n"]
    {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    let (mut command, _folder) = throughline();
    let chinese = command.env("LC_ALL", "zh_CN.UTF-8").arg("doctor").output().unwrap();
    let said = String::from_utf8_lossy(&chinese.stdout);
    assert!(said.contains("\n配置\n") && said.contains("所有配置均可正常工作。"), "{said}");
}

#[cfg(unix)]
#[test]
fn dead_mcp_server_is_one_warning_with_details_in_doctor() {
    let traceback = "for n in 1 2 3 4 5 6 7 8 9; do echo 'File server.py, line' $n >&2; done; exit 3";
    let configuration = format!(
        "[mcp.dead]\ncommand = [\"sh\", \"-c\", \"{traceback}\"]\n\
         [commands.\"own.echo\"]\ndescription = \"Says it\"\nargv = [\"echo\", \"hello\"]\ninput = \"none\"\neffect = \"pure\"\n"
    );
    let run = |arguments: &[&str]| {
        let (mut command, folder) = throughline();
        std::fs::write(folder.path().join("throughline.toml"), &configuration).unwrap();
        let output = command.args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    let (said, complained) = run(&["tools", "call", "own.echo", "{}"]);
    assert_eq!(said, "hello\n");
    let line = "⚠ mcp:dead: the program exited with code 3 before completing the MCP handshake · for details: throughline doctor";
    let faults: Vec<&str> = complained.lines().filter(|line| !line.starts_with('✔')).collect();
    assert_eq!(faults, [line]);
    let (said, _) = run(&["doctor"]);
    assert!(said.contains("File server.py, line 9"), "{said}");
}

/// A user that nothing else runs as, if we may choose, and the command in a folder that this user may reach.
#[cfg(target_os = "linux")]
struct OtherUser {
    folder: tempfile::TempDir,
}

#[cfg(target_os = "linux")]
impl OtherUser {
    /// `None`: that user may not run programs in the folder for temporary files.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let other = Self { folder };
        let built = assert_cmd::cargo::cargo_bin("throughline");
        // What was built may lie in a home that is closed to others. It is large, so a second name will do.
        if std::fs::hard_link(&built, other.binary()).is_err() {
            std::fs::copy(&built, other.binary()).unwrap();
        }
        let reached = other.command(other.binary()).arg("--version").output();
        if !reached.is_ok_and(|output| output.status.success()) {
            println!("skipped: another user may not run what stands in the folder for temporary files");
            return None;
        }
        Some(other)
    }

    fn binary(&self) -> PathBuf {
        self.folder.path().join("throughline")
    }

    /// A program in that folder, with nothing of our environment.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> std::process::Command {
        use std::os::unix::fs::MetadataExt;
        use std::os::unix::process::CommandExt;
        const ID: u32 = 64_917;
        let mut command = std::process::Command::new(program);
        if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
            command.uid(ID).gid(ID);
        }
        command.current_dir(self.folder.path()).env_clear();
        command.env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
        command
    }
}

/// A system without room for one more thread is an error with a remedy, not a panic.
#[cfg(target_os = "linux")]
#[test]
fn thread_limit_is_an_error_with_a_remedy() {
    // Nothing binds root, which is why it is another user; and of that one it is this process alone. Shells do not agree on
    // the letter. With three there is room for a thread, and not for all.
    let Some(other) = OtherUser::new() else { return };
    for most in [1, 3] {
        let bound = format!(
            "if (ulimit -u {most}) 2>/dev/null; then ulimit -u {most}; else ulimit -p {most}; fi; exec \"$0\" doctor"
        );
        let output = other.command("sh").args(["-c", &bound]).arg(other.binary()).output();
        let output = output.unwrap();
        let complained = String::from_utf8_lossy(&output.stderr);
        if most == 3 && output.status.success() {
            // On one processor two are enough.
            continue;
        }
        assert!(complained.contains("no threads can be started"), "{most}: {complained}");
        assert!(complained.contains("ulimit -u") && !complained.contains("panicked"), "{most}: {complained}");
        assert_eq!(output.status.code(), Some(1), "{most}: {complained}");
    }
}

/// Keys are in our environment, and a program of a tool runs as the same user.
#[cfg(target_os = "linux")]
#[test]
fn unsandboxed_program_cannot_read_our_environment() {
    let Some(other) = OtherUser::new() else { return };
    let looks = "[commands.\"own.look\"]\ndescription = \"Looks\"\ninput = \"none\"\neffect = \"pure\"\nsandbox = { mode = \"off\" }\n\
                 argv = [\"sh\", \"-c\", \"cat /proc/[0-9]*/environ 2>/dev/null | tr '\\\\0' '\\\\n'\"]\n";
    std::fs::write(other.folder.path().join("throughline.toml"), looks).unwrap();
    let mut command = other.command(other.binary());
    command.env("THROUGHLINE_DATA", other.folder.path().join("data"));
    let output =
        command.args(["tools", "call", "own.look", "{}"]).env("OPENAI_API_KEY", "sk-canary-4711").output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("THROUGHLINE_CHILD="),
        "it reads its own: {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!said.contains("sk-canary-4711"), "{said}");
}
