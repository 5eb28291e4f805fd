//! A tool call as lines that live: name, arguments filling in, running time, outcome.

use super::text::{StyledLine, TextColor, TextStyle};
use throughline_engine::CallStatus;
use throughline_wire::display_escape;

/// Time one picture of the spinner stays, in milliseconds.
const SPINNER_MS: i64 = 80;
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Cells of the progress bar.
const BAR_CELLS: usize = 16;
/// Lines of output under the first line.
const DETAIL_LINES_MAX: usize = 3;
/// Maximum number of lines of an error or a reason: the remedy is at its end.
const FAILURE_LINES_MAX: usize = 5;

/// Content of a card.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolCard {
    /// The tool's own name.
    pub(crate) name: String,
    pub(crate) state: CallStatus,
    /// Text of the state; empty if the mark is clear enough.
    pub(crate) state_words: String,
    /// Arguments in one line, or their text so far.
    pub(crate) input: String,
    /// Time of the start, in ms since 1970.
    pub(crate) started_at: Option<i64>,
    /// Run time in milliseconds.
    pub(crate) duration_ms: Option<u64>,
    /// Done and whole; the whole may be unknown.
    pub(crate) progress: Option<(f64, Option<f64>)>,
    /// Progress message of the running tool.
    pub(crate) message: String,
    /// Decisions of users and rules about the call, a line each.
    pub(crate) notes: Vec<String>,
    /// Outcome: summary of the output, error or reason.
    pub(crate) detail: String,
}

impl ToolCard {
    /// A call of which only the name is known.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            state: CallStatus::Preparing,
            state_words: String::new(),
            input: String::new(),
            started_at: None,
            duration_ms: None,
            progress: None,
            message: String::new(),
            notes: Vec::new(),
            detail: String::new(),
        }
    }

    /// The card at the time `now` (ms since 1970), in lines of at most `columns`.
    pub(crate) fn lines(&self, now: i64, columns: usize) -> Vec<StyledLine> {
        let mut lines = vec![self.head(now, columns)];
        lines.extend(self.notes.iter().map(|note| {
            let mut line = StyledLine::new("  ┊ ", TextStyle::DIM);
            line.push(&one_line(note), TextStyle { italic: true, ..TextStyle::DIM });
            line.truncated(columns)
        }));
        if self.state.is_final() {
            lines.extend(match self.state {
                CallStatus::Success => excerpt(&self.detail, columns),
                _ => details(&self.detail, TextStyle { dim: true, ..TextStyle::ink(self.ink()) }, columns),
            });
        } else if let Some((done, total)) = self.progress {
            lines.push(progress_line(done, total, &self.message, columns));
        } else {
            lines.extend(excerpt(&self.message, columns).into_iter().take(1));
        }
        lines
    }

    /// Mark, name, arguments, and the time at the right edge.
    fn head(&self, now: i64, columns: usize) -> StyledLine {
        let mut line = StyledLine::new(self.mark(now), TextStyle::bold_ink(self.ink()));
        line.push(" ", TextStyle::PLAIN);
        line.push(&self.name, TextStyle::BOLD);
        let mut right = StyledLine::default();
        if !self.state_words.is_empty() {
            right.push(&self.state_words, TextStyle::ink(self.ink()));
        }
        if let Some(time) = self.time(now) {
            right.push(if right.0.is_empty() { "" } else { " " }, TextStyle::PLAIN);
            right.push(&time, TextStyle::DIM);
        }
        let room = columns.saturating_sub(line.width() + right.width() + 4);
        if !self.input.is_empty() && room > 4 {
            line.push("  ", TextStyle::PLAIN);
            line = StyledLine::new(&one_line(&self.input), TextStyle::DIM).truncated(room).after(&line);
        }
        if right.0.is_empty() {
            return line.truncated(columns);
        }
        // Durations are aligned in one column on a wide screen too: near the text, not at its far edge.
        let edge = columns.min(super::markdown::PROSE_COLUMNS_MAX);
        let gap = edge.saturating_sub(line.width() + right.width()).max(2);
        line.push(&" ".repeat(gap), TextStyle::PLAIN);
        right.after(&line).truncated(columns)
    }

    fn mark(&self, now: i64) -> &'static str {
        match self.state {
            CallStatus::Preparing | CallStatus::Running => spinner(now),
            CallStatus::Queued => "◦",
            CallStatus::AwaitingApproval => "?",
            CallStatus::Success => "✔",
            CallStatus::Error | CallStatus::TimedOut => "✘",
            CallStatus::Denied | CallStatus::Cancelled => "⊘",
            CallStatus::NotStarted => "○",
            CallStatus::Unknown => "‽",
        }
    }

    fn ink(&self) -> TextColor {
        match self.state {
            CallStatus::Preparing | CallStatus::Running => TextColor::Cyan,
            CallStatus::Queued => TextColor::Plain,
            CallStatus::AwaitingApproval
            | CallStatus::Denied
            | CallStatus::Cancelled
            | CallStatus::NotStarted => TextColor::Yellow,
            CallStatus::Success => TextColor::Green,
            CallStatus::Error | CallStatus::TimedOut | CallStatus::Unknown => TextColor::Red,
        }
    }

    fn time(&self, now: i64) -> Option<String> {
        match (self.duration_ms, self.started_at) {
            (Some(ms), _) => Some(duration(ms)),
            (None, Some(started)) if !self.state.is_final() => {
                Some(duration(now.saturating_sub(started).max(0) as u64))
            }
            _ => None,
        }
    }
}

/// The spinner's picture at a time.
pub(crate) fn spinner(now: i64) -> &'static str {
    SPINNER[(now.div_euclid(SPINNER_MS)).rem_euclid(SPINNER.len() as i64) as usize]
}

/// A duration as people read it.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {:02} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

fn progress_line(done: f64, total: Option<f64>, message: &str, columns: usize) -> StyledLine {
    let mut line = StyledLine::new("  └ ", TextStyle::DIM);
    match total.filter(|total| *total > 0.0) {
        Some(total) => {
            let share = (done / total).clamp(0.0, 1.0);
            let full = (share * BAR_CELLS as f64).round() as usize;
            line.push(&"━".repeat(full), TextStyle::ink(TextColor::Cyan));
            line.push(&"╌".repeat(BAR_CELLS - full), TextStyle::DIM);
            line.push(&format!(" {:.0} %", share * 100.0), TextStyle::PLAIN);
        }
        None => line.push(&format!("{done}"), TextStyle::PLAIN),
    }
    line.push(&format!(" {}", one_line(message)), TextStyle::DIM);
    line.truncated(columns)
}

/// The first lines of an output, each cut to the screen: the model has all of it, a person gets the idea.
fn excerpt(text: &str, columns: usize) -> Vec<StyledLine> {
    let prose = columns.min(super::markdown::PROSE_COLUMNS_MAX);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut shown: Vec<StyledLine> = lines
        .by_ref()
        .take(DETAIL_LINES_MAX)
        .enumerate()
        .map(|(at, line)| {
            let head = StyledLine::new(if at == 0 { "  └ " } else { "    " }, TextStyle::DIM);
            StyledLine::new(line.trim_end(), TextStyle::DIM).after(&head).truncated(prose)
        })
        .collect();
    if lines.next().is_some()
        && let Some(last) = shown.last_mut()
    {
        *last = last.truncated(prose.saturating_sub(2));
        last.push(" …", TextStyle::DIM);
    }
    shown
}

/// Error text, wrapped under the card.
fn details(text: &str, style: TextStyle, columns: usize) -> Vec<StyledLine> {
    let prose = columns.min(super::markdown::PROSE_COLUMNS_MAX);
    let wrapped: Vec<StyledLine> = text
        .trim()
        .lines()
        .filter(|line| !line.trim().is_empty())
        .flat_map(|line| StyledLine::new(line, style).wrapped(prose.saturating_sub(4)))
        .take(FAILURE_LINES_MAX + 1)
        .collect();
    let more = wrapped.len() > FAILURE_LINES_MAX;
    wrapped
        .into_iter()
        .take(FAILURE_LINES_MAX)
        .enumerate()
        .map(|(at, mut line)| {
            if more && at + 1 == FAILURE_LINES_MAX {
                line = line.truncated(prose.saturating_sub(6));
                line.push(" …", style);
            }
            line.after(&StyledLine::new(if at == 0 { "  └ " } else { "    " }, TextStyle::DIM))
        })
        .collect()
}

/// Line breaks and runs of space as single spaces; hidden characters spelled out.
fn one_line(text: &str) -> String {
    display_escape::escape(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(card: &ToolCard, now: i64, columns: usize, expect: &[&str]) {
        let lines: Vec<String> = card.lines(now, columns).iter().map(StyledLine::plain).collect();
        assert_eq!(lines, expect);
    }

    fn card(state: CallStatus) -> ToolCard {
        ToolCard { state, input: "{\"city\": \"北京\"}".into(), ..ToolCard::new("demo.weather") }
    }

    #[test]
    fn tool_card_shows_input_duration_and_outcome() {
        check(&ToolCard { input: String::new(), ..card(CallStatus::Preparing) }, 0, 60, &["⠋ demo.weather"]);
        check(
            &ToolCard { input: "{\"ci".into(), ..card(CallStatus::Preparing) },
            80,
            60,
            &["⠙ demo.weather  {\"ci"],
        );
        check(
            &ToolCard { started_at: Some(1_000), ..card(CallStatus::Running) },
            2_240,
            60,
            &["⠇ demo.weather  {\"city\": \"北京\"}                       1.2 s"],
        );
        check(
            &ToolCard {
                duration_ms: Some(312),
                detail: "Sunny\n\n23 °C".into(),
                ..card(CallStatus::Success)
            },
            9_000,
            60,
            &["✔ demo.weather  {\"city\": \"北京\"}                      312 ms", "  └ Sunny", "    23 °C"],
        );
        check(
            &ToolCard {
                state_words: "denied".into(),
                detail: "not today".into(),
                ..card(CallStatus::Denied)
            },
            0,
            60,
            &["⊘ demo.weather  {\"city\": \"北京\"}                      denied", "  └ not today"],
        );
    }

    #[test]
    fn progress_is_a_bar_if_the_total_is_known() {
        let running = ToolCard {
            progress: Some((1.0, Some(4.0))),
            message: "page 1".into(),
            ..card(CallStatus::Running)
        };
        check(&running, 0, 60, &["⠋ demo.weather  {\"city\": \"北京\"}", "  └ ━━━━╌╌╌╌╌╌╌╌╌╌╌╌ 25 % page 1"]);
        let running = ToolCard { progress: Some((7.0, None)), ..running };
        check(&running, 0, 60, &["⠋ demo.weather  {\"city\": \"北京\"}", "  └ 7 page 1"]);
    }

    #[test]
    fn tool_card_is_cut_to_the_screen_width() {
        let long = ToolCard {
            input: "x".repeat(200),
            detail: "word ".repeat(100),
            duration_ms: Some(61_000),
            ..card(CallStatus::Error)
        };
        for columns in [20, 40, 80] {
            let lines = long.lines(0, columns);
            assert_eq!(lines.len(), 1 + FAILURE_LINES_MAX);
            assert!(lines.iter().all(|line| line.width() <= columns), "{columns}: {lines:?}");
            assert!(lines[FAILURE_LINES_MAX].plain().ends_with('…'));
        }
        assert!(long.lines(0, 80)[0].plain().ends_with("1 min 01 s"));
    }

    #[test]
    fn hidden_characters_in_arguments_are_escaped() {
        let card = ToolCard { input: "a\u{202e}b\nc".into(), ..card(CallStatus::Queued) };
        check(&card, 0, 60, &["◦ demo.weather  a\\u202eb c"]);
    }
}
