//! Everything that outlives the server: the folder with its store, the model, the ledger, the viewers.

use crate::check::{self, Broken, Told};
use crate::ledger::Ledger;
use crate::model::{self, TOOLS};
use crate::server::PATIENCE;
use crate::viewer::{By, Saw, client, watch};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use throughline_testkit::{FakeDialect, FakeUpstream, FakeUpstreamHandle};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

pub struct ChaosContext {
    pub folder: tempfile::TempDir,
    pub address: SocketAddr,
    ledger: Ledger,
    upstream: FakeUpstreamHandle,
    turns: Vec<Turn>,
}

/// A turn, and who watches it.
pub struct Turn {
    /// Name of the turn, part of the keys of its effects.
    pub name: String,
    pub viewers: Vec<(By, Arc<Mutex<Saw>>)>,
    /// The log, as read by a client after the end of the turn; `None` = it has not ended.
    pub logged: Option<Saw>,
    watching: Vec<JoinHandle<()>>,
    running: Option<JoinHandle<String>>,
}

impl ChaosContext {
    pub async fn new() -> Self {
        Self::keeping_in(None).await
    }

    /// Creates the context, with the turns in this database if one is given.
    pub async fn keeping_in(database: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let upstream = FakeUpstream::start(model::reply).await.unwrap();
        let (ledger, effects) = Ledger::start().await;
        let address = own_address();
        let mut file = format!(
            "[upstreams.mock]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\n\n\
             [agents.default]\nmodel = \"mock/mock\"\n\
             tool_call = {{ enabled = true, parallel_execution = true }}\n\
             limits = {{ takeovers_max = 1000 }}\n\
             [[agents.default.policy]]\ndecide = \"allow\"\ntool = \"*\"\n\n\
             [server]\nauth = \"off\"\n\
             [server.limits]\nturns_per_minute_max = 100000\nturns_per_key_max = 1000\nstreams_per_key_max = 1000\n\n",
            upstream.base_url(FakeDialect::OpenaiChat),
        );
        if let Some(url) = database {
            file.push_str(&format!("[store]\nurl = \"{url}\"\n\n"));
        }
        for (tool, effect, _) in TOOLS {
            file.push_str(&format!(
                "[http_tools.\"ledger.{tool}\"]\ndescription = \"Notes a key\"\nmethod = \"POST\"\n\
                 url = \"http://{effects}/{{key}}\"\nprivate_hosts = [\"{effects}\"]\neffect = \"{effect}\"\n\n"
            ));
        }
        std::fs::write(folder.path().join("throughline.toml"), file).unwrap();
        Self { folder, address, ledger, upstream, turns: Vec::new() }
    }

    /// Starts a turn, with a viewer of each kind; the index selects the viewers. The request may be repeated,
    /// under one idempotency key.
    pub async fn begin_turn(&mut self) -> usize {
        let name = format!("t{}", self.turns.len());
        let (address, key) = (self.address, name.clone());
        let running = tokio::spawn(begin(address, key));
        let viewers: Vec<(By, Arc<Mutex<Saw>>)> =
            [By::Sse, By::WebSocket].map(|by| (by, Arc::default())).into();
        let mut turn = Turn { name, viewers, logged: None, watching: Vec::new(), running: Some(running) };
        // Viewers begin as soon as the turn has an id.
        let running = turn.running.take().unwrap();
        let saws: Vec<_> = turn.viewers.iter().map(|(by, saw)| (*by, saw.clone())).collect();
        turn.watching.push(tokio::spawn(async move {
            let id = running.await.unwrap();
            let watching =
                saws.into_iter().map(|(by, saw)| tokio::spawn(watch(address, id.clone(), by, saw)));
            for watching in watching.collect::<Vec<_>>() {
                watching.await.unwrap();
            }
        }));
        self.turns.push(turn);
        self.turns.len() - 1
    }

    /// Keeps `at_once` turns running.
    pub async fn keep_running(&mut self, at_once: usize) {
        let running = self.turns.iter().filter(|turn| !turn.is_over()).count();
        for _ in running..at_once {
            self.begin_turn().await;
        }
    }

    pub async fn seen_to_its_end(&mut self, turn: usize) {
        for watching in self.turns[turn].watching.drain(..) {
            timeout(2 * PATIENCE, watching).await.expect("the turn comes to its end").unwrap();
        }
        let first = self.turns[turn].viewers[0].1.lock().unwrap().events.first().cloned();
        let id = first.and_then(|event| event["turn_id"].as_str().map(str::to_owned)).expect("an event");
        let late: Arc<Mutex<Saw>> = Arc::default();
        watch(self.address, id, By::Sse, Arc::clone(&late)).await;
        self.turns[turn].logged = Some(late.lock().unwrap().clone());
    }

    pub async fn all_seen_to_their_end(&mut self) {
        for turn in 0..self.turns.len() {
            self.seen_to_its_end(turn).await;
        }
    }

    /// Waits until the server has taken over what the one before it left.
    pub async fn is_served(&self) {
        let (client, url) = (client(), format!("http://{}/readyz", self.address));
        let is_ready = async {
            while !client.get(&url).send().await.is_ok_and(|answer| answer.status() == 200) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, is_ready).await.expect("the server takes over all turns");
    }

    /// Waits, for a bounded time, until the history of calls agrees with the viewers of every turn.
    pub async fn history_is_whole(&self) -> Result<(), Broken> {
        let mut expected = BTreeSet::new();
        self.turns.iter().for_each(|turn| expected.extend(check::ended_calls(turn)));
        let mut missing = String::new();
        let whole = async {
            loop {
                let kept = self.history().await;
                let difference: Vec<_> = expected.symmetric_difference(&kept).take(5).collect();
                if difference.is_empty() {
                    return;
                }
                missing =
                    format!("{} calls were seen and {} are kept: {difference:?}", expected.len(), kept.len());
                sleep(Duration::from_millis(50)).await;
            }
        };
        let done = timeout(PATIENCE, whole).await;
        done.map_err(|_| Broken::History(missing))
    }

    async fn history(&self) -> BTreeSet<(String, String)> {
        let (client, mut calls) = (client(), BTreeSet::new());
        let mut url = format!("http://{}/v1/history/calls?limit=200", self.address);
        loop {
            let Ok(answer) = client.get(&url).send().await else { return calls };
            let page: Value = answer.json().await.unwrap_or_default();
            for row in page["items"].as_array().into_iter().flatten() {
                let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
                calls.insert((text("tool_id"), text("status")));
            }
            let Some(next) = page["next"].as_str() else { return calls };
            url = format!("http://{}/v1/history/calls?limit=200&cursor={next}", self.address);
        }
    }

    /// Standard error of the last server.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default()
    }

    /// Events of this type of the last turn that each of its viewers has seen.
    pub fn shown_to_all(&self, event_type: &str) -> u32 {
        let seen = |saw: &Mutex<Saw>| {
            saw.lock().unwrap().events.iter().filter(|event| event["type"] == event_type).count() as u32
        };
        let last = self.turns.last().expect("a turn runs");
        last.viewers.iter().map(|(_, saw)| seen(saw)).min().unwrap_or(0)
    }

    /// Number of effects that the last turn has had so far.
    pub fn effects_of_last_turn(&self) -> u32 {
        self.ledger.count_of(&format!("{}-", self.turns.last().expect("a turn runs").name))
    }

    /// Checks the invariants that hold while turns still run.
    pub fn check_so_far(&self) -> Result<(), Broken> {
        self.turns.iter().try_for_each(|turn| check::so_far(turn, &self.ledger))
    }

    pub fn check(&self) -> Result<Told, Broken> {
        let mut told = Told::default();
        for turn in &self.turns {
            check::whole(turn, &self.ledger, &mut told)?;
        }
        told.effects = self.ledger.total();
        match self.upstream.violations() {
            none if none.is_empty() => Ok(told),
            some => Err(Broken::Model(format!("{some:?}"))),
        }
    }
}

impl Turn {
    fn is_over(&self) -> bool {
        self.watching.iter().all(JoinHandle::is_finished)
    }
}

/// A fixed port for the duration of the test: clients that reconnect find the server there.
///
/// The port is below the ephemeral range (from 32768 on Linux): while the server is dead, an ephemeral one
/// could be assigned to another program, or as the local port of the connection that looks for the server.
fn own_address() -> SocketAddr {
    const PORTS: std::ops::Range<u16> = 20_000..30_000;
    static WORLDS: AtomicU32 = AtomicU32::new(0);
    let count = u32::from(PORTS.end - PORTS.start);
    let mut addresses = (0..count).map(|_| {
        let number = std::process::id().wrapping_mul(16).wrapping_add(WORLDS.fetch_add(1, Ordering::Relaxed));
        SocketAddr::from(([127, 0, 0, 1], PORTS.start + (number % count) as u16))
    });
    addresses.find(|address| std::net::TcpListener::bind(address).is_ok()).expect("a free port")
}

/// Repeats the request until the server returns the turn's id; the idempotency key makes it one turn.
async fn begin(address: SocketAddr, name: String) -> String {
    let body = json!({ "input": [{ "type": "text", "text": format!("Do turn {name}") }] });
    let client = client();
    let ask = async {
        loop {
            let request = client
                .post(format!("http://{address}/v1/turns"))
                .header("idempotency-key", &name)
                .json(&body)
                .timeout(Duration::from_secs(20));
            if let Ok(answer) = request.send().await {
                let status = answer.status();
                if let Ok(answer) = answer.json::<Value>().await {
                    if let Some(id) = answer["turn_id"].as_str() {
                        return id.to_owned();
                    }
                    assert!(status.is_server_error(), "turn {name}: {status} {answer}");
                }
            }
            sleep(Duration::from_millis(25)).await;
        }
    };
    timeout(2 * PATIENCE, ask).await.expect("the turn begins")
}

/// Numbers that are the same in every run (xorshift).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + self.0 % (high - low)
    }
}
