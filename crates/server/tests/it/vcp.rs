//! VCP plugins on a server, as front ends of VCP use them: placeholders, results that arrive later,
//! information blocks, and the marker that forbids tools. The plugins are the test's own programs.

use crate::support::{PATIENCE, TestServer};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use throughline::tools::process::SpawnContext;
use throughline::tools::vcp_plugin::{VcpPluginSource, VcpPlugins};
use throughline_testkit::parsed_request::ParsedMessage;
use throughline_testkit::{ModelScript, ParsedRequest, ScriptQueue};

/// A copy of these samples: their folder, and the folder for results.
struct Plugins(tempfile::TempDir);

impl Plugins {
    fn new(names: &[&str]) -> Self {
        let copy = tempfile::tempdir().unwrap();
        let origin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/tests/vcp_plugins");
        for name in names {
            let target = copy.path().join("Plugin").join(name);
            std::fs::create_dir_all(&target).unwrap();
            for file in std::fs::read_dir(origin.join(name)).unwrap() {
                let file = file.unwrap();
                std::fs::copy(file.path(), target.join(file.file_name())).unwrap();
            }
        }
        Self(copy)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    async fn serve(
        &self,
        script: impl IntoIterator<Item = ModelScript>,
        preprocessors: &[&str],
        prompt: &str,
    ) -> TestServer {
        let settings = json!({
            "folders": [self.path("Plugin")], "results": self.path("results"), "preprocessors": preprocessors,
        });
        let settings: VcpPlugins = serde_json::from_value(settings).unwrap();
        let prompt = prompt.to_owned();
        let build = move |builder: throughline::ThroughlineBuilder| {
            let source = VcpPluginSource::new(settings.clone(), SpawnContext::of_this_process());
            builder.source(Arc::new(source)).prompt(prompt.clone())
        };
        let script: Vec<ModelScript> = script.into_iter().collect();
        let server = TestServer::start_with(ScriptQueue::new(script), build, Default::default()).await;
        server.state.app.toolbox().set_callback_base(&server.url(""));
        server
    }
}

async fn chat(server: &TestServer, model: &str, messages: Value) -> Value {
    let (status, answer) =
        server.post("/v1/chat/completions", json!({"model": model, "messages": messages})).await;
    assert_eq!(status, 200, "{answer}");
    answer["choices"][0]["message"]["content"].clone()
}

fn texts(seen: &ParsedRequest) -> Vec<&str> {
    seen.messages
        .iter()
        .filter_map(|message| match message {
            ParsedMessage::User { text, .. } | ParsedMessage::Assistant { text, .. } => Some(text.as_str()),
            ParsedMessage::Results(_) => None,
        })
        .collect()
}

#[tokio::test]
async fn placeholders_are_filled_in_agent_and_client_prompts() {
    let plugins = Plugins::new(&["Weather"]);
    let server =
        plugins.serve([ModelScript::new().say("Brr.")], &[], "Now: {{ VCPWeather }}; {{VCPUnknown}}").await;
    let messages = json!([
        {"role": "system", "content": "Elsewhere: {{CITY_WEATHER}}"},
        {"role": "user", "content": "What is {{CITY_WEATHER}}?"},
    ]);
    assert_eq!(chat(&server, "default", messages).await, "Brr.");
    let seen = &server.upstream.requests()[0];
    let instructions = seen.instructions.as_deref().unwrap();
    assert!(instructions.starts_with("Now: It snows in Oslo, seen "), "{instructions}");
    assert!(instructions.contains("times; {{VCPUnknown}}"), "{instructions}");
    assert!(instructions.contains("Elsewhere: It snows in Oslo"), "{instructions}");
    assert_eq!(texts(seen), ["What is {{CITY_WEATHER}}?"], "a user's text is no template");
    assert_eq!(server.upstream.violations(), []);
}

#[tokio::test]
async fn preprocessor_changes_model_input_once_per_turn() {
    let plugins = Plugins::new(&["Censor", "Dice"]);
    let script = [ModelScript::new().call("Dice_Roll", json!({"count": 1})), ModelScript::new().say("Six.")];
    let server = plugins.serve(script, &["Censor"], "Roll.").await;
    let messages = json!([{"role": "user", "content": "the secret die"}]);
    assert_eq!(chat(&server, "default", messages).await, "Six.");
    let seen = server.upstream.requests();
    assert_eq!(texts(&seen[0]), ["the ****** die"]);
    assert_eq!(texts(&seen[1])[0], "the ****** die");
    assert!(matches!(seen[1].messages.last(), Some(ParsedMessage::Results(_))), "{:?}", seen[1].messages);
    let runs = std::fs::read_to_string(plugins.path("Plugin/Censor/runs.txt")).unwrap();
    assert_eq!(runs, "run\n", "once for the turn, though there were two steps");
    assert_eq!(server.upstream.violations(), []);
}

#[tokio::test]
async fn async_result_replaces_its_placeholder_in_a_later_turn() {
    let plugins = Plugins::new(&["Later"]);
    let placeholder = "{{VCP_ASYNC_RESULT::Later::film-1}}";
    let script = [
        ModelScript::new().call("Later_Film", json!({"title": "Dawn"})),
        ModelScript::new().say(format!("Here it comes: {placeholder}")),
        ModelScript::new().say("Not yet."),
        ModelScript::new().say("There it is."),
    ];
    let server = plugins.serve(script, &[], "Film.").await;
    let first = json!([{"role": "user", "content": "Film the dawn"}]);
    let said = chat(&server, "default", first).await;
    assert_eq!(said, format!("Here it comes: {placeholder}"));
    let history = |question: &str| {
        json!([
            {"role": "user", "content": "Film the dawn"}, {"role": "assistant", "content": said},
            {"role": "user", "content": format!("{question} {placeholder}")},
        ])
    };
    assert_eq!(chat(&server, "default", history("Now?")).await, "Not yet.");
    let seen = &server.upstream.requests()[2];
    assert_eq!(texts(seen)[1], "Here it comes: [the result of Later (film-1) is not there yet]");

    // The film is made: the plugin, which has been running since, posts it to the server.
    std::fs::write(plugins.path("Plugin/Later/go"), "").unwrap();
    let posted = plugins.path("Plugin/Later/posted");
    let arrives = async {
        while !std::fs::read_to_string(&posted).is_ok_and(|status| status == "200") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, arrives).await.expect("the plugin never posted its result");
    assert_eq!(chat(&server, "default", history("And now?")).await, "There it is.");
    let seen = &server.upstream.requests()[3];
    assert_eq!(texts(seen)[1], "Here it comes: The film Dawn is ready");
    assert_eq!(
        texts(seen)[2],
        format!("And now? {placeholder}"),
        "who asks cannot read results by their ids"
    );
    assert_eq!(server.upstream.violations(), []);
}

#[tokio::test]
async fn plugin_callback_without_the_token_is_404() {
    let plugins = Plugins::new(&["Later"]);
    let server = plugins.serve([ModelScript::new().say("Hi.")], &[], "Film.").await;
    let started = json!([{"role": "user", "content": "Hi"}]);
    chat(&server, "default", started).await;
    for path in ["/plugin-callback/guessed/Later/film-1", "/plugin-callback/guessed/Other/film-1"] {
        let (status, answer) = server.post(path, json!({"message": "I am the film"})).await;
        assert_eq!((status, answer["error"]["code"].as_str()), (404, Some("not_found")), "{path}");
    }
    let large = json!({"message": "x".repeat(300 * 1024)});
    let (status, answer) = server.post("/plugin-callback/guessed/Later/film-1", large).await;
    assert_eq!((status, answer["error"]["code"].as_str()), (413, Some("body_too_large")));
    assert!(answer["error"]["remedy"].is_string());
    assert!(!plugins.path("results").exists(), "nothing was stored");
}

#[tokio::test]
async fn vcp_rendering_emits_information_blocks() {
    let plugins = Plugins::new(&["Notebook"]);
    let script = [
        ModelScript::new().say("Looking.").call("Notebook_Break", json!({})),
        ModelScript::new().call("Notebook_AddNote", json!({"text": "a"})),
        ModelScript::new().say("Done."),
    ];
    let server = plugins.serve(script, &[], "Note.").await;
    let text = chat(&server, "default:vcp", json!([{"role": "user", "content": "Note a"}])).await;
    assert_eq!(
        text.as_str().unwrap(),
        "Looking.\n\n[[VCP调用结果信息汇总:\n- 工具名称: Notebook.Break\n- 执行状态: ❌ ERROR\n\
         - 返回内容: failed – sh exited with code 4: no such command\nVCP调用结果结束]]\n\n\
         [[VCP调用结果信息汇总:\n- 工具名称: Notebook.AddNote\n- 执行状态: ✅ SUCCESS\n- 返回内容: noted\n\
         VCP调用结果结束]]\n\nDone."
    );
}

#[tokio::test]
async fn system_message_can_forbid_server_tools() {
    let plugins = Plugins::new(&["Dice"]);
    let server =
        plugins.serve([ModelScript::new().say("No."), ModelScript::new().say("Yes.")], &[], "Roll.").await;
    let asking = |system: &str| json!([{"role": "system", "content": system}, {"role": "user", "content": "[[VCPToolUse=Forbidden]]?"}]);
    chat(&server, "default", asking("Only talk. [[VCPToolUse=Forbidden]]")).await;
    chat(&server, "default", asking("Do talk.")).await;
    let seen = server.upstream.requests();
    assert!(seen[0].tools.is_empty());
    assert!(!seen[0].instructions.as_deref().unwrap().contains("VCPToolUse"));
    assert!(seen[1].tools.iter().any(|tool| tool.name == "Dice_Roll"), "a user's words forbid nothing");
}
