//! `throughline decode`: a raw response body in, one JSON object (or one JSON line per event) out.

mod event_view;
mod json_text;
mod reply_view;

use crate::args::{DecodeApi, DecodeArgs};
use crate::exit::{CliExit, CommandResult};
use crate::messages::{self, UiLanguage};
use crate::output::errln;
use event_view::EventView;
use reply_view::ReplyView;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use throughline::UserLanguage;
use throughline::recording::{RecordingDiagnostic, diagnose, guess_dialect};
use throughline_wire::{
    DecodeOptions, Dialect, LeakedCalls, ModelReply, StepDecoder, StepEvent, StreamEnd, ThinkMode,
    UpstreamProfile,
};

/// Read from standard input at a time, in bytes.
const READ_BYTES: usize = 64 << 10;
/// The body as far as it is looked at to find out what it is, in bytes.
const SAMPLE_BYTES_MAX: u64 = 8 << 20;
/// Longest piece that `--chunk-seed` cuts, in bytes.
const CHUNK_BYTES_MAX: u64 = 300;

/// Decodes standard input to standard output.
pub(crate) fn run(args: &DecodeArgs) -> CommandResult {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        errln!("{}", messages::decode_reads_stdin());
    }
    match decode(args, &mut stdin.lock(), &mut BufWriter::new(io::stdout().lock())) {
        // The reader of the output has closed it (`| head`).
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(CliExit::Done),
        Err(error) => Err(messages::pipe_failed(&error)),
        Ok(decoded) => decoded.exit(args),
    }
}

/// A body and its decoding.
struct DecodedBody {
    dialect: Dialect,
    reply: Box<ModelReply>,
    /// The beginning of the body.
    sample: Vec<u8>,
}

impl DecodedBody {
    fn exit(&self, args: &DecodeArgs) -> CommandResult {
        // An empty reply of a closed connection is valid if the wire format is given.
        let is_reply = self.sample.is_empty() && args.api != DecodeApi::Auto && !args.strict;
        let other = self.other_dialect(think_mode(args));
        let is_other = other.is_some() && self.is_error();
        if is_other || (self.is_nothing() && !is_reply) {
            return Err(messages::nothing_decoded(self.dialect, other, &self.diagnostics()));
        }
        let is_complete = self.reply.end == Some(StreamEnd::Complete);
        if !is_complete {
            for diagnostic in self.diagnostics() {
                errln!("{}", messages::decode_warning(&diagnostic));
            }
        }
        Ok(if args.strict && !is_complete { CliExit::Failed } else { CliExit::Done })
    }

    /// True if not even an end or an error was found.
    fn is_nothing(&self) -> bool {
        let reply = &*self.reply;
        let has_facts = reply.finish.is_some() || reply.usage.is_some() || reply.provider_state.is_some();
        !reply.has_content() && !has_facts && !self.is_error()
    }

    fn is_error(&self) -> bool {
        self.reply.end.as_ref().and_then(StreamEnd::error).is_some()
    }

    fn diagnostics(&self) -> Vec<RecordingDiagnostic> {
        let language = match UiLanguage::current() {
            UiLanguage::English => UserLanguage::English,
            UiLanguage::Chinese => UserLanguage::Chinese,
        };
        diagnose(&self.sample, language)
    }

    /// Another wire format that yields content for the body.
    fn other_dialect(&self, think: ThinkMode) -> Option<Dialect> {
        let says_something = |dialect: &Dialect| {
            let options = DecodeOptions { think, ..DecodeOptions::default() };
            ModelReply::decode(&self.sample, *dialect, options).has_content()
        };
        let guessed = if self.reply.has_content() { None } else { guess_dialect(&self.sample, think) };
        guessed.filter(|other| *other != self.dialect).filter(says_something)
    }
}

fn decode(args: &DecodeArgs, input: &mut dyn Read, output: &mut dyn Write) -> io::Result<DecodedBody> {
    let mut sample = Vec::new();
    let dialect = match args.api {
        DecodeApi::Named(dialect) => dialect,
        DecodeApi::Auto => {
            input.take(SAMPLE_BYTES_MAX).read_to_end(&mut sample)?;
            guess_dialect(&sample, think_mode(args)).unwrap_or(Dialect::OpenaiChat)
        }
    };
    let mut printer = ReplyPrinter { output, lines: args.events, failed: None, reply: Box::default() };
    let mut decoder = StepDecoder::new(dialect, options(args));
    let seen = sample.clone();
    let mut input = seen.as_slice().chain(input);
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
                if args.api != DecodeApi::Auto && (sample.len() as u64) < SAMPLE_BYTES_MAX {
                    sample.extend_from_slice(&buffer[..read]);
                }
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
            sample = body;
            sample.truncate(SAMPLE_BYTES_MAX as usize);
        }
    }
    decoder.finish(&mut |event| printer.take(event));
    let reply = printer.finish()?;
    Ok(DecodedBody { dialect, reply, sample })
}

fn think_mode(args: &DecodeArgs) -> ThinkMode {
    if args.think { ThinkMode::Split } else { ThinkMode::Verbatim }
}

fn options(args: &DecodeArgs) -> DecodeOptions {
    DecodeOptions {
        profile: UpstreamProfile {
            leaked_calls: if args.recover { LeakedCalls::Run } else { LeakedCalls::Report },
            ..UpstreamProfile::default()
        },
        think: think_mode(args),
        ..DecodeOptions::default()
    }
}

/// Prints the events one by one, or the reply.
struct ReplyPrinter<'a> {
    output: &'a mut dyn Write,
    lines: bool,
    failed: Option<io::Error>,
    reply: Box<ModelReply>,
}

impl ReplyPrinter<'_> {
    fn take(&mut self, event: StepEvent<'_>) {
        if self.lines && self.failed.is_none() {
            self.failed = write_line(self.output, &EventView::from(&event)).err();
        }
        self.reply.apply(event);
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None if self.lines => self.output.flush(),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> io::Result<Box<ModelReply>> {
        if !self.lines {
            write_line(self.output, &ReplyView::from(&*self.reply))?;
            self.output.flush()?;
        }
        self.flush()?;
        Ok(self.reply)
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
    fn splitmix64_matches_the_reference_implementation() {
        // First outputs for seed 1234567 of the reference implementation (prng.di.unimi.it/splitmix64.c).
        let mut random = SplitMix64(1234567);
        let outputs: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(outputs, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }
}
