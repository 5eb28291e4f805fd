//! Messages of `throughline connect`, English and Chinese side by side.

use super::ui_text::UiText;
use crate::exit::CliFailure;
use std::path::Path;
use throughline::{ProbeError, ProbeFailure};

impl UiText {
    /// Heading of the list of built-in providers.
    pub(crate) fn connect_which(self) -> String {
        self.pick_text("Which one? A number or a name:", "连接哪一个？输入编号或名称：")
    }

    /// Announces the first request of `throughline probe`.
    pub(crate) fn probe_begins(self, upstream: &str, model: &str, requests: u32, tokens: u32) -> String {
        self.pick_text(
            format!("{upstream}, {model}: {requests} requests, each for at most {tokens} tokens"),
            format!("{upstream}，{model}：{requests} 次请求，每次最多 {tokens} 个 token"),
        )
    }

    /// Several models, and none is named.
    pub(crate) fn probe_needs_model(self, upstream: &str, models: &str) -> CliFailure {
        let what = self.pick_text("no model is given", "没有指定模型");
        let why = self.pick_text(format!("it lists: {models}"), format!("它列出了：{models}"));
        CliFailure::usage(what, &why, format!("throughline probe {upstream} --model MODEL"))
    }

    /// The measured upstream is as it is configured.
    pub(crate) fn probe_nothing_to_set(self) -> String {
        self.pick_text("✔ no setting needs to change", "✔ 无需更改任何设置")
    }

    /// Settings for the file, which is not written.
    pub(crate) fn probe_settings(self, settings: &str) -> String {
        self.pick_text(
            format!("settings for throughline.toml (--write writes them):\n\n{settings}"),
            format!("throughline.toml 的设置（--write 会写入）：\n\n{settings}"),
        )
    }

    /// The file is written.
    pub(crate) fn probe_written(self, path: &Path, count: usize) -> String {
        let path = path.display();
        self.pick_text(
            format!("✔ {path}: {count} measured settings written"),
            format!("✔ {path}：已写入 {count} 项实测设置"),
        )
    }

    /// Connecting needs a terminal or flags.
    pub(crate) fn connect_none(self, example: Option<String>) -> CliFailure {
        let what = self.pick_text("no upstream is given", "没有指定要连接的上游");
        CliFailure::usage(what, "", example.unwrap_or_else(|| "throughline connect deepseek".to_owned()))
    }

    /// A server on this machine, with some of its models.
    pub(crate) fn connect_runs_here(self, models: &str, more: usize) -> String {
        let more = match more {
            0 => String::new(),
            more => self.pick_text(format!(" and {more} more"), format!(" 等，另有 {more} 个")),
        };
        match models {
            "" => self.pick_text("✔ runs here, without a model", "✔ 正在本机运行，没有模型"),
            _ => self
                .pick_text(format!("✔ runs here: {models}{more}"), format!("✔ 正在本机运行：{models}{more}")),
        }
    }

    pub(crate) fn connect_key_is_stored(self) -> String {
        self.pick_text("✔ the key is stored", "✔ 密钥已保存")
    }

    /// The upstream is not a built-in provider.
    pub(crate) fn connect_unknown(self, why: &str) -> CliFailure {
        let remedy = self.pick_text(
            "use a name from `throughline upstreams`, or your own with --base-url URL --api openai-chat",
            "请使用 `throughline upstreams` 列出的名称，或用 --base-url URL --api openai-chat 指定自己的地址",
        );
        CliFailure::usage(why, "", remedy)
    }

    /// Address at which a key is created.
    pub(crate) fn connect_key_at(self, url: &str) -> String {
        self.pick_text(format!("Get a key at {url}"), format!("获取密钥：{url}"))
    }

    /// The prompt.
    pub(crate) fn connect_key(self, title: &str, stored: bool, needed: bool) -> String {
        match (stored, needed) {
            (true, _) => self.pick_text(
                format!("Key for {title} (hidden; Enter keeps the stored one): "),
                format!("{title} 的密钥（输入不显示；直接回车沿用已保存的密钥）："),
            ),
            (false, true) => self
                .pick_text(format!("Key for {title} (hidden): "), format!("{title} 的密钥（输入不显示）：")),
            (false, false) => self.pick_text(
                format!("Key for {title} (hidden; Enter if none is needed): "),
                format!("{title} 的密钥（输入不显示；不需要密钥则直接回车）："),
            ),
        }
    }

    /// The environment has the key already.
    pub(crate) fn connect_key_set(self, variable: &str) -> String {
        self.pick_text(format!("✔ the key is in {variable}"), format!("✔ 密钥在 {variable} 中"))
    }

    /// No key is available.
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
        let what = self.pick_text("this is not a key", "这不是密钥");
        CliFailure::usage(
            what,
            why,
            self.pick_text("copy it again, without anything around it", "请重新复制，不要包含其他内容"),
        )
    }

    pub(crate) fn connect_asking(self, title: &str) -> String {
        self.pick_text(format!("asking {title} for its models …"), format!("正在获取 {title} 的模型列表…"))
    }

    pub(crate) fn connect_listed(self, title: &str, models: usize) -> String {
        self.pick_text(
            format!("✔ {title} answers; models: {models}"),
            format!("✔ {title} 可以连接；共 {models} 个模型"),
        )
    }

    /// The upstream does not list its models.
    pub(crate) fn connect_unlisted(self, title: &str) -> String {
        self.pick_text(format!("  {title} does not list its models"), format!("  {title} 不提供模型列表"))
    }

    /// Below the models.
    pub(crate) fn connect_model(self) -> String {
        self.pick_text("Model, by number or name (Enter to skip): ", "模型：输入编号或名称（直接回车跳过）：")
    }

    pub(crate) fn connect_more(self, more: usize) -> String {
        self.pick_text(format!("     … and {more} more"), format!("     … 还有 {more} 个"))
    }

    /// The tested model has answered.
    pub(crate) fn connect_answered(self, model: &str) -> String {
        self.pick_text(format!("✔ {model} answers"), format!("✔ {model} 可以使用"))
    }

    pub(crate) fn connect_key_stored(self, path: &Path) -> String {
        let path = path.display();
        self.pick_text(
            format!("✔ the key is stored in {path}, readable only by you"),
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
                format!("✔ {path}: agent `{agent}` now uses {model} (was {before})"),
                format!("✔ {path}：智能体 `{agent}` 改用 {model}（原为 {before}）"),
            ),
            None => self.pick_text(
                format!("✔ {path}: agent `{agent}` uses {model}"),
                format!("✔ {path}：智能体 `{agent}` 使用 {model}"),
            ),
        }
    }

    pub(crate) fn connect_next(self, command: &str) -> String {
        self.pick_text(
            format!("\nnext: {command}\n(a running server picks it up within a second)\n"),
            format!("\n接下来：{command}\n（正在运行的服务器会在一秒内自动生效）\n"),
        )
    }

    /// A key is forgotten.
    pub(crate) fn connect_forgotten(self, name: &str) -> String {
        self.pick_text(format!("deleted the stored key of {name}\n"), format!("已删除保存的 {name} 密钥\n"))
    }

    /// Nothing was connected under this name.
    pub(crate) fn connect_nothing(self, name: &str) -> CliFailure {
        let what = self.pick_text(format!("no key is stored for {name}"), format!("没有保存 {name} 的密钥"));
        CliFailure::usage(what, "", "throughline upstreams")
    }

    /// The upstream cannot be used.
    pub(crate) fn connect_failed(self, title: &str, key_url: Option<&str>, error: &ProbeError) -> CliFailure {
        let again = key_url.map(|url| format!(": {url}")).unwrap_or_default();
        let (what, remedy) = match error.failure {
            ProbeFailure::Key => (
                self.pick_text(format!("{title} rejects this key"), format!("{title} 不接受这个密钥")),
                self.pick_text(
                    format!("copy it again completely, or create a new one{again}"),
                    format!("请完整复制后重试，或新建一个密钥{again}"),
                ),
            ),
            ProbeFailure::Connection => (
                self.pick_text(format!("{title} cannot be reached"), format!("无法连接 {title}")),
                self.pick_text(
                    "is it running, and is the network up? HTTPS_PROXY sets a proxy",
                    "请检查它是否在运行、网络是否正常；代理可通过 HTTPS_PROXY 设置",
                ),
            ),
            ProbeFailure::Model => (
                self.pick_text(
                    format!("{title} does not offer this model to this key"),
                    format!("{title} 未向此密钥开放该模型"),
                ),
                self.pick_text("choose another model: --model MODEL", "请换一个模型：--model MODEL"),
            ),
            ProbeFailure::Quota => (
                self.pick_text(
                    format!("{title} has no credit left for this key"),
                    format!("{title} 上该密钥的余额已用完"),
                ),
                self.pick_text("the key is valid: top up the account", "密钥有效：请充值"),
            ),
            ProbeFailure::Busy => (
                self.pick_text(format!("{title} is rate limiting requests"), format!("{title} 正在限流")),
                self.pick_text("try again in a moment", "请稍后再试"),
            ),
            ProbeFailure::NotListed => (
                self.pick_text(
                    format!("{title} does not list its models"),
                    format!("{title} 不提供模型列表"),
                ),
                self.pick_text("choose one: --model MODEL", "请指定：--model MODEL"),
            ),
            _ => (
                self.pick_text(format!("{title} refuses"), format!("{title} 拒绝了请求")),
                self.pick_text("see its message above", "请查看上面的说明"),
            ),
        };
        CliFailure::usage(what, error.why.clone(), remedy)
    }

    /// The configuration file cannot be written, or is not valid TOML.
    pub(crate) fn connect_unwritten(self, path: &Path, why: &str) -> CliFailure {
        let what = self.pick_text(
            format!("{} cannot be changed; nothing was written", path.display()),
            format!("无法修改 {}，内容未变", path.display()),
        );
        CliFailure::usage(what, why, "")
    }
}
