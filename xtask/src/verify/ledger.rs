//! The table of docs/verification.md: one row for each proof, replaced when it is run again.

use std::fmt::Write;

/// A proof, when and where it was last run, and what came of it.
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

/// All rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProofLedger(Vec<ProofRow>);

const HEAD: &str = "| check | what | result | figure | took | date | commit | machine | command |\n\
                    |---|---|---|---|---|---|---|---|---|\n";

impl ProofLedger {
    /// Reads the table; what is no row is left out.
    pub(crate) fn parse(text: &str) -> Self {
        let cells = |line: &str| -> Vec<String> {
            let line = line.trim().trim_start_matches('|').trim_end_matches('|');
            line.split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        let rows = text.lines().filter(|line| line.starts_with('|')).map(cells).filter_map(|cells| {
            let [name, what, result, figure, duration, date, commit, machine, command] =
                cells.try_into().ok()?;
            let command = command.trim_matches('`').to_owned();
            let row = ProofRow { name, what, result, figure, duration, date, commit, machine, command };
            (row.name != "check" && !row.name.starts_with('-')).then_some(row)
        });
        Self(rows.collect())
    }

    /// Puts a row in the place of the one with its name.
    pub(crate) fn put(&mut self, row: ProofRow) {
        self.0.retain(|other| other.name != row.name);
        self.0.push(row);
    }

    /// The table, in this order of names.
    pub(crate) fn render(&self, order: &[&str]) -> String {
        let mut rows: Vec<_> = self.0.iter().collect();
        rows.sort_by_key(|row| order.iter().position(|name| *name == row.name));
        let mut text = HEAD.to_owned();
        for row in rows {
            // A bar or a line break would end the cell.
            let plain = |cell: &str| cell.replace('|', "/").replace('\n', " ");
            let ProofRow { name, what, result, figure, duration, date, commit, machine, command } = row;
            let cells = [name, what, result, figure, duration, date, commit, machine].map(|cell| plain(cell));
            let _ = writeln!(text, "| {} | `{}` |", cells.join(" | "), plain(command));
        }
        text
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

    // R: D1
    #[test]
    fn a_proof_that_is_run_again_replaces_its_row_only() {
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
