// The server's texts in Chinese. Its sentences are English and carry a stable code. A sentence that is always the same is
// translated as a whole; one with values in it (names, numbers, the text of an upstream) is shown as it came, below the
// translation of its code. No sentence is ever parsed.

import type { ToolError } from "@throughline/client";

type Table = Readonly<Record<string, string>>;

/** The text of a code, whatever values its sentence has. */
export const CODES: Table = {
  // 一轮失败
  no_upstream: "没有可用的模型。",
  upstream_lost: "与上游的连接中断了。",
  upstream_error: "上游出错了。",
  upstream_finish: "回复没有正常结束。",
  upstream_timeout: "上游响应超时。",
  upstream_unreachable: "连不上上游。",
  content_filter: "回复被内容过滤器拦截了。",
  rate_limited: "上游限流，暂时不接受更多请求。",
  insufficient_quota: "上游的配额或余额已用完。",
  model_not_found: "上游没有这个模型。",
  unauthorized: "上游拒绝了密钥。",
  access_denied: "密钥有效，但上游不允许这个账户这样使用。",
  overloaded: "上游过载，暂时无法处理。",
  tool_calling_unsupported: "这个上游或模型不支持原生工具调用。",
  context_too_long: "对话太长，超出了这个模型的上下文长度。",
  request_unsendable: "请求无法发送。",

  // 消息里的提示
  stopped: "已停止。",
  length: "回复达到 Token 上限，被截断了。",
  interrupted: "服务器停止运行，回复中断了。",
  limit: "工具调用轮数已达上限，模型将根据已有结果作答。",
  history_shortened:
    "对话太长，超出了这个模型的上下文长度：较早的工具结果只保留了开头和结尾。这里的内容没有丢失；新对话或上下文更长的模型可以看到完整内容。",
  loop_stopped: "模型反复进行同样的调用，结果也相同；现在根据已有结果作答。",
  empty_reply: "模型的回复为空。",

  // 文本里的调用
  in_code_fence: "代码块里的工具请求只是示例，没有运行。",
  in_inline_code: "行内代码里的工具请求只是示例，没有运行。",
  in_indented_code: "缩进代码里的工具请求只是示例，没有运行。",
  in_quotation: "引用（`>`）里的工具请求没有运行。",
  in_quotation_marks: "引号里的工具请求只是示例，没有运行。",
  in_list: "列表里的工具请求只是示例，没有运行。",
  in_table: "表格里的工具请求只是示例，没有运行。",
  in_comment: "注释或标题里的工具请求只是示例，没有运行。",
  in_thinking: "思考过程里的工具请求没有运行。",
  marked_inert: "标为示例（`…_ESCAPE`）的块没有运行。",
  torn_marker: "回复在一个标记中间中断，该标记不显示。",
  stray_end: "没有对应请求的结束标记，不显示。",
  directive: "供其他系统使用的字段，在这里不起作用。",
  given_twice: "参数重复给出，以最后一次为准。",

  // 被拒绝的请求：身份与服务器
  unauthenticated: "缺少密钥，或密钥无效。",
  sign_in: "登录链接不存在、已使用或已过期。",
  missing_scope: "这个密钥没有所需的权限。",
  unknown_host: "服务器不认识这个主机名。",
  foreign_origin: "其他来源的页面不能使用此服务器。",
  private_network: "其他网络的页面不能访问此网络。",
  not_found: "没有找到。",
  not_configured: "没有配置。",
  no_such_event: "没有这个事件。",
  exists: "已存在相同的内容。",
  internal: "服务器内部错误。",
  no_room: "服务器磁盘已满。",
  store_unavailable: "存储暂时无法读写。",
  starting: "服务器正在启动，稍后会继续这一轮。",
  stopping: "服务器正在停止，不再开始新的一轮。",
  over_limit: "超出上限。",
  invalid_value: "有一个值无效。",
  body_bytes_max: "内容太大。",
  body_too_large: "内容太大。",
  busy: "服务器繁忙，请稍后再试。",
  body_ms_max: "内容未能及时送达。",
  unreadable_body: "内容没有完整送达。",
  unreadable_form: "内容没有完整送达。",
  json_depth_max: "JSON 嵌套过深。",
  json_values_max: "JSON 里的值太多了。",
  http_413: "服务器前面的代理不接受这么大的内容。",
  http_502: "代理连不上服务器。",
  http_503: "代理暂时不可用。",
  http_504: "代理等待服务器响应超时。",

  // PDF 文件
  not_a_pdf: "这个文件不是 PDF。",
  encrypted_pdf: "这个 PDF 需要密码。",
  unreadable_pdf: "无法把这个文件当作 PDF 读取。",
  slow_pdf: "读取这个 PDF 的这一页耗时超过了 `pdf_ms_max`。",
  too_many_pdfs: "你的 PDF 文件同时读取得太多了。",
  pdf_readers_busy: "正在读取其他 PDF 文件。",
  no_pdf_reader: "此服务器没有读取 PDF 的程序。",

  // 提示词库
  empty_prompt: "提示词是空的。",
  prompt_too_long: "提示词太长了。",
  too_many_prompts: "保存的提示词太多了。",

  // 对话
  conversation_busy: "这个对话还有一轮正在进行。",
  turn_running: "这个对话还有一轮正在进行。",
  turn_is_over: "这一轮已经结束。",
  too_late: "已经来不及了。",
  too_many_messages: "排队的消息太多了。",
  too_many_turns: "同时进行的轮次太多了。",
  too_many_streams: "打开的连接太多了。",
  large_bodies_bytes_per_key_max: "同时发送的大请求太多了。",
  large_bodies_memory_bytes_max: "服务器正在处理太多的大请求。",
  turns_per_minute_max: "每分钟开始的轮次太多了。",
  shared_reads_per_minute_max: "这个链接每分钟被打开的次数太多了。",
  usage_limit: "用量已达到上限。",
  model_not_allowed: "这个密钥不能使用该模型。",
  first_user: "服务器的第一个用户不能移除，也始终是管理员。",
  own_user: "不能移除自己。",
  sign_in_state: "这次登录不是在此浏览器中开始的，或已完成，或耗时过长。",
  provider_refused: "登录服务拒绝了登录。",
  provider_answer: "登录服务的回应无法识别。",
  provider_unreachable: "无法连接登录服务。",
  no_provider: "此服务器没有登录服务。",
  id_token: "登录服务发来的 ID 令牌无效。",
  bad_claim: "ID 令牌中没有可用的用户名。",
  email_unverified: "登录服务没有确认此账户的邮箱。",
  probe_running: "正在测量这个上游。",
  proxy_header: "代理给出的用户名无效。",
  unknown_person: "已登录，但不是此服务器的用户。",
  removed_person: "此用户已从服务器移除。",
  not_allowed: "此账户不能使用该服务器。",
  identities_differ: "密钥与代理登录的不是同一个人。",
  bad_models: "模型列表无效。",
  not_admin: "此用户不是管理员，其密钥不能有 `admin` 权限。",
  empty_input: "内容为空。",
  events_gone: "这一轮的事件已清除。",
  answered_differently: "这个问题已有不同的答复。",
  link_used: "这个链接已使用过，或它的问题已有答复。",
  owned_elsewhere: "这一轮由另一台服务器运行。",
  outcome_unknown: "运行这一轮的服务器已接收该请求，但尚未答复；结果以这一轮的事件为准。",
  link_gone: "这个链接不完整、已撤销或已过期。",
  nothing_to_share: "这个对话还没有可以分享的内容。",
  turn_not_running: "这一轮尚未结束，但目前没有服务器在运行它；请稍后重试。",
  turn_not_begun: "这一轮在另一台服务器上还没有开始。",
  question_closed: "这个问题已关闭：已超时，或对应的调用已结束。",
  does_not_fit: "修改后的参数无效。",
  remembered_unreadable: "有一条记住的审批无法读取。",
  unknown_agent: "智能体不存在。",
  unknown_model: "没有这个模型。",
  unusable_prompt: "提示词无效。",
  upstream_without_key: "上游还没有密钥。",

  // 文件
  content_gone: "这个文件的内容已不存在。",
  stored_elsewhere: "这个文件的内容在另一台服务器上。",
  disk_full: "没有空间存放文件了。",
  empty_file: "文件是空的。",
  file_too_large: "文件太大。",
  media_type_mismatch: "文件类型与声明不一致。",
  no_arguments: "这个调用没有可以再次运行的参数。",
  no_conversation: "这一轮不属于任何可以继续的对话。",
  tool_not_offered: "这个智能体不再提供这个工具。",
  not_an_image: "这个文件不是图片。",

  // 工具
  confirmation_required: "可能会更改数据，尚未获得批准。",
  denied: "规则不允许这个调用。",
  invalid_arguments: "参数不符合要求。",
  not_run: "没有运行。",
  runs_in_client: "它只能在对话的一轮中，由已连接的页面或应用运行。",
  text_too_long: "文本太长。",
  recording_bytes_max: "录制内容太大。",
  no_recording: "请求里没有录制内容。",

  // 智能体
  agent_is_read_only: "此智能体在配置文件中定义，不能在这里修改。",
  changed_meanwhile: "它刚刚被修改过。",
  name_taken: "这个名称已被使用。",
  invalid_agent: "此设置无效。",
  unknown_source: "目前没有来自该来源的工具。",
  unknown_tool: "目前没有这个工具或工具组。",

  // 连接模型
  bad_base_url: "此地址无效。",
  bad_dialect: "不支持这种接口格式。",
  bad_key: "密钥格式不正确。",
  bad_name: "此名称无效。",
  configuration: "配置有误。",
  key_in_environment: "服务器的环境变量中已有密钥，会优先使用。",
  key_needed: "需要密钥。",
  model_needed: "请指定模型。",
  not_connectable: "此服务器不保存密钥，无法在这里连接。",
  not_from_here: "自定义接口只能在服务器所在的机器上添加。",
  upstream_busy: "服务商限流，请稍后再试。",
  upstream_refused: "服务商拒绝了请求。",
};

/** Remedies of codes, where the server names a route of its API, or repeats values of its sentence. */
export const REMEDIES: Table = {
  missing_scope: "请用 `throughline keys create --scopes` 创建带此权限的密钥。",
  conversation_busy: "请等它结束，或先停止。",
  turn_running: "请先停止。",
  agent_is_read_only: "请修改配置文件，或创建副本后再修改。",
  key_in_environment: "密钥留空即可使用它；要换用其他密钥，请从环境变量中移除它，再重启服务器。",
};

/** Sentences that say no more than their code. */
export const WHOLE: ReadonlySet<string> = new Set([
  "No model is available.",
  "The reply did not finish normally.",
  "The upstream cannot be reached.",
  "The upstream is rate limiting requests.",
  "The upstream rejected the key.",
  "The upstream does not allow this for the key's account.",
  "The upstream is overloaded.",
  "This upstream or model does not support native tool calling.",
  "The conversation is too long for this model.",
  "The request could not be sent.",
  "The upstream's quota or credit is used up.",
  "The upstream does not have this model.",
  "Stopped by the user.",
  "The model repeated the same calls with the same results; it answers with the results so far.",
  "The model sent an empty reply.",
  "A tool request in a code block is an example: it was not run.",
  "A tool request in inline code is an example: it was not run.",
  "A tool request in indented code is an example: it was not run.",
  "A tool request in a quotation (`>`) was not run.",
  "A tool request in quotation marks is an example: it was not run.",
  "A tool request in a list is an example: it was not run.",
  "A tool request in a table is an example: it was not run.",
  "A tool request in a comment or a heading is an example: it was not run.",
  "A tool request in a thinking block was not run.",
  "A block marked as an example (`…_ESCAPE`) was not run.",
  "The reply ended in the middle of a marker, which is not shown.",
  "An end marker without a request before it is not shown.",
  "A field for another system has no effect here.",
  "A parameter is given more than once: the last value counts.",
  "API key is missing or invalid",
  "sign-in link is unknown, used or expired",
  "requests from pages of another origin are not allowed",
  "pages of public networks may not access this private network",
  "internal server error",
  "store is temporarily unavailable",
  "the server is starting and will resume this turn",
  "the server is stopping and does not start new turns",
  "the request body is too large",
  "a turn of this conversation is still running",
  "the turn has ended",
  "the turn has ended; its questions can no longer be answered",
  "it was already delivered, or never existed",
  "too many messages are queued",
  "the input is empty",
  "the events of this turn have been deleted",
  "the content of this file is missing",
  "there is no room for files",
  "the file is empty",
  "the PDF needs a password",
  "the prompt is empty",
  "the file cannot be read as a PDF",
  "reading this page of the PDF exceeds `pdf_ms_max`",
  "all PDF readers are busy",
  "this server has no program that reads PDF files",
  "an agent of that name is in the configuration file",
  "connecting an agent requires a model",
  "this server does not store upstream keys, so none can be connected",
  "a custom `base_url` is accepted only from the server's own machine",
]);

/** Other sentences that are always the same. */
export const SENTENCES: Table = {
  // 发生了什么
  "The model's reply ended early.": "模型的回复中断了。",
  'The reply was requested again without streaming. `streaming = "off"` for this upstream saves the first attempt.':
    '已改为请求完整的回答。为这个上游设置 `streaming = "off"` 可省去第一次尝试。',
  "If it was intended, ask the model to write the request outside of code, quotations, lists, tables, comments and thinking.":
    "如果确实要调用，请让模型把请求写在代码、引用、列表、表格、注释和思考之外。",
  "The upstream reported an error.": "上游报告了错误。",
  "The reply was blocked by a content filter.": "回复被拦截了。",
  "The upstream did not answer in time.": "上游没有及时响应。",
  "The model did not begin to answer in time.": "模型没有及时开始回答。",
  "Raise `first_byte_ms` in the timeouts of the upstream, or send less: fewer tools, a shorter conversation.":
    "请调大上游 timeouts 中的 `first_byte_ms`，或减少发送的内容：更少的工具、更短的对话。",
  "The upstream stopped sending.": "上游中途停止发送。",
  "Try again in a moment, or raise `idle_ms` in the timeouts of the upstream.":
    "请稍后再试，或调大上游 timeouts 中的 `idle_ms`。",
  "The model produced reasoning but no answer, even after being asked for one.":
    "模型只进行了思考，被要求作答后仍没有写出回答。",
  "The upstream has no endpoint at this address.": "上游的这个地址上什么也没有。",
  "Check `base_url` of the upstream: most end with /v1, and the rest of the path is added.":
    "请检查上游的 `base_url`：大多以 /v1 结尾，其后的路径会自动补上。",
  "The reply took longer than allowed.": "回复超出了允许的时间。",
  "The connection to the upstream was lost.": "与上游的连接中断了。",
  "The upstream could not answer.": "上游无法回答。",
  "The upstream refused the request.": "上游拒绝了这个请求。",
  "The reply reached its token limit. Send “continue” to resume.":
    "回复达到 Token 上限，被截断了。发送“继续”即可接着生成。",
  "The process that wrote this reply stopped before it was complete. The text so far is saved.":
    "服务器停止运行，回复没有完成。已显示的内容会保留。",
  "the turn could not be logged": "这一轮无法写入日志，因此没有开始。",

  // 上限
  "send less, or raise `json_values_max` of [server.limits]":
    "请减少内容，或调大 [server.limits] 的 `json_values_max`。",
  "send a smaller file, or raise `upload_bytes_max` of [server.limits]":
    "请发送小一些的文件，或调大 [server.limits] 的 `upload_bytes_max`。",
  "make it shorter": "请缩短。",
  "remove another tag first": "请先去掉一个标签。",
  "revoke links that are no longer needed (DELETE /v1/shares/{share_id})":
    "请撤销不再需要的链接（DELETE /v1/shares/{share_id}）。",
  "continue in a new conversation": "请在新对话中继续。",
  "make it smaller": "请减小内容。",
  "delete one that is not needed any more": "请删除一个不再需要的。",
  "revoke keys that are no longer used": "请吊销不再使用的密钥。",
  "restore a removed user by adding the same name": "可以用原来的名称重新添加已移除的人。",
  "delete files that are no longer needed (DELETE /v1/files/{file_id})":
    "请删除不再需要的文件（DELETE /v1/files/{file_id}）。",

  // 为什么
  "No upstream is configured for this agent.": "这个智能体没有配置上游。",
  "The connection closed without the protocol's end marker.": "连接在收到协议的结束标记之前就断开了。",
  "The reply ended inside this call.": "回复在这个调用中间中断了。",
  "The model sent arguments without a tool name.": "模型给出了参数，但没有给出名称。",
  "The call could not be parsed.": "这个调用无法解析。",
  "The block has no end: <<<[END_TOOL_REQUEST]>>> must follow its last field directly.":
    "块没有结束：最后一个字段后面必须紧跟 <<<[END_TOOL_REQUEST]>>>。",
  "The field `tool_name` is missing: tool_name:「始」name of the tool「末」.":
    "缺少字段 `tool_name`：tool_name:「始」工具名称「末」。",
  "The block has `command` and numbered commands: number all of them, or write one block for each.":
    "块里既有 `command` 又有编号的命令：请全部编号，或每个命令写一个块。",
  "The block has no end: </tool_call> must follow the JSON object.":
    "块没有结束：JSON 对象后面必须有 </tool_call>。",
  'The JSON between <tool_call> and </tool_call> must be {"name": "function name", "arguments": {…}}.':
    '<tool_call> 与 </tool_call> 之间的 JSON 必须是 {"name": "函数名", "arguments": {…}}。',
  '"name" or "arguments" is given twice in one call: write one block for each.':
    "同一个调用里 `name` 或 `arguments` 出现了两次：请每个调用写一个块。",
  "An earlier call was not valid JSON, so this one may be a part of it: write it again.":
    "前面有一个调用的 JSON 无法解析，这个调用可能是它的一部分：请重新写。",
  "The client did not return a result in time.": "运行它的页面或应用没有及时响应。",
  "the client reported a failure without a reason": "运行它的页面或应用报告失败，但没有说明原因。",
  "no answer": "没有人答复。",
  "a person denied this before": "之前已被拒绝过。",
  "models may not call it (agent_callable)": "模型不能调用它（agent_callable）",
  "the agent has no tools (tool_call.enabled = false)": "此智能体未启用工具（tool_call.enabled = false）",
  "not switched on (default_tool_enabled = false)": "未开启（default_tool_enabled = false）",

  // 怎么办：一轮失败
  "Configure an upstream, or run without a configuration to use the demo model.":
    "请配置一个上游；不带任何配置启动时，由演示模型回答。",
  "Try again.": "请重试。",
  "Try again, or choose another model.": "请重试，或换一个模型。",
  "Try again in a moment, or choose another model.": "请稍后再试，或换一个模型。",
  "The upstream's filter refused the request.": "上游的内容过滤器拒绝了这个请求。",
  "Rephrase the message, or choose another model.": "请换个说法，或换一个模型。",
  "Check the address and the network.": "请检查地址和网络。",
  "Raise the total timeout, or request a shorter reply.": "请调大总超时时间，或缩小请求范围。",
  "The same request will be rejected again: read the upstream's message, or choose another model.":
    "同样的请求还会被拒绝：请查看上游的说明，或换一个模型。",
  "Check the key and its environment variable.": "请检查密钥及其环境变量。",
  "Read the upstream's message: the model, the region or the account is not enabled. Or choose another model.":
    "请查看上游的说明：模型、地区或账户未开通。也可以换一个模型。",
  'Use text mode, in which the model writes its calls as text: `/mode text` in the chat, `--mode text` for the command, or `mode = "text"` for the agent. Or choose a model that can call tools.':
    '请改用文本模式，让模型把调用写成文本：对话里用 `/mode text`，命令行用 `--mode text`，智能体用 `mode = "text"`。也可以换一个支持工具调用的模型。',
  "Choose a model with a longer context, or remove old messages, pictures or files.":
    "请换一个上下文更长的模型，或去掉不再需要的内容：旧消息、图片、文件。",
  "Add credit at the provider, or choose another model.": "请到服务商处充值，或换一个模型。",
  "Choose an available model: GET /v1/models lists the configured ones.":
    "请换一个上游已有的模型：GET /v1/models 会列出已配置的模型。",
  "Check the upstream's configuration.": "请检查上游的配置。",
  "The text so far is saved. Send “continue” to resume from there.":
    "已显示的内容会保留。发送“继续”即可接着生成。",

  // 怎么办：被拒绝的请求
  "send `Authorization: Bearer <key>`; create a key with `throughline keys create`":
    "请重新登录；`throughline keys create` 可以创建密钥。",
  "`throughline serve` prints a new one at each start; `throughline keys create` creates a key":
    "`throughline serve` 每次启动都会打印新链接；`throughline keys create` 可以创建密钥。",
  "use an id returned by this server; deleted resources and those of other users are not found":
    "请使用服务器列出的内容；已删除的或属于其他用户的都无法访问。",
  "see the server's log, and please report it": "原因见服务器日志；请报告这个问题。",
  "free disk space on the server; running turns can finish":
    "请清理服务器的磁盘空间；正在进行的轮次可以完成。",
  "try again; running turns wait for the store": "正在进行的轮次会等待；请重试。",
  "send a valid key, or add this name to `hosts` of [server]":
    "请使用有效的密钥，或把这个名称加到 [server] 的 `hosts`。",
  "to allow the page, add its origin to `origins` of [server]":
    "如需允许，请把它的来源加到 [server] 的 `origins`。",
  "upload files first (POST /v1/files) and refer to them by id": "请把长内容作为文件上传。",
  "try again in a moment": "请稍后再试。",
  "try again: it is resumed once its server has started": "请重试：它的服务器启动后，这一轮会继续。",
  "wait for one of them, or cancel it: GET /v1/turns lists them":
    "请等其中一轮结束，或停止一轮；GET /v1/turns 会列出所有轮次。",
  "begin another one with it: POST /v1/turns": "请用这条消息开始新的一轮。",
  "close unused streams, or follow several turns over one WebSocket (/v1/ws)": "请关闭不用的页面。",
  "its messages are in its conversation: GET /v1/conversations": "内容还在对话里。",
  "answer each question by its id, or leave the field out": "请按编号逐个答复，或去掉这个字段。",
  "the question is still open": "这个问题仍在等待答复。",
  "GET /v1/models lists the models": "请从列出的模型中选择。",
  "upload it again": "请重新上传。",
  "save a copy without a password, and upload that": "请另存一份不带密码的副本，再上传。",
  "open it in a PDF viewer, print it into a new PDF and upload that, or paste its text":
    "请用 PDF 阅读器打开并打印成新的 PDF 后上传，或直接粘贴其中的文字。",
  "ask for a later page (`from_page`), paste the text, or raise `pdf_ms_max` of [server.limits]":
    "请从后面的页开始（`from_page`），或粘贴文字，或调大 [server.limits] 的 `pdf_ms_max`。",
  "delete one that you no longer use": "请先删除不再使用的提示词。",
  "save a shorter one, and add the rest as a file": "请保存较短的提示词，其余内容作为文件添加。",
  "wait until one has been read": "请等其中一个读完。",
  "send fewer at once, or raise `large_bodies_bytes_per_key_max` of [server.limits]":
    "请减少同时发送的请求，或调大 [server.limits] 的 `large_bodies_bytes_per_key_max`。",
  "try again in a moment, or raise `large_bodies_memory_bytes_max` of [server.limits]":
    "请稍后再试，或调大 [server.limits] 的 `large_bodies_memory_bytes_max`。",
  "try again in a moment, or raise `pdf_readers_max` of [server.limits]":
    "请稍后再试，或调大 [server.limits] 的 `pdf_readers_max`。",
  "read it with /content": "请用 /content 读取。",
  "run it as `throughline serve`, or call `AppState::with_pdf_program`":
    "请用 `throughline serve` 启动，或调用 `AppState::with_pdf_program`。",
  "declare the actual type, or application/octet-stream": "请换一个文件。",
  'send it as {"type": "file"}': "请换一个文件。",
  "see the tool's schema: GET /v1/tools": "请对照工具的参数说明修改。",
  'look at the arguments, and send them again with "confirm": true': "请检查参数，然后批准运行。",
  "`throughline decode` in the terminal takes any size": "终端中的 `throughline decode` 不限大小。",
  "load the current version and apply the change to it": "请查看当前内容，在此基础上修改。",
  "choose another name": "请换一个名称。",
  "call it something else": "请换一个名称。",
  "choose another name, or change the file": "请换一个名称，或修改配置文件。",
  "copy the key again, without anything around it": "请重新复制，前后不要带其他内容。",
  "mend it, then connect": "请先修正，再连接。",
  "name a model, as its documentation calls it": "请按服务商的文档填写模型名称。",
  "put the key into the environment of the server": "请把密钥放到服务器的环境变量中。",
  "on that machine: throughline connect NAME --base-url URL --api openai-chat, or [upstreams.NAME] in throughline.toml":
    "请在那台机器上运行 throughline connect NAME --base-url URL --api openai-chat，或写进 throughline.toml 的 [upstreams.NAME]。",
  "read its message, or choose another model": "请查看它的说明，或换一个模型。",
};

/** Names of limits; one that has none here is shown as it is called. */
const LIMITS: Table = {
  iterations_max: "工具调用轮数",
  calls_per_turn_max: "每轮调用数",
  arguments_bytes_max: "参数大小",
  loop_guard: "重复的调用",
};

/** How a call ended that did not go well. */
export const OUTCOMES: Readonly<
  Record<ToolError["code"], string | ((error: Readonly<ToolError>) => string)>
> = {
  failed: "工具运行失败。",
  denied: "未获批准，没有运行。",
  cancelled: "运行中被停止，可能已经产生影响。",
  cancelled_before_start: "开始前已被停止，没有产生任何影响。",
  timed_out: ({ limit_ms }) =>
    `未能在${limit_ms === undefined ? "时限" : ` ${limit_ms / 1_000} 秒`}内完成，可能已经产生影响。`,
  interrupted: "回复在调用完整之前中断，调用没有开始。",
  invalid_arguments: "参数无效，调用没有开始。",
  refused: "这个请求无法解析，没有运行。",
  unknown_tool: "没有这个工具，没有运行。",
  no_viewer: "没有连接可运行它的页面或应用，没有运行。",
  client_gone: "没有收到结果，可能已经产生影响。",
  stopped: "开始前回复已被停止，没有产生任何影响。",
  limit: ({ limit = "" }) => `已达上限（${of(LIMITS, limit) ?? limit}），调用没有开始。`,
  unknown: "调用已开始，结果未知，可能已经产生影响。",
};

/** A name that somebody else has chosen is no name of what every object has. */
function of(table: Table, name: string | undefined): string | undefined {
  return name !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
}

export function serverText(sentence: string, code?: string): string {
  const whole = of(SENTENCES, sentence);
  const heading = of(CODES, code);
  if (whole !== undefined || heading === undefined) return whole ?? sentence;
  return WHOLE.has(sentence) || sentence === "" ? heading : `${heading}\n${sentence}`;
}

export function remedyText(
  remedy: string | undefined,
  code: string,
  retryAfter?: number,
): string | undefined {
  const ours = (remedy && of(SENTENCES, remedy)) ?? of(REMEDIES, code) ?? remedy;
  return ours || (retryAfter ? `请在 ${Math.ceil(retryAfter)} 秒后再试。` : undefined);
}

export function outcomeText(error: Readonly<ToolError>): string {
  // A later release may know more codes.
  const ending: (typeof OUTCOMES)[ToolError["code"]] | undefined = OUTCOMES[error.code];
  return typeof ending === "function" ? ending(error) : (ending ?? error.code);
}
