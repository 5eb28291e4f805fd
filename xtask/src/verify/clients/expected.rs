//! Expected results of each client: the cells that work, and those that cannot, for a reason of the client's own.

/// A column of the matrix: what a client does in it.
pub(crate) struct MatrixColumn {
    /// Name of the cell in scripts and `clients/matrix/cells.json`.
    pub(crate) cell: &'static str,
    pub(crate) heading: &'static str,
}

pub(crate) const COLUMNS: [MatrixColumn; 16] = [
    MatrixColumn { cell: "plain", heading: "plain" },
    MatrixColumn { cell: "stream", heading: "stream" },
    MatrixColumn { cell: "server_tool", heading: "server tool" },
    MatrixColumn { cell: "slow_tool", heading: "slow one" },
    MatrixColumn { cell: "client_tool", heading: "client tool" },
    MatrixColumn { cell: "parallel_tools", heading: "two" },
    MatrixColumn { cell: "mixed_tools", heading: "both kinds" },
    MatrixColumn { cell: "structured", heading: "structured" },
    MatrixColumn { cell: "structured_tools", heading: "and tools" },
    MatrixColumn { cell: "approval", heading: "question" },
    MatrixColumn { cell: "answered", heading: "answered" },
    MatrixColumn { cell: "wrong_key", heading: "401" },
    MatrixColumn { cell: "rate_limit", heading: "429" },
    MatrixColumn { cell: "from_docker", heading: "from Docker" },
    MatrixColumn { cell: "cut", heading: "cut" },
    MatrixColumn { cell: "cancel", heading: "cancel" },
];

/// Command that starts a client.
pub(crate) enum ClientStart {
    /// A script in a separate environment, with the packages of `python/<pins>.txt`.
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

pub(crate) struct MatrixClient {
    pub(crate) name: &'static str,
    pub(crate) start: ClientStart,
    /// Value of `CLIENT` for the script, if one script serves several clients.
    pub(crate) variant: &'static str,
    pub(crate) cells: &'static [&'static str],
    /// Further cells, of this client alone.
    pub(crate) extra_cells: &'static [&'static str],
    /// Cells of these that the client has no such thing for.
    pub(crate) missing_cells: &'static [&'static str],
    /// Cells that fail for a reason of the client's own, with the reason.
    pub(crate) client_limits: &'static [(&'static str, &'static str)],
    /// Run by `cargo xtask test` as well.
    pub(crate) is_quick: bool,
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

const fn python(name: &'static str, pins: &'static str, script: &'static str) -> MatrixClient {
    let start = ClientStart::Python { pins, script };
    MatrixClient {
        name,
        start,
        variant: "",
        cells: LIBRARY,
        extra_cells: &[],
        missing_cells: &[],
        client_limits: &[],
        is_quick: false,
    }
}

const fn ai_sdk(name: &'static str, variant: &'static str) -> MatrixClient {
    let start = ClientStart::Node { script: "ai_sdk.mjs" };
    MatrixClient {
        name,
        start,
        variant,
        cells: LIBRARY,
        extra_cells: &[],
        missing_cells: &[],
        client_limits: &[],
        is_quick: false,
    }
}

const fn replayed(name: &'static str) -> MatrixClient {
    let start = ClientStart::Plain { script: "requests_as_sent.py" };
    MatrixClient {
        name,
        start,
        variant: name,
        cells: REPLAYED,
        extra_cells: &[],
        missing_cells: &[],
        client_limits: &[],
        is_quick: true,
    }
}

pub(crate) const CLIENTS: [MatrixClient; 22] = [
    ai_sdk("AI SDK 6, openai-compatible", "ai-6"),
    MatrixClient { is_quick: true, ..ai_sdk("AI SDK 7, openai-compatible", "ai-7") },
    ai_sdk("AI SDK, @ai-sdk/openai `.chat()`", "ai-openai-chat"),
    MatrixClient { is_quick: true, ..python("pydantic-ai", "pydantic_ai", "pydantic_ai_agent.py") },
    python("openai-agents, chat model", "openai_agents", "openai_agents.py"),
    python("litellm", "litellm", "litellm_completion.py"),
    MatrixClient {
        cells: &["structured", "structured_tools", "wrong_key", "rate_limit"],
        is_quick: true,
        ..python("instructor", "instructor", "instructor_extract.py")
    },
    MatrixClient {
        missing_cells: &["structured", "structured_tools"],
        ..python("smolagents", "smolagents", "smolagents_agent.py")
    },
    MatrixClient {
        missing_cells: &["structured_tools"],
        ..python("LlamaIndex, OpenAILike", "llama_index", "llama_index_like.py")
    },
    MatrixClient {
        start: ClientStart::Node { script: "langchain.mjs" },
        ..ai_sdk("LangChain.js, @langchain/openai", "langchain")
    },
    python("semantic-kernel", "semantic_kernel", "semantic_kernel_chat.py"),
    MatrixClient { start: ClientStart::Rust, ..python("async-openai", "", "") },
    MatrixClient {
        // It is older than tools.
        missing_cells: &["client_tool", "parallel_tools", "mixed_tools", "structured", "structured_tools"],
        ..python("openai-python, oldest", "openai_1_0_0", "openai_python.py")
    },
    MatrixClient {
        extra_cells: &["answered"],
        ..python("openai-python, old", "openai_1_55_3", "openai_python.py")
    },
    MatrixClient {
        extra_cells: &["answered"],
        is_quick: true,
        ..python("openai-python, newest", "openai_newest", "openai_python.py")
    },
    MatrixClient {
        start: ClientStart::Program { script: "opencode_run.py" },
        cells: &["stream", "server_tool", "slow_tool", "mixed_tools", "approval", "wrong_key"],
        ..python("opencode", "", "")
    },
    MatrixClient {
        start: ClientStart::Program { script: "codex_exec.py" },
        cells: &["stream"],
        client_limits: &[(
            "stream",
            "it speaks Responses and nothing else, which is a later surface of the server",
        )],
        ..python("Codex CLI", "", "")
    },
    MatrixClient {
        cells: COMMAND,
        missing_cells: &["rate_limit"],
        ..python("aider", "aider", "aider_command.py")
    },
    MatrixClient { cells: COMMAND, ..python("shell-gpt", "shell_gpt", "shell_gpt_command.py") },
    replayed("Open WebUI"),
    replayed("LobeChat"),
    replayed("LibreChat"),
];

impl MatrixClient {
    /// Requested cells in the order of the columns.
    pub(crate) fn requested_cells(&self) -> Vec<&'static str> {
        let does = |cell: &&str| {
            (self.cells.contains(cell) || self.extra_cells.contains(cell))
                && !self.missing_cells.contains(cell)
        };
        COLUMNS.iter().map(|column| column.cell).filter(does).collect()
    }

    /// Reason why this cell fails, if that is expected.
    pub(crate) fn reason(&self, cell: &str) -> Option<&'static str> {
        self.client_limits.iter().find(|(name, _)| *name == cell).map(|(_, reason)| *reason)
    }
}
