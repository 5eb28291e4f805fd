//! Refusals of the sandbox in a program's own error messages: recognized, so that the remedy can be added.

use super::program::ProgramSpec;
use super::sandbox::SandboxMode;
use std::path::{Component, Path, PathBuf};

/// Words of programs that were refused a file.
const REFUSALS: [&str; 3] = ["permission denied", "eacces", "operation not permitted"];
/// Characters that surround a path in a message.
const PATH_QUOTES: [char; 3] = ['\'', '"', '`'];
/// Most bytes of a message that are searched.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Sentence that names `sandbox.write`, if the text reports a path that the sandbox does not allow to write.
/// `section` is where the setting belongs.
pub(crate) fn sandbox_remedy(text: &str, program: &ProgramSpec, section: &str) -> Option<String> {
    if program.sandbox.mode == SandboxMode::Off || program.helper.is_none() {
        return None;
    }
    let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    let line = text.lines().find(|line| {
        let line = line.to_lowercase();
        REFUSALS.iter().any(|refusal| line.contains(refusal))
    })?;
    match refused_path(line, program.folder.as_deref()) {
        Some(path) if program.sandbox.write.iter().any(|allowed| path.starts_with(allowed)) => None,
        Some(path) => Some(format!(
            "The sandbox does not let it write {}. To allow that, name the file or its folder in `sandbox.write` of {section}.",
            path.display()
        )),
        None => Some(format!(
            "The sandbox allows writing only to its own folder and to the paths in `sandbox.write` of {section}."
        )),
    }
}

/// The last path in a line, from the root.
fn refused_path(line: &str, folder: Option<&Path>) -> Option<PathBuf> {
    let quoted = PATH_QUOTES.iter().flat_map(|quote| line.split(*quote).skip(1).step_by(2));
    // `sh: 1: cannot create ../x: Permission denied`
    let mut words = line.split([' ', '\t']).map(|word| word.trim_end_matches([':', ',', '.']));
    let is_path = |text: &&str| text.contains('/') && !text.contains("://") && !text.contains('\0');
    let text = quoted.filter(is_path).last().or_else(|| words.rfind(is_path))?;
    let text = text.trim_matches(PATH_QUOTES);
    let path = match folder {
        Some(folder) => folder.join(text),
        None => PathBuf::from(text),
    };
    path.is_absolute().then(|| normalized(&path))
}

/// The path without `.` and `..`, resolved textually.
fn normalized(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::process::{ExecHelper, SandboxRules, SpawnContext};

    fn program(mode: SandboxMode) -> ProgramSpec {
        let context = SpawnContext::of_this_process().with_helper(ExecHelper::new("/bin/true", []));
        ProgramSpec {
            folder: Some("/vcp/Plugin/Forum".into()),
            sandbox: SandboxRules {
                mode,
                write: vec!["/vcp/Plugin/Forum".into()],
                ..SandboxRules::default()
            },
            ..ProgramSpec::new("/bin/sh".into(), &context)
        }
    }

    #[test]
    fn sandbox_remedy_names_the_denied_path() {
        for (text, path) in [
            ("Error: EACCES: permission denied, mkdir '/vcp/dailynote/a b'", Some("/vcp/dailynote/a b")),
            ("PermissionError: [Errno 13] Permission denied: '../../x/y.json'", Some("/vcp/x/y.json")),
            ("sh: 1: cannot create ../x: Permission denied", Some("/vcp/Plugin/x")),
            ("first line\ntouch: cannot touch '/srv/n': Permission denied\nlast", Some("/srv/n")),
        ] {
            let remedy = sandbox_remedy(text, &program(SandboxMode::On), "[vcp_plugins]");
            let expected = path.map(|path| {
                format!("The sandbox does not let it write {path}. To allow that, name the file or its folder in `sandbox.write` of [vcp_plugins].")
            });
            assert_eq!(remedy, expected, "{text}");
        }
        let pathless = sandbox_remedy("permission denied", &program(SandboxMode::Required), "[vcp_plugins]");
        assert!(pathless.is_some_and(|remedy| remedy.contains("`sandbox.write` of [vcp_plugins]")));
    }

    #[test]
    fn sandbox_remedy_is_absent_for_allowed_or_unconfined_paths() {
        let own = "EACCES: permission denied, open '/vcp/Plugin/Forum/a'";
        assert_eq!(sandbox_remedy(own, &program(SandboxMode::On), "x"), None);
        assert_eq!(sandbox_remedy("EACCES '/etc/x'", &program(SandboxMode::Off), "x"), None);
        assert_eq!(sandbox_remedy("no such file '/etc/x'", &program(SandboxMode::On), "x"), None);
        let unsupervised = ProgramSpec { helper: None, ..program(SandboxMode::On) };
        assert_eq!(sandbox_remedy("EACCES '/etc/x'", &unsupervised, "x"), None);
    }
}
