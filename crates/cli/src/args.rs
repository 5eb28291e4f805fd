//! The command line as types.

use crate::messages;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use std::path::PathBuf;
use throughline_wire::Dialect;

/// One turn, one message, one stream: talk to any model with tools that run in mid-reply.
#[derive(Debug, Parser)]
#[command(name = "throughline", version, propagate_version = true, after_long_help = messages::EXIT_CODES)]
pub(crate) struct CliArgs {
    /// Subcommand to run.
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Talk to a model in the terminal
    #[command(after_long_help = messages::CHAT_HELP)]
    Chat(ChatArgs),
    /// Ask one thing and print the answer
    #[command(after_long_help = messages::ASK_HELP)]
    Ask(AskArgs),
    /// Decode a recorded or piped response of any provider to one JSON object
    #[command(after_long_help = messages::DECODE_HELP)]
    Decode(DecodeArgs),
    /// Read a model's reply as text: which calls it holds, and what would become of them
    #[command(after_long_help = messages::PARSE_HELP)]
    Parse(ParseArgs),
    /// List, show and run tools
    #[command(after_long_help = messages::TOOLS_HELP)]
    Tools(ToolsArgs),
    /// List the model endpoints that are known by name, and those configured
    #[command(after_long_help = messages::UPSTREAMS_HELP)]
    Upstreams(UpstreamsArgs),
    /// Connect a model of your own: choose it, give its key, see that it answers; throughline.toml is written
    #[command(after_long_help = messages::CONNECT_HELP)]
    Connect(ConnectArgs),
    /// Serve agents over HTTP: the own API, WebSocket, and /v1/chat/completions for any OpenAI client
    #[command(after_long_help = messages::SERVE_HELP)]
    Serve(ServeArgs),
    /// Make, list and revoke the keys of the server
    #[command(after_long_help = messages::KEYS_HELP)]
    Keys(KeysArgs),
    /// Look at configuration, keys, tools and sandbox, and say what to do about what does not work
    #[command(after_long_help = messages::DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// List tool calls and turns of the past
    #[command(after_long_help = messages::HISTORY_HELP)]
    History(HistoryArgs),
    /// Write a conversation down: everything, or to be read, or its tool calls as a table
    #[command(after_long_help = messages::EXPORT_HELP)]
    Export(ExportArgs),
    /// Read a conversation in: one that was exported, or a list of OpenAI messages
    #[command(after_long_help = messages::IMPORT_HELP)]
    Import(ImportArgs),
    /// Show a past turn again, screen by screen
    #[command(after_long_help = messages::REPLAY_HELP)]
    Replay(ReplayArgs),
    /// Serve a scripted LLM upstream, or the demo model, for others to test against
    #[cfg(feature = "demo")]
    #[command(after_long_help = messages::MOCK_HELP)]
    Mock(MockArgs),
    /// Print shell completions
    #[command(after_long_help = messages::COMPLETIONS_HELP)]
    Completions(CompletionsArgs),
}

/// Options that choose the model and the configuration.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct ModelArgs {
    /// Configuration file [default: throughline.toml in the current directory, if there is one]
    #[arg(long, value_name = "FILE", env = "THROUGHLINE_CONFIG", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Agent of the configuration
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Model, as UPSTREAM/MODEL (deepseek/deepseek-chat, ollama/qwen3), or demo
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Tool-calling mode: native, text or auto
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// Ask an endpoint that is in no configuration: its base URL, with --api
    #[arg(long, value_name = "URL", requires = "api", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
    /// Wire format of --base-url: openai-chat, openai-responses, anthropic, gemini or ollama
    #[arg(long, value_name = "API", requires = "base_url")]
    pub(crate) api: Option<Dialect>,
    /// Environment variable that holds the key of --base-url
    #[arg(long, value_name = "VARIABLE", requires = "base_url")]
    pub(crate) key_env: Option<String>,
    /// Stream replies: on or off
    #[arg(long, value_name = "SWITCH")]
    pub(crate) streaming: Option<String>,
    /// Offer the demo tools, too: invented weather, a calendar in memory, a tool that fails (demo.*)
    #[arg(long)]
    pub(crate) demo_tools: bool,
}

/// `throughline chat`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) choice: ModelArgs,
    /// Allow every call without asking
    #[arg(long)]
    pub(crate) approve: bool,
    /// Plain text, nothing repainted, even on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
}

/// `throughline ask`.
#[derive(Debug, ClapArgs)]
pub(crate) struct AskArgs {
    /// Prompt; `-` reads it from standard input
    #[arg(required = true, value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
    #[command(flatten)]
    pub(crate) choice: ModelArgs,
    /// Send a picture along (png, jpeg, gif or webp; may be repeated)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) image: Vec<PathBuf>,
    /// Allow every call without asking
    #[arg(long)]
    pub(crate) approve: bool,
    /// Print the whole message as one JSON object when it is done
    #[arg(long, conflicts_with = "events")]
    pub(crate) json: bool,
    /// Print the turn's events as JSON lines as they come
    #[arg(long)]
    pub(crate) events: bool,
}

/// `throughline connect`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ConnectArgs {
    /// A name of `throughline upstreams`; with --base-url, one of your own [default: it is asked]
    #[arg(value_name = "UPSTREAM")]
    pub(crate) upstream: Option<String>,
    /// Model that is to answer [default: it is asked]
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Agent of the file that is given the model
    #[arg(long, value_name = "NAME", default_value = throughline::config::DEFAULT_AGENT)]
    pub(crate) agent: String,
    /// Environment variable that holds the key; then no key is stored
    #[arg(long, value_name = "VARIABLE", conflicts_with = "key_stdin")]
    pub(crate) key_env: Option<String>,
    /// Take the key from standard input
    #[arg(long)]
    pub(crate) key_stdin: bool,
    /// An address of your own, with --api
    #[arg(long, value_name = "URL", requires_all = ["api", "upstream"], value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
    /// Wire format of --base-url: openai-chat, openai-responses, anthropic, gemini or ollama
    #[arg(long, value_name = "API", requires = "base_url")]
    pub(crate) api: Option<Dialect>,
    /// Configuration file that is written [default: throughline.toml in the current directory]
    #[arg(long, value_name = "FILE", env = "THROUGHLINE_CONFIG", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Forget the stored key of this one
    #[arg(long, requires = "upstream")]
    pub(crate) forget: bool,
}

/// `throughline decode`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DecodeArgs {
    /// Wire format of the body, one of the names below
    #[arg(long, value_name = "API")]
    pub(crate) api: Dialect,
    /// Feed the decoder pieces of 1 to 300 bytes, cut by this seed; the result is the same for every seed
    #[arg(long, value_name = "N")]
    pub(crate) chunk_seed: Option<u64>,
    /// Turn tool calls that leaked into the text into calls
    #[arg(long)]
    pub(crate) recover: bool,
    /// Print each thing the stream said as a JSON line, as it arrives, instead of the whole
    #[arg(long)]
    pub(crate) events: bool,
    /// Split <think>…</think> in the text off as reasoning
    #[arg(long)]
    pub(crate) think: bool,
}

/// `throughline parse`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ParseArgs {
    /// The reply; `-` stands for standard input
    #[arg(value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Text protocol to read it in: vcp, xml or auto
    #[arg(long, value_name = "PROTOCOL", default_value = "auto")]
    pub(crate) protocol: String,
    #[command(flatten)]
    pub(crate) choice: ModelArgs,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `throughline tools`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
}

/// The subcommands of `tools`.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// All tools: what they may do, where they come from, whether models may call them
    List {
        #[command(flatten)]
        choice: ModelArgs,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// One tool with its schema
    Show {
        /// Its name, such as demo.weather
        name: String,
        #[command(flatten)]
        choice: ModelArgs,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// The system prompt of an agent, tools included, and what it costs in tokens
    Prompt {
        #[command(flatten)]
        choice: ModelArgs,
        /// As in this text protocol: vcp or xml
        #[arg(long, value_name = "PROTOCOL")]
        protocol: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Answers that you have given for ever
    Remembered {
        /// Take the answer of this number back
        #[arg(long, value_name = "NUMBER")]
        forget: Option<u64>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a tool and print what it says
    Call {
        /// Its name, such as demo.weather
        name: String,
        /// Arguments as a JSON object; `-` reads them from standard input
        #[arg(default_value = "{}", value_name = "JSON")]
        arguments: String,
        #[command(flatten)]
        choice: ModelArgs,
        /// Run it without asking, also if it changes something
        #[arg(long)]
        approve: bool,
        /// Print the outcome as JSON
        #[arg(long)]
        json: bool,
    },
    /// Definitions of MCP servers' tools that have changed, which are off until you agree
    Changes {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Agree to a changed definition
    Approve {
        /// The tool's name, as `throughline tools changes` shows it
        name: String,
    },
}

/// `throughline upstreams`.
#[derive(Debug, ClapArgs)]
pub(crate) struct UpstreamsArgs {
    #[command(flatten)]
    pub(crate) choice: ModelArgs,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `throughline doctor`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) choice: ModelArgs,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `throughline history`.
#[derive(Debug, ClapArgs)]
pub(crate) struct HistoryArgs {
    /// Turns instead of tool calls
    #[arg(long, conflicts_with_all = ["tool", "source", "turn", "text"])]
    pub(crate) turns: bool,
    /// Calls of this tool only
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Calls of tools from this source only: builtin, mcp:files, ...
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// With this status only; calls also with one of several: error,denied; turns: completed, running, ...
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Of this turn only
    #[arg(long, value_name = "TURN")]
    pub(crate) turn: Option<String>,
    /// Of this conversation only
    #[arg(long, value_name = "CONVERSATION")]
    pub(crate) conversation: Option<String>,
    /// With this text in name, arguments, result or error
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Of this user only
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// The store to look into, also while a server runs: a file or postgres://… [default: that of the configuration]
    #[arg(long, value_name = "FILE|URL", value_hint = ValueHint::FilePath)]
    pub(crate) store: Option<PathBuf>,
    /// As JSON
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
    /// Where to [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// With markdown: the branch that ends with this turn [default: the latest one]
    #[arg(long, value_name = "TURN")]
    pub(crate) leaf: Option<String>,
    /// The store to look into, also while a server runs: a file or postgres://… [default: that of the configuration]
    #[arg(long, value_name = "FILE|URL", value_hint = ValueHint::FilePath)]
    pub(crate) store: Option<PathBuf>,
}

/// File format of an exported conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFileFormat {
    /// Everything: what `import` reads.
    Jsonl,
    /// One branch, to be read.
    Markdown,
    /// Its tool calls, for spreadsheets.
    Csv,
}

/// `throughline import`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// The file; `-` stands for standard input
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
    /// The store to look into, also while a server runs: a file or postgres://… [default: that of the configuration]
    #[arg(long, value_name = "FILE|URL", conflicts_with = "from", value_hint = ValueHint::FilePath)]
    pub(crate) store: Option<PathBuf>,
    /// File with the turn's events as JSON lines; `-` stands for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) from: Option<PathBuf>,
    /// Playback speed: 4x, 0.5x or max [default: 1x; max if output is a pipe]
    #[arg(long, value_name = "SPEED")]
    pub(crate) speed: Option<String>,
    /// Event by event, with keys
    #[arg(long, conflicts_with_all = ["speed", "events", "at"])]
    pub(crate) step: bool,
    /// Print the events as JSON lines
    #[arg(long, conflicts_with = "at")]
    pub(crate) events: bool,
    /// Print the message as it was after this event
    #[arg(long, value_name = "SEQ", group = "found")]
    pub(crate) at: Option<u64>,
    /// Decode the kept bytes of the upstreams again, and compare with what was understood then
    #[arg(long, group = "found", conflicts_with_all = ["from", "speed", "step", "events", "plain"])]
    pub(crate) decode_raw: bool,
    /// With --at: the whole message as one JSON object; with --decode-raw: the findings
    #[arg(long, requires = "found")]
    pub(crate) json: bool,
    /// Plain text, nothing repainted, even on a terminal
    #[arg(long)]
    pub(crate) plain: bool,
}

/// `throughline serve`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) choice: ModelArgs,
    /// Where to listen [default: 127.0.0.1:8787]; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// Where to keep turns: a SQLite file or postgres://… [default: throughline.db in the data folder]
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) store: Option<String>,
}

/// `throughline keys`.
#[derive(Debug, ClapArgs)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

/// The subcommands of `keys`.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key and show it, this once
    Create {
        #[command(flatten)]
        at: StoreArgs,
        /// Name of the key
        #[arg(long, value_name = "NAME")]
        name: String,
        /// Scopes of the key: chat, tools, admin
        #[arg(long, value_name = "SCOPES", value_delimiter = ',', default_value = "chat")]
        scopes: Vec<String>,
        /// It is worth nothing after so many days [default: never]
        #[arg(long, value_name = "DAYS")]
        days: Option<u32>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// All keys, without their secrets
    List {
        #[command(flatten)]
        at: StoreArgs,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a key worthless; its streams end within a second
    Revoke {
        /// Its id, as `throughline keys list` shows it; the beginning is enough
        id: String,
        #[command(flatten)]
        at: StoreArgs,
    },
}

/// Options that locate the store, or the server that has it open.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct StoreArgs {
    /// Configuration file [default: throughline.toml in the current directory, if there is one]
    #[arg(long, value_name = "FILE", env = "THROUGHLINE_CONFIG", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// The store of the server: a SQLite file or postgres://…
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) store: Option<String>,
}

/// `throughline mock`.
#[cfg(feature = "demo")]
#[derive(Debug, ClapArgs)]
pub(crate) struct MockArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) listen: std::net::SocketAddr,
    /// Scenario file (TOML): which reply answers which request
    #[arg(long, value_name = "FILE", conflicts_with = "demo", value_hint = ValueHint::FilePath)]
    pub(crate) script: Option<PathBuf>,
    /// Serve the demo model (the default without --script)
    #[arg(long)]
    pub(crate) demo: bool,
}

/// `throughline completions`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionsArgs {
    /// bash, elvish, fish, powershell or zsh
    pub(crate) shell: Shell,
}
