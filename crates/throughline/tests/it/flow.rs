//! People and clients act while a turn runs, over real sockets: they send messages, answer elicitations, run
//! tools.

use crate::support::{DIALECTS, builder, serve, statuses, tool_results_sent};
use futures_util::FutureExt;
use serde_json::{Value, json};
use std::sync::Arc;
use throughline::engine::{ApprovalId, ClientAnswer, ClientStatus, QuestionKind};
use throughline::tools::{Effect, NoArguments, ToolContext, ToolQuestion, tool};
use throughline::wire::{CallId, ToolName};
use throughline::{
    CallStatus as C, ClientAnswerResult, ClientError, ClientEvent, ClientToolSpec, EventKind, IncomingCall,
    MessageBlock, MessageTiming, RetractResult, SendResult, Throughline, ThroughlineBuilder, ToolAnswer,
    ToolAnswerResult, TurnHandle, TurnStatus as T,
};
use throughline_testkit::{FakeUpstreamHandle, ModelScript, ScriptQueue};
use tokio::sync::Notify;

/// An application whose model does this, one script a step.
async fn app(
    scripts: Vec<ModelScript>,
    more: impl FnOnce(ThroughlineBuilder) -> ThroughlineBuilder,
) -> (FakeUpstreamHandle, Throughline) {
    let server = serve(ScriptQueue::new(scripts)).await;
    let app = more(builder(&server, DIALECTS[0])).build().unwrap();
    (server, app)
}

/// Reads until an event is there.
async fn until(turn: &mut TurnHandle, is_it: impl Fn(&EventKind) -> bool) -> EventKind {
    loop {
        let event = turn.next().await.expect("an event before the end");
        if is_it(&event.kind) {
            return event.kind;
        }
    }
}

fn starts(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ToolStart { .. })
}

/// `gate.wait` runs until it is let go.
fn gate(open: &Arc<Notify>) -> impl FnOnce(ThroughlineBuilder) -> ThroughlineBuilder + use<> {
    let open = open.clone();
    let wait = move |_: NoArguments, _| {
        let open = open.clone();
        async move {
            open.notified().await;
            "open"
        }
    };
    |builder| builder.tool(tool("gate.wait", "Waits", wait).effect(Effect::Read).agent_callable())
}

// --- saying more ---

#[tokio::test]
async fn message_sent_while_a_tool_runs_is_in_the_next_step() {
    let open = Arc::new(Notify::new());
    let scripts =
        vec![ModelScript::new().call("gate_wait", json!({})), ModelScript::new().say("As you like.")];
    let (server, app) = app(scripts, gate(&open)).await;
    let mut turn = app.ask("go").await.unwrap();
    until(&mut turn, starts).await;
    let control = turn.control();
    let SendResult::Queued(first) = control.send("in Celsius, please", MessageTiming::NextStep).await else {
        panic!("queued")
    };
    let SendResult::Queued(second) = control.send("or not", MessageTiming::NextStep).await else {
        panic!("queued")
    };
    assert!(
        matches!(control.retract(second.clone()).await, RetractResult::Retracted(parts) if parts.len() == 1)
    );
    assert_eq!(control.retract(second).await, RetractResult::TooLate);
    assert_eq!(control.queued().len(), 1);
    open.notify_one();

    let message = turn.finish().await;
    assert_eq!((message.status, message.text().as_str()), (Some(T::Completed), "As you like."));
    let at = |is_it: fn(&MessageBlock) -> bool| message.blocks.iter().position(is_it).unwrap();
    let call = at(|block| matches!(block, MessageBlock::ToolCall(_)));
    let said = at(|block| matches!(block, MessageBlock::UserMessage { .. }));
    assert!(call < said && said < at(|block| matches!(block, MessageBlock::Text { .. })));
    let request = format!("{:?}", server.requests()[1]);
    assert!(request.contains("in Celsius, please") && !request.contains("or not"), "{request}");
    assert_eq!(server.violations(), []);
    assert_eq!(control.retract(first).await, RetractResult::TooLate, "it was heard");
    assert_eq!(control.send("too late", MessageTiming::NextStep).await, SendResult::TurnEnded);
    assert!(control.queued().is_empty());
}

#[tokio::test]
async fn messages_queued_for_after_the_turn_start_the_next_turn() {
    let open = Arc::new(Notify::new());
    let scripts = vec![
        ModelScript::new().call("gate_wait", json!({})),
        ModelScript::new().say("Done."),
        ModelScript::new().say("Both of you."),
        ModelScript::new().say("Fine."),
    ];
    let (server, app) = app(scripts, gate(&open)).await;
    let mut talk = app.conversation();
    let mut turn = talk.ask("go").await.unwrap();
    until(&mut turn, starts).await;
    for text in ["then one", "then two"] {
        assert!(matches!(talk.send(text, MessageTiming::AfterTurn).await, SendResult::Queued(_)));
    }
    assert!(talk.take_queued().is_empty(), "while the turn runs it is the turn's");
    open.notify_one();
    assert_eq!(turn.finish().await.text(), "Done.");

    let next = talk.next_turn().await.unwrap().expect("a turn of its own").finish().await;
    assert_eq!((next.text().as_str(), next.input.len()), ("Both of you.", 2));
    assert!(talk.next_turn().await.unwrap().is_none());
    let request = format!("{:?}", server.requests()[2]);
    assert!(
        request.contains("then one") && request.contains("then two") && request.contains("Done."),
        "{request}"
    );
    assert_eq!(talk.ask("and?").await.unwrap().finish().await.text(), "Fine.");
    assert_eq!(server.violations(), []);
}

// Messages to a stopped turn are neither lost nor sent automatically.
#[tokio::test]
async fn queued_message_is_returned_when_the_turn_is_cancelled() {
    let open = Arc::new(Notify::new());
    let (_server, app) = app(vec![ModelScript::new().call("gate_wait", json!({}))], gate(&open)).await;
    let mut talk = app.conversation();
    let mut turn = talk.ask("go").await.unwrap();
    until(&mut turn, starts).await;
    assert!(matches!(talk.send("wait", MessageTiming::NextStep).await, SendResult::Queued(_)));
    let _ = turn.cancel().await;
    assert_eq!(turn.finish().await.status, Some(T::Cancelled));
    let left = talk.take_queued();
    assert_eq!(left.len(), 1);
    assert!(talk.next_turn().await.unwrap().is_none(), "whoever takes it has it");
}

// --- elicitations of a running tool ---

/// `desk.sign` asks for a name, and returns the answer that it received.
fn desk(builder: ThroughlineBuilder) -> ThroughlineBuilder {
    let sign = |_: NoArguments, context: ToolContext| async move {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "minLength": 1}, "copies": {"type": "integer", "default": 1},
        }});
        serde_json::to_string(&context.ask(ToolQuestion::form("Your name?", schema)).await)
            .unwrap_or_default()
    };
    builder.tool(tool("desk.sign", "Signs", sign).effect(Effect::Read).agent_callable())
}

async fn asked(turn: &mut TurnHandle) -> ApprovalId {
    let is_it =
        |kind: &EventKind| matches!(kind, EventKind::ApprovalRequest { kind: QuestionKind::Elicitation, .. });
    match until(turn, is_it).await {
        EventKind::ApprovalRequest { approval_id, schema: Some(_), .. } => approval_id,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn elicitation_answer_is_validated_and_given_to_the_tool() {
    let scripts = vec![ModelScript::new().call("desk_sign", json!({})), ModelScript::new().say("Signed.")];
    let (server, app) = app(scripts, desk).await;
    let mut turn = app.ask("sign").await.unwrap();
    let question = asked(&mut turn).await;
    let control = turn.control();
    let accept = |content: Value| ToolAnswer::Accept { content: Some(content) };
    let wrong = control.answer_tool(question.clone(), accept(json!({"name": 7}))).await;
    assert_eq!(wrong, ToolAnswerResult::Invalid { message: "/name: expected string, got 7".into() });
    assert_eq!(control.answer_tool("another".into(), ToolAnswer::Decline).await, ToolAnswerResult::NotOpen);
    assert_eq!(
        control.answer_tool(question.clone(), accept(json!({"name": "Ada"}))).await,
        ToolAnswerResult::Accepted
    );
    let again = control.answer_tool(question.clone(), ToolAnswer::Decline).await;
    assert!(matches!(again, ToolAnswerResult::NotOpen | ToolAnswerResult::TurnEnded), "{again:?}");

    let message = turn.finish().await;
    assert_eq!((statuses(&message), message.text().as_str()), (vec![C::Success], "Signed."));
    assert_eq!(tool_results_sent(&server, 1), [r#"{"action":"accept","content":{"name":"Ada","copies":1}}"#]);
    assert_eq!(control.answer_tool(question, ToolAnswer::Decline).await, ToolAnswerResult::TurnEnded);
}

// A person who answers like an approval, and one who stops the call.
#[tokio::test]
async fn elicitation_can_be_declined_or_ended_by_cancel() {
    let scripts = vec![ModelScript::new().call("desk_sign", json!({})), ModelScript::new().say("Well.")];
    let (server, app) = app(scripts, desk).await;
    let mut turn = app.ask("sign").await.unwrap();
    let question = asked(&mut turn).await;
    let _ = turn.answer(question, throughline::ApprovalDecision::Deny).await;
    assert_eq!(turn.finish().await.text(), "Well.");
    assert_eq!(tool_results_sent(&server, 1), [r#"{"action":"decline"}"#]);

    let (_server, app) = self::app(vec![ModelScript::new().call("desk_sign", json!({}))], desk).await;
    let mut turn = app.ask("sign").await.unwrap();
    asked(&mut turn).await;
    let _ = turn.cancel().await;
    assert_eq!(turn.finish().await.status, Some(T::Cancelled));
}

// --- a client runs tools ---

fn page_tools() -> Vec<ClientToolSpec> {
    let mut click = ClientToolSpec::new("client.click");
    click.description = "Clicks".into();
    vec![click, ClientToolSpec::new("live2d.expression")]
}

fn success(output: &str) -> ClientAnswer {
    ClientAnswer { status: ClientStatus::Success, output: json!(output), applied: Some(true) }
}

fn click_then(text: &str) -> Vec<ModelScript> {
    vec![ModelScript::new().call("client_click", json!({})), ModelScript::new().say(text)]
}

async fn offered(client: &mut throughline::ClientHandle) -> IncomingCall {
    match client.next().await {
        Some(ClientEvent::Call(call)) => call,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn first_result_of_the_same_users_client_is_the_outcome() {
    let (server, app) = app(click_then("Clicked."), |builder| builder).await;
    let ada = || Some("ada".to_owned());
    let mut page = app.connect_client("page", ada(), page_tools()).unwrap();
    let request = || throughline::TurnRequest { input: "click".into(), user: ada(), ..Default::default() };
    let turn = app.start_turn(request()).await.unwrap();
    let call = offered(&mut page).await;
    assert_eq!((call.tool.as_str(), call.attempt, &call.turn), ("client.click", 1, turn.id()));

    let by =
        |user: Option<&str>| app.answer_client_call(user.map(str::to_owned), &call.call, success("stolen"));
    assert_eq!(by(Some("eve")).await, ClientAnswerResult::WrongUser);
    assert_eq!(by(None).await, ClientAnswerResult::WrongUser);
    assert_eq!(page.answer(&call, success("clicked")).await, ClientAnswerResult::Accepted);
    assert_eq!(page.answer(&call, success("again")).await, ClientAnswerResult::AlreadyClosed);
    assert_eq!(by(Some("eve")).await, ClientAnswerResult::WrongUser);
    let nobodys = app.answer_client_call(ada(), &CallId::new("no such call"), success("")).await;
    assert_eq!(nobodys, ClientAnswerResult::Unknown);

    let message = turn.finish().await;
    let card = message.calls().next().unwrap();
    assert_eq!((card.status, card.applied, card.source.as_str()), (Some(C::Success), Some(true), "client"));
    assert_eq!(tool_results_sent(&server, 1), ["clicked\nThe client applied it."]);

    // Turns of another user are not offered this page's tools.
    let offered: Vec<ToolName> = {
        let mut turn = app.ask("click").await.unwrap();
        match until(&mut turn, |kind| matches!(kind, EventKind::StepStart { .. })).await {
            EventKind::StepStart { tools_offered, .. } => tools_offered,
            _ => Vec::new(),
        }
    };
    assert!(!offered.iter().any(|name| name.as_str() == "client.click"), "{offered:?}");
}

#[tokio::test]
async fn late_client_result_is_rejected_after_the_timeout() {
    let (server, app) = app(click_then("No click."), |builder| builder).await;
    let mut tools = page_tools();
    tools[0].timeout_ms = Some(50);
    let mut page = app.connect_client("page", None, tools).unwrap();
    let turn = app.ask("click").await.unwrap();
    let call = offered(&mut page).await;
    let message = turn.finish().await;
    let card = message.calls().next().unwrap();
    let code = card.error.as_ref().map(|error| error.code.as_str());
    assert_eq!((card.status, code), (Some(C::Unknown), Some("client_gone")));
    assert!(
        tool_results_sent(&server, 1)[0].contains("may have had effects"),
        "{:?}",
        tool_results_sent(&server, 1)
    );
    assert_eq!(page.next().await, Some(ClientEvent::Cancelled { call: call.call.clone() }));
    assert_eq!(page.answer(&call, success("late")).await, ClientAnswerResult::TooLate);
}

// A reloaded page receives the call again, and its answer counts.
#[tokio::test]
async fn reconnected_client_is_offered_its_pending_call_again() {
    let (_server, app) = app(click_then("Clicked."), |builder| builder).await;
    let mut page = app.connect_client("page", None, page_tools()).unwrap();
    let turn = app.ask("click").await.unwrap();
    let first = offered(&mut page).await;
    drop(page);
    let mut page = app.connect_client("page", None, page_tools()).unwrap();
    let second = offered(&mut page).await;
    assert_eq!(first, second);
    assert_eq!(page.answer(&second, success("clicked")).await, ClientAnswerResult::Accepted);
    assert_eq!(statuses(&turn.finish().await), [C::Success]);
}

#[tokio::test]
async fn invalid_client_tools_are_rejected() {
    let (_server, app) = app(vec![], |builder| builder).await;
    let connect = |tools| app.connect_client("page", None, tools).map(|_| ());
    let name = |name: &str| connect(vec![ClientToolSpec::new(name)]);
    for theirs in ["time.now", "click", "clients.click", "client"] {
        assert!(matches!(name(theirs), Err(ClientError::Name { .. })), "{theirs}");
    }
    let twice = connect(vec![ClientToolSpec::new("client.a"), ClientToolSpec::new("client.a")]);
    assert!(matches!(twice, Err(ClientError::Tool(_))), "{twice:?}");
    let mut bad = ClientToolSpec::new("client.a");
    bad.input_schema = Some(json!({"type": 7}));
    assert!(matches!(connect(vec![bad]), Err(ClientError::Tool(_))));
    let many: Vec<_> =
        (0..=throughline::CLIENT_TOOLS_MAX).map(|n| ClientToolSpec::new(format!("client.t{n}"))).collect();
    assert!(matches!(connect(many), Err(ClientError::TooMany { count: 129 })));
    let reserved = app.connect_client("requester", None, page_tools()).map(|_| ());
    assert!(matches!(reserved, Err(ClientError::Reserved { .. })));
}

// The tools stay for the grace after the connection is lost, and no longer.
#[tokio::test]
async fn client_tool_without_a_client_is_not_started() {
    let scripts = vec![
        ModelScript::new().call("live2d_expression", json!({"name": "smile"})),
        ModelScript::new().say("Nobody sees me."),
    ];
    let more = |builder: ThroughlineBuilder| {
        builder.tools(throughline::tools::builtin::standard()).client_grace(std::time::Duration::ZERO)
    };
    let (_server, app) = app(scripts, more).await;
    drop(app.connect_client("page", None, page_tools()).unwrap());
    let message = app.ask("smile").await.unwrap().finish().await;
    let card = message.calls().next().unwrap();
    let code = card.error.as_ref().map(|error| error.code.as_str());
    assert_eq!((card.status, code), (Some(C::NotStarted), Some("no_viewer")));
}

// While only a gesture is missing, the page that was to make it withdraws its tools, or another page connects
// with tools of that name. In neither case does a changed definition run without approval.
#[tokio::test]
async fn call_is_sent_only_to_the_client_whose_tool_was_offered() {
    let with_names = |names: &[&str], effect| {
        let mut tool = ClientToolSpec::new("live2d.expression");
        tool.effect = Some(effect);
        let name = json!({"type": "string", "enum": names});
        tool.input_schema =
            Some(json!({"type": "object", "properties": {"name": name}, "required": ["name"]}));
        tool
    };
    let open_fields = ClientToolSpec::new("live2d.expression");
    // The first case would ask for approval.
    for (is_withdrawn, own) in [
        (true, with_names(&["wink"], Effect::External)),
        (true, with_names(&["wink"], Effect::Cosmetic)),
        (false, with_names(&["wink"], Effect::Cosmetic)),
        (false, open_fields),
    ] {
        let open = Arc::new(Notify::new());
        let scripts = vec![
            ModelScript::new().call("gate_wait", json!({})),
            ModelScript::new().call("live2d_expression", json!({"name": "wink"})),
            ModelScript::new().say("There."),
        ];
        let standard = |builder| {
            let builder = gate(&open)(builder).approval(throughline::ApprovalMode::Ask);
            builder.tools(throughline::tools::builtin::standard())
        };
        let (_server, app) = app(scripts, standard).await;
        let mut page = app.connect_client("page", None, vec![own]).unwrap();
        let mut turn = app.ask("wink").await.unwrap();
        until(&mut turn, starts).await;
        // Connected later, so it would receive the call first; the page does not know what to wink is.
        let mut others = with_names(&["nod"], Effect::Cosmetic);
        others.timeout_ms = Some(20_000);
        let other = app.connect_client("other", None, vec![others]).unwrap();
        if is_withdrawn {
            page.declare(Vec::new()).unwrap();
        }
        open.notify_one();
        let (status, code) = if is_withdrawn {
            (C::NotStarted, Some("no_viewer"))
        } else {
            let call = offered(&mut page).await;
            assert_eq!(page.answer(&call, success("winked")).await, ClientAnswerResult::Accepted);
            (C::Success, None)
        };
        let message = turn.finish().await;
        let card = message.calls().nth(1).unwrap();
        let error = card.error.as_ref().map(|error| error.code.as_str());
        // A client over HTTP acts on the `tool_start`.
        let starts = u32::from(!is_withdrawn);
        assert_eq!((card.status, error, card.attempts), (Some(status), code, starts), "{card:?}");
        drop(other);
    }
}

// A client over HTTP acts on the `tool_start`: it would click for the definition that a person is only asked
// about.
#[tokio::test]
async fn redeclared_client_tool_starts_only_after_a_second_approval() {
    let ask = |builder: ThroughlineBuilder| builder.approval(throughline::ApprovalMode::Ask);
    let (_server, app) = app(click_then("Clicked."), ask).await;
    let mut page = app.connect_client("page", None, page_tools()).unwrap();
    let mut turn = app.ask("click").await.unwrap();
    let question =
        |kind: &EventKind| matches!(kind, EventKind::ApprovalRequest { .. } | EventKind::ToolStart { .. });
    for rule in ["effect:external", "redefined"] {
        let EventKind::ApprovalRequest { approval_id, rule: asked, .. } = until(&mut turn, question).await
        else {
            panic!("it starts for a definition that nobody has approved");
        };
        assert_eq!(asked, rule);
        let mut tools = page_tools();
        tools[0].description = "Clicks, and tells everybody".into();
        page.declare(tools).unwrap();
        let _ = turn.answer(approval_id, throughline::ApprovalDecision::Approve).await;
    }
    let call = offered(&mut page).await;
    assert_eq!(
        (call.attempt, page.answer(&call, success("clicked")).await),
        (1, ClientAnswerResult::Accepted)
    );
    assert_eq!(statuses(&turn.finish().await), [C::Success]);
}

// What a reload brings under the same name may take other arguments, or do something else.
#[tokio::test]
async fn reconnected_client_with_a_changed_tool_gets_no_old_call() {
    let (_server, app) = app(click_then("No click."), |builder| builder).await;
    let mut tools = page_tools();
    tools[0].timeout_ms = Some(300);
    let mut page = app.connect_client("page", None, tools.clone()).unwrap();
    let turn = app.ask("click").await.unwrap();
    offered(&mut page).await;
    drop(page);
    tools[0].input_schema = Some(json!({"type": "object", "required": ["twice"]}));
    let mut page = app.connect_client("page", None, tools).unwrap();
    assert_eq!(statuses(&turn.finish().await), [C::Unknown], "it may have clicked before");
    while let Some(Some(event)) = page.next().now_or_never() {
        assert!(matches!(event, ClientEvent::Cancelled { .. }), "{event:?}");
    }
}

#[tokio::test]
async fn cancelled_call_is_not_offered_to_a_reconnected_client() {
    let (_server, app) = app(click_then("No click."), |builder| builder).await;
    let mut page = app.connect_client("page", None, page_tools()).unwrap();
    let turn = app.ask("click").await.unwrap();
    offered(&mut page).await;
    drop(page);
    let _ = turn.cancel().await;
    // The driver is on this thread: most of the time it has stopped the call by then.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let mut page = app.connect_client("page", None, page_tools()).unwrap();
    assert_eq!(turn.finish().await.status, Some(T::Cancelled));
    let events = std::iter::from_fn(|| page.next().now_or_never().flatten());
    assert!(!matches!(events.last(), Some(ClientEvent::Call(_))), "it would run what was stopped");
}

#[tokio::test]
async fn clients_of_two_users_with_one_name_are_separate() {
    let scripts =
        vec![ModelScript::new().call("client_click", json!({})), ModelScript::new().say("Clicked.")];
    let (_server, app) = app(scripts, |builder| builder.approval(throughline::ApprovalMode::AllowAll)).await;
    let user = |name: &str| Some(name.to_owned());
    let mut adas = app.connect_client("page", user("ada"), page_tools()).unwrap();
    let mut eves = app.connect_client("page", user("eve"), page_tools()).unwrap();
    let request = throughline::TurnRequest { input: "click".into(), user: user("ada"), ..Default::default() };
    let turn = app.start_turn(request).await.unwrap();
    let call = offered(&mut adas).await;
    // Her client reconnects under the same id, and then disconnects for good: neither affects the other
    // user's.
    assert_eq!(eves.answer(&call, success("stolen")).await, ClientAnswerResult::WrongUser);
    eves.declare(Vec::new()).unwrap();
    let back = app.connect_client("page", user("eve"), page_tools()).unwrap();
    assert_eq!(eves.next().await, None, "she has connected anew, and was asked nothing");
    drop(back);
    assert_eq!(adas.answer(&call, success("clicked")).await, ClientAnswerResult::Accepted);
    assert_eq!(statuses(&turn.finish().await), [C::Success]);
}
