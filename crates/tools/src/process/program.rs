//! A program that can be started: found once, with its arguments, environment and folder.

use super::control_groups::ControlGroups;
use super::helper::ExecHelper;
use super::limits::ProcessLimits;
use super::run_as::RunAs;
use super::sandbox::{SandboxRules, SandboxStatus, full_path};
use crate::variables::{ExpandedText, expand_variables};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Variables that a child gets if we have them: what programs need to find others and to write the right language, and
/// nothing that is secret.
pub const ENVIRONMENT_ALLOWED: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ"];

/// Environment in which programs are started: a source finds and confines its programs with it.
#[derive(Clone, Debug, Default)]
pub struct SpawnContext {
    /// Our environment, out of which settings pick.
    pub environment: BTreeMap<String, String>,
    /// Base folder of relative paths in settings: that of the configuration file.
    pub folder: PathBuf,
    /// Supervisor that confines children; `None` = no confinement.
    pub helper: Option<ExecHelper>,
    /// Whose rights programs have.
    pub run_as: RunAs,
    /// Parent of the programs' control groups; `None` = no control groups.
    pub control_groups: Option<ControlGroups>,
}

impl SpawnContext {
    /// Context of this process, without a helper.
    pub fn of_this_process() -> Self {
        // Variables that are not Unicode cannot be meant for us.
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { environment, folder: std::env::current_dir().unwrap_or_default(), ..Self::default() }
    }

    /// Adds a helper.
    #[must_use]
    pub fn with_helper(mut self, helper: ExecHelper) -> Self {
        self.helper = Some(helper);
        self
    }

    /// A path of the settings, from the root. `~/` is our user's home.
    pub fn resolve_path(&self, path: &Path) -> PathBuf {
        full_path(path, &self.folder, self.home())
    }

    /// Home folder of our user, from the environment.
    pub fn home(&self) -> Option<&str> {
        self.environment.get("HOME").map(String::as_str)
    }

    /// A value as settings write it: `"$NAME"` takes it from the environment.
    ///
    /// # Errors
    /// The variable is not set.
    pub fn resolve_value(&self, text: &str) -> Result<String, String> {
        match text.strip_prefix('$') {
            None => Ok(text.to_owned()),
            Some(name) => match self.environment.get(name).filter(|value| !value.is_empty()) {
                Some(value) => Ok(value.clone()),
                None => Err(format!("the environment variable {name} is not set")),
            },
        }
    }

    /// A text as settings write it, with every `$NAME` in it taken from the environment.
    ///
    /// # Errors
    /// A variable is not set.
    pub fn expand_variables(&self, text: &str) -> Result<ExpandedText, String> {
        expand_variables(text, |name| self.resolve_value(&format!("${name}")))
    }

    /// Checks that children can be confined here, for settings that require it.
    ///
    /// # Errors
    ///
    /// The obstacle.
    pub async fn check_sandbox(&self) -> Result<(), String> {
        let Some(helper) = &self.helper else {
            return Err("this program has no sandbox helper".to_owned());
        };
        match helper.probe().await?.sandbox {
            SandboxStatus::Landlock { .. } => Ok(()),
            other => Err(other.to_string()),
        }
    }

    /// Finds a program: by `PATH` if it is a bare name, else by its path.
    ///
    /// # Errors
    ///
    /// The program does not exist or cannot be run, or the user that it is to run as is unavailable.
    pub fn find_program(&self, name: &str) -> Result<PathBuf, ProgramError> {
        if let RunAs::Unavailable { why } = &self.run_as {
            return Err(ProgramError::RunAsUnavailable { why: why.clone() });
        }
        if name.is_empty() {
            return Err(ProgramError::NoName);
        }
        if name.contains(std::path::is_separator) {
            let path = self.resolve_path(Path::new(name));
            return match check_executable(&path) {
                ExecutableCheck::Yes => Ok(path),
                ExecutableCheck::No => Err(ProgramError::NotExecutable { path }),
                ExecutableCheck::Absent => Err(ProgramError::NotFound { path }),
            };
        }
        let path = self.environment.get("PATH").map_or("", String::as_str);
        let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
        let mut not_executable = None;
        for candidate in folders.flat_map(|folder| candidates(&folder, name)) {
            match check_executable(&candidate) {
                ExecutableCheck::Yes => return Ok(candidate),
                ExecutableCheck::No => not_executable = Some(candidate),
                ExecutableCheck::Absent => {}
            }
        }
        // Programs with a space in their name exist, and have been found above.
        if name.contains(char::is_whitespace) {
            return Err(ProgramError::CommandLine { line: name.to_owned() });
        }
        Err(match not_executable {
            Some(path) => ProgramError::NotExecutable { path },
            None => ProgramError::NotInPath { name: name.to_owned(), path: path.to_owned() },
        })
    }
}

#[cfg(not(windows))]
fn candidates(folder: &Path, name: &str) -> [PathBuf; 1] {
    [folder.join(name)]
}

#[cfg(windows)]
fn candidates(folder: &Path, name: &str) -> [PathBuf; 3] {
    [folder.join(name), folder.join(format!("{name}.exe")), folder.join(format!("{name}.cmd"))]
}

enum ExecutableCheck {
    Yes,
    No,
    Absent,
}

fn check_executable(path: &Path) -> ExecutableCheck {
    match std::fs::metadata(path) {
        Err(_) => ExecutableCheck::Absent,
        Ok(metadata) if !metadata.is_file() => ExecutableCheck::No,
        #[cfg(unix)]
        Ok(metadata) => {
            use std::os::unix::fs::PermissionsExt;
            if metadata.permissions().mode() & 0o111 == 0 {
                ExecutableCheck::No
            } else {
                ExecutableCheck::Yes
            }
        }
        #[cfg(not(unix))]
        Ok(_) => ExecutableCheck::Yes,
    }
}

/// Error that makes a program unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The argument list is empty, or begins with nothing.
    #[error("no program is named")]
    NoName,
    /// A whole command line where the program is expected.
    #[error("`{line}` is not a program: there is no shell that would read this line")]
    CommandLine {
        /// Command line that is invalid.
        line: String,
    },
    /// A bare name that is in no folder of `PATH`.
    #[error("there is no program `{name}` in PATH ({path})")]
    NotInPath {
        /// Name of the program.
        name: String,
        /// Value of `PATH` that was searched.
        path: String,
    },
    /// No file at this path.
    #[error("there is no program {}", path.display())]
    NotFound {
        /// Path that was tried.
        path: PathBuf,
    },
    /// The program is to run as a user that this process cannot become.
    #[error("{why}")]
    RunAsUnavailable {
        /// Obstacle, in a sentence.
        why: String,
    },
    /// A folder, or a file without the permission to run it.
    #[error("{} is not a program that may be run", path.display())]
    NotExecutable {
        /// Path of the program.
        path: PathBuf,
    },
}

/// The environment of a child: the variables of [`ENVIRONMENT_ALLOWED`] and those `also` allowed, as we have them, and
/// over them those `set`.
pub fn child_environment(
    spawn_context: &SpawnContext,
    extra_allowed: &[String],
    overrides: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let allowed = ENVIRONMENT_ALLOWED.into_iter().chain(extra_allowed.iter().map(String::as_str));
    let ours = allowed.filter_map(|name| spawn_context.environment.get_key_value(name));
    let ours = ours.map(|(name, value)| (name.clone(), value.clone()));
    // Our home is not theirs.
    let home = spawn_context.run_as.user().and_then(|user| Some(user.home.as_ref()?.display().to_string()));
    let theirs = home.map(|home| ("HOME".to_owned(), home));
    ours.chain(theirs).chain(overrides.iter().map(|(name, value)| (name.clone(), value.clone()))).collect()
}

/// A program with its arguments, environment, folder and limits. [`start`](Self::start) starts one child.
///
/// ```
/// # #[cfg(unix)]
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use throughline_tools::process::{ProgramSpec, SpawnContext};
/// use tokio::io::AsyncReadExt;
///
/// let spawn_context = SpawnContext::of_this_process();
/// let echo = ProgramSpec::new(spawn_context.find_program("echo")?, &spawn_context).argument("hello; rm -rf /");
/// let mut running = echo.start()?;
/// let mut output = String::new();
/// running.stdout.take().unwrap().read_to_string(&mut output).await?;
/// assert_eq!(running.wait().await?.code, Some(0));
/// assert_eq!(output, "hello; rm -rf /\n", "there is no shell");
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProgramSpec {
    /// Full path of the program.
    pub path: PathBuf,
    /// Arguments, each of them one.
    pub arguments: Vec<OsString>,
    /// Whole environment, except `TMPDIR` and the mark, which differ for each child.
    pub environment: BTreeMap<String, String>,
    /// Working folder; `None` = a new temporary folder that is removed at the end, which is also its
    /// `TMPDIR`.
    pub folder: Option<PathBuf>,
    /// Resources that it may use.
    pub limits: ProcessLimits,
    /// Files and network that it may reach.
    pub sandbox: SandboxRules,
    /// Supervisor that confines the program; `None` = no confinement.
    pub helper: Option<ExecHelper>,
    /// Whose rights it has.
    pub run_as: RunAs,
    /// Parent of its control group; needs a helper.
    pub control_groups: Option<ControlGroups>,
}

impl ProgramSpec {
    /// A program without arguments, with the environment that all children get.
    pub fn new(path: PathBuf, spawn_context: &SpawnContext) -> Self {
        Self {
            path,
            arguments: Vec::new(),
            environment: child_environment(spawn_context, &[], &BTreeMap::new()),
            folder: None,
            limits: ProcessLimits::default(),
            sandbox: SandboxRules::default(),
            helper: spawn_context.helper.clone(),
            run_as: spawn_context.run_as.clone(),
            control_groups: spawn_context.control_groups.clone(),
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn spawn_context(pairs: &[(&str, &str)]) -> SpawnContext {
        let environment =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        SpawnContext { environment, folder: "/somewhere".into(), ..SpawnContext::default() }
    }

    #[test]
    fn unrunnable_program_is_refused_with_its_reason() {
        let here = spawn_context(&[("PATH", "/usr/bin:/bin:relative"), ("HOME", "/home/me")]);
        for (name, expected) in [
            ("", "no program is named"),
            ("no-such-program", "there is no program `no-such-program` in PATH (/usr/bin:/bin:relative)"),
            ("df -h | head", "`df -h | head` is not a program: there is no shell that would read this line"),
            ("./tool", "there is no program /somewhere/./tool"),
            ("~/tool", "there is no program /home/me/tool"),
            ("/etc/passwd", "/etc/passwd is not a program that may be run"),
            ("/tmp/", "/tmp/ is not a program that may be run"),
        ] {
            assert_eq!(here.find_program(name).unwrap_err().to_string(), expected, "{name}");
        }
        assert!(here.find_program("sh").unwrap().is_absolute());
        assert_eq!(
            spawn_context(&[]).find_program("sh").unwrap_err().to_string(),
            "there is no program `sh` in PATH ()"
        );
    }

    #[test]
    fn child_environment_holds_only_allowed_variables() {
        let ours = spawn_context(&[("PATH", "/bin"), ("OPENAI_API_KEY", "sk-1"), ("CITY", "Paris")]);
        let overrides = BTreeMap::from([("LANG".to_owned(), "C".to_owned())]);
        let theirs = child_environment(&ours, &["CITY".to_owned(), "ABSENT".to_owned()], &overrides);
        let names: Vec<&str> = theirs.keys().map(String::as_str).collect();
        assert_eq!(names, ["CITY", "LANG", "PATH"]);
    }

    #[test]
    fn run_as_rejects_unavailable_user_and_uses_its_home() {
        let why = "run_as = \"x\": there is no such user".to_owned();
        let nobody = SpawnContext {
            run_as: RunAs::Unavailable { why: why.clone() },
            ..spawn_context(&[("PATH", "/bin")])
        };
        assert_eq!(nobody.find_program("sh").unwrap_err().to_string(), why);
        let user =
            super::super::RunAsUser { uid: 7, gid: 7, groups: Vec::new(), home: Some("/srv/tools".into()) };
        let other = SpawnContext { run_as: RunAs::User(user), ..spawn_context(&[("HOME", "/root")]) };
        assert_eq!(child_environment(&other, &[], &BTreeMap::new())["HOME"], "/srv/tools");
        let overrides = BTreeMap::from([("HOME".to_owned(), "/elsewhere".to_owned())]);
        assert_eq!(child_environment(&other, &[], &overrides)["HOME"], "/elsewhere");
    }

    #[test]
    fn values_expand_variables_and_missing_ones_are_errors() {
        let here = spawn_context(&[("TOKEN", "t"), ("EMPTY", "")]);
        assert_eq!(here.resolve_value("plain"), Ok("plain".to_owned()));
        assert_eq!(here.resolve_value("$TOKEN"), Ok("t".to_owned()));
        let values = vec!["t".to_owned(), "t".to_owned()];
        let expanded = ExpandedText { text: "Bearer t:t $".to_owned(), values };
        assert_eq!(here.expand_variables("Bearer $TOKEN:$TOKEN $"), Ok(expanded));
        for missing in ["$EMPTY", "$NONE"] {
            assert!(here.resolve_value(missing).unwrap_err().ends_with("is not set"));
            assert!(here.expand_variables(&format!("Bearer {missing}")).is_err());
        }
    }
}
