//! Messages of OpenAI's forms as history: calls and their outcomes as pairs, which is the only form that a history has here.

use super::field::BodyField;
use super::members::MemberReader;
use crate::json_scanner::JsonScanner;
use crate::projections::chat_completions::InvalidRequestError;
use crate::projections::chat_completions::tool_display::strip_start_cards;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use throughline_wire::json::ARGUMENTS_DEPTH_MAX;
use throughline_wire::{
    Call, CallArguments, CallKind, CallOutcome, ClientReasoning, ClosedStep, Media, Message, RawArguments,
    ReasoningTarget, ToolOutput, UserPart,
};
use url::{Host, Url};

/// Messages of the chat, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ChatTranscript {
    /// All messages before the current input.
    pub history: Vec<Message>,
    /// The user's last message; empty if the history ends with something else.
    pub input: Vec<UserPart>,
    /// Results of calls right before `input`, by id of the call: a turn may be waiting for them. `history` has them too.
    pub tool_results: Vec<(String, ToolOutput)>,
}

/// A file that the user has uploaded before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UploadedFile {
    pub name: String,
    /// Content of the file.
    pub media: Media,
}

/// The ids of all files that the messages refer to.
pub(crate) fn referenced_files(body: &Value) -> Vec<String> {
    let mut file_ids = Vec::new();
    let messages = body["messages"].as_array().into_iter().flatten();
    for part in messages.flat_map(|message| message["content"].as_array().into_iter().flatten()) {
        let ids = [
            &part["file"]["file_id"],
            &part["file"]["file_data"],
            &part["image_url"]["file_id"],
            &part["image_url"]["url"],
            &part["image_url"],
            &part["input_audio"]["data"],
        ];
        let url = ids.into_iter().find_map(Value::as_str);
        file_ids.extend(url.and_then(file_id).map(str::to_owned));
    }
    file_ids.sort();
    file_ids.dedup();
    file_ids
}

/// `file_…`, or the address of one of our files.
fn file_id(text: &str) -> Option<&str> {
    if text.starts_with("file_") || text.starts_with("file-") {
        return Some(text);
    }
    let path = text.split_once("/v1/files/").map(|(_, rest)| rest)?;
    path.split(['/', '?']).next().filter(|id| !id.is_empty())
}

/// Modalities of the model in addition to text and pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InputModalities {
    /// The model accepts sound.
    pub audio: bool,
    /// The upstream fetches pictures by their address.
    pub image_urls: bool,
}

type FileLookup<'a> = &'a dyn Fn(&str) -> Option<UploadedFile>;

/// The messages of a request.
pub(super) struct ReadMessages {
    pub instructions: Option<String>,
    pub transcript: ChatTranscript,
    /// Members and parts of messages that the model is not given, by name.
    pub omitted: BTreeSet<String>,
}

/// Instructions and talk.
pub(super) fn read_messages(
    messages: &BodyField<'_>,
    file: FileLookup<'_>,
    modalities: InputModalities,
    target: Option<&ReasoningTarget>,
) -> Result<ReadMessages, InvalidRequestError> {
    let mut reader = MessageReader {
        file,
        modalities,
        members: MemberReader::new(target),
        instructions: Vec::new(),
        history: Vec::new(),
        open: None,
    };
    let items = messages.items()?;
    if items.is_empty() {
        return Err(messages.invalid("is empty"));
    }
    for message in &items {
        reader.push(message)?;
    }
    reader.close()?;
    let mut history = reader.history;
    // Summarizers send nothing else, and some APIs answer nothing but a message of the user.
    if history.is_empty()
        && let Some(text) = reader.instructions.pop()
    {
        history.push(Message::User(vec![UserPart::Text { text }]));
    }
    let instructions = (!reader.instructions.is_empty()).then(|| reader.instructions.join("\n\n"));
    let input = match history.pop() {
        Some(Message::User(parts)) => parts,
        Some(other) => {
            history.push(other);
            Vec::new()
        }
        None => {
            return Err(messages
                .invalid("holds nothing to be answered")
                .remedy("add a message of role `user`"));
        }
    };
    let answers = match history.last() {
        Some(Message::Step(step)) => step.calls.iter().map(|(call, outcome)| result(call, outcome)).collect(),
        _ => Vec::new(),
    };
    let transcript = ChatTranscript { history, input, tool_results: answers };
    Ok(ReadMessages { instructions, transcript, omitted: reader.members.into_omitted() })
}

fn result(call: &Call, outcome: &CallOutcome) -> (String, ToolOutput) {
    let output = match outcome {
        CallOutcome::Done(output) => output.clone(),
        _ => ToolOutput::default(),
    };
    (call.id.as_str().to_owned(), output)
}

struct MessageReader<'a> {
    file: FileLookup<'a>,
    modalities: InputModalities,
    members: MemberReader<'a>,
    instructions: Vec<String>,
    history: Vec<Message>,
    /// The assistant's message whose results are being read.
    open: Option<PendingStep>,
}

struct PendingStep {
    step: ClosedStep,
    calls: Vec<Call>,
    ids: HashSet<String>,
    outcomes: BTreeMap<String, CallOutcome>,
    path: String,
}

impl MessageReader<'_> {
    fn push(&mut self, message: &BodyField<'_>) -> Result<(), InvalidRequestError> {
        let role = message.required("role")?;
        self.members.omit_unread(message.value());
        match role.text()? {
            "tool" => return self.tool(message),
            "assistant" => {
                self.close()?;
                self.assistant(message)?;
            }
            "user" => {
                self.close()?;
                let parts = self.user(&message.required("content")?)?;
                if !parts.is_empty() {
                    self.history.push(Message::User(parts));
                }
            }
            // At any position: a turn has one place for instructions.
            "system" | "developer" => {
                let text = content_text(&message.required("content")?)?;
                if !text.is_empty() {
                    self.instructions.push(text);
                }
            }
            "function" => {
                return Err(role
                    .unsupported("is the role of an older API")
                    .remedy("send results with role `tool`"));
            }
            _ => return Err(role.invalid("must be `system`, `developer`, `user`, `assistant` or `tool`")),
        }
        Ok(())
    }

    fn user(&self, content: &BodyField<'_>) -> Result<Vec<UserPart>, InvalidRequestError> {
        if let Some(text) = content.value().as_str() {
            return Ok(if text.is_empty() {
                Vec::new()
            } else {
                vec![UserPart::Text { text: text.to_owned() }]
            });
        }
        content.items()?.iter().map(|part| self.part(part)).collect()
    }

    fn part(&self, part: &BodyField<'_>) -> Result<UserPart, InvalidRequestError> {
        let kind = part.required("type")?;
        match kind.text()? {
            "text" => Ok(UserPart::Text { text: part.required("text")?.text()?.to_owned() }),
            "image_url" => self.image(&part.required("image_url")?),
            "file" => self.file(&part.required("file")?),
            "input_audio" => self.sound(&part.required("input_audio")?),
            // Unlike a part of the assistant's it is not left out: that would be another question.
            _ => Err(kind
                .unsupported("is not a supported kind of content: `text`, `image_url`, `input_audio`, `file`")
                .remedy("send the content as one of these, or describe it as text")),
        }
    }

    fn image(&self, image: &BodyField<'_>) -> Result<UserPart, InvalidRequestError> {
        let url = match image.get("file_id") {
            Some(id) => id,
            None if image.value().is_string() => image.clone(),
            None => image.required("url")?,
        };
        let text = url.text()?;
        if let Some(data) = text.strip_prefix("data:") {
            return Ok(UserPart::Image(read_data_url(&url, data)?));
        }
        if let Some(id) = file_id(text) {
            return Ok(UserPart::Image(self.uploaded(&url, id)?.media));
        }
        // Never fetched here: the server would request any address that a user or a page names. The provider
        // fetches it.
        if self.modalities.image_urls && is_public(text) {
            return Ok(UserPart::Image(Media::from_url(image_type(text).to_owned(), text.to_owned())));
        }
        Err(url
            .unsupported(
                "is a URL, which this server does not fetch and this model's upstream does not support",
            )
            .code("remote_image")
            .remedy(
                "send the picture itself as a `data:` URL, or upload it with POST /v1/files and send its id",
            ))
    }

    fn sound(&self, sound: &BodyField<'_>) -> Result<UserPart, InvalidRequestError> {
        let format = sound.required("format")?;
        let media_type = match format.text()? {
            "wav" => "audio/wav",
            "mp3" => "audio/mpeg",
            _ => return Err(format.unsupported("is neither `wav` nor `mp3`")),
        };
        if !self.modalities.audio {
            return Err(sound.unsupported("is audio, which this model does not support").remedy(
                "send a transcript, or set `profile = { audio = true }` in the upstream if its models support audio",
            ));
        }
        let data = sound.required("data")?;
        let text = data.text()?;
        if let Some(id) = file_id(text) {
            let media = Media { media_type: media_type.to_owned(), ..self.uploaded(&data, id)?.media };
            return Ok(UserPart::File { name: format!("sound.{}", format.text()?), media });
        }
        if STANDARD.decode(text).is_err() {
            return Err(data.invalid("is no base64"));
        }
        let name = format!("sound.{}", format.text()?);
        Ok(UserPart::File { name, media: Media::new(media_type.to_owned(), text.to_owned()) })
    }

    fn file(&self, file: &BodyField<'_>) -> Result<UserPart, InvalidRequestError> {
        if let Some(id) = file.get("file_id") {
            let UploadedFile { name, media } = self.uploaded(&id, id.text()?)?;
            return Ok(if media.media_type.starts_with("image/") {
                UserPart::Image(media)
            } else {
                UserPart::File { name, media }
            });
        }
        let data = file.required("file_data")?;
        let name = match file.get("filename") {
            Some(name) => name.text()?.to_owned(),
            None => "file".to_owned(),
        };
        let text = data.text()?;
        if let Some(id) = file_id(text) {
            return Ok(UserPart::File { name, media: self.uploaded(&data, id)?.media });
        }
        let Some(rest) = text.strip_prefix("data:") else {
            return Err(data.invalid("is no `data:` URL"));
        };
        Ok(UserPart::File { name, media: read_data_url(&data, rest)? })
    }

    fn uploaded(&self, field: &BodyField<'_>, id: &str) -> Result<UploadedFile, InvalidRequestError> {
        (self.file)(id).ok_or_else(|| {
            field
                .invalid(format!("refers to an unknown file: `{id}`"))
                .remedy("upload it with POST /v1/files")
        })
    }

    fn assistant(&mut self, message: &BodyField<'_>) -> Result<(), InvalidRequestError> {
        if message.get("function_call").is_some() {
            return Err(message
                .unsupported("has a `function_call`, of an older API")
                .remedy("send `tool_calls`"));
        }
        let mut reasoning = ClientReasoning::default();
        let (text, thought) = match message.get("content") {
            Some(content) => self.assistant_content(&content, &mut reasoning)?,
            None => Default::default(),
        };
        let text = strip_images(&strip_start_cards(&text));
        let refusal = match message.get("refusal") {
            Some(refusal) => refusal.text()?,
            None => "",
        };
        if !text.is_empty() && !refusal.is_empty() {
            self.members.omit("messages", "refusal");
        }
        let text = if text.is_empty() { refusal.to_owned() } else { text };
        let calls = match message.get("tool_calls") {
            Some(calls) => calls.items()?,
            None => Vec::new(),
        };
        for call in &calls {
            self.members.read_call(call.value(), &mut reasoning);
        }
        let calls = calls.iter().map(read_call).collect::<Result<Vec<_>, _>>()?;
        let thinking = self.members.read_reasoning(message.value(), thought, &mut reasoning);
        let mut step = ClosedStep { thinking, text, ..ClosedStep::default() };
        if let Some(target) = self.members.target() {
            step.provider_state = target.provider_state(reasoning, &step.text);
            target.model().clone_into(&mut step.model);
        }
        let mut ids = HashSet::new();
        if let Some(twice) = calls.iter().find(|call| !ids.insert(call.id.as_str().to_owned())) {
            return Err(message.invalid(format!("has two calls with the id `{}`", twice.id)));
        }
        if !calls.is_empty() {
            let path = message.path().to_owned();
            self.open = Some(PendingStep { step, calls, ids, outcomes: BTreeMap::new(), path });
        } else if !step.text.is_empty() {
            self.history.push(Message::Step(step));
        }
        Ok(())
    }

    /// Text and thinking of an assistant's content. Other servers put the thinking among the parts, and clients send back what
    /// they got.
    fn assistant_content(
        &mut self,
        content: &BodyField<'_>,
        reasoning: &mut ClientReasoning,
    ) -> Result<(String, String), InvalidRequestError> {
        if let Some(text) = content.value().as_str() {
            return Ok((text.to_owned(), String::new()));
        }
        let (mut texts, mut thoughts) = (Vec::new(), Vec::new());
        let mut is_in_front = true;
        for part in content.items()? {
            let kind = part.required("type")?;
            is_in_front &=
                texts.is_empty() || !matches!(kind.text()?, "thinking" | "reasoning" | "redacted_thinking");
            match (kind.text()?, part.value()["text"].as_str()) {
                (kind @ ("text" | "refusal"), _) => texts.push(part.required(kind)?.text()?),
                (kind @ ("thinking" | "reasoning"), _) => {
                    thoughts.push(self.members.read_thought(part.value(), kind, reasoning));
                }
                ("tool_use" | "tool-call" | "tool_call" | "function_call", _) => {
                    return Err(kind.unsupported("is a call among the parts").remedy("send `tool_calls`"));
                }
                // `output_text` of another API, and what is to come.
                (_, Some(text)) => texts.push(text),
                (kind, None) => self.members.read_other(part.value(), kind, reasoning),
            }
        }
        // Between texts each block has a position, which a history does not record: "blocks in the latest
        // assistant message cannot be modified" (Anthropic, HTTP 400; BerriAI/litellm#23137).
        self.members.check_blocks(is_in_front, reasoning);
        Ok((texts.join("\n"), thoughts.join("\n")))
    }

    fn tool(&mut self, message: &BodyField<'_>) -> Result<(), InvalidRequestError> {
        let id_field = message.required("tool_call_id")?;
        let id = id_field.text()?;
        let content = message.required("content")?;
        let output = self.result(&content);
        let Some(open) = self.open.as_mut().filter(|open| open.ids.contains(id)) else {
            return Err(message
                .invalid(format!(
                    "is the result of a call `{id}` that the assistant's message right before it does not have"
                ))
                .code("orphan_result")
                .remedy("send the assistant's message with its `tool_calls` in front of their results"));
        };
        if open.outcomes.insert(id.to_owned(), CallOutcome::Done(output?)).is_some() {
            return Err(id_field
                .invalid(format!("is the second result of call `{id}`"))
                .code("second_result"));
        }
        Ok(())
    }

    /// A text, or parts with pictures among them.
    fn result(&self, content: &BodyField<'_>) -> Result<ToolOutput, InvalidRequestError> {
        if content.value().is_string() {
            return Ok(ToolOutput::text(content_text(content)?));
        }
        let (mut texts, mut media) = (Vec::new(), Vec::new());
        for part in self.user(content)? {
            match part {
                UserPart::Text { text } => texts.push(text),
                UserPart::Image(picture) => media.push(picture),
                UserPart::File { media: file, .. } => media.push(file),
            }
        }
        Ok(ToolOutput { media, ..ToolOutput::text(texts.join("\n")) })
    }

    /// Closes the open calls: later messages are not their results.
    fn close(&mut self) -> Result<(), InvalidRequestError> {
        let Some(PendingStep { mut step, calls, mut outcomes, path, ids: _ }) = self.open.take() else {
            return Ok(());
        };
        let missing: Vec<_> = calls
            .iter()
            .map(|call| call.id.as_str())
            .filter(|id| !outcomes.contains_key(*id))
            .map(|id| format!("`{id}`"))
            .collect();
        if !missing.is_empty() {
            let message = format!("no result follows for {}", missing.join(", "));
            return Err(InvalidRequestError::invalid(path, message)
                .code("missing_results")
                .remedy("send one message of role `tool` for each call, right after the calls"));
        }
        for call in calls {
            if let Some(outcome) = outcomes.remove(call.id.as_str()) {
                step.calls.push((call, outcome));
            }
        }
        self.history.push(Message::Step(step));
        Ok(())
    }
}

fn read_call(call: &BodyField<'_>) -> Result<Call, InvalidRequestError> {
    let id = call.required("id")?.text()?;
    let kind = match call.get("type") {
        Some(kind) => kind.text()?,
        None => "function",
    };
    let (kind, name, arguments) = match kind {
        "custom" => {
            let custom = call.required("custom")?;
            let text = custom.required("input")?.text()?.to_owned();
            let arguments = CallArguments { value: Value::String(text.clone()), text, repairs: Vec::new() };
            (CallKind::Custom, custom.required("name")?.text()?, Ok(arguments))
        }
        _ => {
            let function = call.required("function")?;
            let text = match function.get("arguments") {
                // As Ollama writes them.
                Some(arguments) if arguments.value().is_object() => arguments.value().to_string(),
                Some(arguments) => arguments.text()?.to_owned(),
                None => String::new(),
            };
            let text = if text.trim().is_empty() { "{}".to_owned() } else { text };
            let nests_too_deep = JsonScanner::default().exceeds(text.as_bytes(), ARGUMENTS_DEPTH_MAX as u32);
            let arguments = match serde_json::from_str(&text) {
                Ok(value) if !nests_too_deep => Ok(CallArguments { text, value, repairs: Vec::new() }),
                _ => Err(RawArguments(text)),
            };
            (CallKind::Function, function.required("name")?.text()?, arguments)
        }
    };
    Ok(Call {
        id: id.into(),
        upstream_id: Some(id.into()),
        name: name.into(),
        kind,
        arguments,
        ran_with: None,
    })
}

/// A text, or the texts of a list of parts.
fn content_text(content: &BodyField<'_>) -> Result<String, InvalidRequestError> {
    if let Some(text) = content.value().as_str() {
        return Ok(text.to_owned());
    }
    let mut texts = Vec::new();
    for part in content.items()? {
        let kind = part.required("type")?;
        texts.push(match kind.text()? {
            "text" => part.required("text")?.text()?,
            _ => return Err(kind.unsupported("is not text, and only the user can send anything else")),
        });
    }
    Ok(texts.join("\n"))
}

/// True for `https://` and a public host name: not a name that may resolve to the local machine or its
/// network.
fn is_public(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let Some(Host::Domain(name)) = url.host() else { return false };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    const INSIDE: [&str; 6] = ["localhost", "local", "internal", "lan", "home", "arpa"];
    let last = name.rsplit('.').next().unwrap_or_default();
    url.scheme() == "https"
        && url.username().is_empty()
        && url.password().is_none()
        && name.contains('.')
        && !INSIDE.contains(&last)
}

/// Media type from the end of the path; only Gemini needs it.
fn image_type(url: &str) -> &'static str {
    let path = url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    match path.rsplit('.').next().unwrap_or_default() {
        "png" => "image/png",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => "image/jpeg",
    }
}

/// Pictures that an answer of ours had in its text do not go to the model as text: megabytes that it cannot read.
fn strip_images(text: &str) -> String {
    const BEGIN: &str = "![image](data:";
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, picture)) = rest.split_once(BEGIN) {
        let Some((_, after)) = picture.split_once(')') else { break };
        out.push_str(before);
        out.push_str("[image]");
        rest = after;
    }
    out.push_str(rest);
    out
}

/// `image/png;base64,…`
fn read_data_url(field: &BodyField<'_>, data: &str) -> Result<Media, InvalidRequestError> {
    let invalid = || field.invalid("is no `data:<media type>;base64,<content>`");
    let (kind, content) = data.split_once(',').ok_or_else(invalid)?;
    let media_type = kind.strip_suffix(";base64").ok_or_else(invalid)?;
    let media_type = media_type.split(';').next().unwrap_or_default();
    if media_type.is_empty() || STANDARD.decode(content).is_err() {
        return Err(invalid());
    }
    Ok(Media::new(media_type.to_owned(), content.to_owned()))
}
