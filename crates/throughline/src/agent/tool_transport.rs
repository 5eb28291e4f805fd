//! Transport of a turn's calls: in the upstream's own field or as text.

use super::tool_selection::ToolSelection;
use throughline_engine::{OfferedTool, SetupRemark};
use throughline_tools::{DiscoveredTool, ToolAvailability, WithheldReason};
use throughline_wire::text_calls::{self, TextProtocol};
use throughline_wire::{ToolDefinition, WireName};

/// The tools of the request that can be called in this mode, and a remark for each of the others. `auto` is
/// treated as `native`: a refusal of tools ends in an error that explains how to switch, never in a silent
/// downgrade.
pub(crate) fn callable_tools(
    tools: Vec<OfferedTool>,
    protocol: Option<&dyn TextProtocol>,
) -> (Vec<OfferedTool>, Vec<SetupRemark>) {
    let Some(protocol) = protocol else { return (tools, Vec::new()) };
    let mut remarks = Vec::new();
    let mut callable = tools;
    callable.retain(|tool| match protocol.can_offer(&tool.definition) {
        Ok(()) => true,
        Err(why) => {
            remarks.push(not_offered_remark(tool.wire_name.as_str(), &tool.definition, &why));
            false
        }
    });
    (callable, remarks)
}

/// One remark for each tool that the agent may use and that cannot be called in this mode.
pub(crate) fn withheld_remarks(selection: &ToolSelection) -> Vec<SetupRemark> {
    let remarks =
        selection.discovered.iter().filter_map(
            |DiscoveredTool { tool, availability: verdict }| match verdict {
                ToolAvailability::Withheld(WithheldReason::NotInProtocol { why, .. }) => {
                    Some(not_offered_remark(tool.spec().name.as_str(), &tool.definition(), why))
                }
                _ => None,
            },
        );
    remarks.collect()
}

/// A call of a tool was to be forced that is not offered.
pub(crate) fn tool_choice_remark(name: &WireName) -> SetupRemark {
    SetupRemark {
        code: "tool_choice_not_offered".to_owned(),
        what: format!("cannot force a call of {name}: it is not offered"),
        remedy: Some("Name a tool that the request declares and that can be called in this mode.".to_owned()),
    }
}

fn not_offered_remark(name: &str, definition: &ToolDefinition, why: &str) -> SetupRemark {
    let other = text_calls::PROTOCOLS.iter().find(|other| other.can_offer(definition).is_ok());
    let remedy = match other {
        Some(other) => {
            format!("Set `protocol = \"{}\"` in the agent's `tool_call`, or use mode `native`.", other.name())
        }
        None => "Use mode `native`.".to_owned(),
    };
    SetupRemark {
        code: "tool_not_offered".to_owned(),
        what: format!("{name} is not offered in text mode: {why}"),
        remedy: Some(remedy),
    }
}
