// Texts of the suggestions of an empty conversation, loaded with them.

import { lazyWords } from "../../i18n/use.ts";

export type Suggested =
  | "weather"
  | "calendar"
  | "riddle"
  | "yourself"
  | "search"
  | "files"
  | "days"
  | "joke"
  | "abilities"
  | "formula"
  | "diagram"
  | "clock"
  | "trip";

interface Suggestion {
  title: string;
  prompt: string;
}

export const en = {
  examples: "Examples",
  demoModel: "The demo model answers: a script that needs no API key. The weather is made up.",
  connect: "Connect a model",
  suggestions: {
    weather: { title: "Weather", prompt: "Compare the weather in Paris, London and Tokyo" },
    calendar: { title: "Calendar", prompt: "Put a meeting into my calendar tomorrow at 9" },
    riddle: { title: "Riddle", prompt: "Think about a riddle" },
    yourself: { title: "Introduction", prompt: "Tell me about yourself in detail, with Markdown" },
    search: { title: "News", prompt: "Search the web for this week's most important science news" },
    files: { title: "Files", prompt: "List the files here and summarize the most interesting one" },
    days: { title: "Countdown", prompt: "How many days are left until New Year's Eve?" },
    joke: { title: "Joke", prompt: "Tell me a joke, and let your face show how good it is" },
    abilities: { title: "Tools", prompt: "What can your tools do? Give an example for each" },
    formula: { title: "Math", prompt: "Derive the quadratic formula step by step" },
    diagram: { title: "Diagram", prompt: "Draw a diagram of how a browser loads a page" },
    clock: { title: "Code", prompt: "Write a small HTML page with an analog clock" },
    trip: { title: "Travel", prompt: "Plan three days in Chengdu" },
  } satisfies Record<Suggested, Suggestion>,
};

export type FirstWords = typeof en;

export const zh: FirstWords = {
  examples: "示例",
  demoModel: "当前由演示模型回答：它只是一段脚本，无需 API 密钥，天气数据是虚构的。",
  connect: "连接模型",
  suggestions: {
    weather: { title: "天气", prompt: "比较一下巴黎、伦敦和东京的天气" },
    calendar: { title: "日历", prompt: "明天早上九点在日历里加一个会议" },
    riddle: { title: "谜语", prompt: "想一想，给我出个谜语" },
    yourself: { title: "介绍", prompt: "用 Markdown 详细介绍一下你自己" },
    search: { title: "新闻", prompt: "上网查一查本周最重要的科学新闻" },
    files: { title: "文件", prompt: "列出这里的文件，并总结其中最有意思的一个" },
    days: { title: "倒计时", prompt: "距离跨年夜还有多少天？" },
    joke: { title: "笑话", prompt: "讲个笑话，再用表情告诉我有多好笑" },
    abilities: { title: "工具", prompt: "你的工具能做什么？每个举一个例子" },
    formula: { title: "数学", prompt: "一步步推导一元二次方程的求根公式" },
    diagram: { title: "图表", prompt: "画一张浏览器加载网页的流程图" },
    clock: { title: "代码", prompt: "写一个带指针时钟的小网页" },
    trip: { title: "旅行", prompt: "安排三天的成都之旅" },
  },
};

export const useFirstWords = lazyWords("first", en, zh);
