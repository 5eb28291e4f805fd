//! `tools prompt`, `tools list`, `tools remembered` and `parse`, on the real binary.

use crate::support::throughline;
use serde_json::Value;

/// An agent in text mode whose calendar is forbidden, and whose files are off.
const CONFIG: &str = r#"
[agents.default]
model = "demo"
mode = "text"
prompt = "Hello {{ user }}. {{ tools(\"demo\") }}"
tool_call = { enabled = true, tool_toggles = { files = false, fils = true } }

[[agents.default.policy]]
decide = "deny"
tool = "demo.calendar"
reason = "the year is over"

[agents.native]
model = "demo"
tool_call = { enabled = true }

[agents.quiet]
model = "demo"
prompt = "No tools: [{{ tools }}]"

[http_tools."home.lights"]
description = "Switches lamps"
method = "POST"
url = "https://example.com/lights"
body = "arguments"
parameters = '''{"type": "object", "properties": {"lamps": {"type": "array", "items": {"type": "string"}}}}'''

[user]
name = "Ada"
"#;

struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

fn run(arguments: &[&str], input: &str) -> Said {
    let (mut command, folder) = throughline();
    std::fs::write(folder.path().join("throughline.toml"), CONFIG).unwrap();
    command.env("THROUGHLINE_DATA", folder.path().join("data"));
    let output = command.args(arguments).write_stdin(input).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn json(arguments: &[&str], input: &str) -> Value {
    let said = run(arguments, input);
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}\n{}\n{}", said.out, said.err))
}

#[test]
fn tools_prompt_is_shown_with_token_counts() {
    let said = run(&["tools", "prompt"], "");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.starts_with("Hello Ada. ") && said.out.contains("demo_weather"), "{}", said.out);
    assert!(!said.out.contains("time_now"), "only those of one source: {}", said.out);
    assert!(said.err.contains("tokens; tools: "), "{}", said.err);
    assert!(
        said.err.contains("left out: home.lights: cannot be called in the text protocol vcp"),
        "{}",
        said.err
    );

    let xml = run(&["tools", "prompt", "--protocol", "xml"], "");
    assert!(xml.out.contains("<tools>") && !xml.out.contains("TOOL_REQUEST"), "{}", xml.out);

    let native = json(&["tools", "prompt", "--agent", "native", "--json"], "");
    assert_eq!((&native["prompt"], &native["mode"]), (&Value::from(""), &Value::from("auto")));
    let sum: u64 = native["tokens"]["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["tokens"].as_u64().unwrap())
        .sum();
    assert_eq!(native["tokens"]["total"].as_u64(), Some(sum), "natively the tools travel beside the prompt");

    let quiet = run(&["tools", "prompt", "--agent", "quiet", "--mode", "text"], "");
    assert_eq!(quiet.out, "No tools: []\n");
    assert!(quiet.err.contains("no tools"), "{}", quiet.err);

    let wrong = run(&["tools", "prompt", "--protocol", "jsn"], "");
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.err.contains("there is no text protocol `jsn`"), "{}", wrong.err);
}

#[test]
fn tools_list_explains_why_a_tool_is_not_offered() {
    let rows = json(&["tools", "list", "--json"], "");
    let why = |name: &str| {
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        (row["offered"].as_bool().unwrap(), row["why_not"].as_str().unwrap_or("").to_owned())
    };
    assert_eq!(why("demo.weather"), (true, String::new()));
    assert_eq!(why("files.read"), (false, "disabled (tool_toggles.\"files\" = false)".to_owned()));
    assert!(why("home.lights").1.contains("text protocol vcp"), "{:?}", why("home.lights"));
    assert_eq!(why("http.fetch"), (true, String::new()));
    let said = run(&["tools", "list"], "");
    assert!(said.err.contains("tool_toggles.\"fils\" of the agent `default` has no effect"), "{}", said.err);
    assert!(said.out.contains("not offered: disabled"), "{}", said.out);
    let quiet = run(&["tools", "list", "--agent", "quiet"], "");
    assert!(quiet.out.contains("not offered: the agent has no tools"), "{}", quiet.out);
}

/// A request of the VCP protocol.
fn request(tool: &str, fields: &[(&str, &str)]) -> String {
    let fields: String =
        fields.iter().map(|(name, value)| format!(",\n{name}:「始」{value}「末」")).collect();
    format!("<<<[TOOL_REQUEST]>>>\ntool_name:「始」{tool}「末」{fields}\n<<<[END_TOOL_REQUEST]>>>\n")
}

#[test]
fn parse_predicts_the_outcome_of_each_pasted_call() {
    let calendar = request("demo_calendar", &[("title", "lunch"), ("when", "2026-11-22T12:00:00")]);
    let text = format!(
        "Well.\n{}{}{}{}```\n{}```\n[TOOL_CALLS][{{\"name\": \"time_now\", \"arguments\": {{}}}}]\n<<<[TOOL_REQUEST]>>>\nurl",
        request("demo_weather", &[("city", "Paris")]),
        calendar,
        request("files_read", &[("path", "a")]),
        request("demo_weather", &[("town", "Paris")]),
        request("demo_weather", &[]),
    );
    let found = json(&["parse", "--json"], &text);
    let outlooks: Vec<(&str, &str, bool)> = found["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["tool"].as_str().unwrap_or("-"),
                row["outlook"].as_str().unwrap(),
                row["leaked"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        outlooks,
        [
            ("demo.weather", "runs", false),
            ("demo.calendar", "denied", false),
            ("files.read", "not_started", false),
            ("demo.weather", "not_started", false),
            ("time.now", "runs", true),
            ("-", "not_started", false),
        ]
    );
    let denied = &found["requests"][1];
    assert_eq!(
        (&denied["why"], &denied["rule"]),
        (&"the year is over".into(), &"rule:1 deny demo.calendar".into())
    );
    assert_eq!((&denied["line"], &denied["column"]), (&6.into(), &1.into()));
    assert!(found["requests"][2]["why"].as_str().unwrap().contains("disabled"), "{found}");
    assert!(found["requests"][3]["why"].as_str().unwrap().contains("/city: missing"), "{found}");
    assert_eq!(found["warnings"][0]["kind"], "in_code_fence");
    assert_eq!(found["text"].as_str().unwrap().lines().next(), Some("Well."));

    let said = run(&["parse"], &text);
    assert_eq!(said.code, Some(4), "a call is refused");
    assert!(said.out.contains("call: demo.weather (vcp)\n --> -:2:1\n"), "{}", said.out);
    assert!(said.out.ends_with("6 calls: 2 would run, 0 would ask, 4 refused; 1 warning\n"), "{}", said.out);

    let as_native = run(&["parse", "--agent", "native"], &calendar);
    assert_eq!(as_native.code, Some(0), "{}", as_native.out);
    assert!(as_native.out.contains("would ask first (effect:write)"), "{}", as_native.out);

    let nothing = run(&["parse"], "Just text.");
    assert_eq!(
        (nothing.code, nothing.out.as_str()),
        (Some(0), "0 calls: 0 would run, 0 would ask, 0 refused; 0 warnings\n")
    );
    let other = run(&["parse", "--protocol", "xml"], &calendar);
    assert!(other.out.starts_with("0 calls"), "{}", other.out);
    let missing = run(&["parse", "missing.txt"], "");
    assert_eq!(missing.code, Some(1));
    assert!(missing.err.contains("missing.txt cannot be read"), "{}", missing.err);
}

#[test]
fn pasted_text_is_escaped_for_the_terminal() {
    let said = run(&["parse"], &request("demo_weather", &[("city", "\u{1b}[2J\u{202e}Paris")]));
    assert!(!said.out.contains('\u{1b}') && !said.out.contains('\u{202e}'), "{:?}", said.out);
}

#[test]
fn approvals_from_an_older_file_are_listed_and_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let kept = r#"{"v":1,"next":8,"answers":[{"number":7,"at_ms":0,"answer":{"decision":"deny","scope":"always",
        "tool":"demo.calendar","fingerprint":"f","reason":"never"}}]}"#;
    std::fs::write(data.join("remembered.json"), kept).unwrap();
    let tools = |arguments: &[&str]| {
        let (mut command, _folder) = throughline();
        command.env("THROUGHLINE_DATA", &data).args(["tools", "remembered"]).args(arguments);
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, out, _) = tools(&[]);
    assert_eq!(code, Some(0));
    assert!(out.contains("1  deny   demo.calendar  any arguments (never)"), "{out}");
    assert!(!data.join("remembered.json").exists(), "it is in the store now");
    let (code, _, err) = tools(&["--forget", "3"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("no remembered approval 3"), "{err}");
    let (code, out, _) = tools(&["--forget", "1"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("such calls ask again"), "{out}");
    let (_, out, _) = tools(&[]);
    assert_eq!(out, "no remembered approvals\n");
    // An older approval takes no denial away.
    let approved = r#"{"v":1,"next":9,"answers":[{"number":8,"at_ms":9000000000000,"answer":{"decision":"approve","scope":"always",
        "tool":"demo.calendar","fingerprint":"f"}}]}"#;
    for kept in [kept, approved] {
        std::fs::write(data.join("remembered.json"), kept).unwrap();
        let (_, out, _) = tools(&[]);
        assert!(out.contains("deny   demo.calendar") && out.lines().count() == 3, "{out}");
    }
    // For another store it is not used up.
    std::fs::write(data.join("remembered.json"), kept).unwrap();
    let other = data.join("other.db");
    let other = other.to_str().unwrap();
    let (_, out, _) = tools(&["--store", other]);
    assert!(out.contains("4294967303  deny   demo.calendar"), "{out}");
    assert!(data.join("remembered.json").exists() && !data.join("other.db").exists());
    let (code, _, err) = tools(&["--store", other, "--forget", "4294967303"]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(tools(&["--store", other]).1, "no remembered approvals\n");
    // A store that was set aside as damaged may hold a denial, too, and so may an unreadable file.
    std::fs::write(data.join("other.db.corrupt-1"), "").unwrap();
    let (code, _, err) = tools(&["--store", other]);
    assert!(code == Some(1) && err.contains("it was damaged"), "{err}");
    std::fs::write(data.join("remembered.json"), "{").unwrap();
    let (code, _, err) = tools(&[]);
    assert_eq!(code, Some(1));
    assert!(err.contains("is not a file of remembered approvals"), "{err}");
}
