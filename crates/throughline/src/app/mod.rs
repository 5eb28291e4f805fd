//! An application: upstreams, agents, tools and a log, ready to run turns.

mod builder;
mod manual_call;
mod plan;
mod user_agents;

pub use builder::ThroughlineBuilder;
pub use manual_call::{ManualCall, ManualCallError, ManualCallResult, ManualConsent};

use crate::agent::tool_selection::{self, ToolSelection};
use crate::agent::{Agent, TextProtocolKind, ToolMode, prompt};
use crate::approval::ApprovalMode;
use crate::approval::store::{ApprovalStore, ApprovalStoreError, ApprovalStores};
use crate::clients::{ClientError, ClientHandle, ClientRegistry, ClientToolSpec};
use crate::clock::TurnClock;
use crate::config::{AppSettings, ConfiguredSource, ToolsSection};
use crate::driver::{ApprovalHandler, ApprovalSink};
use crate::error::Error;
use crate::media::MediaStore;
use crate::observe::TurnObserver;
use crate::turn::{ClientAnswerResult, Conversation, TurnHandle, TurnRequest, UserInput};
use crate::upstream::models::{self, ModelFacts};
use crate::upstream::{self, PassthroughResponse, Upstream};
use crate::voice::{self, AudioSourceInfo, Ears, Voice, VoiceError};
use plan::{AppPlan, BuilderOverrides};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use throughline_engine::{
    ApprovalScope, ClientAnswer, RememberedDecision, UnmatchedRule, UpstreamChoice, UpstreamFailure,
};
use throughline_store::Log;
use throughline_tools::mcp::PinStore;
use throughline_tools::process::SpawnContext;
use throughline_tools::{SourceFault, ToolExecutor, ToolRegistry, ToolSource, Toolbox};
use throughline_wire::CallId;
use tokio::sync::OnceCell;
use user_agents::UserAgents;

/// Longest time that the first turn waits for sources of tools that have not reported yet, unless `[tools] wait_ms`
/// sets another. Later turns take the tools available when they start.
pub const SOURCES_WAIT_MAX: Duration = Duration::from_secs(10);

/// An application. Cheap to clone; all clones share connections, tools and the log.
///
/// ```
/// # use throughline_testkit as testkit;
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use throughline::{EventKind, Throughline, Upstream};
/// use throughline::tools::{Effect, tool};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct City { city: String }
///
/// let weather = tool("weather.today", "Today's weather in a city", |args: City, _context| async move {
///     format!("{}: sunny, 22 °C", args.city)
/// }).effect(Effect::Read).agent_callable();
///
/// # let server = testkit::FakeUpstream::start(testkit::ScriptQueue::new([
/// #     testkit::ModelScript::new().say("Let me look. ").call("weather_today", serde_json::json!({"city": "Paris"})),
/// #     testkit::ModelScript::new().say("Sunny in Paris."),
/// # ])).await?;
/// # let upstream = Upstream::new("demo", throughline::wire::Dialect::OpenaiChat, &server.base_url(testkit::FakeDialect::OpenaiChat))?;
/// # let _ = stringify!(
/// let upstream = Upstream::known("openai")?.key_from_env();
/// # );
/// let app = Throughline::builder().upstream(upstream).model("gpt-5-mini").tool(weather).build()?;
/// let mut turn = app.ask("What's the weather in Paris?").await?;
/// while let Some(event) = turn.next().await {
///     if let EventKind::ContentDelta { text, .. } = &event.kind { print!("{text}") }
/// }
/// let message = turn.finish().await;
/// # assert_eq!(message.text(), "Let me look. \n\nSunny in Paris.");
/// # assert_eq!(server.violations(), []);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Throughline {
    pub(crate) inner: Arc<AppInner>,
}

pub(crate) struct AppInner {
    /// Replaced as a whole; a turn uses the one it started with.
    pub(crate) plan: RwLock<Arc<AppPlan>>,
    pub(crate) overrides: BuilderOverrides,
    pub(crate) toolbox: Toolbox,
    /// Sources that have not been started: starting them takes a runtime.
    pub(crate) pending_sources: Mutex<Vec<Arc<dyn ToolSource>>>,
    pub(crate) initial_source_wait: OnceCell<()>,
    pub(crate) spawn_context: SpawnContext,
    pub(crate) pins: PinStore,
    pub(crate) approval_stores: Arc<dyn ApprovalStores>,
    /// The error of the last attempt to store a permanent approval; `None` if it succeeded.
    pub(crate) approval_store_error: Mutex<Option<ApprovalStoreError>>,
    /// Sources and built-in tools of the last configuration. Locked while one is being loaded.
    pub(crate) configured_sources: tokio::sync::Mutex<(BTreeMap<String, ConfiguredSource>, ToolsSection)>,
    pub(crate) prompts: prompt::ToolsTextCache,
    pub(crate) executor: ToolExecutor,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) approval: ApprovalMode,
    pub(crate) approval_handler: Option<ApprovalHandler>,
    pub(crate) clients: ClientRegistry,
    pub(crate) user_agents: UserAgents,
    pub(crate) observer: Option<Arc<dyn TurnObserver>>,
    /// Store for content that is too large for the log; `None` = it stays in the log.
    pub(crate) media: Option<Arc<dyn MediaStore>>,
    /// Applies to every turn, in addition to its request's own setting.
    pub(crate) keep_raw: bool,
}

/// Changes made by loading a configuration again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadReport {
    /// Sources of tools that are new, or whose settings have changed: they were started anew.
    pub started: Vec<String>,
    /// Sources that were removed.
    pub stopped: Vec<String>,
    /// Sections that have changed and take effect only when the program starts again.
    pub restart_required: Vec<&'static str>,
}

impl Throughline {
    /// An empty builder.
    pub fn builder() -> ThroughlineBuilder {
        ThroughlineBuilder::default()
    }

    /// Asks once, without history.
    ///
    /// # Errors
    /// Only what keeps a turn from starting; everything later is reported by its events.
    pub async fn ask(&self, input: impl Into<UserInput>) -> Result<TurnHandle, Error> {
        self.start_turn(TurnRequest::new(input)).await
    }

    /// A conversation with the application's default agent: each turn sees the ones before it.
    pub fn conversation(&self) -> Conversation {
        Conversation::new(self.clone())
    }

    /// Connects a page or app that runs tools itself: `client.<name>`, or the avatar's. Turns of the same
    /// user that start afterwards are offered these tools; an agent's toggles apply to them as to all tools.
    /// A client that reconnects under the same id is the same client: calls that it received and has not
    /// answered are sent again.
    ///
    /// # Errors
    /// Tools that cannot be declared; a reserved or invalid id.
    pub fn connect_client(
        &self,
        client_id: impl Into<String>,
        user: Option<String>,
        tools: Vec<ClientToolSpec>,
    ) -> Result<ClientHandle, ClientError> {
        self.inner.clients.connect(client_id.into(), user, tools)
    }

    /// Passes on a client's answer that did not arrive by its connection, by the id of the call and from the same user.
    /// The first answer in time wins.
    pub async fn answer_client_call(
        &self,
        user: Option<String>,
        call: &CallId,
        answer: ClientAnswer,
    ) -> ClientAnswerResult {
        self.inner.clients.answer(&user, call, None, answer).await
    }

    /// Resolves `upstream/model`, or a model's name alone if there is one upstream.
    ///
    /// # Errors
    /// The upstream does not exist, or there are several.
    pub fn model_choice(&self, model: &str) -> Result<UpstreamChoice, Error> {
        self.plan().model_choice(model)
    }

    /// Passes a request through to the upstream of a model, in the upstream's own format: nothing is read, retried or
    /// logged. The upstream's key and time limits apply as in every call.
    ///
    /// # Errors
    /// It cannot be reached, or refuses; its key is redacted from the message.
    pub async fn pass_through(
        &self,
        choice: &UpstreamChoice,
        path: &str,
        body: &Value,
    ) -> Result<PassthroughResponse, UpstreamFailure> {
        match self.plan().upstreams.get(&choice.name) {
            Some(client) => client.pass_through(path, body).await,
            None => {
                let why = format!("upstream `{}` is not there", choice.name);
                Err(upstream::unsendable(why))
            }
        }
    }

    /// The voice of this name; without one, the only one or the one called `default`.
    ///
    /// # Errors
    /// The voice does not exist.
    pub fn voice(&self, name: Option<&str>) -> Result<Arc<dyn Voice>, VoiceError> {
        let voice: Arc<dyn Voice> = voice::pick(&self.plan().audio.voices, name, "voice")?;
        Ok(voice)
    }

    /// The ears of this name; without one, the only ones or those called `default`.
    ///
    /// # Errors
    /// The ears do not exist.
    pub fn ears(&self, name: Option<&str>) -> Result<Arc<dyn Ears>, VoiceError> {
        let ears: Arc<dyn Ears> = voice::pick(&self.plan().audio.ears, name, "ears")?;
        Ok(ears)
    }

    /// The configured voices, by name.
    pub fn voices(&self) -> Vec<AudioSourceInfo> {
        voice::infos(&self.plan().audio.voices)
    }

    /// The configured ears, by name.
    pub fn all_ears(&self) -> Vec<AudioSourceInfo> {
        voice::infos(&self.plan().audio.ears)
    }

    /// The tools available now: the program's own, and those that sources have reported.
    pub fn tools(&self) -> Arc<ToolRegistry> {
        self.inner.toolbox.registry()
    }

    /// The tools that a turn of this user would find: those available now, and those of the user's connected clients.
    pub fn tools_for(&self, user: &Option<String>) -> Arc<ToolRegistry> {
        self.inner.clients.registry(&self.tools(), user)
    }

    /// The fixed tools and the sources, for adding tools and subscribing to changes.
    pub fn toolbox(&self) -> &Toolbox {
        &self.inner.toolbox
    }

    /// Starts the sources of tools and waits until each has reported, at most `limit`. Returns the names of those
    /// that have not; their tools are added when they report.
    pub async fn wait_ready(&self, limit: Duration) -> Vec<String> {
        self.start_sources();
        self.inner.toolbox.wait_ready(limit).await
    }

    /// Faults of sources and their tools.
    pub fn source_faults(&self) -> Vec<SourceFault> {
        self.inner.toolbox.faults()
    }

    /// Stops the sources of tools. Running turns retain their tools, which may fail.
    pub async fn stop_sources(&self) {
        self.inner.pending_sources.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.inner.toolbox.stop().await;
    }

    /// The prompt and tools that an agent (`None` = the application's default) would get now, with the reason for
    /// each tool left out. Mode and protocol default to the agent's.
    ///
    /// # Errors
    /// No agent has that name; its prompt cannot be rendered.
    pub fn select_tools(
        &self,
        agent: Option<&str>,
        mode: Option<ToolMode>,
        protocol: Option<TextProtocolKind>,
    ) -> Result<ToolSelection, Error> {
        self.select_tools_for_user(&None, agent, mode, protocol)
    }

    /// As [`select_tools`](Self::select_tools), for one user of several: with that user's agents and
    /// connected clients.
    ///
    /// # Errors
    /// As in [`select_tools`](Self::select_tools).
    pub fn select_tools_for_user(
        &self,
        user: &Option<String>,
        agent: Option<&str>,
        mode: Option<ToolMode>,
        protocol: Option<TextProtocolKind>,
    ) -> Result<ToolSelection, Error> {
        let plan = self.plan();
        let agent = &*self.agent_for(agent, user)?;
        tool_selection::select_tools(tool_selection::SelectionInput {
            user: &plan.user,
            agent,
            model: agent.models.first(),
            mode: mode.unwrap_or(agent.mode),
            protocol: protocol.unwrap_or(agent.tool_call.protocol),
            registry: &self.tools_for(user),
            prompts: &self.inner.prompts,
            now_ms: TurnClock::start().now(),
        })
    }

    /// Like [`select_tools`](Self::select_tools), for an agent that need not exist yet, such as one being edited.
    /// Stores nothing.
    ///
    /// # Errors
    /// Its prompt cannot be rendered.
    pub fn select_tools_for_agent(
        &self,
        agent: &Agent,
        user: &Option<String>,
        mode: Option<ToolMode>,
        protocol: Option<TextProtocolKind>,
    ) -> Result<ToolSelection, Error> {
        agent.select_tools(&self.tools_for(user), &self.plan().user, mode, protocol)
    }

    /// Replaces the configuration. Running turns continue with the one they started with; sources whose settings are
    /// unchanged keep running. Settings made with [`ThroughlineBuilder`] still override the configuration.
    ///
    /// # Errors
    /// As in [`ThroughlineBuilder::build`]; then nothing has changed.
    pub async fn reload(&self, settings: AppSettings) -> Result<ReloadReport, Error> {
        let inner = &self.inner;
        // Reloads are serial: two in parallel would start and stop each other's sources.
        let mut configured = inner.configured_sources.lock().await;
        let sources = settings.sources.sources(&inner.spawn_context, &inner.pins);
        let section = settings.tools.clone();
        let mut plan = AppPlan::new(settings, &inner.overrides, &inner.spawn_context)?;
        plan.audio.share_limits(&self.plan().audio);
        *inner.plan.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(plan);
        self.start_sources();
        let (sources_before, section_before) = &*configured;
        let mut reloaded = ReloadReport::default();
        for name in sources_before.keys().filter(|name| !sources.contains_key(*name)) {
            inner.toolbox.remove(name).await;
            reloaded.stopped.push(name.clone());
        }
        for (name, source) in &sources {
            if sources_before.get(name).is_none_or(|before| before.settings_hash != source.settings_hash) {
                inner.toolbox.add(source.source.clone());
                reloaded.started.push(name.clone());
            }
        }
        if *section_before != section {
            reloaded.restart_required.push("tools");
        }
        *configured = (sources, section);
        Ok(reloaded)
    }

    /// Adds an upstream, or replaces the one of the same name, for turns that start from now on. The next
    /// [`reload`](Self::reload) resets upstreams to those of its settings.
    ///
    /// # Errors
    /// No connection to it can be set up.
    pub fn set_upstream(&self, upstream: Upstream) -> Result<(), Error> {
        let mut plan = self.inner.plan.write().unwrap_or_else(PoisonError::into_inner);
        *plan = Arc::new(plan.with_upstream(upstream)?);
        Ok(())
    }

    /// Takes an upstream away. Turns that are running keep it.
    pub fn remove_upstream(&self, name: &str) {
        let mut plan = self.inner.plan.write().unwrap_or_else(PoisonError::into_inner);
        *plan = Arc::new(plan.without_upstream(name));
    }

    /// Toggles that match no registered tool or group, as (agent, name). Worth a warning and no error, because tools
    /// come and go with the rest of the configuration.
    pub fn unknown_toggles(&self) -> Vec<(String, String)> {
        let (plan, registry) = (self.plan(), self.tools());
        let mut unknown = Vec::new();
        for agent in plan.agents.values() {
            let names = registry.unknown_toggles(&agent.tool_call.toggles);
            unknown.extend(names.into_iter().map(|name| (agent.name.clone(), name.to_owned())));
        }
        unknown
    }

    /// Rules that match no tool, as (agent, rule): most often a misspelled name. Worth a warning and not an
    /// error. Rules that may be for tools of a source that is missing are left out.
    pub fn unmatched_rules(&self) -> Vec<(String, UnmatchedRule)> {
        let (plan, toolbox) = (self.plan(), self.toolbox());
        let mut unmatched = Vec::new();
        for agent in plan.agents.values() {
            let rules = toolbox.unmatched_rules(&agent.policy);
            unmatched.extend(rules.into_iter().map(|rule| (agent.name.clone(), rule)));
        }
        unmatched
    }

    /// The log of all turns; viewers other than the one who started a turn read here.
    pub fn log(&self) -> &Arc<dyn Log> {
        &self.inner.log
    }

    /// The upstreams, by name.
    pub fn upstreams(&self) -> Vec<Upstream> {
        self.plan().upstreams.values().map(|client| client.upstream().clone()).collect()
    }

    /// Context size and prices of a model at an upstream, as far as known.
    pub fn model_facts(&self, upstream: &str, model: &str) -> ModelFacts {
        models::model_facts(&self.plan().models, upstream, model)
    }

    /// The agents, by name.
    pub fn agents(&self) -> Vec<Agent> {
        self.plan().agents.values().cloned().collect()
    }

    /// The approval mode of turns that do not set one.
    pub fn approval(&self) -> &ApprovalMode {
        &self.inner.approval
    }

    /// Store of permanent approvals, in a program without users.
    pub fn approval_store(&self) -> Arc<dyn ApprovalStore> {
        self.inner.approval_stores.for_user(None)
    }

    /// The error of the last attempt to store a permanent approval; `None` = it succeeded.
    pub fn approval_store_error(&self) -> Option<ApprovalStoreError> {
        self.inner.approval_store_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The agent of this name that answers this user (`None` = the application's default). Agents of the
    /// configuration take precedence: a user's agent cannot replace one.
    pub fn agent_for(&self, name: Option<&str>, user: &Option<String>) -> Result<Arc<Agent>, Error> {
        let plan = self.plan();
        match (plan.agent(name), name) {
            (Ok(agent), _) => Ok(Arc::new(agent.clone())),
            (Err(unknown), Some(name)) => self.inner.user_agents.get(user, name).ok_or(unknown),
            (Err(unknown), None) => Err(unknown),
        }
    }

    /// Notifies the application that a user's permanent approvals were changed in the store from outside its
    /// turns: the next turn reads them again.
    pub fn invalidate_permanent_approvals(&self, user: Option<&str>) {
        self.inner.approval_stores.for_user(user).invalidate();
    }

    pub(crate) async fn permanent_approvals(
        &self,
        user: Option<&str>,
    ) -> Result<Vec<RememberedDecision>, Error> {
        let store = self.inner.approval_stores.for_user(user);
        if let Some(stored) = store.cached() {
            return Ok(stored.into_iter().map(|stored| stored.answer).collect());
        }
        let stored = tokio::task::spawn_blocking(move || store.all()).await;
        // A store that panics is one that cannot be read.
        let stored = stored.unwrap_or_else(|error| {
            Err(ApprovalStoreError::File { path: PathBuf::new(), why: error.to_string() })
        })?;
        Ok(stored.into_iter().map(|stored| stored.answer).collect())
    }

    /// Stores the decisions of a turn that outlive it.
    pub(crate) fn store_remembered(
        &self,
        clock: TurnClock,
        user: Option<&str>,
        on_conversation: Arc<dyn Fn(RememberedDecision) + Send + Sync>,
    ) -> ApprovalSink {
        let (app, store) = (self.clone(), self.inner.approval_stores.for_user(user));
        Arc::new(move |answer: RememberedDecision| match answer.scope {
            ApprovalScope::Call | ApprovalScope::Turn => {}
            ApprovalScope::Conversation => on_conversation(answer),
            ApprovalScope::Always => {
                let stored = store.save(answer, clock.now());
                *app.inner.approval_store_error.lock().unwrap_or_else(PoisonError::into_inner) = stored.err();
            }
        })
    }

    pub(crate) fn plan(&self) -> Arc<AppPlan> {
        // It is replaced whole.
        self.inner.plan.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn start_sources(&self) {
        let pending =
            std::mem::take(&mut *self.inner.pending_sources.lock().unwrap_or_else(PoisonError::into_inner));
        for source in pending {
            self.inner.toolbox.add(source);
        }
    }

    /// The first turn should not be without tools only because their servers are still starting.
    pub(crate) async fn wait_for_sources(&self) {
        let wait = || async {
            let wait_ms = self.inner.configured_sources.lock().await.1.wait_ms;
            self.wait_ready(wait_ms.map_or(SOURCES_WAIT_MAX, Duration::from_millis)).await;
        };
        self.inner.initial_source_wait.get_or_init(wait).await;
    }
}
