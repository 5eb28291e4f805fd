//! What the user wants, by keywords.

/// A request that the demo understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
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
const KEYWORDS: &[(Ask, &[&str])] = &[
    (
        Ask::UnknownTool,
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
        Ask::BrokenArguments,
        &["broken json", "malformed", "invalid json", "坏的json", "坏json", "损坏的参数", "残缺的参数"],
    ),
    (
        Ask::WrongArguments,
        &["wrong argument", "bad argument", "invalid argument", "错误的参数", "参数错误", "错参数"],
    ),
    (
        Ask::Loop,
        &["again and again", "endless*", "forever", "in a loop", "循环", "一直调用", "反复", "不停地"],
    ),
    (Ask::Fail, &["fail*", "goes wrong", "break*", "crash*", "失败", "出错", "报错", "崩溃"]),
    (
        Ask::Calendar,
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
        Ask::Weather,
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
        Ask::Gesture,
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
    (Ask::SearchFiles, &["search*", "grep", "find the word", "look for", "搜索", "查找", "搜一下", "找一下"]),
    (
        Ask::ReadFile,
        &["read", "open the file", "show me the file", "readme", "读", "打开文件", "看看文件内容"],
    ),
    (Ask::ListFiles, &["file*", "folder*", "director*", "文件", "目录"]),
    (Ask::Think, &["think", "thinking", "reason", "puzzle", "riddle", "思考", "想一想", "推理", "谜"]),
    (
        Ask::LongAnswer,
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
    (Ask::Picture, &["picture*", "image*", "photo*", "图片", "照片", "图像"]),
    (Ask::Count, &["count", "slowly", "数到", "数数", "慢慢"]),
    (Ask::Time, &["time", "clock", "date", "what day", "几点", "时间", "日期", "星期几", "几号"]),
    (
        Ask::Help,
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
    (Ask::Thanks, &["thanks", "thank you", "bye", "谢谢", "多谢", "再见"]),
];

impl Ask {
    /// The first request whose keyword is in the text.
    pub fn of(text: &str) -> Self {
        if super::reply::sum::in_text(text).is_some() {
            return Self::Sum;
        }
        let lower = text.to_lowercase();
        let has = |keywords: &[&str]| keywords.iter().any(|keyword| contains(&lower, keyword));
        KEYWORDS.iter().find(|(_, keywords)| has(keywords)).map_or(Self::Other, |(ask, _)| *ask)
    }

    /// Whether this one is asked for too.
    pub fn also_in(self, text: &str) -> bool {
        let lower = text.to_lowercase();
        KEYWORDS.iter().any(|(ask, words)| *ask == self && words.iter().any(|word| contains(&lower, word)))
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
            ("What's the weather in Beijing, Paris and New York?", Ask::Weather),
            ("三个城市的天气", Ask::Weather),
            ("Sometimes I wonder", Ask::Other),
            ("What time is it in Tokyo?", Ask::Time),
            ("现在几点了？", Ask::Time),
            ("Which files are there?", Ask::ListFiles),
            ("Read README.md, please", Ask::ReadFile),
            ("search the files for \"token\"", Ask::SearchFiles),
            ("Smile!", Ask::Gesture),
            ("Put a meeting with Ada into my calendar for tomorrow at 3pm", Ask::Calendar),
            ("明天下午三点开会，记到日历里", Ask::Calendar),
            ("Call a tool that fails", Ask::Fail),
            ("Call a tool that does not exist", Ask::UnknownTool),
            ("Call a tool with wrong arguments", Ask::WrongArguments),
            ("Send malformed JSON", Ask::BrokenArguments),
            ("Call the clock again and again", Ask::Loop),
            ("Give me a long answer", Ask::LongAnswer),
            ("Think aloud about a puzzle", Ask::Think),
            ("What is 17 * 23?", Ask::Sum),
            ("你能做什么？", Ask::Help),
            ("hi", Ask::Help),
            ("Count to ten slowly", Ask::Count),
            ("谢谢！", Ask::Thanks),
            ("blue", Ask::Other),
        ] {
            assert_eq!(Ask::of(text), expected, "{text}");
        }
    }
}
