//! The estimate of tokens compared with exact numbers: texts of the kinds that prompts consist of.

use std::path::Path;
use throughline::prompt::{TokenCounting, count, counting, estimate};

/// File in `tests/tokens`, its tokens in o200k_base, and how far the estimate may be off in percent. None of these texts
/// was used to fit the estimate. docs/prompts.md shows the same table.
const SAMPLES: [(&str, usize, usize); 10] = [
    ("english.txt", 143, 5),
    ("chinese.txt", 137, 5),
    ("japanese.txt", 139, 5),
    ("korean.txt", 111, 5),
    ("russian.txt", 105, 5),
    ("markdown.txt", 124, 10),
    ("code.txt", 178, 5),
    ("json.txt", 147, 15),
    ("vcp.txt", 158, 10),
    ("figures.txt", 136, 10),
];

fn sample(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tokens").join(name)).unwrap()
}

#[test]
fn token_estimate_is_close_for_every_script() {
    for (name, exact, percent) in SAMPLES {
        let estimated = estimate(&sample(name));
        assert!(estimated.abs_diff(exact) * 100 <= exact * percent, "{name}: {estimated}, exactly {exact}");
    }
}

#[test]
fn token_estimate_is_zero_for_empty_text_and_linear() {
    assert_eq!(estimate(""), 0);
    let text = sample("english.txt");
    let (once, often) = (estimate(&text), estimate(&text.repeat(100)));
    assert!((once * 99..=once * 101).contains(&often), "{once} {often}");
}

#[test]
fn token_count_matches_the_build_counting_mode() {
    let text = sample("json.txt");
    match counting() {
        TokenCounting::Estimated => assert_eq!(count(&text), estimate(&text)),
        TokenCounting::Exact => {
            for (name, exact, _) in SAMPLES {
                assert_eq!(count(&sample(name)), exact, "{name}");
            }
        }
    }
}

#[test]
fn prompts_page_shows_the_token_table() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/prompts.md");
    let document = std::fs::read_to_string(document).unwrap();
    for (name, exact, _) in SAMPLES {
        let estimated = estimate(&sample(name));
        let error = (estimated as f64 - exact as f64) * 100.0 / exact as f64;
        let row = format!("| {} | {exact} | {estimated} | {error:+.0} % |", name.trim_end_matches(".txt"));
        assert!(document.contains(&row), "docs/prompts.md has no row {row}");
    }
}
