//! The engine's blind spots: where a call came from, and which number it had.

use crate::script::{self, ScriptedTurn};
use std::path::Path;
use throughline_engine::{Event, EventKind};
use throughline_wire::{DecodeOptions, Dialect, LeakedCalls, StepDecoder, StepEvent, UpstreamProfile};

/// Events of a whole body.
fn decoded(deltas: &[&str], profile: UpstreamProfile) -> Vec<StepEvent<'static>> {
    let mut body = String::new();
    for delta in deltas {
        body.push_str(&format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n"));
    }
    body.push_str("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    let options = DecodeOptions { profile, ..DecodeOptions::default() };
    let mut decoder = StepDecoder::new(Dialect::OpenaiChat, options);
    let mut events = Vec::new();
    decoder.push(body.as_bytes(), &mut |event| events.push(event.into_owned()));
    decoder.finish(&mut |event| events.push(event.into_owned()));
    events
}

// A call that was written as text is, event for event, one that was sent as such.
#[test]
fn leaked_call_gives_the_same_events_as_a_native_call() {
    let native = decoded(
        &[
            r#"{"content":"Let me look."}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}]}"#,
        ],
        UpstreamProfile::default(),
    );
    let markup =
        r#"{"content":"<tool_call>{\"name\":\"weather\",\"arguments\":{\"city\":\"Paris\"}}</tool_call>"}"#;
    let run = UpstreamProfile { leaked_calls: LeakedCalls::Run, ..UpstreamProfile::default() };
    let mut from_text = decoded(&[r#"{"content":"Let me look."}"#, markup], run);
    // Text that was shown stays shown; apart from that there is no difference.
    assert!(matches!(&from_text[1], StepEvent::Text(text) if text.contains("<tool_call>")), "{from_text:?}");
    from_text.remove(1);
    assert_eq!(from_text, native);
    assert!(native.iter().any(|event| matches!(event, StepEvent::CallSealed { .. })), "{native:?}");
}

#[test]
fn mode_is_recorded_and_does_not_change_the_log() {
    let script = r#"
        text So
        open A weather
        seal A {"city":"Paris"}
        open B note
        seal B {}
        finish tool_calls
        ok A sunny
        deny B not now
        text Done
        finish stop"#;
    let log = |mode: &str| -> (String, Vec<Event>) {
        let mut setup = script::setup("tools weather:read note:write; ask");
        setup.mode = mode.into();
        let mut scripted = ScriptedTurn::new(setup);
        script.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| scripted.line(line));
        assert!(scripted.turn.is_over());
        let EventKind::StreamStart { mode, .. } = &mut scripted.log[0].kind else { panic!("a start") };
        (std::mem::take(mode), scripted.log)
    };
    let (native, text) = (log("native"), log("text"));
    assert_eq!((native.0.as_str(), text.0.as_str()), ("native", "text"));
    assert_eq!(native.1, text.1);
}

/// Sources of this crate, by file name.
fn sources() -> Vec<(String, String)> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                sources.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    sources.sort();
    sources
}

// A call is identified by our slot; the upstream's number is only known for further choices.
#[test]
fn engine_sources_mention_no_index_or_provider() {
    let sources = sources();
    assert!(sources.len() > 10, "the sources are not where they were");
    for (file, text) in sources {
        for (number, line) in (1..).zip(text.lines()) {
            let lower = line.to_lowercase();
            assert!(!lower.contains("index") || lower.contains("choice"), "{file}:{number}: {line}");
            for name in
                ["openai", "anthropic", "gemini", "ollama", "cohere", "bedrock", "deepseek", "mistral"]
            {
                assert!(!lower.contains(name), "{file}:{number}: {line}");
            }
        }
    }
}
