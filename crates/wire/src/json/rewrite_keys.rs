//! Other names for the members of an object whose text arrives in pieces.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Longest member name that is held back until it is complete, in bytes of its text; longer ones are never renamed. A name of
/// 64 characters that are all written as `\u…` has 384.
const HELD_NAME_BYTES_MAX: usize = 512;

/// Renames the members of the outermost object of a JSON text, in pieces of any size: everything else passes
/// unchanged, and so does text that is not JSON. Only an incomplete name is held back.
pub(crate) struct KeyRewriter {
    names: Arc<BTreeMap<String, String>>,
    depth: usize,
    state: ReadState,
    /// A name so far, from its quote on.
    held: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadState {
    /// Between tokens; the next text at the outermost level is a name.
    BeforeName,
    /// Between tokens, where a text is a value.
    BeforeValue,
    /// Inside a string.
    Text,
    /// After a backslash in a string.
    TextEscape,
    /// In a name that is held back.
    Name,
    NameEscape,
}

impl KeyRewriter {
    pub(crate) fn new(names: Arc<BTreeMap<String, String>>) -> Self {
        Self { names, depth: 0, state: ReadState::BeforeValue, held: String::new() }
    }

    /// The next piece, renamed as far as it can be decided.
    pub(crate) fn push<'t>(&mut self, piece: &'t str) -> Cow<'t, str> {
        let mut out = String::new();
        // Everything before this is in `out`, once something was renamed or held back.
        let mut done = 0;
        let mut changed = !self.held.is_empty();
        for (at, byte) in piece.bytes().enumerate() {
            match (self.state, byte) {
                (ReadState::Name, b'"') => {
                    self.held.push_str(&piece[done..=at]);
                    done = at + 1;
                    changed = true;
                    let name = std::mem::take(&mut self.held);
                    out.push_str(&self.renamed(name));
                    self.state = ReadState::BeforeValue;
                }
                (ReadState::Name, b'\\') => self.state = ReadState::NameEscape,
                (ReadState::NameEscape, _) => self.state = ReadState::Name,
                (ReadState::Name, _) => {}
                (ReadState::Text, b'"') => self.state = ReadState::BeforeValue,
                (ReadState::Text, b'\\') => self.state = ReadState::TextEscape,
                (ReadState::TextEscape, _) => self.state = ReadState::Text,
                (ReadState::Text, _) => {}
                (ReadState::BeforeName, b'"') if self.depth == 1 => {
                    out.push_str(&piece[done..at]);
                    done = at;
                    changed = true;
                    self.state = ReadState::Name;
                }
                (_, b'"') => self.state = ReadState::Text,
                (_, b'{') => {
                    self.depth += 1;
                    self.state = ReadState::BeforeName;
                }
                (_, b'[') => {
                    self.depth += 1;
                    self.state = ReadState::BeforeValue;
                }
                (_, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    self.state = ReadState::BeforeValue;
                }
                (_, b',') if self.depth == 1 => self.state = ReadState::BeforeName,
                _ => {}
            }
        }
        if matches!(self.state, ReadState::Name | ReadState::NameEscape) {
            self.held.push_str(&piece[done..]);
            changed = true;
            if self.held.len() > HELD_NAME_BYTES_MAX {
                out.push_str(&std::mem::take(&mut self.held));
                let escaped = self.state == ReadState::NameEscape;
                self.state = if escaped { ReadState::TextEscape } else { ReadState::Text };
            }
        } else if changed {
            out.push_str(&piece[done..]);
        }
        if changed { Cow::Owned(out) } else { Cow::Borrowed(piece) }
    }

    /// The text that was held back: the beginning of a name that never ended.
    pub(crate) fn finish(&mut self) -> String {
        self.depth = 0;
        self.state = ReadState::BeforeValue;
        std::mem::take(&mut self.held)
    }

    /// A complete name with its quotes.
    fn renamed(&self, quoted: String) -> String {
        let name: Option<String> = serde_json::from_str(&quoted).ok();
        match name.and_then(|name| self.names.get(&name)) {
            Some(name) => serde_json::Value::from(name.as_str()).to_string(),
            None => quoted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names() -> Arc<BTreeMap<String, String>> {
        let pairs = [("filter_app_", "filter[app]"), ("argument_2", "城市"), ("q", "a\"b")];
        Arc::new(pairs.map(|(wire, own)| (wire.to_owned(), own.to_owned())).into())
    }

    fn rewrite(pieces: &[&str]) -> String {
        let mut rewriter = KeyRewriter::new(names());
        let mut out: String = pieces.iter().map(|piece| rewriter.push(piece).into_owned()).collect();
        out.push_str(&rewriter.finish());
        out
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(rewrite(&[text]), expected, "{text}");
        let single: Vec<String> = text.chars().map(String::from).collect();
        let single: Vec<&str> = single.iter().map(String::as_str).collect();
        assert_eq!(rewrite(&single), expected, "{text}, character by character");
    }

    #[test]
    fn only_members_of_the_outermost_object_are_renamed() {
        check(r#"{"filter_app_":"x","argument_2":1}"#, r#"{"filter[app]":"x","城市":1}"#);
        check(
            r#"{ "q" : {"q":1}, "r":["q",{"q":2}], "q":3}"#,
            r#"{ "a\"b" : {"q":1}, "r":["q",{"q":2}], "a\"b":3}"#,
        );
        check(r#"{"r":"q","s":"\"q\":1,"}"#, r#"{"r":"q","s":"\"q\":1,"}"#);
        check(r#"{"filter\u005fapp_":"x"}"#, r#"{"filter[app]":"x"}"#);
        check(r#"{"r\"":1,"q":2}"#, r#"{"r\"":1,"a\"b":2}"#);
        check(r#"[{"q":1}]"#, r#"[{"q":1}]"#);
        check(r#""q""#, r#""q""#);
    }

    #[test]
    fn invalid_or_truncated_json_passes_unchanged() {
        for text in ["", "q", r#"{"q"#, r#"{"filter_app_\"#, r#"}}{"#, r#"{"r":"q"#] {
            check(text, text);
        }
        let long = format!(r#"{{"{}":1,"#, "q".repeat(HELD_NAME_BYTES_MAX * 2));
        check(&format!(r#"{long}"q":2}}"#), &format!(r#"{long}"a\"b":2}}"#));
    }

    proptest! {
        #[test]
        fn rewriting_is_independent_of_cuts(
            text in r#"[{}\[\]",:\\ a-c]{0,40}|(\{("q"|"filter_app_"|"r"):("q"|1|\{"q":2\}),?){1,3}\}"#,
            cuts in proptest::collection::vec(0_usize..60, 0..6),
        ) {
            let whole = rewrite(&[&text]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
            prop_assert_eq!(rewrite(&pieces), whole);
        }
    }
}
