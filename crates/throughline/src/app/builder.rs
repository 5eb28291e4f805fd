//! Puts an application together.

use super::plan::{AppPlan, BuilderOverrides};
use super::user_agents::UserAgents;
use super::{AppInner, Throughline};
use crate::agent::{ResultRole, TextProtocolKind, ToolMode, prompt};
use crate::approval::store::{ApprovalStore, ApprovalStores, InMemoryApprovalStores, SharedApprovalStore};
use crate::approval::{ApprovalMode, ApprovalRequest, ApprovalResponse};
use crate::clients::{CLIENT_GRACE_DEFAULT, ClientRegistry};
use crate::config::AppSettings;
use crate::driver::ApprovalHandler;
use crate::error::Error;
use crate::media::MediaStore;
use crate::observe::TurnObserver;
use crate::upstream::Upstream;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use throughline_engine::{ExecutionMode, PolicyRule, RetryPolicy, RuleAction, StartRule, TurnLimits};
use throughline_store::{Log, MemoryLog};
use throughline_tools::mcp::PinStore;
use throughline_tools::process::SpawnContext;
use throughline_tools::{ExecutorLimits, OutputSpool, Tool, ToolExecutor, ToolSource, Toolbox};
use throughline_wire::DecodeLimits;
use tokio::sync::OnceCell;

/// Builds a [`Throughline`]. Every setting that is not called has a default.
///
/// ```
/// use throughline::{ApprovalMode, Throughline, Upstream, wire::Dialect};
///
/// let local = Upstream::new("local", Dialect::Ollama, "http://127.0.0.1:11434")?;
/// let app = Throughline::builder()
///     .upstream(local)
///     .model("qwen3")
///     .fallback("qwen3:4b")
///     .prompt("You are a brief assistant.")
///     .approval(ApprovalMode::DenyAll { reason: "no user is available to ask".to_owned() })
///     .build()?;
/// assert_eq!(app.agent_for(None, &None)?.models.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct ThroughlineBuilder {
    settings: Option<AppSettings>,
    overrides: BuilderOverrides,
    tools: Vec<Arc<dyn Tool>>,
    sources: Vec<Arc<dyn ToolSource>>,
    spawn_context: Option<SpawnContext>,
    pins: Option<PinStore>,
    approval_stores: Option<Arc<dyn ApprovalStores>>,
    log: Option<Arc<dyn Log>>,
    approval: ApprovalMode,
    approval_handler: Option<ApprovalHandler>,
    executor_limits: ExecutorLimits,
    spool: Option<PathBuf>,
    client_grace: Option<Duration>,
    observer: Option<Arc<dyn TurnObserver>>,
    media: Option<Arc<dyn MediaStore>>,
    keep_raw: bool,
}

impl ThroughlineBuilder {
    /// Applies a whole configuration; the builder's other methods override it.
    pub fn settings(mut self, settings: AppSettings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Adds an upstream. One of the same name is replaced.
    pub fn upstream(mut self, upstream: Upstream) -> Self {
        self.overrides.upstreams.push(upstream);
        self
    }

    /// The model: its name alone if there is one upstream, else `upstream/model`.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.overrides.model = Some(model.into());
        self
    }

    /// A model to fall back to when the ones before it are unavailable, before the first token only.
    pub fn fallback(mut self, model: impl Into<String>) -> Self {
        self.overrides.fallbacks.push(model.into());
        self
    }

    /// The template of the system prompt, with `{{ tools }}`, `{{ date }}` and the other values of [`prompt`]. Wrap
    /// literal braces in `{% raw %}` and `{% endraw %}`.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.overrides.prompt = Some(prompt.into());
        self
    }

    /// Transport of tool calls. Default: native, in the upstream's own field; [`ToolMode::Text`] for models that
    /// cannot call tools.
    pub fn mode(mut self, mode: ToolMode) -> Self {
        self.overrides.mode = Some(mode);
        self
    }

    /// The grammar of text mode. Default: `vcp`.
    pub fn protocol(mut self, protocol: TextProtocolKind) -> Self {
        self.overrides.protocol = Some(protocol);
        self
    }

    /// Role of tool results in text mode. Default: the user's, in a frame.
    pub fn result_role(mut self, results: ResultRole) -> Self {
        self.overrides.results = Some(results);
        self
    }

    /// Runs the calls of a step in parallel, as far as the tools' concurrency classes allow.
    pub fn parallel(mut self) -> Self {
        self.overrides.execution = ExecutionMode::Parallel;
        self
    }

    /// The moment at which tools without side effects start. Default: while the model is still streaming.
    pub fn start_rule(mut self, start: StartRule) -> Self {
        self.overrides.start = start;
        self
    }

    /// Registers a tool. Models may call it only if it allows that (`agent_callable`).
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Registers several tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds a source of tools that come and go. The first turn starts it, or [`Throughline::wait_ready`].
    pub fn source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.sources.push(source);
        self
    }

    /// Environment, folder and helper of the programs that the configuration starts. Default: as this process.
    pub fn spawn_context(mut self, spawn_context: SpawnContext) -> Self {
        self.spawn_context = Some(spawn_context);
        self
    }

    /// Definitions of MCP servers' tools that were agreed to. Default: those of this program's lifetime.
    pub fn pins(mut self, pins: PinStore) -> Self {
        self.pins = Some(pins);
        self
    }

    /// Store of permanent approvals, in a program with one user. Default: in memory until the program ends,
    /// separately for each user.
    pub fn approval_store(self, store: Arc<dyn ApprovalStore>) -> Self {
        self.approval_stores(Arc::new(SharedApprovalStore(store)))
    }

    /// Store of permanent approvals, separate for each user.
    pub fn approval_stores(mut self, stores: Arc<dyn ApprovalStores>) -> Self {
        self.approval_stores = Some(stores);
        self
    }

    /// Sets the approval mode. Default: the holder of the [`TurnHandle`](crate::TurnHandle) is asked.
    pub fn approval(mut self, approval: ApprovalMode) -> Self {
        self.approval = approval;
        self
    }

    /// Lets the program answer approval requests. The holder of the turn may still answer first.
    ///
    /// ```
    /// use throughline::{ApprovalResponse, Throughline};
    /// let builder = Throughline::builder().on_approval(|ask| async move {
    ///     if ask.tool.as_str() == "calendar.add" { ApprovalResponse::approve() } else { ApprovalResponse::deny("only the calendar") }
    /// });
    /// ```
    pub fn on_approval<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(ApprovalRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ApprovalResponse> + Send + 'static,
    {
        self.approval_handler = Some(Arc::new(move |ask| Box::pin(answer(ask))));
        self
    }

    /// Lets calls of these tools run unasked: a name, a group (`notes`) or a glob (`notes.*`).
    ///
    /// Rules are looked at in the order in which they are given here, then those of the configuration; the first that
    /// fits decides. Without one the effect of the tool does.
    ///
    /// ```
    /// use throughline::Throughline;
    /// let builder = Throughline::builder().deny("notes.delete", "nothing is deleted here").allow("notes.*");
    /// ```
    pub fn allow(self, tools: impl Into<String>) -> Self {
        self.policy([PolicyRule::new(RuleAction::Allow).tool(tools)])
    }

    /// Asks for approval of each call of these tools, regardless of their effect.
    pub fn require_approval(self, tools: impl Into<String>) -> Self {
        self.policy([PolicyRule::new(RuleAction::Ask).tool(tools)])
    }

    /// Refuses calls of these tools; the model is given the reason.
    pub fn deny(self, tools: impl Into<String>, reason: impl Into<String>) -> Self {
        self.policy([PolicyRule::new(RuleAction::Deny).tool(tools).reason(reason)])
    }

    /// Further rules about calls: by source, effect or argument.
    pub fn policy(mut self, rules: impl IntoIterator<Item = PolicyRule>) -> Self {
        self.overrides.policy.extend(rules);
        self
    }

    /// Randomness of the model, from 0 to 2.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.overrides.sampling.temperature = Some(temperature);
        self
    }

    /// Most tokens of one reply.
    pub fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.overrides.sampling.max_output_tokens = Some(tokens);
        self
    }

    /// Adds a field to the request's body, as the upstream names it: `("top_p", 0.9)`.
    pub fn body_field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.overrides.sampling.extra.insert(name.into(), value.into());
        self
    }

    /// The log of turns. Default: in memory.
    pub fn log(mut self, log: Arc<dyn Log>) -> Self {
        self.log = Some(log);
        self
    }

    /// Bounds of a turn.
    pub fn limits(mut self, limits: TurnLimits) -> Self {
        self.overrides.limits = Some(limits);
        self
    }

    /// Bounds of the decoder.
    pub fn decode_limits(mut self, limits: DecodeLimits) -> Self {
        self.overrides.decode_limits = Some(limits);
        self
    }

    /// Bounds of running tools and their output.
    pub fn executor_limits(mut self, limits: ExecutorLimits) -> Self {
        self.executor_limits = limits;
        self
    }

    /// Retries of a model call before its first token.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.overrides.retry = Some(retry);
        self
    }

    /// Folder for outputs that are too large for the log. Default: none, only head and tail are stored.
    pub fn spool(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spool = Some(directory.into());
        self
    }

    /// Time for which a client's tools stay offered after its connection is lost. Default 60 s.
    pub fn client_grace(mut self, grace: Duration) -> Self {
        self.client_grace = Some(grace);
        self
    }

    /// An observer of all turns: for metrics, call histories and raw bytes. Default: none.
    pub fn observer(mut self, observer: Arc<dyn TurnObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Store for images, audio and files that are too large for the log. Default: none, they stay in the log.
    pub fn media(mut self, media: Arc<dyn MediaStore>) -> Self {
        self.media = Some(media);
        self
    }

    /// Passes the raw bytes of upstreams to the observer, for every turn. Default: for turns that request it.
    pub fn keep_raw(mut self, keep_raw: bool) -> Self {
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
        let spawn_context = self.spawn_context.unwrap_or_else(SpawnContext::of_this_process);
        let pins = self.pins.unwrap_or_else(PinStore::in_memory);
        let configured = settings.sources.sources(&spawn_context, &pins);
        let section = settings.tools.clone();
        let plan = AppPlan::new(settings, &self.overrides, &spawn_context)?;
        let toolbox = Toolbox::new(self.tools)?;
        let executor = ToolExecutor::new(self.executor_limits);
        let executor = match self.spool {
            Some(directory) => executor.with_spool(OutputSpool::new(directory)),
            None => executor,
        };
        let mut pending_sources = self.sources;
        pending_sources.extend(configured.values().map(|configured| configured.source.clone()));
        Ok(Throughline {
            inner: Arc::new(AppInner {
                plan: RwLock::new(Arc::new(plan)),
                overrides: self.overrides,
                toolbox,
                pending_sources: Mutex::new(pending_sources),
                initial_source_wait: OnceCell::new(),
                spawn_context,
                pins,
                approval_stores: self
                    .approval_stores
                    .unwrap_or_else(|| Arc::new(InMemoryApprovalStores::default())),
                approval_store_error: Mutex::default(),
                configured_sources: tokio::sync::Mutex::new((configured, section)),
                prompts: prompt::ToolsTextCache::default(),
                executor,
                log: self.log.unwrap_or_else(|| Arc::new(MemoryLog::default())),
                approval: self.approval,
                approval_handler: self.approval_handler,
                user_agents: UserAgents::default(),
                clients: ClientRegistry::new(self.client_grace.unwrap_or(CLIENT_GRACE_DEFAULT)),
                observer: self.observer,
                media: self.media,
                keep_raw: self.keep_raw,
            }),
        })
    }
}
