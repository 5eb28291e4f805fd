//! Replies without tools: streaming, its framing, usage, reasoning, the system prompt; then formats of replies.

use super::super::failure;
use super::FeatureVerdict::{No, NotTested, Unclear, Yes};
use super::ProbeError;
use super::exchange::{MeasureAnswer, MeasuredReply};
use super::requests::{self, SYSTEM_WORD};
use super::session::MeasureSession;
use crate::upstream::ProbeFailure;
use serde_json::Value;
use throughline_wire::{Dialect, ModelRequest, TransferMode};

/// Use of the system prompt in the first requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SystemRole {
    Sent,
    Refused,
}

impl MeasureSession<'_> {
    /// The first request, in the form in which the upstream takes it.
    pub(super) async fn measure_replies(&mut self) -> Result<(), ProbeError> {
        let mut system = SystemRole::Sent;
        let first = loop {
            let request = requests::counting(system == SystemRole::Sent);
            match self.ask("a streamed reply with a system prompt", request).await? {
                MeasureAnswer::Reply(reply)
                    if !reply.has_content() && self.transfer == TransferMode::Stream =>
                {
                    let detail = "the response is not a readable stream; trying complete replies";
                    self.without_streaming("broken_stream", detail);
                }
                MeasureAnswer::Reply(reply) => break reply,
                MeasureAnswer::Refused(status, message) => {
                    if !self.adapt(&mut system, status, &message) {
                        let why = format!("HTTP {status}: {message}");
                        return Err(ProbeError { failure: ProbeFailure::Refused, why });
                    }
                }
            }
        };
        self.judge_stream(&first);
        self.judge_usage(&first);
        self.judge_reasoning(&first);
        self.judge_system(&first, system);
        Ok(())
    }

    /// Changes the request as a refusal requires. False if it names nothing that can be changed.
    fn adapt(&mut self, system: &mut SystemRole, status: u16, message: &str) -> bool {
        let text = message.to_lowercase();
        if self.profile.include_usage
            && self.dialect == Dialect::OpenaiChat
            && failure::mentions_stream_options(status, &text)
        {
            self.profile.include_usage = false;
            self.quirk("stream_options", No, "stream_options_refused", "`stream_options` is refused");
            self.set("profile.include_usage", false);
        } else if self.profile.cache_control
            && self.dialect == Dialect::Anthropic
            && text.contains("cache_control")
        {
            self.profile.cache_control = false;
            self.quirk("cache_control", No, "cache_control_refused", "`cache_control` is refused");
            self.set("profile.cache_control", false);
        } else if self.profile.encrypted_reasoning
            && self.dialect == Dialect::OpenaiResponses
            && failure::mentions_encrypted_reasoning(status, &text)
        {
            self.profile.encrypted_reasoning = false;
            let detail = "encrypted reasoning is not returned";
            self.quirk("encrypted_reasoning", No, "encrypted_reasoning_refused", detail);
            self.set("profile.encrypted_reasoning", false);
        } else if self.transfer == TransferMode::Stream && text.contains("stream") {
            self.without_streaming("no_streaming", "refused; not streaming");
        } else if *system == SystemRole::Sent && (text.contains("system") || text.contains("developer")) {
            if self.dialect == Dialect::OpenaiChat && !self.profile.developer_role {
                self.profile.developer_role = true;
            } else {
                self.profile.developer_role = false;
                *system = SystemRole::Refused;
            }
        } else {
            return false;
        }
        true
    }

    fn without_streaming(&mut self, quirk: &'static str, detail: &str) {
        self.transfer = TransferMode::Whole;
        self.quirk("streaming", No, quirk, detail);
        self.set("streaming", "off");
    }

    fn judge_stream(&mut self, first: &MeasuredReply) {
        if self.transfer == TransferMode::Whole {
            return;
        }
        if !first.raw.is_stream {
            let detail = "a stream was requested, but a complete body was returned";
            self.without_streaming("whole_body_for_stream", detail);
            return;
        }
        self.row("streaming", Yes, format!("{} events", first.raw.events.len()));
        if let Some(ms) = first.first_token_ms {
            self.row("first_token", Yes, format!("after {ms} ms"));
        }
        if !first.raw.has_end_marker {
            self.quirk("end_marker", No, "no_end_marker", "the stream has no end marker");
        }
        match first.raw.comments {
            0 => {}
            comments => {
                self.quirk("keep_alive", Yes, "comments", format!("{comments} comments between events"))
            }
        }
        if self.dialect == Dialect::OpenaiChat {
            match first.raw.finishes().len() {
                0 => self.quirk("finish_reason", No, "no_finish_reason", "none comes"),
                1 => self.row("finish_reason", Yes, "once, at the end"),
                count => {
                    let detail = format!("{count} times in one reply");
                    self.quirk("finish_reason", Yes, "finish_every_chunk", detail);
                }
            }
        }
    }

    fn judge_usage(&mut self, first: &MeasuredReply) {
        let counted =
            first.reply.usage.filter(|usage| usage.output_tokens.is_some() || usage.input_tokens.is_some());
        match counted {
            Some(usage) => {
                let count = |tokens: Option<u64>| tokens.map_or("?".to_owned(), |tokens| tokens.to_string());
                let detail = format!("{} in, {} out", count(usage.input_tokens), count(usage.output_tokens));
                self.row("usage", Yes, detail);
            }
            None if !self.profile.include_usage => {
                self.row("usage", No, "token counts are only sent on request")
            }
            None => self.quirk("usage", No, "no_stream_usage", "no token counts are sent"),
        }
    }

    fn judge_reasoning(&mut self, first: &MeasuredReply) {
        if first.reply.thinking.is_empty() {
            self.row("reasoning", No, "none came");
            return;
        }
        let has = |name: &str| {
            first.raw.deltas().any(|delta| delta[name].as_str().is_some_and(|text| !text.is_empty()))
        };
        if self.dialect != Dialect::OpenaiChat || !first.raw.is_stream {
            self.row("reasoning", Yes, "in the format of the API");
        } else if has("reasoning_content") {
            self.row("reasoning", Yes, "in `reasoning_content`");
        } else if has("reasoning") {
            self.quirk("reasoning", Yes, "thinks_in_reasoning", "in `reasoning`");
        } else {
            self.quirk("reasoning", Yes, "thinks_in_text", "between tags in the text; separated from it");
        }
    }

    fn judge_system(&mut self, first: &MeasuredReply, system: SystemRole) {
        if system == SystemRole::Refused {
            let detail = "refused: use agents without a prompt";
            self.quirk("system_prompt", No, "system_prompt_refused", detail);
        } else if self.profile.developer_role && !self.is_developer_configured() {
            self.quirk("system_prompt", Yes, "developer_role", "only as `developer`");
            self.set("profile.developer_role", true);
        } else if first.reply.text.to_lowercase().contains(SYSTEM_WORD) {
            self.row("system_prompt", Yes, "followed");
        } else if first.is_cut() {
            self.row("system_prompt", Unclear, "the reply ended too early to tell");
        } else {
            self.quirk("system_prompt", No, "system_prompt_ignored", "accepted, but not followed");
        }
    }

    /// JSON by a schema, pictures, and whole replies.
    pub(super) async fn measure_formats(&mut self) -> Result<(), ProbeError> {
        match requests::schema_reply(self.dialect) {
            Some(request) => self.measure_schema(request).await?,
            None => self.not_tested(&["json_schema"], "this API has no field for it"),
        }
        match self.ask("a picture", requests::picture()).await? {
            MeasureAnswer::Refused(status, _) => {
                self.quirk("images", No, "images_refused", format!("refused (HTTP {status})"));
                self.set("profile.vision", false);
            }
            MeasureAnswer::Reply(reply) if reply.reply.text.to_lowercase().contains("red") => {
                self.row("images", Yes, "seen");
                self.set("profile.vision", true);
            }
            MeasureAnswer::Reply(reply) if reply.is_cut() || reply.reply.text.is_empty() => {
                self.row("images", Unclear, "the reply ended too early to tell");
            }
            MeasureAnswer::Reply(_) => {
                self.quirk("images", No, "images_ignored", "accepted, but not seen");
                self.set("profile.vision", false);
            }
        }
        self.measure_whole_reply().await
    }

    async fn measure_schema(&mut self, request: ModelRequest) -> Result<(), ProbeError> {
        match self.ask("JSON by a schema", request).await? {
            MeasureAnswer::Refused(status, _) => {
                self.quirk("json_schema", No, "json_schema_refused", format!("refused (HTTP {status})"));
            }
            MeasureAnswer::Reply(reply) if is_city_object(&reply.reply.text) => {
                self.row("json_schema", Yes, "followed");
            }
            MeasureAnswer::Reply(reply) if reply.is_cut() || reply.reply.text.is_empty() => {
                self.row("json_schema", Unclear, "the reply ended too early to tell");
            }
            MeasureAnswer::Reply(_) => {
                self.quirk("json_schema", No, "json_schema_ignored", "accepted, but not followed");
            }
        }
        Ok(())
    }

    async fn measure_whole_reply(&mut self) -> Result<(), ProbeError> {
        if self.transfer == TransferMode::Whole {
            self.row("whole_replies", Yes, "in use here");
            return Ok(());
        }
        self.transfer = TransferMode::Whole;
        let answer = self.ask("a whole reply", requests::text("Say hello.")).await;
        self.transfer = TransferMode::Stream;
        match answer? {
            MeasureAnswer::Reply(reply) if reply.has_content() => self.row("whole_replies", Yes, "answered"),
            MeasureAnswer::Reply(_) => self.row("whole_replies", Unclear, "the reply was empty"),
            MeasureAnswer::Refused(status, _) => {
                self.quirk("whole_replies", No, "stream_only", format!("refused (HTTP {status})"));
            }
        }
        Ok(())
    }

    /// Adds rows of features that cannot be tested.
    pub(super) fn not_tested(&mut self, features: &[&'static str], why: &str) {
        for feature in features {
            self.row(feature, NotTested, why);
        }
    }
}

fn is_city_object(text: &str) -> bool {
    let value: Option<Value> = serde_json::from_str(text.trim()).ok();
    value.is_some_and(|value| value["city"].is_string())
}
