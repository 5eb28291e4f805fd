//! Quotation marks: which of them open a quotation, and what closes it.

/// Quotation marks that are open.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QuoteState {
    pub(super) open: Option<OpenQuote>,
    /// A `'` has come that is an apostrophe if a letter follows.
    pub(super) may_be_closed: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OpenQuote {
    pub(super) opening: char,
    /// Opened by `\"`, as in JSON inside a text of JSON.
    pub(super) escaped: bool,
    pub(super) depth: usize,
    /// True if the quotation may span blank lines: a mark that cannot be an inch or an apostrophe.
    pub(super) is_sure: bool,
}

impl QuoteState {
    pub(super) fn is_open(self) -> bool {
        self.open.is_some() && !self.may_be_closed
    }

    pub(super) fn push(&mut self, character: char, previous: Option<char>, escaped: bool) {
        match &mut self.open {
            None => self.open = OpenQuote::of(character, previous, escaped),
            Some(open) if open.closes_with(character, escaped) => {
                let is_apostrophe = matches!(character, '\'' | '’');
                if is_apostrophe {
                    self.may_be_closed = true;
                } else if open.depth > 0 {
                    open.depth -= 1;
                } else {
                    self.open = None;
                }
            }
            Some(open) if open.opening == character && open.is_nestable() => open.depth += 1,
            Some(_) => {}
        }
    }
}

impl OpenQuote {
    pub(super) fn of(character: char, previous: Option<char>, escaped: bool) -> Option<Self> {
        let after_space = previous.is_none_or(char::is_whitespace);
        // Scripts without spaces between words open quotations directly after a letter.
        let is_word = |previous: char| previous.is_alphanumeric() && previous < '\u{2e80}';
        let after_word = previous.is_some_and(is_word);
        let is_sure = match character {
            '"' => !after_word,
            '\'' | '‘' if !after_word => false,
            '“' | '„' | '«' | '‹' | '「' | '『' => true,
            // Some languages open with these.
            '”' | '»' | '›' if after_space => true,
            _ => return None,
        };
        Some(Self { opening: character, escaped, depth: 0, is_sure })
    }

    fn closes_with(&self, character: char, escaped: bool) -> bool {
        match self.opening {
            '"' => character == '"' && escaped == self.escaped,
            '\'' => character == '\'',
            '‘' => character == '’',
            '“' => character == '”',
            '„' => matches!(character, '“' | '”'),
            '”' => character == '”',
            '«' => character == '»',
            '»' => character == '«',
            '‹' => character == '›',
            '›' => character == '‹',
            '「' => character == '」',
            _ => character == '』',
        }
    }

    fn is_nestable(&self) -> bool {
        matches!(self.opening, '“' | '«' | '‹' | '「' | '『')
    }
}
