//! The tools whose definitions a refusal names: a provider that dislikes one refuses the whole request, and every later one.

use super::failure;
use serde_json::Value;
use std::collections::HashSet;
use throughline_wire::ToolDefinition;

/// Members of a definition that are the tool's own. What Throughline adds to each (`type`, `strict`, `cache_control`) says
/// nothing of one tool.
const OWN_MEMBERS: [&str; 6] = ["name", "description", "parameters", "schema", "input_schema", "inputschema"];

/// The tools of a request that its refusal names, by the place in the body or by the name: by its status,
/// [text](super::error_body::UpstreamErrorBody::text) and the body that was sent. None where it is about all of them.
pub(super) fn named_tools<'r>(
    status: u16,
    text: &str,
    body: &Value,
    tools: &'r [ToolDefinition],
) -> Vec<&'r ToolDefinition> {
    if !matches!(status, 400 | 422 | 500) || failure::refuses_tools(text) {
        return Vec::new();
    }
    let text = text.replace(", ", ",");
    let mut names: HashSet<String> = at_places(&text, body).map(str::to_lowercase).collect();
    names.extend(in_words(&text).map(str::to_owned));
    tools.iter().filter(|tool| names.contains(&tool.name.as_str().to_lowercase())).collect()
}

/// By the place in the body: `tools.3.custom.input_schema` (Anthropic; can1357/oh-my-pi#1101), `tools[9].function.parameters`
/// (OpenAI, Groq), `["body","tools",0,"function"]` (Pydantic: Mistral, vLLM), `tools[0].function_declarations[5].parameters`
/// (Gemini), `toolConfig.tools.26.toolSpec.inputSchema` (Bedrock).
fn at_places<'b>(text: &str, body: &'b Value) -> impl Iterator<Item = &'b str> {
    let list = [&body["tools"], &body["toolConfig"]["tools"]].into_iter().find(|list| list.is_array());
    text.match_indices("tools").filter_map(move |(at, word)| {
        let is_word = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let path = text[at + word.len()..].split([':', ')', ' ', '\n']).next().filter(|_| is_word)?;
        let mut parts =
            path.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|part| !part.is_empty());
        let number = parts.next()?.parse::<usize>().ok()?;
        let parts: Vec<&str> = parts.collect();
        // AWS counts from 1 where it checks its own types (BerriAI/litellm#19384), and from 0 where a model's rules are checked.
        let number = if parts.first() == Some(&"member") { number.checked_sub(1)? } else { number };
        let mut tool = list?.get(number)?;
        if let Some(declarations) = tool.get("functionDeclarations") {
            let at = parts.iter().position(|part| *part == "function_declarations")?;
            tool = declarations.get(parts.get(at + 1)?.parse::<usize>().ok()?)?;
        }
        let tool =
            [tool, &tool["function"], &tool["toolSpec"]].into_iter().find_map(|tool| tool["name"].as_str());
        tool.filter(|_| parts.iter().any(|part| OWN_MEMBERS.contains(part)))
    })
}

/// By the name: "Invalid schema for function 'x': …" (OpenAI, DeepSeek), "invalid JSON schema for tool x,…" (Groq),
/// "`x` functionDeclaration `parameters.a` schema …" (Vertex AI).
fn in_words(text: &str) -> impl Iterator<Item = &str> {
    const QUOTES: [char; 4] = ['\'', '"', '`', '\\'];
    let is_of_name = |c: char| c.is_alphanumeric() || "_-.:".contains(c);
    let after = ["schema for function ", "schema for tool "].into_iter().flat_map(move |words| {
        text.match_indices(words).map(move |(at, words)| {
            let name = text[at + words.len()..].trim_start_matches(QUOTES);
            name.split(|c| !is_of_name(c)).next().unwrap_or_default()
        })
    });
    let before = text.match_indices("` functiondeclaration ");
    after.chain(before.filter_map(|(at, _)| text[..at].rsplit('`').next()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The tools that a refusal of `good`, `Bad` and `ugly` names, which come after one of the provider's.
    fn named(status: u16, text: &str, body: &Value) -> String {
        let tools = ["good", "Bad", "ugly"].map(|name| ToolDefinition::new(name, "", json!({})));
        let named = named_tools(status, &text.to_lowercase(), body, &tools);
        named.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_tool_is_named_by_its_place_or_its_name_in_every_providers_words() {
        let names = ["good", "Bad", "ugly"];
        let tools = |form: fn(&str) -> Value| names.iter().map(|name| form(name)).collect::<Vec<_>>();
        let flat = json!({"tools": tools(|name| json!({"name": name}))});
        let nested = json!({"tools": tools(|name| json!({"type": "function", "function": {"name": name}}))});
        let hosted = json!({"tools": [{"type": "web_search", "name": "web_search"}, {"name": "good"}]});
        let gemini = json!({"tools": [{"functionDeclarations": tools(|name| json!({"name": name}))}]});
        let bedrock = json!({"toolConfig": {"tools": tools(|name| json!({"toolSpec": {"name": name}}))}});
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
            // No place and no name of ours.
            (&nested, "tools[9].function.parameters: no", ""),
            (&nested, "my_tools[1].parameters", ""),
            (&nested, "tools", ""),
            (&nested, "Invalid schema for function ''", ""),
            (&json!(null), "tools[1].function.parameters: no", ""),
        ] {
            assert_eq!(named(400, text, body), expected, "{text}");
            assert_eq!(named(429, text, body), "", "{text}");
        }
    }
}
