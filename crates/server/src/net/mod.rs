//! From a socket to requests: listening, accepting, TLS, timeouts and shutdown.
//!
//! This module has no notion of turns, keys or routes: it is given a router.

mod canceller;
mod connection;
mod listener;
#[cfg(feature = "tls-server")]
pub(crate) mod tls;

pub(crate) use canceller::ConnectionCanceller;
pub(crate) use connection::ConnectionInfo;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use connection::{CancellableStream, ClientTransport};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use throughline::config::{AuthMode, ServerLimits, ServerSettings};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

/// Buffer of hyper for an unparsed request; hyper refuses smaller ones.
const BUFFER_BYTES_MIN: usize = 8 << 10;
/// Maximum number of concurrent streams of an HTTP/2 connection.
const HTTP2_STREAMS_MAX: u32 = 128;
/// Receive window of an HTTP/2 stream. Together the windows fit into the connection's window, so that an
/// unread body does not block the others.
const HTTP2_STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// Send buffer of one HTTP/2 stream.
const HTTP2_SEND_BYTES: usize = 64 << 10;
/// Interval of HTTP/2 pings, and timeout for the response.
const HTTP2_PING: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));
/// Retry interval for accepting connections while the system has no file or memory left for one.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Timeout for closing connections once all responses are sent.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for which binding a port is retried that a dying process still holds, as when a server is killed and started
/// again.
pub const BIND_RETRY_FOR: Duration = Duration::from_secs(1);
/// Between two attempts.
const BIND_RETRY_INTERVAL: Duration = Duration::from_millis(25);
/// Interval for checking the certificate's file for changes.
#[cfg(feature = "tls-server")]
const CERTIFICATE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Reason why the server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The address is reachable from other machines, and the server has no keys.
    #[error(
        "listening on {address} without API keys would let anyone who can reach it use every tool and model"
    )]
    PublicWithoutKeys {
        /// Address to listen on.
        address: SocketAddr,
    },
    /// Another program listens on the address.
    #[error("{address} is in use by another program")]
    InUse {
        /// Address to listen on.
        address: SocketAddr,
    },
    /// The system does not let this user listen there.
    #[error("permission denied: this user cannot listen on {address}")]
    Denied {
        /// Address to listen on.
        address: SocketAddr,
    },
    /// The address is not one of this machine.
    #[error("{address} is not an address of this machine")]
    NotLocal {
        /// Address to listen on.
        address: SocketAddr,
    },
    /// The secret for the provider at which people sign in.
    #[error("the environment variable {variable}, which [server.oidc] names for its secret, is not set")]
    NoClientSecret { variable: String },
    /// Any other error of the system.
    #[error("cannot listen on {address}: {source}")]
    Io {
        /// Address to listen on.
        address: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// Certificate or key.
    #[cfg(feature = "tls-server")]
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
    /// The program was built without TLS.
    #[cfg(not(feature = "tls-server"))]
    #[error("this program was built without TLS")]
    NoTls,
    /// The program was built without OpenID Connect.
    #[cfg(not(feature = "oidc"))]
    #[error("[server.oidc] requires OpenID Connect, which this program was built without")]
    NoOidc,
}

impl BindError {
    pub fn remedy(&self) -> String {
        match self {
            BindError::NoClientSecret { variable } => {
                format!("set {variable} to the secret that the provider gave for this server")
            }
            BindError::PublicWithoutKeys { .. } => {
                "remove `auth = \"off\"` from [server], or listen on 127.0.0.1".to_owned()
            }
            BindError::InUse { address } => format!(
                "stop that program, or choose another port: --listen {}",
                SocketAddr::new(address.ip(), address.port().wrapping_add(1).max(1_024))
            ),
            BindError::Denied { .. } => {
                "choose a port of 1024 or higher: --listen 127.0.0.1:8787; for port 443, use a reverse proxy"
                    .to_owned()
            }
            BindError::NotLocal { .. } => {
                "use --listen 127.0.0.1:8787 for this machine only, or 0.0.0.0:8787 for all networks"
                    .to_owned()
            }
            BindError::Io { .. } => "choose another address with --listen".to_owned(),
            #[cfg(feature = "tls-server")]
            BindError::Tls(_) => {
                "set `tls` of [server] to a certificate and its key, both PEM files that this user can read"
                    .to_owned()
            }
            #[cfg(not(feature = "tls-server"))]
            BindError::NoTls => {
                "build it with the cargo feature `tls-server`, or use a reverse proxy".to_owned()
            }
            #[cfg(not(feature = "oidc"))]
            BindError::NoOidc => "build with the feature `oidc`, or remove [server.oidc]".to_owned(),
        }
    }
}

/// Result of serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeOutcome {
    /// Open requests were given their time.
    Drained,
    /// A second signal aborted the drain.
    Aborted,
}

/// Binds a socket.
#[derive(Debug)]
pub struct HttpServer;

/// A server whose socket listens. Clients may connect, and wait until it serves.
pub struct BoundServer {
    listener: TcpListener,
    address: SocketAddr,
    limits: ServerLimits,
    #[cfg(feature = "tls-server")]
    tls: Option<Arc<tls::TlsReloader>>,
}

impl HttpServer {
    /// Listens, and tries a port that is taken again for [`BIND_RETRY_FOR`]. Needs a runtime.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub async fn bind_with_retry(settings: &ServerSettings) -> Result<BoundServer, BindError> {
        let deadline = tokio::time::Instant::now() + BIND_RETRY_FOR;
        loop {
            match Self::bind(settings) {
                Err(BindError::InUse { .. }) if tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(BIND_RETRY_INTERVAL).await;
                }
                bound_or_refused => return bound_or_refused,
            }
        }
    }

    /// Listens. Needs a runtime.
    ///
    /// # Errors
    /// The address is not available, must not be used without keys, or certificate and key cannot be used.
    pub fn bind(settings: &ServerSettings) -> Result<BoundServer, BindError> {
        let address = settings.listen;
        if settings.auth == AuthMode::Off && !address.ip().is_loopback() {
            return Err(BindError::PublicWithoutKeys { address });
        }
        #[cfg(feature = "tls-server")]
        let tls = settings.tls.as_ref().map(tls::TlsReloader::load).transpose()?.map(Arc::new);
        #[cfg(not(feature = "tls-server"))]
        if settings.tls.is_some() {
            return Err(BindError::NoTls);
        }
        if let Some(variable) = settings.oidc.as_ref().and_then(|oidc| oidc.missing_secret.clone()) {
            return Err(BindError::NoClientSecret { variable });
        }
        #[cfg(not(feature = "oidc"))]
        if settings.oidc.is_some() {
            return Err(BindError::NoOidc);
        }
        let bind_error = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse { address },
            io::ErrorKind::PermissionDenied => BindError::Denied { address },
            io::ErrorKind::AddrNotAvailable => BindError::NotLocal { address },
            _ => BindError::Io { address, source },
        };
        let listener = listener::listen(address).map_err(bind_error)?;
        let address = listener.local_addr().map_err(bind_error)?;
        Ok(BoundServer {
            listener,
            address,
            limits: settings.limits,
            #[cfg(feature = "tls-server")]
            tls,
        })
    }
}

impl BoundServer {
    /// Address of the listener, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        #[cfg(feature = "tls-server")]
        if self.tls.is_some() {
            return "https";
        }
        "http"
    }

    /// Serves until a shutdown signal: then nothing more is accepted, `drain` runs, and connections end. A
    /// second signal ends everything immediately.
    pub async fn serve(
        self,
        app: Router,
        mut shutdown_signals: mpsc::Receiver<()>,
        drain: impl Future<Output = ()>,
    ) -> ServeOutcome {
        let tasks = TaskTracker::new();
        let (closing, abort) = (CancellationToken::new(), CancellationToken::new());
        let context = Arc::new(ServeContext {
            app,
            limits: self.limits,
            draining: Arc::default(),
            closing: closing.clone(),
            abort: abort.clone(),
        });
        #[cfg(feature = "tls-server")]
        let refreshing = self.tls.clone().map(|tls| tokio::spawn(refresh_certificates(tls)));
        tokio::select! {
            // A closed channel sends no signal.
            Some(()) = shutdown_signals.recv() => {}
            never = accept_loop(&self, &context, &tasks) => match never {},
        }
        #[cfg(feature = "tls-server")]
        if let Some(refreshing) = refreshing {
            refreshing.abort();
        }
        context.draining.store(true, Ordering::Release);
        // Releases the port for the next server.
        drop(self.listener);
        tasks.close();
        let drained = async {
            drain.await;
            closing.cancel();
            // A client that keeps its connection open without asking for anything is no reason to stay.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, tasks.wait()).await;
        };
        let outcome = tokio::select! {
            () = drained => ServeOutcome::Drained,
            Some(()) = shutdown_signals.recv() => ServeOutcome::Aborted,
        };
        abort.cancel();
        tasks.wait().await;
        outcome
    }
}

/// Context that all connections share.
struct ServeContext {
    app: Router,
    limits: ServerLimits,
    /// The server is to stop.
    draining: Arc<AtomicBool>,
    /// Connections end after the answer that they are at.
    closing: CancellationToken,
    /// Connections end.
    abort: CancellationToken,
}

/// Accepts connections in an endless loop.
async fn accept_loop(bound: &BoundServer, context: &Arc<ServeContext>, tasks: &TaskTracker) -> Infallible {
    let permits = Arc::new(Semaphore::new(bound.limits.connections_max as usize));
    let mut full = false;
    loop {
        // Acquired before the connection is accepted: connections over the limit wait in the kernel.
        let Ok(permit) = permits.clone().acquire_owned().await else { std::future::pending().await };
        match bound.listener.accept().await {
            Ok((socket, peer)) => {
                full = false;
                let local = socket.local_addr().unwrap_or(bound.address);
                listener::prepare(&socket);
                let draining = context.draining.clone();
                let connection = ConnectionInfo { peer, local, canceller: Arc::default(), draining };
                #[cfg(feature = "tls-server")]
                let tls = bound.tls.as_ref().map(|tls| tls.acceptor());
                #[cfg(not(feature = "tls-server"))]
                let tls = None::<std::convert::Infallible>;
                tasks.spawn(serve_connection(socket, tls, connection, context.clone(), permit));
            }
            // The client has already disconnected.
            Err(error) if is_client_error(&error) => {}
            // Out of files or memory: an immediate retry would only use CPU time.
            Err(error) => {
                if !full {
                    tracing::warn!(%error, "cannot accept connections; retrying");
                }
                full = true;
                tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
            }
        }
    }
}

fn is_client_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(feature = "tls-server")]
type OptionalTlsAcceptor = Option<tokio_rustls::TlsAcceptor>;
#[cfg(not(feature = "tls-server"))]
type OptionalTlsAcceptor = Option<std::convert::Infallible>;

/// Serves one connection to its end.
async fn serve_connection(
    socket: TcpStream,
    tls: OptionalTlsAcceptor,
    connection: ConnectionInfo,
    context: Arc<ServeContext>,
    _permit: OwnedSemaphorePermit,
) {
    let transport = match tls {
        None => ClientTransport::Plain(socket),
        #[cfg(feature = "tls-server")]
        Some(tls) => {
            match tokio::time::timeout(
                Duration::from_millis(context.limits.header_ms_max),
                Box::pin(tls.accept(socket)),
            )
            .await
            {
                Ok(Ok(stream)) => ClientTransport::Tls(Box::new(stream)),
                Ok(Err(error)) => {
                    return tracing::debug!(peer = %connection.peer, %error, "TLS handshake failed");
                }
                Err(_) => return tracing::debug!(peer = %connection.peer, "TLS handshake timed out"),
            }
        }
        #[cfg(not(feature = "tls-server"))]
        Some(never) => match never {},
    };
    let (canceller, is_http2) = (connection.canceller.clone(), transport.is_http2());
    let (transport, closed) = CancellableStream::new(transport, canceller.clone());
    let io = TokioIo::new(transport);
    let app = context.app.clone();
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        connection.canceller.begin_request();
        request.extensions_mut().insert(connection.clone());
        let request: Request = request.map(Body::new);
        // A router is always ready, and its clones are cheap.
        app.clone().call(request)
    });
    // An error on one connection concerns its client only, which has disconnected.
    if is_http2 {
        // On the heap: the task of every connection is as large as the larger one of both.
        let mut connection_future = Box::pin(http2(&context.limits).serve_connection(io, service));
        tokio::select! {
            biased;
            _ = connection_future.as_mut() => {}
            () = context.abort.cancelled() => {}
            () = context.closing.cancelled() => {
                connection_future.as_mut().graceful_shutdown();
                tokio::select! { _ = connection_future => {}, () = context.abort.cancelled() => {} }
            }
        }
    } else {
        let mut connection_future =
            pin!(http1(&context.limits).serve_connection(io, service).with_upgrades());
        tokio::select! {
            biased;
            _ = connection_future.as_mut() => {}
            () = context.abort.cancelled() => {}
            () = context.closing.cancelled() => {
                connection_future.as_mut().graceful_shutdown();
                tokio::select! { _ = connection_future => {}, () = context.abort.cancelled() => {} }
            }
        }
    }
    // An upgraded WebSocket is served by another task; its permit is held here, and it ends with the server.
    tokio::select! {
        _ = closed => {}
        () = context.abort.cancelled() => { canceller.cancel(); }
    }
}

// HTTP/2 only where TLS has negotiated it. Detecting it by the first bytes, as hyper-util's `auto` does, has
// no timeout: a client that sends a part of HTTP/2's preface, or nothing, would stay connected without limit.
fn http1(limits: &ServerLimits) -> hyper::server::conn::http1::Builder {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(limits.header_ms_max))
        .max_buf_size((limits.header_bytes_max as usize).max(BUFFER_BYTES_MIN))
        // A client that closes its sending half counts as disconnected.
        .half_close(false);
    builder
}

fn http2(limits: &ServerLimits) -> hyper::server::conn::http2::Builder<TokioExecutor> {
    let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(HTTP2_PING.0)
        .keep_alive_timeout(HTTP2_PING.1)
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(HTTP2_STREAMS_MAX * HTTP2_STREAM_WINDOW_BYTES)
        .max_header_list_size(limits.header_bytes_max)
        .max_send_buf_size(HTTP2_SEND_BYTES);
    builder
}

#[cfg(feature = "tls-server")]
async fn refresh_certificates(tls: Arc<tls::TlsReloader>) {
    let mut every = tokio::time::interval(CERTIFICATE_CHECK_INTERVAL);
    loop {
        every.tick().await;
        if let Err(error) = tls.refresh() {
            tracing::error!(%error, "cannot use the changed certificate; keeping the previous one");
        }
    }
}
