//! A server as a source of tools: started in the background, listed, compared with its pins, watched, and started again
//! when it ends.

use super::call::McpTool;
use super::connect::{Connection, Refusal, connect};
use super::definition::Definition;
use super::listing::{Listing, list};
use super::pins::{Pins, PinsError, Verdict};
use super::session::{CallEnd, Session};
use super::settings::{Era, McpServer, McpSettingError};
use crate::process::Surroundings;
use crate::secrets::Secrets;
use crate::tool::Tool;
use crate::toolbox::{Source, SourceFault, SourceNews};
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
    /// A server that was there for so long has been well: the pauses begin anew. Default 60 s.
    pub well_after: Duration,
    /// Pause after "my tools have changed" before they are listed: such notices come in bursts. Default 300 ms.
    pub settle: Duration,
    /// How long a list that says for how long it holds is kept at least. Default 60 s.
    pub list_lasts_min: Duration,
}

impl Default for McpLimits {
    fn default() -> Self {
        Self {
            restart_after: Duration::from_secs(1),
            restart_after_max: Duration::from_secs(60),
            well_after: Duration::from_secs(60),
            settle: Duration::from_millis(300),
            list_lasts_min: Duration::from_secs(60),
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
/// use throughline_tools::mcp::{McpServer, McpSource, Pins};
/// use throughline_tools::process::Surroundings;
///
/// let settings = McpServer { command: vec!["mcp-server-time".into()], ..McpServer::default() };
/// let source = McpSource::new("time", settings, Surroundings::of_this_process(), Pins::in_memory())?;
/// let toolbox = Toolbox::new([])?;
/// toolbox.add(Arc::new(source));
/// toolbox.ready(Duration::from_secs(10)).await;
/// # Ok(()) }
/// ```
pub struct McpSource {
    source_name: String,
    server: Arc<Server>,
    surroundings: Surroundings,
    pins: Pins,
    limits: McpLimits,
    running: Mutex<Option<Running>>,
}

struct Running {
    stop: CancellationToken,
    task: AbortOnDropHandle<()>,
}

impl fmt::Debug for McpSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpSource").field("name", &self.source_name).finish_non_exhaustive()
    }
}

/// What the tools of a server share with whoever keeps it going.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) settings: McpServer,
    /// Taken out of everything that the server says, but for its definitions, which are shown as they are.
    pub(crate) secrets: Secrets,
    session: watch::Sender<Option<Arc<Session>>>,
    /// Why there is no session, in a sentence.
    state: Mutex<String>,
    /// What tools were found doing wrong, by tool.
    complaints: Mutex<BTreeMap<ToolName, String>>,
    complained: Notify,
    suspected: Notify,
}

impl Server {
    /// The connection, waited for while the server is being started again.
    pub(crate) async fn session(&self, limit: Duration, cancel: &CancellationToken) -> Option<Arc<Session>> {
        let mut sessions = self.session.subscribe();
        let is_there =
            |session: &Option<Arc<Session>>| session.as_ref().is_some_and(|session| !session.is_closed());
        tokio::select! {
            there = timeout(limit, sessions.wait_for(is_there)) => there.ok()?.ok()?.clone(),
            () = cancel.cancelled() => None,
        }
    }

    pub(crate) fn state(&self) -> String {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Something went wrong that may mean that the server is not well: it is asked for its tools.
    pub(crate) fn suspect(&self) {
        self.suspected.notify_one();
    }

    /// A tool does not keep its word.
    pub(crate) fn complain(&self, tool: &ToolName, what: &str) {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        if complaints.get(tool).is_none_or(|known| known != what) {
            complaints.insert(tool.clone(), what.to_owned());
            self.complained.notify_one();
        }
    }

    fn connected(&self, session: Option<Arc<Session>>, state: String) {
        let state = self.secrets.redact(&state).into_owned();
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.session.send_replace(session);
    }

    fn fault(&self, tool: Option<ToolName>, message: String, remedy: Option<String>) -> SourceFault {
        let message = self.secrets.redact(&message).into_owned();
        SourceFault { source: format!("mcp:{}", self.name), tool, message, remedy }
    }
}

impl McpSource {
    /// A source for `[mcp.NAME]`. Nothing is started yet.
    ///
    /// # Errors
    /// What is wrong with the settings.
    pub fn new(
        name: &str,
        settings: McpServer,
        surroundings: Surroundings,
        pins: Pins,
    ) -> Result<Self, McpSettingError> {
        settings.check(name)?;
        let server = Server {
            name: name.to_owned(),
            secrets: settings.secrets(&surroundings),
            settings,
            session: watch::Sender::new(None),
            state: Mutex::new("it is being started".to_owned()),
            complaints: Mutex::default(),
            complained: Notify::new(),
            suspected: Notify::new(),
        };
        Ok(Self {
            source_name: format!("mcp:{name}"),
            server: Arc::new(server),
            surroundings,
            pins,
            limits: McpLimits::default(),
            running: Mutex::new(None),
        })
    }

    /// With other limits.
    #[must_use]
    pub fn limits(mut self, limits: McpLimits) -> Self {
        self.limits = limits;
        self
    }
}

#[async_trait]
impl Source for McpSource {
    fn name(&self) -> &str {
        &self.source_name
    }

    async fn start(&self, news: SourceNews) {
        let stop = CancellationToken::new();
        let told = Arc::new(Notify::new());
        let keeper = Keeper {
            server: self.server.clone(),
            surroundings: self.surroundings.clone(),
            pins: self.pins.clone(),
            limits: self.limits,
            news,
            told: told.clone(),
            stop: stop.clone(),
        };
        let task = AbortOnDropHandle::new(tokio::spawn(keeper.keep()));
        let before = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.replace(Running { stop, task })
        };
        drop(before);
        told.notified().await;
    }

    async fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { stop, task }) = running {
            stop.cancel();
            // It ends the server and then itself, each in its own limit; a panic there has ended it, too.
            let _ = task.await;
        }
    }
}

/// Keeps one server going.
struct Keeper {
    server: Arc<Server>,
    surroundings: Surroundings,
    pins: Pins,
    limits: McpLimits,
    news: SourceNews,
    /// The first tools or the first fault have been told.
    told: Arc<Notify>,
    stop: CancellationToken,
}

/// Why a connection that was there is no more.
enum Over {
    Stopped,
    Ended(String),
}

impl Keeper {
    async fn keep(self) {
        let mut pause = self.limits.restart_after;
        let mut era = self.server.settings.era;
        loop {
            let connecting = connect(&self.server.name, &self.server.settings, &self.surroundings, era);
            let connected = tokio::select! {
                connected = connecting => connected,
                () = self.stop.cancelled() => return self.told.notify_one(),
            };
            match connected {
                Err(refusal) if refusal.is_deaf_to_discovery && era == Era::Auto => {
                    // Servers that were written before the probe may end at a request that they do not know.
                    era = Era::V2025_11_25;
                    continue;
                }
                Err(refusal) => {
                    era = self.server.settings.era;
                    self.tell_refusal(refusal, pause);
                }
                Ok(connection) => {
                    let since = Instant::now();
                    era = self.spoken(&connection);
                    match self.serve(connection).await {
                        Over::Stopped => return self.told.notify_one(),
                        Over::Ended(how) => {
                            if since.elapsed() >= self.limits.well_after {
                                pause = self.limits.restart_after;
                            }
                            self.tell_end(how, pause);
                        }
                    }
                }
            }
            self.told.notify_one();
            tokio::select! {
                () = sleep(pause) => {}
                () = self.stop.cancelled() => return,
            }
            pause = (pause * 2).min(self.limits.restart_after_max);
        }
    }

    /// What was agreed on once is not asked for again when the server is restarted.
    fn spoken(&self, connection: &Connection) -> Era {
        match (self.server.settings.era, connection.session.protocol()) {
            (Era::Auto, Some(version)) if version < ProtocolVersion::V_2026_07_28 => Era::V2025_11_25,
            (era, _) => era,
        }
    }

    /// From the first list to the end of the connection.
    async fn serve(&self, mut connection: Connection) -> Over {
        let session = connection.session.clone();
        let over = tokio::select! {
            over = self.watch(&session) => over,
            how = connection.over() => Over::Ended(how),
            () = self.stop.cancelled() => Over::Stopped,
        };
        self.server.connected(None, "it has ended and is being started again".to_owned());
        let how = connection.close().await;
        match over {
            Over::Ended(reason) if reason.is_empty() => Over::Ended(how),
            over => over,
        }
    }

    /// Lists whenever there is a reason to. Returns when the server does not answer.
    async fn watch(&self, session: &Arc<Session>) -> Over {
        let mut list_changes = session.list_changes();
        let mut approvals = self.pins.approvals();
        let listening = async {
            let mut pause = self.limits.restart_after;
            while session.listen().await {
                // Ended by the server: what happened meanwhile is in the next list.
                sleep(pause).await;
                pause = (pause * 2).min(self.limits.restart_after_max);
                self.server.suspect();
            }
            std::future::pending::<()>().await;
        };
        let mut listening = std::pin::pin!(listening);
        loop {
            let listing = match list(&self.server.name, &self.server.settings, session).await {
                Ok(listing) => listing,
                Err(CallEnd::Gone) => return Over::Ended(String::new()),
                Err(end) => return Over::Ended(format!("it does not list its tools: {}", in_words(&end))),
            };
            let lasts = listing.lasts.map(|lasts| lasts.max(self.limits.list_lasts_min));
            self.server.connected(Some(session.clone()), String::new());
            let definitions = self.publish(listing).await;
            let old_age = async {
                match lasts {
                    Some(lasts) => sleep(lasts).await,
                    None => std::future::pending().await,
                }
            };
            let mut old_age = std::pin::pin!(old_age);
            loop {
                tokio::select! {
                    changed = list_changes.changed() => {
                        if changed.is_err() {
                            return Over::Ended(String::new());
                        }
                        sleep(self.limits.settle).await;
                        list_changes.mark_unchanged();
                        break;
                    }
                    () = self.server.suspected.notified() => break,
                    () = &mut old_age => break,
                    _ = approvals.changed() => {
                        let listing = Listing { tools: definitions.clone(), ..Listing::default() };
                        self.publish(listing).await;
                    }
                    () = self.server.complained.notified() => {
                        let listing = Listing { tools: definitions.clone(), ..Listing::default() };
                        self.publish(listing).await;
                    }
                    () = &mut listening => {}
                }
            }
        }
    }

    /// Tells the tools that are as agreed, and what is to be said about the others.
    // R: L2
    async fn publish(&self, listing: Listing) -> Vec<Definition> {
        let Listing { tools: definitions, problems, .. } = listing;
        let mut faults: Vec<SourceFault> =
            problems.into_iter().map(|(tool, message)| self.server.fault(tool, message, None)).collect();
        let verdicts = match self.verdicts(&definitions).await {
            Ok(verdicts) => verdicts,
            Err(error) => {
                let remedy =
                    "Its tools stay off until their definitions can be compared: mend or remove the file.";
                faults.push(self.server.fault(None, error.to_string(), Some(remedy.to_owned())));
                self.news.state(Vec::new(), faults);
                self.told.notify_one();
                return definitions;
            }
        };
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for (definition, verdict) in definitions.iter().zip(verdicts) {
            match verdict {
                Verdict::Agreed => {
                    tools.push(Arc::new(McpTool::new(self.server.clone(), definition.clone())))
                }
                Verdict::Changed(changed) => {
                    let name = definition.spec.name.clone();
                    let message = "its definition is not the one that was agreed to, so it is switched off";
                    let remedy = format!(
                        "Read the difference with `throughline tools changes`, then `throughline tools approve {}`.",
                        changed.name
                    );
                    faults.push(self.server.fault(Some(name), message.to_owned(), Some(remedy)));
                }
            }
        }
        let complaints = self.server.complaints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        faults.extend(complaints.into_iter().map(|(tool, what)| self.server.fault(Some(tool), what, None)));
        self.news.state(tools, faults);
        self.told.notify_one();
        definitions
    }

    async fn verdicts(&self, definitions: &[Definition]) -> Result<Vec<Verdict>, PinsError> {
        let now: Vec<_> = definitions
            .iter()
            .map(|definition| (definition.spec.name.as_str().to_owned(), definition.pinned.clone()))
            .collect();
        let pins = self.pins.clone();
        match tokio::task::spawn_blocking(move || pins.compare(&now)).await {
            Ok(verdicts) => verdicts,
            // Only a runtime that is shutting down does not run it.
            Err(error) => Err(PinsError::Format { path: "pins".into(), problem: error.to_string() }),
        }
    }

    /// It could not be started: nothing of it can be called.
    fn tell_refusal(&self, refusal: Refusal, pause: Duration) {
        let message = format!("{}; tried again in {}", refusal.message, seconds(pause));
        self.server.connected(None, refusal.message);
        self.news.state(Vec::new(), vec![self.server.fault(None, message, refusal.remedy)]);
    }

    /// It was there: its tools stay, and calls wait a moment for it, since it will probably be back by then.
    fn tell_end(&self, how: String, pause: Duration) {
        let message = format!("{how}; started again in {}", seconds(pause));
        self.server.connected(None, how);
        self.news.faults(vec![self.server.fault(None, message, None)]);
    }
}

fn in_words(end: &CallEnd) -> String {
    match end {
        CallEnd::Refused { code, message } => format!("{message} (code {code})"),
        CallEnd::Protocol(what) | CallEnd::NotSent(what) => what.clone(),
        CallEnd::Gone => "the connection ended".to_owned(),
        CallEnd::Silent(limit) => format!("no answer in {}", seconds(*limit)),
        CallEnd::Stopped => "stopped".to_owned(),
    }
}

fn seconds(duration: Duration) -> String {
    match duration.as_millis() {
        ms @ 0..1_000 => format!("{ms} ms"),
        ms => format!("{} s", ms / 1_000),
    }
}
