//! The data folder of the command.

use std::path::{Path, PathBuf};

/// Environment variable that replaces the system's folder.
pub(crate) const DATA_VARIABLE: &str = "THROUGHLINE_DATA";
/// File of permanent approvals of earlier releases.
pub(crate) const REMEMBERED_FILE: &str = "remembered.json";
/// Definitions of MCP servers' tools that were agreed to.
pub(crate) const PINS_FILE: &str = "mcp-pins.json";

/// The key of the first start.
pub(crate) const ADMIN_TOKEN_FILE: &str = "admin-token";
/// File with the address of this folder's server, as long as it runs.
pub(crate) const SERVER_FILE: &str = "server.json";
/// Files that were uploaded or made by tools.
pub(crate) const FILES_FOLDER: &str = "files";

/// `THROUGHLINE_DATA`, else `throughline` in the system's folder for such data (XDG). `None` = the home
/// folder is unknown. The folder is created on the first write.
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
    fn data_variable_overrides_xdg_data_home_and_home() {
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
