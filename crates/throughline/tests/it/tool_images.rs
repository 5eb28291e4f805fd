//! Pictures that tools produce reach models that can see, and others get a note; a reply that broke off can
//! be continued.

use crate::support::{DIALECTS, at, builder, read, serve};
use std::sync::Arc;
use throughline::tools::{Effect, NoArguments, Tool, tool};
use throughline::wire::{Media, ToolOutput, UpstreamProfile};
use throughline::{MessageBlock, TurnStatus};
use throughline_testkit::parsed_request::ParsedMessage;
use throughline_testkit::{BodyBreak, ModelScript, ParsedRequest, ScriptQueue};

/// `cat`, as an upstream gets it.
const BYTES: &[u8] = b"\x89PNG\r\n\x1a\ncat";
/// `BYTES` in base64.
const BASE64: &str = "iVBORw0KGgpjYXQ=";

fn camera() -> Arc<dyn Tool> {
    let look = |_: NoArguments, _| async {
        let picture = Media::new("image/png".into(), BASE64.into());
        ToolOutput { media: vec![picture], ..ToolOutput::text("a picture") }
    };
    Arc::new(tool("camera.look", "Takes a picture", look).effect(Effect::Read).agent_callable())
}

/// All pictures of a request, and the number of notes in place of a picture.
fn pictures(seen: &ParsedRequest) -> (Vec<Vec<u8>>, usize) {
    let (mut images, mut notes) = (Vec::new(), 0);
    for message in &seen.messages {
        match message {
            ParsedMessage::User { images: these, text, .. } => {
                images.extend(these.iter().map(|image| image.bytes.clone()));
                notes += text.matches("[image image/png").count();
            }
            ParsedMessage::Results(results) => {
                for result in results {
                    images.extend(result.images.iter().map(|image| image.bytes.clone()));
                    notes += result.text.matches("[image image/png").count();
                }
            }
            ParsedMessage::Assistant { .. } => {}
        }
    }
    (images, notes)
}

#[tokio::test]
async fn tool_image_is_sent_or_replaced_by_a_note_without_vision() {
    for dialect in DIALECTS {
        for vision in [true, false] {
            let looks = ModelScript::new().call("camera_look", serde_json::json!({}));
            let server = serve(ScriptQueue::new([looks, ModelScript::new().say("A cat.")])).await;
            let upstream =
                at(&server, dialect).profile(UpstreamProfile { vision, ..UpstreamProfile::default() });
            let app = builder(&server, dialect).upstream(upstream).tools([camera()]).build().unwrap();
            let (_, message) = read(app.ask("What do you see?").await.unwrap()).await;
            let context = format!("{} vision {vision}", dialect.0);
            let (images, notes) = pictures(&server.requests()[1]);
            if vision {
                assert_eq!(images, [BYTES], "{context}")
            } else {
                assert_eq!((images.len(), notes), (0, 1), "{context}")
            }
            let call = message.calls().next().unwrap();
            assert_eq!(call.output_media[0].data(), BASE64, "the card has it either way: {context}");
            assert_eq!(server.violations(), [], "{context}");
        }
    }
}

#[tokio::test]
async fn conversation_continues_after_a_broken_reply() {
    for dialect in DIALECTS {
        let tale = format!("Once upon a time there was{}", " a very long tale".repeat(400));
        let broken = ModelScript::new().say(&tale).broken_at(3_000, BodyBreak::Cut);
        let server = serve(ScriptQueue::new([broken, ModelScript::new().say("And so on.")])).await;
        let app = builder(&server, dialect).build().unwrap();
        let mut conversation = app.conversation();
        let (_, message) = read(conversation.ask("Tell me a tale.").await.unwrap()).await;
        let shown = message.text();
        assert!(!shown.is_empty() && tale.starts_with(&shown), "{}: {message:#?}", dialect.0);
        assert_eq!(message.status, Some(TurnStatus::Error), "{}", dialect.0);
        assert!(message.blocks.iter().any(|block| matches!(block, MessageBlock::Error(_))), "{}", dialect.0);
        assert!(message.error.is_some_and(|error| error.retryable), "{}", dialect.0);
        let (_, message) = read(conversation.ask("continue").await.unwrap()).await;
        assert_eq!(message.text(), "And so on.");
        let asked = server.requests().pop().unwrap();
        let said = asked.messages.iter().find_map(|message| match message {
            ParsedMessage::Assistant { text, .. } => Some(text.clone()),
            _ => None,
        });
        assert_eq!(said, Some(shown), "the model reads what it had said: {}", dialect.0);
        assert_eq!(server.violations(), [], "{}", dialect.0);
    }
}
