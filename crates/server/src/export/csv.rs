//! Calls as comma-separated values (RFC 4180), which spreadsheets open: so nothing in them may be a formula.

use throughline_store::CallRow;
use throughline_wire::display_escape;

const COLUMNS: [&str; 13] = [
    "tool_id",
    "turn_id",
    "conversation_id",
    "step",
    "tool_name",
    "source",
    "effect",
    "status",
    "arguments",
    "output_summary",
    "error",
    "started_at",
    "duration_ms",
];

/// The first line.
pub fn csv_header() -> String {
    format!("{}\r\n", COLUMNS.join(","))
}

pub fn write_row(into: &mut String, call: &CallRow) {
    let number = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
    let text = |text: &str| csv_field(text);
    let fields = [
        text(&call.tool_id),
        text(&call.turn_id),
        text(call.conversation_id.as_deref().unwrap_or_default()),
        call.step.to_string(),
        text(&call.tool_name),
        text(&call.source),
        text(&call.effect),
        text(&call.status),
        text(&call.arguments),
        text(call.output_summary.as_deref().unwrap_or_default()),
        text(call.error.as_deref().unwrap_or_default()),
        call.started_at.to_string(),
        number(call.duration_ms),
    ];
    into.push_str(&fields.join(","));
    into.push_str("\r\n");
}

/// A text that stays a text and holds nothing invisible: what a spreadsheet would calculate gets an apostrophe in front (OWASP, "CSV Injection"), in the
/// full-width forms that some take for the same as well.
fn csv_field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
    let text = display_escape::escape(text);
    let text = if is_formula { format!("'{text}") } else { text.into_owned() };
    if text.contains([',', '"', '\r', '\n', ';', '\t']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_and_formulas_neutralized() {
        for (given, written) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\r\nlines", "\"two\r\nlines\""),
            ("=1+1", "'=1+1"),
            ("=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""),
            ("+49", "'+49"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "\"'\t=1\""),
            ("＝1+1", "'＝1+1"),
            ("{\"when\":\"\u{202e}2026\"}", "\"{\"\"when\"\":\"\"\\u202e2026\"\"}\""),
            ("", ""),
        ] {
            assert_eq!(csv_field(given), written, "{given:?}");
        }
    }
}
