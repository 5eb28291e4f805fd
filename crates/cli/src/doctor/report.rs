//! Findings, and how they are shown.

use crate::messages::Words;
use crate::terminal::text::width;
use serde::Serialize;
use serde_json::{Value, json};
use throughline_wire::visible;

/// What a finding is about; in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Area {
    Configuration,
    Upstreams,
    Tools,
    Server,
    Sandbox,
    Terminal,
    Programs,
}

impl Area {
    const ALL: [Area; 7] = [
        Area::Configuration,
        Area::Upstreams,
        Area::Tools,
        Area::Server,
        Area::Sandbox,
        Area::Terminal,
        Area::Programs,
    ];
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Good,
    /// Worth knowing; nothing that is configured needs it.
    Note,
    /// Something that is configured does not work.
    Wrong,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    area: Area,
    state: State,
    /// What was looked at.
    name: String,
    /// How it is.
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

/// All of them.
#[derive(Default)]
pub struct Report(Vec<Finding>);

impl Report {
    /// Adds one. Names and details may come from servers and files.
    pub fn add(&mut self, area: Area, state: State, name: impl Into<String>, detail: impl Into<String>) {
        self.0.push(Finding { area, state, name: name.into(), detail: detail.into(), remedy: None });
    }

    /// What to do about the one before.
    pub fn remedy(&mut self, remedy: impl Into<String>) {
        if let Some(finding) = self.0.last_mut() {
            finding.remedy = Some(remedy.into());
        }
    }

    /// Nothing that is configured is broken.
    pub fn is_well(&self) -> bool {
        self.count(State::Wrong) == 0
    }

    fn count(&self, state: State) -> usize {
        self.0.iter().filter(|finding| finding.state == state).count()
    }

    /// For programs.
    pub fn as_json(&self) -> Value {
        json!({"version": env!("CARGO_PKG_VERSION"), "well": self.is_well(), "findings": self.0})
    }

    /// For people: an area after the other, a remedy under its finding.
    pub fn as_text(&self, words: Words) -> String {
        let mut text = format!("throughline {}\n", env!("CARGO_PKG_VERSION"));
        let columns =
            self.0.iter().map(|finding| width(&finding.name)).max().unwrap_or(0).min(NAME_COLUMNS_MAX);
        for area in Area::ALL {
            let of_this: Vec<&Finding> = self.0.iter().filter(|finding| finding.area == area).collect();
            if of_this.is_empty() {
                continue;
            }
            text.push_str(&format!("\n{}\n", words.doctor_area(area)));
            for finding in of_this {
                finding.write(columns, &mut text);
            }
        }
        text.push_str(&format!("\n{}\n", words.doctor_verdict(self.count(State::Wrong))));
        crate::plain::for_terminal(&text)
    }
}

/// Longer names push their details to the right.
const NAME_COLUMNS_MAX: usize = 24;

impl Finding {
    fn write(&self, columns: usize, text: &mut String) {
        let mark = match self.state {
            State::Good => '✔',
            State::Note => '·',
            State::Wrong => '✘',
        };
        // What servers and files say may hold characters that hide others.
        let (name, detail) = (visible::escape(&self.name), visible::escape(&self.detail));
        let room = " ".repeat(columns.saturating_sub(width(&name)));
        let mut lines = detail.lines();
        text.push_str(&format!("  {mark} {name}{room}  {}\n", lines.next().unwrap_or_default()));
        for line in lines {
            text.push_str(&format!("      {line}\n"));
        }
        if let Some(remedy) = &self.remedy {
            text.push_str(&format!("      → {}\n", visible::escape(remedy)));
        }
    }
}
