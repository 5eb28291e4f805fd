//! A tool run by a person instead of a model: the same registry, the same checks of arguments, the same rules of the agent,
//! the same executor. Nothing of it goes into a conversation. R: L1, A1

use crate::app::Throughline;
use crate::clock::TurnClock;
use crate::error::Error;
use serde_json::Value;
use throughline_engine::{Effect, OfferedTool, PolicyDecision, RememberedDecision, explain, suggest_names};
use throughline_tools::{AgentCallable, QuestionHandler, RunsOn, ToolInvocation, ToolToggle, ToolToggles};
use throughline_wire::{CallArguments, CallOutcome, ToolName};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Whether whoever runs the tool has said that it may change something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ManualConsent {
    /// Nothing was said.
    #[default]
    NotGiven,
    /// Said so, having seen tool and arguments.
    Given,
}

/// A tool to be run by hand.
#[derive(Clone, Debug)]
pub struct ManualCall {
    /// Whose rules hold; `None` = the application's own agent.
    pub agent: Option<String>,
    /// Who runs it.
    pub user: Option<String>,
    /// Which tool.
    pub tool: ToolName,
    /// With what.
    pub arguments: Value,
    /// Whether it may change something.
    pub consent: ManualConsent,
    /// What the user has said before, beside what always holds. R: A2
    pub remembered: Vec<RememberedDecision>,
    /// Stops it.
    pub cancel: CancellationToken,
}

/// How a tool that was run by hand ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ManualCallResult {
    /// How.
    pub outcome: CallOutcome,
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
pub enum ManualCallError {
    /// There is none of the name.
    #[error("there is no tool `{tool}`")]
    UnknownTool {
        /// The name.
        tool: String,
        /// Names that are near it.
        suggestions: Vec<String>,
    },
    /// It runs in a page or an app, which answers in turns only.
    #[error("`{tool}` runs in a connected page or app, and only in a turn")]
    RunsOnClient {
        /// The name.
        tool: String,
    },
    /// The arguments are not what its schema says.
    #[error("the arguments do not fit: {message}")]
    InvalidArguments {
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
    pub async fn run_manual_call(&self, call: ManualCall) -> Result<ManualCallResult, ManualCallError> {
        let agent = self.agent_for(call.agent.as_deref(), &call.user)?;
        let registry = self.tools_for(&call.user);
        let Some(entry) = registry.get(&call.tool) else {
            let names = registry.iter().map(|tool| tool.spec().name.as_str());
            let suggestions =
                suggest_names(call.tool.as_str(), names).into_iter().map(str::to_owned).collect();
            return Err(ManualCallError::UnknownTool { tool: call.tool.as_str().to_owned(), suggestions });
        };
        let spec = entry.spec();
        if spec.runs_on == RunsOn::Client {
            return Err(ManualCallError::RunsOnClient { tool: call.tool.as_str().to_owned() });
        }
        let arguments = CallArguments::from_value(call.arguments);
        entry
            .validate(&arguments)
            .map_err(|error| ManualCallError::InvalidArguments { message: error.to_string() })?;
        // Rules are about tools, whoever calls them; switches are about what a model is offered.
        let offered = registry.offered(&ToolToggles::new(ToolToggle::On));
        let offered =
            offered.into_iter().find(|tool| tool.name == spec.name).unwrap_or_else(|| OfferedTool {
                source: spec.source.clone(),
                permission: spec.permission,
                fingerprint: entry.fingerprint().to_string(),
                ..OfferedTool::new(spec.name.as_str(), spec.effect)
            });
        let mut remembered = self.permanent_approvals(call.user.as_deref()).await?;
        remembered.extend(call.remembered);
        let (rule, asks) = match explain(&offered, &arguments, &agent.policy(), &remembered) {
            PolicyDecision::Deny { rule, reason } => return Err(ManualCallError::Denied { rule, reason }),
            PolicyDecision::Allow { rule } => (rule, false),
            PolicyDecision::Ask { rule } => (rule, true),
        };
        let has_effect = !matches!(spec.effect, Effect::Pure | Effect::Read | Effect::Cosmetic);
        if (asks || has_effect) && call.consent == ManualConsent::NotGiven {
            return Err(ManualCallError::NeedsConsent { rule, effect: spec.effect });
        }
        let mut run = ToolInvocation::new(format!("hand_{}", Uuid::now_v7().simple()), call.tool, arguments);
        run.cancel = call.cancel;
        run.question_handler = QuestionHandler::decline_all();
        let clock = TurnClock::start();
        let started_at = clock.now();
        let outcome = self.inner.executor.run(&registry, run, |_progress| async {}).await;
        let duration_ms = clock.now().abs_diff(started_at);
        Ok(ManualCallResult { outcome, rule, started_at, duration_ms })
    }

    /// Whether models may call a tool at all, however an agent's switches stand.
    pub fn is_callable(&self, tool: &ToolName) -> bool {
        self.tools().get(tool).is_some_and(|entry| entry.spec().agent_callable == AgentCallable::Yes)
    }
}
