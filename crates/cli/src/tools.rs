//! `throughline tools`: what models may call, and running a tool by hand.

mod pins;
mod prompt;
mod remembered;

use crate::args::{Choice, Tools, ToolsCommand};
use crate::exit::{Ended, Exit, Failure};
use crate::messages;
use crate::setup;
use crate::terminal::card::duration;
use crate::terminal::text::harmless;
use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::time::Instant;
use throughline::described::ToolDescription;
use throughline_engine::Effect;
use throughline_tools::{
    AgentCallable, Executor, Found, Permission, Registered, Registry, RunsOn, ToolCall, Verdict, Withheld,
};
use throughline_wire::visible;
use throughline_wire::{Arguments, NotStarted, Outcome, Output, ToolName};

/// Lists, shows or runs.
pub async fn run(args: &Tools) -> Ended {
    match &args.command {
        ToolsCommand::List { choice, json } => list(choice, *json).await,
        ToolsCommand::Prompt { choice, protocol, json } => {
            prompt::run(choice, protocol.as_deref(), *json).await
        }
        ToolsCommand::Remembered { forget, json } => remembered::run(*forget, *json),
        ToolsCommand::Changes { json } => pins::changes(*json),
        ToolsCommand::Approve { name } => pins::approve(name),
        ToolsCommand::Show { name, choice, json } => {
            let tools = setup::Tools::open(choice, &setup::settings(choice)?).await?;
            let ended = show(find(&tools.registry(), name)?, *json);
            tools.close().await;
            ended
        }
        ToolsCommand::Call { name, arguments, choice, approve, json } => {
            let tools = setup::Tools::open(choice, &setup::settings(choice)?).await?;
            let registry = tools.registry();
            find(&registry, name)?;
            let ended = call(&registry, name, arguments, *approve, *json).await;
            tools.close().await;
            ended
        }
    }
}

fn find<'a>(registry: &'a Registry, name: &str) -> Result<&'a Arc<Registered>, Failure> {
    registry.get(&ToolName::from(name)).ok_or_else(|| {
        let names = registry.iter().map(|tool| tool.spec().name.as_str());
        messages::no_such_tool(name, &throughline_engine::closest_names(name, names))
    })
}

async fn list(choice: &Choice, json: bool) -> Ended {
    let settings = setup::settings(choice)?;
    let tools = setup::Tools::open(choice, &settings).await?;
    let registry = tools.registry();
    let agent = settings.agents.get(&settings.agent).ok_or_else(messages::no_agent)?;
    let offer =
        agent.offer(&registry, &settings.user, None, None).map_err(|error| messages::setup(&error))?;
    let printed = if json {
        let rows: Vec<ToolDescription> =
            offer.found.iter().map(|found| ToolDescription::new(&found.tool, &found.verdict)).collect();
        crate::output::json_line(&rows)
    } else {
        let mut text = String::new();
        let width = registry.iter().map(|tool| tool.spec().name.as_str().len()).max().unwrap_or(0);
        for Found { tool, verdict } in &offer.found {
            let spec = tool.spec();
            let (mark, says) = match verdict {
                Verdict::Offered => ("✔", spec.description.lines().next().unwrap_or("").to_owned()),
                Verdict::Withheld(why) => (" ", messages::withheld(why)),
            };
            let (name, effect, source) = (spec.name.as_str(), effect(spec.effect), &spec.source);
            text.push_str(&format!(
                "{mark} {name:<width$}  {effect:<10}  {source:<8}  {}\n",
                harmless(&visible::escape(&says))
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
        eprintln!("{}", harmless(&messages::unmatched_rule(&agent.name, &rule)));
    }
    tools.close().await;
    Ok(Exit::Done)
}

fn show(tool: &Registered, json: bool) -> Ended {
    let spec = tool.spec();
    let printed = if json {
        crate::output::json_line(&ToolDescription::new(tool, &callable(tool)))
    } else {
        let schema = serde_json::to_string_pretty(&spec.parameters).unwrap_or_default();
        let runs = if spec.runs_on == RunsOn::Client { "in a connected page or app" } else { "here" };
        crate::output::text(&format!(
            "{} ({})\n{}\n\n  effect    {}, {}\n  source    {}\n  callable  by models: {}\n  on wire   {}\n  runs      {runs}, for at most {}\n\narguments\n{}\n",
            spec.name,
            visible::escape(&spec.title),
            visible::escape(&spec.description),
            effect(spec.effect),
            if asks(tool) { "asks first" } else { "runs without asking" },
            spec.source,
            if spec.agent_callable == AgentCallable::Yes { "yes" } else { "no" },
            tool.wire_name(),
            duration(u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX)),
            visible::escape(&schema),
        ))
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    Ok(Exit::Done)
}

/// Of one tool alone: whether models may call it at all.
fn callable(tool: &Registered) -> Verdict {
    match tool.spec().agent_callable {
        AgentCallable::Yes => Verdict::Offered,
        AgentCallable::No => Verdict::Withheld(Withheld::NotCallable),
    }
}

/// The fixed rule: what changes nothing runs, the rest asks.
fn asks(tool: &Registered) -> bool {
    let spec = tool.spec();
    spec.permission == Permission::Ask
        || !matches!(spec.effect, Effect::Pure | Effect::Read | Effect::Cosmetic)
}

fn effect(effect: Effect) -> String {
    format!("{effect:?}").to_lowercase()
}

async fn call(registry: &Registry, name: &str, arguments: &str, approve: bool, json: bool) -> Ended {
    let tool = find(registry, name)?;
    let arguments = read_arguments(arguments)?;
    tool.validate(&arguments).map_err(|error| messages::arguments_refused(name, &error.to_string()))?;
    if asks(tool) && !approve && !allowed_by_person(name, &arguments)? {
        return Ok(Exit::ToolFailed);
    }
    let mut wishes = crate::interrupt::wishes().map_err(|error| messages::no_signals(&error))?;
    let mut call = ToolCall::new("by_hand", name, arguments);
    call.asker = crate::asking::by_hand(tool.spec(), messages::Words(messages::Lang::of_environment()));
    let cancel = call.cancel.clone();
    let executor = Executor::default();
    let started = Instant::now();
    let progress = |progress: throughline_engine::Progress| async move {
        if let Some(message) = &progress.message {
            eprintln!("… {}", harmless(&visible::escape(message)));
        }
    };
    let mut running = std::pin::pin!(executor.run(registry, call, progress));
    let outcome = loop {
        tokio::select! {
            outcome = &mut running => break outcome,
            wish = wishes.recv() => {
                if wish.is_none() || cancel.is_cancelled() {
                    return Ok(Exit::Cancelled);
                }
                cancel.cancel();
            }
        }
    };
    let took = duration(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
    print_outcome(&outcome, &took, json).map_err(|error| messages::output_failed(&error))?;
    Ok(match outcome {
        Outcome::Done(_) => Exit::Done,
        Outcome::Cancelled(_) => Exit::Cancelled,
        _ => Exit::ToolFailed,
    })
}

fn read_arguments(text: &str) -> Result<Arguments, Failure> {
    let text = if text == "-" {
        let mut read = String::new();
        io::stdin().read_to_string(&mut read).map_err(|error| messages::input_failed(&error))?;
        read
    } else {
        text.to_owned()
    };
    let value = serde_json::from_str(&text).map_err(|error| messages::arguments_not_json(&error))?;
    // The text, not the value made of it: digits beyond 64 bits are the tool's to read.
    Ok(Arguments { text, value, repairs: Vec::new() })
}

/// Shows everything that would run and waits for a `y`.
fn allowed_by_person(name: &str, arguments: &Arguments) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(messages::tool_needs_approval(name));
    }
    let shown = serde_json::to_string_pretty(&arguments.value).unwrap_or_else(|_| arguments.text.clone());
    let words = messages::Words(messages::Lang::of_environment());
    eprint!("{}", messages::question(words, name, &crate::plain::for_terminal(&visible::escape(&shown))));
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|error| messages::input_failed(&error))?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn print_outcome(outcome: &Outcome, took: &str, json: bool) -> io::Result<()> {
    if json {
        return crate::output::json_line(outcome);
    }
    let (said, output) = match outcome {
        Outcome::Done(output) => (format!("✔ {took}"), Some(output)),
        Outcome::Failed { message, partial } => {
            (format!("✘ failed after {took}: {message}"), partial.as_ref())
        }
        Outcome::TimedOut { limit_ms, partial } => {
            (format!("✘ stopped at its limit of {}", duration(*limit_ms)), partial.as_ref())
        }
        Outcome::Cancelled(_) => (format!("⊘ stopped after {took}"), None),
        Outcome::NotStarted(NotStarted::InvalidArguments { message }) => {
            (format!("○ not started: {message}"), None)
        }
        Outcome::NotStarted(NotStarted::NoViewer) => {
            ("○ not started: no page or app is connected that could run it".to_owned(), None)
        }
        other => (format!("✘ {other:?}"), None),
    };
    if let Some(Output { text, media, spilled_to, .. }) = output {
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
    eprintln!("{}", crate::plain::for_terminal(&visible::escape(&said)));
    Ok(())
}
