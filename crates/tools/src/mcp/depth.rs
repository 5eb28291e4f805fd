//! Nesting of JSON, found out on its bytes: parsers stop at a depth, and give up the whole message.

/// Limit of nesting in the JSON of a message. The parser after it stops at 128, and gives up the whole message.
pub const MESSAGE_DEPTH_MAX: usize = 100;

/// Nesting depth of the JSON. Not recursive, for any input.
pub(crate) fn depth(json: &[u8]) -> usize {
    let (mut nesting, mut deepest) = (NestingTracker::default(), 0);
    for byte in json {
        nesting.push(*byte);
        deepest = deepest.max(nesting.depth);
    }
    deepest
}

/// The JSON with `null` for everything that nests deeper; `None` = nothing nests deeper.
pub(crate) fn truncate_below(json: &[u8], depth_max: usize) -> Option<Vec<u8>> {
    if depth(json) <= depth_max {
        return None;
    }
    let (mut nesting, mut cut) = (NestingTracker::default(), Vec::with_capacity(json.len()));
    for byte in json {
        let before = nesting.depth;
        nesting.push(*byte);
        if before <= depth_max && nesting.depth > depth_max {
            cut.extend_from_slice(b"null");
        } else if before <= depth_max {
            cut.push(*byte);
        }
    }
    Some(cut)
}

/// Nesting level while reading a JSON text.
#[derive(Default)]
struct NestingTracker {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl NestingTracker {
    fn push(&mut self, byte: u8) {
        if self.in_string {
            let ends = byte == b'"' && !self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            self.in_string = !ends;
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_ignores_strings_and_does_not_recurse() {
        for (text, expected) in [
            ("1", 0),
            ("{}", 1),
            (r#"{"a":[{"b":2}]}"#, 3),
            (r#"["[[[{\"[[[","\\",[1]]"#, 2),
            ("]]]{", 1),
            (&"[".repeat(1_000_000), 1_000_000),
        ] {
            assert_eq!(depth(text.as_bytes()), expected, "{text:.40}");
        }
    }
}
