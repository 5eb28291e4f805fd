//! Messages of `throughline serve` and `throughline keys`.

use super::ui_text::{UiLanguage, UiText};
use crate::exit::CliFailure;
use std::fmt;
use std::path::Path;
use throughline_server::BindError;

/// Long help of `serve`.
pub(crate) const SERVE_HELP: &str = "\
Listens on this machine only, unless [server] or --listen says otherwise. The first start creates a key with all
scopes, shows it once and writes it to admin-token in the data folder, readable only by you. SIGTERM or Ctrl-C lets
running turns finish, a second one stops at once; unfinished turns resume at the next start. SIGHUP, or a change of the
configuration file, reloads the configuration.

Examples:
  throughline serve
  throughline serve --model deepseek/deepseek-chat
  throughline serve --listen 127.0.0.1:9000 --store ./turns.db
  curl -H \"Authorization: Bearer $KEY\" http://127.0.0.1:8787/v1/models

docs/configuration.md lists every setting; docs/operations.md explains how to run a server for others.";

/// Long help of `keys`.
pub(crate) const KEYS_HELP: &str = "\
A key is shown once, when it is created; only its hash is stored. If a server has the store open, the change goes
through that server, so there is no need to stop it.

Examples:
  throughline keys create --name laptop
  throughline keys create --name ci --scopes chat,tools --days 30
  throughline keys list
  throughline keys revoke 3f9a";

/// The data folder cannot be made.
pub(crate) fn bad_data_folder(folder: &Path, error: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        format!("the data folder {} cannot be used", folder.display()),
        error.to_string(),
        "choose a writable folder: THROUGHLINE_DATA=/some/folder",
    )
}

/// The store cannot be opened. Its error says what to do by itself.
pub(crate) fn no_store(error: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(format!("the store cannot be opened: {error}"), "", "")
}

/// Traces cannot be sent as the environment says.
#[cfg(feature = "otel")]
pub(crate) fn no_collector(why: &str) -> CliFailure {
    CliFailure::usage(
        format!("traces cannot be sent with these OTEL_EXPORTER_OTLP_… variables: {why}"),
        "",
        "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 (OTLP over HTTP with protobuf), or unset it to send none",
    )
}

/// A store that this program was built without.
#[cfg(not(feature = "postgres"))]
pub(crate) fn no_postgres() -> CliFailure {
    CliFailure::usage(
        "this program cannot store turns in PostgreSQL",
        "it was built without the feature `postgres`",
        "set `url` of [store] to a file path, or remove it",
    )
}

/// The server does not start.
pub(crate) fn cannot_bind(error: &BindError) -> CliFailure {
    CliFailure::usage(error.to_string(), "", error.remedy())
}

/// The first key cannot be made.
pub(crate) fn no_first_key(error: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        "the first key cannot be created",
        error.to_string(),
        "make sure that the data folder is yours and writable",
    )
}

/// A scope that there is none of.
pub(crate) fn no_such_scope(name: &str) -> CliFailure {
    CliFailure::usage(format!("there is no scope `{name}`"), "", "--scopes chat,tools,admin, or some of them")
}

/// No key, or several, begin so.
pub(crate) fn which_key(beginning: &str, matches: usize) -> CliFailure {
    let what = match matches {
        0 => format!("no valid key begins with `{beginning}`"),
        matches => format!("{matches} keys begin with `{beginning}`"),
    };
    CliFailure::usage(what, "", "throughline keys list")
}

/// The server that has the store open cannot be asked.
pub(crate) fn server_in_the_way(why: &dyn fmt::Display, store: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        "the keys cannot be changed now",
        format!("{store}\n  and that server cannot be asked: {why}"),
        "use its API, POST /v1/keys with a key that has the scope admin, or stop the server for a moment",
    )
}

/// The server, or the store, says no.
pub(crate) fn keys_refused(error: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage("the keys were not changed", error.to_string(), "")
}

/// Facts that a server prints when it listens.
pub(crate) struct ServeGreeting<'a> {
    /// `http://127.0.0.1:8787`.
    pub(crate) url: &'a str,
    /// Value after `#sign-in=` in a link that signs one browser in.
    pub(crate) sign_in: Option<String>,
    /// The key, if it was made just now.
    pub(crate) key: Option<String>,
    /// Where a key of the first start is, if it is still there.
    pub(crate) key_file: Option<&'a Path>,
    /// True if requests need no key.
    pub(crate) open: bool,
    /// `name → model`.
    pub(crate) agents: Vec<String>,
    /// Tools that there are.
    pub(crate) tools: usize,
    /// Where turns are kept.
    pub(crate) store: String,
    /// Turns that are gone on with.
    pub(crate) resumed: usize,
}

impl UiText {
    fn pick(self, english: impl Into<String>, chinese: impl Into<String>) -> String {
        match self.0 {
            UiLanguage::English => english.into(),
            UiLanguage::Chinese => chinese.into(),
        }
    }

    /// Text that a server prints when it listens.
    pub(crate) fn serve_greeting(self, greeting: &ServeGreeting<'_>) -> String {
        let ServeGreeting { url, sign_in, key, key_file, open, agents, tools, store, resumed } = greeting;
        let version = env!("CARGO_PKG_VERSION");
        let mut text = self.pick(
            format!("throughline {version} serves {url}\n\n"),
            format!("throughline {version} 正在服务：{url}\n\n"),
        );
        let mut line = |english: &str, chinese: &str, value: &str| {
            // Two columns for each Chinese character.
            let (name, columns) = match self.0 {
                UiLanguage::English => (english, english.len()),
                UiLanguage::Chinese => (chinese, 2 * chinese.chars().count()),
            };
            text.push_str(&format!("  {name}{}  {value}\n", " ".repeat(8_usize.saturating_sub(columns))));
        };
        match sign_in {
            Some(ticket) => line("open", "打开", &format!("{url}/#sign-in={ticket}")),
            None => line("open", "打开", url),
        }
        match (key, key_file, open) {
            (_, _, true) => line(
                "keys",
                "密钥",
                &self.pick("none: anyone on this machine has access", "不需要：本机上的任何人都可使用"),
            ),
            (Some(key), _, _) => line("key", "密钥", key),
            (None, Some(file), _) => line("key", "密钥", &file.display().to_string()),
            (None, None, _) => line("keys", "密钥", "throughline keys list"),
        }
        if let (Some(_), Some(file)) = (key, key_file) {
            let tools_text = self.pick(
                format!("this key is shown only once; it is also stored in {}", file.display()),
                format!("密钥只显示这一次；已同时保存到 {}", file.display()),
            );
            line("", "", &tools_text);
        }
        for (at, agent) in agents.iter().enumerate() {
            let (english, chinese) = if at == 0 { ("agents", "助手") } else { ("", "") };
            line(english, chinese, agent);
        }
        line("tools", "工具", &tools.to_string());
        line("store", "存储", store);
        if *resumed > 0 {
            line(
                "resumed",
                "恢复",
                &self.pick(format!("{resumed} unfinished turns"), format!("继续 {resumed} 个未完成的回合")),
            );
        }
        let heading = self.pick("Try next", "接下来可以试试");
        text.push_str(&format!("\n{heading}:\n"));
        let bearer = match (open, key, key_file) {
            (true, _, _) => String::new(),
            (_, Some(key), _) => format!(" -H \"Authorization: Bearer {key}\""),
            // As it stands it can be pasted, and the key is not on the screen.
            (_, None, Some(file)) => format!(" -H \"Authorization: Bearer $(cat '{}')\"", file.display()),
            (_, None, None) => {
                text.push_str(&self.pick(
                    "  throughline keys create --name laptop    # then replace KEY with the key\n",
                    "  throughline keys create --name laptop    # 再用生成的密钥替换下面的 KEY\n",
                ));
                " -H \"Authorization: Bearer KEY\"".to_owned()
            }
        };
        let model = agents.first().and_then(|agent| agent.split(' ').next()).unwrap_or("default");
        let hello = self.pick("Hello", "你好");
        text.push_str(&format!(
            "  curl {url}/v1/models{bearer}\n  curl {url}/v1/chat/completions{bearer} \\\n    -H \"Content-Type: \
             application/json\" -d '{{\"model\":\"{model}\",\"messages\":[{{\"role\":\"user\",\"content\":\"{hello}\"}}]}}'\n"
        ));
        let clients = self.pick(
            format!("any OpenAI client: base URL {url}/v1, with the key as its API key"),
            format!("任何 OpenAI 客户端：base URL 填 {url}/v1，API key 填上面的密钥"),
        );
        text.push_str(&format!("  {clients}\n  {url}/docs\n"));
        text
    }

    /// Somebody wants it to stop.
    pub(crate) fn draining(self, turns: usize, seconds: u64) -> String {
        match turns {
            0 => self.pick("stopping", "正在停止"),
            turns => self.pick(
                format!(
                    "stopping; {turns} turns have up to {seconds} s to finish; Ctrl-C again stops at once"
                ),
                format!("正在停止；{turns} 个回合最多再运行 {seconds} 秒；再按 Ctrl-C 立即停止"),
            ),
        }
    }

    /// A key was made.
    pub(crate) fn key_made(self, key: &str) -> String {
        self.pick(format!("{key}\nThis key is shown only once.\n"), format!("{key}\n密钥只显示这一次。\n"))
    }

    /// A key was revoked.
    pub(crate) fn key_revoked(self, id: &str, name: &str) -> String {
        self.pick(format!("{id} ({name}) is revoked\n"), format!("{id}（{name}）已作废\n"))
    }

    /// There are none.
    pub(crate) fn no_keys(self) -> String {
        self.pick(
            "no keys yet: throughline keys create --name NAME\n",
            "还没有密钥：throughline keys create --name 名称\n",
        )
    }

    /// Heads of the list.
    pub(crate) fn key_columns(self) -> [String; 6] {
        [
            self.pick("id", "编号"),
            self.pick("name", "名称"),
            self.pick("scopes", "权限"),
            self.pick("created", "创建"),
            self.pick("used", "最近使用"),
            self.pick("state", "状态"),
        ]
    }

    /// State of a key.
    pub(crate) fn key_state(self, revoked: bool, expires: Option<&str>, expired: bool) -> String {
        match (revoked, expires) {
            (true, _) => self.pick("revoked", "已作废"),
            (false, Some(_)) if expired => self.pick("expired", "已过期"),
            (false, Some(until)) => self.pick(format!("until {until}"), format!("有效至 {until}")),
            (false, None) => self.pick("valid", "有效"),
        }
    }

    /// `doctor`: the server runs.
    pub(crate) fn doctor_serves(self, url: &str) -> String {
        self.pick(format!("throughline serves {url}"), format!("throughline 正在服务：{url}"))
    }

    /// `doctor`: the server runs and takes no turns.
    pub(crate) fn doctor_serves_not(self, url: &str, why: &str) -> String {
        self.pick(
            format!("throughline at {url} does not accept turns now: {why}"),
            format!("{url} 上的 throughline 目前不接受新回合：{why}"),
        )
    }

    /// `doctor`: it could listen there.
    pub(crate) fn doctor_free(self) -> String {
        self.pick("free for `throughline serve`", "空闲，可运行 `throughline serve`")
    }

    /// `doctor`: nobody says where home is.
    pub(crate) fn doctor_no_home(self) -> String {
        self.pick("not set, nor is HOME: turns cannot be stored", "未设置，HOME 也未设置：无法保存回合")
    }

    /// `doctor`: the data folder.
    pub(crate) fn doctor_data_folder(self) -> String {
        self.pick("data folder, writable", "数据目录，可写")
    }

    /// `doctor`: it is not there yet.
    pub(crate) fn doctor_data_folder_later(self) -> String {
        self.pick("data folder, created when needed", "数据目录，需要时创建")
    }

    /// `doctor`: it cannot be used.
    pub(crate) fn doctor_data_folder_closed(self) -> String {
        self.pick("data folder, not writable by this user", "数据目录，当前用户不可写")
    }

    /// `doctor`: name of the line about the disk.
    pub(crate) fn doctor_disk_name(self) -> String {
        self.pick("disk", "磁盘")
    }

    /// `doctor`: room on the disk.
    pub(crate) fn doctor_free_bytes(self, mebibytes: u64) -> String {
        self.pick(format!("{mebibytes} MiB free"), format!("剩余 {mebibytes} MiB"))
    }

    /// `doctor`: too little of it.
    pub(crate) fn doctor_make_room(self) -> String {
        self.pick(
            "below 256 MiB no new turns start: free some space",
            "低于 256 MiB 时不再开始新回合：请释放磁盘空间",
        )
    }

    /// `doctor`: name of the line about the clock.
    pub(crate) fn doctor_clock_name(self) -> String {
        self.pick("clock", "时钟")
    }

    /// `doctor`: no store yet.
    pub(crate) fn doctor_no_store(self) -> String {
        self.pick("does not exist yet; created at the first start", "尚不存在；首次启动时创建")
    }

    /// `doctor`: a store.
    pub(crate) fn doctor_store(self, kibibytes: u64, runs: bool) -> String {
        if runs {
            self.pick(
                format!("{kibibytes} KiB, open in the server"),
                format!("{kibibytes} KiB，服务器正在使用"),
            )
        } else {
            self.pick(format!("{kibibytes} KiB"), format!("{kibibytes} KiB"))
        }
    }

    /// `doctor`: something else lies there.
    pub(crate) fn doctor_bad_store(self) -> String {
        self.pick("is not a SQLite database", "不是 SQLite 数据库")
    }

    /// `doctor`: what helps.
    pub(crate) fn doctor_another_store(self) -> String {
        self.pick(
            "restore a backup there, or set another file as `url` of [store]",
            "请在此恢复备份，或在 [store] 的 `url` 中指定另一个文件",
        )
    }
}
