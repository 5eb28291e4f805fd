//! The README shows the example as it is, and only what can be run.

use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn readme_example_equals_the_file_in_examples() {
    let readme = read("../../README.md");
    let shown = readme.split("```rust,no_run\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = read("examples/hello.rs");
    assert_eq!(shown, Some(example.as_str()));
    let code = example.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("//"));
    assert!(code.count() <= 25, "an example of 25 lines");
}

#[test]
fn readme_names_every_known_upstream() {
    let readme = read("../../README.md");
    for name in throughline::providers::names() {
        assert!(readme.contains(&format!("`{name}`")), "{name}");
    }
}
