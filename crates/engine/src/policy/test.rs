//! What is said about one argument: a small set of tests that cannot be tricked by spelling.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// What is said about one argument. Texts are compared exactly, case and all; numbers and booleans by their JSON text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentTest {
    /// Equal as JSON.
    Equals(Value),
    /// Equal to one of these.
    OneOf(Vec<Value>),
    /// `*` stands for any characters, `?` for one.
    Glob(String),
    /// Begins with this. Not for paths and URLs, which can be spelled in many ways: `under` and `host` are.
    StartsWith(String),
    /// A path to this folder or into it. `.`, `..`, doubled and backward slashes are resolved by their text; links on
    /// the disk are not followed, and `~` means nothing.
    Under(String),
    /// A URL whose host is this one, or with `*.` in front a host below it. Case, port, path and a dot at the end do
    /// not matter. URLs that programs read differently (user names, backslashes, blanks, `%` or other alphabets in the
    /// host, no `//`) are not read at all.
    Host(String),
}

/// Whether an argument passes a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Yes,
    No,
    /// It cannot be read for certain.
    Unclear,
}

impl From<bool> for Fit {
    fn from(fits: bool) -> Self {
        if fits { Fit::Yes } else { Fit::No }
    }
}

impl ArgumentTest {
    /// A list passes if all of its items do; an empty one is unclear.
    pub(super) fn of_all(&self, value: &Value) -> Fit {
        match (value, self) {
            (Value::Array(_), ArgumentTest::Equals(_) | ArgumentTest::OneOf(_)) => self.of(value),
            (Value::Array(items), _) if items.is_empty() => Fit::Unclear,
            (Value::Array(items), _) => match items.iter().all(|item| self.of_all(item) == Fit::Yes) {
                true => Fit::Yes,
                false => Fit::No,
            },
            _ => self.of(value),
        }
    }

    /// A list passes if any of its items does.
    pub(super) fn of_any(&self, value: &Value) -> Fit {
        match value {
            Value::Array(items) => {
                let whole = self.of(value);
                let fits = items.iter().map(|item| self.of_any(item));
                fits.chain([whole].into_iter().filter(|fit| *fit == Fit::Yes))
                    .find(|fit| *fit != Fit::No)
                    .unwrap_or(Fit::No)
            }
            _ => self.of(value),
        }
    }

    fn of(&self, value: &Value) -> Fit {
        match self {
            ArgumentTest::Equals(wanted) => Fit::from(value == wanted),
            ArgumentTest::OneOf(wanted) => Fit::from(wanted.contains(value)),
            ArgumentTest::Glob(pattern) => of_text(value, |text| Fit::from(glob(pattern, text))),
            ArgumentTest::StartsWith(start) => {
                of_text(value, |text| Fit::from(text.starts_with(start.as_str())))
            }
            ArgumentTest::Under(folder) => of_text(value, |text| under(folder, text)),
            ArgumentTest::Host(pattern) => of_text(value, |text| host_fits(pattern, text)),
        }
    }
}

fn of_text(value: &Value, fit: impl Fn(&str) -> Fit) -> Fit {
    match value {
        Value::String(text) => fit(text),
        Value::Number(_) | Value::Bool(_) | Value::Null => fit(&value.to_string()),
        Value::Array(_) | Value::Object(_) => Fit::Unclear,
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

/// `*` stands for any characters, `?` for one. At most the product of both lengths in steps, whatever the pattern.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where to go on if what follows the last star does not fit.
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
struct Path<'t> {
    root: Option<&'t str>,
    /// How many folders above where it begins; only of a relative one.
    up: usize,
    parts: Vec<&'t str>,
}

impl<'t> Path<'t> {
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
        let (mut parts, mut up) = (Vec::new(), 0);
        for part in rest.split(is_slash) {
            match part {
                "" | "." => {}
                ".." => {
                    if parts.pop().is_none() && root.is_none() {
                        up += 1;
                    }
                }
                part => parts.push(part),
            }
        }
        Self { root, up, parts }
    }
}

fn under(folder: &str, path: &str) -> Fit {
    let (folder, path) = (Path::read(folder), Path::read(path));
    if folder.root != path.root || path.parts.iter().any(|part| part.contains('\0')) {
        // Where a relative path leads depends on who reads it; `C:` and `c:` are one or two by the system.
        let comparable = folder.root.is_some() && path.root.is_some();
        let same_drive = folder.root.unwrap_or("").eq_ignore_ascii_case(path.root.unwrap_or(""));
        return if comparable && !same_drive { Fit::No } else { Fit::Unclear };
    }
    if path.up > folder.up {
        return Fit::No;
    }
    if path.up < folder.up {
        // `../x` may hold the folder that the path begins in, or not.
        return Fit::Unclear;
    }
    Fit::from(path.parts.starts_with(&folder.parts))
}

fn host_fits(pattern: &str, url: &str) -> Fit {
    let Some(host) = host_of(url) else { return Fit::Unclear };
    let pattern = pattern.to_ascii_lowercase();
    // One address has many spellings.
    let is_address = host.starts_with('[') || host.rsplit('.').next().is_some_and(is_number);
    if is_address && host != pattern && !is_quad(&host) {
        return Fit::Unclear;
    }
    Fit::from(match pattern.strip_prefix("*.") {
        Some(above) => host.strip_suffix(above).is_some_and(|below| below.len() > 1 && below.ends_with('.')),
        None => host == pattern,
    })
}

/// A label that programs take for a number: `127`, `0x7f`.
fn is_number(label: &str) -> bool {
    label.starts_with(|c: char| c.is_ascii_digit())
        && label.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, 'x' | 'X'))
}

/// `127.0.0.1`, in the one spelling that everyone reads in the same way.
fn is_quad(host: &str) -> bool {
    let labels: Vec<_> = host.split('.').collect();
    let plain = |label: &&str| label.parse::<u8>().is_ok_and(|byte| byte.to_string() == *label);
    labels.len() == 4 && labels.iter().all(plain)
}

/// The host of a URL that every program reads in the same way.
fn host_of(url: &str) -> Option<String> {
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

    fn check(test: &ArgumentTest, value: Value, all: Fit, any: Fit) {
        assert_eq!(test.of_all(&value), all, "{test}, all of {value}");
        assert_eq!(test.of_any(&value), any, "{test}, any of {value}");
    }

    #[test]
    fn values_and_lists() {
        use Fit::{No, Unclear, Yes};
        let equals = ArgumentTest::Equals(json!({"a": [1]}));
        check(&equals, json!({"a": [1]}), Yes, Yes);
        check(&equals, json!({"a": [1.5]}), No, No);
        let one_of = ArgumentTest::OneOf(vec![json!("rm"), json!(3)]);
        check(&one_of, json!(3), Yes, Yes);
        check(&one_of, json!("3"), No, No);
        // a list of what is forbidden is as forbidden as what is in it
        check(&one_of, json!(["ls", "rm"]), No, Yes);
        let like = ArgumentTest::Glob("*.txt".into());
        check(&like, json!("a.txt"), Yes, Yes);
        check(&like, json!("a.TXT"), No, No);
        check(&like, json!(["a.txt", "b.txt"]), Yes, Yes);
        check(&like, json!(["a.txt", "b.sh"]), No, Yes);
        check(&like, json!([["a.txt"], ["b.txt"]]), Yes, Yes);
        check(&like, json!([]), Unclear, No);
        check(&like, json!({"name": "a.txt"}), Unclear, Unclear);
        check(&ArgumentTest::Glob("1?".into()), json!(12), Yes, Yes);
        check(&ArgumentTest::StartsWith("re".into()), json!("read"), Yes, Yes);
        check(&ArgumentTest::StartsWith("re".into()), json!("Read"), No, No);
    }

    #[test]
    fn globs() {
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
        // What takes other matchers for ever.
        assert!(!glob(&"*a".repeat(200), &"a".repeat(5_000).replace("aaaa", "aaab")));
    }

    #[test]
    fn paths_by_their_text() {
        use Fit::{No, Unclear, Yes};
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
            ("/srv/notes", "a.md", Unclear),
            ("/srv/notes", "~/a.md", Unclear),
            ("/srv/notes", "/srv/notes/a\0b", Unclear),
            ("notes", "notes/a", Yes),
            ("notes", "./notes/a", Yes),
            ("notes", "notes/../../notes/a", No),
            ("notes", "../notes/a", No),
            ("../notes", "a", Unclear),
            ("notes", "/notes", Unclear),
            ("C:\\notes", "C:/notes/a", Yes),
            ("C:\\notes", "D:\\notes\\a", No),
            ("C:\\notes", "c:\\notes\\a", Unclear),
        ];
        for (folder, path, expected) in table {
            assert_eq!(under(folder, path), expected, "{path:?} under {folder:?}");
        }
    }

    #[test]
    fn hosts_that_everyone_reads_in_the_same_way() {
        use Fit::{No, Unclear, Yes};
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
            ("[::1]", "http://[0:0::1]/", Unclear),
            ("127.0.0.1", "http://127.0.0.1/", Yes),
            ("127.0.0.1", "http://10.0.0.1/", No),
            ("127.0.0.1", "http://2130706433/", Unclear),
            ("127.0.0.1", "http://0x7f.1/", Unclear),
            ("127.0.0.1", "http://127.0.0.01/", Unclear),
            ("example.com", "http://evil.org#@example.com/", No),
            ("example.com", "http://evil.org/?@example.com", No),
            // user names, other slashes, blanks: read in one way here and in another there
            ("example.com", "http://example.com@evil.org/", Unclear),
            ("example.com", "http://evil.org\\@example.com/", Unclear),
            ("example.com", "http://exam\tple.com/", Unclear),
            ("example.com", " http://example.com/", Unclear),
            ("example.com", "http:/example.com/", Unclear),
            ("example.com", "//example.com/", Unclear),
            ("example.com", "http://ex%61mple.com/", Unclear),
            ("example.com", "http://еxample.com/", Unclear),
            ("example.com", "http://example.com:80a/", Unclear),
            ("example.com", "http:///a", Unclear),
        ];
        for (pattern, url, expected) in table {
            assert_eq!(host_fits(pattern, url), expected, "{url:?} host {pattern}");
        }
    }
}
