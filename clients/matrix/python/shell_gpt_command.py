"""shell-gpt, asked on the command line."""

import sys
from importlib.metadata import version

from cells import *
from programs import Program, expect_text

sgpt = Program(
    sys.executable, "-m", "sgpt", "--no-md", "--model", MODEL, "--no-cache",
    API_BASE_URL=OPENAI_URL, USE_LITELLM="false", DEFAULT_MODEL=MODEL, OPENAI_USE_FUNCTIONS="false",
)


def ask(name, key=KEY, **variables):
    _, printed = sgpt.run(ASKED[name], OPENAI_API_KEY=key, **variables)
    return printed


@cell
def plain():
    expect_text(ask("plain", DISABLE_STREAMING="true"), "Hello there.")


@cell
def stream():
    expect_text(ask("stream"), "Hello there.")


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


@cell
def rate_limit():
    expect_text(ask("rate_limit"), "RateLimitError")


run("shell-gpt", version("shell-gpt"))
