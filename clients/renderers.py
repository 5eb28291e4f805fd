"""Python-Markdown, as pages use it. It only renders: `renderers.mjs`, which calls this, judges."""

import json
import sys

from markdown import Markdown

RENDERERS = {
    "python-markdown": Markdown(extensions=["fenced_code"]),
    "python-markdown-extra": Markdown(extensions=["extra", "sane_lists"]),
    "python-markdown-nl2br": Markdown(extensions=["nl2br", "fenced_code", "tables"]),
}


def shown(renderer, text):
    """The HTML. Where it raises, a page shows no question at all."""
    try:
        return {"html": renderer.reset().convert(text)}
    except Exception as error:
        return {"error": repr(error)}


for line in sys.stdin.buffer:
    text = json.loads(line)["markdown"]
    print(json.dumps({name: shown(renderer, text) for name, renderer in RENDERERS.items()}), flush=True)
