//! The process that reads a PDF: the file on its standard input, the text of one page after another on its
//! standard output.
//!
//! It does nothing else, so a broken file can only affect this process: its library, its memory and its
//! stack.

use super::{PdfProblem, ReaderLine};
use pdf_extract::{Document, Error, OutputError, PlainTextOutput, output_doc_page};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

/// Becomes the reader: for the first lines of `main`. `arguments` are those after what
/// [`PdfProgram`](super::PdfProgram) was made with: the first page and the number of pages.
pub fn pdf_reader_main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    // A panic is reported as a page without text; its message is not needed.
    panic::set_hook(Box::new(|_| {}));
    let mut numbers = arguments.into_iter().filter_map(|argument| argument.to_str()?.parse::<u32>().ok());
    let (Some(first), Some(pages_max)) = (numbers.next(), numbers.next()) else { return ExitCode::FAILURE };
    let mut content = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut content);
    let read = read.and_then(|_| write_pages(&content, first, pages_max, &mut io::stdout().lock()));
    // The parent may have read enough and closed the pipe.
    if read.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Writes a line for the file and one for each page, as soon as it is read.
fn write_pages(content: &[u8], first: u32, pages_max: u32, output: &mut impl Write) -> io::Result<()> {
    let mut write = |line: &ReaderLine| {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        output.write_all(text.as_bytes())?;
        output.flush()
    };
    let opened = panic::catch_unwind(|| open(content)).unwrap_or(Err(PdfProblem::Unreadable));
    let document = match opened {
        Ok(document) => document,
        Err(problem) => return write(&ReaderLine::Problem { problem }),
    };
    let numbers: Vec<u32> =
        panic::catch_unwind(AssertUnwindSafe(|| document.get_pages().into_keys().collect()))
            .unwrap_or_default();
    write(&ReaderLine::Document { pages: u32::try_from(numbers.len()).unwrap_or(u32::MAX) })?;
    let wanted = numbers.into_iter().filter(|number| *number >= first).take(pages_max as usize);
    for page in wanted {
        let text = panic::catch_unwind(AssertUnwindSafe(|| page_text(&document, page))).ok().flatten();
        write(&ReaderLine::Page { page, text })?;
    }
    write(&ReaderLine::End)
}

fn open(content: &[u8]) -> Result<Document, PdfProblem> {
    let mut document = Document::load_mem(content).map_err(|error| match error {
        Error::Decryption(_) | Error::InvalidPassword => PdfProblem::Encrypted,
        _ => PdfProblem::Unreadable,
    })?;
    // Many files are encrypted with the empty password: everyone may read them, but not print.
    if document.is_encrypted() {
        document.decrypt("").map_err(|_| PdfProblem::Encrypted)?;
    }
    Ok(document)
}

/// `None` = the page cannot be read.
fn page_text(document: &Document, page: u32) -> Option<String> {
    let mut text = String::new();
    let mut output = PlainTextOutput::new(&mut text);
    let read: Result<(), OutputError> = output_doc_page(document, &mut output, page);
    read.ok()?;
    Some(tidy(&text))
}

/// Removes control characters, trailing spaces, and repeated empty lines.
fn tidy(text: &str) -> String {
    let mut tidied = String::with_capacity(text.len());
    let mut empty_lines = 0;
    for line in text.lines() {
        let line: String = line.chars().filter(|c| *c == '\t' || !c.is_control()).collect();
        let line = line.trim_end();
        empty_lines = if line.is_empty() { empty_lines + 1 } else { 0 };
        if empty_lines <= 1 {
            tidied.push_str(line);
            tidied.push('\n');
        }
    }
    tidied.trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::tests::pdf;
    use super::*;
    use proptest::prelude::*;

    fn lines(content: &[u8], first: u32, pages_max: u32) -> Vec<ReaderLine> {
        let mut output = Vec::new();
        write_pages(content, first, pages_max, &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn page(page: u32, text: &str) -> ReaderLine {
        ReaderLine::Page { page, text: Some(text.to_owned()) }
    }

    #[test]
    fn pages_are_read_in_order_from_the_requested_one() {
        let file = pdf(&["The first page", "", "The third page"]);
        let document = ReaderLine::Document { pages: 3 };
        assert_eq!(
            lines(&file, 1, 10),
            [
                document.clone(),
                page(1, "The first page"),
                page(2, ""),
                page(3, "The third page"),
                ReaderLine::End
            ]
        );
        assert_eq!(lines(&file, 2, 1), [document.clone(), page(2, ""), ReaderLine::End]);
        assert_eq!(lines(&file, 4, 1), [document, ReaderLine::End]);
    }

    #[test]
    fn unreadable_page_loses_no_other_and_non_pdf_is_reported() {
        for content in [&b""[..], b"hello", b"%PDF-1.7\n", b"%PDF-1.4\nxref\ntrailer\n<<>>\n%%EOF"] {
            let found = lines(content, 1, 10);
            let is_known = matches!(
                found.as_slice(),
                [ReaderLine::Problem { problem: PdfProblem::Unreadable }]
                    | [ReaderLine::Document { pages: 0 }, ReaderLine::End]
            );
            assert!(is_known, "{found:?}");
        }
        let file = String::from_utf8(pdf(&["one", "two"])).unwrap();
        // The library expects one and panics.
        let broken = file.replacen("/MediaBox [0 0 612 792]", "/MediaBug [0 0 612 792]", 1);
        let found = lines(broken.as_bytes(), 1, 10);
        assert_eq!(found[1..], [ReaderLine::Page { page: 1, text: None }, page(2, "two"), ReaderLine::End]);
    }

    #[test]
    fn tidy_removes_control_characters_and_extra_blank_lines() {
        assert_eq!(tidy("\n\na  \n\n\n\nb\u{0}\u{1b}[1m\tc\r\n\n"), "a\n\nb[1m\tc");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn corrupt_file_still_produces_lines(at in 0_usize..600, byte: u8, cut in 0_usize..900) {
            let mut file = pdf(&["one", "two"]);
            let at = at % file.len();
            file[at] = byte;
            file.truncate(cut.max(1));
            prop_assert!(!lines(&file, 1, 10).is_empty());
        }
    }
}
