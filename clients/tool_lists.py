"""Collects the tool lists of the MCP servers that `tool-servers.toml` pins, as fixtures for the tests of `wire`.

    sudo python3 clients/tool_lists.py /tmp/mcp-servers [--only npm:@playwright/mcp] [--read-by target/debug/throughline]

Installs each server in a folder of its own, without install scripts, asks it for its tools and keeps the schemas without the
texts, which are under the servers' licenses. A server is code of strangers: it runs as nobody, without network, in a namespace of
processes that ends with it, and knows only the made-up values of its entry. That needs Linux and root.

With `--read-by` no fixture is written: the program, which then runs as root, starts each server itself and has every tool of it.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any

CLIENTS = pathlib.Path(__file__).resolve().parent
LIST = CLIENTS / "tool-servers.toml"
FIXTURES = CLIENTS.parent / "crates/wire/tests/fixtures/tool_lists"

PROTOCOL_VERSION = "2025-06-18"
INSTALL_SECONDS = 400
LIST_SECONDS = 30
READ_SECONDS = 60
"""For our program, which starts the server as well."""
MEMORY_BYTES = 3 << 30
"""Of the data of each process: the address space of Node.js is far larger than what it uses."""
FIXTURE_BYTES = 200_000
"""Of one server. Hundreds of tools of one generator say little that its first ones did not."""
DEFAULT_CHARS = 40
"""A longer default is prose."""
SERVERS_MIN = 40
"""Fewer servers that start show too little."""
NOBODY = 65534

TEXTS = {"title", "description", "markdownDescription", "enumDescriptions", "$comment"}
SCHEMA_MAPS = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
VALUES = {"enum", "const", "default", "example"}
"""What a call may say, and no schema."""

Json = dict[str, Any]


class Failure(Exception):
    """Why a server has no list. One line."""


class Difference(Exception):
    """What our program has not of a server's tools. One line."""


@dataclass(frozen=True)
class Server:
    """An entry of the list; clients/README.md says what the fields are."""

    package: str
    version: str
    start: list[str]
    tools: int
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    beside: list[str] = field(default_factory=list)

    @property
    def registry(self) -> str:
        return self.package.partition(":")[0]

    @property
    def name(self) -> str:
        return self.package.partition(":")[2]

    @property
    def file_name(self) -> str:
        return self.name.lstrip("@").replace("/", "-").replace(".", "-")


def collect(server: Server, folder: pathlib.Path) -> str:
    """Writes the fixture of a server; returns what is to be said of it."""
    install(server, folder / server.file_name)
    tools = listed(server, folder / server.file_name)
    (FIXTURES / f"{server.file_name}.json").write_text(fixture(server, tools))
    differs = "" if len(tools) == server.tools else f", and not {server.tools} as the list says"
    return f"{len(tools)} tools{differs}"


def compare(server: Server, folder: pathlib.Path, reader: pathlib.Path) -> str:
    """Lists the tools of a server here and with our program; returns what is to be said of it."""
    install(server, folder / server.file_name)
    tools = listed(server, folder / server.file_name)
    # What can only be called as a task is left out.
    told = [tool["name"] for tool in tools if (tool.get("execution") or {}).get("taskSupport") != "required"]
    # Not in the home of the server, who might lead us elsewhere: the program runs as root. The server starts in it, and may read.
    own = folder / f"{server.file_name}.reader"
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(mode=0o755)
    with home_of(server, folder / server.file_name) as home:
        words = ", ".join(json.dumps(word) for word in confined(server, folder / server.file_name, home))
        (own / "throughline.toml").write_text(f"[mcp.server]\ncommand = [{words}]\n")
        done = run_to_end(
            [str(reader), "tools", "list", "--json", "--config", str(own / "throughline.toml")],
            {**os.environ, "THROUGHLINE_DATA": str(own / "data")},
        )
    if done.returncode != 0:
        raise Difference(complaint(done.stderr or done.stdout))
    try:
        rows = [(row["name"], row["source"]) for row in json.loads(done.stdout)]
    except (ValueError, KeyError):
        raise Difference(f"the list cannot be read: {done.stdout[:100]}") from None
    read = [name.removeprefix("server.") for name, source in rows if source == "mcp:server"]
    missing = sorted(set(told) - set(read))
    if missing:
        raise Difference(f"{len(read)} of {len(told)} tools, without {', '.join(missing)[:200]}: {complaint(done.stderr)}")
    return f"{len(read)} tools"


def run_to_end(words: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What it prints. After `READ_SECONDS` it is ended with everything that it has started."""
    process = subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True
    )
    try:
        stdout, stderr = process.communicate(timeout=READ_SECONDS)
    except subprocess.TimeoutExpired:
        raise Difference(f"no list after {READ_SECONDS} s") from None
    finally:
        end(process)
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


def install(server: Server, folder: pathlib.Path) -> None:
    """Exactly this version, and of what it needs the newest that it allows. Does nothing where it is installed."""
    mark, pin = folder / "installed", " ".join([server.package, server.version, *server.beside])
    if mark.exists() and mark.read_text() == pin:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if server.registry == "npm":
        (folder / "package.json").write_text("{}")
        npm = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        commands = [[*npm, f"{server.name}@{server.version}", *server.beside]]
    else:
        pip = [sys.executable, "-m", "pip", "--python", "bin/python", "--quiet", "--disable-pip-version-check"]
        # Only wheels: a source distribution runs its own code, as root.
        commands = [
            [sys.executable, "-m", "venv", "--without-pip", "."],
            [*pip, "install", "--only-binary=:all:", f"{server.name}=={server.version}", *server.beside],
        ]
    for command in commands:
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"not installed after {INSTALL_SECONDS} s") from None
        if done.returncode != 0:
            raise Failure(f"not installed: {complaint(done.stderr or done.stdout)}")
    # A package may carry a program without its bit.
    program(server, folder).chmod(0o755)
    mark.write_text(pin)


def program(server: Server, folder: pathlib.Path) -> pathlib.Path:
    """The entry has a pattern where the path names the release of Python."""
    for path in folder.glob(server.start[0]):
        return path
    raise Failure(f"{server.start[0]} is not in the package")


@contextlib.contextmanager
def home_of(server: Server, folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """A new home for one start of a server."""
    home = folder.with_name(f"{folder.name}.home")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    for name, content in server.files.items():
        (home / name).write_text(content)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def listed(server: Server, folder: pathlib.Path) -> list[Json]:
    """The tools of all pages, as the server tells them."""
    with home_of(server, folder) as home:
        return listed_at(server, folder, home)


def listed_at(server: Server, folder: pathlib.Path, home: pathlib.Path) -> list[Json]:
    said, pipe = folder.with_name(f"{folder.name}.stderr"), subprocess.PIPE
    with said.open("wb") as stderr:
        process = subprocess.Popen(
            confined(server, folder, home), cwd=home, stdin=pipe, stdout=pipe, stderr=stderr, start_new_session=True
        )
    overdue = threading.Event()

    def end_overdue() -> None:
        overdue.set()
        end(process)

    clock = threading.Timer(LIST_SECONDS, end_overdue)
    clock.start()
    try:
        assert process.stdin and process.stdout
        return Session(process.stdin, process.stdout).tools()
    except (EOFError, BrokenPipeError):
        why = f"no list after {LIST_SECONDS} s" if overdue.is_set() else complaint(said.read_text(errors="replace"))
        raise Failure(why) from None
    finally:
        clock.cancel()
        end(process)
        process.wait()


def confined(server: Server, folder: pathlib.Path, home: pathlib.Path) -> list[str]:
    """The command that starts a server as nobody, with loopback for its only network."""
    node = pathlib.Path(shutil.which("node") or "").parent
    environment = {
        "PATH": f"{folder}/bin:{node}:/usr/bin:/bin",
        "HOME": "{home}",
        "TMPDIR": "{home}",
        "LANG": "C.UTF-8",
        **server.environment,
    }
    variables = [f"{name}={value}" for name, value in environment.items()]
    words = ["env", "-i", *variables, str(program(server, folder)), *server.start[1:]]
    return [
        *("unshare", "--net", "--ipc", "--pid", "--fork", "--mount-proc"),
        *("sh", "-c", 'ip link set lo up; exec "$@"', "sh"),
        *("prlimit", f"--data={MEMORY_BYTES}", "--core=0"),
        *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"),
        *(word.replace("{home}", str(home)) for word in words),
    ]


def end(process: subprocess.Popen[Any]) -> None:
    """Its group holds the first process of its namespace, with which all others there end."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


class Session:
    """What a client says on the streams of a server until it has the tools."""

    def __init__(self, to_server: IO[bytes], from_server: IO[bytes]) -> None:
        self._to_server = to_server
        self._from_server = from_server
        self._last_id = 0

    def tools(self) -> list[Json]:
        client = {"name": "tool-lists", "version": "1"}
        self._ask("initialize", protocolVersion=PROTOCOL_VERSION, capabilities={}, clientInfo=client)
        self._send({"method": "notifications/initialized"})
        page = self._ask("tools/list")
        tools: list[Json] = page["tools"]
        while cursor := page.get("nextCursor"):
            page = self._ask("tools/list", cursor=cursor)
            tools += page["tools"]
        return tools

    def _ask(self, method: str, **params: object) -> Json:
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})
        while True:
            message = self._receive()
            if "method" in message:
                self._decline(message)
            elif message.get("id") == self._last_id:
                if "result" not in message:
                    raise Failure(f"{method}: {json.dumps(message.get('error'))}")
                return dict(message["result"])

    def _decline(self, message: Json) -> None:
        """What a server asks of its client."""
        if message["method"] == "ping":
            self._send({"id": message["id"], "result": {}})
        elif "id" in message:
            self._send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})

    def _send(self, message: Json) -> None:
        self._to_server.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._to_server.flush()

    def _receive(self) -> Json:
        """The next message. Some servers log to the same stream."""
        for line in self._from_server:
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict) and "jsonrpc" in message:
                    return message
        raise EOFError


def fixture(server: Server, tools: list[Json]) -> str:
    """One tool a line, and no more of them than the size allows."""
    head = f'{{"server":{json.dumps(f"{server.package}@{server.version}")},"tools":[\n'
    lines, size = [], len(head)
    for tool in tools:
        kept = {"name": tool["name"], "inputSchema": without_texts(tool["inputSchema"])}
        line = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
        size += len(line.encode()) + 2
        if size > FIXTURE_BYTES:
            break
        lines.append(line)
    return head + ",\n".join(lines) + "\n]}\n"


def without_texts(schema: object) -> object:
    """A schema without what is meant for readers. A property may have the name of a keyword, and stays."""
    match schema:
        case list():
            return [without_texts(part) for part in schema]
        case dict():
            return {keyword: cleaned(keyword, value) for keyword, value in schema.items() if not is_text(keyword, value)}
        case _:
            return schema


def cleaned(keyword: str, value: object) -> object:
    if keyword in VALUES:
        return value
    if keyword in SCHEMA_MAPS and isinstance(value, dict):
        return {name: without_texts(part) for name, part in value.items()}
    return without_texts(value)


def is_text(keyword: str, value: object) -> bool:
    match keyword:
        case "examples":
            return True
        case "default" | "example":
            return any(len(text) > DEFAULT_CHARS for text in strings(value))
        case _:
            return keyword in TEXTS and not isinstance(value, dict)


def strings(value: object) -> Iterable[str]:
    match value:
        case str():
            yield value
        case list():
            for part in value:
                yield from strings(part)
        case dict():
            yield from strings([*value.keys(), *value.values()])


def complaint(output: str) -> str:
    """The last line that speaks of an error, or else the last."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["ended without a word"])[-1][:200]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="where servers are installed; the user nobody must reach it")
    parser.add_argument("--only", metavar="NAME", help="one server, as the list names it")
    parser.add_argument("--read-by", metavar="PROGRAM", type=pathlib.Path, help="compare with what our program lists")
    asked = parser.parse_args()
    servers = [Server(**entry) for entry in tomllib.loads(LIST.read_text())["server"]]
    chosen = [server for server in servers if asked.only in (None, server.package, server.name)]
    if asked.read_by and not os.access(asked.read_by, os.X_OK):
        parser.error(f"{asked.read_by} is no program")
    failed = differing = 0
    for server in chosen:
        try:
            folder, reader = asked.folder.resolve(), asked.read_by and asked.read_by.resolve()
            said = compare(server, folder, reader) if reader else collect(server, folder)
        except Difference as what:
            differing += 1
            said = f"differs: {what}"
        except (Failure, OSError, KeyError) as why:
            failed += 1
            said = f"failed: {why}"
        print(f"{server.package}: {said}", flush=True)
    if not asked.read_by:
        return 1 if failed or not chosen else 0
    same = len(chosen) - failed - differing
    print(f"{same} servers have all their tools, {differing} have not; {failed} could not be started here")
    return 1 if differing or same < max(1, min(len(chosen), SERVERS_MIN)) else 0


if __name__ == "__main__":
    sys.exit(main())
