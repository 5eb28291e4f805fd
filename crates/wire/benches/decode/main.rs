//! The cost of decoding, next to what any decoder must cost. `cargo xtask bench decode` builds, runs and judges it.
//!
//! ```text
//! cargo bench -p throughline-wire --bench decode -- measure [--quick]     one JSON line a workload
//! cargo bench -p throughline-wire --bench decode -- count WORKLOAD DECODER PASSES     to run under callgrind
//! ```
//!
//! Decoders are fed one event a piece. Floors: `copy` touches each byte, `lines` finds the payloads, `memo`
//! is exact: it parses an event once and afterwards checks only the string that changes. `straight` is the
//! obvious implementation. Each answer is compared with the workload's; a wrong one ends the run.

mod baseline;
mod clock;
mod workload;

use baseline::BaselineDecoder;
use std::process::ExitCode;
use throughline_wire::{DecodeLimits, DecodeOptions, ModelReply, StepDecoder};
use workload::{ExpectedReply, Workload};

/// Decoders that take their turns on a workload.
const DECODERS: [&str; 5] = ["throughline", "memo", "straight", "lines", "copy"];
/// Decoders for Chat Completions only.
const CHAT_ONLY: [&str; 2] = ["memo", "straight"];

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["measure", ref flags @ ..] => {
            let effort = if flags.contains(&"--quick") { BenchEffort::Quick } else { BenchEffort::Full };
            for name in workload::NAMES {
                measure(name, effort);
            }
        }
        ["count", name, decoder, passes] => {
            let Some(workload) = Workload::new(name) else { return usage() };
            println!("events {}", workload.events());
            for _ in 0..passes.parse().unwrap_or(1_u32) {
                std::hint::black_box(run(decoder, &workload));
            }
        }
        // `cargo bench` and `cargo test --benches` without words: that it runs and is right.
        [] => check_all(),
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!(
        "usage: measure [--quick] | count WORKLOAD DECODER PASSES\nworkloads: {}",
        workload::NAMES.join(" ")
    );
    ExitCode::FAILURE
}

fn check_all() {
    for name in workload::NAMES.iter().filter(|name| !name.ends_with('m')) {
        if let Some(workload) = Workload::new(name) {
            for decoder in DECODERS {
                check(decoder, &workload);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BenchEffort {
    Quick,
    Full,
}

/// Measures all decoders on a workload by turns and prints a JSON line.
fn measure(name: &str, effort: BenchEffort) {
    let Some(workload) = Workload::new(name) else { return };
    let is_long = workload.events() > 500_000;
    if effort == BenchEffort::Quick && is_long {
        return;
    }
    let decoders: Vec<_> = DECODERS
        .into_iter()
        .filter(|decoder| workload.is_chat() || !CHAT_ONLY.contains(decoder))
        // The slow decoder adds nothing at larger sizes.
        .filter(|decoder| !is_long || *decoder != "straight")
        .collect();
    for decoder in &decoders {
        check(decoder, &workload);
    }
    let (rounds, passes) = match (effort, workload.events()) {
        (_, 500_001..) => (3, 1),
        (BenchEffort::Quick, _) => (5, 3),
        (BenchEffort::Full, 100_000..) => (9, 1),
        (BenchEffort::Full, _) => (15, 8),
    };
    // Decoders take turns, so that a busy moment of the machine meets all of them.
    let mut rounds: Vec<Vec<f64>> = (0..rounds)
        .map(|_| {
            let generating = cost(passes, || workload.pass(&mut |event| _ = std::hint::black_box(event)));
            let cost_of = |decoder: &&str| {
                let whole = cost(passes, || drop(std::hint::black_box(run(decoder, &workload))));
                (whole - generating).max(0.0) / workload.events() as f64
            };
            decoders.iter().map(cost_of).collect()
        })
        .collect();
    let mut fields = vec![
        format!("\"workload\":\"{name}\""),
        format!("\"events\":{}", workload.events()),
        format!("\"bytes\":{}", workload.bytes()),
        format!(
            "\"arguments_bytes\":{}",
            workload.answer().calls.iter().map(|call| call.1.len()).sum::<usize>()
        ),
    ];
    for (column, decoder) in decoders.iter().enumerate() {
        let ns = median(&mut rounds.iter().map(|round| round[column]).collect::<Vec<_>>());
        fields.push(format!("\"{decoder}\":{ns:.1}"));
    }
    if let Some(memo) = decoders.iter().position(|decoder| *decoder == "memo") {
        let ratio = median(&mut rounds.iter_mut().map(|round| round[0] / round[memo]).collect::<Vec<_>>());
        fields.push(format!("\"ratio\":{ratio:.3}"));
    }
    println!("{{{}}}", fields.join(","));
}

/// Processor time of one pass in nanoseconds, as a mean over several.
fn cost(passes: u32, mut pass: impl FnMut()) -> f64 {
    let before = clock::now();
    for _ in 0..passes {
        pass();
    }
    (clock::now() - before) as f64 / f64::from(passes)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Decodes the workload once.
fn run(decoder: &str, workload: &Workload) -> ExpectedReply {
    if decoder != "throughline" {
        let mut floor = BaselineDecoder::new(decoder);
        workload.pass(&mut |event| floor.push(event));
        return floor.into_answer();
    }
    // Everything on, as in a turn; only what the longest workload needs is raised.
    let limits =
        DecodeLimits { arguments_bytes_max: 64 << 20, step_bytes_max: 4 << 30, ..DecodeLimits::default() };
    let mut decoder =
        StepDecoder::new(workload.dialect(), DecodeOptions { limits, ..DecodeOptions::default() });
    let mut reply = ModelReply::default();
    workload.pass(&mut |event| decoder.push(event, &mut |event| reply.apply(event)));
    decoder.finish(&mut |event| reply.apply(event));
    let calls = reply.calls.into_iter().map(|call| (call.name.into_string(), call.text));
    ExpectedReply { text: reply.text, calls: calls.collect() }
}

fn check(decoder: &str, workload: &Workload) {
    // These find no answer.
    if matches!(decoder, "lines" | "copy") || (CHAT_ONLY.contains(&decoder) && !workload.is_chat()) {
        return;
    }
    let (got, want) = (run(decoder, workload), workload.answer());
    assert!(got.text == want.text, "{decoder} reads another text in {}", workload.name());
    assert!(got.calls == want.calls, "{decoder} reads other calls in {}", workload.name());
}
