//! From a script to what goes over the socket: bytes, pauses and a way to end. Pure, so that it can be tested and
//! simulated without one.

use crate::deltas::split_deltas;
use crate::dialect::{self, ReplyEncoder, WholeReply, status_message};
use crate::fake_ids::garbage;
use crate::parsed_request::{ParsedRequest, ReplyDelivery};
use crate::quirk::{self, PlantedQuirk};
use crate::script::{
    BodyBreak, BodyCut, CallMove, ErrorMove, HttpAnswer, ModelScript, ReplyPace, ScriptFinish, ScriptMove,
    SpeechMove, TokenCounts,
};
use crate::voice;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// Characters per argument fragment, by default.
const FRAGMENT_CHARS: usize = 6;

/// One thing to do on the socket.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseStep {
    /// Bytes of the body.
    Bytes(Vec<u8>),
    /// Silence.
    Pause(Duration),
    /// Silence until this file exists.
    WaitFor(PathBuf),
    /// A break: nothing follows.
    Break(BodyBreak),
}

/// A response, ready to be played.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedResponse {
    /// The HTTP status.
    pub status: u16,
    /// Headers, `content-type` among them; length and encoding of the body are the server's.
    pub headers: Vec<(String, String)>,
    /// In chunks or with a `content-length`.
    pub framing: BodyFraming,
    /// Silence before the head of the response.
    pub first_byte_delay: Duration,
    /// The body.
    pub steps: Vec<ResponseStep>,
}

/// Delimitation of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// `transfer-encoding: chunked`, one chunk per beat.
    Chunked,
    /// `content-length`.
    Length,
}

impl ScriptedResponse {
    /// The bytes of the body up to its end or first break.
    pub fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for step in &self.steps {
            if let ResponseStep::Bytes(bytes) = step {
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
            framing: BodyFraming::Length,
            first_byte_delay: Duration::ZERO,
            steps: vec![ResponseStep::Bytes(body)],
        }
    }
}

/// Writes the answer to a request at an upstream with these quirks. A request that a quirk refuses never reaches the
/// model.
pub(crate) fn render_with_quirks(
    quirks: &[PlantedQuirk],
    seen: &ParsedRequest,
    reply: impl FnOnce() -> ModelScript,
) -> ScriptedResponse {
    if let Some(refusal) = quirk::refusal(quirks, seen) {
        return refusal;
    }
    let script = quirk::with_quirks(quirks, seen, reply());
    if quirks.contains(&PlantedQuirk::WholeBodyForStream) {
        let whole = ParsedRequest { delivery: ReplyDelivery::Whole, ..seen.clone() };
        return render_response(&script, &whole);
    }
    quirk::rewrite(quirks, seen, render_response(&script, seen))
}

/// Writes a script as the answer to a request.
pub fn render_response(script: &ModelScript, seen: &ParsedRequest) -> ScriptedResponse {
    let as_text = script.calls.protocol(seen).map(|protocol| protocol.with_text_calls(script));
    let script = as_text.as_ref().unwrap_or(script);
    let mut response = if let (Some(vendor), false) = (script.refuse_tools, seen.tools.is_empty()) {
        let (status, body) = vendor.refusal(&seen.model);
        ScriptedResponse::json(status, &body)
    } else if let Some(http) = &script.http {
        http_response(http, seen)
    } else if seen.delivery == ReplyDelivery::Whole {
        whole_response(script, seen)
    } else {
        streamed_response(script, seen)
    };
    response.first_byte_delay = Duration::from_millis(script.first_byte_ms);
    if let Some(cut) = script.cut {
        response.steps = break_at(response.steps, cut);
    }
    response
}

fn http_response(http: &HttpAnswer, seen: &ParsedRequest) -> ScriptedResponse {
    let (content_type, body) = match &http.body {
        Some(Value::String(text)) if text.trim_start().starts_with('<') => ("text/html", text.clone()),
        Some(Value::String(text)) => ("text/plain; charset=utf-8", text.clone()),
        Some(value) => ("application/json", value.to_string()),
        None => {
            let error = ErrorMove::new(status_message(http.status));
            let body = dialect::error_body(seen.dialect, seen.delivery, http.status, &error);
            ("application/json", body.to_string())
        }
    };
    let mut answer = ScriptedResponse::fixed(http.status, content_type, body.into_bytes());
    for (name, value) in &http.headers {
        let name = name.to_ascii_lowercase();
        answer.headers.retain(|(known, _)| *known != name);
        answer.headers.push((name, value.clone()));
    }
    answer
}

fn streamed_response(script: &ModelScript, seen: &ParsedRequest) -> ScriptedResponse {
    let encoder = dialect::encoder(seen);
    let headers = vec![("content-type".into(), encoder.content_type().into())];
    let mut stage = ReplyBuilder {
        encoder,
        pace: script.pace,
        steps: Vec::new(),
        tokens: 0,
        thinking_tokens: 0,
        calls: 0,
        finished: false,
        usage: TokenCounts::default(),
        input_estimate: estimated_tokens(seen),
    };
    stage.write(|encoder, out| encoder.open(out));
    if !script.moves.iter().any(|next| stage.apply_move(next).is_break()) {
        stage.close();
    }
    ScriptedResponse {
        status: 200,
        headers,
        framing: BodyFraming::Chunked,
        first_byte_delay: Duration::ZERO,
        steps: stage.steps,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum ScriptFlow {
    Continue,
    Stop,
}

/// Ending of calls: as the dialect ends them, or not.
#[derive(Clone, Copy, PartialEq)]
enum CallClosing {
    Closed,
    Open,
}

impl ScriptFlow {
    fn is_break(self) -> bool {
        self == Self::Stop
    }
}

/// A streamed reply in the making.
struct ReplyBuilder {
    encoder: Box<dyn ReplyEncoder>,
    pace: ReplyPace,
    steps: Vec<ResponseStep>,
    tokens: u64,
    thinking_tokens: u64,
    calls: usize,
    finished: bool,
    usage: TokenCounts,
    input_estimate: u64,
}

impl ReplyBuilder {
    fn apply_move(&mut self, next: &ScriptMove) -> ScriptFlow {
        match next {
            ScriptMove::Say(speech) => {
                self.write_deltas(speech, |encoder, piece, out| encoder.text(piece, out))
            }
            ScriptMove::Think(speech) => {
                let before = self.tokens;
                self.write_deltas(speech, |encoder, piece, out| encoder.think(piece, out));
                self.thinking_tokens += self.tokens - before;
            }
            ScriptMove::Speak(speech) => {
                let rate = speech.tokens_per_second.or(self.pace.tokens_per_second);
                for word in voice::speak(&speech.text) {
                    self.write(|encoder, out| encoder.speak(&word, out));
                    self.pause(rate);
                }
            }
            ScriptMove::Call(call) => self.calls(std::slice::from_ref(call), CallClosing::Closed),
            ScriptMove::HalfCall(call) => self.calls(std::slice::from_ref(call), CallClosing::Open),
            ScriptMove::Parallel(calls) => self.calls(calls, CallClosing::Closed),
            ScriptMove::Usage(usage) => self.usage = *usage,
            ScriptMove::Finish(finish) => self.finish(finish),
            ScriptMove::Raw(text) => self.steps.push(ResponseStep::Bytes(text.as_bytes().to_vec())),
            ScriptMove::Garbage(length) => self.steps.push(ResponseStep::Bytes(garbage(*length))),
            ScriptMove::Ping => self.write(|encoder, out| encoder.ping(out)),
            ScriptMove::Pause(ms) => self.steps.push(ResponseStep::Pause(Duration::from_millis(*ms))),
            ScriptMove::WaitFor(file) => self.steps.push(ResponseStep::WaitFor(file.clone())),
            ScriptMove::Error(error) => {
                self.write(|encoder, out| encoder.error(error, out));
                return ScriptFlow::Stop;
            }
            ScriptMove::End => return self.stop(BodyBreak::End),
            ScriptMove::Cut => return self.stop(BodyBreak::Cut),
            ScriptMove::Stall => return self.stop(BodyBreak::Stall),
            ScriptMove::Reset => return self.stop(BodyBreak::Reset),
        }
        ScriptFlow::Continue
    }

    fn stop(&mut self, how: BodyBreak) -> ScriptFlow {
        self.steps.push(ResponseStep::Break(how));
        ScriptFlow::Stop
    }

    fn close(&mut self) {
        if !self.finished {
            let finish = if self.calls > 0 { ScriptFinish::ToolCalls } else { ScriptFinish::Stop };
            self.finish(&finish);
        }
        let usage = self.token_counts();
        self.write(|encoder, out| encoder.end(&usage, out));
    }

    fn finish(&mut self, finish: &ScriptFinish) {
        self.finished = true;
        let usage = self.token_counts();
        self.write(|encoder, out| encoder.finish(finish, &usage, out));
    }

    fn token_counts(&self) -> TokenCounts {
        TokenCounts {
            input: self.usage.input.or(Some(self.input_estimate)),
            output: self.usage.output.or(Some(self.tokens)),
            cached: self.usage.cached,
            reasoning: self.usage.reasoning.or((self.thinking_tokens > 0).then_some(self.thinking_tokens)),
        }
    }

    fn write_deltas(
        &mut self,
        speech: &SpeechMove,
        encode: impl Fn(&mut dyn ReplyEncoder, &str, &mut Vec<u8>),
    ) {
        let rate = speech.tokens_per_second.or(self.pace.tokens_per_second);
        for piece in split_deltas(&speech.text, speech.chunk_chars.or(self.pace.chunk_chars)) {
            self.write(|encoder, out| encode(encoder, piece, out));
            self.pause(rate);
        }
    }

    /// One call, or several whose fragments take turns.
    fn calls(&mut self, calls: &[CallMove], closing: CallClosing) {
        let first = self.calls;
        self.calls += calls.len();
        let texts: Vec<String> = calls.iter().map(CallMove::text).collect();
        let fragments: Vec<Vec<&str>> = (calls.iter().zip(&texts))
            .map(|(call, text)| {
                let size = call.fragment_chars.or(self.pace.fragment_chars).unwrap_or(FRAGMENT_CHARS);
                split_deltas(text, Some(size))
            })
            .collect();
        for (i, call) in calls.iter().enumerate() {
            self.write(|encoder, out| encoder.call_open(first + i, call, out));
            self.pause(self.pace.tokens_per_second);
        }
        let longest = fragments.iter().map(Vec::len).max().unwrap_or(0);
        for round in 0..longest {
            for (i, fragments) in fragments.iter().enumerate() {
                if let Some(piece) = fragments.get(round) {
                    self.write(|encoder, out| encoder.call_arguments(first + i, piece, out));
                    self.pause(self.pace.tokens_per_second);
                }
            }
        }
        if closing == CallClosing::Closed {
            for i in 0..calls.len() {
                self.write(|encoder, out| encoder.call_close(first + i, out));
            }
        }
    }

    fn pause(&mut self, rate: Option<f64>) {
        self.tokens += 1;
        if let Some(rate) = rate.filter(|rate| rate.is_finite() && *rate > 0.0) {
            self.steps.push(ResponseStep::Pause(Duration::from_secs_f64((1.0 / rate).min(3600.0))));
        }
    }

    fn write(&mut self, encode: impl FnOnce(&mut dyn ReplyEncoder, &mut Vec<u8>)) {
        let mut bytes = Vec::new();
        encode(self.encoder.as_mut(), &mut bytes);
        if !bytes.is_empty() {
            self.steps.push(ResponseStep::Bytes(bytes));
        }
    }
}

/// A reply without streaming. Faults strike in the middle of the body, an error move becomes a 500.
fn whole_response(script: &ModelScript, seen: &ParsedRequest) -> ScriptedResponse {
    let mut reply = WholeReply::default();
    let (mut finish, mut tokens, mut fault) = (None, 0, None);
    for next in &script.moves {
        match next {
            ScriptMove::Say(speech) => {
                reply.text.push_str(&speech.text);
                tokens += split_deltas(&speech.text, None).len() as u64;
            }
            ScriptMove::Think(speech) => {
                reply.thinking.push_str(&speech.text);
                tokens += split_deltas(&speech.text, None).len() as u64;
            }
            ScriptMove::Speak(speech) => {
                reply.spoken.push_str(&speech.text);
                tokens += split_deltas(&speech.text, None).len() as u64;
            }
            ScriptMove::Call(call) => reply.calls.push(call.clone()),
            ScriptMove::Parallel(calls) => reply.calls.extend_from_slice(calls),
            ScriptMove::Usage(usage) => reply.usage = *usage,
            ScriptMove::Finish(reason) => finish = Some(reason.clone()),
            ScriptMove::Error(error) => {
                let body = dialect::error_body(seen.dialect, seen.delivery, 500, error);
                return ScriptedResponse::json(500, &body);
            }
            ScriptMove::Cut | ScriptMove::End => fault = fault.or(Some(BodyBreak::Cut)),
            ScriptMove::Stall => fault = fault.or(Some(BodyBreak::Stall)),
            ScriptMove::Reset => fault = fault.or(Some(BodyBreak::Reset)),
            // Waits come from the stream; the others are things that only a stream has.
            ScriptMove::Pause(_)
            | ScriptMove::WaitFor(_)
            | ScriptMove::HalfCall(_)
            | ScriptMove::Raw(_)
            | ScriptMove::Garbage(_)
            | ScriptMove::Ping => {}
        }
    }
    reply.usage.input = reply.usage.input.or(Some(estimated_tokens(seen)));
    reply.usage.output = reply.usage.output.or(Some(tokens + 8 * reply.calls.len() as u64));
    let finish =
        finish.unwrap_or(if reply.calls.is_empty() { ScriptFinish::Stop } else { ScriptFinish::ToolCalls });
    let body = dialect::whole_reply(seen, &reply, &finish).to_string().into_bytes();
    let half = body.len() as u64 / 2;
    let mut response = ScriptedResponse::fixed(200, "application/json", body);
    // A model writes a whole reply no faster than a stream.
    let is_wait = |step: &ResponseStep| matches!(step, ResponseStep::Pause(_) | ResponseStep::WaitFor(_));
    response.steps.splice(0..0, streamed_response(script, seen).steps.into_iter().filter(is_wait));
    if let Some(how) = fault {
        response.steps = break_at(response.steps, BodyCut { byte: half, how });
    }
    response
}

/// About four bytes a token.
fn estimated_tokens(seen: &ParsedRequest) -> u64 {
    seen.body.to_string().len() as u64 / 4 + 1
}

/// The steps up to a byte, then a break. A shorter body stays as it is.
fn break_at(steps: Vec<ResponseStep>, cut: BodyCut) -> Vec<ResponseStep> {
    let mut bytes_left = cut.byte;
    let mut sent = Vec::new();
    for step in steps {
        match step {
            ResponseStep::Bytes(mut bytes) if bytes.len() as u64 > bytes_left => {
                bytes.truncate(bytes_left as usize);
                if !bytes.is_empty() {
                    sent.push(ResponseStep::Bytes(bytes));
                }
                sent.push(ResponseStep::Break(cut.how));
                return sent;
            }
            ResponseStep::Bytes(bytes) => {
                bytes_left -= bytes.len() as u64;
                sent.push(ResponseStep::Bytes(bytes));
            }
            other => sent.push(other),
        }
    }
    sent
}
