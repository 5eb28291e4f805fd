//! The input of `ask`: arguments, standard input, files and images.

use crate::args::AskArgs;
use crate::conversation::TurnText;
use crate::exit::CliFailure;
use crate::messages;
use crate::picture::PictureFile;
use crate::templates::FilledTemplate;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

/// Most bytes that are read from standard input, or from one file: about 250,000 tokens.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Separator of parts that do not form one sentence.
const GAP: &str = "\n\n";

/// The whole input. Empty if nothing was given.
pub(super) fn read(args: &AskArgs) -> Result<TurnText, CliFailure> {
    // Before standard input is read: a mistake in the arguments needs no input.
    let template = FilledTemplate::of(&args.template, args.choice.config.as_deref())?;
    let is_placed = args.prompt.iter().any(|part| part == "-");
    let piped = if is_placed || !io::stdin().is_terminal() { read_stdin(is_placed)? } else { String::new() };
    let mut text = join(&args.prompt, piped.trim_end());
    for path in &args.file {
        add(&mut text, &format!("{}:{GAP}{}", path.display(), read_file(path)?.trim_end()), GAP);
    }
    if let Some(template) = template {
        text = template.apply(&text)?;
    }
    let pictures = args.image.iter().map(|path| PictureFile::load(path)).collect::<Result<_, _>>()?;
    Ok(TurnText { text, pictures })
}

/// The prompt with standard input in place of `-`, else after it.
fn join(prompt: &[String], piped: &str) -> String {
    let mut text = String::new();
    // Arguments are joined with spaces.
    let mut gap = "";
    for part in prompt {
        if part == "-" {
            add(&mut text, piped, GAP);
            gap = GAP;
        } else {
            add(&mut text, part, gap);
            gap = " ";
        }
    }
    if !prompt.iter().any(|part| part == "-") {
        add(&mut text, piped, GAP);
    }
    text
}

fn add(text: &mut String, part: &str, gap: &str) {
    if !text.is_empty() && !part.is_empty() {
        text.push_str(gap);
    }
    text.push_str(part);
}

/// Standard input. An unreadable one counts as empty, unless `-` requests it.
fn read_stdin(is_placed: bool) -> Result<String, CliFailure> {
    match read_text(io::stdin().lock()) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(messages::too_much_text(&messages::standard_input(), TEXT_BYTES_MAX)),
        Err(error) if is_placed || error.kind() == io::ErrorKind::InvalidData => {
            Err(messages::input_failed(&error))
        }
        Err(_) => Ok(String::new()),
    }
}

fn read_file(path: &Path) -> Result<String, CliFailure> {
    let text = std::fs::File::open(path).and_then(read_text);
    match text.map_err(|error| messages::file_failed(path, &error))? {
        Some(text) => Ok(text),
        None => Err(messages::too_much_text(&path.display().to_string(), TEXT_BYTES_MAX)),
    }
}

/// `None`: it is longer than [`TEXT_BYTES_MAX`].
fn read_text(from: impl Read) -> io::Result<Option<String>> {
    let mut text = String::new();
    from.take(TEXT_BYTES_MAX + 1).read_to_string(&mut text)?;
    Ok(Some(text).filter(|text| text.len() as u64 <= TEXT_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stdin_follows_the_prompt_or_replaces_the_dash() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(join(&words("review this"), "diff"), "review this\n\ndiff");
        assert_eq!(join(&words("- review this"), "diff"), "diff\n\nreview this");
        assert_eq!(join(&words("before - after"), "diff"), "before\n\ndiff\n\nafter");
        assert_eq!(join(&words("review this"), ""), "review this");
        assert_eq!(join(&[], "diff"), "diff");
    }

    #[test]
    fn text_over_the_byte_limit_is_rejected() {
        let most = usize::try_from(TEXT_BYTES_MAX).unwrap();
        assert!(read_text(io::Cursor::new("a".repeat(most))).unwrap().is_some());
        assert!(read_text(io::Cursor::new("a".repeat(most + 1))).unwrap().is_none());
    }
}
