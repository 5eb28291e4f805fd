//! Names: `group.method` here, `[A-Za-z0-9_-]{1,64}` at an upstream, and exactly back.
//!
//! Never guesses a way back: a wire name belongs to one tool or to none.

use std::collections::{BTreeMap, BTreeSet};
use throughline_wire::{ToolName, WireName};

/// Longest name that every upstream takes, in bytes (OpenAI, Anthropic and Gemini all say 64).
pub const WIRE_NAME_BYTES_MAX: usize = 64;
/// Longest name of a tool, in bytes.
pub const TOOL_NAME_BYTES_MAX: usize = 256;
/// Hex digits of a suffix.
const SUFFIX_DIGITS: usize = 8;

/// Checks a tool's name: `group.method`, no white space, no control characters.
pub(crate) fn check_name(name: &ToolName) -> Result<(), String> {
    let text = name.as_str();
    let problem = match text.split_once('.') {
        None => "it has no group: `group.method`",
        Some((group, method)) if group.is_empty() || method.is_empty() => {
            "group and method must not be empty"
        }
        _ if text.len() > TOOL_NAME_BYTES_MAX => "it is longer than 256 bytes",
        _ if text.chars().any(|c| c.is_whitespace() || c.is_control()) => "it has white space in it",
        _ => return Ok(()),
    };
    Err(problem.to_owned())
}

/// Wire names for a set of tools.
///
/// `group_method` where that is unique, short enough and lossless; else cut and with a suffix made from the
/// whole name. When two tools would have the same wire name, neither gets it: if the first in order did,
/// registering one more tool could give a name that the model has already used to another tool.
pub(crate) fn wire_names<'a>(names: impl Iterator<Item = &'a ToolName>) -> BTreeMap<WireName, ToolName> {
    let names: BTreeSet<&ToolName> = names.collect();
    let mut by_base_name: BTreeMap<String, Vec<&ToolName>> = BTreeMap::new();
    for &name in &names {
        by_base_name.entry(sanitized(name)).or_default().push(name);
    }
    let mut assigned = BTreeMap::new();
    let mut suffixed = Vec::new();
    for (base_name, claimants) in by_base_name {
        match claimants.as_slice() {
            [only] if base_name.len() <= WIRE_NAME_BYTES_MAX && is_lossless(only) => {
                assigned.insert(WireName::new(base_name), (*only).clone());
            }
            _ => suffixed.extend(claimants),
        }
    }
    for name in suffixed {
        // A second round only if a tool is named like another one's suffixed form.
        let free = (0..)
            .map(|round| WireName::new(with_suffix(name, round)))
            .find(|candidate| !assigned.contains_key(candidate));
        if let Some(free) = free {
            assigned.insert(free, name.clone());
        }
    }
    assigned
}

fn is_wire_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// True if nothing but dots was replaced.
fn is_lossless(name: &ToolName) -> bool {
    // Gemini wants a letter or an underscore in front.
    name.as_str().starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.as_str().chars().all(|c| is_wire_char(c) || c == '.')
}

fn sanitized(name: &ToolName) -> String {
    let text: String = name.as_str().chars().map(|c| if is_wire_char(c) { c } else { '_' }).collect();
    if text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') { text } else { format!("t_{text}") }
}

fn with_suffix(name: &ToolName, round: u32) -> String {
    let hash = blake3::hash(format!("{round}:{name}").as_bytes()).to_hex();
    let mut text = sanitized(name);
    text.truncate(WIRE_NAME_BYTES_MAX - SUFFIX_DIGITS - 1);
    format!("{text}_{}", &hash.as_str()[..SUFFIX_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<ToolName> {
        list.iter().map(|&name| ToolName::from(name)).collect()
    }

    fn wire(list: &[&str]) -> Vec<(String, String)> {
        let names = names(list);
        let mut pairs: Vec<_> = wire_names(names.iter())
            .into_iter()
            .map(|(wire, tool)| (tool.into_string(), wire.into_string()))
            .collect();
        pairs.sort();
        pairs
    }

    #[test]
    fn wire_names_are_distinct_and_legal() {
        let long_a = format!("group.{}", "a".repeat(80));
        let long_b = format!("group.{}b", "a".repeat(80));
        let exactly_64 = format!("g.{}", "m".repeat(62));
        for set in [
            vec!["time.now", "live2d.expression", "http.fetch"],
            vec!["a.b_c", "a_b.c", "a.b.c"],
            vec!["天气.今天", "天气.明天"],
            vec!["2captcha.solve", "t_2captcha.solve"],
            vec![&long_a, &long_b, &exactly_64],
            vec!["mcp.files/read", "mcp.files_read"],
        ] {
            let pairs = wire(&set);
            assert_eq!(pairs.len(), set.len(), "{pairs:?}");
            let distinct: BTreeSet<_> = pairs.iter().map(|(_, wire)| wire).collect();
            assert_eq!(distinct.len(), set.len(), "{pairs:?}");
            for (_, wire) in &pairs {
                assert!((1..=WIRE_NAME_BYTES_MAX).contains(&wire.len()), "{wire}");
                assert!(wire.chars().all(is_wire_char), "{wire}");
            }
        }
    }

    #[test]
    fn wire_name_replaces_dots_with_underscores() {
        assert_eq!(
            wire(&["live2d.expression", "time.now"]),
            [
                ("live2d.expression".into(), "live2d_expression".into()),
                ("time.now".into(), "time_now".into())
            ]
        );
        let exactly_64 = format!("g.{}", "m".repeat(62));
        assert_eq!(wire(&[&exactly_64])[0].1, exactly_64.replace('.', "_"));
    }

    #[test]
    fn colliding_wire_names_all_get_a_suffix() {
        let alone = wire(&["a.b_c"]);
        assert_eq!(alone[0].1, "a_b_c");
        let both = wire(&["a.b_c", "a_b.c"]);
        assert!(both.iter().all(|(_, wire)| wire.starts_with("a_b_c_") && wire.len() == 14), "{both:?}");
    }

    #[test]
    fn tool_named_like_a_suffixed_name_stays_distinct() {
        let suffixed = with_suffix(&"a.b_c".into(), 0);
        let impostor = suffixed.replacen('_', ".", 1);
        let pairs = wire(&["a.b_c", "a_b.c", &impostor]);
        assert_eq!(pairs.iter().find(|(name, _)| *name == impostor).unwrap().1, suffixed);
        assert_eq!(pairs.iter().map(|(_, wire)| wire).collect::<BTreeSet<_>>().len(), 3);
    }

    #[test]
    fn check_name_accepts_only_group_and_method() {
        for good in ["time.now", "mcp.server.tool", "天气.今天", "a-b.c_d"] {
            assert_eq!(check_name(&good.into()), Ok(()), "{good}");
        }
        let long = format!("a.{}", "b".repeat(TOOL_NAME_BYTES_MAX));
        for bad in ["now", ".now", "time.", "", "time .now", "time.now\n", &long] {
            assert!(check_name(&bad.into()).is_err(), "{bad:?}");
        }
    }
}
