//! The fixtures of this folder.

use serde_json::Value;
use std::path::Path;
use throughline_wire::{DecodeOptions, StepDecoder, ThinkMode};

/// One body with what must come of it.
pub struct Fixture {
    /// `<folder>/<name>`.
    pub id: String,
    pub body: Vec<u8>,
    pub expect: Value,
}

/// Holds no bodies, but what clients send: `clients/README.md`.
const TOOL_LISTS: &str = "tool_lists";

/// All of them, by id.
pub fn all() -> Vec<Fixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut fixtures = Vec::new();
    for folder in entries(&root).into_iter().filter(|path| path.is_dir() && !path.ends_with(TOOL_LISTS)) {
        for path in entries(&folder) {
            let name = path.file_name().and_then(|name| name.to_str()).expect("names are ASCII").to_owned();
            if name.ends_with(".expect.json") {
                continue;
            }
            let name = name.rsplit_once('.').expect("a body has an extension").0;
            let expect = folder.join(format!("{name}.expect.json"));
            let text = std::fs::read_to_string(&expect)
                .unwrap_or_else(|error| panic!("{}: {error}", expect.display()));
            let folder = folder.file_name().and_then(|name| name.to_str()).expect("names are ASCII");
            fixtures.push(Fixture {
                id: format!("{folder}/{name}"),
                body: std::fs::read(&path).expect("a listed file can be read"),
                expect: serde_json::from_str(&text)
                    .unwrap_or_else(|error| panic!("{}: {error}", expect.display())),
            });
        }
    }
    fixtures
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is in the repository");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry can be read").path()).collect();
    paths.sort();
    paths
}

impl Fixture {
    /// Dialect: given in the file, or else the folder's name.
    pub fn api(&self) -> &str {
        self.expect["api"].as_str().unwrap_or_else(|| self.id.split('/').next().unwrap_or_default())
    }

    /// The documented answer.
    pub fn note(&self) -> &str {
        let key = if self.expect["note"].is_string() { "note" } else { "why" };
        self.expect[key].as_str().unwrap_or_default()
    }

    /// The quirks it answers.
    pub fn quirks(&self) -> Vec<&str> {
        self.expect["quirk"].as_str().unwrap_or_default().split(',').map(str::trim).collect()
    }

    /// A decoder with the fixture's options: `profile`, `offered`, and `think: "split"`.
    pub fn decoder(&self) -> StepDecoder {
        let options = &self.expect["options"];
        let dialect = self.api().parse().unwrap_or_else(|error| panic!("{}: {error}", self.id));
        let given = |key: &str| (!options[key].is_null()).then(|| options[key].clone());
        let profile = given("profile").map(|profile| serde_json::from_value(profile).expect("a profile"));
        let offered = given("offered").map(|offered| serde_json::from_value(offered).expect("names"));
        let think = if options["think"] == "split" { ThinkMode::Split } else { ThinkMode::Verbatim };
        let (profile, offered) = (profile.unwrap_or_default(), offered.unwrap_or_default());
        StepDecoder::new(dialect, DecodeOptions { profile, offered, think, ..DecodeOptions::default() })
    }
}
