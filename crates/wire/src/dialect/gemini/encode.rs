//! Request to JSON.

use crate::dialect::{EncodedRequest, Transfer};
use crate::profile::Profile;
use crate::vocabulary::ModelRequest;

pub(crate) fn encode(_request: &ModelRequest, _profile: &Profile, _transfer: Transfer) -> EncodedRequest {
    EncodedRequest { path: String::new(), headers: Vec::new(), body: serde_json::Value::Null }
}
