//! Text rules for the text shown to people and the text sent to the model. Texts arrive in pieces, and any
//! split gives the same.

use crate::script::{ScriptedTurn, setup, start};
use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value, json};
use throughline_engine::{
    Event, EventKind, OnInterrupted, TEXT_RULE_ADDED_BYTES_MAX, TEXT_RULE_COMPILED_BYTES_MAX,
    TEXT_RULE_HELD_BYTES_MAX, TEXT_RULE_PATTERN_CHARS_MAX, TEXT_RULE_READ_AGAIN_BYTES_MAX,
    TEXT_RULE_REPLACE_CHARS_MAX, TEXT_WITHHELD, TextRule, TextRuleRole, TextRuleTarget, Turn, TurnInput,
    apply_text_rules,
};
use throughline_wire::{CallOutcome, Dialect, Message, ModelRequest, ProviderState, StepEvent, ToolOutput};

fn rule(settings: Value) -> TextRule {
    serde_json::from_value(settings).unwrap()
}

fn hide(pattern: &str, target: &str) -> TextRule {
    rule(json!({"pattern": pattern, "hide": true, "in": target}))
}

fn replace(pattern: &str, replacement: &str, target: &str) -> TextRule {
    rule(json!({"pattern": pattern, "replace": replacement, "in": target}))
}

/// A turn with these rules, after a script whose first line is its setup.
fn run(rules: Vec<TextRule>, script: &str) -> ScriptedTurn {
    let mut lines = script.lines().map(str::trim);
    let mut setup = setup(lines.next().unwrap_or_default());
    setup.text_rules = rules;
    let mut scripted = ScriptedTurn::new(setup);
    lines.for_each(|line| scripted.line(line));
    scripted
}

/// Shown form of a reply that arrives in these pieces, one entry per delta.
fn deltas(rules: &[TextRule], pieces: &[&str]) -> Vec<String> {
    let mut scripted = run(rules.to_vec(), "");
    for piece in pieces {
        scripted.model(StepEvent::Text((*piece).to_owned().into()));
    }
    scripted.line("finish stop");
    let shown = scripted.log.iter().filter_map(|event| match &event.kind {
        EventKind::ContentDelta { text, .. } => Some(text.clone()),
        _ => None,
    });
    shown.collect()
}

fn whole(rules: &[TextRule], text: &str) -> String {
    apply_text_rules(rules, TextRuleTarget::Shown, TextRuleRole::Assistant, text).0
}

fn last_step(request: &ModelRequest) -> &throughline_wire::ClosedStep {
    let steps = request.messages.iter().rev().find_map(|message| match message {
        Message::Step(step) => Some(step),
        Message::User(_) => None,
    });
    steps.unwrap()
}

#[test]
fn only_text_that_may_still_match_is_held_back() {
    let rules = [hide(r"(?s)<secret>.*?</secret>\s?", "shown")];
    assert_eq!(
        deltas(&rules, &["Well <b>", "so</b> <sec", "ret>no", "body</secr", "et> reads", " this."]),
        ["Well <b>", "so</b> ", "reads", " this."]
    );
    // What only began like it is shown as soon as that is known, and at the end.
    assert_eq!(deltas(&rules, &["a <sec", "ond> b <sec"]), ["a ", "<second> b ", "<sec"]);
    // The end of a match, as that of a line, is known with what comes after it.
    assert_eq!(deltas(&[replace("colou?r", "hue", "shown")], &["col", "o", "r", "s", "!"]), ["hues", "!"]);
    assert_eq!(
        deltas(&[hide(r"(?m)^DEBUG.*$\n?", "shown")], &["DEB", "UG x\n", "yes\nDE", "BUG y"]),
        ["yes\n"]
    );
}

#[test]
fn shown_and_model_texts_are_logged_separately() {
    let rules = vec![hide(r"\[mood:\w+\] ?", "shown"), replace("Paris", "P.", "model")];
    let scripted = run(
        rules,
        "tools weather:read; barrier
         text Hi [mo
         text od:glad] Paris
         open A weather
         seal A {}
         finish tool_calls
         ok A sun
         text plain
         finish stop",
    );
    assert_eq!(scripted.message().text(), "Hi Paris\n\nplain");
    assert_eq!(scripted.turn.text(), "Hi Paris\n\nplain");
    assert_eq!(last_step(&scripted.requests[1]).text, "Hi [mood:glad] P.", "the request is the model's");
    let Message::Step(step) = &scripted.turn.history().unwrap()[1] else { panic!("a step") };
    assert_eq!(step.text, "Hi [mood:glad] Paris", "rules about the model are applied to each request");
    let own: Vec<_> = scripted.log.iter().filter(|event| event.kind.name() == "model_text").collect();
    let [event] = own[..] else { panic!("one text differs: {own:?}") };
    // A viewer gets the event, since numbers are dense, and not the text.
    let viewed = serde_json::to_value(event.clone().for_viewers()).unwrap();
    assert_eq!((viewed["text"].clone(), viewed["seq"].as_u64()), (Value::Null, Some(event.seq.0)));
    // The log alone gives the same turn again, with rules that were stored with it.
    let stored = serde_json::to_string(&scripted_setup(&scripted)).unwrap();
    let restored = Turn::restore(
        serde_json::from_str(&stored).unwrap(),
        start(),
        &scripted.log,
        &scripted.provider_states,
    );
    assert!(restored.state_eq(&scripted.turn));
}

fn scripted_setup(scripted: &ScriptedTurn) -> throughline_engine::TurnSetup {
    scripted.setup.clone()
}

#[test]
fn model_rules_apply_to_text_in_provider_state() {
    let mut scripted = run(vec![replace("old", "new", "model")], "tools weather:read; barrier");
    scripted.line("text old news");
    let content = json!({"content": [
        {"type": "thinking", "thinking": "old", "signature": "s"},
        {"type": "text", "text": "old news"},
        {"type": "tool_use", "id": "uA", "name": "weather", "input": {"text": "old"}},
    ]});
    scripted.model(StepEvent::ProviderState(ProviderState { dialect: Dialect::Anthropic, value: content }));
    for line in ["open A weather", "seal A {}", "finish tool_calls", "ok A sun"] {
        scripted.line(line);
    }
    let step = last_step(&scripted.requests[1]);
    assert_eq!(step.text, "new news");
    let echoed = &step.provider_state.as_ref().unwrap().value["content"];
    assert_eq!(echoed[1]["text"], "new news");
    assert_eq!((&echoed[0]["thinking"], &echoed[2]["input"]["text"]), (&json!("old"), &json!("old")));
}

#[test]
fn tool_results_follow_only_rules_for_tools() {
    let tool = |target: &str, pattern: &str| {
        rule(json!({"pattern": pattern, "replace": "#", "in": target, "target_roles": ["tool"]}))
    };
    let user = rule(json!({"pattern": "hello", "replace": "HELLO", "in": "model", "target_roles": ["user"]}));
    let off = rule(json!({"pattern": ".+", "hide": true, "in": "shown", "enabled": false}));
    let mut scripted =
        run(vec![tool("shown", r"\d+"), tool("model", "key"), user, off], "tools weather:read; barrier");
    for line in ["text key 12", "open A weather", "seal A {}", "finish tool_calls"] {
        scripted.line(line);
    }
    let output = ToolOutput { value: Some(json!({"pin": 12})), ..ToolOutput::text("key 12 ok".to_owned()) };
    let call = scripted.log.iter().find_map(|event| event.tool_id.clone()).unwrap();
    scripted.apply(TurnInput::ToolEnded { call, attempt: 1, outcome: CallOutcome::Done(output) });
    let message = scripted.message();
    let shown = message.calls().next().unwrap();
    assert_eq!((shown.output.as_str(), &shown.output_value), ("key # ok", &None));
    assert_eq!(message.text(), "key 12", "rules about tools leave the model alone");
    let step = last_step(&scripted.requests[1]);
    assert_eq!((step.text.as_str(), step.calls[0].1.model_text().as_str()), ("key 12", "# 12 ok"));
}

#[test]
fn tool_rules_apply_to_failure_and_unknown_reasons() {
    let tool = |target: &str, pattern: &str| {
        rule(json!({"pattern": pattern, "replace": "#", "in": target, "target_roles": ["tool"]}))
    };
    for (name, reported) in
        [("failed", "The tool failed: # 12 broke."), ("unknown", "its outcome is unknown: # 12 broke.")]
    {
        let mut scripted =
            run(vec![tool("shown", r"\d+"), tool("model", "key")], "tools weather:read; barrier");
        for line in ["open A weather", "seal A {}", "finish tool_calls"] {
            scripted.line(line);
        }
        let partial = json!({"text": "key 12 so far", "size": 13});
        let outcome = json!({name: {"message": "key 12 broke", "partial": partial}});
        scripted.line(&format!("outcome A {outcome}"));
        let message = scripted.message();
        let shown = message.calls().next().unwrap();
        let reason = shown.error.as_ref().and_then(|error| error.message.as_deref());
        assert_eq!((reason, shown.output.as_str()), (Some("key # broke"), "key # so far"), "{name}");
        let text = last_step(&scripted.requests[1]).calls[0].1.model_text();
        assert!(text.contains(reported) && text.ends_with("# 12 so far"), "{text}");
    }
}

#[test]
fn cancel_shows_held_back_text_that_did_not_match() {
    let scripted = run(vec![hide("<x>.*</x>", "shown")], "\ntext a <x>b\ncancel");
    assert_eq!(scripted.message().text(), "a <x>b", "it is no match, and never will be one");
    let scripted = run(vec![hide("<x>.*</x>", "shown")], "\ntext a <x>b</x>\ncancel");
    assert_eq!(scripted.message().text(), "a ");
}

#[test]
fn crash_inside_hidden_text_does_not_reveal_it() {
    let rules = vec![hide(r"<x>.*</x>", "shown")];
    let scripted = run(rules, "continue\ntext a <x>b");
    let mut setup = scripted_setup(&scripted);
    setup.on_interrupted = OnInterrupted::Continue;
    let mut again = Turn::restore(setup, start(), &scripted.log, &[]);
    let mut out = throughline_engine::TurnOutput::default();
    again.resume(1, 2_000_000, &mut out);
    let events: Vec<&Event> = scripted.log.iter().chain(&out.events).collect();
    let shown = events.iter().any(|event| serde_json::to_string(event).unwrap().contains("<x>"));
    assert!(!shown, "{events:?}");
}

// --- limits ---

#[test]
fn invalid_text_rule_error_names_a_remedy() {
    let error = |settings: Value| serde_json::from_value::<TextRule>(settings).unwrap_err().to_string();
    let with = |pattern: &str| error(json!({"pattern": pattern, "hide": true, "in": "shown"}));
    for (message, says) in [
        (with("a("), "`pattern` is not a supported regular expression: unclosed group"),
        (with("(?=a)"), "look-around"),
        (with("a*"), "require at least one character"),
        (with(r"\b"), "require at least one character"),
        (with(&"x".repeat(TEXT_RULE_PATTERN_CHARS_MAX + 1)), "use several rules"),
        (with(r"(\w{100}){100}"), &format!("larger than {} KiB", TEXT_RULE_COMPILED_BYTES_MAX >> 10)),
        (error(json!({"pattern": "a", "in": "shown"})), "or `hide = true`"),
        (error(json!({"pattern": "a", "hide": true, "replace": "", "in": "shown"})), "remove one"),
        (error(json!({"pattern": "a", "hide": true, "in": "shown", "target_roles": []})), "enabled = false"),
        (
            error(json!({"pattern": "a", "hide": true, "in": "shown", "target_roles": ["user"]})),
            "in = \"model\"",
        ),
        (error(json!({"pattern": "a", "hide": true, "in": "everywhere"})), "`shown` or `model`"),
        (
            error(
                json!({"pattern": "a", "in": "shown", "replace": "x".repeat(TEXT_RULE_REPLACE_CHARS_MAX + 1)}),
            ),
            "shorten it",
        ),
    ] {
        assert!(message.contains(says), "{message} / {says}");
    }
}

#[test]
fn text_held_back_beyond_the_limit_is_withheld() {
    let rules = [hide("(?s)<x>.*</x>", "shown")];
    let held = "y".repeat(TEXT_RULE_HELD_BYTES_MAX - "<x>".len());
    assert_eq!(whole(&rules, &format!("a <x>{held}")), format!("a <x>{held}"), "at the limit, and no match");
    let over = format!("a <x>{held}y</x> b");
    assert_eq!(whole(&rules, &over), format!("a {TEXT_WITHHELD}"));
    let pieces: Vec<&str> = over.split_inclusive("y").collect();
    assert_eq!(deltas(&rules, &pieces[..]).concat(), format!("a {TEXT_WITHHELD}"), "however it is split");
}

#[test]
fn text_added_by_replacements_is_limited() {
    let replacement = "z".repeat(1_025);
    let rules = [replace("a", &replacement, "shown")];
    let fits = TEXT_RULE_ADDED_BYTES_MAX / 1_024;
    let shown = whole(&rules, &"a".repeat(fits + 3));
    assert_eq!(shown.len(), fits * 1_025);
}

#[test]
fn repeated_lookahead_reads_are_bounded() {
    // After each `a` the whole rest is read without finding a `!`.
    let text = "a".repeat(TEXT_RULE_HELD_BYTES_MAX);
    let shown = whole(&[replace("a.*!|a", "b", "shown")], &text);
    let done = shown.strip_suffix(TEXT_WITHHELD).expect("the rest is withheld");
    let read = TEXT_RULE_READ_AGAIN_BYTES_MAX / TEXT_RULE_HELD_BYTES_MAX;
    assert!(
        done.bytes().all(|byte| byte == b'b') && (read..read + 3).contains(&done.len()),
        "{}",
        done.len()
    );
}

// --- any split gives the same ---

const PATTERNS: [&str; 16] = [
    "ab",
    "a+b",
    "a|ab|abc",
    "(?i)B.",
    r"\bab\b",
    "(?m)^a.*$",
    r"(?s)<a>.*?</a>",
    "a.*b|a",
    "[^a]b?",
    "好|ü+",
    r"\Aa",
    r"b\z",
    r"(a)(b)?",
    r"(?m)b$\n?",
    r"\w+",
    "a{2,3}",
];

fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("a"),
        Just("b"),
        Just("ab"),
        Just("B"),
        Just("c"),
        Just("\n"),
        Just(" "),
        Just("<a>"),
        Just("</a>"),
        Just("好"),
        Just("ü"),
        Just("!"),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn text_rules_give_the_same_result_for_any_split(
        text in texts(),
        chosen in prop::collection::vec((0..PATTERNS.len(), prop_oneof![Just("<$0>"), Just(""), Just("a"), Just("x$1")]), 1..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let rules: Vec<_> = chosen.iter().map(|(at, with)| replace(PATTERNS[*at], with, "shown")).collect();
        let expected = chosen.iter().fold(text.clone(), |text, (at, with)| {
            Regex::new(PATTERNS[*at]).unwrap().replace_all(&text, *with).into_owned()
        });
        prop_assert_eq!(&whole(&rules, &text), &expected);
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        ends.retain(|end| text.is_char_boundary(*end));
        ends.extend([0, text.len()]);
        ends.sort_unstable();
        let pieces: Vec<&str> = ends.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        let shown = deltas(&rules, &pieces);
        prop_assert_eq!(shown.concat(), expected.clone());
        // No shown text was premature: each delta is part of the result.
        let mut so_far = String::new();
        for delta in shown {
            so_far.push_str(&delta);
            prop_assert!(expected.starts_with(&so_far));
        }
    }
}

#[test]
fn model_text_is_logged_right_before_the_tool_result() {
    let tool_rule = rule(json!({"pattern": "pw", "hide": true, "in": "shown", "target_roles": ["tool"]}));
    let scripted = run(
        vec![tool_rule],
        "tools save:write; approve
         open A save
         seal A {}
         finish tool_calls
         ok A pw saved
         text ok
         finish stop",
    );
    assert_eq!(scripted.message().calls().next().unwrap().output, " saved");
    let names: Vec<_> = scripted.log.iter().map(|event| event.kind.name()).collect();
    let at = names.iter().position(|name| *name == "model_text").unwrap();
    assert_eq!(names[at + 1], "tool_result");
}
