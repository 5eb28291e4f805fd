//! Arguments of commands that read recorded data: decode, history, export, import, replay.

use super::StoreArgs;
use clap::{Args as ClapArgs, ValueHint};
use std::path::PathBuf;
use throughline_wire::Dialect;

/// `throughline decode`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DecodeArgs {
    /// Wire format of the body, one of the names below; auto finds it out
    #[arg(long, value_name = "API", default_value = "auto")]
    pub(crate) api: DecodeApi,
    /// Feed the decoder random chunks of 1 to 300 bytes, from this seed; every seed gives the same result
    #[arg(long, value_name = "N")]
    pub(crate) chunk_seed: Option<u64>,
    /// Recover tool calls that leaked into the text
    #[arg(long)]
    pub(crate) recover: bool,
    /// Print each decoded event as a JSON line as it arrives, instead of one object
    #[arg(long)]
    pub(crate) events: bool,
    /// Treat <think>…</think> in the text as reasoning
    #[arg(long)]
    pub(crate) think: bool,
    /// Exit with code 2 if the body is cut off or is an error
    #[arg(long)]
    pub(crate) strict: bool,
}

/// Wire format for `decode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeApi {
    /// The one that fits best.
    Auto,
    Named(Dialect),
}

impl std::str::FromStr for DecodeApi {
    type Err = <Dialect as std::str::FromStr>::Err;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name == "auto" { Ok(Self::Auto) } else { name.parse().map(Self::Named) }
    }
}

/// `throughline history`.
#[derive(Debug, ClapArgs)]
pub(crate) struct HistoryArgs {
    /// List turns instead of tool calls
    #[arg(long, conflicts_with_all = ["tool", "source", "turn", "text"])]
    pub(crate) turns: bool,
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls of tools from this source: builtin, mcp:files, ...
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// Only this status; for calls also several: error,denied; for turns: completed, running, ...
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Only this turn
    #[arg(long, value_name = "TURN")]
    pub(crate) turn: Option<String>,
    /// Only this conversation
    #[arg(long, value_name = "CONVERSATION")]
    pub(crate) conversation: Option<String>,
    /// Only calls with this text in name, arguments, result or error
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Only this user
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Continue the list: what stands before this row, as the end of the page before names it
    #[arg(long, value_name = "CURSOR")]
    pub(crate) before: Option<String>,
    /// Store to read, also while a server runs: a file or postgres://… [default: from the configuration]
    #[arg(long, value_name = "FILE|URL", value_hint = ValueHint::FilePath)]
    pub(crate) store: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `throughline export`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ExportArgs {
    /// Id of the conversation
    #[arg(value_name = "CONVERSATION")]
    pub(crate) conversation: String,
    /// Output format [default: from FILE's extension, else jsonl]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) format: Option<ExportFileFormat>,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Markdown only: last turn of the branch [default: the latest one]
    #[arg(long, value_name = "TURN")]
    pub(crate) leaf: Option<String>,
    /// Store to read, also while a server runs: a file or postgres://… [default: from the configuration]
    #[arg(long, value_name = "FILE|URL", value_hint = ValueHint::FilePath)]
    pub(crate) store: Option<PathBuf>,
}

/// File format of an exported conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFileFormat {
    /// Complete: the format that `import` reads
    Jsonl,
    /// One branch as readable text
    Markdown,
    /// Tool calls, for spreadsheets
    Csv,
}

/// `throughline import`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// File to import; `-` for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) at: StoreArgs,
    /// Print the conversation as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `throughline replay`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ReplayArgs {
    /// Id of the turn [default: the latest one]
    #[arg(value_name = "TURN", conflicts_with = "from")]
    pub(crate) turn: Option<String>,
    /// Store to read, also while a server runs: a file or postgres://… [default: from the configuration]
    #[arg(long, value_name = "FILE|URL", conflicts_with = "from", value_hint = ValueHint::FilePath)]
    pub(crate) store: Option<PathBuf>,
    /// File with the turn's events as JSON lines; `-` for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from: Option<PathBuf>,
    /// Playback speed: 4x, 0.5x or max [default: 1x; max if output is a pipe]
    #[arg(long, value_name = "SPEED")]
    pub(crate) speed: Option<String>,
    /// Step through the events with the arrow keys
    #[arg(long, conflicts_with_all = ["speed", "events", "at"])]
    pub(crate) step: bool,
    /// Print the events as JSON lines
    #[arg(long, conflicts_with = "at")]
    pub(crate) events: bool,
    /// Print the message as it was after this event
    #[arg(long, value_name = "SEQ", group = "found")]
    pub(crate) at: Option<u64>,
    /// Decode the stored upstream bytes again and compare the result with the log
    #[arg(long, group = "found", conflicts_with_all = ["from", "speed", "step", "events", "plain"])]
    pub(crate) decode_raw: bool,
    /// Print JSON: with --at the whole message, with --decode-raw the findings
    #[arg(long, requires = "found")]
    pub(crate) json: bool,
    /// Plain text without repainting, even on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
}
