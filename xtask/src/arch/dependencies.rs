//! Allowed dependencies between crates.

use serde_json::Value;

/// A crate of this workspace, and its dependencies inside of it.
pub(crate) struct WorkspaceCrate {
    /// Name without the prefix `throughline-`.
    name: String,
    /// Used by the crate itself, build scripts included.
    uses: Vec<String>,
    /// Used by its tests only.
    tests_use: Vec<String>,
}

/// Each crate, its allowed dependencies, and the additional ones of its tests.
const ALLOWED: [(&str, &[&str], &[&str]); 11] = [
    ("wire", &[], &[]),
    ("engine", &["wire"], &[]),
    ("speech", &[], &[]),
    ("tools", &["engine", "wire"], &[]),
    ("store", &["engine"], &[]),
    ("throughline", &["wire", "engine", "tools", "store"], &["testkit"]),
    ("server", &["throughline", "wire", "engine", "tools", "store"], &["testkit"]),
    ("testkit", &["tools", "engine", "wire"], &[]),
    ("cli", &["server", "throughline", "wire", "engine", "speech", "tools", "store", "testkit"], &[]),
    // Tasks only start other programs: a broken crate must not keep the checks from being built.
    ("xtask", &[], &[]),
    ("fuzz", &["wire"], &[]),
];

/// Crates from outside that would bring async, IO, clocks or chance into a pure crate.
const FORBIDDEN: [&str; 20] = [
    "tokio",
    "futures",
    "futures-*",
    "async-*",
    "smol",
    "rand",
    "rand_*",
    "getrandom",
    "fastrand",
    "reqwest",
    "hyper",
    "mio",
    "socket2",
    "time",
    "chrono",
    "jiff",
    "uuid",
    "rayon",
    "tempfile",
    "notify",
];

/// The crates of `cargo metadata --no-deps`.
pub(crate) fn read_crates(metadata: &Value) -> Vec<WorkspaceCrate> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .map(|package| {
            let dependencies = package["dependencies"].as_array().into_iter().flatten();
            let ours: Vec<_> = dependencies
                .filter(|dependency| dependency["path"].is_string())
                .map(|dependency| (short(&dependency["name"]), dependency["kind"] == "dev"))
                .collect();
            let of =
                |is_dev: bool| ours.iter().filter(|one| one.1 == is_dev).map(|one| one.0.clone()).collect();
            WorkspaceCrate { name: short(&package["name"]), uses: of(false), tests_use: of(true) }
        })
        .collect()
}

fn short(name: &Value) -> String {
    let name = name.as_str().unwrap_or_default();
    name.strip_prefix("throughline-").unwrap_or(name).to_owned()
}

/// Arrows that are not in the table.
pub(crate) fn violations(crates: &[WorkspaceCrate]) -> Vec<String> {
    let mut wrong = Vec::new();
    for one in crates {
        let name = &one.name;
        let Some((_, uses, tests_use)) = ALLOWED.iter().find(|row| row.0 == name) else {
            wrong.push(format!("the crate `{name}` has no row in the table of arrows"));
            continue;
        };
        for other in one.uses.iter().filter(|other| !uses.contains(&other.as_str())) {
            wrong.push(format!("`{name}` depends on `{other}`"));
        }
        let for_tests =
            |other: &&String| !uses.contains(&other.as_str()) && !tests_use.contains(&other.as_str());
        for other in one.tests_use.iter().filter(for_tests) {
            wrong.push(format!("tests of `{name}` depend on `{other}`"));
        }
    }
    wrong
}

/// Crates in the output of `cargo tree --prefix none` that a pure crate must not build against.
pub(crate) fn forbidden_in_tree(name: &str, tree: &str) -> Vec<String> {
    let mut found: Vec<_> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|used| FORBIDDEN.iter().any(|pattern| matches(pattern, used)))
        .map(|used| format!("`{name}` builds against `{used}`"))
        .collect();
    found.sort();
    found.dedup();
    found
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A workspace of one crate with dependencies `(name, kind, is ours)`.
    #[track_caller]
    fn check(name: &str, dependencies: &[(&str, Option<&str>, bool)], expected: &[&str]) {
        let dependencies: Vec<_> = dependencies
            .iter()
            .map(|(name, kind, ours)| json!({"name": name, "kind": kind, "path": ours.then_some("/somewhere")}))
            .collect();
        let metadata = json!({"packages": [{"name": name, "dependencies": dependencies}]});
        assert_eq!(violations(&read_crates(&metadata)), expected);
    }

    #[test]
    fn disallowed_dependencies_are_reported() {
        check("throughline-engine", &[("throughline-wire", None, true), ("serde", None, false)], &[]);
        check("throughline-wire", &[("throughline-engine", None, true)], &["`wire` depends on `engine`"]);
        check(
            "throughline-store",
            &[("throughline", Some("build"), true)],
            &["`store` depends on `throughline`"],
        );
        check("throughline", &[("throughline-testkit", Some("dev"), true)], &[]);
        check("throughline", &[("throughline-testkit", None, true)], &["`throughline` depends on `testkit`"]);
        check(
            "throughline-tools",
            &[("throughline-testkit", Some("dev"), true)],
            &["tests of `tools` depend on `testkit`"],
        );
        check("xtask", &[("throughline-wire", None, true)], &["`xtask` depends on `wire`"]);
        check("throughline-new", &[], &["the crate `new` has no row in the table of arrows"]);
    }

    #[test]
    fn async_and_random_crates_are_found_at_any_depth() {
        let tree = "throughline-wire v0.1.0 (/x)\nserde v1.0\nfutures-core v0.3\nasync-trait v0.1 (proc-macro)\n\
                    rand_core v0.9\noperand v1\ntokio v1\ntokio v1 (*)\ntokio-util v0.7\n";
        assert_eq!(
            forbidden_in_tree("wire", tree),
            [
                "`wire` builds against `async-trait`",
                "`wire` builds against `futures-core`",
                "`wire` builds against `rand_core`",
                "`wire` builds against `tokio`",
            ]
        );
    }
}
