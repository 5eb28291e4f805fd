"""The cells of one client of the matrix. Each does what the client's users do; how it went is one line of JSON.

A script marks its functions with `@cell` and ends with `run("name", "version")`. What is asked, and what must be seen of the
answer, stands in `cells.json`; a function returns what it saw, or looks at it by itself and returns nothing.
"""

import gc
import json
import os
import pathlib
import sys
import traceback
import urllib.request

BASE_URL = os.environ["BASE_URL"]
OPENAI_URL = BASE_URL + "/v1"
KEY = os.environ["KEY"]
WRONG_KEY = "tl_nobody"
MODEL = "default"

TABLE = json.loads((pathlib.Path(__file__).parent / "cells.json").read_text())
ASKED = {name: row["asked"] for name, row in TABLE.items()}
PERSON = TABLE["structured"]["answer"]
DETAIL_CHARS_MAX = 600

WEATHER_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Today's weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
PERSON_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}

_cells = {}


def cell(function):
    """A cell, named as the function is."""
    _cells[function.__name__] = function
    return function


def messages(name):
    """What is asked in this cell, as messages of Chat Completions."""
    return [{"role": "user", "content": ASKED[name]}]


def weather(city):
    """The client's tool."""
    return f"{city}: sunny"


def expect_weather_of(cities, seen):
    """Each city was asked for once."""
    assert sorted(seen) == sorted(cities), f"the tool ran for {seen}, not {cities}"


def person(value):
    """A structured answer as a dictionary."""
    return {"name": value.name, "age": value.age}


def running_turns():
    """How many turns the server runs; those that wait for this client's next request are not among them."""
    request = urllib.request.Request(OPENAI_URL + "/turns", headers={"Authorization": f"Bearer {KEY}"})
    turns = json.load(urllib.request.urlopen(request, timeout=30))["items"]
    return sum("waits_for" not in turn for turn in turns)


def until_idle():
    """Waits until no turn runs. Asked again until it holds: the runner bounds the whole."""
    while running_turns() > 0:
        pass


class Cancelled:
    """`with Cancelled():` around a question that the client leaves: the server's turn ends, too."""

    def __enter__(self):
        until_idle()
        return self

    def is_running(self):
        """To be said while the answer is read: otherwise there was nothing to cancel."""
        assert running_turns() == 1, "the turn does not run"

    def __exit__(self, kind, error, trace):
        if kind is None:
            # Some clients leave the reply in a cycle of references: its connection is closed when Python comes to collect it.
            gc.collect()
            until_idle()


def raises(kind, action):
    """The exception that this action ends in; its kind is part of what clients are written for."""
    try:
        seen = action()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}, but {seen!r}")


def expect_retry_after(response):
    """The upstream's own word about when to come again."""
    seen = response.headers.get("retry-after")
    assert seen is not None and float(seen) > 0, f"Retry-After is {seen}"


def run(client, version):
    """Runs the cells that are named on the command line, or all."""
    say({"client": client, "version": version})
    for name in sys.argv[1:] or _cells:
        say({"client": client, "cell": name, "ok": None})
        ok, detail = attempt(name)
        say({"client": client, "cell": name, "ok": ok, "detail": detail})


def attempt(name):
    try:
        seen = _cells[name]()
    except (Exception, SystemExit) as error:
        last = "".join(traceback.format_exception_only(error)).strip()
        return False, f"{last} ({where(error)})"[:DETAIL_CHARS_MAX]
    wanted = TABLE.get(name, {}).get("answer")
    if seen is not None and seen != wanted:
        return False, f"saw {seen!r}, not {wanted!r}"[:DETAIL_CHARS_MAX]
    return True, ""


def where(error):
    """The line of the script in which it went wrong."""
    script = pathlib.Path(sys.argv[0]).resolve()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if pathlib.Path(frame.filename) == script]
    return f"line {frames[-1].lineno}" if frames else "elsewhere"


def say(line):
    print(json.dumps(line, ensure_ascii=False), file=sys.__stdout__, flush=True)
