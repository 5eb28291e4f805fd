//! User whose rights the programs of tools have.
//!
//! Reads `/etc/passwd` and `/etc/group` and nothing else: a name service that asks other machines could be
//! made to return false users.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Remedy where this process cannot become the user that programs are to run as.
pub(crate) const RUN_AS_REMEDY: &str =
    "Correct `run_as` in [tools], start the server as root, or leave it out.";

/// A user that programs are run as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAsUser {
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Further groups.
    pub groups: Vec<u32>,
    /// Home folder; `None` = not in `/etc/passwd`.
    pub home: Option<PathBuf>,
}

/// Whose rights programs of tools have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunAs {
    /// The user of this process.
    #[default]
    CurrentUser,
    /// Another user, which this process can become because it is root.
    User(RunAsUser),
    /// No user is available: no program is started.
    Unavailable {
        /// Obstacle, in a sentence.
        why: String,
    },
}

/// True if this process is root: the user that a tool's program runs as then denies it nothing.
pub fn is_root() -> bool {
    #[cfg(all(unix, feature = "process"))]
    {
        rustix::process::geteuid().is_root()
    }
    #[cfg(not(all(unix, feature = "process")))]
    {
        false
    }
}

impl RunAs {
    /// `run_as` of the settings: a name of `/etc/passwd`, a number, or `user:group` in numbers.
    pub fn from_setting(name: &str) -> Self {
        #[cfg(all(unix, feature = "process"))]
        {
            let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
            let ours = rustix::process::geteuid().as_raw();
            match RunAsUser::lookup(name, &read("/etc/passwd"), &read("/etc/group")) {
                Ok(user) if user.uid == ours => Self::CurrentUser,
                Ok(user) if ours == 0 => Self::User(user),
                Ok(_) => Self::Unavailable {
                    why: format!(
                        "run_as = \"{name}\": only root can become another user, and this is user {ours}"
                    ),
                },
                Err(why) => Self::Unavailable { why: format!("run_as = \"{name}\": {why}") },
            }
        }
        #[cfg(not(all(unix, feature = "process")))]
        {
            Self::Unavailable { why: format!("run_as = \"{name}\": this system has no users of this kind") }
        }
    }

    pub(super) fn user(&self) -> Option<&RunAsUser> {
        if let Self::User(user) = self { Some(user) } else { None }
    }
}

#[cfg_attr(not(all(unix, feature = "process")), allow(dead_code, reason = "no program is started"))]
impl RunAsUser {
    fn lookup(name: &str, passwd: &str, group: &str) -> Result<Self, String> {
        let numbers: Option<Vec<u32>> = name.split(':').map(|number| number.parse().ok()).collect();
        let (uid, gid) = match numbers.as_deref() {
            Some([uid]) => (Some(*uid), None),
            Some([uid, gid]) => (Some(*uid), Some(*gid)),
            _ => (None, None),
        };
        let line = passwd.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [login, _, number, own, _, home, ..] = fields.as_slice() else { return None };
            let (number, own): (u32, u32) = (number.parse().ok()?, own.parse().ok()?);
            let is_match = if let Some(uid) = uid { uid == number } else { *login == name };
            is_match.then(|| ((*login).to_owned(), number, own, PathBuf::from(home)))
        });
        match (line, uid) {
            (Some((login, uid, own, home)), _) => {
                let gid = gid.unwrap_or(own);
                Ok(Self { uid, gid, groups: supplementary_groups(&login, gid, group), home: Some(home) })
            }
            // A number needs no line. Its group is the one of the same number, as with `useradd`.
            (None, Some(uid)) => Ok(Self { uid, gid: gid.unwrap_or(uid), groups: Vec::new(), home: None }),
            (None, None) => Err("unknown user in /etc/passwd; a numeric id also works".to_owned()),
        }
    }
}

#[cfg_attr(not(unix), allow(dead_code, reason = "programs are supervised on Unix only"))]
fn supplementary_groups(login: &str, own: u32, group: &str) -> Vec<u32> {
    let member = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, number, members] = fields.as_slice() else { return None };
        let number: u32 = number.parse().ok()?;
        (number != own && members.split(',').any(|member| member == login)).then_some(number)
    };
    group.lines().filter_map(member).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_lookup_accepts_names_uids_and_gids() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\ntools:x:990:980::/srv/tools:/usr/sbin/nologin\n";
        let group = "tools:x:980:\nvideo:x:44:anna,tools\naudio:x:29:anna\n";
        let tools = RunAsUser { uid: 990, gid: 980, groups: vec![44], home: Some("/srv/tools".into()) };
        let unknown = |uid, gid| RunAsUser { uid, gid, groups: Vec::new(), home: None };
        for (name, expected) in [
            ("tools", Some(tools.clone())),
            ("990", Some(tools.clone())),
            ("990:44", Some(RunAsUser { gid: 44, groups: Vec::new(), ..tools })),
            ("1234", Some(unknown(1234, 1234))),
            ("1234:5", Some(unknown(1234, 5))),
            ("nobody-such", None),
            ("", None),
            ("1:2:3", None),
            ("-1", None),
        ] {
            assert_eq!(RunAsUser::lookup(name, passwd, group).ok(), expected, "{name}");
        }
        let why = RunAsUser::lookup("tolos", passwd, group).unwrap_err();
        assert_eq!(why, "unknown user in /etc/passwd; a numeric id also works");
    }
}
