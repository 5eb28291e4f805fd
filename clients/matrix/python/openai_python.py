"""openai-python, as its users write it: the first version with this interface, an old one and the newest."""

import openai
from cells import *
from pydantic import BaseModel

client = openai.OpenAI(base_url=OPENAI_URL, api_key=KEY, max_retries=0)


class Person(BaseModel):
    name: str
    age: int


def create(name, **more):
    return client.chat.completions.create(model=MODEL, messages=messages(name), **more)


def streamed(name, **more):
    """The text of all chunks, and the finish."""
    text, finishes = "", []
    for chunk in create(name, stream=True, **more):
        text += chunk.choices[0].delta.content or ""
        finishes += [chunk.choices[0].finish_reason] if chunk.choices[0].finish_reason else []
    assert finishes == ["stop"], finishes
    return text


def round_trip(name, cities):
    """Asks, runs the client's tools, and asks again until there is a text."""
    history, seen = messages(name), []
    while True:
        answer = client.chat.completions.create(model=MODEL, messages=history, tools=[WEATHER_TOOL])
        message = answer.choices[0].message
        if not message.tool_calls:
            expect_weather_of(cities, seen)
            return message.content
        assert answer.choices[0].finish_reason == "tool_calls", answer
        history.append(message)
        for call in message.tool_calls:
            assert call.function.name == "get_weather", call
            seen.append(json.loads(call.function.arguments)["city"])
            history.append({"role": "tool", "tool_call_id": call.id, "content": weather(seen[-1])})


@cell
def plain():
    return create("plain").choices[0].message.content


@cell
def stream():
    return streamed("stream")


@cell
def server_tool():
    return streamed("server_tool")


@cell
def slow_tool():
    return streamed("slow_tool")


@cell
def client_tool():
    return round_trip("client_tool", ["Paris"])


@cell
def parallel_tools():
    return round_trip("parallel_tools", ["Paris", "Oslo"])


@cell
def mixed_tools():
    return round_trip("mixed_tools", ["Paris"])


@cell
def structured():
    """`parse` with a Pydantic model; it has left its beta meanwhile."""
    completions = client.chat.completions if hasattr(client.chat.completions, "parse") else client.beta.chat.completions
    answer = completions.parse(model=MODEL, messages=messages("structured"), response_format=Person)
    return person(answer.choices[0].message.parsed)


@cell
def structured_tools():
    """A tool of the server's runs before: the text of that step is no part of the JSON."""
    answer = create("structured_tools", response_format={"type": "json_object"})
    return json.loads(answer.choices[0].message.content)


@cell
def approval():
    """Nobody can be asked: the answer goes on at once."""
    text = streamed("approval")
    assert text.endswith("As you wish."), text


@cell
def answered():
    """With a model whose name chooses to show tools, the answer ends with the question; the next message answers it."""
    history = messages("answered")
    question = client.chat.completions.create(model=f"{MODEL}:text", messages=history).choices[0].message.content
    assert "danger.write" in question and "**yes**" in question, question
    history += [{"role": "assistant", "content": question}, {"role": "user", "content": "yes"}]
    rest = client.chat.completions.create(model=f"{MODEL}:text", messages=history).choices[0].message.content
    assert rest.endswith("It is note 7."), rest


@cell
def wrong_key():
    stranger = openai.OpenAI(base_url=OPENAI_URL, api_key=WRONG_KEY, max_retries=0)
    raises(
        openai.AuthenticationError,
        lambda: stranger.chat.completions.create(model=MODEL, messages=messages("plain")),
    )


@cell
def rate_limit():
    for more in ({}, {"stream": True}):
        refused = raises(openai.RateLimitError, lambda: create("rate_limit", **more))
        expect_retry_after(refused.response)


@cell
def cut():
    raises(openai.APIError, lambda: streamed("cut"))


@cell
def cancel():
    with Cancelled() as cancelled:
        answer = create("cancel", stream=True)
        next(chunk for chunk in answer if chunk.choices[0].delta.content)
        cancelled.is_running()
        answer.response.close()


run("openai-python", openai.__version__)
