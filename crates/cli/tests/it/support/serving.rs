//! `throughline serve` as a process, and its output.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Time limit for anything that a process does, on a machine that has other things to do.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The command in this folder, which is its data folder, too.
pub fn command(folder: &Path) -> Command {
    let (given, _) = crate::support::throughline();
    command_of(Path::new(given.get_program()), folder)
}

/// As `command`, with another build of the program.
pub fn command_of(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars()
        .filter(|(name, _)| ["THROUGHLINE_", "OTEL_"].iter().any(|ours| name.starts_with(ours)))
    {
        command.env_remove(name);
    }
    command.current_dir(folder).env("LC_ALL", "C.UTF-8").env("THROUGHLINE_DATA", folder.join("data"));
    command
}

pub fn run(folder: &Path, arguments: &[&str]) -> (bool, String, String) {
    let Output { status, stdout, stderr } = command(folder).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.success(), text(stdout), text(stderr))
}

/// Waits for a process that should exit: its exit code, and its standard error.
pub fn ended(mut command: Command) -> (Option<i32>, String) {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let (said, listening) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        said.send(text)
    });
    let text = listening.recv_timeout(PATIENCE);
    // Ended already, or it never will.
    let _ = child.kill();
    (child.wait().unwrap().code(), text.expect("it ends"))
}

/// A server, and its output line by line.
pub struct Serving {
    pub child: Child,
    pub greeting: String,
    pub log: mpsc::Receiver<String>,
    _stdout: BufReader<ChildStdout>,
}

impl Serving {
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_with(folder, arguments, &[])
    }

    /// Starts with additional environment variables.
    pub fn start_with(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut serving = command(folder);
        serving.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments).envs(variables.iter().copied());
        Self::spawn(serving)
    }

    /// Starts this `throughline serve`.
    pub fn spawn(mut serving: Command) -> Self {
        let mut child =
            serving.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (said, log) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).all(|line| said.send(line).is_ok()));
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        // The last line is the address of the documentation.
        while !greeting.ends_with("/docs\n") {
            if stdout.read_line(&mut greeting).unwrap() == 0 {
                let log: Vec<String> = log.iter().collect();
                panic!("it does not serve:\n{greeting}\n{}", log.join("\n"));
            }
        }
        Self { child, greeting, log, _stdout: stdout }
    }

    pub fn address(&self) -> &str {
        let rest =
            self.greeting.split("http://").nth(1).or_else(|| self.greeting.split("https://").nth(1)).unwrap();
        rest.split(['\n', '/']).next().unwrap()
    }

    /// The key that was shown at the first start.
    pub fn token(&self) -> Option<&str> {
        self.greeting.split_whitespace().find(|word| word.starts_with("tl_"))
    }

    /// Status and body.
    pub fn get(&self, path: &str, key: Option<&str>) -> (u16, String) {
        self.ask("GET", path, key, "")
    }

    pub fn ask(&self, method: &str, path: &str, key: Option<&str>, body: &str) -> (u16, String) {
        let mut socket = TcpStream::connect(self.address()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let key = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{key}Connection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address(),
            body.len()
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Head, in lower case, and body of what is at this path for a request with these header lines.
    pub fn exchange(&self, path: &str, more: &str) -> (String, String) {
        let mut socket = TcpStream::connect(self.address()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = self.address();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n");
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_ascii_lowercase(), body.to_owned())
    }

    /// The commands that the greeting suggests, as they would be pasted.
    pub fn suggested(&self) -> Vec<String> {
        let text = self.greeting.replace("\\\n", "");
        text.lines().map(str::trim).filter(|line| line.starts_with("curl ")).map(str::to_owned).collect()
    }

    /// Names of its threads.
    #[cfg(target_os = "linux")]
    pub fn threads(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        // A thread that has ended by now has no name any more.
        tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok()).collect()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Sends a request with these header lines; returns the response, head and body, up to the end of the
    /// connection.
    pub fn raw(&self, method: &str, path: &str, more: &str, body: &str) -> String {
        let mut socket = TcpStream::connect(self.address()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let (host, length) = (self.address(), body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}Content-Length: {length}\r\n\r\n{body}"
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Waits until the log has a line with this.
    pub fn says(&self, part: &str) -> String {
        let mut seen = String::new();
        while let Ok(line) = self.log.recv_timeout(PATIENCE) {
            seen.push_str(&line);
            seen.push('\n');
            if line.contains(part) {
                return seen;
            }
        }
        panic!("it does not say `{part}`:\n{seen}")
    }

    /// Stops the server; returns its exit code.
    pub fn stop(mut self) -> Option<i32> {
        self.signal("-TERM");
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < until, "it does not stop");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
