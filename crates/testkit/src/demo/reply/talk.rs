//! Replies without tools: what there is to ask, a count, and what to say when nothing fits.

use super::DemoScene;
use crate::script::{ModelScript, ScriptMove, SpeechMove};

/// Upper bound of counting: 50 seconds.
const COUNTED_MAX: u32 = 100;

/// Example prompts with the tool that each needs (empty: none), English and Chinese, and their purpose.
#[rustfmt::skip]
const EXAMPLES: &[(&str, [&str; 2], [&str; 2])] = &[
    ("demo_weather", ["What's the weather in Beijing, Paris and New York?", "北京、上海和广州的天气怎么样？"], ["three tool calls at once", "一次发出三个工具调用"]),
    ("time_now", ["What time is it in Tokyo?", "东京现在几点？"], ["a small one", "一个小工具"]),
    ("files_list", ["Which files are there?", "这里有哪些文件？"], ["a look into the folders that are allowed", "查看允许访问的目录"]),
    ("files_read", ["Read README.md", "读一下 README.md"], ["and it finds its way if there is none", "没有这个文件时，它会自己想办法"]),
    ("live2d_expression", ["Smile!", "笑一个！"], ["a gesture in mid-sentence", "在句子中间触发表情"]),
    ("demo_calendar", ["Put a meeting with Ada into my calendar, tomorrow at 3pm", "把明天下午三点和小李开会记到日历里"], ["asks you first", "会先征求您的同意"]),
    ("demo_fail", ["Call a tool that fails", "调用一个会失败的工具"], ["and what happens then", "看看之后会怎样"]),
    ("demo_weather", ["Call a tool that does not exist", "调用一个不存在的工具"], ["and mend it", "然后自己纠正"]),
    ("time_now", ["Call the clock again and again", "不停地看时钟"], ["and who puts an end to it", "看谁来叫停"]),
    ("", ["Give me a long answer", "来一篇长文"], ["headings, a list, a table, code", "标题、列表、表格、代码"]),
    ("", ["Think aloud", "想一想再回答"], ["reasoning apart from the answer", "思考与回答分开显示"]),
    ("", ["Say something in your own voice", "用语音说两句"], ["sound with its transcript", "带文字稿的声音"]),
    ("", ["What is 17 * 23?", "17 * 23 等于多少？"], ["without any tool", "不用任何工具"]),
];

pub(super) fn help(scene: &DemoScene<'_>) -> ModelScript {
    let lead = scene.choose_text(
        "Hello! I am **Throughline's demo model**: a script, not an AI. I understand about twenty requests, in English \
         and 中文, and I am here so that you can see the engine at work without a key. The tools are run for real, and \
         everything I say is *one* message that never breaks off.\n\nTry one of these:\n\n",
        "您好！我是 **Throughline 的演示模型**：一个脚本，不是人工智能。我能听懂大约二十种请求，中文和 English 都行。有了我，不需要密钥\
         也能看到引擎如何工作。工具是真实执行的，而我说的一切始终是*同一条*消息，从不中断。\n\n可以试试：\n\n",
    );
    let end = scene.choose_text(
        "\nWhen you have seen enough of me, connect a real model: `throughline --help` says how.",
        "\n看够了我，就接上真正的模型吧：`throughline --help` 会告诉您怎么做。",
    );
    ModelScript::new().say(format!("{lead}{}{end}", examples(scene, usize::MAX)))
}

/// Example questions whose tool is offered, or that need none.
fn examples(scene: &DemoScene<'_>, most: usize) -> String {
    let possible = EXAMPLES.iter().filter(|(tool, ..)| tool.is_empty() || scene.seen.tool(tool).is_some());
    let line = |(_, prompts, shows): &(&str, [&str; 2], [&str; 2])| {
        let [prompt, shows] = [prompts, shows].map(|pair| scene.choose_text(pair[0], pair[1]));
        scene.language.choose(format!("- *{prompt}* – {shows}\n"), format!("- *{prompt}*——{shows}\n"))
    };
    possible.take(most).map(line).collect()
}

pub(super) fn unknown_request(scene: &DemoScene<'_>) -> ModelScript {
    let heard: String = scene.text.trim().chars().take(200).collect();
    let heard = if heard.is_empty() { "…".to_owned() } else { heard.replace('\n', "\n> ") };
    let text = scene.language.choose(
        format!(
            "You wrote:\n\n> {heard}\n\nThat is not in my script. I am a demo, not an AI, and go by keywords. These I do \
             understand:\n\n{}\n*help* lists them all.",
            examples(scene, 4)
        ),
        format!(
            "您写的是：\n\n> {heard}\n\n这句不在我的剧本里。我只是演示脚本，不是人工智能，靠关键词认路。下面这些我听得懂：\n\n{}\n说*帮助*可以看到全部。",
            examples(scene, 4)
        ),
    );
    ModelScript::new().say(text)
}

/// Slow sound between two texts: gives time to stop it, to reconnect, to watch. Counts to the requested
/// number, or to 20.
pub(super) fn count(scene: &DemoScene<'_>) -> ModelScript {
    let asked = scene.text.split(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse::<u32>().ok());
    let last = asked.unwrap_or(20).clamp(2, COUNTED_MAX);
    let slowly = |text: String| {
        ScriptMove::Say(SpeechMove { text, chunk_chars: Some(usize::MAX), tokens_per_second: Some(2.0) })
    };
    let lead = scene.choose_text(
        "Slowly, then. This is a good moment to press Ctrl-C and see what is kept.\n\n",
        "好的，慢慢来。这时候正好按一下 Ctrl-C，看看会留下什么。\n\n",
    );
    let script = (1..=last).fold(ModelScript::new().say(lead), |script, n| {
        let (english, chinese) = if n == last { (".", "。") } else { (", ", "、") };
        script.then(slowly(format!("{n}{}", scene.language.choose(english, chinese))))
    });
    script.say(scene.choose_text("\n\nNobody stopped me.", "\n\n没有人拦我。"))
}
