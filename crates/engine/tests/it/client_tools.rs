//! Tools that a connected client runs, and that it declares otherwise or withdraws in mid-turn. The `tool_start` of such a
//! call is the offer to its client: it is written only for the tool that was decided about.

use crate::script::ScriptedTurn;

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
fn a_client_tool_that_changes_in_mid_turn_is_found_before_its_call_is_offered() {
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
            "tools page:write:client
             open A page
             seal A {}
             open B page
             seal B {}
             declares page f2
             finish tool_calls
             approve all
             approve all",
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
             ! offer A to page",
        ),
    ];
    for (name, script, expected) in cases {
        check(name, script, expected);
    }
}

#[test]
fn a_call_that_waits_for_its_turn_across_a_restart_is_checked_before_it_is_offered() {
    let script = "tools page:write:client; continue
                  open A page
                  seal A {}
                  finish tool_calls";
    let before = ScriptedTurn::run(script);
    let mut after = before.restarted(script, 2);
    after.line("declares page f2");
    after.line("approve A");
    assert_eq!(after.lines, ["resumed 2", "answer A approve by user", "redefined A f2", "ask A redefined"]);
}
