//! Public test suites and the corpus's leaked calls.

use crate::oracle::corpus::{corpus, same, vectors};
use crate::oracle::frames::base64;
use crate::oracle::product::reply;
use serde_json::Value;
use throughline_wire::json::{ArgumentsReader, JsonRef};
use throughline_wire::{DecodeOptions, LeakedCalls, ProblemKind, StepDecoder, UpstreamProfile};

/// Longest case whose every prefix is compared with the whole; the comparison itself costs the length.
const COMPARED_BYTES_MAX: usize = 4 << 10;

struct Case {
    name: String,
    verdict: String,
    bytes: Vec<u8>,
}

/// Written for this file: every clone has them. Each is a text and what a reader of RFC 8259 must say.
const OWN_CASES: [(&str, &str); 44] = [
    ("accept", "{}"),
    ("accept", "[]"),
    ("accept", " [ ] "),
    ("accept", "\"\""),
    ("accept", "0"),
    ("accept", "-0"),
    ("accept", "-1.5e+10"),
    ("accept", "1E-2"),
    ("accept", "true"),
    ("accept", "null"),
    ("accept", "{\"a\":{\"b\":[1,2,{}]}}"),
    ("accept", "\"\\u00e9\\n\\/\""),
    ("accept", "\"\\ud83d\\ude00\""),
    ("accept", "\"天气\""),
    ("accept", "{\"a\":1,\"a\":2}"),
    ("accept", "[1,\n\t2\r]"),
    ("accept", "\"\u{7f}\""),
    ("reject", ""),
    ("reject", " "),
    ("reject", "{"),
    ("reject", "{\"a\""),
    ("reject", "{\"a\":}"),
    ("reject", "{\"a\":1,}"),
    ("reject", "[1,]"),
    ("reject", "[,1]"),
    ("reject", "[1 2]"),
    ("reject", "{a:1}"),
    ("reject", "{'a':1}"),
    ("reject", "01"),
    ("reject", "1."),
    ("reject", ".5"),
    ("reject", "+1"),
    ("reject", "-"),
    ("reject", "1e"),
    ("reject", "NaN"),
    ("reject", "Infinity"),
    ("reject", "tru"),
    ("reject", "True"),
    ("reject", "\"\t\""),
    ("reject", "\"\\x\""),
    ("reject", "\"\\u12\""),
    ("reject", "\"open"),
    ("reject", "{} {}"),
    ("reject", "[] // c"),
];

/// The own cases, and those of JSONTestSuite where this machine has them.
fn json_cases() -> Vec<Case> {
    let own = OWN_CASES.iter().map(|(verdict, text)| Case {
        name: format!("own: {text}"),
        verdict: (*verdict).to_owned(),
        bytes: text.as_bytes().to_vec(),
    });
    own.chain(suite_cases().into_iter().flatten()).collect()
}

fn suite_cases() -> Option<Vec<Case>> {
    let file = vectors()?.join("suites/json-parsing/cases.jsonl");
    let lines = std::fs::read_to_string(file).expect("the suite is there");
    let case = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("a case is JSON");
        let bytes = match row["generate"].as_array() {
            Some(generate) => {
                let times = generate[1].as_u64().expect("a number of times") as usize;
                generate[0].as_str().expect("a text").repeat(times).into_bytes()
            }
            None => base64(row["bytes_b64"].as_str().expect("bytes")),
        };
        let text = |key: &str| row[key].as_str().expect("a case has its keys").to_owned();
        Case { name: text("name"), verdict: text("verdict"), bytes }
    };
    Some(lines.lines().map(case).collect())
}

fn reader(fragments: &[&str]) -> ArgumentsReader {
    let mut reader = ArgumentsReader::default();
    for fragment in fragments {
        reader.push(fragment);
    }
    reader
}

#[test]
fn json_suite_documents_are_accepted_or_rejected() {
    let cases = json_cases();
    let mut counts = [0; 3];
    for Case { name, verdict, bytes } in &cases {
        // Bytes that are not UTF-8 never get this far: framing replaces and reports them.
        let Ok(text) = std::str::from_utf8(bytes) else {
            assert_ne!(verdict, "accept", "{name}");
            continue;
        };
        let read = reader(&[text]).check_complete();
        let parsed = JsonRef::parse(text);
        match verdict.as_str() {
            "accept" => {
                assert_eq!((read, parsed.as_ref().err()), (Ok(()), None), "{name}");
                counts[0] += 1;
            }
            "reject" => {
                assert!(read.is_err() && parsed.is_err(), "{name}: {read:?}, {parsed:?}");
                counts[1] += 1;
            }
            _ => {
                assert_eq!(read.is_ok(), parsed.is_ok(), "{name}: {read:?}, {parsed:?}");
                counts[2] += 1;
            }
        }
    }
    println!("{} accepted, {} rejected, {} left to the reader", counts[0], counts[1], counts[2]);
    let expected = if vectors().is_some() { [17 + 57, 27 + 111] } else { [17, 27] };
    assert!(counts[0] >= expected[0] && counts[1] >= expected[1], "the suite is not whole: {counts:?}");
}

#[test]
fn every_prefix_of_a_document_is_incomplete_or_consistent() {
    let cases = json_cases();
    for Case { name, bytes, .. } in cases.iter().filter(|case| case.verdict == "accept") {
        let text = std::str::from_utf8(bytes).expect("accepted documents are UTF-8");
        let whole = JsonRef::parse(text).expect("it is accepted").to_value();
        let mut reader = ArgumentsReader::default();
        let mut closed = None;
        for (at, c) in text.char_indices() {
            reader.push(&text[at..at + c.len_utf8()]);
            assert_eq!(reader.error(), None, "{name} at {at}");
            if reader.is_closed() && closed.is_none() {
                closed = Some(at + c.len_utf8());
                assert_eq!(
                    JsonRef::parse(&text[..at + c.len_utf8()]).map(|json| json.to_value()),
                    Ok(whole.clone()),
                    "{name}"
                );
            }
            if let Some(partial) = reader.partial().filter(|_| text.len() <= COMPARED_BYTES_MAX) {
                assert!(is_part(partial, &whole), "{name} at {at}: {partial} is no part of {whole}");
            }
        }
        assert_eq!(reader.check_complete(), Ok(()), "{name}");
        if let Some(partial) = reader.partial() {
            assert!(is_part(partial, &whole), "{name}: {partial} is no part of {whole}");
        }
    }
}

#[test]
fn prefixes_of_any_text_never_panic_and_errors_persist() {
    let cases = json_cases();
    for Case { name, bytes, .. } in &cases {
        let text = String::from_utf8_lossy(bytes);
        let mut reader = ArgumentsReader::default();
        let mut error = None;
        for (at, c) in text.char_indices() {
            reader.push(&text[at..at + c.len_utf8()]);
            reader.partial();
            assert!(error.is_none() || reader.error() == error, "{name}: the error moved at {at}");
            error = reader.error();
            if text.len() <= COMPARED_BYTES_MAX {
                let prefix = &text[..at + c.len_utf8()];
                assert_eq!(
                    reader.check_complete().is_ok(),
                    JsonRef::parse(prefix).is_ok(),
                    "{name}: {prefix:?}"
                );
            }
        }
    }
}

#[test]
fn a_document_reads_the_same_for_every_cut() {
    let cases = json_cases();
    for Case { name, bytes, .. } in &cases {
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        if text.len() > COMPARED_BYTES_MAX {
            continue;
        }
        let mut whole = reader(&[text]);
        for (at, _) in text.char_indices() {
            let mut cut = reader(&[&text[..at], &text[at..]]);
            assert_eq!(cut.check_complete(), whole.check_complete(), "{name} cut at {at}");
            assert_eq!(cut.closed_len(), whole.closed_len(), "{name} cut at {at}");
            assert_eq!(cut.partial(), whole.partial(), "{name} cut at {at}");
        }
    }
}

/// Could `partial` be what is known so far of `whole`?
fn is_part(partial: &Value, whole: &Value) -> bool {
    match (partial, whole) {
        // Half a surrogate pair shows as U+FFFD until the other half comes.
        (Value::String(partial), Value::String(whole)) => {
            whole.starts_with(partial.as_str()) || whole.starts_with(partial.trim_end_matches('\u{FFFD}'))
        }
        (Value::Array(partial), Value::Array(whole)) => {
            partial.len() <= whole.len()
                && partial.iter().zip(whole).all(|(partial, whole)| is_part(partial, whole))
        }
        (Value::Object(partial), Value::Object(whole)) => partial.iter().all(|(key, value)| {
            // Of a name given twice only the last value counts, so an earlier one is not comparable.
            whole.get(key).is_some_and(|whole| is_part(value, whole) || whole != value)
        }),
        _ => same(partial, whole),
    }
}

#[test]
fn leaked_calls_of_the_corpus_are_recovered() {
    let Some(streams) = corpus() else { return };
    let mut recovered = 0;
    for stream in streams.iter().filter(|stream| stream.row["recovered_tool_calls"].is_array()) {
        let decoder = |leaked_calls: LeakedCalls| {
            let profile = UpstreamProfile { leaked_calls, ..UpstreamProfile::default() };
            let dialect = stream.api.parse().expect("a known API");
            StepDecoder::new(dialect, DecodeOptions { profile, ..DecodeOptions::default() })
        };
        let got = reply(decoder(LeakedCalls::Run), &stream.body, &[]);
        let calls: Vec<Value> = got
            .calls
            .iter()
            .map(|call| {
                let arguments = call.ending.as_ref().and_then(|ending| ending.as_ref().ok());
                serde_json::json!([call.name, arguments.map(|arguments| arguments.value.clone())])
            })
            .collect();
        let want = stream.row["recovered_tool_calls"].as_array().into_iter().flatten();
        let want: Vec<Value> =
            want.map(|call| serde_json::json!([call["name"], call["arguments"]])).collect();
        assert_eq!(calls, want, "{}", stream.id);
        let reported = reply(decoder(LeakedCalls::Report), &stream.body, &[]);
        let expected = stream.row["expect"]["tool_calls"].as_array().map_or(0, Vec::len);
        assert_eq!(reported.calls.len(), expected, "{}: reporting runs nothing", stream.id);
        let leaks =
            |problem: &throughline_wire::StepProblem| matches!(problem.kind, ProblemKind::LeakedCall { .. });
        if want.len() > expected {
            assert!(reported.problems.iter().any(leaks), "{}: {:?}", stream.id, reported.problems);
            recovered += 1;
        }
    }
    assert!(recovered >= 11, "the corpus is not whole: {recovered}");
}
