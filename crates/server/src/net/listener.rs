//! The listening socket and the options of every socket that it gives.

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Connections that wait in the kernel for being accepted.
const BACKLOG: i32 = 1_024;
/// Send buffer of the kernel for one client. With the default the kernel buffers megabytes, and the server learns
/// minutes later that a viewer has left (measured: 395 MB for 100 such clients, 28 MB with these options).
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// Unsent part of that buffer at which a socket counts as full.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 16 << 10;
/// Timeout for unacknowledged bytes, after which the kernel drops the connection.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
/// Keep-alive: silence after which the kernel probes the peer, the interval and the number of probes.
const KEEP_ALIVE: TcpKeepalive = TcpKeepalive::new();
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(30);
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TRIES: u32 = 3;

/// Listens. Needs a runtime.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // So that a restart need not wait for the connections before it. On Windows it would let others share the port.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    // Accepted sockets inherit it, and the window is chosen when the connection begins.
    let _ = socket.set_send_buffer_size(SEND_BUFFER_BYTES);
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Sets the options of an accepted socket. An option that this system lacks is no reason to refuse a client.
pub(super) fn prepare(socket: &TcpStream) {
    // Each event is one small write: without it, Nagle and delayed acknowledgments make steps of 40 ms.
    let _ = socket.set_nodelay(true);
    let socket = SockRef::from(socket);
    let keep_alive = KEEP_ALIVE.with_time(KEEP_ALIVE_AFTER);
    #[cfg(any(target_os = "linux", target_os = "macos", target_os = "windows"))]
    let keep_alive = keep_alive.with_interval(KEEP_ALIVE_EVERY).with_retries(KEEP_ALIVE_TRIES);
    let _ = socket.set_tcp_keepalive(&keep_alive);
    #[cfg(target_os = "linux")]
    {
        let _ = socket.set_send_buffer_size(SEND_BUFFER_BYTES);
        let _ = socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        let _ = socket.set_tcp_notsent_lowat(UNSENT_BYTES);
    }
}
