//! Tools that come and go, and faults that stay alone.

use async_trait::async_trait;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use throughline_tools::{
    NoArguments, SourceReporter, Tool, ToolContext, ToolError, ToolSource, ToolSpec, Toolbox, tool,
};
use throughline_wire::{CallArguments, ToolOutput};

const LONG: Duration = Duration::from_secs(3_600);

fn ping(name: &str) -> Arc<dyn Tool> {
    Arc::new(tool(name, "Answers pong", |_: NoArguments, _| async { "pong" }))
}

/// A tool whose arguments are no object.
struct BadSchema;

#[async_trait]
impl Tool for BadSchema {
    fn definition(&self) -> ToolSpec {
        let mut spec = ToolSpec::new("b.schema", "Takes a text");
        spec.parameters = serde_json::json!({"type": "string"});
        spec
    }

    async fn call(&self, _arguments: &CallArguments, _context: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
}

/// Behaviour of a source when it is started.
enum Does {
    Tells(Vec<Arc<dyn Tool>>),
    Fails(&'static str),
    Panics,
    /// Reports nothing before it is triggered.
    Waits,
}

struct Scripted {
    name: &'static str,
    does: Does,
    news: Mutex<Option<SourceReporter>>,
    stops: AtomicUsize,
}

impl Scripted {
    fn new(name: &'static str, does: Does) -> Arc<Self> {
        Arc::new(Self { name, does, news: Mutex::new(None), stops: AtomicUsize::new(0) })
    }

    fn news(&self) -> SourceReporter {
        self.news.lock().unwrap().clone().unwrap()
    }
}

#[async_trait]
impl ToolSource for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    async fn start(&self, reporter: SourceReporter) {
        *self.news.lock().unwrap() = Some(reporter.clone());
        match &self.does {
            Does::Tells(tools) => reporter.set_tools(tools.clone()),
            Does::Fails(why) => reporter.set_fault(*why, Some("Start it.".into())),
            Does::Panics => panic!("as scripted"),
            Does::Waits => std::future::pending().await,
        }
    }

    async fn stop(&self) {
        self.stops.fetch_add(1, Ordering::Relaxed);
    }
}

fn names(toolbox: &Toolbox) -> Vec<String> {
    toolbox.registry().iter().map(|tool| tool.spec().name.to_string()).collect()
}

fn faults(toolbox: &Toolbox) -> Vec<String> {
    let line = |fault: throughline_tools::SourceFault| format!("{}: {}", fault.source, fault.message);
    toolbox.faults().into_iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn registry_merges_source_and_fixed_tools() {
    let toolbox = Toolbox::new([ping("fixed.one")]).unwrap();
    let before = toolbox.registry();
    toolbox.add(Scripted::new("mcp:a", Does::Tells(vec![ping("a.one"), ping("a.two")])));
    assert!(toolbox.wait_ready(LONG).await.is_empty());
    assert_eq!(names(&toolbox), ["a.one", "a.two", "fixed.one"]);
    assert_eq!(before.len(), 1, "a snapshot does not change");
    assert!(faults(&toolbox).is_empty());
}

/// One source wakes the waiting task while the other reports.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn wait_ready_sees_the_tools_of_all_sources() {
    for round in 0..500 {
        let toolbox = Toolbox::new([]).unwrap();
        toolbox.add(Scripted::new("mcp:a", Does::Tells(vec![ping("a.one")])));
        toolbox.add(Scripted::new("mcp:b", Does::Tells(vec![ping("b.one")])));
        assert!(toolbox.wait_ready(LONG).await.is_empty());
        assert_eq!(names(&toolbox), ["a.one", "b.one"], "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_tools_and_sources_leave_others_registered() {
    let toolbox = Toolbox::new([ping("fixed.one")]).unwrap();
    toolbox.add(Scripted::new(
        "mcp:b",
        Does::Tells(vec![ping("noname"), ping("fixed.one"), Arc::new(BadSchema), ping("b.good")]),
    ));
    toolbox.add(Scripted::new("mcp:c", Does::Fails("no such program")));
    toolbox.add(Scripted::new("mcp:d", Does::Panics));
    assert!(toolbox.wait_ready(LONG).await.is_empty());
    assert_eq!(names(&toolbox), ["b.good", "fixed.one"]);
    let faults = faults(&toolbox);
    assert_eq!(faults.len(), 5, "{faults:#?}");
    for part in ["no such program", "panicked", "noname", "two tools named `fixed.one`", "b.schema"] {
        assert!(faults.iter().any(|fault| fault.contains(part)), "{part}: {faults:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn source_can_update_its_tools_and_be_removed() {
    let toolbox = Toolbox::new([]).unwrap();
    let source = Scripted::new("mcp:a", Does::Tells(vec![ping("a.one")]));
    toolbox.add(source.clone());
    toolbox.wait_ready(LONG).await;
    let mut changed = toolbox.subscribe();
    changed.mark_unchanged();

    source.news().set_state(vec![ping("a.two")], Vec::new());
    assert!(changed.has_changed().unwrap());
    assert_eq!(names(&toolbox), ["a.two"]);

    toolbox.remove("mcp:a").await;
    assert_eq!(source.stops.load(Ordering::Relaxed), 1);
    source.news().set_tools(vec![ping("a.three")]);
    assert!(names(&toolbox).is_empty(), "what a removed source says is ignored");
}

#[tokio::test(start_paused = true)]
async fn a_source_of_the_same_name_replaces_the_one_before() {
    let toolbox = Toolbox::new([]).unwrap();
    let old = Scripted::new("mcp:a", Does::Tells(vec![ping("a.old")]));
    toolbox.add(old.clone());
    toolbox.wait_ready(LONG).await;
    toolbox.add(Scripted::new("mcp:a", Does::Tells(vec![ping("a.new")])));
    toolbox.wait_ready(LONG).await;
    assert_eq!(old.stops.load(Ordering::Relaxed), 1);
    old.news().set_tools(vec![ping("a.old")]);
    assert_eq!(names(&toolbox), ["a.new"]);
}

#[tokio::test(start_paused = true)]
async fn wait_ready_times_out_for_a_silent_source() {
    let toolbox = Toolbox::new([]).unwrap();
    toolbox.add(Scripted::new("mcp:slow", Does::Waits));
    toolbox.add(Scripted::new("mcp:quick", Does::Tells(vec![ping("quick.one")])));
    assert_eq!(toolbox.wait_ready(Duration::from_secs(10)).await, ["mcp:slow"]);
    assert_eq!(names(&toolbox), ["quick.one"]);
}
