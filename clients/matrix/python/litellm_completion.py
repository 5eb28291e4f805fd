"""litellm: `completion` with a provider that speaks as OpenAI does."""

from importlib.metadata import version

import os

# Its table of prices is the one in the package: nothing is asked of the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
import openai
from cells import *

litellm.suppress_debug_info = True


def completion(history, key=KEY, **more):
    return litellm.completion(
        model=f"openai/{MODEL}", messages=history, api_base=OPENAI_URL, api_key=key, num_retries=0, max_retries=0, **more
    )


def streamed(name):
    text, finishes = "", []
    for chunk in completion(messages(name), stream=True):
        text += chunk.choices[0].delta.content or ""
        finishes += [chunk.choices[0].finish_reason] if chunk.choices[0].finish_reason else []
    assert finishes == ["stop"], finishes
    return text


def round_trip(name, cities):
    history, seen = messages(name), []
    while True:
        message = completion(history, tools=[WEATHER_TOOL]).choices[0].message
        if not message.tool_calls:
            expect_weather_of(cities, seen)
            return message.content
        history.append(message)
        for call in message.tool_calls:
            seen.append(json.loads(call.function.arguments)["city"])
            history.append({"role": "tool", "tool_call_id": call.id, "content": weather(seen[-1])})


@cell
def plain():
    return completion(messages("plain")).choices[0].message.content


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
    """By a call that is forced, and by the format of the response."""
    person_tool = {"type": "function", "function": {"name": "Person", "parameters": PERSON_SCHEMA}}
    forced = completion(
        [{"role": "user", "content": "Tell me by Person who she is."}],
        tools=[person_tool],
        tool_choice={"type": "function", "function": {"name": "Person"}},
    )
    (call,) = forced.choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == PERSON, call
    return formatted("structured")


@cell
def structured_tools():
    return formatted("structured_tools")


def formatted(name):
    schema = {"type": "json_schema", "json_schema": {"name": "Person", "schema": PERSON_SCHEMA, "strict": True}}
    return json.loads(completion(messages(name), response_format=schema).choices[0].message.content)


@cell
def approval():
    text = streamed("approval")
    assert text.endswith("As you wish."), text


@cell
def wrong_key():
    raises(litellm.AuthenticationError, lambda: completion(messages("plain"), key=WRONG_KEY))


@cell
def rate_limit():
    refused = raises(litellm.RateLimitError, lambda: completion(messages("rate_limit")))
    # Where its own router looks for it.
    headers = getattr(refused, "litellm_response_headers", None) or refused.response.headers
    assert float(headers["retry-after"]) > 0, headers


@cell
def cut():
    raises(openai.APIError, lambda: streamed("cut"))


@cell
def cancel():
    with Cancelled() as cancelled:
        answer = completion(messages("cancel"), stream=True)
        next(chunk for chunk in answer if chunk.choices[0].delta.content)
        cancelled.is_running()
        answer.completion_stream.close()


run("litellm", version("litellm"))
