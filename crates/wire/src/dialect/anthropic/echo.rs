//! The provider state of this dialect: the assistant message as it came, and the container it ran code in.
//!
//! `{"role": "assistant", "content": [...], "container": "container_..."}`; `container` only if there was one.

use serde_json::{Map, Value};

/// Packs a content array.
pub(super) fn write(content: Vec<Value>, container: Option<Value>) -> Value {
    let mut state = Map::new();
    state.insert("role".to_owned(), "assistant".into());
    state.insert("content".to_owned(), content.into());
    if let Some(container) = container {
        state.insert("container".to_owned(), container);
    }
    Value::Object(state)
}

/// The content array, if the state is of this form.
pub(super) fn content(state: &Value) -> Option<&Vec<Value>> {
    state.get("content")?.as_array()
}

/// The container, if there was one.
pub(super) fn container(state: &Value) -> Option<&Value> {
    state.get("container")
}
