//! `throughline serve` as a process that dies.

use crate::chaos_context::ChaosContext;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Time limit for anything on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Where the process dies by itself, and at which time that it comes by.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub name: &'static str,
    pub nth: u32,
}

pub struct Server {
    child: Child,
}

impl Server {
    /// Starts it on the port that it always has, and waits until it answers.
    pub async fn start(world: &ChaosContext, dies_at: Option<Place>, left_out: Option<&str>) -> Self {
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
        if let Some(Place { name, nth }) = dies_at {
            command.env("THROUGHLINE_DIE_AT", format!("{name}:{nth}"));
        }
        if let Some(rule) = left_out {
            // What was begun too early has time to happen.
            command.env("THROUGHLINE_LEAVES_OUT", rule).env("THROUGHLINE_DIES_AFTER_MS", "300");
        }
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
        // A server that dies on its way up is found out by whoever waits for its death.
        let came_up = timeout(PATIENCE, ready).await.expect("the server starts");
        if !came_up && dies_at.is_none() {
            let said = std::fs::read_to_string(world.folder.path().join("stderr")).unwrap_or_default();
            panic!("the server does not start: {said}");
        }
        Self { child }
    }

    /// Waits until it has died by itself.
    pub async fn dies(mut self) -> bool {
        timeout(PATIENCE, self.child.wait()).await.is_ok()
    }

    /// `kill -9`.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}
