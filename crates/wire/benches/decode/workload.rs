//! The input: replies of one character each, the same bytes on every machine.

use std::fmt::Write;
use throughline_wire::Dialect;

/// All workloads. `w1` text, `w2` many calls, `w3` one long call, `w4` everything mixed; then the same with a second
/// field that changes in each event, and text in the other dialects.
pub const NAMES: [&str; 17] = [
    "w1-text",
    "w2-calls",
    "w3-long.64k",
    "w3-long.256k",
    "w3-long.1m",
    "w3-long.4m",
    "w3-long.16m",
    "w4-mixed",
    "w1-text+obfuscation",
    "w1-text+created",
    "w2-calls+obfuscation",
    "w2-calls+created",
    "text.openai-responses",
    "text.anthropic",
    "text.gemini",
    "text.ollama",
    "text.cohere",
];

/// Text deltas of the text workloads.
const TEXT_EVENTS: usize = 10_000;
const CALLS: usize = 50;
const FRAGMENTS: usize = 200;

/// The result of a right decoder.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExpectedReply {
    pub text: String,
    /// Name and argument text, in order.
    pub calls: Vec<(String, String)>,
}

/// One reply.
pub struct Workload {
    name: String,
    dialect: Dialect,
    changing_field: ChangingField,
    events: Vec<ScriptEvent>,
    answer: ExpectedReply,
    /// The bytes, and where each event ends; empty where they would be too many to keep.
    cached: (Vec<u8>, Vec<usize>),
    bytes: usize,
}

/// A second field that changes in every event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangingField {
    None,
    Obfuscation,
    Created,
}

/// The content of an event, as positions in the answer.
enum ScriptEvent {
    Begin,
    Text { from: usize, to: usize },
    Open { call: usize },
    Arguments { call: usize, from: usize, to: usize },
    Comment,
    Finish,
    Usage,
    Done,
}

/// Most bytes that are cached in memory; longer workloads are generated again in each pass.
const CACHED_BYTES_MAX: usize = 128 << 20;

impl Workload {
    /// The workload of this name.
    pub fn new(name: &str) -> Option<Self> {
        let (base, changing_field) = match name.split_once('+') {
            None => (name, ChangingField::None),
            Some((base, "obfuscation")) => (base, ChangingField::Obfuscation),
            Some((base, "created")) => (base, ChangingField::Created),
            Some(_) => return None,
        };
        let mut dialect = Dialect::OpenaiChat;
        let mut script = ReplyScript::default();
        match base.split_once('.') {
            None if base == "w1-text" => script.words(TEXT_EVENTS),
            None if base == "w2-calls" => script.many_calls(),
            None if base == "w4-mixed" => script.mixed(),
            Some(("w3-long", size)) => {
                let unit = if size.ends_with('m') { 1 << 20 } else { 1 << 10 };
                script.long_call(size.get(..size.len() - 1)?.parse::<usize>().ok()? * unit);
            }
            Some(("text", api)) => {
                dialect = api.parse().ok()?;
                script.words(TEXT_EVENTS);
            }
            _ => return None,
        }
        let ReplyScript { mut events, answer, .. } = script;
        events.extend([ScriptEvent::Finish, ScriptEvent::Usage, ScriptEvent::Done]);
        let mut workload = Self {
            name: name.to_owned(),
            dialect,
            changing_field,
            events,
            answer,
            cached: (Vec::new(), Vec::new()),
            bytes: 0,
        };
        let mut bytes = 0;
        workload.pass(&mut |event| bytes += event.len());
        workload.bytes = bytes;
        if bytes <= CACHED_BYTES_MAX {
            let (mut cached, mut ends) =
                (Vec::with_capacity(bytes), Vec::with_capacity(workload.events.len()));
            workload.pass(&mut |event| {
                cached.extend_from_slice(event);
                ends.push(cached.len());
            });
            workload.cached = (cached, ends);
        }
        Some(workload)
    }

    /// Name of the workload.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Wire format of the workload.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// True if it is Chat Completions.
    pub fn is_chat(&self) -> bool {
        self.dialect == Dialect::OpenaiChat
    }

    /// Number of its events.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// Number of its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The expected result.
    pub fn answer(&self) -> &ExpectedReply {
        &self.answer
    }

    /// Hands out the bytes, one event at a time.
    pub fn pass(&self, each: &mut dyn FnMut(&[u8])) {
        let (bytes, ends) = &self.cached;
        if ends.is_empty() {
            let mut line = String::new();
            for (number, event) in self.events.iter().enumerate() {
                line.clear();
                self.write(number, event, &mut line);
                each(line.as_bytes());
            }
            return;
        }
        let mut from = 0;
        for to in ends {
            each(&bytes[from..*to]);
            from = *to;
        }
    }

    fn write(&self, number: usize, event: &ScriptEvent, line: &mut String) {
        match self.dialect {
            Dialect::OpenaiChat => self.write_chat(number, event, line),
            _ => self.write_text(number, event, line),
        }
    }

    fn write_chat(&self, number: usize, event: &ScriptEvent, line: &mut String) {
        match event {
            ScriptEvent::Comment => return line.push_str(": still here\n\n"),
            ScriptEvent::Done => return line.push_str("data: [DONE]\n\n"),
            _ => {}
        }
        let created = 1_767_225_600 + if self.changing_field == ChangingField::Created { number } else { 0 };
        line.push_str(
            r#"data: {"id":"chatcmpl-Br7wXo2Kd0aVqT5eYc9hGmLzUfNs1","object":"chat.completion.chunk","created":"#,
        );
        push_number(line, created);
        line.push_str(r#","model":"bench-large-2026-01-01","service_tier":"default","system_fingerprint":"fp_62a0c5e1d7","choices":["#);
        if matches!(event, ScriptEvent::Usage) {
            line.push_str(r#"],"usage":{"prompt_tokens":211,"completion_tokens":"#);
            push_number(line, number);
            line.push_str(r#","total_tokens":"#);
            push_number(line, number + 211);
            line.push_str(r#","prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":0}}}"#);
            return line.push_str("\n\n");
        }
        line.push_str(r#"{"index":0,"delta":{"#);
        match event {
            ScriptEvent::Begin => line.push_str(r#""role":"assistant","content":"","refusal":null"#),
            ScriptEvent::Text { from, to } => {
                line.push_str(r#""content":"#);
                push_json(line, &self.answer.text[*from..*to]);
            }
            ScriptEvent::Open { call } => {
                let name = &self.answer.calls[*call].0;
                let _ = write!(
                    line,
                    r#""tool_calls":[{{"index":{call},"id":"call_{call:024}","type":"function","function":{{"name":"{name}","arguments":""}}}}]"#
                );
            }
            ScriptEvent::Arguments { call, from, to } => {
                line.push_str(r#""tool_calls":[{"index":"#);
                push_number(line, *call);
                line.push_str(r#","function":{"arguments":"#);
                push_json(line, &self.answer.calls[*call].1[*from..*to]);
                line.push_str("}}]");
            }
            _ => {}
        }
        line.push_str(r#"},"logprobs":null,"finish_reason":"#);
        let finish = match event {
            ScriptEvent::Finish if self.answer.calls.is_empty() => "\"stop\"",
            ScriptEvent::Finish => "\"tool_calls\"",
            _ => "null",
        };
        line.push_str(finish);
        line.push_str(r#"}],"usage":null"#);
        if self.changing_field == ChangingField::Obfuscation {
            // Padding that hides the length of tokens: 1 to 16 letters.
            let noise = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            line.push_str(r#","obfuscation":""#);
            (0..=noise >> 60).for_each(|index| line.push(char::from(b'A' + (noise >> index & 15) as u8)));
            line.push('"');
        }
        line.push_str("}\n\n");
    }

    /// Text in a dialect other than Chat Completions, with what changes from event to event there.
    fn write_text(&self, number: usize, event: &ScriptEvent, line: &mut String) {
        use Dialect as D;
        match (self.dialect, event) {
            (D::OpenaiResponses, ScriptEvent::Begin) => {
                sse(line, "response.created", r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}"#);
                sse(line, "response.output_item.added", r#"{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}"#);
                sse(line, "response.content_part.added", r#"{"type":"response.content_part.added","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}}"#);
            }
            (D::OpenaiResponses, ScriptEvent::Text { from, to }) => {
                line.push_str("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":");
                push_number(line, number + 3);
                line.push_str(r#","item_id":"msg_0a91c5d27e3b48f6","output_index":0,"content_index":0,"delta":"#);
                push_json(line, &self.answer.text[*from..*to]);
                line.push_str(r#","logprobs":[],"obfuscation":""#);
                (0..number % 13).for_each(|index| line.push(char::from(b'a' + ((number + index) % 26) as u8)));
                line.push_str("\"}\n\n");
            }
            (D::OpenaiResponses, ScriptEvent::Finish) => sse(
                line,
                "response.completed",
                r#"{"type":"response.completed","sequence_number":99999,"response":{"id":"resp_1","object":"response","status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":9,"total_tokens":18}}}"#,
            ),
            (D::Anthropic, ScriptEvent::Begin) => {
                sse(line, "message_start", r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"bench","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}"#);
                sse(line, "content_block_start", r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#);
            }
            (D::Anthropic, ScriptEvent::Text { from, to }) => {
                line.push_str("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":");
                push_json(line, &self.answer.text[*from..*to]);
                line.push_str("}}\n\n");
            }
            (D::Anthropic, ScriptEvent::Finish) => {
                sse(line, "content_block_stop", r#"{"type":"content_block_stop","index":0}"#);
                sse(line, "message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}"#);
                sse(line, "message_stop", r#"{"type":"message_stop"}"#);
            }
            (D::Gemini, ScriptEvent::Text { from, to }) => {
                line.push_str(r#"data: {"candidates":[{"content":{"parts":[{"text":"#);
                push_json(line, &self.answer.text[*from..*to]);
                line.push_str(r#"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":"#);
                push_number(line, number);
                line.push_str(r#","totalTokenCount":"#);
                push_number(line, number + 9);
                line.push_str("},\"modelVersion\":\"bench-flash\",\"responseId\":\"aBcDeFgHiJkLmNoP\"}\r\n\r\n");
            }
            (D::Gemini, ScriptEvent::Finish) => line.push_str(
                "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":9,\"totalTokenCount\":18}}\r\n\r\n",
            ),
            (D::Ollama, ScriptEvent::Text { from, to }) => {
                let _ = write!(line, r#"{{"model":"bench:8b","created_at":"2026-01-01T00:00:{:02}.{:09}Z","message":{{"role":"assistant","content":"#, number / 200 % 60, number * 7919 % 1_000_000_000);
                push_json(line, &self.answer.text[*from..*to]);
                line.push_str("},\"done\":false}\n");
            }
            (D::Ollama, ScriptEvent::Finish) => line.push_str("{\"model\":\"bench:8b\",\"created_at\":\"2026-01-01T00:00:59Z\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":9,\"eval_count\":9}\n"),
            (D::Cohere, ScriptEvent::Begin) => {
                sse(line, "message-start", r#"{"id":"m1","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}"#);
                sse(line, "content-start", r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}"#);
            }
            (D::Cohere, ScriptEvent::Text { from, to }) => {
                line.push_str("event: content-delta\ndata: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"text\":");
                push_json(line, &self.answer.text[*from..*to]);
                line.push_str("}}}}\n\n");
            }
            (D::Cohere, ScriptEvent::Finish) => {
                sse(line, "content-end", r#"{"type":"content-end","index":0}"#);
                sse(line, "message-end", r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":9,"output_tokens":9}}}}"#);
            }
            _ => {}
        }
    }
}

fn sse(line: &mut String, event: &str, data: &str) {
    let _ = write!(line, "event: {event}\ndata: {data}\n\n");
}

fn push_number(line: &mut String, number: usize) {
    let _ = write!(line, "{number}");
}

/// A JSON string, characters beyond ASCII as they are.
fn push_json(line: &mut String, text: &str) {
    line.push('"');
    for c in text.chars() {
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            c => line.push(c),
        }
    }
    line.push('"');
}

/// A reply in the making.
#[derive(Default)]
struct ReplyScript {
    events: Vec<ScriptEvent>,
    answer: ExpectedReply,
    dice: BenchRng,
}

impl ReplyScript {
    fn begin(&mut self) {
        if self.events.is_empty() {
            self.events.push(ScriptEvent::Begin);
        }
    }

    fn text(&mut self, text: &str) {
        let from = self.answer.text.len();
        self.answer.text.push_str(text);
        self.events.push(ScriptEvent::Text { from, to: from + text.len() });
    }

    /// Writes a call whose arguments come in pieces of about this many bytes.
    fn call(&mut self, name: &str, arguments: String, piece: impl Fn(&mut BenchRng) -> usize) {
        self.begin();
        let call = self.answer.calls.len();
        self.events.push(ScriptEvent::Open { call });
        let mut from = 0;
        while from < arguments.len() {
            let mut to = (from + piece(&mut self.dice)).min(arguments.len());
            while !arguments.is_char_boundary(to) {
                to += 1;
            }
            self.events.push(ScriptEvent::Arguments { call, from, to });
            from = to;
        }
        self.answer.calls.push((name.to_owned(), arguments));
    }

    /// Short words, as most tokens are.
    fn words(&mut self, count: usize) {
        self.begin();
        for _ in 0..count {
            let word: String = std::iter::once(' ').chain((0..3).map(|_| self.dice.letter())).collect();
            self.text(&word);
        }
    }

    fn many_calls(&mut self) {
        const NAMES: [&str; 5] = ["search_web", "read_file", "list_files", "get_weather", "run_query"];
        for number in 0..CALLS {
            let mut arguments = String::from(r#"{"question":""#);
            while arguments.len() < FRAGMENTS * 6 - 32 {
                (0..5).for_each(|_| arguments.push(self.dice.letter()));
                arguments.push(' ');
            }
            let _ = write!(arguments, r#"","limit":{},"tags":["x"]}}"#, 10 + self.dice.below(90));
            self.call(NAMES[number % NAMES.len()], arguments, |_| 6);
        }
    }

    /// A file being written: words, line breaks and quotes.
    fn long_call(&mut self, bytes: usize) {
        let mut arguments = String::with_capacity(bytes + 16);
        arguments.push_str(r#"{"path":"src/lib.rs","content":""#);
        while arguments.len() < bytes - 2 {
            match self.dice.below(12) {
                0 => arguments.push_str("\\n    "),
                1 => arguments.push_str("\\\"ok\\\""),
                _ => {
                    (0..5).for_each(|_| arguments.push(self.dice.letter()));
                    arguments.push(' ');
                }
            }
        }
        arguments.push_str("\"}");
        self.call("write_file", arguments, |_| 4);
    }

    /// Text in several scripts with escapes and comments between, then calls in uneven pieces.
    fn mixed(&mut self) {
        const TOKENS: [&str; 18] = [
            " a",
            " stream",
            "ed",
            " 天气",
            "怎么样",
            "。",
            " 🦀",
            "\n\n",
            "\"",
            " naïve",
            " <i>",
            "\\",
            "\t",
            " answer",
            " to",
            " 4",
            "2",
            "！",
        ];
        const PARTS: [&str; 7] = ["x y", "ü", "\\n", "\\\"q", "北京", "1.5", " \\u00fc"];
        const NAMES: [&str; 3] = ["get_weather", "search_web", "read_file"];
        self.begin();
        for number in 0..3_000 {
            if number % 400 == 399 {
                self.events.push(ScriptEvent::Comment);
            }
            let token = TOKENS[self.dice.below(TOKENS.len())];
            self.text(token);
        }
        for number in 0..12 {
            let mut arguments = String::from(r#"{"city":"北京","note":""#);
            for _ in 0..60 {
                arguments.push_str(PARTS[self.dice.below(PARTS.len())]);
            }
            arguments.push_str(r#"","range":[0,9,{"unit":null}]}"#);
            self.call(NAMES[number % NAMES.len()], arguments, |dice| 1 + dice.below(9));
        }
    }
}

/// Chance that is the same everywhere (splitmix64).
#[derive(Default)]
struct BenchRng(u64);

impl BenchRng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) % n as u64) as usize
    }

    fn letter(&mut self) -> char {
        char::from(b'a' + self.below(26) as u8)
    }
}
