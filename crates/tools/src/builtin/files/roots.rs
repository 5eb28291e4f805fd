//! The folders that may be read, and the way from a model's path to a path in one of them.

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Folders that may be read, each under a name. Models see the names, never where the folders are.
#[derive(Debug, Default)]
pub struct FileRoots {
    roots: Vec<FileRoot>,
}

#[derive(Debug)]
pub(super) struct FileRoot {
    pub(super) name: String,
    pub(super) directory: Dir,
}

/// Error that prevents a folder from being a root.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RootError {
    /// The name does not serve as the first part of a path.
    #[error("`{0}` cannot be the name of a root: it must be one plain part of a path")]
    Name(String),
    /// A root with this name exists already.
    #[error("there are two roots named `{0}`")]
    Duplicate(String),
    /// The folder cannot be opened.
    #[error("root `{name}`: {path} cannot be opened")]
    Open {
        /// Name of the root.
        name: String,
        /// Folder of the root.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
}

/// A path beneath a root.
#[derive(Debug)]
pub(super) struct RootedPath<'a> {
    pub(super) root: &'a FileRoot,
    /// Relative, without `..`; `.` = the root itself.
    pub(super) relative: PathBuf,
}

impl FileRoots {
    /// No folders: the tools refuse everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows a folder and everything beneath it. Links in it may lead to other places in it, not out of it.
    ///
    /// # Errors
    /// The folder cannot be opened, or the name cannot be used.
    pub fn with(mut self, name: impl Into<String>, path: impl AsRef<Path>) -> Result<Self, RootError> {
        let name = name.into();
        let mut parts = Path::new(&name).components();
        let is_plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name.as_str());
        if !is_plain || name.contains(['\0', '/', '\\']) {
            return Err(RootError::Name(name));
        }
        if self.roots.iter().any(|root| root.name == name) {
            return Err(RootError::Duplicate(name));
        }
        let directory = Dir::open_ambient_dir(path.as_ref(), ambient_authority()).map_err(|source| {
            RootError::Open { name: name.clone(), path: path.as_ref().to_owned(), source }
        })?;
        self.roots.push(FileRoot { name, directory });
        Ok(self)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.roots.iter().map(|root| root.name.as_str())
    }

    /// Resolves a model's path: `root/folder/file`, or without the root's name if there is only one root.
    /// `None` = an empty path, which means all roots.
    pub(super) fn locate(&self, path: &str) -> Result<Option<RootedPath<'_>>, String> {
        let display_path = truncate_path(path);
        if path.contains('\0') {
            return Err(format!("`{display_path}` has a NUL in it"));
        }
        let mut parts = Vec::new();
        for part in Path::new(path).components() {
            match part {
                Component::CurDir => {}
                Component::Normal(part) => parts.push(part),
                Component::ParentDir => {
                    return Err(format!("`{display_path}`: `..` is not allowed; {}", self.hint()));
                }
                Component::RootDir | Component::Prefix(_) => {
                    return Err(format!("`{display_path}` is an absolute path; {}", self.hint()));
                }
            }
        }
        let Some((first, rest)) = parts.split_first() else { return Ok(None) };
        let (root, relative) =
            match (self.roots.iter().find(|root| *first == root.name.as_str()), self.roots.as_slice()) {
                (Some(root), _) => (root, rest),
                (None, [only]) => (only, parts.as_slice()),
                (None, _) => return Err(format!("`{display_path}` is under no root; {}", self.hint())),
            };
        let relative = if relative.is_empty() { PathBuf::from(".") } else { relative.iter().collect() };
        Ok(Some(RootedPath { root, relative }))
    }

    pub(super) fn hint(&self) -> String {
        let names: Vec<&str> = self.names().collect();
        match names.as_slice() {
            [] => "no folder is allowed".to_owned(),
            names => format!("paths begin with one of: {}", names.join(", ")),
        }
    }
}

impl RootedPath<'_> {
    /// As models write it.
    pub(super) fn display_path(&self) -> String {
        if self.relative == Path::new(".") {
            self.root.name.clone()
        } else {
            format!("{}/{}", self.root.name, self.relative.to_string_lossy())
        }
    }

    /// Opens it as a folder.
    pub(super) fn open_folder(&self) -> Result<Dir, String> {
        self.root.directory.open_dir(&self.relative).map_err(|error| self.describe_error(&error))
    }

    /// Opens it as a file, with its size.
    pub(super) fn open_file(&self) -> Result<(File, u64), String> {
        let directory = &self.root.directory;
        // Checked before opening, because opening a pipe would wait for a writer.
        let kind = directory.metadata(&self.relative).map_err(|error| self.describe_error(&error))?;
        if kind.is_dir() {
            return Err(format!("`{}` is a folder", self.display_path()));
        }
        if !kind.is_file() {
            return Err(format!("`{}` is not a plain file", self.display_path()));
        }
        let file = directory.open(&self.relative).map_err(|error| self.describe_error(&error))?;
        // And after, because only now it cannot be swapped any more.
        let opened = file.metadata().map_err(|error| self.describe_error(&error))?;
        if !opened.is_file() {
            return Err(format!("`{}` is not a plain file", self.display_path()));
        }
        Ok((file, opened.len()))
    }

    /// The error's text, without the path of the root.
    pub(super) fn describe_error(&self, error: &io::Error) -> String {
        let display_path = truncate_path(&self.display_path());
        match error.kind() {
            io::ErrorKind::NotFound => format!("`{display_path}` does not exist"),
            io::ErrorKind::NotADirectory => format!("`{display_path}` is not a folder"),
            // cap-std's error for a link that leads out has no OS error code; the kernel's is EXDEV.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                format!("`{display_path}` leads outside of the allowed folder")
            }
            io::ErrorKind::CrossesDevices => format!("`{display_path}` leads outside of the allowed folder"),
            io::ErrorKind::PermissionDenied => format!("`{display_path}` may not be read"),
            kind => format!("`{display_path}`: {kind}"),
        }
    }
}

fn truncate_path(path: &str) -> String {
    crate::schema::truncate_chars(path, 200)
}
