//! The offered names closest to one that is not offered. R: L4

/// At most this many suggestions.
const SUGGESTIONS_MAX: usize = 3;

/// Offered names by how few changes lead to `name`; only those within a third of its length, or that contain it.
pub(crate) fn closest<'a>(name: &str, offered: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted = plain(name);
    let mut found: Vec<(usize, &str)> = offered
        .filter_map(|offered| {
            let other = plain(offered);
            let part_of = !wanted.is_empty()
                && !other.is_empty()
                && (other.contains(&wanted) || wanted.contains(&other));
            let distance = distance(&wanted, &other);
            (distance <= wanted.chars().count().max(3) / 3 || part_of).then_some((distance, offered))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().take(SUGGESTIONS_MAX).map(|(_, name)| name.to_owned()).collect()
}

/// Models confuse case and separators first of all.
fn plain(name: &str) -> String {
    name.chars().take(64).filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in b.iter().enumerate() {
            let cost = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_a_model_may_have_meant() {
        let offered = ["demo_weather", "demo_calendar", "files_read", "files_list", "time_now"];
        let table: [(&str, &[&str]); 6] = [
            ("demo.weather", &["demo_weather"]),
            ("weather", &["demo_weather"]),
            ("DemoCalender", &["demo_calendar"]),
            ("file_read", &["files_read"]),
            ("launch_rocket", &[]),
            ("", &[]),
        ];
        for (name, expected) in table {
            assert_eq!(closest(name, offered.into_iter()), expected, "{name}");
        }
    }
}
