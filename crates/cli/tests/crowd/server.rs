//! `throughline serve` as a process, with a model whose events carry their time.

use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

/// Time limit for anything on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A running server. Clones are the same.
#[derive(Clone)]
pub struct Server {
    pub address: SocketAddr,
    /// Shared by all that ask.
    pub client: reqwest::Client,
    pid: u32,
    child: Arc<Mutex<Child>>,
    _folder: Arc<tempfile::TempDir>,
}

impl Server {
    /// Starts with these lines in the limits of its configuration.
    pub async fn start(limits: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let upstream = crate::model::start().await;
        let file = format!(
            "[upstreams.clockwork]\ndialect = \"openai-chat\"\nbase_url = \"http://{upstream}\"\n\n\
             [agents.default]\nmodel = \"clockwork/m\"\n\n[server]\nauth = \"off\"\n[server.limits]\n\
             turns_per_minute_max = 100000\nturns_per_key_max = 1000\n{limits}"
        );
        std::fs::write(folder.path().join("throughline.toml"), file).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THROUGHLINE_")) {
            command.env_remove(name);
        }
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .current_dir(folder.path())
            .env("THROUGHLINE_DATA", folder.path().join("data"))
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.path().join("stderr")).unwrap())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut greeting = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = async {
            let mut address = None;
            while let Ok(Some(line)) = greeting.next_line().await {
                if let Some((_, rest)) = line.split_once("http://") {
                    let host = rest.split(['/', '#', ' ']).next().unwrap_or_default();
                    address = address.or(host.parse().ok());
                }
                if line.trim_end().ends_with("/docs") {
                    return address;
                }
            }
            None
        };
        let Some(address) = timeout(PATIENCE, ready).await.expect("the server starts") else {
            panic!("{}", std::fs::read_to_string(folder.path().join("stderr")).unwrap_or_default())
        };
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        let pid = child.id().expect("it runs");
        Self { address, client, pid, child: Arc::new(Mutex::new(child)), _folder: Arc::new(folder) }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Starts a turn with this text; returns its id.
    pub async fn turn(&self, text: &str) -> String {
        let body = json!({"input": [{"type": "text", "text": text}]});
        let request = self.client.post(format!("http://{}/v1/turns", self.address)).json(&body);
        let started: Value = request.send().await.unwrap().json().await.unwrap();
        started["turn_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
    }

    /// Waits until the seats of all viewers are free.
    pub async fn until_nobody_views(&self) {
        let nobody = async {
            loop {
                let request = self.client.get(format!("http://{}/metrics", self.address));
                let metrics = request.send().await.unwrap().text().await.unwrap();
                if metrics.lines().any(|line| line == "throughline_viewers 0") {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, nobody).await.expect("those who are gone hold their seats");
    }

    pub async fn cancel(&self, turn: &str) {
        let request = self.client.post(format!("http://{}/v1/turns/{turn}/cancel", self.address));
        let request = request.json(&json!({}));
        assert_eq!(request.send().await.unwrap().status(), 202);
    }

    /// `kill -9`.
    pub async fn kill(self) {
        self.child.lock().await.kill().await.unwrap();
    }
}
