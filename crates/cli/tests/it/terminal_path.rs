//! The sessions that docs/terminal.md shows, in English and in Chinese, typed unchanged at a pseudo-terminal.
#![cfg(unix)]

use crate::support::terminal::Terminal;
use std::path::Path;
use std::process::Command;

/// Ends what is on the screen before a line is typed.
const PROMPT: &str = "› ";

/// The session of a language: the lines of the block.
fn session(number: usize) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/terminal.md");
    let document = std::fs::read_to_string(path).unwrap();
    let block = document.split("```console session\n").nth(number).expect("a session in docs/terminal.md");
    block.split("\n```").next().unwrap().lines().map(str::to_owned).collect()
}

/// Words of a command line; a text in double quotes is one word.
fn words(line: &str) -> Vec<String> {
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    };
    line.split('"').enumerate().flat_map(part).collect()
}

/// Plays a session: `$` begins a command, `› ` ends a prompt at which the rest of the line is typed, every
/// other line is on the screen in this order. `…` matches any text.
fn check(locale: &str, number: usize) {
    let folder = tempfile::tempdir().unwrap();
    let (mut running, mut commands, mut typed): (Option<Terminal>, Vec<String>, usize) =
        (None, Vec::new(), 0);
    let end = |running: &mut Option<Terminal>, commands: &[String]| {
        if let Some(terminal) = running.take() {
            let (code, _, shown) = terminal.end();
            assert_eq!(code, Some(0), "{:?}:\n{shown}", commands.last());
        }
    };
    for line in session(number) {
        if let Some(command_line) = line.strip_prefix("$ throughline ") {
            end(&mut running, &commands);
            commands.push(command_line.to_owned());
            let mut command = Command::new(assert_cmd::cargo::cargo_bin("throughline"));
            for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THROUGHLINE_")) {
                command.env_remove(name);
            }
            command
                .args(words(command_line))
                .current_dir(folder.path())
                .env("THROUGHLINE_DATA", folder.path().join("data"))
                .env("LC_ALL", locale)
                .env("TERM", "dumb");
            running = Some(Terminal::on_one_screen(&mut command));
            continue;
        }
        let terminal = running.as_mut().expect("a command before its output");
        let (expected, input) = match line.rsplit_once(PROMPT) {
            Some((before, input)) => (format!("{before}{PROMPT}"), Some(input)),
            None => (line, None),
        };
        expected.split('…').filter(|part| !part.is_empty()).for_each(|part| terminal.until(part));
        if let Some(input) = input {
            terminal.line(input);
            typed += 1;
        }
    }
    end(&mut running, &commands);
    for command in ["ask \"", "ask -c", "chat -c", "history", "replay"] {
        assert!(commands.iter().any(|line| line.starts_with(command)), "{command} is not in the session");
    }
    assert!(typed >= 5, "a message, an approval, /retry, a denial, /quit");
}

#[test]
fn documented_session_runs_in_english() {
    check("C.UTF-8", 1);
}

#[test]
fn documented_session_runs_in_chinese() {
    check("zh_CN.UTF-8", 2);
}
