//! Histories as logs and clients contain them, through every dialect and built-in provider: none of them is
//! refused.
//!
//! Each step was written by some upstream's fake, so that signatures and ids are real ones, and read by the
//! decoder. The outcomes of its calls, the user's messages, and the start and end of the history are random.
//! So are the tools, the tool choice and the settings, in the form in which users write them for each
//! upstream.

use crate::known_upstreams::{self, KnownUpstream};
use serde_json::{Value, json};
use throughline_testkit::response::render_response;
use throughline_testkit::{ModelScript, ParsedRequest};
use throughline_wire::{
    Call, CallArguments, CallKind, CallOutcome, ClosedStep, DecodeOptions, Media, Message, ModelReply,
    ModelRequest, ModelSettings, NotStarted, RawArguments, StartState, StepDecoder, ToolChoice,
    ToolDefinition, ToolOutput, TransferMode, UserPart,
};

/// Turns of a normal run. `cargo xtask verify --only histories` draws more.
const TURNS: u32 = 2_000;
const TURNS_OF_A_HISTORY_MAX: u64 = 8;

/// Header of a PNG of this width, without pixels.
const PNG_100: &str = "iVBORw0KGgoAAAANSUhEUgAAAGQAAAAK";
const PNG_3000: &str = "iVBORw0KGgoAAAANSUhEUgAAC7gAAAAK";
const PNG_9000: &str = "iVBORw0KGgoAAAANSUhEUgAAIygAAAAK";

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
            ("image/png", PNG_3000),
            ("image/png", PNG_9000),
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
        let mut parts: Vec<UserPart> = parts.collect();
        if self.chance(2) {
            // More than Claude takes, or more than it takes of this size.
            let count = *self.of(&[15, 25, 101]);
            let large = self.below(10);
            parts.extend((0..count).map(|_| {
                let header = if self.below(10) < large { PNG_3000 } else { PNG_100 };
                UserPart::Image(Media::new("image/png".to_owned(), header.to_owned()))
            }));
        }
        Message::User(parts)
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

    /// Number of calls of a step. Some models read every file of a folder in one step.
    fn calls(&mut self) -> u64 {
        if self.chance(1) { 127 + self.below(4) } else { self.below(4) }
    }

    /// Calls of the tools that the upstream was shown, by the names that their arguments have there.
    fn script(&mut self, seen: &ParsedRequest) -> ModelScript {
        let mut script = ModelScript::new();
        if self.chance(50) {
            script = script.think("hm ");
        }
        if self.chance(70) {
            script = script.say(*self.of(&["word ", "\n", "Let me see.", "[1]"]));
        }
        // Now and then it is cut in the middle of its next thought.
        if self.chance(10) {
            return script.think("hm ");
        }
        for _ in 0..self.calls() {
            script = if seen.tools.is_empty() || self.chance(30) {
                let name = *self.of(&["look", "no_such_tool"]);
                script.call(name, json!({"q": self.below(3)}))
            } else {
                let tool = self.of(&seen.tools);
                script.call(tool.name.as_str(), self.arguments_of(&tool.parameters))
            };
        }
        script
    }

    fn arguments_of(&mut self, parameters: &Value) -> Value {
        let properties = parameters["properties"].as_object();
        let drawn = properties.into_iter().flatten().filter(|_| self.chance(60));
        drawn.map(|(name, _)| (name.clone(), json!({"$top": [1], "城市": "x"}))).collect()
    }

    /// A step that no upstream here has written: of a client's history, or of a log of an earlier build.
    fn foreign_step(&mut self) -> ClosedStep {
        let calls = (0..self.calls()).map(|nth| {
            let ids = ["call_1", "functions.look:0", "", "toolu 1", "call_2"];
            let upstream_id = self.chance(70).then(|| match self.below(6) {
                5 => format!("call_{}", "x".repeat(90)).as_str().into(),
                _ => (*self.of(&ids)).into(),
            });
            let names = [
                "look",
                "list_builds",
                "find",
                "functions.look",
                "look at",
                "",
                "查找",
                "multi_tool_use.parallel",
                LONG_NAME,
                "list.builds",
            ];
            let arguments = match self.below(6) {
                0 => Err(RawArguments("{\"q".to_owned())),
                1 => Ok(CallArguments::from_value(json!([1]))),
                2 => Ok(CallArguments::from_value(json!({"filter[app]": 1, "城市": {"$top": 2}, "": null}))),
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

    fn choice(&mut self, tools: &[ToolDefinition]) -> ToolChoice {
        match self.below(8) {
            0 => ToolChoice::None,
            1 => ToolChoice::Required,
            2 | 3 if !tools.is_empty() => ToolChoice::Tool(self.of(tools).name.clone()),
            _ => ToolChoice::Auto,
        }
    }

    fn settings(&mut self) -> DrawnSettings {
        DrawnSettings {
            temperature: self.chance(30).then_some(0.5),
            max_output_tokens: self.chance(30).then_some(100),
            parallel_tool_calls: self.chance(30).then_some(false),
            thinking: self.chance(50).then(|| self.below(6) as usize),
            is_structured: self.chance(15),
        }
    }

    /// The tools of an agent; now and then those of many servers, more than some upstreams take.
    fn tools(&mut self) -> Vec<ToolDefinition> {
        let mut tools = tools();
        let count = self.below(tools.len() as u64 + 1);
        tools.truncate(count as usize);
        if self.chance(1) {
            let more = *self.of(&[120, 130, 520]);
            let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
            tools.extend(
                (0..more)
                    .map(|nth| ToolDefinition::new(format!("more_{nth}"), "One of many.", schema.clone())),
            );
        }
        tools
    }
}

/// Settings in no upstream's form.
#[derive(Clone, Copy)]
struct DrawnSettings {
    temperature: Option<f64>,
    max_output_tokens: Option<u32>,
    parallel_tool_calls: Option<bool>,
    /// Index of one of the ways in which an upstream enables thinking.
    thinking: Option<usize>,
    is_structured: bool,
}

impl DrawnSettings {
    fn at(self, upstream: &KnownUpstream) -> ModelSettings {
        let mut settings = ModelSettings {
            temperature: self.temperature,
            max_output_tokens: self.max_output_tokens,
            parallel_tool_calls: self.parallel_tool_calls,
            ..ModelSettings::default()
        };
        let with = |extra| ModelSettings { extra, ..ModelSettings::default() };
        if let Some(nth) = self.thinking {
            let ways = known_upstreams::thinking(upstream);
            let extra = ways[nth % ways.len()].as_object().cloned().unwrap_or_default();
            settings = settings.with_defaults(&with(extra));
        }
        let schema = json!({"type": "object", "properties": {"城市": {"type": "string", "minLength": 1}}});
        if let Some(extra) =
            known_upstreams::reply_schema(upstream.dialect, &schema).filter(|_| self.is_structured)
        {
            settings = settings.with_defaults(&with(extra));
        }
        settings
    }
}

/// A name of the maximum length.
const LONG_NAME: &str = "mcp_a_server_with_a_long_name_and_a_tool_with_a_long_name_as_wel";

fn tools() -> Vec<ToolDefinition> {
    let tool = |name: &str, schema| ToolDefinition::new(name, "Does it.", schema);
    let look = json!({"type": "object", "properties": {"q": {"type": "integer"}}});
    let odd_names = json!({
        "type": "object",
        "properties": {
            "filter[app]": {"type": "string"},
            "filter_app_": {"type": "string"},
            "$top": {"type": "integer", "description": "At most."},
            "城市": {"type": "object", "properties": {"$top": {"type": "integer"}}, "required": ["$top"]},
            "": {"type": "null"},
        },
        "required": ["$top"],
    });
    let union = json!({"oneOf": [
        {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
        {"type": "object", "properties": {"查询": {"const": "all"}}, "required": ["查询"]},
    ]});
    let recursive = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree"}, "list": {"type": "array"}},
        "$defs": {"Tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}},
    });
    vec![
        tool("look", look),
        tool("list_builds", odd_names),
        tool("find", union),
        tool(LONG_NAME, recursive),
        tool("list_builds_", json!({})),
    ]
}

/// The answer of the upstream to the request, as a step of the history.
fn answer(
    provider: &KnownUpstream,
    seen: &ParsedRequest,
    tools: &[ToolDefinition],
    draw: &mut Draw,
) -> ClosedStep {
    let bytes = render_response(&draw.script(seen), seen).body();
    let options =
        DecodeOptions { argument_names: provider.argument_names(tools), ..DecodeOptions::default() };
    let mut decoder = StepDecoder::new(provider.dialect, options);
    let mut reply = ModelReply::default();
    decoder.push(&bytes, &mut |event| reply.apply(event));
    decoder.finish(&mut |event| reply.apply(event));
    reply.into_step(provider.model.clone(), |_| draw.outcome())
}

/// A history of some turns, most of its steps from one upstream, and the settings of its last request. The
/// earlier requests were accepted.
fn history(
    providers: &[KnownUpstream],
    draw: &mut Draw,
    turns: &mut u32,
) -> Result<(ModelRequest, DrawnSettings), String> {
    let usual = draw.below(providers.len() as u64) as usize;
    let mut request = ModelRequest {
        instructions: draw.chance(50).then(|| draw.text()),
        tools: draw.tools(),
        ..ModelRequest::default()
    };
    let mut settings = draw.settings();
    for _ in 0..=draw.below(TURNS_OF_A_HISTORY_MAX - 1) {
        *turns += 1;
        if draw.chance(30) {
            settings = draw.settings();
        }
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
            request.settings = settings.at(provider);
            let seen = provider.encode_and_read(&request, TransferMode::Stream)?;
            let step = answer(provider, &seen, &request.tools, draw);
            request.messages.push(Message::Step(step));
        }
    }
    request.tool_choice = draw.choice(&request.tools);
    Ok((request, settings))
}

#[test]
fn generated_histories_are_accepted_by_every_upstream() {
    let providers = known_upstreams::all();
    let most = std::env::var("THROUGHLINE_HISTORY_TURNS").ok();
    let most = most.map_or(TURNS, |most| most.parse().expect("THROUGHLINE_HISTORY_TURNS is a number"));
    let (mut turns, mut seed, mut failures) = (0, 0, Vec::new());
    while turns < most && failures.len() < 25 {
        seed += 1;
        let mut draw = Draw(seed);
        match history(&providers, &mut draw, &mut turns) {
            Err(refusal) => failures.push(format!("seed {seed}: {refusal}")),
            Ok((request, settings)) => {
                let refused = providers.iter().filter_map(|provider| {
                    let settings = settings.at(provider);
                    let request = ModelRequest { settings, ..request.clone() };
                    provider.encode_and_read(&request, TransferMode::Whole).err()
                });
                failures.extend(refused.map(|refusal| format!("seed {seed}: {refusal}")));
            }
        }
    }
    let heads: Vec<&str> = failures.iter().filter_map(|failure| failure.lines().next()).collect();
    assert!(failures.is_empty(), "{}\n{:.6000}", heads.join("\n"), failures[0]);
}
