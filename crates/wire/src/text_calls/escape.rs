//! Data that contains the markers of a text protocol: one function each way.
//!
//! Where a marker could begin, a tilde is put into it: `<<<[` becomes `<<<~[`, and a marker that already has
//! tildes gets one more. So the change is the smallest reversible one, and apparent escapes in the data
//! survive.

use std::borrow::Cow;

/// Beginning of a protocol's markers: `before`, directly followed by one of `after` (in any case).
pub(super) struct MarkerPrefix {
    pub(super) before: &'static str,
    pub(super) after: &'static [&'static str],
}

/// The data with one more tilde in every beginning of a marker.
pub(super) fn escape<'t>(prefixes: &[MarkerPrefix], data: &'t str) -> Cow<'t, str> {
    rewrite(prefixes, data, |out, tildes| {
        out.push('~');
        out.push_str(tildes);
        true
    })
}

/// The text with one tilde less in every beginning of a marker that has one.
pub(super) fn unescape<'t>(prefixes: &[MarkerPrefix], text: &'t str) -> Cow<'t, str> {
    if memchr::memchr(b'~', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    rewrite(prefixes, text, |out, tildes| {
        let rest = tildes.strip_prefix('~');
        out.push_str(rest.unwrap_or_default());
        rest.is_some()
    })
}

/// Passes the tildes of each marker to `change`, which writes others and returns true if they differ.
fn rewrite<'t>(
    prefixes: &[MarkerPrefix],
    text: &'t str,
    mut change: impl FnMut(&mut String, &str) -> bool,
) -> Cow<'t, str> {
    let mut out = String::new();
    let (mut copied, mut changed) = (0, false);
    for (at, c) in text.char_indices() {
        let from = at + c.len_utf8();
        if !matches!(c, '<' | '「' | '{') {
            continue;
        }
        let tildes = text[from..].len() - text[from..].trim_start_matches('~').len();
        let rest = &text[from + tildes..];
        let is_marker = prefixes.iter().any(|prefix| {
            text[..from].ends_with(prefix.before) && prefix.after.iter().any(|after| starts_with(rest, after))
        });
        if is_marker {
            out.push_str(&text[copied..from]);
            changed |= change(&mut out, &text[from..from + tildes]);
            copied = from + tildes;
        }
    }
    if !changed {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

fn starts_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Longest `before`, in bytes.
const BEFORE_BYTES_MAX: usize = 3;

/// [`unescape`] for a text that arrives in pieces. One tilde and what follows it are held back, at most as long as a
/// marker's beginning; a text without tildes costs nothing.
#[derive(Debug)]
pub(super) struct StreamUnescaper {
    prefixes: &'static [MarkerPrefix],
    /// Last bytes before the held ones.
    tail: [u8; BEFORE_BYTES_MAX],
    /// Empty, or the beginning that may have begun, with its first tilde and what followed it.
    held: String,
    prefix_index: usize,
}

impl std::fmt::Debug for MarkerPrefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}~{:?}", self.before, self.after)
    }
}

impl StreamUnescaper {
    pub(super) fn new(prefixes: &'static [MarkerPrefix]) -> Self {
        Self { prefixes, tail: [0; BEFORE_BYTES_MAX], held: String::new(), prefix_index: 0 }
    }

    /// True if nothing is held back.
    pub(super) fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// A piece without a tilde was shown as it is; only while idle.
    pub(super) fn record_tail(&mut self, piece: &str) {
        let bytes = piece.as_bytes();
        match bytes.len() {
            0 => {}
            1 => self.tail = [self.tail[1], self.tail[2], bytes[0]],
            2 => self.tail = [self.tail[2], bytes[0], bytes[1]],
            n => self.tail = [bytes[n - 3], bytes[n - 2], bytes[n - 1]],
        }
    }

    /// Takes the next piece.
    pub(super) fn push(&mut self, piece: &str, sink: &mut dyn FnMut(&str)) {
        if piece.is_empty() {
            return;
        }
        if self.is_idle() && memchr::memchr(b'~', piece.as_bytes()).is_none() {
            self.record_tail(piece);
            return sink(piece);
        }
        let mut out = String::with_capacity(piece.len() + self.held.len());
        for c in piece.chars() {
            self.push_char(c, &mut out);
        }
        if !out.is_empty() {
            sink(&out);
        }
    }

    /// Ends the text: the held bytes did not begin a marker. The next piece is a new text.
    pub(super) fn finish(&mut self, sink: &mut dyn FnMut(&str)) {
        if !self.is_idle() {
            sink(&std::mem::take(&mut self.held));
        }
        self.tail = [0; BEFORE_BYTES_MAX];
    }

    fn push_char(&mut self, c: char, out: &mut String) {
        if !self.is_idle() {
            if c == '~' && self.held.len() == 1 {
                return out.push('~');
            }
            self.held.push(c);
            let rest = &self.held[1..];
            let afters = self.prefixes[self.prefix_index].after;
            if afters.iter().any(|after| after.eq_ignore_ascii_case(rest)) {
                out.push_str(rest);
                let rest = std::mem::take(&mut self.held);
                return self.record_tail(&rest);
            }
            if afters.iter().any(|after| starts_with(after, rest)) {
                return;
            }
            self.held.pop();
            out.push_str(&self.held);
            let held = std::mem::take(&mut self.held);
            self.record_tail(&held);
        }
        if c == '~'
            && let Some(of) = self.prefixes.iter().position(|of| self.tail.ends_with(of.before.as_bytes()))
        {
            self.prefix_index = of;
            self.held.push('~');
            return;
        }
        out.push(c);
        self.record_tail(c.encode_utf8(&mut [0; 4]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_calls::{vcp, xml};
    use proptest::prelude::*;

    const ALL: [&[MarkerPrefix]; 2] = [vcp::MARKER_PREFIXES, xml::MARKER_PREFIXES];

    fn unescape_cut(prefixes: &'static [MarkerPrefix], text: &str) -> String {
        let mut out = String::new();
        let mut unescaper = StreamUnescaper::new(prefixes);
        for c in text.chars() {
            unescaper.push(c.encode_utf8(&mut [0; 4]), &mut |piece| out.push_str(piece));
        }
        unescaper.finish(&mut |piece| out.push_str(piece));
        out
    }

    fn check(prefixes: &'static [MarkerPrefix], data: &str, escaped: &str) {
        assert_eq!(escape(prefixes, data), escaped);
        assert_eq!(unescape(prefixes, escaped), data);
        assert_eq!(unescape_cut(prefixes, escaped), data, "{escaped:?} by characters");
    }

    #[test]
    fn escape_adds_a_tilde_to_every_marker() {
        let vcp = vcp::MARKER_PREFIXES;
        check(vcp, "plain ~ text", "plain ~ text");
        check(vcp, "<<<[TOOL_REQUEST]>>>", "<<<~[TOOL_REQUEST]>>>");
        check(vcp, "<<[x", "<<~[x");
        check(vcp, "<<<~~[x", "<<<~~~[x");
        check(vcp, "<[x] a<~[", "<[x] a<~[");
        check(vcp, "「始」a「末」", "「~始」a「~末」");
        check(vcp, "「~末ESCAPE」", "「~~末ESCAPE」");
        check(vcp, "{始}{~末}「内」", "{~始}{~~末}「内」");
        let xml = xml::MARKER_PREFIXES;
        check(xml, "<tool_call>{}</tool_call>", "<~tool_call>{}<~/tool_call>");
        check(xml, "<TOOL_RESPONSE n=1>", "<~TOOL_RESPONSE n=1>");
        check(xml, "<~<tool_x ~<toolx", "<~<~tool_x ~<toolx");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn unescape_reverses_escape(parts in proptest::collection::vec(
            prop_oneof![Just("<"), Just("<<"), Just("~"), Just("["), Just("「"), Just("{"), Just("始"), Just("末」"),
                Just("tool_"), Just("/tool_"), Just("too"), Just("TOOL_call>"), Just("TOOL_REQUEST]>>>"), Just("你"), Just("\n")],
            0..24)
        ) {
            let data = parts.concat();
            for prefixes in ALL {
                let escaped = escape(prefixes, &data);
                prop_assert_eq!(unescape(prefixes, &escaped), data.as_str());
                prop_assert_eq!(unescape_cut(prefixes, &data), unescape(prefixes, &data));
            }
        }
    }
}
