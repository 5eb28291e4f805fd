"""Replaces a word in what users said, and adds a message in front."""
import json
import sys

request = json.load(sys.stdin)
word = request["config"]["Word"]
messages = request["messages"]
for message in messages:
    if message["role"] == "user" and isinstance(message["content"], str):
        if message["content"] == "break":
            sys.exit("asked to break")
        message["content"] = message["content"].replace(word, "******")
with open("runs.txt", "a") as runs:
    runs.write("run\n")
print(json.dumps(messages))
