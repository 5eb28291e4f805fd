//! Engines that are programs of this machine: confined and ended like programs of tools.

use super::settings::{AudioProgram, VoiceSettings};
use super::wav::{WavSamples, WavStart, wav_header, wav_start};
use super::{
    AudioFormat, Ears, PCM_SAMPLE_RATE_HZ, SPEECH_BYTES_MAX, SpeechAudio, SpeechRequest,
    TRANSCRIPT_BYTES_MAX, Transcript, TranscriptionRequest, Voice, VoiceError, check_text,
};
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use std::fmt;
use std::time::Duration;
use throughline_tools::process::{ChildProcess, RunAs, SpawnContext, StderrLog};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdout;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 16 << 10;

/// A program of a section, ready to be started for each request.
#[derive(Clone)]
struct AudioRunner {
    name: String,
    program: AudioProgram,
    surroundings: SpawnContext,
}

impl AudioRunner {
    fn new(name: &str, program: AudioProgram, surroundings: SpawnContext) -> Self {
        Self { name: name.to_owned(), program, surroundings }
    }

    fn failed(&self, message: impl Into<String>) -> VoiceError {
        VoiceError::Program { name: self.name.clone(), message: message.into(), stderr: String::new() }
    }

    /// Starts the program on this input.
    fn start(&self, input: Vec<u8>) -> Result<RunningProgram, VoiceError> {
        // Found anew each time: it may have been installed since.
        let spec = self.program.settings.spec(&self.surroundings);
        let (spec, secrets) = spec.map_err(|error| self.failed(error.message))?;
        let mut child = spec.start().map_err(|error| self.failed(error.to_string()))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        if let Some(mut stdin) = stdin {
            // A program may end without having read everything. The task ends with the program.
            tokio::spawn(async move {
                let _ = stdin.write_all(&input).await;
                let _ = stdin.shutdown().await;
            });
        }
        let complaints = tokio::spawn(async move {
            let mut log = StderrLog::new(&secrets);
            let mut chunk = vec![0; CHUNK_BYTES];
            if let Some(mut stderr) = stderr {
                while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
                    log.push(&chunk[..read]);
                }
            }
            log.finish()
        });
        let time_left = Duration::from_millis(self.program.timeout_ms);
        Ok(RunningProgram { runner: self.clone(), child, stdout, complaints, time_left, bytes: 0 })
    }
}

/// A program that works on one request. Dropping it kills the program with all of its children.
struct RunningProgram {
    runner: AudioRunner,
    child: ChildProcess,
    stdout: Option<ChildStdout>,
    complaints: JoinHandle<String>,
    /// Remaining time for the program's output; the time of a slow listener is not counted.
    time_left: Duration,
    bytes: usize,
}

impl RunningProgram {
    /// The next piece of output; `None` at the end of a program that succeeded.
    async fn next(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, VoiceError> {
        let asked_at = Instant::now();
        let piece = timeout(self.time_left, self.read(bytes_max)).await;
        self.time_left = self.time_left.saturating_sub(asked_at.elapsed());
        piece.unwrap_or_else(|_| {
            let timeout_ms = self.runner.program.timeout_ms;
            Err(self.runner.failed(format!("it took longer than {timeout_ms} ms (timeout_ms)")))
        })
    }

    async fn read(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, VoiceError> {
        if let Some(stdout) = &mut self.stdout {
            let mut chunk = vec![0; CHUNK_BYTES];
            match stdout.read(&mut chunk).await {
                Ok(read @ 1..) => {
                    self.bytes += read;
                    if self.bytes > bytes_max {
                        return Err(self.runner.failed(format!("it wrote more than {bytes_max} bytes")));
                    }
                    chunk.truncate(read);
                    return Ok(Some(chunk));
                }
                Ok(0) => self.stdout = None,
                Err(error) => return Err(self.runner.failed(error.to_string())),
            }
        }
        let exit = self.child.wait().await.map_err(|error| self.runner.failed(error.to_string()))?;
        if exit.is_success() {
            return Ok(None);
        }
        let how = match (exit.code, exit.signal) {
            (Some(code), _) => format!("it exited with code {code}"),
            (None, Some(signal)) => format!("it was killed by signal {signal}"),
            (None, None) => "it ended, exit status unknown".to_owned(),
        };
        let stderr = (&mut self.complaints).await.unwrap_or_default();
        Err(VoiceError::Program { name: self.runner.name.clone(), message: how, stderr })
    }

    /// The rest of the output, after `first`; of a WAV file only its samples.
    fn into_stream(
        self,
        first: Vec<u8>,
        samples: Option<WavSamples>,
    ) -> BoxStream<'static, Result<Vec<u8>, VoiceError>> {
        let rest = stream::unfold(Some((self, samples)), |running| async {
            let (mut running, mut samples) = running?;
            match running.next(SPEECH_BYTES_MAX).await {
                Ok(None) => None,
                Ok(Some(piece)) => {
                    let piece =
                        samples.as_mut().map_or(piece.as_slice(), |samples| samples.take(&piece)).to_vec();
                    Some((Ok(piece), Some((running, samples))))
                }
                Err(error) => Some((Err(error), None)),
            }
        });
        let first = (!first.is_empty()).then_some(Ok(first));
        stream::iter(first).chain(rest).boxed()
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        self.complaints.abort();
    }
}

/// A program that synthesizes speech.
pub(super) struct ProgramVoice {
    runner: AudioRunner,
    /// `wav` or `pcm`.
    output: AudioFormat,
    sample_rate_hz: u32,
}

impl ProgramVoice {
    pub(super) fn new(
        name: &str,
        program: AudioProgram,
        voice: &VoiceSettings,
        surroundings: SpawnContext,
    ) -> Self {
        Self {
            runner: AudioRunner::new(name, program, surroundings),
            output: voice.format.unwrap_or(AudioFormat::Wav),
            sample_rate_hz: voice.sample_rate_hz,
        }
    }

    fn unsupported(&self, asked: AudioFormat, offered: &str) -> VoiceError {
        let (name, offered) = (self.runner.name.clone(), offered.to_owned());
        VoiceError::UnsupportedFormat { name, offered, asked: asked.name() }
    }
}

impl fmt::Debug for ProgramVoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProgramVoice({})", self.runner.name)
    }
}

#[async_trait]
impl Voice for ProgramVoice {
    async fn speak(&self, request: SpeechRequest) -> Result<SpeechAudio, VoiceError> {
        check_text(&request.text)?;
        let is_other_speed = request.speed.is_some_and(|speed| speed != 1.0);
        for (field, is_set) in [("speed", is_other_speed), ("instructions", request.instructions.is_some())] {
            if is_set {
                return Err(VoiceError::UnsupportedField { name: self.runner.name.clone(), field });
            }
        }
        let asked = request.format.unwrap_or(AudioFormat::Wav);
        if !matches!(asked, AudioFormat::Wav | AudioFormat::Pcm) {
            return Err(self.unsupported(asked, "wav and pcm"));
        }
        if (self.output, asked) == (AudioFormat::Pcm, AudioFormat::Pcm)
            && self.sample_rate_hz != PCM_SAMPLE_RATE_HZ
        {
            return Err(self.unsupported(asked, "wav"));
        }
        let mut text = request.text;
        text.push('\n');
        let mut running = self.runner.start(text.into_bytes())?;
        // A program that fails to start is reported as an error of the request.
        let mut first = Vec::new();
        let start = loop {
            let Some(piece) = running.next(SPEECH_BYTES_MAX).await? else {
                return Err(self.runner.failed("it wrote no audio"));
            };
            first.extend(piece);
            if self.output == AudioFormat::Pcm {
                let sample_rate_hz = self.sample_rate_hz;
                break WavStart { data: 0, data_bytes: None, sample_rate_hz, is_plain: true };
            }
            if let Some(start) = wav_start(&first).map_err(|why| self.runner.failed(why))? {
                break start;
            }
        };
        let mut samples = (asked == AudioFormat::Pcm).then(|| WavSamples::of(&start));
        let first = match (asked, self.output) {
            (AudioFormat::Pcm, _) if !start.is_plain || start.sample_rate_hz != PCM_SAMPLE_RATE_HZ => {
                return Err(self.unsupported(asked, "wav"));
            }
            (AudioFormat::Pcm, _) => {
                let first = first.get(start.data..).unwrap_or_default();
                samples.as_mut().map_or(first, |samples| samples.take(first)).to_vec()
            }
            (_, AudioFormat::Pcm) => [&wav_header(start.sample_rate_hz, None)[..], &first].concat(),
            _ => first,
        };
        Ok(SpeechAudio {
            content_type: asked.content_type().to_owned(),
            body: running.into_stream(first, samples),
        })
    }
}

/// A program that transcribes recordings.
pub(super) struct ProgramEars(AudioRunner);

impl ProgramEars {
    pub(super) fn new(name: &str, program: AudioProgram, surroundings: SpawnContext) -> Self {
        Self(AudioRunner::new(name, program, surroundings))
    }
}

impl fmt::Debug for ProgramEars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProgramEars({})", self.0.name)
    }
}

#[async_trait]
impl Ears for ProgramEars {
    async fn transcribe(&self, request: TranscriptionRequest) -> Result<Transcript, VoiceError> {
        let Self(runner) = self;
        if Transcript::from_text("", request.format).is_none() {
            return Err(VoiceError::UnsupportedFormat {
                name: runner.name.clone(),
                offered: "json and text".to_owned(),
                asked: request.format.name(),
            });
        }
        let mut running = runner.start(request.recording)?;
        let mut text = Vec::new();
        while let Some(piece) = running.next(TRANSCRIPT_BYTES_MAX).await? {
            text.extend(piece);
        }
        let text = String::from_utf8(text).map_err(|_| runner.failed("its output is not UTF-8"))?;
        Transcript::from_text(&text, request.format).ok_or_else(|| runner.failed("its output is not text"))
    }
}

/// Surroundings with the user of `[tools] run_as`.
pub(super) fn surroundings_as(surroundings: &SpawnContext, run_as: Option<&str>) -> SpawnContext {
    let mut surroundings = surroundings.clone();
    if let Some(name) = run_as {
        surroundings.run_as = RunAs::from_setting(name);
    }
    surroundings
}
