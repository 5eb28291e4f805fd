//! Argument lists with values of a model in them.

use crate::template::{ArgumentTemplate, ArgumentTemplatePart, argument_text};
use serde_json::Value;

/// Longest value that becomes an item of an argument list: the kernel's limit. Longer texts go to standard
/// input.
pub const ARGUMENT_BYTES_MAX: usize = 64 * 1024;

/// The items after the program.
#[derive(Clone, Debug, Default)]
pub(super) struct ArgvTemplate {
    items: Vec<ArgvItem>,
}

#[derive(Clone, Debug)]
struct ArgvItem {
    template: ArgumentTemplate,
    dash: LeadingDash,
}

/// Handling of items that may begin with `-` at run time, and so be an unintended option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeadingDash {
    Refused,
    /// The item begins with `-` in the settings, follows `--`, or is allowed explicitly.
    Allowed,
}

impl ArgvTemplate {
    pub(super) fn parse(items: &[String], dash_allowed: &[String]) -> Self {
        let mut after_options = false;
        let parse = |text: &String| {
            let template = ArgumentTemplate::parse(text);
            let allowed = match template.parts.first() {
                Some(ArgumentTemplatePart::Argument(name)) => after_options || dash_allowed.contains(name),
                _ => true,
            };
            after_options |= text == "--";
            ArgvItem { template, dash: if allowed { LeadingDash::Allowed } else { LeadingDash::Refused } }
        };
        Self { items: items.iter().map(parse).collect() }
    }

    /// The arguments that are named.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.items.iter().flat_map(|item| item.template.names())
    }

    /// Fills in the values. An item with an absent argument is left out.
    ///
    /// # Errors
    ///
    /// An invalid value, for the model.
    pub(super) fn fill(&self, arguments: &Value) -> Result<Vec<String>, String> {
        let filled = self.items.iter().filter_map(|item| item.fill(arguments).transpose());
        filled.collect()
    }
}

impl ArgvItem {
    fn fill(&self, arguments: &Value) -> Result<Option<String>, String> {
        let mut filled = String::new();
        for part in &self.template.parts {
            match part {
                ArgumentTemplatePart::Text(text) => filled.push_str(text),
                ArgumentTemplatePart::Argument(name) => {
                    let Some(value) = argument_text(arguments, name)? else { return Ok(None) };
                    if value.contains('\0') {
                        return Err(format!("/{name}: a NUL character cannot be passed to a program"));
                    }
                    if value.len() > ARGUMENT_BYTES_MAX {
                        return Err(format!("/{name}: longer than {ARGUMENT_BYTES_MAX} bytes"));
                    }
                    filled.push_str(&value);
                    if self.dash == LeadingDash::Refused && filled.starts_with('-') {
                        return Err(format!(
                            "/{name}: must not begin with `-`, which would be read as an option"
                        ));
                    }
                }
            }
        }
        Ok(Some(filled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filled(items: &[&str], dash_allowed: &[&str], arguments: Value) -> Result<Vec<String>, String> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        ArgvTemplate::parse(&owned(items), &owned(dash_allowed)).fill(&arguments)
    }

    #[test]
    fn argument_value_stays_within_one_argv_item() {
        let check = |items: &[&str], arguments: Value, expected: &[&str]| {
            let expected: Vec<String> = expected.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(filled(items, &["any"], arguments), Ok(expected), "{items:?}");
        };
        check(&["-n", "{n}"], json!({"n": 5}), &["-n", "5"]);
        check(
            &["{city}"],
            json!({"city": "a b; rm -rf / $(x) `y` \"z\" \n*"}),
            &["a b; rm -rf / $(x) `y` \"z\" \n*"],
        );
        check(&["--city={city}"], json!({"city": "-x"}), &["--city=-x"]);
        check(&["{any}"], json!({"any": "-x"}), &["-x"]);
        check(&["--", "{city}"], json!({"city": "--force"}), &["--", "--force"]);
        check(&["--city={city}", "{n}", "end"], json!({"n": null}), &["end"]);
        check(&["{{city}}", "{a}{b}"], json!({"a": true, "b": "{city}"}), &["{city}", "true{city}"]);
        check(&["{city}"], json!({"city": ""}), &[""]);
    }

    #[test]
    fn values_unfit_for_argv_are_refused() {
        for (items, arguments, expected) in [
            (
                ["{city}", ""],
                json!({"city": "-rf"}),
                "/city: must not begin with `-`, which would be read as an option",
            ),
            (
                ["{a}{b}", ""],
                json!({"a": "", "b": "-rf"}),
                "/b: must not begin with `-`, which would be read as an option",
            ),
            (
                ["{city}", "--"],
                json!({"city": "-1"}),
                "/city: must not begin with `-`, which would be read as an option",
            ),
            (
                ["x{city}", ""],
                json!({"city": "a\0b"}),
                "/city: a NUL character cannot be passed to a program",
            ),
            (
                ["x{city}", ""],
                json!({"city": ["a"]}),
                "/city: a list or an object cannot be put here; send it as JSON",
            ),
            (
                ["{city}", ""],
                json!({"city": "x".repeat(ARGUMENT_BYTES_MAX + 1)}),
                "/city: longer than 65536 bytes",
            ),
        ] {
            assert_eq!(filled(&items, &[], arguments).unwrap_err(), expected, "{items:?}");
        }
    }
}
