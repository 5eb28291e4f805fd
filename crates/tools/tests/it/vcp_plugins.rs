//! Plugin folders of VCP, offered unchanged: three of our own, and every mistake that makes one unusable.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use throughline_tools::process::{ExecHelper, SpawnContext};
use throughline_tools::vcp_plugin::{VcpPluginSource, VcpPlugins};
use throughline_tools::{Effect, ToolExecutor, ToolInvocation, ToolToggles, Toolbox};
use throughline_wire::{CallArguments, CallOutcome, ToolOutput, VcpCommand};

async fn toolbox(settings: Value) -> Toolbox {
    let settings: VcpPlugins = serde_json::from_value(settings).unwrap();
    let spawn_context = SpawnContext::of_this_process()
        .with_helper(ExecHelper::new(env!("CARGO_BIN_EXE_throughline-exec"), []));
    let toolbox = Toolbox::new([]).unwrap();
    toolbox.add(Arc::new(VcpPluginSource::new(settings, spawn_context)));
    toolbox.wait_ready(Duration::from_secs(30)).await;
    toolbox
}

/// A copy of the samples, which write into their folders: the folder that holds them.
fn samples() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let origin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vcp_plugins");
    for plugin in ["Dice", "Notebook", "Painter"] {
        let target = copy.path().join("Plugin").join(plugin);
        std::fs::create_dir_all(&target).unwrap();
        for file in std::fs::read_dir(origin.join(plugin)).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), target.join(file.file_name())).unwrap();
        }
    }
    copy
}

async fn call(toolbox: &Toolbox, tool: &str, arguments: Value, limit: Option<Duration>) -> CallOutcome {
    let call = ToolInvocation {
        timeout: limit,
        ..ToolInvocation::new("call_1", tool, CallArguments::from_value(arguments))
    };
    ToolExecutor::default().run(&toolbox.registry(), call, |_| async {}).await
}

async fn done(toolbox: &Toolbox, tool: &str, arguments: Value) -> ToolOutput {
    match call(toolbox, tool, arguments, None).await {
        CallOutcome::Done(output) => output,
        other => panic!("{tool}: {other:?}"),
    }
}

async fn failure(toolbox: &Toolbox, tool: &str, arguments: Value) -> String {
    match call(toolbox, tool, arguments, None).await {
        CallOutcome::Failed { message, .. } => message,
        other => panic!("{tool}: {other:?}"),
    }
}

#[tokio::test]
async fn commands_of_plugins_are_tools_with_their_vcp_names() {
    let folder = samples();
    let effects = json!({"Dice": "pure", "Notebook": "read", "Notebook.AddNote": "write"});
    let toolbox = toolbox(json!({"folders": [folder.path().join("Plugin")], "effects": effects})).await;
    assert_eq!(toolbox.faults(), []);
    let offered = toolbox.registry().offered(&ToolToggles::default());
    let facts: Vec<_> =
        offered.iter().map(|tool| (tool.name.as_str(), tool.effect, tool.timeout_ms)).collect();
    assert_eq!(
        facts,
        [
            ("Dice.Roll", Effect::Pure, 10_000),
            ("Notebook.AddNote", Effect::Write, 5_000),
            ("Notebook.Break", Effect::Read, 5_000),
            ("Notebook.Elsewhere", Effect::Read, 5_000),
            ("Notebook.Hang", Effect::Read, 5_000),
            ("Notebook.ListNotes", Effect::Read, 5_000),
            ("Painter.Paint", Effect::External, 10_000),
        ]
    );
    let vcp = |at: usize| offered[at].definition.vcp.clone().unwrap();
    assert_eq!(vcp(0), VcpCommand::new("Dice", None));
    let aliases = vec!["Jotter".to_owned()];
    assert_eq!(vcp(1), VcpCommand { aliases, ..VcpCommand::new("Notebook", Some("AddNote")) });
    let dice = &offered[0].definition;
    assert!(
        dice.description.starts_with("Rolls dice of 6 sides, at the table green, for {{UnknownName}}. Never shows {{DiceKey}}.\n<<<[TOOL_REQUEST]>>>"),
        "{}",
        dice.description
    );
    assert!(dice.description.ends_with("<<<[END_TOOL_REQUEST]>>>"), "the example is part of it");
    let properties = dice.parameters["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["count", "label"]);
    assert_eq!((offered[0].title.as_str(), offered[0].source.as_str()), ("骰子", "vcp_plugins"));
}

#[tokio::test]
async fn plugin_input_environment_and_output_match_vcp() {
    let folder = samples();
    let toolbox = toolbox(json!({"folders": [folder.path().join("Plugin")]})).await;
    let reply = done(
        &toolbox,
        "Dice.Roll",
        json!({"count": 2, "label": "攻击", "tags": ["a"], "fair": true, "edge": 0.50}),
    )
    .await
    .value
    .unwrap();
    assert_eq!(reply["rolled"], json!([6, 6]));
    assert_eq!(
        reply["request"],
        json!({"count": "2", "label": "攻击", "tags": "[\"a\"]", "fair": "true", "edge": "0.5"}),
        "texts, as a block would have"
    );
    // Of a test that cargo runs, and whose environment is full of CARGO_…
    let environment = ["DebugMode", "DiceKey", "DiceSides", "DiceTable", "PYTHONIOENCODING"];
    assert_eq!(reply["environment"], json!(environment));
    assert_eq!(reply["folder"], "Dice");

    assert_eq!(done(&toolbox, "Notebook.AddNote", json!({"text": "first"})).await.text, "noted");
    assert_eq!(done(&toolbox, "Notebook.AddNote", json!({"text": "$(id); 二"})).await.text, "noted");
    assert_eq!(done(&toolbox, "Notebook.ListNotes", json!({})).await.text, "first|$(id); 二|");

    let painted = done(&toolbox, "Painter.Paint", json!({})).await;
    assert_eq!(painted.text, "painted, having read ''", "nothing to say is nothing, as in VCP");
    assert_eq!(
        (painted.media.len(), painted.value),
        (1, Some(json!({"width": 1}))),
        "the answer counts, not the exit code"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_or_hanging_plugin_is_reported_and_killed() {
    let folder = samples();
    let toolbox = toolbox(
        json!({"folders": [folder.path().join("Plugin/Dice"), folder.path().join("Plugin/Notebook")]}),
    )
    .await;
    let message = failure(&toolbox, "Dice.Roll", json!({"count": "10"})).await;
    assert_eq!(message, "10 dice do not fit on the table; key …");
    let message = failure(&toolbox, "Notebook.Break", json!({})).await;
    assert_eq!(message, "sh exited with code 4: no such command");
    // By which its processes are known among all others of this machine.
    let seconds = format!("8{:07}", std::process::id());
    std::fs::write(folder.path().join("Plugin/Notebook/seconds.txt"), &seconds).unwrap();
    let limit = Duration::from_millis(500);
    let outcome = call(&toolbox, "Notebook.Hang", json!({}), Some(limit)).await;
    assert!(matches!(outcome, CallOutcome::TimedOut { limit_ms: 500, .. }), "{outcome:?}");
    let alive = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    assert_eq!(
        alive.filter(|line| line.windows(seconds.len()).any(|part| part == seconds.as_bytes())).count(),
        0,
        "something survived"
    );
}

#[tokio::test]
async fn number_argument_reaches_the_plugin_as_written() {
    let folder = samples();
    let toolbox = toolbox(json!({"folders": [folder.path().join("Plugin/Dice")]})).await;
    let written = r#"{"count": 1, "id": 123456789012345678901, "at": 1.50}"#;
    let arguments = CallArguments {
        text: written.to_owned(),
        ..CallArguments::from_value(serde_json::from_str(written).unwrap())
    };
    let call = ToolInvocation::new("call_1", "Dice.Roll", arguments);
    let outcome = ToolExecutor::default().run(&toolbox.registry(), call, |_| async {}).await;
    let CallOutcome::Done(output) = outcome else { panic!("{outcome:?}") };
    let request = json!({"count": "1", "id": "123456789012345678901", "at": "1.50"});
    assert_eq!(output.value.unwrap()["request"], request);
}

#[tokio::test]
async fn denied_path_error_names_the_sandbox_setting() {
    let folder = samples();
    let plugins = folder.path().join("Plugin");
    let outside = folder.path().canonicalize().unwrap().join("diary");
    std::fs::create_dir(&outside).unwrap();
    let confined = toolbox(json!({ "folders": [plugins] })).await;
    let message = failure(&confined, "Notebook.Elsewhere", json!({})).await;
    let remedy = format!(
        "\nThe sandbox does not let it write {}. To allow that, name the file or its folder in `sandbox.write` of [vcp_plugins].",
        outside.join("note.txt").display()
    );
    assert!(message.ends_with(&remedy), "{message}");
    // With the remedy it works.
    let sandbox = json!({"write": [outside]});
    let allowed = toolbox(json!({"folders": [plugins], "sandbox": sandbox})).await;
    assert_eq!(done(&allowed, "Notebook.Elsewhere", json!({})).await.text, "noted");
    assert_eq!(std::fs::read_to_string(outside.join("note.txt")).unwrap(), "elsewhere\n");
}

#[tokio::test]
async fn invalid_plugin_is_one_fault_and_others_work() {
    let good = |more: Value| {
        let mut manifest = json!({
            "name": "Bad", "pluginType": "synchronous", "entryPoint": {"command": "sh x.sh"},
            "communication": {"protocol": "stdio"},
            "capabilities": {"invocationCommands": [{"commandIdentifier": "Do", "description": "d"}]},
        });
        for (key, value) in more.as_object().unwrap() {
            manifest[key] = value.clone();
        }
        manifest.to_string()
    };
    for (manifest, message) in [
        ("{".to_owned(), "its manifest cannot be used: EOF while parsing an object at line 1 column 1"),
        (good(json!({"name": ""})), "its manifest cannot be used: it has no name"),
        (
            good(json!({"pluginType": "static", "refreshIntervalCron": "hourly"})),
            "its refreshIntervalCron cannot be read: `hourly` has 1 fields and not 5 or 6",
        ),
        (
            good(json!({"pluginType": "asynchronous", "name": "two words"})),
            "`two words` cannot be the name of an asynchronous plugin",
        ),
        (
            good(json!({"pluginType": "service"})),
            "Bad is of the kind `service`, whose routes and sockets are parts of the VCP server",
        ),
        (
            good(json!({"pluginType": "hybridservice"})),
            "Bad is of the kind `hybridservice`, which uses internals of the VCP server",
        ),
        (
            good(json!({"pluginType": "messagePreprocessor", "communication": {"protocol": "http"}})),
            "Bad uses `http`, which is not supported",
        ),
        (good(json!({"communication": {"protocol": "direct"}})), "Bad uses `direct`, which is not supported"),
        (
            good(json!({"entryPoint": {"command": "node x.js && rm y"}})),
            "its entry point `node x.js && rm y` requires a shell, which is not supported",
        ),
        (
            good(json!({"entryPoint": {"command": "no-such-runtime x"}})),
            "there is no program `no-such-runtime` in PATH",
        ),
        (good(json!({"entryPoint": {"command": "./gone.sh"}})), "there is no program "),
        (good(json!({"capabilities": {}})), "Bad has no invocation commands"),
        (good(json!({"name": "Dice"})), "there are two plugins named Dice; this one is left out"),
    ] {
        let folder = samples();
        let bad = folder.path().join("Plugin/Zbad");
        std::fs::create_dir(&bad).unwrap();
        std::fs::write(bad.join("plugin-manifest.json"), manifest).unwrap();
        let toolbox = toolbox(json!({"folders": [folder.path().join("Plugin")]})).await;
        let faults = toolbox.faults();
        assert_eq!(faults.len(), 1, "{message}: {faults:?}");
        let message_text = faults[0].message.strip_prefix(&format!("{}: ", bad.display()));
        assert!(
            message_text.is_some_and(|text| text.starts_with(message)),
            "expected {message}, got {faults:?}"
        );
        assert!(faults[0].remedy.is_some(), "{message}");
        assert_eq!(toolbox.registry().len(), 7, "{message}");
    }
    // An invalid name, and folders that are not plugins.
    let folder = samples();
    let manifest = folder.path().join("Plugin/Painter/plugin-manifest.json");
    std::fs::write(&manifest, good(json!({"name": "white space", "entryPoint": {"command": "sh x"}})))
        .unwrap();
    let empty = tempfile::tempdir().unwrap();
    let folders = [folder.path().join("Plugin"), empty.path().to_owned(), "/no/such/folder".into()];
    let toolbox = toolbox(json!({ "folders": folders })).await;
    let faults: Vec<String> = toolbox.faults().into_iter().map(|fault| fault.message).collect();
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(faults[0].ends_with("no plugin found (no plugin-manifest.json)"), "{faults:?}");
    assert_eq!(faults[1], "/no/such/folder: No such file or directory (os error 2)");
    assert!(faults[2].contains("white space in it"), "{faults:?}");
    assert_eq!(toolbox.registry().len(), 6);
}
