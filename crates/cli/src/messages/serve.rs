//! Messages of `throughline serve`, `throughline keys` and `throughline users`.

use super::ui_text::{UiLanguage, UiText, tr};
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
  throughline keys create --name phone --user ann --models default --turns-per-day 50
  throughline keys list
  throughline keys set 3f9a --turns-per-day none
  throughline keys revoke 3f9a";

/// Long help of `users`.
pub(crate) const USERS_HELP: &str = "\
Conversations, files, agents, remembered answers and history belong to one person. Until a second person is added,
everything is that of the first one, `local`, who looks after the server. If a server has the store open, the change
goes through that server, so there is no need to stop it. docs/people.md explains keys, limits and sign-in.

Examples:
  throughline users add ann
  throughline users add bob --admin --tokens-per-month 5000000
  throughline keys create --name laptop --user ann
  throughline users list
  throughline users set ann --turns-per-day 100
  throughline users remove ann --delete-data";

/// The data folder cannot be made.
pub(crate) fn bad_data_folder(folder: &Path, error: &dyn fmt::Display) -> CliFailure {
    let folder = folder.display();
    CliFailure::usage(
        tr!("the data folder {folder} cannot be used", "数据目录 {folder} 无法使用"),
        error.to_string(),
        tr!(
            "choose a writable folder: THROUGHLINE_DATA=/some/folder",
            "请选择可写的文件夹：THROUGHLINE_DATA=/some/folder"
        ),
    )
}

/// The store cannot be opened. Its error contains the remedy.
pub(crate) fn no_store(error: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(tr!("the store cannot be opened: {error}", "无法打开存储：{error}"), "", "")
}

/// The database cannot be opened. `shown` is its URL without the password.
#[cfg(feature = "postgres")]
pub(crate) fn no_database(shown: &str, error: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        tr!("the database {shown} cannot be opened: {error}", "无法打开数据库 {shown}：{error}"),
        "",
        tr!(
            "check that PostgreSQL runs there, and the address and password in `[store] url`, --store or THROUGHLINE_STORE",
            "请检查那里是否运行着 PostgreSQL，以及 `[store] url`、--store 或 THROUGHLINE_STORE 中的地址和密码"
        ),
    )
}

/// The exporter settings of the environment are invalid.
#[cfg(feature = "otel")]
pub(crate) fn no_collector(why: &str) -> CliFailure {
    CliFailure::usage(
        tr!(
            "traces cannot be sent with these OTEL_EXPORTER_OTLP_… variables: {why}",
            "按这些 OTEL_EXPORTER_OTLP_… 变量无法发送追踪数据：{why}"
        ),
        "",
        tr!(
            "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 (OTLP over HTTP with protobuf), or unset it to send none",
            "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318（OTLP，HTTP + protobuf）；取消设置则不发送"
        ),
    )
}

/// A store that this program was built without.
#[cfg(not(feature = "postgres"))]
pub(crate) fn no_postgres() -> CliFailure {
    CliFailure::usage(
        tr!("this program cannot store turns in PostgreSQL", "此程序不能把回合保存到 PostgreSQL"),
        tr!("it was built without the feature `postgres`", "构建时没有启用 `postgres` 功能"),
        tr!(
            "set `url` of [store] to a file path, or remove it",
            "请把 [store] 的 `url` 设为文件路径，或删除它"
        ),
    )
}

/// The server does not start.
pub(crate) fn cannot_bind(error: &BindError) -> CliFailure {
    CliFailure::usage(error.to_string(), "", error.remedy())
}

/// The first key cannot be made.
pub(crate) fn no_first_key(error: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        tr!("the first key cannot be created", "无法创建首个密钥"),
        error.to_string(),
        tr!("make sure that the data folder is yours and writable", "请确认数据目录属于你且可写"),
    )
}

/// The scope does not exist.
pub(crate) fn no_such_scope(name: &str) -> CliFailure {
    CliFailure::usage(
        tr!("there is no scope `{name}`", "没有权限 `{name}`"),
        "",
        tr!(
            "--scopes chat,tools,agents,admin, or some of them",
            "--scopes chat,tools,agents,admin，或其中几个"
        ),
    )
}

/// No key, or several, begin with this text.
pub(crate) fn which_key(beginning: &str, matches: usize) -> CliFailure {
    let what = match matches {
        0 => tr!("no valid key begins with `{beginning}`", "没有以 `{beginning}` 开头的有效密钥"),
        matches => tr!("{matches} keys begin with `{beginning}`", "有 {matches} 个密钥以 `{beginning}` 开头"),
    };
    CliFailure::usage(what, "", "throughline keys list")
}

/// The server that has the store open does not answer.
pub(crate) fn server_in_the_way(why: &dyn fmt::Display, store: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        tr!("the keys cannot be changed now", "现在无法修改密钥"),
        tr!("{store}\n  and that server does not answer: {why}", "{store}\n  而且无法联系该服务器：{why}"),
        tr!(
            "use its API, POST /v1/keys with a key that has the scope admin, or stop the server for a moment",
            "请用有 admin 权限的密钥调用它的 API（POST /v1/keys），或暂时停止服务器"
        ),
    )
}

/// The server or the store refuses the change.
pub(crate) fn keys_refused(error: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(tr!("the keys were not changed", "密钥没有修改"), error.to_string(), "")
}

/// The server or the store refuses the change.
pub(crate) fn administration_refused(error: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(tr!("nothing was changed", "没有任何修改"), error.to_string(), "")
}

/// The user does not exist.
pub(crate) fn no_such_person(error: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        error.to_string(),
        "",
        tr!(
            "throughline users list; throughline users add NAME",
            "throughline users list；throughline users add 名称"
        ),
    )
}

/// A limit that is no number.
pub(crate) fn no_such_limit(text: &str) -> CliFailure {
    CliFailure::usage(
        tr!("`{text}` is no limit", "`{text}` 不是有效的上限"),
        "",
        tr!("a number, such as 100, or none for no limit", "一个数字，如 100；none 表示不限"),
    )
}

/// A person's turn has no end yet, so not everything could be deleted.
pub(crate) fn turn_unfinished(name: &str) -> CliFailure {
    CliFailure::usage(
        tr!(
            "{name} is removed, but a turn of theirs is not finished, and its conversation is left",
            "已移除 {name}，但有一个回合尚未结束，它的对话仍保留"
        ),
        "",
        tr!(
            "start the server, then: throughline users remove {name} --delete-data",
            "启动服务器，然后运行：throughline users remove {name} --delete-data"
        ),
    )
}

/// Facts that a server prints when it listens.
pub(crate) struct ServeGreeting<'a> {
    /// `http://127.0.0.1:8787`.
    pub(crate) url: &'a str,
    /// Value after `#sign-in=` in a link that signs one browser in.
    pub(crate) sign_in: Option<String>,
    /// The key, if it was made just now.
    pub(crate) key: Option<String>,
    /// File of the first key, if it still exists.
    pub(crate) key_file: Option<&'a Path>,
    /// True if requests need no key.
    pub(crate) open: bool,
    /// `name → model`.
    pub(crate) agents: Vec<String>,
    /// Number of tools.
    pub(crate) tools: usize,
    /// Location of the store.
    pub(crate) store: String,
    /// Turns that were resumed.
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
            let (english, chinese) = if at == 0 { ("agents", "智能体") } else { ("", "") };
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
            // Can be pasted unchanged, and the key is not on the screen.
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

    /// A shutdown was requested.
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

    pub(crate) fn no_keys(self) -> String {
        self.pick(
            "no keys yet: throughline keys create --name NAME\n",
            "还没有密钥：throughline keys create --name 名称\n",
        )
    }

    /// Heads of the list.
    pub(crate) fn key_columns(self) -> [String; 9] {
        [
            self.pick("id", "编号"),
            self.pick("user", "用户"),
            self.pick("name", "名称"),
            self.pick("scopes", "权限"),
            self.pick("created", "创建"),
            self.pick("used", "最近使用"),
            self.pick("turns", "回合"),
            self.pick("models", "模型"),
            self.pick("state", "状态"),
        ]
    }

    /// A key that may use all models.
    pub(crate) fn all_models(self) -> String {
        self.pick("all", "全部")
    }

    /// A key was changed.
    pub(crate) fn key_changed(self, id: &str, name: &str) -> String {
        self.pick(format!("{id} ({name}) is changed\n"), format!("{id}（{name}）已修改\n"))
    }

    /// A person was added.
    pub(crate) fn user_added(self, name: &str) -> String {
        self.pick(
            format!("{name} is added. Next: throughline keys create --name laptop --user {name}\n"),
            format!("已添加 {name}。接下来：throughline keys create --name laptop --user {name}\n"),
        )
    }

    /// Confirms a removed user, from the API's answer.
    pub(crate) fn user_removed(self, removed: &serde_json::Value) -> String {
        let name = removed["name"].as_str().unwrap_or_default();
        let number = |value: &serde_json::Value| value.as_u64().unwrap_or_default();
        let keys = number(&removed["keys_revoked"]);
        let deleted = &removed["deleted"];
        if deleted.is_null() {
            return self.pick(
                format!(
                    "{name} is removed; keys revoked: {keys}. Conversations and files stay:\n  throughline users add \
                     {name}                    brings {name} back\n  throughline users remove {name} --delete-data   \
                     deletes them for good\n"
                ),
                format!(
                    "已移除 {name}；作废密钥 {keys} 个。对话和文件仍保留：\n  throughline users add {name}   恢复\n  \
                     throughline users remove {name} --delete-data   彻底删除\n"
                ),
            );
        }
        let [conversations, turns, files] =
            ["conversations", "turns", "files"].map(|what| number(&deleted[what]));
        self.pick(
            format!(
                "{name} is removed; keys revoked: {keys}; deleted: {conversations} conversations, {turns} turns, \
                 {files} files\n"
            ),
            format!("已移除 {name}；作废密钥 {keys} 个；已删除 {conversations} 个对话、{turns} 个回合、{files} 个文件\n"),
        )
    }

    /// Heads of the list of people.
    pub(crate) fn user_columns(self) -> [String; 6] {
        [
            self.pick("name", "名称"),
            self.pick("role", "角色"),
            self.pick("added", "添加"),
            self.pick("turns", "回合"),
            self.pick("tokens", "Token"),
            self.pick("state", "状态"),
        ]
    }

    /// Role of a person.
    pub(crate) fn user_role(self, is_admin: bool) -> String {
        if is_admin { self.pick("admin", "管理员") } else { self.pick("user", "用户") }
    }

    /// State of a person.
    pub(crate) fn user_state(self, removed: Option<&str>) -> String {
        match removed {
            None => self.pick("active", "有效"),
            Some(at) => self.pick(format!("removed {at}"), format!("{at} 已移除")),
        }
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

    /// `doctor`: the home folder is unknown.
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
