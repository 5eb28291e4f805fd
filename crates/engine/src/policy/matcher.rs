//! Conditions on one argument: a small set of tests that cannot be tricked by spelling.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// A condition on one argument. Texts are compared exactly, case and all; numbers and booleans by their JSON text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ArgumentTest {
    /// Equal as JSON.
    Equals(Value),
    /// Equal to one of these.
    OneOf(Vec<Value>),
    /// `*` stands for any characters, `?` for one.
    Glob(String),
    /// Begins with this. Not for paths and URLs, which can be spelled in many ways: see `under` and `host`.
    StartsWith(String),
    /// A path to this folder or into it. `.`, `..`, doubled and backward slashes are resolved by their text; links on
    /// the disk are not followed, and `~` means nothing.
    Under(String),
    /// A URL whose host is this one, or with `*.` in front a host below it. Case, port, path and a dot at the end do
    /// not matter. URLs that programs read differently (user names, backslashes, blanks, `%` or other alphabets in the
    /// host, no `//`) are not read at all.
    Host(String),
}

/// Result of testing an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchResult {
    Yes,
    No,
    /// The argument cannot be interpreted with certainty.
    Indeterminate,
}

impl From<bool> for MatchResult {
    fn from(fits: bool) -> Self {
        if fits { MatchResult::Yes } else { MatchResult::No }
    }
}

impl ArgumentTest {
    /// A list passes if all of its items do; an empty one is unclear.
    pub(super) fn matches_all(&self, value: &Value) -> MatchResult {
        match (value, self) {
            (Value::Array(_), ArgumentTest::Equals(_) | ArgumentTest::OneOf(_)) => self.matches_value(value),
            (Value::Array(items), _) if items.is_empty() => MatchResult::Indeterminate,
            (Value::Array(items), _) => {
                MatchResult::from(items.iter().all(|item| self.matches_all(item) == MatchResult::Yes))
            }
            _ => self.matches_value(value),
        }
    }

    /// A list passes if any of its items does.
    pub(super) fn matches_any(&self, value: &Value) -> MatchResult {
        match value {
            Value::Array(items) => {
                let as_list = self.matches_value(value);
                let fits = items.iter().map(|item| self.matches_any(item));
                fits.chain([as_list].into_iter().filter(|fit| *fit == MatchResult::Yes))
                    .find(|fit| *fit != MatchResult::No)
                    .unwrap_or(MatchResult::No)
            }
            _ => self.matches_value(value),
        }
    }

    fn matches_value(&self, value: &Value) -> MatchResult {
        match self {
            ArgumentTest::Equals(wanted) => MatchResult::from(value == wanted),
            ArgumentTest::OneOf(wanted) => MatchResult::from(wanted.contains(value)),
            ArgumentTest::Glob(pattern) => match_text(value, |text| MatchResult::from(glob(pattern, text))),
            ArgumentTest::StartsWith(start) => {
                match_text(value, |text| MatchResult::from(text.starts_with(start.as_str())))
            }
            ArgumentTest::Under(folder) => match_text(value, |text| match_under(folder, text)),
            ArgumentTest::Host(pattern) => match_text(value, |text| match_host(pattern, text)),
        }
    }
}

impl ArgumentTest {
    /// A folder that holds relative paths only.
    pub(super) fn relative_folder(&self) -> Option<&str> {
        match self {
            ArgumentTest::Under(folder) => {
                LexicalPath::read(folder).root.is_none().then_some(folder.as_str())
            }
            _ => None,
        }
    }
}

fn match_text(value: &Value, fit: impl Fn(&str) -> MatchResult) -> MatchResult {
    match value {
        Value::String(text) => fit(text),
        Value::Number(_) | Value::Bool(_) | Value::Null => fit(&value.to_string()),
        Value::Array(_) | Value::Object(_) => MatchResult::Indeterminate,
    }
}

impl fmt::Display for ArgumentTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentTest::Equals(value) => write!(f, "= {value}"),
            ArgumentTest::OneOf(values) => write!(f, "one of {}", Value::from(values.clone())),
            ArgumentTest::Glob(pattern) => write!(f, "like {pattern}"),
            ArgumentTest::StartsWith(start) => write!(f, "starts with {start}"),
            ArgumentTest::Under(folder) => write!(f, "under {folder}"),
            ArgumentTest::Host(host) => write!(f, "host {host}"),
        }
    }
}

/// Glob match: `*` stands for any characters, `?` for one. Takes at most the product of both lengths in
/// steps, for any pattern.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where to retry if the text after the last star does not match.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match (pattern.get(p), star) {
            (Some('*'), _) => {
                star = Some((p, t));
                p += 1;
            }
            (Some(wanted), _) if *wanted == '?' || *wanted == text[t] => {
                p += 1;
                t += 1;
            }
            (_, Some((star_p, star_t))) => {
                star = Some((star_p, star_t + 1));
                p = star_p + 1;
                t = star_t + 1;
            }
            (_, None) => return false,
        }
    }
    pattern[p..].iter().all(|rest| *rest == '*')
}

/// A path by its text: whether it is absolute, and its parts without `.` and `..`.
#[derive(PartialEq)]
struct LexicalPath<'t> {
    root: Option<&'t str>,
    /// Number of folders above the start of a relative path.
    parents: usize,
    parts: Vec<&'t str>,
}

impl<'t> LexicalPath<'t> {
    fn read(text: &'t str) -> Self {
        let is_slash = |c: char| c == '/' || c == '\\';
        // `C:` of Windows is part of the root.
        let drive = text.get(..2).filter(|drive| {
            drive.ends_with(':') && drive.starts_with(|letter: char| letter.is_ascii_alphabetic())
        });
        let rest = &text[drive.map_or(0, str::len)..];
        let root = match (rest.starts_with(is_slash), drive) {
            (true, drive) => Some(drive.unwrap_or("")),
            (false, drive) => drive,
        };
        let (mut parts, mut parents) = (Vec::new(), 0);
        for part in rest.split(is_slash) {
            match part {
                "" | "." => {}
                ".." => {
                    if parts.pop().is_none() && root.is_none() {
                        parents += 1;
                    }
                }
                part => parts.push(part),
            }
        }
        Self { root, parents, parts }
    }
}

fn match_under(folder: &str, path: &str) -> MatchResult {
    let (folder, path) = (LexicalPath::read(folder), LexicalPath::read(path));
    if folder.root != path.root || path.parts.iter().any(|part| part.contains('\0')) {
        // Where a relative path leads depends on who reads it; `C:` and `c:` are one or two by the system.
        let comparable = folder.root.is_some() && path.root.is_some();
        let same_drive = folder.root.unwrap_or("").eq_ignore_ascii_case(path.root.unwrap_or(""));
        return if comparable && !same_drive { MatchResult::No } else { MatchResult::Indeterminate };
    }
    if path.parents > folder.parents {
        return MatchResult::No;
    }
    if path.parents < folder.parents {
        // `../x` may hold the folder that the path begins in, or not.
        return MatchResult::Indeterminate;
    }
    MatchResult::from(path.parts.starts_with(&folder.parts))
}

fn match_host(pattern: &str, url: &str) -> MatchResult {
    let Some(host) = host_of(url) else { return MatchResult::Indeterminate };
    let pattern = pattern.to_ascii_lowercase();
    // One address has many spellings.
    let is_address = host.starts_with('[') || host.rsplit('.').next().is_some_and(is_number);
    if is_address && host != pattern && !is_dotted_quad(&host) {
        return MatchResult::Indeterminate;
    }
    MatchResult::from(match pattern.strip_prefix("*.") {
        Some(domain) => {
            host.strip_suffix(domain).is_some_and(|subdomain| subdomain.len() > 1 && subdomain.ends_with('.'))
        }
        None => host == pattern,
    })
}

/// A label that programs take for a number: `127`, `0x7f`.
fn is_number(label: &str) -> bool {
    label.starts_with(|c: char| c.is_ascii_digit())
        && label.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, 'x' | 'X'))
}

/// `127.0.0.1`, in the one spelling that everyone reads in the same way.
fn is_dotted_quad(host: &str) -> bool {
    let labels: Vec<_> = host.split('.').collect();
    let plain = |label: &&str| label.parse::<u8>().is_ok_and(|byte| byte.to_string() == *label);
    labels.len() == 4 && labels.iter().all(plain)
}

/// The host of a URL that every program reads in the same way.
pub(super) fn host_of(url: &str) -> Option<String> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    if url.contains(odd) {
        return None;
    }
    let (scheme, rest) = url.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    if !is_scheme || authority.contains('@') {
        return None;
    }
    let (host, port) = match authority.strip_prefix('[') {
        // An address of IPv6.
        Some(rest) => {
            let (address, after) = rest.split_once(']')?;
            (&authority[..address.len() + 2], after.strip_prefix(':').unwrap_or(after))
        }
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.is_empty() || !host.chars().all(plain) || !port.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    Some(host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(test: &ArgumentTest, value: Value, all: MatchResult, any: MatchResult) {
        assert_eq!(test.matches_all(&value), all, "{test}, all of {value}");
        assert_eq!(test.matches_any(&value), any, "{test}, any of {value}");
    }

    #[test]
    fn argument_tests_match_values_and_lists() {
        use MatchResult::{Indeterminate, No, Yes};
        let equals = ArgumentTest::Equals(json!({"a": [1]}));
        check(&equals, json!({"a": [1]}), Yes, Yes);
        check(&equals, json!({"a": [1.5]}), No, No);
        let one_of = ArgumentTest::OneOf(vec![json!("rm"), json!(3)]);
        check(&one_of, json!(3), Yes, Yes);
        check(&one_of, json!("3"), No, No);
        // a list with a forbidden item is forbidden
        check(&one_of, json!(["ls", "rm"]), No, Yes);
        let like = ArgumentTest::Glob("*.txt".into());
        check(&like, json!("a.txt"), Yes, Yes);
        check(&like, json!("a.TXT"), No, No);
        check(&like, json!(["a.txt", "b.txt"]), Yes, Yes);
        check(&like, json!(["a.txt", "b.sh"]), No, Yes);
        check(&like, json!([["a.txt"], ["b.txt"]]), Yes, Yes);
        check(&like, json!([]), Indeterminate, No);
        check(&like, json!({"name": "a.txt"}), Indeterminate, Indeterminate);
        check(&ArgumentTest::Glob("1?".into()), json!(12), Yes, Yes);
        check(&ArgumentTest::StartsWith("re".into()), json!("read"), Yes, Yes);
        check(&ArgumentTest::StartsWith("re".into()), json!("Read"), No, No);
    }

    #[test]
    fn glob_matches_wildcards_without_blowup() {
        let table = [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("files.*", "files.read", true),
            ("files.*", "files", false),
            ("f*.r??d", "files.read", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-d", false),
            ("*你?", "问你好", true),
            ("**", "anything", true),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
        // A pattern that takes backtracking matchers exponential time.
        assert!(!glob(&"*a".repeat(200), &"a".repeat(5_000).replace("aaaa", "aaab")));
    }

    #[test]
    fn under_matches_normalized_paths_lexically() {
        use MatchResult::{Indeterminate, No, Yes};
        let table = [
            ("/srv/notes", "/srv/notes", Yes),
            ("/srv/notes", "/srv/notes/a/b.md", Yes),
            ("/srv/notes/", "/srv//notes/./a", Yes),
            ("/srv/notes", "/srv/notes-of-others/a", No),
            ("/srv/notes", "/srv/notes/../secret", No),
            ("/srv/notes", "/srv/notes/a/../../notes/b", Yes),
            ("/srv/notes", "/../../srv/notes/b", Yes),
            ("/srv/notes", "/srv/notes\\..\\..\\etc", No),
            ("/srv/notes", "/etc/passwd", No),
            ("/", "/etc/passwd", Yes),
            // where a relative path leads is not known here
            ("/srv/notes", "a.md", Indeterminate),
            ("/srv/notes", "~/a.md", Indeterminate),
            ("/srv/notes", "/srv/notes/a\0b", Indeterminate),
            ("notes", "notes/a", Yes),
            ("notes", "./notes/a", Yes),
            ("notes", "notes/../../notes/a", No),
            ("notes", "../notes/a", No),
            ("../notes", "a", Indeterminate),
            ("notes", "/notes", Indeterminate),
            ("C:\\notes", "C:/notes/a", Yes),
            ("C:\\notes", "D:\\notes\\a", No),
            ("C:\\notes", "c:\\notes\\a", Indeterminate),
        ];
        for (folder, path, expected) in table {
            assert_eq!(match_under(folder, path), expected, "{path:?} under {folder:?}");
        }
    }

    #[test]
    fn host_test_is_indeterminate_for_ambiguous_urls() {
        use MatchResult::{Indeterminate, No, Yes};
        let table = [
            ("example.com", "https://example.com/a?b#c", Yes),
            ("example.com", "HTTPS://EXAMPLE.com.:8443", Yes),
            ("Example.com", "https://example.com", Yes),
            ("example.com", "https://example.com.evil.org/", No),
            ("example.com", "https://www.example.com/", No),
            ("*.example.com", "https://www.example.com/", Yes),
            ("*.example.com", "https://a.b.example.com/", Yes),
            ("*.example.com", "https://example.com/", No),
            ("*.example.com", "https://notexample.com/", No),
            ("[::1]", "http://[::1]:80/", Yes),
            ("[::1]", "http://[0:0::1]/", Indeterminate),
            ("127.0.0.1", "http://127.0.0.1/", Yes),
            ("127.0.0.1", "http://10.0.0.1/", No),
            ("127.0.0.1", "http://2130706433/", Indeterminate),
            ("127.0.0.1", "http://0x7f.1/", Indeterminate),
            ("127.0.0.1", "http://127.0.0.01/", Indeterminate),
            ("example.com", "http://evil.org#@example.com/", No),
            ("example.com", "http://evil.org/?@example.com", No),
            // user names, other slashes, blanks: read in one way here and in another there
            ("example.com", "http://example.com@evil.org/", Indeterminate),
            ("example.com", "http://evil.org\\@example.com/", Indeterminate),
            ("example.com", "http://exam\tple.com/", Indeterminate),
            ("example.com", " http://example.com/", Indeterminate),
            ("example.com", "http:/example.com/", Indeterminate),
            ("example.com", "//example.com/", Indeterminate),
            ("example.com", "http://ex%61mple.com/", Indeterminate),
            ("example.com", "http://еxample.com/", Indeterminate),
            ("example.com", "http://example.com:80a/", Indeterminate),
            ("example.com", "http:///a", Indeterminate),
        ];
        for (pattern, url, expected) in table {
            assert_eq!(match_host(pattern, url), expected, "{url:?} host {pattern}");
        }
    }
}
