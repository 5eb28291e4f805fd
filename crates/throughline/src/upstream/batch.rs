//! Events of a reply that are passed on together, with neighbors of one block joined.

use throughline_wire::StepEvent;

/// Events in order. A read of the socket that holds twenty tokens becomes one delta.
#[derive(Debug, Default)]
pub(crate) struct EventBatch {
    events: Vec<StepEvent<'static>>,
    bytes: usize,
    kind: BatchKind,
}

/// Contents of a batch: deltas only, or other events as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BatchKind {
    #[default]
    OnlyDeltas,
    Mixed,
}

impl EventBatch {
    pub(crate) fn push(&mut self, event: StepEvent<'_>) {
        use StepEvent as E;
        match &event {
            E::Text(text) | E::Thinking(text) | E::Refusal(text) | E::CallArguments { delta: text, .. } => {
                self.bytes += text.len();
            }
            _ => self.kind = BatchKind::Mixed,
        }
        match (self.events.last_mut(), &event) {
            (Some(E::Text(last)), E::Text(next)) | (Some(E::Refusal(last)), E::Refusal(next)) => {
                last.to_mut().push_str(next);
            }
            // Empty thinking is an event with a meaning, so it is not joined.
            (Some(E::Thinking(last)), E::Thinking(next)) if !last.is_empty() && !next.is_empty() => {
                last.to_mut().push_str(next);
            }
            (Some(E::CallArguments { slot: a, delta: last }), E::CallArguments { slot: b, delta: next })
                if a == b =>
            {
                last.to_mut().push_str(next);
            }
            _ => self.events.push(event.into_owned()),
        }
    }

    /// True if no other task waits for any of the events: all are text, thinking or argument deltas.
    pub(crate) fn is_only_deltas(&self) -> bool {
        self.kind == BatchKind::OnlyDeltas
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Bytes of text in the deltas.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn into_events(self) -> Vec<StepEvent<'static>> {
        self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_wire::CallSlot;

    #[test]
    fn only_adjacent_deltas_of_one_block_are_joined() {
        let mut batch = EventBatch::default();
        let arguments = |slot, delta: &'static str| StepEvent::CallArguments {
            slot: CallSlot(slot),
            delta: delta.into(),
        };
        for event in [
            StepEvent::Text("a".into()),
            StepEvent::Text("b".into()),
            StepEvent::Thinking("".into()),
            StepEvent::Thinking("c".into()),
            StepEvent::Thinking("d".into()),
            StepEvent::Text("e".into()),
            arguments(0, "{"),
            arguments(0, "}"),
            arguments(1, "{}"),
        ] {
            batch.push(event);
        }
        let expected = [
            StepEvent::Text("ab".into()),
            StepEvent::Thinking("".into()),
            StepEvent::Thinking("cd".into()),
            StepEvent::Text("e".into()),
            arguments(0, "{}"),
            arguments(1, "{}"),
        ];
        assert_eq!(batch.into_events(), expected);
    }
}
