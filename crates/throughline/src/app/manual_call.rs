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
    /// The user consented after seeing tool and arguments.
    Given,
}

/// A tool call made by a person.
#[derive(Clone, Debug)]
pub struct ManualCall {
    /// Agent whose rules apply; `None` = the application's default agent.
    pub agent: Option<String>,
    /// User who runs the tool.
    pub user: Option<String>,
    /// The tool.
    pub tool: ToolName,
    /// Arguments of the call.
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
    /// Rule that allowed the call, or that required the consent.
    pub rule: String,
    /// Time of the start, in milliseconds since 1970.
    pub started_at: i64,
    /// Duration of the call, in milliseconds.
    pub duration_ms: u64,
}

/// Reasons why a tool was not run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ManualCallError {
    /// No tool has this name.
    #[error("there is no tool `{tool}`")]
    UnknownTool {
        /// The name.
        tool: String,
        /// Names that are near it.
        suggestions: Vec<String>,
    },
    /// The tool runs on a client, which answers only calls of turns.
    #[error("`{tool}` runs in a connected page or app, and only during a turn")]
    RunsOnClient {
        /// The name.
        tool: String,
    },
    /// The arguments do not fit the tool's schema.
    #[error("invalid arguments: {message}")]
    InvalidArguments {
        /// The fields at fault and the reason.
        message: String,
    },
    /// A rule denies the call; consent does not override it.
    #[error("the call is not allowed: {reason}")]
    Denied {
        /// The rule.
        rule: String,
        /// Reason of the rule.
        reason: String,
    },
    /// A rule requires approval, and consent was not given.
    #[error("`{rule}` requires approval, and consent was not given")]
    NeedsConsent {
        /// Rule that requires approval.
        rule: String,
        /// Effect of the tool.
        effect: Effect,
    },
    /// No rule requires approval, but the tool has side effects and consent was not given: rules that allow
    /// apply to models.
    #[error(
        "`{allowed_by}` allows it to models, but it may have side effects: a manual call needs explicit consent"
    )]
    EffectNeedsConsent {
        /// The rule that allows it.
        allowed_by: String,
        /// Effect of the tool.
        effect: Effect,
    },
    /// The agent or the remembered decisions cannot be read.
    #[error(transparent)]
    App(#[from] Error),
}

impl Throughline {
    /// Runs a tool to its end or until `cancel` fires. Elicitations of the tool are declined, because no user
    /// can answer them here. Dropping the future aborts the tool.
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
        // Rules are about tools, regardless of the caller; toggles only restrict the tools that a model is
        // offered.
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
