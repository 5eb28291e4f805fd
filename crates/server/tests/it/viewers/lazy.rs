//! Viewers that do not read: they are disconnected, lose no events, and slow no other viewer.

use super::{By, View, fold, log, seq};
use crate::support::{PATIENCE, TestServer, eventually};
use serde_json::{Value, json};
use throughline::config::ServerLimits;
use throughline_testkit::{ModelScript, ReplyPace, ScriptMove, ScriptQueue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};

const STALL_MS_MAX: u64 = 1_500;

/// Bytes that the kernel holds for a client, so that little is on its way to who takes nothing.
const TINY: u32 = 4 << 10;

/// A reply larger than the buffers of kernel and connection, in many events.
fn long() -> ScriptQueue {
    let pace = ReplyPace { chunk_chars: Some(2_000), ..ReplyPace::default() };
    let script = ModelScript {
        moves: vec![ScriptMove::Say("a few more words ".repeat(150_000).into())],
        ..ModelScript::new()
    };
    ScriptQueue::new([script.with_pace(pace)])
}

async fn connect(server: &TestServer, buffer: u32) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(buffer).unwrap();
    socket.connect(server.address).await.unwrap()
}

/// A frame as a client sends it, with a mask that changes nothing.
fn text_frame(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).ok().filter(|length| *length < 126).expect("a short one");
    [&[0x81, 0x80 | length, 0, 0, 0, 0][..], text.as_bytes()].concat()
}

/// Requests the events, and reads none of them.
async fn begin_to_look(server: &TestServer, turn: &str, by: By, buffer: u32) -> TcpStream {
    let mut socket = connect(server, buffer).await;
    let (path, more) = match by {
        By::Socket => (
            "/v1/ws".to_owned(),
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        ),
        _ => (format!("/v1/turns/{turn}/events"), ""),
    };
    let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nx-test-user: ada\r\n{more}\r\n", server.address);
    socket.write_all(head.as_bytes()).await.unwrap();
    if by == By::Socket {
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(socket.read_u8().await.unwrap());
        }
        let subscribe = json!({"op": "subscribe", "turn_id": turn}).to_string();
        socket.write_all(&text_frame(&subscribe)).await.unwrap();
    }
    socket
}

/// Whole events among bytes that break off somewhere.
fn events_in(bytes: &[u8], by: By) -> Vec<Value> {
    let mut events = Vec::new();
    if by == By::Socket {
        let mut rest = bytes;
        while let [_, length, ..] = rest {
            let (length, head) = match length & 0x7f {
                126 if rest.len() >= 4 => (usize::from(u16::from_be_bytes([rest[2], rest[3]])), 4),
                126 | 127 => break,
                length => (usize::from(length), 2),
            };
            let Some(payload) = rest.get(head..head + length) else { break };
            events
                .extend(serde_json::from_slice::<Value>(payload).ok().filter(|event| event["seq"].is_u64()));
            rest = &rest[head + length..];
        }
        return events;
    }
    // Chunks of a body: a frame split by a chunk header is skipped, and so is the rest.
    let text = String::from_utf8_lossy(bytes);
    for line in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let Ok(event) = serde_json::from_str::<Value>(line) else { break };
        events.push(event);
    }
    events
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_viewer_is_cut_and_resumes_without_slowing_the_turn() {
    for by in [By::Query, By::Socket] {
        let limits = ServerLimits { viewer_stall_ms_max: STALL_MS_MAX, ..ServerLimits::default() };
        let server = TestServer::start_with(long(), |builder| builder, limits).await;
        let turn = server.say("Hi").await;
        let mut lazy = begin_to_look(&server, &turn, by, TINY).await;
        // Its first bytes are there, so it has its seat; from now on it takes nothing.
        lazy.readable().await.unwrap();
        let began = Instant::now();
        // Another viewer sees the whole turn in the meantime.
        let whole = timeout(PATIENCE, log(&server, &turn)).await.expect("the turn is not held up");
        let end = whole.last().unwrap();
        assert_eq!((&end["type"], &end["status"]), (&json!("stream_end"), &json!("completed")), "{end}");

        // A reset, which the kernel reports without a read.
        eventually(&format!("by {by:?} it is cut"), async || lazy.take_error().unwrap().is_some()).await;
        assert!(began.elapsed().as_millis() >= u128::from(STALL_MS_MAX) / 2, "not before its time");
        let mut taken = Vec::new();
        let end = lazy.read_to_end(&mut taken).await;
        let seen = events_in(&taken, by);
        assert!(end.is_err() || seen.len() < whole.len(), "a reset, not an end: {} bytes", taken.len());
        assert!(seen.len() < whole.len(), "it has not got everything");
        let mut joined = seen.clone();
        joined.extend(View::connect_after(&server, &turn, by, seen.last().map_or(0, seq)).await.rest().await);
        // Who was held up gets neighbors joined; what they add up to is the same.
        assert_eq!(fold(&joined), fold(&whole), "by {by:?}");
        assert!(joined.windows(2).all(|pair| seq(&pair[0]) < seq(&pair[1])), "each once and in order");
    }
}

/// Connections of the server that still wait for their clients, as the kernel sees them.
#[cfg(target_os = "linux")]
fn waiting(server: &TestServer) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port = format!(":{:04X}", server.address.port());
    let waits = |line: &&str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        matches!(columns[..], [_, local, _, _, queues, ..]
            if local.ends_with(&port) && !queues.starts_with("00000000:"))
    };
    table.lines().skip(1).filter(waits).count()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_clients_that_never_read_are_closed() {
    // Of some of these turns everything has been handed to the connection when it is full, of some a part, of some nothing.
    let limits = ServerLimits {
        viewer_stall_ms_max: STALL_MS_MAX,
        message_bytes_max: 3 << 20,
        turns_per_key_max: 100,
        ..ServerLimits::default()
    };
    let model = ScriptQueue::new((0..48).map(|_| ModelScript::new().say("Short.")));
    let server = TestServer::start_with(model, |builder| builder, limits).await;
    let mut lazies = Vec::new();
    for kib in (8..392).step_by(8) {
        let turn = server.say(&"a few more words".repeat(kib * 64)).await;
        log(&server, &turn).await;
        let mut lazy = begin_to_look(&server, &turn, By::Query, TINY).await;
        if kib % 16 == 0 {
            // Another request, whose answer waits until the first one is read.
            let head = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
            lazy.write_all(head.as_bytes()).await.unwrap();
        }
        lazies.push(lazy);
    }
    for lazy in &lazies {
        lazy.readable().await.unwrap();
    }
    eventually("no connection waits", async || waiting(&server) == 0).await;
    let cut = lazies.iter().filter(|lazy| lazy.take_error().unwrap().is_some()).count();
    assert!(cut > 5 && cut < lazies.len(), "{cut} of {} were cut", lazies.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_viewer_is_not_cut() {
    // Longer than a busy machine leaves a client without a turn; the clock's own part is in `watchdog/tests.rs`.
    const LONG_STALL_MS_MAX: u64 = 6_000;
    let limits = ServerLimits {
        viewer_stall_ms_max: LONG_STALL_MS_MAX,
        message_bytes_max: 4 << 20,
        ..ServerLimits::default()
    };
    // One large event, which lasts longer than a viewer may take nothing.
    let model = ScriptQueue::new([ModelScript::new().say("Short.")]);
    let server = &TestServer::start_with(model, |builder| builder, limits).await;
    let turn = &server.say(&"a few more words ".repeat(220_000)).await;
    log(server, turn).await;
    let both = [By::Query, By::Socket].map(|by| async move {
        // A kernel with a tiny buffer drops what does not fit, and gets it again only after a while.
        let mut slow = begin_to_look(server, turn, by, 64 << 10).await;
        let (began, mut taken) = (Instant::now(), 0);
        while began.elapsed().as_millis() < u128::from(LONG_STALL_MS_MAX * 4 / 3) {
            // The client is slow: this many bytes per millisecond, also after a moment in which the machine
            // was busy.
            if taken as u128 > 300 * began.elapsed().as_millis() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                continue;
            }
            let mut piece = [0; 4 << 10];
            let read = timeout(PATIENCE, slow.read(&mut piece)).await.expect("there is more").unwrap();
            assert!(read > 0, "by {by:?} it is cut behind {taken} bytes");
            taken += read;
        }
        assert!(taken < 3 << 20, "it was slow: {taken} bytes");
    });
    futures_util::future::join_all(both).await;
}
