//! One connection: its properties, and the transport of its bytes.

use super::canceller::ConnectionCanceller;
use socket2::SockRef;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// Connection of a request, in the request's extensions.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionInfo {
    /// Address of the peer: the proxy's, if there is one in front.
    pub peer: SocketAddr,
    /// The address that was dialled.
    pub local: SocketAddr,
    /// Closes the connection immediately, with a reset: data that the kernel still holds for a client that
    /// does not read are discarded. Applies to a WebSocket, too.
    pub canceller: Arc<ConnectionCanceller>,
    /// Set once the server is to stop: what is under way may end, and nothing new should be sent here.
    pub(crate) draining: Arc<AtomicBool>,
}

impl ConnectionInfo {
    /// True while the server is stopping.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }
}

/// Bytes as they are, or TLS.
pub(crate) enum ClientTransport {
    Plain(TcpStream),
    #[cfg(feature = "tls-server")]
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>),
}

impl ClientTransport {
    fn socket(&self) -> &TcpStream {
        match self {
            ClientTransport::Plain(socket) => socket,
            #[cfg(feature = "tls-server")]
            ClientTransport::Tls(stream) => stream.get_ref().0,
        }
    }

    /// True if client and server negotiated HTTP/2, which requires TLS.
    pub(crate) fn is_http2(&self) -> bool {
        match self {
            ClientTransport::Plain(_) => false,
            #[cfg(feature = "tls-server")]
            ClientTransport::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }
}

/// A transport that ends when it is cut. How long a write waits is for the watchdog of the viewers to judge.
pub(crate) struct CancellableStream {
    transport: ClientTransport,
    canceller: Arc<ConnectionCanceller>,
    /// Several responses share it, so bytes read of one do not indicate progress of another.
    is_multiplexed: bool,
    /// Dropped with the transport, also after an upgrade.
    _closed: oneshot::Sender<Infallible>,
}

impl CancellableStream {
    /// The receiver ends when the transport is closed.
    pub(crate) fn new(
        transport: ClientTransport,
        canceller: Arc<ConnectionCanceller>,
    ) -> (Self, oneshot::Receiver<Infallible>) {
        let (_closed, closed) = oneshot::channel();
        let is_multiplexed = transport.is_http2();
        (Self { transport, canceller, is_multiplexed, _closed }, closed)
    }

    /// Makes the close a reset. Otherwise the kernel would retain unread data and try to deliver them.
    fn discard_unsent(&self) {
        let _ = SockRef::from(self.transport.socket()).set_linger(Some(Duration::ZERO));
    }

    fn reset<T>(&self) -> Poll<io::Result<T>> {
        self.discard_unsent();
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }

    /// As [`Self::poll_unless_cancelled`], for a write, whose bytes are counted.
    fn poll_written(&self, polled: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &polled
            && !self.is_multiplexed
        {
            self.canceller.add_bytes_written(*bytes);
        }
        self.poll_unless_cancelled(polled, cx)
    }

    /// Polls an operation of the writing half unless the connection was cancelled.
    fn poll_unless_cancelled<T>(
        &self,
        polled: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.canceller.mark_written();
            return polled;
        }
        self.canceller.mark_write_pending();
        if self.canceller.poll_write_cancelled(cx).is_ready() { self.reset() } else { polled }
    }
}

impl Drop for CancellableStream {
    fn drop(&mut self) {
        // Who serves it may have let go of it without asking once more.
        if self.canceller.is_cancelled() {
            self.discard_unsent();
        }
    }
}

impl AsyncRead for CancellableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.canceller.is_cancelled() {
            return self.reset();
        }
        let polled = match &mut self.transport {
            ClientTransport::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            #[cfg(feature = "tls-server")]
            ClientTransport::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        };
        if polled.is_pending() && self.canceller.poll_read_cancelled(cx).is_ready() {
            return self.reset();
        }
        polled
    }
}

impl AsyncWrite for CancellableStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.canceller.is_cancelled() {
            return self.reset();
        }
        let polled = match &mut self.transport {
            ClientTransport::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            #[cfg(feature = "tls-server")]
            ClientTransport::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        };
        self.poll_written(polled, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.canceller.is_cancelled() {
            return self.reset();
        }
        let polled = match &mut self.transport {
            ClientTransport::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            #[cfg(feature = "tls-server")]
            ClientTransport::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        };
        self.poll_written(polled, cx)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            ClientTransport::Plain(socket) => socket.is_write_vectored(),
            #[cfg(feature = "tls-server")]
            ClientTransport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.canceller.is_cancelled() {
            return self.reset();
        }
        let polled = match &mut self.transport {
            ClientTransport::Plain(socket) => Pin::new(socket).poll_flush(cx),
            #[cfg(feature = "tls-server")]
            ClientTransport::Tls(stream) => Pin::new(stream).poll_flush(cx),
        };
        self.poll_unless_cancelled(polled, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.canceller.is_cancelled() {
            return self.reset();
        }
        let polled = match &mut self.transport {
            ClientTransport::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            #[cfg(feature = "tls-server")]
            ClientTransport::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        };
        self.poll_unless_cancelled(polled, cx)
    }
}
