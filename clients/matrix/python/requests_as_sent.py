"""Clients with a page and a server of their own, by the requests that their source sends: Open WebUI, LobeChat, LibreChat.

CLIENT names one. What they send beside the messages stands here field for field; the answer is read as they read it.
"""

import http.client
import urllib.parse

from cells import *

CLIENT = os.environ["CLIENT"]

# Open WebUI: backend/open_webui/routers/openai.py and utils/payload.py, with all advanced parameters set by the user.
OPEN_WEBUI = {
    "headers": {"X-OpenWebUI-User-Name": "Ada", "X-OpenWebUI-User-Role": "admin", "X-OpenWebUI-Chat-Id": "1c7"},
    "body": {
        "stream_options": {"include_usage": True},
        "temperature": 0.7, "top_p": 0.9, "seed": 7, "stop": ["###"], "logit_bias": {"50256": -100},
        "frequency_penalty": 0.1, "presence_penalty": 0.1, "max_tokens": 256,
        "user": {"name": "Ada", "id": "5f1", "email": "ada@example.com", "role": "admin"},
    },
}
# LobeChat: packages/model-runtime/src/core/openaiCompatibleFactory/index.ts; its SDK says what it runs on.
LOBE_CHAT = {
    "headers": {"Accept": "*/*", "X-Stainless-Lang": "js", "X-Stainless-Runtime": "node"},
    "body": {
        "stream_options": {"include_usage": True},
        "temperature": 1, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0, "user": "5f1",
    },
}
# LibreChat: an endpoint of the kind `custom`, with every parameter of its side panel.
LIBRE_CHAT = {
    "headers": {"X-Stainless-Lang": "js", "HTTP-Referer": "https://librechat.ai", "X-Title": "LibreChat"},
    "body": {
        "stream_options": {"include_usage": True},
        "temperature": 0.7, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "user": "5f1",
        "reasoning": {"effort": "low", "summary": "auto"}, "reasoning_effort": "low", "verbosity": "low",
        "store": False, "metadata": {"conversationId": "9a2"}, "service_tier": "auto",
        "prediction": {"type": "content", "content": "Hello"},
    },
}
SENT = {"Open WebUI": OPEN_WEBUI, "LobeChat": LOBE_CHAT, "LibreChat": LIBRE_CHAT}[CLIENT]


def post(body, key=KEY, headers={}):
    """The response of the server, unread."""
    address = urllib.parse.urlsplit(BASE_URL)
    connection = http.client.HTTPConnection(address.hostname, address.port)
    sent = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **SENT["headers"], **headers}
    connection.request("POST", "/v1/chat/completions", json.dumps({"model": MODEL, **body}), sent)
    return connection.getresponse()


def whole(body, **more):
    response = post(body, **more)
    answer = json.loads(response.read())
    assert response.status == 200, (response.status, answer)
    return answer["choices"][0]["message"]


def pieces(name, **more):
    """Each piece of text of a streamed answer, as it comes."""
    response = post({**SENT["body"], "messages": messages(name), "stream": True, **more})
    assert response.status == 200, (response.status, response.read())
    for line in response:
        data = line.removeprefix(b"data: ").strip()
        if not line.startswith(b"data: ") or data == b"[DONE]":
            continue
        chunk = json.loads(data)
        assert "error" not in chunk, chunk
        for choice in chunk["choices"]:
            yield choice["delta"].get("content") or ""


def streamed(name):
    return "".join(pieces(name))


@cell
def plain():
    """Titles, tags and the like, which are asked for without a stream; they set few fields."""
    more = {"max_completion_tokens": 1000} if CLIENT == "Open WebUI" else {}
    return whole({"messages": messages("plain"), "stream": False, **more})["content"]


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
    """Its own tools are offered in a stream; the results go back with all that was sent before."""
    response = post({**SENT["body"], "messages": messages("client_tool"), "stream": True, "tools": [WEATHER_TOOL]})
    deltas = [
        choice["delta"]
        for line in response if line.startswith(b"data: {")
        for choice in json.loads(line.removeprefix(b"data: "))["choices"]
    ]
    parts = [call for delta in deltas for call in delta.get("tool_calls") or []]
    call = {"id": parts[0]["id"], "type": "function", "function": {
        "name": parts[0]["function"]["name"],
        "arguments": "".join(part["function"].get("arguments") or "" for part in parts),
    }}
    city = json.loads(call["function"]["arguments"])["city"]
    history = [
        *messages("client_tool"),
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": weather(city)},
    ]
    return "".join(pieces("client_tool", messages=history, tools=[WEATHER_TOOL]))


@cell
def structured():
    """LobeChat's `generateObject`: by a tool that it names, and by the format of the response."""
    tool = {"type": "function", "function": {"name": "Person", "description": "A person", "parameters": PERSON_SCHEMA}}
    forced = whole({
        "messages": [{"role": "user", "content": "Tell me by Person who she is."}],
        "tools": [tool], "tool_choice": {"type": "function", "function": {"name": "Person"}}, "user": "5f1",
    })
    assert json.loads(forced["tool_calls"][0]["function"]["arguments"]) == PERSON, forced
    schema = {"name": "person", "schema": PERSON_SCHEMA, "strict": True}
    format = {"type": "json_schema", "json_schema": schema}
    return json.loads(whole({"messages": messages("structured"), "response_format": format, "user": "5f1"})["content"])


@cell
def approval():
    text = streamed("approval")
    assert text.endswith("As you wish."), text


@cell
def answered():
    """With a model whose name chooses to show tools, the answer ends with the question; the next message answers it."""
    shown = f"{MODEL}:details"
    question = "".join(pieces("answered", model=shown))
    assert "danger.write" in question and "**yes**" in question, question
    history = [*messages("answered"), {"role": "assistant", "content": question}, {"role": "user", "content": "好的"}]
    rest = "".join(pieces("answered", model=shown, messages=history))
    assert rest.endswith("It is note 7."), rest


@cell
def wrong_key():
    response = post({"messages": messages("plain")}, key=WRONG_KEY)
    assert response.status == 401, response.status


@cell
def rate_limit():
    for stream in (False, True):
        response = post({"messages": messages("rate_limit"), "stream": stream})
        assert response.status == 429, (response.status, response.read())
        expect_retry_after(response)


@cell
def from_docker():
    """The usual way to run them: in a container, with the server on the host."""
    response = post({"messages": messages("plain")}, headers={"Host": "host.docker.internal:8787"})
    assert response.status == 200, (response.status, response.read())


@cell
def cancel():
    with Cancelled() as cancelled:
        response = post({**SENT["body"], "messages": messages("cancel"), "stream": True})
        next(line for line in response if b"One" in line)
        cancelled.is_running()
        response.close()


run(CLIENT, "as its source sends")
