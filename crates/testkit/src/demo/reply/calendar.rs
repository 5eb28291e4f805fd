//! A calendar entry: a look at the clock for the date, then a call that writes and so has to be allowed.

use super::super::dates;
use super::super::language::DemoLanguage;
use super::super::tool_call::ArgumentWish;
use super::super::tool_outcome::ParsedOutcome;
use super::{DemoScene, block_quote, text_then_calls, time};
use crate::script::ModelScript;

const TOOL: &str = "demo_calendar";

pub(super) fn reply(scene: &DemoScene<'_>) -> ModelScript {
    let title = title(scene);
    match (scene.latest_outcome(TOOL), scene.latest_outcome(time::TOOL)) {
        (Some(outcome), _) => ModelScript::new().say(closing_words(scene, outcome, &title)),
        (None, None) if scene.offers(TOOL) && scene.offers(time::TOOL) => {
            let clock = scene.call(time::TOOL, &[]);
            let text = scene.choose_text(
                "To get the day right I look at the clock first.\n\n",
                "为了把日期写对，我先看一下时间。\n\n",
            );
            text_then_calls(text, clock.into_iter().collect())
        }
        (None, clock) => write(scene, clock, &title),
    }
}

fn write(scene: &DemoScene<'_>, clock: Option<&ParsedOutcome>, title: &str) -> ModelScript {
    let today = match clock {
        Some(ParsedOutcome::Output(text, _)) => dates::find_timestamp(text).map(|(day, _)| day),
        _ => None,
    };
    let hour = dates::requested_hour(scene.text);
    let (start, date, spoken) = match today.map(|today| dates::requested_day(scene.text, today)) {
        Some(day) => {
            let words = day.words(scene.language);
            let spoken = scene.language.choose(format!("{words} at {hour}"), format!("{words} {hour}"));
            (format!("{}T{hour}", day.iso()), day.iso(), spoken)
        }
        None => {
            let day = scene.choose_text("tomorrow", "明天");
            (format!("{day} {hour}"), day.to_owned(), format!("{day} {hour}"))
        }
    };
    let wishes = [
        ArgumentWish(&["title", "summary", "name", "event", "what", "text"], title.into()),
        ArgumentWish(&["start", "starts_at", "start_time", "when", "datetime", "at"], start.into()),
        ArgumentWish(&["date", "day"], date.into()),
        ArgumentWish(&["time", "hour"], hour.into()),
        ArgumentWish(&["duration_minutes", "minutes", "duration"], 60.into()),
    ];
    let Some(call) = scene.call(TOOL, &wishes) else { return scene.tool_missing(TOOL) };
    let text = scene.language.choose(
        format!(
            "I'd enter **{title}** for {spoken}. As this changes something, it is up to you: allow it or deny it.\n\n"
        ),
        format!("我准备把**{title}**记到 {spoken}。这一步会改动数据，所以由您决定：允许还是拒绝。\n\n"),
    );
    text_then_calls(text, vec![call])
}

fn closing_words(scene: &DemoScene<'_>, outcome: &ParsedOutcome, title: &str) -> String {
    match outcome {
        ParsedOutcome::Output(text, _) => scene.language.choose(
            format!(
                "Done: **{title}** is in the calendar. The tool answered:\n\n{}\nBefore it was \
                 allowed, nothing was written.",
                block_quote(text, 6)
            ),
            format!(
                "好了，**{title}**已经记入日历。工具的回答是：\n\n{}\n在得到允许之前，什么都没有写入。",
                block_quote(text, 6)
            ),
        ),
        ParsedOutcome::Denied(reason) => {
            let heard = match reason {
                Some(reason) => scene.language.choose(
                    format!(" I have read your reason: “{reason}”"),
                    format!("您的理由我看到了：“{reason}”"),
                ),
                None => String::new(),
            };
            scene.language.choose(
                format!(
                    "All right, I leave the calendar as it is. Nothing was written.{heard}\n\nShould you change your \
                     mind, just ask again, perhaps with another day or hour."
                ),
                format!("好的，日历保持原样，什么都没有写入。{heard}\n\n如果改变主意，再跟我说一声就好，换个日子或时间也行。"),
            )
        }
        _ => {
            let why = scene.describe_outcome(outcome);
            scene.language.choose(
                format!(
                    "I could not finish the entry: {why}\n\nLook into the calendar before you try again."
                ),
                format!("这条日程没有办成：{why}\n\n再试之前，请先看一下日历。"),
            )
        }
    }
}

/// Title of the entry: the words in quotes, or the rest without everything about time and calendars.
fn title(scene: &DemoScene<'_>) -> String {
    let text = scene.text;
    for (open, close) in [('"', '"'), ('“', '”'), ('「', '」'), ('《', '》')] {
        if let Some((_, rest)) = text.split_once(open)
            && let Some((words, _)) = rest.split_once(close)
            && !words.trim().is_empty()
        {
            return words.trim().into();
        }
    }
    match scene.language {
        DemoLanguage::English => english_title(text),
        DemoLanguage::Chinese => chinese_title(text),
    }
}

fn english_title(text: &str) -> String {
    const NOISE: &str = "add create put make schedule book enter remind me please can could you a an the my calendar \
        entry event in into to on at for of about tomorrow today tonight next day after noon am pm \
        o'clock monday tuesday wednesday thursday friday saturday sunday afternoon morning evening i \
        have need";
    let words = text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let words_left: Vec<&str> = words
        .filter(|word| !word.is_empty() && !word.starts_with(|c: char| c.is_ascii_digit()))
        .filter(|word| !NOISE.split(' ').any(|noise| noise == word.to_lowercase()))
        .collect();
    let title = words_left.join(" ");
    let mut chars = title.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => "Meeting".into(),
    }
}

fn chinese_title(text: &str) -> String {
    const NOISE: &str = "请帮我 帮我 麻烦 请 记到日历里 记到日历 加到日历里 加到日历 写进日历 日历里 日历 日程 添加 \
        加一个 加个 安排一下 安排 提醒我 记一下 一下 一个 明天 后天 今天 今晚 明早 明晚 上午 下午 早上 \
        晚上 中午 下周 星期 周一 周二 周三 周四 周五 周六 周日 点半 点钟 点 在 里 把 到 十二 十一";
    let mut title: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
    for noise in NOISE.split(' ') {
        title = title.replace(noise, "");
    }
    let numerals = ['一', '二', '两', '三', '四', '五', '六', '七', '八', '九', '十'];
    let title = title.trim_matches(|c: char| {
        !c.is_alphanumeric() || numerals.contains(&c) || matches!(c, '的' | '有' | '要')
    });
    if title.is_empty() { "会议".into() } else { title.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_title_is_extracted_from_the_request() {
        for (text, expected) in [
            ("Put a meeting with Ada into my calendar for tomorrow at 3pm", "Meeting with Ada"),
            ("Please add an event to the calendar", "Meeting"),
        ] {
            assert_eq!(english_title(text), expected, "{text}");
        }
        for (text, expected) in [
            ("请把明天下午三点和小李开会记到日历里", "和小李开会"),
            ("在日历里加一个后天上午10点的牙医预约", "牙医预约"),
            ("日历", "会议"),
        ] {
            assert_eq!(chinese_title(text), expected, "{text}");
        }
    }
}
