//! `throughline decode`: a raw response body in, one JSON object (or one JSON line per event) out.

mod event_view;
mod json_text;
mod reply_view;

use crate::args::DecodeArgs;
use crate::exit::{CliExit, CommandResult};
use crate::messages;
use event_view::EventView;
use reply_view::ReplyView;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use throughline_wire::{
    DecodeOptions, LeakedCalls, ModelReply, StepDecoder, StepEvent, ThinkMode, UpstreamProfile,
};

/// Read from standard input at a time, in bytes.
const READ_BYTES: usize = 64 << 10;
/// Longest piece that `--chunk-seed` cuts, in bytes.
const CHUNK_BYTES_MAX: u64 = 300;

/// Decodes standard input to standard output.
pub(crate) fn run(args: &DecodeArgs) -> CommandResult {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        eprintln!("{}", messages::DECODE_READS_STDIN);
    }
    match decode(args, &mut stdin.lock(), &mut BufWriter::new(io::stdout().lock())) {
        // The reader of our output has seen enough (`| head`): nobody is left to tell.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(CliExit::Done),
        Err(error) => Err(messages::pipe_failed(&error)),
        Ok(()) => Ok(CliExit::Done),
    }
}

fn decode(args: &DecodeArgs, input: &mut dyn Read, output: &mut dyn Write) -> io::Result<()> {
    let mut printer = if args.events {
        ReplyPrinter::Lines { output, failed: None }
    } else {
        ReplyPrinter::Object { output, reply: Box::default() }
    };
    let mut decoder = StepDecoder::new(args.api, options(args));
    match args.chunk_seed {
        None => {
            let mut buffer = vec![0; READ_BYTES];
            loop {
                let read = match input.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                decoder.push(&buffer[..read], &mut |event| printer.take(event));
                printer.flush()?;
            }
        }
        Some(seed) => {
            // The whole body first: how the pipe cuts it must not show.
            let mut body = Vec::new();
            input.read_to_end(&mut body)?;
            let mut random = SplitMix64(seed);
            let mut rest = body.as_slice();
            while !rest.is_empty() {
                let size = (1 + random.next() % CHUNK_BYTES_MAX).min(rest.len() as u64) as usize;
                let (chunk, after) = rest.split_at(size);
                decoder.push(chunk, &mut |event| printer.take(event));
                rest = after;
            }
        }
    }
    decoder.finish(&mut |event| printer.take(event));
    printer.finish()
}

fn options(args: &DecodeArgs) -> DecodeOptions {
    DecodeOptions {
        profile: UpstreamProfile {
            leaked_calls: if args.recover { LeakedCalls::Run } else { LeakedCalls::Report },
            ..UpstreamProfile::default()
        },
        think: if args.think { ThinkMode::Split } else { ThinkMode::Verbatim },
        ..DecodeOptions::default()
    }
}

/// Where events go.
enum ReplyPrinter<'a> {
    Object { output: &'a mut dyn Write, reply: Box<ModelReply> },
    Lines { output: &'a mut dyn Write, failed: Option<io::Error> },
}

impl ReplyPrinter<'_> {
    fn take(&mut self, event: StepEvent<'_>) {
        match self {
            ReplyPrinter::Object { reply, .. } => reply.apply(event),
            ReplyPrinter::Lines { output, failed } => {
                if failed.is_none() {
                    *failed = write_line(output, &EventView::from(&event)).err();
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            ReplyPrinter::Object { .. } => Ok(()),
            ReplyPrinter::Lines { output, failed } => match failed.take() {
                Some(error) => Err(error),
                None => output.flush(),
            },
        }
    }

    fn finish(mut self) -> io::Result<()> {
        if let ReplyPrinter::Object { output, reply } = &mut self {
            write_line(output, &ReplyView::from(&**reply))?;
            return output.flush();
        }
        self.flush()
    }
}

fn write_line(output: &mut dyn Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *output, value)?;
    output.write_all(b"\n")
}

/// Steele, Lea and Flood's generator: the pieces of a seed are the same on every machine and in every release.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // First outputs for seed 1234567 of the reference implementation (prng.di.unimi.it/splitmix64.c).
        let mut random = SplitMix64(1234567);
        let outputs: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(outputs, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }
}
