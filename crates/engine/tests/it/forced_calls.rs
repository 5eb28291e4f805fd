//! A call that whoever asks wants to see: in the first step, and in no other.

use crate::script::{self, ScriptedTurn};
use throughline_engine::{Turn, TurnAction, TurnOutput};
use throughline_wire::{ModelRequest, ToolChoice};

fn names(request: &ModelRequest) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn after_one_call(setup: &str, tool: &str) -> ScriptedTurn {
    ScriptedTurn::run(&format!(
        "{setup}
         open A {tool}
         seal A {{}}
         finish tool_calls
         ok A 1
         text done
         finish stop"
    ))
}

#[test]
fn a_call_is_forced_in_the_first_step_and_free_afterwards() {
    for (setup, choice, offered) in [
        ("tools t:read u:read; force; approve", ToolChoice::Required, &["t", "u"][..]),
        ("tools t:read u:read; force t; approve", ToolChoice::Tool("t".into()), &["t"]),
        // Whoever has brought tools along means one of those.
        ("tools t:read u:read:own; force; approve", ToolChoice::Required, &["u"]),
    ] {
        let scripted = after_one_call(setup, "t");
        assert_eq!(
            (&scripted.requests[0].tool_choice, names(&scripted.requests[0])),
            (&choice, offered.to_vec())
        );
        assert_eq!(scripted.requests[1].tool_choice, ToolChoice::Auto, "{setup}");
        assert_eq!(names(&scripted.requests[1]), ["t", "u"], "{setup}");
    }
}

/// A reply that died with its process was no step: it is asked for again, and as before.
#[test]
fn a_first_step_that_is_lost_is_forced_again() {
    let scripted = ScriptedTurn::run("tools t:read; force t; continue\n open A t");
    let mut turn =
        Turn::restore(scripted.setup.clone(), script::start(), &scripted.log, &scripted.provider_states);
    let mut out = TurnOutput::default();
    turn.resume(1, scripted.now, &mut out);
    let asked: Vec<_> = out
        .actions
        .iter()
        .filter_map(|action| match action {
            TurnAction::CallModel { request, .. } => Some(&request.tool_choice),
            _ => None,
        })
        .collect();
    assert_eq!(asked, [&ToolChoice::Tool("t".into())]);
}
