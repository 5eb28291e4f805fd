//! `throughline tools`: what models may call, and running a tool by hand.

mod pins;

use crate::args::{Choice, Tools, ToolsCommand};
use crate::exit::{Ended, Exit, Failure};
use crate::messages;
use crate::setup::{self, Folders};
use crate::terminal::card::duration;
use crate::terminal::text::{harmless, revealing};
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};
use throughline::config::Settings;
use throughline_engine::Effect;
use throughline_tools::{
    AgentCallable, Executor, Permission, Registered, Registry, RunsOn, Toggle, Toggles, ToolCall, Toolbox,
};
use throughline_wire::{Arguments, NotStarted, Outcome, Output, ToolName};

/// How long sources of tools are waited for.
const SOURCES_WAIT: Duration = Duration::from_secs(30);

/// Lists, shows or runs.
pub async fn run(args: &Tools) -> Ended {
    match &args.command {
        ToolsCommand::List { choice, json } => {
            let opened = Opened::new(choice).await?;
            list(&opened, *json)
        }
        ToolsCommand::Changes { json } => pins::changes(*json),
        ToolsCommand::Approve { name } => pins::approve(name),
        ToolsCommand::Show { name, choice, json } => {
            let opened = Opened::new(choice).await?;
            show(find(&opened.registry, name)?, *json)
        }
        ToolsCommand::Call { name, arguments, choice, approve, json } => {
            let opened = Opened::new(choice).await?;
            find(&opened.registry, name)?;
            let ended = call(&opened.registry, name, arguments, *approve, *json).await;
            opened.toolbox.stop().await;
            ended
        }
    }
}

/// All tools that there are, those of sources included.
struct Opened {
    settings: Settings,
    registry: Arc<Registry>,
    toolbox: Toolbox,
}

impl Opened {
    /// Waits for the sources, and says what is wrong with them.
    async fn new(choice: &Choice) -> Result<Self, Failure> {
        let settings = setup::settings(choice)?;
        let demo = settings.wants_demo() && choice.base_url.is_none();
        let tools = setup::tools(&settings, Folders::of(demo), demo || choice.demo_tools)?;
        let toolbox = Toolbox::new(tools).map_err(|error| messages::setup(&error))?;
        let (surroundings, pins) = (setup::surroundings(choice), setup::pins());
        for configured in settings.sources.sources(&surroundings, &pins).into_values() {
            toolbox.add(configured.source);
        }
        let silent = toolbox.ready(SOURCES_WAIT).await;
        setup::print_faults(&toolbox.faults());
        for source in silent {
            eprintln!("{}", messages::silent_source(&source, SOURCES_WAIT));
        }
        Ok(Self { settings, registry: toolbox.registry(), toolbox })
    }
}

fn find<'a>(registry: &'a Registry, name: &str) -> Result<&'a Arc<Registered>, Failure> {
    registry.get(&ToolName::from(name)).ok_or_else(|| {
        let names = registry.iter().map(|tool| tool.spec().name.as_str());
        messages::no_such_tool(name, &throughline_tools::closest_names(name, names))
    })
}

fn list(opened: &Opened, json: bool) -> Ended {
    let Opened { settings, registry, .. } = opened;
    let agent = settings.agents.get(&settings.agent);
    let nothing = Toggles::new(Toggle::Off);
    let toggles = match agent {
        Some(agent) if agent.tool_call.tools == Toggle::On => &agent.tool_call.toggles,
        _ => &nothing,
    };
    let offered = |tool: &Registered| {
        tool.spec().agent_callable == AgentCallable::Yes && toggles.of(&tool.spec().name) == Toggle::On
    };
    let printed = if json {
        let rows: Vec<Value> = registry.iter().map(|tool| described(tool, offered(tool))).collect();
        crate::output::json_line(&rows)
    } else {
        let mut text = String::new();
        let width = registry.iter().map(|tool| tool.spec().name.as_str().len()).max().unwrap_or(0);
        for tool in registry.iter() {
            let spec = tool.spec();
            let mark = if offered(tool) { "✔" } else { " " };
            let first_line = spec.description.lines().next().unwrap_or("");
            let (name, effect, source) = (spec.name.as_str(), effect(spec.effect), &spec.source);
            text.push_str(&format!("{mark} {name:<width$}  {effect:<10}  {source:<8}  {first_line}\n"));
        }
        text.push_str(&messages::tools_legend(&settings.agent));
        crate::output::text(&text)
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    Ok(Exit::Done)
}

fn show(tool: &Registered, json: bool) -> Ended {
    let spec = tool.spec();
    let printed = if json {
        crate::output::json_line(&described(tool, spec.agent_callable == AgentCallable::Yes))
    } else {
        let schema = serde_json::to_string_pretty(&spec.parameters).unwrap_or_default();
        let runs = if spec.runs_on == RunsOn::Client { "in a connected page or app" } else { "here" };
        crate::output::text(&format!(
            "{} ({})\n{}\n\n  effect    {}, {}\n  source    {}\n  callable  by models: {}\n  on wire   {}\n  runs      {runs}, for at most {}\n\narguments\n{schema}\n",
            spec.name,
            spec.title,
            spec.description,
            effect(spec.effect),
            if asks(tool) { "asks first" } else { "runs without asking" },
            spec.source,
            if spec.agent_callable == AgentCallable::Yes { "yes" } else { "no" },
            tool.wire_name(),
            duration(u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX)),
        ))
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    Ok(Exit::Done)
}

fn described(tool: &Registered, offered: bool) -> Value {
    let spec = tool.spec();
    json!({
        "name": spec.name, "title": spec.title, "description": spec.description, "effect": spec.effect,
        "source": spec.source, "callable": spec.agent_callable == AgentCallable::Yes, "offered": offered,
        "asks": asks(tool), "wire_name": tool.wire_name(), "timeout_ms": u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX),
        "parameters": spec.parameters,
    })
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
    let call = ToolCall::new("by_hand", name, arguments);
    let cancel = call.cancel.clone();
    let executor = Executor::default();
    let started = Instant::now();
    let progress = |progress: throughline_engine::Progress| async move {
        if let Some(message) = &progress.message {
            eprintln!("… {}", harmless(message));
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
    eprint!("{}", messages::question(words, name, &crate::plain::for_terminal(&revealing(&shown))));
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
        let terminal = io::stdout().is_terminal();
        let text = if terminal { crate::plain::for_terminal(text) } else { text.clone() };
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        crate::output::text(&format!("{text}{end}"))?;
        for media in media {
            eprintln!("▣ {} ({} KiB)", media.media_type, (media.data.len() / 4 * 3).div_ceil(1024));
        }
        if let Some(path) = spilled_to {
            eprintln!("the whole output is in {path}");
        }
    }
    eprintln!("{}", crate::plain::for_terminal(&said));
    Ok(())
}
