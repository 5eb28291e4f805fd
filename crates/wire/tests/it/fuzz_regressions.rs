//! Inputs that once broke a fuzz target never break it again, and every fixture holds the same rules under each of the
//! options that a fuzz target's first byte picks.
//!
//! `cargo xtask fuzz` copies what it finds to `crashes/<target>/`. The rules are those of the fuzz targets themselves:
//! whole equals cut, and the events of a step keep their contract.

use crate::fixture;
use crate::target;
use std::path::Path;
use throughline_wire::Dialect;

/// Runs one input through a target, which panics if a rule is broken.
fn check(target: &str, data: &[u8]) {
    match target {
        "sse" => target::sse(data),
        "arguments" => target::arguments(data),
        "leaked" => target::leaked(data),
        "text_protocol" => target::text_protocol(data),
        "assembly" => target::assembly(data),
        _ => {
            let name = target.replace('_', "-");
            let dialect: Dialect = name.parse().unwrap_or_else(|_| panic!("{target} is no fuzz target"));
            target::dialect(dialect, data);
        }
    }
}

#[test]
fn recorded_crash_inputs_pass_their_fuzz_target() {
    let crashes = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crashes");
    // The folder comes into being with the first crash.
    for target in std::fs::read_dir(crashes).into_iter().flatten().flatten() {
        let name = target.file_name().into_string().expect("names are ASCII");
        for input in std::fs::read_dir(target.path()).expect("a folder for each target").flatten() {
            println!("{name}/{}", input.file_name().display());
            check(&name, &std::fs::read(input.path()).expect("a listed file can be read"));
        }
    }
}

#[test]
fn fixtures_pass_the_fuzz_targets_under_every_option() {
    let fixtures = fixture::all();
    assert!(!fixtures.is_empty());
    for fixture in &fixtures {
        // The first byte: bits 4 to 7 are options, the rest seeds the cuts.
        for options in 0_u8..16 {
            let data = [&[options << 4 | options], fixture.body.as_slice()].concat();
            check(&fixture.api().replace('-', "_"), &data);
            check("sse", &data);
            check("text_protocol", &data);
        }
        check("leaked", &fixture.body);
    }
}

/// A rule that is broken must be noticed; else the tests above prove nothing.
#[test]
#[should_panic(expected = "is no fuzz target")]
fn unknown_fuzz_target_panics() {
    check("sees", b"\0data: x\n\n");
}
