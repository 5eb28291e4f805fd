//! One model call in the record.

use crate::event::BlockKind;
use crate::id::UserMessageId;
use throughline_wire::{FinishReason, ProviderState, UserPart};

/// One model call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StepRecord {
    pub model: String,
    pub text: String,
    pub thinking: String,
    /// Offsets in these at which the blocks of the step begin, in order.
    pub spans: Vec<BlockSpan>,
    /// The model's own words of blocks that people are shown otherwise.
    pub model_texts: Vec<(u32, String)>,
    pub finish: Option<FinishReason>,
    pub end: StepEnd,
    pub provider_state: Option<ProviderState>,
    /// Number of recorded findings.
    pub problems: u32,
    /// Number of blocks of the message before those of this step.
    pub first_block: u32,
    /// True if the step had only reasoning and the model was asked again.
    pub answer_missing: bool,
    /// Notes to the model, between this step and the next.
    pub notes: Vec<String>,
    /// Messages that the user sent in mid-turn and that were taken in after this step.
    pub messages: Vec<DeliveredMessage>,
}

/// A message that the user sent in mid-turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeliveredMessage {
    pub id: Option<UserMessageId>,
    pub input: Vec<UserPart>,
}

/// A block of a step that takes deltas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockSpan {
    pub block: u32,
    pub kind: BlockKind,
    /// Offset of its text in the step's text or thinking.
    pub offset: usize,
}

/// End of a step, as far as its calls are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StepEnd {
    #[default]
    Open,
    /// A finish that does not truncate: its calls are valid.
    Committed,
    /// The user stopped the step: the model sees the outcomes of its calls.
    Stopped,
    /// The step broke off: its calls may be incomplete, and are not sent to the model again.
    Broken,
}

impl StepRecord {
    pub(super) fn open_span(&mut self, block: u32, kind: BlockKind) {
        let offset = self.channel(kind).len();
        self.spans.push(BlockSpan { block, kind, offset });
    }

    /// True if its blocks, of `blocks` in the message so far, are thinking and nothing else.
    pub(crate) fn is_thinking_alone(&self, blocks: u32) -> bool {
        let all_think = self.spans.iter().all(|span| span.kind == BlockKind::Thinking);
        all_think && !self.spans.is_empty() && self.spans.len() as u32 == blocks - self.first_block
    }

    /// Text of the blocks of this kind; the transcript of speech counts as text.
    fn channel(&mut self, kind: BlockKind) -> &mut String {
        match kind {
            BlockKind::Thinking => &mut self.thinking,
            _ => &mut self.text,
        }
    }

    /// The text as the model wrote it.
    pub(crate) fn text_by_model(&self) -> String {
        if self.model_texts.is_empty() {
            return self.text.clone();
        }
        let spans: Vec<_> = self.spans.iter().filter(|span| span.kind != BlockKind::Thinking).collect();
        let mut text = String::new();
        for (nth, span) in spans.iter().enumerate() {
            let end = spans.get(nth + 1).map_or(self.text.len(), |next| next.offset);
            let own = self.model_texts.iter().find(|(block, _)| *block == span.block);
            text.push_str(own.map_or(&self.text[span.offset..end], |(_, own)| own.as_str()));
        }
        text
    }

    /// Takes back a block but for its first characters.
    pub(super) fn supersede(&mut self, block: u32, keep_chars: u64) {
        self.model_texts.retain(|(of, _)| *of != block);
        let Some(at) = self.spans.iter().position(|span| span.block == block) else { return };
        let BlockSpan { kind, offset: start, .. } = self.spans[at];
        let thinks = kind == BlockKind::Thinking;
        let same_channel = |span: &&BlockSpan| (span.kind == BlockKind::Thinking) == thinks;
        let next = self.spans[at + 1..].iter().find(same_channel).map(|span| span.offset);
        let channel = self.channel(kind);
        let end = next.unwrap_or(channel.len());
        let mut chars = channel[start..end].char_indices();
        let Some((bytes_before, _)) = chars.nth(usize::try_from(keep_chars).unwrap_or(usize::MAX)) else {
            return;
        };
        channel.replace_range(start + bytes_before..end, "");
        let removed = end - start - bytes_before;
        for span in
            self.spans[at + 1..].iter_mut().filter(|span| (span.kind == BlockKind::Thinking) == thinks)
        {
            span.offset -= removed;
        }
    }
}
