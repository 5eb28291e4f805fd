//! Any cut of any stream gives what an independent reader of whole bodies gives.
//!
//! The whole body must give the oracle's outcome; each cut must give the same events as the whole body, fragments of
//! text joined. Every test run takes each stream byte by byte and a seeded sample of cuts; with
//! `THROUGHLINE_EXHAUSTIVE=1` (in release: `cargo xtask verify`) it takes every 2-cut of every stream up to 64 KiB,
//! and of longer ones those in the first and last 8 KiB, those at each event's border, and 10,000 seeded ones.

use crate::oracle::corpus::{Stream, same, streams};
use crate::oracle::product::{Feed, decoder, digest, outcome, reply};
use crate::oracle::{self, OracleCall, OracleOutcome};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use throughline_wire::{StepDecoder, StepEvent};

const WHOLE_BYTES_MAX: usize = 64 << 10;
const EDGE_BYTES: usize = 8 << 10;
const BORDER_BYTES: usize = 4;
const RANDOM_CUTS: usize = 10_000;
/// Cuts of one unit of work for a thread.
const BATCH: usize = 2_000;

/// Own fixtures of bytes that the naive reader gets wrong: it would have to be as clever as the decoder. Their documented
/// answers are in `fixtures.rs`; here they are only cut.
pub const BEYOND_THE_ORACLE: [&str; 33] = [
    "anthropic/a3-input-object-in-delta",
    "anthropic/n3-cut-before-arguments",
    "anthropic/n7-no-type-at-all",
    "anthropic/n8-other-message",
    "bedrock/b1-error-frame",
    "bedrock/b2-cut-before-arguments",
    "bedrock/b2-malformed-tool-use",
    "bedrock/body-error",
    "bedrock/body-invoke-plain",
    "bedrock/body-plain",
    "cohere/body-plain",
    "cohere/h1-cut-before-arguments",
    "gemini/a3-args-string",
    "gemini/c1-usage-on-every-chunk",
    "gemini/c4-candidates",
    "gemini/g3-cut-before-arguments",
    "gemini/g3-cut-mid-string",
    "gemini/g3-max-tokens",
    "gemini/g3-unreadable-path",
    "gemini/t15-call-repeated",
    "gemini/t16-nameless",
    "ollama/f7-after-done",
    "ollama/o2-words-line",
    "ollama/t15-list-again-with-done",
    "ollama/t16-phantom",
    "ollama/t17-calls-object",
    "openai-chat/e1-words-last",
    "openai-chat/t8-name-late",
    "openai-responses/a3-arguments-object",
    "openai-responses/p3-arguments-only-in-completed",
    "openai-responses/p6-incomplete-before-arguments",
    "openai-responses/t10-no-output-index",
    "openai-responses/t2-one-index-for-all",
];

#[test]
fn the_oracle_agrees_with_the_corpus() {
    let streams = streams();
    let check = |stream: &Stream| stream.differences(&oracle::read(&stream.api, &stream.body));
    report(&streams, check);
}

#[test]
fn whole_bodies_agree_with_the_corpus_and_the_oracle() {
    let streams = streams();
    report(&streams, |stream| {
        let got = outcome(&reply(decoder(&stream.api), &stream.body, &[]));
        let mut found = stream.differences(&got);
        let from_oracle = differences(&oracle::read(&stream.api, &stream.body), &got);
        match (BEYOND_THE_ORACLE.contains(&stream.id.as_str()), from_oracle.is_empty()) {
            (true, true) => found.push("the oracle agrees: take it off the list".to_owned()),
            (true, false) => {}
            (false, _) => found.extend(from_oracle),
        }
        found
    });
}

#[test]
fn every_cut_gives_the_same_events() {
    let streams = streams();
    let is_exhaustive = std::env::var_os("THROUGHLINE_EXHAUSTIVE").is_some();
    let work = works(&streams, if is_exhaustive { exhaustive_cuts } else { sampled_cuts });
    let cuts: usize = work.iter().map(|work| work.cuts.len()).sum();
    let wrong = differing(&streams, &work, decoder, Patience::Unlimited);
    assert!(wrong.is_empty(), "{} of {cuts} cuts:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    let apis: std::collections::BTreeSet<&str> = streams.iter().map(|stream| stream.api.as_str()).collect();
    assert_eq!(apis.len(), 8, "each dialect is cut: {apis:?}");
    println!("{} streams, {cuts} ways to cut them, all equal", streams.len());
}

/// The equivalence test with a decoder that makes a mistake at its cuts must fail; else it proves nothing.
#[test]
fn a_decoder_with_a_mistake_at_cuts_is_caught() {
    let streams = streams();
    let work = works(&streams, sampled_cuts);
    for mistake in [
        Mistake::DropsAByte,
        Mistake::DropsTheOpenLine,
        Mistake::RepeatsAByte,
        Mistake::RepeatsTheOpenLine,
        Mistake::EndsTheLine,
        Mistake::DecodesEachPieceAsText,
    ] {
        let mutant = |api: &str| Mutant { mistake, decoder: decoder(api), open_line: Vec::new() };
        let wrong = differing(&streams, &work, mutant, Patience::First);
        assert!(!wrong.is_empty(), "a decoder that {mistake:?} at its cuts goes unnoticed");
    }
}

/// The state that a decoder can get wrong between two pieces.
#[derive(Clone, Copy, Debug)]
enum Mistake {
    DropsAByte,
    DropsTheOpenLine,
    RepeatsAByte,
    RepeatsTheOpenLine,
    EndsTheLine,
    DecodesEachPieceAsText,
}

/// The real decoder with an input that is corrupted at every border except the first.
struct Mutant {
    mistake: Mistake,
    decoder: StepDecoder,
    /// The bytes since the last line end.
    open_line: Vec<u8>,
}

impl Feed for Mutant {
    fn push(&mut self, piece: &[u8], sink: &mut dyn FnMut(StepEvent<'_>)) {
        let carried = std::mem::take(&mut self.open_line);
        let last_line = piece.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if last_line == 0 {
            self.open_line.clone_from(&carried);
        }
        self.open_line.extend_from_slice(&piece[last_line..]);
        let is_first = carried.is_empty();
        let piece = match self.mistake {
            Mistake::DropsAByte if !is_first => piece.get(1..).unwrap_or_default().to_vec(),
            Mistake::RepeatsAByte if !is_first => [&carried[carried.len() - 1..], piece].concat(),
            Mistake::RepeatsTheOpenLine => [&carried, piece].concat(),
            Mistake::EndsTheLine if !is_first => [b"\n", piece].concat(),
            Mistake::DecodesEachPieceAsText => String::from_utf8_lossy(piece).into_owned().into_bytes(),
            // Simulates a lost tail of the previous piece.
            Mistake::DropsTheOpenLine => piece[..last_line].to_vec(),
            _ => piece.to_vec(),
        };
        self.decoder.push(&piece, sink);
    }

    fn finish(&mut self, sink: &mut dyn FnMut(StepEvent<'_>)) {
        self.decoder.finish(sink);
    }
}

/// Cuts of one stream for one thread.
struct Work {
    stream: usize,
    cuts: Vec<Vec<usize>>,
}

fn works(streams: &[Stream], cuts: impl Fn(&Stream, &mut Random) -> Vec<Vec<usize>>) -> Vec<Work> {
    let mut works = Vec::new();
    for (number, stream) in streams.iter().enumerate() {
        let mut random = Random(number as u64);
        let cuts = cuts(stream, &mut random);
        works.extend(cuts.chunks(BATCH).map(|cuts| Work { stream: number, cuts: cuts.to_vec() }));
    }
    // The long ones first, so that no thread is left alone with one at the end.
    works.sort_by_key(|work| std::cmp::Reverse(streams[work.stream].body.len() * work.cuts.len()));
    works
}

fn exhaustive_cuts(stream: &Stream, random: &mut Random) -> Vec<Vec<usize>> {
    let length = stream.body.len();
    let mut places: Vec<usize> = (0..=length).collect();
    if length > WHOLE_BYTES_MAX {
        let near = |border: usize| border.saturating_sub(BORDER_BYTES)..=(border + BORDER_BYTES).min(length);
        let borders = borders(stream);
        places.retain(|at| *at <= EDGE_BYTES || *at >= length - EDGE_BYTES);
        places.extend(borders.into_iter().flat_map(near));
        places.extend((0..RANDOM_CUTS).map(|_| random.below(length + 1)));
        places.sort_unstable();
        places.dedup();
    }
    let mut cuts: Vec<Vec<usize>> = places.into_iter().map(|at| vec![at]).collect();
    cuts.extend(many_cuts(stream, random));
    cuts
}

fn sampled_cuts(stream: &Stream, random: &mut Random) -> Vec<Vec<usize>> {
    let length = stream.body.len();
    let mut cuts: Vec<Vec<usize>> = (0..12).map(|_| vec![random.below(length + 1)]).collect();
    let borders = borders(stream);
    if !borders.is_empty() {
        let near =
            |random: &mut Random| borders[random.below(borders.len())] + random.below(2 * BORDER_BYTES + 1);
        cuts.extend((0..6).map(|_| vec![near(random).saturating_sub(BORDER_BYTES).min(length)]));
    }
    cuts.extend(many_cuts(stream, random));
    cuts
}

/// Byte by byte, and in pieces of random length.
fn many_cuts(stream: &Stream, random: &mut Random) -> Vec<Vec<usize>> {
    let length = stream.body.len();
    let pieces = |random: &mut Random, piece_max: usize| {
        let mut cuts = Vec::new();
        let mut at = 1 + random.below(piece_max);
        while at < length {
            cuts.push(at);
            at += 1 + random.below(piece_max);
        }
        cuts
    };
    vec![(1..length).collect(), pieces(random, 7), pieces(random, 300)]
}

/// Offsets at which lines or binary frames end.
fn borders(stream: &Stream) -> Vec<usize> {
    if !stream.api.starts_with("bedrock") {
        return (1..=stream.body.len()).filter(|at| b"\r\n".contains(&stream.body[at - 1])).collect();
    }
    let mut borders = Vec::new();
    let mut at = 0;
    while let Some(length) = stream.body.get(at..at + 4) {
        at += length.iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
        borders.push(at.min(stream.body.len()));
    }
    borders
}

#[derive(Clone, Copy, PartialEq)]
enum Patience {
    /// One finding is enough.
    First,
    Unlimited,
}

/// All cuts whose events differ from those of the whole body as the real decoder reads it.
fn differing<F: Feed>(
    streams: &[Stream],
    works: &[Work],
    make: impl Fn(&str) -> F + Sync,
    patience: Patience,
) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(work) = works.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let stream = &streams[work.stream];
                    let whole = digest(decoder(&stream.api), &stream.body, &[]);
                    for cuts in &work.cuts {
                        if digest(make(&stream.api), &stream.body, cuts) != whole {
                            let difference = explain(stream, make(&stream.api), cuts);
                            wrong.lock().expect("no thread panics while holding it").push(difference);
                        }
                        if patience == Patience::First && !wrong.lock().expect("as above").is_empty() {
                            return;
                        }
                    }
                }
            });
        }
    });
    wrong.into_inner().expect("as above")
}

fn explain(stream: &Stream, feed: impl Feed, cuts: &[usize]) -> String {
    let whole = reply(decoder(&stream.api), &stream.body, &[]);
    let cut = reply(feed, &stream.body, cuts);
    let mut found = differences(&outcome(&whole), &outcome(&cut));
    if found.is_empty() {
        found.push(format!("problems: {:?} became {:?}", whole.problems, cut.problems));
    }
    let short = &cuts[..cuts.len().min(5)];
    format!("{} cut at {short:?} ({} cuts)\n    {}", stream.id, cuts.len(), found.join("\n    "))
}

/// The differences between two outcomes.
pub fn differences(want: &OracleOutcome, got: &OracleOutcome) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, equal: bool, want: String, got: String| {
        if !equal {
            found.push(format!("{what}: {want:.300} became {got:.300}"));
        }
    };
    compare("text", want.text == got.text, format!("{:?}", want.text), format!("{:?}", got.text));
    let reasoning = (format!("{:?}", want.reasoning), format!("{:?}", got.reasoning));
    compare("reasoning", want.reasoning == got.reasoning, reasoning.0, reasoning.1);
    let calls = want.calls.len() == got.calls.len()
        && want.calls.iter().zip(&got.calls).all(|(a, b)| same_call(a, b));
    compare("calls", calls, format!("{:?}", want.calls), format!("{:?}", got.calls));
    let rest = |outcome: &OracleOutcome| (outcome.finish.clone(), outcome.end, outcome.usage);
    compare(
        "finish, end, usage",
        rest(want) == rest(got),
        format!("{:?}", rest(want)),
        format!("{:?}", rest(got)),
    );
    let (wanted, actual) =
        (want.error.as_deref().unwrap_or_default(), got.error.as_deref().unwrap_or_default());
    let is_same_error = wanted.contains(actual) || actual.contains(wanted);
    compare("error", is_same_error, wanted.to_owned(), actual.to_owned());
    let numbers =
        |outcome: &OracleOutcome| outcome.choices.iter().map(|(number, _)| *number).collect::<Vec<_>>();
    compare(
        "choices",
        numbers(want) == numbers(got),
        format!("{:?}", numbers(want)),
        format!("{:?}", numbers(got)),
    );
    for ((number, want), (_, got)) in want.choices.iter().zip(&got.choices) {
        let (want, got) = (OracleOutcome { end: got.end, ..want.clone() }, got);
        found.extend(
            differences(&want, got).into_iter().map(|difference| format!("choice {number}: {difference}")),
        );
    }
    found
}

pub fn same_call(a: &OracleCall, b: &OracleCall) -> bool {
    let arguments = match (&a.arguments, &b.arguments) {
        (Ok(a), Ok(b)) => same(a, b),
        (Err(a), Err(b)) => a == b,
        _ => false,
    };
    arguments && a.id == b.id && a.name == b.name
}

fn report(streams: &[Stream], check: impl Fn(&Stream) -> Vec<String>) {
    let mut wrong = Vec::new();
    for stream in streams {
        let differences = check(stream);
        if !differences.is_empty() {
            wrong.push(format!("{}\n    {}", stream.id, differences.join("\n    ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {} streams:\n{}", wrong.len(), streams.len(), wrong.join("\n"));
}

/// SplitMix64: the same cuts in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) % bound.max(1) as u64) as usize
    }
}
