//! One connection to a server: requests that always end, and the server's notifications, routed to the call
//! that they are about.
//!
//! Wraps every wait of the SDK in a time limit: a lost reply must not be a call that never ends.

use super::elicit;
use super::http::failure_of_post;
use super::lenient::{MessageReader, UNREADABLE_REPLY};
use crate::context::{ToolContext, ToolProgress};
use crate::secrets::SecretSet;
use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotification,
    CancelledNotificationParam, ClientCapabilities, ClientConfig, ClientRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, FormElicitationCapability,
    Implementation, InputRequest, InputRequiredResult, InputResponses, ProgressNotificationParam,
    ProgressToken, ProtocolVersion, RequestId, ServerResult, SubscriptionFilter, UrlElicitationCapability,
};
use rmcp::service::{
    InboundStreamOrigin, NotificationContext, Peer, PeerRequestOptions, RequestContext, RequestHandle,
    RunningServiceCancellationToken, ServiceError,
};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// Number of times that a server may ask for input before it answers (the same in all SDKs of the protocol).
pub const INPUT_ROUNDS_MAX: usize = 10;
/// Time for notifying a server that a call is cancelled.
pub const CANCEL_WAIT: Duration = Duration::from_secs(1);
/// Pause before a call is sent again to a server that only requested a retry.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// JSON-RPC code of "visit these addresses first" (2025-11-25).
const URL_ELICITATION_REQUIRED: i32 = -32_042;

/// A connection with a completed handshake.
pub(crate) struct McpSession {
    peer: Peer<RoleClient>,
    routes: Arc<CallRoutes>,
    /// Fires when the connection is over, ended by either side.
    closed: CancellationToken,
    cancel_token: Mutex<Option<RunningServiceCancellationToken>>,
    pub(crate) reader: MessageReader,
}

/// Reason why a request has no usable answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// The server answered with an error.
    Refused { code: i32, message: String },
    /// The answer cannot be read as one to the request: the server may have acted on it.
    Protocol(String),
    /// The server does not finish without an input that it cannot get.
    Unfinished(String),
    /// Nothing was sent: there is no connection.
    NotSent(String),
    /// The server answered with an HTTP status instead of a result, mostly before it had read the request.
    HttpStatus(String),
    /// The request was sent, at least in part, and the connection broke.
    Lost(String),
    /// The connection ended first.
    Disconnected,
    /// Neither an answer nor progress for so long.
    TimedOut(Duration),
    /// We were cancelled, and have notified the server.
    Cancelled,
}

impl McpSession {
    pub(crate) fn new(
        service: rmcp::service::RunningService<RoleClient, SessionHandler>,
        reader: MessageReader,
    ) -> Arc<Self> {
        let closed = CancellationToken::new();
        let session = Arc::new(Self {
            peer: service.peer().clone(),
            routes: service.service().routes.clone(),
            closed: closed.clone(),
            cancel_token: Mutex::new(Some(service.cancellation_token())),
            reader,
        });
        tokio::spawn(async move {
            // Whether it ended well or not, it has ended.
            let _ = service.waiting().await;
            closed.cancel();
        });
        session
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    pub(crate) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Ends the connection. The server learns of it by the end of its input, or of its session.
    pub(crate) async fn close(&self, limit: Duration) {
        let end = self.cancel_token.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(end) = end {
            end.cancel();
        }
        // Over time or not, there is nothing more to be done here.
        let _ = timeout(limit, self.closed()).await;
    }

    /// Revision of the protocol in use.
    pub(crate) fn protocol(&self) -> Option<ProtocolVersion> {
        Some(self.peer.peer_info()?.protocol_version.clone())
    }

    /// Changes whenever the server reports that its tools have changed.
    pub(crate) fn list_changes(&self) -> watch::Receiver<u64> {
        self.routes.list_changes.subscribe()
    }

    /// Subscribes to change notifications, which the revision without sessions requires. Ends when the server
    /// or the connection ends the subscription; `false` = the server does not support it.
    pub(crate) async fn listen_for_changes(&self) -> bool {
        let Some(info) = self.peer.peer_info() else { return false };
        let changes = info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed) == Some(true);
        if !changes || info.protocol_version < ProtocolVersion::V_2026_07_28 {
            return false;
        }
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let Ok(mut subscription) = self.peer.listen(filter).await else { return false };
        while let Ok(Some(_)) = subscription.next().await {
            self.routes.list_changes.send_modify(|count| *count += 1);
        }
        true
    }

    /// A request that is no call.
    pub(crate) async fn request(
        &self,
        request: ClientRequest,
        limit: Duration,
    ) -> Result<ServerResult, CallFailure> {
        let handle = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let handle = handle.await.map_err(from_service_error)?;
        let mut open = OpenRequest::new(handle, &self.reader);
        tokio::select! {
            biased;
            answer = open.answer() => answer,
            () = self.closed() => Err(CallFailure::Disconnected),
            () = tokio::time::sleep(limit) => {
                open.cancel("no answer in time").await;
                Err(CallFailure::TimedOut(limit))
            }
        }
    }

    /// Calls a tool: with progress to `context`, questions to its question handler, and `idle` from one sign of
    /// life to the next.
    pub(crate) async fn call(
        &self,
        mut params: CallToolRequestParams,
        context: &ToolContext,
        idle: Duration,
    ) -> Result<CallToolResult, CallFailure> {
        for _round in 0..INPUT_ROUNDS_MAX {
            let answer = self.call_once(params.clone(), context, idle).await;
            match answer {
                Ok(ServerResult::CallToolResult(result)) => return Ok(result),
                Ok(ServerResult::InputRequiredResult(wanted)) => {
                    let input = self.collect_input(wanted, context).await?;
                    (params.input_responses, params.request_state) = input;
                }
                Ok(ServerResult::CreateTaskResult(_)) => {
                    return Err(CallFailure::Protocol(
                        "it turned the call into a task, which was not requested".to_owned(),
                    ));
                }
                Ok(_) => {
                    return Err(CallFailure::Protocol(
                        "it answered `tools/call` with something else".to_owned(),
                    ));
                }
                Err(RoundFailure::VisitUrls(addresses)) => {
                    for address in addresses {
                        let answer = self.routes.ask(context, address).await;
                        if answer.action != ElicitationAction::Accept {
                            let message = "it requires visiting a URL first, which was declined";
                            return Err(CallFailure::Refused {
                                code: URL_ELICITATION_REQUIRED,
                                message: message.to_owned(),
                            });
                        }
                    }
                }
                Err(RoundFailure::Failed(end)) => return Err(end),
            }
        }
        Err(CallFailure::Unfinished(format!(
            "it requested input {INPUT_ROUNDS_MAX} times without returning a result"
        )))
    }

    async fn call_once(
        &self,
        params: CallToolRequestParams,
        context: &ToolContext,
        idle: Duration,
    ) -> Result<ServerResult, RoundFailure> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let (mut open, route) = self.open_call(request, context).await?;
        loop {
            let deadline = route.state().deadline(idle);
            let idle_timeout = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // An answer is an answer, even if a cancel came in the same moment.
                biased;
                answer = open.raw_answer() => return answer,
                () = context.cancellation().cancelled() => {
                    open.cancel("stopped by the user").await;
                    return Err(CallFailure::Cancelled.into());
                }
                () = self.closed() => return Err(CallFailure::Disconnected.into()),
                // Progress, or a question to a person: the deadline is computed again.
                () = route.deadline_moved.notified() => {}
                () = idle_timeout => {
                    open.cancel("no answer and no progress in time").await;
                    return Err(CallFailure::TimedOut(idle).into());
                }
            }
        }
    }

    /// Sends a call. Notifications of the server about it are routed from the first moment on.
    async fn open_call(
        &self,
        request: ClientRequest,
        context: &ToolContext,
    ) -> Result<(OpenRequest, RouteGuard), CallFailure> {
        let _open_guard = self.routes.open_lock.lock().await;
        let handle = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let handle = handle.await.map_err(from_queue_error)?;
        let route = Arc::new(CallRoute {
            token: handle.progress_token.clone(),
            context: context.clone(),
            state: Mutex::new(RouteState {
                last_activity: Instant::now(),
                open_questions: 0,
                progress: f64::NEG_INFINITY,
            }),
            deadline_moved: Notify::new(),
        });
        self.routes.open_calls().push((handle.id.clone(), route.clone()));
        let guard = RouteGuard { routes: self.routes.clone(), id: handle.id.clone(), route };
        Ok((OpenRequest::new(handle, &self.reader), guard))
    }

    /// Collects the input that a server wants before it continues.
    async fn collect_input(
        &self,
        wanted: InputRequiredResult,
        context: &ToolContext,
    ) -> Result<(Option<InputResponses>, Option<String>), CallFailure> {
        let Some(requests) = wanted.input_requests.filter(|requests| !requests.is_empty()) else {
            tokio::time::sleep(RETRY_PAUSE).await;
            return Ok((None, wanted.request_state));
        };
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let InputRequest::Elicitation(request) = request else {
                let message = "it uses a capability that was not offered; only elicitation is";
                return Err(CallFailure::Unfinished(message.to_owned()));
            };
            let answer = tokio::select! {
                answer = self.routes.ask(context, request.params) => answer,
                () = context.cancellation().cancelled() => return Err(CallFailure::Cancelled),
            };
            responses.insert(key, serde_json::to_value(answer).unwrap_or_default());
        }
        Ok((Some(responses), wanted.request_state))
    }
}

/// Cause of a round without a result.
enum RoundFailure {
    VisitUrls(Vec<ElicitRequestParams>),
    Failed(CallFailure),
}

impl From<CallFailure> for RoundFailure {
    fn from(end: CallFailure) -> Self {
        Self::Failed(end)
    }
}

/// A request that is cancelled at the server when it is dropped: dropping the SDK's handle sends no
/// cancellation.
struct OpenRequest {
    handle: Option<RequestHandle<RoleClient>>,
    id: RequestId,
    reader: MessageReader,
}

impl OpenRequest {
    fn new(handle: RequestHandle<RoleClient>, reader: &MessageReader) -> Self {
        Self { id: handle.id.clone(), handle: Some(handle), reader: reader.clone() }
    }

    async fn answer(&mut self) -> Result<ServerResult, CallFailure> {
        self.raw_answer().await.map_err(|unanswered| match unanswered {
            RoundFailure::Failed(end) => end,
            RoundFailure::VisitUrls(_) => CallFailure::Unfinished("it requires visiting a URL".to_owned()),
        })
    }

    async fn raw_answer(&mut self) -> Result<ServerResult, RoundFailure> {
        let Some(handle) = &mut self.handle else { return Err(CallFailure::Disconnected.into()) };
        let answer = (&mut handle.rx).await;
        self.handle = None;
        match answer {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(ServiceError::McpError(error))) if error.code.0 == URL_ELICITATION_REQUIRED => {
                match elicitation_urls(error.data) {
                    Some(addresses) => Err(RoundFailure::VisitUrls(addresses)),
                    None => {
                        Err(CallFailure::Unfinished("it requires visiting URLs but lists none".to_owned())
                            .into())
                    }
                }
            }
            Ok(Err(error)) => Err(from_service_error(error).into()),
            Err(_dropped) => Err(CallFailure::Disconnected.into()),
        }
    }

    async fn cancel(&mut self, reason: &str) {
        if let Some(handle) = self.handle.take() {
            // A server that does not take it cannot be helped.
            let _ = timeout(CANCEL_WAIT, handle.cancel(Some(reason.to_owned()))).await;
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.reader.forget(&self.id);
        let (Some(handle), Ok(runtime)) = (self.handle.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let reason = Some("the caller is no longer waiting".to_owned());
        let notice =
            CancelledNotification::new(CancelledNotificationParam::new(Some(handle.id.clone()), reason));
        runtime.spawn(async move {
            let _ = timeout(CANCEL_WAIT, handle.peer.send_notification(notice.into())).await;
        });
    }
}

fn elicitation_urls(data: Option<Value>) -> Option<Vec<ElicitRequestParams>> {
    let listed = data?.get("elicitations")?.clone();
    let addresses: Vec<ElicitRequestParams> = serde_json::from_value(listed).ok()?;
    (!addresses.is_empty()).then_some(addresses)
}

/// Error of handing a request to the connection's task. It comes only from a task that has ended: nothing has left.
fn from_queue_error(error: ServiceError) -> CallFailure {
    match error {
        ServiceError::TransportClosed => CallFailure::NotSent("the connection has closed".to_owned()),
        other => CallFailure::NotSent(other.to_string()),
    }
}

/// The SDK's answer to calls that were open when it began a new session (rmcp 3.9, `fail_pending_stream_responses`).
const SESSION_REPLACED: &str = "streamable HTTP session was re-initialized";

fn from_service_error(error: ServiceError) -> CallFailure {
    match error {
        ServiceError::McpError(error) if error.code.0 == UNREADABLE_REPLY => {
            CallFailure::Protocol(error.message.into_owned())
        }
        ServiceError::McpError(error) if error.message.starts_with(SESSION_REPLACED) => {
            CallFailure::Lost(error.message.into_owned())
        }
        ServiceError::McpError(error) => {
            CallFailure::Refused { code: error.code.0, message: error.message.into_owned() }
        }
        ServiceError::TransportSend(error) => {
            match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
                Some(error) => failure_of_post(error),
                // A pipe takes a message piece by piece, and the server reads while it comes.
                None => CallFailure::Lost(transport_error_text(&error)),
            }
        }
        ServiceError::TransportClosed => CallFailure::Disconnected,
        ServiceError::Cancelled { reason } => CallFailure::Protocol(format!(
            "it cancelled the call: {}",
            reason.as_deref().unwrap_or("no reason given")
        )),
        other => CallFailure::Protocol(other.to_string()),
    }
}

/// Text of a transport error, without the names of the types around it.
pub(crate) fn transport_error_text(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => error_chain(error),
        Some(other) => error_chain(other),
        None => error_chain(error.error.as_ref()),
    }
}

/// An error with its causes.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let cause_text = error.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        cause = error.source();
    }
    text
}

/// The calls that wait for an answer, and the routes for notifications about them.
pub(crate) struct CallRoutes {
    server: String,
    secrets: SecretSet,
    /// Open calls, the newest last.
    open_calls: Mutex<Vec<(RequestId, Arc<CallRoute>)>>,
    /// Held while a call is sent and not yet in `open`.
    open_lock: tokio::sync::Mutex<()>,
    list_changes: watch::Sender<u64>,
}

struct CallRoute {
    token: ProgressToken,
    context: ToolContext,
    state: Mutex<RouteState>,
    /// The deadline has moved.
    deadline_moved: Notify,
}

struct RouteState {
    last_activity: Instant,
    /// Number of open questions to a person; the time limit is paused while there are any.
    open_questions: usize,
    progress: f64,
}

impl RouteState {
    fn deadline(&self, idle: Duration) -> Option<Instant> {
        (self.open_questions == 0).then(|| self.last_activity + idle)
    }
}

impl CallRoute {
    fn state(&self) -> MutexGuard<'_, RouteState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the route of a call that has ended: later notifications are dropped.
struct RouteGuard {
    routes: Arc<CallRoutes>,
    id: RequestId,
    route: Arc<CallRoute>,
}

impl std::ops::Deref for RouteGuard {
    type Target = CallRoute;

    fn deref(&self) -> &CallRoute {
        &self.route
    }
}

impl Drop for RouteGuard {
    fn drop(&mut self) {
        self.routes.open_calls().retain(|(id, _)| *id != self.id);
    }
}

impl CallRoutes {
    fn open_calls(&self) -> MutexGuard<'_, Vec<(RequestId, Arc<CallRoute>)>> {
        self.open_calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Route of a question. Over HTTP it comes on the stream of its call. Over stdio nothing identifies its
    /// call: with several calls open, the newest one is as good a guess as any, and the question names the
    /// server.
    fn route_of_question(&self, origin: Option<&InboundStreamOrigin>) -> Option<Arc<CallRoute>> {
        let open = self.open_calls();
        match origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => open.iter().find(|(open, _)| open == id),
            Some(InboundStreamOrigin::Unassociated) | None => open.last(),
        }
        .map(|(_, route)| route.clone())
    }

    async fn ask(&self, context: &ToolContext, question: ElicitRequestParams) -> ElicitResult {
        elicit::ask(&self.server, context, question).await
    }
}

/// Handles the server's notifications and requests.
pub(crate) struct SessionHandler {
    routes: Arc<CallRoutes>,
}

impl SessionHandler {
    pub(crate) fn new(server: &str, secrets: SecretSet) -> Self {
        let (open_calls, open_lock) = (Mutex::default(), tokio::sync::Mutex::default());
        let list_changes = watch::Sender::new(0);
        Self {
            routes: Arc::new(CallRoutes {
                server: server.to_owned(),
                secrets,
                open_calls,
                open_lock,
                list_changes,
            }),
        }
    }
}

impl ClientHandler for SessionHandler {
    /// Questions to a person, by form and by address. No sampling, no roots.
    fn get_info(&self) -> ClientConfig {
        let questions = ElicitationCapability::new()
            .with_form(FormElicitationCapability::new().with_schema_validation(true))
            .with_url(UrlElicitationCapability::new());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(questions);
        let implementation = Implementation::new("throughline", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, implementation).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        question: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        drop(self.routes.open_lock.lock().await);
        let Some(route) = self.routes.route_of_question(context.extensions.get::<InboundStreamOrigin>())
        else {
            // No call to this server is open.
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let _question_guard = QuestionGuard::begin(route.clone());
        tokio::select! {
            answer = self.routes.ask(&route.context, question) => Ok(answer),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        drop(self.routes.open_lock.lock().await);
        let is_same_token =
            |(_, route): &&(RequestId, Arc<CallRoute>)| route.token == progress.progress_token;
        let Some((_, route)) = self.routes.open_calls().iter().find(is_same_token).cloned() else { return };
        {
            let mut state = route.state();
            state.last_activity = Instant::now();
            // Notifications are handled concurrently, and progress only increases.
            if progress.progress < state.progress {
                return;
            }
            state.progress = progress.progress;
        }
        route.deadline_moved.notify_one();
        // JSON has no other numbers, but arithmetic on the way here might make some.
        let finite = |number: f64| Some(number).filter(|number| number.is_finite());
        route.context.report(ToolProgress {
            progress: finite(progress.progress),
            total: progress.total.and_then(finite),
            message: progress.message.map(|message| self.routes.secrets.redact(&message).into_owned()),
        });
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.routes.list_changes.send_modify(|count| *count += 1);
    }
}

/// Pauses the time limit while a person is asked.
struct QuestionGuard(Arc<CallRoute>);

impl QuestionGuard {
    fn begin(route: Arc<CallRoute>) -> Self {
        route.state().open_questions += 1;
        route.deadline_moved.notify_one();
        Self(route)
    }
}

impl Drop for QuestionGuard {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open_questions -= 1;
        state.last_activity = Instant::now();
        drop(state);
        self.0.deadline_moved.notify_one();
    }
}
