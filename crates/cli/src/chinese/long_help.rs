//! Help in Chinese beyond the list of options.

pub(super) const EXIT_CODES: &str = "\
没有配置时由内置演示模型回答：`throughline chat` 不需要密钥，也不联网。

示例：
  throughline chat
  throughline ask \"北京、巴黎和旧金山的天气怎么样？\"
  throughline ask --model deepseek/deepseek-chat --events \"…\" | jq -c 'select(.type==\"tool_result\")'
  throughline decode --api openai-chat < recorded.sse

退出码：
  0    完成；管道的读取方提前退出（`| head`）也算完成
  1    参数错误、配置错误，或输入无法读取
  2    本轮因错误结束（上游失败、连接中断）
  3    回答被截断：达到工具轮数上限或长度上限
  4    `tools call`：工具没有成功；`parse`：有调用会被拒绝或无法开始
  130  被 Ctrl-C 或 SIGTERM 停止

环境变量：
  THROUGHLINE_CONFIG      配置文件（否则为 ./throughline.toml，如果有）
  THROUGHLINE_MODEL, THROUGHLINE_AGENT, THROUGHLINE_MODE, THROUGHLINE_STREAMING
                          等同于 --model、--agent、--mode、--streaming；命令行选项优先。MODE 和 STREAMING
                          也可只用于一个上游：THROUGHLINE_STREAMING_OLLAMA=off
  THROUGHLINE_BASE_URL_…  改用上游的其他地址：THROUGHLINE_BASE_URL_OPENAI=http://localhost:4000/v1
  THROUGHLINE_LANG        等同于 --lang：en 或 zh；否则由 LC_ALL、LC_MESSAGES 或 LANG 决定
  NO_COLOR, TERM=dumb     只输出纯文本，不重绘屏幕";

pub(super) const DECODE_HELP: &str = "\
示例：
  curl -sN https://api.openai.com/v1/chat/completions -d @request.json … | throughline decode --api openai-chat
  throughline decode < recorded.sse                              自动判断接口格式
  throughline decode --api anthropic --strict < recorded.sse     回复不完整时退出码为 2
  throughline decode --api ollama --events < recorded.ndjson     每个解码出的事件一行 JSON
  throughline decode --api openai-chat --recover < leaked.sse    写成文本的工具调用还原为调用

接口格式的名称：
  openai-chat（以及所有兼容的服务器）、openai-responses、anthropic、gemini（SSE 或 JSON 数组）、ollama、cohere、
  bedrock-converse、bedrock-anthropic（AWS event-stream 帧）

打印的对象：
  text, reasoning, refusal   所有增量连接而成
  tool_calls                 [{id, name, arguments}]；`arguments` 为 null 时另有 `raw`：被截断或不是 JSON 的调用
                             既不补全，也不丢弃，更不会变成 {}
  finish_reason              stop length tool_calls content_filter pause error other，或 null；`finish_reason_raw`
                             是上游的原话
  end                        complete、truncated（响应体中途停止）或 error
  error, usage               按上游给出的内容，或 null
  choices                    多于一个候选时列出全部
  hosted, images, audio, citations, problems
                             有才出现：服务商运行的工具、图片、音频、来源，以及流里的问题和处理方式

退出码：解码出内容即为 0，即使是错误或被截断的响应体（加 --strict 时为 2）；参数错误或输入无法读取为 1；
没有解码出任何内容为 2，标准错误会说明输入可能是什么。";

pub(super) const ASK_HELP: &str = "\
文本边生成边写到标准输出；工具调用、提示和错误写到标准错误。

示例：
  throughline ask \"东京现在几点？\"
  git diff | throughline ask \"为这些改动写一条提交说明。\"     标准输入接在提示词之后
  throughline ask -c \"那大阪呢？\"                       继续上一个对话
  throughline ask -s \"只用一行回答。\" -f notes.txt \"要做些什么？\"
  throughline ask --model ollama/qwen3 \"…\"               任何已知的上游（见 `throughline upstreams`）
  throughline ask --json \"…\" | jq '.blocks[]'            结束后把整条消息作为一个对象
  throughline ask --events \"…\"                           边进行边打印本轮的日志，每行一个 JSON 对象
  throughline ask --approve \"把午饭加到日历里\"           允许有副作用的调用
  throughline ask -a plan.png \"这是什么？\"
  git diff | throughline ask -t review -p language=Rust    使用 prompts/review.md，并填好占位符
  throughline ask --schema person.json \"《沙丘》是谁写的？\"  只打印符合 schema 的 JSON

对话保存在服务器的存储里：-c 和 --resume 继续对话，`history` 和 `replay` 查看对话，--no-log 不保存任何内容。
服务器正在使用存储时，问题经由该服务器处理。
使用 --schema 时会检查回答，不符合之处会告知模型一次；第二次回答仍不符合，则不打印任何内容，退出码为 2。
有副作用的调用会在终端上请求批准。没有终端时拒绝这些调用，并把原因告知模型和标准错误；--approve 全部允许。
Ctrl-C 停止本轮：运行中的工具会停止，消息会说明每个工具的结果。再按一次 Ctrl-C 立即退出。

退出码：0 完成，1 用法或配置有误，2 因错误结束，3 达到上限或长度而截断，130 被停止。";

pub(super) const TEMPLATES_HELP: &str = "\
模板是名为 NAME.md 或 NAME.txt 的文本文件，放在配置文件旁的 `prompts` 文件夹里（没有配置时为当前文件夹），或数据目录的
`prompts` 里。{{input}} 代表提示词；其他 {{名称}} 的值由 -p 名称=值 给出。没有 {{input}} 的模板，提示词接在后面。
在聊天里，第一条消息会放进模板。

示例：
  throughline templates
  git diff | throughline ask -t review -p language=Rust
  throughline chat -t tutor -p subject=代数";

pub(super) const CHAT_HELP: &str = "\
示例：
  throughline chat                                演示模型，或 throughline.toml 中的智能体 `default`
  throughline chat --model deepseek/deepseek-chat --mode native
  throughline chat -c                             继续上一个对话；被中断的回复会接着进行
  throughline chat -t tutor                       第一条消息放进 prompts/tutor.md
  printf '你好\\n现在几点？\\n' | throughline chat    每行一条消息，输出纯文本

对话保存在服务器的存储里；--no-log 不保存任何内容。服务器正在使用存储时，聊天经由该服务器进行。
聊天中：/help 列出命令，Tab 给出建议或补全，Alt-Enter 换行，上方向键找回之前的输入，
Ctrl-C 停止回复（再按则退出），Ctrl-D 退出。";

pub(super) const SAY_HELP: &str = "\
朗读 Markdown 文本里适合听的部分：不读标记、代码、网址、公式和表情符号。每个句子单独送给语音，所以很快就能听到第一句。
语音是配置里的 [voices.名称]（见 docs/voice.md）。声音由已安装的 pw-play、paplay、aplay、ffplay 或 afplay 播放。

示例：
  throughline say \"晚饭好了。\"
  throughline ask \"讲个故事。\" | throughline say
  throughline say --voice piper -o story.wav - < story.md
  throughline say --text - < reply.md                会读出的内容

退出码：0 已朗读，1 用法或配置错误，2 语音或播放程序失败，130 被停止。";

pub(super) const PARSE_HELP: &str = "\
显示每个调用的位置、参数和结果：会直接运行、先询问、被拒绝，或无法开始（工具不存在、未提供、参数不符合要求、格式有误）。
不会运行任何东西。模型原生标记（Hermes、DeepSeek、Kimi 等）里的调用也会找出，并标明是泄漏到文本中的。

示例：
  throughline parse reply.txt
  pbpaste | throughline parse
  throughline parse --agent work --protocol vcp --json reply.txt | jq '.requests[] | {tool, outlook, why}'

退出码：0 没有调用会被拒绝，1 用法或配置有误，4 至少有一个调用会被拒绝或无法开始。";

pub(super) const TOOLS_HELP: &str = "\
示例：
  throughline tools list
  throughline tools show demo.weather
  throughline tools prompt --protocol vcp         不支持原生工具调用的模型所用的提示词
  throughline tools call demo.weather '{\"city\": \"Paris\"}'
  throughline tools call files.read '{\"path\": \"README.md\"}' --json

`call` 会先按工具的参数说明检查参数。有副作用的工具会在终端上请求批准；没有终端时须加 --approve 才会运行。
退出码 4：工具没有成功。";

pub(super) const MCP_HELP: &str = "\
示例：
  throughline mcp import claude_desktop_config.json             打印转换后的配置
  throughline mcp import ~/.cursor/mcp.json --write             写入 throughline.toml
  throughline mcp import .vscode/mcp.json --write

变量和请求头的值除非明显不是机密，一律写成 $NAME；看起来像机密的参数替换为 REPLACE_ME：不会打印或写入任何机密。
命令会列出需要设置的变量。";

pub(super) const BACKUP_HELP: &str = "\
复制数据库（内容一致，服务器运行时也可以）、上传的文件、保存的模型密钥、记住的审批、已接受的工具定义、首个密钥和
throughline.toml，最后写入带校验和的清单。文件夹含有机密，仅你可读。PostgreSQL 数据库不会复制：命令会打印
对应的 pg_dump 命令。

示例：
  throughline backup /backups/2026-11-23
  throughline restore /backups/2026-11-23";

pub(super) const RESTORE_HELP: &str = "\
先检查备份中的每个文件，只要有一个损坏或缺失，就不做任何改动。请先停止服务器：服务器运行时会拒绝恢复。已有数据时，须加
--force 才会恢复；现有数据会移到数据目录中名为 replaced-时间 的文件夹。已有的 throughline.toml 不会被替换。

示例：
  THROUGHLINE_DATA=/srv/throughline throughline restore /backups/2026-11-23";

pub(super) const UPSTREAMS_HELP: &str = "\
模型写作 UPSTREAM/MODEL。列出的上游只要设置了密钥变量，无需配置即可使用；throughline.toml 中的 `[upstreams.NAME]`
可修改现有上游，或添加自己的上游。

示例：
  throughline upstreams
  throughline upstreams --json
  DEEPSEEK_API_KEY=… throughline ask --model deepseek/deepseek-chat \"你好\"";

pub(super) const PROBE_HELP: &str = "\
依次测试：流式回复和整体回复、两个工具调用及其结果、强制调用和禁止调用、按 schema 输出 JSON、图片。共 8 个请求；若有请求
被拒绝而换一种形式重试，最多 16 个。标有 `!` 的行与接口规范不符。不加 --write 时，打印用来弥补这些差异的设置。

示例：
  throughline probe deepseek
  throughline probe ollama/qwen3 --write
  throughline probe mine --base-url http://127.0.0.1:9000/v1 --api openai-chat --model m --json";

pub(super) const CONNECT_HELP: &str = "\
不给 UPSTREAM 时，列出可直接按名称使用的上游，并标出正在本机运行的（Ollama、LM Studio、vLLM、llama.cpp 的常用地址）
及其模型，以及已有密钥的上游。

先列出上游的模型，并给选定的模型发一条简短的提示，成功后才写入。密钥保存在数据目录，仅你可读；环境变量中的密钥优先。
写入文件的是智能体所用的模型，以及使用 --base-url 或 --key-env 时的上游；文件中的注释会保留。

示例：
  throughline connect
  throughline connect deepseek --model deepseek-chat
  pass show deepseek | throughline connect deepseek --model deepseek-chat --key-stdin
  throughline connect work --base-url http://10.0.0.5:9000/v1 --api openai-chat --model qwen3
  throughline connect deepseek --forget";

pub(super) const DOCTOR_HELP: &str = "\
不会向任何模型发送内容。工具来源（MCP 服务器、命令、插件）会启动，然后停止。

示例：
  throughline doctor
  throughline doctor --config work.toml
  throughline doctor --json | jq '.findings[] | select(.state == \"wrong\")'

退出码 1：有配置无法正常工作。";

#[cfg(feature = "demo")]
pub(super) const MOCK_HELP: &str = "\
按脚本回复的上游：在一个地址上提供全部八种接口格式，并拒绝真正的服务商也会拒绝的请求。任何客户端都可以连接它。

示例：
  throughline mock                                          把演示模型作为服务器，使用空闲端口
  throughline mock --listen 127.0.0.1:9000 --script weather.toml
  throughline mock --quirk cumulative_arguments             带有一种怪癖的模型，供 `throughline probe` 测量
  throughline ask --base-url http://127.0.0.1:9000/v1 --api openai-chat --model mock \"hello\"

场景（由第一条匹配的规则回答）：
  [[rules]]
  when = { contains = \"weather\", step = 1 }
  then = [ { say = \"Let me look. \" }, { call = { name = \"demo_weather\", arguments = { city = \"Paris\" } } } ]

  [[rules]]
  when = { result_of = \"demo_weather\" }
  then = { pace = { tokens_per_second = 40 }, moves = [ { say = \"Sunny.\" } ] }

  [[rules]]
  when = { contains = \"limit\" }
  then = { http = { status = 429, headers = { retry-after = \"2\" } } }

动作：say think call parallel usage finish raw garbage ping pause wait_for error end cut stall reset。
条件：request step contains has_result result_of result_contains model may_call。";

pub(super) const COMPLETIONS_HELP: &str = "\
示例：
  throughline completions bash > ~/.local/share/bash-completion/completions/throughline
  throughline completions zsh > ~/.zfunc/_throughline
  throughline completions fish > ~/.config/fish/completions/throughline.fish";

pub(super) const REPLAY_HELP: &str = "\
根据日志重新绘制以往回合的每一屏，使用当时绘制它的同一份代码。

示例：
  throughline replay                           最新的回合，按原来的速度；停顿最长 5 秒
  throughline replay TURN --speed 4x           四倍速；max 表示没有停顿
  throughline replay TURN --step               逐个事件查看；方向键前后移动
  throughline replay TURN --at 12              消息在第 12 个事件之后的样子；--json 打印其完整结构
  throughline ask --events \"…\" > turn.jsonl
  throughline replay --from turn.jsonl         不在存储中的回合
  throughline replay TURN --decode-raw         重新解码保存的上游数据；需要 [store] 的 keep_raw

服务器运行时也可使用：只读取存储。

退出码：0；参数错误或输入无法读取为 1；数据现在的解码结果不同为 2；提前退出为 130。";

pub(super) const HISTORY_HELP: &str = "\
最新的在前。服务器运行时也可使用：只读取存储。

示例：
  throughline history                                  最近的工具调用
  throughline history --tool files.write --status error
  throughline history --limit 200 --before CURSOR      下一页；还有更多时，标准错误会给出 CURSOR
  throughline history --turns --json | jq -r '.[].id'
  throughline replay $(throughline history --turns --limit 1 --json | jq -r '.[0].id')";

pub(super) const EXPORT_HELP: &str = "\
jsonl 内容完整，可用 `throughline import` 重新导入；markdown 是一条分支，便于阅读；csv 是工具调用。
服务器运行时也可使用：只读取存储。

示例：
  throughline export conv_01a1fe3a01c37659bcb2d47e8bf4ff6e -o talk.md
  throughline export conv_01a1fe3a01c37659bcb2d47e8bf4ff6e | throughline import - --store other.db
  throughline history --turns --json | jq -r '.[].conversation_id'          对话编号";

pub(super) const IMPORT_HELP: &str = "\
读取 `throughline export` 和 GET /v1/conversations/ID/export 的 jsonl 格式，或 OpenAI 消息的 JSON 数组。
所有内容都会得到新编号；不调用模型，也不联网获取任何内容。服务器正在使用存储时，经由该服务器导入。

示例：
  throughline import talk.jsonl
  throughline import messages.json --json | jq -r .id";

pub(super) const SERVE_HELP: &str = "\
只在本机监听，除非 [server] 或 --listen 另有设置。首次启动会创建一个拥有全部权限的密钥，显示一次，并写入数据目录的
admin-token，仅你可读。SIGTERM 或 Ctrl-C 会等正在进行的回合结束，再来一次则立即停止；未完成的回合在下次启动时继续。
SIGHUP 或修改配置文件会重新加载配置。

示例：
  throughline serve
  throughline serve --model deepseek/deepseek-chat
  throughline serve --listen 127.0.0.1:9000 --store ./turns.db
  curl -H \"Authorization: Bearer $KEY\" http://127.0.0.1:8787/v1/models

docs/configuration.md 列出所有设置；docs/operations.md 说明如何为他人运行服务器。";

pub(super) const KEYS_HELP: &str = "\
密钥只在创建时显示一次，保存的只有它的哈希值。服务器正在使用存储时，修改经由该服务器进行，无需停止它。

示例：
  throughline keys create --name laptop
  throughline keys create --name ci --scopes chat,tools --days 30
  throughline keys create --name phone --user ann --models default --turns-per-day 50
  throughline keys list
  throughline keys set 3f9a --turns-per-day none
  throughline keys revoke 3f9a";

pub(super) const USERS_HELP: &str = "\
对话、文件、智能体、记住的审批和历史都属于各自的用户。添加第二个用户之前，一切都属于管理服务器的第一个用户 `local`。
服务器正在使用存储时，修改经由该服务器进行，无需停止它。docs/people.md 说明密钥、用量上限和登录方式。

示例：
  throughline users add ann
  throughline users add bob --admin --tokens-per-month 5000000
  throughline keys create --name laptop --user ann
  throughline users list
  throughline users set ann --turns-per-day 100
  throughline users remove ann --delete-data";
