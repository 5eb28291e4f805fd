//! Whole turns over real sockets, every scenario in every dialect: one message, every call one outcome, and a history
//! that a strict provider accepts afterwards.

use crate::support::{
    self, DIALECTS, Expected, at, builder, check, city, read, serve, statuses, tool_results_sent,
};
use futures_util::future::join_all;
use serde_json::{Value, json};
use throughline::engine::RetryPolicy;
use throughline::tools::{Effect, NoArguments, tool};
use throughline::wire::{Dialect, TransferMode};
use throughline::{
    ApprovalMode, AssistantMessage, CallStatus as C, EventKind, MessageBlock, Throughline, TurnStatus as T,
    UpstreamTimeouts, UserInput,
};
use throughline_testkit::parsed_request::ParsedMessage;
use throughline_testkit::{
    CallMove, ExchangeEnd, FakeDialect, HttpAnswer, ModelScript, ParsedRequest, ScriptMove, ScriptQueue,
    UpstreamVendor,
};

/// A model's behaviour in a turn, and the outcome.
struct Scenario {
    what: &'static str,
    replies: Vec<ModelScript>,
    calls: Vec<C>,
    status: T,
    text: &'static str,
    /// The results of the first step's calls as the model sees them: a part of each text.
    told: Vec<&'static str>,
}

impl Scenario {
    fn stalls(&self) -> bool {
        stalls(&self.replies[0])
    }

    /// A stalled reply runs into a limit that a test can wait for, and nothing else runs into any on a slow machine.
    fn timeouts(&self) -> UpstreamTimeouts {
        const SOON_MS: u64 = 3_000;
        if self.stalls() {
            UpstreamTimeouts { first_byte_ms: SOON_MS, idle_ms: SOON_MS, ..UpstreamTimeouts::default() }
        } else {
            UpstreamTimeouts::default()
        }
    }
}

/// True if a reply stalls forever.
fn stalls(script: &ModelScript) -> bool {
    script.first_byte_ms > 0 || script.moves.contains(&ScriptMove::Stall)
}

fn scenarios() -> Vec<Scenario> {
    let answer = || ModelScript::new().say("Done.");
    let two = |name: &str| {
        ScriptMove::Parallel(vec![CallMove::new(name, city("Oslo")), CallMove::new(name, city("Rome"))])
    };
    vec![
        Scenario {
            what: "no tools at all",
            replies: vec![answer()],
            calls: vec![],
            status: T::Completed,
            text: "Done.",
            told: vec![],
        },
        Scenario {
            what: "two tools in one step",
            replies: vec![ModelScript::new().say("Let me look.").then(two("weather_today")), answer()],
            calls: vec![C::Success, C::Success],
            status: T::Completed,
            text: "Let me look.\n\nDone.",
            told: vec!["Oslo: sunny", "Rome: sunny"],
        },
        Scenario {
            what: "thinking before a call",
            replies: vec![
                ModelScript::new().think("Hm, Oslo.").call("weather_today", city("Oslo")),
                answer(),
            ],
            calls: vec![C::Success],
            status: T::Completed,
            text: "Done.",
            told: vec!["Oslo: sunny"],
        },
        Scenario {
            what: "a failing tool, a panicking one and a good one",
            replies: vec![
                ModelScript::new()
                    .call("door_open", json!({}))
                    .call("bomb_tick", json!({}))
                    .call("weather_today", city("Oslo")),
                answer(),
            ],
            calls: vec![C::Error, C::Error, C::Success],
            status: T::Completed,
            text: "Done.",
            told: vec!["the door is locked", "panicked: boom", "Oslo: sunny"],
        },
        Scenario {
            what: "an unknown tool",
            replies: vec![ModelScript::new().call("weather_todya", city("Oslo")), answer()],
            calls: vec![C::NotStarted],
            status: T::Completed,
            text: "Done.",
            told: vec!["weather_today"],
        },
        Scenario {
            what: "arguments that do not fit",
            replies: vec![ModelScript::new().call("weather_today", json!({"city": 42})), answer()],
            calls: vec![C::NotStarted],
            status: T::Completed,
            text: "Done.",
            told: vec!["/city"],
        },
        Scenario {
            what: "tools step after step",
            replies: vec![
                ModelScript::new().call("weather_today", city("Oslo")),
                ModelScript::new().say("And Rome.").call("weather_today", city("Rome")),
                answer(),
            ],
            calls: vec![C::Success, C::Success],
            status: T::Completed,
            text: "And Rome.\n\nDone.",
            told: vec!["Oslo: sunny"],
        },
        Scenario {
            what: "a rate limit before the first token",
            replies: vec![ModelScript::rate_limited(0), answer()],
            calls: vec![],
            status: T::Completed,
            text: "Done.",
            told: vec![],
        },
        Scenario {
            what: "a stall before the first token",
            // The upstream may still be reading the prompt, so the request is not repeated.
            replies: vec![ModelScript { first_byte_ms: 60_000, ..ModelScript::new() }],
            calls: vec![],
            status: T::Error,
            text: "",
            told: vec![],
        },
        Scenario {
            what: "a stream cut in mid-text",
            replies: vec![ModelScript::new().say("Half a").then(ScriptMove::Pause(50)).then(ScriptMove::Cut)],
            calls: vec![],
            status: T::Error,
            text: "Half a",
            told: vec![],
        },
        Scenario {
            what: "a stream that stalls in mid-text",
            replies: vec![ModelScript::new().say("Half a").then(ScriptMove::Stall)],
            calls: vec![],
            status: T::Error,
            text: "Half a",
            told: vec![],
        },
        Scenario {
            what: "a stream cut behind a call that writes",
            replies: vec![
                ModelScript::new()
                    .say("So")
                    .call("calendar_add", json!({"title": "x"}))
                    .then(ScriptMove::Pause(50))
                    .then(ScriptMove::Cut),
            ],
            calls: vec![C::NotStarted],
            status: T::Error,
            text: "So",
            told: vec![],
        },
        Scenario {
            what: "an error inside a 200 stream",
            replies: vec![
                ModelScript::new()
                    .say("Half a")
                    .then(ScriptMove::Error(throughline_testkit::ErrorMove::new("on fire"))),
            ],
            calls: vec![],
            status: T::Error,
            text: "Half a",
            told: vec![],
        },
        Scenario {
            what: "tools that are not supported",
            replies: vec![ModelScript::tools_unsupported(UpstreamVendor::OllamaNative)],
            calls: vec![],
            status: T::Error,
            text: "",
            told: vec![],
        },
        Scenario {
            what: "a wrong key",
            replies: vec![ModelScript::status(401)],
            calls: vec![],
            status: T::Error,
            text: "",
            told: vec![],
        },
        Scenario {
            what: "an answer cut by the token budget",
            replies: vec![
                ModelScript::new()
                    .say("Half a")
                    .then(ScriptMove::Finish(throughline_testkit::ScriptFinish::Length)),
            ],
            calls: vec![],
            status: T::Length,
            text: "Half a",
            told: vec![],
        },
    ]
}

#[tokio::test]
async fn scenarios_hold_in_every_dialect_streamed_and_whole() {
    // Those that wait for a time limit wait for it together.
    let mut stalls = Vec::new();
    for dialect in DIALECTS {
        for transfer in [TransferMode::Stream, TransferMode::Whole] {
            for scenario in scenarios() {
                // A broken body is an error before its first token if it comes whole: nothing of it can be shown.
                let breaks = scenario.status == T::Error && !scenario.replies[0].moves.is_empty();
                // One that stalls takes all of `total_ms`, which no second try is left of.
                if (breaks || scenario.stalls()) && transfer == TransferMode::Whole {
                    continue;
                }
                if scenario.stalls() {
                    stalls.push(run(scenario, dialect, transfer))
                } else {
                    run(scenario, dialect, transfer).await
                }
            }
        }
    }
    join_all(stalls).await;
}

async fn run(
    scenario: Scenario,
    dialect: (throughline::wire::Dialect, throughline_testkit::FakeDialect),
    transfer: TransferMode,
) {
    let what = format!("{} over {} ({transfer:?})", scenario.what, dialect.0);
    let (steps, timeouts) = (scenario.replies.len(), scenario.timeouts());
    let mut replies = scenario.replies;
    replies.push(ModelScript::new().say("And here I am again."));
    let server = serve(ScriptQueue::new(replies)).await;
    let upstream = at(&server, dialect).transfer(transfer).timeouts(timeouts);
    let app = builder(&server, dialect).upstream(upstream).build().unwrap();
    let mut conversation = app.conversation();

    let (_, message) = read(conversation.ask("Well?").await.unwrap()).await;
    check(&what, &message, &Expected { calls: scenario.calls, status: scenario.status, text: scenario.text });
    if !scenario.told.is_empty() {
        let told = tool_results_sent(&server, 1);
        assert_eq!(told.len(), scenario.told.len(), "{what}: {told:?}");
        for (told, part) in told.iter().zip(&scenario.told) {
            assert!(told.contains(part), "{what}: {told} should say {part}");
        }
    }
    if scenario.status == T::Error {
        let fault = message.error.as_ref().unwrap_or_else(|| panic!("{what}: {message:#?}"));
        assert!(!fault.remedy.is_empty() && !fault.why.is_empty(), "{what}: {fault:?}");
        assert!(
            matches!(message.blocks.last(), Some(MessageBlock::Error(_) | MessageBlock::Notice { .. })),
            "{what}: {message:#?}"
        );
    }
    assert_eq!(server.exchanges().len(), steps, "{what}: each reply is asked for once");

    // Regardless of the turn's end, the next one is accepted by a provider that checks every rule.
    let (_, again) = read(conversation.ask("And now?").await.unwrap()).await;
    assert_eq!(again.text(), "And here I am again.", "{what}");
    assert_eq!(server.violations(), [], "{what}: {:#?}", server.requests().last().map(|seen| &seen.body));
}

#[tokio::test]
async fn unsupported_tools_error_has_remedies_and_no_downgrade() {
    for dialect in DIALECTS {
        let server = serve(ScriptQueue::new([ModelScript::tools_unsupported(UpstreamVendor::Ollama)])).await;
        let app = builder(&server, dialect).build().unwrap();
        let (_, message) = read(app.ask("Hi").await.unwrap()).await;
        let fault = message.error.unwrap();
        assert_eq!(fault.code, "tool_calling_unsupported", "{}", dialect.0);
        for way in ["`/mode text`", "`--mode text`", "`mode = \"text\"`"] {
            assert!(fault.remedy.contains(way), "{fault:?}");
        }
        assert_eq!(server.exchanges().len(), 1, "it is not asked again without tools");
    }
}

// If calls arrive whole, their cards have a summary immediately, otherwise with the first complete argument.
#[tokio::test]
async fn input_summary_is_shown_before_arguments_are_sealed() {
    for dialect in DIALECTS {
        for transfer in [TransferMode::Stream, TransferMode::Whole] {
            let what = format!("{} ({transfer:?})", dialect.0);
            let text = "tea, and then a great deal of cake for everybody who comes to the garden";
            let call = ModelScript::new().call("calendar_add", json!({"title": text}));
            let server = serve(ScriptQueue::new([call, ModelScript::new().say("Done.")])).await;
            let upstream = at(&server, dialect).transfer(transfer);
            let (events, message) =
                read(builder(&server, dialect).upstream(upstream).build().unwrap().ask("Hi").await.unwrap())
                    .await;
            let sealed =
                events.iter().position(|event| matches!(event.kind, EventKind::ToolInput(_))).unwrap();
            let early: Vec<&str> = events[..sealed]
                .iter()
                .filter_map(|event| match &event.kind {
                    EventKind::ToolUse { input_summary, .. } => Some(input_summary.as_str()),
                    EventKind::ToolInputDelta { input_summary, .. } => input_summary.as_deref(),
                    _ => None,
                })
                .collect();
            let comes_whole =
                transfer == TransferMode::Whole || matches!(dialect.0, Dialect::Gemini | Dialect::Ollama);
            let line = format!("title: {text}");
            let expected = if comes_whole { vec![line.as_str()] } else { vec!["", line.as_str()] };
            assert_eq!(early, expected, "{what}");
            let last = events[..sealed].to_vec();
            let card = AssistantMessage::from_events(&last).calls().next().cloned().unwrap();
            assert_eq!(card.input_summary, line, "{what}");
            // Joined deltas have the same text.
            let joined = throughline::engine::fold::merge_deltas(last);
            assert_eq!(AssistantMessage::from_events(&joined).calls().next(), Some(&card), "{what}");
            assert_eq!(message.calls().next().unwrap().input_summary, line, "{what}");
        }
    }
}

#[tokio::test]
async fn malformed_arguments_are_not_run_and_are_reported() {
    // Dialects whose arguments are objects on the wire cannot send half of one.
    for dialect in &DIALECTS[..3] {
        let replies = [
            ModelScript::new().call("calendar_add", Value::String("{\"title\": \"x\", oops}".into())),
            ModelScript::new().say("Sorry."),
        ];
        let server = serve(ScriptQueue::new(replies)).await;
        let app = builder(&server, *dialect).build().unwrap();
        let (events, message) = read(app.ask("Hi").await.unwrap()).await;
        assert_eq!(statuses(&message), [C::NotStarted], "{}: {message:#?}", dialect.0);
        assert!(
            !events.iter().any(|event| matches!(event.kind, EventKind::ToolStart { .. })),
            "{}",
            dialect.0
        );
        assert!(
            tool_results_sent(&server, 1)[0].to_lowercase().contains("json"),
            "{:?}",
            tool_results_sent(&server, 1)
        );
        assert_eq!(server.violations(), [], "{}", dialect.0);
    }
}

#[tokio::test]
async fn parallel_calls_run_concurrently() {
    let two = ScriptMove::Parallel(vec![
        CallMove::new("meet_other", city("a")),
        CallMove::new("meet_other", city("b")),
    ]);
    for dialect in DIALECTS {
        let server =
            serve(ScriptQueue::new([ModelScript::new().then(two.clone()), ModelScript::new().say("Done.")]))
                .await;
        let app = builder(&server, dialect).parallel().build().unwrap();
        let (_, message) = read(app.ask("Hi").await.unwrap()).await;
        // Each waits for the other: one after the other would end in time-outs.
        check(
            dialect.0.name(),
            &message,
            &Expected { calls: vec![C::Success; 2], status: T::Completed, text: "Done." },
        );
        assert_eq!(tool_results_sent(&server, 1), ["met", "met"]);
    }
}

#[tokio::test]
async fn fallback_takes_over_before_the_first_token() {
    let broken = serve(ScriptQueue::new([ModelScript::status(503)])).await;
    let sound = serve(ScriptQueue::new([ModelScript::new().say("I am the other one.")])).await;
    let app = builder(&broken, DIALECTS[0])
        .upstream(at(&sound, DIALECTS[2]).named("other").unwrap())
        .model("test/m")
        .fallback("other/n")
        .build()
        .unwrap();
    let (_, message) = read(app.ask("Hi").await.unwrap()).await;
    assert_eq!((message.text().as_str(), message.model.as_str()), ("I am the other one.", "n"));
    assert_eq!(broken.exchanges().len() as u32, RetryPolicy::default().attempts_max);
}

#[tokio::test]
async fn input_images_are_sent_in_every_dialect() {
    for dialect in DIALECTS {
        let server = serve(ScriptQueue::new([ModelScript::new().say("A cat.")])).await;
        let app = builder(&server, dialect).build().unwrap();
        let input = UserInput::from("What is it?").image("image/png", b"\x89PNG\r\n\x1a\ncat");
        read(app.ask(input).await.unwrap()).await;
        let seen = server.requests().remove(0);
        let Some(ParsedMessage::User { images, text, .. }) = seen.messages.first() else {
            panic!("{seen:#?}")
        };
        assert_eq!(text, "What is it?", "{}", dialect.0);
        assert_eq!(images[0].bytes, b"\x89PNG\r\n\x1a\ncat", "{}", dialect.0);
        assert_eq!(server.violations(), [], "{}", dialect.0);
    }
}

#[tokio::test]
async fn last_iteration_is_followed_by_a_reply_without_tools() {
    for dialect in DIALECTS {
        // The model calls whenever it may, each time for another city, so that the loop guard does not apply.
        let model = |seen: &ParsedRequest| {
            // Converse has no choice that forbids calls: there, the prompt forbids them.
            let is_told = seen.dialect == FakeDialect::BedrockConverse && seen.step() > 5;
            if seen.may_call() && !is_told {
                ModelScript::new().call("weather_today", city(&format!("city {}", seen.number)))
            } else {
                ModelScript::new().say("Enough.")
            }
        };
        let server = serve(model).await;
        let app = builder(&server, dialect).build().unwrap();
        let (_, message) = read(app.ask("Hi").await.unwrap()).await;
        let expected = Expected { calls: vec![C::Success; 5], status: T::Limit, text: "Enough." };
        check(dialect.0.name(), &message, &expected);
        assert_eq!((server.requests().len(), server.violations()), (6, vec![]), "{}", dialect.0);
    }
}

#[tokio::test]
async fn denied_call_is_reported_and_approved_call_runs() {
    let replies = || {
        ScriptQueue::new([
            ModelScript::new()
                .call("calendar_add", json!({"title": "a"}))
                .call("calendar_add", json!({"title": "b"})),
            ModelScript::new().say("Done."),
        ])
    };
    for dialect in DIALECTS {
        // Answered by the holder of the turn.
        let server = serve(replies()).await;
        let app = builder(&server, dialect).approval(ApprovalMode::Ask).build().unwrap();
        let mut turn = app.ask("Hi").await.unwrap();
        let control = turn.control();
        let (mut asked, mut events) = (0, Vec::new());
        while let Some(event) = turn.next().await {
            if let EventKind::ApprovalRequest { approval_id, .. } = &event.kind {
                asked += 1;
                let (decision, reason) = match asked {
                    1 => (throughline::ApprovalDecision::Approve, None),
                    _ => (throughline::ApprovalDecision::Deny, Some("not on a Sunday".to_owned())),
                };
                let _ = control.answer(approval_id.clone(), decision, reason).await;
            }
            events.push(event);
        }
        support::check_promises(&events);
        assert_eq!(statuses(turn.message()), [C::Success, C::Denied], "{}", dialect.0);
        let told = tool_results_sent(&server, 1);
        assert!(told[0].contains("added a") && told[1].contains("not on a Sunday"), "{told:?}");
        assert_eq!(server.violations(), [], "{}", dialect.0);

        // By the program.
        let server = serve(replies()).await;
        let app = builder(&server, dialect)
            .approval(ApprovalMode::Ask)
            .on_approval(|ask| async move {
                if ask.arguments["title"] == "b" && ask.tool.as_str() == "calendar.add" {
                    throughline::ApprovalResponse::approve()
                } else {
                    throughline::ApprovalResponse::deny("no")
                }
            })
            .build()
            .unwrap();
        let (_, message) = read(app.ask("Hi").await.unwrap()).await;
        assert_eq!(statuses(&message), [C::Denied, C::Success], "{}", dialect.0);

        // Without an approver.
        let server = serve(replies()).await;
        let nobody = ApprovalMode::DenyAll { reason: "nobody is there to ask".into() };
        let app = builder(&server, dialect).approval(nobody).build().unwrap();
        let (_, message) = read(app.ask("Hi").await.unwrap()).await;
        assert_eq!(statuses(&message), [C::Denied, C::Denied], "{}", dialect.0);
    }
}

/// A point in a turn: an event that the test waits for.
type Phase = (&'static str, fn(&EventKind) -> bool, ModelScript, Vec<C>);

fn phases() -> Vec<Phase> {
    let write = || ModelScript::new().say("So").call("calendar_add", json!({"title": "x"}));
    vec![
        (
            "before the first byte",
            |kind| matches!(kind, EventKind::StepStart { .. }),
            ModelScript { first_byte_ms: 60_000, ..ModelScript::new() },
            vec![],
        ),
        (
            "in mid-text",
            |kind| matches!(kind, EventKind::ContentDelta { .. }),
            ModelScript::new().say("So").then(ScriptMove::Stall),
            vec![],
        ),
        (
            "behind a call, before the end",
            |kind| matches!(kind, EventKind::ToolInputDelta { .. } | EventKind::ToolInput(_)),
            write().then(ScriptMove::Stall),
            vec![C::Cancelled],
        ),
        (
            "while a person is asked",
            |kind| matches!(kind, EventKind::ApprovalRequest { .. }),
            write(),
            vec![C::Cancelled],
        ),
        (
            "while a tool runs",
            |kind| matches!(kind, EventKind::ToolStart { .. }),
            ModelScript::new().call("queue_wait", json!({})),
            vec![C::Cancelled],
        ),
        (
            "while it waits to try again",
            |kind| matches!(kind, EventKind::Waiting { .. }),
            ModelScript::rate_limited(25),
            vec![],
        ),
    ]
}

#[tokio::test]
async fn turn_can_be_cancelled_at_every_phase() {
    for dialect in DIALECTS {
        for (what, reached, script, calls) in phases() {
            let what = format!("{what} over {}", dialect.0);
            let stalls = stalls(&script);
            let server = serve(ScriptQueue::new([script, ModelScript::new().say("Still here.")])).await;
            let app = builder(&server, dialect).approval(ApprovalMode::Ask).build().unwrap();
            let mut conversation = app.conversation();
            let mut turn = conversation.ask("Hi").await.unwrap();
            let mut events = Vec::new();
            let mut reached_at = None;
            while let Some(event) = turn.next().await {
                if reached_at.is_none() && reached(&event.kind) {
                    if stalls {
                        server.wait_for_request(1).await;
                    }
                    assert_eq!(turn.cancel().await, throughline::CommandAck::Accepted, "{what}");
                    reached_at = Some(event.seq);
                }
                events.push(event);
            }
            assert!(reached_at.is_some(), "{what}: {events:#?}");
            support::check_promises(&events);
            assert_eq!(turn.message().status, Some(T::Cancelled), "{what}: {events:#?}");
            let found: Vec<_> = statuses(turn.message());
            assert_eq!(found, calls, "{what}: {events:#?}");
            if stalls {
                assert_eq!(server.wait_for_end(1).await, ExchangeEnd::ClientDisconnected, "{what}");
            }
            assert_eq!(turn.cancel().await, throughline::CommandAck::TurnEnded, "{what}");

            let (_, again) = read(conversation.ask("And now?").await.unwrap()).await;
            assert_eq!(again.text(), "Still here.", "{what}");
            assert_eq!(server.violations(), [], "{what}");
        }
    }
}

#[tokio::test]
async fn single_call_can_be_cancelled_while_the_turn_continues() {
    let replies = [
        ModelScript::new().call("queue_wait", json!({})).call("weather_today", city("Oslo")),
        ModelScript::new().say("Done."),
    ];
    let server = serve(ScriptQueue::new(replies)).await;
    let app = builder(&server, DIALECTS[0]).build().unwrap();
    let mut turn = app.ask("Hi").await.unwrap();
    while let Some(event) = turn.next().await {
        if let (EventKind::ToolProgress(_), Some(call)) = (&event.kind, &event.tool_id) {
            let _ = turn.cancel_call(call.clone()).await;
        }
    }
    assert_eq!(statuses(turn.message()), [C::Cancelled, C::Success]);
    assert_eq!(turn.message().status, Some(T::Completed));
    let told = tool_results_sent(&server, 1);
    // The tool itself reports "stopped" on cancellation: the call was not just abandoned.
    assert!(told[0].contains("it may have had effects") && told[0].contains("stopped"), "{told:?}");
}

#[tokio::test]
async fn total_timeout_is_not_retried() {
    let drips = || {
        let moves = std::iter::repeat_n([ScriptMove::Pause(20), ScriptMove::Ping], 500).flatten();
        ModelScript { moves: moves.collect(), ..ModelScript::new() }
    };
    let server = serve(ScriptQueue::new([drips(), drips(), drips()])).await;
    let timeouts = UpstreamTimeouts { total_ms: 300, idle_ms: 5_000, ..UpstreamTimeouts::default() };
    let app = builder(&server, DIALECTS[0]).upstream(at(&server, DIALECTS[0]).timeouts(timeouts));
    let (_, message) = read(app.build().unwrap().ask("Hi").await.unwrap()).await;
    assert_eq!(message.status, Some(T::Error));
    assert_eq!(server.requests().len(), 1, "what is left of its time is nothing");
}

#[tokio::test]
async fn retry_after_beyond_the_total_timeout_fails_at_once() {
    let server =
        serve(ScriptQueue::new([ModelScript::rate_limited(100), ModelScript::new().say("Too late.")])).await;
    let timeouts = UpstreamTimeouts { total_ms: 20_000, ..UpstreamTimeouts::default() };
    let app = builder(&server, DIALECTS[0]).upstream(at(&server, DIALECTS[0]).timeouts(timeouts));
    let (events, message) = read(app.build().unwrap().ask("Hi").await.unwrap()).await;
    assert_eq!(message.status, Some(T::Error));
    assert_eq!(server.requests().len(), 1);
    assert!(
        !events.iter().any(|event| matches!(event.kind, EventKind::Waiting { .. })),
        "nothing is waited for"
    );
    let fault = message.error.unwrap();
    assert_eq!((fault.code.as_str(), fault.retry_after_ms), ("rate_limited", Some(100_000)));
}

#[tokio::test]
async fn too_long_conversation_stays_shortened_in_later_turns() {
    let reads = || ModelScript::new().call("book_read", json!({}));
    let too_long = json!({"error": {"message": "maximum context length", "code": "context_length_exceeded"}});
    let too_long = HttpAnswer { body: Some(too_long), ..HttpAnswer::status(400) };
    let too_long = ModelScript { http: Some(too_long), ..ModelScript::new() };
    let answer = || ModelScript::new().say("Read.");
    let server = serve(ScriptQueue::new([reads(), answer(), reads(), too_long, answer(), answer()])).await;
    let page = tool("book.read", "Reads a page", |_: NoArguments, _| async { "x".repeat(9_000) })
        .effect(Effect::Read);
    let app = builder(&server, DIALECTS[0]).tool(page.agent_callable()).build().unwrap();
    let mut conversation = app.conversation();
    for question in ["The first page?", "The second?", "And now?"] {
        let (_, message) = read(conversation.ask(question).await.unwrap()).await;
        assert_eq!(message.status, Some(T::Completed), "{question}: {:?}", message.error);
    }
    let lengths = |request: &ParsedRequest| {
        let results = request.messages.iter().filter_map(|message| match message {
            ParsedMessage::Results(results) => Some(results),
            _ => None,
        });
        results.flatten().map(|result| result.text.len()).collect()
    };
    let sent: Vec<Vec<usize>> = server.requests().iter().map(lengths).collect();
    let [.., whole, short, last] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((sent.len(), &whole[..]), (6, &[9_000, 9_000][..]), "{sent:?}");
    assert!(short[0] < 2_200 && short[1] == 9_000, "{sent:?}");
    assert_eq!(last, short, "known to be too long");
}

#[tokio::test]
async fn dropped_turn_is_cancelled_and_a_detached_one_is_not() {
    let server = serve(ScriptQueue::new([ModelScript::new().say("So").then(ScriptMove::Stall)])).await;
    let app = builder(&server, DIALECTS[0]).build().unwrap();
    let turn = app.ask("Hi").await.unwrap();
    let control = turn.control();
    server.wait_for_request(1).await;
    drop(turn);
    control.wait_for_end().await;
    assert_eq!(server.wait_for_end(1).await, ExchangeEnd::ClientDisconnected);

    let server =
        serve(ScriptQueue::new([ModelScript::new().say("So"), ModelScript::new().say("Again")])).await;
    let app = builder(&server, DIALECTS[0]).build().unwrap();
    let mut conversation = app.conversation();
    conversation.ask("Hi").await.unwrap().detach().wait_for_end().await;
    assert_eq!(server.wait_for_end(1).await, ExchangeEnd::Complete);
    assert_eq!(conversation.history().len(), 2);
}

#[tokio::test]
async fn conversation_runs_one_turn_at_a_time() {
    let server = serve(ScriptQueue::new([
        ModelScript::new().say("So").then(ScriptMove::Stall),
        ModelScript::new().say("Again"),
    ]))
    .await;
    let app = builder(&server, DIALECTS[0]).build().unwrap();
    let mut conversation = app.conversation();
    let turn = conversation.ask("Hi").await.unwrap();
    server.wait_for_request(1).await;
    assert!(matches!(conversation.ask("And?").await.err(), Some(throughline::Error::TurnRunning)));
    drop(turn);
    let (_, message) = read(conversation.ask("And?").await.unwrap()).await;
    assert_eq!(message.text(), "Again", "a turn that is being stopped is waited for");
    assert_eq!(server.violations(), []);
}

#[tokio::test]
async fn approval_expires_as_denied_if_the_handler_panics() {
    let server = serve(ScriptQueue::new([
        ModelScript::new().call("calendar_add", json!({"title": "x"})),
        ModelScript::new().say("Done."),
    ]))
    .await;
    let limits = throughline::engine::TurnLimits { approval_ms_max: Some(60), ..Default::default() };
    let app = builder(&server, DIALECTS[0])
        .approval(ApprovalMode::Ask)
        .limits(limits)
        .on_approval(|_| async { panic!("a bug in the handler") })
        .build()
        .unwrap();
    let (_, message) = read(app.ask("Hi").await.unwrap()).await;
    check("expired", &message, &Expected { calls: vec![C::Denied], status: T::Completed, text: "Done." });
}

#[tokio::test]
async fn tool_output_is_limited_by_output_bytes_max() {
    const OUTPUT_BYTES: usize = 100_000;
    for (output_bytes_max, is_whole) in [(32 << 10, false), (150_000, true)] {
        let server = serve(ScriptQueue::new([
            ModelScript::new().call("list_all", json!({})),
            ModelScript::new().say("Done."),
        ]))
        .await;
        let lists = tool("list.all", "Everything", |_: NoArguments, _| async { "x".repeat(OUTPUT_BYTES) });
        let limits = throughline::engine::TurnLimits { output_bytes_max, ..Default::default() };
        let app = builder(&server, DIALECTS[0])
            .tool(lists.effect(Effect::Read).agent_callable())
            .limits(limits)
            .build()
            .unwrap();
        let (_, message) = read(app.ask("Hi").await.unwrap()).await;
        let output = message.calls().next().unwrap().output.clone();
        let sent = tool_results_sent(&server, 1).pop().unwrap();
        for (what, bytes) in [("message", output.len()), ("model", sent.len())] {
            assert_eq!(bytes >= OUTPUT_BYTES, is_whole, "{what}: {bytes}");
            assert!(bytes > output_bytes_max / 2, "{what}: {bytes}");
        }
    }
}

#[tokio::test]
async fn whole_and_streamed_replies_give_the_same_message() {
    let replies = || {
        ScriptQueue::new([
            ModelScript::new().think("Hm.").say("Let me look.").call("weather_today", city("巴黎")),
            ModelScript::new().say("Sunny."),
        ])
    };
    for dialect in DIALECTS {
        let mut blocks = Vec::new();
        for transfer in [TransferMode::Stream, TransferMode::Whole] {
            let server = serve(replies()).await;
            let app =
                builder(&server, dialect).upstream(at(&server, dialect).transfer(transfer)).build().unwrap();
            let (_, message) = read(app.ask("Hi").await.unwrap()).await;
            blocks.push(message.blocks.iter().map(essence).collect::<Vec<_>>());
        }
        assert_eq!(blocks[0], blocks[1], "{}", dialect.0);
        assert_eq!(blocks[0].len(), 4, "{}: {:?}", dialect.0, blocks[0]);
    }
}

/// A block without ids and times.
fn essence(block: &MessageBlock) -> String {
    match block {
        MessageBlock::Text { text, .. } => format!("text {text}"),
        MessageBlock::Thinking { text, .. } => format!("thinking {text}"),
        MessageBlock::ToolCall(call) => {
            format!("{:?} {:?} {:?} {}", call.tool_name, call.arguments, call.status, call.output)
        }
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn demo_model_answers_in_every_dialect() {
    for dialect in DIALECTS {
        let server = serve(throughline_testkit::demo::DemoModel::instant()).await;
        let app: Throughline = builder(&server, dialect).build().unwrap();
        let (_, message) = read(app.ask("Hello!").await.unwrap()).await;
        assert_eq!(message.status, Some(T::Completed), "{message:#?}");
        assert!(!message.text().is_empty());
        assert_eq!(server.violations(), []);
    }
}
