//! Texts of the chat, and the language of the command.

use std::sync::OnceLock;

/// Languages of the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UiLanguage {
    #[default]
    English,
    /// Chinese, simplified.
    Chinese,
}

/// Language of this process, once it is known.
static LANGUAGE: OnceLock<UiLanguage> = OnceLock::new();

impl UiLanguage {
    /// Language of this process: set by [`choose`](Self::choose), else from the environment.
    pub(crate) fn current() -> Self {
        *LANGUAGE.get_or_init(|| Self::of_environment().unwrap_or_default())
    }

    /// Decides the language of this process by the flag `--lang`, if it is given, else by the environment.
    ///
    /// # Errors
    /// Name of an unknown language.
    pub(crate) fn choose(flag: Option<&str>) -> Result<Self, String> {
        let chosen = match flag {
            Some(name) => Self::of_name(name).ok_or_else(|| name.to_owned()),
            None => Self::of_environment(),
        };
        let _ = LANGUAGE.set(chosen.clone().unwrap_or_default());
        chosen
    }

    /// `THROUGHLINE_LANG`, else `LC_ALL`, `LC_MESSAGES` or `LANG`.
    fn of_environment() -> Result<Self, String> {
        let value = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if let Some(name) = value(LANGUAGE_VARIABLE) {
            return Self::of_name(&name).ok_or(name);
        }
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(value);
        Ok(Self::of_locale(locale.as_deref().unwrap_or("")))
    }

    /// `en` or `zh`; a locale such as `zh_CN.UTF-8` as well.
    fn of_name(name: &str) -> Option<Self> {
        let language = name.split(['_', '-', '.']).next().unwrap_or_default();
        match language.to_ascii_lowercase().as_str() {
            "en" => Some(Self::English),
            "zh" => Some(Self::Chinese),
            _ => None,
        }
    }

    fn of_locale(locale: &str) -> Self {
        if locale.to_ascii_lowercase().starts_with("zh") { Self::Chinese } else { Self::English }
    }
}

/// Chooses the language, before the locale.
pub(crate) const LANGUAGE_VARIABLE: &str = "THROUGHLINE_LANG";

/// A sentence in the language of the process, written in both, with values in braces as in `format!`.
macro_rules! tr {
    ($english:literal, $chinese:literal $(,)?) => {
        match $crate::messages::UiLanguage::current() {
            $crate::messages::UiLanguage::English => format!($english),
            $crate::messages::UiLanguage::Chinese => format!($chinese),
        }
    };
}
pub(crate) use tr;

/// Texts of the chat, in one language.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UiText(pub(crate) UiLanguage);

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident: $english:literal, $chinese:literal;)*) => {
        impl UiText {
            $(
                #[doc = $english]
                pub(crate) fn $name(self) -> &'static str {
                    match self.0 {
                        UiLanguage::English => $english,
                        UiLanguage::Chinese => $chinese,
                    }
                }
            )*
        }
    };
}
pub(crate) use words;

words! {
    connecting: "connecting", "连接中";
    waiting_first: "waiting for the first token", "等待模型响应";
    waiting_silent: "the model has paused", "模型暂停输出";
    waiting_rate_limit: "rate limited by the upstream", "上游限流，等待中";
    waiting_retry: "retrying", "正在重试";
    waiting_store: "waiting for the log", "等待写入日志";
    waiting_client: "waiting for a connected page", "等待页面连接";
    thinking: "thinking", "思考中";
    writing: "writing", "输出中";
    waiting_for_you: "waiting for you", "等待你的决定";
    stopping: "stopping", "正在停止";
    thought: "thought", "已思考";
    more_lines: "more lines, /thinking shows all", "行未显示，/thinking 显示全部";
    stop_hint: "Ctrl-C to stop", "Ctrl-C 停止";
    leave_hint: "Ctrl-C again to exit", "再按 Ctrl-C 退出";
    placeholder: "Type a message, Tab for an example, /help for help", "输入消息，按 Tab 查看示例，/help 查看帮助";
    placeholder_plain: "Type a message, /help for help", "输入消息，/help 查看帮助";
    placeholder_running: "Enter: at the next step · Alt-Enter: after this reply", "回车：下一步发送 · Alt-Enter：本轮结束后发送";
    placeholder_running_after: "Enter: after this reply · Alt-Enter: at the next step", "回车：本轮结束后发送 · Alt-Enter：下一步发送";
    queued_step: "next step", "下一步";
    queued_after: "after this reply", "本轮结束后";
    take_back_hint: "(Up to take it back)", "（按上方向键撤回）";
    after_usage: "usage: /after MESSAGE (sent after this reply)", "用法：/after 消息（本轮结束后发送）";
    tool_runs: "runs", "直接执行";
    tool_asks_first: "asks", "先询问";
    tool_denied: "denied", "禁止";
    rule: "rule", "规则";
    effect: "effect", "作用";
    denied: "denied", "已拒绝";
    failed: "failed", "失败";
    cancelled: "stopped", "已停止";
    timed_out: "timed out", "超时";
    not_started: "not started", "未开始";
    unknown_end: "outcome unknown", "结果未知";
    queued: "queued", "排队中";
    awaiting: "awaiting approval", "等待批准";
    interrupted: "the reply was cut off before the call was complete; nothing ran", "回复在调用完整之前中断；未执行任何操作";
    no_viewer: "no connected page or app can run it", "没有已连接的页面或应用可以执行它";
    stopped_first: "the turn was stopped first; nothing ran", "本轮已先停止；未执行任何操作";
    over_limit: "a limit was reached first", "已先达到上限";
    unknown_tool: "no such tool", "没有这个工具";
    refused: "The model declines:", "模型拒绝回答：";
    picture: "image", "图片";
    sound: "audio", "音频";
    ended_cancelled: "stopped", "已停止";
    ended_length: "cut off by the length limit; send “continue” to go on", "因长度限制被截断；发送“继续”即可接着写";
    ended_limit: "stopped at the tool-round limit", "已达到工具轮数上限";
    ended_error: "ended with an error", "因错误结束";
    ended_interrupted: "interrupted", "已中断";
    try_hint: "try", "可以试试";
    demo_title: "Built-in demo model: no key, no network", "内置演示模型：无需密钥，也不联网";
    demo_try: "Things to try (Tab cycles through them):", "可以试试（Tab 逐个切换）：";
    greeting_help: "/help lists the commands · Ctrl-C stops a reply, twice exits", "/help 查看命令 · Ctrl-C 停止回复，按两次退出";
    unknown_command: "Unknown command. /help lists the commands.", "未知命令。/help 列出所有命令。";
    image_attached: "will be sent with the next message", "将随下一条消息发送";
    image_usage: "usage: /image FILE (png, jpeg, gif or webp)", "用法：/image 文件（png、jpeg、gif 或 webp）";
    mode_is: "Mode:", "模式：";
    model_is: "Model:", "模型：";
    model_usage: "usage: /model UPSTREAM/MODEL", "用法：/model 上游/模型";
    mode_usage: "usage: /mode native | text | auto", "用法：/mode native | text | auto";
    through_server: "through the server at", "通过服务器：";
    servers_default: "the server's default agent", "服务器的默认智能体";
    agents_are: "Agents:", "智能体：";
    system_is: "Instructions:", "附加指令：";
    system_usage: "no instructions on top of the agent's own; usage: /system TEXT, /system - removes them", "没有附加指令；用法：/system 文本，/system - 取消";
    system_set: "These instructions hold from the next message on.", "从下一条消息起生效。";
    system_removed: "From the next message on the agent's own instructions hold alone.", "从下一条消息起只用智能体自己的指令。";
    begun_anew: "A new conversation begins with your next message.", "下一条消息将开始新对话。";
    continues_with: "Continuing:", "继续对话：";
    no_conversations: "There are no conversations yet.", "还没有对话。";
    resume_usage: "/resume NUMBER continues one of them", "/resume 编号 继续其中一个";
    nothing_to_copy: "There is no answer to copy yet.", "还没有可复制的回答。";
    save_usage: "usage: /save FILE (Markdown)", "用法：/save 文件（Markdown）";
    thinking_shown: "Thinking is now shown in full.", "思考过程将完整显示。";
    thinking_folded: "Thinking is now collapsed.", "思考过程将折叠显示。";
    not_now: "Not possible while a reply is running.", "回复进行中，暂时不能更改。";
    no_tools: "This agent has no tools.", "这个智能体没有可用的工具。";
    not_asked: "cannot ask without a terminal; --approve allows such calls", "无法询问：没有终端；--approve 可允许此类调用";
}

impl UiText {
    /// "running 2 tools".
    pub(crate) fn running(self, count: usize) -> String {
        match (self.0, count) {
            (UiLanguage::English, 1) => "running 1 tool".to_owned(),
            (UiLanguage::English, count) => format!("running {count} tools"),
            (UiLanguage::Chinese, count) => format!("正在运行 {count} 个工具"),
        }
    }

    /// "3 tools".
    pub(crate) fn tools_count(self, count: usize) -> String {
        match (self.0, count) {
            (UiLanguage::English, 1) => "1 tool".to_owned(),
            (UiLanguage::English, count) => format!("{count} tools"),
            (UiLanguage::Chinese, count) => format!("{count} 个工具"),
        }
    }

    /// Result of a turn.
    pub(crate) fn totals(
        self,
        steps: u32,
        calls: u32,
        tokens: Option<u64>,
        wall: &str,
        saved: Option<&str>,
    ) -> String {
        let mut parts = Vec::new();
        match self.0 {
            UiLanguage::English => {
                if calls > 0 {
                    parts.push(format!("{steps} step{}", if steps == 1 { "" } else { "s" }));
                    parts.push(format!("{calls} tool call{}", if calls == 1 { "" } else { "s" }));
                }
                parts.extend(tokens.map(|tokens| format!("{} tokens", grouped(tokens))));
                parts.push(wall.to_owned());
                parts.extend(saved.map(|saved| format!("{saved} saved by starting early")));
            }
            UiLanguage::Chinese => {
                if calls > 0 {
                    parts.push(format!("{steps} 步"));
                    parts.push(format!("{calls} 次工具调用"));
                }
                parts.extend(tokens.map(|tokens| format!("{} 个 Token", grouped(tokens))));
                parts.push(wall.to_owned());
                parts.extend(saved.map(|saved| format!("提前启动节省 {saved}")));
            }
        }
        parts.join(" · ")
    }

    /// An answer was copied.
    pub(crate) fn copied(self, chars: usize) -> String {
        match self.0 {
            UiLanguage::English => format!("{chars} characters copied"),
            UiLanguage::Chinese => format!("已复制 {chars} 个字符"),
        }
    }

    /// A conversation was written to a file.
    pub(crate) fn saved(self, path: &std::path::Path) -> String {
        match self.0 {
            UiLanguage::English => format!("saved to {}", path.display()),
            UiLanguage::Chinese => format!("已保存到 {}", path.display()),
        }
    }

    /// Prompts that the demo model understands, and what each one shows.
    pub(crate) fn examples(self) -> [(&'static str, &'static str); 6] {
        match self.0 {
            UiLanguage::English => [
                ("What's the weather in Beijing, Paris and San Francisco?", "three calls at once"),
                ("What time is it in Tokyo?", "a call before the text ends"),
                ("Which files are there?", "reads this folder"),
                ("Put lunch with Ada in my calendar tomorrow at noon", "asks before it writes"),
                ("Try a tool that fails", "and recovers"),
                ("Give me a long answer", "Markdown as it streams"),
            ],
            UiLanguage::Chinese => [
                ("北京、巴黎和旧金山的天气怎么样？", "同时发起三个调用"),
                ("东京现在几点？", "文字输出中即发起调用"),
                ("有哪些文件？", "读取当前文件夹"),
                ("明天中午和小艾吃饭，加到日历里", "写入前会先问你"),
                ("试一个会失败的工具", "然后继续"),
                ("写一篇长文", "边写边排版"),
            ],
        }
    }

    /// The commands of the chat, each with what it does.
    pub(crate) fn commands(self) -> [(&'static str, &'static str); 18] {
        match self.0 {
            UiLanguage::English => [
                ("/help", "this list"),
                ("/new", "begin a new conversation"),
                ("/resume [NUMBER]", "list the conversations, or continue one"),
                ("/retry", "send the last message again"),
                ("/save FILE", "write the conversation to a file, as Markdown"),
                ("/copy", "copy the last answer to the clipboard"),
                ("/agent [NAME]", "list the agents, or change to one"),
                ("/system [TEXT]", "show or set instructions on top of the agent's own"),
                ("/tools", "list the tools that the model may call, and which ask first"),
                ("/sources", "list the tool sources and their problems"),
                ("/model [UPSTREAM/MODEL]", "show or change the model"),
                ("/mode [native|text|auto]", "show or change the tool-calling mode"),
                ("/image FILE", "attach an image to the next message"),
                ("/thinking", "show reasoning in full, or collapse it"),
                ("/after MESSAGE", "send a message after the running reply"),
                ("/quit", "exit (also Ctrl-D)"),
                ("Ctrl-J", "new line in the message (between replies also Alt-Enter)"),
                ("Enter while it replies", "send at the next step, or as `steering` sets; Up takes it back"),
            ],
            UiLanguage::Chinese => [
                ("/help", "本列表"),
                ("/new", "开始新对话"),
                ("/resume [编号]", "列出对话，或继续其中一个"),
                ("/retry", "重新发送上一条消息"),
                ("/save 文件", "把对话保存为 Markdown 文件"),
                ("/copy", "复制上一个回答到剪贴板"),
                ("/agent [名称]", "列出智能体，或切换智能体"),
                ("/system [文本]", "查看或设置附加指令"),
                ("/tools", "模型可以调用的工具，以及哪些会先询问"),
                ("/sources", "工具来源及其问题"),
                ("/model [上游/模型]", "查看或更换模型"),
                ("/mode [native|text|auto]", "查看或更换工具调用模式"),
                ("/image 文件", "随下一条消息发送图片"),
                ("/thinking", "完整显示或折叠思考过程"),
                ("/after 消息", "本轮结束后发送"),
                ("/quit", "退出（也可用 Ctrl-D）"),
                ("Ctrl-J", "在消息中换行（回复间隙也可用 Alt-Enter）"),
                ("回复时按回车", "下一步发送，或按 `steering` 的设置；按上方向键撤回"),
            ],
        }
    }
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ui_language_follows_the_locale() {
        assert_eq!(UiLanguage::of_locale("zh_CN.UTF-8"), UiLanguage::Chinese);
        assert_eq!(UiLanguage::of_locale("en_US.UTF-8"), UiLanguage::English);
        assert_eq!(UiLanguage::of_locale(""), UiLanguage::English);
    }

    #[test]
    fn totals_are_formatted_on_one_line() {
        let english = UiText(UiLanguage::English);
        assert_eq!(english.totals(1, 0, None, "1.2 s", None), "1.2 s");
        assert_eq!(
            english.totals(2, 3, Some(12345), "4.0 s", Some("0.8 s")),
            "2 steps · 3 tool calls · 12,345 tokens · 4.0 s · 0.8 s saved by starting early"
        );
        assert_eq!(
            UiText(UiLanguage::Chinese).totals(2, 1, None, "4.0 s", None),
            "2 步 · 1 次工具调用 · 4.0 s"
        );
    }
}
