//! Cities that the demo knows by name, in both languages.

use super::language::DemoLanguage;

/// A city with its names and time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DemoCity {
    pub english: &'static str,
    pub chinese: &'static str,
    pub zone: &'static str,
}

impl DemoCity {
    pub fn name(self, language: DemoLanguage) -> &'static str {
        language.choose(self.english, self.chinese)
    }
}

const fn city(english: &'static str, chinese: &'static str, zone: &'static str) -> DemoCity {
    DemoCity { english, chinese, zone }
}

const CITIES: &[DemoCity] = &[
    city("Beijing", "北京", "Asia/Shanghai"),
    city("Shanghai", "上海", "Asia/Shanghai"),
    city("Guangzhou", "广州", "Asia/Shanghai"),
    city("Shenzhen", "深圳", "Asia/Shanghai"),
    city("Hangzhou", "杭州", "Asia/Shanghai"),
    city("Chengdu", "成都", "Asia/Shanghai"),
    city("Xi'an", "西安", "Asia/Shanghai"),
    city("Wuhan", "武汉", "Asia/Shanghai"),
    city("Nanjing", "南京", "Asia/Shanghai"),
    city("Chongqing", "重庆", "Asia/Shanghai"),
    city("Harbin", "哈尔滨", "Asia/Shanghai"),
    city("Hong Kong", "香港", "Asia/Hong_Kong"),
    city("Taipei", "台北", "Asia/Taipei"),
    city("Tokyo", "东京", "Asia/Tokyo"),
    city("Osaka", "大阪", "Asia/Tokyo"),
    city("Seoul", "首尔", "Asia/Seoul"),
    city("Singapore", "新加坡", "Asia/Singapore"),
    city("Bangkok", "曼谷", "Asia/Bangkok"),
    city("Mumbai", "孟买", "Asia/Kolkata"),
    city("Dubai", "迪拜", "Asia/Dubai"),
    city("Istanbul", "伊斯坦布尔", "Europe/Istanbul"),
    city("Moscow", "莫斯科", "Europe/Moscow"),
    city("London", "伦敦", "Europe/London"),
    city("Paris", "巴黎", "Europe/Paris"),
    city("Berlin", "柏林", "Europe/Berlin"),
    city("Munich", "慕尼黑", "Europe/Berlin"),
    city("Vienna", "维也纳", "Europe/Vienna"),
    city("Zurich", "苏黎世", "Europe/Zurich"),
    city("Rome", "罗马", "Europe/Rome"),
    city("Madrid", "马德里", "Europe/Madrid"),
    city("Lisbon", "里斯本", "Europe/Lisbon"),
    city("Amsterdam", "阿姆斯特丹", "Europe/Amsterdam"),
    city("Oslo", "奥斯陆", "Europe/Oslo"),
    city("Stockholm", "斯德哥尔摩", "Europe/Stockholm"),
    city("Helsinki", "赫尔辛基", "Europe/Helsinki"),
    city("Reykjavik", "雷克雅未克", "Atlantic/Reykjavik"),
    city("Cairo", "开罗", "Africa/Cairo"),
    city("Nairobi", "内罗毕", "Africa/Nairobi"),
    city("Cape Town", "开普敦", "Africa/Johannesburg"),
    city("New York", "纽约", "America/New_York"),
    city("Chicago", "芝加哥", "America/Chicago"),
    city("San Francisco", "旧金山", "America/Los_Angeles"),
    city("Los Angeles", "洛杉矶", "America/Los_Angeles"),
    city("Toronto", "多伦多", "America/Toronto"),
    city("Mexico City", "墨西哥城", "America/Mexico_City"),
    city("Sao Paulo", "圣保罗", "America/Sao_Paulo"),
    city("Sydney", "悉尼", "Australia/Sydney"),
    city("Melbourne", "墨尔本", "Australia/Melbourne"),
    city("Auckland", "奥克兰", "Pacific/Auckland"),
];

/// Cities shown if the user names none.
pub(crate) const DEFAULT: [&str; 3] = ["Beijing", "Paris", "New York"];

/// The known cities in a text, in order of appearance.
pub(crate) fn cities_in(text: &str) -> Vec<DemoCity> {
    let lower = text.to_lowercase();
    let at = |city: &DemoCity| {
        let english = lower.find(&city.english.to_lowercase());
        english.into_iter().chain(text.find(city.chinese)).min().map(|at| (at, *city))
    };
    let mut cities: Vec<(usize, DemoCity)> = CITIES.iter().filter_map(at).collect();
    cities.sort_by_key(|(at, _)| *at);
    cities.into_iter().map(|(_, city)| city).collect()
}

/// A known city by its English name.
pub(crate) fn by_name(english: &str) -> Option<DemoCity> {
    CITIES.iter().find(|city| city.english == english).copied()
}

/// Cities to ask about, as the user wrote them: known ones, else capitalized words after "in" or "for".
pub(crate) fn requested_cities(text: &str, language: DemoLanguage) -> Vec<String> {
    let known = cities_in(text);
    if !known.is_empty() {
        return known.into_iter().map(|city| city.name(language).to_owned()).collect();
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
        let check = |text: &str, language, expected: &[&str]| {
            assert_eq!(requested_cities(text, language), expected, "{text}")
        };
        check("weather in Oslo, paris and New York?", DemoLanguage::English, &["Oslo", "Paris", "New York"]);
        check("北京、上海和广州的天气", DemoLanguage::Chinese, &["北京", "上海", "广州"]);
        check("Will it rain in Ulm or Bad Ischl tomorrow?", DemoLanguage::English, &["Ulm", "Bad Ischl"]);
        check("天气怎么样", DemoLanguage::Chinese, &[]);
        assert!(DEFAULT.iter().all(|name| by_name(name).is_some()));
    }
}
