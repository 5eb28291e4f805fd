//! How the calls of a turn travel: in the upstream's own field or as text. // R: T3

use crate::offer::Offer;
use throughline_engine::{OfferedTool, Remark};
use throughline_tools::{Found, Verdict, Withheld};
use throughline_wire::text::{self, TextProtocol};
use throughline_wire::{ToolDefinition, WireName};

/// The tools of the request that can be called that way, and a remark for each of the others. `auto` is `native`: a refusal
/// of tools ends in an error that says how to switch, never in a silent downgrade.
pub(crate) fn can_be_called(
    own: Vec<OfferedTool>,
    protocol: Option<&dyn TextProtocol>,
) -> (Vec<OfferedTool>, Vec<Remark>) {
    let Some(protocol) = protocol else { return (own, Vec::new()) };
    let mut left_out = Vec::new();
    let mut can = own;
    can.retain(|tool| match protocol.can_offer(&tool.definition) {
        Ok(()) => true,
        Err(why) => {
            left_out.push(not_offered(tool.wire_name.as_str(), &tool.definition, &why));
            false
        }
    });
    (can, left_out)
}

/// One for each tool that the agent may use and that cannot be called that way.
pub(crate) fn left_out(offer: &Offer) -> Vec<Remark> {
    let left_out = offer.found.iter().filter_map(|Found { tool, verdict }| match verdict {
        Verdict::Withheld(Withheld::NotInProtocol { why, .. }) => {
            Some(not_offered(tool.spec().name.as_str(), &tool.definition(), why))
        }
        _ => None,
    });
    left_out.collect()
}

/// A call of a tool was to be forced that is not offered.
pub(crate) fn choice_not_offered(name: &WireName) -> Remark {
    Remark {
        code: "tool_choice_not_offered".to_owned(),
        what: format!("no call of {name} is forced: it is not offered"),
        remedy: Some("Name a tool that the request declares and that can be called in this mode.".to_owned()),
    }
}

fn not_offered(name: &str, definition: &ToolDefinition, why: &str) -> Remark {
    let other = text::PROTOCOLS.iter().find(|other| other.can_offer(definition).is_ok());
    let remedy = match other {
        Some(other) => {
            format!("Set `protocol = \"{}\"` in the agent's `tool_call`, or use mode `native`.", other.name())
        }
        None => "Use mode `native`.".to_owned(),
    };
    Remark {
        code: "tool_not_offered".to_owned(),
        what: format!("{name} is not offered in text mode: {why}"),
        remedy: Some(remedy),
    }
}
