//! The image against the tree it is built from: no container is started here, but each of its steps that copies or prepares
//! files is performed on a copy.

#![cfg(unix)]

use crate::support::{install_program, throughline};
use std::path::{Path, PathBuf};
use std::process::Command;
use throughline::config::ServerSettings;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Files that one image builds and another copies out of it.
struct Stage {
    name: String,
    base: String,
    /// Instruction and its arguments, continued lines joined.
    lines: Vec<(String, String)>,
}

impl Stage {
    fn all(&self, word: &str) -> Vec<&str> {
        self.lines.iter().filter(|(known, _)| known == word).map(|(_, rest)| rest.as_str()).collect()
    }

    fn only(&self, word: &str) -> &str {
        let all = self.all(word);
        assert_eq!(all.len(), 1, "{word} of {}", self.base);
        all[0]
    }

    fn run_with(&self, part: &str) -> &str {
        let found = self.all("RUN").into_iter().rfind(|run| run.contains(part));
        found.unwrap_or_else(|| panic!("{} does not run {part}", self.name))
    }
}

/// The stages of the image: of the page, of the program, and what is shipped.
fn stages() -> [Stage; 3] {
    const KNOWN: [&str; 12] = [
        "FROM",
        "RUN",
        "WORKDIR",
        "COPY",
        "USER",
        "ENV",
        "VOLUME",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    ];
    let joined = read("ops/Dockerfile").replace("\\\n", " ");
    let mut stages: Vec<Stage> = Vec::new();
    for line in joined.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap();
        assert!(KNOWN.contains(&word), "{line}");
        if word == "FROM" {
            let (base, name) = rest.split_once(" AS ").unwrap_or((rest, ""));
            stages.push(Stage { name: name.to_owned(), base: base.to_owned(), lines: Vec::new() });
        } else {
            stages.last_mut().unwrap().lines.push((word.to_owned(), rest.trim().to_owned()));
        }
    }
    stages.try_into().unwrap_or_else(|stages: Vec<_>| panic!("{} stages", stages.len()))
}

/// `.dockerignore`: patterns; true for one that includes again what another has excluded.
fn ignore_rules() -> Vec<(bool, Vec<String>)> {
    let text = read(".dockerignore");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let rule = |line: &str| {
        let (lets_in, pattern) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        (lets_in, pattern.split('/').map(str::to_owned).collect())
    };
    lines.map(rule).collect()
}

/// True if a pattern names this path or a folder that it is in; `*` is one whole name here, `**` any number of them.
fn names(pattern: &[String], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, _) => true,
        (Some((first, rest)), _) if first == "**" => {
            names(rest, path) || path.split_first().is_some_and(|(_, under)| names(pattern, under))
        }
        (Some((first, rest)), Some((name, under))) => {
            assert!(first == "*" || !first.contains('*'), "this test does not understand `{first}`");
            (first == "*" || first == name) && names(rest, under)
        }
        (Some(_), None) => false,
    }
}

/// The last rule that names a path decides.
fn is_sent(rules: &[(bool, Vec<String>)], path: &str) -> bool {
    let path: Vec<&str> = path.split('/').collect();
    rules.iter().rev().find(|(_, pattern)| names(pattern, &path)).is_none_or(|(lets_in, _)| *lets_in)
}

/// Files below a path of the tree that are sent to the builder.
fn sent(rules: &[(bool, Vec<String>)], path: &str) -> Vec<String> {
    let full = root().join(path);
    // A link is sent as one.
    if full.is_symlink() || full.is_file() {
        return if is_sent(rules, path) { vec![path.to_owned()] } else { Vec::new() };
    }
    // No exception leads back into these.
    if !is_sent(rules, path) && !rules.iter().any(|(lets_in, pattern)| *lets_in && pattern[0] == path) {
        return Vec::new();
    }
    let entries = std::fs::read_dir(&full).unwrap_or_else(|error| panic!("{path}: {error}"));
    entries
        .flat_map(|entry| sent(rules, &format!("{path}/{}", entry.unwrap().file_name().to_string_lossy())))
        .collect()
}

/// `COPY` of a stage into a copy of its folder: what it names is in the tree and is sent.
fn copy(words: &str, into: &Path) {
    let rules = ignore_rules();
    let mut sources: Vec<&str> = words.split_whitespace().collect();
    let target = sources.pop().unwrap();
    for source in sources {
        assert!(root().join(source).exists(), "COPY {words}: {source} is not in the tree");
        let files = sent(&rules, source);
        assert!(!files.is_empty(), "COPY {words}: .dockerignore keeps {source} out");
        for file in files {
            // A file into the folder that is named; a folder's content into it.
            let inside = file.strip_prefix(source).unwrap().trim_start_matches('/');
            let name = if inside.is_empty() { source.rsplit('/').next().unwrap() } else { inside };
            let to = into.join(target).join(name);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            if root().join(&file).is_symlink() {
                std::os::unix::fs::symlink(std::fs::read_link(root().join(&file)).unwrap(), to).unwrap();
            } else {
                std::fs::copy(root().join(&file), to).unwrap();
            }
        }
    }
}

/// Performs the steps of a stage in a folder, with programs of this folder in place of the build tools.
/// Earlier stages have made the files that are copied from them.
fn perform(stage: &Stage, folder: &Path, programs: &Path) {
    for (word, rest) in &stage.lines {
        match (word.as_str(), rest.strip_prefix("--from=")) {
            ("COPY", None) => copy(rest, folder),
            ("COPY", Some(rest)) => {
                let [_, made, into] = rest.split_whitespace().collect::<Vec<_>>().try_into().unwrap();
                let made = made.strip_prefix("/src/").unwrap();
                assert!(root().join(made).parent().unwrap().is_dir(), "{made}");
                std::fs::create_dir_all(folder.join(into)).unwrap();
            }
            ("RUN", _) if rest.starts_with("apt-get") => {}
            ("RUN", _) => {
                let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
                let rest = rest.replace(" /throughline", " throughline");
                let run =
                    Command::new("sh").args(["-ec", &rest]).current_dir(folder).env("PATH", path).output();
                let run = run.unwrap();
                assert!(run.status.success(), "{rest}\n{}", String::from_utf8_lossy(&run.stderr));
            }
            _ => {}
        }
    }
}

#[test]
fn image_versions_match_the_project() {
    let [page, build, _] = stages();
    let manifest = read("Cargo.toml");
    let version =
        manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(build.base.starts_with(&format!("rust:{version}-")), "{} and {version}", build.base);
    let package: serde_json::Value = serde_json::from_str(&read("web/package.json")).unwrap();
    let engines = package["engines"]["node"].as_str().unwrap();
    let node = page.base.strip_prefix("node:").unwrap().split('-').next().unwrap();
    assert!(engines.contains(&format!(">={node}.")), "{node} and {engines}");
    // What the program is linked with is there where it runs.
    assert!(build.base.ends_with("-slim-bookworm") && page.base.ends_with("-bookworm-slim"));
}

#[test]
fn image_builds_the_page_before_the_program() {
    let [page, build, shipped] = stages();
    assert_eq!((page.name.as_str(), build.name.as_str(), shipped.name.as_str()), ("page", "build", ""));
    let position = |part: &str| {
        let found = build.lines.iter().rposition(|(_, rest)| rest.contains(part));
        found.unwrap_or_else(|| panic!("{part}"))
    };
    assert_eq!(build.lines[position("--from=page")].1, "--from=page /src/web/dist web/dist");
    assert!(position("--from=page") < position("cargo build"), "the program embeds what is there");
    assert!(
        position("crates crates") < position("cargo build") && !page.run_with("npm run build").is_empty()
    );
    assert_eq!((page.only("WORKDIR"), build.only("WORKDIR")), ("/src/web", "/src"));
    let last = build.run_with("cargo build");
    assert!(
        last.contains("--locked -p throughline-cli")
            && last.ends_with("target/release/throughline /throughline")
    );
    assert_eq!(shipped.only("COPY"), "--from=build /throughline /usr/local/bin/throughline");
}

#[test]
fn image_copy_and_prepare_steps_work_on_this_tree() {
    let [page, build, _] = stages();
    let folder = tempfile::tempdir().unwrap();
    let (programs, built) = (folder.path().join("programs"), folder.path().join("src"));
    std::fs::create_dir_all(&programs).unwrap();
    std::fs::create_dir_all(built.join("web")).unwrap();
    // npm finds each package of the lock file; nothing is downloaded.
    install_program(
        &programs.join("npm"),
        "set -e\nfor p in $(ls */package.json); do echo \"$p\"; done >> ../installed\ntest -f package-lock.json",
    );
    perform(&page, &built.join("web"), &programs);
    let installed = std::fs::read_to_string(built.join("installed")).unwrap();
    let package: serde_json::Value = serde_json::from_str(&read("web/package.json")).unwrap();
    for workspace in package["workspaces"].as_array().unwrap() {
        let manifest = format!("{}/package.json", workspace.as_str().unwrap());
        assert_eq!(installed.matches(&manifest).count(), 2, "{manifest} is there before and after");
    }
    assert!(!built.join("web/node_modules").exists() && built.join("web/app/src").is_dir());
    // cargo reads the empty crates like the real ones, with the lock file as it is.
    let check = format!(
        "set -e\n'{}' tree --offline --locked -p throughline-cli --depth 1 >> tree\nmkdir -p target/release\n\
         touch target/release/throughline",
        env!("CARGO")
    );
    install_program(&programs.join("cargo"), &check);
    perform(&build, &built, &programs);
    let tree = std::fs::read_to_string(built.join("tree")).unwrap();
    assert_eq!(tree.matches("throughline-server v").count(), 2, "once empty and once real: {tree}");
    assert!(built.join("crates/server/src/lib.rs").metadata().unwrap().len() > 0, "the real sources");
    assert!(!built.join("crates/cli/src/lib.rs").exists(), "nothing that the tree does not have is built");
}

#[test]
fn image_build_context_contains_only_sources() {
    let rules = ignore_rules();
    for path in [
        "Cargo.toml",
        "crates/server/src/lib.rs",
        "crates/server/build.rs",
        "web/app/index.html",
        "xtask/Cargo.toml",
    ] {
        assert!(is_sent(&rules, path) && root().join(path).exists(), "{path}");
    }
    for path in [
        "target/debug/throughline",
        ".git/config",
        "web/node_modules/vite/package.json",
        "web/app/node_modules/x",
        "web/dist/index.html",
        "crates/wire/tests/fixtures/x.sse",
        "docs/api.md",
        "ops/environment",
        "throughline.toml",
        "xtask/src/main.rs",
    ] {
        assert!(!is_sent(&rules, path), "{path}");
    }
}

#[test]
fn image_starts_a_valid_command_and_not_as_root() {
    let [_, _, shipped] = stages();
    assert_eq!(shipped.only("USER"), "throughline");
    let prepared = shipped.only("RUN");
    assert!(prepared.contains("useradd --system --uid 10001"), "{prepared}");
    assert!(prepared.contains("install -d -o throughline -g throughline -m 700 /data"), "{prepared}");
    let command = format!("{} {}", shipped.only("ENTRYPOINT"), shipped.only("CMD"));
    let words: Vec<&str> = command.split('"').skip(1).step_by(2).collect();
    assert_eq!(words[0], "throughline");
    let (mut program, _own) = throughline();
    assert!(program.args(&words[1..]).arg("--help").output().unwrap().status.success(), "{words:?}");
    let documents = read("docs/configuration.md") + &read("docs/operations.md");
    let port = ServerSettings::default().listen.port().to_string();
    for variable in shipped.only("ENV").split_whitespace() {
        let (name, value) = variable.split_once('=').unwrap();
        assert!(documents.contains(name), "{name}");
        match name {
            "THROUGHLINE_DATA" => assert_eq!(shipped.only("VOLUME"), value),
            _ => assert!(value.ends_with(&format!(":{port}")), "{variable}"),
        }
    }
    assert_eq!((shipped.only("EXPOSE"), shipped.only("STOPSIGNAL")), (port.as_str(), "SIGTERM"));
    let health = shipped.only("HEALTHCHECK");
    assert!(health.contains(&format!("http://127.0.0.1:{port}/healthz")), "{health}");
    assert!(prepared.contains(" curl "), "what the health check runs is installed");
}
