//! Case folding in every script, one character to one character: searches do not depend on the locale of a
//! database.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The character that stands for all its forms in a search: small and capital letters in every script, the
/// two small sigmas of Greek, the two of `i` in Turkish, and letters and digits of full width. One to one, so
/// that an offset in a folded text is the same in the original.
pub(crate) fn fold_char(c: char) -> char {
    match c {
        c if c.is_ascii() => return c.to_ascii_lowercase(),
        // Chinese, Japanese and Korean have no cases: most of a text is answered here.
        '\u{2e80}'..='\u{a63f}' | '\u{ac00}'..='\u{d7ff}' => return c,
        _ => {}
    }
    let c = narrow(c);
    // By way of the capital: it is one for all of `σ`, `ς` and `Σ`. That of `ß` is two letters.
    let mut capital = c.to_uppercase();
    let c = if capital.len() == 1 { capital.next().unwrap_or(c) } else { c };
    c.to_lowercase().next().unwrap_or(c)
}

/// Letters and digits as Japanese and Chinese write them among their own.
fn narrow(c: char) -> char {
    match c {
        '\u{ff10}'..='\u{ff19}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' => {
            char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c)
        }
        _ => c,
    }
}

/// A text whose characters are folded.
pub(crate) fn fold(text: &str) -> String {
    text.chars().map(fold_char).collect()
}

/// Offset of `sought` in `text`, ignoring the case of both.
pub(crate) fn find_folded(text: &str, sought: &str) -> Option<usize> {
    let sought: Vec<char> = sought.chars().map(fold_char).collect();
    let first = *sought.first()?;
    text.char_indices().filter(|&(_, c)| fold_char(c) == first).map(|(at, _)| at).find(|&at| {
        let mut here = text[at..].chars().map(fold_char);
        sought.iter().all(|&c| here.next() == Some(c))
    })
}

/// No letter with two cases is beyond.
const CASED_MAX: u32 = 0x1_ffff;

/// Every character that is folded to another one, with all characters that fold to the same.
static FORMS: LazyLock<HashMap<char, String>> = LazyLock::new(|| {
    let mut forms: HashMap<char, String> = HashMap::new();
    for c in (0..=CASED_MAX).filter_map(char::from_u32) {
        let folded = fold_char(c);
        if folded != c {
            forms.entry(folded).or_insert_with(|| folded.into()).push(c);
        }
    }
    forms
});

/// A regular expression of PostgreSQL that finds a text in all of its forms. `ILIKE` would fold by the locale of the database.
#[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "no one runs it"))]
pub(crate) fn regex_of_forms(text: &str) -> String {
    let mut pattern = String::new();
    for c in text.chars() {
        if let Some(forms) = FORMS.get(&fold_char(c)) {
            pattern.push('[');
            pattern.push_str(forms);
            pattern.push(']');
        } else {
            if c.is_ascii_punctuation() {
                pattern.push('\\');
            }
            pattern.push(c);
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_folding_is_unicode_aware_and_idempotent() {
        for (text, folded) in [
            ("ПРИВЕТ Ёж", "привет ёж"),
            ("ÉCOLE Ærø", "école ærø"),
            ("ΟΔΟΣ οδος οδοσ", "οδοσ οδοσ οδοσ"),
            ("Straße STRAẞE", "straße straße"),
            ("İstanbul ISPARTA ısparta", "istanbul isparta isparta"),
            ("ՀԱՅԵՐԵՆ", "հայերեն"),
            ("ᲥᲐᲠᲗᲣᲚᲘ", "ქართული"),
            ("ᏣᎳᎩ ꮳꮃꭹ", "ꮳꮃꭹ ꮳꮃꭹ"),
            ("𐐔𐐇𐐝 𞤀𞤁", "𐐼𐐯𐑅 𞤢𞤣"),
            ("ＡＢＣ１２", "abc12"),
            ("ǄUNGLA ǅ", "ǆungla ǆ"),
            ("Kelvin Ångström µ", "kelvin ångström μ"),
            ("天氣，한국어 שלום مرحبا नमस्ते ไทย", "天氣，한국어 שלום مرحبا नमस्ते ไทย"),
        ] {
            assert_eq!(fold(text), folded, "{text}");
            assert_eq!(fold(&fold(text)), folded, "{text}");
        }
    }

    #[test]
    fn find_folded_returns_the_offset_in_the_original() {
        for (text, sought, at) in [
            ("Он сказал ПРИВЕТ", "привет", Some(18)),
            ("привет", "ПРИВЕТ", Some(0)),
            ("à l'ÉCOLE", "école", Some(5)),
            ("İİ ok", "OK", Some(5)),
            ("aab", "AB", Some(1)),
            ("ab", "abc", None),
            ("ab", "", None),
        ] {
            assert_eq!(find_folded(text, sought), at, "{text}: {sought}");
        }
    }

    #[test]
    fn regex_pattern_includes_both_cases_of_every_letter() {
        for c in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let others: Vec<char> = c
                .to_lowercase()
                .chain(c.to_uppercase())
                .filter(|other| fold_char(*other) == fold_char(c))
                .collect();
            let pattern = regex_of_forms(&c.to_string());
            assert!(others.iter().all(|other| pattern.contains(*other)), "{c}: {pattern}");
        }
        assert_eq!(regex_of_forms("ж* 5"), "[жЖ]\\* [5５]");
    }
}
