//! Files: what there is, what one says, where a word stands. A file that cannot be read leads to a look at what there is.

use super::super::offer::Wish;
use super::super::told::Told;
use super::{Scene, saying_then};
use crate::script::{CallMove, Script};

const LIST: &str = "files_list";
const READ: &str = "files_read";
const SEARCH: &str = "files_search";
const PATH: &[&str] = &["path", "file", "filename", "name", "directory", "dir", "folder"];

/// Most lines of a file or list that are shown.
const LINES_MAX: usize = 24;

pub(super) fn list(scene: &Scene<'_>) -> Script {
    let hops = scene.answered.iter().filter(|(call, _)| call.name == LIST).count();
    match scene.told(LIST) {
        None => match list_call(scene, ".") {
            Some(call) => saying_then(
                scene.words("Let me see what is there.\n\n", "我来看看都有些什么。\n\n"),
                vec![call],
            ),
            None => scene.missing(LIST),
        },
        Some(Told::Output(text, _)) => {
            // A tool that first names its only folder is asked once more.
            if let (1, Some(folder)) = (hops, only_folder(text))
                && let Some(call) = list_call(scene, folder)
            {
                let text = scene.language.choose(
                    format!("There is one folder that I may look into, `{folder}`. So:\n\n"),
                    format!("我可以查看的目录只有 `{folder}`，进去看看：\n\n"),
                );
                return saying_then(text, vec![call]);
            }
            Script::new().say(format!(
                "{}{}{}",
                scene.words("This is what I can see:\n\n", "我能看到这些：\n\n"),
                block(scene, text),
                scene.words(
                    "Ask me to *read* one of them, or to *search* them for a word.",
                    "可以让我*读*其中一个，或者在里面*搜索*一个词。",
                )
            ))
        }
        Some(told) => sorry(scene, told),
    }
}

fn list_call(scene: &Scene<'_>, path: &str) -> Option<CallMove> {
    scene.call(LIST, &[Wish(PATH, path.into())])
}

fn only_folder(text: &str) -> Option<&str> {
    let line = text.trim();
    line.strip_suffix('/').filter(|name| !name.is_empty() && !line.contains('\n'))
}

pub(super) fn read(scene: &Scene<'_>) -> Script {
    let name = file_named(scene.text).unwrap_or_else(|| "README.md".into());
    match (scene.told(READ), scene.told(LIST)) {
        (None, _) => match scene.call(READ, &[Wish(PATH, name.as_str().into())]) {
            Some(call) => {
                let text = scene
                    .language
                    .choose(format!("I'll read `{name}`.\n\n"), format!("我来读 `{name}`。\n\n"));
                saying_then(text, vec![call])
            }
            None => scene.missing(READ),
        },
        (Some(Told::Output(text, _)), _) => {
            let (lines, words) = (text.lines().count(), text.split_whitespace().count());
            let said = scene.language.choose(
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
            Script::new().say(said)
        }
        (Some(told), None) => {
            let why = scene.why(told);
            let text = scene.language.choose(
                format!("That did not work: {why}\n\nLet me see what there is instead.\n\n"),
                format!("没有成功：{why}\n\n我看看都有哪些文件。\n\n"),
            );
            match list_call(scene, ".") {
                Some(call) => saying_then(text, vec![call]),
                None => sorry(scene, told),
            }
        }
        (Some(_), Some(Told::Output(text, _))) => Script::new().say(format!(
            "{}{}",
            scene.words("There is:\n\n", "这里有：\n\n"),
            block(scene, text)
        )),
        (Some(_), Some(told)) => sorry(scene, told),
    }
}

pub(super) fn search(scene: &Scene<'_>) -> Script {
    let word = word_wanted(scene.text).unwrap_or_else(|| "throughline".into());
    match scene.told(SEARCH) {
        None => {
            let query = ["query", "pattern", "text", "term", "q", "regex"];
            match scene.call(SEARCH, &[Wish(&query, word.as_str().into()), Wish(PATH, ".".into())]) {
                Some(call) => {
                    let text = scene.language.choose(
                        format!("I'll search the files for “{word}”.\n\n"),
                        format!("我在文件里搜索“{word}”。\n\n"),
                    );
                    saying_then(text, vec![call])
                }
                None => scene.missing(SEARCH),
            }
        }
        Some(Told::Output(text, _)) if text.trim().is_empty() => Script::new().say(
            scene.language.choose(format!("“{word}” is nowhere to be found."), format!("没有找到“{word}”。")),
        ),
        Some(Told::Output(text, _)) => Script::new().say(format!(
            "{}{}",
            scene.language.choose(
                format!("This is what I found for “{word}”:\n\n"),
                format!("“{word}”的搜索结果：\n\n")
            ),
            block(scene, text)
        )),
        Some(told) => sorry(scene, told),
    }
}

fn sorry(scene: &Scene<'_>, told: &Told) -> Script {
    let why = scene.why(told);
    Script::new().say(
        scene
            .language
            .choose(format!("I did not get to see any files: {why}"), format!("没能看到文件：{why}")),
    )
}

/// The beginning of a text as a code block that its own back-ticks cannot close.
fn block(scene: &Scene<'_>, text: &str) -> String {
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
fn file_named(text: &str) -> Option<String> {
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

/// The word in quotes, else the one behind "for", else what follows the Chinese verb.
fn word_wanted(text: &str) -> Option<String> {
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
            assert_eq!(file_named(text).as_deref(), expected, "{text}");
        }
        for (text, expected) in [
            ("search for \"two words\"", Some("two words")),
            ("Search the files for token.", Some("token")),
            ("在文件里搜索 流式", Some("流式")),
            ("search", None),
        ] {
            assert_eq!(word_wanted(text).as_deref(), expected, "{text}");
        }
    }
}
