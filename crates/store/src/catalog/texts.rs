//! Texts as every catalog keeps and finds them, so that two databases answer alike.

use super::fold::find_folded;
use crate::error::StoreError;
use std::borrow::Cow;

/// Longest valid id or name, in bytes: no row has a longer one.
pub(crate) const ID_BYTES_MAX: usize = 256;
/// Longest name of a file that is shown, in characters.
pub(crate) const FILE_NAME_CHARS_MAX: usize = 200;
/// Most of an input that becomes a title, in characters.
const AUTO_TITLE_CHARS: usize = 60;
/// Length of an input or an answer in a list, in characters.
pub(crate) const PREVIEW_CHARS: usize = 200;
/// Context of a snippet before and after the hit, in characters.
const SNIPPET_CONTEXT_CHARS: usize = 60;
/// Fewer characters than this are in no index of trigrams.
pub(crate) const TRIGRAM_CHARS: usize = 3;

/// Checks an id or a name that a client chose.
///
/// # Errors
/// It is empty, too long, or has control characters, which no protocol of ours could carry.
pub(crate) fn validate_id(field: &'static str, id: &str) -> Result<(), StoreError> {
    if id.is_empty() {
        return Err(StoreError::invalid(field, "it is empty"));
    }
    if id.len() > ID_BYTES_MAX {
        return Err(StoreError::invalid(field, format!("it is longer than {ID_BYTES_MAX} bytes")));
    }
    if id.chars().any(char::is_control) {
        return Err(StoreError::invalid(field, "it has control characters"));
    }
    Ok(())
}

/// A text without NUL, which PostgreSQL cannot store.
pub(crate) fn replace_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// A title on one line, of at most `chars_max` characters.
pub(crate) fn normalize_title(text: &str, chars_max: usize) -> String {
    truncate_chars(&collapse_whitespace(text), chars_max)
}

/// Title of a conversation from its first input. Files as text (`<file name="…">`) are no words; without any, the first one
/// gives its name.
pub(crate) fn auto_title(input: &str) -> String {
    let input = input.split("\n<file name=\"").next().unwrap_or_default();
    let file = input.strip_prefix("<file name=\"").and_then(|rest| rest.split_once('"'));
    let name = |(name, _): (&str, &str)| {
        name.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    };
    let line = collapse_whitespace(&file.map_or(Cow::Borrowed(input), |file| Cow::Owned(name(file))));
    if line.chars().nth(AUTO_TITLE_CHARS).is_none() {
        return line;
    }
    let words = truncate_chars(&line, AUTO_TITLE_CHARS);
    // Cut within a word only if the words are long or the language has no blanks.
    match words.rfind(' ') {
        Some(blank) if blank > words.len() / 2 => format!("{}…", &words[..blank]),
        _ => format!("{words}…"),
    }
}

/// The beginning of a text as a list shows it.
pub(crate) fn preview(text: &str) -> String {
    truncate_chars(text, PREVIEW_CHARS)
}

/// File name for display. Never a path: only the part after the last separator of any system, without
/// characters that hide text or change its direction.
pub(crate) fn sanitize_file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let shown: String = last.chars().filter(|&c| !c.is_control() && !is_invisible(c)).collect();
    let shown = shown.trim().trim_start_matches('.');
    if shown.is_empty() { "file".to_owned() } else { truncate_file_name(shown) }
}

/// Truncates a long name but preserves its extension.
fn truncate_file_name(name: &str) -> String {
    if name.chars().count() <= FILE_NAME_CHARS_MAX {
        return name.to_owned();
    }
    let ending = name.rfind('.').map(|dot| &name[dot..]).filter(|ending| ending.chars().count() <= 16);
    let ending = ending.unwrap_or_default();
    format!("{}{ending}", truncate_chars(name, FILE_NAME_CHARS_MAX - ending.chars().count()))
}

/// Marks of direction and width: `photo\u{202e}gpj.exe` would look like `photoexe.jpg`.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn collapse_whitespace(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

fn truncate_chars(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}

/// A search text, and how it can be searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SearchTerm {
    /// Long enough for an index of trigrams.
    Indexed(String),
    /// Too short for the index: every text is read.
    Short(String),
    /// Blank: no search term.
    Blank,
    /// A term that no stored text can contain.
    Unmatchable,
}

impl SearchTerm {
    /// Blanks around the text do not count.
    ///
    /// # Errors
    /// The text is longer than `chars_max` characters.
    pub(crate) fn parse(text: &str, chars_max: usize) -> Result<Self, StoreError> {
        let text = text.trim();
        let chars = text.chars().count();
        if chars > chars_max {
            return Err(StoreError::OverLimit { limit: "search_chars_max", max: chars_max as u64 });
        }
        Ok(match chars {
            0 => Self::Blank,
            // Stored texts have no NUL.
            _ if text.contains('\0') => Self::Unmatchable,
            _ if chars < TRIGRAM_CHARS => Self::Short(text.to_owned()),
            _ => Self::Indexed(text.to_owned()),
        })
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Indexed(text) | Self::Short(text) => text,
            Self::Blank | Self::Unmatchable => "",
        }
    }
}

/// The text around the first occurrence of `sought` in `text`, on one line.
pub(crate) fn snippet(text: &str, sought: &str) -> String {
    let at = find_folded(text, sought).unwrap_or_default();
    let before: Vec<char> = text[..at].chars().rev().take(SNIPPET_CONTEXT_CHARS + 1).collect();
    let rest: Vec<char> =
        text[at..].chars().take(sought.chars().count() + SNIPPET_CONTEXT_CHARS + 1).collect();
    let shown = sought.chars().count() + SNIPPET_CONTEXT_CHARS;
    let mut snippet = String::new();
    if before.len() > SNIPPET_CONTEXT_CHARS {
        snippet.push('…');
    }
    snippet.extend(before.iter().take(SNIPPET_CONTEXT_CHARS).rev());
    snippet.extend(rest.iter().take(shown));
    if rest.len() > shown {
        snippet.push('…');
    }
    collapse_whitespace(&snippet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_normalized_and_cut_at_a_word() {
        assert_eq!(normalize_title("  a\n\tb\0c\u{7}  ", 200), "a b c");
        assert_eq!(normalize_title("四個字的題目", 3), "四個字");
        assert_eq!(auto_title("Short enough."), "Short enough.");
        let long = "What is the weather going to be like in Reykjavik on the day after tomorrow?";
        assert_eq!(auto_title(long), "What is the weather going to be like in Reykjavik on the…");
        assert_eq!(auto_title(&"字".repeat(61)), format!("{}…", "字".repeat(60)));
        assert_eq!(auto_title(" \n "), "");
        assert_eq!(auto_title("<file name=\"a &amp; b.csv\">\n1,2\n</file>"), "a & b.csv");
        assert_eq!(auto_title("The mean?\n<file name=\"a.csv\">\n1,2\n</file>"), "The mean?");
        assert_eq!(auto_title("<file name=\"a.csv"), "<file name=\"a.csv");
    }

    #[test]
    fn file_names_are_sanitized_and_never_paths() {
        let check = |given: &str, shown: &str| assert_eq!(sanitize_file_name(given), shown, "{given:?}");
        check("report.pdf", "report.pdf");
        check("../../etc/passwd", "passwd");
        check("C:\\Users\\me\\a.txt", "a.txt");
        check("photo\u{202e}gpj.exe", "photogpj.exe");
        check("a\0b\r\nc.txt", "abc.txt");
        check("..", "file");
        check("", "file");
        check("/", "file");
        check(".bashrc", "bashrc");
        check("報告.pdf", "報告.pdf");
        let long = sanitize_file_name(&format!("{}.pdf", "x".repeat(999)));
        assert_eq!((long.chars().count(), long.ends_with("x.pdf")), (FILE_NAME_CHARS_MAX, true));
    }

    #[test]
    fn snippet_shows_the_match_with_its_context() {
        assert_eq!(snippet("The Quick brown fox", "quick"), "The Quick brown fox");
        assert_eq!(snippet("ЖАРА и жара", "жара"), "ЖАРА и жара");
        let long = format!("{}needle{}", "a".repeat(100), "b".repeat(100));
        assert_eq!(snippet(&long, "NEEDLE"), format!("…{}needle{}…", "a".repeat(60), "b".repeat(60)));
        assert_eq!(snippet("nothing of it", "xyz"), "nothing of it");
        assert_eq!(snippet("", "xyz"), "");
    }

    #[test]
    fn search_terms_are_classified_by_length() {
        let check =
            |text: &str, sought: SearchTerm| assert_eq!(SearchTerm::parse(text, 5), Ok(sought), "{text:?}");
        check("", SearchTerm::Blank);
        check("  \t", SearchTerm::Blank);
        check("a\0bc", SearchTerm::Unmatchable);
        check(" 天氣 ", SearchTerm::Short("天氣".into()));
        check("天氣好", SearchTerm::Indexed("天氣好".into()));
        assert_eq!(
            SearchTerm::parse("sixsix", 5),
            Err(StoreError::OverLimit { limit: "search_chars_max", max: 5 })
        );
    }
}
