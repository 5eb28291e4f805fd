"""Rolls dice that always show their highest side, so that a test knows what to expect."""
import json
import os
import sys

text = sys.stdin.read()
request = json.loads(text) if text else {}
count = int(request.get("count", "1"))
if count > 9:
    print(json.dumps({"status": "error", "error": f"{count} dice do not fit on the table; key {os.environ['DiceKey']}"}))
    sys.exit(1)
print("rolling", file=sys.stderr)
result = {
    "rolled": [int(os.environ["DiceSides"])] * count,
    "request": request,
    "environment": sorted(name for name in os.environ if name.startswith(("Debug", "Dice", "NotIn", "CARGO", "PYTHONIO"))),
    "folder": os.path.basename(os.getcwd()),
}
print(json.dumps({"status": "success", "result": result}, ensure_ascii=False))
