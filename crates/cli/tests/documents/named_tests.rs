//! Tests that documents name exist: those behind the invariants, the faults and the findings. R: D3

use super::read;

/// Number of tests that each group of a cell names (`test`, `test` in `file`; ...); fails on one that is not in its file.
fn tests_of(cell: &str) -> Vec<usize> {
    let tests_of_group = |group: &str| {
        let codes: Vec<&str> = group.split('`').skip(1).step_by(2).collect();
        let is_file = |code: &&&str| !code.ends_with('/') && group.contains(&format!(" in `{code}`"));
        let Some(file) = codes.iter().find(is_file) else { return 0 };
        let source = read(file);
        let tests = codes.iter().take_while(|code| *code != file);
        tests
            .inspect(|test| {
                // Mutants are values and tests of the page are sentences; tests in Rust are functions.
                let is_function = file.ends_with(".rs") && test.starts_with(char::is_lowercase);
                let definition = if is_function { format!("fn {test}(") } else { (**test).to_owned() };
                assert!(source.contains(&definition), "{test} is not in {file}");
            })
            .count()
    };
    cell.split(';').map(tests_of_group).collect()
}

/// Cells of the rows of all tables with these headings.
fn rows<'a>(document: &'a str, headings: [&str; 3]) -> Vec<[&'a str; 3]> {
    let mut rows = Vec::new();
    let mut is_table = false;
    for line in document.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        match cells[..] {
            _ if !line.starts_with('|') => is_table = false,
            [first, second, third] if [first, second, third] == headings => is_table = true,
            [first, second, third] if is_table => rows.push([first, second, third]),
            _ if is_table => assert!(line.starts_with("|---"), "three cells, not: {line}"),
            _ => {}
        }
    }
    rows
}

#[test]
fn every_invariant_names_tests_that_exist() {
    let document = read("ARCHITECTURE.md");
    // Some are held by a check or a type and name no test.
    let held_by: Vec<&str> =
        document.lines().filter_map(|line| line.trim_start().strip_prefix("Held by: ")).collect();
    let named: usize = held_by.iter().flat_map(|tests| tests_of(tests)).sum();
    assert!(held_by.len() >= 36, "{} invariants", held_by.len());
    assert!(named >= 30, "{named} tests");
    assert!(document.lines().count() < 350);
}

/// A fault without a test is a wish. R: R3
#[test]
fn every_fault_names_tests_that_exist() {
    let document = read("docs/reliability.md");
    let faults = rows(&document, ["fault", "behaviour", "test"]);
    let mut named = 0;
    for [fault, behaviour, tests] in &faults {
        assert!(!fault.is_empty() && !behaviour.is_empty(), "an empty cell beside: {tests}");
        let tests = tests_of(tests);
        assert!(!tests.contains(&0), "no test for: {fault}");
        named += tests.iter().sum::<usize>();
    }
    for section in ["Upstream", "Tools", "Clients and viewers", "Processes and clocks", "Store"] {
        assert!(document.contains(&format!("\n## {section}\n")), "there is no section {section}");
    }
    assert!(faults.len() >= 60 && named >= 90, "{} faults, {named} tests", faults.len());
}

/// Kinds of findings and how many there are of each: attacks by severity, clients, single requests.
const FINDINGS: [(&str, u32); 5] = [("H", 4), ("M", 3), ("L", 9), ("C", 10), ("R", 14)];

/// A finding has a test that holds its repair, or it says why it comes later.
#[test]
fn every_finding_has_a_test_or_a_reason() {
    let document = read("docs/findings.md");
    let rows = rows(&document, ["id", "finding", "test"]);
    let ids: Vec<String> = rows.iter().map(|row| row[0].to_owned()).collect();
    let expected: Vec<String> =
        FINDINGS.iter().flat_map(|(kind, last)| (1..=*last).map(move |at| format!("{kind}{at}"))).collect();
    assert_eq!(ids, expected, "one row for each finding, in order");
    for [id, finding, tests] in rows {
        assert!(!finding.is_empty(), "{id}");
        match tests.strip_prefix("later: ") {
            Some(reason) => assert!(reason.len() > 20, "{id}: a reason, not `{reason}`"),
            None => assert!(!tests_of(tests).contains(&0), "no test for: {id}"),
        }
    }
}
