//! `[voices.NAME]` and `[ears.NAME]`.

use super::{AUDIO_CONCURRENT_MAX, AUDIO_TIMEOUT_MS, AudioFormat, PCM_SAMPLE_RATE_HZ};
use crate::config::{ConfigError, ConfigFile, EnvVars, looks_like_key};
use crate::upstream::{Upstream, UpstreamTimeouts};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use throughline_tools::process::{ProcessLimits, ProgramSettings, SandboxSettings, SpawnContext};
use throughline_wire::Dialect;
use toml::Spanned;

/// Kind of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AudioSourceKind {
    /// A server with OpenAI's audio API.
    Openai,
    /// A program.
    Command,
}

impl AudioSourceKind {
    /// Name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Command => "command",
        }
    }
}

/// A section with the settings of an engine of either kind, and those that only voices or ears have.
macro_rules! engine_section {
    ($(#[$meta:meta])* $name:ident { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// `openai`: a server with OpenAI's audio API. `command`: a program.
            pub kind: AudioSourceKind,
            /// Address of the server.
            #[serde(default)]
            pub base_url: Option<String>,
            /// Name of the environment variable with its key. Default: no key.
            #[serde(default)]
            pub key_env: Option<String>,
            /// Model at the server.
            #[serde(default)]
            pub model: Option<String>,
            /// The program and its arguments. It reads standard input and writes standard output.
            #[serde(default)]
            pub argv: Vec<String>,
            /// Variables that the program gets as we have them.
            #[serde(default)]
            pub env_allow: Vec<String>,
            /// Variables that the program gets with these values; `"$NAME"` takes one of ours.
            #[serde(default)]
            pub env: BTreeMap<String, String>,
            /// Working directory of the program. Default: a new, empty folder.
            #[serde(default)]
            pub cwd: Option<PathBuf>,
            /// Files and network that the program may reach.
            #[serde(default)]
            pub sandbox: SandboxSettings,
            /// Resources that the program may use.
            #[serde(default)]
            pub limits: ProcessLimits,
            /// Time for one request, in milliseconds. Default 120,000.
            #[serde(default)]
            pub timeout_ms: Option<u64>,
            /// Number of requests in parallel. Default 4.
            #[serde(default)]
            pub concurrent_max: Option<usize>,
            $($own)*
        }

        impl $name {
            fn program(&self) -> AudioProgram {
                AudioProgram {
                    settings: ProgramSettings {
                        argv: self.argv.clone(),
                        env_allow: self.env_allow.clone(),
                        env: self.env.clone(),
                        cwd: self.cwd.clone(),
                        sandbox: self.sandbox.clone(),
                        limits: self.limits,
                    },
                    timeout_ms: self.timeout_ms.unwrap_or(AUDIO_TIMEOUT_MS),
                }
            }
        }
    };
}

engine_section! {
    /// `[voices.NAME]`. A program reads the text and writes the sound.
    VoiceSection {
        /// The speaker, by the server's name for it.
        #[serde(default)]
        pub voice: Option<String>,
        /// 0.25 to 4. Default: the engine's own.
        #[serde(default)]
        pub speed: Option<f64>,
        /// Format of a server's sound, unless a request sets another; of a program's output: `wav` (default)
        /// or `pcm`.
        #[serde(default)]
        pub format: Option<AudioFormat>,
        /// Samples of a second where a program writes `pcm`. Default 24,000.
        #[serde(default)]
        pub sample_rate_hz: Option<u32>,
    }
}

engine_section! {
    /// `[ears.NAME]`. A program reads the recording and writes the text.
    EarsSection {
        /// `en`, `zh`. Default: the engine finds out.
        #[serde(default)]
        pub language: Option<String>,
    }
}

/// A voice that can be used, as far as a configuration shows.
#[derive(Clone, Debug)]
pub struct VoiceSettings {
    pub(crate) engine: AudioEngine,
    pub(crate) speaker: Option<String>,
    pub(crate) speed: Option<f64>,
    pub(crate) format: Option<AudioFormat>,
    pub(crate) sample_rate_hz: u32,
    pub(crate) concurrent_max: usize,
}

/// Ears that can be used, as far as a configuration shows.
#[derive(Clone, Debug)]
pub struct EarsSettings {
    pub(crate) engine: AudioEngine,
    pub(crate) language: Option<String>,
    pub(crate) concurrent_max: usize,
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there are few of them")]
pub(crate) enum AudioEngine {
    Server { upstream: Upstream, model: String },
    Program(AudioProgram),
}

/// A program, and the time that it has for one request.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "process"), allow(dead_code, reason = "never started"))]
pub(crate) struct AudioProgram {
    pub(crate) settings: ProgramSettings,
    pub(crate) timeout_ms: u64,
}

impl AudioEngine {
    pub(crate) fn kind(&self) -> AudioSourceKind {
        match self {
            Self::Server { .. } => AudioSourceKind::Openai,
            Self::Program(_) => AudioSourceKind::Command,
        }
    }

    /// Values that must be redacted.
    pub(crate) fn secrets(&self, surroundings: &SpawnContext) -> Vec<String> {
        match self {
            Self::Server { upstream, .. } => upstream.secrets(),
            Self::Program(program) => program.settings.secret_values(surroundings),
        }
    }
}

/// The part that both kinds of sections have.
struct EngineSection<'a> {
    /// `voices` or `ears`.
    section: &'static str,
    name: &'a str,
    kind: AudioSourceKind,
    base_url: &'a Option<String>,
    key_env: &'a Option<String>,
    model: &'a Option<String>,
    program: AudioProgram,
    /// Settings of the other kind that are set.
    foreign: Vec<&'static str>,
}

/// Bounds of `speed`: those of OpenAI's API.
const SPEED: std::ops::RangeInclusive<f64> = 0.25..=4.0;
/// Bounds of `sample_rate_hz`: telephones and studios.
const SAMPLE_RATES_HZ: std::ops::RangeInclusive<u32> = 8_000..=192_000;

pub(crate) fn resolve_voices(
    file: &ConfigFile,
    environment: &EnvVars,
) -> Result<BTreeMap<String, VoiceSettings>, ConfigError> {
    let mut voices = BTreeMap::new();
    for (name, spanned) in &file.voices {
        let s = spanned.get_ref();
        let is_set = |is_set: bool, name: &'static str| is_set.then_some(name);
        let foreign = match s.kind {
            AudioSourceKind::Openai => {
                vec![is_set(!s.argv.is_empty(), "argv"), is_set(s.sample_rate_hz.is_some(), "sample_rate_hz")]
            }
            AudioSourceKind::Command => vec![
                is_set(s.base_url.is_some(), "base_url"),
                is_set(s.key_env.is_some(), "key_env"),
                is_set(s.model.is_some(), "model"),
                is_set(s.voice.is_some(), "voice"),
                is_set(s.speed.is_some(), "speed"),
            ],
        };
        let section = EngineSection {
            section: "voices",
            name,
            kind: s.kind,
            base_url: &s.base_url,
            key_env: &s.key_env,
            model: &s.model,
            program: s.program(),
            foreign: foreign.into_iter().flatten().collect(),
        };
        let at = |key: &'static str, message: String| file.error_at_key(spanned, Some(key), message);
        if let Some(speed) = s.speed.filter(|speed| !SPEED.contains(speed)) {
            return Err(at("speed", format!("the speed {speed} is not supported")).help("0.25 to 4"));
        }
        if s.kind == AudioSourceKind::Command
            && let Some(format) =
                s.format.filter(|format| !matches!(format, AudioFormat::Wav | AudioFormat::Pcm))
        {
            let message = format!("a program cannot produce {}", format.name());
            return Err(at("format", message).help("\"wav\" or \"pcm\""));
        }
        let sample_rate_hz = s.sample_rate_hz.unwrap_or(PCM_SAMPLE_RATE_HZ);
        if !SAMPLE_RATES_HZ.contains(&sample_rate_hz) {
            let message = format!("a sample rate of {sample_rate_hz} Hz is not supported");
            return Err(at("sample_rate_hz", message).help("8000 to 192000"));
        }
        let engine = resolve_engine(file, spanned, section, environment)?;
        let concurrent_max = concurrent(file, spanned, s.concurrent_max)?;
        let (speaker, speed, format) = (s.voice.clone(), s.speed, s.format);
        let voice = VoiceSettings { engine, speaker, speed, format, sample_rate_hz, concurrent_max };
        voices.insert(name.clone(), voice);
    }
    Ok(voices)
}

pub(crate) fn resolve_ears(
    file: &ConfigFile,
    environment: &EnvVars,
) -> Result<BTreeMap<String, EarsSettings>, ConfigError> {
    let mut ears = BTreeMap::new();
    for (name, spanned) in &file.ears {
        let s = spanned.get_ref();
        let is_set = |is_set: bool, name: &'static str| is_set.then_some(name);
        let foreign = match s.kind {
            AudioSourceKind::Openai => vec![is_set(!s.argv.is_empty(), "argv")],
            AudioSourceKind::Command => vec![
                is_set(s.base_url.is_some(), "base_url"),
                is_set(s.key_env.is_some(), "key_env"),
                is_set(s.model.is_some(), "model"),
                is_set(s.language.is_some(), "language"),
            ],
        };
        let section = EngineSection {
            section: "ears",
            name,
            kind: s.kind,
            base_url: &s.base_url,
            key_env: &s.key_env,
            model: &s.model,
            program: s.program(),
            foreign: foreign.into_iter().flatten().collect(),
        };
        let engine = resolve_engine(file, spanned, section, environment)?;
        let concurrent_max = concurrent(file, spanned, s.concurrent_max)?;
        ears.insert(name.clone(), EarsSettings { engine, language: s.language.clone(), concurrent_max });
    }
    Ok(ears)
}

fn concurrent<T>(file: &ConfigFile, spanned: &Spanned<T>, set: Option<usize>) -> Result<usize, ConfigError> {
    match set {
        Some(0) => {
            let message = "`concurrent_max` must not be 0";
            Err(file
                .error_at_key(spanned, Some("concurrent_max"), message)
                .help("omit it to use the default"))
        }
        set => Ok(set.unwrap_or(AUDIO_CONCURRENT_MAX)),
    }
}

fn resolve_engine<T>(
    file: &ConfigFile,
    spanned: &Spanned<T>,
    section: EngineSection<'_>,
    environment: &EnvVars,
) -> Result<AudioEngine, ConfigError> {
    let at = |key: Option<&str>, message: String| file.error_at_key(spanned, key, message);
    let EngineSection { section: sections, name, kind, base_url, key_env, model, program, foreign } = section;
    if let Some(key) = foreign.first() {
        let message = format!("`{key}` does not apply to kind {}", kind.name());
        return Err(at(Some(key), message).help("remove it, or correct `kind`"));
    }
    if program.timeout_ms == 0 {
        let message = "a timeout must not be 0 ms".to_owned();
        return Err(at(Some("timeout_ms"), message).help("omit it to use the default"));
    }
    if kind == AudioSourceKind::Command {
        if program.settings.argv.first().is_none_or(String::is_empty) {
            let message = format!("`{sections}.{name}` specifies no program");
            return Err(at(None, message).help("argv = [\"espeak-ng\", \"--stdout\"]"));
        }
        return Ok(AudioEngine::Program(program));
    }
    let (Some(base_url), Some(model)) = (base_url, model) else {
        let message = format!("`{sections}.{name}` lacks `base_url` or `model`");
        return Err(at(None, message).help("base_url = \"http://127.0.0.1:8880/v1\" and model = \"…\""));
    };
    // Names of upstreams have no slash, and this one is seen in messages only.
    let upstream = Upstream::new(name.replace('/', "-"), Dialect::OpenaiChat, base_url)
        .map_err(|error| at(Some("base_url"), error.to_string()))?;
    let usual = UpstreamTimeouts::default();
    let timeout_ms = program.timeout_ms;
    // Sound lasts as long as it is listened to; `idle_ms` limits silence of the engine.
    let total_ms = if sections == "voices" { timeout_ms.max(usual.total_ms) } else { timeout_ms };
    let mut upstream = upstream.timeouts(UpstreamTimeouts { first_byte_ms: timeout_ms, total_ms, ..usual });
    if let Some(variable) = key_env {
        if looks_like_key(variable) {
            let message = "`key_env` takes the name of an environment variable, but this looks like a key";
            return Err(at(Some("key_env"), message.to_owned())
                .without_values()
                .help("set key_env = \"MY_API_KEY\" and put the key into that variable"));
        }
        upstream = upstream.with_key_value(variable, environment.get(variable).cloned());
    }
    Ok(AudioEngine::Server { upstream, model: model.clone() })
}
