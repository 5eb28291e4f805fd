//! Errors without a code (`{"detail": …}`, `{"message": "…"}`) inside a 200: as data of a stream they fail
//! the turn like any other error.

use crate::support::{DIALECTS, at, builder, read, serve};
use throughline::wire::Dialect;
use throughline::{AssistantMessage, StreamingSetting, TurnStatus};
use throughline_testkit::{FakeDialect, HttpAnswer, ModelScript, ParsedRequest, ScriptMove};

const CHAT: (Dialect, FakeDialect) = DIALECTS[0];
const SSE: [(Dialect, FakeDialect); 5] = [CHAT, DIALECTS[1], DIALECTS[2], DIALECTS[3], DIALECTS[5]];
const OLLAMA: (Dialect, FakeDialect) = DIALECTS[4];

/// The message of a turn whose model writes `text` and then sends `raw`, and the requests that it took. Without `text` the body is
/// `raw` alone.
async fn ask(dialect: (Dialect, FakeDialect), text: &str, raw: &str) -> (AssistantMessage, usize) {
    let script = match text {
        "" => {
            let http = HttpAnswer { body: Some(raw.into()), ..HttpAnswer::status(200) };
            ModelScript { http: Some(http), ..ModelScript::new() }
        }
        text => ModelScript::new().say(text).then(ScriptMove::Raw(raw.to_owned())).then(ScriptMove::End),
    };
    let server = serve(move |_: &ParsedRequest| script.clone()).await;
    let upstream = at(&server, dialect).streaming(StreamingSetting::Auto);
    let app = builder(&server, dialect).upstream(upstream).build().unwrap();
    let (_, message) = read(app.ask("Hi").await.unwrap()).await;
    (message, server.exchanges().len())
}

async fn check(dialect: (Dialect, FakeDialect), text: &str, raw: &str, code: &str, words: &str) {
    let (message, requests) = ask(dialect, text, raw).await;
    let context = format!("{} {raw}: {message:#?}", dialect.0);
    assert_eq!((message.status, requests), (Some(TurnStatus::Error), 1), "{context}");
    assert_eq!(message.text(), text, "{context}");
    let fault = message.error.as_ref().map(|fault| (fault.code.as_str(), fault.why.contains(words)));
    assert_eq!(fault, Some((code, true)), "{context}");
}

#[tokio::test]
async fn classified_error_as_the_whole_stream_is_not_retried() {
    let cases = [
        (r#"{"detail":"Invalid API key"}"#, "unauthorized", "Invalid API key"),
        (r#"{"message":"Unauthorized"}"#, "unauthorized", "Unauthorized"),
        (r#"{"detail":"model 'x' not found"}"#, "model_not_found", "model 'x' not found"),
        (r#"{"statusCode":401,"message":"No."}"#, "unauthorized", "No."),
    ];
    for (error, code, words) in cases {
        for dialect in SSE {
            check(dialect, "", &format!("data: {error}\n\ndata: [DONE]\n\n"), code, words).await;
            check(dialect, "", &format!("data: {error}\n\n"), code, words).await;
        }
        check(OLLAMA, "", &format!("{error}\n"), code, words).await;
        // A body that is no stream.
        check(CHAT, "", error, code, words).await;
    }
}

#[tokio::test]
async fn unclassified_error_is_retried_like_an_error_event() {
    let others = ask(CHAT, "", "data: {\"error\":\"It broke\"}\n\n").await;
    let words = ask(CHAT, "", "data: {\"detail\":\"It broke\"}\n\ndata: [DONE]\n\n").await;
    let reason = |message: &AssistantMessage| message.error.as_ref().map(|fault| fault.why.clone());
    assert_eq!(reason(&words.0).as_deref(), Some("It broke"), "{words:#?}");
    assert_eq!((words.1, reason(&words.0)), (others.1, reason(&others.0)), "{words:#?}");
}

#[tokio::test]
async fn error_text_mid_reply_ends_the_turn_and_keeps_its_text() {
    let error = r#"{"detail":"Internal failure"}"#;
    check(CHAT, "Hel", &format!("data: {error}\n\ndata: [DONE]\n\n"), "upstream_error", "Internal failure")
        .await;
    check(CHAT, "Hel", &format!("data: {error}\n\n"), "upstream_error", "Internal failure").await;
    check(OLLAMA, "Hel", &format!("{error}\n"), "upstream_error", "Internal failure").await;
    let key = r#"{"message":"Invalid API key"}"#;
    check(CHAT, "Hel", &format!("data: {key}\n\ndata: [DONE]\n\n"), "unauthorized", "Invalid API key").await;
}

#[tokio::test]
async fn progress_message_is_not_an_error() {
    let reply = concat!(
        r#"data: {"choices":[{"index":0,"delta":{"content":"Hello."}}]}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        "\n\n",
    );
    for note in [
        r#"data: {"message":"Your request is number 3"}"#,
        r#"data: {"detail":"Waking the model up"}"#,
        "event: progress\ndata: {\"message\":\"It may take a while\"}",
        r#"data: {"message":"Thinking","progress":0.3}"#,
    ] {
        for stream in
            [format!("{note}\n\n{reply}data: [DONE]\n\n"), format!("{reply}{note}\n\ndata: [DONE]\n\n")]
        {
            let (message, requests) = ask(CHAT, "", &stream).await;
            assert_eq!(
                (message.status, requests),
                (Some(TurnStatus::Completed), 1),
                "{stream}: {message:#?}"
            );
            assert_eq!(
                (message.text().as_str(), message.problems.len()),
                ("Hello.", 0),
                "{stream}: {message:#?}"
            );
        }
    }
}
