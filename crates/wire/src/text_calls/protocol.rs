//! Text protocols: how tools are described to a model that has no native calls, how its calls are read back
//! from its visible text, and how calls and results are written into its history.

use crate::vocabulary::{Call, CallOutcome, ToolDefinition};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A text protocol. All of it is pure: no state between calls, no clock, no randomness.
///
/// Calls are read twice, by two readers that share only the rule for quotations: [`scanner`](Self::scanner)
/// while the reply arrives, for the live card and for tools that may start early, and [`parse`](Self::parse)
/// over the whole text of a step. They agree for every text and every cut of it: same calls, same visible
/// text, same findings.
///
/// ```
/// use throughline_wire::ToolDefinition;
/// use throughline_wire::text_calls::protocol;
///
/// let weather = ToolDefinition {
///     name: "weather".into(),
///     description: "Weather in a city".to_owned(),
///     parameters: serde_json::json!({"type": "object", "properties": {"city": {"type": "string"}}}).into(),
///     vcp: None,
///     strict: None,
/// };
/// let xml = protocol("xml").ok_or("no such protocol")?;
/// assert!(xml.definitions(&[weather.clone()]).contains("Weather in a city"));
/// let reply = xml.parse("Just text.", &[weather]);
/// assert_eq!((reply.text.as_str(), reply.calls.len()), ("Just text.", 0));
/// # Ok::<(), &str>(())
/// ```
pub trait TextProtocol: Send + Sync + fmt::Debug {
    /// Name of the protocol in configurations: `vcp`, `xml`.
    fn name(&self) -> &'static str;

    /// The instructions for calling tools, for the model: the paragraph in front of the definitions.
    fn guide(&self) -> &'static str;

    /// The tools, for the model: one block each, one blank line between, in the order given. Empty for no tools.
    fn definitions(&self, tools: &[ToolDefinition]) -> String;

    /// Checks that calls of this tool can be written in this protocol.
    ///
    /// # Errors
    ///
    /// The obstacle, as a sentence for a person: a protocol with flat arguments cannot carry nested ones.
    fn can_offer(&self, tool: &ToolDefinition) -> Result<(), String>;

    /// Reads a reply as it arrives. `tools` are the offered ones: they determine the meaning of a name and
    /// the type of a value, never if a call is reported.
    fn scanner(&self, tools: Arc<[ToolDefinition]>) -> Box<dyn TextScanner>;

    /// Reads a whole reply, simply and independently of the scanner.
    fn parse(&self, text: &str, tools: &[ToolDefinition]) -> ParsedText;

    /// A call as the model would have written it, for the history. Parsing it yields the call again.
    fn format_call(&self, call: &Call, tools: &[ToolDefinition]) -> String;

    /// The outcomes of a step's calls, for the model: in a frame that the data inside cannot close, since it is
    /// escaped and since the frame carries a nonce derived from the first call's id. Empty for no results.
    fn format_results(&self, results: &[(Call, CallOutcome)], tools: &[ToolDefinition]) -> String;

    /// Escapes data (text of the user, output of a tool) so that it contains no marker of this protocol.
    /// `unescape(escape(x)) == x` for every text.
    fn escape<'t>(&self, data: &'t str) -> Cow<'t, str>;

    /// The other way: for argument values and shown text, so that escaped data which the model quotes reads as it
    /// was. [`scanner`](Self::scanner) and [`parse`](Self::parse) have done it already.
    fn unescape<'t>(&self, text: &'t str) -> Cow<'t, str>;
}

/// Reads one reply that arrives in pieces, for any cut. Each scanner is used for one reply.
pub trait TextScanner: Send {
    /// Takes the next piece: it is the end of `text`, the visible text of the reply so far.
    fn push(&mut self, text: &str, sink: &mut dyn FnMut(ScanEvent<'_>));

    /// Ends the reply, whose whole text is `text`: held text is emitted, and an open call is refused.
    fn finish(&mut self, text: &str, sink: &mut dyn FnMut(ScanEvent<'_>));
}

/// Events of a scanner. At most one call is open at a time:
/// `Opened (Arguments | Restarted)* (Sealed | Refused)`, or `Refused` alone for a block without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanEvent<'t> {
    /// Visible text, never empty, never markup.
    Text(&'t str),
    /// A call begins.
    Opened {
        /// The wire name of the offered tool; a name that means none of them, as it was written.
        name: &'t str,
    },
    /// More of the open call's arguments: JSON text of an object, never empty.
    Arguments(&'t str),
    /// The open call's arguments so far are void; they come again.
    Restarted,
    /// The end marker: the open call is whole, its arguments are one JSON object.
    Sealed,
    /// The open call, or one without a name, never runs.
    Refused {
        /// The error and its correction, as sentences for the user and the model.
        reason: String,
        /// The block as written, up to where it went wrong, and at most its first [`RAW_BYTES_MAX`] bytes.
        raw: &'t str,
    },
    /// A finding for the user that is not a call.
    Finding(MarkupFinding),
}

/// A whole text, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedText {
    /// The visible text: all of it but markup.
    pub text: String,
    /// The calls, in the order in which they were written.
    pub calls: Vec<ParsedCall>,
    /// Further findings for the user.
    pub findings: Vec<MarkupFinding>,
}

/// A call in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedCall {
    /// The wire name of the offered tool; a name that means none of them, as it was written; empty if none was.
    pub name: String,
    /// The arguments as JSON text of an object, or why the call is refused.
    pub arguments: Result<String, String>,
    /// The block in the text, in bytes.
    pub span: Range<usize>,
    /// The ordinal of the block, from 0: numbered commands are several calls of one block.
    pub block: usize,
}

/// Something in a text that the user should know and that is not a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkupFinding {
    /// Kind of the finding.
    pub kind: FindingKind,
    /// Offset, in bytes from the beginning of the reply.
    pub offset: usize,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
    /// A sentence for a person.
    pub message: String,
}

/// Kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// A request in a fenced code block: shown, not run.
    InCodeFence,
    /// A request in inline code: shown, not run.
    InInlineCode,
    /// A request in indented code: shown, not run.
    InIndentedCode,
    /// A request in a quotation (`>`): shown, not run.
    InQuotation,
    /// A request in quotation marks or in a JSON string: shown, not run.
    InQuotationMarks,
    /// A request in a list item: shown, not run.
    InList,
    /// A request in a table: shown, not run.
    InTable,
    /// A request in a comment or a heading: shown, not run.
    InComment,
    /// A request in a thinking block: shown, not run.
    InThinking,
    /// A block that is marked as an example (`TOOL_REQUEST_ESCAPE`): shown, not run.
    MarkedInert,
    /// The reply ended in the middle of a marker, which is not shown.
    TornMarker,
    /// An end marker without a beginning, which is not shown.
    StrayEnd,
    /// A field for another system that has no effect here.
    Directive,
    /// A parameter that is given more than once: the last value counts.
    GivenTwice,
}

impl FindingKind {
    /// The sentence about it.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            FindingKind::InCodeFence => "A tool request in a code block is an example: it was not run.",
            FindingKind::InInlineCode => "A tool request in inline code is an example: it was not run.",
            FindingKind::InIndentedCode => "A tool request in indented code is an example: it was not run.",
            FindingKind::InQuotation => "A tool request in a quotation (`>`) was not run.",
            FindingKind::InQuotationMarks => {
                "A tool request in quotation marks is an example: it was not run."
            }
            FindingKind::InList => "A tool request in a list is an example: it was not run.",
            FindingKind::InTable => "A tool request in a table is an example: it was not run.",
            FindingKind::InComment => {
                "A tool request in a comment or a heading is an example: it was not run."
            }
            FindingKind::InThinking => "A tool request in a thinking block was not run.",
            FindingKind::MarkedInert => "A block marked as an example (`…_ESCAPE`) was not run.",
            FindingKind::TornMarker => "The reply ended in the middle of a marker, which is not shown.",
            FindingKind::StrayEnd => "An end marker without a request before it is not shown.",
            FindingKind::Directive => "A field for another system has no effect here.",
            FindingKind::GivenTwice => "A parameter is given more than once: the last value counts.",
        }
    }
}

/// Bytes of a refused block that are shown with the refusal; cut at a character's border.
pub const RAW_BYTES_MAX: usize = 4096;

/// Number of findings reported for one reply; further ones add nothing.
pub const FINDINGS_MAX: usize = 32;

/// Line and column of a position in a text, both from 1; the column counts characters.
pub fn line_and_column(text: &str, at: usize) -> (u32, u32) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let lines = memchr::memchr_iter(b'\n', before.as_bytes()).count();
    (count(lines).saturating_add(1), count(before[line_start..].chars().count()).saturating_add(1))
}

/// Every protocol.
pub static PROTOCOLS: &[&dyn TextProtocol] = &[&super::VcpProtocol, &super::XmlProtocol];

/// The protocol of this name.
pub fn protocol(name: &str) -> Option<&'static dyn TextProtocol> {
    PROTOCOLS.iter().copied().find(|protocol| protocol.name() == name)
}
