//! Answers to questions: the first counts, everyone gets the same reply, and only when the log has it.

use crate::support::{builder, serve};
use serde_json::json;
use throughline::engine::ApprovalId;
use throughline::wire::{CallId, Dialect};
use throughline::{
    ApprovalMode, ApprovalOutcome, ApprovalResponse, AssistantMessage, CallStatus, CancelCallResult,
    TurnControl, TurnHandle,
};
use throughline_testkit::{self as testkit, FakeUpstreamHandle, ModelScript, ScriptQueue};

async fn upstream() -> FakeUpstreamHandle {
    let adds = ModelScript::new().call("calendar_add", json!({"title": "Tea"}));
    serve(ScriptQueue::new([adds, ModelScript::new().say("Done.")])).await
}

async fn asking(server: &FakeUpstreamHandle) -> TurnHandle {
    let chat = (Dialect::OpenaiChat, testkit::FakeDialect::OpenaiChat);
    builder(server, chat).approval(ApprovalMode::Ask).build().unwrap().ask("Tea, please.").await.unwrap()
}

/// Reads until a call needs approval.
async fn question(turn: &mut TurnHandle) -> (TurnControl, ApprovalId, CallId) {
    loop {
        turn.next().await.expect("a question comes");
        let found =
            turn.message().calls().find_map(|call| Some((call.approval.as_ref()?, call.tool_id.as_ref()?)));
        if let Some((approval, call)) = found {
            return (turn.control(), approval.approval_id.clone(), call.clone());
        }
    }
}

fn status(message: &AssistantMessage) -> Option<CallStatus> {
    message.calls().next().and_then(|call| call.status)
}

#[tokio::test]
async fn concurrent_decisions_first_wins() {
    let server = upstream().await;
    let mut turn = asking(&server).await;
    let (control, id, _) = question(&mut turn).await;
    let yes = control.decide_as(id.clone(), ApprovalResponse::approve(), "ada");
    let no = control.decide_as(id.clone(), ApprovalResponse::deny("no"), "eve");
    assert_eq!(tokio::join!(yes, no), (ApprovalOutcome::Resolved, ApprovalOutcome::Conflict));
    // The same answer from another client is accepted as the same.
    assert_eq!(
        control.decide_as(id.clone(), ApprovalResponse::approve(), "eve").await,
        ApprovalOutcome::AlreadyResolved
    );
    let message = turn.finish().await;
    assert_eq!(status(&message), Some(CallStatus::Success));
    assert_eq!(control.decide(id, ApprovalResponse::approve()).await, ApprovalOutcome::TurnEnded);
}

#[tokio::test]
async fn cancel_and_approval_of_a_call_have_one_winner() {
    for stop_first in [true, false] {
        let server = upstream().await;
        let mut turn = asking(&server).await;
        let (control, id, call) = question(&mut turn).await;
        let (decided, cancelled) = if stop_first {
            let (cancelled, decided) = tokio::join!(
                control.cancel_call(call.clone()),
                control.decide(id, ApprovalResponse::approve())
            );
            (decided, cancelled)
        } else {
            tokio::join!(control.decide(id, ApprovalResponse::approve()), control.cancel_call(call.clone()))
        };
        let message = turn.finish().await;
        match decided {
            ApprovalOutcome::Resolved => assert!(!stop_first),
            ApprovalOutcome::Expired => {
                assert_eq!(
                    (cancelled, status(&message)),
                    (CancelCallResult::Cancelled, Some(CallStatus::Cancelled))
                );
            }
            other => panic!("{other:?}"),
        }
        if stop_first {
            assert_eq!(decided, ApprovalOutcome::Expired, "it came second");
        }
    }
}

#[tokio::test]
async fn invalid_edit_can_be_corrected_and_unknown_ids_rejected() {
    let server = upstream().await;
    let mut turn = asking(&server).await;
    let (control, id, call) = question(&mut turn).await;
    let nobody = ApprovalId::new("turn_other.1.a1");
    assert_eq!(control.decide(nobody, ApprovalResponse::approve()).await, ApprovalOutcome::Unknown);
    assert_eq!(control.cancel_call(CallId::new("no such call")).await, CancelCallResult::Unknown);
    let broken = ApprovalResponse::approve().with_arguments(json!({"title": 7}));
    let decided = control.decide(id.clone(), broken).await;
    assert!(
        matches!(&decided, ApprovalOutcome::Invalid { message } if message.contains("title")),
        "{decided:?}"
    );
    // The second question of this call is not open yet: an early answer is stored for it.
    let next = ApprovalId::new(format!("{call}.a2"));
    assert_eq!(control.decide(next.clone(), ApprovalResponse::approve()).await, ApprovalOutcome::Queued);
    assert_eq!(control.decide(next, ApprovalResponse::deny("no")).await, ApprovalOutcome::Conflict);
    let fits = ApprovalResponse::approve().with_arguments(json!({"title": "Cake"}));
    let (one, two) = tokio::join!(control.decide(id.clone(), fits.clone()), control.decide(id.clone(), fits));
    assert_eq!((one, two), (ApprovalOutcome::Resolved, ApprovalOutcome::AlreadyResolved));
    let message = turn.finish().await;
    assert_eq!(message.calls().next().unwrap().output, "added Cake");
}
