"""Clients that are programs: started in a folder and a home of their own, and read like a person would."""

import os
import pathlib
import re
import subprocess
import tempfile

# A program that asks for the home, the proxy or keys of whoever runs the proof would be another client.
INHERITED = ("PATH", "LANG", "LC_ALL", "SSL_CERT_FILE")
TERMINAL_CODES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class Program:
    def __init__(self, *command, **variables):
        self.command = [str(word) for word in command]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="throughline-client-"))
        self.home = self.folder / "home"
        self.home.mkdir()
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self.variables = {**inherited, "HOME": str(self.home), "NO_PROXY": "127.0.0.1", "TERM": "dumb", **variables}

    def run(self, *words, **variables):
        """Its exit code and everything that it printed."""
        done = subprocess.run(
            [*self.command, *map(str, words)], cwd=self.folder, env={**self.variables, **variables},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        return done.returncode, TERMINAL_CODES.sub("", done.stdout)


def expect_text(printed, *texts):
    """These texts in this order, whatever stands between them."""
    rest = " ".join(printed.split())
    for text in texts:
        before, found, rest = rest.partition(text)
        assert found, f"{text!r} is not in {printed!r}"
