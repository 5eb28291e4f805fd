"""openai-python, as its users write it."""

import json
import os
import sys

from openai import APIError, BadRequestError, OpenAI

client = OpenAI(base_url=os.environ["BASE_URL"] + "/v1", api_key=os.environ["KEY"], max_retries=0)
ASKED = [{"role": "user", "content": "What's the weather in Paris?"}]
TEXT = "Let me look. \n\nSunny in Paris."
TOKENS = 1135


def raw():
    """`create(stream=True)` with the idiom of every tutorial: `chunk.choices[0]` of every chunk."""
    text, roles, finishes, ids = "", [], [], set()
    for chunk in client.chat.completions.create(model="default", messages=ASKED, stream=True):
        choice = chunk.choices[0]
        text += choice.delta.content or ""
        roles += [choice.delta.role] if choice.delta.role else []
        finishes += [choice.finish_reason] if choice.finish_reason else []
        ids.add((chunk.id, chunk.model, chunk.created))
        assert choice.delta.tool_calls is None, choice
    assert (text, roles, finishes) == (TEXT, ["assistant"], ["stop"]), (text, roles, finishes)
    assert len(ids) == 1, ids


def helper():
    """`.stream()`, which folds the chunks by itself."""
    with client.chat.completions.stream(
        model="default", messages=ASKED, stream_options={"include_usage": True}
    ) as stream:
        pieces = "".join(event.delta for event in stream if event.type == "content.delta")
        final = stream.get_final_completion()
    message = final.choices[0].message
    assert (message.role, message.content, pieces) == ("assistant", TEXT, TEXT), message
    assert final.choices[0].finish_reason == "stop"
    assert not message.tool_calls, message
    assert final.usage.total_tokens == TOKENS, final.usage
    leaked = {key: value for key, value in (message.model_extra or {}).items() if isinstance(value, (list, dict))}
    assert not leaked, leaked


def whole():
    """Without streaming: the same message."""
    answer = client.chat.completions.create(model="default", messages=ASKED)
    choice = answer.choices[0]
    assert (choice.message.content, choice.finish_reason) == (TEXT, "stop"), choice
    assert answer.usage.total_tokens == TOKENS, answer.usage


def rendered():
    """A field of ours through `extra_body`."""
    answer = client.chat.completions.create(
        model="default", messages=ASKED, extra_body={"throughline": {"render": "details"}}
    )
    text = answer.choices[0].message.content
    assert '\n\n<details type="tool_calls" done="true"' in text and "</details>\n\nSunny" in text, text


def error():
    """An error in mid-answer is an exception with its words, and not a short answer."""
    try:
        for _ in client.chat.completions.create(model="default", messages=ASKED, stream=True):
            pass
    except APIError as failure:
        assert "out of cheese" in str(failure), failure
    else:
        raise AssertionError("the error was not seen")
    try:
        client.chat.completions.create(model="default", messages=ASKED)
    except APIError as failure:
        assert "out of cheese" in str(failure), failure
    else:
        raise AssertionError("the error without streaming was not seen")


TOOL = {
    "type": "function",
    "function": {
        "name": "local_time",
        "description": "The user's clock",
        "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]},
    },
}


def own_tool():
    """A tool of the client's and one of the server's in the same step: one round trip, then the rest of the turn."""
    messages = list(ASKED)
    with client.chat.completions.stream(model="default", messages=messages, tools=[TOOL]) as stream:
        for _ in stream:
            pass
        first = stream.get_final_completion().choices[0]
    assert first.finish_reason == "tool_calls", first
    assert [call.function.name for call in first.message.tool_calls] == ["local_time"], first
    call = first.message.tool_calls[0]
    assert json.loads(call.function.arguments) == {"zone": "Paris"}, call
    assert len(call.id) <= 40, call.id
    messages.append(first.message.model_dump(include={"role", "content", "tool_calls"}))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "12:30"})
    second = client.chat.completions.create(model="default", messages=messages, tools=[TOOL]).choices[0]
    assert (second.message.content, second.finish_reason) == ("Sunny at 12:30.", "stop"), second
    assert not second.message.tool_calls, second


def models():
    """The list, and a refusal before the first byte."""
    names = [model.id for model in client.models.list()]
    assert names == ["default", "test/m"], names
    assert client.models.retrieve("test/m").owned_by == "test"
    try:
        client.chat.completions.create(model="default", messages=ASKED, n=2)
    except BadRequestError as refused:
        assert refused.param == "n" and refused.code == "unsupported", refused
    else:
        raise AssertionError("n=2 was not refused")


globals()[sys.argv[1]]()
