//! Mistakes in the arguments, as clap finds them, in Chinese.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error;

/// The error as text. One of a kind that is not known here stays as clap has it.
pub(crate) fn usage_error(error: &clap::Error) -> String {
    let Some(what) = what(error) else { return super::rendered(&error.render().to_string()) };
    let mut text = format!("错误：{what}\n");
    for (kind, before) in [
        (ContextKind::SuggestedArg, "是不是想用"),
        (ContextKind::SuggestedSubcommand, "是不是想用"),
        (ContextKind::SuggestedValue, "是不是想用"),
        (ContextKind::ValidValue, "可选值"),
        (ContextKind::ValidSubcommand, "可用的命令"),
    ] {
        let values = values(error, kind);
        if !values.is_empty() {
            text.push_str(&format!("  {before}：{}\n", values.join("、")));
        }
    }
    if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) {
        text.push_str(&format!("\n{}\n", super::rendered(&usage.to_string())));
    }
    text.push_str("\n用 --help 查看详细说明。\n");
    text
}

fn what(error: &clap::Error) -> Option<String> {
    let arg = values(error, ContextKind::InvalidArg).join("、");
    let value = values(error, ContextKind::InvalidValue).join("、");
    Some(match error.kind() {
        ErrorKind::InvalidValue if value.is_empty() => format!("{arg} 后面需要一个值"),
        ErrorKind::InvalidValue => format!("{arg} 的值 `{value}` 无效"),
        ErrorKind::UnknownArgument => format!("没有参数 `{arg}`"),
        ErrorKind::InvalidSubcommand => {
            format!("没有命令 `{}`", values(error, ContextKind::InvalidSubcommand).join("、"))
        }
        ErrorKind::NoEquals => format!("{arg} 和它的值之间需要等号"),
        ErrorKind::ValueValidation => {
            let why = error.source().map(|why| format!("：{why}")).unwrap_or_default();
            format!("{arg} 的值 `{value}` 无效{why}")
        }
        ErrorKind::TooManyValues => format!("{arg} 不接受多余的值 `{value}`"),
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => format!("{arg} 的值的个数不对"),
        ErrorKind::ArgumentConflict => match values(error, ContextKind::PriorArg).join("、") {
            prior if prior == arg => format!("{arg} 只能给出一次"),
            prior => format!("{arg} 不能与 {prior} 同时使用"),
        },
        ErrorKind::MissingRequiredArgument => format!("缺少 {arg}"),
        ErrorKind::MissingSubcommand => "缺少命令".to_owned(),
        ErrorKind::InvalidUtf8 => "参数不是有效的 UTF-8 文本".to_owned(),
        _ => return None,
    })
}

fn values(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}
