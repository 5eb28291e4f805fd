//! A program's stderr: lines of progress, and messages, the last of which are retained.

use super::escapes::EscapeStripper;
use crate::context::ToolProgress;
use crate::secrets::SecretSet;
use serde::Deserialize;
use std::collections::VecDeque;

/// Begins a line of progress; JSON follows.
pub const PROGRESS_PREFIX: &str = "@progress ";
/// Most bytes of stderr that a failure quotes: together with the sentence before it less than
/// [`MESSAGE_CHARS_MAX`](crate::MESSAGE_CHARS_MAX), which would cut the end off.
pub const STDERR_LOG_BYTES_MAX: usize = 3_700;
/// A longer line is not one of progress.
const PROGRESS_BYTES_MAX: usize = 4_096;

/// Reads stderr in any pieces. Memory is flat.
#[derive(Debug)]
pub struct StderrLog<'a> {
    secrets: &'a SecretSet,
    /// The line that is being read, as long as it may be one of progress.
    line: Vec<u8>,
    is_log_line: bool,
    tail: VecDeque<u8>,
    truncated: bool,
}

#[derive(Deserialize)]
struct ProgressLine {
    progress: Option<f64>,
    total: Option<f64>,
    message: Option<String>,
}

impl<'a> StderrLog<'a> {
    /// An empty log. These secrets are removed from everything that it returns.
    pub fn new(secrets: &'a SecretSet) -> Self {
        Self { secrets, line: Vec::new(), is_log_line: false, tail: VecDeque::new(), truncated: false }
    }

    /// Adds a chunk, and returns the latest progress in it.
    pub fn push(&mut self, chunk: &[u8]) -> Option<ToolProgress> {
        let mut latest = None;
        for &byte in chunk {
            if self.is_log_line {
                self.append_byte(byte);
                self.is_log_line = byte != b'\n';
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
                        self.append_line();
                    }
                }
                continue;
            }
            self.line.push(byte);
            let prefix = PROGRESS_PREFIX.as_bytes();
            let prefix_bytes = self.line.len().min(prefix.len());
            if self.line[..prefix_bytes] != prefix[..prefix_bytes] || self.line.len() > PROGRESS_BYTES_MAX {
                self.append_line();
                self.is_log_line = true;
            }
        }
        latest
    }

    /// The last lines, as text without secrets; a cut is marked.
    pub fn finish(mut self) -> String {
        if self.progress().is_none() {
            self.append_line();
        }
        let plain = EscapeStripper::strip(self.tail.make_contiguous());
        let text = String::from_utf8_lossy(&plain);
        if !self.truncated {
            return self.secrets.redact(text.trim()).into_owned();
        }
        // What begins before the cut is no whole secret and is not known as one: as much as that could be is left out.
        let clean = self.secrets.redact(text.trim_start_matches('\u{fffd}'));
        let mut from = self.secret_margin().min(clean.len());
        while !clean.is_char_boundary(from) {
            from += 1;
        }
        format!("…{}", clean[from..].trim())
    }

    /// Bytes in front of the reported text, so that a secret across the cut is a whole one.
    fn secret_margin(&self) -> usize {
        self.secrets.longest_form().saturating_sub(1)
    }

    fn progress(&self) -> Option<ToolProgress> {
        let json = self.line.strip_prefix(PROGRESS_PREFIX.as_bytes())?;
        let ProgressLine { progress, total, message } = serde_json::from_slice(json).ok()?;
        let message = message.map(|message| self.secrets.redact(&message).into_owned());
        Some(ToolProgress { progress, total, message })
    }

    fn append_line(&mut self) {
        for byte in std::mem::take(&mut self.line) {
            self.append_byte(byte);
        }
    }

    fn append_byte(&mut self, byte: u8) {
        if self.tail.len() == STDERR_LOG_BYTES_MAX + self.secret_margin() {
            self.tail.pop_front();
            self.truncated = true;
        }
        self.tail.push_back(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(written: &str, expected: &[&str], left: &str) {
        for cut in 0..=written.len() {
            let secrets = SecretSet::default();
            let mut stderr_log = StderrLog::new(&secrets);
            let mut messages = Vec::new();
            // A byte at a time after the cut: each progress is the latest one at some time.
            messages.extend(written.as_bytes()[..cut].iter().filter_map(|byte| stderr_log.push(&[*byte])));
            messages.extend(stderr_log.push(&written.as_bytes()[cut..]));
            let messages: Vec<String> =
                messages.into_iter().filter_map(|progress| progress.message).collect();
            if cut == written.len() {
                assert_eq!(messages, expected, "{written:?}");
            }
            assert_eq!(
                messages.last().map(String::as_str),
                expected.last().copied(),
                "{written:?} cut at {cut}"
            );
            assert_eq!(stderr_log.finish(), left, "{written:?} cut at {cut}");
        }
    }

    #[test]
    fn progress_lines_are_reported_and_other_lines_logged() {
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
    fn stderr_log_keeps_only_the_last_bytes() {
        let secrets = SecretSet::default();
        let mut stderr_log = StderrLog::new(&secrets);
        for number in 0..100_000 {
            stderr_log.push(format!("line {number}\n").as_bytes());
        }
        stderr_log.push(&[b'x'; 100]);
        let log = stderr_log.finish();
        assert!(
            log.starts_with('…') && log.contains("line 99999\n") && log.len() <= STDERR_LOG_BYTES_MAX + 3
        );
    }

    #[test]
    fn secret_across_the_truncation_point_is_removed() {
        let secret = "sk-live-abcdefghijklmnopqrstuvwxyz";
        let secrets = SecretSet::new([secret]);
        for trailing in STDERR_LOG_BYTES_MAX - 60..STDERR_LOG_BYTES_MAX + 60 {
            let mut stderr_log = StderrLog::new(&secrets);
            let written = format!("{}{secret}{}", "-".repeat(200), ".".repeat(trailing));
            written.as_bytes().chunks(7).for_each(|chunk| drop(stderr_log.push(chunk)));
            let log = stderr_log.finish();
            let mut fragments = (0..=secret.len() - 4).map(|at| &secret[at..at + 4]);
            assert!(fragments.all(|fragment| !log.contains(fragment)), "{trailing} behind it: {log:.80}");
            assert!(log.len() > STDERR_LOG_BYTES_MAX - 40 && log.len() <= STDERR_LOG_BYTES_MAX + 6);
        }
    }
}
