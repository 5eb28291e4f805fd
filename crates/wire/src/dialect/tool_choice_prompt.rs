//! A call that a reply must make, requested in words: for upstreams that have no field for it, and for text mode.

use crate::vocabulary::{Message, ModelRequest, ToolChoice, UserPart};

/// The sentence that asks for the call; `None` = the model decides.
pub(crate) fn prompt_text(choice: &ToolChoice) -> Option<String> {
    let what = match choice {
        ToolChoice::Auto | ToolChoice::None => return None,
        ToolChoice::Required => "call at least one of your tools".to_owned(),
        ToolChoice::Tool(name) => format!("call the tool `{name}`"),
    };
    Some(format!("[Note from the system: this reply must {what}; a reply without a call cannot be used.]"))
}

impl ModelRequest {
    /// The request with its forced call requested in a prompt, after the last message: so the requests of a
    /// turn stay prefixes of each other.
    pub(crate) fn with_prompted_tool_choice(&self) -> ModelRequest {
        let mut request = self.clone();
        if let Some(text) = prompt_text(&self.tool_choice) {
            request.tool_choice = ToolChoice::Auto;
            match request.messages.last_mut() {
                Some(Message::User(parts)) => parts.push(UserPart::Text { text }),
                _ => request.messages.push(Message::User(vec![UserPart::Text { text }])),
            }
        }
        request
    }
}
