//! What `replay`, `history`, `export` and `import` say.

use super::words::{Lang, Words, words};
use crate::exit::Failure;
use crate::plain::short;
use std::fmt;
use std::path::Path;
use throughline::{Again, DecodedAgain};
use throughline_server::portable::LineError;
use throughline_store::StoreError;

words! {
    history_none: "no calls", "没有调用记录";
    history_no_turns: "no turns", "没有回合";
    replay_event: "event", "事件";
    replay_keys: "←/→ one event · PgUp/PgDn ten · Home/End · q leaves", "←/→ 前后一个事件 · PgUp/PgDn 十个 · Home/End 首尾 · q 退出";
}

/// The store cannot be looked into.
pub fn store_unreadable(file: &Path, error: &StoreError) -> Failure {
    let remedy = "--store FILE names another one; --from FILE takes the output of `throughline ask --events`";
    Failure::usage(format!("the store {} cannot be read", file.display()), error.to_string(), remedy)
}

/// Nothing has been run yet.
pub fn store_empty(file: &Path) -> Failure {
    Failure::usage(format!("there is no turn in {}", file.display()), "", "")
}

/// No turn of this name.
pub fn no_such_turn(turn: &str, file: &Path, latest: &[String]) -> Failure {
    let what = format!("there is no turn `{turn}` in {}", file.display());
    let remedy =
        if latest.is_empty() { String::new() } else { format!("the latest are {}", latest.join(", ")) };
    Failure::usage(what, "", remedy)
}

/// A file without a line.
pub fn replay_nothing() -> Failure {
    Failure::usage("there is no event in it", "", "give the output of `throughline ask --events`")
}

/// A line that is no event.
pub fn replay_no_event(line: u64, error: &serde_json::Error) -> Failure {
    Failure::usage(format!("line or record {line} is no event"), error.to_string(), "one JSON object a line")
}

/// `--at` outside of the turn.
pub fn replay_no_such_event(seq: u64, last: u64) -> Failure {
    Failure::usage(format!("the turn has no event {seq}"), "", format!("give a number from 1 to {last}"))
}

/// `--speed nonsense`.
pub fn replay_bad_speed(speed: &str) -> Failure {
    Failure::usage(format!("`{speed}` is no speed"), "", "4x, 0.5x or max")
}

/// `--step` into a pipe.
pub fn replay_steps_need_a_terminal() -> Failure {
    Failure::usage(
        "going step by step needs a terminal",
        "",
        "--at SEQ prints the message as it was after one event",
    )
}

/// A file that cannot be read.
pub fn unreadable_file(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("{} cannot be read", path.display()), error.to_string(), "")
}

/// No conversation of this name.
pub fn no_such_conversation(id: &str, file: &Path, latest: &[(String, String)]) -> Failure {
    let what = format!("there is no conversation `{id}` in {}", file.display());
    let lines: String = latest.iter().map(|(id, title)| format!("\n  {id}  {}", short(title))).collect();
    let remedy = if lines.is_empty() { String::new() } else { format!("the latest are{lines}") };
    Failure::usage(what, "", remedy)
}

/// `--leaf` of another conversation.
pub fn no_such_leaf(turn: &str, conversation: &str) -> Failure {
    let remedy = format!("throughline history --turns --conversation {conversation}");
    Failure::usage(format!("there is no turn `{turn}` in the conversation"), "", remedy)
}

/// A file that cannot be written.
pub fn unwritable_file(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("{} cannot be written", path.display()), error.to_string(), "")
}

/// What is in the file is no conversation.
pub fn not_importable(file: &Path, error: &LineError) -> Failure {
    let what = format!("{} cannot be imported", file.display());
    Failure::usage(what, error.to_string(), error.help.clone().unwrap_or_default())
}

/// The store, or its server, does not take it.
pub fn not_imported(why: &dyn fmt::Display) -> Failure {
    Failure::usage("the conversation was not imported", why.to_string(), "")
}

/// A server has the store, and cannot be asked.
pub fn import_in_the_way(why: &dyn fmt::Display, store: &dyn fmt::Display) -> Failure {
    Failure::usage(
        "the conversation cannot be imported now",
        format!("{store}\n  and that server cannot be asked: {why}"),
        "its own API can: POST /v1/conversations/import with the file as the body; or stop it for a moment",
    )
}

/// Nobody kept the bytes.
pub fn replay_nothing_kept(turn: &str) -> Failure {
    let remedy = "keep_raw = \"on\" in [store] keeps those of the turns to come";
    Failure::usage(format!("no bytes of an upstream are kept of turn `{turn}`"), "", remedy)
}

/// What is needed to read the bytes is not understood.
pub fn replay_unknown_turn(turn: &str, why: &dyn fmt::Display) -> Failure {
    Failure::usage(format!("turn `{turn}` cannot be decoded again"), why.to_string(), "")
}

impl Words {
    /// One answer of an upstream, decoded again.
    pub fn decoded_again(self, again: &DecodedAgain) -> String {
        let DecodedAgain { step, attempt, upstream, model, bytes, outcome } = again;
        let outcome = match (outcome, self.0) {
            (Again::Same, Lang::English) => "✔ the same",
            (Again::Same, Lang::Chinese) => "✔ 相同",
            (Again::SameSoFar, Lang::English) => "✔ the same as far as it goes",
            (Again::SameSoFar, Lang::Chinese) => "✔ 现有部分相同",
            (Again::Different(_), Lang::English) => "✘ different (- then, + now)",
            (Again::Different(_), Lang::Chinese) => "✘ 不同（- 当时，+ 现在）",
            (Again::NotInTheLog, Lang::English) => "✘ the log has no such call",
            (Again::NotInTheLog, Lang::Chinese) => "✘ 日志中没有这次调用",
            (Again::HowUnknown, Lang::English) => "✘ not kept how it is to be read",
            (Again::HowUnknown, Lang::Chinese) => "✘ 没有保存解码方式",
        };
        let who = short(&format!("{upstream}/{model}"));
        match self.0 {
            Lang::English => format!("step {step}, attempt {attempt}  {who}  {bytes} bytes  {outcome}\n"),
            Lang::Chinese => format!("步骤 {step}，第 {attempt} 次  {who}  {bytes} 字节  {outcome}\n"),
        }
    }

    /// A conversation was taken in.
    pub fn imported(self, id: &str, title: &str, turns: usize) -> String {
        let (title, s) = (short(title), if turns == 1 { "" } else { "s" });
        match self.0 {
            Lang::English => format!("{id}  {title}  ({turns} turn{s})\n"),
            Lang::Chinese => format!("{id}  {title}（{turns} 个回合）\n"),
        }
    }
}
