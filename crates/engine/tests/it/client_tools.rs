//! Tools that a connected client runs, and that it declares otherwise or withdraws in mid-turn. The `tool_start` of such a
//! call is the offer to its client: it is written only for the tool that was decided about.

use crate::script::ScriptedTurn;
use throughline_engine::{Event, EventKind, TurnWait, WaitReason};

/// Runs a script and compares the events of calls, from the end of the first step.
fn check(name: &str, script: &str, expected: &str) -> ScriptedTurn {
    let scripted = ScriptedTurn::run(script);
    let is_of_call =
        |line: &&str| !["step", "use", "input", "text", "end"].iter().any(|word| line.starts_with(word));
    let lines: Vec<&str> = scripted.lines.iter().map(String::as_str).filter(is_of_call).collect();
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, expected, "\n--- {name}\n{script}\n--- the log was\n{}\n", scripted.lines.join("\n"));
    scripted
}

#[test]
fn client_tool_changed_mid_turn_is_detected_before_the_offer() {
    let cases = [
        (
            "withdrawn after the approval",
            "tools page:write:client
             open A page
             seal A {}
             finish tool_calls
             withdraws page
             approve A",
            "ask A effect:write
             answer A approve by user
             result A not_started (no_viewer)",
        ),
        (
            "changed after the approval",
            "tools page:write:client
             open A page
             seal A {}
             finish tool_calls
             declares page f2
             approve A
             approve A",
            "ask A effect:write
             answer A approve by user
             redefined A f2
             ask A redefined
             answer A approve by user
             start A
             ! offer A to page",
        ),
        (
            "changed while the model talks",
            "tools page:write:client; approve
             open A page
             declares page f2
             seal A {}
             finish tool_calls",
            "redefined A f2
             start A
             ! offer A to page",
        ),
        (
            "withdrawn while the model talks, after the check",
            "tools page:write:client; approve
             open A page
             seal A {}
             withdraws page
             finish tool_calls",
            "result A not_started (no_viewer)",
        ),
        (
            "changed while it waits behind another",
            "tools w:write page:write:client; approve; serial
             open A w
             seal A {}
             open B page
             seal B {}
             finish tool_calls
             declares page f2
             ok A 1",
            "start A
             result A success 1
             redefined B f2
             start B
             ! offer B to page",
        ),
        (
            "fits no more when its turn has come",
            "tools w:write page:write:client; approve; serial
             open A w
             seal A {}
             open B page
             seal B {}
             finish tool_calls
             invalid B /x: expected a number
             ok A 1",
            "start A
             result A success 1
             result B not_started (invalid_arguments)",
        ),
        (
            "changed before an edit is checked",
            r#"tools page:write:client
             open A page
             seal A {"n":1}
             finish tool_calls
             declares page f2
             edit A {"n":2}
             approve A"#,
            "ask A effect:write
             redefined A f2
             ask A redefined
             answer A approve by user
             start A
             ! offer A to page",
        ),
        (
            "an edit is checked once, and starts",
            r#"tools page:write:client
             open A page
             seal A {"n":1}
             finish tool_calls
             slow A
             edit A {"n":2}
             checked A"#,
            "ask A effect:write
             answer A approve by user
             start A
             ! offer A to page",
        ),
        (
            "cancelled during the check before the start",
            "tools page:write:client
             open A page
             seal A {}
             finish tool_calls
             slow A
             approve A
             cancel A
             checked A",
            "ask A effect:write
             answer A approve by user
             result A cancelled (cancelled_before_start)",
        ),
        (
            "changed and changed back",
            "tools page:write:client
             open A page
             seal A {}
             finish tool_calls
             declares page f2
             approve A
             declares page f1
             approve A
             approve A",
            "ask A effect:write
             answer A approve by user
             redefined A f2
             ask A redefined
             answer A approve by user
             redefined A f1
             ask A effect:write
             answer A approve by user
             start A
             ! offer A to page",
        ),
        (
            "two calls of one tool, changed",
            r#"tools page:write:client
             open A page
             seal A {}
             open B page
             seal B {}
             declares page f2
             finish tool_calls
             approve all
             approve all
             client A {"status":"success","output":"ok"}"#,
            "ask A effect:write
             ask B effect:write
             answer A approve by user
             answer B approve by user
             redefined A f2
             redefined B f2
             ask A redefined
             ask B redefined
             answer A approve by user
             answer B approve by user
             start A
             ! offer A to page
             result A success ok
             start B
             ! offer B to page",
        ),
        (
            "withdrawn for a moment while the model talks",
            "tools page:write:client; approve
             open A page
             withdraws page
             seal A {}
             declares page f1
             finish tool_calls",
            "start A
             ! offer A to page",
        ),
        (
            "withdrawn while a person is asked, and back",
            "tools page:write:client
             open A page
             seal A {}
             finish tool_calls
             withdraws page
             declares page f1
             approve A",
            "ask A effect:write
             answer A approve by user
             start A
             ! offer A to page",
        ),
        (
            "nothing takes the place of a call that is checked",
            r#"tools page:write:client calc:pure; approve; serial; barrier
             open A page
             seal A {}
             open B calc
             seal B {}
             slow A
             finish tool_calls
             checked A
             client A {"status":"success","output":"ok"}"#,
            "start A
             ! offer A to page
             result A success ok
             start B",
        ),
        (
            "nothing starts beside a call that is checked and runs alone",
            r#"tools page:write:client:alone w:write; approve; parallel
             open A page
             seal A {}
             open B w
             seal B {}
             slow A
             finish tool_calls
             checked A
             client A {"status":"success","output":"ok"}"#,
            "start A
             ! offer A to page
             result A success ok
             start B",
        ),
        (
            "early, and withdrawn while another runs",
            r#"tools face:cosmetic:client; eager; serial
             open A face
             seal A {"n":1}
             open B face
             seal B {"n":2}
             withdraws face
             client A {"status":"success","output":"ok"}
             finish tool_calls"#,
            "start A early
             ! offer A to page
             result A success ok
             result B not_started (no_viewer)",
        ),
        (
            "withdrawn before it is sealed, behind another",
            "tools face:cosmetic:client w:write; approve; eager; serial
             open A w
             seal A {}
             open B face
             withdraws face
             seal B {}
             finish tool_calls",
            "start A
             result B not_started (no_viewer)",
        ),
    ];
    for (name, script, expected) in cases {
        check(name, script, expected);
    }
}

#[test]
fn client_call_is_validated_twice_with_or_without_an_edit() {
    let asked = r#"tools page:write:client
        open A page
        seal A {"n":1}
        finish tool_calls"#;
    for (answer, checks) in [(r#"edit A {"n":2}"#, 2), ("approve A", 2)] {
        let mut scripted = ScriptedTurn::run(asked);
        scripted.line(answer);
        assert_eq!(scripted.lines.last().map(String::as_str), Some("! offer A to page"), "{answer}");
        assert_eq!(scripted.checks.len(), checks, "{answer}");
    }
}

// With each start the others that wait would be checked, too.
#[test]
fn serial_client_calls_are_validated_twice_each() {
    let mut scripted = ScriptedTurn::run("tools face:cosmetic:client; approve; serial; barrier");
    let labels: Vec<String> = ('A'..='Z').map(String::from).collect();
    for (n, label) in labels.iter().enumerate() {
        scripted.line(&format!("open {label} face"));
        scripted.line(&format!(r#"seal {label} {{"n":{n}}}"#));
    }
    scripted.line("finish tool_calls");
    for label in &labels {
        scripted.line(&format!(r#"client {label} {{"status":"success","output":"ok"}}"#));
    }
    assert!(
        scripted.lines.last().is_some_and(|line| line.starts_with("step 2")),
        "{:?}",
        scripted.lines.last()
    );
    assert_eq!(scripted.checks.len(), 2 * labels.len());
}

#[test]
fn client_call_is_validated_before_a_start_after_restart() {
    let script = "tools page:write:client; continue
                  open A page
                  seal A {}
                  finish tool_calls";
    let asked = ScriptedTurn::run(script);
    let mut approved = ScriptedTurn::run(script);
    approved.line("approve A");
    let is_start = |event: &Event| matches!(event.kind, EventKind::ToolStart { .. });
    let start = approved.log.iter().position(is_start).expect("a start");
    approved.log.truncate(start);
    let declares = |scripted: &mut ScriptedTurn| scripted.line("declares page f2");
    let after = approved.restarted_with(script, 2, declares);
    assert_eq!(after.lines, ["resumed 2", "redefined A f2", "ask A redefined"]);
    let mut after = asked.restarted(script, 2);
    declares(&mut after);
    after.line("approve A");
    assert_eq!(after.lines, ["resumed 2", "answer A approve by user", "redefined A f2", "ask A redefined"]);
}

// After a restart a client's tool cannot be checked until the client has reconnected, and people see a notice
// of the wait.
#[test]
fn held_client_validation_is_reported_as_client_wait() {
    const HELD: &str = "tools page:write:client; approve
         open A page
         slow A
         seal A {}
         finish tool_calls
         held A 60000";
    let held = check("it may be back in a moment", HELD, "");
    assert_eq!(held.turn.waits_for(), None);
    let reported = check(
        "told once, and counted",
        &format!("{HELD}\n+2000\ntimer held\nheld A 58000\ntimer held"),
        "waiting client 58000",
    );
    assert_eq!(reported.turn.waits_for(), Some(TurnWait::Client));
    assert_eq!(reported.message().waiting.map(|waiting| waiting.reason), Some(WaitReason::Client));
    let cases = [
        ("back", "checked A\n+2000\ntimer held", "start A\n! offer A to page"),
        ("cancelled", "cancel A\n+2000\ntimer held", "result A cancelled (cancelled_before_start)"),
        (
            "back after that",
            "+2000\ntimer held\nchecked A",
            "waiting client 58000\nstart A\n! offer A to page",
        ),
    ];
    for (name, rest, expected) in cases {
        check(name, &format!("{HELD}\n{rest}"), expected);
    }
    // It is the model that is waited for, or a person, until it is the client.
    let streaming = "tools face:cosmetic:client; eager\nopen A face\nslow A\nseal A {}\nheld A 60000";
    check(
        "held while the model writes",
        &format!("{streaming}\n+2000\ntimer held\nfinish tool_calls"),
        "waiting client 58000",
    );
    let script = "tools page:write:client; continue\nopen A page\nseal A {}\nfinish tool_calls";
    let asked = ScriptedTurn::run(script);
    let mut after = asked.restarted_with(script, 2, |scripted| scripted.line("slow A"));
    for line in ["held A 60000", "+2000", "timer held", "approve A"] {
        after.line(line);
    }
    assert_eq!(after.lines, ["resumed 2", "answer A approve by user", "waiting client 58000"]);
    assert_eq!(after.turn.waits_for(), Some(TurnWait::Client));
}

// An event ends the notice of a wait; if the wait continues, it is reported again, and once for both of two
// calls.
#[test]
fn client_wait_is_reported_again_after_other_events() {
    const HELD: &str = "tools page:read:client r:read
         open A r
         seal A {}
         open B page
         slow B
         seal B {}
         open C page
         slow C
         seal C {}
         finish tool_calls
         held B 60000
         held C 60000";
    let told = "waiting client 58000";
    let cases = [
        (
            "while ours runs, that is what is waited for",
            "+2000\ntimer held\nprogress A 1",
            "progress A".to_owned(),
        ),
        ("until it ends", "+2000\ntimer held\nok A x", format!("result A success x\n{told}")),
        (
            "and again",
            "ok A x\n+2000\ntimer held\nsay Hm\nlog was slow\nsay Hm",
            format!("result A success x\n{told}\nwaiting store 0\n{told}"),
        ),
        (
            "the second, when the first is back",
            "ok A x\n+2000\ntimer held\nchecked B\nclient B {\"status\":\"success\",\"output\":\"x\"}",
            format!("result A success x\n{told}\nstart B\n! offer B to page\nresult B success x\n{told}"),
        ),
    ];
    for (name, rest, expected) in cases {
        let scripted = check(name, &format!("{HELD}\n{rest}"), &format!("start A early\n{expected}"));
        let is_told = expected.ends_with(told);
        assert_eq!(scripted.turn.waits_for(), is_told.then_some(TurnWait::Client), "{name}");
        assert_eq!(scripted.message().waiting.is_some(), is_told, "{name}");
    }
}
