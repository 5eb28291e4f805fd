//! Prompts that a person has saved, to be put into messages.

use super::page::ListPage;
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path};
use crate::principal::{KeyScope, Principal};
use crate::stamps::now_ms;
use crate::state::AppState;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use throughline_store::{DocumentKind, DocumentPrecondition, NewDocument, PutOutcome, StoredDocument};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Maximum number of prompts of one user. They are listed in one response, and searched by the client.
const PROMPTS_MAX: usize = 200;
/// Longest name, in characters: it is a line of a menu.
const NAME_CHARS_MAX: usize = 60;
/// Longest text, in bytes: a page or two. What is longer is a file.
const TEXT_BYTES_MAX: usize = 20_000;
/// Name of the field in which a document stores the text.
const TEXT_FIELD: &str = "text";

/// `/v1/saved-prompts`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(replace, delete))
}

/// A prompt that was saved.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SavedPrompt {
    /// Its name.
    #[schema(example = "weekly report")]
    pub name: String,
    /// Its text. `{{name}}` is a placeholder: whoever uses the prompt is asked for it.
    #[schema(example = "Write a report about {{topic}} for {{audience}}.")]
    pub text: String,
    /// Grows by one with each change, from 1.
    pub version: u64,
    /// Milliseconds since 1970.
    pub updated_at: i64,
}

impl From<StoredDocument> for SavedPrompt {
    fn from(document: StoredDocument) -> Self {
        let text = document.body.get(TEXT_FIELD).and_then(|text| text.as_str()).unwrap_or_default();
        Self {
            text: text.to_owned(),
            name: document.name,
            version: document.version,
            updated_at: document.updated_at,
        }
    }
}

/// The text of a prompt.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavePrompt {
    /// 1 to 20,000 bytes.
    pub text: String,
    /// The version that is replaced; 0: there must be none of this name. Absent: whatever is there.
    #[serde(default)]
    pub version: Option<u64>,
}

/// List your saved prompts by name.
#[utoipa::path(get, path = "/v1/saved-prompts", tag = "saved_prompts", responses(
    (status = 200, description = "All of them", body = ListPage<SavedPrompt>),
))]
async fn list(
    State(state): State<AppState>,
    principal: Principal,
) -> Result<axum::Json<ListPage<SavedPrompt>>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let documents = state.catalog.documents(&principal.user, DocumentKind::SavedPrompt).await?;
    Ok(axum::Json(ListPage::complete(documents.into_iter().map(SavedPrompt::from).collect())))
}

/// Save a prompt under a name, in place of the one that has it.
#[utoipa::path(put, path = "/v1/saved-prompts/{name}", tag = "saved_prompts",
    params(("name" = String, Path, description = "Name of the prompt, of 1 to 60 characters")),
    request_body = SavePrompt, responses(
    (status = 200, description = "Saved", body = SavedPrompt),
    (status = 400, description = "The name or the text is empty or too long", body = ErrorResponse),
    (status = 409, description = "Changed by another request, the name is taken, or there are too \
     many", body = ErrorResponse),
))]
async fn replace(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
    Json(prompt): Json<SavePrompt>,
) -> Result<axum::Json<SavedPrompt>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let name = name.trim();
    check_name(name)?;
    check_text(&prompt.text)?;
    let known = state.catalog.documents(&principal.user, DocumentKind::SavedPrompt).await?;
    if known.len() >= PROMPTS_MAX && !known.iter().any(|document| document.name == name) {
        let message = format!("there are {PROMPTS_MAX} saved prompts already");
        return Err(
            ApiError::conflict("too_many_prompts", message).remedy("delete one that you no longer use")
        );
    }
    let new = NewDocument {
        kind: DocumentKind::SavedPrompt,
        name: name.to_owned(),
        body: json!({ TEXT_FIELD: prompt.text }),
        precondition: match prompt.version {
            None => DocumentPrecondition::Any,
            Some(0) => DocumentPrecondition::Absent,
            Some(version) => DocumentPrecondition::Version(version),
        },
        now: now_ms(),
    };
    match state.catalog.put_document(&principal.user, new).await? {
        PutOutcome::Written(document) => Ok(axum::Json(document.into())),
        PutOutcome::Conflict(Some(_)) if prompt.version == Some(0) => {
            let message = format!("there is a saved prompt `{name}` already");
            Err(ApiError::conflict("name_taken", message).param("name").remedy("choose another name"))
        }
        PutOutcome::Conflict(None) => Err(ApiError::not_found("saved prompt", name)),
        PutOutcome::Conflict(Some(existing)) => {
            Err(ApiError::conflict("changed_meanwhile", format!("`{name}` was changed by another request"))
                .remedy("load the current version and apply the change to it")
                .with_extra("version", existing.version))
        }
    }
}

/// Delete a saved prompt.
#[utoipa::path(delete, path = "/v1/saved-prompts/{name}", tag = "saved_prompts",
    params(("name" = String, Path, description = "Name of the prompt")), responses(
    (status = 204, description = "Deleted"),
    (status = 404, description = "Not found", body = ErrorResponse),
))]
async fn delete(
    State(state): State<AppState>,
    principal: Principal,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    principal.require(KeyScope::Chat)?;
    let removed = state.catalog.remove_document(&principal.user, DocumentKind::SavedPrompt, &name).await?;
    removed.ok_or_else(|| ApiError::not_found("saved prompt", &name))?;
    Ok(StatusCode::NO_CONTENT)
}

fn check_name(name: &str) -> Result<(), ApiError> {
    let is_bad = name.is_empty()
        || name.chars().count() > NAME_CHARS_MAX
        || name.chars().any(throughline_wire::display_escape::is_hidden);
    if is_bad {
        let message = format!("a name has 1 to {NAME_CHARS_MAX} visible characters");
        return Err(ApiError::bad_request("invalid_value", message).param("name"));
    }
    Ok(())
}

fn check_text(text: &str) -> Result<(), ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::bad_request("empty_prompt", "the prompt is empty").param("text"));
    }
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("a saved prompt has at most {TEXT_BYTES_MAX} bytes");
        return Err(ApiError::bad_request("prompt_too_long", message)
            .param("text")
            .remedy("save a shorter one, and add the rest as a file"));
    }
    Ok(())
}
