//! Voices and ears of a configuration: their requests, their results, and how they are stopped.

use futures_util::StreamExt;
use serde_json::json;
use throughline::config::{ConfigError, ConfigFile, ConfigFlags, EnvVars, resolve};
use throughline::voice::{
    AUDIO_CONCURRENT_MAX, AUDIO_TIMEOUT_MS, AudioFormat, RECORDING_BYTES_MAX, SPEECH_TEXT_CHARS_MAX,
    SpeechAudio, SpeechRequest, TranscriptFormat, TranscriptionRequest, VoiceError,
};
use throughline::wire::Dialect;
use throughline::{Throughline, Upstream};
use throughline_testkit::FakeVoice;

const KEY: &str = "sk-of-the-voice";

fn settings(text: &str) -> Result<throughline::AppSettings, ConfigError> {
    let environment = EnvVars::from([("VOICE_KEY".to_owned(), KEY.to_owned())]);
    resolve(Some(ConfigFile::parse("throughline.toml", text)?), &environment, &ConfigFlags::default())
}

/// An application with this configuration.
fn app(text: &str) -> Throughline {
    let demo = Upstream::new("demo", Dialect::OpenaiChat, "http://127.0.0.1:9/v1").unwrap();
    Throughline::builder().upstream(demo).settings(settings(text).unwrap()).build().unwrap()
}

fn server(base_url: &str, more: &str) -> String {
    format!("[voices.server]\nkind = \"openai\"\nbase_url = \"{base_url}\"\nmodel = \"kokoro\"\n{more}")
}

#[cfg(all(unix, feature = "process"))]
fn program(argv: &str, more: &str) -> String {
    format!("[voices.program]\nkind = \"command\"\nargv = {argv}\n{more}")
}

async fn whole(audio: SpeechAudio) -> Result<Vec<u8>, VoiceError> {
    let pieces: Vec<_> = audio.body.collect().await;
    Ok(pieces.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

#[tokio::test]
async fn voice_server_request_has_configured_speaker_and_key() {
    let fake = FakeVoice::start().await.unwrap();
    let more = "key_env = \"VOICE_KEY\"\nvoice = \"af_sky\"\nspeed = 1.25\nformat = \"pcm\"\n";
    let app = app(&server(&fake.base_url(), more));
    let audio = app.voice(None).unwrap().speak(SpeechRequest::new("Hello, Paris.")).await.unwrap();
    assert_eq!(audio.content_type, "audio/pcm");
    assert!(whole(audio).await.unwrap().len() > 10_000);

    let request = SpeechRequest {
        speaker: Some("am_adam".to_owned()),
        speed: Some(2.0),
        instructions: Some("Whisper.".to_owned()),
        ..SpeechRequest::new("Again.").format(AudioFormat::Wav)
    };
    let audio = app.voice(Some("server")).unwrap().speak(request).await.unwrap();
    assert_eq!(audio.content_type, "audio/wav");

    let asked = fake.requests();
    assert_eq!(asked[0].authorization.as_deref(), Some(&*format!("Bearer {KEY}")));
    assert_eq!(
        asked[0].body,
        json!({"model": "kokoro", "input": "Hello, Paris.", "voice": "af_sky", "response_format": "pcm", "speed": 1.25})
    );
    assert_eq!(
        asked[1].body,
        json!({"model": "kokoro", "input": "Again.", "voice": "am_adam", "response_format": "wav", "speed": 2.0,
            "instructions": "Whisper."})
    );
}

#[tokio::test]
async fn voice_server_errors_are_reported_without_the_key() {
    let fake = FakeVoice::start().await.unwrap();
    let refusing = app(&server(&fake.base_url(), "key_env = \"VOICE_KEY\"\n"));
    let error = refusing.voice(None).unwrap().speak(SpeechRequest::new("refused")).await.unwrap_err();
    assert!(
        error.to_string().contains("`server`: not with Bearer") && !error.to_string().contains(KEY),
        "{error}"
    );

    let elsewhere = app(&server(&format!("{}/elsewhere", fake.base_url()), ""));
    let error = elsewhere.voice(None).unwrap().speak(SpeechRequest::new("Hello.")).await.unwrap_err();
    assert!(matches!(error, VoiceError::Engine { .. }), "{error}");

    let keyless = app(&server(&fake.base_url(), "key_env = \"NOT_SET\"\n"));
    let error = keyless.voice(None).unwrap().speak(SpeechRequest::new("Hello.")).await.unwrap_err();
    assert!(error.to_string().contains("the environment variable NOT_SET is not set"), "{error}");
}

#[tokio::test]
async fn dropping_the_audio_ends_the_request_and_frees_its_slot() {
    let fake = FakeVoice::start().await.unwrap();
    let app = app(&server(&fake.base_url(), "concurrent_max = 1\n"));
    let voice = app.voice(None).unwrap();
    let mut audio = voice.speak(SpeechRequest::new("endless")).await.unwrap();
    assert!(audio.body.next().await.unwrap().is_ok());
    let busy = voice.speak(SpeechRequest::new("Hello.")).await.unwrap_err();
    assert_eq!(busy, VoiceError::Busy { name: "server".to_owned(), concurrent_max: 1 });
    drop(audio);
    fake.abandoned(1).await;
    whole(voice.speak(SpeechRequest::new("Hello.")).await.unwrap()).await.unwrap();
}

#[tokio::test]
async fn speech_text_and_recording_sizes_are_limited() {
    let fake = FakeVoice::start().await.unwrap();
    let ears = format!(
        "[ears.server]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"whisper\"\n",
        fake.base_url()
    );
    let app = app(&(server(&fake.base_url(), "") + &ears));
    let voice = app.voice(None).unwrap();
    let longest = "字".repeat(SPEECH_TEXT_CHARS_MAX);
    assert!(voice.speak(SpeechRequest::new(longest.clone())).await.is_ok());
    let error = voice.speak(SpeechRequest::new(longest + "字")).await.unwrap_err();
    assert_eq!(error, VoiceError::TextTooLong { chars: SPEECH_TEXT_CHARS_MAX + 1 });
    assert_eq!(voice.speak(SpeechRequest::new(" \n")).await.unwrap_err(), VoiceError::NoText);

    let request =
        |bytes| TranscriptionRequest { recording: vec![0; bytes], ..TranscriptionRequest::default() };
    let ears = app.ears(None).unwrap();
    assert!(ears.transcribe(request(RECORDING_BYTES_MAX)).await.is_ok());
    let error = ears.transcribe(request(RECORDING_BYTES_MAX + 1)).await.unwrap_err();
    assert_eq!(error, VoiceError::RecordingTooLarge { bytes: RECORDING_BYTES_MAX + 1 });
    assert_eq!((AUDIO_TIMEOUT_MS, AUDIO_CONCURRENT_MAX), (120_000, 4));
}

#[tokio::test]
async fn transcription_server_is_sent_the_recording_as_a_form() {
    let fake = FakeVoice::start().await.unwrap();
    let text = format!(
        "[ears.server]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"whisper\"\nlanguage = \"en\"\n",
        fake.base_url()
    );
    let request = TranscriptionRequest {
        recording: b"RIFF sound".to_vec(),
        file_name: "question.wav".to_owned(),
        content_type: "audio/wav".to_owned(),
        prompt: Some("Paris".to_owned()),
        ..TranscriptionRequest::default()
    };
    let transcript = app(&text).ears(None).unwrap().transcribe(request).await.unwrap();
    assert_eq!(transcript.content_type, "application/json");
    assert_eq!(transcript.body, br#"{"text":"What is the weather in Paris?"}"#);

    let heard = &fake.recordings()[0];
    assert!(heard.content_type.starts_with("multipart/form-data; boundary="), "{}", heard.content_type);
    let form = String::from_utf8_lossy(&heard.form);
    for part in [
        "name=\"model\"\r\n\r\nwhisper\r\n",
        "name=\"language\"\r\n\r\nen\r\n",
        "name=\"prompt\"\r\n\r\nParis\r\n",
        "name=\"response_format\"\r\n\r\njson\r\n",
        "name=\"file\"; filename=\"question.wav\"\r\ncontent-type: audio/wav\r\n\r\nRIFF sound\r\n",
    ] {
        assert!(form.contains(part), "{part:?} is not in {form}");
    }
}

/// A program that writes the header of a WAV file with this sample rate, and then its input as samples.
#[cfg(all(unix, feature = "process"))]
fn wav_program(sample_rate_hz: u32) -> String {
    let header = throughline::voice::wav_header(sample_rate_hz, None);
    let header: String = header.iter().map(|byte| format!("\\\\{byte:03o}")).collect();
    format!("[\"sh\", \"-c\", \"printf '{header}'; cat\"]")
}

#[cfg(all(unix, feature = "process"))]
#[tokio::test]
async fn voice_program_reads_text_and_writes_audio() {
    let wav = app(&program(&wav_program(24_000), ""));
    let audio = wav.voice(None).unwrap().speak(SpeechRequest::new("-n; $(x)")).await.unwrap();
    assert_eq!(audio.content_type, "audio/wav");
    let bytes = whole(audio).await.unwrap();
    assert_eq!((&bytes[..4], &bytes[44..]), (&b"RIFF"[..], &b"-n; $(x)\n"[..]));

    // Raw samples, in the format of `pcm`.
    let request = || SpeechRequest::new("Hello.").format(AudioFormat::Pcm);
    let audio = wav.voice(None).unwrap().speak(request()).await.unwrap();
    assert_eq!(whole(audio).await.unwrap(), b"Hello.\n");
    let other_rate = app(&program(&wav_program(22_050), ""));
    let error = other_rate.voice(None).unwrap().speak(request()).await.unwrap_err();
    assert_eq!(error.to_string(), "`program` provides wav, not pcm");

    // Raw samples get a header with their format.
    let samples = app(&program("[\"cat\"]", "format = \"pcm\"\nsample_rate_hz = 16000\n"));
    let bytes =
        whole(samples.voice(None).unwrap().speak(SpeechRequest::new("Hello.")).await.unwrap()).await.unwrap();
    assert_eq!(bytes[..44], throughline::voice::wav_header(16_000, None));
    assert_eq!(&bytes[44..], b"Hello.\n");

    let mp3 = SpeechRequest::new("Hello.").format(AudioFormat::Mp3);
    let error = wav.voice(None).unwrap().speak(mp3).await.unwrap_err();
    assert_eq!(error.to_string(), "`program` provides wav and pcm, not mp3");
}

#[cfg(all(unix, feature = "process"))]
#[tokio::test]
async fn voice_program_failure_is_explained() {
    for (argv, more, expected) in [
        ("[\"no-such-program\"]", "", "there is no program `no-such-program`"),
        ("[\"sh\", \"-c\", \"echo no voice >&2; exit 3\"]", "", "it exited with code 3: no voice"),
        ("[\"sh\", \"-c\", \"exit 0\"]", "", "it wrote no audio"),
        ("[\"sh\", \"-c\", \"echo this is no sound\"]", "", "its output is not a WAV file"),
        ("[\"sh\", \"-c\", \"sleep 1000\"]", "timeout_ms = 50\n", "it took longer than 50 ms (timeout_ms)"),
        (
            "[\"sh\", \"-c\", \"echo key $KEY >&2; exit 1\"]",
            "env = { KEY = \"$VOICE_KEY_OF_NOBODY\" }\n",
            "env.KEY: the environment variable VOICE_KEY_OF_NOBODY is not set",
        ),
    ] {
        let error =
            app(&program(argv, more)).voice(None).unwrap().speak(SpeechRequest::new("x")).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error} is not about {expected}");
        assert!(!error.remedy().is_empty());
    }
}

#[cfg(all(unix, feature = "process"))]
#[tokio::test]
async fn secrets_in_voice_program_stderr_are_redacted() {
    let argv = "[\"sh\", \"-c\", \"echo my key is $API_KEY >&2; exit 1\"]";
    let config = program(argv, "env = { API_KEY = \"hush-hush-hush\" }\n");
    assert!(
        settings(&config).unwrap().secret_values(&Default::default()).contains(&"hush-hush-hush".to_owned())
    );
    let error = app(&config).voice(None).unwrap().speak(SpeechRequest::new("x")).await.unwrap_err();
    let told = error.to_string();
    assert!(told.contains("exited with code 1: my key is") && !told.contains("hush-hush-hush"), "{told}");
}

#[cfg(all(unix, feature = "process"))]
#[tokio::test]
async fn dropping_the_audio_ends_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    let argv = format!("[\"sh\", \"-c\", \"echo $$ > {}; cat; exec sleep 1000\"]", pid_file.display());
    let app = app(&program(&argv, "format = \"pcm\"\n"));
    let mut audio = app.voice(None).unwrap().speak(SpeechRequest::new("Hello.")).await.unwrap();
    while let Some(piece) = audio.body.next().await {
        if piece.unwrap().ends_with(b"Hello.\n") {
            break;
        }
    }
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    let is_running = || std::path::Path::new(&format!("/proc/{}/cmdline", pid.trim())).exists();
    drop(audio);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while cfg!(target_os = "linux") && is_running() {
        assert!(std::time::Instant::now() < until, "the program lives on");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[cfg(all(unix, feature = "process"))]
#[tokio::test]
async fn transcription_program_returns_its_output() {
    let ears =
        app("[ears.program]\nkind = \"command\"\nargv = [\"tr\", \"a-z\", \"A-Z\"]\n").ears(None).unwrap();
    let request =
        |format| TranscriptionRequest { recording: b"hello\n".to_vec(), format, ..Default::default() };
    let json = ears.transcribe(request(TranscriptFormat::Json)).await.unwrap();
    assert_eq!(json.body, br#"{"text":"HELLO"}"#);
    let text = ears.transcribe(request(TranscriptFormat::Text)).await.unwrap();
    assert_eq!((text.content_type.as_str(), &text.body[..]), ("text/plain; charset=utf-8", &b"HELLO"[..]));
    let error = ears.transcribe(request(TranscriptFormat::Srt)).await.unwrap_err();
    assert_eq!(error.to_string(), "`program` provides json and text, not srt");
}

/// The engine of Debian, if it is installed.
#[cfg(all(unix, feature = "process"))]
#[tokio::test]
async fn espeak_speaks_both_languages() {
    let app = app(&program("[\"espeak-ng\", \"--stdout\"]", ""));
    for text in ["Hello, Paris.", "你好，世界。"] {
        match app.voice(None).unwrap().speak(SpeechRequest::new(text)).await {
            Ok(audio) => assert!(whole(audio).await.unwrap().len() > 10_000, "{text}"),
            Err(error) if error.to_string().contains("there is no program") => {
                return println!("skipped: espeak-ng is not installed");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn invalid_voice_and_ears_sections_are_rejected() {
    for (text, expected) in [
        ("[voices.a]\nkind = \"openai\"\n", "`voices.a` lacks `base_url` or `model`"),
        ("[voices.a]\nkind = \"command\"\n", "`voices.a` specifies no program"),
        ("[ears.a]\nkind = \"command\"\nargv = [\"\"]\n", "`ears.a` specifies no program"),
        (
            "[voices.a]\nkind = \"command\"\nargv = [\"x\"]\nspeed = 1.0\n",
            "`speed` does not apply to kind command",
        ),
        ("[ears.a]\nkind = \"openai\"\nargv = [\"x\"]\n", "`argv` does not apply to kind openai"),
        (
            "[voices.a]\nkind = \"command\"\nargv = [\"x\"]\nformat = \"mp3\"\n",
            "a program cannot produce mp3",
        ),
        (
            "[voices.a]\nkind = \"command\"\nargv = [\"x\"]\nsample_rate_hz = 1\n",
            "a sample rate of 1 Hz is not supported",
        ),
        ("[voices.a]\nkind = \"command\"\nargv = [\"x\"]\ntimeout_ms = 0\n", "a timeout must not be 0 ms"),
        (
            "[ears.a]\nkind = \"command\"\nargv = [\"x\"]\nconcurrent_max = 0\n",
            "`concurrent_max` must not be 0",
        ),
        (
            "[voices.a]\nkind = \"openai\"\nbase_url = \"x\"\nmodel = \"m\"\nspeed = 9.0\n",
            "the speed 9 is not supported",
        ),
        (
            "[voices.a]\nkind = \"openai\"\nbase_url = \"ftp://x\"\nmodel = \"m\"\n",
            "`ftp://x` is not a valid base URL",
        ),
        (
            "[voices.a]\nkind = \"openai\"\nbase_url = \"http://x\"\nmodel = \"m\"\nkey_env = \"sk-123\"\n",
            "this looks like a key",
        ),
        ("[voices.a]\nkind = \"openai\"\nvolume = 1\n", "unknown field `volume`"),
        ("[voices.a]\nkind = \"parrot\"\n", "unknown variant `parrot`"),
    ] {
        let error = settings(text).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("sk-123"), "{error} is not about {expected}");
    }
}

#[test]
fn voice_keys_are_secrets_and_no_section_means_no_voice() {
    let settings = settings(&server("http://127.0.0.1:9/v1", "key_env = \"VOICE_KEY\"\n")).unwrap();
    assert!(settings.secret_values(&Default::default()).contains(&KEY.to_owned()));
    let nothing = app("");
    assert_eq!(nothing.voice(None).unwrap_err(), VoiceError::NotConfigured { what: "voice" });
    assert_eq!(nothing.ears(None).unwrap_err(), VoiceError::NotConfigured { what: "ears" });
    assert!(nothing.voices().is_empty() && nothing.all_ears().is_empty());
}
