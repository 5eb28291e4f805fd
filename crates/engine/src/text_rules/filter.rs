//! Text rules applied to a text that is still arriving.
//!
//! Only text that may still become part of a match is held back. The pattern is simulated with all its
//! threads, in order of preference; each records its start, so the first of them gives the position up to
//! which the text is decided. Any split of a text gives the same result as applying the rules to the whole
//! text one after the other.

use super::rule::TextRule;
use regex_automata::nfa::thompson::State;
use regex_automata::util::primitives::StateID;
use std::fmt;

/// Most text that a rule holds back, in bytes. Beyond that the rest of the text is withheld: nothing is shown that a rule
/// may have hidden.
pub const TEXT_RULE_HELD_BYTES_MAX: usize = 64 << 10;
/// Most text that a rule adds to one text, in bytes. Matches beyond that are left out instead of replaced.
pub const TEXT_RULE_ADDED_BYTES_MAX: usize = 256 << 10;
/// Limit of the text that a rule reads again in one text, in bytes: the text after a match that could have
/// been longer. Beyond that the rest of the text is withheld.
pub const TEXT_RULE_READ_AGAIN_BYTES_MAX: usize = 1 << 20;
/// The end of a text whose rest is withheld.
pub const TEXT_WITHHELD: &str = " […]";

/// Rules one after the other, over one text.
#[derive(Clone, Debug)]
pub(crate) struct TextFilter {
    stages: Vec<RuleStage>,
}

impl TextFilter {
    pub(crate) fn new<'r>(rules: impl Iterator<Item = &'r TextRule>) -> Self {
        Self { stages: rules.map(RuleStage::new).collect() }
    }

    /// Adds the next piece of the text; returns the text that is decided.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for stage in &mut self.stages {
            text = stage.push(&text);
        }
        text
    }

    /// The end of the text; gives the rest.
    pub(crate) fn finish(&mut self) -> String {
        let mut text = String::new();
        for stage in &mut self.stages {
            let mut decided = stage.push(&text);
            stage.finish(&mut decided);
            text = decided;
        }
        text
    }

    /// Matches of each rule so far.
    pub(crate) fn match_counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.stages.iter().map(|stage| stage.matches)
    }
}

/// A way through the pattern that may still end in a match.
#[derive(Clone, Copy, Debug)]
struct Thread {
    state: StateID,
    /// Start of the thread, as an offset in `held`.
    start: usize,
}

/// One rule over one text.
#[derive(Clone)]
struct RuleStage {
    rule: TextRule,
    /// Text that is not decided.
    held: String,
    /// The character before it.
    before: Option<char>,
    /// Number of bytes of `held` that were read.
    read: usize,
    /// Ways that are open at `read`, the preferred first.
    threads: Vec<Thread>,
    /// The match to be made unless a preferred way becomes one.
    found: Option<(usize, usize)>,
    /// Number of the last round in which each state was seen.
    seen: Vec<u64>,
    round: u64,
    matches: u32,
    added: usize,
    read_again: usize,
    withheld: bool,
}

impl fmt::Debug for RuleStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleStage").field("rule", &self.rule).field("held", &self.held.len()).finish()
    }
}

impl RuleStage {
    fn new(rule: &TextRule) -> Self {
        Self {
            rule: rule.clone(),
            held: String::new(),
            before: None,
            read: 0,
            threads: Vec::new(),
            found: None,
            seen: vec![0; rule.compiled.nfa.states().len()],
            round: 0,
            matches: 0,
            added: 0,
            read_again: 0,
            withheld: false,
        }
    }

    fn push(&mut self, text: &str) -> String {
        let mut decided = String::new();
        if !self.withheld {
            self.held.push_str(text);
            self.read_on(&mut decided);
        }
        decided
    }

    /// Ends the text: open matches end here.
    fn finish(&mut self, decided: &mut String) {
        while !self.withheld && !self.held.is_empty() {
            // Ways that do not end here end nowhere.
            self.expand(None);
            match self.found {
                Some(found) => {
                    self.replace(found, decided);
                    self.read_on(decided);
                }
                None => {
                    decided.push_str(&self.held);
                    self.held.clear();
                }
            }
        }
    }

    /// Reads what there is, character by character.
    fn read_on(&mut self, decided: &mut String) {
        let mut done = 0;
        while let Some(next) = self.held[self.read..].chars().next() {
            self.step(next);
            match (self.found, self.threads.first()) {
                (Some(found), None) => {
                    decided.push_str(&self.held[done..found.0]);
                    self.release(done.max(found.0));
                    done = 0;
                    self.replace((0, found.1 - found.0), decided);
                }
                (None, None) => {
                    decided.push_str(&self.held[done..self.read]);
                    done = self.read;
                }
                (found, Some(first)) => {
                    let open = found.map_or(first.start, |(start, _)| start.min(first.start));
                    if open > done {
                        decided.push_str(&self.held[done..open]);
                        done = open;
                    }
                    if self.read - open > TEXT_RULE_HELD_BYTES_MAX {
                        return self.withhold(decided);
                    }
                }
            }
            if self.withheld {
                return;
            }
        }
        self.release(done);
    }

    /// Drops the first bytes of `held`.
    fn release(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.before = self.held[..bytes].chars().next_back().or(self.before);
        self.held.drain(..bytes);
        self.read = self.read.saturating_sub(bytes);
        for thread in &mut self.threads {
            thread.start = thread.start.saturating_sub(bytes);
        }
        self.found = self.found.map(|(start, end)| (start.saturating_sub(bytes), end.saturating_sub(bytes)));
    }

    /// Replaces a match, which begins at the start of `held` or lies in it, and continues reading at its end.
    fn replace(&mut self, (start, end): (usize, usize), decided: &mut String) {
        decided.push_str(&self.held[..start]);
        let replacement = self.expanded(start, end);
        let grows = replacement.len().saturating_sub(end - start);
        self.matches = self.matches.saturating_add(1);
        if self.added.saturating_add(grows) <= TEXT_RULE_ADDED_BYTES_MAX {
            self.added += grows;
            decided.push_str(&replacement);
        }
        self.read_again += self.read.saturating_sub(end);
        (self.threads, self.found) = (Vec::new(), None);
        self.release(end);
        self.read = 0;
        if self.read_again > TEXT_RULE_READ_AGAIN_BYTES_MAX {
            self.withhold(decided);
        }
    }

    fn withhold(&mut self, decided: &mut String) {
        self.withheld = true;
        (self.held, self.threads, self.found, self.read) = (String::new(), Vec::new(), None, 0);
        decided.push_str(TEXT_WITHHELD);
    }

    /// The replacement of a match with its groups.
    fn expanded(&self, start: usize, end: usize) -> String {
        let replacement = self.rule.replacement();
        if !replacement.contains('$') {
            return replacement.to_owned();
        }
        // A match looks at one character around it at most.
        let before = self.char_before(start).map(String::from).unwrap_or_default();
        let text = format!("{before}{}", &self.held[start..self.read.max(end)]);
        let mut expanded = String::new();
        if let Some(groups) = self.rule.compiled.regex.captures_at(&text, before.len()) {
            groups.expand(replacement, &mut expanded);
        }
        expanded
    }

    fn char_before(&self, at: usize) -> Option<char> {
        self.held[..at].chars().next_back().or(self.before)
    }

    /// Takes the next character.
    fn step(&mut self, next: char) {
        let mut ways = self.expand(Some(next));
        let mut bytes = [0; 4];
        let bytes = next.encode_utf8(&mut bytes).as_bytes();
        for (nth, byte) in bytes.iter().enumerate() {
            let after: Vec<Thread> = ways.iter().filter_map(|way| self.after_byte(*way, *byte)).collect();
            ways = if nth + 1 < bytes.len() { self.closure(&after, None) } else { after };
        }
        self.read += next.len_utf8();
        self.threads = ways;
    }

    fn after_byte(&self, way: Thread, byte: u8) -> Option<Thread> {
        let state = match self.rule.compiled.nfa.state(way.state) {
            State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
            State::Sparse(sparse) => sparse.matches_byte(byte),
            State::Dense(dense) => dense.matches_byte(byte),
            _ => None,
        };
        state.map(|state| Thread { state, ..way })
    }

    /// Threads that are open at `read`, with a new one that starts there, as far as the next character (none
    /// at the end) permits. A match cuts off those that are less preferred.
    fn expand(&mut self, next: Option<char>) -> Vec<Thread> {
        let mut threads = std::mem::take(&mut self.threads);
        if self.found.is_none() && next.is_some() {
            threads.push(Thread { state: self.rule.compiled.nfa.start_anchored(), start: self.read });
        }
        let mut around = [0; 8];
        let at = self.char_before(self.read).map_or(0, |before| before.encode_utf8(&mut around).len());
        let end = at + next.map_or(0, |next| next.encode_utf8(&mut around[at..]).len());
        self.closure(&threads, Some((&around[..end], at)))
    }

    /// Follows every transition that consumes no byte. Without `around` the position is inside a character,
    /// where no assertion holds.
    fn closure(&mut self, threads: &[Thread], around: Option<(&[u8], usize)>) -> Vec<Thread> {
        let compiled = self.rule.compiled.clone();
        let nfa = &compiled.nfa;
        self.round += 1;
        let mut open = Vec::new();
        let mut stack = Vec::new();
        for thread in threads {
            stack.push(thread.state);
            while let Some(id) = stack.pop() {
                if std::mem::replace(&mut self.seen[id.as_usize()], self.round) == self.round {
                    continue;
                }
                match nfa.state(id) {
                    State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) => {
                        open.push(Thread { state: id, start: thread.start });
                    }
                    State::Look { look, next } => {
                        let holds =
                            around.is_some_and(|(text, at)| nfa.look_matcher().matches(*look, text, at));
                        if holds {
                            stack.push(*next);
                        }
                    }
                    State::Union { alternates } => stack.extend(alternates.iter().rev()),
                    State::BinaryUnion { alt1, alt2 } => stack.extend([*alt2, *alt1]),
                    State::Capture { next, .. } => stack.push(*next),
                    State::Fail => {}
                    State::Match { .. } => {
                        if around.is_some() {
                            self.found = Some((thread.start, self.read));
                            return open;
                        }
                    }
                }
            }
        }
        open
    }
}
