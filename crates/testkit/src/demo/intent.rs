//! Intents of the user, found by keywords.

/// A request that the demo understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemoIntent {
    Help,
    Thanks,
    Weather,
    Time,
    ListFiles,
    ReadFile,
    SearchFiles,
    Gesture,
    Calendar,
    Fail,
    UnknownTool,
    WrongArguments,
    BrokenArguments,
    Loop,
    LongAnswer,
    Think,
    Picture,
    Count,
    Sum,
    /// Nothing of the above.
    Other,
}

/// Keywords of each request, tried in this order. English ones match whole words, or the beginning of one where they
/// end in `*`; phrases and Chinese ones match anywhere.
const KEYWORDS: &[(DemoIntent, &[&str])] = &[
    (
        DemoIntent::UnknownTool,
        &[
            "unknown tool",
            "misspelt",
            "misspelled",
            "does not exist",
            "doesn't exist",
            "不存在的工具",
            "未知工具",
            "拼错",
        ],
    ),
    (
        DemoIntent::BrokenArguments,
        &["broken json", "malformed", "invalid json", "坏的json", "坏json", "损坏的参数", "残缺的参数"],
    ),
    (
        DemoIntent::WrongArguments,
        &["wrong argument", "bad argument", "invalid argument", "错误的参数", "参数错误", "错参数"],
    ),
    (
        DemoIntent::Loop,
        &["again and again", "endless*", "forever", "in a loop", "循环", "一直调用", "反复", "不停地"],
    ),
    (DemoIntent::Fail, &["fail*", "goes wrong", "break*", "crash*", "失败", "出错", "报错", "崩溃"]),
    (
        DemoIntent::Calendar,
        &[
            "calendar",
            "meeting",
            "appointment",
            "remind*",
            "schedule",
            "日历",
            "日程",
            "会议",
            "开会",
            "提醒",
            "约会",
            "预约",
        ],
    ),
    (
        DemoIntent::Weather,
        &[
            "weather",
            "temperature*",
            "rain*",
            "sunny",
            "forecast",
            "umbrella",
            "snow*",
            "天气",
            "气温",
            "下雨",
            "带伞",
            "温度",
            "下雪",
        ],
    ),
    (
        DemoIntent::Gesture,
        &[
            "smile*",
            "wave",
            "avatar",
            "wink",
            "nod",
            "dance",
            "expression",
            "gesture",
            "laugh",
            "微笑",
            "笑一",
            "笑个",
            "挥手",
            "眨眼",
            "点头",
            "跳舞",
            "表情",
            "动作",
            "打个招呼",
        ],
    ),
    (
        DemoIntent::SearchFiles,
        &["search*", "grep", "find the word", "look for", "搜索", "查找", "搜一下", "找一下"],
    ),
    (
        DemoIntent::ReadFile,
        &["read", "open the file", "show me the file", "readme", "读", "打开文件", "看看文件内容"],
    ),
    (DemoIntent::ListFiles, &["file*", "folder*", "director*", "文件", "目录"]),
    (DemoIntent::Think, &["think", "thinking", "reason", "puzzle", "riddle", "思考", "想一想", "推理", "谜"]),
    (
        DemoIntent::LongAnswer,
        &[
            "long",
            "essay",
            "article",
            "markdown",
            "explain*",
            "how do you work",
            "how does it work",
            "tell me about",
            "长一点",
            "长文",
            "长篇",
            "文章",
            "详细",
            "介绍",
            "讲讲",
            "解释",
            "怎么工作",
        ],
    ),
    (DemoIntent::Picture, &["picture*", "image*", "photo*", "图片", "照片", "图像"]),
    (DemoIntent::Count, &["count", "slowly", "数到", "数数", "慢慢"]),
    (DemoIntent::Time, &["time", "clock", "date", "what day", "几点", "时间", "日期", "星期几", "几号"]),
    (
        DemoIntent::Help,
        &[
            "help",
            "what can you",
            "who are you",
            "what are you",
            "hello",
            "hi",
            "hey",
            "帮助",
            "能做什么",
            "会什么",
            "会做什么",
            "你是谁",
            "你好",
            "您好",
        ],
    ),
    (DemoIntent::Thanks, &["thanks", "thank you", "bye", "谢谢", "多谢", "再见"]),
];

impl DemoIntent {
    /// The first request whose keyword is in the text.
    pub fn of(text: &str) -> Self {
        if super::reply::sum::find_sum(text).is_some() {
            return Self::Sum;
        }
        let lower = text.to_lowercase();
        let has = |keywords: &[&str]| keywords.iter().any(|keyword| contains(&lower, keyword));
        KEYWORDS.iter().find(|(_, keywords)| has(keywords)).map_or(Self::Other, |(intent, _)| *intent)
    }

    /// True if this intent is in the text, too.
    pub fn is_also_in(self, text: &str) -> bool {
        let lower = text.to_lowercase();
        KEYWORDS
            .iter()
            .any(|(intent, words)| *intent == self && words.iter().any(|word| contains(&lower, word)))
    }
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
    fn requests_are_told_apart_by_keywords() {
        for (text, expected) in [
            ("What's the weather in Beijing, Paris and New York?", DemoIntent::Weather),
            ("三个城市的天气", DemoIntent::Weather),
            ("Sometimes I wonder", DemoIntent::Other),
            ("What time is it in Tokyo?", DemoIntent::Time),
            ("现在几点了？", DemoIntent::Time),
            ("Which files are there?", DemoIntent::ListFiles),
            ("Read README.md, please", DemoIntent::ReadFile),
            ("search the files for \"token\"", DemoIntent::SearchFiles),
            ("Smile!", DemoIntent::Gesture),
            ("Put a meeting with Ada into my calendar for tomorrow at 3pm", DemoIntent::Calendar),
            ("明天下午三点开会，记到日历里", DemoIntent::Calendar),
            ("Call a tool that fails", DemoIntent::Fail),
            ("Call a tool that does not exist", DemoIntent::UnknownTool),
            ("Call a tool with wrong arguments", DemoIntent::WrongArguments),
            ("Send malformed JSON", DemoIntent::BrokenArguments),
            ("Call the clock again and again", DemoIntent::Loop),
            ("Give me a long answer", DemoIntent::LongAnswer),
            ("Think aloud about a puzzle", DemoIntent::Think),
            ("What is 17 * 23?", DemoIntent::Sum),
            ("你能做什么？", DemoIntent::Help),
            ("hi", DemoIntent::Help),
            ("Count to ten slowly", DemoIntent::Count),
            ("谢谢！", DemoIntent::Thanks),
            ("blue", DemoIntent::Other),
        ] {
            assert_eq!(DemoIntent::of(text), expected, "{text}");
        }
    }
}
