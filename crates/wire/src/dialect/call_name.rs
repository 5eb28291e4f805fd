//! Names of calls that a model invented. Offered names are plain already; the name in a model's call may be
//! anything (`multi_tool_use.parallel`) or empty, and upstreams check names in history as well.

use std::borrow::Cow;

/// Longest name that OpenAI and Gemini accept.
const NAME_BYTES_MAX: usize = 64;

/// Longest name that Anthropic accepts.
pub(super) const LONG_NAME_BYTES_MAX: usize = 128;

/// [`sanitize_to`], at the length that every provider takes.
pub(super) fn sanitize<'n>(name: &'n str, extra_chars: &[char]) -> Cow<'n, str> {
    sanitize_to(name, extra_chars, NAME_BYTES_MAX)
}

/// The name with `_` for everything but letters, digits, `_`, `-` and the extra characters; never empty, never too
/// long.
pub(super) fn sanitize_to<'n>(name: &'n str, extra_chars: &[char], bytes_max: usize) -> Cow<'n, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || extra_chars.contains(&c);
    if name.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if name.len() <= bytes_max && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(bytes_max).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_names_are_sanitized() {
        let check =
            |name: &str, extra_chars: &[char], expect: &str| assert_eq!(sanitize(name, extra_chars), expect);
        check("get_weather-2", &[], "get_weather-2");
        check("multi_tool_use.parallel", &[], "multi_tool_use_parallel");
        check("default_api.f:g", &['.', ':'], "default_api.f:g");
        check("天气", &[], "__");
        check("", &[], "unnamed");
        check(&"x".repeat(65), &[], &"x".repeat(64));
    }
}
