//! Text for people holds nothing that is not seen, and what a person decides by is exactly what runs.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use throughline_wire::display_escape;

#[derive(Deserialize)]
struct Vectors {
    hidden: Vec<(String, String)>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    about: String,
    text: String,
    value: Option<String>,
    prose: Option<String>,
    exact: Option<String>,
}

/// The page is tested against the same file.
fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../visible.json")).unwrap()
}

#[test]
fn escaped_text_matches_the_vectors() {
    for Case { about, text, value, prose, exact } in vectors().cases {
        let value = value.unwrap_or_else(|| text.clone());
        assert_eq!(display_escape::escape(&text), value, "{about}");
        assert_eq!(display_escape::escape_exact(&text), exact.unwrap_or(value), "{about}");
        assert_eq!(display_escape::escape_prose(&text), *prose.as_ref().unwrap_or(&text), "{about}");
    }
}

#[test]
fn hidden_characters_match_the_table() {
    let code = |hex: &String| u32::from_str_radix(hex, 16).unwrap();
    let ranges: Vec<_> = vectors().hidden.iter().map(|(first, last)| code(first)..=code(last)).collect();
    for char in '\0'..=char::MAX {
        let listed = ranges.iter().any(|range| range.contains(&u32::from(char)));
        assert_eq!(display_escape::is_hidden(char), listed, "U+{:04X}", u32::from(char));
    }
}

/// A literal escape and the character that it denotes are distinguished outside of JSON, too.
#[test]
fn literal_escapes_get_a_doubled_backslash() {
    for (text, shown) in [
        ("a\u{202e}b", "a\\u202eb"),
        ("a\\u202eb", "a\\\\u202eb"),
        ("a\\\u{202e}b", "a\\\\\\u202eb"),
        ("a\\\\u202Eb", "a\\\\\\\\u202Eb"),
        ("\\udb40\\udc41", "\\\\udb40\\\\udc41"),
        ("→\u{fe0f}", "→\\ufe0f"),
        ("C:\\users\\u5317 \\\n", "C:\\users\\u5317 \\\n"),
    ] {
        assert_eq!(display_escape::escape_once(text), shown, "{text:?}");
    }
}

/// A model's text comes in pieces that end anywhere.
#[test]
fn escape_piece_leaves_joiners_at_piece_edges() {
    for (piece, shown) in [
        ("👩\u{200d}", "👩\u{200d}"),
        ("\u{200d}💻", "\u{200d}💻"),
        ("\u{fe0f}", "\u{fe0f}"),
        ("\u{202e}x", "\\u202ex"),
        ("a\u{200d}b", "a\\u200db"),
    ] {
        assert_eq!(display_escape::escape_piece(piece), shown, "{piece:?}");
    }
}

#[test]
fn escaped_json_value_reads_back() {
    let value = json!({"when": "\u{202e}2026-11-24", "n\u{200b}": ["\u{e0041}", "\\u202e", 1.5]});
    let text = display_escape::json(&value);
    let expected = r#"{"when":"\u202e2026-11-24","n\u200b":["\udb40\udc41","\\u202e",1.5]}"#;
    assert_eq!(text, expected);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
}

/// Few letters, so that everything meets everything.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => proptest::sample::select(vec![
            "\\", "\\\\", "u", "202e", "u202e", "\\u200d", "\u{202e}", "\u{200d}", "\u{fe0f}", "\u{20e3}", "1",
            "👩", "❤", "\u{1f3fd}", "م", "क", "\u{94d}", "葛", "\u{e0100}", "\u{e0041}", "\r", "\n", "\t", "\0", "\"",
        ])
        .prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

/// The text back from what [`display_escape::escape_once`] has made of it.
fn read_back(shown: &str) -> String {
    let mut units: Vec<u16> = Vec::new();
    let mut rest = shown;
    while let Some(char) = rest.chars().next() {
        let after = rest.trim_start_matches('\\');
        let count = rest.len() - after.len();
        if count == 0 {
            units.extend(char.encode_utf16(&mut [0; 2]).iter());
            rest = &rest[char.len_utf8()..];
            continue;
        }
        let hex = after.strip_prefix('u').and_then(|hex| hex.get(..4));
        let unit = hex.and_then(|hex| u16::from_str_radix(hex, 16).ok());
        let unit = unit.filter(|unit| char::from_u32((*unit).into()).is_none_or(display_escape::is_hidden));
        let is_kept = |c: char| display_escape::is_hidden(c) && !matches!(c, '\t' | '\n');
        let is_doubled = unit.is_some() || after.starts_with(is_kept);
        units.extend(std::iter::repeat_n(u16::from(b'\\'), if is_doubled { count / 2 } else { count }));
        rest = after;
        if let Some(unit) = unit.filter(|_| count % 2 == 1) {
            units.push(unit);
            rest = &after[5..];
        }
    }
    String::from_utf16(&units).unwrap()
}

proptest! {
    #[test]
    fn escape_leaves_no_hidden_character_and_is_idempotent(text in text()) {
        for shown in [display_escape::escape(&text), display_escape::escape_once(&text)] {
            let mut chars = shown.chars().peekable();
            while let Some(char) = chars.next() {
                let is_needed = match char {
                    '\t' | '\n' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' => true,
                    '\r' => chars.peek() == Some(&'\n'),
                    _ => false,
                };
                prop_assert!(is_needed || !display_escape::is_hidden(char), "{shown:?}");
            }
            prop_assert_eq!(display_escape::escape(&shown), shown.as_ref());
        }
        let prose = display_escape::escape_prose(&text);
        prop_assert_eq!(display_escape::escape_prose(&prose), prose.as_ref());
    }

    #[test]
    fn escape_once_is_injective(text in text()) {
        prop_assert_eq!(read_back(&display_escape::escape_once(&text)), text);
    }

    #[test]
    fn escaped_json_text_is_the_same_value(text in text()) {
        let value = json!({text.clone(): [text]});
        for text in [display_escape::json(&value), display_escape::pretty_json(&value)] {
            prop_assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), &value);
        }
    }
}
