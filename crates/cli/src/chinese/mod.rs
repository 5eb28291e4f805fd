//! The command line in Chinese: help, and usage errors of clap.

mod config_texts;
mod long_help;
mod server_texts;
mod table;
mod usage_errors;

pub(crate) use config_texts::{config_mistake, config_remedy, source_text};
pub(crate) use server_texts::{remedy_text, server_text};
pub(crate) use usage_errors::usage_error;

use clap::builder::StyledStr;
use clap::{Arg, Command};
use table::TEXTS;

/// Texts of clap's own in rendered help, longest first.
const RENDERED: [(&str, &str); 17] = [
    ("Print this message or the help of the given subcommand(s)", "显示本帮助，或子命令的帮助"),
    ("Print help (see more with '--help')", "显示帮助（--help 显示详细说明）"),
    ("Print help (see a summary with '-h')", "显示帮助（-h 显示摘要）"),
    ("Print help", "显示帮助"),
    ("Print version", "显示版本"),
    ("Possible values:", "可选值："),
    ("[possible values: ", "[可选值："),
    ("[default: ", "[默认："),
    ("[aliases: ", "[别名："),
    ("[alias: ", "[别名："),
    ("[env: ", "[环境变量："),
    ("Usage: ", "用法："),
    ("Usage:", "用法："),
    ("Commands:", "命令："),
    ("Arguments:", "参数："),
    ("Options:", "选项："),
    ("[OPTIONS]", "[选项]"),
];

/// The Chinese for an English text of help.
fn chinese(english: &str) -> Option<&'static str> {
    TEXTS.iter().find(|(known, _)| *known == english).map(|(_, chinese)| *chinese)
}

fn translated(text: Option<&StyledStr>) -> Option<&'static str> {
    text.and_then(|text| chinese(&text.to_string()))
}

/// The command with its texts in Chinese. A text without one stays English; a test finds it.
pub(crate) fn localized(command: Command) -> Command {
    let about = translated(command.get_about());
    let long_about = translated(command.get_long_about());
    let after = translated(command.get_after_long_help());
    let mut command = command.mut_args(localized_arg);
    if let Some(text) = about {
        command = command.about(text);
    }
    if let Some(text) = long_about {
        command = command.long_about(text);
    }
    if let Some(text) = after {
        command = command.after_long_help(text);
    }
    command.mut_subcommands(localized)
}

fn localized_arg(arg: Arg) -> Arg {
    let (help, long_help) = (translated(arg.get_help()), translated(arg.get_long_help()));
    let arg = match help {
        Some(text) => arg.help(text),
        None => arg,
    };
    match long_help {
        Some(text) => arg.long_help(text),
        None => arg,
    }
}

/// Help rendered by clap, with clap's own words in Chinese.
pub(crate) fn rendered(help: &str) -> String {
    let mut text = help.to_owned();
    for (english, chinese) in RENDERED {
        text = text.replace(english, chinese);
    }
    text.split_inclusive('\n').map(value_line).collect()
}

/// `- jsonl:    Complete: …`: the help of a value is no text of the command.
fn value_line(line: &str) -> String {
    let parts = line.split_once("- ").and_then(|(margin, rest)| Some((margin, rest.split_once(": ")?)));
    match parts {
        Some((margin, (value, help))) if margin.trim().is_empty() => match chinese(help.trim()) {
            Some(text) => format!("{margin}- {value}：{text}\n"),
            None => line.to_owned(),
        },
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::CliArgs;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    /// Collects every help text below a command.
    fn texts(command: &Command, into: &mut BTreeSet<String>) {
        let own = [
            command.get_about(),
            command.get_long_about(),
            command.get_after_help(),
            command.get_after_long_help(),
        ];
        let args = command.get_arguments().flat_map(|arg| [arg.get_help(), arg.get_long_help()]);
        into.extend(own.into_iter().chain(args).flatten().map(ToString::to_string));
        for arg in command.get_arguments() {
            let values = arg.get_possible_values();
            into.extend(values.iter().filter_map(|value| value.get_help()).map(ToString::to_string));
        }
        command.get_subcommands().for_each(|command| texts(command, into));
    }

    #[test]
    fn help_texts_and_chinese_translations_match() {
        let mut english = BTreeSet::new();
        texts(&CliArgs::command(), &mut english);
        let known: BTreeSet<String> = TEXTS.iter().map(|(english, _)| (*english).to_owned()).collect();
        assert_eq!(known.len(), TEXTS.len(), "a text twice");
        let missing: Vec<_> = english.difference(&known).collect();
        assert!(missing.is_empty(), "without Chinese in chinese/table.rs: {missing:#?}");
        let left_over: Vec<_> = known.difference(&english).collect();
        assert!(left_over.is_empty(), "no longer in help: {left_over:#?}");
        let is_chinese = |text: &str| text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
        for (english, chinese) in TEXTS {
            assert!(is_chinese(chinese) || chinese.contains('、'), "{english}: {chinese}");
        }
    }

    #[test]
    fn localized_command_has_the_same_arguments() {
        let (english, chinese) = (CliArgs::command(), localized(CliArgs::command()));
        let names = |command: &Command| -> Vec<String> {
            let of = |command: &Command| {
                let args: Vec<&str> = command.get_arguments().map(|arg| arg.get_id().as_str()).collect();
                format!("{} {}", command.get_name(), args.join(" "))
            };
            std::iter::once(of(command)).chain(command.get_subcommands().map(of)).collect()
        };
        assert_eq!(names(&english), names(&chinese));
        chinese.debug_assert();
    }
}
