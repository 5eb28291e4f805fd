//! A call that the requester demands: in the first step, and in no other.

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
fn forced_tool_choice_applies_to_the_first_step_only() {
    for (setup, choice, offered) in [
        ("tools t:read u:read; force; approve", ToolChoice::Required, &["t", "u"][..]),
        ("tools t:read u:read; force t; approve", ToolChoice::Tool("t".into()), &["t"]),
        // A requester that has declared tools means one of those.
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

/// A reply that was lost with its process was not a step: it is requested again, with the same demand.
#[test]
fn lost_first_step_is_forced_again_after_restart() {
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
