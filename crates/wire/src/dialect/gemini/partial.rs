//! Function arguments that come as values for JSON paths (`partialArgs`, quirk G3), as JSON text that grows.
//!
//! The text is written while the paths arrive, so a call that is cut has a text that is cut: a value made whole at
//! any moment would turn half a call into a complete one.

use crate::json::Json;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Deepest path that is followed.
const PATH_SEGMENTS_MAX: usize = 64;

/// One step of a JSON path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Key(String),
    Index(usize),
}

/// The arguments of one call, so far.
#[derive(Debug, Default)]
pub(super) struct PartialArguments {
    value: Map<String, Value>,
    /// Path of the value that was written last.
    last: Vec<Segment>,
    /// The value at `last` is a string whose quote has not been closed.
    string_is_open: bool,
    begun: bool,
    /// The paths did not come in the order of the text, so the text is void and the value stands.
    out_of_order: bool,
    /// A path or a value could not be understood: the call is unusable.
    lost: bool,
}

/// A path or value that is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotUnderstood;

impl PartialArguments {
    /// Takes one entry of `partialArgs`; what is to be appended to the text goes to `out`.
    pub(super) fn apply(&mut self, entry: &Json<'_>, out: &mut String) -> Result<(), NotUnderstood> {
        let result = self.try_apply(entry, out);
        if result.is_err() {
            self.lost = true;
            // Never empty: nothing at all would read as `{}`.
            self.begin(out);
        }
        result
    }

    fn try_apply(&mut self, entry: &Json<'_>, out: &mut String) -> Result<(), NotUnderstood> {
        let path = entry.nonempty("jsonPath").as_deref().and_then(parse_path).ok_or(NotUnderstood)?;
        let continues = entry.get("willContinue").and_then(Json::as_bool) == Some(true);
        let has_null = entry.members().iter().any(|(key, _)| key == "nullValue");
        if let Some(fragment) = entry.get("stringValue").and_then(Json::as_str) {
            self.append_string(path, &fragment, continues, out)
        } else if let Some(number) = entry.get("numberValue").filter(|number| number.is_number()) {
            self.put(path, number.to_value(), number.raw(), out)
        } else if let Some(flag) = entry.get("boolValue").and_then(Json::as_bool) {
            self.put(path, Value::Bool(flag), if flag { "true" } else { "false" }, out)
        } else if has_null {
            self.put(path, Value::Null, "null", out)
        } else if continues {
            self.append_string(path, "", continues, out)
        } else {
            Err(NotUnderstood)
        }
    }

    /// The call is complete: what is still to be appended.
    pub(super) fn close(&mut self, out: &mut String) {
        if self.lost {
            return;
        }
        self.begin(out);
        self.leave(0, out);
        out.push('}');
    }

    /// The whole text, if what was appended is not it.
    pub(super) fn restatement(&self) -> Option<String> {
        (self.out_of_order && !self.lost).then(|| self.to_value().to_string())
    }

    /// The value so far.
    pub(super) fn to_value(&self) -> Value {
        Value::Object(self.value.clone())
    }

    fn append_string(
        &mut self,
        path: Vec<Segment>,
        fragment: &str,
        continues: bool,
        out: &mut String,
    ) -> Result<(), NotUnderstood> {
        if path != self.last {
            self.enter(&path, out)?;
            out.push('"');
            self.string_is_open = true;
            self.last = path;
        } else if !self.string_is_open {
            // The string goes on after its end was told.
            self.out_of_order = true;
        }
        let place = place_of(&mut self.value, &self.last)?;
        match place {
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
        path: Vec<Segment>,
        value: Value,
        text: &str,
        out: &mut String,
    ) -> Result<(), NotUnderstood> {
        self.enter(&path, out)?;
        *place_of(&mut self.value, &path)? = value;
        out.push_str(text);
        self.last = path;
        Ok(())
    }

    /// Writes everything between the last value and the one at `path`: ends of containers, beginnings, keys.
    fn enter(&mut self, path: &[Segment], out: &mut String) -> Result<(), NotUnderstood> {
        let exists = peek(&self.value, path).is_some();
        let shared = self.last.iter().zip(path).take_while(|(a, b)| a == b).count();
        let first_new = shared.min(path.len() - 1);
        // In order: everything below the common ancestor is new, and an array grows by one.
        let ancestor = if first_new == 0 { None } else { peek(&self.value, &path[..first_new]) };
        let grows = match (&path[first_new], ancestor, first_new) {
            (Segment::Key(key), _, 0) => !self.value.contains_key(key),
            (Segment::Key(key), Some(Value::Object(members)), _) => !members.contains_key(key),
            (Segment::Index(index), Some(Value::Array(items)), _) => items.len() == *index,
            _ => false,
        };
        let starts_at_zero =
            path[first_new + 1..].iter().all(|segment| !matches!(segment, Segment::Index(1..)));
        if exists || !grows || !starts_at_zero {
            self.out_of_order = true;
        }
        self.begin(out);
        let was_empty = self.last.is_empty();
        self.leave(first_new + 1, out);
        if !was_empty {
            out.push(',');
        }
        for (depth, segment) in path.iter().enumerate().skip(first_new) {
            if depth > first_new {
                out.push(if matches!(segment, Segment::Key(_)) { '{' } else { '[' });
            }
            if let Segment::Key(key) = segment {
                let _ = write!(out, "{}:", Value::from(key.as_str()));
            }
        }
        Ok(())
    }

    fn begin(&mut self, out: &mut String) {
        if !std::mem::replace(&mut self.begun, true) {
            out.push('{');
        }
    }

    /// Ends the open string and every container deeper than `depth` segments.
    fn leave(&mut self, depth: usize, out: &mut String) {
        if std::mem::take(&mut self.string_is_open) {
            out.push('"');
        }
        for segment in self.last.iter().skip(depth.max(1)).rev() {
            out.push(if matches!(segment, Segment::Key(_)) { '}' } else { ']' });
        }
    }
}

/// The value at a path, made if it is not there. Arrays grow by one at a time, so a path cannot ask for gigabytes.
fn place_of<'v>(root: &'v mut Map<String, Value>, path: &[Segment]) -> Result<&'v mut Value, NotUnderstood> {
    let Some((Segment::Key(first), rest)) = path.split_first() else { return Err(NotUnderstood) };
    let mut place = root.entry(first.clone()).or_insert(Value::Null);
    for segment in rest {
        place = match segment {
            Segment::Key(key) => {
                if place.is_null() {
                    *place = Value::Object(Map::new());
                }
                place.as_object_mut().ok_or(NotUnderstood)?.entry(key.clone()).or_insert(Value::Null)
            }
            Segment::Index(index) => {
                if place.is_null() {
                    *place = Value::Array(Vec::new());
                }
                let items = place.as_array_mut().ok_or(NotUnderstood)?;
                if *index == items.len() {
                    items.push(Value::Null);
                }
                items.get_mut(*index).ok_or(NotUnderstood)?
            }
        };
    }
    Ok(place)
}

fn peek<'v>(root: &'v Map<String, Value>, path: &[Segment]) -> Option<&'v Value> {
    let (Segment::Key(first), rest) = path.split_first()? else { return None };
    rest.iter().try_fold(root.get(first)?, |place, segment| match segment {
        Segment::Key(key) => place.get(key),
        Segment::Index(index) => place.get(index),
    })
}

/// `$.a.b[0]['c d']` to its segments. The root itself and anything with wildcards is not understood.
fn parse_path(path: &str) -> Option<Vec<Segment>> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut segments = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("['").or_else(|| rest.strip_prefix("[\"")) {
            let quote = char::from(rest.as_bytes()[1]);
            let (key, tail) = quoted_key(after, quote)?;
            segments.push(Segment::Key(key));
            rest = tail.strip_prefix(']')?;
        } else if let Some(after) = rest.strip_prefix('[') {
            let (digits, tail) = after.split_once(']')?;
            segments.push(Segment::Index(digits.trim().parse().ok()?));
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
            segments.push(Segment::Key(key.to_owned()));
            rest = &after[end..];
        }
        if segments.len() > PATH_SEGMENTS_MAX {
            return None;
        }
    }
    matches!(segments.first(), Some(Segment::Key(_))).then_some(segments)
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
            let _ = arguments.apply(&Json::parse(entry).unwrap(), &mut out);
            whole.push_str(&out);
            shown.push(out);
        }
        let mut out = String::new();
        arguments.close(&mut out);
        whole.push_str(&out);
        shown.push(out);
        assert_eq!(shown.join("|"), expect);
        if !arguments.lost {
            let text = arguments.restatement().unwrap_or(whole);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), arguments.to_value());
        }
    }

    #[test]
    fn text_grows_with_the_paths() {
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
        // No end of the string was told, and the array is the last thing.
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
    fn paths_out_of_order_give_the_right_value_in_the_end() {
        let mut arguments = PartialArguments::default();
        let mut out = String::new();
        for entry in [
            r#"{"jsonPath":"$.a.x","numberValue":1}"#,
            r#"{"jsonPath":"$.b","numberValue":2}"#,
            r#"{"jsonPath":"$.a.y","numberValue":3}"#,
        ] {
            assert_eq!(arguments.apply(&Json::parse(entry).unwrap(), &mut out), Ok(()));
        }
        arguments.close(&mut out);
        assert_eq!(arguments.restatement().as_deref(), Some(r#"{"a":{"x":1,"y":3},"b":2}"#));
    }

    #[test]
    fn what_is_not_understood_leaves_the_text_unfinished() {
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
                arguments.apply(&Json::parse(entry).unwrap(), &mut out),
                Err(NotUnderstood),
                "{entry}"
            );
            arguments.close(&mut out);
            assert!(!out.is_empty() && serde_json::from_str::<Value>(&out).is_err(), "{entry} gave {out}");
            assert_eq!(arguments.restatement(), None);
        }
    }
}
