//! From settings to a session: the program is started or the URL is reached, and both sides have shaken hands.

use super::listing::TaskOnly;
use super::session::{Handler, Session, causes, of_transport};
use super::settings::{Era, McpServer, Way};
use super::{http, stdio};
use crate::process::{
    Program, ProgramError, RUN_AS_REMEDY, Running, SandboxMode, SandboxRules, Surroundings, child_environment,
};
use crate::secrets::Secrets;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

/// How much of what a server says on stderr is kept for the message about its end, in bytes.
pub const STDERR_BYTES_KEPT: usize = 4 * 1024;
/// Between our side and the pump of a child's lines, in bytes.
const PIPE_BYTES: usize = 64 * 1024;
/// How long a server has to end by itself after the end of its input, before it is told to.
pub const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// How long the end of what an ended server said is waited for.
const EAR_WAIT: Duration = Duration::from_millis(200);

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) message: String,
    pub(crate) remedy: Option<String>,
    /// It may answer to the other revision.
    pub(crate) is_deaf_to_discovery: bool,
}

impl Refusal {
    fn new(message: impl Into<String>, remedy: &str) -> Self {
        Self { message: message.into(), remedy: Some(remedy.to_owned()), is_deaf_to_discovery: false }
    }
}

/// A session and what keeps it up.
pub(crate) struct Connection {
    pub(crate) session: Arc<Session>,
    child: Option<Child>,
}

struct Child {
    running: Running,
    _pump: AbortOnDropHandle<()>,
    /// `None`: it has heard everything.
    ear: Option<AbortOnDropHandle<()>>,
    said: Said,
}

/// The last of what a server said on stderr.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said(Arc<Mutex<VecDeque<u8>>>);

impl Said {
    /// Secrets are taken out before anything is forgotten: half of one would not be recognised.
    async fn listen(self, mut stderr: impl AsyncRead + Unpin, secrets: Secrets) {
        let mut redactor = secrets.redactor();
        let mut piece = [0; 4096];
        while let Ok(read @ 1..) = stderr.read(&mut piece).await {
            self.keep(&redactor.push(&piece[..read]));
        }
        self.keep(&redactor.finish());
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let over = kept.len().saturating_sub(STDERR_BYTES_KEPT);
        kept.drain(..over);
    }

    /// In front of it what ended, behind it what was said last.
    fn behind(&self, what: &str) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (front, back) = kept.as_slices();
        let said = String::from_utf8_lossy(&[front, back].concat()).trim().to_owned();
        if said.is_empty() { what.to_owned() } else { format!("{what}. It said:\n{said}") }
    }
}

/// Starts or reaches a server. Everything together takes no longer than the settings' limit.
pub(crate) async fn connect(
    name: &str,
    settings: &McpServer,
    surroundings: &Surroundings,
    era: Era,
) -> Result<Connection, Refusal> {
    let until = Instant::now() + settings.start_limit();
    match settings.way(name) {
        Ok(Way::Program { program, arguments }) => {
            start(name, settings, surroundings, era, (program, arguments), until).await
        }
        Ok(Way::Url(url)) => {
            let task_only = TaskOnly::default();
            let value_of = |text: &str| surroundings.value(text);
            let transport = http::transport(url, settings, value_of, task_only.clone())
                .map_err(|message| Refusal::new(message, "Set it, or change `headers`."))?;
            let shaking = Handler::new(name, settings.secrets(surroundings))
                .serve_with_lifecycle(transport, lifecycle(era));
            let service = shaken(timeout_at(until, shaking).await, settings)
                .map_err(|refusal| Refusal { message: format!("{url}: {}", refusal.message), ..refusal })?;
            Ok(Connection { session: Session::new(service, task_only), child: None })
        }
        Err(error) => Err(Refusal::new(error.message, &error.help)),
    }
}

async fn start(
    name: &str,
    settings: &McpServer,
    surroundings: &Surroundings,
    era: Era,
    (program, arguments): (&str, &[String]),
    until: Instant,
) -> Result<Connection, Refusal> {
    let program = program_of(settings, surroundings, program, arguments)?;
    let mut running =
        program.start().map_err(|error| Refusal::new(error.to_string(), "Check `command` and `cwd`."))?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (running.stdin.take(), running.stdout.take(), running.stderr.take())
    else {
        return Err(Refusal::new("the program has no pipes", "Please report this."));
    };
    let said = Said::default();
    let listening = said.clone().listen(stderr, settings.secrets(surroundings));
    let ear = Some(AbortOnDropHandle::new(tokio::spawn(listening)));
    let task_only = TaskOnly::default();
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let looking = task_only.clone();
    let pump = AbortOnDropHandle::new(tokio::spawn(async move {
        // A side that has gone is the end of the connection, which the SDK sees, too.
        let _ = stdio::pump(stdout, theirs, looking).await;
    }));
    let transport = AsyncRwTransport::new_client(ours, stdin).with_max_line_length(stdio::MESSAGE_BYTES_MAX);
    let shaking =
        Handler::new(name, settings.secrets(surroundings)).serve_with_lifecycle(transport, lifecycle(era));
    let mut child = Child { running, _pump: pump, ear, said };
    let result = timeout_at(until, shaking).await;
    // Its end is seen by the end of what it writes, or by nobody reading what it is sent, whichever comes first.
    let has_ended = matches!(
        result,
        Ok(Err(ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }))
    );
    match shaken(result, settings) {
        Ok(service) => Ok(Connection { session: Session::new(service, task_only), child: Some(child) }),
        Err(refusal) => {
            let ended = child.end().await;
            let message = match has_ended {
                true => child.said.behind(&format!("the program {ended} before it had shaken hands")),
                false => child.said.behind(&refusal.message),
            };
            Err(Refusal { message, ..refusal })
        }
    }
}

fn program_of(
    settings: &McpServer,
    surroundings: &Surroundings,
    program: &str,
    arguments: &[String],
) -> Result<Program, Refusal> {
    let path = surroundings.find(program).map_err(|error| {
        let is_about_the_user = matches!(error, ProgramError::NobodyToRunAs { .. });
        let remedy = if is_about_the_user { RUN_AS_REMEDY } else { "Install it, or correct `command`." };
        Refusal::new(error.to_string(), remedy)
    })?;
    let mut set = BTreeMap::new();
    for (variable, text) in &settings.env {
        let value =
            surroundings.value(text).map_err(|message| Refusal::new(message, "Set it, or change `env`."))?;
        set.insert(variable.clone(), value);
    }
    let mut program = Program::new(path, surroundings);
    program.arguments = arguments.iter().map(Into::into).collect();
    program.environment = child_environment(surroundings, &settings.env_allow, &set);
    let folder = settings.cwd.as_deref().map(|cwd| surroundings.path(cwd));
    program.limits = settings.limits.unwrap_or_default();
    program.folder = Some(folder.unwrap_or_else(|| surroundings.folder.clone()));
    program.sandbox = match &settings.sandbox {
        // Unlike a command of the user's own, a server brings its own idea of where it keeps things.
        None => SandboxRules { mode: SandboxMode::Off, ..SandboxRules::default() },
        Some(sandbox) => sandbox
            .resolve(&surroundings.folder, surroundings.home())
            .map_err(|message| Refusal::new(message, "Correct `sandbox`."))?,
    };
    Ok(program)
}

type Shaken = Result<RunningService<RoleClient, Handler>, ClientInitializeError>;

fn shaken(
    result: Result<Shaken, tokio::time::error::Elapsed>,
    settings: &McpServer,
) -> Result<RunningService<RoleClient, Handler>, Refusal> {
    let error = match result {
        Ok(Ok(service)) => return Ok(service),
        Ok(Err(error)) => error,
        Err(_over_time) => {
            let message = format!("it has not shaken hands in {} ms", settings.start_timeout_ms);
            return Err(Refusal::new(
                message,
                "Is it an MCP server? Raise `start_timeout_ms` if it is only slow.",
            ));
        }
    };
    let is_deaf_to_discovery = is_deaf_to_discovery(&error);
    let remedy = match &error {
        error if error.is_authorization_required() => {
            "It wants a key: headers = { Authorization = \"$NAME_OF_A_VARIABLE\" }, with `Bearer …` in the variable."
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => "Leave out `era`, or update the server.",
        _ => "Is it an MCP server, and does it run?",
    };
    let message = match &error {
        ClientInitializeError::TransportError { error, .. } => of_transport(error),
        error => causes(error),
    };
    Err(Refusal { is_deaf_to_discovery, ..Refusal::new(message, remedy) })
}

/// A server that was written before the probe may answer it with anything, and the SDK tries the older handshake only
/// after the answers that it expects. What the probe is not to blame for: an address that cannot be reached, a missing
/// key, no revision in common.
fn is_deaf_to_discovery(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => true,
        ClientInitializeError::TransportError { error: transport, context } => {
            let is_unreachable = matches!(
                transport.error.downcast_ref(),
                Some(StreamableHttpError::<reqwest::Error>::Client(_))
            );
            context.contains("discover") && !is_unreachable && !error.is_authorization_required()
        }
        _ => false,
    }
}

fn lifecycle(era: Era) -> ClientLifecycleMode {
    let newest = || vec![ProtocolVersion::V_2026_07_28];
    match era {
        Era::Auto => ClientLifecycleMode::Auto {
            preferred_versions: newest(),
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
        Era::V2026_07_28 => ClientLifecycleMode::Discover { preferred_versions: newest() },
        Era::V2025_11_25 => ClientLifecycleMode::Initialize,
    }
}

impl Connection {
    /// Waits until the connection is over, and says how it ended. What the server started is ended with it.
    pub(crate) async fn over(&mut self) -> String {
        self.session.closed().await;
        self.close().await
    }

    /// Ends it, and says how.
    pub(crate) async fn close(&mut self) -> String {
        self.session.close(CLOSE_WAIT).await;
        match &mut self.child {
            None => "the connection ended".to_owned(),
            Some(child) => {
                let ended = child.end().await;
                child.said.behind(&format!("the program {ended}"))
            }
        }
    }
}

impl Child {
    /// A moment to end by itself, then by force, with everything that it started.
    async fn end(&mut self) -> String {
        let by_itself = tokio::time::timeout(CLOSE_WAIT, self.running.wait()).await;
        let ended = match by_itself {
            Ok(ended) => ended,
            Err(_over_time) => self.running.stop().await,
        };
        // What it said last may be on its way still; a child of its own may keep the pipe open for ever.
        if let Some(ear) = self.ear.take() {
            let _ = tokio::time::timeout(EAR_WAIT, ear).await;
        }
        match ended {
            Ok(ended) => match (ended.code, ended.signal) {
                (Some(code), _) => format!("ended with exit code {code}"),
                (None, Some(signal)) => format!("was ended by signal {signal}"),
                (None, None) => "ended".to_owned(),
            },
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => format!("was stopped: {error}"),
            Err(error) => format!("ended, and how is not known ({error})"),
        }
    }
}
