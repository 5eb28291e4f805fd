"""Semantic Kernel's chat completion with a plugin of functions."""

import asyncio
from importlib.metadata import version
from typing import Annotated

from cells import *
from openai import AsyncOpenAI, AuthenticationError, RateLimitError
from semantic_kernel import Kernel
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import ChatHistory
from semantic_kernel.exceptions import ServiceResponseException
from semantic_kernel.functions import kernel_function
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


class WeatherPlugin:
    def __init__(self):
        self.cities = []

    @kernel_function(name="weather", description="Today's weather in a city")
    def get_weather(self, city: Annotated[str, "The city"]) -> str:
        self.cities.append(city)
        return weather(city)


def service(key=KEY):
    client = AsyncOpenAI(base_url=OPENAI_URL, api_key=key, max_retries=0)
    return OpenAIChatCompletion(ai_model_id=MODEL, async_client=client)


def question(asked):
    history = ChatHistory()
    history.add_user_message(asked)
    return history


def ask(asked, key=KEY, kernel=None, **settings):
    chosen = OpenAIChatPromptExecutionSettings(**settings)
    return str(asyncio.run(service(key).get_chat_message_content(question(asked), chosen, kernel=kernel)))


def streamed(name):
    async def read():
        parts = service().get_streaming_chat_message_content(question(ASKED[name]), OpenAIChatPromptExecutionSettings())
        return "".join([str(part) async for part in parts])

    return asyncio.run(read())


def round_trip(name, cities, behavior):
    plugin, kernel = WeatherPlugin(), Kernel()
    kernel.add_plugin(plugin, "get")
    # To models its functions are called plugin-function.
    text = ask(ASKED[name].replace("?", " by get-weather?"), kernel=kernel, function_choice_behavior=behavior)
    expect_weather_of(cities, plugin.cities)
    return text


@cell
def plain():
    return ask(ASKED["plain"])


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
    """Also where a call is required: of the first step alone, as it means it."""
    round_trip("client_tool", ["Paris"], FunctionChoiceBehavior.Required())
    return round_trip("client_tool", ["Paris"], FunctionChoiceBehavior.Auto())


@cell
def parallel_tools():
    return round_trip("parallel_tools", ["Paris", "Oslo"], FunctionChoiceBehavior.Auto())


@cell
def mixed_tools():
    return round_trip("mixed_tools", ["Paris"], FunctionChoiceBehavior.Auto())


@cell
def structured():
    return json.loads(ask(ASKED["structured"], response_format=Person))


@cell
def structured_tools():
    return json.loads(ask(ASKED["structured_tools"], response_format=Person))


@cell
def approval():
    text = streamed("approval")
    assert text.endswith("As you wish."), text


@cell
def wrong_key():
    failed = raises(ServiceResponseException, lambda: ask(ASKED["plain"], WRONG_KEY))
    assert isinstance(failed.__cause__, AuthenticationError), failed


@cell
def rate_limit():
    failed = raises(ServiceResponseException, lambda: ask(ASKED["rate_limit"]))
    assert isinstance(failed.__cause__, RateLimitError), failed
    expect_retry_after(failed.__cause__.response)


@cell
def cut():
    raises(Exception, lambda: streamed("cut"))


@cell
def cancel():
    async def leave(cancelled):
        parts = service().get_streaming_chat_message_content(question(ASKED["cancel"]), OpenAIChatPromptExecutionSettings())
        async for part in parts:
            if str(part):
                cancelled.is_running()
                break
        await parts.aclose()

    # Around the loop: it closes what a generator has left open.
    with Cancelled() as cancelled:
        asyncio.run(leave(cancelled))


run("semantic-kernel", version("semantic-kernel"))
