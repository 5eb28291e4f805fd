//! The tools whose definitions a refusal names: a provider that dislikes one refuses the whole request, and every later one.

use super::error_body::searchable;
use super::failure;
use serde_json::Value;
use std::collections::HashSet;
use throughline_wire::ToolDefinition;

/// Members of a definition that belong to one tool. Members that Throughline adds to each (`type`, `strict`,
/// `cache_control`) do not identify a tool.
const OWN_MEMBERS: [&str; 6] = ["name", "description", "parameters", "schema", "input_schema", "inputschema"];

/// The tools of a request that its refusal names, by name or else by path in the body: from its status,
/// [text](super::error_body::UpstreamErrorBody::text) and the body that was sent. Empty if it is about all of
/// them.
pub(super) fn named_tools<'r>(
    status: u16,
    text: &str,
    body: &Value,
    tools: &'r [ToolDefinition],
) -> Vec<&'r ToolDefinition> {
    if !matches!(status, 400 | 422 | 500) || failure::refuses_tools(text) {
        return Vec::new();
    }
    let sent = SentTools::of(body);
    let in_words: Vec<_> = names_in(text).filter(|named| !sent.quotes(named.words)).collect();
    let in_words = in_words.first().map(|named| named.name.trim_end_matches(['.', ':']));
    let by_name = |name: &str| -> Vec<&ToolDefinition> {
        tools.iter().filter(|tool| tool.name.as_str().eq_ignore_ascii_case(name)).collect()
    };
    match in_words.map(by_name) {
        // `Read` and `read`: the text has lost which.
        Some(named) if named.len() == 1 => named,
        _ => {
            let text = text.replace(", ", ",");
            let names: HashSet<&str> = sent.names_at_places_in(&text).collect();
            tools.iter().filter(|tool| names.contains(tool.name.as_str())).collect()
        }
    }
}

/// The tools as sent in the body.
struct SentTools<'b> {
    list: &'b [Value],
    /// Text of the definitions in lower case. Refusals quote it: a property may be named like another tool's
    /// path.
    text: String,
}

impl<'b> SentTools<'b> {
    fn of(body: &'b Value) -> Self {
        let list = [&body["tools"], &body["toolConfig"]["tools"]].into_iter().find_map(Value::as_array);
        let list = list.map_or(&[][..], Vec::as_slice);
        let text = list.iter().map(searchable).collect();
        Self { list, text }
    }

    fn quotes(&self, words: &str) -> bool {
        self.text.contains(words)
    }

    /// Names by path in the body: `tools.3.custom.input_schema` (Anthropic; can1357/oh-my-pi#1101),
    /// `tools[9].function.parameters` (OpenAI, Groq), `["body","tools",0,"function"]` (Pydantic: Mistral,
    /// vLLM), `tools[0].function_declarations[5].parameters` (Gemini, also behind gateways that use another
    /// format), `toolConfig.tools.26.toolSpec.inputSchema` (Bedrock).
    fn names_at_places_in(&self, text: &str) -> impl Iterator<Item = &'b str> {
        text.match_indices("tools").filter(|(at, _)| is_path_of_tools(&text[..*at])).filter_map(
            |(at, word)| {
                let path = text[at + word.len()..].split([':', ')', ' ', '\n']).next()?;
                let digits = path.find(|c: char| c.is_ascii_digit())?;
                let number = path[digits..].split(|c: char| !c.is_ascii_digit()).next()?;
                if self.quotes(&text[at..at + word.len() + digits + number.len()]) {
                    return None;
                }
                self.name_at(path)
            },
        )
    }

    /// The name of the tool at the rest of a path, if that leads to a member that belongs to the tool.
    fn name_at(&self, path: &str) -> Option<&'b str> {
        let parts = path.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let number = parts.first()?.parse::<usize>().ok()?;
        // AWS counts from 1 where it checks its own types (BerriAI/litellm#19384), and from 0 where a model's rules are checked.
        let number = if parts.get(1) == Some(&"member") { number.checked_sub(1)? } else { number };
        let at =
            parts.iter().position(|part| matches!(*part, "function_declarations" | "functiondeclarations"));
        let declaration = at.map(|at| parts.get(at + 1)?.parse::<usize>().ok());
        let tool =
            match (declaration, self.list.get(number).and_then(|tool| tool.get("functionDeclarations"))) {
                (Some(declaration), Some(declarations)) => declarations.get(declaration?)?,
                // A gateway has written Gemini's list from one of another format (musistudio/claude-code-router#96).
                (Some(declaration), None) => self.list.get(declaration?)?,
                (None, Some(_)) => return None,
                (None, None) => self.list.get(number)?,
            };
        let name =
            [tool, &tool["function"], &tool["toolSpec"]].into_iter().find_map(|tool| tool["name"].as_str());
        name.filter(|_| parts.iter().any(|part| OWN_MEMBERS.contains(part)))
    }
}

/// True if a path to the request's tools begins here, by the text before the word: neither the tools of an
/// input item nor those of a tool choice.
fn is_path_of_tools(before: &str) -> bool {
    const PARENTS: [&str; 4] = ["request", "generatecontentrequest", "toolconfig", "body"];
    match before.strip_suffix('.') {
        Some(parent) => PARENTS.iter().any(|name| {
            parent.strip_suffix(name).is_some_and(|rest| !rest.ends_with(|c: char| c.is_ascii_alphanumeric()))
        }),
        None => !before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '/' || c == '['),
    }
}

/// A tool's name in the text of a refusal.
struct NameInWords<'t> {
    /// Text of the refusal around the name.
    words: &'t str,
    name: &'t str,
}

/// "Invalid schema for function 'x': …" (OpenAI, DeepSeek), "invalid JSON schema for tool x,…" (Groq),
/// "`x` functionDeclaration `parameters.a` schema …" (Vertex AI).
fn names_in(text: &str) -> impl Iterator<Item = NameInWords<'_>> {
    const QUOTES: [char; 4] = ['\'', '"', '`', '\\'];
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    let after = ["schema for function ", "schema for tool "].into_iter().flat_map(move |words| {
        text.match_indices(words).map(move |(at, words)| {
            let start = text.len() - text[at + words.len()..].trim_start_matches(QUOTES).len();
            let name = text[start..].split(|c| !is_of_name(c)).next().unwrap_or_default();
            NameInWords { words: &text[at..start + name.len()], name }
        })
    });
    let before = text.match_indices("` functiondeclaration ").filter_map(|(at, words)| {
        let name = text[..at].rsplit('`').next()?;
        Some(NameInWords { words: &text[at - name.len()..at + words.len()], name })
    });
    after.chain(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The tools that a refusal of `good`, `Bad` and `ugly` names; they follow one of the provider's.
    fn named(status: u16, text: &str, body: &Value) -> String {
        let tools = ["good", "Bad", "ugly"].map(|name| ToolDefinition::new(name, "", json!({})));
        let named = named_tools(status, &text.to_lowercase(), body, &tools);
        named.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn refused_tools_are_found_in_provider_messages() {
        let names = ["good", "Bad", "ugly"];
        let tools = |form: fn(&str) -> Value| names.iter().map(|name| form(name)).collect::<Vec<_>>();
        let flat = json!({"tools": tools(|name| json!({"name": name}))});
        let nested = json!({"tools": tools(|name| json!({"type": "function", "function": {"name": name}}))});
        let hosted = json!({"tools": [{"type": "web_search", "name": "web_search"}, {"name": "good"}]});
        let gemini = json!({"tools": [{"functionDeclarations": tools(|name| json!({"name": name}))}]});
        let bedrock = json!({"toolConfig": {"tools": tools(|name| json!({"toolSpec": {"name": name}}))}});
        let mut trap = nested.clone();
        trap["tools"][1]["function"]["parameters"] =
            json!({"properties": {"schema for function good": {}, "tools[0].name": {}}});
        for (body, text, expected) in [
            (&flat, "tools.1.custom.input_schema: JSON schema is invalid. It must match", "Bad"),
            (&flat, "tools.2.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", "ugly"),
            (&hosted, "tools.1.custom.input_schema: input_schema does not support oneOf", "good"),
            (&hosted, "tools.0.web_search_20250305.name: Input should be 'web_search'", ""),
            (&nested, "Invalid schema for function 'Bad': [] is not of type 'object'", "Bad"),
            (&nested, "Invalid 'tools[2].function.description': string too long.", "ugly"),
            (&nested, r#"{"param":"tools[0].function.parameters","message":"no"}"#, "good"),
            (
                &nested,
                "invalid JSON schema for tool ugly, tools[2].function.parameters: 'required' present",
                "ugly",
            ),
            (&nested, "tools[1].***.parameters must be valid JSON (line 1, column 1)", "Bad"),
            (&nested, r#"{"detail":[{"loc":["body","tools",0,"function","parameters"],"msg":"m"}]}"#, "good"),
            (&nested, "[{'loc': ('body', 'tools', 2, 'function', 'parameters'), 'msg': 'm'}]", "ugly"),
            (
                &gemini,
                "* GenerateContentRequest.tools[0].function_declarations[1].parameters.required[0]: property is not \
                 defined\n* GenerateContentRequest.tools[0].function_declarations[2].parameters: no",
                "Bad ugly",
            ),
            (&gemini, "Unknown name \"const\" at 'tools[0].function_declarations[0].parameters': no", "good"),
            (
                &gemini,
                "because `Bad` functionDeclaration `parameters.a` schema didn't specify the type",
                "Bad",
            ),
            (&gemini, "A FunctionDeclaration in the request exceeds the maximum allowed nesting depth.", ""),
            (&bedrock, "The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be", "good"),
            (&bedrock, "Value '' at 'toolConfig.tools.1.member.toolSpec.description' failed", "good"),
            // What is added to every tool, or means all of them.
            (&flat, "tools.2.cache_control: Extra inputs are not permitted", ""),
            (&flat, "tools.0.custom.eager_input_streaming: Extra inputs are not permitted", ""),
            (&nested, "tools[0]: missing field `function` at line 1", ""),
            (&nested, "tools[0].function.parameters: this model does not support tools", ""),
            // What the model or the history did.
            (&nested, "tool call validation failed: parameters for tool Bad did not match schema", ""),
            (&flat, "messages.1: `tool_use` ids were found without `tool_result` blocks: Bad", ""),
            (&flat, "tool_choice: Tool 'Bad' not found in provided tools", ""),
            // Neither a path nor a name of the request's tools.
            (&nested, "tools[9].function.parameters: no", ""),
            (&nested, "my_tools[1].parameters", ""),
            (&nested, "input[3].tools[1].name: no", ""),
            (&nested, "tool_choice.allowed_tools.tools[1].function.name: no", ""),
            // Gemini through a gateway.
            (
                &nested,
                "GenerateContentRequest.tools[0].function_declarations[1].parameters.properties[u].format: no",
                "Bad",
            ),
            (&nested, "参数tools[1].function.name非法", "Bad"),
            (&nested, "Invalid schema for function ugly: no", "ugly"),
            // What a schema makes it quote names another tool, or none.
            (&trap, "In context=('properties','schema for function good'), no", ""),
            (&trap, "Invalid schema for function 'Bad': 'schema for function good' is no type", "Bad"),
            (&trap, "Unknown name \"tools[0].name\" at 'tools[1].function.parameters': no", "Bad"),
            (&nested, "tools", ""),
            (&nested, "Invalid schema for function ''", ""),
            (&json!(null), "tools[1].function.parameters: no", ""),
        ] {
            assert_eq!(named(400, text, body), expected, "{text}");
            assert_eq!(named(429, text, body), "", "{text}");
        }
    }
}
