//! Help in Chinese: each description of a command or an option, by its English text.

use super::long_help as zh;
use crate::messages as en;

/// English and Chinese.
pub(super) const TEXTS: &[(&str, &str)] = &[
    // 命令
    (
        "One turn, one message, one stream: talk to any model with tools that run mid-reply",
        "一轮对话，一条消息，一个流：与任意模型对话，工具在回复途中运行",
    ),
    ("Talk to a model in the terminal", "在终端里与模型对话"),
    ("Ask one question and print the answer", "提一个问题，打印回答"),
    (
        "List the prompt templates that `-t` of `ask` and `chat` takes",
        "列出 `ask` 和 `chat` 的 `-t` 可用的提示词模板",
    ),
    (
        "Say a text aloud, sentence by sentence, with a voice of the configuration",
        "用配置里的语音逐句朗读文本",
    ),
    (
        "Decode a recorded or piped provider response into one JSON object",
        "把录制的或从管道传入的服务商响应解码为一个 JSON 对象",
    ),
    (
        "Inspect a model's reply: its tool calls, and whether each would run, ask first or be denied",
        "检查模型的回复：有哪些工具调用，每个调用会直接运行、先询问还是被拒绝",
    ),
    ("List, show and run tools", "列出、查看和运行工具"),
    ("Take over the MCP servers of another client's configuration", "从其他客户端的配置导入 MCP 服务器"),
    ("List known and configured model endpoints", "列出已知的和已配置的模型接口"),
    (
        "Connect a model: choose it, enter its key, test it and write throughline.toml",
        "连接模型：选择模型、输入密钥、测试，并写入 throughline.toml",
    ),
    (
        "Measure what an upstream can do and where it departs from its API, by 8 small requests",
        "用 8 个小请求实测上游的能力，以及它与接口规范的差异",
    ),
    (
        "Serve agents over HTTP: the native API, WebSocket, and /v1/chat/completions for OpenAI clients",
        "通过 HTTP 提供智能体服务：原生 API、WebSocket，以及供 OpenAI 客户端使用的 /v1/chat/completions",
    ),
    ("Add, list, change and remove people who use the server", "添加、列出、修改和移除服务器的用户"),
    ("Create, list, change and revoke the server's API keys", "创建、列出、修改和作废服务器的 API 密钥"),
    (
        "Write a copy of everything that the server has stored, also while it runs",
        "备份服务器保存的全部内容，服务器运行时也可以",
    ),
    ("Restore a backup", "恢复备份"),
    (
        "Check configuration, keys, tools and sandbox, and suggest fixes",
        "检查配置、密钥、工具和沙箱，并给出修复建议",
    ),
    ("List past tool calls and turns", "列出以往的工具调用和回合"),
    (
        "Export a conversation as JSON lines, as Markdown, or its tool calls as CSV",
        "把对话导出为 JSON 行或 Markdown，或把其中的工具调用导出为 CSV",
    ),
    ("Import an exported conversation or a list of OpenAI messages", "导入导出的对话，或 OpenAI 消息列表"),
    ("Replay a past turn, screen by screen", "逐屏回放以往的回合"),
    (
        "Serve a scripted LLM upstream, or the demo model, to test clients against",
        "启动按脚本回复的上游或演示模型，用来测试客户端",
    ),
    ("Print shell completions", "打印 shell 补全脚本"),
    // 子命令
    (
        "List all tools with their effects and sources, and whether models may call them",
        "列出所有工具，及其作用、来源和模型能否调用",
    ),
    ("Show one tool and its schema", "查看一个工具及其参数说明"),
    (
        "Show an agent's system prompt with its tools, and its size in tokens",
        "查看智能体的系统提示词（含工具），以及它的 Token 数",
    ),
    ("List remembered approvals", "列出记住的审批"),
    ("Run a tool and print its output", "运行一个工具，打印它的输出"),
    (
        "Show changed definitions of MCP tools, which are off until you approve them",
        "查看 MCP 工具定义的变更；批准之前，这些工具不可用",
    ),
    ("Approve a changed definition", "批准变更后的定义"),
    (
        "Convert the MCP servers of Claude, Cursor or VS Code to `[mcp.NAME]` and print them",
        "把 Claude、Cursor 或 VS Code 的 MCP 服务器转换为 `[mcp.NAME]` 并打印",
    ),
    ("Create a key and show it once", "创建密钥，只显示一次"),
    ("List the keys of all people, without their secrets", "列出所有用户的密钥，不显示密钥本身"),
    ("Change the limits and the models of a key", "修改密钥的用量上限和可用模型"),
    ("Revoke a key; its streams end within a second", "作废密钥；它的连接会在一秒内断开"),
    ("Add a person, or bring one back who was removed", "添加用户，或恢复已移除的用户"),
    ("List people with what they have used", "列出用户及其用量"),
    ("Change the rights and the limits of a person", "修改用户的权限和用量上限"),
    (
        "Remove a person: revoke all keys and keep or delete the data",
        "移除用户：作废全部密钥，数据可保留或删除",
    ),
    // 模型与配置
    (
        "Configuration file [default: throughline.toml in the current directory, if there is one]",
        "配置文件 [默认：当前目录下的 throughline.toml，如果有]",
    ),
    (
        "Configuration file to write [default: throughline.toml in the current directory]",
        "要写入的配置文件 [默认：当前目录下的 throughline.toml]",
    ),
    (
        "Configuration file [default: throughline.toml in the current directory]",
        "配置文件 [默认：当前目录下的 throughline.toml]",
    ),
    (
        "Language of help, errors and the chat: en or zh [default: the locale's]",
        "帮助、错误信息和聊天界面的语言：en 或 zh [默认：随系统区域设置]",
    ),
    ("Agent of the configuration", "配置中的智能体"),
    (
        "Model, as UPSTREAM/MODEL (deepseek/deepseek-chat, ollama/qwen3), or demo",
        "模型，写作 UPSTREAM/MODEL（如 deepseek/deepseek-chat、ollama/qwen3），或 demo",
    ),
    ("Tool-calling mode: native, text or auto", "工具调用模式：native、text 或 auto"),
    (
        "Base URL of an endpoint that is not configured; requires --api",
        "未配置接口的基础地址；须同时给出 --api",
    ),
    (
        "Wire format of --base-url, such as openai-chat, anthropic or gemini (`throughline decode --help` lists all)",
        "--base-url 的接口格式，如 openai-chat、anthropic、gemini（`throughline decode --help` 列出全部）",
    ),
    ("Environment variable that holds the key of --base-url", "存放 --base-url 密钥的环境变量"),
    ("Environment variable that holds the key", "存放密钥的环境变量"),
    (
        "Environment variable that holds the key, instead of storing it",
        "存放密钥的环境变量；给出后不再另存密钥",
    ),
    (
        "Stream replies: on, off, or auto (whole replies where a stream breaks at its start)",
        "流式回复：on、off 或 auto（流一开始就中断时改为请求完整的回答）",
    ),
    (
        "Offer the demo tools as well: invented weather, an in-memory calendar, a tool that fails (demo.*)",
        "同时提供演示工具：虚构的天气、内存中的日历、一个会失败的工具（demo.*）",
    ),
    // chat 与 ask
    (
        "Continue the conversation that was last active; a reply that was cut off goes on",
        "继续最近的对话；被中断的回复会接着进行",
    ),
    ("Continue this conversation", "继续这个对话"),
    ("Keep nothing: no conversation, no history, no replay", "不保存任何内容：没有对话、历史和回放"),
    ("Instructions on top of the agent's own", "在智能体自身指令之外的附加指令"),
    (
        "Put the prompt into this template; `throughline templates` lists them",
        "把提示词放进这个模板；`throughline templates` 列出所有模板",
    ),
    ("Value of a placeholder of the template (repeatable)", "模板占位符的值（可重复）"),
    ("Approve every call without asking", "批准所有调用，不再询问"),
    ("Plain text without repainting, even on a terminal", "即使在终端里也只输出纯文本，不重绘屏幕"),
    (
        "Prompt. Standard input follows it, if it is not a terminal; `-` puts it elsewhere",
        "提示词。标准输入不是终端时，其内容接在后面；用 `-` 可放到别处",
    ),
    ("Add a text file to the prompt (repeatable)", "把文本文件加入提示词（可重复）"),
    ("Attach an image (png, jpeg, gif or webp; repeatable)", "附上图片（png、jpeg、gif 或 webp；可重复）"),
    (
        "Answer with JSON that fits this JSON Schema, given as a file or as JSON; print the JSON alone",
        "以符合此 JSON Schema 的 JSON 回答，只打印该 JSON；可给出文件，也可直接写 JSON",
    ),
    ("Print the finished message as one JSON object", "结束后把整条消息打印为一个 JSON 对象"),
    ("Print the turn's events as JSON lines as they arrive", "逐行打印本轮的事件（JSON），到一个打印一个"),
    ("Print the answer and errors, and nothing about the turn", "只打印回答和错误，不打印本轮的其他信息"),
    // connect 与 probe
    (
        "Name from `throughline upstreams`, or a new one with --base-url [default: prompt for it]",
        "`throughline upstreams` 列出的名称，或配合 --base-url 使用的新名称 [默认：询问]",
    ),
    ("Model to use [default: prompt for it]", "要使用的模型 [默认：询问]"),
    ("Agent in the file that will use the model", "文件中使用该模型的智能体"),
    ("Read the key from standard input", "从标准输入读取密钥"),
    ("Base URL of your own endpoint; requires --api", "自有接口的基础地址；须同时给出 --api"),
    ("Delete the stored key of this upstream", "删除已保存的该上游密钥"),
    (
        "Name from `throughline upstreams`, or UPSTREAM/MODEL, or a new name with --base-url",
        "`throughline upstreams` 列出的名称，或 UPSTREAM/MODEL，或配合 --base-url 使用的新名称",
    ),
    (
        "Model to measure [default: that of the agent that uses the upstream]",
        "要测量的模型 [默认：使用该上游的智能体的模型]",
    ),
    ("Most tokens of each reply", "每个回复的 Token 上限"),
    (
        "Write the settings into the configuration file; its comments stay",
        "把设置写入配置文件，保留其中的注释",
    ),
    ("Print one JSON object instead of the table", "打印一个 JSON 对象，代替表格"),
    // decode 与 parse
    (
        "Wire format of the body, one of the names below; auto finds it out",
        "响应体的接口格式，取值见下；auto 表示自动判断",
    ),
    ("Exit with code 2 if the body is cut off or is an error", "响应体被截断或是错误时，以退出码 2 结束"),
    (
        "Feed the decoder random chunks of 1 to 300 bytes, from this seed; every seed gives the same result",
        "按此种子把输入切成 1 到 300 字节的随机小块再解码；任何种子的结果都相同",
    ),
    ("Recover tool calls that leaked into the text", "还原泄漏到文本里的工具调用"),
    (
        "Print each decoded event as a JSON line as it arrives, instead of one object",
        "每解码一个事件就打印一行 JSON，代替单个对象",
    ),
    ("Treat <think>…</think> in the text as reasoning", "把文本中的 <think>…</think> 当作思考过程"),
    ("File with the reply; `-` for standard input", "存放回复的文件；`-` 表示标准输入"),
    ("Text protocol of the reply: vcp, xml or auto", "回复所用的文本协议：vcp、xml 或 auto"),
    // say
    (
        "Text to say, in Markdown; `-` or none: standard input",
        "要朗读的文本（Markdown）；`-` 或省略表示标准输入",
    ),
    (
        "Voice of the configuration [default: the one called `default`, or the only one]",
        "配置里的语音 [默认：名为 `default` 的，或唯一的一个]",
    ),
    (
        "WAV file to write instead of playing; `-` for standard output",
        "写入 WAV 文件而不播放；`-` 表示标准输出",
    ),
    ("Print the sentences, one on each line, and say nothing", "只打印句子，每行一句，不朗读"),
    // 工具
    ("Tool name, such as demo.weather", "工具名称，例如 demo.weather"),
    ("Tool name from `throughline tools changes`", "`throughline tools changes` 列出的工具名称"),
    ("Text protocol to render it for: vcp or xml", "按哪种文本协议生成：vcp 或 xml"),
    ("Delete the approval with this number", "删除此编号的审批"),
    (
        "Arguments as a JSON object; `-` reads them from standard input",
        "参数，写作 JSON 对象；`-` 表示从标准输入读取",
    ),
    ("Run without asking, even if the tool has side effects", "即使工具有副作用也不询问，直接运行"),
    ("Print the outcome as JSON", "把结果打印为 JSON"),
    (
        "JSON file with `mcpServers` or `servers`; `-` for standard input",
        "含 `mcpServers` 或 `servers` 的 JSON 文件；`-` 表示标准输入",
    ),
    (
        "Add them to the configuration file instead; servers that it has already stay as they are",
        "改为写入配置文件；其中已有的服务器保持不变",
    ),
    ("Print JSON", "打印 JSON"),
    // 历史
    ("List turns instead of tool calls", "列出回合，而不是工具调用"),
    ("Only calls of this tool", "只列出这个工具的调用"),
    (
        "Only calls of tools from this source: builtin, mcp:files, ...",
        "只列出来自此来源的工具调用：builtin、mcp:files 等",
    ),
    (
        "Only this status; for calls also several: error,denied; for turns: completed, running, ...",
        "只列出此状态；调用可给多个：error,denied；回合可用 completed、running 等",
    ),
    ("Only this turn", "只列出这个回合"),
    ("Only this conversation", "只列出这个对话"),
    (
        "Only calls with this text in name, arguments, result or error",
        "只列出名称、参数、结果或错误中含有此文本的调用",
    ),
    ("Only this user", "只列出这个用户"),
    ("Maximum number of rows", "最多显示的行数"),
    (
        "Continue the list: what stands before this row, as the end of the page before names it",
        "接着列出：这一行之前的内容；取值见上一页末尾",
    ),
    (
        "Store to read, also while a server runs: a file or postgres://… [default: from the configuration]",
        "要读取的存储，服务器运行时也可读：文件或 postgres://… [默认：按配置]",
    ),
    ("Id of the conversation", "对话编号"),
    (
        "Output format [default: from FILE's extension, else jsonl]",
        "输出格式 [默认：按 FILE 的扩展名，否则为 jsonl]",
    ),
    ("Complete: the format that `import` reads", "完整内容，可用 `import` 导入"),
    ("One branch as readable text", "一条分支，便于阅读的文本"),
    ("Tool calls, for spreadsheets", "工具调用，供电子表格使用"),
    (
        "Markdown only: last turn of the branch [default: the latest one]",
        "仅用于 Markdown：分支的最后一个回合 [默认：最新的]",
    ),
    ("Output file [default: standard output]", "输出文件 [默认：标准输出]"),
    ("File to import; `-` for standard input", "要导入的文件；`-` 表示标准输入"),
    ("Print the conversation as JSON", "把对话打印为 JSON"),
    ("Id of the turn [default: the latest one]", "回合编号 [默认：最新的]"),
    (
        "File with the turn's events as JSON lines; `-` for standard input",
        "存放该回合事件（JSON 行）的文件；`-` 表示标准输入",
    ),
    (
        "Playback speed: 4x, 0.5x or max [default: 1x; max if output is a pipe]",
        "回放速度：4x、0.5x 或 max [默认：1x；输出到管道时为 max]",
    ),
    ("Step through the events with the arrow keys", "用方向键逐个查看事件"),
    ("Print the events as JSON lines", "逐行打印事件（JSON）"),
    ("Print the message as it was after this event", "打印消息在此事件之后的样子"),
    (
        "Decode the stored upstream bytes again and compare the result with the log",
        "重新解码保存的上游数据，并与日志比较",
    ),
    (
        "Print JSON: with --at the whole message, with --decode-raw the findings",
        "打印 JSON：配合 --at 为整条消息，配合 --decode-raw 为比较结果",
    ),
    // 服务器
    (
        "Address to listen on [default: 127.0.0.1:8787]; port 0 picks a free one",
        "监听地址 [默认：127.0.0.1:8787]；端口 0 表示自动选择空闲端口",
    ),
    ("Address to listen on; port 0 picks a free one", "监听地址；端口 0 表示自动选择空闲端口"),
    (
        "Store for turns: a SQLite file or postgres://… [default: throughline.db in the data folder]",
        "保存回合的存储：SQLite 文件或 postgres://… [默认：数据目录中的 throughline.db]",
    ),
    ("Store of the server: a SQLite file or postgres://…", "服务器的存储：SQLite 文件或 postgres://…"),
    ("Only keys of this person", "只列出此用户的密钥"),
    (
        "Key id from `throughline keys list`; a unique prefix is enough",
        "`throughline keys list` 列出的密钥编号；写出能唯一确定的开头即可",
    ),
    ("New or empty folder for the backup", "存放备份的新文件夹或空文件夹"),
    ("Folder of a backup", "备份所在的文件夹"),
    ("Replace what is there; it is moved to a folder beside it", "替换现有内容；现有内容会移到旁边的文件夹"),
    ("Name of the key", "密钥名称"),
    ("Person whose key it is [default: the first one, local]", "密钥所属的用户 [默认：第一个用户 local]"),
    ("Scopes of the key: chat, tools, agents, admin", "密钥的权限：chat、tools、agents、admin"),
    ("Write the manual pages of all commands into a folder", "把所有命令的手册页写入一个文件夹"),
    ("Folder to write them to; it is created if it does not exist", "写入的文件夹；不存在则新建"),
    ("Expire the key after this many days [default: never]", "密钥在这么多天后过期 [默认：永不过期]"),
    (
        "Agents, UPSTREAM/MODEL or UPSTREAM/* that the key may use [default: all]",
        "密钥可用的智能体、UPSTREAM/MODEL 或 UPSTREAM/* [默认：全部]",
    ),
    (
        "Agents, UPSTREAM/MODEL or UPSTREAM/* that the key may use, or all",
        "密钥可用的智能体、UPSTREAM/MODEL 或 UPSTREAM/*，或 all（全部）",
    ),
    ("Turns that may begin in a day, or none for no limit", "每天可开始的回合数；none 表示不限"),
    (
        "Turns that may begin in a calendar month, or none for no limit",
        "每个自然月可开始的回合数；none 表示不限",
    ),
    (
        "Tokens that models may read and write in a day, or none for no limit",
        "模型每天可读写的 Token 数；none 表示不限",
    ),
    (
        "Tokens that models may read and write in a calendar month, or none for no limit",
        "模型每个自然月可读写的 Token 数；none 表示不限",
    ),
    ("Name: 1 to 64 letters, digits, -, _, ., @ or +", "名称：1 到 64 个字母、数字、-、_、.、@ 或 +"),
    ("Name", "名称"),
    ("Keys of this person may have the scope admin", "此用户的密钥可以有 admin 权限"),
    (
        "Keys of this person may not have the scope admin, and those that do lose it",
        "此用户的密钥不能有 admin 权限，已有的也会失去",
    ),
    (
        "Keep conversations, files, agents and remembered answers (the default)",
        "保留对话、文件、智能体和记住的审批（默认）",
    ),
    (
        "Delete conversations, files, agents and remembered answers for good",
        "彻底删除对话、文件、智能体和记住的审批",
    ),
    ("Scenario file (TOML) that defines the replies", "定义回复内容的场景文件（TOML）"),
    ("Serve the demo model (the default without --script)", "提供演示模型（不给 --script 时的默认行为）"),
    (
        "Plant a quirk, by its name in docs/mock.md (repeatable); without --script in a model that can do everything",
        "植入一种怪癖，名称见 docs/mock.md（可重复）；不给 --script 时使用功能齐全的模型",
    ),
    ("bash, elvish, fish, powershell or zsh", "bash、elvish、fish、powershell 或 zsh"),
    // 选项列表之后的说明
    (en::EXIT_CODES, zh::EXIT_CODES),
    (en::CHAT_HELP, zh::CHAT_HELP),
    (en::ASK_HELP, zh::ASK_HELP),
    (en::TEMPLATES_HELP, zh::TEMPLATES_HELP),
    (en::DECODE_HELP, zh::DECODE_HELP),
    (en::SAY_HELP, zh::SAY_HELP),
    (en::PARSE_HELP, zh::PARSE_HELP),
    (en::TOOLS_HELP, zh::TOOLS_HELP),
    (en::MCP_HELP, zh::MCP_HELP),
    (en::UPSTREAMS_HELP, zh::UPSTREAMS_HELP),
    (en::CONNECT_HELP, zh::CONNECT_HELP),
    (en::PROBE_HELP, zh::PROBE_HELP),
    (en::SERVE_HELP, zh::SERVE_HELP),
    (en::USERS_HELP, zh::USERS_HELP),
    (en::KEYS_HELP, zh::KEYS_HELP),
    (en::BACKUP_HELP, zh::BACKUP_HELP),
    (en::RESTORE_HELP, zh::RESTORE_HELP),
    (en::DOCTOR_HELP, zh::DOCTOR_HELP),
    (en::HISTORY_HELP, zh::HISTORY_HELP),
    (en::EXPORT_HELP, zh::EXPORT_HELP),
    (en::IMPORT_HELP, zh::IMPORT_HELP),
    (en::REPLAY_HELP, zh::REPLAY_HELP),
    #[cfg(feature = "demo")]
    (en::MOCK_HELP, zh::MOCK_HELP),
    (en::COMPLETIONS_HELP, zh::COMPLETIONS_HELP),
];
