//! Output of `parse`, `tools prompt`, `tools list` and `tools remembered`.

use super::ui_text::tr;
use crate::exit::{CliExit, CliFailure};
use serde_json::Value;
use std::fmt::Display;
use throughline::approval_store::StoredApproval;
use throughline::inspect::{CallOrigin, CallPrediction, InspectedCall, ReplyInspection};
use throughline::prompt::{self, TokenCounting};
use throughline::recording::RecordingDiagnostic;
use throughline::{ApprovalDecision, ToolSelection};
use throughline_engine::UnmatchedRule;
use throughline_wire::Dialect;

/// Standard input is a terminal where a reply was expected.
pub(crate) fn parse_reads_stdin() -> String {
    tr!("reading a reply from standard input; end it with Ctrl-D", "正在从标准输入读取回复，按 Ctrl-D 结束")
}

/// Below a call in the markup of a model.
pub(crate) fn parse_leaked() -> String {
    tr!(
        "leaked as text: reported as a problem; it runs only if the upstream's profile sets leaked_calls = \"run\"",
        "泄漏到文本中：作为问题报告；只有上游的设置为 leaked_calls = \"run\" 时才运行"
    )
}

/// `tools remembered` with nothing to show.
pub(crate) fn nothing_is_remembered() -> String {
    tr!("no remembered approvals\n", "没有记住的审批\n")
}

/// Below the list.
pub(crate) fn remembered_legend() -> String {
    tr!(
        "\ndelete one: throughline tools remembered --forget NUMBER\n",
        "\n删除：throughline tools remembered --forget 编号\n"
    )
}

/// Note below revoked approvals.
pub(crate) fn forgotten() -> String {
    tr!("deleted; such calls ask again\n", "已删除；此类调用会再次询问\n")
}

/// A guess at a body that is no complete reply.
pub(crate) fn decode_warning(diagnostic: &RecordingDiagnostic) -> String {
    format!("⚠ {} {}", diagnostic.what, diagnostic.remedy)
}

/// A body in which there was nothing to decode.
pub(crate) fn nothing_decoded(
    dialect: Dialect,
    other: Option<Dialect>,
    diagnostics: &[RecordingDiagnostic],
) -> CliFailure {
    let what = tr!("nothing was decoded as {dialect}", "按 {dialect} 没有解码出任何内容");
    let (why, remedy) = match (other, diagnostics) {
        (Some(other), []) => (tr!("it looks like {other}", "它看起来是 {other}"), format!("--api {other}")),
        (None, []) => (
            tr!("it is none of the known formats", "它不是任何已知的格式"),
            tr!(
                "record the body of a reply: curl -sN … -o reply.sse",
                "录下一个响应体：curl -sN … -o reply.sse"
            ),
        ),
        (_, found) => (
            found.iter().map(|one| one.what).collect::<Vec<_>>().join(" "),
            found.iter().map(|one| one.remedy).collect::<Vec<_>>().join(" "),
        ),
    };
    CliFailure { exit: CliExit::Failed, what, why, remedy }
}

/// An output that is too long to print.
pub(crate) fn whole_output_in(path: &str) -> String {
    tr!("the whole output is in {path}", "完整输出在 {path}")
}

/// `call 'demo_weather' (vcp)`, `refused (vcp)`.
pub(crate) fn parse_heading(request: &InspectedCall) -> String {
    let InspectedCall { format, name, tool, prediction: outlook, origin, .. } = request;
    let what = match (outlook, origin) {
        (CallPrediction::NotStarted { .. } | CallPrediction::Denied { .. }, _) => tr!("refused", "不会运行"),
        (_, CallOrigin::Protocol) => tr!("call", "调用"),
        (_, CallOrigin::Leaked) => tr!("leaked call", "泄漏的调用"),
    };
    match tool {
        Some(tool) => format!("{what}: {tool} ({format})"),
        None if name.is_empty() => {
            tr!("{what}: a block without a name ({format})", "{what}：没有名称的块（{format}）")
        }
        None => format!("{what}: {name} ({format})"),
    }
}

/// The arguments on one line.
pub(crate) fn parse_arguments(arguments: &Value) -> String {
    tr!("arguments: {arguments}", "参数：{arguments}")
}

/// Predicted outcome of a call.
pub(crate) fn parse_outlook(outlook: &CallPrediction) -> String {
    match outlook {
        CallPrediction::Runs { rule } => tr!("would run ({rule})", "会直接运行（{rule}）"),
        CallPrediction::Asks { rule } => tr!("would ask first ({rule})", "会先询问（{rule}）"),
        CallPrediction::Denied { rule, reason } => {
            tr!("would be denied: {reason} ({rule})", "会被拒绝：{reason}（{rule}）")
        }
        CallPrediction::NotStarted { why } => tr!("would not start: {why}", "无法开始：{why}"),
        _ => tr!("not known", "未知"),
    }
}

/// The last line.
pub(crate) fn parse_summary(inspection: &ReplyInspection) -> String {
    let count = |is: fn(&CallPrediction) -> bool| {
        inspection.calls.iter().filter(|request| is(&request.prediction)).count()
    };
    let (calls, warnings) = (inspection.calls.len(), inspection.warnings.len());
    let s = |number: usize| if number == 1 { "" } else { "s" };
    let (calls_s, warnings_s) = (s(calls), s(warnings));
    let run = count(|outlook| matches!(outlook, CallPrediction::Runs { .. }));
    let ask = count(|outlook| matches!(outlook, CallPrediction::Asks { .. }));
    let refused = count(CallPrediction::is_refusal);
    tr!(
        "{calls} call{calls_s}: {run} would run, {ask} would ask, {refused} refused; {warnings} warning{warnings_s}",
        "{calls} 个调用：{run} 个会直接运行，{ask} 个会先询问，{refused} 个不会运行；{warnings} 个警告"
    )
}

/// `tools("…")` of a prompt matches no tool.
pub(crate) fn no_tools_of(name: &str) -> String {
    tr!(
        "warning: tools(\"{name}\") is not a source, group or tool of this agent",
        "警告：tools(\"{name}\") 不是这个智能体的来源、工具组或工具"
    )
}

/// A tool that cannot be written in the protocol.
pub(crate) fn tool_left_out(name: &str, why: &impl Display) -> String {
    tr!("left out: {name}: {why}", "未列入：{name}：{why}")
}

/// Reason why a tool is not offered, in a list.
pub(crate) fn withheld(why: &impl Display) -> String {
    let why = crate::chinese::server_text(&why.to_string(), "");
    tr!("not offered: {why}", "未提供：{why}")
}

/// A toggle without effect.
pub(crate) fn unknown_toggle(agent: &str, name: &str) -> String {
    tr!(
        "warning: tool_toggles.\"{name}\" of the agent `{agent}` has no effect: no tool or group has this name",
        "警告：智能体 `{agent}` 的 tool_toggles.\"{name}\" 不起作用：没有这个名称的工具或工具组"
    )
}

/// Warning about a key of the configuration that has another name today.
pub(crate) fn renamed_key(file: &std::path::Path, key: &throughline::config::RenamedKey) -> String {
    let throughline::config::RenamedKey { section, old, new } = key;
    let file = file.display();
    tr!(
        "warning: {file}: [{section}] `{old}` is called `{new}` now; the old name still works",
        "警告：{file}：[{section}] 的 `{old}` 现在叫 `{new}`；旧名称仍然有效"
    )
}

/// A rule that is about no tool.
pub(crate) fn unmatched_rule(agent: &str, rule: &UnmatchedRule) -> String {
    tr!("warning: policy of the agent `{agent}`: {rule}", "警告：智能体 `{agent}` 的规则：{rule}")
}

/// Size of a prompt, by source and in total.
pub(crate) fn prompt_cost(offer: &ToolSelection) -> String {
    let about = match prompt::counting() {
        TokenCounting::Estimated => tr!("about ", "约 "),
        TokenCounting::Exact => String::new(),
    };
    let rows: Vec<String> = offer
        .tool_tokens()
        .iter()
        .map(|row| {
            let (source, tokens, tools) = (&row.source, row.tokens, row.tools);
            tr!("{source} {tokens} ({tools} tools)", "{source} {tokens}（{tools} 个工具）")
        })
        .collect();
    let tools = if rows.is_empty() { tr!("no tools", "没有") } else { rows.join(", ") };
    let is_separate = offer.protocol.is_none() && !rows.is_empty();
    let suffix = if is_separate { tr!(" sent separately", "（单独发送）") } else { String::new() };
    let tokens = offer.tokens();
    tr!("{about}{tokens} tokens; tools{suffix}: {tools}", "{about}{tokens} 个 Token；工具{suffix}：{tools}")
}

/// An answer that always holds.
pub(crate) fn remembered(stored: &StoredApproval) -> String {
    let answer = &stored.answer;
    let decision = match answer.decision {
        ApprovalDecision::Approve => tr!("allow", "允许"),
        ApprovalDecision::Deny => tr!("deny", "拒绝"),
    };
    let mut arguments: Vec<String> =
        answer.arguments.iter().map(|(which, test)| format!("{which} {test}")).collect();
    if answer.arguments_hash.is_some() {
        arguments.push(tr!("exactly these arguments", "仅限这些参数"));
    }
    let arguments =
        if arguments.is_empty() { tr!("any arguments", "任何参数") } else { arguments.join(", ") };
    let reason = answer.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    // Indented as far as the name of the tool.
    let asked = answer.asked.as_ref().map(|asked| format!("\n{:13}{asked}", "")).unwrap_or_default();
    format!("{:>4}  {decision:<5}  {}  {arguments}{reason}{asked}", stored.number, answer.tool)
}

/// MCP servers that were taken over, into a file or onto standard output; the file with the names that it had already.
pub(crate) fn imported_servers(
    servers: &[crate::mcp::ImportedServer],
    file: Option<(&std::path::Path, &[String])>,
) -> String {
    let mut text = String::new();
    if let Some((path, present)) = file {
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        if !names.is_empty() {
            let (path, names) = (path.display(), names.join(", "));
            text.push_str(&tr!("added to {path}: {names}\n", "已添加到 {path}：{names}\n"));
        }
        if !present.is_empty() {
            let present = present.join(", ");
            text.push_str(&tr!("already there, not changed: {present}\n", "已存在，未修改：{present}\n"));
        }
    }
    for server in servers {
        for note in &server.notes {
            let name = &server.name;
            text.push_str(&tr!("warning: {name}: {note}\n", "警告：{name}：{note}\n"));
        }
    }
    let variables: std::collections::BTreeSet<&str> =
        servers.iter().flat_map(|server| &server.variables).map(String::as_str).collect();
    if !variables.is_empty() {
        text.push_str(&tr!(
            "set these variables to the values in that file:\n",
            "请按该文件中的值设置这些变量：\n"
        ));
        variables.iter().for_each(|name| text.push_str(&format!("  export {name}=…\n")));
    }
    text.push_str(&tr!("check them: throughline doctor\n", "检查：throughline doctor\n"));
    text
}

/// A backup was written; `postgres` is the URL of a database that is not in it, without its password.
pub(crate) fn backup_made(folder: &std::path::Path, files: usize, postgres: Option<&str>) -> String {
    let folder = folder.display();
    let mut text = tr!(
        "{files} files saved in {folder}; they hold secrets, so store them where only you can read\n",
        "已把 {files} 个文件保存到 {folder}；其中含有机密，请存放在只有你能读取的地方\n"
    );
    if let Some(url) = postgres {
        text.push_str(&tr!(
            "the database is not among them; save it as well, after this:\n  pg_dump --format=custom --file={folder}/database.dump {url}\n",
            "数据库不在其中；请随后另行保存：\n  pg_dump --format=custom --file={folder}/database.dump {url}\n"
        ));
    }
    text
}

/// Result of `restore`.
pub(crate) struct RestoreReport<'a> {
    pub(crate) data: &'a std::path::Path,
    pub(crate) files: usize,
    /// Time of the backup.
    pub(crate) created: String,
    /// Version of the program that made it.
    pub(crate) program: &'a str,
    /// Folder that the previous files were moved to.
    pub(crate) replaced: Option<&'a std::path::Path>,
    /// State of the configuration.
    pub(crate) settings: Option<&'a str>,
    /// Folder of the backup.
    pub(crate) backup: &'a std::path::Path,
    /// URL of a database that is not in the backup.
    pub(crate) missing_database: Option<String>,
}

/// A backup was restored.
pub(crate) fn backup_restored(report: &RestoreReport<'_>) -> String {
    let RestoreReport { data, files, created, program, .. } = report;
    let data = data.display();
    let mut text = tr!(
        "{files} files of {created} (throughline {program}) restored into {data}\n",
        "已把 {created} 的 {files} 个文件（throughline {program}）恢复到 {data}\n"
    );
    if let Some(replaced) = report.replaced {
        let replaced = replaced.display();
        text.push_str(&tr!("what was there before is in {replaced}\n", "原有内容在 {replaced}\n"));
    }
    if let Some(settings) = report.settings {
        text.push_str(&format!("{settings}\n"));
    }
    if let Some(url) = &report.missing_database {
        let folder = report.backup.display();
        text.push_str(&tr!(
            "the database is not in this backup; restore it as well:
  pg_restore --clean --if-exists --no-owner --dbname={url} {folder}/database.dump
",
            "数据库不在此备份中；请另行恢复：
  pg_restore --clean --if-exists --no-owner --dbname={url} {folder}/database.dump
"
        ));
    }
    text.push_str(&tr!(
        "check it, then start the server: throughline doctor && throughline serve\n",
        "检查后启动服务器：throughline doctor && throughline serve\n"
    ));
    text
}
