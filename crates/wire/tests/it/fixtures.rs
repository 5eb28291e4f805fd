//! The project's own fixtures: one small body for each quirk of each dialect, with its documented answer.
//!
//! `fixtures/<folder>/<id>.{sse,ndjson,json,bin}` is a body, `<id>.expect.json` next to it holds the expected
//! result: `api`, `quirk`, `note` (the answer, shown in `docs/conformance.md`), `options`, and any of `text`,
//! `reasoning`, `refusal`, `tool_calls`, `finish_reason`, `end`, `error`, `usage`, `choices`, `echoes` (a
//! text that the provider state must hold) and `problems` (tags of their kinds, in order).

use crate::fixture::{self, Fixture};
use crate::oracle::corpus::same;
use crate::oracle::product::{digest, outcome, reply};
use crate::oracle::{OracleCall, OracleEnd, OracleOutcome};
use serde_json::{Value, json};
use throughline_wire::{ModelReply, StepProblem};

/// Longest body that is cut at every byte; longer ones at every seventh.
const CUT_EVERYWHERE_BYTES_MAX: usize = 1 << 10;

#[test]
fn every_fixture_is_answered_as_documented_for_every_cut() {
    let mut wrong = Vec::new();
    let fixtures = fixture::all();
    for fixture in &fixtures {
        let mut found = differences(fixture, &reply(fixture.decoder(), &fixture.body, &[]));
        let whole = digest(fixture.decoder(), &fixture.body, &[]);
        let length = fixture.body.len();
        let places = (0..=length).step_by(if length <= CUT_EVERYWHERE_BYTES_MAX { 1 } else { 7 });
        let cuts = places.map(|at| vec![at]).chain([(1..length).collect()]);
        for cuts in cuts.filter(|cuts| digest(fixture.decoder(), &fixture.body, cuts) != whole) {
            found.push(format!("cut at {:?}, other events come out", &cuts[..cuts.len().min(5)]));
        }
        if !found.is_empty() {
            wrong.push(format!("{} ({})\n    {}", fixture.id, fixture.note(), found.join("\n    ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {} fixtures:\n{}", wrong.len(), fixtures.len(), wrong.join("\n"));
}

fn differences(fixture: &Fixture, got: &ModelReply) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |key: &str, got: Value| {
        if let Some(want) = fixture.expect.get(key)
            && !same(want, &got)
        {
            found.push(format!("{key}: want {want}, got {got}"));
        }
    };
    let actual = outcome(got);
    compare("text", actual.text.clone().into());
    compare("reasoning", actual.reasoning.clone().into());
    compare("refusal", got.refusal.clone().into());
    compare("finish_reason", actual.finish.clone().into());
    compare("end", end(&actual).into());
    let usage = match actual.usage {
        (None, None) => Value::Null,
        (input, output) => json!({"input_tokens": input, "output_tokens": output}),
    };
    compare("usage", usage);
    compare("problems", got.problems.iter().map(tag).collect());
    if let Some(echoed) = fixture.expect["echoes"].as_str() {
        let state = got.provider_state.as_ref().map(|state| state.value.to_string()).unwrap_or_default();
        compare("echoes", if state.contains(echoed) { echoed.into() } else { state.into() });
    }
    let choices = got.choices.iter().map(|(index, choice)| {
        let choice = (outcome(choice), index);
        json!({"index": choice.1, "text": choice.0.text, "tool_calls": calls(&choice.0), "finish_reason": choice.0.finish})
    });
    compare("choices", choices.collect());
    let message = fixture.expect["error"]["message"].as_str();
    match (message, &actual.error) {
        (Some(part), Some(error)) if error.contains(part) => {}
        (None, None) => {}
        (want, got) => found.push(format!("error: want {want:?}, got {got:?}")),
    }
    if let Some(want) = fixture.expect.get("tool_calls").and_then(Value::as_array) {
        if want.len() != actual.calls.len() {
            found.push(format!("calls: want {}, got {:?}", fixture.expect["tool_calls"], actual.calls));
        }
        for (want, call) in want.iter().zip(&got.calls) {
            found.extend(call_differences(want, call));
        }
    }
    found
}

/// Compares the keys that an expected call has.
fn call_differences(want: &Value, got: &throughline_wire::ReplyCall) -> Option<String> {
    let ending = got.ending.as_ref();
    let arguments = ending.and_then(|ending| ending.as_ref().ok());
    let raw = ending.and_then(|ending| ending.as_ref().err()).map(|(_, raw)| raw.0.clone());
    let got = json!({
        "id": got.upstream_id,
        "name": got.name,
        "arguments": arguments.map(|arguments| arguments.value.clone()),
        "arguments_text": arguments.map(|arguments| arguments.text.clone()),
        "raw": raw,
    });
    let fits = want.as_object().is_some_and(|want| want.iter().all(|(key, want)| same(want, &got[key])));
    (!fits).then(|| format!("call: want {want}, got {got}"))
}

fn calls(outcome: &OracleOutcome) -> Vec<Value> {
    let call = |OracleCall { id, name, arguments }: &OracleCall| match arguments {
        Ok(value) => json!({"id": id, "name": name, "arguments": value}),
        Err(raw) => json!({"id": id, "name": name, "arguments": null, "raw": raw}),
    };
    outcome.calls.iter().map(call).collect()
}

fn end(outcome: &OracleOutcome) -> &'static str {
    match outcome.end {
        OracleEnd::Complete => "complete",
        OracleEnd::Truncated => "truncated",
        OracleEnd::Error => "error",
    }
}

/// The name of a problem's kind, without its data.
fn tag(problem: &StepProblem) -> Value {
    match serde_json::to_value(&problem.kind) {
        Ok(Value::Object(kind)) => kind.keys().next().cloned().into(),
        Ok(kind) => kind,
        Err(error) => error.to_string().into(),
    }
}
