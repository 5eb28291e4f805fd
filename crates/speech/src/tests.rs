//! Work is linear in the length of the text, for texts that invite reading again.

use crate::{SentenceCutter, SentenceLimits, SpeakableFilter};

/// Steps of filter and cutter for a text.
fn work(text: &str) -> (usize, usize) {
    let mut filter = SpeakableFilter::new();
    let mut cutter = SentenceCutter::new(SentenceLimits::default());
    let mut sentences = Vec::new();
    for one in filter.push(text) {
        cutter.push(one, &mut sentences);
    }
    (filter.work(), cutter.work)
}

#[test]
fn work_is_linear_for_unclosed_markup() {
    const REPEATED: usize = 4_000;
    let parts = [
        "`", "`a ", "``a `b ", "[", "[a](", "![", "<a ", "<a b=\"", "<<<[", "$x", "$x ", "\\(", "**a", "_a",
        "- ", "> ", "1. ", "# ", "|", "[1", "[^", "【1", "&a", ":a", "http", "https://", "((", "a](b c ",
        "\n```\n", "<think>", "\"a. ", "a, ", "字", "x", "\u{301}", "-->", "$$", "```x`", "[a]: h",
    ];
    for part in parts {
        let text = part.repeat(REPEATED);
        let characters = text.chars().count();
        let (filter, cutter) = work(&text);
        assert!(filter <= 5 * characters, "{part:?}: {filter} steps for {characters} characters");
        let bytes = text.len();
        assert!(cutter <= 4 * bytes + 1_000, "{part:?}: {cutter} steps of the cutter for {bytes} bytes");
    }
}
