"""instructor in its modes; its whole business is the structured answer."""

import instructor
import openai
from importlib.metadata import version
from cells import *
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


def extract(asked, mode, key=KEY):
    client = openai.OpenAI(base_url=OPENAI_URL, api_key=key, max_retries=0)
    patched = instructor.from_openai(client, mode=mode)
    return patched.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": asked}], response_model=Person, max_retries=0
    )


@cell
def structured():
    """More often than turns of a key may run: nobody ever answers these calls."""
    for mode in [instructor.Mode.TOOLS] * 10 + [instructor.Mode.TOOLS_STRICT]:
        assert person(extract("Tell me by Person who she is.", mode)) == PERSON
    for mode in (instructor.Mode.JSON, instructor.Mode.JSON_SCHEMA, instructor.Mode.MD_JSON):
        assert person(extract(ASKED["structured"], mode)) == PERSON


@cell
def structured_tools():
    return person(extract(ASKED["structured_tools"], instructor.Mode.JSON_SCHEMA))


@cell
def wrong_key():
    failed = raises(Exception, lambda: extract(ASKED["plain"], instructor.Mode.TOOLS, WRONG_KEY))
    assert "Error code: 401" in str(failed), failed


@cell
def rate_limit():
    failed = raises(Exception, lambda: extract(ASKED["rate_limit"], instructor.Mode.TOOLS))
    assert "Error code: 429" in str(failed), failed


run("instructor", version("instructor"))
