//! What is expected of each client: the cells that work, and those that cannot, for a reason of the client's own.

/// A column of the matrix: what a client does in it.
pub struct Column {
    /// As scripts and `clients/matrix/cells.json` call it.
    pub cell: &'static str,
    pub heading: &'static str,
}

pub const COLUMNS: [Column; 16] = [
    Column { cell: "plain", heading: "plain" },
    Column { cell: "stream", heading: "stream" },
    Column { cell: "server_tool", heading: "server tool" },
    Column { cell: "slow_tool", heading: "slow one" },
    Column { cell: "client_tool", heading: "client tool" },
    Column { cell: "parallel_tools", heading: "two" },
    Column { cell: "mixed_tools", heading: "both kinds" },
    Column { cell: "structured", heading: "structured" },
    Column { cell: "structured_tools", heading: "and tools" },
    Column { cell: "approval", heading: "question" },
    Column { cell: "answered", heading: "answered" },
    Column { cell: "wrong_key", heading: "401" },
    Column { cell: "rate_limit", heading: "429" },
    Column { cell: "from_docker", heading: "from Docker" },
    Column { cell: "cut", heading: "cut" },
    Column { cell: "cancel", heading: "cancel" },
];

/// How a client is started.
pub enum Start {
    /// A script in an environment of its own, with the packages of `python/<pins>.txt`.
    Python { pins: &'static str, script: &'static str },
    /// A script for the Node.js of `node/`, with its packages.
    Node { script: &'static str },
    /// A script that starts a program of `programs/`.
    Program { script: &'static str },
    /// A script that needs no packages.
    Plain { script: &'static str },
    /// The program of `rust/`.
    Rust,
}

pub struct Client {
    pub name: &'static str,
    pub start: Start,
    /// Told to the script as `CLIENT`, where one script serves several.
    pub variant: &'static str,
    pub cells: &'static [&'static str],
    /// Further cells, of this client alone.
    pub adds: &'static [&'static str],
    /// Cells of these that the client has no such thing for.
    pub lacks: &'static [&'static str],
    /// Cells that fail for a reason of the client's own, with the reason.
    pub theirs: &'static [(&'static str, &'static str)],
    /// Run by `cargo xtask test` as well.
    pub is_quick: bool,
}

const LIBRARY: &[&str] = &[
    "plain",
    "stream",
    "server_tool",
    "slow_tool",
    "client_tool",
    "parallel_tools",
    "mixed_tools",
    "structured",
    "structured_tools",
    "approval",
    "wrong_key",
    "rate_limit",
    "cut",
    "cancel",
];
const COMMAND: &[&str] =
    &["plain", "stream", "server_tool", "slow_tool", "approval", "wrong_key", "rate_limit"];
const REPLAYED: &[&str] = &[
    "plain",
    "stream",
    "server_tool",
    "slow_tool",
    "client_tool",
    "structured",
    "approval",
    "answered",
    "wrong_key",
    "rate_limit",
    "from_docker",
    "cancel",
];

const fn python(name: &'static str, pins: &'static str, script: &'static str) -> Client {
    let start = Start::Python { pins, script };
    Client { name, start, variant: "", cells: LIBRARY, adds: &[], lacks: &[], theirs: &[], is_quick: false }
}

const fn ai_sdk(name: &'static str, variant: &'static str) -> Client {
    let start = Start::Node { script: "ai_sdk.mjs" };
    Client { name, start, variant, cells: LIBRARY, adds: &[], lacks: &[], theirs: &[], is_quick: false }
}

const fn replayed(name: &'static str) -> Client {
    let start = Start::Plain { script: "requests_as_sent.py" };
    Client { name, start, variant: name, cells: REPLAYED, adds: &[], lacks: &[], theirs: &[], is_quick: true }
}

pub const CLIENTS: [Client; 22] = [
    ai_sdk("AI SDK 6, openai-compatible", "ai-6"),
    Client { is_quick: true, ..ai_sdk("AI SDK 7, openai-compatible", "ai-7") },
    ai_sdk("AI SDK, @ai-sdk/openai `.chat()`", "ai-openai-chat"),
    Client { is_quick: true, ..python("pydantic-ai", "pydantic_ai", "pydantic_ai_agent.py") },
    python("openai-agents, chat model", "openai_agents", "openai_agents.py"),
    python("litellm", "litellm", "litellm_completion.py"),
    Client {
        cells: &["structured", "structured_tools", "wrong_key", "rate_limit"],
        is_quick: true,
        ..python("instructor", "instructor", "instructor_extract.py")
    },
    Client {
        lacks: &["structured", "structured_tools"],
        ..python("smolagents", "smolagents", "smolagents_agent.py")
    },
    Client {
        lacks: &["structured_tools"],
        ..python("LlamaIndex, OpenAILike", "llama_index", "llama_index_like.py")
    },
    Client {
        start: Start::Node { script: "langchain.mjs" },
        ..ai_sdk("LangChain.js, @langchain/openai", "langchain")
    },
    python("semantic-kernel", "semantic_kernel", "semantic_kernel_chat.py"),
    Client { start: Start::Rust, ..python("async-openai", "", "") },
    Client {
        // It is older than tools.
        lacks: &["client_tool", "parallel_tools", "mixed_tools", "structured", "structured_tools"],
        ..python("openai-python, oldest", "openai_1_0_0", "openai_python.py")
    },
    Client { adds: &["answered"], ..python("openai-python, old", "openai_1_55_3", "openai_python.py") },
    Client {
        adds: &["answered"],
        is_quick: true,
        ..python("openai-python, newest", "openai_newest", "openai_python.py")
    },
    Client {
        start: Start::Program { script: "opencode_run.py" },
        cells: &["stream", "server_tool", "slow_tool", "mixed_tools", "approval", "wrong_key"],
        ..python("opencode", "", "")
    },
    Client {
        start: Start::Program { script: "codex_exec.py" },
        cells: &["stream"],
        theirs: &[("stream", "it speaks Responses and nothing else, which is a later surface of the server")],
        ..python("Codex CLI", "", "")
    },
    Client { cells: COMMAND, lacks: &["rate_limit"], ..python("aider", "aider", "aider_command.py") },
    Client { cells: COMMAND, ..python("shell-gpt", "shell_gpt", "shell_gpt_command.py") },
    replayed("Open WebUI"),
    replayed("LobeChat"),
    replayed("LibreChat"),
];

impl Client {
    /// What it is asked to do, in the order of the columns.
    pub fn asked(&self) -> Vec<&'static str> {
        let does = |cell: &&str| {
            (self.cells.contains(cell) || self.adds.contains(cell)) && !self.lacks.contains(cell)
        };
        COLUMNS.iter().map(|column| column.cell).filter(does).collect()
    }

    /// Why this cell fails, if that is expected.
    pub fn reason(&self, cell: &str) -> Option<&'static str> {
        self.theirs.iter().find(|(name, _)| *name == cell).map(|(_, reason)| *reason)
    }
}
