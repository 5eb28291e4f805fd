//! Approval questions at the end of an answer in a chat, and the message that answers them.
//!
//! The user reads them among text of models and tools, and the answer comes back as one more chat message, in
//! a history that the client stores. So only a code authenticates it that occurs in no other text: random,
//! valid once, in the assistant's last message, below the unchanged text of the question.

use serde_json::Value;
use throughline::decision_in_words;
use throughline_engine::ApprovalDecision;
use throughline_wire::{Message, UserPart, display_escape};

/// Prefix of a code. No text of a model or tool reaches a client with it: see [`CodeMasker`].
const MARK: &str = "tlq_";
/// Random bytes of a code: too many to guess.
pub(crate) const CODE_BYTES: usize = 16;
const CODE_CHARS: usize = MARK.len() + 2 * CODE_BYTES;
/// Context of the hash: another use of the same bytes has another hash.
const HASH_CONTEXT: &str = "throughline 2026-11-23 code of a question in a chat";

/// A secret of one use: it answers a question in a chat, or opens its link.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AnswerCode(String);

impl AnswerCode {
    /// The code of these random bytes.
    pub(crate) fn of(random: [u8; CODE_BYTES]) -> Self {
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("{MARK}{digits}"))
    }

    /// A code, if the text is one and nothing else.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(MARK)?;
        let is_code =
            text.len() == CODE_CHARS && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        is_code.then(|| Self(text.to_owned()))
    }

    /// The code as it is shown, once.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Hash of the code, as stored.
    pub(crate) fn hash(&self) -> String {
        blake3::Hasher::new_derive_key(HASH_CONTEXT).update(self.0.as_bytes()).finalize().to_hex().to_string()
    }
}

/// A call that needs approval.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallQuestion {
    /// The key of the answer.
    pub approval_id: String,
    /// Hash of the arguments that the person sees.
    pub arguments_hash: String,
    /// Text of the question.
    pub question: String,
    /// Arguments that the call would run with.
    pub arguments: Value,
}

/// The end of an answer with questions: whole arguments, instructions, a link, and the code as the last word.
pub(crate) fn question_text(questions: &[CallQuestion], link: &str, code: &AnswerCode) -> String {
    let mut out = String::new();
    for CallQuestion { question, arguments, .. } in questions {
        out.push_str(&CodeMasker::default().mask(&super::tool_display::quote_line(question)));
        // A value of JSON has no line that could close the fence.
        out.push_str(&format!("\n\n```json\n{}\n```\n\n", harmless_json(arguments)));
    }
    let run = if questions.len() == 1 { "to run it" } else { "to run all of them" };
    out.push_str(&format!(
        "Answer **yes** {run}, or **no** (**是** / **否**). Any other message is a no, and its reason. \
         [Look at it on the page]({link}) · `{}`",
        code.reveal()
    ));
    out
}

/// Arguments as they are, in JSON that holds no code of ours, and no tag that chat programs fold the rest of an answer for:
/// a character of them is its escape.
fn harmless_json(arguments: &Value) -> String {
    let json = display_escape::pretty_json(arguments).replace(MARK, "tlq\\u005f");
    super::markdown_marks::escape_folding_tags(&json)
}

/// The code at the end of the assistant's last message, if only user messages follow it.
pub(crate) fn last_question(history: &[Message]) -> Option<(AnswerCode, &str)> {
    let last = history.iter().rev().find(|message| !matches!(message, Message::User(_)))?;
    let Message::Step(step) = last else { return None };
    if !step.calls.is_empty() {
        return None;
    }
    let text = step.text.trim_end();
    let end = text.strip_suffix('`')?;
    let (_, code) = end.rsplit_once('`')?;
    Some((AnswerCode::read(code)?, text))
}

/// Text in the form for comparison: all characters except white space, which clients trim and rewrap.
pub(crate) fn normalized(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// True if a text ends with a question of this length and hash.
pub(crate) fn ends_with_question(text: &str, chars: usize, hash: &str) -> bool {
    let text = normalized(text);
    let Some(skip) = text.chars().count().checked_sub(chars) else { return false };
    let question: String = text.chars().skip(skip).collect();
    blake3::hash(question.as_bytes()).to_hex().as_str() == hash
}

/// Reply of a user to a question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum QuestionReply {
    /// A yes or a no without other text.
    Plain(ApprovalDecision),
    /// Anything else: a no, and this is why.
    Words(String),
}

/// Parses the user messages after a question.
pub(crate) fn read_reply<'a>(parts: impl IntoIterator<Item = &'a UserPart>) -> QuestionReply {
    let mut texts = Vec::new();
    let mut is_text = true;
    for part in parts {
        match part {
            UserPart::Text { text } => texts.push(text.as_str()),
            UserPart::Image(_) | UserPart::File { .. } => is_text = false,
        }
    }
    let text = texts.join("\n");
    match decision_in_words(&text).filter(|_| is_text) {
        Some(decision) => QuestionReply::Plain(decision),
        None => QuestionReply::Words(text),
    }
}

/// Removes codes from text for the model: it never sees one, so it cannot repeat one.
pub(crate) fn strip_codes(text: &mut String) {
    if !text.contains(MARK) {
        return;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(MARK) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let is_code = from.get(..CODE_CHARS).and_then(AnswerCode::read).is_some();
        let skip = if is_code { CODE_CHARS } else { MARK.len() };
        out.push_str(&from[..MARK.len()]);
        rest = &from[skip..];
    }
    out.push_str(rest);
    *text = out;
}

/// Removes codes from user messages.
pub(crate) fn strip_codes_in(parts: &mut [UserPart]) {
    for part in parts {
        if let UserPart::Text { text } = part {
            strip_codes(text);
        }
    }
}

/// Replaces every [`MARK`] in a text that arrives in pieces, so that text of models and tools never contains
/// a code.
#[derive(Clone, Debug, Default)]
pub(super) struct CodeMasker {
    /// Length of the prefix of the mark that the text so far ends with.
    matched: usize,
}

impl CodeMasker {
    /// The next piece, harmless.
    pub(super) fn mask(&mut self, text: &str) -> String {
        let mark = MARK.as_bytes();
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            // No proper suffix of the mark is a prefix of it, so one position to compare with suffices.
            let goes_on = mark.get(self.matched).is_some_and(|next| c == char::from(*next));
            self.matched = if goes_on { self.matched + 1 } else { usize::from(c == char::from(mark[0])) };
            if self.matched == mark.len() {
                self.matched = 0;
                out.push('-');
            } else {
                out.push(c);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use throughline_wire::ClosedStep;

    fn code() -> AnswerCode {
        AnswerCode::of([0xab; CODE_BYTES])
    }

    fn asked(arguments: Value) -> String {
        let question = CallQuestion {
            approval_id: "t.1.a1".into(),
            arguments_hash: "h".into(),
            question: "Run note.write? It changes something.".into(),
            arguments,
        };
        question_text(&[question], "http://localhost/approve#x", &code())
    }

    fn step(text: &str) -> Message {
        Message::Step(ClosedStep { text: text.to_owned(), ..ClosedStep::default() })
    }

    fn user(text: &str) -> Message {
        Message::User(vec![UserPart::Text { text: text.to_owned() }])
    }

    #[test]
    fn arguments_are_shown_complete_and_escaped() {
        let text = asked(json!({"path": "a\u{202e}txt.exe\u{200b}", "text": "```\n\n# Hi `x`"}));
        for spelled in ["a\\u202etxt.exe\\u200b", "```\\n\\n# Hi `x`"] {
            assert!(text.contains(spelled), "{text}");
        }
        assert_eq!(text.lines().filter(|line| line.starts_with("```")).count(), 2, "one fence: {text}");
    }

    #[test]
    fn code_is_read_only_from_the_end_of_the_last_answer() {
        let text = asked(json!({}));
        let found = |history: &[Message]| last_question(history).map(|(code, _)| code.reveal().to_owned());
        assert_eq!(found(&[user("Hi"), step(&text)]).as_deref(), Some(code().reveal()));
        assert_eq!(found(&[step(&format!("{text}\n"))]).as_deref(), Some(code().reveal()));
        assert_eq!(found(&[step(&format!("{text} And more"))]), None);
        assert_eq!(found(&[step(&text), step("Another answer")]), None);
        assert_eq!(found(&[user(&text)]), None, "of the user's own");
        assert_eq!(found(&[step("`tlq_ab`")]), None);
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn question_hash_ignores_line_breaks_but_not_content() {
        let text = asked(json!({"path": "a"}));
        let (stored, hash) =
            (normalized(&text), blake3::hash(normalized(&text).as_bytes()).to_hex().to_string());
        let chars = stored.chars().count();
        for same in [text.clone(), format!("Before.\n\n{text}\n"), text.replace('\n', "\r\n")] {
            assert!(ends_with_question(&same, chars, &hash), "{same}");
        }
        for other in [text.replace("\"a\"", "\"b\""), format!("{text}."), text[1..].to_owned(), String::new()]
        {
            assert!(!ends_with_question(&other, chars, &hash), "{other}");
        }
    }

    #[test]
    fn reply_is_approval_denial_or_free_text() {
        let reply = |text: &str| read_reply(&[UserPart::Text { text: text.to_owned() }]);
        for yes in [
            "yes",
            " Yes. ",
            "YES!",
            "y",
            "ｙｅｓ",
            "Yes please!",
            "yes, please",
            "OK",
            "ＯＫ。",
            "okay",
            "Sure!",
            "go ahead",
            "approve",
            "Approved.",
            "是",
            "是的。",
            "好",
            "好的",
            "好~",
            "行",
            "行！",
            "可以",
            "可以！！",
            "同意",
            "确认",
            "确定。",
            "好的\u{ff01}",
            "是的\u{ff0e}",
            "yes\u{ff01}",
            "好❗\u{fe0f}",
            "\u{3000}好\u{3000}",
        ] {
            assert_eq!(reply(yes), QuestionReply::Plain(ApprovalDecision::Approve), "{yes}");
        }
        for no in [
            "no",
            "No.",
            "n",
            "ＮＯ",
            "no thanks",
            "not ok",
            "don't",
            "Don’t!",
            "deny",
            "cancel",
            "否",
            "不",
            "不要",
            "不行!",
            "不行\u{ff01}",
            "不\u{ff0e}",
            "取消",
            "拒绝。",
        ] {
            assert_eq!(reply(no), QuestionReply::Plain(ApprovalDecision::Deny), "{no}");
        }
        for words in [
            "yes, but not this file",
            "yes but only if it is small",
            "yes\nno",
            "ok no",
            "ok, no",
            "no, ok",
            "ok?",
            "ok？",
            "好？",
            "好吗",
            "行不行",
            "可以吗？",
            "ye\u{200b}s",
            "",
            "。",
            "是不是",
            "yesyes",
            "不好说",
            "嗯",
            "可以……",
            "sure...",
            "yes—",
            "!yes",
            "不确定",
            "not sure",
            "sure, why not ask first",
            "好 不",
            "\"yes\"",
            "1",
        ] {
            assert_eq!(reply(words), QuestionReply::Words(words.to_owned()), "{words}");
        }
    }

    #[test]
    fn only_the_code_mark_is_masked_at_every_cut() {
        let text = format!("t tl tlq {} ttlq_ tlqtlq_ 是", code().reveal());
        let whole = CodeMasker::default().mask(&text);
        assert!(!whole.contains(MARK), "{whole}");
        assert_eq!(whole.replace("tlq-", MARK), text);
        for cut in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let mut defuser = CodeMasker::default();
            let pieces = [defuser.mask(&text[..cut]), defuser.mask(&text[cut..])].concat();
            assert_eq!(pieces, whole, "cut at {cut}");
        }
    }

    #[test]
    fn codes_are_stripped_from_text() {
        let mut text = format!("a {} b tlq_ c tlq_{}", code().reveal(), "AB".repeat(16));
        strip_codes(&mut text);
        assert_eq!(text, format!("a tlq_ b tlq_ c tlq_{}", "AB".repeat(16)));
    }
}
