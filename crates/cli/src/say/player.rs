//! Programs that play sound from their standard input.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use throughline_tools::process::SpawnContext;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

/// Players by preference, with the arguments that play a WAV file from standard input. `{rate}` is its sample rate.
const PLAYERS: [(&str, &[&str]); 4] = [
    ("pw-play", &["-"]),
    ("paplay", &["--raw", "--format=s16le", "--channels=1", "--rate={rate}"]),
    ("aplay", &["-q", "-"]),
    ("ffplay", &["-nodisp", "-autoexit", "-loglevel", "error", "-i", "pipe:0"]),
];
/// The player of macOS, which plays files only.
const FILE_PLAYER: &str = "afplay";

/// A player that was found.
pub(super) struct Player {
    name: &'static str,
    path: PathBuf,
    arguments: &'static [&'static str],
    state: PlayerState,
}

enum PlayerState {
    Waiting,
    Running(Child),
    /// A file that is played when it is complete.
    Collecting(Vec<u8>),
}

impl Player {
    /// The first one that is installed.
    pub(super) fn find(surroundings: &SpawnContext) -> Option<Self> {
        let piped = PLAYERS.into_iter().filter(|(name, _)| cfg!(target_os = "linux") || *name == "ffplay");
        let file = std::iter::once((FILE_PLAYER, &[][..])).filter(|_| cfg!(target_os = "macos"));
        file.chain(piped).find_map(|(name, arguments)| {
            let path = surroundings.find_program(name).ok()?;
            Some(Self { name, path, arguments, state: PlayerState::Waiting })
        })
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn start(&mut self, sample_rate_hz: u32) -> io::Result<()> {
        if self.name == FILE_PLAYER {
            self.state = PlayerState::Collecting(Vec::new());
            return Ok(());
        }
        let arguments = self.arguments.iter().map(|text| text.replace("{rate}", &sample_rate_hz.to_string()));
        let child = Command::new(&self.path)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        self.state = PlayerState::Running(child);
        Ok(())
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.state {
            PlayerState::Waiting => Ok(()),
            PlayerState::Collecting(file) => {
                file.extend_from_slice(bytes);
                Ok(())
            }
            PlayerState::Running(child) => match &mut child.stdin {
                Some(stdin) => stdin.write_all(bytes).await,
                None => Ok(()),
            },
        }
    }

    /// True if the player takes raw samples, without a header.
    pub(super) fn is_raw(&self) -> bool {
        self.arguments.contains(&"--raw")
    }

    /// Waits until everything was heard.
    pub(super) async fn finish(self) -> io::Result<()> {
        let status = match self.state {
            PlayerState::Waiting => return Ok(()),
            PlayerState::Running(mut child) => {
                drop(child.stdin.take());
                child.wait().await?
            }
            PlayerState::Collecting(file) => {
                let mut sound = tempfile::Builder::new().suffix(".wav").tempfile()?;
                sound.write_all(&file)?;
                Command::new(&self.path).arg(sound.path()).kill_on_drop(true).status().await?
            }
        };
        if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
    }
}
