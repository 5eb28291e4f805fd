// A server whose model can reach every state of the page, with invented texts in both languages.

import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { indexedPng } from "../../avatar/indexed-png.mjs";
import { type Rule, Server } from "../server.ts";

export type Language = "en" | "zh-CN";

/** First words of the question that lead to each state. */
export const ASK = {
  plan: { en: "Plan three days in Chengdu for Ada and me", "zh-CN": "帮我和小林安排成都三日游" },
  states: { en: "Show me how calls end", "zh-CN": "看看调用都怎么结束" },
  live: { en: "Show me calls at work", "zh-CN": "看看正在进行的调用" },
  questions: { en: "Put both meals into my calendar", "zh-CN": "把两顿饭都记进日历" },
  group: { en: "Compare three cities", "zh-CN": "比较三个城市" },
  outputs: { en: "Show me what tools can give", "zh-CN": "看看工具能给出什么" },
  thinking: { en: "Think before you speak", "zh-CN": "先想再说" },
  markdown: { en: "Write with everything", "zh-CN": "用上所有格式" },
  error: { en: "Ask a model without tools", "zh-CN": "问一个不会用工具的模型" },
  cut: { en: "Go beyond the limit", "zh-CN": "超过长度限制" },
  slow: { en: "Take your time", "zh-CN": "慢慢来" },
} as const satisfies Record<string, Record<Language, string>>;

export type Question = keyof typeof ASK;

const call = (name: string, args: object) => ({ call: { name, arguments: args } });
/** Longer than any test takes. */
const FOR_EVER = { pause: 600_000 };

function rules(language: Language): Rule[] {
  const words = <T>(english: T, chinese: T): T => (language === "en" ? english : chinese);
  const when = (question: Question, more: object = {}) => ({ contains: ASK[question][language], ...more });
  const first = { has_result: false };
  return [
    {
      when: when("plan", { step: 1 }),
      does: [
        {
          think: words(
            "Weather first, then the plan. The calendar needs their yes.",
            "先看天气，再排行程。写日历要他们同意。",
          ),
        },
        { say: words("I look at the weather on the way first.\n\n", "我先看看沿途的天气。\n\n") },
        ...words(["Chengdu", "Leshan", "Dujiangyan"], ["成都", "乐山", "都江堰"]).map((city) =>
          call("demo_weather", { city }),
        ),
        {
          say: words(
            "\n\nDry and mild, so the mountain can be on the second day.\n\n",
            "\n\n干爽不冷，第二天可以上山。\n\n",
          ),
        },
        call("live2d_expression", { name: "smile" }),
      ],
    },
    {
      when: when("plan"),
      does: [
        {
          say: words(
            "| day | morning | evening |\n| --- | --- | --- |\n| 1 | People's Park, tea | Sichuan opera |\n| 2 | Mount Qingcheng | hot pot |\n| 3 | pandas at eight | train home |\n\n**Shall I put it into your calendar?**\n\n",
            "| 天 | 上午 | 晚上 |\n| --- | --- | --- |\n| 1 | 人民公园喝茶 | 川剧 |\n| 2 | 青城山 | 火锅 |\n| 3 | 八点看熊猫 | 坐火车回家 |\n\n**要记进日历吗？**\n\n",
          ),
        },
        call("demo_calendar", {
          title: words("Three days in Chengdu", "成都三日游"),
          when: "2026-11-27T08:00",
        }),
      ],
    },
    {
      when: when("states", first),
      does: [
        { say: words("One of each kind.\n\n", "每种各来一个。\n\n") },
        call("demo_fail", {}),
        call("demo_wether", { city: words("Paris", "巴黎") }),
        call("demo_weather", { town: 42 }),
        call("demo_calendar", { title: words("Night shift", "夜班"), when: "2026-11-23T02:00" }),
        call("demo_weather", { city: words("Oslo", "奥斯陆") }),
        call("slow_work", { minutes: 90 }),
      ],
    },
    {
      when: when("states"),
      does: [{ say: words("Six calls, six ends, one message.", "六次调用，六种结局，一条消息。") }],
    },
    {
      when: when("live"),
      does: [
        { say: words("The first works, the second waits for it.\n\n", "第一个在运行，第二个在等它。\n\n") },
        call("slow_work", { minutes: 5 }),
        call("data_table", { region: words("north", "北方") }),
        {
          half_call: {
            name: "demo_calendar",
            arguments: words(
              '{"title": "Three days in Chengdu", "when": "2026-11-2',
              '{"title": "成都三日游", "when": "2026-11-2',
            ),
          },
        },
        FOR_EVER,
      ],
    },
    {
      when: when("questions", first),
      does: [
        { say: words("Both need your approval.\n\n", "两项都需要你批准。\n\n") },
        call("demo_calendar", {
          title: words("Breakfast with Ada", "和小林吃早饭"),
          when: "2026-11-23T08:00",
        }),
        call("demo_calendar", { title: words("Lunch at the lake", "湖边午餐"), when: "2026-11-23T12:30" }),
      ],
    },
    { when: when("questions"), does: [{ say: words("That is settled.", "办好了。") }] },
    {
      when: when("group", first),
      does: [
        { say: words("I look at all three.\n\n", "我把三个都看一遍。\n\n") },
        ...words(["Paris", "London", "Tokyo"], ["巴黎", "伦敦", "东京"]).map((city) =>
          call("demo_weather", { city }),
        ),
      ],
    },
    { when: when("group"), does: [{ say: words("Three looks, one line.", "看了三处，收成一行。") }] },
    {
      when: when("outputs", first),
      does: [
        { say: words("A table first.\n\n", "先是一张表。\n\n") },
        call("data_table", { region: words("all", "全部") }),
        { say: words("\n\nThen a tree.\n\n", "\n\n然后是一棵树。\n\n") },
        call("data_tree", {}),
        { say: words("\n\nThen lines of text, more than fit.\n\n", "\n\n然后是很多行文本。\n\n") },
        call("data_lines", {}),
        { say: words("\n\nAnd a picture.\n\n", "\n\n最后是一张图片。\n\n") },
        call("data_picture", {}),
      ],
    },
    { when: when("outputs"), does: [{ say: words("That is all.", "就这些。") }] },
    {
      when: when("thinking"),
      does: [
        {
          think: words(
            "They want me to think first. A riddle, does: short, fair, and with one answer only.",
            "要先想一想。那就出个谜语：短一点，公平一点，只有一个答案。",
          ),
        },
        {
          say: words(
            "What has a bed and never sleeps, a mouth and never speaks? **A river.**",
            "什么东西有口不说话，有床不睡觉？**河。**",
          ),
        },
      ],
    },
    { when: when("markdown"), does: [{ say: markdown(language) }] },
    { when: when("error"), does: { refuse_tools: "vllm" } },
    {
      when: when("cut"),
      does: [
        { say: words("This sentence is longer than the model may", "这句话比模型允许的长度还要") },
        { finish: "length" },
      ],
    },
    {
      when: when("slow"),
      does: [{ say: words("One thing after another.", "一件一件来。") }, FOR_EVER],
    },
  ];
}

function markdown(language: Language): string {
  return language === "en"
    ? `## What fits into a message

Text with **strong** and *soft* words, \`code\` and a [link](https://example.com/a).

- a list
- with two items

| city | °C | sky |
| --- | ---: | --- |
| Paris | 14 | sunny |
| Oslo | 3 | snow |

\`\`\`ts
export const wait = (ms: number): Promise<void> =>
  new Promise((done) => setTimeout(done, ms));
\`\`\`

> What is quoted stands apart.

1. first
2. second

![A map](https://example.com/map.png)
`
    : `## 一条消息里放得下什么

文字里有**重点**和*轻声*，有 \`代码\`，也有[链接](https://example.com/a)。

- 一个列表
- 两个条目

| 城市 | °C | 天气 |
| --- | ---: | --- |
| 巴黎 | 14 | 晴 |
| 奥斯陆 | 3 | 雪 |

\`\`\`ts
// 等一会儿
export const wait = (ms: number): Promise<void> =>
  new Promise((done) => setTimeout(done, ms));
\`\`\`

> 引用的话单独站着。

1. 第一
2. 第二

![一张地图](https://example.com/map.png)
`;
}

const TABLE = JSON.stringify(
  [
    ["Beijing 北京", 4, "sunny", 12],
    ["Shanghai 上海", 11, "light rain", 18],
    ["Chengdu 成都", 9, "overcast", 6],
    ["Paris", 14, "partly cloudy", 9],
    ["Oslo", -3, "snow", 21],
  ].map(([city, celsius, sky, wind]) => ({ city, celsius, sky, wind })),
);
const TREE = JSON.stringify({
  trip: { city: "Chengdu 成都", days: 3, guests: ["Ada", "小林"] },
  hotel: {
    name: "Lakeside",
    nights: [
      { date: "2026-11-23", paid: true },
      { date: "2026-11-24", paid: false },
    ],
  },
  total: { amount: 1280.5, currency: "CNY" },
});

/** Tools with the results that scenes need. */
function tools(pictureHost: string): string {
  const command = (name: string, description: string, argv: string[], more = ""): string => `
[commands."${name}"]
description = "${description}"
argv = ${JSON.stringify(argv.map(plain))}
input = "none"
effect = "read"
${more}`;
  return [
    // Running calls and open approvals are left behind by each scene.
    "[server.limits]\nturns_per_key_max = 256\nturns_per_minute_max = 6_000\n",
    command("slow.work", "Works for a long time", ["sleep", "600"], "timeout_ms = 600_000\n") +
      'parameters = \'\'\'{"type": "object", "properties": {"minutes": {"type": "integer"}}}\'\'\'\n',
    command("data.table", "Weather of some cities", ["echo", TABLE], 'output = "json"\n') +
      'parameters = \'\'\'{"type": "object", "properties": {"region": {"type": "string"}}}\'\'\'\n',
    command("data.tree", "A booking", ["echo", TREE], 'output = "json"\n'),
    command("data.lines", "Many lines", ["seq", "-f", "line %05g of the log: nothing happened", "1", "4000"]),
    `
[http_tools."data.picture"]
description = "A picture"
url = "http://${pictureHost}/picture.png"
private_hosts = ["${pictureHost}"]
effect = "read"
`,
  ].join("");
}

/** Escapes braces, which would name an argument. */
const plain = (word: string): string => word.replace(/[{}]/g, "$&$&");

/** The server, and the services behind its tools. */
export class Stage {
  readonly server: Server;
  readonly #pictures: HttpServer;

  private constructor(server: Server, pictures: HttpServer) {
    this.server = server;
    this.#pictures = pictures;
  }

  static async build(): Promise<Stage> {
    const picture = hills();
    const pictures = createServer((_, response) => {
      response.writeHead(200, { "content-type": "image/png" }).end(picture);
    });
    await new Promise<void>((resolve) => pictures.listen(0, "127.0.0.1", resolve));
    const host = `127.0.0.1:${(pictures.address() as AddressInfo).port}`;
    const server = await Server.scripted([...rules("en"), ...rules("zh-CN")], tools(host));
    return new Stage(server, pictures);
  }

  async strike(): Promise<void> {
    await this.server.stop();
    this.#pictures.closeAllConnections();
    this.#pictures.close();
  }
}

/** A picture of hills in the colors of the page. */
function hills(): Uint8Array {
  const [width, height] = [240, 120];
  const [sky, far, near] = [
    [223, 240, 238],
    [91, 95, 199],
    [11, 119, 112],
  ] as const;
  const pixels = new Uint8Array(width * height * 4);
  for (let at = 0; at < width * height; at += 1) {
    const [x, y] = [at % width, Math.floor(at / width)];
    const isNear = y > 85 - 18 * Math.sin(x / 34);
    const isFar = y > 60 - 22 * Math.sin(x / 21 + 2);
    pixels.set([...(isNear ? near : isFar ? far : sky), 255], at * 4);
  }
  return indexedPng(width, height, pixels);
}
