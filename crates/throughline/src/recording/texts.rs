//! Texts about recordings, in Chinese and English side by side.

use super::diagnostics::RecordingDiagnostic;
use crate::UserLanguage;
use throughline_wire::ProblemKind;

/// A mistake by its code.
pub(super) fn diagnostic(code: &str, language: UserLanguage) -> Option<RecordingDiagnostic> {
    type TextPair = (&'static str, &'static str);
    let row: (&'static str, TextPair, TextPair) = match code {
        "empty" => (
            "empty",
            ("The recording is empty.", "Record the response body: `curl -sN … -o reply.sse`."),
            ("里面什么都没有。", "请录下响应体：`curl -sN … -o reply.sse`。"),
        ),
        "compressed" => (
            "compressed",
            (
                "The recording is compressed.",
                "Unpack it (`gzip -d`, `zstd -d`), or record with `curl --compressed`.",
            ),
            ("它是压缩过的。", "先解压（`gzip -d`、`zstd -d`），或用 `curl --compressed` 录制。"),
        ),
        "utf16" => (
            "utf16",
            (
                "The recording is UTF-16, as PowerShell writes it with `>`.",
                "Record with `curl.exe -o reply.sse` instead of `>`.",
            ),
            (
                "它是 UTF-16 编码，PowerShell 的 `>` 会这样写。",
                "请用 `curl.exe -o reply.sse` 代替 `>` 录制。",
            ),
        ),
        "html" => (
            "html",
            (
                "The recording is an HTML page: a proxy, a gateway or a login page answered instead of the model.",
                "Check the URL and the proxies in between; the title of the page usually names the cause.",
            ),
            (
                "它是网页（HTML）：回答的是代理、网关或登录页，而不是模型。",
                "请检查地址和中间的代理；网页标题通常说明了原因。",
            ),
        ),
        "headers" => (
            "headers",
            (
                "The recording begins with HTTP headers.",
                "Record without `-i`, or delete everything up to the first blank line.",
            ),
            ("它以 HTTP 响应头开头。", "录制时去掉 `-i`；或删掉第一个空行之前的内容。"),
        ),
        "har" => (
            "har",
            (
                "The recording is a HAR file of a browser.",
                "Copy the response of that request (`response.content.text`) into a file.",
            ),
            ("它是浏览器的 HAR 文件。", "请把那个请求的响应（`response.content.text`）复制到一个文件里。"),
        ),
        "chunked" => (
            "chunked",
            (
                "The recording contains HTTP chunk sizes: it was captured from the network.",
                "Record with an HTTP client: `curl -sN … -o reply.sse`, without `--raw`.",
            ),
            (
                "行间夹着 HTTP 分块的长度：它是从网络上直接截下来的。",
                "请用 HTTP 客户端录制：`curl -sN … -o reply.sse`，不要加 `--raw`。",
            ),
        ),
        "escaped" => (
            "escaped",
            (
                "Line ends are escaped as `\\n`: the recording was copied out of a JSON string or a log.",
                "Unescape it first: `jq -r . < copied.json > reply.sse`.",
            ),
            (
                "换行被写成了 `\\n`：它是从 JSON 字符串或日志里复制出来的。",
                "请先还原：`jq -r . < copied.json > reply.sse`。",
            ),
        ),
        "no_blank_lines" => (
            "no_blank_lines",
            (
                "The blank lines between events are missing: an editor or a log removed them.",
                "It is read line by line as far as possible; record into a file to be sure.",
            ),
            (
                "事件之间没有空行：编辑器或日志把它们去掉了。",
                "这里尽量按行读取；要确保准确，请直接录到文件里。",
            ),
        ),
        "not_sse" => (
            "not_sse",
            (
                "The recording is not a stream: no line begins with `data:`, and it is not JSON.",
                "Record the response body: `curl -sN … -o reply.sse`.",
            ),
            (
                "它不是事件流：没有以 `data:` 开头的行，也不是 JSON。",
                "请录下响应体：`curl -sN … -o reply.sse`。",
            ),
        ),
        _ => return None,
    };
    let (code, en, zh) = row;
    let (what, remedy) = language.pick(en, zh);
    Some(RecordingDiagnostic { code, what, remedy })
}

/// Text of a decoder's finding and of how it was handled.
pub fn problem_text(kind: &ProblemKind, language: UserLanguage) -> String {
    use ProblemKind as P;
    let text: (&str, &str) = match kind {
        P::InvalidEvent => {
            ("The payload of an event is not JSON. The event is skipped.", "事件内容不是 JSON，已跳过。")
        }
        P::InvalidUtf8 => {
            ("Some bytes are not valid UTF-8; they are replaced.", "有字节不是 UTF-8，已替换。")
        }
        P::BadChecksum => (
            "The checksum of a frame is wrong. The frame and everything after it are skipped.",
            "帧的校验和不对，它和后面的内容都已跳过。",
        ),
        P::LimitReached { limit } => {
            return language
                .pick(format!("The limit `{limit}` is reached."), format!("达到了上限 `{limit}`。"));
        }
        P::Repaired { .. } => {
            ("The arguments are not valid JSON. They were repaired.", "参数原样不是 JSON，修改后才能读取。")
        }
        P::NameChanged => {
            ("A call has a second name. The first one is used.", "调用有了第二个名称，以第一个为准。")
        }
        P::IdChanged => (
            "The id of a call changes, or belongs to another call. The first one is used.",
            "调用的标识变了或与别的重复，以第一个为准。",
        ),
        P::PhantomCall => {
            ("An entry in the list of calls is empty. It is ignored.", "调用列表里有一项是空的，不算调用。")
        }
        P::ContradictedSeal => (
            "More arguments arrived after they were complete. They start a new call.",
            "参数完整之后又来了更多，调用重新开始。",
        ),
        P::MisnumberedFragment => (
            "A piece of arguments has an index without a call. It was added to the only open call.",
            "参数片段的编号不属于任何调用，已归入唯一未完成的调用。",
        ),
        P::ForeignEnd => (
            "An end marker of another format arrived before the end of the reply. It is ignored.",
            "在回答自身的结束标记之前出现了另一种格式的结束标记，不算结束。",
        ),
        P::Ambiguous => ("The input is ambiguous; no interpretation is chosen.", "有两种读法，不作猜测。"),
        P::LeakedCall { format } => {
            return language.pick(
                format!(
                    "The text contains a tool call in the format `{format}`. It is treated as text here."
                ),
                format!("文字里写着一个 `{format}` 格式的工具调用，这里只当作文字。"),
            );
        }
        P::Restarted => (
            "The upstream started a second reply in the same stream.",
            "上游在同一条流里又开始了第二个回答。",
        ),
        P::StreamReplaced => (
            "The stream ended before its first content. The reply was requested again without streaming.",
            "流在出现任何内容之前就中断了，已改为请求完整的回答。",
        ),
        P::ToolsLeftOut => (
            "The upstream accepts no more tools, or rejects these. They were not sent.",
            "上游不再接受更多工具，或拒绝以下工具，因此没有发送它们。",
        ),
        P::SettingsLeftOut => (
            "These settings conflict with others, or the model does not support them. They were not sent.",
            "以下设置与其他设置相互排斥，或者该模型不接受，因此没有发送。",
        ),
        P::CallMarkup { finding, .. } => return finding.clone(),
        P::UnknownEvent => ("An element of an unknown kind is skipped.", "未知的种类，已跳过。"),
        _ => ("The decoder reported an unknown problem.", "解码器发现了异常。"),
    };
    language.pick(text.0, text.1).to_owned()
}
