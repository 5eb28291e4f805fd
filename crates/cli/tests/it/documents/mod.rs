//! The documents agree with the program: commands with their output, configurations, scenarios, limits with
//! their defaults, flags, and named tests.

mod named_tests;
mod promises;
mod recipes;

use assert_cmd::Command;
use std::path::{Path, PathBuf};
use throughline::config::{ConfigFile, ConfigFlags, EnvVars, resolve};
use throughline_testkit::ScenarioRules;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every document of the project, by its path from the root.
fn documents() -> Vec<(String, String)> {
    let mut paths: Vec<String> = Vec::new();
    for folder in ["", "docs/", "docs/internal/"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("the folder is in the repository");
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        paths.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}{name}")));
    }
    paths.sort();
    paths.into_iter().map(|path| (read(&path), path)).map(|(text, path)| (path, text)).collect()
}

/// A fenced block: the info string of the fence, and the lines of the block.
struct Block<'d> {
    info: &'d str,
    text: String,
}

fn blocks(document: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for line in document.lines() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(info), None) => open = Some(Block { info, text: String::new() }),
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Words of a command line; a quoted text is one word, which suffices for the documents.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('"').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

#[test]
fn documented_commands_print_the_shown_output() {
    let mut run = 0;
    for (path, document) in documents() {
        for block in blocks(&document).into_iter().filter(|block| block.info == "console") {
            let Some((first, shown)) = block.text.split_once('\n') else { continue };
            let Some((line, file)) =
                first.strip_prefix("$ throughline ").and_then(|rest| rest.split_once(" < "))
            else {
                continue;
            };
            let body =
                std::fs::read(root().join(file)).unwrap_or_else(|error| panic!("{path}: {file}: {error}"));
            let mut command = Command::cargo_bin("throughline").expect("it was built");
            let output = command.args(words(line)).write_stdin(body).output().expect("it runs");
            assert_eq!(String::from_utf8_lossy(&output.stdout), shown, "{path}: {first}");
            run += 1;
        }
    }
    assert!(run >= 15, "{run} commands");
}

/// Words of a command line with single quotes, as shells split it.
fn quoted_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

#[test]
#[cfg(unix)]
fn documented_tool_commands_and_plugins_run_as_shown() {
    let document = read("docs/tools.md");
    let folder = tempfile::tempdir().expect("a folder");
    let mut configuration = String::new();
    for block in blocks(&document) {
        let sections = ["[commands", "[http_tools", "[vcp_plugins]"];
        match block.info.split_once(' ') {
            None if block.info == "toml" && sections.iter().any(|section| block.text.contains(section)) => {
                configuration.push_str(&block.text);
            }
            Some(("sh" | "json", name)) => {
                let path = folder.path().join(name);
                std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
                std::fs::write(path, block.text).expect("a file");
            }
            _ => {}
        }
    }
    std::fs::write(folder.path().join("throughline.toml"), configuration).expect("a file");
    let throughline = |arguments: &[String]| {
        let mut command = Command::cargo_bin("throughline").expect("it was built");
        command.current_dir(folder.path()).env("GATEWAY_TOKEN", "a-token-for-tests").env("LC_ALL", "C.UTF-8");
        command.env_remove("THROUGHLINE_CONFIG").env("THROUGHLINE_DATA", folder.path());
        command.args(arguments).output().expect("it runs")
    };
    let mut run = 0;
    for block in blocks(&document).into_iter().filter(|block| block.info == "console") {
        let mut lines = block.text.lines().peekable();
        while let Some(line) = lines.next().and_then(|line| line.strip_prefix("$ throughline ")) {
            let mut shown = String::new();
            while let Some(next) = lines.next_if(|next| !next.starts_with("$ ")) {
                shown.push_str(next);
                shown.push('\n');
            }
            let output = throughline(&quoted_words(line));
            let complaints = String::from_utf8_lossy(&output.stderr);
            assert_eq!(String::from_utf8_lossy(&output.stdout), shown, "{line}\n{complaints}");
            run += 1;
        }
    }
    assert!(run >= 3, "{run} commands");
    // Everything that the page shows can be offered.
    let output = throughline(&["tools".to_owned(), "list".to_owned()]);
    let listed = String::from_utf8_lossy(&output.stdout);
    for name in ["text.count", "commands.disk", "weather.now", "home.light", "Hello.Greet"] {
        assert!(
            listed.contains(name),
            "{name} is not in\n{listed}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn documented_bodies_match_their_fixtures() {
    let mut compared = 0;
    for (path, document) in documents() {
        for block in blocks(&document) {
            let Some(name) = block.info.strip_prefix("text ") else { continue };
            // Some fixtures have the line ends of HTTP.
            let body = read(&format!("crates/wire/tests/fixtures/{name}")).replace("\r\n", "\n");
            // Blank lines at the end do not show.
            assert_eq!(block.text.trim_end(), body.trim_end(), "{path}: {name}");
            compared += 1;
        }
    }
    assert!(compared >= 12, "{compared} bodies");
}

#[test]
fn documented_configs_and_scenarios_are_accepted() {
    let (mut configurations, mut scenarios) = (0, 0);
    for (path, document) in documents() {
        for block in blocks(&document).into_iter().filter(|block| block.info.starts_with("toml")) {
            if block.text.contains("[[rules]]") {
                ScenarioRules::parse(&block.text)
                    .unwrap_or_else(|error| panic!("{path}: {error}\n{}", block.text));
                scenarios += 1;
            } else {
                let file = ConfigFile::parse(&path, &block.text).unwrap_or_else(|error| panic!("{error}"));
                // Headers may name variables.
                let environment = EnvVars::from(
                    [
                        ("GATEWAY_TOKEN", "secret"),
                        ("AZURE_OPENAI_API_KEY", "secret"),
                        ("DATABASE_URL", "postgres://me@localhost/chat"),
                    ]
                    .map(|(name, value)| (name.to_owned(), value.to_owned())),
                );
                resolve(Some(file), &environment, &ConfigFlags::default())
                    .unwrap_or_else(|error| panic!("{error}"));
                configurations += 1;
            }
        }
    }
    assert!(configurations >= 3 && scenarios >= 1, "{configurations} configurations, {scenarios} scenarios");
}

/// Fields of a struct of limits with their defaults, out of its `Debug` form.
fn fields(debug: &str) -> Vec<(String, String)> {
    let inner = debug.split_once('{').map_or("", |(_, rest)| rest).trim_end_matches([' ', '}']);
    let pairs = inner.split(", ").filter_map(|pair| pair.trim().split_once(": "));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A default as people write it.
fn shown(name: &str, value: &str) -> String {
    let value = value.trim_start_matches("Some(").trim_end_matches(')');
    let Ok(number) = value.parse::<u64>() else {
        let value = value.replace("ms", " ms").replace("1.5s", "1,500 ms");
        return match value.strip_suffix('s').map(str::parse::<u64>) {
            Some(Ok(seconds)) => format!("{seconds} s"),
            _ => value,
        };
    };
    if name.contains("bytes") && number % (1 << 20) == 0 {
        return format!("{} MiB", number >> 20);
    }
    if name.contains("bytes") && number % (1 << 10) == 0 {
        return format!("{} KiB", number >> 10);
    }
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let unit = if name.ends_with("_ms") || name.contains("_ms_") { " ms" } else { "" };
    grouped + unit
}

/// Cells of a line of a table as readers see them: of a link its text.
fn cells(line: &str) -> Vec<String> {
    let mut seen = String::new();
    let mut rest = line.trim_matches('|');
    while let Some((before, after)) = rest.split_once("](") {
        seen.push_str(before);
        seen.push(']');
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    seen.push_str(rest);
    seen.replace("\\|", "/").replace(['[', ']'], "").split('|').map(|cell| cell.trim().to_owned()).collect()
}

const CELL_CHARS_MAX: usize = 200;
const README_LINES_MAX: usize = 120;

#[test]
fn table_cells_have_at_most_200_characters() {
    let mut long = Vec::new();
    for (path, document) in documents() {
        let mut is_code = false;
        for (number, line) in document.lines().enumerate() {
            is_code ^= line.starts_with("```");
            if is_code || !line.starts_with('|') {
                continue;
            }
            for cell in cells(line) {
                let chars = cell.chars().count();
                if chars > CELL_CHARS_MAX {
                    long.push(format!("{path}:{}: {chars} characters: {cell}", number + 1));
                }
            }
        }
    }
    assert!(long.is_empty(), "a table holds facts; put sentences below it:\n{}", long.join("\n"));
}

#[test]
fn readme_length_is_limited() {
    assert!(read("README.md").lines().count() <= README_LINES_MAX);
}

#[test]
fn every_limit_is_documented_with_its_default() {
    use throughline::UpstreamTimeouts;
    use throughline::config::ServerLimits;
    use throughline::engine::{LoopGuard, RetryPolicy, TurnLimits};
    use throughline::store::CatalogLimits;
    use throughline::store::{BlobLimits, MemoryLimits, SqliteSettings};
    use throughline::tools::mcp::McpLimits;
    use throughline::tools::process::ProcessLimits;
    use throughline::tools::{ExecutorLimits, OutputLimits};
    use throughline::wire::DecodeLimits;
    let executor = format!("{:?}", ExecutorLimits::default());
    let own = executor.split(", output:").next().unwrap_or_default().to_owned();
    let store = format!("{:?}", SqliteSettings::default());
    let store = store.split(", catalog:").next().unwrap_or_default().to_owned();
    #[cfg(feature = "postgres")]
    let postgres = format!("{:?}", throughline::store::PostgresSettings::default());
    #[cfg(feature = "postgres")]
    let postgres = postgres.split(", catalog:").next().unwrap_or_default().to_owned();
    let all = [
        ("docs/configuration.md", format!("{:?}", DecodeLimits::default())),
        ("docs/configuration.md", format!("{:?}", TurnLimits::default())),
        ("docs/configuration.md", format!("{:?}", LoopGuard::default())),
        ("docs/configuration.md", format!("{:?}", RetryPolicy::default())),
        ("docs/configuration.md", format!("{:?}", UpstreamTimeouts::default())),
        ("docs/configuration.md", format!("{:?}", MemoryLimits::default())),
        ("docs/configuration.md", store),
        #[cfg(feature = "postgres")]
        ("docs/configuration.md", postgres),
        ("docs/configuration.md", format!("{:?}", ServerLimits::default())),
        ("docs/store.md", format!("{:?}", CatalogLimits::default())),
        ("docs/store.md", format!("{:?}", BlobLimits::default())),
        ("docs/tools.md", own),
        ("docs/tools.md", format!("{:?}", OutputLimits::default())),
        ("docs/tools.md", format!("{:?}", ProcessLimits::default())),
        ("docs/tools.md", format!("{:?}", McpLimits::default())),
    ];
    let mut compared = 0;
    for (path, debug) in all {
        let document = read(path);
        for (name, value) in fields(&debug) {
            let row = document.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
            let row = row.unwrap_or_else(|| panic!("{path} has no row for `{name}`"));
            let default = shown(&name, &value);
            assert!(row.contains(&format!("| {default} |")), "{path}: `{name}` is {default}, not: {row}");
            compared += 1;
        }
    }
    assert!(compared >= 30, "{compared} limits");
}

#[test]
fn server_and_store_settings_are_documented() {
    let document = read("docs/configuration.md");
    for (section, heading) in [("server", "### The server"), ("store", "### The store")] {
        let page = document.split(heading).nth(1).and_then(|rest| rest.split("\n### ").next());
        let page = page.unwrap_or_else(|| panic!("docs/configuration.md has no {heading}"));
        // A wrong key is answered with all that are right.
        let error =
            ConfigFile::parse("throughline.toml", &format!("[{section}]\nno_such_key = 1")).unwrap_err();
        let help = error.help.expect("the valid names");
        let keys: Vec<&str> = help.split('`').skip(1).step_by(2).collect();
        assert!(keys.len() >= 5, "{help}");
        for key in keys {
            assert!(page.contains(&format!("\n| `{key}` |")), "{heading} has no row for `{key}`");
        }
    }
    let error = ConfigFile::parse("throughline.toml", "[server]\nrender = \"?\"").unwrap_err();
    for render in error.help.unwrap_or_default().split('`').skip(1).step_by(2) {
        assert!(document.contains(&format!("`\"{render}\"`")), "`{render}` is not on the page");
    }
}

#[test]
fn known_upstreams_are_documented() {
    let document = read("docs/configuration.md");
    for known in throughline::providers::all() {
        let row = document.lines().find(|line| line.starts_with(&format!("| `{}` |", known.name)));
        let row = row.unwrap_or_else(|| panic!("docs/configuration.md has no row for `{}`", known.name));
        for part in [known.base_url, known.key_env.unwrap_or("-"), known.dialect.name()] {
            assert!(row.contains(part), "`{}`: {part} is not in: {row}", known.name);
        }
    }
}

#[test]
fn documented_flags_exist() {
    let mut known = String::new();
    for subcommand in [
        "chat",
        "ask",
        "serve",
        "keys create",
        "decode",
        "parse",
        "tools prompt",
        "tools remembered",
        "tools list",
        "tools call",
        "upstreams",
        "connect",
        "doctor",
        "mock",
        "completions",
    ] {
        let mut command = Command::cargo_bin("throughline").expect("it was built");
        let output = command.args(subcommand.split(' ')).arg("--help").output().expect("it runs");
        known.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    let document = read("docs/configuration.md");
    let section = document.split("## Flags").nth(1).expect("a section of flags");
    let section = section.split("\n## ").next().unwrap_or_default();
    let flags: Vec<&str> = section
        .split('`')
        .filter(|code| code.starts_with("--"))
        .map(|code| code.split(' ').next().unwrap_or(code))
        .collect();
    assert!(flags.len() >= 10, "{flags:?}");
    for flag in flags {
        assert!(known.contains(flag), "{flag} is no flag");
    }
}

/// All Rust files below a folder, as one text.
fn sources(folder: &str) -> String {
    let mut text = String::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder is in the repository") {
            let path = entry.expect("it can be listed").path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                text.push_str(&std::fs::read_to_string(path).expect("it can be read"));
            } else if path.is_dir() {
                folders.push(path);
            }
        }
    }
    text
}

/// A setting that the code never reads has no effect.
#[test]
fn server_and_store_settings_are_read_by_the_code() {
    let settings = read("crates/throughline/src/config/serving.rs");
    let readers = sources("crates/server/src") + &sources("crates/cli/src");
    let is_read = |name: &str| {
        let field = format!(".{name}");
        readers.match_indices(&field).any(|(at, _)| {
            let behind = readers[at + field.len()..].chars().next();
            behind.is_none_or(|next| !next.is_alphanumeric() && next != '_' && next != '(')
        })
    };
    let mut found = 0;
    let mut unread = Vec::new();
    for of in ["pub struct ServerLimits {", "pub struct ServerSettings {", "pub struct StoreSettings {"] {
        let fields = settings.split(of).nth(1).and_then(|rest| rest.split("\n}").next()).expect(of);
        let names = fields.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split(':').next());
        for name in names {
            found += 1;
            if !is_read(name) {
                unread.push(name);
            }
        }
    }
    assert!(found > 25, "only {found} settings were found");
    assert!(unread.is_empty(), "nothing reads {unread:?}");
}
