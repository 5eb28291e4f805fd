//! `-t` of `ask` and `chat`, and `--schema` of `ask`, on the real binary against a scripted upstream.

use crate::support::played::Played;
use crate::support::throughline;
#[allow(dead_code, reason = "logs are checked elsewhere")]
use assert_cmd::Command;
use serde_json::{Value, json};
use tempfile::TempDir;
use throughline_testkit::{FakeDialect, ModelScript, ScriptFinish, ScriptMove, ScriptQueue};

const REVIEW: &str = "Review this {{ language }} code:\n\n{{input}}\n";

fn played(replies: &[&str]) -> Played {
    Played::new(ScriptQueue::new(replies.iter().map(|text| ModelScript::new().say(*text))))
}

fn with_templates(templates: &[(&str, &str)]) -> (Command, TempDir) {
    let (command, folder) = throughline();
    std::fs::create_dir(folder.path().join("prompts")).unwrap();
    for (name, text) in templates {
        std::fs::write(folder.path().join("prompts").join(name), text).unwrap();
    }
    (command, folder)
}

/// Exit code, standard output and standard error of one command line.
fn run(mut command: Command, arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let output = command.args(arguments).write_stdin(input).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn asking<'a>(more: &[&'a str], played: &'a [String]) -> Vec<&'a str> {
    ["ask"].iter().chain(more).copied().chain(played.iter().map(String::as_str)).collect()
}

#[test]
fn template_is_filled_with_prompt_and_values() {
    let played = played(&["Fine.", "Fine, too."]);
    let to = played.arguments(FakeDialect::OpenaiChat);
    let (command, folder) = with_templates(&[("review.md", REVIEW), ("haiku.txt", "Write a haiku.")]);
    let data = folder.path().join("data");
    let again = || {
        let (mut command, own) = throughline();
        command.current_dir(folder.path()).env("THROUGHLINE_DATA", &data);
        (command, own)
    };
    let (code, said, complaint) =
        run(command, &asking(&["-t", "review", "-p", "language=Rust", "Here:"], &to), "fn f() {{}}\n");
    assert_eq!((code, said.as_str()), (Some(0), "Fine.\n"), "{complaint}");
    assert_eq!(
        played.upstream.requests()[0].user_text(),
        "Review this Rust code:\n\nHere:\n\nfn f() {{}}",
        "braces of the input are no placeholders"
    );
    // Without {{input}} the prompt follows; in a chat the first message goes in.
    let (command, _own) = again();
    let chat: Vec<&str> = ["chat", "-t", "haiku"].into_iter().chain(to.iter().map(String::as_str)).collect();
    let (code, _, complaint) = run(command, &chat, "About rain.\n");
    assert_eq!(code, Some(0), "{complaint}");
    assert_eq!(played.upstream.requests()[1].user_text(), "Write a haiku.\n\nAbout rain.");

    let (command, _own) = again();
    let (_, listed, _) = run(command, &["templates"], "");
    assert!(listed.contains("review  {{language}} {{input}}  Review this"), "{listed}");
    assert!(listed.contains("haiku "), "{listed}");
    let (command, _own) = again();
    let (_, listed, _) = run(command, &["templates", "--json"], "");
    let rows: Vec<Value> = serde_json::from_str(&listed).unwrap();
    assert_eq!(
        (&rows[1]["name"], &rows[1]["placeholders"]),
        (&json!("review"), &json!(["language", "input"]))
    );
}

#[test]
fn template_errors_name_the_valid_choices() {
    let too_long = "x".repeat((256 << 10) + 1);
    for (arguments, expected) in [
        (
            &["-t", "review", "x"][..],
            &["needs a value for `language`", "language, input", "-p language=…"][..],
        ),
        (&["-t", "review", "-p", "tongue=Rust", "x"], &["takes no value for `tongue`", "language, input"]),
        (&["-t", "review", "-p", "input=x", "x"], &["{{input}} is the prompt itself"]),
        (&["-t", "review", "-p", "Rust", "x"], &["`Rust` is not NAME=VALUE"]),
        (&["-t", "review", "-p", "language=Rust"], &["needs a prompt", "{{input}}"]),
        (&["-t", "revue", "x"], &["there is no template `revue`", "long, review", "prompts"]),
        (&["-t", "../throughline", "x"], &["there is no template `../throughline`"]),
        (&["-t", "long", "x"], &["too long", "256 KiB"]),
        (&["-p", "a=b", "x"], &["--template"]),
    ] {
        let (command, _folder) = with_templates(&[("review.md", REVIEW), ("long.md", &too_long)]);
        let (code, said, complaint) = run(command, &asking(arguments, &[]), "");
        assert_eq!((code, said.as_str()), (Some(1), ""), "{arguments:?}");
        for part in expected {
            assert!(complaint.contains(part), "{arguments:?}: no {part:?} in {complaint}");
        }
    }
    let (command, _folder) = throughline();
    let (code, said, _) = run(command, &["templates"], "");
    assert!(
        code == Some(0) && said.starts_with("no templates; put files such as review.md into prompts"),
        "{said}"
    );
}

const PERSON: &str = r#"{"type": "object", "properties": {"name": {"type": "string"}, "born": {"type": "integer"}},
    "required": ["name", "born"], "additionalProperties": false}"#;
const ADA: &str = r#"{"name":"Ada","born":1815}"#;

/// Runs `ask` with the schema in a file: exit code, standard output, standard error, and the prompts that the
/// model got.
fn with_schema(steps: Vec<ModelScript>, dialect: FakeDialect) -> (Option<i32>, String, String, Vec<String>) {
    let played = Played::new(ScriptQueue::new(steps));
    let (command, folder) = throughline();
    std::fs::write(folder.path().join("person.json"), PERSON).unwrap();
    let to = played.arguments(dialect);
    let (code, said, complaint) = run(command, &asking(&["--schema", "person.json", "Who?"], &to), "");
    let told = played.upstream.requests().iter().map(|request| request.user_text().to_owned()).collect();
    (code, said, complaint, told)
}

#[test]
fn answer_matching_the_schema_is_printed_as_json_only() {
    for dialect in FakeDialect::ALL {
        let fenced = format!("Here you are:\n```json\n{ADA}\n```\n");
        let (code, said, complaint, told) = with_schema(vec![ModelScript::new().say(fenced)], dialect);
        assert_eq!((code, said), (Some(0), format!("{ADA}\n")), "{dialect}: {complaint}");
        assert_eq!(told, ["Who?"], "{dialect}");
    }
    // After tool calls as well, and with the schema on the command line.
    let played = Played::new(ScriptQueue::new([
        ModelScript::new().say("{\"name\": 1}").call("time_now", json!({"timezone": "Asia/Tokyo"})),
        ModelScript::new().say(ADA),
    ]));
    let (command, _folder) = throughline();
    let to = played.arguments(FakeDialect::Anthropic);
    let (code, said, complaint) =
        run(command, &asking(&["-s", "Be exact.", "--schema", PERSON, "Who?"], &to), "");
    assert_eq!((code, said), (Some(0), format!("{ADA}\n")), "{complaint}");
    assert!(complaint.contains("✔ time.now"), "{complaint}");
    let body = played.upstream.requests()[0].body.to_string();
    assert!(
        body.contains("Be exact.") && body.contains("JSON Schema") && body.contains("additionalProperties"),
        "{body}"
    );
}

#[test]
fn answer_not_matching_the_schema_is_corrected_once() {
    let wrong = ModelScript::new().say(r#"{"name": "Ada", "born": "1815"}"#);
    let right = ModelScript::new().say(ADA);
    let (code, said, complaint, told) = with_schema(vec![wrong.clone(), right], FakeDialect::OpenaiChat);
    assert_eq!((code, said), (Some(0), format!("{ADA}\n")), "{complaint}");
    assert!(complaint.contains("asking once more: /born: expected integer, got \"1815\""), "{complaint}");
    assert!(told[1].contains("/born: expected integer"), "{told:?}");

    let prose = ModelScript::new().say("She was born in 1815.");
    let (code, said, complaint, told) = with_schema(vec![wrong, prose], FakeDialect::OpenaiChat);
    assert_eq!((code, said.as_str(), told.len()), (Some(2), "", 2), "{complaint}");
    assert!(complaint.contains("error: the answer does not fit the schema"), "{complaint}");
    assert!(complaint.contains("also after one correction: ") && complaint.contains("try: "), "{complaint}");
}

#[test]
fn failed_or_cut_turn_prints_no_json() {
    let cut = ModelScript::new().say("{\"name\": \"Ada").then(ScriptMove::Finish(ScriptFinish::Length));
    let (code, said, complaint, told) = with_schema(vec![cut], FakeDialect::OpenaiChat);
    assert_eq!((code, said.as_str(), told.len()), (Some(3), "", 1), "{complaint}");
    let (code, said, complaint, _) = with_schema(vec![ModelScript::status(401)], FakeDialect::OpenaiChat);
    assert_eq!((code, said.as_str()), (Some(2), ""), "{complaint}");
    for (schema, expected) in [
        ("{\"type\": 7}", "--schema cannot be used"),
        ("{\"type\": ", "--schema cannot be used"),
        ("none.json", "none.json cannot be read"),
    ] {
        let (command, _folder) = throughline();
        let (code, said, complaint) = run(command, &["ask", "--schema", schema, "Who?"], "");
        assert_eq!((code, said.as_str()), (Some(1), ""), "{schema}");
        assert!(complaint.contains(expected), "{complaint}");
    }
}
