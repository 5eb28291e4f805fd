"""Answers with a picture of one pixel, as parts of content."""
import json
import sys

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
read = sys.stdin.read()
parts = [
    {"type": "text", "text": f"painted, having read {read!r}"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL}},
]
print(json.dumps({"status": "success", "result": {"content": parts, "width": 1}}))
sys.exit(3)
