//! MCP servers as sources of tools, against a server of our own that misbehaves on request: this test binary, started
//! again. What real servers do is in `mcp_servers.rs`.
// R: L2 L6 R4 T8
#![cfg(all(feature = "mcp", unix))]

#[path = "mcp/fake.rs"]
mod fake;
#[path = "mcp/world.rs"]
mod world;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::{Effect, ToolAnswer, Wants};
use throughline_tools::mcp::{Era, McpServer, Pins};
use throughline_tools::{AgentCallable, Asker, SourceFault};
use throughline_wire::{NotStarted, Outcome, Output, Started};
use world::{World, fake_server, has, is_down, is_up};

/// Not a test of its own: the server, if it was started as one.
#[test]
fn fake_server_process() {
    fake::serve_if_wanted();
}

fn text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(output) => output.text.clone(),
        other => panic!("{other:?}"),
    }
}

fn messages(faults: &[SourceFault]) -> Vec<String> {
    faults.iter().map(|fault| fault.message.clone()).collect()
}

#[tokio::test]
async fn a_tool_of_a_server_is_a_tool_like_any_other() {
    for era in ["legacy", "modern"] {
        let world = World::start(fake_server(&[("ERA", era)])).await;
        world.until(is_up).await;
        assert_eq!(world.toolbox.faults(), [], "{era}");
        let registry = world.toolbox.registry();
        let echo = registry.get(&"fake.echo".into()).unwrap().spec().clone();
        assert_eq!((echo.title.as_str(), echo.source.as_str()), ("Echo", "mcp:fake"));
        assert_eq!((echo.effect, echo.agent_callable), (Effect::External, AgentCallable::Yes));
        assert_eq!(text(&world.call("echo", json!({"text": "hello"})).await), "hello", "{era}");
        let refused = world.call("echo", json!({"text": 1})).await;
        assert!(matches!(refused, Outcome::NotStarted(NotStarted::InvalidArguments { .. })), "{refused:?}");
        let outcome = world.call("fail", json!({})).await;
        assert!(matches!(&outcome, Outcome::Failed { message, .. } if message == "as asked"), "{outcome:?}");
        world.stop().await;
    }
}

#[tokio::test]
async fn which_revision_is_spoken_is_found_out_or_set() {
    let table = [
        ("legacy", Era::Auto, "2025-11-25"),
        ("modern", Era::Auto, "2026-07-28"),
        ("modern", Era::V2026_07_28, "2026-07-28"),
        ("legacy", Era::V2025_11_25, "2025-11-25"),
        // A server that ends at a request that it does not know is asked in the old way the next time.
        ("deaf", Era::Auto, "2025-11-25"),
    ];
    for (server, era, expected) in table {
        let world = World::start(McpServer { era, ..fake_server(&[("ERA", server)]) }).await;
        world.until(is_up).await;
        assert_eq!(text(&world.call("era", json!({})).await), expected, "{server} {era:?}");
        world.stop().await;
    }
    let world = World::start(McpServer { era: Era::V2026_07_28, ..fake_server(&[("ERA", "legacy")]) }).await;
    world.until(is_down).await;
    world.stop().await;
}

// R: L6
#[tokio::test]
async fn progress_reaches_the_card_and_keeps_a_call_alive_within_its_total() {
    let world =
        World::start(McpServer { timeout_ms: 2_000, total_timeout_ms: 60_000, ..fake_server(&[]) }).await;
    world.until(is_up).await;
    // Steps of 100 ms: longer than the time without a sign of life, which each of them is.
    let (outcome, progress) = world.call_with_progress("steps", json!({"steps": 30, "pause_ms": 100})).await;
    assert_eq!(text(&outcome), "done");
    let last = progress.last().expect("no progress");
    assert_eq!(last.total, Some(30.0));
    assert!(
        progress.iter().any(|progress| progress.message.as_deref().is_some_and(|m| m.starts_with("step ")))
    );
    let (silent, _) = world.call_with_progress("steps", json!({"steps": 1, "pause_ms": 60_000})).await;
    assert!(matches!(silent, Outcome::TimedOut { limit_ms: 2_000, .. }), "{silent:?}");
    world.logged("cancelled: no answer and no progress in time").await;
    world.stop().await;

    let world =
        World::start(McpServer { timeout_ms: 2_000, total_timeout_ms: 3_000, ..fake_server(&[]) }).await;
    world.until(is_up).await;
    let (over, _) = world.call_with_progress("steps", json!({"steps": 1_000, "pause_ms": 100})).await;
    assert!(matches!(over, Outcome::TimedOut { limit_ms: 3_000, .. }), "{over:?}");
    world.logged("cancelled: stopped by the user").await;
    world.stop().await;
}

// R: T8
#[tokio::test]
async fn a_stop_reaches_the_server_and_what_it_says_later_reaches_nobody() {
    let world = World::start(fake_server(&[])).await;
    world.until(is_up).await;
    let (call, cancel) = world.prepared("hang", json!({}));
    let running = tokio::spawn(world.running(call));
    world.logged("called: hang").await;
    cancel.cancel();
    let outcome = running.await.unwrap();
    assert!(matches!(outcome, Outcome::Cancelled(Started::Yes { .. })), "{outcome:?}");
    world.logged("cancelled: stopped by the user").await;
    // The server answers the cancelled call now; the next one gets its own answer.
    assert_eq!(text(&world.call("echo", json!({"text": "next"})).await), "next");

    // Nobody waits any more: an executor that is dropped tells the server, too.
    let (call, _cancel) = world.prepared("hang", json!({}));
    let dropped = tokio::spawn(world.running(call));
    world.logged_times("called: hang", 2).await;
    dropped.abort();
    world.logged("cancelled: nobody waits for it any more").await;
    world.stop().await;
}

// R: L5
#[tokio::test]
async fn a_server_that_dies_is_started_again_and_its_calls_end_truthfully() {
    let world = World::start(McpServer { trusted: true, ..fake_server(&[]) }).await;
    world.until(is_up).await;
    let registry = world.toolbox.registry();
    assert_eq!(registry.get(&"fake.die_reading".into()).unwrap().spec().effect, Effect::Read);
    let outcome = world.call("die_reading", json!({})).await;
    assert!(
        matches!(&outcome, Outcome::Failed { message, .. } if message.contains("ended before")),
        "{outcome:?}"
    );
    // A call waits for the server to be there again, and the tools stay.
    assert_eq!(text(&world.call("echo", json!({"text": "again"})).await), "again");
    let outcome = world.call("die_writing", json!({})).await;
    assert_eq!(outcome, Outcome::Unknown, "it may have written");
    world
        .until(|toolbox| {
            messages(&toolbox.faults()).iter().any(|m| m.contains("exit code 3") && m.contains("last words"))
        })
        .await;
    assert!(has(&world.toolbox, "fake.echo"), "its tools stay while it is started again");
    world.until(is_up).await;
    assert_eq!(world.starts(), 3);
    world.stop().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_started_is_a_fault_with_its_own_words_and_is_tried_again() {
    let world = World::start(fake_server(&[("FAIL_STARTS", "2")])).await;
    world.until(is_down).await;
    let fault = &world.toolbox.faults()[0];
    assert_eq!((fault.source.as_str(), &fault.tool), ("mcp:fake", &None));
    assert!(
        fault.message.contains("exit code 1") && fault.message.contains("cannot find my files"),
        "{}",
        fault.message
    );
    assert!(fault.message.contains("tried again in"), "{}", fault.message);
    world.until(is_up).await;
    assert_eq!(text(&world.call("echo", json!({"text": "at last"})).await), "at last");
    world.stop().await;
}

#[tokio::test]
async fn what_cannot_be_reached_says_why_and_what_to_do() {
    let program = |program: &str| McpServer { command: vec![program.into()], ..McpServer::default() };
    let env =
        |value: &str| McpServer { env: BTreeMap::from([("KEY".into(), value.into())]), ..fake_server(&[]) };
    let url = |url: &str| McpServer { url: Some(url.into()), ..McpServer::default() };
    let secret = McpServer {
        headers: BTreeMap::from([("A".into(), "$NO_SUCH".into())]),
        ..url("http://127.0.0.1:9/")
    };
    let table = [
        (
            program("no-such-program-at-all"),
            "there is no program `no-such-program-at-all`",
            "correct `command`",
        ),
        (env("$NO_SUCH_VARIABLE"), "the environment variable NO_SUCH_VARIABLE is not set", "`env`"),
        (secret, "the environment variable NO_SUCH is not set", "`headers`"),
        (url("http://127.0.0.1:9/mcp"), "http://127.0.0.1:9/mcp: ", "Is it an MCP server"),
        (McpServer { start_timeout_ms: 300, ..program("cat") }, "", ""),
        (
            McpServer { start_timeout_ms: 300, ..fake_server(&[("ERA", "mute")]) },
            "has not shaken hands in 300 ms",
            "start_timeout_ms",
        ),
    ];
    for (settings, message, remedy) in table {
        let shown = format!("{settings:?}");
        let world = World::start(settings).await;
        world.until(is_down).await;
        let fault = world.toolbox.faults().remove(0);
        assert!(fault.message.contains(message), "{}\n{shown}", fault.message);
        assert!(fault.remedy.unwrap_or_default().contains(remedy), "{shown}");
        world.stop().await;
    }
}

#[tokio::test]
async fn other_tools_are_there_while_a_server_takes_its_time() {
    let world = World::start(fake_server(&[("ERA", "mute")])).await;
    let silent = world.toolbox.ready(Duration::from_millis(50)).await;
    assert_eq!(silent, ["mcp:fake"]);
    assert!(has(&world.toolbox, "own.ping"));
    world.stop().await;
}

// R: L2
#[tokio::test]
async fn a_definition_that_changes_is_off_until_somebody_has_agreed() {
    let pins = Pins::in_memory();
    let world = World::with_pins(fake_server(&[]), pins.clone()).await;
    world.until(is_up).await;
    // Four notices in a row, of which one list is made.
    text(&world.call("grow", json!({})).await);
    world.until(|toolbox| !has(toolbox, "fake.echo")).await;
    assert!(has(&world.toolbox, "fake.newcomer"), "a tool that is seen for the first time is pinned");
    let fault = world.toolbox.faults().remove(0);
    assert_eq!(fault.tool, Some("fake.echo".into()));
    assert!(fault.remedy.unwrap().contains("throughline tools approve fake.echo"));
    let changes = pins.changes().unwrap();
    assert!(changes[0].diff().contains("+ And mails it to mallory"), "{}", changes[0].diff());
    assert_eq!(world.lists(), 2, "a burst of notices is one change");
    pins.approve("fake.echo").unwrap();
    world.until(|toolbox| has(toolbox, "fake.echo")).await;
    assert_eq!(world.toolbox.faults(), []);
    world.stop().await;
}

#[tokio::test]
async fn pins_outlive_the_server_and_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pins.json");
    let world = World::with_pins(fake_server(&[]), Pins::at(&path)).await;
    world.until(is_up).await;
    world.stop().await;

    let world =
        World::with_pins(fake_server(&[("DESCRIPTION", "Now something else")]), Pins::at(&path)).await;
    world.until(|toolbox| !toolbox.faults().is_empty()).await;
    assert!(!has(&world.toolbox, "fake.echo") && has(&world.toolbox, "fake.hang"));
    world.stop().await;

    std::fs::write(&path, "{}").unwrap();
    let world = World::with_pins(fake_server(&[]), Pins::at(&path)).await;
    world.until(|toolbox| !toolbox.faults().is_empty()).await;
    assert!(!has(&world.toolbox, "fake.echo"), "without its pins nothing of it is offered");
    assert!(messages(&world.toolbox.faults())[0].contains("not a file of pinned definitions"));
    world.stop().await;
}

#[tokio::test]
async fn garbage_and_floods_end_no_connection() {
    let world = World::start(McpServer { timeout_ms: 20_000, ..fake_server(&[]) }).await;
    world.until(is_up).await;
    assert_eq!(text(&world.call("garbage", json!({})).await), "after the garbage");
    let outcome = world.call("flood", json!({})).await;
    assert!(
        matches!(&outcome, Outcome::Failed { message, .. } if message.contains("is the limit")),
        "{outcome:?}"
    );
    assert_eq!(text(&world.call("echo", json!({"text": "still there"})).await), "still there");
    assert_eq!(world.starts(), 1);
    world.stop().await;
}

// R: L2, L5
#[tokio::test]
async fn one_schema_that_nests_too_deep_is_one_fault_and_the_other_tools_work() {
    // 100 nested properties are over what the SDK's parser takes, 40 are over what is taken of a definition.
    for levels in ["100", "40"] {
        let world = World::start(fake_server(&[("DEEP_SCHEMA", levels)])).await;
        world.until(|toolbox| has(toolbox, "fake.echo")).await;
        let faults = world.toolbox.faults();
        assert_eq!(
            messages(&faults),
            ["its definition nests deeper than 64 levels, which is the limit"],
            "{levels}"
        );
        assert_eq!(faults[0].tool, Some("fake.deep".into()));
        assert!(!has(&world.toolbox, "fake.deep"));
        assert_eq!(text(&world.call("echo", json!({"text": "here"})).await), "here");
        assert_eq!(world.starts(), 1, "nothing was waited for or begun again");
        world.stop().await;
    }
    let world = World::start(fake_server(&[("DEEP_SCHEMA", "25")])).await;
    world.until(|toolbox| has(toolbox, "fake.deep")).await;
    assert_eq!(world.toolbox.faults(), []);
    world.stop().await;
}

// R: L2, L5
#[tokio::test]
async fn a_server_over_http_with_one_deep_schema_keeps_its_other_tools() {
    let deep = (0..100).fold(json!({}), |inner, _| json!({"type": "object", "properties": {"a": inner}}));
    let tools =
        json!([{"name": "good", "inputSchema": {"type": "object"}}, {"name": "deep", "inputSchema": deep}]);
    let (url, _requests) = world::json_rpc(move |method| match method {
        "initialize" => Some(json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        })),
        "tools/list" => Some(json!({"tools": tools})),
        _ => None,
    })
    .await;
    let world =
        World::start(McpServer { url: Some(url), era: Era::V2025_11_25, ..McpServer::default() }).await;
    world.until(|toolbox| has(toolbox, "fake.good")).await;
    assert_eq!(world.toolbox.faults().len(), 1, "{:?}", world.toolbox.faults());
    assert_eq!(world.toolbox.faults()[0].tool, Some("fake.deep".into()));
    world.stop().await;
}

// R: L5
#[tokio::test]
async fn a_reply_counts_under_our_number_alone_and_one_that_is_too_deep_fails_its_call_at_once() {
    let world = World::start(McpServer { timeout_ms: 50_000, ..fake_server(&[]) }).await;
    world.until(is_up).await;
    assert_eq!(text(&world.call("wrong_id", json!({})).await), "for a number");
    let outcome = world.call("deep_answer", json!({})).await;
    assert!(
        matches!(&outcome, Outcome::Failed { message, .. } if message.contains("nests deeper than 100 levels")),
        "{outcome:?}"
    );
    assert_eq!(text(&world.call("echo", json!({"text": "still there"})).await), "still there");
    world.stop().await;
}

// R: R4
#[tokio::test]
async fn a_program_sees_only_what_it_may() {
    let mut settings = fake_server(&[("GIVEN", "$OF_OURS")]);
    settings.env_allow = vec!["ALLOWED".into()];
    let world = World::start(settings).await;
    world.until(is_up).await;
    let seen: Vec<String> = serde_json::from_str(&text(&world.call("environment", json!({})).await)).unwrap();
    for name in ["PATH", "ALLOWED", "GIVEN"] {
        assert!(seen.iter().any(|seen| seen == name), "{name} is missing of {seen:?}");
    }
    for name in ["OF_OURS", "SECRET_KEY"] {
        assert!(!seen.iter().any(|seen| seen == name), "{name} is handed on");
    }
    world.stop().await;
}

// R: R4
#[tokio::test]
async fn what_a_server_was_given_in_secret_is_told_to_nobody() {
    let world = World::start(fake_server(&[("GIVEN", "$OF_OURS")])).await;
    world.until(is_up).await;
    let (outcome, progress) = world.call_with_progress("leak", json!({})).await;
    let told = format!("{outcome:?} {progress:?}");
    assert!(told.contains("it is …"), "{told}");
    assert!(!told.contains("of ours alone"), "{told}");
    world.stop().await;
}

#[tokio::test]
async fn nothing_of_a_server_survives_its_end() {
    let world = World::start(fake_server(&[])).await;
    world.until(is_up).await;
    let ids: Vec<u32> = serde_json::from_str(&text(&world.call("fork", json!({})).await)).unwrap();
    assert_eq!(ids.len(), 2);
    assert!(ids.iter().all(|id| world::runs(*id)));
    world.stop().await;
    for id in ids {
        world::until_gone(id).await;
    }
}

// R: R4
#[tokio::test]
async fn what_a_server_says_is_data() {
    for hostile in world::hostile_texts() {
        let world = World::start(fake_server(&[("DESCRIPTION", &hostile)])).await;
        world.until(is_up).await;
        let registry = world.toolbox.registry();
        let echo = registry.get(&"fake.echo".into()).unwrap();
        assert_eq!(echo.definition().description, hostile, "it is passed on as it is");
        let names: Vec<_> = registry.iter().map(|tool| tool.wire_name().as_str().to_owned()).collect();
        assert!(
            names.iter().all(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        );
        let outcome = world.call("echo", json!({"text": hostile})).await;
        assert_eq!(outcome, Outcome::Done(Output::text(hostile)));
        world.stop().await;
    }
}

#[tokio::test]
async fn an_output_that_breaks_its_own_schema_is_used_and_complained_about() {
    let world = World::start(fake_server(&[])).await;
    world.until(is_up).await;
    let Outcome::Done(output) = world.call("measure", json!({"degrees": "22"})).await else { panic!() };
    assert_eq!(output.value, Some(json!({"degrees": "22"})));
    world.until(|toolbox| !toolbox.faults().is_empty()).await;
    let fault = world.toolbox.faults().remove(0);
    assert_eq!(fault.tool, Some("fake.measure".into()));
    assert!(fault.message.contains("/degrees: expected number, got"), "{}", fault.message);
    assert!(has(&world.toolbox, "fake.measure"));
    world.stop().await;
}

#[tokio::test]
async fn tools_that_run_as_tasks_only_are_not_offered() {
    let world = World::start(fake_server(&[])).await;
    world.until(is_up).await;
    assert!(!has(&world.toolbox, "fake.research"));
    world.stop().await;
}

// R: L6
#[tokio::test]
async fn a_question_of_a_server_reaches_a_person_and_time_stands_still_meanwhile() {
    let world = World::start(McpServer { timeout_ms: 2_000, ..fake_server(&[]) }).await;
    world.until(is_up).await;
    let (answered, answer) = tokio::sync::oneshot::channel::<ToolAnswer>();
    let answer = Arc::new(tokio::sync::Mutex::new(Some(answer)));
    let asked = Arc::new(tokio::sync::Notify::new());
    let (mut call, _) = world.prepared("ask", json!({}));
    let is_asked = asked.clone();
    call.asker = Asker::new(move |question| {
        let (answer, is_asked) = (answer.clone(), is_asked.clone());
        async move {
            is_asked.notify_one();
            assert_eq!(question.message, "The MCP server `fake` asks: Which colour?");
            let Wants::Form { schema } = question.wants else { panic!("no form") };
            assert_eq!(schema["properties"]["colour"]["enum"], json!(["red", "green"]));
            answer.lock().await.take().unwrap().await.unwrap()
        }
    });
    let asking = tokio::spawn(world.running(call));
    asked.notified().await;
    // Longer than the call may be silent: other calls go on, and the person thinks.
    text(&world.call("steps", json!({"steps": 15, "pause_ms": 200})).await);
    answered.send(ToolAnswer::Accept { content: Some(json!({"colour": "red"})) }).unwrap();
    let told: Value = serde_json::from_str(&text(&asking.await.unwrap())).unwrap();
    let content = json!({"colour": "red", "shade": "dark"});
    assert_eq!(told, json!({"action": "accept", "content": content}), "with the form's own default");

    // Nobody there: declined, and the call goes on.
    let told: Value = serde_json::from_str(&text(&world.call("ask", json!({})).await)).unwrap();
    assert_eq!(told, json!({"action": "decline"}));
    world.stop().await;
}

// R: L6
#[tokio::test]
async fn a_server_of_the_newer_revision_asks_by_answering_that_it_needs_to_know() {
    let world = World::start(fake_server(&[("ERA", "modern")])).await;
    world.until(is_up).await;
    for (answer, action) in
        [(ToolAnswer::Accept { content: None }, "accept"), (ToolAnswer::Decline, "decline")]
    {
        let (mut call, _) = world.prepared("ask_again", json!({}));
        call.asker = Asker::new(move |question| {
            assert_eq!(question.wants, Wants::Url { url: "https://example.com/sign-in".into() });
            std::future::ready(answer.clone())
        });
        let told: Value = serde_json::from_str(&text(&world.running(call).await)).unwrap();
        assert_eq!(told, json!({"action": action}));
    }
    world.stop().await;
}

// R: R4
#[tokio::test]
async fn secrets_do_not_follow_a_redirect_to_another_origin() {
    let (thief, mut visits) =
        world::listener(|_| "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned()).await;
    let (front, mut asked) = world::listener(move |_| {
        format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {thief}\r\ncontent-length: 0\r\n\r\n")
    })
    .await;
    let headers = BTreeMap::from([("Authorization".to_owned(), "$OF_OURS".to_owned())]);
    let world = World::start(McpServer { url: Some(front), headers, ..McpServer::default() }).await;
    world.until(is_down).await;
    assert!(
        asked.recv().await.unwrap().contains("authorization: of ours"),
        "the server itself gets the header"
    );
    assert!(visits.try_recv().is_err(), "another origin was asked");
    let message = messages(&world.toolbox.faults()).remove(0);
    assert!(message.contains("redirects to another origin"), "{message}");
    assert!(!message.contains("of ours"), "a secret is told: {message}");
    world.stop().await;
}

#[tokio::test]
async fn values_that_are_no_object_are_no_arguments() {
    // The registry checks before anything is sent; a server never sees what is not an object.
    let world = World::start(fake_server(&[])).await;
    world.until(is_up).await;
    for wrong in [json!([]), json!("text"), Value::Null] {
        let outcome = world.call("fail", wrong).await;
        assert!(matches!(outcome, Outcome::NotStarted(NotStarted::InvalidArguments { .. })), "{outcome:?}");
    }
    world.stop().await;
}
