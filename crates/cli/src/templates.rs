//! Prompt templates: text files with placeholders, which `ask` and `chat` fill in.

use crate::args::{TemplateArgs, TemplatesArgs};
use crate::data_dir;
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages;
use crate::output;
use crate::plain::one_line;
use crate::setup;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Folder of the templates, next to the configuration file and in the data folder.
const FOLDER: &str = "prompts";
/// Ends of the names of their files.
const EXTENSIONS: [&str; 2] = ["md", "txt"];
/// Longest template, in bytes.
const TEMPLATE_BYTES_MAX: u64 = 256 << 10;
/// Most templates that are listed.
const LISTED_MAX: usize = 200;
/// Longest name of a placeholder, in characters.
const NAME_CHARS_MAX: usize = 64;
/// The placeholder of the prompt itself.
const INPUT: &str = "input";
/// Separator between a template and a prompt without a placeholder.
const GAP: &str = "\n\n";

/// A template with the values of its placeholders, but for the prompt.
pub(crate) struct FilledTemplate {
    template: PromptTemplate,
    values: BTreeMap<String, String>,
}

/// A template as it is in its file.
#[derive(Serialize)]
struct PromptTemplate {
    name: String,
    file: PathBuf,
    placeholders: Vec<String>,
    #[serde(skip)]
    text: String,
}

/// Lists the templates.
pub(crate) fn run(args: &TemplatesArgs) -> CommandResult {
    let folders = folders(args.config.as_deref());
    let mut names = names(&folders);
    let more = names.len().saturating_sub(LISTED_MAX);
    names.truncate(LISTED_MAX);
    let templates = names.iter().map(|name| PromptTemplate::load(name, &folders));
    let templates = templates.collect::<Result<Vec<_>, _>>()?;
    if args.json {
        output::json_line(&templates).map_err(|error| messages::output_failed(&error))?;
        return Ok(CliExit::Done);
    }
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for template in &templates {
        let placeholders: String =
            template.placeholders.iter().map(|name| format!("{{{{{name}}}}} ")).collect();
        let first = template.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        text.push_str(&format!("{:<width$}  {placeholders} {}\n", one_line(&template.name), one_line(first)));
    }
    text.push_str(&messages::templates_legend(&folders, templates.len(), more));
    output::text(&text).map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

impl FilledTemplate {
    /// The template that the arguments name, if any.
    ///
    /// # Errors
    /// It does not exist, a placeholder has no value, or a value has no placeholder.
    pub(crate) fn of(args: &TemplateArgs, config: Option<&Path>) -> Result<Option<Self>, CliFailure> {
        let Some(name) = &args.template else { return Ok(None) };
        let template = PromptTemplate::load(name, &folders(config))?;
        let mut values = BTreeMap::new();
        for param in &args.params {
            let (name, value) = param.split_once('=').ok_or_else(|| messages::no_param(param))?;
            if name == INPUT || !template.placeholders.iter().any(|known| known == name) {
                return Err(messages::no_such_placeholder(&template.name, name, &template.placeholders));
            }
            values.insert(name.to_owned(), value.to_owned());
        }
        let is_missing = |name: &&String| *name != INPUT && !values.contains_key(*name);
        match template.placeholders.iter().find(is_missing) {
            Some(missing) => {
                Err(messages::placeholder_without_value(&template.name, missing, &template.placeholders))
            }
            None => Ok(Some(Self { template, values })),
        }
    }

    /// The prompt in its template: at `{{input}}`, else below it.
    ///
    /// # Errors
    /// The template needs a prompt, and none is given.
    pub(crate) fn apply(&self, input: &str) -> Result<String, CliFailure> {
        let takes_input = self.template.placeholders.iter().any(|name| name == INPUT);
        if takes_input && input.trim().is_empty() {
            return Err(messages::template_without_input(&self.template.name));
        }
        let mut values = self.values.clone();
        values.insert(INPUT.to_owned(), input.to_owned());
        let mut text = fill(&self.template.text, &values);
        if !takes_input && !input.is_empty() {
            text.push_str(GAP);
            text.push_str(input);
        }
        Ok(text)
    }
}

impl PromptTemplate {
    fn load(name: &str, folders: &[PathBuf]) -> Result<Self, CliFailure> {
        let file = Some(name).filter(|name| is_name(name)).and_then(|name| find(name, folders));
        let Some(file) = file else {
            return Err(messages::no_such_template(name, &names(folders), folders));
        };
        let mut text = String::new();
        let read = std::fs::File::open(&file)
            .and_then(|opened| opened.take(TEMPLATE_BYTES_MAX + 1).read_to_string(&mut text));
        read.map_err(|error| messages::file_failed(&file, &error))?;
        if text.len() as u64 > TEMPLATE_BYTES_MAX {
            return Err(messages::too_much_text(&file.display().to_string(), TEMPLATE_BYTES_MAX));
        }
        let text = text.trim_end().to_owned();
        Ok(Self { name: name.to_owned(), file, placeholders: placeholders(&text), text })
    }
}

/// Folders of templates in order of precedence: next to the configuration file, and in the data folder.
fn folders(config: Option<&Path>) -> Vec<PathBuf> {
    let file = setup::config_file(config);
    let own = file.as_deref().and_then(Path::parent).unwrap_or(Path::new("")).join(FOLDER);
    std::iter::once(own).chain(data_dir::folder().map(|folder| folder.join(FOLDER))).collect()
}

fn find(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let files = folders.iter().flat_map(|folder| {
        EXTENSIONS.iter().map(move |extension| folder.join(format!("{name}.{extension}")))
    });
    files.into_iter().find(|file| file.is_file())
}

/// Names of all templates, in order. A folder that cannot be read has none.
fn names(folders: &[PathBuf]) -> Vec<String> {
    let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok());
    let paths = files.flatten().filter_map(io::Result::ok).map(|entry| entry.path());
    let name = |path: PathBuf| {
        let extension = path.extension()?.to_str()?;
        let name = path.file_stem()?.to_str()?;
        (EXTENSIONS.contains(&extension) && is_name(name)).then(|| name.to_owned())
    };
    paths.filter_map(name).collect::<BTreeSet<_>>().into_iter().collect()
}

/// True for a name that stays in its folder.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain)
}

/// A piece of a template.
enum TemplatePiece<'t> {
    Text(&'t str),
    Placeholder(&'t str),
}

/// `{{name}}` is a placeholder; all other braces are text.
fn pieces(text: &str) -> Vec<TemplatePiece<'_>> {
    let (mut pieces, mut rest, mut from) = (Vec::new(), text, 0);
    while let Some(at) = rest[from..].find("{{").map(|at| from + at) {
        let inside = rest[at + 2..].find("}}").map(|length| &rest[at + 2..at + 2 + length]);
        match inside {
            Some(inside) if is_placeholder(inside.trim()) => {
                pieces.extend([TemplatePiece::Text(&rest[..at]), TemplatePiece::Placeholder(inside.trim())]);
                rest = &rest[at + 2 + inside.len() + 2..];
                from = 0;
            }
            Some(_) => from = at + 1,
            None => break,
        }
    }
    pieces.push(TemplatePiece::Text(rest));
    pieces
}

fn is_placeholder(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "-_".contains(c);
    !name.is_empty() && name.chars().count() <= NAME_CHARS_MAX && name.chars().all(is_plain)
}

/// Names of the placeholders, each once, in the order of the text.
fn placeholders(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for piece in pieces(text) {
        if let TemplatePiece::Placeholder(name) = piece
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// Fills in the values; braces in values are not expanded.
fn fill(text: &str, values: &BTreeMap<String, String>) -> String {
    let value = |piece| match piece {
        TemplatePiece::Text(text) => text,
        TemplatePiece::Placeholder(name) => values.get(name).map_or("", String::as_str),
    };
    pieces(text).into_iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, names: &[&str], filled: &str) {
        assert_eq!(placeholders(text), names, "{text}");
        let values = names.iter().map(|name| ((*name).to_owned(), format!("<{name}>"))).collect();
        assert_eq!(fill(text, &values), filled);
    }

    #[test]
    fn placeholder_is_a_name_in_double_braces() {
        check("Review {{ input }} in {{language}}.", &["input", "language"], "Review <input> in <language>.");
        check("{{a}}{{a}}", &["a"], "<a><a>");
        check("{{语言}}", &["语言"], "<语言>");
        check("{{{x}}}", &["x"], "{<x>}");
        check("{{ two words }} {{}} {x} {{", &[], "{{ two words }} {{}} {x} {{");
        check("fn f() {{ {{body}} }}", &["body"], "fn f() {{ <body> }}");
        check("", &[], "");
    }

    #[test]
    fn placeholders_in_values_are_not_expanded() {
        let values = BTreeMap::from([("input".to_owned(), "{{language}}".to_owned())]);
        assert_eq!(fill("Say {{input}}.", &values), "Say {{language}}.");
    }

    #[test]
    fn template_name_with_path_parts_is_rejected() {
        for name in ["../secret", "a/b", "", ".hidden", "a\\b", "a b"] {
            assert!(!is_name(name), "{name}");
        }
        assert!(is_name("code-review.v2") && is_name("翻译"));
    }
}
