//! Where the command keeps what it has to remember between runs.

use std::path::{Path, PathBuf};

/// Names the folder in place of the system's.
pub(crate) const DATA_VARIABLE: &str = "THROUGHLINE_DATA";
/// Answers that always hold, as earlier releases kept them.
pub(crate) const REMEMBERED_FILE: &str = "remembered.json";
/// Definitions of MCP servers' tools that were agreed to.
pub(crate) const PINS_FILE: &str = "mcp-pins.json";

/// The key of the first start.
pub(crate) const ADMIN_TOKEN_FILE: &str = "admin-token";
/// Where the server of this folder can be reached, as long as it runs.
pub(crate) const SERVER_FILE: &str = "server.json";
/// Files that were uploaded or made by tools.
pub(crate) const FILES_FOLDER: &str = "files";

/// `THROUGHLINE_DATA`, else `throughline` in the system's folder for such data (XDG). `None` = nobody says where home is.
/// It is made when something is first written.
pub(crate) fn folder() -> Option<PathBuf> {
    resolve_folder(|name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
}

fn resolve_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    let base = || {
        // The XDG specification: a relative path is to be ignored.
        absolute("XDG_DATA_HOME")
            .or_else(|| absolute("LOCALAPPDATA"))
            .or_else(|| absolute("HOME").map(|home| home.join(Path::new(".local/share"))))
    };
    variable(DATA_VARIABLE).or_else(|| base().map(|base| base.join("throughline")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_the_one_that_is_said_first() {
        let found = |pairs: &[(&str, &str)]| {
            let value =
                |name: &str| pairs.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).into());
            resolve_folder(value).map(|path: PathBuf| path.to_string_lossy().into_owned())
        };
        let home = ("HOME", "/home/me");
        assert_eq!(found(&[home]).as_deref(), Some("/home/me/.local/share/throughline"));
        assert_eq!(found(&[home, ("XDG_DATA_HOME", "/data")]).as_deref(), Some("/data/throughline"));
        assert_eq!(
            found(&[home, ("XDG_DATA_HOME", "data")]).as_deref(),
            Some("/home/me/.local/share/throughline")
        );
        assert_eq!(found(&[home, (DATA_VARIABLE, "here")]).as_deref(), Some("here"));
        assert_eq!(found(&[]), None);
    }
}
