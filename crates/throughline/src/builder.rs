//! Puts an application together.

use crate::app::{Inner, Throughline};
use crate::approval::{Answer, Approval, ApprovalAsk};
use crate::clients::{CLIENT_GRACE_DEFAULT, Clients};
use crate::config::{Mode, Protocol, ResultsAs, Settings};
use crate::driver::ApprovalHandler;
use crate::error::Error;
use crate::media::MediaStore;
use crate::memory::{Everybodys, InMemoryByUser, Memories, Memory};
use crate::observer::{KeepRaw, Observer};
use crate::own_agents::OwnAgents;
use crate::plan::{Overlay, Plan};
use crate::prompt;
use crate::upstream::Upstream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use throughline_engine::{Execution, RetryPolicy, StartRule, TurnLimits};
use throughline_store::{Log, MemoryLog};
use throughline_tools::mcp::Pins;
use throughline_tools::process::Surroundings;
use throughline_tools::{Executor, ExecutorLimits, Source, Spool, Tool, Toolbox};
use throughline_wire::Limits;
use tokio::sync::OnceCell;

/// Puts an application together. Every call says one thing; what is not said has a default.
#[derive(Default)]
pub struct Builder {
    settings: Option<Settings>,
    overlay: Overlay,
    tools: Vec<Arc<dyn Tool>>,
    sources: Vec<Arc<dyn Source>>,
    surroundings: Option<Surroundings>,
    pins: Option<Pins>,
    memories: Option<Arc<dyn Memories>>,
    log: Option<Arc<dyn Log>>,
    approval: Approval,
    approval_handler: Option<ApprovalHandler>,
    executor_limits: ExecutorLimits,
    spool: Option<PathBuf>,
    client_grace: Option<Duration>,
    observer: Option<Arc<dyn Observer>>,
    media: Option<Arc<dyn MediaStore>>,
    keep_raw: KeepRaw,
}

impl Builder {
    /// Everything that a configuration says; what is said here besides is on top of it.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Adds an upstream. One of the same name is replaced.
    pub fn upstream(mut self, upstream: Upstream) -> Self {
        self.overlay.upstreams.push(upstream);
        self
    }

    /// The model: its name alone if there is one upstream, else `upstream/model`.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.overlay.model = Some(model.into());
        self
    }

    /// A model to go on with when those before cannot be had, before the first token only. R: T11
    pub fn fallback(mut self, model: impl Into<String>) -> Self {
        self.overlay.fallbacks.push(model.into());
        self
    }

    /// The template of the system prompt; `{{ tools }}`, `{{ date }}` and the others of [`prompt`] are known. Text with
    /// braces of its own stands between `{% raw %}` and `{% endraw %}`. R: X5
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.overlay.prompt = Some(prompt.into());
        self
    }

    /// How calls travel. Default: in the upstream's own field; [`Mode::Text`] for models that cannot call tools. R: T3
    pub fn mode(mut self, mode: Mode) -> Self {
        self.overlay.mode = Some(mode);
        self
    }

    /// The grammar of text mode. Default: `vcp`. R: X1
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.overlay.protocol = Some(protocol);
        self
    }

    /// Who says the results of calls in text mode. Default: the user, in a frame. R: T9
    pub fn results_as(mut self, results: ResultsAs) -> Self {
        self.overlay.results = Some(results);
        self
    }

    /// Calls of one step run beside each other, as far as the tools' concurrency classes allow. R: T7
    pub fn parallel(mut self) -> Self {
        self.overlay.execution = Execution::Parallel;
        self
    }

    /// When tools that change nothing start. Default: while the model still talks. R: T6
    pub fn start_rule(mut self, start: StartRule) -> Self {
        self.overlay.start = start;
        self
    }

    /// Registers a tool. Models may call it only if it says so (`agent_callable`). R: L1
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Registers several tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds a source of tools that come and go. It is started by the first turn, or by
    /// [`Throughline::ready`]. R: L2
    pub fn source(mut self, source: Arc<dyn Source>) -> Self {
        self.sources.push(source);
        self
    }

    /// Where programs of the configuration are started: environment, folder, helper. Default: as this process.
    pub fn surroundings(mut self, surroundings: Surroundings) -> Self {
        self.surroundings = Some(surroundings);
        self
    }

    /// Definitions of MCP servers' tools that were agreed to. Default: those of this program's lifetime.
    pub fn pins(mut self, pins: Pins) -> Self {
        self.pins = Some(pins);
        self
    }

    /// Where answers are kept that always hold, in a program with one user. Default: in memory, until the program ends,
    /// and for each user apart. R: A2
    pub fn memory(self, memory: Arc<dyn Memory>) -> Self {
        self.memories(Arc::new(Everybodys(memory)))
    }

    /// Where answers are kept that always hold, for each user apart.
    pub fn memories(mut self, memories: Arc<dyn Memories>) -> Self {
        self.memories = Some(memories);
        self
    }

    /// Who answers when a tool wants to change something. Default: whoever holds the turn is asked.
    pub fn approval(mut self, approval: Approval) -> Self {
        self.approval = approval;
        self
    }

    /// Lets the program answer questions. Whoever holds the turn may still answer first.
    ///
    /// ```
    /// use throughline::{Answer, Throughline};
    /// let builder = Throughline::builder().on_approval(|ask| async move {
    ///     if ask.tool.as_str() == "calendar.add" { Answer::approve() } else { Answer::deny("only the calendar") }
    /// });
    /// ```
    pub fn on_approval<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(ApprovalAsk) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        self.approval_handler = Some(Arc::new(move |ask| Box::pin(answer(ask))));
        self
    }

    /// Where turns are logged. Default: in memory.
    pub fn log(mut self, log: Arc<dyn Log>) -> Self {
        self.log = Some(log);
        self
    }

    /// Bounds of a turn.
    pub fn limits(mut self, limits: TurnLimits) -> Self {
        self.overlay.limits = Some(limits);
        self
    }

    /// Bounds of the decoder.
    pub fn decode_limits(mut self, limits: Limits) -> Self {
        self.overlay.decode_limits = Some(limits);
        self
    }

    /// Bounds of running tools and their output.
    pub fn executor_limits(mut self, limits: ExecutorLimits) -> Self {
        self.executor_limits = limits;
        self
    }

    /// Retries of a model call before its first token. R: T11
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.overlay.retry = Some(retry);
        self
    }

    /// Where outputs too large for the log are kept. Default: nowhere, only head and tail are.
    pub fn spool(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spool = Some(directory.into());
        self
    }

    /// How long the tools of a client stay offered after its connection is lost. Default 60 s. R: L2
    pub fn client_grace(mut self, grace: Duration) -> Self {
        self.client_grace = Some(grace);
        self
    }

    /// Who watches all turns: for metrics, histories of calls, raw bytes. Default: nobody. R: O1
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Where pictures, sounds and files are kept that are too large for the log. Default: nowhere, they stand in it. R: T12
    pub fn media(mut self, media: Arc<dyn MediaStore>) -> Self {
        self.media = Some(media);
        self
    }

    /// The bytes of upstreams are told to the observer, of every turn. Default: of those that ask for it. R: S5
    pub fn keep_raw(mut self, keep_raw: KeepRaw) -> Self {
        self.keep_raw = keep_raw;
        self
    }

    /// Checks everything and opens nothing: the first connection is made by the first turn.
    ///
    /// # Errors
    /// No model, a model whose upstream is not there, a missing key of the model that answers by default, a prompt that is
    /// no template, tools that cannot be registered.
    pub fn build(self) -> Result<Throughline, Error> {
        let settings = self.settings.unwrap_or_default();
        let surroundings = self.surroundings.unwrap_or_else(Surroundings::of_this_process);
        let pins = self.pins.unwrap_or_else(Pins::in_memory);
        let configured = settings.sources.sources(&surroundings, &pins);
        let section = settings.tools.clone();
        let plan = Plan::new(settings, &self.overlay)?;
        let toolbox = Toolbox::new(self.tools)?;
        let executor = Executor::new(self.executor_limits);
        let executor = match self.spool {
            Some(directory) => executor.with_spool(Spool::new(directory)),
            None => executor,
        };
        let mut waiting = self.sources;
        waiting.extend(configured.values().map(|configured| configured.source.clone()));
        Ok(Throughline {
            inner: Arc::new(Inner {
                plan: RwLock::new(Arc::new(plan)),
                overlay: self.overlay,
                toolbox,
                waiting: Mutex::new(waiting),
                first_wait: OnceCell::new(),
                surroundings,
                pins,
                memories: self.memories.unwrap_or_else(|| Arc::new(InMemoryByUser::default())),
                forgetful: Mutex::default(),
                configured: tokio::sync::Mutex::new((configured, section)),
                prompts: prompt::Cache::default(),
                executor,
                log: self.log.unwrap_or_else(|| Arc::new(MemoryLog::default())),
                approval: self.approval,
                approval_handler: self.approval_handler,
                own_agents: OwnAgents::default(),
                clients: Clients::new(self.client_grace.unwrap_or(CLIENT_GRACE_DEFAULT)),
                observer: self.observer,
                media: self.media,
                keep_raw: self.keep_raw,
            }),
        })
    }
}
