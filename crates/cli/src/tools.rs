//! `throughline tools`: lists the tools that models may call, and runs a tool manually.

mod pins;
mod prompt;
mod remembered;

use crate::approvals;
use crate::args::{ModelArgs, ToolsArgs, ToolsCommand};
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages::{self, UiLanguage, UiText};
use crate::output::{err, errln};
use crate::setup::{self, CallPolicy};
use crate::terminal::card::duration;
use crate::terminal::text::{self, escape_controls};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::time::Instant;
use throughline::config::AppSettings;
use throughline::views::ToolDescription;
use throughline::{Agent, decision_in_words};
use throughline_engine::{ApprovalDecision, Effect, PolicyDecision, RememberedDecision};
use throughline_tools::{
    AgentCallable, DiscoveredTool, RegisteredTool, RunsOn, SourceAddition, ToolAvailability, ToolExecutor,
    ToolInvocation, ToolRegistry, WithheldReason,
};
use throughline_wire::display_escape;
use throughline_wire::{CallArguments, CallOutcome, NotStarted, ToolName, ToolOutput};

/// Width of a tool's decision in the list.
const DECISION_WIDTH: usize = 10;
/// Width of the headings of `tools show`.
const HEADING_WIDTH: usize = 8;

/// Lists, shows or runs.
pub(crate) async fn run(args: &ToolsArgs) -> CommandResult {
    match &args.command {
        ToolsCommand::List { choice, json } => list_tools(choice, *json).await,
        ToolsCommand::Prompt { choice, protocol, json } => {
            prompt::run(choice, protocol.as_deref(), *json).await
        }
        ToolsCommand::Remembered { at, forget, json } => remembered::run(at, *forget, *json).await,
        ToolsCommand::Changes { json } => pins::changes(*json),
        ToolsCommand::Approve { name } => pins::approve(name),
        ToolsCommand::Show { name, choice, json } => {
            let settings = setup::load_settings(choice)?;
            // The definition alone does not need the stored approvals.
            let rules = if *json { None } else { Some(CallRules::of(&settings).await?) };
            let tools = setup::ToolSources::open(choice, &settings).await?;
            let ended = show_tool(find_tool(&tools.registry(), name)?, rules.as_ref());
            tools.close().await;
            ended
        }
        ToolsCommand::Call { name, arguments, choice, approve, json } => {
            let settings = setup::load_settings(choice)?;
            let rules = CallRules::of(&settings).await?;
            let tools = setup::ToolSources::open(choice, &settings).await?;
            let output_bytes_max = rules.agent.limits.over(settings.limits.turn).output_bytes_max;
            let call = ManualToolCall { name, arguments, output_bytes_max, approve: *approve, json: *json };
            let ended = call_tool(&tools.registry(), &rules, call).await;
            tools.close().await;
            ended
        }
    }
}

/// The agent whose rules hold, and the answers that were remembered.
struct CallRules<'a> {
    agent: &'a Agent,
    remembered: Vec<RememberedDecision>,
}

impl<'a> CallRules<'a> {
    async fn of(settings: &'a AppSettings) -> Result<Self, CliFailure> {
        let agent = settings.agents.get(&settings.agent).ok_or_else(messages::no_agent)?;
        Ok(Self { agent, remembered: approvals::decisions(&settings.store).await? })
    }

    /// Decision of the rules on a call of this tool by a person.
    fn decide(&self, tool: &RegisteredTool, arguments: &CallArguments) -> PolicyDecision {
        let tool = tool.to_offered(None);
        throughline_engine::explain(&tool, arguments, &self.agent.policy(), &self.remembered)
    }
}

fn find_tool<'a>(registry: &'a ToolRegistry, name: &str) -> Result<&'a Arc<RegisteredTool>, CliFailure> {
    registry.get(&ToolName::from(name)).ok_or_else(|| {
        let names = registry.iter().map(|tool| tool.spec().name.as_str());
        messages::no_such_tool(name, &throughline_engine::suggest_names(name, names))
    })
}

async fn list_tools(choice: &ModelArgs, json: bool) -> CommandResult {
    let settings = setup::load_settings(choice)?;
    let CallRules { agent, remembered } = CallRules::of(&settings).await?;
    let tools = setup::ToolSources::open(choice, &settings).await?;
    let registry = tools.registry();
    let offer =
        agent.select_tools(&registry, &settings.user, None, None).map_err(|error| messages::setup(&error))?;
    let printed = if json {
        let rows: Vec<ToolDescription> = offer
            .discovered
            .iter()
            .map(|found| ToolDescription::new(&found.tool, &found.availability))
            .collect();
        crate::output::json_line(&rows)
    } else {
        let mut text = String::new();
        let width = registry.iter().map(|tool| tool.spec().name.as_str().len()).max().unwrap_or(0);
        let words = UiText(UiLanguage::current());
        let policies: BTreeMap<String, CallPolicy> = setup::offered_tools(&registry, agent, &remembered)
            .into_iter()
            .map(|row| (row.name, row.policy))
            .collect();
        for DiscoveredTool { tool, availability: verdict } in &offer.discovered {
            let spec = tool.spec();
            let (mark, note) = match verdict {
                ToolAvailability::Offered => ("✔", spec.description.lines().next().unwrap_or("").to_owned()),
                ToolAvailability::Withheld(why) => (" ", messages::withheld(why)),
            };
            let (name, effect, source) = (spec.name.as_str(), effect_name(spec.effect), &spec.source);
            let decided = policies.get(name).map_or("", |policy| policy.text(words));
            text.push_str(&format!(
                "{mark} {name:<width$}  {effect:<10}  {}  {source:<8}  {}\n",
                text::padded(decided, DECISION_WIDTH),
                escape_controls(&display_escape::escape(&note))
            ));
        }
        for addition in tools.additions() {
            let SourceAddition { source, name, kind, summary } = addition;
            let line = format!("· {name:<width$}  {kind:<10}  {source:<8}  {summary}");
            text.push_str(&format!("{}\n", escape_controls(&display_escape::escape(&line))));
        }
        text.push_str(&messages::tools_legend(&settings.agent));
        crate::output::text(&text)
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    for name in registry.unknown_toggles(&agent.tool_call.toggles) {
        errln!("{}", messages::unknown_toggle(&agent.name, name));
    }
    for rule in tools.unmatched_rules(&agent.policy) {
        errln!("{}", escape_controls(&messages::unmatched_rule(&agent.name, &rule)));
    }
    tools.close().await;
    Ok(CliExit::Done)
}

/// Prints a tool with the decision of these rules; without rules, as JSON.
fn show_tool(tool: &RegisteredTool, rules: Option<&CallRules<'_>>) -> CommandResult {
    let printed = match rules {
        None => crate::output::json_line(&ToolDescription::new(tool, &callable_verdict(tool))),
        Some(rules) => {
            let no_arguments = CallArguments::from_value(Value::Object(Default::default()));
            let policy = CallPolicy::from(&rules.decide(tool, &no_arguments));
            crate::output::text(&tool_page(tool, policy))
        }
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

fn tool_page(tool: &RegisteredTool, policy: CallPolicy) -> String {
    let spec = tool.spec();
    let words = UiText(UiLanguage::current());
    let schema = serde_json::to_string_pretty(&spec.parameters).unwrap_or_default();
    let limit = duration(u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX));
    let rows = [
        (words.tool_effect(), format!("{} · {}", effect_name(spec.effect), policy.text(words))),
        (words.tool_source(), spec.source.clone()),
        (
            words.tool_callable(),
            match spec.agent_callable {
                AgentCallable::Yes => words.callable_by_models().to_owned(),
                AgentCallable::No => words.callable_by_nobody().to_owned(),
            },
        ),
        (words.tool_wire_name(), tool.wire_name().to_string()),
        (
            words.tool_runs_where(),
            match spec.runs_on {
                RunsOn::Client => messages::tool_runs_at_a_client(&limit),
                RunsOn::Here => messages::tool_runs_here(&limit),
            },
        ),
    ];
    let table: String = rows
        .iter()
        .map(|(heading, value)| format!("  {}  {value}\n", text::padded(heading, HEADING_WIDTH)))
        .collect();
    format!(
        "{} ({})\n{}\n\n{table}\n{}\n{}\n",
        spec.name,
        display_escape::escape(&spec.title),
        display_escape::escape(&spec.description),
        words.tool_arguments(),
        display_escape::escape(&schema),
    )
}

/// Availability of one tool to models, regardless of the others.
fn callable_verdict(tool: &RegisteredTool) -> ToolAvailability {
    match tool.spec().agent_callable {
        AgentCallable::Yes => ToolAvailability::Offered,
        AgentCallable::No => ToolAvailability::Withheld(WithheldReason::NotCallable),
    }
}

/// A tool that a person runs from the command line.
struct ManualToolCall<'a> {
    name: &'a str,
    arguments: &'a str,
    output_bytes_max: usize,
    approve: bool,
    json: bool,
}

fn effect_name(effect: Effect) -> String {
    format!("{effect:?}").to_lowercase()
}

async fn call_tool(
    registry: &ToolRegistry,
    rules: &CallRules<'_>,
    call: ManualToolCall<'_>,
) -> CommandResult {
    let ManualToolCall { name, arguments, output_bytes_max, approve, json } = call;
    let tool = find_tool(registry, name)?;
    let arguments = read_arguments(arguments)?;
    tool.validate(&arguments).map_err(|error| messages::arguments_refused(name, &error.to_string()))?;
    // As over the API: a rule can forbid, and what has side effects needs consent even where a rule allows it to models.
    let asks = match rules.decide(tool, &arguments) {
        PolicyDecision::Deny { rule, reason } => {
            return Err(messages::tool_denied_by_rule(name, &rules.agent.name, &rule, &reason));
        }
        PolicyDecision::Ask { .. } => true,
        PolicyDecision::Allow { .. } => tool.spec().effect.has_effects(),
    };
    if asks && !approve && !allowed_by_person(name, &arguments)? {
        return Ok(CliExit::ToolFailed);
    }
    let mut stop_signals = crate::interrupt::stop_signals().map_err(|error| messages::no_signals(&error))?;
    let mut call = ToolInvocation::new("by_hand", name, arguments);
    call.output_bytes_max = Some(output_bytes_max);
    call.question_handler =
        crate::line_prompts::manual_asker(tool.spec(), messages::UiText(messages::UiLanguage::current()));
    let cancel = call.cancel.clone();
    let executor = ToolExecutor::default();
    let started = Instant::now();
    let progress = |progress: throughline_engine::CallProgress| async move {
        if let Some(message) = &progress.message {
            errln!("… {}", escape_controls(&display_escape::escape(message)));
        }
    };
    let mut running = std::pin::pin!(executor.run(registry, call, progress));
    let outcome = loop {
        tokio::select! {
            outcome = &mut running => break outcome,
            wish = stop_signals.recv() => {
                if wish.is_none() || cancel.is_cancelled() {
                    return Ok(CliExit::Cancelled);
                }
                cancel.cancel();
            }
        }
    };
    let elapsed = duration(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
    print_outcome(&outcome, &elapsed, json).map_err(|error| messages::output_failed(&error))?;
    Ok(match outcome {
        CallOutcome::Done(_) => CliExit::Done,
        CallOutcome::Cancelled(_) => CliExit::Cancelled,
        _ => CliExit::ToolFailed,
    })
}

fn read_arguments(text: &str) -> Result<CallArguments, CliFailure> {
    let text = if text == "-" {
        let mut read = String::new();
        io::stdin().read_to_string(&mut read).map_err(|error| messages::input_failed(&error))?;
        read
    } else {
        text.to_owned()
    };
    let value = serde_json::from_str(&text).map_err(|error| messages::arguments_not_json(&error))?;
    // The text, not the value made of it: digits beyond 64 bits are the tool's to read.
    Ok(CallArguments { text, value, repairs: Vec::new() })
}

/// Shows everything that would run and waits for a `y`.
fn allowed_by_person(name: &str, arguments: &CallArguments) -> Result<bool, CliFailure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(messages::tool_needs_approval(name));
    }
    let shown = serde_json::to_string_pretty(&arguments.value).unwrap_or_else(|_| arguments.text.clone());
    let words = messages::UiText(messages::UiLanguage::current());
    err!(
        "{}",
        messages::approval_prompt(
            words,
            name,
            &crate::plain::for_terminal(&display_escape::escape_exact(&shown))
        )
    );
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|error| messages::input_failed(&error))?;
    Ok(decision_in_words(&line) == Some(ApprovalDecision::Approve))
}

fn print_outcome(outcome: &CallOutcome, elapsed: &str, json: bool) -> io::Result<()> {
    if json {
        return crate::output::json_line(outcome);
    }
    let (summary, output) = match outcome {
        CallOutcome::Done(output) => (format!("✔ {elapsed}"), Some(output)),
        CallOutcome::Failed { message, partial } => {
            (messages::tool_failed(elapsed, message), partial.as_ref())
        }
        CallOutcome::TimedOut { limit_ms, partial } => {
            (messages::tool_timed_out(&duration(*limit_ms)), partial.as_ref())
        }
        CallOutcome::Unknown { message, partial } => {
            (messages::tool_end_unknown(elapsed, message.as_deref()), partial.as_ref())
        }
        CallOutcome::Cancelled(_) => (messages::tool_stopped(elapsed), None),
        CallOutcome::NotStarted(NotStarted::InvalidArguments { message }) => {
            (messages::tool_not_started(message), None)
        }
        CallOutcome::NotStarted(NotStarted::NoViewer) => {
            (messages::tool_not_started(&messages::no_client_for_tool()), None)
        }
        other => (format!("✘ {other:?}"), None),
    };
    if let Some(ToolOutput { text, media, spilled_to, .. }) = output {
        // Also where it is read later, out of a pipe or a file; `--json` is exact.
        let text = display_escape::escape(text);
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        crate::output::text(&format!("{text}{end}"))?;
        for media in media {
            errln!("▣ {} ({} KiB)", media.media_type, media.bytes().div_ceil(1024));
        }
        if let Some(path) = spilled_to {
            errln!("{}", messages::whole_output_in(path));
        }
    }
    errln!("{}", crate::plain::for_terminal(&display_escape::escape(&summary)));
    Ok(())
}
