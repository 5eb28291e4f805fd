//! Ollama `/api/chat` and `/api/generate`.

use super::OracleOutcome;
use super::draft::{Draft, DraftCall, error_message, fragment, string};
use super::frames::lines;

pub fn read(body: &[u8]) -> OracleOutcome {
    let mut draft = Draft::default();
    for line in lines(body) {
        if !line["error"].is_null() {
            draft.fail(error_message(&line).unwrap_or_default());
        }
        let message = &line["message"];
        for text in [&message["content"], &line["response"]] {
            draft.text += text.as_str().unwrap_or_default();
        }
        for text in [&message["thinking"], &line["thinking"]] {
            draft.reasoning += text.as_str().unwrap_or_default();
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            draft.calls.push(DraftCall {
                id: string(call, "id"),
                name: string(function, "name").unwrap_or_default(),
                fragments: fragment(&function["arguments"]).into_iter().collect(),
                is_closed: true,
                ..DraftCall::default()
            });
        }
        draft.use_tokens(&line["prompt_eval_count"], &line["eval_count"]);
        if line["done"] == true {
            draft.is_complete = true;
            draft.finish = Some(string(&line, "done_reason").unwrap_or_else(|| "stop".to_owned()));
        }
    }
    draft.settle(|raw| match raw {
        "stop" => "stop",
        "length" => "length",
        _ => "other",
    })
}
