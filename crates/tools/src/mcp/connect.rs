//! From settings to a session: the program is started or the URL is reached, and both sides have completed the handshake.

use super::http;
use super::lenient::{MessageReader, UNREADABLE_REPLY};
use super::session::{McpSession, SessionHandler, error_chain, transport_error_text};
use super::settings::{McpEndpoint, McpServer, ProtocolEra};
use super::stdio::StdioTransport;
use crate::process::{
    ChildProcess, ProgramError, ProgramSpec, RUN_AS_REMEDY, SandboxMode, SandboxRules, SpawnContext,
    child_environment,
};
use crate::schema::truncate_chars;
use crate::secrets::SecretSet;
use rmcp::RoleClient;
use rmcp::model::{ErrorData, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use throughline_wire::display_escape;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

/// Length of a server's last stderr output that is retained for the message about its end, in bytes.
pub const STDERR_TAIL_BYTES: usize = 4 * 1024;
/// Time for a server to end after its input was closed, before it gets a signal.
pub const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// Most characters of a server's own text that a fault about a failed handshake quotes.
const PROBLEM_CHARS_MAX: usize = 300;
/// Most characters of a JSON value in or instead of a failed handshake that a fault quotes.
const VALUE_CHARS_MAX: usize = 200;
const REVISION_REMEDY: &str = "Leave out `era`, or update the server.";
/// Time to wait for the last output of an ended server.
const STDERR_WAIT: Duration = Duration::from_millis(200);

/// Reason why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectFailure {
    pub(crate) message: String,
    pub(crate) remedy: Option<String>,
    /// True if the server may support the other revision.
    pub(crate) rejects_discovery: bool,
}

impl ConnectFailure {
    fn new(message: impl Into<String>, remedy: &str) -> Self {
        Self { message: message.into(), remedy: Some(remedy.to_owned()), rejects_discovery: false }
    }
}

/// A session and what keeps it up.
pub(crate) struct McpConnection {
    pub(crate) session: Arc<McpSession>,
    child: Option<ServerProcess>,
}

struct ServerProcess {
    process: ChildProcess,
    _stdout_reader: AbortOnDropHandle<()>,
    /// Reader of standard error; `None`: everything was read.
    stderr_reader: Option<AbortOnDropHandle<()>>,
    stderr_tail: StderrTail,
}

/// The last lines of a server's stderr.
#[derive(Clone, Debug, Default)]
pub(crate) struct StderrTail(Arc<Mutex<VecDeque<u8>>>);

impl StderrTail {
    /// Secrets are taken out before anything is forgotten: half of one would not be recognized.
    async fn read_from(self, mut stderr: impl AsyncRead + Unpin, secrets: SecretSet) {
        let mut redactor = secrets.redactor();
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
            self.append(&redactor.push(&chunk[..read]));
        }
        self.append(&redactor.finish());
    }

    fn append(&self, bytes: &[u8]) {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.extend(bytes);
        let excess = buffer.len().saturating_sub(STDERR_TAIL_BYTES);
        buffer.drain(..excess);
    }

    /// Preceded by the cause of the end, followed by the last stderr output.
    fn annotate(&self, what: &str) -> String {
        let buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (front, back) = buffer.as_slices();
        let tail = String::from_utf8_lossy(&[front, back].concat()).trim().to_owned();
        if tail.is_empty() { what.to_owned() } else { format!("{what}. Its output:\n{tail}") }
    }
}

/// Starts or reaches a server. Everything together takes no longer than the settings' limit.
pub(crate) async fn connect(
    name: &str,
    settings: &McpServer,
    spawn_context: &SpawnContext,
    era: ProtocolEra,
) -> Result<McpConnection, ConnectFailure> {
    let deadline = Instant::now() + settings.start_timeout();
    match settings.endpoint(name) {
        Ok(McpEndpoint::Program { program, arguments }) => {
            start_process(name, settings, spawn_context, era, (program, arguments), deadline).await
        }
        Ok(McpEndpoint::Url(url)) => {
            let reader = MessageReader::default();
            let value_of = |text: &str| spawn_context.expand_variables(text).map(|expanded| expanded.text);
            let transport = http::build_transport(url, settings, value_of, reader.clone())
                .map_err(|message| ConnectFailure::new(message, "Set it, or change `headers`."))?;
            let secrets = settings.secrets(spawn_context);
            let handshake =
                SessionHandler::new(name, secrets.clone()).serve_with_lifecycle(transport, lifecycle(era));
            let service =
                check_handshake(timeout_at(deadline, handshake).await, settings, &secrets).map_err(
                    |failure| ConnectFailure { message: format!("{url}: {}", failure.message), ..failure },
                )?;
            Ok(McpConnection { session: McpSession::new(service, reader), child: None })
        }
        Err(error) => Err(ConnectFailure::new(error.message, &error.help)),
    }
}

async fn start_process(
    name: &str,
    settings: &McpServer,
    spawn_context: &SpawnContext,
    era: ProtocolEra,
    (program, arguments): (&str, &[String]),
    deadline: Instant,
) -> Result<McpConnection, ConnectFailure> {
    let program = build_program(settings, spawn_context, program, arguments)?;
    let mut running = program
        .start()
        .map_err(|error| ConnectFailure::new(error.to_string(), "Check `command` and `cwd`."))?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (running.stdin.take(), running.stdout.take(), running.stderr.take())
    else {
        return Err(ConnectFailure::new("the program has no pipes", "Please report this."));
    };
    let stderr_tail = StderrTail::default();
    let listening = stderr_tail.clone().read_from(stderr, settings.secrets(spawn_context));
    let stderr_reader = Some(AbortOnDropHandle::new(tokio::spawn(listening)));
    let reader = MessageReader::default();
    let (transport, reading) = StdioTransport::new(stdout, stdin, reader.clone());
    let stdout_reader = AbortOnDropHandle::new(tokio::spawn(async move {
        // A closed side ends the connection, which the SDK notices, too.
        let _ = reading.await;
    }));
    let handshake = SessionHandler::new(name, settings.secrets(spawn_context))
        .serve_with_lifecycle(transport, lifecycle(era));
    let mut child =
        ServerProcess { process: running, _stdout_reader: stdout_reader, stderr_reader, stderr_tail };
    let result = timeout_at(deadline, handshake).await;
    // The end shows as the end of its output, or as a failed write to its input, whichever comes first.
    let has_ended = matches!(
        result.as_ref().map(|handshake| handshake.as_ref().err().map(cause_of)),
        Ok(Some(ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }))
    );
    match check_handshake(result, settings, &settings.secrets(spawn_context)) {
        Ok(service) => Ok(McpConnection { session: McpSession::new(service, reader), child: Some(child) }),
        Err(failure) => {
            let exit = child.end().await;
            let message = if has_ended {
                child.stderr_tail.annotate(&format!("the program {exit} before completing the MCP handshake"))
            } else {
                child.stderr_tail.annotate(&failure.message)
            };
            Err(ConnectFailure { message, ..failure })
        }
    }
}

fn build_program(
    settings: &McpServer,
    spawn_context: &SpawnContext,
    program: &str,
    arguments: &[String],
) -> Result<ProgramSpec, ConnectFailure> {
    let path = spawn_context.find_program(program).map_err(|error| {
        let is_about_the_user = matches!(error, ProgramError::RunAsUnavailable { .. });
        let remedy = if is_about_the_user { RUN_AS_REMEDY } else { "Install it, or correct `command`." };
        ConnectFailure::new(error.to_string(), remedy)
    })?;
    let mut overrides = BTreeMap::new();
    for (variable, text) in &settings.env {
        let value = spawn_context
            .resolve_value(text)
            .map_err(|message| ConnectFailure::new(message, "Set it, or change `env`."))?;
        overrides.insert(variable.clone(), value);
    }
    let mut program = ProgramSpec::new(path, spawn_context);
    program.arguments = arguments.iter().map(Into::into).collect();
    program.environment = child_environment(spawn_context, &settings.env_allow, &overrides);
    let folder = settings.cwd.as_deref().map(|cwd| spawn_context.resolve_path(cwd));
    program.limits = settings.limits.unwrap_or_default();
    program.folder = Some(folder.unwrap_or_else(|| spawn_context.folder.clone()));
    program.sandbox = match &settings.sandbox {
        // Unlike a command of the user's own, a server brings its own idea of where it keeps things.
        None => SandboxRules { mode: SandboxMode::Off, ..SandboxRules::default() },
        Some(sandbox) => sandbox
            .resolve(&spawn_context.folder, spawn_context.home())
            .map_err(|message| ConnectFailure::new(message, "Correct `sandbox`."))?,
    };
    Ok(program)
}

type HandshakeResult = Result<RunningService<RoleClient, SessionHandler>, ClientInitializeError>;

fn check_handshake(
    result: Result<HandshakeResult, tokio::time::error::Elapsed>,
    settings: &McpServer,
    secrets: &SecretSet,
) -> Result<RunningService<RoleClient, SessionHandler>, ConnectFailure> {
    let error = match result {
        Ok(Ok(service)) => return Ok(service),
        Ok(Err(error)) => error,
        Err(_over_time) => {
            let message = format!("it has not shaken hands in {} ms", settings.start_timeout_ms);
            return Err(ConnectFailure::new(
                message,
                "Check that it is an MCP server. Raise `start_timeout_ms` if it starts slowly.",
            ));
        }
    };
    let rejects_discovery = rejects_discovery(&error);
    let cause = cause_of(&error);
    let remedy = match cause {
        cause if cause.is_authorization_required() => {
            "It requires a key: set headers = { Authorization = \"$NAME_OF_A_VARIABLE\" }, with `Bearer …` in \
             the variable."
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => REVISION_REMEDY,
        ClientInitializeError::JsonRpcError(error) if names_revisions(error) => REVISION_REMEDY,
        _ => "Check that it is an MCP server and that it is running.",
    };
    let excerpt = |text: &str, chars_max: usize| {
        // Before anything of it is shortened: half a key would not be recognized.
        let redacted = secrets.redact(text);
        let line = redacted.split_whitespace().collect::<Vec<_>>().join(" ");
        truncate_chars(&display_escape::escape(&line), chars_max)
    };
    let mut message = excerpt(&handshake_problem(cause), PROBLEM_CHARS_MAX);
    if let Some(value) = handshake_value(cause) {
        message = format!("{message}: {}", excerpt(&value, VALUE_CHARS_MAX));
    }
    Err(ConnectFailure { rejects_discovery, ..ConnectFailure::new(message, remedy) })
}

/// The failure that counts: where the probe was refused, the one of the older handshake after it.
fn cause_of(error: &ClientInitializeError) -> &ClientInitializeError {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => cause_of(fallback),
        error => error,
    }
}

/// True if a refusal lists the revisions that the server supports.
fn names_revisions(error: &ErrorData) -> bool {
    error.data.as_ref().is_some_and(|data| data["supported"].is_array())
}

/// Reason why the handshake failed, without the names of the SDK's types.
fn handshake_problem(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => transport_error_text(error),
        ClientInitializeError::ExpectedInitResult(Some(_)) => {
            "its answer to the handshake names no revision of the protocol".to_owned()
        }
        ClientInitializeError::ExpectedInitResult(None) | ClientInitializeError::ExpectedInitResponse(_) => {
            "it answers the handshake with something else".to_owned()
        }
        ClientInitializeError::JsonRpcError(error) if error.code.0 == UNREADABLE_REPLY => {
            error.message.to_string()
        }
        ClientInitializeError::JsonRpcError(error) => {
            format!("it refuses the handshake: {} (code {})", error.message, error.code.0)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let known: Vec<_> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            format!("unsupported protocol version: {}", known.join(", "))
        }
        error => error_chain(error),
    }
}

/// The JSON in or instead of a failed handshake: often it explains more than the error.
fn handshake_value(error: &ClientInitializeError) -> Option<String> {
    let value = match error {
        ClientInitializeError::ExpectedInitResult(Some(result)) => serde_json::to_string(result),
        ClientInitializeError::ExpectedInitResponse(Some(message)) => serde_json::to_string(message),
        ClientInitializeError::JsonRpcError(ErrorData { data: Some(data), .. }) if !data.is_null() => {
            serde_json::to_string(data)
        }
        _ => return None,
    };
    value.ok()
}

/// A server that was written before the probe may answer it with anything, and the SDK tries the older
/// handshake only after the answers that it expects. Not caused by the probe: an address that cannot be
/// reached, a missing key, no revision in common.
fn rejects_discovery(error: &ClientInitializeError) -> bool {
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

fn lifecycle(era: ProtocolEra) -> ClientLifecycleMode {
    let newest = || vec![ProtocolVersion::V_2026_07_28];
    match era {
        ProtocolEra::Auto => ClientLifecycleMode::Auto {
            preferred_versions: newest(),
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
        ProtocolEra::V2026_07_28 => ClientLifecycleMode::Discover { preferred_versions: newest() },
        ProtocolEra::V2025_11_25 => ClientLifecycleMode::Initialize,
    }
}

impl McpConnection {
    /// Waits until the connection is over, and returns how it ended. All processes of the server end with it.
    pub(crate) async fn wait_closed(&mut self) -> String {
        self.session.closed().await;
        self.close().await
    }

    /// Ends the connection, and returns how it ended.
    pub(crate) async fn close(&mut self) -> String {
        self.session.close(CLOSE_WAIT).await;
        match &mut self.child {
            None => "the connection closed".to_owned(),
            Some(child) => {
                let exit = child.end().await;
                child.stderr_tail.annotate(&format!("the program {exit}"))
            }
        }
    }
}

impl ServerProcess {
    /// Ends the server: first by closing its input, then by force, with everything that it started.
    async fn end(&mut self) -> String {
        let waited = tokio::time::timeout(CLOSE_WAIT, self.process.wait()).await;
        let exit = match waited {
            Ok(exit) => exit,
            Err(_over_time) => self.process.stop().await,
        };
        // Its last output may still be in the pipe; a child of it may hold the pipe open without end.
        if let Some(stderr_reader) = self.stderr_reader.take() {
            let _ = tokio::time::timeout(STDERR_WAIT, stderr_reader).await;
        }
        match exit {
            Ok(exit) => match (exit.code, exit.signal) {
                (Some(code), _) => format!("exited with code {code}"),
                (None, Some(signal)) => format!("was killed by signal {signal}"),
                (None, None) => "ended".to_owned(),
            },
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => format!("was stopped: {error}"),
            Err(error) => format!("ended with unknown status ({error})"),
        }
    }
}
