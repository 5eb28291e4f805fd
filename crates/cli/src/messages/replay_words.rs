//! What `replay` and `history` say.

use super::words::{Lang, Words, words};
use crate::exit::Failure;
use std::path::Path;

words! {
    replay_event: "event", "事件";
    replay_keys: "←/→ one event · PgUp/PgDn ten · Home/End · q leaves", "←/→ 前后一个事件 · PgUp/PgDn 十个 · Home/End 首尾 · q 退出";
}

/// Neither a turn nor a file.
pub fn replay_of_what() -> Failure {
    Failure::usage(
        "no turn is given",
        "",
        "throughline replay --from events.jsonl, which `throughline ask --events` and GET /v1/turns/ID/events give",
    )
}

/// A file without a line.
pub fn replay_nothing() -> Failure {
    Failure::usage("there is no event in it", "", "give the output of `throughline ask --events`")
}

/// A line that is no event.
pub fn replay_no_event(line: usize, error: &serde_json::Error) -> Failure {
    Failure::usage(format!("line {line} is no event"), error.to_string(), "one JSON object a line")
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
    Failure::usage("going step by step needs a terminal", "", "--at SEQ prints the message as it was after one event")
}

/// A file that cannot be read.
pub fn unreadable_file(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("{} cannot be read", path.display()), error.to_string(), "")
}
