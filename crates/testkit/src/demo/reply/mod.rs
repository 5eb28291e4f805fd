//! Replies: one file per kind of request. Each looks at what has been answered so far in this turn and does the next
//! thing.

mod avatar;
mod calendar;
mod client_tool;
mod files;
mod fixed;
mod picture;
mod rules;
mod sum;
mod talk;
mod time;
mod trouble;
mod weather;

use super::language::DemoLanguage;
use super::tool_call::{self, ArgumentWish};
use super::tool_outcome::ParsedOutcome;
use crate::parsed_request::{ParsedImage, ParsedMessage, ParsedRequest, ParsedToolCall};
use crate::script::{CallMove, ModelScript, ScriptMove};

/// The next step of the answer to the last user message.
pub(super) fn to(seen: &ParsedRequest) -> ModelScript {
    let scene = DemoScene::of(seen);
    let reply = client_tool::report(&scene).unwrap_or_else(|| rules::reply(&scene));
    client_tool::call_as_demanded(&scene, reply)
}

/// The conversation as a reply sees it.
pub(super) struct DemoScene<'a> {
    pub seen: &'a ParsedRequest,
    pub language: DemoLanguage,
    /// The last user message.
    pub text: &'a str,
    /// Pictures of the user message.
    pub images: &'a [ParsedImage],
    /// Calls of this turn, oldest first, with the outcome of each.
    pub answered: Vec<(&'a ParsedToolCall, ParsedOutcome)>,
}

impl<'a> DemoScene<'a> {
    fn of(seen: &'a ParsedRequest) -> Self {
        let question = match seen.last_question() {
            Some(ParsedMessage::User { text, images, .. }) => Some((text.as_str(), images.as_slice())),
            _ => None,
        };
        let (text, images) = question.unwrap_or_default();
        let answered = seen.answered_calls();
        let answered =
            answered.into_iter().map(|(call, result)| (call, ParsedOutcome::parse(&result.text))).collect();
        Self { seen, language: DemoLanguage::of(seen), text, images, answered }
    }

    /// One of two texts.
    pub fn choose_text<'t>(&self, english: &'t str, chinese: &'t str) -> &'t str {
        self.language.choose(english, chinese)
    }

    /// A call that may be made now, or `None`.
    pub fn call(&self, name: &str, wishes: &[ArgumentWish<'_>]) -> Option<CallMove> {
        tool_call::call(self.seen, name, wishes)
    }

    /// True if a tool could be called now.
    pub fn offers(&self, name: &str) -> bool {
        self.seen.may_call() && self.seen.tool(name).is_some()
    }

    /// Outcome of the newest call of a tool.
    pub fn latest_outcome(&self, name: &str) -> Option<&ParsedOutcome> {
        self.answered.iter().rev().find(|(call, _)| call.name == name).map(|(_, outcome)| outcome)
    }

    /// Reply for a tool that is not offered, with the possible reasons.
    pub fn tool_missing(&self, tool: &str) -> ModelScript {
        if !self.seen.tools.is_empty() && !self.seen.may_call() {
            return ModelScript::new().say(self.language.choose(
                "I may not call any more tools in this message, so I have to leave it at that.",
                "这条消息里我不能再调用工具了，只好到此为止。",
            ));
        }
        ModelScript::new().say(self.language.choose(
            format!(
                "For this I would call the tool `{tool}`, but it is not among the tools that I am offered here, and I \
                 do not make things up. Switch it on and ask me again. (`/tools` shows what there is.)"
            ),
            format!(
                "这件事我需要调用工具 `{tool}`，但它不在当前提供给我的工具之列，而我从不编造结果。请启用它后再问我一次。\
                 （用 `/tools` 可以查看现有的工具。）"
            ),
        ))
    }

    /// The reason why a call has no output, as a sentence. For an output, the output itself.
    pub fn describe_outcome(&self, outcome: &ParsedOutcome) -> String {
        let (english, chinese) = match outcome {
            ParsedOutcome::Output(text, _) => return text.trim().to_owned(),
            ParsedOutcome::Failed(message) => {
                (format!("the tool failed: {message}"), format!("工具执行失败：{message}"))
            }
            ParsedOutcome::Denied(Some(reason)) => {
                (format!("you did not allow it: “{reason}”"), format!("您没有允许：“{reason}”"))
            }
            ParsedOutcome::Denied(None) => {
                ("it was not allowed, so nothing was done.".into(), "没有得到允许，所以什么也没做。".into())
            }
            ParsedOutcome::Cancelled => ("you stopped it.".into(), "您中止了它。".into()),
            ParsedOutcome::TimedOut => {
                ("it took too long and was stopped.".into(), "它用时过长，已被停止。".into())
            }
            ParsedOutcome::NoViewer => (
                "no page or app is connected that could do it.".into(),
                "没有连接可以执行它的页面或应用。".into(),
            ),
            ParsedOutcome::NoSuchTool(_) => {
                ("there is no tool of this name.".into(), "没有这个名字的工具。".into())
            }
            ParsedOutcome::BadArguments(why) => {
                (format!("my arguments were refused: {why}"), format!("我的参数没有通过检查：{why}"))
            }
            ParsedOutcome::NotRun(why) => (why.clone(), format!("它没有执行：{why}")),
        };
        self.language.choose(english, chinese)
    }
}

/// Text, calls, no more: the usual step that asks for tools.
fn text_then_calls(text: impl Into<String>, calls: Vec<CallMove>) -> ModelScript {
    calls.into_iter().fold(ModelScript::new().say(text), |script, call| script.then(ScriptMove::Call(call)))
}

/// A text as a quotation, at most `lines_max` lines.
fn block_quote(text: &str, lines_max: usize) -> String {
    let lines = text.trim().lines().take(lines_max).map(|line| format!("> {line}\n"));
    lines.collect()
}
