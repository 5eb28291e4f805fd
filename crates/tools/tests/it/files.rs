//! `files.*` show the content of their roots, and nothing else for any path.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use throughline_tools::builtin::files::{
    ENTRIES_SHOWN_MAX, FileRoots, READ_BYTES_MAX, SEARCH_FILE_BYTES_MAX, SEARCH_MATCHES_MAX,
};
use throughline_tools::{ToolExecutor, ToolInvocation, ToolRegistry, ToolToggles};
use throughline_wire::{CallArguments, CallOutcome, NotStarted, ToolOutput};

/// A `secret` next to the roots `notes` and `code`.
fn fixture() -> (TempDir, ToolRegistry) {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("secret/key.txt", "SECRET\n");
    write("notes-private/key.txt", "SECRET\n");
    write("notes/plan.md", "# Plan\nbuy milk\n买牛奶\nBuy bread\n");
    write("notes/2026/november.md", "milk again\nnothing\n");
    write("notes/.hidden/x.md", "milk in hiding\n");
    write("notes/empty.txt", "");
    write("notes/picture.png", "\u{0}milk\n");
    write("code/main.rs", "fn main() { println!(\"milk\"); }\n");
    let roots = FileRoots::new()
        .with("notes", folder.path().join("notes"))
        .and_then(|roots| roots.with("code", folder.path().join("code")))
        .unwrap();
    (folder, ToolRegistry::builder().tools(roots.tools()).build().unwrap())
}

async fn ends(registry: &ToolRegistry, tool: &str, arguments: Value) -> CallOutcome {
    let call = ToolInvocation::new("call_1", tool, CallArguments::from_value(arguments));
    ToolExecutor::default().run(registry, call, |_| async {}).await
}

async fn done(registry: &ToolRegistry, tool: &str, arguments: Value) -> ToolOutput {
    match ends(registry, tool, arguments.clone()).await {
        CallOutcome::Done(output) => output,
        other => panic!("{tool} {arguments}: {other:?}"),
    }
}

async fn refused(registry: &ToolRegistry, tool: &str, arguments: Value) -> String {
    match ends(registry, tool, arguments.clone()).await {
        CallOutcome::Failed { message, .. }
        | CallOutcome::NotStarted(NotStarted::InvalidArguments { message }) => message,
        other => panic!("{tool} {arguments}: {other:?}"),
    }
}

#[tokio::test]
async fn search_ignores_case_in_every_script() {
    let (folder, registry) = fixture();
    for (text, query) in
        [("ПРИВЕТ", "привет"), ("à l'ÉCOLE", "école"), ("η οδος", "ΟΔΟΣ"), ("ქართული", "ᲥᲐᲠᲗᲣᲚᲘ")]
    {
        fs::write(folder.path().join("notes/scripts.txt"), text).unwrap();
        let arguments = json!({"query": query, "path": "notes/scripts.txt"});
        let found = done(&registry, "files.search", arguments).await.text;
        assert!(found.contains(text), "{query}: {found}");
    }
}

#[tokio::test]
async fn folders_are_listed() {
    let (_folder, registry) = fixture();
    for (path, expected) in [
        (json!({}), "notes/\ncode/\n"),
        (json!({"path": ""}), "notes/\ncode/\n"),
        (json!({"path": "."}), "notes/\ncode/\n"),
        (
            json!({"path": "notes"}),
            ".hidden/\n2026/\nempty.txt  0 bytes\npicture.png  6 bytes\nplan.md  36 bytes\n",
        ),
        (json!({"path": "notes/2026/"}), "november.md  19 bytes\n"),
        (json!({"path": "./notes/./2026"}), "november.md  19 bytes\n"),
    ] {
        assert_eq!(done(&registry, "files.list", path.clone()).await.text, expected, "{path}");
    }
    let entries = done(&registry, "files.list", json!({"path": "notes/2026"})).await.value.unwrap();
    let entry = json!({"name": "november.md", "kind": "file", "bytes": 19});
    assert_eq!(entries, json!({"path": "notes/2026", "entries": [entry], "more": 0}));
}

#[tokio::test]
async fn files_are_read_by_lines() {
    let (_folder, registry) = fixture();
    for (arguments, expected) in [
        (json!({"path": "notes/plan.md"}), "# Plan\nbuy milk\n买牛奶\nBuy bread\n"),
        (json!({"path": "notes/plan.md", "start_line": 3}), "买牛奶\nBuy bread\n"),
        (
            json!({"path": "notes/plan.md", "start_line": 2, "lines": 1}),
            "buy milk\n[lines 2-2; more follows: continue with start_line 3]\n",
        ),
        (json!({"path": "notes/plan.md", "lines": 4}), "# Plan\nbuy milk\n买牛奶\nBuy bread\n"),
        (json!({"path": "notes/empty.txt"}), "(the file is empty)\n"),
    ] {
        assert_eq!(done(&registry, "files.read", arguments.clone()).await.text, expected, "{arguments}");
    }
    for (arguments, expected) in [
        (json!({"path": "notes/plan.md", "start_line": 9}), "`notes/plan.md` has only 4 lines"),
        (json!({"path": "notes/picture.png"}), "`notes/picture.png` is not text (6 bytes)"),
        (json!({"path": "notes/nothing.md"}), "`notes/nothing.md` does not exist"),
        (json!({"path": "notes/plan.md/x"}), "`notes/plan.md/x` is not a folder"),
        (json!({"path": "notes/2026"}), "`notes/2026` is a folder"),
        (json!({"path": ""}), "no file is named; paths begin with one of: notes, code"),
        (
            json!({"path": "other/plan.md"}),
            "`other/plan.md` is under no root; paths begin with one of: notes, code",
        ),
        (json!({"path": "notes/plan.md", "start_line": 0}), "/start_line: expected at least 1, got 0"),
    ] {
        assert_eq!(refused(&registry, "files.read", arguments.clone()).await, expected, "{arguments}");
    }
}

#[tokio::test]
async fn a_long_file_is_read_in_pieces_that_join() {
    let (folder, registry) = fixture();
    let text: String =
        (1..=5_000).map(|n| format!("line {n} of a long file, long enough to need pieces\n")).collect();
    fs::write(folder.path().join("notes/long.txt"), &text).unwrap();
    let (mut joined, mut start) = (String::new(), 1);
    let mut pieces = 0;
    loop {
        let arguments = json!({"path": "notes/long.txt", "start_line": start, "lines": 2_000});
        let output = done(&registry, "files.read", arguments).await;
        assert!(output.text.len() < READ_BYTES_MAX + 100 && output.spilled_to.is_none());
        pieces += 1;
        let value = output.value.unwrap();
        let body = output.text.lines().filter(|line| !line.starts_with('['));
        joined.extend(body.map(|line| format!("{line}\n")));
        if value["is_end"] == json!(true) {
            break;
        }
        start = value["last_line"].as_u64().unwrap() + 1;
    }
    assert_eq!(joined, text);
    assert!(pieces > 5, "{pieces}");
}

#[tokio::test]
async fn files_are_searched() {
    let (_folder, registry) = fixture();
    for (arguments, expected) in [
        (
            json!({"query": "milk"}),
            "notes/plan.md:2: buy milk\nnotes/2026/november.md:1: milk again\ncode/main.rs:1: fn main() { println!(\"milk\"); }\n\
             [1 skipped: not text, unreadable or larger than 16.8 MB]\n",
        ),
        (
            json!({"query": "BUY", "path": "notes/plan.md"}),
            "notes/plan.md:2: buy milk\nnotes/plan.md:4: Buy bread\n",
        ),
        (
            json!({"query": "Buy", "path": "notes/plan.md", "case_sensitive": true}),
            "notes/plan.md:4: Buy bread\n",
        ),
        (json!({"query": "牛奶", "path": "notes/plan.md"}), "notes/plan.md:3: 买牛奶\n"),
        (json!({"query": "^b.*d$", "regex": true, "path": "notes/plan.md"}), "notes/plan.md:4: Buy bread\n"),
        (json!({"query": "m.lk", "path": "notes/plan.md"}), "Nothing found in 1 files.\n"),
        (json!({"query": "milk", "path": "notes/.hidden"}), "notes/.hidden/x.md:1: milk in hiding\n"),
    ] {
        assert_eq!(done(&registry, "files.search", arguments.clone()).await.text, expected, "{arguments}");
    }
    let message = refused(&registry, "files.search", json!({"query": "(", "regex": true})).await;
    assert!(message.starts_with("/query: regex parse error"), "{message}");
    let message =
        refused(&registry, "files.search", json!({"query": "((a{100}){100}){100}", "regex": true})).await;
    assert!(message.contains("exceeds size limit"), "{message}");
    let message = refused(&registry, "files.search", json!({"query": ""})).await;
    assert_eq!(message, "/query: expected at least 1 character, got \"\"");
}

#[tokio::test]
async fn list_and_search_results_are_bounded() {
    let (folder, registry) = fixture();
    let many = folder.path().join("notes/many");
    fs::create_dir(&many).unwrap();
    for n in 0..ENTRIES_SHOWN_MAX + 20 {
        fs::write(many.join(format!("{n:04}.txt")), format!("needle {}\n", "x".repeat(1_000))).unwrap();
    }
    let listed = done(&registry, "files.list", json!({"path": "notes/many"})).await;
    assert!(listed.text.ends_with("0499.txt  1.0 KB\n… and 20 more entries"), "{}", listed.text);

    let found = done(&registry, "files.search", json!({"query": "needle", "path": "notes/many"})).await;
    let lines: Vec<&str> = found.text.lines().collect();
    assert_eq!(lines.len(), SEARCH_MATCHES_MAX + 1);
    assert_eq!(lines[SEARCH_MATCHES_MAX], "[stopped at 100 matches: narrow the search]");
    assert!(
        lines[0].starts_with("notes/many/0000.txt:1: needle xxx") && lines[0].len() < 300,
        "{}",
        lines[0]
    );

    let huge = fs::File::create(many.join("huge.txt")).unwrap();
    huge.set_len(SEARCH_FILE_BYTES_MAX + 1).unwrap();
    let found = done(&registry, "files.search", json!({"query": "x", "path": "notes/many/huge.txt"})).await;
    assert!(found.text.contains("[1 skipped"), "{}", found.text);
}

#[tokio::test]
async fn paths_cannot_escape_the_roots() {
    let (folder, registry) = fixture();
    let absolute = folder.path().join("secret/key.txt").to_string_lossy().into_owned();
    let inside = folder.path().join("notes/plan.md").to_string_lossy().into_owned();
    let mut paths = vec![
        absolute,
        inside,
        "/etc/passwd".into(),
        "//etc/passwd".into(),
        "../secret/key.txt".into(),
        "notes/../secret/key.txt".into(),
        "notes/../../secret/key.txt".into(),
        "notes/2026/../../../secret/key.txt".into(),
        "notes/2026/../plan.md".into(),
        "notes/./../secret/key.txt".into(),
        "notes//../secret/key.txt".into(),
        "notes/..".into(),
        "..".into(),
        "notes-private/key.txt".into(),
        "notes\\..\\..\\secret\\key.txt".into(),
        "notes/..\\..\\secret/key.txt".into(),
        "notes/%2e%2e/secret/key.txt".into(),
        "notes/\u{2025}/secret/key.txt".into(),
        "NOTES/plan.md".into(),
        "Notes/../secret/key.txt".into(),
        "~/key.txt".into(),
        "C:\\secret\\key.txt".into(),
        "\\\\?\\C:\\secret".into(),
        "file:///etc/passwd".into(),
        "notes/plan.md\0.png".into(),
        "\0".into(),
        "secret/key.txt".into(),
        format!("notes/{}", "../".repeat(200)),
    ];
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        let notes = folder.path().join("notes");
        symlink(folder.path().join("secret/key.txt"), notes.join("absolute link")).unwrap();
        symlink("../secret/key.txt", notes.join("relative link")).unwrap();
        symlink(folder.path().join("secret"), notes.join("folder link")).unwrap();
        symlink("..", notes.join("up")).unwrap();
        symlink("/", notes.join("root")).unwrap();
        symlink("/proc/self/root", notes.join("magic")).unwrap();
        symlink("up", notes.join("link to a link")).unwrap();
        symlink("loop", notes.join("loop")).unwrap();
        let links = [
            "notes/absolute link",
            "notes/relative link",
            "notes/folder link/key.txt",
            "notes/up/secret/key.txt",
            "notes/root/etc/passwd",
            "notes/magic/etc/passwd",
            "notes/link to a link/secret/key.txt",
            "notes/loop",
        ];
        paths.extend(links.map(str::to_owned));
    }
    let root = folder.path().to_string_lossy().into_owned();
    for path in &paths {
        for tool in ["files.read", "files.list", "files.search"] {
            let mut arguments = json!({"path": path});
            if tool == "files.search" {
                arguments["query"] = json!("SECRET|root:");
                arguments["regex"] = json!(true);
            }
            let message = refused(&registry, tool, arguments).await;
            assert!(
                path.contains(&root) || !message.contains(&root),
                "{tool} {path} tells where it is: {message}"
            );
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn links_within_a_root_work_and_search_follows_none() {
    use std::os::unix::fs::symlink;
    let (folder, registry) = fixture();
    let notes = folder.path().join("notes");
    symlink("2026/november.md", notes.join("current.md")).unwrap();
    symlink("../plan.md", notes.join("2026/plan.md")).unwrap();
    symlink("../secret", notes.join("out")).unwrap();
    symlink(".", notes.join("self")).unwrap();
    assert_eq!(
        done(&registry, "files.read", json!({"path": "notes/current.md"})).await.text,
        "milk again\nnothing\n"
    );
    let plan = done(&registry, "files.read", json!({"path": "notes/2026/plan.md", "lines": 1})).await;
    assert!(plan.text.starts_with("# Plan\n"));
    let message = refused(&registry, "files.read", json!({"path": "notes/out/key.txt"})).await;
    assert_eq!(message, "`notes/out/key.txt` leads outside of the allowed folder");
    let listed = done(&registry, "files.list", json!({"path": "notes"})).await.text;
    assert!(listed.contains("out  (link)\n") && listed.contains("self  (link)\n"), "{listed}");
    let found = done(&registry, "files.search", json!({"query": "secret"})).await.text;
    assert!(found.starts_with("Nothing found"), "{found}");
    let found = done(&registry, "files.search", json!({"query": "again"})).await.text;
    assert!(found.starts_with("notes/2026/november.md:1: milk again\n["), "{found}");
}

/// A root that is swapped for a link after the server has started still is the folder that was allowed.
#[cfg(unix)]
#[tokio::test]
async fn root_swapped_for_a_link_keeps_the_original_folder() {
    let (folder, registry) = fixture();
    fs::rename(folder.path().join("notes"), folder.path().join("moved")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("secret"), folder.path().join("notes")).unwrap();
    assert!(
        refused(&registry, "files.read", json!({"path": "notes/key.txt"})).await.contains("does not exist")
    );
    assert!(
        done(&registry, "files.read", json!({"path": "notes/plan.md"})).await.text.starts_with("# Plan\n")
    );
}

#[cfg(unix)]
#[tokio::test]
async fn pipes_are_not_opened() {
    let (folder, registry) = fixture();
    let pipe = folder.path().join("notes/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo is in POSIX");
    assert_eq!(
        refused(&registry, "files.read", json!({"path": "notes/pipe"})).await,
        "`notes/pipe` is not a plain file"
    );
    let found = done(&registry, "files.search", json!({"query": "again", "path": "notes"})).await.text;
    assert!(found.starts_with("notes/2026/november.md:1: milk again\n"), "{found}");
}

#[tokio::test]
async fn single_root_name_is_optional_in_paths() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("desk")).unwrap();
    fs::write(folder.path().join("a.txt"), "outer\n").unwrap();
    fs::write(folder.path().join("desk/a.txt"), "inner\n").unwrap();
    let roots = FileRoots::new().with("desk", folder.path()).unwrap();
    let registry = ToolRegistry::builder().tools(roots.tools()).build().unwrap();
    for (path, expected) in [("a.txt", "outer\n"), ("desk/a.txt", "outer\n"), ("desk/desk/a.txt", "inner\n")]
    {
        assert_eq!(done(&registry, "files.read", json!({"path": path})).await.text, expected, "{path}");
    }
}

#[tokio::test]
async fn without_roots_no_file_is_accessible() {
    let registry = ToolRegistry::builder().tools(FileRoots::new().tools()).build().unwrap();
    assert_eq!(done(&registry, "files.list", json!({})).await.text, "No folder is allowed.");
    assert!(
        refused(&registry, "files.read", json!({"path": "etc/passwd"}))
            .await
            .contains("no folder is allowed")
    );
    assert!(
        done(&registry, "files.search", json!({"query": "x"}))
            .await
            .text
            .starts_with("Nothing found in 0 files")
    );
}

#[test]
fn invalid_roots_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for name in ["", ".", "..", "a/b", "/a", "a\0", "a\\b", "a/"] {
        assert!(FileRoots::new().with(name, here).is_err(), "{name:?}");
    }
    let twice = FileRoots::new().with("a", here).and_then(|roots| roots.with("a", here)).unwrap_err();
    assert_eq!(twice.to_string(), "there are two roots named `a`");
    let missing = FileRoots::new().with("a", here.join("missing")).unwrap_err();
    assert!(missing.to_string().ends_with("missing cannot be opened"), "{missing}");
    assert!(FileRoots::new().with("a", Path::new("/proc/version")).is_err());
}

#[test]
fn file_tools_start_early_and_describe_their_roots() {
    let (_folder, registry) = fixture();
    let offered = registry.offered(&ToolToggles::default());
    assert_eq!(offered.len(), 3);
    for tool in offered {
        assert!(tool.effect.may_start_early(), "{}", tool.name);
        assert!(tool.definition.description.ends_with("; paths begin with one of: notes, code."), "{tool:?}");
    }
}
