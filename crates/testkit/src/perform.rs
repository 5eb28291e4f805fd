//! From a script to what goes over the socket: bytes, pauses and a way to end. Pure, so that it can be tested and
//! simulated without one.

use crate::dialect::{self, Encoder, Whole, status_words};
use crate::mint::garbage;
use crate::pieces::pieces;
use crate::script::{
    Break, CallMove, CutAt, ErrorMove, Finish, HttpAnswer, Move, Pace, Script, Speech, Tokens,
};
use crate::seen::{Delivery, Seen};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// Characters per argument fragment, where nothing else is said.
const FRAGMENT_CHARS: usize = 6;

/// One thing to do on the socket.
#[derive(Clone, Debug, PartialEq)]
pub enum Beat {
    /// Bytes of the body.
    Bytes(Vec<u8>),
    /// Silence.
    Pause(Duration),
    /// Silence until this file exists.
    WaitFor(PathBuf),
    /// A break: nothing follows.
    Break(Break),
}

/// A response, ready to be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Performance {
    /// The HTTP status.
    pub status: u16,
    /// Headers, `content-type` among them; length and encoding of the body are the server's.
    pub headers: Vec<(String, String)>,
    /// In chunks or with a `content-length`.
    pub framing: Framing,
    /// Silence before the head of the response.
    pub first_byte: Duration,
    /// The body.
    pub beats: Vec<Beat>,
}

/// How the body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `transfer-encoding: chunked`, one chunk per beat.
    Chunked,
    /// `content-length`.
    Length,
}

impl Performance {
    /// The bytes of the body up to its end or first break.
    pub fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for beat in &self.beats {
            if let Beat::Bytes(bytes) = beat {
                body.extend_from_slice(bytes);
            }
        }
        body
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::fixed(status, "application/json", body.to_string().into_bytes())
    }

    pub(crate) fn fixed(status: u16, content_type: &str, body: Vec<u8>) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), content_type.into())],
            framing: Framing::Length,
            first_byte: Duration::ZERO,
            beats: vec![Beat::Bytes(body)],
        }
    }
}

/// Writes a script as the answer to a request.
pub fn perform(script: &Script, seen: &Seen) -> Performance {
    let as_text = script.calls.protocol(seen).map(|protocol| protocol.written(script));
    let script = as_text.as_ref().unwrap_or(script);
    let mut performance = if let (Some(vendor), false) = (script.refuse_tools, seen.tools.is_empty()) {
        let (status, body) = vendor.refusal(&seen.model);
        Performance::json(status, &body)
    } else if let Some(http) = &script.http {
        answer(http, seen)
    } else if seen.delivery == Delivery::Whole {
        in_one_piece(script, seen)
    } else {
        streamed(script, seen)
    };
    performance.first_byte = Duration::from_millis(script.first_byte_ms);
    if let Some(cut) = script.cut {
        performance.beats = broken(performance.beats, cut);
    }
    performance
}

fn answer(http: &HttpAnswer, seen: &Seen) -> Performance {
    let (content_type, body) = match &http.body {
        Some(Value::String(text)) if text.trim_start().starts_with('<') => ("text/html", text.clone()),
        Some(Value::String(text)) => ("text/plain; charset=utf-8", text.clone()),
        Some(value) => ("application/json", value.to_string()),
        None => {
            let error = ErrorMove::new(status_words(http.status));
            let body = dialect::error_body(seen.dialect, seen.delivery, http.status, &error);
            ("application/json", body.to_string())
        }
    };
    let mut answer = Performance::fixed(http.status, content_type, body.into_bytes());
    for (name, value) in &http.headers {
        let name = name.to_ascii_lowercase();
        answer.headers.retain(|(known, _)| *known != name);
        answer.headers.push((name, value.clone()));
    }
    answer
}

fn streamed(script: &Script, seen: &Seen) -> Performance {
    let encoder = dialect::encoder(seen);
    let headers = vec![("content-type".into(), encoder.content_type().into())];
    let mut stage = Stage {
        encoder,
        pace: script.pace,
        beats: Vec::new(),
        tokens: 0,
        thinking_tokens: 0,
        calls: 0,
        finished: false,
        usage: Tokens::default(),
        input_estimate: estimate(seen),
    };
    stage.write(|encoder, out| encoder.open(out));
    if !script.moves.iter().any(|next| stage.play(next).is_break()) {
        stage.close();
    }
    Performance {
        status: 200,
        headers,
        framing: Framing::Chunked,
        first_byte: Duration::ZERO,
        beats: stage.beats,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Flow {
    On,
    Over,
}

/// Whether calls are ended as the dialect ends them.
#[derive(Clone, Copy, PartialEq)]
enum Closing {
    Closed,
    LeftOpen,
}

impl Flow {
    fn is_break(self) -> bool {
        self == Self::Over
    }
}

/// A streamed reply in the making.
struct Stage {
    encoder: Box<dyn Encoder>,
    pace: Pace,
    beats: Vec<Beat>,
    tokens: u64,
    thinking_tokens: u64,
    calls: usize,
    finished: bool,
    usage: Tokens,
    input_estimate: u64,
}

impl Stage {
    fn play(&mut self, next: &Move) -> Flow {
        match next {
            Move::Say(speech) => self.speak(speech, |encoder, piece, out| encoder.text(piece, out)),
            Move::Think(speech) => {
                let before = self.tokens;
                self.speak(speech, |encoder, piece, out| encoder.think(piece, out));
                self.thinking_tokens += self.tokens - before;
            }
            Move::Call(call) => self.calls(std::slice::from_ref(call), Closing::Closed),
            Move::HalfCall(call) => self.calls(std::slice::from_ref(call), Closing::LeftOpen),
            Move::Parallel(calls) => self.calls(calls, Closing::Closed),
            Move::Usage(usage) => self.usage = *usage,
            Move::Finish(finish) => self.finish(finish),
            Move::Raw(text) => self.beats.push(Beat::Bytes(text.as_bytes().to_vec())),
            Move::Garbage(length) => self.beats.push(Beat::Bytes(garbage(*length))),
            Move::Ping => self.write(|encoder, out| encoder.ping(out)),
            Move::Pause(ms) => self.beats.push(Beat::Pause(Duration::from_millis(*ms))),
            Move::WaitFor(file) => self.beats.push(Beat::WaitFor(file.clone())),
            Move::Error(error) => {
                self.write(|encoder, out| encoder.error(error, out));
                return Flow::Over;
            }
            Move::End => return self.stop(Break::End),
            Move::Cut => return self.stop(Break::Cut),
            Move::Stall => return self.stop(Break::Stall),
            Move::Reset => return self.stop(Break::Reset),
        }
        Flow::On
    }

    fn stop(&mut self, how: Break) -> Flow {
        self.beats.push(Beat::Break(how));
        Flow::Over
    }

    fn close(&mut self) {
        if !self.finished {
            let finish = if self.calls > 0 { Finish::ToolCalls } else { Finish::Stop };
            self.finish(&finish);
        }
        let usage = self.counted();
        self.write(|encoder, out| encoder.end(&usage, out));
    }

    fn finish(&mut self, finish: &Finish) {
        self.finished = true;
        let usage = self.counted();
        self.write(|encoder, out| encoder.finish(finish, &usage, out));
    }

    fn counted(&self) -> Tokens {
        Tokens {
            input: self.usage.input.or(Some(self.input_estimate)),
            output: self.usage.output.or(Some(self.tokens)),
            cached: self.usage.cached,
            reasoning: self.usage.reasoning.or((self.thinking_tokens > 0).then_some(self.thinking_tokens)),
        }
    }

    fn speak(&mut self, speech: &Speech, encode: impl Fn(&mut dyn Encoder, &str, &mut Vec<u8>)) {
        let rate = speech.tokens_per_second.or(self.pace.tokens_per_second);
        for piece in pieces(&speech.text, speech.chunk_chars.or(self.pace.chunk_chars)) {
            self.write(|encoder, out| encode(encoder, piece, out));
            self.rest(rate);
        }
    }

    /// One call, or several whose fragments take turns.
    fn calls(&mut self, calls: &[CallMove], closing: Closing) {
        let first = self.calls;
        self.calls += calls.len();
        let texts: Vec<String> = calls.iter().map(CallMove::text).collect();
        let fragments: Vec<Vec<&str>> = (calls.iter().zip(&texts))
            .map(|(call, text)| {
                let size = call.fragment_chars.or(self.pace.fragment_chars).unwrap_or(FRAGMENT_CHARS);
                pieces(text, Some(size))
            })
            .collect();
        for (i, call) in calls.iter().enumerate() {
            self.write(|encoder, out| encoder.call_open(first + i, call, out));
            self.rest(self.pace.tokens_per_second);
        }
        let longest = fragments.iter().map(Vec::len).max().unwrap_or(0);
        for round in 0..longest {
            for (i, fragments) in fragments.iter().enumerate() {
                if let Some(piece) = fragments.get(round) {
                    self.write(|encoder, out| encoder.call_arguments(first + i, piece, out));
                    self.rest(self.pace.tokens_per_second);
                }
            }
        }
        if closing == Closing::Closed {
            for i in 0..calls.len() {
                self.write(|encoder, out| encoder.call_close(first + i, out));
            }
        }
    }

    fn rest(&mut self, rate: Option<f64>) {
        self.tokens += 1;
        if let Some(rate) = rate.filter(|rate| rate.is_finite() && *rate > 0.0) {
            self.beats.push(Beat::Pause(Duration::from_secs_f64((1.0 / rate).min(3600.0))));
        }
    }

    fn write(&mut self, encode: impl FnOnce(&mut dyn Encoder, &mut Vec<u8>)) {
        let mut bytes = Vec::new();
        encode(self.encoder.as_mut(), &mut bytes);
        if !bytes.is_empty() {
            self.beats.push(Beat::Bytes(bytes));
        }
    }
}

/// A reply without streaming. Faults strike in the middle of the body, an error move becomes a 500.
fn in_one_piece(script: &Script, seen: &Seen) -> Performance {
    let mut reply = Whole::default();
    let (mut finish, mut tokens, mut silences, mut fault) = (None, 0, Vec::new(), None);
    for next in &script.moves {
        match next {
            Move::Say(speech) => {
                reply.text.push_str(&speech.text);
                tokens += pieces(&speech.text, None).len() as u64;
            }
            Move::Think(speech) => {
                reply.thinking.push_str(&speech.text);
                tokens += pieces(&speech.text, None).len() as u64;
            }
            Move::Call(call) => reply.calls.push(call.clone()),
            Move::Parallel(calls) => reply.calls.extend_from_slice(calls),
            Move::Usage(usage) => reply.usage = *usage,
            Move::Finish(reason) => finish = Some(reason.clone()),
            Move::Pause(ms) => silences.push(Beat::Pause(Duration::from_millis(*ms))),
            Move::WaitFor(file) => silences.push(Beat::WaitFor(file.clone())),
            Move::Error(error) => {
                let body = dialect::error_body(seen.dialect, seen.delivery, 500, error);
                return Performance::json(500, &body);
            }
            Move::Cut | Move::End => fault = fault.or(Some(Break::Cut)),
            Move::Stall => fault = fault.or(Some(Break::Stall)),
            Move::Reset => fault = fault.or(Some(Break::Reset)),
            // Things that only a stream has.
            Move::HalfCall(_) | Move::Raw(_) | Move::Garbage(_) | Move::Ping => {}
        }
    }
    reply.usage.input = reply.usage.input.or(Some(estimate(seen)));
    reply.usage.output = reply.usage.output.or(Some(tokens + 8 * reply.calls.len() as u64));
    let finish = finish.unwrap_or(if reply.calls.is_empty() { Finish::Stop } else { Finish::ToolCalls });
    let body = dialect::whole(seen, &reply, &finish).to_string().into_bytes();
    let half = body.len() as u64 / 2;
    let mut performance = Performance::fixed(200, "application/json", body);
    performance.beats.splice(0..0, silences);
    if let Some(how) = fault {
        performance.beats = broken(performance.beats, CutAt { byte: half, how });
    }
    performance
}

/// About four bytes a token.
fn estimate(seen: &Seen) -> u64 {
    seen.body.to_string().len() as u64 / 4 + 1
}

/// The same beats up to a byte, then a break. A body that is shorter stays as it is.
fn broken(beats: Vec<Beat>, cut: CutAt) -> Vec<Beat> {
    let mut left = cut.byte;
    let mut kept = Vec::new();
    for beat in beats {
        match beat {
            Beat::Bytes(mut bytes) if bytes.len() as u64 > left => {
                bytes.truncate(left as usize);
                if !bytes.is_empty() {
                    kept.push(Beat::Bytes(bytes));
                }
                kept.push(Beat::Break(cut.how));
                return kept;
            }
            Beat::Bytes(bytes) => {
                left -= bytes.len() as u64;
                kept.push(Beat::Bytes(bytes));
            }
            other => kept.push(other),
        }
    }
    kept
}
