"""LangChain's ChatOpenAI: it adds up the chunks' metadata, and so doubles what comes twice."""

import os
import sys

from langchain_openai import ChatOpenAI

model = ChatOpenAI(
    model="default", base_url=os.environ["BASE_URL"] + "/v1", api_key=os.environ["KEY"], max_retries=0, stream_usage=True
)


def stream():
    """One finish, one model, one text."""
    whole = None
    for chunk in model.stream("What's the weather in Paris?"):
        whole = chunk if whole is None else whole + chunk
    assert whole.text == "Let me look. \n\nSunny in Paris.", whole
    assert whole.response_metadata["finish_reason"] == "stop", whole.response_metadata
    assert whole.response_metadata["model_name"] == "default", whole.response_metadata
    assert whole.usage_metadata["total_tokens"] == 1135, whole.usage_metadata
    assert whole.tool_calls == [], whole.tool_calls


def invoke():
    """The same without streaming."""
    answer = model.invoke("What's the weather in Paris?")
    assert answer.text == "Let me look. \n\nSunny in Paris.", answer
    assert answer.response_metadata["finish_reason"] == "stop", answer.response_metadata


globals()[sys.argv[1]]()
