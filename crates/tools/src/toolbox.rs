//! The tools that are available now: fixed ones, and those of dynamic sources (MCP servers, folders,
//! clients).
//!
//! A [`Toolbox`] makes [`ToolRegistry`] snapshots: a turn uses the one that it began with, and a change makes
//! a new one. A tool that cannot be registered becomes a [`SourceFault`] and affects no other tool. Never
//! runs a tool, never decides which are offered.

use crate::registry::{RegistryBuilder, RegistryError, ToolRegistry};
use crate::source_hook::SourceHook;
use crate::tool::Tool;
use async_trait::async_trait;
use futures_util::FutureExt;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use throughline_engine::{OfferedTool, PolicyRule, RulePart, UnmatchedRule, unmatched_rules};
use throughline_wire::ToolName;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// The group of tools that a request brings along.
const OWN_GROUP: &str = "own";

/// A dynamic source of tools: they may appear, change and disappear while the program runs.
#[async_trait]
pub trait ToolSource: Send + Sync {
    /// Name of the source in its tools' `source`: `mcp:files`, `commands`. Unique in a toolbox.
    fn name(&self) -> &str;

    /// Connects or loads, and reports tools and faults to `news`. Returns as soon as it has reported the first; tasks that
    /// it has spawned may continue reporting until [`stop`](Self::stop). Must not block its thread.
    async fn start(&self, reporter: SourceReporter);

    /// Ends every task that `start` has spawned.
    async fn stop(&self);

    /// Effects of the source besides its tools. Default: none.
    fn hook(&self) -> Option<Arc<dyn SourceHook>> {
        None
    }
}

/// A problem of a source. The rest of the source continues to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFault {
    /// Name of the source.
    pub source: String,
    /// One of its tools; `None` = all of it.
    pub tool: Option<ToolName>,
    /// The problem, in a sentence for people.
    pub message: String,
    /// The remedy.
    pub remedy: Option<String>,
}

/// Channel from a source to its toolbox. Reports of a removed source are ignored.
#[derive(Clone)]
pub struct SourceReporter {
    toolbox: Weak<ToolboxInner>,
    source: String,
    /// Another one of the same name has a higher number.
    generation: u64,
}

/// Fixed tools and sources, and the registry of them all. Cheap to clone; all clones are one.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use async_trait::async_trait;
/// use std::sync::Arc;
/// use throughline_tools::{NoArguments, ToolSource, SourceReporter, Toolbox, tool};
///
/// /// A source with one tool.
/// struct ClockSource;
///
/// #[async_trait]
/// impl ToolSource for ClockSource {
///     fn name(&self) -> &str {
///         "clock"
///     }
///     async fn start(&self, reporter: SourceReporter) {
///         reporter.set_tools(vec![Arc::new(tool("clock.now", "The time", |_: NoArguments, _| async { "noon" }))]);
///     }
///     async fn stop(&self) {}
/// }
///
/// let toolbox = Toolbox::new([])?;
/// toolbox.add(Arc::new(ClockSource));
/// toolbox.wait_ready(std::time::Duration::from_secs(1)).await;
/// assert_eq!(toolbox.registry().len(), 1);
/// # Ok::<(), throughline_tools::RegistryError>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Toolbox {
    inner: Arc<ToolboxInner>,
}

struct ToolboxInner {
    state: Mutex<ToolboxState>,
    /// Counts changes of the registry or of the faults.
    changes: watch::Sender<u64>,
}

struct ToolboxState {
    fixed: Vec<Arc<dyn Tool>>,
    sources: BTreeMap<String, SourceEntry>,
    registry: Arc<ToolRegistry>,
    /// Tools of the last snapshot that could not be registered.
    rejected: Vec<SourceFault>,
    generations: u64,
    /// The server's address, for sources whose programs call back.
    callback_base: Option<String>,
}

struct SourceEntry {
    source: Arc<dyn ToolSource>,
    generation: u64,
    tools: Vec<Arc<dyn Tool>>,
    faults: Vec<SourceFault>,
    report_state: ReportState,
    /// Starting ends with the entry.
    start_task: Option<AbortOnDropHandle<()>>,
}

/// State of a source's reports: none yet, or some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportState {
    Pending,
    Reported,
}

impl Toolbox {
    /// With tools that are always there.
    ///
    /// # Errors
    /// The first fixed tool that cannot be registered: it is a mistake in the program.
    pub fn new(fixed: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, RegistryError> {
        let fixed: Vec<_> = fixed.into_iter().collect();
        let registry = Arc::new(RegistryBuilder::default().tools(fixed.iter().cloned()).build()?);
        let state = ToolboxState {
            fixed,
            sources: BTreeMap::new(),
            registry,
            rejected: Vec::new(),
            generations: 0,
            callback_base: None,
        };
        Ok(Self {
            inner: Arc::new(ToolboxInner { state: Mutex::new(state), changes: watch::Sender::new(0) }),
        })
    }

    /// Adds a source and starts it in the background, on the tokio runtime of the caller. One of the same name is
    /// replaced.
    pub fn add(&self, source: Arc<dyn ToolSource>) {
        let name = source.name().to_owned();
        let (previous, generation) = {
            let mut state = self.inner.state();
            state.generations += 1;
            if let (Some(hook), Some(base)) = (source.hook(), &state.callback_base) {
                hook.set_callback_base(base);
            }
            let generation = state.generations;
            let entry = SourceEntry {
                source: source.clone(),
                generation,
                tools: Vec::new(),
                faults: Vec::new(),
                report_state: ReportState::Pending,
                start_task: None,
            };
            let previous = state.sources.insert(name.clone(), entry).map(|entry| entry.source);
            (previous, generation)
        };
        let reporter =
            SourceReporter { toolbox: Arc::downgrade(&self.inner), source: name.clone(), generation };
        let start_task = tokio::spawn(async move {
            if let Some(previous) = previous {
                previous.stop().await;
            }
            let started = AssertUnwindSafe(source.start(reporter.clone())).catch_unwind().await;
            if started.is_err() {
                reporter.set_fault("starting it panicked; please report this", None);
            }
            reporter.mark_started();
        });
        let start_task = AbortOnDropHandle::new(start_task);
        if let Some(entry) = self.inner.state().sources.get_mut(&name)
            && entry.generation == generation
        {
            entry.start_task = Some(start_task);
        }
    }

    /// Removes a source with its tools, and stops it.
    pub async fn remove(&self, name: &str) {
        let removed = self.inner.change(|state| state.sources.remove(name));
        if let Some(entry) = removed {
            entry.source.stop().await;
        }
    }

    /// Stops all sources and removes their tools.
    pub async fn stop(&self) {
        let sources = self.inner.change(|state| Some(std::mem::take(&mut state.sources)));
        for entry in sources.into_iter().flat_map(BTreeMap::into_values) {
            entry.source.stop().await;
        }
    }

    /// The names of the sources, in order.
    pub fn sources(&self) -> Vec<String> {
        self.inner.state().sources.keys().cloned().collect()
    }

    /// All tools as they are now.
    pub fn registry(&self) -> Arc<ToolRegistry> {
        self.inner.state().registry.clone()
    }

    /// All current problems, by source.
    pub fn faults(&self) -> Vec<SourceFault> {
        let state = self.inner.state();
        let source_faults = state.sources.values().flat_map(|entry| entry.faults.iter());
        source_faults.chain(&state.rejected).cloned().collect()
    }

    /// Rules that fit no tool. Rules that may be about tools yet to come are left out: as long as a
    /// source has not reported, or is not well as a whole, only patterns that name a registered group are checked. Tools
    /// that a request brings along (`own`) are never there.
    pub fn unmatched_rules(&self, rules: &[PolicyRule]) -> Vec<UnmatchedRule> {
        let (registry, all_loaded) = {
            let state = self.inner.state();
            let is_loaded = |entry: &SourceEntry| {
                entry.report_state == ReportState::Reported
                    && entry.faults.iter().all(|fault| fault.tool.is_some())
            };
            (state.registry.clone(), state.sources.values().all(is_loaded))
        };
        let tools = registry.all_as_offered();
        let group_of = |name: &str| name.split(['.', '*', '?']).next().unwrap_or_default().to_owned();
        let mut unmatched = unmatched_rules(rules, &tools);
        unmatched.retain(|unmatched| match &unmatched.part {
            RulePart::Tool(pattern) => {
                let group = group_of(pattern);
                let may_come = group == OWN_GROUP || (!all_loaded && !has_group(&tools, &group));
                !may_come
            }
            RulePart::Source(_) | RulePart::Combination => all_loaded,
            RulePart::RelativeFolder(_) => true,
        });
        unmatched
    }

    /// The effects of sources besides their tools, in the order of the sources' names.
    pub fn hooks(&self) -> Vec<Arc<dyn SourceHook>> {
        self.inner.state().sources.values().filter_map(|entry| entry.source.hook()).collect()
    }

    /// Sets the address of the server, `http://127.0.0.1:8080`, to which programs of sources deliver late
    /// results. For all sources, including those added later.
    pub fn set_callback_base(&self, base: &str) {
        self.inner.state().callback_base = Some(base.to_owned());
        for hook in self.hooks() {
            hook.set_callback_base(base);
        }
    }

    /// Changes its value whenever tools or faults change.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Waits until every source has reported something, tools or fault, but no longer than `limit`. Returns
    /// the names of those that have not; their tools are added when they report.
    pub async fn wait_ready(&self, limit: Duration) -> Vec<String> {
        let mut changed = self.subscribe();
        let all_reported = async {
            while !self.unreported_sources().is_empty() {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        // Over time or not, who is silent is looked up once more.
        let _ = tokio::time::timeout(limit, all_reported).await;
        self.unreported_sources()
    }

    fn unreported_sources(&self) -> Vec<String> {
        let state = self.inner.state();
        let is_unreported = |(name, entry): (&String, &SourceEntry)| {
            (entry.report_state == ReportState::Pending).then(|| name.clone())
        };
        state.sources.iter().filter_map(is_unreported).collect()
    }
}

impl SourceReporter {
    /// Replaces the source's tools.
    pub fn set_tools(&self, tools: Vec<Arc<dyn Tool>>) {
        self.update(|entry| entry.tools = tools);
    }

    /// Replaces the source's faults; an empty list means that it works.
    pub fn set_faults(&self, faults: Vec<SourceFault>) {
        self.update(|entry| entry.faults = faults);
    }

    /// Replaces tools and faults in one step.
    pub fn set_state(&self, tools: Vec<Arc<dyn Tool>>, faults: Vec<SourceFault>) {
        self.update(|entry| (entry.tools, entry.faults) = (tools, faults));
    }

    /// The whole source has this one fault from now on; its tools stay until they are replaced.
    pub fn set_fault(&self, message: impl Into<String>, remedy: Option<String>) {
        let fault = SourceFault { source: self.source.clone(), tool: None, message: message.into(), remedy };
        self.update(|entry| entry.faults = vec![fault]);
    }

    /// The name of the source.
    pub fn source(&self) -> &str {
        &self.source
    }

    fn mark_started(&self) {
        self.update(|_| {});
    }

    fn update(&self, change: impl FnOnce(&mut SourceEntry)) {
        let Some(inner) = self.toolbox.upgrade() else { return };
        inner.change(|state| {
            let entry = state.sources.get_mut(&self.source);
            let entry = entry.filter(|entry| entry.generation == self.generation)?;
            change(entry);
            entry.report_state = ReportState::Reported;
            Some(())
        });
    }
}

impl ToolboxInner {
    fn state(&self) -> MutexGuard<'_, ToolboxState> {
        // Every change is made whole before the lock is let go.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the sources together with the registry, so that readers never see one without the other: a
    /// source that has reported has its tools.
    fn change<T>(&self, change: impl FnOnce(&mut ToolboxState) -> Option<T>) -> Option<T> {
        let mut state = self.state();
        let changed = change(&mut state)?;
        // Fixed tools first, then sources in order of their names: of two tools with the same name the first
        // stays, so that no server can replace another's tool.
        let mut builder = RegistryBuilder::default().tools(state.fixed.iter().cloned());
        for entry in state.sources.values() {
            builder = builder.tools(entry.tools.iter().cloned());
        }
        let (registry, errors) = builder.build_valid();
        state.registry = Arc::new(registry);
        state.rejected = errors.iter().map(rejection_fault).collect();
        drop(state);
        self.changes.send_modify(|changes| *changes += 1);
        Some(changed)
    }
}

/// True if there are tools of this group.
fn has_group(tools: &[OfferedTool], group: &str) -> bool {
    let of_group = |tool: &OfferedTool| tool.name.as_str().split('.').next() == Some(group);
    tools.iter().any(of_group)
}

fn rejection_fault(error: &crate::registry::RejectedTool) -> SourceFault {
    let (tool, remedy) = match &error.why {
        RegistryError::Name { name, .. } => {
            (name, "Names are `group.method`, without white space, of at most 256 bytes.".to_owned())
        }
        RegistryError::Duplicate { name, .. } => {
            (name, "Rename one of them, or disable it at its source.".to_owned())
        }
        RegistryError::Schema { name, .. } => {
            (name, "The schema must be a JSON Schema of an object without external references.".to_owned())
        }
    };
    SourceFault {
        source: error.source.clone(),
        tool: Some(tool.clone()),
        message: error.why.to_string(),
        remedy: Some(remedy),
    }
}
