//! `docs/conformance.md`: every quirk of the wire in every dialect, with its documented answer.
//!
//! Generated from the fixtures (`fixtures/<folder>/*.expect.json`) and from `fixtures/quirks.json`, which
//! names the quirks and the dialects to which one does not apply. A cell with neither a fixture nor a reason
//! fails the test, and so does a page that is out of date; `THROUGHLINE_BLESS=1` rewrites it.

use crate::fixture::{self, Fixture};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use throughline_wire::Dialect;

const HEAD: &str = "# Conformance

What model servers actually send, and how Throughline handles it. Each answer is a fixture in `crates/wire/tests/fixtures`: a
small body and its expected result, which must be the same for the whole body, byte by byte and split at every position. This
page is generated from the fixtures: `THROUGHLINE_BLESS=1 cargo test -p throughline-wire --test it conformance`.
";

struct Quirk {
    id: String,
    title: String,
    section: String,
    elsewhere: [Value; 2],
}

fn quirks_file() -> Value {
    serde_json::from_str(include_str!("../fixtures/quirks.json")).expect("quirks.json is JSON")
}

fn quirks() -> Vec<Quirk> {
    let file = quirks_file();
    let text = |value: &Value, key: &str| value[key].as_str().expect("a quirk has id and title").to_owned();
    let mut quirks = Vec::new();
    for section in file["sections"].as_array().into_iter().flatten() {
        for quirk in section["quirks"].as_array().into_iter().flatten() {
            quirks.push(Quirk {
                id: text(quirk, "id"),
                title: text(quirk, "title"),
                section: text(section, "title"),
                elsewhere: [quirk["elsewhere"].clone(), section["elsewhere"].clone()],
            });
        }
    }
    quirks
}

impl Quirk {
    /// Reason why a dialect has no fixture for the quirk: an entry for this dialect takes precedence over one
    /// for all.
    fn reason(&self, dialect: Dialect) -> Option<&str> {
        let [own, section] = &self.elsewhere;
        let candidates =
            [&own[dialect.name()], &own["default"], &section[dialect.name()], &section["default"]];
        candidates.into_iter().find_map(Value::as_str)
    }

    fn fixtures<'f>(&self, fixtures: &'f [Fixture], dialect: Dialect) -> Vec<&'f Fixture> {
        let fits = |fixture: &&Fixture| {
            fixture.api() == dialect.name() && fixture.quirks().contains(&self.id.as_str())
        };
        fixtures.iter().filter(fits).collect()
    }

    /// The dialect that the quirk was found in: there a reason is no answer.
    fn home(&self) -> &'static [Dialect] {
        match self.id.as_bytes()[0] {
            b'N' => &[Dialect::Anthropic],
            b'G' => &[Dialect::Gemini],
            b'P' => &[Dialect::OpenaiResponses],
            b'O' => &[Dialect::Ollama],
            b'H' => &[Dialect::Cohere],
            b'B' if self.id == "B1" => &[Dialect::BedrockConverse, Dialect::BedrockAnthropic],
            b'B' => &[Dialect::BedrockConverse],
            b'W' => &[],
            b'F' if self.id == "F8" => {
                &[Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini, Dialect::Cohere]
            }
            b'R' if self.id == "R5" => {
                &[Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini]
            }
            _ => &[Dialect::OpenaiChat],
        }
    }
}

#[test]
fn every_quirk_has_a_documented_answer_in_every_dialect() {
    let fixtures = fixture::all();
    let mut missing = Vec::new();
    for quirk in quirks() {
        for dialect in Dialect::ALL {
            let is_home = quirk.home().contains(&dialect);
            if quirk.fixtures(&fixtures, dialect).is_empty() && (is_home || quirk.reason(dialect).is_none()) {
                missing.push(format!("{} in {dialect}", quirk.id));
            }
        }
    }
    assert!(missing.is_empty(), "neither fixture nor reason: {}", missing.join(", "));
}

#[test]
fn every_fixture_names_known_quirks_and_has_a_note() {
    let known: BTreeSet<String> = quirks().into_iter().map(|quirk| quirk.id).collect();
    for fixture in fixture::all() {
        let unknown: Vec<&str> =
            fixture.quirks().into_iter().filter(|quirk| !known.contains(*quirk)).collect();
        assert!(unknown.is_empty(), "{}: unknown quirks {unknown:?}", fixture.id);
        assert!(
            fixture.note().ends_with('.'),
            "{}: the answer is a sentence, not {:?}",
            fixture.id,
            fixture.note()
        );
    }
}

#[test]
fn conformance_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md");
    let page = page();
    if std::env::var_os("THROUGHLINE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("the path has a folder")).expect("docs can be made");
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(
        written == page,
        "docs/conformance.md is out of date; write it anew with\n    \
         THROUGHLINE_BLESS=1 cargo test -p throughline-wire --test it conformance"
    );
}

fn page() -> String {
    let (fixtures, quirks) = (fixture::all(), quirks());
    let mut reasons: Vec<&str> = Vec::new();
    let mut page = HEAD.to_owned();
    let mut line = |text: String| {
        page.push_str(&text);
        page.push('\n');
    };
    for remark in quirks_file()["remarks"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        line(format!("\n{remark}"));
    }
    line("\nIn the grid, a number counts the fixtures for a quirk in a dialect, and a letter refers to the reason why there is none.\n".to_owned());
    line(format!("| | {} |", Dialect::ALL.map(|dialect| dialect.name()).join(" | ")));
    line(format!("|---|{}", ":-:|".repeat(Dialect::ALL.len())));
    for quirk in &quirks {
        let cells = Dialect::ALL.map(|dialect| match quirk.fixtures(&fixtures, dialect).len() {
            0 => {
                let reason = quirk.reason(dialect).unwrap_or("Missing.");
                let at = reasons.iter().position(|known| *known == reason).unwrap_or_else(|| {
                    reasons.push(reason);
                    reasons.len() - 1
                });
                letters(at)
            }
            count => format!("**{count}**"),
        });
        line(format!("| {} {} | {} |", quirk.id, quirk.title, cells.join(" | ")));
    }
    line(String::new());
    for (at, reason) in reasons.iter().enumerate() {
        line(format!("- {}: {reason}", letters(at)));
    }
    let mut section = "";
    for quirk in &quirks {
        if section != quirk.section {
            section = &quirk.section;
            line(format!("\n## {section}"));
        }
        let mut answers = String::new();
        for fixture in Dialect::ALL.iter().flat_map(|dialect| quirk.fixtures(&fixtures, *dialect)) {
            // A fixture of several quirks is shown once, under the first.
            if fixture.quirks().first() == Some(&quirk.id.as_str()) {
                let _ = writeln!(answers, "- `{}`: {}", fixture.id, fixture.note());
            }
        }
        if !answers.is_empty() {
            line(format!("\n**{}** {}\n\n{}", quirk.id, quirk.title, answers.trim_end()));
        }
    }
    page
}

/// a, b, … z, aa, ab, …
fn letters(number: usize) -> String {
    let letter = char::from(b'a' + (number % 26) as u8);
    match number / 26 {
        0 => letter.to_string(),
        more => letters(more - 1) + &letter.to_string(),
    }
}
