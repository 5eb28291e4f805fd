"""The OpenAI Agents SDK with its model for Chat Completions."""

import asyncio
from importlib.metadata import version

import openai
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from cells import *
from openai import AsyncOpenAI
from pydantic import BaseModel

set_tracing_disabled(True)


class Person(BaseModel):
    name: str
    age: int


def agent(key=KEY, **settings):
    client = AsyncOpenAI(base_url=OPENAI_URL, api_key=key, max_retries=0)
    model = OpenAIChatCompletionsModel(model=MODEL, openai_client=client)
    return Agent(name="Assistant", model=model, **settings)


def ask(name, **settings):
    return Runner.run_sync(agent(**settings), ASKED[name]).final_output


def streamed(name, **settings):
    """The text in pieces, which are the final output too."""

    async def read():
        pieces = ""
        result = Runner.run_streamed(agent(**settings), ASKED[name])
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                pieces += event.data.delta
        assert pieces == result.final_output, (pieces, result.final_output)
        return pieces

    return asyncio.run(read())


def round_trip(name, cities, **settings):
    seen = []

    @function_tool
    def get_weather(city: str) -> str:
        """Today's weather in a city"""
        seen.append(city)
        return weather(city)

    text = ask(name, tools=[get_weather], **settings)
    expect_weather_of(cities, seen)
    return text


@cell
def plain():
    return ask("plain")


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
    """Also with a choice that is forced, which the SDK takes back after the first call."""
    round_trip("client_tool", ["Paris"], model_settings=ModelSettings(tool_choice="required"))
    return round_trip("client_tool", ["Paris"])


@cell
def parallel_tools():
    return round_trip("parallel_tools", ["Paris", "Oslo"])


@cell
def mixed_tools():
    return round_trip("mixed_tools", ["Paris"])


@cell
def structured():
    return person(ask("structured", output_type=Person))


@cell
def structured_tools():
    return person(ask("structured_tools", output_type=Person))


@cell
def approval():
    text = streamed("approval")
    assert text.endswith("As you wish."), text


@cell
def wrong_key():
    raises(openai.AuthenticationError, lambda: Runner.run_sync(agent(WRONG_KEY), ASKED["plain"]))


@cell
def rate_limit():
    refused = raises(openai.RateLimitError, lambda: ask("rate_limit"))
    expect_retry_after(refused.response)


@cell
def cut():
    raises(openai.APIError, lambda: streamed("cut"))


@cell
def cancel():
    async def leave():
        with Cancelled() as cancelled:
            result = Runner.run_streamed(agent(), ASKED["cancel"])
            async for event in result.stream_events():
                if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                    cancelled.is_running()
                    result.cancel()

    asyncio.run(leave())


run("openai-agents", version("openai-agents"))
