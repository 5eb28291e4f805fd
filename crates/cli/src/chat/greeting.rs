//! The first lines of a chat.

use crate::messages::Words;
use crate::setup::World;
use crate::terminal::text::{Ink, Line, Style, width};

/// Room for what an example shows, in columns.
const ABOUT_COLUMNS: usize = 28;

/// Who answers, and with the demo model what can be tried.
pub fn lines(world: &World, words: Words, columns: usize) -> Vec<Line> {
    let mut title = Line::new("  ━━●━━●━━▸ ", Style::ink(Ink::Magenta));
    title.push("throughline", Style::bold_ink(Ink::Magenta));
    title.push(concat!(" ", env!("CARGO_PKG_VERSION")), Style::DIM);
    let mut lines = vec![Line::default(), title, Line::default()];
    if world.is_demo() {
        lines.push(Line::new(&format!("  {}", words.demo_title()), Style::PLAIN));
        lines.push(Line::default());
        lines.push(Line::new(&format!("  {}", words.demo_try()), Style::DIM));
        let examples = words.examples();
        let widest = examples.iter().map(|(example, _)| width(example)).max().unwrap_or(0);
        for (example, about) in examples {
            let mut line = Line::new("    › ", Style::ink(Ink::Magenta));
            line.push(example, Style::PLAIN);
            // What it shows stands beside it if the screen has room for that, all or none.
            if 6 + widest + 3 + ABOUT_COLUMNS <= columns {
                line.push(&" ".repeat(widest + 3 - width(example)), Style::PLAIN);
                line.push(about, Style::DIM);
            }
            lines.push(line);
        }
    } else {
        let mut line = Line::new(&format!("  {} ", words.model_is()), Style::DIM);
        line.push(&world.model, Style::BOLD);
        lines.push(line);
    }
    lines.push(Line::default());
    lines.push(Line::new(&format!("  {}", words.greeting_help()), Style::DIM));
    lines.iter().map(|line| line.truncated(columns)).collect()
}

/// What Tab suggests: the demo model understands these.
pub fn examples(world: &World, words: Words) -> Vec<String> {
    match world.is_demo() {
        true => words.examples().iter().map(|(example, _)| (*example).to_owned()).collect(),
        false => Vec::new(),
    }
}

#[cfg(all(test, feature = "demo"))]
mod tests {
    use crate::messages::{Lang, Words};
    use throughline::{Throughline, Upstream};
    use throughline_testkit::{Dialect, demo::Demo};

    // R: D1
    #[tokio::test]
    async fn the_demo_model_understands_all_that_is_proposed() {
        let server = throughline_testkit::Upstream::start(Demo::instant()).await.unwrap();
        let base_url = server.base_url(Dialect::OpenaiChat);
        let upstream = Upstream::new("demo", throughline_wire::Dialect::OpenaiChat, &base_url).unwrap();
        let app = Throughline::builder().upstream(upstream).model("demo").build().unwrap();
        let proposed = [Lang::English, Lang::Chinese].map(|lang| Words(lang).examples()).concat();
        for (example, _) in proposed.iter().chain(&[("Sing!", "")]) {
            let mut turn = app.ask(*example).await.unwrap();
            let mut text = String::new();
            while let Some(event) = turn.next().await {
                if let throughline::EventKind::ContentDelta { text: delta } = &event.kind {
                    text.push_str(delta);
                }
            }
            let lost = text.contains("not in my script") || text.contains("不在我的剧本里");
            assert_eq!(lost, *example == "Sing!", "{example}: {text}");
        }
    }
}
