//! What a body says that it is. The gate bounds what a handler then reads, so both ask here.

use http::{HeaderMap, header};

/// Whether a body says that it is JSON: `application/json`, or any type that ends with `+json`, in any case and with any
/// parameters.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}
