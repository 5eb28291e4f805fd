//! Scenarios: inputs as prose, the log as it reads.

use crate::script::{self, ScriptedTurn};
use throughline_wire::{CallOutcome, Message, ToolChoice};

/// Runs a script and compares the log, line by line.
fn check(script: &str, expected: &str) -> ScriptedTurn {
    let scripted = ScriptedTurn::run_with(script, Some(invariants));
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(
        scripted.lines,
        expected,
        "\n--- script\n{script}\n--- the log was\n{}\n",
        scripted.lines.join("\n")
    );
    scripted
}

/// Invariants after each input of every scenario.
fn invariants(scripted: &ScriptedTurn) {
    for (at, event) in scripted.log.iter().enumerate() {
        assert_eq!(event.seq.0, at as u64 + 1, "seq is dense");
    }
    if scripted.turn.is_over() {
        let stats = scripted.message().stats.expect("totals");
        assert_eq!(
            stats.segments.iter().map(|segment| segment.ms).sum::<u64>(),
            stats.wall_ms,
            "the waterfall adds up"
        );
    }
}

fn outcomes(scripted: &ScriptedTurn) -> Vec<CallOutcome> {
    let history = scripted.turn.history().expect("all calls are closed");
    let steps = history.iter().filter_map(|message| match message {
        Message::Step(step) => Some(step),
        Message::User(_) => None,
    });
    steps.flat_map(|step| step.calls.iter().map(|(_, outcome)| outcome.clone())).collect()
}

#[test]
fn plain_reply_is_one_message() {
    let scripted = check(
        "tools weather:read
         think hm
         text 你
         text 好
         finish stop",
        "step 1 m try 1
         thinking hm
         text 你
         text 好
         step end stop
         end completed",
    );
    assert_eq!(scripted.message().text(), "你好");
    assert_eq!(scripted.message().blocks.len(), 2);
}

// A read starts while the model streams; its result is shown immediately and sent with the next step.
#[test]
fn read_starts_early_and_its_result_is_in_the_next_step() {
    let scripted = check(
        r#"tools weather:read; eager
         text 好的
         open A weather
         args A {"city":"北京"}
         balanced A {"city":"北京"}
         +100
         ok A 晴
         text 看
         +200
         finish tool_calls
         text 晴天
         finish stop"#,
        r#"step 1 m try 1
         text 好的
         use A weather
         input A {"city":"北京"}
         start A early
         result A success 晴
         text 看
         step end tool_calls
         step 2 m try 1
         text 晴天
         step end stop
         end completed"#,
    );
    assert_eq!(scripted.requests.len(), 2);
    let Message::Step(step) = &scripted.requests[1].messages[1] else { panic!("a step") };
    assert_eq!((step.text.as_str(), step.calls.len()), ("好的看", 1));
    assert_eq!(step.calls[0].0.upstream_id.as_ref().unwrap().as_str(), "uA");
    let message = scripted.message();
    assert_eq!(message.calls().next().unwrap().seen_by_model, Some(true));
    assert_eq!(message.stats.unwrap().saved_by_eager_ms, 100);
}

// The barrier exactly.
#[test]
fn after_stream_calls_wait_for_the_commit() {
    check(
        r#"tools weather:read; barrier
         open A weather
         seal A {}
         text x
         finish tool_calls
         ok A 晴
         finish stop"#,
        "step 1 m try 1
         use A weather
         input A {}
         text x
         step end tool_calls
         start A
         result A success 晴
         step 2 m try 1
         step end stop
         end completed",
    );
}

// A write waits for the commit and for a person; a gesture passes it.
#[test]
fn cosmetic_call_runs_while_a_write_awaits_approval() {
    check(
        r#"tools calendar:write face:cosmetic; eager
         open A calendar
         seal A {"at":"9:00"}
         open B face
         seal B {"name":"smile"}
         ok B applied
         finish tool_calls
         +5000
         approve A
         +10
         ok A saved
         text 好了
         finish stop"#,
        r#"step 1 m try 1
         use A calendar
         input A {"at":"9:00"}
         use B face
         input B {"name":"smile"}
         start B early
         result B success applied
         step end tool_calls
         ask A effect:write
         answer A approve by user
         start A
         result A success saved
         step 2 m try 1
         text 好了
         step end stop
         end completed"#,
    );
}

// No call after it runs, every other one is closed truthfully, and the model is not asked again.
#[test]
fn denial_with_stop_cancels_the_turn() {
    let scripted = check(
        r#"tools w:write r:read c:cosmetic; barrier; parallel
         open A w
         seal A {}
         open B r
         seal B {}
         open C w
         seal C {"n":2}
         open D c
         seal D {}
         finish tool_calls
         ok D waved
         deny-and-stop A not like this
         outcome B {"cancelled":{"yes":{"ran_ms":1,"partial":null}}}"#,
        r#"step 1 m try 1
         use A w
         input A {}
         use B r
         input B {}
         use C w
         input C {"n":2}
         use D c
         input D {}
         step end tool_calls
         ask A effect:write
         ask C effect:write
         start B
         start D
         result D success waved
         notice stopped
         answer A deny by user and stop
         result A denied
         answer C deny by stop
         result C cancelled (cancelled_before_start)
         ! cancel B 1
         result B cancelled
         end cancelled"#,
    );
    assert!(matches!(
        &outcomes(&scripted)[..],
        [CallOutcome::Denied { reason: Some(reason) }, CallOutcome::Cancelled(_), CallOutcome::Cancelled(_), CallOutcome::Done(_)]
            if reason == "not like this"
    ));
}

#[test]
fn denial_with_stop_resolves_only_valid_pending_requests() {
    let script = |last: &str| {
        let setup = "tools w:write; barrier; parallel\nopen A w\nseal A {}\nopen B w\nseal B {\"n\":2}";
        let scripted =
            ScriptedTurn::run_with(&format!("{setup}\nfinish tool_calls\n{last}"), Some(invariants));
        let asked = scripted.lines.iter().rposition(|line| line.starts_with("ask ")).expect("a question");
        scripted.lines[asked + 1..].join("; ")
    };
    let expected = [
        (
            "deny-and-stop all",
            "notice stopped; answer A deny by user and stop; result A denied; answer B deny by user and stop; result B denied; end cancelled",
        ),
        // About other arguments than those that were shown: refused, and nothing stops.
        ("stale-stop A", "problem stale_answer"),
        // A second answer changes nothing.
        (
            "deny-and-stop B\ndeny-and-stop B\napprove B",
            "notice stopped; answer B deny by user and stop; result B denied; answer A deny by stop; result A cancelled (cancelled_before_start); end cancelled",
        ),
        // Without a denial there is nothing to stop for.
        ("approve-and-stop A", "answer A approve by user; start A"),
    ];
    for (last, lines) in expected {
        assert_eq!(script(last), lines, "{last}");
    }
}

// A waiting call lets later ones start; the order of recording stays the call order.
#[test]
fn serial_mode_passes_a_pending_approval_and_keeps_order() {
    let scripted = check(
        r#"tools w:write r:read; barrier
         open A w
         seal A {}
         open B r
         seal B {}
         finish tool_calls
         ok B read
         deny A not today
         finish stop"#,
        "step 1 m try 1
         use A w
         input A {}
         use B r
         input B {}
         step end tool_calls
         ask A effect:write
         start B
         result B success read
         answer A deny by user
         result A denied
         step 2 m try 1
         step end stop
         end completed",
    );
    let reported: Vec<String> = outcomes(&scripted).iter().map(CallOutcome::model_text).collect();
    assert!(reported[0].contains("not today") && reported[1] == "read", "{reported:?}");
}

#[test]
fn parallel_results_are_logged_as_they_finish() {
    let scripted = check(
        r#"tools a:read b:read; parallel; barrier
         open A a
         seal A {}
         open B b
         seal B {}
         finish tool_calls
         ok B two
         ok A one
         finish stop"#,
        "step 1 m try 1
         use A a
         input A {}
         use B b
         input B {}
         step end tool_calls
         start A
         start B
         result B success two
         result A success one
         step 2 m try 1
         step end stop
         end completed",
    );
    let reported: Vec<String> = outcomes(&scripted).iter().map(CallOutcome::model_text).collect();
    assert_eq!(reported, ["one", "two"]);
}

// A failed, timed-out or unknown tool never ends the turn.
#[test]
fn failed_or_invalid_calls_do_not_end_the_turn() {
    let scripted = check(
        r#"tools weather:read slow:read; parallel; barrier
         open A weather
         seal A {}
         open B slow
         seal B {}
         open C wether
         seal C {}
         invalid D /city: expected a string
         open D weather
         seal D {"city":1}
         open E weather
         broken E {"city":
         finish tool_calls
         fail A no such city
         hang B
         text sorry
         finish stop"#,
        r#"step 1 m try 1
         use A weather
         input A {}
         use B slow
         input B {}
         use C wether
         input C {}
         use D weather
         input D {"city":1}
         use E weather
         broken E {"city":
         step end tool_calls
         result C not_started (unknown_tool)
         result D not_started (invalid_arguments)
         result E not_started (invalid_arguments)
         start A
         start B
         result A error (failed)
         result B timed_out
         step 2 m try 1
         ! cancel B 1
         text sorry
         step end stop
         end completed"#,
    );
    let reported: Vec<String> = outcomes(&scripted).iter().map(CallOutcome::model_text).collect();
    assert!(reported[2].contains("Did you mean weather?"), "{reported:?}");
    assert!(reported[3].contains("/city: expected a string"), "{reported:?}");
}

// Iterations, then one last step with tools off.
#[test]
fn iteration_limit_gives_one_last_step_without_tools() {
    let scripted = check(
        r#"tools t:read; iterations 1; barrier
         open A t
         seal A {}
         finish tool_calls
         ok A 1
         text done
         finish stop"#,
        "step 1 m try 1
         use A t
         input A {}
         step end tool_calls
         start A
         result A success 1
         notice limit
         step 2 m try 1 no tools
         text done
         step end stop
         end limit",
    );
    assert_eq!(scripted.requests[1].tool_choice, ToolChoice::None);
    assert_eq!(scripted.requests[1].tools.len(), 1, "history needs the definitions");
}

#[test]
fn call_in_the_last_step_is_refused_and_ends_the_turn() {
    check(
        r#"tools t:read; iterations 1; eager
         open A t
         seal A {}
         ok A 1
         finish tool_calls
         open B t
         seal B {}
         finish tool_calls"#,
        "step 1 m try 1
         use A t
         input A {}
         start A early
         result A success 1
         step end tool_calls
         notice limit
         step 2 m try 1 no tools
         use B t
         input B {}
         step end tool_calls
         result B not_started (limit)
         end limit",
    );
}

#[test]
fn reply_truncated_by_length_runs_no_calls() {
    let scripted = check(
        r#"tools w:write
         text long
         open A w
         balanced A {"text":"complete-looking"}
         finish length"#,
        r#"step 1 m try 1
         text long
         use A w
         input A {"text":"complete-looking"}
         notice length
         step end length
         result A not_started (interrupted)
         end length"#,
    );
    assert!(outcomes(&scripted).is_empty(), "a call of a cut reply is not told to the model");
}

#[test]
fn failures_before_the_first_token_are_retried_with_backoff() {
    check(
        "tools t:read
         http 429 2000
         timer retry
         http 503
         timer retry
         text ok
         finish stop",
        "step 1 m try 1
         waiting rate_limit 2000
         step 1 m try 2
         waiting retry 761
         step 1 m try 3
         text ok
         step end stop
         end completed",
    );
}

/// Results that the next request has, by length.
fn output_lengths(scripted: &ScriptedTurn, request: usize) -> Vec<usize> {
    let steps = scripted.requests[request].messages.iter().filter_map(|message| match message {
        Message::Step(step) => Some(step),
        Message::User(_) => None,
    });
    let outcomes = steps.flat_map(|step| &step.calls).map(|(_, outcome)| outcome);
    outcomes.map(|outcome| outcome.output().map_or(0, |output| output.text.len())).collect()
}

#[test]
fn too_long_history_is_retried_with_shortened_old_results() {
    let long = "x".repeat(9_000);
    let script = format!(
        "tools t:read
         open A t
         seal A {{}}
         finish tool_calls
         ok A {long}
         open B t
         seal B {{}}
         finish tool_calls
         ok B {long}
         too long
         text ok
         open C t
         seal C {{}}
         finish tool_calls
         ok C short
         finish stop"
    );
    let scripted = ScriptedTurn::run_with(&script, Some(invariants));
    let reported: Vec<&String> = scripted
        .lines
        .iter()
        .filter(|line| ["step 3", "notice", "end "].iter().any(|word| line.starts_with(word)))
        .collect();
    assert_eq!(reported, ["step 3 m try 1", "notice history_shortened", "step 3 m try 2", "end completed"]);
    assert_eq!(output_lengths(&scripted, 2), [9_000, 9_000], "first whole");
    let [old, last] = output_lengths(&scripted, 3)[..] else { panic!("{:?}", scripted.requests[3]) };
    assert!((2 << 10..2_200).contains(&old) && last == 9_000, "{old} {last}");
    // From there on every old result is shortened: a request that was refused once would be refused again.
    let [_, second, third] = output_lengths(&scripted, 4)[..] else { panic!("{:?}", scripted.requests[4]) };
    assert!(second < 2_200 && third == 5);
    // The log has all of it.
    let logged = outcomes(&scripted);
    assert_eq!(logged[0].output().map(|output| output.text.len()), Some(9_000));
}

#[test]
fn history_that_cannot_be_shortened_is_not_retried() {
    check(
        "tools t:read
         too long",
        "step 1 m try 1
         error block context_too_long
         step end error
         error context_too_long
         end error",
    );
    let script = format!(
        "tools t:read\nopen A t\nseal A {{}}\nfinish tool_calls\nok A {}\ntoo long\ntoo long",
        "x".repeat(9_000)
    );
    let scripted = ScriptedTurn::run_with(&script, Some(invariants));
    assert_eq!(scripted.requests.len(), 3, "one try more, and no more");
    assert!(scripted.lines.iter().any(|line| line == "error context_too_long"), "{:?}", scripted.lines);
}

#[test]
fn fallback_takes_over_for_the_rest_of_the_turn() {
    check(
        "tools t:read; fallback
         http 401
         text ok
         open A t
         seal A {}
         finish tool_calls
         ok A 1
         finish stop",
        "step 1 m try 1
         problem fallback
         step 1 m2 try 2
         text ok
         use A t
         input A {}
         start A early
         step end tool_calls
         result A success 1
         step 2 m2 try 1
         step end stop
         end completed",
    );
}

#[test]
fn final_upstream_error_is_in_the_message() {
    check(
        "tools t:read
         http 401",
        "step 1 m try 1
         error block unauthorized
         step end error
         error unauthorized
         end error",
    );
}

// No silent downgrade, not even to a fallback.
#[test]
fn unsupported_tools_error_suggests_text_mode() {
    let scripted = check(
        "tools t:read; fallback
         unsupported",
        "step 1 m try 1
         error block tool_calling_unsupported
         step end error
         error tool_calling_unsupported
         end error",
    );
    assert!(scripted.message().error.unwrap().remedy.contains("text"));
}

#[test]
fn broken_stream_keeps_shown_text_and_results() {
    let scripted = check(
        r#"tools r:read w:write
         text so far
         open A r
         seal A {}
         ok A 1
         open B w
         args B {"half":
         cut"#,
        r#"step 1 m try 1
         text so far
         use A r
         input A {}
         start A early
         result A success 1
         use B w
         broken B {"half":
         error block upstream_lost
         step end error
         result B not_started (interrupted)
         error upstream_lost
         end error"#,
    );
    let message = scripted.message();
    assert_eq!(message.text(), "so far");
    assert_eq!(message.calls().next().unwrap().seen_by_model, Some(false), "ran, not used");
    assert!(message.error.unwrap().remedy.contains("continue"));
    assert!(outcomes(&scripted).is_empty());
}

// The same request would be refused again, so the remedy is that of the refusal.
#[test]
fn mid_reply_error_keeps_its_code_and_remedy() {
    for (failure, code, goes_on) in [
        ("http 429", "rate_limited", true),
        ("http 503", "upstream_error", true),
        ("http 401", "unauthorized", false),
        ("too long", "context_too_long", false),
    ] {
        let message = ScriptedTurn::run(&format!("tools r:read\ntext so far\n{failure}")).message();
        assert_eq!(message.text(), "so far");
        let error = message.error.expect("an error");
        assert_eq!(
            (&*error.code, error.retryable, error.remedy.contains("continue")),
            (code, goes_on, goes_on),
            "{failure}"
        );
    }
}

// A stop reports each call truthfully, and does not wait without end.
#[test]
fn cancel_while_tools_run_keeps_finished_results() {
    let scripted = check(
        r#"tools r:read w:write; parallel; approve; barrier
         open A r
         seal A {}
         open B w
         seal B {}
         open C w
         broken C {"x
         open D r
         seal D {}
         finish tool_calls
         ok A 1
         progress B 2 of 3
         +1200
         cancel
         ok D 4
         grace B"#,
        r#"step 1 m try 1
         use A r
         input A {}
         use B w
         input B {}
         use C w
         broken C {"x
         use D r
         input D {}
         step end tool_calls
         result C not_started (invalid_arguments)
         start A
         start B
         start D
         result A success 1
         progress B
         notice stopped
         ! cancel B 1
         ! cancel D 1
         result D success 4
         result B cancelled
         end cancelled"#,
    );
    let reported: Vec<String> = outcomes(&scripted).iter().map(CallOutcome::model_text).collect();
    assert_eq!(reported[0], "1");
    assert!(
        reported[1].contains("after running 3.2 s") && reported[1].ends_with("2 of 3"),
        "{}",
        reported[1]
    );
    assert_eq!(reported[3], "4", "a tool that had finished is said to have finished");
}

#[test]
fn cancel_while_streaming_gives_every_call_an_outcome() {
    let scripted = check(
        r#"tools r:read w:write; eager; serial
         text a
         open A r
         seal A {}
         ok A 1
         open B w
         seal B {}
         open C w
         args C {"half
         cancel
         cancel
         text late
         ok A 2"#,
        r#"step 1 m try 1
         text a
         use A r
         input A {}
         start A early
         result A success 1
         use B w
         input B {}
         use C w
         broken C {"half
         notice stopped
         step end
         result B cancelled (cancelled_before_start)
         result C not_started (interrupted)
         end cancelled
         ! abort model"#,
    );
    let reported: Vec<String> = outcomes(&scripted).iter().map(CallOutcome::model_text).collect();
    assert_eq!(reported.len(), 3, "the next request says what happened to each call");
    assert!(reported[1].contains("nothing happened") && reported[2].contains("ended before"), "{reported:?}");
}

#[test]
fn second_cancel_ends_the_turn_at_once() {
    check(
        "tools w:write; approve
         open A w
         seal A {}
         finish tool_calls
         +10
         cancel
         cancel
         ok A late",
        "step 1 m try 1
         use A w
         input A {}
         step end tool_calls
         start A
         notice stopped
         ! cancel A 1
         result A cancelled
         end cancelled",
    );
}

// One call ends, the turn continues.
#[test]
fn single_call_is_cancelled_before_or_while_running() {
    check(
        r#"tools w:write r:read; parallel; barrier
         open A w
         cancel A
         seal A {}
         open B w
         seal B {}
         open C r
         seal C {}
         finish tool_calls
         cancel B
         cancel C
         cancel C
         outcome C {"cancelled":{"yes":{"ran_ms":1,"partial":null}}}
         finish stop"#,
        "step 1 m try 1
         use A w
         input A {}
         result A cancelled (cancelled_before_start)
         use B w
         input B {}
         use C r
         input C {}
         step end tool_calls
         ask B effect:write
         start C
         answer B deny by cancel
         result B cancelled (cancelled_before_start)
         ! cancel C 1
         result C cancelled
         step 2 m try 1
         step end stop
         end completed",
    );
}

#[test]
fn approval_request_expires_as_denied() {
    check(
        "tools w:write
         open A w
         seal A {}
         finish tool_calls
         timer approval
         approve A
         finish stop",
        "step 1 m try 1
         use A w
         input A {}
         step end tool_calls
         ask A effect:write
         answer A deny by timer
         result A denied
         step 2 m try 1
         step end stop
         end completed",
    );
}

#[test]
fn call_needing_approval_is_denied_without_an_approver() {
    let scripted = check(
        "tools w:write; nobody
         open A w
         seal A {}
         finish tool_calls
         finish stop",
        "step 1 m try 1
         use A w
         input A {}
         step end tool_calls
         result A denied
         step 2 m try 1
         step end stop
         end completed",
    );
    assert!(outcomes(&scripted)[0].model_text().contains("nobody to ask"));
}

#[test]
fn client_tool_without_a_client_fails_at_once() {
    check(
        "tools face:cosmetic:nobody
         open A face
         seal A {}
         finish tool_calls
         finish stop",
        "step 1 m try 1
         use A face
         input A {}
         step end tool_calls
         result A not_started (no_viewer)
         step 2 m try 1
         step end stop
         end completed",
    );
}

#[test]
fn reply_of_thinking_alone_is_requested_again_once() {
    let scripted = check(
        "tools weather:read
         think I should say noon
         finish stop
         text Noon.
         finish stop",
        "step 1 m try 1
         thinking I should say noon
         step end stop
         problem answer_missing
         step 2 m try 1
         text Noon.
         step end stop
         end completed",
    );
    // Reasoning alone is not a message; the note comes after the question.
    let messages = &scripted.requests[1].messages;
    assert!(messages.iter().all(|message| matches!(message, Message::User(_))), "{messages:?}");
    assert_eq!(messages.len(), 2);
    check(
        "tools weather:read
         open A weather
         seal A {}
         ok A sun
         finish tool_calls
         think Sun, then
         finish stop
         think Well
         finish stop",
        "step 1 m try 1
         use A weather
         input A {}
         start A early
         result A success sun
         step end tool_calls
         step 2 m try 1
         thinking Sun, then
         step end stop
         problem answer_missing
         step 3 m try 1
         thinking Well
         step end stop
         notice empty_reply
         end completed",
    );
}

#[test]
fn loop_guard_notes_then_asks_then_stops() {
    let round = "open A t\nseal A {}\nok A same\nfinish tool_calls\n";
    let asked = "open A t\nseal A {}\nfinish tool_calls\napprove A\nok A same\n";
    let script = format!(
        "tools t:read; iterations 50; eager\n{}{asked}open A t\nseal A {{}}\nfinish tool_calls\nfinish stop",
        round.repeat(3)
    );
    let scripted = ScriptedTurn::run_with(&script, Some(invariants));
    let reported: Vec<&String> = scripted
        .lines
        .iter()
        .filter(|line| {
            ["problem", "ask", "notice", "end ", "result E"].iter().any(|word| line.starts_with(word))
        })
        .collect();
    assert_eq!(
        reported,
        // The note is repeated as long as the loop continues.
        [
            "problem loop_note",
            "ask D loop_guard",
            "problem loop_note",
            "result E not_started (limit)",
            "notice loop_stopped",
            "end limit"
        ]
    );
    let notes =
        scripted.requests[3].messages.iter().filter(|message| matches!(message, Message::User(_))).count();
    assert_eq!(notes, 2, "the user's message and the note");
    assert!(matches!(scripted.requests[3].messages.last(), Some(Message::User(_))), "after all outcomes");
}

#[test]
fn loop_guard_ignores_pollers_and_new_results() {
    let poll = "open A t\nseal A {}\nok A same\nfinish tool_calls\n".repeat(6);
    let fresh: String =
        (0..6).map(|n| format!("open A t\nseal A {{}}\nok A {n}\nfinish tool_calls\n")).collect();
    for script in [
        format!("tools t:read:poller; iterations 50\n{poll}finish stop"),
        format!("tools t:read; iterations 50\n{fresh}finish stop"),
    ] {
        let scripted = ScriptedTurn::run_with(&script, Some(invariants));
        let quiet = !scripted.lines.iter().any(|line| line.starts_with("problem") || line.starts_with("ask"));
        assert!(quiet, "{:#?}", scripted.lines);
    }
}

#[test]
fn contradicted_early_read_reruns_and_only_the_last_counts() {
    let scripted = check(
        r#"tools r:read; eager
         open A r
         balanced A {"a":1}
         reopen A
         ok A old
         balanced A {"a":2}
         ok A new
         reopen A
         seal A {"a":3}
         ok A newest
         finish tool_calls
         finish stop"#,
        r#"step 1 m try 1
         use A r
         input A {"a":1}
         start A early
         reset A
         ! cancel A 1
         input A {"a":2}
         start A early again 2
         result A success new
         problem contradicted_seal
         use B r instead of A
         input B {"a":3}
         start B early
         result B success newest
         step end tool_calls
         step 2 m try 1
         step end stop
         end completed"#,
    );
    let reported: Vec<String> = outcomes(&scripted).iter().map(CallOutcome::model_text).collect();
    assert_eq!(reported, ["newest"]);
    assert_eq!(scripted.message().calls().next().unwrap().seen_by_model, Some(false));
}

#[test]
fn orphaned_arguments_block_calls_with_side_effects() {
    let scripted = check(
        r#"tools r:read:poller w:write x:external k:idempotent; ask
         open A r
         seal A {"a":1}
         open B w
         seal B {"b":2}
         open C x
         seal C {}
         open D k
         seal D {"d":4}
         orphan E {"e":5}
         finish tool_calls
         ok A found
         text Once more.
         open B w
         seal B {"b":2}
         finish tool_calls
         approve B
         ok B written
         finish stop"#,
        r#"step 1 m try 1
         use A r
         input A {"a":1}
         start A early
         use B w
         input B {"b":2}
         use C x
         input C {}
         use D k
         input D {"d":4}
         use E
         broken E {"e":5}
         step end tool_calls
         result B not_started (refused)
         result C not_started (refused)
         result D not_started (refused)
         result E not_started (invalid_arguments)
         result A success found
         step 2 m try 1
         text Once more.
         use F w
         input F {"b":2}
         step end tool_calls
         ask F effect:write
         answer F approve by user
         start F
         result F success written
         step 3 m try 1
         step end stop
         end completed"#,
    );
    let reported: Vec<String> = outcomes(&scripted).iter().map(CallOutcome::model_text).collect();
    assert_eq!(reported[0], "found");
    assert!(reported[1].contains("belong to no call"), "{reported:?}");
    assert_eq!(scripted.started.len(), 2, "{:?}", scripted.started);
}

// --- content other than text and calls ---

#[test]
fn refusals_images_audio_and_citations_become_blocks() {
    use throughline_engine::fold::MessageBlock;
    use throughline_wire::{HostedTool, Media, StepEvent};
    let mut scripted = ScriptedTurn::run("tools t:read\ntext a");
    let media = Media::new("image/png".into(), "AA==".into());
    scripted.model(StepEvent::Citation(serde_json::json!({"url": "https://example.org"})));
    scripted.model(StepEvent::Image(media.clone()));
    scripted.model(StepEvent::Audio {
        data: "QUE=".into(),
        transcript: "hello".into(),
        format: Some("pcm16".into()),
        sample_rate: Some(24_000),
    });
    scripted.model(StepEvent::Hosted(HostedTool {
        id: Some("h".into()),
        name: "search".into(),
        input: None,
        output: None,
    }));
    let output = Some(serde_json::json!("found"));
    scripted.model(StepEvent::Hosted(HostedTool {
        id: Some("h".into()),
        name: "search".into(),
        input: None,
        output,
    }));
    scripted.line("refusal I cannot");
    scripted.line("finish stop");
    let message = scripted.message();
    let kinds: Vec<String> = message
        .blocks
        .iter()
        .map(|block| serde_json::to_value(block).unwrap()["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["text", "image", "audio", "tool_call", "text"]);
    assert_eq!(message.blocks[1], MessageBlock::Image(media));
    assert!(matches!(&message.blocks[0], MessageBlock::Text { citations, .. } if citations.len() == 1));
    assert!(matches!(&message.blocks[4], MessageBlock::Text { code: Some(code), .. } if code == "refusal"));
    assert_eq!(message.calls().next().unwrap().output, "\"found\"");
    assert!(outcomes(&scripted).is_empty(), "what the provider ran is no call of ours");
}

#[test]
fn provider_state_is_echoed_and_not_in_the_log() {
    use throughline_wire::{Dialect, ProviderState, StepEvent};
    let mut scripted = ScriptedTurn::run("tools t:read\ntext a\nopen A t\nseal A {}\nok A 1");
    let state = ProviderState { dialect: Dialect::Anthropic, value: serde_json::json!({"signature": "s"}) };
    scripted.model(StepEvent::ProviderState(state.clone()));
    scripted.line("finish tool_calls");
    assert_eq!(scripted.provider_states.len(), 1);
    let Message::Step(step) = &scripted.requests[1].messages[1] else { panic!("a step") };
    assert_eq!(step.provider_state, Some(state));
    let log = serde_json::to_string(&scripted.log).unwrap();
    assert!(!log.contains("signature"), "it is never served");
}

// --- limits --- each with its test

#[test]
fn limits_of_calls_progress_problems_and_output_hold() {
    use throughline_engine::EventKind;
    use throughline_wire::{ProblemKind, StepEvent, StepProblem};
    let mut setup = script::setup("tools t:read; parallel; barrier; iterations 50");
    setup.limits.calls_per_turn_max = 1;
    setup.limits.progress_events_max = 2;
    setup.limits.problems_per_step_max = 3;
    setup.limits.output_bytes_max = 10;
    let mut scripted = ScriptedTurn::new(setup);
    for _ in 0..5 {
        let kind = ProblemKind::IdChanged;
        scripted.model(StepEvent::Problem(StepProblem { kind, at: 0, excerpt: String::new(), slot: None }));
    }
    for line in ["open A t", "seal A {}", "open B t", "seal B {}", "finish tool_calls"] {
        scripted.line(line);
    }
    for _ in 0..5 {
        scripted.line("progress A x");
    }
    scripted.line("ok A a long, long, long answer");
    let count =
        |wanted: fn(&EventKind) -> bool| scripted.log.iter().filter(|event| wanted(&event.kind)).count();
    assert_eq!(count(|kind| matches!(kind, EventKind::Problem { .. })), 3);
    assert_eq!(count(|kind| matches!(kind, EventKind::ToolProgress(_))), 2);
    let reported: Vec<String> = outcomes(&scripted).iter().map(CallOutcome::model_text).collect();
    assert!(reported[0].contains("bytes left out"), "{reported:?}");
    assert!(reported[1].contains("calls_per_turn_max"), "{reported:?}");
}

/// Each request of the turn reports it again, also a retried one.
#[test]
fn left_out_request_parts_are_reported_once_per_turn() {
    use throughline_engine::EventKind;
    use throughline_wire::{ProblemKind, StepEvent, StepProblem};
    let mut scripted = ScriptedTurn::new(script::setup("tools t:read"));
    let left_out = |scripted: &mut ScriptedTurn, kind: ProblemKind, names: &str| {
        let excerpt = names.to_owned();
        scripted.model(StepEvent::Problem(StepProblem { kind, at: 0, excerpt, slot: None }));
    };
    left_out(&mut scripted, ProblemKind::ToolsLeftOut, "t");
    left_out(&mut scripted, ProblemKind::SettingsLeftOut, "seed");
    for line in ["open A t", "seal A {}", "finish tool_calls", "ok A 1"] {
        scripted.line(line);
    }
    left_out(&mut scripted, ProblemKind::ToolsLeftOut, "t");
    // Another upstream may be in use by now.
    left_out(&mut scripted, ProblemKind::SettingsLeftOut, "seed, thinking");
    left_out(&mut scripted, ProblemKind::SettingsLeftOut, "seed");
    let named = scripted.log.iter().filter_map(|event| match &event.kind {
        EventKind::Problem { code, excerpt, .. } => Some(format!("{code} {excerpt}")),
        _ => None,
    });
    let named: Vec<_> = named.collect();
    assert_eq!(named, ["tools_left_out t", "settings_left_out seed", "settings_left_out seed, thinking"]);
}

#[test]
fn provider_pauses_are_limited_per_turn() {
    let mut setup = script::setup("tools t:read");
    setup.limits.pauses_max = 2;
    let mut scripted = ScriptedTurn::new(setup);
    for _ in 0..3 {
        scripted.line("text part");
        scripted.line("finish pause");
    }
    assert!(scripted.turn.is_over());
    assert_eq!(scripted.requests.len(), 3);
}

// --- messages of the user during the turn ---

/// The texts of a request's messages: `user …`, or `step …` with its outcomes.
fn history(scripted: &ScriptedTurn) -> Vec<String> {
    let messages = scripted.turn.history().expect("all calls are closed");
    messages
        .iter()
        .map(|message| match message {
            Message::User(parts) => format!("user {}", script::text_of(parts)),
            Message::Step(step) => {
                let outcomes = step.calls.iter().map(|(_, outcome)| format!(" [{}]", outcome.model_text()));
                format!("step {}{}", step.text, outcomes.collect::<String>())
            }
        })
        .collect()
}

// After all outcomes, before the next model call; nothing separates a call from its outcome.
#[test]
fn steering_message_is_delivered_after_the_step_and_calls() {
    let scripted = check(
        r#"tools weather:read note:write; parallel; ask
         text let me see
         open A weather
         seal A {}
         say in Celsius please
         ok A 20
         open B note
         seal B {}
         finish tool_calls
         say and be short
         approve B
         ok B saved
         text 20 °C
         finish stop"#,
        "step 1 m try 1
         text let me see
         use A weather
         input A {}
         start A early
         result A success 20
         use B note
         input B {}
         step end tool_calls
         ask B effect:write
         answer B approve by user
         start B
         result B success saved
         user in Celsius please
         user and be short
         step 2 m try 1
         text 20 °C
         step end stop
         end completed",
    );
    let expected = [
        "user hi",
        "step let me see [20] [saved]",
        "user in Celsius please",
        "user and be short",
        "step 20 °C",
    ];
    assert_eq!(history(&scripted), expected);
    assert_eq!(scripted.requests[1].messages.len(), 4, "the next request knows them");
    use throughline_engine::fold::MessageBlock;
    let message = scripted.message();
    assert!(
        matches!(&message.blocks[3], MessageBlock::UserMessage { input, .. } if script::text_of(input) == "in Celsius please")
    );
    assert_eq!(script::text_of(&message.input), "hi", "what began the turn stays as it was");
    assert_eq!(message.text(), "let me see\n\n20 °C", "it is no answer");
}

// The model would have stopped; the turn continues with a step that does not count as a round of tools.
#[test]
fn steering_message_after_the_last_step_starts_another() {
    let scripted = check(
        r#"tools weather:read; iterations 1
         text done
         say one more thing
         finish stop
         text of course
         open A weather
         seal A {}
         ok A 20
         finish tool_calls
         text 20
         finish stop"#,
        "step 1 m try 1
         text done
         step end stop
         user one more thing
         step 2 m try 1
         text of course
         use A weather
         input A {}
         start A early
         result A success 20
         step end tool_calls
         notice limit
         step 3 m try 1 no tools
         text 20
         step end stop
         end limit",
    );
    assert_eq!(
        history(&scripted),
        ["user hi", "step done", "user one more thing", "step of course [20]", "step 20"]
    );
}

// What waits for the end, came in the last step, or was taken back is in no event and in no history.
#[test]
fn undelivered_messages_are_returned_at_the_end() {
    let table = [
        // script, messages that are left
        ("say a\ntext x\ncut", "a"),
        ("later a\nsay b\ntext x\nfinish stop\ntext y\nfinish stop", "a"),
        ("say a\nunsay 1\ntext x\nfinish stop", ""),
        ("later a\nlater b\nunsay 1\ntext x\nfinish stop", "b"),
        // the same id is the same message
        ("later a\nagain 1 a\ntext x\nfinish stop", "a"),
        ("say a\ntext x\nfinish stop\nagain 1 a\ntext y\nfinish stop", ""),
        // during the last step, which has no tools
        ("open A r\nseal A {}\nok A 1\nfinish tool_calls\nsay a\ntext x\nfinish stop", "a"),
        // stopped by the user
        ("say a\ntext x\ncancel", "a"),
        // no message
        ("say\ntext x\nfinish stop", ""),
        ("later a\nlater b\nlater c\nlater d\ntext x\nfinish stop", "a b c"),
    ];
    for (lines, left) in table {
        let mut setup = script::setup("tools r:read; iterations 1");
        setup.limits.messages_queued_max = 3;
        let mut scripted = ScriptedTurn::new(setup);
        lines.lines().for_each(|line| scripted.line(line));
        assert!(scripted.turn.is_over(), "{lines}");
        let queued: Vec<String> =
            scripted.turn.queued_messages().iter().map(|message| script::text_of(&message.input)).collect();
        assert_eq!(queued.join(" "), left, "{lines}");
        let taken = history(&scripted).concat();
        assert!(
            left.split_whitespace().all(|word| !taken.contains(&format!("user {word}"))),
            "{lines}: {taken}"
        );
    }
}

// A reply that the provider paused, or that a crash cut, is not interrupted by a message.
#[test]
fn steering_message_waits_until_a_paused_reply_ends() {
    check(
        "tools r:read
         text half
         say well?
         finish pause
         text whole
         finish stop
         text yes
         finish stop",
        "step 1 m try 1
         text half
         step end pause
         step 2 m try 1
         text whole
         step end stop
         user well?
         step 3 m try 1
         text yes
         step end stop
         end completed",
    );
}

// --- questions of a running tool ---

const ASKING: &str = "tools sign:read weather:read; parallel
    open A sign
    seal A {}
    finish tool_calls
    asks A your name?";

// A person's answer is sent to the tool, once; the call continues and its card shows it running again.
#[test]
fn elicitation_of_a_running_tool_returns_the_answer() {
    use throughline_engine::{CallStatus, QuestionKind};
    let begin = "step 1 m try 1
         use A sign
         input A {}
         start A early
         step end tool_calls
         question A your name? (form)";
    let waiting = check(ASKING, begin);
    let card = waiting.message().calls().next().cloned().expect("a card");
    assert_eq!(card.status, Some(CallStatus::AwaitingApproval));
    let asked = card.approval.expect("a question");
    assert_eq!((asked.kind, asked.schema.is_some()), (QuestionKind::Elicitation, true));

    let scripted = check(
        &format!(
            r#"{ASKING}
            +700
            accept A {{"name":"Ada"}}
            accept A {{"name":"Eve"}}
            decline A
            +300
            ok A signed by Ada
            finish stop"#
        ),
        &format!(
            r#"{begin}
            answered A accept by user
            ! tell A 1 accept {{"name":"Ada"}}
            result A success signed by Ada
            step 2 m try 1
            step end stop
            end completed"#
        ),
    );
    // The time that a person took is charged to the person, not to the tool.
    let stats = scripted.message().stats.expect("totals");
    let spent: Vec<(String, u64)> =
        stats.segments.iter().map(|segment| (script::word(&segment.kind), segment.ms)).collect();
    assert_eq!(spent, [("approval_wait".to_owned(), 700), ("tool".to_owned(), 300)]);
}

// Every question ends, and its tool gets exactly one answer.
#[test]
fn elicitation_is_resolved_once_however_it_ends() {
    let table = [
        // what happens, the end of the log
        ("decline A", "answered A decline by user; ! tell A 1 decline"),
        ("deny A", "answered A decline by user; ! tell A 1 decline"),
        // values are wanted: an approval has none
        ("approve A", ""),
        ("approve all", ""),
        ("timer approval", "answered A decline by timer; ! tell A 1 decline"),
        ("ok A done", "answered A cancel by end; result A success done; step 2 m try 1; ! tell A 1 cancel"),
        ("cancel A", "answered A cancel by cancel; ! tell A 1 cancel; ! cancel A 1"),
        ("cancel", "notice stopped; answered A cancel by stop; ! tell A 1 cancel; ! cancel A 1"),
        // a second one during the first
        (
            "deny-and-stop A",
            "notice stopped; answered A decline by user and stop; ! tell A 1 decline; ! cancel A 1",
        ),
        ("asks A and your age?", "! tell A 2 cancel"),
        // a tool that is being stopped cannot ask
        (
            "cancel A\nasks A really?",
            "answered A cancel by cancel; ! tell A 1 cancel; ! cancel A 1; ! tell A 2 cancel",
        ),
        (
            "decline A\nasks A please?",
            "answered A decline by user; ! tell A 1 decline; question A please? (form)",
        ),
    ];
    for (lines, expected) in table {
        let mut scripted = ScriptedTurn::run(ASKING);
        let before = scripted.lines.len();
        lines.lines().for_each(|line| scripted.line(line));
        assert_eq!(scripted.lines[before..].join("; "), expected, "{lines}");
    }
    // An address is approved by the person who opened it.
    let scripted = ScriptedTurn::run(&format!("{} at https://example.org/sign\napprove A", ASKING));
    assert_eq!(scripted.lines.last().map(String::as_str), Some("! tell A 1 accept"));
    // A contradiction of the arguments takes the question back with the start.
    let mut scripted = ScriptedTurn::run("tools sign:read; eager\nopen A sign\nseal A {}\nasks A sure?");
    scripted.line("reopen A");
    let end = scripted.lines[scripted.lines.len() - 4..].join("; ");
    assert_eq!(end, "answered A cancel by reset; reset A; ! tell A 1 cancel; ! cancel A 1");
}

// No person can be asked: the tool is answered immediately, and no question is shown.
#[test]
fn elicitation_without_an_approver_is_declined() {
    let script = ASKING.replace("; parallel", "; nobody");
    let scripted = ScriptedTurn::run(&script);
    assert_eq!(scripted.lines.last().map(String::as_str), Some("! tell A 1 decline"));
    assert!(!scripted.lines.iter().any(|line| line.starts_with("question")));
}

#[test]
fn elicitations_per_call_are_limited() {
    let mut setup = script::setup("tools sign:read; eager");
    setup.limits.questions_per_call_max = 2;
    let mut scripted = ScriptedTurn::new(setup);
    for line in ["open A sign", "seal A {}", "asks A 1", "decline A", "asks A 2", "decline A", "asks A 3"] {
        scripted.line(line);
    }
    assert_eq!(scripted.lines[scripted.lines.len() - 2..], ["problem questions_limit", "! tell A 3 cancel"]);
}

// The time limit is paused while a person is asked, up to a limit.
#[test]
fn tool_timeout_is_paused_during_an_elicitation() {
    // The tool may run 30 s, and has 5 s more to say so.
    let table = [
        // what happens with the question open from 10 s on, when the machine gives the tool up
        ("", 60_000 + 35_000),
        ("+20000\ndecline A", 20_000 + 35_000),
        ("+50000\ndecline A", 50_000 + 35_000),
        ("+59000\ndecline A", 59_000 + 35_000),
        ("+3000\ndecline A\n+1000\nasks A again?\n+4000\ndecline A", 7_000 + 35_000),
    ];
    for (lines, expected) in table {
        let mut setup = script::setup("tools sign:read; eager");
        setup.limits.asked_ms_max = 60_000;
        setup.limits.approval_ms_max = None;
        let mut scripted = ScriptedTurn::new(setup);
        for line in ["open A sign", "seal A {}", "finish tool_calls", "+10000", "asks A who?"] {
            scripted.line(line);
        }
        lines.lines().for_each(|line| scripted.line(line));
        let fired = scripted.fire_tool_timers();
        assert_eq!(fired, script::START + expected, "{lines}");
        assert!(
            scripted.lines.iter().any(|line| line == "result A timed_out"),
            "{lines}: {:?}",
            scripted.lines
        );
    }
}

// --- calls that a connected client runs ---

// The first answer in time wins.
#[test]
fn first_client_result_wins() {
    let scripted = check(
        r#"tools face:cosmetic:client; eager
         open A face
         seal A {"name":"smile"}
         client A {"status":"success","output":{"shown":"smile"}}
         client A {"status":"error","output":"no such expression","applied":false}
         ok A too late
         finish tool_calls
         finish stop"#,
        r#"step 1 m try 1
         use A face
         input A {"name":"smile"}
         start A early
         ! offer A to page
         result A success {"shown":"smile"}
         step end tool_calls
         step 2 m try 1
         step end stop
         end completed"#,
    );
    let card = scripted.message().calls().next().cloned().expect("a card");
    assert_eq!(card.output_value, Some(serde_json::json!({"shown": "smile"})));
}

// The effect that the client reports is on the card and sent to the model.
#[test]
fn client_result_is_reported_to_the_model() {
    use throughline_engine::ClientCallState;
    let table = [
        // answer, text for the model, status
        (r#"{"status":"success"}"#, "Done; the tool returned no text.", "success"),
        (r#"{"status":"success","output":"waved"}"#, "waved", "success"),
        (r#"{"status":"success","applied":true}"#, "The client applied it.", "success"),
        (
            r#"{"status":"success","output":"ok","applied":false}"#,
            "ok\nThe client did not apply it: it had no visible effect for the user.",
            "success",
        ),
        (r#"{"status":"error","output":"no such motion"}"#, "The tool failed: no such motion.", "error"),
        (
            r#"{"status":"error"}"#,
            "The tool failed: the client reported a failure without a reason.",
            "error",
        ),
        (
            r#"{"status":"error","applied":false}"#,
            "The tool failed: The client did not apply it: it had no visible effect for the user.",
            "error",
        ),
    ];
    for (answer, reported, status) in table {
        let mut scripted =
            ScriptedTurn::run("tools page:write:client; approve\nopen A page\nseal A {}\nfinish tool_calls");
        let call = throughline_wire::CallId::new("t.1");
        assert_eq!(scripted.turn.client_call_state(&call), ClientCallState::Waiting);
        scripted.line(&format!("client A {answer}"));
        assert_eq!(scripted.turn.client_call_state(&call), ClientCallState::Closed);
        assert_eq!(outcomes(&scripted)[0].model_text(), reported, "{answer}");
        let card = scripted.message().calls().next().cloned().expect("a card");
        assert_eq!(card.status.map(|status| script::word(&status)), Some(status.to_owned()), "{answer}");
        let answer_json: serde_json::Value = serde_json::from_str(answer).expect("JSON");
        assert_eq!(card.applied, answer_json["applied"].as_bool(), "{answer}");
    }
}

// A wait is reported once it is long enough to be noticed.
#[test]
fn silent_upstream_and_client_are_reported_as_waiting() {
    let reasons = |script: &str| -> Vec<throughline_engine::WaitReason> {
        let scripted = ScriptedTurn::run(script);
        let reasons = scripted.log.iter().filter_map(|event| match &event.kind {
            throughline_engine::EventKind::Waiting { reason, .. } => Some(*reason),
            _ => None,
        });
        reasons.collect()
    };
    use throughline_engine::WaitReason::{Client, FirstByte, Silence};
    let silence = |lines: &str| reasons(&format!("tools r:read\n{lines}\nfinish stop"));
    assert_eq!(silence("timer silence\ntext Hi"), [FirstByte]);
    assert_eq!(silence("usage\ntimer silence\ntext Hi"), [FirstByte], "a count is no beginning");
    assert_eq!(silence("text Hi\ntimer silence"), [], "it has begun");
    assert_eq!(silence("text Hi\ntimer silence\ntimer silence\ntext !"), [Silence]);
    assert_eq!(
        silence("text Hi\ntimer silence\ntext !\ntimer silence\ntimer silence\ntimer silence"),
        [Silence],
        "once for each silence, counted from the last word"
    );
    let silences = "timer silence\ntext Hi\ntimer silence\ntext !\ntimer silence";
    assert_eq!(silence(silences), [FirstByte, Silence, Silence]);
    let early = "tools r:read; eager\nopen A r\nseal A {}\ntimer silence\ntimer silence";
    assert_eq!(reasons(&format!("{early}\nprogress A 1")), [Silence], "its card says that it runs");
    assert_eq!(
        reasons(&format!("{early}\nok A x")),
        [Silence, Silence],
        "the end of a call ends the notice only"
    );
    let waits = "tools page:write:client; approve\nopen A page\nseal A {}\nfinish tool_calls";
    assert_eq!(reasons(&format!("{waits}\ntimer elsewhere")), [Client]);
    let answered = r#"client A {"status":"success"}"#;
    assert_eq!(reasons(&format!("{waits}\n{answered}\ntimer elsewhere")), [], "it has answered");
}

// A client that never answers may have run the call: its outcome is unknown, and a later answer is refused.
#[test]
fn client_write_without_an_answer_ends_as_unknown() {
    use throughline_engine::ClientCallState;
    let scripted = check(
        r#"tools page:write:client; approve
         open A page
         seal A {}
         finish tool_calls
         hang A
         client A {"status":"success"}
         finish stop"#,
        "step 1 m try 1
         use A page
         input A {}
         step end tool_calls
         start A
         ! offer A to page
         result A unknown (client_gone)
         step 2 m try 1
         ! cancel A 1
         step end stop
         end completed",
    );
    assert_eq!(scripted.now, script::START + 30_000, "no time for an executor is added");
    assert_eq!(
        scripted.turn.client_call_state(&throughline_wire::CallId::new("t.1")),
        ClientCallState::TimedOut
    );
    let reported = outcomes(&scripted)[0].model_text();
    assert_eq!(
        reported,
        "The call was started, but its outcome is unknown: The client did not return a result in time. It may \
         have had effects. Check before trying again."
    );
}

// Nothing is lost by asking again for what has no effects, so it is no more than late.
#[test]
fn client_timeout_outcome_depends_on_the_effect() {
    use throughline_engine::ClientCallState;
    for (effect, status) in [
        ("pure", "timed_out"),
        ("read", "timed_out"),
        ("cosmetic", "timed_out"),
        ("idempotent", "unknown"),
        ("write", "unknown"),
        ("external", "unknown"),
    ] {
        let scripted = ScriptedTurn::run(&format!(
            "tools page:{effect}:client; approve\nopen A page\nseal A {{}}\nfinish tool_calls\nhang A"
        ));
        let ended = format!("result A {status} (client_gone)");
        assert!(scripted.lines.contains(&ended), "{effect}: {:?}", scripted.lines);
        let call = throughline_wire::CallId::new("t.1");
        assert_eq!(scripted.turn.client_call_state(&call), ClientCallState::TimedOut, "{effect}");
    }
}

// Without a client nothing is offered, and the model learns it immediately.
#[test]
fn client_call_without_a_client_is_not_started() {
    use throughline_engine::ClientCallState;
    let scripted =
        ScriptedTurn::run("tools page:write:nobody; approve\nopen A page\nseal A {}\nfinish tool_calls");
    assert!(
        scripted.lines.iter().any(|line| line == "result A not_started (no_viewer)"),
        "{:?}",
        scripted.lines
    );
    assert_eq!(
        scripted.turn.client_call_state(&throughline_wire::CallId::new("t.1")),
        ClientCallState::Unknown
    );
}

// An answer to a start that was contradicted is not one to the next start.
#[test]
fn client_result_of_an_earlier_attempt_is_ignored() {
    let mut scripted = ScriptedTurn::run(
        r#"tools face:cosmetic:client; eager
        open A face
        seal A {"name":"smile"}
        reopen A
        seal A {"name":"frown"}"#,
    );
    let late = serde_json::from_str(r#"{"status":"success","output":"smiled"}"#).expect("an answer");
    let call = throughline_wire::CallId::new("t.1");
    scripted.apply(throughline_engine::TurnInput::ClientAnswered { call, attempt: Some(1), answer: late });
    scripted.line(r#"client A {"status":"success","output":"frowned"}"#);
    let results: Vec<&String> = scripted.lines.iter().filter(|line| line.starts_with("result")).collect();
    assert_eq!(results, ["result A success frowned"]);
}

// The wait survives a restart: the same offer again, the rest of the time, one answer.
#[test]
fn client_call_is_offered_again_after_a_restart() {
    let script = r#"tools page:write:client; approve; continue
        open A page
        seal A {}
        finish tool_calls"#;
    let mut before = ScriptedTurn::run(script);
    before.now += 20_000;
    let mut after = before.restarted(script, 2);
    assert_eq!(after.lines, ["resumed 2", "! offer A to page"]);
    after.line(r#"client A {"status":"success","output":"clicked"}"#);
    assert_eq!(after.lines[2], "result A success clicked");

    let mut silent = before.restarted(script, 2);
    silent.line("hang A");
    assert_eq!(silent.lines[2], "result A unknown (client_gone)");
    assert_eq!(silent.now, script::START + 30_000, "its time did not begin anew");
}
