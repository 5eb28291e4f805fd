//! Events that look like an earlier one and mean something else. In one piece they may take the fast path; byte by
//! byte they never can; both must say the same.

use throughline_wire::{DecodeOptions, Dialect, ModelReply, StepDecoder, Usage};

fn reply(pieces: &[&[u8]]) -> ModelReply {
    let mut decoder = StepDecoder::new(Dialect::OpenaiChat, DecodeOptions::default());
    let mut reply = ModelReply::default();
    for piece in pieces {
        decoder.push(piece, &mut |event| reply.apply(event));
    }
    decoder.finish(&mut |event| reply.apply(event));
    reply
}

/// Each chunk is an event; the reply to all of them, checked to be the same byte by byte and event by event.
fn check(chunks: &[&str]) -> ModelReply {
    let events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let body = events.concat();
    let whole = reply(&[body.as_bytes()]);
    let bytes: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
    assert_eq!(whole, reply(&bytes), "byte by byte");
    let events: Vec<&[u8]> = events.iter().map(String::as_bytes).collect();
    assert_eq!(whole, reply(&events), "event by event");
    whole
}

fn text(text: &str, rest: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}{rest}}}]}}"#)
}

fn arguments(index: u32, text: &str) -> String {
    format!(
        r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":{index},"function":{{"arguments":"{text}"}}}}]}}}}]}}"#
    )
}

fn opens(index: u32, id: &str) -> String {
    format!(
        r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":{index},"id":"{id}","function":{{"name":"f","arguments":""}}}}]}}}}]}}"#
    )
}

#[test]
fn fast_path_handles_a_changing_finish_reason() {
    let stop = |letter: &str| text(letter, r#","finish_reason":"stop""#);
    let length = text("x", r#","finish_reason":"length""#);
    let chunks = [stop("a"), stop("b"), stop("c"), length, stop("d"), stop("e")];
    let reply = check(&chunks.each_ref().map(String::as_str));
    assert_eq!(reply.text, "abcxde");
    assert_eq!(reply.finish.and_then(|(_, raw)| raw).as_deref(), Some("stop"));
}

#[test]
fn fast_path_handles_changing_usage_and_citations() {
    let with = |letter: &str, count: u32, source: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"content":"{letter}"}}}}],"usage":{{"prompt_tokens":{count}}},"citations":["{source}"]}}"#
        )
    };
    let chunks = [
        with("a", 1, "x"),
        with("b", 1, "x"),
        with("c", 1, "x"),
        with("d", 2, "y"),
        with("e", 1, "x"),
        with("f", 1, "x"),
    ];
    let reply = check(&chunks.each_ref().map(String::as_str));
    assert_eq!(reply.usage.and_then(|usage| usage.input_tokens), Some(1));
    assert_eq!(reply.citations, ["x"]);
}

#[test]
fn all_zero_usage_does_not_replace_known_counts() {
    let counts = |usage: Usage| {
        let Usage { input_tokens, output_tokens, cached_input_tokens, cache_written_tokens, .. } = usage;
        [input_tokens, output_tokens, cached_input_tokens, cache_written_tokens]
    };
    let start = r#"{"input_tokens":31,"output_tokens":1,"cache_read_input_tokens":7,"cache_creation_input_tokens":5}"#;
    let zeros =
        r#"{"input_tokens":0,"output_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0}"#;
    let from_cache = r#"{"input_tokens":0,"output_tokens":4,"cache_read_input_tokens":31,"cache_creation_input_tokens":0}"#;
    for (last, expected) in [
        (zeros, [31, 1, 7, 5]),
        // The whole prompt came from the cache.
        (from_cache, [0, 4, 31, 0]),
        // A refusal has no output.
        (r#"{"output_tokens":0}"#, [31, 0, 7, 5]),
    ] {
        let start = format!(r#"{{"type":"message_start","message":{{"role":"assistant","usage":{start}}}}}"#);
        let last =
            format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{last}}}"#);
        let stream = format!("data: {start}\n\ndata: {last}\n\ndata: {{\"type\":\"message_stop\"}}\n\n");
        let reply = ModelReply::decode(stream.as_bytes(), Dialect::Anthropic, DecodeOptions::default());
        assert_eq!(counts(reply.usage.expect("usage")), expected.map(Some), "{last}");
    }
}

#[test]
fn fast_path_handles_an_index_reused_by_another_call() {
    let (head, tail) = (r#"{\"a\":"#, "1}");
    let chunks = [
        opens(0, "a"),
        arguments(0, head),
        arguments(0, " "),
        arguments(0, tail),
        opens(0, "b"),
        arguments(0, head),
        arguments(0, " "),
        arguments(0, tail),
        arguments(0, "x"),
    ];
    let reply = check(&chunks.each_ref().map(String::as_str));
    assert_eq!(reply.calls.len(), 2);
    assert!(matches!(reply.calls[0].ending, Some(Ok(_))) && matches!(reply.calls[1].ending, Some(Err(_))));
}

#[test]
fn fast_path_handles_an_empty_fragment() {
    let unnumbered =
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"g","arguments":{"a":1}}}]}}]}"#;
    let chunks =
        [unnumbered.to_owned(), arguments(5, ""), arguments(5, "x"), opens(1, "b"), arguments(5, "y")];
    let reply = check(&chunks.each_ref().map(String::as_str));
    assert_eq!(reply.calls[0].text, r#"{"a":1}xy"#);
}

#[test]
fn fast_path_handles_odd_string_escapes() {
    for odd in [r#"\ud83d"#, r"\u12", r#"a\"#, "a\u{1}b", r#"q\"}}]}"#, r"\x", "é\\n中", r"\\", ""] {
        let chunks = [text("a", ""), text("b", ""), text(odd, ""), text("c", ""), text(r"\ude00!", "")];
        check(&chunks.each_ref().map(String::as_str));
    }
}

#[test]
fn fast_path_handles_changing_and_malformed_members() {
    let with = |created: &str, padding: &str, letter: &str| {
        format!(
            r#"{{"created":{created},"choices":[{{"delta":{{"content":"{letter}"}}}}],"obfuscation":"{padding}"}}"#
        )
    };
    for (created, padding) in [
        ("3", "xyz"),
        ("03", "x"),
        ("-1", "x"),
        ("1.5", "x"),
        ("\"3\"", "x"),
        ("3", r"\u00"),
        ("3", r"\q"),
        ("3", ""),
    ] {
        let chunks = [
            with("1", "a", "a"),
            with("2", "bc", "b"),
            with("2", "d", "c"),
            with(created, padding, "d"),
            with("4", "e", "e"),
        ];
        check(&chunks.each_ref().map(String::as_str));
    }
}
