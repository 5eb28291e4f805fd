//! Replies without tools: what there is to ask, a long text, a thought, a count, and what to say when nothing fits.

use super::super::language::DemoLanguage;
use super::DemoScene;
use crate::script::{ModelScript, ScriptMove, SpeechMove};

/// Upper bound of counting: 50 seconds.
const COUNTED_MAX: u32 = 100;

/// Example prompts with the tool that each needs (empty: none), English and Chinese, and what they show.
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

pub(super) fn thanks(scene: &DemoScene<'_>) -> ModelScript {
    ModelScript::new()
        .say(scene.choose_text("You're welcome. It was all in the script.", "不客气，剧本里都写好了。"))
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

pub(super) fn think(scene: &DemoScene<'_>) -> ModelScript {
    let (thought, answer) = scene.language.choose(
        (
            "A bat and a ball cost 1.10 together, and the bat costs 1.00 more than the ball. The first number that comes \
             to mind is 0.10 for the ball. Let me check that: then the bat would be 1.10, and the two together 1.20. Too \
             much. So call the ball x. The bat is x + 1.00, together 2x + 1.00 = 1.10, hence 2x = 0.10 and x = 0.05. \
             Check: 0.05 + 1.05 = 1.10, and 1.05 - 0.05 = 1.00. Good.",
            "*A bat and a ball cost 1.10 together. The bat costs 1.00 more than the ball. What does the ball \
             cost?*\n\nThe ball costs **0.05**. The tempting answer, 0.10, would make the bat 1.10 and both together \
             1.20.\n\nWhat I thought on the way came as *reasoning*: it is kept apart from this answer, folded away, and \
             sent back to the models that want it back. (As a script I have not really thought, of course. The sum is \
             right all the same.)",
        ),
        (
            "球拍和球一共 1.10 元，球拍比球贵 1.00 元。第一反应是球 0.10 元。检验一下：那样球拍就是 1.10 元，合计 1.20 元，太多了。\
             设球为 x，则球拍为 x + 1.00，合计 2x + 1.00 = 1.10，所以 2x = 0.10，x = 0.05。再检验：0.05 + 1.05 = 1.10，\
             1.05 - 0.05 = 1.00，正确。",
            "*球拍和球一共 1.10 元，球拍比球贵 1.00 元。球多少钱？*\n\n球的价格是 **0.05 元**。很容易脱口而出的 0.10 元并不对：那样球拍\
             就是 1.10 元，合计 1.20 元了。\n\n我途中的想法是以*思考*的形式传来的：它和回答分开保存、默认折叠，需要的模型还会在下一次请求里收回它。\
             （当然，作为脚本我并没有真的思考，不过算得没错。）",
        ),
    );
    ModelScript::new().think(thought).say(answer)
}

/// Slow on purpose: time to stop it, to reconnect, to watch. To the number that is asked for, or to 20.
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

pub(super) fn long_answer(scene: &DemoScene<'_>) -> ModelScript {
    ModelScript::new().say(match scene.language {
        DemoLanguage::English => LONG_ENGLISH,
        DemoLanguage::Chinese => LONG_CHINESE,
    })
}

const LONG_ENGLISH: &str = r#"# One message, all the way through

You ask one thing, and the answer may need a look at the clock, three weather reports and a file. Most programs show that as a heap of bubbles, with a pause before each. Throughline shows **one message** that begins with the first token and never breaks off.

## What happens while you read

1. Your text goes to the model, and its first word comes back as soon as there is one. No planning call goes before.
2. When the model names a tool, a card appears at once. Its arguments fill in while they stream.
3. As soon as the arguments are *known to be final*, the tool may start. A tool that only reads need not wait for the end of the reply; one that writes does.
4. The results go back to the model, and its next words continue the same message.

## Why that is harder than it looks

Every provider streams tool calls in its own way, and few keep to their own rules. Some of what has been seen in the wild:

| What arrives | What goes wrong without care |
|---|---|
| two calls with the same `index` | they become one call with a name like `get_weatherget_weather` |
| `{}` first, the real arguments later | the tool runs with nothing |
| a stream that just ends | half a call is run as if it were whole |
| an error inside a "200 OK" | an empty answer, and no word why |

So a call is *sealed* only by evidence, and each kind of evidence has its rank:

- **explicit** – the provider says that this call is complete
- **terminal** – the reply has ended with a proper reason
- **balanced** – the top-level object has closed, and fits the schema

> Valid JSON is not proof. `{"path": "/tmp"}` is valid, and so is the longer thing that it was going to be.

## In code

A tool is a function with a schema. Registering one takes a few lines:

```rust
#[derive(Deserialize, JsonSchema)]
struct Roll { sides: u32 }

let dice = tool("dice.roll", "Rolls a die", |roll: Roll, _| async move {
    format!("You rolled a {}", 1 + rand::random::<u32>() % roll.sides)
})
.agent_callable();
```

From here on any model can roll it: one that can call tools by itself, and one that cannot in text mode (`/mode text`), where the same call is a block in its text.

## And me?

I am a script that plays a model over the real wire, faults included. Nothing in this text was thought up just now. But every byte of it has come to you the way a real answer would.
"#;

const LONG_CHINESE: &str = r#"# 一条消息，从头到尾

您只问了一件事，回答却可能要看一次时钟、查三座城市的天气、再读一个文件。多数程序会把它显示成一堆气泡，每个气泡之前还要停顿一下。Throughline 给您的是**同一条消息**：从第一个词开始，中途从不断开。

## 您阅读的时候发生了什么

1. 您的话发给模型，第一个词一出来就显示。之前没有任何“规划”请求。
2. 模型说出工具的名字，卡片立刻出现，参数边传边填。
3. 一旦*确知参数已经完整*，工具就可以开始执行。只读的工具不必等回答结束，会写入的工具则必须等。
4. 结果交还给模型，它接下来的话继续写在同一条消息里。

## 为什么这并不容易

每家服务都有自己的流式格式，而且很少完全遵守自己的规则。实际见过的情况包括：

| 收到的内容 | 处理不当的后果 |
|---|---|
| 两个调用的 `index` 相同 | 合并成一个，名字变成 `get_weatherget_weather` |
| 先来 `{}`，真正的参数后到 | 工具拿着空参数就执行了 |
| 流突然结束 | 半个调用被当成完整的来执行 |
| “200 OK” 里夹着错误 | 得到空回答，却不知道原因 |

所以，只有*证据*才能判定一个调用已经完整，而证据分等级：

- **明示**：服务方说明这个调用已结束
- **终结**：整个回答以正当的理由结束
- **闭合**：最外层的对象已经闭合，并且符合参数定义

> 合法的 JSON 不等于完整。`{"path": "/tmp"}` 是合法的，它本来要成为的那段更长的内容也是。

## 用代码来说

工具就是一个带参数定义的函数，注册它只要几行：

```rust
#[derive(Deserialize, JsonSchema)]
struct Roll { sides: u32 }

let dice = tool("dice.roll", "掷一次骰子", |roll: Roll, _| async move {
    format!("掷出了 {}", 1 + rand::random::<u32>() % roll.sides)
})
.agent_callable();
```

从此，任何模型都能掷骰子：会调用工具的模型自己调用，不会的用文本模式（`/mode text`），同样的调用就是它文字中的一个块。

## 那我呢？

我是一个脚本，在真实的线路上扮演模型，连故障也能扮演。这篇文字没有一个字是刚刚想出来的，但它的每一个字节，都和真正的回答走同一条路来到您面前。
"#;
