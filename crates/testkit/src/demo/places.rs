//! Cities that the demo knows by name, in both languages.

use super::language::Language;

/// A city with its names and time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub english: &'static str,
    pub chinese: &'static str,
    pub zone: &'static str,
}

impl Place {
    pub fn name(self, language: Language) -> &'static str {
        language.choose(self.english, self.chinese)
    }
}

const fn place(english: &'static str, chinese: &'static str, zone: &'static str) -> Place {
    Place { english, chinese, zone }
}

const PLACES: &[Place] = &[
    place("Beijing", "北京", "Asia/Shanghai"),
    place("Shanghai", "上海", "Asia/Shanghai"),
    place("Guangzhou", "广州", "Asia/Shanghai"),
    place("Shenzhen", "深圳", "Asia/Shanghai"),
    place("Hangzhou", "杭州", "Asia/Shanghai"),
    place("Chengdu", "成都", "Asia/Shanghai"),
    place("Xi'an", "西安", "Asia/Shanghai"),
    place("Wuhan", "武汉", "Asia/Shanghai"),
    place("Nanjing", "南京", "Asia/Shanghai"),
    place("Chongqing", "重庆", "Asia/Shanghai"),
    place("Harbin", "哈尔滨", "Asia/Shanghai"),
    place("Hong Kong", "香港", "Asia/Hong_Kong"),
    place("Taipei", "台北", "Asia/Taipei"),
    place("Tokyo", "东京", "Asia/Tokyo"),
    place("Osaka", "大阪", "Asia/Tokyo"),
    place("Seoul", "首尔", "Asia/Seoul"),
    place("Singapore", "新加坡", "Asia/Singapore"),
    place("Bangkok", "曼谷", "Asia/Bangkok"),
    place("Mumbai", "孟买", "Asia/Kolkata"),
    place("Dubai", "迪拜", "Asia/Dubai"),
    place("Istanbul", "伊斯坦布尔", "Europe/Istanbul"),
    place("Moscow", "莫斯科", "Europe/Moscow"),
    place("London", "伦敦", "Europe/London"),
    place("Paris", "巴黎", "Europe/Paris"),
    place("Berlin", "柏林", "Europe/Berlin"),
    place("Munich", "慕尼黑", "Europe/Berlin"),
    place("Vienna", "维也纳", "Europe/Vienna"),
    place("Zurich", "苏黎世", "Europe/Zurich"),
    place("Rome", "罗马", "Europe/Rome"),
    place("Madrid", "马德里", "Europe/Madrid"),
    place("Lisbon", "里斯本", "Europe/Lisbon"),
    place("Amsterdam", "阿姆斯特丹", "Europe/Amsterdam"),
    place("Oslo", "奥斯陆", "Europe/Oslo"),
    place("Stockholm", "斯德哥尔摩", "Europe/Stockholm"),
    place("Helsinki", "赫尔辛基", "Europe/Helsinki"),
    place("Reykjavik", "雷克雅未克", "Atlantic/Reykjavik"),
    place("Cairo", "开罗", "Africa/Cairo"),
    place("Nairobi", "内罗毕", "Africa/Nairobi"),
    place("Cape Town", "开普敦", "Africa/Johannesburg"),
    place("New York", "纽约", "America/New_York"),
    place("Chicago", "芝加哥", "America/Chicago"),
    place("San Francisco", "旧金山", "America/Los_Angeles"),
    place("Los Angeles", "洛杉矶", "America/Los_Angeles"),
    place("Toronto", "多伦多", "America/Toronto"),
    place("Mexico City", "墨西哥城", "America/Mexico_City"),
    place("Sao Paulo", "圣保罗", "America/Sao_Paulo"),
    place("Sydney", "悉尼", "Australia/Sydney"),
    place("Melbourne", "墨尔本", "Australia/Melbourne"),
    place("Auckland", "奥克兰", "Pacific/Auckland"),
];

/// What to show when nobody names a city.
pub(crate) const DEFAULT: [&str; 3] = ["Beijing", "Paris", "New York"];

/// The known cities in a text, in order of appearance.
pub(crate) fn named_in(text: &str) -> Vec<Place> {
    let lower = text.to_lowercase();
    let at = |place: &Place| {
        let english = lower.find(&place.english.to_lowercase());
        english.into_iter().chain(text.find(place.chinese)).min().map(|at| (at, *place))
    };
    let mut found: Vec<(usize, Place)> = PLACES.iter().filter_map(at).collect();
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, place)| place).collect()
}

/// A known city by its English name.
pub(crate) fn by_name(english: &str) -> Option<Place> {
    PLACES.iter().find(|place| place.english == english).copied()
}

/// Cities to ask about, as the user wrote them: known ones, else capitalised words behind "in" or "for".
pub(crate) fn wanted(text: &str, language: Language) -> Vec<String> {
    let known = named_in(text);
    if !known.is_empty() {
        return known.into_iter().map(|place| place.name(language).to_owned()).collect();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let start = words
        .iter()
        .position(|word| matches!(*word, "in" | "for" | "at" | "of"))
        .map_or(words.len(), |at| at + 1);
    let (mut names, mut name) = (Vec::new(), Vec::new());
    for word in &words[start..] {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if bare.starts_with(char::is_uppercase) {
            name.push(bare);
            if bare.len() < word.len() {
                names.push(std::mem::take(&mut name).join(" "));
            }
        } else if !name.is_empty() {
            names.push(std::mem::take(&mut name).join(" "));
        }
    }
    if !name.is_empty() {
        names.push(name.join(" "));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cities_are_found_in_both_languages_and_in_order() {
        let check =
            |text: &str, language, expected: &[&str]| assert_eq!(wanted(text, language), expected, "{text}");
        check("weather in Oslo, paris and New York?", Language::English, &["Oslo", "Paris", "New York"]);
        check("北京、上海和广州的天气", Language::Chinese, &["北京", "上海", "广州"]);
        check("Will it rain in Ulm or Bad Ischl tomorrow?", Language::English, &["Ulm", "Bad Ischl"]);
        check("天气怎么样", Language::Chinese, &[]);
        assert!(DEFAULT.iter().all(|name| by_name(name).is_some()));
    }
}
