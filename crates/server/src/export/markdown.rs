//! A conversation as Markdown for people: all messages, calls as folded details with input and output,
//! pictures as links, and invisible characters spelled out. It cannot be imported.

use std::fmt::Write;
use throughline_engine::fold::{AssistantMessage, MessageBlock, ToolCallBlock};
use throughline_engine::{CallStatus, TurnFault, missing_stop};
use throughline_wire::{Media, UserPart, display_escape};

/// Longest output of a call that is written out, in characters; the rest is in the history.
pub(super) const OUTPUT_CHARS_MAX: usize = 8_000;

/// Addresses of pictures and other files.
pub trait MediaLinks {
    /// Address of this content, if it is stored as a file.
    fn link(&self, media: &Media) -> Option<String>;
}

/// Links for content that is not stored as files.
pub struct NoMediaLinks;

impl MediaLinks for NoMediaLinks {
    fn link(&self, _: &Media) -> Option<String> {
        None
    }
}

/// Writes the turns of one branch, oldest first.
pub fn markdown(title: &str, messages: &[AssistantMessage], links: &dyn MediaLinks) -> String {
    let mut page = MarkdownPage { text: String::new(), links };
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    page.paragraph(&format!("# {}", if title.is_empty() { "Conversation" } else { &title }));
    for message in messages {
        page.user(&message.input);
        page.answer(message);
    }
    page.text
}

struct MarkdownPage<'a> {
    text: String,
    links: &'a dyn MediaLinks,
}

impl MarkdownPage<'_> {
    fn paragraph(&mut self, text: &str) {
        let text = display_escape::escape_prose(text.trim_matches('\n'));
        if !text.is_empty() {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.push_str(&text);
            self.text.push('\n');
        }
    }

    fn user(&mut self, input: &[UserPart]) {
        if !input.is_empty() {
            self.paragraph("## You");
        }
        for part in input {
            match part {
                UserPart::Text { text } => self.paragraph(text),
                UserPart::Image(media) => self.media("picture", media),
                UserPart::File { name, media } => self.media(name, media),
            }
        }
    }

    fn media(&mut self, name: &str, media: &Media) {
        let is_image = media.media_type.starts_with("image/");
        let name: String = name.chars().filter(|c| !matches!(c, '[' | ']' | '\n' | '\r')).collect();
        match self.links.link(media) {
            Some(link) if is_image => self.paragraph(&format!("![{name}]({link})")),
            Some(link) => self.paragraph(&format!("[{name}]({link})")),
            None => self.paragraph(&format!("*{}*", media.note())),
        }
    }

    #[deny(clippy::wildcard_enum_match_arm)]
    fn answer(&mut self, message: &AssistantMessage) {
        let who = if message.agent.is_empty() { "Assistant" } else { &message.agent };
        self.paragraph(&format!("## {who}"));
        for block in &message.blocks {
            match block {
                MessageBlock::Text { text, .. } => self.paragraph(text),
                MessageBlock::Thinking { text, .. } if text.is_empty() => {}
                MessageBlock::Thinking { text, .. } => {
                    self.paragraph(&format!("<details><summary>Thinking</summary>\n\n{text}\n\n</details>"));
                }
                MessageBlock::ToolCall(call) => self.call(call),
                MessageBlock::Audio { transcript, .. } => self.paragraph(&format!("*[sound]* {transcript}")),
                MessageBlock::Image(media) => self.media("picture", media),
                MessageBlock::Notice { text, .. } => self.paragraph(&format!("> {text}")),
                MessageBlock::Error(fault) => {
                    let TurnFault { what, why, remedy, .. } = fault;
                    self.paragraph(&format!("> **{what}** {}{} {remedy}", why.trim_end(), missing_stop(why)));
                }
                MessageBlock::UserMessage { input, .. } => {
                    self.user(input);
                    self.paragraph(&format!("## {who}"));
                }
                MessageBlock::Unrecognised => {}
                _ => {}
            }
        }
    }

    fn call(&mut self, call: &ToolCallBlock) {
        let status_mark = match call.status {
            Some(CallStatus::Success) => "✔",
            Some(CallStatus::Denied | CallStatus::Cancelled) => "⊘",
            Some(CallStatus::NotStarted) => "○",
            Some(status) if status.is_final() => "✘",
            _ => "…",
        };
        let name = call.tool_name.as_ref().map_or("?", |name| name.as_str());
        let mut summary = format!("{status_mark} {name}");
        for (before, part) in [(": ", &call.input_summary), (" → ", &call.output_summary)] {
            if !part.is_empty() {
                summary.push_str(before);
                summary.push_str(part);
            }
        }
        if let Some(ms) = call.duration_ms {
            // Writing into a text cannot fail.
            let _ = write!(summary, " ({ms} ms)");
        }
        let mut details = String::new();
        let arguments = match &call.arguments {
            Some(arguments) => serde_json::to_string_pretty(arguments).unwrap_or_default(),
            None => call.raw.clone().unwrap_or_else(|| call.input_text.clone()),
        };
        details.push_str(&fenced("Arguments", "json", &arguments));
        if let Some(ran_with) = &call.ran_with {
            let changed = serde_json::to_string_pretty(ran_with).unwrap_or_default();
            details.push_str(&fenced("Changed to", "json", &changed));
        }
        details.push_str(&fenced("Output", "text", &call.output));
        if let Some(error) = &call.error {
            let message = error.message.clone().unwrap_or_default();
            details.push_str(&fenced(&format!("Error `{}`", error.code), "text", &message));
        }
        self.paragraph(&format!("<details><summary>{}</summary>\n\n{details}</details>", escaped(&summary)));
        for media in &call.output_media {
            self.media(name, media);
        }
    }
}

/// A block of code whose fence is longer than any in it.
fn fenced(label: &str, language: &str, content: &str) -> String {
    let content = &*display_escape::escape(content);
    if content.is_empty() {
        return format!("{label}\n\n");
    }
    let (mut longest, mut run) = (0, 0);
    for c in content.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest.max(2) + 1);
    let cut = match content.char_indices().nth(OUTPUT_CHARS_MAX) {
        Some((at, _)) => format!("{}\n… {} more characters", &content[..at], content[at..].chars().count()),
        None => content.to_owned(),
    };
    format!("{label}\n\n{fence}{language}\n{cut}\n{fence}\n\n")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_engine::Event;

    struct TestFileLinks;

    impl MediaLinks for TestFileLinks {
        fn link(&self, media: &Media) -> Option<String> {
            (media.data() == "aGk=").then(|| "/v1/files/file_1".to_owned())
        }
    }

    fn of_log(name: &str) -> AssistantMessage {
        let path = format!("{}/../engine/tests/logs/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let events: Vec<Event> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        AssistantMessage::from_events(&events)
    }

    #[test]
    fn every_block_kind_is_written() {
        let page = markdown("Every\nkind", &[of_log("every-kind")], &TestFileLinks);
        for message in [
            "# Every kind\n",
            "## You\n\n你好\n",
            "![picture](/v1/files/file_1)",
            "[notes.txt](/v1/files/file_1)",
            "<details><summary>Thinking</summary>\n\nhm\n\n</details>",
            "<summary>✔ demo.weather: city: Paris → 16 °C (20 ms)</summary>",
            "```json\n{\n  \"city\": \"Paris\"\n}\n```",
            "> Five steps are used up.",
            "> **The model's reply ended early.**",
        ] {
            assert!(page.contains(message), "{message}\n---\n{page}");
        }
        // Content that is not stored is named and never written as base64.
        let page = markdown("", &[of_log("every-kind")], &NoMediaLinks);
        assert!(page.starts_with("# Conversation\n") && page.contains("*[image image/png"), "{page}");
        assert!(!page.contains("aGk="), "{page}");
    }

    #[test]
    fn invisible_characters_are_escaped() {
        let call = ToolCallBlock {
            tool_name: Some("a.b".into()),
            arguments: Some(serde_json::json!({"when": "\u{202e}2026-11-24"})),
            output: "\u{1b}[2Jdone".into(),
            ..ToolCallBlock::default()
        };
        let text = MessageBlock::text("می\u{200c}خواهم \u{202e}x");
        let message = AssistantMessage {
            blocks: vec![MessageBlock::ToolCall(Box::new(call)), text],
            ..AssistantMessage::default()
        };
        let page = markdown("t\u{200b}", &[message], &NoMediaLinks);
        for shown in
            ["# t\\u200b\n", "\"when\": \"\\u202e2026-11-24\"", "\\u001b[2Jdone", "می\u{200c}خواهم \\u202ex"]
        {
            assert!(page.contains(shown), "{shown}\n---\n{page}");
        }
    }

    #[test]
    fn tool_output_cannot_close_its_block() {
        let call = ToolCallBlock {
            tool_name: Some("a.b".into()),
            input_summary: "</summary><script>".into(),
            output: "````\n</details>\n```".into(),
            ..ToolCallBlock::default()
        };
        let message = AssistantMessage {
            blocks: vec![MessageBlock::ToolCall(Box::new(call))],
            ..AssistantMessage::default()
        };
        let page = markdown("t", &[message], &NoMediaLinks);
        assert!(page.contains("&lt;/summary&gt;&lt;script&gt;"), "{page}");
        assert!(page.contains("`````text\n````\n</details>\n```\n`````\n"), "{page}");
    }
}
