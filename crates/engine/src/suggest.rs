//! "Did you mean": names near to one that does not exist.
// R: L4

/// Longest name that is compared, in characters: the distance is quadratic in the length, and the name is the model's.
const COMPARED_CHARS_MAX: usize = 128;

/// Names that a model may have meant, best first, at most three. Case, dots, dashes and underscores do not count;
/// after that, few edits or a shared method do.
pub fn suggest_names<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    const SUGGESTIONS_MAX: usize = 3;
    let wanted: Vec<char> = letters(wanted).take(COMPARED_CHARS_MAX).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let edits_max = (wanted.len() / 3).max(2);
    let mut ranked: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let letters: Vec<char> = letters(name).collect();
            let distance = edit_distance(&wanted, &letters);
            let part = wanted.len() >= 4
                && letters.len() >= 4
                && (contains(&letters, &wanted) || contains(&wanted, &letters));
            match (distance <= edits_max, part) {
                (true, _) => Some((distance, name)),
                (false, true) => Some((edits_max + 1, name)),
                (false, false) => None,
            }
        })
        .collect();
    ranked.sort();
    ranked.into_iter().take(SUGGESTIONS_MAX).map(|(_, name)| name).collect()
}

fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

fn contains(text: &[char], part: &[char]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
pub fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::suggest_names;

    // R: L4
    #[test]
    fn the_closest_names_are_suggested() {
        let known = [
            "demo_weather",
            "demo_calendar",
            "files_read",
            "files_search",
            "http_fetch",
            "live2d_motion",
            "time_now",
        ];
        for (wanted, expected) in [
            ("demo.weather", vec!["demo_weather"]),
            ("DemoWeather", vec!["demo_weather"]),
            ("demo_waether", vec!["demo_weather"]),
            ("get_weather", vec!["demo_weather"]),
            ("weather", vec!["demo_weather"]),
            ("file_read", vec!["files_read", "files_search"]),
            ("read_file", vec![]),
            ("time", vec!["time_now"]),
            ("send_money", vec![]),
            ("", vec![]),
            ("___", vec![]),
        ] {
            let suggestions = suggest_names(wanted, known);
            assert_eq!(suggestions.first(), expected.first(), "{wanted}: {suggestions:?}");
            assert!(suggestions.len() <= 3);
        }
        assert!(suggest_names(&"x".repeat(1_000_000), known).is_empty());
    }
}
