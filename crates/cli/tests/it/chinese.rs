//! The command in Chinese, on the real binary: help, usage errors, failures of the command and of turns.

#[allow(dead_code, reason = "logs are checked elsewhere")]
use crate::support::commands::COMMANDS;
use crate::support::played::Played;
use crate::support::throughline;
use std::path::{Path, PathBuf};
use throughline_testkit::{FakeDialect, ModelScript, ScriptQueue};

/// Exit code, standard output and standard error.
fn run(locale: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let (mut command, _folder) = throughline();
    let output = command.env("LC_ALL", locale).args(arguments).write_stdin("").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn is_han(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c)
}

/// Columns on a terminal: Chinese characters and their punctuation take two.
fn columns(line: &str) -> usize {
    line.chars().map(|c| if c >= '\u{2e80}' { 2 } else { 1 }).sum()
}

#[test]
fn chinese_help_matches_its_snapshots_and_fits_130_columns() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/help/zh");
    for name in std::iter::once("throughline").chain(COMMANDS) {
        let arguments: &[&str] = if name == "throughline" { &["--help"] } else { &[name, "--help"] };
        let (code, said, _) = run("zh_CN.UTF-8", arguments);
        assert_eq!(code, Some(0));
        let path = folder.join(format!("{name}.txt"));
        if std::env::var_os("UPDATE_HELP").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &said).unwrap();
        }
        let agreed = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(said, agreed, "UPDATE_HELP=1 cargo test -p throughline-cli writes {}", path.display());
        let long: Vec<&str> = said.lines().filter(|line| columns(line) > 130).collect();
        assert_eq!(long, Vec::<&str>::new(), "{name}");
        for heading in ["Usage:", "Options:", "Commands:", "Arguments:", "Print help"] {
            assert!(!said.contains(heading), "{name}: {heading}");
        }
    }
    // The lists of a command's own commands as well.
    for arguments in [&["tools", "call", "--help"][..], &["keys", "create", "-h"], &["help", "users", "add"]]
    {
        let (code, said, _) = run("zh_CN.UTF-8", arguments);
        assert!(
            code == Some(0) && said.contains("用法：") && said.contains("选项："),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn language_is_chosen_by_flag_then_variable_then_locale() {
    let help = |locale: &str, variable: Option<&str>, flag: &[&str]| {
        let (mut command, _folder) = throughline();
        command.env("LC_ALL", locale);
        variable.map(|name| command.env("THROUGHLINE_LANG", name));
        let output = command.args(flag).arg("--help").output().unwrap();
        String::from_utf8(output.stdout).unwrap().chars().any(is_han)
    };
    assert!(!help("C.UTF-8", None, &[]));
    assert!(help("zh_TW.UTF-8", None, &[]));
    assert!(help("C.UTF-8", Some("zh"), &[]));
    assert!(!help("zh_CN.UTF-8", Some("en_GB.UTF-8"), &[]));
    assert!(help("C.UTF-8", Some("en"), &["--lang", "zh"]));
    assert!(!help("zh_CN.UTF-8", None, &["--lang=en"]));
    let (code, _, said) = run("C.UTF-8", &["--lang", "fr", "history"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("there is no language `fr`") && said.contains("--lang zh"), "{said}");
}

#[test]
fn argument_errors_are_in_chinese() {
    for (arguments, parts) in [
        (
            &["ask", "--nonsense"][..],
            &["错误：没有参数 `--nonsense`", "用法：throughline ask", "用 --help 查看详细说明"][..],
        ),
        (&["ask", "--quite", "x"], &["没有参数 `--quite`", "是不是想用：--quiet"]),
        (&["hsitory"], &["没有命令 `hsitory`", "是不是想用：", "history"]),
        (&["export"], &["缺少 <CONVERSATION>"]),
        (&["ask", "--json", "--events", "x"], &["--json 不能与 --events 同时使用"]),
        (&["completions", "tcsh"], &["<SHELL> 的值 `tcsh` 无效", "可选值：bash、elvish"]),
        (&["history", "--limit", "x"], &["--limit <N> 的值 `x` 无效"]),
        (&["history", "--limit"], &["--limit <N> 后面需要一个值"]),
    ] {
        let (code, said, complaint) = run("zh_CN.UTF-8", arguments);
        assert_eq!((code, said.as_str()), (Some(1), ""), "{arguments:?}");
        for part in parts {
            assert!(complaint.contains(part), "{arguments:?}: no {part} in\n{complaint}");
        }
        assert!(!complaint.contains("error:") && !complaint.contains("Usage:"), "{complaint}");
    }
}

#[test]
fn failures_print_reason_and_remedy_in_chinese() {
    let (code, _, said) = run("zh_CN.UTF-8", &["ask"]);
    assert_eq!(code, Some(1));
    assert_eq!(
        said,
        "错误：没有要问的内容\n  原因：提示词为空\n  可以试试：throughline ask \"现在几点？\"\n"
    );
    let (_, _, said) = run("zh_CN.UTF-8", &["tools", "call", "demo.wether", "{}"]);
    assert!(said.starts_with("错误：没有工具 `demo.wether`\n  可以试试：demo.weather"), "{said}");

    // A turn that fails: the sentences of the engine, too.
    let played = Played::new(ScriptQueue::new([ModelScript::status(401)]));
    let (mut command, _folder) = throughline();
    command
        .env("LC_ALL", "zh_CN.UTF-8")
        .args(["ask", "你好"])
        .args(played.arguments(FakeDialect::OpenaiChat));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("✘ 上游拒绝了密钥。") && said.contains("可以试试: 请检查密钥及其环境变量。"),
        "{said}"
    );
}

/// String literals of a source, without its tests and comments.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("\nmod tests {").next().unwrap_or_default();
    let lines = source.lines().map(|line| if line.trim_start().starts_with("//") { "" } else { line });
    let code = lines.collect::<Vec<_>>().join("\n");
    let (mut literals, mut chars) = (Vec::new(), code.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            // A character such as '"' is no string.
            '\'' if chars.peek() == Some(&'"') => drop(chars.nth(1)),
            '"' => {
                let mut text = String::new();
                while let Some(inside) = chars.next().filter(|inside| *inside != '"') {
                    text.push(inside);
                    if inside == '\\' {
                        text.extend(chars.next());
                    }
                }
                literals.push(text);
            }
            _ => {}
        }
    }
    literals
}

/// True for three consecutive words that are not a command line.
fn is_sentence(text: &str) -> bool {
    let is_word = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase() || c == '\'');
    let is_command =
        ["throughline ", "  throughline ", "--", "-p "].iter().any(|begin| text.starts_with(begin));
    !is_command && text.split([' ', '\n']).filter(is_word).count() >= 3
}

/// Sentences outside of `messages` that need no translation: texts for developers, models or logs.
const NOT_FOR_PEOPLE: [(&str, &str); 6] = [
    // Reasons of lints.
    ("main.rs", "these panic when the reader of a pipe has left"),
    // Tools of the benchmark.
    ("serve/bench.rs", ""),
    // Lines of the log, which programs read.
    ("serve/reload.rs", ""),
    // Assertions of a screen for tests.
    ("terminal/virtual_screen.rs", ""),
    // Help has a separate table of Chinese, with a separate test.
    ("messages/help.rs", ""),
    // Both sides of that table.
    ("chinese/", ""),
];

/// All sources of the command, by path.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut found, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Help is in `args`, as comments and as `help = …`, which are no sentences of a running command.
#[test]
fn every_cli_message_has_a_chinese_translation() {
    let mut checked = 0;
    for (name, source) in sources() {
        // Lists of the same length in both languages, by their type.
        let source = source.split("/// Prompts that the demo model understands").next().unwrap_or_default();
        let literals = literals(source);
        for (at, english) in literals.iter().enumerate() {
            let is_help = english.contains("\n\nExample");
            let is_left_out =
                NOT_FOR_PEOPLE.iter().any(|(file, part)| name.starts_with(file) && english.contains(part));
            if is_help || is_left_out || !is_sentence(english) || english.chars().any(is_han) {
                continue;
            }
            checked += 1;
            let next = literals.get(at + 1).map(String::as_str).unwrap_or_default();
            assert!(next.chars().any(is_han), "{name}: no Chinese after {english:?}");
        }
    }
    assert!(checked > 290, "{checked} sentences");
}

/// Errors of the configuration, lists and a tool's page on a Chinese terminal.
#[test]
fn config_errors_and_lists_are_in_chinese() {
    let answer = |config: &str, words: &[&str]| {
        let (mut command, folder) = throughline();
        std::fs::write(folder.path().join("throughline.toml"), config).unwrap();
        let output = command.env("LC_ALL", "zh_CN.UTF-8").args(words).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let agent = "[agents.default]\nmodel = \"demo\"\n";
    for (config, expected) in [
        ("[agents.default]\nmodle = \"demo\"".to_owned(), &["未知的键 `modle`", "是不是想写 `model`？"][..]),
        (
            format!("{agent}temperature = \"0.3\""),
            &["类型不对：字符串 \"0.3\"，应为数字", "不加引号：temperature = 0.3"],
        ),
        (format!("{agent}temperature = 9"), &["`temperature` 是 0 到 2 之间的数", "throughline.toml:3:15"]),
        (
            "[mcp.x]\ncommand = [\"a\"]\nurl = \"http://b/\"".to_owned(),
            &["MCP 服务器 `x` 同时有 `command` 和 `url`"],
        ),
        ("[upstreams.u]\nknown = \"openai\"\nkey_env = \"sk-very\"".to_owned(), &["这里看起来是密钥"]),
    ] {
        let said = answer(&config, &["tools", "list"]);
        for part in expected {
            assert!(said.contains(part), "{part} is not in the answer to\n{config}\n{said}");
        }
    }
    let said = answer("", &["tools", "show", "demo.calendar"]);
    for part in ["副作用", "write · 先询问", "来源", "模型：可以", "在本机，最长", "参数"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = answer("", &["tools", "call", "demo.fail"]);
    assert!(said.contains("后失败："), "{said}");
    let said = answer("", &["upstreams"]);
    assert!(said.contains("未设置 OPENAI_API_KEY") && said.contains("不需要密钥"), "{said}");
    let said = answer("", &["restore", "."]);
    assert!(said.contains("请选择另一个备份；没有改动任何内容"), "{said}");
}
