//! The thirty inputs on which other implementations of the VCP protocol differ: one answer each, as in
//! `docs/text-protocol.md`.

use crate::text_calls::{ReadResult, agree, tools};
use std::fmt::Write;
use throughline_wire::text_calls::protocol;

/// The special feature, the input, and the result.
const INPUTS: [(&str, &str, &str); 30] = [
    (
        "all fields on one line, no commas",
        "<<<[TOOL_REQUEST]>>> tool_name:「始」T「末」 p:「始」1「末」 q:「始」2「末」 <<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"p\":\"1\",\"q\":\"2\"}`",
    ),
    (
        "spaces around the colon",
        "<<<[TOOL_REQUEST]>>>\ntool_name : 「始」T「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{}`",
    ),
    (
        "fullwidth colon",
        "<<<[TOOL_REQUEST]>>>\ntool_name：「始」T「末」\np：「始」1「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"p\":\"1\"}`",
    ),
    (
        "`tool_name` in another case",
        "<<<[TOOL_REQUEST]>>>\nTool_Name:「始」T「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{}`",
    ),
    (
        "hyphen in a name",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\nimage-size:「始」1「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"image-size\":\"1\"}`",
    ),
    (
        "a parameter twice: the last counts",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\np:「始」1「末」\np:「始」2「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"p\":\"2\"}` remark (1:1): `p` is given more than once: the last value counts.",
    ),
    (
        "the last value does not close",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\np:「始」abc\n<<<[END_TOOL_REQUEST]>>>",
        "refused `T`: <<<[END_TOOL_REQUEST]>>> stands inside the value of `p`: either 「末」 is missing before it, or, if it belongs to the value, the value must be written between 「始ESCAPE」 and 「末ESCAPE」.",
    ),
    (
        "a value in the middle does not close",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\np:「始」abc\ncommand:「始」X「末」\n<<<[END_TOOL_REQUEST]>>>",
        "refused `T`: 「始」 stands inside the value of `p`: either 「末」 is missing before it, or, if it belongs to the value, the value must be written between 「始ESCAPE」 and 「末ESCAPE」.",
    ),
    (
        "the block in a code fence",
        "```\n<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\n<<<[END_TOOL_REQUEST]>>>\n```",
        "remark (2:1): A tool request in a code block is an example: it was not run.",
    ),
    (
        "a fence that never closed, earlier",
        "```\nx\n\n<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\n<<<[END_TOOL_REQUEST]>>>",
        "remark (4:1): A tool request in a code block is an example: it was not run.",
    ),
    (
        "the block in `<think>`",
        "<think>\n<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\n<<<[END_TOOL_REQUEST]>>>\n</think>\nNo.",
        "remark (2:1): A tool request in a thinking block was not run.",
    ),
    (
        "a value with `<thinking>` in it",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\np:「始」a <thinking> b「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"p\":\"a <thinking> b\"}`",
    ),
    (
        "a plain value with the end marker in it",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\np:「始」a <<<[END_TOOL_REQUEST]>>> b「末」\n<<<[END_TOOL_REQUEST]>>>",
        "refused `T`: <<<[END_TOOL_REQUEST]>>> stands inside the value of `p`: either 「末」 is missing before it, or, if it belongs to the value, the value must be written between 「始ESCAPE」 and 「末ESCAPE」.",
    ),
    (
        "an ESCAPE value with the end marker in it",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\np:「始ESCAPE」a <<<[END_TOOL_REQUEST]>>> 「末」「末ESCAPE」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"p\":\"a <<<[END_TOOL_REQUEST]>>> 「末」\"}`",
    ),
    (
        "an ESCAPE value with `…_ESCAPE` in it: restored",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\np:「始ESCAPE」<<<[TOOL_REQUEST_ESCAPE]>>> 「始ESCAPE」 <<<[END_TOOL_REQUEST_ESCAPE]>>>「末ESCAPE」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"p\":\"<<<[TOOL_REQUEST]>>> 「始」 <<<[END_TOOL_REQUEST]>>>\"}`",
    ),
    (
        "a block that says it is an example",
        "<<<[TOOL_REQUEST_ESCAPE]>>>\ntool_name:「始」T「末」\n<<<[END_TOOL_REQUEST_ESCAPE]>>>",
        "remark (1:1): A block marked as an example (`…_ESCAPE`) was not run.",
    ),
    (
        "numbered commands: one call each",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\ncommand1:「始」X「末」\nfilePath1:「始」a「末」\ncommand2:「始」Y「末」\nfilePath2:「始」b「末」\nq:「始」both「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"q\":\"both\",\"command\":\"X\",\"filePath\":\"a\"}` call `T` `{\"q\":\"both\",\"command\":\"Y\",\"filePath\":\"b\"}`",
    ),
    (
        "one command and `base64`",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\ncommand:「始」X「末」\nbase64:「始」eA==「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"command\":\"X\",\"base64\":\"eA==\"}`",
    ),
    (
        "one command, `utf8` and `line10`",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\ncommand:「始」X「末」\nutf8:「始」a「末」\nline10:「始」b「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"command\":\"X\",\"utf8\":\"a\",\"line10\":\"b\"}`",
    ),
    (
        "backslashes: as written",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\np:「始」C:\\\\Users「末」\nq:「始」\\\\d+「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"p\":\"C:\\\\\\\\Users\",\"q\":\"\\\\\\\\d+\"}`",
    ),
    (
        "two angle brackets, lower case",
        "<<[tool_request]>>\ntool_name:「始」T「末」\n<<[end_tool_request]>>",
        "call `T` `{}`",
    ),
    (
        "braces for corners",
        "<<<[TOOL_REQUEST]>>>\ntool_name:{始}T{末}\ncommand:{始}A{末}\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"command\":\"A\"}`",
    ),
    (
        "directives",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\narchery:「始」no_reply「末」\nink:「始」mark_history「末」\nriver:「始」full「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{}` remark (1:1): `archery`, `ink`, `river` have no effect here and were not passed on as arguments.",
    ),
    (
        "a value with a line break and spaces around it",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\np:「始」\n  a\n「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"p\":\"\\n  a\\n\"}`",
    ),
    (
        "`input_json` that is no JSON: a parameter like others",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\ninput_json:「始」{broken「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"input_json\":\"{broken\"}`",
    ),
    (
        "values without 「始」",
        "<<<[TOOL_REQUEST]>>>\ntool_name: T\ncommand: X\n<<<[END_TOOL_REQUEST]>>>",
        "refused: The value of `tool_name` must stand between 「始」 and 「末」: tool_name:「始」value「末」.",
    ),
    (
        "two names of tools",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\ntool_name:「始」echo「末」\n<<<[END_TOOL_REQUEST]>>>",
        "refused `T`: `tool_name` is given twice, as `T` and as `echo`: write one block for each request.",
    ),
    (
        "prose and comments between fields",
        "<<<[TOOL_REQUEST]>>>\nNow I call it.\ntool_name:「始」T「末」,\n// the first\np:「始」1「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"p\":\"1\"}`",
    ),
    (
        "a parameter `__proto__`: a name like others",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\n__proto__:「始」1「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{\"__proto__\":\"1\"}`",
    ),
    (
        "two blocks with one `request_id`: two calls, ids are ours",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\nrequest_id:「始」1「末」\n<<<[END_TOOL_REQUEST]>>>\n<<<[TOOL_REQUEST]>>>\ntool_name:「始」echo「末」\nrequest_id:「始」1「末」\n<<<[END_TOOL_REQUEST]>>>",
        "call `T` `{}` call `echo` `{}` remark (1:1): `request_id` has no effect here and was not passed on as an argument. remark (5:1): `request_id` has no effect here and was not passed on as an argument.",
    ),
];

/// Inputs whose block is shown as it is, since it is an example.
const SHOWN: [usize; 4] = [9, 10, 11, 16];

fn answer(read: &ReadResult) -> String {
    let mut answer = String::new();
    for (name, arguments) in &read.calls {
        let _ = match arguments {
            Ok(arguments) => write!(answer, " call `{name}` `{arguments}`"),
            Err(why) if name.is_empty() => write!(answer, " refused: {why}"),
            Err(why) => write!(answer, " refused `{name}`: {why}"),
        };
    }
    for finding in &read.findings {
        let _ = write!(answer, " remark ({}:{}): {}", finding.line, finding.column, finding.message);
    }
    answer.trim_start().to_owned()
}

#[test]
fn tricky_inputs_match_the_documented_answers() {
    let vcp = protocol("vcp").expect("vcp is a protocol");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/text-protocol.md");
    let page = std::fs::read_to_string(page).expect("the document is in the repository");
    let mut missing = String::new();
    for (number, (what, input, expected)) in (1..).zip(INPUTS) {
        let read = agree(vcp, &tools(), input);
        assert_eq!(answer(&read), expected, "input {number}");
        let shown = if SHOWN.contains(&number) { input } else { "" };
        // After a block without its end a part of a value may be left as text, but no marker.
        let no_marker = !read.text.contains(['<', '「']);
        assert!(read.text == shown || (number == 13 && no_marker), "input {number} shows {:?}", read.text);
        let input = input.replace('\n', "⏎");
        let row = format!("| {number} | {what} | ```` {input} ```` | {expected} |");
        if !page.contains(&row) {
            missing += &format!("{row}\n");
        }
    }
    assert!(missing.is_empty(), "docs/text-protocol.md lacks:\n{missing}");
}
