//! What is in the store: made by a rule, so that each search has the hits that it should have.

use serde_json::{Value, json};

/// In every turn.
pub const COMMON: &str = "common";
/// In one turn of all.
pub const RARE: &str = "needle4711";
/// In one turn of a hundred, with a blank between two words.
pub const TWO_WORDS: &str = "violet zebra";
/// In one turn of seven.
pub const CHINESE: &str = "天氣";
/// In none.
pub const ABSENT: &str = "qqxyzzyqq";
/// In none, and each of its trigrams is in every long turn.
pub const ABSENT_OF_COMMON: &str = "the common answers of the common";
/// In none, and shorter than a trigram.
pub const ABSENT_SHORT: &str = "龘";

/// Characters of a long answer.
const LONG_CHARS: usize = 30_000;

const WORDS: [&str; 24] = [
    "the", "answer", "of", "weather", "in", "and", "with", "a", "light", "breeze", "from", "north", "while",
    "rivers", "answers", "carry", "what", "falls", "on", "hills", "to", "sea", "again", "common",
];

/// The messages of some turns, of all that there are; every `long_every`th is a long one.
pub fn messages(turns: std::ops::Range<u64>, all: u64, long_every: u64) -> Value {
    let mut messages = Vec::new();
    for n in turns {
        let (input, answer) = turn(n, all, long_every);
        messages.push(json!({"role": "user", "content": input}));
        messages.push(json!({"role": "assistant", "content": answer}));
    }
    json!({ "messages": messages })
}

fn turn(n: u64, all: u64, long_every: u64) -> (String, String) {
    let mut input = format!("A common question, number T={n}");
    // Far from both ends, so that neither walk finds it by luck.
    if n == all / 3 {
        input.push_str(" with needle4711 in it");
    }
    if n % 100 == 50 {
        input.push_str(" about a violet zebra");
    }
    if n % 7 == 3 {
        input.push_str("，今天天氣如何？");
    }
    let mut answer = format!("The common answer to T={n}: sunny.");
    if n.is_multiple_of(long_every) {
        let mut number = n + 1;
        while answer.len() < LONG_CHARS {
            // A linear congruence (Knuth): any will do, if it is the same each time.
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            answer.push(' ');
            answer.push_str(WORDS[(number >> 33) as usize % WORDS.len()]);
        }
    }
    (input, answer)
}

/// A text as a part of an address.
pub fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
