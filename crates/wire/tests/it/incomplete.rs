//! No incomplete call or reply is ever decoded as a complete one.
//!
//! The corpus is made hostile in two additional ways: torn streams with an end marker of another format, and
//! fragments of arguments under numbers of no call. Each is read by the independent reader and by the
//! decoder, whole and in pieces, and compared with its source stream.

use crate::equivalence::{BEYOND_THE_ORACLE, Random, differences, same_call};
use crate::oracle::corpus::{Stream, streams};
use crate::oracle::product::{Feed, decoder, digest, outcome, reply};
use crate::oracle::{self, OracleEnd, OracleOutcome};
use serde_json::{Value, json};
use throughline_wire::{StepDecoder, StepEvent};

const FOREIGN_END: &str = "data: [DONE]\n\n";
/// Torn copies of one stream.
const TEARS: usize = 4;
/// Numbers from here on are no call's.
const STRAY_NUMBERS: i64 = 100;

/// A stream made hostile.
struct HostileStream {
    id: String,
    api: String,
    body: String,
    /// Outcome of the stream that it was made of.
    source: OracleOutcome,
    promise: Promise,
}

/// Expectation about the outcome, in addition to the rule.
#[derive(Clone, Copy, PartialEq)]
enum Promise {
    /// The reply is reported as truncated.
    Torn,
    /// The outcome equals that of the source.
    Same,
    /// No expectation besides the rule.
    Nothing,
}

#[test]
fn truncated_reply_with_a_foreign_end_marker_is_incomplete() {
    let torn: Vec<_> = streams().iter().flat_map(torn_streams).collect();
    assert!(torn.len() > 100, "{} torn streams are too few to prove anything", torn.len());
    check(&torn);
}

#[test]
fn fragments_with_an_unknown_index_invent_no_call() {
    let renumbered: Vec<_> = streams().iter().flat_map(renumbered_streams).collect();
    let same = renumbered.iter().filter(|stream| stream.promise == Promise::Same).count();
    assert!(same > 10, "{same} of {} renumbered streams are too few", renumbered.len());
    check(&renumbered);
}

/// The test with a decoder that invents calls or ends must fail; else it proves nothing.
#[test]
fn a_decoder_that_invents_calls_or_ends_is_caught() {
    let streams = streams();
    let torn: Vec<_> = streams.iter().flat_map(torn_streams).collect();
    let renumbered: Vec<_> = streams.iter().flat_map(renumbered_streams).collect();
    for (mistake, hostile) in [(Mistake::TakesForeignEnds, &torn), (Mistake::DropsStrays, &renumbered)] {
        let is_caught = hostile.iter().any(|stream| {
            let mutant = Mutant { mistake, decoder: decoder(&stream.api), api: stream.api.clone() };
            !broken_rules(stream, &outcome(&reply(mutant, stream.body.as_bytes(), &[]))).is_empty()
        });
        assert!(is_caught, "a decoder that {mistake:?} goes unnoticed");
    }
}

fn check(hostile: &[HostileStream]) {
    let mut wrong = Vec::new();
    for (number, stream) in hostile.iter().enumerate() {
        let body = stream.body.as_bytes();
        let got = outcome(&reply(decoder(&stream.api), body, &[]));
        let mut found = broken_rules(stream, &got);
        let source = stream.id.split(' ').next().unwrap_or_default();
        let from_oracle = oracle::read(&stream.api, body);
        match stream.promise {
            // The naive reader makes more of a cut call than may be made of it; of the end it knows as much.
            Promise::Torn if from_oracle.end == got.end => {}
            Promise::Torn => found.push(format!("the oracle says {:?}", from_oracle.end)),
            _ if BEYOND_THE_ORACLE.contains(&source) => {}
            _ => found.extend(differences(&from_oracle, &got)),
        }
        let pieces = pieces(body.len(), &mut Random(number as u64));
        if digest(decoder(&stream.api), body, &pieces) != digest(decoder(&stream.api), body, &[]) {
            found.push(format!("cut at {:?}, other events come out", &pieces[..pieces.len().min(5)]));
        }
        if !found.is_empty() {
            wrong.push(format!("{}\n    {}", stream.id, found.join("\n    ")));
        }
    }
    let shown = wrong.len().min(20);
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), hostile.len(), wrong[..shown].join("\n"));
    println!("{} hostile streams", hostile.len());
}

/// The rule: a call can only run if it is complete and was really made.
fn broken_rules(stream: &HostileStream, got: &OracleOutcome) -> Vec<String> {
    let mut broken = Vec::new();
    for call in got.calls.iter().filter(|call| call.arguments.is_ok()) {
        if !stream.source.calls.iter().any(|sent| same_call(sent, call)) {
            broken.push(format!("nobody sent {call:?}: {:?}", stream.source.calls));
        }
    }
    match stream.promise {
        Promise::Torn if got.end == OracleEnd::Complete => broken.push("a torn reply is complete".to_owned()),
        Promise::Same => broken.extend(differences(&stream.source, got)),
        Promise::Torn | Promise::Nothing => {}
    }
    broken
}

fn pieces(length: usize, random: &mut Random) -> Vec<usize> {
    let mut cuts = Vec::new();
    let mut at = 1 + random.below(60);
    while at < length {
        cuts.push(at);
        at += 1 + random.below(60);
    }
    cuts
}

// --- torn, and with the end marker of another format ---

/// Copies that end after some event, with `[DONE]` in place of the rest.
fn torn_streams(stream: &Stream) -> Vec<HostileStream> {
    let Some(body) = events_of(stream).filter(|_| stream.api != "openai-chat") else { return Vec::new() };
    let ends: Vec<usize> = body.match_indices("\n\n").map(|(at, _)| at + 2).collect();
    let source = outcome(&reply(decoder(&stream.api), &stream.body, &[]));
    let mut random = Random(stream.body.len() as u64);
    let mut torn = Vec::new();
    for _ in 0..TEARS.min(ends.len()) {
        let end = ends[random.below(ends.len())];
        let beginning = outcome(&reply(decoder(&stream.api), &body.as_bytes()[..end], &[]));
        // After the format's own finish another marker is valid, and an error stays one.
        if beginning.end != OracleEnd::Truncated || beginning.finish.is_some() {
            continue;
        }
        // What the beginning has of the calls is all that may come of them.
        let source = OracleOutcome { calls: beginning.calls, ..source.clone() };
        torn.push(HostileStream {
            id: format!("{} torn after {end} bytes", stream.id),
            api: stream.api.clone(),
            body: format!("{}{FOREIGN_END}", &body[..end]),
            source,
            promise: Promise::Torn,
        });
    }
    torn
}

/// The body of a stream of server-sent events, with plain line ends.
fn events_of(stream: &Stream) -> Option<String> {
    let text = std::str::from_utf8(&stream.body).ok()?;
    let is_stream = text.starts_with("data:") || text.starts_with("event:");
    (is_stream && !text.contains('\r') && !stream.api.starts_with("bedrock")).then(|| text.to_owned())
}

// --- fragments under other numbers ---

/// Copies whose fragments without a head have numbers that are no call's.
fn renumbered_streams(stream: &Stream) -> Vec<HostileStream> {
    let source = outcome(&reply(decoder(&stream.api), &stream.body, &[]));
    let Some(body) = events_of(stream).filter(|_| source.choices.is_empty()) else { return Vec::new() };
    let numberings = [Numbering::Rising, Numbering::Other];
    let copies = numberings.into_iter().filter_map(|numbering| {
        let mut renumberer = Renumberer { api: stream.api.clone(), numbering, ..Renumberer::default() };
        let body = renumberer.body(&body)?;
        // A source that has orphaned fragments already has no expectation.
        let is_plain = renumberer.one_at_a_time && source.calls.iter().all(|call| call.arguments.is_ok());
        Some(HostileStream {
            id: format!("{} with {numbering:?} numbers", stream.id),
            api: stream.api.clone(),
            body,
            source: source.clone(),
            promise: if is_plain { Promise::Same } else { Promise::Nothing },
        })
    });
    copies.collect()
}

/// Numbers for fragments that belong to no call.
#[derive(Clone, Copy, Debug, Default)]
enum Numbering {
    /// A new one for each.
    #[default]
    Rising,
    /// One for each call.
    Other,
}

/// Rewrites the events of a stream.
#[derive(Default)]
struct Renumberer {
    api: String,
    numbering: Numbering,
    /// The call that came last: its number, and its arguments so far.
    last: Option<(Value, String)>,
    strays: i64,
    calls: i64,
    /// At every fragment exactly one call was open.
    one_at_a_time: bool,
}

impl Renumberer {
    /// `None` if nothing can be renumbered, or its calls are not one after another.
    fn body(&mut self, body: &str) -> Option<String> {
        self.one_at_a_time = true;
        let mut lines = Vec::new();
        for line in body.split('\n') {
            let Some(data) = line.strip_prefix("data:").filter(|data| data.trim() != "[DONE]") else {
                lines.push(line.to_owned());
                continue;
            };
            let mut event: Value = serde_json::from_str(data).ok()?;
            let event_before = event.clone();
            self.event(&mut event)?;
            // What is not changed stays as it was, number for number.
            lines.push(if event == event_before { line.to_owned() } else { format!("data: {event}") });
        }
        (self.strays > 0).then(|| lines.join("\n"))
    }

    fn event(&mut self, event: &mut Value) -> Option<()> {
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        match (self.api.as_str(), kind.as_str()) {
            ("openai-chat", _) => {
                let entries = event["choices"]
                    .get_mut(0)
                    .and_then(|choice| choice["delta"]["tool_calls"].as_array_mut());
                for entry in entries.into_iter().flatten() {
                    self.entry(entry)?;
                }
            }
            ("anthropic", "content_block_start") if event["content_block"]["type"] == "tool_use" => {
                self.open(&event["index"], "");
            }
            ("anthropic", "content_block_delta") if event["delta"]["type"] == "input_json_delta" => {
                let text = event["delta"]["partial_json"].as_str()?.to_owned();
                event["index"] = self.stray(&event["index"], &text)?.into();
            }
            ("cohere", "tool-call-start") => {
                let text =
                    event["delta"]["message"]["tool_calls"]["function"]["arguments"].as_str()?.to_owned();
                self.open(&event["index"], &text);
            }
            ("cohere", "tool-call-delta") => {
                let text =
                    event["delta"]["message"]["tool_calls"]["function"]["arguments"].as_str()?.to_owned();
                event["index"] = self.stray(&event["index"], &text)?.into();
            }
            ("openai-responses", "response.output_item.added")
                if event["item"]["type"] == "function_call" =>
            {
                self.open(&event["output_index"], event["item"]["arguments"].as_str().unwrap_or_default());
            }
            ("openai-responses", "response.function_call_arguments.delta") => {
                let text = event["delta"].as_str()?.to_owned();
                event["output_index"] = self.stray(&event["output_index"], &text)?.into();
                // With its own id a fragment finds its item under any number; without it, the number must be
                // one.
                if matches!(self.numbering, Numbering::Other) {
                    event["item_id"] = json!(format!("nobody_{}", self.calls));
                }
            }
            _ => {}
        }
        Some(())
    }

    /// One entry of a Chat Completions `tool_calls`.
    fn entry(&mut self, entry: &mut Value) -> Option<()> {
        let is_empty = |value: &Value| value.is_null() || value == "";
        let text = entry["function"]["arguments"].as_str().unwrap_or_default().to_owned();
        let is_bare = is_empty(&entry["id"]) && is_empty(&entry["function"]["name"]);
        if !is_bare {
            let number = entry.get("index")?.clone();
            match &mut self.last {
                Some((last, so_far)) if *last == number => so_far.push_str(&text),
                _ => self.open(&number, &text),
            }
        } else if !text.is_empty() {
            entry["index"] = self.stray(&entry["index"], &text)?.into();
        }
        Some(())
    }

    fn open(&mut self, number: &Value, text: &str) {
        if self.last.as_ref().is_some_and(|(_, so_far)| !is_whole(so_far)) {
            self.one_at_a_time = false;
        }
        self.calls += 1;
        self.last = Some((number.clone(), text.to_owned()));
    }

    /// The number for a fragment of the last call.
    fn stray(&mut self, number: &Value, text: &str) -> Option<i64> {
        // More of a call that is whole is the source's own contradiction.
        let (_, so_far) = self.last.as_mut().filter(|(last, so_far)| last == number && !is_whole(so_far))?;
        so_far.push_str(text);
        self.strays += 1;
        Some(
            STRAY_NUMBERS
                + if matches!(self.numbering, Numbering::Rising) { self.strays } else { self.calls },
        )
    }
}

fn is_whole(text: &str) -> bool {
    let value: Result<Value, _> = serde_json::from_str(text);
    value.is_ok_and(|value| value.as_object().is_some_and(|members| !members.is_empty()))
}

// --- decoders that make the mistakes ---

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    TakesForeignEnds,
    DropsStrays,
}

/// The real decoder with an input that is modified.
struct Mutant {
    mistake: Mistake,
    decoder: StepDecoder,
    api: String,
}

impl Feed for Mutant {
    fn push(&mut self, body: &[u8], sink: &mut dyn FnMut(StepEvent<'_>)) {
        let body = String::from_utf8_lossy(body);
        let body = match self.mistake {
            Mistake::TakesForeignEnds => body.replace(FOREIGN_END, own_end(&self.api)),
            Mistake::DropsStrays => without_strays(&body),
        };
        self.decoder.push(body.as_bytes(), sink);
    }

    fn finish(&mut self, sink: &mut dyn FnMut(StepEvent<'_>)) {
        self.decoder.finish(sink);
    }
}

fn own_end(api: &str) -> &'static str {
    match api {
        "anthropic" => "data: {\"type\":\"message_stop\"}\n\n",
        "openai-responses" => {
            "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n"
        }
        "gemini" => "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n",
        "cohere" => "data: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"COMPLETE\"}}\n\n",
        other => panic!("no end for {other}"),
    }
}

fn without_strays(body: &str) -> String {
    let has_stray = |line: &&str| {
        let Ok(event) = serde_json::from_str::<Value>(line.trim_start_matches("data:")) else { return false };
        let entry = &event["choices"][0]["delta"]["tool_calls"][0];
        [&event["index"], &event["output_index"], &entry["index"]]
            .into_iter()
            .any(|number| number.as_i64().is_some_and(|number| number > STRAY_NUMBERS))
    };
    body.split('\n').filter(|line| !has_stray(line)).collect::<Vec<_>>().join("\n")
}
