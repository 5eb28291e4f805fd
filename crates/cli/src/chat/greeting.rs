//! The first lines of a chat.

use crate::conversation::ConversationSession;
use crate::messages::UiText;
use crate::terminal::text::{StyledLine, TextColor, TextStyle, width};

/// Room for what an example shows, in columns.
const ABOUT_COLUMNS: usize = 28;

/// The model that answers and, for the demo model, prompts to try.
pub(crate) fn lines(talk: &ConversationSession, words: UiText, columns: usize) -> Vec<StyledLine> {
    let mut title = StyledLine::new("  ━━●━━●━━▸ ", TextStyle::ink(TextColor::Magenta));
    title.push("throughline", TextStyle::bold_ink(TextColor::Magenta));
    title.push(concat!(" ", env!("CARGO_PKG_VERSION")), TextStyle::DIM);
    let mut lines = vec![StyledLine::default(), title, StyledLine::default()];
    if talk.is_demo() {
        lines.push(StyledLine::new(&format!("  {}", words.demo_title()), TextStyle::PLAIN));
        lines.push(StyledLine::default());
        lines.push(StyledLine::new(&format!("  {}", words.demo_try()), TextStyle::DIM));
        let examples = words.examples();
        let widest = examples.iter().map(|(example, _)| width(example)).max().unwrap_or(0);
        for (example, about) in examples {
            let mut line = StyledLine::new("    › ", TextStyle::ink(TextColor::Magenta));
            line.push(example, TextStyle::PLAIN);
            // Descriptions are shown next to the examples if the screen is wide enough, all or none.
            if 6 + widest + 3 + ABOUT_COLUMNS <= columns {
                line.push(&" ".repeat(widest + 3 - width(example)), TextStyle::PLAIN);
                line.push(about, TextStyle::DIM);
            }
            lines.push(line);
        }
    } else {
        let mut line = StyledLine::new(&format!("  {} ", words.model_is()), TextStyle::DIM);
        line.push(&talk.model_name(words), TextStyle::BOLD);
        lines.push(line);
    }
    if let Some(server) = talk.server_address() {
        let line = format!("  {} {server}", words.through_server());
        lines.push(StyledLine::new(&line, TextStyle::DIM));
    }
    lines.push(StyledLine::default());
    lines.push(StyledLine::new(&format!("  {}", words.greeting_help()), TextStyle::DIM));
    lines.iter().map(|line| line.truncated(columns)).collect()
}

/// Prompts that Tab suggests: the demo model understands these.
pub(crate) fn examples(talk: &ConversationSession, words: UiText) -> Vec<String> {
    if talk.is_demo() {
        words.examples().iter().map(|(example, _)| (*example).to_owned()).collect()
    } else {
        Vec::new()
    }
}

#[cfg(all(test, feature = "demo"))]
mod tests {
    use crate::messages::{UiLanguage, UiText};
    use throughline::{Throughline, Upstream};
    use throughline_testkit::{FakeDialect, demo::DemoModel};

    #[tokio::test]
    async fn demo_model_answers_every_suggested_example() {
        let server = throughline_testkit::FakeUpstream::start(DemoModel::instant()).await.unwrap();
        let base_url = server.base_url(FakeDialect::OpenaiChat);
        let upstream = Upstream::new("demo", throughline_wire::Dialect::OpenaiChat, &base_url).unwrap();
        let app = Throughline::builder().upstream(upstream).model("demo").build().unwrap();
        let proposed =
            [UiLanguage::English, UiLanguage::Chinese].map(|lang| UiText(lang).examples()).concat();
        for (example, _) in proposed.iter().chain(&[("Sing!", "")]) {
            let mut turn = app.ask(*example).await.unwrap();
            let mut text = String::new();
            while let Some(event) = turn.next().await {
                if let throughline::EventKind::ContentDelta { text: delta, .. } = &event.kind {
                    text.push_str(delta);
                }
            }
            let lost = text.contains("not in my script") || text.contains("不在我的剧本里");
            assert_eq!(lost, *example == "Sing!", "{example}: {text}");
        }
    }
}
