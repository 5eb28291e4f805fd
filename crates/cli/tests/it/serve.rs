//! `throughline serve` and `throughline keys` as processes: started, used, stopped, started again.

#![cfg(unix)]

#[cfg(feature = "postgres")]
use crate::cluster;
use crate::support::serving::{PATIENCE, Serving, run};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use throughline_testkit::{FakeDialect, FakeUpstream, ModelScript, ScriptQueue};

#[test]
fn first_start_shows_the_key_once_and_it_stays_valid() {
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

#[test]
fn running_as_root_is_warned_unless_run_as_is_set() {
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
    assert!(doctor.contains("unknown user in /etc/passwd"), "{doctor}");
}

#[test]
fn control_group_is_shown_by_doctor_and_used_by_serve() {
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
fn demo_turn_is_streamed_and_stored() {
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

/// A PDF with one page with this text.
fn pdf(text: &str) -> String {
    let content = format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 5 0 R >> >> /Contents 4 0 R >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let (mut file, mut table) = ("%PDF-1.4\n".to_owned(), String::new());
    for (at, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    let start = file.len();
    format!(
        "{file}xref\n0 6\n0000000000 65535 f \n{table}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    )
}

#[test]
fn pdf_text_is_extracted_within_a_memory_limit() {
    let read = |configuration: &str, content: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("throughline.toml"), configuration).unwrap();
        let server = Serving::start(folder.path(), &[]);
        let token = server.token().unwrap().to_owned();
        let more = format!("Authorization: Bearer {token}\r\nContent-Type: application/pdf\r\n");
        let answer = server.raw("POST", "/v1/files?name=a.pdf", &more, content);
        let (_, file) = answer.split_once("\r\n\r\n").unwrap();
        let file: Value = serde_json::from_str(file).unwrap_or_else(|_| panic!("{answer}"));
        let path = format!("/v1/files/{}/text", file["id"].as_str().unwrap());
        let (status, text) = server.get(&path, Some(&token));
        assert_eq!(server.get("/readyz", None).0, 200);
        let text: Value = serde_json::from_str(&text).unwrap();
        (status, text)
    };
    let (status, text) = read("", &pdf("The answer is 42"));
    let page = serde_json::json!({"pages": 1, "texts": [{"page": 1, "text": "The answer is 42"}], "unreadable_pages": []});
    assert_eq!((status, text), (200, page));
    // A page tree that is its own child, and lists in lists in lists.
    let loops = pdf("x").replace("/Kids [3 0 R]", "/Kids [2 0 R]");
    assert!([200, 422].contains(&read("", &loops).0));
    let deep = pdf("x").replace("/Kids [3 0 R]", &format!("/Kids {}", "[".repeat(200_000)));
    assert!([200, 422].contains(&read("", &deep).0));
    if cfg!(target_os = "linux") {
        // With so little memory no process begins.
        let (status, said) = read("[server.limits]\npdf_memory_bytes_max = 1\n", &pdf("x"));
        assert_eq!((status, said["error"]["code"].as_str()), (422, Some("unreadable_pdf")), "{said}");
    }
}

#[test]
fn key_rejected_before_a_fallback_is_in_log_and_doctor() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let upstream =
        runtime.block_on(FakeUpstream::start(ScriptQueue::new([ModelScript::status(401)]))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let configuration = format!(
        "[upstreams.oa]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\n\
         [agents.default]\nmodel = \"oa/m\"\nfallback = [\"demo\"]\n",
        upstream.base_url(FakeDialect::OpenaiChat)
    );
    std::fs::write(folder.path().join("throughline.toml"), configuration).unwrap();
    let (_, before, _) = run(folder.path(), &["doctor"]);
    assert!(!before.contains("its last answer"), "{before}");

    let server = Serving::start(folder.path(), &[]);
    let token = server.token().unwrap().to_owned();
    let body = r#"{"input":[{"type":"text","text":"Hello"}]}"#;
    let (status, started) = server.ask("POST", "/v1/turns", Some(&token), body);
    assert_eq!(status, 201, "{started}");
    let started: Value = serde_json::from_str(&started).unwrap();
    let (_, events) = server.get(started["events_url"].as_str().unwrap(), Some(&token));
    assert!(events.contains(r#""status":"completed""#), "the fallback answers: {events}");
    let log = server.says("upstream_failed");
    let line: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!((&line["level"], &line["upstream"]), (&"warn".into(), &"oa".into()), "{line}");
    let why = "Incorrect API key provided.";
    assert_eq!(line["why"], why, "{line}");
    assert!(line["remedy"].as_str().unwrap().contains("demo"), "{line}");

    let (ended_well, doctor, _) = run(folder.path(), &["doctor"]);
    let finding = doctor.lines().find(|line| line.contains("its last answer")).expect(&doctor);
    assert!(finding.contains("oa") && finding.contains(why), "{finding}");
    assert!(doctor.contains("→ throughline connect oa"), "{doctor}");
    assert!(!ended_well, "something that is configured does not work");
}

#[test]
fn pages_and_downloads_have_content_security_policies() {
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
fn commands_in_the_greeting_work_as_printed() {
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

#[cfg(feature = "postgres")]
#[test]
fn postgres_keeps_keys_and_turns_when_the_server_is_killed() {
    let Some(cluster) = cluster::Cluster::start() else { return };
    let (folder, url) = (tempfile::tempdir().unwrap(), cluster.fresh());
    let first = Serving::start(folder.path(), &["--store", &url]);
    let token = first.token().expect("a key is shown").to_owned();
    let database = url.rsplit('/').next().unwrap();
    assert!(first.greeting.contains(&format!("/{database}")), "{}", first.greeting);
    let body = r#"{"input":[{"type":"text","text":"Hello"}]}"#;
    let (status, started) = first.ask("POST", "/v1/turns", Some(&token), body);
    assert_eq!(status, 201, "{started}");
    let started: Value = serde_json::from_str(&started).unwrap();
    let events_url = started["events_url"].as_str().unwrap();
    let (status, events) = first.get(events_url, Some(&token));
    assert_eq!((status, events.matches("event: stream_end").count()), (200, 1), "{events}");
    // Killed, not stopped.
    drop(first);
    let second = Serving::start(folder.path(), &["--store", &url]);
    assert_eq!(second.token(), None, "the key is known:\n{}", second.greeting);
    let (status, again) = second.get(events_url, Some(&token));
    assert_eq!((status, again.matches("event: stream_end").count()), (200, 1), "{again}");
    assert!(!folder.path().join("data/throughline.db").exists(), "there is no file beside the database");
    assert_eq!(second.stop(), Some(0));
}

#[test]
fn second_server_on_the_same_folder_or_port_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let first = Serving::start(folder.path(), &[]);
    let (done, _, said) = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(!done && said.contains("in use") && said.contains("remedy"), "{said}");
    let other = tempfile::tempdir().unwrap();
    let (done, _, said) = run(other.path(), &["serve", "--listen", first.address()]);
    assert!(!done && said.contains("is in use") && said.contains("--listen"), "{said}");
    assert!(!other.path().join("data").exists(), "nothing is made for a server that does not start");
    std::fs::write(other.path().join("throughline.toml"), "[server]\nauth = \"off\"\nlisten = \"0.0.0.0:0\"")
        .unwrap();
    let (done, _, said) = run(other.path(), &["serve"]);
    assert!(!done && said.contains("without API keys"), "{said}");
    assert_eq!(first.get("/healthz", None).0, 200);
}

/// `cargo xtask verify --only limits` measures how much.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#[test]
fn server_has_one_jemalloc_background_thread() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), &[]);
    let of_the_allocator = || serving.threads().iter().filter(|name| name.starts_with("jemalloc")).count();
    // It gives itself its name.
    let until = Instant::now() + PATIENCE;
    while of_the_allocator() == 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(of_the_allocator(), 1);
}

#[test]
fn keys_are_created_and_revoked_with_and_without_a_server() {
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
fn users_are_added_and_removed_with_and_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let done = |arguments: &[&str]| {
        let (done, printed, said) = run(folder.path(), arguments);
        assert!(done, "{arguments:?}\n{said}");
        printed
    };
    let key = |arguments: &[&str]| {
        let made: Value = serde_json::from_str(&done(arguments)).unwrap();
        made["key"].as_str().unwrap().to_owned()
    };
    assert!(done(&["users", "list"]).contains("local"), "the first person");
    done(&["users", "add", "Ann", "--turns-per-day", "0"]);
    let before = key(&["keys", "create", "--name", "a", "--user", "ann", "--json"]);
    let server = Serving::start(folder.path(), &[]);
    let answer = server.ask("POST", "/v1/turns", Some(&before), r#"{"input":[{"type":"text","text":"Hi"}]}"#);
    assert_eq!(answer.0, 429, "{}", answer.1);
    done(&["users", "set", "ann", "--turns-per-day", "none", "--tokens-per-month", "1_000_000"]);
    done(&["users", "add", "bob", "--admin"]);
    let bob = key(&["keys", "create", "--name", "b", "--user", "bob", "--scopes", "admin,chat", "--json"]);
    assert_eq!(server.get("/v1/users", Some(&bob)).0, 200);
    let listed = done(&["users", "list"]);
    assert!(listed.contains("0 d, 0/1000000 m") && listed.contains("bob"), "{listed}");
    let listed = done(&["keys", "list"]);
    assert!(listed.contains("ann") && listed.contains("bob") && listed.contains("local"), "{listed}");
    assert!(!done(&["keys", "list", "--user", "ann"]).contains("bob"));
    let id: Value = serde_json::from_str(&done(&["keys", "list", "--user", "ann", "--json"])).unwrap();
    let id = id["data"][0]["id"].as_str().unwrap().to_owned();
    done(&["keys", "set", &id, "--models", "other/m"]);
    assert_eq!(server.get("/v1/models", Some(&before)).1.matches("\"id\"").count(), 0);
    let removed = done(&["users", "remove", "ann"]);
    assert!(removed.contains("users add ann") && removed.contains("--delete-data"), "{removed}");
    assert_eq!(server.get("/v1/me", Some(&before)).0, 401);
    for (arguments, part) in [
        (&["users", "add", "bob"][..], "already a person `bob`"),
        (&["users", "add", "a b"], "letters"),
        (&["users", "remove", "nobody"], "no person `nobody`"),
        (&["users", "remove", "local"], "first person"),
        (&["users", "set", "bob", "--turns-per-day", "many"], "no limit"),
        (&["keys", "create", "--name", "k", "--user", "ann"], "ann"),
    ] {
        let (done, _, said) = run(folder.path(), arguments);
        assert!(!done && said.contains(part), "{arguments:?}\n{said}");
    }
    assert_eq!(server.stop(), Some(0));
    assert!(done(&["users", "remove", "ann", "--delete-data"]).contains("deleted: 0 conversations"));
    assert!(!done(&["users", "list"]).contains("ann"));
    assert!(done(&["users", "set", "bob", "--no-admin"]).contains("user"));
}

#[test]
fn valid_config_is_reloaded_and_an_invalid_one_is_not() {
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

/// A rule with a typo protects nothing, so it is reported at the start and on every reload.
#[test]
fn policy_rule_matching_no_tool_is_logged_at_start_and_reload() {
    let folder = tempfile::tempdir().unwrap();
    let configuration = |tool: &str| {
        format!(
            "[upstreams.mock]\ndialect = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\n[agents.default]\n\
             model = \"mock/m\"\ntool_call = {{ enabled = true }}\n\n[[agents.default.policy]]\ndecide = \"deny\"\n\
             tool = \"{tool}\"\n"
        )
    };
    let file = folder.path().join("throughline.toml");
    std::fs::write(&file, configuration("demo.calender")).unwrap();
    let server = Serving::start(folder.path(), &["--demo-tools"]);
    let said = server.says("demo.calender");
    assert!(said.contains("policy of the agent `default`") && said.contains("demo.calendar"), "{said}");
    std::fs::write(&file, configuration("demo.wether")).unwrap();
    let said = server.says("demo.wether");
    assert!(said.contains("demo.weather"), "with the nearest name: {said}");
    // A rule that matches is not reported.
    std::fs::write(&file, configuration("demo.weather")).unwrap();
    server.says("a new configuration is in use");
    server.signal("-HUP");
    let said = server.says("a new configuration is in use");
    assert!(!said.contains("policy of the agent"), "{said}");
}

#[test]
fn doctor_reports_the_server_and_its_store() {
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

#[test]
fn turn_is_counted_logged_and_replayed_without_keys() {
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

#[test]
fn import_and_export_work_with_a_running_server() {
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

#[test]
fn raw_upstream_bytes_are_stored_and_decoded_again() {
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
    // Rows written in the background are complete when the server has stopped.
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

/// Records the same turn once more, with a different reply of the upstream.
async fn plant_a_difference(path: &Path, turn: &str) {
    use throughline_store::{Catalog, Log, NewTurnRow, RawId, SqliteSettings, SqliteStore, TurnPlacement};
    let settings = SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() };
    let store = SqliteStore::open(path, settings).await.unwrap();
    let user = throughline_server::LOCAL_USER;
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
        charge: Default::default(),
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

#[test]
fn trusted_proxy_and_oidc_sign_in_follow_the_config() {
    let folder = tempfile::tempdir().unwrap();
    let configuration = "[server.trusted_proxy]\nheader = \"X-Forwarded-User\"\nfrom = [\"127.0.0.1\"]\ncreate = true\n\
        [server.oidc]\nissuer = \"http://127.0.0.1:9\"\nclient_id = \"id\"\nclient_secret_env = \"OIDC_SECRET\"\nname = \"Example\"\n";
    std::fs::write(folder.path().join("throughline.toml"), configuration).unwrap();
    let (fine, _, said) = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(!fine && said.contains("OIDC_SECRET") && said.contains("not set"), "{said}");
    let server = Serving::start_with(folder.path(), &[], &[("OIDC_SECRET", "the-secret-of-the-client")]);
    let (head, me) = server.exchange("/v1/me", "X-Forwarded-User: Ann\r\n");
    assert!(
        head.starts_with("http/1.1 200") && me.contains(r#""user":"ann","signed_in_by":"proxy""#),
        "{head}{me}"
    );
    let (_, ways) = server.exchange("/v1/sign-in", "");
    let ways: Value = serde_json::from_str(&ways).unwrap();
    assert_eq!(ways["provider"]["name"], "Example");
    // The provider is unreachable, which its page reports; a key still opens the server.
    let (head, page) = server.exchange("/sign-in/provider", "");
    assert!(head.starts_with("http/1.1 502") && page.contains("Example cannot be reached"), "{head}{page}");
    assert!(!page.contains("the-secret-of-the-client"));
    // Commands on this machine go through the server, and need no secret.
    let (fine, people, said) = run(folder.path(), &["users", "list"]);
    assert!(fine && people.contains("ann") && people.contains("local"), "{people}{said}");
    assert_eq!(server.stop(), Some(0));
}
