//! From a socket to requests: listening, accepting, TLS, time limits and the end.
//!
//! It knows nothing of turns, keys or routes: it is given a router.

mod connection;
mod cut;
mod listener;
#[cfg(feature = "tls-server")]
pub mod tls;

pub use connection::Connection;
pub use cut::{Cut, Tell};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use connection::{Guarded, Transport};
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
use throughline::config::{Auth, ServerLimits, ServerSettings};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

/// What hyper may hold of a request before it is parsed; it refuses less.
const BUFFER_BYTES_MIN: usize = 8 << 10;
/// Streams of one HTTP/2 connection at once.
const HTTP2_STREAMS_MAX: u32 = 128;
/// What a stream of HTTP/2 may hold of a body that its client does not take.
const HTTP2_SEND_BYTES: usize = 64 << 10;
/// How often an HTTP/2 connection is pinged, and how long the answer may take.
const HTTP2_PING: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));
/// How long nothing is accepted when the system has no file or memory left for a connection: as often as this, it is tried
/// again.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// How long connections may take to end once nothing more is to be answered.
const CLOSING_MAX: Duration = Duration::from_secs(2);
/// How long a port may still be held by a process that is dying, as after `kill -9` and a start at once.
pub const BIND_WAIT: Duration = Duration::from_secs(1);
/// Between two attempts.
const BIND_AGAIN: Duration = Duration::from_millis(25);
/// How often the certificate's file is looked at.
#[cfg(feature = "tls-server")]
const CERTIFICATE_EVERY: Duration = Duration::from_secs(1);

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Whoever reaches the address could use everything. R: R4
    #[error(
        "{address} can be reached from elsewhere, and without keys whoever does could use every tool and model"
    )]
    Open {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// Another program listens there.
    #[error("{address} is taken: another program listens there")]
    InUse {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// The system does not let this user listen there.
    #[error("this user may not listen on {address}")]
    Denied {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// The address is not one of this machine.
    #[error("{address} is not an address of this machine")]
    NotHere {
        /// Where it was to listen.
        address: SocketAddr,
    },
    /// Anything else that the system says.
    #[error("cannot listen on {address}: {source}")]
    Io {
        /// Where it was to listen.
        address: SocketAddr,
        /// What the system says.
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
}

impl BindError {
    /// What can be done about it.
    pub fn remedy(&self) -> String {
        match self {
            BindError::Open { .. } => {
                "take `auth = \"off\"` out of [server], or listen on 127.0.0.1".to_owned()
            }
            BindError::InUse { address } => format!(
                "stop that program, or choose another port: --listen {}",
                SocketAddr::new(address.ip(), address.port().wrapping_add(1).max(1_024))
            ),
            BindError::Denied { .. } => {
                "choose a port from 1024 on: --listen 127.0.0.1:8787; for 443, put a proxy in front"
                    .to_owned()
            }
            BindError::NotHere { .. } => {
                "--listen 127.0.0.1:8787 for this machine alone, 0.0.0.0:8787 for every network".to_owned()
            }
            BindError::Io { .. } => "--listen chooses another address".to_owned(),
            #[cfg(feature = "tls-server")]
            BindError::Tls(_) => {
                "`tls` of [server] names a certificate and its key, both PEM files that this user can read"
                    .to_owned()
            }
            #[cfg(not(feature = "tls-server"))]
            BindError::NoTls => {
                "build it with the cargo feature `tls-server`, or put a proxy in front".to_owned()
            }
        }
    }
}

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// What was under way had its time.
    Drained,
    /// Somebody could not wait.
    AtOnce,
}

/// Binds a socket.
#[derive(Debug)]
pub struct Server;

/// A server whose socket listens. Clients may connect, and wait until it serves.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    limits: ServerLimits,
    #[cfg(feature = "tls-server")]
    tls: Option<Arc<tls::Tls>>,
}

impl Server {
    /// Listens, and tries a port that is taken again for [`BIND_WAIT`]. Needs a runtime.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub async fn bind_patiently(settings: &ServerSettings) -> Result<Bound, BindError> {
        let until = tokio::time::Instant::now() + BIND_WAIT;
        loop {
            match Self::bind(settings) {
                Err(BindError::InUse { .. }) if tokio::time::Instant::now() < until => {
                    tokio::time::sleep(BIND_AGAIN).await;
                }
                bound_or_refused => return bound_or_refused,
            }
        }
    }

    /// Listens. Needs a runtime.
    ///
    /// # Errors
    /// The address cannot be had, must not be had without keys, or certificate and key cannot be used.
    pub fn bind(settings: &ServerSettings) -> Result<Bound, BindError> {
        let address = settings.listen;
        if settings.auth == Auth::Off && !address.ip().is_loopback() {
            return Err(BindError::Open { address });
        }
        #[cfg(feature = "tls-server")]
        let tls = settings.tls.as_ref().map(tls::Tls::load).transpose()?.map(Arc::new);
        #[cfg(not(feature = "tls-server"))]
        if settings.tls.is_some() {
            return Err(BindError::NoTls);
        }
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse { address },
            io::ErrorKind::PermissionDenied => BindError::Denied { address },
            io::ErrorKind::AddrNotAvailable => BindError::NotHere { address },
            _ => BindError::Io { address, source },
        };
        let listener = listener::listen(address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Bound {
            listener,
            address,
            limits: settings.limits,
            #[cfg(feature = "tls-server")]
            tls,
        })
    }
}

impl Bound {
    /// Where it listens, with the port that was given.
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

    /// Serves until somebody wishes that it stops: then nothing more is accepted, `drain` runs, and connections end. A second
    /// wish ends everything at once.
    pub async fn serve(
        self,
        app: Router,
        mut wishes: mpsc::Receiver<()>,
        drain: impl Future<Output = ()>,
    ) -> Served {
        let tasks = TaskTracker::new();
        let (closing, at_once) = (CancellationToken::new(), CancellationToken::new());
        let shared = Arc::new(Shared {
            app,
            limits: self.limits,
            draining: Arc::default(),
            closing: closing.clone(),
            at_once: at_once.clone(),
        });
        #[cfg(feature = "tls-server")]
        let refreshing = self.tls.clone().map(|tls| tokio::spawn(refresh(tls)));
        tokio::select! {
            // Once nobody can wish any more, nobody does.
            Some(()) = wishes.recv() => {}
            never = accept(&self, &shared, &tasks) => match never {},
        }
        #[cfg(feature = "tls-server")]
        if let Some(refreshing) = refreshing {
            refreshing.abort();
        }
        shared.draining.store(true, Ordering::Release);
        // From now on the port is free for whoever comes next.
        drop(self.listener);
        tasks.close();
        let drained = async {
            drain.await;
            closing.cancel();
            // A client that keeps its connection open without asking for anything is no reason to stay.
            let _ = tokio::time::timeout(CLOSING_MAX, tasks.wait()).await;
        };
        let served = tokio::select! {
            () = drained => Served::Drained,
            Some(()) = wishes.recv() => Served::AtOnce,
        };
        at_once.cancel();
        tasks.wait().await;
        served
    }
}

/// What all connections need.
struct Shared {
    app: Router,
    limits: ServerLimits,
    /// The server is to stop.
    draining: Arc<AtomicBool>,
    /// Connections end after the answer that they are at.
    closing: CancellationToken,
    /// Connections end.
    at_once: CancellationToken,
}

/// Accepts for ever.
async fn accept(bound: &Bound, shared: &Arc<Shared>, tasks: &TaskTracker) -> Infallible {
    let places = Arc::new(Semaphore::new(bound.limits.connections_max as usize));
    let mut full = false;
    loop {
        // Taken before the connection is: what finds no place waits in the kernel.
        let Ok(place) = places.clone().acquire_owned().await else { std::future::pending().await };
        match bound.listener.accept().await {
            Ok((socket, peer)) => {
                full = false;
                let local = socket.local_addr().unwrap_or(bound.address);
                listener::prepare(&socket);
                let draining = shared.draining.clone();
                let connection = Connection { peer, local, cut: Arc::default(), draining };
                #[cfg(feature = "tls-server")]
                let tls = bound.tls.as_ref().map(|tls| tls.acceptor());
                #[cfg(not(feature = "tls-server"))]
                let tls = None::<std::convert::Infallible>;
                tasks.spawn(attend(socket, tls, connection, shared.clone(), place));
            }
            // The client has gone already.
            Err(error) if is_of_the_client(&error) => {}
            // Out of files or memory: trying again at once would only burn the processor.
            Err(error) => {
                if !full {
                    tracing::warn!(%error, "no connection can be accepted; it is tried again");
                }
                full = true;
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

fn is_of_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(feature = "tls-server")]
type Acceptor = Option<tokio_rustls::TlsAcceptor>;
#[cfg(not(feature = "tls-server"))]
type Acceptor = Option<std::convert::Infallible>;

/// One connection from its first byte to its last.
async fn attend(
    socket: TcpStream,
    tls: Acceptor,
    connection: Connection,
    shared: Arc<Shared>,
    _place: OwnedSemaphorePermit,
) {
    let transport = match tls {
        None => Transport::Plain(socket),
        #[cfg(feature = "tls-server")]
        Some(tls) => {
            match tokio::time::timeout(
                Duration::from_millis(shared.limits.header_ms_max),
                Box::pin(tls.accept(socket)),
            )
            .await
            {
                Ok(Ok(stream)) => Transport::Tls(Box::new(stream)),
                Ok(Err(error)) => {
                    return tracing::debug!(peer = %connection.peer, %error, "no TLS came about");
                }
                Err(_) => return tracing::debug!(peer = %connection.peer, "the TLS handshake took too long"),
            }
        }
        #[cfg(not(feature = "tls-server"))]
        Some(never) => match never {},
    };
    let (cut, is_http2) = (connection.cut.clone(), transport.is_http2());
    let patience = Duration::from_millis(shared.limits.behind_ms_max);
    let (transport, closed) = Guarded::new(transport, cut.clone(), patience);
    let io = TokioIo::new(transport);
    let app = shared.app.clone();
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        connection.cut.begin();
        request.extensions_mut().insert(connection.clone());
        let request: Request = request.map(Body::new);
        // A router is always ready, and its clones are cheap.
        app.clone().call(request)
    });
    // What goes wrong on one connection is its client's affair: nobody is left to tell.
    if is_http2 {
        // On the heap: the task of every connection is as large as the larger one of both.
        let mut served = Box::pin(http2(&shared.limits).serve_connection(io, service));
        tokio::select! {
            biased;
            _ = served.as_mut() => {}
            () = shared.at_once.cancelled() => {}
            () = shared.closing.cancelled() => {
                served.as_mut().graceful_shutdown();
                tokio::select! { _ = served => {}, () = shared.at_once.cancelled() => {} }
            }
        }
    } else {
        let mut served = pin!(http1(&shared.limits).serve_connection(io, service).with_upgrades());
        tokio::select! {
            biased;
            _ = served.as_mut() => {}
            () = shared.at_once.cancelled() => {}
            () = shared.closing.cancelled() => {
                served.as_mut().graceful_shutdown();
                tokio::select! { _ = served => {}, () = shared.at_once.cancelled() => {} }
            }
        }
    }
    // A WebSocket lives on elsewhere; it keeps its place here, and ends with the server.
    tokio::select! {
        _ = closed => {}
        () = shared.at_once.cancelled() => cut.now(),
    }
}

// HTTP/2 only where TLS has agreed on it. To tell the two apart by the first bytes, as hyper-util's `auto` does, has no time
// limit: a client that sends a part of HTTP/2's preface, or nothing, would stay for ever.
fn http1(limits: &ServerLimits) -> hyper::server::conn::http1::Builder {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(limits.header_ms_max))
        .max_buf_size((limits.header_bytes_max as usize).max(BUFFER_BYTES_MIN))
        // A client that closes its sending half counts as gone.
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
        .max_header_list_size(limits.header_bytes_max)
        .max_send_buf_size(HTTP2_SEND_BYTES);
    builder
}

#[cfg(feature = "tls-server")]
async fn refresh(tls: Arc<tls::Tls>) {
    let mut every = tokio::time::interval(CERTIFICATE_EVERY);
    loop {
        every.tick().await;
        if let Err(error) = tls.refresh() {
            tracing::error!(%error, "the certificate has changed and cannot be used; the one before stays");
        }
    }
}
