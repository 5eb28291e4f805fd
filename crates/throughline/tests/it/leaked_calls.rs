//! Tool calls that a server leaves in the text: a visible problem that names the remedies, and run only if
//! the upstream's profile allows it.

use crate::support::{self, DIALECTS, at, builder, read, serve, statuses};
use throughline::wire::{LeakedCalls, UpstreamProfile};
use throughline::{CallStatus, Event, EventKind};
use throughline_testkit::{ModelScript, ScriptQueue};

/// One call of `weather.today` in grammars that servers have been seen to let through.
const LEAKED: [(&str, &str); 8] = [
    (
        "hermes",
        "<tool_call>\n{\"name\": \"weather_today\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>",
    ),
    ("mistral", "[TOOL_CALLS][{\"name\": \"weather_today\", \"arguments\": {\"city\": \"Oslo\"}}]"),
    (
        "deepseek",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather_today\n```json\n{\"city\": \"Oslo\"}\n```\
         <｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    (
        "kimi",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather_today:0<|tool_call_argument_begin|>\
         {\"city\": \"Oslo\"}<|tool_call_end|><|tool_calls_section_end|>",
    ),
    ("glm", "<tool_call>weather_today\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>"),
    ("llama", "<|python_tag|>{\"name\": \"weather_today\", \"parameters\": {\"city\": \"Oslo\"}}"),
    (
        "harmony",
        "<|start|>assistant<|channel|>commentary to=functions.weather_today <|constrain|>json<|message|>{\"city\": \"Oslo\"}\
         <|call|>",
    ),
    (
        "minimax",
        "<minimax:tool_call>\n<invoke name=\"weather_today\">\n<parameter name=\"city\">Oslo</parameter>\n</invoke>\n\
         </minimax:tool_call>",
    ),
];

/// Code, excerpt and remedy of each finding.
fn problems(events: &[Event]) -> Vec<(&str, &str, &str)> {
    fn problem(event: &Event) -> Option<(&str, &str, &str)> {
        match &event.kind {
            EventKind::Problem { code, excerpt, remedy, .. } => {
                Some((code.as_str(), excerpt.as_str(), remedy.as_deref().unwrap_or_default()))
            }
            _ => None,
        }
    }
    events.iter().filter_map(problem).collect()
}

#[tokio::test]
async fn leaked_call_is_reported_with_remedies_and_not_run() {
    for (format, text) in LEAKED {
        for dialect in DIALECTS {
            let server = serve(ScriptQueue::new([ModelScript::new().say(text)])).await;
            let app = builder(&server, dialect).build().unwrap();
            let (events, message) = read(app.ask("Weather?").await.unwrap()).await;
            assert_eq!(statuses(&message), [], "{format}: nothing runs by itself");
            assert_eq!(message.text(), text, "{format}: it stays what it is: text");
            let [(code, excerpt, remedy)] = problems(&events)[..] else { panic!("{format}: {events:#?}") };
            assert_eq!(code, "leaked_call", "{format}");
            assert!(excerpt.starts_with(&format!("{format}: ")), "{format}: {excerpt}");
            for way in ["`profile = { leaked_calls = \"run\" }`", "`/mode text`", "`protocol = \"xml\"`"] {
                assert!(remedy.contains(way), "{format}: {remedy}");
            }
        }
    }
}

#[tokio::test]
async fn leaked_call_runs_if_the_profile_allows_it() {
    for (format, text) in LEAKED {
        for dialect in DIALECTS {
            let server =
                serve(ScriptQueue::new([ModelScript::new().say(text), ModelScript::new().say("Sunny.")]))
                    .await;
            let profile = UpstreamProfile { leaked_calls: LeakedCalls::Run, ..UpstreamProfile::default() };
            let app =
                builder(&server, dialect).upstream(at(&server, dialect).profile(profile)).build().unwrap();
            let (events, message) = read(app.ask("Weather?").await.unwrap()).await;
            assert_eq!(statuses(&message), [CallStatus::Success], "{format} in {}: {events:#?}", dialect.0);
            assert_eq!(support::tool_results_sent(&server, 1), ["Oslo: sunny"], "{format} in {}", dialect.0);
            assert_eq!(server.violations(), [], "{format} in {}", dialect.0);
        }
    }
}
