//! The meaning of a block's fields, emitted while they arrive: the tool, and its arguments as JSON.
//!
//! Arguments are streamed as soon as the tool is certain. Two things take back streamed arguments and emit them again at
//! the end of the block: a parameter that is given a second time, and the first numbered command.

use super::super::block_scanner::{ScanOutput, TextPosition};
use super::super::flat_arguments::{self, ValueKinds};
use super::super::protocol::{FindingKind, ScanEvent};
use super::syntax::{BARE_NAMES_MAX, COMMAND, COMMANDS_MAX, DIRECTIVES, TOOL_NAME, is_colon, is_key_char};
use super::texts::{self, VcpFlaw};
use crate::vocabulary::{ToolDefinition, VcpCommand};
use std::fmt::Write;
use std::mem::replace;
use std::sync::Arc;

/// The offered tools, as requests name them.
pub(super) struct VcpTools {
    tools: Vec<VcpTool>,
}

struct VcpTool {
    wire: String,
    vcp: Option<VcpCommand>,
    parameters: Vec<(String, ValueKinds)>,
}

impl VcpTools {
    pub(super) fn new(tools: &[ToolDefinition]) -> Self {
        let tool = |tool: &ToolDefinition| VcpTool {
            wire: tool.name.as_str().to_owned(),
            vcp: tool.vcp.clone(),
            parameters: flat_arguments::parameters(&tool.parameters)
                .into_iter()
                .map(|parameter| (parameter.name.to_owned(), parameter.kinds))
                .collect(),
        };
        Self { tools: tools.iter().map(tool).collect() }
    }

    /// The tool that has this name alone.
    fn tool_by_name(&self, name: &str) -> Option<&VcpTool> {
        let by_wire = self.tools.iter().find(|tool| tool.wire == name);
        let by_vcp = || self.tools.iter().find(|tool| tool.is_command(name, None));
        by_wire.or_else(by_vcp).or_else(|| self.tools.iter().find(|tool| tool.is_alias(name, None)))
    }

    /// The tool that this command of this name is.
    fn tool_by_command(&self, name: &str, command: &str) -> Option<&VcpTool> {
        let by_vcp = self.tools.iter().find(|tool| tool.is_command(name, Some(command)));
        let by_method = || self.tools.iter().find(|tool| tool.method_of(name) == Some(command));
        let by_alias = || self.tools.iter().find(|tool| tool.is_alias(name, Some(command)));
        by_vcp.or_else(by_method).or_else(by_alias)
    }

    /// Could a command of this name be a tool?
    fn has_commands(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| {
            tool.method_of(name).is_some()
                || tool.vcp.as_ref().is_some_and(|vcp| vcp.is_named(name) && vcp.command.is_some())
        })
    }
}

impl VcpTool {
    fn is_command(&self, name: &str, command: Option<&str>) -> bool {
        self.vcp.as_ref().is_some_and(|vcp| vcp.tool_name == name && vcp.command.as_deref() == command)
    }

    /// True if `name`, as the tool's manual has it, and `command` identify this tool.
    fn is_alias(&self, name: &str, command: Option<&str>) -> bool {
        self.vcp.as_ref().is_some_and(|vcp| vcp.is_named(name) && vcp.command.as_deref() == command)
    }

    /// `method` if the tool is `group_method`.
    fn method_of(&self, group: &str) -> Option<&str> {
        self.wire.strip_prefix(group)?.strip_prefix('_').filter(|method| !method.is_empty())
    }

    fn kinds(&self, key: &str) -> Option<&ValueKinds> {
        self.parameters.iter().find(|(name, _)| name == key).map(|(_, kinds)| kinds)
    }

    fn has(&self, key: &str) -> bool {
        self.kinds(key).is_some()
    }
}

/// One block's fields so far.
pub(super) struct RequestReader {
    tools: Arc<VcpTools>,
    start: TextPosition,
    fields: Vec<RequestField>,
    /// Names between fields that have a colon but no value.
    bare: Vec<String>,
    open: Option<OpenedCall>,
    emission: ArgumentEmission,
    /// True once a part of the arguments was emitted.
    emitted: bool,
}

struct RequestField {
    key: String,
    value: String,
    closed: bool,
}

/// The call that was opened.
struct OpenedCall {
    tool: Option<usize>,
    /// `command` chose the tool and is no argument.
    chosen: bool,
}

/// State of the emission of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArgumentEmission {
    /// Emitted as they arrive.
    Live,
    /// Emitted as they arrive, inside a text value.
    InText,
    /// All of them at the end of the block.
    AtEnd,
}

/// A call that the block makes.
struct BlockCall<'r> {
    tool: Option<&'r VcpTool>,
    chosen: bool,
    /// Names and values, each name once.
    arguments: Vec<(&'r str, &'r str)>,
}

impl RequestReader {
    pub(super) fn new(tools: Arc<VcpTools>, start: TextPosition) -> Self {
        let (fields, bare) = (Vec::new(), Vec::new());
        Self { tools, start, fields, bare, open: None, emission: ArgumentEmission::Live, emitted: false }
    }

    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// The name of the last field.
    pub(super) fn key(&self) -> &str {
        self.fields.last().map_or("", |field| &field.key)
    }

    // --- fields as they arrive ---

    /// Handles text before a field, `key`, or before the end: it is ignored, unless 「始」 was forgotten.
    pub(super) fn note_gap(&mut self, gap: &str, key: Option<&str>) {
        let mut parts: Vec<&str> = gap.split([',', '，', '\n']).collect();
        if key.is_some() {
            // The key itself may be on a line above its value.
            while let Some(part) = parts.pop() {
                if part.contains(is_key_char) {
                    break;
                }
            }
        }
        for part in parts {
            let named = part.trim_start();
            let key = &named[..named.len() - named.trim_start_matches(is_key_char).len()];
            let is_named = named[key.len()..].trim_start().starts_with(is_colon);
            let room = self.bare.len() < BARE_NAMES_MAX;
            if room && is_named && !key.is_empty() && !self.bare.iter().any(|known| known == key) {
                self.bare.push(key.to_owned());
            }
        }
    }

    pub(super) fn begin_field(&mut self, key: String, out: &mut ScanOutput<'_>) {
        let key = if key.eq_ignore_ascii_case(TOOL_NAME) { TOOL_NAME.to_owned() } else { key };
        let again = self.fields.iter().any(|field| field.key == key);
        self.fields.push(RequestField { key, value: String::new(), closed: false });
        if self.emission == ArgumentEmission::AtEnd || self.open.is_none() {
            return;
        }
        let key = self.key();
        let is_argument = self.is_argument(key);
        if self.command_number(key).is_some() || (is_argument && again) {
            return self.defer_arguments(out);
        }
        if is_argument
            && self.opened_tool().and_then(|tool| tool.kinds(key)).is_none_or(ValueKinds::is_any_text)
        {
            let head = format!("{}{}:\"", self.separator(), quoted(key));
            self.emit_arguments(&head, out);
            self.emission = ArgumentEmission::InText;
        }
    }

    pub(super) fn push_value(&mut self, piece: &str, out: &mut ScanOutput<'_>) {
        if self.emission == ArgumentEmission::InText {
            let quoted = quoted(piece);
            self.emit_arguments(&quoted[1..quoted.len() - 1], out);
        }
        if let Some(field) = self.fields.last_mut() {
            field.value.push_str(piece);
        }
    }

    pub(super) fn end_field(&mut self, out: &mut ScanOutput<'_>) {
        if let Some(field) = self.fields.last_mut() {
            field.closed = true;
        }
        if self.emission == ArgumentEmission::InText {
            self.emission = ArgumentEmission::Live;
            return self.emit_arguments("\"", out);
        }
        match &self.open {
            None => self.try_open(out),
            Some(_) if self.emission == ArgumentEmission::Live && self.is_argument(self.key()) => {
                self.emit_field(self.fields.len() - 1, out);
            }
            Some(_) => {}
        }
    }

    /// Opens the call as soon as no later field can change which tool is meant.
    fn try_open(&mut self, out: &mut ScanOutput<'_>) {
        let Some(name) = self.tool_name().filter(|name| !name.is_empty()) else { return };
        let tools = self.tools.clone();
        let direct = tools.tool_by_name(name);
        let numbered = self.fields.iter().any(|field| self.command_number(&field.key).is_some());
        let (tool, chosen) = match direct {
            _ if !tools.has_commands(name) => (direct, false),
            Some(tool) if tool.has(COMMAND) => (direct, false),
            _ if numbered => return,
            _ => match self.values(COMMAND).next().and_then(|command| tools.tool_by_command(name, command)) {
                Some(tool) => (Some(tool), true),
                None => return,
            },
        };
        out.emit(ScanEvent::Opened { name: tool.map_or(name, |tool| &tool.wire) });
        let tool = tool.and_then(|tool| tools.tools.iter().position(|known| std::ptr::eq(known, tool)));
        self.open = Some(OpenedCall { tool, chosen });
        let keys: Vec<&str> = self.fields.iter().map(|field| field.key.as_str()).collect();
        let twice = |at: usize| self.is_argument(keys[at]) && keys[..at].contains(&keys[at]);
        if numbered || (0..keys.len()).any(twice) {
            self.emission = ArgumentEmission::AtEnd;
            return;
        }
        for at in 0..self.fields.len() {
            if self.is_argument(&self.fields[at].key) {
                self.emit_field(at, out);
            }
        }
    }

    // --- the end of the block ---

    /// The end marker: the block is whole.
    pub(super) fn seal(&mut self, raw: &str, out: &mut ScanOutput<'_>) {
        let tools = self.tools.clone();
        let calls = match self.calls(&tools) {
            Ok(calls) => calls,
            Err(flaw) => return self.refuse(&flaw, raw, out),
        };
        let written = self.tool_name().unwrap_or_default();
        let mut opened = self.open.is_some();
        for call in &calls {
            if !replace(&mut opened, false) {
                out.emit(ScanEvent::Opened { name: call.tool.map_or(written, |tool| &tool.wire) });
            } else if self.emission == ArgumentEmission::Live {
                out.emit(ScanEvent::Arguments(if self.emitted { "}" } else { "{}" }));
                out.emit(ScanEvent::Sealed);
                continue;
            }
            out.emit(ScanEvent::Arguments(&call.arguments_text()));
            out.emit(ScanEvent::Sealed);
        }
        let mut idle: Vec<&str> = Vec::new();
        for RequestField { key, .. } in &self.fields {
            let known = calls.first().and_then(|call| call.tool).is_some_and(|tool| tool.has(key));
            if DIRECTIVES.contains(&key.as_str()) && !known && !idle.contains(&key.as_str()) {
                idle.push(key);
            }
        }
        let chosen = calls.first().is_some_and(|call| call.chosen);
        let is_passed_on =
            |key: &str| key != TOOL_NAME && !idle.contains(&key) && !(chosen && key == COMMAND);
        let keys: Vec<&str> = self.fields.iter().map(|field| field.key.as_str()).collect();
        let mut twice: Vec<&str> = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            if is_passed_on(key) && keys[..at].contains(key) && !twice.contains(key) {
                twice.push(key);
            }
        }
        if !idle.is_empty() {
            out.report(FindingKind::Directive, self.start, texts::no_effect_text(&idle));
        }
        if !twice.is_empty() {
            out.report(FindingKind::GivenTwice, self.start, texts::given_twice_text(&twice));
        }
    }

    /// The block never runs.
    pub(super) fn refuse(&mut self, flaw: &VcpFlaw, raw: &str, out: &mut ScanOutput<'_>) {
        if self.open.is_none()
            && let Some(name) = self.tool_name().filter(|name| !name.is_empty())
        {
            out.emit(ScanEvent::Opened { name });
        }
        out.emit(ScanEvent::Refused { reason: flaw.to_string(), raw });
    }

    fn calls<'r>(&'r self, tools: &'r VcpTools) -> Result<Vec<BlockCall<'r>>, VcpFlaw> {
        let Some(name) = self.tool_name() else {
            let bare = self.bare.iter().find(|key| key.eq_ignore_ascii_case(TOOL_NAME));
            return Err(bare.map_or(VcpFlaw::NoToolName, |_| VcpFlaw::Bare { key: TOOL_NAME.into() }));
        };
        if let Some(other) = self.values(TOOL_NAME).find(|other| *other != name) {
            return Err(VcpFlaw::TwoToolNames { first: name.into(), second: other.into() });
        }
        if name.is_empty() {
            return Err(VcpFlaw::NoToolName);
        }
        let mut numbers: Vec<u32> =
            self.fields.iter().filter_map(|field| self.command_number(&field.key)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let direct = tools.tool_by_name(name);
        let chooses = tools.has_commands(name) && !direct.is_some_and(|tool| tool.has(COMMAND));
        let choose = |command: Option<&str>| {
            let chosen = command.filter(|_| chooses).and_then(|command| tools.tool_by_command(name, command));
            (chosen.or(direct), chosen.is_some())
        };
        let mut calls = Vec::new();
        if numbers.is_empty() {
            let mut commands = self.values(COMMAND);
            let first = commands.next();
            if chooses
                && let Some(first) = first
                && let Some(second) = commands.find(|second| *second != first)
            {
                return Err(VcpFlaw::TwoCommands { first: first.into(), second: second.into() });
            }
            let (tool, chosen) = choose(first);
            calls.push(BlockCall { tool, chosen, arguments: Vec::new() });
            let made = self.arguments_of(&calls[0], None, &[]);
            calls[0].arguments = made;
        } else {
            if self.values(COMMAND).next().is_some() {
                return Err(VcpFlaw::MixedCommands);
            }
            if numbers.len() > COMMANDS_MAX {
                return Err(VcpFlaw::TooManyCommands);
            }
            for number in &numbers {
                let command = self.values(&format!("{COMMAND}{number}")).next_back();
                let (tool, chosen) = choose(command);
                let mut call = BlockCall { tool, chosen, arguments: Vec::new() };
                call.arguments = self.arguments_of(&call, Some(*number), &numbers);
                calls.push(call);
            }
        }
        let given = |key: &str| self.fields.iter().any(|field| field.key == key);
        let means = |key: &str| {
            let knows = |key: &str| calls.iter().any(|call| call.tool.is_some_and(|tool| tool.has(key)));
            let base = numbered(key).map_or(key, |(base, _)| base);
            key.eq_ignore_ascii_case(TOOL_NAME) || knows(key) || knows(base) || (base == COMMAND && chooses)
        };
        match self.bare.iter().find(|key| means(key) && !given(key)) {
            Some(key) if !key.eq_ignore_ascii_case(TOOL_NAME) => Err(VcpFlaw::Bare { key: key.clone() }),
            _ => Ok(calls),
        }
    }

    /// The arguments of one call: of the command with this number, if commands are numbered.
    fn arguments_of<'r>(
        &'r self,
        call: &BlockCall<'_>,
        number: Option<u32>,
        numbers: &[u32],
    ) -> Vec<(&'r str, &'r str)> {
        let has = |key: &str| call.tool.is_some_and(|tool| tool.has(key));
        let (mut shared, mut own) = (Vec::new(), Vec::new());
        for RequestField { key, value, .. } in &self.fields {
            let (key, of) = match numbered(key) {
                Some((base, of)) if !has(key) && numbers.contains(&of) => (base, Some(of)),
                _ => (key.as_str(), None),
            };
            let is_choice = key == COMMAND && call.chosen;
            let is_idle = DIRECTIVES.contains(&key) && !has(key);
            if key == TOOL_NAME || is_choice || is_idle {
                continue;
            }
            match of {
                None => shared.push((key, value.as_str())),
                Some(_) if of == number => own.push((key, value.as_str())),
                Some(_) => {}
            }
        }
        shared.append(&mut own);
        let keys: Vec<&str> = shared.iter().map(|(key, _)| *key).collect();
        let mut at = 0;
        shared.retain(|(key, _)| {
            at += 1;
            !keys[at..].contains(key)
        });
        shared
    }

    // --- helpers ---

    /// The values of the closed fields of this name, without white space around them.
    fn values<'r, 'k>(&'r self, key: &'k str) -> impl DoubleEndedIterator<Item = &'r str> + use<'r, 'k> {
        let of = move |field: &&RequestField| field.closed && field.key == key;
        self.fields.iter().filter(of).map(|field| field.value.trim())
    }

    fn tool_name(&self) -> Option<&str> {
        let named = self.fields.iter().find(|field| field.closed && field.key == TOOL_NAME);
        named.map(|field| field.value.trim())
    }

    fn opened_tool(&self) -> Option<&VcpTool> {
        self.tools.tools.get(self.open.as_ref()?.tool?)
    }

    /// True if this field is passed on to the opened tool.
    fn is_argument(&self, key: &str) -> bool {
        let chosen = self.open.as_ref().is_some_and(|open| open.chosen);
        let idle = DIRECTIVES.contains(&key) && !self.opened_tool().is_some_and(|tool| tool.has(key));
        key != TOOL_NAME && !idle && !(key == COMMAND && chosen)
    }

    /// The number of a numbered command.
    fn command_number(&self, key: &str) -> Option<u32> {
        let (base, number) = numbered(key)?;
        let direct = || self.tools.tool_by_name(self.tool_name()?);
        (base == COMMAND && !direct().is_some_and(|tool| tool.has(key))).then_some(number)
    }

    fn defer_arguments(&mut self, out: &mut ScanOutput<'_>) {
        self.emission = ArgumentEmission::AtEnd;
        if self.emitted {
            out.emit(ScanEvent::Restarted);
        }
    }

    fn separator(&self) -> char {
        if self.emitted { ',' } else { '{' }
    }

    fn emit_arguments(&mut self, text: &str, out: &mut ScanOutput<'_>) {
        if !text.is_empty() {
            self.emitted = true;
            out.emit(ScanEvent::Arguments(text));
        }
    }

    fn emit_field(&mut self, at: usize, out: &mut ScanOutput<'_>) {
        let RequestField { key, value, .. } = &self.fields[at];
        let kinds = self.opened_tool().and_then(|tool| tool.kinds(key));
        let text = format!("{}{}:{}", self.separator(), quoted(key), literal(kinds, value));
        self.emit_arguments(&text, out);
    }
}

impl BlockCall<'_> {
    fn arguments_text(&self) -> String {
        let mut text = String::from("{");
        for (at, (key, value)) in self.arguments.iter().enumerate() {
            let kinds = self.tool.and_then(|tool| tool.kinds(key));
            let separator = if at == 0 { "" } else { "," };
            // Writing to a String cannot fail.
            let _ = write!(text, "{separator}{}:{}", quoted(key), literal(kinds, value));
        }
        text.push('}');
        text
    }
}

/// `path2` is `path` with the number 2. Numbers count from 1 and have no leading zeros.
fn numbered(key: &str) -> Option<(&str, u32)> {
    let base = key.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &key[base.len()..];
    (!base.is_empty() && !digits.starts_with('0')).then_some(())?;
    Some((base, digits.parse().ok()?))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A value as JSON: of another type than text only where the schema allows no text and the value is exactly one of
/// that type.
fn literal(kinds: Option<&ValueKinds>, value: &str) -> String {
    let Some(kinds) = kinds else { return quoted(value) };
    let bare = value.trim();
    let is_choice = |text: &str| kinds.choices.iter().any(|choice| choice.as_str() == Some(text));
    if kinds.text {
        let layout = !is_choice(value) && is_choice(bare);
        return quoted(if layout { bare } else { value });
    }
    let is_literal = (kinds.integer && is_integer(bare))
        || (kinds.number && is_number(bare))
        || (kinds.boolean && matches!(bare, "true" | "false"))
        || (kinds.null && bare == "null");
    if is_literal { bare.to_owned() } else { quoted(value) }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain && (digits == "0" || !digits.starts_with('0'))
}

fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    is_integer(whole)
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}
