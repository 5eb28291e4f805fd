//! Both readers of a text protocol, side by side.

use serde_json::{Value, json};
use std::sync::Arc;
use throughline_wire::text_calls::{MarkupFinding, ScanEvent, TextProtocol, line_and_column};
use throughline_wire::{ToolDefinition, VcpCommand};

/// A reader's result for a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadResult {
    pub text: String,
    /// Name and arguments, or why it is refused.
    pub calls: Vec<(String, Result<String, String>)>,
    pub findings: Vec<MarkupFinding>,
    /// Refused blocks as written; the simple reader has spans instead.
    pub raw: Vec<String>,
}

impl ReadResult {
    /// The items that both readers report.
    pub fn without_raw(self) -> Self {
        Self { raw: Vec::new(), ..self }
    }
}

/// The simple reader.
pub fn parse(protocol: &dyn TextProtocol, tools: &[ToolDefinition], text: &str) -> ReadResult {
    let parsed = protocol.parse(text, tools);
    let mut last = 0;
    for call in &parsed.calls {
        assert!(text.get(call.span.clone()).is_some(), "a span outside the text: {:?}", call.span);
        assert!(call.span.start >= last || call.span.end == last, "blocks in disorder");
        last = call.span.end;
        if let Ok(arguments) = &call.arguments {
            let value: Value = serde_json::from_str(arguments).expect("arguments are JSON");
            assert!(value.is_object(), "arguments are an object: {arguments}");
        }
    }
    for finding in &parsed.findings {
        assert_eq!((finding.line, finding.column), line_and_column(text, finding.offset), "{finding:?}");
    }
    let calls = parsed.calls.into_iter().map(|call| (call.name, call.arguments)).collect();
    ReadResult { text: parsed.text, calls, findings: parsed.findings, raw: Vec::new() }
}

/// A call that the scanner has opened.
struct OpenScan {
    name: String,
    arguments: String,
}

/// The scanner, fed with these pieces; its contract is checked on the way. `seen` is told the length of the visible
/// text after each piece.
pub fn scan_observed<'p>(
    protocol: &dyn TextProtocol,
    tools: &[ToolDefinition],
    pieces: impl IntoIterator<Item = &'p str>,
    mut seen: impl FnMut(usize),
) -> ReadResult {
    let mut read = ReadResult::default();
    let mut open: Option<OpenScan> = None;
    let mut take = |scanned: ScanEvent<'_>, read: &mut ReadResult| match scanned {
        ScanEvent::Text(text) => {
            assert!(!text.is_empty(), "empty text");
            assert!(open.is_none(), "text inside a call");
            read.text += text;
        }
        ScanEvent::Opened { name } => {
            assert!(open.is_none(), "a call inside a call");
            open = Some(OpenScan { name: name.to_owned(), arguments: String::new() });
        }
        ScanEvent::Arguments(text) => {
            assert!(!text.is_empty(), "empty arguments");
            open.as_mut().expect("arguments of an open call").arguments += text;
        }
        ScanEvent::Restarted => open.as_mut().expect("restart of an open call").arguments.clear(),
        ScanEvent::Sealed => {
            let OpenScan { name, arguments } = open.take().expect("seal of an open call");
            read.calls.push((name, Ok(arguments)));
        }
        ScanEvent::Refused { reason, raw } => {
            assert!(raw.len() <= 4096 && !raw.is_empty(), "{raw:?}");
            let name = open.take().map(|open| open.name).unwrap_or_default();
            read.calls.push((name, Err(reason)));
            read.raw.push(raw.to_owned());
        }
        ScanEvent::Finding(finding) => read.findings.push(finding),
    };
    let mut scanner = protocol.scanner(Arc::from(tools));
    let mut text = String::new();
    for piece in pieces {
        text += piece;
        scanner.push(&text, &mut |scanned| take(scanned, &mut read));
        seen(read.text.chars().count());
    }
    scanner.finish(&text, &mut |scanned| take(scanned, &mut read));
    assert!(open.is_none(), "a call without an ending");
    read
}

pub fn scan<'p>(
    protocol: &dyn TextProtocol,
    tools: &[ToolDefinition],
    pieces: impl IntoIterator<Item = &'p str>,
) -> ReadResult {
    scan_observed(protocol, tools, pieces, |_| {})
}

pub fn characters(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()])
}

/// Both readers agree, for the whole text, for single characters, and for every cut in two.
pub fn agree(protocol: &dyn TextProtocol, tools: &[ToolDefinition], text: &str) -> ReadResult {
    let parsed = parse(protocol, tools, text);
    let whole = scan(protocol, tools, [text]);
    assert_eq!(whole.clone().without_raw(), parsed, "{}: {text:?}", protocol.name());
    assert!(whole.raw.iter().all(|raw| text.contains(raw)), "{:?} is in {text:?}", whole.raw);
    assert_eq!(scan(protocol, tools, characters(text)), whole, "{} by characters: {text:?}", protocol.name());
    for (at, _) in text.char_indices() {
        let read = scan(protocol, tools, [&text[..at], &text[at..]]);
        assert_eq!(read, whole, "{} cut at {at}: {text:?}", protocol.name());
    }
    parsed
}

/// The tools that the samples call.
pub fn tools() -> Vec<ToolDefinition> {
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let text = || json!({ "type": "string" });
    let mut operator = ToolDefinition::new(
        "T",
        "Works on files.",
        object(
            json!({ "p": text(), "q": text(), "command": text(), "filePath": text(), "base64": text(),  "image-size": text(), "utf8": text(), "line10": text() }),
            json!([]),
        ),
    );
    Arc::make_mut(&mut operator.parameters)["properties"]["n"] = json!({ "type": "integer" });
    let mut read = ToolDefinition::new(
        "files_read",
        "Reads.",
        object(json!({ "path": text(), "lines": { "type": ["integer", "null"] } }), json!(["path"])),
    );
    read.vcp =
        Some(VcpCommand { aliases: vec!["FileReader".into()], ..VcpCommand::new("Files", Some("Read")) });
    let mut write = ToolDefinition::new(
        "files_write",
        "Writes.",
        object(
            json!({ "path": text(), "text": text(), "sync": { "type": "boolean" }, "mode": { "type": "string", "enum": ["new", "append"] } }),
            json!(["path", "text"]),
        ),
    );
    write.vcp = Some(VcpCommand::new("Files", Some("Write")));
    let live2d = ToolDefinition::new(
        "live2d_expression",
        "Shows a face.",
        object(json!({ "name": text(), "weight": { "type": "number" }, "maid": text() }), json!(["name"])),
    );
    let mut search =
        ToolDefinition::new("web_search", "Searches.", object(json!({ "query": text() }), json!(["query"])));
    // An alias that is also the name of another tool means that one.
    let aliases = vec!["Finder".into(), "echo".into()];
    search.vcp = Some(VcpCommand { aliases, ..VcpCommand::new("搜索", None) });
    let echo =
        ToolDefinition::new("echo", "Says it again.", object(json!({ "text": text() }), json!(["text"])));
    vec![operator, read, write, live2d, search, echo]
}
