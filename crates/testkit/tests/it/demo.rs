//! The demo model, called over the wire by a hand-written client.

use crate::client::talk::{Call, Offer, Step, Talk, offer};
use crate::client::{self, Over, asking, path, post};
use serde_json::{Value, json};
use throughline_testkit::demo::DemoModel;
use throughline_testkit::{FakeDialect, FakeUpstream, FakeUpstreamHandle};

async fn demo() -> FakeUpstreamHandle {
    FakeUpstream::start(DemoModel::instant()).await.expect("starts")
}

fn all_tools() -> Vec<Offer> {
    let text = json!({"type": "string"});
    vec![
        offer("demo_weather", json!({"city": text}), &["city"]),
        offer("demo_calendar", json!({"title": text, "start": text}), &["title", "start"]),
        offer("demo_fail", json!({}), &[]),
        offer("time_now", json!({"timezone": text}), &[]),
        offer("files_list", json!({"path": text}), &[]),
        offer("files_read", json!({"path": text}), &["path"]),
        offer("files_search", json!({"query": text}), &["query"]),
        offer(
            "live2d_expression",
            json!({"name": {"type": "string", "enum": ["neutral", "smile", "sad"]}}),
            &["name"],
        ),
        offer("live2d_motion", json!({"group": text, "index": {"type": "integer"}}), &["group"]),
    ]
}

/// Answers of the real demo's tools, more or less, in the words that Throughline uses for the rest.
async fn run(call: &Call) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
    match call.name.as_str() {
        "demo_weather" if serde_json::from_str::<Value>(&call.arguments).is_err() => {
            "The arguments are not valid, so the call was not started; nothing happened. EOF at byte 13. Correct the \
             arguments and call again."
                .into()
        }
        "demo_weather" if text("city").is_empty() => {
            "The arguments are not valid, so the call was not started; nothing happened. /city: missing. Correct the \
             arguments and call again."
                .into()
        }
        "demo_weather" => match text("city").as_str() {
            "Oslo" => "The tool failed: no report from there.".into(),
            "Paris" | "巴黎" => json!({"city": text("city"), "condition": "light rain", "temperature_c": 12}).to_string(),
            city => json!({"city": city, "condition": "晴", "temperature_c": city.len() * 3}).to_string(),
        },
        "time_now" => json!({"time": "2026-11-21T09:05:00+09:00", "timezone": text("timezone")}).to_string(),
        "files_list" => "README.md\nnotes.txt".into(),
        "files_read" if text("path") == "notes.txt" => "first line\nsecond line".into(),
        "files_read" => "The tool failed: there is no such file.".into(),
        "files_search" => format!("notes.txt:2: … {} …", text("query")),
        "demo_fail" => "The tool failed: this tool always fails.".into(),
        "demo_calendar" => "Denied: the call was not allowed and was not started; nothing happened. Reason: not now.".into(),
        "live2d_expression" | "live2d_motion" => {
            "No page or app that can run this tool is connected, so it was not started; nothing happened.".into()
        }
        _ => "There is no tool of this name, so nothing was started; nothing happened. Did you mean demo_weather?".into(),
    }
}

async fn ask(prompt: &str) -> Vec<Step> {
    let upstream = demo().await;
    let steps = Talk::new(&upstream, FakeDialect::OpenaiChat, &all_tools()).ask(prompt, 5, run).await;
    assert_eq!(upstream.violations(), []);
    steps
}

fn calls(steps: &[Step]) -> Vec<(&str, &str)> {
    steps
        .iter()
        .flat_map(|step| &step.calls)
        .map(|call| (call.name.as_str(), call.arguments.as_str()))
        .collect()
}

fn all_text(steps: &[Step]) -> String {
    steps.iter().map(|step| step.text.as_str()).collect()
}

/// The calls that each example leads to, and words that must be in the message.
#[tokio::test]
async fn every_example_answer_uses_its_tool_results() {
    for (prompt, expected_calls, words) in [
        (
            "What's the weather in Beijing, Paris and New York?",
            vec![
                ("demo_weather", r#"{"city":"Beijing"}"#),
                ("demo_weather", r#"{"city":"Paris"}"#),
                ("demo_weather", r#"{"city":"New York"}"#),
            ],
            vec![
                "3 calls, all in one go",
                "| Paris | light rain | 12 °C |",
                "warmest in **New York** (24 °C)",
                "umbrella in Paris",
            ],
        ),
        (
            "巴黎天气怎么样？",
            vec![("demo_weather", r#"{"city":"巴黎"}"#)],
            vec!["**巴黎**现在 **12 °C**", "带伞"],
        ),
        (
            "天气",
            vec![
                ("demo_weather", r#"{"city":"北京"}"#),
                ("demo_weather", r#"{"city":"巴黎"}"#),
                ("demo_weather", r#"{"city":"纽约"}"#),
            ],
            vec!["没有说是哪座城市"],
        ),
        (
            "Weather and time in Oslo?",
            vec![("demo_weather", r#"{"city":"Oslo"}"#), ("time_now", r#"{"timezone":"Europe/Oslo"}"#)],
            vec!["**Oslo**: the tool failed: no report from there.", "**09:05** in Oslo"],
        ),
        (
            "What time is it in Tokyo?",
            vec![("time_now", r#"{"timezone":"Asia/Tokyo"}"#)],
            vec!["It is **09:05** in Tokyo, on Saturday, 21 November 2026."],
        ),
        ("现在几点？", vec![("time_now", "{}")], vec!["现在是 **09:05**，2026年11月21日，星期六。"]),
        (
            "Which files are there?",
            vec![("files_list", r#"{"path":"."}"#)],
            vec!["```text\nREADME.md\nnotes.txt\n```"],
        ),
        (
            "Read notes.txt",
            vec![("files_read", r#"{"path":"notes.txt"}"#)],
            vec!["2 lines and 4 words", "second line"],
        ),
        (
            "读一下 README.md",
            vec![("files_read", r#"{"path":"README.md"}"#), ("files_list", r#"{"path":"."}"#)],
            vec!["没有成功：工具执行失败：there is no such file.", "notes.txt"],
        ),
        (
            "Search the files for \"token\"",
            vec![("files_search", r#"{"query":"token"}"#)],
            vec!["notes.txt:2: … token …"],
        ),
        (
            "Smile!",
            vec![("live2d_expression", r#"{"name":"smile"}"#)],
            vec!["here comes a smile … and I am still talking", "no avatar connected"],
        ),
        ("挥手", vec![("live2d_motion", r#"{"group":"Wave","index":0}"#)], vec!["挥挥手", "没有连接"]),
        (
            "Put a meeting with Ada into my calendar, tomorrow at 3pm",
            vec![
                ("time_now", "{}"),
                ("demo_calendar", r#"{"title":"Meeting with Ada","start":"2026-11-22T15:00"}"#),
            ],
            vec!["Sunday, 22 November 2026 at 15:00", "I leave the calendar as it is", "“not now.”"],
        ),
        (
            "把明天下午三点和小李开会记到日历里",
            vec![
                ("time_now", "{}"),
                ("demo_calendar", r#"{"title":"和小李开会","start":"2026-11-22T15:00"}"#),
            ],
            vec!["日历保持原样"],
        ),
        (
            "Call a tool that fails",
            vec![("demo_fail", "{}")],
            vec!["> this tool always fails.", "never ends the message"],
        ),
        (
            "Call a tool that does not exist",
            vec![("demo_wether", r#"{"city":"Paris"}"#), ("demo_weather", r#"{"city":"Paris"}"#)],
            vec!["closest name: `demo_weather`", "That worked", "light rain"],
        ),
        (
            "Call a tool with wrong arguments",
            vec![("demo_weather", r#"{"town":42}"#), ("demo_weather", r#"{"city":"Paris"}"#)],
            vec!["> /city: missing.", "That worked"],
        ),
        (
            "Send malformed arguments",
            vec![("demo_weather", r#"{"city": "Par"#), ("demo_weather", r#"{"city":"Paris"}"#)],
            vec!["> EOF at byte 13.", "costs one step"],
        ),
        (
            "Give me a long answer",
            vec![],
            vec!["# One message, all the way through", "| What arrives |", "```rust"],
        ),
        ("来一篇长文", vec![], vec!["# 一条消息，从头到尾", "| 收到的内容 |"]),
        ("Think aloud", vec![], vec!["The ball costs **0.05**"]),
        ("Count to twenty", vec![], vec!["1, 2, 3, ", "19, 20."]),
        ("Count slowly to 30", vec![], vec!["29, 30."]),
        ("Count slowly to 1000000", vec![], vec!["99, 100."]),
        ("Count slowly to 99999999999", vec![], vec!["19, 20."]),
        ("What is 17 * 23?", vec![], vec!["17 × 23 = **391**"]),
        ("Send a picture", vec![], vec!["Send me a picture"]),
        ("Hello", vec![], vec!["a script, not an AI", "*Smile!*", "calendar"]),
        ("你能做什么？", vec![], vec!["不是人工智能", "*笑一个！*"]),
        ("谢谢", vec![], vec!["不客气"]),
        ("blue", vec![], vec!["> blue", "not in my script", "*help*"]),
    ] {
        let steps = ask(prompt).await;
        assert_eq!(calls(&steps), expected_calls, "{prompt}");
        let text = all_text(&steps);
        for word in words {
            assert!(text.contains(word), "{prompt}: {word:?} is missing in:\n{text}");
        }
    }
}

#[tokio::test]
async fn gesture_call_is_mid_text_and_thinking_is_separate() {
    let steps = ask("Smile, please").await;
    assert!(steps[0].text_after_call && steps[0].finish == "tool_calls", "{steps:?}");
    let steps = ask("Think aloud").await;
    assert!(steps[0].thinking.contains("2x = 0.10") && !steps[0].text.contains("call the ball x"));
}

/// The last step has tools off, and the demo answers without a call.
#[tokio::test]
async fn demo_stops_calling_when_tools_are_off() {
    for dialect in
        [FakeDialect::OpenaiChat, FakeDialect::OpenaiResponses, FakeDialect::Anthropic, FakeDialect::Gemini]
    {
        let upstream = demo().await;
        let mut talk = Talk::new(&upstream, dialect, &all_tools());
        let steps = talk.ask("Call the clock again and again", 3, run).await;
        assert_eq!(calls(&steps).len(), 3, "{dialect}");
        assert!(
            all_text(&steps).contains("after 3 calls no more are allowed"),
            "{dialect}: {}",
            all_text(&steps)
        );
    }
}

/// A client's tools, which no rule of the demo knows, as Chat Completions has them.
fn client_tools() -> Value {
    let tool = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let level = json!({"type": "string", "enum": ["low", "high"]});
    json!([
        tool(
            "final_answer",
            json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]})
        ),
        tool(
            "lamp_set",
            json!({
                "type": "object", "required": ["level", "count"],
                "properties": {"level": level, "count": {"type": "integer", "minimum": 2}, "room": {"type": "string"}},
            })
        ),
    ])
}

/// The message that answers, streamed and in one piece: text, then calls with their arguments.
async fn answer(messages: &Value, tools: Value, choice: Value) -> (String, Vec<(String, Value)>) {
    let upstream = demo().await;
    let mut body = json!({"model": "demo", "messages": messages, "tools": tools, "tool_choice": choice});
    let whole = post(&upstream, "/v1/chat/completions", &body).await.json();
    body["stream"] = true.into();
    let streamed = post(&upstream, "/v1/chat/completions", &body).await;
    assert_eq!(upstream.violations(), [], "{choice}");
    let step = client::talk::read(FakeDialect::OpenaiChat, &streamed);
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| text.into());
    let calls = step.calls.iter().map(|call| (call.name.clone(), parsed(&call.arguments))).collect();
    let message = &whole["choices"][0]["message"];
    let same: Vec<_> = message["tool_calls"].as_array().into_iter().flatten().collect();
    let same = same.iter().map(|call| {
        let function = &call["function"];
        (function["name"].as_str().unwrap().to_owned(), parsed(function["arguments"].as_str().unwrap()))
    });
    let answer: (String, Vec<(String, Value)>) = (step.text, calls);
    assert_eq!(
        (message["content"].as_str().unwrap_or_default(), same.collect()),
        (answer.0.as_str(), answer.1.clone())
    );
    let finish = if answer.1.is_empty() { "stop" } else { "tool_calls" };
    assert_eq!((step.finish.as_str(), &whole["choices"][0]["finish_reason"]), (finish, &json!(finish)));
    answer
}

fn question(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

/// The question with the demo's call of this tool, and the tool's result.
fn answered(text: &str, tool: &str, result: &str) -> Value {
    let call = json!({"id": "a", "type": "function", "function": {"name": tool, "arguments": "{}"}});
    json!([{"role": "user", "content": text}, {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": result}])
}

#[tokio::test]
async fn required_tool_choice_gets_a_matching_call() {
    let named = |name: &str| json!({"type": "function", "function": {"name": name}});
    let lamp = || vec![("lamp_set".to_owned(), json!({"level": "high", "count": 3}))];
    let text = "Make it 3 lamps, high";
    let spoken = || vec![("final_answer".to_owned(), json!({"answer": text}))];
    for (choice, expected) in [
        (named("lamp_set"), lamp()),
        (named("final_answer"), spoken()),
        // Of several tools the first is called, unless a word of the question names another.
        (json!("required"), spoken()),
    ] {
        assert_eq!(
            answer(&question(text), client_tools(), choice.clone()).await,
            (String::new(), expected),
            "{choice}"
        );
    }
    let (_, calls) = answer(&question("A lamp, high, please"), client_tools(), json!("required")).await;
    assert_eq!(calls, [("lamp_set".to_owned(), json!({"level": "high", "count": 2}))]);
}

#[tokio::test]
async fn required_tool_choice_works_in_other_dialects() {
    let schema = json!({"type": "object", "properties": {"level": {"type": "string", "enum": ["low"]}}, "required": ["level"]});
    for (dialect, tools, key, choice) in [
        (
            FakeDialect::OpenaiResponses,
            json!([{"type": "function", "name": "lamp_set", "parameters": schema, "strict": false}]),
            "tool_choice",
            json!("required"),
        ),
        (
            FakeDialect::Anthropic,
            json!([{"name": "lamp_set", "input_schema": schema}]),
            "tool_choice",
            json!({"type": "any"}),
        ),
        (
            FakeDialect::Gemini,
            json!([{"functionDeclarations": [{"name": "lamp_set", "parametersJsonSchema": schema}]}]),
            "toolConfig",
            json!({"functionCallingConfig": {"mode": "ANY"}}),
        ),
    ] {
        let upstream = demo().await;
        let mut body = asking(dialect, "hello");
        (body["tools"], body[key]) = (tools, choice);
        let reply = post(&upstream, &path(dialect, "demo"), &body).await;
        let step = client::talk::read(dialect, &reply);
        assert_eq!(calls(&[step]), [("lamp_set", r#"{"level":"low"}"#)], "{dialect}");
        assert_eq!(upstream.violations(), [], "{dialect}");
    }
}

#[tokio::test]
async fn client_tool_result_is_answered_with_text() {
    for choice in [json!("auto"), json!("none")] {
        let messages = answered("hello", "lamp_set", "two lamps are on");
        let (text, calls) = answer(&messages, client_tools(), choice).await;
        assert_eq!(calls, []);
        assert!(text.contains("`lamp_set`:\n\n> two lamps are on"), "{text}");
    }
    let (text, _) = answer(&answered("你好", "lamp_set", ""), client_tools(), json!("auto")).await;
    assert!(text.contains("脚本") && text.ends_with("> …"), "{text}");
}

/// Clients that demand a call in every step end with a tool of theirs.
#[tokio::test]
async fn repeated_required_tool_choice_calls_the_other_tool() {
    let text = "A lamp, please";
    let (_, calls) = answer(&answered(text, "lamp_set", "on"), client_tools(), json!("required")).await;
    assert_eq!(calls, [("final_answer".to_owned(), json!({"answer": text}))]);
}

#[tokio::test]
async fn required_tool_choice_keeps_the_scripted_text() {
    let weather = json!([{"type": "function", "function": {"name": "demo_weather", "parameters":
        {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]);
    let (text, calls) = answer(&question("Weather in Oslo?"), weather.clone(), json!("required")).await;
    assert_eq!(calls, [("demo_weather".to_owned(), json!({"city": "Oslo"}))]);
    assert!(text.contains("Let me look at the weather in Oslo"), "{text}");
    // The script would misspell the name, and a name that is not offered is not one of the client's tools.
    let (_, calls) = answer(&question("Call a tool that does not exist"), weather, json!("required")).await;
    assert_eq!(calls, [("demo_weather".to_owned(), json!({"city": "Paris"}))]);
}

#[tokio::test]
async fn tool_choice_none_gets_no_call() {
    let tool = |offer: Offer| json!({"type": "function", "function": {"name": offer.name, "parameters": offer.parameters}});
    let tools: Value = all_tools().into_iter().map(tool).collect();
    for prompt in [
        "Weather and time in Oslo?",
        "What time is it in Tokyo?",
        "Which files are there?",
        "Read notes.txt",
        "Search the files for \"token\"",
        "Smile!",
        "Wave",
        "Put a meeting with Ada into my calendar",
        "Call a tool that fails",
        "Call a tool that does not exist",
        "Call a tool with wrong arguments",
        "Send malformed arguments",
        "Call the clock again and again",
        "hello",
    ] {
        let (text, calls) = answer(&question(prompt), tools.clone(), json!("none")).await;
        assert!(calls.is_empty() && !text.is_empty(), "{prompt}: {calls:?} {text}");
    }
}

#[tokio::test]
async fn demo_names_a_tool_that_is_not_offered() {
    let upstream = demo().await;
    for (prompt, word) in [
        ("Weather in Paris", "`demo_weather`, but it is not among the tools"),
        ("现在几点", "`time_now`，但它不在"),
        ("Smile", "live2d_expression"),
        ("Put a meeting into my calendar", "demo_calendar"),
        ("Call a tool that fails", "demo_fail"),
        ("Call a tool that does not exist", "demo_weather"),
        ("Which files are there", "files_list"),
    ] {
        let steps = Talk::new(&upstream, FakeDialect::OpenaiChat, &[]).ask(prompt, 5, run).await;
        assert!(
            calls(&steps).is_empty() && all_text(&steps).contains(word),
            "{prompt}: {}",
            all_text(&steps)
        );
    }
    let help = Talk::new(&upstream, FakeDialect::OpenaiChat, &[]).ask("help", 5, run).await;
    assert!(!all_text(&help).contains("Smile!"), "examples that cannot work are not given");
}

/// Equal answers over every wire, and for the next message in the same conversation too.
#[tokio::test]
async fn five_dialects_carry_the_same_conversation() {
    for dialect in client::talk::SPOKEN {
        let upstream = demo().await;
        let mut talk = Talk::new(&upstream, dialect, &all_tools());
        let steps = talk.ask("Weather in Beijing, Paris", 5, run).await;
        let expected = [("demo_weather", r#"{"city":"Beijing"}"#), ("demo_weather", r#"{"city":"Paris"}"#)];
        assert_eq!(calls(&steps), expected, "{dialect}");
        assert!(
            all_text(&steps).contains("| Paris | light rain | 12 °C |"),
            "{dialect}: {}",
            all_text(&steps)
        );
        let steps = talk.ask("Think aloud", 5, run).await;
        assert!(steps[0].thinking.contains("bat"), "{dialect}");
        let steps = talk.ask("Put a meeting with Ada into my calendar for Friday at noon", 5, run).await;
        assert!(
            all_text(&steps).contains("Friday, 27 November 2026 at 12:00"),
            "{dialect}: {}",
            all_text(&steps)
        );
        assert_eq!(upstream.violations(), [], "{dialect}");
        assert_eq!(upstream.requests().last().map(|seen| seen.step()), Some(3), "{dialect}");
    }
}

#[tokio::test]
async fn image_reply_reports_the_measured_size() {
    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let upstream = demo().await;
    for dialect in client::talk::SPOKEN {
        let mut body = asking(dialect, "");
        let data = format!("data:image/png;base64,{PIXEL}");
        let (pointer, content) = match dialect {
            FakeDialect::OpenaiChat => {
                ("/messages/0/content", json!([{"type": "image_url", "image_url": {"url": data}}]))
            }
            FakeDialect::OpenaiResponses => {
                ("/input/0/content", json!([{"type": "input_image", "image_url": data}]))
            }
            FakeDialect::Anthropic => (
                "/messages/0/content",
                json!([{"type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}]),
            ),
            FakeDialect::Gemini => {
                ("/contents/0/parts", json!([{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]))
            }
            FakeDialect::Ollama => {
                ("/messages/0", json!({"role": "user", "content": "what is it", "images": [PIXEL]}))
            }
            other => panic!("{other} is not spoken here"),
        };
        *body.pointer_mut(pointer).expect("there") = content;
        let reply = post(&upstream, &path(dialect, "demo"), &body).await;
        let text = client::talk::read(dialect, &reply).text;
        assert!(text.contains("**PNG**, 1 × 1 pixels, 70 B"), "{dialect}: {text} {}", reply.text());
    }
}

// Virtual time: a hundred tokens take a second and a half on the fake clock.
#[tokio::test(start_paused = true)]
async fn demo_streams_60_to_80_tokens_per_second() {
    let upstream = throughline_testkit::demo::start().await.expect("starts");
    let began = tokio::time::Instant::now();
    let reply = post(&upstream, "/api/chat", &asking(FakeDialect::Ollama, "Think aloud")).await;
    let (tokens, took) = (reply.events().len() as f64, began.elapsed().as_secs_f64());
    assert_eq!(reply.over, Over::Whole);
    let rate = tokens / took;
    assert!((60.0..80.0).contains(&rate), "{rate} tokens a second");
}

/// The tools of a new user's first conversation, and Throughline's texts about their outcomes.
#[tokio::test(start_paused = true)]
async fn demo_handles_outcomes_of_built_in_tools() {
    use throughline_tools::builtin::{demo, live2d, time};
    use throughline_tools::{ToolExecutor, ToolInvocation, ToolRegistry, ToolToggles};
    use throughline_wire::{CallArguments, CallOutcome, NotStarted};

    let registry =
        ToolRegistry::builder().tools(demo::tools()).tools(live2d::tools()).tool(time::TimeNow::default());
    let registry = registry.build().expect("legal");
    let offered = registry.offered(&ToolToggles::default());
    let offers: Vec<Offer> = offered
        .iter()
        .map(|tool| Offer {
            name: tool.wire_name.as_str().to_owned().leak(),
            parameters: tool.definition.parameters.as_ref().clone(),
        })
        .collect();
    let run = async |call: &Call| {
        let outcome = match offered.iter().find(|tool| tool.wire_name.as_str() == call.name) {
            Some(tool) => {
                let arguments = serde_json::from_str(&call.arguments).expect("JSON");
                let call = ToolInvocation::new(
                    call.id.as_str(),
                    tool.name.clone(),
                    CallArguments::from_value(arguments),
                );
                ToolExecutor::default().run(&registry, call, |_| async {}).await
            }
            None => {
                let closest = registry.suggest(&call.name, &ToolToggles::default());
                CallOutcome::NotStarted(NotStarted::UnknownTool { closest })
            }
        };
        outcome.model_text()
    };
    let upstream = demo().await;
    for (prompt, words) in [
        ("Weather in Beijing, Paris and New York", ["| City | Sky | Temperature |", "It is warmest in **"]),
        ("巴黎的天气", ["**巴黎**现在 **", " °C**，"]),
        ("What time is it in Tokyo?", ["It is **", "in Tokyo, on "]),
        (
            "Put a meeting with Ada into my calendar for Friday at 3pm",
            ["Done: **Meeting with Ada** is in the calendar", "Entry 1 added"],
        ),
        ("Call a tool that fails", ["> demo.fail always fails", "never ends the message"]),
        ("Smile!", ["I am still talking", "no avatar connected"]),
        ("Call a tool that does not exist", ["closest name: `demo_weather`", "That worked:"]),
        ("Call a tool with wrong arguments", ["> /city: missing, expected string.", "That worked:"]),
    ] {
        let text =
            all_text(&Talk::new(&upstream, FakeDialect::OpenaiChat, &offers).ask(prompt, 5, &run).await);
        for word in words {
            assert!(text.contains(word), "{prompt}: {word:?} is missing in:\n{text}");
        }
    }
    assert_eq!(upstream.violations(), []);
}

/// A note in the user's role (loop guard), or the picture of a result, is not a new question.
#[tokio::test]
async fn system_notes_and_result_images_are_not_new_questions() {
    let upstream = demo().await;
    let call = json!({"id": "a", "type": "function", "function": {"name": "time_now", "arguments": "{}"}});
    for after in [
        json!("[Note from the system: you are repeating the same calls (time.now). Do not repeat them.]"),
        json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]),
    ] {
        let body = json!({"model": "demo", "messages": [
            {"role": "user", "content": "现在几点？"}, {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "2026-11-21T09:05:00+00:00"},
            {"role": "user", "content": after}]});
        let reply = post(&upstream, "/v1/chat/completions", &body).await.json();
        let text = reply["choices"][0]["message"]["content"].as_str().unwrap_or_default();
        assert!(text.contains("**09:05**"), "{text}");
        assert_eq!(upstream.requests().last().map(|seen| seen.step()), Some(2));
    }
}
