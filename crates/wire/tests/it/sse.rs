//! The framer alone against the standard's vectors, for any cut.

use base64::Engine;
use serde_json::Value;
use throughline_wire::DecodeLimits;
use throughline_wire::frame::{SseFramer, SseItem};

type Expected = (String, String, String);

/// `event`, `data`, `id` of each dispatched event, fed in the given pieces.
fn events(pieces: &[&[u8]]) -> (Vec<Expected>, Option<u64>) {
    let mut framer = SseFramer::new(&DecodeLimits::default());
    let mut events = Vec::new();
    for piece in pieces {
        let mut input = *piece;
        while let Some(item) = framer.next(&mut input) {
            if let SseItem::Event(event) = item {
                let name = if event.event.is_empty() { "message" } else { event.event };
                events.push((name.to_owned(), event.data.to_string(), event.id.to_owned()));
            }
        }
    }
    (events, framer.retry())
}

/// One check: in the given pieces, whole, byte by byte, and cut in two at every place.
fn check(name: &str, pieces: &[&[u8]], expect: &[Expected], retry: Option<u64>) {
    let whole = pieces.concat();
    let bytes: Vec<&[u8]> = whole.chunks(1).collect();
    for (how, pieces) in [("as given", pieces), ("whole", &[whole.as_slice()][..]), ("byte by byte", &bytes)]
    {
        let (got, got_retry) = events(pieces);
        assert_eq!(got, expect, "{name}, {how}");
        if retry.is_some() {
            assert_eq!(got_retry, retry, "{name}, {how}");
        }
    }
    for cut in 0..=whole.len().min(4096) {
        assert_eq!(events(&[&whole[..cut], &whole[cut..]]).0, expect, "{name}, cut at {cut}");
    }
}

fn event(data: &str) -> Expected {
    ("message".to_owned(), data.to_owned(), String::new())
}

#[test]
fn sse_framing_follows_the_standard() {
    check("line ends", &[b"data:a\ndata:b\rdata:c\r\ndata:d\n\n"], &[event("a\nb\nc\nd")], None);
    check("a bare CR is due at once", &[b"data:a\r\r"], &[event("a")], None);
    check(
        "one BOM",
        &[b"\xEF\xBB\xBFdata:1\n\n\xEF\xBB\xBFdata:2\n\ndata:3\n\n"],
        &[event("1"), event("3")],
        None,
    );
    let spaces = [event(" two"), event("none"), event("")];
    check("one space is dropped", &[b"data:  two\n\ndata:none\n\ndata\n\n"], &spaces, None);
    check("comments and unknown fields", &[b": c\nfoo: x\ndata: 1\n:\n\n"], &[event("1")], None);
    check("no blank line, no event", &[b"data: 1\n\ndata: 2\n"], &[event("1")], None);
    let others = "data: a\u{2028}b\u{85}c\u{b}\u{c}\n\n";
    check("nothing else ends a line", &[others.as_bytes()], &[event("a\u{2028}b\u{85}c\u{b}\u{c}")], None);
    check("bad UTF-8 is replaced", &[b"data: \xFFx\n\n"], &[event("\u{FFFD}x")], None);
    check("retry", &[b"retry: 12\nretry: x\ndata: 1\n\n"], &[event("1")], Some(12));
}

#[test]
fn unterminated_event_is_returned_by_finish() {
    let mut framer = SseFramer::new(&DecodeLimits::default());
    let mut input: &[u8] = b"event: x\ndata: half";
    assert!(framer.next(&mut input).is_none());
    let event = framer.finish().map(|event| (event.event.to_owned(), event.data.to_string()));
    assert_eq!(event, Some(("x".to_owned(), "half".to_owned())));
}

#[test]
fn lines_and_events_are_bounded() {
    let limits = DecodeLimits { line_bytes_max: 10, event_bytes_max: 12, ..DecodeLimits::default() };
    for (body, limit) in [
        (&b"data: 123456789\n\ndata: ok\n\n"[..], "line_bytes_max"),
        (b"data:12345\ndata:12345\ndata:12345\n\ndata: ok\n\n", "event_bytes_max"),
    ] {
        for size in [1, 3, 100] {
            let mut framer = SseFramer::new(&limits);
            let mut seen = Vec::new();
            for piece in body.chunks(size) {
                let mut input = piece;
                while let Some(item) = framer.next(&mut input) {
                    match item {
                        SseItem::TooLarge { limit, .. } => seen.push(limit.to_owned()),
                        SseItem::Event(event) => seen.push(event.data.to_string()),
                        _ => {}
                    }
                }
            }
            assert_eq!(seen, [limit, "ok"], "in pieces of {size}");
        }
    }
}

/// A case a line: pieces of a body, and the events in it.
fn check_vectors(text: &str, pieces_of: impl Fn(&Value) -> Vec<Vec<u8>>) -> usize {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            let case: Value = serde_json::from_str(line).expect("a case a line");
            let pieces = pieces_of(&case);
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let field = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
            let expect = case["expect"].as_array().expect("events").iter();
            let expect: Vec<_> = expect
                .map(|event| (field(event, "event"), field(event, "data"), field(event, "id")))
                .collect();
            check(case["id"].as_str().unwrap_or("?"), &pieces, &expect, case["retry"].as_u64());
        })
        .count()
}

fn texts<'c>(case: &'c Value, name: &str) -> impl Iterator<Item = &'c str> {
    case[name].as_array().expect("pieces").iter().map(|piece| piece.as_str().expect("text"))
}

#[test]
fn repository_sse_vectors_pass() {
    let text = include_str!("../sse/vectors.jsonl");
    let count =
        check_vectors(text, |case| texts(case, "pieces").map(|piece| piece.as_bytes().to_vec()).collect());
    assert!(count >= 30, "only {count} vectors");
}

#[test]
fn shared_sse_suite_vectors_pass() {
    let Ok(root) = std::env::var("THROUGHLINE_VECTORS") else {
        println!(
            "skipped: THROUGHLINE_VECTORS is not set; the vectors of the repository are checked by another test"
        );
        return;
    };
    let path = std::path::Path::new(&root).join("suites/sse-format/vectors.jsonl");
    let text = std::fs::read_to_string(path).expect("the suite is readable");
    let base64 = base64::engine::general_purpose::STANDARD;
    let decode = |chunk: &str| base64.decode(chunk).expect("base64");
    let count = check_vectors(&text, |case| texts(case, "chunks_b64").map(decode).collect());
    assert!(count >= 60, "only {count} vectors");
}
