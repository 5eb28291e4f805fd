//! Admission over real sockets: every route against every bad name, page and key.

use crate::guarded_server::{self, GuardedServer, read_all, settings};
use crate::support;
use std::time::Duration;
use throughline::config::{AuthMode, ServerLimits, ServerSettings};
use throughline_server::{KeyScope, openapi};
use throughline_testkit::{ModelScript, ScriptMove, ScriptQueue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ALL: [KeyScope; 3] = [KeyScope::Chat, KeyScope::Tools, KeyScope::Admin];
const JSON: (&str, &str) = ("Content-Type", "application/json");

fn silent() -> ScriptQueue {
    ScriptQueue::new([])
}

/// Every method of every route, with its parameters filled in; and paths without a route.
fn routes() -> Vec<(String, String)> {
    let document = serde_json::to_value(openapi()).unwrap();
    let mut routes = vec![("GET".to_owned(), "/".to_owned()), ("GET".to_owned(), "/v1/nothing".to_owned())];
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
        let path = path.collect::<Vec<_>>().join("/");
        for method in ["get", "put", "post", "delete", "patch"] {
            if methods.get(method).is_some() {
                routes.push((method.to_uppercase(), path.clone()));
            }
        }
    }
    assert!(routes.len() >= 10, "{routes:?}");
    routes
}

fn is_open(path: &str) -> bool {
    ["/", "/v1/nothing", "/healthz", "/readyz", "/v1/openapi.json", "/v1/sign-in"].contains(&path)
        || path.contains("/docs")
        // The credential is in the body: a link, instead of a key.
        || path.starts_with("/v1/question-links")
        || path.starts_with("/v1/shared")
}

#[tokio::test]
async fn every_route_rejects_foreign_hosts_and_origins() {
    let server = GuardedServer::start(silent(), &settings()).await;
    let (key, _) = server.key(&ALL).await;
    let bearer = format!("Bearer {key}");
    let port = server.address.port();
    let own = format!("127.0.0.1:{port}");
    let rebound = format!("evil.example:{port}");
    let rebound_origin = format!("http://{rebound}");
    // With a good key, and with one that is not.
    let bad: [&[(&str, &str)]; 6] = [
        &[("Host", &rebound), ("Origin", &rebound_origin)],
        &[("Host", "")],
        &[("Host", &own), ("Origin", "https://evil.example")],
        &[("Host", &own), ("Origin", "http://localhost:1")],
        &[("Host", &own), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")],
        &[("Host", &own), ("Access-Control-Request-Private-Network", "true")],
    ];
    let without_key: [&[(&str, &str)]; 4] = [
        &[("Host", "evil.example")],
        &[("Host", "127.0.0.1.evil.example")],
        &[("Host", &own), ("Origin", "null")],
        &[("Host", &own), ("Origin", "app://obsidian.md")],
    ];
    let bad = bad.into_iter().map(|headers| (headers, bearer.as_str()));
    let bad: Vec<_> = bad.chain(without_key.into_iter().map(|headers| (headers, "Bearer tl_x_y"))).collect();
    for (method, path) in routes() {
        for (headers, key) in &bad {
            for upgrade in [false, true] {
                let mut headers = headers.to_vec();
                headers.extend([("Authorization", *key), JSON]);
                if upgrade {
                    headers.extend([("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]);
                }
                let answer = server.ask(&method, &path, &headers, "{}").await;
                assert_eq!(answer.status, 403, "{method} {path} {headers:?}\n{answer:?}");
            }
        }
    }
}

/// Open WebUI in a container calls this machine `host.docker.internal`; Obsidian, Tauri and Electron have
/// their own origins.
#[tokio::test]
async fn valid_key_admits_unlisted_hosts_and_app_origins() {
    let server = GuardedServer::start(silent(), &settings()).await;
    let (key, _) = server.key(&ALL).await;
    let bearer = format!("Bearer {key}");
    let own = format!("127.0.0.1:{}", server.address.port());
    for headers in [
        &[("Host", "host.docker.internal:8787")][..],
        &[("Host", own.as_str()), ("Origin", "app://obsidian.md")],
        &[("Host", own.as_str()), ("Origin", "tauri://localhost")],
        &[("Host", own.as_str()), ("Origin", "null")],
    ] {
        let with_key = [headers, &[("Authorization", bearer.as_str())]].concat();
        let answer = server.ask("GET", "/v1/models", &with_key, "").await;
        assert_eq!(answer.status, 200, "{headers:?} {answer:?}");
        let origin = headers.iter().find(|(name, _)| *name == "Origin").map(|(_, origin)| *origin);
        assert_eq!(answer.header("access-control-allow-origin"), origin);
        assert_eq!(server.ask("GET", "/v1/models", headers, "").await.status, 403, "{headers:?}");
    }
    // The page of a program sends a preflight before the key.
    let preflight = [
        ("Host", own.as_str()),
        ("Origin", "app://obsidian.md"),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization,content-type"),
    ];
    let answer = server.ask("OPTIONS", "/v1/chat/completions", &preflight, "").await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (204, Some("app://obsidian.md"))
    );
}

#[tokio::test]
async fn protected_routes_require_a_valid_key() {
    let server = GuardedServer::start(silent(), &settings()).await;
    let (good, pass) = server.key(&ALL).await;
    let (revoked, revoked_pass) = server.key(&ALL).await;
    server.keys.change(&revoked_pass.id, |row| row.revoked_at = Some(1));
    let (expired, expired_pass) = server.key(&ALL).await;
    server.keys.change(&expired_pass.id, |row| row.expires_at = Some(1));
    let (other, _) = server.key(&ALL).await;
    // A good id with the secret of another key.
    let forged = format!("tl_{}_{}", pass.id, &other[36..]);
    let bearer = |key: &str| format!("Bearer {key}");
    let (basic, two) = (format!("Basic {good}"), bearer(&good));
    let keys = [
        bearer(&revoked),
        bearer(&expired),
        bearer(&forged),
        bearer("tl_x_y"),
        bearer(""),
        basic,
        good.clone(),
    ];
    let query = format!("?ticket={good}");
    for (method, path) in routes().into_iter().filter(|(_, path)| !is_open(path)) {
        for key in &keys {
            let answer = server.ask(&method, &path, &[("Authorization", key), JSON], "{}").await;
            assert_eq!(answer.status, 401, "{method} {path} {key}\n{answer:?}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{method} {path}");
        }
        for (name, key) in [("x-api-key", forged.as_str()), ("api-key", &revoked), ("X-Api-Key", "")] {
            let answer = server.ask(&method, &path, &[(name, key), JSON], "{}").await;
            assert_eq!(answer.status, 401, "{method} {path} {name}\n{answer:?}");
        }
        let answer = server.ask(&method, &path, &[JSON], "{}").await;
        assert_eq!(answer.status, 401, "{method} {path}");
        let answer = server.ask(&method, &format!("{path}{query}"), &[JSON], "{}").await;
        assert_eq!(answer.status, 401, "a key is no ticket: {method} {path}");
        let both = [("Authorization", two.as_str()), ("x-api-key", &other), JSON];
        let answer = server.ask(&method, &path, &both, "{}").await;
        assert_eq!((answer.status, answer.code().as_str()), (401, "several_keys"), "{method} {path}");
    }
}

#[tokio::test]
async fn sign_in_link_works_once_and_is_no_ticket() {
    let server = GuardedServer::start(silent(), &settings()).await;
    let ticket = server.request_guard.sign_in_link().unwrap();
    let body = |ticket: &str| format!("{{\"ticket\":\"{ticket}\"}}");
    let first = server.ask("POST", "/v1/sign-in", &[JSON], &body(&ticket)).await;
    assert_eq!(first.status, 201, "{first:?}");
    let made: serde_json::Value = serde_json::from_str(&first.body).unwrap();
    assert_eq!((made["name"].as_str(), made["user"].as_str()), (Some("browser"), Some("local")));
    assert!(made["expires_at"].is_i64(), "it ends by itself: {made}");
    let bearer = format!("Bearer {}", made["key"].as_str().unwrap());
    assert_eq!(server.ask("GET", "/v1/keys", &[("Authorization", &bearer)], "").await.status, 200);
    for used_or_wrong in [ticket.as_str(), "", "tl_x_y"] {
        let answer = server.ask("POST", "/v1/sign-in", &[JSON], &body(used_or_wrong)).await;
        assert_eq!((answer.status, answer.code().as_str()), (401, "sign_in"), "{used_or_wrong}");
    }
    // What is no link of ours opens nothing else, and a link is no ticket.
    let link = server.request_guard.sign_in_link().unwrap();
    assert_eq!(server.ask("GET", &format!("/v1/models?ticket={link}"), &[], "").await.status, 401);
}

#[tokio::test]
async fn key_scopes_decide_in_every_key_header() {
    let server = GuardedServer::start(silent(), &settings()).await;
    let (chat, _) = server.key(&[KeyScope::Chat]).await;
    let (admin, _) = server.key(&[KeyScope::Admin]).await;
    let (tools, _) = server.key(&[KeyScope::Tools]).await;
    for (key, path, status) in [
        (&chat, "/v1/turns/x", 404),
        (&chat, "/v1/keys", 403),
        (&admin, "/v1/keys", 200),
        (&admin, "/v1/turns/x", 403),
        (&tools, "/v1/turns/x", 403),
        (&tools, "/v1/keys", 403),
    ] {
        let bearer = format!("Bearer {key}");
        for (name, value) in [("Authorization", bearer.as_str()), ("x-api-key", key), ("API-Key", key)] {
            let answer = server.ask("GET", path, &[(name, value)], "").await;
            assert_eq!(answer.status, status, "{path} {name} {answer:?}");
        }
    }
    for (_, path) in routes().iter().filter(|(method, path)| method == "GET" && is_open(path)) {
        let status = server.ask("GET", path, &[], "").await.status;
        assert!(status == 200 || (status == 404 && !path.contains("healthz")), "{path}: {status}");
    }
}

#[tokio::test]
async fn every_response_has_the_security_headers() {
    let server = GuardedServer::start(silent(), &settings()).await;
    for (method, path) in routes() {
        for headers in [&[JSON][..], &[JSON, ("Host", "evil.example")]] {
            let answer = server.ask(&method, &path, headers, "{}").await;
            let policy = answer.header("content-security-policy").unwrap_or_default();
            assert!(
                policy.starts_with("default-src 'none'; script-src 'self'"),
                "{method} {path} {answer:?}"
            );
            assert!(policy.ends_with("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
            for (name, value) in [
                ("x-content-type-options", "nosniff"),
                ("referrer-policy", "no-referrer"),
                ("x-frame-options", "DENY"),
            ] {
                assert_eq!(answer.header(name), Some(value), "{method} {path}");
            }
            assert!(answer.header("cache-control").is_some(), "{method} {path}");
            assert!(answer.header("x-request-id").is_some_and(|id| id.len() == 32), "{method} {path}");
            assert_eq!(answer.header("access-control-allow-origin"), None, "{method} {path}");
        }
    }
    // Only the documents for untrusted content may be in a frame, and a program without the page has none.
    for path in ["/frames/preview.html", "/frames/diagram.html", "/frames/nothing.html"] {
        let answer = server.ask("GET", path, &[], "").await;
        let policy = answer.header("content-security-policy").unwrap_or_default();
        if answer.status == 404 {
            assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{path}");
        } else {
            assert!(policy.starts_with("sandbox allow-scripts; default-src 'none';"), "{path}: {policy}");
            assert!(policy.ends_with("frame-ancestors 'self'"), "{path}: {policy}");
            assert_eq!(answer.header("x-frame-options"), Some("SAMEORIGIN"), "{path}");
        }
    }
    let answer = server.ask("GET", "/healthz", &[("X-Request-Id", "of-the-proxy.1")], "").await;
    assert_eq!(answer.header("x-request-id"), Some("of-the-proxy.1"));
    let answer = server.ask("GET", "/healthz", &[("X-Request-Id", "a b")], "").await;
    assert_ne!(answer.header("x-request-id"), Some("a b"));
}

#[tokio::test]
async fn only_configured_origins_pass_cors() {
    let page = "https://page.example.com";
    let settings = ServerSettings { origins: vec![page.to_owned()], ..settings() };
    let server = GuardedServer::start(silent(), &settings).await;
    let ask = [
        ("Origin", page),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization"),
    ];
    let answer = server.ask("OPTIONS", "/v1/turns", &ask, "").await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), Some(page));
    assert!(answer.header("access-control-allow-headers").unwrap().contains("authorization"));
    assert!(answer.header("access-control-allow-methods").unwrap().contains("POST"));
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    assert_eq!(answer.header("vary"), Some("origin"));
    // The answer itself, and an error of it, can be read by that page.
    for path in ["/healthz", "/v1/keys"] {
        let answer = server.ask("GET", path, &[("Origin", page)], "").await;
        assert_eq!(answer.header("access-control-allow-origin"), Some(page), "{path}");
    }
    let mut private = ask.to_vec();
    private.push(("Access-Control-Request-Private-Network", "true"));
    let answer = server.ask("OPTIONS", "/v1/turns", &private, "").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (403, None));
    for origin in ["https://evil.example", "http://page.example.com", "null"] {
        let ask = [("Origin", origin), ("Access-Control-Request-Method", "POST")];
        let answer = server.ask("OPTIONS", "/v1/turns", &ask, "").await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (403, None), "{origin}");
    }
    // A new configuration revokes it.
    server.request_guard.reload(&guarded_server::settings());
    assert_eq!(server.ask("OPTIONS", "/v1/turns", &ask, "").await.status, 403);
}

#[tokio::test]
async fn form_content_types_are_rejected_with_auth_off() {
    let settings = ServerSettings { auth: AuthMode::Off, ..settings() };
    let server = GuardedServer::start(silent(), &settings).await;
    assert_eq!(server.ask("GET", "/v1/turns/x", &[], "").await.status, 404, "whoever is here gets in");
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""] {
        for (method, path) in routes().into_iter().filter(|(method, path)| method != "GET" && !is_open(path))
        {
            let answer = server.ask(&method, &path, &[("Content-Type", kind)], "{}").await;
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (415, "content_type"),
                "{method} {path} {kind}"
            );
        }
    }
    assert_eq!(server.ask("POST", "/v1/tickets", &[JSON], "").await.status, 201);
    let import = r#"[{"role":"user","content":"Hi"}]"#;
    for kind in ["application/json", "application/jsonl", "Application/X-NDJSON; charset=utf-8"] {
        let answer = server.ask("POST", "/v1/conversations/import", &[("Content-Type", kind)], import).await;
        assert_ne!(answer.status, 415, "{kind}: {answer:?}");
    }
    let form = [("Content-Type", "application/json"), ("Origin", "https://evil.example")];
    assert_eq!(server.ask("POST", "/v1/tickets", &form, "").await.status, 403);
}

#[tokio::test]
async fn key_is_created_listed_without_secret_and_revoked() {
    let server = GuardedServer::start(silent(), &settings()).await;
    let (admin, _) = server.key(&[KeyScope::Admin, KeyScope::Chat]).await;
    let bearer = format!("Bearer {admin}");
    let admin = [("Authorization", bearer.as_str()), JSON];
    let made = server.ask("POST", "/v1/keys", &admin, r#"{"name":"laptop","scopes":["chat"]}"#).await;
    assert_eq!(made.status, 201, "{made:?}");
    let body: serde_json::Value = serde_json::from_str(&made.body).unwrap();
    let (key, id) = (body["key"].as_str().unwrap(), body["id"].as_str().unwrap());
    let shown = format!("Bearer {key}");
    assert_eq!(server.ask("GET", "/v1/turns/x", &[("Authorization", &shown)], "").await.status, 404);
    let listed = server.ask("GET", "/v1/keys", &admin, "").await;
    assert!(
        listed.body.contains("laptop") && listed.body.contains(id) && !listed.body.contains(&key[36..]),
        "{listed:?}"
    );
    assert!(!listed.body.contains("hash"), "{listed:?}");
    assert_eq!(server.ask("DELETE", &format!("/v1/keys/{id}"), &admin, "").await.status, 204);
    assert_eq!(server.ask("GET", "/v1/turns/x", &[("Authorization", &shown)], "").await.status, 401);
    assert_eq!(server.ask("DELETE", &format!("/v1/keys/{id}"), &admin, "").await.status, 404);
    for (body, code) in [
        (r#"{"name":" "}"#, "bad_name"),
        (r#"{"name":"a\nb"}"#, "bad_name"),
        (r#"{"name":"a","scopes":[]}"#, "no_scope"),
        (r#"{"name":"a","expires_at":1}"#, "expired"),
    ] {
        let answer = server.ask("POST", "/v1/keys", &admin, body).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, code), "{body}");
    }
    assert_eq!(
        server.ask("POST", "/v1/keys", &admin, r#"{"name":"a","scopes":["root"]}"#).await.status / 100,
        4
    );
}

#[tokio::test]
async fn ticket_is_single_use_read_only_and_bound_to_its_key() {
    let server = GuardedServer::start(silent(), &settings()).await;
    let (key, pass) = server.key(&[KeyScope::Chat]).await;
    let bearer = format!("Bearer {key}");
    let ticket = async || {
        let answer = server.ask("POST", "/v1/tickets", &[("Authorization", &bearer)], "").await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(body["expires_in_ms"], 60_000);
        body["ticket"].as_str().unwrap().to_owned()
    };
    let (first, second, third, fourth) = (ticket().await, ticket().await, ticket().await, ticket().await);
    let look =
        async |ticket: &str, path: &str| server.ask("GET", &format!("{path}?ticket={ticket}"), &[], "").await;
    assert_eq!(look(&first, "/v1/turns/x").await.status, 404);
    let again = look(&first, "/v1/turns/x").await;
    assert_eq!((again.status, again.code().as_str()), (401, "ticket"));
    assert_eq!(look(&second, "/v1/keys").await.status, 403, "it has the scopes of its key");
    let posted = server.ask("POST", &format!("/v1/tickets?ticket={third}"), &[JSON], "").await;
    assert_eq!(posted.status, 401, "it cannot change anything");
    server.request_guard.revoke("local", &pass.id).await.unwrap();
    assert_eq!(look(&fourth, "/v1/turns/x").await.status, 401, "its key is worth nothing any more");
}

/// A stream of a turn that is silent for longer than any test.
async fn open_stream(server: &GuardedServer, key: &str) -> TcpStream {
    let bearer = format!("Bearer {key}");
    let body = r#"{"input":[{"type":"text","text":"Hi"}]}"#;
    let started = server.ask("POST", "/v1/turns", &[("Authorization", &bearer), JSON], body).await;
    assert_eq!(started.status, 201, "{started:?}");
    let started: serde_json::Value = serde_json::from_str(&started.body).unwrap();
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let events = started["events_url"].as_str().unwrap();
    let request =
        format!("GET {events} HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\n\r\n", server.address);
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut read = String::new();
    while !read.contains("stream_start") {
        let mut piece = [0; 4096];
        let count = socket.read(&mut piece).await.unwrap();
        assert!(count > 0, "{read}");
        read.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    assert!(read.starts_with("HTTP/1.1 200") && read.contains("no-store"), "{read}");
    socket
}

/// The rest of a stream, which must end, and not as if it were complete.
async fn ends_unfinished(mut socket: TcpStream) {
    let rest = tokio::time::timeout(support::PATIENCE, read_all(&mut socket)).await;
    let rest = rest.expect("the stream goes on");
    assert!(!rest.ends_with("0\r\n\r\n"), "{rest}");
}

fn endless() -> ScriptQueue {
    ScriptQueue::new((0..4).map(|_| ModelScript::new().then(ScriptMove::Stall)))
}

#[tokio::test]
async fn streams_end_with_their_key() {
    let server = GuardedServer::start(endless(), &settings()).await;
    let (kept, _) = server.key(&[KeyScope::Chat]).await;
    let mut goes_on = open_stream(&server, &kept).await;
    // Revoked here.
    let (key, pass) = server.key(&[KeyScope::Chat]).await;
    let stream = open_stream(&server, &key).await;
    server.request_guard.revoke("local", &pass.id).await.unwrap();
    ends_unfinished(stream).await;
    // Revoked by another program.
    let (key, pass) = server.key(&[KeyScope::Chat]).await;
    let stream = open_stream(&server, &key).await;
    server.keys.change(&pass.id, |row| row.revoked_at = Some(1));
    ends_unfinished(stream).await;
    // Expired.
    let (key, pass) = server.key(&[KeyScope::Chat]).await;
    let stream = open_stream(&server, &key).await;
    server.keys.change(&pass.id, |row| row.expires_at = Some(1));
    ends_unfinished(stream).await;
    let mut byte = [0; 1];
    let silent = tokio::time::timeout(Duration::ZERO, goes_on.read(&mut byte)).await;
    assert!(silent.is_err() || byte != [0], "another key's stream goes on");
}

#[tokio::test]
async fn new_turns_per_minute_are_limited_per_key() {
    let limits = ServerLimits { turns_per_minute_max: 2, ..ServerLimits::default() };
    let server = GuardedServer::start(endless(), &ServerSettings { limits, ..settings() }).await;
    let (one, _) = server.key(&[KeyScope::Chat]).await;
    let (two, _) = server.key(&[KeyScope::Chat]).await;
    let start = async |key: &str| {
        let bearer = format!("Bearer {key}");
        let headers = [("Authorization", bearer.as_str()), JSON];
        server.ask("POST", "/v1/turns", &headers, r#"{"input":[{"type":"text","text":"Hi"}]}"#).await
    };
    assert_eq!((start(&one).await.status, start(&one).await.status), (201, 201));
    let third = start(&one).await;
    assert_eq!((third.status, third.code().as_str()), (429, "turns_per_minute_max"));
    let wait: u64 = third.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(start(&two).await.status, 201, "another key has its own");
    // A retried call begins a turn, too.
    let retry = async |key: &str| {
        let bearer = format!("Bearer {key}");
        let path = "/v1/turns/turn_1/calls/call_1/retry";
        server.ask("POST", path, &[("Authorization", bearer.as_str()), JSON], "{}").await.status
    };
    assert_eq!(retry(&one).await, 429);
    assert_eq!((retry(&two).await, retry(&two).await), (404, 429), "counted before it is looked for");
}

#[tokio::test]
async fn first_key_is_created_only_if_no_admin_key_exists() {
    use throughline_server::FirstKey;
    let server = GuardedServer::start(silent(), &settings()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("admin-token");
    let FirstKey::Created(key) = server.request_guard.first_key(&file).await.unwrap() else {
        panic!("there was none")
    };
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written.trim(), key.reveal());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let bearer = format!("Bearer {}", key.reveal());
    assert_eq!(server.ask("GET", "/v1/keys", &[("Authorization", &bearer)], "").await.status, 200);
    assert_eq!(server.request_guard.first_key(&file).await.unwrap(), FirstKey::Exists);
    // Its owner may have put it elsewhere.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(server.request_guard.first_key(&file).await.unwrap(), FirstKey::Exists);
    assert!(!file.exists());
    // Without any key that may make keys there would be no way in.
    server.request_guard.revoke("local", key.id()).await.unwrap();
    server.key(&[KeyScope::Chat]).await;
    assert!(matches!(server.request_guard.first_key(&file).await.unwrap(), FirstKey::Created(_)));
    // Where it cannot be written, it opens nothing.
    let server = GuardedServer::start(silent(), &settings()).await;
    let error = server.request_guard.first_key(&folder.path().join("no/such/folder")).await.unwrap_err();
    assert!(error.to_string().contains("no/such/folder"), "{error}");
    let keys = server.request_guard.keys("local").await.unwrap();
    assert!(keys.iter().all(|key| key.revoked_at.is_some()), "{keys:?}");
}

#[tokio::test]
async fn sockets_end_with_their_key() {
    use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
    use futures_util::{SinkExt, StreamExt};
    use throughline_server::{HttpServer, NewApiKey};
    use tokio_tungstenite::tungstenite;
    async fn say_back(mut socket: WebSocket) {
        while let Some(Ok(message)) = socket.recv().await {
            if matches!(message, Message::Text(_)) && socket.send(message).await.is_err() {
                return;
            }
        }
    }
    let echo = axum::routing::get(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(say_back) });
    let keys = guarded_server::KeysInMemory::default();
    let request_guard = throughline_server::RequestGuard::new(&settings(), std::sync::Arc::new(keys.clone()));
    let bound = HttpServer::bind(&settings()).unwrap();
    let address = bound.address();
    let (wish, wishes) = tokio::sync::mpsc::channel(2);
    let app = request_guard.wrap(axum::Router::new().route("/v1/ws", echo));
    let serving = tokio::spawn(bound.serve(app, wishes, std::future::ready(())));
    let key = async || {
        let new = NewApiKey {
            name: "k".to_owned(),
            scopes: [KeyScope::Chat].into_iter().collect(),
            ..NewApiKey::default()
        };
        request_guard.mint("local", new).await.unwrap()
    };
    let open = async |key: &str| {
        let request = http::Request::builder()
            .uri(format!("ws://{address}/v1/ws"))
            .header("Host", address.to_string())
            .header("Authorization", format!("Bearer {key}"))
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", tungstenite::handshake::client::generate_key());
        let (mut socket, _) = tokio_tungstenite::connect_async(request.body(()).unwrap()).await.unwrap();
        socket.send(tungstenite::Message::text("hello")).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), tungstenite::Message::text("hello"));
        socket
    };
    let ((kept, _), (revoked, pass)) = (key().await, key().await);
    let (mut kept, mut revoked) = (open(&kept.reveal()).await, open(&revoked.reveal()).await);
    request_guard.revoke("local", &pass.id).await.unwrap();
    let end = tokio::time::timeout(support::PATIENCE, revoked.next()).await.expect("the socket stays");
    assert!(!matches!(end, Some(Ok(_))), "{end:?}");
    kept.send(tungstenite::Message::text("still")).await.unwrap();
    assert_eq!(kept.next().await.unwrap().unwrap(), tungstenite::Message::text("still"));
    // A socket is no reason to stay, either.
    wish.send(()).await.unwrap();
    let served = tokio::time::timeout(support::PATIENCE, serving).await.expect("it stays for the socket");
    assert_eq!(served.unwrap(), throughline_server::ServeOutcome::Drained);
    assert!(!matches!(kept.next().await, Some(Ok(tungstenite::Message::Text(_)))));
}
