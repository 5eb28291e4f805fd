//! Sections of documents that are written by this program, between two markers that name them.

use crate::fault::fault;
use anyhow::Result;

/// `document` with the section's text replaced.
pub(crate) fn replace(document: &str, section: &str, text: &str) -> Result<String> {
    let (before, _, after) = split(document, section)?;
    Ok(format!("{before}\n{}\n{after}", text.trim_end()))
}

/// The section's text.
pub(crate) fn section<'a>(document: &'a str, section: &str) -> Result<&'a str> {
    Ok(split(document, section)?.1)
}

fn split<'a>(document: &'a str, section: &str) -> Result<(&'a str, &'a str, &'a str)> {
    let begin = format!("<!-- generated: {section} -->");
    let end = format!("<!-- end: {section} -->");
    let found = document.find(&begin).map(|at| at + begin.len()).and_then(|from| {
        let to = from + document[from..].find(&end)?;
        Some((&document[..from], &document[from..to], &document[to..]))
    });
    found.ok_or_else(|| {
        fault(
            format!("the document has no section `{section}`"),
            format!("put `{begin}` and `{end}` into it"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{replace, section};

    #[test]
    fn only_the_named_section_is_replaced() {
        let document =
            "# A\n<!-- generated: x -->\nold\n<!-- end: x -->\ntail <!-- generated: y --><!-- end: y -->\n";
        let new = replace(document, "x", "new\n\n").unwrap();
        assert_eq!(
            new,
            "# A\n<!-- generated: x -->\nnew\n<!-- end: x -->\ntail <!-- generated: y --><!-- end: y -->\n"
        );
        assert_eq!(section(&new, "x").unwrap().trim(), "new");
        assert_eq!(replace(&new, "x", "new").unwrap(), new);
    }

    #[test]
    fn missing_marker_is_named() {
        let error = replace("# A\n<!-- generated: x -->\n", "x", "new").unwrap_err().to_string();
        assert!(error.contains("<!-- end: x -->"), "{error}");
    }
}
