//! Tools of sources: when turns see them, the reported faults, and a reloaded configuration.

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use throughline::config::{AppSettings, ConfigFile, ConfigFlags, ToolMode, resolve};
use throughline::tools::{Effect, NoArguments, SourceReporter, Tool, ToolAvailability, ToolSource, tool};
use throughline::{SOURCES_WAIT_MAX, Throughline, Upstream};
use throughline_testkit as testkit;

/// A source with tools of the names given, or one that never answers.
struct Fake {
    name: String,
    tools: Option<Vec<&'static str>>,
    started: Arc<AtomicUsize>,
    stopped: Arc<AtomicUsize>,
    news: Mutex<Option<SourceReporter>>,
}

fn source(name: &str, tools: Option<Vec<&'static str>>) -> Arc<Fake> {
    let (started, stopped) = Default::default();
    Arc::new(Fake { name: name.to_owned(), tools, started, stopped, news: Mutex::default() })
}

fn quiet(name: &str) -> Arc<dyn Tool> {
    Arc::new(
        tool(name, "does nothing", |_: NoArguments, _| async { "x" }).effect(Effect::Pure).agent_callable(),
    )
}

#[async_trait]
impl ToolSource for Fake {
    fn name(&self) -> &str {
        &self.name
    }

    async fn start(&self, news: SourceReporter) {
        self.started.fetch_add(1, Ordering::SeqCst);
        match &self.tools {
            Some(names) => news.set_tools(names.iter().map(|name| quiet(name)).collect()),
            None => std::future::pending().await,
        }
        *self.news.lock().unwrap() = Some(news);
    }

    async fn stop(&self) {
        self.stopped.fetch_add(1, Ordering::SeqCst);
    }
}

fn settings(text: &str) -> AppSettings {
    let file = ConfigFile::parse("throughline.toml", text).unwrap();
    resolve(Some(file), &BTreeMap::new(), &ConfigFlags::default()).unwrap()
}

/// An agent with tools and this prompt.
fn agent(prompt: &str) -> String {
    format!(
        "[upstreams.a]\nknown = \"ollama\"\n[agents.default]\nmodel = \"a/m\"\nprompt = \"{prompt}\"\n\
         tool_call = {{ enabled = true }}\n"
    )
}

fn names(app: &Throughline) -> Vec<String> {
    app.tools().iter().map(|tool| tool.spec().name.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn only_the_first_turn_waits_for_sources() {
    let server = testkit::FakeUpstream::start(testkit::ScriptQueue::new([
        testkit::ModelScript::new().say("one"),
        testkit::ModelScript::new().say("two"),
    ]))
    .await
    .unwrap();
    let upstream = Upstream::new(
        "a",
        throughline::wire::Dialect::OpenaiChat,
        &server.base_url(testkit::FakeDialect::OpenaiChat),
    );
    let (quick, silent) = (source("quick", Some(vec!["quick.tool"])), source("silent", None));
    let app = Throughline::builder()
        .upstream(upstream.unwrap().proxy(throughline::UpstreamProxy::Off))
        .model("m")
        .source(quick.clone())
        .source(silent.clone())
        .build()
        .unwrap();
    assert_eq!(quick.started.load(Ordering::SeqCst), 0, "building opens nothing");
    let begun = tokio::time::Instant::now();
    app.ask("hi").await.unwrap().finish().await;
    assert!(begun.elapsed() >= SOURCES_WAIT_MAX, "the silent one is waited for");
    assert_eq!(server.requests()[0].tools.len(), 1, "the tool is offered in the first turn");
    let begun = tokio::time::Instant::now();
    app.ask("hi").await.unwrap().finish().await;
    assert!(begun.elapsed() < SOURCES_WAIT_MAX, "and only once");
    assert_eq!(app.wait_ready(Duration::from_secs(1)).await, ["silent"]);
    assert_eq!((quick.started.load(Ordering::SeqCst), silent.started.load(Ordering::SeqCst)), (1, 1));
    app.stop_sources().await;
    assert_eq!(names(&app), [""; 0]);
    assert_eq!(quick.stopped.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn source_wait_of_the_first_turn_is_configurable() {
    let script = testkit::ModelScript::new().say("one");
    let server = testkit::FakeUpstream::start(testkit::ScriptQueue::new([script])).await.unwrap();
    let url = server.base_url(testkit::FakeDialect::OpenaiChat);
    let upstream = Upstream::new("a", throughline::wire::Dialect::OpenaiChat, &url).unwrap();
    let app = Throughline::builder()
        .settings(settings("[tools]\nwait_ms = 50\n"))
        .upstream(upstream.proxy(throughline::UpstreamProxy::Off))
        .model("m")
        .source(source("silent", None))
        .build()
        .unwrap();
    let begun = tokio::time::Instant::now();
    app.wait_ready(Duration::ZERO).await;
    app.ask("hi").await.unwrap();
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(50) && waited < SOURCES_WAIT_MAX, "{waited:?}");
    app.stop_sources().await;
}

#[tokio::test]
async fn reload_restarts_only_changed_sources() {
    const HTTP: &str =
        "[http_tools.tides]\ndescription = \"High and low water\"\nurl = \"https://example.org/tides\"\n";
    let command = |description: &str| {
        let mut table = toml::Table::new();
        table.insert("description".to_owned(), description.into());
        table.insert("argv".to_owned(), toml::Value::Array(vec!["cargo".into(), "--version".into()]));
        format!("[commands.version]\n{table}")
    };
    let app = Throughline::builder()
        .settings(settings(&format!("{}{HTTP}{}", agent("Old."), command("old"))))
        .tools([quiet("fixed.tool")])
        .build()
        .unwrap();
    assert_eq!(names(&app), ["fixed.tool"], "building starts nothing");
    assert_eq!(app.wait_ready(Duration::from_secs(5)).await, [""; 0]);
    assert_eq!(names(&app), ["commands.version", "fixed.tool", "http_tools.tides"]);

    let wrong = settings("[upstreams.a]\nknown = \"groq\"\n[agents.default]\nmodel = \"a/m\"\n");
    assert!(app.reload(wrong).await.unwrap_err().to_string().contains("GROQ_API_KEY"));
    assert_eq!(names(&app).len(), 3, "a configuration that cannot be used changes nothing");

    let text = format!("{}{HTTP}{}[tools.http]\nports = [8080]\n", agent("New."), command("new"));
    let reloaded = app.reload(settings(&text)).await.unwrap();
    assert_eq!((reloaded.started, reloaded.stopped), (vec!["commands".to_owned()], vec![]));
    assert_eq!(reloaded.restart_required, ["tools"]);
    assert_eq!(app.wait_ready(Duration::from_secs(5)).await, [""; 0]);
    let version = app.tools().get(&"commands.version".into()).unwrap().clone();
    assert_eq!(version.spec().description, "new");
    assert_eq!(app.select_tools(None, None, None).unwrap().prompt.text, "New.");

    let reloaded = app.reload(settings(&format!("{}{HTTP}", agent("New.")))).await.unwrap();
    assert_eq!((reloaded.started, reloaded.stopped), (vec![], vec!["commands".to_owned()]));
    assert_eq!(names(&app), ["fixed.tool", "http_tools.tides"]);
}

#[tokio::test]
async fn source_fault_is_reported_and_other_tools_work() {
    let app = Throughline::builder()
        .settings(settings(&agent("Old.")))
        .tools([quiet("time.now")])
        .source(source("twice", Some(vec!["time.now", "other.tool"])))
        .build()
        .unwrap();
    assert_eq!(app.wait_ready(Duration::from_secs(5)).await, [""; 0]);
    let faults = app.source_faults();
    assert_eq!((faults.len(), faults[0].tool.as_ref().unwrap().as_str()), (1, "time.now"));
    let offer = app.select_tools(None, Some(ToolMode::Native), None).unwrap();
    let offered: Vec<_> =
        offer.discovered.iter().map(|found| (found.tool.spec().name.as_str(), &found.availability)).collect();
    assert_eq!(
        offered,
        [("other.tool", &ToolAvailability::Offered), ("time.now", &ToolAvailability::Offered)]
    );
    assert_eq!(offer.tool_tokens().iter().map(|row| row.tools).sum::<usize>(), 2);
}
