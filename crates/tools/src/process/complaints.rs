//! What a program writes to stderr: lines of progress, and complaints, of which the last are kept.

use super::plain::PlainText;
use crate::context::Progress;
use crate::secrets::Secrets;
use serde::Deserialize;
use std::collections::VecDeque;

/// Begins a line of progress; JSON follows.
pub const PROGRESS_PREFIX: &str = "@progress ";
/// Most bytes of stderr that a failure tells: with the sentence in front of them less than
/// [`MESSAGE_CHARS_MAX`](crate::MESSAGE_CHARS_MAX), which would cut the end off.
pub const COMPLAINTS_BYTES_MAX: usize = 3_700;
/// A longer line is not one of progress.
const PROGRESS_BYTES_MAX: usize = 4_096;

/// Reads stderr in any pieces. Memory is flat.
#[derive(Debug)]
pub(crate) struct Complaints<'a> {
    secrets: &'a Secrets,
    /// The line that is being read, as long as it may be one of progress.
    line: Vec<u8>,
    is_complaint: bool,
    tail: VecDeque<u8>,
    cut: bool,
}

#[derive(Deserialize)]
struct ProgressLine {
    progress: Option<f64>,
    total: Option<f64>,
    message: Option<String>,
}

impl<'a> Complaints<'a> {
    pub(crate) fn new(secrets: &'a Secrets) -> Self {
        Self { secrets, line: Vec::new(), is_complaint: false, tail: VecDeque::new(), cut: false }
    }

    /// Takes a piece, and answers with the latest progress that it tells of.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Option<Progress> {
        let mut latest = None;
        for &byte in piece {
            if self.is_complaint {
                self.keep(byte);
                self.is_complaint = byte != b'\n';
                continue;
            }
            if byte == b'\n' {
                match self.progress() {
                    Some(progress) => {
                        latest = Some(progress);
                        self.line.clear();
                    }
                    None => {
                        self.line.push(byte);
                        self.keep_line();
                    }
                }
                continue;
            }
            self.line.push(byte);
            let prefix = PROGRESS_PREFIX.as_bytes();
            let so_far = self.line.len().min(prefix.len());
            if self.line[..so_far] != prefix[..so_far] || self.line.len() > PROGRESS_BYTES_MAX {
                self.keep_line();
                self.is_complaint = true;
            }
        }
        latest
    }

    /// The last that it complained of, as text without secrets; the cut is marked.
    pub(crate) fn finish(mut self) -> String {
        if self.progress().is_none() {
            self.keep_line();
        }
        let plain = PlainText::of(self.tail.make_contiguous());
        let text = String::from_utf8_lossy(&plain);
        if !self.cut {
            return self.secrets.redact(text.trim()).into_owned();
        }
        // What begins before the cut is no whole secret and is not known as one: as much as that could be is left out.
        let clean = self.secrets.redact(text.trim_start_matches('\u{fffd}'));
        let mut from = self.margin().min(clean.len());
        while !clean.is_char_boundary(from) {
            from += 1;
        }
        format!("…{}", clean[from..].trim())
    }

    /// Bytes in front of what is told, so that a secret across the cut is a whole one.
    fn margin(&self) -> usize {
        self.secrets.longest().saturating_sub(1)
    }

    fn progress(&self) -> Option<Progress> {
        let json = self.line.strip_prefix(PROGRESS_PREFIX.as_bytes())?;
        let ProgressLine { progress, total, message } = serde_json::from_slice(json).ok()?;
        let message = message.map(|message| self.secrets.redact(&message).into_owned());
        Some(Progress { progress, total, message })
    }

    fn keep_line(&mut self) {
        for byte in std::mem::take(&mut self.line) {
            self.keep(byte);
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.tail.len() == COMPLAINTS_BYTES_MAX + self.margin() {
            self.tail.pop_front();
            self.cut = true;
        }
        self.tail.push_back(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, expected: &[&str], left: &str) {
        for cut in 0..=written.len() {
            let secrets = Secrets::default();
            let mut complaints = Complaints::new(&secrets);
            let mut told = Vec::new();
            // A byte at a time after the cut: each progress is the latest one at some time.
            told.extend(written.as_bytes()[..cut].iter().filter_map(|byte| complaints.push(&[*byte])));
            told.extend(complaints.push(&written.as_bytes()[cut..]));
            let told: Vec<String> = told.into_iter().filter_map(|progress| progress.message).collect();
            if cut == written.len() {
                assert_eq!(told, expected, "{written:?}");
            }
            assert_eq!(told.last().map(String::as_str), expected.last().copied(), "{written:?} cut at {cut}");
            assert_eq!(complaints.finish(), left, "{written:?} cut at {cut}");
        }
    }

    // R: L6
    #[test]
    fn progress_is_told_and_complaints_are_kept() {
        check(
            "warming up\n@progress {\"progress\": 1, \"total\": 2, \"message\": \"page 1\"}\n@progress {\"message\":\"页 2\"}\ndone\n",
            &["page 1", "页 2"],
            "warming up\ndone",
        );
        check("@progress not json\n@progressive\n@\n", &[], "@progress not json\n@progressive\n@");
        check("\u{1b}[31merror\u{1b}[0m: no line end", &[], "error: no line end");
        check("", &[], "");
    }

    #[test]
    fn the_last_bytes_of_a_flood_are_kept() {
        let secrets = Secrets::default();
        let mut complaints = Complaints::new(&secrets);
        for number in 0..100_000 {
            complaints.push(format!("line {number}\n").as_bytes());
        }
        complaints.push(&[b'x'; 100]);
        let kept = complaints.finish();
        assert!(
            kept.starts_with('…') && kept.contains("line 99999\n") && kept.len() <= COMPLAINTS_BYTES_MAX + 3
        );
    }

    // R: R4
    #[test]
    fn of_a_secret_across_the_cut_nothing_is_left() {
        let secret = "sk-live-abcdefghijklmnopqrstuvwxyz";
        let secrets = Secrets::new([secret]);
        for behind in COMPLAINTS_BYTES_MAX - 60..COMPLAINTS_BYTES_MAX + 60 {
            let mut complaints = Complaints::new(&secrets);
            let written = format!("{}{secret}{}", "-".repeat(200), ".".repeat(behind));
            written.as_bytes().chunks(7).for_each(|piece| drop(complaints.push(piece)));
            let kept = complaints.finish();
            let mut fragments = (0..=secret.len() - 4).map(|at| &secret[at..at + 4]);
            assert!(fragments.all(|fragment| !kept.contains(fragment)), "{behind} behind it: {kept:.80}");
            assert!(kept.len() > COMPLAINTS_BYTES_MAX - 40 && kept.len() <= COMPLAINTS_BYTES_MAX + 6);
        }
    }
}
