//! `throughline probe` as a process, against `throughline mock` with planted quirks.

use crate::support;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// `throughline mock`, stopped when dropped.
struct Mock {
    child: Child,
    origin: String,
}

impl Mock {
    fn start(arguments: &[&str]) -> Self {
        let (given, _) = support::throughline();
        let mut command = Command::new(given.get_program());
        command.arg("mock").args(arguments).stdout(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let first = lines.next().expect("a line").expect("text");
        let origin = first.rsplit(' ').next().expect("an address").to_owned();
        // Read on, so that the mock never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, origin }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `probe` in a folder: the code, standard output and standard error.
fn probe(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let (given, _) = support::throughline();
    let mut command = Command::new(given.get_program());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THROUGHLINE_")) {
        command.env_remove(name);
    }
    let output = command
        .current_dir(folder)
        .env("LC_ALL", "C.UTF-8")
        .env("THROUGHLINE_DATA", folder.join("data"))
        .arg("probe")
        .args(arguments)
        .output()
        .expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn probe_measures_quirks_and_writes_the_profile() {
    let mock = Mock::start(&["--quirk", "cumulative_arguments", "--quirk", "images_refused"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("throughline.toml");
    let before = format!(
        "# Mine.\n[upstreams.mine] # at home\ndialect = \"openai-chat\"\nbase_url = \"{}/v1\"\n\n\
         [agents.default]\nmodel = \"mine/capable\" # the only one\n",
        mock.origin
    );
    std::fs::write(&file, &before).unwrap();

    let (code, table, status) = probe(folder.path(), &["mine"]);
    assert_eq!(code, Some(0), "{table}{status}");
    assert!(table.contains("! call_arguments       yes         each fragment repeats"), "{table}");
    assert!(
        table.contains("! images               no          refused (HTTP 400) (images_refused)"),
        "{table}"
    );
    assert!(table.contains("  parallel_calls       yes         2 calls in one reply\n"), "{table}");
    assert!(status.contains("8 requests, each for at most 1024 tokens"), "it says so first: {status}");
    assert!(status.contains("  2/8 two tool calls"), "progress: {status}");
    assert!(status.contains("profile.cumulative_arguments = true"), "{status}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before, "nothing is written unasked");

    let (code, _, status) = probe(folder.path(), &["mine", "--write"]);
    assert_eq!(code, Some(0), "{status}");
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("# Mine.\n[upstreams.mine] # at home\n"), "{written}");
    assert!(written.contains("profile = { cumulative_arguments = true, vision = false }\n"), "{written}");
    assert!(written.ends_with("model = \"mine/capable\" # the only one\n"), "{written}");

    let (_, _, status) = probe(folder.path(), &["mine"]);
    assert!(status.contains("no setting needs to change"), "measured again: {status}");
}

#[test]
fn probe_of_an_unconfigured_endpoint_prints_json() {
    let mock = Mock::start(&["--quirk", "zero_index"]);
    let folder = tempfile::tempdir().unwrap();
    let base_url = format!("{}/v1", mock.origin);
    let arguments = ["new", "--base-url", &base_url, "--api", "openai-chat", "--json"];
    let (code, output, status) = probe(folder.path(), &arguments);
    assert_eq!(code, Some(0), "{status}");
    let measured: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(measured["model"], "capable", "the only one that it lists");
    let quirks: Vec<_> =
        measured["features"].as_array().unwrap().iter().filter_map(|row| row["quirk"].as_str()).collect();
    assert_eq!(quirks, ["zero_index"]);
}

#[test]
fn probe_reports_unknown_and_unreachable_upstreams() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, status) = probe(folder.path(), &["deepsek"]);
    assert_eq!(code, Some(1), "{status}");
    assert!(status.contains("did you mean `deepseek`"), "{status}");
    let gone = ["x", "--base-url", "http://127.0.0.1:1/v1", "--api", "openai-chat", "--model", "m"];
    let (code, _, status) = probe(folder.path(), &gone);
    assert_ne!(code, Some(0));
    assert!(status.contains("cannot be reached"), "{status}");
}
