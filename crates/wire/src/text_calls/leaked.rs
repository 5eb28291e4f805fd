//! Search for leaked calls: one pass over a text, with every grammar tried at its marker.

use super::call_match::{CallMatch, MatchArguments};
use super::cursor::TextCursor;
use super::markdown::{fence_at, run_length, skip_fence};
use super::protocol::FindingKind;
use super::quotation::QuotationReader;
use super::{
    anthropic_xml, deepseek, dsml, gemma, glm, granite, harmony, hermes, kimi, llama, minimax, mistral,
    pythonic, qwen3_coder, think,
};
use crate::json::JsonRef;
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;

/// A tool call that a server sent as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeakedCall {
    /// The grammar it was written in: `hermes`, `qwen3_coder`, `mistral`, `deepseek`, `dsml`, `kimi`, `glm`, `llama`,
    /// `pythonic`, `harmony`, `minimax`, `anthropic_xml`, `granite` or `gemma`.
    pub format: &'static str,
    /// Name of the tool.
    pub name: String,
    /// The arguments as JSON text, always an object.
    pub arguments: String,
    /// The id, in grammars that have one (Kimi, Mistral).
    pub id: Option<String>,
    /// The bytes of the text that are markup rather than text. Calls of one block share one span.
    pub span: Range<usize>,
}

/// A grammar: reads a block that begins exactly at the cursor. No calls means that this is not a block of
/// this grammar; the cursor is then at the first byte that needs another look (or unchanged).
struct LeakGrammar {
    format: &'static str,
    read: for<'t> fn(&mut TextCursor<'t>) -> Vec<CallMatch<'t>>,
}

/// Several grammars begin with `<tool_call>`; they differ in what follows, so the order decides nothing.
const GRAMMARS: [LeakGrammar; 12] = [
    LeakGrammar { format: "hermes", read: hermes::read },
    LeakGrammar { format: "qwen3_coder", read: qwen3_coder::read },
    LeakGrammar { format: "glm", read: glm::read },
    LeakGrammar { format: "mistral", read: mistral::read },
    LeakGrammar { format: "deepseek", read: deepseek::read },
    LeakGrammar { format: "dsml", read: dsml::read },
    LeakGrammar { format: "kimi", read: kimi::read },
    LeakGrammar { format: "llama", read: llama::read },
    LeakGrammar { format: "harmony", read: harmony::read },
    LeakGrammar { format: "minimax", read: minimax::read },
    LeakGrammar { format: "anthropic_xml", read: anthropic_xml::read },
    LeakGrammar { format: "granite", read: granite::read },
];

/// Finds the tool calls that leaked into a text. `offered` holds the names of the tools the model was offered; calls
/// of others are not reported. If it is empty, every name counts.
///
/// Call it with the joined text of a step, when the step has ended: a marker may be cut anywhere between two deltas.
///
/// ```
/// use throughline_wire::text_calls::find_leaked;
///
/// let text = "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}</tool_call>";
/// assert_eq!(find_leaked(text, &["weather".to_owned()]).len(), 1);
/// assert!(find_leaked(text, &["other".to_owned()]).is_empty(), "only offered tools");
/// ```
pub fn find_leaked(text: &str, offered: &[String]) -> Vec<LeakedCall> {
    let mut search = LeakSearch { text, offered, calls: Vec::new() };
    let body = think::after_leading_blocks(text);
    if !search.search_bare(body) {
        search.scan(body);
    }
    search.calls
}

/// Removes the leaked calls that the server also sent structured, given as `(name, argument text)`: each
/// structured call removes one leaked call of the same name with equal arguments.
pub fn without_structured(leaked: Vec<LeakedCall>, structured: &[(&str, &str)]) -> Vec<LeakedCall> {
    if leaked.is_empty() || structured.is_empty() {
        return leaked;
    }
    let mut sent: Vec<(&str, Value)> =
        structured.iter().map(|(name, arguments)| (clean_name(name), argument_value(arguments))).collect();
    leaked
        .into_iter()
        .filter(|call| {
            let value = argument_value(&call.arguments);
            let at = sent.iter().position(|(name, arguments)| *name == call.name && *arguments == value);
            at.map(|at| sent.swap_remove(at)).is_none()
        })
        .collect()
}

/// The name of a structured call without harmony tokens that leaked into it: `get_weather<|channel|>commentary` is
/// `get_weather` (vllm-project/vllm#31207). A name without them, or with nothing before them, is returned as it is.
pub fn clean_name(name: &str) -> &str {
    match name.split_once("<|") {
        Some((clean, _)) if !clean.trim().is_empty() => clean.trim(),
        _ => name,
    }
}

fn argument_value(text: &str) -> Value {
    let text = if text.trim().is_empty() { "{}" } else { text };
    JsonRef::parse(text).map_or_else(|_| Value::String(text.to_owned()), |json| json.to_value())
}

struct LeakSearch<'t> {
    text: &'t str,
    offered: &'t [String],
    calls: Vec<LeakedCall>,
}

impl<'t> LeakSearch<'t> {
    fn offers(&self, name: &str) -> bool {
        self.offered.is_empty() || self.offered.iter().any(|offered| offered == name)
    }

    fn push_calls(&mut self, format: &'static str, matches: Vec<CallMatch<'t>>, span: Range<usize>) {
        for CallMatch { name, id, arguments } in matches {
            // A word between two tags is evidence only if it names a tool.
            let is_evidence = !(self.offered.is_empty() && matches!(arguments, MatchArguments::Absent));
            if is_evidence && self.offers(&name) {
                let (name, arguments) = (name.into_owned(), arguments.into_text());
                self.calls.push(LeakedCall {
                    format,
                    name,
                    arguments,
                    id: id.map(Cow::into_owned),
                    span: span.clone(),
                });
            }
        }
    }

    /// The grammars without any marker: the reply is a call and nothing else.
    fn search_bare(&mut self, body: usize) -> bool {
        let start = body + (self.text.len() - body - self.text[body..].trim_start().len());
        let mut reader = QuotationReader::default();
        reader.push(&self.text[body..start]);
        if reader.quotation().is_some() {
            return false;
        }
        let (format, matches) = match self.text.as_bytes().get(start) {
            Some(b'{') => ("llama", llama::read_bare(&self.text[start..])),
            Some(b'[') => ("pythonic", pythonic::read_bare(&self.text[start..])),
            _ => return false,
        };
        let any = !matches.is_empty();
        self.push_calls(format, matches, start..self.text.len());
        any
    }

    fn scan(&mut self, body: usize) {
        let mut cursor = TextCursor::new(self.text, body);
        let mut stops = StopFinder::new(self.text);
        let mut reader = QuotationReader::of_whole(self.text);
        reader.seek(body);
        // How far the reader has come.
        let mut read = body;
        let mut values = ValueTags::default();
        let mut quotation = None;
        while let Some(at) = stops.next(cursor.position()) {
            reader.push(&self.text[read..at]);
            if !quotation.is_some_and(is_verbatim) {
                values.pass(&self.text[read..at]);
            }
            read = at;
            cursor.seek(at);
            quotation = reader.quotation();
            match self.text.as_bytes()[at] {
                b'`' | b'~' => {
                    let fence = fence_at(self.text, at).filter(|fence| fence.info == "tool_code");
                    let Some(fence) = fence.filter(|_| quotation.is_none()) else {
                        cursor.seek(at + run_length(self.text.as_bytes(), at));
                        continue;
                    };
                    let matches = gemma::read(self.text, &fence);
                    if matches.is_empty() {
                        cursor.seek(at + run_length(self.text.as_bytes(), at));
                        continue;
                    }
                    read = skip_fence(self.text, &fence);
                    self.push_calls("gemma", matches, at..read);
                    cursor.seek(read);
                    reader.seek(read);
                }
                _ if think::closes_at(self.text, at) => {
                    // The opening tag was in the prompt template: what came before was thinking.
                    if !quotation.is_some_and(is_verbatim) {
                        self.calls.clear();
                    }
                    cursor.seek(at + 1);
                }
                _ if quotation.is_some_and(is_verbatim) => {
                    cursor.seek(at + self.text[at..].chars().next().map_or(1, char::len_utf8));
                }
                _ => {
                    let found = self.try_grammars(&mut cursor);
                    let Some((format, matches)) = found else { continue };
                    let end = cursor.position();
                    let starts_line = reader.is_at_line_start();
                    let is_row = reader.may_begin_row() && self.is_in_row(end);
                    if quotation.is_some() || is_row || values.hold(format, starts_line) {
                        // All of it is part of the example, its quotation marks as well.
                        reader.pass(end - at);
                    } else {
                        self.push_calls(format, matches, at..end);
                        reader.seek(end);
                        values = ValueTags::default();
                    }
                    read = end;
                }
            }
        }
    }

    /// More cells follow on this line.
    fn is_in_row(&self, end: usize) -> bool {
        self.text[end..].lines().next().is_some_and(|rest| rest.contains('|'))
    }

    /// The call that begins at the cursor, which is then after it; otherwise the cursor is at the next byte
    /// to examine.
    fn try_grammars(&self, cursor: &mut TextCursor<'t>) -> Option<(&'static str, Vec<CallMatch<'t>>)> {
        let start = cursor.position();
        let mut resume = start + self.text[start..].chars().next().map_or(1, char::len_utf8);
        for grammar in &GRAMMARS {
            cursor.seek(start);
            let matches = (grammar.read)(cursor);
            if !matches.is_empty() {
                return Some((grammar.format, matches));
            }
            resume = resume.max(cursor.position());
        }
        cursor.seek(resume);
        None
    }
}

/// The tags around values of arguments, and the markers of `vcp`, which no server leaks. After one that never closed, a call
/// may be part of the value: it counts only if it begins a line in the same grammar, as where the model began anew.
#[derive(Default)]
struct ValueTags {
    open: Option<&'static ValueTag>,
}

struct ValueTag {
    opening: &'static str,
    closing: &'static str,
    formats: &'static [&'static str],
}

const VALUE_TAGS: [ValueTag; 5] = [
    ValueTag {
        opening: "<parameter",
        closing: "</parameter>",
        formats: &["qwen3_coder", "minimax", "anthropic_xml"],
    },
    ValueTag {
        opening: concat!("<ant", "ml:parameter"),
        closing: concat!("</ant", "ml:parameter>"),
        formats: &["anthropic_xml"],
    },
    ValueTag { opening: "<[TOOL_REQUEST]", closing: "<[END_TOOL_REQUEST]", formats: &[] },
    ValueTag { opening: "<arg_value>", closing: "</arg_value>", formats: &["glm"] },
    ValueTag { opening: "<|DSML|parameter", closing: "</|DSML|parameter>", formats: &["dsml"] },
];

impl ValueTags {
    fn pass(&mut self, text: &str) {
        for at in memchr::memchr_iter(b'<', text.as_bytes()) {
            let stands = |marker: &str| TextCursor::new(text, at).eat_marker(marker);
            match self.open {
                Some(tag) if stands(tag.closing) => self.open = None,
                Some(_) => {}
                None => self.open = VALUE_TAGS.iter().find(|tag| stands(tag.opening)),
            }
        }
    }

    fn hold(&self, format: &str, starts_line: bool) -> bool {
        self.open.is_some_and(|tag| !(starts_line && tag.formats.contains(&format)))
    }
}

/// True for code blocks and inline code: text in them is never a call.
fn is_verbatim(kind: FindingKind) -> bool {
    matches!(kind, FindingKind::InCodeFence | FindingKind::InInlineCode)
}

/// The positions where anything could begin, found by SIMD search. Each needle's next position is stored, so that the text
/// is searched once for each.
struct StopFinder<'t> {
    text: &'t str,
    next: [Option<usize>; NEEDLES.len()],
}

const NEEDLES: [&str; 5] = ["<", "`", "~~~", mistral::MARKER, harmony::BARE_MARKER];

impl<'t> StopFinder<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, next: NEEDLES.map(|needle| find(text, needle, 0)) }
    }

    fn next(&mut self, at: usize) -> Option<usize> {
        for (needle, next) in NEEDLES.iter().zip(&mut self.next) {
            if next.is_some_and(|next| next < at) {
                *next = find(self.text, needle, at);
            }
        }
        self.next.iter().flatten().min().copied()
    }
}

fn find(text: &str, needle: &str, from: usize) -> Option<usize> {
    memchr::memmem::find(&text.as_bytes()[from..], needle.as_bytes()).map(|at| from + at)
}

#[cfg(test)]
#[path = "leaked_tests.rs"]
mod tests;
