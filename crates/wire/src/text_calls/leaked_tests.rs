//! Every grammar of the wire notes' section L, whole, cut, quoted and hostile.

use super::*;

/// One line for each call: `format name arguments [id]`.
fn found(text: &str, offered: &[&str]) -> Vec<String> {
    let offered: Vec<String> = offered.iter().map(|name| (*name).to_owned()).collect();
    find_leaked(text, &offered)
        .into_iter()
        .map(|call| {
            assert!(text.get(call.span.clone()).is_some_and(|span| !span.is_empty()), "{call:?} in {text:?}");
            assert!(
                JsonRef::parse(&call.arguments).is_ok_and(|json| json.is_object()),
                "{call:?} in {text:?}"
            );
            let id = call.id.map(|id| format!(" {id}")).unwrap_or_default();
            format!("{} {} {}{id}", call.format, call.name, call.arguments)
        })
        .collect()
}

#[track_caller]
fn check(text: &str, expect: &[&str]) {
    assert_eq!(found(text, &[]), expect, "{text:?}");
    assert_eq!(found(text, &["f", "g", "get_weather"]), expect, "{text:?} with tools offered");
    assert_eq!(found(text, &["other"]), [""; 0], "{text:?} with only another tool offered");
    assert_eq!(found(&format!("Let me look.\n\n{text}"), &[]), expect, "{text:?} after prose");
    check_quoted(text);
}

/// A call without any marker: only where it is the whole reply.
#[track_caller]
fn check_bare(text: &str, expect: &[&str]) {
    assert_eq!(found(text, &[]), expect, "{text:?}");
    assert_eq!(found(text, &["f", "g"]), expect, "{text:?} with tools offered");
    assert_eq!(found(text, &["other"]), [""; 0], "{text:?} with only another tool offered");
    assert_eq!(found(&format!("<think>x</think>{text}"), &[]), expect, "{text:?} after thinking");
    check_none(&format!("Let me look.\n\n{text}"));
    check_none(&format!("{text} is how."));
    check_quoted(text);
}

#[track_caller]
fn check_quoted(text: &str) {
    for wrapped in
        [format!("<think>{text}</think>no"), format!("<think>{text}"), format!("````xml\n{text}\n````")]
    {
        check_none(&wrapped);
    }
}

#[track_caller]
fn check_none(text: &str) {
    assert_eq!(found(text, &[]), [""; 0], "{text:?}");
}

#[test]
fn hermes_calls_are_found() {
    check(
        "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
        &["hermes f {\"a\": 1}"],
    );
    check(
        "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>",
        &["hermes f {}", "hermes g {}"],
    );
    check("<tool_call>[{\"name\":\"f\",\"arguments\":{}}]</tool_call>", &["hermes f {}"]);
    check(
        "<tool_call>{\"name\":\"f\",\"parameters\":{\"a\":\"</tool_call>\"}}</tool_call>",
        &["hermes f {\"a\":\"</tool_call>\"}"],
    );
    check("<tool_call>{\"name\":\"f\"}</tool_call>", &["hermes f {}"]);
    check("<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}</tool_call>", &["hermes f {\"a\":1}"]);
    check(
        "<tool_call>{\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":{}}}</tool_call>",
        &["hermes f {}"],
    );
    check(
        "<tool_call>{\"name\":\"f\",\"arguments\":{\"t\":\"\\ud83d\"}}</tool_call>",
        &["hermes f {\"t\":\"\\ud83d\"}"],
    );
    // The stop string swallowed the closing tag.
    check("<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n", &["hermes f {}"]);
    check_none("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": ");
    check_none("<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\nand so on");
    check_none("<tool_call>{\"name\":\"f\",\"arguments\":[1]}</tool_call>");
    check_none("<tool_call>{\"arguments\":{}}</tool_call>");
    check_none("<tool_call>{'name':'f'}</tool_call>");
}

#[test]
fn qwen3_coder_calls_are_found() {
    check(
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\nx\ny\n</parameter>\n</function>\n</tool_call>",
        &["qwen3_coder f {\"a\": 1, \"b\": \"x\\ny\"}"],
    );
    check("<function=f>\n</function>", &["qwen3_coder f {}"]);
    check(
        "<tool_call><function=f></function><function=g></function></tool_call>",
        &["qwen3_coder f {}", "qwen3_coder g {}"],
    );
    check(
        "<tool_call>\n<function=f>\n<parameter=a>\n<b>\n</parameter>\n</function>",
        &["qwen3_coder f {\"a\": \"<b>\"}"],
    );
    check_none("<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n");
    check_none("<tool_call>\n<function=f>\n<parameter=a>\n1");
    // The first value was never closed: it does not swallow the call that the model then repeated.
    let again = "<function=f>\n<parameter=a>\n1\n<function=g>\n<parameter=a>\n2\n</parameter>\n</function>";
    assert_eq!(found(again, &[]), ["qwen3_coder g {\"a\": 2}"]);
}

#[test]
fn untyped_parameter_values_are_json_or_strings() {
    let check = |value: &str, expect: &str| {
        let text = format!("<function=f><parameter=a>{value}</parameter></function>");
        assert_eq!(found(&text, &[]), [format!("qwen3_coder f {{\"a\": {expect}}}")], "{value:?}");
    };
    check("Paris", "\"Paris\"");
    check("1", "1");
    check("-1.5e3", "-1.5e3");
    check("true", "true");
    check("null", "null");
    check("{\"b\": [1]}", "{\"b\": [1]}");
    check("\n[1, 2]\n", "[1, 2]");
    check("02139", "\"02139\"");
    check("\"x\"", "\"\\\"x\\\"\"");
    check("", "\"\"");
    check("True", "\"True\"");
    check("  indented\n\n", "\"  indented\\n\"");
    check("12345678901234567890123", "12345678901234567890123");
}

#[test]
fn mistral_calls_are_found() {
    check(
        "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\", \"arguments\": {}, \"id\": \"abc\"}]",
        &["mistral f {\"a\": 1}", "mistral g {} abc"],
    );
    check("[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g[ARGS]{}", &["mistral f {\"a\": 1}", "mistral g {}"]);
    check("[TOOL_CALLS]f[CALL_ID]a1b2c3d4e[ARGS]{}", &["mistral f {} a1b2c3d4e"]);
    check("[TOOL_CALLS]f{\"a\":1}", &["mistral f {\"a\":1}"]);
    check_none("[TOOL_CALLS]f[ARGS]{\"a\": ");
    check_none("The token [TOOL_CALLS] starts a list.");
    check_none("[TOOL_CALLS][{\"name\": \"f\"}, 1]");
}

#[test]
fn deepseek_calls_are_found() {
    check(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        &["deepseek f {\"a\": 1}", "deepseek g {}"],
    );
    check(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        &["deepseek f {\"a\": 1}"],
    );
    check("<|tool_call_begin|>f<|tool_sep|>{}<|tool_call_end|>", &["deepseek f {}"]);
    check_none("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1");
    check_none("<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}");
}

#[test]
fn dsml_calls_are_found() {
    for bar in ["｜", "|", "‖", "｜｜", "∥"] {
        for block in ["function_calls", "tool_calls"] {
            let text = format!(
                "<{bar}DSML{bar}{block}>\n<{bar}DSML{bar}invoke name=\"f\">\n<{bar}DSML{bar}parameter name=\"a\" string=\"true\">1</{bar}DSML{bar}parameter>\n<{bar}DSML{bar}parameter name=\"b\" string=\"false\">1</{bar}DSML{bar}parameter>\n</{bar}DSML{bar}invoke>\n</{bar}DSML{bar}{block}>"
            );
            check(&text, &["dsml f {\"a\": \"1\", \"b\": 1}"]);
        }
    }
    check_none(
        "<｜DSML｜function_calls><｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"a\" string=\"true\">1",
    );
}

#[test]
fn kimi_calls_are_found() {
    check(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
        &["kimi f {\"a\": 1} functions.f:0", "kimi g {} functions.g:1"],
    );
    check("<|tool_call_begin|>f<|tool_call_argument_begin|>{}<|tool_call_end|>", &["kimi f {} f"]);
    check_none(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\"",
    );
}

#[test]
fn glm_calls_are_found() {
    check(
        "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n<arg_key>b</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
        &["glm f {\"a\": \"x\", \"b\": 2}"],
    );
    check("<tool_call>f<arg_key>a</arg_key><arg_value>x</arg_value></tool_call>", &["glm f {\"a\": \"x\"}"]);
    assert_eq!(found("<tool_call>f\n</tool_call>", &["f"]), ["glm f {}"]);
    // Without knowing the tools, a word between two tags is not evidence enough.
    check_none("<tool_call>f\n</tool_call>");
    check_none("<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x");
}

#[test]
fn llama_calls_are_found() {
    check(
        "<|python_tag|>{\"type\": \"function\", \"name\": \"f\", \"parameters\": {\"a\": 1}}",
        &["llama f {\"a\": 1}"],
    );
    check(
        "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {}}<|eom_id|>",
        &["llama f {}", "llama g {}"],
    );
    check("<|python_tag|>f.call(query=\"x\")", &["llama f {\"query\": \"x\"}"]);
    check("<function=f>{\"a\": 1}</function>", &["llama f {\"a\": 1}"]);
    check_bare("{\"name\": \"f\", \"parameters\": {\"a\": 1}}", &["llama f {\"a\": 1}"]);
    check_bare(
        "\n {\"name\": \"f\", \"parameters\": {}};{\"name\": \"g\", \"parameters\": {}}\n",
        &["llama f {}", "llama g {}"],
    );
    check_none("{\"name\": \"f\", \"parameters\": {}, \"age\": 3}");
    check_none("{\"name\": \"Bob\"}");
    check_none("{\"name\": \"f\", \"parameters\": {}} is what you send");
    check_none("Send {\"name\": \"f\", \"parameters\": {}}");
    check_none("{\"name\": \"f\", \"parameters\": {\"a\"");
}

#[test]
fn pythonic_calls_are_found() {
    check_bare(
        "[f(a=\"x\", b=-1.5, c=[True, None], d={'k': (1, 2)}), g()]",
        &[
            "pythonic f {\"a\": \"x\", \"b\": -1.5, \"c\": [true, null], \"d\": {\"k\": [1, 2]}}",
            "pythonic g {}",
        ],
    );
    check_bare(
        r#"[f(a='it\'s', b="l1\nl2\u00e9\x41", c="""two
lines""")]"#,
        &["pythonic f {\"a\": \"it's\", \"b\": \"l1\\nl2éA\", \"c\": \"two\\nlines\"}"],
    );
    check_none("[f(1)]");
    check_none("[f(a=g())]");
    check_none("[f(a=1)] is how");
    check_none("[f(a=\"x");
    check_none("[]");
    check_none("[1, 2]");
    check_none(&format!("[f(a={}{})]", "[".repeat(100_000), "]".repeat(100_000)));
}

#[test]
fn gemma_calls_are_found() {
    let check = |text: &str, expect: &[&str]| assert_eq!(found(text, &[]), expect, "{text:?}");
    check("```tool_code\nf(a=\"x\")\n```", &["gemma f {\"a\": \"x\"}"]);
    check("Sure.\n```tool_code\nprint(f(a=1))\ng()\n```\nDone.", &["gemma f {\"a\": 1}", "gemma g {}"]);
    check("```tool_code\n[f(), g()]\n```", &["gemma f {}", "gemma g {}"]);
    check("```python\nf(a=\"x\")\n```", &[]);
    check("```tool_code\nx = f(a=1)\n```", &[]);
    check("```tool_code\nf(a=1)\n", &[]);
    check("````md\n```tool_code\nf()\n```\n````", &[]);
}

#[test]
fn harmony_calls_are_found() {
    check(
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>",
        &["harmony f {\"a\": 1}"],
    );
    check("<|start|>assistant<|channel|>commentary to=functions.f<|message|>{}", &["harmony f {}"]);
    check(
        "<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}<|call|>",
        &["harmony f {}"],
    );
    check("<|channel|>analysis to=functions.f code<|message|>{}", &["harmony f {}"]);
    check("commentary to=functions.f json{\"a\": 1}", &["harmony f {\"a\": 1}"]);
    check("assistantcommentary to=functions.f json{}", &["harmony f {}"]);
    check_none("<|channel|>commentary<|message|>I will call f");
    check_none("commentary to=functions.f json{\"a\"");
    check_none("<|channel|>commentary to=browser.search json<|message|>{}");
}

#[test]
fn minimax_and_anthropic_calls_are_found() {
    let invoke = "<invoke name=\"f\">\n<parameter name=\"a\">x</parameter>\n<parameter name=\"b\">[1]</parameter>\n</invoke>";
    let arguments = "f {\"a\": \"x\", \"b\": [1]}";
    check(
        &format!("<minimax:tool_call>\n{invoke}\n</minimax:tool_call>"),
        &[&format!("minimax {arguments}")],
    );
    check(&format!("<minimax:tool_call>\n{invoke}"), &[&format!("minimax {arguments}")]);
    check(
        &format!("<function_calls>\n{invoke}\n</function_calls>"),
        &[&format!("anthropic_xml {arguments}")],
    );
    check(invoke, &[&format!("anthropic_xml {arguments}")]);
    check(
        &format!("<function_calls>{invoke}<invoke name='g'></invoke></function_calls>"),
        &[&format!("anthropic_xml {arguments}"), "anthropic_xml g {}"],
    );
    let prefixed =
        format!("<function_calls>{invoke}</function_calls>").replace('<', "<P:").replace("<P:/", "</P:");
    check(&prefixed.replace("P:", concat!("ant", "ml:")), &[&format!("anthropic_xml {arguments}")]);
    check_none("<function_calls><invoke name=\"f\"><parameter name=\"a\">x</parameter>");
    check_none("<function_calls><invoke name=\"f\"><parameter name=\"a\">x");
    check_none("<invoke name=\"\"></invoke>");
    check_none("<invoke name=f></invoke>");
}

#[test]
fn granite_calls_are_found() {
    check("<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]", &["granite f {\"a\": 1}"]);
    check("<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]<|/tool_call|>", &["granite f {}"]);
    check_none("<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}");
}

#[test]
fn prose_about_markup_is_not_a_call() {
    let call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
    check_none("Write `<tool_call>` to start, e.g. <tool_call> and stop.");
    check_none(&format!("Like `{call}`."));
    check_none(&format!("Like ``{call}``."));
    check_none(&format!("```\n{call}\n```"));
    check_none(&format!("~~~xml\n{call}\n~~~"));
    check_none(&format!("```xml\n{call}\nnever closed"));
    // The opening tag was in the prompt: everything before the closing one was thinking.
    check_none(&format!("Maybe {call}?</think>No."));
    assert_eq!(found(&format!("Maybe.</think>{call}"), &[]), ["hermes f {}"]);
    // A backtick that opens nothing hides nothing, and a closed fence ends.
    assert_eq!(found(&format!("It`s here: {call}"), &[]), ["hermes f {}"]);
    assert_eq!(found(&format!("```\ncode\n```\n{call}"), &[]), ["hermes f {}"]);
    assert_eq!(found(&format!("A `<tool_call>` is: {call} `x`"), &[]), ["hermes f {}"]);
    // Markup inside an argument belongs to the argument.
    assert_eq!(
        found("<function=f><parameter=a><invoke name=\"g\"></invoke></parameter></function>", &[]),
        ["qwen3_coder f {\"a\": \"<invoke name=\\\"g\\\"></invoke>\"}"]
    );
}

#[test]
fn incomplete_call_is_never_found() {
    for text in [
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>",
        "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
        "[TOOL_CALLS]f[ARGS]{\"a\": {\"b\": 1}}",
        "commentary to=functions.f json{\"a\": 1}",
        "<invoke name=\"f\"><parameter name=\"a\">x</parameter></invoke>",
        "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}",
        "<|python_tag|>{\"name\": \"f\", \"parameters\": {\"a\": 1}}",
        "[f(a=\"x\")]",
    ] {
        for (at, _) in text.char_indices() {
            check_none(&text[..at]);
        }
        assert_eq!(found(text, &[]).len(), 1, "{text:?}");
    }
}

#[test]
fn leaked_call_also_sent_structured_is_removed_once() {
    let text = "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1, \"b\":\"\\u0041\"}}</tool_call>".repeat(2);
    let check = |structured: &[(&str, &str)], left: usize| {
        assert_eq!(without_structured(find_leaked(&text, &[]), structured).len(), left, "{structured:?}");
    };
    check(&[], 2);
    check(&[("f", "{\"b\": \"A\", \"a\": 1}")], 1);
    check(&[("f<|channel|>commentary", "{\"a\":1,\"b\":\"A\"}")], 1);
    check(&[("f", "{\"a\":1,\"b\":\"A\"}"), ("f", "{\"a\":1,\"b\":\"A\"}"), ("g", "{}")], 0);
    check(&[("f", "{\"a\":2,\"b\":\"A\"}"), ("g", "{\"a\":1,\"b\":\"A\"}")], 2);
    let empty = find_leaked("<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>", &[]);
    assert_eq!(without_structured(empty, &[("f", "")]), []);
}

#[test]
fn harmony_tokens_are_removed_from_names() {
    assert_eq!(clean_name("get_weather<|channel|>commentary"), "get_weather");
    assert_eq!(clean_name("get_weather <|constrain|>json"), "get_weather");
    assert_eq!(clean_name("get_weather"), "get_weather");
    assert_eq!(clean_name("<|channel|>"), "<|channel|>");
    assert_eq!(clean_name(""), "");
}

#[test]
fn spans_cover_the_markup() {
    let check = |text: &str, expect: &[&str]| {
        let spans: Vec<&str> = find_leaked(text, &[]).into_iter().map(|call| &text[call.span]).collect();
        assert_eq!(spans, expect, "{text:?}");
    };
    let call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
    check(&format!("a {call} b {call}c"), &[call, call]);
    let list = "[TOOL_CALLS][{\"name\":\"f\"},{\"name\":\"g\"}]";
    check(&format!("a{list}b"), &[list, list]);
    check("x\n```tool_code\nf()\n```\ny", &["```tool_code\nf()\n```\n"]);
}

#[test]
fn hostile_texts_take_linear_time() {
    const BYTES: usize = 256 << 10;
    for seed in [
        "<tool_call>",
        "<tool_call>{",
        "<tool_call>{\"",
        "<tool_call>{\"a\":\"",
        "<tool_call>{\":\":\",\"",
        "<tool_call>[",
        "<tool_call>f<arg_key>",
        "<tool_call>f<arg_key>a</arg_key><arg_value>",
        "<function=f><parameter=a>",
        "<parameter=a><function=f></parameter>",
        "<function=f><parameter=a><function=f></parameter>",
        "<invoke name=\"",
        "<invoke name=\"f\"><parameter name=\"a\">",
        "<|DSML|invoke name=\"f\"><|DSML|parameter name=\"a\">",
        "[TOOL_CALLS]",
        "[TOOL_CALLS][",
        "[TOOL_CALLS]f[ARGS]{\"a\":",
        "commentary to=functions.",
        "commentary to=functions.f json{\"",
        "<|python_tag|>f(a=\"",
        "<|python_tag|>{\"name\":\"f\",\"parameters\":{}};",
        "<|tool_call_begin|>",
        "`",
        "` `` ``` ",
        "`\n\n",
        "~~~",
        "x```\n",
        "<think>",
        "</think>",
        "{",
        "[",
        "[f(a=[",
        " ",
        "<",
        "<|",
        "< ",
    ] {
        // Without closers, and with all of them at the far end: each opener finds one there, and gets nowhere.
        for end in ["", "\"}</parameter></arg_key></arg_value></|DSML|parameter>"] {
            let text = seed.repeat(BYTES / seed.len()) + end;
            // No clock: quadratic work takes ten seconds and more for each seed, and the whole suite minutes.
            find_leaked(&text, &[]);
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(512))]

    #[test]
    fn random_markup_never_panics_and_yields_only_whole_calls(
        parts in proptest::collection::vec(
            proptest::prop_oneof![
                "<tool_call>|</tool_call>|<function=f>|</function>|<parameter=a>|</parameter>|<arg_key>|</arg_key>|<arg_value>",
                r"\[TOOL_CALLS\]|\[ARGS\]|<｜tool▁call▁begin｜>|<｜tool▁sep｜>|<｜tool▁call▁end｜>|<｜DSML｜invoke|</｜DSML｜invoke>",
                r#"<\|tool_call_begin\|>|<\|tool_call_argument_begin\|>|<\|python_tag\|>|<\|channel\|>commentary to=functions\.f|<\|message\|>"#,
                r#"<invoke name="f">|<parameter name="a">|</invoke>|<\|tool_call\|>|```tool_code\n|```|`|~~~|<think>|</think>"#,
                r#"\{"name":"f","arguments":\{"a":1\}\}|\{\}|\{"|\["|"|f\(a="x"\)|f|\n|你| "#,
            ],
            0..14,
        ),
    ) {
        found(&parts.concat(), &[]);
    }
}
