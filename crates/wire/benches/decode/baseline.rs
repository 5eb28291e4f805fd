//! Decoders that do less, for comparison. They know one shape of Chat Completions and handle no errors.

use crate::workload::ExpectedReply;
use serde::Deserialize;
use std::borrow::Cow;

/// A baseline decoder, fed with pieces.
pub struct BaselineDecoder {
    kind: BaselineKind,
    /// The line that has begun.
    line: Vec<u8>,
    answer: ExpectedReply,
}

enum BaselineKind {
    /// Copies each byte once.
    Copy(Vec<u8>),
    /// Finds the payloads and counts their bytes.
    Lines(usize),
    /// An event that equals the one before, up to the one string that changes and after it, has the same structure
    /// by JSON's grammar: only that string is checked and unescaped. Anything else is parsed.
    Memo([Option<EventMemo>; 2]),
    /// Parses every event to owned structs.
    Straight,
}

/// The text around the string that changes, and the position of the string.
struct EventMemo {
    before: Vec<u8>,
    after: Vec<u8>,
    target: MemoTarget,
}

#[derive(Clone, Copy)]
enum MemoTarget {
    Text,
    Arguments(usize),
}

#[derive(Deserialize)]
struct BorrowedChunk<'a> {
    #[serde(borrow)]
    choices: Vec<BorrowedChoice<'a>>,
}

#[derive(Deserialize)]
struct BorrowedChoice<'a> {
    #[serde(borrow, default)]
    delta: BorrowedDelta<'a>,
}

#[derive(Deserialize, Default)]
struct BorrowedDelta<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<BorrowedToolCall<'a>>>,
}

#[derive(Deserialize)]
struct BorrowedToolCall<'a> {
    #[serde(default)]
    index: usize,
    #[serde(borrow, default)]
    function: Option<BorrowedFunction<'a>>,
}

#[derive(Deserialize)]
struct BorrowedFunction<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct OwnedChunk {
    #[expect(dead_code, reason = "parsed as any client would")]
    id: Option<String>,
    #[expect(dead_code, reason = "parsed as any client would")]
    model: Option<String>,
    choices: Vec<OwnedChoice>,
}

#[derive(Deserialize)]
struct OwnedChoice {
    #[serde(default)]
    delta: OwnedDelta,
}

#[derive(Deserialize, Default)]
struct OwnedDelta {
    content: Option<String>,
    tool_calls: Option<Vec<OwnedCall>>,
}

#[derive(Deserialize)]
struct OwnedCall {
    #[serde(default)]
    index: usize,
    function: Option<OwnedFunction>,
}

#[derive(Deserialize)]
struct OwnedFunction {
    name: Option<String>,
    arguments: Option<String>,
}

impl BaselineDecoder {
    /// `copy`, `lines`, `memo` or `straight`; anything else does nothing.
    pub fn new(name: &str) -> Self {
        let kind = match name {
            "memo" => BaselineKind::Memo([None, None]),
            "straight" => BaselineKind::Straight,
            "copy" => BaselineKind::Copy(Vec::new()),
            _ => BaselineKind::Lines(0),
        };
        Self { kind, line: Vec::new(), answer: ExpectedReply::default() }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if let BaselineKind::Copy(copy) = &mut self.kind {
            // A window, not the whole: reading and writing once is what is counted.
            if copy.len() > 1 << 20 {
                copy.clear();
            }
            return copy.extend_from_slice(bytes);
        }
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            if self.line.is_empty() {
                read_line(&mut self.kind, &mut self.answer, &bytes[from..end]);
            } else {
                self.line.extend_from_slice(&bytes[from..end]);
                read_line(&mut self.kind, &mut self.answer, &self.line);
                self.line.clear();
            }
            from = end + 1;
        }
        self.line.extend_from_slice(&bytes[from..]);
    }

    /// The result of reading.
    pub fn into_answer(self) -> ExpectedReply {
        match self.kind {
            BaselineKind::Copy(copy) => drop(std::hint::black_box(copy)),
            BaselineKind::Lines(bytes) => drop(std::hint::black_box(bytes)),
            _ => {}
        }
        self.answer
    }
}

fn read_line(kind: &mut BaselineKind, answer: &mut ExpectedReply, line: &[u8]) {
    let Some(payload) = line.strip_prefix(b"data: ").filter(|payload| *payload != b"[DONE]") else { return };
    match kind {
        BaselineKind::Copy(_) => {}
        BaselineKind::Lines(bytes) => *bytes += payload.len(),
        BaselineKind::Memo(memories) => memo(memories, answer, payload),
        BaselineKind::Straight => {
            let chunk: OwnedChunk = serde_json::from_slice(payload).expect("the workload is JSON");
            for choice in chunk.choices {
                answer.text.push_str(&choice.delta.content.unwrap_or_default());
                for call in choice.delta.tool_calls.unwrap_or_default() {
                    let slot = slot(answer, call.index);
                    if let Some(function) = call.function {
                        slot.0.push_str(&function.name.unwrap_or_default());
                        slot.1.push_str(&function.arguments.unwrap_or_default());
                    }
                }
            }
        }
    }
}

fn memo(memories: &mut [Option<EventMemo>; 2], answer: &mut ExpectedReply, payload: &[u8]) {
    for memory in memories.iter().flatten() {
        let EventMemo { before, after, target } = memory;
        if payload.len() >= before.len() + after.len()
            && payload.starts_with(before)
            && payload.ends_with(after)
        {
            let inside = &payload[before.len()..payload.len() - after.len()];
            let is_closed = string_end(inside) == inside.len() && inside.iter().all(|byte| *byte >= 0x20);
            if is_closed && let Ok(inside) = std::str::from_utf8(inside) {
                let into = match *target {
                    MemoTarget::Text => &mut answer.text,
                    MemoTarget::Arguments(call) => &mut slot(answer, call).1,
                };
                if memchr::memchr(b'\\', inside.as_bytes()).is_none() {
                    return into.push_str(inside);
                }
                if let Ok(text) = serde_json::from_str::<Cow<'_, str>>(&format!("\"{inside}\"")) {
                    return into.push_str(&text);
                }
            }
        }
    }
    let chunk: BorrowedChunk<'_> = serde_json::from_slice(payload).expect("the workload is JSON");
    if let Some((index, memory)) = learn(&chunk, payload) {
        memories[index] = Some(memory);
    }
    for choice in chunk.choices {
        answer.text.push_str(&choice.delta.content.unwrap_or_default());
        for call in choice.delta.tool_calls.unwrap_or_default() {
            let slot = slot(answer, call.index);
            if let Some(function) = call.function {
                slot.0.push_str(&function.name.unwrap_or_default());
                slot.1.push_str(&function.arguments.unwrap_or_default());
            }
        }
    }
}

/// Finds the changing string, in the two plain shapes.
fn learn(chunk: &BorrowedChunk<'_>, payload: &[u8]) -> Option<(usize, EventMemo)> {
    let [choice] = &chunk.choices[..] else { return None };
    let (index, key, target): (_, &[u8], _) =
        match (&choice.delta.content, choice.delta.tool_calls.as_deref()) {
            (Some(text), None) if !text.is_empty() => (0, b"\"delta\":{\"content\":\"", MemoTarget::Text),
            (None, Some([call])) => {
                let function = call.function.as_ref()?;
                let is_fragment = function.name.is_none()
                    && function.arguments.as_ref().is_some_and(|text| !text.is_empty());
                is_fragment.then_some((
                    1,
                    &b"\"function\":{\"arguments\":\""[..],
                    MemoTarget::Arguments(call.index),
                ))?
            }
            _ => return None,
        };
    let from = memchr::memmem::find(payload, key)? + key.len();
    let to = from + string_end(&payload[from..]);
    Some((index, EventMemo { before: payload[..from].to_vec(), after: payload[to..].to_vec(), target }))
}

/// Offset of the end of a JSON string: its quote, or the end of the text if there is none.
fn string_end(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let next = at + memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        if next >= text.len() || text[next] == b'"' {
            return next;
        }
        at = next + 2;
    }
    usize::MAX
}

fn slot(answer: &mut ExpectedReply, call: usize) -> &mut (String, String) {
    if answer.calls.len() <= call {
        answer.calls.resize_with(call + 1, Default::default);
    }
    &mut answer.calls[call]
}
