//! The demo's rules: keywords of the last user message, and the reply that they lead to.

use super::{DemoScene, avatar, calendar, files, fixed, picture, sum, talk, time, trouble, weather};
use crate::script::ModelScript;

/// A name, keywords and a reply.
type DemoRule = (&'static str, &'static str, fn(&DemoScene<'_>) -> ModelScript);

/// Keywords for the time, which may be combined with the weather.
pub(super) const TIME: &str = "time|clock|date|what day|几点|时间|日期|星期几|几号";

/// The rules, tried in this order. English keywords match whole words, or the beginning of one where they end in `*`;
/// phrases and Chinese ones match anywhere.
#[rustfmt::skip]
const RULES: &[DemoRule] = &[
    ("unknown_tool", "unknown tool|misspelt|misspelled|does not exist|doesn't exist|不存在的工具|未知工具|拼错", trouble::unknown_tool),
    ("broken_arguments", "broken json|malformed|invalid json|坏的json|坏json|损坏的参数|残缺的参数", trouble::broken_arguments),
    ("wrong_arguments", "wrong argument|bad argument|invalid argument|错误的参数|参数错误|错参数", trouble::wrong_arguments),
    ("loop", "again and again|endless*|forever|in a loop|循环|一直调用|反复|不停地", trouble::call_in_loop),
    ("fail", "fail*|goes wrong|break*|crash*|失败|出错|报错|崩溃", trouble::failure),
    ("calendar", "calendar|meeting|appointment|remind*|schedule|日历|日程|会议|开会|提醒|约会|预约", calendar::reply),
    ("weather", "weather|temperature*|rain*|sunny|forecast|umbrella|snow*|天气|气温|下雨|带伞|温度|下雪", weather::reply),
    ("gesture", "smile*|wave|avatar|wink|nod|dance|expression|gesture|laugh|微笑|笑一|笑个|挥手|眨眼|点头|跳舞|表情|动作|打个招呼", avatar::reply),
    ("search_files", "search*|grep|find the word|look for|搜索|查找|搜一下|找一下", files::search),
    ("read_file", "read|open the file|show me the file|readme|读|打开文件|看看文件内容", files::read),
    ("list_files", "file*|folder*|director*|文件|目录", files::list),
    ("think", "think|thinking|reason|puzzle|riddle|思考|想一想|推理|谜", |scene| fixed::reply("think", scene)),
    ("speak", "speak|speaking|voice|aloud|语音|说出来|念出来", |scene| fixed::reply("speak", scene)),
    ("long_answer", "long|essay|article|markdown|explain*|how do you work|how does it work|tell me about|长一点|长文|长篇|文章|详细|介绍|讲讲|解释|怎么工作", |scene| fixed::reply("long_answer", scene)),
    ("picture", "picture*|image*|photo*|图片|照片|图像", picture::reply),
    ("count", "count|slowly|数到|数数|慢慢", talk::count),
    ("time", TIME, time::reply),
    ("help", "help|what can you|who are you|what are you|hello|hi|hey|帮助|能做什么|会什么|会做什么|你是谁|你好|您好", talk::help),
    ("thanks", "thanks|thank you|bye|谢谢|多谢|再见", |scene| fixed::reply("thanks", scene)),
];

/// The reply to the last user message: its pictures, or the rule for its text.
pub(super) fn reply(scene: &DemoScene<'_>) -> ModelScript {
    let reply = if scene.images.is_empty() { rule_for(scene.text).2 } else { picture::reply };
    reply(scene)
}

/// The rule for a text: a sum, else the first rule with a keyword in it.
fn rule_for(text: &str) -> DemoRule {
    if sum::find_sum(text).is_some() {
        return ("sum", "", sum::reply);
    }
    let found = RULES.iter().find(|(_, keywords, _)| has_keyword(text, keywords));
    found.copied().unwrap_or(("other", "", talk::unknown_request))
}

/// True if one of the keywords is in the text.
pub(super) fn has_keyword(text: &str, keywords: &str) -> bool {
    let lower = text.to_lowercase();
    keywords.split('|').any(|keyword| contains(&lower, keyword))
}

fn contains(lower: &str, keyword: &str) -> bool {
    if !keyword.is_ascii() || keyword.contains(' ') {
        return lower.contains(keyword);
    }
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '\'');
    match keyword.strip_suffix('*') {
        Some(stem) => words.any(|word| word.starts_with(stem)),
        None => words.any(|word| word == keyword),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_classified_by_keywords() {
        for (text, expected) in [
            ("What's the weather in Beijing, Paris and New York?", "weather"),
            ("三个城市的天气", "weather"),
            ("Sometimes I wonder", "other"),
            ("What time is it in Tokyo?", "time"),
            ("现在几点了？", "time"),
            ("Which files are there?", "list_files"),
            ("Read README.md, please", "read_file"),
            ("search the files for \"token\"", "search_files"),
            ("Smile!", "gesture"),
            ("Put a meeting with Ada into my calendar for tomorrow at 3pm", "calendar"),
            ("明天下午三点开会，记到日历里", "calendar"),
            ("Call a tool that fails", "fail"),
            ("Call a tool that does not exist", "unknown_tool"),
            ("Call a tool with wrong arguments", "wrong_arguments"),
            ("Send malformed JSON", "broken_arguments"),
            ("Call the clock again and again", "loop"),
            ("Give me a long answer", "long_answer"),
            ("Think aloud about a puzzle", "think"),
            ("Say something in your own voice", "speak"),
            ("用语音说两句", "speak"),
            ("What is 17 * 23?", "sum"),
            ("你能做什么？", "help"),
            ("hi", "help"),
            ("Count to ten slowly", "count"),
            ("谢谢！", "thanks"),
            ("blue", "other"),
        ] {
            assert_eq!(rule_for(text).0, expected, "{text}");
        }
    }
}
