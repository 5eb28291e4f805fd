//! "Did you mean": the valid name nearest to a mistyped one.

use strsim::osa_distance;

/// The candidate with the fewest edits, if there are few enough to be a slip: a third of the name, at least one.
pub(crate) fn suggest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let allowed = (wanted.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (osa_distance(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::suggest;

    #[test]
    fn a_slip_is_recognised_and_a_different_word_is_not() {
        let names = ["model", "fallback", "prompt", "deepseek"];
        for (typed, expected) in [
            ("modle", Some("model")),
            ("Model", Some("model")),
            ("promt", Some("prompt")),
            ("deep-seek", Some("deepseek")),
            ("temperature", None),
            ("", None),
        ] {
            assert_eq!(suggest(typed, names), expected, "{typed}");
        }
    }
}
