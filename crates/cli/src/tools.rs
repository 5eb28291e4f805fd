//! `throughline tools`: what models may call, and running a tool by hand.

mod pins;
mod prompt;
mod remembered;

use crate::args::{ModelArgs, ToolsArgs, ToolsCommand};
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages;
use crate::setup;
use crate::terminal::card::duration;
use crate::terminal::text::escape_controls;
use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::time::Instant;
use throughline::views::ToolDescription;
use throughline_engine::Effect;
use throughline_tools::{
    AgentCallable, DiscoveredTool, PermissionRule, RegisteredTool, RunsOn, ToolAvailability, ToolExecutor,
    ToolInvocation, ToolRegistry, WithheldReason,
};
use throughline_wire::visible;
use throughline_wire::{CallArguments, CallOutcome, NotStarted, ToolName, ToolOutput};

/// Lists, shows or runs.
pub(crate) async fn run(args: &ToolsArgs) -> CommandResult {
    match &args.command {
        ToolsCommand::List { choice, json } => list_tools(choice, *json).await,
        ToolsCommand::Prompt { choice, protocol, json } => {
            prompt::run(choice, protocol.as_deref(), *json).await
        }
        ToolsCommand::Remembered { forget, json } => remembered::run(*forget, *json),
        ToolsCommand::Changes { json } => pins::changes(*json),
        ToolsCommand::Approve { name } => pins::approve(name),
        ToolsCommand::Show { name, choice, json } => {
            let tools = setup::ToolSources::open(choice, &setup::load_settings(choice)?).await?;
            let ended = show_tool(find_tool(&tools.registry(), name)?, *json);
            tools.close().await;
            ended
        }
        ToolsCommand::Call { name, arguments, choice, approve, json } => {
            let tools = setup::ToolSources::open(choice, &setup::load_settings(choice)?).await?;
            let registry = tools.registry();
            find_tool(&registry, name)?;
            let ended = call_tool(&registry, name, arguments, *approve, *json).await;
            tools.close().await;
            ended
        }
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
    let tools = setup::ToolSources::open(choice, &settings).await?;
    let registry = tools.registry();
    let agent = settings.agents.get(&settings.agent).ok_or_else(messages::no_agent)?;
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
        for DiscoveredTool { tool, availability: verdict } in &offer.discovered {
            let spec = tool.spec();
            let (mark, note) = match verdict {
                ToolAvailability::Offered => ("✔", spec.description.lines().next().unwrap_or("").to_owned()),
                ToolAvailability::Withheld(why) => (" ", messages::withheld(why)),
            };
            let (name, effect, source) = (spec.name.as_str(), effect_name(spec.effect), &spec.source);
            text.push_str(&format!(
                "{mark} {name:<width$}  {effect:<10}  {source:<8}  {}\n",
                escape_controls(&visible::escape(&note))
            ));
        }
        text.push_str(&messages::tools_legend(&settings.agent));
        crate::output::text(&text)
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    for name in registry.unknown_toggles(&agent.tool_call.toggles) {
        eprintln!("{}", messages::unknown_toggle(&agent.name, name));
    }
    for rule in tools.unmatched_rules(&agent.policy) {
        eprintln!("{}", escape_controls(&messages::unmatched_rule(&agent.name, &rule)));
    }
    tools.close().await;
    Ok(CliExit::Done)
}

fn show_tool(tool: &RegisteredTool, json: bool) -> CommandResult {
    let spec = tool.spec();
    let printed = if json {
        crate::output::json_line(&ToolDescription::new(tool, &callable_verdict(tool)))
    } else {
        let schema = serde_json::to_string_pretty(&spec.parameters).unwrap_or_default();
        let runs = if spec.runs_on == RunsOn::Client { "in a connected page or app" } else { "here" };
        crate::output::text(&format!(
            "{} ({})\n{}\n\n  effect    {}, {}\n  source    {}\n  callable  by models: {}\n  on wire   {}\n  runs      {runs}, for at most {}\n\narguments\n{}\n",
            spec.name,
            visible::escape(&spec.title),
            visible::escape(&spec.description),
            effect_name(spec.effect),
            if needs_approval(tool) { "asks first" } else { "runs without asking" },
            spec.source,
            if spec.agent_callable == AgentCallable::Yes { "yes" } else { "no" },
            tool.wire_name(),
            duration(u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX)),
            visible::escape(&schema),
        ))
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

/// Of one tool alone: whether models may call it at all.
fn callable_verdict(tool: &RegisteredTool) -> ToolAvailability {
    match tool.spec().agent_callable {
        AgentCallable::Yes => ToolAvailability::Offered,
        AgentCallable::No => ToolAvailability::Withheld(WithheldReason::NotCallable),
    }
}

/// The fixed rule: what changes nothing runs, the rest asks.
fn needs_approval(tool: &RegisteredTool) -> bool {
    let spec = tool.spec();
    spec.permission == PermissionRule::Ask
        || !matches!(spec.effect, Effect::Pure | Effect::Read | Effect::Cosmetic)
}

fn effect_name(effect: Effect) -> String {
    format!("{effect:?}").to_lowercase()
}

async fn call_tool(
    registry: &ToolRegistry,
    name: &str,
    arguments: &str,
    approve: bool,
    json: bool,
) -> CommandResult {
    let tool = find_tool(registry, name)?;
    let arguments = read_arguments(arguments)?;
    tool.validate(&arguments).map_err(|error| messages::arguments_refused(name, &error.to_string()))?;
    if needs_approval(tool) && !approve && !allowed_by_person(name, &arguments)? {
        return Ok(CliExit::ToolFailed);
    }
    let mut stop_signals = crate::interrupt::stop_signals().map_err(|error| messages::no_signals(&error))?;
    let mut call = ToolInvocation::new("by_hand", name, arguments);
    call.question_handler = crate::line_prompts::manual_asker(
        tool.spec(),
        messages::UiText(messages::UiLanguage::of_environment()),
    );
    let cancel = call.cancel.clone();
    let executor = ToolExecutor::default();
    let started = Instant::now();
    let progress = |progress: throughline_engine::CallProgress| async move {
        if let Some(message) = &progress.message {
            eprintln!("… {}", escape_controls(&visible::escape(message)));
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
    let words = messages::UiText(messages::UiLanguage::of_environment());
    eprint!(
        "{}",
        messages::approval_prompt(words, name, &crate::plain::for_terminal(&visible::escape(&shown)))
    );
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|error| messages::input_failed(&error))?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn print_outcome(outcome: &CallOutcome, elapsed: &str, json: bool) -> io::Result<()> {
    if json {
        return crate::output::json_line(outcome);
    }
    let (summary, output) = match outcome {
        CallOutcome::Done(output) => (format!("✔ {elapsed}"), Some(output)),
        CallOutcome::Failed { message, partial } => {
            (format!("✘ failed after {elapsed}: {message}"), partial.as_ref())
        }
        CallOutcome::TimedOut { limit_ms, partial } => {
            (format!("✘ stopped at its limit of {}", duration(*limit_ms)), partial.as_ref())
        }
        CallOutcome::Cancelled(_) => (format!("⊘ stopped after {elapsed}"), None),
        CallOutcome::NotStarted(NotStarted::InvalidArguments { message }) => {
            (format!("○ not started: {message}"), None)
        }
        CallOutcome::NotStarted(NotStarted::NoViewer) => {
            ("○ not started: no connected page or app can run it".to_owned(), None)
        }
        other => (format!("✘ {other:?}"), None),
    };
    if let Some(ToolOutput { text, media, spilled_to, .. }) = output {
        // Also where it is read later, out of a pipe or a file; `--json` is exact.
        let text = visible::escape(text);
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        crate::output::text(&format!("{text}{end}"))?;
        for media in media {
            eprintln!("▣ {} ({} KiB)", media.media_type, media.bytes().div_ceil(1024));
        }
        if let Some(path) = spilled_to {
            eprintln!("the whole output is in {path}");
        }
    }
    eprintln!("{}", crate::plain::for_terminal(&visible::escape(&summary)));
    Ok(())
}
