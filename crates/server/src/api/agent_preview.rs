//! Preview of agent settings before they are saved: the prompt, the offered tools, and the outlook of one call. Stores
//! nothing and runs nothing.

use super::agents::{AgentSettings, find_agent, invalid_agent};
use super::tools::{load_remembered, no_arguments, tool_list};
use super::view::{PROMPT_MODES, ToolList};
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
use throughline_engine::{TextRule, TextRuleRole, TextRuleTarget, apply_text_rules};
use throughline_wire::ToolName;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/agents/{agent}/preview`.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(preview))
}

/// Settings that are not saved.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PreviewAgent {
    /// Settings of the agent to preview.
    #[schema(value_type = AgentSettings)]
    pub settings: Value,
    /// A call, to see what would become of it.
    #[serde(default)]
    pub call: Option<ExampleCall>,
    /// A text, to see what the agent's text rules make of it.
    #[serde(default)]
    pub text: Option<ExampleText>,
}

/// Maximum length of a preview's text, in bytes: a page of many answers, computed without noticeable delay.
const PREVIEW_TEXT_BYTES_MAX: usize = 64 << 10;

/// A hypothetical text.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExampleText {
    /// `assistant`, `user` or `tool`.
    #[schema(value_type = String, example = "assistant")]
    pub role: TextRuleRole,
    /// The text, at most 64 KiB.
    pub text: String,
}

/// A hypothetical call.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExampleCall {
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
pub(super) struct AgentPreview {
    /// As they would be saved: defaults included.
    #[schema(value_type = AgentSettings)]
    pub settings: Value,
    /// The prompt in each mode: native, and every text protocol.
    pub prompts: Vec<PromptDescription>,
    /// The tools as the agent would find them.
    pub tools: ToolList,
    /// Outlook of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<PredictionDescription>,
    /// The text after the agent's text rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<TextPreview>,
}

/// A text after text rules.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct TextPreview {
    /// Text that people are shown.
    pub shown: String,
    /// Text that the model is told.
    pub model: String,
    /// The rules that are about texts of this role, in their order.
    pub rules: Vec<TextRuleMatches>,
}

/// Matches of one text rule.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct TextRuleMatches {
    /// Position in `text_rules`, from 0.
    pub index: usize,
    /// Its name, or its pattern.
    pub label: String,
    /// `shown` or `model`.
    #[schema(value_type = String, example = "shown")]
    pub r#in: TextRuleTarget,
    /// Number of matches, after the rules before it.
    pub matches: u32,
}

/// Preview agent settings, checked as if they were saved.
///
/// Nothing is saved, and nothing runs. The rules are those of a turn, including your remembered approvals.
#[utoipa::path(post, path = "/v1/agents/{agent}/preview", tag = "agents",
    params(("agent" = String, Path, description = "Name")), request_body = PreviewAgent, responses(
    (status = 200, description = "The preview", body = AgentPreview),
    (status = 400, description = "Invalid settings; `param` names the field", body = ErrorResponse),
    (status = 403, description = "The key lacks the scope `agents`", body = ErrorResponse),
    (status = 404, description = "Agent not found", body = ErrorResponse),
    (status = 409, description = "A remembered approval cannot be read: `number` names it", body = ErrorResponse),
))]
async fn preview(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
    Json(body): Json<PreviewAgent>,
) -> Result<axum::Json<AgentPreview>, ApiError> {
    principal.require(KeyScope::Agents)?;
    find_agent(&state, &principal, &name).await?;
    let agent = state.app.parse_agent(&name, &body.settings).map_err(invalid_agent)?;
    let remembered = load_remembered(&state, &principal).await?;
    let user = Some(principal.user);
    let own = state.app.select_tools_for_agent(&agent, &user, None, None).map_err(prompt_error)?;
    let mut prompts = Vec::with_capacity(PROMPT_MODES.len());
    for (mode, protocol) in PROMPT_MODES {
        let offer =
            state.app.select_tools_for_agent(&agent, &user, Some(mode), protocol).map_err(prompt_error)?;
        prompts.push(PromptDescription::from(&offer));
    }
    let registry = state.app.tools_for(&user);
    let asked =
        InspectionContext { agent: &agent, registry: &registry, selection: &own, remembered: &remembered };
    let call = body.call.map(|call| {
        let outlook = inspect::predict_call(&ToolName::from(call.tool.as_str()), call.arguments, asked);
        PredictionDescription::from(&outlook)
    });
    let text = body.text.map(|example| preview_text(&agent.text_rules, &example)).transpose()?;
    Ok(axum::Json(AgentPreview {
        settings: agent.to_settings(),
        prompts,
        tools: tool_list(&state.app, &user, &agent, &own),
        call,
        text,
    }))
}

fn preview_text(rules: &[TextRule], example: &ExampleText) -> Result<TextPreview, ApiError> {
    if example.text.len() > PREVIEW_TEXT_BYTES_MAX {
        let message = format!("the text of a preview is at most {PREVIEW_TEXT_BYTES_MAX} bytes");
        return Err(ApiError::bad_request("text_too_long", message).param("text.text"));
    }
    let apply = |target| apply_text_rules(rules, target, example.role, &example.text);
    let (shown, shown_hits) = apply(TextRuleTarget::Shown);
    let (model, model_hits) = apply(TextRuleTarget::Model);
    let mut matches: Vec<_> = shown_hits
        .into_iter()
        .chain(model_hits)
        .filter_map(|hit| {
            let rule = rules.get(hit.rule)?;
            let (label, r#in) = (rule.label().to_owned(), rule.settings().target);
            Some(TextRuleMatches { index: hit.rule, label, r#in, matches: hit.matches })
        })
        .collect();
    matches.sort_by_key(|rule| rule.index);
    Ok(TextPreview { shown, model, rules: matches })
}

/// A prompt that is well written and still cannot be rendered is a mistake at that field.
fn prompt_error(error: Error) -> ApiError {
    let is_prompt = matches!(error, Error::Prompt(_));
    let refused = ApiError::from(error);
    if is_prompt { refused.param(format!("{SETTINGS_FIELD}.prompt")) } else { refused }
}
