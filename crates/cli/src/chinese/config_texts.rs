//! Mistakes in `throughline.toml` and faults of tool sources in Chinese, by the pattern of the English sentence:
//! `zh-config.txt`.

use crate::messages::UiLanguage;
use std::sync::LazyLock;

/// An English pattern and its Chinese in each line, separated by a tab. `{}` matches any text, which the
/// Chinese has at `{1}`, `{2}`, …
const FILE: &str = include_str!("zh-config.txt");

/// Phrases that the TOML reader puts into its sentences.
const PHRASES: [(&str, &str); 9] = [
    ("a table", "表"),
    ("a list", "列表"),
    ("a number", "数字"),
    ("a whole number", "整数"),
    ("a string", "字符串"),
    ("a boolean", "布尔值"),
    ("map", "表"),
    ("sequence", "列表"),
    ("unit value", "空值"),
];
/// Kinds of values in front of a value: `string "0.3"`.
const KINDS: [(&str, &str); 4] =
    [("string ", "字符串 "), ("boolean ", "布尔值 "), ("integer ", "整数 "), ("floating point ", "浮点数 ")];

/// A sentence with holes.
struct SentencePattern {
    parts: Vec<&'static str>,
    chinese: &'static str,
}

static PATTERNS: LazyLock<Vec<SentencePattern>> = LazyLock::new(|| {
    let pairs = FILE.lines().filter_map(|line| line.split_once('\t'));
    pairs
        .map(|(english, chinese)| SentencePattern { parts: english.split("{}").collect(), chinese })
        .collect()
});

impl SentencePattern {
    /// The texts in the holes, if the sentence is of this pattern.
    fn holes<'s>(&self, sentence: &'s str) -> Option<Vec<&'s str>> {
        let (first, others) = self.parts.split_first()?;
        let mut rest = sentence.strip_prefix(first)?;
        let mut holes = Vec::new();
        for (at, part) in others.iter().enumerate() {
            // The last part must match at the end, regardless of the placeholder before it.
            let length =
                if at + 1 == others.len() { rest.strip_suffix(part)?.len() } else { rest.find(part)? };
            holes.push(&rest[..length]);
            rest = &rest[length + part.len()..];
        }
        rest.is_empty().then_some(holes)
    }

    fn translate(&self, holes: &[&str]) -> String {
        let mut text = self.chinese.to_owned();
        for (at, hole) in holes.iter().enumerate() {
            text = text.replace(&format!("{{{}}}", at + 1), &translated(hole).unwrap_or((*hole).to_owned()));
        }
        text
    }
}

/// The Chinese of a sentence, if it is translated; the texts of its placeholders may be sentences themselves.
fn translated(english: &str) -> Option<String> {
    if let Some((_, chinese)) = PHRASES.iter().find(|(phrase, _)| *phrase == english) {
        return Some((*chinese).to_owned());
    }
    if let Some((kind, chinese)) = KINDS.iter().find(|(kind, _)| english.starts_with(kind)) {
        return Some(format!("{chinese}{}", &english[kind.len()..]));
    }
    PATTERNS.iter().find_map(|pattern| Some(pattern.translate(&pattern.holes(english)?)))
}

/// A mistake in the configuration, in the language of the command.
pub(crate) fn config_mistake(message: &str) -> String {
    match UiLanguage::current() {
        UiLanguage::English => message.to_owned(),
        // Errors of other libraries stay in English.
        UiLanguage::Chinese => translated(message).unwrap_or_else(|| format!("配置有误：{message}")),
    }
}

/// The remedy for it, likewise. Often it is a line to write, which has no language.
pub(crate) fn config_remedy(help: &str) -> String {
    match UiLanguage::current() {
        UiLanguage::English => help.to_owned(),
        UiLanguage::Chinese => translated(help).unwrap_or_else(|| help.to_owned()),
    }
}

/// A fault of a tool source, or its remedy, in the language of the command. What a program or a server has written itself stays
/// as it is.
pub(crate) fn source_text(text: &str) -> String {
    match UiLanguage::current() {
        UiLanguage::English => text.to_owned(),
        UiLanguage::Chinese => translated(text).unwrap_or_else(|| text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Files whose sentences are mistakes of the configuration.
    const SOURCES: [&str; 21] = [
        "throughline/src/config/agent.rs",
        "throughline/src/config/error.rs",
        "throughline/src/config/file.rs",
        "throughline/src/config/hints.rs",
        "throughline/src/config/oidc.rs",
        "throughline/src/config/proxy_header.rs",
        "throughline/src/config/resolve.rs",
        "throughline/src/config/serving.rs",
        "throughline/src/config/sources.rs",
        "throughline/src/voice/settings.rs",
        "tools/src/command/settings.rs",
        "tools/src/mcp/settings.rs",
        "tools/src/settings.rs",
        "tools/src/toolbox.rs",
        "tools/src/vcp_plugin/cron.rs",
        "tools/src/vcp_plugin/loader.rs",
        "tools/src/vcp_plugin/manifest.rs",
        "tools/src/vcp_plugin/plugin.rs",
        "tools/src/vcp_plugin/source.rs",
        "tools/src/web_search/settings.rs",
        "engine/src/text_rules/rule.rs",
    ];
    /// Literals of these files that are no sentences for people.
    const NO_SENTENCES: [&str; 6] = [
        "std::ops::Not",
        "every key of a TOML file",
        "fields are documented",
        "mirrors",
        "environment variable {variable}",
        // Names of functions.
        "crate::settings::effect",
    ];

    /// String literals of a source without its tests and comments.
    fn literals(source: &str) -> Vec<String> {
        let source = source.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = source.lines().map(|line| if line.trim_start().starts_with("//") { "" } else { line });
        let code = lines.collect::<Vec<_>>().join("\n");
        let (mut literals, mut chars) = (Vec::new(), code.chars().peekable());
        while let Some(c) = chars.next() {
            match c {
                // The character '"' is no string.
                '\'' if chars.peek() == Some(&'"') => drop(chars.nth(1)),
                '"' => {
                    let mut text = String::new();
                    while let Some(inside) = chars.next().filter(|inside| *inside != '"') {
                        match (inside, chars.peek()) {
                            ('\\', Some('\n')) => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                            ('\\', _) => text.extend(chars.next()),
                            _ => text.push(inside),
                        }
                    }
                    literals.push(text);
                }
                _ => {}
            }
        }
        literals
    }

    /// A format string as the pattern that its results have.
    fn pattern(literal: &str) -> String {
        let (mut text, mut rest) = (String::new(), literal);
        while let Some((before, behind)) = rest.split_once('{') {
            text.push_str(before);
            match behind.strip_prefix('{') {
                Some(behind) => {
                    text.push('{');
                    rest = behind;
                }
                None => {
                    text.push_str("{}");
                    rest = behind.split_once('}').map_or("", |(_, behind)| behind);
                }
            }
        }
        text.push_str(rest);
        text.replace("}}", "}")
    }

    #[test]
    fn every_config_error_has_a_chinese_translation() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let (mut checked, mut missing) = (0, Vec::new());
        for file in SOURCES {
            let source = std::fs::read_to_string(crates.join(file)).unwrap();
            for literal in literals(&source) {
                let is_word = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase());
                let is_sentence = literal.split([' ', ':', ';', ',']).filter(is_word).count() >= 3;
                if !is_sentence || NO_SENTENCES.iter().any(|part| literal.contains(part)) {
                    continue;
                }
                checked += 1;
                // Placeholders are filled with an untranslated text.
                let sentence = pattern(&literal).replace("{}", "x7");
                let variants = [
                    sentence.clone(),
                    // With braces of TOML.
                    literal.clone(),
                    format!("in days, {}", sentence.trim_start_matches("x7")),
                    format!("the MCP server `x7`: {sentence}"),
                    format!("`x7` {sentence}"),
                    format!("`hide` {sentence}"),
                    format!("`replace` {sentence}"),
                    format!("`target_roles` {sentence}"),
                    format!("url: {sentence}"),
                ];
                if !variants.iter().any(|variant| translated(variant).is_some()) {
                    missing.push(format!("{file}: {literal}"));
                }
            }
        }
        assert!(missing.is_empty(), "without Chinese in zh-config.txt:\n{}", missing.join("\n"));
        assert!(checked > 60, "{checked} sentences");
    }

    #[test]
    fn config_error_parameters_are_inserted_and_translated() {
        for (english, chinese) in [
            ("unknown field `modle`", "未知的键 `modle`"),
            (
                "did you mean `model`? valid here: `model`, `mode`",
                "是不是想写 `model`？这里可用：`model`, `mode`",
            ),
            ("invalid type: string \"0.3\", expected a number", "类型不对：字符串 \"0.3\"，应为数字"),
            (
                "text rule: `pattern` can match the empty string; require at least one character, for example \
                 `x+` instead of `x*`",
                "文本规则：`pattern` 能匹配空文本；请至少要求一个字符，例如把 `x*` 写成 `x+`",
            ),
        ] {
            assert_eq!(translated(english).as_deref(), Some(chinese));
        }
        assert_eq!(translated("model = \"demo\""), None);
    }
}
