//! A tool run by a person instead of a model: the same registry, the same checks of arguments, the same rules of the agent,
//! the same executor. Nothing of it goes into a conversation. R: L1, A1

use crate::app::Throughline;
use crate::clock::Clock;
use crate::error::Error;
use serde_json::Value;
use throughline_engine::{Effect, OfferedTool, Remembered, Ruling, closest_names, explain};
use throughline_tools::{AgentCallable, Asker, RunsOn, Toggle, Toggles, ToolCall};
use throughline_wire::{Arguments, Outcome, ToolName};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Whether whoever runs the tool has said that it may change something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consent {
    /// Nothing was said.
    #[default]
    NotGiven,
    /// Said so, having seen tool and arguments.
    Given,
}

/// A tool to be run by hand.
#[derive(Clone, Debug)]
pub struct HandCall {
    /// Whose rules hold; `None` = the application's own agent.
    pub agent: Option<String>,
    /// Who runs it.
    pub user: Option<String>,
    /// Which tool.
    pub tool: ToolName,
    /// With what.
    pub arguments: Value,
    /// Whether it may change something.
    pub consent: Consent,
    /// What the user has said before, beside what always holds. R: A2
    pub remembered: Vec<Remembered>,
    /// Stops it.
    pub cancel: CancellationToken,
}

/// How a tool that was run by hand ended.
#[derive(Clone, Debug, PartialEq)]
pub struct HandCalled {
    /// How.
    pub outcome: Outcome,
    /// The rule that let it run, or that asked for the consent.
    pub rule: String,
    /// When, in milliseconds since 1970.
    pub started_at: i64,
    /// For how long, in milliseconds.
    pub duration_ms: u64,
}

/// Why a tool was not run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HandRefused {
    /// There is none of the name.
    #[error("there is no tool `{tool}`")]
    UnknownTool {
        /// The name.
        tool: String,
        /// Names that are near it.
        closest: Vec<String>,
    },
    /// It runs in a page or an app, which answers in turns only.
    #[error("`{tool}` runs in a connected page or app, and only in a turn")]
    RunsElsewhere {
        /// The name.
        tool: String,
    },
    /// The arguments are not what its schema says.
    #[error("the arguments do not fit: {message}")]
    DoNotFit {
        /// Where, and why.
        message: String,
    },
    /// A rule says no, and no consent can change that.
    #[error("it may not run: {reason}")]
    Denied {
        /// The rule.
        rule: String,
        /// Its reason.
        reason: String,
    },
    /// It may change something, or a rule asks, and nobody has said yes.
    #[error("it may change something, and nobody has agreed to that")]
    NeedsConsent {
        /// The rule that asks.
        rule: String,
        /// What it may do.
        effect: Effect,
    },
    /// The agent, or what was said before, cannot be read.
    #[error(transparent)]
    App(#[from] Error),
}

impl Throughline {
    /// Runs a tool by hand, to its end or until `cancel` fires. Questions that the tool itself asks are declined: there is
    /// nobody to put them to. Dropping the future aborts the tool.
    ///
    /// # Errors
    /// It was not run. Whatever happens once it runs is an outcome.
    pub async fn run_by_hand(&self, call: HandCall) -> Result<HandCalled, HandRefused> {
        let agent = self.agent_for(call.agent.as_deref(), &call.user)?;
        let registry = self.tools_of(&call.user);
        let Some(entry) = registry.get(&call.tool) else {
            let names = registry.iter().map(|tool| tool.spec().name.as_str());
            let closest = closest_names(call.tool.as_str(), names).into_iter().map(str::to_owned).collect();
            return Err(HandRefused::UnknownTool { tool: call.tool.as_str().to_owned(), closest });
        };
        let spec = entry.spec();
        if spec.runs_on == RunsOn::Client {
            return Err(HandRefused::RunsElsewhere { tool: call.tool.as_str().to_owned() });
        }
        let arguments = Arguments::from_value(call.arguments);
        entry.validate(&arguments).map_err(|error| HandRefused::DoNotFit { message: error.to_string() })?;
        // Rules are about tools, whoever calls them; switches are about what a model is offered.
        let offered = registry.offered(&Toggles::new(Toggle::On));
        let offered =
            offered.into_iter().find(|tool| tool.name == spec.name).unwrap_or_else(|| OfferedTool {
                source: spec.source.clone(),
                permission: spec.permission,
                fingerprint: entry.fingerprint().to_string(),
                ..OfferedTool::new(spec.name.as_str(), spec.effect)
            });
        let mut remembered = self.always_holds(call.user.as_deref()).await?;
        remembered.extend(call.remembered);
        let (rule, asks) = match explain(&offered, &arguments, &agent.policy(), &remembered) {
            Ruling::Deny { rule, reason } => return Err(HandRefused::Denied { rule, reason }),
            Ruling::Allow { rule } => (rule, false),
            Ruling::Ask { rule } => (rule, true),
        };
        let changes = !matches!(spec.effect, Effect::Pure | Effect::Read | Effect::Cosmetic);
        if (asks || changes) && call.consent == Consent::NotGiven {
            return Err(HandRefused::NeedsConsent { rule, effect: spec.effect });
        }
        let mut run = ToolCall::new(format!("hand_{}", Uuid::now_v7().simple()), call.tool, arguments);
        run.cancel = call.cancel;
        run.asker = Asker::nobody();
        let clock = Clock::start();
        let started_at = clock.now();
        let outcome = self.inner.executor.run(&registry, run, |_progress| async {}).await;
        let duration_ms = clock.now().abs_diff(started_at);
        Ok(HandCalled { outcome, rule, started_at, duration_ms })
    }

    /// Whether models may call a tool at all, however an agent's switches stand.
    pub fn is_callable(&self, tool: &ToolName) -> bool {
        self.tools().get(tool).is_some_and(|entry| entry.spec().agent_callable == AgentCallable::Yes)
    }
}
