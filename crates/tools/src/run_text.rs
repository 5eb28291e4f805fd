//! Calls that a model wrote as text: read, run and written up as results, in one function.

use crate::execute::{ToolExecutor, ToolInvocation};
use crate::registry::ToolRegistry;
use crate::toggles::ToolToggles;
use throughline_engine::{OfferedTool, Policy, PolicyDecision, explain};
use throughline_wire::text_calls::{MarkupFinding, ParsedCall, TextProtocol, VcpProtocol};
use throughline_wire::{
    Call, CallArguments, CallId, CallKind, CallOutcome, NotStarted, RawArguments, ToolDefinition, WireName,
};
use tokio_util::sync::CancellationToken;

/// Most calls of one reply that are run; the others get an error. Default of [`TextRunOptions::calls_max`].
pub const TEXT_CALLS_MAX: usize = 64;

/// Settings of [`run_text`].
#[derive(Clone, Debug)]
pub struct TextRunOptions {
    /// The grammar of the calls. Default: `vcp`.
    pub protocol: &'static dyn TextProtocol,
    /// Rules about calls. No person can be asked here: calls that need an approval are denied. Default: no
    /// rules, so that only tools without effects run.
    pub policy: Policy,
    /// Executor that runs the tools.
    pub executor: ToolExecutor,
    /// Switches of tools.
    pub toggles: ToolToggles,
    /// Most calls that are run. Default [`TEXT_CALLS_MAX`].
    pub calls_max: usize,
    /// Stops the calls.
    pub cancel: CancellationToken,
}

impl Default for TextRunOptions {
    fn default() -> Self {
        Self {
            protocol: &VcpProtocol,
            policy: Policy::default(),
            executor: ToolExecutor::default(),
            toggles: ToolToggles::default(),
            calls_max: TEXT_CALLS_MAX,
            cancel: CancellationToken::new(),
        }
    }
}

/// Result of running the calls in a reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextRun {
    /// The text without the calls.
    pub text: String,
    /// The calls in the order in which they were written, each with its outcome.
    pub calls: Vec<(Call, CallOutcome)>,
    /// The outcomes as the model's next message; empty if it called nothing.
    pub results: String,
    /// Remarks about markup that is no call, such as an example in a code block.
    pub findings: Vec<MarkupFinding>,
}

/// Reads the calls in a reply, runs the permitted ones one after the other, and writes their results for the
/// model.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use throughline_tools::{Effect, NoArguments, TextRunOptions, ToolRegistry, run_text, tool};
///
/// let noon = tool("clock.now", "The time", |_: NoArguments, _| async { "noon" }).effect(Effect::Read);
/// let tools = ToolRegistry::builder().tool(noon.agent_callable()).build()?;
/// let reply = "Let me look.\n<<<[TOOL_REQUEST]>>>\ntool_name:「始」clock_now「末」\n<<<[END_TOOL_REQUEST]>>>";
///
/// let run = run_text(reply, &tools, &TextRunOptions::default()).await;
/// assert_eq!(run.text.trim(), "Let me look.");
/// assert!(run.results.contains("noon"));
/// # Ok::<(), throughline_tools::RegistryError>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn run_text(reply: &str, tools: &ToolRegistry, options: &TextRunOptions) -> TextRun {
    let offered = tools.offered(&options.toggles);
    let definitions: Vec<ToolDefinition> = offered.iter().map(|tool| tool.definition.clone()).collect();
    let parsed = options.protocol.parse(reply, &definitions);
    // Equal replies have the same ids, and no two replies share the frame of their results.
    let id = blake3::hash(reply.as_bytes()).to_hex();
    let mut calls = Vec::new();
    for (number, written) in (1..).zip(parsed.calls) {
        let call = as_call(CallId::new(format!("text_{}.{number}", &id[..16])), written);
        let outcome = if number > options.calls_max {
            CallOutcome::NotStarted(NotStarted::Limit { limit: "calls_max".to_owned() })
        } else {
            run_call(&call, tools, &offered, options).await
        };
        calls.push((call, outcome));
    }
    let results = options.protocol.format_results(&calls, &definitions);
    TextRun { text: parsed.text, calls, results, findings: parsed.findings }
}

fn as_call(id: CallId, written: ParsedCall) -> Call {
    let arguments = match written.arguments {
        Ok(text) => match serde_json::from_str(&text) {
            Ok(value) => Ok(CallArguments { text, value, repairs: Vec::new() }),
            Err(_) => Err(RawArguments(text)),
        },
        Err(reason) => Err(RawArguments(reason)),
    };
    let name = WireName::new(written.name);
    Call { id, upstream_id: None, name, kind: CallKind::Function, arguments, ran_with: None }
}

async fn run_call(
    call: &Call,
    tools: &ToolRegistry,
    offered: &[OfferedTool],
    options: &TextRunOptions,
) -> CallOutcome {
    let arguments = match &call.arguments {
        Ok(arguments) => arguments,
        Err(RawArguments(reason)) => {
            return CallOutcome::NotStarted(NotStarted::Refused { message: reason.clone() });
        }
    };
    // A registered tool that models may not call is not there for them.
    let Some(tool) = offered.iter().find(|tool| tool.wire_name == call.name) else {
        let closest = tools.suggest(call.name.as_str(), &options.toggles);
        return CallOutcome::NotStarted(NotStarted::UnknownTool { closest });
    };
    match explain(tool, arguments, &options.policy, &[]) {
        PolicyDecision::Allow { .. } => {}
        PolicyDecision::Deny { reason, .. } => return CallOutcome::Denied { reason: Some(reason) },
        PolicyDecision::Ask { rule } => {
            let reason = format!("it requires approval, which is not possible here ({rule})");
            return CallOutcome::Denied { reason: Some(reason) };
        }
    }
    let mut invocation = ToolInvocation::new(call.id.clone(), tool.name.clone(), arguments.clone());
    invocation.cancel = options.cancel.clone();
    options.executor.run(tools, invocation, |_progress| async {}).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effect, NoArguments, tool};
    use throughline_engine::{PolicyRule, RuleAction};

    fn tools() -> ToolRegistry {
        let noon = tool("clock.now", "The time", |_: NoArguments, _| async { "noon" }).effect(Effect::Read);
        let save = tool("notes.save", "Saves", |_: NoArguments, _| async { "saved" }).effect(Effect::Write);
        let inner = tool("inner.reset", "Resets", |_: NoArguments, _| async { "reset" });
        let builder = ToolRegistry::builder().tool(noon.agent_callable()).tool(save.agent_callable());
        builder.tool(inner).build().expect("three tools")
    }

    fn request(tool: &str) -> String {
        format!("<<<[TOOL_REQUEST]>>>\ntool_name:「始」{tool}「末」\n<<<[END_TOOL_REQUEST]>>>\n")
    }

    async fn outcomes(reply: &str, options: &TextRunOptions) -> Vec<CallOutcome> {
        let run = run_text(reply, &tools(), options).await;
        assert_eq!(run.results.is_empty(), run.calls.is_empty(), "every outcome is told: {}", run.results);
        run.calls.into_iter().map(|(_, outcome)| outcome).collect()
    }

    #[tokio::test]
    async fn read_tools_run_and_write_tools_need_an_allow_rule() {
        let reply = ["clock_now", "notes_save", "inner_reset", "clock_nov"].map(request).concat();
        let ended = outcomes(&reply, &TextRunOptions::default()).await;
        assert_eq!(ended[0].output().map(|output| output.text.as_str()), Some("noon"));
        assert!(
            matches!(&ended[1], CallOutcome::Denied { reason: Some(why) } if why.contains("effect:write"))
        );
        assert!(
            matches!(ended[2], CallOutcome::NotStarted(NotStarted::UnknownTool { .. })),
            "it is not offered"
        );
        assert!(matches!(&ended[3], CallOutcome::NotStarted(NotStarted::UnknownTool { closest })
            if closest == &["clock_now"]));

        let rules = vec![PolicyRule::new(RuleAction::Allow).tool("notes.*")];
        let policy = Policy { rules, ..Policy::default() };
        let options = TextRunOptions { policy, ..TextRunOptions::default() };
        assert_eq!(outcomes(&request("notes_save"), &options).await[0].output().unwrap().text, "saved");
    }

    #[tokio::test]
    async fn plain_text_and_calls_over_the_limit_do_not_run() {
        assert!(outcomes("Just text.", &TextRunOptions::default()).await.is_empty());
        let two = request("clock_now").repeat(2);
        let options = TextRunOptions { calls_max: 1, ..TextRunOptions::default() };
        let limit = CallOutcome::NotStarted(NotStarted::Limit { limit: "calls_max".to_owned() });
        assert_eq!(outcomes(&two, &options).await[1], limit);
    }
}
