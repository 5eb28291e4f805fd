//! An application: upstreams, agents, tools and a log, ready to run turns.

use crate::agent::{Agent, ToolCall};
use crate::approval::{Answer, Approval, ApprovalAsk};
use crate::calling::Calling;
use crate::clock::Clock;
use crate::config::{DEFAULT_AGENT, Mode, Protocol, ResultsAs, Settings};
use crate::conversation::Conversation;
use crate::driver::{self, ApprovalHandler, COMMANDS_MAX, World};
use crate::error::Error;
use crate::input::UserInput;
use crate::turn::{Turn, TurnControl};
use crate::upstream::{Upstream, UpstreamClient};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use throughline_engine::{
    ConversationId, Effect, Execution, MessageId, OfferedTool, Policy, RetryPolicy, StartRule, TurnId,
    TurnLimits, TurnSetup, TurnStart, UpstreamChoice,
};
use throughline_store::{Log, MemoryLog};
use throughline_tools::{
    Executor, ExecutorLimits, Registry, RegistryBuilder, Spool, TOOL_TIMEOUT_DEFAULT, Toggle, Tool,
};
use throughline_wire::{Limits, Message};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

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
    inner: Arc<Inner>,
}

struct Inner {
    upstreams: BTreeMap<String, Arc<UpstreamClient>>,
    agents: BTreeMap<String, Agent>,
    agent: String,
    registry: Arc<Registry>,
    executor: Executor,
    log: Arc<dyn Log>,
    approval: Approval,
    approval_handler: Option<ApprovalHandler>,
    limits: TurnLimits,
    retry: RetryPolicy,
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
    pub mode: Option<Mode>,
    /// Who answers questions; `None` = as the application says.
    pub approval: Option<Approval>,
    /// Told in the events.
    pub conversation_id: Option<ConversationId>,
}

impl Throughline {
    /// An empty builder.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Asks once, without history.
    ///
    /// # Errors
    /// Only what keeps a turn from beginning; everything later is told by its events.
    pub async fn ask(&self, input: impl Into<UserInput>) -> Result<Turn, Error> {
        self.start(TurnRequest { input: input.into(), ..TurnRequest::default() }).await
    }

    /// A conversation with the application's own agent: turns that know what was said before.
    pub fn conversation(&self) -> Conversation {
        Conversation::new(self.clone())
    }

    /// Starts a turn. It runs in a task of its own, on the tokio runtime of the caller.
    ///
    /// # Errors
    /// As in [`ask`](Self::ask).
    pub async fn start(&self, request: TurnRequest) -> Result<Turn, Error> {
        self.start_with(request, |_history| ()).await
    }

    /// As `start`; `at_end` gets what the turn adds to the history, before anyone can see that it is over.
    pub(crate) async fn start_with(
        &self,
        request: TurnRequest,
        at_end: impl FnOnce(Vec<Message>) + Send + 'static,
    ) -> Result<Turn, Error> {
        let inner = &self.inner;
        let agent = self.agent(request.agent.as_deref())?;
        let models = match &request.model {
            Some(model) => vec![choose_model(model, &inner.upstreams)?],
            None => agent.models.clone(),
        };
        let upstreams = self.clients(&models)?;
        let mode = request.mode.unwrap_or(agent.mode);
        let calling = Calling::new(mode, &agent.tool_call, self.offered(agent))?;
        // Said once, where a conversation begins.
        let remarks = match request.history.is_empty() {
            true => calling.left_out.clone(),
            false => Vec::new(),
        };
        let setup = TurnSetup {
            agent: agent.name.clone(),
            instructions: calling.instructions(agent),
            history: request.history,
            upstreams: models,
            mode: mode.name().to_owned(),
            tools: calling.tools,
            remarks,
            settings: agent.settings.clone(),
            limits: TurnLimits {
                iterations_max: agent.tool_call.max_iterations,
                ..agent.limits.over(inner.limits)
            },
            start: agent.tool_call.start,
            execution: agent.tool_call.execution,
            policy: Policy { rules: Vec::new(), confirm: agent.tool_call.confirm() },
            approval: request.approval.unwrap_or_else(|| inner.approval.clone()).into(),
            retry: inner.retry,
            ..TurnSetup::default()
        };
        let id = TurnId::new(format!("turn_{}", Uuid::now_v7().simple()));
        let start = TurnStart {
            turn_id: id.clone(),
            conversation_id: request.conversation_id,
            message_id: MessageId::new(format!("msg_{}", Uuid::now_v7().simple())),
            // The random part of the id; only retries are spread by it.
            nonce: Uuid::now_v7().as_u64_pair().1,
            input: request.input.into_parts(),
        };
        let (sender, commands) = mpsc::channel(COMMANDS_MAX);
        let (over, abandoned) = (CancellationToken::new(), CancellationToken::new());
        let log = inner.log.clone();
        // The turn exists in the log before anyone can follow it.
        log.claim(id.as_str()).await?;
        let tail = log.tail(id.as_str(), 0).await?;
        let world = World {
            clock: Clock::start(),
            log: log.clone(),
            upstreams,
            calls: calling.format,
            registry: {
                let registry = inner.registry.clone();
                Arc::new(move || registry.clone())
            },
            executor: inner.executor.clone(),
            approval_handler: inner.approval_handler.clone(),
            commands,
            abandoned: abandoned.clone(),
        };
        let ended = over.clone().drop_guard();
        tokio::spawn(async move {
            // Whatever happens in here, whoever follows the turn is told that it is over.
            let _ended = ended;
            at_end(driver::drive(setup, start, world).await);
        });
        Ok(Turn::new(id, log, tail, TurnControl::new(sender, over, abandoned)))
    }

    /// The registered tools.
    pub fn tools(&self) -> &Registry {
        &self.inner.registry
    }

    /// Toggles that switch nothing, as (agent, name): no registered tool or group is called so. Worth a warning, and no
    /// error, since tools come and go with what is configured besides.
    pub fn unknown_toggles(&self) -> Vec<(&str, &str)> {
        let mut unknown = Vec::new();
        for agent in self.inner.agents.values() {
            let names = self.inner.registry.unknown_toggles(&agent.tool_call.toggles);
            unknown.extend(names.into_iter().map(|name| (agent.name.as_str(), name)));
        }
        unknown
    }

    /// The log of all turns; viewers other than the one who started a turn read here.
    pub fn log(&self) -> &Arc<dyn Log> {
        &self.inner.log
    }

    /// The upstreams, by name.
    pub fn upstreams(&self) -> impl Iterator<Item = &Upstream> {
        self.inner.upstreams.values().map(|client| client.upstream())
    }

    /// The agents, by name.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.inner.agents.values()
    }

    fn agent(&self, name: Option<&str>) -> Result<&Agent, Error> {
        let name = name.unwrap_or(&self.inner.agent);
        self.inner.agents.get(name).ok_or_else(|| Error::UnknownAgent {
            agent: name.to_owned(),
            agents: list(self.inner.agents.keys()),
        })
    }

    fn clients(&self, models: &[UpstreamChoice]) -> Result<Vec<Arc<UpstreamClient>>, Error> {
        let client = |choice: &UpstreamChoice| {
            self.inner.upstreams.get(&choice.name).cloned().ok_or_else(|| Error::NoUpstream {
                model: choice.model.clone(),
                upstream: choice.name.clone(),
            })
        };
        models.iter().map(client).collect()
    }

    fn offered(&self, agent: &Agent) -> Vec<OfferedTool> {
        if agent.tool_call.tools == Toggle::Off {
            return Vec::new();
        }
        let mut offered = self.inner.registry.offered(&agent.tool_call.toggles);
        let asks = (agent.tool_call.mode, agent.tool_call.confirmation) != <_>::default();
        for tool in &mut offered {
            if asks {
                // The rule that decides knows effects only: to be asked about, a tool has to count as one that writes.
                tool.effect = tool.effect.max(Effect::Write);
            }
            // A tool that sets no limit of its own has the default one; the agent's setting replaces it.
            if u128::from(tool.timeout_ms) == TOOL_TIMEOUT_DEFAULT.as_millis() {
                tool.timeout_ms = agent.tool_call.timeout_ms;
            }
        }
        offered
    }
}

/// Puts an application together. Every call says one thing; what is not said has a default.
#[derive(Default)]
pub struct Builder {
    settings: Option<Settings>,
    upstreams: Vec<Upstream>,
    model: Option<String>,
    fallbacks: Vec<String>,
    prompt: Option<String>,
    mode: Option<Mode>,
    protocol: Option<Protocol>,
    results: Option<ResultsAs>,
    execution: Execution,
    start: StartRule,
    tools: RegistryBuilder,
    log: Option<Arc<dyn Log>>,
    approval: Approval,
    approval_handler: Option<ApprovalHandler>,
    limits: Option<TurnLimits>,
    decode_limits: Option<Limits>,
    executor_limits: ExecutorLimits,
    retry: Option<RetryPolicy>,
    spool: Option<PathBuf>,
}

impl Builder {
    /// Everything that a configuration says; what is said here besides is on top of it.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Adds an upstream. One of the same name is replaced.
    pub fn upstream(mut self, upstream: Upstream) -> Self {
        self.upstreams.push(upstream);
        self
    }

    /// The model: its name alone if there is one upstream, else `upstream/model`.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// A model to go on with when those before cannot be had, before the first token only. R: T11
    pub fn fallback(mut self, model: impl Into<String>) -> Self {
        self.fallbacks.push(model.into());
        self
    }

    /// The system prompt.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    /// How calls travel. Default: in the upstream's own field; [`Mode::Text`] for models that cannot call tools. R: T3
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// The grammar of text mode. Default: `vcp`. R: X1
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = Some(protocol);
        self
    }

    /// Who says the results of calls in text mode. Default: the user, in a frame. R: T9
    pub fn results_as(mut self, results: ResultsAs) -> Self {
        self.results = Some(results);
        self
    }

    /// Calls of one step run beside each other, as far as the tools' concurrency classes allow. R: T7
    pub fn parallel(mut self) -> Self {
        self.execution = Execution::Parallel;
        self
    }

    /// When tools that change nothing start. Default: while the model still talks. R: T6
    pub fn start_rule(mut self, start: StartRule) -> Self {
        self.start = start;
        self
    }

    /// Registers a tool. Models may call it only if it says so (`agent_callable`). R: L1
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools = self.tools.tool(tool);
        self
    }

    /// Registers several tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools = self.tools.tools(tools);
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
        self.limits = Some(limits);
        self
    }

    /// Bounds of the decoder.
    pub fn decode_limits(mut self, limits: Limits) -> Self {
        self.decode_limits = Some(limits);
        self
    }

    /// Bounds of running tools and their output.
    pub fn executor_limits(mut self, limits: ExecutorLimits) -> Self {
        self.executor_limits = limits;
        self
    }

    /// Retries of a model call before its first token. R: T11
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Where outputs too large for the log are kept. Default: nowhere, only head and tail are.
    pub fn spool(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spool = Some(directory.into());
        self
    }

    /// Checks everything and opens nothing: the first connection is made by the first turn.
    ///
    /// # Errors
    /// No model, a model whose upstream is not there, a missing key of the model that answers by default, tools that
    /// cannot be registered.
    pub fn build(self) -> Result<Throughline, Error> {
        let (mut described, mut agents, agent, section) = match self.settings {
            Some(settings) => (settings.upstreams, settings.agents, settings.agent, Some(settings.limits)),
            None => (BTreeMap::new(), BTreeMap::new(), DEFAULT_AGENT.to_owned(), None),
        };
        let section = section.unwrap_or_default();
        let decode_limits = self.decode_limits.unwrap_or(section.decode);
        described.extend(self.upstreams.into_iter().map(|upstream| (upstream.name().to_owned(), upstream)));
        let mut upstreams = BTreeMap::new();
        for (name, upstream) in described {
            upstreams.insert(name, Arc::new(UpstreamClient::new(upstream, decode_limits)?));
        }

        if let Some(model) = &self.model {
            let mut models = vec![choose_model(model, &upstreams)?];
            for fallback in &self.fallbacks {
                models.push(choose_model(fallback, &upstreams)?);
            }
            let default = || Agent {
                tool_call: ToolCall { execution: self.execution, start: self.start, ..ToolCall::default() },
                ..Agent::new(agent.clone(), Vec::new())
            };
            agents.entry(agent.clone()).or_insert_with(default).models = models;
        }
        let own = agents.get_mut(&agent).ok_or(Error::NoModel)?;
        if let Some(prompt) = self.prompt {
            own.prompt = Some(prompt);
        }
        own.mode = self.mode.unwrap_or(own.mode);
        own.tool_call.protocol = self.protocol.unwrap_or(own.tool_call.protocol);
        own.tool_call.results = self.results.unwrap_or(own.tool_call.results);
        if let Some(first) = own.models.first() {
            let client = upstreams.get(&first.name).ok_or_else(|| Error::NoUpstream {
                model: first.model.clone(),
                upstream: first.name.clone(),
            })?;
            if let Some(variable) = client.upstream().missing_key() {
                let (upstream, variable) = (first.name.clone(), variable.to_owned());
                return Err(Error::MissingKey { upstream, variable });
            }
        }

        let executor = Executor::new(self.executor_limits);
        let executor = match self.spool {
            Some(directory) => executor.with_spool(Spool::new(directory)),
            None => executor,
        };
        Ok(Throughline {
            inner: Arc::new(Inner {
                upstreams,
                agents,
                agent,
                registry: Arc::new(self.tools.build()?),
                executor,
                log: self.log.unwrap_or_else(|| Arc::new(MemoryLog::default())),
                approval: self.approval,
                approval_handler: self.approval_handler,
                limits: self.limits.unwrap_or(section.turn),
                retry: self.retry.unwrap_or(section.retry),
            }),
        })
    }
}

/// `upstream/model`, or a model's name alone where there is one upstream. Models have slashes in their names too
/// (`deepseek-ai/DeepSeek-V3`), so what is in front of the first one counts only if an upstream is called so.
fn choose_model<T>(text: &str, upstreams: &BTreeMap<String, T>) -> Result<UpstreamChoice, Error> {
    if let Some((upstream, model)) = text.split_once('/')
        && upstreams.contains_key(upstream)
        && !model.is_empty()
    {
        return Ok(UpstreamChoice { name: upstream.to_owned(), model: model.to_owned() });
    }
    let mut names = upstreams.keys();
    match (names.next(), names.next()) {
        (Some(only), None) => Ok(UpstreamChoice { name: only.clone(), model: text.to_owned() }),
        (None, _) => {
            let upstream = text.split_once('/').map_or("", |(upstream, _)| upstream);
            Err(Error::NoUpstream { model: text.to_owned(), upstream: upstream.to_owned() })
        }
        _ => Err(Error::WhichUpstream { model: text.to_owned(), upstreams: list(upstreams.keys()) }),
    }
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
