//! A program with a pseudo-terminal: its output, and lines typed at it.

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Longer than anything here takes, even on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// Output so far, and the offset up to which it has been waited for.
#[derive(Clone, Default)]
struct Shown {
    text: Arc<(Mutex<String>, Condvar)>,
    seen: usize,
}

impl Shown {
    fn of(mut from: impl Read + Send + 'static) -> Self {
        let shown = Self::default();
        let text = shown.text.clone();
        std::thread::spawn(move || {
            let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
            // Ends when the other end is closed.
            while let Ok(count @ 1..) = from.read(&mut piece) {
                bytes.extend_from_slice(&piece[..count]);
                *text.0.lock().unwrap() = String::from_utf8_lossy(&bytes).into_owned();
                text.1.notify_all();
            }
        });
        shown
    }

    #[track_caller]
    fn until(&mut self, text: &str) {
        let shown = self.text.0.lock().unwrap();
        let missing = |shown: &mut String| !shown[self.seen..].contains(text);
        let (shown, waited) = self.text.1.wait_timeout_while(shown, PATIENCE, missing).unwrap();
        assert!(!waited.timed_out(), "{text:?} is not shown:\n{}", &shown[self.seen..]);
        self.seen += shown[self.seen..].find(text).unwrap() + text.len();
    }

    fn all(&self) -> String {
        self.text.0.lock().unwrap().clone()
    }
}

/// Standard input and error are the terminal; standard output is a pipe.
pub struct Terminal {
    child: Child,
    master: File,
    shown: Shown,
    output: Shown,
}

impl Terminal {
    /// Standard output is the terminal, too.
    pub fn on_one_screen(command: &mut Command) -> Self {
        let (master, line) = pseudo_terminal();
        command.stdin(line.try_clone().unwrap()).stderr(line.try_clone().unwrap()).stdout(line);
        let child = command.spawn().unwrap();
        command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::null());
        Self { child, shown: Shown::of(master.try_clone().unwrap()), master, output: Shown::default() }
    }

    pub fn start(command: &mut Command) -> Self {
        let (master, line) = pseudo_terminal();
        let mut child =
            command.stdin(line.try_clone().unwrap()).stderr(line).stdout(Stdio::piped()).spawn().unwrap();
        // The command holds its ends of the line; they must go with the child.
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let output = Shown::of(child.stdout.take().unwrap());
        Self { child, shown: Shown::of(master.try_clone().unwrap()), master, output }
    }

    /// Waits until this text is on the terminal, after the text of the previous wait.
    #[track_caller]
    pub fn until(&mut self, text: &str) {
        self.shown.until(text);
    }

    /// Waits until this text is on standard output.
    #[track_caller]
    pub fn until_output(&mut self, text: &str) {
        self.output.until(text);
    }

    /// Types a line.
    pub fn line(&mut self, text: &str) {
        self.master.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// Kills the program, without a chance to finish anything.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end: exit code, standard output, and everything that was on the terminal.
    #[track_caller]
    pub fn end(mut self) -> (Option<i32>, String, String) {
        let since = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            assert!(since.elapsed() < PATIENCE, "it does not end:\n{}", self.shown.all());
            std::thread::sleep(Duration::from_millis(10));
        };
        // Readers see the end of what the child has written a little later than its end.
        let settled = |shown: &Shown| {
            while Arc::strong_count(&shown.text) > 1 && since.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(1));
            }
            shown.all()
        };
        (code, settled(&self.output), settled(&self.shown))
    }
}

/// The two ends of a line.
fn pseudo_terminal() -> (File, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = std::ffi::OsString::from_vec(ptsname(&master, Vec::new()).unwrap().into_bytes());
    let no_controlling = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
    let line = OpenOptions::new().read(true).write(true).custom_flags(no_controlling).open(name).unwrap();
    (File::from(master), line)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has ended already unless a test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
