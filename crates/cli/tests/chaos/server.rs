//! `throughline serve` as a process that dies.

use crate::chaos_context::ChaosContext;
use std::fmt;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Time limit for anything on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Point at which the process kills itself, at the `nth` time that it is reached.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub name: &'static str,
    pub nth: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.nth)
    }
}

pub struct Server {
    child: Child,
}

impl Server {
    /// Starts it on the port that it always has, and waits until it answers.
    pub async fn start(world: &ChaosContext) -> Self {
        Self::started(world, &[]).await
    }

    /// Starts a server that dies when it reaches this point.
    pub async fn dying_at(world: &ChaosContext, place: Place) -> Self {
        Self::started(world, &[("THROUGHLINE_DIE_AT", &place.to_string())]).await
    }

    /// Starts a server with a disabled rule, one part of which pauses at this point while the others
    /// continue.
    pub async fn standing_at(world: &ChaosContext, place: Place, left_out: &str) -> Self {
        let place = place.to_string();
        Self::started(world, &[("THROUGHLINE_BLOCK_AT", &place), ("THROUGHLINE_DISABLE_RULE", left_out)])
            .await
    }

    async fn started(world: &ChaosContext, failing: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THROUGHLINE_")) {
            command.env_remove(name);
        }
        command
            .args(["serve", "--listen", &world.address.to_string()])
            .current_dir(world.folder.path())
            .env("THROUGHLINE_DATA", world.folder.path().join("data"))
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(world.folder.path().join("stderr")).unwrap())
            .kill_on_drop(true);
        command.envs(failing.iter().copied());
        let mut child = command.spawn().unwrap();
        let mut greeting = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = async {
            while let Ok(Some(line)) = greeting.next_line().await {
                if line.trim_end().ends_with("/docs") {
                    return true;
                }
            }
            false
        };
        // A server that dies during its start is detected by the caller that waits for its death.
        let came_up = timeout(PATIENCE, ready).await.expect("the server starts");
        if !came_up && failing.is_empty() {
            panic!("the server does not start: {}", world.stderr());
        }
        Self { child }
    }

    /// Waits until it has died at its crash point.
    pub async fn dies(mut self) -> bool {
        timeout(PATIENCE, self.child.wait()).await.is_ok()
    }

    /// `kill -9`.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}
