//! Messages of `replay`, `history`, `export` and `import`.

use super::ui_text::{UiLanguage, UiText, words};
use crate::exit::CliFailure;
use crate::plain::one_line;
use std::fmt;
use std::path::Path;
use throughline::{RedecodeOutcome, RedecodedReply};
use throughline_server::portable::LineError;
use throughline_store::StoreError;

words! {
    history_none: "no calls", "没有调用记录";
    history_no_turns: "no turns", "没有回合";
    replay_event: "event", "事件";
    replay_keys: "←/→ one event · PgUp/PgDn ten · Home/End · q quits", "←/→ 前后一个事件 · PgUp/PgDn 十个 · Home/End 首尾 · q 退出";
}

/// The store cannot be looked into.
pub(crate) fn store_unreadable(file: &Path, error: &StoreError) -> CliFailure {
    let remedy = "choose another one with --store FILE, or pass the output of `throughline ask --events` with --from FILE";
    CliFailure::usage(format!("the store {} cannot be read", file.display()), error.to_string(), remedy)
}

/// Nothing has been run yet.
pub(crate) fn store_empty(file: &Path) -> CliFailure {
    CliFailure::usage(format!("there are no turns in {}", file.display()), "", "")
}

/// No turn of this name.
pub(crate) fn no_such_turn(turn: &str, file: &Path, latest: &[String]) -> CliFailure {
    let what = format!("there is no turn `{turn}` in {}", file.display());
    let remedy =
        if latest.is_empty() { String::new() } else { format!("the latest are {}", latest.join(", ")) };
    CliFailure::usage(what, "", remedy)
}

/// A file without a line.
pub(crate) fn replay_nothing() -> CliFailure {
    CliFailure::usage("it contains no events", "", "give the output of `throughline ask --events`")
}

/// A line that is no event.
pub(crate) fn replay_no_event(line: u64, error: &serde_json::Error) -> CliFailure {
    CliFailure::usage(
        format!("line or record {line} is not an event"),
        error.to_string(),
        "one JSON object per line",
    )
}

/// `--at` outside of the turn.
pub(crate) fn replay_no_such_event(seq: u64, last: u64) -> CliFailure {
    CliFailure::usage(format!("the turn has no event {seq}"), "", format!("give a number from 1 to {last}"))
}

/// `--speed nonsense`.
pub(crate) fn replay_bad_speed(speed: &str) -> CliFailure {
    CliFailure::usage(format!("`{speed}` is not a valid speed"), "", "4x, 0.5x or max")
}

/// `--step` into a pipe.
pub(crate) fn replay_steps_need_a_terminal() -> CliFailure {
    CliFailure::usage("--step needs a terminal", "", "--at SEQ prints the message as it was after one event")
}

/// A file that cannot be read.
pub(crate) fn unreadable_file(path: &Path, error: &std::io::Error) -> CliFailure {
    CliFailure::usage(format!("{} cannot be read", path.display()), error.to_string(), "")
}

/// No conversation of this name.
pub(crate) fn no_such_conversation(id: &str, file: &Path, latest: &[(String, String)]) -> CliFailure {
    let what = format!("there is no conversation `{id}` in {}", file.display());
    let lines: String = latest.iter().map(|(id, title)| format!("\n  {id}  {}", one_line(title))).collect();
    let remedy = if lines.is_empty() { String::new() } else { format!("the latest are{lines}") };
    CliFailure::usage(what, "", remedy)
}

/// `--leaf` of another conversation.
pub(crate) fn no_such_leaf(turn: &str, conversation: &str) -> CliFailure {
    let remedy = format!("throughline history --turns --conversation {conversation}");
    CliFailure::usage(format!("there is no turn `{turn}` in the conversation"), "", remedy)
}

/// A file that cannot be written.
pub(crate) fn unwritable_file(path: &Path, error: &std::io::Error) -> CliFailure {
    CliFailure::usage(format!("{} cannot be written", path.display()), error.to_string(), "")
}

/// The file does not contain a conversation.
pub(crate) fn not_importable(file: &Path, error: &LineError) -> CliFailure {
    let what = format!("{} cannot be imported", file.display());
    CliFailure::usage(what, error.to_string(), error.help.clone().unwrap_or_default())
}

/// The store, or its server, does not take it.
pub(crate) fn not_imported(why: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage("the conversation was not imported", why.to_string(), "")
}

/// A server has the store, and cannot be asked.
pub(crate) fn import_in_the_way(why: &dyn fmt::Display, store: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        "the conversation cannot be imported now",
        format!("{store}\n  and that server cannot be asked: {why}"),
        "use its API, POST /v1/conversations/import with the file as the body, or stop the server for a moment",
    )
}

/// Nobody kept the bytes.
pub(crate) fn replay_no_raw_bytes(turn: &str) -> CliFailure {
    let remedy = "keep_raw = \"on\" in [store] stores them for future turns";
    CliFailure::usage(format!("no upstream bytes are stored for turn `{turn}`"), "", remedy)
}

pub(crate) fn replay_unknown_turn(turn: &str, why: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(format!("turn `{turn}` cannot be decoded again"), why.to_string(), "")
}

impl UiText {
    /// One answer of an upstream, decoded again.
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
        };
        let who = one_line(&format!("{upstream}/{model}"));
        match self.0 {
            UiLanguage::English => {
                format!("step {step}, attempt {attempt}  {who}  {bytes} bytes  {outcome}\n")
            }
            UiLanguage::Chinese => format!("步骤 {step}，第 {attempt} 次  {who}  {bytes} 字节  {outcome}\n"),
        }
    }

    /// A conversation was taken in.
    pub(crate) fn imported(self, id: &str, title: &str, turns: usize) -> String {
        let (title, s) = (one_line(title), if turns == 1 { "" } else { "s" });
        match self.0 {
            UiLanguage::English => format!("{id}  {title}  ({turns} turn{s})\n"),
            UiLanguage::Chinese => format!("{id}  {title}（{turns} 个回合）\n"),
        }
    }
}
