//! The voices and ears of an application, by name, each with its limit.

use super::openai::{ServerEars, ServerVoice};
#[cfg(feature = "process")]
use super::program::{self, ProgramEars, ProgramVoice};
use super::settings::{AudioEngine, EarsSettings, VoiceSettings};
use super::{
    AudioSourceInfo, AudioSourceKind, Ears, RECORDING_BYTES_MAX, SPEECH_STALL_MS, SpeechAudio, SpeechRequest,
    Transcript, TranscriptionRequest, Voice, VoiceError,
};
use crate::config::AppSettings;
use crate::error::Error;
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use throughline_tools::process::SpawnContext;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

/// Name of the engine that is used by default if there are several.
const DEFAULT: &str = "default";

/// The configured voices and ears.
#[derive(Clone, Debug, Default)]
pub(crate) struct AudioSources {
    pub(crate) voices: BTreeMap<String, Arc<LimitedSource<dyn Voice>>>,
    pub(crate) ears: BTreeMap<String, Arc<LimitedSource<dyn Ears>>>,
}

/// One engine with its limit of parallel requests.
#[derive(Debug)]
pub(crate) struct LimitedSource<T: ?Sized> {
    name: String,
    kind: AudioSourceKind,
    concurrent_max: usize,
    permits: Arc<Semaphore>,
    engine: Box<T>,
}

impl AudioSources {
    pub(crate) fn new(
        voices: BTreeMap<String, VoiceSettings>,
        ears: BTreeMap<String, EarsSettings>,
        surroundings: &SpawnContext,
        run_as: Option<&str>,
    ) -> Result<Self, Error> {
        let mut sources = Self::default();
        #[cfg(feature = "process")]
        let surroundings = &program::surroundings_as(surroundings, run_as);
        #[cfg(not(feature = "process"))]
        let _ = (surroundings, run_as);
        for (name, settings) in voices {
            let engine: Box<dyn Voice> = match settings.engine.clone() {
                AudioEngine::Server { upstream, model } => {
                    Box::new(ServerVoice::new(&name, upstream, model, &settings)?)
                }
                #[cfg(feature = "process")]
                AudioEngine::Program(program) => {
                    Box::new(ProgramVoice::new(&name, program, &settings, surroundings.clone()))
                }
                #[cfg(not(feature = "process"))]
                AudioEngine::Program(_) => Box::new(UnbuiltAudio(name.clone())),
            };
            let source = LimitedSource::new(&name, &settings.engine, settings.concurrent_max, engine);
            sources.voices.insert(name, Arc::new(source));
        }
        for (name, settings) in ears {
            let engine: Box<dyn Ears> = match settings.engine.clone() {
                AudioEngine::Server { upstream, model } => {
                    Box::new(ServerEars::new(&name, upstream, model, &settings)?)
                }
                #[cfg(feature = "process")]
                AudioEngine::Program(program) => {
                    Box::new(ProgramEars::new(&name, program, surroundings.clone()))
                }
                #[cfg(not(feature = "process"))]
                AudioEngine::Program(_) => Box::new(UnbuiltAudio(name.clone())),
            };
            let source = LimitedSource::new(&name, &settings.engine, settings.concurrent_max, engine);
            sources.ears.insert(name, Arc::new(source));
        }
        Ok(sources)
    }
}

impl AudioSources {
    /// Work in progress for others counts against the same limits after a change of the configuration.
    pub(crate) fn share_limits(&mut self, before: &Self) {
        share_limits(&mut self.voices, &before.voices);
        share_limits(&mut self.ears, &before.ears);
    }
}

fn share_limits<T: ?Sized>(
    sources: &mut BTreeMap<String, Arc<LimitedSource<T>>>,
    before: &BTreeMap<String, Arc<LimitedSource<T>>>,
) {
    for (name, source) in sources {
        let same = before.get(name).filter(|same| same.concurrent_max == source.concurrent_max);
        if let (Some(same), Some(source)) = (same, Arc::get_mut(source)) {
            source.permits = same.permits.clone();
        }
    }
}

impl<T: ?Sized> LimitedSource<T> {
    fn new(name: &str, engine_settings: &AudioEngine, concurrent_max: usize, engine: Box<T>) -> Self {
        let permits = Arc::new(Semaphore::new(concurrent_max.min(Semaphore::MAX_PERMITS)));
        Self { name: name.to_owned(), kind: engine_settings.kind(), concurrent_max, permits, engine }
    }

    fn permit(&self) -> Result<OwnedSemaphorePermit, VoiceError> {
        let Self { name, concurrent_max, .. } = self;
        self.permits
            .clone()
            .try_acquire_owned()
            .map_err(|_| VoiceError::Busy { name: name.clone(), concurrent_max: *concurrent_max })
    }
}

/// A voice of a configuration, without an application; without a name, the only one or the one called `default`.
///
/// # Errors
/// The voice does not exist, or no connection to it can be set up.
pub fn open(
    settings: &AppSettings,
    surroundings: &SpawnContext,
    name: Option<&str>,
) -> Result<Arc<dyn Voice>, VoiceError> {
    let run_as = settings.sources.run_as.as_deref();
    let sources = AudioSources::new(settings.voices.clone(), BTreeMap::new(), surroundings, run_as);
    let sources = sources.map_err(|error| VoiceError::Program {
        name: name.unwrap_or(DEFAULT).to_owned(),
        message: error.to_string(),
        stderr: String::new(),
    })?;
    let voice: Arc<dyn Voice> = pick(&sources.voices, name, "voice")?;
    Ok(voice)
}

/// The engine of this name; without a name, or for `default`, the only one or the one named `default`.
pub(crate) fn pick<T>(
    sources: &BTreeMap<String, Arc<T>>,
    name: Option<&str>,
    what: &'static str,
) -> Result<Arc<T>, VoiceError> {
    let names = || sources.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let named = name.filter(|name| *name != DEFAULT);
    if sources.is_empty() {
        return Err(VoiceError::NotConfigured { what });
    }
    if let Some(name) = named {
        let unknown = || VoiceError::Unknown { what, name: name.to_owned(), names: names() };
        return sources.get(name).cloned().ok_or_else(unknown);
    }
    let default = default_name(sources).and_then(|name| sources.get(name));
    default.cloned().ok_or_else(|| VoiceError::Ambiguous { names: names() })
}

fn default_name<T>(sources: &BTreeMap<String, T>) -> Option<&str> {
    match sources.get_key_value(DEFAULT) {
        Some((name, _)) => Some(name),
        None if sources.len() == 1 => sources.keys().next().map(String::as_str),
        None => None,
    }
}

/// The engines as listed by the API.
pub(crate) fn infos<T: ?Sized>(sources: &BTreeMap<String, Arc<LimitedSource<T>>>) -> Vec<AudioSourceInfo> {
    let default = default_name(sources);
    let info = |source: &Arc<LimitedSource<T>>| AudioSourceInfo {
        name: source.name.clone(),
        kind: source.kind,
        is_default: default == Some(source.name.as_str()),
    };
    sources.values().map(info).collect()
}

#[async_trait]
impl Voice for LimitedSource<dyn Voice> {
    async fn speak(&self, request: SpeechRequest) -> Result<SpeechAudio, VoiceError> {
        let permit = self.permit()?;
        let SpeechAudio { content_type, body } = self.engine.speak(request).await?;
        Ok(SpeechAudio { content_type, body: supervised(self.name.clone(), body, permit) })
    }
}

/// Capacity of the queue of sound that waits for the listener, in pieces.
const WAITING_PIECES_MAX: usize = 16;

/// Forwards the sound from a task that stops the engine and releases the permit when the listener leaves or
/// stalls.
fn supervised(
    name: String,
    mut body: BoxStream<'static, Result<Vec<u8>, VoiceError>>,
    permit: OwnedSemaphorePermit,
) -> BoxStream<'static, Result<Vec<u8>, VoiceError>> {
    let (sender, receiver) = mpsc::channel(WAITING_PIECES_MAX);
    tokio::spawn(async move {
        let stall = Duration::from_millis(SPEECH_STALL_MS);
        loop {
            let piece = tokio::select! {
                piece = body.next() => piece,
                () = sender.closed() => return,
            };
            if piece.is_none() {
                // Released before the listener receives the end: the next sentence follows immediately.
                drop((body, permit));
                let _ = timeout(stall, sender.send(None)).await;
                return;
            }
            if !matches!(timeout(stall, sender.send(piece)).await, Ok(Ok(()))) {
                return;
            }
        }
    });
    // `None` is its end; a channel that closes without it was given up.
    stream::unfold(Some((receiver, name)), |open| async {
        let (mut receiver, name) = open?;
        match receiver.recv().await {
            Some(piece) => piece.map(|piece| (piece, Some((receiver, name)))),
            None => Some((Err(VoiceError::Stalled { name }), None)),
        }
    })
    .boxed()
}

#[async_trait]
impl Ears for LimitedSource<dyn Ears> {
    async fn transcribe(&self, request: TranscriptionRequest) -> Result<Transcript, VoiceError> {
        let bytes = request.recording.len();
        if bytes > RECORDING_BYTES_MAX {
            return Err(VoiceError::RecordingTooLarge { bytes });
        }
        let _permit = self.permit()?;
        self.engine.transcribe(request).await
    }
}

/// A program in a build that starts none.
#[cfg(not(feature = "process"))]
#[derive(Debug)]
struct UnbuiltAudio(String);

#[cfg(not(feature = "process"))]
impl UnbuiltAudio {
    fn error(&self) -> VoiceError {
        let message = "this program was built without the cargo feature `process`".to_owned();
        VoiceError::Program { name: self.0.clone(), message, stderr: String::new() }
    }
}

#[cfg(not(feature = "process"))]
#[async_trait]
impl Voice for UnbuiltAudio {
    async fn speak(&self, _: SpeechRequest) -> Result<SpeechAudio, VoiceError> {
        Err(self.error())
    }
}

#[cfg(not(feature = "process"))]
#[async_trait]
impl Ears for UnbuiltAudio {
    async fn transcribe(&self, _: TranscriptionRequest) -> Result<Transcript, VoiceError> {
        Err(self.error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], asked: Option<&str>, expected: Result<&str, &str>) {
        let sources = names.iter().map(|name| ((*name).to_owned(), Arc::new((*name).to_owned()))).collect();
        let found = pick(&sources, asked, "voice").map_err(|error| error.to_string());
        assert_eq!(
            found.as_deref().map(String::as_str).map_err(String::as_str),
            expected,
            "{names:?} {asked:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn unread_audio_stalls_and_releases_the_voice() {
        let permits = Arc::new(Semaphore::new(1));
        let endless = || stream::repeat_with(|| Ok(vec![0; 4])).boxed();
        let permit = || permits.clone().try_acquire_owned().unwrap();
        let mut stalled = supervised("a".to_owned(), endless(), permit());
        assert!(stalled.next().await.unwrap().is_ok());
        drop(permits.acquire().await.unwrap());
        let rest: Vec<_> = stalled.collect().await;
        let (last, pieces) = rest.split_last().unwrap();
        assert_eq!(last, &Err(VoiceError::Stalled { name: "a".to_owned() }));
        assert!(
            pieces.iter().all(Result::is_ok) && pieces.len() <= WAITING_PIECES_MAX + 1,
            "{}",
            pieces.len()
        );

        // A listener who leaves is noticed even if the engine is silent.
        drop(supervised("a".to_owned(), stream::pending().boxed(), permit()));
        drop(permits.acquire().await.unwrap());

        // The voice is free when the engine has ended, even if the listener has not read everything.
        let pieces = vec![Ok(vec![1]); WAITING_PIECES_MAX];
        let whole = supervised("a".to_owned(), stream::iter(pieces.clone()).boxed(), permit());
        drop(permits.acquire().await.unwrap());
        assert_eq!(whole.collect::<Vec<_>>().await, pieces);
    }

    #[test]
    fn voice_is_chosen_by_name_or_default() {
        check(&[], None, Err("no voice is configured"));
        check(&[], Some("a"), Err("no voice is configured"));
        check(&["a"], None, Ok("a"));
        check(&["a"], Some("default"), Ok("a"));
        check(&["a", "b"], Some("b"), Ok("b"));
        check(&["a", "b"], Some("c"), Err("there is no voice `c`; there are `a`, `b`"));
        check(&["a", "b"], None, Err("several are configured, and the request names none: `a`, `b`"));
        check(&["a", "default"], None, Ok("default"));
    }
}
