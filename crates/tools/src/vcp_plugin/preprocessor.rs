//! Message preprocessors: programs that read the messages of a request and answer with others.
//!
//! VCP loads them into its own process as Node modules (`protocol: "direct"`). Here each run is a process: a module is
//! loaded by a small runner, another program reads `{"messages": …, "config": …}` on standard input and writes the messages,
//! or `{"status": "success", "result": […]}`.

use super::ANSWER_BYTES_MAX;
use super::plugin::VcpPlugin;
use super::reply;
use crate::context::ToolContext;
use crate::process::{StdoutMode, failure_text, run_program};
use serde_json::{Map, Value, json};
use throughline_wire::{ClosedStep, Media, Message, ModelRequest, UserPart};

/// Loads a module, calls it as VCP does and writes its answer in one marked line. The module's own output
/// goes to standard error.
pub(super) const MODULE_RUNNER: &str = r#"
const { pathToFileURL } = require('node:url');
const write = process.stdout.write.bind(process.stdout);
for (const name of ['log', 'info', 'debug', 'warn', 'trace']) console[name] = console.error;
process.stdout.write = process.stderr.write.bind(process.stderr);
let text = '';
process.stdin.setEncoding('utf8').on('data', piece => { text += piece; }).on('end', async () => {
  try {
    const { messages, config } = JSON.parse(text);
    const loaded = await import(pathToFileURL(process.argv[1]));
    const plugin = loaded.default ?? loaded;
    const nothing = () => {};
    const dependencies = { vcpLogFunctions: { pushVcpLog: nothing, pushVcpInfo: nothing } };
    await plugin.initialize?.(config, dependencies);
    const result = await plugin.processMessages(messages, config);
    write('@messages ' + JSON.stringify(result) + '\n', () => process.exit(0));
  } catch (error) {
    process.stderr.write(String(error?.stack ?? error) + '\n', () => process.exit(1));
  }
});
"#;
/// Beginning of the runner's line.
const MARK: &[u8] = b"@messages ";
/// Member of a message by which it is known again. The plugin need not know it, and copies it with the rest.
const NUMBER: &str = "throughline_number";
/// Number of the instructions.
const INSTRUCTIONS: usize = 0;

/// A message preprocessor, ready to run.
pub(super) struct PreprocessorPlugin {
    pub(super) name: String,
    pub(super) plugin: VcpPlugin,
    /// Values of its settings.
    pub(super) config: Map<String, Value>,
}

impl PreprocessorPlugin {
    /// Changes the messages.
    ///
    /// # Errors
    /// It failed, and nothing was changed.
    pub(super) async fn run(&self, request: &mut ModelRequest) -> Result<(), String> {
        let VcpPlugin { program, secrets, timeout, .. } = &self.plugin;
        let input = json!({"messages": to_json(request), "config": self.config}).to_string();
        let stdout = StdoutMode::Captured { bytes_max: ANSWER_BYTES_MAX };
        let context = ToolContext::detached();
        // Given up at its time limit: the dropped process is killed.
        let run = run_program(program, input.as_bytes(), stdout, secrets, &context);
        let result = tokio::time::timeout(*timeout, run)
            .await
            .map_err(|_| format!("no answer in {} ms", timeout.as_millis()))?
            .map_err(|error| error.to_string())?;
        if result.overflowed {
            return Err(format!("it answered with more than {ANSWER_BYTES_MAX} bytes"));
        }
        let answer = parse_answer(&result.stdout).map_err(|no_answer| {
            let why = failure_text(program, &result).unwrap_or(no_answer);
            self.plugin.explained(why)
        })?;
        apply(request, answer)
    }
}

fn parse_answer(stdout: &[u8]) -> Result<Vec<Value>, String> {
    let marked = stdout.split(|byte| *byte == b'\n').rev().find_map(|line| line.strip_prefix(MARK));
    let answer: Value = serde_json::from_slice(marked.unwrap_or(stdout))
        .map_err(|error| format!("its answer is not JSON: {error}"))?;
    match answer {
        Value::Array(messages) => Ok(messages),
        _ => match reply::parse_reply(stdout)? {
            Ok(Value::Array(messages)) => Ok(messages),
            Ok(_) => Err("its answer is no list of messages".to_owned()),
            Err(error) => Err(error),
        },
    }
}

/// The messages as OpenAI has them. Calls and their results stay with their step and are not shown.
fn to_json(request: &ModelRequest) -> Vec<Value> {
    let instructions = request
        .instructions
        .iter()
        .map(|text| json!({"role": "system", "content": text, NUMBER: INSTRUCTIONS}));
    let messages = request.messages.iter().enumerate().map(|(at, message)| {
        let (role, content) = match message {
            Message::User(parts) => ("user", user_content(parts)),
            Message::Step(step) => ("assistant", Value::from(step.text.as_str())),
        };
        json!({"role": role, "content": content, NUMBER: at + 1})
    });
    instructions.chain(messages).collect()
}

fn user_content(parts: &[UserPart]) -> Value {
    if let [UserPart::Text { text }] = parts {
        return Value::from(text.as_str());
    }
    let parts = parts.iter().enumerate().map(|(at, part)| match part {
        UserPart::Text { text } => json!({"type": "text", "text": text}),
        UserPart::Image(media) => {
            let url = format!("data:{};base64,{}", media.media_type, media.data());
            json!({"type": "image_url", "image_url": {"url": url}, NUMBER: at})
        }
        UserPart::File { name, .. } => json!({"type": "file", "file": {"filename": name}, NUMBER: at}),
    });
    parts.collect()
}

/// Replaces the messages of a request. A message without a number is a new one; a missing one is removed.
fn apply(request: &mut ModelRequest, answer: Vec<Value>) -> Result<(), String> {
    let mut instructions: Option<String> = None;
    let mut messages = Vec::with_capacity(answer.len());
    for message in &answer {
        let number = message[NUMBER].as_u64().and_then(|number| usize::try_from(number).ok());
        let original = number
            .filter(|number| *number > INSTRUCTIONS)
            .and_then(|number| request.messages.get(number - 1));
        match (message["role"].as_str(), original) {
            (Some("system"), _) => {
                let text = text_of(&message["content"]);
                instructions =
                    Some(instructions.map_or(text.clone(), |before| format!("{before}\n\n{text}")));
            }
            (Some("assistant"), Some(Message::Step(step))) => {
                let text = text_of(&message["content"]);
                // What an upstream wants back verbatim has the old text in it.
                let provider_state = step.provider_state.clone().filter(|_| text == step.text);
                messages.push(Message::Step(ClosedStep { text, provider_state, ..step.clone() }));
            }
            (Some("assistant"), _) => {
                let text = text_of(&message["content"]);
                messages.push(Message::Step(ClosedStep { text, ..ClosedStep::default() }));
            }
            (Some("user"), original) => {
                let parts = match original {
                    Some(Message::User(parts)) => parts.as_slice(),
                    _ => &[],
                };
                messages.push(Message::User(user_parts(&message["content"], parts)));
            }
            (role, _) => return Err(format!("its answer has a message of the role {role:?}")),
        }
    }
    if !messages.iter().any(|message| matches!(message, Message::User(_))) {
        return Err("its answer has no message of the user".to_owned());
    }
    request.instructions = instructions.filter(|text| !text.is_empty());
    request.messages = messages;
    Ok(())
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn user_parts(content: &Value, originals: &[UserPart]) -> Vec<UserPart> {
    let Value::Array(parts) = content else { return vec![UserPart::Text { text: text_of(content) }] };
    let original = |part: &Value| {
        let at = part[NUMBER].as_u64().and_then(|at| usize::try_from(at).ok())?;
        originals.get(at).filter(|original| !matches!(original, UserPart::Text { .. })).cloned()
    };
    let made = |part: &Value| match part["type"].as_str() {
        Some("text") => Some(UserPart::Text { text: part["text"].as_str()?.to_owned() }),
        Some("image_url") => {
            let (head, data) = part["image_url"]["url"].as_str()?.strip_prefix("data:")?.split_once(',')?;
            let media_type = head.strip_suffix(";base64")?;
            Some(UserPart::Image(Media::new(media_type.to_owned(), data.to_owned())))
        }
        _ => None,
    };
    parts.iter().filter_map(|part| original(part).or_else(|| made(part))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> UserPart {
        UserPart::Text { text: text.to_owned() }
    }

    fn request() -> ModelRequest {
        let image = UserPart::Image(Media::new("image/png".to_owned(), "iVBORw0KGgo=".to_owned()));
        let step = ClosedStep { text: "said".to_owned(), model: "m".to_owned(), ..ClosedStep::default() };
        ModelRequest {
            instructions: Some("Be brief.".to_owned()),
            messages: vec![
                Message::User(vec![text("one")]),
                Message::Step(step),
                Message::User(vec![text("see"), image]),
            ],
            ..ModelRequest::default()
        }
    }

    #[test]
    fn unchanged_messages_leave_the_request_unchanged() {
        let mut same = request();
        apply(&mut same, to_json(&request())).unwrap();
        assert_eq!(same, request());
    }

    #[test]
    fn preprocessor_changes_adds_and_removes_messages() {
        let mut shown = to_json(&request());
        assert_eq!(shown[1]["content"], "one");
        assert_eq!(shown[3]["content"][1]["image_url"]["url"], "data:image/png;base64,iVBORw0KGgo=");
        shown[0]["content"] = json!("Be long.");
        shown[2]["content"] = json!([{"type": "text", "text": "said, folded"}]);
        shown[3]["content"] = json!("see [a red dot]");
        shown.insert(1, json!({"role": "system", "content": "It rains."}));
        shown.insert(2, json!({"role": "user", "content": "new"}));
        shown.remove(3);
        let mut changed = request();
        apply(&mut changed, shown).unwrap();
        assert_eq!(changed.instructions.as_deref(), Some("Be long.\n\nIt rains."));
        let Message::Step(step) = &changed.messages[1] else { panic!() };
        assert_eq!((step.text.as_str(), step.model.as_str()), ("said, folded", "m"));
        assert_eq!(
            [&changed.messages[0], &changed.messages[2]],
            [&Message::User(vec![text("new")]), &Message::User(vec![text("see [a red dot]")])]
        );
    }

    #[test]
    fn invalid_answer_leaves_the_request_unchanged() {
        for (answer, expected) in [
            ("nonsense", "its answer is not JSON"),
            ("{\"status\":\"error\",\"error\":\"no key\"}", "no key"),
            ("{\"status\":\"success\",\"result\":1}", "its answer is no list of messages"),
        ] {
            let why = parse_answer(answer.as_bytes()).unwrap_err();
            assert!(why.starts_with(expected), "{why}");
        }
        let mut kept = request();
        for answer in [json!([]), json!([{"role": "tool", "content": "x"}]), json!([1])] {
            assert!(apply(&mut kept, answer.as_array().unwrap().clone()).is_err());
        }
        assert_eq!(kept, request());
        let marked = b"noise\n@messages [{\"role\":\"user\",\"content\":\"a\"}]\n";
        assert_eq!(parse_answer(marked).unwrap().len(), 1);
    }
}
