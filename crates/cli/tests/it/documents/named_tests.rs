//! Tests that documents name exist: those of the invariants, the faults and the findings.

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

/// Tests of a table's row that a list below the table names: `- H1: ...`, after a line [`MORE`].
fn more_tests<'a>(document: &'a str, first: &str) -> Vec<&'a str> {
    let items = lists_of_tests(document);
    items.filter_map(|item| item.strip_prefix(first)?.strip_prefix(": ")).collect()
}

const MORE: &str = "More tests of these rows:";

fn lists_of_tests(document: &str) -> impl Iterator<Item = &str> {
    let lists = document.split(MORE).skip(1);
    lists.flat_map(|list| list.trim_start().lines().map_while(|line| line.strip_prefix("- ")))
}

/// Number of tests that the lists below the tables name; fails on an item that belongs to no row.
fn check_lists(document: &str, firsts: &[&str]) -> usize {
    let in_rows: Vec<&str> = firsts.iter().flat_map(|first| more_tests(document, first)).collect();
    assert_eq!(
        in_rows.len(),
        lists_of_tests(document).count(),
        "each item begins with the first cell of a row"
    );
    for tests in &in_rows {
        assert!(!tests_of(tests).contains(&0), "no test in: {tests}");
    }
    in_rows.iter().flat_map(|tests| tests_of(tests)).sum()
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
    assert!(document.lines().count() <= 375);
}

/// A fault without a test is not covered.
#[test]
fn every_fault_names_tests_that_exist() {
    let document = read("docs/reliability.md");
    let faults = rows(&document, ["fault", "behavior", "test"]);
    let mut named = 0;
    for [fault, behavior, tests] in &faults {
        assert!(!fault.is_empty() && !behavior.is_empty(), "an empty cell next to: {tests}");
        let tests = tests_of(tests);
        assert!(!tests.contains(&0), "no test for: {fault}");
        named += tests.iter().sum::<usize>();
    }
    for section in ["Upstream", "Tools", "Clients and viewers", "Processes and clocks", "Store"] {
        assert!(document.contains(&format!("\n## {section}\n")), "there is no section {section}");
    }
    named += check_lists(&document, &faults.iter().map(|fault| fault[0]).collect::<Vec<_>>());
    assert!(faults.len() >= 60 && named >= 90, "{} faults, {named} tests", faults.len());
}

/// Kinds of findings and how many there are of each: attacks by severity, clients, single requests.
const FINDINGS: [(&str, u32); 6] = [("H", 4), ("M", 3), ("L", 9), ("C", 10), ("R", 14), ("N", 12)];
/// Parts of the walk through the product as four kinds of users, and the findings of each.
const WALKS: [(&str, u32); 6] = [("a", 7), ("b", 11), ("c", 10), ("d", 6), ("e", 10), ("f", 4)];
/// Requests that the project began with and that were open, by their origin.
const ORIGINS: [(&str, &[u32]); 6] = [
    ("000", &[6, 19, 34]),
    ("001", &[4, 5, 8, 9, 10]),
    ("002", &[7, 9, 21, 26, 37, 42]),
    ("003", &[2, 6, 8, 9, 15, 18, 21, 25, 27]),
    ("004", &[2, 6, 10, 12, 14]),
    ("ref", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
];

/// Findings whose repair may come later, each with its reason in the table. All others have a test.
const LATER_FINDINGS: [&str; 5] = ["C3", "a7", "d5", "d6", "f4"];
/// Requests of the origins that may come later, likewise.
const LATER_REQUESTS: [&str; 14] = [
    "000-6", "000-34", "001-8", "001-10", "002-7", "002-21", "002-42", "003-6", "003-8", "003-25", "004-12",
    "ref-7", "ref-8", "ref-10",
];

/// A finding has a test of its fix, or the reason why it comes later.
#[test]
fn every_finding_has_a_test_or_a_reason() {
    let document = read("docs/findings.md");
    let rows = rows(&document, ["id", "finding", "test"]);
    let ids: Vec<String> = rows.iter().map(|row| row[0].to_owned()).collect();
    let kinds = FINDINGS.iter().chain(&WALKS);
    let expected: Vec<String> =
        kinds.flat_map(|(kind, last)| (1..=*last).map(move |at| format!("{kind}{at}"))).collect();
    assert_eq!(ids, expected, "one row for each finding, in order");
    let of_page =
        MORE_FINDINGS.iter().flat_map(|(heading, ..)| self::rows(&document, ["id", *heading, "test"]));
    let all: Vec<&str> = rows.iter().map(|row| row[0]).chain(of_page.map(|row| row[0])).collect();
    check_lists(&document, &all);
    check_tests_or_reasons(rows, &LATER_FINDINGS);
}

/// Findings in other tables: on the page (defects, and points of a critique), of a second security review
/// (attacks, and smaller ones), and public bug reports of other products. Each heading is that of the table,
/// each number that of its last row.
const MORE_FINDINGS: [(&str, &str, u32); 5] = [
    ("finding on the page", "D", 24),
    ("point of the critique", "P", 25),
    ("attack of the second look", "A", 10),
    ("smaller finding of the second look", "B", 17),
    ("public report", "E", 32),
];

/// A finding has a test of its fix, or the reason why it comes later.
#[test]
fn every_finding_of_the_other_tables_has_a_test_or_a_reason() {
    let document = read("docs/findings.md");
    for (heading, kind, last) in MORE_FINDINGS {
        let rows = rows(&document, ["id", heading, "test"]);
        let ids: Vec<String> = rows.iter().map(|row| row[0].to_owned()).collect();
        let expected: Vec<String> = (1..=last).map(|at| format!("{kind}{at}")).collect();
        assert_eq!(ids, expected, "one row for each {heading}, in order");
        check_tests_or_reasons(rows, &[]);
    }
}

/// A request has a test, or the reason why it comes later.
#[test]
fn every_request_of_the_origins_has_a_test_or_a_reason() {
    let document = read("docs/origins.md");
    let rows = rows(&document, ["request", "what is asked for", "test"]);
    let ids: Vec<String> = rows.iter().map(|row| row[0].to_owned()).collect();
    let expected: Vec<String> = ORIGINS
        .iter()
        .flat_map(|(origin, requests)| requests.iter().map(move |request| format!("{origin}-{request}")))
        .collect();
    assert_eq!(ids, expected, "one row for each request, in order");
    check_lists(&document, &rows.iter().map(|row| row[0]).collect::<Vec<_>>());
    check_tests_or_reasons(rows, &LATER_REQUESTS);
}

/// Checks that each row names tests that exist, or may come later and has a reason.
fn check_tests_or_reasons(rows: Vec<[&str; 3]>, may_be_later: &[&str]) {
    for [id, finding, tests] in rows {
        assert!(!finding.is_empty(), "{id}");
        match tests.strip_prefix("later: ") {
            Some(reason) => {
                assert!(
                    may_be_later.contains(&id),
                    "{id} needs a test, or a place in the list of this check"
                );
                assert!(reason.len() > 20, "{id}: a reason, not `{reason}`");
            }
            None => assert!(!tests_of(tests).contains(&0), "no test for: {id}"),
        }
    }
}
