//! Frames that a WebSocket may be sent, at the byte level: RFC 6455 to the letter, and a close for everything
//! else.
//!
//! The same classes as Autobahn's cases 1 to 7, against `/v1/ws` itself; Autobahn's own run against an echo route is
//! `cargo xtask verify --only websocket`.

use crate::support::{PATIENCE, TestServer};
use throughline::config::ServerLimits;
use throughline_testkit::ScriptQueue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Small, so that what is over it is quickly sent.
const FRAME_BYTES_MAX: u32 = 4 << 10;
const MESSAGE_BYTES_MAX: u32 = 8 << 10;

const CONTINUED: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;
const FIN: u8 = 0x80;

/// One WebSocket, frame by frame.
struct Socket(TcpStream);

/// A frame of the server's.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    head: u8,
    payload: Vec<u8>,
}

impl Socket {
    async fn open(server: &TestServer) -> Self {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let request = format!(
            "GET /v1/ws HTTP/1.1\r\nHost: {}\r\nx-test-user: ada\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            server.address
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(timeout(PATIENCE, socket.read_u8()).await.unwrap().unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        // The key of RFC 6455 §1.3, and its expected hash.
        assert!(head.to_ascii_lowercase().contains("s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
        Self(socket)
    }

    async fn send(&mut self, bytes: &[u8]) {
        // It may be closed before everything is written.
        let _ = self.0.write_all(bytes).await;
    }

    /// The next frame; `None` at the end of the connection.
    async fn next(&mut self) -> Option<Frame> {
        let read = async {
            let head = self.0.read_u8().await.ok()?;
            let length = match self.0.read_u8().await.ok()? {
                126 => usize::from(self.0.read_u16().await.ok()?),
                127 => usize::try_from(self.0.read_u64().await.ok()?).unwrap(),
                masked @ 128.. => panic!("a server masks nothing: {masked}"),
                short => usize::from(short),
            };
            let mut payload = vec![0; length];
            self.0.read_exact(&mut payload).await.ok()?;
            Some(Frame { head, payload })
        };
        timeout(PATIENCE, read).await.expect("a frame, or the end, in time")
    }

    /// The next message of the protocol, which must be a whole text.
    async fn text(&mut self) -> String {
        let frame = self.next().await.expect("a message");
        assert_eq!(frame.head, FIN | TEXT, "{frame:?}");
        String::from_utf8(frame.payload).unwrap()
    }

    /// The close frame: the code, and that nothing else comes and the connection ends.
    async fn closed(&mut self) -> u16 {
        let frame = self.next().await.expect("a goodbye");
        assert_eq!(frame.head, FIN | CLOSE, "{frame:?}");
        assert!(frame.payload.len() <= 125 && frame.payload.len() != 1, "{frame:?}");
        let code = match frame.payload.split_first_chunk::<2>() {
            Some((code, reason)) => {
                std::str::from_utf8(reason).unwrap();
                u16::from_be_bytes(*code)
            }
            // "No status received" of RFC 6455 §7.1.5.
            None => 1005,
        };
        assert_eq!(self.next().await, None, "nothing after the goodbye");
        code
    }
}

/// A frame as a client sends it: masked.
fn frame(head: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    let mut bytes = head_of(head, payload.len(), 0x80);
    bytes.extend(mask);
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

fn head_of(head: u8, length: usize, masked: u8) -> Vec<u8> {
    let mut bytes = vec![head];
    match length {
        0..=125 => bytes.push(masked | u8::try_from(length).unwrap()),
        126..=0xffff => {
            bytes.push(masked | 126);
            bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
        _ => {
            bytes.push(masked | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes
}

fn text(payload: &str) -> Vec<u8> {
    frame(FIN | TEXT, payload.as_bytes())
}

/// An operation that is answered with its `ref`.
fn ping(reference: &str) -> String {
    format!(r#"{{"op":"ping","ref":"{reference}"}}"#)
}

/// A close frame with this code.
fn close(code: u16) -> Vec<u8> {
    frame(FIN | CLOSE, &code.to_be_bytes())
}

async fn server() -> TestServer {
    let limits = ServerLimits {
        socket_frame_bytes_max: FRAME_BYTES_MAX,
        socket_message_bytes_max: MESSAGE_BYTES_MAX,
        ..ServerLimits::default()
    };
    TestServer::start_with(ScriptQueue::new([]), |builder| builder, limits).await
}

#[tokio::test]
async fn socket_without_pongs_is_closed_with_4408() {
    let asking = async |socket_ping_ms| {
        let limits = ServerLimits { socket_ping_ms, ..ServerLimits::default() };
        TestServer::start_with(ScriptQueue::new([]), |builder| builder, limits).await
    };
    let server = asking(100).await;
    let mut deaf = Socket::open(&server).await;
    for _ in 0..2 {
        assert_eq!(deaf.next().await.expect("a ping").head, FIN | PING);
    }
    assert_eq!(deaf.closed().await, 4408);
    // Slow enough for a client on a busy machine.
    let server = asking(2_000).await;
    let mut lively = Socket::open(&server).await;
    // More than a silent one gets.
    for _ in 0..4 {
        let asked = lively.next().await.expect("a ping");
        assert_eq!(asked.head, FIN | PING);
        lively.send(&frame(FIN | PONG, &asked.payload)).await;
    }
    lively.send(&text(&ping("still here"))).await;
    loop {
        let frame = lively.next().await.expect("an answer");
        if frame.head == FIN | TEXT {
            break assert!(String::from_utf8(frame.payload).unwrap().contains("still here"));
        }
    }
}

/// Sends these frames on one connection, and is closed with this code.
async fn check_closed(server: &TestServer, what: &str, frames: &[Vec<u8>], codes: &[u16]) {
    let mut socket = Socket::open(server).await;
    for frame in frames {
        socket.send(frame).await;
    }
    let code = socket.closed().await;
    assert!(codes.contains(&code), "{what}: closed with {code}, not {codes:?}");
}

/// Sends these frames, which are one operation however they are cut, and is answered.
async fn check_answered(
    server: &TestServer,
    what: &str,
    frames: &[Vec<u8>],
    pongs: &[&[u8]],
    reference: &str,
) {
    let mut socket = Socket::open(server).await;
    for frame in frames {
        socket.send(frame).await;
    }
    for expected in pongs {
        assert_eq!(
            socket.next().await.unwrap(),
            Frame { head: FIN | PONG, payload: expected.to_vec() },
            "{what}"
        );
    }
    let answer: serde_json::Value = serde_json::from_str(&socket.text().await).unwrap();
    assert_eq!((&answer["op"], &answer["ref"]), (&"pong".into(), &reference.into()), "{what}");
    // It is as good as new afterwards, and ends as it should.
    socket.send(&text(&ping("again"))).await;
    assert!(socket.text().await.contains("again"), "{what}");
    socket.send(&close(1000)).await;
    assert_eq!(socket.closed().await, 1000, "{what}");
}

/// Splits a text into frames of this many bytes.
fn fragments(payload: &[u8], bytes: usize) -> Vec<Vec<u8>> {
    let pieces: Vec<&[u8]> = payload.chunks(bytes).collect();
    let last = pieces.len() - 1;
    let head = |at: usize| if at == 0 { TEXT } else { CONTINUED } | if at == last { FIN } else { 0 };
    pieces.iter().enumerate().map(|(at, piece)| frame(head(at), piece)).collect()
}

#[tokio::test]
async fn message_is_the_same_for_any_fragmentation() {
    let server = server().await;
    // Of one, two, three and four bytes, and cut between all of them.
    let reference = "aé天🦀";
    let whole = ping(reference);
    for bytes in [1, 2, 3, 5, 7, whole.len() - 1, whole.len()] {
        check_answered(&server, "fragments", &fragments(whole.as_bytes(), bytes), &[], reference).await;
    }
    // Empty fragments at the beginning, in the middle and at the end.
    let (first, second) = whole.as_bytes().split_at(20);
    let empty = [
        frame(TEXT, b""),
        frame(CONTINUED, first),
        frame(CONTINUED, b""),
        frame(CONTINUED, second),
        frame(FIN | CONTINUED, b""),
    ];
    check_answered(&server, "empty fragments", &empty, &[], reference).await;
    // One byte a packet.
    let bytes: Vec<Vec<u8>> = text(&whole).into_iter().map(|byte| vec![byte]).collect();
    check_answered(&server, "byte by byte", &bytes, &[], reference).await;
    // Lengths on both sides of what changes the form of a head, up to both limits.
    for length in [125, 126, 127, 128, 1_000, FRAME_BYTES_MAX as usize] {
        let reference = "x".repeat(length - ping("").len());
        check_answered(&server, "length", &[text(&ping(&reference))], &[], &reference).await;
    }
    let reference = "y".repeat(MESSAGE_BYTES_MAX as usize - ping("").len());
    let pieces = fragments(ping(&reference).as_bytes(), 1 << 10);
    check_answered(&server, "the longest message", &pieces, &[], &reference).await;
}

#[tokio::test]
async fn pings_are_answered_between_fragments() {
    let server = server().await;
    let whole = ping("middle");
    let (first, second) = whole.as_bytes().split_at(9);
    let (begin, end) = (frame(TEXT, first), frame(FIN | CONTINUED, second));
    let full = [0xfe_u8; 125];
    for payload in [&b""[..], b"are you there", b"\x00\xff\xfe", &full] {
        let ping = frame(FIN | PING, payload);
        let frames = [begin.clone(), ping, end.clone()];
        check_answered(&server, "a ping between fragments", &frames, &[payload], "middle").await;
    }
    // Unsolicited pongs are allowed.
    let frames = [frame(FIN | PONG, b""), begin.clone(), frame(FIN | PONG, b"unasked"), end.clone()];
    check_answered(&server, "pongs", &frames, &[], "middle").await;
    let ten: Vec<Vec<u8>> = (0..10).map(|_| frame(FIN | PING, b"p")).chain([text(&whole)]).collect();
    check_answered(&server, "ten pings", &ten, &[b"p".as_slice(); 10], "middle").await;
}

#[tokio::test]
async fn invalid_frame_is_a_protocol_error() {
    let server = server().await;
    let whole = ping("x");
    let mut cases = vec![
        ("not masked", vec![[head_of(FIN | TEXT, whole.len(), 0), whole.clone().into_bytes()].concat()]),
        ("a ping in two", vec![frame(PING, b"a")]),
        ("a pong in two", vec![frame(PONG, b"a")]),
        ("a goodbye in two", vec![frame(CLOSE, &1000_u16.to_be_bytes())]),
        ("a ping of 126 bytes", vec![frame(FIN | PING, &[0; 126])]),
        ("a goodbye of 126 bytes", vec![frame(FIN | CLOSE, &[&[3, 232][..], &[b'x'; 124]].concat())]),
        ("the end of nothing", vec![frame(FIN | CONTINUED, b"x")]),
        ("the middle of nothing", vec![frame(CONTINUED, b"x")]),
        ("the end twice", vec![text(&whole), frame(FIN | CONTINUED, b"x")]),
        ("a text in a text", vec![frame(TEXT, b"{"), text(&whole)]),
        ("a beginning in a text", vec![frame(TEXT, b"{"), frame(TEXT, b"}")]),
        ("a binary in a text", vec![frame(TEXT, b"{"), frame(FIN | BINARY, b"}")]),
        ("a goodbye of one byte", vec![frame(FIN | CLOSE, b"x")]),
    ];
    for reserved in [0x10, 0x20, 0x40, 0x50, 0x70] {
        cases.push(("a reserved bit", vec![frame(FIN | reserved | TEXT, whole.as_bytes())]));
        cases.push(("a reserved bit of a ping", vec![frame(FIN | reserved | PING, b"x")]));
    }
    for opcode in [0x3, 0x4, 0x5, 0x6, 0x7, 0xb, 0xc, 0xd, 0xe, 0xf] {
        cases.push(("a reserved opcode", vec![frame(FIN | opcode, b"")]));
        cases.push(("a reserved opcode in a message", vec![frame(TEXT, b"{"), frame(FIN | opcode, b"x")]));
    }
    for (what, frames) in cases {
        // Messages before it may be answered.
        if what == "the end twice" {
            let mut socket = Socket::open(&server).await;
            socket.send(&frames.concat()).await;
            assert!(socket.text().await.contains("pong"));
            assert_eq!(socket.closed().await, 1002, "{what}");
            continue;
        }
        check_closed(&server, what, &frames, &[1002]).await;
    }
}

#[tokio::test]
async fn invalid_utf8_closes_the_socket_with_1007() {
    let server = server().await;
    // From Autobahn's 6.*: overlong, surrogates, too large, cut short, no beginning.
    let bad: [&[u8]; 12] = [
        b"\xff",
        b"\x80",
        b"\xc0\xaf",
        b"\xc1\xbf",
        b"\xe0\x80\xaf",
        b"\xf0\x80\x80\xaf",
        b"\xed\xa0\x80",
        b"\xed\xbf\xbf",
        b"\xf4\x90\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",
        b"\xe5\xa4",
    ];
    for bytes in bad {
        check_closed(&server, "in one frame", &[frame(FIN | TEXT, bytes)], &[1007]).await;
        check_closed(
            &server,
            "in a string",
            &[frame(FIN | TEXT, &[b"{\"op\":\"", bytes, b"\"}"].concat())],
            &[1007],
        )
        .await;
        for size in 1..bytes.len() {
            check_closed(&server, "in fragments", &fragments(bytes, size), &[1007]).await;
        }
    }
    // A character that is finished by the next fragment is one; one that never is, is not.
    check_answered(&server, "a character in two", &fragments(ping("天").as_bytes(), 21), &[], "天").await;
    let cut = [frame(TEXT, b"{\"op\":\"\xe5"), frame(FIN | CONTINUED, b"\"}")];
    check_closed(&server, "a character that is not gone on with", &cut, &[1007]).await;
}

#[tokio::test]
async fn oversized_frame_closes_the_socket_at_once() {
    let server = server().await;
    let frame_max = FRAME_BYTES_MAX as usize;
    // The head alone: nothing of it is read.
    for length in [frame_max + 1, 1 << 20, 1 << 40, (1 << 63) - 1] {
        let head = [head_of(FIN | TEXT, length, 0x80), vec![1, 2, 3, 4]].concat();
        check_closed(&server, "a frame", &[head], &[1009]).await;
    }
    let long = vec![b' '; MESSAGE_BYTES_MAX as usize + 1];
    check_closed(&server, "a message", &fragments(&long, 1 << 10), &[1009]).await;
    // A length whose highest bit is set is invalid.
    let head = [vec![FIN | TEXT, 0xff], u64::MAX.to_be_bytes().to_vec(), vec![1, 2, 3, 4]].concat();
    check_closed(&server, "an impossible length", &[head], &[1002, 1009]).await;
    check_closed(&server, "a binary message", &[frame(FIN | BINARY, b"{}")], &[1003]).await;
}

#[tokio::test]
async fn close_frame_is_answered_with_its_code_if_valid() {
    let server = server().await;
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] {
        check_closed(&server, "a code", &[close(code)], &[code]).await;
        let reason = frame(FIN | CLOSE, &[&code.to_be_bytes()[..], "再见".as_bytes()].concat());
        check_closed(&server, "a code with a reason", &[reason], &[code]).await;
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
        check_closed(&server, &format!("code {code}"), &[close(code)], &[1002]).await;
    }
    check_closed(&server, "without a code", &[frame(FIN | CLOSE, b"")], &[1000, 1005]).await;
    let bad = frame(FIN | CLOSE, b"\x03\xe8\xff\xfe");
    check_closed(&server, "a reason that is no text", &[bad], &[1002, 1007]).await;
    // Messages after the close are ignored.
    let frames = [close(1000), text(&ping("too late")), frame(FIN | PING, b"late")];
    check_closed(&server, "talking on", &frames, &[1000]).await;
    // In the middle of a message, too.
    check_closed(&server, "in a message", &[frame(TEXT, b"{"), close(1000)], &[1000]).await;
}

#[tokio::test]
async fn malformed_operation_is_an_error_and_not_a_close() {
    let server = server().await;
    let mut socket = Socket::open(&server).await;
    for (said, code) in [
        ("", "invalid_json"),
        ("{", "invalid_json"),
        ("[]", "invalid_value"),
        ("null", "invalid_value"),
        ("\"ping\"", "invalid_value"),
        ("{}", "missing_field"),
        (r#"{"op":1}"#, "missing_field"),
        (r#"{"op":"pnig"}"#, "unknown_op"),
        (r#"{"op":"subscribe"}"#, "missing_field"),
        (r#"{"op":"subscribe","turn_id":1}"#, "invalid_value"),
        (r#"{"op":"subscribe","turn_id":"../../etc/passwd"}"#, "not_found"),
        (r#"{"op":"cancel","turn_id":"\u0000"}"#, "not_found"),
        (r#"{"op":"approve","turn_id":"x","approval_id":"y","decision":"approve"}"#, "not_found"),
        (r#"{"op":"start","input":[]}"#, "empty_input"),
        (r#"{"op":"start","input":[{"type":"text","text":"\ud800}]}"#, "invalid_json"),
    ] {
        socket.send(&text(said)).await;
        let answer: serde_json::Value = serde_json::from_str(&socket.text().await).unwrap();
        assert_eq!(
            (&answer["op"], &answer["error"]["code"]),
            (&"error".into(), &code.into()),
            "{said}: {answer}"
        );
    }
    // Nesting that would exhaust the stack of a careless reader.
    socket.send(&text(&"[".repeat(FRAME_BYTES_MAX as usize))).await;
    assert!(socket.text().await.contains("invalid_json"));
    socket.send(&text(&ping("still here"))).await;
    assert!(socket.text().await.contains("still here"));
}
