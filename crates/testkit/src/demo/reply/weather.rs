//! Weather in one city or several: all calls in one step, a table from their results.

use super::super::ask::Ask;
use super::super::language::Language;
use super::super::offer::Wish;
use super::super::places;
use super::super::told::Told;
use super::{Scene, quoted, saying_then, time};
use crate::script::Script;
use serde_json::Value;

const TOOL: &str = "demo_weather";
const CITY: &[&str] = &["city", "location", "place", "name"];

pub(super) fn reply(scene: &Scene<'_>) -> Script {
    if scene.answered.is_empty() { ask(scene) } else { report(scene) }
}

fn ask(scene: &Scene<'_>) -> Script {
    let named = places::wanted(scene.text, scene.language);
    let cities = if named.is_empty() {
        let known = places::DEFAULT.iter().filter_map(|name| places::by_name(name));
        known.map(|place| place.name(scene.language).to_owned()).collect()
    } else {
        named.clone()
    };
    let call = |city: &String| scene.call(TOOL, &[Wish(CITY, city.as_str().into())]);
    let mut calls: Vec<_> = cities.iter().filter_map(call).collect();
    if calls.is_empty() {
        return scene.missing(TOOL);
    }
    let mut also = "";
    if Ask::Time.also_in(scene.text)
        && let Some(clock) = time::call(scene)
    {
        calls.push(clock);
        also = scene.words(", and at the clock", "，顺便看一下时间");
    }
    let list = joined(&cities, scene.language);
    let text = match (scene.language, named.is_empty(), cities.len()) {
        (Language::English, true, _) => {
            format!("You named no city, so I'll look at three of them: {list}{also}.\n\n")
        }
        (Language::English, false, 1) => format!("Let me look at the weather in {list}{also}.\n\n"),
        (Language::English, false, n) => {
            format!("Let me look at {list}{also}: {n} calls, all in one go.\n\n")
        }
        (Language::Chinese, true, _) => format!("您没有说是哪座城市，我就看三座：{list}{also}。\n\n"),
        (Language::Chinese, false, 1) => format!("我来查一下{list}的天气{also}。\n\n"),
        (Language::Chinese, false, n) => format!("我来查一下{list}的天气{also}，{n} 个调用一起发出。\n\n"),
    };
    saying_then(text, calls)
}

fn joined(names: &[String], language: Language) -> String {
    match (names, language) {
        ([], _) => String::new(),
        ([one], _) => one.clone(),
        ([first @ .., last], Language::English) => format!("{} and {last}", first.join(", ")),
        ([first @ .., last], Language::Chinese) => format!("{}和{last}", first.join("、")),
    }
}

struct Report {
    city: String,
    sky: String,
    degrees: Option<f64>,
}

fn report(scene: &Scene<'_>) -> Script {
    let mut reports = Vec::new();
    let mut others = String::new();
    let weather = scene.answered.iter().filter(|(call, _)| call.name == TOOL);
    for (call, told) in weather {
        let asked = CITY.iter().find_map(|key| call.arguments.get(*key).and_then(Value::as_str));
        let city = asked.map(str::to_owned).or_else(|| told.field(CITY)).unwrap_or_else(|| "?".into());
        match read(told) {
            Some((sky, degrees)) => {
                let sky = sky_words(&sky, scene.language).to_owned();
                reports.push(Report { city, sky, degrees });
            }
            None if told.is_output() => {
                others.push_str(&format!("**{city}**\n\n{}\n", quoted(&scene.why(told), 8)))
            }
            None => others.push_str(&format!("- **{city}**: {}\n", scene.why(told))),
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
            (false, Language::English) => "And this is what became of the rest:\n\n",
            (false, Language::Chinese) => "其余的情况如下：\n\n",
        };
        text.push_str(&format!("{lead}{others}\n"));
    }
    if let Some(told) = scene.told(time::TOOL) {
        text.push_str(&time::sentence(scene, told));
        text.push_str("\n\n");
    }
    text.push_str(scene.words(
        "*(The figures come from a demo tool, not from the sky.)*",
        "*（数据来自演示工具，不是真实天气。）*",
    ));
    Script::new().say(text)
}

/// Sky and degrees, from a structured output or from a line like `Oslo: -3 °C, light snow, …`.
fn read(told: &Told) -> Option<(String, Option<f64>)> {
    let Told::Output(text, _) = told else { return None };
    if let Some(sky) = told.field(&["sky", "condition", "conditions", "weather", "summary", "description"]) {
        let names = ["temperature_c", "temperature", "temp_c", "temp", "celsius", "degrees"];
        return Some((sky, told.field(&names).and_then(|text| leading_number(&text))));
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
fn sky_words(sky: &str, language: Language) -> &str {
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

fn sentence(report: &Report, language: Language) -> String {
    let Report { city, sky, degrees } = report;
    let degrees = celsius(*degrees);
    match (language, is_wet(sky)) {
        (Language::English, wet) => {
            let advice = if wet { " Take an umbrella." } else { "" };
            format!("In **{city}** it is **{degrees}**, {sky}.{advice}\n\n")
        }
        (Language::Chinese, wet) => {
            let advice = if wet { "出门记得带伞。" } else { "" };
            format!("**{city}**现在 **{degrees}**，{sky}。{advice}\n\n")
        }
    }
}

fn table(reports: &[Report], language: Language) -> String {
    let mut text = language
        .choose(
            "All of them have answered:\n\n| City | Sky | Temperature |\n|---|---|---:|\n",
            "都查到了：\n\n| 城市 | 天气 | 气温 |\n|---|---|---:|\n",
        )
        .to_owned();
    for Report { city, sky, degrees } in reports {
        text.push_str(&format!("| {city} | {} | {} |\n", sky.replace('|', "/"), celsius(*degrees)));
    }
    text.push('\n');
    let mut by_degrees: Vec<&Report> = reports.iter().filter(|report| report.degrees.is_some()).collect();
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
