//! The mistakes, and the gates that are meant to catch them.

use super::Mutant;

/// Every history and rule, sent to the strict fake of every upstream.
const REQUESTS: &str = "-p throughline --test it -- histories:: request_rules::";
/// Schemas of real tools, sent to the strict fake of every provider.
const SCHEMAS: &str = "-p throughline --test it -- tool_schemas::";
/// Names of arguments at providers that do not take every one.
const ARGUMENTS: &str = "-p throughline-wire --test it -- argument_names::";
/// Servers that answer anything.
const MCP: &str = "-p throughline-tools --test it -- mcp::";
/// Tests of the reader of MCP messages alone.
const MCP_READER: &str = "-p throughline-tools --lib -- mcp::";

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        title: "a history begins with the model",
        file: "crates/wire/src/dialect/history.rs",
        original: "if !matches!(messages.first(), Some(Message::User(_))) {",
        replaced: "if messages.is_empty() {",
        tests: REQUESTS,
    },
    Mutant {
        title: "messages of the user in a row are not joined",
        file: "crates/wire/src/dialect/history.rs",
        original: "Some(Message::User(before)) => before.extend(parts),",
        replaced: "Some(Message::User(before)) if before.is_empty() => before.extend(parts),",
        tests: REQUESTS,
    },
    Mutant {
        title: "a history ends with the model",
        file: "crates/wire/src/dialect/history.rs",
        original: "        self.ask_to_go_on(&mut written);\n        for message",
        replaced: "        for message",
        tests: REQUESTS,
    },
    Mutant {
        title: "a message of the user is blank",
        file: "crates/wire/src/dialect/history.rs",
        original: "text: EMPTY_MESSAGE.to_owned()",
        replaced: "text: EMPTY_MESSAGE[..0].to_owned()",
        tests: REQUESTS,
    },
    Mutant {
        title: "two calls have one id",
        file: "crates/wire/src/dialect/call_ids.rs",
        original: "theirs.filter(|id| !self.used.contains(id))",
        replaced: "theirs",
        tests: REQUESTS,
    },
    Mutant {
        title: "an id of a call is longer than is taken",
        file: "crates/wire/src/dialect/call_ids.rs",
        original: "Self::Text { bytes_max } => id.len() <= bytes_max,",
        replaced: "Self::Text { .. } => true,",
        tests: REQUESTS,
    },
    Mutant {
        title: "a temperature beside thinking",
        file: "crates/wire/src/dialect/settings.rs",
        original: "number(\"temperature\").is_some_and(|value| value != 1.0)",
        replaced: "false",
        tests: REQUESTS,
    },
    Mutant {
        title: "media that no model reads are sent as they are",
        file: "crates/wire/src/dialect/mod.rs",
        original: "if request.has_unfit_media() {",
        replaced: "if request.has_unfit_media() && request.messages.is_empty() {",
        tests: REQUESTS,
    },
    Mutant {
        title: "more pictures are sent than Claude takes",
        file: "crates/wire/src/dialect/picture_limits.rs",
        original: "let by_count = number_left_out(sent.len(), self.count);",
        replaced: "let by_count = number_left_out(sent.len(), self.count.max(1_000));",
        tests: REQUESTS,
    },
    Mutant {
        title: "Claude thinks in a turn with a call that has no thought",
        file: "crates/wire/src/dialect/anthropic/thinking.rs",
        original: " && lacks_own_thinking(turn)",
        replaced: " && lacks_own_thinking(turn) && turn.is_empty()",
        tests: REQUESTS,
    },
    Mutant {
        title: "thoughts of the turn go back to Claude where it does not think",
        file: "crates/wire/src/dialect/anthropic/thinking.rs",
        original: "        if !may_think {",
        replaced: "        if !may_think && messages.is_empty() {",
        tests: REQUESTS,
    },
    Mutant {
        title: "a call is forced where none can be",
        file: "crates/wire/src/dialect/mod.rs",
        original: "!can_force(dialect, request, profile)",
        replaced: "!can_force(dialect, request, profile) && request.tools.is_empty()",
        tests: REQUESTS,
    },
    Mutant {
        title: "reasoning goes back with calls alone",
        file: "crates/wire/src/dialect/openai_chat/encode.rs",
        original: "            if turn_has_calls {",
        replaced: "            if turn_has_calls && !step.calls.is_empty() {",
        tests: REQUESTS,
    },
    Mutant {
        title: "a thought ends a message of Claude's",
        file: "crates/wire/src/dialect/anthropic/encode.rs",
        original: "rposition(|block| !is_thought(block))",
        replaced: "rposition(|block| !is_thought(block) || block.is_object())",
        tests: REQUESTS,
    },
    Mutant {
        title: "a call that Gemini did not write has no signature",
        file: "crates/wire/src/dialect/gemini/encode.rs",
        original: "let is_signed = nth == 0 &&",
        replaced: "let is_signed = nth == usize::MAX &&",
        tests: REQUESTS,
    },
    Mutant {
        title: "the user speaks right after a tool where that is refused",
        file: "crates/wire/src/dialect/openai_chat/encode.rs",
        original: "message[\"role\"] == \"user\" && out.last()",
        replaced: "message[\"role\"] == \"nobody\" && out.last()",
        tests: REQUESTS,
    },
    Mutant {
        title: "the schema of a reply is not closed",
        file: "crates/wire/src/dialect/reply_schema.rs",
        original: "            close(&mut closed);\n",
        replaced: "            let _ = close;\n",
        tests: REQUESTS,
    },
    Mutant {
        title: "a schema of arguments is a union",
        file: "crates/wire/src/dialect/tool_schema/top.rs",
        original: "schema.retain(|keyword, _| !REFUSED_AT_TOP.contains(&keyword.as_str()));",
        replaced: "",
        tests: SCHEMAS,
    },
    Mutant {
        title: "a schema of a list has no items",
        file: "crates/wire/src/dialect/tool_schema/normal.rs",
        original: "if is_list && !members.contains_key(\"items\") {",
        replaced: "if is_list && members.is_empty() {",
        tests: SCHEMAS,
    },
    Mutant {
        title: "an argument is offered under a name that is refused",
        file: "crates/wire/src/dialect/tool_schema/mod.rs",
        original: "names.rename_properties(&tool.name, &mut schema);",
        replaced: "",
        tests: SCHEMAS,
    },
    Mutant {
        title: "arguments of earlier calls have other names than are offered",
        file: "crates/wire/src/dialect/mod.rs",
        original: "let request = &*tool_schema::with_wire_arguments(request, &names);",
        replaced: "let _ = tool_schema::with_wire_arguments(request, &names);",
        tests: ARGUMENTS,
    },
    Mutant {
        title: "a definition of an MCP server needs `inputSchema`",
        file: "crates/tools/src/mcp/lenient/tools.rs",
        original: "        None | Some(Value::Null) => {\n            let mut schema",
        replaced: "        None => return Err(\"nothing\"),\n        Some(Value::Null) => {\n            let mut schema",
        tests: MCP,
    },
    Mutant {
        title: "one odd definition costs the list",
        file: "crates/tools/src/mcp/lenient/tools.rs",
        original: "Err(fault) => faults.push(fault),",
        replaced: "Err(fault) => {\n                faults.push(fault);\n                return Err(\"odd\".to_owned());\n            }",
        tests: MCP,
    },
    Mutant {
        title: "a cursor that does not advance is followed",
        file: "crates/tools/src/mcp/listing.rs",
        original: "!self.cursors.insert(next.clone())",
        replaced: "!self.cursors.insert(next.clone()) && self.pages == PAGES_MAX",
        tests: MCP,
    },
    Mutant {
        title: "structured content reaches the model twice",
        file: "crates/tools/src/mcp/content.rs",
        original: "            && !repeats(&self.texts, structured)\n",
        replaced: "            && (structured.is_object() || !repeats(&self.texts, structured))\n",
        tests: MCP,
    },
    Mutant {
        title: "structured content never reaches the model",
        file: "crates/tools/src/mcp/content.rs",
        original: "            self.texts.push(structured.to_string());\n",
        replaced: "            self.texts.truncate(usize::MAX);\n",
        tests: MCP,
    },
    Mutant {
        title: "a session that is answered with 404 is not begun again",
        file: "crates/tools/src/mcp/post.rs",
        original: "if status == StatusCode::NOT_FOUND && has_session {",
        replaced: "if status == StatusCode::GONE && has_session {",
        tests: MCP,
    },
    Mutant {
        title: "a reply that is no JSON is passed over",
        file: "crates/tools/src/mcp/lenient/mod.rs",
        original: "Err(error) => self.unreadable(text, &no_json(error), origin),",
        replaced: "Err(_) => Vec::new(),",
        tests: MCP,
    },
    Mutant {
        title: "a reply under a text counts",
        file: "crates/tools/src/mcp/lenient/mod.rs",
        original: "(Some(Value::String(_)), _) => return Vec::new(),",
        replaced: "(Some(Value::String(text)), _) => text.parse().unwrap_or_default(),",
        tests: MCP,
    },
    Mutant {
        title: "a request of the server with odd parameters is not answered",
        file: "crates/tools/src/mcp/lenient/notification.rs",
        original: "            request.as_object_mut()?.remove(\"params\");\n",
        replaced: "",
        tests: MCP,
    },
    Mutant {
        title: "a result needs `content`",
        file: "crates/tools/src/mcp/lenient/result.rs",
        original: "fields.remove(\"content\").unwrap_or_default()",
        replaced: "fields.remove(\"content\").ok_or_else(|| \"no content\".to_owned())?",
        tests: MCP_READER,
    },
    Mutant {
        title: "a handshake needs `serverInfo`",
        file: "crates/tools/src/mcp/lenient/handshake.rs",
        original: "\"serverInfo\": server_info(&result),",
        replaced: "\"serverInfo\": result.get(\"serverInfo\").map(|_| server_info(&result)),",
        tests: MCP_READER,
    },
    Mutant {
        title: "base64 is read in one spelling alone",
        file: "crates/tools/src/mcp/lenient/result.rs",
        original: "decode(content).filter(",
        replaced: "BASE64.decode(content).ok().filter(",
        tests: MCP_READER,
    },
    Mutant {
        title: "a part for the user alone reaches the model",
        file: "crates/tools/src/mcp/lenient/result.rs",
        original: "one @ Value::String(_) => vec![one.clone()],",
        replaced: "Value::String(_) => return None,",
        tests: MCP_READER,
    },
];
