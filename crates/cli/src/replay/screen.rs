//! A recorded turn on the terminal: played, or key by key.

use super::player::Player;
use crate::chat::transcript::{Reasoning, Transcript};
use crate::exit::{Ended, Exit};
use crate::messages::{self, Words};
use crate::terminal::card::duration;
use crate::terminal::painter::Painter;
use crate::terminal::session::{self, Keys, RawTerminal};
use crate::terminal::text::{Ink, Line, Style};
use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::Duration;
use throughline_engine::{Event, EventKind};
use throughline_wire::UserPart;

/// Time between two frames: about 30 a second. R: T2
const FRAME: Duration = Duration::from_millis(33);
/// Events that Page Up and Page Down go.
const PAGE: usize = 10;
/// As wide as the narrowest usual terminal, where nobody can be asked.
const PIPE_COLUMNS: usize = 80;

/// Plays the turn; what is settled stays on the screen, as in a chat.
pub async fn play(mut player: Player, words: Words) -> Ended {
    let failed = |error: std::io::Error| messages::terminal_failed(&error);
    let (columns, rows) = crossterm::terminal::size().map_err(failed)?;
    let mut wishes = crate::interrupt::wishes().map_err(|error| messages::no_signals(&error))?;
    let raw = RawTerminal::enter().map_err(failed)?;
    let mut keys = Keys::listen().map_err(|error| messages::no_runtime(&error))?;
    let mut painter = Painter::new(columns, rows);
    let first = player.given().0.first().map_or(0, |event| event.timestamp);
    let mut transcript = Transcript::new(words, Reasoning::Folded, first);
    let mut settled = said(player.given().0, painter.columns());
    let mut painted_at = tokio::time::Instant::now();
    let mut left = Exit::Done;
    while let Some(wait) = player.wait() {
        if !wait.is_zero() || painted_at.elapsed() >= FRAME {
            paint(&mut painter, &mut transcript, &mut settled, &player, words).map_err(failed)?;
            painted_at = tokio::time::Instant::now();
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                key = keys.next() => {
                    match key {
                        Some(Input::Resize(columns, rows)) => painter.resize(columns, rows),
                        Some(Input::Key(key)) if wants_to_leave(&key) => { left = Exit::Cancelled; break }
                        Some(_) => {}
                        None => break,
                    }
                    continue;
                }
                _ = wishes.recv() => { left = Exit::Cancelled; break }
            }
        }
        if let Some(event) = player.next() {
            transcript.apply(event);
        }
    }
    let shown = transcript.show(player.now(), painter.columns());
    settled.extend(shown.settled);
    settled.extend(shown.live);
    settled.extend(transcript.footer());
    let farewell = painter.frame(settled, Vec::new(), None) + &painter.clear();
    drop(raw);
    session::write(&farewell).map_err(failed)?;
    Ok(left)
}

fn paint(
    painter: &mut Painter,
    transcript: &mut Transcript,
    settled: &mut Vec<Line>,
    player: &Player,
    words: Words,
) -> std::io::Result<()> {
    let shown = transcript.show(player.now(), painter.columns());
    settled.extend(shown.settled);
    let mut live = shown.live;
    live.push(Line::default());
    live.push(position(player, words).truncated(painter.columns()));
    session::write(&painter.frame(std::mem::take(settled), live, None))
}

/// Shows the turn as it was after each event; keys go forth and back.
pub async fn step(events: Vec<Event>, words: Words) -> Ended {
    let failed = |error: std::io::Error| messages::terminal_failed(&error);
    let (columns, rows) = crossterm::terminal::size().map_err(failed)?;
    let mut wishes = crate::interrupt::wishes().map_err(|error| messages::no_signals(&error))?;
    let raw = RawTerminal::enter().map_err(failed)?;
    let mut keys = Keys::listen().map_err(|error| messages::no_runtime(&error))?;
    let mut painter = Painter::new(columns, rows);
    let mut player = Player::new(events, super::player::Speed::AtOnce);
    player.go(1);
    let left = loop {
        let mut live = lines(player.given().1, painter.columns(), words);
        live.push(Line::default());
        live.push(position(&player, words).truncated(painter.columns()));
        live.push(Line::new(words.replay_keys(), Style::DIM).truncated(painter.columns()));
        session::write(&painter.frame(Vec::new(), live, None)).map_err(failed)?;
        let input = tokio::select! {
            input = keys.next() => input,
            _ = wishes.recv() => break Exit::Cancelled,
        };
        match input {
            Some(Input::Resize(columns, rows)) => painter.resize(columns, rows),
            Some(Input::Key(key)) if wants_to_leave(&key) => break Exit::Done,
            Some(Input::Key(key)) => {
                let all = player.given().0.len();
                player.go(place_after(&key, player.place(), all));
            }
            Some(_) => {}
            None => break Exit::Done,
        }
    };
    let last = lines(player.given().1, painter.columns(), words);
    let farewell = painter.frame(last, Vec::new(), None) + &painter.clear();
    drop(raw);
    session::write(&farewell).map_err(failed)?;
    Ok(left)
}

/// Where a key leads, from 1 to `all`.
fn place_after(key: &KeyEvent, place: usize, all: usize) -> usize {
    let place = match key.code {
        KeyCode::Right | KeyCode::Char(' ' | 'l' | 'n') | KeyCode::Enter => place.saturating_add(1),
        KeyCode::Left | KeyCode::Char('h' | 'p') | KeyCode::Backspace => place.saturating_sub(1),
        KeyCode::PageDown => place.saturating_add(PAGE),
        KeyCode::PageUp => place.saturating_sub(PAGE),
        KeyCode::Home | KeyCode::Char('g') => 1,
        KeyCode::End | KeyCode::Char('G') => all,
        _ => place,
    };
    place.clamp(1.min(all), all)
}

fn wants_to_leave(key: &KeyEvent) -> bool {
    let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind != KeyEventKind::Release && (control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}

/// Where the replay is: event, what it is, when it came.
fn position(player: &Player, words: Words) -> Line {
    let (all, given) = player.given();
    let since = match (all.first(), given.last()) {
        (Some(first), Some(last)) => last.timestamp.saturating_sub(first.timestamp).max(0).unsigned_abs(),
        _ => 0,
    };
    let mut line = Line::new("▶ ", Style::ink(Ink::Cyan));
    line.push(&format!("{} {}/{}", words.replay_event(), given.len(), all.len()), Style::PLAIN);
    line.push(
        &format!(" · {} · +{}", given.last().map(kind).unwrap_or_default(), duration(since)),
        Style::DIM,
    );
    line
}

/// An event's `type`.
fn kind(event: &Event) -> String {
    let value = serde_json::to_value(&event.kind).unwrap_or_default();
    value.get("type").and_then(|kind| kind.as_str()).unwrap_or("?").to_owned()
}

/// The whole screen after these events.
fn lines<'e>(events: impl IntoIterator<Item = &'e Event>, columns: usize, words: Words) -> Vec<Line> {
    let events: Vec<&Event> = events.into_iter().collect();
    let now = events.last().map_or(0, |event| event.timestamp);
    let mut transcript = Transcript::new(words, Reasoning::Folded, now);
    for event in &events {
        transcript.apply(event);
    }
    let shown = transcript.show(now, columns);
    let mut lines = said(events.iter().copied(), columns);
    lines.extend(shown.settled);
    lines.extend(shown.live);
    lines.extend(transcript.footer());
    lines
}

/// The same as text.
pub fn lines_at<'e>(events: impl IntoIterator<Item = &'e Event>, words: Words) -> String {
    lines(events, PIPE_COLUMNS, words).iter().map(|line| line.plain().trim_end().to_owned() + "\n").collect()
}

/// What the user had said.
fn said<'e>(events: impl IntoIterator<Item = &'e Event>, columns: usize) -> Vec<Line> {
    let Some(EventKind::StreamStart { input, .. }) = events.into_iter().next().map(|event| &event.kind)
    else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for part in input {
        if let UserPart::Text { text } = part {
            for (at, line) in text.lines().enumerate() {
                let mut shown = Line::new(if at == 0 { "› " } else { "  " }, Style::ink(Ink::Magenta));
                shown.push(&crate::plain::for_terminal(line), Style::BOLD);
                lines.extend(shown.wrapped(columns));
            }
        }
    }
    lines.push(Line::default());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    // R: S5
    #[test]
    fn keys_go_forth_and_back_within_the_turn() {
        let table = [
            (KeyCode::Right, 1, 2),
            (KeyCode::Right, 40, 40),
            (KeyCode::Left, 1, 1),
            (KeyCode::Left, 9, 8),
            (KeyCode::PageDown, 35, 40),
            (KeyCode::PageUp, 35, 25),
            (KeyCode::PageUp, 5, 1),
            (KeyCode::Home, 17, 1),
            (KeyCode::End, 17, 40),
            (KeyCode::Char('x'), 17, 17),
        ];
        for (key, from, to) in table {
            assert_eq!(place_after(&press(key), from, 40), to, "{key:?} from {from}");
        }
        assert_eq!(place_after(&press(KeyCode::Right), 0, 0), 0, "nothing to show");
        assert!(wants_to_leave(&press(KeyCode::Char('q'))) && wants_to_leave(&press(KeyCode::Esc)));
        assert!(wants_to_leave(&KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(!wants_to_leave(&press(KeyCode::Char('c'))));
    }
}
