//! System prompts through the public interface: a template and its context in, a text or an error with its
//! position out.

use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use throughline::config::{TextProtocolKind, ToolMode};
use throughline::prompt::{
    FUEL_MAX, PROMPT_BYTES_MAX, PromptContext, PromptTemplate, PromptUser, SystemPrompt, ToolText, ToolsText,
    system_prompt,
};
use throughline::tools::{NoArguments, ToolRegistry, ToolToggle, tool};
use throughline::wire::text_calls::protocol;
use throughline::{Agent, ToolSelection};

/// Three tools of two sources, as a text protocol would have them.
fn some_tools() -> ToolsText {
    let tool = |name: &str, source: &str| ToolText {
        name: name.into(),
        source: source.to_owned(),
        definition: format!("[{name}]"),
    };
    ToolsText::plain(
        "GUIDE",
        vec![tool("files.read", "mcp:files"), tool("files.write", "mcp:files"), tool("time.now", "builtin")],
    )
}

fn render(template: &str, mode: ToolMode, tools: ToolsText) -> SystemPrompt {
    let template = PromptTemplate::compile(template).unwrap_or_else(|error| panic!("{template}\n{error}"));
    let now = "2026-11-21T14:05:09+08:00[Asia/Shanghai]".parse().unwrap();
    let facts = PromptContext {
        now: &now,
        user: "Ada {{ tools }} {% raw %}",
        agent: "clerk",
        model: "ollama/qwen3",
        mode,
        tools: Arc::new(tools),
    };
    system_prompt(Some(&template), &facts).unwrap()
}

fn check(template: &str, expected: &str) {
    let rendered = render(template, ToolMode::Text, some_tools());
    assert_eq!(rendered.text, expected, "{template}");
    assert_eq!(rendered.unmatched, [""; 0], "{template}");
}

#[test]
fn template_macros_render_their_values() {
    // The tools are placed first, so that nothing is appended.
    for (template, expected) in [
        ("{{ date }} {{ time }}", "2026-11-21 14:05"),
        ("{{ date(\"%A, %-d %B %Y\") }}", "Saturday, 21 November 2026"),
        ("{{ time(\"%H:%M:%S %Z\") }}", "14:05:09 CST"),
        ("{{ agent }} at {{ model }} in {{ mode }}", "clerk at ollama/qwen3 in text"),
        ("{% if mode == \"text\" %}yes{% else %}no{% endif %}", "yes"),
        ("{% if tools %}some{% else %}none{% endif %}", "some"),
    ] {
        let rendered = render(&format!("{{{{ tools }}}}|{template}"), ToolMode::Text, some_tools());
        assert_eq!(rendered.text.split_once('|').unwrap().1, expected, "{template}");
    }
}

#[test]
fn tools_are_rendered_at_their_macro_or_appended() {
    let all = "GUIDE\n\n[files.read]\n\n[files.write]\n\n[time.now]";
    check("Before.\n{{ tools }}\nAfter.", &format!("Before.\n{all}\nAfter."));
    check("Be brief.\n", &format!("Be brief.\n\n{all}"));
    check("{% if false %}{{ tools }}{% endif %}Be brief.", &format!("Be brief.\n\n{all}"));
    check("", all);
    for (names, expected) in [
        ("\"mcp:files\"", "GUIDE\n\n[files.read]\n\n[files.write]"),
        ("\"mcp\"", "GUIDE\n\n[files.read]\n\n[files.write]"),
        ("\"files\"", "GUIDE\n\n[files.read]\n\n[files.write]"),
        ("\"time.now\", \"builtin\", \"files.read\"", "GUIDE\n\n[files.read]\n\n[time.now]"),
        ("", all),
    ] {
        check(&format!("{{{{ tools({names}) }}}}"), expected);
    }
    check("{{ tools(\"time\") }}-{{ tools(\"files.read\") }}", "GUIDE\n\n[time.now]-[files.read]");
}

#[test]
fn prompt_without_a_template_is_the_tools_text() {
    let now = "2026-11-21T14:05:09[UTC]".parse().unwrap();
    let facts = |tools| PromptContext {
        now: &now,
        user: "",
        agent: "",
        model: "",
        mode: ToolMode::Text,
        tools: Arc::new(tools),
    };
    assert_eq!(system_prompt(None, &facts(some_tools())).unwrap().text, some_tools().full_text());
    assert_eq!(system_prompt(None, &facts(ToolsText::default())).unwrap().text, "");
}

#[test]
fn tools_macro_is_empty_without_tools() {
    for mode in [ToolMode::Auto, ToolMode::Native, ToolMode::Text] {
        let rendered = render(
            "Hi.{% if tools %} Tools:{% endif %} {{ tools }}{{ tools(\"mcp:files\") }}",
            mode,
            ToolsText::default(),
        );
        assert_eq!(rendered, SystemPrompt { text: "Hi. ".to_owned(), unmatched: vec![] });
    }
}

#[test]
fn unmatched_name_in_the_tools_macro_is_reported() {
    let rendered = render("{{ tools(\"time\") }}{{ tools(\"tmie\") }}", ToolMode::Text, some_tools());
    assert_eq!(rendered.unmatched, ["tmie"]);
    assert_eq!(rendered.text, "GUIDE\n\n[time.now]");
}

#[test]
fn inserted_values_are_not_rendered_as_templates() {
    let mut tools = some_tools();
    tools.tools[0].definition = "{{ user }} {% for x in [1] %}".to_owned();
    let rendered = render("{{ user }}: {{ tools(\"files.read\") }}", ToolMode::Text, tools);
    assert_eq!(rendered.text, "Ada {{ tools }} {% raw %}: GUIDE\n\n{{ user }} {% for x in [1] %}");
    check(
        "{{ tools }}{% raw %}{{ date }} <b>&amp;</b>{% endraw %}",
        &format!("{}{{{{ date }}}} <b>&amp;</b>", some_tools().full_text()),
    );
}

#[test]
fn template_error_has_a_line_and_column() {
    for (template, line, column, message) in [
        ("Hi {{ usr }}", 1, 7, "unknown name `usr` in a template"),
        ("你好\n你好 {{ usre }}", 2, 7, "unknown name `usre` in a template"),
        ("{% if mode == \"none\" %}\n  {{ dte }}{% endif %}", 2, 6, "unknown name `dte` in a template"),
        ("{% if mode == \"text\" %}{{ tols }}{% endif %}", 1, 27, "unknown name `tols` in a template"),
        ("a\n{{ date", 2, 4, "invalid template"),
        ("{% iff tools %}", 1, 4, "invalid template"),
        ("{{ date(\"%!\") }}", 1, 4, "is not a valid time format"),
        ("{{ date(1, 2) }}", 1, 4, "too many arguments"),
        ("{{ tools(5) }}", 1, 4, "expects names"),
        ("{{ user | nonsense }}", 1, 11, "there is no filter here"),
        ("{% include \"other\" %}", 1, 4, "other"),
        ("{{ user.name }}", 1, 4, "undefined"),
    ] {
        let error = PromptTemplate::compile(template).err().unwrap_or_else(|| panic!("accepted: {template}"));
        assert!(error.to_string().contains(message), "{template}\n{error}");
        assert_eq!((error.line, error.column), (line, column), "{template}\n{error}");
    }
    let error = PromptTemplate::compile("{{ usr }}").unwrap_err();
    assert!(error.to_string().contains("did you mean `user`?"), "{error}");
    let error = PromptTemplate::compile("{\"a\": {{1}, {2}}}").unwrap_err();
    assert!(error.to_string().contains("{% raw %}"), "{error}");
}

#[test]
fn template_instructions_and_length_are_limited() {
    let endless = format!("{{% for i in range({FUEL_MAX}) %}}{{% endfor %}}");
    let error = PromptTemplate::compile(&endless).unwrap_err();
    assert!(error.to_string().contains("exceeds 50000 instructions"), "{error}");
    let long = format!("{{% for i in range(2000) %}}{}{{% endfor %}}", "x".repeat(PROMPT_BYTES_MAX / 1000));
    let error = PromptTemplate::compile(&long).unwrap_err();
    assert!(error.to_string().contains("longer than 1024 KiB"), "{error}");
    let just = "x".repeat(PROMPT_BYTES_MAX);
    assert_eq!(render(&just, ToolMode::Native, ToolsText::default()).text.len(), PROMPT_BYTES_MAX);
}

/// An agent and the tools that there are: two that every protocol can offer, one with nested arguments, one that is no
/// model's business.
fn offered(mode: ToolMode, protocol: TextProtocolKind, tools: ToolToggle) -> ToolSelection {
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Nested {
        filter: BTreeMap<String, String>,
    }
    let flat = |name: &str| tool(name, "does nothing", |_: NoArguments, _| async {}).agent_callable();
    let nested = tool("list.filter", "filters", |_: Nested, _| async {}).agent_callable();
    let own = tool("own.affair", "is not callable", |_: NoArguments, _| async {});
    let builder =
        ToolRegistry::builder().tool(flat("time.now")).tool(flat("files.read")).tool(nested).tool(own);
    let mut agent = Agent::new("a", Vec::new());
    agent.tool_call.tools = tools;
    agent.select_tools(&builder.build().unwrap(), &PromptUser::default(), Some(mode), Some(protocol)).unwrap()
}

#[test]
fn prompt_lists_the_offered_tools_in_stable_order() {
    for (name, named) in [("vcp", TextProtocolKind::Vcp), ("xml", TextProtocolKind::Xml)] {
        let offer = offered(ToolMode::Text, named, ToolToggle::On);
        let protocol = protocol(name).unwrap();
        let found = offer.discovered.iter().filter(|found| found.is_offered());
        let definitions: Vec<_> = found.map(|found| found.tool.definition()).collect();
        let names: Vec<_> = definitions.iter().map(|tool| tool.name.as_str()).collect();
        let expected: &[&str] = match named {
            TextProtocolKind::Vcp => &["files_read", "time_now"],
            _ => &["files_read", "list_filter", "time_now"],
        };
        assert_eq!(names, expected, "{name}");
        // The protocol's frame encloses all definitions.
        let whole =
            format!("{}\n\n{}", protocol.guide().trim_matches('\n'), protocol.definitions(&definitions));
        assert_eq!(offer.prompt.text, whole.trim_end_matches('\n'), "{name}");
        assert!(!whole.contains("\n\n\n"), "one blank line between");
        let tokens: usize = offer.tool_tokens().iter().map(|row| row.tokens).sum();
        assert!(tokens > 0 && tokens < offer.tokens(), "the guide costs, too");
    }
}

#[test]
fn prompt_has_no_tools_in_native_mode_or_with_tools_off() {
    for (mode, tools) in [
        (ToolMode::Text, ToolToggle::Off),
        (ToolMode::Native, ToolToggle::On),
        (ToolMode::Auto, ToolToggle::On),
    ] {
        let offer = offered(mode, TextProtocolKind::Vcp, tools);
        assert_eq!(offer.instructions(), None, "{mode:?} {tools:?}");
        let natively = if tools == ToolToggle::On { 3 } else { 0 };
        assert_eq!(offer.discovered.iter().filter(|found| found.is_offered()).count(), natively);
    }
}
