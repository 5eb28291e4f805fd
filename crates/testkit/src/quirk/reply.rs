//! The script of a model with a quirk: its changed text and calls, before they are written in a wire format.

use super::PlantedQuirk as Q;
use super::refusal::wants_schema;
use crate::parsed_request::{ParsedRequest, ParsedToolChoice};
use crate::script::{CallMove, ModelScript, ScriptMove, SpeechMove};
use serde_json::json;

/// The script as a model with these quirks plays it.
pub(crate) fn with_quirks(quirks: &[Q], seen: &ParsedRequest, mut script: ModelScript) -> ModelScript {
    if script.http.is_some() || script.refuse_tools.is_some() {
        return script;
    }
    for quirk in quirks.iter().filter(|quirk| quirk.dialects().contains(&seen.dialect)) {
        script = one(*quirk, seen, script);
    }
    script
}

fn one(quirk: Q, seen: &ParsedRequest, script: ModelScript) -> ModelScript {
    let forced = matches!(seen.tool_choice, ParsedToolChoice::Required | ParsedToolChoice::Named(_));
    match quirk {
        Q::IgnoresTools if script.calls() => instead(script, "I cannot look that up."),
        Q::ForcedCallIgnored if forced => instead(script, "Hello."),
        Q::ImagesIgnored if seen.has_image() => instead(script, "I cannot see pictures."),
        Q::JsonSchemaIgnored if wants_schema(seen) => instead(script, "The Eiffel Tower stands in Paris."),
        Q::ForbiddenCallIgnored if seen.tool_choice == ParsedToolChoice::None => match seen.tools.first() {
            Some(tool) => {
                ModelScript { moves: Vec::new(), ..script }.call(&tool.name, json!({"city": "Paris"}))
            }
            None => script,
        },
        Q::SystemPromptIgnored => without_words_of(script, seen.instructions.as_deref().unwrap_or_default()),
        Q::LeakedCalls => each_call(script, &|call| {
            let text = format!(
                "<tool_call>\n{{\"name\": \"{}\", \"arguments\": {}}}\n</tool_call>\n",
                call.name,
                call.text()
            );
            ScriptMove::Say(text.into())
        }),
        Q::WholeArguments => each_call(script, &|call| {
            ScriptMove::Call(CallMove { fragment_chars: Some(usize::MAX), ..call.clone() })
        }),
        Q::SingleCall => with_first_call_only(script),
        Q::ThinksInReasoning | Q::ReasoningEchoRequired => {
            thinking_first(script, ScriptMove::Think("Let me see.".into()))
        }
        Q::ThinksInText => thinking_first(script, ScriptMove::Say("<think>Let me see.</think>".into())),
        _ => script,
    }
}

fn instead(script: ModelScript, text: &str) -> ModelScript {
    ModelScript { moves: vec![ScriptMove::Say(text.into())], ..script }
}

fn thinking_first(mut script: ModelScript, thought: ScriptMove) -> ModelScript {
    script.moves.insert(0, thought);
    script
}

fn each_call(script: ModelScript, change: &dyn Fn(&CallMove) -> ScriptMove) -> ModelScript {
    let mut moves = Vec::new();
    for next in script.moves {
        match next {
            ScriptMove::Call(call) => moves.push(change(&call)),
            ScriptMove::Parallel(calls) => moves.extend(calls.iter().map(change)),
            other => moves.push(other),
        }
    }
    ModelScript { moves, ..script }
}

fn with_first_call_only(script: ModelScript) -> ModelScript {
    let mut calls = 0;
    let mut script = each_call(script, &|call| ScriptMove::Call(call.clone()));
    script.moves.retain(|next| {
        calls += usize::from(matches!(next, ScriptMove::Call(_)));
        calls <= 1 || !matches!(next, ScriptMove::Call(_))
    });
    script
}

/// Removes text that only the system prompt can have asked for.
fn without_words_of(mut script: ModelScript, instructions: &str) -> ModelScript {
    for next in &mut script.moves {
        if let ScriptMove::Say(SpeechMove { text, .. }) = next {
            let words = text.split(' ').filter(|word| {
                let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
                bare.is_empty() || !instructions.contains(bare)
            });
            *text = words.collect::<Vec<_>>().join(" ");
        }
    }
    script
}
