//! Data in which a marker could begin carries a tilde there; one more is one level more.

/// Adds a tilde at each position that `begins` names.
pub(super) fn escape(text: &str, begins: fn(before: &str, after: &str) -> bool) -> String {
    change(text, begins, |tildes| tildes + 1)
}

/// Removes one tilde.
pub(super) fn unescape(text: &str, begins: fn(before: &str, after: &str) -> bool) -> String {
    change(text, begins, |tildes: usize| tildes.saturating_sub(1))
}

/// The first position where a marker begins without a tilde.
pub(super) fn bare(text: &str, begins: fn(before: &str, after: &str) -> bool) -> Option<usize> {
    let offsets = text.char_indices().map(|(at, _)| at);
    offsets.filter(|at| *at > 0).find(|at| begins(&text[..*at], &text[*at..]))
}

fn change(text: &str, begins: fn(&str, &str) -> bool, count: impl Fn(usize) -> usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let tildes = text[at..].bytes().take_while(|byte| *byte == b'~').count();
        if at > 0 && begins(&text[..at], &text[at + tildes..]) {
            out.extend(std::iter::repeat_n('~', count(tildes)));
            at += tildes;
            // The marker may begin with a multi-byte character.
            if let Some(first) = text[at..].chars().next() {
                out.push(first);
                at += first.len_utf8();
            }
        } else {
            out.push(next);
            at += next.len_utf8();
        }
    }
    out
}
