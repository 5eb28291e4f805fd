//! The cost of reading calls out of text, next to decoding the same reply natively. `cargo xtask bench text` builds, runs and
//! judges it.
//!
//! ```text
//! cargo bench -p throughline-wire --bench text -- measure [--quick]            one JSON line a size
//! cargo bench -p throughline-wire --bench text -- count SIZE FORMAT PASSES     to run under callgrind
//! ```
//!
//! A format is `native` or a text protocol. Each takes its turn on the same bytes, one event a piece, so that what text mode
//! adds is a difference within one round: the scanner at each delta, and its share of the second reading at the end.

#[path = "../decode/clock.rs"]
mod clock;
mod prose;

use prose::ProseStream;
use std::process::ExitCode;
use throughline_wire::text_calls::{CallFormat, PROTOCOLS, ResultRole, TextCalls};
use throughline_wire::{
    DecodeLimits, DecodeOptions, Dialect, StepDecoder, StepEvent, ThinkMode, ToolDefinition,
};

/// Lengths of the text.
const SIZES: [(&str, usize); 5] =
    [("64k", 64 << 10), ("256k", 256 << 10), ("1m", 1 << 20), ("4m", 4 << 20), ("16m", 16 << 20)];

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["measure", ref flags @ ..] => {
            let is_quick = flags.contains(&"--quick");
            for (name, bytes) in SIZES.into_iter().filter(|(_, bytes)| !is_quick || *bytes <= 1 << 20) {
                measure(name, &ProseStream::new(bytes));
            }
        }
        ["count", size, format, passes] => {
            let Some((_, bytes)) = SIZES.iter().find(|(name, _)| *name == size) else { return usage() };
            let prose = ProseStream::new(*bytes);
            println!("events {}", prose.deltas());
            for _ in 0..passes.parse().unwrap_or(1_u32) {
                std::hint::black_box(run(format, &prose));
            }
        }
        // `cargo bench` and `cargo test --benches` without words: that it runs and is right.
        [] => check_all(&ProseStream::new(64 << 10)),
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: measure [--quick] | count SIZE FORMAT PASSES");
    ExitCode::FAILURE
}

fn formats() -> Vec<&'static str> {
    std::iter::once("native").chain(PROTOCOLS.iter().map(|protocol| protocol.name())).collect()
}

/// All formats must say the whole text and no calls, or there is nothing to compare.
fn check_all(prose: &ProseStream) {
    for format in formats() {
        let (text, calls) = run(format, prose);
        assert!(text == prose.bytes() && calls == 0, "{format} reads {text} bytes of text and {calls} calls");
    }
}

/// Measures all formats on a text by turns and prints a JSON line.
fn measure(name: &str, prose: &ProseStream) {
    check_all(prose);
    let formats = formats();
    let (rounds, passes) = match prose.bytes() {
        0..200_000 => (31, 8),
        200_000..2_000_000 => (21, 3),
        _ => (11, 1),
    };
    let rounds: Vec<Vec<f64>> = (0..rounds)
        .map(|round| {
            let mut costs = vec![0.0; formats.len()];
            // Another one begins each round: what comes first finds a colder memory.
            for turn in 0..formats.len() {
                let at = (turn + round) % formats.len();
                let before = clock::now();
                for _ in 0..passes {
                    std::hint::black_box(run(formats[at], prose));
                }
                costs[at] = (clock::now() - before) as f64 / f64::from(passes) / prose.deltas() as f64;
            }
            costs
        })
        .collect();
    let column = |at: usize| median(rounds.iter().map(|round| round[at]));
    let mut fields = vec![
        format!("\"size\":\"{name}\""),
        format!("\"bytes\":{}", prose.bytes()),
        format!("\"deltas\":{}", prose.deltas()),
        format!("\"native\":{:.1}", column(0)),
    ];
    for (at, format) in formats.iter().enumerate().skip(1) {
        let added = median(rounds.iter().map(|round| round[at] - round[0]));
        fields.push(format!("\"{format}\":{:.1},\"{format}_added\":{added:.1}", column(at)));
    }
    println!("{{{}}}", fields.join(","));
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Decodes the reply once; bytes of visible text and number of calls.
fn run(format: &str, prose: &ProseStream) -> (usize, usize) {
    let calls = match PROTOCOLS.iter().find(|protocol| protocol.name() == format) {
        None => CallFormat::Native,
        Some(protocol) => CallFormat::Text(TextCalls {
            protocol: *protocol,
            tools: tools().into(),
            results: ResultRole::User,
        }),
    };
    // Everything on, as in a turn; only what the longest text needs is raised.
    let options = DecodeOptions {
        limits: DecodeLimits { step_bytes_max: 4 << 30, ..DecodeLimits::default() },
        think: ThinkMode::Split,
        offered: tools().iter().map(|tool| tool.name.as_str().to_owned()).collect(),
        calls,
        ..DecodeOptions::default()
    };
    let mut decoder = StepDecoder::new(Dialect::OpenaiChat, options);
    let (mut text, mut opened) = (0, 0);
    let mut sink = |event: StepEvent<'_>| match event {
        StepEvent::Text(piece) => text += std::hint::black_box(&*piece).len(),
        StepEvent::CallOpened { .. } => opened += 1,
        _ => {}
    };
    for event in prose.events() {
        decoder.push(event, &mut sink);
    }
    decoder.finish(&mut sink);
    (text, opened)
}

fn tools() -> Vec<ToolDefinition> {
    let schema = || serde_json::json!({"type": "object", "properties": {"city": {"type": "string"}}});
    ["weather_today", "files_read", "time_now"]
        .map(|name| ToolDefinition::new(name, "A tool.", schema()))
        .into()
}
