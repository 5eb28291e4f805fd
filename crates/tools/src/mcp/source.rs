//! A server as a source of tools: started in the background, listed, compared with its pins, watched, and started again
//! when it ends.

use super::call::McpTool;
use super::connect::{ConnectFailure, McpConnection, connect};
use super::definition::McpToolDefinition;
use super::listing::{ToolListing, list_tools};
use super::pins::{PinComparison, PinStore, PinsError};
use super::session::{CallFailure, McpSession};
use super::settings::{McpServer, McpSettingError, ProtocolEra};
use crate::process::SpawnContext;
use crate::secrets::SecretSet;
use crate::tool::Tool;
use crate::toolbox::{SourceFault, SourceReporter, ToolSource};
use async_trait::async_trait;
use rmcp::model::ProtocolVersion;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use throughline_wire::ToolName;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Limits of keeping a server going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct McpLimits {
    /// Pause before a server that has ended is started again. Default 1 s; it doubles with each attempt.
    pub restart_after: Duration,
    /// Longest pause. Default 60 s.
    pub restart_after_max: Duration,
    /// Duration of a connection after which the server counts as stable: the pauses between reconnects start
    /// over. Default 60 s.
    pub stable_after: Duration,
    /// Pause after "my tools have changed" before they are listed: such notices come in bursts. Default 300 ms.
    pub list_debounce: Duration,
    /// Shortest lifetime of a list that has one. Default 60 s.
    pub list_ttl_min: Duration,
}

impl Default for McpLimits {
    fn default() -> Self {
        Self {
            restart_after: Duration::from_secs(1),
            restart_after_max: Duration::from_secs(60),
            stable_after: Duration::from_secs(60),
            list_debounce: Duration::from_millis(300),
            list_ttl_min: Duration::from_secs(60),
        }
    }
}

/// An MCP server.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::time::Duration;
/// use throughline_tools::Toolbox;
/// use throughline_tools::mcp::{McpServer, McpSource, PinStore};
/// use throughline_tools::process::SpawnContext;
///
/// let settings = McpServer { command: vec!["mcp-server-time".into()], ..McpServer::default() };
/// let source = McpSource::new("time", settings, SpawnContext::of_this_process(), PinStore::in_memory())?;
/// let toolbox = Toolbox::new([])?;
/// toolbox.add(Arc::new(source));
/// toolbox.wait_ready(Duration::from_secs(10)).await;
/// # Ok(()) }
/// ```
pub struct McpSource {
    source_name: String,
    server: Arc<McpServerHandle>,
    spawn_context: SpawnContext,
    pins: PinStore,
    limits: McpLimits,
    server_task: Mutex<Option<ServerTask>>,
}

struct ServerTask {
    stop: CancellationToken,
    task: AbortOnDropHandle<()>,
}

impl fmt::Debug for McpSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpSource").field("name", &self.source_name).finish_non_exhaustive()
    }
}

/// State that the tools of a server share with its supervisor task.
pub(crate) struct McpServerHandle {
    pub(crate) name: String,
    pub(crate) settings: McpServer,
    /// Secrets that are removed from everything that the server sends, except for its definitions, which are
    /// shown unchanged.
    pub(crate) secrets: SecretSet,
    session: watch::Sender<Option<Arc<McpSession>>>,
    /// Reason why there is no session, in a sentence.
    state: Mutex<String>,
    /// Problems found in the behavior of tools, by tool.
    tool_problems: Mutex<BTreeMap<ToolName, String>>,
    problem_reported: Notify,
    check_requested: Notify,
}

impl McpServerHandle {
    /// The connection, waited for while the server is being started again.
    pub(crate) async fn session(
        &self,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Option<Arc<McpSession>> {
        let mut sessions = self.session.subscribe();
        let is_open =
            |session: &Option<Arc<McpSession>>| session.as_ref().is_some_and(|session| !session.is_closed());
        tokio::select! {
            there = timeout(limit, sessions.wait_for(is_open)) => there.ok()?.ok()?.clone(),
            () = cancel.cancelled() => None,
        }
    }

    pub(crate) fn state(&self) -> String {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Requests a check of the server's health after an error that may mean that it is broken: the runner
    /// lists its tools.
    pub(crate) fn request_check(&self) {
        self.check_requested.notify_one();
    }

    /// A tool does not keep its word.
    pub(crate) fn report_problem(&self, tool: &ToolName, what: &str) {
        let mut tool_problems = self.tool_problems.lock().unwrap_or_else(PoisonError::into_inner);
        if tool_problems.get(tool).is_none_or(|known| known != what) {
            tool_problems.insert(tool.clone(), what.to_owned());
            self.problem_reported.notify_one();
        }
    }

    fn set_session(&self, session: Option<Arc<McpSession>>, state: String) {
        let state = self.secrets.redact(&state).into_owned();
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.session.send_replace(session);
    }

    fn source_fault(&self, tool: Option<ToolName>, message: String, remedy: Option<String>) -> SourceFault {
        let message = self.secrets.redact(&message).into_owned();
        SourceFault { source: format!("mcp:{}", self.name), tool, message, remedy }
    }
}

impl McpSource {
    /// A source for `[mcp.NAME]`. Nothing is started yet.
    ///
    /// # Errors
    /// The error in the settings.
    pub fn new(
        name: &str,
        settings: McpServer,
        spawn_context: SpawnContext,
        pins: PinStore,
    ) -> Result<Self, McpSettingError> {
        settings.check(name)?;
        let server = McpServerHandle {
            name: name.to_owned(),
            secrets: settings.secrets(&spawn_context),
            settings,
            session: watch::Sender::new(None),
            state: Mutex::new("it is starting".to_owned()),
            tool_problems: Mutex::default(),
            problem_reported: Notify::new(),
            check_requested: Notify::new(),
        };
        Ok(Self {
            source_name: format!("mcp:{name}"),
            server: Arc::new(server),
            spawn_context,
            pins,
            limits: McpLimits::default(),
            server_task: Mutex::new(None),
        })
    }

    /// Sets other limits.
    #[must_use]
    pub fn limits(mut self, limits: McpLimits) -> Self {
        self.limits = limits;
        self
    }
}

#[async_trait]
impl ToolSource for McpSource {
    fn name(&self) -> &str {
        &self.source_name
    }

    async fn start(&self, reporter: SourceReporter) {
        let stop = CancellationToken::new();
        let first_report = Arc::new(Notify::new());
        let runner = ServerRunner {
            server: self.server.clone(),
            spawn_context: self.spawn_context.clone(),
            pins: self.pins.clone(),
            limits: self.limits,
            reporter,
            first_report: first_report.clone(),
            stop: stop.clone(),
        };
        let task = AbortOnDropHandle::new(tokio::spawn(runner.run()));
        let previous = {
            let mut server_task = self.server_task.lock().unwrap_or_else(PoisonError::into_inner);
            server_task.replace(ServerTask { stop, task })
        };
        drop(previous);
        first_report.notified().await;
    }

    async fn stop(&self) {
        let server_task = self.server_task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ServerTask { stop, task }) = server_task {
            stop.cancel();
            // It ends the server and then itself, each in its own limit; a panic there has ended it, too.
            let _ = task.await;
        }
    }
}

/// Keeps one server going.
struct ServerRunner {
    server: Arc<McpServerHandle>,
    spawn_context: SpawnContext,
    pins: PinStore,
    limits: McpLimits,
    reporter: SourceReporter,
    /// The first tools or the first fault have been reported.
    first_report: Arc<Notify>,
    stop: CancellationToken,
}

/// Reason why a connection ended.
enum ConnectionEnd {
    Stopped,
    Ended(String),
}

impl ServerRunner {
    async fn run(self) {
        let mut pause = self.limits.restart_after;
        let mut era = self.server.settings.era;
        loop {
            let connecting = connect(&self.server.name, &self.server.settings, &self.spawn_context, era);
            let connected = tokio::select! {
                connected = connecting => connected,
                () = self.stop.cancelled() => return self.first_report.notify_one(),
            };
            match connected {
                Err(failure) if failure.rejects_discovery && era == ProtocolEra::Auto => {
                    // Servers that were written before the probe may end at a request that they do not know.
                    era = ProtocolEra::V2025_11_25;
                    continue;
                }
                Err(failure) => {
                    era = self.server.settings.era;
                    self.report_connect_failure(failure, pause);
                }
                Ok(connection) => {
                    let since = Instant::now();
                    era = self.negotiated_era(&connection);
                    match self.serve_connection(connection).await {
                        ConnectionEnd::Stopped => return self.first_report.notify_one(),
                        ConnectionEnd::Ended(how) => {
                            if since.elapsed() >= self.limits.stable_after {
                                pause = self.limits.restart_after;
                            }
                            self.report_disconnect(how, pause);
                        }
                    }
                }
            }
            self.first_report.notify_one();
            tokio::select! {
                () = sleep(pause) => {}
                () = self.stop.cancelled() => return,
            }
            pause = (pause * 2).min(self.limits.restart_after_max);
        }
    }

    /// The negotiated revision, which is not negotiated again when the server is restarted.
    fn negotiated_era(&self, connection: &McpConnection) -> ProtocolEra {
        match (self.server.settings.era, connection.session.protocol()) {
            (ProtocolEra::Auto, Some(version)) if version < ProtocolVersion::V_2026_07_28 => {
                ProtocolEra::V2025_11_25
            }
            (era, _) => era,
        }
    }

    /// From the first list to the end of the connection.
    async fn serve_connection(&self, mut connection: McpConnection) -> ConnectionEnd {
        let session = connection.session.clone();
        let end = tokio::select! {
            end = self.watch_tools(&session) => end,
            how = connection.wait_closed() => ConnectionEnd::Ended(how),
            () = self.stop.cancelled() => ConnectionEnd::Stopped,
        };
        self.server.set_session(None, "it has exited and is restarting".to_owned());
        let how = connection.close().await;
        match end {
            ConnectionEnd::Ended(reason) if reason.is_empty() => ConnectionEnd::Ended(how),
            end => end,
        }
    }

    /// Lists whenever there is a reason to. Returns when the server does not answer.
    async fn watch_tools(&self, session: &Arc<McpSession>) -> ConnectionEnd {
        let mut list_changes = session.list_changes();
        let mut approvals = self.pins.approvals();
        let listening = async {
            let mut pause = self.limits.restart_after;
            while session.listen_for_changes().await {
                // Ended by the server: changes in the meantime are in the next list.
                sleep(pause).await;
                pause = (pause * 2).min(self.limits.restart_after_max);
                self.server.request_check();
            }
            std::future::pending::<()>().await;
        };
        let mut listening = std::pin::pin!(listening);
        let (mut listing, mut pause) = (ToolListing::default(), self.limits.restart_after);
        loop {
            let ttl = match list_tools(&self.server.name, &self.server.settings, session).await {
                Ok(listed) => {
                    listing = listed;
                    pause = self.limits.restart_after;
                    listing.ttl.map(|ttl| ttl.max(self.limits.list_ttl_min))
                }
                // It has answered, so it is there, and so are the tools that it listed before.
                Err(end @ (CallFailure::Refused { .. } | CallFailure::Protocol(_))) => {
                    let why = failure_text(&end);
                    let again = format_duration(pause);
                    let problem = format!("listing its tools failed: {why}; retrying in {again}");
                    listing.problems = vec![(None, problem)];
                    let again_after = pause;
                    pause = (pause * 2).min(self.limits.restart_after_max);
                    Some(again_after)
                }
                Err(CallFailure::Disconnected) => return ConnectionEnd::Ended(String::new()),
                Err(end) => {
                    return ConnectionEnd::Ended(format!(
                        "it does not list its tools: {}",
                        failure_text(&end)
                    ));
                }
            };
            self.server.set_session(Some(session.clone()), String::new());
            self.publish(&listing).await;
            let ttl_expired = async {
                match ttl {
                    Some(ttl) => sleep(ttl).await,
                    None => std::future::pending().await,
                }
            };
            let mut ttl_expired = std::pin::pin!(ttl_expired);
            loop {
                tokio::select! {
                    changed = list_changes.changed() => {
                        if changed.is_err() {
                            return ConnectionEnd::Ended(String::new());
                        }
                        sleep(self.limits.list_debounce).await;
                        list_changes.mark_unchanged();
                        break;
                    }
                    () = self.server.check_requested.notified() => break,
                    () = &mut ttl_expired => break,
                    _ = approvals.changed() => self.publish(&listing).await,
                    () = self.server.problem_reported.notified() => self.publish(&listing).await,
                    () = &mut listening => {}
                }
            }
        }
    }

    /// Reports the tools that are as approved, and the problems of the others.
    async fn publish(&self, listing: &ToolListing) {
        let ToolListing { tools: definitions, problems, .. } = listing;
        let mut faults: Vec<SourceFault> = problems
            .iter()
            .map(|(tool, message)| self.server.source_fault(tool.clone(), message.clone(), None))
            .collect();
        let comparisons = match self.compare_with_pins(definitions).await {
            Ok(comparisons) => comparisons,
            Err(error) => {
                let remedy = "Its tools are disabled until their definitions can be compared: repair or remove \
                 the file.";
                faults.push(self.server.source_fault(None, error.to_string(), Some(remedy.to_owned())));
                self.reporter.set_state(Vec::new(), faults);
                self.first_report.notify_one();
                return;
            }
        };
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for (definition, comparison) in definitions.iter().zip(comparisons) {
            match comparison {
                PinComparison::Agreed => {
                    tools.push(Arc::new(McpTool::new(self.server.clone(), definition.clone())))
                }
                PinComparison::Changed(changed) => {
                    let name = definition.spec.name.clone();
                    let message = "its definition differs from the accepted one, so it is disabled";
                    let remedy = format!(
                        "Read the difference with `throughline tools changes`, then `throughline tools approve {}`.",
                        changed.name
                    );
                    faults.push(self.server.source_fault(Some(name), message.to_owned(), Some(remedy)));
                }
            }
        }
        let tool_problems = self.server.tool_problems.lock().unwrap_or_else(PoisonError::into_inner).clone();
        faults.extend(
            tool_problems.into_iter().map(|(tool, what)| self.server.source_fault(Some(tool), what, None)),
        );
        self.reporter.set_state(tools, faults);
        self.first_report.notify_one();
    }

    async fn compare_with_pins(
        &self,
        definitions: &[McpToolDefinition],
    ) -> Result<Vec<PinComparison>, PinsError> {
        let named_definitions: Vec<_> = definitions
            .iter()
            .map(|definition| (definition.spec.name.as_str().to_owned(), definition.pin.clone()))
            .collect();
        let pins = self.pins.clone();
        match tokio::task::spawn_blocking(move || pins.compare(&named_definitions)).await {
            Ok(comparisons) => comparisons,
            // Only a runtime that is shutting down does not run it.
            Err(error) => Err(PinsError::Format { path: "pins".into(), problem: error.to_string() }),
        }
    }

    /// Reports that the server could not be started: none of its tools can be called.
    fn report_connect_failure(&self, failure: ConnectFailure, pause: Duration) {
        let message = format!("{}; retrying in {}", failure.message, format_duration(pause));
        self.server.set_session(None, failure.message);
        self.reporter.set_state(Vec::new(), vec![self.server.source_fault(None, message, failure.remedy)]);
    }

    /// Reports a lost connection: its tools stay, and calls wait a moment, since the server will probably be
    /// back by then.
    fn report_disconnect(&self, how: String, pause: Duration) {
        let message = format!("{how}; started again in {}", format_duration(pause));
        self.server.set_session(None, how);
        self.reporter.set_faults(vec![self.server.source_fault(None, message, None)]);
    }
}

fn failure_text(end: &CallFailure) -> String {
    match end {
        CallFailure::Refused { code, message } => format!("{message} (code {code})"),
        CallFailure::Protocol(what)
        | CallFailure::Unfinished(what)
        | CallFailure::NotSent(what)
        | CallFailure::HttpStatus(what)
        | CallFailure::Lost(what) => what.clone(),
        CallFailure::Disconnected => "the connection closed".to_owned(),
        CallFailure::TimedOut(limit) => format!("no answer in {}", format_duration(*limit)),
        CallFailure::Cancelled => "stopped".to_owned(),
    }
}

fn format_duration(duration: Duration) -> String {
    match duration.as_millis() {
        ms @ 0..1_000 => format!("{ms} ms"),
        ms => format!("{} s", ms / 1_000),
    }
}
