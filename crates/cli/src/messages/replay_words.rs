//! What `replay` and `history` say.

use super::words::{Lang, Words, words};
use crate::exit::Failure;
use std::path::Path;
use throughline_store::StoreError;

words! {
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
