//! A tool that asks a person: its time limit is paused, it gets one answer, and an answer that does not fit
//! never reaches it.

use serde_json::{Value, json};
use std::time::Duration;
use throughline_tools::{
    NoArguments, QuestionHandler, ToolAnswer, ToolContext, ToolExecutor, ToolInvocation, ToolQuestion,
    ToolRegistry, tool,
};
use throughline_wire::{CallArguments, CallOutcome};
use tokio::time::{Instant, sleep};

fn question() -> ToolQuestion {
    ToolQuestion::form("who?", json!({"type": "object", "properties": {"name": {"type": "string"}}}))
}

/// A call with a limit of 10 s whose person takes `person` to answer; the tool works 4 s before and after.
async fn ends(person: Duration, asked_max: Duration, answer: ToolAnswer) -> (CallOutcome, Duration) {
    let ask = tool("desk.ask", "Asks", |_: NoArguments, context: ToolContext| async move {
        sleep(Duration::from_secs(4)).await;
        let answer = context.ask(question()).await;
        sleep(Duration::from_secs(4)).await;
        serde_json::to_string(&answer).unwrap_or_default()
    });
    let registry = ToolRegistry::builder().tool(ask.timeout(Duration::from_secs(10))).build().unwrap();
    let question_handler = QuestionHandler::new(move |_| {
        let answer = answer.clone();
        async move {
            sleep(person).await;
            answer
        }
    });
    let arguments = CallArguments::from_value(json!({}));
    let call = ToolInvocation {
        question_handler,
        question_wait_max: asked_max,
        ..ToolInvocation::new("call_1", "desk.ask", arguments)
    };
    let began = Instant::now();
    let outcome = ToolExecutor::default().run(&registry, call, |_| async {}).await;
    (outcome, began.elapsed())
}

fn accept(content: Value) -> ToolAnswer {
    ToolAnswer::Accept { content: Some(content) }
}

#[tokio::test(start_paused = true)]
async fn time_limit_pauses_while_a_question_is_open() {
    let secs = Duration::from_secs;
    let ada = || accept(json!({"name": "Ada"}));
    let table = [
        // person, longest pause, does the tool end normally, when
        (secs(0), secs(1_800), true, secs(8)),
        (secs(60), secs(1_800), true, secs(68)),
        (secs(1_700), secs(1_800), true, secs(1_708)),
        // its time runs on after that
        (secs(60), secs(30), false, secs(40)),
        (secs(60), secs(0), false, secs(10)),
    ];
    for (person, max, by_itself, when) in table {
        let (outcome, took) = ends(person, max, ada()).await;
        assert_eq!(matches!(outcome, CallOutcome::Done(_)), by_itself, "{person:?} {max:?}: {outcome:?}");
        let grace = secs(3);
        assert!(when <= took && took < when + grace, "{person:?} {max:?}: took {took:?}, not {when:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_violate_the_form_become_cancel() {
    let table = [
        (accept(json!({"name": "Ada"})), r#"{"action":"accept","content":{"name":"Ada"}}"#),
        (ToolAnswer::Decline, r#"{"action":"decline"}"#),
        (ToolAnswer::Cancel, r#"{"action":"cancel"}"#),
        (accept(json!({"name": 7})), r#"{"action":"cancel"}"#),
        (accept(json!("Ada")), r#"{"action":"cancel"}"#),
    ];
    for (answer, expected) in table {
        let (outcome, _) = ends(Duration::ZERO, Duration::ZERO, answer.clone()).await;
        assert_eq!(outcome.model_text(), expected, "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn unhandled_question_is_declined_and_bad_form_is_cancelled() {
    assert_eq!(ToolContext::detached().ask(question()).await, ToolAnswer::Decline);
    let asked = QuestionHandler::new(|_| async { unreachable!("nobody can fill this in") });
    let bad = ToolQuestion::form("?", json!({"type": 7}));
    assert_eq!(ToolContext::detached_with(asked).ask(bad).await, ToolAnswer::Cancel);
}

// A stopped call waits for no answer.
#[tokio::test(start_paused = true)]
async fn cancel_answers_an_open_question() {
    let ask = tool("desk.ask", "Asks", |_: NoArguments, context: ToolContext| async move {
        format!("{:?}", context.ask(question()).await)
    });
    let registry = ToolRegistry::builder().tool(ask).build().unwrap();
    let question_handler = QuestionHandler::new(|_| std::future::pending());
    let call = ToolInvocation {
        question_handler,
        ..ToolInvocation::new("call_1", "desk.ask", CallArguments::from_value(json!({})))
    };
    let cancel = call.cancel.clone();
    let executor = ToolExecutor::default();
    let (outcome, ()) = tokio::join!(executor.run(&registry, call, |_| async {}), async {
        sleep(Duration::from_secs(3)).await;
        cancel.cancel();
    });
    let partial = outcome.output().map(|output| output.text.clone());
    assert_eq!(partial.as_deref(), Some("Cancel"), "{outcome:?}");
}
