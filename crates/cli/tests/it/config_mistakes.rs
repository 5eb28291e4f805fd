//! The mistakes that people make in `throughline.toml` when they come from other programs, each with what the command
//! answers.

use crate::support::throughline;

/// Standard output and error of the command in a folder with this configuration.
fn answer(config: &str, words: &[&str]) -> (bool, String) {
    let (mut command, folder) = throughline();
    std::fs::write(folder.path().join("throughline.toml"), config).unwrap();
    let output = command.args(words).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Checks that `doctor` refuses the configuration with this message.
fn check(config: &str, expected: &[&str]) {
    let (ok, said) = answer(config, &["doctor"]);
    assert!(!ok, "accepted in silence:\n{config}\n{said}");
    for part in expected {
        assert!(said.contains(part), "`{part}` is not in the answer to\n{config}\n{said}");
    }
}

/// Checks lines of an agent with a model.
fn check_agent(lines: &str, expected: &[&str]) {
    check(&format!("[agents.default]\nmodel = \"demo\"\n{lines}"), expected);
}

#[test]
fn mcp_server_syntax_of_other_clients_is_corrected() {
    check("[mcp.x]\ncommand = \"npx -y foo\"", &["command = [\"npx\", \"-y\", \"foo\"]"]);
    check("[mcp.x]\ncommand = \"npx\"\nargs = [\"-y\", \"foo\"]", &["command = [\"npx\", \"-y\", \"foo\"]"]);
    check("[mcp.x]\ncommand = [\"npx\"]\nargs = [\"-y\"]", &["command = [\"npx\", \"-y\"]"]);
    check("[mcpServers.x]\ncommand = \"npx\"", &["use [mcp.NAME]", "throughline mcp import"]);
}

#[test]
fn wrong_value_type_is_shown_with_a_correction() {
    check_agent("tool_call = true", &["expected a table", "tool_call = { enabled = true }"]);
    check_agent("temperature = \"0.3\"", &["expected a number", "without quotes: temperature = 0.3"]);
    check(
        "[store]\nretention_days = \"90d\"",
        &["expected a whole number", "in days", "retention_days = 90"],
    );
    check("[agents.default]\nprompt = \"Hi\"", &["missing field `model`", "model = \"openai/gpt-5-mini\""]);
    check("[tools.files]\nroots = \"/srv\"", &["expected a list", "roots = [\"/srv\"]"]);
    check(
        "[commands.disk]\nargv = \"df -h | head\"\ndescription = \"x\"",
        &["expected a list", "[\"sh\", \"-c\", \"df -h | head\"], because no shell is used"],
    );
}

#[test]
fn key_in_the_config_is_rejected_and_not_printed() {
    let upstream = "[agents.default]\nmodel = \"demo\"\n[upstreams.oa]\nknown = \"openai\"\n";
    for (line, expected) in [
        ("api_key = \"sk-very-secret-1\"", "do not put keys into this file"),
        ("token = \"very-secret-1\"", "do not put keys into this file"),
        ("key_env = \"sk-very-secret-1\"", "this looks like a key"),
        ("key_env = \"gsk_verysecret1\"", "this looks like a key"),
    ] {
        let (ok, said) = answer(&format!("{upstream}{line}"), &["doctor"]);
        assert!(!ok && said.contains(expected), "{line}: {said}");
        assert!(!said.contains("secret-1") && !said.contains("verysecret1"), "{said}");
        assert!(said.contains("throughline connect") && said.contains("throughline.toml:5:"), "{said}");
    }
    let given = [
        "ask",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--api",
        "openai-chat",
        "--key-env",
        "sk-very-secret-1",
        "hi",
    ];
    let (ok, said) = answer("", &given);
    assert!(!ok && said.contains("looks like a key") && !said.contains("secret-1"), "{said}");
}

#[test]
fn partial_name_suggests_the_full_name() {
    check(
        "[upstreams.u]\ndialect = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"",
        &["did you mean `openai-chat`?"],
    );
    check("[limits.turn]\ncalls_max = 3", &["did you mean `calls_per_turn_max`?"]);
    let (ok, said) = answer("", &["decode", "--api", "openai"]);
    assert!(!ok && said.contains("did you mean `openai-chat`?"), "{said}");
}

#[test]
fn settings_that_cannot_work_are_rejected() {
    check_agent("temperature = 9", &["`temperature` must be from 0 to 2", "throughline.toml:3:15"]);
    check_agent("temperature = -0.1", &["from 0 to 2"]);
    check_agent("max_output_tokens = 0", &["`max_output_tokens` must not be 0"]);
    check_agent(
        "tool_call = { enabled = true, max_iterations = 0 }",
        &["`max_iterations` must not be 0", "enabled = false"],
    );
    check_agent(
        "limits = { calls_per_turn_max = 0 }",
        &["`calls_per_turn_max` must not be 0", "throughline.toml:3:"],
    );
    check(
        "[limits.turn]\ncalls_per_turn_max = 0",
        &["`calls_per_turn_max` must not be 0", "throughline.toml:2:"],
    );
    check(
        "[upstreams.u]\nknown = \"openai\"\nbase_url = \"api.openai.com/v1\"",
        &["is not a valid base URL"],
    );
    check_agent("[[agents.default.policy]]\ndecide = \"allow\"", &["this rule has no condition"]);
}

#[test]
fn unknown_tool_in_the_config_suggests_the_closest() {
    let rule = "tool_call = { enabled = true }\n[[agents.default.policy]]\ndecide = \"deny\"\ntool = \"demo.calender\"";
    check_agent(rule, &["rule 1", "did you mean `demo.calendar`?"]);
    let switch = "tool_call = { enabled = true, tool_toggles = { \"demo.calender\" = false } }";
    check_agent(switch, &["tool_toggles.\"demo.calender\" has no effect", "did you mean `demo.calendar`?"]);
}

#[test]
fn relative_path_in_a_policy_rule_is_reported() {
    let rule = "tool_call = { enabled = true }\n[[agents.default.policy]]\ndecide = \"deny\"\narguments = { path = { under = \"notes\" } }";
    check_agent(rule, &["rule 1 matches no absolute path", "`under = \"notes\"` is relative"]);
}

#[test]
fn private_hosts_and_shell_lines_in_tools_are_reported() {
    let http = |url: &str| format!("[http_tools.light]\ndescription = \"x\"\nurl = \"{url}\"");
    check(
        &http("http://127.0.0.1:21395/on"),
        &["127.0.0.1 is not public", "private_hosts = [\"127.0.0.1:21395\"] permits it"],
    );
    check(&http("http://localhost/on"), &["`localhost` is this machine", "private_hosts = [\"localhost\"]"]);
    check(
        "[commands.disk]\nargv = [\"df -h | head\"]\ndescription = \"x\"",
        &["there is no shell that would read this line", "[\"sh\", \"-c\", \"df -h | head\"]"],
    );
}

#[test]
fn missing_config_and_database_errors_have_a_remedy() {
    let (ok, said) = answer("", &["doctor", "--config", "/nope.toml"]);
    assert!(!ok && said.contains("--> /nope.toml") && said.contains("check the path"), "{said}");
    let away = ["serve", "--listen", "127.0.0.1:0", "--store", "postgres://me:hunter2@127.0.0.1:1/chat"];
    let (ok, said) = answer("", &away);
    assert!(
        !ok && said.contains("postgres://me@127.0.0.1:1/chat")
            && !said.contains("hunter2")
            && said.contains("PostgreSQL runs there"),
        "{said}"
    );
    assert!(!said.contains("hunter2"), "{said}");
}

/// Input that looks unusual and is meant so stays accepted.
#[test]
fn unusual_but_valid_configs_are_accepted() {
    for config in [
        "[agents.helper]\nmodel = \"demo\"\ntemperature = 2",
        "[agents.default]\nmodel = \"demo\"\n[[agents.default.policy]]\ndecide = \"allow\"\ntool = \"*\"",
        "[agents.default]\nmodel = \"demo\"\n[[agents.default.policy]]\ndecide = \"allow\"\ntool = \"files.read\"\n\
         arguments = { path = { under = \"notes\" } }",
        "[http_tools.light]\ndescription = \"x\"\nurl = \"http://127.0.0.1:21395/on\"\nprivate_hosts = [\"127.0.0.1\"]",
        "[upstreams.oa]\nknown = \"openai\"\nkey_env = \"MY_KEY_2\"\n[agents.default]\nmodel = \"demo\"",
    ] {
        let (ok, said) = answer(config, &["tools", "list"]);
        assert!(ok, "{config}\n{said}");
    }
}

#[test]
fn keys_list_does_not_create_the_data_folder() {
    let (mut command, folder) = throughline();
    let output = command.args(["keys", "list"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!folder.path().join("data").exists(), "a command that only reads has made the data folder");
}

#[test]
fn tools_list_shows_policy_decisions() {
    let rule = |decide: &str, tool: &str| {
        format!("[[agents.default.policy]]\ndecide = \"{decide}\"\ntool = \"{tool}\"\n")
    };
    let config = format!(
        "[agents.default]\nmodel = \"demo\"\ntool_call = {{ enabled = true }}\n{}{}",
        rule("allow", "demo.calendar"),
        rule("deny", "demo.weather")
    );
    let (_, said) = answer(&config, &["tools", "list"]);
    let row = |tool: &str| said.lines().find(|line| line.contains(tool)).unwrap_or_default().to_owned();
    assert!(row("demo.calendar").contains("runs"), "{said}");
    assert!(row("demo.weather").contains("denied"), "{said}");
}

#[test]
fn policy_rules_apply_to_manual_calls() {
    let config = "[agents.default]\nmodel = \"demo\"\n[[agents.default.policy]]\ndecide = \"deny\"\ntool = \"demo.calendar\"\n\
                  reason = \"The calendar is full.\"\n[[agents.default.policy]]\ndecide = \"ask\"\ntool = \"time.now\"\n\
                  [agents.free]\nmodel = \"demo\"\n";
    let entry = "{\"title\": \"a\", \"when\": \"2026-11-22T12:00:00\"}";
    let call = ["tools", "call", "demo.calendar", entry, "--approve"];
    let (ok, said) = answer(config, &call);
    assert!(!ok && said.contains("The calendar is full. (rule:1 deny demo.calendar)"), "{said}");
    let (ok, said) = answer(config, &[&call[..], &["--agent", "free"]].concat());
    assert!(ok && said.contains("added to the demo calendar"), "the rules of another agent: {said}");
    let (ok, said) = answer(config, &["tools", "call", "time.now"]);
    assert!(!ok && said.contains("--approve"), "a rule that asks, and nobody to ask: {said}");
    let (_, said) = answer(config, &["tools", "show", "demo.calendar"]);
    assert!(said.contains("write · denied"), "{said}");
}

#[test]
fn mock_prints_a_command_that_works_in_a_shell() {
    use std::io::{BufRead, BufReader};
    let (given, folder) = throughline();
    let script = "key = \"sk-o'a\"\nmodels = [\"gpt-fake\"]\n[[rules]]\nthen = [{ say = \"Hello from the script.\" }]\n";
    std::fs::write(folder.path().join("script.toml"), script).unwrap();
    let program = given.get_program().to_owned();
    let mut mock = std::process::Command::new(&program)
        .args(["mock", "--script", "script.toml"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(mock.stdout.take().unwrap()).lines();
    let line = lines.find_map(|line| Some(line.unwrap().strip_prefix("try: ")?.to_owned())).unwrap();
    let line = line.replace("throughline ask", &format!("{} ask", program.to_string_lossy()));
    let asked = std::process::Command::new("sh")
        .args(["-c", &line])
        .current_dir(folder.path())
        .env("THROUGHLINE_DATA", folder.path().join("data"))
        .output()
        .unwrap();
    mock.kill().unwrap();
    mock.wait().unwrap();
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert!(
        said.contains("Hello from the script."),
        "{line}\n{said}\n{}",
        String::from_utf8_lossy(&asked.stderr)
    );
}

#[test]
fn mcp_import_copies_servers_without_their_secrets() {
    let (mut command, folder) = throughline();
    let at = |name: &str| folder.path().join(name);
    let json = r#"{"mcpServers": {
        "github": {"command": "npx", "args": ["-y", "server-github"], "env": {"GITHUB_TOKEN": "ghp_hunter2"}},
        "docs": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer hunter2"}},
        "time": {"command": "mcp-server-time", "disabled": true}}}"#;
    std::fs::write(at("claude_desktop_config.json"), json).unwrap();
    let config =
        "# Mine.\n[agents.default]\nmodel = \"demo\" # for now\n\n[mcp.time]\ncommand = [\"my-own\"]\n";
    std::fs::write(at("throughline.toml"), config).unwrap();
    let program = command.get_program().to_owned();
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command
            .args(words)
            .current_dir(folder.path())
            .env("THROUGHLINE_DATA", at("data"))
            .env("LC_ALL", "C.UTF-8");
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let (ok, printed, hints) = run(&["mcp", "import", "claude_desktop_config.json"]);
    assert!(ok, "{hints}");
    assert!(printed.contains("[mcp.github]\ncommand = [\"npx\", \"-y\", \"server-github\"]"), "{printed}");
    assert!(
        printed.contains("GITHUB_TOKEN = \"$GITHUB_TOKEN\"") && hints.contains("export GITHUB_TOKEN=…"),
        "{printed}{hints}"
    );
    assert!(printed.contains("Authorization = \"$DOCS_AUTHORIZATION\""), "{printed}");
    assert!(!printed.contains("hunter2") && !hints.contains("hunter2"), "{printed}{hints}");
    let (ok, said, failed) = run(&["mcp", "import", "claude_desktop_config.json", "--write"]);
    assert!(ok && said.contains("already there, not changed: time"), "{said}{failed}");
    let written = std::fs::read_to_string(at("throughline.toml")).unwrap();
    assert!(written.starts_with("# Mine.\n[agents.default]\nmodel = \"demo\" # for now\n"), "{written}");
    assert!(written.contains("command = [\"my-own\"]") && written.contains("[mcp.docs]"), "{written}");
    let (ok, again, _) = run(&["mcp", "import", "claude_desktop_config.json", "--write"]);
    assert!(ok && again.contains("not changed"), "{again}");
    assert_eq!(
        std::fs::read_to_string(at("throughline.toml")).unwrap(),
        written,
        "a second time adds nothing"
    );
    let (ok, _, failed) = run(&["mcp", "import", "throughline.toml"]);
    assert!(!ok && failed.contains("not JSON") && failed.contains("claude_desktop_config.json"), "{failed}");
    let _ = command.arg("--version");
}
