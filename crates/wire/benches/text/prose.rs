//! The input: an answer as models write them, in pieces of a token each, the same bytes on every machine.

/// Words of the text. Angle brackets, backticks and brackets stand in it as often as an answer about programs has them.
const WORDS: [&str; 24] = [
    "the", " answer", " is", " in", " how", " a", " stream", " arrives", ":", " each", " piece", " counts",
    ",", " 而且", "每个", "字节", " both", " ways", " `a < b`", " of", " [1]", " reading", " it", ".",
];
/// Code block between some paragraphs.
const CODE: &str = "\n\n```rust\nlet pieces: Vec<&str> = text.split(\"<\").collect();\n```\n\n";

/// A reply with this many bytes of text as Chat Completions events.
pub struct ProseStream {
    /// The events one after the other, and where each ends.
    stream: Vec<u8>,
    ends: Vec<usize>,
    bytes: usize,
    deltas: usize,
}

impl ProseStream {
    /// At least `bytes_min` bytes of text.
    pub fn new(bytes_min: usize) -> Self {
        let mut prose = Self { stream: Vec::new(), ends: Vec::new(), bytes: 0, deltas: 0 };
        let mut state = 1_u32;
        while prose.bytes < bytes_min {
            // Numerical Recipes' generator: any will do that is the same everywhere.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match state >> 16 {
                number if number % 640 == 0 => {
                    CODE.split_inclusive(' ').for_each(|piece| prose.push_delta(piece))
                }
                number if number % 60 == 1 => prose.push_delta(".\n"),
                number => prose.push_delta(WORDS[number as usize % WORDS.len()]),
            }
        }
        prose.push_event("{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}");
        prose.push_event("[DONE]");
        prose
    }

    fn push_delta(&mut self, text: &str) {
        let quoted = serde_json::Value::from(text);
        self.push_event(&format!(
            "{{\"id\":\"chatcmpl-1\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{quoted}}}}}]}}"
        ));
        self.bytes += text.len();
        self.deltas += 1;
    }

    fn push_event(&mut self, data: &str) {
        for part in ["data: ", data, "\n\n"] {
            self.stream.extend_from_slice(part.as_bytes());
        }
        self.ends.push(self.stream.len());
    }

    /// The events, one after the other.
    pub fn events(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.stream[begin..*end])
    }

    /// Bytes of text.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Pieces of text.
    pub fn deltas(&self) -> usize {
        self.deltas
    }
}
