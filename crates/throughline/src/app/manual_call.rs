//! A tool run by a person instead of a model: with the same registry, argument checks, rules and executor as an
//! agent's call. Nothing of it becomes part of a conversation.

use super::Throughline;
use crate::clock::TurnClock;
use crate::error::Error;
use serde_json::Value;
use throughline_engine::{Effect, PolicyDecision, RememberedDecision, explain, suggest_names};
use throughline_tools::{AgentCallable, QuestionHandler, RunsOn, ToolInvocation};
use throughline_wire::{CallArguments, CallOutcome, ToolName};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The person's consent to side effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ManualConsent {
    /// No consent was given.
    #[default]
    NotGiven,
    /// Said so, having seen tool and arguments.
    Given,
}

/// A tool to be run by hand.
#[derive(Clone, Debug)]
pub struct ManualCall {
    /// The agent whose rules apply; `None` = the application's default agent.
    pub agent: Option<String>,
    /// The user who runs it.
    pub user: Option<String>,
    /// The tool.
    pub tool: ToolName,
    /// With what.
    pub arguments: Value,
    /// Consent to side effects.
    pub consent: ManualConsent,
    /// The user's remembered decisions, in addition to the permanent ones.
    pub remembered: Vec<RememberedDecision>,
    /// Stops it.
    pub cancel: CancellationToken,
}

/// Result of a tool that a person ran.
#[derive(Clone, Debug, PartialEq)]
pub struct ManualCallResult {
    /// Outcome of the call.
    pub outcome: CallOutcome,
    /// The rule that let it run, or that asked for the consent.
    pub rule: String,
    /// Time of the start, in milliseconds since 1970.
    pub started_at: i64,
    /// For how long, in milliseconds.
    pub duration_ms: u64,
}

/// Reasons why a tool was not run.
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
        /// The fields at fault and the reason.
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
    /// A rule asks for approval, and consent was not given.
    #[error("`{rule}` asks before it runs, and consent was not given")]
    NeedsConsent {
        /// The rule that asks.
        rule: String,
        /// Its effect.
        effect: Effect,
    },
    /// No rule asks, but it has side effects, and consent was not given: rules allow calls to models.
    #[error(
        "`{allowed_by}` allows it to models, but it may change something: a call by hand needs consent of its own"
    )]
    EffectNeedsConsent {
        /// The rule that allows it.
        allowed_by: String,
        /// Its effect.
        effect: Effect,
    },
    /// The agent or the remembered decisions cannot be read.
    #[error(transparent)]
    App(#[from] Error),
}

impl Throughline {
    /// Runs a tool to its end or until `cancel` fires. Questions that the tool itself asks are declined, because
    /// nobody is there to answer. Dropping the future aborts the tool.
    ///
    /// # Errors
    /// The tool was not run. Everything that happens once it runs is an outcome.
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
        let mut remembered = self.permanent_approvals(call.user.as_deref()).await?;
        remembered.extend(call.remembered);
        // Rules are about tools, whoever calls them; switches are about what a model is offered.
        let (rule, asks) = match explain(&entry.to_offered(None), &arguments, &agent.policy(), &remembered) {
            PolicyDecision::Deny { rule, reason } => return Err(ManualCallError::Denied { rule, reason }),
            PolicyDecision::Allow { rule } => (rule, false),
            PolicyDecision::Ask { rule } => (rule, true),
        };
        let has_effect = spec.effect.has_effects();
        if call.consent == ManualConsent::NotGiven {
            let effect = spec.effect;
            if asks {
                return Err(ManualCallError::NeedsConsent { rule, effect });
            }
            if has_effect {
                return Err(ManualCallError::EffectNeedsConsent { allowed_by: rule, effect });
            }
        }
        let mut run = ToolInvocation::new(format!("hand_{}", Uuid::now_v7().simple()), call.tool, arguments);
        run.output_bytes_max = Some(agent.limits.over(self.plan().limits).output_bytes_max);
        run.cancel = call.cancel;
        run.question_handler = QuestionHandler::decline_all();
        let clock = TurnClock::start();
        let started_at = clock.now();
        let outcome = self.inner.executor.run(&registry, run, |_progress| async {}).await;
        let duration_ms = clock.now().abs_diff(started_at);
        Ok(ManualCallResult { outcome, rule, started_at, duration_ms })
    }

    /// True if models may call a tool at all, independent of an agent's toggles.
    pub fn is_callable(&self, tool: &ToolName) -> bool {
        self.tools().get(tool).is_some_and(|entry| entry.spec().agent_callable == AgentCallable::Yes)
    }
}
