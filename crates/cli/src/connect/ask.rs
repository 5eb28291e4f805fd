//! What is asked on a terminal.

use crate::exit::{Exit, Failure};
use crate::messages::{self, Words};
use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use std::io::{self, BufRead, Write};
use throughline::known::{self, Known};

/// Those that are known, by number.
pub fn list() {
    let all = known::all();
    let wide = all.iter().map(|row| row.name.len()).max().unwrap_or_default();
    for (at, Known { name, title, .. }) in all.iter().enumerate() {
        eprintln!("{:>3}  {name:<wide$}  {title}", at + 1);
    }
}

/// One of them, by number or name.
pub fn which(words: Words) -> Result<String, Failure> {
    list();
    let said = prompt(&words.connect_which())?;
    let names = known::names();
    let by_number = said.parse::<usize>().ok().and_then(|number| names.get(number.checked_sub(1)?));
    match by_number {
        Some(name) => Ok((*name).to_owned()),
        None if said.is_empty() => Err(words.connect_none()),
        None => Ok(said),
    }
}

/// One of these models, by number or name; `None` = none.
pub fn model(models: &[String], listed_max: usize, words: Words) -> Result<Option<String>, Failure> {
    for (at, model) in models.iter().take(listed_max).enumerate() {
        super::say(&format!("{:>3}  {model}", at + 1));
    }
    if models.len() > listed_max {
        eprintln!("{}", words.connect_more(models.len() - listed_max));
    }
    let said = prompt(&words.connect_model())?;
    let by_number = said.parse::<usize>().ok().and_then(|number| models.get(number.checked_sub(1)?));
    Ok(match by_number {
        Some(model) => Some(model.clone()),
        None => Some(said).filter(|said| !said.is_empty()),
    })
}

/// A line of standard input.
pub fn line() -> Result<String, Failure> {
    let mut text = String::new();
    io::stdin().lock().read_line(&mut text).map_err(|error| messages::input_failed(&error))?;
    Ok(text.trim().to_owned())
}

fn prompt(question: &str) -> Result<String, Failure> {
    eprint!("{question} ");
    let _ = io::stderr().flush();
    line()
}

/// A line that nobody sees.
pub fn hidden(question: &str) -> Result<String, Failure> {
    // Before the question is there: what is typed at once is not shown, either.
    enable_raw_mode().map_err(|error| messages::terminal_failed(&error))?;
    eprint!("{question}");
    let _ = io::stderr().flush();
    let typed = keys();
    let restored = disable_raw_mode();
    eprintln!();
    restored.map_err(|error| messages::terminal_failed(&error))?;
    match typed.map_err(|error| messages::terminal_failed(&error))? {
        Some(text) => Ok(text),
        None => Err(Failure { exit: Exit::Cancelled, ..Failure::usage("stopped", "", "") }),
    }
}

/// `None` = Ctrl-C, Ctrl-D or Esc.
fn keys() -> io::Result<Option<String>> {
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
