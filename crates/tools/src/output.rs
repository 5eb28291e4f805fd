//! Limits of a tool's output: the model sees head and tail, the rest is spilled to a file, memory stays flat.
//!
//! Never fails a call: an output that cannot be stored is cut, with a notice.

use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use throughline_wire::ToolOutput;
use throughline_wire::json::ARGUMENTS_DEPTH_MAX;
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt;

/// Limits of one output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Most bytes of text that the model reads; more is cut in the middle. Default 32 KiB: about 8,000 tokens, which a
    /// small context survives.
    pub shown_bytes_max: usize,
    /// Most bytes that are stored in the spool file. Default 64 MiB. More is counted and dropped.
    pub spooled_bytes_max: u64,
    /// Most bytes of partial output that are reported while the tool runs. Default 64 KiB, what a card shows.
    pub partial_bytes_max: usize,
    /// Most bytes of the structured form, as JSON. Default 64 KiB; a larger one is dropped and the text alone
    /// is sent. So is one that nests deeper than arguments may.
    pub value_bytes_max: usize,
    /// Most bytes of base64 in pictures and sounds together. Default 16 MiB; media beyond it are dropped,
    /// with a notice.
    pub media_bytes_max: usize,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            shown_bytes_max: 32 * 1024,
            spooled_bytes_max: 64 * 1024 * 1024,
            partial_bytes_max: 64 * 1024,
            value_bytes_max: 64 * 1024,
            media_bytes_max: 16 * 1024 * 1024,
        }
    }
}

impl OutputLimits {
    fn allow(&self, value: &Value) -> bool {
        nests_within(value, ARGUMENTS_DEPTH_MAX) && json_bytes(value) <= self.value_bytes_max as u64
    }
}

/// Space for the line that reports omitted output.
const NOTICE_BYTES: usize = 200;

/// A directory for outputs that are too large for the log. Files in it belong to the owner of the directory: nothing here
/// deletes one.
#[derive(Clone, Debug)]
pub struct OutputSpool {
    directory: PathBuf,
}

impl OutputSpool {
    /// A spool in `directory`, which is made when it is first needed.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Folder of the spilled files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A new file that only we can read, named after `name`.
    async fn create(&self, name: &str) -> io::Result<(File, PathBuf)> {
        /// Leftovers of the same name (a log replayed into the same directory) before it is given up.
        const ATTEMPTS_MAX: u32 = 100;
        tokio::fs::create_dir_all(&self.directory).await?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        options.mode(0o600);
        // The name is ours (turn and call), but nothing is lost by not believing it.
        let stem: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
            .take(100)
            .collect();
        for attempt in 1..=ATTEMPTS_MAX {
            let file_name =
                if attempt == 1 { format!("{stem}.txt") } else { format!("{stem}.{attempt}.txt") };
            let path = self.directory.join(file_name);
            match options.open(&path).await {
                Ok(file) => return Ok((file, path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }
}

/// Takes bytes as they come, keeps head and tail in memory and the rest in a file.
#[derive(Debug)]
pub(crate) struct OutputCollector {
    limits: OutputLimits,
    spool: Option<OutputSpool>,
    name: String,
    size: u64,
    collected: CollectedOutput,
}

#[derive(Debug)]
enum CollectedOutput {
    /// All of it: not more than is shown.
    Complete(Vec<u8>),
    /// Beyond the limit: head and tail in memory, everything in a file.
    HeadTail { head: Vec<u8>, tail: VecDeque<u8>, spill: SpillFile },
}

#[derive(Debug)]
enum SpillFile {
    Open {
        file: File,
        path: PathBuf,
        written: u64,
    },
    /// No spool, or it failed: nothing beyond head and tail is retained.
    Discarded,
}

impl OutputCollector {
    pub(crate) fn new(limits: OutputLimits, spool: Option<OutputSpool>, name: String) -> Self {
        Self { limits, spool, name, size: 0, collected: CollectedOutput::Complete(Vec::new()) }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Appends bytes. Not cancel safe: a cut call may leave a piece out of the file.
    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        if let CollectedOutput::Complete(complete) = &mut self.collected {
            if complete.len() + bytes.len() <= self.limits.shown_bytes_max {
                complete.extend_from_slice(bytes);
                return;
            }
            let complete = std::mem::take(complete);
            self.overflow(complete).await;
        }
        if let CollectedOutput::HeadTail { head, tail, spill } = &mut self.collected {
            write_spill(spill, bytes, self.limits.spooled_bytes_max).await;
            let end_max = end_bytes_max(&self.limits);
            let (to_head, rest) = bytes.split_at(bytes.len().min(end_max - head.len()));
            head.extend_from_slice(to_head);
            let rest = &rest[rest.len().saturating_sub(end_max)..];
            tail.drain(..(tail.len() + rest.len()).saturating_sub(end_max));
            tail.extend(rest);
        }
    }

    /// From "all of it" to "both ends and a file".
    async fn overflow(&mut self, complete: Vec<u8>) {
        let mut spill = match &self.spool {
            None => SpillFile::Discarded,
            Some(spool) => match spool.create(&self.name).await {
                Ok((file, path)) => SpillFile::Open { file, path, written: 0 },
                Err(_) => SpillFile::Discarded,
            },
        };
        write_spill(&mut spill, &complete, self.limits.spooled_bytes_max).await;
        let end_max = end_bytes_max(&self.limits);
        let (head, rest) = complete.split_at(complete.len().min(end_max));
        let tail = &rest[rest.len().saturating_sub(end_max)..];
        self.collected =
            CollectedOutput::HeadTail { head: head.to_vec(), tail: tail.iter().copied().collect(), spill };
    }

    /// Text for the model, with the size of the whole and the file of the rest.
    pub(crate) async fn finish(mut self) -> ToolOutput {
        if let CollectedOutput::Complete(complete) = &mut self.collected {
            let complete = std::mem::take(complete);
            let text = String::from_utf8_lossy(&complete);
            // Bytes that are not UTF-8 grow threefold on the way to the model.
            if text.len() <= self.limits.shown_bytes_max {
                return ToolOutput { text: text.into_owned(), size: self.size, ..ToolOutput::default() };
            }
            self.overflow(complete).await;
        }
        let CollectedOutput::HeadTail { head, mut tail, spill } = self.collected else {
            return ToolOutput::default();
        };
        let end_max = end_bytes_max(&self.limits);
        let head = head_text(&head, end_max);
        let tail = tail_text(tail.make_contiguous(), end_max);
        let (spilled_to, spill_note) = match spill {
            SpillFile::Discarded => (None, "it was not stored".to_owned()),
            SpillFile::Open { mut file, path, written } => {
                // The last write is only reported by the next call on the file.
                let saved = if file.flush().await.is_ok() { written } else { 0 };
                let note = match saved {
                    0 => "it was not stored".to_owned(),
                    saved if saved < self.size => {
                        format!("the user has the first {} of it", format_bytes(saved))
                    }
                    _ => "the user has all of it".to_owned(),
                };
                ((saved > 0).then(|| path.to_string_lossy().into_owned()), note)
            }
        };
        let text = format!(
            "{head}\n[… the middle of this output of {} is left out; {spill_note} …]\n{tail}",
            format_bytes(self.size)
        );
        ToolOutput { text, size: self.size, spilled_to, ..ToolOutput::default() }
    }
}

/// Applies every limit to a finished output. `streamed` is what the tool wrote while it ran: it replaces a
/// missing text of the tool.
pub(crate) async fn apply_limits(
    output: ToolOutput,
    streamed: Option<ToolOutput>,
    mut collector: OutputCollector,
) -> ToolOutput {
    let limits = collector.limits;
    let ToolOutput { mut text, value, media, size, spilled_to } = output;
    match streamed {
        Some(streamed) if text.is_empty() => {
            let (media, note) = limit_media(media, limits.media_bytes_max);
            let value = value.filter(|value| limits.allow(value));
            return ToolOutput { text: streamed.text + &note, value, media, ..streamed };
        }
        // The tool returned its own text: nothing will ever refer to this file.
        Some(ToolOutput { spilled_to: Some(superseded), .. }) => {
            drop(tokio::fs::remove_file(superseded).await)
        }
        _ => {}
    }
    if text.is_empty()
        && let Some(value) = &value
    {
        text = value.to_string();
    }
    collector.push(text.as_bytes()).await;
    drop(text);
    let shown = collector.finish().await;
    let (media, note) = limit_media(media, limits.media_bytes_max);
    ToolOutput {
        text: shown.text + &note,
        value: value.filter(|value| limits.allow(value)),
        media,
        // A tool that cut or spilled its output itself knows better.
        size: size.max(shown.size),
        spilled_to: shown.spilled_to.or(spilled_to),
    }
}

fn limit_media(
    media: Vec<throughline_wire::Media>,
    bytes_max: usize,
) -> (Vec<throughline_wire::Media>, String) {
    let mut remaining = bytes_max;
    let mut note = String::new();
    let retained = media
        .into_iter()
        .filter(|item| match remaining.checked_sub(item.data().len()) {
            Some(left) => {
                remaining = left;
                true
            }
            None => {
                let size = format_bytes(item.data().len() as u64 / 4 * 3);
                note.push_str(&format!("\n[… {} of {size} left out: too large …]", item.media_type));
                false
            }
        })
        .collect();
    (retained, note)
}

/// True for values that nest at most this deep. Events, messages and rows that contain a value are read with
/// a parser that has a limit, as arguments are.
fn nests_within(value: &Value, depth_max: usize) -> bool {
    match value {
        Value::Array(items) => depth_max > 0 && items.iter().all(|item| nests_within(item, depth_max - 1)),
        Value::Object(members) => {
            depth_max > 0 && members.values().all(|member| nests_within(member, depth_max - 1))
        }
        _ => true,
    }
}

fn json_bytes(value: &Value) -> u64 {
    struct ByteCounter(u64);
    impl io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCounter(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => u64::MAX,
    }
}

/// Bytes of head, and of tail.
fn end_bytes_max(limits: &OutputLimits) -> usize {
    limits.shown_bytes_max.saturating_sub(NOTICE_BYTES) / 2
}

async fn write_spill(spill: &mut SpillFile, bytes: &[u8], spooled_bytes_max: u64) {
    if let SpillFile::Open { file, written, .. } = spill {
        let remaining = usize::try_from(spooled_bytes_max - *written).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(remaining)];
        match file.write_all(bytes).await {
            Ok(()) => *written += bytes.len() as u64,
            // A full disk must not fail a tool that has done its work.
            Err(_) => *spill = SpillFile::Discarded,
        }
    }
}

/// The first bytes as text, cut at a character.
fn head_text(bytes: &[u8], bytes_max: usize) -> String {
    let mut text = String::new();
    let last = bytes.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
    // The cut may have split a character, which is not the tool's fault; a longer invalid sequence is.
    let bytes = if last <= 3 { &bytes[..bytes.len() - last] } else { bytes };
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push('\u{fffd}');
        }
        if text.len() >= bytes_max {
            break;
        }
    }
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

/// The last bytes as text, cut at a character.
fn tail_text(bytes: &[u8], bytes_max: usize) -> String {
    let continuation = bytes.iter().take(3).take_while(|&&byte| byte & 0b1100_0000 == 0b1000_0000).count();
    let text = String::from_utf8_lossy(&bytes[continuation..]);
    text[text.ceil_char_boundary(text.len().saturating_sub(bytes_max))..].to_owned()
}

/// `1.5 MB`: for people and models, who do not count.
pub(crate) fn format_bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} bytes"),
        1_000..1_000_000 => format!("{:.1} KB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

/// Joins bytes to text across chunks: invalid UTF-8 becomes U+FFFD, a partial character waits for its
/// remaining bytes.
#[derive(Debug, Default)]
pub(crate) struct Utf8Joiner {
    half: Vec<u8>,
}

impl Utf8Joiner {
    pub(crate) fn push(&mut self, bytes: &[u8], text: &mut String) {
        let joined;
        let bytes = if self.half.is_empty() {
            bytes
        } else {
            joined = [std::mem::take(&mut self.half).as_slice(), bytes].concat();
            &joined
        };
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            at += chunk.valid().len() + chunk.invalid().len();
            let unfinished = at == bytes.len()
                && matches!(std::str::from_utf8(chunk.invalid()), Err(error) if error.error_len().is_none());
            match chunk.invalid() {
                [] => {}
                half if unfinished => self.half = half.to_vec(),
                _ => text.push('\u{fffd}'),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use throughline_wire::Media;

    fn limits(shown: usize, spooled: u64) -> OutputLimits {
        OutputLimits { shown_bytes_max: shown, spooled_bytes_max: spooled, ..OutputLimits::default() }
    }

    async fn collect(limits: OutputLimits, spool: Option<OutputSpool>, pieces: &[&[u8]]) -> ToolOutput {
        let mut collector = OutputCollector::new(limits, spool, "turn-1/call:1".into());
        for piece in pieces {
            collector.push(piece).await;
        }
        collector.finish().await
    }

    #[tokio::test]
    async fn output_within_limit_is_unchanged() {
        for text in ["", "a", "天气", &"x".repeat(400)] {
            let output = collect(limits(400, 1000), None, &[text.as_bytes()]).await;
            assert_eq!(output, ToolOutput::text(text));
        }
    }

    #[tokio::test]
    async fn long_output_keeps_head_and_tail_and_spills_to_file() {
        let folder = tempfile::tempdir().unwrap();
        let complete: String = (0..1_000).map(|n| format!("line {n} 行\n")).collect();
        for piece_bytes in [1, 7, 399, 1_000, complete.len()] {
            let spool = OutputSpool::new(folder.path().join(format!("spool {piece_bytes}")));
            let pieces: Vec<&[u8]> = complete.as_bytes().chunks(piece_bytes).collect();
            let output = collect(limits(600, 1 << 20), Some(spool), &pieces).await;
            assert!(output.text.len() <= 600, "{}", output.text.len());
            assert!(output.text.starts_with("line 0 行\nline 1 "), "{}", output.text);
            assert!(output.text.ends_with("line 999 行\n"));
            assert!(
                output.text.contains("this output of 12.9 KB is left out; the user has all of it"),
                "{}",
                output.text
            );
            assert!(!output.text.contains('\u{fffd}'), "a character was cut: {}", output.text);
            assert_eq!(output.size, complete.len() as u64);
            let path = output.spilled_to.unwrap();
            assert!(path.ends_with("turn-1_call_1.txt"), "{path}");
            assert_eq!(std::fs::read_to_string(path).unwrap(), complete);
        }
    }

    #[tokio::test]
    async fn spill_file_is_bounded_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let output =
            collect(limits(400, 1_000), Some(OutputSpool::new(folder.path())), &[&[b'a'; 900], &[b'b'; 900]])
                .await;
        assert!(output.text.contains("the user has the first 1.0 KB of it"), "{}", output.text);
        assert_eq!(output.size, 1_800);
        let path = output.spilled_to.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 1_000);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[tokio::test]
    async fn spill_file_of_the_same_name_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for byte in [b'a', b'b'] {
            let output =
                collect(limits(400, 1_000), Some(OutputSpool::new(folder.path())), &[&[byte; 500]]).await;
            paths.push(output.spilled_to.unwrap());
        }
        assert_eq!(std::fs::read(&paths[0]).unwrap(), [b'a'; 500]);
        assert_eq!(std::fs::read(&paths[1]).unwrap(), [b'b'; 500]);
    }

    #[tokio::test]
    async fn unwritable_spool_does_not_fail_the_call() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a file");
        std::fs::write(&file, "").unwrap();
        for spool in [None, Some(OutputSpool::new(file.join("below a file")))] {
            let output = collect(limits(400, 1_000), spool, &[&[b'a'; 500], &[b'z'; 500]]).await;
            assert!(output.text.starts_with("aaa") && output.text.ends_with("zzz"));
            assert!(output.text.contains("it was not stored"), "{}", output.text);
            assert_eq!((output.size, output.spilled_to), (1_000, None));
        }
    }

    #[tokio::test]
    async fn invalid_utf8_is_bounded_in_text_and_exact_in_spill_file() {
        let folder = tempfile::tempdir().unwrap();
        let noise: Vec<u8> = (0..390).map(|n| if n % 2 == 0 { 0xff } else { 0xc3 }).collect();
        let output = collect(limits(400, 1_000), Some(OutputSpool::new(folder.path())), &[&noise]).await;
        assert!(output.text.len() <= 400, "{}", output.text.len());
        assert!(output.text.contains('\u{fffd}'));
        assert_eq!(std::fs::read(output.spilled_to.unwrap()).unwrap(), noise);
    }

    #[tokio::test]
    async fn structured_values_and_media_are_limited() {
        let small = OutputLimits { value_bytes_max: 20, media_bytes_max: 8, ..limits(400, 1_000) };
        let picture = |data: &str| Media::new("image/png".into(), data.into());
        let collector = || OutputCollector::new(small, None, "c".into());

        let value = ToolOutput { value: Some(json!({"a": 1})), ..ToolOutput::default() };
        let result = apply_limits(value, None, collector()).await;
        assert_eq!((result.text.as_str(), result.value), ("{\"a\":1}", Some(json!({"a": 1}))));

        let value = ToolOutput { value: Some(json!({"a": "0123456789abcdef"})), ..ToolOutput::default() };
        let dropped = apply_limits(value, None, collector()).await;
        assert_eq!((dropped.text.as_str(), dropped.value), ("{\"a\":\"0123456789abcdef\"}", None));

        for (depth, is_taken) in [(ARGUMENTS_DEPTH_MAX, true), (ARGUMENTS_DEPTH_MAX + 1, false)] {
            let nested = (1..depth).fold(json!([]), |inner, _| json!([inner]));
            let value = ToolOutput { value: Some(nested), ..ToolOutput::default() };
            let collector = OutputCollector::new(OutputLimits::default(), None, "c".into());
            let result = apply_limits(value, None, collector).await;
            assert_eq!((result.text.len(), result.value.is_some()), (2 * depth, is_taken));
        }

        let pictures = ToolOutput {
            media: vec![picture("AAAA"), picture("BBBBBBBB"), picture("CCCC")],
            ..ToolOutput::text("two")
        };
        let pictures = apply_limits(pictures, None, collector()).await;
        assert_eq!(pictures.media, [picture("AAAA"), picture("CCCC")]);
        assert_eq!(pictures.text, "two\n[… image/png of 6 bytes left out: too large …]");
    }

    #[tokio::test]
    async fn streamed_output_replaces_a_missing_text() {
        let collector = || OutputCollector::new(OutputLimits::default(), None, "c".into());
        let streamed = Some(ToolOutput::text("streamed"));
        assert_eq!(apply_limits(ToolOutput::default(), streamed.clone(), collector()).await.text, "streamed");
        assert_eq!(apply_limits(ToolOutput::text("given"), streamed, collector()).await.text, "given");
    }

    #[tokio::test]
    async fn returned_text_supersedes_streamed_output_and_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let streamed =
            collect(limits(400, 1_000), Some(OutputSpool::new(folder.path())), &[&[b'a'; 500]]).await;
        assert!(streamed.spilled_to.is_some());
        let collector =
            OutputCollector::new(limits(400, 1_000), Some(OutputSpool::new(folder.path())), "c".into());
        let output = apply_limits(ToolOutput::text("given"), Some(streamed), collector).await;
        assert_eq!(output, ToolOutput::text("given"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn split_utf8_is_joined_at_any_cut() {
        for bytes in ["天气 ok é".as_bytes(), b"\xffa\xe5\xa4b\xf0\x9f", "🌧".as_bytes()] {
            let mut expected = String::from_utf8_lossy(bytes).into_owned();
            for cut in 0..=bytes.len() {
                let (mut joiner, mut text) = (Utf8Joiner::default(), String::new());
                joiner.push(&bytes[..cut], &mut text);
                joiner.push(&bytes[cut..], &mut text);
                if !joiner.half.is_empty() {
                    expected = expected.trim_end_matches('\u{fffd}').to_owned();
                }
                assert_eq!(text, expected, "cut at {cut}");
            }
        }
    }
}
