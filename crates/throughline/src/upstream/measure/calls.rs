//! Tool calls: native or not, in parallel, their shape in the stream, results, forced and forbidden calls.

use super::FeatureVerdict::{No, Unclear, Yes};
use super::exchange::{MeasureAnswer, MeasuredReply};
use super::raw_reply::RawCall;
use super::session::MeasureSession;
use super::{ProbeError, requests};
use std::collections::BTreeSet;
use throughline_wire::{Dialect, ProblemKind, ReasoningEcho, ReplyCall, ToolIdFormat};

/// Features that only an upstream with native calls has.
const WITH_NATIVE_CALLS: [&str; 4] = ["parallel_calls", "results", "forced_call", "forbidden_call"];

impl MeasureSession<'_> {
    pub(super) async fn measure_calls(&mut self) -> Result<(), ProbeError> {
        let reply = match self.ask("two tool calls", requests::two_calls()).await? {
            MeasureAnswer::Reply(reply) => reply,
            MeasureAnswer::Refused(status, _) => {
                let detail = format!("refused (HTTP {status}): agents need mode = \"text\"");
                self.quirk("tools", No, "no_tools", detail);
                self.not_tested(&WITH_NATIVE_CALLS, "tools are refused");
                return Ok(());
            }
        };
        self.thinking.clone_from(&reply.reply.thinking);
        if !self.judge_tools(&reply) {
            return Ok(());
        }
        self.judge_call_shape(&reply);
        self.measure_results().await?;
        if self.dialect == Dialect::Ollama {
            self.not_tested(&["forced_call", "forbidden_call"], "this API has no tool choice");
            return Ok(());
        }
        self.measure_tool_choice().await
    }

    /// True if calls are native.
    fn judge_tools(&mut self, reply: &MeasuredReply) -> bool {
        let leak = reply.reply.problems.iter().find_map(|problem| match &problem.kind {
            ProblemKind::LeakedCall { format } => Some(format.clone()),
            _ => None,
        });
        let count = reply.reply.calls.len();
        if let (Some(format), true) = (leak, count == 0) {
            let detail = format!("written into the text (`{format}`)");
            self.quirk("tools", No, "leaked_calls", detail);
            self.set("profile.leaked_calls", "run");
            self.not_tested(&WITH_NATIVE_CALLS, "calls are not native");
            return false;
        }
        match count {
            0 if reply.is_cut() => self.row("tools", Unclear, "the reply ended before a call"),
            0 => self.quirk("tools", No, "ignores_tools", "accepted, but no call was made"),
            1 => {
                self.row("tools", Yes, "native");
                self.quirk("parallel_calls", No, "single_call", "two calls requested, one made");
            }
            _ => {
                self.row("tools", Yes, "native");
                self.row("parallel_calls", Yes, format!("{count} calls in one reply"));
            }
        }
        if count == 0 {
            self.not_tested(&WITH_NATIVE_CALLS, "no call was made");
        }
        count > 0
    }

    fn judge_call_shape(&mut self, reply: &MeasuredReply) {
        let calls = reply.raw.calls(self.dialect);
        if calls.is_empty() {
            let readable = reply.reply.calls.iter().all(ReplyCall::is_complete);
            let verdict = if readable { Yes } else { No };
            self.row("call_arguments", verdict, if readable { "readable" } else { "not readable" });
            return;
        }
        if self.dialect == Dialect::OpenaiChat {
            self.judge_numbers(&calls);
        }
        self.judge_fragments(&calls);
        let finishes = reply.raw.finishes();
        if let Some(word @ ("stop" | "end_turn")) = finishes.last().copied() {
            let detail = format!("`{word}` despite tool calls");
            self.quirk("finish_with_calls", No, "stop_with_calls", detail);
        }
    }

    /// Indexes, ids and names, as Chat Completions writes them.
    fn judge_numbers(&mut self, calls: &[RawCall]) {
        let is_same_index = calls.len() > 1 && calls.iter().all(|call| call.index == calls[0].index);
        if calls.iter().all(|call| call.index.is_none()) {
            self.quirk("call_index", No, "no_index", "calls have no index");
        } else if is_same_index {
            self.quirk("call_index", No, "zero_index", "every call has the same index");
        } else {
            self.row("call_index", Yes, "one per call");
        }
        let ids: BTreeSet<&String> = calls.iter().filter_map(|call| call.id.as_ref()).collect();
        if ids.is_empty() {
            self.quirk("call_ids", No, "no_call_ids", "calls have no id");
        } else if ids.len() < calls.len() {
            self.quirk("call_ids", No, "repeated_call_ids", "calls share an id");
        } else {
            self.row("call_ids", Yes, "one per call");
        }
        if calls.iter().any(|call| call.has_empty_name) {
            self.quirk("call_names", Yes, "empty_names", "later fragments have an empty name");
        }
    }

    fn judge_fragments(&mut self, calls: &[RawCall]) {
        if calls.iter().any(RawCall::is_cumulative) {
            let detail = "each fragment repeats all previous ones";
            self.quirk("call_arguments", Yes, "cumulative_arguments", detail);
            self.profile.cumulative_arguments = true;
            self.set("profile.cumulative_arguments", true);
        } else if calls.iter().any(RawCall::has_placeholder) {
            self.quirk("call_arguments", Yes, "placeholder_arguments", "they begin with `{}`");
            self.profile.placeholder_arguments = true;
            self.set("profile.placeholder_arguments", true);
        } else if calls.iter().all(|call| call.fragments.len() <= 1) {
            self.quirk("call_arguments", Yes, "whole_arguments", "in one fragment");
        } else {
            self.row("call_arguments", Yes, "in several fragments");
        }
    }

    /// A call and its result go back, with an id that another upstream made.
    async fn measure_results(&mut self) -> Result<(), ProbeError> {
        let mut tried: Vec<&'static str> = Vec::new();
        loop {
            let request = requests::answered_call(&self.thinking, &self.model);
            let (status, message) = match self.ask("the result of a call", request).await? {
                MeasureAnswer::Reply(_) => break,
                MeasureAnswer::Refused(status, message) => (status, message.to_lowercase()),
            };
            let mentions_reasoning = message.contains("reasoning");
            let is_chat = self.dialect == Dialect::OpenaiChat;
            if is_chat && mentions_reasoning && !tried.contains(&"reasoning_echo_required") {
                self.profile.reasoning_echo = ReasoningEcho::ReasoningContent;
                tried.push("reasoning_echo_required");
            } else if is_chat && !mentions_reasoning && !tried.contains(&"nine_letter_ids") {
                self.profile.tool_id_format = ToolIdFormat::NineAlphanumeric;
                tried.push("nine_letter_ids");
            } else {
                self.row("results", No, format!("refused (HTTP {status})"));
                return Ok(());
            }
        }
        if tried.is_empty() {
            self.row("results", Yes, "accepted");
        }
        for quirk in tried {
            if quirk == "nine_letter_ids" {
                self.quirk("results", Yes, quirk, "ids must be nine letters and digits");
                self.set("profile.tool_id_format", "nine_alphanumeric");
            } else {
                self.quirk("results", Yes, quirk, "the reasoning before a call must be sent back");
                self.set("profile.reasoning_echo", "reasoning_content");
            }
        }
        Ok(())
    }

    async fn measure_tool_choice(&mut self) -> Result<(), ProbeError> {
        let configured = self.profile.clone();
        (self.profile.tool_choice_required, self.profile.tool_choice_none) = (true, true);
        let forced = self.ask("a forced call", requests::forced_call()).await;
        let forbidden = self.ask("a forbidden call", requests::forbidden_call()).await;
        self.profile = configured;
        match forced? {
            MeasureAnswer::Reply(reply) if !reply.reply.calls.is_empty() => {
                self.row("forced_call", Yes, "made");
                self.set("profile.tool_choice_required", true);
            }
            MeasureAnswer::Reply(reply) if reply.is_cut() => {
                self.row("forced_call", Unclear, "the reply ended before a call");
            }
            MeasureAnswer::Reply(_) => {
                self.quirk("forced_call", No, "forced_call_ignored", "accepted, but not made");
                self.set("profile.tool_choice_required", false);
            }
            MeasureAnswer::Refused(status, _) => {
                let detail = format!("refused (HTTP {status})");
                self.quirk("forced_call", No, "forced_call_refused", detail);
                self.set("profile.tool_choice_required", false);
            }
        }
        match forbidden? {
            MeasureAnswer::Reply(reply) if reply.reply.calls.is_empty() => {
                self.row("forbidden_call", Yes, "none made");
                self.set("profile.tool_choice_none", true);
            }
            MeasureAnswer::Reply(_) => {
                self.quirk("forbidden_call", No, "forbidden_call_ignored", "accepted, and a call was made");
                self.set("profile.tool_choice_none", false);
            }
            MeasureAnswer::Refused(status, _) => {
                let detail = format!("refused (HTTP {status})");
                self.quirk("forbidden_call", No, "forbidden_call_refused", detail);
                self.set("profile.tool_choice_none", false);
            }
        }
        Ok(())
    }
}
