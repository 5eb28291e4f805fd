//! "Did you mean": the valid name nearest to a mistyped one.

use strsim::osa_distance;

/// The candidate with the fewest edits, if there are few enough to be a slip: a third of the name, at least one. Otherwise the
/// first one that begins with this name (`openai` of `openai-chat`), or has all its words (`calls_max` of
/// `calls_per_turn_max`).
pub(crate) fn suggest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let allowed = (wanted.chars().count() / 3).max(1);
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let nearest = candidates
        .iter()
        .map(|candidate| (osa_distance(&wanted, &candidate.to_lowercase()), *candidate))
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate);
    nearest.or_else(|| candidates.into_iter().find(|candidate| is_part_of(&wanted, candidate)))
}

fn is_part_of(wanted: &str, candidate: &str) -> bool {
    let words =
        |text: &str| text.to_lowercase().split(['_', '-', '.']).map(str::to_owned).collect::<Vec<_>>();
    let (wanted, known) = (words(wanted), words(candidate));
    let is_beginning = known.len() > wanted.len() && known.starts_with(&wanted);
    let has_all = wanted.len() > 1 && wanted.iter().all(|word| known.contains(word));
    wanted.iter().all(|word| !word.is_empty()) && (is_beginning || has_all)
}

#[cfg(test)]
mod tests {
    use super::suggest;

    #[test]
    fn suggestion_is_made_only_for_similar_names() {
        let names = [
            "model",
            "fallback",
            "prompt",
            "deepseek",
            "openai-chat",
            "openai-responses",
            "calls_per_turn_max",
        ];
        for (typed, expected) in [
            ("modle", Some("model")),
            ("Model", Some("model")),
            ("promt", Some("prompt")),
            ("deep-seek", Some("deepseek")),
            ("openai", Some("openai-chat")),
            ("calls_max", Some("calls_per_turn_max")),
            ("calls_min", None),
            ("open", None),
            ("temperature", None),
            ("", None),
        ] {
            assert_eq!(suggest(typed, names), expected, "{typed}");
        }
    }
}
