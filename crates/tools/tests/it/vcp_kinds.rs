//! Kinds of VCP plugins besides synchronous commands: each is really run, as a process, and has its effect.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use throughline_tools::process::{ExecHelper, SpawnContext};
use throughline_tools::vcp_plugin::{VcpPluginSource, VcpPlugins};
use throughline_tools::{CallbackError, SourceCallback, SourceHook, ToolExecutor, ToolInvocation, Toolbox};
use throughline_wire::{CallArguments, CallOutcome, ClosedStep, Message, ModelRequest, UserPart};

/// Longer than anything in a test takes, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A copy of a sample, which writes into its folder.
struct Sample {
    _folder: tempfile::TempDir,
    plugin: PathBuf,
}

fn sample(name: &str) -> Sample {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().canonicalize().unwrap().join("Plugin").join(name);
    std::fs::create_dir_all(&plugin).unwrap();
    let origin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vcp_plugins").join(name);
    for file in std::fs::read_dir(origin).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), plugin.join(file.file_name())).unwrap();
    }
    Sample { _folder: folder, plugin }
}

impl Sample {
    async fn load(&self, mut settings: Value) -> Toolbox {
        settings["folders"] = json!([self.plugin]);
        settings["results"] = json!(self.plugin.parent().unwrap().join("results"));
        let settings: VcpPlugins = serde_json::from_value(settings).unwrap();
        let spawn_context = SpawnContext::of_this_process()
            .with_helper(ExecHelper::new(env!("CARGO_BIN_EXE_throughline-exec"), []));
        let toolbox = Toolbox::new([]).unwrap();
        toolbox.add(Arc::new(VcpPluginSource::new(settings, spawn_context)));
        assert_eq!(toolbox.wait_ready(PATIENCE).await, [""; 0]);
        toolbox
    }

    fn has(&self, file: &str) -> bool {
        self.plugin.join(file).exists()
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.plugin.join("runs.txt")).unwrap_or_default().lines().count()
    }
}

fn hook(toolbox: &Toolbox) -> Arc<dyn SourceHook> {
    toolbox.hooks().remove(0)
}

async fn filled(toolbox: &Toolbox, instructions: &str) -> String {
    let mut request = ModelRequest { instructions: Some(instructions.to_owned()), ..ModelRequest::default() };
    hook(toolbox).fill_placeholders(&mut request).await;
    request.instructions.unwrap()
}

/// Looks again until it is so.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let looks = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looks).await.unwrap_or_else(|_| panic!("never: {what}"));
}

fn user(text: &str) -> Message {
    Message::User(vec![UserPart::Text { text: text.to_owned() }])
}

fn step(text: &str) -> Message {
    Message::Step(ClosedStep { text: text.to_owned(), ..ClosedStep::default() })
}

#[tokio::test]
async fn static_plugin_fills_placeholders_and_reruns_on_cron() {
    let weather = sample("Weather");
    let toolbox = weather.load(json!({})).await;
    assert_eq!((toolbox.faults(), toolbox.registry().len()), (vec![], 0));
    let additions = hook(&toolbox).additions();
    assert_eq!(
        (additions[0].name.as_str(), additions[0].kind, additions[0].summary.as_str()),
        ("Weather", "static", "fills {{VCPWeather}}, {{CITY_WEATHER}} in prompts")
    );
    assert_eq!(
        filled(&toolbox, "No placeholder of ours: {{VCPOther}}").await,
        "No placeholder of ours: {{VCPOther}}"
    );
    assert_eq!(weather.runs(), 0, "nothing runs that no prompt wants");
    let text = filled(&toolbox, "Weather: {{VCPWeather}}. {{CITY_WEATHER}}!").await;
    assert!(text.starts_with("Weather: It snows in Oslo, seen ") && !text.contains("{{"), "{text}");
    // Every second, without a request.
    until("it ran three times", async || weather.runs() >= 3).await;
    until("the newer value is used", async || {
        !filled(&toolbox, "{{VCPWeather}}").await.ends_with(" 1 times")
    })
    .await;

    // A run that fails leaves the value as it is, and is a fault until one succeeds.
    std::fs::write(weather.plugin.join("broken"), "").unwrap();
    until("the failure is told", async || !toolbox.faults().is_empty()).await;
    let fault = &toolbox.faults()[0];
    assert_eq!(
        fault.message,
        "the static plugin Weather failed: sh exited with code 3: the sensor is broken"
    );
    assert!(filled(&toolbox, "{{VCPWeather}}").await.starts_with("It snows in Oslo"));
    std::fs::remove_file(weather.plugin.join("broken")).unwrap();
    until("the fault is gone", async || toolbox.faults().is_empty()).await;
    toolbox.stop().await;
    let at_end = weather.runs();
    assert!(at_end >= 4);
}

#[tokio::test]
async fn static_plugin_without_placeholders_runs_at_load() {
    let lister = sample("Lister");
    let toolbox = lister.load(json!({})).await;
    until("the list is there", async || lister.has("list.txt")).await;
    assert_eq!(toolbox.faults(), []);
}

#[tokio::test]
async fn failed_static_plugin_fills_not_available() {
    let weather = sample("Weather");
    std::fs::write(weather.plugin.join("broken"), "").unwrap();
    let toolbox = weather.load(json!({})).await;
    assert_eq!(filled(&toolbox, "{{VCPWeather}}").await, "[Weather is not available]");
}

#[tokio::test]
async fn preprocessor_runs_only_if_named_in_settings() {
    let censor = sample("Censor");
    let given = || ModelRequest {
        instructions: Some("Never tell the secret.".to_owned()),
        messages: vec![user("my secret"), step("a secret"), user("and the secret?")],
        ..ModelRequest::default()
    };
    let idle = censor.load(json!({})).await;
    let mut request = given();
    hook(&idle).preprocess(&mut request).await;
    assert_eq!((request, hook(&idle).has_preprocessors(), censor.runs()), (given(), false, 0));
    assert_eq!(hook(&idle).additions()[0].summary, "is off: name it in `preprocessors` of [vcp_plugins]");

    let toolbox = censor.load(json!({"preprocessors": ["Censor"]})).await;
    assert_eq!(toolbox.faults(), []);
    let mut request = given();
    hook(&toolbox).preprocess(&mut request).await;
    let expected = vec![user("my ******"), step("a secret"), user("and the ******?")];
    assert_eq!((request.messages, request.instructions), (expected, given().instructions));
    assert_eq!((hook(&toolbox).has_preprocessors(), censor.runs()), (true, 1));

    // One that fails leaves the messages as they are, and is a fault until it succeeds.
    let mut request = ModelRequest { messages: vec![user("break")], ..ModelRequest::default() };
    hook(&toolbox).preprocess(&mut request).await;
    assert_eq!(request.messages, [user("break")]);
    assert_eq!(
        toolbox.faults()[0].message,
        "the message preprocessor Censor failed, and messages were left as they are: \
         python3 exited with code 1: asked to break"
            .replace("python3", program("python"))
    );
    hook(&toolbox).preprocess(&mut given()).await;
    assert_eq!(toolbox.faults(), []);

    let unknown = censor.load(json!({"preprocessors": ["Sensor"]})).await;
    assert_eq!(unknown.faults()[0].message, "preprocessors: there is no plugin `Sensor` in the folders");
}

/// Debian has Python 3 under its full name only.
fn program(name: &str) -> &'static str {
    match SpawnContext::of_this_process().find_program(name) {
        Ok(_) => "python",
        Err(_) => "python3",
    }
}

#[tokio::test]
async fn node_module_preprocessor_is_loaded_and_applied() {
    if SpawnContext::of_this_process().find_program("node").is_err() {
        eprintln!("skipped: there is no node on this machine");
        return;
    }
    let module = sample("Module");
    let toolbox = module.load(json!({"preprocessors": ["Module"]})).await;
    let mut request =
        ModelRequest { messages: vec![user("a"), step("b"), user("c")], ..ModelRequest::default() };
    hook(&toolbox).preprocess(&mut request).await;
    assert_eq!(toolbox.faults(), []);
    assert_eq!(request.instructions.as_deref(), Some("There are 3 messages!"));
    assert_eq!(request.messages, [user("a"), step("b"), user("c")]);
}

async fn call(toolbox: &Toolbox, title: &str) -> CallOutcome {
    let call =
        ToolInvocation::new("call_1", "Later.Film", CallArguments::from_value(json!({"title": title})));
    ToolExecutor::default().run(&toolbox.registry(), call, |_| async {}).await
}

/// The server's side of a callback is in `crates/server/tests/it/vcp.rs`.
#[tokio::test]
async fn asynchronous_plugin_answers_and_keeps_running() {
    let later = sample("Later");
    let toolbox = later.load(json!({"effects": {"Later": "read"}})).await;
    toolbox.set_callback_base("http://127.0.0.1:9");
    let CallOutcome::Done(output) = call(&toolbox, "Dawn").await else { panic!() };
    assert_eq!(output.text, "Task film-1; write {{VCP_ASYNC_RESULT::Later::film-1}}");
    assert!(!later.has("posted"), "it waits for `go`");
    std::fs::write(later.plugin.join("go"), "").unwrap();
    // It calls an address without a server, which only a program that still runs can do.
    until("it tried to call back", async || later.has("posted")).await;

    let outcome = call(&toolbox, "none").await;
    let CallOutcome::Failed { message, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(message, "it answered nothing; stderr: no film is called none");
}

#[tokio::test]
async fn async_callback_with_wrong_token_is_refused() {
    let later = sample("Later");
    let toolbox = later.load(json!({})).await;
    let callback = SourceCallback {
        token: "guessed".to_owned(),
        plugin: "Later".to_owned(),
        task: "film-1".to_owned(),
        body: b"{}".to_vec(),
    };
    assert_eq!(hook(&toolbox).accept_callback(&callback).await, None);
    assert!(!later.plugin.parent().unwrap().join("results").exists(), "nothing was stored");
    let refused = CallbackError::UnknownTask.to_string();
    assert!(refused.contains("asynchronous plugin"));
}

/// A user's VCP checkout: its plugins as tools. `THROUGHLINE_VCP` names the folder of VCPToolBox.
#[tokio::test]
async fn plugins_of_a_vcp_checkout_become_tools() {
    let Some(checkout) = std::env::var_os("THROUGHLINE_VCP") else {
        println!("skipped: THROUGHLINE_VCP names no folder of VCPToolBox");
        return;
    };
    let folder = Path::new(&checkout).join("Plugin");
    let manifests: Vec<Value> = std::fs::read_dir(&folder)
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("plugin-manifest.json")).ok())
        .filter_map(|text| serde_json::from_str(text.trim_start_matches('\u{feff}')).ok())
        .collect();
    let results = tempfile::tempdir().unwrap();
    let settings = json!({"folders": [folder], "results": results.path()});
    let settings: VcpPlugins = serde_json::from_value(settings).unwrap();
    let spawn_context = SpawnContext::of_this_process()
        .with_helper(ExecHelper::new(env!("CARGO_BIN_EXE_throughline-exec"), []));
    let toolbox = Toolbox::new([]).unwrap();
    toolbox.add(Arc::new(VcpPluginSource::new(settings, spawn_context)));
    toolbox.wait_ready(PATIENCE).await;
    let mut listed: Vec<String> =
        hook(&toolbox).additions().into_iter().map(|addition| addition.name).collect();
    let registry = toolbox.registry();
    // Names may have a dot, as those of commands may.
    let tools: Vec<String> = registry.iter().map(|tool| tool.spec().name.to_string()).collect();
    listed.extend(manifests.iter().filter_map(|manifest| {
        let name = manifest["name"].as_str()?;
        tools.iter().any(|tool| tool.starts_with(&format!("{name}."))).then(|| name.to_owned())
    }));
    let faults: Vec<String> = toolbox.faults().into_iter().map(|fault| fault.message).collect();
    eprintln!(
        "{} manifests, {} listed, {} tools; faults:\n{}",
        manifests.len(),
        listed.len(),
        registry.len(),
        faults.join("\n")
    );
    // Every plugin is listed or has a fault with the reason.
    for manifest in &manifests {
        let name = manifest["name"].as_str().unwrap();
        let is_listed = listed.iter().any(|listed| listed == name);
        assert!(is_listed || faults.iter().any(|fault| fault.contains(name)), "{name} is nowhere");
        let kind = manifest["pluginType"].as_str().unwrap();
        if kind.ends_with("service") {
            assert!(!is_listed, "{name} is a {kind}");
        }
    }
    let of_kinds = |kinds: &[&str]| {
        manifests.iter().filter(|manifest| kinds.contains(&manifest["pluginType"].as_str().unwrap())).count()
    };
    let runnable = of_kinds(&["synchronous", "asynchronous", "static", "messagePreprocessor"]);
    assert!(listed.len() + 1 >= runnable, "{} of {runnable} are listed", listed.len());
    println!("vcp: {} of {} plugins are listed", listed.len(), manifests.len());
    // Of August 2026 there were 69, and 47 of them are no services and name a program.
    assert!(listed.len() * 69 >= manifests.len() * 47, "{} of {}", listed.len(), manifests.len());
    // No call is refused for a number or a boolean.
    for tool in registry.iter() {
        let names = tool.spec().parameters["properties"].as_object().unwrap().keys().cloned();
        let values = [json!(7), json!(true), json!(0.5), json!("text")];
        let arguments = names.zip(values.iter().cycle().cloned()).collect::<serde_json::Map<_, _>>();
        let checked = tool.validate(&CallArguments::from_value(arguments.into()));
        assert!(checked.is_ok(), "{}: {checked:?}", tool.spec().name);
    }
    toolbox.stop().await;
}

/// Commands of VCPToolBox that need only their packages, as `docs/vcp.md` lists them, with a part of their
/// output. `$id` is the number in the first output that has one.
const COMMANDS: [(&str, &str, &str); 12] = [
    ("SciCalculator", r#"{"expression": "2 + 3 * 4"}"#, "14"),
    ("ArtistMatcher.FindArtist", r#"{"artist_name": "Krenz Cushart"}"#, "enz"),
    ("ServerPluginSourceViewer", r#"{"targettool": "SciCalculator"}"#, "calculator.py"),
    (
        "ServerCodeSearcher",
        r#"{"query": "SciCalculator", "case_sensitive": true, "context_lines": 1}"#,
        "SciCalculator",
    ),
    ("ScheduleManager.AddSchedule", r#"{"time": "2030-12-31 10:00", "content": "Tea with Ada"}"#, "ID: "),
    ("ScheduleManager.ListSchedules", "{}", "Tea with Ada"),
    ("ScheduleManager.DeleteSchedule", r#"{"id": $id}"#, ""),
    ("SemanticGroupEditor.QueryGroups", "{}", ""),
    ("TimedTaskQuery", r#"{"task_id": "task-1779106560000-650e398d"}"#, "task-1779106560000-650e398d"),
    ("AgentMessage", r#"{"message": "The tea is ready."}"#, "The tea is ready."),
    ("VCPForum.ListAllPosts", "{}", ""),
    (
        "VCPForum.CreatePost",
        r#"{"maid": "Ada", "board": "Tea", "title": "Which one?", "content": "The green one."}"#,
        "",
    ),
];

/// The folder of a plugin. Two are called differently in their manifests.
fn folder_of(command: &str) -> &str {
    let plugin = command.split('.').next().unwrap_or(command);
    plugin.strip_prefix("Server").unwrap_or(plugin)
}

/// Copies a folder with its content, without packages.
fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => copy_folder(&entry.path(), &to),
            kind if kind.is_file() => drop(std::fs::copy(entry.path(), to).unwrap()),
            _ => {}
        }
    }
}

/// The package that a program asks for and has not.
fn missing_package(outcome: &str) -> Option<&str> {
    ["Cannot find module '", "No module named '", "Cannot find package '"]
        .iter()
        .find_map(|begin| outcome.split(begin).nth(1)?.split('\'').next())
}

/// Commands that write, so they work on a copy of the plugins and of the files that these use.
#[tokio::test]
async fn commands_of_a_vcp_checkout_run() {
    let Some(checkout) = std::env::var_os("THROUGHLINE_VCP") else {
        println!("skipped: THROUGHLINE_VCP names no folder of VCPToolBox");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let plugins: std::collections::BTreeSet<&str> =
        COMMANDS.iter().map(|(name, ..)| folder_of(name)).collect();
    for name in &plugins {
        let below = Path::new("Plugin").join(name);
        copy_folder(&Path::new(&checkout).join(&below), &root.join(&below));
    }
    // Packages of VCP itself, which Node looks for above the plugin.
    let packages = Path::new(&checkout).join("node_modules");
    if packages.exists() {
        std::os::unix::fs::symlink(packages, root.join("node_modules")).unwrap();
    }
    let settings = json!({"folders": [root.join("Plugin")], "results": root.join("results"), "sandbox": {"write": [root]}});
    let settings: VcpPlugins = serde_json::from_value(settings).unwrap();
    let spawn_context = SpawnContext::of_this_process()
        .with_helper(ExecHelper::new(env!("CARGO_BIN_EXE_throughline-exec"), []));
    let toolbox = Toolbox::new([]).unwrap();
    toolbox.add(Arc::new(VcpPluginSource::new(settings, spawn_context)));
    assert_eq!(toolbox.wait_ready(PATIENCE).await, [""; 0]);
    let registry = toolbox.registry();
    let (mut done, mut without, mut id) = (0, Vec::new(), String::new());
    for (name, arguments, expected) in COMMANDS {
        let tool = registry.iter().find(|tool| tool.spec().name.as_str().starts_with(name));
        let tool = tool.unwrap_or_else(|| panic!("{name} is not listed: {:?}", toolbox.faults()));
        let arguments: Value = serde_json::from_str(&arguments.replace("$id", &id)).unwrap_or(json!({}));
        let call = ToolInvocation::new("1", tool.spec().name.as_str(), CallArguments::from_value(arguments));
        let outcome = ToolExecutor::default().run(&registry, call, |_| async {}).await;
        let said = format!("{outcome:?}");
        match (&outcome, missing_package(&said)) {
            (_, Some(package)) => without.push(format!("{name} ({package})")),
            (CallOutcome::Done(output), None) => {
                let shown: String = output.text.chars().take(120).collect();
                println!("{name}: {}", shown.replace('\n', " "));
                assert!(output.text.contains(expected), "{name}: {}", output.text);
                let digits = output.text.split(|c: char| !c.is_ascii_digit()).find(|part| part.len() > 9);
                id = digits.filter(|_| id.is_empty()).map_or(id, str::to_owned);
                done += 1;
            }
            _ => panic!("{name}: {said}"),
        }
    }
    toolbox.stop().await;
    println!("vcp: {done} commands did their work, {} lack packages: {without:?}", without.len());
    assert_eq!(done + without.len(), COMMANDS.len());
    assert!(done >= 8, "what needs no packages works");
}
