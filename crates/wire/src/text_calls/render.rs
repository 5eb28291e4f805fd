//! A request as a model without tools understands it: calls and outcomes are text, and it offers no tools.
//!
//! Text of people, files and tools is escaped, so it can neither look like a call to the model nor end a
//! frame (`TextProtocol::escape`). Nothing separates a call from its outcome.

use super::{ResultRole, TextCalls};
use crate::dialect::tool_choice_prompt;
use crate::vocabulary::{
    Call, CallArguments, CallOutcome, ClosedStep, Media, Message, ModelRequest, NotStarted, StartState,
    ToolChoice, ToolOutput, UserPart,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Note to the model in the last step, since no field can switch off tools that are only text.
const NO_MORE_CALLS: &str = "[Note from the system: tools are disabled for this reply. Do not request any; \
 answer with what you have.]";
/// Introduction of pictures, which cannot be inside the frame of a result.
const PICTURES: &str = "Pictures returned by the tools above, in their order:";

/// Writes a request for text mode. The result holds no tools and, with [`ResultRole::User`], no calls: it can be encoded
/// in every dialect. The instructions are left as they are; they tell the model how to call.
///
/// Messages of the user that follow each other become one, because the templates of many models without tools demand
/// that roles alternate.
pub fn render(request: &ModelRequest, calls: &TextCalls) -> ModelRequest {
    let mut writer = HistoryWriter { calls, messages: Vec::with_capacity(request.messages.len() + 1) };
    for message in &request.messages {
        match message {
            Message::User(parts) => writer.user(parts.iter().map(|part| calls.escaped_part(part)).collect()),
            Message::Step(step) => writer.step(step),
        }
    }
    if request.tool_choice == ToolChoice::None {
        writer.user(vec![text_part(NO_MORE_CALLS)]);
    }
    if let Some(prompt) = tool_choice_prompt::prompt_text(&request.tool_choice) {
        writer.user(vec![text_part(&prompt)]);
    }
    ModelRequest {
        model: request.model.clone(),
        instructions: request.instructions.clone(),
        messages: writer.messages,
        tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        settings: request.settings.clone(),
        cache_key: request.cache_key.clone(),
    }
}

struct HistoryWriter<'c> {
    calls: &'c TextCalls,
    messages: Vec<Message>,
}

impl HistoryWriter<'_> {
    fn user(&mut self, parts: Vec<UserPart>) {
        let Some(Message::User(known)) = self.messages.last_mut() else {
            return self.messages.push(Message::User(parts));
        };
        let mut parts = parts.into_iter().peekable();
        if let Some(UserPart::Text { text: last }) = known.last_mut()
            && let Some(UserPart::Text { text }) = parts.next_if(|part| matches!(part, UserPart::Text { .. }))
        {
            last.push_str("\n\n");
            last.push_str(&text);
        }
        known.extend(parts);
    }

    fn step(&mut self, step: &ClosedStep) {
        if step.text.is_empty() && step.calls.is_empty() {
            return;
        }
        // The provider state has calls in the provider's form, and unescaped text.
        let text = self.calls.escaped(&step.text);
        let step = ClosedStep { provider_state: None, text, ..step.clone() };
        match self.calls.results {
            _ if step.calls.is_empty() => self.messages.push(Message::Step(step)),
            ResultRole::User => self.push_text_step(step),
            ResultRole::Tool => {
                let escaped =
                    |(call, outcome)| (self.calls.escaped_call(call), self.calls.escaped_outcome(outcome));
                let calls = step.calls.into_iter().map(escaped).collect();
                self.messages.push(Message::Step(ClosedStep { calls, ..step }));
            }
        }
    }

    /// Writes the step as the model would have written it (a refused block is quoted as data inside a valid
    /// one, so that the history sets no bad example), and the outcomes as the user's answer to it.
    fn push_text_step(&mut self, mut step: ClosedStep) {
        let protocol = self.calls.protocol;
        let pairs = std::mem::take(&mut step.calls);
        let mut blocks: Vec<String> = Vec::with_capacity(pairs.len() + 1);
        if !step.text.trim().is_empty() {
            blocks.push(std::mem::take(&mut step.text));
        }
        blocks.extend(pairs.iter().map(|(call, _)| protocol.format_call(call, &self.calls.tools)));
        step.text = blocks.join("\n\n");
        self.messages.push(Message::Step(step));

        let mut results = protocol.format_results(&pairs, &self.calls.tools);
        let media =
            || pairs.iter().filter_map(|(_, outcome)| outcome.output()).flat_map(|output| &output.media);
        for sound in media().filter(|media| !is_picture(media)) {
            results.push('\n');
            results.push_str(&sound.note());
        }
        let pictures: Vec<UserPart> =
            media().filter(|media| is_picture(media)).cloned().map(UserPart::Image).collect();
        if !pictures.is_empty() {
            results.push_str("\n\n");
            results.push_str(PICTURES);
        }
        let parts = std::iter::once(UserPart::Text { text: results }).chain(pictures).collect();
        // Always a separate message: the message before it is the step.
        self.messages.push(Message::User(parts));
    }
}

impl TextCalls {
    fn escaped_part(&self, part: &UserPart) -> UserPart {
        match part {
            UserPart::Text { text } => UserPart::Text { text: self.escaped(text) },
            UserPart::Image(media) => UserPart::Image(media.clone()),
            UserPart::File { name, media } => {
                UserPart::File { name: self.escaped(name), media: self.escaped_file(media) }
            }
        }
    }

    /// A file of text; anything else holds no text that a model would read as such.
    fn escaped_file(&self, media: &Media) -> Media {
        let is_text = media.media_type.starts_with("text/") || media.media_type.ends_with("json");
        let text = BASE64.decode(media.data()).ok().filter(|_| is_text);
        match text.and_then(|bytes| String::from_utf8(bytes).ok()) {
            Some(text) => Media::new(media.media_type.clone(), BASE64.encode(self.escaped(&text))),
            None => media.clone(),
        }
    }

    /// The call, escaped. Changes that a person made are reported with the outcome.
    fn escaped_call(&self, call: Call) -> Call {
        let escaped = |with: CallArguments| CallArguments { text: self.escaped(&with.text), ..with };
        Call { ran_with: call.ran_with.map(escaped), ..call }
    }

    fn escaped_outcome(&self, outcome: CallOutcome) -> CallOutcome {
        let output = |output: ToolOutput| ToolOutput { text: self.escaped(&output.text), ..output };
        match outcome {
            CallOutcome::Done(done) => CallOutcome::Done(output(done)),
            CallOutcome::Failed { message, partial } => {
                CallOutcome::Failed { message: self.escaped(&message), partial: partial.map(output) }
            }
            CallOutcome::Denied { reason } => {
                CallOutcome::Denied { reason: reason.map(|reason| self.escaped(&reason)) }
            }
            CallOutcome::Cancelled(StartState::Yes { ran_ms, partial }) => {
                CallOutcome::Cancelled(StartState::Yes { ran_ms, partial: partial.map(output) })
            }
            CallOutcome::TimedOut { limit_ms, partial } => {
                CallOutcome::TimedOut { limit_ms, partial: partial.map(output) }
            }
            CallOutcome::Unknown { message, partial } => CallOutcome::Unknown {
                message: message.map(|message| self.escaped(&message)),
                partial: partial.map(output),
            },
            CallOutcome::NotStarted(NotStarted::InvalidArguments { message }) => {
                CallOutcome::NotStarted(NotStarted::InvalidArguments { message: self.escaped(&message) })
            }
            CallOutcome::NotStarted(NotStarted::Refused { message }) => {
                CallOutcome::NotStarted(NotStarted::Refused { message: self.escaped(&message) })
            }
            // The texts of these outcomes are our own.
            CallOutcome::Cancelled(StartState::No) | CallOutcome::NotStarted(_) => outcome,
        }
    }

    fn escaped(&self, text: &str) -> String {
        self.protocol.escape(text).into_owned()
    }
}

fn is_picture(media: &Media) -> bool {
    media.media_type.starts_with("image/")
}

fn text_part(text: &str) -> UserPart {
    UserPart::Text { text: text.to_owned() }
}
