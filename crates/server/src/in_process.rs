//! The API without a socket, for a program that opens the store itself and serves no other client.

use crate::principal::Principal;
use crate::state::AppState;
use axum::Router;
use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt;
use http::{Method, Request, StatusCode, header};
use std::io;
use tower::ServiceExt;

/// All routes, called as one user with all scopes. Cheap to clone; clones share their state.
#[derive(Clone)]
pub struct InProcessApi {
    router: Router,
}

/// Response of the API. Its body comes in chunks.
pub struct InProcessResponse {
    pub status: StatusCode,
    body: BodyDataStream,
}

impl InProcessApi {
    /// The routes of this state, for this user.
    pub fn new(state: AppState, user: &str) -> Self {
        Self { router: crate::router(state).layer(axum::Extension(Principal::local(user))) }
    }

    /// Handles one request.
    ///
    /// # Errors
    /// The path or the content type is invalid in a request.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> io::Result<InProcessResponse> {
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content_type);
        let request = request.body(Body::from(body)).map_err(io::Error::other)?;
        let response = match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status();
        Ok(InProcessResponse { status, body: response.into_body().into_data_stream() })
    }
}

impl InProcessResponse {
    /// The next part of the body; `None` at its end.
    ///
    /// # Errors
    /// The stream broke off.
    pub async fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self.body.next().await {
            None => Ok(None),
            Some(chunk) => Ok(Some(chunk.map_err(io::Error::other)?.to_vec())),
        }
    }
}
