//! Messages of `replay`, `history`, `export` and `import`.

use super::ui_text::{UiLanguage, UiText, tr, words};
use crate::chinese::server_text;
use crate::exit::CliFailure;
use crate::plain::one_line;
use std::fmt;
use std::path::Path;
use throughline::{RedecodeOutcome, RedecodedReply};
use throughline_server::LineError;
use throughline_store::StoreError;

words! {
    history_none: "no calls", "没有调用记录";
    history_no_turns: "no turns", "没有回合";
    replay_event: "event", "事件";
    replay_keys: "←/→ one event · PgUp/PgDn ten · Home/End · q quits", "←/→ 前后一个事件 · PgUp/PgDn 十个 · Home/End 首尾 · q 退出";
}

/// Statuses of calls and of turns in Chinese. In English they are the values of `--status`.
const STATUSES: [(&str, &str); 15] = [
    ("preparing", "准备中"),
    ("queued", "排队中"),
    ("awaiting_approval", "等待批准"),
    ("running", "运行中"),
    ("success", "成功"),
    ("error", "出错"),
    ("denied", "已拒绝"),
    ("cancelled", "已停止"),
    ("timed_out", "超时"),
    ("not_started", "未开始"),
    ("unknown", "结果未知"),
    ("completed", "已完成"),
    ("length", "被截断"),
    ("limit", "达到上限"),
    ("interrupted", "已中断"),
];

/// The status of a call or of a turn in a list.
pub(crate) fn history_status(status: &str) -> String {
    let chinese = STATUSES.iter().find(|(english, _)| *english == status).map(|(_, chinese)| *chinese);
    match UiLanguage::current() {
        UiLanguage::Chinese => chinese.unwrap_or(status).to_owned(),
        UiLanguage::English => status.to_owned(),
    }
}

/// The stored error of a call, `CODE: MESSAGE`, without the code if it repeats the status.
pub(crate) fn history_error(status: &str, error: &str) -> String {
    let is_code = |code: &str| code.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let (code, message) = match error.split_once(": ") {
        Some((code, message)) if is_code(code) => (code, message),
        None if is_code(error) => (error, ""),
        _ => return server_text(error, ""),
    };
    match (code == status, UiLanguage::current()) {
        (true, _) => server_text(message, ""),
        (false, UiLanguage::English) => error.to_owned(),
        (false, UiLanguage::Chinese) => server_text(message, code),
    }
}

/// The store cannot be looked into.
pub(crate) fn store_unreadable(file: &Path, error: &StoreError) -> CliFailure {
    let file = file.display();
    CliFailure::usage(
        tr!("the store {file} cannot be read", "无法读取存储 {file}"),
        error.to_string(),
        tr!(
            "choose another one with --store FILE, or pass the output of `throughline ask --events` with --from FILE",
            "用 --store 指定另一个存储，或用 --from 给出 `throughline ask --events` 的输出文件"
        ),
    )
}

/// A page of the history that is not the last one. Goes to standard error.
pub(crate) fn history_has_more(cursor: &str) -> String {
    tr!("… there are more: --before {cursor}", "…… 还有更多：--before {cursor}")
}

/// `--before` with something that no page has named.
pub(crate) fn bad_cursor(cursor: &str) -> CliFailure {
    let cursor = one_line(cursor);
    CliFailure::usage(
        tr!("`{cursor}` is no place in the list", "`{cursor}` 不是列表中的位置"),
        "",
        tr!("take the one that the page before ends with", "请使用上一页末尾给出的值"),
    )
}

pub(crate) fn store_empty(file: &Path) -> CliFailure {
    let file = file.display();
    CliFailure::usage(
        tr!("there are no turns in {file}", "{file} 中没有回合"),
        "",
        tr!("throughline ask \"Hello\" makes one", "throughline ask \"你好\" 即可产生一个"),
    )
}

pub(crate) fn no_such_turn(turn: &str, file: &Path, latest: &[String]) -> CliFailure {
    let (file, latest) = (file.display(), latest.join(", "));
    let remedy = if latest.is_empty() {
        String::new()
    } else {
        tr!("the latest are {latest}", "最近的有：{latest}")
    };
    CliFailure::usage(tr!("there is no turn `{turn}` in {file}", "{file} 中没有回合 `{turn}`"), "", remedy)
}

/// A file without a line.
pub(crate) fn replay_nothing() -> CliFailure {
    CliFailure::usage(
        tr!("it contains no events", "其中没有事件"),
        "",
        tr!("give the output of `throughline ask --events`", "请给出 `throughline ask --events` 的输出"),
    )
}

/// A line that is no event.
pub(crate) fn replay_no_event(line: u64, error: &serde_json::Error) -> CliFailure {
    CliFailure::usage(
        tr!("line or record {line} is not an event", "第 {line} 行（或第 {line} 条记录）不是事件"),
        error.to_string(),
        tr!("one JSON object per line", "每行一个 JSON 对象"),
    )
}

/// `--at` outside of the turn.
pub(crate) fn replay_no_such_event(seq: u64, last: u64) -> CliFailure {
    CliFailure::usage(
        tr!("the turn has no event {seq}", "这个回合没有第 {seq} 个事件"),
        "",
        tr!("give a number from 1 to {last}", "请给出 1 到 {last} 之间的编号"),
    )
}

/// `--speed nonsense`.
pub(crate) fn replay_bad_speed(speed: &str) -> CliFailure {
    CliFailure::usage(
        tr!("`{speed}` is not a valid speed", "`{speed}` 不是有效的速度"),
        "",
        tr!("4x, 0.5x or max", "4x、0.5x 或 max"),
    )
}

/// `--step` into a pipe.
pub(crate) fn replay_steps_need_a_terminal() -> CliFailure {
    CliFailure::usage(
        tr!("--step needs a terminal", "--step 需要终端"),
        "",
        tr!(
            "--at SEQ prints the message as it was after one event",
            "--at 编号 打印消息在某个事件之后的样子"
        ),
    )
}

/// A file that cannot be read.
pub(crate) fn unreadable_file(path: &Path, error: &std::io::Error) -> CliFailure {
    let path = path.display();
    CliFailure::usage(tr!("{path} cannot be read", "无法读取 {path}"), error.to_string(), "")
}

pub(crate) fn no_such_conversation(id: &str, file: &Path, latest: &[(String, String)]) -> CliFailure {
    let file = file.display();
    let what = tr!("there is no conversation `{id}` in {file}", "{file} 中没有对话 `{id}`");
    let lines: String = latest.iter().map(|(id, title)| format!("\n  {id}  {}", one_line(title))).collect();
    let remedy =
        if lines.is_empty() { String::new() } else { tr!("the latest are{lines}", "最近的有：{lines}") };
    CliFailure::usage(what, "", remedy)
}

/// `--leaf` of another conversation.
pub(crate) fn no_such_leaf(turn: &str, conversation: &str) -> CliFailure {
    let remedy = format!("throughline history --turns --conversation {conversation}");
    let what = tr!("there is no turn `{turn}` in the conversation", "这个对话中没有回合 `{turn}`");
    CliFailure::usage(what, "", remedy)
}

/// A file that cannot be written.
pub(crate) fn unwritable_file(path: &Path, error: &std::io::Error) -> CliFailure {
    let path = path.display();
    CliFailure::usage(tr!("{path} cannot be written", "无法写入 {path}"), error.to_string(), "")
}

/// The file does not contain a conversation.
pub(crate) fn not_importable(file: &Path, error: &LineError) -> CliFailure {
    let file = file.display();
    let what = tr!("{file} cannot be imported", "无法导入 {file}");
    CliFailure::usage(what, error.to_string(), error.help.clone().unwrap_or_default())
}

/// The store, or its server, does not take it.
pub(crate) fn not_imported(why: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(tr!("the conversation was not imported", "对话没有导入"), why.to_string(), "")
}

/// A server has the store open and does not answer.
pub(crate) fn import_in_the_way(why: &dyn fmt::Display, store: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        tr!("the conversation cannot be imported now", "现在无法导入对话"),
        tr!("{store}\n  and that server does not answer: {why}", "{store}\n  而且无法联系该服务器：{why}"),
        tr!(
            "use its API, POST /v1/conversations/import with the file as the body, or stop the server for a moment",
            "请使用它的 API（POST /v1/conversations/import，文件作为请求体），或暂时停止服务器"
        ),
    )
}

/// The raw bytes were not recorded.
pub(crate) fn replay_no_raw_bytes(turn: &str) -> CliFailure {
    CliFailure::usage(
        tr!("no upstream bytes are stored for turn `{turn}`", "没有保存回合 `{turn}` 的上游数据"),
        "",
        tr!(
            "keep_raw = \"on\" in [store] stores them for future turns",
            "[store] 中的 keep_raw = \"on\" 会保存以后的数据"
        ),
    )
}

pub(crate) fn replay_unknown_turn(turn: &str, why: &dyn fmt::Display) -> CliFailure {
    let what = tr!("turn `{turn}` cannot be decoded again", "回合 `{turn}` 无法重新解码");
    CliFailure::usage(what, why.to_string(), "")
}

impl UiText {
    /// One reply of an upstream, decoded again.
    pub(crate) fn decoded_again(self, redecoded: &RedecodedReply) -> String {
        let RedecodedReply { step, attempt, upstream, model, bytes, outcome } = redecoded;
        let outcome = match (outcome, self.0) {
            (RedecodeOutcome::Same, UiLanguage::English) => "✔ the same",
            (RedecodeOutcome::Same, UiLanguage::Chinese) => "✔ 相同",
            (RedecodeOutcome::SamePrefix, UiLanguage::English) => "✔ the same as far as the bytes go",
            (RedecodeOutcome::SamePrefix, UiLanguage::Chinese) => "✔ 现有部分相同",
            (RedecodeOutcome::Different(_), UiLanguage::English) => "✘ different (- then, + now)",
            (RedecodeOutcome::Different(_), UiLanguage::Chinese) => "✘ 不同（- 当时，+ 现在）",
            (RedecodeOutcome::NotInLog, UiLanguage::English) => "✘ not in the log",
            (RedecodeOutcome::NotInLog, UiLanguage::Chinese) => "✘ 日志中没有这次调用",
            (RedecodeOutcome::NoDecodeProfile, UiLanguage::English) => "✘ decode settings were not stored",
            (RedecodeOutcome::NoDecodeProfile, UiLanguage::Chinese) => "✘ 没有保存解码方式",
            (_, UiLanguage::English) => "✘ not compared",
            (_, UiLanguage::Chinese) => "✘ 未比较",
        };
        let who = one_line(&format!("{upstream}/{model}"));
        match self.0 {
            UiLanguage::English => {
                format!("step {step}, attempt {attempt}  {who}  {bytes} bytes  {outcome}\n")
            }
            UiLanguage::Chinese => format!("步骤 {step}，第 {attempt} 次  {who}  {bytes} 字节  {outcome}\n"),
        }
    }

    /// A conversation was imported.
    pub(crate) fn imported(self, id: &str, title: &str, turns: usize) -> String {
        let (title, s) = (one_line(title), if turns == 1 { "" } else { "s" });
        match self.0 {
            UiLanguage::English => format!("{id}  {title}  ({turns} turn{s})\n"),
            UiLanguage::Chinese => format!("{id}  {title}（{turns} 个回合）\n"),
        }
    }
}
