//! Prompts of builds without the cargo feature `prompt-templates`: texts that are sent unchanged.

use super::PromptContext;
use super::rendered::{PROMPT_BYTES_MAX, RenderedPrompt, TemplateError};
use std::sync::Arc;

/// A prompt that is no template. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainPrompt {
    source: Arc<str>,
}

impl PlainPrompt {
    /// Takes a text.
    ///
    /// # Errors
    /// It is a template, which this build cannot fill, or longer than [`PROMPT_BYTES_MAX`].
    pub fn compile(source: &str) -> Result<Self, TemplateError> {
        let tags = ["{{", "{%", "{#"].into_iter().filter_map(|tag| source.find(tag));
        if let Some(at) = tags.min() {
            let help = "rebuild with the cargo feature prompt-templates".to_owned();
            let message = "this build has no template engine, but this prompt is a template".to_owned();
            return Err(TemplateError::at_span(source, at..at + 2, message, Some(help)));
        }
        if source.len() > PROMPT_BYTES_MAX {
            let message = format!("the prompt is longer than {} KiB", PROMPT_BYTES_MAX >> 10);
            return Err(TemplateError::at_span(source, 0..0, message, None));
        }
        Ok(Self { source: source.into() })
    }

    /// The text that it was made from.
    pub fn source(&self) -> &str {
        &self.source
    }

    // Fallible like a template's.
    #[expect(clippy::unnecessary_wraps, reason = "the template engine's rendering can fail")]
    pub(super) fn render(&self, _: &PromptContext<'_>) -> Result<RenderedPrompt, TemplateError> {
        Ok(RenderedPrompt { text: self.source.to_string(), ..RenderedPrompt::default() })
    }
}
