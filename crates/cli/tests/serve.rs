//! `throughline serve` and `throughline keys` as processes: started, asked, told to stop, started again. R: O2, R4, S1

#![cfg(unix)]

#[cfg(feature = "postgres")]
#[path = "../../store/tests/cluster/mod.rs"]
mod cluster;
#[path = "support/serving.rs"]
mod serving;
mod support;

use serde_json::Value;
use serving::{Serving, run};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use throughline_testkit::{FakeDialect, FakeUpstream, ModelScript, ScriptQueue};

#[test]
fn the_first_start_shows_a_key_once_and_later_ones_know_it() {
    let folder = tempfile::tempdir().unwrap();
    let first = Serving::start(folder.path(), &[]);
    let token = first.token().expect("a key is shown").to_owned();
    for part in ["default → demo", "tools", "throughline.db", "/v1/models", "admin-token"] {
        assert!(first.greeting.contains(part), "{part} is not in\n{}", first.greeting);
    }
    let file = folder.path().join("data/admin-token");
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), token);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(folder.path().join("data")).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(first.get("/readyz", None).0, 200);
    assert_eq!(first.get("/v1/keys", None).0, 401);
    assert_eq!(first.get("/v1/keys", Some(&token)).0, 200);
    let (status, figures) = first.get("/metrics", Some(&token));
    assert!(status == 200 && figures.contains("throughline_"), "{status} {figures}");
    assert_eq!(first.get("/metrics", None).0, 401);
    assert_eq!(first.stop(), Some(0));
    assert!(!folder.path().join("data/server.json").exists(), "nobody looks for it any more");
    let second = Serving::start(folder.path(), &[]);
    assert_eq!(second.token(), None, "it is not shown again:\n{}", second.greeting);
    assert_eq!(second.get("/v1/keys", Some(&token)).0, 200);
}

// R: R4
#[test]
fn root_is_warned_at_the_start_and_in_doctor_unless_programs_run_as_somebody_else() {
    use std::os::unix::fs::MetadataExt;
    if std::fs::metadata("/proc/self").map_or(true, |own| own.uid() != 0) {
        println!("skipped: this is not root");
        return;
    }
    let starts = |configuration: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("throughline.toml"), configuration).unwrap();
        let (_, doctor, _) = run(folder.path(), &["doctor"]);
        let mut server = Serving::start(folder.path(), &[]);
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        let log: Vec<String> = server.log.iter().collect();
        (doctor, log.join("\n"))
    };
    let (doctor, log) = starts("");
    assert!(doctor.contains("running as root") && doctor.contains("run_as"), "{doctor}");
    assert!(log.contains("running as root") && log.contains("run_as"), "{log}");
    let (doctor, log) = starts("[tools]\nrun_as = \"64921\"\n");
    assert!(
        !doctor.contains("running as root") && doctor.contains("tool programs run as `64921`"),
        "{doctor}"
    );
    assert!(!log.contains("running as root"), "{log}");
    let (doctor, _) = starts("[tools]\nrun_as = \"no-such-user\"\n");
    assert!(doctor.contains("there is no such user in /etc/passwd"), "{doctor}");
}

// R: L5, R2
#[test]
fn a_control_group_that_is_given_is_shown_by_doctor_and_used_by_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("group");
    std::fs::create_dir(&tree).unwrap();
    for (name, text) in [
        ("cgroup.events", "populated 0\n"),
        ("cgroup.procs", ""),
        ("cgroup.controllers", "cpu memory pids\n"),
    ] {
        std::fs::write(tree.join(name), text).unwrap();
    }
    let configuration = format!("[tools]\ncontrol_groups = \"{}\"\n", tree.display());
    std::fs::write(folder.path().join("throughline.toml"), configuration).unwrap();
    let (_, doctor, _) = run(folder.path(), &["doctor"]);
    assert!(doctor.contains("pids.max, memory.max, cgroup.kill"), "{doctor}");
    assert!(doctor.contains("only against a simulated folder"), "{doctor}");
    let server = Serving::start(folder.path(), &[]);
    assert_eq!(server.stop(), Some(0));
    assert_eq!(std::fs::read_to_string(tree.join("cgroup.subtree_control")).unwrap(), "+memory");
    std::fs::write(tree.join("cgroup.procs"), "1\n").unwrap();
    let (_, doctor, _) = run(folder.path(), &["doctor"]);
    assert!(doctor.contains("other programs run in"), "{doctor}");
    let (began, _, complained) = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        !began && complained.contains("the control group") && complained.contains("cannot be used"),
        "{complained}"
    );
}

#[test]
fn the_demo_model_answers_and_the_turn_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let server = Serving::start(folder.path(), &[]);
    let token = server.token().unwrap().to_owned();
    let body = r#"{"input":[{"type":"text","text":"Hello"}]}"#;
    let (status, started) = server.ask("POST", "/v1/turns", Some(&token), body);
    assert_eq!(status, 201, "{started}");
    let started: Value = serde_json::from_str(&started).unwrap();
    let (status, events) = server.get(started["events_url"].as_str().unwrap(), Some(&token));
    assert_eq!((status, events.matches("event: stream_end").count()), (200, 1), "{events}");
    assert_eq!(server.get(started["events_url"].as_str().unwrap(), None).0, 401);
    assert_eq!(server.stop(), Some(0));
    let turn = started["turn_id"].as_str().unwrap();
    let (done, kept, said) = run(folder.path(), &["replay", turn, "--events"]);
    assert!(done && kept.lines().last().is_some_and(|line| line.contains("stream_end")), "{kept}\n{said}");
}

// R: R4
#[test]
fn the_first_page_the_documentation_and_downloads_come_with_their_own_policies() {
    let folder = tempfile::tempdir().unwrap();
    let server = Serving::start(folder.path(), &[]);
    let token = server.token().unwrap().to_owned();
    for (path, more, part) in [
        ("/home", "", "lang=\"en\""),
        ("/home", "Accept-Language: zh-CN,zh;q=0.9\r\n", "lang=\"zh-Hans\""),
        ("/docs", "", "/docs/script.js"),
    ] {
        let (head, page) = server.exchange(path, more);
        assert!(head.starts_with("http/1.1 200") && head.contains("text/html"), "{head}");
        assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self'"), "{head}");
        assert!(page.contains(part), "{page}");
        // The strictest policy lets none of these through.
        assert!(
            !page.contains("style=") && !page.contains("<script>") && !page.contains("onclick"),
            "{page}"
        );
    }
    for path in ["/home.css", "/home.js", "/docs/style.css", "/docs/script.js"] {
        assert_eq!(server.get(path, None).0, 200, "{path}");
    }
    let (status, made) = server.ask("POST", "/v1/files?name=a.txt", Some(&token), "{\"a\": 1}");
    assert_eq!(status, 201, "{made}");
    let made: Value = serde_json::from_str(&made).unwrap();
    let path = format!("/v1/files/{}/content", made["id"].as_str().unwrap());
    let (head, _) = server.exchange(&path, &format!("Authorization: Bearer {token}\r\n"));
    assert!(head.contains("content-security-policy: sandbox"), "{head}");
    assert_eq!(head.matches("content-security-policy").count(), 1, "{head}");
}

#[test]
fn what_the_greeting_suggests_works_as_it_is_printed() {
    if Command::new("curl").arg("--version").output().is_err() {
        return println!("skipped: there is no curl");
    }
    let folder = tempfile::tempdir().unwrap();
    let pasted = |server: &Serving| {
        let commands = server.suggested();
        assert_eq!(commands.len(), 2, "{}", server.greeting);
        for (command, part) in commands.iter().zip(["\"default\"", "chat.completion"]) {
            let line = format!("{command} --silent --noproxy '*'");
            let said = Command::new("sh").args(["-c", &line]).output().unwrap();
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            assert!(said.contains(part), "{command}\n{said}");
        }
    };
    let first = Serving::start(folder.path(), &[]);
    pasted(&first);
    assert_eq!(first.stop(), Some(0));
    let second = Serving::start(folder.path(), &[]);
    assert!(!second.greeting.contains("tl_"), "the key is not shown again:\n{}", second.greeting);
    pasted(&second);
    assert_eq!(second.stop(), Some(0));
    std::fs::remove_file(folder.path().join("data/admin-token")).unwrap();
    let third = Serving::start(folder.path(), &[]);
    assert!(third.greeting.contains("throughline keys create"), "{}", third.greeting);
}

// R: R3, S1
#[cfg(feature = "postgres")]
#[test]
fn a_database_keeps_keys_and_turns_when_the_server_is_killed() {
    let Some(cluster) = cluster::Cluster::start() else { return };
    let (folder, url) = (tempfile::tempdir().unwrap(), cluster.fresh());
    let first = Serving::start(folder.path(), &["--store", &url]);
    let token = first.token().expect("a key is shown").to_owned();
    let database = url.rsplit('/').next().unwrap();
    assert!(
        first.greeting.contains(&format!("/{database}")) && !first.greeting.contains("tl@"),
        "{}",
        first.greeting
    );
    let body = r#"{"input":[{"type":"text","text":"Hello"}]}"#;
    let (status, started) = first.ask("POST", "/v1/turns", Some(&token), body);
    assert_eq!(status, 201, "{started}");
    let started: Value = serde_json::from_str(&started).unwrap();
    let events_url = started["events_url"].as_str().unwrap();
    let (status, events) = first.get(events_url, Some(&token));
    assert_eq!((status, events.matches("event: stream_end").count()), (200, 1), "{events}");
    // Killed, not told to stop.
    drop(first);
    let second = Serving::start(folder.path(), &["--store", &url]);
    assert_eq!(second.token(), None, "the key is known:\n{}", second.greeting);
    let (status, again) = second.get(events_url, Some(&token));
    assert_eq!((status, again.matches("event: stream_end").count()), (200, 1), "{again}");
    assert!(!folder.path().join("data/throughline.db").exists(), "there is no file beside the database");
    assert_eq!(second.stop(), Some(0));
}

#[test]
fn one_folder_has_one_server_and_one_port_one_program() {
    let folder = tempfile::tempdir().unwrap();
    let first = Serving::start(folder.path(), &[]);
    let (done, _, said) = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(!done && said.contains("in use") && said.contains("remedy"), "{said}");
    let other = tempfile::tempdir().unwrap();
    let (done, _, said) = run(other.path(), &["serve", "--listen", first.address()]);
    assert!(!done && said.contains("is taken") && said.contains("--listen"), "{said}");
    assert!(!other.path().join("data").exists(), "nothing is made for a server that does not start");
    std::fs::write(other.path().join("throughline.toml"), "[server]\nauth = \"off\"\nlisten = \"0.0.0.0:0\"")
        .unwrap();
    let (done, _, said) = run(other.path(), &["serve"]);
    assert!(!done && said.contains("without keys"), "{said}");
    assert_eq!(first.get("/healthz", None).0, 200);
}

#[test]
fn keys_are_made_and_revoked_with_and_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let create = |name: &str| {
        let (done, made, said) = run(folder.path(), &["keys", "create", "--name", name, "--json"]);
        assert!(done, "{said}");
        let made: Value = serde_json::from_str(&made).unwrap();
        (made["key"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
    };
    let (before, before_id) = create("before");
    let server = Serving::start(folder.path(), &[]);
    let status = |key: &str| server.get("/v1/turns/x", Some(key)).0;
    assert_eq!(status(&before), 404, "a key that was made in the store");
    let (while_it_runs, _) = create("while it runs");
    assert_eq!(status(&while_it_runs), 404, "a key that the server made");
    let (done, said, _) = run(folder.path(), &["keys", "revoke", &before_id[..8]]);
    assert!(done && said.contains("before"), "{said}");
    assert_eq!((status(&before), status(&while_it_runs)), (401, 404));
    let (done, listed, _) = run(folder.path(), &["keys", "list"]);
    assert!(done && listed.contains("while it runs") && listed.contains("revoked"), "{listed}");
    assert!(!listed.contains("tl_"), "{listed}");
    for (arguments, part) in [
        (&["keys", "revoke", "zz"][..], "no valid key"),
        (&["keys", "revoke", ""], "keys begin with"),
        (&["keys", "create", "--name", "a", "--scopes", "root"], "no scope `root`"),
        (&["keys", "create", "--name", " "], "name"),
    ] {
        let (done, _, said) = run(folder.path(), arguments);
        assert!(!done && said.contains(part), "{arguments:?}\n{said}");
    }
    assert_eq!(server.stop(), Some(0));
    let (done, listed, _) = run(folder.path(), &["keys", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert!(done && listed["data"].as_array().unwrap().len() == 3, "{listed}");
}

#[test]
fn a_new_configuration_is_taken_and_a_wrong_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("throughline.toml");
    std::fs::write(&file, "").unwrap();
    let server = Serving::start(folder.path(), &[]);
    let known = |name: &str| {
        let mut socket = TcpStream::connect(server.address()).unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer.starts_with("HTTP/1.1 200")
    };
    assert!(!known("chat.example.com"));
    std::fs::write(&file, "[server]\nhosts = [\"chat.example.com\"]\ndrain_ms = 7").unwrap();
    let said = server.says("a new configuration is in use");
    assert!(said.contains("server.drain_ms") && !said.contains("server.hosts"), "{said}");
    assert!(known("chat.example.com"));
    std::fs::write(&file, "[server]\nhost = []").unwrap();
    let said = server.says("the new configuration is invalid");
    assert!(said.contains("did you mean") && said.contains("throughline.toml:2:1"), "{said}");
    assert!(known("chat.example.com"), "the one before stays");
    std::fs::write(&file, "[server]\nhosts = [\"other.example.com\"]").unwrap();
    server.says("a new configuration is in use");
    assert!(known("other.example.com") && !known("chat.example.com"));
    server.signal("-HUP");
    server.says("a new configuration is in use");
}

#[test]
fn the_doctor_knows_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let check = |part: &str| {
        let (_, said, _) = run(folder.path(), &["doctor"]);
        assert!(said.contains(part), "{part} is not in\n{said}");
        said
    };
    check("created when needed");
    let server = Serving::start(folder.path(), &[]);
    let said = check(&format!("throughline serves http://{}", server.address()));
    assert!(said.contains("open in the server") && said.contains("MiB free"), "{said}");
    assert_eq!(server.stop(), Some(0));
    std::fs::write(folder.path().join("data/throughline.db"), "something else entirely").unwrap();
    check("is not a SQLite database");
    std::fs::write(folder.path().join("throughline.toml"), "[server]\nlisten = \"192.0.2.1:80\"").unwrap();
    check("is not an address of this machine");
}

// R: O1, R4
#[test]
fn a_turn_is_counted_logged_and_shown_again_and_no_key_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), &[]);
    let token = serving.token().expect("a key is shown").to_owned();
    assert_eq!(serving.get("/metrics", None).0, 401);
    let body = r#"{"input":[{"type":"text","text":"hello"}]}"#;
    let (status, said) = serving.ask("POST", "/v1/turns", Some(&token), body);
    assert!((200..300).contains(&status), "{said}");
    let log = serving.says("turn_ended");
    let line = log.lines().find(|line| line.contains("turn_ended")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).expect("a pipe gets JSON lines");
    assert_eq!((&line["level"], &line["status"]), (&"info".into(), &"completed".into()));
    let (status, metrics) = serving.get("/metrics", Some(&token));
    assert_eq!(status, 200);
    assert!(metrics.contains("throughline_turns_total{status=\"completed\"} 1"), "{metrics}");
    assert!(!metrics.contains(&token) && !log.contains(&token));

    // The server has the store open, and is not disturbed.
    let turn = line["turn_id"].as_str().unwrap();
    let (ended_well, shown, complaint) = run(folder.path(), &["replay", turn]);
    assert!(ended_well && !shown.trim().is_empty(), "{shown}{complaint}");
    assert_eq!(serving.stop(), Some(0));
}

// R: S4
#[test]
fn a_running_server_takes_conversations_in_and_they_go_out_from_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), &[]);
    let token = serving.token().expect("a key is shown").to_owned();
    let messages = r#"[{"role":"user","content":"hello"},{"role":"assistant","content":"Hello there."}]"#;
    std::fs::write(folder.path().join("messages.json"), messages).unwrap();
    let (ended_well, said, complaint) = run(folder.path(), &["import", "messages.json", "--json"]);
    assert!(ended_well, "{complaint}");
    let said: Value = serde_json::from_str(&said).unwrap();
    let id = said["id"].as_str().unwrap();
    let (status, exported) = serving.get(&format!("/v1/conversations/{id}/export"), Some(&token));
    assert_eq!(status, 200);
    let (ended_well, beside, complaint) = run(folder.path(), &["export", id]);
    assert!(ended_well, "{complaint}");
    let turns = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert!(turns(&beside).iter().any(|line| line.contains("Hello there.")), "{beside}");
    for line in turns(&beside) {
        assert!(exported.contains(&line), "the server says the same: {line}\n{exported}");
    }
    assert_eq!(serving.stop(), Some(0));
}

// R: S5
#[test]
fn bytes_of_upstreams_are_kept_and_decoded_again() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let scripts = (0..3).flat_map(|_| {
        let call = ModelScript::new().say("Let me look. 看看。").call("time_now", serde_json::json!({}));
        [call, ModelScript::new().say("It is noon.")]
    });
    let upstream = runtime.block_on(FakeUpstream::start(ScriptQueue::new(scripts))).unwrap();
    let dialects = [FakeDialect::OpenaiChat, FakeDialect::Anthropic, FakeDialect::Gemini];
    let upstreams: String = dialects
        .map(|dialect| {
            let (name, url) = (dialect.name(), upstream.base_url(dialect));
            format!("[upstreams.{name}]\ndialect = \"{name}\"\nbase_url = \"{url}\"\n")
        })
        .concat();
    std::fs::write(
        folder.path().join("throughline.toml"),
        format!("[store]\nkeep_raw = \"on\"\n[agents.default]\nmodel = \"openai-chat/mock\"\n{upstreams}"),
    )
    .unwrap();
    let serving = Serving::start(folder.path(), &[]);
    let token = serving.token().expect("a key is shown").to_owned();
    let mut turns = Vec::new();
    for dialect in dialects {
        let model = format!("{}/mock", dialect.name());
        let body =
            serde_json::json!({"input": [{"type": "text", "text": "What time is it?"}], "model": model})
                .to_string();
        let (status, started) = serving.ask("POST", "/v1/turns", Some(&token), &body);
        assert_eq!(status, 201, "{started}");
        let turn = serde_json::from_str::<Value>(&started).unwrap()["turn_id"].as_str().unwrap().to_owned();
        let ended = serving.says("turn_ended");
        assert!(ended.contains(&turn) && ended.contains("completed"), "{ended}");
        turns.push(turn);
    }
    // Also what is written behind the turns' backs is there when the server has stopped.
    assert_eq!(serving.stop(), Some(0));
    for (turn, dialect) in turns.iter().zip(dialects) {
        let (done, said, complaint) = run(folder.path(), &["replay", turn, "--decode-raw"]);
        assert!(done, "{said}{complaint}");
        assert_eq!(said.matches("✔ the same\n").count(), 2, "two answers of {}: {said}", dialect.name());
        assert!(said.contains(&format!("step 1, attempt 1  {}/mock", dialect.name())), "{said}");
    }
    let plain = tempfile::tempdir().unwrap();
    let serving = Serving::start(plain.path(), &[]);
    let token = serving.token().expect("a key is shown").to_owned();
    serving.ask("POST", "/v1/turns", Some(&token), r#"{"input":[{"type":"text","text":"hello"}]}"#);
    serving.says("turn_ended");
    let (done, _, said) = run(plain.path(), &["replay", "--decode-raw"]);
    assert!(!done && said.contains("no upstream bytes are stored") && said.contains("keep_raw"), "{said}");

    // One letter of what was received is another one.
    let store = folder.path().join("data/throughline.db");
    runtime.block_on(plant_a_difference(&store, &turns[0]));
    let (done, said, _) = run(folder.path(), &["replay", "turn_planted", "--decode-raw"]);
    assert!(!done && said.contains("✘ different") && said.contains("text @7"), "{said}");
    assert!(said.contains("- It is noon.") && said.contains("+ It is nOon."), "{said}");
    let (done, said, _) = run(folder.path(), &["replay", "turn_planted", "--decode-raw", "--json"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert!(!done && said[1]["outcome"]["different"][0]["at"] == 7, "{said}");
}

/// The same turn once more, whose upstream said something else.
async fn plant_a_difference(path: &Path, turn: &str) {
    use throughline_store::catalog::{NewTurnRow, RawId, TurnPlacement};
    use throughline_store::{Catalog, Log, SqliteSettings, SqliteStore};
    let settings = SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() };
    let store = SqliteStore::open(path, settings).await.unwrap();
    let user = throughline_server::gate::LOCAL_USER;
    let row = store.turn(user, turn).await.unwrap().unwrap();
    let planted = NewTurnRow {
        id: "turn_planted".into(),
        message_id: "m".into(),
        placement: TurnPlacement::Standalone,
        idempotency: None,
        stored: row.stored,
        agent: row.agent,
        model: row.model,
        mode: row.mode,
        input_text: row.input_text,
        files: Vec::new(),
        created_at: 1,
    };
    store.create_turn(user, planted).await.unwrap();
    let epoch = store.claim("turn_planted").await.unwrap().epoch;
    let records = store.read(turn, 0, 1_000).await.unwrap();
    store.append("turn_planted", epoch, records.into()).await.unwrap();
    for kept in store.raw_of_turn(user, turn).await.unwrap() {
        let bytes = store.raw(user, &kept.id).await.unwrap().unwrap();
        let bytes = String::from_utf8(bytes).unwrap().replace("noon", "nOon");
        let id = RawId { turn_id: "turn_planted".into(), ..kept.id };
        store.append_raw(user, &id, bytes.as_bytes(), 1).await.unwrap();
    }
    store.close().await;
}
