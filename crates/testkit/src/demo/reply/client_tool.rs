//! Tools of a client that the script does not know: it calls one where the request demands a call, and
//! reports its result.

use super::super::schema_value::SchemaFiller;
use super::super::tool_outcome::ParsedOutcome;
use super::{DemoScene, block_quote};
use crate::parsed_request::{ParsedTool, ParsedToolChoice};
use crate::script::{CallMove, ModelScript, ScriptMove};

/// Tools that the rules call and describe.
const KNOWN: [&str; 10] = [
    "demo_calendar",
    "demo_fail",
    "demo_weather",
    "demo_wether",
    "files_list",
    "files_read",
    "files_search",
    "live2d_expression",
    "live2d_motion",
    "time_now",
];
/// Lines of a result that are quoted; a longer one is cut, since it is in the call anyway.
const QUOTED_LINES_MAX: usize = 12;
/// A shorter word (`a`, `to`) is in too many names.
const WORD_CHARS_MIN: usize = 3;

/// The reply unchanged if it calls as the request demands; else only the demanded call, as other models do.
pub(super) fn call_as_demanded(scene: &DemoScene<'_>, reply: ModelScript) -> ModelScript {
    let demanded = match &scene.seen.tool_choice {
        ParsedToolChoice::Auto | ParsedToolChoice::None => return reply,
        ParsedToolChoice::Required => None,
        ParsedToolChoice::Named(name) => Some(name.as_str()),
    };
    let may_be_called =
        |name: &str| scene.seen.tool(name).is_some() && demanded.is_none_or(|demanded| demanded == name);
    let mut calls = reply.moves.iter().filter_map(|next| match next {
        ScriptMove::Call(call) => Some(call.name.as_str()),
        _ => None,
    });
    // `all` is true of no call at all.
    if calls.next().is_some_and(may_be_called) && calls.all(may_be_called) {
        return reply;
    }
    let tool = match demanded {
        Some(name) => scene.seen.tool(name),
        None => fitting_tool(scene),
    };
    let Some(tool) = tool else { return reply };
    let arguments = SchemaFiller::new(&tool.parameters, scene.text, scene.language).arguments();
    ModelScript::new().then(ScriptMove::Call(CallMove::new(tool.name.clone(), arguments)))
}

/// A tool that has not answered yet, so that a request that demands a call in every step reaches the tool
/// that ends it; preferably one with a word of the question in its name, else the first.
fn fitting_tool<'s>(scene: &DemoScene<'s>) -> Option<&'s ParsedTool> {
    let tools = &scene.seen.tools;
    let text = scene.text.to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    let is_named = |tool: &&ParsedTool| {
        let name = tool.name.to_lowercase();
        let mut parts = name.split(|c: char| !c.is_alphanumeric());
        parts.any(|part| part.chars().count() >= WORD_CHARS_MIN && words.contains(&part))
    };
    let has_answered = |tool: &&ParsedTool| scene.answered.iter().any(|(call, _)| call.name == tool.name);
    let fresh: Vec<&ParsedTool> = tools.iter().filter(|tool| !has_answered(tool)).collect();
    let fresh_named = fresh.iter().copied().find(|tool| is_named(tool));
    fresh_named.or(fresh.first().copied()).or(tools.iter().find(is_named)).or(tools.first())
}

/// A report of the results of the client's tools, if the newest one is of a tool that no rule knows.
pub(super) fn report(scene: &DemoScene<'_>) -> Option<ModelScript> {
    scene.answered.last().filter(|(call, _)| !KNOWN.contains(&call.name.as_str()))?;
    let lead = scene.choose_text(
        "I am a script and do not understand what your tool says, so here it is in its own words.\n\n",
        "我只是一个脚本，看不懂您的工具说了什么，所以原样转述如下。\n\n",
    );
    let results = scene.answered.iter().map(|(call, outcome)| {
        let text = match outcome {
            ParsedOutcome::Output(text, _) if text.trim().is_empty() => "…".to_owned(),
            other => scene.describe_outcome(other),
        };
        format!("`{}`:\n\n{}\n", call.name, block_quote(&text, QUOTED_LINES_MAX))
    });
    Some(ModelScript::new().say(format!("{lead}{}", results.collect::<String>().trim_end())))
}
