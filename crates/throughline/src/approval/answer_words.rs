//! Words that answer a question with yes or no, in English and Chinese.

use std::borrow::Cow;
use throughline_engine::ApprovalDecision;

/// A word for yes and one for no in each row. Any other text is neither: a mistaken yes runs a tool, so each
/// accepted form is a row here, and sentences are never parsed.
const YES_AND_NO: &[(&str, &str)] = &[
    ("yes", "no"),
    ("y", "n"),
    ("yeah", "nope"),
    ("yes please", "no thanks"),
    ("ok", "not ok"),
    ("okay", "not okay"),
    ("sure", "don't"),
    ("go ahead", "do not"),
    ("approve", "deny"),
    ("approved", "denied"),
    ("allow", "reject"),
    ("confirm", "cancel"),
    ("是", "否"),
    ("是的", "不是"),
    ("对", "不对"),
    ("好", "不"),
    ("好的", "不好"),
    ("行", "不行"),
    ("可以", "不可以"),
    ("同意", "不同意"),
    ("允许", "不允许"),
    ("批准", "不批准"),
    ("确认", "取消"),
    ("确定", "拒绝"),
    ("没问题", "不要"),
];

/// Punctuation after an answer that does not change it. The question mark is not included, for `ok?` is a
/// question; neither are marks of an unfinished answer, as in `ok…`, `yes -` and `sure,`.
const MARKS: &[char] = &['.', '!', '。', '｡', '~', '\u{203c}', '❗', '❕', '\u{fe0e}', '\u{fe0f}'];
/// Marks that trail off where there are several.
const SINGLE_MARKS: &[char] = &['.', '。', '｡', '~'];

/// The decision of an answer that consists of a yes or a no only.
///
/// Case, width of the letters, white space, and stops and exclamation marks after the word do not count.
pub fn decision_in_words(text: &str) -> Option<ApprovalDecision> {
    let plain: String = text.chars().map(half_width).collect::<String>().to_lowercase();
    let plain = plain.trim();
    let answer = plain.trim_end_matches(|c: char| c.is_whitespace() || MARKS.contains(&c));
    let marks = &plain[answer.len()..];
    if marks.matches(SINGLE_MARKS).count() > 1 || answer.ends_with(',') {
        return None;
    }
    // A comma between words counts as a space.
    let words: Vec<&str> = answer.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let words: Cow<'_, str> = match words.as_slice() {
        [word] => (*word).into(),
        words => words.join(" ").into(),
    };
    YES_AND_NO.iter().find_map(|(yes, no)| {
        if words == *yes {
            Some(ApprovalDecision::Approve)
        } else {
            (words == *no).then_some(ApprovalDecision::Deny)
        }
    })
}

/// Letters and marks of full width as those of ASCII.
fn half_width(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xff01 + u32::from('!')).unwrap_or(c),
        '\u{3000}' => ' ',
        '’' | '‘' => '\'',
        '〜' => '~',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yes_and_no_words_decide_and_match_the_documents() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openai-clients.md");
        let page = std::fs::read_to_string(page).unwrap();
        let listed = |start: &str| -> Vec<String> {
            let row = page.lines().find(|line| line.starts_with(start)).unwrap_or_default();
            row.split('`').skip(1).step_by(2).map(str::to_owned).collect()
        };
        let (yes, no): (Vec<&str>, Vec<&str>) = YES_AND_NO.iter().copied().unzip();
        assert_eq!(listed("| yes |"), yes);
        assert_eq!(listed("| no |"), no);
        for (word, decision) in yes
            .iter()
            .map(|word| (word, ApprovalDecision::Approve))
            .chain(no.iter().map(|word| (word, ApprovalDecision::Deny)))
        {
            assert_eq!(decision_in_words(word), Some(decision), "{word}");
        }
    }

    #[test]
    fn plain_punctuation_is_ignored_and_doubtful_is_rejected() {
        for mark in ["！", "。", "．", "～", ".", "!", "~", "！！", " 。\n", "\u{3000}", "‼\u{fe0f}", "❗️"]
        {
            for (word, decision) in [
                ("好", ApprovalDecision::Approve),
                ("yes", ApprovalDecision::Approve),
                ("不行", ApprovalDecision::Deny),
            ] {
                for text in [format!("{word}{mark}"), format!(" {word} {mark} ")] {
                    assert_eq!(decision_in_words(&text), Some(decision), "{text:?}");
                }
            }
        }
        for mark in
            ["?", "？", "!?", "⁉", "？！", "??", "…", "……", "...", "。。", " -", "—", ",", "，", "、", "~~"]
        {
            assert_eq!(decision_in_words(&format!("ok{mark}")), None, "{mark}");
        }
        for mark in ["!", "~", "~~", "-", "#"] {
            assert_eq!(decision_in_words(&format!("{mark}yes")), None, "programmers say no so: {mark}");
        }
    }
}
