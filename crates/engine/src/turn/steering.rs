//! Steering: messages that the user sends while a turn runs.
//!
//! A message is taken in at a step border: after all outcomes of the step, before the next model call. So nothing ever
//! separates a call from its outcome. What is taken in when:
//!
//! | the step that ends | a message for the next step |
//! |---|---|
//! | had calls | is taken in; the step that follows knows it, also when that is the last one, without tools |
//! | had none: the model would have stopped | is taken in, and gets one more step; that step does not count against `iterations_max`, which counts steps with calls |
//! | was the last one, without tools | waits for the end, like one for after the turn |
//! | was paused by the provider, or lost in a crash | waits for the border after: the step that follows is the rest of the same reply |
//!
//! Before its border a message is in no event: it can be taken back, and it is lost with the process. Its
//! sender still has it, and sees by its id in the events whether it was taken in.

use crate::event::EventKind;
use crate::id::UserMessageId;
use crate::input::{MessageTiming, QueuedMessage};
use crate::machine::{EventTarget, TurnMachine};

impl TurnMachine<'_> {
    pub(crate) fn queue_message(&mut self, message: QueuedMessage) {
        let already_queued = self.volatile.queue.iter().any(|queued| queued.id == message.id);
        let already_delivered =
            self.record.delivered_messages().any(|delivered| delivered.id.as_ref() == Some(&message.id));
        let full = self.volatile.queue.len() >= self.setup.limits.messages_queued_max as usize;
        if !(already_queued || already_delivered || full || message.input.is_empty()) {
            self.volatile.queue.push(message);
        }
    }

    pub(crate) fn retract_message(&mut self, id: &UserMessageId) {
        self.volatile.queue.retain(|message| message.id != *id);
    }

    /// At a step border: what waits for it becomes part of the turn. False if nothing does.
    pub(crate) fn deliver_queued(&mut self) -> bool {
        let ready: Vec<QueuedMessage> =
            self.volatile.queue.extract_if(.., |message| message.when == MessageTiming::NextStep).collect();
        let delivered_any = !ready.is_empty();
        for QueuedMessage { id, input, .. } in ready {
            let block = Some(self.record.blocks);
            self.emit(
                EventTarget { block, ..self.step_target() },
                EventKind::UserMessage { id: Some(id), input },
            );
        }
        delivered_any
    }
}
