//! Prompts on a terminal.

use super::local::ReadyUpstreams;
use crate::exit::{CliExit, CliFailure};
use crate::messages::{self, UiText};
use crate::output::{err, errln};
use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use std::io::{self, BufRead, Write};
use throughline::providers::{self, KnownProvider};
use throughline_wire::display_escape;

/// Prints the built-in providers by number, with those that can be used immediately.
pub(crate) fn print_known(ready: &ReadyUpstreams, words: UiText) {
    let all = providers::all();
    let name_width = all.iter().map(|row| row.name.len()).max().unwrap_or_default();
    let title_width = all.iter().map(|row| row.title.len()).max().unwrap_or_default();
    for (at, row) in all.iter().enumerate() {
        let KnownProvider { name, title, .. } = row;
        let state = display_escape::escape(&ready.state(row, words)).into_owned();
        let line = format!("{:>3}  {name:<name_width$}  {title:<title_width$}  {state}", at + 1);
        errln!("{}", line.trim_end());
    }
}

/// Asks for an upstream, by number or name.
pub(crate) fn ask_upstream(ready: &ReadyUpstreams, words: UiText) -> Result<String, CliFailure> {
    print_known(ready, words);
    let input = prompt(&words.connect_which())?;
    let names = providers::names();
    let by_number = input.parse::<usize>().ok().and_then(|number| names.get(number.checked_sub(1)?));
    match by_number {
        Some(name) => Ok((*name).to_owned()),
        None if input.is_empty() => Err(words.connect_none(ready.example())),
        None => Ok(input),
    }
}

/// Asks for one of these models, by number or name; `None` = none.
pub(crate) fn ask_model(
    models: &[String],
    listed_max: usize,
    words: UiText,
) -> Result<Option<String>, CliFailure> {
    for (at, model) in models.iter().take(listed_max).enumerate() {
        super::print_status(&format!("{:>3}  {model}", at + 1));
    }
    if models.len() > listed_max {
        errln!("{}", words.connect_more(models.len() - listed_max));
    }
    let input = prompt(&words.connect_model())?;
    let by_number = input.parse::<usize>().ok().and_then(|number| models.get(number.checked_sub(1)?));
    Ok(match by_number {
        Some(model) => Some(model.clone()),
        None => Some(input).filter(|input| !input.is_empty()),
    })
}

/// A line of standard input.
pub(crate) fn read_line() -> Result<String, CliFailure> {
    let mut text = String::new();
    io::stdin().lock().read_line(&mut text).map_err(|error| messages::input_failed(&error))?;
    Ok(text.trim().to_owned())
}

fn prompt(question: &str) -> Result<String, CliFailure> {
    err!("{question} ");
    let _ = io::stderr().flush();
    read_line()
}

/// Reads a line without echo.
pub(crate) fn read_hidden(question: &str) -> Result<String, CliFailure> {
    // Before the prompt, so that early typing is not shown, either.
    enable_raw_mode().map_err(|error| messages::terminal_failed(&error))?;
    err!("{question}");
    let _ = io::stderr().flush();
    let typed = read_hidden_keys();
    let restored = disable_raw_mode();
    errln!();
    restored.map_err(|error| messages::terminal_failed(&error))?;
    match typed.map_err(|error| messages::terminal_failed(&error))? {
        Some(text) => Ok(text),
        None => Err(CliFailure { exit: CliExit::Cancelled, ..CliFailure::usage("stopped", "", "") }),
    }
}

/// `None` = Ctrl-C, Ctrl-D or Esc.
fn read_hidden_keys() -> io::Result<Option<String>> {
    let mut text = String::new();
    loop {
        match read()? {
            Event::Paste(pasted) => text.push_str(&pasted),
            Event::Key(key) if key.kind != KeyEventKind::Release => match key.code {
                KeyCode::Enter => return Ok(Some(text)),
                KeyCode::Esc => return Ok(None),
                KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(None),
                KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => text.clear(),
                // Enter as a pseudo terminal sends it.
                KeyCode::Char('j') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(Some(text)),
                KeyCode::Backspace => drop(text.pop()),
                KeyCode::Char(c) => text.push(c),
                _ => {}
            },
            _ => {}
        }
    }
}
