use super::server;
use serde_json::{Value, json};
use throughline::recording::RECORDING_BYTES_MAX;

const CHAT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Let me look.\"}}]}\n\n\
    data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"weather\",\"arguments\":\"{\\\"city\\\":\\\"Paris\\\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n\
    data: {not json}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":7}}\n\ndata: [DONE]\n\n";

#[tokio::test]
async fn recording_is_decoded_into_events_and_not_stored() {
    let server = server().await;
    let decode = async |query: &str, body: Vec<u8>| {
        let request = server.client().post(server.url(&format!("/v1/decode{query}")));
        let response =
            request.header("content-type", "application/octet-stream").body(body).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let (status, found) = decode("", CHAT.into()).await;
    assert_eq!(
        (status, &found["api"], &found["end"]),
        (200, &json!("openai-chat"), &json!("complete")),
        "{found}"
    );
    assert_eq!((&found["text"], &found["finish"]), (&json!("Let me look."), &json!("tool_calls")));
    assert_eq!(found["usage"], json!({"input_tokens": 12, "output_tokens": 7}));
    assert_eq!(
        found["calls"],
        json!([{"name": "weather", "upstream_id": "c1", "arguments": {"city": "Paris"}}])
    );
    assert_eq!(
        (&found["problems"][0]["kind"], &found["problems"][0]["line"]),
        (&json!("invalid_event"), &json!(5))
    );
    assert_eq!(found["mistakes"], json!([]));
    let pieces = found["pieces"].as_array().unwrap();
    let events: Vec<&Value> = pieces.iter().flat_map(|piece| piece["events"].as_array().unwrap()).collect();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types.first(), Some(&"stream_start"));
    assert!(types.contains(&"content_delta") && types.contains(&"tool_input"), "{types:?}");
    assert!(
        !types.contains(&"tool_start") && !types.contains(&"approval_request"),
        "nothing runs: {types:?}"
    );

    // As a form, as a page without a key has to send it.
    let form = format!(
        "--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"reply.sse\"\r\n\r\n{CHAT}\r\n--x--\r\n"
    );
    let request = server.client().post(server.url("/v1/decode"));
    let request = request.header("content-type", "multipart/form-data; boundary=x").body(form.clone());
    let response = request.send().await.unwrap();
    assert_eq!(response.json::<Value>().await.unwrap(), found);

    // A form without that field holds nothing to decode.
    let other = form.replace("name=\"file\"", "name=\"other\"");
    let request = server.client().post(server.url("/v1/decode"));
    let response = request.header("content-type", "multipart/form-data; boundary=x").body(other).send().await;
    let response = response.unwrap();
    assert_eq!(response.status(), 400);
    let refused: Value = response.json().await.unwrap();
    assert_eq!((&refused["error"]["code"], &refused["error"]["param"]), (&json!("no_file"), &json!("file")));

    let (_, forced) = decode("?api=anthropic", CHAT.into()).await;
    assert_eq!((&forced["api"], &forced["text"]), (&json!("anthropic"), &json!("")));
    for (body, code, language, what) in [
        (&b"\x1f\x8b\x08\x00"[..], "compressed", "en", "The recording is compressed."),
        (b"<html><title>502</title>", "html", "zh-CN", "它是网页"),
        (b"curl: (7) Failed to connect", "not_sse", "en", "The recording is not a stream"),
    ] {
        let (_, found) = decode(&format!("?language={language}"), body.into()).await;
        assert_eq!(found["mistakes"][0]["code"], code, "{found}");
        assert!(found["mistakes"][0]["what"].as_str().unwrap().starts_with(what), "{found}");
    }
    // Nothing of it is in the history.
    assert_eq!(super::get(&server, "/v1/history/counts").await["total"], 0);
}

#[tokio::test]
async fn oversized_or_unknown_recording_is_rejected() {
    let server = server().await;
    let decode = async |query: &str, bytes: usize| {
        let request = server.client().post(server.url(&format!("/v1/decode{query}")));
        let mut body = b"data: ".to_vec();
        body.resize(bytes, b'x');
        let response =
            request.header("content-type", "application/octet-stream").body(body).send().await.unwrap();
        let status = response.status().as_u16();
        let said: Value = response.json().await.unwrap();
        (status, said["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(decode("", RECORDING_BYTES_MAX).await.0, 200);
    assert_eq!(decode("", RECORDING_BYTES_MAX + 1).await, (413, "recording_bytes_max".to_owned()));
    assert_eq!(decode("?api=smtp", 10).await, (400, "unknown_value".to_owned()));
}
