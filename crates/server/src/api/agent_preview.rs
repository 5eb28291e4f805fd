//! Preview of agent settings before they are saved: the prompt, the offered tools, and the outlook of one call. Stores
//! nothing and runs nothing. // R: U4, X5, A1

use super::agents::{AgentSettings, find_agent, invalid_agent};
use super::tools::{load_remembered, no_arguments, tool_list};
use super::view::{PROMPT_MODES, PromptPreview, ToolList};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path};
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use crate::user_agents::SETTINGS_FIELD;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline::Error;
use throughline::inspect::{self, InspectionContext};
use throughline::views::{PredictionDescription, PromptDescription};
use throughline_wire::ToolName;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/agents/{agent}/preview`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(preview))
}

/// Settings that are not saved.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewAgent {
    /// Settings of the agent to preview.
    #[schema(value_type = AgentSettings)]
    pub settings: Value,
    /// A call, to see what would become of it.
    #[serde(default)]
    pub call: Option<ExampleCall>,
}

/// A hypothetical call.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExampleCall {
    /// `group.method`.
    #[schema(example = "files.read")]
    pub tool: String,
    /// Arguments of the call.
    #[serde(default = "no_arguments")]
    #[schema(value_type = Object)]
    pub arguments: Value,
}

/// Preview of agent settings.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AgentPreview {
    /// As they would be saved: defaults included.
    #[schema(value_type = AgentSettings)]
    pub settings: Value,
    /// The prompt in each mode: native, and every text protocol.
    pub prompts: Vec<PromptPreview>,
    /// The tools as the agent would find them.
    pub tools: ToolList,
    /// Outlook of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallOutlook>,
}

/// Expected handling of a call.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallOutlook {
    /// `runs`, `asks`, `denied` or `not_started`.
    #[schema(example = "asks")]
    pub outlook: &'static str,
    /// The rule that decides: `rule:2 allow files.*` is the second of the policy.
    #[schema(example = "rule:2 allow files.*")]
    pub rule: Option<String>,
    /// Reason why it would not run.
    pub why: Option<String>,
}

/// Preview agent settings, checked as if they were saved.
///
/// Nothing is saved, and nothing runs. The rules are those of a turn, including your remembered approvals.
#[utoipa::path(post, path = "/v1/agents/{agent}/preview", tag = "agents",
    params(("agent" = String, Path, description = "Name")), request_body = PreviewAgent, responses(
    (status = 200, description = "The preview", body = AgentPreview),
    (status = 400, description = "Invalid settings; `param` names the field", body = ErrorResponse),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
    (status = 404, description = "Agent not found", body = ErrorResponse),
    (status = 409, description = "A remembered approval cannot be read: `number` names it", body = ErrorResponse),
))]
async fn preview(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
    Json(body): Json<PreviewAgent>,
) -> Result<axum::Json<AgentPreview>, ApiError> {
    principal.require(KeyScope::Admin)?;
    find_agent(&state, &principal, &name).await?;
    let agent = state.app.parse_agent(&name, &body.settings).map_err(invalid_agent)?;
    let remembered = load_remembered(&state, &principal).await?;
    let user = Some(principal.user);
    let own = state.app.select_tools_for_agent(&agent, &user, None, None).map_err(prompt_error)?;
    let mut prompts = Vec::with_capacity(PROMPT_MODES.len());
    for (mode, protocol) in PROMPT_MODES {
        let offer =
            state.app.select_tools_for_agent(&agent, &user, Some(mode), protocol).map_err(prompt_error)?;
        prompts.push(PromptDescription::from(&offer).into());
    }
    let registry = state.app.tools_for(&user);
    let asked =
        InspectionContext { agent: &agent, registry: &registry, selection: &own, remembered: &remembered };
    let call = body.call.map(|call| {
        let outlook = inspect::predict_call(&ToolName::from(call.tool.as_str()), call.arguments, asked);
        let PredictionDescription { outlook, rule, why } = PredictionDescription::from(&outlook);
        CallOutlook { outlook, rule, why }
    });
    Ok(axum::Json(AgentPreview {
        settings: agent.to_settings(),
        prompts,
        tools: tool_list(&state.app, &user, &agent, &own),
        call,
    }))
}

/// A prompt that is well written and still cannot be rendered is a mistake at that field.
fn prompt_error(error: Error) -> ApiError {
    let is_prompt = matches!(error, Error::Prompt(_));
    let refused = ApiError::from(error);
    if is_prompt { refused.param(format!("{SETTINGS_FIELD}.prompt")) } else { refused }
}
