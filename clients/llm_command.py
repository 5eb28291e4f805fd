"""The `llm` command with a model of ours in its `extra-openai-models.yaml`."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

folder = pathlib.Path(tempfile.mkdtemp(prefix="llm-"))
(folder / "extra-openai-models.yaml").write_text(
    "- model_id: ours\n  model_name: default\n"
    f"  api_base: {os.environ['BASE_URL']}/v1\n  api_key_name: ours\n"
)
(folder / "keys.json").write_text(json.dumps({"ours": os.environ["KEY"]}))


def llm(*words):
    program = pathlib.Path(sys.executable).parent / "llm"
    environment = {**os.environ, "LLM_USER_PATH": str(folder)}
    return subprocess.run([program, "-m", "ours", *words], env=environment, capture_output=True, text=True, timeout=60)


def text():
    """Nothing but the text."""
    for words in [("hi",), ("--no-stream", "hi")]:
        done = llm(*words)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "Let me look. \n\nSunny in Paris.\n", done.stdout


def error():
    """The words of an error."""
    done = llm("hi")
    assert "out of cheese" in done.stdout + done.stderr, (done.stdout, done.stderr)


globals()[sys.argv[1]]()
