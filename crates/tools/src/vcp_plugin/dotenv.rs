//! `config.env`: lines `NAME=value`, as Node's dotenv reads them.

use std::collections::BTreeMap;

/// Reads a `.env` file. Other lines are ignored, as by every reader of this format.
///
/// A leading `export` is allowed. Without quotes a value ends at a `#`; within quotes, of three kinds, it may
/// span lines, and only `"…"` has the escapes `\n` and `\r`.
pub(super) fn parse(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut rest = text.trim_start_matches('\u{feff}');
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = after;
        let Some((name, start)) = name_of(line) else { continue };
        let value = start.trim_start();
        let quoted =
            value.chars().next().filter(|first| matches!(first, '"' | '\'' | '`')).and_then(|quote| {
                // From here on in the whole text: the end may be lines below.
                let begin = text.len() - after.len() - usize::from(!after.is_empty() || text.ends_with('\n'));
                let begin = begin - line.len() + (line.len() - value.len()) + 1;
                let inner = text.get(begin..)?;
                let end = inner.find(quote)?;
                Some((quote, &inner[..end], &inner[end + 1..]))
            });
        match quoted {
            Some((quote, inner, remainder)) => {
                let value = match quote {
                    '"' => inner.replace("\\n", "\n").replace("\\r", "\r"),
                    _ => inner.to_owned(),
                };
                values.insert(name.to_owned(), value);
                rest = remainder.split_once('\n').map_or("", |(_, lines)| lines);
            }
            None => {
                let value = value.split('#').next().unwrap_or_default();
                values.insert(name.to_owned(), value.trim().to_owned());
            }
        }
    }
    values
}

fn name_of(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let name = name.strip_prefix("export ").map_or(name, str::trim);
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    is_name.then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotenv_lines_are_parsed() {
        let text = "\u{feff}# a comment\nPLAIN=value\n  SPACED = two words  # note\nexport EXPORTED=1\r\nEMPTY=\n\
            DOUBLE=\"a\\nb # c\"\nSINGLE='a\\nb' # d\nLINES=\"one\ntwo\"\nAFTER=x=y\nno line\n1 2=3\nOPEN=\"never closed\nLAST=`q`";
        let values = parse(text);
        let expected = [
            ("AFTER", "x=y"),
            ("DOUBLE", "a\nb # c"),
            ("EMPTY", ""),
            ("EXPORTED", "1"),
            ("LAST", "q"),
            ("LINES", "one\ntwo"),
            ("OPEN", "\"never closed"),
            ("PLAIN", "value"),
            ("SINGLE", "a\\nb"),
            ("SPACED", "two words"),
        ];
        let found: Vec<(&str, &str)> =
            values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, expected);
        assert!(parse("").is_empty());
    }
}
