//! `throughline connect` as a process: its questions, the files that it writes, and its output.

#![cfg(unix)]

use crate::support;
use crate::support::terminal::Terminal;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use throughline_testkit::{FakeDialect, FakeUpstream, FakeUpstreamHandle, ScenarioRules};

const KEY: &str = "sk-right-0123456789";
const MODELS: &str = "models = [\"talks\", \"other\"]\nkey = \"sk-right-0123456789\"\n\
    [[rules]]\nthen = [{ say = \"OK, from far away.\" }]\n";

struct Setting {
    folder: tempfile::TempDir,
    upstream: FakeUpstreamHandle,
    _runtime: tokio::runtime::Runtime,
}

impl Setting {
    fn new() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let upstream = runtime.block_on(FakeUpstream::start(ScenarioRules::parse(MODELS).unwrap())).unwrap();
        Self { folder: tempfile::tempdir().unwrap(), upstream, _runtime: runtime }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let (given, _) = support::throughline();
        let mut command = Command::new(given.get_program());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THROUGHLINE_")) {
            command.env_remove(name);
        }
        command
            .current_dir(self.folder.path())
            .env("LC_ALL", "C.UTF-8")
            .env("THROUGHLINE_DATA", self.folder.path().join("data"))
            .env("THROUGHLINE_BASE_URL_DEEPSEEK", self.upstream.base_url(FakeDialect::OpenaiChat))
            .env_remove("DEEPSEEK_API_KEY")
            .args(arguments);
        command
    }

    /// Runs with this standard input; returns the exit code and all output.
    fn run(&self, arguments: &[&str], input: &str) -> (Option<i32>, String) {
        let mut command = assert_cmd::Command::from_std(self.command(arguments));
        let output = command.write_stdin(input).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(!text.contains(KEY), "the key is said: {text}");
        (output.status.code(), text)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn connect_by_flags_checks_the_key_and_keeps_comments() {
    let setting = Setting::new();
    let before = "# What I use.\n[agents.default]\nmodel = \"demo\"  # to try it\n\n# Folders.\n[tools.files]\nroots = [\"/tmp\"]\n";
    std::fs::write(setting.path("throughline.toml"), before).unwrap();
    std::fs::set_permissions(setting.path("throughline.toml"), std::fs::Permissions::from_mode(0o640))
        .unwrap();
    let arguments = ["connect", "deepseek", "--model", "talks", "--key-stdin"];

    let (code, said) = setting.run(&arguments, "sk-wrong-0123456789\n");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("DeepSeek rejects this key") && said.contains("platform.deepseek.com"), "{said}");
    assert_eq!(setting.text("throughline.toml"), before, "nothing was written");
    assert!(!setting.path("data/upstreams.json").exists());

    let (code, said) = setting.run(&arguments, &format!("{KEY}\n"));
    assert_eq!(code, Some(0), "{said}");
    for part in [
        "models: 2",
        "talks answers",
        "upstreams.json",
        "deepseek/talks (was demo)",
        "next: throughline chat",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let after = before.replace("\"demo\"", "\"deepseek/talks\"");
    assert_eq!(setting.text("throughline.toml"), after);
    assert_eq!(mode(&setting.path("throughline.toml")), 0o640, "as it was");
    assert_eq!(mode(&setting.path("data/upstreams.json")), 0o600);
    assert!(setting.text("data/upstreams.json").contains(KEY));

    // From now on it answers, and every command reports where its key is.
    let (code, said) = setting.run(&["ask", "Hello"], "");
    assert_eq!((code, said.contains("OK, from far away.")), (Some(0), true), "{said}");
    let (_, said) = setting.run(&["upstreams"], "");
    assert!(said.contains("deepseek") && said.contains("✔ stored"), "{said}");
    let (_, said) = setting.run(&["doctor"], "");
    assert!(said.contains("its key is stored"), "{said}");

    let (code, said) = setting.run(&["connect", "deepseek", "--forget"], "");
    assert_eq!((code, said.contains("deleted the stored key")), (Some(0), true), "{said}");
    let (code, said) = setting.run(&["ask", "Hello"], "");
    assert_eq!((code, said.contains("throughline connect deepseek")), (Some(1), true), "{said}");
}

#[test]
fn custom_endpoint_is_saved_with_its_key_variable() {
    let setting = Setting::new();
    let address = setting.upstream.base_url(FakeDialect::Anthropic);
    let arguments = [
        "connect",
        "work",
        "--base-url",
        &address,
        "--api",
        "anthropic",
        "--model",
        "talks",
        "--key-env",
        "WORK_KEY",
    ];
    let (code, said) = setting.run(&arguments, "");
    assert_eq!((code, said.contains("work needs a key")), (Some(1), true), "{said}");
    let mut command = assert_cmd::Command::from_std(setting.command(&arguments));
    let output = command.env("WORK_KEY", KEY).env("LC_ALL", "zh_CN.UTF-8").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("密钥在 WORK_KEY 中"), "{said}");
    let written = setting.text("throughline.toml");
    assert!(written.contains("[upstreams.work]") && written.contains("key_env = \"WORK_KEY\""), "{written}");
    assert!(written.contains("model = \"work/talks\"") && !written.contains(KEY), "{written}");
    assert!(!setting.path("data/upstreams.json").exists());
    let mut ask = assert_cmd::Command::from_std(setting.command(&["ask", "Hello"]));
    assert!(ask.env("WORK_KEY", KEY).output().unwrap().status.success());
}

#[test]
fn connect_without_a_terminal_names_missing_arguments() {
    let setting = Setting::new();
    let (code, said) = setting.run(&["connect"], "");
    assert_eq!(code, Some(1));
    assert!(said.contains("deepseek") && said.contains("try: throughline connect deepseek"), "{said}");
    let (code, said) = setting.run(&["connect", "deepseek"], "");
    assert_eq!((code, said.contains("--key-stdin")), (Some(1), true), "{said}");
    let (code, said) = setting.run(&["connect", "depseek"], "");
    assert_eq!((code, said.contains("did you mean `deepseek`?")), (Some(1), true), "{said}");
    std::fs::write(setting.path("throughline.toml"), "[agents.default").unwrap();
    let (code, _) = setting.run(&["connect", "deepseek", "--key-stdin", "--model", "talks"], KEY);
    assert_eq!((code, setting.text("throughline.toml").as_str()), (Some(1), "[agents.default"));
}

#[test]
fn connect_lists_local_servers_with_their_models() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let rules =
        "models = [\"qwen3\", \"gemma3\", \"phi4\", \"llama3\"]\n[[rules]]\nthen = [{ say = \"Here.\" }]\n";
    let local = runtime.block_on(FakeUpstream::start(ScenarioRules::parse(rules).unwrap())).unwrap();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let setting = Setting::new();
    let run = |locale: &str, arguments: &[&str]| {
        let mut command = setting.command(arguments);
        command
            .env("LC_ALL", locale)
            .env("THROUGHLINE_BASE_URL_OLLAMA", local.base_url(FakeDialect::Ollama))
            .env("THROUGHLINE_BASE_URL_LMSTUDIO", local.base_url(FakeDialect::OpenaiChat))
            .env("THROUGHLINE_BASE_URL_VLLM", format!("http://{closed}/v1"))
            .env("GROQ_API_KEY", "gsk-0123456789");
        let output = assert_cmd::Command::from_std(command).write_stdin("").output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, said) = run("C.UTF-8", &["connect"]);
    assert_eq!(code, Some(1), "{said}");
    let line = |name: &str| {
        said.lines().find(|line| line.contains(&format!("  {name} "))).unwrap_or_default().to_owned()
    };
    assert!(line("ollama").contains("✔ runs here: ") && line("ollama").contains(" and 1 more"), "{said}");
    assert!(line("lmstudio").contains("qwen3"), "{said}");
    assert!(!line("vllm").contains('✔') && !line("deepseek").contains('✔'), "{said}");
    assert!(line("groq").contains("✔ the key is in GROQ_API_KEY"), "{said}");
    assert!(said.contains("try: throughline connect lmstudio --model qwen3"), "{said}");
    let (_, said) = run("zh_CN.UTF-8", &["connect"]);
    assert!(said.contains("✔ 正在本机运行：qwen3") && said.contains("另有 1 个"), "{said}");
    // The command that it names does it.
    let (code, said) = run("C.UTF-8", &["connect", "lmstudio", "--model", "qwen3"]);
    assert!(code == Some(0) && said.contains("qwen3 answers"), "{said}");
}

#[test]
fn connect_prompts_on_a_terminal_and_hides_the_key() {
    let setting = Setting::new();
    let mut terminal = Terminal::start(&mut setting.command(&["connect"]));
    terminal.until("deepseek");
    terminal.until("Which one?");
    terminal.line("deepseek");
    terminal.until("Get a key at https://platform.deepseek.com");
    terminal.until("(hidden): ");
    terminal.line(KEY);
    terminal.until("models: 2");
    terminal.until("1  talks");
    terminal.line("1");
    terminal.until("talks answers");
    terminal.until_output("next: throughline chat");
    let (code, _, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains(KEY), "{shown}");
    assert!(setting.text("throughline.toml").contains("model = \"deepseek/talks\""));
    assert!(setting.text("data/upstreams.json").contains(KEY));
}
