//! Function arguments that come as values for JSON paths (`partialArgs`), as JSON text that grows.
//!
//! The text is written while the paths arrive, so a call that is cut has a text that is cut: a value made whole at
//! any moment would turn half a call into a complete one.

use crate::json::JsonRef;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Deepest path that is followed.
const PATH_SEGMENTS_MAX: usize = 64;

/// One step of a JSON path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PathSegment {
    Key(String),
    Index(usize),
}

/// The arguments of one call, so far.
#[derive(Debug, Default)]
pub(super) struct PartialArguments {
    value: Map<String, Value>,
    /// Path of the value that was written last.
    last_path: Vec<PathSegment>,
    /// The value at `last_path` is a string whose quote has not been closed.
    string_is_open: bool,
    started: bool,
    /// True if the paths did not come in the order of the text: then the text is void and only the value
    /// counts.
    out_of_order: bool,
    /// A path or a value could not be understood: the call is unusable.
    is_unusable: bool,
}

/// A path or value that is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnsupportedEntry;

impl PartialArguments {
    /// Applies one entry of `partialArgs`; the text to append goes to `out`.
    pub(super) fn apply(&mut self, entry: &JsonRef<'_>, out: &mut String) -> Result<(), UnsupportedEntry> {
        let result = self.try_apply(entry, out);
        if result.is_err() {
            self.is_unusable = true;
            // Never empty: nothing at all would read as `{}`.
            self.begin(out);
        }
        result
    }

    fn try_apply(&mut self, entry: &JsonRef<'_>, out: &mut String) -> Result<(), UnsupportedEntry> {
        let path = entry.nonempty("jsonPath").as_deref().and_then(parse_path).ok_or(UnsupportedEntry)?;
        let continues = entry.get("willContinue").and_then(JsonRef::as_bool) == Some(true);
        let has_null = entry.members().iter().any(|(key, _)| key == "nullValue");
        if let Some(fragment) = entry.get("stringValue").and_then(JsonRef::as_str) {
            self.append_string(path, &fragment, continues, out)
        } else if let Some(number) = entry.get("numberValue").filter(|number| number.is_number()) {
            self.put(path, number.to_value(), number.raw(), out)
        } else if let Some(flag) = entry.get("boolValue").and_then(JsonRef::as_bool) {
            self.put(path, Value::Bool(flag), if flag { "true" } else { "false" }, out)
        } else if has_null {
            self.put(path, Value::Null, "null", out)
        } else if continues {
            self.append_string(path, "", continues, out)
        } else {
            Err(UnsupportedEntry)
        }
    }

    /// Completes the call; the remaining text goes to `out`.
    pub(super) fn close(&mut self, out: &mut String) {
        if self.is_unusable {
            return;
        }
        self.begin(out);
        self.leave(0, out);
        out.push('}');
    }

    /// The whole text, if it differs from the appended one.
    pub(super) fn rewritten_text(&self) -> Option<String> {
        (self.out_of_order && !self.is_unusable).then(|| self.to_value().to_string())
    }

    /// The value so far.
    pub(super) fn to_value(&self) -> Value {
        Value::Object(self.value.clone())
    }

    fn append_string(
        &mut self,
        path: Vec<PathSegment>,
        fragment: &str,
        continues: bool,
        out: &mut String,
    ) -> Result<(), UnsupportedEntry> {
        if path != self.last_path {
            self.enter(&path, out)?;
            out.push('"');
            self.string_is_open = true;
            self.last_path = path;
        } else if !self.string_is_open {
            // The string continues after its reported end.
            self.out_of_order = true;
        }
        let target = value_at_path(&mut self.value, &self.last_path)?;
        match target {
            Value::String(text) => text.push_str(fragment),
            other => *other = Value::String(fragment.to_owned()),
        }
        if self.string_is_open {
            let quoted = Value::from(fragment).to_string();
            out.push_str(&quoted[1..quoted.len() - 1]);
            if !continues {
                self.string_is_open = false;
                out.push('"');
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        path: Vec<PathSegment>,
        value: Value,
        text: &str,
        out: &mut String,
    ) -> Result<(), UnsupportedEntry> {
        self.enter(&path, out)?;
        *value_at_path(&mut self.value, &path)? = value;
        out.push_str(text);
        self.last_path = path;
        Ok(())
    }

    /// Writes everything between the last value and the one at `path`: ends of containers, beginnings, keys.
    fn enter(&mut self, path: &[PathSegment], out: &mut String) -> Result<(), UnsupportedEntry> {
        let exists = get_path(&self.value, path).is_some();
        let shared = self.last_path.iter().zip(path).take_while(|(a, b)| a == b).count();
        let first_new = shared.min(path.len() - 1);
        // In order: everything below the common ancestor is new, and an array grows by one.
        let ancestor = if first_new == 0 { None } else { get_path(&self.value, &path[..first_new]) };
        let grows = match (&path[first_new], ancestor, first_new) {
            (PathSegment::Key(key), _, 0) => !self.value.contains_key(key),
            (PathSegment::Key(key), Some(Value::Object(members)), _) => !members.contains_key(key),
            (PathSegment::Index(index), Some(Value::Array(items)), _) => items.len() == *index,
            _ => false,
        };
        let starts_at_zero =
            path[first_new + 1..].iter().all(|segment| !matches!(segment, PathSegment::Index(1..)));
        if exists || !grows || !starts_at_zero {
            self.out_of_order = true;
        }
        self.begin(out);
        let was_empty = self.last_path.is_empty();
        self.leave(first_new + 1, out);
        if !was_empty {
            out.push(',');
        }
        for (depth, segment) in path.iter().enumerate().skip(first_new) {
            if depth > first_new {
                out.push(if matches!(segment, PathSegment::Key(_)) { '{' } else { '[' });
            }
            if let PathSegment::Key(key) = segment {
                let _ = write!(out, "{}:", Value::from(key.as_str()));
            }
        }
        Ok(())
    }

    fn begin(&mut self, out: &mut String) {
        if !std::mem::replace(&mut self.started, true) {
            out.push('{');
        }
    }

    /// Ends the open string and every container deeper than `depth` segments.
    fn leave(&mut self, depth: usize, out: &mut String) {
        if std::mem::take(&mut self.string_is_open) {
            out.push('"');
        }
        for segment in self.last_path.iter().skip(depth.max(1)).rev() {
            out.push(if matches!(segment, PathSegment::Key(_)) { '}' } else { ']' });
        }
    }
}

/// The value at a path, made if it is not there. Arrays grow by one at a time, so a path cannot ask for gigabytes.
fn value_at_path<'v>(
    root: &'v mut Map<String, Value>,
    path: &[PathSegment],
) -> Result<&'v mut Value, UnsupportedEntry> {
    let Some((PathSegment::Key(first), rest)) = path.split_first() else { return Err(UnsupportedEntry) };
    let mut target = root.entry(first.clone()).or_insert(Value::Null);
    for segment in rest {
        target = match segment {
            PathSegment::Key(key) => {
                if target.is_null() {
                    *target = Value::Object(Map::new());
                }
                target.as_object_mut().ok_or(UnsupportedEntry)?.entry(key.clone()).or_insert(Value::Null)
            }
            PathSegment::Index(index) => {
                if target.is_null() {
                    *target = Value::Array(Vec::new());
                }
                let items = target.as_array_mut().ok_or(UnsupportedEntry)?;
                if *index == items.len() {
                    items.push(Value::Null);
                }
                items.get_mut(*index).ok_or(UnsupportedEntry)?
            }
        };
    }
    Ok(target)
}

fn get_path<'v>(root: &'v Map<String, Value>, path: &[PathSegment]) -> Option<&'v Value> {
    let (PathSegment::Key(first), rest) = path.split_first()? else { return None };
    rest.iter().try_fold(root.get(first)?, |target, segment| match segment {
        PathSegment::Key(key) => target.get(key),
        PathSegment::Index(index) => target.get(index),
    })
}

/// `$.a.b[0]['c d']` to its segments. The root itself and anything with wildcards is not understood.
fn parse_path(path: &str) -> Option<Vec<PathSegment>> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut segments = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("['").or_else(|| rest.strip_prefix("[\"")) {
            let quote = char::from(rest.as_bytes()[1]);
            let (key, tail) = quoted_key(after, quote)?;
            segments.push(PathSegment::Key(key));
            rest = tail.strip_prefix(']')?;
        } else if let Some(after) = rest.strip_prefix('[') {
            let (digits, tail) = after.split_once(']')?;
            segments.push(PathSegment::Index(digits.trim().parse().ok()?));
            rest = tail;
        } else {
            let after = rest
                .strip_prefix('.')
                .or((segments.is_empty() && rest.len() == path.len()).then_some(rest))?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let key = &after[..end];
            if key.is_empty() || key == "*" {
                return None;
            }
            segments.push(PathSegment::Key(key.to_owned()));
            rest = &after[end..];
        }
        if segments.len() > PATH_SEGMENTS_MAX {
            return None;
        }
    }
    matches!(segments.first(), Some(PathSegment::Key(_))).then_some(segments)
}

fn quoted_key(text: &str, quote: char) -> Option<(String, &str)> {
    let mut key = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => key.push(chars.next()?.1),
            char if char == quote => return Some((key, &text[at + char.len_utf8()..])),
            char => key.push(char),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text after each entry, then after the end; `|` separates.
    fn check(entries: &[&str], expect: &str) {
        let mut arguments = PartialArguments::default();
        let mut shown = Vec::new();
        let mut whole = String::new();
        for entry in entries {
            let mut out = String::new();
            let _ = arguments.apply(&JsonRef::parse(entry).unwrap(), &mut out);
            whole.push_str(&out);
            shown.push(out);
        }
        let mut out = String::new();
        arguments.close(&mut out);
        whole.push_str(&out);
        shown.push(out);
        assert_eq!(shown.join("|"), expect);
        if !arguments.is_unusable {
            let text = arguments.rewritten_text().unwrap_or(whole);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), arguments.to_value());
        }
    }

    #[test]
    fn argument_text_grows_with_each_path() {
        check(&[], "{}");
        check(
            &[
                r#"{"jsonPath":"$.city","stringValue":"Pa","willContinue":true}"#,
                r#"{"jsonPath":"$.city","stringValue":"ris\"\n"}"#,
                r#"{"jsonPath":"$.guests[0].age","numberValue":7}"#,
                r#"{"jsonPath":"$.guests[0].vip","boolValue":true}"#,
                r#"{"jsonPath":"$.guests[1].age","numberValue":1.50}"#,
                r#"{"jsonPath":"$.note","nullValue":null}"#,
            ],
            r#"{"city":"Pa|ris\"\n"|,"guests":[{"age":7|,"vip":true|},{"age":1.50|}],"note":null|}"#,
        );
        // No end of the string was reported, and the array comes last.
        check(
            &[
                r#"{"jsonPath":"$['a b'].c","stringValue":"x","willContinue":true}"#,
                r#"{"jsonPath":"$.list[0]","stringValue":"y","willContinue":true}"#,
                r#"{"jsonPath":"$.list[1]","stringValue":""}"#,
            ],
            r#"{"a b":{"c":"x|"},"list":["y|",""|]}"#,
        );
    }

    #[test]
    fn out_of_order_paths_yield_the_right_final_value() {
        let mut arguments = PartialArguments::default();
        let mut out = String::new();
        for entry in [
            r#"{"jsonPath":"$.a.x","numberValue":1}"#,
            r#"{"jsonPath":"$.b","numberValue":2}"#,
            r#"{"jsonPath":"$.a.y","numberValue":3}"#,
        ] {
            assert_eq!(arguments.apply(&JsonRef::parse(entry).unwrap(), &mut out), Ok(()));
        }
        arguments.close(&mut out);
        assert_eq!(arguments.rewritten_text().as_deref(), Some(r#"{"a":{"x":1,"y":3},"b":2}"#));
    }

    #[test]
    fn unsupported_entry_leaves_the_text_incomplete() {
        for entry in [
            r#"{"jsonPath":"$","stringValue":"x"}"#,
            r#"{"jsonPath":"$.a[4000000000]","numberValue":1}"#,
            r#"{"jsonPath":"$.a[*]","numberValue":1}"#,
            r#"{"jsonPath":"$.a"}"#,
            r#"{"stringValue":"x"}"#,
        ] {
            let mut arguments = PartialArguments::default();
            let mut out = String::new();
            assert_eq!(
                arguments.apply(&JsonRef::parse(entry).unwrap(), &mut out),
                Err(UnsupportedEntry),
                "{entry}"
            );
            arguments.close(&mut out);
            assert!(!out.is_empty() && serde_json::from_str::<Value>(&out).is_err(), "{entry} gave {out}");
            assert_eq!(arguments.rewritten_text(), None);
        }
    }
}
