//! People whom a proxy in front has signed in: whom the header names, from where, and what no page of another site can do
//! with it.

use crate::multi_user_server::{MultiUserServer, PROXY_HEADER, answers, walk_every_route};
use crate::support::{self, PATIENCE, answered, saying};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use throughline::config::{AddressRange, PersonScope, ServerSettings, TrustedProxySettings};
use throughline_testkit::{ModelScript, ScriptMove, ScriptQueue};

fn proxy(from: &str) -> TrustedProxySettings {
    TrustedProxySettings {
        header: PROXY_HEADER.to_owned(),
        from: vec![AddressRange::parse(from).unwrap()],
        create: true,
        groups_header: None,
        admin_groups: Vec::new(),
        allowed_groups: Vec::new(),
        person_scopes: PersonScope::DEFAULT.to_vec(),
        first_person: None,
    }
}

fn behind(proxy: TrustedProxySettings) -> ServerSettings {
    ServerSettings {
        trusted_proxy: Some(proxy),
        origins: vec!["https://other.example".to_owned()],
        ..ServerSettings::default()
    }
}

/// The status and the code of an error, or nothing.
async fn outcome(
    multi_user_server: &MultiUserServer,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String) {
    let client = support::http_client().timeout(PATIENCE).build().unwrap();
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    let request = client.request(method.parse().unwrap(), format!("{}{path}", multi_user_server.url));
    let (status, said) = answered(request.headers(map).body(body.to_owned())).await;
    (status, said["error"]["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn proxy_header_signs_in_only_from_the_trusted_proxy() {
    let multi_user_server = MultiUserServer::start_with(answers(2), behind(proxy("127.0.0.1/32"))).await;
    let (status, me) = multi_user_server.ask("Ann@Example.com", "GET", "/v1/me", Value::Null).await;
    assert_eq!(status, 200, "{me}");
    assert_eq!(
        (&me["user"], &me["signed_in_by"], &me["scopes"]),
        (&json!("ann@example.com"), &json!("proxy"), &json!(["chat", "tools"]))
    );
    let people = multi_user_server.done("GET", "/v1/users", Value::Null).await;
    let names = people["items"].as_array().unwrap().iter().map(|person| person["name"].clone());
    assert!(names.clone().count() == 2 && names.clone().any(|name| name == "ann@example.com"), "{people}");
    assert_eq!(multi_user_server.ask("张伟", "GET", "/v1/me", Value::Null).await.1["user"], "张伟");
    assert_eq!(multi_user_server.turn("ann@example.com", "Hello").await.0, 201);
    let (_, mine) = multi_user_server.ask("ann@example.com", "GET", "/v1/conversations", Value::Null).await;
    assert_eq!(mine["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        multi_user_server.ask("bob", "GET", "/v1/conversations", Value::Null).await.1["items"],
        json!([])
    );
    // Without the header there is no user, and admins use their keys as before.
    assert_eq!(
        outcome(&multi_user_server, "GET", "/v1/me", &[], "").await,
        (401, "unauthenticated".to_owned())
    );
    assert_eq!(multi_user_server.done("GET", "/v1/me", Value::Null).await["signed_in_by"], "key");

    let elsewhere = MultiUserServer::start_with(answers(0), behind(proxy("10.9.9.0/24"))).await;
    assert_eq!(elsewhere.ask("ann", "GET", "/v1/me", Value::Null).await.0, 401);
    let key = [(PROXY_HEADER, "ann"), ("authorization", &format!("Bearer {}", elsewhere.admin))];
    assert_eq!(outcome(&elsewhere, "GET", "/v1/me", &key, "").await.0, 200, "the key counts alone");
    let people = elsewhere.done("GET", "/v1/users", Value::Null).await;
    assert_eq!(people["items"].as_array().unwrap().len(), 1, "nobody was added: {people}");
}

#[tokio::test]
async fn ambiguous_or_empty_proxy_header_is_rejected() {
    let multi_user_server = MultiUserServer::start_with(answers(0), behind(proxy("127.0.0.1"))).await;
    let long = "a".repeat(65);
    for name in ["", " ", "ann, bob", "ann;bob", "ann\u{200b}", "\u{202e}nna", "a b", "../x", &long] {
        let got = outcome(&multi_user_server, "GET", "/v1/me", &[(PROXY_HEADER, name)], "").await;
        assert_eq!(got, (400, "proxy_header".to_owned()), "{name:?}");
    }
    let two = [(PROXY_HEADER, "ann"), ("X-Forwarded-User", "ann")];
    assert_eq!(
        outcome(&multi_user_server, "GET", "/v1/me", &two, "").await,
        (400, "proxy_header".to_owned())
    );
    let first = outcome(&multi_user_server, "GET", "/v1/me", &[(PROXY_HEADER, "Local")], "").await;
    assert_eq!(first, (403, "first_user".to_owned()));
    let people = multi_user_server.done("GET", "/v1/users", Value::Null).await;
    assert_eq!(people["items"].as_array().unwrap().len(), 1, "{people}");
}

#[tokio::test]
async fn key_or_ticket_must_match_the_proxy_user() {
    let multi_user_server = MultiUserServer::start_with(answers(0), behind(proxy("127.0.0.1"))).await;
    for name in ["ann", "bob"] {
        multi_user_server.done("POST", "/v1/users", json!({ "name": name })).await;
    }
    let ann = multi_user_server.key("ann", json!({"scopes": ["chat"]})).await;
    let bearer = format!("Bearer {ann}");
    let both = |name| [("authorization", bearer.as_str()), (PROXY_HEADER, name)];
    assert_eq!(
        outcome(&multi_user_server, "GET", "/v1/me", &both("bob"), "").await,
        (400, "identities_differ".to_owned())
    );
    assert_eq!(outcome(&multi_user_server, "GET", "/v1/me", &both("ann"), "").await.0, 200);
    // The key counts: it has fewer scopes than its person.
    let call = outcome(&multi_user_server, "POST", "/v1/tools/weather.today/call", &both("ann"), "{}").await;
    assert_eq!(call, (403, "missing_scope".to_owned()));
    // A ticket of one user with another one's name is refused.
    let ticket = async || {
        let (_, made) = multi_user_server.ask("ann", "POST", "/v1/tickets", json!({})).await;
        format!("/v1/me?ticket={}", made["ticket"].as_str().unwrap())
    };
    assert_eq!(outcome(&multi_user_server, "GET", &ticket().await, &[], "").await.0, 200);
    let other = outcome(&multi_user_server, "GET", &ticket().await, &[(PROXY_HEADER, "bob")], "").await;
    assert_eq!(other, (400, "identities_differ".to_owned()));
}

/// The browser of a user who is signed in at the proxy sends any request that a page of another site
/// triggers.
#[tokio::test]
async fn cross_site_requests_cannot_use_the_proxy_sign_in() {
    let multi_user_server = MultiUserServer::start_with(answers(4), behind(proxy("127.0.0.1"))).await;
    let own = multi_user_server.url.clone();
    let (ann, json_type) = ((PROXY_HEADER, "ann"), ("content-type", "application/json"));
    let form = ("content-type", "multipart/form-data; boundary=x");
    let turn = saying("x").to_string();
    for (why, method, path, headers, expected) in [
        ("a rebound name", "GET", "/v1/me", vec![("host", "evil.example")], (403, "unknown_host")),
        (
            "a rebound name with its own origin",
            "POST",
            "/v1/turns",
            vec![("host", "evil.example"), ("origin", "http://evil.example"), json_type],
            (403, "unknown_host"),
        ),
        (
            "a foreign page",
            "POST",
            "/v1/turns",
            vec![("origin", "https://evil.example"), json_type],
            (403, "foreign_origin"),
        ),
        (
            "a page without origin",
            "POST",
            "/v1/turns",
            vec![("origin", "null"), json_type],
            (403, "foreign_origin"),
        ),
        (
            "an app's page",
            "POST",
            "/v1/turns",
            vec![("origin", "app://evil"), json_type],
            (403, "foreign_origin"),
        ),
        (
            "a picture",
            "GET",
            "/v1/me",
            vec![("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")],
            (403, "foreign_origin"),
        ),
        (
            "a page that the configuration lets in with keys",
            "GET",
            "/v1/me",
            vec![("origin", "https://other.example")],
            (401, "unauthenticated"),
        ),
        ("a form", "POST", "/v1/turns", vec![("content-type", "text/plain")], (415, "content_type")),
        ("multipart/form-data", "POST", "/v1/files", vec![form], (415, "content_type")),
        ("a form without a type", "DELETE", "/v1/conversations/x", vec![], (415, "content_type")),
    ] {
        let headers: Vec<_> = headers.into_iter().chain([ann]).collect();
        let (status, code) = outcome(&multi_user_server, method, path, &headers, &turn).await;
        assert_eq!((status, code.as_str()), expected, "{why}");
    }
    let preflight = [
        ann,
        ("origin", "https://evil.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type"),
    ];
    assert_eq!(outcome(&multi_user_server, "OPTIONS", "/v1/turns", &preflight, "").await.0, 403);
    let (status, said) = multi_user_server.ask("ann", "GET", "/v1/conversations", Value::Null).await;
    assert_eq!((status, &said["items"]), (200, &json!([])), "nothing was begun");

    // The server's own page does all of it, and so does a program.
    let of_page = [ann, ("origin", own.as_str()), ("sec-fetch-site", "same-origin"), json_type];
    assert_eq!(outcome(&multi_user_server, "POST", "/v1/turns", &of_page, &turn).await.0, 201);
    assert_eq!(outcome(&multi_user_server, "POST", "/v1/turns", &[ann, json_type], &turn).await.0, 201);
    let link = [ann, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    assert_eq!(
        outcome(&multi_user_server, "GET", "/v1/me", &link, "").await.0,
        200,
        "somebody follows a link"
    );
}

#[tokio::test]
async fn proxy_groups_grant_and_revoke_access_and_admin() {
    let groups = TrustedProxySettings {
        groups_header: Some("x-forwarded-groups".to_owned()),
        admin_groups: vec!["ops".to_owned()],
        allowed_groups: vec!["ops".to_owned(), "staff".to_owned()],
        first_person: Some("Root@example.com".to_owned()),
        ..proxy("127.0.0.1")
    };
    let multi_user_server = MultiUserServer::start_with(answers(0), behind(groups)).await;
    let as_ann = |groups: &'static str| [(PROXY_HEADER, "ann"), ("x-forwarded-groups", groups)];
    let users = async |groups| outcome(&multi_user_server, "GET", "/v1/users", &as_ann(groups), "").await;
    assert_eq!(users("staff, ops").await.0, 200);
    let key = multi_user_server.key("ann", json!({"scopes": ["chat", "admin"]})).await;
    assert_eq!(multi_user_server.ask(&key, "GET", "/v1/users", Value::Null).await.0, 200);
    assert_eq!(users("staff").await, (403, "missing_scope".to_owned()));
    let me = outcome(&multi_user_server, "GET", "/v1/me", &as_ann("guests"), "").await;
    assert_eq!(me, (403, "not_allowed".to_owned()));
    assert_eq!(multi_user_server.done("GET", "/v1/users/ann", Value::Null).await["is_admin"], false);
    let is_demoted = async || multi_user_server.ask(&key, "GET", "/v1/users", Value::Null).await.0 == 403;
    support::eventually("her key has lost its scope, too", is_demoted).await;
    // The one who set the server up finds everything of theirs.
    let first = [(PROXY_HEADER, "root@example.com"), ("x-forwarded-groups", "staff")];
    assert_eq!(outcome(&multi_user_server, "GET", "/v1/users", &first, "").await.0, 200);
}

#[tokio::test]
async fn unknown_and_removed_users_are_rejected_and_streams_end() {
    let closed = TrustedProxySettings { create: false, ..proxy("127.0.0.1") };
    let stalled = ScriptQueue::new([ModelScript::new().say("A").then(ScriptMove::Stall)]);
    let multi_user_server = MultiUserServer::start_with(stalled, behind(closed)).await;
    let (status, said) = multi_user_server.ask("ann", "GET", "/v1/me", Value::Null).await;
    assert_eq!((status, &said["error"]["code"]), (403, &json!("unknown_person")));
    assert_eq!(said["error"]["remedy"], "an admin can add them: throughline users add ann");
    multi_user_server.done("POST", "/v1/users", json!({"name": "ann"})).await;
    let (status, started) = multi_user_server.ask("ann", "POST", "/v1/turns", saying("Wait")).await;
    assert_eq!(status, 201, "{started}");
    let client = support::http_client().build().unwrap();
    let events =
        format!("{}/v1/turns/{}/events", multi_user_server.url, started["turn_id"].as_str().unwrap());
    let mut following = client.get(events).header(PROXY_HEADER, "ann").send().await.unwrap();
    assert_eq!(following.status(), 200);
    // Removed by another program, which cannot notify this one.
    throughline_server::remove_person(&*multi_user_server.inner.state.catalog, "ann", 1).await.unwrap();
    let ended = async { while let Ok(Some(_)) = following.chunk().await {} };
    tokio::time::timeout(PATIENCE, ended).await.expect("the stream ends");
    let is_refused = async || {
        multi_user_server.ask("ann", "GET", "/v1/me", Value::Null).await.1["error"]["code"]
            == "removed_person"
    };
    support::eventually("what was remembered of her is forgotten", is_refused).await;
}

#[tokio::test]
async fn no_route_exposes_other_users_after_proxy_sign_in() {
    let multi_user_server = MultiUserServer::start_with(answers(8), behind(proxy("127.0.0.1"))).await;
    multi_user_server.done("POST", "/v1/users", json!({"name": "ann", "is_admin": true})).await;
    walk_every_route(&multi_user_server, "ann", "bob").await;
}
