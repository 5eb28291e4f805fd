//! `throughline say`: reads a text aloud, sentence by sentence, into a player or a WAV file.

mod player;

use crate::args::{ModelArgs, SayArgs};
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages;
use crate::output::{self, errln};
use crate::setup;
use futures_util::StreamExt;
use player::Player;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use throughline::voice::{
    self, AudioFormat, SpeechRequest, Voice, WavSamples, WavStart, wav_header, wav_start,
};
use throughline_speech::SentenceLimits;
use throughline_tools::process::SpawnContext;
use throughline_wire::display_escape;

/// Name of standard input and output.
const STDIO: &str = "-";
/// Longest text, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Reads the text, cuts it into sentences and plays them.
pub(crate) async fn run(args: &SayArgs) -> CommandResult {
    let text = read_text(args.text.as_deref())?;
    let sentences = throughline_speech::sentences(&text, SentenceLimits::default());
    if sentences.is_empty() {
        return Err(messages::nothing_to_say());
    }
    let sentences = sentences.into_iter().map(|sentence| sentence.text);
    if args.sentences {
        let lines: String = sentences.map(|sentence| sentence + "\n").collect();
        // A text may hold anything; a terminal must show what is there.
        let shown = crate::plain::for_terminal(&display_escape::escape(&lines));
        output::text(&shown).map_err(|error| messages::output_failed(&error))?;
        return Ok(CliExit::Done);
    }
    let choice = ModelArgs { config: args.config.clone(), ..ModelArgs::default() };
    let settings = setup::load_settings(&choice)?;
    let surroundings = setup::surroundings(&choice);
    let voice = voice::open(&settings, &surroundings, args.voice.as_deref());
    let voice = voice.map_err(|error| messages::voice_failed(&error))?;
    let mut sink = SoundSink::of(args.output.as_deref(), &surroundings)?;
    for sentence in sentences {
        speak(&voice, sentence, &mut sink).await?;
    }
    sink.finish().await?;
    Ok(CliExit::Done)
}

fn read_text(text: Option<&str>) -> Result<String, CliFailure> {
    if let Some(text) = text.filter(|text| *text != STDIO) {
        return Ok(text.to_owned());
    }
    if io::stdin().is_terminal() {
        errln!("{}", messages::say_reads_stdin());
    }
    let mut text = String::new();
    let mut stdin = io::stdin().take(TEXT_BYTES_MAX + 1);
    stdin.read_to_string(&mut text).map_err(|error| messages::input_failed(&error))?;
    if text.len() as u64 > TEXT_BYTES_MAX {
        return Err(messages::say_text_too_long(TEXT_BYTES_MAX));
    }
    Ok(text)
}

/// Synthesizes one sentence into the sink as its sound arrives.
async fn speak(voice: &Arc<dyn Voice>, sentence: String, sink: &mut SoundSink) -> Result<(), CliFailure> {
    let failed = |error: voice::VoiceError| messages::voice_failed(&error);
    let request = SpeechRequest::new(sentence).format(AudioFormat::Wav);
    let mut audio = voice.speak(request).await.map_err(failed)?;
    let (mut start, mut samples) = (Vec::new(), None::<WavSamples>);
    while let Some(piece) = audio.body.next().await {
        let piece = piece.map_err(failed)?;
        if let Some(samples) = &mut samples {
            sink.write(samples.take(&piece)).await?;
            continue;
        }
        start.extend(piece);
        if let Some(wav) = wav_start(&start).map_err(messages::unusable_sound)? {
            sink.begin(&wav).await?;
            let mut first = WavSamples::of(&wav);
            sink.write(first.take(start.get(wav.data..).unwrap_or_default())).await?;
            samples = Some(first);
        }
    }
    if samples.is_none() {
        return Err(messages::no_sound());
    }
    sink.end_sentence().await
}

/// Destination of the sound: one file or one player for all sentences.
struct SoundSink {
    target: SoundTarget,
    /// Known once the first sentence has begun.
    sample_rate_hz: Option<u32>,
    /// Length of the samples so far, in bytes.
    bytes: u64,
}

enum SoundTarget {
    /// Created when sound arrives: an existing file stays if the voice fails.
    File {
        path: PathBuf,
        file: Option<File>,
    },
    Stdout,
    Player(Box<Player>),
}

impl SoundSink {
    fn of(output: Option<&Path>, surroundings: &SpawnContext) -> Result<Self, CliFailure> {
        let target = match output {
            None => {
                SoundTarget::Player(Box::new(Player::find(surroundings).ok_or_else(messages::no_player)?))
            }
            Some(path) if path.as_os_str() == STDIO => {
                if io::stdout().is_terminal() {
                    return Err(messages::sound_on_terminal());
                }
                SoundTarget::Stdout
            }
            Some(path) => SoundTarget::File { path: path.to_owned(), file: None },
        };
        Ok(Self { target, sample_rate_hz: None, bytes: 0 })
    }

    /// A sentence begins. All of them must sound alike.
    async fn begin(&mut self, wav: &WavStart) -> Result<(), CliFailure> {
        if !wav.is_plain || self.sample_rate_hz.is_some_and(|rate| rate != wav.sample_rate_hz) {
            return Err(messages::mixed_sound());
        }
        if self.sample_rate_hz.replace(wav.sample_rate_hz).is_some() {
            return Ok(());
        }
        match &mut self.target {
            SoundTarget::Stdout => {}
            SoundTarget::Player(player) => {
                let started = player.start(wav.sample_rate_hz);
                started.map_err(|error| messages::player_failed(player.name(), &error))?;
                if player.is_raw() {
                    return Ok(());
                }
            }
            SoundTarget::File { path, file } => {
                let created = File::create(&*path);
                *file = Some(created.map_err(|error| messages::sound_not_written(path, &error))?);
            }
        }
        self.write_raw(&wav_header(wav.sample_rate_hz, None)).await
    }

    async fn write(&mut self, samples: &[u8]) -> Result<(), CliFailure> {
        self.bytes += samples.len() as u64;
        self.write_raw(samples).await
    }

    /// Half a sample would turn all that follow into noise.
    async fn end_sentence(&mut self) -> Result<(), CliFailure> {
        if self.bytes.is_multiple_of(2) { Ok(()) } else { self.write(&[0]).await }
    }

    async fn write_raw(&mut self, bytes: &[u8]) -> Result<(), CliFailure> {
        match &mut self.target {
            SoundTarget::File { path, file: Some(file) } => {
                file.write_all(bytes).map_err(|error| messages::sound_not_written(path, &error))
            }
            SoundTarget::File { file: None, .. } => Ok(()),
            SoundTarget::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(bytes)
                    .and_then(|()| out.flush())
                    .map_err(|error| messages::output_failed(&error))
            }
            SoundTarget::Player(player) => {
                let written = player.write(bytes).await;
                written.map_err(|error| messages::player_failed(player.name(), &error))
            }
        }
    }

    /// Finishes the output after the last sentence.
    async fn finish(self) -> Result<(), CliFailure> {
        match self.target {
            SoundTarget::Stdout => Ok(()),
            SoundTarget::Player(player) => {
                let name = player.name();
                player.finish().await.map_err(|error| messages::player_failed(name, &error))
            }
            SoundTarget::File { file: None, .. } => Ok(()),
            SoundTarget::File { path, file: Some(mut file) } => {
                // Its length is known only now.
                let length = u32::try_from(self.bytes).ok();
                let header = wav_header(self.sample_rate_hz.unwrap_or_default(), length);
                let written = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&header));
                written.map_err(|error| messages::sound_not_written(&path, &error))
            }
        }
    }
}
