//! The client for TypeScript as it is published (`web/client/pack.mjs`): unpacked into a new project, it is typed, and runs in
//! several releases of Node against `throughline serve`.
//!
//! `cargo xtask test --only clients` packs it and installs what these tests need.

#![cfg(unix)]

use crate::support::serving::Serving;
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A variable that names a file or folder; without it a test prints a notice and passes.
fn named(variable: &str) -> Option<PathBuf> {
    match std::env::var_os(variable) {
        // The runner of the tests has reported the reason.
        Some(path) if path.is_empty() => None,
        Some(path) => Some(path.into()),
        None => {
            println!("skipped: {variable} is not set (cargo xtask test --only clients)");
            None
        }
    }
}

/// A new project with the packed client, React 18 and the types of both, and what they were installed from.
fn project() -> Option<(tempfile::TempDir, PathBuf)> {
    let (packages, packed) = (named("THROUGHLINE_CLIENTS")?, named("THROUGHLINE_CLIENT_PACKAGE")?);
    let folder = tempfile::tempdir().unwrap();
    let modules = folder.path().join("node_modules");
    for scope in ["@throughline/client", "@types"] {
        std::fs::create_dir_all(modules.join(scope)).unwrap();
    }
    let unpack = Command::new("tar")
        .args(["xzf", packed.to_str().unwrap(), "--strip-components=1", "-C"])
        .arg(modules.join("@throughline/client"))
        .status();
    assert!(unpack.unwrap().success());
    for package in ["react", "loose-envify", "js-tokens", "csstype", "undici-types"] {
        symlink(packages.join("node_modules").join(package), modules.join(package)).unwrap();
    }
    for types in ["node", "react", "prop-types"] {
        symlink(packages.join("node_modules/@types").join(types), modules.join("@types").join(types))
            .unwrap();
    }
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("package.json", r#"{"name": "mine", "private": true, "type": "module"}"#);
    // The example of docs/api.md.
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/client/tests/example.ts");
    std::fs::copy(example, folder.path().join("example.ts")).unwrap();
    write(
        "hooks.ts",
        "import { Throughline, TurnStore } from \"@throughline/client\";\n\
         import { type StreamingToolCalls, useBlock, useStreamingToolCalls } from \"@throughline/client/react\";\n\
         export const shown = (client: Throughline): StreamingToolCalls => useStreamingToolCalls(client);\n\
         const types: string[] = [typeof useBlock, typeof useStreamingToolCalls, typeof TurnStore];\n\
         console.log(types.join());\n",
    );
    Some((folder, packages))
}

/// The output of a program, which must end well.
#[track_caller]
fn done(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

/// Compiles the project as strictly as can be, declarations of the package included.
fn compile(folder: &Path, packages: &Path, module: &str, resolution: &str) {
    let options = [
        "--strict",
        "--exactOptionalPropertyTypes",
        "--noUncheckedIndexedAccess",
        "--verbatimModuleSyntax",
        "--ignoreConfig",
        "--target",
        "es2023",
        "--types",
        "node",
        "--skipLibCheck",
        "false",
        "--outDir",
        "built",
    ];
    let bin = packages.join("node_modules/.bin");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut tsc = Command::new(bin.join("tsc"));
    tsc.current_dir(folder).env("PATH", path).args(options);
    done(tsc.args(["--module", module, "--moduleResolution", resolution, "example.ts", "hooks.ts"]));
}

#[test]
fn client_types_are_checked_in_a_new_project() {
    let Some((folder, packages)) = project() else { return };
    compile(folder.path(), &packages, "nodenext", "nodenext");
    compile(folder.path(), &packages, "esnext", "bundler");
    let wrong = "import { Throughline } from \"@throughline/client\";\nnew Throughline({ baseUrl: 1 });\n";
    std::fs::write(folder.path().join("wrong.ts"), wrong).unwrap();
    let bin = packages.join("node_modules/.bin");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut tsc = Command::new(bin.join("tsc"));
    tsc.current_dir(folder.path()).env("PATH", path);
    let words = ["--ignoreConfig", "--noEmit", "--strict", "--module", "nodenext", "wrong.ts"];
    let refused = tsc.args(words).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stdout).contains("'number' is not assignable"), "{refused:?}");
}

#[test]
fn client_runs_a_conversation_in_each_node_release() {
    let Some((folder, packages)) = project() else { return };
    compile(folder.path(), &packages, "nodenext", "nodenext");
    let data = tempfile::tempdir().unwrap();
    let server = Serving::start(data.path(), &["--model", "demo", "--demo-tools"]);
    let base = format!("http://{}", server.address());
    let mut nodes = vec![("v22.", packages.join("node_modules/.bin/node"))];
    nodes.extend(named("THROUGHLINE_NODE_24").map(|node| ("v24.", node)));
    for (release, node) in nodes {
        let version = done(Command::new(&node).arg("--version"));
        assert!(version.starts_with(release), "{version}");
        let mut example = Command::new(&node);
        example.current_dir(folder.path()).arg("built/example.js").env("NO_PROXY", "127.0.0.1");
        let said = done(example.env("BASE_URL", &base).env("KEY", server.token().unwrap()));
        for part in ["[success]", "\ncompleted\n", "404 "] {
            assert!(said.contains(part), "{version}: {said}");
        }
        let hooks = done(Command::new(&node).current_dir(folder.path()).arg("built/hooks.js"));
        assert_eq!(hooks.trim(), "function,function,function");
    }
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn client_package_contains_only_published_files() {
    let Some((folder, _)) = project() else { return };
    let package = folder.path().join("node_modules/@throughline/client");
    let manifest = std::fs::read_to_string(package.join("package.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(
        manifest["version"],
        env!("CARGO_PKG_VERSION"),
        "it belongs to the server of the same release"
    );
    assert_eq!(manifest["license"], "MIT OR Apache-2.0");
    assert_eq!((&manifest["private"], &manifest["sideEffects"]), (&Value::Null, &Value::Bool(false)));
    assert_eq!(manifest["peerDependencies"]["react"], ">=18");
    assert_eq!(manifest["peerDependenciesMeta"]["react"]["optional"], true);
    for (name, entry) in manifest["exports"].as_object().unwrap() {
        for condition in ["types", "default"] {
            assert!(package.join(entry[condition].as_str().unwrap()).is_file(), "{name} {condition}");
        }
    }
    let mut names: Vec<_> = std::fs::read_dir(&package)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "dist", "package.json"]);
}
