"""aider, asked one thing in a folder without a repository."""

import sys
from importlib.metadata import version

from cells import *
from programs import Program, expect_text

aider = Program(sys.executable, "-m", "aider", LITELLM_LOCAL_MODEL_COST_MAP="True", OPENAI_API_BASE=OPENAI_URL)
QUIETLY = (
    "--model", f"openai/{MODEL}", "--edit-format", "ask", "--no-git", "--yes-always", "--no-pretty",
    "--no-check-update", "--no-analytics", "--no-show-model-warnings", "--no-show-release-notes",
)


def ask(name, *flags, key=KEY):
    _, printed = aider.run(*QUIETLY, *flags, "--message", ASKED[name], OPENAI_API_KEY=key)
    return printed


@cell
def plain():
    expect_text(ask("plain", "--no-stream"), "Hello there.")


@cell
def stream():
    expect_text(ask("stream", "--stream"), "Hello there.")


@cell
def server_tool():
    expect_text(ask("server_tool"), "Let me look.", "It says 42.")


@cell
def slow_tool():
    expect_text(ask("slow_tool"), "Let me look.", "It says 42.")


@cell
def approval():
    expect_text(ask("approval"), "As you wish.")


@cell
def wrong_key():
    expect_text(ask("plain", key=WRONG_KEY), "AuthenticationError")


run("aider", version("aider-chat"))
