//! Any text in any pieces: the same sentences, no panic, and spans that match the source.

use proptest::prelude::*;
use throughline_speech::{SentenceLimits, Speakable, SpeakableFilter, SpeechText, SpokenSentence, sentences};

/// Markup and words that mean something, so that random texts are full of it.
const PARTS: [&str; 76] = [
    "a",
    "Word",
    "sentence ",
    ". ",
    "。",
    "! ",
    "？",
    ", ",
    "，",
    "\n",
    "\n\n",
    " ",
    "  \n",
    "\t",
    "*",
    "**",
    "_",
    "~~",
    "`",
    "``",
    "```",
    "```\n",
    "~~~\n",
    "[",
    "]",
    "(",
    ")",
    "![",
    "](",
    "https://",
    "x.org",
    "http",
    "www.",
    "<",
    ">",
    "<b>",
    "</b>",
    "<br/>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<<<[TOOL_REQUEST]>>>",
    "<<<[END_TOOL_REQUEST]>>>",
    "<!--",
    "-->",
    "$",
    "$$",
    "\\",
    "\\(",
    "\\)",
    "\\[",
    "\\]",
    "|",
    "|---|",
    "# ",
    "- ",
    "1. ",
    "12",
    "> ",
    "    ",
    "&amp;",
    "&",
    ":tada:",
    ":",
    "[^1]",
    "【3†x】",
    "😀",
    "\u{200d}",
    "\u{301}",
    "中文",
    "“",
    "”",
    "\"",
    "Dr. ",
    "…",
];

fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        8 => (0..PARTS.len()).prop_map(|at| PARTS[at].to_owned()),
        1 => any::<char>().prop_map(String::from),
        1 => "[a-z ]{1,12}",
    ];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

/// The sentences of a text that arrives in pieces of these sizes, in turn.
fn in_pieces(text: &str, sizes: &[usize], limits: SentenceLimits) -> Vec<SpokenSentence> {
    let mut speech = SpeechText::new(limits);
    let mut found = Vec::new();
    let mut rest = text;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let end = rest.char_indices().nth(*size).map_or(rest.len(), |(at, _)| at);
        found.extend(speech.push(&rest[..end]));
        rest = &rest[end..];
    }
    found.extend(speech.finish());
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_the_same_sentences(
        text in text(),
        sizes in prop::collection::vec(1_usize..9, 1..6),
        sentence_width_max in 20_usize..60,
    ) {
        let limits = SentenceLimits { sentence_width_max, ..SentenceLimits::default() };
        prop_assert_eq!(in_pieces(&text, &sizes, limits), sentences(&text, limits));
    }

    #[test]
    fn sentences_are_speakable_ordered_and_within_their_source(text in text(), sentence_width_max in 20_usize..60) {
        let limits = SentenceLimits { sentence_width_max, ..SentenceLimits::default() };
        let mut end = 0;
        for sentence in sentences(&text, limits) {
            prop_assert!(sentence.text.chars().any(char::is_alphanumeric), "{:?}", sentence);
            prop_assert!(!sentence.text.contains(['\n', '\r']), "{:?}", sentence);
            prop_assert_eq!(sentence.text.trim(), &sentence.text);
            // In order, and never the same text twice.
            prop_assert!(sentence.source_bytes.start >= end && sentence.source_bytes.end > sentence.source_bytes.start);
            end = sentence.source_bytes.end;
            prop_assert!(end <= text.len());
            for span in &sentence.spans {
                prop_assert!(span.bytes > 0);
                prop_assert!(sentence.source_bytes.contains(&span.source_byte));
                prop_assert!(span.text_byte + span.bytes <= sentence.text.len());
            }
            for byte in 0..=sentence.text.len() {
                let source = sentence.source_byte_at(byte);
                prop_assert!(sentence.source_bytes.start <= source && source <= sentence.source_bytes.end);
            }
        }
    }

    #[test]
    fn spoken_characters_follow_source_order(text in text()) {
        let mut filter = SpeakableFilter::new();
        let mut spoken = filter.push(&text);
        spoken.extend(filter.finish());
        let mut end = 0;
        for one in spoken {
            if let Speakable::Character { source_byte, source_len, .. } = one {
                prop_assert!(source_byte >= end, "{:?} before {}", one, end);
                prop_assert!(text.is_char_boundary(source_byte));
                end = source_byte + source_len;
                prop_assert!(text.is_char_boundary(end));
            }
        }
    }
}
