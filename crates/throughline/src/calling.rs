//! How the calls of a turn travel: in the upstream's own field or as text. // R: T3

use crate::config::ResultsAs;
use crate::offer::Offer;
use throughline_engine::{OfferedTool, Remark};
use throughline_tools::{Found, Registered, Verdict, Withheld};
use throughline_wire::text::{self, CallFormat, ResultRole, TextCalls};

/// How the calls of a turn travel. `auto` is `native`: a refusal of tools ends in an error that says how to switch, never
/// in a silent downgrade.
pub(crate) fn format(offer: &Offer, results: ResultsAs, tools: &[OfferedTool]) -> CallFormat {
    let Some(protocol) = offer.protocol else { return CallFormat::Native };
    let results = match results {
        ResultsAs::User => ResultRole::User,
        ResultsAs::Tool => ResultRole::Tool,
    };
    let tools = tools.iter().map(|tool| tool.definition.clone()).collect();
    CallFormat::Text(TextCalls { protocol, tools, results })
}

/// One for each tool that the agent may use and that cannot be called that way.
pub(crate) fn left_out(offer: &Offer) -> Vec<Remark> {
    let left_out = offer.found.iter().filter_map(|Found { tool, verdict }| match verdict {
        Verdict::Withheld(Withheld::NotInProtocol { why, .. }) => Some(not_offered(tool, why)),
        _ => None,
    });
    left_out.collect()
}

fn not_offered(tool: &Registered, why: &str) -> Remark {
    let other = text::PROTOCOLS.iter().find(|other| other.can_offer(&tool.definition()).is_ok());
    let remedy = match other {
        Some(other) => {
            format!("Set `protocol = \"{}\"` in the agent's `tool_call`, or use mode `native`.", other.name())
        }
        None => "Use mode `native`.".to_owned(),
    };
    Remark {
        code: "tool_not_offered".to_owned(),
        what: format!("{} is not offered in text mode: {why}", tool.spec().name),
        remedy: Some(remedy),
    }
}
