//! One connection to a server: requests that always end, and what the server says in between, brought to the call that
//! it is about.
//!
//! Wraps every wait of the SDK in a limit of ours: a reply that is lost must not be a call that never ends.

use super::elicit;
use super::listing::TaskOnly;
use crate::context::{Progress, ToolContext};
use crate::secrets::Secrets;
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

/// How often a server may ask for input before it answers (the same in all SDKs of the protocol).
pub const INPUT_ROUNDS_MAX: usize = 10;
/// How long telling a server that a call is cancelled may take.
pub const CANCEL_WAIT: Duration = Duration::from_secs(1);
/// Pause before a call is sent again whose server only wants to be asked once more.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// JSON-RPC code of "visit these addresses first" (2025-11-25).
const URL_ELICITATION_REQUIRED: i32 = -32_042;

/// A connection that has shaken hands.
pub(crate) struct Session {
    peer: Peer<RoleClient>,
    routes: Arc<Routes>,
    /// Fires when the connection is over, whoever ended it.
    closed: CancellationToken,
    end: Mutex<Option<RunningServiceCancellationToken>>,
    pub(crate) task_only: TaskOnly,
}

/// Why a request has no answer that could be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    /// The server answered with an error.
    Refused { code: i32, message: String },
    /// The answer breaks the protocol.
    Protocol(String),
    /// It never reached the server.
    NotSent(String),
    /// The connection ended first.
    Gone,
    /// Neither an answer nor progress for so long.
    Silent(Duration),
    /// We were told to stop, and have told the server.
    Stopped,
}

impl Session {
    pub(crate) fn new(
        service: rmcp::service::RunningService<RoleClient, Handler>,
        task_only: TaskOnly,
    ) -> Arc<Self> {
        let closed = CancellationToken::new();
        let session = Arc::new(Self {
            peer: service.peer().clone(),
            routes: service.service().routes.clone(),
            closed: closed.clone(),
            end: Mutex::new(Some(service.cancellation_token())),
            task_only,
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
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(end) = end {
            end.cancel();
        }
        // Over time or not, there is nothing more to be done here.
        let _ = timeout(limit, self.closed()).await;
    }

    /// What the server says about itself, and which revision is spoken.
    pub(crate) fn protocol(&self) -> Option<ProtocolVersion> {
        Some(self.peer.peer_info()?.protocol_version.clone())
    }

    /// Changes whenever the server says that its tools have changed.
    pub(crate) fn list_changes(&self) -> watch::Receiver<u64> {
        self.routes.list_changes.subscribe()
    }

    /// In the revision without sessions such notices have to be asked for. Ends when the server or the connection ends
    /// them; `false` = it does not send any.
    pub(crate) async fn listen(&self) -> bool {
        let Some(info) = self.peer.peer_info() else { return false };
        let changes = info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed) == Some(true);
        if !changes || info.protocol_version < ProtocolVersion::V_2026_07_28 {
            return false;
        }
        let wish = SubscriptionFilter::builder().tools_list_changed().build();
        let Ok(mut subscription) = self.peer.listen(wish).await else { return false };
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
    ) -> Result<ServerResult, CallEnd> {
        let handle = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let handle = handle.await.map_err(of_service)?;
        let mut open = OpenRequest::new(handle);
        tokio::select! {
            biased;
            answer = open.answer() => answer,
            () = self.closed() => Err(CallEnd::Gone),
            () = tokio::time::sleep(limit) => {
                open.cancel("no answer in time").await;
                Err(CallEnd::Silent(limit))
            }
        }
    }

    /// Calls a tool: with progress to `context`, questions to whoever is asked through it, and `idle` from one sign of
    /// life to the next.
    pub(crate) async fn call(
        &self,
        mut params: CallToolRequestParams,
        context: &ToolContext,
        idle: Duration,
    ) -> Result<CallToolResult, CallEnd> {
        for _round in 0..INPUT_ROUNDS_MAX {
            let answer = self.call_once(params.clone(), context, idle).await;
            match answer {
                Ok(ServerResult::CallToolResult(result)) => return Ok(result),
                Ok(ServerResult::InputRequiredResult(wanted)) => {
                    let input = self.input(wanted, context).await?;
                    (params.input_responses, params.request_state) = input;
                }
                Ok(ServerResult::CreateTaskResult(_)) => {
                    return Err(CallEnd::Protocol(
                        "it made a task of the call, which was not asked for".to_owned(),
                    ));
                }
                Ok(_) => {
                    return Err(CallEnd::Protocol("it answered `tools/call` with something else".to_owned()));
                }
                Err(Unanswered::VisitFirst(addresses)) => {
                    for address in addresses {
                        let answer = self.routes.ask(context, address).await;
                        if answer.action != ElicitationAction::Accept {
                            let message = "it wants an address to be visited first, and that was declined";
                            return Err(CallEnd::Refused {
                                code: URL_ELICITATION_REQUIRED,
                                message: message.to_owned(),
                            });
                        }
                    }
                }
                Err(Unanswered::End(end)) => return Err(end),
            }
        }
        Err(CallEnd::Protocol(format!("it asked for input {INPUT_ROUNDS_MAX} times and gave no answer")))
    }

    async fn call_once(
        &self,
        params: CallToolRequestParams,
        context: &ToolContext,
        idle: Duration,
    ) -> Result<ServerResult, Unanswered> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let (mut open, route) = self.open(request, context).await?;
        loop {
            let deadline = route.state().deadline(idle);
            let silence = async {
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
                    return Err(CallEnd::Stopped.into());
                }
                () = self.closed() => return Err(CallEnd::Gone.into()),
                // Progress, or a question to a person: reckoned anew.
                () = route.alive.notified() => {}
                () = silence => {
                    open.cancel("no answer and no progress in time").await;
                    return Err(CallEnd::Silent(idle).into());
                }
            }
        }
    }

    /// Sends a call. Whatever the server says about it finds its way from the first moment on.
    async fn open(
        &self,
        request: ClientRequest,
        context: &ToolContext,
    ) -> Result<(OpenRequest, RouteGuard), CallEnd> {
        let _opening = self.routes.opening.lock().await;
        let handle = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let handle = handle.await.map_err(of_service)?;
        let route = Arc::new(Route {
            token: handle.progress_token.clone(),
            context: context.clone(),
            state: Mutex::new(RouteState {
                last_life: Instant::now(),
                asking: 0,
                progress: f64::NEG_INFINITY,
            }),
            alive: Notify::new(),
        });
        self.routes.open().push((handle.id.clone(), route.clone()));
        let guard = RouteGuard { routes: self.routes.clone(), id: handle.id.clone(), route };
        Ok((OpenRequest::new(handle), guard))
    }

    /// What a server wants to know before it goes on.
    async fn input(
        &self,
        wanted: InputRequiredResult,
        context: &ToolContext,
    ) -> Result<(Option<InputResponses>, Option<String>), CallEnd> {
        let Some(requests) = wanted.input_requests.filter(|requests| !requests.is_empty()) else {
            tokio::time::sleep(AGAIN_AFTER).await;
            return Ok((None, wanted.request_state));
        };
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let InputRequest::Elicitation(request) = request else {
                let message = "it asks for what was not offered to it: only questions to a person are";
                return Err(CallEnd::Protocol(message.to_owned()));
            };
            let answer = tokio::select! {
                answer = self.routes.ask(context, request.params) => answer,
                () = context.cancellation().cancelled() => return Err(CallEnd::Stopped),
            };
            responses.insert(key, serde_json::to_value(answer).unwrap_or_default());
        }
        Ok((Some(responses), wanted.request_state))
    }
}

/// How one round of a call had no result.
enum Unanswered {
    VisitFirst(Vec<ElicitRequestParams>),
    End(CallEnd),
}

impl From<CallEnd> for Unanswered {
    fn from(end: CallEnd) -> Self {
        Self::End(end)
    }
}

/// A request that is told to the server as cancelled if nobody waits for it any more: dropping the SDK's handle tells
/// it nothing.
// R: T8
struct OpenRequest {
    handle: Option<RequestHandle<RoleClient>>,
}

impl OpenRequest {
    fn new(handle: RequestHandle<RoleClient>) -> Self {
        Self { handle: Some(handle) }
    }

    async fn answer(&mut self) -> Result<ServerResult, CallEnd> {
        self.raw_answer().await.map_err(|unanswered| match unanswered {
            Unanswered::End(end) => end,
            Unanswered::VisitFirst(_) => CallEnd::Protocol("it wants an address to be visited".to_owned()),
        })
    }

    async fn raw_answer(&mut self) -> Result<ServerResult, Unanswered> {
        let Some(handle) = &mut self.handle else { return Err(CallEnd::Gone.into()) };
        let answer = (&mut handle.rx).await;
        self.handle = None;
        match answer {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(ServiceError::McpError(error))) if error.code.0 == URL_ELICITATION_REQUIRED => {
                match addresses(error.data) {
                    Some(addresses) => Err(Unanswered::VisitFirst(addresses)),
                    None => {
                        Err(CallEnd::Protocol("it wants addresses to be visited and names none".to_owned())
                            .into())
                    }
                }
            }
            Ok(Err(error)) => Err(of_service(error).into()),
            Err(_dropped) => Err(CallEnd::Gone.into()),
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
        let (Some(handle), Ok(runtime)) = (self.handle.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let reason = Some("nobody waits for it any more".to_owned());
        let notice =
            CancelledNotification::new(CancelledNotificationParam::new(Some(handle.id.clone()), reason));
        runtime.spawn(async move {
            let _ = timeout(CANCEL_WAIT, handle.peer.send_notification(notice.into())).await;
        });
    }
}

fn addresses(data: Option<Value>) -> Option<Vec<ElicitRequestParams>> {
    let listed = data?.get("elicitations")?.clone();
    let addresses: Vec<ElicitRequestParams> = serde_json::from_value(listed).ok()?;
    (!addresses.is_empty()).then_some(addresses)
}

fn of_service(error: ServiceError) -> CallEnd {
    match error {
        ServiceError::McpError(error) => {
            CallEnd::Refused { code: error.code.0, message: error.message.into_owned() }
        }
        ServiceError::TransportSend(error) => CallEnd::NotSent(of_transport(&error)),
        ServiceError::TransportClosed => CallEnd::Gone,
        ServiceError::Cancelled { reason } => CallEnd::Protocol(format!(
            "it cancelled the call: {}",
            reason.as_deref().unwrap_or("no reason given")
        )),
        other => CallEnd::Protocol(other.to_string()),
    }
}

/// What a transport says, without the names of types around it.
pub(crate) fn of_transport(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => causes(error),
        Some(other) => causes(other),
        None => causes(error.error.as_ref()),
    }
}

/// An error with its causes.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

/// The calls that wait for an answer, and where what the server says about them goes.
pub(crate) struct Routes {
    server: String,
    secrets: Secrets,
    /// The newest last.
    open: Mutex<Vec<(RequestId, Arc<Route>)>>,
    /// Held while a call is sent and not yet in `open`.
    opening: tokio::sync::Mutex<()>,
    list_changes: watch::Sender<u64>,
}

struct Route {
    token: ProgressToken,
    context: ToolContext,
    state: Mutex<RouteState>,
    /// The deadline has moved.
    alive: Notify,
}

struct RouteState {
    last_life: Instant,
    /// Questions to a person that are open: time stands still.
    asking: usize,
    progress: f64,
}

impl RouteState {
    fn deadline(&self, idle: Duration) -> Option<Instant> {
        (self.asking == 0).then(|| self.last_life + idle)
    }
}

impl Route {
    fn state(&self) -> MutexGuard<'_, RouteState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that has ended hears nothing more: what comes late is dropped.
struct RouteGuard {
    routes: Arc<Routes>,
    id: RequestId,
    route: Arc<Route>,
}

impl std::ops::Deref for RouteGuard {
    type Target = Route;

    fn deref(&self) -> &Route {
        &self.route
    }
}

impl Drop for RouteGuard {
    fn drop(&mut self) {
        self.routes.open().retain(|(id, _)| *id != self.id);
    }
}

impl Routes {
    fn open(&self) -> MutexGuard<'_, Vec<(RequestId, Arc<Route>)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Over HTTP a question comes on the stream of its call. Over stdio nothing says whose it is: with several calls
    /// open, that of the newest one is as good a guess as any, and the question names the server.
    fn asked_by(&self, origin: Option<&InboundStreamOrigin>) -> Option<Arc<Route>> {
        let open = self.open();
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

/// Hears what a server says by itself.
pub(crate) struct Handler {
    routes: Arc<Routes>,
}

impl Handler {
    pub(crate) fn new(server: &str, secrets: Secrets) -> Self {
        let (open, opening) = (Mutex::default(), tokio::sync::Mutex::default());
        let list_changes = watch::Sender::new(0);
        Self { routes: Arc::new(Routes { server: server.to_owned(), secrets, open, opening, list_changes }) }
    }
}

impl ClientHandler for Handler {
    /// Questions to a person, by form and by address. No sampling, no roots. R: R4
    fn get_info(&self) -> ClientConfig {
        let questions = ElicitationCapability::new()
            .with_form(FormElicitationCapability::new().with_schema_validation(true))
            .with_url(UrlElicitationCapability::new());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(questions);
        let us = Implementation::new("throughline", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, us).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        question: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        drop(self.routes.opening.lock().await);
        let Some(route) = self.routes.asked_by(context.extensions.get::<InboundStreamOrigin>()) else {
            // Nobody has asked this server for anything.
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let _asking = Asking::begin(route.clone());
        tokio::select! {
            answer = self.routes.ask(&route.context, question) => Ok(answer),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        drop(self.routes.opening.lock().await);
        let is_meant = |(_, route): &&(RequestId, Arc<Route>)| route.token == progress.progress_token;
        let Some((_, route)) = self.routes.open().iter().find(is_meant).cloned() else { return };
        {
            let mut state = route.state();
            state.last_life = Instant::now();
            // Notices are handled beside each other, and only go forward.
            if progress.progress < state.progress {
                return;
            }
            state.progress = progress.progress;
        }
        route.alive.notify_one();
        // JSON has no other numbers, but arithmetic on the way here might make some.
        let finite = |number: f64| Some(number).filter(|number| number.is_finite());
        route.context.report(Progress {
            progress: finite(progress.progress),
            total: progress.total.and_then(finite),
            message: progress.message.map(|message| self.routes.secrets.redact(&message).into_owned()),
        });
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.routes.list_changes.send_modify(|count| *count += 1);
    }
}

/// A person is being asked; the server has time.
struct Asking(Arc<Route>);

impl Asking {
    fn begin(route: Arc<Route>) -> Self {
        route.state().asking += 1;
        route.alive.notify_one();
        Self(route)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.asking -= 1;
        state.last_life = Instant::now();
        drop(state);
        self.0.alive.notify_one();
    }
}
