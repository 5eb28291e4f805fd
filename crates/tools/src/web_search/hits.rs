//! One hit, cleaned: plain text of bounded length with an address that can be opened.

use crate::schema::truncate_chars;
use serde::Serialize;
use throughline_wire::display_escape;

/// Longest title, in characters.
const TITLE_CHARS_MAX: usize = 200;
/// Longest excerpt, in characters.
const SNIPPET_CHARS_MAX: usize = 500;
/// Longest address, in bytes. One that is longer is left out with its hit.
const URL_BYTES_MAX: usize = 2_000;
/// Longest date, in characters.
const DATE_CHARS_MAX: usize = 40;

/// One search result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct SearchHit {
    pub(super) title: String,
    pub(super) url: String,
    pub(super) snippet: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) published: Option<String>,
}

impl SearchHit {
    /// `None` if the address cannot be opened.
    pub(super) fn new(title: &str, url: &str, snippet: &str, published: Option<&str>) -> Option<Self> {
        let parsed = reqwest::Url::parse(url.trim()).ok()?;
        let can_open = matches!(parsed.scheme(), "http" | "https") && parsed.as_str().len() <= URL_BYTES_MAX;
        can_open.then(|| Self {
            title: plain(title, TITLE_CHARS_MAX),
            url: parsed.into(),
            snippet: plain(snippet, SNIPPET_CHARS_MAX),
            published: published.map(|date| plain(date, DATE_CHARS_MAX)).filter(|date| !date.is_empty()),
        })
    }
}

/// The text without markup, in one line, and without invisible characters.
fn plain(text: &str, chars_max: usize) -> String {
    let text = unescape_html(&strip_tags(text));
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let seen: String = line.chars().filter(|c| is_seen(*c)).collect();
    truncate_chars(&display_escape::escape(&seen), chars_max)
}

/// False for characters of no width, which search results are full of and which mean nothing there.
fn is_seen(c: char) -> bool {
    !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        && !c.is_control()
}

/// Services mark the words that were looked for: `<strong>…</strong>`.
fn strip_tags(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        plain.push_str(&rest[..at]);
        let tag = &rest[at..];
        let is_tag = tag[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        match tag.find('>').filter(|_| is_tag) {
            Some(end) => rest = &tag[end + 1..],
            None => {
                plain.push('<');
                rest = &tag[1..];
            }
        }
    }
    plain + rest
}

fn unescape_html(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        let entity = &rest[at + 1..];
        let known = entity
            .find(';')
            .filter(|end| *end <= 8)
            .and_then(|end| Some((entity_char(&entity[..end])?, end)));
        match known {
            Some((c, end)) => {
                plain.push(c);
                rest = &entity[end + 1..];
            }
            None => {
                plain.push('&');
                rest = entity;
            }
        }
    }
    plain + rest
}

fn entity_char(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hit_text_is_plain_and_bounded() {
        for (text, expected) in [
            ("<strong>Rust</strong> &amp; C: 1 &lt; 2", "Rust & C: 1 < 2"),
            ("a < b and c > d &c; &#x27;x&#39; &unknown;", "a < b and c > d &c; 'x' &unknown;"),
            (
                "two\n lines\tand\u{200b} no\u{ad}thing \u{202e}hidden\u{1b}[2J",
                "two lines and nothing hidden[2J",
            ),
            ("你好&nbsp;世界 👩‍🚀", "你好 世界 👩🚀"),
        ] {
            assert_eq!(plain(text, 100), expected, "{text}");
        }
        assert!(plain(&"é".repeat(600), SNIPPET_CHARS_MAX).chars().count() <= SNIPPET_CHARS_MAX + 1);
    }

    #[test]
    fn hits_without_a_valid_http_url_are_dropped() {
        for url in [
            "javascript:alert(1)",
            "ftp://x.org/",
            "no address",
            &format!("https://x.org/{}", "x".repeat(2_000)),
        ] {
            assert_eq!(SearchHit::new("t", url, "s", None), None, "{url}");
        }
        let hit = SearchHit::new("t", " https://x.org/a b ", "s", Some("")).unwrap();
        assert_eq!((hit.url.as_str(), hit.published), ("https://x.org/a%20b", None));
    }
}
