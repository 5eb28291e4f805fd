//! Messages of `throughline connect`, English and Chinese side by side.

use super::ui_text::UiText;
use crate::exit::CliFailure;
use std::path::Path;
use throughline::{ProbeError, ProbeFailure};

impl UiText {
    /// Above the list of those that are known.
    pub(crate) fn connect_which(self) -> String {
        self.pick_text("Which one? A number or a name:", "连接哪一个？输入编号或名称：")
    }

    /// Nobody can be asked.
    pub(crate) fn connect_none(self) -> CliFailure {
        let what = self.pick_text("nothing is named to be connected", "没有指定要连接的上游");
        CliFailure::usage(what, "", "throughline connect deepseek")
    }

    /// It is none of the known ones.
    pub(crate) fn connect_unknown(self, why: &str) -> CliFailure {
        let remedy = self.pick_text(
            "a name of `throughline upstreams`, or one of your own with --base-url URL --api openai-chat",
            "使用 `throughline upstreams` 中的名称，或用 --base-url URL --api openai-chat 连接自己的地址",
        );
        CliFailure::usage(why, "", remedy)
    }

    /// Where a key is made.
    pub(crate) fn connect_key_at(self, url: &str) -> String {
        self.pick_text(format!("Get a key at {url}"), format!("在此获取密钥：{url}"))
    }

    /// The prompt.
    pub(crate) fn connect_key(self, title: &str, stored: bool, needed: bool) -> String {
        match (stored, needed) {
            (true, _) => self.pick_text(
                format!("Key of {title} (not shown; Enter keeps the stored one): "),
                format!("{title} 的密钥（不显示；直接回车沿用已保存的）："),
            ),
            (false, true) => {
                self.pick_text(format!("Key of {title} (not shown): "), format!("{title} 的密钥（不显示）："))
            }
            (false, false) => self.pick_text(
                format!("Key of {title} (not shown; Enter: it needs none): "),
                format!("{title} 的密钥（不显示；不需要则直接回车）："),
            ),
        }
    }

    /// It is there already.
    pub(crate) fn connect_key_set(self, variable: &str) -> String {
        self.pick_text(format!("✔ the key is in {variable}"), format!("✔ 密钥在 {variable} 中"))
    }

    /// No key can be had.
    pub(crate) fn connect_no_key(self, title: &str, variable: Option<&str>) -> CliFailure {
        let what = self.pick_text(format!("{title} needs a key"), format!("{title} 需要密钥"));
        let set = variable.map(|variable| format!("export {variable}=…, ")).unwrap_or_default();
        let remedy = self.pick_text(
            format!("{set}or pipe it in: … | throughline connect NAME --key-stdin"),
            format!("{set}或通过管道传入：… | throughline connect NAME --key-stdin"),
        );
        CliFailure::usage(what, "", remedy)
    }

    pub(crate) fn connect_bad_key(self, why: &str) -> CliFailure {
        let what = self.pick_text("this is no key", "这不是密钥");
        CliFailure::usage(
            what,
            why,
            self.pick_text("copy it once more, and nothing around it", "请重新复制，不要带上其他内容"),
        )
    }

    /// It is being asked.
    pub(crate) fn connect_asking(self, title: &str) -> String {
        self.pick_text(
            format!("asking {title} which models it has …"),
            format!("正在询问 {title} 有哪些模型…"),
        )
    }

    /// It has answered.
    pub(crate) fn connect_listed(self, title: &str, models: usize) -> String {
        self.pick_text(
            format!("✔ {title} answers; models: {models}"),
            format!("✔ {title} 已响应；模型 {models} 个"),
        )
    }

    /// It does not say which models it has.
    pub(crate) fn connect_unlisted(self, title: &str) -> String {
        self.pick_text(format!("  {title} does not list its models"), format!("  {title} 不列出模型"))
    }

    /// Below the models.
    pub(crate) fn connect_model(self) -> String {
        self.pick_text(
            "Model, by number or name (Enter: none now): ",
            "模型，输入编号或名称（直接回车：暂不选择）：",
        )
    }

    /// There are more.
    pub(crate) fn connect_more(self, more: usize) -> String {
        self.pick_text(format!("     … and {more} more"), format!("     … 还有 {more} 个"))
    }

    /// One of them has said a word.
    pub(crate) fn connect_answered(self, model: &str) -> String {
        self.pick_text(format!("✔ {model} answers"), format!("✔ {model} 能够回答"))
    }

    /// The key is kept.
    pub(crate) fn connect_key_stored(self, path: &Path) -> String {
        let path = path.display();
        self.pick_text(
            format!("✔ the key is in {path}, for your eyes only"),
            format!("✔ 密钥已保存在 {path}，仅你可读"),
        )
    }

    /// The file is written.
    pub(crate) fn connect_written(
        self,
        path: &Path,
        agent: &str,
        model: &str,
        before: Option<&str>,
    ) -> String {
        let path = path.display();
        match before.filter(|before| *before != model) {
            Some(before) => self.pick_text(
                format!("✔ {path}: the agent `{agent}` answers with {model} (it was {before})"),
                format!("✔ {path}：助手 `{agent}` 使用 {model} 回答（原为 {before}）"),
            ),
            None => self.pick_text(
                format!("✔ {path}: the agent `{agent}` answers with {model}"),
                format!("✔ {path}：助手 `{agent}` 使用 {model} 回答"),
            ),
        }
    }

    pub(crate) fn connect_next(self, command: &str) -> String {
        self.pick_text(
            format!("\nnext: {command}\n(a server that runs takes it by itself within a second)\n"),
            format!("\n接下来：{command}\n（正在运行的服务器会在一秒内自动采用）\n"),
        )
    }

    /// A key is forgotten.
    pub(crate) fn connect_forgotten(self, name: &str) -> String {
        self.pick_text(format!("the stored key of {name} is forgotten\n"), format!("已删除 {name} 的密钥\n"))
    }

    /// There was none.
    pub(crate) fn connect_nothing(self, name: &str) -> CliFailure {
        let what = self.pick_text(format!("no key is stored for {name}"), format!("没有保存 {name} 的密钥"));
        CliFailure::usage(what, "", "throughline upstreams")
    }

    /// It cannot be used.
    pub(crate) fn connect_failed(self, title: &str, key_url: Option<&str>, error: &ProbeError) -> CliFailure {
        let again = key_url.map(|url| format!(": {url}")).unwrap_or_default();
        let (what, remedy) = match error.failure {
            ProbeFailure::Key => (
                self.pick_text(format!("{title} does not take this key"), format!("{title} 不接受这个密钥")),
                self.pick_text(
                    format!("copy it once more, whole, or make another one{again}"),
                    format!("完整地重新复制，或新建一个{again}"),
                ),
            ),
            ProbeFailure::Connection => (
                self.pick_text(format!("{title} cannot be reached"), format!("无法连接 {title}")),
                self.pick_text(
                    "is it running, and is the network there? A proxy is taken from HTTPS_PROXY",
                    "它在运行吗？网络通吗？代理取自 HTTPS_PROXY",
                ),
            ),
            ProbeFailure::Model => (
                self.pick_text(
                    format!("{title} has no such model for this key"),
                    format!("{title} 没有这个密钥可用的该模型"),
                ),
                self.pick_text("choose another one: --model MODEL", "选择另一个：--model MODEL"),
            ),
            ProbeFailure::Quota => (
                self.pick_text(
                    format!("{title} has nothing left for this key"),
                    format!("{title} 的余额已用完"),
                ),
                self.pick_text("the key is good: top the account up", "密钥有效：请充值"),
            ),
            ProbeFailure::Busy => (
                self.pick_text(format!("{title} wants a pause"), format!("{title} 要求稍候")),
                self.pick_text("try again in a moment", "请过一会儿再试"),
            ),
            ProbeFailure::NotListed => (
                self.pick_text(format!("{title} does not list its models"), format!("{title} 不列出模型")),
                self.pick_text("name one: --model MODEL", "请指定：--model MODEL"),
            ),
            ProbeFailure::Refused => (
                self.pick_text(format!("{title} refuses"), format!("{title} 拒绝了请求")),
                self.pick_text("see what it says", "请看它的说明"),
            ),
        };
        CliFailure::usage(what, error.why.clone(), remedy)
    }

    /// The file cannot be written, or is none.
    pub(crate) fn connect_unwritten(self, path: &Path, why: &str) -> CliFailure {
        let what = self.pick_text(
            format!("{} cannot be changed, and was not", path.display()),
            format!("{} 无法修改，内容未变", path.display()),
        );
        CliFailure::usage(what, why, "")
    }
}
