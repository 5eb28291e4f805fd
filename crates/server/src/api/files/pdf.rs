//! The text of a PDF.

use super::{find_file, open_content};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Path, Query};
use crate::pdf_text::PdfText;
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

/// Where to begin.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PdfTextQuery {
    /// First page to read. Default 1.
    from_page: Option<u32>,
}

/// Get the text of a PDF, page by page.
///
/// It is read in a process of its own, with limits of time, memory, pages and text (`pdf_…` of `[server.limits]`). What was read before a
/// limit is the answer; `next_page` says where to go on. A file whose pages are pictures has no `texts`.
#[utoipa::path(get, path = "/v1/files/{file_id}/text", tag = "files",
    params(("file_id" = String, Path, description = "Id of the file"), PdfTextQuery), responses(
    (status = 200, description = "The text", body = PdfText),
    (status = 400, description = "Invalid query", body = ErrorResponse),
    (status = 404, description = "Not found", body = ErrorResponse),
    (status = 422, description = "The file is not a PDF, is damaged, needs a password, or takes too long to \
     read", body = ErrorResponse),
    (status = 429, description = "Too many PDF files of this user are being read", body = ErrorResponse),
    (status = 501, description = "This server reads no PDF files", body = ErrorResponse),
    (status = 503, description = "Other PDF files are being read", body = ErrorResponse),
))]
pub(crate) async fn get_text(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
    Query(query): Query<PdfTextQuery>,
) -> Result<axum::Json<PdfText>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let from_page = query.from_page.unwrap_or(1);
    if from_page == 0 {
        return Err(ApiError::bad_request("invalid_value", "pages are counted from 1").param("from_page"));
    }
    let row = find_file(&state, &principal, &id).await?;
    if row.media_type != "application/pdf" {
        let message = format!("file `{id}` is no PDF but {}", row.media_type);
        return Err(ApiError::unprocessable("not_a_pdf", message).remedy("read it with /content"));
    }
    let Some(program) = &state.pdf_program else {
        let message = "this server has no program that reads PDF files";
        return Err(ApiError::new(StatusCode::NOT_IMPLEMENTED, "no_pdf_reader", message)
            .remedy("run it as `throughline serve`, or call `AppState::with_pdf_program`"));
    };
    let file = open_content(&state, &row).await?;
    Ok(axum::Json(state.pdf_texts.read(program, &principal.user, file, from_page).await?))
}
