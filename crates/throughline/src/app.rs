//! An application: upstreams, agents, tools and a log, ready to run turns.

use crate::agent::Agent;
use crate::app_plan::{AppPlan, BuilderOverrides};
use crate::approval::ApprovalMode;
use crate::approval_store::{ApprovalStore, ApprovalStoreError, ApprovalStores};
use crate::builder::ThroughlineBuilder;
use crate::clients::{ClientAnswerResult, ClientError, ClientHandle, ClientRegistry, ClientToolSpec};
use crate::clock::TurnClock;
use crate::config::{AppSettings, ConfiguredSource, TextProtocolKind, ToolMode, ToolsSection};
use crate::conversation::Conversation;
use crate::driver::{ApprovalHandler, ApprovalSink};
use crate::error::Error;
use crate::input::UserInput;
use crate::media::MediaStore;
use crate::models::{self, ModelFacts};
use crate::observer::{KeepRaw, TurnObserver};
use crate::prompt;
use crate::tool_selection::{self, ToolSelection};
use crate::turn::TurnHandle;
use crate::upstream::Upstream;
use crate::user_agents::UserAgents;
use crate::wire;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use throughline_engine::{
    ApprovalScope, ClientAnswer, ConversationId, RememberedDecision, TurnId, UnmatchedRule,
};
use throughline_store::Log;
use throughline_tools::mcp::PinStore;
use throughline_tools::process::SpawnContext;
use throughline_tools::{SourceFault, ToolExecutor, ToolRegistry, ToolSource, ToolToggle, Toolbox};
use throughline_wire::{CallId, Message, ToolChoice};
use tokio::sync::OnceCell;

/// How long the first turn waits for sources of tools that have said nothing yet, unless `[tools] wait_ms` says otherwise.
/// Later turns take the tools that there are when they begin.
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
/// }).effect(Effect::ReadResult).agent_callable();
///
/// # let server = testkit::Upstream::start(testkit::Queue::new([
/// #     testkit::Script::new().say("Let me look. ").call("weather_today", serde_json::json!({"city": "Paris"})),
/// #     testkit::Script::new().say("Sunny in Paris."),
/// # ])).await?;
/// # let upstream = Upstream::new("demo", throughline::wire::Dialect::OpenaiChat, &server.base_url(testkit::Dialect::OpenaiChat))?;
/// # let _ = stringify!(
/// let upstream = Upstream::known("openai")?.key_from_env();
/// # );
/// let app = Throughline::builder().upstream(upstream).model("gpt-5-mini").tool(weather).build()?;
/// let mut turn = app.ask("What's the weather in Paris?").await?;
/// while let Some(event) = turn.next().await {
///     if let EventKind::ContentDelta { text } = &event.kind { print!("{text}") }
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
    /// Replaced as a whole; a turn keeps the one that it began with.
    pub(crate) plan: RwLock<Arc<AppPlan>>,
    pub(crate) overrides: BuilderOverrides,
    pub(crate) toolbox: Toolbox,
    /// Sources that nobody has started yet: that takes a runtime.
    pub(crate) pending_sources: Mutex<Vec<Arc<dyn ToolSource>>>,
    pub(crate) initial_source_wait: OnceCell<()>,
    pub(crate) spawn_context: SpawnContext,
    pub(crate) pins: PinStore,
    pub(crate) approval_stores: Arc<dyn ApprovalStores>,
    /// Why the last answer that should always hold was not kept.
    pub(crate) approval_store_error: Mutex<Option<ApprovalStoreError>>,
    /// What the last configuration said of sources and built-in tools. Held while one is being loaded.
    pub(crate) configured_sources: tokio::sync::Mutex<(BTreeMap<String, ConfiguredSource>, ToolsSection)>,
    pub(crate) prompts: prompt::ToolsTextCache,
    pub(crate) executor: ToolExecutor,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) approval: ApprovalMode,
    pub(crate) approval_handler: Option<ApprovalHandler>,
    pub(crate) clients: ClientRegistry,
    pub(crate) user_agents: UserAgents,
    pub(crate) observer: Option<Arc<dyn TurnObserver>>,
    /// Where content is that is too large for the log; `None` = nothing is.
    pub(crate) media: Option<Arc<dyn MediaStore>>,
    /// Of every turn, whatever its request says.
    pub(crate) keep_raw: KeepRaw,
}

/// What loading a configuration again has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadReport {
    /// Sources of tools that are new, or whose settings have changed: they were started anew.
    pub started: Vec<String>,
    /// Sources that are gone.
    pub stopped: Vec<String>,
    /// Sections that have changed and take effect only when the program starts again.
    pub restart_required: Vec<&'static str>,
}

/// One turn to be run, with everything that can differ from the application's own settings.
#[derive(Clone, Debug, Default)]
pub struct TurnRequest {
    /// What the user says.
    pub input: UserInput,
    /// What was said before, oldest first.
    pub history: Vec<Message>,
    /// Who answers; `None` = the application's own.
    pub agent: Option<String>,
    /// `upstream/model` in place of the agent's models.
    pub model: Option<String>,
    /// How calls travel; `None` = as the agent says. The history fits any. R: T3
    pub mode: Option<ToolMode>,
    /// Who answers questions; `None` = as the application says.
    pub approval: Option<ApprovalMode>,
    /// Told in the events.
    pub conversation_id: Option<ConversationId>,
    /// What people have said before that holds for this turn, beside what always holds. R: A2
    pub remembered: Vec<RememberedDecision>,
    /// Whose turn it is, in an application with several users: only their own clients run tools for them.
    pub user: Option<String>,
    /// Its id, unique everywhere; `None` = a new one.
    pub turn_id: Option<TurnId>,
    /// Instructions behind the agent's own.
    pub instructions: Option<String>,
    /// Sampling that differs from the agent's.
    pub settings: wire::ModelSettings,
    /// Tools of whoever asks, offered under exactly their names. A call of one waits until it is answered by
    /// [`Throughline::answer_client_call`], at most `own_tool_ms_max`. What they leave open of effect and time does not
    /// matter: they run where they were declared.
    pub request_tools: Vec<ClientToolSpec>,
    /// Whether the model may or must call tools. A call is forced in the first step only, and of `request_tools` if there are
    /// any; [`ToolChoice::None`] holds for the whole turn, and no tool is offered in it.
    pub tool_choice: ToolChoice,
    /// Whether the agent's tools are offered beside `request_tools`; its own switches hold besides.
    pub tools: ToolToggle,
    /// Who speaks.
    pub persona: PersonaMode,
    /// Fewer tries of the first model call than the agent would make, for whoever tries again by itself.
    pub first_step_attempts_max: Option<u32>,
    /// Whether the raw bytes of the upstreams are given to the [`TurnObserver`].
    pub keep_raw: KeepRaw,
    /// The span of whoever asks, as W3C Trace Context writes it (`traceparent`): kept with the turn and told to the
    /// [`TurnObserver`], and of no other effect. R: O1
    pub trace_parent: Option<String>,
}

/// Who speaks in a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PersonaMode {
    /// The agent: with its prompt, its tools and its sampling.
    #[default]
    Agent,
    /// The model alone, without any of them.
    BareModel,
}

impl Throughline {
    /// An empty builder.
    pub fn builder() -> ThroughlineBuilder {
        ThroughlineBuilder::default()
    }

    /// Asks once, without history.
    ///
    /// # Errors
    /// Only what keeps a turn from beginning; everything later is told by its events.
    pub async fn ask(&self, input: impl Into<UserInput>) -> Result<TurnHandle, Error> {
        self.start(TurnRequest { input: input.into(), ..TurnRequest::default() }).await
    }

    /// A conversation with the application's own agent: turns that know what was said before.
    pub fn conversation(&self) -> Conversation {
        Conversation::new(self.clone())
    }

    /// A page or app connects that runs tools of its own: `client.<name>`, or the avatar's. In turns of the same user that
    /// begin from now on they are offered; an agent's toggles hold for them as for all. A client of this id that was
    /// connected before is the same client: what it was asked and has not answered is asked again. R: L2
    ///
    /// # Errors
    /// Tools that cannot be declared; an id that no client can have.
    pub fn connect_client(
        &self,
        client_id: impl Into<String>,
        user: Option<String>,
        tools: Vec<ClientToolSpec>,
    ) -> Result<ClientHandle, ClientError> {
        self.inner.clients.connect(client_id.into(), user, tools)
    }

    /// A client's answer that does not come by its connection: by the id of the call, from the same user. The first one in
    /// time wins.
    pub async fn answer_client_call(
        &self,
        user: Option<String>,
        call: &CallId,
        answer: ClientAnswer,
    ) -> ClientAnswerResult {
        self.inner.clients.answer(&user, call, None, answer).await
    }

    /// The tools that there are now: those of the program and of the sources that have told theirs.
    pub fn tools(&self) -> Arc<ToolRegistry> {
        self.inner.toolbox.registry()
    }

    /// The tools that a turn of this user would find: those that there are, and those of the user's connected clients.
    pub fn tools_for(&self, user: &Option<String>) -> Arc<ToolRegistry> {
        self.inner.clients.registry(&self.tools(), user)
    }

    /// The fixed tools and the sources, to add some or to be told of changes.
    pub fn toolbox(&self) -> &Toolbox {
        &self.inner.toolbox
    }

    /// Starts the sources of tools, and waits until each has said something, but no longer than `limit`. The names of
    /// those that have not are returned; their tools come when they come.
    pub async fn wait_ready(&self, limit: Duration) -> Vec<String> {
        self.start_sources();
        self.inner.toolbox.wait_ready(limit).await
    }

    /// What is not as it should be with sources and their tools.
    pub fn source_faults(&self) -> Vec<SourceFault> {
        self.inner.toolbox.faults()
    }

    /// Stops the sources of tools. Turns that are running keep their tools, which may fail.
    pub async fn stop_sources(&self) {
        self.inner.pending_sources.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.inner.toolbox.stop().await;
    }

    /// What an agent (`None` = the application's own) would be told and offered now, and why the rest is not. Mode and
    /// protocol are the agent's unless they are given. R: L3, X5
    ///
    /// # Errors
    /// There is no agent of that name; its prompt cannot be rendered.
    pub fn select_tools(
        &self,
        agent: Option<&str>,
        mode: Option<ToolMode>,
        protocol: Option<TextProtocolKind>,
    ) -> Result<ToolSelection, Error> {
        self.select_tools_for_user(&None, agent, mode, protocol)
    }

    /// The same for one user of several: with the agents and the connected clients of that one.
    ///
    /// # Errors
    /// As in [`offer`](Self::offer).
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

    /// The same of an agent that need not be known here: one that is being written. Nothing of it is kept. R: U4
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

    /// Takes a configuration in place of the one before. Turns that are running go on with what they began with; sources
    /// whose settings are the same are left alone. What the program said with [`ThroughlineBuilder`] stays on top.
    ///
    /// # Errors
    /// As in [`ThroughlineBuilder::build`]; then nothing has changed.
    pub async fn reload(&self, settings: AppSettings) -> Result<ReloadReport, Error> {
        let inner = &self.inner;
        // One after the other: two at once would start and stop each other's sources.
        let mut configured = inner.configured_sources.lock().await;
        let sources = settings.sources.sources(&inner.spawn_context, &inner.pins);
        let section = settings.tools.clone();
        let plan = AppPlan::new(settings, &inner.overrides)?;
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

    /// Turns that begin from now on may name models of this upstream, which takes the place of one that had its name. Until
    /// the next [`reload`](Self::reload), whose settings say again which there are. R: O4
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

    /// Toggles that switch nothing, as (agent, name): no registered tool or group is called so. Worth a warning, and no
    /// error, since tools come and go with what is configured besides.
    pub fn unknown_toggles(&self) -> Vec<(String, String)> {
        let (plan, registry) = (self.plan(), self.tools());
        let mut unknown = Vec::new();
        for agent in plan.agents.values() {
            let names = registry.unknown_toggles(&agent.tool_call.toggles);
            unknown.extend(names.into_iter().map(|name| (agent.name.clone(), name.to_owned())));
        }
        unknown
    }

    /// Rules that fit no tool there is, as (agent, what): most often a name that was written wrong. Worth a warning, and no
    /// error: what may be about tools of a source that is not there yet is left out.
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

    /// What is known of a model at an upstream.
    pub fn model_facts(&self, upstream: &str, model: &str) -> ModelFacts {
        models::model_facts(&self.plan().models, upstream, model)
    }

    /// The agents, by name.
    pub fn agents(&self) -> Vec<Agent> {
        self.plan().agents.values().cloned().collect()
    }

    /// Who answers questions in turns that do not say it themselves.
    pub fn approval(&self) -> &ApprovalMode {
        &self.inner.approval
    }

    /// Where answers are kept that always hold, in a program that knows no users.
    pub fn approval_store(&self) -> Arc<dyn ApprovalStore> {
        self.inner.approval_stores.for_user(None)
    }

    /// Why the last answer that should always hold was not kept; `None` = it was.
    pub fn approval_store_error(&self) -> Option<ApprovalStoreError> {
        self.inner.approval_store_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The agent that answers this user under a name (`None` = the application's own). The configuration's come first: nobody
    /// can put another in the place of one of them. R: O4
    pub fn agent_for(&self, name: Option<&str>, user: &Option<String>) -> Result<Arc<Agent>, Error> {
        let plan = self.plan();
        match (plan.agent(name), name) {
            (Ok(agent), _) => Ok(Arc::new(agent.clone())),
            (Err(unknown), Some(name)) => self.inner.user_agents.get(user, name).ok_or(unknown),
            (Err(unknown), None) => Err(unknown),
        }
    }

    /// What a user said should always hold was changed in the store, and not by a turn of this application: the next turn
    /// reads it again. R: A2
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
        // A memory that panics is one that cannot be read.
        let stored = stored.unwrap_or_else(|error| {
            Err(ApprovalStoreError::File { path: PathBuf::new(), why: error.to_string() })
        })?;
        Ok(stored.into_iter().map(|stored| stored.answer).collect())
    }

    /// What becomes of an answer that holds longer than the turn. R: A2
    pub(crate) fn approval_sink(
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
