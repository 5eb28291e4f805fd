"""LlamaIndex's OpenAILike."""

from importlib.metadata import version

import openai
from cells import *
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


def model(key=KEY, **more):
    return OpenAILike(
        model=MODEL, api_base=OPENAI_URL, api_key=key, max_retries=0, is_chat_model=True,
        is_function_calling_model=True, **more,
    )


def chat(name, key=KEY):
    return model(key).chat([ChatMessage(role="user", content=ASKED[name])]).message.content


def streamed(name):
    return "".join(part.delta or "" for part in model().stream_chat([ChatMessage(role="user", content=ASKED[name])]))


def round_trip(name, cities):
    """The model's own loop, written out as its documentation does."""
    seen = []

    def get_weather(city: str) -> str:
        """Today's weather in a city"""
        seen.append(city)
        return weather(city)

    tool, llm = FunctionTool.from_defaults(get_weather), model()
    history = [ChatMessage(role="user", content=ASKED[name])]
    while True:
        answer = llm.chat_with_tools([tool], chat_history=history, allow_parallel_tool_calls=True)
        calls = llm.get_tool_calls_from_response(answer, error_on_no_tool_call=False)
        if not calls:
            expect_weather_of(cities, seen)
            return answer.message.content
        history.append(answer.message)
        for call in calls:
            output = str(tool(**call.tool_kwargs))
            history.append(ChatMessage(role="tool", content=output, additional_kwargs={"tool_call_id": call.tool_id}))


@cell
def plain():
    return chat("plain")


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
    """`as_structured_llm`: a call that is forced."""
    llm = model().as_structured_llm(Person)
    return person(llm.chat([ChatMessage(role="user", content="Tell me by Person who she is.")]).raw)


@cell
def approval():
    text = streamed("approval")
    assert text.endswith("As you wish."), text


@cell
def wrong_key():
    raises(openai.AuthenticationError, lambda: chat("plain", WRONG_KEY))


@cell
def rate_limit():
    expect_retry_after(raises(openai.RateLimitError, lambda: chat("rate_limit")).response)


@cell
def cut():
    raises(openai.APIError, lambda: streamed("cut"))


@cell
def cancel():
    with Cancelled() as cancelled:
        answer = model().stream_chat([ChatMessage(role="user", content=ASKED["cancel"])])
        next(part for part in answer if part.delta)
        cancelled.is_running()
        answer.close()


run("LlamaIndex OpenAILike", version("llama-index-llms-openai-like"))
