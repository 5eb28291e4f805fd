"""pydantic-ai: an agent with its default ways."""

from importlib.metadata import version

from cells import *
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, ModelHTTPError, NativeOutput
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class Person(BaseModel):
    name: str
    age: int


def model(key=KEY):
    client = AsyncOpenAI(base_url=OPENAI_URL, api_key=key, max_retries=0)
    return OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))


def ask(name, **settings):
    return Agent(model(), **settings).run_sync(ASKED[name]).output


def streamed(name):
    with Agent(model()).run_stream_sync(ASKED[name]) as run:
        return "".join(run.stream_text(delta=True, debounce_by=None))


def round_trip(name, cities):
    seen = []

    def get_weather(city: str) -> str:
        """Today's weather in a city"""
        seen.append(city)
        return weather(city)

    text = ask(name, tools=[get_weather])
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
    return round_trip("client_tool", ["Paris"])


@cell
def parallel_tools():
    return round_trip("parallel_tools", ["Paris", "Oslo"])


@cell
def mixed_tools():
    return round_trip("mixed_tools", ["Paris"])


@cell
def structured():
    """`output_type`: the output is a call of a tool that is forced."""
    agent = Agent(model(), output_type=Person)
    return person(agent.run_sync("Tell me by final_result who she is.").output)


@cell
def structured_tools():
    return person(ask("structured_tools", output_type=NativeOutput(Person)))


@cell
def approval():
    text = streamed("approval")
    assert text.endswith("As you wish."), text


@cell
def wrong_key():
    refused = raises(ModelHTTPError, lambda: Agent(model(WRONG_KEY)).run_sync(ASKED["plain"]))
    assert refused.status_code == 401, refused


@cell
def rate_limit():
    refused = raises(ModelHTTPError, lambda: ask("rate_limit"))
    assert refused.status_code == 429, refused
    expect_retry_after(refused.__cause__.response)


@cell
def cut():
    raises(ModelAPIError, lambda: streamed("cut"))


@cell
def cancel():
    import asyncio

    async def leave():
        with Cancelled() as cancelled:
            async with Agent(model()).run_stream(ASKED["cancel"]) as run:
                async for _ in run.stream_text(delta=True, debounce_by=None):
                    cancelled.is_running()
                    break
                await run.cancel()

    asyncio.run(leave())


run("pydantic-ai", version("pydantic-ai-slim"))
