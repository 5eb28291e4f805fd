//! Files and network that a child may reach.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// `sandbox = { … }` of a command, MCP server or plugin folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSettings {
    /// `on` (default): as much as the system has. `required`: not started where it cannot be enforced. `off`.
    pub mode: SandboxMode,
    /// Folders and files that may be read. Absent = everything that our user can read. Given = these, the
    /// system's (`/usr`, `/lib`, `/etc`, …) and the program.
    pub read: Option<Vec<PathBuf>>,
    /// Folders and files that may be written (and read). The child's private folder always may.
    pub write: Vec<PathBuf>,
    /// `allow` (default) or `deny`: sockets of every kind.
    pub network: NetworkAccess,
}

/// Requirement of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMode {
    /// As far as the system can.
    #[default]
    On,
    /// The program is not started where it cannot be confined.
    Required,
    /// No confinement.
    Off,
}

/// Permission to open sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkAccess {
    /// Network access is allowed.
    #[default]
    Allow,
    /// No: neither TCP, which Landlock denies, nor UDP and Unix sockets, which seccomp does.
    Deny,
}

/// Sandbox settings with full paths, all of which exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxRules {
    /// Confinement mode, see [`SandboxSettings::mode`].
    pub mode: SandboxMode,
    /// Readable paths; `None` = everything.
    pub read: Option<Vec<PathBuf>>,
    /// Besides the private folder.
    pub write: Vec<PathBuf>,
    /// Network access, see [`SandboxSettings::network`].
    pub network: NetworkAccess,
}

impl SandboxSettings {
    /// Full paths, relative ones from `folder`; `~/` is the home of `home`.
    ///
    /// # Errors
    /// A path that does not exist.
    pub fn resolve(&self, folder: &Path, home: Option<&str>) -> Result<SandboxRules, String> {
        let full = |path: &PathBuf| {
            let full = full_path(path, folder, home);
            if full.exists() {
                Ok(full)
            } else {
                Err(format!("`sandbox` contains {}, which does not exist", full.display()))
            }
        };
        let all = |paths: &[PathBuf]| paths.iter().map(full).collect::<Result<Vec<_>, _>>();
        Ok(SandboxRules {
            mode: self.mode,
            read: self.read.as_deref().map(all).transpose()?,
            write: all(&self.write)?,
            network: self.network,
        })
    }
}

/// A path of the configuration, from the root.
pub(super) fn full_path(path: &Path, folder: &Path, home: Option<&str>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => Path::new(home).join(rest),
        _ => folder.join(path),
    }
}

/// Known state of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SandboxStatus {
    /// Confined by Landlock.
    Landlock {
        /// Version of the kernel's interface.
        abi: u32,
        /// Parts that this version cannot confine; empty = nothing is missing.
        missing: Vec<String>,
    },
    /// Not confined, by the settings.
    Off,
    /// Confinement is not available here.
    Unavailable {
        /// Obstacle, in a sentence.
        why: String,
    },
}

impl fmt::Display for SandboxStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Landlock { abi, missing } if missing.is_empty() => write!(f, "Landlock {abi}"),
            Self::Landlock { abi, missing } => {
                write!(f, "Landlock {abi}, which cannot confine {}", missing.join(", "))
            }
            Self::Off => f.write_str("off"),
            Self::Unavailable { why } => write!(f, "unavailable: {why}"),
        }
    }
}
