//! Rules of the encoders, each by a request that needs it. The strict fake takes what is written, and refuses what an encoder
//! without the rule would write. `docs/requests.md` is made of these.

use crate::known_upstreams::{self, KnownUpstream};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::Path;
use throughline_wire::{
    Call, CallArguments, CallKind, CallOutcome, ClosedStep, Dialect, EncodedRequest, Media, Message,
    ModelRequest, ModelSettings, NotStarted, ProviderState, RawArguments, ToolChoice, ToolDefinition,
    ToolOutput, TransferMode, UserPart,
};

/// Files with rules, and their headings.
const SECTIONS: [(&str, &str); 4] = [
    ("schemas.json", "Schemas of tools and replies"),
    ("messages.json", "Order and content of messages"),
    ("calls.json", "Calls and results"),
    ("settings.json", "Settings"),
];

/// Longest line of JSON on the page, if it can be broken.
const LINE_CHARS: usize = 120;

const HEAD: &str = "# Requests

How Throughline writes requests that a provider would otherwise refuse, which would block the rest of the conversation as well. Each
rule is a request in `crates/throughline/tests/requests`. A test sends it to a strict fake of the provider, which takes what is written
and refuses what would be written without the rule, in the provider's words where they are known. This page is
generated from them: `THROUGHLINE_BLESS=1 cargo test -p throughline --test it request_rules`.

Tools and settings that are left out are reported in the problems `tools_left_out` and `settings_left_out`; a picture that cannot be sent
is replaced by a note to the model. Arguments are checked against the tool's own schema, even where only a part of it was sent.
[What a provider is sent](tools.md#what-a-provider-is-sent) has the rules in short.
";

/// A rule, and whom it concerns.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    title: String,
    why: String,
    /// Issue of a product that met the refusal, or a page of the provider.
    source: String,
    request: RuleRequest,
    cases: Vec<RuleCase>,
}

/// A request in no dialect's form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleRequest {
    /// Messages of the request; if empty, the user says "Hi".
    #[serde(default)]
    messages: Vec<RuleMessage>,
    /// Schemas of the arguments; the tools are called `look`, `look_2` and so on.
    #[serde(default)]
    tools: Vec<Value>,
    #[serde(default)]
    settings: Option<ModelSettings>,
    #[serde(default)]
    tool_choice: ToolChoice,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum RuleMessage {
    User {
        user: String,
    },
    Picture {
        picture: String,
    },
    Step {
        model: String,
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        calls: Vec<RuleCall>,
        /// Blocks that Anthropic wants back as they came.
        #[serde(default)]
        blocks: Option<Value>,
    },
}

/// A call of `look` with the result "ok" by default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleCall {
    /// Id of the upstream; ours differs.
    id: String,
    #[serde(default = "look")]
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    /// Arguments that are no JSON.
    #[serde(default)]
    unreadable: Option<String>,
    /// Media type of a picture in the result.
    #[serde(default)]
    picture: Option<String>,
    #[serde(default)]
    outcome: RuleOutcome,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RuleOutcome {
    #[default]
    Done,
    Failed,
    Denied,
    NotStarted,
}

fn look() -> String {
    "look".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleCase {
    /// Names of a dialect or an upstream.
    upstreams: Vec<String>,
    /// Model, if the rule is for some models alone.
    #[serde(default)]
    model: Option<String>,
    /// Pointer to the part of the body that is shown, the same for all of them.
    shown: String,
    /// Values by JSON pointer that an encoder without the rule would write; `null` removes a value,
    /// `"(tool)"` is the first tool's schema.
    undo: Map<String, Value>,
    /// Text of the refusal, which names the mistake.
    refusal: String,
}

impl Rule {
    fn all() -> Vec<(&'static str, Rule)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/requests");
        let rules = |(file, section): (&str, &'static str)| {
            let rules = std::fs::read_to_string(folder.join(file)).expect("a file of rules");
            let rules: Vec<Rule> =
                serde_json::from_str(&rules).unwrap_or_else(|error| panic!("{file}: {error}"));
            rules.into_iter().map(move |rule| (section, rule))
        };
        SECTIONS.into_iter().flat_map(rules).collect()
    }
}

impl RuleRequest {
    fn to_model_request(&self) -> ModelRequest {
        let messages = self.messages.iter().enumerate().map(|(at, message)| message.to_message(at));
        let mut messages: Vec<Message> = messages.collect();
        if messages.is_empty() {
            messages.push(Message::User(vec![UserPart::Text { text: "Hi".to_owned() }]));
        }
        let tools = self.tools.iter().enumerate().map(|(at, schema)| {
            let name = if at == 0 { look() } else { format!("look_{}", at + 1) };
            ToolDefinition::new(name, "Looks.", schema.clone())
        });
        let settings = self.settings.clone().unwrap_or_default();
        let tool_choice = self.tool_choice.clone();
        ModelRequest { messages, tools: tools.collect(), settings, tool_choice, ..ModelRequest::default() }
    }
}

impl RuleMessage {
    fn to_message(&self, at: usize) -> Message {
        match self {
            Self::User { user } => Message::User(vec![UserPart::Text { text: user.clone() }]),
            Self::Picture { picture } => Message::User(vec![UserPart::Image(media(picture))]),
            Self::Step { model, thinking, calls, blocks } => Message::Step(ClosedStep {
                text: model.clone(),
                thinking: thinking.clone(),
                calls: calls.iter().enumerate().map(|(nth, call)| call.to_pair(at, nth)).collect(),
                model: "anthropic-model".to_owned(),
                provider_state: blocks.as_ref().map(|blocks| ProviderState {
                    dialect: Dialect::Anthropic,
                    value: json!({"role": "assistant", "content": blocks}),
                }),
            }),
        }
    }
}

impl RuleCall {
    fn to_pair(&self, message: usize, nth: usize) -> (Call, CallOutcome) {
        let arguments = match &self.unreadable {
            Some(raw) => Err(RawArguments(raw.clone())),
            None => Ok(CallArguments::from_value(self.arguments.clone().into())),
        };
        let call = Call {
            id: format!("turn_1.{message}.{nth}").as_str().into(),
            upstream_id: Some(self.id.as_str().into()),
            name: self.name.as_str().into(),
            kind: CallKind::Function,
            arguments,
            ran_with: None,
        };
        let media = self.picture.iter().map(|kind| media(kind)).collect();
        let output = ToolOutput { media, ..ToolOutput::text("ok") };
        let outcome = match self.outcome {
            RuleOutcome::Done => CallOutcome::Done(output),
            RuleOutcome::Failed => {
                CallOutcome::Failed { message: "It broke.".to_owned(), partial: Some(output) }
            }
            RuleOutcome::Denied => CallOutcome::Denied { reason: None },
            RuleOutcome::NotStarted => CallOutcome::NotStarted(NotStarted::Interrupted),
        };
        (call, outcome)
    }
}

/// The smallest file of this type, and of this width if there is one: `image/png 9000`.
fn media(kind: &str) -> Media {
    let (media_type, data) = match kind {
        "image/png" => (kind, "iVBORw0KGgo="),
        "image/png 3000" => ("image/png", "iVBORw0KGgoAAAANSUhEUgAAC7gAAAAK"),
        "image/png 9000" => ("image/png", "iVBORw0KGgoAAAANSUhEUgAAIygAAAAK"),
        "image/svg+xml" => (kind, "PHN2Zy8+"),
        other => panic!("no file of type {other} here"),
    };
    Media::new(media_type.to_owned(), data.to_owned())
}

impl RuleCase {
    /// All upstreams of these names: some dialects have the name of a provider.
    fn upstreams(&self) -> Vec<KnownUpstream> {
        let is_meant = |upstream: &KnownUpstream| self.upstreams.contains(&upstream.name);
        let mut known: Vec<KnownUpstream> = known_upstreams::all().into_iter().filter(is_meant).collect();
        if let Some(model) = &self.model {
            known.iter_mut().for_each(|upstream| upstream.model = model.clone());
        }
        for name in &self.upstreams {
            assert!(known.iter().any(|upstream| upstream.name == *name), "no upstream {name}");
        }
        known
    }

    /// The part that is shown.
    #[track_caller]
    fn shown<'e>(&self, encoded: &'e EncodedRequest) -> &'e Value {
        encoded
            .body
            .pointer(&self.shown)
            .unwrap_or_else(|| panic!("{} is not in {}", self.shown, encoded.body))
    }

    /// The request as it would be written without the rule.
    fn without_rule(&self, encoded: &EncodedRequest, request: &ModelRequest) -> EncodedRequest {
        let mut encoded = encoded.clone();
        for (pointer, value) in &self.undo {
            let value = match value.as_str() {
                Some("(tool)") => (*request.tools[0].parameters).clone(),
                _ => value.clone(),
            };
            set(&mut encoded.body, pointer, value);
        }
        encoded
    }
}

/// Sets a value in a body, also after a list's last item; `null` removes it.
#[track_caller]
fn set(body: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let at = body.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer} is not there"));
    match (at, value) {
        (Value::Object(members), Value::Null) => drop(members.shift_remove(key).expect(pointer)),
        (Value::Object(members), value) => drop(members.insert(key.to_owned(), value)),
        (Value::Array(items), Value::Null) => drop(items.remove(key.parse().expect("an index"))),
        (Value::Array(items), value) => match key.parse::<usize>().expect("an index") {
            at if at == items.len() => items.push(value),
            at => items[at] = value,
        },
        _ => panic!("{pointer} leads nowhere"),
    }
}

#[test]
fn each_request_rule_is_accepted_and_required_by_upstreams() {
    let mut failures = Vec::new();
    for (_, rule) in Rule::all() {
        let request = rule.request.to_model_request();
        for case in &rule.cases {
            let mut shown: Option<Value> = None;
            for upstream in case.upstreams() {
                let mut fail = |what: &str, body: &Value| {
                    failures.push(format!("{} at {}: {what}\n{body}", rule.title, upstream.name));
                };
                let encoded = upstream.encode(&request, TransferMode::Stream);
                if let Err(refusal) = upstream.read(&encoded) {
                    fail(&format!("refused: {refusal}"), &encoded.body);
                }
                if *shown.get_or_insert_with(|| case.shown(&encoded).clone()) != *case.shown(&encoded) {
                    fail("another part is shown than for the first of these upstreams", &encoded.body);
                }
                let without = case.without_rule(&encoded, &request);
                match upstream.read(&without) {
                    Err(refusal) if refusal.contains(&case.refusal) => {}
                    Err(refusal) => fail(&format!("refused without the rule: {refusal}"), &without.body),
                    Ok(_) => fail("taken without the rule", &without.body),
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn requests_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/requests.md");
    let page = page();
    if std::env::var_os("THROUGHLINE_BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(
        written == page,
        "docs/requests.md is out of date; write it anew with\n    \
         THROUGHLINE_BLESS=1 cargo test -p throughline --test it request_rules"
    );
}

fn page() -> String {
    let (mut page, mut before) = (HEAD.to_owned(), "");
    for (section, rule) in Rule::all() {
        if section != before {
            let _ = writeln!(page, "\n## {section}");
            before = section;
        }
        let _ = writeln!(page, "\n### {}\n\n{} Source: {}.", rule.title, rule.why, link(&rule.source));
        let request = rule.request.to_model_request();
        for case in &rule.cases {
            let upstreams = case.upstreams();
            let upstream = upstreams.first().expect("an upstream");
            let encoded = upstream.encode(&request, TransferMode::Stream);
            let refusal = upstream.read(&case.without_rule(&encoded, &request)).expect_err("a refusal");
            let names: Vec<String> = case.upstreams.iter().map(|name| format!("`{name}`")).collect();
            let model = case.model.iter().map(|model| format!(" for `{model}`")).collect::<String>();
            let place = if case.shown.is_empty() { String::new() } else { format!(", at `{}`", case.shown) };
            let _ = write!(
                page,
                "\nSent to {}{model}{place}:\n\n```json\n{}\n```\n\nRefused otherwise: “{}”\n",
                names.join(", "),
                json_lines(case.shown(&encoded), 0),
                refusal.replace('\n', " ")
            );
        }
    }
    page
}

/// JSON in lines of at most the page's width: a value that fits is on one line.
fn json_lines(value: &Value, indent: usize) -> String {
    let line = value.to_string();
    let (brackets, items): (_, Vec<(String, &Value)>) = match value {
        Value::Array(items) => (["[", "]"], items.iter().map(|item| (String::new(), item)).collect()),
        Value::Object(members) => {
            let key = |key: &String| format!("{}: ", Value::from(key.as_str()));
            (["{", "}"], members.iter().map(|(name, member)| (key(name), member)).collect())
        }
        _ => return line,
    };
    if indent + line.len() <= LINE_CHARS || items.is_empty() {
        return line;
    }
    let margin = " ".repeat(indent + 2);
    let item = |(key, item): (String, &Value)| format!("{margin}{key}{}", json_lines(item, indent + 2));
    let lines = items.into_iter().map(item).collect::<Vec<_>>().join(",\n");
    format!("{}\n{lines}\n{}{}", brackets[0], " ".repeat(indent), brackets[1])
}

/// `owner/repository#1` as a link to it.
fn link(source: &str) -> String {
    match source.split_once('#') {
        Some((repository, number)) if !source.starts_with("https://") => {
            format!("[{source}](https://github.com/{repository}/issues/{number})")
        }
        _ => format!("<{source}>"),
    }
}
