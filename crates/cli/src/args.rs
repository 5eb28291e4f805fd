//! The command line as types.

use crate::messages;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use std::path::PathBuf;
use throughline_wire::Dialect;

/// One turn, one message, one stream: talk to any model with tools that run mid-reply.
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
    /// Ask one question and print the answer
    #[command(after_long_help = messages::ASK_HELP)]
    Ask(AskArgs),
    /// Decode a recorded or piped provider response into one JSON object
    #[command(after_long_help = messages::DECODE_HELP)]
    Decode(DecodeArgs),
    /// Inspect a model's reply: its tool calls, and whether each would run, ask first or be denied
    #[command(after_long_help = messages::PARSE_HELP)]
    Parse(ParseArgs),
    /// List, show and run tools
    #[command(after_long_help = messages::TOOLS_HELP)]
    Tools(ToolsArgs),
    /// List known and configured model endpoints
    #[command(after_long_help = messages::UPSTREAMS_HELP)]
    Upstreams(UpstreamsArgs),
    /// Connect a model: choose it, enter its key, test it and write throughline.toml
    #[command(after_long_help = messages::CONNECT_HELP)]
    Connect(ConnectArgs),
    /// Serve agents over HTTP: the native API, WebSocket, and /v1/chat/completions for OpenAI clients
    #[command(after_long_help = messages::SERVE_HELP)]
    Serve(ServeArgs),
    /// Create, list and revoke the server's API keys
    #[command(after_long_help = messages::KEYS_HELP)]
    Keys(KeysArgs),
    /// Check configuration, keys, tools and sandbox, and suggest fixes
    #[command(after_long_help = messages::DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// List past tool calls and turns
    #[command(after_long_help = messages::HISTORY_HELP)]
    History(HistoryArgs),
    /// Export a conversation as JSON lines, as Markdown, or its tool calls as CSV
    #[command(after_long_help = messages::EXPORT_HELP)]
    Export(ExportArgs),
    /// Import an exported conversation or a list of OpenAI messages
    #[command(after_long_help = messages::IMPORT_HELP)]
    Import(ImportArgs),
    /// Replay a past turn, screen by screen
    #[command(after_long_help = messages::REPLAY_HELP)]
    Replay(ReplayArgs),
    /// Serve a scripted LLM upstream, or the demo model, to test clients against
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
    /// Base URL of an endpoint that is not configured; requires --api
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
    /// Offer the demo tools as well: invented weather, an in-memory calendar, a tool that fails (demo.*)
    #[arg(long)]
    pub(crate) demo_tools: bool,
}

/// `throughline chat`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) choice: ModelArgs,
    /// Approve every call without asking
    #[arg(long)]
    pub(crate) approve: bool,
    /// Plain text without repainting, even on a terminal
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
    /// Attach an image (png, jpeg, gif or webp; repeatable)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) image: Vec<PathBuf>,
    /// Approve every call without asking
    #[arg(long)]
    pub(crate) approve: bool,
    /// Print the finished message as one JSON object
    #[arg(long, conflicts_with = "events")]
    pub(crate) json: bool,
    /// Print the turn's events as JSON lines as they arrive
    #[arg(long)]
    pub(crate) events: bool,
}

/// `throughline connect`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ConnectArgs {
    /// Name from `throughline upstreams`, or a new one with --base-url [default: prompt for it]
    #[arg(value_name = "UPSTREAM")]
    pub(crate) upstream: Option<String>,
    /// Model to use [default: prompt for it]
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Agent in the file that will use the model
    #[arg(long, value_name = "NAME", default_value = throughline::config::DEFAULT_AGENT)]
    pub(crate) agent: String,
    /// Environment variable that holds the key, instead of storing it
    #[arg(long, value_name = "VARIABLE", conflicts_with = "key_stdin")]
    pub(crate) key_env: Option<String>,
    /// Read the key from standard input
    #[arg(long)]
    pub(crate) key_stdin: bool,
    /// Base URL of your own endpoint; requires --api
    #[arg(long, value_name = "URL", requires_all = ["api", "upstream"], value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
    /// Wire format of --base-url: openai-chat, openai-responses, anthropic, gemini or ollama
    #[arg(long, value_name = "API", requires = "base_url")]
    pub(crate) api: Option<Dialect>,
    /// Configuration file to write [default: throughline.toml in the current directory]
    #[arg(long, value_name = "FILE", env = "THROUGHLINE_CONFIG", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Delete the stored key of this upstream
    #[arg(long, requires = "upstream")]
    pub(crate) forget: bool,
}

/// `throughline decode`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DecodeArgs {
    /// Wire format of the body, one of the names below
    #[arg(long, value_name = "API")]
    pub(crate) api: Dialect,
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
}

/// `throughline parse`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ParseArgs {
    /// File with the reply; `-` for standard input
    #[arg(value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Text protocol of the reply: vcp, xml or auto
    #[arg(long, value_name = "PROTOCOL", default_value = "auto")]
    pub(crate) protocol: String,
    #[command(flatten)]
    pub(crate) choice: ModelArgs,
    /// Print JSON
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
    /// List all tools with their effects and sources, and whether models may call them
    List {
        #[command(flatten)]
        choice: ModelArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one tool and its schema
    Show {
        /// Tool name, such as demo.weather
        name: String,
        #[command(flatten)]
        choice: ModelArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show an agent's system prompt with its tools, and its size in tokens
    Prompt {
        #[command(flatten)]
        choice: ModelArgs,
        /// Text protocol to render it for: vcp or xml
        #[arg(long, value_name = "PROTOCOL")]
        protocol: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List remembered approvals
    Remembered {
        /// Delete the approval with this number
        #[arg(long, value_name = "NUMBER")]
        forget: Option<u64>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a tool and print its output
    Call {
        /// Tool name, such as demo.weather
        name: String,
        /// Arguments as a JSON object; `-` reads them from standard input
        #[arg(default_value = "{}", value_name = "JSON")]
        arguments: String,
        #[command(flatten)]
        choice: ModelArgs,
        /// Run without asking, even if the tool has side effects
        #[arg(long)]
        approve: bool,
        /// Print the outcome as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show changed definitions of MCP tools, which are off until you approve them
    Changes {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Approve a changed definition
    Approve {
        /// Tool name from `throughline tools changes`
        name: String,
    },
}

/// `throughline upstreams`.
#[derive(Debug, ClapArgs)]
pub(crate) struct UpstreamsArgs {
    #[command(flatten)]
    pub(crate) choice: ModelArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `throughline doctor`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) choice: ModelArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
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

/// `throughline serve`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) choice: ModelArgs,
    /// Address to listen on [default: 127.0.0.1:8787]; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// Store for turns: a SQLite file or postgres://… [default: throughline.db in the data folder]
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
    /// Create a key and show it once
    Create {
        #[command(flatten)]
        at: StoreArgs,
        /// Name of the key
        #[arg(long, value_name = "NAME")]
        name: String,
        /// Scopes of the key: chat, tools, admin
        #[arg(long, value_name = "SCOPES", value_delimiter = ',', default_value = "chat")]
        scopes: Vec<String>,
        /// Expire the key after this many days [default: never]
        #[arg(long, value_name = "DAYS")]
        days: Option<u32>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List all keys, without their secrets
    List {
        #[command(flatten)]
        at: StoreArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key; its streams end within a second
    Revoke {
        /// Key id from `throughline keys list`; a unique prefix is enough
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
    /// Store of the server: a SQLite file or postgres://…
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) store: Option<String>,
}

/// `throughline mock`.
#[cfg(feature = "demo")]
#[derive(Debug, ClapArgs)]
pub(crate) struct MockArgs {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) listen: std::net::SocketAddr,
    /// Scenario file (TOML) that defines the replies
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
