//! Files: their list, their content, the occurrences of a word. For an unreadable file the files are listed.

use super::super::tool_call::ArgumentWish;
use super::super::tool_outcome::ParsedOutcome;
use super::{DemoScene, text_then_calls};
use crate::script::{CallMove, ModelScript};

const LIST: &str = "files_list";
const READ: &str = "files_read";
const SEARCH: &str = "files_search";
const PATH: &[&str] = &["path", "file", "filename", "name", "directory", "dir", "folder"];

/// Most lines of a file or list that are shown.
const LINES_MAX: usize = 24;

pub(super) fn list(scene: &DemoScene<'_>) -> ModelScript {
    let hops = scene.answered.iter().filter(|(call, _)| call.name == LIST).count();
    match scene.latest_outcome(LIST) {
        None => match list_call(scene, ".") {
            Some(call) => text_then_calls(
                scene.choose_text("Let me see what is there.\n\n", "我来看看都有些什么。\n\n"),
                vec![call],
            ),
            None => scene.tool_missing(LIST),
        },
        Some(ParsedOutcome::Output(text, _)) => {
            // A tool that first names its only folder is called again.
            if let (1, Some(folder)) = (hops, only_folder(text))
                && let Some(call) = list_call(scene, folder)
            {
                let text = scene.language.choose(
                    format!("There is one folder that I may look into, `{folder}`. So:\n\n"),
                    format!("我可以查看的目录只有 `{folder}`，进去看看：\n\n"),
                );
                return text_then_calls(text, vec![call]);
            }
            ModelScript::new().say(format!(
                "{}{}{}",
                scene.choose_text("This is what I can see:\n\n", "我能看到这些：\n\n"),
                block(scene, text),
                scene.choose_text(
                    "Ask me to *read* one of them, or to *search* them for a word.",
                    "可以让我*读*其中一个，或者在里面*搜索*一个词。",
                )
            ))
        }
        Some(outcome) => describe_failure(scene, outcome),
    }
}

fn list_call(scene: &DemoScene<'_>, path: &str) -> Option<CallMove> {
    scene.call(LIST, &[ArgumentWish(PATH, path.into())])
}

fn only_folder(text: &str) -> Option<&str> {
    let line = text.trim();
    line.strip_suffix('/').filter(|name| !name.is_empty() && !line.contains('\n'))
}

pub(super) fn read(scene: &DemoScene<'_>) -> ModelScript {
    let name = file_name_in(scene.text).unwrap_or_else(|| "README.md".into());
    match (scene.latest_outcome(READ), scene.latest_outcome(LIST)) {
        (None, _) => match scene.call(READ, &[ArgumentWish(PATH, name.as_str().into())]) {
            Some(call) => {
                let text = scene
                    .language
                    .choose(format!("I'll read `{name}`.\n\n"), format!("我来读 `{name}`。\n\n"));
                text_then_calls(text, vec![call])
            }
            None => scene.tool_missing(READ),
        },
        (Some(ParsedOutcome::Output(text, _)), _) => {
            let (lines, words) = (text.lines().count(), text.split_whitespace().count());
            let summary = scene.language.choose(
                format!(
                    "`{name}` has {lines} lines and {words} words. It begins like this:\n\n{}",
                    block(scene, text)
                ),
                format!(
                    "`{name}` 共 {lines} 行、{} 个字符，开头是这样的：\n\n{}",
                    text.chars().count(),
                    block(scene, text)
                ),
            );
            ModelScript::new().say(summary)
        }
        (Some(outcome), None) => {
            let why = scene.describe_outcome(outcome);
            let text = scene.language.choose(
                format!("That did not work: {why}\n\nLet me see what there is instead.\n\n"),
                format!("没有成功：{why}\n\n我看看都有哪些文件。\n\n"),
            );
            match list_call(scene, ".") {
                Some(call) => text_then_calls(text, vec![call]),
                None => describe_failure(scene, outcome),
            }
        }
        (Some(_), Some(ParsedOutcome::Output(text, _))) => ModelScript::new().say(format!(
            "{}{}",
            scene.choose_text("There is:\n\n", "这里有：\n\n"),
            block(scene, text)
        )),
        (Some(_), Some(outcome)) => describe_failure(scene, outcome),
    }
}

pub(super) fn search(scene: &DemoScene<'_>) -> ModelScript {
    let word = search_term(scene.text).unwrap_or_else(|| "throughline".into());
    match scene.latest_outcome(SEARCH) {
        None => {
            let query = ["query", "pattern", "text", "term", "q", "regex"];
            match scene
                .call(SEARCH, &[ArgumentWish(&query, word.as_str().into()), ArgumentWish(PATH, ".".into())])
            {
                Some(call) => {
                    let text = scene.language.choose(
                        format!("I'll search the files for “{word}”.\n\n"),
                        format!("我在文件里搜索“{word}”。\n\n"),
                    );
                    text_then_calls(text, vec![call])
                }
                None => scene.tool_missing(SEARCH),
            }
        }
        Some(ParsedOutcome::Output(text, _)) if text.trim().is_empty() => ModelScript::new().say(
            scene.language.choose(format!("“{word}” is nowhere to be found."), format!("没有找到“{word}”。")),
        ),
        Some(ParsedOutcome::Output(text, _)) => ModelScript::new().say(format!(
            "{}{}",
            scene.language.choose(
                format!("This is what I found for “{word}”:\n\n"),
                format!("“{word}”的搜索结果：\n\n")
            ),
            block(scene, text)
        )),
        Some(outcome) => describe_failure(scene, outcome),
    }
}

fn describe_failure(scene: &DemoScene<'_>, outcome: &ParsedOutcome) -> ModelScript {
    let why = scene.describe_outcome(outcome);
    ModelScript::new().say(
        scene
            .language
            .choose(format!("I did not get to see any files: {why}"), format!("没能看到文件：{why}")),
    )
}

/// The beginning of a text as a code block that its own back-ticks cannot close.
fn block(scene: &DemoScene<'_>, text: &str) -> String {
    let text = text.trim_end();
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines[..lines.len().min(LINES_MAX)].join("\n");
    let left = lines.len().saturating_sub(LINES_MAX);
    let more = match left {
        0 => String::new(),
        _ => {
            scene.language.choose(format!("… and {left} more lines.\n\n"), format!("……还有 {left} 行。\n\n"))
        }
    };
    format!("{fence}text\n{shown}\n{fence}\n\n{more}")
}

/// A word that looks like a file name.
fn file_name_in(text: &str) -> Option<String> {
    let separators = |c: char| c.is_whitespace() || "，。？！、,?!\"“”`「」《》()（）:：'".contains(c);
    let candidates = text.split(separators).map(|word| word.trim_end_matches('.'));
    for word in candidates {
        let ascii: String = word.chars().filter(char::is_ascii).collect();
        let is_name = ascii.rsplit_once('.').is_some_and(|(stem, extension)| {
            !stem.is_empty()
                && (1..=5).contains(&extension.len())
                && extension.chars().all(char::is_alphanumeric)
        });
        if is_name || ascii.contains('/') && ascii.len() > 1 {
            return Some(ascii);
        }
    }
    None
}

/// The word in quotes, else the one after "for", else what follows the Chinese verb.
fn search_term(text: &str) -> Option<String> {
    for (open, close) in [('"', '"'), ('“', '”'), ('「', '」'), ('`', '`'), ('\'', '\'')] {
        if let Some((_, rest)) = text.split_once(open)
            && let Some((word, _)) = rest.split_once(close)
            && !word.trim().is_empty()
        {
            return Some(word.trim().into());
        }
    }
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    if let Some((_, rest)) = text.rsplit_once(" for ") {
        let word = bare(rest.trim_start_matches("the word ").split_whitespace().next().unwrap_or_default());
        return (!word.is_empty()).then_some(word);
    }
    let verbs = ["搜索一下", "查找一下", "搜一下", "找一下", "搜索", "查找"];
    let rest = verbs.iter().find_map(|verb| text.split_once(verb)).map(|(_, rest)| rest)?;
    let word: String =
        rest.chars().skip_while(|c| !c.is_alphanumeric()).take_while(|c| c.is_alphanumeric()).collect();
    (!word.is_empty()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_and_search_words_are_found() {
        for (text, expected) in [
            ("Read README.md, please.", Some("README.md")),
            ("读一下docs/notes.txt吧", Some("docs/notes.txt")),
            ("read the file", None),
            ("Read it. Now.", None),
        ] {
            assert_eq!(file_name_in(text).as_deref(), expected, "{text}");
        }
        for (text, expected) in [
            ("search for \"two words\"", Some("two words")),
            ("Search the files for token.", Some("token")),
            ("在文件里搜索 流式", Some("流式")),
            ("search", None),
        ] {
            assert_eq!(search_term(text).as_deref(), expected, "{text}");
        }
    }
}
