//! The text of PDF files, read in a separate process.
//!
//! The program runs itself as the reader, confined like programs of tools: it can open no socket, write only
//! to its empty folder, and has limits of memory and time. Text that it had read before it was killed is
//! used.

mod reader;

pub use reader::pdf_reader_main;

use crate::error::ApiError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use throughline::config::ServerLimits;
use throughline_tools::process::{
    ChildProcess, NetworkAccess, ProcessLimits, ProgramSpec, SandboxMode, SandboxRules, SpawnContext,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

/// Number of PDF files that one user may have in reading or in the queue: more would make others wait.
pub(crate) const PDFS_PER_USER_MAX: u32 = 4;
/// Maximum length of a byte of text in JSON (`\u0000`).
const ESCAPED_BYTES_MAX: u64 = 6;
/// Bytes of a line in addition to its text.
const LINE_BYTES_MAX: u64 = 100;
/// Files that it may have open: its own libraries and pipes.
const OPEN_FILES_MAX: u64 = 32;
/// The reader starts no processes; its helper counts as one.
const PROCESSES_MAX: u64 = 8;

/// A line of the reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ReaderLine {
    /// The file cannot be opened.
    Problem { problem: PdfProblem },
    /// The file was opened.
    Document { pages: u32 },
    /// A page; without text if it cannot be read.
    Page { page: u32, text: Option<String> },
    /// All requested pages were read.
    End,
}

/// Reason why a file cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PdfProblem {
    /// The file needs a password.
    Encrypted,
    /// The file is not a PDF, or broken.
    Unreadable,
}

/// The program that reads PDF files.
#[derive(Clone, Debug)]
pub struct PdfProgram(ProgramSpec);

impl PdfProgram {
    /// The running program, which calls [`pdf_reader_main`] if its first argument is `subcommand`. It is
    /// supervised and confined as far as `surroundings` allows.
    ///
    /// # Errors
    /// The path of the running program cannot be determined.
    pub fn this_program(subcommand: &str, surroundings: &SpawnContext) -> std::io::Result<Self> {
        let own = std::env::current_exe()?;
        let folder = own.parent().map(PathBuf::from);
        // The link leads to the binary that runs, even if an update has replaced its file.
        let link = PathBuf::from("/proc/self/exe");
        let program = if surroundings.helper.is_some() && link.exists() { link } else { own };
        let program = Self::new(program, [subcommand.into()], surroundings);
        let sandbox = SandboxRules { read: Some(folder.into_iter().collect()), ..program.0.sandbox };
        Ok(Self(ProgramSpec { sandbox, ..program.0 }))
    }

    /// A program that hands what follows `arguments` to [`pdf_reader_main`].
    pub fn new(
        program: PathBuf,
        arguments: impl IntoIterator<Item = OsString>,
        surroundings: &SpawnContext,
    ) -> Self {
        let sandbox = SandboxRules {
            mode: SandboxMode::On,
            read: Some(Vec::new()),
            write: Vec::new(),
            network: NetworkAccess::Deny,
        };
        let arguments = arguments.into_iter().collect();
        let spec = ProgramSpec::new(program, surroundings);
        Self(ProgramSpec { arguments, sandbox, ..spec })
    }

    /// Sets an environment variable, such as an allocator setting: memory that is free but mapped counts
    /// towards `pdf_memory_bytes_max`.
    #[must_use]
    pub fn with_environment_variable(mut self, name: &str, value: &str) -> Self {
        self.0.environment.insert(name.to_owned(), value.to_owned());
        self
    }
}

/// The text of a PDF, or of a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct PdfText {
    /// Pages of the whole file.
    pub pages: u32,
    /// Pages with text, in their order. None: the pages are pictures, such as those of a scanner.
    pub texts: Vec<PdfPage>,
    /// Pages that cannot be read. Others have no text.
    pub unreadable_pages: Vec<u32>,
    /// First page that was not read; ask again with it as `from_page`. Absent: the last page was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page: Option<u32>,
    /// Limit of `[server.limits]` that ended the reading before the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "pdf_text_bytes_max")]
    pub ended_by: Option<&'static str>,
}

/// The text of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct PdfPage {
    /// Number of the page, from 1.
    pub page: u32,
    /// Its text.
    pub text: String,
    /// True if the page alone has more than `pdf_text_bytes_max`; the rest of it is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// Reads PDF files, a few at a time.
#[derive(Debug)]
pub(crate) struct PdfTexts {
    limits: ServerLimits,
    /// Processes that may run.
    readers: Semaphore,
    /// Files of each person that are read or wait.
    by_user: Mutex<BTreeMap<String, u32>>,
}

/// A file that is read or waits, until it is dropped.
struct UserSlot<'a> {
    texts: &'a PdfTexts,
    user: &'a str,
}

impl Drop for UserSlot<'_> {
    fn drop(&mut self) {
        let mut by_user = self.texts.by_user.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_user.get_mut(self.user) {
            *count -= 1;
            if *count == 0 {
                by_user.remove(self.user);
            }
        }
    }
}

impl PdfTexts {
    pub(crate) fn new(limits: ServerLimits) -> Arc<Self> {
        let readers = Semaphore::new(limits.pdf_readers_max as usize);
        Arc::new(Self { limits, readers, by_user: Mutex::default() })
    }

    /// Reads a file of a person from this page on.
    ///
    /// # Errors
    /// It cannot be read, or not now.
    pub(crate) async fn read(
        &self,
        program: &PdfProgram,
        user: &str,
        file: tokio::fs::File,
        from_page: u32,
    ) -> Result<PdfText, ApiError> {
        let _slot = self.slot(user)?;
        let time = Duration::from_millis(self.limits.pdf_ms_max);
        let busy = || {
            ApiError::unavailable("pdf_readers_busy", "all PDF readers are busy", 5)
                .remedy("try again in a moment, or raise `pdf_readers_max` of [server.limits]")
        };
        let permit = timeout_at(Instant::now() + time, self.readers.acquire()).await.map_err(|_| busy())?;
        let _permit = permit.map_err(ApiError::internal)?;
        let limits = ProcessLimits {
            memory_bytes_max: self.limits.pdf_memory_bytes_max,
            file_bytes_max: 0,
            open_files_max: OPEN_FILES_MAX,
            processes_max: PROCESSES_MAX,
            ..ProcessLimits::default()
        };
        let spec = ProgramSpec { limits, ..program.0.clone() };
        let spec = spec.argument(from_page.to_string()).argument(self.limits.pdf_pages_max.to_string());
        let mut reader = spec.start().map_err(|error| {
            tracing::error!(%error, "cannot start the PDF reader");
            ApiError::internal(error)
        })?;
        let mut reading = Reading::new(from_page, self.limits.pdf_text_bytes_max.into());
        let end = timeout_at(Instant::now() + time, reading.run(&mut reader, file)).await;
        let is_over_time = end.is_err();
        // Dropped, it is killed with everything that it has started.
        drop(reader);
        reading.finish(is_over_time)
    }

    fn slot<'a>(&'a self, user: &'a str) -> Result<UserSlot<'a>, ApiError> {
        let mut by_user = self.by_user.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_user.entry(user.to_owned()).or_default();
        if *count >= PDFS_PER_USER_MAX {
            let message = format!("{PDFS_PER_USER_MAX} of your PDF files are already being read");
            return Err(
                ApiError::too_many("too_many_pdfs", message, 5).remedy("wait until one has been read")
            );
        }
        *count += 1;
        Ok(UserSlot { texts: self, user })
    }
}

/// Output of a reader so far.
struct Reading {
    from_page: u32,
    bytes_left: u64,
    problem: Option<PdfProblem>,
    pages: Option<u32>,
    texts: Vec<PdfPage>,
    unreadable_pages: Vec<u32>,
    /// Number of the last page that was read.
    last: Option<u32>,
    progress: Progress,
}

/// Progress of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The reader was still reading at its last output.
    Reading,
    /// The text is as long as it may be.
    Full,
    /// The reader has read all requested pages.
    Ended,
}

impl Reading {
    fn new(from_page: u32, bytes_max: u64) -> Self {
        Self {
            from_page,
            bytes_left: bytes_max,
            problem: None,
            pages: None,
            texts: Vec::new(),
            unreadable_pages: Vec::new(),
            last: None,
            progress: Progress::Reading,
        }
    }

    /// Gives the reader its file and takes its lines.
    async fn run(&mut self, reader: &mut ChildProcess, mut file: tokio::fs::File) {
        let (Some(mut stdin), Some(stdout)) = (reader.stdin.take(), reader.stdout.take()) else { return };
        let stderr = reader.stderr.take();
        let give = async {
            // It may end without having read everything.
            let _ = tokio::io::copy(&mut file, &mut stdin).await;
            let _ = stdin.shutdown().await;
            drop(stdin);
        };
        let ignore = async {
            if let Some(mut stderr) = stderr {
                let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
            }
        };
        let mut lines = BufReader::new(stdout);
        let take = async {
            let mut line = Vec::new();
            while self.progress == Progress::Reading && self.problem.is_none() {
                line.clear();
                let most = self.bytes_left * ESCAPED_BYTES_MAX + LINE_BYTES_MAX;
                let read = (&mut lines).take(most).read_until(b'\n', &mut line).await;
                if !matches!(read, Ok(1..)) {
                    return;
                }
                // Longer than the remaining limit: the rest of such a page could not be used.
                if line.last() != Some(&b'\n') {
                    if u64::try_from(line.len()).unwrap_or(u64::MAX) >= most {
                        self.progress = Progress::Full;
                    }
                    return;
                }
                match serde_json::from_slice(&line) {
                    Ok(line) => self.apply(line),
                    Err(_) => return,
                }
            }
        };
        // What it has written is read even if it has taken all and ended.
        let others = async {
            tokio::join!(give, ignore);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = take => {}
            () = others => {}
        }
    }

    fn apply(&mut self, line: ReaderLine) {
        match line {
            ReaderLine::Problem { problem } => self.problem = Some(problem),
            ReaderLine::Document { pages } => self.pages = Some(pages),
            ReaderLine::End => self.progress = Progress::Ended,
            ReaderLine::Page { page, text: None } => {
                self.last = Some(page);
                self.unreadable_pages.push(page);
            }
            ReaderLine::Page { page, text: Some(mut text) } => {
                let is_over = text.len() as u64 > self.bytes_left;
                if is_over && !self.texts.is_empty() {
                    self.progress = Progress::Full;
                    return;
                }
                if is_over {
                    let end = usize::try_from(self.bytes_left).unwrap_or(usize::MAX);
                    text.truncate(text.floor_char_boundary(end));
                    self.progress = Progress::Full;
                }
                self.bytes_left -= text.len() as u64;
                self.last = Some(page);
                if !text.is_empty() || is_over {
                    self.texts.push(PdfPage { page, text, is_cut: is_over });
                }
            }
        }
    }

    fn finish(self, is_over_time: bool) -> Result<PdfText, ApiError> {
        match self.problem {
            Some(PdfProblem::Encrypted) => {
                return Err(ApiError::unprocessable("encrypted_pdf", "the PDF needs a password")
                    .remedy("save a copy without a password, and upload that"));
            }
            Some(PdfProblem::Unreadable) => return Err(unreadable()),
            None => {}
        }
        let next = self.last.map_or(self.from_page, |last| last.saturating_add(1));
        let Some(pages) = self.pages.filter(|_| !(is_over_time && self.last.is_none())) else {
            return Err(if is_over_time { too_slow() } else { unreadable() });
        };
        let mut unreadable_pages = self.unreadable_pages;
        let (next, ended_by) = match self.progress {
            Progress::Full => (next, Some("pdf_text_bytes_max")),
            Progress::Ended => (next, Some("pdf_pages_max")),
            Progress::Reading if is_over_time => (next, Some("pdf_ms_max")),
            // The reader died of this page, most likely for lack of memory; the others may still be readable.
            Progress::Reading => {
                unreadable_pages.push(next);
                (next.saturating_add(1), Some("pdf_memory_bytes_max"))
            }
        };
        unreadable_pages.retain(|page| *page <= pages);
        let next_page = Some(next).filter(|next| *next <= pages);
        Ok(PdfText {
            pages,
            texts: self.texts,
            unreadable_pages,
            next_page,
            ended_by: ended_by.filter(|_| next_page.is_some()),
        })
    }
}

fn unreadable() -> ApiError {
    ApiError::unprocessable("unreadable_pdf", "the file cannot be read as a PDF")
        .remedy("open it in a PDF viewer, print it into a new PDF and upload that, or paste its text")
}

fn too_slow() -> ApiError {
    ApiError::unprocessable("slow_pdf", "reading this page of the PDF exceeds `pdf_ms_max`").remedy(
        "ask for a later page (`from_page`), paste the text, or raise `pdf_ms_max` of [server.limits]",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PDF with a page for each of these texts; an empty one is a page without any.
    pub(super) fn pdf(texts: &[&str]) -> Vec<u8> {
        let kids: Vec<String> = (0..texts.len()).map(|at| format!("{} 0 R", 4 + at * 2)).collect();
        let mut objects = vec![
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), texts.len()),
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        ];
        for (at, text) in texts.iter().enumerate() {
            let page =
                "/Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>";
            objects.push(format!("<< {page} /Contents {} 0 R >>", 5 + at * 2));
            let content = if text.is_empty() {
                String::new()
            } else {
                format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET")
            };
            objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
        }
        let (mut file, mut offsets) = ("%PDF-1.4\n".to_owned(), Vec::new());
        for (at, object) in objects.iter().enumerate() {
            offsets.push(file.len());
            file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
        }
        let start = file.len();
        file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
        for offset in offsets {
            file.push_str(&format!("{offset:010} 00000 n \n"));
        }
        let size = objects.len() + 1;
        file.push_str(&format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"));
        file.into_bytes()
    }

    fn reading(lines: &[ReaderLine], bytes_max: u64, is_over_time: bool) -> Result<PdfText, &'static str> {
        let mut reading = Reading::new(1, bytes_max);
        for line in lines {
            if reading.progress == Progress::Reading {
                reading.apply(line.clone());
            }
        }
        reading.finish(is_over_time).map_err(|error| error.code)
    }

    fn page(page: u32, text: &str) -> ReaderLine {
        ReaderLine::Page { page, text: Some(text.to_owned()) }
    }

    #[test]
    fn text_read_before_a_limit_is_returned_with_the_limit() {
        let document = ReaderLine::Document { pages: 3 };
        let told = |text: &PdfText| {
            let texts = text.texts.iter().map(|page| (page.page, page.text.clone(), page.is_cut)).collect();
            (texts, text.unreadable_pages.clone(), text.next_page, text.ended_by)
        };
        type Told = (Vec<(u32, String, bool)>, Vec<u32>, Option<u32>, Option<&'static str>);
        let text = |page: u32, text: &str| (page, text.to_owned(), false);
        let lines = [document.clone(), page(1, "one"), page(2, "two"), page(3, ""), ReaderLine::End];
        let cases: [(&[ReaderLine], u64, bool, Told); 7] = [
            (&lines, 6, false, (vec![text(1, "one"), text(2, "two")], vec![], None, None)),
            (&lines, 5, false, (vec![text(1, "one")], vec![], Some(2), Some("pdf_text_bytes_max"))),
            (&lines, 2, false, (vec![(1, "on".into(), true)], vec![], Some(2), Some("pdf_text_bytes_max"))),
            (&lines[..2], 9, true, (vec![text(1, "one")], vec![], Some(2), Some("pdf_ms_max"))),
            (&lines[..2], 9, false, (vec![text(1, "one")], vec![2], Some(3), Some("pdf_memory_bytes_max"))),
            (
                &[document.clone(), page(1, "one"), ReaderLine::End],
                9,
                false,
                (vec![text(1, "one")], vec![], Some(2), Some("pdf_pages_max")),
            ),
            (
                &[document.clone(), ReaderLine::Page { page: 1, text: None }, page(2, ""), page(3, "é")],
                1,
                false,
                (vec![(3, String::new(), true)], vec![1], None, None),
            ),
        ];
        for (lines, bytes_max, is_over_time, expected) in cases {
            assert_eq!(told(&reading(lines, bytes_max, is_over_time).unwrap()), expected, "{lines:?}");
        }
        assert_eq!(reading(&[document], 9, true), Err("slow_pdf"));
        assert_eq!(reading(&[], 9, true), Err("slow_pdf"));
        assert_eq!(reading(&[], 9, false), Err("unreadable_pdf"));
        let problem = |problem| reading(&[ReaderLine::Problem { problem }], 9, false);
        assert_eq!(problem(PdfProblem::Encrypted), Err("encrypted_pdf"));
        assert_eq!(problem(PdfProblem::Unreadable), Err("unreadable_pdf"));
    }

    /// Answer of a program that is no reader: a script.
    #[cfg(unix)]
    async fn run_script(script: &str, limits: ServerLimits) -> Result<PdfText, &'static str> {
        use std::io::Write;
        let mut file = tempfile::tempfile().unwrap();
        // More than a pipe holds, so that a program that reads nothing would block us.
        file.write_all(&vec![b'x'; 1 << 20]).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let surroundings = SpawnContext::of_this_process();
        let program = PdfProgram::new("/bin/sh".into(), ["-c".into(), script.into()], &surroundings);
        let texts = PdfTexts::new(limits);
        let read = texts.read(&program, "ada", tokio::fs::File::from_std(file), 1).await;
        assert_eq!(texts.readers.available_permits(), limits.pdf_readers_max as usize);
        read.map_err(|error| error.code)
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn reader_process_failures_become_errors_or_partial_text() {
        let limits = ServerLimits::default();
        let begins =
            r#"echo '{"type":"document","pages":2}'; echo '{"type":"page","page":1,"text":"one"}'; "#;
        let whole =
            format!(r#"{begins} echo '{{"type":"page","page":2,"text":""}}'; echo '{{"type":"end"}}'"#);
        let text = run_script(&whole, limits).await.unwrap();
        assert_eq!((text.pages, text.texts.len(), text.next_page), (2, 1, None));
        let text = run_script(&format!("cat > /dev/null; {begins} kill -9 $$"), limits).await.unwrap();
        assert_eq!((text.texts.len(), text.unreadable_pages, text.next_page), (1, vec![2], None));
        assert_eq!(run_script("exit 3", limits).await, Err("unreadable_pdf"));
        assert_eq!(run_script("echo nonsense", limits).await, Err("unreadable_pdf"));
        assert_eq!(
            run_script("while :; do printf xxxxxxxxxxxxxxxxxxxxxxxx; done", limits).await,
            Err("unreadable_pdf")
        );
        let hurried = ServerLimits { pdf_ms_max: 300, ..limits };
        assert_eq!(run_script("exec sleep 1000", hurried).await, Err("slow_pdf"));
    }

    #[tokio::test]
    async fn waiting_too_long_for_a_reader_returns_busy() {
        let texts =
            PdfTexts::new(ServerLimits { pdf_ms_max: 50, pdf_readers_max: 1, ..ServerLimits::default() });
        let _busy = texts.readers.acquire().await.unwrap();
        let program = PdfProgram::new("/nowhere".into(), [], &SpawnContext::default());
        let file = tokio::fs::File::from_std(tempfile::tempfile().unwrap());
        let error = texts.read(&program, "ada", file, 1).await.unwrap_err();
        assert_eq!((error.code, error.retry_after_s), ("pdf_readers_busy", Some(5)));
    }

    #[test]
    fn pdfs_per_user_are_limited() {
        let texts = PdfTexts::new(ServerLimits::default());
        let slots: Vec<_> = (0..PDFS_PER_USER_MAX).map(|_| texts.slot("ada").unwrap()).collect();
        assert_eq!(texts.slot("ada").err().map(|error| error.code), Some("too_many_pdfs"));
        drop(texts.slot("bob").unwrap());
        drop(slots);
        drop(texts.slot("ada").unwrap());
        assert!(texts.by_user.lock().unwrap().is_empty());
    }
}
