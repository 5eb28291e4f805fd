//! A PostgreSQL cluster of the tests' own: a folder, a unix socket, no port. It ends with the last test that uses it.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A running cluster.
pub struct Cluster {
    programs: PathBuf,
    folder: tempfile::TempDir,
    /// PostgreSQL does not run as root.
    other_user: Option<&'static str>,
    disk: Disk,
}

/// True if a commit waits for the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Disk {
    Waited,
    /// No power cut is simulated: data in the cache of the operating system counts as durable.
    Cached,
}

impl Cluster {
    /// The cluster shared by all tests of this file; `None`: PostgreSQL is not installed, which is printed.
    pub fn shared() -> Option<Arc<Self>> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = shared.upgrade() {
            return Some(cluster);
        }
        let cluster = Arc::new(Self::start()?);
        *shared = Arc::downgrade(&cluster);
        Some(cluster)
    }

    /// A further cluster.
    pub fn start() -> Option<Self> {
        Self::start_with(Disk::Cached)
    }

    /// One whose commits wait for the disk, as those of people do.
    pub fn start_durable() -> Option<Self> {
        Self::start_with(Disk::Waited)
    }

    fn start_with(disk: Disk) -> Option<Self> {
        let Some(programs) = programs() else {
            println!("skipped: there is no PostgreSQL on this machine");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("tl-pg").tempdir().unwrap();
        let is_root = output(Command::new("id").arg("-u")).as_deref() == Some("0");
        let other_user = is_root.then(|| {
            let known = |user: &&&str| output(Command::new("id").args(["-u", user])).is_some();
            *["postgres", "nobody"].iter().find(known).expect("some user that is not root")
        });
        if let Some(user) = other_user {
            assert!(Command::new("chown").arg(user).arg(folder.path()).status().unwrap().success());
        }
        let cluster = Self { programs, folder, other_user, disk };
        let auth = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--username=tl", "--no-sync"];
        cluster.run("initdb", &[&["-D", cluster.data().as_str()][..], &auth].concat());
        cluster.begin();
        Some(cluster)
    }

    /// Starts the server.
    pub fn begin(&self) {
        let socket = self.folder.path().display().to_string();
        let fsync = if self.disk == Disk::Waited { "on" } else { "off" };
        let options = format!(
            "-c listen_addresses= -c unix_socket_directories={socket} -c fsync={fsync} -c max_connections=300 -c wal_writer_delay=10s \
             -c shared_buffers=32MB"
        );
        let log = format!("{socket}/log");
        self.run("pg_ctl", &["-D", &self.data(), "-w", "-l", &log, "-o", &options, "start"]);
    }

    /// Stops the server like a crash: unwritten data is lost.
    pub fn crash(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-w", "-m", "immediate", "stop"]);
    }

    /// URL of a new, empty database.
    pub fn fresh(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("db{}", NEXT.fetch_add(1, Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// The folder of PostgreSQL's own programs.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    pub fn url(&self, database: &str) -> String {
        let socket = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://tl@{socket}/{database}")
    }

    /// The output of `psql`.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let socket = self.folder.path().display().to_string();
        self.run(
            "psql",
            &[
                "-X",
                "-A",
                "-t",
                "-q",
                "-v",
                "ON_ERROR_STOP=1",
                "-h",
                &socket,
                "-U",
                "tl",
                "-d",
                database,
                "-c",
                sql,
            ],
        )
    }

    /// A transaction that has done this and does not end until this value does.
    pub fn hold(&self, database: &str, sql: &str) -> Held {
        use std::io::{BufRead, BufReader, Write};
        let socket = self.folder.path().display().to_string();
        let mut command = Command::new(self.programs.join("psql"));
        command.args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            &socket,
            "-U",
            "tl",
            "-d",
            database,
        ]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.as_mut().unwrap();
        writeln!(stdin, "BEGIN; {sql}; SELECT 'done';").unwrap();
        stdin.flush().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "done");
        Held(child)
    }

    /// The log of the server.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let (program, shown) = (self.programs.join(program), program);
        let mut command = match self.other_user {
            None => Command::new(program),
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--clear-groups"]).arg(program);
                command
            }
        };
        // `pg_ctl start` leaves a server running that would hold a pipe open.
        let is_start = arguments.last() == Some(&"start");
        if is_start {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        let done = command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        if is_start {
            assert!(done.status().unwrap().success(), "pg_ctl start: {}", self.log());
            return String::new();
        }
        let done = done.output().unwrap();
        assert!(done.status.success(), "{shown}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }
}

/// An open transaction.
pub struct Held(std::process::Child);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let data = self.data();
        let stop = ["-D", &data, "-w", "-m", "immediate", "stop"];
        let mut command = match self.other_user {
            None => Command::new(self.programs.join("pg_ctl")),
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--clear-groups"]).arg(self.programs.join("pg_ctl"));
                command
            }
        };
        // It may be down already.
        let _ = command.args(stop).current_dir("/").stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Folder of the programs of PostgreSQL.
fn programs() -> Option<PathBuf> {
    let has_all = |folder: &Path| ["initdb", "pg_ctl", "psql"].iter().all(|name| folder.join(name).exists());
    let mut folders = Vec::new();
    folders.extend(output(Command::new("pg_config").arg("--bindir")).map(PathBuf::from));
    folders.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect::<Vec<_>>());
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|version| version.path().join("bin")).collect())
        .unwrap_or_default();
    versions.sort();
    folders.extend(versions.into_iter().rev());
    folders.into_iter().find(|folder| has_all(folder))
}

fn output(command: &mut Command) -> Option<String> {
    let done = command.stderr(Stdio::null()).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
}
