"""opencode: `opencode run` with its provider for servers that speak as OpenAI does. It always streams."""

import os

from cells import *
from programs import Program, expect_text

PACKAGES = pathlib.Path(os.environ["PACKAGES"]) / "node_modules"
CONFIGURATION = {
    "model": f"ours/{MODEL}",
    "autoupdate": False,
    "share": "disabled",
    "permission": {"read": "allow", "bash": "allow"},
    "provider": {
        "ours": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": OPENAI_URL, "apiKey": "{env:OURS_KEY}"},
            "models": {MODEL: {"tool_call": True}},
        }
    },
}

opencode = Program(
    PACKAGES / ".bin" / "opencode", "run",
    OPENCODE_CONFIG_CONTENT=json.dumps(CONFIGURATION), OPENCODE_DISABLE_AUTOUPDATE="1",
    OPENCODE_DISABLE_MODELS_FETCH="1", OPENCODE_DISABLE_LSP_DOWNLOAD="1",
)
(opencode.folder / "notes.txt").write_text("one\n")


def ask(asked, key=KEY):
    _, printed = opencode.run(asked, OURS_KEY=key)
    return printed


@cell
def stream():
    expect_text(ask(ASKED["stream"]), "Hello there.")


@cell
def server_tool():
    expect_text(ask(ASKED["server_tool"]), "Let me look.", "It says 42.")


@cell
def slow_tool():
    expect_text(ask(ASKED["slow_tool"]), "Let me look.", "It says 42.")


@cell
def mixed_tools():
    """Its `read` and its `bash`, then a tool of the server's, in one task."""
    expect_text(ask("Please work on the file."), "notes.txt", "wc -c notes.txt", "The file is worked on.")


@cell
def approval():
    expect_text(ask(ASKED["approval"]), "As you wish.")


@cell
def wrong_key():
    expect_text(ask(ASKED["stream"], key=WRONG_KEY), "API key is missing")


run("opencode", json.loads((PACKAGES / "opencode-ai" / "package.json").read_text())["version"])
