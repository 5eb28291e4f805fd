//! The line a person writes in: keys to text, text to lines with a cursor.

use super::painter::CursorPosition;
use super::text::{StyledLine, TextColor, TextStyle, width};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

/// Messages remembered.
const HISTORY_MAX: usize = 500;

/// Effect of a key press.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EditorEvent {
    /// The key has no function in the editor.
    Ignored,
    /// Text or cursor changed.
    Changed,
    /// The person is done: this is the text.
    Submitted(String),
    /// Ctrl-C: the text was discarded, or there was none.
    Interrupted(InterruptedText),
    /// Ctrl-D with nothing written.
    Ended,
}

/// Content of the line when Ctrl-C was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InterruptedText {
    Discarded,
    /// The line was empty.
    Empty,
}

/// Text under edit, with history.
#[derive(Debug, Default)]
pub(crate) struct LineEditor {
    text: String,
    /// Byte offset, always between two graphemes.
    cursor: usize,
    killed: String,
    history: Vec<String>,
    /// Index of the history entry that is shown.
    recalled: Option<usize>,
    /// Text that was being written before the history was opened.
    draft: String,
    /// Words that Tab completes to.
    completions: Vec<String>,
    /// Texts that Tab walks through on an empty line.
    suggestions: Vec<String>,
    /// Index of the suggestion that an empty line showed last.
    suggested: usize,
}

impl LineEditor {
    /// An editor whose Tab completes to these words and, on an empty line, cycles through suggestions.
    pub(crate) fn new(completions: Vec<String>, suggestions: Vec<String>) -> Self {
        Self { completions, suggestions, ..Self::default() }
    }

    /// True if the text is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Replaces the text, with the cursor at its end.
    pub(crate) fn fill(&mut self, text: &str) {
        self.replace(text.to_owned());
        self.recalled = None;
    }

    /// Takes pasted text: line breaks stay, so a paste never submits.
    pub(crate) fn paste(&mut self, text: &str) {
        self.insert(&text.replace("\r\n", "\n").replace('\r', "\n"));
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> EditorEvent {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Enter if alt || shift => self.insert("\n"),
            KeyCode::Char('j') if control => self.insert("\n"),
            KeyCode::Enter => return self.submit(),
            KeyCode::Char('c') if control => {
                let discarded =
                    if self.is_empty() { InterruptedText::Empty } else { InterruptedText::Discarded };
                self.replace(String::new());
                self.recalled = None;
                return EditorEvent::Interrupted(discarded);
            }
            KeyCode::Char('d') if control && self.is_empty() => return EditorEvent::Ended,
            KeyCode::Char('d') if control => self.remove(self.cursor, self.next_boundary()),
            KeyCode::Char('a') if control => self.cursor = self.line_start(),
            KeyCode::Char('e') if control => self.cursor = self.line_end(),
            KeyCode::Char('b') if control => self.cursor = self.previous_boundary(),
            KeyCode::Char('f') if control => self.cursor = self.next_boundary(),
            KeyCode::Char('p') if control => self.up(),
            KeyCode::Char('n') if control => self.down(),
            KeyCode::Char('h') if control => self.remove(self.previous_boundary(), self.cursor),
            KeyCode::Char('w') if control => self.kill(self.word_left(), self.cursor),
            KeyCode::Char('u') if control => self.kill(self.line_start(), self.cursor),
            KeyCode::Char('k') if control => {
                self.kill(self.cursor, self.line_end().max(self.right_of_break()))
            }
            KeyCode::Char('y') if control => {
                let killed = self.killed.clone();
                self.insert(&killed);
            }
            KeyCode::Char('b') if alt => self.cursor = self.word_left(),
            KeyCode::Char('f') if alt => self.cursor = self.word_right(),
            KeyCode::Char('d') if alt => self.kill(self.cursor, self.word_right()),
            KeyCode::Char(char) if !control && !alt => self.insert(char.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if alt || control => self.kill(self.word_left(), self.cursor),
            KeyCode::Backspace => self.remove(self.previous_boundary(), self.cursor),
            KeyCode::Delete => self.remove(self.cursor, self.next_boundary()),
            KeyCode::Left if alt || control => self.cursor = self.word_left(),
            KeyCode::Right if alt || control => self.cursor = self.word_right(),
            KeyCode::Left => self.cursor = self.previous_boundary(),
            KeyCode::Right => self.cursor = self.next_boundary(),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            KeyCode::Up => self.up(),
            KeyCode::Down => self.down(),
            KeyCode::Tab => self.complete(),
            _ => return EditorEvent::Ignored,
        }
        EditorEvent::Changed
    }

    /// The lines on the screen, after `prompt`, and the position of the cursor in them.
    pub(crate) fn view(
        &self,
        prompt: &str,
        placeholder: &str,
        columns: usize,
    ) -> (Vec<StyledLine>, CursorPosition) {
        let indent = width(prompt);
        let room = columns.saturating_sub(indent).max(4);
        let mut rows = vec![String::new()];
        let mut used = 0;
        let mut cursor = CursorPosition { row: 0, column: indent };
        for (at, cell) in self.text.grapheme_indices(true).chain([(self.text.len(), "")]) {
            let cell_width = if cell == "\n" { 0 } else { width(cell) };
            // After a full row the cursor is on the next one, where the next character will be.
            if used + cell_width.max(usize::from(cell.is_empty() && at == self.cursor)) > room {
                rows.push(String::new());
                used = 0;
            }
            if at == self.cursor {
                cursor = CursorPosition { row: rows.len() - 1, column: indent + used };
            }
            if cell == "\n" {
                rows.push(String::new());
                used = 0;
            } else {
                used += cell_width;
                if let Some(row) = rows.last_mut() {
                    row.push_str(cell);
                }
            }
        }
        let lines = rows.iter().enumerate().map(|(at, row)| {
            let mut line = match at {
                0 => StyledLine::new(prompt, TextStyle::bold_ink(TextColor::Magenta)),
                _ => StyledLine::new(&" ".repeat(indent), TextStyle::PLAIN),
            };
            if self.is_empty() {
                line.push(placeholder, TextStyle::DIM)
            } else {
                line.push(row, TextStyle::PLAIN)
            }
            line.truncated(columns)
        });
        (lines.collect(), cursor)
    }

    /// The person is done, as if by Enter.
    pub(crate) fn submit(&mut self) -> EditorEvent {
        let text = std::mem::take(&mut self.text);
        self.cursor = 0;
        self.recalled = None;
        if text.trim().is_empty() {
            return EditorEvent::Changed;
        }
        if self.history.last() != Some(&text) {
            self.history.push(text.clone());
            if self.history.len() > HISTORY_MAX {
                self.history.remove(0);
            }
        }
        EditorEvent::Submitted(text)
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        // A combining character may have joined the one before it.
        while !self.is_boundary(self.cursor) {
            self.cursor += self.text[self.cursor..].chars().next().map_or(1, char::len_utf8);
        }
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
        if !self.is_boundary(self.cursor) {
            self.cursor = self.previous_boundary();
        }
    }

    fn kill(&mut self, from: usize, to: usize) {
        if from < to {
            self.killed = self.text[from..to].to_owned();
            self.remove(from, to);
        }
    }

    fn replace(&mut self, text: String) {
        self.text = text;
        self.cursor = self.text.len();
    }

    fn is_boundary(&self, at: usize) -> bool {
        at == self.text.len() || self.text.grapheme_indices(true).any(|(start, _)| start == at)
    }

    fn previous_boundary(&self) -> usize {
        self.text
            .grapheme_indices(true)
            .map(|(at, _)| at)
            .take_while(|at| *at < self.cursor)
            .last()
            .unwrap_or(0)
    }

    fn next_boundary(&self) -> usize {
        self.text[self.cursor..].graphemes(true).next().map_or(self.cursor, |cell| self.cursor + cell.len())
    }

    /// Offset after the line break at the cursor, so that Ctrl-K at the end of a line joins it to the next.
    fn right_of_break(&self) -> usize {
        if self.text[self.cursor..].starts_with('\n') { self.cursor + 1 } else { self.cursor }
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn word_left(&self) -> usize {
        let words = self.text.unicode_word_indices().map(|(at, _)| at);
        words.take_while(|at| *at < self.cursor).last().unwrap_or(0)
    }

    fn word_right(&self) -> usize {
        let mut ends = self.text.unicode_word_indices().map(|(at, word)| at + word.len());
        ends.find(|end| *end > self.cursor).unwrap_or(self.text.len())
    }

    fn up(&mut self) {
        let start = self.line_start();
        if start > 0 {
            self.move_to_line(self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1));
            return;
        }
        let recalled = self.recalled.unwrap_or(self.history.len());
        if recalled == 0 {
            return;
        }
        if self.recalled.is_none() {
            self.draft = std::mem::take(&mut self.text);
        }
        self.recalled = Some(recalled - 1);
        self.replace(self.history[recalled - 1].clone());
    }

    fn down(&mut self) {
        let end = self.line_end();
        if end < self.text.len() {
            self.move_to_line(end + 1);
            return;
        }
        match self.recalled {
            None => {}
            Some(at) if at + 1 < self.history.len() => {
                self.recalled = Some(at + 1);
                self.replace(self.history[at + 1].clone());
            }
            Some(_) => {
                self.recalled = None;
                let draft = std::mem::take(&mut self.draft);
                self.replace(draft);
            }
        }
    }

    /// Moves to the same column of the line that begins at `start`.
    fn move_to_line(&mut self, start: usize) {
        let column = width(&self.text[self.line_start()..self.cursor]);
        let line = self.text[start..].split('\n').next().unwrap_or("");
        let mut used = 0;
        let mut at = start;
        for cell in line.graphemes(true) {
            if used + width(cell) > column {
                break;
            }
            used += width(cell);
            at += cell.len();
        }
        self.cursor = at;
    }

    fn complete(&mut self) {
        let showing = self.suggestions.contains(&self.text);
        if (self.is_empty() || showing) && !self.suggestions.is_empty() {
            let at = if showing { self.suggested + 1 } else { 0 } % self.suggestions.len();
            self.suggested = at;
            self.replace(self.suggestions[at].clone());
            return;
        }
        let matching: Vec<&String> =
            self.completions.iter().filter(|word| word.starts_with(&self.text)).collect();
        let Some(first) = matching.first() else { return };
        let common = matching.iter().fold(first.len(), |common, word| {
            first.bytes().zip(word.bytes()).take(common).take_while(|(a, b)| a == b).count()
        });
        if common > self.text.len() && self.cursor == self.text.len() && first.is_char_boundary(common) {
            let mut text = first[..common].to_owned();
            if matching.len() == 1 {
                text.push(' ');
            }
            self.replace(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(editor: &mut LineEditor, code: KeyCode, modifiers: KeyModifiers) -> EditorEvent {
        editor.key(KeyEvent::new(code, modifiers))
    }

    /// Types a script: `^x` is Ctrl-x, `⌥x` is Alt-x, `← → ↑ ↓ ⌫ ⇥ ⏎` are keys, the rest is text.
    fn typed(editor: &mut LineEditor, script: &str) -> EditorEvent {
        let mut last = EditorEvent::Ignored;
        let mut chars = script.chars();
        while let Some(char) = chars.next() {
            let (code, modifiers) = match char {
                '^' => (KeyCode::Char(chars.next().unwrap()), KeyModifiers::CONTROL),
                '⌥' => (KeyCode::Char(chars.next().unwrap()), KeyModifiers::ALT),
                '←' => (KeyCode::Left, KeyModifiers::NONE),
                '→' => (KeyCode::Right, KeyModifiers::NONE),
                '↑' => (KeyCode::Up, KeyModifiers::NONE),
                '↓' => (KeyCode::Down, KeyModifiers::NONE),
                '⌫' => (KeyCode::Backspace, KeyModifiers::NONE),
                '⇥' => (KeyCode::Tab, KeyModifiers::NONE),
                '⏎' => (KeyCode::Enter, KeyModifiers::NONE),
                other => (KeyCode::Char(other), KeyModifiers::NONE),
            };
            last = press(editor, code, modifiers);
        }
        last
    }

    #[track_caller]
    fn check(script: &str, expect: &str) {
        let mut editor = LineEditor::new(vec!["/mode".into(), "/model".into(), "/help".into()], Vec::new());
        typed(&mut editor, script);
        let mut shown = editor.text.clone();
        shown.insert(editor.cursor, '|');
        assert_eq!(shown, expect, "{script}");
    }

    #[test]
    fn keys_edit_as_in_a_shell() {
        check("abc←x", "abx|c");
        check("abc⌫⌫", "a|");
        check("one two^w", "one |");
        check("one two^a^k^y^y", "one twoone two|");
        check("one two⌥b⌥b!", "!|one two");
        check("one two^a⌥f", "one| two");
        check("one two^a^d", "|ne two");
        check("北京←⌫", "|京");
        check("e\u{301}x←⌫", "|x");
        check("a^jb↑", "a|\nb");
        check("a^jb^u", "a\n|");
        check("a^jb^a←^k", "a|b");
    }

    #[test]
    fn tab_completes_commands() {
        check("/h⇥", "/help |");
        check("/m⇥", "/mode|");
        check("/x⇥", "/x|");
    }

    #[test]
    fn tab_on_an_empty_line_cycles_through_suggestions() {
        let mut editor = LineEditor::new(vec!["/help".into()], vec!["say hi".into(), "你好".into()]);
        for expect in ["say hi", "你好", "say hi"] {
            typed(&mut editor, "⇥");
            assert_eq!(editor.text, expect);
        }
        assert_eq!(typed(&mut editor, "⏎"), EditorEvent::Submitted("say hi".into()));
    }

    #[test]
    fn history_keeps_the_draft() {
        let mut editor = LineEditor::default();
        assert_eq!(typed(&mut editor, "one⏎"), EditorEvent::Submitted("one".into()));
        typed(&mut editor, "two⏎two⏎dra↑");
        assert_eq!(editor.text, "two");
        typed(&mut editor, "↑↑");
        assert_eq!(editor.text, "one");
        typed(&mut editor, "↓↓");
        assert_eq!(editor.text, "dra");
    }

    #[test]
    fn control_c_clears_and_control_d_ends() {
        let mut editor = LineEditor::default();
        assert_eq!(typed(&mut editor, "abc^c"), EditorEvent::Interrupted(InterruptedText::Discarded));
        assert_eq!(typed(&mut editor, "^c"), EditorEvent::Interrupted(InterruptedText::Empty));
        assert_eq!(typed(&mut editor, "^d"), EditorEvent::Ended);
        assert_eq!(typed(&mut editor, "  ⏎"), EditorEvent::Changed);
    }

    #[test]
    fn paste_never_submits() {
        let mut editor = LineEditor::default();
        editor.paste("a\r\nb\rc");
        assert_eq!(editor.text, "a\nb\nc");
    }

    #[test]
    fn view_wraps_lines_and_places_the_cursor() {
        let view = |text: &str, keys: &str| {
            let mut editor = LineEditor::default();
            editor.paste(text);
            typed(&mut editor, keys);
            let (lines, cursor) = editor.view("> ", "say something", 10);
            (lines.iter().map(StyledLine::plain).collect::<Vec<_>>(), (cursor.row, cursor.column))
        };
        assert_eq!(view("", ""), (vec!["> say som…".to_owned()], (0, 2)));
        assert_eq!(view("abc", "←"), (vec!["> abc".to_owned()], (0, 4)));
        assert_eq!(view("12345678", ""), (vec!["> 12345678".to_owned(), "  ".to_owned()], (1, 2)));
        assert_eq!(view("123456789", "←"), (vec!["> 12345678".to_owned(), "  9".to_owned()], (1, 2)));
        assert_eq!(view("北京天气好", ""), (vec!["> 北京天气".to_owned(), "  好".to_owned()], (1, 4)));
        assert_eq!(view("a\nb", "↑"), (vec!["> a".to_owned(), "  b".to_owned()], (0, 3)));
    }
}
