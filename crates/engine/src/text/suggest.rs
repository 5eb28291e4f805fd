//! "Did you mean": names near to one that does not exist.

use strsim::osa_distance;

/// Longest name that is compared, in characters: the distance is quadratic in the length, and the name is the model's.
const COMPARED_CHARS_MAX: usize = 128;

/// Names that a model may have meant, best first, at most three. Case, dots, dashes and underscores do not count;
/// after that, few edits or a shared method do.
///
/// ```
/// let known = ["demo_weather", "files_read", "time_now"];
/// assert_eq!(throughline_engine::suggest_names("Demo.Waether", known), ["demo_weather"]);
/// ```
pub fn suggest_names<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    const SUGGESTIONS_MAX: usize = 3;
    let wanted: String = letters(wanted).take(COMPARED_CHARS_MAX).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let length = wanted.chars().count();
    let edits_max = (length / 3).max(2);
    let mut ranked: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let letters: String = letters(name).collect();
            let distance = osa_distance(&wanted, &letters);
            let is_part = || {
                length >= 4
                    && letters.chars().count() >= 4
                    && (letters.contains(&wanted) || wanted.contains(&letters))
            };
            if distance <= edits_max {
                Some((distance, name))
            } else {
                is_part().then_some((edits_max + 1, name))
            }
        })
        .collect();
    ranked.sort();
    ranked.into_iter().take(SUGGESTIONS_MAX).map(|(_, name)| name).collect()
}

fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::suggest_names;

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
            ("file_read", vec!["files_read"]),
            ("files_raed", vec!["files_read"]),
            ("files", vec!["files_read", "files_search"]),
            ("demo", vec!["demo_calendar", "demo_weather"]),
            ("read_file", vec![]),
            ("time", vec!["time_now"]),
            ("send_money", vec![]),
            ("", vec![]),
            ("___", vec![]),
        ] {
            assert_eq!(suggest_names(wanted, known), expected, "{wanted}");
        }
        assert!(suggest_names(&"x".repeat(1_000_000), known).is_empty());
    }
}
