//! Variables of the environment inside texts of the settings.

/// A text with its variables replaced.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExpandedText {
    /// Text with all variables expanded.
    pub text: String,
    /// Values that were put in, which may be secret.
    pub values: Vec<String>,
}

/// Replaces every `$NAME` in a text, as in `Bearer $TOKEN`. A `$` without a name stays as it is.
///
/// # Errors
/// That of `value_of`, for a variable that is not set.
///
/// ```
/// use throughline_tools::expand_variables;
///
/// let value_of = |name: &str| (name == "TOKEN").then(|| "t".to_owned()).ok_or(name.to_owned());
/// assert_eq!(expand_variables("Bearer $TOKEN", value_of).unwrap().text, "Bearer t");
/// assert_eq!(expand_variables("costs $", value_of).unwrap().text, "costs $");
/// assert_eq!(expand_variables("Bearer $NONE", value_of).unwrap_err(), "NONE");
/// ```
pub fn expand_variables<E>(
    text: &str,
    mut value_of: impl FnMut(&str) -> Result<String, E>,
) -> Result<ExpandedText, E> {
    let mut parts = text.split('$');
    let mut expanded = ExpandedText { text: parts.next().unwrap_or_default().to_owned(), values: Vec::new() };
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        if name.is_empty() {
            expanded.text.push('$');
        } else {
            let value = value_of(name)?;
            expanded.text.push_str(&value);
            expanded.values.push(value);
        }
        expanded.text.push_str(rest);
    }
    Ok(expanded)
}
