"""The Codex CLI, which speaks Responses and nothing else."""

import os

from cells import *
from programs import Program, expect_text

PACKAGES = pathlib.Path(os.environ["PACKAGES"]) / "node_modules"
PROVIDER = f'{{ name = "ours", base_url = "{OPENAI_URL}", env_key = "OURS_KEY", wire_api = "responses", \
request_max_retries = 0, stream_max_retries = 0 }}'

codex = Program(
    PACKAGES / ".bin" / "codex", "exec", "--skip-git-repo-check", "--sandbox", "read-only",
    "--model", MODEL, "-c", 'model_provider="ours"', "-c", f"model_providers.ours={PROVIDER}",
    OURS_KEY=KEY,
)


@cell
def stream():
    code, printed = codex.run(ASKED["stream"])
    assert code == 0, printed
    expect_text(printed, "Hello there.")


run("Codex CLI", json.loads((PACKAGES / "@openai" / "codex" / "package.json").read_text())["version"])
