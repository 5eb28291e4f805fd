//! Histories as logs and clients bring them, through every dialect and known upstream: none of them is refused.
//!
//! Each step was written by some upstream's own fake, so that signatures and ids are real ones, and read by the decoder; what
//! became of its calls, what the user sent, and where the history begins and ends is drawn.

use crate::known_upstreams::{self, KnownUpstream};
use serde_json::json;
use throughline_testkit::response::render_response;
use throughline_testkit::{ModelScript, SeenRequest};
use throughline_wire::{
    Call, CallArguments, CallKind, CallOutcome, ClosedStep, DecodeOptions, Media, Message, ModelReply,
    ModelRequest, ModelSettings, NotStarted, RawArguments, StartState, StepDecoder, ToolChoice,
    ToolDefinition, ToolOutput, TransferMode, UserPart,
};

/// Turns of a normal run. `cargo xtask verify --only histories` draws more.
const TURNS: u32 = 2_000;
const TURNS_OF_A_HISTORY_MAX: u64 = 8;

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }

    fn text(&mut self) -> String {
        let texts =
            ["Hi", "", " ", "\n\n", "a\u{200b}b", "\u{feff}", "你好", "{\"a\":1}", "<tool_call>", "word "];
        (*self.of(&texts)).to_owned()
    }

    fn media(&mut self) -> Media {
        let png = "iVBORw0KGgo=";
        let (media_type, data) = *self.of(&[
            ("image/png", png),
            ("image/jpeg", png),
            ("image/webp", ""),
            ("image/svg+xml", "PHN2Zy8+"),
            ("image/heic", "AAAAGGZ0eXBoZWlj"),
            ("audio/wav", "UklGRgAAAABXQVZF"),
            ("audio/mpeg", "SUQz"),
            ("application/pdf", "JVBERi0="),
            ("text/plain", "aGk="),
            ("text/plain", ""),
            ("", "AA=="),
        ]);
        match self.below(8) {
            0 => Media::from_url("image/png".to_owned(), "https://example.com/cat.png".to_owned()),
            1 => Media::stored(media_type.to_owned(), "file_1".to_owned(), 9),
            _ => Media::new(media_type.to_owned(), data.to_owned()),
        }
    }

    fn user(&mut self) -> Message {
        let count = self.below(4);
        let parts = (0..count).map(|_| match self.below(4) {
            0 => UserPart::Image(self.media()),
            1 => UserPart::File { name: "a.bin".to_owned(), media: self.media() },
            _ => UserPart::Text { text: self.text() },
        });
        Message::User(parts.collect())
    }

    fn output(&mut self) -> ToolOutput {
        let media = (0..self.below(3)).map(|_| self.media()).collect();
        ToolOutput { media, ..ToolOutput::text(self.text()) }
    }

    fn outcome(&mut self) -> CallOutcome {
        let partial = self.chance(50).then(|| self.output());
        match self.below(10) {
            0 => CallOutcome::Failed { message: self.text(), partial },
            1 => CallOutcome::Denied { reason: Some(self.text()) },
            2 => CallOutcome::Cancelled(StartState::No),
            3 => CallOutcome::Cancelled(StartState::Yes { ran_ms: 5, partial }),
            4 => CallOutcome::TimedOut { limit_ms: 5, partial },
            5 => CallOutcome::NotStarted(NotStarted::Interrupted),
            _ => CallOutcome::Done(self.output()),
        }
    }

    /// Calls of a step. Some models look at every file of a folder at once.
    fn calls(&mut self) -> u64 {
        if self.chance(1) { 127 + self.below(4) } else { self.below(4) }
    }

    fn script(&mut self) -> ModelScript {
        let mut script = ModelScript::new();
        if self.chance(50) {
            script = script.think("hm ");
        }
        if self.chance(70) {
            script = script.say(*self.of(&["word ", "\n", "Let me see.", "[1]"]));
        }
        for _ in 0..self.calls() {
            let name = *self.of(&["look", "look", "no_such_tool"]);
            script = script.call(name, json!({"q": self.below(3)}));
        }
        script
    }

    /// A step that no upstream here has written: of a client's history, or of a log of an earlier build.
    fn foreign_step(&mut self) -> ClosedStep {
        let calls = (0..self.calls()).map(|nth| {
            let ids = ["call_1", "functions.look:0", "", "toolu 1", "call_2"];
            let upstream_id = self.chance(70).then(|| match self.below(6) {
                5 => format!("call_{}", "x".repeat(90)).as_str().into(),
                _ => (*self.of(&ids)).into(),
            });
            let names = ["look", "look", "functions.look", "look at", "", "查找", "multi_tool_use.parallel"];
            let arguments = match self.below(5) {
                0 => Err(RawArguments("{\"q".to_owned())),
                1 => Ok(CallArguments::from_value(json!([1]))),
                _ => Ok(CallArguments::from_value(json!({"q": 1}))),
            };
            let call = Call {
                id: format!("own_{}_{nth}", self.below(1_000_000)).as_str().into(),
                upstream_id,
                name: (*self.of(&names)).into(),
                kind: CallKind::Function,
                arguments,
                ran_with: None,
            };
            (call, self.outcome())
        });
        let calls = calls.collect();
        ClosedStep {
            text: self.text(),
            thinking: self.text(),
            calls,
            model: "m".to_owned(),
            provider_state: None,
        }
    }

    fn settings(&mut self) -> (ToolChoice, ModelSettings) {
        let choice = match self.below(6) {
            0 => ToolChoice::None,
            1 => ToolChoice::Required,
            2 => ToolChoice::Tool("look".into()),
            _ => ToolChoice::Auto,
        };
        let settings = ModelSettings {
            temperature: self.chance(30).then_some(0.5),
            max_output_tokens: self.chance(30).then_some(100),
            parallel_tool_calls: self.chance(30).then_some(false),
            ..ModelSettings::default()
        };
        (choice, settings)
    }
}

fn tools() -> Vec<ToolDefinition> {
    let schema = json!({"type": "object", "properties": {"q": {"type": "integer"}}});
    vec![ToolDefinition::new("look", "Looks.", schema)]
}

/// The answer of the upstream to the request, as a step of the history.
fn answer(provider: &KnownUpstream, seen: &SeenRequest, draw: &mut Draw) -> ClosedStep {
    let bytes = render_response(&draw.script(), seen).body();
    let mut decoder = StepDecoder::new(provider.dialect, DecodeOptions::default());
    let mut reply = ModelReply::default();
    decoder.push(&bytes, &mut |event| reply.apply(event));
    decoder.finish(&mut |event| reply.apply(event));
    reply.into_step(provider.model.clone(), |_| draw.outcome())
}

/// A history of some turns, most of its steps from one upstream. Its requests so far were taken.
fn history(providers: &[KnownUpstream], draw: &mut Draw, turns: &mut u32) -> Result<ModelRequest, String> {
    let usual = draw.below(providers.len() as u64) as usize;
    let mut request = ModelRequest {
        instructions: draw.chance(50).then(|| draw.text()),
        tools: if draw.chance(90) { tools() } else { Vec::new() },
        ..ModelRequest::default()
    };
    for _ in 0..=draw.below(TURNS_OF_A_HISTORY_MAX - 1) {
        *turns += 1;
        if draw.chance(95) {
            request.messages.push(draw.user());
        }
        for _ in 0..draw.below(4) {
            if draw.chance(20) {
                request.messages.push(Message::Step(draw.foreign_step()));
                continue;
            }
            let provider =
                &providers[if draw.chance(70) { usual } else { draw.below(providers.len() as u64) as usize }];
            let seen = provider.encode_and_read(&request, TransferMode::Stream)?;
            request.messages.push(Message::Step(answer(provider, &seen, draw)));
        }
    }
    (request.tool_choice, request.settings) = draw.settings();
    Ok(request)
}

#[test]
fn no_upstream_refuses_a_history() {
    let providers = known_upstreams::all();
    let most = std::env::var("THROUGHLINE_HISTORY_TURNS").ok();
    let most = most.map_or(TURNS, |most| most.parse().expect("THROUGHLINE_HISTORY_TURNS is a number"));
    let (mut turns, mut seed, mut failures) = (0, 0, Vec::new());
    while turns < most && failures.len() < 25 {
        seed += 1;
        let mut draw = Draw(seed);
        match history(&providers, &mut draw, &mut turns) {
            Err(refusal) => failures.push(format!("seed {seed}: {refusal}")),
            Ok(request) => {
                let refused = providers
                    .iter()
                    .filter_map(|provider| provider.encode_and_read(&request, TransferMode::Whole).err());
                failures.extend(refused.map(|refusal| format!("seed {seed}: {refusal}")));
            }
        }
    }
    let heads: Vec<&str> = failures.iter().filter_map(|failure| failure.lines().next()).collect();
    assert!(failures.is_empty(), "{}\n{:.6000}", heads.join("\n"), failures[0]);
}
