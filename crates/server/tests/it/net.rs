//! Connections that are slow, large, many or leaving; certificates; and the end.

use crate::guarded_server::{Answer, GuardedServer, read_all, settings};
use crate::support;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use throughline::config::{AuthMode, ServerLimits, ServerSettings};
use throughline_server::{BIND_RETRY_FOR, BindError, HttpServer, KeyScope, ServeOutcome};
use throughline_testkit::{BodyBreak, ModelScript, ScriptQueue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn silent() -> ScriptQueue {
    ScriptQueue::new([])
}

/// Times that a test can wait for.
fn hasty() -> ServerSettings {
    let limits = ServerLimits { header_ms_max: 200, body_ms_max: 200, ..ServerLimits::default() };
    ServerSettings { limits, ..settings() }
}

/// Sizes that are quickly sent.
fn narrow() -> ServerSettings {
    let limits = ServerLimits {
        body_bytes_max: 64 << 10,
        header_bytes_max: 16 << 10,
        json_depth_max: 8,
        ..ServerLimits::default()
    };
    ServerSettings { limits, ..settings() }
}

/// The server's reply to a client that sends this and then nothing; it hangs up soon.
async fn send_raw(server: &GuardedServer, bytes: &str) -> String {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    socket.write_all(bytes.as_bytes()).await.unwrap();
    let said = tokio::time::timeout(support::PATIENCE, read_all(&mut socket)).await;
    said.unwrap_or_else(|_| panic!("the server waits for ever behind {bytes:?}"))
}

#[tokio::test]
async fn stalled_clients_time_out() {
    let server = GuardedServer::start(silent(), &hasty()).await;
    let (key, _) = server.key(&[KeyScope::Chat]).await;
    for head in [
        "",
        "G",
        "PRI * HTTP/2.0\r\n\r\n",
        "GET /healthz HT",
        "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    ] {
        let said = send_raw(&server, head).await;
        assert!(!said.contains("200 OK"), "{head}: {said}");
    }
    // A body that does not come: with a good key, and with none.
    let of = |key: &str| {
        format!(
            "POST /v1/turns HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n{key}\r\n{{",
            server.address
        )
    };
    let said = send_raw(&server, &of(&format!("Authorization: Bearer {key}\r\n"))).await;
    assert!(said.starts_with("HTTP/1.1 408") && said.contains("body_ms_max"), "{said}");
    let said = send_raw(&server, &of("")).await;
    assert!(said.starts_with("HTTP/1.1 401"), "{said}");
    // An answered connection that is not used again.
    let said = send_raw(&server, &format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address)).await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
}

#[tokio::test]
async fn oversized_requests_are_rejected_with_the_limit_name() {
    let server = GuardedServer::start(silent(), &narrow()).await;
    let (key, _) = server.key(&[KeyScope::Chat]).await;
    let bearer = format!("Bearer {key}");
    let headers = [("Authorization", bearer.as_str()), JSON];
    // With a declared length: refused unread, also without a key.
    for headers in [&headers[..], &[JSON]] {
        let answer = server.ask("POST", "/v1/turns", headers, &" ".repeat((64 << 10) + 1)).await;
        assert_eq!((answer.status, answer.code().as_str()), (413, "body_bytes_max"), "{answer:?}");
    }
    // Without a declared length.
    let chunk = "x".repeat(32 << 10);
    let chunks: String = (0..3).map(|_| format!("{:x}\r\n{chunk}\r\n", chunk.len())).collect();
    let said = server
        .raw(&format!(
            "POST /v1/turns HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\nContent-Type: application/json\r\n\
             Transfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n",
            server.address
        ))
        .await;
    assert!(said.starts_with("HTTP/1.1 413") && said.contains("body_bytes_max"), "{said}");
    // Nested.
    let answer = server.ask("POST", "/v1/turns", &headers, &"[".repeat(9)).await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "json_depth_max"));
    // However it is called: what is read as JSON is bounded as JSON.
    for kind in
        ["Application/JSON", "application/json;charset=utf-8", "application/vnd.api+JSON", "text/x+json"]
    {
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", kind)];
        let answer = server.ask("POST", "/v1/turns", &headers, &"[".repeat(9)).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "json_depth_max"), "{kind}");
    }
    // A head.
    let long = format!(
        "GET /healthz HTTP/1.1\r\nHost: {}\r\nX-Long: {}\r\n\r\n",
        server.address,
        "x".repeat(40 << 10)
    );
    let said = server.raw(&long).await;
    assert!(said.starts_with("HTTP/1.1 431") || said.is_empty(), "{said}");
    let answer = server.ask("GET", "/healthz", &[], "").await;
    assert_eq!(answer.status, 200, "and it goes on");
}

/// Python's `http.client` and others read nothing before they have written everything.
#[tokio::test]
async fn rejected_upload_is_drained_so_the_client_reads_the_reason() {
    let server = GuardedServer::start(silent(), &settings()).await;
    let (key, _) = server.key(&[KeyScope::Chat]).await;
    let bearer = format!("Bearer {key}");
    let large = " ".repeat(70 << 20);
    for (path, key, mib, status, code) in [
        ("/v1/turns", bearer.as_str(), 20, 413, "body_bytes_max"),
        ("/v1/chat/completions", &bearer, 70, 413, "chat_body_bytes_max"),
        ("/v1/files?name=x", &bearer, 34, 413, "upload_bytes_max"),
        ("/v1/conversations/import", &bearer, 34, 413, "upload_bytes_max"),
        ("/v1/chat/completions", "Bearer tl_no", 60, 401, "unauthenticated"),
        ("/v1/files?name=x", "Bearer tl_no", 30, 401, "unauthenticated"),
        ("/nothing/here", &bearer, 3, 404, "no_such_route"),
    ] {
        let body = &large[..mib << 20];
        let answer = server.ask("POST", path, &[("Authorization", key), JSON], body).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{path}: {answer:?}");
        if code == "chat_body_bytes_max" {
            // Text of this size is refused before its end.
            continue;
        }
        let chunked = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: {key}\r\nContent-Type: application/json\r\n\
             Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            server.address,
            body.len()
        );
        let answer = Answer::of(&server.raw(&chunked).await);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{path}, chunked: {answer:?}");
    }
    // The connection can be used after the refused body.
    let refused = &large[..20 << 20];
    let both = format!(
        "POST /v1/turns HTTP/1.1\r\nHost: {0}\r\nAuthorization: {bearer}\r\nContent-Length: {1}\r\n\r\n{refused}\
         GET /healthz HTTP/1.1\r\nHost: {0}\r\nConnection: close\r\n\r\n",
        server.address,
        refused.len()
    );
    let said = server.raw(&both).await;
    assert!(said.starts_with("HTTP/1.1 413") && said.contains("HTTP/1.1 200"), "{said}");
    // A client that waits for `100 Continue` does not get it.
    let head = format!(
        "POST /v1/turns HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\nContent-Length: {}\r\n\
         Connection: close\r\nExpect: 100-continue\r\n\r\n",
        server.address,
        large.len()
    );
    let said = server.raw(&head).await;
    assert!(said.starts_with("HTTP/1.1 413"), "{said}");
}

#[tokio::test]
async fn handler_panic_closes_only_its_connection() {
    async fn panics() -> &'static str {
        panic!("as it was asked to")
    }
    let limits = ServerLimits { connections_max: 1, ..ServerLimits::default() };
    let bound = HttpServer::bind(&ServerSettings { limits, ..settings() }).unwrap();
    let address = bound.address();
    let app = axum::Router::new()
        .route("/boom", axum::routing::get(panics))
        .route("/", axum::routing::get(|| async { "well" }));
    let (wish, wishes) = tokio::sync::mpsc::channel(1);
    let serving = tokio::spawn(bound.serve(app, wishes, std::future::ready(())));
    let ask = async |path: &str| {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        tokio::time::timeout(support::PATIENCE, read_all(&mut socket)).await.expect("an answer or an end")
    };
    // There is one permit: a panic releases it.
    for _ in 0..3 {
        assert_eq!(ask("/boom").await, "");
        assert!(ask("/").await.ends_with("well"));
    }
    wish.send(()).await.unwrap();
    assert_eq!(serving.await.unwrap(), ServeOutcome::Drained);
}

#[tokio::test]
async fn connections_over_the_limit_wait_for_a_free_slot() {
    let limits = ServerLimits { connections_max: 2, ..ServerLimits::default() };
    let server = GuardedServer::start(silent(), &ServerSettings { limits, ..settings() }).await;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    let mut places = Vec::new();
    for _ in 0..2 {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        socket.readable().await.unwrap();
        places.push(socket);
    }
    let mut third = TcpStream::connect(server.address).await.unwrap();
    third.write_all(request.as_bytes()).await.unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(200), third.readable()).await;
    assert!(waits.is_err(), "it has no place yet");
    drop(places.pop());
    tokio::time::timeout(support::PATIENCE, third.readable()).await.expect("a place is free").unwrap();
}

/// An answer up to the end of its JSON.
async fn read_to_brace(socket: &mut TcpStream) -> String {
    let mut read = String::new();
    while !read.ends_with('}') {
        read.push(char::from(socket.read_u8().await.unwrap()));
    }
    read
}

/// An address below the range of ephemeral ports, so that no other program gets it in the meantime.
fn own_address() -> SocketAddr {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let mut addresses = (first..32_000).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    addresses.find(|address| std::net::TcpListener::bind(address).is_ok()).expect("a free port")
}

#[tokio::test]
async fn shutdown_stops_accepting_drains_and_closes_idle() {
    let (drain, drained) = oneshot::channel::<()>();
    let wait = async move { drained.await.unwrap_or(()) };
    let again = ServerSettings { listen: own_address(), ..settings() };
    let mut server = GuardedServer::start_draining(silent(), &again, wait).await;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(request.as_bytes()).await.unwrap();
    assert!(read_to_brace(&mut idle).await.starts_with("HTTP/1.1 200"));
    server.wish.send(()).await.unwrap();
    // The port is free, which shows that the server has ended.
    support::eventually("the port is free", async || match HttpServer::bind(&again) {
        Ok(_) => true,
        Err(error) => {
            assert!(matches!(error, BindError::InUse { .. }), "{error}");
            false
        }
    })
    .await;
    // What was open is served while it drains, and learns of it.
    idle.write_all(request.as_bytes()).await.unwrap();
    assert!(read_to_brace(&mut idle).await.starts_with("HTTP/1.1 200"));
    idle.write_all(request.replace("healthz", "readyz").as_bytes()).await.unwrap();
    let said = read_to_brace(&mut idle).await;
    assert!(said.starts_with("HTTP/1.1 503") && said.contains("draining"), "{said}");
    drain.send(()).unwrap();
    let served = server.serving.take().unwrap();
    assert_eq!(
        tokio::time::timeout(support::PATIENCE, served).await.unwrap().unwrap(),
        ServeOutcome::Drained
    );
    assert_eq!(read_all(&mut idle).await, "");
}

#[tokio::test]
async fn second_shutdown_signal_aborts_the_drain() {
    let mut server = GuardedServer::start_draining(silent(), &settings(), std::future::pending()).await;
    server.wish.send(()).await.unwrap();
    server.wish.send(()).await.unwrap();
    let served = server.serving.take().unwrap();
    assert_eq!(
        tokio::time::timeout(support::PATIENCE, served).await.unwrap().unwrap(),
        ServeOutcome::Aborted
    );
}

fn refused(settings: &ServerSettings) -> BindError {
    match HttpServer::bind(settings) {
        Ok(bound) => panic!("it listens on {}", bound.address()),
        Err(error) => error,
    }
}

#[tokio::test]
async fn bind_errors_name_the_reason_and_a_remedy() {
    let open = ServerSettings { listen: ([0, 0, 0, 0], 0).into(), auth: AuthMode::Off, ..settings() };
    let error = refused(&open);
    assert!(matches!(error, BindError::PublicWithoutKeys { .. }), "{error}");
    assert!(
        error.to_string().contains("without API keys") && error.remedy().contains("127.0.0.1"),
        "{error}"
    );
    let first = HttpServer::bind(&settings()).unwrap();
    let error = refused(&ServerSettings { listen: first.address(), ..settings() });
    assert!(matches!(error, BindError::InUse { .. }), "{error}");
    assert!(
        error
            .remedy()
            .contains(&format!("--listen 127.0.0.1:{}", first.address().port().wrapping_add(1).max(1024)))
    );
    // Of a block that is for documentation (RFC 5737).
    let error =
        refused(&ServerSettings { listen: "192.0.2.1:0".parse::<SocketAddr>().unwrap(), ..settings() });
    assert!(matches!(error, BindError::NotLocal { .. }), "{error}");
    let everywhere = HttpServer::bind(&ServerSettings { listen: ([0, 0, 0, 0], 0).into(), ..settings() });
    assert!(everywhere.is_ok(), "with keys it may");
}

// The port is still held by a dying process: seen right after `kill -9`.
#[tokio::test(start_paused = true)]
async fn bind_retry_takes_a_freed_port_and_gives_up_in_time() {
    let holder = HttpServer::bind(&settings()).unwrap();
    let same = ServerSettings { listen: holder.address(), ..settings() };
    let (began, freed_after) = (tokio::time::Instant::now(), BIND_RETRY_FOR - Duration::from_millis(50));
    let frees = async {
        tokio::time::sleep(freed_after).await;
        drop(holder);
    };
    let (bound, ()) = tokio::join!(HttpServer::bind_with_retry(&same), frees);
    let bound = bound.unwrap();
    assert_eq!(bound.address(), same.listen);
    assert!(began.elapsed() >= freed_after && began.elapsed() <= BIND_RETRY_FOR);

    let began = tokio::time::Instant::now();
    let Err(error) = HttpServer::bind_with_retry(&same).await else { panic!("two listen on one port") };
    assert_eq!(error.to_string(), format!("{} is in use by another program", same.listen));
    assert!(began.elapsed() >= BIND_RETRY_FOR);
    assert!(began.elapsed() < BIND_RETRY_FOR + Duration::from_millis(100));
}

#[cfg(feature = "tls-server")]
mod tls {
    use super::*;
    use std::path::Path;
    use throughline::config::TlsSection;

    fn write(folder: &Path, name: &str) -> (TlsSection, String) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let files = TlsSection { cert: folder.join("cert.pem"), key: folder.join("key.pem") };
        std::fs::write(&files.cert, made.cert.pem()).unwrap();
        std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        (files, made.cert.pem())
    }

    async fn get(server: &GuardedServer, certificate: &str) -> reqwest::Result<reqwest::Response> {
        let root = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
        let client = reqwest::Client::builder().tls_certs_only([root]).no_proxy().build().unwrap();
        client.get(format!("https://localhost:{}/healthz", server.address.port())).send().await
    }

    #[tokio::test]
    async fn https_is_served_and_a_new_certificate_reloaded() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let (files, first) = write(folder.path(), "localhost");
        let server = GuardedServer::start(silent(), &ServerSettings { tls: Some(files), ..settings() }).await;
        let answer = get(&server, &first).await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.version()), (200, http::Version::HTTP_2));
        // A client without TLS gets no answer.
        let said = server.raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        assert!(!said.contains("HTTP/1.1"), "{said}");
        let (_, second) = write(folder.path(), "localhost");
        let is_taken = async || get(&server, &second).await.is_ok();
        support::eventually("the new certificate is taken", is_taken).await;
        assert!(get(&server, &first).await.is_err(), "the old one is gone");
    }

    #[tokio::test]
    async fn certificate_errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (files, _) = write(folder.path(), "localhost");
        let with = |files: &TlsSection| {
            refused(&ServerSettings { tls: Some(files.clone()), ..settings() }).to_string()
        };
        let missing = TlsSection { cert: folder.path().join("none.pem"), ..files.clone() };
        assert!(
            with(&missing).contains("the certificate") && with(&missing).contains("none.pem"),
            "{}",
            with(&missing)
        );
        std::fs::write(&files.key, "no key").unwrap();
        assert!(with(&files).contains("the private key"), "{}", with(&files));
        let (other, _) = write(
            &{
                let other = folder.path().join("other");
                std::fs::create_dir(&other).unwrap();
                other
            },
            "localhost",
        );
        let (mixed, _) = write(folder.path(), "localhost");
        std::fs::copy(&other.key, &mixed.key).unwrap();
        assert!(with(&mixed).contains("cannot be used"), "{}", with(&mixed));
    }
}

/// A chat of 2 MiB with a picture in it, as it is written.
fn large_chat(server: &GuardedServer, bearer: &str, length: &str) -> String {
    let picture = "A".repeat(2 << 20);
    let url = format!("data:image/png;base64,{picture}");
    let content = json!([{"type": "image_url", "image_url": {"url": url}}]);
    let body = json!({"model": "default", "messages": [{"role": "user", "content": content}]}).to_string();
    let (length, body) = match length {
        "said" => (format!("Content-Length: {}", body.len()), body),
        _ => ("Transfer-Encoding: chunked".to_owned(), format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())),
    };
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\nConnection: close\r\n\
         Content-Type: application/json\r\n{length}\r\n\r\n{body}",
        server.address
    )
}

#[tokio::test]
async fn large_chats_are_limited_per_key_and_small_ones_are_not() {
    let limits = ServerLimits {
        large_bodies_bytes_per_key_max: 3 << 20,
        large_body_wait_ms_max: 200,
        ..ServerLimits::default()
    };
    let hi = || ModelScript::new().say("Hi.");
    let silent = hi().broken_at(0, BodyBreak::Stall);
    let scripts = [silent, hi(), hi(), hi()];
    let server =
        GuardedServer::start(ScriptQueue::new(scripts), &ServerSettings { limits, ..settings() }).await;
    let (key, _) = server.key(&[KeyScope::Chat]).await;
    let (other, _) = server.key(&[KeyScope::Chat]).await;
    let [bearer, other] = [key, other].map(|key| format!("Bearer {key}"));
    let mut first = TcpStream::connect(server.address).await.unwrap();
    first.write_all(large_chat(&server, &bearer, "said").as_bytes()).await.unwrap();
    support::eventually("the first is asked", async || server.asked() == 1).await;
    for length in ["said", "not said"] {
        let refused = Answer::of(&server.raw(&large_chat(&server, &bearer, length)).await);
        assert_eq!((refused.status, refused.code().as_str()), (429, "large_bodies_bytes_per_key_max"));
        assert_eq!(refused.header("retry-after"), Some("5"), "{refused:?}");
    }
    let small = r#"{"model": "default", "messages": [{"role": "user", "content": "Hi"}]}"#;
    let headers = [("Authorization", bearer.as_str()), JSON];
    assert_eq!(server.ask("POST", "/v1/chat/completions", &headers, small).await.status, 200);
    assert_eq!(Answer::of(&server.raw(&large_chat(&server, &other, "said")).await).status, 200);
    drop(first);
    support::eventually("whoever left waits for nothing", async || {
        Answer::of(&server.raw(&large_chat(&server, &bearer, "not said")).await).status == 200
    })
    .await;
}
