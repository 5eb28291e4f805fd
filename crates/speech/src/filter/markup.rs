//! Regions that are not spoken, and the tags that begin them.

/// A region that is skipped to its end, across lines and fences.
#[derive(Clone, Debug)]
pub(super) struct SkippedRegion {
    end: RegionEnd,
    /// The latest characters, from the last one that may begin the end.
    tail: String,
    /// True while there are only blanks since the last line break.
    is_blank_line: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RegionEnd {
    /// A closing tag without its `>`; in lower case.
    Tag(String),
    /// The end of a comment, `-->`.
    Comment,
    /// `$$`, `\]`, `\)`; a formula has no blank line in it.
    Formula(&'static str),
    /// `\end{…}`, or a blank line.
    Environment,
    /// A blank line.
    BlankLine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegionStep {
    Inside,
    Ended,
    EndedByBlankLine,
}

/// Longest closing tag that is looked for, in bytes.
const TAIL_BYTES_MAX: usize = 128;

impl SkippedRegion {
    pub(super) fn until(end: RegionEnd) -> Self {
        Self { end, tail: String::new(), is_blank_line: false }
    }

    pub(super) fn take(&mut self, character: char) -> RegionStep {
        if character == '\n' {
            let ends = self.is_blank_line && !matches!(self.end, RegionEnd::Tag(_) | RegionEnd::Comment);
            self.is_blank_line = true;
            if ends {
                return RegionStep::EndedByBlankLine;
            }
        } else if !character.is_whitespace() {
            self.is_blank_line = false;
        }
        match &self.end {
            RegionEnd::Tag(end) => {
                // `<<<[` is one beginning.
                if character == '<' && !self.tail.bytes().all(|byte| byte == b'<') {
                    self.tail.clear();
                }
                if character == '>' {
                    let ended = self.tail.trim_end() == end;
                    self.tail.clear();
                    return if ended { RegionStep::Ended } else { RegionStep::Inside };
                }
                if (character == '<' || !self.tail.is_empty()) && self.tail.len() < TAIL_BYTES_MAX {
                    self.tail.extend(character.to_lowercase());
                }
                RegionStep::Inside
            }
            RegionEnd::Comment => self.take_marks(character, "-->"),
            RegionEnd::Formula(end) => self.take_marks(character, end),
            RegionEnd::Environment => {
                if character == '\\' {
                    self.tail.clear();
                }
                if self.tail.len() < TAIL_BYTES_MAX {
                    self.tail.push(character);
                }
                let ended = character == '}' && self.tail.starts_with("\\end{");
                if ended { RegionStep::Ended } else { RegionStep::Inside }
            }
            RegionEnd::BlankLine => RegionStep::Inside,
        }
    }

    /// Compares the last characters with an end of at most three.
    fn take_marks(&mut self, character: char, end: &str) -> RegionStep {
        while self.tail.len() >= end.len() {
            self.tail.remove(0);
        }
        if character.is_ascii() {
            self.tail.push(character);
        } else {
            self.tail.clear();
        }
        // `\\]` is a line break of a formula and a bracket.
        if self.tail == "\\\\" {
            self.tail.clear();
        }
        if self.tail == end { RegionStep::Ended } else { RegionStep::Inside }
    }
}

/// A tag's effect on speech.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TagEffect {
    Nothing,
    Clause,
    Paragraph,
    Skip(RegionEnd),
}

/// Elements that are not spoken: programs, drawings, thinking, and calls of tools as models write them.
const SILENT_ELEMENTS: [&str; 34] = [
    "script",
    "style",
    "svg",
    "math",
    "pre",
    "template",
    "iframe",
    "object",
    "textarea",
    "select",
    "noscript",
    "title",
    "audio",
    "video",
    "canvas",
    "think",
    "thinking",
    "reasoning",
    "tool_call",
    "tool_calls",
    "tool_use",
    "tool_code",
    "tool_request",
    "tool_response",
    "tool_result",
    "tool_results",
    "tool_output",
    "tools",
    "function_call",
    "function_calls",
    "function_results",
    "functions",
    "invoke",
    "toolcall",
];

const CLAUSE_ELEMENTS: [&str; 5] = ["br", "td", "th", "dt", "wbr"];
const PARAGRAPH_ELEMENTS: [&str; 21] = [
    "p",
    "div",
    "li",
    "ul",
    "ol",
    "tr",
    "table",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "section",
    "article",
    "blockquote",
    "details",
    "summary",
    "dd",
    "figcaption",
];

/// Effect of a tag, a special token or a marker, from its `<` to its first `>`.
pub(super) fn tag_effect(tag: &str) -> TagEffect {
    let inner = tag.trim_start_matches('<').trim_end_matches('>');
    if inner.starts_with('[') || tag.starts_with("<<<") {
        return marker_effect(inner);
    }
    if let Some(token) = inner.strip_prefix(['|', '｜']) {
        return token_effect(inner, token.trim_end_matches(['|', '｜']));
    }
    let is_closing = inner.starts_with('/');
    let is_empty = inner.ends_with('/');
    let name = inner.trim_start_matches('/');
    let end = name.find(|one: char| one.is_whitespace() || one == '/').unwrap_or(name.len());
    let name = name[..end].to_lowercase();
    // `antml:invoke`, `minimax:tool_call`, and the name of the function in `function=search`.
    let bare = name.rsplit(':').next().unwrap_or_default();
    let bare = bare.split('=').next().unwrap_or_default();
    let is_silent = SILENT_ELEMENTS.contains(&bare) || (bare == "function" && name.contains('='));
    if is_silent && !is_closing && !is_empty {
        let name = name.split('=').next().unwrap_or_default();
        TagEffect::Skip(RegionEnd::Tag(format!("</{name}")))
    } else if CLAUSE_ELEMENTS.contains(&bare) {
        TagEffect::Clause
    } else if PARAGRAPH_ELEMENTS.contains(&bare) {
        TagEffect::Paragraph
    } else {
        TagEffect::Nothing
    }
}

/// True if the paragraph ended in an incomplete tag.
pub(super) fn is_cut_off_tag(held: &str) -> bool {
    let name = held.trim_start_matches(['<', '/']);
    let name = name.split(char::is_whitespace).next().unwrap_or_default();
    let bare = name.rsplit(':').next().unwrap_or_default().to_lowercase();
    let is_silent = SILENT_ELEMENTS.iter().any(|silent| silent.starts_with(&bare));
    held.contains('=')
        || ["<|", "<｜", "<<", "</"].iter().any(|begin| held.starts_with(begin))
        || (bare.len() >= CUT_OFF_NAME_BYTES_MIN && is_silent)
}

/// Shortest name of an incomplete tag, in bytes; a shorter one may be a word after a `<`.
const CUT_OFF_NAME_BYTES_MIN: usize = 4;

/// Effect of a marker of VCP.
fn marker_effect(inner: &str) -> TagEffect {
    let lower = inner.to_lowercase();
    if lower == "[tool_request]" {
        TagEffect::Skip(RegionEnd::Tag("<<<[end_tool_request]".to_owned()))
    } else if let Some(stem) = lower.strip_suffix("start") {
        TagEffect::Skip(RegionEnd::Tag(format!("<<<{stem}end")))
    } else {
        TagEffect::Nothing
    }
}

/// Special tokens of models: `<|tool_calls_section_begin|>`, `<｜tool▁calls▁begin｜>`, `<｜DSML｜function_calls>`.
fn token_effect(inner: &str, token: &str) -> TagEffect {
    let lower = inner.to_lowercase();
    if let Some(name) = lower.strip_prefix("｜dsml｜") {
        let is_call = SILENT_ELEMENTS.contains(&name.split_whitespace().next().unwrap_or_default());
        let end = format!("</{}", lower.split_whitespace().next().unwrap_or_default());
        return if is_call { TagEffect::Skip(RegionEnd::Tag(end)) } else { TagEffect::Nothing };
    }
    let is_call = token.contains("tool") || token.contains("function");
    match token {
        _ if is_call && lower.contains("begin") => {
            TagEffect::Skip(RegionEnd::Tag(format!("<{}", lower.replacen("begin", "end", 1))))
        }
        _ if is_call && lower.contains("start") => {
            TagEffect::Skip(RegionEnd::Tag(format!("<{}", lower.replacen("start", "end", 1))))
        }
        // A list of calls that ends with its line.
        "tool_call" | "python_tag" => TagEffect::Skip(RegionEnd::BlankLine),
        _ => TagEffect::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tag: &str, effect: TagEffect) {
        assert_eq!(tag_effect(tag), effect, "{tag}");
    }

    fn until(end: &str) -> TagEffect {
        TagEffect::Skip(RegionEnd::Tag(end.to_owned()))
    }

    #[test]
    fn tool_calls_in_every_notation_are_skipped_to_their_end() {
        check("<tool_call>", until("</tool_call"));
        check("<invoke name=\"x\">", until("</invoke"));
        check("<function=search>", until("</function"));
        check("<<<[TOOL_REQUEST]>", until("<<<[end_tool_request]"));
        check("<<<DailyNoteStart>", until("<<<dailynoteend"));
        check("<|tool_calls_section_begin|>", until("<|tool_calls_section_end|"));
        check("<｜tool▁calls▁begin｜>", until("<｜tool▁calls▁end｜"));
        check("<｜DSML｜function_calls>", until("</｜dsml｜function_calls"));
    }

    #[test]
    fn tags_become_pauses_or_nothing() {
        check("<b>", TagEffect::Nothing);
        check("</tool_call>", TagEffect::Nothing);
        check("<script src=x />", TagEffect::Nothing);
        check("<br/>", TagEffect::Clause);
        check("</p>", TagEffect::Paragraph);
        check("<|im_end|>", TagEffect::Nothing);
    }
}
