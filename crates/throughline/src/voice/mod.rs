//! Speech: voices, which synthesize a text, and ears, which transcribe a recording.
//!
//! Both are traits, so that a program can implement them. Those of a configuration (`[voices.NAME]`,
//! `[ears.NAME]`) are servers with OpenAI's audio API, or programs on this machine.
//!
//! ```
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! use futures_util::StreamExt;
//! use throughline::voice::SpeechRequest;
//! use throughline::{Throughline, config};
//! # let fake = throughline_testkit::FakeVoice::start().await?;
//!
//! let text = r#"
//!     [voices.local]
//!     kind = "openai"
//!     base_url = "http://127.0.0.1:8880/v1"
//!     model = "kokoro"
//! "#;
//! # let text = &text.replace("http://127.0.0.1:8880/v1", &fake.base_url());
//! let file = config::ConfigFile::parse("throughline.toml", text)?;
//! let settings = config::resolve(Some(file), &config::EnvVars::new(), &config::ConfigFlags::default())?;
//! # let demo = throughline::Upstream::new("demo", throughline::wire::Dialect::OpenaiChat, &fake.base_url())?;
//! # let builder = Throughline::builder().upstream(demo);
//! # let _ = stringify!(
//! let app = Throughline::builder().settings(settings).build()?;
//! # );
//! # let app = builder.settings(settings).build()?;
//! let mut audio = app.voice(None)?.speak(SpeechRequest::new("Hello.")).await?;
//! while let Some(piece) = audio.body.next().await {
//!     let _bytes: Vec<u8> = piece?;
//! }
//! # assert_eq!(fake.requests()[0].text, "Hello.");
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod openai;
#[cfg(feature = "process")]
mod program;
mod settings;
mod source;
mod wav;

pub use settings::{AudioSourceKind, EarsSection, EarsSettings, VoiceSection, VoiceSettings};
pub(crate) use settings::{resolve_ears, resolve_voices};
pub use source::open;
pub(crate) use source::{AudioSources, infos, pick};
pub use wav::{WavSamples, WavStart, wav_header, wav_start};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use std::fmt;
use throughline_engine::UpstreamFailure;

/// Longest text of one request, in characters. The limit of OpenAI's API; sentences are far shorter.
pub const SPEECH_TEXT_CHARS_MAX: usize = 4_096;
/// Maximum size of one synthesized text, in bytes: 23 minutes of 16-bit sound at 24 kHz.
pub const SPEECH_BYTES_MAX: usize = 64 << 20;
/// Largest recording, in bytes. The limit of OpenAI's API.
pub const RECORDING_BYTES_MAX: usize = 25 << 20;
/// Longest transcript, in bytes.
pub const TRANSCRIPT_BYTES_MAX: usize = 1 << 20;
/// Default of `timeout_ms`, the time for one synthesis or one transcription, in milliseconds.
pub const AUDIO_TIMEOUT_MS: u64 = 120_000;
/// Maximum time that sound waits for a listener, in milliseconds: then the voice is free for others.
pub const SPEECH_STALL_MS: u64 = 30_000;
/// Default of `concurrent_max`, the number of texts or recordings that one engine processes in parallel.
pub const AUDIO_CONCURRENT_MAX: usize = 4;
/// Samples of a second of `pcm`: 16-bit, little-endian, mono.
pub const PCM_SAMPLE_RATE_HZ: u32 = 24_000;

/// A speech synthesizer.
#[async_trait]
pub trait Voice: Send + Sync + fmt::Debug {
    /// Synthesizes a text. Dropping the answer stops the voice.
    ///
    /// # Errors
    /// The text or the format is not supported, or the engine does not answer. A later failure is an item of
    /// the body.
    async fn speak(&self, request: SpeechRequest) -> Result<SpeechAudio, VoiceError>;
}

/// A speech recognizer.
#[async_trait]
pub trait Ears: Send + Sync + fmt::Debug {
    /// Writes down a recording. Dropping the future stops it.
    ///
    /// # Errors
    /// The recording or the format is not understood, or the engine does not answer.
    async fn transcribe(&self, request: TranscriptionRequest) -> Result<Transcript, VoiceError>;
}

/// A text to synthesize.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpeechRequest {
    /// Text, at most [`SPEECH_TEXT_CHARS_MAX`] characters.
    pub text: String,
    /// The speaker, by the engine's name for it. `None` = the configured one.
    pub speaker: Option<String>,
    /// 1 is the engine's own speed. `None` = the configured one.
    pub speed: Option<f64>,
    /// `None` = the configured one, or the engine's own.
    pub format: Option<AudioFormat>,
    /// Instructions on tone and manner, for engines that accept them.
    pub instructions: Option<String>,
}

impl SpeechRequest {
    /// A request for a text with the configured voice, format and speed.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Sets the format.
    #[must_use]
    pub fn format(self, format: AudioFormat) -> Self {
        Self { format: Some(format), ..self }
    }
}

/// Synthesized speech, as a stream.
pub struct SpeechAudio {
    /// `audio/wav`, `audio/mpeg`, …
    pub content_type: String,
    /// The bytes. Dropping it stops the voice.
    pub body: BoxStream<'static, Result<Vec<u8>, VoiceError>>,
}

impl fmt::Debug for SpeechAudio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpeechAudio").field("content_type", &self.content_type).finish_non_exhaustive()
    }
}

/// Formats of sound, by the names of OpenAI's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AudioFormat {
    /// MP3.
    Mp3,
    /// Opus in Ogg.
    Opus,
    /// AAC.
    Aac,
    /// FLAC.
    Flac,
    /// WAV.
    Wav,
    /// Samples alone: 16-bit, little-endian, mono, [`PCM_SAMPLE_RATE_HZ`].
    Pcm,
}

impl AudioFormat {
    /// All formats.
    pub const ALL: [AudioFormat; 6] = [Self::Mp3, Self::Opus, Self::Aac, Self::Flac, Self::Wav, Self::Pcm];

    /// Name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mp3 => "mp3",
            Self::Opus => "opus",
            Self::Aac => "aac",
            Self::Flac => "flac",
            Self::Wav => "wav",
            Self::Pcm => "pcm",
        }
    }

    /// Media type of the format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Mp3 => "audio/mpeg",
            Self::Opus => "audio/ogg",
            Self::Aac => "audio/aac",
            Self::Flac => "audio/flac",
            Self::Wav => "audio/wav",
            Self::Pcm => "audio/pcm",
        }
    }
}

/// A recording to write down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TranscriptionRequest {
    /// The recording, at most [`RECORDING_BYTES_MAX`].
    pub recording: Vec<u8>,
    /// File name, from which engines derive the format.
    pub file_name: String,
    /// Media type of the recording.
    pub content_type: String,
    /// `en`, `zh`. `None` = the configured one, or the engine finds out.
    pub language: Option<String>,
    /// Words that the recording is likely to contain.
    pub prompt: Option<String>,
    /// 0 to 1.
    pub temperature: Option<f64>,
    /// Form of the answer.
    pub format: TranscriptFormat,
}

/// Forms of a transcript, by the names of OpenAI's API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TranscriptFormat {
    /// `{"text": "…"}`.
    #[default]
    Json,
    /// The text alone.
    Text,
    /// JSON with times.
    VerboseJson,
    /// Subtitles.
    Srt,
    /// Subtitles of the web.
    Vtt,
}

impl TranscriptFormat {
    /// Name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
            Self::VerboseJson => "verbose_json",
            Self::Srt => "srt",
            Self::Vtt => "vtt",
        }
    }
}

/// A transcription, in the requested form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// `application/json` or a kind of text.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Transcript {
    /// A text in a form without times; `None` for the others.
    pub(crate) fn from_text(text: &str, format: TranscriptFormat) -> Option<Self> {
        let text = text.trim();
        match format {
            TranscriptFormat::Json => Some(Self {
                content_type: "application/json".to_owned(),
                body: serde_json::json!({ "text": text }).to_string().into_bytes(),
            }),
            TranscriptFormat::Text => {
                Some(Self { content_type: "text/plain; charset=utf-8".to_owned(), body: text.into() })
            }
            _ => None,
        }
    }
}

/// A voice or ears, as a list shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AudioSourceInfo {
    /// Name in the configuration.
    pub name: String,
    /// Kind of engine.
    pub kind: AudioSourceKind,
    /// True if the engine is used when a request names none.
    pub is_default: bool,
}

/// Reasons why a text is not synthesized or a recording not transcribed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VoiceError {
    /// None is configured.
    #[error("no {what} is configured")]
    NotConfigured {
        /// `voice` or `ears`.
        what: &'static str,
    },
    /// None of this name is configured.
    #[error("there is no {what} `{name}`; there are {names}")]
    Unknown {
        /// `voice` or `ears`.
        what: &'static str,
        /// The requested name.
        name: String,
        /// Names of the configured engines.
        names: String,
    },
    /// Several are configured, none is called `default`, and none was named.
    #[error("several are configured, and the request names none: {names}")]
    Ambiguous {
        /// Names of the configured engines.
        names: String,
    },
    /// The text is empty.
    #[error("the text is empty")]
    NoText,
    /// The text has more than [`SPEECH_TEXT_CHARS_MAX`] characters.
    #[error("the text has {chars} characters, more than {SPEECH_TEXT_CHARS_MAX}")]
    TextTooLong {
        /// Length of the text in characters.
        chars: usize,
    },
    /// The recording is larger than [`RECORDING_BYTES_MAX`].
    #[error("the recording has {bytes} bytes, more than {RECORDING_BYTES_MAX}")]
    RecordingTooLarge {
        /// Size of the recording in bytes.
        bytes: usize,
    },
    /// A program gives one format and not another.
    #[error("`{name}` provides {offered}, not {asked}")]
    UnsupportedFormat {
        /// Name in the configuration.
        name: String,
        /// Possible formats.
        offered: String,
        /// The requested format.
        asked: &'static str,
    },
    /// A program cannot do that.
    #[error("`{name}` is a program and does not support `{field}`")]
    UnsupportedField {
        /// Name in the configuration.
        name: String,
        /// The field of the request.
        field: &'static str,
    },
    /// The client has read no sound for [`SPEECH_STALL_MS`].
    #[error("`{name}` was stopped: its audio was not read for {SPEECH_STALL_MS} ms")]
    Stalled {
        /// Name in the configuration.
        name: String,
    },
    /// The engine already processes its maximum number of requests.
    #[error("`{name}` is busy: {concurrent_max} requests are running, its limit (concurrent_max)")]
    Busy {
        /// Name in the configuration.
        name: String,
        /// The limit.
        concurrent_max: usize,
    },
    /// A server did not do it.
    #[error("`{name}`: {}", .failure.message)]
    Engine {
        /// Name in the configuration.
        name: String,
        /// Failure as the server reports it, without the key.
        failure: UpstreamFailure,
    },
    /// A program did not do it.
    #[error("`{name}`: {message}{}{stderr}", if .stderr.is_empty() { "" } else { ": " })]
    Program {
        /// Name in the configuration.
        name: String,
        /// The reason.
        message: String,
        /// End of the program's standard error, without secrets: for the operator only.
        stderr: String,
    },
}

impl VoiceError {
    /// Remedy for the operator, one sentence.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotConfigured { what: "voice" } => "add a section [voices.NAME] to throughline.toml",
            Self::NotConfigured { .. } => "add a section [ears.NAME] to throughline.toml",
            Self::Unknown { .. } => "use one of those, or `default`",
            Self::Ambiguous { .. } => "select one, or name one of them `default`",
            Self::NoText => "send a text to speak",
            Self::TextTooLong { .. } => "send it in several parts, sentence by sentence",
            Self::RecordingTooLarge { .. } => "send it in several parts, or compressed",
            Self::UnsupportedFormat { .. } => "request one of the formats that it provides",
            Self::UnsupportedField { .. } => "omit the field, or use a voice that a server provides",
            Self::Stalled { .. } => "read the audio as it arrives",
            Self::Busy { .. } => "try again in a moment, or raise concurrent_max",
            Self::Engine { .. } => "check the server, its address and its key in throughline.toml",
            Self::Program { .. } => "run the program by hand with the same arguments",
        }
    }
}

/// Checks the conditions that every voice has.
pub(crate) fn check_text(text: &str) -> Result<(), VoiceError> {
    if text.trim().is_empty() {
        return Err(VoiceError::NoText);
    }
    match text.chars().count() {
        chars if chars > SPEECH_TEXT_CHARS_MAX => Err(VoiceError::TextTooLong { chars }),
        _ => Ok(()),
    }
}
