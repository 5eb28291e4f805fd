//! A recorded turn on the terminal: played, or key by key.

use super::player::ReplayPlayer;
use crate::chat::transcript::{ReasoningView, TurnTranscript};
use crate::exit::{CliExit, CommandResult};
use crate::messages::{self, UiText};
use crate::terminal::card::duration;
use crate::terminal::painter::ScreenPainter;
use crate::terminal::session::{self, KeyReader, RawTerminal};
use crate::terminal::text::{StyledLine, TextColor, TextStyle};
use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::Duration;
use throughline_engine::{Event, EventKind};
use throughline_wire::UserPart;

/// Time between two frames: about 30 a second.
const FRAME_INTERVAL: Duration = Duration::from_millis(33);
/// Events that Page Up and Page Down go.
const PAGE_EVENTS: usize = 10;
/// Width of the narrowest usual terminal, for output without a width.
const PIPE_COLUMNS: usize = 80;

/// Plays the turn; what is settled stays on the screen, as in a chat.
pub(crate) async fn play(mut player: ReplayPlayer, words: UiText) -> CommandResult {
    let failed = |error: std::io::Error| messages::terminal_failed(&error);
    let (columns, rows) = crossterm::terminal::size().map_err(failed)?;
    let mut stop_signals = crate::interrupt::stop_signals().map_err(|error| messages::no_signals(&error))?;
    let raw = RawTerminal::enter().map_err(failed)?;
    let mut keys = KeyReader::listen().map_err(|error| messages::no_runtime(&error))?;
    let mut painter = ScreenPainter::new(columns, rows);
    let first = player.played().0.first().map_or(0, |event| event.timestamp);
    let mut transcript = TurnTranscript::new(words, ReasoningView::Folded, first);
    let mut settled = user_input_lines(player.played().0, painter.columns());
    let mut painted_at = tokio::time::Instant::now();
    let mut exit = CliExit::Done;
    while let Some(wait) = player.wait() {
        if !wait.is_zero() || painted_at.elapsed() >= FRAME_INTERVAL {
            paint(&mut painter, &mut transcript, &mut settled, &player, words).map_err(failed)?;
            painted_at = tokio::time::Instant::now();
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                key = keys.next() => {
                    match key {
                        Some(Input::Resize(columns, rows)) => painter.resize(columns, rows),
                        Some(Input::Key(key)) if wants_to_leave(&key) => { exit = CliExit::Cancelled; break }
                        Some(_) => {}
                        None => break,
                    }
                    continue;
                }
                _ = stop_signals.recv() => { exit = CliExit::Cancelled; break }
            }
        }
        if let Some(event) = player.next() {
            transcript.apply(event);
        }
    }
    let shown = transcript.render(player.now(), painter.columns());
    settled.extend(shown.settled);
    settled.extend(shown.live);
    settled.extend(transcript.footer());
    let farewell = painter.frame(settled, Vec::new(), None) + &painter.clear();
    drop(raw);
    session::write_frame(&farewell).map_err(failed)?;
    Ok(exit)
}

fn paint(
    painter: &mut ScreenPainter,
    transcript: &mut TurnTranscript,
    settled: &mut Vec<StyledLine>,
    player: &ReplayPlayer,
    words: UiText,
) -> std::io::Result<()> {
    let shown = transcript.render(player.now(), painter.columns());
    settled.extend(shown.settled);
    let mut live = shown.live;
    live.push(StyledLine::default());
    live.push(position_line(player, words).truncated(painter.columns()));
    session::write_frame(&painter.frame(std::mem::take(settled), live, None))
}

/// Shows the turn as it was after each event; keys go forth and back.
pub(crate) async fn step_through(events: Vec<Event>, words: UiText) -> CommandResult {
    let failed = |error: std::io::Error| messages::terminal_failed(&error);
    let (columns, rows) = crossterm::terminal::size().map_err(failed)?;
    let mut stop_signals = crate::interrupt::stop_signals().map_err(|error| messages::no_signals(&error))?;
    let raw = RawTerminal::enter().map_err(failed)?;
    let mut keys = KeyReader::listen().map_err(|error| messages::no_runtime(&error))?;
    let mut painter = ScreenPainter::new(columns, rows);
    let mut player = ReplayPlayer::new(events, super::player::ReplaySpeed::Unlimited);
    player.seek(1);
    let exit = loop {
        let mut live = transcript_lines(player.played().1, painter.columns(), words);
        live.push(StyledLine::default());
        live.push(position_line(&player, words).truncated(painter.columns()));
        live.push(StyledLine::new(words.replay_keys(), TextStyle::DIM).truncated(painter.columns()));
        session::write_frame(&painter.frame(Vec::new(), live, None)).map_err(failed)?;
        let input = tokio::select! {
            input = keys.next() => input,
            _ = stop_signals.recv() => break CliExit::Cancelled,
        };
        match input {
            Some(Input::Resize(columns, rows)) => painter.resize(columns, rows),
            Some(Input::Key(key)) if wants_to_leave(&key) => break CliExit::Done,
            Some(Input::Key(key)) => {
                let all = player.played().0.len();
                player.seek(position_after(&key, player.position(), all));
            }
            Some(_) => {}
            None => break CliExit::Done,
        }
    };
    let last = transcript_lines(player.played().1, painter.columns(), words);
    let farewell = painter.frame(last, Vec::new(), None) + &painter.clear();
    drop(raw);
    session::write_frame(&farewell).map_err(failed)?;
    Ok(exit)
}

/// New position after a key, from 1 to `all`.
fn position_after(key: &KeyEvent, position: usize, all: usize) -> usize {
    let position = match key.code {
        KeyCode::Right | KeyCode::Char(' ' | 'l' | 'n') | KeyCode::Enter => position.saturating_add(1),
        KeyCode::Left | KeyCode::Char('h' | 'p') | KeyCode::Backspace => position.saturating_sub(1),
        KeyCode::PageDown => position.saturating_add(PAGE_EVENTS),
        KeyCode::PageUp => position.saturating_sub(PAGE_EVENTS),
        KeyCode::Home | KeyCode::Char('g') => 1,
        KeyCode::End | KeyCode::Char('G') => all,
        _ => position,
    };
    position.clamp(1.min(all), all)
}

fn wants_to_leave(key: &KeyEvent) -> bool {
    let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind != KeyEventKind::Release && (control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}

/// Status line of the replay: position, kind and time of the event.
fn position_line(player: &ReplayPlayer, words: UiText) -> StyledLine {
    let (all, given) = player.played();
    let since = match (all.first(), given.last()) {
        (Some(first), Some(last)) => last.timestamp.saturating_sub(first.timestamp).max(0).unsigned_abs(),
        _ => 0,
    };
    let mut line = StyledLine::new("▶ ", TextStyle::ink(TextColor::Cyan));
    line.push(&format!("{} {}/{}", words.replay_event(), given.len(), all.len()), TextStyle::PLAIN);
    line.push(
        &format!(" · {} · +{}", given.last().map(kind).unwrap_or_default(), duration(since)),
        TextStyle::DIM,
    );
    line
}

/// An event's `type`.
fn kind(event: &Event) -> String {
    let value = serde_json::to_value(&event.kind).unwrap_or_default();
    value.get("type").and_then(|kind| kind.as_str()).unwrap_or("?").to_owned()
}

/// The whole screen after these events.
fn transcript_lines<'e>(
    events: impl IntoIterator<Item = &'e Event>,
    columns: usize,
    words: UiText,
) -> Vec<StyledLine> {
    let events: Vec<&Event> = events.into_iter().collect();
    let now = events.last().map_or(0, |event| event.timestamp);
    let mut transcript = TurnTranscript::new(words, ReasoningView::Folded, now);
    for event in &events {
        transcript.apply(event);
    }
    let shown = transcript.render(now, columns);
    let mut lines = user_input_lines(events.iter().copied(), columns);
    lines.extend(shown.settled);
    lines.extend(shown.live);
    lines.extend(transcript.footer());
    lines
}

/// The screen as text.
pub(crate) fn lines_at<'e>(events: impl IntoIterator<Item = &'e Event>, words: UiText) -> String {
    transcript_lines(events, PIPE_COLUMNS, words)
        .iter()
        .map(|line| line.plain().trim_end().to_owned() + "\n")
        .collect()
}

/// Input of the user.
fn user_input_lines<'e>(events: impl IntoIterator<Item = &'e Event>, columns: usize) -> Vec<StyledLine> {
    let Some(EventKind::StreamStart { input, .. }) = events.into_iter().next().map(|event| &event.kind)
    else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for part in input {
        if let UserPart::Text { text } = part {
            for (at, line) in text.lines().enumerate() {
                let mut shown =
                    StyledLine::new(if at == 0 { "› " } else { "  " }, TextStyle::ink(TextColor::Magenta));
                shown.push(&crate::plain::for_terminal(line), TextStyle::BOLD);
                lines.extend(shown.wrapped(columns));
            }
        }
    }
    lines.push(StyledLine::default());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn keys_move_within_the_turn_and_quit() {
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
            assert_eq!(position_after(&press(key), from, 40), to, "{key:?} from {from}");
        }
        assert_eq!(position_after(&press(KeyCode::Right), 0, 0), 0, "nothing to show");
        assert!(wants_to_leave(&press(KeyCode::Char('q'))) && wants_to_leave(&press(KeyCode::Esc)));
        assert!(wants_to_leave(&KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(!wants_to_leave(&press(KeyCode::Char('c'))));
    }
}
