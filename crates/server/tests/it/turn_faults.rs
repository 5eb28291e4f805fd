//! Faults around a turn or in the middle of one, and who is harmed.

use crate::support::{TestServer, saying};
use serde_json::json;
use std::sync::{Arc, Mutex};
use throughline::{Event, EventKind, ThroughlineBuilder, TurnFacts, TurnObserver};
use throughline_testkit::{ModelScript, ParsedRequest, ReplyPace};

/// An observer that panics inside the task of every turn with this text, at its first delta.
#[derive(Default)]
struct Panics(Mutex<Vec<String>>);

impl TurnObserver for Panics {
    fn logged(&self, turn: &TurnFacts, events: &[Event]) {
        let mut doomed = self.0.lock().unwrap();
        for event in events {
            match &event.kind {
                EventKind::StreamStart { input, .. } if format!("{input:?}").contains("Boom") => {
                    doomed.push(turn.turn_id.as_str().to_owned());
                }
                EventKind::ContentDelta { .. } if doomed.iter().any(|id| id == turn.turn_id.as_str()) => {
                    drop(doomed);
                    panic!("as it was asked to");
                }
                _ => {}
            }
        }
    }
}

fn slowly(_: &ParsedRequest) -> ModelScript {
    let pace = ReplyPace { tokens_per_second: Some(200.0), ..ReplyPace::default() };
    ModelScript::new().say("Word after word after word after word.").with_pace(pace)
}

#[tokio::test]
async fn panic_in_a_turn_interrupts_only_that_turn() {
    let build = |builder: ThroughlineBuilder| builder.observer(Arc::new(Panics::default()));
    let server = TestServer::start_with(slowly, build, Default::default()).await;
    let beside = server.say("Hi").await;
    let (_, started) = server.post("/v1/turns", saying("Boom")).await;
    let (turn, conversation) = (started["turn_id"].as_str().unwrap(), &started["conversation_id"]);
    let events = server.follow(turn, 0).await.rest().await;
    let end = events.last().unwrap();
    assert_eq!(
        (end.name.as_str(), &end.data["status"]),
        ("stream_end", &json!("interrupted")),
        "{events:#?}"
    );
    assert!(events.iter().any(|event| event.name == "content_delta"), "what was said stays");
    let (_, snapshot) = server.get(&format!("/v1/turns/{turn}")).await;
    assert_eq!(snapshot["status"], "interrupted");

    let other = server.follow(&beside, 0).await.rest().await;
    assert_eq!(other.last().unwrap().data["status"], "completed", "another turn notices nothing");
    assert_eq!(server.get("/readyz").await.0, 200);
    // Its conversation is not locked by it.
    let mut more = saying("Hi again");
    more["conversation_id"] = conversation.clone();
    let next = server.turn(more).await;
    assert_eq!(server.follow(&next, 0).await.rest().await.last().unwrap().data["status"], "completed");
}

#[cfg(feature = "tls-server")]
#[tokio::test]
async fn self_signed_upstream_certificate_is_a_turn_error() {
    use throughline::Upstream;
    use throughline::config::{ServerSettings, TlsSection};
    use throughline::wire::Dialect;
    use throughline_server::HttpServer;

    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let files = TlsSection { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
    std::fs::write(&files.cert, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let listen = ([127, 0, 0, 1], 0).into();
    let impostor =
        HttpServer::bind(&ServerSettings { listen, tls: Some(files), ..Default::default() }).unwrap();
    let url = format!("https://localhost:{}/v1", impostor.address().port());
    let (_wish, wishes) = tokio::sync::mpsc::channel(1);
    let serving = tokio::spawn(impostor.serve(axum::Router::new(), wishes, std::future::ready(())));

    let build = move |builder: ThroughlineBuilder| {
        builder.upstream(Upstream::new("impostor", Dialect::OpenaiChat, &url).unwrap()).model("impostor/m")
    };
    let server = TestServer::start_with(slowly, build, Default::default()).await;
    let turn = server.say("Hi").await;
    let events = server.follow(&turn, 0).await.rest().await;
    assert_eq!(events.last().unwrap().data["status"], "error", "{events:#?}");
    let error = events.iter().find(|event| event.name == "error").expect("it is said");
    let said = error.data.to_string();
    assert!(said.contains("TLS") || said.contains("certificate"), "{said}");
    assert!(events.iter().filter(|event| event.name == "waiting").count() <= 2, "a few tries and no more");
    serving.abort();
}
