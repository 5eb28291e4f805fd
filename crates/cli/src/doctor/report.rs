//! Findings, and how they are shown.

use crate::messages::UiText;
use crate::terminal::text::width;
use serde::Serialize;
use serde_json::{Value, json};
use throughline_wire::display_escape;

/// Subject of a finding; findings are listed in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DoctorArea {
    Configuration,
    Upstreams,
    Tools,
    Server,
    Sandbox,
    Terminal,
    Programs,
}

impl DoctorArea {
    const ALL: [DoctorArea; 7] = [
        DoctorArea::Configuration,
        DoctorArea::Upstreams,
        DoctorArea::Tools,
        DoctorArea::Server,
        DoctorArea::Sandbox,
        DoctorArea::Terminal,
        DoctorArea::Programs,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DoctorState {
    /// No problem.
    Good,
    /// Worth knowing; nothing that is configured needs it.
    Note,
    /// A configured part does not work.
    Wrong,
}

/// Result of one check.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DoctorFinding {
    area: DoctorArea,
    state: DoctorState,
    /// Checked item.
    name: String,
    /// Result of the check.
    detail: String,
    /// Suggested fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Default)]
pub(crate) struct DoctorReport(Vec<DoctorFinding>);

impl DoctorReport {
    /// Adds one. Names and details may come from servers and files.
    pub(crate) fn add(
        &mut self,
        area: DoctorArea,
        state: DoctorState,
        name: impl Into<String>,
        detail: impl Into<String>,
    ) {
        self.0.push(DoctorFinding { area, state, name: name.into(), detail: detail.into(), remedy: None });
    }

    /// Adds a suggested fix to the last finding.
    pub(crate) fn remedy(&mut self, remedy: impl Into<String>) {
        if let Some(finding) = self.0.last_mut() {
            finding.remedy = Some(remedy.into());
        }
    }

    /// True if no configured part is broken.
    pub(crate) fn has_no_errors(&self) -> bool {
        self.count(DoctorState::Wrong) == 0
    }

    fn count(&self, state: DoctorState) -> usize {
        self.0.iter().filter(|finding| finding.state == state).count()
    }

    /// The report for programs.
    pub(crate) fn as_json(&self) -> Value {
        json!({"version": env!("CARGO_PKG_VERSION"), "well": self.has_no_errors(), "findings": self.0})
    }

    /// The report for people: grouped by area, a remedy below its finding.
    pub(crate) fn as_text(&self, words: UiText) -> String {
        let mut text = format!("throughline {}\n", env!("CARGO_PKG_VERSION"));
        let columns =
            self.0.iter().map(|finding| width(&finding.name)).max().unwrap_or(0).min(NAME_COLUMNS_MAX);
        for area in DoctorArea::ALL {
            let in_area: Vec<&DoctorFinding> = self.0.iter().filter(|finding| finding.area == area).collect();
            if in_area.is_empty() {
                continue;
            }
            text.push_str(&format!("\n{}\n", words.doctor_area(area)));
            for finding in in_area {
                finding.write(columns, &mut text);
            }
        }
        text.push_str(&format!("\n{}\n", words.doctor_verdict(self.count(DoctorState::Wrong))));
        crate::plain::for_terminal(&text)
    }
}

/// Longer names push their details to the right.
const NAME_COLUMNS_MAX: usize = 24;

impl DoctorFinding {
    fn write(&self, columns: usize, text: &mut String) {
        let mark = match self.state {
            DoctorState::Good => '✔',
            DoctorState::Note => '·',
            DoctorState::Wrong => '✘',
        };
        // Texts of servers and files may contain characters that hide others.
        let (name, detail) = (display_escape::escape(&self.name), display_escape::escape(&self.detail));
        let padding = " ".repeat(columns.saturating_sub(width(&name)));
        let mut lines = detail.lines();
        text.push_str(&format!("  {mark} {name}{padding}  {}\n", lines.next().unwrap_or_default()));
        for line in lines {
            text.push_str(&format!("      {line}\n"));
        }
        if let Some(remedy) = &self.remedy {
            text.push_str(&format!("      → {}\n", display_escape::escape(remedy)));
        }
    }
}
