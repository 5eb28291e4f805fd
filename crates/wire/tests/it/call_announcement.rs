//! A call is announced as soon as its name is sure to be whole, and not before.

use throughline_wire::{DecodeOptions, Dialect, StepDecoder, StepEvent};

/// One event of Chat Completions for call `index`.
fn delta(index: u32, name: &str, arguments: &str) -> String {
    let entry = serde_json::json!({"index": index, "function": {"name": name, "arguments": arguments}});
    format!("data: {}\n\n", serde_json::json!({"choices": [{"delta": {"tool_calls": [entry]}}]}))
}

// A finish reason may come too early, so what decides is the end.
const END: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";

/// Names that have been announced after each of the events.
#[track_caller]
fn check(offered: &[&str], events: &[(String, &[&str])]) {
    let offered = offered.iter().map(|name| (*name).to_owned()).collect();
    let mut decoder =
        StepDecoder::new(Dialect::OpenaiChat, DecodeOptions { offered, ..DecodeOptions::default() });
    for (number, (event, expected)) in events.iter().enumerate() {
        let mut announced = Vec::new();
        decoder.push(event.as_bytes(), &mut |event| {
            if let StepEvent::CallOpened { name, .. } = event {
                announced.push(name.to_string());
            }
        });
        assert_eq!(announced, *expected, "after event {number}");
    }
}

#[test]
fn offered_name_is_announced_at_once() {
    check(&["get_weather"], &[(delta(0, "get_weather", ""), &["get_weather"]), (delta(0, "", "{}"), &[])]);
}

#[test]
fn fragmented_name_is_announced_with_its_last_fragment() {
    check(&["get_weather"], &[(delta(0, "get_", ""), &[]), (delta(0, "weather", ""), &["get_weather"])]);
}

#[test]
fn unoffered_name_is_announced_with_its_first_argument() {
    check(&[], &[(delta(0, "invented", ""), &[]), (delta(0, "", "{"), &["invented"])]);
}

#[test]
fn name_without_arguments_is_announced_at_next_call_or_end() {
    check(&[], &[(delta(0, "a", ""), &[]), (delta(1, "b", ""), &["a"]), (END.to_owned(), &["b"])]);
}
