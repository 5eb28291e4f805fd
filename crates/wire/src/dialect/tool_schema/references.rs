//! References inside a schema: every one names an entry of the top-level `$defs`, or is removed.

use super::copies::CopyBudget;
use super::{for_each_subschema, subschemas};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Prefix of references to definitions.
const DEFINITIONS: &str = "#/$defs/";
/// Most places that references other than those to definitions may name; the others may be anything.
const HOISTED_MAX: usize = 100;

/// Referenced locations that are copied into separate definitions.
struct CopiedPlaces<'a> {
    root: &'a Value,
    /// Names of the copies, by pointer.
    names: BTreeMap<String, String>,
    copies: &'a mut CopyBudget,
}

/// Makes every `$ref` one to an entry of the root's `$defs`: older names of it, and copies of other places (`#`,
/// `#/properties/a`, names that would have to be escaped), which may change when the top is made plain. References to
/// nothing, to other documents, and to more than may be copied are left out. True if there are copies.
pub(super) fn localize(root: &mut Value, copies: &mut CopyBudget) -> bool {
    if !refers(root) {
        return false;
    }
    let original = root.clone();
    let mut places = CopiedPlaces { root: &original, names: BTreeMap::new(), copies };
    places.rewrite(root);
    if places.names.is_empty() {
        return false;
    }
    // Copies have references, too; each pass may find more locations.
    let mut copied: BTreeMap<String, Value> = BTreeMap::new();
    while let Some((pointer, name)) = places.names.iter().find(|(_, name)| !copied.contains_key(*name)) {
        let name = name.clone();
        let mut copy = original.pointer(pointer).cloned().unwrap_or_else(|| json!({}));
        if let Value::Object(members) = &mut copy
            && pointer.is_empty()
        {
            members.shift_remove("$defs");
            members.shift_remove("definitions");
        }
        places.rewrite(&mut copy);
        copied.insert(name, copy);
    }
    if let Value::Object(members) = root
        && let Value::Object(definitions) =
            members.entry("$defs").or_insert_with(|| Value::Object(Map::new()))
    {
        definitions.extend(copied);
    }
    true
}

/// True if the value contains a reference or an older name of definitions.
fn refers(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(refers),
        Value::Object(members) => {
            members.iter().any(|(name, value)| name == "$ref" || name == "definitions" || refers(value))
        }
        _ => false,
    }
}

impl CopiedPlaces<'_> {
    fn rewrite(&mut self, schema: &mut Value) {
        let Value::Object(members) = schema else { return };
        if let Some(definitions) = members.shift_remove("definitions") {
            match (members.get_mut("$defs"), definitions) {
                (Some(Value::Object(newer)), Value::Object(older)) => {
                    older.into_iter().for_each(|(name, schema)| _ = newer.entry(name).or_insert(schema));
                }
                (None, definitions) => _ = members.insert("$defs".to_owned(), definitions),
                _ => {}
            }
        }
        if let Some(reference) = members.get("$ref") {
            match reference.as_str().and_then(|reference| self.local_name(reference)) {
                Some(name) => _ = members.insert("$ref".to_owned(), format!("{DEFINITIONS}{name}").into()),
                None => _ = members.shift_remove("$ref"),
            }
        }
        for_each_subschema(members, &mut |schema| self.rewrite(schema));
        // Lists in `items` are made `prefixItems` later.
        if let Some(Value::Array(items)) = members.get_mut("items") {
            items.iter_mut().for_each(|schema| self.rewrite(schema));
        }
    }

    /// The entry of `$defs` for a reference, as it is written in one.
    fn local_name(&mut self, reference: &str) -> Option<String> {
        let pointer = reference.strip_prefix('#')?;
        let decoded = percent_decoded(pointer);
        let target = self.root.pointer(&decoded)?;
        if !target.is_object() && !target.is_boolean() {
            return None;
        }
        for definitions in ["/$defs/", "/definitions/"] {
            if let Some(name) = decoded.strip_prefix(definitions).filter(|name| is_plain_name(name)) {
                return Some(name.to_owned());
            }
        }
        if let Some(name) = self.names.get(&decoded) {
            return Some(name.clone());
        }
        if self.names.len() == HOISTED_MAX || !self.copies.take(target) {
            return None;
        }
        let is_free = |name: &String| self.root.pointer(&format!("/$defs/{name}")).is_none();
        let name = (1..).map(|number| format!("shared{number}")).filter(is_free);
        let name = name.into_iter().find(|name| !self.names.values().any(|taken| taken == name))?;
        self.names.insert(decoded, name.clone());
        Some(name)
    }
}

/// A name that is the same in a reference, and no path.
fn is_plain_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

fn percent_decoded(pointer: &str) -> String {
    let bytes = pointer.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = pointer.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code.filter(|_| byte == b'%') {
            Some(code) => {
                decoded.push(code);
                at += 3;
            }
            None => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// The definition that a reference made by [`localize`] names.
pub(super) fn target<'a>(
    definitions: &'a Map<String, Value>,
    schema: &Map<String, Value>,
) -> Option<&'a Value> {
    definitions.get(&name_of(schema)?)
}

/// Name of the definition that a schema refers to.
pub(super) fn name_of(schema: &Map<String, Value>) -> Option<String> {
    schema.get("$ref")?.as_str()?.strip_prefix(DEFINITIONS).map(str::to_owned)
}

/// Leaves out definitions that nothing refers to any more.
pub(super) fn drop_unused(root: &mut Map<String, Value>) {
    let Some(Value::Object(mut definitions)) = root.shift_remove("$defs") else { return };
    let mut used = BTreeSet::new();
    let mut found = names_in(root);
    while let Some(name) = found.pop() {
        if let Some(Value::Object(definition)) = definitions.get(&name)
            && used.insert(name)
        {
            found.extend(names_in(definition));
        }
    }
    definitions.retain(|name, _| used.contains(name));
    if !definitions.is_empty() {
        root.insert("$defs".to_owned(), definitions.into());
    }
}

/// Names of the definitions that a schema refers to.
fn names_in(schema: &Map<String, Value>) -> Vec<String> {
    let mut names: Vec<String> = name_of(schema).into_iter().collect();
    let inside = subschemas(schema).filter_map(Value::as_object);
    inside.for_each(|schema| names.extend(names_in(schema)));
    names
}

/// Names of recursive definitions, directly or indirectly.
pub(in crate::dialect) fn recursive_names(root: &Map<String, Value>) -> BTreeSet<String> {
    let Some(Value::Object(definitions)) = root.get("$defs") else { return BTreeSet::new() };
    let direct: BTreeMap<&str, Vec<String>> = definitions
        .iter()
        .map(|(name, schema)| (name.as_str(), schema.as_object().map(names_in).unwrap_or_default()))
        .collect();
    let reaches_itself = |name: &str| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&String> = direct.get(name).into_iter().flatten().collect();
        while let Some(next) = open.pop() {
            if next == name {
                return true;
            }
            if seen.insert(next) {
                open.extend(direct.get(next.as_str()).into_iter().flatten());
            }
        }
        false
    };
    definitions.keys().filter(|name| reaches_itself(name)).cloned().collect()
}
