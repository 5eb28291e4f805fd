//! Approvals: the calls that may run, the rule that decides, and the binding of an answer.

use crate::script::{self, ScriptedTurn};
use throughline_engine::{
    ArgumentValidation, Event, EventKind, RememberedDecision, Turn, TurnAction, TurnInput, TurnOutput,
};
use throughline_wire::{CallOutcome, Message, ToolOutput};

/// Runs a script and compares the log, line by line, from the end of the first step on. After every input, a machine
/// restored from the log knows the same.
fn check(script: &str, expected: &str) -> ScriptedTurn {
    let scripted = ScriptedTurn::run_with(script, Some(restores));
    let lines: Vec<&str> = scripted
        .lines
        .iter()
        .map(String::as_str)
        .skip_while(|line| !line.starts_with("step end"))
        .skip(1)
        .collect();
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, expected, "\n--- script\n{script}\n--- the log was\n{}\n", scripted.lines.join("\n"));
    scripted
}

fn restores(scripted: &ScriptedTurn) {
    let json: Vec<Event> = scripted
        .log
        .iter()
        .map(|event| serde_json::from_str(&serde_json::to_string(event).expect("JSON")).expect("an event"))
        .collect();
    let restored = Turn::restore(scripted.setup.clone(), script::start(), &json, &scripted.provider_states);
    assert!(restored.state_eq(&scripted.turn), "after\n{}", scripted.lines.join("\n"));
}

/// The results that the model received for the calls, in order.
fn told(scripted: &ScriptedTurn) -> Vec<String> {
    let history = scripted.turn.history().expect("all calls are closed");
    let steps = history.iter().filter_map(|message| match message {
        Message::Step(step) => Some(step),
        Message::User(_) => None,
    });
    steps.flat_map(|step| step.calls.iter().map(|(call, outcome)| call.outcome_text(outcome))).collect()
}

fn started(scripted: &ScriptedTurn) -> Vec<(&str, &str)> {
    scripted.started.iter().map(|(label, arguments)| (label.as_str(), arguments.as_str())).collect()
}

/// The rules that starts and denials name, in order.
fn rules(scripted: &ScriptedTurn) -> Vec<&str> {
    let rule = |event: &'_ Event| match &event.kind {
        EventKind::ToolStart { rule, .. } => rule.clone(),
        EventKind::ToolResult(result) => result.rule.clone(),
        _ => None,
    };
    let found: Vec<String> = scripted.log.iter().filter_map(rule).collect();
    found.into_iter().map(|rule| &*rule.leak()).collect()
}

/// One call of `tool` with these arguments, and what becomes of it at the commit.
fn one_call(setup: &str, tool: &str, arguments: &str) -> ScriptedTurn {
    let script = format!("{setup}\nopen A {tool}\nseal A {arguments}\nfinish tool_calls");
    ScriptedTurn::run_with(&script, Some(restores))
}

// --- which rule decides ---

#[test]
fn first_matching_rule_decides_and_is_named() {
    const FILES: &str = "tools files.put:write files.get:read mail:external look:read:asks";
    const DENY: &str =
        r#"rule {"decide":"deny","tool":"files","arguments":{"path":{"under":"/etc"}},"reason":"not there"}"#;
    const ALLOW: &str = r#"rule {"decide":"allow","tool":"files.*","effect":["write"]}"#;
    const KEPT: &str =
        r#"remembered {"decision":"approve","scope":"always","tool":"mail","fingerprint":"f1"}"#;
    const REFUSED: &str = r#"remembered {"decision":"deny","scope":"conversation","tool":"files.put","fingerprint":"f1","reason":"never"}"#;
    let table = [
        // by effect
        (String::new(), "files_get", "{}", "start effect:read"),
        (String::new(), "files_put", "{}", "ask effect:write"),
        (String::new(), "mail", "{}", "ask effect:external"),
        (String::new(), "look", "{}", "ask tool"),
        // rules, in order
        (
            format!("{DENY}; {ALLOW}"),
            "files_put",
            r#"{"path":"/etc/passwd"}"#,
            "denied rule:1 deny files path under /etc",
        ),
        (format!("{DENY}; {ALLOW}"), "files_put", r#"{"path":"/tmp/x"}"#, "start rule:2 allow files.* write"),
        (
            format!("{ALLOW}; {DENY}"),
            "files_put",
            r#"{"path":"/etc/passwd"}"#,
            "start rule:1 allow files.* write",
        ),
        (DENY.into(), "files_get", r#"{"path":"/tmp/../etc/x"}"#, "denied rule:1 deny files path under /etc"),
        (r#"rule {"decide":"ask","source":"built*"}"#.into(), "files_get", "{}", "ask rule:1 ask built*"),
        // a tool that asks cannot be allowed to be silent, and cannot make itself milder
        (r#"rule {"decide":"allow"}"#.into(), "look", "{}", "ask tool"),
        (r#"rule {"decide":"deny","tool":"look"}"#.into(), "look", "{}", "denied rule:1 deny look"),
        // remembered decisions
        (KEPT.into(), "mail", "{}", "start remembered:always"),
        (
            format!(r#"{KEPT}; rule {{"decide":"deny","tool":"mail"}}"#),
            "mail",
            "{}",
            "denied rule:1 deny mail",
        ),
        (format!("{ALLOW}; {REFUSED}"), "files_put", "{}", "denied remembered:conversation"),
        (KEPT.replace("f1", "f0"), "mail", "{}", "ask effect:external"),
        (KEPT.replace("\"mail\"", "\"look\""), "look", "{}", "ask tool"),
        // every call needs an approval
        (format!("{ALLOW}; confirm"), "files_put", "{}", "ask require_confirmation"),
        ("confirm".into(), "files_get", "{}", "ask require_confirmation"),
        (format!("{KEPT}; confirm"), "mail", "{}", "start remembered:always"),
        (format!("{KEPT}; manual"), "mail", "{}", "ask manual"),
        (
            format!("{DENY}; manual"),
            "files_put",
            r#"{"path":"/etc/x"}"#,
            "denied rule:1 deny files path under /etc",
        ),
        // nobody to ask, or everything approved in advance: the rule is named nevertheless
        ("nobody".into(), "mail", "{}", "denied effect:external"),
        ("approve".into(), "mail", "{}", "start effect:external"),
        (
            format!("{DENY}; approve"),
            "files_put",
            r#"{"path":"/etc/x"}"#,
            "denied rule:1 deny files path under /etc",
        ),
    ];
    for (policy, tool, arguments, expected) in table {
        let scripted = one_call(&format!("{FILES}; barrier; {policy}"), tool, arguments);
        let asked = scripted.log.iter().find_map(|event| match &event.kind {
            EventKind::ApprovalRequest { rule, .. } => Some(format!("ask {rule}")),
            EventKind::ToolStart { rule, .. } => {
                Some(format!("start {}", rule.as_deref().unwrap_or_default()))
            }
            EventKind::ToolResult(result) => {
                Some(format!("denied {}", result.rule.as_deref().unwrap_or_default()))
            }
            _ => None,
        });
        assert_eq!(asked.as_deref(), Some(expected), "{policy} {tool} {arguments}");
    }
}

#[test]
fn rule_denial_waits_for_the_commit_and_gives_its_reason() {
    let scripted = check(
        r#"tools w:write; eager; rule {"decide":"deny","tool":"w","reason":"nothing is written here"}
         open A w
         seal A {}
         text more
         finish tool_calls
         finish stop"#,
        "result A denied
         step 2 m try 1
         step end stop
         end completed",
    );
    assert!(told(&scripted)[0].contains("nothing is written here"));
    assert_eq!(rules(&scripted), ["rule:1 deny w"]);
}

// Each call waits for a person, for as long as it takes; other tools wait likewise.
#[test]
fn manual_mode_asks_about_every_call_without_expiry() {
    let scripted = check(
        r#"tools r:read c:cosmetic; eager; manual
         open A r
         seal A {}
         open B c
         seal B {}
         finish tool_calls
         +99999999
         approve B
         ok B done
         approve A
         ok A 1
         finish stop"#,
        "ask A manual
         ask B manual
         answer B approve by user
         start B
         result B success done
         answer A approve by user
         start A
         result A success 1
         step 2 m try 1
         step end stop
         end completed",
    );
    let expiry = scripted
        .log
        .iter()
        .any(|event| matches!(event.kind, EventKind::ApprovalRequest { expires_at: Some(_), .. }));
    assert!(!expiry && rules(&scripted) == ["manual", "manual"]);
}

#[test]
fn expired_approval_request_is_denied() {
    let scripted = check(
        "tools w:write r:read; barrier
         open A w
         seal A {}
         open B r
         seal B {}
         finish tool_calls
         ok B 1
         timer approval
         finish stop",
        "ask A effect:write
         start B
         result B success 1
         answer A deny by timer
         result A denied
         step 2 m try 1
         step end stop
         end completed",
    );
    assert!(told(&scripted)[0].contains("no answer"));
}

// --- what an answer is bound to ---

#[test]
fn calls_with_equal_upstream_ids_are_decided_separately() {
    let scripted = check(
        r#"tools safe:write danger:external; parallel
         open A danger as same
         seal A {"all":true}
         open B safe as same
         seal B {"all":true}
         finish tool_calls
         deny A no
         approve B
         ok B done
         finish stop"#,
        "ask A effect:external
         ask B effect:write
         answer A deny by user
         result A denied
         answer B approve by user
         start B
         result B success done
         step 2 m try 1
         step end stop
         end completed",
    );
    assert_eq!(started(&scripted), [("B", r#"{"all":true}"#)]);
}

#[test]
fn approval_of_stale_arguments_is_rejected() {
    let scripted = check(
        r#"tools w:write
         open A w
         seal A {"to":"a"}
         finish tool_calls
         stale A
         approve A
         ok A 1
         finish stop"#,
        "ask A effect:write
         problem stale_answer
         answer A approve by user
         start A
         result A success 1
         step 2 m try 1
         step end stop
         end completed",
    );
    let hashes: Vec<&str> = scripted
        .log
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ApprovalRequest { arguments_hash, fingerprint, .. } if fingerprint == "f1" => {
                Some(arguments_hash.as_str())
            }
            _ => None,
        })
        .collect();
    assert!(hashes.len() == 1 && hashes[0].len() == 64, "{hashes:?}");
}

#[test]
fn tool_redefined_while_approval_is_pending_asks_again() {
    let scripted = check(
        r#"tools w:write
         open A w
         seal A {}
         finish tool_calls
         redefine w f2
         redefine w f2
         approve A
         ok A 1
         finish stop"#,
        "ask A effect:write
         redefined A f2
         ask A redefined
         answer A approve by user
         start A
         result A success 1
         step 2 m try 1
         step end stop
         end completed",
    );
    assert_eq!(rules(&scripted), ["redefined"]);
}

#[test]
fn tool_redefined_between_approval_and_start_asks_again() {
    let scripted = check(
        r#"tools w:write
         open A w
         seal A {"n":1}
         finish tool_calls
         approve A
         unmade A f2
         +1000
         deny A changed behind my back
         finish stop"#,
        "ask A effect:write
         answer A approve by user
         start A
         redefined A f2
         ask A redefined
         answer A deny by user
         result A denied
         step 2 m try 1
         step end stop
         end completed",
    );
    let call = scripted.message().calls().next().cloned().expect("a call");
    assert_eq!((call.started_at, call.duration_ms, call.attempts), (None, None, 1));
    assert!(told(&scripted)[0].contains("nothing happened"));
}

#[test]
fn redefined_tool_is_revalidated_and_restarted_once() {
    let scripted = check(
        r#"tools r:read; eager
         open A r
         seal A {"n":1}
         open B r
         seal B {"n":2}
         text more
         unmade A f2
         finish tool_calls
         approve A
         ok A 1
         keep always any B
         ok B 2
         open C r
         seal C {"n":3}
         ok C 3
         finish tool_calls
         finish stop"#,
        "ask A redefined
         ask B redefined
         answer A approve by user
         start A again 2
         result A success 1
         answer B approve by user
         start B
         result B success 2
         step 2 m try 1
         use C r
         input C {\"n\":3}
         start C early
         result C success 3
         step end tool_calls
         step 3 m try 1
         step end stop
         end completed",
    );
    assert_eq!(rules(&scripted), ["effect:read", "redefined", "redefined", "remembered:always"]);

    check(
        r#"tools w:write
         open A w
         seal A {"n":1}
         finish tool_calls
         invalid A /m: is required
         redefine w f2
         finish stop"#,
        "ask A effect:write
         redefined A f2
         result A not_started (invalid_arguments)
         step 2 m try 1
         step end stop
         end completed",
    );
}

#[test]
fn later_call_of_a_redefined_read_tool_asks() {
    check(
        r#"tools r:read; eager
         redefine r f2
         open A r
         seal A {}
         finish tool_calls
         deny A
         finish stop"#,
        "ask A redefined
         answer A deny by user
         result A denied
         step 2 m try 1
         step end stop
         end completed",
    );
}

#[test]
fn call_cancelled_during_a_redefined_start_never_ran() {
    let scripted = check(
        r#"tools w:write
         open A w
         seal A {}
         finish tool_calls
         approve A
         cancel A
         unmade A f2
         finish stop"#,
        "ask A effect:write
         answer A approve by user
         start A
         ! cancel A 1
         redefined A f2
         result A cancelled (cancelled_before_start)
         step 2 m try 1
         step end stop
         end completed",
    );
    assert!(told(&scripted)[0].contains("nothing happened"));
}

/// A turn in which B is approved and waits for A to end.
fn approved_and_waiting() -> ScriptedTurn {
    ScriptedTurn::run(
        r#"tools r:read w:write; barrier; serial; continue
         open A r
         seal A {}
         open B w
         seal B {"n":1}
         finish tool_calls
         approve B"#,
    )
}

/// End of B after a takeover, in which B's tool has this definition, and A ends there.
fn after_restart(scripted: &ScriptedTurn, log: &[Event], fingerprint: &str) -> Vec<&'static str> {
    let mut setup = scripted.setup.clone();
    setup.tools[1].fingerprint = fingerprint.into();
    let mut turn = Turn::restore(setup, script::start(), log, &scripted.provider_states);
    let mut out = TurnOutput::default();
    turn.resume(1, scripted.now, &mut out);
    for action in std::mem::take(&mut out.actions) {
        if let TurnAction::Validate { call, version, .. } = action {
            turn.apply(
                TurnInput::Validated { call, version, validation: ArgumentValidation::Valid },
                scripted.now,
                &mut out,
            );
        }
    }
    let outcome = CallOutcome::Done(ToolOutput::text("1"));
    turn.apply(TurnInput::ToolEnded { call: "t.1".into(), attempt: 2, outcome }, scripted.now, &mut out);
    let of_b = out.events.iter().filter(|event| event.tool_id == Some("t.2".into()));
    of_b.map(|event| match event.kind {
        EventKind::ApprovalRequest { .. } => "asks",
        EventKind::ToolStart { .. } => "starts",
        _ => "something else",
    })
    .collect()
}

#[test]
fn approval_survives_a_restart_unless_the_tool_changed() {
    let scripted = approved_and_waiting();
    assert_eq!(after_restart(&scripted, &scripted.log, "f1"), ["starts"]);
    assert_eq!(after_restart(&scripted, &scripted.log, "f2"), ["asks"]);
}

/// Found by the simulator (seed 67873): what allowed the start that died was about another definition.
#[test]
fn crashed_read_is_not_rerun_if_its_tool_was_redefined() {
    let running = ScriptedTurn::run(
        r#"tools r:read; continue
         open A r
         seal A {}
         finish tool_calls"#,
    );
    let again = |redefined: Option<&str>| {
        let mut turn =
            Turn::restore(running.setup.clone(), script::start(), &running.log, &running.provider_states);
        let mut out = TurnOutput::default();
        if let Some(fingerprint) = redefined {
            let (tool, fingerprint) = (running.setup.tools[0].name.clone(), fingerprint.to_owned());
            turn.apply(TurnInput::ToolRedefined { tool, fingerprint, start: None }, running.now, &mut out);
        }
        turn.resume(1, running.now, &mut out);
        out.actions.iter().any(|action| matches!(action, TurnAction::StartTool { .. }))
    };
    assert!(again(None));
    assert!(!again(Some("f2")));
}

/// No machine writes such a log; if one did, the approval would be about arguments that the log no longer
/// has.
#[test]
fn approval_is_void_if_the_arguments_were_replaced() {
    let scripted = approved_and_waiting();
    let with = |arguments: &str| {
        let mut log = scripted.log.clone();
        let last = log.iter().rfind(|event| event.tool_id == Some("t.2".into())).cloned().expect("an event");
        let input = format!(r#"{{"type":"tool_input","arguments":{arguments},"seal":"explicit"}}"#);
        for kind in [r#"{"type":"tool_input_reset"}"#, &input] {
            let seq = log.last().expect("an event").seq.next();
            let kind = serde_json::from_str(kind).expect("an event");
            log.push(Event { seq, kind, ..last.clone() });
        }
        after_restart(&scripted, &log, "f1")
    };
    assert_eq!(with(r#"{"n":1}"#), ["starts"]);
    assert_eq!(with(r#"{"n":2}"#), ["asks"]);
}

// --- changed arguments ---

#[test]
fn edited_arguments_are_run_and_reported_to_the_model() {
    let scripted = check(
        r#"tools mail:external
         open A mail
         seal A {"to":"all@example.com","text":"hi"}
         finish tool_calls
         edit A {"to":"me@example.com","text":"hi"}
         ok A sent
         finish stop"#,
        "ask A effect:external
         answer A approve by user
         start A
         result A success sent
         step 2 m try 1
         step end stop
         end completed",
    );
    assert_eq!(started(&scripted), [("A", r#"{"to":"me@example.com","text":"hi"}"#)]);
    assert_eq!(
        told(&scripted),
        ["The user changed the arguments before it ran: {\"to\":\"me@example.com\",\"text\":\"hi\"}\nsent"]
    );
    let diff = scripted.log.iter().find_map(|event| match &event.kind {
        EventKind::ApprovalResolved { arguments_diff, .. } => arguments_diff.clone(),
        _ => None,
    });
    let expected = serde_json::json!([{
        "path": "/to",
        "from": "all@example.com",
        "to": "me@example.com",
        "text": "/to: \"all@example.com\" → \"me@example.com\"",
    }]);
    assert_eq!(diff, Some(expected));
    let call = scripted.message().calls().next().cloned().expect("a call");
    assert_eq!(call.arguments.expect("arguments")["to"], "all@example.com");
    assert_eq!(call.ran_with.expect("other arguments")["to"], "me@example.com");
}

#[test]
fn invalid_argument_edit_leaves_the_approval_open() {
    let scripted = check(
        r#"tools w:write; rule {"decide":"deny","tool":"w","arguments":{"to":{"equals":"boss"}},"reason":"not the boss"}
         open A w
         seal A {"to":"a"}
         open B w
         seal B {"to":"b"}
         finish tool_calls
         invalid A /to: expected a string
         edit A {"to":1}
         edit A {"to":"boss"}
         edit all {"to":"c"}
         edit A {"to":"a"}
         ok A 1
         deny B
         finish stop"#,
        "ask A effect:write
         ask B effect:write
         problem invalid_edit
         problem invalid_edit
         problem invalid_edit
         problem invalid_edit
         answer A approve by user
         start A
         result A success 1
         answer B deny by user
         result B denied
         step 2 m try 1
         step end stop
         end completed",
    );
    assert_eq!(started(&scripted), [("A", r#"{"to":"a"}"#)]);
    let why: Vec<_> = scripted.message().problems.into_iter().map(|problem| problem.excerpt).collect();
    assert_eq!(why[0], "/to: expected a string");
    assert!(why[1].starts_with("not the boss"), "{why:?}");
    assert_eq!(told(&scripted)[0], "1", "nothing was changed");
}

#[test]
fn edit_under_validation_loses_to_another_decision() {
    let scripted = check(
        r#"tools w:write
         open A w
         seal A {"n":1}
         finish tool_calls
         slow A
         edit A {"n":2}
         deny A no
         checked A
         finish stop"#,
        "ask A effect:write
         answer A deny by user
         result A denied
         step 2 m try 1
         step end stop
         end completed",
    );
    assert_eq!(started(&scripted), []);
    let scripted = check(
        r#"tools w:write
         open A w
         seal A {"n":1}
         finish tool_calls
         slow A
         edit A {"n":2}
         approve A
         checked A
         ok A 1
         finish stop"#,
        "ask A effect:write
         answer A approve by user
         start A
         result A success 1
         step 2 m try 1
         step end stop
         end completed",
    );
    assert_eq!(started(&scripted), [("A", r#"{"n":1}"#)]);
}

#[test]
fn edited_arguments_survive_a_redefinition_and_ask_again() {
    let scripted = check(
        r#"tools w:write
         open A w
         seal A {"n":1}
         finish tool_calls
         edit A {"n":2}
         unmade A f2
         approve A
         ok A done
         finish stop"#,
        "ask A effect:write
         answer A approve by user
         start A
         redefined A f2
         ask A redefined
         answer A approve by user
         start A again 2
         result A success done
         step 2 m try 1
         step end stop
         end completed",
    );
    assert_eq!(started(&scripted), [("A", r#"{"n":2}"#), ("A", r#"{"n":2}"#)]);
    assert!(told(&scripted)[0].contains(r#"{"n":2}"#));
}

// --- memory ---

#[test]
fn turn_scoped_approval_answers_open_and_later_requests() {
    let scripted = check(
        r#"tools w:write
         open A w
         seal A {"path":"/srv/a"}
         open B w
         seal B {"path":"/srv/b"}
         open C w
         seal C {"path":"/etc/c"}
         finish tool_calls
         keep turn {"arguments":{"path":{"under":"/srv"}}} A
         ok A 1
         ok B 2
         deny C
         open D w
         seal D {"path":"/srv/../etc/d"}
         open E w
         seal E {"path":"/srv/e"}
         finish tool_calls
         ok E 5
         deny D
         finish stop"#,
        r#"ask A effect:write
         ask B effect:write
         ask C effect:write
         answer A approve by user
         answer B approve by remembered
         start A
         result A success 1
         start B
         result B success 2
         answer C deny by user
         result C denied
         step 2 m try 1
         use D w
         input D {"path":"/srv/../etc/d"}
         use E w
         input E {"path":"/srv/e"}
         step end tool_calls
         ask D effect:write
         start E
         result E success 5
         answer D deny by user
         result D denied
         step 3 m try 1
         step end stop
         end completed"#,
    );
    assert_eq!(rules(&scripted)[3], "remembered:turn");
}

#[test]
fn conversation_scoped_denial_is_remembered() {
    let scripted = check(
        r#"tools w:write
         open A w
         seal A {"n":1}
         open B w
         seal B {"n":1}
         finish tool_calls
         refuse conversation exact A
         open C w
         seal C {"n":1}
         open D w
         seal D {"n":2}
         finish tool_calls
         deny D
         finish stop"#,
        r#"ask A effect:write
         ask B effect:write
         answer A deny by user
         result A denied
         answer B deny by remembered
         result B denied
         step 2 m try 1
         use C w
         input C {"n":1}
         use D w
         input D {"n":2}
         step end tool_calls
         result C denied
         ask D effect:write
         answer D deny by user
         result D denied
         step 3 m try 1
         step end stop
         end completed"#,
    );
    assert_eq!(rules(&scripted)[2], "remembered:conversation");
}

#[test]
fn remembered_approval_is_logged_and_applies_in_later_turns() {
    let scripted = ScriptedTurn::run_with(
        r#"tools w:write
         open A w
         seal A {"n":1}
         finish tool_calls
         keep always exact A"#,
        Some(restores),
    );
    let kept: RememberedDecision = scripted
        .log
        .iter()
        .find_map(|event| match &event.kind {
            EventKind::ApprovalResolved { remembered, remember, .. } => {
                assert_eq!(remember.as_deref(), Some("always"));
                remembered.as_deref().cloned()
            }
            _ => None,
        })
        .expect("something to keep");
    let later = |tools: &str, arguments: &str| {
        let mut setup = script::setup(tools);
        setup.remembered.push(kept.clone());
        let mut scripted = ScriptedTurn::new(setup);
        for line in ["open A w", &format!("seal A {arguments}"), "finish tool_calls"] {
            scripted.line(line);
        }
        scripted.lines.last().cloned().expect("a line")
    };
    assert_eq!(later("tools w:write", r#"{"n":1}"#), "start A");
    assert_eq!(later("tools w:write", r#"{"n":2}"#), "ask A effect:write");
    assert_eq!(later("tools w:write:asks", r#"{"n":1}"#), "ask A tool");
}

#[test]
fn unrememberable_approval_counts_for_its_call_only() {
    check(
        r#"tools w:write l:read:asks
         open A w
         seal A {"path":"/etc/a"}
         open B l
         seal B {}
         open C w
         seal C {"path":"/etc/a"}
         finish tool_calls
         keep always {"arguments":{"path":{"under":"/srv"}}} A
         ok A 1
         keep turn any B
         ok B 2
         keep call any C
         ok C 3
         finish stop"#,
        "ask A effect:write
         ask B tool
         ask C effect:write
         problem not_remembered
         answer A approve by user
         start A
         result A success 1
         problem not_remembered
         answer B approve by user
         start B
         result B success 2
         answer C approve by user
         start C
         result C success 3
         step 2 m try 1
         step end stop
         end completed",
    );
}

// --- the log ---

// A decision of a later release in an unknown form is not remembered, and nothing else is lost.
#[test]
fn approval_event_drops_unknown_remembered_data() {
    let line = r#"{"turn_id":"t","seq":9,"timestamp":1,"type":"approval_resolved","approval_id":"a","decision":"approve",
        "by":"user","remember":"fortnight","remembered":{"decision":"approve","scope":"fortnight","tool":"w"}}"#;
    let event: Event = serde_json::from_str(line).expect("an event");
    let EventKind::ApprovalResolved { remember, remembered, .. } = event.kind else { panic!("an answer") };
    assert_eq!((remember.as_deref(), remembered), (Some("fortnight"), None));
}
