//! Events of Anthropic streams in any order, any number of times: decoding emits valid sequences of events,
//! and the resulting content can be sent back.

use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use throughline_wire::{
    Call, CallOutcome, CallSlot, ClosedStep, DecodeOptions, Dialect, Message, ModelReply, ModelRequest,
    StepDecoder, StepEvent, ToolOutput, TransferMode, UpstreamProfile, UserPart, encode,
};

/// One of each event that has a meaning, for three block numbers.
fn events() -> Vec<String> {
    let mut events = vec![
        r#"{"type":"message_start","message":{"id":"msg_1","content":[],"usage":{"input_tokens":1}}}"#
            .to_owned(),
        r#"{"type":"message_start","message":{"id":"msg_2","content":[]}}"#.to_owned(),
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#
            .to_owned(),
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#.to_owned(),
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#.to_owned(),
    ];
    for index in 0..3 {
        let blocks = [
            r#"{"type":"text","text":"t"}"#,
            r#"{"type":"thinking","thinking":"","signature":""}"#,
            r#"{"type":"redacted_thinking","data":"AAAA"}"#,
            r#"{"type":"tool_use","id":"toolu_1","name":"f","input":{}}"#,
            r#"{"type":"tool_use","id":"toolu_2","name":"g","input":{"a":0}}"#,
            r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}"#,
            r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}"#,
        ];
        let deltas = [
            r#"{"type":"text_delta","text":"x"}"#,
            r#"{"type":"thinking_delta","thinking":"h"}"#,
            r#"{"type":"signature_delta","signature":"s"}"#,
            r#"{"type":"input_json_delta","partial_json":"{\"a\":"}"#,
            r#"{"type":"input_json_delta","partial_json":"1}"}"#,
            r#"{"type":"input_json_delta","partial_json":""}"#,
        ];
        events.push(format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
        events.extend(blocks.map(|block| {
            format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
        }));
        events.extend(
            deltas
                .map(|delta| format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)),
        );
    }
    events
}

/// Follows the order that [`StepEvent`] promises.
#[derive(Default)]
struct Referee {
    reply: ModelReply,
    /// Calls that are open (`true`) or have ended.
    calls: BTreeMap<CallSlot, bool>,
    ends: usize,
}

impl Referee {
    fn see(&mut self, event: StepEvent<'_>) {
        assert_eq!(self.ends, 0, "after the end: {event:?}");
        match &event {
            StepEvent::CallOpened { slot, .. } => {
                assert_eq!(self.calls.insert(*slot, true), None, "opened twice")
            }
            StepEvent::CallArguments { slot, .. } => {
                assert_eq!(self.calls.get(slot), Some(&true), "{event:?}")
            }
            StepEvent::CallSealed { slot, .. } | StepEvent::CallBroken { slot, .. } => {
                assert_eq!(self.calls.insert(*slot, false), Some(true), "{event:?}");
            }
            StepEvent::CallReopened { slot } => {
                assert_eq!(self.calls.insert(*slot, true), Some(false), "{event:?}");
            }
            StepEvent::End(_) => {
                self.ends += 1;
                assert!(self.calls.values().all(|open| !open), "a call was left open");
            }
            _ => {}
        }
        self.reply.apply(event);
    }
}

/// The step as a ledger would close it.
fn closed(reply: ModelReply) -> ClosedStep {
    let calls = reply.calls.into_iter().filter(|call| !call.name.as_str().is_empty()).map(|call| {
        let arguments = call.ending.expect("every call has ended").map_err(|(_, raw)| raw);
        let id = format!("c{}", call.slot.0);
        let call = Call {
            id: id.into(),
            upstream_id: call.upstream_id,
            name: call.name,
            kind: call.kind,
            arguments,
            ran_with: None,
        };
        (call, CallOutcome::Done(ToolOutput::text("ok")))
    });
    ClosedStep {
        thinking: reply.thinking,
        text: reply.text,
        calls: calls.collect(),
        provider_state: reply.provider_state,
        model: "claude".into(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn shuffled_events_decode_and_encode_validly(picks in proptest::collection::vec(0..events().len(), 0..24)) {
        let events = events();
        let mut referee = Referee::default();
        let mut decoder = StepDecoder::new(Dialect::Anthropic, DecodeOptions::default());
        for pick in picks {
            let frame = format!("data: {}\n\n", events[pick]);
            decoder.push(frame.as_bytes(), &mut |event| referee.see(event));
        }
        decoder.finish(&mut |event| referee.see(event));
        prop_assert_eq!(referee.ends, 1);

        let step = closed(referee.reply);
        let calls = step.calls.len();
        let question = Message::User(vec![UserPart::Text { text: "?".into() }]);
        let messages = vec![question, Message::Step(step)];
        let request = ModelRequest { model: "claude".into(), messages, ..ModelRequest::default() };
        let sent = encode(Dialect::Anthropic, &request, &UpstreamProfile::default(), TransferMode::Stream).expect("an encoder");
        let blocks = |message: usize, name: &str, key: &str| -> Vec<Value> {
            let content = sent.body["messages"][message]["content"].as_array().cloned().unwrap_or_default();
            let mut found: Vec<_> =
                content.iter().filter(|block| block["type"] == name).map(|block| block[key].clone()).collect();
            found.sort_by_key(Value::to_string);
            found
        };
        let asked = blocks(1, "tool_use", "id");
        prop_assert_eq!(asked.len(), calls);
        prop_assert_eq!(blocks(2, "tool_result", "tool_use_id"), asked);
        for thinking in blocks(1, "thinking", "signature") {
            prop_assert!(thinking.as_str().is_some_and(|signature| !signature.is_empty()));
        }
    }
}
