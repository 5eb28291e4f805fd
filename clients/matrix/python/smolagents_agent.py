"""smolagents: its agent that calls tools, and its agent that writes code."""

from importlib.metadata import version

import openai
from cells import *
from smolagents import CodeAgent, LogLevel, OpenAIServerModel, ToolCallingAgent, tool


def model(key=KEY):
    return OpenAIServerModel(model_id=MODEL, api_base=OPENAI_URL, api_key=key, client_kwargs={"max_retries": 0})


def question(name):
    return [{"role": "user", "content": [{"type": "text", "text": ASKED[name]}]}]


def streamed(name):
    return "".join(delta.content or "" for delta in model().generate_stream(question(name)))


@cell
def plain():
    return model().generate(question("plain")).content


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
    """`tool_choice: "required"` in every step; the answer is a call of `final_answer`."""
    return agent_run("client_tool", ["Paris"])


@cell
def parallel_tools():
    text = agent_run("parallel_tools", ["Paris", "Oslo"])
    assert text == "Sunny in Paris.", text


@cell
def mixed_tools():
    text = agent_run("mixed_tools", ["Paris"])
    assert text == "Sunny in Paris.", text


def agent_run(name, cities):
    seen = []

    @tool
    def get_weather(city: str) -> str:
        """Today's weather in a city

        Args:
            city: The city
        """
        seen.append(city)
        return weather(city)

    text = ToolCallingAgent(tools=[get_weather], model=model(), verbosity_level=LogLevel.OFF).run(ASKED[name])
    expect_weather_of(cities, seen)
    return text


@cell
def approval():
    text = streamed("approval")
    assert text.endswith("As you wish."), text


@cell
def wrong_key():
    raises(openai.AuthenticationError, lambda: model(WRONG_KEY).generate(question("plain")))


@cell
def rate_limit():
    """It tries again by itself, and after that says what it was refused with."""
    refused = raises(openai.RateLimitError, lambda: impatient().generate(question("rate_limit")))
    expect_retry_after(refused.response)


def impatient():
    once = model()
    once.retryer.max_attempts = 1
    return once


@cell
def cut():
    raises(openai.APIError, lambda: streamed("cut"))


@cell
def cancel():
    with Cancelled() as cancelled:
        answer = model().generate_stream(question("cancel"))
        next(delta for delta in answer if delta.content)
        cancelled.is_running()
        answer.close()


run("smolagents", version("smolagents"))
