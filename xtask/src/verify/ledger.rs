//! The table of docs/verification.md, with the figures below it: one row and one line for each proof, replaced when it
//! is run again.

use std::fmt::Write;

/// A proof, with the time and place of its last run, and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProofRow {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) result: String,
    pub(crate) figure: String,
    pub(crate) duration: String,
    pub(crate) date: String,
    pub(crate) commit: String,
    pub(crate) machine: String,
    pub(crate) command: String,
}

/// All rows of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProofLedger(Vec<ProofRow>);

const HEAD: &str = "| check | what | result | took | date | commit | machine | command |\n\
                    |---|---|---|---|---|---|---|---|\n";
const FIGURES: &str = "Figures of these runs:";

impl ProofLedger {
    /// Reads the table and the figures; what is no row is left out.
    pub(crate) fn parse(text: &str) -> Self {
        let cells = |line: &str| -> Vec<String> {
            let line = line.trim().trim_start_matches('|').trim_end_matches('|');
            line.split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        let figure_of = |name: &str| {
            let mut items = text.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
            items.find(|(item, _)| *item == name).map_or_else(String::new, |(_, figure)| figure.to_owned())
        };
        let rows = text.lines().filter(|line| line.starts_with('|')).map(cells).filter_map(|cells| {
            let [name, what, result, duration, date, commit, machine, command] = cells.try_into().ok()?;
            let command = command.trim_matches('`').to_owned();
            let figure = figure_of(&name);
            let row = ProofRow { name, what, result, figure, duration, date, commit, machine, command };
            (row.name != "check" && !row.name.starts_with('-')).then_some(row)
        });
        Self(rows.collect())
    }

    /// Replaces the row with this row's name.
    pub(crate) fn put(&mut self, row: ProofRow) {
        self.0.retain(|other| other.name != row.name);
        self.0.push(row);
    }

    /// The table and the figures, in this order of names. Figures are too long for a cell.
    pub(crate) fn render(&self, order: &[&str]) -> String {
        let mut rows: Vec<_> = self.0.iter().collect();
        rows.sort_by_key(|row| order.iter().position(|name| *name == row.name));
        let (mut text, mut figures) = (HEAD.to_owned(), format!("\n{FIGURES}\n\n"));
        for row in rows {
            // A bar or a line break would end the cell.
            let plain = |cell: &str| cell.replace('|', "/").replace('\n', " ");
            let ProofRow { name, what, result, figure, duration, date, commit, machine, command } = row;
            let cells = [name, what, result, duration, date, commit, machine].map(|cell| plain(cell));
            let _ = writeln!(text, "| {} | `{}` |", cells.join(" | "), plain(command));
            if !figure.is_empty() {
                let _ = writeln!(figures, "- {name}: {}", plain(figure));
            }
        }
        text + &figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, figure: &str) -> ProofRow {
        let text = |text: &str| text.to_owned();
        ProofRow {
            name: text(name),
            what: text("w"),
            result: text("holds"),
            figure: text(figure),
            duration: text("3 s"),
            date: text("2026-11-21"),
            commit: text("abc"),
            machine: text("2 cores"),
            command: text("cargo x"),
        }
    }

    #[test]
    fn rerun_proof_replaces_only_its_row() {
        let mut ledger = ProofLedger::default();
        ledger.put(row("sim", "1"));
        ledger.put(row("test", "2"));
        let text = ledger.render(&["test", "sim"]);
        assert!(text.find("| test").unwrap() < text.find("| sim").unwrap(), "{text}");
        let mut again = ProofLedger::parse(&text);
        again.put(row("sim", "3 | 4\n5"));
        let text = again.render(&["test", "sim"]);
        assert_eq!(ProofLedger::parse(&text).0, [row("test", "2"), row("sim", "3 / 4 5")]);
    }
}
