//! Limits under `throughline serve`, with figures: the memory of large concurrent bodies, and that it is
//! returned; and that a wait that exceeds a call's time limit is not begun.

mod upstream;

use super::ProofOutcome;
use super::load::client::LoadClient;
use super::load::resident_mib;
use super::serving::ServeProcess;
use crate::program;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use upstream::DrainingUpstream;

/// `large_bodies_memory_bytes_max`, in MiB.
const BOUND_MIB: f64 = 256.0;
/// Tolerance of a memory peak, in MiB.
const PEAK_MIB: f64 = 64.0;
/// Memory that may be left a minute later.
const LEFT_MIB: f64 = 32.0;
const A_MINUTE: Duration = Duration::from_secs(60);
/// The longest that an answer may take that has nothing to wait for, in seconds. The wait would be ten minutes.
const AT_ONCE_S: f64 = 2.0;

/// A set of concurrent bodies.
struct BodyLoad {
    what: &'static str,
    path: &'static str,
    count: usize,
    body: fn(usize) -> String,
}

const LOADS: [BodyLoad; 5] = [
    BodyLoad {
        what: "24 chats of 56 MB with pictures",
        path: "/v1/chat/completions",
        count: 24,
        body: chat_with_pictures,
    },
    BodyLoad {
        what: "8 chats of 15 MB of text",
        path: "/v1/chat/completions",
        count: 8,
        body: |number| chat_of_text(number, 15_000_000),
    },
    BodyLoad {
        what: "24 chats of 3 MB of text",
        path: "/v1/chat/completions",
        count: 24,
        body: |number| chat_of_text(number, 3_000_000),
    },
    BodyLoad {
        what: "8 imports of 3 MB",
        path: "/v1/conversations/import",
        count: 8,
        body: |number| messages(number, 3_000_000).to_string(),
    },
    BodyLoad {
        what: "an import of 29 MB",
        path: "/v1/conversations/import",
        count: 1,
        body: |number| messages(number, 29_000_000).to_string(),
    },
];

/// Runs all measurements. Violations are reported at the end.
pub(crate) fn limits() -> Result<ProofOutcome> {
    let throughline = program::release()?;
    let upstream = DrainingUpstream::start()?;
    let configuration = format!(
        "[upstreams.fake]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\n\n\
         [upstreams.limited]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\ntimeouts = {{ total_ms = 30000 }}\n\n\
         [agents.default]\nmodel = \"fake/m\"\n\n[server]\nlimits = {{ turns_per_minute_max = 1000 }}\n",
        upstream.url("answers"),
        upstream.url("limited")
    );
    let folder = program::target()?.join("limits");
    let serving = ServeProcess::start_with(&throughline, &folder, &configuration, &[], &[])?;
    let (mut figures, mut faults) = (Vec::new(), Vec::new());
    let waited = limited_wait(&serving)?;
    figures.push(format!("a 429 that asks for ten minutes, of 30 s: answered after {:.0} ms", waited * 1e3));
    if waited > AT_ONCE_S {
        faults.push("a wait that does not fit was waited".to_owned());
    }
    // What every server has after its first turns.
    send(&serving, "/v1/chat/completions", &chat_of_text(0, 2_000))?;
    thread::sleep(Duration::from_secs(5));
    let idle = resident_mib(serving.pid())?;
    figures.push(format!("idle {idle:.0} MiB"));
    for load in LOADS {
        let measured = measure(&serving, &load)?;
        let BodyMemory { peak, left, seconds, longest_other_ms } = measured;
        let figure = format!(
            "{}: {seconds:.0} s, peak {peak:.0}, a minute later {left:.0}; others at most {longest_other_ms:.0} ms",
            load.what
        );
        println!("    {figure}");
        if peak > BOUND_MIB + PEAK_MIB {
            faults.push(format!("{} take too much memory", load.what));
        }
        if left > idle + LEFT_MIB {
            faults.push(format!("the memory of {} is not given back", load.what));
        }
        figures.push(figure);
    }
    let figure = figures.join("; ");
    if faults.is_empty() { Ok(ProofOutcome::Holds(figure)) } else { bail!("{}: {figure}", faults.join(", ")) }
}

/// Seconds until the error of an upstream that requests a longer wait than the call's time limit.
fn limited_wait(serving: &ServeProcess) -> Result<f64> {
    let body = json!({"model": "limited/m", "messages": [{"role": "user", "content": "Hi"}]});
    let begun = Instant::now();
    let answer = LoadClient::new(&serving.address, &serving.key).post("/v1/chat/completions", &body)?;
    if answer.status != 429 {
        bail!("a 429 is answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Resident sets in MiB, and times.
struct BodyMemory {
    peak: f64,
    left: f64,
    seconds: f64,
    /// Longest time of a small request meanwhile, in milliseconds.
    longest_other_ms: f64,
}

fn measure(serving: &ServeProcess, load: &BodyLoad) -> Result<BodyMemory> {
    // Built beforehand, so that the requests are concurrent.
    let bodies: Vec<String> = (0..load.count).map(load.body).collect();
    let (is_over, begun) = (AtomicBool::new(false), Instant::now());
    let (peak, longest_other_ms, seconds) = thread::scope(|scope| {
        let memory = scope.spawn(|| -> Result<f64> {
            let mut peak: f64 = 0.0;
            while !is_over.load(Relaxed) {
                peak = peak.max(resident_mib(serving.pid())?);
                thread::sleep(Duration::from_millis(5));
            }
            Ok(peak)
        });
        let others = scope.spawn(|| -> Result<f64> {
            let (mut client, mut longest) = (LoadClient::new(&serving.address, &serving.key), 0.0_f64);
            while !is_over.load(Relaxed) {
                let asked = Instant::now();
                client.get("/v1/models")?;
                longest = longest.max(asked.elapsed().as_secs_f64() * 1e3);
                thread::sleep(Duration::from_millis(50));
            }
            Ok(longest)
        });
        let sent: Vec<_> = bodies.iter().map(|body| scope.spawn(|| send(serving, load.path, body))).collect();
        let answers: Result<Vec<()>> = sent.into_iter().map(joined).collect();
        let seconds = begun.elapsed().as_secs_f64();
        is_over.store(true, Relaxed);
        let (peak, longest) = (joined(memory)?, joined(others)?);
        answers.with_context(|| load.what)?;
        anyhow::Ok((peak, longest, seconds))
    })?;
    thread::sleep(A_MINUTE);
    Ok(BodyMemory { peak, left: resident_mib(serving.pid())?, seconds, longest_other_ms })
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| bail!("a thread of the measurement panicked"))
}

fn send(serving: &ServeProcess, path: &str, body: &str) -> Result<()> {
    let answer = LoadClient::new(&serving.address, &serving.key).post_text(path, body)?;
    match answer.status {
        200 | 201 => Ok(()),
        status => bail!("answered {status}: {}", String::from_utf8_lossy(&answer.body)),
    }
}

/// Two pictures of 21 MB, which are 56 MB in base64. No two are the same.
fn chat_with_pictures(number: usize) -> String {
    let picture = |at: usize| {
        // A PNG's header in base64, and noise: letters of base64 are what all of it consists of.
        let mut noise = Noise((number * 2 + at) as u64);
        let base64: String = (0..28_000_000 - 44).map(|_| noise.letter()).collect();
        json!({"type": "image_url", "image_url": {
            "url": format!("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAAAAAAA{base64}")}})
    };
    let content = json!([{"type": "text", "text": "What is it?"}, picture(0), picture(1)]);
    json!({"model": "fake/m", "messages": [{"role": "user", "content": content}]}).to_string()
}

fn chat_of_text(number: usize, bytes: usize) -> String {
    let mut messages = messages(number, bytes);
    if let Value::Array(messages) = &mut messages {
        messages.push(json!({"role": "user", "content": "And now?"}));
    }
    json!({"model": "fake/m", "messages": messages}).to_string()
}

/// Questions and answers of 2 kB each.
fn messages(number: usize, bytes: usize) -> Value {
    let mut noise = Noise(number as u64);
    let text: String = (0..2_000).map(|at| if at % 7 == 6 { ' ' } else { noise.letter() }).collect();
    let roles = ["user", "assistant"];
    (0..bytes / 2_040).map(|at| json!({"role": roles[at % 2], "content": text})).collect()
}

/// Letters in an order that no two seeds share.
struct Noise(u64);

impl Noise {
    fn letter(&mut self) -> char {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789ab";
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(LETTERS[(self.0 >> 58) as usize])
    }
}
