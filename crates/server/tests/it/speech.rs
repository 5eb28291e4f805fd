//! Speech and transcription in OpenAI's format, passed on to the engines of the configuration.

use crate::support::{self, TestServer, answered};
use serde_json::{Value, json};
use throughline::ThroughlineBuilder;
use throughline::config::{ConfigFile, ConfigFlags, EnvVars, ServerLimits, resolve};
use throughline_testkit::{FakeVoice, FakeVoiceHandle, ScriptQueue};

const KEY: &str = "sk-of-the-voice";

/// A server with this configuration.
async fn server(config: String) -> TestServer {
    let build = move |builder: ThroughlineBuilder| {
        let file = ConfigFile::parse("throughline.toml", &config).unwrap();
        let environment = EnvVars::from([("VOICE_KEY".to_owned(), KEY.to_owned())]);
        builder.settings(resolve(Some(file), &environment, &ConfigFlags::default()).unwrap())
    };
    TestServer::start_with(ScriptQueue::new([]), build, ServerLimits::default()).await
}

/// A voice and ears at a fake server, and a voice that is a program.
fn config(fake: &FakeVoiceHandle) -> String {
    let base_url = fake.base_url();
    format!(
        "[voices.default]\nkind = \"openai\"\nbase_url = \"{base_url}\"\nkey_env = \"VOICE_KEY\"\nmodel = \"kokoro\"\n\
         voice = \"af_sky\"\nconcurrent_max = 1\n\
         [voices.program]\nkind = \"command\"\nargv = [\"cat\"]\nformat = \"pcm\"\n\
         [voices.broken]\nkind = \"command\"\nargv = [\"no-such-program\"]\n\
         [voices.rude]\nkind = \"command\"\nargv = [\"sh\", \"-c\", \"echo internals >&2; exit 3\"]\n\
         [ears.local]\nkind = \"openai\"\nbase_url = \"{base_url}\"\nmodel = \"whisper\"\n"
    )
}

async fn start() -> (TestServer, FakeVoiceHandle) {
    let fake = FakeVoice::start().await.unwrap();
    (server(config(&fake)).await, fake)
}

async fn speak(server: &TestServer, body: Value) -> reqwest::Response {
    server.client().post(server.url("/v1/audio/speech")).json(&body).send().await.unwrap()
}

/// A form with these fields, and a recording if `file` is among them.
fn form(fields: &[(&str, &str)]) -> (String, Vec<u8>) {
    let mut body = String::new();
    for (name, value) in fields {
        let file = if *name == "file" { "; filename=\"a.wav\"\r\ncontent-type: audio/wav" } else { "" };
        body.push_str(&format!(
            "--b\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n"
        ));
    }
    body.push_str("--b--\r\n");
    ("multipart/form-data; boundary=b".to_owned(), body.into_bytes())
}

async fn transcribe(server: &TestServer, fields: &[(&str, &str)]) -> (u16, Value) {
    let (kind, body) = form(fields);
    let request = server.client().post(server.url("/v1/audio/transcriptions"));
    answered(request.header("content-type", kind).body(body)).await
}

#[tokio::test]
async fn speech_request_is_forwarded_and_audio_returned() {
    let (server, fake) = start().await;
    let body = json!({"model": "default", "input": "Hello, Paris.", "voice": "am_adam", "response_format": "pcm", "speed": 1.5,
        "some_future_field": {"x": 1}});
    let response = speak(&server, body).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"audio/pcm".parse().unwrap())
    );
    assert_eq!(&response.headers()["cache-control"], "no-store, no-transform");
    assert!(response.bytes().await.unwrap().len() > 10_000);
    let asked = fake.requests();
    assert_eq!(
        asked[0].body,
        json!({"model": "kokoro", "input": "Hello, Paris.", "voice": "am_adam", "response_format": "pcm", "speed": 1.5})
    );
    assert_eq!(asked[0].authorization.as_deref(), Some(&*format!("Bearer {KEY}")));

    // Everything but the text is as configured.
    assert_eq!(speak(&server, json!({"input": "Hello.", "voice": "default"})).await.status(), 200);
    assert_eq!(fake.requests()[1].body, json!({"model": "kokoro", "input": "Hello.", "voice": "af_sky"}));
}

#[cfg(unix)]
#[tokio::test]
async fn command_voice_returns_its_audio() {
    let (server, _fake) = start().await;
    let response = speak(&server, json!({"model": "program", "input": "Hello."})).await;
    assert_eq!(&response.headers()["content-type"], "audio/wav");
    let sound = response.bytes().await.unwrap();
    assert_eq!((&sound[..4], &sound[44..]), (&b"RIFF"[..], &b"Hello.\n"[..]));
}

#[tokio::test]
async fn client_disconnect_stops_and_frees_the_voice() {
    let (server, fake) = start().await;
    let mut response = speak(&server, json!({"input": "endless"})).await;
    assert!(!response.chunk().await.unwrap().unwrap().is_empty(), "sound comes before the text has ended");
    let (status, refused) = server.post("/v1/audio/speech", json!({"input": "Hello."})).await;
    assert_eq!((status, &refused["error"]["code"]), (503, &json!("busy")), "{refused}");
    drop(response);
    fake.abandoned(1).await;
    // The server notices in its own time.
    loop {
        let response = speak(&server, json!({"input": "Hello."})).await;
        if response.status() == 200 {
            break;
        }
        assert_eq!(response.status(), 503);
    }
}

#[tokio::test]
async fn speech_errors_name_the_parameter_and_a_remedy() {
    let (server, fake) = start().await;
    for (body, status, code, param) in [
        (json!({}), 400, "missing_field", json!("input")),
        (json!({"input": " "}), 400, "invalid_value", json!("input")),
        (json!({"input": 5}), 400, "invalid_value", json!("input")),
        (json!({"input": "字".repeat(4_097)}), 413, "over_limit", json!("input")),
        (json!({"input": "a", "model": "nosuch"}), 404, "not_found", json!("model")),
        (json!({"input": "a", "voice": "x".repeat(5_000)}), 413, "over_limit", json!("voice")),
        (json!({"input": "a", "voice": {"id": 1}}), 400, "invalid_value", json!("voice")),
        (json!({"input": "a", "response_format": "midi"}), 400, "invalid_value", json!("response_format")),
        (json!({"input": "a", "speed": 9}), 400, "invalid_value", json!("speed")),
        (json!({"input": "a", "speed": "fast"}), 400, "invalid_value", json!("speed")),
        (json!({"input": "a", "stream_format": "sse"}), 400, "unsupported", json!("stream_format")),
        (
            json!({"input": "a", "model": "program", "response_format": "mp3"}),
            400,
            "unsupported",
            json!("response_format"),
        ),
        (json!({"input": "a", "model": "program", "speed": 2}), 400, "unsupported", json!("speed")),
        (json!({"input": "a", "model": "rude"}), 502, "upstream_error", Value::Null),
        (json!({"input": "a", "model": "broken"}), 502, "upstream_error", Value::Null),
        (json!({"input": "refused"}), 400, "upstream_error", Value::Null),
    ] {
        let (answered, refused) = server.post("/v1/audio/speech", body.clone()).await;
        let error = &refused["error"];
        assert_eq!(
            (answered, &error["code"], &error["param"]),
            (status, &json!(code), &param),
            "{body}: {refused}"
        );
        assert!(error["remedy"].is_string(), "{refused}");
        let told = refused.to_string();
        assert!(!told.contains(KEY) && !told.contains("internals"), "{refused}");
    }
    assert_eq!(fake.requests().len(), 1, "only what can be spoken is passed on");
}

#[tokio::test]
async fn transcription_is_forwarded_and_text_returned() {
    let (server, fake) = start().await;
    let fields = [
        ("model", "local"),
        ("language", "en"),
        ("response_format", "json"),
        ("file", "RIFF sound"),
        ("other", "x"),
    ];
    let (status, transcript) = transcribe(&server, &fields).await;
    assert_eq!((status, transcript), (200, json!({"text": "What is the weather in Paris?"})));
    let heard = &fake.recordings()[0];
    let form = String::from_utf8_lossy(&heard.form);
    for part in [
        "whisper",
        "name=\"language\"\r\n\r\nen",
        "filename=\"a.wav\"\r\ncontent-type: audio/wav\r\n\r\nRIFF sound\r\n",
    ] {
        assert!(form.contains(part), "{part:?} is not in {form}");
    }
    let long = "x".repeat(5_000);
    let many = vec![("more", "x"); 40];
    for (fields, status, code) in [
        (&[("model", "local")][..], 400, "no_file"),
        (&[("file", "x"), ("model", "nosuch")], 404, "not_found"),
        (&[("file", "x"), ("temperature", "hot")], 400, "invalid_value"),
        (&[("file", "x"), ("response_format", "midi")], 400, "invalid_value"),
        (&[("file", "x"), ("stream", "true")], 400, "unsupported"),
        (&[("file", "x"), ("prompt", &*long)], 413, "over_limit"),
        (&many, 400, "too_many_fields"),
    ] {
        let (answered, refused) = transcribe(&server, fields).await;
        assert_eq!((answered, &refused["error"]["code"]), (status, &json!(code)), "{refused}");
        assert!(refused["error"]["remedy"].is_string(), "{refused}");
    }
    let (status, refused) = server.post("/v1/audio/transcriptions", json!({"file": "x"})).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("unreadable_form")), "{refused}");
    assert_eq!(fake.recordings().len(), 1);
}

/// Clients have one base URL for everything.
#[tokio::test]
async fn audio_routes_work_under_a_render_base_url() {
    let (server, fake) = start().await;
    let (status, sound) = {
        let request = server.client().post(server.url("/render/details/v1/audio/speech"));
        let response = request.json(&json!({"input": "Hello."})).send().await.unwrap();
        (response.status(), response.bytes().await.unwrap())
    };
    assert_eq!((status.as_u16(), sound.len() > 10_000), (200, true));
    // The first is larger than the body of other routes may be.
    for (render, recording, status) in [("details", "x".repeat(5 << 20), 200), ("html", "x".to_owned(), 404)]
    {
        let (kind, body) = form(&[("file", &recording)]);
        let path = format!("/render/{render}/v1/audio/transcriptions");
        let request = server.client().post(server.url(&path)).header("content-type", &kind);
        assert_eq!(answered(request.body(body)).await.0, status, "{render}");
    }
    assert_eq!(fake.recordings().len(), 1);
}

#[tokio::test]
async fn oversized_recording_is_rejected() {
    let (server, fake) = start().await;
    let recording = "x".repeat(throughline::voice::RECORDING_BYTES_MAX + 1);
    let (status, refused) = transcribe(&server, &[("file", &recording)]).await;
    assert_eq!((status, &refused["error"]["code"]), (413, &json!("file_too_large")), "{refused}");
    assert!(fake.recordings().is_empty());
}

#[tokio::test]
async fn voices_are_listed_and_missing_config_section_is_named() {
    let (server, _fake) = start().await;
    let entry =
        |name: &str, kind: &str, default: bool| json!({"name": name, "kind": kind, "default": default});
    let listed = json!({
        "voices": [entry("broken", "command", false), entry("default", "openai", true), entry("program", "command", false),
            entry("rude", "command", false)],
        "ears": [entry("local", "openai", true)],
    });
    assert_eq!(server.get("/v1/voices").await, (200, listed));

    let without = self::server(String::new()).await;
    assert_eq!(without.get("/v1/voices").await, (200, json!({"voices": [], "ears": []})));
    let (status, refused) = without.post("/v1/audio/speech", json!({"input": "Hello."})).await;
    assert_eq!((status, &refused["error"]["code"]), (404, &json!("not_configured")));
    assert_eq!(refused["error"]["remedy"], "add a section [voices.NAME] to throughline.toml");
    let (status, refused) = transcribe(&without, &[("file", "x")]).await;
    assert_eq!(
        (status, &refused["error"]["remedy"]),
        (404, &json!("add a section [ears.NAME] to throughline.toml"))
    );
}

#[tokio::test]
async fn audio_routes_require_a_key() {
    let (server, fake) = start().await;
    let nobody = support::http_client().build().unwrap();
    let body = json!({"input": "Hello."});
    assert_eq!(answered(nobody.post(server.url("/v1/audio/speech")).json(&body)).await.0, 401);
    let (kind, body) = form(&[("file", "x")]);
    let request = nobody.post(server.url("/v1/audio/transcriptions")).header("content-type", kind).body(body);
    assert_eq!(answered(request).await.0, 401);
    assert_eq!(answered(nobody.get(server.url("/v1/voices"))).await.0, 401);
    assert!(fake.requests().is_empty() && fake.recordings().is_empty());
}
