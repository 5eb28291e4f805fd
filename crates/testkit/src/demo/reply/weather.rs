//! Weather in one city or several: all calls in one step, a table from their results.

use super::super::cities;
use super::super::language::DemoLanguage;
use super::super::tool_call::ArgumentWish;
use super::super::tool_outcome::ParsedOutcome;
use super::{DemoScene, block_quote, rules, text_then_calls, time};
use crate::script::ModelScript;
use serde_json::Value;

const TOOL: &str = "demo_weather";
const CITY: &[&str] = &["city", "location", "place", "name"];

pub(super) fn reply(scene: &DemoScene<'_>) -> ModelScript {
    if scene.answered.is_empty() { ask_weather(scene) } else { report(scene) }
}

fn ask_weather(scene: &DemoScene<'_>) -> ModelScript {
    let named = cities::requested_cities(scene.text, scene.language);
    let cities = if named.is_empty() {
        let known = cities::DEFAULT.iter().filter_map(|name| cities::by_name(name));
        known.map(|city| city.name(scene.language).to_owned()).collect()
    } else {
        named.clone()
    };
    let call = |city: &String| scene.call(TOOL, &[ArgumentWish(CITY, city.as_str().into())]);
    let mut calls: Vec<_> = cities.iter().filter_map(call).collect();
    if calls.is_empty() {
        return scene.tool_missing(TOOL);
    }
    let mut also = "";
    if rules::has_keyword(scene.text, rules::TIME)
        && let Some(clock) = time::call(scene)
    {
        calls.push(clock);
        also = scene.choose_text(", and at the clock", "，顺便看一下时间");
    }
    let list = joined(&cities, scene.language);
    let text = match (scene.language, named.is_empty(), cities.len()) {
        (DemoLanguage::English, true, _) => {
            format!("You named no city, so I'll look at three of them: {list}{also}.\n\n")
        }
        (DemoLanguage::English, false, 1) => format!("Let me look at the weather in {list}{also}.\n\n"),
        (DemoLanguage::English, false, n) => {
            format!("Let me look at {list}{also}: {n} calls, all in one go.\n\n")
        }
        (DemoLanguage::Chinese, true, _) => format!("您没有说是哪座城市，我就看三座：{list}{also}。\n\n"),
        (DemoLanguage::Chinese, false, 1) => format!("我来查一下{list}的天气{also}。\n\n"),
        (DemoLanguage::Chinese, false, n) => {
            format!("我来查一下{list}的天气{also}，{n} 个调用一起发出。\n\n")
        }
    };
    text_then_calls(text, calls)
}

fn joined(names: &[String], language: DemoLanguage) -> String {
    match (names, language) {
        ([], _) => String::new(),
        ([one], _) => one.clone(),
        ([first @ .., last], DemoLanguage::English) => format!("{} and {last}", first.join(", ")),
        ([first @ .., last], DemoLanguage::Chinese) => format!("{}和{last}", first.join("、")),
    }
}

struct CityWeather {
    city: String,
    sky: String,
    degrees: Option<f64>,
}

fn report(scene: &DemoScene<'_>) -> ModelScript {
    let mut reports = Vec::new();
    let mut others = String::new();
    let weather = scene.answered.iter().filter(|(call, _)| call.name == TOOL);
    for (call, outcome) in weather {
        let asked = CITY.iter().find_map(|key| call.arguments.get(*key).and_then(Value::as_str));
        let city = asked.map(str::to_owned).or_else(|| outcome.field(CITY)).unwrap_or_else(|| "?".into());
        match read(outcome) {
            Some((sky, degrees)) => {
                let sky = sky_words(&sky, scene.language).to_owned();
                reports.push(CityWeather { city, sky, degrees });
            }
            None if outcome.is_output() => others
                .push_str(&format!("**{city}**\n\n{}\n", block_quote(&scene.describe_outcome(outcome), 8))),
            None => others.push_str(&format!("- **{city}**: {}\n", scene.describe_outcome(outcome))),
        }
    }
    let mut text = match reports.as_slice() {
        [] => String::new(),
        [one] => sentence(one, scene.language),
        several => table(several, scene.language),
    };
    if !others.is_empty() {
        let lead = match (reports.is_empty(), scene.language) {
            (true, _) => "",
            (false, DemoLanguage::English) => "And this is what became of the rest:\n\n",
            (false, DemoLanguage::Chinese) => "其余的情况如下：\n\n",
        };
        text.push_str(&format!("{lead}{others}\n"));
    }
    if let Some(outcome) = scene.latest_outcome(time::TOOL) {
        text.push_str(&time::sentence(scene, outcome));
        text.push_str("\n\n");
    }
    text.push_str(scene.choose_text(
        "*(The figures come from a demo tool, not from the sky.)*",
        "*（数据来自演示工具，不是真实天气。）*",
    ));
    ModelScript::new().say(text)
}

/// Sky and degrees, from a structured output or from a line like `Oslo: -3 °C, light snow, …`.
fn read(outcome: &ParsedOutcome) -> Option<(String, Option<f64>)> {
    let ParsedOutcome::Output(text, _) = outcome else { return None };
    if let Some(sky) = outcome.field(&["sky", "condition", "conditions", "weather", "summary", "description"])
    {
        let names = ["temperature_c", "temperature", "temp_c", "temp", "celsius", "degrees"];
        return Some((sky, outcome.field(&names).and_then(|text| leading_number(&text))));
    }
    let line = text.lines().next()?;
    let (_, facts) = line.split_once(": ")?;
    let (warmth, rest): (Vec<&str>, Vec<&str>) = facts.split(", ").partition(|fact| fact.contains('°'));
    let sky = rest.into_iter().find(|fact| !fact.contains(|c: char| c.is_ascii_digit()))?;
    Some((sky.to_owned(), Some(leading_number(warmth.first()?)?)))
}

fn leading_number(text: &str) -> Option<f64> {
    let is_part = |c: &char| c.is_ascii_digit() || matches!(c, '-' | '.');
    text.trim().chars().take_while(is_part).collect::<String>().parse().ok()
}

/// The sky in the language of the reply, where the tool's word is a usual one.
fn sky_words(sky: &str, language: DemoLanguage) -> &str {
    const WORDS: [(&str, &str); 8] = [
        ("sunny", "晴"),
        ("clear", "晴"),
        ("partly cloudy", "多云"),
        ("overcast", "阴"),
        ("light rain", "小雨"),
        ("thunderstorms", "雷雨"),
        ("fog", "雾"),
        ("snow", "雪"),
    ];
    let chinese = WORDS.iter().find(|(english, _)| *english == sky).map(|(_, chinese)| *chinese);
    language.choose(sky, chinese.unwrap_or(sky))
}

fn celsius(degrees: Option<f64>) -> String {
    degrees.map_or_else(|| "–".into(), |degrees| format!("{degrees} °C"))
}

fn is_wet(sky: &str) -> bool {
    let sky = sky.to_lowercase();
    ["rain", "shower", "drizzle", "storm", "雨"].iter().any(|word| sky.contains(word))
}

fn sentence(report: &CityWeather, language: DemoLanguage) -> String {
    let CityWeather { city, sky, degrees } = report;
    let degrees = celsius(*degrees);
    match (language, is_wet(sky)) {
        (DemoLanguage::English, wet) => {
            let advice = if wet { " Take an umbrella." } else { "" };
            format!("In **{city}** it is **{degrees}**, {sky}.{advice}\n\n")
        }
        (DemoLanguage::Chinese, wet) => {
            let advice = if wet { "出门记得带伞。" } else { "" };
            format!("**{city}**现在 **{degrees}**，{sky}。{advice}\n\n")
        }
    }
}

fn table(reports: &[CityWeather], language: DemoLanguage) -> String {
    let mut text = language
        .choose(
            "All of them have answered:\n\n| City | Sky | Temperature |\n|---|---|---:|\n",
            "都查到了：\n\n| 城市 | 天气 | 气温 |\n|---|---|---:|\n",
        )
        .to_owned();
    for CityWeather { city, sky, degrees } in reports {
        text.push_str(&format!("| {city} | {} | {} |\n", sky.replace('|', "/"), celsius(*degrees)));
    }
    text.push('\n');
    let mut by_degrees: Vec<&CityWeather> =
        reports.iter().filter(|report| report.degrees.is_some()).collect();
    by_degrees.sort_by(|a, b| a.degrees.partial_cmp(&b.degrees).unwrap_or(std::cmp::Ordering::Equal));
    if let (Some(coldest), Some(warmest)) = (by_degrees.first(), by_degrees.last())
        && coldest.degrees < warmest.degrees
    {
        let (hot, cold) = (celsius(warmest.degrees), celsius(coldest.degrees));
        text.push_str(&language.choose(
            format!(
                "It is warmest in **{}** ({hot}) and coldest in **{}** ({cold}).",
                warmest.city, coldest.city
            ),
            format!("最暖和的是**{}**（{hot}），最冷的是**{}**（{cold}）。", warmest.city, coldest.city),
        ));
    }
    let wet: Vec<String> = reports.iter().filter(|r| is_wet(&r.sky)).map(|r| r.city.clone()).collect();
    if !wet.is_empty() {
        let list = joined(&wet, language);
        text.push_str(
            &language.choose(format!(" You will want an umbrella in {list}."), format!("去{list}记得带伞。")),
        );
    }
    text.push_str("\n\n");
    text
}
