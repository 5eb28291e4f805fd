"""Answers with the id of a task, and posts the result when the file `go` is there."""
import json
import os
import sys
import time
import urllib.request

request = json.loads(sys.stdin.read())
title = request["title"]
if title == "none":
    sys.exit("no film is called none")
task = "film-1"
print("starting", flush=True)
print(json.dumps({"status": "success", "result": f"Task {task}; write {{{{VCP_ASYNC_RESULT::Later::{task}}}}}"}), flush=True)
while not os.path.exists("go"):
    time.sleep(0.02)
url = f"{os.environ['CALLBACK_BASE_URL']}/{os.environ['PLUGIN_NAME_FOR_CALLBACK']}/{task}"
body = json.dumps({"requestId": task, "status": "Succeed", "message": f"The film {title} is ready"}).encode()
post = urllib.request.Request(url, body, {"content-type": "application/json"})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    status = str(opener.open(post).status)
except OSError as error:
    status = f"refused: {error}"
# Whole, or not there at all.
with open("posted.new", "w") as posted:
    posted.write(status)
os.rename("posted.new", "posted")
