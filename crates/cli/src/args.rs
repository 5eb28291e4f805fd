//! The command line as types.

mod recorded;
mod talking;

pub(crate) use recorded::{
    DecodeApi, DecodeArgs, ExportArgs, ExportFileFormat, HistoryArgs, ImportArgs, ReplayArgs,
};
pub(crate) use talking::{AskArgs, ChatArgs, KeepArgs, TemplateArgs, TemplatesArgs};

use crate::messages;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use std::path::PathBuf;
use throughline_wire::Dialect;

/// One turn, one message, one stream: talk to any model with tools that run mid-reply.
#[derive(Debug, Parser)]
#[command(name = "throughline", version, propagate_version = true, after_long_help = messages::EXIT_CODES)]
pub(crate) struct CliArgs {
    /// Language of help, errors and the chat: en or zh [default: the locale's]
    #[arg(
        long,
        global = true,
        value_name = "LANGUAGE",
        env = "THROUGHLINE_LANG",
        hide_env = true,
        display_order = 900
    )]
    pub(crate) lang: Option<String>,
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
    /// List the prompt templates that `-t` of `ask` and `chat` takes
    #[command(after_long_help = messages::TEMPLATES_HELP)]
    Templates(TemplatesArgs),
    /// Say a text aloud, sentence by sentence, with a voice of the configuration
    #[command(after_long_help = messages::SAY_HELP)]
    Say(SayArgs),
    /// Decode a recorded or piped provider response into one JSON object
    #[command(after_long_help = messages::DECODE_HELP)]
    Decode(DecodeArgs),
    /// Inspect a model's reply: its tool calls, and whether each would run, ask first or be denied
    #[command(after_long_help = messages::PARSE_HELP)]
    Parse(ParseArgs),
    /// List, show and run tools
    #[command(after_long_help = messages::TOOLS_HELP)]
    Tools(ToolsArgs),
    /// Take over the MCP servers of another client's configuration
    #[command(after_long_help = messages::MCP_HELP)]
    Mcp(McpArgs),
    /// List known and configured model endpoints
    #[command(after_long_help = messages::UPSTREAMS_HELP)]
    Upstreams(UpstreamsArgs),
    /// Connect a model: choose it, enter its key, test it and write throughline.toml
    #[command(after_long_help = messages::CONNECT_HELP)]
    Connect(ConnectArgs),
    /// Measure what an upstream can do and where it departs from its API, by 8 small requests
    #[command(after_long_help = messages::PROBE_HELP)]
    Probe(ProbeArgs),
    /// Serve agents over HTTP: the native API, WebSocket, and /v1/chat/completions for OpenAI clients
    #[command(after_long_help = messages::SERVE_HELP)]
    Serve(ServeArgs),
    /// Add, list, change and remove people who use the server
    #[command(after_long_help = messages::USERS_HELP)]
    Users(UsersArgs),
    /// Create, list, change and revoke the server's API keys
    #[command(after_long_help = messages::KEYS_HELP)]
    Keys(KeysArgs),
    /// Write a copy of everything that the server has stored, also while it runs
    #[command(after_long_help = messages::BACKUP_HELP)]
    Backup(BackupArgs),
    /// Restore a backup
    #[command(after_long_help = messages::RESTORE_HELP)]
    Restore(RestoreArgs),
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
    /// Write the manual pages of all commands into a folder
    #[command(hide = true)]
    Man(ManArgs),
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
    /// Wire format of --base-url, such as openai-chat, anthropic or gemini (`throughline decode --help` lists all)
    #[arg(long, value_name = "API", requires = "base_url")]
    pub(crate) api: Option<Dialect>,
    /// Environment variable that holds the key of --base-url
    #[arg(long, value_name = "VARIABLE", requires = "base_url")]
    pub(crate) key_env: Option<String>,
    /// Stream replies: on, off, or auto (whole replies where a stream breaks at its start)
    #[arg(long, value_name = "SWITCH")]
    pub(crate) streaming: Option<String>,
    /// Offer the demo tools as well: invented weather, an in-memory calendar, a tool that fails (demo.*)
    #[arg(long)]
    pub(crate) demo_tools: bool,
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
    /// Wire format of --base-url, such as openai-chat, anthropic or gemini (`throughline decode --help` lists all)
    #[arg(long, value_name = "API", requires = "base_url")]
    pub(crate) api: Option<Dialect>,
    /// Configuration file to write [default: throughline.toml in the current directory]
    #[arg(long, value_name = "FILE", env = "THROUGHLINE_CONFIG", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Delete the stored key of this upstream
    #[arg(long, requires = "upstream")]
    pub(crate) forget: bool,
}

/// `throughline probe`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ProbeArgs {
    /// Name from `throughline upstreams`, or UPSTREAM/MODEL, or a new name with --base-url
    #[arg(value_name = "UPSTREAM")]
    pub(crate) upstream: String,
    /// Model to measure [default: that of the agent that uses the upstream]
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Most tokens of each reply
    #[arg(long, value_name = "N", default_value_t = throughline::MEASURE_TOKENS_MAX, value_parser = clap::value_parser!(u32).range(16..=32_768))]
    pub(crate) tokens: u32,
    /// Write the settings into the configuration file; its comments stay
    #[arg(long)]
    pub(crate) write: bool,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Base URL of an endpoint that is not configured; requires --api
    #[arg(long, value_name = "URL", requires = "api", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
    /// Wire format of --base-url, such as openai-chat, anthropic or gemini (`throughline decode --help` lists all)
    #[arg(long, value_name = "API", requires = "base_url")]
    pub(crate) api: Option<Dialect>,
    /// Environment variable that holds the key
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) key_env: Option<String>,
    /// Configuration file [default: throughline.toml in the current directory]
    #[arg(long, value_name = "FILE", env = "THROUGHLINE_CONFIG", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

/// `throughline say`.
#[derive(Debug, ClapArgs)]
pub(crate) struct SayArgs {
    /// Text to say, in Markdown; `-` or none: standard input
    #[arg(value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Voice of the configuration [default: the one called `default`, or the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) voice: Option<String>,
    /// WAV file to write instead of playing; `-` for standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "sentences")]
    pub(crate) output: Option<PathBuf>,
    /// Print the sentences, one on each line, and say nothing
    #[arg(long = "text", visible_alias = "dry-run")]
    pub(crate) sentences: bool,
    /// Configuration file [default: throughline.toml in the current directory, if there is one]
    #[arg(long, value_name = "FILE", env = "THROUGHLINE_CONFIG", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
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
        #[command(flatten)]
        at: StoreArgs,
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

/// `throughline mcp`.
#[derive(Debug, ClapArgs)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

/// The subcommands of `mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Convert the MCP servers of Claude, Cursor or VS Code to `[mcp.NAME]` and print them
    Import {
        /// JSON file with `mcpServers` or `servers`; `-` for standard input
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Add them to the configuration file instead; servers that it has already stay as they are
        #[arg(long)]
        write: bool,
        /// Configuration file to write [default: throughline.toml in the current directory]
        #[arg(long, value_name = "FILE", env = "THROUGHLINE_CONFIG", hide_env_values = true, value_hint = ValueHint::FilePath)]
        config: Option<PathBuf>,
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
    Create(CreateKeyArgs),
    /// List the keys of all people, without their secrets
    List {
        #[command(flatten)]
        at: StoreArgs,
        /// Only keys of this person
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change the limits and the models of a key
    Set(SetKeyArgs),
    /// Revoke a key; its streams end within a second
    Revoke {
        /// Key id from `throughline keys list`; a unique prefix is enough
        id: String,
        #[command(flatten)]
        at: StoreArgs,
    },
}

/// `throughline backup`.
#[derive(Debug, ClapArgs)]
pub(crate) struct BackupArgs {
    /// New or empty folder for the backup
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) at: StoreArgs,
}

/// `throughline restore`.
#[derive(Debug, ClapArgs)]
pub(crate) struct RestoreArgs {
    /// Folder of a backup
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// Replace what is there; it is moved to a folder beside it
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) at: StoreArgs,
}

/// `throughline keys create`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CreateKeyArgs {
    #[command(flatten)]
    pub(crate) at: StoreArgs,
    /// Name of the key
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// Person whose key it is [default: the first one, local]
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Scopes of the key: chat, tools, agents, admin
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', default_value = "chat")]
    pub(crate) scopes: Vec<String>,
    /// Expire the key after this many days [default: never]
    #[arg(long, value_name = "DAYS")]
    pub(crate) days: Option<u32>,
    /// Agents, UPSTREAM/MODEL or UPSTREAM/* that the key may use [default: all]
    #[arg(long, value_name = "MODELS", value_delimiter = ',')]
    pub(crate) models: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: UsageLimitArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `throughline keys set`.
#[derive(Debug, ClapArgs)]
pub(crate) struct SetKeyArgs {
    /// Key id from `throughline keys list`; a unique prefix is enough
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) at: StoreArgs,
    /// Agents, UPSTREAM/MODEL or UPSTREAM/* that the key may use, or all
    #[arg(long, value_name = "MODELS", value_delimiter = ',')]
    pub(crate) models: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: UsageLimitArgs,
}

/// Limits of a person or a key. Days and months are those of UTC.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct UsageLimitArgs {
    /// Turns that may begin in a day, or none for no limit
    #[arg(long, value_name = "N|none")]
    pub(crate) turns_per_day: Option<String>,
    /// Turns that may begin in a calendar month, or none for no limit
    #[arg(long, value_name = "N|none")]
    pub(crate) turns_per_month: Option<String>,
    /// Tokens that models may read and write in a day, or none for no limit
    #[arg(long, value_name = "N|none")]
    pub(crate) tokens_per_day: Option<String>,
    /// Tokens that models may read and write in a calendar month, or none for no limit
    #[arg(long, value_name = "N|none")]
    pub(crate) tokens_per_month: Option<String>,
}

/// `throughline users`.
#[derive(Debug, ClapArgs)]
pub(crate) struct UsersArgs {
    #[command(subcommand)]
    pub(crate) command: UsersCommand,
}

/// The subcommands of `users`.
#[derive(Debug, Subcommand)]
pub(crate) enum UsersCommand {
    /// Add a person, or bring one back who was removed
    Add(AddUserArgs),
    /// List people with what they have used
    List {
        #[command(flatten)]
        at: StoreArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change the rights and the limits of a person
    Set(SetUserArgs),
    /// Remove a person: revoke all keys and keep or delete the data
    Remove(RemoveUserArgs),
}

/// `throughline users add`.
#[derive(Debug, ClapArgs)]
pub(crate) struct AddUserArgs {
    /// Name: 1 to 64 letters, digits, -, _, ., @ or +
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) at: StoreArgs,
    /// Keys of this person may have the scope admin
    #[arg(long)]
    pub(crate) admin: bool,
    #[command(flatten)]
    pub(crate) limits: UsageLimitArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `throughline users set`.
#[derive(Debug, ClapArgs)]
pub(crate) struct SetUserArgs {
    /// Name
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) at: StoreArgs,
    /// Keys of this person may have the scope admin
    #[arg(long, conflicts_with = "no_admin")]
    pub(crate) admin: bool,
    /// Keys of this person may not have the scope admin, and those that do lose it
    #[arg(long)]
    pub(crate) no_admin: bool,
    #[command(flatten)]
    pub(crate) limits: UsageLimitArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `throughline users remove`.
#[derive(Debug, ClapArgs)]
pub(crate) struct RemoveUserArgs {
    /// Name
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) at: StoreArgs,
    /// Keep conversations, files, agents and remembered answers (the default)
    #[arg(long, conflicts_with = "delete_data")]
    pub(crate) keep_data: bool,
    /// Delete conversations, files, agents and remembered answers for good
    #[arg(long)]
    pub(crate) delete_data: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
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
    /// Plant a quirk, by its name in docs/mock.md (repeatable); without --script in a model that can do everything
    #[arg(long, value_name = "NAME", conflicts_with = "demo")]
    pub(crate) quirk: Vec<throughline_testkit::PlantedQuirk>,
}

/// `throughline man`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ManArgs {
    /// Folder to write them to; it is created if it does not exist
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}

/// `throughline completions`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionsArgs {
    /// bash, elvish, fish, powershell or zsh
    pub(crate) shell: Shell,
}
