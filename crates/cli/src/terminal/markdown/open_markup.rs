//! Half-written markup, closed for the eye.

use super::open_fence;

/// The source of a block in progress without what would flicker: marks that may be the start of something are held
/// back, emphasis and code that are not closed yet are closed.
pub(crate) fn close_open_markup(source: &str) -> String {
    let (head, last_line) = source.split_at(source.rfind('\n').map_or(0, |at| at + 1));
    if open_fence(source).is_some() {
        return source.to_owned();
    }
    let mark = last_line.trim();
    if !mark.is_empty() && mark.len() <= 3 && mark.chars().all(|char| "-=*_+#`~>|".contains(char)) {
        return head.to_owned();
    }
    let paragraph = &source[source.rfind("\n\n").map_or(0, |at| at + 2)..];
    let open = open_marks(paragraph);
    // A mark at the end of the text would close itself.
    let shown = match open.last() {
        Some(mark) => source.trim_end_matches(|char| char == ' ' || mark.starts_with(char)),
        None => source,
    };
    let is_empty_mark = open.last().is_some_and(|mark| source.trim_end().ends_with(mark));
    let closed_count = open.len() - usize::from(is_empty_mark);
    open[..closed_count].iter().rev().fold(shown.to_owned(), |text, mark| text + mark)
}

/// Marks of emphasis and code that are open at the end of a paragraph, outermost first.
fn open_marks(paragraph: &str) -> Vec<&'static str> {
    let mut open: Vec<&'static str> = Vec::new();
    let mut chars = paragraph.chars().peekable();
    while let Some(char) = chars.next() {
        let mark = match char {
            '\\' => {
                chars.next();
                None
            }
            '`' => Some("`"),
            '*' if chars.peek() == Some(&'*') => {
                chars.next();
                Some("**")
            }
            '*' => Some("*"),
            _ => None,
        };
        if let Some(mark) = mark {
            let in_code = open.last() == Some(&"`");
            match open.iter().position(|open| *open == mark) {
                Some(at) if !in_code || mark == "`" => open.truncate(at),
                // `* ` begins a list item, and stars between spaces are stars.
                None if !in_code
                    && (mark == "`" || !chars.peek().is_some_and(|next| next.is_whitespace())) =>
                {
                    open.push(mark);
                }
                _ => {}
            }
        }
    }
    open
}
