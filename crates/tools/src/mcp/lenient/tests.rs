//! From the bytes of a message to the messages for the SDK.

use super::*;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
    ClientNotification, ClientRequest, InitializedNotification, ListToolsRequest,
};

fn sent(reader: &MessageReader, id: i64, request: ClientRequest) {
    reader.sent(&JsonRpcMessage::request(request, RequestId::Number(id)));
}

/// A reader with a list (1) and two calls (7 and 8) that wait.
fn reader(ids: &[i64]) -> MessageReader {
    let reader = MessageReader::default();
    for id in ids {
        let request = match id {
            1 => ClientRequest::ListToolsRequest(ListToolsRequest::default()),
            _ => ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new("echo"))),
        };
        sent(&reader, *id, request);
    }
    reader
}

/// Each reply as its number and `ok`, or the message of its error.
fn replies(messages: Vec<ServerJsonRpcMessage>) -> Vec<String> {
    let reply = |message: ServerJsonRpcMessage| match message {
        JsonRpcMessage::Response(response) => format!("{} ok", response.id),
        JsonRpcMessage::Error(error) => format!("{} {}", error.id.unwrap(), error.error.message),
        other => format!("{other:?}").split('(').next().unwrap_or_default().to_owned(),
    };
    messages.into_iter().map(reply).collect()
}

/// Checks the messages for the SDK after one line of a program, with these requests waiting.
fn check(waiting: &[i64], line: &str, expected: &[&str]) {
    let read = replies(reader(waiting).read(line.as_bytes(), &MessageOrigin::Pipe));
    assert_eq!(read, expected, "{line:.120}");
}

fn nested(levels: usize) -> String {
    format!("{}1{}", r#"{"a":["#.repeat(levels / 2), "]}".repeat(levels / 2))
}

#[test]
fn reply_is_read_despite_a_malformed_envelope() {
    for line in [
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#,
        r#"{"id":7.0,"result":{"content":[]},"error":null,"method":null}"#,
        "\u{feff}{\"id\":7,\"result\":{}}",
        r#"{"jsonrpc":2,"id":7,"result":"done","more":[]}"#,
        r#"[{"jsonrpc":"2.0","id":7,"result":{"content":[]}},7,null]"#,
        r#"{"id":7,"result":{"content":[{"type":"text","text":"caf\udce9"}],"structuredContent":{"mean":NaN}}}"#,
    ] {
        check(&[7, 8], line, &["7 ok"]);
    }
    let mut latin1 = br#"{"id":7,"result":{"content":[{"type":"text","text":"caf"#.to_vec();
    latin1.extend_from_slice(b"\xe9\"}]}}");
    assert_eq!(replies(reader(&[7]).read(&latin1, &MessageOrigin::Pipe)), ["7 ok"]);
    check(&[7], r#"{"id":7,"error":{"code":"-1","message":"no"}}"#, &["7 no"]);
    check(&[7], r#"{"id":7,"error":"no"}"#, &["7 no"]);
    check(&[7], r#"{"id":7,"error":{"code":1e300,"message":["no"]}}"#, &["7 [\"no\"]"]);
}

#[test]
fn invalid_json_reply_ends_only_its_own_call() {
    let at = |byte: usize| format!("7 its reply is no JSON: not a JSON value at byte {byte}");
    check(&[7, 8], r#"{"jsonrpc":"2.0","id":7,"result":{"a":oops}}"#, &[&at(38)]);
    check(&[7, 8], r#"{"result":{"a":oops,"id":8},"jsonrpc":"2.0","id":7}"#, &[&at(15)]);
    check(
        &[7, 8],
        r#"{"id":7,"#,
        &["7 its reply is no JSON: a member name in quotes was expected at byte 8"],
    );
    check(
        &[7],
        r#"{"jsonrpc":"2.0","result":{"content":["#,
        &["7 its reply is no JSON: the text ends where a value is expected at byte 38"],
    );
    // The one of two that it belongs to is not known.
    check(&[7, 8], r#"{"jsonrpc":"2.0","result":{"content":["#, &[]);
    // An error without an id belongs to the only request that waits.
    check(
        &[7],
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
        &["7 Parse error"],
    );
    check(&[7, 8], r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#, &[]);
    check(&[7], r#"{"jsonrpc":"2.0","result":{}}"#, &["7 its reply names no request"]);
}

/// `@leanspec/mcp` 0.3.0 answers `notifications/initialized`, and the list of its tools was taken for lost.
#[test]
fn answer_to_a_notification_is_not_a_reply_to_a_request() {
    for line in [
        r#"{"jsonrpc":"2.0","result":null}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}"#,
    ] {
        let reader = reader(&[1]);
        let initialized = ClientNotification::InitializedNotification(InitializedNotification::default());
        reader.sent(&JsonRpcMessage::notification(initialized));
        assert_eq!(replies(reader.read(line.as_bytes(), &MessageOrigin::Pipe)), [""; 0], "{line}");
        let list = br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;
        assert_eq!(replies(reader.read(list, &MessageOrigin::Pipe)), ["1 ok"], "{line}");
    }
    let initialized = |ids: &[i64]| {
        let reader = reader(ids);
        let notification = ClientNotification::InitializedNotification(InitializedNotification::default());
        reader.sent(&JsonRpcMessage::notification(notification));
        reader
    };
    let read = |reader: &MessageReader, line: &[u8]| replies(reader.read(line, &MessageOrigin::Pipe));
    let (nothing, lost) = (br#"{"jsonrpc":"2.0","result":null}"#, ["7 its reply names no request"]);
    // A message with more content is not an answer to it,
    let with_content = br#"{"jsonrpc":"2.0","result":{"content":[]}}"#;
    assert_eq!(read(&initialized(&[7]), with_content), lost);
    // it has one at most,
    let reader = initialized(&[7]);
    assert_eq!(read(&reader, nothing), [""; 0]);
    assert_eq!(read(&reader, nothing), lost);
    // and none after the answer to a later request.
    let reader = initialized(&[1]);
    let call = || ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new("echo")));
    sent(&reader, 6, call());
    sent(&reader, 7, call());
    assert_eq!(read(&reader, br#"{"id":6,"result":{}}"#), ["6 ok"]);
    assert_eq!(read(&reader, br#"{"id":1,"result":{"tools":[]}}"#), ["1 ok"]);
    assert_eq!(read(&reader, nothing), lost);
}

// A server that answers `notifications/initialized` may also answer a cancellation; other open calls
// continue.
#[test]
fn reply_without_id_to_a_cancelled_call_ends_no_other() {
    let reader = reader(&[7, 8]);
    let stop = |id| {
        let stopped = CancelledNotificationParam::new(Some(RequestId::Number(id)), None);
        let notification = ClientNotification::CancelledNotification(CancelledNotification::new(stopped));
        reader.sent(&JsonRpcMessage::notification(notification));
    };
    let call = |id| {
        let call = CallToolRequest::new(CallToolRequestParams::new("echo"));
        sent(&reader, id, ClientRequest::CallToolRequest(call));
    };
    let read = |line: &[u8]| replies(reader.read(line, &MessageOrigin::Pipe));
    let nothing = br#"{"jsonrpc":"2.0","result":null}"#;
    stop(7);
    call(9);
    call(10);
    stop(9);
    assert_eq!(read(nothing), [""; 0]);
    assert_eq!(read(br#"{"id":10,"result":{"content":[]}}"#), ["10 ok"]);
    assert_eq!(read(nothing), [""; 0]);
    assert_eq!(read(br#"{"id":8,"result":{"content":[]}}"#), ["8 ok"]);
}

#[test]
fn lines_that_are_not_replies_end_no_call() {
    for line in [
        "Server started",
        "",
        "{",
        "{}",
        "[]",
        "[1, 2",
        "null",
        r#"{"jsonrpc": "2.0""#,
        r#"{"level":"info","msg":"started"}"#,
        r#"{"level":"info","msg":"started""#,
        r#"{"method":"notifications/message","params":{"id":7,"result":oops}}"#,
        r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
        r#"{"error":{"code":1,"message":"no"},"id" : "7"}"#,
        r#"{"jsonrpc":"2.0","id":999,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":7.5,"result":{}}"#,
    ] {
        check(&[7], line, &[]);
    }
    check(&[], r#"{"id":7,"result":oops}"#, &[]);
    check(&[7], r#"{"id":7,"method":"roots/list"}"#, &["Request"]);
}

#[test]
fn post_response_without_id_ends_its_request() {
    let origin = MessageOrigin::Response(8);
    let read = |line: &str| replies(reader(&[7, 8]).read(line.as_bytes(), &origin));
    assert_eq!(read(r#"{"result":{"content":[]}}"#), ["8 ok"]);
    assert_eq!(read(r#"{"id":null,"error":{"message":"no"}}"#), ["8 no"]);
    assert_eq!(read(r#"{"result":oops}"#), ["8 its reply is no JSON: not a JSON value at byte 10"]);
    assert_eq!(read(r#"{"id":"8","result":{}}"#), [""; 0]);
    let stream = |line: &str| replies(reader(&[7]).read(line.as_bytes(), &MessageOrigin::Stream));
    assert_eq!(stream(r#"{"id":7,"result":oops}"#), ["7 its reply is no JSON: not a JSON value at byte 17"]);
    assert_eq!(stream(r#"{"result":oops}"#), [""; 0]);
}

#[test]
fn too_deep_tool_schema_is_cut_and_other_tools_stay() {
    let good = r#"{"name":"good","inputSchema":{"type":"object"}}"#;
    let list = |schema: &str| {
        format!(
            r#"{{"id":1,"result":{{"tools":[{good},{{"name":"deep","inputSchema":{{"a":{schema}}}}}]}}}}"#
        )
    };
    for levels in [10, 100_000] {
        let read = reader(&[1]).read(list(&nested(levels)).as_bytes(), &MessageOrigin::Pipe);
        let [JsonRpcMessage::Response(response)] = &read[..] else { panic!("{levels} {read:?}") };
        let ServerResult::ListToolsResult(page) = &response.result else { panic!("{levels} {read:?}") };
        let names: Vec<&str> = page.tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["good", "deep"], "{levels}");
    }
}

#[test]
fn too_deep_reply_fails_its_call_and_request_is_passed_on() {
    let deep = nested(400);
    let reply = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"structuredContent":{deep}}}}}"#);
    check(&[7, 8], &reply, &["7 the reply nests deeper than 100 levels"]);
    check(&[7], &format!(r#"{{"method":"notifications/message","params":{deep}}}"#), &[]);
    check(&[7], &format!(r#"{{"id":3,"method":"elicitation/create","params":{deep}}}"#), &["Request"]);
    check(&[7], &"[".repeat(1_000_000), &[]);
}

#[test]
fn initialize_forgets_the_probe_and_keeps_pending_calls() {
    use rmcp::model::{ClientCapabilities, ClientConfig, DiscoverRequest, Implementation, InitializeRequest};
    let reader = reader(&[7]);
    sent(&reader, 6, ClientRequest::DiscoverRequest(DiscoverRequest::new(Default::default())));
    let config = ClientConfig::new(ClientCapabilities::default(), Implementation::new("test", "1"));
    sent(&reader, 9, ClientRequest::InitializeRequest(InitializeRequest::new(config)));
    assert_eq!(replies(reader.read(br#"{"id":6,"result":{}}"#, &MessageOrigin::Pipe)), [""; 0]);
    assert_eq!(replies(reader.read(br#"{"id":7,"result":{}}"#, &MessageOrigin::Pipe)), ["7 ok"]);
}
