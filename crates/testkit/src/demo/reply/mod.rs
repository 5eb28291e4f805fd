//! Replies: one file per kind of request. Each looks at what has been answered so far in this turn and does the next
//! thing.

mod avatar;
mod calendar;
mod files;
mod picture;
pub(super) mod sum;
mod talk;
mod time;
mod trouble;
mod weather;

use super::ask::Ask;
use super::language::Language;
use super::offer::{self, Wish};
use super::told::Told;
use crate::script::{CallMove, Move, Script};
use crate::seen::{Seen, SeenCall, SeenImage, SeenMessage};

/// The next step of the answer to the last user message.
pub(super) fn to(seen: &Seen) -> Script {
    let scene = Scene::of(seen);
    let ask = if scene.images.is_empty() { Ask::of(scene.text) } else { Ask::Picture };
    match ask {
        Ask::Help => talk::help(&scene),
        Ask::Thanks => talk::thanks(&scene),
        Ask::Weather => weather::reply(&scene),
        Ask::Time => time::reply(&scene),
        Ask::ListFiles => files::list(&scene),
        Ask::ReadFile => files::read(&scene),
        Ask::SearchFiles => files::search(&scene),
        Ask::Gesture => avatar::reply(&scene),
        Ask::Calendar => calendar::reply(&scene),
        Ask::Fail => trouble::failure(&scene),
        Ask::UnknownTool => trouble::unknown_tool(&scene),
        Ask::WrongArguments => trouble::wrong_arguments(&scene),
        Ask::BrokenArguments => trouble::broken_arguments(&scene),
        Ask::Loop => trouble::looping(&scene),
        Ask::LongAnswer => talk::long(&scene),
        Ask::Think => talk::think(&scene),
        Ask::Picture => picture::reply(&scene),
        Ask::Count => talk::count(&scene),
        Ask::Sum => sum::reply(&scene),
        Ask::Other => talk::other(&scene),
    }
}

/// The conversation as a reply sees it.
pub(super) struct Scene<'a> {
    pub seen: &'a Seen,
    pub language: Language,
    /// The last user message.
    pub text: &'a str,
    /// Its pictures.
    pub images: &'a [SeenImage],
    /// Calls of this turn, oldest first, with what was told about each.
    pub answered: Vec<(&'a SeenCall, Told)>,
}

impl<'a> Scene<'a> {
    fn of(seen: &'a Seen) -> Self {
        let question = match seen.question() {
            Some(SeenMessage::User { text, images, .. }) => Some((text.as_str(), images.as_slice())),
            _ => None,
        };
        let (text, images) = question.unwrap_or_default();
        let answered = seen.answered();
        let answered = answered.into_iter().map(|(call, result)| (call, Told::read(&result.text))).collect();
        Self { seen, language: Language::of(seen), text, images, answered }
    }

    /// One of two texts.
    pub fn words<'t>(&self, english: &'t str, chinese: &'t str) -> &'t str {
        self.language.choose(english, chinese)
    }

    /// A call that may be made now, or `None`.
    pub fn call(&self, name: &str, wishes: &[Wish<'_>]) -> Option<CallMove> {
        offer::call(self.seen, name, wishes)
    }

    /// Whether a tool could be called now.
    pub fn offers(&self, name: &str) -> bool {
        self.seen.may_call() && self.seen.tool(name).is_some()
    }

    /// What was told about the newest call of a tool.
    pub fn told(&self, name: &str) -> Option<&Told> {
        self.answered.iter().rev().find(|(call, _)| call.name == name).map(|(_, told)| told)
    }

    /// The tool is not there: says so, and why that may be.
    pub fn missing(&self, tool: &str) -> Script {
        if !self.seen.tools.is_empty() && !self.seen.may_call() {
            return Script::new().say(self.language.choose(
                "I may not call any more tools in this message, so I have to leave it at that.",
                "这条消息里我不能再调用工具了，只好到此为止。",
            ));
        }
        Script::new().say(self.language.choose(
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

    /// Why a call brought no output, as a sentence. For an output it is the output.
    pub fn why(&self, told: &Told) -> String {
        let (english, chinese) = match told {
            Told::Output(text, _) => return text.trim().to_owned(),
            Told::Failed(message) => {
                (format!("the tool failed: {message}"), format!("工具执行失败：{message}"))
            }
            Told::Denied(Some(reason)) => {
                (format!("you did not allow it: “{reason}”"), format!("您没有允许：“{reason}”"))
            }
            Told::Denied(None) => {
                ("it was not allowed, so nothing was done.".into(), "没有得到允许，所以什么也没做。".into())
            }
            Told::Cancelled => ("you stopped it.".into(), "您中止了它。".into()),
            Told::TimedOut => ("it took too long and was stopped.".into(), "它用时过长，已被停止。".into()),
            Told::NoViewer => (
                "no page or app is connected that could do it.".into(),
                "没有连接可以执行它的页面或应用。".into(),
            ),
            Told::NoSuchTool(_) => ("there is no tool of this name.".into(), "没有这个名字的工具。".into()),
            Told::BadArguments(why) => {
                (format!("my arguments were refused: {why}"), format!("我的参数没有通过检查：{why}"))
            }
            Told::NotRun(why) => (why.clone(), format!("它没有执行：{why}")),
        };
        self.language.choose(english, chinese)
    }
}

/// Text, calls, no more: the usual step that asks for tools.
fn saying_then(text: impl Into<String>, calls: Vec<CallMove>) -> Script {
    calls.into_iter().fold(Script::new().say(text), |script, call| script.then(Move::Call(call)))
}

/// A text as a quotation, at most `lines_max` lines.
fn quoted(text: &str, lines_max: usize) -> String {
    let lines = text.trim().lines().take(lines_max).map(|line| format!("> {line}\n"));
    lines.collect()
}
