//! Remembered answers of a user: for whom, where, and over a restart.

use crate::support::{self, Events, TestServer, answered};
use serde_json::{Value, json};
use throughline_store::NewRemembered;
use throughline_testkit::{ModelScript, ScriptQueue};

/// `turns` turns, each with the same call that writes.
fn writing(turns: usize) -> ScriptQueue {
    ScriptQueue::new((0..turns).flat_map(|_| {
        [ModelScript::new().call("calendar_add", json!({"title": "tea"})), ModelScript::new().say("Noted.")]
    }))
}

/// Runs a turn of this user, in a conversation or in a new one; returns the number of questions, and its
/// conversation. The question is answered with `answer`.
async fn turn(server: &TestServer, user: &str, conversation: Option<&str>, answer: Value) -> (usize, String) {
    let client = server.client_of(user);
    let mut body = support::saying("Note it");
    if let Some(id) = conversation {
        body["conversation_id"] = json!(id);
    }
    let (status, started) = answered(client.post(server.url("/v1/turns")).json(&body)).await;
    assert_eq!(status, 201, "{started}");
    let events = client.get(server.url(started["events_url"].as_str().unwrap())).send().await.unwrap();
    let mut events = Events::of(events);
    let mut asked = 0;
    let mut seen = events.until_any(&["approval_request", "stream_end"]).await;
    while let Some(question) = seen.last().filter(|event| event.name == "approval_request") {
        asked += 1;
        let path = format!(
            "/v1/turns/{}/approvals/{}",
            started["turn_id"].as_str().unwrap(),
            question.data["approval_id"].as_str().unwrap()
        );
        let (status, said) = answered(client.post(server.url(&path)).json(&answer)).await;
        assert_eq!(status, 200, "{said}");
        seen = events.until_any(&["approval_request", "stream_end"]).await;
    }
    assert_eq!(seen.last().unwrap().data["status"], "completed");
    (asked, started["conversation_id"].as_str().unwrap().to_owned())
}

async fn remembered(server: &TestServer, user: &str, query: &str) -> Vec<Value> {
    let request = server.client_of(user).get(server.url(&format!("/v1/remembered{query}")));
    let (status, body) = answered(request).await;
    assert_eq!(status, 200, "{body}");
    body["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn always_approval_is_per_user_and_survives_a_restart() {
    let server = TestServer::start_asking(writing(5)).await;
    let always = json!({"decision": "approve", "remember": {"scope": "always"}});
    assert_eq!(turn(&server, "ada", None, always.clone()).await.0, 1);
    assert_eq!(turn(&server, "ada", None, always.clone()).await.0, 0, "in every conversation");
    let once = json!({"decision": "approve"});
    assert_eq!(turn(&server, "eve", None, once.clone()).await.0, 1, "another user is asked");
    assert!(remembered(&server, "eve", "").await.is_empty());

    let server = server.restart().await;
    let listed = remembered(&server, "ada", "").await;
    assert_eq!((listed.len(), &listed[0]["answer"]["tool"]), (1, &json!("calendar.add")), "{listed:?}");
    assert_eq!(turn(&server, "ada", None, once.clone()).await.0, 0);
    let path = format!("/v1/remembered/{}", listed[0]["number"]);
    let forget = |user| answered(server.client_of(user).delete(server.url(&path)));
    assert_eq!(forget("eve").await.0, 404);
    assert_eq!(forget("ada").await.0, 204);
    assert_eq!(turn(&server, "ada", None, once).await.0, 1, "taken back");
}

#[tokio::test]
async fn conversation_approval_survives_a_restart_and_stays_local() {
    let server = TestServer::start_asking(writing(3)).await;
    let here = json!({"decision": "approve", "remember": {"scope": "conversation"}});
    let (asked, conversation) = turn(&server, "ada", None, here).await;
    assert_eq!(asked, 1);
    let server = server.restart().await;
    let once = json!({"decision": "approve"});
    assert_eq!(turn(&server, "ada", Some(&conversation), once.clone()).await.0, 0);
    assert_eq!(turn(&server, "ada", None, once).await.0, 1, "another conversation");
    assert!(remembered(&server, "ada", "").await.is_empty(), "it does not always hold");
    assert_eq!(remembered(&server, "ada", &format!("?conversation_id={conversation}")).await.len(), 1);
}

/// `titles` turns, each with a call that writes this title.
fn titled(titles: &[&str]) -> ScriptQueue {
    let turn = |title: &&str| {
        [ModelScript::new().call("calendar_add", json!({"title": title})), ModelScript::new().say("Noted.")]
    };
    ScriptQueue::new(titles.iter().flat_map(turn).collect::<Vec<_>>())
}

#[tokio::test]
async fn approval_for_any_arguments_is_listed_and_revocable() {
    let server = TestServer::start_asking(titled(&["tea", "cake", "milk", "soup"])).await;
    let any = json!({"decision": "approve", "remember": {"scope": "conversation", "arguments": "any"}});
    let once = json!({"decision": "approve"});
    let (asked, conversation) = turn(&server, "ada", None, any).await;
    assert_eq!(asked, 1);
    let here = Some(conversation.as_str());
    assert_eq!(turn(&server, "ada", here, once.clone()).await.0, 0, "other arguments of the same tool");
    assert_eq!(turn(&server, "eve", None, once.clone()).await.0, 1, "another user is asked");
    assert!(remembered(&server, "eve", "?everywhere=true").await.is_empty());

    assert!(remembered(&server, "ada", "").await.is_empty(), "it does not always hold");
    let listed = remembered(&server, "ada", "?everywhere=true").await;
    assert_eq!(listed.len(), 1, "{listed:?}");
    let kept = &listed[0];
    let rule = &kept["rule"];
    assert_eq!(
        (&rule["tool"], &rule["scope"], &rule["decision"], &rule["for_arguments"]),
        (&json!("calendar.add"), &json!("conversation"), &json!("approve"), &json!("any"))
    );
    assert_eq!(kept["conversation_id"], json!(conversation));
    let question = rule["question"].as_str().unwrap();
    assert!(question.starts_with("Run calendar.add") && question.contains("title: tea"), "{kept}");
    let approval = rule["approval_id"].as_str().unwrap();
    assert!(approval.starts_with(rule["turn_id"].as_str().unwrap()), "{kept}");
    assert!(kept["at"].as_i64().unwrap() > 0);

    let path = format!("/v1/remembered/{}", kept["number"]);
    assert_eq!(answered(server.client_of("eve").delete(server.url(&path))).await.0, 404);
    assert_eq!(answered(server.client().delete(server.url(&path))).await.0, 204);
    assert_eq!(turn(&server, "ada", here, once).await.0, 1, "taken back");
}

#[tokio::test]
async fn approval_applies_only_to_matching_arguments() {
    let titles = ["tea", "coffee", "tea", "tea at five", "cake"];
    let server = TestServer::start_asking(titled(&titles)).await;
    let remember = |what: Value| json!({"decision": "approve", "remember": what});
    let these = remember(json!({"scope": "always", "arguments": "these"}));
    assert_eq!(turn(&server, "ada", None, these.clone()).await.0, 1);
    assert_eq!(turn(&server, "ada", None, these.clone()).await.0, 1, "other arguments");
    assert_eq!(turn(&server, "ada", None, these.clone()).await.0, 0, "the same");
    let tests =
        remember(json!({"scope": "always", "arguments": {"title": {"one_of": ["cake", "tea at five"]}}}));
    assert_eq!(turn(&server, "ada", None, tests).await.0, 1);
    assert_eq!(turn(&server, "ada", None, these).await.0, 0, "it passes the test");

    // Oldest first, in pages.
    let listed = remembered(&server, "ada", "").await;
    let forms: Vec<&Value> = listed.iter().map(|kept| &kept["rule"]["for_arguments"]).collect();
    let test = json!({"title": {"one_of": ["cake", "tea at five"]}});
    assert_eq!(forms, [&json!("these"), &json!("these"), &test]);
    let (_, first) = server.get("/v1/remembered?limit=2").await;
    assert_eq!(first["items"].as_array().unwrap()[..], listed[..2]);
    let next = first["next"].as_str().unwrap();
    let (_, rest) = server.get(&format!("/v1/remembered?limit=2&cursor={next}")).await;
    assert_eq!((&rest["items"], rest.get("next")), (&json!([listed[2]]), None));
    assert_eq!(server.get("/v1/remembered?cursor=x").await.0, 400);
}

#[tokio::test]
async fn contradictory_remember_options_are_rejected() {
    let server = TestServer::start_asking(writing(1)).await;
    let turn = server.say("Note it").await;
    let question = server.follow(&turn, 0).await.until("approval_request").await.pop().unwrap();
    let path = format!("/v1/turns/{turn}/approvals/{}", question.data["approval_id"].as_str().unwrap());
    for remember in [
        json!({"scope": "always", "arguments": "any", "constraints": "exact"}),
        json!({"scope": "always", "arguments": {}}),
        json!({"scope": "always", "arguments": "some"}),
        json!({"scope": "for_ever"}),
        json!("for_ever"),
    ] {
        let answer = json!({"decision": "approve", "remember": remember});
        assert_eq!(server.post(&path, answer.clone()).await.0, 400, "{answer}");
    }
    // As earlier releases took it.
    let answer = json!({"decision": "approve", "remember": {"scope": "always", "constraints": "any"}});
    assert_eq!(server.post(&path, answer).await.0, 200);
    server.follow(&turn, 0).await.rest().await;
    let listed = remembered(&server, "ada", "").await;
    assert_eq!(listed[0]["rule"]["for_arguments"], "any", "{listed:?}");
}

#[tokio::test]
async fn per_call_fields_are_rejected_when_answering_all() {
    let server = TestServer::start_asking(writing(1)).await;
    let turn = server.say("Note it").await;
    server.follow(&turn, 0).await.until("approval_request").await;
    let path = format!("/v1/turns/{turn}/approvals/all");
    for (field, value) in [
        ("arguments", json!({"title": "wine"})),
        ("arguments_hash", json!("0")),
        ("remember", json!({"scope": "always", "arguments": "any"})),
        ("remember", json!("turn")),
    ] {
        let mut answer = json!({"decision": "approve"});
        answer[field] = value;
        let (status, refused) = server.post(&path, answer).await;
        assert_eq!((status, &refused["error"]["param"]), (400, &json!(field)), "{refused}");
    }
    assert_eq!(server.post(&path, json!({"decision": "deny", "reason": "no"})).await.0, 202);
    let events = server.follow(&turn, 0).await.rest().await;
    let answers: Vec<_> = events.iter().filter(|event| event.name == "approval_resolved").collect();
    assert_eq!((answers.len(), &answers[0].data["reason"]), (1, &json!("no")), "nothing was answered before");
    assert!(remembered(&server, "ada", "?everywhere=true").await.is_empty());
}

#[tokio::test]
async fn unreadable_remembered_approval_is_named_and_removable() {
    let server = TestServer::start(ScriptQueue::new([ModelScript::new().say("Hi.")])).await;
    let answer = json!({"decision": "a word of a later release"});
    let new = NewRemembered { conversation_id: None, about: "x".into(), answer, at: 1 };
    let number = server.state.catalog.remember("ada", new).await.unwrap().unwrap().number;
    let asked = [
        ("/v1/parse", json!({"text": "Hello."})),
        ("/v1/tools/weather.today/call", json!({"arguments": {}})),
        ("/v1/turns", support::saying("Hi")),
    ];
    for (path, body) in &asked {
        let (status, refused) = server.post(path, body.clone()).await;
        let error = &refused["error"];
        assert_eq!((status, &error["code"]), (409, &json!("remembered_unreadable")), "{path}: {refused}");
        assert!(error["remedy"].as_str().unwrap().contains(&format!("/v1/remembered/{number}")), "{refused}");
    }
    let url = server.url(&format!("/v1/remembered/{number}"));
    assert_eq!(server.client().delete(url).send().await.unwrap().status(), 204);
    for (path, body) in asked {
        let (status, answer) = server.post(path, body).await;
        assert!(status < 300, "{path}: {status} {answer}");
    }
}
