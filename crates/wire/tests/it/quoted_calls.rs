//! Markup that is only quoted never runs: every leaked form and both text protocols, in every context; and real calls are
//! still found.

use crate::text_calls::{agree, parse, scan, tools};
use proptest::prelude::*;
use serde_json::json;
use throughline_wire::text_calls::{
    CallFormat, FindingKind, ResultRole, TextCalls, TextProtocol, find_leaked, protocol,
};
use throughline_wire::{
    DecodeOptions, Dialect, LeakedCalls, ModelReply, StepDecoder, ToolDefinition, UpstreamProfile,
};

/// A form of a call: a grammar that leaks, or a text protocol.
struct CallForm {
    format: &'static str,
    text: &'static str,
}

const fn form(format: &'static str, text: &'static str) -> CallForm {
    CallForm { format, text }
}

/// Calls of the tool `echo` as servers leak them.
const LEAKED_FORMS: [CallForm; 21] = [
    form("hermes", "<tool_call>\n{\"name\": \"echo\", \"arguments\": {\"text\": \"x\"}}\n</tool_call>"),
    form("hermes", "<tool_call>{\"name\":\"echo\",\"arguments\":{\"text\":\"it's\"}}</tool_call>"),
    form("hermes", "<tool_call>[{\"name\":\"echo\",\"arguments\":{}}]</tool_call>"),
    form(
        "qwen3_coder",
        "<tool_call>\n<function=echo>\n<parameter=text>\nx\n</parameter>\n</function>\n</tool_call>",
    ),
    form("qwen3_coder", "<function=echo>\n<parameter=text>\nx\n</parameter>\n</function>"),
    form("glm", "<tool_call>echo\n<arg_key>text</arg_key>\n<arg_value>x</arg_value>\n</tool_call>"),
    form("mistral", "[TOOL_CALLS][{\"name\": \"echo\", \"arguments\": {\"text\": \"x\"}}]"),
    form("mistral", "[TOOL_CALLS]echo[ARGS]{\"text\": \"x\"}"),
    form(
        "deepseek",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>echo\n```json\n{\"text\": \"x\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    form("deepseek", "<｜tool▁call▁begin｜>echo<｜tool▁sep｜>{\"text\": \"x\"}<｜tool▁call▁end｜>"),
    form(
        "dsml",
        "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"echo\">\n<｜DSML｜parameter name=\"text\" string=\"true\">x</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    ),
    form(
        "kimi",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.echo:0<|tool_call_argument_begin|>{\"text\": \"x\"}<|tool_call_end|><|tool_calls_section_end|>",
    ),
    form("llama", "<|python_tag|>{\"name\": \"echo\", \"parameters\": {\"text\": \"x\"}}"),
    form("llama", "<|python_tag|>echo.call(text=\"x\")"),
    form("llama", "<function=echo>{\"text\": \"x\"}</function>"),
    form(
        "harmony",
        "<|channel|>commentary to=functions.echo <|constrain|>json<|message|>{\"text\": \"x\"}<|call|>",
    ),
    form("harmony", "commentary to=functions.echo json{\"text\": \"x\"}"),
    form(
        "minimax",
        "<minimax:tool_call>\n<invoke name=\"echo\">\n<parameter name=\"text\">x</parameter>\n</invoke>\n</minimax:tool_call>",
    ),
    form(
        "anthropic_xml",
        "<function_calls>\n<invoke name=\"echo\">\n<parameter name=\"text\">x</parameter>\n</invoke>\n</function_calls>",
    ),
    form("anthropic_xml", "<invoke name=\"echo\"><parameter name=\"text\">x</parameter></invoke>"),
    form("granite", "<|tool_call|>[{\"name\": \"echo\", \"arguments\": {\"text\": \"x\"}}]"),
];

/// Calls in the text protocols, first as they are written alone, then for the middle of a line.
const PROTOCOL_FORMS: [CallForm; 4] = [
    form(
        "vcp",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」echo「末」,\ntext:「始」x「末」\n<<<[END_TOOL_REQUEST]>>>",
    ),
    form(
        "vcp",
        "<<<[TOOL_REQUEST]>>>tool_name:「始」echo「末」text:「始」it's「末」<<<[END_TOOL_REQUEST]>>>",
    ),
    form("xml", "<tool_call>\n{\"name\": \"echo\", \"arguments\": {\"text\": \"x\"}}\n</tool_call>"),
    form("xml", "<tool_call>{\"name\": \"echo\", \"arguments\": {\"text\": \"x\"}}</tool_call>"),
];

/// Form of a call's lines in a context.
#[derive(Clone, Copy)]
enum CallLines {
    AsTheyAre,
    /// Each begins with this.
    Prefixed(&'static str),
}

/// Context of a call: the text before and after, and the prefix of each of the call's lines.
struct CallContext {
    name: &'static str,
    before: &'static str,
    lines: CallLines,
    after: &'static str,
}

const fn around(name: &'static str, before: &'static str, after: &'static str) -> CallContext {
    CallContext { name, before, lines: CallLines::AsTheyAre, after }
}

const fn each_line(
    name: &'static str,
    before: &'static str,
    prefix: &'static str,
    after: &'static str,
) -> CallContext {
    CallContext { name, before, lines: CallLines::Prefixed(prefix), after }
}

impl CallContext {
    fn of(&self, call: &str) -> String {
        let Self { before, after, .. } = self;
        match self.lines {
            CallLines::AsTheyAre => format!("{before}{call}{after}"),
            CallLines::Prefixed(prefix) => {
                let lines: Vec<String> = call.lines().map(|line| format!("{prefix}{line}")).collect();
                format!("{before}{}{after}", lines.join("\n"))
            }
        }
    }
}

/// Contexts in which the call must not run.
const QUOTED: [CallContext; 57] = [
    around("a fence", "So:\n\n```\n", "\n```\n"),
    around("a fence with a language", "~~~~xml\n", "\n~~~~\nThat is all."),
    around("a fence that never closes", "```xml\n", "\n\nand more"),
    around("a fence in a fence", "````md\n```\n", "\n```\n````\n"),
    each_line("a fence in a list", "- Hermes:\n  ```\n", "  ", "\n  ```\n- none"),
    each_line("a fence right behind a list marker", "1. ```\n", "   ", "\n   ```\n"),
    around("a fence after one in a list", "- ```\n  code\n  ```\n\nLike this:\n\n```\n", "\n```"),
    around("a fence after one in a quotation", "> ```\n> code\n\n```\n", "\n```"),
    around("inline code", "Write `", "` so."),
    around("inline code of two backticks", "Write `` a ` ", " `` so."),
    around("inline code over two lines", "Write `first\n", "` so."),
    each_line("a quotation", "The page says:\n\n", "> ", "\n\nShall I go on?"),
    each_line("a quotation without spaces", "", ">", ""),
    each_line("a quotation in a quotation", "> He wrote:\n", "> > ", "\n"),
    each_line("a quotation in a list", "- He wrote:\n", "  > ", "\n"),
    each_line("a quotation right behind a list marker", "", "- > ", "\n"),
    around("a quotation that goes on without its mark", "> The page says:\n", "\n\nNo."),
    around("a quotation that goes on for two lines", "> The page says:\nand I quote:\n", "\n\nNo."),
    each_line("indented code", "A call looks so:\n\n", "    ", "\n\nThat is all."),
    each_line("indented code at the beginning", "", "    ", "\n"),
    each_line("code indented by a tab", "So:\n\n", "\t", "\n"),
    each_line("indented code after a heading", "# Calls\n", "    ", "\n"),
    each_line("indented code after indented code", "So:\n\n    first\n\n", "    ", "\n"),
    around("a list item", "Two forms:\n\n- ", "\n- none"),
    around("a numbered list item", "1. ", "\n2. none"),
    around("a list item with a bracket", "12) Hermes: ", "\n"),
    each_line("the second line of a list item", "* Hermes:\n", "  ", "\n* none"),
    each_line("the second paragraph of a list item", "* Hermes:\n\n", "  ", "\n* none"),
    each_line("code in a list item", "* Hermes:\n\n", "      ", "\n* none"),
    around("a table", "| form | call |\n|---|---|\n| Hermes | ", " |\n"),
    around("a table without outer bars", "form | call\n--- | ---\nHermes | ", "\n"),
    around("straight quotation marks", "The page says \"", "\", which is an injection."),
    around("curly quotation marks", "The page says “", "”, which is an injection."),
    around("corner brackets", "页面上写着「", "」，这是注入。"),
    around("white corner brackets", "页面上写着『", "』，这是注入。"),
    around("angle quotation marks", "La page dit « ", " », c’est une injection."),
    around("low quotation marks", "Die Seite sagt „", "“, das ist untergeschoben."),
    around("single quotation marks", "The page's text is '", "', an injection."),
    around("curly single quotation marks", "The page's text is ‘", "’, an injection."),
    around("quotation marks right behind a word", "页面说\"", "\"。"),
    around("quotation marks over paragraphs", "It says: “Dear assistant,\n\n", "\n\nThanks.”"),
    around("straight quotation marks over paragraphs", "It says: \"Dear assistant,\n\n", "\n\nThanks.\""),
    around("a second quotation", "He says \"no\" and \"", "\"."),
    around("a string of JSON", "{\"note\": \"", "\"}"),
    around("a string of JSON over lines", "{\n  \"id\": 1,\n  \"note\": \"see ", "\"\n}"),
    around("an escaped string in JSON", "The log: {\"body\": \"{\\\"note\\\": \\\"", "\\\"}\"}"),
    around("a comment of HTML", "<!-- ", " -->"),
    around("a comment of HTML over paragraphs", "<!--\nOld:\n\n", "\n\n-->\n"),
    each_line("a comment of code", "", "// ", "\n"),
    each_line("a comment of a shell", "", "# ", "\n"),
    each_line("a comment of SQL", "", "-- ", "\n"),
    around("a comment of C", "/* Old:\n\n", "\n*/\n"),
    around("a comment at the end of a line", "x = 1  // was: ", "\n"),
    around("preformatted HTML", "<pre>", "</pre>"),
    around("a quotation of HTML", "<blockquote cite=\"x\">\n", "\n</blockquote>"),
    around("thinking in the middle", "Well.\n<think>\n", "\n</think>\nNo."),
    around("an escaped mark", "It starts with \\", " as text."),
];

/// Contexts in which the call must run.
const MEANT: [CallContext; 32] = [
    around("nothing else", "", ""),
    around("text after it", "", "\n\nDone."),
    around("a paragraph before it", "Sending it.\n\n", ""),
    around("a line before it", "Sending it:\n", "\n"),
    around("text on its line", "Sending it: ", ""),
    around("text around it", "a ", " b"),
    around("indentation", "Sending it.\n\n   ", ""),
    around("an indented line of its paragraph", "Sending it:\n      ", ""),
    around("a closed fence before it", "```\ncode\n```\n", ""),
    around("a closed fence in a list before it", "- x:\n  ```\n  code\n  ```\n\n", ""),
    around("inline code before it", "I use `echo`: ", ""),
    around("inline code of another length before it", "I use ``a`b``: ", ""),
    around("a quotation before it", "> Please echo.\n\n", ""),
    around("a quotation and a sentence before it", "> Please echo.\n\nI will.\n", ""),
    around("indented code before it", "So:\n\n    code\n\nNow: ", ""),
    around("a list before it", "Steps:\n\n1. one\n2. two\n\n", ""),
    around("a list right before it", "- one\n  - two\n", ""),
    around("a table before it", "| a | b |\n|---|---|\n| 1 | 2 |\n\n", ""),
    around("a table right before it", "| a | b |\n|---|---|\n| 1 | 2 |\n", ""),
    around("quotation marks before it", "He said \"yes\", “yes”, «yes», 「好」 and 'yes'. ", ""),
    around("an apostrophe before it", "I'll do what's asked, it’s the users' wish. ", ""),
    around("inches in a paragraph before it", "A 5\" screen.\n\n", ""),
    around("JSON before it", "{\"a\": \"b \\\" c\", \"d\": [\"e\"]}\n", ""),
    around("a comment before it", "<!-- note --> ", ""),
    around("a comment over lines before it", "<!--\nnote\n-->\n", ""),
    around("an address before it", "See https://example.org/a#b: ", ""),
    around("a heading before it", "# Now\n", ""),
    around("a comparison before it", "a < b and c > d. ", ""),
    around("a bar in a word before it", "a|b and x||y. ", ""),
    around("a dash before it", "I will - as asked -- echo. ", ""),
    around("numbers before it", "1.5 and 2) and 3. Then: ", ""),
    around("preformatted HTML before it", "<pre>x</pre>\n", ""),
];

fn leaked_at(text: &str) -> Vec<String> {
    find_leaked(text, &["echo".to_owned()]).into_iter().map(|call| call.format.to_owned()).collect()
}

#[test]
fn unquoted_leaked_call_runs() {
    for CallForm { format, text } in &LEAKED_FORMS {
        for context in &MEANT {
            let reply = context.of(text);
            assert_eq!(leaked_at(&reply), [*format], "{}: {reply:?}", context.name);
        }
    }
}

#[test]
fn quoted_leaked_call_never_runs() {
    for CallForm { format, text } in &LEAKED_FORMS {
        for context in &QUOTED {
            let reply = context.of(text);
            assert!(leaked_at(&reply).is_empty(), "{format} in {}: {reply:?}", context.name);
        }
    }
}

/// A context must not depend on what was quoted in it: the next call is quoted as well, and one after it is not.
#[test]
fn quotation_covers_repeated_calls_but_not_later_ones() {
    for CallForm { format, text } in &LEAKED_FORMS {
        for context in QUOTED.iter().filter(|context| matches!(context.lines, CallLines::AsTheyAre)) {
            // What never closes quotes all that follows; a fence in the call ends inline code and comments of it.
            let is_open = ["never closes", "thinking", "escaped", "code"]
                .iter()
                .any(|word| context.name.contains(word));
            if is_open || context.after.is_empty() {
                continue;
            }
            let twice = context.of(&format!("{text} and {text}"));
            if !context.name.contains("list")
                && !context.name.contains("table")
                && !context.name.contains("line")
            {
                assert!(leaked_at(&twice).is_empty(), "{format} twice in {}: {twice:?}", context.name);
            }
            let then = format!("{}\n\nNow:\n\n{text}", context.of(text));
            assert_eq!(leaked_at(&then), [*format], "{format} after {}: {then:?}", context.name);
        }
    }
}

#[test]
fn unquoted_protocol_call_runs() {
    for CallForm { format, text } in &PROTOCOL_FORMS {
        for context in &MEANT {
            let in_line = !context.before.is_empty() && !context.before.ends_with(['\n', ' ']);
            let mid_line = context.before.rsplit('\n').next().is_some_and(|line| !line.trim().is_empty());
            // A start marker in the middle of a line is a mention unless a field follows directly.
            if (in_line || mid_line) && text.contains('\n') {
                continue;
            }
            let reply = context.of(text);
            let read = agree(of(format), &tools(), &reply);
            assert_eq!(read.calls.len(), 1, "{format} with {}: {reply:?}", context.name);
            assert!(read.calls[0].1.is_ok(), "{format} with {}: {reply:?}", context.name);
        }
    }
}

#[test]
fn quoted_protocol_call_never_runs() {
    for CallForm { format, text } in &PROTOCOL_FORMS {
        for context in &QUOTED {
            let reply = context.of(text);
            let read = agree(of(format), &tools(), &reply);
            assert!(read.calls.is_empty(), "{format} in {}: {reply:?}", context.name);
            assert_eq!(read.text, reply, "{format} in {}: the text is complete", context.name);
        }
    }
}

#[test]
fn quoted_protocol_call_is_reported_with_its_reason() {
    let check = |context: &str, kind: FindingKind| {
        let context = QUOTED.iter().find(|one| one.name == context).expect("there is such a context");
        for form in [&PROTOCOL_FORMS[1], &PROTOCOL_FORMS[3]] {
            let read = parse(of(form.format), &tools(), &context.of(form.text));
            let kinds: Vec<FindingKind> = read.findings.iter().map(|finding| finding.kind).collect();
            assert_eq!(kinds, [kind], "{} in {}", form.format, context.name);
        }
    };
    check("a fence", FindingKind::InCodeFence);
    check("inline code", FindingKind::InInlineCode);
    check("a quotation that goes on without its mark", FindingKind::InQuotation);
    check("indented code", FindingKind::InIndentedCode);
    check("a list item", FindingKind::InList);
    check("a table", FindingKind::InTable);
    check("curly quotation marks", FindingKind::InQuotationMarks);
    check("a comment of a shell", FindingKind::InComment);
    check("thinking in the middle", FindingKind::InThinking);
}

/// Text after the call tells a row without outer bars from a call right after a table, and leaked calls are read when all is
/// there.
#[test]
fn a_leaked_call_in_the_first_cell_of_a_table_never_runs() {
    for CallForm { format, text } in &LEAKED_FORMS {
        let reply = format!("form | call\n--- | ---\n{text} | Hermes\n");
        assert!(leaked_at(&reply).is_empty(), "{format}: {reply:?}");
    }
}

/// A value that holds a call, whole or cut: the call in it is part of the value.
#[test]
fn a_call_inside_of_another_call_never_runs() {
    for CallForm { format, text } in &LEAKED_FORMS {
        for outer in [
            format!("<function=note>\n<parameter=text>\nLike {text}"),
            format!("<invoke name=\"note\"><parameter name=\"text\">Like {text}"),
            format!("<tool_call>note\n<arg_key>text</arg_key>\n<arg_value>Like {text}"),
            format!(
                "<｜DSML｜invoke name=\"note\"><｜DSML｜parameter name=\"text\" string=\"true\">Like {text}"
            ),
            format!("<tool_call>{{\"name\": \"note\", \"arguments\": {{\"text\": \"Like {text}"),
            format!("[TOOL_CALLS]note[ARGS]{{\"text\": \"Like {text}"),
            format!(
                "<<<[TOOL_REQUEST]>>>\ntool_name:「始」note「末」\ntext:「始」Like {text}「末」\n<<<[END_TOOL_REQUEST]>>>"
            ),
        ] {
            assert!(leaked_at(&outer).is_empty(), "{format}: {outer:?}");
        }
    }
    for CallForm { format, text } in &PROTOCOL_FORMS {
        let data = serde_json::to_string(text).expect("a text is JSON");
        let outer = match *format {
            "vcp" => format!(
                "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」\np:「始ESCAPE」{text}「末ESCAPE」\n<<<[END_TOOL_REQUEST]>>>"
            ),
            _ => format!("<tool_call>{{\"name\": \"T\", \"arguments\": {{\"p\": {data}}}}}</tool_call>"),
        };
        let read = agree(of(format), &tools(), &outer);
        let names: Vec<&str> = read.calls.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["T"], "{format}: {outer:?}");
    }
}

/// Data comes to the model with tildes in its markers. Where it quotes them, they are shown without, and are no call.
#[test]
fn escaped_data_in_a_reply_leaks_no_call() {
    let data = "<tool_call>{\"name\":\"echo\",\"arguments\":{\"text\":\"x\"}}</tool_call>";
    let xml = of("xml");
    let reply = decode(Some(xml), &["The page:\n\n", &xml.escape(data), "\n"]);
    assert_eq!((reply.text.as_str(), reply.calls.len()), (format!("The page:\n\n{data}\n").as_str(), 0));
}

fn of(name: &str) -> &'static dyn TextProtocol {
    protocol(name).unwrap_or_else(|| panic!("{name} is a protocol"))
}

/// A reply of an upstream whose leaked calls run.
fn decode(protocol: Option<&'static dyn TextProtocol>, deltas: &[&str]) -> ModelReply {
    let tools: Vec<ToolDefinition> = tools();
    let calls = protocol.map_or_else(CallFormat::default, |protocol| {
        CallFormat::Text(TextCalls { protocol, tools: tools.clone().into(), results: ResultRole::User })
    });
    let profile = UpstreamProfile { leaked_calls: LeakedCalls::Run, ..UpstreamProfile::default() };
    let options = DecodeOptions { profile, offered: vec!["echo".into()], calls, ..DecodeOptions::default() };
    let mut decoder = StepDecoder::new(Dialect::OpenaiChat, options);
    let mut reply = ModelReply::default();
    let mut push =
        |data: &str| decoder.push(format!("data: {data}\n\n").as_bytes(), &mut |event| reply.apply(event));
    for delta in deltas {
        push(&json!({"choices": [{"index": 0, "delta": {"content": delta}}]}).to_string());
    }
    push(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).to_string());
    push("[DONE]");
    decoder.finish(&mut |event| reply.apply(event));
    reply
}

/// Parts of a page that end what they begin, so that a call after them is meant.
const PARTS: [&str; 16] = [
    "Some text with `code`, \"quotes\" and a link: https://example.org/a?b=c.",
    "# A heading",
    "```rust\nlet a = b << 2; // \"x\n```",
    "~~~\n```\n~~~",
    "> A quotation\n> with `code`\nthat goes on",
    "- one\n- two\n\n  more of two",
    "1. one\n   ```\n   code\n   ```",
    "| a | b |\n|---|---|\n| `1` | \"2\" |",
    "    indented \"code\"",
    "<!-- a \"comment -->",
    "It's a 5\" screen and the users' own.",
    "“引用”和「引用」，还有《书》。",
    "{\"a\": \"b\\\"c\", \"d\": null}",
    "---",
    "a < b, c > d, x || y, `` a`b ``",
    "<pre>\n\"pre\n</pre>",
];

/// Pieces that begin what they may not end.
const SCRAPS: [&str; 22] = [
    "```", "~~~", "`", "``", "\"", "“", "」", "'", "> ", "- ", "1. ", "| ", "<!--", "-->", "<pre>", "    ",
    "\t", "\n", "\n\n", "\\", "a ", "<think>",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn only_the_unquoted_call_of_any_page_runs(
        before in proptest::collection::vec(proptest::sample::select(&PARTS[..]), 0..5),
        after in proptest::collection::vec(proptest::sample::select(&PARTS[..]), 0..3),
        leaked in 0..LEAKED_FORMS.len(),
        written in 0..PROTOCOL_FORMS.len(),
        quoted in 0..QUOTED.len(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
    ) {
        let page = |call: &str| {
            let parts = before.iter().copied().chain([call]).chain(after.iter().copied());
            parts.collect::<Vec<_>>().join("\n\n")
        };
        let quoted = &QUOTED[quoted];
        let form = &LEAKED_FORMS[leaked];
        let text = page(form.text);
        prop_assert_eq!(decode(None, &pieces_of(&text, &cuts)).calls.len(), 1, "{} is meant: {:?}", form.format, text);
        let text = page(&quoted.of(form.text));
        let reply = decode(None, &pieces_of(&text, &cuts));
        prop_assert!(reply.calls.is_empty(), "{} in {}: {:?}", form.format, quoted.name, text);
        prop_assert_eq!(reply.text, text);

        let form = &PROTOCOL_FORMS[written];
        let protocol = of(form.format);
        for (text, calls) in [(page(form.text), 1), (page(&quoted.of(form.text)), 0)] {
            let parsed = parse(protocol, &tools(), &text);
            prop_assert_eq!(parsed.calls.len(), calls, "{} in {}: {:?}", form.format, quoted.name, text);
            let read = scan(protocol, &tools(), pieces_of(&text, &cuts));
            prop_assert_eq!(read.without_raw(), parsed, "{:?} cut at {:?}", text, cuts);
        }
    }

    /// After any open markup: these contexts are quotations in each reading of it.
    #[test]
    fn quoted_call_after_any_fragments_never_runs(
        scraps in proptest::collection::vec(proptest::sample::select(&SCRAPS[..]), 0..10),
        leaked in 0..LEAKED_FORMS.len(),
        written in 0..PROTOCOL_FORMS.len(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
    ) {
        let scraps = scraps.concat();
        let quotation = |call: &str| {
            let lines: Vec<String> = call.lines().map(|line| format!("> {line}")).collect();
            format!("{scraps}\n\n{}\n", lines.join("\n"))
        };
        let text = quotation(LEAKED_FORMS[leaked].text);
        prop_assert!(decode(None, &pieces_of(&text, &cuts)).calls.is_empty(), "{:?}", text);
        let form = &PROTOCOL_FORMS[written];
        let text = quotation(form.text);
        let read = scan(of(form.format), &tools(), pieces_of(&text, &cuts));
        prop_assert!(read.calls.is_empty(), "{:?}", text);
        prop_assert_eq!(read.without_raw(), parse(of(form.format), &tools(), &text), "{:?} cut at {:?}", text, cuts);
    }
}

fn pieces_of<'t>(text: &'t str, cuts: &[proptest::sample::Index]) -> Vec<&'t str> {
    let borders: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| borders[cut.index(borders.len())]).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect()
}
