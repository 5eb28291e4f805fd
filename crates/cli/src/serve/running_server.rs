//! The server that has this folder's store open, used with the first key.

use super::local_client::local_client;
use super::server_note::ServerNote;
use super::store::data_folder;
use crate::{data_dir, messages};
use reqwest::RequestBuilder;
use serde_json::Value;

/// Address and key of the server.
pub(crate) struct RunningServer {
    client: reqwest::Client,
    url: String,
    key: String,
}

impl RunningServer {
    /// The server that left a note in the data folder.
    ///
    /// # Errors
    /// The reason why it is not available, as a message.
    pub(crate) fn of_data_folder() -> Result<Self, String> {
        let folder = data_folder().map_err(|failure| failure.to_string())?;
        let note = ServerNote::read(&folder)
            .ok_or_else(|| messages::no_file(&folder.join(data_dir::SERVER_FILE)))?;
        let file = folder.join(data_dir::ADMIN_TOKEN_FILE);
        let key = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let client = local_client(&note)?.build().map_err(|error| error.to_string())?;
        Ok(Self { client, url: note.url, key: key.trim().to_owned() })
    }

    /// Address of the server.
    pub(crate) fn address(&self) -> &str {
        &self.url
    }

    pub(crate) fn request(&self, method: reqwest::Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).bearer_auth(&self.key)
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.url)).bearer_auth(&self.key)
    }

    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.url)).bearer_auth(&self.key)
    }

    pub(crate) fn patch(&self, path: &str) -> RequestBuilder {
        self.client.patch(format!("{}{path}", self.url)).bearer_auth(&self.key)
    }

    pub(crate) fn delete(&self, path: &str) -> RequestBuilder {
        self.client.delete(format!("{}{path}", self.url)).bearer_auth(&self.key)
    }

    /// Sends a request to the server and returns its answer.
    ///
    /// # Errors
    /// The error, as a message.
    pub(crate) async fn send(request: RequestBuilder) -> Result<Value, String> {
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let is_success = answer.status().is_success();
        let text = answer.text().await.map_err(|error| error.to_string())?;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        if is_success {
            return Ok(body);
        }
        let error = &body["error"];
        let message = error["message"].as_str().unwrap_or(&text);
        let remedy = error["remedy"].as_str().map(|remedy| format!("; {remedy}")).unwrap_or_default();
        Err(format!("{message}{remedy}"))
    }
}
