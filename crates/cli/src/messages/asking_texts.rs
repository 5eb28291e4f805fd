//! Messages about templates, and about answers that have to fit a schema.

use super::ui_text::tr;
use crate::exit::{CliExit, CliFailure};
use crate::plain::one_line;
use std::fmt;
use std::path::PathBuf;

/// Below the list of templates.
pub(crate) fn templates_legend(folders: &[PathBuf], shown: usize, more: usize) -> String {
    let folders = display(folders);
    match (shown, more) {
        (0, _) => tr!(
            "no templates; put files such as review.md into {folders}\n",
            "没有模板；请把 review.md 这样的文件放到 {folders}\n"
        ),
        (_, 0) => tr!("\nuse one: throughline ask -t NAME\n", "\n使用：throughline ask -t 名称\n"),
        _ => tr!("\n… and {more} more in {folders}\n", "\n…… 还有 {more} 个，在 {folders}\n"),
    }
}

fn display(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| one_line(name)).collect::<Vec<_>>().join(", ")
}

pub(crate) fn no_such_template(name: &str, known: &[String], folders: &[PathBuf]) -> CliFailure {
    let (name, known, folders) = (one_line(name), listed(known), display(folders));
    let remedy = if known.is_empty() {
        tr!("put a file {name}.md into {folders}", "请把文件 {name}.md 放到 {folders}")
    } else {
        tr!("one of {known}; their folders: {folders}", "可用的有：{known}；所在文件夹：{folders}")
    };
    CliFailure::usage(tr!("there is no template `{name}`", "没有模板 `{name}`"), "", remedy)
}

/// A placeholder for which no value is given.
pub(crate) fn placeholder_without_value(template: &str, missing: &str, all: &[String]) -> CliFailure {
    let all = listed(all);
    CliFailure::usage(
        tr!(
            "the template `{template}` needs a value for `{missing}`",
            "模板 `{template}` 需要 `{missing}` 的值"
        ),
        tr!("its placeholders are {all}", "它的占位符有：{all}"),
        format!("-p {missing}=…"),
    )
}

/// A value for which the template has no placeholder.
pub(crate) fn no_such_placeholder(template: &str, name: &str, all: &[String]) -> CliFailure {
    let (name, listed) = (one_line(name), listed(all));
    let why = match (name.as_str(), all) {
        ("input", _) => tr!("{{{{input}}}} is the prompt itself", "{{{{input}}}} 就是提示词本身"),
        (_, []) => tr!("it has no placeholders", "它没有占位符"),
        _ => tr!("its placeholders are {listed}", "它的占位符有：{listed}"),
    };
    CliFailure::usage(
        tr!(
            "the template `{template}` takes no value for `{name}`",
            "模板 `{template}` 不接受 `{name}` 的值"
        ),
        why,
        "throughline templates",
    )
}

/// `-p` without `=`.
pub(crate) fn no_param(param: &str) -> CliFailure {
    let param = one_line(param);
    CliFailure::usage(
        tr!("`{param}` is not NAME=VALUE", "`{param}` 不是“名称=值”的形式"),
        "",
        "-p language=Rust",
    )
}

/// A template with `{{input}}`, and no prompt.
pub(crate) fn template_without_input(template: &str) -> CliFailure {
    CliFailure::usage(
        tr!("the template `{template}` needs a prompt", "模板 `{template}` 需要提示词"),
        tr!("it contains {{{{input}}}}", "其中有 {{{{input}}}}"),
        tr!(
            "throughline ask -t {template} \"…\", or pipe text in",
            "throughline ask -t {template} \"…\"，或从管道传入文本"
        ),
    )
}

/// `--schema` with something that is no schema.
pub(crate) fn bad_schema(why: &dyn fmt::Display) -> CliFailure {
    CliFailure::usage(
        tr!("--schema cannot be used", "--schema 无法使用"),
        why.to_string(),
        tr!(
            "a file with a JSON Schema, or the schema itself: '{{\"type\": \"object\", …}}'",
            "请给出 JSON Schema 文件，或直接写出：'{{\"type\": \"object\", …}}'"
        ),
    )
}

/// The first answer does not fit the schema.
pub(crate) fn answer_is_repaired(why: &str) -> String {
    let why = one_line(why);
    tr!(
        "• the answer does not fit the schema; asking once more: {why}",
        "• 回答不符合 schema，再问一次：{why}"
    )
}

/// Nor does the second.
pub(crate) fn answer_does_not_fit(why: &str) -> CliFailure {
    CliFailure {
        exit: CliExit::Failed,
        what: tr!("the answer does not fit the schema", "回答不符合 schema"),
        why: tr!("also after one correction: {why}", "纠正一次后仍然如此：{why}"),
        remedy: tr!(
            "ask again, make the schema simpler, or use another model",
            "请再问一次、简化 schema，或换一个模型"
        ),
    }
}
