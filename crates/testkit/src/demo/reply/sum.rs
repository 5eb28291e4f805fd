//! Sums: the one thing that the demo really computes.

use super::DemoScene;
use crate::script::ModelScript;

/// Longest expression that is looked at, in characters.
const EXPRESSION_CHARS_MAX: usize = 200;
/// Deepest nesting of parentheses.
const DEPTH_MAX: usize = 32;

pub(super) fn reply(scene: &DemoScene<'_>) -> ModelScript {
    let Some((expression, value)) = find_sum(scene.text) else { return super::talk::unknown_request(scene) };
    let end = scene.choose_text(
        "Sums I can do by myself, without a tool. That is about all I can work out.",
        "算术我自己就会，不用工具。不过我会算的也就这些了。",
    );
    let value = match value {
        Some(value) => format_value(value),
        None => scene.choose_text("not defined", "没有定义").to_owned(),
    };
    ModelScript::new().say(format!("{expression} = **{value}**\n\n{end}"))
}

/// The first sum in a text, with its value (`None`: a division by zero or a number that is too large).
pub(crate) fn find_sum(text: &str) -> Option<(String, Option<f64>)> {
    let belongs = |c: char| c.is_ascii_digit() || " .+-*/×÷()^−＋".contains(c);
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit() || c == '(') {
        let run = &rest[start..];
        let length = run.find(|c| !belongs(c)).unwrap_or(run.len());
        let candidate = run[..length].trim_end_matches([' ', '.', '(', '-', '+']).trim();
        if candidate.chars().count() <= EXPRESSION_CHARS_MAX
            && let Some(value) = evaluate(candidate)
        {
            return Some((candidate.replace('*', "×"), value.is_finite().then_some(value)));
        }
        rest = &run[length.max(1)..];
    }
    None
}

/// `None` if it is no sum: no operator, a date, a telephone number.
fn evaluate(text: &str) -> Option<f64> {
    let spaced = |operator: &str| text.contains(&format!(" {operator} "));
    let clear = text.contains(['*', '×', '÷', '^', '+', '＋', '(']);
    if !clear && !spaced("-") && !spaced("/") && !is_pair(text) {
        return None;
    }
    let tokens: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let mut sum = SumParser { tokens, at: 0, depth: 0, operators: 0 };
    let value = sum.terms()?;
    (sum.at == sum.tokens.len() && sum.operators > 0).then_some(value)
}

/// `7-3`, `10/4`: one operator without spaces. Two are a date.
fn is_pair(text: &str) -> bool {
    text.chars().filter(|c| matches!(c, '-' | '/' | '−')).count() == 1
}

struct SumParser {
    tokens: Vec<char>,
    at: usize,
    depth: usize,
    operators: usize,
}

impl SumParser {
    fn peek(&self) -> Option<char> {
        self.tokens.get(self.at).copied()
    }

    fn take(&mut self, any: &[char]) -> Option<char> {
        let found = self.peek().filter(|c| any.contains(c))?;
        self.at += 1;
        Some(found)
    }

    fn terms(&mut self) -> Option<f64> {
        let mut value = self.factors()?;
        while let Some(operator) = self.take(&['+', '-', '−', '＋']) {
            self.operators += 1;
            let next = self.factors()?;
            value = if matches!(operator, '+' | '＋') { value + next } else { value - next };
        }
        Some(value)
    }

    fn factors(&mut self) -> Option<f64> {
        let mut value = self.power()?;
        while let Some(operator) = self.take(&['*', '/', '×', '÷']) {
            self.operators += 1;
            let next = self.power()?;
            value = if matches!(operator, '*' | '×') { value * next } else { value / next };
        }
        Some(value)
    }

    /// A minus binds more loosely than a power: `-2^2` is -4.
    fn power(&mut self) -> Option<f64> {
        if self.take(&['-', '−']).is_some() {
            return self.nested(Self::power).map(|value| -value);
        }
        let base = self.atom()?;
        if self.take(&['^']).is_none() {
            return Some(base);
        }
        self.operators += 1;
        let exponent = self.nested(Self::power)?;
        Some(base.powf(exponent))
    }

    fn atom(&mut self) -> Option<f64> {
        if self.take(&['(']).is_some() {
            let value = self.nested(Self::terms)?;
            self.take(&[')'])?;
            return Some(value);
        }
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit() || c == '.') {
            self.at += 1;
        }
        self.tokens[start..self.at].iter().collect::<String>().parse().ok()
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<f64>) -> Option<f64> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let value = read(self);
        self.depth -= 1;
        value
    }
}

fn format_value(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    if value.abs() >= 1e15 || value.abs() < 1e-6 {
        return format!("{value:e}");
    }
    format!("{value:.6}").trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_found_and_evaluated() {
        for (text, expected) in [
            ("What is 17 * 23?", Some("391")),
            ("2+2", Some("4")),
            ("(1 + 2) * 3 ^ 2 等于多少", Some("27")),
            ("10/4", Some("2.5")),
            ("-2 ^ 2 + 1 - 2", Some("3")),
            ("1/3 + 0", Some("0.333333")),
            ("2026-11-21", None),
            ("call 555-1234-567", None),
            ("room 12", None),
            ("version 1.2.3 + 4", None),
            ("no numbers", None),
        ] {
            let value = find_sum(text).map(|(_, value)| format_value(value.unwrap_or(f64::NAN)));
            assert_eq!(value.as_deref(), expected, "{text}");
        }
        assert_eq!(find_sum("1 / 0"), Some(("1 / 0".into(), None)));
        assert_eq!(find_sum(&"(".repeat(150)), None);
    }
}
